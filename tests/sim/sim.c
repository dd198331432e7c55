/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim --seeds A..B [--trace]: runs one world a seed; exits 1 at the first that breaks a rule, printing
 * the seed. `sim --seeds N..N --trace` plays it again, line by line.
 */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void sim_fail(sim_world *w, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  fflush(stdout);
  fprintf(stderr, "seed %llu, turn %llu: ", (unsigned long long)w->seed,
          (unsigned long long)w->turn);
  vfprintf(stderr, fmt, args);
  fprintf(stderr, "\nplay it again: sim --seeds %llu..%llu --trace\n",
          (unsigned long long)w->seed, (unsigned long long)w->seed);
  va_end(args);
  exit(1);
}

void sim_print(const sim_world *w, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  printf("%6llu %6lld ", (unsigned long long)w->turn, (long long)w->now);
  vprintf(fmt, args);
  putchar('\n');
  va_end(args);
}

/* ---- bytes */

void sim_encode(const sim_blob *blob, weir_bytes *out) {
  if (weir_bytes_copy(out, blob, sizeof(*blob), NULL)) abort();
}

sim_blob sim_decode(sim_world *w, int present, const uint8_t *data, size_t size) {
  sim_blob blob = {0};
  if (!present) return blob;
  SIM_CHECK(w, size == sizeof(blob),
            "bytes of a descriptor or an intent changed their size");
  memcpy(&blob, data, sizeof(blob));
  return blob;
}

uint16_t sim_span(uint16_t from, uint16_t to) {
  return (uint16_t)((1u << to) - (1u << from));
}

/* ---- the world */

/* Back to nothing, without touching the megabyte that the world before did not use. */
static void clear_world(sim_world *w) {
  for (int i = 0; i < 2; i++) {
    sim_store *s = &w->stores[i];
    memset(s, 0, (size_t)((uint8_t *)&s->attempts[s->last + 1] - (uint8_t *)s));
  }
  for (int k = 0; k < SINKS; k++) {
    memset(&w->targets[k], 0, offsetof(sim_target, before));
    memset(w->artifacts[k], 0, w->last_incarnation + 1);
  }
  for (int i = 0; i < REQUESTS; i++) w->requests[i].active = false;
  for (int i = 0; i < OWNERS; i++) w->owners[i].life = OWNER_DEAD;
  memset(w, 0, offsetof(sim_world, stores));
}

static void make_world(sim_world *w, uint64_t seed, bool trace, sim_counts *counts) {
  clear_world(w);
  w->counts = counts;
  w->seed = w->random = seed;
  w->trace = trace;
  sim_draw(w);
  w->n_sinks = 1 + sim_below(w, SINKS);
  w->n_lanes = 1 + sim_below(w, LANES);
  w->rows = 1 + sim_below(w, ROWS);
  w->prunes_empties = sim_chance(w, 2);
  w->barrier_event_first = sim_chance(w, 2);
  w->keep = 1 + sim_below(w, WEIR_STORE_KEEP);
  w->lazy_rollback = sim_chance(w, 2);
  w->copy_wanted = sim_chance(w, 4);
  w->faults = (int)sim_below(w, 24);
  w->pace = 1 + sim_below(w, 12);
  w->ephemeral = sim_chance(w, 3) ? (uint8_t)sim_below(w, 1u << LANES) : 0;
  for (uint32_t k = 0; k < w->n_sinks; k++) {
    sim_target *t = &w->targets[k];
    t->kind = sim_chance(w, 6) ? KIND_WEAK : sim_chance(w, 2) ? KIND_STAGE : KIND_TXN;
    t->overlap = sim_chance(w, 2);
    t->commit_interval = sim_chance(w, 3) ? 1 + sim_below(w, 5000) : 0;
    t->fed = (uint8_t)(1 + sim_below(w, (1u << w->n_lanes) - 1));
  }
  /* Every lane has a sink. */
  for (uint32_t l = 0; l < w->n_lanes; l++) {
    w->targets[sim_below(w, w->n_sinks)].fed |= (uint8_t)(1u << l);
  }
  for (int i = 0; i < OWNERS; i++) w->owners[i].index = i;
}

/* ---- what could happen next */

typedef enum sim_what {
  DO_STEP,
  DO_LANE_JOB,
  DO_LANE,
  DO_PART_JOB,
  DO_PART,
  DO_COMMITTER,
  DO_TIME,
  DO_REQUEST
} sim_what;

typedef struct sim_choice {
  sim_what what;
  sim_owner *o;
  uint32_t a, b;
} sim_choice;

enum { CHOICES = 128 };

