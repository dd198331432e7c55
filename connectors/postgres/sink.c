/* SPDX-License-Identifier: Apache-2.0 */
/* Sink `postgres`: rows in a table of PostgreSQL, exactly once, on the transactional adapter. */
#include <stdlib.h>
#include <string.h>

#include "column.h"
#include "cursor.h"
#include "prepare.h"
#include "session.h"

static const weir_option sink_options[] = {
    {"uri", WEIR_OPT_STRING, WEIR_OPT_REQUIRED | WEIR_OPT_SECRET, NULL, 0, 0, NULL,
     "Database, as psql takes it: "
     "postgresql://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=verify-full, or "
     "keyword=value pairs, `service` and `passfile` among them."},
    {"table", WEIR_OPT_STRING, WEIR_OPT_REQUIRED, NULL, 0, 0, NULL,
     "Table, SCHEMA.NAME, each as it is, without quotes; without a schema: public."},
    {"mode", WEIR_OPT_ENUM, 0, "append", 0, 0, "append|upsert",
     "Whether rows are added, or replace and delete rows by key."},
    {"key", WEIR_OPT_LIST, 0, NULL, 0, 0, NULL,
     "Columns of the key, for `mode: upsert`; the table needs a unique index on them."},
    {"create", WEIR_OPT_BOOL, 0, "false", 0, 0, NULL,
     "Make the table, with `key` as its primary key, and weir_cursor beside it, when "
     "they are missing."},
    {0},
};

static weir_status no_memory(weir_error *err) {
  return weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
}

/* ---- configuration ------------------------------------------------------------------------------------------- */

static void release(void *config) {
  pg_config *c = config;
  if (!c) return;
  if (c->uri) explicit_bzero(c->uri, strlen(c->uri));
  free(c->uri);
  free(c->where);
  free(c->schema);
  free(c->table);
  weir_names_release(&c->key);
  free(c);
}

static weir_status split_table(pg_config *c, const char *text, weir_error *err) {
  const char *dot = strchr(text, '.'), *name = dot ? dot + 1 : text;
  size_t size = dot ? (size_t)(dot - text) : 0;
  if (!*name || (dot && !size) || strlen(name) > 63 || size > 63)
    return weir_error_set(
        err, WEIR_E_INVALID_CONFIG, 0,
        "%s: `table` is '%s', expected SCHEMA.NAME, at most 63 bytes each", c->where,
        text);
  c->schema = dot ? strndup(text, size) : strdup("public");
  c->table = strdup(name);
  return c->schema && c->table ? WEIR_OK : no_memory(err);
}

static weir_status read_key(pg_config *c, const weir_options *options, weir_error *err) {
  size_t n = weir_options_count(options, "key");
  if (c->upsert != (n > 0))
    return weir_error_set(
        err, WEIR_E_INVALID_CONFIG, 0,
        "%s: `mode: upsert` and `key` go together: one is there without "
        "the other",
        c->where);
  const char **v = calloc(n + 1, sizeof(*v));
  if (!v) return no_memory(err);
  weir_status status = WEIR_OK;
  for (size_t i = 0; i < n && !status; i++) {
    v[i] = weir_options_item(options, "key", i);
    for (size_t k = 0; k < i && !status; k++)
      if (strcmp(v[i], v[k]) == 0)
        status = weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                                "%s: `key` names '%s' twice", c->where, v[i]);
  }
  if (!status && n) status = weir_names_copy(&c->key, v, n, err);
  free(v);
  return status;
}

static weir_status configure(const weir_host *host, const weir_options *options,
                             void **config, weir_error *err) {
  pg_config *c = calloc(1, sizeof(*c));
  if (!c) return no_memory(err);
  c->host = host;
  c->where = strdup(weir_options_where(options));
  c->uri = strdup(weir_options_string(options, "uri"));
  c->create = weir_options_bool(options, "create");
  c->upsert = strcmp(weir_options_string(options, "mode"), "upsert") == 0;
  weir_status status = c->where && c->uri ? WEIR_OK : no_memory(err);
  if (!status) status = read_key(c, options, err);
  if (!status) status = split_table(c, weir_options_string(options, "table"), err);
  if (status) {
    release(c);
  } else {
    *config = c;
  }
  return status;
}

static weir_status contract(void *config, weir_txn_contract *out, weir_error *err) {
  const pg_config *c = config;
  (void)err;
  out->input = c->upsert ? WEIR_INPUT_KEYED : WEIR_INPUT_APPEND;
  out->claims = 1;
  return WEIR_OK;
}

static weir_status key(void *config, weir_names *out, weir_error *err) {
  const pg_config *c = config;
  return c->upsert ? weir_names_copy(out, c->key.v, c->key.n, err) : WEIR_OK;
}

/* ---- rows ---------------------------------------------------------------------------------------------------------- */

/* Deletes (`op`: their column, or NULL) have their key alone. */
static int64_t find_null(const struct ArrowArray *array, const struct ArrowArray *op) {
  const uint8_t *validity = array->n_buffers ? array->buffers[0] : NULL;
  if (!validity || !array->null_count) return -1;
  for (int64_t i = 0; i < array->length; i++) {
    if (pg_bit(validity, array->offset + i)) continue;
    const char *text = op ? op->buffers[2] : NULL;
    if (!op || text[((const int32_t *)op->buffers[1])[op->offset + i]] != 'D') return i;
  }
  return -1;
}

