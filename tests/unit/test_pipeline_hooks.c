/* SPDX-License-Identifier: Apache-2.0 */
/* ctest: threads */
/* Whole pipelines whose connectors fail or come late at every hook: how the run ends, and that the rows are
 * exact once all is well again. Those that hang: test_pipeline_hangs.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weir/weir.h>

#include "base/base.h"
#include "store/store.h"
#include "support/folder.h"
#include "support/hooks.h"

/* ---- what comes back ---------------------------------------------------------------------------- */

/* A short deadline for the hook that is to miss it, and for no other: on a busy machine any may. */
static void set_way(char way[160], size_t i, bool late) {
  static const char *const deadlines[][2] = {
      {"write_batch", ", write_timeout: 300ms"},
      {"pre_commit", ", timeouts: {pre_commit: 300ms}"},
      {"begin_epoch", ", timeouts: {begin: 300ms}"},
      {"checkpoint_artifact_intent", ", timeouts: {begin: 300ms}"}};
  const char *deadline = ", timeouts: {commit: 300ms}";
  for (size_t k = 0; k < BASE_COUNT(deadlines); k++)
    if (strcmp(deadlines[k][0], hooks_calls[i].hook) == 0) deadline = deadlines[k][1];
  snprintf(way, 160, "%s%s", hooks_ways[i % 2], late ? deadline : "");
}

static void each_hook_once(hooks_bench *b, probe_act act, uint32_t flags,
                           weir_status code) {
  for (size_t i = 0; i < HOOKS_CALLS; i++) {
    char way[160];
    set_way(way, i, act == PROBE_LATE);
    hooks_start_over(b, way);
    const probe_rule rules[] = {
        {hooks_calls[i].hook, NULL, hooks_calls[i].nth, 1, act, code, flags}, {0}};
    if (hooks_deliver(b, rules))
      fail_msg("%s %d%s: %s", hooks_calls[i].hook, hooks_calls[i].nth, way,
               b->err.message);
    if (probe_calls(hooks_calls[i].hook) < hooks_calls[i].nth)
      fail_msg("%s was not reached", hooks_calls[i].hook);
    hooks_assert_exact("out", HOOKS_ROWS);
  }
}

static void test_a_retriable_failure_of_any_hook_is_tried_again(void **state) {
  each_hook_once(*state, PROBE_FAIL, WEIR_ERR_RETRIABLE, WEIR_E_IO);
}

static void test_a_hook_that_comes_back_late_is_tried_again(void **state) {
  each_hook_once(*state, PROBE_LATE, 0, 0);
}

static void test_a_cancel_safe_sink_lives_on_after_a_late_hook(void **state) {
  hooks_bench *b = *state;
  snprintf(b->type, sizeof(b->type), "probe_safe");
  for (size_t i = 0; i < HOOKS_CALLS; i++) {
    char way[160];
    set_way(way, i, true);
    hooks_start_over(b, way);
    const probe_rule rules[] = {
        {.hook = hooks_calls[i].hook, .nth = hooks_calls[i].nth, .act = PROBE_LATE}, {0}};
    if (hooks_deliver(b, rules)) fail_msg("%s: %s", hooks_calls[i].hook, b->err.message);
    assert_int_equal(probe_calls("create"), 2);
    hooks_assert_exact("out", HOOKS_ROWS);
  }
}

static void test_a_commit_whose_answer_is_lost_is_not_done_twice(void **state) {
  hooks_bench *b = *state;
  for (size_t w = 0; w < 4; w++) {
    hooks_start_over(b, hooks_ways[w]);
    const probe_rule rules[] = {
        {"commit_aggregated", NULL, 1, 2, PROBE_LANDED, WEIR_E_IO, WEIR_ERR_IN_DOUBT},
        {0}};
    if (hooks_deliver(b, rules)) fail_msg("%s", b->err.message);
    hooks_assert_exact("out", HOOKS_ROWS);
  }
}

/* ---- what stops ------------------------------------------------------------------------------------ */

