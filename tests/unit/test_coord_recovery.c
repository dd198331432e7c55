/* SPDX-License-Identifier: Apache-2.0 */
/* Recovery: cursors judged, what is decided published, what is reserved aborted, leftovers cleaned. */
#include <stdio.h>
#include <stdlib.h>

#include "support/coord_bench.h"

static const coord_sink lake = {
    .sink_id = "lake", .participants = 2, .committable = 1, .overlap = 1};

enum { MOST = 16 };

/* A store's state, built attempt by attempt. */
typedef struct history {
  weir_store_attempt attempts[MOST];
  weir_store_sink sinks[MOST];
  weir_store_entry entries[MOST][2];
  char texts[MOST][2][32];
  weir_store_sink decided, seen;
  weir_store_position position;
  weir_store_binding resolved[2];
  weir_store_state state;
} history;

static void add(history *h, uint64_t attempt, int32_t state, bool rows) {
  size_t i = h->state.n_attempts++;
  weir_commit_entry commit[2];
  for (uint32_t k = 0; k < 2; k++) {
    snprintf(h->texts[i][k], sizeof(h->texts[i][k]), "d%d/%u", (int)attempt, k + 1);
    bool present = rows || state != WEIR_ATTEMPT_COMMIT;
    h->entries[i][k] = (weir_store_entry){.sink_id = "lake",
                                          .participant_id = k + 1,
                                          .present = present,
                                          .data = (const uint8_t *)h->texts[i][k],
                                          .size = present ? strlen(h->texts[i][k]) : 0};
    commit[k] =
        (weir_commit_entry){k + 1, present, h->entries[i][k].data, h->entries[i][k].size};
  }
  weir_store_attempt *a = &h->attempts[i];
  *a = (weir_store_attempt){.attempt = attempt, .state = state, .token = 3};
  if (state == WEIR_ATTEMPT_COMMIT) {
    h->sinks[i] = (weir_store_sink){.sink_id = "lake",
                                    .cursor = {.checkpoint = attempt, .token = 3},
                                    .has_rows = rows,
                                    .rows = 100 * attempt};
    assert_int_equal(
        coord_digest("lake", attempt, commit, 2, h->sinks[i].cursor.digest, NULL),
        WEIR_OK);
    a->sinks = &h->sinks[i];
    a->n_sinks = 1;
    a->descriptors = h->entries[i];
    a->n_descriptors = 2;
    h->decided = h->sinks[i];
    h->state.decided = &h->decided;
    h->state.n_decided = 1;
  } else {
    a->intents = h->entries[i];
    a->n_intents = 2;
  }
  h->state.attempts = h->attempts;
  h->state.last_attempt = attempt;
  h->state.token = 7;
  h->position =
      (weir_store_position){"orders", 1, (const uint8_t *)"pos", 3, 100 * attempt, 0};
  h->state.positions = &h->position;
  h->state.n_positions = 1;
}

static void see(history *h, uint64_t attempt) {
  for (size_t i = 0; i < h->state.n_attempts; i++) {
    if (h->attempts[i].attempt == attempt) h->seen = h->sinks[i];
  }
  h->state.seen = &h->seen;
  h->state.n_seen = 1;
}

static weir_cursor cursor_of(const history *h, uint64_t attempt) {
  for (size_t i = 0; i < h->state.n_attempts; i++) {
    if (h->attempts[i].attempt == attempt) return h->sinks[i].cursor;
  }
  fail();
  return (weir_cursor){0};
}

static void observe(bench *b, const history *h, weir_cursor cursor) {
  bench_new(b, &lake, 1, 1, &h->state);
  bench_send(b, bench_event(COORD_START));
  bench_take(b, COORD_TAKE_OVER);
  bench_none(b);
  coord_event observed = bench_of(COORD_OBSERVED, 0, 0, 0);
  observed.cursor = cursor;
  bench_send(b, observed);
}

static void expect_stop(bench *b, weir_status code, const char *word) {
  const coord_command *stop = bench_take(b, COORD_STOP);
  assert_non_null(stop->error);
  assert_int_equal(stop->error->code, code);
  if (!strstr(stop->error->message, word))
    fail_msg("no '%s' in: %s", word, stop->error->message);
  bench_none(b);
  bench_done(b);
}

