/* SPDX-License-Identifier: Apache-2.0 */
/* The store: a struct that survives its owners. Every write checks the lease first. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

const char *const sim_sink_names[SINKS] = {"lake", "table", "topic"};
const char *const sim_lane_names[LANES] = {"orders", "clicks", "push/0"};

weir_status sim_store_lease(sim_world *w, sim_owner *o) {
  return w->stores[o->store].token == o->token ? WEIR_OK : WEIR_E_FENCED;
}

/* A durable step: what was only remembered is written with it. */
void sim_store_flush(sim_world *w, sim_owner *o) {
  sim_store *s = &w->stores[o->store];
  for (uint32_t i = 0; i < w->n_sinks; i++) {
    if (o->saw[i]) s->seen[i] = o->seen[i];
    o->saw[i] = false;
  }
  for (int i = 0; i < o->n_cleaned; i++) {
    s->attempts[o->cleaned[i]].cleaned[o->cleaned_sink[i]] = true;
  }
  o->n_cleaned = 0;
}

/* The answer of a write that was made, or (with `made` cleared) was not: with a fault nobody knows. */
static weir_status outcome(sim_world *w, sim_owner *o, bool *made, weir_error *err) {
  *made = true;
  if (sim_store_lease(w, o)) {
    *made = false;
    return weir_error_set(err, WEIR_E_FENCED, 0, "the lease is lost");
  }
  if (!sim_fault(w, 60)) return WEIR_OK;
  *made = sim_chance(w, 2);
  w->counts->in_doubt++;
  sim_trace(w, "store write in doubt (made: %d)", *made);
  uint32_t flags = *made || sim_chance(w, 2) ? WEIR_ERR_IN_DOUBT : 0;
  return weir_error_set(err, WEIR_E_IO, flags, "injected: store write failed");
}

/* What a durable step says of the rows that cannot be read again: all that aborts have cost this owner,
 * and the ones before it as far as they were able to say so. */
static void put_lost(sim_world *w, sim_owner *o, const weir_store_position *positions,
                     size_t n) {
  sim_store *s = &w->stores[o->store];
  for (uint32_t l = 0; l < w->n_lanes; l++) {
    uint64_t said = 0;
    for (size_t i = 0; i < n; i++) {
      if (strcmp(sim_lane_names[l], positions[i].source) == 0) said = positions[i].lost;
    }
    SIM_CHECK(w, said == o->lanes[l].lost, "lane %d lost %d rows, %d are said to be",
              (int)l, (int)o->lanes[l].lost, (int)said);
    s->lost[l] = said;
    o->lanes[l].unsaid = 0;
  }
}

static void put_intents(sim_world *w, sim_attempt *a, const weir_store_entry *entries,
                        size_t n) {
  for (size_t i = 0; i < n; i++) {
    for (uint32_t s = 0; s < w->n_sinks; s++) {
      if (strcmp(sim_sink_names[s], entries[i].sink_id) != 0) continue;
      uint32_t part = (uint32_t)entries[i].participant_id - 1;
      a->intent[s][part] =
          sim_decode(w, entries[i].present, entries[i].data, entries[i].size);
      a->n_parts[s] = part + 1;
    }
  }
}

static void reserve(sim_world *w, sim_store *s, uint64_t attempt,
                    const weir_store_entry *entries, size_t n) {
  SIM_CHECK(w, attempt < ATTEMPTS, "more than %d attempts: no progress", ATTEMPTS);
  SIM_CHECK(w, attempt > s->last, "attempt %d is used again", (int)attempt);
  sim_attempt *a = &s->attempts[attempt];
  a->state = WEIR_ATTEMPT_RESERVED;
  put_intents(w, a, entries, n);
  s->last = attempt;
}

/* Nothing is decided while a target that does not gather owes rows, and in recovery nothing is resolved
 * while any does. */
