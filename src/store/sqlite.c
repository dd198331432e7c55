/* SPDX-License-Identifier: Apache-2.0 */
/* The SQLite store: statements, rows with a sum. */
#include "store/sqlite.h"

#include <stdlib.h>
#include <string.h>

/* Parameters and columns stand in one order everywhere; `sum` is always last. */
static const char *const sq_sql[SQ_STATEMENTS] = {
    [SQ_BEGIN] = "BEGIN IMMEDIATE",
    [SQ_BEGIN_READ] = "BEGIN",
    [SQ_COMMIT] = "COMMIT",
    [SQ_ROLLBACK] = "ROLLBACK",
    [SQ_LEASE_HOLD] = "UPDATE lease SET last_attempt=?2, sum=?3 WHERE id=1 AND token=?1",
    [SQ_LEASE_TAKE] =
        "INSERT OR REPLACE INTO lease(id, token, last_attempt, sum) VALUES(1,?1,?2,?3)",
    [SQ_LEASE_READ] = "SELECT token, last_attempt, sum FROM lease WHERE id=1",
    [SQ_META_ADD] = "INSERT INTO meta(id, pipeline, deployment, sum) VALUES(1,?1,?2,?3)",
    [SQ_META_READ] = "SELECT pipeline, deployment, sum FROM meta WHERE id=1",
    [SQ_ATTEMPT_ADD] =
        "INSERT INTO attempt(attempt, state, token, sum) VALUES(?1,?2,?3,?4)",
    /* An outcome is written once. */
    [SQ_ATTEMPT_SETTLE] =
        "UPDATE attempt SET state=?2, token=?3, sum=?4 WHERE attempt=?1 AND state=1",
    [SQ_ATTEMPT_DROP_CLEAN] =
        "DELETE FROM attempt WHERE attempt=?1 AND state=3 AND NOT EXISTS "
        "(SELECT 1 FROM entry e WHERE e.attempt=?1 AND e.kind=2)",
    [SQ_ATTEMPT_PRUNE] =
        "DELETE FROM attempt WHERE state=2 AND attempt < (SELECT a.attempt FROM attempt "
        "a "
        "WHERE a.state=2 ORDER BY a.attempt DESC LIMIT 1 OFFSET ?1) AND NOT EXISTS "
        "(SELECT 1 FROM part p WHERE p.attempt=attempt.attempt)",
    [SQ_ATTEMPT_READ] = "SELECT attempt, state, token, sum FROM attempt ORDER BY attempt",
    [SQ_ENTRY_ADD] =
        "INSERT INTO entry(attempt, kind, sink, participant, present, data, sum) "
        "VALUES(?1,?2,?3,?4,?5,?6,?7)",
    [SQ_INTENTS_DROP] = "DELETE FROM entry WHERE attempt=?1 AND kind=2",
    [SQ_INTENTS_CLEANED] =
        "DELETE FROM entry WHERE attempt=?1 AND kind=2 AND sink=?2 AND EXISTS "
        "(SELECT 1 FROM attempt a WHERE a.attempt=?1 AND a.state=3)",
    [SQ_ENTRY_PRUNE] = "DELETE FROM entry WHERE attempt < ?2 AND kind=1 AND sink=?1",
    [SQ_ENTRY_READ] =
        "SELECT attempt, kind, sink, participant, present, data, sum FROM entry "
        "ORDER BY attempt, kind, sink, participant",
    [SQ_PART_ADD] =
        "INSERT INTO part(attempt, sink, token, digest, has_rows, rows, bytes, entries, "
        "sum) "
        "VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9)",
    [SQ_PART_TOTALS] =
        "SELECT has_rows, rows, bytes FROM part WHERE attempt=?1 AND sink=?2",
    [SQ_PART_FLOOR] =
        "SELECT attempt FROM part WHERE sink=?1 AND attempt<=?2 ORDER BY attempt DESC "
        "LIMIT 1 OFFSET ?3",
    [SQ_PART_PRUNE] = "DELETE FROM part WHERE attempt < ?2 AND sink=?1",
    [SQ_PART_READ] =
        "SELECT attempt, sink, token, digest, has_rows, rows, bytes, entries, sum FROM "
        "part "
        "ORDER BY attempt, sink",
    [SQ_CURSOR_SET] =
        "INSERT OR REPLACE INTO cursor(kind, sink, checkpoint, token, digest, has_rows, "
        "rows, "
        "bytes, sum) VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9)",
    [SQ_CURSOR_READ] =
        "SELECT kind, sink, checkpoint, token, digest, has_rows, rows, bytes, sum FROM "
        "cursor "
        "ORDER BY kind, sink",
    [SQ_POSITION_SET] =
        "INSERT OR REPLACE INTO position(source, present, data, rows, lost, sum) "
        "VALUES(?1,?2,?3,?4,?5,?6)",
    [SQ_POSITION_READ] =
        "SELECT source, present, data, rows, lost, sum FROM position ORDER BY source",
    [SQ_BINDING_SET] = "INSERT OR REPLACE INTO binding(sink, data, sum) VALUES(?1,?2,?3)",
    [SQ_BINDING_GET] = "SELECT sink, data, sum FROM binding WHERE sink=?1",
    [SQ_BINDING_READ] = "SELECT sink, data, sum FROM binding ORDER BY sink",
    [SQ_FREE_PAGES] = "PRAGMA freelist_count",
};

