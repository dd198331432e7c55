/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "adbc.h"

static weir_status no_memory(weir_error *err) {
  return weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
}

int adbc_is_key(const adbc_config *config, const char *name) {
  for (size_t i = 0; i < config->key.n; i++)
    if (strcmp(config->key.v[i], name) == 0) return 1;
  return 0;
}

int64_t adbc_columns(const adbc_config *config, const struct ArrowSchema *schema) {
  int64_t n = schema->n_children;
  return config->upsert && n && strcmp(schema->children[n - 1]->name, "_op") == 0 ? n - 1
                                                                                  : n;
}

static weir_status check_key(const adbc_config *config, const struct ArrowSchema *in,
                             weir_error *err) {
  for (size_t k = 0; k < config->key.n; k++) {
    int64_t i = 0, n = adbc_columns(config, in);
    while (i < n && strcmp(in->children[i]->name, config->key.v[k]) != 0) i++;
    if (i == n)
      return weir_error_set(err, WEIR_E_SCHEMA, 0,
                            "`key` names '%s', which does not come in; expected columns "
                            "of the source",
                            config->key.v[k]);
  }
  return WEIR_OK;
}

/* ---- columns ------------------------------------------------------------------------------------------ */

static weir_status missing_column(adbc_conn *c, const struct ArrowSchema *input,
                                  const uint8_t *found, weir_error *err) {
  for (int64_t i = 0; i < adbc_columns(c->config, input); i++)
    if (!found[i])
      return weir_error_set(err, WEIR_E_SCHEMA, 0,
                            "table '%s' has no column '%s'; add it, or leave it out at "
                            "the source",
                            c->config->table, input->children[i]->name);
  return WEIR_OK;
}

/* By name; *n columns of the table come in. */
static weir_status match(adbc_conn *c, const struct ArrowSchema *table,
                         const struct ArrowSchema *input, int64_t *order,
                         weir_error *err) {
  int64_t n = adbc_columns(c->config, input), at = 0;
  uint8_t *found = calloc((size_t)n + 1, 1);
  if (!found) return no_memory(err);
  for (int64_t t = 0; t < table->n_children; t++)
    for (int64_t i = 0; i < n; i++)
      if (!found[i] && strcmp(table->children[t]->name, input->children[i]->name) == 0) {
        found[i] = 1;
        order[at++] = i;
        break;
      }
  weir_status status = missing_column(c, input, found, err);
  free(found);
  return status;
}

static weir_status refuse_missing(const adbc_conn *c, weir_error *err) {
  return weir_error_set(
      err, WEIR_E_INVALID_CONFIG, 0,
      "driver '%s' finds no table '%s%s%s'; set `create: true`, or make "
      "it",
      c->config->driver, c->config->schema ? c->config->schema : "",
      c->config->schema ? "." : "", c->config->table);
}

weir_status adbc_order(adbc_conn *c, const struct ArrowSchema *input, int64_t **out,
                       weir_error *err) {
  struct ArrowSchema table;
  int there = 0;
  ADBC_TRY(adbc_table_schema(c, c->config->table, &there, &table, err));
  if (!there) return refuse_missing(c, err);
  int64_t *order = calloc((size_t)input->n_children + 1, sizeof(*order));
  weir_status status = order ? match(c, &table, input, order, err) : no_memory(err);
  table.release(&table);
  if (status) {
    free(order);
  } else {
    *out = order;
  }
  return status;
}

/* ---- the binding ------------------------------------------------------------------------------------------ */

static weir_status identify(adbc_conn *c, const weir_namespace *ns, weir_binding *binding,
                            weir_error *err) {
  char *target = NULL;
  ADBC_TRY(adbc_cursor_target(c, ns, &target, err));
  weir_status status = WEIR_OK;
  free(binding->identity);
  binding->identity = NULL;
  if (*target) status = weir_binding_identify(binding, "database", target, err);
  if (!status && c->config->schema)
    status = weir_binding_identify(binding, "schema", c->config->schema, err);
  if (!status) status = weir_binding_identify(binding, "table", c->config->table, err);
  free(target);
  return status;
}

