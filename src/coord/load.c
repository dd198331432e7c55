/* SPDX-License-Identifier: Apache-2.0 */
/* What the store knows, copied into the machine: positions, cursors, decided attempts, leftovers. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "coord/state.h"

static coord_sink_state *find_sink(coord *c, const char *id) {
  for (uint32_t i = 0; i < c->n_sinks; i++) {
    if (strcmp(c->sinks[i].id, id) == 0) return &c->sinks[i];
  }
  return NULL;
}

/* A lane that only the store knows (the writers of a push source were more in an earlier run) keeps
 * its position: it is carried on from decision to decision. */
static weir_status load_positions(coord *c, const weir_store_state *state,
                                  weir_error *err) {
  for (size_t i = 0; i < state->n_positions; i++) {
    const weir_store_position *p = &state->positions[i];
    coord_lane *lane = NULL;
    for (uint32_t k = 0; k < c->n_lanes && !lane; k++) {
      if (strcmp(c->lanes[k].name, p->source) == 0) lane = &c->lanes[k];
    }
    if (!lane) {
      lane = &c->lanes[c->n_lanes + c->n_inert];
      lane->name = base_strdup(p->source, err);
      if (!lane->name) return WEIR_E_NOMEM;
      lane->inert = true;
      c->n_inert++;
    }
    BASE_TRY(coord_copy_bytes(&lane->position, p->present, p->data, p->size, err));
    lane->rows = p->rows;
    lane->lost = p->lost;
  }
  return WEIR_OK;
}

static void load_cursors(coord *c, const weir_store_state *state) {
  for (size_t i = 0; i < state->n_decided; i++) {
    coord_sink_state *s = find_sink(c, state->decided[i].sink_id);
    if (!s) continue;
    s->decided = state->decided[i].cursor;
    s->rows = state->decided[i].rows;
    s->bytes = state->decided[i].bytes;
  }
  for (size_t i = 0; i < state->n_seen; i++) {
    coord_sink_state *s = find_sink(c, state->seen[i].sink_id);
    if (s) s->seen = state->seen[i].cursor;
  }
}

/* A sink that left the pipeline while its target lacks rows: nobody would publish them. */
static weir_status check_gone(const weir_store_state *state, const weir_store_sink *sink,
                              uint64_t attempt, weir_error *err) {
  if (!sink->has_rows) return WEIR_OK;
  for (size_t i = 0; i < state->n_seen; i++) {
    if (strcmp(state->seen[i].sink_id, sink->sink_id) == 0 &&
        state->seen[i].cursor.checkpoint >= attempt) {
      return WEIR_OK;
    }
  }
  return weir_error_set(
      err, WEIR_E_INVALID_CONFIG, 0,
      "sink %s is no longer in the pipeline, but its attempt %" PRIu64
      " is decided and its target was not seen to have it: put the sink back and "
      "run 'weir recover' first, or, if its target is gone for good, 'weir resolve'",
      sink->sink_id, attempt);
}

static weir_status check_digest(const coord_sink_state *s, const coord_debt *debt,
                                weir_error *err) {
  uint8_t digest[WEIR_DIGEST_SIZE];
  BASE_TRY(coord_digest(s->id, debt->cursor.checkpoint, debt->entries, debt->n_entries,
                        digest, err));
  if (memcmp(digest, debt->cursor.digest, sizeof(digest)) == 0) return WEIR_OK;
  return weir_error_set(
      err, WEIR_E_CORRUPT, 0,
      "checkpoint store: the descriptors of sink %s, attempt %" PRIu64
      " do not give the digest that was decided; bring back a copy of the state "
      "folder that is whole",
      s->id, debt->cursor.checkpoint);
}

static weir_status load_debt(coord *c, const weir_store_attempt *a,
                             const weir_store_sink *part, weir_error *err) {
  weir_status status = WEIR_OK;
  coord_debt debt = {.cursor = part->cursor, .has_rows = part->has_rows};
  coord_sink_state *s = find_sink(c, part->sink_id);
  for (size_t i = 0; i < a->n_descriptors; i++) {
    if (strcmp(a->descriptors[i].sink_id, part->sink_id) == 0) debt.n_entries++;
  }
  debt.entries = base_calloc(debt.n_entries, sizeof(*debt.entries), err);
  debt.owners = base_calloc(debt.n_entries, sizeof(*debt.owners), err);
  if (!debt.entries || !debt.owners) {
    status = WEIR_E_NOMEM;
    goto out;
  }
  size_t n = 0;
  for (size_t i = 0; i < a->n_descriptors; i++) {
    const weir_store_entry *d = &a->descriptors[i];
    if (strcmp(d->sink_id, part->sink_id) != 0) continue;
    BASE_GOTO(status,
              coord_copy_bytes(&debt.owners[n], d->present, d->data, d->size, err));
    debt.entries[n] = (weir_commit_entry){.participant_id = d->participant_id,
                                          .present = d->present,
                                          .descriptor = debt.owners[n].data,
                                          .size = debt.owners[n].size};
    debt.size += debt.owners[n].size;
    n++;
  }
  BASE_GOTO(status, check_digest(s, &debt, err));
  BASE_GOTO(status, coord_reserve_debt(s, err));
  coord_owe(s, &debt);
  return WEIR_OK;
out:
  coord_debt_done(&debt);
  return status;
}

