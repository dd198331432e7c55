/* SPDX-License-Identifier: Apache-2.0 */
/* The machine itself: making it, stepping it, its queue of commands, and how it stops. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "coord/state.h"

/* ---- bytes */

void coord_take(weir_bytes *into, weir_bytes *from) {
  weir_bytes_release(into);
  *into = *from;
  *from = (weir_bytes){0};
}

weir_status coord_copy_bytes(weir_bytes *out, int present, const void *data, size_t size,
                             weir_error *err) {
  weir_bytes copy = {0};
  if (present) BASE_TRY(weir_bytes_copy(&copy, data, size, err));
  weir_bytes_release(out);
  *out = copy;
  return WEIR_OK;
}

/* ---- commands */

weir_status coord_push(coord *c, const coord_command *command, weir_error *err) {
  if (c->first_command == c->n_commands) c->first_command = c->n_commands = 0;
  if (c->n_commands == c->commands_capacity) {
    size_t capacity = 2 * c->commands_capacity;
    coord_command *grown = base_realloc(c->commands, capacity, sizeof(*grown), err);
    if (!grown) return WEIR_E_NOMEM;
    c->commands = grown;
    c->commands_capacity = capacity;
  }
  c->commands[c->n_commands++] = *command;
  return WEIR_OK;
}

int coord_next(coord *c, coord_command *out) {
  if (c->first_command == c->n_commands) return 0;
  *out = c->commands[c->first_command++];
  return 1;
}

/* ---- stopping */

weir_status coord_enter(coord *c, coord_phase to, weir_error *err) {
  if (!coord_may(c->phase, to)) {
    return weir_error_set(err, WEIR_E_INTERNAL, 0,
                          "the coordinator may not go from '%s' to '%s' (attempt %" PRIu64
                          ")",
                          coord_phase_name(c->phase), coord_phase_name(to), c->attempt);
  }
  c->phase = to;
  return WEIR_OK;
}

weir_status coord_not_now(const coord *c, const char *event, weir_error *err) {
  return weir_error_set(err, WEIR_E_INTERNAL, 0,
                        "the coordinator got '%s' while '%s' (attempt %" PRIu64
                        "), which does not allow it",
                        event, coord_phase_name(c->phase), c->attempt);
}

void coord_halt_now(coord *c, const weir_error *error) {
  c->error = *error;
  c->stopping = true;
  c->phase = PHASE_STOPPED; /* allowed from anywhere */
  c->first_command = c->n_commands = 0;
  const coord_command stop = {
      .type = COORD_STOP, .sink = COORD_NONE, .lane = COORD_NONE, .error = &c->error};
  /* The queue was made with room for one, so this cannot fail. */
  (void)coord_push(c, &stop, NULL);
}

weir_status coord_halt(coord *c, const weir_error *error, weir_error *err) {
  if (!c->stopping) c->error = *error;
  c->stopping = true;
  return c->phase == PHASE_HALTING ? WEIR_OK : coord_enter(c, PHASE_HALTING, err);
}

static weir_status progress_end(coord *c, weir_error *err) {
  if (c->phase != PHASE_HALTING && c->phase != PHASE_FINISHING) return WEIR_OK;
  for (uint32_t i = 0; i < c->n_sinks; i++) {
    const coord_sink_state *s = &c->sinks[i];
    if (s->commit == COMMIT_RUNNING) return WEIR_OK;
    if (c->phase == PHASE_FINISHING && s->rows_owed) return WEIR_OK;
  }
  if (c->phase == PHASE_FINISHING && coord_cleaning(c)) return WEIR_OK;
  const weir_error *error = c->stopping ? &c->error : NULL;
  BASE_TRY(coord_enter(c, PHASE_STOPPED, err));
  return coord_push(
      c,
      &(coord_command){
          .type = COORD_STOP, .sink = COORD_NONE, .lane = COORD_NONE, .error = error},
      err);
}

/* ---- time */

int64_t coord_later(const coord *c, int64_t span) {
  int64_t at = 0;
  return __builtin_add_overflow(c->now, span, &at) ? INT64_MAX : at;
}

int64_t coord_grow_backoff(const coord *c, int64_t backoff) {
  if (backoff <= 0) return c->backoff_min;
  return backoff > c->backoff_max / 2 ? c->backoff_max : backoff * 2;
}

/* What was due by now has moved in the last step, or waits for an answer. */
static void earlier(const coord *c, int64_t *at, int64_t other) {
  if (other > c->now && other < *at) *at = other;
}