static void test_a_fatal_failure_of_any_hook_stops_and_loses_nothing(void **state) {
  hooks_bench *b = *state;
  for (size_t i = 0; i < HOOKS_CALLS; i++) {
    hooks_start_over(b, hooks_ways[i % 4]);
    const probe_rule rules[] = {
        {hooks_calls[i].hook, NULL, hooks_calls[i].nth, 1, PROBE_FAIL, WEIR_E_IO, 0},
        {0}};
    bool commits = strcmp(hooks_calls[i].hook, "commit_aggregated") == 0;
    assert_int_equal(hooks_deliver(b, rules), commits ? WEIR_E_CONFLICT : WEIR_E_IO);
    assert_non_null(strstr(b->err.message, "was told to fail"));
    hooks_assert_next_run_is_exact(b);
  }
}

static void test_bad_data_stops_at_once_and_says_so(void **state) {
  hooks_bench *b = *state;
  static const char *const of[] = {"write_batch", "pre_commit", "read", "position"};
  for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
    hooks_start_over(b, hooks_ways[i % 2]);
    const probe_rule rules[] = {{of[i], NULL, 1, 1000, PROBE_FAIL, WEIR_E_BAD_DATA, 0},
                                {0}};
    assert_int_equal(hooks_deliver(b, rules), WEIR_E_BAD_DATA);
    hooks_assert_next_run_is_exact(b);
  }
}

static void test_five_failures_for_one_cause_stop(void **state) {
  hooks_bench *b = *state;
  const probe_rule rules[] = {
      {"write_batch", NULL, 1, 1000, PROBE_FAIL, WEIR_E_IO, WEIR_ERR_RETRIABLE}, {0}};
  assert_int_equal(hooks_deliver(b, rules), WEIR_E_IO);
  assert_non_null(strstr(b->err.message, "5th since the last decision"));
  hooks_assert_next_run_is_exact(b);
}

static void test_a_failed_rollback_stops(void **state) {
  hooks_bench *b = *state;
  const probe_rule rules[] = {
      {"write_batch", NULL, 7, 1, PROBE_FAIL, WEIR_E_IO, WEIR_ERR_RETRIABLE},
      {"rollback_epoch", NULL, 1, 1, PROBE_FAIL, WEIR_E_IO, WEIR_ERR_RETRIABLE},
      {0}};
  assert_int_equal(hooks_deliver(b, rules), WEIR_E_IO);
  assert_non_null(strstr(b->err.message, "rollback"));
  hooks_assert_next_run_is_exact(b);
}

/* Protocol C9. Nothing else is written to the store meanwhile, which would find it out. */
static void test_a_commit_is_not_repeated_without_the_lease(void **state) {
  hooks_bench *b = *state;
  weir_store *newer = NULL;
  char folder[FOLDER_PATH + 32], lock[FOLDER_PATH + 64];
  const probe_rule rules[] = {
      {"commit_aggregated", NULL, 1, 1000, PROBE_FAIL, WEIR_E_IO, WEIR_ERR_RETRIABLE},
      {0}};
  snprintf(folder, sizeof(folder), "%s/weir-state/hooks", b->folder);
  snprintf(lock, sizeof(lock), "%s/lock", folder);
  hooks_start_over(b, "");
  probe_rules(rules);
  assert_int_equal(hooks_open(b), WEIR_OK);
  int64_t deadline = base_deadline(HOOKS_SOON);
  while (probe_calls("commit_aggregated") < 4 && base_clock_mono() < deadline)
    base_sleep(BASE_NS_PER_MS);
  assert_int_equal(unlink(lock), 0);
  assert_int_equal(weir_store_open(folder, "hooks", &newer, &b->err), WEIR_OK);
  int calls = probe_calls("commit_aggregated");
  assert_int_equal(hooks_wait(b), WEIR_E_FENCED);
  assert_in_range(probe_calls("commit_aggregated"), 4, calls + 1);
  hooks_close(b);
  weir_store_close(newer);
  hooks_assert_next_run_is_exact(b);
}

/* ---- what cannot be read again ------------------------------------------------------------------------- */

