/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The coordinator's thread: takes events out of the mailbox, steps the state machine, executes its
 * commands. The store is written here and nowhere else.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <weir/plugin.h>

#include "pipeline/pipeline.h"

/* How often deadlines of calls are looked at, at the least: how late a hung call can be noticed. Where
 * deadlines are short, in proportion. */
static int64_t watch_interval(const weir_pipeline *p) {
  int64_t least = 2 * BASE_NS_PER_S;
  if (p->plan.top.timeout_ns < least) least = p->plan.top.timeout_ns;
  for (size_t i = 0; i < p->plan.n_sinks; i++) {
    const task_timeouts *t = &p->plan.sinks[i].timeouts;
    const int64_t of[] = {t->open,   t->begin,    t->write, t->pre_commit,
                          t->commit, t->rollback, t->clean, t->flush};
    for (size_t k = 0; k < BASE_COUNT(of); k++)
      if (of[k] < least) least = of[k];
  }
  for (size_t i = 0; i < p->plan.n_sources; i++)
    if (p->plan.sources[i].read_timeout_ns < least)
      least = p->plan.sources[i].read_timeout_ns;
  return least / 8;
}

static void answer(weir_pipeline *p, coord_event event, weir_status status,
                   const weir_error *error) {
  event.error = status ? error : NULL;
  task_mailbox_post(p->mailbox, &event);
}

static void send(weir_pipeline *p, const coord_command *c, task_job_type type,
                 coord_event_type failed, weir_commit_batch *commit,
                 weir_abort_batch *abort_batch) {
  task_job *job = calloc(1, sizeof(*job));
  uint32_t participant = type >= TASK_TAKE_OVER ? 1 : c->participant;
  if (!job) {
    weir_error error = {0};
    weir_error_set(&error, WEIR_E_NOMEM, 0, "no memory for a checkpoint step");
    coord_event event = {.type = failed,
                         .sink = c->sink,
                         .participant = participant,
                         .lane = COORD_NONE,
                         .attempt = c->attempt,
                         .generation = c->generation};
    answer(p, event, WEIR_E_NOMEM, &error);
    free(commit);
    free(abort_batch);
    return;
  }
  *job = (task_job){.type = type,
                    .attempt = c->attempt,
                    .next = c->next,
                    .generation = c->generation,
                    .commit = commit,
                    .abort = abort_batch};
  task_actor_send(PIPE_ID(&p->plan.sinks[c->sink], participant), job);
}

/* ---- the store ------------------------------------------------------------------------------ */

/* JSON of the source positions for the cursor record, NULL when they are too long. free() it. */
static char *positions_json(const weir_pipeline *p) {
  base_buf buf = {0};
  weir_status status = base_buf_append_byte(&buf, '{', NULL);
  for (uint32_t i = 0; i < p->plan.n_lanes && !status; i++) {
    const pipe_lane *lane = &p->lanes[i];
    if (lane->decided.size > WEIR_MAX_CURSOR_POSITIONS / 2) status = WEIR_E_INVALID_STATE;
    if (!status)
      status = base_buf_printf(&buf, NULL, "%s\"%s\":", i ? "," : "", lane->name);
    if (!status && !lane->decided.release) {
      status = base_buf_append_str(&buf, "null", NULL);
    } else if (!status) {
      char hex[WEIR_MAX_CURSOR_POSITIONS + 1];
      weir_hex_encode(lane->decided.data, lane->decided.size, hex);
      status = base_buf_printf(&buf, NULL, "\"%s\"", hex);
    }
  }
  if (!status) status = base_buf_append_byte(&buf, '}', NULL);
  if (status || buf.size > WEIR_MAX_CURSOR_POSITIONS) {
    base_buf_done(&buf);
    return NULL;
  }
  return base_buf_steal_str(&buf, NULL);
}