static void check_shown(sim_world *w, const sim_store *s, uint64_t attempt,
                        bool recovery) {
  for (uint32_t k = 0; k < w->n_sinks; k++) {
    const sim_target *t = &w->targets[k];
    if (t->kind == KIND_WEAK || (t->commit_interval && !recovery)) continue;
    for (uint64_t n = 1; n < attempt; n++) {
      const sim_attempt *a = &s->attempts[n];
      SIM_CHECK(
          w,
          a->state != WEIR_ATTEMPT_COMMIT || !a->has_rows[k] || n <= t->cursor.checkpoint,
          "attempt %d is settled before sink %d shows %d", (int)attempt, (int)k, (int)n);
    }
  }
}

weir_status sim_store_reserve(sim_world *w, sim_owner *o, const coord_command *command,
                              weir_error *err) {
  bool made = false;
  weir_status status = outcome(w, o, &made, err);
  if (!made) return status;
  sim_store_flush(w, o);
  sim_store *s = &w->stores[o->store];
  if (!o->reserved) check_shown(w, s, command->attempt, true);
  o->reserved = true;
  reserve(w, s, command->attempt, command->entries, command->n_entries);
  return status;
}

weir_status sim_store_abort(sim_world *w, sim_owner *o, const coord_command *command,
                            weir_error *err) {
  bool made = false;
  weir_status status = outcome(w, o, &made, err);
  if (!made) return status;
  sim_store_flush(w, o);
  sim_store *s = &w->stores[o->store];
  sim_attempt *a = &s->attempts[command->attempt];
  SIM_CHECK(w, a->state == WEIR_ATTEMPT_RESERVED, "Abort of attempt %d in state %d",
            (int)command->attempt, a->state);
  if (!o->reserved) check_shown(w, s, command->attempt, true);
  /* An attempt that took nothing, or that an earlier run left, costs no more than is stored. */
  if (command->error) put_lost(w, o, command->positions, command->n_positions);
  a->state = WEIR_ATTEMPT_ABORT;
  w->counts->aborts++;
  return status;
}

/* Exactly the rows between the positions, once, at every committable sink that the lane feeds. */
static void check_rows(sim_world *w, const sim_store *s, const sim_attempt *a) {
  for (uint32_t k = 0; k < w->n_sinks; k++) {
    if (w->targets[k].kind == KIND_WEAK) continue;
    for (uint32_t l = 0; l < w->n_lanes; l++) {
      uint16_t all = 0, expected = 0;
      for (uint32_t p = 0; p < a->n_parts[k]; p++) {
        uint16_t rows = a->descriptor[k][p].rows.lane[l];
        SIM_CHECK(w, !(all & rows), "a row of lane %d twice in an attempt of sink %d",
                  (int)l, (int)k);
        all |= rows;
      }
      if (w->targets[k].fed & (1u << l)) {
        expected = a->taken.lane[l] & (uint16_t)~s->attempts[s->decided].taken.lane[l];
      }
      SIM_CHECK(w, all == expected,
                "sink %d takes rows %x of lane %d, the positions say %x", (int)k, all,
                (int)l, expected);
    }
  }
}

static void fill_positions(sim_world *w, sim_owner *o, const weir_store_decision *d,
                           sim_attempt *a) {
  const sim_store *s = &w->stores[o->store];
  for (size_t i = 0; i < d->n_positions; i++) {
    for (uint32_t l = 0; l < w->n_lanes; l++) {
      if (strcmp(sim_lane_names[l], d->positions[i].source) != 0) continue;
      uint16_t at = 0;
      if (d->positions[i].present) memcpy(&at, d->positions[i].data, sizeof(at));
      a->position[l] = at;
      a->taken.lane[l] = sim_span(0, at);
      if (sim_is_ephemeral(w, l)) {
        sim_lane *lane = &o->lanes[l];
        uint16_t *taken = lane->barred ? &lane->cut : &lane->tail;
        a->taken.lane[l] = s->attempts[s->decided].taken.lane[l] | *taken;
        *taken = 0;
        lane->barred = false;
      }
      SIM_CHECK(w, d->positions[i].rows == sim_count(a->taken.lane[l]),
                "lane %d counts %d rows at position %d", (int)l,
                (int)d->positions[i].rows, at);
    }
  }
}

