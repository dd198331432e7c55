/* SPDX-License-Identifier: Apache-2.0 */
/* Failures before the decision, rewinds, what stops a run, and events that a phase does not allow. */
#include <stdio.h>
#include <stdlib.h>

#include "support/coord_bench.h"

static const coord_sink lake = {
    .sink_id = "lake", .participants = 2, .committable = 1, .overlap = 1};
static const coord_sink plain = {.sink_id = "plain", .participants = 1, .committable = 1};
static const coord_sink console = {.sink_id = "console", .participants = 1};

static coord_event failed(uint32_t sink, weir_status code, uint32_t flags) {
  coord_event e = bench_of(COORD_FAILED, sink, 1, 0);
  e.error = bench_error(code, flags);
  return e;
}

static coord_event failed_lane(uint32_t lane, weir_status code, uint32_t flags) {
  coord_event e = bench_of_lane(COORD_FAILED, lane, 0);
  e.error = bench_error(code, flags);
  return e;
}

static coord_event with_error(coord_event e, weir_status code, uint32_t flags) {
  e.error = bench_error(code, flags);
  return e;
}

/* From the rewind to the open gates of `attempt`, through the backoff. */
static void open_again(bench *b, uint64_t attempt) {
  bench_none(b);
  assert_string_equal(bench_phase(b), "backing off");
  b->now = coord_wakeup(b->c);
  bench_tick(b, 0);
  bench_reserve(b, attempt);
}

static void expect_stop(bench *b, weir_status code) {
  const coord_command *stop = bench_take(b, COORD_STOP);
  assert_non_null(stop->error);
  assert_int_equal(stop->error->code, code);
  bench_none(b);
  assert_string_equal(bench_phase(b), "stopped");
}

static void test_abort_is_durable_before_any_rollback(void **state) {
  (void)state;
  bench b;
  bench_open(&b, &lake, 1, 2);
  bench_send(&b, failed(0, WEIR_E_IO, WEIR_ERR_RETRIABLE));
  bench_stop(&b);
  const coord_command *abort_command = bench_take(&b, COORD_ABORT);
  assert_non_null(abort_command->error); /* why, for the log */
  assert_int_equal(abort_command->error->code, WEIR_E_IO);
  bench_none(&b);
  bench_send(&b, bench_of(COORD_ABORTED, COORD_NONE, 0, 1));
  bench_take(&b, COORD_ROLLBACK);
  bench_take(&b, COORD_ROLLBACK);
  bench_none(&b);
  bench_done(&b);
}

static void test_rollback_reaches_every_committable_sink_also_unbegun(void **state) {
  (void)state;
  bench b;
  const coord_sink sinks[] = {lake, console, plain};
  bench_new(&b, sinks, 3, 1, NULL);
  bench_send(&b, bench_event(COORD_START));
  bench_skip(&b);
  bench_send(&b, bench_of(COORD_OBSERVED, 0, 0, 0));
  bench_send(&b, bench_of(COORD_OBSERVED, 2, 0, 0));
  bench_skip(&b);
  bench_send(&b, bench_of(COORD_INTENT, 0, 1, 1));
  bench_send(&b, bench_of(COORD_INTENT, 0, 2, 1));
  bench_send(&b, bench_of(COORD_INTENT, 2, 1, 1));
  bench_take(&b, COORD_RESERVE);
  bench_send(&b, bench_of(COORD_RESERVED, COORD_NONE, 0, 1));
  bench_skip(&b);
  bench_send(&b,
             with_error(bench_of(COORD_BEGUN, 0, 1, 1), WEIR_E_IO, WEIR_ERR_RETRIABLE));
  bench_stop(&b);
  bench_take(&b, COORD_ABORT);
  bench_send(&b, bench_of(COORD_BEGUN, 2, 1, 1)); /* late */
  bench_none(&b);
  bench_send(&b, bench_of(COORD_ABORTED, COORD_NONE, 0, 1));
  /* no gate was opened: nothing to clean */
  assert_int_equal(bench_take(&b, COORD_MARK_CLEANED)->sink, 0);
  assert_int_equal(bench_take(&b, COORD_MARK_CLEANED)->sink, 2);
  assert_int_equal(bench_take(&b, COORD_ROLLBACK)->sink, 0);
  assert_int_equal(bench_take(&b, COORD_ROLLBACK)->sink, 0);
  assert_int_equal(bench_take(&b, COORD_ROLLBACK)->sink, 2);
  bench_none(&b);
  bench_done(&b);
}

