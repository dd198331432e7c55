/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Failures before a decision: the lanes are stopped, Abort is made durable, then rollback_epoch on every
 * committable sink, then the rewind of every lane to the last decided position.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "coord/state.h"

/* ---- counting */

static bool may_be_tried_again(const weir_error *error) {
  return error->code != WEIR_E_BAD_DATA && !(error->flags & WEIR_ERR_BAD_DATA) &&
         (error->flags & (WEIR_ERR_RETRIABLE | WEIR_ERR_IN_DOUBT));
}

bool coord_count_failure(coord *c, const weir_error *error, uint32_t sink,
                         uint32_t lane) {
  coord_count *count = sink < c->n_sinks   ? &c->sinks[sink].failures
                       : lane < c->n_lanes ? &c->lanes[lane].failures
                                           : &c->failures;
  /* No end of the run brings a target back. Whoever has asked for the end is not kept waiting. */
  bool away = may_be_tried_again(error) && error->flags & WEIR_ERR_AWAY && !c->draining;
  c->aborts++;
  c->cause = *error;
  if (!away) {
    count->n = count->code == error->code ? count->n + 1 : 1;
    count->code = error->code;
  }
  int64_t wait = c->backoff_min;
  for (uint32_t i = 1; i < c->aborts && wait < c->backoff_max; i++) {
    wait = coord_grow_backoff(c, wait);
  }
  c->backoff_until = coord_later(c, wait);
  if (away || (may_be_tried_again(error) && count->n < COORD_CAUSE_LIMIT)) return false;
  c->error = *error;
  const char *who = sink < c->n_sinks   ? c->sinks[sink].id
                    : lane < c->n_lanes ? c->lanes[lane].name
                                        : "checkpoint";
  if (may_be_tried_again(error)) {
    weir_error_prefix(&c->error, error->code,
                      "%s: attempt %" PRIu64 " is the %" PRIu32
                      "th since the last decision that failed for one cause",
                      who, c->attempt, count->n);
  }
  return true;
}

void coord_forget_failures(coord *c) {
  c->aborts = 0;
  c->failures = (coord_count){0};
  for (uint32_t i = 0; i < c->n_sinks; i++) c->sinks[i].failures = (coord_count){0};
  for (uint32_t i = 0; i < c->n_lanes; i++) c->lanes[i].failures = (coord_count){0};
}

/* ---- abort */

/* The lanes are stopped first: that waits for no connector, and then it is known how many rows those
 * lose that cannot go back. */
weir_status coord_abort(coord *c, const weir_error *error, uint32_t sink, uint32_t lane,
                        weir_error *err) {
  c->stopping = coord_count_failure(c, error, sink, lane);
  BASE_TRY(coord_enter(c, PHASE_STOPPING_LANES, err));
  for (uint32_t i = 0; i < c->n_lanes; i++) {
    c->lanes[i].stop = ASK_SENT;
    c->lanes[i].seek = ASK_NOT;
  }
  return coord_push(c,
                    &(coord_command){.type = COORD_STOP_LANES,
                                     .sink = COORD_NONE,
                                     .lane = COORD_NONE,
                                     .attempt = c->attempt,
                                     .generation = c->generation},
                    err);
}

weir_status coord_on_stopped(coord *c, coord_event *e, weir_error *err) {
  coord_lane *lane = coord_event_lane(c, e, err);
  if (!lane) return WEIR_E_INTERNAL;
  if (e->generation < c->generation) return WEIR_OK;
  if (c->phase != PHASE_STOPPING_LANES || lane->stop != ASK_SENT ||
      e->generation != c->generation) {
    return coord_not_now(c, "stopped", err);
  }
  lane->stop = ASK_DONE;
  /* Every row of it that is neither decided nor counted already was of this attempt, or queued. */
  if (lane->ephemeral && e->rows > lane->rows) lane->lost += e->rows - lane->rows;
  return WEIR_OK;
}

/* C12: Abort is durable before anything is rolled back, and with it what it costs. */
static weir_status send_abort(coord *c, weir_error *err) {
  size_t n = 0;
  BASE_TRY(coord_enter(c, PHASE_ABORTING, err));
  free(c->abort_positions);
  c->abort_positions = base_calloc(c->n_lanes, sizeof(*c->abort_positions), err);
  if (!c->abort_positions) return WEIR_E_NOMEM;
  for (uint32_t i = 0; i < c->n_lanes; i++) {
    const coord_lane *lane = &c->lanes[i];
    if (!lane->lost) continue;
    c->abort_positions[n++] =
        (weir_store_position){.source = lane->name,
                              .present = lane->position.release != NULL,
                              .data = lane->position.data,
                              .size = lane->position.size,
                              .rows = lane->rows,
                              .lost = lane->lost};
  }
  return coord_push(c,
                    &(coord_command){.type = COORD_ABORT,
                                     .sink = COORD_NONE,
                                     .lane = COORD_NONE,
                                     .attempt = c->attempt,
                                     .positions = c->abort_positions,
                                     .n_positions = n,
                                     .error = &c->cause},
                    err);
}