/* R2: nothing of it is published any more, whether or not its descriptors are whole. */
static weir_status load_resolved(coord_sink_state *s, const weir_store_state *state,
                                 const weir_cursor *cursor, weir_error *err) {
  if (!s->resolved) s->resolved = base_calloc(state->n_attempts, sizeof(*cursor), err);
  if (!s->resolved) return WEIR_E_NOMEM;
  s->resolved[s->n_resolved++] = *cursor;
  return WEIR_OK;
}

static weir_status load_decided(coord *c, const weir_store_state *state,
                                const weir_store_attempt *a, weir_error *err) {
  c->decided = a->attempt; /* they come ascending */
  for (size_t i = 0; i < a->n_sinks; i++) {
    coord_sink_state *s = find_sink(c, a->sinks[i].sink_id);
    if (weir_store_resolved(state, a->sinks[i].sink_id, a->attempt)) {
      if (s) BASE_TRY(load_resolved(s, state, &a->sinks[i].cursor, err));
    } else if (!s) {
      BASE_TRY(check_gone(state, &a->sinks[i], a->attempt, err));
    } else if (s->committable) {
      BASE_TRY(load_debt(c, a, &a->sinks[i], err));
    } else {
      return weir_error_set(
          err, WEIR_E_INVALID_CONFIG, 0,
          "sink %s took part in the two-step commit of attempt %" PRIu64
          " and now has a weaker contract; give it its former type and options, "
          "or give the sink another name",
          s->id, a->attempt);
    }
  }
  return WEIR_OK;
}

/* Intents come ordered by sink and participant. Those of a sink that is gone stay in the store. */
static weir_status load_aborted(coord *c, const weir_store_attempt *a, weir_error *err) {
  for (uint32_t i = 0; i < c->n_sinks; i++) {
    if (c->sinks[i].committable) {
      BASE_TRY(coord_add_dirt(c, i, a->attempt, a->intents, a->n_intents, err));
    }
  }
  return WEIR_OK;
}

weir_status coord_load(coord *c, const weir_store_state *state, weir_error *err) {
  c->last = state->last_attempt;
  if (state->pipeline) {
    c->pipeline = base_strdup(state->pipeline, err);
    if (!c->pipeline) return WEIR_E_NOMEM;
  }
  BASE_TRY(load_positions(c, state, err));
  load_cursors(c, state);
  c->unresolved = base_calloc(state->n_attempts, sizeof(*c->unresolved), err);
  if (!c->unresolved) return WEIR_E_NOMEM;
  for (size_t i = 0; i < state->n_attempts; i++) {
    const weir_store_attempt *a = &state->attempts[i];
    if (i && a->attempt <= state->attempts[i - 1].attempt) {
      return weir_error_set(err, WEIR_E_CORRUPT, 0,
                            "checkpoint store: attempt %" PRIu64 " comes after %" PRIu64,
                            a->attempt, state->attempts[i - 1].attempt);
    }
    if (a->attempt > c->last) c->last = a->attempt;
    switch (a->state) {
      case WEIR_ATTEMPT_COMMIT:
        BASE_TRY(load_decided(c, state, a, err));
        break;
      case WEIR_ATTEMPT_RESERVED:
        c->unresolved[c->n_unresolved++] = a->attempt;
        BASE_TRY(load_aborted(c, a, err)); /* cleaned only once it is resolved */
        break;
      case WEIR_ATTEMPT_ABORT:
        BASE_TRY(load_aborted(c, a, err));
        break;
      default:
        return weir_error_set(err, WEIR_E_CORRUPT, 0,
                              "checkpoint store: attempt %" PRIu64
                              " has the unknown state %d",
                              a->attempt, (int)a->state);
    }
  }
  for (uint32_t i = 0; i < c->n_sinks; i++) {
    if (c->sinks[i].decided.checkpoint > c->decided)
      c->decided = c->sinks[i].decided.checkpoint;
  }
  c->attempt = c->last;
  return WEIR_OK;
}