static size_t sent(const bench *b, coord_command_type type) {
  size_t n = 0;
  for (size_t i = 0; i < b->n_log; i++) n += b->log[i].type == type;
  return n;
}

/* Of 12 sinks that owe it, each once; one that fails, in doubt or not, is asked the same again. */
static void test_cleaners_are_asked_8_sinks_at_a_time(void **state) {
  (void)state;
  bench b;
  char names[12][16];
  coord_sink sinks[12];
  for (int i = 0; i < 12; i++) {
    snprintf(names[i], sizeof(names[i]), "s%d", i);
    sinks[i] = (coord_sink){.sink_id = names[i], .participants = 1, .committable = 1};
  }
  bench_new(&b, sinks, 12, 1, NULL);
  bench_send(&b, bench_event(COORD_START));
  for (uint32_t i = 0; i < 12; i++) bench_send(&b, bench_of(COORD_OBSERVED, i, 0, 0));
  bench_skip(&b);
  for (uint32_t i = 0; i < 12; i++) bench_send(&b, bench_of(COORD_INTENT, i, 1, 1));
  bench_skip(&b);
  bench_send(&b, bench_of(COORD_RESERVED, COORD_NONE, 0, 1));
  for (uint32_t i = 0; i < 12; i++) bench_send(&b, bench_of(COORD_BEGUN, i, 1, 1));
  bench_skip(&b);
  bench_send(&b, failed(0, WEIR_E_IO, WEIR_ERR_RETRIABLE));
  bench_rewind(&b, 1);
  open_again(&b, 2);
  bench_tick(&b, 1000 * BENCH_MS);
  bench_seal(&b, 2, "p1", 1);
  for (uint32_t i = 0; i < 12; i++)
    bench_send(&b, bench_with(bench_of(COORD_PREPARED, i, 1, 2), "d"));
  bench_send(&b, bench_of(COORD_DECIDED, COORD_NONE, 0, 2));
  for (uint32_t i = 0; i < 12; i++) bench_land(&b, i);
  assert_int_equal(sent(&b, COORD_CLEAN), 8);
  coord_event doubt = bench_of(COORD_CLEANED, 0, 0, 1);
  doubt.error = bench_error(WEIR_E_TIMEOUT, WEIR_ERR_IN_DOUBT);
  bench_send(&b, doubt);
  assert_int_equal(sent(&b, COORD_CLEAN), 9);
  assert_int_equal(sent(&b, COORD_MARK_CLEANED), 0);
  for (uint32_t i = 1; i < 12; i++) bench_send(&b, bench_of(COORD_CLEANED, i, 0, 1));
  assert_int_equal(sent(&b, COORD_CLEAN), 12);
  bench_tick(&b, 1000 * BENCH_MS);
  assert_int_equal(sent(&b, COORD_CLEAN), 13);
  const coord_command *again = NULL;
  for (size_t i = 0; i < b.n_log; i++)
    if (b.log[i].type == COORD_CLEAN) again = &b.log[i];
  assert_int_equal(again->sink, 0);
  assert_int_equal(again->attempt, 1);
  assert_int_equal(again->n_entries, 1);
  bench_done(&b);
}

static void test_rewind_goes_to_the_last_decided_position(void **state) {
  (void)state;
  bench b;
  bench_open(&b, &lake, 1, 1);
  bench_decide(&b, 1, "p1");
  bench_take(&b, COORD_COMMIT); /* not landed: decided all the same */
  bench_begin_all(&b, 2);
  bench_send(&b, failed_lane(0, WEIR_E_IO, WEIR_ERR_RETRIABLE));
  bench_rewind(&b, 2);
  const coord_command *seek = NULL;
  for (size_t i = 0; i < b.n_log; i++) {
    if (b.log[i].type == COORD_SEEK) seek = &b.log[i];
  }
  assert_non_null(seek);
  assert_int_equal(seek->has_position, 1);
  assert_memory_equal(seek->position, "p1", 2);
  open_again(&b, 3); /* numbers are never used again */
  bench_done(&b);
}

