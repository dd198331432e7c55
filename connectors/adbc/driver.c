/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "adbc.h"

/* ---- errors ------------------------------------------------------------------------------------------ */

/* Drivers may quote what they were given. */
static void hide(char *text, const char *secret) {
  size_t n = strlen(secret);
  for (char *at = n ? strstr(text, secret) : NULL; at; at = strstr(at + n, secret))
    memset(at, '*', n);
}

/* The password of scheme://user:password@host. */
static void hide_password(char *text, const char *uri) {
  char password[256];
  const char *from = strstr(uri, "://");
  const char *at = from ? strchr(from + 3, '@') : NULL;
  const char *colon = from ? memchr(from + 3, ':', strcspn(from + 3, "@/")) : NULL;
  if (!at || !colon || at < colon || (size_t)(at - colon) > sizeof(password)) return;
  memcpy(password, colon + 1, (size_t)(at - colon - 1));
  password[at - colon - 1] = 0;
  hide(text, password);
}

typedef struct meaning {
  weir_status status;
  uint32_t flags;
} meaning;

/* SQLSTATE's classes, ISO/IEC 9075-2, table "SQLSTATE class and subclass codes". */
static int by_sqlstate(const char *state, meaning *out) {
  static const char retriable[][3] = {"08", "40", "53", "55", "57"};
  if (strncmp(state, "22", 2) == 0 || strncmp(state, "23", 2) == 0) {
    *out = (meaning){WEIR_E_BAD_DATA, WEIR_ERR_BAD_DATA};
    return 1;
  }
  for (size_t i = 0; i < sizeof(retriable) / sizeof(*retriable); i++)
    if (strncmp(state, retriable[i], 2) == 0) {
      *out = (meaning){WEIR_E_IO, WEIR_ERR_RETRIABLE};
      return 1;
    }
  return 0;
}

/* Drivers without SQLSTATE give one code for many causes (of 1.13.0 SQLite's answers INTERNAL for a constraint,
 * DuckDB's INVALID_ARGUMENT for a conflict), so their words count too. */
static meaning by_code(AdbcStatusCode code, const char *text) {
  if (code == ADBC_STATUS_IO || code == ADBC_STATUS_TIMEOUT ||
      code == ADBC_STATUS_CANCELLED)
    return (meaning){WEIR_E_IO, WEIR_ERR_RETRIABLE};
  if (code == ADBC_STATUS_INTEGRITY || code == ADBC_STATUS_INVALID_DATA ||
      strcasestr(text, "constraint failed") || strcasestr(text, "constraint violation"))
    return (meaning){WEIR_E_BAD_DATA, WEIR_ERR_BAD_DATA};
  if (strcasestr(text, "conflict") || strcasestr(text, "is locked"))
    return (meaning){WEIR_E_IO, WEIR_ERR_RETRIABLE};
  if (code == ADBC_STATUS_NOT_IMPLEMENTED) return (meaning){WEIR_E_NOT_IMPLEMENTED, 0};
  return (meaning){WEIR_E_IO, 0};
}

weir_status adbc_error(const adbc_config *config, const char *what, AdbcStatusCode code,
                       struct AdbcError *error, weir_error *err) {
  enum {
    TEXT_MAX =
        65536, /* far more than an error shows, so that no secret is cut before it is hidden */
    PLAIN = 4 /* values of fewer characters are words such as "on" */
  };
  char state[6] = "";
  int told = error->message && *error->message;
  char *text = strndup(told ? error->message : "the driver tells no reason", TEXT_MAX);
  memcpy(state, error->sqlstate, sizeof(error->sqlstate));
  int32_t vendor = error->vendor_code;
  if (error->release) error->release(error);
  if (!text) return weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
  for (size_t i = 0; i < config->values.n; i++) {
    hide_password(text, config->values.v[i]);
    if (strlen(config->values.v[i]) >= PLAIN) hide(text, config->values.v[i]);
  }
  meaning m;
  if (!by_sqlstate(state, &m)) m = by_code(code, text);
  weir_error_set(err, m.status, m.flags, "driver '%s': cannot %s: %s (ADBC status %d)",
                 config->driver, what, text, (int)code);
  free(text);
  if (err) {
    err->vendor_code = vendor == ADBC_ERROR_VENDOR_CODE_PRIVATE_DATA ? 0 : vendor;
    memcpy(err->sqlstate, state, sizeof(state));
  }
  return m.status;
}

/* ---- loading --------------------------------------------------------------------------------------------- */

