/* SPDX-License-Identifier: Apache-2.0 */
/* JSON documents: status, the end of a run. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

#include "pipeline/pipeline.h"

/* yyjson's functions answer false or NULL without memory; writing such a document fails too, so one look
 * at the end is enough. */
weir_status pipeline_json_finish(yyjson_mut_doc *doc, weir_bytes *out, weir_error *err) {
  size_t size = 0;
  char *text = yyjson_mut_write(doc, YYJSON_WRITE_NOFLAG, &size);
  weir_status status = WEIR_OK;
  if (text)
    status = weir_bytes_copy(out, text, size, err);
  else
    status = weir_error_set(err, WEIR_E_NOMEM, 0, "no memory for a JSON document");
  free(text);
  return status;
}

weir_status pipeline_json_new(yyjson_mut_doc **doc, yyjson_mut_val **root,
                              weir_error *err) {
  *doc = yyjson_mut_doc_new(NULL);
  *root = *doc ? yyjson_mut_obj(*doc) : NULL;
  if (!*root)
    return weir_error_set(err, WEIR_E_NOMEM, 0, "no memory for a JSON document");
  yyjson_mut_doc_set_root(*doc, *root);
  return WEIR_OK;
}

void pipeline_json_cursor(yyjson_mut_doc *doc, yyjson_mut_val *in,
                          const weir_cursor *cursor) {
  if (!cursor || !cursor->checkpoint) {
    yyjson_mut_obj_add_null(doc, in, "cursor");
    return;
  }
  yyjson_mut_val *v = yyjson_mut_obj_add_obj(doc, in, "cursor");
  yyjson_mut_obj_add_uint(doc, v, "checkpoint", cursor->checkpoint);
  yyjson_mut_obj_add_uint(doc, v, "token", cursor->token);
}

void pipeline_json_deployment(yyjson_mut_doc *doc, yyjson_mut_val *in,
                              const uint8_t *deployment) {
  char uuid[WEIR_UUID_TEXT];
  weir_uuid_format(deployment, uuid);
  yyjson_mut_obj_add_strcpy(doc, in, "deployment", uuid);
}

/* In the words of its type of source, if that has some; text when it is text; hex otherwise. */
static void add_position(yyjson_mut_doc *doc, yyjson_mut_val *in,
                         const weir_source_ops *ops, const weir_bytes *position) {
  weir_bytes text = {0};
  if (position->release && ops) connector_describe_position(ops, position, &text);
  if (!position->release) {
    yyjson_mut_obj_add_null(doc, in, "position");
  } else if (text.release) {
    yyjson_mut_obj_add_strncpy(doc, in, "position", (const char *)text.data, text.size);
  } else if (base_utf8_valid(position->data, position->size) &&
             !memchr(position->data, 0, position->size)) {
    yyjson_mut_obj_add_strncpy(doc, in, "position", (const char *)position->data,
                               position->size);
  } else {
    base_buf hex = {0};
    if (!base_buf_reserve(&hex, 2 * position->size + 1, NULL)) {
      weir_hex_encode(position->data, position->size, (char *)hex.data);
      yyjson_mut_obj_add_strncpy(doc, in, "position", (const char *)hex.data,
                                 2 * position->size);
    }
    base_buf_done(&hex);
  }
  weir_bytes_release(&text);
}

/* The table of a source's type; NULL when it is not to be had, which is the run's to complain of. */
static const weir_source_ops *source_ops(const weir_config *config, const char *name) {
  const weir_source_ops *ops = NULL;
  weir_error silent = {0};
  char *base = config_path(config, ".", &silent);
  for (size_t i = 0; base && i < config_connector_count(config, CONFIG_SOURCES); i++) {
    config_connector c = {0};
    if (!config_connector_at(config, CONFIG_SOURCES, i, &c, &silent) &&
        strcmp(c.name, name) == 0 && connector_find_source(c.type, base, &ops, &silent))
      ops = NULL;
  }
  free(base);
  return ops;
}

/* ---- what the store knows ------------------------------------------------------------------ */

static const weir_store_sink *find_sink(const weir_store_sink *v, size_t n,
                                        const char *id) {
  for (size_t i = 0; i < n; i++)
    if (strcmp(v[i].sink_id, id) == 0) return &v[i];
  return NULL;
}

bool pipeline_unshown(const weir_store_state *state, const weir_store_sink *part) {
  const weir_store_sink *seen = find_sink(state->seen, state->n_seen, part->sink_id);
  return part->has_rows &&
         !(seen && seen->cursor.checkpoint >= part->cursor.checkpoint) &&
         !weir_store_resolved(state, part->sink_id, part->cursor.checkpoint);
}