static const weir_store_position *lost_of(const coord_command *command, size_t n) {
  assert_int_equal(command->n_positions, n);
  return command->positions;
}

/* Lane 3 cannot go back: what it read and what was not decided is lost, and said with the Abort. */
static void test_an_abort_says_what_an_ephemeral_lane_loses(void **state) {
  (void)state;
  bench b;
  bench_open(&b, &plain, 1, 4);
  bench_decide(&b, 1, "p1"); /* 0 rows a lane */
  bench_take(&b, COORD_COMMIT);
  bench_begin_all(&b, 2);
  bench_land(&b, 0);
  bench_skip(&b);
  b.rows[0] = 4; /* read again */
  b.rows[3] = 7;
  bench_send(&b, failed(0, WEIR_E_IO, WEIR_ERR_RETRIABLE));
  bench_take(&b, COORD_STOP_LANES);
  bench_none(&b); /* no Abort before it is known what it costs */
  b.read--;
  bench_stop(&b);
  const weir_store_position *lost = lost_of(bench_take(&b, COORD_ABORT), 1);
  assert_string_equal(lost->source, "pipe");
  assert_memory_equal(lost->data, "p1", 2);
  assert_int_equal(lost->rows, 0);
  assert_int_equal(lost->lost, 7);
  bench_done(&b);
}

static void test_what_is_lost_adds_up_and_is_decided_too(void **state) {
  (void)state;
  bench b;
  bench_open(&b, &console, 1, 4);
  b.rows[3] = 7;
  bench_send(&b, failed(0, WEIR_E_IO, WEIR_ERR_RETRIABLE));
  bench_rewind(&b, 1);
  open_again(&b, 2);
  b.rows[3] = 2; /* since then: the lane counts on from what is decided */
  bench_send(&b, failed(0, WEIR_E_IO, WEIR_ERR_RETRIABLE));
  bench_stop(&b);
  assert_int_equal(lost_of(bench_take(&b, COORD_ABORT), 1)->lost, 9);
  bench_done(&b);

  weir_store_position at[] = {{"pipe", 1, (const uint8_t *)"p", 1, 30, 5}};
  const weir_store_state known = {.last_attempt = 1, .positions = at, .n_positions = 1};
  bench_new(&b, &console, 1, 4, &known);
  bench_send(&b, bench_event(COORD_START));
  bench_reserve(&b, 2);
  b.rows[3] = 31;
  bench_send(&b, failed(0, WEIR_E_IO, WEIR_ERR_RETRIABLE));
  bench_rewind(&b, 2);
  open_again(&b, 3);
  bench_tick(&b, 1000 * BENCH_MS);
  bench_seal(&b, 3, "q", 1);
  bench_prepare(&b, 3, false);
  const weir_store_decision *d = bench_take(&b, COORD_DECIDE)->decision;
  assert_int_equal(d->n_positions, 4);
  assert_int_equal(d->positions[0].lost, 0);
  assert_int_equal(d->positions[3].lost, 6);
  bench_done(&b);
}

static void test_rewind_makes_ended_lanes_live(void **state) {
  (void)state;
  bench b;
  bench_open(&b, &plain, 1, 1);
  bench_send(&b, bench_with(bench_of_lane(COORD_LANE_ENDED, 0, 0), "e"));
  bench_send(&b, failed(0, WEIR_E_IO, WEIR_ERR_RETRIABLE));
  bench_rewind(&b, 1);
  open_again(&b, 2);
  coord_event sealed = bench_of(COORD_SEALED, 0, 1, 2);
  bench_send(&b, sealed);
  bench_none(&b); /* the lane's end belongs to the old generation */
  coord_event end = bench_with(bench_of_lane(COORD_LANE_ENDED, 0, 0), "e");
  bench_send(&b, end); /* late, of generation 0 */
  bench_none(&b);
  end = bench_with(bench_of_lane(COORD_LANE_ENDED, 0, 0), "e");
  end.generation = 1;
  bench_send(&b, end);
  bench_take(&b, COORD_PRE_COMMIT);
  bench_done(&b);
}

