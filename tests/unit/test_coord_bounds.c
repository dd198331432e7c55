/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds: of times, sizes and counts; odd configurations; and what a run that is ending still hears. */
#include <stdio.h>
#include <stdlib.h>

#include "coord/state.h"
#include "support/coord_bench.h"

static const coord_sink lake = {
    .sink_id = "lake", .participants = 1, .committable = 1, .overlap = 1};
static const coord_sink plain = {.sink_id = "plain", .participants = 1, .committable = 1};

static const char *const lanes[] = {"orders"};

static coord_config good(const coord_sink *sinks, uint32_t n) {
  return (coord_config){.sinks = sinks,
                        .n_sinks = n,
                        .lanes = lanes,
                        .n_lanes = 1,
                        .interval_ns = 1000 * BENCH_MS,
                        .timeout_ns = 1,
                        .backoff_min_ns = 2,
                        .backoff_max_ns = 2};
}

/* As bench_open, with one lane, any configuration and many participants. */
static void open_with(bench *b, const coord_config *config) {
  memset(b, 0, sizeof(*b));
  b->sinks = config->sinks;
  b->n_sinks = config->n_sinks;
  b->n_lanes = config->n_lanes;
  assert_int_equal(coord_new(config, NULL, 7, &b->c, &b->err), WEIR_OK);
  bench_send(b, bench_event(COORD_START));
  for (uint32_t i = 0; i < b->n_sinks; i++)
    bench_send(b, bench_of(COORD_OBSERVED, i, 0, 0));
}

static void forget(bench *b) {
  b->n_log = b->read = 0;
}

static const coord_command *find(const bench *b, coord_command_type type) {
  const coord_command *found = NULL;
  for (size_t i = 0; i < b->n_log; i++)
    if (b->log[i].type == type) found = &b->log[i];
  return found;
}

static void begin(bench *b, uint64_t attempt) {
  for (uint32_t i = 0; i < b->n_sinks; i++)
    for (uint32_t k = 1; k <= b->sinks[i].participants; k++)
      bench_send(b, bench_of(COORD_BEGUN, i, k, attempt));
}

static void reserve(bench *b, uint64_t attempt) {
  for (uint32_t i = 0; i < b->n_sinks; i++)
    for (uint32_t k = 1; k <= b->sinks[i].participants; k++)
      bench_send(b, bench_of(COORD_INTENT, i, k, attempt));
  forget(b);
  bench_send(b, bench_of(COORD_RESERVED, COORD_NONE, 0, attempt));
  begin(b, attempt);
}

/* To the pre_commits, which are left to the caller, and forgotten. */
static void seal(bench *b, uint64_t attempt, uint64_t rows) {
  char position[24];
  snprintf(position, sizeof(position), "p%d", (int)attempt);
  forget(b);
  bench_send(b, bench_event(COORD_CHECKPOINT));
  bench_send(b, bench_with(bench_of_lane(COORD_BARRIER_SENT, 0, attempt), position));
  for (uint32_t i = 0; i < b->n_sinks; i++)
    for (uint32_t k = 1; k <= b->sinks[i].participants; k++) {
      coord_event sealed = bench_of(COORD_SEALED, i, k, attempt);
      sealed.rows = rows;
      bench_send(b, sealed);
    }
  forget(b);
}

static void decide(bench *b, uint64_t attempt, uint64_t rows) {
  seal(b, attempt, rows);
  for (uint32_t i = 0; i < b->n_sinks; i++)
    for (uint32_t k = 1; k <= b->sinks[i].participants; k++)
      bench_send(b, bench_of(COORD_PREPARED, i, k, attempt));
  const coord_command *asked = find(b, COORD_DECIDE);
  assert_non_null(asked);
  assert_int_equal(asked->attempt, attempt);
  forget(b);
  bench_send(b, bench_of(COORD_DECIDED, COORD_NONE, 0, attempt));
}

static void expect_stop(bench *b, weir_status code, const char *word) {
  const coord_command *stop = find(b, COORD_STOP);
  assert_non_null(stop);
  assert_non_null(stop->error);
  assert_int_equal(stop->error->code, code);
  if (!strstr(stop->error->message, word))
    fail_msg("no '%s' in: %s", word, stop->error->message);
  assert_string_equal(bench_phase(b), "stopped");
}

