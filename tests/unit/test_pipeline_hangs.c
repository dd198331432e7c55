/* SPDX-License-Identifier: Apache-2.0 */
/* ctest: threads */
/* Whole pipelines whose connectors hang at a hook: deadlines, instances that are retired, and an end that
 * comes in bounded time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/weir.h>

#include "base/base.h"
#include "support/folder.h"
#include "support/hooks.h"

/* ---- what hangs -------------------------------------------------------------------------------------- */

static void test_a_hung_hook_costs_its_instance_and_no_row(void **state) {
  hooks_bench *b = *state;
  for (size_t i = 0; i < HOOKS_CALLS; i++) {
    hooks_start_over(b, hooks_ways[i % 2]);
    const probe_rule rules[] = {
        {.hook = hooks_calls[i].hook, .nth = hooks_calls[i].nth, .act = PROBE_HANG}, {0}};
    if (hooks_deliver(b, rules)) fail_msg("%s: %s", hooks_calls[i].hook, b->err.message);
    assert_int_equal(probe_hanging(), 1);
    assert_int_equal(probe_calls("create"), 3);
    hooks_assert_exact("out", HOOKS_ROWS);
    hooks_assert_nothing_alive();
    hooks_assert_exact("out", HOOKS_ROWS);
  }
}

/* Each hook has a deadline of its own, whatever the checkpoint's timeout; the message names the call. */
static void test_each_hook_has_a_deadline_of_its_own(void **state) {
  hooks_bench *b = *state;
  static const struct {
    const char *hook, *options;
    int nth;
    const char *also; /* a hook that fails once, so that this one is called */
  } of[] = {
      {"take_over", "commit", 1, NULL},
      {"observe_cursor", "commit", 1, NULL},
      {"checkpoint_artifact_intent", "begin", 1, NULL},
      {"begin_epoch", "begin", 1, NULL},
      {"pre_commit", "pre_commit", 1, NULL},
      {"commit_aggregated", "commit", 1, NULL},
      {"clean", "clean", 1, "pre_commit"},
  };
  b->timeout = "60s";
  for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
    char options[160];
    snprintf(options, sizeof(options), ", overlap: %s, timeouts: {%s: 100ms}",
             i % 2 ? "true" : "false", of[i].options);
    hooks_start_over(b, options);
    const probe_rule rules[] = {
        {.hook = of[i].hook, .nth = of[i].nth, .act = PROBE_HANG},
        {of[i].also, NULL, 3, 1, PROBE_FAIL, WEIR_E_IO, WEIR_ERR_RETRIABLE},
        {0}};
    int64_t began = base_clock_mono();
    if (hooks_deliver(b, rules)) fail_msg("%s: %s", of[i].hook, b->err.message);
    assert_true(base_clock_mono() - began < 60 * BASE_NS_PER_S);
    assert_int_equal(probe_hanging(), 1);
    /* The last thing of a run may be a cleaner, after which no instance is needed. */
    if (!of[i].also) assert_int_equal(probe_calls("create"), 3);
    hooks_assert_exact("out", HOOKS_ROWS);
    hooks_assert_nothing_alive();
  }
}

/* Where nothing is left to be made anew, the run ends in time and says why. */
static void test_a_hook_that_hangs_at_the_edges_ends_the_run_by_its_own_deadline(
    void **state) {
  hooks_bench *b = *state;
  static const struct {
    const char *hook, *option;
  } of[] = {{"resolve_schema", "open"},
            {"prepare_schema", "open"},
            {"open", "open"},
            {"rollback_epoch", "rollback"},
            {"close", "close"}};
  b->timeout = "60s";
  for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
    char options[160], said[64];
    snprintf(options, sizeof(options), ", timeouts: {%s: 100ms}", of[i].option);
    snprintf(said, sizeof(said), "%s did not come back", of[i].hook);
    hooks_start_over(b, options);
    const probe_rule rules[] = {
        {.hook = of[i].hook, .nth = 1, .act = PROBE_HANG},
        {"write_batch", NULL, 7, 1, PROBE_FAIL, WEIR_E_IO, WEIR_ERR_RETRIABLE},
        {0}};
    assert_int_equal(hooks_deliver(b, rules), WEIR_E_TIMEOUT);
    if (!strstr(b->err.message, said)) fail_msg("%s: %s", of[i].hook, b->err.message);
    b->timeout = "250ms";
    hooks_assert_next_run_is_exact(b);
    b->timeout = "60s";
    hooks_assert_nothing_alive();
  }
}

