/* SPDX-License-Identifier: Apache-2.0 */
/* The store as tables: values, rows with a sum, the lease row. */
#include "store/sql.h"

#include <stdlib.h>
#include <string.h>

const char sql_damaged[] =
    "; it is damaged: bring it back from a copy, or deliver everything again with `weir "
    "run --new-deployment`";

weir_status sql_init(sql_store *store, const store_ops *ops, const sql_driver *driver,
                     weir_error *err) {
  store->base.ops = ops;
  store->driver = driver;
  return base_sha256_init(&store->sha, err);
}

void sql_done(sql_store *store) {
  base_sha256_done(&store->sha);
  free(store->path);
}

const char *weir_store_name(const weir_store *store) {
  return ((const sql_store *)store)->path;
}

sql_value sql_int(uint64_t v) {
  return (sql_value){.type = SQL_INTEGER, .i = (int64_t)v};
}
sql_value sql_text(const char *text) {
  return (sql_value){.type = SQL_TEXT, .data = text, .size = strlen(text)};
}
sql_value sql_blob(const void *data, size_t size) {
  return (sql_value){.type = SQL_BLOB, .data = size ? data : "", .size = size};
}
sql_value sql_null(void) {
  return (sql_value){.type = SQL_NULL};
}

/* ---- sums: SHA-256 over the table's name and every value, each framed by type and length ------- */

static weir_status sum_value(sql_store *store, const sql_value *v, weir_error *err) {
  uint8_t frame[9];
  uint64_t n = v->type == SQL_INTEGER ? (uint64_t)v->i : v->size;
  frame[0] = (uint8_t)v->type;
  for (int i = 0; i < 8; i++) frame[1 + i] = (uint8_t)(n >> (8 * i));
  BASE_TRY(base_sha256_update(&store->sha, frame, sizeof(frame), err));
  if (v->type == SQL_INTEGER || v->size == 0) return WEIR_OK;
  return base_sha256_update(&store->sha, v->data, v->size, err);
}

static weir_status sum_row(sql_store *store, const char *table, const sql_value *v, int n,
                           uint8_t out[BASE_SHA256_SIZE], weir_error *err) {
  /* A sum that an error cut short must not leak into the next one. */
  if (store->sha_open) BASE_TRY(base_sha256_final(&store->sha, out, err));
  store->sha_open = true;
  sql_value name = sql_text(table);
  BASE_TRY(sum_value(store, &name, err));
  for (int i = 0; i < n; i++) BASE_TRY(sum_value(store, &v[i], err));
  BASE_TRY(base_sha256_final(&store->sha, out, err));
  store->sha_open = false;
  return WEIR_OK;
}

weir_status sql_put(sql_store *store, sql_statement id, const char *table,
                    const sql_value *v, int n, uint64_t *changes, weir_error *err) {
  enum { MOST = 16 };
  sql_value row[MOST] = {{0}};
  uint8_t sum[BASE_SHA256_SIZE];
  if (n >= MOST)
    return weir_error_set(err, WEIR_E_INTERNAL, 0, "a row of table %s is too wide",
                          table);
  BASE_TRY(sum_row(store, table, v, n, sum, err));
  memcpy(row, v, (size_t)n * sizeof(*v));
  row[n] = sql_blob(sum, sizeof(sum));
  return store->driver->run(store, id, row, n + 1, changes, err);
}

weir_status sql_verify(sql_store *store, const char *table, const sql_value *v, int n,
                       weir_error *err) {
  uint8_t sum[BASE_SHA256_SIZE];
  const sql_value *last = &v[n - 1];
  BASE_TRY(sum_row(store, table, v, n - 1, sum, err));
  if (last->size == sizeof(sum) && memcmp(last->data, sum, sizeof(sum)) == 0)
    return WEIR_OK;
  return weir_error_set(err, WEIR_E_CORRUPT, 0,
                        "checkpoint store %s: a row of table %s fails its SHA-256%s",
                        store->path, table, sql_damaged);
}

/* ---- small reads --------------------------------------------------------------------------------- */

typedef struct ints_ctx {
  uint64_t *out;
  int n;
  bool *found;
} ints_ctx;

static weir_status ints_row(void *ctx, const sql_value *v, int n, weir_error *err) {
  (void)err;
  ints_ctx *ints = ctx;
  for (int i = 0; i < ints->n && i < n; i++) ints->out[i] = (uint64_t)v[i].i;
  *ints->found = true;
  return WEIR_OK;
}

weir_status sql_get_ints(sql_store *store, sql_statement id, const sql_value *v, int n,
                         uint64_t *out, int n_out, bool *found, weir_error *err) {
  ints_ctx ctx = {out, n_out, found};
  *found = false;
  return store->driver->query(store, id, v, n, ints_row, &ctx, err);
}

typedef struct lease_ctx {
  sql_store *store;
  uint64_t token, last;
  bool found;
} lease_ctx;

static weir_status lease_row(void *ctx, const sql_value *v, int n, weir_error *err) {
  lease_ctx *lease = ctx;
  BASE_TRY(sql_verify(lease->store, "lease", v, n, err));
  lease->token = (uint64_t)v[0].i;
  lease->last = (uint64_t)v[1].i;
  lease->found = true;
  return WEIR_OK;
}

/* A higher one, by a step that nobody else takes: owners of a store and of its copy have different tokens, so a
 * cursor tells their histories apart even where neither has rows. */
weir_status sql_next_token(uint64_t token, uint64_t *out, weir_error *err) {
  uint32_t step = 0; /* below 2^20: pg_read_lease counts on it */
  if (token) BASE_TRY(base_random(&step, sizeof(step), err));
  *out = token + 1 + (step >> 12);
  return WEIR_OK;
}

weir_status sql_read_lease(sql_store *store, uint64_t *token, uint64_t *last,
                           weir_error *err) {
  lease_ctx lease = {.store = store};
  BASE_TRY(store->driver->query(store, SQL_LEASE_READ, NULL, 0, lease_row, &lease, err));
  if (!lease.found)
    return weir_error_set(err, WEIR_E_CORRUPT, 0,
                          "checkpoint store %s has no lease row%s", store->path,
                          sql_damaged);
  *token = lease.token;
  *last = lease.last;
  return WEIR_OK;
}

weir_status sql_fenced(sql_store *store, const char *why, weir_error *err) {
  weir_error_set(err, WEIR_E_FENCED, 0,
                 "checkpoint store %s: the lease with token %llu is lost: %s; nothing "
                 "more is written",
                 store->path, (unsigned long long)store->token, why);
  return store_break(&store->base, WEIR_E_FENCED, err);
}