static void test_nothing_owed_goes_on_with_the_next_number(void **state) {
  (void)state;
  bench b;
  history h = {0};
  add(&h, 4, WEIR_ATTEMPT_COMMIT, true);
  see(&h, 4);
  h.state.last_attempt = 9;
  observe(&b, &h, cursor_of(&h, 4));
  bench_reserve(&b, 10);
  assert_int_equal(coord_owed(b.c, 0), 0);
  bench_decide(&b, 10, "p10");
  const coord_command *commit = bench_take(&b, COORD_COMMIT);
  assert_int_equal(commit->batch->predecessor.checkpoint, 4);
  assert_int_equal(commit->batch->predecessor.token, 3);
  assert_int_equal(commit->batch->attempts[0].cursor.token, 7);
  weir_cursor decided;
  coord_sink_cursors(b.c, 0, &decided, NULL);
  assert_int_equal(decided.checkpoint, 10);
  bench_done(&b);
}

static void test_the_cursor_beyond_what_was_seen_is_believed(void **state) {
  (void)state;
  bench b;
  history h = {0};
  for (uint64_t n = 1; n <= 3; n++) add(&h, n, WEIR_ATTEMPT_COMMIT, true);
  see(&h, 1);
  observe(&b, &h, cursor_of(&h, 2));
  assert_int_equal(bench_take(&b, COORD_SEEN)->cursor.checkpoint, 2);
  const coord_command *commit = bench_take(&b, COORD_COMMIT);
  assert_int_equal(commit->batch->n_attempts, 1);
  assert_int_equal(commit->batch->attempts[0].cursor.checkpoint, 3);
  assert_int_equal(commit->batch->attempts[0].cursor.token, 3); /* as it was decided */
  assert_memory_equal(commit->batch->attempts[0].entries[1].descriptor, "d3/2", 4);
  bench_none(&b); /* nothing else before what is decided is published */
  bench_land(&b, 0);
  bench_take(&b, COORD_SEEN);
  bench_reserve(&b, 4);
  bench_done(&b);
}

static void test_a_target_that_fell_back_is_refilled(void **state) {
  (void)state;
  bench b;
  history h = {0};
  for (uint64_t n = 1; n <= 10; n++) add(&h, n, WEIR_ATTEMPT_COMMIT, n != 7);
  see(&h, 10);
  observe(&b, &h, cursor_of(&h, 4));
  const coord_command *commit = bench_take(&b, COORD_COMMIT);
  assert_int_equal(commit->batch->n_attempts, 6);
  assert_int_equal(commit->batch->predecessor.checkpoint, 4);
  bench_land(&b, 0);
  assert_int_equal(bench_take(&b, COORD_SEEN)->cursor.checkpoint, 10);
  bench_done(&b);
}

static void resolve(history *h, const char *key) {
  size_t n = h->state.n_bindings++;
  h->resolved[n] = (weir_store_binding){key, (const uint8_t *)"{}", 2};
  h->state.bindings = h->resolved;
}

/* What a person has resolved is not published, with its descriptors whole or not. */
static void test_what_was_resolved_is_not_owed(void **state) {
  (void)state;
  bench b;
  history h = {0};
  for (uint64_t n = 1; n <= 3; n++) add(&h, n, WEIR_ATTEMPT_COMMIT, true);
  see(&h, 1);
  h.texts[1][0][0]++;
  resolve(&h, "resolved:pond:3"); /* another sink's */
  resolve(&h, "resolved:lake:2");
  observe(&b, &h, cursor_of(&h, 1));
  const coord_command *commit = bench_take(&b, COORD_COMMIT);
  assert_int_equal(commit->batch->n_attempts, 1);
  assert_int_equal(commit->batch->attempts[0].cursor.checkpoint, 3);
  assert_int_equal(commit->batch->predecessor.checkpoint, 1);
  bench_land(&b, 0);
  bench_take(&b, COORD_SEEN);
  bench_reserve(&b, 4);
  bench_done(&b);
}

