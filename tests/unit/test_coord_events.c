/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events that do not fit: in each phase every event that the phase does not await, of another attempt,
 * generation, participant or lane, and each answer a second time. It is refused, or ignored where it can only
 * be late, and the coordinator is byte by byte what it was; the run goes on as if it had not come.
 */
#include "coord/state.h"
#include "support/coord_bench.h"

static const coord_sink sinks[] = {
    {.sink_id = "lake", .participants = 2, .committable = 1, .overlap = 1},
    {.sink_id = "console", .participants = 1}};

enum { SINKS = 2, LANES = 2, NOBODY = 9 };

typedef struct picture {
  coord c;
  coord_sink_state sinks[SINKS];
  coord_part parts[SINKS][2];
  coord_lane lanes[LANES];
} picture;

static void take_picture(const coord *c, picture *out) {
  memset(out, 0, sizeof(*out));
  memcpy(&out->c, c, sizeof(*c));
  memcpy(out->sinks, c->sinks, sizeof(out->sinks));
  for (uint32_t i = 0; i < SINKS; i++)
    memcpy(out->parts[i], c->sinks[i].parts, c->sinks[i].n_parts * sizeof(coord_part));
  memcpy(out->lanes, c->lanes, sizeof(out->lanes));
}

static void changes_nothing(bench *b, coord_event e, weir_status expected) {
  static picture before, after;
  take_picture(b->c, &before);
  bench_none(b);
  weir_status status = bench_try(b, bench_with(e, "freed all the same"));
  if (status != expected) {
    fail_msg("in '%s' event %d (attempt %d, generation %d) gave %d, expected %d",
             bench_phase(b), (int)e.type, (int)e.attempt, (int)e.generation, (int)status,
             (int)expected);
  }
  bench_none(b);
  take_picture(b->c, &after);
  assert_memory_equal(&before, &after, sizeof(before));
}

/* Taken once, then refused. */
static void once(bench *b, coord_event e) {
  bench_send(b, e);
  if (b->read == b->n_log) changes_nothing(b, e, WEIR_E_INTERNAL);
}

typedef enum names { OF_PART = 1, OF_LANE = 2, OF_ATTEMPT = 4, OF_GENERATION = 8 } names;

/* What an event names; those that can be late are ignored then. */
static const struct {
  coord_event_type type;
  int names;
  int late_after; /* of the present attempt: late in every phase after this one; 0: never */
} answers[] = {
    {COORD_START, 0, 0},
    {COORD_OBSERVED, 0, 0},
    {COORD_INTENT, OF_PART | OF_ATTEMPT, PHASE_NAMING},
    {COORD_RESERVED, OF_ATTEMPT, 0},
    {COORD_BEGUN, OF_PART | OF_ATTEMPT, PHASE_DECIDING},
    {COORD_BARRIER_SENT, OF_LANE | OF_ATTEMPT, PHASE_DECIDING},
    {COORD_LANE_ENDED, OF_LANE | OF_GENERATION, 0},
    {COORD_SEALED, OF_PART | OF_ATTEMPT, PHASE_DECIDING},
    {COORD_PREPARED, OF_PART | OF_ATTEMPT, PHASE_DECIDING},
    {COORD_DECIDED, OF_ATTEMPT, 0},
    {COORD_ABORTED, OF_ATTEMPT, 0},
    {COORD_ROLLED_BACK, OF_PART | OF_ATTEMPT, 0},
    {COORD_STOPPED, OF_LANE | OF_GENERATION, 0},
    {COORD_PURGED, OF_PART | OF_GENERATION, 0},
    {COORD_SOUGHT, OF_LANE | OF_GENERATION, 0},
    {COORD_COMMITTED, 0, 0},
    {COORD_CLEANED, OF_ATTEMPT, 0},
};

static coord_event present(const bench *b, coord_event_type type, int of) {
  coord_event e = bench_of(type, 0, 1, b->c->attempt);
  e.generation = b->c->generation;
  if (of & OF_LANE) {
    e.sink = COORD_NONE;
    e.lane = 0;
  }
  return e;
}

