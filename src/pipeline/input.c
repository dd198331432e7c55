/* SPDX-License-Identifier: Apache-2.0 */
/* What a host calls while a pipeline runs: inputs, events, the end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weir/plugin.h>

#include "arrow/arrow.h"
#include "pipeline/pipeline.h"

/* ---- events ----------------------------------------------------------------------------------- */

void pipeline_wake(weir_pipeline *p) {
  uint64_t one = 1;
  ssize_t ignored = write(p->event_fd, &one, sizeof(one));
  (void)ignored; /* EAGAIN: it is readable already */
  pthread_cond_broadcast(&p->changed);
}

/* No event waits: the descriptor is not readable any more. Lock held. */
static void calm(weir_pipeline *p) {
  uint64_t count = 0;
  if (p->first || p->over) return;
  ssize_t ignored = read(p->event_fd, &count, /* NOLINT(clang-analyzer-unix.*) */
                         sizeof(count));      /* does not block */
  (void)ignored;                              /* EAGAIN: it was not */
}

/* Lock held. Marks that need no queue of their own: a later one says all that an earlier one did. */
static bool merged(weir_pipeline *p, int32_t type, uint64_t checkpoint,
                   const weir_input *input) {
  for (pipe_event *e = p->first; e; e = e->link) {
    if (e->event.type != type || e->event.input != input) continue;
    e->event.checkpoint = checkpoint;
    return true;
  }
  return false;
}

void pipeline_post_event(weir_pipeline *p, int32_t type, uint64_t checkpoint,
                         weir_input *input, const weir_error *error) {
  pthread_mutex_lock(&p->lock);
  pipe_event *e = NULL;
  if (!merged(p, type, checkpoint, input) && (e = calloc(1, sizeof(*e)))) {
    e->event = (weir_event){.struct_size = sizeof(weir_event),
                            .type = type,
                            .checkpoint = checkpoint,
                            .input = input};
    if (error) e->event.error = *error;
    *p->last = e;
    p->last = &e->link;
  }
  pipeline_wake(p);
  pthread_mutex_unlock(&p->lock);
}

void pipeline_drop_events(weir_pipeline *p, int32_t type, const weir_input *input) {
  pthread_mutex_lock(&p->lock);
  p->last = &p->first;
  while (*p->last) {
    pipe_event *e = *p->last;
    if (e->event.type == type && e->event.input == input) {
      *p->last = e->link;
      free(e);
    } else {
      p->last = &e->link;
    }
  }
  calm(p);
  pthread_mutex_unlock(&p->lock);
}

void pipeline_on_room(void *ctx, uint32_t lane) {
  weir_pipeline *p = ctx;
  pipeline_post_event(p, WEIR_EVENT_ROOM, 0, &p->lanes[lane].input, NULL);
}

int weir_pipeline_fd(const weir_pipeline *p) {
  return p->event_fd;
}

weir_status weir_pipeline_next(weir_pipeline *p, weir_event *out, int64_t timeout_ns,
                               weir_error *err) {
  (void)err;
  int64_t deadline = timeout_ns < 0 ? BASE_FOREVER : base_deadline(timeout_ns);
  pthread_mutex_lock(&p->lock);
  while (!p->first && !p->over && timeout_ns != 0)
    if (!base_cond_wait_until(&p->changed, &p->lock, deadline)) break;
  weir_event event = {.struct_size = sizeof(weir_event), .type = WEIR_EVENT_NONE};
  pipe_event *e = p->first;
  if (e) {
    event = e->event;
    p->first = e->link;
    if (!p->first) p->last = &p->first;
  } else if (p->over) {
    event = p->final;
  }
  calm(p);
  pthread_mutex_unlock(&p->lock);
  free(e);
  uint32_t size = out->struct_size;
  if (!size || size > sizeof(event)) size = sizeof(event);
  memcpy(out, &event, size);
  out->struct_size = size;
  return WEIR_OK;
}

/* ---- inputs -------------------------------------------------------------------------------------- */

