/* SPDX-License-Identifier: Apache-2.0 */
/* Targets: one conditional step moves rows and cursor; artifacts are staged, published, removed. */
#include <stdio.h>
#include <string.h>

#include "sim.h"

static const char *text(const weir_cursor *c, char out[32]) {
  snprintf(out, 32, "%d/%d/%02x%02x", (int)c->checkpoint, (int)c->token, c->digest[0],
           c->digest[1]);
  return out;
}

static sim_request *request_on(sim_world *w, uint32_t sink) {
  for (int i = 0; i < REQUESTS; i++) {
    if (w->requests[i].active && w->requests[i].sink == sink) return &w->requests[i];
  }
  return NULL;
}

static sim_request *free_request(sim_world *w) {
  for (int i = 0; i < REQUESTS; i++) {
    if (!w->requests[i].active) return &w->requests[i];
  }
  return NULL;
}

/* The step: nothing of it, or all. True when it took. */
static bool land(sim_world *w, const sim_request *r) {
  sim_target *t = &w->targets[r->sink];
  char a[32], b[32];
  if (!weir_cursor_equal(&t->cursor, &r->expected)) return false;
  const sim_store *s = &w->stores[r->store];
  SIM_CHECK(
      w,
      r->cursor.checkpoint > t->cursor.checkpoint && r->cursor.token >= t->cursor.token,
      "sink %d: the cursor falls from %s to %s", (int)r->sink, text(&t->cursor, a),
      text(&r->cursor, b));
  SIM_CHECK(w, s->attempts[r->cursor.checkpoint].state == WEIR_ATTEMPT_COMMIT,
            "sink %d publishes attempt %d, which is not decided", (int)r->sink,
            (int)r->cursor.checkpoint);
  sim_rows added = {{0}};
  for (int i = 0; i < r->n; i++) {
    const sim_blob *blob = &r->blobs[i];
    uint8_t *artifact = &w->artifacts[r->sink][blob->incarnation];
    SIM_CHECK(w, *artifact == ART_STAGED || *artifact == ART_PUBLISHED,
              "sink %d: what incarnation %d staged is gone", (int)r->sink,
              (int)blob->incarnation);
    *artifact = ART_PUBLISHED;
    for (uint32_t l = 0; l < w->n_lanes; l++) {
      SIM_CHECK(w, !((t->visible.lane[l] | added.lane[l]) & blob->rows.lane[l]),
                "sink %d: rows %x of lane %d are published twice", (int)r->sink,
                blob->rows.lane[l] & (t->visible.lane[l] | added.lane[l]), (int)l);
      added.lane[l] |= blob->rows.lane[l];
    }
  }
  t->before[t->publications] = t->cursor;
  t->added[t->publications++] = added;
  for (uint32_t l = 0; l < w->n_lanes; l++) t->visible.lane[l] |= added.lane[l];
  t->cursor = r->cursor;
  w->counts->publications++;
  sim_trace(w, "sink %d: cursor %s", (int)r->sink, text(&t->cursor, a));
  return true;
}

void sim_target_resolve(sim_world *w, sim_request *request, bool lands) {
  request->active = false;
  bool took = lands && land(w, request);
  w->counts->late += took;
  w->counts->lost += !took;
  sim_trace(w, "sink %d: a late commit of attempt %d %s", (int)request->sink,
            (int)request->cursor.checkpoint, took ? "lands" : "is lost");
}

static weir_status fault(weir_error *err, uint32_t flags, const char *what) {
  return weir_error_set(err, WEIR_E_IO, flags, "injected: %s", what);
}