static pipe_lane *find_lane(weir_pipeline *p, const char *name) {
  for (uint32_t l = 0; l < p->plan.n_lanes; l++)
    if (strcmp(p->lanes[l].name, name) == 0) return &p->lanes[l];
  return NULL;
}

static void note_decision(weir_pipeline *p, const weir_store_decision *d) {
  pthread_mutex_lock(&p->lock);
  for (size_t i = 0; i < d->n_positions; i++) {
    const weir_store_position *at = &d->positions[i];
    pipe_lane *lane = find_lane(p, at->source);
    if (!lane) continue;
    weir_bytes_release(&lane->decided);
    lane->decided_rows = at->rows;
    /* Without memory the host's view of the position is lost, not the store's. */
    if (at->present) (void)weir_bytes_copy(&lane->decided, at->data, at->size, NULL);
  }
  for (size_t i = 0; i < d->n_sinks; i++)
    for (size_t k = 0; k < p->plan.n_sinks; k++)
      if (strcmp(p->plan.sinks[k].name, d->sinks[i].sink_id) == 0) {
        p->figures[k].rows = d->sinks[i].rows;
        p->figures[k].bytes = d->sinks[i].bytes;
      }
  p->epochs++;
  pthread_mutex_unlock(&p->lock);
  p->decided_by = d->attempt;
}

static void decide(weir_pipeline *p, const coord_command *c) {
  weir_error error = {0};
  weir_status status = weir_store_decide(p->store, c->decision, &error);
  if (!status) note_decision(p, c->decision);
  coord_event event = {.type = COORD_DECIDED,
                       .sink = COORD_NONE,
                       .lane = COORD_NONE,
                       .attempt = c->attempt};
  answer(p, event, status, &error);
}

static void reserve(weir_pipeline *p, const coord_command *c) {
  weir_error error = {0};
  weir_status status =
      weir_store_reserve(p->store, c->attempt, c->entries, c->n_entries, &error);
  coord_event event = {.type = COORD_RESERVED,
                       .sink = COORD_NONE,
                       .lane = COORD_NONE,
                       .attempt = c->attempt};
  answer(p, event, status, &error);
}

static void note_losses(weir_pipeline *p, const coord_command *c) {
  for (size_t i = 0; i < c->n_positions; i++) {
    const weir_store_position *at = &c->positions[i];
    pipe_lane *lane = find_lane(p, at->source);
    if (!lane) continue;
    pthread_mutex_lock(&p->lock);
    uint64_t lost = at->lost - lane->lost;
    lane->lost = at->lost;
    pthread_mutex_unlock(&p->lock);
    if (lost)
      base_log_printf(&p->log, WEIR_LOG_WARN, "pipeline",
                      "source %s: %" PRIu64 " rows are lost with attempt %" PRIu64
                      ", since this source cannot read them again",
                      at->source, lost, c->attempt);
  }
}

static void abort_attempt(weir_pipeline *p, const coord_command *c) {
  weir_error error = {0};
  base_log_printf(&p->log, c->error ? WEIR_LOG_WARN : WEIR_LOG_DEBUG, "pipeline",
                  "attempt %" PRIu64 " is aborted: %s", c->attempt,
                  c->error ? c->error->message
                           : "it took nothing, or an earlier run left it undecided");
  weir_status status =
      weir_store_abort(p->store, c->attempt, c->positions, c->n_positions, &error);
  if (!status) note_losses(p, c);
  coord_event event = {.type = COORD_ABORTED,
                       .sink = COORD_NONE,
                       .lane = COORD_NONE,
                       .attempt = c->attempt};
  answer(p, event, status, &error);
}

/* ---- targets --------------------------------------------------------------------------------- */

/* What may still be under way for the sink in threads that never came back. */
static size_t strays(const pipe_sink *s) {
  size_t n = 0;
  for (uint32_t k = 0; k < s->writers; k++) n += task_actor_strays(s->actors[k]);
  return n;
}

