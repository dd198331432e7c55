/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening a pipeline, in the order of docs/protocol.md: contracts and admission; store and lease;
 * identity, schemas, second admission; preparation and pinned bindings; open; recovery.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <weir/plugin.h>

#include "pipeline/pipeline.h"

weir_status plan_error(const pipe_plan *plan, weir_status status, weir_error *err) {
  const char *name = plan->top.pipeline;
  char said[160] = {0};
  if (!err || !name) return status;
  int size = snprintf(said, sizeof(said), "pipeline %s", name);
  const char *found = strstr(err->message, said);
  /* The config's messages have it behind the place in the file. */
  if (found && strchr(",: ", found[size])) return status;
  return weir_error_prefix(err, status, "pipeline %s", name);
}

weir_status pipeline_error(const weir_pipeline *p, weir_status status, weir_error *err) {
  return plan_error(&p->plan, status, err);
}

/* ---- schemas and bindings ------------------------------------------------------------------- */

bool pipeline_ready(const weir_pipeline *p) {
  for (size_t i = 0; i < p->plan.n_sources; i++)
    if (p->plan.sources[i].push && !p->plan.sources[i].schema) return false;
  return true;
}

/* Where nobody is going to push, the configuration's word is the only one. */
static weir_status schemas_without_a_host(weir_pipeline *p, weir_error *err) {
  for (size_t i = 0; i < p->plan.n_sources; i++) {
    pipe_source *s = &p->plan.sources[i];
    if (!s->push) continue;
    weir_status status = pipeline_give_schema(s, NULL, err);
    if (status)
      return weir_error_prefix(
          err, status, "nobody pushes here, so the schema must be in the configuration");
  }
  return WEIR_OK;
}

static weir_status resolve_sources(weir_pipeline *p, weir_error *err) {
  pipe_round *round = NULL;
  BASE_TRY(pipe_round_new(p->plan.n_sources, &round, err));
  weir_status status = WEIR_OK;
  for (size_t i = 0; i < p->plan.n_sources && !status; i++)
    if (!p->plan.sources[i].schema)
      status = pipe_round_add_source(round, PIPE_SOURCE_RESOLVE, &p->plan.sources[i],
                                     NULL, err);
  if (!status) status = pipe_round_run(round, err);
  if (!status) pipe_round_keep(round);
  pipe_round_free(round);
  return status;
}

/* Sources that feed one sink must agree. */
weir_status plan_check_input(const pipe_plan *plan, const pipe_sink *s, weir_error *err) {
  if (s->takes_letters) return WEIR_OK;
  const weir_schema *first = plan->sources[s->from[0]].schema;
  for (size_t i = 1; i < s->n_from; i++) {
    const pipe_source *other = &plan->sources[s->from[i]];
    char what[200];
    snprintf(what, sizeof(what), "sink %s: source %s has other columns than source %s",
             s->name, other->name, s->from_names[0]);
    BASE_TRY(weir_schema_check(weir_schema_arrow(first), weir_schema_arrow(other->schema),
                               what, err));
  }
  return WEIR_OK;
}

/* Found before anything is made there: the first of two would else own what the user means for the
 * second. */
weir_status plan_check_target(const pipe_plan *plan, size_t sink, weir_error *err) {
  const pipe_sink *s = &plan->sinks[sink];
  for (size_t i = 0; i < sink && s->binding.identity; i++) {
    const pipe_sink *other = &plan->sinks[i];
    if (!other->binding.identity ||
        strcmp(other->binding.identity, s->binding.identity) != 0 ||
        strcmp(connector_spec_type(other->spec), connector_spec_type(s->spec)) != 0)
      continue;
    return weir_error_set(
        err, WEIR_E_INVALID_CONFIG, 0,
        "sink %s: it has the target of sink %s (%.*s); give each a target of its own",
        s->name, other->name, (int)strcspn(s->binding.identity, "\n"),
        s->binding.identity);
  }
  return WEIR_OK;
}