static void fill(sim_world *w, sim_request *r, sim_owner *o, uint32_t sink,
                 const sim_job *job, size_t first) {
  const weir_commit_batch *batch = &job->batch->batch;
  r->active = true;
  r->sink = sink;
  r->store = o->store;
  r->expected = w->targets[sink].cursor;
  r->cursor = batch->attempts[batch->n_attempts - 1].cursor;
  r->n = 0;
  for (size_t i = first; i < batch->n_attempts; i++) {
    const weir_commit_attempt *a = &batch->attempts[i];
    const sim_attempt *stored = &w->stores[o->store].attempts[a->cursor.checkpoint];
    SIM_CHECK(w, stored->state == WEIR_ATTEMPT_COMMIT,
              "attempt %d is sent and not decided", (int)a->cursor.checkpoint);
    SIM_CHECK(w, weir_cursor_equal(&stored->cursor[sink], &a->cursor),
              "attempt %d is sent under another cursor than was decided",
              (int)a->cursor.checkpoint);
    SIM_CHECK(w, a->n_entries == stored->n_parts[sink],
              "attempt %d is sent with %d entries", (int)a->cursor.checkpoint,
              (int)a->n_entries);
    for (size_t k = 0; k < a->n_entries; k++) {
      if (!a->entries[k].present) continue;
      r->blobs[r->n++] = sim_decode(w, 1, a->entries[k].descriptor, a->entries[k].size);
    }
  }
}

/* What commit_aggregated does: read the cursor, ask the table, one conditional step. */
static weir_status commit(sim_world *w, sim_owner *o, uint32_t sink, const sim_job *job,
                          weir_cursor *out, weir_error *err) {
  sim_target *t = &w->targets[sink];
  if (job->repeat && sim_store_lease(w, o)) {
    return weir_error_set(err, WEIR_E_FENCED, 0, "the lease is lost");
  }
  if (sim_fault(w, 20))
    return fault(err, sim_chance(w, 4) ? 0 : WEIR_ERR_RETRIABLE, "commit refused");
  if (t->kind == KIND_TXN && request_on(w, sink)) {
    return weir_error_set(err, WEIR_E_TIMEOUT, WEIR_ERR_RETRIABLE,
                          "the cursor row is locked");
  }
  size_t first = 0;
  BASE_TRY(weir_commit_batch_start(&job->batch->batch, &t->cursor, &first, err));
  if (first == job->batch->batch.n_attempts) {
    *out = t->cursor;
    return WEIR_OK;
  }
  sim_request now;
  sim_request *late = free_request(w);
  if (late && sim_fault(w, 10)) {
    fill(w, late, o, sink, job, first);
    if (sim_chance(w, 3)) sim_target_resolve(w, late, true);
    return fault(err, WEIR_ERR_IN_DOUBT, "the answer was lost");
  }
  fill(w, &now, o, sink, job, first);
  if (!land(w, &now)) sim_fail(w, "sink %d: the cursor moved under a commit", (int)sink);
  *out = t->cursor;
  return WEIR_OK;
}

void sim_target_commit(sim_world *w, sim_owner *o, uint32_t sink, const sim_job *job) {
  weir_error err = {0};
  coord_event e = sim_event(COORD_COMMITTED, sink, 0, 0);
  weir_status status = commit(w, o, sink, job, &e.cursor, &err);
  sim_post(w, o, e, status ? &err : NULL);
}

/* A request under way holds the row lock of a transactional target: its cursor cannot be read. */
void sim_target_observe(sim_world *w, sim_owner *o, uint32_t sink) {
  weir_error err = {0};
  coord_event e = sim_event(COORD_OBSERVED, sink, 0, 0);
  sim_target *t = &w->targets[sink];
  sim_request *late = request_on(w, sink);
  if (t->kind == KIND_TXN && late)
    sim_target_resolve(w, late, sim_chance(w, 2)); /* take_over */
  if (sim_fault(w, 20)) fault(&err, WEIR_ERR_RETRIABLE, "cursor not readable");
  if (!err.code) e.cursor = t->cursor;
  sim_post(w, o, e, err.code ? &err : NULL);
}

void sim_target_stage(sim_world *w, uint32_t sink, uint32_t incarnation) {
  uint8_t *a = &w->artifacts[sink][incarnation];
  SIM_CHECK(w, *a != ART_PUBLISHED,
            "sink %d: incarnation %d is written after it was published", (int)sink,
            (int)incarnation);
  *a = ART_STAGED;
}