/* The first number behind a member's name in a JSON document. */
static uint64_t number_in(const weir_bytes *json, const char *member) {
  const char *at = memmem(json->data, json->size, member, strlen(member));
  if (!at) fail_msg("no %s in %.*s", member, (int)json->size, (const char *)json->data);
  char digits[24] = {0}; /* the document ends without a NUL */
  const char *end = (const char *)json->data + json->size;
  at += strlen(member);
  for (size_t i = 0; at < end && *at >= '0' && *at <= '9' && i < sizeof(digits) - 1; i++)
    digits[i] = *at++;
  return strtoull(digits, NULL, 10);
}

static uint64_t lost_as_stored(const hooks_bench *b) {
  weir_bytes json = {0};
  weir_config *config = hooks_config(b);
  weir_error err = {0};
  if (weir_pipeline_status(config, &json, &err)) fail_msg("%s", err.message);
  uint64_t lost = number_in(&json, "\"lost\":");
  weir_bytes_release(&json);
  weir_config_free(config);
  return lost;
}

/* The run goes on where the source stands: its epochs stay whole, nothing comes twice, and what is
 * missing is counted, live and in the store. */
static void test_an_abort_loses_what_an_ephemeral_source_gave_and_counts_it(
    void **state) {
  hooks_bench *b = *state;
  static const char *const of[] = {"write_batch", "pre_commit", "read", "begin_epoch",
                                   "position"};
  b->guarantee = "best_effort";
  b->source = ", replay: false";
  for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
    weir_bytes json = {0};
    hooks_start_over(b, hooks_ways[i % 2]);
    const probe_rule rules[] = {
        {of[i], NULL, 9, 1, PROBE_FAIL, WEIR_E_IO, WEIR_ERR_RETRIABLE}, {0}};
    probe_rules(rules);
    if (hooks_open(b) || hooks_wait(b)) fail_msg("%s: %s", of[i], b->err.message);
    assert_int_equal(probe_calls("seek"), 0);
    assert_int_equal(weir_pipeline_stats(b->pipeline, &json, &b->err), WEIR_OK);
    uint64_t lost = number_in(&json, "\"lost\":");
    assert_int_equal(number_in(&json, "\"rows\":"), HOOKS_ROWS - lost);
    weir_bytes_release(&json);
    assert_int_equal(hooks_close(b), WEIR_OK);
    probe_rows rows = probe_target("out", HOOKS_ROWS);
    assert_int_equal(rows.all, rows.once);
    assert_int_equal(rows.all, HOOKS_ROWS - lost);
    assert_true(i || lost >= 10); /* the batch that was refused, at least */
    assert_int_equal(lost_as_stored(b), lost);
  }
}

/* A source that has ended says so again, and its last rows are of no attempt any more. */
static void test_an_ephemeral_source_that_ended_ends_again(void **state) {
  hooks_bench *b = *state;
  const probe_rule rules[] = {
      {"pre_commit", NULL, 1, 1, PROBE_FAIL, WEIR_E_IO, WEIR_ERR_RETRIABLE}, {0}};
  b->guarantee = "best_effort";
  b->source = ", replay: false, batch_rows: 400";
  if (hooks_deliver(b, rules)) fail_msg("%s", b->err.message);
  assert_int_equal(probe_target("out", HOOKS_ROWS).all, 0);
  assert_int_equal(lost_as_stored(b), HOOKS_ROWS);
}

/* ---- what a configuration decides ---------------------------------------------------------------------- */

static void test_changes_by_key_need_a_sink_that_applies_them(void **state) {
  hooks_bench *b = *state;
  b->source = ", changes: true";
  assert_int_equal(hooks_deliver(b, NULL), WEIR_E_ADMISSION);
  assert_non_null(strstr(b->err.message, "changelog: as_rows"));
  assert_int_equal(probe_calls("resolve_schema"), 0);
  hooks_start_over(b, ", changelog: as_rows");
  if (hooks_deliver(b, NULL)) fail_msg("%s", b->err.message);
  hooks_assert_exact("out", HOOKS_ROWS);
}

