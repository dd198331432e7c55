/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of targets to decided attempts, the digest, and the tables of states. */
#include <stdio.h>

#include "coord/state.h"
#include "support/coord_bench.h"

static const coord_sink lake = {
    .sink_id = "lake", .participants = 1, .committable = 1, .overlap = 1};

static const weir_commit_batch *open_with_commit(bench *b) {
  bench_open(b, &lake, 1, 1);
  bench_decide(b, 1, "p1");
  const weir_commit_batch *batch = bench_take(b, COORD_COMMIT)->batch;
  bench_begin_all(b, 2);
  bench_none(b);
  return batch;
}

static void answer(bench *b, uint32_t sink, weir_status code, uint32_t flags) {
  coord_event e = bench_of(COORD_COMMITTED, sink, 0, 0);
  e.error = bench_error(code, flags);
  bench_send(b, e);
}

static void same_batch_again(weir_status code, uint32_t flags) {
  bench b;
  const weir_commit_batch *sent = open_with_commit(&b);
  static const int64_t waits[] = {100, 200, 400, 800, 1000, 1000};
  for (size_t i = 0; i < BASE_COUNT(waits); i++) {
    answer(&b, 0, code, flags);
    bench_none(&b);
    bench_tick(&b, waits[i] * BENCH_MS - 1);
    if (b.read < b.n_log && b.log[b.read].type == COORD_SEND_BARRIERS) b.read++;
    bench_none(&b);
    bench_tick(&b, 1);
    if (b.read < b.n_log && b.log[b.read].type == COORD_SEND_BARRIERS) b.read++;
    const coord_command *again = bench_take(&b, COORD_COMMIT);
    assert_int_equal(again->repeat, 1);
    assert_int_equal(again->batch->n_attempts, 1);
    assert_int_equal(again->batch->attempts[0].cursor.checkpoint, 1);
    assert_ptr_equal(again->batch, sent);
  }
  bench_land(&b, 0);
  bench_take(&b, COORD_SEEN);
  bench_take(&b, COORD_TELL_LANE);
  bench_done(&b);
}

static void test_retriable_sends_the_same_batch_again_with_backoff(void **state) {
  (void)state;
  same_batch_again(WEIR_E_IO, WEIR_ERR_RETRIABLE);
}

static void test_in_doubt_sends_the_same_batch_again(void **state) {
  (void)state;
  same_batch_again(WEIR_E_IO, WEIR_ERR_IN_DOUBT);
}

static void test_want_of_memory_is_no_refusal(void **state) {
  (void)state;
  same_batch_again(WEIR_E_NOMEM, 0);
}

/* What was decided meanwhile does not get into a batch that is in doubt. */
static void test_a_batch_in_doubt_is_frozen(void **state) {
  (void)state;
  bench b;
  coord_sink slow = lake;
  slow.commit_interval_ns = 1500 * BENCH_MS;
  bench_open(&b, &slow, 1, 1);
  bench_decide(&b, 1, "p1"); /* at 1 s */
  bench_begin_all(&b, 2);
  bench_decide(&b, 2, "p2"); /* at 2 s */
  bench_begin_all(&b, 3);
  bench_tick(&b, 500 * BENCH_MS);
  assert_int_equal(bench_take(&b, COORD_COMMIT)->batch->n_attempts, 2);
  answer(&b, 0, WEIR_E_TIMEOUT, WEIR_ERR_IN_DOUBT);
  bench_tick(&b, 100 * BENCH_MS);
  const coord_command *again = bench_take(&b, COORD_COMMIT);
  assert_int_equal(again->batch->n_attempts, 2);
  assert_int_equal(again->repeat, 1);
  bench_done(&b);
}

/* Two histories of copied state give an attempt without rows the same cursor, which would hide that
 * what went out before it differs. The lane is told of it all the same. */
