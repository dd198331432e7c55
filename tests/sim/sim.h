/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulation: real coordinators in a world made of a seed.
 *
 * Two owners (processes that crash, pause, restart) run pipelines over one store, or over a store and a
 * copy of it. Their lanes push rows 1..R through bounded queues to participants; targets publish under a
 * condition on their cursor, at once, late, or never, with the answer or without. A turn picks one of the
 * things that could happen next; what must always hold is checked as it happens, and once the faults are
 * over everything must come to an end, exact.
 *
 * Every actor (participant, committer, lane) is a thread of its own in the real runtime: its jobs and
 * its events keep their order, and nothing else does.
 */
#ifndef SIM_H
#define SIM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "coord/coord.h"

enum {
  SINKS = 3,
  PARTS = 2,
  LANES = 3,
  ROWS = 12,
  QUEUE = 3,
  ATTEMPTS = 256,
  OWNERS = 2,
  INCARNATIONS = 4096,
  REQUESTS = 8,
  JOBS = 16,
  MAIL = 256
};

typedef enum sim_kind { KIND_STAGE, KIND_TXN, KIND_WEAK } sim_kind;

/* Rows of each lane, row r as bit r - 1. */
typedef struct sim_rows {
  uint16_t lane[LANES];
} sim_rows;

/* What a participant prepared: its staged artifact and the rows in it. An intent has no rows. Its bytes
 * are what the coordinator carries, so there are no others between them. */
typedef struct sim_blob {
  uint32_t incarnation;
  sim_rows rows;
  uint16_t present;
} sim_blob;

/* ---- store */
typedef struct sim_attempt {
  int32_t state; /* 0: never heard of */
  uint64_t token;
  uint32_t n_parts[SINKS];
  weir_cursor cursor[SINKS];
  bool has_rows[SINKS], cleaned[SINKS];
  bool clean_failed[SINKS]; /* its last cleaner, of which a store knows nothing */
  sim_blob descriptor[SINKS][PARTS], intent[SINKS][PARTS];
  uint16_t position[LANES];
  sim_rows taken; /* of this attempt and all decided before it */
} sim_attempt;

typedef struct sim_store {
  uint64_t token, last, decided;
  weir_cursor seen[SINKS];
  uint64_t lost[LANES];           /* rows of ephemeral lanes, as the owners say */
  sim_attempt attempts[ATTEMPTS]; /* zero behind `last` */
} sim_store;

/* ---- targets */
typedef struct sim_request { /* a commit under way: lands or is lost, some time */
  bool active;
  uint32_t sink;
  int store;
  weir_cursor expected, cursor;
  int n;
  sim_blob blobs[ATTEMPTS];
} sim_request;

typedef struct sim_target {
  sim_kind kind;
  bool overlap;
  int64_t commit_interval;
  uint8_t fed; /* lanes, as bits */
  weir_cursor cursor;
  sim_rows visible;
  /* what was published, so that a target can lose its tail */
  int publications;
  weir_cursor before[ATTEMPTS];
  sim_rows added[ATTEMPTS];
} sim_target;

typedef enum sim_artifact {
  ART_NONE,
  ART_STAGED,
  ART_REMOVED,
  ART_PUBLISHED
} sim_artifact;

/* ---- owners */
typedef struct sim_item {
  int16_t row; /* or one of: */
  uint64_t attempt, generation;
} sim_item;
enum { ITEM_BARRIER = -1, ITEM_END = -2 };

typedef struct sim_batch {
  weir_commit_batch batch;
  weir_commit_attempt *attempts;
  weir_commit_entry *entries;
  sim_blob *blobs;
} sim_batch;

typedef struct sim_job {
  coord_command_type type;
  uint64_t attempt, next, generation;
  bool repeat;
  uint16_t position;
  uint64_t rows;
  sim_batch *batch;
  sim_blob intents[PARTS];
  int n_intents;
} sim_job;

typedef struct sim_jobs { /* a ring */
  uint32_t first, n;
  sim_job *v; /* JOBS of the owner's */
} sim_jobs;

typedef struct sim_part {
  sim_jobs jobs;
  bool gate, sealed, broken; /* broken: its rollback failed */
  uint64_t attempt, rewind;
  uint8_t met, fin;
  sim_item queue[LANES][QUEUE];
  int queued[LANES];
  uint8_t waiting; /* lanes with something queued */
  sim_rows taken;
  uint32_t incarnation, next_incarnation;
  uint64_t next_attempt;
} sim_part;