static const char *stuck(const pipe_sink *s) {
  const char *call = NULL;
  for (uint32_t k = 0; k < s->writers && !call; k++)
    call = task_actor_stuck(s->actors[k]);
  return call ? call : "a detached task";
}

/* Where the target's own step is not conditional on its cursor, nothing is committed beside a thread that
 * hangs: what it does when it comes back could be done twice. */
static weir_status may_commit(weir_pipeline *p, const coord_command *c, weir_error *err) {
  const pipe_sink *s = &p->plan.sinks[c->sink];
  if (s->contract.cas_commit || !strays(s)) return WEIR_OK;
  return weir_error_set(
      err, WEIR_E_TIMEOUT, WEIR_ERR_RETRIABLE,
      "%s: an earlier call has not come back (%s); nothing is committed "
      "until it does",
      connector_spec_where(s->spec), stuck(s));
}

static void commit(weir_pipeline *p, const coord_command *c) {
  weir_error error = {0};
  weir_status status = c->repeat ? weir_store_check_lease(p->store, &error) : WEIR_OK;
  if (status) {
    /* The store's answer, not the target's: nothing more may be written anywhere. */
    coord_event fenced = {.type = COORD_FENCED, .sink = COORD_NONE, .lane = COORD_NONE};
    answer(p, fenced, status, &error);
    return;
  }
  weir_commit_batch *batch = NULL;
  status = may_commit(p, c, &error);
  if (!status) {
    /* The record says where the sources stood at the batch's last attempt, or nothing. */
    const weir_commit_attempt *last = &c->batch->attempts[c->batch->n_attempts - 1];
    char *positions = last->cursor.checkpoint == p->decided_by ? positions_json(p) : NULL;
    batch = task_copy_commit(c->batch, positions, &error);
    free(positions);
    if (!batch) {
      status = WEIR_E_NOMEM;
      error.flags |= WEIR_ERR_RETRIABLE;
    }
  }
  if (status) {
    coord_event event = {.type = COORD_COMMITTED, .sink = c->sink, .lane = COORD_NONE};
    answer(p, event, status, &error);
    return;
  }
  send(p, c, TASK_COMMIT, COORD_COMMITTED, batch, NULL);
}

static void clean(weir_pipeline *p, const coord_command *c) {
  weir_error error = {0};
  weir_abort_batch *batch = task_copy_abort(c->entries, c->n_entries, c->attempt, &error);
  if (batch) {
    send(p, c, TASK_CLEAN, COORD_CLEANED, NULL, batch);
    return;
  }
  coord_event event = {
      .type = COORD_CLEANED, .sink = c->sink, .lane = COORD_NONE, .attempt = c->attempt};
  answer(p, event, WEIR_E_NOMEM, &error);
}

/* Notes that the next start could do without, unless they show that the lease is lost. */
static void noted(weir_pipeline *p, weir_status status, const weir_error *error) {
  if (!status) return;
  base_log_printf(&p->log, WEIR_LOG_WARN, "store", "%s", error->message);
  coord_event event = {.type = COORD_FENCED, .sink = COORD_NONE, .lane = COORD_NONE};
  if (status == WEIR_E_FENCED) answer(p, event, status, error);
}

static void seen(weir_pipeline *p, const coord_command *c) {
  pthread_mutex_lock(&p->lock);
  p->figures[c->sink].seen = c->cursor;
  pthread_mutex_unlock(&p->lock);
  weir_error error = {0};
  const char *name = p->plan.sinks[c->sink].name;
  noted(p, weir_store_seen(p->store, name, &c->cursor, &error), &error);
}

static void mark_cleaned(weir_pipeline *p, const coord_command *c) {
  weir_error error = {0};
  const char *name = p->plan.sinks[c->sink].name;
  noted(p, weir_store_cleaned(p->store, name, c->attempt, &error), &error);
}

/* ---- gates and lanes --------------------------------------------------------------------------- */

