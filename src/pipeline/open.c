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

#define OPEN_TIMEOUT (30 * BASE_NS_PER_S) /* resolve, prepare, open: each */
#define BACKOFF_MIN (100 * BASE_NS_PER_MS)
#define BACKOFF_MAX (10 * BASE_NS_PER_S)
/* Generations of one participant in one run: a connector that hangs again and again is given up. */
#define MAX_GENERATIONS 20
#define IDENTITY_FORMAT "weir-pipeline-1"

weir_status pipeline_error(const weir_pipeline *p, weir_status status, weir_error *err) {
  const char *name = p->plan.top.pipeline;
  char said[160] = {0};
  if (!err || !name) return status;
  int size = snprintf(said, sizeof(said), "pipeline %s", name);
  const char *found = strstr(err->message, said);
  /* The config's messages have it behind the place in the file. */
  if (found && strchr(",: ", found[size])) return status;
  return weir_error_prefix(err, status, "pipeline %s", name);
}

static weir_call *arm(weir_call *call) {
  int64_t deadline = base_deadline(OPEN_TIMEOUT);
  connector_call_arm(call, deadline, deadline);
  return call;
}

/* ---- store ------------------------------------------------------------------------------------ */

/* SHA-256 of the pipeline's name and a format version, each framed by its length. */
static weir_status identify(weir_pipeline *p, weir_error *err) {
  char text[160] = {0};
  const char *name = p->plan.top.pipeline;
  int n = snprintf(text, sizeof(text), "%zu:%s%zu:%s", strlen(IDENTITY_FORMAT),
                   IDENTITY_FORMAT, strlen(name), name);
  return base_sha256(text, (size_t)n, p->identity, err);
}

static weir_status put_state_aside(const weir_pipeline *p, weir_error *err) {
  weir_store *old = NULL;
  weir_status status = weir_store_open(p->state_dir, p->plan.top.pipeline, &old, err);
  /* Else somebody owns it, or it is another pipeline's. */
  if (status && status != WEIR_E_CORRUPT) return status;
  weir_store_close(old);
  status = WEIR_OK;
  char *aside = base_format(err, "%s.before-%" PRId64, p->state_dir,
                            base_clock_wall() / BASE_NS_PER_S);
  if (!aside) return WEIR_E_NOMEM;
  if (rename(p->state_dir, aside))
    status = base_io_error(err, errno, "rename", p->state_dir);
  if (!status)
    base_log_printf(
        &p->log, WEIR_LOG_WARN, "pipeline",
        "new deployment: everything is delivered again; the old state is kept in %s",
        aside);
  free(aside);
  return status;
}

static weir_status open_store(weir_pipeline *p, weir_error *err) {
  BASE_TRY(identify(p, err));
  p->state_dir = base_strdup(p->plan.top.state, err);
  if (!p->state_dir) return WEIR_E_NOMEM;
  if (p->flags & WEIR_OPEN_NEW_DEPLOYMENT) BASE_TRY(put_state_aside(p, err));
  BASE_TRY(weir_store_open(p->state_dir, p->plan.top.pipeline, &p->store, err));
  BASE_TRY(weir_store_load(p->store, &p->state, err));
  memcpy(p->deployment, p->state->deployment, sizeof(p->deployment));
  p->token = p->state->token;
  return WEIR_OK;
}

/* ---- schemas and bindings ------------------------------------------------------------------- */

bool pipeline_ready(const weir_pipeline *p) {
  for (size_t i = 0; i < p->plan.n_sources; i++)
    if (p->plan.sources[i].push && !p->plan.sources[i].schema) return false;
  return true;
}

static weir_status resolve_sources(weir_pipeline *p, weir_error *err) {
  weir_call call = {0};
  for (size_t i = 0; i < p->plan.n_sources; i++) {
    pipe_source *s = &p->plan.sources[i];
    if (!s->schema)
      BASE_TRY(connector_source_resolve_schema(s->source, arm(&call), &s->schema, err));
  }
  return WEIR_OK;
}