static void wrong_names(bench *b, coord_event e, int of) {
  coord_event wrong = e;
  if (of & OF_PART) {
    wrong.sink = NOBODY;
    changes_nothing(b, wrong, WEIR_E_INTERNAL);
    wrong = e;
    wrong.participant = 0;
    changes_nothing(b, wrong, WEIR_E_INTERNAL);
    wrong.participant = NOBODY;
    changes_nothing(b, wrong, WEIR_E_INTERNAL);
  }
  if (of & OF_LANE) {
    wrong.lane = NOBODY;
    changes_nothing(b, wrong, WEIR_E_INTERNAL);
  }
}

/* All that the present phase does not await; `fits` has a bit for each type that it does. */
static void misfits(bench *b, uint64_t fits) {
  const coord_phase phase = b->c->phase;
  for (size_t i = 0; i < BASE_COUNT(answers); i++) {
    const coord_event_type type = answers[i].type;
    const int of = answers[i].names;
    coord_event e = present(b, type, of);
    wrong_names(b, e, of);
    if (of & OF_ATTEMPT) {
      e.attempt++;
      changes_nothing(b, e, WEIR_E_INTERNAL);
      e.attempt -= 2;
      bool ignored = answers[i].late_after && phase > PHASE_NEW;
      if (b->c->attempt) changes_nothing(b, e, ignored ? WEIR_OK : WEIR_E_INTERNAL);
      e.attempt++;
    }
    if (of & OF_GENERATION) {
      e.generation++;
      changes_nothing(b, e, WEIR_E_INTERNAL);
      e.generation -= 2;
      if (b->c->generation) changes_nothing(b, e, WEIR_OK);
      e.generation++;
    }
    if (fits & (UINT64_C(1) << type)) continue;
    bool late = answers[i].late_after && (int)phase > answers[i].late_after;
    changes_nothing(b, e, late ? WEIR_OK : WEIR_E_INTERNAL);
  }
  coord_event failed = present(b, COORD_FAILED, OF_PART);
  changes_nothing(b, failed, WEIR_E_INTERNAL); /* without an error */
  failed.error = bench_error(WEIR_E_IO, WEIR_ERR_RETRIABLE);
  wrong_names(b, failed, OF_PART);
  failed = present(b, COORD_FAILED, OF_LANE);
  failed.error = bench_error(WEIR_E_IO, WEIR_ERR_RETRIABLE);
  wrong_names(b, failed, OF_LANE);
  changes_nothing(b, bench_event((coord_event_type)99), WEIR_E_INTERNAL);
  coord_event beyond = bench_of(COORD_OBSERVED, NOBODY, 0, 0);
  changes_nothing(b, beyond, WEIR_E_INTERNAL);
  beyond.type = COORD_COMMITTED;
  changes_nothing(b, beyond, WEIR_E_INTERNAL);
}

/* A lane may end at any time. */
static uint64_t awaits(coord_event_type type) {
  return UINT64_C(1) << type | UINT64_C(1) << COORD_LANE_ENDED;
}

static void take(bench *b, coord_event_type type_of_answer, coord_command_type type,
                 size_t n) {
  for (size_t i = 0; i < n; i++) bench_take(b, type);
  misfits(b, awaits(type_of_answer));
}

/* From the request for intents to open gates. */
static void open_attempt(bench *b, uint64_t n) {
  take(b, COORD_INTENT, COORD_GET_INTENT, 2);
  assert_string_equal(bench_phase(b), "naming");
  once(b, bench_of(COORD_INTENT, 0, 1, n));
  changes_nothing(b, bench_of(COORD_INTENT, 1, 1, n), WEIR_E_INTERNAL); /* has none */
  once(b, bench_of(COORD_INTENT, 0, 2, n));
  take(b, COORD_RESERVED, COORD_RESERVE, 1);
  assert_string_equal(bench_phase(b), "reserving");
  bench_send(b, bench_of(COORD_RESERVED, COORD_NONE, 0, n));
  take(b, COORD_BEGUN, COORD_BEGIN, 2);
  assert_string_equal(bench_phase(b), "beginning");
  once(b, bench_of(COORD_BEGUN, 0, 1, n));
  changes_nothing(b, bench_of(COORD_BEGUN, 1, 1, n), WEIR_E_INTERNAL); /* begins none */
  once(b, bench_of(COORD_BEGUN, 0, 2, n));
  take(b, COORD_SEALED, COORD_OPEN_GATES, 1);
  assert_string_equal(bench_phase(b), "open");
}