/* ---- configurations */

static weir_status refuse(const coord_config *config, uint64_t token) {
  coord *c = NULL;
  weir_error err = {0};
  weir_status status = coord_new(config, NULL, token, &c, &err);
  assert_null(c);
  assert_int_equal(err.code, status);
  return status;
}

static void test_times_that_make_no_sense_are_refused(void **state) {
  (void)state;
  coord_config config = good(&lake, 1);
  config.interval_ns = -1;
  assert_int_equal(refuse(&config, 7), WEIR_E_INVALID_CONFIG);
  config = good(&lake, 1);
  config.timeout_ns = 0;
  assert_int_equal(refuse(&config, 7), WEIR_E_INVALID_CONFIG);
  config = good(&lake, 1);
  config.backoff_min_ns = -1;
  assert_int_equal(refuse(&config, 7), WEIR_E_INVALID_CONFIG);
  config = good(&lake, 1);
  config.backoff_max_ns = 1;
  assert_int_equal(refuse(&config, 7), WEIR_E_INVALID_CONFIG);
  config = good(&lake, 1);
  assert_int_equal(refuse(&config, 0), WEIR_E_INTERNAL); /* no lease */
}

static void test_without_an_interval_only_who_asks_gets_a_checkpoint(void **state) {
  (void)state;
  bench b;
  coord_config config = good(&lake, 1);
  config.interval_ns = 0;
  open_with(&b, &config);
  reserve(&b, 1);
  bench_skip(&b);
  assert_true(coord_wakeup(b.c) == INT64_MAX);
  bench_tick(&b, INT64_C(1) << 60);
  bench_none(&b);
  bench_send(&b, bench_event(COORD_CHECKPOINT));
  bench_take(&b, COORD_SEND_BARRIERS);
  bench_done(&b);
}

static void test_times_without_end_do_not_wrap(void **state) {
  (void)state;
  bench b;
  coord_sink slow = lake;
  slow.commit_interval_ns = INT64_MAX;
  coord_config config = good(&slow, 1);
  config.timeout_ns = INT64_MAX;
  config.interval_ns = INT64_MAX;
  open_with(&b, &config);
  reserve(&b, 1);
  bench_tick(&b, 5000 * BENCH_MS);
  decide(&b, 1, 5);
  begin(&b, 2);
  seal(&b, 2, 5); /* pre_commit is out */
  assert_true(coord_wakeup(b.c) == INT64_MAX);
  bench_tick(&b, INT64_C(1) << 61);
  assert_string_equal(bench_phase(&b), "preparing"); /* no timeout */
  assert_null(find(&b, COORD_COMMIT));               /* and still gathering */
  assert_true(coord_wakeup(b.c) == INT64_MAX);
  bench_done(&b);
}

static void test_asked_to_drain_before_the_start(void **state) {
  (void)state;
  bench b;
  bench_new(&b, &lake, 1, 1, NULL);
  bench_send(&b, bench_event(COORD_CHECKPOINT));
  bench_send(&b, bench_event(COORD_TICK));
  bench_send(&b, bench_event(COORD_DRAIN));
  bench_none(&b);
  assert_true(coord_wakeup(b.c) == INT64_MAX);
  bench_send(&b, bench_event(COORD_START));
  bench_take(&b, COORD_TAKE_OVER);
  bench_send(&b, bench_of(COORD_OBSERVED, 0, 0, 0));
  assert_null(bench_take(&b, COORD_STOP)->error); /* it began nothing */
  bench_none(&b);
  bench_done(&b);
}

static void test_fenced_before_the_start(void **state) {
  (void)state;
  bench b;
  bench_new(&b, &lake, 1, 1, NULL);
  bench_send(&b, bench_event(COORD_FENCED));
  expect_stop(&b, WEIR_E_FENCED, "lease");
  bench_done(&b);

  bench_new(&b, &lake, 1, 1, NULL);
  coord_event fenced = bench_event(COORD_FENCED);
  fenced.error = bench_error(WEIR_E_FENCED, 0);
  bench_send(&b, fenced);
  expect_stop(&b, WEIR_E_FENCED, "said the test");
  bench_done(&b);
}