/* The attempt that was reserved ahead and took nothing: the run ends without it. */
weir_status coord_withdraw(coord *c, weir_error *err) {
  BASE_TRY(coord_enter(c, PHASE_ABORTING, err));
  c->withdrawing = true;
  return coord_push(c,
                    &(coord_command){.type = COORD_ABORT,
                                     .sink = COORD_NONE,
                                     .lane = COORD_NONE,
                                     .attempt = c->attempt},
                    err);
}

weir_status coord_fail(coord *c, const weir_error *error, uint32_t sink, uint32_t lane,
                       weir_error *err) {
  if (coord_attempt_running(c) && c->phase != PHASE_DECIDING) {
    return coord_abort(c, error, sink, lane, err);
  }
  if (!c->failed) {
    c->failed = true;
    c->failure = *error;
    c->failure_sink = sink;
    c->failure_lane = lane;
  }
  return WEIR_OK;
}

/* A failure outside an answer. During a rewind it may still speak of the aborted attempt, and then it
 * is of no interest: it counts once its lane was sought or its participant purged. After the decision
 * was asked for it waits for the answer and aborts the attempt after it. */
weir_status coord_on_failed(coord *c, coord_event *e, weir_error *err) {
  if (!e->error) return coord_not_now(c, "failed without an error", err);
  coord_lane *lane = NULL;
  coord_part *part = NULL;
  if (e->lane != COORD_NONE) {
    lane = coord_event_lane(c, e, err);
    if (!lane) return WEIR_E_INTERNAL;
  } else {
    part = coord_event_part(c, e, err);
    if (!part) return WEIR_E_INTERNAL;
  }
  if (c->phase >= PHASE_FINISHING || c->withdrawing) return WEIR_OK;
  /* In recovery a sink has nothing yet that could be lost; its answers say what failed. */
  if (part && c->phase < PHASE_NAMING) return WEIR_OK;
  bool rewinding = c->phase >= PHASE_STOPPING_LANES && c->phase <= PHASE_SEEKING;
  if (rewinding && (lane ? lane->seek != ASK_DONE : part->purge != ASK_DONE))
    return WEIR_OK;
  if (lane) return coord_fail(c, e->error, COORD_NONE, e->lane, err);
  return coord_fail(c, e->error, e->sink, COORD_NONE, err);
}

/* C13: only now, with Abort durable. Every committable sink, also those that never began. */
static weir_status roll_back(coord *c, weir_error *err) {
  BASE_TRY(coord_enter(c, PHASE_ROLLING_BACK, err));
  BASE_TRY(coord_soil(c, err));
  c->awaited = 0;
  coord_command command = {
      .type = COORD_ROLLBACK, .lane = COORD_NONE, .attempt = c->attempt};
  for (uint32_t i = 0; i < c->n_sinks; i++) {
    if (!c->sinks[i].committable) continue;
    command.sink = i;
    for (uint32_t k = 0; k < c->sinks[i].n_parts; k++) {
      command.participant = k + 1;
      c->sinks[i].parts[k].rollback = ASK_SENT;
      c->awaited++;
      BASE_TRY(coord_push(c, &command, err));
    }
  }
  return WEIR_OK;
}

weir_status coord_on_aborted(coord *c, coord_event *e, weir_error *err) {
  bool resolving = c->phase == PHASE_RESOLVING;
  if (!resolving && (c->phase != PHASE_ABORTING || e->attempt != c->attempt)) {
    return coord_not_now(c, "aborted", err);
  }
  if (e->error) {
    coord_halt_now(c, e->error);
    return WEIR_OK;
  }
  return resolving ? coord_resolved(c, e->attempt, err) : roll_back(c, err);
}

weir_status coord_on_rolled_back(coord *c, coord_event *e, weir_error *err) {
  coord_part *p = coord_event_part(c, e, err);
  if (!p) return WEIR_E_INTERNAL;
  if (c->phase != PHASE_ROLLING_BACK || e->attempt != c->attempt ||
      p->rollback != ASK_SENT) {
    return coord_not_now(c, "rolled back", err);
  }
  if (e->error) {
    weir_error stop = *e->error;
    weir_error_prefix(&stop, stop.code,
                      "sink %s, participant %" PRIu32 ": rollback of attempt %" PRIu64
                      " failed; nothing was decided, and the next start cleans up",
                      c->sinks[e->sink].id, e->participant, c->attempt);
    coord_halt_now(c, &stop);
    return WEIR_OK;
  }
  p->rollback = ASK_DONE;
  c->awaited--;
  return WEIR_OK;
}

/* ---- rewind */

/* C14: the generation is raised while no lane pushes any more, so all that is older than it is of the
 * aborted attempt or was queued behind it. */