static void fill_decision(sim_world *w, const sim_owner *o, const weir_store_decision *d,
                          sim_attempt *a) {
  for (size_t i = 0; i < d->n_sinks; i++) {
    for (uint32_t k = 0; k < w->n_sinks; k++) {
      if (strcmp(sim_sink_names[k], d->sinks[i].sink_id) != 0) continue;
      a->cursor[k] = d->sinks[i].cursor;
      SIM_CHECK(w, a->cursor[k].token == o->token && d->token == o->token,
                "attempt %d is decided under token %d by the owner of token %d",
                (int)d->attempt, (int)a->cursor[k].token, (int)o->token);
      a->has_rows[k] = d->sinks[i].has_rows;
      a->n_parts[k] = o->n_parts[k];
    }
  }
  for (size_t i = 0; i < d->n_descriptors; i++) {
    const weir_store_entry *e = &d->descriptors[i];
    for (uint32_t k = 0; k < w->n_sinks; k++) {
      if (strcmp(sim_sink_names[k], e->sink_id) != 0) continue;
      a->descriptor[k][e->participant_id - 1] =
          sim_decode(w, e->present, e->data, e->size);
    }
  }
}

weir_status sim_store_decide(sim_world *w, sim_owner *o, const coord_command *command,
                             weir_error *err) {
  bool made = false;
  weir_status status = outcome(w, o, &made, err);
  if (!made) return status;
  sim_store_flush(w, o);
  sim_store *s = &w->stores[o->store];
  const weir_store_decision *d = command->decision;
  sim_attempt *a = &s->attempts[d->attempt];
  SIM_CHECK(w, a->state == WEIR_ATTEMPT_RESERVED, "decision of attempt %d in state %d",
            (int)d->attempt, a->state);
  check_shown(w, s, d->attempt, false);
  fill_decision(w, o, d, a);
  fill_positions(w, o, d, a);
  put_lost(w, o, d->positions, d->n_positions);
  check_rows(w, s, a);
  a->state = WEIR_ATTEMPT_COMMIT;
  a->token = d->token;
  s->decided = d->attempt;
  w->counts->decisions++;
  if (d->next_attempt) reserve(w, s, d->next_attempt, d->intents, d->n_intents);
  return status;
}

/* ---- load */

typedef struct sim_loaded {
  weir_store_state state;
  weir_store_attempt attempts[ATTEMPTS];
  weir_store_sink sinks[ATTEMPTS][SINKS];
  weir_store_entry entries[ATTEMPTS][SINKS * PARTS];
  weir_store_position positions[LANES];
  weir_store_sink decided[SINKS], seen[SINKS];
} sim_loaded;

/* Published: every target with rows was seen beyond it. With prunes_empties an attempt whose open rows
 * are none counts as published too, although no target's cursor shows it. */
static bool published(const sim_world *w, const sim_store *s, uint64_t n) {
  for (uint32_t k = 0; k < w->n_sinks; k++) {
    const sim_attempt *a = &s->attempts[n];
    if (!a->cursor[k].checkpoint || s->seen[k].checkpoint >= n) continue;
    if (a->has_rows[k] || !w->prunes_empties) return false;
  }
  return true;
}