/* adbc.h, at AdbcDriverInitFunc: without 'lib' and extensions, in PascalCase, between Adbc and Init. */
void adbc_driver_entrypoint(const char *path, char *out, size_t size) {
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  char base[200];
  snprintf(base, sizeof(base), "%s", strncmp(name, "lib", 3) == 0 ? name + 3 : name);
  base[strcspn(base, ".")] = 0;
  size_t n = 0;
  for (size_t i = 0; base[i]; i++) {
    int starts = i == 0 || base[i - 1] == '_' || base[i - 1] == '-';
    if (base[i] == '_' || base[i] == '-') continue;
    base[n++] = starts ? (char)toupper((unsigned char)base[i]) : base[i];
  }
  base[n] = 0;
  snprintf(out, size, "%s%sInit", strncmp(base, "Adbc", 4) == 0 ? "" : "Adbc", base);
}

/* A driver may have threads (those in Go do), so its library stays in the process. */
static void *open_library(const char *path) {
  return dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}

static weir_status find_library(const adbc_config *config, void **out, weir_error *err) {
  char name[300], why[500];
  if (!(*out = open_library(config->driver))) {
    const char *said = dlerror();
    snprintf(why, sizeof(why), "%s", said ? said : "no reason");
    snprintf(name, sizeof(name), "lib%s.so", config->driver);
    if (!strchr(config->driver, '/')) *out = open_library(name);
  }
  if (*out) return WEIR_OK;
  return weir_error_set(
      err, WEIR_E_INVALID_CONFIG, 0,
      "`driver`: cannot load '%s': %s; expected the path of an ADBC driver's shared "
      "library, or the name of one where the system looks for libraries",
      config->driver, why);
}

static weir_status find_start(const adbc_config *config, void *library, void **out,
                              weir_error *err) {
  char derived[256];
  adbc_driver_entrypoint(config->driver, derived, sizeof(derived));
  if (config->entrypoint) {
    *out = dlsym(library, config->entrypoint);
  } else {
    *out = dlsym(library, derived);
    if (!*out) *out = dlsym(library, "AdbcDriverInit");
  }
  if (*out) return WEIR_OK;
  return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                        "`driver`: '%s' has no function '%s'%s; is it an ADBC driver? "
                        "`entrypoint` names another one",
                        config->driver, config->entrypoint ? config->entrypoint : derived,
                        config->entrypoint ? "" : " and no 'AdbcDriverInit'");
}

#define NEED(entry) {#entry, offsetof(struct AdbcDriver, entry)}

/* What this sink calls, so that nothing else is asked for NULL. */
static weir_status check_table(const adbc_config *config, const struct AdbcDriver *table,
                               weir_error *err) {
  static const struct {
    const char *name;
    size_t at;
  } needed[] = {NEED(DatabaseNew),
                NEED(DatabaseSetOption),
                NEED(DatabaseInit),
                NEED(DatabaseRelease),
                NEED(ConnectionNew),
                NEED(ConnectionSetOption),
                NEED(ConnectionInit),
                NEED(ConnectionCommit),
                NEED(ConnectionRollback),
                NEED(ConnectionRelease),
                NEED(StatementNew),
                NEED(StatementSetSqlQuery),
                NEED(StatementSetOption),
                NEED(StatementBindStream),
                NEED(StatementExecuteQuery),
                NEED(StatementRelease),
                NEED(ConnectionGetTableSchema)};
  for (size_t i = 0; i < sizeof(needed) / sizeof(*needed); i++) {
    void *entry = NULL;
    memcpy(&entry, (const char *)table + needed[i].at, sizeof(entry));
    if (!entry)
      return weir_error_set(err, WEIR_E_NOT_IMPLEMENTED, 0,
                            "driver '%s' has no %s, which this sink needs",
                            config->driver, needed[i].name);
  }
  return WEIR_OK;
}

weir_status adbc_driver_load(const adbc_config *config, adbc_driver *out,
                             weir_error *err) {
  static const int versions[] = {ADBC_VERSION_1_1_0, ADBC_VERSION_1_0_0};
  AdbcStatusCode code = ADBC_STATUS_NOT_IMPLEMENTED;
  struct AdbcError error = ADBC_ERROR_INIT;
  AdbcDriverInitFunc start = NULL;
  void *symbol = NULL;
  ADBC_TRY(find_library(config, &out->library, err));
  ADBC_TRY(find_start(config, out->library, &symbol, err));
  memcpy(&start, &symbol, sizeof(start));
  for (size_t i = 0; i < 2 && code == ADBC_STATUS_NOT_IMPLEMENTED; i++) {
    if (error.release) error.release(&error);
    memset(&error, 0, sizeof(error));
    memset(&out->table, 0, sizeof(out->table));
    code = start(versions[i], &out->table, &error);
  }
  if (code) {
    out->table.release = NULL;
    return adbc_error(config, "start the driver", code, &error, err);
  }
  if (error.release) error.release(&error);
  return check_table(config, &out->table, err);
}

void adbc_driver_unload(adbc_driver *driver) {
  struct AdbcError error = ADBC_ERROR_INIT;
  if (driver->table.release) driver->table.release(&driver->table, &error);
  if (error.release) error.release(&error);
  if (driver->library) dlclose(driver->library);
  *driver = (adbc_driver){.library = NULL};
}