/* Nobody could ask the target then, and it shows the attempt now: all before it is there too. */
static void test_what_was_resolved_and_published_after_all(void **state) {
  (void)state;
  bench b;
  history h = {0};
  for (uint64_t n = 1; n <= 4; n++) add(&h, n, WEIR_ATTEMPT_COMMIT, true);
  see(&h, 1);
  resolve(&h, "resolved:lake:3");
  observe(&b, &h, cursor_of(&h, 3));
  assert_int_equal(bench_take(&b, COORD_SEEN)->cursor.checkpoint, 3);
  const coord_command *commit = bench_take(&b, COORD_COMMIT);
  assert_int_equal(commit->batch->n_attempts, 1);
  assert_int_equal(commit->batch->attempts[0].cursor.checkpoint, 4);
  assert_int_equal(commit->batch->predecessor.checkpoint, 3);
  bench_done(&b);
}

/* The last decided one: nothing is owed behind it. */
static void test_the_last_was_resolved_and_published_after_all(void **state) {
  (void)state;
  bench b;
  history h = {0};
  for (uint64_t n = 1; n <= 3; n++) add(&h, n, WEIR_ATTEMPT_COMMIT, true);
  resolve(&h, "resolved:lake:3");
  observe(&b, &h, cursor_of(&h, 3));
  assert_int_equal(bench_take(&b, COORD_SEEN)->cursor.checkpoint, 3);
  bench_reserve(&b, 4);
  assert_int_equal(coord_owed(b.c, 0), 0);
  bench_done(&b);
}

/* The store has dropped the attempts, which were published, and not heard of the last one. */
static void test_the_last_decided_cursor_outlives_its_attempt(void **state) {
  (void)state;
  bench b;
  history h = {0};
  add(&h, 5, WEIR_ATTEMPT_COMMIT, true);
  h.state.n_attempts = 0;
  h.state.last_attempt = 5;
  observe(&b, &h, h.sinks[0].cursor);
  assert_int_equal(bench_take(&b, COORD_SEEN)->cursor.checkpoint, 5);
  coord_view view;
  coord_look(b.c, &view);
  assert_int_equal(view.decided, 5);
  bench_reserve(&b, 6);
  bench_done(&b);

  h.seen = h.sinks[0]; /* and where it has heard of it */
  h.state.seen = &h.seen;
  h.state.n_seen = 1;
  observe(&b, &h, h.sinks[0].cursor);
  bench_reserve(&b, 6);
  bench_done(&b);
}

/* The word is about that attempt of this history alone. */
static void test_another_history_of_what_was_resolved_is_a_conflict(void **state) {
  (void)state;
  bench b;
  history h = {0};
  for (uint64_t n = 1; n <= 2; n++) add(&h, n, WEIR_ATTEMPT_COMMIT, true);
  see(&h, 1);
  resolve(&h, "resolved:lake:2");
  weir_cursor other = cursor_of(&h, 2);
  other.digest[0]++;
  observe(&b, &h, other);
  expect_stop(&b, WEIR_E_CONFLICT, "ahead of the store");
}

/* The one way to let a sink go whose target is gone for good. */
static void test_a_sink_whose_attempts_are_resolved_can_leave(void **state) {
  (void)state;
  bench b;
  history h = {0};
  add(&h, 1, WEIR_ATTEMPT_COMMIT, true);
  h.sinks[0].sink_id = "gone";
  resolve(&h, "resolved:gone:1");
  observe(&b, &h, (weir_cursor){0});
  bench_reserve(&b, 2);
  bench_done(&b);
}

static void test_empties_owed_since_long_are_no_conflict(void **state) {
  (void)state;
  bench b;
  history h = {0};
  add(&h, 1, WEIR_ATTEMPT_COMMIT, true);
  see(&h, 1);
  weir_cursor first = cursor_of(&h, 1);
  h.state.n_attempts = 0; /* no longer in the store */
  for (uint64_t n = 41; n <= 43; n++) add(&h, n, WEIR_ATTEMPT_COMMIT, false);
  observe(&b, &h, first);
  bench_reserve(&b, 44); /* empties get no commit */
  assert_int_equal(coord_owed(b.c, 0), 3);
  bench_decide(&b, 44, "p");
  const coord_command *commit = bench_take(&b, COORD_COMMIT);
  assert_int_equal(commit->batch->n_attempts, 4);
  assert_int_equal(commit->batch->predecessor.checkpoint, 1);
  bench_done(&b);
}