static size_t load_entries(const sim_world *w, sim_loaded *l, size_t at,
                           const sim_attempt *a, bool intents) {
  size_t n = 0;
  for (uint32_t k = 0; k < w->n_sinks; k++) {
    if (w->targets[k].kind == KIND_WEAK || (intents && a->cleaned[k])) continue;
    for (uint32_t p = 0; p < a->n_parts[k]; p++, n++) {
      const sim_blob *blob = intents ? &a->intent[k][p] : &a->descriptor[k][p];
      l->entries[at][n] = (weir_store_entry){.sink_id = sim_sink_names[k],
                                             .participant_id = p + 1,
                                             .present = blob->present,
                                             .data = (const uint8_t *)blob,
                                             .size = sizeof(*blob)};
    }
  }
  return n;
}

static void load_attempt(const sim_world *w, sim_loaded *l, const sim_store *s,
                         uint64_t n) {
  const sim_attempt *from = &s->attempts[n];
  size_t at = l->state.n_attempts;
  weir_store_attempt *a = &l->attempts[at];
  *a = (weir_store_attempt){.attempt = n, .state = from->state, .token = from->token};
  bool committed = from->state == WEIR_ATTEMPT_COMMIT;
  size_t n_entries = load_entries(w, l, at, from, !committed);
  if (committed) {
    for (uint32_t k = 0; k < w->n_sinks; k++) {
      if (!from->cursor[k].checkpoint) continue;
      l->sinks[at][a->n_sinks++] = (weir_store_sink){.sink_id = sim_sink_names[k],
                                                     .cursor = from->cursor[k],
                                                     .has_rows = from->has_rows[k]};
    }
    a->sinks = l->sinks[at];
    a->descriptors = l->entries[at];
    a->n_descriptors = n_entries;
  } else {
    if (from->state == WEIR_ATTEMPT_ABORT && !n_entries) return; /* all cleaned */
    a->intents = l->entries[at];
    a->n_intents = n_entries;
  }
  l->state.n_attempts++;
}

const weir_store_state *sim_store_load(sim_world *w, const sim_owner *o) {
  static sim_loaded loaded;
  sim_loaded *l = &loaded;
  const sim_store *s = &w->stores[o->store];
  l->state = (weir_store_state){0};
  uint64_t kept = 0, oldest = ATTEMPTS;
  for (uint64_t n = s->last; n > 0; n--) {
    if (s->attempts[n].state != WEIR_ATTEMPT_COMMIT || !published(w, s, n)) continue;
    if (kept++ < w->keep) oldest = n;
  }
  for (uint64_t n = 1; n <= s->last; n++) {
    int32_t state = s->attempts[n].state;
    if (!state) continue;
    if (state == WEIR_ATTEMPT_COMMIT && published(w, s, n) && n < oldest) continue;
    load_attempt(w, l, s, n);
  }
  l->state.attempts = l->attempts;
  l->state.token = s->token;
  l->state.last_attempt = s->last;
  for (uint32_t i = 0; i < w->n_lanes; i++) {
    const sim_attempt *a = &s->attempts[s->decided]; /* the zero one before the first */
    const uint16_t *at = &a->position[i];
    if (!s->decided && !s->lost[i]) continue;
    l->positions[l->state.n_positions++] =
        (weir_store_position){.source = sim_lane_names[i],
                              .present = *at != 0,
                              .data = (const uint8_t *)at,
                              .size = sizeof(*at),
                              .rows = sim_count(a->taken.lane[i]),
                              .lost = s->lost[i]};
  }
  l->state.positions = l->positions;
  for (uint32_t k = 0; k < w->n_sinks; k++) {
    if (w->targets[k].kind == KIND_WEAK) continue;
    if (s->decided) {
      l->decided[l->state.n_decided++] = (weir_store_sink){
          .sink_id = sim_sink_names[k], .cursor = s->attempts[s->decided].cursor[k]};
    }
    if (s->seen[k].checkpoint) {
      l->seen[l->state.n_seen++] =
          (weir_store_sink){.sink_id = sim_sink_names[k], .cursor = s->seen[k]};
    }
  }
  l->state.decided = l->decided;
  l->state.seen = l->seen;
  return &l->state;
}