static void test_looking_at_what_is_not_there(void **state) {
  (void)state;
  bench b;
  bench_open(&b, &lake, 1, 1);
  weir_cursor decided = {.checkpoint = 9}, seen = {.checkpoint = 9};
  const uint8_t *data = NULL;
  size_t size = 0;
  assert_int_equal(coord_owed(b.c, 1), 0);
  coord_sink_cursors(b.c, 1, &decided, &seen);
  assert_int_equal(decided.checkpoint, 0);
  assert_int_equal(seen.checkpoint, 0);
  coord_sink_cursors(b.c, 0, NULL, NULL);
  seen.checkpoint = 9;
  coord_sink_cursors(b.c, 0, NULL, &seen);
  assert_int_equal(seen.checkpoint, 0);
  assert_int_equal(coord_position(b.c, 1, &data, &size), 0);
  assert_int_equal(coord_position(b.c, 0, &data, &size), 0); /* nothing is decided */
  /* A refusal need not be read. */
  coord_event e = bench_of(COORD_BEGUN, 5, 0, 0);
  assert_int_equal(coord_step(b.c, b.now, &e, NULL), WEIR_E_INTERNAL);
  assert_string_equal(bench_phase(&b), "open");
  bench_done(&b);
}

/* ---- sizes and counts */

static char *bytes_of(size_t size) {
  char *large = malloc(size + 1);
  assert_non_null(large);
  memset(large, 'x', size);
  large[size] = 0;
  return large;
}

static void test_all_intents_of_an_attempt_have_a_bound(void **state) {
  (void)state;
  bench b;
  enum { WRITERS = WEIR_MAX_INTENTS / WEIR_MAX_INTENT + 1 };
  coord_sink wide = plain;
  wide.participants = WRITERS;
  coord_config config = good(&wide, 1);
  char *large = bytes_of(WEIR_MAX_INTENT);
  open_with(&b, &config);
  for (uint32_t k = 1; k <= WRITERS; k++)
    bench_send(&b, bench_with(bench_of(COORD_INTENT, 0, k, 1), large));
  expect_stop(&b, WEIR_E_INTERNAL, "fewer writers");
  assert_null(find(&b, COORD_RESERVE)); /* the store saw none of them */
  bench_done(&b);

  open_with(&b, &config); /* those of the attempt after it */
  reserve(&b, 1);
  seal(&b, 1, 5);
  for (uint32_t k = 1; k <= WRITERS; k++) {
    coord_event prepared = bench_of(COORD_PREPARED, 0, k, 1);
    assert_int_equal(weir_bytes_copy(&prepared.intent, large, WEIR_MAX_INTENT, NULL), 0);
    bench_send(&b, prepared);
  }
  assert_null(find(&b, COORD_DECIDE));
  bench_stop(&b);
  const coord_command *aborted = bench_take(&b, COORD_ABORT);
  assert_non_null(strstr(aborted->error->message, "next attempt"));
  bench_done(&b);
  free(large);
}

static void test_an_intent_for_the_next_attempt_has_a_bound(void **state) {
  (void)state;
  bench b;
  char *large = bytes_of(WEIR_MAX_INTENT + 1);
  bench_open(&b, &plain, 1, 1);
  bench_tick(&b, 1000 * BENCH_MS);
  bench_seal(&b, 1, "p1", 1);
  bench_take(&b, COORD_PRE_COMMIT);
  coord_event prepared = bench_of(COORD_PREPARED, 0, 1, 1);
  assert_int_equal(weir_bytes_copy(&prepared.intent, large, WEIR_MAX_INTENT + 1, NULL),
                   0);
  bench_send(&b, prepared);
  bench_stop(&b);
  assert_non_null(strstr(bench_take(&b, COORD_ABORT)->error->message, "artifact intent"));
  bench_done(&b);
  free(large);
}

