/* SPDX-License-Identifier: Apache-2.0 */
/* From 'all sealed' to the decision: pre_commit on every sink, bounds, the one durable transaction. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "coord/state.h"

bool coord_same_bytes(const weir_bytes *a, const weir_bytes *b) {
  bool a_there = a->release != NULL, b_there = b->release != NULL;
  return a_there == b_there && a->size == b->size &&
         (!a->size || memcmp(a->data, b->data, a->size) == 0);
}

const weir_bytes *coord_lane_position(const coord_lane *lane) {
  return lane->barrier ? &lane->barrier_position : &lane->end_position;
}

uint64_t coord_lane_rows(const coord_lane *lane) {
  return lane->barrier ? lane->barrier_rows : lane->end_rows;
}

bool coord_is_last(const coord *c) {
  for (uint32_t i = 0; i < c->n_lanes; i++) {
    if (!c->lanes[i].ended || c->lanes[i].barrier) return false;
  }
  return true;
}

/* ---- pre_commit */

weir_status coord_start_preparing(coord *c, weir_error *err) {
  BASE_TRY(coord_enter(c, PHASE_PREPARING, err));
  c->next = coord_is_last(c) ? 0 : c->last + 1;
  c->prepare_until = coord_later(c, c->timeout);
  return WEIR_OK;
}

/* The timeout runs while a pre_commit is out. What waits for a commit before it waits for its target,
 * which no abort would bring back. */
int64_t coord_prepare_deadline(const coord *c) {
  return c->preparing ? c->prepare_until : INT64_MAX;
}

static weir_status send_pre_commit(coord *c, uint32_t sink, weir_error *err) {
  coord_sink_state *s = &c->sinks[sink];
  coord_command command = {.type = COORD_PRE_COMMIT,
                           .sink = sink,
                           .lane = COORD_NONE,
                           .attempt = c->attempt,
                           .next = s->committable ? c->next : 0};
  s->preparing = ASK_SENT;
  s->unprepared = s->n_parts;
  c->preparing++;
  for (uint32_t k = 0; k < s->n_parts; k++) {
    command.participant = k + 1;
    s->parts[k].prepare = ASK_SENT;
    BASE_TRY(coord_push(c, &command, err));
  }
  return WEIR_OK;
}

/* Without `overlap` the commit before must have its final answer first, since it runs on the same
 * thread. A sink that gathers (commit_interval) may have attempts owed that are not due. */
static bool waits_for_commit(const coord *c, const coord_sink_state *s) {
  return s->committable && !s->overlap &&
         (s->commit != COMMIT_IDLE || coord_commit_due(c, s));
}

static weir_status send_pre_commits(coord *c, weir_error *err) {
  while (c->next_prepare < c->n_sinks && c->sinks[c->next_prepare].preparing != ASK_NOT)
    c->next_prepare++;
  for (uint32_t i = c->next_prepare; i < c->n_sinks && c->preparing < COORD_AT_ONCE;
       i++) {
    coord_sink_state *s = &c->sinks[i];
    if (s->preparing != ASK_NOT || waits_for_commit(c, s)) continue;
    /* After a wait for commits in which no pre_commit was out, the timeout starts again. */
    if (!c->preparing) c->prepare_until = coord_later(c, c->timeout);
    BASE_TRY(send_pre_commit(c, i, err));
  }
  return WEIR_OK;
}

static weir_status check_descriptor(const coord_sink_state *s, const coord_event *e,
                                    weir_error *err) {
  if (e->bytes.size > WEIR_MAX_DESCRIPTOR) {
    return weir_error_set(
        err, WEIR_E_INTERNAL, 0,
        "sink %s, participant %" PRIu32 ", attempt %" PRIu64
        ": its descriptor has %zu bytes; at most %u are allowed: checkpoint more "
        "often",
        s->id, e->participant, e->attempt, e->bytes.size, WEIR_MAX_DESCRIPTOR);
  }
  if (e->intent.size > WEIR_MAX_INTENT) {
    return weir_error_set(err, WEIR_E_INTERNAL, 0,
                          "sink %s, participant %" PRIu32
                          ": its artifact intent has %zu bytes; at most %u are allowed",
                          s->id, e->participant, e->intent.size, WEIR_MAX_INTENT);
  }
  return WEIR_OK;
}