typedef struct sim_lane {
  sim_jobs jobs;
  uint16_t position;
  uint64_t rows, generation, wanted;
  bool stopped, ended, failed;
  bool pushing; /* an item is partly pushed */
  bool posting; /* a barrier or end is pushed and its event is not posted */
  sim_item item;
  int next; /* the next of the participants it goes to */
  uint8_t choice[SINKS];
  /* Ephemeral: rows read and not decided: up to the barrier, from there to the end, and not yet in front of
   * either; and how many rows the aborts have cost, and those of them that the store was not told of. */
  bool barred;
  uint16_t cut, tail, fresh;
  uint64_t lost, unsaid;
} sim_lane;

typedef struct sim_mail {
  coord_event event;
  weir_error *error; /* NULL: it went well */
} sim_mail;

typedef enum sim_life { OWNER_DEAD, OWNER_LIVE, OWNER_DONE } sim_life;

typedef struct sim_owner {
  int index, store;
  sim_life life;
  bool drained;
  uint64_t token;
  coord *c;
  uint32_t n_parts[SINKS];
  uint32_t first_mail, n_mail; /* a ring */
  sim_part parts[SINKS][PARTS];
  sim_lane lanes[LANES];
  sim_jobs committers[SINKS];
  int commits_out[SINKS], prepares_out[SINKS];
  weir_cursor unsettled[SINKS]; /* end of a batch whose last answer was not final */
  weir_cursor seen[SINKS];      /* remembered, written with the next durable step */
  bool saw[SINKS];
  int n_cleaned;
  uint64_t told;
  bool observed[SINKS]; /* its cursor was read */
  bool reserved;        /* recovery is over */
  /* What lies behind is not cleared by a start: the counts say how much of it there is. */
  uint64_t cleaned[ATTEMPTS];
  uint32_t cleaned_sink[ATTEMPTS];
  sim_mail mail[MAIL];
  sim_job jobs[SINKS * PARTS + SINKS + LANES][JOBS];
} sim_owner;

/* How much of what a run is for has happened: a run in which nothing did proves nothing. */
typedef struct sim_counts {
  uint64_t worlds, turns, starts, decisions, aborts, publications, late, lost, cleanings,
      fall_backs, copies, refusals, in_doubt, rows_lost, rows_vanished, jumps;
} sim_counts;

typedef struct sim_world {
  uint64_t seed, random;
  bool trace;
  int64_t now;
  uint64_t turn;
  uint32_t n_sinks, n_lanes, rows;
  bool prunes_empties, barrier_event_first, had_zombie, lazy_rollback;
  uint32_t keep; /* published attempts that the store keeps */
  bool copied, copy_wanted;
  uint8_t ephemeral;      /* lanes, as bits: what was read of them cannot be read again */
  uint16_t stream[LANES]; /* rows of them read by anybody */
  uint64_t vanished;      /* rows read by owners that never said what became of them */
  int faults;             /* still to come */
  uint32_t pace;          /* lanes move one turn in so many: how much an epoch holds */
  sim_counts *counts;
  uint32_t last_incarnation;
  /* What lies behind is cleared as far as it was used. */
  sim_store stores[2];
  sim_target targets[SINKS];
  uint8_t artifacts[SINKS][INCARNATIONS];
  sim_request requests[REQUESTS];
  sim_owner owners[OWNERS];
} sim_world;

/* ---- sim.c */
/* Chance is splitmix64, so that a seed means the same everywhere. */
static inline uint64_t sim_draw(sim_world *w) {
  uint64_t z = (w->random += UINT64_C(0x9E3779B97F4A7C15));
  z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
  return z ^ (z >> 31);
}

static inline uint32_t sim_below(sim_world *w, uint32_t n) { /* 0..n-1 */
  return (uint32_t)((sim_draw(w) >> 32) * n >> 32);
}

static inline bool sim_chance(sim_world *w, uint32_t one_in) {
  return sim_below(w, one_in) == 0;
}

