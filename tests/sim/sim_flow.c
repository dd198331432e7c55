/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes and participants: rows through bounded queues, barriers, ends, gates, rewinds. */
#include <string.h>

#include "sim.h"

static bool is_fed(const sim_world *w, uint32_t sink, uint32_t lane) {
  return w->targets[sink].fed & (1u << lane);
}

/* ---- lanes */

/* The next queue that the item under way goes to; NULL when it was given to all. */
static sim_part *next_output(const sim_world *w, sim_owner *o, uint32_t lane) {
  sim_lane *l = &o->lanes[lane];
  for (; l->next < SINKS * PARTS; l->next++) {
    uint32_t sink = (uint32_t)l->next / PARTS, part = (uint32_t)l->next % PARTS;
    if (sink >= w->n_sinks || !is_fed(w, sink, lane) || part >= o->n_parts[sink])
      continue;
    if (l->item.row > 0 && l->choice[sink] != part) continue;
    return &o->parts[sink][part];
  }
  return NULL;
}

bool sim_lane_can(const sim_world *w, const sim_owner *o, uint32_t lane) {
  const sim_lane *l = &o->lanes[lane];
  if (l->stopped || l->ended || l->failed) return false;
  if (!l->pushing) return true; /* posting included */
  sim_part *to = next_output(w, (sim_owner *)o, lane);
  return !to || to->queued[lane] < QUEUE;
}

static void post_position(sim_world *w, sim_owner *o, uint32_t lane) {
  sim_lane *l = &o->lanes[lane];
  bool end = l->item.row == ITEM_END;
  coord_event e = sim_lane_event(end ? COORD_LANE_ENDED : COORD_BARRIER_SENT, lane,
                                 end ? 0 : l->item.attempt, l->generation);
  e.rows = l->rows;
  if (l->position) weir_bytes_copy(&e.bytes, &l->position, sizeof(l->position), NULL);
  sim_post(w, o, e, NULL);
}

static bool at_end(const sim_world *w, const sim_lane *l, uint32_t lane) {
  return (sim_is_ephemeral(w, lane) ? w->stream[lane] : l->position) == w->rows;
}

static void begin_push(sim_world *w, sim_owner *o, uint32_t lane) {
  sim_lane *l = &o->lanes[lane];
  l->item = (sim_item){.generation = l->generation};
  l->next = 0;
  bool ephemeral = sim_is_ephemeral(w, lane);
  if (l->wanted) {
    l->item.row = ITEM_BARRIER;
    l->item.attempt = l->wanted;
    l->wanted = 0;
  } else if (at_end(w, l, lane) || o->drained) {
    l->item.row = ITEM_END;
  } else {
    if (ephemeral) {
      l->position = ++w->stream[lane];
      l->rows++;
      l->fresh |= (uint16_t)(1u << (l->position - 1));
    }
    l->item.row = (int16_t)(ephemeral ? l->position : l->position + 1);
    for (uint32_t k = 0; k < w->n_sinks; k++) {
      l->choice[k] = (uint8_t)sim_below(w, o->n_parts[k]);
    }
  }
  l->pushing = true;
  if (l->item.row < 0) {
    *(l->item.row == ITEM_BARRIER ? &l->cut : &l->tail) = l->fresh;
    l->barred = l->barred || l->item.row == ITEM_BARRIER;
    l->fresh = 0;
  }
  if (l->item.row < 0 && w->barrier_event_first) post_position(w, o, lane);
}