/* A sink that answers no descriptor for an attempt with rows gets its batch all the same. */
static void test_rows_alone_are_owed(void **state) {
  (void)state;
  bench b;
  coord_config config = good(&lake, 1);
  open_with(&b, &config);
  reserve(&b, 1);
  decide(&b, 1, 5);
  const coord_command *commit = find(&b, COORD_COMMIT);
  assert_non_null(commit);
  assert_int_equal(commit->batch->attempts[0].entries[0].present, 0);
  assert_int_equal(coord_owed_rows(b.c, 0, 0), 1);
  bench_done(&b);
}

/* And the other way round: what it described is published, rows or not. */
static void test_a_descriptor_alone_is_owed(void **state) {
  (void)state;
  bench b;
  coord_config config = good(&lake, 1);
  open_with(&b, &config);
  reserve(&b, 1);
  seal(&b, 1, 0);
  bench_send(&b, bench_with(bench_of(COORD_PREPARED, 0, 1, 1), "d"));
  assert_int_equal(find(&b, COORD_DECIDE)->decision->sinks[0].has_rows, 1);
  bench_send(&b, bench_of(COORD_DECIDED, COORD_NONE, 0, 1));
  assert_int_equal(find(&b, COORD_COMMIT)->batch->attempts[0].entries[0].size, 1);
  bench_done(&b);
}

static void test_gathering_stops_at_1024_attempts(void **state) {
  (void)state;
  bench b;
  coord_sink slow = lake;
  slow.commit_interval_ns = INT64_MAX;
  coord_config config = good(&slow, 1);
  open_with(&b, &config);
  reserve(&b, 1);
  for (uint64_t n = 1; n <= COORD_EMPTY_LIMIT; n++) {
    assert_null(find(&b, COORD_COMMIT));
    decide(&b, n, 1);
    begin(&b, n + 1);
  }
  const coord_command *commit = find(&b, COORD_COMMIT);
  assert_non_null(commit);
  assert_int_equal(commit->batch->n_attempts, COORD_EMPTY_LIMIT);
  bench_done(&b);
}

static void test_gathering_stops_at_half_a_batch(void **state) {
  (void)state;
  bench b;
  coord_sink slow = plain;
  slow.commit_interval_ns = INT64_MAX;
  slow.participants = WEIR_MAX_BATCH_ENTRIES / 2;
  coord_config config = good(&slow, 1);
  open_with(&b, &config);
  reserve(&b, 1);
  decide(&b, 1, 1);
  assert_non_null(find(&b, COORD_COMMIT)); /* of entries */
  bench_done(&b);

  char *large = bytes_of(WEIR_MAX_DESCRIPTOR);
  slow.participants = 2;
  config = good(&slow, 1);
  open_with(&b, &config);
  reserve(&b, 1);
  seal(&b, 1, 1);
  bench_send(&b, bench_with(bench_of(COORD_PREPARED, 0, 1, 1), large));
  bench_send(&b, bench_with(bench_of(COORD_PREPARED, 0, 2, 1), large));
  bench_send(&b, bench_of(COORD_DECIDED, COORD_NONE, 0, 1));
  assert_non_null(find(&b, COORD_COMMIT)); /* of descriptors */
  bench_done(&b);
  free(large);
}

static void test_empties_get_a_commit_before_a_batch_is_full(void **state) {
  (void)state;
  bench b;
  coord_sink wide = plain;
  wide.participants = WEIR_MAX_BATCH_ENTRIES / 2;
  coord_config config = good(&wide, 1);
  open_with(&b, &config);
  reserve(&b, 1);
  decide(&b, 1, 0);
  assert_null(find(&b, COORD_COMMIT));
  assert_int_equal(coord_owed(b.c, 0), 1);
  assert_int_equal(coord_owed_rows(b.c, 0, 0), 0);
  forget(&b);
  begin(&b, 2);
  decide(&b, 2, 0);
  const coord_command *commit = find(&b, COORD_COMMIT);
  assert_non_null(commit);
  assert_int_equal(commit->batch->n_attempts, 2);
  bench_done(&b);
}

