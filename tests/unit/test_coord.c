/* SPDX-License-Identifier: Apache-2.0 */
/* The coordinator's way without failures: opening, checkpoints, decisions, ends of lanes, draining. */
#include <stdio.h>

#include "support/coord_bench.h"

static const coord_sink lake = {
    .sink_id = "lake", .participants = 2, .committable = 1, .overlap = 1};
static const coord_sink plain = {.sink_id = "plain", .participants = 1, .committable = 1};
static const coord_sink console = {.sink_id = "console", .participants = 1};

static coord_event ended(uint32_t lane, uint64_t generation, const char *position) {
  coord_event e = bench_with(bench_of_lane(COORD_LANE_ENDED, lane, 0), position);
  e.generation = generation;
  return e;
}

static void seal_all(bench *b, uint64_t attempt, uint64_t rows) {
  for (uint32_t i = 0; i < b->n_sinks; i++) {
    for (uint32_t k = 1; k <= b->sinks[i].participants; k++) {
      coord_event e = bench_of(COORD_SEALED, i, k, attempt);
      e.rows = rows;
      bench_send(b, e);
    }
  }
}

static void roll_back_all(bench *b, uint64_t attempt) {
  for (uint32_t i = 0; i < b->n_sinks; i++) {
    for (uint32_t k = 1; b->sinks[i].committable && k <= b->sinks[i].participants; k++) {
      assert_int_equal(bench_take(b, COORD_ROLLBACK)->attempt, attempt);
    }
  }
  for (uint32_t i = 0; i < b->n_sinks; i++) {
    for (uint32_t k = 1; b->sinks[i].committable && k <= b->sinks[i].participants; k++) {
      bench_send(b, bench_of(COORD_ROLLED_BACK, i, k, attempt));
    }
  }
}

/* The attempt that took nothing is withdrawn: Abort, marked clean, rolled back. */
static void withdraw(bench *b, uint64_t attempt) {
  assert_int_equal(bench_take(b, COORD_ABORT)->attempt, attempt);
  bench_none(b);
  bench_send(b, bench_of(COORD_ABORTED, COORD_NONE, 0, attempt));
  for (uint32_t i = 0; i < b->n_sinks; i++) {
    if (b->sinks[i].committable) bench_take(b, COORD_MARK_CLEANED);
  }
  roll_back_all(b, attempt);
}

