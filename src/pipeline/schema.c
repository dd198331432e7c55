/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Schemas that sources infer from a sample: once per deployment. The store keeps what the first start
 * found before any sink hears of it, so a start that was killed in between infers again and nothing was
 * built on what it had found; every later start hands the kept schema to its source.
 */
#include <stdlib.h>
#include <string.h>
#include <weir/infer.h>
#include <yyjson.h>

#include "arrow/arrow.h"
#include "pipeline/pipeline.h"

static char *key_of(const char *source, weir_error *err) {
  return base_format(err, "source:%s", source);
}

static const weir_store_binding *kept(const weir_store_state *state, const char *source) {
  static const char prefix[] = "source:";
  for (size_t i = 0; state && i < state->n_bindings; i++) {
    const char *key = state->bindings[i].sink_id;
    if (base_starts_with(key, prefix) && strcmp(key + strlen(prefix), source) == 0)
      return &state->bindings[i];
  }
  return NULL;
}

bool pipeline_has_kept_schema(const weir_store_state *state, const char *source) {
  return kept(state, source) != NULL;
}

/* ---- text ------------------------------------------------------------------------------------- */

yyjson_mut_val *pipeline_schema_json(yyjson_mut_doc *doc, const weir_schema *schema) {
  const struct ArrowSchema *arrow = weir_schema_arrow(schema);
  yyjson_mut_val *out = yyjson_mut_obj(doc);
  char *type = malloc(ARROW_TYPE_TEXT);
  bool good = out && type;
  for (int64_t i = 0; good && i < arrow->n_children; i++) {
    const struct ArrowSchema *column = arrow->children[i];
    arrow_column_format(column, type, ARROW_TYPE_TEXT);
    good = yyjson_mut_obj_add(out, yyjson_mut_strcpy(doc, column->name),
                              yyjson_mut_strcpy(doc, type));
  }
  free(type);
  return good ? out : NULL;
}

static weir_status write_kept(const weir_schema *schema, weir_bytes *out,
                              weir_error *err) {
  size_t size = 0;
  weir_status status = WEIR_OK;
  yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
  yyjson_mut_val *root = doc ? pipeline_schema_json(doc, schema) : NULL;
  yyjson_mut_doc_set_root(doc, root);
  char *text = root ? yyjson_mut_write(doc, YYJSON_WRITE_NOFLAG, &size) : NULL;
  if (text)
    status = weir_bytes_copy(out, text, size, err);
  else
    status = weir_error_set(err, WEIR_E_NOMEM, 0, "no memory for a schema");
  free(text);
  yyjson_mut_doc_free(doc);
  return status;
}

static weir_status read_kept(const weir_store_binding *binding, weir_schema **out,
                             weir_error *err) {
  weir_status status = WEIR_E_CORRUPT;
  yyjson_doc *doc =
      yyjson_read((const char *)binding->data, binding->size, YYJSON_READ_NOFLAG);
  yyjson_val *root = yyjson_doc_get_root(doc), *key, *type;
  size_t n = yyjson_obj_size(root), i, max;
  const char **names = base_calloc(n + 1, sizeof(*names), err);
  const char **types = base_calloc(n + 1, sizeof(*types), err);
  if (!names || !types) BASE_GOTO(status, WEIR_E_NOMEM);
  yyjson_obj_foreach(root, i, max, key, type) {
    names[i] = yyjson_get_str(key);
    types[i] = yyjson_get_str(type);
    if (!types[i]) n = 0;
  }
  if (!n)
    weir_error_set(err, status, 0,
                   "the schema kept in the checkpoint store is unreadable");
  else
    status = weir_schema_from_types(names, types, n, out, err);
out:
  free(names);
  free(types);
  yyjson_doc_free(doc);
  return status;
}

/* ---- the start -------------------------------------------------------------------------------- */

weir_status pipeline_use_kept_schemas(const pipe_plan *plan,
                                      const weir_store_state *state, weir_error *err) {
  for (size_t i = 0; i < plan->n_sources; i++) {
    pipe_source *s = &plan->sources[i];
    const weir_store_binding *old = kept(state, s->name);
    weir_schema *schema = NULL;
    if (!old || s->push) continue;
    weir_status status = read_kept(old, &schema, err);
    if (status)
      return weir_error_prefix(err, status, "%s", connector_spec_where(s->spec));
    status = connector_source_use_schema(s->source, schema, err);
    weir_schema_unref(schema);
    if (status) return status;
  }
  return WEIR_OK;
}

/* The log's own buffer is too short for wide tables. */
static void tell(const base_log *log, const pipe_source *s, bool again) {
  weir_bytes yaml = {0};
  weir_error error = {0};
  if (!log->write || log->level < WEIR_LOG_INFO) return;
  if (weir_schema_yaml(s->schema, &yaml, &error)) return;
  char *text = base_format(
      &error, "%s, to be written down as `schema: %.*s`",
      again ? "the schema that this deployment inferred when it began"
            : "the schema was inferred from a sample and is kept for this deployment",
      (int)yaml.size, (const char *)yaml.data);
  if (text) log->write(log->ctx, WEIR_LOG_INFO, connector_spec_where(s->spec), text);
  free(text);
  weir_bytes_release(&yaml);
}

weir_status pipeline_keep_schemas(weir_pipeline *p, weir_error *err) {
  for (size_t i = 0; i < p->plan.n_sources; i++) {
    pipe_source *s = &p->plan.sources[i];
    bool again = pipeline_has_kept_schema(p->state, s->name);
    if (s->push || !connector_source_schema_is_inferred(s->source)) continue;
    if (!again) {
      weir_bytes text = {0};
      char *key = key_of(s->name, err);
      if (!key) return WEIR_E_NOMEM;
      weir_status status = write_kept(s->schema, &text, err);
      weir_store_binding now = {key, text.data, text.size};
      if (!status) status = weir_store_pin(p->store, &now, 0, err);
      weir_bytes_release(&text);
      free(key);
      if (status) return status;
    }
    tell(&p->log, s, again);
  }
  return WEIR_OK;
}

/* ---- check ------------------------------------------------------------------------------------ */

static weir_status resolve_one(pipe_plan *plan, pipe_source *s, weir_error *err) {
  pipe_round *round = NULL;
  weir_error found = {0};
  BASE_TRY(pipe_round_new(1, &round, err));
  weir_status status = pipe_round_add_source(round, PIPE_SOURCE_RESOLVE, s, NULL, err);
  if (!status) {
    weir_status answer = pipe_round_run(round, &found);
    if (!answer) pipe_round_keep(round);
    if (answer)
      status =
          base_buf_append(&plan->notes, found.message, strlen(found.message) + 1, err);
  }
  pipe_round_free(round);
  return status;
}

weir_status plan_resolve_inferred(pipe_plan *plan, const weir_store_state *state,
                                  weir_error *err) {
  for (size_t i = 0; i < plan->n_sources; i++) {
    pipe_source *s = &plan->sources[i];
    const weir_store_binding *old = kept(state, s->name);
    if (s->push || !connector_source_schema_is_inferred(s->source)) continue;
    if (old) {
      weir_status status = read_kept(old, &s->schema, err);
      if (status)
        return weir_error_prefix(err, status, "%s", connector_spec_where(s->spec));
      continue;
    }
    BASE_TRY(resolve_one(plan, s, err));
    if (s->schema && !connector_source_schema_is_inferred(s->source)) {
      weir_schema_unref(s->schema);
      s->schema = NULL;
    }
  }
  return WEIR_OK;
}