static void open_gates(weir_pipeline *p, uint64_t attempt) {
  for (size_t i = 0; i < p->plan.n_sinks; i++)
    for (uint32_t k = 0; k < p->plan.sinks[i].writers; k++)
      task_actor_open_gate(p->plan.sinks[i].actors[k], attempt);
}

static void send_barriers(weir_pipeline *p, uint64_t attempt) {
  bool push = false;
  for (uint32_t i = 0; i < p->plan.n_lanes; i++) {
    task_lane_request(p->lanes[i].lane, attempt);
    push |= !p->lanes[i].loop;
  }
  if (push) pipeline_post_event(p, WEIR_EVENT_BARRIER, attempt, NULL, NULL);
}

/* What the host was asked for the aborted attempt is not wanted any more. */
static void stop_lanes(weir_pipeline *p, uint64_t generation) {
  for (uint32_t i = 0; i < p->plan.n_lanes; i++)
    task_lane_stop(p->lanes[i].lane, generation);
  pipeline_drop_events(p, WEIR_EVENT_BARRIER, NULL);
}

static void seek(weir_pipeline *p, const coord_command *c) {
  pipe_lane *lane = &p->lanes[c->lane];
  weir_error error = {0};
  weir_bytes position = {0};
  weir_status status = WEIR_OK;
  const weir_bytes *begin = &lane->begin;
  if (c->has_position)
    status = weir_bytes_copy(&position, c->position, c->position_size, &error);
  else if (begin->release)
    status = weir_bytes_copy(&position, begin->data, begin->size, &error);
  /* Posted first: whoever reads the position takes the event back, so that it cannot send the host there
   * a second time. */
  if (!status && !lane->loop)
    pipeline_post_event(p, WEIR_EVENT_REWIND, 0, &lane->input, NULL);
  if (!status)
    status = task_lane_seek(lane->lane, c->generation, &position, c->rows, &error);
  weir_bytes_release(&position);
  if (status) {
    coord_event event = {.type = COORD_SOUGHT,
                         .sink = COORD_NONE,
                         .lane = c->lane,
                         .generation = c->generation};
    answer(p, event, status, &error);
  }
}

static void tell_lane(weir_pipeline *p, const coord_command *c) {
  pipe_lane *lane = &p->lanes[c->lane];
  weir_bytes position = {0};
  if (c->has_position && weir_bytes_copy(&position, c->position, c->position_size, NULL))
    return;
  if (lane->loop) task_source_committed(lane->loop, c->attempt, &position);
  weir_bytes_release(&position);
  pthread_mutex_lock(&p->lock);
  bool news = c->attempt > p->committed;
  if (news) p->committed = c->attempt;
  pthread_mutex_unlock(&p->lock);
  if (news) pipeline_post_event(p, WEIR_EVENT_COMMITTED, c->attempt, NULL, NULL);
}

/* Without memory the list for people is short, nothing else. Lock held. */
static void copy_unshown(weir_pipeline *p, uint32_t sink) {
  pipe_figures *f = &p->figures[sink];
  size_t n = coord_owed(p->coord, sink);
  if (n > f->room) {
    uint64_t *grown = base_realloc(f->unshown, 2 * n, sizeof(*grown), NULL);
    if (grown) f->unshown = grown;
    if (grown) f->room = 2 * n;
  }
  f->n_unshown = 0;
  for (size_t i = 0; i < n && i < f->room; i++) {
    uint64_t attempt = coord_owed_rows(p->coord, sink, i);
    if (attempt) f->unshown[f->n_unshown++] = attempt;
  }
}

static void copy_view(weir_pipeline *p) {
  coord_view view = {0};
  coord_look(p->coord, &view);
  pthread_mutex_lock(&p->lock);
  bool news = !p->phase && view.recovered;
  if (view.recovered) p->phase = view.phase;
  p->attempt = view.attempt;
  p->decided = view.decided;
  /* Recovery has published all that was decided. */
  if (news) p->committed = view.decided;
  for (uint32_t i = 0; i < p->plan.n_sinks; i++) copy_unshown(p, i);
  if (news) pthread_cond_broadcast(&p->changed);
  pthread_mutex_unlock(&p->lock);
}