static void test_backoff_grows_and_is_bounded(void **state) {
  (void)state;
  bench b;
  bench_open(&b, &plain, 1, 1);
  static const int64_t waits[] = {100, 200, 400, 800, 1000, 1000};
  for (uint64_t n = 1; n <= BASE_COUNT(waits); n++) {
    int64_t before = b.now;
    /* two causes in turn: neither five times */
    if (n % 2) {
      bench_send(&b, failed(0, WEIR_E_IO, WEIR_ERR_RETRIABLE));
    } else {
      bench_send(&b, failed_lane(0, WEIR_E_IO, WEIR_ERR_RETRIABLE));
    }
    bench_rewind(&b, n);
    assert_int_equal(coord_wakeup(b.c), before + waits[n - 1] * BENCH_MS);
    open_again(&b, n + 1);
  }
  bench_done(&b);
}

static void test_five_aborts_for_one_cause_stop(void **state) {
  (void)state;
  bench b;
  bench_open(&b, &plain, 1, 1);
  for (uint64_t n = 1; n <= 4; n++) {
    bench_send(&b, failed(0, WEIR_E_IO, WEIR_ERR_RETRIABLE));
    bench_rewind(&b, n);
    open_again(&b, n + 1);
  }
  bench_send(&b, failed(0, WEIR_E_IO, WEIR_ERR_RETRIABLE));
  bench_stop(&b);
  bench_take(&b, COORD_ABORT);
  bench_send(&b, bench_of(COORD_ABORTED, COORD_NONE, 0, 5));
  bench_take(&b, COORD_ROLLBACK);
  bench_none(&b);
  bench_send(&b, bench_of(COORD_ROLLED_BACK, 0, 1, 5));
  expect_stop(&b, WEIR_E_IO);
  bench_done(&b);
}

/* No end of the run would bring it back. */
static void test_a_target_that_is_away_is_waited_for(void **state) {
  (void)state;
  const uint32_t away = WEIR_ERR_RETRIABLE | WEIR_ERR_AWAY;
  bench b;
  uint64_t n = 1;
  bench_open(&b, &plain, 1, 1);
  for (; n <= 12; n++) {
    bench_send(&b, failed(0, WEIR_E_IO, away));
    bench_rewind(&b, n);
    open_again(&b, n + 1);
  }
  for (; n <= 16; n++) { /* what it says once it is back counts from there */
    bench_send(&b, failed(0, WEIR_E_IO, WEIR_ERR_RETRIABLE));
    bench_rewind(&b, n);
    open_again(&b, n + 1);
  }
  bench_send(&b, failed(0, WEIR_E_IO, WEIR_ERR_RETRIABLE));
  bench_stop(&b);
  bench_take(&b, COORD_ABORT);
  bench_send(&b, bench_of(COORD_ABORTED, COORD_NONE, 0, n));
  bench_take(&b, COORD_ROLLBACK);
  bench_send(&b, bench_of(COORD_ROLLED_BACK, 0, 1, n));
  expect_stop(&b, WEIR_E_IO);
  bench_done(&b);
}

/* Two sources, say, whose disk is gone: whichever is first to say so, the run ends. */
static void test_five_aborts_for_one_cause_stop_also_in_turn(void **state) {
  (void)state;
  bench b;
  bench_open(&b, &plain, 1, 1);
  for (uint64_t n = 1; n <= 8; n++) {
    bench_send(&b, n % 2 ? failed(0, WEIR_E_IO, WEIR_ERR_RETRIABLE)
                         : failed_lane(0, WEIR_E_IO, WEIR_ERR_RETRIABLE));
    bench_rewind(&b, n);
    open_again(&b, n + 1);
  }
  bench_send(&b, failed_lane(0, WEIR_E_IO, WEIR_ERR_RETRIABLE));
  bench_stop(&b);
  bench_take(&b, COORD_ABORT);
  bench_send(&b, bench_of(COORD_ABORTED, COORD_NONE, 0, 9));
  bench_take(&b, COORD_ROLLBACK);
  bench_send(&b, bench_of(COORD_ROLLED_BACK, 0, 1, 9));
  expect_stop(&b, WEIR_E_IO);
  bench_done(&b);
}