/* What a store may hold of a sink with many writers: batches stay within their bound. */
static void test_many_entries_go_out_in_bounded_batches(void **state) {
  (void)state;
  bench b;
  enum { ATTEMPTS = 3, ENTRIES = WEIR_MAX_BATCH_ENTRIES / 2 };
  static weir_store_entry entries[ENTRIES];
  static weir_commit_entry commit_entries[ENTRIES];
  weir_store_sink sinks[ATTEMPTS] = {{0}};
  weir_store_attempt attempts[ATTEMPTS] = {{0}};
  for (uint32_t k = 0; k < ENTRIES; k++) {
    entries[k] = (weir_store_entry){.sink_id = "lake", .participant_id = k + 1};
    commit_entries[k] = (weir_commit_entry){.participant_id = k + 1};
  }
  for (uint64_t n = 1; n <= ATTEMPTS; n++) {
    weir_store_sink *sink = &sinks[n - 1];
    *sink = (weir_store_sink){.sink_id = "lake", .has_rows = 1};
    sink->cursor = (weir_cursor){.checkpoint = n, .token = 3};
    assert_int_equal(
        coord_digest("lake", n, commit_entries, ENTRIES, sink->cursor.digest, NULL), 0);
    attempts[n - 1] = (weir_store_attempt){.attempt = n,
                                           .state = WEIR_ATTEMPT_COMMIT,
                                           .token = 3,
                                           .sinks = sink,
                                           .n_sinks = 1,
                                           .descriptors = entries,
                                           .n_descriptors = ENTRIES};
  }
  const weir_store_state all = {
      .attempts = attempts, .n_attempts = ATTEMPTS, .last_attempt = ATTEMPTS, .token = 7};
  bench_new(&b, &lake, 1, 1, &all);
  bench_send(&b, bench_event(COORD_START));
  bench_take(&b, COORD_TAKE_OVER);
  bench_send(&b, bench_of(COORD_OBSERVED, 0, 0, 0));
  assert_int_equal(bench_take(&b, COORD_COMMIT)->batch->n_attempts, 2);
  bench_land(&b, 0);
  bench_take(&b, COORD_SEEN);
  const coord_command *rest = bench_take(&b, COORD_COMMIT);
  assert_int_equal(rest->batch->n_attempts, 1);
  assert_int_equal(rest->batch->predecessor.checkpoint, 2);
  bench_done(&b);
}

static void test_many_cuts_are_told_as_one(void **state) {
  (void)state;
  bench b;
  coord_sink slow = lake;
  slow.commit_interval_ns = 3600 * 1000 * BENCH_MS;
  coord_config config = good(&slow, 1);
  open_with(&b, &config);
  reserve(&b, 1);
  enum { DECISIONS = 20 };
  for (uint64_t n = 1; n <= DECISIONS; n++) {
    decide(&b, n, 1);
    begin(&b, n + 1);
  }
  assert_int_equal(coord_owed(b.c, 0), DECISIONS);
  forget(&b);
  bench_tick(&b, slow.commit_interval_ns);
  bench_skip(&b);
  bench_land(&b, 0);
  bench_take(&b, COORD_SEEN);
  const coord_command *tell = bench_take(&b, COORD_TELL_LANE);
  assert_int_equal(tell->attempt, DECISIONS);
  assert_memory_equal(tell->position, "p20", 3);
  bench_none(&b);
  bench_done(&b);
}

/* The ninth waits for an answer, not for a time. */
static void test_a_commit_beyond_8_needs_no_clock(void **state) {
  (void)state;
  bench b;
  char names[9][16];
  coord_sink sinks[9];
  for (int i = 0; i < 9; i++) {
    snprintf(names[i], sizeof(names[i]), "s%d", i);
    sinks[i] = lake;
    sinks[i].sink_id = names[i];
    /* The first eight are due before the ninth. */
    sinks[i].commit_interval_ns = (i < 8 ? 1 : 2) * BENCH_MS;
  }
  coord_config config = good(sinks, 9);
  open_with(&b, &config);
  reserve(&b, 1);
  decide(&b, 1, 1);
  begin(&b, 2);
  bench_tick(&b, BENCH_MS);
  bench_tick(&b, BENCH_MS);
  bench_skip(&b);
  size_t sent = 0;
  for (size_t i = 0; i < b.n_log; i++) sent += b.log[i].type == COORD_COMMIT;
  assert_int_equal(sent, 8);
  /* The checkpoint alone. */
  assert_true(coord_wakeup(b.c) == config.interval_ns);
  bench_land(&b, 0);
  bench_take(&b, COORD_SEEN);
  assert_int_equal(bench_take(&b, COORD_COMMIT)->sink, 8);
  bench_done(&b);
}

