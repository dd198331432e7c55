/* SPDX-License-Identifier: Apache-2.0 */
#include "session.h"

#include <stdlib.h>
#include <string.h>
#include <weir/fault.h>

#include "cursor.h"
#include "upsert.h"

typedef struct pg_session {
  const pg_config *config;
  const weir_txn_place *place;
  pg_conn conn;
  pg_target target;
  pg_encoder *encoder;
  pg_upsert *upsert; /* NULL: rows are added */
  char *copy;        /* COPY .. FROM STDIN */
  char application[PG_APPLICATION];
} pg_session;

static weir_status no_memory(weir_error *err) {
  return weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
}

weir_status pg_application(const weir_namespace *ns, char out[PG_APPLICATION],
                           weir_error *err) {
  char key[WEIR_NAMESPACE_KEY_SIZE];
  weir_namespace_key(ns, key);
  if (!*key) return no_memory(err);
  /* The server cuts it here too; 58 of 64 digits are left. */
  snprintf(out, PG_APPLICATION, "%.63s", key);
  return WEIR_OK;
}

/* ---- opening and closing -------------------------------------------------------------------------------------- */

weir_status pg_encoder_for(const pg_config *config, weir_schema *schema, pg_encoder **out,
                           weir_error *err) {
  const struct ArrowSchema *arrow = weir_schema_arrow(schema);
  int64_t n = arrow->n_children;
  weir_status status = WEIR_OK;
  pg_type *types = calloc((size_t)n + 1, sizeof(*types));
  if (!types) status = no_memory(err);
  for (int64_t i = 0; i < n && !status; i++) {
    bool not_null;
    if (pg_is_op(config, arrow, i)) {
      types[i] = (pg_type){.kind = PG_TEXT, .typmod = -1, .name = "text"};
    } else if (!pg_field_type(arrow->children[i], &types[i], &not_null)) {
      status =
          weir_error_set(err, WEIR_E_INTERNAL, 0, "column '%s' has no type at the target",
                         arrow->children[i]->name);
    }
  }
  if (!status) status = pg_encoder_new(schema, types, config->upsert, out, err);
  free(types);
  return status;
}

static weir_status make_copy(pg_session *s, weir_error *err) {
  const struct ArrowSchema *arrow = weir_schema_arrow(s->place->binding->schema);
  pg_sql sql = {0};
  PG_TRY(pg_sql_start(&sql, err));
  fputs("COPY ", sql.file);
  if (s->upsert) {
    fputs(PG_STAGE, sql.file);
  } else {
    pg_sql_table(&sql, s->config, s->config->table);
    pg_sql_columns(&sql, arrow);
  }
  fputs(" FROM STDIN (FORMAT binary)", sql.file);
  weir_status status = pg_sql_done(&sql, err);
  if (!status) {
    s->copy = sql.text;
    sql.text = NULL;
  }
  pg_sql_free(&sql);
  return status;
}

/* The table may have been dropped and made again since the binding. */
static weir_status check_identity(const pg_session *s, weir_error *err) {
  char line[40];
  snprintf(line, sizeof(line), "table_oid=%s\n", s->target.oid);
  const char *identity = s->place->binding->identity;
  if (identity && strstr(identity, line)) return WEIR_OK;
  return weir_error_set(err, WEIR_E_SCHEMA, 0,
                        "%s.%s is another table than when the run began; start it again",
                        s->config->schema, s->config->table);
}

weir_status pg_session_open(void *config, const weir_call *call,
                            const weir_txn_place *place, void **session,
                            weir_error *err) {
  weir_status status = WEIR_OK;
  int *fields = NULL;
  weir_schema *schema = NULL;
  pg_session *s = calloc(1, sizeof(*s));
  if (!s) return no_memory(err);
  s->config = config;
  s->place = place;
  PG_GOTO(status, pg_application(place->ns, s->application, err));
  PG_GOTO(status, pg_conn_open(&s->conn, s->config->uri, s->application, call, err));
  PG_GOTO(status, pg_target_load(&s->conn, call, s->config, &s->target, err));
  PG_GOTO(status, check_identity(s, err));
  PG_GOTO(status,
          pg_target_match(s->config, &s->target, place->binding->schema, &fields, err));
  PG_GOTO(status,
          pg_target_annotate(&s->target, fields, place->binding->schema, &schema, err));
  PG_GOTO(status, pg_encoder_for(s->config, schema, &s->encoder, err));
  if (s->config->upsert)
    PG_GOTO(status, pg_upsert_new(&s->conn, call, s->config, &s->target, fields,
                                  place->binding->schema, &s->upsert, err));
  status = make_copy(s, err);
out:
  free(fields);
  weir_schema_unref(schema);
  if (status) {
    pg_session_close(s, call);
  } else {
    *session = s;
  }
  return status;
}

void pg_session_close(void *session, const weir_call *call) {
  pg_session *s = session;
  (void)call; /* libpq only says goodbye, on a socket that does not block */
  pg_conn_close(&s->conn);
  pg_target_done(&s->target);
  pg_encoder_free(s->encoder);
  pg_upsert_free(s->upsert);
  free(s->copy);
  free(s);
}

/* ---- whose target it is ------------------------------------------------------------------------------------------ */