/* The connector's suggestion (of the probe: 300 ms), or `write_timeout` in its place; no other hook's. */
static void test_the_write_timeout_is_of_write_batch_alone(void **state) {
  hooks_bench *b = *state;
  b->timeout = "60s";
  for (int given = 0; given <= 1; given++) {
    hooks_start_over(b, given ? ", write_timeout: 60s, timeouts: {pre_commit: 100ms}"
                              : ", timeouts: {pre_commit: 60s}");
    const probe_rule rules[] = {
        {.hook = given ? "pre_commit" : "write_batch", .nth = 3, .act = PROBE_HANG}, {0}};
    int64_t began = base_clock_mono();
    if (hooks_deliver(b, rules)) fail_msg("%s", b->err.message);
    assert_true(base_clock_mono() - began < 60 * BASE_NS_PER_S);
    assert_int_equal(probe_calls("create"), 3);
    hooks_assert_exact("out", HOOKS_ROWS);
    hooks_assert_nothing_alive();
  }
}

static void test_a_hung_flush_is_given_up_by_its_own_deadline(void **state) {
  hooks_bench *b = *state;
  b->timeout = "60s";
  b->guarantee = "at_least_once";
  snprintf(b->type, sizeof(b->type), "probe_weak");
  snprintf(b->options, sizeof(b->options),
           ", kind: durable, flush_interval: 1ms, timeouts: {flush: 100ms}");
  const probe_rule rules[] = {{.hook = "flush", .nth = 1, .act = PROBE_HANG}, {0}};
  if (hooks_deliver(b, rules)) fail_msg("%s", b->err.message);
  assert_int_equal(probe_calls("create"), 3);
  assert_int_equal(probe_target("out", HOOKS_ROWS).there, HOOKS_ROWS);
}

static void *let_go_later(void *arg) {
  int64_t deadline = base_deadline(HOOKS_SOON);
  while (!probe_hanging() && base_clock_mono() < deadline) base_sleep(BASE_NS_PER_MS);
  base_sleep(*(int64_t *)arg);
  probe_let_go();
  return NULL;
}

/* Without a conditional step nothing is committed beside a thread that may still commit. */
static void test_no_commit_beside_a_hung_one(void **state) {
  hooks_bench *b = *state;
  for (size_t w = 2; w < 4; w++) {
    pthread_t thread;
    int64_t later = BASE_NS_PER_S / 2;
    char options[128];
    snprintf(options, sizeof(options), "%s, timeouts: {commit: 100ms}", hooks_ways[w]);
    hooks_start_over(b, options);
    const probe_rule rules[] = {
        {.hook = "commit_aggregated", .nth = 2, .act = PROBE_HANG}, {0}};
    probe_rules(rules);
    assert_int_equal(base_thread_start(&thread, "later", let_go_later, &later, NULL), 0);
    if (hooks_open(b)) fail_msg("%s", b->err.message);
    weir_status status = hooks_wait(b);
    pthread_join(thread, NULL);
    if (status) fail_msg("%s: %s", hooks_ways[w], b->err.message);
    assert_int_equal(hooks_close(b), WEIR_OK);
    hooks_assert_exact("out", HOOKS_ROWS);
  }
}

static void test_an_instance_made_anew_may_find_its_target_away(void **state) {
  hooks_bench *b = *state;
  const probe_rule rules[] = {
      {.hook = "write_batch", .nth = 9, .act = PROBE_HANG},
      {"open", NULL, 3, 1, PROBE_FAIL, WEIR_E_IO, WEIR_ERR_RETRIABLE},
      {0}};
  if (hooks_deliver(b, rules)) fail_msg("%s", b->err.message);
  hooks_assert_exact("out", HOOKS_ROWS);
}