static weir_status resolve_at(adbc_conn *c, const weir_namespace *ns,
                              weir_binding *binding, weir_error *err) {
  weir_error why = {0};
  struct ArrowSchema table;
  int64_t *order = NULL;
  int there = 0;
  weir_status status = adbc_cursor_table(c, &why);
  if (status && (status != WEIR_E_NOT_FOUND || !c->config->create)) {
    if (err) *err = why;
    return status;
  }
  if (!status) ADBC_TRY(adbc_cursor_claim(c, ns, 0, err));
  if (!status) ADBC_TRY(identify(c, ns, binding, err));
  ADBC_TRY(adbc_table_schema(c, c->config->table, &there, &table, err));
  if (there) table.release(&table);
  if (!there) return c->config->create ? WEIR_OK : refuse_missing(c, err);
  status = adbc_order(c, weir_schema_arrow(binding->schema), &order, err);
  free(order);
  return status;
}

weir_status adbc_resolve(void *state, const weir_call *call, const weir_namespace *ns,
                         weir_schema *input, weir_binding *out, weir_error *err) {
  const adbc_config *config = state;
  adbc_conn c = {.config = NULL};
  weir_binding binding = {.struct_size = sizeof(binding)};
  weir_status status = check_key(config, weir_schema_arrow(input), err);
  if (!status) status = adbc_open(config, call, &c, err);
  if (!status) status = weir_binding_logical(input, &binding, err);
  if (!status) status = resolve_at(&c, ns, &binding, err);
  adbc_close(&c);
  if (status) {
    weir_binding_done(&binding);
    return weir_error_prefix(err, status, "%s", config->where);
  }
  *out = binding;
  return WEIR_OK;
}

/* ---- preparing ------------------------------------------------------------------------------------------------ */

/* The driver's own types: each knows best what its database calls them. */
static weir_status create_table(adbc_conn *c, const weir_namespace *ns,
                                weir_schema *input, weir_error *err) {
  const struct ArrowSchema *in = weir_schema_arrow(input);
  int64_t n = adbc_columns(c->config, in);
  weir_schema *columns = NULL;
  int64_t *all = calloc((size_t)n + 1, sizeof(*all));
  if (!all) return no_memory(err);
  for (int64_t i = 0; i < n; i++) all[i] = i;
  weir_status status = weir_schema_select(input, all, n, &columns, err);
  if (!status) status = adbc_ingest(c, c->config->table, ADBC_CREATE, columns, NULL, err);
  if (status && columns) status = adbc_blame_create(c, ns, columns, status, err);
  weir_schema_unref(columns);
  free(all);
  return status
             ? weir_error_prefix(err, status, "cannot make table '%s'", c->config->table)
             : WEIR_OK;
}

static weir_status make_missing(adbc_conn *c, const weir_namespace *ns,
                                weir_schema *input, weir_error *err) {
  struct ArrowSchema table;
  int there = 0;
  weir_status status = adbc_cursor_table(c, err);
  if (status == WEIR_E_NOT_FOUND && c->config->create)
    status = adbc_cursor_create(c, err);
  if (!status) status = adbc_cursor_claim(c, ns, 1, err);
  if (!status) status = adbc_table_schema(c, c->config->table, &there, &table, err);
  if (status) return status;
  if (there) table.release(&table);
  if (there || !c->config->create) return WEIR_OK;
  return create_table(c, ns, input, err);
}

/* What `check` must know without a connection. */
static weir_status note_nan(weir_binding *binding, weir_error *err) {
  struct ArrowSchema copy = {.release = NULL};
  struct ArrowBuffer note;
  weir_schema *schema = NULL;
  ADBC_TRY(weir_schema_export(binding->schema, &copy, err));
  int bad = ArrowMetadataBuilderInit(&note, copy.metadata) != NANOARROW_OK ||
            ArrowMetadataBuilderSet(&note, ArrowCharView(ADBC_NO_NAN),
                                    ArrowCharView("1")) != NANOARROW_OK ||
            ArrowSchemaSetMetadata(&copy, (const char *)note.data) != NANOARROW_OK;
  ArrowBufferReset(&note);
  weir_status status = bad ? no_memory(err) : weir_schema_new(&copy, &schema, err);
  if (copy.release) copy.release(&copy);
  if (status) return status;
  weir_schema_unref(binding->schema);
  binding->schema = schema;
  return WEIR_OK;
}

