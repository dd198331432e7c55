/* SPDX-License-Identifier: Apache-2.0 */
/* check: what a pipeline promises, and on demand whether its targets would take it, without changing any. */
#include <stdlib.h>
#include <string.h>
#include <weir/infer.h>
#include <yyjson.h>

#include "pipeline/pipeline.h"

static void add_route(yyjson_mut_doc *doc, yyjson_mut_val *routes,
                      const connector_admission_row *r) {
  yyjson_mut_val *v = yyjson_mut_arr_add_obj(doc, routes);
  yyjson_mut_obj_add_strcpy(doc, v, "source", r->source);
  yyjson_mut_obj_add_strcpy(doc, v, "sink", r->sink);
  yyjson_mut_obj_add_strcpy(doc, v, "replay", r->replay);
  yyjson_mut_obj_add_strcpy(doc, v, "consistency", r->consistency);
  yyjson_mut_obj_add_strcpy(doc, v, "topology", r->topology);
  yyjson_mut_obj_add_strcpy(doc, v, "input", r->input);
  yyjson_mut_obj_add_uint(doc, v, "writers", r->writers);
  yyjson_mut_obj_add_str(doc, v, "delivers", connector_guarantee_name(r->delivers));
  yyjson_mut_obj_add_bool(doc, v, "admitted", r->admitted);
  yyjson_mut_obj_add_strcpy(doc, v, "reason", r->reason);
  yyjson_mut_obj_add_strcpy(doc, v, "crash", r->crash);
}

/* Schemas that are inferred, as far as that could be done. */
static void add_schemas(yyjson_mut_doc *doc, yyjson_mut_val *root, const pipe_plan *plan,
                        const weir_store_state *state) {
  yyjson_mut_val *schemas = yyjson_mut_obj_add_obj(doc, root, "schemas");
  for (size_t i = 0; i < plan->n_sources; i++) {
    const pipe_source *s = &plan->sources[i];
    weir_bytes yaml = {0};
    if (!connector_source_schema_is_inferred(s->source)) continue;
    if (!s->schema || weir_schema_yaml(s->schema, &yaml, NULL)) continue;
    yyjson_mut_val *v = yyjson_mut_obj_add_obj(doc, schemas, s->name);
    yyjson_mut_obj_add_bool(doc, v, "kept", pipeline_has_kept_schema(state, s->name));
    yyjson_mut_obj_add_val(doc, v, "columns", pipeline_schema_json(doc, s->schema));
    yyjson_mut_obj_add_strncpy(doc, v, "yaml", (const char *)yaml.data, yaml.size);
    weir_bytes_release(&yaml);
  }
}

/* What each target answered; of one that refused, null. */
static void add_targets(yyjson_mut_doc *doc, yyjson_mut_val *root,
                        const pipe_plan *plan) {
  yyjson_mut_val *targets = yyjson_mut_obj_add_obj(doc, root, "targets");
  for (size_t i = 0; i < plan->n_sinks; i++) {
    const pipe_sink *s = &plan->sinks[i];
    if (!s->binding.schema) {
      yyjson_mut_obj_add_null(doc, targets, s->name);
      continue;
    }
    yyjson_mut_val *v = yyjson_mut_obj_add_obj(doc, targets, s->name);
    if (s->binding.identity)
      yyjson_mut_obj_add_strncpy(doc, v, "identity", s->binding.identity,
                                 strcspn(s->binding.identity, "\n"));
    else
      yyjson_mut_obj_add_null(doc, v, "identity");
    yyjson_mut_obj_add_val(doc, v, "columns",
                           pipeline_schema_json(doc, s->binding.schema));
  }
}

static weir_status check_document(const pipe_plan *plan,
                                  const connector_admission_table *table, bool admitted,
                                  const weir_store_state *state, bool connected,
                                  weir_bytes *json, weir_error *err) {
  yyjson_mut_doc *doc = NULL;
  yyjson_mut_val *root = NULL;
  weir_status status = pipeline_json_new(&doc, &root, err);
  if (!status) {
    yyjson_mut_obj_add_strcpy(doc, root, "pipeline", plan->top.pipeline);
    yyjson_mut_obj_add_str(doc, root, "guarantee",
                           connector_guarantee_name(plan->top.guarantee));
    yyjson_mut_obj_add_strcpy(doc, root, "state", plan->top.state);
    yyjson_mut_obj_add_str(doc, root, "store", plan->top.store ? "postgresql" : "sqlite");
    yyjson_mut_obj_add_bool(doc, root, "admitted", admitted);
    yyjson_mut_val *routes = yyjson_mut_obj_add_arr(doc, root, "routes");
    for (size_t i = 0; i < table->n_rows; i++) add_route(doc, routes, &table->rows[i]);
    add_schemas(doc, root, plan, state);
    if (connected) add_targets(doc, root, plan);
    yyjson_mut_val *notes = yyjson_mut_obj_add_arr(doc, root, "notes");
    for (size_t at = 0; at < plan->notes.size;) {
      const char *note = (const char *)plan->notes.data + at;
      yyjson_mut_arr_add_strcpy(doc, notes, note);
      at += strlen(note) + 1;
    }
    status = pipeline_json_finish(doc, json, err);
  }
  yyjson_mut_doc_free(doc);
  return status;
}