static weir_status find_push(weir_pipeline *p, const char *name, uint32_t lane,
                             uint32_t *out, weir_error *err) {
  for (uint32_t i = 0; i < p->plan.n_sources; i++) {
    const pipe_source *s = &p->plan.sources[i];
    if (strcmp(s->name, name) != 0) continue;
    if (!s->push)
      return weir_error_set(
          err, WEIR_E_INVALID_CONFIG, 0,
          "source %s is of type %s; only a source of type push takes batches", name,
          connector_spec_type(s->spec));
    if (lane >= s->lanes)
      return weir_error_set(
          err, WEIR_E_INVALID_CONFIG, 0,
          "source %s has lanes 0 to %u; set its option `lanes` for more", name,
          s->lanes - 1);
    *out = i;
    return WEIR_OK;
  }
  return weir_error_set(err, WEIR_E_NOT_FOUND, 0, "pipeline %s has no source '%s'",
                        p->plan.top.pipeline, name);
}

weir_status pipeline_give_schema(pipe_source *s, const struct ArrowSchema *schema,
                                 weir_error *err) {
  if (!schema) {
    if (s->schema) return WEIR_OK;
    weir_call call = {0};
    connector_call_arm(&call, BASE_FOREVER, BASE_FOREVER);
    return connector_source_resolve_schema(s->source, &call, &s->schema, err);
  }
  if (!s->schema) return weir_schema_copy(schema, &s->schema, err);
  char what[160];
  snprintf(what, sizeof(what), "source %s: another schema was given before", s->name);
  return weir_schema_check(weir_schema_arrow(s->schema), schema, what, err);
}

weir_status weir_pipeline_input(weir_pipeline *p, const char *source, uint32_t lane,
                                const struct ArrowSchema *schema, weir_input **out,
                                weir_error *err) {
  uint32_t index = 0;
  BASE_TRY(find_push(p, source, lane, &index, err));
  pipe_source *s = &p->plan.sources[index];
  pthread_mutex_lock(&p->start_lock);
  weir_status status = pipeline_give_schema(s, schema, err);
  if (!status && !p->started && pipeline_ready(p)) {
    status = pipeline_start(p, err);
    if (status) status = pipeline_error(p, status, err);
  }
  pthread_mutex_unlock(&p->start_lock);
  if (!status) *out = &p->lanes[s->lane_0 + lane].input;
  return status;
}

/* Inputs of sources whose schemas came first exist before the lanes do. */
static weir_status live_lane(const weir_input *input, task_lane **out, weir_error *err) {
  if (!input->pipeline->started)
    return weir_error_set(
        err, WEIR_E_INVALID_STATE, 0,
        "pipeline %s has not started: get the inputs of all push sources first",
        input->pipeline->plan.top.pipeline);
  *out = input->pipeline->lanes[input->lane].lane;
  return WEIR_OK;
}

weir_status weir_input_position(weir_input *input, weir_bytes *out, weir_error *err) {
  weir_pipeline *p = input->pipeline;
  task_lane *lane = NULL;
  BASE_TRY(live_lane(input, &lane, err));
  task_lane_wish wish = {0};
  task_lane_wishes(lane, 0, 1, &wish);
  /* The rewind is under way: what is decided is known in a moment. */
  while (wish.stopped && !wish.seek && !wish.finished)
    task_lane_wishes(lane, BASE_FOREVER, 1, &wish);
  weir_bytes position = {0};
  if (task_lane_take_seek(lane, &position)) {
    pipeline_drop_events(p, WEIR_EVENT_REWIND, input);
    task_lane_live(lane, NULL);
    *out = position;
    return WEIR_OK;
  }
  if (wish.finished && wish.stopped)
    return weir_error_set(err, WEIR_E_ENDED, 0, "source %s: the pipeline has stopped",
                          p->lanes[input->lane].name);
  weir_status status = WEIR_OK;
  pthread_mutex_lock(&p->lock);
  const weir_bytes *decided = &p->lanes[input->lane].decided;
  if (decided->release)
    status = weir_bytes_copy(out, decided->data, decided->size, err);
  else
    *out = (weir_bytes){0};
  pthread_mutex_unlock(&p->lock);
  return status;
}

weir_status weir_input_push(weir_input *input, struct ArrowArray *array,
                            int64_t timeout_ns, weir_error *err) {
  weir_pipeline *p = input->pipeline;
  task_lane *lane = NULL;
  weir_batch *batch = NULL;
  BASE_TRY(live_lane(input, &lane, err));
  int64_t deadline = timeout_ns < 0 ? BASE_FOREVER : base_deadline(timeout_ns);
  BASE_TRY(task_lane_wait_unheld(lane, deadline, err));
  weir_schema *schema = p->plan.sources[input->source].schema;
  BASE_TRY(arrow_batch_new_pushed(schema, array, &batch, err));
  weir_status status = task_lane_push(lane, batch, deadline, err);
  if (status)
    arrow_batch_give_back(batch, array);
  else
    weir_batch_unref(batch);
  return status;
}