/* Whoever waits in a lane comes back: nothing takes rows any more. */
static void stop(weir_pipeline *p, const weir_error *error) {
  for (uint32_t i = 0; i < p->plan.n_lanes; i++) task_lane_finish(p->lanes[i].lane);
  pthread_mutex_lock(&p->lock);
  p->final = (weir_event){.struct_size = sizeof(weir_event),
                          .type = error ? WEIR_EVENT_FAILED : WEIR_EVENT_ENDED,
                          .checkpoint = p->decided};
  if (error) {
    p->final.error = *error;
    pipeline_error(p, error->code, &p->final.error);
  }
  p->over = true;
  pipeline_wake(p);
  pthread_mutex_unlock(&p->lock);
}

/* ---- the loop ------------------------------------------------------------------------------------ */

static void execute(weir_pipeline *p, const coord_command *c) {
  switch (c->type) {
    case COORD_TAKE_OVER:
      send(p, c, TASK_TAKE_OVER, COORD_OBSERVED, NULL, NULL);
      break;
    case COORD_GET_INTENT:
      send(p, c, TASK_GET_INTENT, COORD_INTENT, NULL, NULL);
      break;
    case COORD_RESERVE:
      reserve(p, c);
      break;
    case COORD_BEGIN:
      send(p, c, TASK_BEGIN, COORD_BEGUN, NULL, NULL);
      break;
    case COORD_OPEN_GATES:
      open_gates(p, c->attempt);
      break;
    case COORD_SEND_BARRIERS:
      send_barriers(p, c->attempt);
      break;
    case COORD_PRE_COMMIT:
      send(p, c, TASK_PRE_COMMIT, COORD_PREPARED, NULL, NULL);
      break;
    case COORD_DECIDE:
      decide(p, c);
      break;
    case COORD_ABORT:
      abort_attempt(p, c);
      break;
    case COORD_ROLLBACK:
      send(p, c, TASK_ROLLBACK, COORD_ROLLED_BACK, NULL, NULL);
      break;
    case COORD_STOP_LANES:
      stop_lanes(p, c->generation);
      break;
    case COORD_PURGE:
      send(p, c, TASK_PURGE, COORD_PURGED, NULL, NULL);
      break;
    case COORD_SEEK:
      seek(p, c);
      break;
    case COORD_COMMIT:
      commit(p, c);
      break;
    case COORD_CLEAN:
      clean(p, c);
      break;
    case COORD_SEEN:
      seen(p, c);
      break;
    case COORD_MARK_CLEANED:
      mark_cleaned(p, c);
      break;
    case COORD_TELL_LANE:
      tell_lane(p, c);
      break;
    case COORD_STOP:
      copy_view(p); /* before the host is told that it is the last */
      stop(p, c->error);
      break;
  }
}

/* Sealing has no limit: a source may have good reasons. But somebody should know. */
static void watch_sealing(weir_pipeline *p, int64_t now) {
  uint32_t owing = 0, first = 0;
  for (uint32_t i = p->plan.n_lanes; i-- > 0;) {
    if (!task_lane_owes_barrier(p->lanes[i].lane)) continue;
    first = i;
    owing++;
  }
  if (!owing) {
    p->sealing_since = 0;
  } else if (!p->sealing_since) {
    p->sealing_since = now;
  } else if (now - p->sealing_since > p->plan.top.timeout_ns) {
    base_log_printf(&p->log, WEIR_LOG_WARN, "pipeline",
                    "attempt %" PRIu64
                    " waits for the barriers of %u inputs, among them "
                    "%s, for %d s now",
                    p->attempt, owing, p->lanes[first].name,
                    (int)((now - p->sealing_since) / BASE_NS_PER_S));
    p->sealing_since = now;
  }
}

