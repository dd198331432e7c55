/* SPDX-License-Identifier: Apache-2.0 */
/* The PostgreSQL store as a driver: values to parameters, results to rows, transactions. */
#include "store/pg.h"

#include <stdio.h>
#include <string.h>

enum { PG_MOST = 20 }; /* parameters or columns of a statement */

static void pg_put_int8(int64_t v, char out[8]) {
  for (int i = 0; i < 8; i++) out[i] = (char)((uint64_t)v >> (56 - 8 * i));
}

static int64_t pg_get_int8(const char *bytes) {
  uint64_t v = 0;
  for (int i = 0; i < 8; i++) v = v << 8 | (uint8_t)bytes[i];
  return (int64_t)v;
}

static pq_param pg_param(const sql_value *v, char number[8]) {
  switch (v->type) {
    case SQL_INTEGER:
      pg_put_int8(v->i, number);
      return (pq_param){PQ_INT8, number, 8};
    case SQL_TEXT:
      return (pq_param){PQ_TEXT, v->data, (int)v->size};
    case SQL_BLOB:
      return (pq_param){PQ_BYTEA, v->data, (int)v->size};
    default: /* only bytes may be missing */
      return (pq_param){PQ_BYTEA, NULL, 0};
  }
}

static weir_status pg_ask(pg_store *store, int id, const sql_value *v, int n,
                          PGresult **out, weir_error *err) {
  char name[16], numbers[PG_MOST][8];
  pq_param params[PG_MOST] = {{PQ_TEXT, store->pipeline, (int)strlen(store->pipeline)}};
  snprintf(name, sizeof(name), "weir_%d", id);
  for (int i = 0; i < n; i++) params[i + 1] = pg_param(&v[i], numbers[i]);
  return pq_run(&store->session, name, &store->prepared[id], pg_sql[id], params, n + 1,
                out, err);
}

weir_status pg_run(sql_store *base, int id, const sql_value *v, int n, uint64_t *changes,
                   weir_error *err) {
  PGresult *result = NULL;
  BASE_TRY(pg_ask((pg_store *)base, id, v, n, &result, err));
  if (changes) *changes = pq_changes(result);
  pq_clear(result);
  return WEIR_OK;
}

/* What another hand made of a column fails the row's sum. */
static sql_value pg_column(const PGresult *result, int row, int column) {
  int size = 0;
  const char *data = pq_value(result, row, column, &size);
  Oid type = pq_type(result, column);
  if (!data) return sql_null();
  if (type == PQ_INT8 && size == 8) return sql_int((uint64_t)pg_get_int8(data));
  return (sql_value){
      .type = type == PQ_TEXT ? SQL_TEXT : SQL_BLOB, .data = data, .size = (size_t)size};
}

weir_status pg_query(sql_store *base, int id, const sql_value *v, int n, sql_row row,
                     void *ctx, weir_error *err) {
  PGresult *result = NULL;
  weir_status status = pg_ask((pg_store *)base, id, v, n, &result, err);
  int n_columns = status ? 0 : pq_columns(result);
  for (int r = 0; !status && r < pq_rows(result); r++) {
    sql_value columns[PG_MOST] = {{0}};
    for (int i = 0; i < n_columns && i < PG_MOST; i++)
      columns[i] = pg_column(result, r, i);
    status = row(ctx, columns, n_columns, err);
  }
  pq_clear(result);
  return status;
}

static weir_status pg_run_any(sql_store *base, sql_statement id, const sql_value *v,
                              int n, uint64_t *changes, weir_error *err) {
  return pg_run(base, (int)id, v, n, changes, err);
}

static weir_status pg_query_any(sql_store *base, sql_statement id, const sql_value *v,
                                int n, sql_row row, void *ctx, weir_error *err) {
  return pg_query(base, (int)id, v, n, row, ctx, err);
}

/* ---- transactions ------------------------------------------------------------------------------------ */

weir_status pg_begin(sql_store *base, weir_error *err) {
  pg_store *store = (pg_store *)base;
  store->asked_at = base_clock_mono();
  return pq_exec(&store->session, "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE", err);
}

static weir_status pg_begin_read(sql_store *base, weir_error *err) {
  return pq_exec(&((pg_store *)base)->session,
                 "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", err);
}

static weir_status pg_commit(sql_store *base, weir_error *err) {
  return pq_commit(&((pg_store *)base)->session, err);
}

bool pg_rollback(sql_store *base) {
  pg_store *store = (pg_store *)base;
  pq_exec(&store->session, "ROLLBACK", NULL);
  return pq_is_idle(&store->session);
}

/* The step itself asks the server (SQL_LEASE_HOLD). */
static weir_status pg_is_owned(sql_store *base, weir_error *err) {
  (void)base;
  (void)err;
  return WEIR_OK;
}

/* Autovacuum does. */
static weir_status pg_give_space(sql_store *base, weir_error *err) {
  (void)base;
  (void)err;
  return WEIR_OK;
}

/* The step has renewed the lease. */
static void pg_committed(sql_store *base) {
  pg_store *store = (pg_store *)base;
  store->renewed_at = store->asked_at;
}

const sql_driver pg_driver = {pg_begin,    pg_begin_read, pg_commit,
                              pg_rollback, pg_run_any,    pg_query_any,
                              pg_is_owned, pg_give_space, pg_committed};