int64_t coord_wakeup(const coord *c) {
  int64_t at = INT64_MAX;
  switch (c->phase) {
    case PHASE_NEW:
    case PHASE_HALTING:
    case PHASE_STOPPED:
      return at;
    case PHASE_OPEN:
      if (!coord_all_ended(c)) earlier(c, &at, c->checkpoint_at);
      break;
    case PHASE_PREPARING:
      earlier(c, &at, coord_prepare_deadline(c));
      break;
    case PHASE_BACKING_OFF:
      earlier(c, &at, c->backoff_until);
      break;
    case PHASE_SEEKING:
      for (uint32_t i = 0; i < c->n_lanes; i++) {
        earlier(c, &at, c->lanes[i].seek_retry_at);
      }
      break;
    default:
      break;
  }
  for (uint32_t i = 0; i < c->n_sinks; i++) {
    const coord_sink_state *s = &c->sinks[i];
    if (c->phase == PHASE_TAKING_OVER) {
      if (s->committable && s->take_over == ASK_NOT) earlier(c, &at, s->retry_at);
    } else {
      earlier(c, &at, coord_commit_wakeup(c, s));
    }
  }
  for (size_t i = 0; i < c->n_dirt; i++) {
    const coord_dirt *d = &c->dirt[i];
    if (!d->running && !d->given_up) earlier(c, &at, d->retry_at);
  }
  return at;
}

/* ---- stepping */

bool coord_attempt_running(const coord *c) {
  return c->phase >= PHASE_BEGINNING && c->phase <= PHASE_DECIDING;
}

coord_sink_state *coord_event_sink(coord *c, const coord_event *e, weir_error *err) {
  if (e->sink < c->n_sinks) return &c->sinks[e->sink];
  weir_error_set(err, WEIR_E_INTERNAL, 0, "an event names sink %" PRIu32 " of %" PRIu32,
                 e->sink, c->n_sinks);
  return NULL;
}

coord_part *coord_event_part(coord *c, const coord_event *e, weir_error *err) {
  coord_sink_state *s = coord_event_sink(c, e, err);
  if (!s) return NULL;
  if (e->participant >= 1 && e->participant <= s->n_parts)
    return &s->parts[e->participant - 1];
  weir_error_set(err, WEIR_E_INTERNAL, 0,
                 "an event names participant %" PRIu32 " of sink %s, which has %" PRIu32,
                 e->participant, s->id, s->n_parts);
  return NULL;
}

coord_lane *coord_event_lane(coord *c, const coord_event *e, weir_error *err) {
  if (e->lane < c->n_lanes) return &c->lanes[e->lane];
  weir_error_set(err, WEIR_E_INTERNAL, 0, "an event names lane %" PRIu32 " of %" PRIu32,
                 e->lane, c->n_lanes);
  return NULL;
}

weir_status coord_progress(coord *c, weir_error *err) {
  bool moved = true;
  while (moved) {
    moved = false;
    /* Commits first: begin_epoch of the next attempt goes out behind them. */
    BASE_TRY(coord_progress_commits(c, err));
    BASE_TRY(coord_progress_recovery(c, &moved, err));
    BASE_TRY(coord_progress_attempt(c, &moved, err));
    BASE_TRY(coord_progress_preparing(c, &moved, err));
    BASE_TRY(coord_progress_abort(c, &moved, err));
  }
  BASE_TRY(coord_progress_tell(c, err));
  BASE_TRY(coord_progress_clean(c, err));
  return progress_end(c, err);
}

static weir_status on_start(coord *c, weir_error *err) {
  return coord_enter(c, PHASE_TAKING_OVER, err);
}

static weir_status dispatch(coord *c, coord_event *e, weir_error *err) {
  switch (e->type) {
    case COORD_START:
      return on_start(c, err);
    case COORD_OBSERVED:
      return coord_on_observed(c, e, err);
    case COORD_INTENT:
      return coord_on_intent(c, e, err);
    case COORD_RESERVED:
      return coord_on_reserved(c, e, err);
    case COORD_BEGUN:
      return coord_on_begun(c, e, err);
    case COORD_BARRIER_SENT:
      return coord_on_barrier_sent(c, e, err);
    case COORD_LANE_ENDED:
      return coord_on_lane_ended(c, e, err);
    case COORD_SEALED:
      return coord_on_sealed(c, e, err);
    case COORD_PREPARED:
      return coord_on_prepared(c, e, err);
    case COORD_DECIDED:
      return coord_on_decided(c, e, err);
    case COORD_ABORTED:
      return coord_on_aborted(c, e, err);
    case COORD_ROLLED_BACK:
      return coord_on_rolled_back(c, e, err);
    case COORD_STOPPED:
      return coord_on_stopped(c, e, err);
    case COORD_PURGED:
      return coord_on_purged(c, e, err);
    case COORD_SOUGHT:
      return coord_on_sought(c, e, err);
    case COORD_COMMITTED:
      return coord_on_committed(c, e, err);
    case COORD_CLEANED:
      return coord_on_cleaned(c, e, err);
    case COORD_FAILED:
      return coord_on_failed(c, e, err);
    case COORD_TICK:
      return WEIR_OK;
    case COORD_CHECKPOINT:
      c->checkpoint_asked = true;
      return WEIR_OK;
    case COORD_DRAIN:
      c->draining = true;
      return WEIR_OK;
    case COORD_FENCED: {
      weir_error fenced = {0};
      weir_error_set(
          &fenced, WEIR_E_FENCED, 0,
          "the lease on the checkpoint store is lost: a newer instance of this pipeline "
          "has taken over, and this one writes nothing more");
      coord_halt_now(c, e->error ? e->error : &fenced);
      return WEIR_OK;
    }
  }
  return weir_error_set(err, WEIR_E_INTERNAL, 0, "unknown event %d", (int)e->type);
}

