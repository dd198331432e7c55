/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resolve: a person's word on a decided attempt that its target refuses for good. R1 and R2 of
 * docs/protocol.md; what it means for the next run is in coord/load.c.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <yyjson.h>

#include "pipeline/pipeline.h"

#define RESOLVED_PREFIX "resolved:"

static const char *answer_name(int32_t as) {
  return as == WEIR_RESOLVE_PUBLISHED ? "published" : "given-up";
}

/* ---- what is recorded --------------------------------------------------------------------------- */

yyjson_doc *pipeline_read_resolution(const weir_store_binding *binding) {
  return base_starts_with(binding->sink_id, RESOLVED_PREFIX)
             ? yyjson_read((const char *)binding->data, binding->size, YYJSON_READ_NOFLAG)
             : NULL;
}

void pipeline_json_resolved(yyjson_mut_doc *doc, yyjson_mut_val *root,
                            const weir_store_state *state) {
  yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, root, "resolved");
  for (size_t i = 0; state && i < state->n_bindings; i++) {
    yyjson_doc *record = pipeline_read_resolution(&state->bindings[i]);
    if (record)
      yyjson_mut_arr_append(list, yyjson_val_mut_copy(doc, yyjson_doc_get_root(record)));
    yyjson_doc_free(record);
  }
}

static weir_status record(const weir_store_state *state, const weir_store_sink *part,
                          const weir_resolution *word, weir_bytes *out, weir_error *err) {
  yyjson_mut_doc *doc = NULL;
  yyjson_mut_val *root = NULL;
  char when[32];
  uint64_t rows = 0, bytes = 0;
  time_t now = (time_t)(base_clock_wall() / BASE_NS_PER_S);
  struct tm utc = {0};
  weir_status status = pipeline_json_new(&doc, &root, err);
  pipeline_amount_of(state, part, &rows, &bytes);
  gmtime_r(&now, &utc);
  strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &utc);
  if (!status) {
    yyjson_mut_obj_add_str(doc, root, "sink", part->sink_id);
    yyjson_mut_obj_add_uint(doc, root, "attempt", part->cursor.checkpoint);
    yyjson_mut_obj_add_str(doc, root, "as", answer_name(word->as));
    yyjson_mut_obj_add_uint(doc, root, "rows", rows);
    yyjson_mut_obj_add_uint(doc, root, "bytes", bytes);
    yyjson_mut_obj_add_str(doc, root, "who", word->who);
    yyjson_mut_obj_add_str(doc, root, "when", when);
    yyjson_mut_obj_add_str(doc, root, "why", word->why);
    status = pipeline_json_finish(doc, out, err);
  }
  yyjson_mut_doc_free(doc);
  return status;
}

/* ---- what may be resolved -------------------------------------------------------------------------- */

static weir_status find_part(const weir_store_state *state, const weir_resolution *word,
                             const weir_store_sink **out, weir_error *err) {
  for (size_t i = 0; i < state->n_attempts; i++) {
    const weir_store_attempt *a = &state->attempts[i];
    if (a->attempt != word->attempt) continue;
    if (a->state != WEIR_ATTEMPT_COMMIT)
      return weir_error_set(
          err, WEIR_E_INVALID_CONFIG, 0,
          "attempt %" PRIu64
          " is not decided: nothing of it is published, and its rows are delivered again "
          "by the next run; `weir recover` settles it",
          word->attempt);
    for (size_t k = 0; k < a->n_sinks; k++)
      if (strcmp(a->sinks[k].sink_id, word->sink) == 0) {
        *out = &a->sinks[k];
        return WEIR_OK;
      }
  }
  return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                        "the checkpoint store has no decided attempt %" PRIu64
                        " of sink %s; `weir resolve` without --sink lists what it has",
                        word->attempt, word->sink);
}

/* Neither empty nor, as far as the store knows, at the target. */
static weir_status check_part(const weir_store_state *state, const weir_store_sink *part,
                              weir_error *err) {
  if (!part->has_rows)
    return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                          "attempt %" PRIu64
                          " has no rows for sink %s: there is nothing to resolve",
                          part->cursor.checkpoint, part->sink_id);
  for (size_t i = 0; i < state->n_seen; i++)
    if (strcmp(state->seen[i].sink_id, part->sink_id) == 0 &&
        state->seen[i].cursor.checkpoint >= part->cursor.checkpoint)
      return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                            "attempt %" PRIu64
                            " was published: the target of sink %s was seen at attempt "
                            "%" PRIu64 "; there is nothing to resolve",
                            part->cursor.checkpoint, part->sink_id,
                            state->seen[i].cursor.checkpoint);
  return WEIR_OK;
}