/* Never what is decided in this history, nor what any history has published. */
static void remove_artifact(sim_world *w, sim_owner *o, uint32_t sink,
                            uint32_t incarnation, const char *how) {
  uint8_t *a = &w->artifacts[sink][incarnation];
  SIM_CHECK(w, *a != ART_PUBLISHED,
            "sink %d: %s removes incarnation %d, which is published", (int)sink, how,
            (int)incarnation);
  const sim_store *s = &w->stores[o->store];
  for (uint64_t n = 1; n <= s->last; n++) {
    if (s->attempts[n].state != WEIR_ATTEMPT_COMMIT) continue;
    for (int p = 0; p < PARTS; p++) {
      SIM_CHECK(w,
                !s->attempts[n].descriptor[sink][p].present ||
                    s->attempts[n].descriptor[sink][p].incarnation != incarnation,
                "sink %d: %s removes incarnation %d of the decided attempt %d", (int)sink,
                how, (int)incarnation, (int)n);
    }
  }
  if (*a == ART_STAGED) *a = ART_REMOVED;
}

void sim_target_roll_back(sim_world *w, sim_owner *o, uint32_t sink,
                          uint32_t incarnation) {
  remove_artifact(w, o, sink, incarnation, "a rollback");
}

void sim_target_clean(sim_world *w, sim_owner *o, uint32_t sink, const sim_job *job) {
  weir_error err = {0};
  sim_attempt *a = &w->stores[o->store].attempts[job->attempt];
  SIM_CHECK(w, a->state == WEIR_ATTEMPT_ABORT, "attempt %d in state %d is cleaned",
            (int)job->attempt, a->state);
  if (sim_fault(w, 5)) {
    fault(&err, sim_chance(w, 2) ? WEIR_ERR_RETRIABLE : 0, "cleaner");
  } else {
    for (int i = 0; i < job->n_intents; i++) {
      remove_artifact(w, o, sink, job->intents[i].incarnation, "the cleaner");
    }
    w->counts->cleanings++;
  }
  /* What an owner that was fenced still cleans is not marked. */
  if (!sim_store_lease(w, o)) a->clean_failed[sink] = err.code != 0;
  sim_post(w, o, sim_event(COORD_CLEANED, sink, 0, job->attempt), err.code ? &err : NULL);
}

/* The target loses its newest publications, as one restored from a backup does; by no more than the
 * store can refill. */
bool sim_target_fall_back(sim_world *w, uint32_t sink) {
  sim_target *t = &w->targets[sink];
  if (t->kind == KIND_WEAK || !t->publications || w->copied || request_on(w, sink))
    return false;
  const sim_store *s = &w->stores[0];
  weir_cursor to = t->before[t->publications - 1];
  uint64_t decided_since = 0;
  for (uint64_t n = to.checkpoint + 1; n <= s->last; n++) {
    decided_since += s->attempts[n].state == WEIR_ATTEMPT_COMMIT;
  }
  if (!to.checkpoint || decided_since >= w->keep) return false;
  t->publications--;
  for (uint32_t l = 0; l < w->n_lanes; l++) {
    t->visible.lane[l] &= (uint16_t)~t->added[t->publications].lane[l];
  }
  t->cursor = to;
  w->counts->fall_backs++;
  sim_trace(w, "sink %d: falls back to attempt %d", (int)sink, (int)to.checkpoint);
  return true;
}

void sim_target_has(sim_world *w, int store, uint64_t attempt) {
  const sim_attempt *a = &w->stores[store].attempts[attempt];
  for (uint32_t k = 0; k < w->n_sinks; k++) {
    const sim_target *t = &w->targets[k];
    if (t->kind == KIND_WEAK) continue;
    for (uint32_t l = 0; l < w->n_lanes; l++) {
      uint16_t rows = t->fed & (1u << l) ? a->taken.lane[l] : 0;
      SIM_CHECK(w, (t->visible.lane[l] & rows) == rows,
                "lane %d is told of attempt %d, sink %d shows %x of %x", (int)l,
                (int)attempt, (int)k, t->visible.lane[l], rows);
    }
  }
}