sq_value sq_int(uint64_t v) {
  return (sq_value){.type = SQLITE_INTEGER, .i = (int64_t)v};
}
sq_value sq_text(const char *text) {
  return (sq_value){.type = SQLITE_TEXT, .data = text, .size = strlen(text)};
}
sq_value sq_blob(const void *data, size_t size) {
  return (sq_value){.type = SQLITE_BLOB, .data = size ? data : "", .size = size};
}
sq_value sq_null(void) {
  return (sq_value){.type = SQLITE_NULL};
}

static const char sq_damaged[] =
    "; it is damaged: bring it back from a copy, or deliver everything again with `weir "
    "run --new-deployment`";

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
    weir_error_errno(err, errnum, "checkpoint store %s: %s failed: %s", store->path, what,
                     text);
    if (err) err->flags = flags;
  } else {
    weir_error_set(err, code, flags, "checkpoint store %s: %s failed: %s%s", store->path,
                   what, text, code == WEIR_E_CORRUPT ? sq_damaged : "");
  }
  if (err) err->vendor_code = rc;
  return code;
}

weir_status sq_exec(sq_store *store, const char *sql, const char *what, weir_error *err) {
  int rc = sqlite3_exec(store->db, sql, NULL, NULL, NULL);
  return rc == SQLITE_OK ? WEIR_OK : sq_error(store, rc, what, err);
}

weir_status sq_get(sq_store *store, sq_statement id, sqlite3_stmt **out,
                   weir_error *err) {
  sqlite3_stmt **s = &store->statements[id];
  if (*s) {
    sqlite3_reset(*s);
    sqlite3_clear_bindings(*s);
  } else {
    int rc =
        sqlite3_prepare_v3(store->db, sq_sql[id], -1, SQLITE_PREPARE_PERSISTENT, s, NULL);
    if (rc != SQLITE_OK) return sq_error(store, rc, "preparing a statement", err);
  }
  *out = *s;
  return WEIR_OK;
}

static int sq_bind(sqlite3_stmt *s, int at, const sq_value *v) {
  switch (v->type) {
    case SQLITE_INTEGER:
      return sqlite3_bind_int64(s, at, v->i);
    case SQLITE_TEXT:
      return sqlite3_bind_text64(s, at, v->data, v->size, SQLITE_STATIC, SQLITE_UTF8);
    case SQLITE_BLOB:
      return sqlite3_bind_blob64(s, at, v->data, v->size, SQLITE_STATIC);
    default:
      return sqlite3_bind_null(s, at);
  }
}

weir_status sq_step(sq_store *store, sqlite3_stmt *s, bool *row, weir_error *err) {
  int rc = sqlite3_step(s);
  if (row) *row = rc == SQLITE_ROW;
  if (rc == SQLITE_ROW || rc == SQLITE_DONE) return WEIR_OK;
  weir_status status = sq_error(store, rc, sqlite3_sql(s), err);
  sqlite3_reset(s);
  return status;
}

static weir_status sq_finish(sq_store *store, sqlite3_stmt *s, weir_error *err) {
  weir_status status = sq_step(store, s, NULL, err);
  if (!status) sqlite3_reset(s);
  sqlite3_clear_bindings(s); /* they point at the caller's memory */
  return status;
}