static void on_found(void *ctx, const weir_finding *f) {
  pipe_look *look = ctx;
  if (f->kind == WEIR_FOUND_FOREIGN && !look->foreign.code)
    weir_error_set(&look->foreign, WEIR_E_CONFLICT, 0, "%s",
                   f->text ? f->text : "foreign");
  look->lacks |= f->kind == WEIR_FOUND_MISSING && f->checkpoint == look->attempt;
}

static void on_published(void *ctx, const weir_cursor *attempt, uint64_t rows) {
  (void)attempt;
  ((pipe_look *)ctx)->rows += rows;
}

weir_status pipeline_look(pipe_plan *plan, size_t i,
                          const uint8_t deployment[WEIR_UUID_SIZE], pipe_look *look,
                          weir_error *err) {
  pipe_sink *s = &plan->sinks[i];
  weir_ledger ledger = {.struct_size = sizeof(ledger), .ns = &s->ns};
  weir_verify ask = {.struct_size = sizeof(ask),
                     .ledger = &ledger,
                     .ctx = look,
                     .published = on_published,
                     .found = on_found};
  BASE_TRY(pipeline_bind_one(plan, s, deployment, err));
  weir_call *call = weir_call_new(-1);
  if (!call) return weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
  weir_status status = connector_sink_verify(s->first[0], call, &ask, &look->seen, err);
  weir_call_free(call);
  if (status || !look->foreign.code) return status;
  if (err) *err = look->foreign;
  return WEIR_E_CONFLICT;
}

size_t pipeline_resolved_attempts(const weir_store_state *state, const char *sink,
                                  uint64_t *out) {
  size_t n = 0, size = strlen(sink), prefix = strlen(RESOLVED_PREFIX);
  for (size_t i = 0; state && i < state->n_bindings; i++) {
    const char *key = state->bindings[i].sink_id;
    if (!base_starts_with(key, RESOLVED_PREFIX)) continue;
    if (strncmp(key + prefix, sink, size) == 0 && key[prefix + size] == ':')
      out[n++] = strtoull(key + prefix + size + 1, NULL, 10);
  }
  return n;
}

/* A target that can be asked has the last word. One that is gone, cannot answer, or whose sink left the
 * pipeline, has none. *sink: of the plan, which the caller ends; it shows the attempt and could not finish
 * publishing it. */
static weir_status ask_target(const weir_config *config, const weir_store_state *state,
                              const weir_resolution *word, pipe_plan *plan,
                              pipe_sink **sink, pipe_look *look, weir_error *err) {
  base_log silent = {0};
  weir_error why = {0};
  look->attempt = word->attempt;
  weir_status status = plan_init(plan, config, &silent, &why);
  for (size_t i = 0; i < plan->n_sinks && !status; i++) {
    if (strcmp(plan->sinks[i].name, word->sink) != 0) continue;
    status = pipeline_look(plan, i, state->deployment, look, &why);
    if (!status && look->lacks && look->seen.cursor.checkpoint >= word->attempt)
      *sink = &plan->sinks[i];
  }
  if (status || *sink || look->seen.cursor.checkpoint < word->attempt) return WEIR_OK;
  return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                        "the target of sink %s shows attempt %" PRIu64
                        ": attempt %" PRIu64
                        " was published, and `weir recover` goes on behind it",
                        word->sink, look->seen.cursor.checkpoint, word->attempt);
}

static void ignore(void *ctx, const weir_finding *f) {
  (void)ctx;
  (void)f;
}

/* R3. Nothing is old enough to be removed by it. */
static weir_status end_publishing(pipe_sink *s, const weir_store_state *state,
                                  const pipe_look *look, weir_error *err) {
  weir_swept swept = {0};
  uint64_t *resolved = base_calloc(state->n_bindings, sizeof(*resolved), err);
  if (!resolved) return WEIR_E_NOMEM;
  weir_ledger ledger = {
      .struct_size = sizeof(ledger), .ns = &s->ns, .resolved = resolved};
  ledger.n_resolved = pipeline_resolved_attempts(state, s->name, resolved);
  weir_sweep ask = {.struct_size = sizeof(ask),
                    .ledger = &ledger,
                    .cursor = look->seen.cursor,
                    .older_than_ns = INT64_MAX,
                    .found = ignore};
  weir_call *call = weir_call_new(-1);
  weir_status status = call ? connector_sink_sweep(s->first[0], call, &ask, &swept, err)
                            : weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
  weir_call_free(call);
  free(resolved);
  return status;
}

static const char *text_of(yyjson_val *record, const char *key) {
  const char *text = yyjson_get_str(yyjson_obj_get(record, key));
  return text ? text : "?";
}

