/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decided attempts on their way to the targets: per sink at most one batch is out, always in order, and
 * a batch that was sent stays as it is until its final answer.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "coord/state.h"

/* ---- what a sink owes */

void coord_debt_done(coord_debt *debt) {
  for (size_t i = 0; debt->owners && i < debt->n_entries; i++)
    weir_bytes_release(&debt->owners[i]);
  free(debt->owners);
  free(debt->entries);
  *debt = (coord_debt){0};
}

weir_status coord_reserve_debt(coord_sink_state *s, weir_error *err) {
  if (s->n_owed < s->owed_capacity) return WEIR_OK;
  size_t capacity = s->owed_capacity ? 2 * s->owed_capacity : 8;
  coord_debt *grown = base_realloc(s->owed, capacity, sizeof(*grown), err);
  if (!grown) return WEIR_E_NOMEM;
  s->owed = grown;
  s->owed_capacity = capacity;
  return WEIR_OK;
}

void coord_owe(coord_sink_state *s, const coord_debt *debt) {
  s->owed[s->n_owed++] = *debt;
  s->rows_owed += debt->has_rows;
  s->owed_size += debt->size;
  s->owed_parts += debt->n_entries;
}

void coord_drop_owed(coord_sink_state *s, size_t n) {
  for (size_t i = 0; i < n; i++) {
    s->rows_owed -= s->owed[i].has_rows;
    s->owed_size -= s->owed[i].size;
    s->owed_parts -= s->owed[i].n_entries;
    coord_debt_done(&s->owed[i]);
  }
  s->n_owed -= n;
  if (n && s->n_owed) memmove(s->owed, s->owed + n, s->n_owed * sizeof(*s->owed));
}

/* ---- when */

/* It owes rows. */
static int64_t gathered_until(const coord_sink_state *s) {
  const coord_debt *oldest = s->owed;
  while (!oldest->has_rows) oldest++;
  int64_t at = 0;
  return __builtin_add_overflow(oldest->since, s->commit_interval, &at) ? INT64_MAX : at;
}

/* Gathering stops at half of what one batch may hold. */
static bool gathered_enough(const coord_sink_state *s) {
  return s->owed_size >= WEIR_MAX_BATCH_DESCRIPTORS / 2 ||
         s->owed_parts >= WEIR_MAX_BATCH_ENTRIES / 2 || s->n_owed >= COORD_EMPTY_LIMIT;
}

/* Empty attempts ride in the next batch. They get one of their own when many are owed, but never at the
 * end of a run: what is left then has nothing to publish. */
bool coord_commit_due(const coord *c, const coord_sink_state *s) {
  if (!s->committable || !s->n_owed) return false;
  if (!s->rows_owed) {
    return c->phase != PHASE_FINISHING &&
           (s->n_owed >= COORD_EMPTY_LIMIT || s->owed_parts >= WEIR_MAX_BATCH_ENTRIES);
  }
  if (!s->commit_interval || !c->recovered || c->phase == PHASE_FINISHING) return true;
  return gathered_enough(s) || gathered_until(s) <= c->now;
}

/* Without `overlap` nothing is sent between the sink's pre_commit and the decision: same thread. */
static bool may_send(const coord *c, const coord_sink_state *s) {
  return c->phase > PHASE_TAKING_OVER && c->phase < PHASE_HALTING && !c->stopping &&
         (s->overlap || s->preparing == ASK_NOT);
}

int64_t coord_commit_wakeup(const coord *c, const coord_sink_state *s) {
  if (s->commit == COMMIT_WAITING) return s->retry_at;
  if (s->commit == COMMIT_RUNNING || !s->rows_owed || !may_send(c, s)) return INT64_MAX;
  return coord_commit_due(c, s) ? INT64_MAX : gathered_until(s);
}

/* ---- batches */

/* All that is owed, oldest first, within the bounds. Whole attempts only: one always fits, since
 * decide.c refuses a larger one. The predecessor is the cursor that the target showed last: between it
 * and the first attempt owed nothing was published and nothing is to be. */
