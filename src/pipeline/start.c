/* SPDX-License-Identifier: Apache-2.0 */
/* What runs a pipeline: lanes, coordinator, actors and their threads. */
#include <stdlib.h>
#include <string.h>

#include "pipeline/pipeline.h"

#define BACKOFF_MIN (100 * BASE_NS_PER_MS)
#define BACKOFF_MAX (10 * BASE_NS_PER_S)
/* Generations of one participant in one run: a connector that hangs again and again is given up. */
#define MAX_GENERATIONS 20

static weir_status make_lane(weir_pipeline *p, uint32_t source, uint32_t k,
                             weir_error *err) {
  const pipe_source *s = &p->plan.sources[source];
  uint32_t index = s->lane_0 + k;
  pipe_lane *lane = &p->lanes[index];
  lane->name =
      s->push ? base_format(err, "%s/%u", s->name, k) : base_strdup(s->name, err);
  if (!lane->name) return WEIR_E_NOMEM;
  lane->source = source;
  for (size_t i = 0; i < p->state->n_positions; i++) {
    const weir_store_position *at = &p->state->positions[i];
    if (strcmp(at->source, lane->name) != 0) continue;
    lane->decided_rows = lane->rows_0 = at->rows;
    lane->lost = lane->lost_0 = at->lost;
    if (at->present) BASE_TRY(weir_bytes_copy(&lane->decided, at->data, at->size, err));
  }
  BASE_TRY(pipeline_find_begin(p->state, lane, err));
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
        .mailbox = p->mailbox,
        .n_lanes = p->plan.n_lanes,
        .fed = s->fed,
        .n_feeders = plan_letter_feeders(&p->plan, index, p->plan.n_sinks),
        .sets_aside = s->letters != PIPE_NONE ? connector_spec_where(s->spec) : NULL,
        .queue_bytes = (uint64_t)p->plan.top.queue_bytes,
        .committable = s->contract.consistency == WEIR_COMMITTABLE,
        .overlap = s->contract.overlap,
        .cas_commit = s->contract.cas_commit,
        .cancel_safe = connector_sink_is_cancel_safe(s->first[k]),
        .flush_interval_ns = s->flush_interval_ns,
        .timeouts = s->timeouts};
    BASE_TRY(task_actor_new(&config, &s->actors[k], err));
  }
  for (size_t k = 0; k < s->n_from; k++) {
    const pipe_source *source = &p->plan.sources[s->from[k]];
    for (uint32_t l = 0; l < source->lanes; l++) {
      task_lane *lane = p->lanes[source->lane_0 + l].lane;
      if (s->takes_letters && source->letters == index)
        BASE_TRY(task_lane_connect_letters(lane, s->actors, s->writers, err));
      if (s->takes_letters) continue;
      task_router *router = NULL;
      if (s->key.release)
        BASE_TRY(
            task_router_new(s->name, source->schema, &s->key, s->writers, &router, err));
      if (router && s->letters != PIPE_NONE) task_router_pass_bad(router);
      BASE_TRY(task_lane_connect(lane, s->actors, s->writers, router, err));
    }
  }
  return WEIR_OK;
}

/* Each participant's bad rows, to the participants of the sink that takes them. */
static weir_status connect_letters(weir_pipeline *p, uint32_t index, weir_error *err) {
  const pipe_sink *s = &p->plan.sinks[index];
  if (s->letters == PIPE_NONE) return WEIR_OK;
  const pipe_sink *to = &p->plan.sinks[s->letters];
  uint32_t feeder = plan_letter_feeders(&p->plan, s->letters, index);
  for (uint32_t k = 0; k < s->writers; k++) {
    task_router *keys = NULL;
    if (s->key.release)
      BASE_TRY(task_router_new(s->name, p->plan.sources[s->from[0]].schema, &s->key,
                               s->writers, &keys, err));
    BASE_TRY(task_actor_connect_letters(s->actors[k], to->actors, to->writers, feeder + k,
                                        keys, err));
  }
  return WEIR_OK;
}

static bool is_ephemeral(const weir_pipeline *p, uint32_t lane) {
  return p->plan.sources[p->lanes[lane].source].contract.replay == WEIR_SOURCE_EPHEMERAL;
}