/* The same word again changes nothing, so that a command whose answer was lost can be repeated. */
static weir_status said_before(const weir_store_binding *old, const weir_resolution *word,
                               weir_error *err) {
  yyjson_doc *doc = pipeline_read_resolution(old);
  yyjson_val *root = yyjson_doc_get_root(doc);
  weir_status status = WEIR_OK;
  if (!yyjson_equals_str(yyjson_obj_get(root, "as"), answer_name(word->as)))
    status = weir_error_set(
        err, WEIR_E_CONFLICT, 0,
        "attempt %" PRIu64
        " of sink %s was resolved as %s by %s (%s) and stays that; a word once given "
        "is not taken back",
        word->attempt, word->sink, text_of(root, "as"), text_of(root, "who"),
        text_of(root, "when"));
  yyjson_doc_free(doc);
  return status;
}

/* ---- resolve ------------------------------------------------------------------------------------------ */

/* R2, unless it was said before; *state is what the store has afterwards. */
static weir_status say(weir_store *store, const weir_resolution *word,
                       weir_store_state **state, weir_error *err) {
  const weir_store_sink *part = NULL;
  weir_bytes text = {0};
  BASE_TRY(find_part(*state, word, &part, err));
  BASE_TRY(record(*state, part, word, &text, err));
  weir_status status =
      weir_store_resolve(store, word->sink, word->attempt, text.data, text.size, err);
  weir_bytes_release(&text);
  if (status) return status;
  weir_store_state_free(*state);
  *state = NULL;
  return weir_store_load(store, state, err);
}

/* R1 to R3. */
static weir_status resolve(const weir_config *config, const config_top *top,
                           const weir_resolution *word, weir_store_state **state,
                           weir_error *err) {
  weir_store *store = NULL;
  pipe_plan plan = {0};
  pipe_sink *sink = NULL;
  pipe_look look = {0};
  const weir_store_sink *part = NULL;
  /* A store is not made here. */
  BASE_TRY(pipeline_read_store(top, state, err));
  weir_store_state_free(*state);
  *state = NULL;
  BASE_TRY(pipeline_take_store(top, false, &store, err));
  weir_status status = weir_store_load(store, state, err);
  if (status) goto out;
  const weir_store_binding *old = weir_store_resolved(*state, word->sink, word->attempt);
  if (old) {
    BASE_GOTO(status, said_before(old, word, err));
    /* Published since is as good as resolved. */
    if (ask_target(config, *state, word, &plan, &sink, &look, NULL)) goto out;
  } else {
    BASE_GOTO(status, find_part(*state, word, &part, err));
    BASE_GOTO(status, check_part(*state, part, err));
    BASE_GOTO(status, ask_target(config, *state, word, &plan, &sink, &look, err));
    BASE_GOTO(status, say(store, word, state, err));
  }
  if (sink) status = end_publishing(sink, *state, &look, err);
out:
  plan_done(&plan);
  weir_store_close(store);
  return status;
}

static weir_status document(const weir_store_state *state, weir_bytes *json,
                            weir_error *err) {
  yyjson_mut_doc *doc = NULL;
  yyjson_mut_val *root = NULL;
  weir_status status = pipeline_json_new(&doc, &root, err);
  if (!status) {
    yyjson_mut_obj_add_str(doc, root, "pipeline", state->pipeline);
    pipeline_json_deployment(doc, root, state->deployment);
    pipeline_json_unresolved(doc, root, state);
    pipeline_json_resolved(doc, root, state);
    status = pipeline_json_finish(doc, json, err);
  }
  yyjson_mut_doc_free(doc);
  return status;
}

static weir_status check_word(const weir_resolution *word, weir_error *err) {
  bool answer = word->as == WEIR_RESOLVE_PUBLISHED || word->as == WEIR_RESOLVE_GIVEN_UP;
  bool said = word->who && *word->who && word->why && *word->why;
  if (answer && said && word->sink && *word->sink && word->attempt &&
      base_utf8_valid((const uint8_t *)word->who, strlen(word->who)) &&
      base_utf8_valid((const uint8_t *)word->why, strlen(word->why)))
    return WEIR_OK;
  return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                        "a resolution names a sink, an attempt, an answer, and in UTF-8 "
                        "who gives it and why");
}

weir_status weir_pipeline_resolve(const weir_config *config, const weir_resolution *word,
                                  weir_bytes *json, weir_error *err) {
  config_top top = {0};
  weir_store_state *state = NULL;
  weir_status status = word ? check_word(word, err) : WEIR_OK;
  if (!status) status = config_top_init(config, &top, err);
  if (!status)
    status = word ? resolve(config, &top, word, &state, err)
                  : pipeline_read_store(&top, &state, err);
  if (!status) status = document(state, json, err);
  if (status && top.pipeline && err)
    status = weir_error_prefix(err, status, "pipeline %s", top.pipeline);
  weir_store_state_free(state);
  config_top_done(&top);
  return status;
}