static inline bool sim_fault(sim_world *w,
                             uint32_t one_in) { /* takes one of the faults */
  if (w->faults <= 0 || !sim_chance(w, one_in)) return false;
  w->faults--;
  return true;
}

_Noreturn void sim_fail(sim_world *w, const char *fmt, ...) WEIR_PRINTF(2, 3);
void sim_print(const sim_world *w, const char *fmt, ...) WEIR_PRINTF(2, 3);
#define sim_trace(w, ...)                      \
  do {                                         \
    if ((w)->trace) sim_print(w, __VA_ARGS__); \
  } while (0)
#define SIM_CHECK(w, condition, ...)              \
  do {                                            \
    if (!(condition)) sim_fail((w), __VA_ARGS__); \
  } while (0)

void sim_encode(const sim_blob *blob, weir_bytes *out);
sim_blob sim_decode(sim_world *w, int present, const uint8_t *data, size_t size);
uint16_t sim_span(uint16_t from, uint16_t to); /* rows from+1..to */
static inline uint64_t sim_count(uint32_t rows) {
  return (uint64_t)__builtin_popcount(rows);
}
static inline bool sim_is_ephemeral(const sim_world *w, uint32_t lane) {
  return w->ephemeral >> lane & 1;
}

/* ---- sim_store.c: each writes at once; the error says what the owner hears */
weir_status sim_store_lease(sim_world *w, sim_owner *o);
weir_status sim_store_reserve(sim_world *w, sim_owner *o, const coord_command *command,
                              weir_error *err);
weir_status sim_store_decide(sim_world *w, sim_owner *o, const coord_command *command,
                             weir_error *err);
weir_status sim_store_abort(sim_world *w, sim_owner *o, const coord_command *command,
                            weir_error *err);
/* Valid until the next write. */
const weir_store_state *sim_store_load(sim_world *w, const sim_owner *o);
void sim_store_flush(sim_world *w, sim_owner *o);
extern const char *const sim_sink_names[SINKS];
extern const char *const sim_lane_names[LANES];

/* ---- sim_target.c */
void sim_target_commit(sim_world *w, sim_owner *o, uint32_t sink, const sim_job *job);
void sim_target_observe(sim_world *w, sim_owner *o, uint32_t sink);
void sim_target_clean(sim_world *w, sim_owner *o, uint32_t sink, const sim_job *job);
void sim_target_stage(sim_world *w, uint32_t sink, uint32_t incarnation);
void sim_target_roll_back(sim_world *w, sim_owner *o, uint32_t sink,
                          uint32_t incarnation);
void sim_target_resolve(sim_world *w, sim_request *request, bool land);
bool sim_target_fall_back(sim_world *w, uint32_t sink);
void sim_target_has(sim_world *w, int store, uint64_t attempt); /* fails if it does not */

/* ---- sim_flow.c: lanes and participants */
bool sim_lane_can(const sim_world *w, const sim_owner *o, uint32_t lane);
void sim_lane_turn(sim_world *w, sim_owner *o, uint32_t lane);
bool sim_part_can(const sim_world *w, const sim_owner *o, uint32_t sink, uint32_t part);
void sim_part_turn(sim_world *w, sim_owner *o, uint32_t sink, uint32_t part);
void sim_open_gate(sim_world *w, sim_part *part, sim_kind kind, uint64_t attempt);
void sim_lane_job(sim_world *w, sim_owner *o, uint32_t lane);
void sim_part_job(sim_world *w, sim_owner *o, uint32_t sink, uint32_t part);

/* ---- sim_owner.c */
void sim_owner_start(sim_world *w, sim_owner *o, int store);
void sim_owner_kill(sim_world *w, sim_owner *o);
void sim_owner_step(sim_world *w, sim_owner *o); /* the oldest event */
void sim_owner_tick(sim_world *w, sim_owner *o);
void sim_committer_job(sim_world *w, sim_owner *o, uint32_t sink);
void sim_post(sim_world *w, sim_owner *o, coord_event event, const weir_error *error);
sim_job sim_job_take(sim_jobs *jobs); /* the oldest */
void sim_batch_free(sim_batch *batch);
coord_event sim_event(coord_event_type type, uint32_t sink, uint32_t part,
                      uint64_t attempt);
coord_event sim_lane_event(coord_event_type type, uint32_t lane, uint64_t attempt,
                           uint64_t generation);

#endif