static weir_status bind_sinks(weir_pipeline *p, weir_error *err) {
  for (size_t i = 0; i < p->plan.n_sinks; i++) {
    pipe_sink *s = &p->plan.sinks[i];
    s->ns = (weir_namespace){.struct_size = sizeof(s->ns),
                             .pipeline = p->plan.top.pipeline,
                             .sink_id = s->name,
                             .may_replace = p->flags & WEIR_OPEN_NEW_DEPLOYMENT ? 1 : 0};
    memcpy(s->ns.identity, p->identity, sizeof(s->ns.identity));
    memcpy(s->ns.deployment, p->deployment, sizeof(s->ns.deployment));
    for (uint32_t k = 0; k < s->writers; k++)
      BASE_TRY(connector_sink_bind(s->first[k], &s->ns, err));
    BASE_TRY(plan_check_input(&p->plan, s, err));
  }
  return WEIR_OK;
}

/* Runs a hook of every sink: of participant 1, or of all. The round is given back for what it found. */
static weir_status call_sinks(weir_pipeline *p, pipe_hook hook, bool all,
                              pipe_round **out, weir_error *err) {
  size_t n = 0;
  pipe_round *round = NULL;
  weir_status status = WEIR_OK;
  for (size_t i = 0; i < p->plan.n_sinks; i++) n += p->plan.sinks[i].writers;
  BASE_TRY(pipe_round_new(n, &round, err));
  for (size_t i = 0; i < p->plan.n_sinks && !status; i++) {
    pipe_sink *s = &p->plan.sinks[i];
    weir_schema *input = hook == PIPE_RESOLVE ? plan_input(&p->plan, s) : NULL;
    if (hook == PIPE_FIND_CURSORS &&
        (s->contract.consistency != WEIR_COMMITTABLE || s->contract.claims))
      continue;
    for (uint32_t k = 0; k < (all ? s->writers : 1) && !status; k++) {
      bool opened =
          s->first[k] && connector_sink_state_of(s->first[k]) == CONNECTOR_SINK_OPEN;
      if (hook != PIPE_CLOSE || opened)
        status = pipe_round_add_sink(round, hook, s, k, input, err);
    }
  }
  if (!status) status = pipe_round_run(round, err);
  if (!status) pipe_round_keep(round);
  if (!status && out)
    *out = round;
  else
    pipe_round_free(round);
  return status;
}

void pipeline_close_unstarted(weir_pipeline *p) {
  weir_error error = {0};
  for (size_t i = 0; i < p->plan.n_sinks; i++)
    if (!p->plan.sinks || !p->plan.sinks[i].first) return;
  if (call_sinks(p, PIPE_CLOSE, true, NULL, &error))
    base_log_printf(&p->log, WEIR_LOG_WARN, "pipeline", "%s", error.message);
}

static const weir_store_binding *pinned(const weir_store_state *state, const char *sink) {
  for (size_t i = 0; i < state->n_bindings; i++)
    if (strcmp(state->bindings[i].sink_id, sink) == 0) return &state->bindings[i];
  return NULL;
}

/* A state that was adopted knows its sinks, and has no bindings yet. */
static bool has_decided(const weir_store_state *state, const char *sink) {
  for (size_t i = 0; i < state->n_decided; i++)
    if (strcmp(state->decided[i].sink_id, sink) == 0) return true;
  return false;
}

static weir_status pin(weir_pipeline *p, pipe_sink *s, weir_error *err) {
  weir_bytes text = {0};
  BASE_TRY(connector_binding_text(&s->binding, &text, err));
  const weir_store_binding *old = pinned(p->state, s->name);
  weir_status status = WEIR_OK;
  if (old) {
    status = connector_binding_compare(connector_spec_where(s->spec), old->data,
                                       old->size, text.data, text.size, err);
  } else {
    weir_store_binding now = {s->name, text.data, text.size};
    status = weir_store_pin(p->store, &now, 0, err);
    if (!status && p->state->n_decided && !has_decided(p->state, s->name))
      base_log_printf(
          &p->log, WEIR_LOG_WARN, connector_spec_where(s->spec),
          "this sink is new in the pipeline: it starts at the present position of its "
          "sources, earlier rows are not delivered to it");
  }
  weir_bytes_release(&text);
  return status;
}