static weir_status purge(coord *c, weir_error *err) {
  BASE_TRY(coord_enter(c, PHASE_PURGING, err));
  c->generation++;
  c->awaited = c->n_parts;
  coord_command command = {.type = COORD_PURGE,
                           .lane = COORD_NONE,
                           .attempt = c->attempt,
                           .generation = c->generation};
  for (uint32_t i = 0; i < c->n_sinks; i++) {
    command.sink = i;
    for (uint32_t k = 0; k < c->sinks[i].n_parts; k++) {
      command.participant = k + 1;
      c->sinks[i].parts[k].purge = ASK_SENT;
      BASE_TRY(coord_push(c, &command, err));
    }
  }
  return WEIR_OK;
}

weir_status coord_on_purged(coord *c, coord_event *e, weir_error *err) {
  coord_part *p = coord_event_part(c, e, err);
  if (!p) return WEIR_E_INTERNAL;
  if (e->generation < c->generation) return WEIR_OK;
  if (c->phase != PHASE_PURGING || p->purge != ASK_SENT ||
      e->generation != c->generation) {
    return coord_not_now(c, "purged", err);
  }
  if (e->error) return coord_halt(c, e->error, err);
  p->purge = ASK_DONE;
  c->awaited--;
  return WEIR_OK;
}

/* C14: to the last decided position, never to the last one that was seen at the targets: what is decided
 * will be published. */
static weir_status seek(coord *c, uint32_t lane_index, weir_error *err) {
  coord_lane *lane = &c->lanes[lane_index];
  lane->seek = ASK_SENT;
  lane->seek_retry_at = 0;
  lane->ended = lane->barrier = false;
  return coord_push(c,
                    &(coord_command){.type = COORD_SEEK,
                                     .sink = COORD_NONE,
                                     .lane = lane_index,
                                     .attempt = c->attempt,
                                     .generation = c->generation,
                                     .rows = lane->rows,
                                     .has_position = lane->position.release != NULL,
                                     .position = lane->position.data,
                                     .position_size = lane->position.size},
                    err);
}

weir_status coord_on_sought(coord *c, coord_event *e, weir_error *err) {
  coord_lane *lane = coord_event_lane(c, e, err);
  if (!lane) return WEIR_E_INTERNAL;
  if (e->generation < c->generation) return WEIR_OK;
  if (c->phase != PHASE_SEEKING || lane->seek != ASK_SENT ||
      e->generation != c->generation) {
    return coord_not_now(c, "sought", err);
  }
  if (!e->error) {
    lane->seek = ASK_DONE;
    lane->seek_backoff = 0;
    return WEIR_OK;
  }
  if (coord_count_failure(c, e->error, COORD_NONE, e->lane))
    return coord_halt(c, &c->error, err);
  lane->seek = ASK_NOT;
  lane->seek_backoff = coord_grow_backoff(c, lane->seek_backoff);
  lane->seek_retry_at = coord_later(c, lane->seek_backoff);
  return WEIR_OK;
}

static weir_status seek_lanes(coord *c, bool *moved, weir_error *err) {
  bool all = true;
  for (uint32_t i = 0; i < c->n_lanes; i++) {
    coord_lane *lane = &c->lanes[i];
    if (lane->seek == ASK_NOT && lane->seek_retry_at <= c->now) BASE_TRY(seek(c, i, err));
    all = all && lane->seek == ASK_DONE;
  }
  if (!all) return WEIR_OK;
  *moved = true;
  return coord_enter(c, PHASE_BACKING_OFF, err);
}

/* ---- moves */

static weir_status rolled_back(coord *c, bool *moved, weir_error *err) {
  if (c->awaited) return WEIR_OK;
  *moved = true;
  coord_reset_preparing(c);
  if (c->stopping) return coord_halt(c, &c->error, err);
  if (c->withdrawing) return coord_enter(c, PHASE_FINISHING, err);
  return purge(c, err);
}

weir_status coord_progress_abort(coord *c, bool *moved, weir_error *err) {
  switch (c->phase) {
    case PHASE_STOPPING_LANES:
      for (uint32_t i = 0; i < c->n_lanes; i++) {
        if (c->lanes[i].stop != ASK_DONE) return WEIR_OK;
      }
      *moved = true;
      return send_abort(c, err);
    case PHASE_ROLLING_BACK:
      return rolled_back(c, moved, err);
    case PHASE_PURGING:
      if (c->awaited) return WEIR_OK;
      *moved = true;
      return coord_enter(c, PHASE_SEEKING, err);
    case PHASE_SEEKING:
      return seek_lanes(c, moved, err);
    case PHASE_BACKING_OFF:
      if (c->now < c->backoff_until) return WEIR_OK;
      *moved = true;
      return coord_name_next(c, err);
    default:
      return WEIR_OK;
  }
}