static weir_status given_position(const void *data, size_t size, weir_bytes *out,
                                  weir_error *err) {
  if (size > WEIR_MAX_POSITION)
    return weir_error_set(err, WEIR_E_INVALID_STATE, 0,
                          "a position of %zu bytes; at most %u are kept", size,
                          WEIR_MAX_POSITION);
  if (!data && !size) return WEIR_OK;
  return weir_bytes_copy(out, data, size, err);
}

weir_status weir_input_barrier(weir_input *input, uint64_t checkpoint_id,
                               const void *position, size_t size, weir_error *err) {
  task_lane *lane = NULL;
  weir_bytes bytes = {0};
  BASE_TRY(live_lane(input, &lane, err));
  BASE_TRY(given_position(position, size, &bytes, err));
  weir_status status = task_lane_barrier(lane, checkpoint_id, &bytes, err);
  weir_bytes_release(&bytes);
  return status;
}

weir_status weir_input_end(weir_input *input, const void *position, size_t size,
                           weir_error *err) {
  task_lane *lane = NULL;
  weir_bytes bytes = {0};
  BASE_TRY(live_lane(input, &lane, err));
  BASE_TRY(given_position(position, size, &bytes, err));
  weir_status status = task_lane_end(lane, &bytes, err);
  weir_bytes_release(&bytes);
  return status;
}

/* ---- checkpoints and the end ---------------------------------------------------------------------- */

static void tell_coordinator(weir_pipeline *p, coord_event_type type) {
  coord_event event = {.type = type, .sink = COORD_NONE, .lane = COORD_NONE};
  task_mailbox_post(p->mailbox, &event);
}

weir_status weir_pipeline_checkpoint(weir_pipeline *p, uint64_t *checkpoint_id,
                                     weir_error *err) {
  if (!p->started)
    return weir_error_set(err, WEIR_E_INVALID_STATE, 0, "pipeline %s has not started",
                          p->plan.top.pipeline);
  tell_coordinator(p, COORD_CHECKPOINT);
  pthread_mutex_lock(&p->lock);
  *checkpoint_id = p->attempt;
  pthread_mutex_unlock(&p->lock);
  return WEIR_OK;
}

weir_status weir_pipeline_drain(weir_pipeline *p, weir_error *err) {
  if (!p->started)
    return weir_error_set(err, WEIR_E_INVALID_STATE, 0, "pipeline %s has not started",
                          p->plan.top.pipeline);
  pthread_mutex_lock(&p->lock);
  bool again = p->draining;
  p->draining = true;
  pthread_mutex_unlock(&p->lock);
  if (again) return WEIR_OK;
  for (uint32_t i = 0; i < p->plan.n_lanes; i++)
    if (p->lanes[i].loop) task_lane_drain(p->lanes[i].lane);
  tell_coordinator(p, COORD_DRAIN);
  return WEIR_OK;
}

/* Ends the coordinator's thread: after a drain that may take drain_ns, or at once. */
static weir_status end_coordinator(weir_pipeline *p, int64_t drain_ns, weir_error *err) {
  weir_status status = WEIR_OK;
  int64_t deadline = base_deadline(drain_ns);
  pthread_mutex_lock(&p->lock);
  while (!p->over && base_cond_wait_until(&p->changed, &p->lock, deadline)) continue;
  p->quit = true;
  if (!p->over)
    status = weir_error_set(
        err, WEIR_E_CANCELLED, 0,
        "pipeline %s: stopped before all was committed; run again to go on",
        p->plan.top.pipeline);
  else if (p->final.type == WEIR_EVENT_FAILED) {
    if (err) *err = p->final.error;
    status = p->final.error.code;
  }
  pthread_mutex_unlock(&p->lock);
  tell_coordinator(p, COORD_TICK);
  pthread_join(p->thread, NULL);
  return status;
}

typedef struct ending {
  int64_t began;
  weir_status status;
  weir_error *err;
} ending;

