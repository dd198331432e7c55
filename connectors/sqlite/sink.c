/* SPDX-License-Identifier: Apache-2.0 */
/* Options of sink `sqlite`, and its hooks for the adapter. */
#include <stdlib.h>
#include <string.h>

#include "sqlite.h"

extern const weir_sink_ops weir_sqlite_sink_ops;

static const weir_option options[] = {
    {"path", WEIR_OPT_PATH, WEIR_OPT_REQUIRED, NULL, 0, 0, NULL, "The SQLite file."},
    {"table", WEIR_OPT_STRING, WEIR_OPT_REQUIRED, NULL, 0, 0, NULL,
     "The table that takes the rows, by the names of its columns."},
    {"mode", WEIR_OPT_ENUM, 0, "append", 0, 0, "append|upsert",
     "append adds each row; upsert takes changes by key: `_op` U replaces the row of "
     "that "
     "key, D deletes it."},
    {"key", WEIR_OPT_LIST, 0, NULL, 0, 0, NULL,
     "Columns of the key, for upsert; the table has a primary key or unique index on "
     "exactly these."},
    {"create", WEIR_OPT_BOOL, 0, "false", 0, 0, NULL,
     "Make the file, the table and weir's own tables beside it where they are missing; "
     "without it what is missing is refused with the statement that makes it."},
    {0},
};

static void release(void *state) {
  lite_config *c = state;
  for (size_t i = 0; c->key && i < c->n_key; i++) free(c->key[i]);
  free(c->key);
  free(c->where);
  free(c->path);
  free(c->table);
  free(c);
}

static weir_status copy(const weir_options *given, lite_config *c, weir_error *err) {
  size_t n = weir_options_count(given, "key");
  c->where = strdup(weir_options_where(given));
  c->path = strdup(weir_options_string(given, "path"));
  c->table = strdup(weir_options_string(given, "table"));
  c->upsert = strcmp(weir_options_string(given, "mode"), "upsert") == 0;
  c->create = weir_options_bool(given, "create");
  c->key = calloc(n + 1, sizeof(*c->key));
  if (!c->where || !c->path || !c->table || !c->key)
    return weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
  for (size_t i = 0; i < n; i++) {
    c->key[i] = strdup(weir_options_item(given, "key", i));
    if (!c->key[i]) return weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
    c->n_key++;
  }
  return WEIR_OK;
}

static weir_status check_options(const lite_config *c, weir_error *err) {
  if (c->upsert && !c->n_key)
    return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                          "%s: `mode: upsert` needs a `key`", c->where);
  if (!c->upsert && c->n_key)
    return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                          "%s: `key` has no effect with `mode: append`; leave it out, or "
                          "say `mode: upsert`",
                          c->where);
  if (sqlite3_strnicmp(c->table, "weir_", 5) == 0 ||
      sqlite3_strnicmp(c->table, "sqlite_", 7) == 0)
    return weir_error_set(
        err, WEIR_E_INVALID_CONFIG, 0,
        "%s: `table` is '%s', and names with weir_ and sqlite_ are taken; "
        "choose another one",
        c->where, c->table);
  if (!*c->table || strcmp(c->path, "-") == 0 || strstr(c->path, "://"))
    return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                          "%s: `path` is '%s' and `table` '%s'; expected a file and a "
                          "table's name",
                          c->where, c->path, c->table);
  return WEIR_OK;
}

static weir_status configure(const weir_host *host, const weir_options *given, void **out,
                             weir_error *err) {
  lite_config *c = calloc(1, sizeof(*c));
  (void)host;
  if (!c) return weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
  weir_status status = copy(given, c, err);
  if (!status) status = check_options(c, err);
  if (status) {
    release(c);
    return status;
  }
  *out = c;
  return WEIR_OK;
}

static weir_status contract(void *config, weir_txn_contract *out, weir_error *err) {
  (void)err;
  out->input = ((lite_config *)config)->upsert ? WEIR_INPUT_KEYED : WEIR_INPUT_APPEND;
  out->claims = 1;
  out->brief = 1;
  return WEIR_OK;
}

static weir_status key(void *config, weir_names *out, weir_error *err) {
  const lite_config *c = config;
  if (!c->upsert) return WEIR_OK;
  return weir_names_copy(out, (const char *const *)c->key, c->n_key, err);
}

static weir_status resolve(void *config, const weir_call *call, const weir_namespace *ns,
                           weir_schema *input, weir_binding *out, weir_error *err) {
  return lite_resolve(config, call, ns, input, out, err);
}

static weir_status prepare_target(void *config, const weir_call *call,
                                  const weir_namespace *ns, weir_binding *binding,
                                  weir_error *err) {
  return lite_prepare_target(config, call, ns, binding, err);
}

static weir_status check(void *config, const weir_binding *binding, weir_batch *batch,
                         weir_error *err) {
  lite_rows *rows = NULL;
  (void)binding;
  weir_status status = lite_rows_open(config, batch, &rows, err);
  lite_rows_free(rows);
  return status;
}

static weir_status verify(void *config, const weir_call *call, const weir_verify *ask,
                          weir_verified *out, weir_error *err) {
  return lite_verify(config, call, ask, out, err);
}

static const weir_txn_ops txn = {.abi_version = WEIR_ABI_VERSION,
                                 .struct_size = sizeof(txn),
                                 .configure = configure,
                                 .release = release,
                                 .contract = contract,
                                 .key = key,
                                 .resolve = resolve,
                                 .prepare_target = prepare_target,
                                 .check = check,
                                 .verify = verify,
                                 .open = lite_session_open,
                                 .close = lite_session_close,
                                 .take_over = lite_session_take_over,
                                 .read_cursor = lite_session_read_cursor,
                                 .find_cursors = lite_session_find_cursors,
                                 .begin = lite_session_begin,
                                 .apply = lite_session_apply,
                                 .prepare = lite_session_prepare,
                                 .commit = lite_session_commit,
                                 .abort = lite_session_abort};

static weir_status create(const weir_host *host, weir_sink *out, weir_error *err) {
  return weir_txn_sink_create(&txn, host, out, err);
}

const weir_sink_ops weir_sqlite_sink_ops = WEIR_TXN_SINK_OPS(
    "sqlite", "Rows in a table of a SQLite file, exactly once.", options, create);