static void test_an_epoch_from_start_to_told(void **state) {
  (void)state;
  bench b;
  const coord_sink sinks[] = {lake, console};
  bench_open(&b, sinks, 2, 2);
  bench_none(&b);
  assert_int_equal(coord_wakeup(b.c), 1000 * BENCH_MS);
  bench_tick(&b, 999 * BENCH_MS);
  bench_none(&b);
  bench_tick(&b, BENCH_MS);
  bench_seal(&b, 1, "p1", 5);
  bench_prepare(&b, 1, true);
  const coord_command *decide = bench_take(&b, COORD_DECIDE);
  const weir_store_decision *d = decide->decision;
  assert_int_equal(d->attempt, 1);
  assert_int_equal(d->token, 7);
  assert_int_equal(d->next_attempt, 2);
  assert_int_equal(d->n_sinks, 1); /* the weaker sink is not in it */
  assert_string_equal(d->sinks[0].sink_id, "lake");
  assert_int_equal(d->sinks[0].rows, 10);
  assert_int_equal(d->sinks[0].bytes, 80);
  assert_int_equal(d->sinks[0].has_rows, 1);
  assert_int_equal(d->sinks[0].cursor.checkpoint, 1);
  assert_int_equal(d->sinks[0].cursor.token, 7);
  assert_int_equal(d->n_descriptors, 2);
  assert_memory_equal(d->descriptors[1].data, "lake/2/1", 8);
  assert_int_equal(d->n_intents, 2);
  assert_int_equal(d->n_positions, 2);
  assert_string_equal(d->positions[1].source, "clicks");
  assert_memory_equal(d->positions[1].data, "p1", 2);
  const weir_commit_entry entries[] = {{1, 1, (const uint8_t *)"lake/1/1", 8},
                                       {2, 1, (const uint8_t *)"lake/2/1", 8}};
  uint8_t digest[WEIR_DIGEST_SIZE];
  assert_int_equal(coord_digest("lake", 1, entries, 2, digest, NULL), WEIR_OK);
  assert_memory_equal(digest, d->sinks[0].cursor.digest, sizeof(digest));
  bench_none(&b);

  bench_send(&b, bench_of(COORD_DECIDED, COORD_NONE, 0, 1));
  const coord_command *commit = bench_take(&b, COORD_COMMIT);
  assert_int_equal(commit->repeat, 0);
  assert_int_equal(commit->batch->n_attempts, 1);
  assert_int_equal(commit->batch->predecessor.checkpoint, 0);
  assert_int_equal(commit->batch->attempts[0].n_entries, 2);
  bench_begin_all(&b, 2); /* overlap: opens while the commit is on its way */
  bench_none(&b);
  assert_int_equal(coord_owed(b.c, 0), 1);
  bench_land(&b, 0);
  assert_int_equal(bench_take(&b, COORD_SEEN)->cursor.checkpoint, 1);
  for (uint32_t i = 0; i < 2; i++) {
    const coord_command *tell = bench_take(&b, COORD_TELL_LANE);
    assert_int_equal(tell->lane, i);
    assert_int_equal(tell->attempt, 1);
    assert_memory_equal(tell->position, "p1", 2);
  }
  bench_none(&b);
  assert_int_equal(coord_owed(b.c, 0), 0);
  bench_done(&b);
}

static void test_overlap_prepares_but_does_not_decide_before_the_cursor(void **state) {
  (void)state;
  bench b;
  bench_open(&b, &lake, 1, 1);
  bench_decide(&b, 1, "p1");
  bench_take(&b, COORD_COMMIT);
  bench_begin_all(&b, 2);
  bench_tick(&b, 1000 * BENCH_MS);
  bench_seal(&b, 2, "p2", 5);
  bench_prepare(&b, 2, true);
  bench_none(&b); /* decision 2 waits for cursor 1 */
  bench_land(&b, 0);
  bench_take(&b, COORD_SEEN);
  bench_take(&b, COORD_DECIDE);
  bench_take(&b, COORD_TELL_LANE);
  bench_none(&b);
  bench_done(&b);
}

static void test_without_overlap_pre_commit_waits_for_the_commit(void **state) {
  (void)state;
  bench b;
  bench_open(&b, &plain, 1, 1);
  bench_decide(&b, 1, "p1");
  bench_take(&b, COORD_COMMIT);
  bench_begin_all(&b, 2);
  bench_tick(&b, 1000 * BENCH_MS);
  bench_seal(&b, 2, "p2", 5);
  bench_none(&b);
  /* The timeout does not run while only a target is waited for. */
  bench_tick(&b, 600000 * BENCH_MS);
  bench_none(&b);
  bench_land(&b, 0);
  bench_take(&b, COORD_SEEN);
  bench_prepare(&b, 2, true);
  bench_take(&b, COORD_DECIDE);
  bench_done(&b);
}

static void test_nothing_moved_decides_nothing(void **state) {
  (void)state;
  bench b;
  bench_open(&b, &lake, 1, 1);
  bench_decide(&b, 1, "p1");
  bench_take(&b, COORD_COMMIT);
  bench_begin_all(&b, 2);
  bench_land(&b, 0);
  bench_skip(&b);
  for (int round = 0; round < 3; round++) {
    bench_tick(&b, 1000 * BENCH_MS);
    bench_seal(&b, 2, "p1", 0);
    assert_int_equal(bench_take(&b, COORD_OPEN_GATES)->attempt, 2);
    bench_none(&b);
  }
  /* A position alone is enough. */
  bench_tick(&b, 1000 * BENCH_MS);
  bench_seal(&b, 2, "p2", 0);
  bench_prepare(&b, 2, false);
  const coord_command *decide = bench_take(&b, COORD_DECIDE);
  assert_int_equal(decide->decision->sinks[0].has_rows, 0);
  bench_send(&b, bench_of(COORD_DECIDED, COORD_NONE, 0, 2));
  bench_begin_all(&b, 3); /* no commit: nothing but empties owed */
  bench_none(&b);
  assert_int_equal(coord_owed(b.c, 0), 1);
  bench_done(&b);
}