weir_status coord_step(coord *c, int64_t now_ns, coord_event *event, weir_error *err) {
  weir_status status = WEIR_OK;
  weir_error own = {0};
  if (!err) err = &own;
  if (now_ns > c->now) c->now = now_ns;
  if (c->phase == PHASE_STOPPED) goto out; /* late answers */
  if (c->phase == PHASE_HALTING && event->type != COORD_COMMITTED &&
      event->type != COORD_FENCED) {
    /* Answers of what was under way. A store that failed is not written to again. */
    bool of_store = event->type == COORD_RESERVED || event->type == COORD_DECIDED ||
                    event->type == COORD_ABORTED;
    if (of_store && event->error) coord_halt_now(c, &c->error);
    goto out;
  }
  if (c->phase == PHASE_NEW && event->type <= COORD_FAILED &&
      event->type != COORD_START) {
    status = coord_not_now(c, "an event before the start", err);
    goto out;
  }
  /* A handler refuses an event before it changes anything; progress fails only for want of memory
   * or by a bug, and then the only safe thing is to stop: the next start asks the store. */
  BASE_GOTO(status, dispatch(c, event, err));
  if (c->phase != PHASE_STOPPED) status = coord_progress(c, err);
  if (status) coord_halt_now(c, err);
out:
  if (status == WEIR_E_NOMEM && c->phase != PHASE_STOPPED) coord_halt_now(c, err);
  weir_bytes_release(&event->bytes);
  weir_bytes_release(&event->intent);
  event->bytes = event->intent = (weir_bytes){0};
  return status;
}

/* ---- making */

static weir_status check_config(const coord_config *config, weir_error *err) {
  if (config->interval_ns < 0 || config->timeout_ns <= 0 || config->backoff_min_ns < 0 ||
      config->backoff_max_ns < config->backoff_min_ns) {
    return weir_error_set(
        err, WEIR_E_INVALID_CONFIG, 0,
        "checkpoint times: the interval and the backoff must not be negative, the "
        "timeout must be positive, the smallest backoff not above the largest");
  }
  for (uint32_t i = 0; i < config->n_sinks; i++) {
    const coord_sink *s = &config->sinks[i];
    if (!s->participants || s->participants > WEIR_MAX_BATCH_ENTRIES) {
      return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                            "sink %s: %" PRIu32 " writers; expected 1 to %u", s->sink_id,
                            s->participants, WEIR_MAX_BATCH_ENTRIES);
    }
    for (uint32_t k = 0; k < i; k++) {
      if (strcmp(config->sinks[k].sink_id, s->sink_id) == 0) {
        return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0, "two sinks are named %s",
                              s->sink_id);
      }
    }
  }
  return WEIR_OK;
}

static weir_status make_sinks(coord *c, const coord_config *config, weir_error *err) {
  c->sinks = base_calloc(config->n_sinks, sizeof(*c->sinks), err);
  if (!c->sinks) return WEIR_E_NOMEM;
  c->n_sinks = config->n_sinks;
  for (uint32_t i = 0; i < c->n_sinks; i++) {
    const coord_sink *from = &config->sinks[i];
    coord_sink_state *s = &c->sinks[i];
    s->committable = from->committable;
    s->overlap = from->overlap;
    s->commit_interval = from->commit_interval_ns;
    s->n_parts = from->participants;
    c->n_parts += s->n_parts;
    s->id = base_strdup(from->sink_id, err);
    s->parts = base_calloc(s->n_parts, sizeof(*s->parts), err);
    if (!s->id || !s->parts) return WEIR_E_NOMEM;
  }
  return WEIR_OK;
}