static void test_a_batch_ends_with_rows(void **state) {
  (void)state;
  bench b;
  coord_sink slow = lake;
  slow.commit_interval_ns = 1500 * BENCH_MS;
  bench_open(&b, &slow, 1, 1);
  bench_decide(&b, 1, "p1");
  bench_begin_all(&b, 2);
  bench_tick(&b, 1000 * BENCH_MS);
  bench_seal(&b, 2, "p2", 0);
  bench_prepare(&b, 2, false);
  bench_take(&b, COORD_DECIDE);
  bench_send(&b, bench_of(COORD_DECIDED, COORD_NONE, 0, 2));
  bench_begin_all(&b, 3);
  bench_tick(&b, 500 * BENCH_MS);
  const weir_commit_batch *batch = bench_take(&b, COORD_COMMIT)->batch;
  assert_int_equal(batch->n_attempts, 1);
  assert_int_equal(batch->attempts[0].cursor.checkpoint, 1);
  bench_land(&b, 0);
  bench_take(&b, COORD_SEEN);
  assert_int_equal(bench_take(&b, COORD_TELL_LANE)->attempt, 2);
  bench_none(&b);
  bench_done(&b);
}

static void test_a_cursor_other_than_the_batch_says_is_a_conflict(void **state) {
  (void)state;
  bench b;
  open_with_commit(&b);
  coord_event e = bench_of(COORD_COMMITTED, 0, 0, 0);
  e.cursor = (weir_cursor){.checkpoint = 1, .token = 7};
  bench_send(&b, e);
  const coord_command *stop = bench_take(&b, COORD_STOP);
  assert_int_equal(stop->error->code, WEIR_E_CONFLICT);
  assert_non_null(strstr(stop->error->message, "weir status"));
  bench_none(&b);
  bench_done(&b);
}

static void refused(weir_status code, uint32_t flags, weir_status expected) {
  bench b;
  open_with_commit(&b);
  answer(&b, 0, code, flags);
  const coord_command *stop = bench_take(&b, COORD_STOP); /* no rollback of attempt 2 */
  assert_int_equal(stop->error->code, expected);
  if (expected == WEIR_E_CONFLICT)
    assert_non_null(strstr(stop->error->message, "weir status"));
  assert_non_null(strstr(stop->error->message, "lake"));
  bench_none(&b);
  assert_int_equal(coord_owed(b.c, 0), 1); /* it stays decided */
  bench_done(&b);
}

static void test_a_refusal_for_good_stops(void **state) {
  (void)state;
  refused(WEIR_E_FENCED, 0, WEIR_E_FENCED);
  refused(WEIR_E_FENCED, WEIR_ERR_RETRIABLE, WEIR_E_FENCED);
  refused(WEIR_E_CONFLICT, 0, WEIR_E_CONFLICT);
  refused(WEIR_E_BAD_DATA, WEIR_ERR_BAD_DATA, WEIR_E_CONFLICT);
  refused(WEIR_E_IO, 0, WEIR_E_CONFLICT);
}

static void test_commits_in_flight_are_awaited_when_one_is_refused(void **state) {
  (void)state;
  bench b;
  const coord_sink sinks[] = {
      lake,
      {.sink_id = "b", .participants = 1, .committable = 1, .overlap = 1},
      {.sink_id = "c", .participants = 1, .committable = 1, .overlap = 1}};
  bench_open(&b, sinks, 3, 1);
  bench_decide(&b, 1, "p1");
  for (int i = 0; i < 3; i++) bench_take(&b, COORD_COMMIT);
  bench_begin_all(&b, 2);
  answer(&b, 1, WEIR_E_CONFLICT, 0);
  bench_none(&b);
  bench_tick(&b, 1000 * BENCH_MS); /* no barrier, nothing new */
  bench_none(&b);
  bench_land(&b, 0);
  bench_take(&b, COORD_SEEN);
  bench_none(&b);
  answer(&b, 2, WEIR_E_IO, WEIR_ERR_RETRIABLE); /* not sent again */
  assert_int_equal(bench_take(&b, COORD_STOP)->error->code, WEIR_E_CONFLICT);
  bench_none(&b);
  bench_done(&b);
}

