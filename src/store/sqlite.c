/* SPDX-License-Identifier: Apache-2.0 */
/* The SQLite store: statements, transactions, one sync of the WAL a step. */
#include "store/sqlite.h"

#include <stdlib.h>
#include <string.h>

/* WAL pages at which the WAL is copied into the database: about one step in a hundred then pays for two
 * more syncs. */
enum { SQ_WAL_PAGES = 1000 };
/* Free pages from which the file is given back to the file system, and how many at a time. */
enum { SQ_SPARE_PAGES = 2048 };
#define SQ_VACUUM "PRAGMA incremental_vacuum(512)"

static const char *const sq_sql[SQ_STATEMENTS] = {
    [SQL_LEASE_HOLD] = "UPDATE lease SET last_attempt=?2, sum=?3 WHERE id=1 AND token=?1",
    [SQL_LEASE_TAKE] =
        "INSERT OR REPLACE INTO lease(id, token, last_attempt, sum) VALUES(1,?1,?2,?3)",
    [SQL_LEASE_READ] = "SELECT token, last_attempt, sum FROM lease WHERE id=1",
    [SQL_META_ADD] = "INSERT INTO meta(id, pipeline, deployment, sum) VALUES(1,?1,?2,?3)",
    [SQL_META_READ] = "SELECT pipeline, deployment, sum FROM meta WHERE id=1",
    [SQL_META_SET] = "UPDATE meta SET deployment=?2, sum=?3 WHERE id=1 AND pipeline=?1",
    [SQL_ATTEMPT_ADD] =
        "INSERT INTO attempt(attempt, state, token, sum) VALUES(?1,?2,?3,?4)",
    /* An outcome is written once. */
    [SQL_ATTEMPT_SETTLE] =
        "UPDATE attempt SET state=?2, token=?3, sum=?4 WHERE attempt=?1 AND state=1",
    [SQL_ATTEMPT_DROP_CLEAN] =
        "DELETE FROM attempt WHERE attempt=?1 AND state=3 AND NOT EXISTS "
        "(SELECT 1 FROM entry e WHERE e.attempt=?1 AND e.kind=2)",
    [SQL_ATTEMPT_PRUNE] =
        "DELETE FROM attempt WHERE state=2 AND attempt < (SELECT a.attempt FROM attempt "
        "a "
        "WHERE a.state=2 ORDER BY a.attempt DESC LIMIT 1 OFFSET ?1) AND NOT EXISTS "
        "(SELECT 1 FROM part p WHERE p.attempt=attempt.attempt)",
    [SQL_ATTEMPT_READ] =
        "SELECT attempt, state, token, sum FROM attempt ORDER BY attempt",
    [SQL_ENTRY_ADD] =
        "INSERT INTO entry(attempt, kind, sink, participant, present, data, sum) "
        "VALUES(?1,?2,?3,?4,?5,?6,?7)",
    [SQL_INTENTS_DROP] = "DELETE FROM entry WHERE attempt=?1 AND kind=2",
    [SQL_INTENTS_CLEANED] =
        "DELETE FROM entry WHERE attempt=?1 AND kind=2 AND sink=?2 AND EXISTS "
        "(SELECT 1 FROM attempt a WHERE a.attempt=?1 AND a.state=3)",
    [SQL_ENTRY_PRUNE] = "DELETE FROM entry WHERE attempt < ?2 AND kind=1 AND sink=?1",
    [SQL_ENTRY_READ] =
        "SELECT attempt, kind, sink, participant, present, data, sum FROM entry "
        "ORDER BY attempt, kind, sink, participant",
    [SQL_PART_ADD] =
        "INSERT INTO part(attempt, sink, token, digest, has_rows, rows, bytes, entries, "
        "sum) "
        "VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9)",
    [SQL_PART_TOTALS] =
        "SELECT has_rows, rows, bytes FROM part WHERE attempt=?1 AND sink=?2",
    [SQL_PART_FLOOR] =
        "SELECT attempt FROM part WHERE sink=?1 AND attempt<=?2 ORDER BY attempt DESC "
        "LIMIT 1 OFFSET ?3",
    [SQL_PART_PRUNE] = "DELETE FROM part WHERE attempt < ?2 AND sink=?1",
    [SQL_PART_READ] =
        "SELECT attempt, sink, token, digest, has_rows, rows, bytes, entries, sum FROM "
        "part "
        "ORDER BY attempt, sink",
    [SQL_CURSOR_SET] =
        "INSERT OR REPLACE INTO cursor(kind, sink, checkpoint, token, digest, has_rows, "
        "rows, "
        "bytes, sum) VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9)",
    [SQL_CURSOR_READ] =
        "SELECT kind, sink, checkpoint, token, digest, has_rows, rows, bytes, sum FROM "
        "cursor "
        "ORDER BY kind, sink",
    [SQL_POSITION_SET] =
        "INSERT OR REPLACE INTO position(source, present, data, rows, lost, sum) "
        "VALUES(?1,?2,?3,?4,?5,?6)",
    [SQL_POSITION_READ] =
        "SELECT source, present, data, rows, lost, sum FROM position ORDER BY source",
    [SQL_BINDING_SET] =
        "INSERT OR REPLACE INTO binding(sink, data, sum) VALUES(?1,?2,?3)",
    [SQL_BINDING_GET] = "SELECT sink, data, sum FROM binding WHERE sink=?1",
    [SQL_BINDING_READ] = "SELECT sink, data, sum FROM binding ORDER BY sink",
    [SQ_BEGIN] = "BEGIN IMMEDIATE",
    [SQ_BEGIN_READ] = "BEGIN",
    [SQ_COMMIT] = "COMMIT",
    [SQ_ROLLBACK] = "ROLLBACK",
    [SQ_FREE_PAGES] = "PRAGMA freelist_count",
};

