/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recovery: cursors are read and judged, what is decided is published, what is only reserved is
 * aborted. Until all cursors were judged nothing is written anywhere.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "coord/state.h"

enum { TAKE_OVER_TRIES = 5 };

/* The target was seen with a cursor, and now has none. */
static weir_status judge_absent(const coord_sink_state *s, weir_error *err) {
  return weir_error_set(err, WEIR_E_CONFLICT, 0,
                        "sink %s: the checkpoint store has seen attempt %" PRIu64
                        " at the target, which now has no cursor: the target was "
                        "emptied, replaced or re-pointed. "
                        "Bring the target back, or deliver everything again with 'weir "
                        "run --new-deployment'",
                        s->id, s->seen.checkpoint);
}

static weir_status judge_unknown(const coord_sink_state *s, const weir_cursor *observed,
                                 weir_error *err) {
  return weir_error_set(err, WEIR_E_CONFLICT, 0,
                        "sink %s: the target shows attempt %" PRIu64 " (token %" PRIu64
                        ") of this deployment, of which the checkpoint store knows "
                        "nothing: the state folder is older "
                        "than the target. Bring the newer state folder back, have one "
                        "made of what the targets say ('weir adopt --set-aside'), or "
                        "deliver everything again with 'weir run --new-deployment'",
                        s->id, observed->checkpoint, observed->token);
}

/* DESIGN's table, asked with all decided attempts that the store still has as one batch: an attempt of
 * it that the target shows counts as the predecessor of what follows, so a target that lost its tail is
 * refilled from there. Where the store no longer has the attempt last seen, everything between that one
 * and the batch was empty for this sink (the store keeps what is unresolved). */
static weir_status judge(const coord *c, const coord_sink_state *s,
                         const weir_cursor *observed, size_t *first, weir_error *err) {
  *first = 0;
  if (!observed->checkpoint && s->seen.checkpoint) return judge_absent(s, err);
  for (size_t i = 0; i < s->n_resolved; i++) {
    if (!weir_cursor_equal(observed, &s->resolved[i])) continue;
    /* It was published after all, and all before it with it. */
    while (*first < s->n_owed && s->owed[*first].cursor.checkpoint < observed->checkpoint)
      ++*first;
    return WEIR_OK;
  }
  if (!s->n_owed) {
    if (!observed->checkpoint || weir_cursor_equal(observed, &s->seen) ||
        weir_cursor_equal(observed, &s->decided)) {
      return WEIR_OK;
    }
    return judge_unknown(s, observed, err);
  }
  weir_status status = WEIR_OK;
  weir_commit_attempt *attempts = base_calloc(s->n_owed, sizeof(*attempts), err);
  if (!attempts) return WEIR_E_NOMEM;
  for (size_t i = 0; i < s->n_owed; i++) {
    attempts[i] = (weir_commit_attempt){.cursor = s->owed[i].cursor,
                                        .entries = s->owed[i].entries,
                                        .n_entries = s->owed[i].n_entries};
  }
  const weir_namespace ns = {.struct_size = sizeof(ns),
                             .pipeline = c->pipeline ? c->pipeline : "?",
                             .sink_id = s->id};
  weir_commit_batch all = {.struct_size = sizeof(all),
                           .ns = &ns,
                           .attempts = attempts,
                           .n_attempts = s->n_owed};
  if (s->seen.checkpoint < attempts[0].cursor.checkpoint) all.predecessor = s->seen;
  status = weir_commit_batch_start(&all, observed, first, err);
  if (status) {
    status = weir_error_prefix(err, status, "recovery ('weir status' shows both sides)");
  }
  free(attempts);
  return status;
}

static weir_status take_over_failed(coord *c, coord_sink_state *s,
                                    const weir_error *error) {
  s->take_over_failures++;
  if (error->code == WEIR_E_FENCED ||
      !(error->flags & (WEIR_ERR_RETRIABLE | WEIR_ERR_IN_DOUBT)) ||
      s->take_over_failures >= TAKE_OVER_TRIES) {
    weir_error stop = *error;
    weir_error_prefix(&stop, stop.code,
                      "sink %s, when its target is taken over and its cursor read",
                      s->id);
    coord_halt_now(c, &stop);
    return WEIR_OK;
  }
  s->take_over = ASK_NOT;
  s->backoff = coord_grow_backoff(c, s->backoff);
  s->retry_at = coord_later(c, s->backoff);
  return WEIR_OK;
}