/* Sources that feed one sink must agree. */
static weir_status same_input(const weir_pipeline *p, const pipe_sink *s,
                              weir_error *err) {
  const weir_schema *first = p->plan.sources[s->from[0]].schema;
  for (size_t i = 1; i < s->n_from; i++) {
    const pipe_source *other = &p->plan.sources[s->from[i]];
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
static weir_status own_target(const weir_pipeline *p, size_t sink, weir_error *err) {
  const pipe_sink *s = &p->plan.sinks[sink];
  for (size_t i = 0; i < sink && s->binding.identity; i++) {
    const pipe_sink *other = &p->plan.sinks[i];
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

static weir_status resolve_sinks(weir_pipeline *p, weir_error *err) {
  weir_call call = {0};
  for (size_t i = 0; i < p->plan.n_sinks; i++) {
    pipe_sink *s = &p->plan.sinks[i];
    s->ns = (weir_namespace){.struct_size = sizeof(s->ns),
                             .pipeline = p->plan.top.pipeline,
                             .sink_id = s->name};
    memcpy(s->ns.identity, p->identity, sizeof(s->ns.identity));
    memcpy(s->ns.deployment, p->deployment, sizeof(s->ns.deployment));
    for (uint32_t k = 0; k < s->writers; k++)
      BASE_TRY(connector_sink_bind(s->first[k], &s->ns, err));
    BASE_TRY(same_input(p, s, err));
    BASE_TRY(connector_sink_resolve_schema(
        s->first[0], arm(&call), p->plan.sources[s->from[0]].schema, &s->binding, err));
    BASE_TRY(own_target(p, i, err));
  }
  return WEIR_OK;
}

static const weir_store_binding *pinned(const weir_store_state *state, const char *sink) {
  for (size_t i = 0; i < state->n_bindings; i++)
    if (strcmp(state->bindings[i].sink_id, sink) == 0) return &state->bindings[i];
  return NULL;
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
    if (!status && p->state->n_decided)
      base_log_printf(
          &p->log, WEIR_LOG_WARN, connector_spec_where(s->spec),
          "this sink is new in the pipeline: it starts at the present position of its "
          "sources, earlier rows are not delivered to it");
  }
  weir_bytes_release(&text);
  return status;
}

/* A sink that left the config must owe nothing. */
static weir_status removed_sinks(const weir_pipeline *p, weir_error *err) {
  const weir_store_state *state = p->state;
  for (size_t i = 0; i < state->n_attempts; i++) {
    const weir_store_attempt *a = &state->attempts[i];
    if (a->state != WEIR_ATTEMPT_COMMIT) continue;
    for (size_t k = 0; k < a->n_sinks; k++) {
      const char *id = a->sinks[k].sink_id;
      uint64_t seen = 0;
      bool there = false;
      for (size_t j = 0; j < p->plan.n_sinks && !there; j++)
        there = strcmp(p->plan.sinks[j].name, id) == 0;
      for (size_t j = 0; j < state->n_seen; j++)
        if (strcmp(state->seen[j].sink_id, id) == 0)
          seen = state->seen[j].cursor.checkpoint;
      if (!there && a->sinks[k].has_rows && a->attempt > seen)
        return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                              "pipeline %s: sink %s was removed from the config, but its "
                              "target does not show attempt "
                              "%" PRIu64 " yet; put it back and run `weir recover` first",
                              p->plan.top.pipeline, id, a->attempt);
    }
  }
  return WEIR_OK;
}

/* ---- opening ------------------------------------------------------------------------------------ */

/* A store without decisions beside a target with a cursor of this pipeline: the state was lost. */
static weir_status refuse_lost_state(weir_pipeline *p, pipe_sink *s, weir_error *err) {
  if (s->contract.consistency != WEIR_COMMITTABLE || p->state->n_decided ||
      p->flags & WEIR_OPEN_NEW_DEPLOYMENT)
    return WEIR_OK;
  weir_call call = {0};
  weir_cursor_list list = {0};
  BASE_TRY(connector_sink_find_cursors(s->first[0], arm(&call), &list, err));
  weir_status status = WEIR_OK;
  for (size_t i = 0; i < list.n && !status; i++) {
    if (memcmp(list.v[i].deployment, p->deployment, WEIR_UUID_SIZE) == 0) continue;
    char uuid[BASE_UUID_TEXT];
    base_uuid_format(list.v[i].deployment, uuid);
    status = weir_error_set(err, WEIR_E_CONFLICT, 0,
                            "%s: the target was written by deployment %s of pipeline %s "
                            "up to checkpoint %" PRIu64
                            ", but the state folder %s knows nothing of it; bring that "
                            "folder back, or deliver everything "
                            "again with `weir run --new-deployment`",
                            connector_spec_where(s->spec), uuid, p->plan.top.pipeline,
                            list.v[i].cursor.checkpoint, p->state_dir);
  }
  if (list.release) list.release(&list);
  return status;
}

static weir_status prepare_and_open_sinks(weir_pipeline *p, weir_error *err) {
  weir_call call = {0};
  for (size_t i = 0; i < p->plan.n_sinks; i++) {
    pipe_sink *s = &p->plan.sinks[i];
    BASE_TRY(connector_sink_prepare_schema(s->first[0], arm(&call), &s->binding, err));
    BASE_TRY(pin(p, s, err));
  }
  for (size_t i = 0; i < p->plan.n_sinks; i++) {
    pipe_sink *s = &p->plan.sinks[i];
    for (uint32_t k = 0; k < s->writers; k++)
      BASE_TRY(connector_sink_open(s->first[k], arm(&call), &s->binding, err));
    BASE_TRY(refuse_lost_state(p, s, err));
  }
  return WEIR_OK;
}

static weir_status make_lane(weir_pipeline *p, uint32_t source, uint32_t k,
                             weir_error *err) {
  const pipe_source *s = &p->plan.sources[source];
  uint32_t index = s->lane_0 + k;
  pipe_lane *lane = &p->lanes[index];
  lane->name =
      s->push ? base_format(err, "%s/%u", s->name, k) : base_strdup(s->name, err);
  if (!lane->name) return WEIR_E_NOMEM;
  lane->source = source;
  lane->input = (weir_input){p, index, source};
  for (size_t i = 0; i < p->state->n_positions; i++) {
    const weir_store_position *at = &p->state->positions[i];
    if (strcmp(at->source, lane->name) != 0) continue;
    lane->decided_rows = lane->rows_0 = at->rows;
    if (at->present) BASE_TRY(weir_bytes_copy(&lane->decided, at->data, at->size, err));
  }
  task_lane_config config = {.index = index,
                             .name = lane->name,
                             .mailbox = p->mailbox,
                             .rows = lane->decided_rows,
                             .on_room = s->push ? pipeline_on_room : NULL,
                             .ctx = p};
  return task_lane_new(&config, &lane->lane, err);
}

static weir_status make_actors(weir_pipeline *p, uint32_t index, weir_error *err) {
  pipe_sink *s = &p->plan.sinks[index];
  for (uint32_t k = 0; k < s->writers; k++) {
    task_actor_config config = {
        .sink = index,
        .participant = k + 1,
        .name = s->name,
        .ns = &s->ns,
        .mailbox = p->mailbox,
        .n_lanes = p->plan.n_lanes,
        .fed = s->fed,
        .queue_bytes = (uint64_t)p->plan.top.queue_bytes,
        .committable = s->contract.consistency == WEIR_COMMITTABLE,
        .overlap = s->contract.overlap,
        .cas_commit = s->contract.cas_commit,
        .cancel_safe = connector_sink_is_cancel_safe(s->first[k]),
        .write_timeout_ns = s->write_timeout_ns,
        .flush_interval_ns = s->flush_interval_ns,
        .call_timeout_ns = p->plan.top.timeout_ns};
    BASE_TRY(task_actor_new(&config, &s->actors[k], err));
  }
  for (size_t k = 0; k < s->n_from; k++) {
    const pipe_source *source = &p->plan.sources[s->from[k]];
    for (uint32_t l = 0; l < source->lanes; l++)
      BASE_TRY(task_lane_connect(p->lanes[source->lane_0 + l].lane, s->actors, s->writers,
                                 err));
  }
  return WEIR_OK;
}

static weir_status make_coordinator(weir_pipeline *p, weir_error *err) {
  weir_status status = WEIR_E_NOMEM;
  bool recover_only = p->flags & WEIR_OPEN_RECOVER_ONLY;
  coord_sink *sinks = base_calloc(p->plan.n_sinks, sizeof(*sinks), err);
  const char **lanes = base_calloc(p->plan.n_lanes, sizeof(*lanes), err);
  if (!sinks || !lanes) goto out;
  for (size_t i = 0; i < p->plan.n_sinks; i++) {
    const pipe_sink *s = &p->plan.sinks[i];
    sinks[i] = (coord_sink){.sink_id = s->name,
                            .participants = s->writers,
                            .committable = s->contract.consistency == WEIR_COMMITTABLE,
                            .overlap = s->contract.overlap};
  }
  for (uint32_t i = 0; i < p->plan.n_lanes; i++) lanes[i] = p->lanes[i].name;
  coord_config config = {.sinks = sinks,
                         .n_sinks = (uint32_t)p->plan.n_sinks,
                         .lanes = lanes,
                         .n_lanes = recover_only ? 0 : p->plan.n_lanes,
                         .interval_ns = p->plan.top.interval_ns,
                         .timeout_ns = p->plan.top.timeout_ns,
                         .backoff_min_ns = BACKOFF_MIN,
                         .backoff_max_ns = BACKOFF_MAX};
  status = coord_new(&config, p->state, p->token, &p->coord, err);
out:
  free(sinks);
  free(lanes);
  return status;
}

static weir_status start_threads(weir_pipeline *p, weir_error *err) {
  /* First of all: a source may have come to its end before the last thread has started. */
  coord_event start = {.type = COORD_START, .sink = COORD_NONE, .lane = COORD_NONE};
  task_mailbox_post(p->mailbox, &start);
  for (size_t i = 0; i < p->plan.n_sinks; i++) {
    pipe_sink *s = &p->plan.sinks[i];
    for (uint32_t k = 0; k < s->writers; k++) {
      BASE_TRY(task_actor_start(s->actors[k], s->first[k], NULL, err));
      s->first[k] = NULL;
    }
  }
  weir_call call = {0};
  for (uint32_t i = 0; i < p->plan.n_lanes && !(p->flags & WEIR_OPEN_RECOVER_ONLY); i++) {
    pipe_source *s = &p->plan.sources[p->lanes[i].source];
    if (s->push) continue;
    BASE_TRY(connector_source_open(s->source, arm(&call), &p->lanes[i].decided, err));
    task_source_config config = {.lane = p->lanes[i].lane,
                                 .lane_index = i,
                                 .name = p->lanes[i].name,
                                 .mailbox = p->mailbox,
                                 .call_timeout_ns = p->plan.top.timeout_ns};
    BASE_TRY(task_source_start(&config, s->source, &p->lanes[i].loop, err));
    s->source = NULL;
  }
  return base_thread_start(&p->thread, "weir-coord", pipeline_main, p, err);
}

static void first_figures(weir_pipeline *p) {
  for (size_t i = 0; i < p->plan.n_sinks; i++) {
    for (size_t k = 0; k < p->state->n_decided; k++) {
      const weir_store_sink *d = &p->state->decided[k];
      if (strcmp(d->sink_id, p->plan.sinks[i].name) != 0) continue;
      p->figures[i].rows = p->figures[i].rows_0 = d->rows;
      p->figures[i].bytes = p->figures[i].bytes_0 = d->bytes;
    }
    for (size_t k = 0; k < p->state->n_seen; k++)
      if (strcmp(p->state->seen[k].sink_id, p->plan.sinks[i].name) == 0)
        p->figures[i].seen = p->state->seen[k].cursor;
  }
}

weir_status pipeline_start(weir_pipeline *p, weir_error *err) {
  BASE_TRY(resolve_sources(p, err));
  BASE_TRY(resolve_sinks(p, err));
  BASE_TRY(plan_admit(&p->plan, true, NULL, err));
  BASE_TRY(removed_sinks(p, err));
  BASE_TRY(prepare_and_open_sinks(p, err));
  first_figures(p);
  for (uint32_t i = 0; i < p->plan.n_sources; i++)
    for (uint32_t k = 0; k < p->plan.sources[i].lanes; k++)
      BASE_TRY(make_lane(p, i, k, err));
  for (uint32_t i = 0; i < p->plan.n_sinks; i++) BASE_TRY(make_actors(p, i, err));
  BASE_TRY(make_coordinator(p, err));
  BASE_TRY(start_threads(p, err));
  p->started = true;
  /* Recovery runs on the coordinator's thread; its failure is this call's. */
  weir_status status = WEIR_OK;
  pthread_mutex_lock(&p->lock);
  while (!p->over && !p->phase) base_cond_wait_until(&p->changed, &p->lock, BASE_FOREVER);
  if (p->over && p->final.type == WEIR_EVENT_FAILED) {
    if (err) *err = p->final.error;
    status = p->final.error.code;
  }
  pthread_mutex_unlock(&p->lock);
  return status;
}

weir_status pipeline_renew(weir_pipeline *p, uint32_t sink, uint32_t participant,
                           weir_error *err) {
  pipe_sink *s = &p->plan.sinks[sink];
  uint32_t number = ++s->generations[participant - 1];
  weir_contract contract = {0};
  connector_sink *made = NULL;
  if (number > MAX_GENERATIONS)
    return weir_error_set(
        err, WEIR_E_TIMEOUT, 0,
        "%s: participant %u was made anew %d times in this run and still does not "
        "come back in time; look at its target, then run again",
        connector_spec_where(s->spec), participant, MAX_GENERATIONS - 1);
  BASE_TRY(connector_sink_new(s->spec, participant, number, &made, err));
  weir_status status = connector_sink_contract(made, &contract, err);
  if (!status) status = connector_sink_bind(made, &s->ns, err);
  if (!status)
    status = task_actor_start(s->actors[participant - 1], made, &s->binding, err);
  if (status) connector_sink_unref(made);
  return status;
}

static weir_status init_in_place(weir_pipeline *p, weir_error *err) {
  weir_status status = base_mutex_init(&p->lock, err);
  if (status) return status;
  status = base_cond_init(&p->changed, err);
  if (status) {
    pthread_mutex_destroy(&p->lock);
    return status;
  }
  p->last = &p->first;
  p->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  return WEIR_OK;
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
  BASE_GOTO(status, task_mailbox_new(&p->mailbox, err));
  BASE_GOTO(status, open_store(p, err));
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