static void test_a_hung_rollback_stops(void **state) {
  hooks_bench *b = *state;
  const probe_rule rules[] = {
      {"write_batch", NULL, 7, 1, PROBE_FAIL, WEIR_E_IO, WEIR_ERR_RETRIABLE},
      {.hook = "rollback_epoch", .nth = 1, .act = PROBE_HANG},
      {0}};
  assert_int_equal(hooks_deliver(b, rules), WEIR_E_TIMEOUT);
  hooks_assert_next_run_is_exact(b);
}

static void test_a_cancel_safe_sink_that_hangs_all_the_same_is_given_up(void **state) {
  hooks_bench *b = *state;
  snprintf(b->type, sizeof(b->type), "probe_safe");
  const probe_rule rules[] = {{.hook = "write_batch", .nth = 9, .act = PROBE_HANG}, {0}};
  if (hooks_deliver(b, rules)) fail_msg("%s", b->err.message);
  assert_int_equal(probe_calls("create"), 3);
  hooks_assert_exact("out", HOOKS_ROWS);
}

static void test_a_hung_close_is_told_and_takes_nothing_from_others(void **state) {
  hooks_bench *b = *state;
  const probe_rule rules[] = {{.hook = "close", .nth = 1, .act = PROBE_HANG}, {0}};
  assert_int_equal(hooks_deliver(b, rules), WEIR_E_TIMEOUT);
  assert_non_null(strstr(b->err.message, "close did not come back"));
  assert_int_equal(probe_calls("close"), 2);
  hooks_assert_exact("out", HOOKS_ROWS);
}

/* By a deadline of its own, whatever the checkpoint's timeout, or else by that. */
static void test_a_hung_source_stops_the_run(void **state) {
  hooks_bench *b = *state;
  static const struct {
    const char *hook, *options;
  } of[] = {{"read", ""},
            {"seek", ""},
            {"committed", ""},
            {"read", ", timeouts: {read: 100ms}"},
            {"seek", ", timeouts: {read: 100ms}"},
            {"source.open", ", timeouts: {open: 100ms}"}};
  for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
    hooks_start_over(b, "");
    b->source = of[i].options;
    b->timeout = *b->source ? "60s" : "250ms";
    const probe_rule rules[] = {
        {.hook = of[i].hook,
         .nth = strcmp(of[i].hook, "read") == 0 ? 9 : 1,
         .act = PROBE_HANG},
        {"write_batch", NULL, 9, 1, PROBE_FAIL, WEIR_E_IO, WEIR_ERR_RETRIABLE},
        {0}};
    weir_status status = hooks_deliver(b, rules);
    if (status != WEIR_E_TIMEOUT)
      fail_msg("%s: %d %s", of[i].hook, status, b->err.message);
    b->source = "";
    b->timeout = "250ms";
    hooks_assert_next_run_is_exact(b);
    hooks_assert_nothing_alive();
  }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, hooks_set_up, hooks_tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_a_hung_hook_costs_its_instance_and_no_row),
      TEST(test_each_hook_has_a_deadline_of_its_own),
      TEST(test_a_hook_that_hangs_at_the_edges_ends_the_run_by_its_own_deadline),
      TEST(test_the_write_timeout_is_of_write_batch_alone),
      TEST(test_a_hung_flush_is_given_up_by_its_own_deadline),
      TEST(test_no_commit_beside_a_hung_one),
      TEST(test_an_instance_made_anew_may_find_its_target_away),
      TEST(test_a_hung_rollback_stops),
      TEST(test_a_cancel_safe_sink_that_hangs_all_the_same_is_given_up),
      TEST(test_a_hung_close_is_told_and_takes_nothing_from_others),
      TEST(test_a_hung_source_stops_the_run),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