weir_status sq_error(sq_store *store, int rc, const char *what, weir_error *err) {
  weir_status code = WEIR_E_INTERNAL;
  uint32_t flags = 0;
  switch (rc & 0xff) {
    case SQLITE_NOMEM:
      code = WEIR_E_NOMEM;
      break;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      code = WEIR_E_CORRUPT;
      break;
    case SQLITE_FULL:
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      flags = WEIR_ERR_RETRIABLE;
      code = WEIR_E_IO;
      break;
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_PROTOCOL:
    case SQLITE_NOLFS:
      code = WEIR_E_IO;
      break;
    default:
      break;
  }
  int errnum = store->db ? sqlite3_system_errno(store->db) : 0;
  bool told = store->db && sqlite3_extended_errcode(store->db) == rc;
  const char *text = told ? sqlite3_errmsg(store->db) : sqlite3_errstr(rc);
  if (code == WEIR_E_IO && errnum) {
    weir_error_errno(err, errnum, "checkpoint store %s: %s failed: %s", store->sql.path,
                     what, text);
    if (err) err->flags = flags;
  } else {
    weir_error_set(err, code, flags, "checkpoint store %s: %s failed: %s%s",
                   store->sql.path, what, text,
                   code == WEIR_E_CORRUPT ? sql_damaged : "");
  }
  if (err) err->vendor_code = rc;
  return code;
}

weir_status sq_exec(sq_store *store, const char *sql, const char *what, weir_error *err) {
  int rc = sqlite3_exec(store->db, sql, NULL, NULL, NULL);
  return rc == SQLITE_OK ? WEIR_OK : sq_error(store, rc, what, err);
}

static int sq_bind(sqlite3_stmt *s, int at, const sql_value *v) {
  switch (v->type) {
    case SQL_INTEGER:
      return sqlite3_bind_int64(s, at, v->i);
    case SQL_TEXT:
      return sqlite3_bind_text64(s, at, v->data, v->size, SQLITE_STATIC, SQLITE_UTF8);
    case SQL_BLOB:
      return sqlite3_bind_blob64(s, at, v->data, v->size, SQLITE_STATIC);
    default:
      return sqlite3_bind_null(s, at);
  }
}

/* The prepared statement with its values. */
static weir_status sq_prepare(sq_store *store, int id, const sql_value *v, int n,
                              sqlite3_stmt **out, weir_error *err) {
  sqlite3_stmt **s = &store->statements[id];
  int rc = SQLITE_OK;
  if (!*s) {
    rc =
        sqlite3_prepare_v3(store->db, sq_sql[id], -1, SQLITE_PREPARE_PERSISTENT, s, NULL);
    if (rc != SQLITE_OK) return sq_error(store, rc, "preparing a statement", err);
  }
  for (int i = 0; i < n && rc == SQLITE_OK; i++) rc = sq_bind(*s, i + 1, &v[i]);
  if (rc != SQLITE_OK) return sq_error(store, rc, "binding a value", err);
  *out = *s;
  return WEIR_OK;
}

static weir_status sq_step(sq_store *store, sqlite3_stmt *s, bool *row, weir_error *err) {
  int rc = sqlite3_step(s);
  *row = rc == SQLITE_ROW;
  if (rc == SQLITE_ROW || rc == SQLITE_DONE) return WEIR_OK;
  return sq_error(store, rc, sqlite3_sql(s), err);
}

/* One step of a statement; it is left reset and without bindings, which point at the caller's memory. */
static weir_status sq_once(sq_store *store, int id, const sql_value *v, int n,
                           weir_error *err) {
  sqlite3_stmt *s = NULL;
  bool row = false;
  BASE_TRY(sq_prepare(store, id, v, n, &s, err));
  weir_status status = sq_step(store, s, &row, err);
  sqlite3_reset(s);
  sqlite3_clear_bindings(s);
  return status;
}