static weir_status make_lanes(coord *c, const coord_config *config,
                              const weir_store_state *state, weir_error *err) {
  size_t most = config->n_lanes + (state ? state->n_positions : 0);
  c->lanes = base_calloc(most, sizeof(*c->lanes), err);
  if (!c->lanes) return WEIR_E_NOMEM;
  c->n_lanes = config->n_lanes;
  for (uint32_t i = 0; i < c->n_lanes; i++) {
    c->lanes[i].ephemeral = config->ephemeral && config->ephemeral[i];
    c->lanes[i].name = base_strdup(config->lanes[i], err);
    if (!c->lanes[i].name) return WEIR_E_NOMEM;
  }
  return WEIR_OK;
}

weir_status coord_new(const coord_config *config, const weir_store_state *state,
                      uint64_t token, coord **out, weir_error *err) {
  BASE_TRY(check_config(config, err));
  if (!token)
    return weir_error_set(err, WEIR_E_INTERNAL, 0, "a coordinator without a lease");
  weir_status status = WEIR_E_NOMEM;
  coord *c = base_calloc(1, sizeof(*c), err);
  if (!c) goto out;
  c->commands = base_calloc(16, sizeof(*c->commands), err);
  if (!c->commands) goto out;
  c->commands_capacity = 16;
  c->interval = config->interval_ns;
  c->timeout = config->timeout_ns;
  c->backoff_min = config->backoff_min_ns;
  c->backoff_max = config->backoff_max_ns;
  c->token = token;
  c->checkpoint_at = INT64_MAX;
  BASE_GOTO(status, make_sinks(c, config, err));
  BASE_GOTO(status, make_lanes(c, config, state, err));
  if (state) BASE_GOTO(status, coord_load(c, state, err));
  *out = c;
  c = NULL;
  status = WEIR_OK;
out:
  coord_free(c);
  return status;
}

static void sink_done(coord_sink_state *s) {
  if (s->parts) {
    for (uint32_t k = 0; k < s->n_parts; k++) {
      weir_bytes_release(&s->parts[k].intent);
      weir_bytes_release(&s->parts[k].next_intent);
      weir_bytes_release(&s->parts[k].descriptor);
    }
  }
  coord_drop_owed(s, s->n_owed);
  free(s->owed);
  free(s->resolved);
  free(s->batch_attempts);
  free(s->parts);
  free(s->id);
}

void coord_free(coord *c) {
  if (!c) return;
  coord_drop_decision(c);
  for (uint32_t i = 0; i < c->n_sinks; i++) sink_done(&c->sinks[i]);
  for (size_t i = 0; i < c->n_cuts; i++) coord_cut_done(c, &c->cuts[i]);
  coord_cut_done(c, &c->told);
  for (uint32_t i = 0; i < c->n_lanes + c->n_inert; i++) {
    coord_lane *lane = &c->lanes[i];
    weir_bytes_release(&lane->position);
    weir_bytes_release(&lane->barrier_position);
    weir_bytes_release(&lane->end_position);
    free(lane->name);
  }
  for (size_t i = 0; i < c->n_dirt; i++) coord_dirt_done(&c->dirt[i]);
  free(c->pipeline);
  free(c->dirt);
  free(c->cuts);
  free(c->unresolved);
  free(c->reserve_entries);
  free(c->abort_positions);
  free(c->lanes);
  free(c->sinks);
  free(c->commands);
  free(c);
}

/* ---- looking */

void coord_look(const coord *c, coord_view *out) {
  *out = (coord_view){.phase = coord_phase_name(c->phase),
                      .attempt = c->attempt,
                      .decided = c->decided,
                      .epochs = c->epochs,
                      .aborts = c->aborts,
                      .recovered = c->recovered};
}

size_t coord_owed(const coord *c, uint32_t sink) {
  return sink < c->n_sinks ? c->sinks[sink].n_owed : 0;
}

uint64_t coord_owed_rows(const coord *c, uint32_t sink, size_t i) {
  const coord_debt *debt = &c->sinks[sink].owed[i];
  return debt->has_rows ? debt->cursor.checkpoint : 0;
}

void coord_sink_cursors(const coord *c, uint32_t sink, weir_cursor *decided,
                        weir_cursor *seen) {
  if (decided) *decided = sink < c->n_sinks ? c->sinks[sink].decided : (weir_cursor){0};
  if (seen) *seen = sink < c->n_sinks ? c->sinks[sink].seen : (weir_cursor){0};
}

int coord_position(const coord *c, uint32_t lane, const uint8_t **data, size_t *size) {
  if (lane >= c->n_lanes || !c->lanes[lane].position.release) return 0;
  *data = c->lanes[lane].position.data;
  *size = c->lanes[lane].position.size;
  return 1;
}