static void test_keyed_rows_are_exact_over_several_writers(void **state) {
  hooks_bench *b = *state;
  b->source = ", changes: true";
  static const char *const of[] = {"write_batch", "pre_commit", "commit_aggregated"};
  for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
    hooks_start_over(b, i % 2 ? ", key: [a], overlap: true" : ", key: [a]");
    const probe_rule rules[] = {
        {of[i], NULL, 2, 1, PROBE_FAIL, WEIR_E_IO, WEIR_ERR_RETRIABLE}, {0}};
    if (hooks_deliver(b, rules)) fail_msg("%s", b->err.message);
    hooks_assert_exact("out", HOOKS_ROWS);
  }
}

/* What the schemas refuse is refused before anything is made at a target. */
static void test_nothing_is_prepared_before_the_second_admission(void **state) {
  hooks_bench *b = *state;
  b->source = ", changes: true";
  hooks_start_over(b, ", key: [nobody]");
  assert_int_equal(hooks_deliver(b, NULL), WEIR_E_SCHEMA);
  assert_non_null(strstr(b->err.message, "'nobody'"));
  assert_int_equal(probe_calls("resolve_schema"), 1);
  assert_int_equal(probe_calls("prepare_schema"), 0);
  assert_int_equal(probe_calls("open"), 0);
}

typedef struct watcher {
  atomic_bool stop;
  int resolving, preparing; /* at once, at the most */
} watcher;

/* All calls hang until this lets them go. */
static void *watch_hanging(void *arg) {
  watcher *w = arg;
  int64_t deadline = base_deadline(HOOKS_SOON);
  while (probe_hanging() < 8 && base_clock_mono() < deadline) base_sleep(BASE_NS_PER_MS);
  while (!atomic_load(&w->stop)) {
    base_sleep(10 * BASE_NS_PER_MS);
    int now = probe_hanging();
    int *most = probe_calls("prepare_schema") ? &w->preparing : &w->resolving;
    if (now > *most) *most = now;
    probe_let_go();
  }
  return NULL;
}

static void test_targets_are_resolved_8_at_a_time_and_prepared_one_by_one(void **state) {
  hooks_bench *b = *state;
  char sinks[800] = "";
  size_t at = 0;
  for (int i = 0; i < 11; i++)
    at += (size_t)snprintf(sinks + at, sizeof(sinks) - at, "  s%d: {type: probe}\n", i);
  b->sinks = sinks;
  watcher w = {0};
  pthread_t thread;
  assert_int_equal(base_thread_start(&thread, "watch", watch_hanging, &w, NULL), 0);
  const probe_rule rules[] = {{"resolve_schema", NULL, 1, 100, PROBE_HANG, 0, 0},
                              {"prepare_schema", NULL, 1, 100, PROBE_HANG, 0, 0},
                              {0}};
  probe_rules(rules);
  weir_status status = hooks_open(b);
  atomic_store(&w.stop, true);
  pthread_join(thread, NULL);
  if (status) fail_msg("%s", b->err.message);
  assert_int_equal(w.resolving, 8);
  assert_int_equal(w.preparing, 1);
}

/* The probe refuses any other; so do the instances that are made anew. */
static void test_every_instance_is_opened_with_the_binding_of_prepare_schema(
    void **state) {
  hooks_bench *b = *state;
  const probe_rule rules[] = {{.hook = "write_batch", .nth = 9, .act = PROBE_LATE}, {0}};
  if (hooks_deliver(b, rules)) fail_msg("%s", b->err.message);
  assert_int_equal(probe_calls("prepare_schema"), 1);
  assert_in_range(probe_calls("open"), 3, HOOKS_ROWS);
  assert_int_equal(probe_calls("open"), probe_calls("create"));
  hooks_assert_exact("out", HOOKS_ROWS);
}

/* `probe` has a committer in its table; of this kind it gives none. */
static void test_a_committer_may_be_there_for_some_configurations_only(void **state) {
  hooks_bench *b = *state;
  b->guarantee = "at_least_once";
  hooks_start_over(b, ", kind: durable");
  if (hooks_deliver(b, NULL)) fail_msg("%s", b->err.message);
  assert_int_equal(probe_target("out", HOOKS_ROWS).there, HOOKS_ROWS);
  assert_int_equal(probe_calls("commit_aggregated"), 0);
}