static void test_an_absent_cursor_where_one_was_seen_is_a_conflict(void **state) {
  (void)state;
  bench b;
  history h = {0};
  add(&h, 1, WEIR_ATTEMPT_COMMIT, true);
  see(&h, 1);
  observe(&b, &h, (weir_cursor){0});
  expect_stop(&b, WEIR_E_CONFLICT, "--new-deployment");
}

static void test_an_absent_cursor_before_the_first_publication_is_none(void **state) {
  (void)state;
  bench b;
  history h = {0};
  for (uint64_t n = 1; n <= 2; n++) add(&h, n, WEIR_ATTEMPT_COMMIT, true);
  observe(&b, &h, (weir_cursor){0});
  const coord_command *commit = bench_take(&b, COORD_COMMIT);
  assert_int_equal(commit->batch->n_attempts, 2);
  assert_int_equal(commit->batch->predecessor.checkpoint, 0);
  bench_done(&b);
}

static void test_another_history_is_a_conflict(void **state) {
  (void)state;
  for (int what = 0; what < 4; what++) {
    bench b;
    history h = {0};
    for (uint64_t n = 1; n <= 2; n++) add(&h, n, WEIR_ATTEMPT_COMMIT, true);
    weir_cursor cursor = cursor_of(&h, what == 3 ? 1 : 2);
    if (what == 0) cursor.digest[31] ^= 1;
    if (what == 1) cursor.token++;
    if (what == 2) cursor.checkpoint = 3;
    if (what == 3) cursor.digest[0] ^= 1;
    observe(&b, &h, cursor);
    expect_stop(&b, WEIR_E_CONFLICT, "lake");
  }
}

static void test_a_cursor_above_under_a_newer_token_is_fenced(void **state) {
  (void)state;
  bench b;
  history h = {0};
  add(&h, 2, WEIR_ATTEMPT_COMMIT, true);
  observe(&b, &h, (weir_cursor){.checkpoint = 5, .token = 9});
  expect_stop(&b, WEIR_E_FENCED, "newer");
}

static void test_a_cursor_of_which_the_store_knows_nothing_is_a_conflict(void **state) {
  (void)state;
  bench b;
  history h = {0};
  observe(&b, &h, (weir_cursor){.checkpoint = 5, .token = 2});
  expect_stop(&b, WEIR_E_CONFLICT, "--new-deployment");
}

static void test_an_unreadable_cursor_is_never_none(void **state) {
  (void)state;
  bench b;
  history h = {0};
  bench_new(&b, &lake, 1, 1, &h.state);
  bench_send(&b, bench_event(COORD_START));
  for (int i = 1; i <= 5; i++) {
    bench_take(&b, COORD_TAKE_OVER);
    coord_event e = bench_of(COORD_OBSERVED, 0, 0, 0);
    e.error = bench_error(WEIR_E_IO, WEIR_ERR_RETRIABLE);
    bench_send(&b, e);
    if (i == 5) break;
    bench_none(&b);
    b.now = coord_wakeup(b.c);
    bench_tick(&b, 0);
  }
  expect_stop(&b, WEIR_E_IO, "cursor");
}

/* Whatever flags it comes with. */
static void test_a_target_that_says_fenced_is_not_asked_again(void **state) {
  (void)state;
  bench b;
  bench_new(&b, &lake, 1, 1, NULL);
  bench_send(&b, bench_event(COORD_START));
  bench_take(&b, COORD_TAKE_OVER);
  coord_event e = bench_of(COORD_OBSERVED, 0, 0, 0);
  e.error = bench_error(WEIR_E_FENCED, WEIR_ERR_RETRIABLE);
  bench_send(&b, e);
  expect_stop(&b, WEIR_E_FENCED, "lake");

  bench_new(&b, &lake, 1, 1, NULL); /* nor one that does not say that it may be asked */
  bench_send(&b, bench_event(COORD_START));
  bench_take(&b, COORD_TAKE_OVER);
  e.error = bench_error(WEIR_E_IO, 0);
  bench_send(&b, e);
  expect_stop(&b, WEIR_E_IO, "lake");
}