static void test_empties_ride_in_the_next_batch(void **state) {
  (void)state;
  bench b;
  bench_open(&b, &lake, 1, 1);
  char position[16];
  for (uint64_t n = 1; n <= 3; n++) {
    snprintf(position, sizeof(position), "p%d", (int)n);
    bench_tick(&b, 1000 * BENCH_MS);
    bench_seal(&b, n, position, 0);
    bench_prepare(&b, n, false);
    bench_take(&b, COORD_DECIDE);
    bench_send(&b, bench_of(COORD_DECIDED, COORD_NONE, 0, n));
    bench_begin_all(&b, n + 1);
  }
  bench_decide(&b, 4, "p4");
  const coord_command *commit = bench_take(&b, COORD_COMMIT);
  assert_int_equal(commit->batch->n_attempts, 4);
  assert_int_equal(commit->batch->predecessor.checkpoint, 0);
  assert_int_equal(commit->batch->attempts[0].entries[0].present, 0);
  assert_int_equal(commit->batch->attempts[3].entries[0].present, 1);
  bench_done(&b);
}

static void test_1024_empties_get_a_commit(void **state) {
  (void)state;
  bench b;
  bench_open(&b, &plain, 1, 1);
  char position[16];
  for (uint64_t n = 1; n <= 1024; n++) {
    b.n_log = b.read = 0;
    snprintf(position, sizeof(position), "p%d", (int)n);
    bench_tick(&b, 1000 * BENCH_MS);
    bench_seal(&b, n, position, 0);
    bench_prepare(&b, n, false);
    bench_take(&b, COORD_DECIDE);
    bench_send(&b, bench_of(COORD_DECIDED, COORD_NONE, 0, n));
    if (n == 1024)
      assert_int_equal(bench_take(&b, COORD_COMMIT)->batch->n_attempts, 1024);
    bench_begin_all(&b, n + 1);
    bench_none(&b);
  }
  bench_done(&b);
}

static void test_commit_interval_gathers(void **state) {
  (void)state;
  bench b;
  coord_sink slow = lake;
  slow.commit_interval_ns = 2500 * BENCH_MS;
  bench_open(&b, &slow, 1, 1);
  bench_decide(&b, 1, "p1");
  bench_begin_all(&b, 2);
  bench_decide(&b, 2, "p2");
  bench_begin_all(&b, 3);
  bench_none(&b);
  assert_int_equal(coord_wakeup(b.c), 3000 * BENCH_MS); /* the checkpoint; then 3500 */
  bench_decide(&b, 3, "p3");
  bench_begin_all(&b, 4);
  assert_int_equal(coord_wakeup(b.c), 3500 * BENCH_MS);
  bench_tick(&b, 500 * BENCH_MS);
  const coord_command *commit = bench_take(&b, COORD_COMMIT);
  assert_int_equal(commit->batch->n_attempts, 3);
  bench_none(&b);
  /* Overdue now: decision 4 waits for the answer. */
  bench_tick(&b, 500 * BENCH_MS);
  bench_seal(&b, 4, "p4", 1);
  bench_prepare(&b, 4, true);
  bench_none(&b);
  bench_land(&b, 0);
  assert_int_equal(bench_take(&b, COORD_SEEN)->cursor.checkpoint, 3);
  bench_take(&b, COORD_DECIDE);
  assert_int_equal(bench_take(&b, COORD_TELL_LANE)->attempt, 3);
  bench_done(&b);
}