/* A session that is stopped inside COPY is 'active' for the server: neither a timeout nor a cancel ends it. */
weir_status pg_session_take_over(void *session, const weir_call *call, weir_error *err) {
  static const char end_others[] =
      "SELECT pg_catalog.count(pg_catalog.pg_terminate_backend(a.pid)) FROM "
      "pg_catalog.pg_stat_activity a WHERE a.application_name = $1 AND a.datname = "
      "pg_catalog.current_database() AND a.pid <> pg_catalog.pg_backend_pid()";
  pg_session *s = session;
  const char *name = s->application;
  for (;;) {
    PGresult *rows = NULL;
    PG_TRY(pg_conn_run(&s->conn, call, "ending older sessions", end_others, &name, 1,
                       &rows, err));
    bool none = strcmp(pg_value(rows, 0, 0), "0") == 0;
    PQclear(rows);
    if (none) break;
    PG_TRY(pg_conn_run(&s->conn, call, "waiting for older sessions to end",
                       "SELECT pg_catalog.pg_sleep(0.02)", NULL, 0, NULL, err));
  }
  return pg_cursor_check_claim(&s->conn, call, s->config, s->place->ns, err);
}

weir_status pg_session_read_cursor(void *session, const weir_call *call, weir_cursor *out,
                                   weir_error *err) {
  pg_session *s = session;
  return pg_cursor_read(&s->conn, call, s->config, s->place->ns, true, out, err);
}

weir_status pg_session_find_cursors(void *session, const weir_call *call,
                                    weir_cursor_list *out, weir_error *err) {
  pg_session *s = session;
  return pg_cursor_find(&s->conn, call, s->config, s->place->ns, out, err);
}

/* ---- a transaction ------------------------------------------------------------------------------------------------- */

weir_status pg_session_begin(void *session, const weir_call *call, weir_error *err) {
  pg_session *s = session;
  return pg_conn_run(&s->conn, call, "BEGIN",
                     "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE", NULL, 0, NULL,
                     err);
}

static int32_t column_of(const pg_session *s, const char *name) {
  const struct ArrowSchema *arrow = weir_schema_arrow(s->place->binding->schema);
  for (int64_t i = 0; i < arrow->n_children; i++)
    if (strcmp(arrow->children[i]->name, name) == 0) return (int32_t)i;
  return -1;
}

static weir_status send_rows(pg_session *s, const weir_call *call, weir_error *err) {
  const uint8_t *data = NULL;
  size_t size = 0;
  PG_TRY(pg_conn_copy_put(&s->conn, call, pg_copy_head, sizeof(pg_copy_head), err));
  for (;;) {
    PG_TRY(pg_encoder_next(s->encoder, &data, &size, err));
    if (!size) break;
    PG_TRY(pg_conn_copy_put(&s->conn, call, data, size, err));
    if (WEIR_FAULT("postgres.rows_sent"))
      return weir_error_set(err, WEIR_E_IO, WEIR_ERR_RETRIABLE,
                            "COPY failed by a fault point");
  }
  return pg_conn_copy_put(&s->conn, call, pg_copy_tail, sizeof(pg_copy_tail), err);
}

weir_status pg_session_apply(void *session, const weir_call *call, weir_batch *batch,
                             weir_error *err) {
  pg_session *s = session;
  int64_t row = -1;
  char column[64];
  if (!weir_batch_rows(batch)) return WEIR_OK;
  PG_TRY(pg_encoder_start(s->encoder, batch, err));
  PG_TRY(pg_conn_copy_begin(&s->conn, call, s->copy, err));
  PG_TRY(send_rows(s, call, err));
  weir_status status = pg_conn_copy_end(&s->conn, call, &row, column, err);
  if (status && err && err->flags & WEIR_ERR_BAD_DATA) {
    if (row >= 0 && *column)
      weir_error_prefix(err, status, "row %lld, column '%s'", (long long)row, column);
    if (row >= 0 && !*column) weir_error_prefix(err, status, "row %lld", (long long)row);
    return weir_error_at(err, status, row < weir_batch_rows(batch) ? row : -1,
                         *column ? column_of(s, column) : -1);
  }
  if (!status && s->upsert) pg_upsert_note(s->upsert, batch);
  return status;
}

weir_status pg_session_prepare(void *session, const weir_call *call,
                               const weir_cursor *predecessor, weir_error *err) {
  pg_session *s = session;
  if (s->upsert) PG_TRY(pg_upsert_merge(s->upsert, &s->conn, call, err));
  return pg_cursor_prepare(&s->conn, call, s->config, s->place->ns, &s->target,
                           predecessor, err);
}

weir_status pg_session_commit(void *session, const weir_call *call,
                              const weir_txn_commit *commit, weir_error *err) {
  pg_session *s = session;
  return pg_cursor_commit(&s->conn, call, s->config, s->place->ns, &commit->predecessor,
                          &commit->cursor, commit->positions, err);
}

weir_status pg_session_abort(void *session, const weir_call *call, weir_error *err) {
  pg_session *s = session;
  return pg_conn_run(&s->conn, call, "ROLLBACK", "ROLLBACK", NULL, 0, NULL, err);
}