static weir_status freeze_batch(coord_sink_state *s, weir_error *err) {
  size_t n = 0, size = 0, entries = 0;
  while (n < s->n_owed) {
    size += s->owed[n].size;
    entries += s->owed[n].n_entries;
    if (n && (size > WEIR_MAX_BATCH_DESCRIPTORS || entries > WEIR_MAX_BATCH_ENTRIES))
      break;
    n++;
  }
  /* It ends with rows, if it has any: two histories of copied state give an attempt without rows the same
   * cursor, so such a cursor would not tell which of them the target shows. */
  size_t last = n;
  while (last && !s->owed[last - 1].has_rows) last--;
  if (last) n = last;
  weir_commit_attempt *attempts = base_calloc(n, sizeof(*attempts), err);
  if (!attempts) return WEIR_E_NOMEM;
  for (size_t i = 0; i < n; i++) {
    attempts[i] = (weir_commit_attempt){.cursor = s->owed[i].cursor,
                                        .entries = s->owed[i].entries,
                                        .n_entries = s->owed[i].n_entries};
  }
  free(s->batch_attempts);
  s->batch_attempts = attempts;
  s->batch = (weir_commit_batch){.struct_size = sizeof(s->batch),
                                 .predecessor = s->seen,
                                 .attempts = attempts,
                                 .n_attempts = n};
  return WEIR_OK;
}

static weir_status enter_commit(coord *c, coord_sink_state *s, coord_commit_state to,
                                weir_error *err) {
  if (!coord_commit_may(s->commit, to)) {
    return weir_error_set(
        err, WEIR_E_INTERNAL, 0, "sink %s: its commit may not go from %s to %s", s->id,
        coord_commit_state_name(s->commit), coord_commit_state_name(to));
  }
  if (s->commit == COMMIT_RUNNING) c->committing--;
  if (to == COMMIT_RUNNING) c->committing++;
  s->commit = to;
  return WEIR_OK;
}

/* C9: only what is decided, durable, is ever sent. */
static weir_status send_batch(coord *c, uint32_t sink, weir_error *err) {
  coord_sink_state *s = &c->sinks[sink];
  bool repeat = s->commit == COMMIT_WAITING;
  if (!repeat) BASE_TRY(freeze_batch(s, err));
  BASE_TRY(enter_commit(c, s, COMMIT_RUNNING, err));
  s->retry_at = 0;
  return coord_push(
      c,
      &(coord_command){
          .type = COORD_COMMIT,
          .sink = sink,
          .lane = COORD_NONE,
          .attempt = s->batch.attempts[s->batch.n_attempts - 1].cursor.checkpoint,
          .repeat = repeat,
          .batch = &s->batch},
      err);
}

weir_status coord_progress_commits(coord *c, weir_error *err) {
  const uint32_t first = c->next_commit;
  for (uint32_t k = 0; k < c->n_sinks && c->committing < COORD_AT_ONCE; k++) {
    uint32_t i = (first + k) % c->n_sinks;
    const coord_sink_state *s = &c->sinks[i];
    if (!may_send(c, s)) continue;
    bool again = s->commit == COMMIT_WAITING && s->retry_at <= c->now;
    if (!again && !(s->commit == COMMIT_IDLE && coord_commit_due(c, s))) continue;
    BASE_TRY(send_batch(c, i, err));
    c->next_commit = i + 1;
  }
  return WEIR_OK;
}

/* ---- answers */

weir_status coord_saw(coord *c, uint32_t sink, const weir_cursor *cursor,
                      weir_error *err) {
  return coord_push(
      c,
      &(coord_command){
          .type = COORD_SEEN, .sink = sink, .lane = COORD_NONE, .cursor = *cursor},
      err);
}

static weir_status landed(coord *c, uint32_t sink, const weir_cursor *cursor,
                          weir_error *err) {
  coord_sink_state *s = &c->sinks[sink];
  const weir_cursor *expected = &s->batch.attempts[s->batch.n_attempts - 1].cursor;
  BASE_TRY(enter_commit(c, s, COMMIT_IDLE, err));
  if (!weir_cursor_equal(cursor, expected)) {
    weir_error stop = {0};
    weir_error_set(
        &stop, WEIR_E_CONFLICT, 0,
        "sink %s: attempts up to %" PRIu64 " (token %" PRIu64
        ") were published, but the target shows attempt %" PRIu64 " (token %" PRIu64
        "): another history writes there. Stop the other one; 'weir status' shows both "
        "sides",
        s->id, expected->checkpoint, expected->token, cursor->checkpoint, cursor->token);
    return coord_halt(c, &stop, err);
  }
  s->backoff = 0;
  s->seen = *expected;
  coord_drop_owed(s, s->batch.n_attempts);
  return coord_saw(c, sink, &s->seen, err);
}