void sim_lane_turn(sim_world *w, sim_owner *o, uint32_t lane) {
  sim_lane *l = &o->lanes[lane];
  if (l->posting) {
    l->posting = false;
    post_position(w, o, lane);
    l->ended = l->item.row == ITEM_END;
    return;
  }
  if (!l->pushing) {
    if (!at_end(w, l, lane) && sim_fault(w, 60)) {
      weir_error err = {0};
      weir_error_set(&err, WEIR_E_IO, WEIR_ERR_RETRIABLE, "injected: read");
      l->failed = true;
      sim_post(w, o, sim_lane_event(COORD_FAILED, lane, 0, 0), &err);
      return;
    }
    begin_push(w, o, lane);
  }
  sim_part *to = next_output(w, o, lane);
  if (to) {
    if (to->queued[lane] == QUEUE) return;
    to->queue[lane][to->queued[lane]++] = l->item;
    to->waiting |= (uint8_t)(1u << lane);
    l->next++;
    to = next_output(w, o, lane);
  }
  if (to) return;
  l->pushing = false;
  if (l->item.row > 0) {
    if (sim_is_ephemeral(w, lane)) return;
    l->position++;
    l->rows++;
    return;
  }
  l->posting = !w->barrier_event_first;
  l->ended = l->item.row == ITEM_END && !l->posting;
}

/* Whatever was read and is not decided is lost with the attempt, also what waits for room or lies queued. */
static void stop_lane(sim_world *w, sim_owner *o, uint32_t lane, uint64_t generation) {
  sim_lane *l = &o->lanes[lane];
  coord_event e = sim_lane_event(COORD_STOPPED, lane, 0, generation);
  l->stopped = true;
  l->pushing = l->posting = false;
  l->wanted = 0;
  e.rows = l->rows;
  uint64_t lost = sim_count(l->cut | l->tail | l->fresh);
  l->lost += lost;
  l->unsaid += lost;
  w->counts->rows_lost += lost;
  l->cut = l->tail = l->fresh = 0;
  l->barred = false;
  sim_post(w, o, e, NULL);
}

static void seek_lane(sim_world *w, sim_owner *o, uint32_t lane, const sim_job *job) {
  sim_lane *l = &o->lanes[lane];
  const sim_store *s = &w->stores[o->store];
  weir_error err = {0};
  SIM_CHECK(w, l->stopped, "lane %d is sought and was not stopped", (int)lane);
  SIM_CHECK(
      w, sim_store_lease(w, o) || job->position == s->attempts[s->decided].position[lane],
      "lane %d is sought at %d, not where the last decision left it", (int)lane,
      job->position);
  if (sim_fault(w, 10)) {
    weir_error_set(&err, WEIR_E_IO, WEIR_ERR_RETRIABLE, "injected: seek");
  } else {
    if (!sim_is_ephemeral(w, lane)) l->position = job->position;
    l->rows = job->rows;
    l->generation = job->generation;
    l->stopped = l->ended = l->failed = false;
  }
  sim_post(w, o, sim_lane_event(COORD_SOUGHT, lane, 0, job->generation),
           err.code ? &err : NULL);
}

void sim_lane_job(sim_world *w, sim_owner *o, uint32_t lane) {
  sim_lane *l = &o->lanes[lane];
  const sim_job taken = sim_job_take(&l->jobs), *job = &taken;
  switch (job->type) {
    case COORD_SEND_BARRIERS:
      if (!l->stopped && !l->ended &&
          !((l->pushing || l->posting) && l->item.row == ITEM_END)) {
        l->wanted = job->attempt;
      }
      break;
    case COORD_STOP_LANES:
      stop_lane(w, o, lane, job->generation);
      break;
    case COORD_SEEK:
      seek_lane(w, o, lane, job);
      break;
    default:
      sim_fail(w, "a lane got command %d", job->type);
  }
}

/* ---- participants */

/* Lanes of which something may be read, as bits. */
static uint32_t readable(const sim_part *p) {
  return p->gate ? p->waiting & ~(uint32_t)p->met : 0;
}

static bool all_met(const sim_world *w, const sim_part *p, uint32_t sink) {
  return p->gate && (p->met & w->targets[sink].fed) == w->targets[sink].fed;
}

bool sim_part_can(const sim_world *w, const sim_owner *o, uint32_t sink, uint32_t part) {
  const sim_part *p = &o->parts[sink][part];
  return readable(p) || all_met(w, p, sink);
}