static void test_an_abort_that_was_not_asked_for_resolves_nothing(void **state) {
  (void)state;
  bench b;
  history h = {0};
  add(&h, 1, WEIR_ATTEMPT_RESERVED, false);
  add(&h, 2, WEIR_ATTEMPT_RESERVED, false);
  observe(&b, &h, (weir_cursor){0});
  assert_int_equal(bench_take(&b, COORD_ABORT)->attempt, 1);
  bench_none(&b); /* one at a time */
  assert_int_equal(bench_try(&b, bench_of(COORD_ABORTED, COORD_NONE, 0, 2)),
                   WEIR_E_INTERNAL);
  bench_none(&b);
  bench_send(&b, bench_of(COORD_ABORTED, COORD_NONE, 0, 1));
  assert_int_equal(bench_take(&b, COORD_ABORT)->attempt, 2);
  bench_send(&b, bench_of(COORD_ABORTED, COORD_NONE, 0, 2));
  bench_reserve(&b, 3);
  bench_done(&b);
}

static void test_no_target_is_written_before_all_cursors_are_judged(void **state) {
  (void)state;
  bench b;
  history h = {0};
  const coord_sink sinks[] = {lake,
                              {.sink_id = "other", .participants = 1, .committable = 1}};
  add(&h, 1, WEIR_ATTEMPT_COMMIT, true);
  bench_new(&b, sinks, 2, 1, &h.state);
  bench_send(&b, bench_event(COORD_START));
  bench_take(&b, COORD_TAKE_OVER);
  bench_take(&b, COORD_TAKE_OVER);
  bench_send(&b, bench_of(COORD_OBSERVED, 0, 0, 0));
  bench_none(&b); /* attempt 1 is owed */
  coord_event e = bench_of(COORD_OBSERVED, 1, 0, 0);
  e.cursor = (weir_cursor){.checkpoint = 8, .token = 1};
  bench_send(&b, e);
  expect_stop(&b, WEIR_E_CONFLICT, "other");
}

static void test_reserved_attempts_are_aborted_without_rollback(void **state) {
  (void)state;
  bench b;
  history h = {0};
  add(&h, 1, WEIR_ATTEMPT_COMMIT, true);
  see(&h, 1);
  add(&h, 2, WEIR_ATTEMPT_RESERVED, false);
  add(&h, 3, WEIR_ATTEMPT_RESERVED, false);
  observe(&b, &h, cursor_of(&h, 1));
  assert_int_equal(bench_take(&b, COORD_ABORT)->attempt, 2);
  bench_none(&b);
  bench_send(&b, bench_of(COORD_ABORTED, COORD_NONE, 0, 2));
  assert_int_equal(bench_take(&b, COORD_ABORT)->attempt, 3);
  bench_send(&b, bench_of(COORD_ABORTED, COORD_NONE, 0, 3));
  bench_reserve(&b, 4);
  bench_none(&b); /* the cursor is not beyond them: nothing is cleaned */
  bench_decide(&b, 4, "p4");
  bench_take(&b, COORD_COMMIT);
  bench_begin_all(&b, 5);
  bench_none(&b);
  bench_land(&b, 0);
  bench_take(&b, COORD_SEEN);
  bench_take(&b, COORD_TELL_LANE);
  const coord_command *clean = bench_take(&b, COORD_CLEAN);
  assert_int_equal(clean->attempt, 2);
  assert_int_equal(clean->n_entries, 2);
  assert_memory_equal(clean->entries[1].data, "d2/2", 4);
  bench_none(&b); /* one at a time for a sink */
  bench_send(&b, bench_of(COORD_CLEANED, 0, 0, 2));
  assert_int_equal(bench_take(&b, COORD_MARK_CLEANED)->attempt, 2);
  assert_int_equal(bench_take(&b, COORD_CLEAN)->attempt, 3);
  /* a cleaner that fails is asked again later and stops nothing */
  coord_event e = bench_of(COORD_CLEANED, 0, 0, 3);
  e.error = bench_error(WEIR_E_IO, 0);
  bench_send(&b, e);
  bench_none(&b);
  bench_tick(&b, 100 * BENCH_MS);
  assert_int_equal(bench_take(&b, COORD_CLEAN)->attempt, 3);
  bench_send(&b, bench_of(COORD_CLEANED, 0, 0, 3));
  bench_take(&b, COORD_MARK_CLEANED);
  bench_none(&b);
  bench_done(&b);
}