/* Everything is kept: the attempt stays decided, and the store has all that it needs. */
static weir_status refused(coord *c, coord_sink_state *s, const weir_error *error,
                           weir_error *err) {
  uint64_t attempt = s->batch.attempts[0].cursor.checkpoint;
  BASE_TRY(enter_commit(c, s, COMMIT_IDLE, err));
  weir_error stop = *error;
  if (stop.code != WEIR_E_FENCED && stop.code != WEIR_E_CONFLICT)
    stop.code = WEIR_E_CONFLICT;
  stop.flags = 0;
  if (stop.code == WEIR_E_FENCED) {
    weir_error_prefix(&stop, stop.code, "sink %s, attempt %" PRIu64, s->id, attempt);
    return coord_halt(c, &stop, err);
  }
  weir_error_prefix(
      &stop, stop.code,
      "sink %s refuses the decided attempt %" PRIu64
      " for good; everything is kept. See 'weir status', and run again once the cause is "
      "gone; if it will never be, 'weir resolve'",
      s->id, attempt);
  return coord_halt(c, &stop, err);
}

weir_status coord_on_committed(coord *c, coord_event *e, weir_error *err) {
  coord_sink_state *s = coord_event_sink(c, e, err);
  if (!s) return WEIR_E_INTERNAL;
  if (s->commit != COMMIT_RUNNING) return coord_not_now(c, "committed", err);
  if (!e->error) return landed(c, e->sink, &e->cursor, err);
  bool again = e->error->code != WEIR_E_FENCED && e->error->code != WEIR_E_CONFLICT &&
               !(e->error->flags & WEIR_ERR_BAD_DATA) &&
               (e->error->code == WEIR_E_NOMEM ||
                e->error->flags & (WEIR_ERR_RETRIABLE | WEIR_ERR_IN_DOUBT));
  if (!again) return refused(c, s, e->error, err);
  /* In doubt or surely not landed: the same batch, unchanged, is the only move. Want of memory is no word
   * of the target, wherever it arose. */
  BASE_TRY(enter_commit(c, s, COMMIT_WAITING, err));
  s->backoff = coord_grow_backoff(c, s->backoff);
  s->retry_at = coord_later(c, s->backoff);
  return WEIR_OK;
}

/* ---- telling the lanes */

void coord_cut_done(coord *c, coord_cut *cut) {
  for (uint32_t i = 0; cut->positions && i < c->n_lanes; i++) {
    weir_bytes_release(&cut->positions[i]);
  }
  free(cut->positions);
  *cut = (coord_cut){0};
}

static bool shown_everywhere(coord *c, uint64_t attempt) {
  const uint32_t first = c->behind;
  for (uint32_t n = 0; n < c->n_sinks; n++) {
    uint32_t i = (first + n) % c->n_sinks;
    c->behind = i;
    const coord_sink_state *s = &c->sinks[i];
    for (size_t k = 0; k < s->n_owed && s->owed[k].cursor.checkpoint <= attempt; k++) {
      if (s->owed[k].has_rows) return false;
    }
  }
  return true;
}

/* C11: a lane hears of an attempt only when every target has it. What later attempts say covers earlier
 * ones, so only the newest is told. */
weir_status coord_progress_tell(coord *c, weir_error *err) {
  size_t n = 0;
  while (n < c->n_cuts && shown_everywhere(c, c->cuts[n].attempt)) n++;
  if (!n) return WEIR_OK;
  coord_cut_done(c, &c->told);
  c->told = c->cuts[n - 1];
  for (size_t i = 0; i + 1 < n; i++) coord_cut_done(c, &c->cuts[i]);
  c->n_cuts -= n;
  if (c->n_cuts) memmove(c->cuts, c->cuts + n, c->n_cuts * sizeof(*c->cuts));
  for (uint32_t i = 0; i < c->n_lanes; i++) {
    const weir_bytes *position = &c->told.positions[i];
    BASE_TRY(coord_push(c,
                        &(coord_command){.type = COORD_TELL_LANE,
                                         .sink = COORD_NONE,
                                         .lane = i,
                                         .attempt = c->told.attempt,
                                         .has_position = position->release != NULL,
                                         .position = position->data,
                                         .position_size = position->size},
                        err));
  }
  return WEIR_OK;
}