static bool has_text(const weir_bytes *json, const char *text) {
  return memmem(json->data, json->size, text, strlen(text)) != NULL;
}

static void test_live_stats_show_what_is_decided_and_not_at_its_target(void **state) {
  hooks_bench *b = *state;
  const probe_rule rules[] = {
      {"commit_aggregated", NULL, 1, 100000, PROBE_FAIL, WEIR_E_IO, WEIR_ERR_RETRIABLE},
      {0}};
  int64_t deadline = base_deadline(HOOKS_SOON);
  bool seen = false;
  probe_rules(rules);
  if (hooks_open(b)) fail_msg("%s", b->err.message);
  while (!seen && base_clock_mono() < deadline) {
    weir_bytes json = {0};
    assert_int_equal(weir_pipeline_stats(b->pipeline, &json, &b->err), WEIR_OK);
    seen = has_text(&json, "{\"attempt\":1,\"state\":\"decided\",\"sink\":\"out\"}");
    weir_bytes_release(&json);
    base_sleep(BASE_NS_PER_MS);
  }
  assert_true(seen);
  probe_rules(NULL);
  if (hooks_wait(b)) fail_msg("%s", b->err.message);
  weir_bytes json = {0};
  assert_int_equal(weir_pipeline_stats(b->pipeline, &json, &b->err), WEIR_OK);
  assert_true(has_text(&json, "\"unresolved\":[]"));
  weir_bytes_release(&json);
  assert_int_equal(hooks_close(b), WEIR_OK);
  hooks_assert_exact("out", HOOKS_ROWS);
}

static void test_check_warns_of_a_target_without_claims(void **state) {
  hooks_bench *b = *state;
  weir_bytes json = {0};
  weir_config *config = hooks_config(b);
  assert_int_equal(weir_pipeline_check(config, &json, &b->err), WEIR_OK);
  assert_true(has_text(&json, "sink out: connector probe keeps no deployment claims"));
  weir_bytes_release(&json);
  weir_config_free(config);
}

static void test_a_committable_sink_never_sees_the_flush_timer(void **state) {
  hooks_bench *b = *state;
  if (hooks_deliver(b, NULL)) fail_msg("%s", b->err.message);
  assert_int_equal(probe_calls("flush"), 0);
  hooks_start_over(b, ", flush_interval: 1s");
  assert_int_equal(hooks_deliver(b, NULL), WEIR_E_INVALID_CONFIG);
}

/* ---- opening ------------------------------------------------------------------------------------------ */

static void test_an_open_that_fails_leaves_nothing_behind(void **state) {
  hooks_bench *b = *state;
  static const char *const of[] = {
      "create",       "bind_runtime_context",  "resolve_schema", "prepare_schema", "open",
      "find_cursors", "source.resolve_schema", "source.open",    "take_over"};
  for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
    for (int nth = 1; nth <= 2; nth++) {
      hooks_start_over(b, "");
      const probe_rule rules[] = {{of[i], NULL, nth, 1, PROBE_FAIL, WEIR_E_IO, 0}, {0}};
      probe_rules(rules);
      weir_status status = hooks_open(b);
      if (probe_calls(of[i]) < nth) { /* once a run */
        assert_int_equal(nth, 2);
        hooks_close(b);
        continue;
      }
      assert_int_equal(status, WEIR_E_IO);
      assert_null(b->pipeline);
      hooks_assert_nothing_alive();
      /* Whoever was opened is closed. */
      int opened = probe_calls("open") - (strcmp(of[i], "open") == 0);
      assert_int_equal(probe_calls("close"), opened);
      hooks_assert_next_run_is_exact(b);
    }
  }
}