static void test_nothing_is_cleaned_while_a_batch_is_unsettled(void **state) {
  (void)state;
  bench b;
  history h = {0};
  add(&h, 1, WEIR_ATTEMPT_ABORT, false);
  add(&h, 2, WEIR_ATTEMPT_COMMIT, true);
  add(&h, 3, WEIR_ATTEMPT_COMMIT, true);
  observe(&b, &h, cursor_of(&h, 2)); /* beyond 1 */
  bench_take(&b, COORD_SEEN);
  bench_take(&b, COORD_COMMIT);
  bench_none(&b);
  coord_event e = bench_of(COORD_COMMITTED, 0, 0, 0);
  e.error = bench_error(WEIR_E_TIMEOUT, WEIR_ERR_IN_DOUBT);
  bench_send(&b, e);
  bench_none(&b);
  b.now = coord_wakeup(b.c);
  bench_tick(&b, 0);
  bench_take(&b, COORD_COMMIT);
  bench_land(&b, 0);
  bench_take(&b, COORD_SEEN);
  for (int i = 0; i < 2; i++) bench_take(&b, COORD_GET_INTENT);
  assert_int_equal(bench_take(&b, COORD_CLEAN)->attempt, 1);
  bench_done(&b);
}

static void test_recover_without_lanes_settles_and_stops(void **state) {
  (void)state;
  bench b;
  history h = {0};
  add(&h, 1, WEIR_ATTEMPT_ABORT, false);
  add(&h, 2, WEIR_ATTEMPT_COMMIT, true);
  add(&h, 3, WEIR_ATTEMPT_RESERVED, false);
  bench_new(&b, &lake, 1, 0, &h.state);
  bench_send(&b, bench_event(COORD_START));
  bench_take(&b, COORD_TAKE_OVER);
  bench_send(&b, bench_of(COORD_OBSERVED, 0, 0, 0));
  bench_take(&b, COORD_COMMIT);
  bench_land(&b, 0);
  bench_take(&b, COORD_SEEN);
  assert_int_equal(bench_take(&b, COORD_ABORT)->attempt, 3);
  bench_send(&b, bench_of(COORD_ABORTED, COORD_NONE, 0, 3));
  assert_int_equal(bench_take(&b, COORD_CLEAN)->attempt, 1);
  bench_none(&b);
  bench_send(&b, bench_of(COORD_CLEANED, 0, 0, 1));
  bench_take(&b, COORD_MARK_CLEANED);
  assert_null(bench_take(&b, COORD_STOP)->error);
  bench_done(&b);
}

static void test_large_debts_go_out_in_bounded_batches(void **state) {
  (void)state;
  bench b;
  history h = {0};
  char *large = base_calloc(WEIR_MAX_DESCRIPTOR, 1, NULL);
  assert_non_null(large);
  for (uint64_t n = 1; n <= 3; n++) {
    add(&h, n, WEIR_ATTEMPT_COMMIT, true);
    weir_commit_entry commit[2];
    for (uint32_t k = 0; k < 2; k++) {
      h.entries[n - 1][k].data = (const uint8_t *)large;
      h.entries[n - 1][k].size = WEIR_MAX_DESCRIPTOR; /* 32 MiB an attempt */
      commit[k] =
          (weir_commit_entry){k + 1, 1, (const uint8_t *)large, WEIR_MAX_DESCRIPTOR};
    }
    assert_int_equal(
        coord_digest("lake", n, commit, 2, h.sinks[n - 1].cursor.digest, NULL), WEIR_OK);
  }
  observe(&b, &h, (weir_cursor){0});
  assert_int_equal(bench_take(&b, COORD_COMMIT)->batch->n_attempts, 2);
  bench_none(&b);
  bench_land(&b, 0);
  bench_take(&b, COORD_SEEN);
  const coord_command *commit = bench_take(&b, COORD_COMMIT);
  assert_int_equal(commit->batch->n_attempts, 1);
  assert_int_equal(commit->batch->predecessor.checkpoint, 2);
  bench_done(&b);
  free(large);
}

