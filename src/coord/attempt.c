/* SPDX-License-Identifier: Apache-2.0 */
/* The way of an attempt up to 'all sealed': intents, reservation, begin_epoch, gates, barriers. */
#include <inttypes.h>
#include <stdlib.h>

#include "coord/state.h"

/* An answer of an attempt that is over: allowed, and of no interest. */
static bool is_late(const coord *c, uint64_t attempt) {
  return attempt < c->attempt || (attempt == c->attempt && c->phase > PHASE_DECIDING);
}

static coord_command command_of(coord_command_type type, uint64_t attempt) {
  return (coord_command){
      .type = type, .sink = COORD_NONE, .lane = COORD_NONE, .attempt = attempt};
}

void coord_reset_preparing(coord *c) {
  for (uint32_t i = 0; i < c->n_sinks; i++) c->sinks[i].preparing = ASK_NOT;
  c->preparing = c->prepared = c->next_prepare = 0;
}

/* All but the intents, which outlive the decision before the attempt. */
void coord_reset_attempt(coord *c) {
  coord_reset_preparing(c);
  c->n_sealed = 0;
  for (uint32_t i = 0; i < c->n_sinks; i++) {
    coord_sink_state *s = &c->sinks[i];
    for (uint32_t k = 0; k < s->n_parts; k++) {
      coord_part *p = &s->parts[k];
      p->intent_asked = p->begin = p->prepare = p->rollback = p->purge = ASK_NOT;
      p->sealed = false;
      p->rows = p->nbytes = 0;
      weir_bytes_release(&p->next_intent);
      weir_bytes_release(&p->descriptor);
    }
  }
  for (uint32_t i = 0; i < c->n_lanes; i++) {
    c->lanes[i].barrier = false;
    weir_bytes_release(&c->lanes[i].barrier_position);
  }
  c->opened = false;
  c->drain_asked = false;
}

/* ---- intents and reservation */

weir_status coord_name_next(coord *c, weir_error *err) {
  BASE_TRY(coord_enter(c, PHASE_NAMING, err));
  coord_reset_attempt(c);
  c->attempt = ++c->last;
  c->awaited = 0;
  coord_command command = command_of(COORD_GET_INTENT, c->attempt);
  for (uint32_t i = 0; i < c->n_sinks; i++) {
    if (!c->sinks[i].committable) continue;
    command.sink = i;
    for (uint32_t k = 0; k < c->sinks[i].n_parts; k++) {
      command.participant = k + 1;
      c->sinks[i].parts[k].intent_asked = ASK_SENT;
      c->awaited++;
      BASE_TRY(coord_push(c, &command, err));
    }
  }
  return WEIR_OK;
}

static weir_status check_intent(const coord_sink_state *s, uint32_t participant,
                                size_t size, weir_error *err) {
  if (size <= WEIR_MAX_INTENT) return WEIR_OK;
  return weir_error_set(err, WEIR_E_INTERNAL, 0,
                        "sink %s, participant %" PRIu32
                        ": its artifact intent has %zu bytes; at most %u are allowed",
                        s->id, participant, size, WEIR_MAX_INTENT);
}

/* Nothing is reserved yet, so nothing is aborted: the number is passed over. */
static weir_status naming_failed(coord *c, const weir_error *error, uint32_t sink,
                                 weir_error *err) {
  if (coord_count_failure(c, error, sink, COORD_NONE))
    return coord_halt(c, &c->error, err);
  return coord_enter(c, PHASE_BACKING_OFF, err);
}

weir_status coord_on_intent(coord *c, coord_event *e, weir_error *err) {
  coord_part *p = coord_event_part(c, e, err);
  if (!p) return WEIR_E_INTERNAL;
  if (e->attempt < c->attempt) return WEIR_OK;
  if (e->attempt == c->attempt && c->phase > PHASE_NAMING) return WEIR_OK;
  if (c->phase != PHASE_NAMING || e->attempt != c->attempt ||
      p->intent_asked != ASK_SENT) {
    return coord_not_now(c, "intent", err);
  }
  weir_error bad = {0};
  if (!e->error &&
      check_intent(&c->sinks[e->sink], e->participant, e->bytes.size, &bad)) {
    return naming_failed(c, &bad, e->sink, err);
  }
  if (e->error) return naming_failed(c, e->error, e->sink, err);
  p->intent_asked = ASK_DONE;
  c->awaited--;
  coord_take(&p->intent, &e->bytes);
  return WEIR_OK;
}