static weir_status check_nulls(const pg_config *config, const struct ArrowSchema *schema,
                               const struct ArrowArray *array, weir_error *err) {
  int64_t last = schema->n_children - 1;
  const struct ArrowArray *op =
      pg_is_op(config, schema, last) ? array->children[last] : NULL;
  for (int64_t k = 0; k < schema->n_children; k++) {
    pg_type type;
    bool not_null = false;
    if (!pg_field_type(schema->children[k], &type, &not_null) || !not_null) continue;
    int64_t row = find_null(array->children[k], op);
    if (row < 0) continue;
    weir_error_set(err, WEIR_E_BAD_DATA, WEIR_ERR_BAD_DATA,
                   "column '%s' is null, which the table does not allow",
                   schema->children[k]->name);
    return weir_error_at(err, WEIR_E_BAD_DATA, row, (int32_t)k);
  }
  return WEIR_OK;
}

static weir_status check(void *config, const weir_binding *binding, weir_batch *batch,
                         weir_error *err) {
  pg_encoder *encoder = NULL;
  PG_TRY(check_nulls(config, weir_schema_arrow(binding->schema), weir_batch_array(batch),
                     err));
  PG_TRY(pg_encoder_for(config, binding->schema, &encoder, err));
  weir_status status = pg_encoder_start(encoder, batch, err);
  pg_encoder_free(encoder);
  return status;
}

/* ---- verify ---------------------------------------------------------------------------------------------------------- */

static void tell(const weir_verify *ask, const pg_config *config, int32_t kind,
                 const char *text) {
  char artifact[140];
  snprintf(artifact, sizeof(artifact), "%s.%s", config->schema, config->table);
  weir_finding finding = {
      .struct_size = sizeof(finding), .kind = kind, .artifact = artifact, .text = text};
  ask->found(ask->ctx, &finding);
}

static weir_status tell_cursors(pg_conn *conn, const weir_call *call,
                                const pg_config *config, const weir_verify *ask,
                                weir_error *err) {
  weir_cursor_list list = {.n = 0};
  if (ask->struct_size < offsetof(weir_verify, cursor) + sizeof(ask->cursor) ||
      !ask->cursor)
    return WEIR_OK;
  PG_TRY(pg_cursor_find(conn, call, config, ask->ledger->ns, &list, err));
  for (size_t i = 0; i < list.n; i++) ask->cursor(ask->ctx, &list.v[i]);
  if (list.release) list.release(&list);
  return WEIR_OK;
}

static weir_status verify_at(pg_conn *conn, const weir_call *call,
                             const pg_config *config, const weir_verify *ask,
                             weir_verified *out, weir_error *err) {
  weir_error why = {0};
  pg_target target = {.n = 0};
  weir_status status = pg_cursor_table(conn, call, config, &why);
  if (status == WEIR_E_NOT_FOUND) { /* never prepared here, or removed: no cursor */
    tell(ask, config, WEIR_FOUND_MISSING, "there is no table weir_cursor in its schema");
    out->checked = WEIR_CHECKED_CURSOR;
    return WEIR_OK;
  }
  if (status) {
    if (err) *err = why;
    return status;
  }
  PG_TRY(tell_cursors(conn, call, config, ask, err));
  status = pg_target_load(conn, call, config, &target, &why);
  if (status == WEIR_E_NOT_FOUND)
    tell(ask, config, WEIR_FOUND_MISSING, "there is no such table");
  if (status && status != WEIR_E_NOT_FOUND)
    tell(ask, config, WEIR_FOUND_CHANGED, why.message);
  pg_target_done(&target);
  status = pg_cursor_check_claim(conn, call, config, ask->ledger->ns, &why);
  if (status == WEIR_E_CONFLICT) {
    tell(ask, config, WEIR_FOUND_FOREIGN, why.message);
    return WEIR_OK;
  }
  if (status) {
    if (err) *err = why;
    return status;
  }
  PG_TRY(pg_cursor_read(conn, call, config, ask->ledger->ns, false, &out->cursor, err));
  out->checked = WEIR_CHECKED_CURSOR;
  return WEIR_OK;
}

static weir_status verify(void *config, const weir_call *call, const weir_verify *ask,
                          weir_verified *out, weir_error *err) {
  const pg_config *c = config;
  pg_conn conn = {0};
  PG_TRY(pg_conn_open(&conn, c->uri, PG_PASSING, call, err));
  weir_status status = verify_at(&conn, call, c, ask, out, err);
  pg_conn_close(&conn);
  return status;
}

/* ---- the table ---------------------------------------------------------------------------------------------------------- */

static const weir_txn_ops txn_ops = {
    .abi_version = WEIR_ABI_VERSION,
    .struct_size = sizeof(txn_ops),
    .configure = configure,
    .release = release,
    .contract = contract,
    .key = key,
    .resolve = pg_resolve,
    .prepare_target = pg_prepare,
    .check = check,
    .verify = verify,
    .open = pg_session_open,
    .close = pg_session_close,
    .take_over = pg_session_take_over,
    .read_cursor = pg_session_read_cursor,
    .find_cursors = pg_session_find_cursors,
    .begin = pg_session_begin,
    .apply = pg_session_apply,
    .prepare = pg_session_prepare,
    .commit = pg_session_commit,
    .abort = pg_session_abort,
};

static weir_status create(const weir_host *host, weir_sink *out, weir_error *err) {
  return weir_txn_sink_create(&txn_ops, host, out, err);
}

static const weir_sink_ops sink_ops =
    WEIR_TXN_SINK_OPS("postgres", "Rows in a table of PostgreSQL, each exactly once.",
                      sink_options, create);

weir_status weir_plugin_init(uint32_t host_abi, const weir_host *host, weir_plugin *out,
                             weir_error *err) {
  static const weir_sink_ops *const sinks[] = {&sink_ops};
  (void)host;
  if (host_abi < 1)
    return weir_error_set(err, WEIR_E_NOT_IMPLEMENTED, 0, "host ABI %u is not known",
                          host_abi);
  out->sinks = sinks;
  out->n_sinks = 1;
  return WEIR_OK;
}