static weir_status make_coordinator(weir_pipeline *p, weir_error *err) {
  weir_status status = WEIR_E_NOMEM;
  bool recover_only = p->flags & WEIR_OPEN_RECOVER_ONLY;
  coord_sink *sinks = base_calloc(p->plan.n_sinks, sizeof(*sinks), err);
  const char **lanes = base_calloc(p->plan.n_lanes, sizeof(*lanes), err);
  uint8_t *ephemeral = base_calloc(p->plan.n_lanes, 1, err);
  if (!sinks || !lanes || !ephemeral) goto out;
  for (size_t i = 0; i < p->plan.n_sinks; i++) {
    const pipe_sink *s = &p->plan.sinks[i];
    sinks[i] = (coord_sink){.sink_id = s->name,
                            .participants = s->writers,
                            .committable = s->contract.consistency == WEIR_COMMITTABLE,
                            .overlap = s->contract.overlap,
                            .commit_interval_ns = s->contract.commit_interval_ns};
  }
  for (uint32_t i = 0; i < p->plan.n_lanes; i++) {
    lanes[i] = p->lanes[i].name;
    ephemeral[i] = is_ephemeral(p, i);
  }
  coord_config config = {.sinks = sinks,
                         .n_sinks = (uint32_t)p->plan.n_sinks,
                         .lanes = lanes,
                         .ephemeral = ephemeral,
                         .n_lanes = recover_only ? 0 : p->plan.n_lanes,
                         .interval_ns = p->plan.top.interval_ns,
                         .timeout_ns = p->plan.top.timeout_ns,
                         .backoff_min_ns = BACKOFF_MIN,
                         .backoff_max_ns = BACKOFF_MAX};
  status = coord_new(&config, p->state, p->token, &p->coord, err);
out:
  free(sinks);
  free(lanes);
  free(ephemeral);
  return status;
}

weir_status pipeline_make_coordinator(weir_pipeline *p, weir_error *err) {
  for (uint32_t i = 0; i < p->plan.n_sources; i++)
    for (uint32_t k = 0; k < p->plan.sources[i].lanes; k++)
      BASE_TRY(make_lane(p, i, k, err));
  return make_coordinator(p, err);
}

static weir_status start_sinks(weir_pipeline *p, weir_error *err) {
  for (size_t i = 0; i < p->plan.n_sinks; i++) {
    pipe_sink *s = &p->plan.sinks[i];
    for (uint32_t k = 0; k < s->writers; k++) {
      BASE_TRY(task_actor_start(s->actors[k], s->first[k], NULL, err));
      s->first[k] = NULL;
    }
  }
  return WEIR_OK;
}

/* weir's own sources; those that the host pushes have no loop. */
static weir_status start_sources(weir_pipeline *p, weir_error *err) {
  pipe_round *round = NULL;
  BASE_TRY(pipe_round_new(p->plan.n_lanes, &round, err));
  weir_status status = WEIR_OK;
  for (uint32_t i = 0; i < p->plan.n_lanes && !status; i++) {
    pipe_source *s = &p->plan.sources[p->lanes[i].source];
    if (!s->push)
      status = pipe_round_add_source(round, PIPE_SOURCE_OPEN, s,
                                     pipeline_lane_begin(&p->lanes[i]), err);
  }
  if (!status) status = pipe_round_run(round, err);
  pipe_round_free(round);
  if (!status) status = pipeline_keep_begins(p, err);
  for (uint32_t i = 0; i < p->plan.n_lanes && !status; i++) {
    pipe_source *s = &p->plan.sources[p->lanes[i].source];
    if (s->push) continue;
    task_source_config config = {.lane = p->lanes[i].lane,
                                 .lane_index = i,
                                 .name = p->lanes[i].name,
                                 .mailbox = p->mailbox,
                                 .ephemeral = is_ephemeral(p, i),
                                 .call_timeout_ns = s->read_timeout_ns};
    status = task_source_start(&config, s->source, &p->lanes[i].loop, err);
    if (!status) s->source = NULL;
  }
  return status;
}

static void ask_checkpoint(void *ctx) {
  weir_pipeline *p = ctx;
  coord_event event = {.type = COORD_CHECKPOINT, .sink = COORD_NONE, .lane = COORD_NONE};
  task_mailbox_post(p->mailbox, &event);
}

static void hold_sources(void *ctx, int32_t on) {
  weir_pipeline *p = ctx;
  for (uint32_t i = 0; i < p->plan.n_lanes; i++) task_lane_hold(p->lanes[i].lane, on);
}

weir_status pipeline_make_threads(weir_pipeline *p, weir_error *err) {
  connector_host_serve(p->plan.host, p, ask_checkpoint, hold_sources);
  for (uint32_t i = 0; i < p->plan.n_sinks; i++) BASE_TRY(make_actors(p, i, err));
  for (uint32_t i = 0; i < p->plan.n_sinks; i++) BASE_TRY(connect_letters(p, i, err));
  BASE_TRY(start_sinks(p, err));
  /* The first event, so before whoever may post another. */
  coord_event start = {.type = COORD_START, .sink = COORD_NONE, .lane = COORD_NONE};
  task_mailbox_post(p->mailbox, &start);
  if (!(p->flags & WEIR_OPEN_RECOVER_ONLY)) BASE_TRY(start_sources(p, err));
  return base_thread_start(&p->thread, "weir-coord", pipeline_main, p, err);
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