static weir_status make(const coord_sink *sinks, uint32_t n,
                        const weir_store_state *state, weir_error *err) {
  static const char *const lanes[] = {"orders"};
  coord *c = NULL;
  const coord_config config = {.sinks = sinks,
                               .n_sinks = n,
                               .lanes = lanes,
                               .n_lanes = 1,
                               .timeout_ns = 1,
                               .backoff_max_ns = 1};
  weir_status status = coord_new(&config, state, 7, &c, err);
  coord_free(c);
  return status;
}

static void test_what_the_store_says_is_checked(void **state) {
  (void)state;
  weir_error err;
  history h = {0};
  add(&h, 1, WEIR_ATTEMPT_COMMIT, true);
  h.texts[0][1][0] ^= 1; /* not the bytes that were decided */
  assert_int_equal(make(&lake, 1, &h.state, &err), WEIR_E_CORRUPT);

  memset(&h, 0, sizeof(h));
  add(&h, 2, WEIR_ATTEMPT_COMMIT, true);
  add(&h, 1, WEIR_ATTEMPT_COMMIT, true);
  assert_int_equal(make(&lake, 1, &h.state, &err), WEIR_E_CORRUPT);

  memset(&h, 0, sizeof(h));
  add(&h, 2, 9, true);
  assert_int_equal(make(&lake, 1, &h.state, &err), WEIR_E_CORRUPT);
}

static void test_a_sink_with_unresolved_attempts_cannot_leave(void **state) {
  (void)state;
  weir_error err;
  history h = {0};
  const coord_sink other = {.sink_id = "other", .participants = 1, .committable = 1};
  add(&h, 1, WEIR_ATTEMPT_COMMIT, true);
  assert_int_equal(make(&other, 1, &h.state, &err), WEIR_E_INVALID_CONFIG);
  assert_non_null(strstr(err.message, "lake"));
  see(&h, 1);
  assert_int_equal(make(&other, 1, &h.state, &err), WEIR_OK);
  add(&h, 2, WEIR_ATTEMPT_COMMIT, true);
  assert_int_equal(make(&other, 1, &h.state, &err), WEIR_E_INVALID_CONFIG);
  see(&h, 2);
  static weir_store_sink both[2];
  both[0] = (weir_store_sink){.sink_id = "other", .cursor = {.checkpoint = 9}};
  both[1] = h.seen;
  h.state.seen = both;
  h.state.n_seen = 2;
  assert_int_equal(make(&other, 1, &h.state, &err), WEIR_OK);
  coord_sink weaker = lake;
  weaker.committable = 0;
  assert_int_equal(make(&weaker, 1, &h.state, &err), WEIR_E_INVALID_CONFIG);
}

static void test_a_sink_that_is_owed_no_rows_can_leave(void **state) {
  (void)state;
  weir_error err;
  history h = {0};
  const coord_sink other = {.sink_id = "other", .participants = 1, .committable = 1};
  add(&h, 1, WEIR_ATTEMPT_COMMIT, false);
  assert_int_equal(make(&other, 1, &h.state, &err), WEIR_OK);
}

static void test_bad_configurations_are_refused(void **state) {
  (void)state;
  weir_error err;
  const coord_sink twice[] = {lake, lake};
  assert_int_equal(make(twice, 2, NULL, &err), WEIR_E_INVALID_CONFIG);
  coord_sink many = lake;
  many.participants = 4097;
  assert_int_equal(make(&many, 1, NULL, &err), WEIR_E_INVALID_CONFIG);
  many.participants = 0;
  assert_int_equal(make(&many, 1, NULL, &err), WEIR_E_INVALID_CONFIG);
}

