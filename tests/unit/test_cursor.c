/* SPDX-License-Identifier: Apache-2.0 */
/* Namespace keys, and every row of the table that a committer follows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka.h needs the four above. */
#include <cmocka.h>
#include <weir/cursor.h>

static weir_cursor cursor(uint64_t checkpoint, uint64_t token, uint8_t mark) {
  weir_cursor c = {.checkpoint = checkpoint, .token = token};
  memset(c.digest, mark, sizeof(c.digest));
  return c;
}

static weir_namespace test_ns(const char *sink) {
  weir_namespace ns = {.struct_size = sizeof(ns), .pipeline = "orders", .sink_id = sink};
  memset(ns.identity, 0x11, sizeof(ns.identity));
  memset(ns.deployment, 0x22, sizeof(ns.deployment));
  return ns;
}

/* A batch of attempts 12, 14, 15 after 10, all decided under token 5. */
typedef struct fixture {
  weir_namespace ns;
  weir_commit_attempt attempts[3];
  weir_cursor accepted[2];
  weir_commit_batch batch;
} fixture;

static void fixture_init(fixture *f) {
  memset(f, 0, sizeof(*f));
  f->ns = test_ns("lake");
  f->attempts[0].cursor = cursor(12, 5, 12);
  f->attempts[1].cursor = cursor(14, 5, 14);
  f->attempts[2].cursor = cursor(15, 5, 15);
  f->batch.struct_size = sizeof(f->batch);
  f->batch.ns = &f->ns;
  f->batch.predecessor = cursor(10, 4, 10);
  f->batch.attempts = f->attempts;
  f->batch.n_attempts = 3;
}

static void expect_first(fixture *f, weir_cursor observed, size_t want) {
  size_t first = 99;
  weir_error err = {0};
  if (weir_commit_batch_start(&f->batch, &observed, &first, &err))
    fail_msg("%s", err.message);
  assert_int_equal(first, want);
}

static void expect_refused(fixture *f, weir_cursor observed, weir_status want) {
  size_t first = 99;
  weir_error err = {0};
  assert_int_equal(weir_commit_batch_start(&f->batch, &observed, &first, &err), want);
  assert_int_equal(err.code, want);
  assert_int_equal(err.flags, 0); /* all of these are final */
  assert_int_equal(first, 99);
  assert_int_equal(weir_commit_batch_start(&f->batch, &observed, &first, NULL), want);
}

static void key_is_framed(void **state) {
  (void)state;
  char a[WEIR_NAMESPACE_KEY_SIZE], b[WEIR_NAMESPACE_KEY_SIZE];
  weir_namespace ns = test_ns("lake");
  weir_namespace_key(&ns, a);
  /* printf of the framed bytes into sha256sum gives this. */
  assert_string_equal(
      a, "weir-1aeee3fd1e2cf6d46df07303b9435f09369560d903aa9ce4c1b74fbaf172c673");
  ns.deployment[15] ^= 1;
  weir_namespace_key(&ns, b);
  assert_string_not_equal(a, b);
  ns = test_ns("lake2");
  weir_namespace_key(&ns, b);
  assert_string_not_equal(a, b);
  ns = test_ns("lake");
  ns.pipeline = "renamed"; /* its identity speaks for the pipeline, not its name */
  weir_namespace_key(&ns, b);
  assert_string_equal(a, b);
}

static void equality_takes_all_three(void **state) {
  (void)state;
  weir_cursor a = cursor(7, 3, 1), b = cursor(7, 3, 1);
  assert_true(weir_cursor_equal(&a, &b));
  b.checkpoint = 8;
  assert_false(weir_cursor_equal(&a, &b));
  b = cursor(7, 4, 1);
  assert_false(weir_cursor_equal(&a, &b));
  b = cursor(7, 3, 1);
  b.digest[31] ^= 1;
  assert_false(weir_cursor_equal(&a, &b));
}

static void at_the_target_is_done(void **state) {
  (void)state;
  fixture f;
  fixture_init(&f);
  expect_first(&f, cursor(15, 5, 15), 3);
}

static void same_attempt_of_another_history_conflicts(void **state) {
  (void)state;
  fixture f;
  fixture_init(&f);
  expect_refused(&f, cursor(15, 5, 99), WEIR_E_CONFLICT);
  expect_refused(&f, cursor(15, 6, 15), WEIR_E_CONFLICT);
  expect_refused(&f, cursor(15, 4, 15), WEIR_E_CONFLICT);
}

static void above_the_target(void **state) {
  (void)state;
  fixture f;
  fixture_init(&f);
  expect_refused(&f, cursor(16, 6, 16), WEIR_E_FENCED);
  expect_refused(&f, cursor(UINT64_MAX, UINT64_MAX, 1), WEIR_E_FENCED);
  expect_refused(&f, cursor(16, 5, 16), WEIR_E_CONFLICT);
  expect_refused(&f, cursor(16, 4, 16), WEIR_E_CONFLICT);
}