/* Schemas to be inferred: from the store, when the deployment has begun, else from the files. */
static weir_status check_schemas(pipe_plan *plan, bool connect, weir_store_state **state,
                                 weir_error *err) {
  weir_error found = {0};
  bool any = connect;
  for (size_t i = 0; i < plan->n_sources; i++)
    any |= connector_source_schema_is_inferred(plan->sources[i].source);
  if (!any) return WEIR_OK;
  /* A store that cannot be read is the run's to complain of. */
  if (pipeline_read_store(&plan->top, state, &found)) *state = NULL;
  return plan_resolve_inferred(plan, *state, err);
}

/* ---- the targets ----------------------------------------------------------------------------- */

static weir_status run_one(pipe_source *source, pipe_sink *sink, weir_schema *input,
                           weir_error *err) {
  pipe_round *round = NULL;
  BASE_TRY(pipe_round_new(1, &round, err));
  weir_status status =
      source ? pipe_round_add_source(round, PIPE_SOURCE_RESOLVE, source, NULL, err)
             : pipe_round_add_sink(round, PIPE_RESOLVE, sink, 0, input, err);
  if (!status) status = pipe_round_run(round, err);
  if (!status) pipe_round_keep(round);
  pipe_round_free(round);
  return status;
}

/* As a start does it, up to the last step that changes nothing. Without a state folder the deployment is a
 * new one, which a target that another has refuses. */
static weir_status connect_sink(pipe_plan *plan, size_t i, const weir_store_state *state,
                                const uint8_t identity[WEIR_DIGEST_SIZE],
                                weir_error *err) {
  pipe_sink *s = &plan->sinks[i];
  s->ns = (weir_namespace){
      .struct_size = sizeof(s->ns), .pipeline = plan->top.pipeline, .sink_id = s->name};
  memcpy(s->ns.identity, identity, sizeof(s->ns.identity));
  if (state) memcpy(s->ns.deployment, state->deployment, sizeof(s->ns.deployment));
  BASE_TRY(plan_check_input(plan, s, err));
  BASE_TRY(connector_sink_bind(s->first[0], &s->ns, err));
  BASE_TRY(run_one(NULL, s, plan_input(plan, s), err));
  return plan_check_target(plan, i, err);
}

/* Every sink is asked; the first refusal is the error. */
static weir_status connect_all(pipe_plan *plan, const weir_store_state *state,
                               weir_error *err) {
  uint8_t identity[WEIR_DIGEST_SIZE];
  weir_status first = WEIR_OK;
  BASE_TRY(pipeline_identify(plan->top.pipeline, identity, err));
  for (size_t i = 0; i < plan->n_sources; i++) {
    pipe_source *s = &plan->sources[i];
    if (s->schema) continue;
    BASE_TRY(s->push ? pipeline_give_schema(s, NULL, err) : run_one(s, NULL, NULL, err));
  }
  for (size_t i = 0; i < plan->n_sinks; i++) {
    weir_error why = {0};
    weir_status status = connect_sink(plan, i, state, identity, &why);
    if (!status || first) continue;
    first = status;
    if (err) *err = why;
  }
  return first ? first : plan_admit(plan, true, NULL, err);
}

static weir_status check(const weir_config *config, bool connect, weir_bytes *json,
                         weir_error *err) {
  pipe_plan plan = {0};
  base_log silent = {0};
  connector_admission_table table = {0};
  weir_store_state *state = NULL;
  weir_status status = plan_init(&plan, config, &silent, err);
  if (!status) {
    bool admitted = !(status = plan_admit(&plan, false, &table, err));
    weir_status written = status ? WEIR_OK : check_schemas(&plan, connect, &state, err);
    if (!written && !status && connect) status = connect_all(&plan, state, err);
    if (!written && (table.n_rows || !status))
      written = check_document(&plan, &table, admitted, state, connect && admitted, json,
                               status ? NULL : err);
    if (!status) status = written;
  }
  if (status && plan.host) status = plan_error(&plan, status, err);
  weir_store_state_free(state);
  connector_admission_table_done(&table);
  plan_done(&plan);
  return status;
}

weir_status weir_pipeline_check(const weir_config *config, weir_bytes *json,
                                weir_error *err) {
  return check(config, false, json, err);
}

weir_status weir_pipeline_check_targets(const weir_config *config, weir_bytes *json,
                                        weir_error *err) {
  return check(config, true, json, err);
}