/* C5: the number and its intents are durable before any participant may begin. */
static weir_status reserve(coord *c, weir_error *err) {
  size_t n = 0, size = 0;
  for (uint32_t i = 0; i < c->n_sinks; i++) {
    if (!c->sinks[i].committable) continue;
    n += c->sinks[i].n_parts;
    for (uint32_t k = 0; k < c->sinks[i].n_parts; k++)
      size += c->sinks[i].parts[k].intent.size;
  }
  if (size > WEIR_MAX_INTENTS) {
    weir_error large = {0};
    weir_error_set(&large, WEIR_E_INTERNAL, 0,
                   "the artifact intents of attempt %" PRIu64
                   " have %zu bytes in all; at most %u are allowed: use fewer writers",
                   c->attempt, size, WEIR_MAX_INTENTS);
    return naming_failed(c, &large, COORD_NONE, err);
  }
  weir_store_entry *entries = base_calloc(n, sizeof(*entries), err);
  if (!entries) return WEIR_E_NOMEM;
  free(c->reserve_entries);
  c->reserve_entries = entries;
  for (uint32_t i = 0; i < c->n_sinks; i++) {
    const coord_sink_state *s = &c->sinks[i];
    for (uint32_t k = 0; s->committable && k < s->n_parts; k++) {
      *entries++ = (weir_store_entry){.sink_id = s->id,
                                      .participant_id = k + 1,
                                      .present = s->parts[k].intent.release != NULL,
                                      .data = s->parts[k].intent.data,
                                      .size = s->parts[k].intent.size};
    }
  }
  BASE_TRY(coord_enter(c, PHASE_RESERVING, err));
  coord_command command = command_of(COORD_RESERVE, c->attempt);
  command.entries = c->reserve_entries;
  command.n_entries = n;
  return coord_push(c, &command, err);
}

weir_status coord_on_reserved(coord *c, coord_event *e, weir_error *err) {
  if (c->phase != PHASE_RESERVING || e->attempt != c->attempt) {
    return coord_not_now(c, "reserved", err);
  }
  if (e->error) {
    coord_halt_now(c, e->error);
    return WEIR_OK;
  }
  return coord_begin(c, err);
}

/* ---- begin and gates */

/* The present attempt is reserved: by C5, or with the decision before it (C8). */
weir_status coord_begin(coord *c, weir_error *err) {
  if (c->failed) {
    weir_error failure = c->failure;
    c->failed = false;
    return coord_abort(c, &failure, c->failure_sink, c->failure_lane, err);
  }
  BASE_TRY(coord_enter(c, PHASE_BEGINNING, err));
  c->awaited = 0;
  coord_command command = command_of(COORD_BEGIN, c->attempt);
  for (uint32_t i = 0; i < c->n_sinks; i++) {
    if (!c->sinks[i].committable) continue;
    command.sink = i;
    for (uint32_t k = 0; k < c->sinks[i].n_parts; k++) {
      command.participant = k + 1;
      c->sinks[i].parts[k].begin = ASK_SENT;
      c->awaited++;
      BASE_TRY(coord_push(c, &command, err));
    }
  }
  return WEIR_OK;
}

weir_status coord_on_begun(coord *c, coord_event *e, weir_error *err) {
  coord_part *p = coord_event_part(c, e, err);
  if (!p) return WEIR_E_INTERNAL;
  if (is_late(c, e->attempt)) return WEIR_OK;
  if (c->phase != PHASE_BEGINNING || e->attempt != c->attempt || p->begin != ASK_SENT) {
    return coord_not_now(c, "begun", err);
  }
  p->begin = ASK_DONE;
  c->awaited--;
  return e->error ? coord_fail(c, e->error, e->sink, COORD_NONE, err) : WEIR_OK;
}

/* C7: no gate opens before every participant of every committable sink has begun. */
static weir_status open_gates(coord *c, weir_error *err) {
  BASE_TRY(coord_enter(c, PHASE_OPEN, err));
  for (uint32_t i = 0; i < c->n_sinks; i++) {
    for (uint32_t k = 0; k < c->sinks[i].n_parts; k++)
      c->sinks[i].parts[k].sealed = false;
  }
  c->n_sealed = 0;
  for (uint32_t i = 0; i < c->n_lanes; i++) c->lanes[i].barrier = false;
  c->opened = true;
  c->checkpoint_at = c->interval ? coord_later(c, c->interval) : INT64_MAX;
  const coord_command command = command_of(COORD_OPEN_GATES, c->attempt);
  return coord_push(c, &command, err);
}

/* ---- barriers and seals */