/* Rows and bytes of one attempt, from totals. What came before it is the part before it, or what the target
 * showed last. */
void pipeline_amount_of(const weir_store_state *state, const weir_store_sink *part,
                        uint64_t *rows, uint64_t *bytes) {
  const weir_store_sink *before = NULL;
  for (size_t i = 0; i < state->n_seen; i++)
    if (strcmp(state->seen[i].sink_id, part->sink_id) == 0 &&
        state->seen[i].cursor.checkpoint < part->cursor.checkpoint)
      before = &state->seen[i];
  for (size_t i = 0; i < state->n_attempts; i++) {
    const weir_store_attempt *a = &state->attempts[i];
    for (size_t k = 0; a->attempt < part->cursor.checkpoint && k < a->n_sinks; k++)
      if (strcmp(a->sinks[k].sink_id, part->sink_id) == 0) before = &a->sinks[k];
  }
  *rows = part->rows - (before ? before->rows : 0);
  *bytes = part->bytes - (before ? before->bytes : 0);
}

void pipeline_json_unresolved(yyjson_mut_doc *doc, yyjson_mut_val *root,
                              const weir_store_state *state) {
  yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, root, "unresolved");
  for (size_t i = 0; i < state->n_attempts; i++) {
    const weir_store_attempt *a = &state->attempts[i];
    if (a->state == WEIR_ATTEMPT_RESERVED) {
      yyjson_mut_val *v = yyjson_mut_arr_add_obj(doc, list);
      yyjson_mut_obj_add_uint(doc, v, "attempt", a->attempt);
      yyjson_mut_obj_add_str(doc, v, "state", "undecided");
    }
    for (size_t k = 0; a->state == WEIR_ATTEMPT_COMMIT && k < a->n_sinks; k++) {
      uint64_t rows = 0, bytes = 0;
      if (!pipeline_unshown(state, &a->sinks[k])) continue;
      yyjson_mut_val *v = yyjson_mut_arr_add_obj(doc, list);
      pipeline_amount_of(state, &a->sinks[k], &rows, &bytes);
      yyjson_mut_obj_add_uint(doc, v, "attempt", a->attempt);
      yyjson_mut_obj_add_str(doc, v, "state", "decided");
      yyjson_mut_obj_add_strcpy(doc, v, "sink", a->sinks[k].sink_id);
      yyjson_mut_obj_add_uint(doc, v, "rows", rows);
      yyjson_mut_obj_add_uint(doc, v, "bytes", bytes);
    }
  }
}

static void no_release(weir_bytes *bytes) {
  (void)bytes;
}

void pipeline_json_sources(yyjson_mut_doc *doc, yyjson_mut_val *root,
                           const weir_config *config,
                           const weir_store_position *positions, size_t n) {
  yyjson_mut_val *sources = yyjson_mut_obj_add_obj(doc, root, "sources");
  for (size_t i = 0; i < n; i++) {
    const weir_store_position *at = &positions[i];
    yyjson_mut_val *v = yyjson_mut_obj_add_obj(doc, sources, at->source);
    weir_bytes position = {.data = at->data, .size = at->size};
    if (at->present) position.release = no_release;
    add_position(doc, v, source_ops(config, at->source), &position);
    yyjson_mut_obj_add_uint(doc, v, "rows", at->rows);
    yyjson_mut_obj_add_uint(doc, v, "lost", at->lost);
  }
}