/* ---- opening ------------------------------------------------------------------------------------ */

/* A connector cannot say which folder has the deployment that its target does not belong to. */
static weir_status claim_said(const weir_pipeline *p, weir_status status,
                              weir_error *err) {
  return status == WEIR_E_CONFLICT ? weir_error_prefix(err, status, "%s", p->state_name)
                                   : status;
}

/* A store without decisions beside a target with a cursor of this pipeline: the state was lost. Asked of
 * sinks without claims alone: where there is one, prepare_schema has said whose the target is. */
static weir_status refuse_lost_state(weir_pipeline *p, weir_error *err) {
  pipe_round *round = NULL;
  const pipe_sink *s = NULL;
  weir_status status = WEIR_OK;
  if (p->state->n_decided || p->flags & WEIR_OPEN_NEW_DEPLOYMENT) return WEIR_OK;
  BASE_TRY(call_sinks(p, PIPE_FIND_CURSORS, false, &round, err));
  const weir_cursor_list *list = NULL;
  for (size_t k = 0; (list = pipe_round_cursors(round, k, &s)) && !status; k++) {
    for (size_t i = 0; i < list->n && !status; i++) {
      if (memcmp(list->v[i].deployment, p->deployment, WEIR_UUID_SIZE) == 0) continue;
      char uuid[WEIR_UUID_TEXT];
      weir_uuid_format(list->v[i].deployment, uuid);
      status = weir_error_set(
          err, WEIR_E_CONFLICT, 0,
          "%s: the target was written by deployment %s of pipeline %s up to checkpoint "
          "%" PRIu64
          ", but the %s knows nothing of it; bring that back, have it "
          "made anew (`weir adopt`), or deliver everything again with `weir run "
          "--new-deployment`",
          connector_spec_where(s->spec), uuid, p->plan.top.pipeline,
          list->v[i].cursor.checkpoint, p->state_name);
    }
  }
  pipe_round_free(round);
  return status;
}

static weir_status prepare_and_open_sinks(weir_pipeline *p, weir_error *err) {
  BASE_TRY(claim_said(p, call_sinks(p, PIPE_PREPARE, false, NULL, err), err));
  for (size_t i = 0; i < p->plan.n_sinks; i++) BASE_TRY(pin(p, &p->plan.sinks[i], err));
  BASE_TRY(call_sinks(p, PIPE_OPEN, true, NULL, err));
  return refuse_lost_state(p, err);
}

static void first_figures(weir_pipeline *p) {
  for (size_t i = 0; i < p->plan.n_sinks; i++) {
    const char *name = p->plan.sinks[i].name;
    for (size_t k = 0; k < p->state->n_decided; k++) {
      const weir_store_sink *d = &p->state->decided[k];
      if (d->cursor.checkpoint > p->decided_by) p->decided_by = d->cursor.checkpoint;
      if (strcmp(d->sink_id, name) != 0) continue;
      p->figures[i].rows = p->figures[i].rows_0 = d->rows;
      p->figures[i].bytes = p->figures[i].bytes_0 = d->bytes;
    }
    for (size_t k = 0; k < p->state->n_seen; k++)
      if (strcmp(p->state->seen[k].sink_id, name) == 0)
        p->figures[i].seen = p->state->seen[k].cursor;
  }
}

