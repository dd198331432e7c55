/* SPDX-License-Identifier: Apache-2.0 */
/* Options of sink `adbc`, and its hooks for the adapter. */
#include <stdlib.h>
#include <string.h>

#include "adbc.h"

static const weir_option sink_options[] = {
    {"driver", WEIR_OPT_PATH, WEIR_OPT_REQUIRED | WEIR_OPT_NAME, NULL, 0, 0, NULL,
     "Shared library of the ADBC driver: a path, or a name such as adbc_driver_snowflake "
     "that the system's loader finds."},
    {"entrypoint", WEIR_OPT_STRING, 0, NULL, 0, 0, NULL,
     "Function of the library that starts the driver; by default the one that follows "
     "from its name, or AdbcDriverInit."},
    {"options", WEIR_OPT_MAP, WEIR_OPT_SECRET, NULL, 0, 0, NULL,
     "What the driver takes for its database, as it is: `uri`, `username`, `password` "
     "and others of its own."},
    {"table", WEIR_OPT_STRING, WEIR_OPT_REQUIRED, NULL, 0, 0, NULL,
     "Table, NAME or SCHEMA.NAME, each as it is, without quotes; without a schema: where "
     "the connection starts."},
    {"mode", WEIR_OPT_ENUM, 0, "append", 0, 0, "append|upsert",
     "Whether rows are added, or replace and delete rows by key."},
    {"key", WEIR_OPT_LIST, 0, NULL, 0, 0, NULL,
     "Columns of the key, for `mode: upsert`."},
    {"create", WEIR_OPT_BOOL, 0, "false", 0, 0, NULL,
     "Make the table, of the driver's own types, and weir_cursor beside it, when they "
     "are missing."},
    {0},
};

static weir_status no_memory(weir_error *err) {
  return weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
}

/* ---- configuration -------------------------------------------------------------------------------------- */

static void release(void *state) {
  adbc_config *c = state;
  if (!c) return;
  for (size_t i = 0; i < c->values.n; i++)
    explicit_bzero((char *)(uintptr_t)c->values.v[i], strlen(c->values.v[i]));
  weir_names_release(&c->keys);
  weir_names_release(&c->values);
  weir_names_release(&c->key);
  free(c->where);
  free(c->driver);
  free(c->entrypoint);
  free(c->schema);
  free(c->table);
  free(c);
}

static weir_status copy_list(const weir_options *given, const char *name, int keys,
                             weir_names *out, weir_error *err) {
  size_t n = weir_options_count(given, name);
  const char **v = calloc(n + 1, sizeof(*v));
  if (!v) return no_memory(err);
  for (size_t i = 0; i < n; i++)
    v[i] = keys ? weir_options_key(given, name, i) : weir_options_item(given, name, i);
  weir_status status = n ? weir_names_copy(out, v, n, err) : WEIR_OK;
  free(v);
  return status;
}

static weir_status check(const adbc_config *c, weir_error *err) {
  if (c->upsert != (c->key.n > 0))
    return weir_error_set(
        err, WEIR_E_INVALID_CONFIG, 0,
        "%s: `mode: upsert` and `key` go together: one is there without "
        "the other",
        c->where);
  for (size_t i = 0; i < c->key.n; i++)
    for (size_t k = 0; k < i; k++)
      if (strcmp(c->key.v[i], c->key.v[k]) == 0)
        return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0, "%s: `key` names '%s' twice",
                              c->where, c->key.v[i]);
  if (*c->table && strncasecmp(c->table, "weir_", 5) != 0 && (!c->schema || *c->schema))
    return WEIR_OK;
  return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                        "%s: `table` is '%s%s%s', expected NAME or SCHEMA.NAME, where "
                        "names with weir_ are taken",
                        c->where, c->schema ? c->schema : "", c->schema ? "." : "",
                        c->table);
}

static weir_status copy(const weir_options *given, adbc_config *c, weir_error *err) {
  const char *table = weir_options_string(given, "table"), *dot = strchr(table, '.');
  const char *entrypoint = weir_options_string(given, "entrypoint");
  c->where = strdup(weir_options_where(given));
  c->driver = strdup(weir_options_string(given, "driver"));
  c->entrypoint = entrypoint ? strdup(entrypoint) : NULL;
  c->schema = dot ? strndup(table, (size_t)(dot - table)) : NULL;
  c->table = strdup(dot ? dot + 1 : table);
  c->upsert = strcmp(weir_options_string(given, "mode"), "upsert") == 0;
  c->create = weir_options_bool(given, "create");
  if (!c->where || !c->driver || !c->table || (entrypoint && !c->entrypoint) ||
      (dot && !c->schema))
    return no_memory(err);
  if (weir_options_string(given, "options"))
    return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                          "%s: `options` is one value, expected a mapping such as "
                          "{uri: ...}",
                          c->where);
  ADBC_TRY(copy_list(given, "options", 1, &c->keys, err));
  ADBC_TRY(copy_list(given, "options", 0, &c->values, err));
  return copy_list(given, "key", 0, &c->key, err);
}

static weir_status configure(const weir_host *host, const weir_options *given, void **out,
                             weir_error *err) {
  adbc_config *c = calloc(1, sizeof(*c));
  (void)host;
  if (!c) return no_memory(err);
  weir_status status = copy(given, c, err);
  if (!status) status = check(c, err);
  if (status) {
    release(c);
    return status;
  }
  *out = c;
  return WEIR_OK;
}