static void below_in_this_history_publishes_the_rest(void **state) {
  (void)state;
  fixture f;
  fixture_init(&f);
  expect_first(&f, cursor(10, 4, 10), 0);
  expect_first(&f, cursor(12, 5, 12), 1);
  expect_first(&f, cursor(14, 5, 14), 2);
}

static void below_otherwise_conflicts(void **state) {
  (void)state;
  fixture f;
  fixture_init(&f);
  expect_refused(&f, cursor(10, 4, 99), WEIR_E_CONFLICT); /* predecessor, other digest */
  expect_refused(&f, cursor(10, 5, 10), WEIR_E_CONFLICT); /* predecessor, other token */
  expect_refused(&f, cursor(12, 4, 12), WEIR_E_CONFLICT); /* of the batch, other token */
  expect_refused(&f, cursor(14, 5, 99), WEIR_E_CONFLICT);
  expect_refused(&f, cursor(13, 5, 13), WEIR_E_CONFLICT); /* between */
  expect_refused(&f, cursor(9, 4, 9), WEIR_E_CONFLICT);   /* before the predecessor */
  expect_refused(&f, cursor(9, 9, 9),
                 WEIR_E_CONFLICT); /* a newer token below is no fence */
}

static void absent_needs_an_absent_predecessor(void **state) {
  (void)state;
  fixture f;
  fixture_init(&f);
  weir_cursor none = {0};
  expect_refused(&f, none, WEIR_E_CONFLICT);
  f.batch.accepted = &none; /* 'none' is no decided cursor */
  f.batch.n_accepted = 1;
  expect_refused(&f, none, WEIR_E_CONFLICT);
  memset(&f.batch.predecessor, 0, sizeof(f.batch.predecessor));
  f.batch.n_accepted = 0;
  expect_first(&f, none, 0);
  /* A target with a cursor where this history has none is another history's. */
  expect_refused(&f, cursor(3, 1, 3), WEIR_E_CONFLICT);
}

static void recovery_accepts_older_decided_cursors(void **state) {
  (void)state;
  fixture f;
  fixture_init(&f);
  f.accepted[0] = cursor(8, 3, 8);
  f.accepted[1] = cursor(9, 4, 9);
  f.batch.accepted = f.accepted;
  f.batch.n_accepted = 2;
  expect_first(&f, cursor(8, 3, 8), 0);
  expect_first(&f, cursor(9, 4, 9), 0);
  expect_first(&f, cursor(10, 4, 10), 0);
  expect_refused(&f, cursor(9, 4, 8), WEIR_E_CONFLICT);
  expect_refused(&f, cursor(7, 3, 7), WEIR_E_CONFLICT);
  f.accepted[1] =
      cursor(13, 5, 13); /* inside the batch's range: its rows would be skipped */
  expect_refused(&f, cursor(13, 5, 13), WEIR_E_CONFLICT);
}

static void both_cursors_are_named(void **state) {
  (void)state;
  fixture f;
  size_t first;
  weir_error err = {0};
  fixture_init(&f);
  weir_cursor observed = cursor(15, 6, 0xab);
  assert_int_equal(weir_commit_batch_start(&f.batch, &observed, &first, &err),
                   WEIR_E_CONFLICT);
  assert_non_null(strstr(err.message, "checkpoint 15, token 6, digest abababababab"));
  assert_non_null(strstr(err.message, "checkpoint 15, token 5, digest 0f0f0f0f0f0f"));
  assert_non_null(strstr(err.message, "lake"));
  assert_non_null(strstr(err.message, "orders"));
}

static void broken_batches_are_refused(void **state) {
  (void)state;
  fixture f;
  fixture_init(&f);
  f.batch.n_attempts = 0;
  expect_refused(&f, cursor(10, 4, 10), WEIR_E_INTERNAL);
  fixture_init(&f);
  f.attempts[1].cursor.checkpoint = 12;
  expect_refused(&f, cursor(10, 4, 10), WEIR_E_INTERNAL);
  fixture_init(&f);
  f.batch.predecessor.checkpoint = 12;
  expect_refused(&f, cursor(10, 4, 10), WEIR_E_INTERNAL);
  fixture_init(&f);
  weir_commit_entry entries[2] = {{.participant_id = 2}, {.participant_id = 2}};
  f.attempts[2].entries = entries;
  f.attempts[2].n_entries = 2;
  expect_refused(&f, cursor(10, 4, 10), WEIR_E_INTERNAL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(key_is_framed),
      cmocka_unit_test(equality_takes_all_three),
      cmocka_unit_test(at_the_target_is_done),
      cmocka_unit_test(same_attempt_of_another_history_conflicts),
      cmocka_unit_test(above_the_target),
      cmocka_unit_test(below_in_this_history_publishes_the_rest),
      cmocka_unit_test(below_otherwise_conflicts),
      cmocka_unit_test(absent_needs_an_absent_predecessor),
      cmocka_unit_test(recovery_accepts_older_decided_cursors),
      cmocka_unit_test(both_cursors_are_named),
      cmocka_unit_test(broken_batches_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