static void test_a_lane_is_told_only_when_every_target_has_it(void **state) {
  (void)state;
  bench b;
  const coord_sink sinks[] = {
      lake, {.sink_id = "b", .participants = 1, .committable = 1, .overlap = 1}};
  bench_open(&b, sinks, 2, 1);
  bench_decide(&b, 1, "p1");
  bench_skip(&b);
  bench_send(&b, bench_of(COORD_BEGUN, 0, 1, 2));
  bench_land(&b, 1);
  bench_take(&b, COORD_SEEN);
  bench_none(&b);
  bench_land(&b, 0);
  bench_take(&b, COORD_SEEN);
  bench_take(&b, COORD_TELL_LANE);
  bench_none(&b);
  bench_done(&b);
}

static void test_the_digest_tells_lists_apart(void **state) {
  (void)state;
  const uint8_t ab[] = "ab", a[] = "a", b[] = "b";
  const weir_commit_entry lists[][2] = {
      {{1, 1, ab, 2}, {2, 1, ab, 0}}, {{1, 1, a, 1}, {2, 1, b, 1}},
      {{1, 1, ab, 0}, {2, 1, ab, 2}}, {{1, 0, NULL, 0}, {2, 1, ab, 2}},
      {{1, 1, ab, 2}, {3, 1, ab, 0}}, {{1, 1, b, 1}, {2, 1, a, 1}},
  };
  uint8_t digests[BASE_COUNT(lists) + 3][WEIR_DIGEST_SIZE];
  for (size_t i = 0; i < BASE_COUNT(lists); i++) {
    assert_int_equal(coord_digest("s", 1, lists[i], 2, digests[i], NULL), WEIR_OK);
  }
  size_t n = BASE_COUNT(lists);
  assert_int_equal(coord_digest("s", 2, lists[0], 2, digests[n++], NULL), WEIR_OK);
  assert_int_equal(coord_digest("t", 1, lists[0], 2, digests[n++], NULL), WEIR_OK);
  assert_int_equal(coord_digest("s", 1, lists[0], 1, digests[n++], NULL), WEIR_OK);
  for (size_t i = 0; i < n; i++) {
    for (size_t k = 0; k < i; k++) assert_memory_not_equal(digests[i], digests[k], 32);
  }
  /* Frozen: stored histories depend on it. */
  char hex[65];
  weir_hex_encode(digests[0], 32, hex);
  assert_string_equal(hex,
                      "e731667b75820c7a25cb5fedaa8a474d17375414a31ab9efe89e822253742a1a");
}