static void seal(sim_world *w, sim_owner *o, uint32_t sink, uint32_t part) {
  sim_part *p = &o->parts[sink][part];
  p->gate = false;
  p->sealed = true;
  p->met = p->fin;
  coord_event e = sim_event(COORD_SEALED, sink, part + 1, p->attempt);
  for (uint32_t l = 0; l < w->n_lanes; l++) {
    e.rows += (uint64_t)__builtin_popcount(p->taken.lane[l]);
  }
  e.nbytes = e.rows * 8;
  sim_post(w, o, e, NULL);
}

static void write_row(sim_world *w, sim_owner *o, uint32_t sink, uint32_t part,
                      uint32_t lane, int row) {
  sim_part *p = &o->parts[sink][part];
  uint16_t bit = (uint16_t)(1u << (row - 1));
  SIM_CHECK(w, p->taken.lane[lane] < bit,
            "row %d of lane %d reaches sink %d again or out of order", row, (int)lane,
            (int)sink);
  if (sim_fault(w, 60)) {
    weir_error err = {0};
    weir_error_set(&err, WEIR_E_IO, WEIR_ERR_RETRIABLE, "injected: write");
    p->gate = false;
    sim_post(w, o, sim_event(COORD_FAILED, sink, part + 1, 0), &err);
    return;
  }
  p->taken.lane[lane] |= bit;
  if (w->targets[sink].kind != KIND_WEAK) sim_target_stage(w, sink, p->incarnation);
}

void sim_part_turn(sim_world *w, sim_owner *o, uint32_t sink, uint32_t part) {
  sim_part *p = &o->parts[sink][part];
  if (all_met(w, p, sink)) {
    seal(w, o, sink, part);
    return;
  }
  uint32_t lane = sim_below(w, w->n_lanes);
  while (!(readable(p) >> lane & 1)) lane = (lane + 1) % w->n_lanes;
  sim_item item = p->queue[lane][0];
  if (!--p->queued[lane]) p->waiting &= (uint8_t)~(1u << lane);
  memmove(&p->queue[lane][0], &p->queue[lane][1], sizeof(item) * (size_t)p->queued[lane]);
  if (item.generation < p->rewind) return;
  if (item.row == ITEM_BARRIER) {
    SIM_CHECK(w, item.attempt == p->attempt,
              "sink %d in attempt %d meets the barrier of %d", (int)sink, (int)p->attempt,
              (int)item.attempt);
  }
  if (item.row > 0) {
    write_row(w, o, sink, part, lane, item.row);
    return;
  }
  p->met |= (uint8_t)(1u << lane);
  if (item.row == ITEM_END) p->fin |= (uint8_t)(1u << lane);
}

static uint32_t new_incarnation(sim_world *w) {
  SIM_CHECK(w, w->last_incarnation + 1 < INCARNATIONS,
            "no progress: out of incarnations");
  return ++w->last_incarnation;
}

static void purge(sim_world *w, sim_part *p, uint64_t generation) {
  p->rewind = generation;
  for (uint32_t l = 0; l < w->n_lanes; l++) {
    int kept = 0;
    for (int i = 0; i < p->queued[l]; i++) {
      if (p->queue[l][i].generation >= generation) p->queue[l][kept++] = p->queue[l][i];
    }
    p->queued[l] = kept;
    if (!kept) p->waiting &= (uint8_t)~(1u << l);
  }
  p->met = p->fin = 0;
  p->gate = p->sealed = false;
  p->taken = (sim_rows){{0}};
}

void sim_open_gate(sim_world *w, sim_part *p, sim_kind kind, uint64_t attempt) {
  if (kind == KIND_WEAK) {
    if (p->attempt != attempt) p->taken = (sim_rows){{0}};
    p->attempt = attempt;
  }
  SIM_CHECK(w, p->attempt == attempt, "a gate opens for attempt %d, begun is %d",
            (int)attempt, (int)p->attempt);
  p->gate = true;
  p->sealed = false;
}

static void give_intent(sim_world *w, sim_part *p, uint64_t attempt, weir_bytes *out) {
  p->next_incarnation = new_incarnation(w);
  p->next_attempt = attempt;
  const sim_blob intent = {.present = true, .incarnation = p->next_incarnation};
  sim_encode(&intent, out);
}