static weir_status sq_run(sql_store *base, sql_statement id, const sql_value *v, int n,
                          uint64_t *changes, weir_error *err) {
  sq_store *store = (sq_store *)base;
  BASE_TRY(sq_once(store, (int)id, v, n, err));
  if (changes) *changes = (uint64_t)sqlite3_changes(store->db);
  return WEIR_OK;
}

static weir_status sq_read_column(sq_store *store, sqlite3_stmt *s, int i, sql_value *out,
                                  weir_error *err) {
  *out = (sql_value){.type = (sql_type)sqlite3_column_type(s, i)};
  if (out->type == SQL_INTEGER) {
    out->i = sqlite3_column_int64(s, i);
  } else if (out->type == SQL_TEXT || out->type == SQL_BLOB) {
    out->data = out->type == SQL_TEXT ? (const void *)sqlite3_column_text(s, i)
                                      : sqlite3_column_blob(s, i);
    out->size = (size_t)sqlite3_column_bytes(s, i);
    if (out->size && !out->data)
      return sq_error(store, SQLITE_NOMEM, "reading a value", err);
  }
  return WEIR_OK;
}

static weir_status sq_query(sql_store *base, sql_statement id, const sql_value *v, int n,
                            sql_row row, void *ctx, weir_error *err) {
  enum { MOST = 16 };
  sq_store *store = (sq_store *)base;
  sqlite3_stmt *s = NULL;
  weir_status status = sq_prepare(store, (int)id, v, n, &s, err);
  while (!status) {
    bool more = false;
    sql_value columns[MOST] = {{0}};
    status = sq_step(store, s, &more, err);
    if (status || !more) break;
    int n_columns = sqlite3_column_count(s);
    for (int i = 0; i < n_columns && i < MOST && !status; i++)
      status = sq_read_column(store, s, i, &columns[i], err);
    if (!status) status = row(ctx, columns, n_columns, err);
  }
  if (s) {
    sqlite3_reset(s);
    sqlite3_clear_bindings(s);
  }
  return status;
}

/* ---- transactions --------------------------------------------------------------------------------- */

static weir_status sq_begin(sql_store *base, weir_error *err) {
  return sq_once((sq_store *)base, SQ_BEGIN, NULL, 0, err);
}

static weir_status sq_begin_read(sql_store *base, weir_error *err) {
  return sq_once((sq_store *)base, SQ_BEGIN_READ, NULL, 0, err);
}

/* When it fails nobody can say what is on disk. */
static weir_status sq_commit(sql_store *base, weir_error *err) {
  weir_status status = sq_once((sq_store *)base, SQ_COMMIT, NULL, 0, err);
  if (status) err->flags |= WEIR_ERR_IN_DOUBT;
  return status;
}

static bool sq_rollback(sql_store *base) {
  sq_store *store = (sq_store *)base;
  if (!sqlite3_get_autocommit(store->db)) sq_once(store, SQ_ROLLBACK, NULL, 0, NULL);
  return sqlite3_get_autocommit(store->db);
}

/* A file that was moved, deleted or replaced under the owner is no longer what the next start asks. */
static weir_status sq_is_owned(sql_store *base, weir_error *err) {
  sq_store *store = (sq_store *)base;
  int moved = 0;
  if (store->in_memory) return WEIR_OK;
  int rc = sqlite3_file_control(store->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
  if (rc != SQLITE_OK) return sq_error(store, rc, "looking for the file", err);
  return moved ? sql_fenced(base, "the file was moved, deleted or replaced", err)
               : WEIR_OK;
}

static weir_status sq_give_space(sql_store *base, weir_error *err) {
  sq_store *store = (sq_store *)base;
  sqlite3_stmt *s = NULL;
  bool row = false;
  BASE_TRY(sq_prepare(store, SQ_FREE_PAGES, NULL, 0, &s, err));
  weir_status status = sq_step(store, s, &row, err);
  int pages = !status && row ? sqlite3_column_int(s, 0) : 0;
  sqlite3_reset(s);
  if (status || pages < SQ_SPARE_PAGES) return status;
  return sq_exec(store, SQ_VACUUM, "giving space back", err);
}

/* The step itself is durable already, so a failure here is told by the next call. */
static void sq_committed(sql_store *base) {
  sq_store *store = (sq_store *)base;
  if (store->in_memory || store->wal_pages < SQ_WAL_PAGES) return;
  int rc = WEIR_FAULT("store.checkpoint.before") ? SQLITE_IOERR_FSYNC : SQLITE_OK;
  if (rc == SQLITE_OK) {
    rc =
        sqlite3_wal_checkpoint_v2(store->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
  }
  if (rc == SQLITE_OK || (rc & 0xff) == SQLITE_BUSY) return;
  weir_error err = {0};
  weir_status status = sq_error(store, rc, "copying the WAL into the database", &err);
  store_break(&base->base, status, &err);
}

const sql_driver sq_driver = {sq_begin, sq_begin_read, sq_commit,     sq_rollback, sq_run,
                              sq_query, sq_is_owned,   sq_give_space, sq_committed};