/* Its pre_commit runs on the thread of its commit, and comes after it. */
static void test_pre_commit_waits_for_a_commit_that_is_due_but_not_sent(void **state) {
  (void)state;
  bench b;
  char names[9][16];
  coord_sink sinks[9];
  for (int i = 0; i < 9; i++) {
    snprintf(names[i], sizeof(names[i]), "s%d", i);
    sinks[i] = plain;
    sinks[i].sink_id = names[i];
  }
  coord_config config = good(sinks, 9);
  config.timeout_ns = 1000 * BENCH_MS;
  open_with(&b, &config);
  reserve(&b, 1);
  decide(&b, 1, 1);
  begin(&b, 2);
  seal(&b, 2, 1); /* 8 commits are out, and the ninth is due */
  bench_tick(&b, 1);
  bench_none(&b);
  coord_event landed = bench_of(COORD_COMMITTED, 7, 0, 0);
  landed.cursor = b.c->sinks[7].batch.attempts[0].cursor;
  bench_send(&b, landed);
  bench_take(&b, COORD_SEEN);
  assert_int_equal(bench_take(&b, COORD_COMMIT)->sink, 8);
  assert_int_equal(bench_take(&b, COORD_PRE_COMMIT)->sink, 7);
  bench_none(&b); /* the ninth, whose commit is out only now, not yet */
  bench_done(&b);
}

/* ---- rewinds */

static coord_event of_generation(coord_event e, uint64_t generation) {
  e.generation = generation;
  return e;
}

static void test_a_purge_that_fails_ends_the_run(void **state) {
  (void)state;
  bench b;
  coord_config config = good(&lake, 1);
  open_with(&b, &config);
  reserve(&b, 1);
  coord_event failed = bench_of_lane(COORD_FAILED, 0, 0);
  failed.error = bench_error(WEIR_E_IO, WEIR_ERR_RETRIABLE);
  bench_send(&b, failed);
  bench_send(&b, bench_of_lane(COORD_STOPPED, 0, 0));
  bench_send(&b, bench_of(COORD_ABORTED, COORD_NONE, 0, 1));
  bench_send(&b, bench_of(COORD_ROLLED_BACK, 0, 1, 1));
  coord_event purged = of_generation(bench_of(COORD_PURGED, 0, 1, 0), 1);
  purged.error = bench_error(WEIR_E_IO, 0);
  bench_send(&b, purged);
  expect_stop(&b, WEIR_E_IO, "said the test");
  bench_done(&b);
}

static void test_a_seek_is_repeated_when_its_time_has_come(void **state) {
  (void)state;
  bench b;
  bench_open(&b, &lake, 1, 2);
  coord_event failed = bench_of_lane(COORD_FAILED, 0, 0);
  failed.error = bench_error(WEIR_E_IO, WEIR_ERR_RETRIABLE);
  bench_send(&b, failed);
  bench_stop(&b);
  bench_send(&b, bench_of(COORD_ABORTED, COORD_NONE, 0, 1));
  bench_send(&b, bench_of(COORD_ROLLED_BACK, 0, 1, 1));
  bench_send(&b, of_generation(bench_of(COORD_PURGED, 0, 1, 0), 1));
  bench_skip(&b);
  coord_event refused = of_generation(bench_of_lane(COORD_SOUGHT, 1, 0), 1);
  refused.error = bench_error(WEIR_E_IO, WEIR_ERR_RETRIABLE);
  bench_send(&b, refused);
  bench_none(&b);
  int64_t at = coord_wakeup(b.c);
  assert_true(at > b.now);
  bench_send(&b, of_generation(bench_of_lane(COORD_SOUGHT, 0, 0), 1));
  bench_tick(&b, at - b.now - 1);
  bench_none(&b); /* not before */
  assert_string_equal(bench_phase(&b), "seeking");
  bench_tick(&b, 1);
  assert_int_equal(bench_take(&b, COORD_SEEK)->lane, 1);
  bench_none(&b);
  bench_send(&b, of_generation(bench_of_lane(COORD_SOUGHT, 1, 0), 1));
  assert_string_equal(bench_phase(&b), "backing off");
  bench_done(&b);
}