static void test_a_decision_ends_the_row_of_aborts(void **state) {
  (void)state;
  bench b;
  bench_open(&b, &plain, 1, 1);
  uint64_t n = 1;
  for (int turn = 0; turn < 3; turn++) {
    for (int i = 0; i < 4; i++, n++) {
      bench_send(&b, failed(0, WEIR_E_IO, WEIR_ERR_RETRIABLE));
      bench_rewind(&b, n);
      open_again(&b, n + 1);
    }
    bench_decide(&b, n++, turn == 0 ? "p1" : turn == 1 ? "p2" : "p3");
    bench_take(&b, COORD_COMMIT);
    bench_begin_all(&b, n);
    bench_land(&b, 0);
    bench_skip(&b);
    coord_view view;
    coord_look(b.c, &view);
    assert_int_equal(view.aborts, 0);
  }
  bench_done(&b);
}

static void stop_after_rollback(weir_status code, uint32_t flags) {
  bench b;
  bench_open(&b, &plain, 1, 1);
  bench_send(&b, failed(0, code, flags));
  bench_stop(&b);
  bench_take(&b, COORD_ABORT);
  bench_send(&b, bench_of(COORD_ABORTED, COORD_NONE, 0, 1));
  bench_take(&b, COORD_ROLLBACK);
  bench_none(&b);
  bench_send(&b, bench_of(COORD_ROLLED_BACK, 0, 1, 1));
  expect_stop(&b, code);
  bench_done(&b);
}

static void test_bad_data_stops_after_the_rollback(void **state) {
  (void)state;
  stop_after_rollback(WEIR_E_BAD_DATA, WEIR_ERR_BAD_DATA);
  stop_after_rollback(WEIR_E_BAD_DATA, WEIR_ERR_RETRIABLE);
  stop_after_rollback(WEIR_E_IO, WEIR_ERR_BAD_DATA | WEIR_ERR_RETRIABLE);
}

static void test_an_unflagged_error_stops_after_the_rollback(void **state) {
  (void)state;
  stop_after_rollback(WEIR_E_SCHEMA, 0);
}

static void test_a_failed_rollback_stops_at_once(void **state) {
  (void)state;
  bench b;
  bench_open(&b, &lake, 1, 1);
  bench_send(&b, failed(0, WEIR_E_IO, WEIR_ERR_RETRIABLE));
  bench_stop(&b);
  bench_take(&b, COORD_ABORT);
  bench_send(&b, bench_of(COORD_ABORTED, COORD_NONE, 0, 1));
  bench_skip(&b);
  bench_send(&b, with_error(bench_of(COORD_ROLLED_BACK, 0, 1, 1), WEIR_E_TIMEOUT,
                            WEIR_ERR_RETRIABLE));
  expect_stop(&b, WEIR_E_TIMEOUT);
  bench_done(&b);
}

static void test_a_store_write_in_doubt_stops_and_touches_nothing(void **state) {
  (void)state;
  static const coord_event_type answers[] = {COORD_RESERVED, COORD_DECIDED,
                                             COORD_ABORTED};
  for (size_t i = 0; i < BASE_COUNT(answers); i++) {
    bench b;
    uint64_t attempt = 1;
    if (answers[i] == COORD_RESERVED) {
      bench_new(&b, &console, 1, 1, NULL);
      bench_send(&b, bench_event(COORD_START));
      bench_take(&b, COORD_RESERVE);
    } else {
      bench_open(&b, &plain, 1, 1);
      if (answers[i] == COORD_DECIDED) {
        bench_tick(&b, 1000 * BENCH_MS);
        bench_seal(&b, 1, "p1", 1);
        bench_prepare(&b, 1, true);
        bench_take(&b, COORD_DECIDE);
      } else {
        bench_send(&b, failed(0, WEIR_E_IO, WEIR_ERR_RETRIABLE));
        bench_stop(&b);
        bench_take(&b, COORD_ABORT);
      }
    }
    bench_send(&b, with_error(bench_of(answers[i], COORD_NONE, 0, attempt), WEIR_E_IO,
                              WEIR_ERR_IN_DOUBT));
    expect_stop(&b, WEIR_E_IO);
    bench_done(&b);
  }
}