/* Each posts its end before the last one is started. */
static void test_sources_may_end_before_the_others_have_begun(void **state) {
  hooks_bench *b = *state;
  char yaml[8192];
  int at = snprintf(yaml, sizeof(yaml), "pipeline: many\nsources:\n");
  for (int i = 0; i < 40; i++)
    at += snprintf(yaml + at, sizeof(yaml) - (size_t)at,
                   "  s%d: {type: numbers, rows: 1, first: %d}\n", i, i);
  at += snprintf(yaml + at, sizeof(yaml) - (size_t)at,
                 "sinks:\n  out: {type: probe, from: [s0");
  for (int i = 1; i < 40; i++)
    at += snprintf(yaml + at, sizeof(yaml) - (size_t)at, ", s%d", i);
  snprintf(yaml + at, sizeof(yaml) - (size_t)at, "]}\n");
  weir_config *config = NULL;
  assert_int_equal(weir_config_new(&config, NULL), WEIR_OK);
  assert_int_equal(
      weir_config_read(config, yaml, strlen(yaml), "test", b->folder, &b->err), WEIR_OK);
  if (weir_pipeline_open(config, NULL, 0, &b->pipeline, &b->err))
    fail_msg("%s", b->err.message);
  weir_config_free(config);
  if (hooks_wait(b)) fail_msg("%s", b->err.message);
  assert_int_equal(hooks_close(b), WEIR_OK);
  hooks_assert_exact("out", 40);
}

/* ---- closing --------------------------------------------------------------------------------------------- */

static void test_a_close_at_any_moment_loses_nothing(void **state) {
  hooks_bench *b = *state;
  for (int i = 0; i < 40; i++) {
    probe_rules(NULL);
    snprintf(b->options, sizeof(b->options), "%s", hooks_ways[i % 2]);
    if (hooks_open(b)) fail_msg("%s", b->err.message);
    base_sleep(i * BASE_NS_PER_MS / 4);
    weir_status status = hooks_close(b);
    if (status && status != WEIR_E_CANCELLED) fail_msg("%s", b->err.message);
  }
  hooks_assert_next_run_is_exact(b);
}

static void test_two_pipelines_in_one_process(void **state) {
  hooks_bench *b = *state;
  static hooks_bench other;
  other = *b;
  assert_int_equal(folder_make(other.folder), 0);
  probe_rules(NULL);
  snprintf(b->options, sizeof(b->options), ", overlap: true");
  if (hooks_open(b)) fail_msg("%s", b->err.message);
  /* The same target under another deployment: refused, and the first goes on. */
  weir_status status = hooks_wait(b);
  assert_int_equal(status, WEIR_OK);
  assert_int_equal(hooks_open(&other), WEIR_E_CONFLICT);
  assert_non_null(strstr(other.err.message, "--new-deployment"));
  assert_int_equal(hooks_close(b), WEIR_OK);
  hooks_assert_exact("out", HOOKS_ROWS);
  assert_int_equal(folder_remove(other.folder), 0);
}

/* ---- many sinks, many sources ---------------------------------------------------------------------------- */

/* Failures here and there, of one seed after the other: the committable targets are exact, the durable one
 * has every row, whatever happened and however often the run had to be started again. */
static void test_mixed_sinks_and_sources_under_failures(void **state) {
  hooks_bench *b = *state;
  static const char *const of[] = {
      "write_batch", "pre_commit", "commit_aggregated",
      "begin_epoch", "flush",      "read",
      "seek",        "committed",  "checkpoint_artifact_intent",
      "clean"};
  static const char *const sinks[] = {NULL, "out", "second", "durable", "loose"};
  b->sources = "  two: {type: numbers, rows: 400, first: 400}\n";
  b->from = ", two";
  b->sinks =
      "  second: {type: probe_safe, overlap: true, from: [two, in]}\n"
      "  durable: {type: probe_weak, kind: durable, writers: 2, flush_interval: 3ms, "
      "from: "
      "[in, two]}\n"
      "  loose: {type: probe_weak, kind: ephemeral, from: [two]}\n";
  b->guarantee = "best_effort";
  b->timeout = "250ms"; /* of the hooks, too: it is what makes any of them late */
  for (uint32_t seed = 1; seed <= 12; seed++) {
    uint32_t r = seed * 2654435761u;
    hooks_start_over(b, hooks_ways[seed % 2]);
    for (int run = 0;; run++) {
      assert_true(run < 20);
      probe_rule rules[5] = {{0}};
      for (int i = 0; i < 4; i++) {
        r = r * 1664525u + 1013904223u;
        const char *hook = of[(r >> 8) % 10];
        bool commits = strcmp(hook, "commit_aggregated") == 0;
        rules[i] = (probe_rule){hook,
                                sinks[(r >> 12) % 5],
                                1 + (int)((r >> 16) % 20),
                                1,
                                (r >> 24) % 4 ? PROBE_FAIL : PROBE_LATE,
                                WEIR_E_IO,
                                commits ? WEIR_ERR_IN_DOUBT : WEIR_ERR_RETRIABLE};
        if (commits && (r >> 26) % 2) rules[i].act = PROBE_LANDED;
        if (strcmp(hook, "seek") == 0 || strcmp(hook, "read") == 0)
          rules[i].act = PROBE_FAIL;
      }
      weir_status status = hooks_deliver(b, run < 3 ? rules : NULL);
      if (!status) break;
      if (status != WEIR_E_IO && status != WEIR_E_TIMEOUT)
        fail_msg("seed %u, run %d: %s", seed, run, b->err.message);
    }
    hooks_assert_exact("out", 800);
    hooks_assert_exact("second", 800);
    assert_int_equal(probe_target("durable", 800).there, 800);
    hooks_assert_nothing_alive();
  }
}