weir_status coord_on_prepared(coord *c, coord_event *e, weir_error *err) {
  coord_part *p = coord_event_part(c, e, err);
  if (!p) return WEIR_E_INTERNAL;
  if (e->attempt < c->attempt ||
      (e->attempt == c->attempt && c->phase > PHASE_DECIDING)) {
    return WEIR_OK;
  }
  if (c->phase != PHASE_PREPARING || e->attempt != c->attempt || p->prepare != ASK_SENT) {
    return coord_not_now(c, "prepared", err);
  }
  coord_sink_state *s = &c->sinks[e->sink];
  if (e->error) return coord_fail(c, e->error, e->sink, COORD_NONE, err);
  weir_error bad = {0};
  if (check_descriptor(s, e, &bad)) return coord_fail(c, &bad, e->sink, COORD_NONE, err);
  p->prepare = ASK_DONE;
  if (s->committable) {
    coord_take(&p->descriptor, &e->bytes);
    coord_take(&p->next_intent, &e->intent);
  }
  if (--s->unprepared) return WEIR_OK;
  s->preparing = ASK_DONE;
  c->preparing--;
  c->prepared++;
  return WEIR_OK;
}

/* ---- the decision */

/* Decision n+1 waits for every target with rows owed, so that a failing target stops the run soon; one
 * that gathers may owe as long as its interval. A sink without `overlap` sends no commit between its
 * pre_commit and the decision, so what became due meanwhile goes out right after it. */
static bool decision_waits(const coord *c) {
  if (c->prepared != c->n_sinks) return true;
  for (uint32_t i = 0; i < c->n_sinks; i++) {
    const coord_sink_state *s = &c->sinks[i];
    if (s->committable && s->overlap && s->rows_owed && coord_commit_due(c, s))
      return true;
  }
  return false;
}

void coord_drop_decision(coord *c) {
  for (uint32_t i = 0; c->decision_owed && i < c->n_sinks; i++) {
    coord_debt_done(&c->decision_owed[i]);
  }
  coord_cut_done(c, &c->decision_cut);
  free(c->decision_owed);
  free(c->decision_sinks);
  free(c->decision_descriptors);
  free(c->decision_intents);
  free(c->decision_positions);
  c->decision_owed = NULL;
  c->decision_sinks = NULL;
  c->decision_descriptors = c->decision_intents = NULL;
  c->decision_positions = NULL;
  c->decision = (weir_store_decision){0};
}

/* Moves the descriptors into what the sink will owe. */
static weir_status make_debt(coord *c, coord_sink_state *s, coord_debt *debt,
                             weir_store_sink *out, weir_error *err) {
  debt->entries = base_calloc(s->n_parts, sizeof(*debt->entries), err);
  debt->owners = base_calloc(s->n_parts, sizeof(*debt->owners), err);
  if (!debt->entries || !debt->owners) return WEIR_E_NOMEM;
  uint64_t rows = 0, nbytes = 0;
  debt->n_entries = s->n_parts;
  for (uint32_t k = 0; k < s->n_parts; k++) {
    coord_part *p = &s->parts[k];
    coord_take(&debt->owners[k], &p->descriptor);
    debt->entries[k] = (weir_commit_entry){.participant_id = k + 1,
                                           .present = debt->owners[k].release != NULL,
                                           .descriptor = debt->owners[k].data,
                                           .size = debt->owners[k].size};
    debt->size += debt->owners[k].size;
    rows += p->rows;
    nbytes += p->nbytes;
    if (p->rows || debt->entries[k].present) debt->has_rows = true;
  }
  if (debt->size > WEIR_MAX_BATCH_DESCRIPTORS) return WEIR_OK; /* refused by the caller */
  debt->cursor.checkpoint = c->attempt;
  debt->cursor.token = c->token;
  BASE_TRY(coord_digest(s->id, c->attempt, debt->entries, debt->n_entries,
                        debt->cursor.digest, err));
  *out = (weir_store_sink){.sink_id = s->id,
                           .cursor = debt->cursor,
                           .has_rows = debt->has_rows,
                           .rows = s->rows + rows,
                           .bytes = s->bytes + nbytes};
  return coord_reserve_debt(s, err);
}

