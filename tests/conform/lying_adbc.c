/* SPDX-License-Identifier: Apache-2.0 */
/* An ADBC driver around that of SQLite (WEIR_TEST_DRIVER) that is not what it says: WEIR_TEST_LIE=autocommit commits each
 * statement whatever it was told, refuses has no transactions and says so, hollow lacks an entry. */
#include <nanoarrow/nanoarrow.h>
/* behind nanoarrow */
#include <arrow-adbc/adbc.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static struct AdbcDriver real;

static int is_lie(const char *name) {
  const char *lie = getenv("WEIR_TEST_LIE");
  return lie && strcmp(lie, name) == 0;
}

static AdbcStatusCode set_option(struct AdbcConnection *c, const char *key,
                                 const char *value, struct AdbcError *error) {
  if (strcmp(key, ADBC_CONNECTION_OPTION_AUTOCOMMIT) != 0)
    return real.ConnectionSetOption(c, key, value, error);
  return is_lie("autocommit") ? ADBC_STATUS_OK : ADBC_STATUS_NOT_IMPLEMENTED;
}

static AdbcStatusCode end(struct AdbcConnection *c, struct AdbcError *error) {
  (void)c;
  (void)error;
  return ADBC_STATUS_OK;
}

__attribute__((visibility("default"))) AdbcStatusCode
AdbcDriverInit(int version, void *driver, struct AdbcError *error) {
  struct AdbcDriver *table = driver;
  AdbcDriverInitFunc start = NULL;
  void *library = dlopen(getenv("WEIR_TEST_DRIVER"), RTLD_NOW);
  void *symbol = library ? dlsym(library, "AdbcDriverInit") : NULL;
  if (!symbol) return ADBC_STATUS_INTERNAL;
  memcpy(&start, &symbol, sizeof(start));
  AdbcStatusCode code = start(version, table, error);
  if (code) return code;
  memcpy(&real, table, sizeof(real));
  table->ConnectionSetOption = set_option;
  table->ConnectionCommit = end;
  table->ConnectionRollback = is_lie("hollow") ? NULL : end;
  return ADBC_STATUS_OK;
}