static void test_lanes_that_end_finish_the_run(void **state) {
  (void)state;
  bench b;
  bench_open(&b, &lake, 1, 2);
  bench_send(&b, ended(0, 0, "e0"));
  seal_all(&b, 1, 3); /* before the second lane's event comes */
  bench_none(&b);
  bench_send(&b, ended(1, 0, "e1"));
  for (uint32_t k = 1; k <= 2; k++) {
    assert_int_equal(bench_take(&b, COORD_PRE_COMMIT)->next, 0); /* nothing follows */
    bench_send(&b, bench_with(bench_of(COORD_PREPARED, 0, k, 1), "d"));
  }
  const coord_command *decide = bench_take(&b, COORD_DECIDE);
  assert_int_equal(decide->decision->next_attempt, 0);
  assert_int_equal(decide->decision->n_intents, 0);
  assert_memory_equal(decide->decision->positions[0].data, "e0", 2);
  bench_send(&b, bench_of(COORD_DECIDED, COORD_NONE, 0, 1));
  bench_take(&b, COORD_COMMIT);
  bench_none(&b);
  bench_land(&b, 0);
  bench_take(&b, COORD_SEEN);
  bench_take(&b, COORD_TELL_LANE);
  bench_take(&b, COORD_TELL_LANE);
  assert_null(bench_take(&b, COORD_STOP)->error);
  bench_done(&b);
}

static void test_an_end_counts_for_the_first_attempt_without_a_barrier(void **state) {
  (void)state;
  bench b;
  bench_open(&b, &lake, 1, 2);
  bench_tick(&b, 1000 * BENCH_MS);
  bench_take(&b, COORD_SEND_BARRIERS);
  bench_send(&b, bench_with(bench_of_lane(COORD_BARRIER_SENT, 0, 1), "b0"));
  bench_send(&b, ended(0, 0, "e0")); /* behind its barrier: of attempt 2 */
  bench_send(&b, ended(1, 0, "e1")); /* instead of a barrier: of attempt 1 */
  seal_all(&b, 1, 1);
  bench_prepare(&b, 1, true);
  const coord_command *decide = bench_take(&b, COORD_DECIDE);
  assert_memory_equal(decide->decision->positions[0].data, "b0", 2);
  assert_memory_equal(decide->decision->positions[1].data, "e1", 2);
  assert_int_equal(decide->decision->next_attempt, 2);
  bench_send(&b, bench_of(COORD_DECIDED, COORD_NONE, 0, 1));
  bench_take(&b, COORD_COMMIT);
  bench_begin_all(&b, 2);
  bench_land(&b, 0);
  bench_skip(&b);
  seal_all(&b, 2, 1); /* by the ends alone */
  bench_prepare(&b, 2, true);
  decide = bench_take(&b, COORD_DECIDE);
  assert_memory_equal(decide->decision->positions[0].data, "e0", 2);
  assert_memory_equal(decide->decision->positions[1].data, "e1", 2); /* kept */
  assert_int_equal(decide->decision->next_attempt, 0);
  bench_done(&b);
}

static void test_an_ended_lane_does_not_hold_up_the_others(void **state) {
  (void)state;
  bench b;
  bench_open(&b, &plain, 1, 2);
  bench_send(&b, ended(0, 0, "e0"));
  for (uint64_t n = 1; n <= 2; n++) {
    bench_tick(&b, 1000 * BENCH_MS);
    assert_int_equal(bench_take(&b, COORD_SEND_BARRIERS)->attempt, n);
    bench_send(&b,
               bench_with(bench_of_lane(COORD_BARRIER_SENT, 1, n), n == 1 ? "p1" : "p2"));
    seal_all(&b, n, 1);
    bench_prepare(&b, n, true);
    bench_take(&b, COORD_DECIDE);
    bench_send(&b, bench_of(COORD_DECIDED, COORD_NONE, 0, n));
    bench_take(&b, COORD_COMMIT);
    bench_begin_all(&b, n + 1);
    bench_land(&b, 0);
    bench_skip(&b);
  }
  bench_done(&b);
}