static weir_status start(weir_pipeline *p, weir_error *err) {
  BASE_TRY(pipeline_use_kept_schemas(&p->plan, p->state, err));
  BASE_TRY(resolve_sources(p, err));
  BASE_TRY(pipeline_keep_schemas(p, err));
  BASE_TRY(bind_sinks(p, err));
  BASE_TRY(claim_said(p, call_sinks(p, PIPE_RESOLVE, false, NULL, err), err));
  for (size_t i = 0; i < p->plan.n_sinks; i++)
    BASE_TRY(plan_check_target(&p->plan, i, err));
  BASE_TRY(plan_admit(&p->plan, true, NULL, err));
  BASE_TRY(pipeline_make_coordinator(p, err));
  BASE_TRY(prepare_and_open_sinks(p, err));
  first_figures(p);
  BASE_TRY(pipeline_make_threads(p, err));
  weir_store_state_free(p->state);
  p->state = NULL;
  p->started = true;
  /* Recovery runs on the coordinator's thread; its failure is this call's. */
  weir_status status = WEIR_OK;
  pthread_mutex_lock(&p->lock);
  while (!p->over && !p->phase) base_cond_wait_until(&p->changed, &p->lock, BASE_FOREVER);
  if (p->over && p->final.type == WEIR_EVENT_FAILED) {
    *err = p->final.error;
    status = p->final.error.code;
  }
  pthread_mutex_unlock(&p->lock);
  return status;
}

/* Sinks that were bound cannot be bound again, so there is one try. */
weir_status pipeline_start(weir_pipeline *p, weir_error *err) {
  if (!p->start_error.code) {
    weir_error error = {0};
    weir_status status = start(p, &error);
    if (!status) return WEIR_OK;
    error.code = status;
    p->start_error = error;
  }
  if (err) *err = p->start_error;
  return p->start_error.code;
}

static weir_status init_in_place(weir_pipeline *p, weir_error *err) {
  weir_status status = base_mutex_init(&p->lock, err);
  if (status) return status;
  status = base_mutex_init(&p->start_lock, err);
  if (status) goto fail_start_lock;
  status = base_cond_init(&p->changed, err);
  if (status) goto fail_changed;
  p->last = &p->first;
  p->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  return WEIR_OK;
fail_changed:
  pthread_mutex_destroy(&p->start_lock);
fail_start_lock:
  pthread_mutex_destroy(&p->lock);
  return status;
}

weir_status weir_pipeline_open(const weir_config *config, const weir_host_options *host,
                               uint32_t flags, weir_pipeline **out, weir_error *err) {
  weir_pipeline *p = base_calloc(1, sizeof(*p), err);
  if (!p) return WEIR_E_NOMEM;
  weir_status status = init_in_place(p, err);
  if (status) {
    free(p);
    return status;
  }
  p->flags = flags;
  p->began = base_clock_mono();
  if (host) p->log = (base_log){host->log, host->log_ctx, host->log_level};
  if (p->event_fd < 0)
    BASE_GOTO(status, weir_error_errno(err, errno,
                                       "cannot make the pipeline's event descriptor"));
  BASE_GOTO(status, plan_init(&p->plan, config, &p->log, err));
  BASE_GOTO(status, plan_admit(&p->plan, false, NULL, err));
  p->lanes = base_calloc(p->plan.n_lanes, sizeof(*p->lanes), err);
  p->figures = base_calloc(p->plan.n_sinks, sizeof(*p->figures), err);
  status = WEIR_E_NOMEM;
  if (!p->lanes || !p->figures) goto out;
  for (uint32_t i = 0; i < p->plan.n_sources; i++) {
    const pipe_source *s = &p->plan.sources[i];
    for (uint32_t k = 0; k < s->lanes; k++)
      p->lanes[s->lane_0 + k].input = (weir_input){p, s->lane_0 + k, i};
  }
  BASE_GOTO(status, task_mailbox_new(&p->mailbox, err));
  if (flags & WEIR_OPEN_RECOVER_ONLY) BASE_GOTO(status, schemas_without_a_host(p, err));
  BASE_GOTO(status, pipeline_open_store(p, err));
  if (pipeline_ready(p)) status = pipeline_start(p, err);
out:
  if (status) {
    /* Of a config without a pipeline's name, the config's own message says enough. */
    if (p->plan.host) status = pipeline_error(p, status, err);
    weir_pipeline_close(p, 0, NULL);
  } else {
    *out = p;
  }
  return status;
}