static weir_status make_positions(coord *c, weir_error *err) {
  size_t n = (size_t)c->n_lanes + c->n_inert;
  c->decision_positions = base_calloc(n, sizeof(*c->decision_positions), err);
  c->decision_cut.positions = base_calloc(c->n_lanes, sizeof(weir_bytes), err);
  if (!c->decision_positions || !c->decision_cut.positions) return WEIR_E_NOMEM;
  c->decision_cut.attempt = c->attempt;
  for (size_t i = 0; i < n; i++) {
    const coord_lane *lane = &c->lanes[i];
    const weir_bytes *position =
        lane->inert ? &lane->position : coord_lane_position(lane);
    c->decision_positions[i] =
        (weir_store_position){.source = lane->name,
                              .present = position->release != NULL,
                              .data = position->data,
                              .size = position->size,
                              .rows = lane->inert ? lane->rows : coord_lane_rows(lane),
                              .lost = lane->lost};
    if (lane->inert) continue;
    BASE_TRY(coord_copy_bytes(&c->decision_cut.positions[i], position->release != NULL,
                              position->data, position->size, err));
  }
  c->decision.positions = c->decision_positions;
  c->decision.n_positions = n;
  return WEIR_OK;
}

static weir_status make_entries(coord *c, size_t *next_size, weir_error *err) {
  size_t n = 0;
  for (uint32_t i = 0; i < c->n_sinks; i++)
    n += c->sinks[i].committable ? c->sinks[i].n_parts : 0;
  c->decision_descriptors = base_calloc(n, sizeof(weir_store_entry), err);
  c->decision_intents = base_calloc(n, sizeof(weir_store_entry), err);
  if (!c->decision_descriptors || !c->decision_intents) return WEIR_E_NOMEM;
  size_t at = 0;
  for (uint32_t i = 0; i < c->n_sinks; i++) {
    const coord_sink_state *s = &c->sinks[i];
    for (uint32_t k = 0; s->committable && k < s->n_parts; k++, at++) {
      const weir_commit_entry *entry = &c->decision_owed[i].entries[k];
      const weir_bytes *intent = &s->parts[k].next_intent;
      c->decision_descriptors[at] = (weir_store_entry){.sink_id = s->id,
                                                       .participant_id = k + 1,
                                                       .present = entry->present,
                                                       .data = entry->descriptor,
                                                       .size = entry->size};
      c->decision_intents[at] = (weir_store_entry){.sink_id = s->id,
                                                   .participant_id = k + 1,
                                                   .present = intent->release != NULL,
                                                   .data = intent->data,
                                                   .size = intent->size};
      *next_size += intent->size;
    }
  }
  c->decision.descriptors = c->decision_descriptors;
  c->decision.n_descriptors = n;
  c->decision.intents = c->decision_intents;
  c->decision.n_intents = c->next ? n : 0;
  return WEIR_OK;
}

static weir_status too_large(const coord *c, const char *what, const char *whose,
                             size_t size, size_t most, weir_error *err) {
  return weir_error_set(err, WEIR_E_INTERNAL, 0,
                        "attempt %" PRIu64
                        ": the %s of %s have %zu bytes in all; at most %zu are "
                        "allowed: checkpoint more often, or use fewer writers",
                        c->attempt, what, whose, size, most);
}

/* C8: builds the one transaction. A bound that is passed is a failure of the attempt, in *bad. */
static weir_status make_decision(coord *c, weir_error *bad, uint32_t *bad_sink,
                                 weir_error *err) {
  coord_drop_decision(c);
  c->decision_owed = base_calloc(c->n_sinks, sizeof(*c->decision_owed), err);
  c->decision_sinks = base_calloc(c->n_sinks, sizeof(*c->decision_sinks), err);
  if (!c->decision_owed || !c->decision_sinks) return WEIR_E_NOMEM;
  size_t n = 0, next_size = 0;
  for (uint32_t i = 0; i < c->n_sinks; i++) {
    coord_sink_state *s = &c->sinks[i];
    if (!s->committable) continue;
    coord_debt *debt = &c->decision_owed[i];
    BASE_TRY(make_debt(c, s, debt, &c->decision_sinks[n++], err));
    if (debt->size > WEIR_MAX_BATCH_DESCRIPTORS) {
      *bad_sink = i;
      too_large(c, "descriptors", s->id, debt->size, WEIR_MAX_BATCH_DESCRIPTORS, bad);
      return WEIR_OK;
    }
  }
  BASE_TRY(make_positions(c, err));
  BASE_TRY(make_entries(c, &next_size, err));
  if (next_size > WEIR_MAX_INTENTS) {
    too_large(c, "artifact intents", "the next attempt", next_size, WEIR_MAX_INTENTS,
              bad);
  }
  c->decision.attempt = c->attempt;
  c->decision.token = c->token;
  c->decision.sinks = c->decision_sinks;
  c->decision.n_sinks = n;
  c->decision.next_attempt = c->next;
  return WEIR_OK;
}