static void begin(sim_world *w, sim_owner *o, sim_part *p, uint64_t attempt) {
  SIM_CHECK(w, w->stores[o->store].attempts[attempt].state != 0,
            "attempt %d begins and is not reserved", (int)attempt);
  SIM_CHECK(w, !p->broken, "attempt %d begins behind a rollback that failed",
            (int)attempt);
  SIM_CHECK(w, p->next_attempt == attempt, "attempt %d begins without its intent",
            (int)attempt);
  p->attempt = attempt;
  p->incarnation = p->next_incarnation;
  p->taken = (sim_rows){{0}};
}

static void pre_commit(sim_world *w, sim_part *p, bool weak, const sim_job *job,
                       coord_event *e) {
  SIM_CHECK(w, p->sealed && p->attempt == job->attempt,
            "pre_commit of attempt %d, not sealed", (int)job->attempt);
  if (weak) {
    SIM_CHECK(w, !job->next, "a weaker sink is asked for an intent");
    return;
  }
  sim_blob blob = {.incarnation = p->incarnation, .rows = p->taken};
  for (uint32_t l = 0; l < w->n_lanes; l++)
    blob.present = blob.present || p->taken.lane[l];
  if (blob.present) sim_encode(&blob, &e->bytes);
  if (job->next) give_intent(w, p, job->next, &e->intent);
}

static void roll_back(sim_world *w, sim_owner *o, uint32_t sink, sim_part *p,
                      uint64_t attempt) {
  SIM_CHECK(w, w->stores[o->store].attempts[attempt].state == WEIR_ATTEMPT_ABORT,
            "attempt %d is rolled back and its Abort is not durable", (int)attempt);
  p->gate = false;
  /* A rollback may leave files to the cleaner. */
  if (p->attempt == attempt && !w->lazy_rollback)
    sim_target_roll_back(w, o, sink, p->incarnation);
}

static bool may_fail(coord_command_type type) {
  return type == COORD_GET_INTENT || type == COORD_BEGIN || type == COORD_PRE_COMMIT ||
         type == COORD_ROLLBACK;
}

void sim_part_job(sim_world *w, sim_owner *o, uint32_t sink, uint32_t part) {
  sim_part *p = &o->parts[sink][part];
  sim_kind kind = w->targets[sink].kind;
  sim_job job = sim_job_take(&p->jobs);
  coord_event e = sim_event(COORD_TICK, sink, part + 1, job.attempt);
  weir_error err = {0};
  if (may_fail(job.type) && sim_fault(w, 60)) {
    weir_error_set(&err, WEIR_E_IO, sim_chance(w, 4) ? 0 : WEIR_ERR_RETRIABLE,
                   "injected: command %d", job.type);
  }
  switch (job.type) {
    case COORD_GET_INTENT:
      e.type = COORD_INTENT;
      if (!err.code) give_intent(w, p, job.attempt, &e.bytes);
      break;
    case COORD_BEGIN:
      e.type = COORD_BEGUN;
      if (!err.code) begin(w, o, p, job.attempt);
      break;
    case COORD_PRE_COMMIT:
      e.type = COORD_PREPARED;
      if (!err.code) pre_commit(w, p, kind == KIND_WEAK, &job, &e);
      break;
    case COORD_ROLLBACK:
      e.type = COORD_ROLLED_BACK;
      p->broken = err.code;
      if (!err.code) roll_back(w, o, sink, p, job.attempt);
      break;
    case COORD_PURGE:
      e.type = COORD_PURGED;
      e.generation = job.generation;
      purge(w, p, job.generation);
      break;
    case COORD_COMMIT: /* without overlap: on this thread */
      sim_target_commit(w, o, sink, &job);
      sim_batch_free(job.batch);
      return;
    default:
      sim_fail(w, "a participant got command %d", job.type);
  }
  sim_post(w, o, e, err.code ? &err : NULL);
}