static void seal_and_prepare(bench *b, uint64_t n) {
  bench_tick(b, 1000 * BENCH_MS);
  bench_take(b, COORD_SEND_BARRIERS);
  assert_string_equal(bench_phase(b), "sealing");
  misfits(b, awaits(COORD_SEALED) | awaits(COORD_BARRIER_SENT));
  once(b, bench_with(bench_of_lane(COORD_BARRIER_SENT, 0, n), "p"));
  coord_event end = bench_of_lane(COORD_LANE_ENDED, 1, 0);
  end.generation = b->c->generation;
  once(b, end);
  changes_nothing(b, bench_of_lane(COORD_BARRIER_SENT, 1, n), WEIR_E_INTERNAL);
  for (uint32_t i = 0; i < SINKS; i++)
    for (uint32_t k = 1; k <= sinks[i].participants; k++) {
      coord_event sealed = bench_of(COORD_SEALED, i, k, n);
      sealed.rows = 5;
      once(b, sealed);
    }
  take(b, COORD_PREPARED, COORD_PRE_COMMIT, 3);
  assert_string_equal(bench_phase(b), "preparing");
  once(b, bench_of(COORD_PREPARED, 1, 1, n));
  once(b, bench_of(COORD_PREPARED, 0, 1, n));
  once(b, bench_of(COORD_PREPARED, 0, 2, n));
}

static void go_back(bench *b, uint64_t n) {
  coord_event failed = bench_of(COORD_FAILED, 0, 1, 0);
  failed.error = bench_error(WEIR_E_IO, WEIR_ERR_RETRIABLE);
  bench_send(b, failed);
  take(b, COORD_STOPPED, COORD_STOP_LANES, 1);
  assert_string_equal(bench_phase(b), "stopping lanes");
  for (uint32_t i = 0; i < LANES; i++) {
    coord_event stopped = bench_of_lane(COORD_STOPPED, i, 0);
    stopped.generation = b->c->generation;
    once(b, stopped);
  }
  take(b, COORD_ABORTED, COORD_ABORT, 1);
  assert_string_equal(bench_phase(b), "aborting");
  bench_send(b, bench_of(COORD_ABORTED, COORD_NONE, 0, n));
  take(b, COORD_ROLLED_BACK, COORD_ROLLBACK, 2);
  assert_string_equal(bench_phase(b), "rolling back");
  once(b, bench_of(COORD_ROLLED_BACK, 0, 1, n));
  changes_nothing(b, bench_of(COORD_ROLLED_BACK, 1, 1, n), WEIR_E_INTERNAL);
  once(b, bench_of(COORD_ROLLED_BACK, 0, 2, n));
  take(b, COORD_PURGED, COORD_PURGE, 3);
  assert_string_equal(bench_phase(b), "purging");
  for (uint32_t i = 0; i < SINKS; i++)
    for (uint32_t k = 1; k <= sinks[i].participants; k++) {
      coord_event purged = bench_of(COORD_PURGED, i, k, 0);
      purged.generation = b->c->generation;
      once(b, purged);
    }
  take(b, COORD_SOUGHT, COORD_SEEK, LANES);
  assert_string_equal(bench_phase(b), "seeking");
  for (uint32_t i = 0; i < LANES; i++) {
    coord_event sought = bench_of_lane(COORD_SOUGHT, i, 0);
    sought.generation = b->c->generation;
    once(b, sought);
  }
  assert_string_equal(bench_phase(b), "backing off");
  misfits(b, awaits(COORD_LANE_ENDED));
  b->now = coord_wakeup(b->c);
  bench_tick(b, 0);
}