weir_status coord_progress_preparing(coord *c, bool *moved, weir_error *err) {
  if (c->phase != PHASE_PREPARING) return WEIR_OK;
  if (c->now >= coord_prepare_deadline(c)) {
    weir_error late = {0};
    weir_error_set(&late, WEIR_E_TIMEOUT, WEIR_ERR_RETRIABLE,
                   "attempt %" PRIu64 " was not prepared within the checkpoint timeout",
                   c->attempt);
    *moved = true;
    return coord_fail(c, &late, COORD_NONE, COORD_NONE, err);
  }
  BASE_TRY(send_pre_commits(c, err));
  if (decision_waits(c)) return WEIR_OK;
  weir_error bad = {0};
  uint32_t bad_sink = COORD_NONE;
  BASE_TRY(make_decision(c, &bad, &bad_sink, err));
  *moved = true;
  if (bad.code) return coord_fail(c, &bad, bad_sink, COORD_NONE, err);
  BASE_TRY(coord_enter(c, PHASE_DECIDING, err));
  return coord_push(c,
                    &(coord_command){.type = COORD_DECIDE,
                                     .sink = COORD_NONE,
                                     .lane = COORD_NONE,
                                     .attempt = c->attempt,
                                     .next = c->next,
                                     .decision = &c->decision},
                    err);
}

/* ---- after it */

static weir_status keep_cut(coord *c, weir_error *err) {
  if (c->n_cuts == c->cuts_capacity) {
    size_t capacity = c->cuts_capacity ? 2 * c->cuts_capacity : 8;
    coord_cut *grown = base_realloc(c->cuts, capacity, sizeof(*grown), err);
    if (!grown) return WEIR_E_NOMEM;
    c->cuts = grown;
    c->cuts_capacity = capacity;
  }
  c->cuts[c->n_cuts++] = c->decision_cut;
  c->decision_cut = (coord_cut){0};
  return WEIR_OK;
}

static weir_status settle_positions(coord *c, weir_error *err) {
  for (uint32_t i = 0; i < c->n_lanes; i++) {
    coord_lane *lane = &c->lanes[i];
    lane->rows = coord_lane_rows(lane);
    const weir_bytes *position = coord_lane_position(lane);
    BASE_TRY(coord_copy_bytes(&lane->position, position->release != NULL, position->data,
                              position->size, err));
  }
  return WEIR_OK;
}

static void settle_sinks(coord *c) {
  for (uint32_t i = 0, n = 0; i < c->n_sinks; i++) {
    coord_sink_state *s = &c->sinks[i];
    if (!s->committable) continue;
    s->decided = c->decision_sinks[n].cursor;
    s->rows = c->decision_sinks[n].rows;
    s->bytes = c->decision_sinks[n].bytes;
    c->decision_owed[i].since = c->now;
    coord_owe(s, &c->decision_owed[i]);
    c->decision_owed[i] = (coord_debt){0};
    n++;
  }
}

/* The attempt that was reserved with the decision becomes the present one, its intents with it. */
static void turn_to_next(coord *c) {
  for (uint32_t i = 0; i < c->n_sinks; i++) {
    for (uint32_t k = 0; k < c->sinks[i].n_parts; k++) {
      coord_part *p = &c->sinks[i].parts[k];
      weir_bytes intent = p->next_intent;
      p->next_intent = (weir_bytes){0};
      coord_take(&p->intent, &intent);
    }
  }
  c->attempt = c->last = c->next;
  coord_reset_attempt(c);
}

weir_status coord_on_decided(coord *c, coord_event *e, weir_error *err) {
  if (c->phase != PHASE_DECIDING || e->attempt != c->attempt) {
    return coord_not_now(c, "decided", err);
  }
  if (e->error) {
    coord_halt_now(c, e->error);
    return WEIR_OK;
  }
  BASE_TRY(settle_positions(c, err));
  BASE_TRY(keep_cut(c, err));
  settle_sinks(c);
  c->decided = c->attempt;
  c->next_commit = 0;
  c->epochs++;
  coord_forget_failures(c);
  if (!c->next) {
    coord_reset_attempt(c);
    coord_drop_decision(c);
    c->failed = false;
    return coord_enter(c, PHASE_FINISHING, err);
  }
  turn_to_next(c);
  coord_drop_decision(c);
  BASE_TRY(coord_progress_commits(c, err));
  return coord_begin(c, err);
}