/* Every pair of phases: the legal moves are these and no others. */
static void test_every_move_of_the_phases(void **state) {
  (void)state;
  static const coord_phase legal[][2] = {
      {PHASE_NEW, PHASE_TAKING_OVER},
      {PHASE_TAKING_OVER, PHASE_PUBLISHING},
      {PHASE_PUBLISHING, PHASE_RESOLVING},
      {PHASE_RESOLVING, PHASE_NAMING},
      {PHASE_RESOLVING, PHASE_FINISHING},
      {PHASE_NAMING, PHASE_RESERVING},
      {PHASE_NAMING, PHASE_BACKING_OFF},
      {PHASE_RESERVING, PHASE_BEGINNING},
      {PHASE_RESERVING, PHASE_STOPPING_LANES},
      {PHASE_BEGINNING, PHASE_OPEN},
      {PHASE_BEGINNING, PHASE_STOPPING_LANES},
      {PHASE_OPEN, PHASE_SEALING},
      {PHASE_OPEN, PHASE_PREPARING},
      {PHASE_OPEN, PHASE_STOPPING_LANES},
      {PHASE_OPEN, PHASE_ABORTING},
      {PHASE_SEALING, PHASE_OPEN},
      {PHASE_SEALING, PHASE_PREPARING},
      {PHASE_SEALING, PHASE_STOPPING_LANES},
      {PHASE_SEALING, PHASE_ABORTING},
      {PHASE_PREPARING, PHASE_DECIDING},
      {PHASE_PREPARING, PHASE_STOPPING_LANES},
      {PHASE_DECIDING, PHASE_BEGINNING},
      {PHASE_DECIDING, PHASE_FINISHING},
      {PHASE_DECIDING, PHASE_STOPPING_LANES},
      {PHASE_ABORTING, PHASE_ROLLING_BACK},
      {PHASE_ROLLING_BACK, PHASE_PURGING},
      {PHASE_ROLLING_BACK, PHASE_FINISHING},
      {PHASE_STOPPING_LANES, PHASE_ABORTING},
      {PHASE_PURGING, PHASE_SEEKING},
      {PHASE_SEEKING, PHASE_BACKING_OFF},
      {PHASE_BACKING_OFF, PHASE_NAMING},
  };
  for (int from = 0; from <= PHASE_COUNT; from++) {
    for (int to = 0; to <= PHASE_COUNT; to++) {
      bool expected = false;
      for (size_t i = 0; i < BASE_COUNT(legal); i++) {
        if ((int)legal[i][0] == from && (int)legal[i][1] == to) expected = true;
      }
      bool ends = to == PHASE_STOPPED || (to == PHASE_HALTING && from != PHASE_HALTING);
      if (from < PHASE_STOPPED && ends) expected = true;
      if (coord_may((coord_phase)from, (coord_phase)to) != expected) {
        fail_msg("from '%s' to '%s'", coord_phase_name((coord_phase)from),
                 coord_phase_name((coord_phase)to));
      }
    }
    assert_non_null(coord_phase_name((coord_phase)from));
  }
}

static void test_every_move_of_a_commit(void **state) {
  (void)state;
  for (int from = 0; from < 3; from++) {
    for (int to = 0; to < 3; to++) {
      bool expected = (from == COMMIT_IDLE && to == COMMIT_RUNNING) ||
                      (from == COMMIT_RUNNING && to != COMMIT_RUNNING) ||
                      (from == COMMIT_WAITING && to == COMMIT_RUNNING);
      assert_int_equal(coord_commit_may((coord_commit_state)from, (coord_commit_state)to),
                       expected);
    }
    assert_false(coord_commit_may((coord_commit_state)3, (coord_commit_state)from));
  }
  assert_string_equal(coord_commit_state_name(COMMIT_IDLE), "idle");
  assert_string_equal(coord_commit_state_name(COMMIT_RUNNING), "running");
  assert_string_equal(coord_commit_state_name(COMMIT_WAITING), "waiting");
  assert_string_equal(coord_commit_state_name((coord_commit_state)3), "unknown");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_retriable_sends_the_same_batch_again_with_backoff),
      cmocka_unit_test(test_in_doubt_sends_the_same_batch_again),
      cmocka_unit_test(test_want_of_memory_is_no_refusal),
      cmocka_unit_test(test_a_batch_in_doubt_is_frozen),
      cmocka_unit_test(test_a_batch_ends_with_rows),
      cmocka_unit_test(test_a_cursor_other_than_the_batch_says_is_a_conflict),
      cmocka_unit_test(test_a_refusal_for_good_stops),
      cmocka_unit_test(test_commits_in_flight_are_awaited_when_one_is_refused),
      cmocka_unit_test(test_a_lane_is_told_only_when_every_target_has_it),
      cmocka_unit_test(test_the_digest_tells_lists_apart),
      cmocka_unit_test(test_every_move_of_the_phases),
      cmocka_unit_test(test_every_move_of_a_commit),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