/* What a thread said when it ended. The close of a committable sink has nothing left to lose. */
static void took(weir_pipeline *p, ending *e, weir_status status, bool matters,
                 const weir_error *error) {
  if (!status) return;
  base_log_printf(&p->log, WEIR_LOG_ERROR, "pipeline", "%s", error->message);
  if (e->status || !matters) return;
  e->status = status;
  if (e->err) *e->err = *error;
}

/* All are asked before any is waited for: one that hangs takes no time from the others. */
static void stop_tasks(weir_pipeline *p, ending *e) {
  size_t n_sinks = p->plan.sinks ? p->plan.n_sinks : 0;
  uint32_t n_lanes = p->lanes ? p->plan.n_lanes : 0;
  for (uint32_t i = 0; i < n_lanes; i++)
    if (p->lanes[i].lane) task_lane_finish(p->lanes[i].lane);
  for (size_t i = 0; i < n_sinks; i++) {
    const pipe_sink *s = &p->plan.sinks[i];
    for (uint32_t k = 0; s->actors && k < s->writers; k++)
      if (s->actors[k]) task_actor_stop(s->actors[k]);
  }
  for (uint32_t i = 0; i < n_lanes; i++) {
    weir_error error = {0};
    int64_t deadline = 0, patience = p->plan.sources[p->lanes[i].source].read_timeout_ns;
    if (!p->lanes[i].loop) continue;
    if (__builtin_add_overflow(e->began, patience, &deadline)) deadline = BASE_FOREVER;
    weir_status status = task_source_join(p->lanes[i].loop, deadline, &error);
    took(p, e, status, true, &error);
  }
  for (size_t i = 0; i < n_sinks; i++) {
    const pipe_sink *s = &p->plan.sinks[i];
    for (uint32_t k = 0; s->actors && k < s->writers; k++) {
      weir_error error = {0};
      if (!s->actors[k]) continue;
      weir_status status = task_actor_join(s->actors[k], &error);
      /* A detached task may still want to log, so the host stays. */
      if (task_actor_detached(s->actors[k])) (void)connector_host_ref(p->plan.host);
      took(p, e, status,
           status == WEIR_E_TIMEOUT || s->contract.consistency != WEIR_COMMITTABLE,
           &error);
    }
  }
}

static void free_lanes(weir_pipeline *p) {
  /* A connector that was left behind may still ask. */
  if (p->plan.host) connector_host_serve(p->plan.host, NULL, NULL, NULL);
  for (uint32_t i = 0; p->lanes && i < p->plan.n_lanes; i++) {
    task_source_free(p->lanes[i].loop);
    task_lane_unref(p->lanes[i].lane);
    weir_bytes_release(&p->lanes[i].decided);
    weir_bytes_release(&p->lanes[i].begin);
    free(p->lanes[i].name);
  }
  for (size_t i = 0; p->plan.sinks && i < p->plan.n_sinks; i++)
    for (uint32_t k = 0; p->plan.sinks[i].actors && k < p->plan.sinks[i].writers; k++)
      task_actor_free(p->plan.sinks[i].actors[k]);
  task_mailbox_unref(p->mailbox);
  free(p->lanes);
}

weir_status weir_pipeline_close(weir_pipeline *p, int64_t drain_ns, weir_error *err) {
  if (!p) return WEIR_OK;
  ending e = {.err = err};
  if (p->started) {
    if (drain_ns > 0) (void)weir_pipeline_drain(p, NULL);
    e.status = end_coordinator(p, drain_ns, err);
  }
  e.began = base_clock_mono();
  stop_tasks(p, &e);
  pipeline_close_unstarted(p);
  weir_error error = {0};
  if (p->store && p->started && weir_store_flush(p->store, &error))
    base_log_printf(&p->log, WEIR_LOG_WARN, "store", "%s", error.message);
  weir_store_close(p->store);
  coord_free(p->coord);
  weir_store_state_free(p->state);
  if (p->event_fd >= 0) close(p->event_fd);
  free(p->state_name);
  for (size_t i = 0; p->figures && i < p->plan.n_sinks; i++) free(p->figures[i].unshown);
  free(p->figures);
  for (pipe_event *event = p->first; event;) {
    pipe_event *next = event->link;
    free(event);
    event = next;
  }
  free_lanes(p);
  plan_done(&p->plan);
  pthread_cond_destroy(&p->changed);
  pthread_mutex_destroy(&p->start_lock);
  pthread_mutex_destroy(&p->lock);
  free(p);
  return e.status;
}