/* The lease, deadlines, and new generations for participants that lost theirs. A lease that is lost, or a
 * store that cannot be asked any more, ends the run where it stands: nothing is written anywhere. */
static weir_status watch(weir_pipeline *p, int64_t now, weir_error *err) {
  BASE_TRY(weir_store_watch(p->store, err));
  for (uint32_t i = 0; i < p->plan.n_sinks; i++) {
    pipe_sink *s = &p->plan.sinks[i];
    for (uint32_t k = 0; k < s->writers; k++) {
      weir_error late = {0};
      if (task_actor_watch(s->actors[k], now, &late))
        base_log_printf(&p->log, WEIR_LOG_WARN, "pipeline", "%s", late.message);
      if (!task_actor_wants_generation(s->actors[k])) continue;
      BASE_TRY(pipeline_renew(p, i, k + 1, err));
      base_log_printf(&p->log, WEIR_LOG_WARN, connector_spec_where(s->spec),
                      "participant %u runs on instance %u", k + 1, s->generations[k]);
    }
  }
  for (uint32_t i = 0; i < p->plan.n_lanes; i++)
    if (p->lanes[i].loop) task_source_watch(p->lanes[i].loop, now);
  watch_sealing(p, now);
  return WEIR_OK;
}

static bool asked_to_quit(weir_pipeline *p) {
  pthread_mutex_lock(&p->lock);
  bool quit = p->quit || p->over;
  pthread_mutex_unlock(&p->lock);
  return quit;
}

/* What is tried again shows in the log alone: no error follows while it goes on. */
static void log_retry(const weir_pipeline *p, const coord_event *event) {
  const char *what = event->type == COORD_COMMITTED  ? "a commit"
                     : event->type == COORD_OBSERVED ? "reading the cursor"
                     : event->type == COORD_CLEANED  ? "cleaning"
                                                     : NULL;
  if (!what || !event->error || event->sink >= p->plan.n_sinks ||
      !(event->error->flags & (WEIR_ERR_RETRIABLE | WEIR_ERR_IN_DOUBT)))
    return;
  base_log_printf(&p->log, WEIR_LOG_WARN, "pipeline", "%s is tried again: %s", what,
                  event->error->message);
}

/* One event, or the passing of time. */
static weir_status step(weir_pipeline *p, int64_t interval, int64_t *watched,
                        weir_error *err) {
  int lost = 0;
  coord_event event = {0};
  weir_error error = {0};
  int64_t wakeup = coord_wakeup(p->coord);
  int64_t until = *watched + interval;
  int taken = task_mailbox_take(p->mailbox, wakeup < until ? wakeup : until, &event,
                                &error, &lost);
  int64_t now = base_clock_mono();
  weir_status status = WEIR_OK;
  if (lost) {
    status = weir_error_set(err, WEIR_E_NOMEM, 0, "no memory for an event; run again");
    goto out;
  }
  if (!taken && now >= wakeup)
    event = (coord_event){.type = COORD_TICK, .sink = COORD_NONE, .lane = COORD_NONE};
  if (taken) log_retry(p, &event);
  if (taken || now >= wakeup) status = coord_step(p->coord, now, &event, err);
  coord_command command = {0};
  while (!status && coord_next(p->coord, &command)) execute(p, &command);
  copy_view(p);
  if (!status && now >= until) {
    *watched = now;
    status = watch(p, now, err);
  }
out:
  weir_bytes_release(&event.bytes);
  weir_bytes_release(&event.intent);
  return status;
}

void *pipeline_main(void *arg) {
  weir_pipeline *p = arg;
  weir_error error = {0};
  weir_status status = WEIR_OK;
  int64_t watched = base_clock_mono(), interval = watch_interval(p);
  while (!status && !asked_to_quit(p)) status = step(p, interval, &watched, &error);
  if (status) stop(p, &error);
  return NULL;
}