weir_status sq_run(sq_store *store, sq_statement id, const sq_value *v, int n,
                   weir_error *err) {
  sqlite3_stmt *s = NULL;
  BASE_TRY(sq_get(store, id, &s, err));
  for (int i = 0; i < n; i++) {
    int rc = sq_bind(s, i + 1, &v[i]);
    if (rc != SQLITE_OK) return sq_error(store, rc, "binding a value", err);
  }
  return sq_finish(store, s, err);
}

/* Sum: SHA-256 over the table's name and every value, each framed by type and length. */
static weir_status sq_sum_value(sq_store *store, const sq_value *v, weir_error *err) {
  uint8_t frame[9];
  uint64_t n = v->type == SQLITE_INTEGER ? (uint64_t)v->i : v->size;
  frame[0] = (uint8_t)v->type;
  for (int i = 0; i < 8; i++) frame[1 + i] = (uint8_t)(n >> (8 * i));
  BASE_TRY(base_sha256_update(&store->sha, frame, sizeof(frame), err));
  if (v->type == SQLITE_INTEGER || v->size == 0) return WEIR_OK;
  return base_sha256_update(&store->sha, v->data, v->size, err);
}

/* A sum that an error cut short must not leak into the next one. */
static weir_status sq_sum_begin(sq_store *store, const char *table, weir_error *err) {
  uint8_t dropped[BASE_SHA256_SIZE];
  if (store->sha_open) BASE_TRY(base_sha256_final(&store->sha, dropped, err));
  store->sha_open = true;
  sq_value name = sq_text(table);
  return sq_sum_value(store, &name, err);
}

static weir_status sq_sum_end(sq_store *store, uint8_t out[BASE_SHA256_SIZE],
                              weir_error *err) {
  BASE_TRY(base_sha256_final(&store->sha, out, err));
  store->sha_open = false;
  return WEIR_OK;
}

weir_status sq_put(sq_store *store, sq_statement id, const char *table, const sq_value *v,
                   int n, weir_error *err) {
  uint8_t sum[BASE_SHA256_SIZE];
  sqlite3_stmt *s = NULL;
  BASE_TRY(sq_sum_begin(store, table, err));
  BASE_TRY(sq_get(store, id, &s, err));
  for (int i = 0; i < n; i++) {
    BASE_TRY(sq_sum_value(store, &v[i], err));
    int rc = sq_bind(s, i + 1, &v[i]);
    if (rc != SQLITE_OK) return sq_error(store, rc, "binding a value", err);
  }
  BASE_TRY(sq_sum_end(store, sum, err));
  sq_value last = sq_blob(sum, sizeof(sum));
  int rc = sq_bind(s, n + 1, &last);
  if (rc != SQLITE_OK) return sq_error(store, rc, "binding a value", err);
  return sq_finish(store, s, err);
}

weir_status sq_verify(sq_store *store, sqlite3_stmt *s, const char *table,
                      weir_error *err) {
  uint8_t sum[BASE_SHA256_SIZE];
  int n = sqlite3_column_count(s) - 1;
  BASE_TRY(sq_sum_begin(store, table, err));
  for (int i = 0; i < n; i++) {
    sq_value v = {.type = sqlite3_column_type(s, i)};
    if (v.type == SQLITE_INTEGER) {
      v.i = sqlite3_column_int64(s, i);
    } else if (v.type == SQLITE_TEXT || v.type == SQLITE_BLOB) {
      v.data = v.type == SQLITE_TEXT ? (const void *)sqlite3_column_text(s, i)
                                     : sqlite3_column_blob(s, i);
      v.size = (size_t)sqlite3_column_bytes(s, i);
      if (v.size && !v.data) return sq_error(store, SQLITE_NOMEM, "reading a value", err);
    }
    BASE_TRY(sq_sum_value(store, &v, err));
  }
  BASE_TRY(sq_sum_end(store, sum, err));
  if (sqlite3_column_bytes(s, n) == BASE_SHA256_SIZE &&
      memcmp(sqlite3_column_blob(s, n), sum, sizeof(sum)) == 0) {
    return WEIR_OK;
  }
  return weir_error_set(err, WEIR_E_CORRUPT, 0,
                        "checkpoint store %s: a row of table %s fails its SHA-256%s",
                        store->path, table, sq_damaged);
}