weir_status coord_on_barrier_sent(coord *c, coord_event *e, weir_error *err) {
  coord_lane *lane = coord_event_lane(c, e, err);
  if (!lane) return WEIR_E_INTERNAL;
  if (is_late(c, e->attempt)) return WEIR_OK;
  if (c->phase != PHASE_SEALING || e->attempt != c->attempt || lane->barrier ||
      lane->ended) {
    return coord_not_now(c, "barrier sent", err);
  }
  lane->barrier = true;
  lane->barrier_rows = e->rows;
  coord_take(&lane->barrier_position, &e->bytes);
  return WEIR_OK;
}

/* The last barrier stands for that of every later attempt; its position belongs to the first attempt
 * for which the lane sent no barrier of its own. */
weir_status coord_on_lane_ended(coord *c, coord_event *e, weir_error *err) {
  coord_lane *lane = coord_event_lane(c, e, err);
  if (!lane) return WEIR_E_INTERNAL;
  if (e->generation < c->generation) return WEIR_OK; /* a rewind made it live again */
  if (e->generation > c->generation || lane->ended)
    return coord_not_now(c, "lane ended", err);
  lane->ended = true;
  lane->end_rows = e->rows;
  coord_take(&lane->end_position, &e->bytes);
  return WEIR_OK;
}

/* Comes in OPEN too: a participant all of whose lanes have ended meets their ends at once. */
weir_status coord_on_sealed(coord *c, coord_event *e, weir_error *err) {
  coord_part *p = coord_event_part(c, e, err);
  if (!p) return WEIR_E_INTERNAL;
  if (is_late(c, e->attempt)) return WEIR_OK;
  if ((c->phase != PHASE_SEALING && c->phase != PHASE_OPEN) || e->attempt != c->attempt ||
      p->sealed) {
    return coord_not_now(c, "sealed", err);
  }
  p->sealed = true;
  c->n_sealed++;
  p->rows = e->rows;
  p->nbytes = e->nbytes;
  return WEIR_OK;
}

static bool round_complete(const coord *c) {
  if (c->n_sealed != c->n_parts) return false;
  for (uint32_t i = 0; i < c->n_lanes; i++) {
    if (!c->lanes[i].barrier && !c->lanes[i].ended) return false;
  }
  return true;
}

static bool nothing_moved(const coord *c) {
  for (uint32_t i = 0; i < c->n_lanes; i++) {
    if (!coord_same_bytes(coord_lane_position(&c->lanes[i]), &c->lanes[i].position))
      return false;
  }
  for (uint32_t i = 0; i < c->n_sinks; i++) {
    for (uint32_t k = 0; k < c->sinks[i].n_parts; k++) {
      if (c->sinks[i].parts[k].rows) return false;
    }
  }
  return true;
}

static weir_status all_sealed(coord *c, weir_error *err) {
  if (!nothing_moved(c)) return coord_start_preparing(c, err);
  if (coord_is_last(c)) return coord_withdraw(c, err);
  return open_gates(c, err);
}

bool coord_all_ended(const coord *c) {
  for (uint32_t i = 0; i < c->n_lanes; i++) {
    if (!c->lanes[i].ended) return false;
  }
  return true;
}

/* The drain asks once an attempt: the lanes were told to end, and their ends do the rest. */
static weir_status send_barriers_when_due(coord *c, bool *moved, weir_error *err) {
  bool drain = c->draining && !c->drain_asked;
  if (!c->checkpoint_asked && !drain && c->now < c->checkpoint_at) return WEIR_OK;
  if (coord_all_ended(c)) return WEIR_OK; /* sealed by their ends */
  c->checkpoint_asked = false;
  if (drain) c->drain_asked = true;
  *moved = true;
  BASE_TRY(coord_enter(c, PHASE_SEALING, err));
  const coord_command command = command_of(COORD_SEND_BARRIERS, c->attempt);
  return coord_push(c, &command, err);
}

weir_status coord_progress_attempt(coord *c, bool *moved, weir_error *err) {
  switch (c->phase) {
    case PHASE_NAMING:
      if (c->awaited) return WEIR_OK;
      *moved = true;
      return reserve(c, err);
    case PHASE_BEGINNING:
      if (c->awaited) return WEIR_OK;
      *moved = true;
      return open_gates(c, err);
    case PHASE_OPEN:
      if (!round_complete(c)) return send_barriers_when_due(c, moved, err);
      *moved = true;
      return all_sealed(c, err);
    case PHASE_SEALING:
      if (!round_complete(c)) return WEIR_OK;
      *moved = true;
      return all_sealed(c, err);
    default:
      return WEIR_OK;
  }
}