static void test_one_source_into_several_sinks(void **state) {
  hooks_bench *b = *state;
  b->sinks =
      "  second: {type: probe, overlap: true}\n"
      "  third: {type: file, path: third, format: ndjson, compression: none}\n";
  const probe_rule rules[] = {
      {"write_batch", "second", 9, 1, PROBE_FAIL, WEIR_E_IO, WEIR_ERR_RETRIABLE},
      {"pre_commit", "out", 3, 1, PROBE_FAIL, WEIR_E_IO, WEIR_ERR_RETRIABLE},
      {0}};
  if (hooks_deliver(b, rules)) fail_msg("%s", b->err.message);
  hooks_assert_exact("out", HOOKS_ROWS);
  hooks_assert_exact("second", HOOKS_ROWS);
}

/* Few tests here are about the deadline of a checkpoint. */
static int set_up(void **state) {
  int status = hooks_set_up(state);
  hooks_bench *b = *state;
  b->timeout = "60s";
  return status;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, hooks_tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_a_retriable_failure_of_any_hook_is_tried_again),
      TEST(test_a_hook_that_comes_back_late_is_tried_again),
      TEST(test_a_cancel_safe_sink_lives_on_after_a_late_hook),
      TEST(test_a_commit_whose_answer_is_lost_is_not_done_twice),
      TEST(test_a_fatal_failure_of_any_hook_stops_and_loses_nothing),
      TEST(test_bad_data_stops_at_once_and_says_so),
      TEST(test_five_failures_for_one_cause_stop),
      TEST(test_a_failed_rollback_stops),
      TEST(test_a_commit_is_not_repeated_without_the_lease),
      TEST(test_an_abort_loses_what_an_ephemeral_source_gave_and_counts_it),
      TEST(test_an_ephemeral_source_that_ended_ends_again),
      TEST(test_changes_by_key_need_a_sink_that_applies_them),
      TEST(test_keyed_rows_are_exact_over_several_writers),
      TEST(test_nothing_is_prepared_before_the_second_admission),
      TEST(test_targets_are_resolved_8_at_a_time_and_prepared_one_by_one),
      TEST(test_every_instance_is_opened_with_the_binding_of_prepare_schema),
      TEST(test_a_committer_may_be_there_for_some_configurations_only),
      TEST(test_live_stats_show_what_is_decided_and_not_at_its_target),
      TEST(test_check_warns_of_a_target_without_claims),
      TEST(test_a_committable_sink_never_sees_the_flush_timer),
      TEST(test_an_open_that_fails_leaves_nothing_behind),
      TEST(test_sources_may_end_before_the_others_have_begun),
      TEST(test_a_close_at_any_moment_loses_nothing),
      TEST(test_two_pipelines_in_one_process),
      TEST(test_mixed_sinks_and_sources_under_failures),
      TEST(test_one_source_into_several_sinks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