static weir_status status_of_store(const weir_config *config,
                                   const weir_store_state *state, weir_bytes *out,
                                   weir_error *err) {
  yyjson_mut_doc *doc = NULL;
  yyjson_mut_val *root = NULL;
  weir_status status = pipeline_json_new(&doc, &root, err);
  if (status) {
    yyjson_mut_doc_free(doc);
    return status;
  }
  uint64_t decided = 0, committed = 0;
  yyjson_mut_obj_add_strcpy(doc, root, "pipeline", state->pipeline);
  pipeline_json_deployment(doc, root, state->deployment);
  for (size_t i = 0; i < state->n_decided; i++)
    if (state->decided[i].cursor.checkpoint > decided)
      decided = state->decided[i].cursor.checkpoint;
  committed = decided;
  for (size_t i = 0; i < state->n_attempts; i++) {
    const weir_store_attempt *a = &state->attempts[i];
    for (size_t k = 0; a->state == WEIR_ATTEMPT_COMMIT && k < a->n_sinks; k++) {
      if (pipeline_unshown(state, &a->sinks[k]) && a->attempt - 1 < committed)
        committed = a->attempt - 1;
    }
  }
  yyjson_mut_obj_add_uint(doc, root, "decided", decided);
  yyjson_mut_obj_add_uint(doc, root, "committed", committed);
  pipeline_json_unresolved(doc, root, state);
  pipeline_json_resolved(doc, root, state);
  yyjson_mut_val *sinks = yyjson_mut_obj_add_obj(doc, root, "sinks");
  uint64_t letters = 0;
  for (size_t i = 0; i < state->n_decided; i++) {
    const weir_store_sink *d = &state->decided[i];
    if (config_takes_letters(config, d->sink_id)) letters += d->rows;
    const weir_store_sink *seen = find_sink(state->seen, state->n_seen, d->sink_id);
    yyjson_mut_val *v = yyjson_mut_obj_add_obj(doc, sinks, d->sink_id);
    pipeline_json_cursor(doc, v, seen ? &seen->cursor : NULL);
    yyjson_mut_obj_add_uint(doc, v, "rows", d->rows);
    yyjson_mut_obj_add_uint(doc, v, "bytes", d->bytes);
  }
  yyjson_mut_obj_add_uint(doc, root, "dead_letters", letters);
  pipeline_json_sources(doc, root, config, state->positions, state->n_positions);
  status = pipeline_json_finish(doc, out, err);
  yyjson_mut_doc_free(doc);
  return status;
}

weir_status weir_pipeline_status(const weir_config *config, weir_bytes *json,
                                 weir_error *err) {
  config_top top = {0};
  weir_store_state *state = NULL;
  weir_status status = config_top_init(config, &top, err);
  if (!status) status = pipeline_read_store(&top, &state, err);
  if (!status) status = status_of_store(config, state, json, err);
  weir_store_state_free(state);
  config_top_done(&top);
  return status;
}

/* ---- a live run -------------------------------------------------------------------------------- */

/* Lock held. */
static void sink_totals(const weir_pipeline *p, size_t i, uint64_t *rows, uint64_t *bytes,
                        bool run) {
  const pipe_sink *s = &p->plan.sinks[i];
  const pipe_figures *f = &p->figures[i];
  if (s->contract.consistency == WEIR_COMMITTABLE) {
    *rows = f->rows - (run ? f->rows_0 : 0);
    *bytes = f->bytes - (run ? f->bytes_0 : 0);
    return;
  }
  *rows = *bytes = 0;
  for (uint32_t k = 0; k < s->writers && s->actors[k]; k++) {
    uint64_t r = 0, b = 0;
    task_actor_totals(s->actors[k], &r, &b);
    *rows += r;
    *bytes += b;
  }
}

/* Of all together: letters are no rows. */
typedef struct report_sums {
  uint64_t rows, bytes, letters;
} report_sums;

static report_sums add_sinks(yyjson_mut_doc *doc, yyjson_mut_val *in,
                             const weir_pipeline *p, bool run) {
  report_sums sums = {0};
  yyjson_mut_val *sinks = yyjson_mut_obj_add_obj(doc, in, "sinks");
  for (size_t i = 0; i < p->plan.n_sinks; i++) {
    uint64_t rows = 0, bytes = 0;
    sink_totals(p, i, &rows, &bytes, run);
    yyjson_mut_val *v = yyjson_mut_obj_add_obj(doc, sinks, p->plan.sinks[i].name);
    yyjson_mut_obj_add_uint(doc, v, "rows", rows);
    yyjson_mut_obj_add_uint(doc, v, "bytes", bytes);
    pipeline_json_cursor(doc, v, &p->figures[i].seen);
    if (p->plan.sinks[i].takes_letters) {
      sums.letters += rows;
      continue;
    }
    sums.rows += rows;
    sums.bytes += bytes;
  }
  return sums;
}