weir_status adbc_prepare_target(void *state, const weir_call *call,
                                const weir_namespace *ns, weir_binding *binding,
                                weir_error *err) {
  const adbc_config *config = state;
  const struct ArrowSchema *in = weir_schema_arrow(binding->schema);
  adbc_conn c = {.config = NULL};
  int64_t *order = NULL;
  int nan = 1;
  weir_status status = adbc_open(config, call, &c, err);
  if (!status) status = make_missing(&c, ns, binding->schema, err);
  if (!status) status = adbc_order(&c, in, &order, err);
  if (!status)
    status =
        adbc_prove(&c, ns, binding->schema, order, adbc_columns(config, in), &nan, err);
  if (!status) status = identify(&c, ns, binding, err);
  if (!status && !nan) status = note_nan(binding, err);
  free(order);
  adbc_close(&c);
  return status ? weir_error_prefix(err, status, "%s", config->where) : WEIR_OK;
}

/* ---- verify ---------------------------------------------------------------------------------------------------- */

static void tell(const weir_verify *ask, const adbc_config *config, int32_t kind,
                 const char *text) {
  weir_finding finding = {.struct_size = sizeof(finding),
                          .kind = kind,
                          .artifact = config->table,
                          .text = text};
  ask->found(ask->ctx, &finding);
}

static weir_status tell_cursors(adbc_conn *c, const weir_verify *ask, weir_error *err) {
  weir_cursor_list list = {.n = 0};
  if (ask->struct_size < offsetof(weir_verify, cursor) + sizeof(ask->cursor) ||
      !ask->cursor)
    return WEIR_OK;
  ADBC_TRY(adbc_cursor_find(c, ask->ledger->ns, &list, err));
  for (size_t i = 0; i < list.n; i++) ask->cursor(ask->ctx, &list.v[i]);
  if (list.release) list.release(&list);
  return WEIR_OK;
}

static weir_status verify_at(adbc_conn *c, const weir_verify *ask, weir_verified *out,
                             weir_error *err) {
  weir_error why = {0};
  struct ArrowSchema table;
  int there = 0;
  weir_status status = adbc_cursor_table(c, &why);
  if (status == WEIR_E_NOT_FOUND) { /* never prepared here, or removed: no cursor */
    tell(ask, c->config, WEIR_FOUND_MISSING,
         "there is no table " ADBC_CURSOR " beside it");
    out->checked = WEIR_CHECKED_CURSOR;
    return WEIR_OK;
  }
  if (!status) status = adbc_table_schema(c, c->config->table, &there, &table, &why);
  if (!status && there) table.release(&table);
  if (!status && !there)
    tell(ask, c->config, WEIR_FOUND_MISSING, "there is no such table");
  if (!status) status = tell_cursors(c, ask, &why);
  if (!status) status = adbc_cursor_check_claim(c, ask->ledger->ns, &why);
  if (status == WEIR_E_CONFLICT) {
    tell(ask, c->config, WEIR_FOUND_FOREIGN, why.message);
    return WEIR_OK;
  }
  if (status) {
    if (err) *err = why;
    return status;
  }
  ADBC_TRY(adbc_cursor_read(c, ask->ledger->ns, &out->cursor, err));
  out->checked = WEIR_CHECKED_CURSOR;
  return WEIR_OK;
}

weir_status adbc_verify(void *state, const weir_call *call, const weir_verify *ask,
                        weir_verified *out, weir_error *err) {
  const adbc_config *config = state;
  adbc_conn c = {.config = NULL};
  weir_status status = adbc_open(config, call, &c, err);
  if (!status) status = verify_at(&c, ask, out, err);
  adbc_close(&c);
  return status ? weir_error_prefix(err, status, "%s", config->where) : WEIR_OK;
}