static void test_fenced_stops_at_once_without_rollback(void **state) {
  (void)state;
  bench b;
  bench_open(&b, &lake, 1, 1);
  bench_decide(&b, 1, "p1");
  bench_take(&b, COORD_COMMIT);
  bench_begin_all(&b, 2);
  bench_send(&b, bench_event(COORD_FENCED));
  expect_stop(&b, WEIR_E_FENCED);
  bench_send(&b, failed(0, WEIR_E_IO, WEIR_ERR_RETRIABLE)); /* late: nothing more */
  bench_land(&b, 0);
  bench_none(&b);
  bench_done(&b);
}

static void test_a_failure_while_deciding_aborts_the_next_attempt(void **state) {
  (void)state;
  bench b;
  bench_open(&b, &plain, 1, 1);
  bench_tick(&b, 1000 * BENCH_MS);
  bench_seal(&b, 1, "p1", 1);
  bench_prepare(&b, 1, true);
  bench_take(&b, COORD_DECIDE);
  bench_send(&b, failed(0, WEIR_E_IO, WEIR_ERR_RETRIABLE));
  bench_none(&b); /* not an abort: the decision was asked for */
  bench_send(&b, bench_of(COORD_DECIDED, COORD_NONE, 0, 1));
  bench_take(&b, COORD_COMMIT);
  bench_stop(&b);
  assert_int_equal(bench_take(&b, COORD_ABORT)->attempt, 2);
  bench_none(&b);
  bench_done(&b);
}

static void test_the_checkpoint_timeout_runs_from_all_sealed(void **state) {
  (void)state;
  bench b;
  bench_open(&b, &plain, 1, 1);
  bench_tick(&b, 1000 * BENCH_MS);
  bench_tick(&b, 600000 * BENCH_MS); /* sealing has no limit */
  bench_seal(&b, 1, "p1", 1);
  bench_take(&b, COORD_PRE_COMMIT);
  assert_int_equal(coord_wakeup(b.c), b.now + 60000 * BENCH_MS);
  bench_tick(&b, 60000 * BENCH_MS - 1);
  bench_none(&b);
  bench_tick(&b, 1);
  bench_stop(&b);
  bench_take(&b, COORD_ABORT);
  bench_send(&b, bench_with(bench_of(COORD_PREPARED, 0, 1, 1), "late"));
  bench_none(&b);
  bench_done(&b);
}

static void test_an_intent_that_fails_passes_the_number_over(void **state) {
  (void)state;
  bench b;
  bench_new(&b, &plain, 1, 1, NULL);
  bench_send(&b, bench_event(COORD_START));
  bench_take(&b, COORD_TAKE_OVER);
  bench_send(&b, bench_of(COORD_OBSERVED, 0, 0, 0));
  bench_take(&b, COORD_GET_INTENT);
  bench_send(&b,
             with_error(bench_of(COORD_INTENT, 0, 1, 1), WEIR_E_IO, WEIR_ERR_RETRIABLE));
  bench_none(&b); /* nothing was reserved, nothing is aborted */
  open_again(&b, 2);
  bench_done(&b);
}