static int choices_of(sim_world *w, sim_owner *o, sim_choice *out) {
  int n = 0;
  if (o->life != OWNER_LIVE) return 0;
  if (o->n_mail) out[n++] = (sim_choice){DO_STEP, o, 0, 0};
  for (uint32_t l = 0; l < w->n_lanes; l++) {
    if (o->lanes[l].jobs.n) out[n++] = (sim_choice){DO_LANE_JOB, o, l, 0};
    if (sim_lane_can(w, o, l) && (!n || sim_chance(w, w->pace)))
      out[n++] = (sim_choice){DO_LANE, o, l, 0};
  }
  for (uint32_t k = 0; k < w->n_sinks; k++) {
    if (o->committers[k].n) out[n++] = (sim_choice){DO_COMMITTER, o, k, 0};
    for (uint32_t p = 0; p < o->n_parts[k]; p++) {
      if (o->parts[k][p].jobs.n) out[n++] = (sim_choice){DO_PART_JOB, o, k, p};
      if (sim_part_can(w, o, k, p)) out[n++] = (sim_choice){DO_PART, o, k, p};
    }
  }
  if ((!n || sim_chance(w, 8)) && coord_wakeup(o->c) != INT64_MAX)
    out[n++] = (sim_choice){DO_TIME, o, 0, 0};
  return n;
}

static void make(sim_world *w, const sim_choice *c) {
  switch (c->what) {
    case DO_STEP:
      sim_owner_step(w, c->o);
      break;
    case DO_LANE_JOB:
      sim_lane_job(w, c->o, c->a);
      break;
    case DO_LANE:
      sim_lane_turn(w, c->o, c->a);
      break;
    case DO_PART_JOB:
      sim_part_job(w, c->o, c->a, c->b);
      break;
    case DO_PART:
      sim_part_turn(w, c->o, c->a, c->b);
      break;
    case DO_COMMITTER:
      sim_committer_job(w, c->o, c->a);
      break;
    case DO_TIME: {
      int64_t at = coord_wakeup(c->o->c);
      if (at > w->now) w->now = at;
      sim_owner_tick(w, c->o);
      break;
    }
    case DO_REQUEST:
      sim_target_resolve(w, &w->requests[c->a], sim_chance(w, 2));
      break;
  }
}

/* ---- faults between turns */

static int live(const sim_world *w) {
  int n = 0;
  for (int i = 0; i < OWNERS; i++) n += w->owners[i].life == OWNER_LIVE;
  return n;
}

static void copy_store(sim_world *w) {
  if (!w->copy_wanted || w->copied || w->stores[0].last == 0 || !sim_chance(w, 8)) return;
  w->stores[1] = w->stores[0];
  w->copied = true;
  w->counts->copies++;
  sim_trace(w, "the store is copied");
}

/* The clock of a machine that slept, or was set. */
static void jump(sim_world *w) {
  int64_t by = 1 + sim_below(w, 200000);
  w->now = sim_chance(w, 2) ? w->now + by : w->now > by ? w->now - by : 0;
  w->counts->jumps++;
  sim_trace(w, "the clock jumps");
}

/* Drawn once for all, since most turns have none of it. */
static void disturb(sim_world *w) {
  if (!sim_chance(w, 25)) return;
  sim_owner *o = &w->owners[sim_below(w, OWNERS)];
  copy_store(w);
  if (sim_fault(w, 50)) jump(w);
  if (o->life == OWNER_LIVE) {
    if (sim_fault(w, 6)) {
      sim_trace(w, "owner %d is killed", o->index);
      sim_owner_kill(w, o);
    } else if (sim_fault(w, 60)) {
      sim_trace(w, "owner %d is drained", o->index);
      o->drained = true;
      sim_post(w, o, sim_event(COORD_DRAIN, COORD_NONE, 0, 0), NULL);
    } else if (sim_chance(w, 2)) {
      sim_post(w, o, sim_event(COORD_CHECKPOINT, COORD_NONE, 0, 0), NULL);
    }
    if (o->life == OWNER_LIVE && sim_store_lease(w, o) && sim_chance(w, 4)) {
      sim_post(w, o, sim_event(COORD_FENCED, COORD_NONE, 0, 0), NULL);
    }
  } else if (!w->copied && live(w) == 1 && sim_fault(w, 16)) {
    w->had_zombie = true;
    sim_owner_start(w, o, 0); /* a second instance by mistake, or a standby */
  }
}

/* Somebody always starts the pipeline again; a copy is started once it is there. */
static void restart(sim_world *w) {
  if (!w->copied) {
    if (live(w) == 0) {
      for (uint32_t k = 0; k < w->n_sinks; k++) {
        if (w->faults > 0 && sim_chance(w, 2) && sim_target_fall_back(w, k)) w->faults--;
      }
      sim_owner_start(w, &w->owners[sim_below(w, OWNERS)], 0);
    }
    return;
  }
  for (int i = 0; i < OWNERS; i++) {
    sim_owner *o = &w->owners[i];
    if (o->life == OWNER_LIVE && o->store != i) sim_owner_kill(w, o);
    if (o->life == OWNER_DEAD) sim_owner_start(w, o, i);
  }
}

static bool over(const sim_world *w) {
  if (!w->copied)
    return w->owners[0].life == OWNER_DONE || w->owners[1].life == OWNER_DONE;
  return w->owners[0].life == OWNER_DONE && w->owners[1].life == OWNER_DONE;
}