/* C2: an unreadable cursor is an error, never 'no cursor'. */
weir_status coord_on_observed(coord *c, coord_event *e, weir_error *err) {
  coord_sink_state *s = coord_event_sink(c, e, err);
  if (!s) return WEIR_E_INTERNAL;
  if (c->phase != PHASE_TAKING_OVER || s->take_over != ASK_SENT) {
    return coord_not_now(c, "observed", err);
  }
  if (e->error) return take_over_failed(c, s, e->error);
  size_t first = 0;
  weir_error verdict = {0};
  weir_status status = judge(c, s, &e->cursor, &first, &verdict);
  if (status) {
    coord_halt_now(c, &verdict);
    return WEIR_OK;
  }
  coord_drop_owed(s, first);
  s->take_over = ASK_DONE;
  s->backoff = 0;
  s->retry_at = 0;
  if (weir_cursor_equal(&s->seen, &e->cursor)) return WEIR_OK;
  bool ahead = e->cursor.checkpoint > s->seen.checkpoint;
  s->seen = e->cursor;
  /* A target that fell back is reported again when it is refilled: until then the store keeps what it
   * needs for that. */
  return ahead ? coord_saw(c, e->sink, &e->cursor, err) : WEIR_OK;
}

static weir_status ask_cursors(coord *c, bool *moved, weir_error *err) {
  uint32_t running = 0, open = 0;
  for (uint32_t i = 0; i < c->n_sinks; i++) {
    if (!c->sinks[i].committable) continue;
    running += c->sinks[i].take_over == ASK_SENT;
    open += c->sinks[i].take_over != ASK_DONE;
  }
  if (!open) {
    *moved = true;
    return coord_enter(c, PHASE_PUBLISHING, err);
  }
  for (uint32_t i = 0; i < c->n_sinks && running < COORD_AT_ONCE; i++) {
    coord_sink_state *s = &c->sinks[i];
    if (!s->committable || s->take_over != ASK_NOT || s->retry_at > c->now) continue;
    BASE_TRY(coord_push(
        c, &(coord_command){.type = COORD_TAKE_OVER, .sink = i, .lane = COORD_NONE},
        err));
    s->take_over = ASK_SENT;
    running++;
  }
  return WEIR_OK;
}

/* C4: Abort, durable, for every attempt that was reserved and not decided; one at a time. No
 * rollback_epoch follows: the generations that began those attempts are gone with their process, and
 * what they left is found by the intents. */
static weir_status resolve(coord *c, bool *moved, weir_error *err) {
  if (c->resolved < c->n_unresolved) return WEIR_OK; /* its Abort is under way */
  c->recovered = true;
  *moved = true;
  if (c->draining || !c->n_lanes) return coord_enter(c, PHASE_FINISHING, err);
  return coord_name_next(c, err);
}

static weir_status abort_next(coord *c, weir_error *err) {
  if (c->resolved == c->n_unresolved) return WEIR_OK;
  return coord_push(c,
                    &(coord_command){.type = COORD_ABORT,
                                     .sink = COORD_NONE,
                                     .lane = COORD_NONE,
                                     .attempt = c->unresolved[c->resolved]},
                    err);
}

/* While RESOLVING one Abort is always under way. */
weir_status coord_resolved(coord *c, uint64_t attempt, weir_error *err) {
  if (c->unresolved[c->resolved] != attempt) return coord_not_now(c, "aborted", err);
  c->resolved++;
  return abort_next(c, err);
}

weir_status coord_progress_recovery(coord *c, bool *moved, weir_error *err) {
  switch (c->phase) {
    case PHASE_TAKING_OVER:
      return ask_cursors(c, moved, err);
    case PHASE_PUBLISHING: /* C3: the commits themselves are sent by commit.c */
      for (uint32_t i = 0; i < c->n_sinks; i++) {
        if (c->sinks[i].rows_owed) return WEIR_OK;
      }
      *moved = true;
      BASE_TRY(coord_enter(c, PHASE_RESOLVING, err));
      return abort_next(c, err);
    case PHASE_RESOLVING:
      return resolve(c, moved, err);
    default:
      return WEIR_OK;
  }
}