static void test_positions_of_unknown_lanes_are_carried_on(void **state) {
  (void)state;
  bench b;
  history h = {0};
  add(&h, 1, WEIR_ATTEMPT_COMMIT, true);
  see(&h, 1);
  h.position.source = "push/9";
  observe(&b, &h, cursor_of(&h, 1));
  bench_reserve(&b, 2);
  bench_tick(&b, 1000 * BENCH_MS);
  bench_seal(&b, 2, "p2", 5);
  bench_prepare(&b, 2, true);
  const weir_store_decision *d = bench_take(&b, COORD_DECIDE)->decision;
  assert_int_equal(d->n_positions, 2);
  assert_string_equal(d->positions[1].source, "push/9");
  assert_memory_equal(d->positions[1].data, "pos", 3);
  assert_int_equal(d->positions[1].rows, 100);
  assert_int_equal(d->sinks[0].rows, 110); /* totals go on */
  bench_done(&b);
}

static void test_the_number_of_writers_may_change(void **state) {
  (void)state;
  bench b;
  history h = {0};
  coord_sink one = lake;
  one.participants = 1;
  add(&h, 1, WEIR_ATTEMPT_COMMIT, true);
  bench_new(&b, &one, 1, 1, &h.state);
  bench_send(&b, bench_event(COORD_START));
  bench_take(&b, COORD_TAKE_OVER);
  bench_send(&b, bench_of(COORD_OBSERVED, 0, 0, 0));
  assert_int_equal(bench_take(&b, COORD_COMMIT)->batch->attempts[0].n_entries, 2);
  bench_done(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_nothing_owed_goes_on_with_the_next_number),
      cmocka_unit_test(test_the_cursor_beyond_what_was_seen_is_believed),
      cmocka_unit_test(test_a_target_that_fell_back_is_refilled),
      cmocka_unit_test(test_what_was_resolved_is_not_owed),
      cmocka_unit_test(test_what_was_resolved_and_published_after_all),
      cmocka_unit_test(test_the_last_was_resolved_and_published_after_all),
      cmocka_unit_test(test_the_last_decided_cursor_outlives_its_attempt),
      cmocka_unit_test(test_another_history_of_what_was_resolved_is_a_conflict),
      cmocka_unit_test(test_a_sink_whose_attempts_are_resolved_can_leave),
      cmocka_unit_test(test_empties_owed_since_long_are_no_conflict),
      cmocka_unit_test(test_an_absent_cursor_where_one_was_seen_is_a_conflict),
      cmocka_unit_test(test_an_absent_cursor_before_the_first_publication_is_none),
      cmocka_unit_test(test_another_history_is_a_conflict),
      cmocka_unit_test(test_a_cursor_above_under_a_newer_token_is_fenced),
      cmocka_unit_test(test_a_cursor_of_which_the_store_knows_nothing_is_a_conflict),
      cmocka_unit_test(test_an_unreadable_cursor_is_never_none),
      cmocka_unit_test(test_a_target_that_says_fenced_is_not_asked_again),
      cmocka_unit_test(test_an_abort_that_was_not_asked_for_resolves_nothing),
      cmocka_unit_test(test_no_target_is_written_before_all_cursors_are_judged),
      cmocka_unit_test(test_reserved_attempts_are_aborted_without_rollback),
      cmocka_unit_test(test_nothing_is_cleaned_while_a_batch_is_unsettled),
      cmocka_unit_test(test_recover_without_lanes_settles_and_stops),
      cmocka_unit_test(test_large_debts_go_out_in_bounded_batches),
      cmocka_unit_test(test_what_the_store_says_is_checked),
      cmocka_unit_test(test_a_sink_with_unresolved_attempts_cannot_leave),
      cmocka_unit_test(test_a_sink_that_is_owed_no_rows_can_leave),
      cmocka_unit_test(test_bad_configurations_are_refused),
      cmocka_unit_test(test_positions_of_unknown_lanes_are_carried_on),
      cmocka_unit_test(test_the_number_of_writers_may_change),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
