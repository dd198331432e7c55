/* SPDX-License-Identifier: Apache-2.0 */
/* Transactions. They are brief: one that stayed open would keep every other writer out of the file. */
#include <stdlib.h>
#include <string.h>

#include "sqlite.h"

typedef struct session {
  const lite_config *config;
  const weir_txn_place *place;
  lite_db db;
  sqlite3_stmt *put, *drop; /* drop: of upsert alone */
  int64_t columns;
} session;

/* ---- statements --------------------------------------------------------------------------------- */

/* Non-key columns are taken from the new row. */
static void append_conflict(const session *s, sqlite3_str *sql) {
  const struct ArrowSchema *in = weir_schema_arrow(s->place->binding->schema);
  int set = 0;
  for (size_t i = 0; i < s->config->n_key; i++) {
    sqlite3_str_appendall(sql, i ? ", " : " ON CONFLICT(");
    lite_quote(sql, s->config->key[i]);
  }
  sqlite3_str_appendall(sql, ") DO ");
  for (int64_t i = 0; i < s->columns; i++) {
    const char *name = in->children[i]->name;
    if (lite_is_key(s->config, name)) continue;
    sqlite3_str_appendall(sql, set++ ? ", " : "UPDATE SET ");
    lite_quote(sql, name);
    sqlite3_str_appendall(sql, " = excluded.");
    lite_quote(sql, name);
  }
  if (!set) sqlite3_str_appendall(sql, "NOTHING");
}

static weir_status compile(session *s, sqlite3_str *sql, sqlite3_stmt **out,
                           weir_error *err) {
  char *text = sqlite3_str_finish(sql);
  weir_status status = text ? lite_prepare(&s->db, text, out, err)
                            : weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
  sqlite3_free(text);
  return status;
}

static weir_status compile_put(session *s, weir_error *err) {
  const struct ArrowSchema *in = weir_schema_arrow(s->place->binding->schema);
  sqlite3_str *sql = sqlite3_str_new(NULL);
  sqlite3_str_appendall(sql, "INSERT INTO main.");
  lite_quote(sql, s->config->table);
  for (int64_t i = 0; i < s->columns; i++) {
    sqlite3_str_appendall(sql, i ? ", " : "(");
    lite_quote(sql, in->children[i]->name);
  }
  for (int64_t i = 0; i < s->columns; i++)
    sqlite3_str_appendf(sql, "%s?%lld", i ? ", " : ") VALUES (", (long long)i + 1);
  sqlite3_str_appendall(sql, ")");
  if (s->config->upsert) append_conflict(s, sql);
  return compile(s, sql, &s->put, err);
}

static weir_status compile_drop(session *s, weir_error *err) {
  sqlite3_str *sql = sqlite3_str_new(NULL);
  sqlite3_str_appendall(sql, "DELETE FROM main.");
  lite_quote(sql, s->config->table);
  for (size_t i = 0; i < s->config->n_key; i++) {
    sqlite3_str_appendall(sql, i ? " AND " : " WHERE ");
    lite_quote(sql, s->config->key[i]);
    sqlite3_str_appendf(sql, " = ?%d", (int)i + 1);
  }
  return compile(s, sql, &s->drop, err);
}

/* ---- life --------------------------------------------------------------------------------------- */

static weir_status failed(const session *s, weir_status status, weir_error *err) {
  return weir_error_prefix(err, status, "%s", s->config->where);
}

weir_status lite_session_open(void *config, const weir_call *call,
                              const weir_txn_place *place, void **out, weir_error *err) {
  session *s = calloc(1, sizeof(*s));
  if (!s) return weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
  const struct ArrowSchema *in = weir_schema_arrow(place->binding->schema);
  s->config = config;
  s->place = place;
  s->columns = s->config->upsert ? lite_columns(in) : in->n_children;
  weir_status status = lite_open(s->config, LITE_WRITE, call, &s->db, err);
  if (!status) status = compile_put(s, err);
  if (!status && s->config->upsert) status = compile_drop(s, err);
  if (status) {
    failed(s, status, err);
    lite_session_close(s, call);
    return status;
  }
  *out = s;
  return WEIR_OK;
}

void lite_session_close(void *state, const weir_call *call) {
  session *s = state;
  s->db.call = call;
  sqlite3_finalize(s->put);
  sqlite3_finalize(s->drop);
  lite_close(&s->db);
  free(s);
}

/* ---- the cursor ---------------------------------------------------------------------------------- */

/* No older session's commit is on its way while this one may write. */
weir_status lite_session_read_cursor(void *state, const weir_call *call, weir_cursor *out,
                                     weir_error *err) {
  session *s = state;
  s->db.call = call;
  int alone = sqlite3_get_autocommit(s->db.db);
  weir_status status = alone ? lite_exec(&s->db, "BEGIN IMMEDIATE", err) : WEIR_OK;
  if (!status) status = lite_read_cursor(&s->db, s->place->ns, out, err);
  if (alone && !sqlite3_get_autocommit(s->db.db))
    sqlite3_exec(s->db.db, "ROLLBACK", NULL, NULL, NULL);
  return status ? failed(s, status, err) : WEIR_OK;
}