/* Each row once, and nothing else, unless two histories met and both were refused. */
static void check_end(sim_world *w) {
  for (int i = 0; i < REQUESTS; i++) {
    if (w->requests[i].active) sim_target_resolve(w, &w->requests[i], true);
  }
  if (w->copied) return;
  const sim_store *s = &w->stores[0];
  const sim_attempt *last = &s->attempts[s->decided];
  for (uint32_t k = 0; k < w->n_sinks; k++) {
    const sim_target *t = &w->targets[k];
    for (uint32_t l = 0; t->kind != KIND_WEAK && l < w->n_lanes; l++) {
      uint16_t expected = t->fed & (1u << l) ? last->taken.lane[l] : 0;
      SIM_CHECK(w, t->visible.lane[l] == expected,
                "at the end sink %d shows rows %x of lane %d, not %x", (int)k,
                t->visible.lane[l], (int)l, expected);
    }
  }
  for (uint64_t n = 1; n <= s->last && !w->had_zombie; n++) {
    const sim_attempt *a = &s->attempts[n];
    for (uint32_t k = 0; a->state == WEIR_ATTEMPT_ABORT && k < w->n_sinks; k++) {
      for (uint32_t p = 0; a->cleaned[k] && p < a->n_parts[k]; p++) {
        SIM_CHECK(w, w->artifacts[k][a->intent[k][p].incarnation] != ART_STAGED,
                  "sink %d: attempt %d is marked cleaned and is not", (int)k, (int)n);
      }
    }
  }
  uint64_t missing = 0;
  for (uint32_t l = 0; l < w->n_lanes; l++) {
    if (sim_is_ephemeral(w, l)) {
      SIM_CHECK(w, w->stream[l] == w->rows, "lane %d is not at its end", (int)l);
      missing += w->rows - sim_count(last->taken.lane[l]) - s->lost[l];
    } else {
      SIM_CHECK(w, last->position[l] == w->rows, "lane %d is not at its end", (int)l);
    }
  }
  SIM_CHECK(w, missing == w->vanished, "%d rows are missing and %d were lost unsaid",
            (int)missing, (int)w->vanished);
  w->counts->rows_vanished += missing;
}

enum { TURNS = 200000 };

static void play(sim_world *w) {
  for (w->turn = 1; !over(w); w->turn++) {
    SIM_CHECK(w, w->turn < TURNS, "no progress");
    restart(w);
    disturb(w);
    sim_choice choices[2 * CHOICES];
    int n = 0;
    for (int i = 0; i < OWNERS; i++) n += choices_of(w, &w->owners[i], choices + n);
    for (uint32_t i = 0; i < REQUESTS; i++) {
      if (w->requests[i].active && (!n || sim_chance(w, 10))) {
        choices[n++] = (sim_choice){DO_REQUEST, NULL, i, 0};
      }
    }
    if (!n && live(w)) sim_fail(w, "nothing can happen any more");
    if (n) make(w, &choices[sim_below(w, (uint32_t)n)]);
  }
  for (int i = 0; i < OWNERS; i++) {
    if (w->owners[i].life == OWNER_LIVE) sim_owner_kill(w, &w->owners[i]);
  }
  check_end(w);
}

static int report(const sim_counts *n) {
  const struct {
    const char *what;
    uint64_t n;
  } rows[] = {{"turns", n->turns},
              {"starts", n->starts},
              {"decisions", n->decisions},
              {"aborts", n->aborts},
              {"publications", n->publications},
              {"commits that landed late", n->late},
              {"commits that were lost", n->lost},
              {"store writes in doubt", n->in_doubt},
              {"cleanings", n->cleanings},
              {"targets that fell back", n->fall_backs},
              {"jumps of the clock", n->jumps},
              {"rows of ephemeral lanes lost by aborts", n->rows_lost},
              {"rows of ephemeral lanes lost with their owners", n->rows_vanished},
              {"stores copied", n->copies},
              {"second histories refused", n->refusals}};
  int status = 0;
  for (size_t i = 0; i < BASE_COUNT(rows); i++) {
    printf("%10llu %s\n", (unsigned long long)rows[i].n, rows[i].what);
    if (n->worlds >= 500 && !rows[i].n) {
      fprintf(stderr, "none of %llu worlds had: %s\n", (unsigned long long)n->worlds,
              rows[i].what);
      status = 1;
    }
  }
  return status;
}

int main(int argc, char **argv) {
  unsigned long long from = 1, to = 1000;
  bool trace = false;
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--seeds") == 0 && i + 1 < argc &&
        sscanf(argv[i + 1], "%llu..%llu", &from, &to) == 2) {
      i++;
    } else if (strcmp(argv[i], "--trace") == 0) {
      trace = true;
    } else {
      fprintf(stderr, "usage: sim --seeds A..B [--trace]\n");
      return 2;
    }
  }
  sim_world *w = calloc(1, sizeof(*w));
  if (!w) return 1;
  sim_counts n = {0};
  for (unsigned long long seed = from; seed <= to; seed++) {
    make_world(w, seed, trace, &n);
    play(w);
    n.worlds++;
    n.turns += w->turn;
  }
  free(w);
  printf("seeds %llu..%llu held\n", from, to);
  return report(&n);
}
