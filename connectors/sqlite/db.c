/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "sqlite.h"

/* How long another writer is waited for when the call itself has no end. */
#define WAIT_NS INT64_C(30000000000)
#define PAUSE_NS 2000000

static int64_t left_of(const lite_db *db) {
  return db->call ? weir_call_remaining(db->call) : INT64_MAX;
}

static int interrupted(void *ctx) {
  const lite_db *db = ctx;
  return db->call && weir_call_cancelled(db->call);
}

/* Another connection writes. */
static int busy(void *ctx, int times) {
  if (interrupted(ctx) || left_of(ctx) < PAUSE_NS || times > WAIT_NS / PAUSE_NS) return 0;
  struct timespec pause = {0, PAUSE_NS};
  nanosleep(&pause, NULL);
  return 1;
}

weir_status lite_error(lite_db *db, const char *what, weir_error *err) {
  int code = db->db ? sqlite3_extended_errcode(db->db) : SQLITE_NOMEM;
  uint32_t flags = 0;
  weir_status status = WEIR_E_IO;
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_FULL:
    case SQLITE_IOERR:
    case SQLITE_INTERRUPT:
      flags = WEIR_ERR_RETRIABLE;
      break;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      status = WEIR_E_CORRUPT;
      break;
    case SQLITE_NOMEM:
      status = WEIR_E_NOMEM;
      break;
    default:
      break;
  }
  weir_error_set(err, status, flags, "SQLite file '%s': cannot %s: %s", db->path, what,
                 db->db ? sqlite3_errmsg(db->db) : "out of memory");
  if (err) err->vendor_code = code;
  return status;
}

weir_status lite_exec(lite_db *db, const char *sql, weir_error *err) {
  return sqlite3_exec(db->db, sql, NULL, NULL, NULL) ? lite_error(db, sql, err) : WEIR_OK;
}

/* The entry of a new folder, or of a new file, in the one above it. */
static weir_status sync_folder(const char *path, weir_error *err) {
  int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  weir_status status = WEIR_OK;
  if (fd < 0 || fsync(fd))
    status = weir_error_errno(err, errno, "cannot sync folder '%s'", path);
  if (fd >= 0) close(fd);
  return status;
}

weir_status lite_make_folder(const lite_config *config, weir_error *err) {
  weir_status status = WEIR_OK;
  char *part = strdup(config->path);
  if (!part) return weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
  for (char *slash = strchr(part + 1, '/'), *above = NULL; slash && !status;
       above = slash, slash = strchr(slash + 1, '/')) {
    *slash = 0;
    int made = !mkdir(part, 0777);
    if (!made && errno != EEXIST && errno != EROFS && errno != EACCES)
      status = weir_error_errno(err, errno, "cannot make folder '%s'", part);
    if (made && above) {
      *above = 0;
      status = sync_folder(part, err);
      *above = '/';
    }
    *slash = '/';
  }
  free(part);
  return status;
}

weir_status lite_open(const lite_config *config, int how, const weir_call *call,
                      lite_db *out, weir_error *err) {
  const int flags[] = {SQLITE_OPEN_READONLY, SQLITE_OPEN_READWRITE,
                       SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE};
  *out = (lite_db){.call = call, .path = config->path};
  /* A handle of its own for its thread alone; the path is never a URI. */
  if (sqlite3_open_v2(config->path, &out->db, flags[how] | SQLITE_OPEN_NOMUTEX, NULL))
    return lite_error(out, "open it", err);
  sqlite3_extended_result_codes(out->db, 1);
  sqlite3_busy_handler(out->db, busy, out);
  sqlite3_progress_handler(out->db, 2000, interrupted, out);
  /* Constraints that the table declares are meant; and a commit is durable. */
  return lite_exec(out, "PRAGMA foreign_keys=ON; PRAGMA synchronous=FULL", err);
}

void lite_close(lite_db *db) {
  if (db->db) sqlite3_close_v2(db->db);
  db->db = NULL;
}

weir_status lite_prepare(lite_db *db, const char *sql, sqlite3_stmt **out,
                         weir_error *err) {
  *out = NULL;
  return sqlite3_prepare_v2(db->db, sql, -1, out, NULL) ? lite_error(db, sql, err)
                                                        : WEIR_OK;
}

weir_status lite_step(lite_db *db, sqlite3_stmt *stmt, int *row, weir_error *err) {
  int code = sqlite3_step(stmt);
  if (row) *row = code == SQLITE_ROW;
  if (code == SQLITE_ROW || code == SQLITE_DONE) return WEIR_OK;
  return lite_error(db, sqlite3_sql(stmt), err);
}

void lite_quote(sqlite3_str *sql, const char *name) {
  sqlite3_str_appendchar(sql, 1, '"');
  for (; *name; name++) sqlite3_str_appendchar(sql, *name == '"' ? 2 : 1, *name);
  sqlite3_str_appendchar(sql, 1, '"');
}