/* The file's lock is all that keeps two owners apart, and it is free between transactions. */
weir_status lite_session_take_over(void *state, const weir_call *call, weir_error *err) {
  session *s = state;
  s->db.call = call;
  weir_status status = lite_check_claim(&s->db, s->place->ns, err);
  return status ? failed(s, status, err) : WEIR_OK;
}

typedef struct found_list {
  weir_found_cursor *v;
  size_t n;
} found_list;

static void free_list(found_list *l) {
  for (size_t i = 0; i < l->n; i++) free((char *)(uintptr_t)l->v[i].positions);
  free(l->v);
}

static void release_list(weir_cursor_list *list) {
  found_list l = {list->private_data, list->n};
  free_list(&l);
  list->release = NULL;
}

static weir_status add_found(void *ctx, const weir_found_cursor *cursor,
                             weir_error *err) {
  found_list *l = ctx;
  weir_found_cursor *grown = realloc(l->v, (l->n + 1) * sizeof(*grown));
  if (!grown) return weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
  l->v = grown;
  grown[l->n] = *cursor;
  if (cursor->positions) {
    grown[l->n].positions = strdup(cursor->positions);
    if (!grown[l->n].positions)
      return weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
  }
  l->n++;
  return WEIR_OK;
}

weir_status lite_session_find_cursors(void *state, const weir_call *call,
                                      weir_cursor_list *out, weir_error *err) {
  session *s = state;
  found_list l = {NULL, 0};
  s->db.call = call;
  weir_status status = lite_each_cursor(&s->db, s->place->ns, &l, add_found, err);
  if (status) {
    free_list(&l);
    return failed(s, status, err);
  }
  *out = (weir_cursor_list){l.v, l.n, release_list, l.v};
  return WEIR_OK;
}

/* ---- transactions -------------------------------------------------------------------------------- */

weir_status lite_session_begin(void *state, const weir_call *call, weir_error *err) {
  session *s = state;
  s->db.call = call;
  weir_status status = lite_exec(&s->db, "BEGIN IMMEDIATE", err);
  return status ? failed(s, status, err) : WEIR_OK;
}

/* The column that a constraint's message names last: "... failed: t.a, t.b". */
static int32_t column_at_fault(const session *s, const char *message) {
  const struct ArrowSchema *in = weir_schema_arrow(s->place->binding->schema);
  const char *dot = strrchr(message, '.');
  for (int64_t i = 0; dot && i < s->columns; i++)
    if (sqlite3_stricmp(in->children[i]->name, dot + 1) == 0) return (int32_t)i;
  return -1;
}

static weir_status row_failed(session *s, int64_t row, weir_error *err) {
  int code = sqlite3_extended_errcode(s->db.db) & 0xff;
  const char *message = sqlite3_errmsg(s->db.db);
  if (code != SQLITE_CONSTRAINT && code != SQLITE_TOOBIG && code != SQLITE_MISMATCH)
    return lite_error(&s->db, "write a row", err);
  int32_t column = column_at_fault(s, message);
  weir_error_set(err, WEIR_E_BAD_DATA, WEIR_ERR_BAD_DATA, "row %lld of a batch: %s",
                 (long long)row, message);
  if (err) err->vendor_code = sqlite3_extended_errcode(s->db.db);
  return weir_error_at(err, WEIR_E_BAD_DATA, row, column);
}

static int bind_row(session *s, const lite_rows *rows, int64_t row) {
  const struct ArrowSchema *in = weir_schema_arrow(s->place->binding->schema);
  int code = SQLITE_OK;
  if (!lite_rows_deletes(rows, row) || !s->drop) {
    for (int64_t i = 0; !code && i < s->columns; i++)
      code = lite_rows_bind(rows, row, i, s->put, (int)i + 1);
    return code;
  }
  for (size_t k = 0; !code && k < s->config->n_key; k++)
    for (int64_t i = 0; !code && i < s->columns; i++)
      if (strcmp(in->children[i]->name, s->config->key[k]) == 0)
        code = lite_rows_bind(rows, row, i, s->drop, (int)k + 1);
  return code;
}

static weir_status put_rows(session *s, const lite_rows *rows, int64_t n,
                            weir_error *err) {
  for (int64_t row = 0; row < n; row++) {
    sqlite3_stmt *stmt = s->drop && lite_rows_deletes(rows, row) ? s->drop : s->put;
    int code = bind_row(s, rows, row);
    if (!code) code = sqlite3_step(stmt);
    if (code != SQLITE_DONE) {
      weir_status status = row_failed(s, row, err);
      sqlite3_reset(stmt);
      return status;
    }
    sqlite3_reset(stmt);
  }
  sqlite3_clear_bindings(s->put);
  if (s->drop) sqlite3_clear_bindings(s->drop);
  return WEIR_OK;
}