/* An open transaction of an embedded database keeps its other writers out, and there is no way to end that of an owner
 * that hangs: none is left open while the epoch runs. */
static weir_status contract(void *config, weir_txn_contract *out, weir_error *err) {
  (void)err;
  out->input = ((adbc_config *)config)->upsert ? WEIR_INPUT_KEYED : WEIR_INPUT_APPEND;
  out->claims = 1;
  out->brief = 1;
  return WEIR_OK;
}

static weir_status key(void *config, weir_names *out, weir_error *err) {
  const adbc_config *c = config;
  return c->upsert ? weir_names_copy(out, c->key.v, c->key.n, err) : WEIR_OK;
}

/* ---- rows --------------------------------------------------------------------------------------------------- */

static weir_status bad(const struct ArrowSchema *schema, int64_t row, int64_t column,
                       const char *what, weir_error *err) {
  weir_error_set(err, WEIR_E_BAD_DATA, WEIR_ERR_BAD_DATA, "row %lld, column '%s': %s",
                 (long long)row, schema->children[column]->name, what);
  return weir_error_at(err, WEIR_E_BAD_DATA, row, (int32_t)column);
}

static weir_status check_column(const adbc_config *c, const struct ArrowSchema *schema,
                                const struct ArrowArrayView *view, int64_t column,
                                int no_nan, weir_error *err) {
  const struct ArrowArrayView *of = view->children[column];
  int is_key = adbc_is_key(c, schema->children[column]->name);
  int is_float = no_nan && (of->storage_type == NANOARROW_TYPE_FLOAT ||
                            of->storage_type == NANOARROW_TYPE_DOUBLE ||
                            of->storage_type == NANOARROW_TYPE_HALF_FLOAT);
  if (!is_key && !is_float) return WEIR_OK;
  for (int64_t row = 0; row < view->length; row++) {
    int null = ArrowArrayViewIsNull(of, row) != 0;
    if (null && is_key)
      return bad(schema, row, column, "null in a column of the key", err);
    double value = is_float && !null ? ArrowArrayViewGetDoubleUnsafe(of, row) : 0;
    if (value != value)
      return bad(schema, row, column, "NaN, of which the target makes something else",
                 err);
  }
  return WEIR_OK;
}

static weir_status check_ops(const struct ArrowSchema *schema,
                             const struct ArrowArrayView *view, weir_error *err) {
  int64_t last = schema->n_children - 1;
  for (int64_t row = 0; row < view->length; row++) {
    struct ArrowStringView op = {NULL, 0};
    if (!ArrowArrayViewIsNull(view->children[last], row))
      op = ArrowArrayViewGetStringUnsafe(view->children[last], row);
    if (op.size_bytes != 1 || (*op.data != 'U' && *op.data != 'D'))
      return bad(schema, row, last, "neither U nor D", err);
  }
  return WEIR_OK;
}

static weir_status check_rows(void *config, const weir_binding *binding,
                              weir_batch *batch, weir_error *err) {
  const adbc_config *c = config;
  const struct ArrowSchema *schema = weir_schema_arrow(weir_batch_schema(batch));
  const char *noted = weir_schema_arrow(binding->schema)->metadata;
  int no_nan = noted && ArrowMetadataHasKey(noted, ArrowCharView(ADBC_NO_NAN));
  if (!c->upsert && !no_nan) return WEIR_OK;
  struct ArrowArrayView view;
  struct ArrowError why = {0};
  weir_status status = WEIR_OK;
  if (ArrowArrayViewInitFromSchema(&view, schema, &why) != NANOARROW_OK ||
      ArrowArrayViewSetArray(&view, weir_batch_array(batch), &why) != NANOARROW_OK)
    status = weir_error_set(err, WEIR_E_INTERNAL, 0, "sink adbc: %s", why.message);
  int64_t n = adbc_columns(c, schema);
  for (int64_t i = 0; !status && i < n; i++)
    status = check_column(c, schema, &view, i, no_nan, err);
  if (!status && n < schema->n_children) status = check_ops(schema, &view, err);
  ArrowArrayViewReset(&view);
  return status;
}

/* ---- the table ------------------------------------------------------------------------------------------------- */

static const weir_txn_ops txn_ops = {
    .abi_version = WEIR_ABI_VERSION,
    .struct_size = sizeof(txn_ops),
    .configure = configure,
    .release = release,
    .contract = contract,
    .key = key,
    .resolve = adbc_resolve,
    .prepare_target = adbc_prepare_target,
    .check = check_rows,
    .verify = adbc_verify,
    .open = adbc_session_open,
    .close = adbc_session_close,
    .take_over = adbc_session_take_over,
    .read_cursor = adbc_session_read_cursor,
    .find_cursors = adbc_session_find_cursors,
    .begin = adbc_session_begin,
    .apply = adbc_session_apply,
    .prepare = adbc_session_prepare,
    .commit = adbc_session_commit,
    .abort = adbc_session_abort,
};

static weir_status create(const weir_host *host, weir_sink *out, weir_error *err) {
  return weir_txn_sink_create(&txn_ops, host, out, err);
}

static const weir_sink_ops sink_ops = WEIR_TXN_SINK_OPS(
    "adbc", "Rows in a table of any database with an ADBC driver, each exactly once.",
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