/* ---- a run that is ending while something is under way */

static coord_event answer(bench *b, uint32_t sink, weir_status code) {
  coord_event e = bench_of(COORD_COMMITTED, sink, 0, 0);
  if (code) e.error = bench_error(code, 0);
  (void)b;
  return e;
}

/* Two sinks whose commits of attempt 1 are out, and attempt 2 is open. */
static void open_two(bench *b) {
  static const coord_sink two[] = {
      {.sink_id = "lake", .participants = 1, .committable = 1, .overlap = 1},
      {.sink_id = "pond", .participants = 1, .committable = 1, .overlap = 1}};
  bench_open(b, two, 2, 1);
  bench_decide(b, 1, "p1");
  bench_take(b, COORD_COMMIT);
  bench_take(b, COORD_COMMIT);
  bench_begin_all(b, 2);
  bench_none(b);
}

/* The first target refuses: the run ends once the second has answered, or at once when the store fails too. */
static void refuse_first(bench *b) {
  bench_send(b, answer(b, 0, WEIR_E_CONFLICT));
  bench_none(b);
  assert_string_equal(bench_phase(b), "halting");
  assert_true(coord_wakeup(b->c) == INT64_MAX);
}

static void expect_first_error(bench *b) {
  const coord_command *stop = bench_take(b, COORD_STOP);
  assert_int_equal(stop->error->code, WEIR_E_CONFLICT);
  assert_non_null(strstr(stop->error->message, "lake"));
  bench_none(b);
  bench_done(b);
}

static void start_abort(bench *b) {
  coord_event failed = bench_of_lane(COORD_FAILED, 0, 0);
  failed.error = bench_error(WEIR_E_IO, WEIR_ERR_RETRIABLE);
  bench_send(b, failed);
  bench_stop(b);
  bench_take(b, COORD_ABORT);
}

static coord_event from_store(coord_event_type type, uint64_t attempt, bool fails) {
  coord_event e = bench_of(type, COORD_NONE, 0, attempt);
  if (fails) e.error = bench_error(WEIR_E_IO, WEIR_ERR_IN_DOUBT);
  return e;
}

static void test_an_ending_run_waits_for_its_commits_alone(void **state) {
  (void)state;
  bench b;
  open_two(&b);
  start_abort(&b);
  refuse_first(&b);
  bench_send(&b, from_store(COORD_ABORTED, 2, false));
  bench_send(&b, bench_event(COORD_TICK));
  bench_none(&b); /* no rollback any more: the next start sees to it */
  assert_int_equal(bench_try(&b, answer(&b, 0, WEIR_OK)), WEIR_E_INTERNAL);
  bench_none(&b);
  bench_land(&b, 1);
  assert_int_equal(bench_take(&b, COORD_SEEN)->sink, 1);
  expect_first_error(&b);
}

static void test_two_refusals_say_the_first(void **state) {
  (void)state;
  bench b;
  open_two(&b);
  refuse_first(&b);
  bench_send(&b, answer(&b, 1, WEIR_E_FENCED));
  expect_first_error(&b);
}