static void test_bounds_of_intents_and_descriptors(void **state) {
  (void)state;
  bench b;
  char *large = base_calloc(WEIR_MAX_DESCRIPTOR + 2, 1, NULL);
  assert_non_null(large);
  memset(large, 'x', WEIR_MAX_DESCRIPTOR + 1);
  bench_open(&b, &plain, 1, 1);
  bench_tick(&b, 1000 * BENCH_MS);
  bench_seal(&b, 1, "p1", 1);
  bench_take(&b, COORD_PRE_COMMIT);
  bench_send(&b, bench_with(bench_of(COORD_PREPARED, 0, 1, 1), large));
  bench_stop(&b);
  bench_take(&b, COORD_ABORT);
  bench_done(&b);

  large[WEIR_MAX_INTENT + 1] = 0;
  bench_new(&b, &plain, 1, 1, NULL);
  bench_send(&b, bench_event(COORD_START));
  bench_take(&b, COORD_TAKE_OVER);
  bench_send(&b, bench_of(COORD_OBSERVED, 0, 0, 0));
  bench_take(&b, COORD_GET_INTENT);
  bench_send(&b, bench_with(bench_of(COORD_INTENT, 0, 1, 1), large));
  expect_stop(&b, WEIR_E_INTERNAL);
  bench_done(&b);
  free(large);
}

static void test_all_descriptors_of_a_sink_must_fit_one_batch(void **state) {
  (void)state;
  bench b;
  const coord_sink five = {.sink_id = "five", .participants = 5, .committable = 1};
  char *large = base_calloc(WEIR_MAX_DESCRIPTOR + 1, 1, NULL);
  assert_non_null(large);
  memset(large, 'x', WEIR_MAX_DESCRIPTOR);
  bench_open(&b, &five, 1, 1);
  bench_tick(&b, 1000 * BENCH_MS);
  bench_seal(&b, 1, "p1", 1);
  for (uint32_t k = 1; k <= 5; k++) {
    bench_take(&b, COORD_PRE_COMMIT);
    bench_send(&b, bench_with(bench_of(COORD_PREPARED, 0, k, 1), large));
  }
  bench_stop(&b);
  bench_take(&b, COORD_ABORT);
  bench_none(&b);
  bench_done(&b);
  free(large);
}

static void test_a_seek_that_fails_is_tried_again(void **state) {
  (void)state;
  bench b;
  bench_open(&b, &console, 1, 1);
  bench_send(&b, failed_lane(0, WEIR_E_IO, WEIR_ERR_RETRIABLE));
  bench_stop(&b);
  bench_take(&b, COORD_ABORT);
  bench_send(&b, bench_of(COORD_ABORTED, COORD_NONE, 0, 1));
  bench_take(&b, COORD_PURGE);
  coord_event purged = bench_of(COORD_PURGED, 0, 1, 0);
  purged.generation = 1;
  bench_send(&b, purged);
  bench_take(&b, COORD_SEEK);
  coord_event sought = bench_of_lane(COORD_SOUGHT, 0, 0);
  sought.generation = 1;
  bench_send(&b, with_error(sought, WEIR_E_IO, WEIR_ERR_RETRIABLE));
  bench_none(&b);
  b.now = coord_wakeup(b.c);
  bench_tick(&b, 0);
  bench_take(&b, COORD_SEEK);
  bench_send(&b, with_error(sought, WEIR_E_CORRUPT, 0));
  expect_stop(&b, WEIR_E_CORRUPT);
  bench_done(&b);
}

static void test_failures_in_a_rewind_count_once_the_lane_was_sought(void **state) {
  (void)state;
  bench b;
  bench_open(&b, &console, 1, 2);
  bench_send(&b, failed_lane(0, WEIR_E_IO, WEIR_ERR_RETRIABLE));
  bench_send(&b, failed_lane(1, WEIR_E_IO, WEIR_ERR_RETRIABLE)); /* of the same attempt */
  bench_rewind(&b, 1);
  bench_send(&b,
             failed_lane(1, WEIR_E_IO, WEIR_ERR_RETRIABLE)); /* of the new generation */
  b.now = coord_wakeup(b.c);
  bench_tick(&b, 0);
  bench_take(&b, COORD_RESERVE);
  bench_send(&b, bench_of(COORD_RESERVED, COORD_NONE, 0, 2));
  assert_int_equal(bench_stop(&b), 1);
  assert_int_equal(bench_take(&b, COORD_ABORT)->attempt, 2);
  bench_done(&b);
}