static void test_a_run_without_news_touches_no_target(void **state) {
  (void)state;
  bench b;
  bench_open(&b, &lake, 1, 1);
  coord_event e = bench_of_lane(COORD_LANE_ENDED, 0, 0);
  bench_send(&b, e); /* no position, as decided: none */
  seal_all(&b, 1, 0);
  withdraw(&b, 1);
  assert_null(bench_take(&b, COORD_STOP)->error);
  bench_done(&b);
}

static void test_drain_asks_for_one_last_checkpoint(void **state) {
  (void)state;
  bench b;
  bench_open(&b, &lake, 1, 1);
  bench_send(&b, bench_event(COORD_DRAIN));
  bench_take(&b, COORD_SEND_BARRIERS);
  bench_none(&b);
  bench_send(&b, ended(0, 0, "e0"));
  seal_all(&b, 1, 4);
  bench_prepare(&b, 1, true);
  assert_int_equal(bench_take(&b, COORD_DECIDE)->next, 0);
  bench_send(&b, bench_of(COORD_DECIDED, COORD_NONE, 0, 1));
  bench_take(&b, COORD_COMMIT);
  bench_none(&b);
  bench_land(&b, 0);
  bench_take(&b, COORD_SEEN);
  bench_take(&b, COORD_TELL_LANE);
  assert_null(bench_take(&b, COORD_STOP)->error);
  bench_done(&b);
}

static void test_the_end_publishes_what_was_gathered(void **state) {
  (void)state;
  bench b;
  coord_sink slow = lake;
  slow.commit_interval_ns = 60000 * BENCH_MS;
  bench_open(&b, &slow, 1, 1);
  bench_decide(&b, 1, "p1");
  bench_begin_all(&b, 2);
  bench_send(&b, ended(0, 0, "p1"));
  seal_all(&b, 2, 0);
  withdraw(&b, 2);
  assert_int_equal(bench_take(&b, COORD_COMMIT)->batch->n_attempts, 1);
  bench_none(&b);
  bench_land(&b, 0);
  bench_take(&b, COORD_SEEN);
  bench_take(&b, COORD_TELL_LANE);
  assert_null(bench_take(&b, COORD_STOP)->error);
  bench_done(&b);
}

static void test_empties_are_left_at_the_end(void **state) {
  (void)state;
  bench b;
  bench_open(&b, &lake, 1, 1);
  bench_send(&b, ended(0, 0, "e0"));
  seal_all(&b, 1, 0);
  bench_prepare(&b, 1, false);
  bench_take(&b, COORD_DECIDE);
  bench_send(&b, bench_of(COORD_DECIDED, COORD_NONE, 0, 1));
  bench_take(&b, COORD_TELL_LANE);
  assert_null(bench_take(&b, COORD_STOP)->error);
  assert_int_equal(coord_owed(b.c, 0), 1);
  bench_done(&b);
}

static void test_a_checkpoint_that_was_asked_for(void **state) {
  (void)state;
  bench b;
  bench_open(&b, &plain, 1, 1);
  bench_send(&b, bench_event(COORD_CHECKPOINT));
  /* asked again while barriers are under way: one more round follows */
  bench_send(&b, bench_event(COORD_CHECKPOINT));
  bench_seal(&b, 1, "p1", 1);
  bench_prepare(&b, 1, true);
  bench_take(&b, COORD_DECIDE);
  bench_send(&b, bench_of(COORD_DECIDED, COORD_NONE, 0, 1));
  bench_take(&b, COORD_COMMIT);
  bench_begin_all(&b, 2);
  bench_take(&b, COORD_SEND_BARRIERS);
  bench_none(&b);
  bench_done(&b);
}