static void add_run(yyjson_mut_doc *doc, yyjson_mut_val *root, const weir_pipeline *p) {
  yyjson_mut_val *run = yyjson_mut_obj_add_obj(doc, root, "run");
  yyjson_mut_obj_add_strcpy(doc, run, "pipeline", p->plan.top.pipeline);
  pipeline_json_deployment(doc, run, p->deployment);
  yyjson_mut_obj_add_str(doc, run, "guarantee",
                         connector_guarantee_name(p->plan.top.guarantee));
  yyjson_mut_obj_add_uint(doc, run, "epochs", p->epochs);
  yyjson_mut_val *sources = yyjson_mut_obj(doc);
  for (size_t i = 0; i < p->plan.n_sources; i++) {
    const pipe_source *s = &p->plan.sources[i];
    uint64_t read = 0, lost = 0;
    for (uint32_t l = s->lane_0; l < s->lane_0 + s->lanes; l++) {
      read += p->lanes[l].decided_rows - p->lanes[l].rows_0;
      lost += p->lanes[l].lost - p->lanes[l].lost_0;
    }
    yyjson_mut_val *v = yyjson_mut_obj_add_obj(doc, sources, s->name);
    yyjson_mut_obj_add_uint(doc, v, "rows", read);
    yyjson_mut_obj_add_uint(doc, v, "lost", lost);
  }
  yyjson_mut_val *sinks = yyjson_mut_obj(doc);
  report_sums sums = add_sinks(doc, sinks, p, true);
  yyjson_mut_obj_add_uint(doc, run, "rows", sums.rows);
  yyjson_mut_obj_add_uint(doc, run, "bytes", sums.bytes);
  yyjson_mut_obj_add_uint(doc, run, "dead_letters", sums.letters);
  yyjson_mut_obj_add_real(doc, run, "seconds",
                          (double)(base_clock_mono() - p->began) / (double)BASE_NS_PER_S);
  yyjson_mut_obj_add_val(doc, run, "sources", sources);
  yyjson_mut_obj_add_val(doc, run, "sinks", yyjson_mut_obj_remove_key(sinks, "sinks"));
}

/* Lock held. */
static void add_live_unresolved(yyjson_mut_doc *doc, yyjson_mut_val *root,
                                const weir_pipeline *p) {
  yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, root, "unresolved");
  for (size_t i = 0; i < p->plan.n_sinks; i++)
    for (size_t k = 0; k < p->figures[i].n_unshown; k++) {
      yyjson_mut_val *v = yyjson_mut_arr_add_obj(doc, list);
      yyjson_mut_obj_add_uint(doc, v, "attempt", p->figures[i].unshown[k]);
      yyjson_mut_obj_add_str(doc, v, "state", "decided");
      yyjson_mut_obj_add_str(doc, v, "sink", p->plan.sinks[i].name);
    }
  if (p->over) return;
  yyjson_mut_val *v = yyjson_mut_arr_add_obj(doc, list);
  yyjson_mut_obj_add_uint(doc, v, "attempt", p->attempt);
  yyjson_mut_obj_add_str(doc, v, "state", "undecided");
}

weir_status weir_pipeline_stats(weir_pipeline *p, weir_bytes *json, weir_error *err) {
  if (!p->started)
    return weir_error_set(err, WEIR_E_INVALID_STATE, 0, "pipeline %s has not started",
                          p->plan.top.pipeline);
  yyjson_mut_doc *doc = NULL;
  yyjson_mut_val *root = NULL;
  weir_status status = pipeline_json_new(&doc, &root, err);
  if (status) {
    yyjson_mut_doc_free(doc);
    return status;
  }
  pthread_mutex_lock(&p->lock);
  yyjson_mut_obj_add_strcpy(doc, root, "pipeline", p->plan.top.pipeline);
  pipeline_json_deployment(doc, root, p->deployment);
  yyjson_mut_obj_add_uint(doc, root, "decided", p->decided);
  yyjson_mut_obj_add_uint(doc, root, "committed", p->committed);
  add_live_unresolved(doc, root, p);
  report_sums sums = add_sinks(doc, root, p, false);
  yyjson_mut_obj_add_uint(doc, root, "dead_letters", sums.letters);
  yyjson_mut_val *sources = yyjson_mut_obj_add_obj(doc, root, "sources");
  for (uint32_t i = 0; i < p->plan.n_lanes; i++) {
    const pipe_lane *lane = &p->lanes[i];
    yyjson_mut_val *v = yyjson_mut_obj_add_obj(doc, sources, lane->name);
    add_position(doc, v, connector_spec_source(p->plan.sources[lane->source].spec),
                 &lane->decided);
    yyjson_mut_obj_add_uint(doc, v, "rows", lane->decided_rows);
    yyjson_mut_obj_add_uint(doc, v, "lost", lane->lost);
  }
  add_run(doc, root, p);
  status = pipeline_json_finish(doc, json, err);
  pthread_mutex_unlock(&p->lock);
  yyjson_mut_doc_free(doc);
  return status;
}