static void test_answers_nobody_asked_for_are_refused_and_change_nothing(void **state) {
  (void)state;
  bench b;
  bench_new(&b, &plain, 1, 1, NULL);
  assert_int_equal(bench_try(&b, bench_of(COORD_OBSERVED, 0, 0, 0)), WEIR_E_INTERNAL);
  bench_send(&b, bench_event(COORD_START));
  assert_int_equal(bench_try(&b, bench_event(COORD_START)), WEIR_E_INTERNAL);
  bench_take(&b, COORD_TAKE_OVER);
  static const coord_event_type wrong[] = {
      COORD_RESERVED,  COORD_DECIDED,  COORD_ABORTED, COORD_BEGUN,
      COORD_SEALED,    COORD_PREPARED, COORD_PURGED,  COORD_ROLLED_BACK,
      COORD_COMMITTED, COORD_CLEANED,  COORD_INTENT};
  for (size_t i = 0; i < BASE_COUNT(wrong); i++) {
    assert_int_equal(bench_try(&b, bench_of(wrong[i], 0, 1, 9)), WEIR_E_INTERNAL);
    assert_string_equal(bench_phase(&b), "taking over");
  }
  assert_int_equal(bench_try(&b, bench_of(COORD_OBSERVED, 5, 0, 0)), WEIR_E_INTERNAL);
  assert_int_equal(bench_try(&b, bench_of(COORD_BEGUN, 0, 2, 1)), WEIR_E_INTERNAL);
  assert_int_equal(bench_try(&b, bench_of_lane(COORD_STOPPED, 1, 0)), WEIR_E_INTERNAL);
  bench_none(&b);
  bench_send(&b, bench_of(COORD_OBSERVED, 0, 0, 0));
  bench_reserve(&b, 1);
  assert_int_equal(bench_try(&b, bench_of_lane(COORD_BARRIER_SENT, 0, 1)),
                   WEIR_E_INTERNAL);
  bench_tick(&b, 1000 * BENCH_MS);
  bench_send(&b, bench_of_lane(COORD_BARRIER_SENT, 0, 1));
  assert_int_equal(bench_try(&b, bench_of_lane(COORD_BARRIER_SENT, 0, 1)),
                   WEIR_E_INTERNAL);
  bench_done(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_abort_is_durable_before_any_rollback),
      cmocka_unit_test(test_rollback_reaches_every_committable_sink_also_unbegun),
      cmocka_unit_test(test_cleaners_are_asked_8_sinks_at_a_time),
      cmocka_unit_test(test_rewind_goes_to_the_last_decided_position),
      cmocka_unit_test(test_an_abort_says_what_an_ephemeral_lane_loses),
      cmocka_unit_test(test_what_is_lost_adds_up_and_is_decided_too),
      cmocka_unit_test(test_rewind_makes_ended_lanes_live),
      cmocka_unit_test(test_backoff_grows_and_is_bounded),
      cmocka_unit_test(test_five_aborts_for_one_cause_stop),
      cmocka_unit_test(test_a_target_that_is_away_is_waited_for),
      cmocka_unit_test(test_five_aborts_for_one_cause_stop_also_in_turn),
      cmocka_unit_test(test_a_decision_ends_the_row_of_aborts),
      cmocka_unit_test(test_bad_data_stops_after_the_rollback),
      cmocka_unit_test(test_an_unflagged_error_stops_after_the_rollback),
      cmocka_unit_test(test_a_failed_rollback_stops_at_once),
      cmocka_unit_test(test_a_store_write_in_doubt_stops_and_touches_nothing),
      cmocka_unit_test(test_fenced_stops_at_once_without_rollback),
      cmocka_unit_test(test_a_failure_while_deciding_aborts_the_next_attempt),
      cmocka_unit_test(test_the_checkpoint_timeout_runs_from_all_sealed),
      cmocka_unit_test(test_an_intent_that_fails_passes_the_number_over),
      cmocka_unit_test(test_bounds_of_intents_and_descriptors),
      cmocka_unit_test(test_all_descriptors_of_a_sink_must_fit_one_batch),
      cmocka_unit_test(test_a_seek_that_fails_is_tried_again),
      cmocka_unit_test(test_failures_in_a_rewind_count_once_the_lane_was_sought),
      cmocka_unit_test(test_answers_nobody_asked_for_are_refused_and_change_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