weir_status lite_session_apply(void *state, const weir_call *call, weir_batch *batch,
                               weir_error *err) {
  session *s = state;
  lite_rows *rows = NULL;
  s->db.call = call;
  weir_status status = lite_rows_open(s->config, batch, &rows, err);
  if (!status) status = put_rows(s, rows, weir_batch_rows(batch), err);
  lite_rows_free(rows);
  return status ? failed(s, status, err) : WEIR_OK;
}

static weir_status check_all(session *s, const weir_cursor *predecessor,
                             weir_error *err) {
  weir_cursor at = {0};
  int unresolved = 0, highest = 0;
  LITE_TRY(lite_read_cursor(&s->db, s->place->ns, &at, err));
  if (!weir_cursor_equal(&at, predecessor))
    return weir_error_set(err, WEIR_E_CONFLICT, 0,
                          "the cursor is at attempt %llu and not at %llu; somebody else "
                          "delivers here under this state",
                          (unsigned long long)at.checkpoint,
                          (unsigned long long)predecessor->checkpoint);
  LITE_TRY(lite_check_claim(&s->db, s->place->ns, err));
  sqlite3_db_status(s->db.db, SQLITE_DBSTATUS_DEFERRED_FKS, &unresolved, &highest, 0);
  if (!unresolved) return WEIR_OK;
  return weir_error_set(
      err, WEIR_E_BAD_DATA, WEIR_ERR_BAD_DATA,
      "a row of this epoch refers to one that is not there: FOREIGN KEY "
      "constraint of table '%s'",
      s->config->table);
}

weir_status lite_session_prepare(void *state, const weir_call *call,
                                 const weir_cursor *predecessor, weir_error *err) {
  session *s = state;
  s->db.call = call;
  weir_status status = check_all(s, predecessor, err);
  return status ? failed(s, status, err) : WEIR_OK;
}

/* A trigger or a missing table could make of it a statement that changes nothing, and the rows would be
 * committed without their cursor. */
static weir_status move_cursor(session *s, const weir_txn_commit *c, weir_error *err) {
  const weir_namespace *ns = s->place->ns;
  char key[WEIR_NAMESPACE_KEY_SIZE];
  sqlite3_stmt *stmt = NULL;
  weir_namespace_key(ns, key);
  weir_status status = lite_prepare(
      &s->db,
      "INSERT INTO main.weir_cursor VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON "
      "CONFLICT(namespace) DO UPDATE SET checkpoint = ?5, token = ?6, digest = ?7, "
      "positions = ?8 WHERE checkpoint = ?9",
      &stmt, err);
  if (!status) {
    sqlite3_bind_text(stmt, 1, key, -1, SQLITE_STATIC);
    sqlite3_bind_text(stmt, 2, ns->pipeline, -1, SQLITE_STATIC);
    sqlite3_bind_text(stmt, 3, ns->sink_id, -1, SQLITE_STATIC);
    sqlite3_bind_blob(stmt, 4, ns->deployment, WEIR_UUID_SIZE, SQLITE_STATIC);
    sqlite3_bind_int64(stmt, 5, (sqlite3_int64)c->cursor.checkpoint);
    sqlite3_bind_int64(stmt, 6, (sqlite3_int64)c->cursor.token);
    sqlite3_bind_blob(stmt, 7, c->cursor.digest, WEIR_DIGEST_SIZE, SQLITE_STATIC);
    sqlite3_bind_text(stmt, 8, c->positions, -1, SQLITE_STATIC);
    sqlite3_bind_int64(stmt, 9, (sqlite3_int64)c->predecessor.checkpoint);
    status = lite_step(&s->db, stmt, NULL, err);
  }
  sqlite3_finalize(stmt);
  if (status || sqlite3_changes(s->db.db) == 1) return status;
  return weir_error_set(
      err, WEIR_E_IO, 0,
      "the row of weir_cursor does not move; look for a trigger on it in "
      "'%s'",
      s->config->path);
}

weir_status lite_session_commit(void *state, const weir_call *call,
                                const weir_txn_commit *c, weir_error *err) {
  session *s = state;
  s->db.call = call;
  weir_status status = move_cursor(s, c, err);
  if (status) return failed(s, status, err);
  status = lite_exec(&s->db, "COMMIT", err);
  if (!status) return WEIR_OK;
  /* Part of the log may have been written: only the file can tell. */
  if (err && (err->vendor_code & 0xff) != SQLITE_BUSY) err->flags = WEIR_ERR_IN_DOUBT;
  return failed(s, status, err);
}

weir_status lite_session_abort(void *state, const weir_call *call, weir_error *err) {
  session *s = state;
  s->db.call = call;
  if (sqlite3_get_autocommit(s->db.db)) return WEIR_OK;
  weir_status status = lite_exec(&s->db, "ROLLBACK", err);
  return status ? failed(s, status, err) : WEIR_OK;
}