static void test_what_does_not_fit_changes_nothing(void **state) {
  (void)state;
  bench b;
  bench_new(&b, sinks, SINKS, LANES, NULL);
  misfits(&b, UINT64_C(1) << COORD_START);
  bench_send(&b, bench_event(COORD_START));
  take(&b, COORD_OBSERVED, COORD_TAKE_OVER, 1);
  assert_string_equal(bench_phase(&b), "taking over");
  changes_nothing(&b, bench_of(COORD_OBSERVED, 1, 0, 0), WEIR_E_INTERNAL);
  coord_event failed = bench_of(COORD_FAILED, 0, 1, 0);
  failed.error = bench_error(WEIR_E_IO, 0);
  changes_nothing(&b, failed, WEIR_OK); /* it has nothing yet that could be lost */
  bench_send(&b, bench_of(COORD_OBSERVED, 0, 0, 0));
  open_attempt(&b, 1);
  go_back(&b, 1);
  open_attempt(&b, 2);
  go_back(&b, 2);
  open_attempt(&b, 3);
  seal_and_prepare(&b, 3);
  take(&b, COORD_DECIDED, COORD_DECIDE, 1);
  assert_string_equal(bench_phase(&b), "deciding");
  bench_send(&b, bench_of(COORD_DECIDED, COORD_NONE, 0, 3));
  bench_take(&b, COORD_COMMIT);
  bench_take(&b, COORD_BEGIN);
  bench_take(&b, COORD_BEGIN);
  misfits(&b, awaits(COORD_BEGUN) | awaits(COORD_COMMITTED));
  changes_nothing(&b, bench_of(COORD_COMMITTED, 1, 0, 0), WEIR_E_INTERNAL);
  bench_land(&b, 0);
  bench_skip(&b);
  /* The end: the last attempt takes nothing and is withdrawn. */
  bench_send(&b, bench_of(COORD_BEGUN, 0, 1, 4));
  bench_send(&b, bench_of(COORD_BEGUN, 0, 2, 4));
  bench_take(&b, COORD_OPEN_GATES);
  coord_event end = bench_with(bench_of_lane(COORD_LANE_ENDED, 0, 0), "p");
  end.generation = b.c->generation;
  bench_send(&b, end);
  for (uint32_t i = 0; i < SINKS; i++)
    for (uint32_t k = 1; k <= sinks[i].participants; k++)
      bench_send(&b, bench_of(COORD_SEALED, i, k, 4));
  take(&b, COORD_ABORTED, COORD_ABORT, 1);
  failed.error = bench_error(WEIR_E_IO, 0);
  changes_nothing(&b, failed, WEIR_OK); /* nothing is left that it could harm */
  bench_send(&b, bench_of(COORD_ABORTED, COORD_NONE, 0, 4));
  bench_take(&b, COORD_MARK_CLEANED);
  take(&b, COORD_ROLLED_BACK, COORD_ROLLBACK, 2);
  bench_send(&b, bench_of(COORD_ROLLED_BACK, 0, 1, 4));
  bench_send(&b, bench_of(COORD_ROLLED_BACK, 0, 2, 4));
  assert_string_equal(bench_phase(&b), "finishing");
  misfits(&b, awaits(COORD_LANE_ENDED));
  failed.error = bench_error(WEIR_E_IO, 0);
  changes_nothing(&b, failed, WEIR_OK);
  changes_nothing(&b, bench_of(COORD_CLEANED, 0, 0, 2), WEIR_E_INTERNAL); /* not yet */
  bench_send(&b, bench_of(COORD_CLEANED, 0, 0, 1));
  assert_int_equal(bench_take(&b, COORD_MARK_CLEANED)->attempt, 1);
  assert_int_equal(bench_take(&b, COORD_CLEAN)->attempt, 2);
  bench_send(&b, bench_of(COORD_CLEANED, 0, 0, 2));
  assert_int_equal(bench_take(&b, COORD_MARK_CLEANED)->attempt, 2);
  assert_null(bench_take(&b, COORD_STOP)->error);
  for (coord_event_type type = COORD_START; type <= COORD_FENCED; type++)
    changes_nothing(&b, present(&b, type, 0), WEIR_OK); /* late */
  bench_done(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_what_does_not_fit_changes_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