static void test_a_store_that_fails_at_the_end_is_not_waited_for(void **state) {
  (void)state;
  bench b;
  open_two(&b);
  start_abort(&b);
  refuse_first(&b);
  bench_send(&b, from_store(COORD_ABORTED, 2, true));
  expect_first_error(&b);

  open_two(&b); /* a reservation */
  start_abort(&b);
  bench_send(&b, from_store(COORD_ABORTED, 2, false));
  for (uint32_t i = 0; i < 2; i++) bench_send(&b, bench_of(COORD_ROLLED_BACK, i, 1, 2));
  for (uint32_t i = 0; i < 2; i++)
    bench_send(&b, of_generation(bench_of(COORD_PURGED, i, 1, 0), 1));
  bench_send(&b, of_generation(bench_of_lane(COORD_SOUGHT, 0, 0), 1));
  b.now = coord_wakeup(b.c);
  bench_tick(&b, 0);
  for (uint32_t i = 0; i < 2; i++) bench_send(&b, bench_of(COORD_INTENT, i, 1, 3));
  bench_skip(&b);
  assert_string_equal(bench_phase(&b), "reserving");
  refuse_first(&b);
  bench_send(&b, from_store(COORD_RESERVED, 3, true));
  expect_first_error(&b);
}

/* Two gathering sinks become due while decision 2 is under way. */
static void test_a_decision_that_fails_at_the_end_is_not_waited_for(void **state) {
  (void)state;
  bench b;
  static const coord_sink two[] = {{.sink_id = "lake",
                                    .participants = 1,
                                    .committable = 1,
                                    .overlap = 1,
                                    .commit_interval_ns = 1500 * BENCH_MS},
                                   {.sink_id = "pond",
                                    .participants = 1,
                                    .committable = 1,
                                    .overlap = 1,
                                    .commit_interval_ns = 1500 * BENCH_MS}};
  bench_open(&b, two, 2, 1);
  bench_decide(&b, 1, "p1");
  bench_begin_all(&b, 2);
  bench_tick(&b, 1000 * BENCH_MS);
  bench_seal(&b, 2, "p2", 1);
  bench_prepare(&b, 2, true);
  bench_take(&b, COORD_DECIDE);
  bench_tick(&b, 500 * BENCH_MS);
  bench_take(&b, COORD_COMMIT);
  bench_take(&b, COORD_COMMIT);
  assert_string_equal(bench_phase(&b), "deciding");
  refuse_first(&b);
  bench_send(&b, from_store(COORD_DECIDED, 2, true));
  expect_first_error(&b);
}

static void test_the_lease_is_lost_while_the_run_ends(void **state) {
  (void)state;
  bench b;
  open_two(&b);
  refuse_first(&b);
  bench_send(&b, bench_event(COORD_FENCED));
  expect_stop(&b, WEIR_E_FENCED, "lease");
  bench_done(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_times_that_make_no_sense_are_refused),
      cmocka_unit_test(test_without_an_interval_only_who_asks_gets_a_checkpoint),
      cmocka_unit_test(test_times_without_end_do_not_wrap),
      cmocka_unit_test(test_asked_to_drain_before_the_start),
      cmocka_unit_test(test_fenced_before_the_start),
      cmocka_unit_test(test_looking_at_what_is_not_there),
      cmocka_unit_test(test_all_intents_of_an_attempt_have_a_bound),
      cmocka_unit_test(test_an_intent_for_the_next_attempt_has_a_bound),
      cmocka_unit_test(test_rows_alone_are_owed),
      cmocka_unit_test(test_a_descriptor_alone_is_owed),
      cmocka_unit_test(test_gathering_stops_at_half_a_batch),
      cmocka_unit_test(test_gathering_stops_at_1024_attempts),
      cmocka_unit_test(test_empties_get_a_commit_before_a_batch_is_full),
      cmocka_unit_test(test_many_entries_go_out_in_bounded_batches),
      cmocka_unit_test(test_many_cuts_are_told_as_one),
      cmocka_unit_test(test_a_commit_beyond_8_needs_no_clock),
      cmocka_unit_test(test_pre_commit_waits_for_a_commit_that_is_due_but_not_sent),
      cmocka_unit_test(test_a_purge_that_fails_ends_the_run),
      cmocka_unit_test(test_a_seek_is_repeated_when_its_time_has_come),
      cmocka_unit_test(test_an_ending_run_waits_for_its_commits_alone),
      cmocka_unit_test(test_two_refusals_say_the_first),
      cmocka_unit_test(test_a_store_that_fails_at_the_end_is_not_waited_for),
      cmocka_unit_test(test_a_decision_that_fails_at_the_end_is_not_waited_for),
      cmocka_unit_test(test_the_lease_is_lost_while_the_run_ends),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