static void test_pre_commit_and_commit_go_out_8_sinks_at_a_time(void **state) {
  (void)state;
  bench b;
  char names[12][16];
  coord_sink sinks[12];
  for (int i = 0; i < 12; i++) {
    snprintf(names[i], sizeof(names[i]), "s%d", i);
    sinks[i] =
        (coord_sink){.sink_id = names[i], .participants = 1, .committable = i != 3};
  }
  bench_new(&b, sinks, 12, 1, NULL);
  bench_send(&b, bench_event(COORD_START));
  for (int i = 0; i < 8; i++) bench_take(&b, COORD_TAKE_OVER);
  bench_none(&b);
  for (uint32_t i = 0; i < 12; i++) {
    if (i != 3) bench_send(&b, bench_of(COORD_OBSERVED, i, 0, 0));
    if (i < 3) bench_take(&b, COORD_TAKE_OVER);
  }
  bench_reserve(&b, 1);
  bench_tick(&b, 1000 * BENCH_MS);
  bench_seal(&b, 1, "p1", 1);
  for (int i = 0; i < 8; i++) bench_take(&b, COORD_PRE_COMMIT);
  bench_none(&b);
  for (uint32_t i = 0; i < 12; i++) {
    bench_send(&b, bench_with(bench_of(COORD_PREPARED, i, 1, 1), "d"));
    if (i < 4) bench_take(&b, COORD_PRE_COMMIT);
  }
  bench_take(&b, COORD_DECIDE);
  bench_send(&b, bench_of(COORD_DECIDED, COORD_NONE, 0, 1));
  for (int i = 0; i < 8; i++) bench_take(&b, COORD_COMMIT);
  bench_begin_all(&b, 2);
  bench_land(&b, 0);
  bench_take(&b, COORD_SEEN);
  bench_take(&b, COORD_COMMIT);
  bench_done(&b);
}

static void test_rows_of_lanes_are_carried(void **state) {
  (void)state;
  bench b;
  bench_open(&b, &plain, 1, 1);
  bench_tick(&b, 1000 * BENCH_MS);
  bench_take(&b, COORD_SEND_BARRIERS);
  coord_event e = bench_with(bench_of_lane(COORD_BARRIER_SENT, 0, 1), "p1");
  e.rows = 77;
  bench_send(&b, e);
  seal_all(&b, 1, 77);
  bench_prepare(&b, 1, true);
  assert_int_equal(bench_take(&b, COORD_DECIDE)->decision->positions[0].rows, 77);
  bench_send(&b, bench_of(COORD_DECIDED, COORD_NONE, 0, 1));
  const uint8_t *data = NULL;
  size_t size = 0;
  assert_int_equal(coord_position(b.c, 0, &data, &size), 1);
  assert_int_equal(size, 2);
  assert_memory_equal(data, "p1", 2);
  bench_done(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_an_epoch_from_start_to_told),
      cmocka_unit_test(test_overlap_prepares_but_does_not_decide_before_the_cursor),
      cmocka_unit_test(test_without_overlap_pre_commit_waits_for_the_commit),
      cmocka_unit_test(test_nothing_moved_decides_nothing),
      cmocka_unit_test(test_empties_ride_in_the_next_batch),
      cmocka_unit_test(test_1024_empties_get_a_commit),
      cmocka_unit_test(test_commit_interval_gathers),
      cmocka_unit_test(test_lanes_that_end_finish_the_run),
      cmocka_unit_test(test_an_end_counts_for_the_first_attempt_without_a_barrier),
      cmocka_unit_test(test_an_ended_lane_does_not_hold_up_the_others),
      cmocka_unit_test(test_a_run_without_news_touches_no_target),
      cmocka_unit_test(test_drain_asks_for_one_last_checkpoint),
      cmocka_unit_test(test_the_end_publishes_what_was_gathered),
      cmocka_unit_test(test_empties_are_left_at_the_end),
      cmocka_unit_test(test_a_checkpoint_that_was_asked_for),
      cmocka_unit_test(test_pre_commit_and_commit_go_out_8_sinks_at_a_time),
      cmocka_unit_test(test_rows_of_lanes_are_carried),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
