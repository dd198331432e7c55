/* SPDX-License-Identifier: Apache-2.0 */
/* ctest: threads */
/* Whole pipelines whose connectors fail, hang or come late at every hook: how the run ends, and that the
 * rows are exact once all is well again. */
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
#include "support/probe.h"

#define SOON (40 * BASE_NS_PER_S)
#define ROWS 400

typedef struct bench {
  char folder[FOLDER_PATH];
  weir_pipeline *pipeline;
  weir_error err;
  char type[32], options[128];        /* of sink `out` */
  const char *source;                 /* options of `in` */
  const char *sources, *from, *sinks; /* further ones */
  const char *guarantee;
} bench;

static int set_up(void **state) {
  static bench b;
  memset(&b, 0, sizeof(b));
  snprintf(b.type, sizeof(b.type), "probe");
  b.source = b.sources = b.from = b.sinks = "";
  b.guarantee = "exactly_once";
  *state = &b;
  probe_reset();
  return folder_make(b.folder);
}

static void assert_nothing_alive(void) {
  int64_t deadline = base_deadline(SOON);
  probe_let_go();
  while (probe_alive() && base_clock_mono() < deadline) base_sleep(BASE_NS_PER_MS);
  assert_int_equal(probe_alive(), 0);
}

static int tear_down(void **state) {
  bench *b = *state;
  weir_pipeline_close(b->pipeline, 0, NULL);
  assert_nothing_alive();
  return folder_remove(b->folder);
}

static weir_config *config_of(const bench *b) {
  char yaml[2048];
  weir_config *config = NULL;
  weir_error err = {0};
  snprintf(yaml, sizeof(yaml),
           "pipeline: hooks\n"
           "guarantee: %s\n"
           "checkpoint: {interval: 10ms, timeout: 250ms}\n"
           "sources:\n"
           "  in: {type: numbers, rows: %d%s}\n"
           "%s"
           "sinks:\n"
           "  out: {type: %s, writers: 2, from: [in%s]%s}\n"
           "%s",
           b->guarantee, ROWS, b->source, b->sources, b->type, b->from, b->options,
           b->sinks);
  assert_int_equal(weir_config_new(&config, &err), WEIR_OK);
  if (weir_config_read(config, yaml, strlen(yaml), "test", b->folder, &err))
    fail_msg("%s\n%s", err.message, yaml);
  return config;
}

static weir_status open_flags(bench *b, uint32_t flags) {
  weir_config *config = config_of(b);
  weir_status status = weir_pipeline_open(config, NULL, flags, &b->pipeline, &b->err);
  weir_config_free(config);
  return status;
}

static weir_status close_now(bench *b) {
  weir_pipeline *p = b->pipeline;
  weir_error err = {0};
  b->pipeline = NULL;
  weir_status status = weir_pipeline_close(p, 0, &err);
  if (status) b->err = err;
  return status;
}

/* Until it ends or fails. */
static weir_status wait_for_end(bench *b) {
  weir_event event = {.struct_size = sizeof(event)};
  int64_t deadline = base_deadline(SOON);
  while (event.type != WEIR_EVENT_ENDED && event.type != WEIR_EVENT_FAILED) {
    if (base_clock_mono() > deadline) fail_msg("the run does not end");
    weir_pipeline_next(b->pipeline, &event, BASE_NS_PER_S, NULL);
  }
  if (event.type == WEIR_EVENT_FAILED) b->err = event.error;
  return event.type == WEIR_EVENT_FAILED ? event.error.code : WEIR_OK;
}

static weir_status deliver(bench *b, const probe_rule *rules) {
  probe_rules(rules);
  memset(&b->err, 0, sizeof(b->err));
  weir_status status = open_flags(b, 0);
  if (status) return status;
  status = wait_for_end(b);
  weir_status closed = close_now(b);
  return status ? status : closed;
}

static void assert_exact(const char *sink, uint64_t n) {
  probe_rows rows = probe_target(sink, n);
  assert_int_equal(rows.all, n);
  assert_int_equal(rows.once, n);
}

/* However the run before ended: the next one delivers the rest. */
static void assert_next_run_is_exact(bench *b) {
  probe_let_go();
  if (deliver(b, NULL)) fail_msg("%s", b->err.message);
  assert_exact("out", ROWS);
}

/* Hooks of a run, and the call that the rules are about: not the first where that is the start's. */
static const struct {
  const char *hook;
  int nth;
} hooks[] = {
    {"take_over", 1},
    {"observe_cursor", 1},
    {"checkpoint_artifact_intent", 1},
    {"checkpoint_artifact_intent", 3},
    {"begin_epoch", 1},
    {"begin_epoch", 4},
    {"write_batch", 1},
    {"write_batch", 9},
    {"pre_commit", 1},
    {"pre_commit", 4},
    {"commit_aggregated", 1},
    {"commit_aggregated", 2},
};

static const char *const ways[] = {", overlap: true", ", overlap: false",
                                   ", overlap: true, cas: false",
                                   ", overlap: false, cas: false"};

static void start_over(bench *b, const char *options) {
  char path[FOLDER_PATH + 64];
  probe_reset();
  snprintf(b->options, sizeof(b->options), "%s", options);
  snprintf(path, sizeof(path), "rm -rf %s/weir-state", b->folder);
  assert_int_equal(system(path), 0);
}

/* ---- what comes back ---------------------------------------------------------------------------- */

static void each_hook_once(bench *b, probe_act act, uint32_t flags, weir_status code) {
  for (size_t i = 0; i < sizeof(hooks) / sizeof(*hooks); i++) {
    const char *way = ways[i % 2];
    start_over(b, way);
    const probe_rule rules[] = {{hooks[i].hook, NULL, hooks[i].nth, 1, act, code, flags},
                                {0}};
    if (deliver(b, rules))
      fail_msg("%s %d%s: %s", hooks[i].hook, hooks[i].nth, way, b->err.message);
    if (probe_calls(hooks[i].hook) < hooks[i].nth)
      fail_msg("%s was not reached", hooks[i].hook);
    assert_exact("out", ROWS);
  }
}

static void test_a_retriable_failure_of_any_hook_is_tried_again(void **state) {
  each_hook_once(*state, PROBE_FAIL, WEIR_ERR_RETRIABLE, WEIR_E_IO);
}

static void test_a_hook_that_comes_back_late_is_tried_again(void **state) {
  each_hook_once(*state, PROBE_LATE, 0, 0);
}

static void test_a_cancel_safe_sink_lives_on_after_a_late_hook(void **state) {
  bench *b = *state;
  snprintf(b->type, sizeof(b->type), "probe_safe");
  for (size_t i = 0; i < sizeof(hooks) / sizeof(*hooks); i++) {
    start_over(b, ways[i % 2]);
    const probe_rule rules[] = {
        {.hook = hooks[i].hook, .nth = hooks[i].nth, .act = PROBE_LATE}, {0}};
    if (deliver(b, rules)) fail_msg("%s: %s", hooks[i].hook, b->err.message);
    assert_int_equal(probe_calls("create"), 2);
    assert_exact("out", ROWS);
  }
}

static void test_a_commit_whose_answer_is_lost_is_not_done_twice(void **state) {
  bench *b = *state;
  for (size_t w = 0; w < 4; w++) {
    start_over(b, ways[w]);
    const probe_rule rules[] = {
        {"commit_aggregated", NULL, 1, 2, PROBE_LANDED, WEIR_E_IO, WEIR_ERR_IN_DOUBT},
        {0}};
    if (deliver(b, rules)) fail_msg("%s", b->err.message);
    assert_exact("out", ROWS);
  }
}

/* ---- what stops ------------------------------------------------------------------------------------ */

static void test_a_fatal_failure_of_any_hook_stops_and_loses_nothing(void **state) {
  bench *b = *state;
  for (size_t i = 0; i < sizeof(hooks) / sizeof(*hooks); i++) {
    start_over(b, ways[i % 4]);
    const probe_rule rules[] = {
        {hooks[i].hook, NULL, hooks[i].nth, 1, PROBE_FAIL, WEIR_E_IO, 0}, {0}};
    bool commits = strcmp(hooks[i].hook, "commit_aggregated") == 0;
    assert_int_equal(deliver(b, rules), commits ? WEIR_E_CONFLICT : WEIR_E_IO);
    assert_non_null(strstr(b->err.message, "was told to fail"));
    assert_next_run_is_exact(b);
  }
}

static void test_bad_data_stops_at_once_and_says_so(void **state) {
  bench *b = *state;
  static const char *const of[] = {"write_batch", "pre_commit", "read", "position"};
  for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
    start_over(b, ways[i % 2]);
    const probe_rule rules[] = {{of[i], NULL, 1, 1000, PROBE_FAIL, WEIR_E_BAD_DATA, 0},
                                {0}};
    assert_int_equal(deliver(b, rules), WEIR_E_BAD_DATA);
    assert_next_run_is_exact(b);
  }
}

static void test_five_failures_for_one_cause_stop(void **state) {
  bench *b = *state;
  const probe_rule rules[] = {
      {"write_batch", NULL, 1, 1000, PROBE_FAIL, WEIR_E_IO, WEIR_ERR_RETRIABLE}, {0}};
  assert_int_equal(deliver(b, rules), WEIR_E_IO);
  assert_non_null(strstr(b->err.message, "5th since the last decision"));
  assert_next_run_is_exact(b);
}

static void test_a_failed_rollback_stops(void **state) {
  bench *b = *state;
  const probe_rule rules[] = {
      {"write_batch", NULL, 7, 1, PROBE_FAIL, WEIR_E_IO, WEIR_ERR_RETRIABLE},
      {"rollback_epoch", NULL, 1, 1, PROBE_FAIL, WEIR_E_IO, WEIR_ERR_RETRIABLE},
      {0}};
  assert_int_equal(deliver(b, rules), WEIR_E_IO);
  assert_non_null(strstr(b->err.message, "rollback"));
  assert_next_run_is_exact(b);
}

/* ---- what hangs -------------------------------------------------------------------------------------- */

static void test_a_hung_hook_costs_its_instance_and_no_row(void **state) {
  bench *b = *state;
  for (size_t i = 0; i < sizeof(hooks) / sizeof(*hooks); i++) {
    start_over(b, ways[i % 2]);
    const probe_rule rules[] = {
        {.hook = hooks[i].hook, .nth = hooks[i].nth, .act = PROBE_HANG}, {0}};
    if (deliver(b, rules)) fail_msg("%s: %s", hooks[i].hook, b->err.message);
    assert_int_equal(probe_hanging(), 1);
    assert_int_equal(probe_calls("create"), 3);
    assert_exact("out", ROWS);
    assert_nothing_alive();
    assert_exact("out", ROWS);
  }
}

static void *let_go_later(void *arg) {
  int64_t deadline = base_deadline(SOON);
  while (!probe_hanging() && base_clock_mono() < deadline) base_sleep(BASE_NS_PER_MS);
  base_sleep(*(int64_t *)arg);
  probe_let_go();
  return NULL;
}

/* Without a conditional step nothing is committed beside a thread that may still commit. */
static void test_no_commit_beside_a_hung_one(void **state) {
  bench *b = *state;
  for (size_t w = 2; w < 4; w++) {
    pthread_t thread;
    int64_t later = 2 * BASE_NS_PER_S;
    start_over(b, ways[w]);
    const probe_rule rules[] = {
        {.hook = "commit_aggregated", .nth = 2, .act = PROBE_HANG}, {0}};
    probe_rules(rules);
    assert_int_equal(base_thread_start(&thread, "later", let_go_later, &later, NULL), 0);
    if (open_flags(b, 0)) fail_msg("%s", b->err.message);
    weir_status status = wait_for_end(b);
    pthread_join(thread, NULL);
    if (status) fail_msg("%s: %s", ways[w], b->err.message);
    assert_int_equal(close_now(b), WEIR_OK);
    assert_exact("out", ROWS);
  }
}

static void test_an_instance_made_anew_may_find_its_target_away(void **state) {
  bench *b = *state;
  const probe_rule rules[] = {
      {.hook = "write_batch", .nth = 9, .act = PROBE_HANG},
      {"open", NULL, 3, 1, PROBE_FAIL, WEIR_E_IO, WEIR_ERR_RETRIABLE},
      {0}};
  if (deliver(b, rules)) fail_msg("%s", b->err.message);
  assert_exact("out", ROWS);
}

static void test_a_hung_rollback_stops(void **state) {
  bench *b = *state;
  const probe_rule rules[] = {
      {"write_batch", NULL, 7, 1, PROBE_FAIL, WEIR_E_IO, WEIR_ERR_RETRIABLE},
      {.hook = "rollback_epoch", .nth = 1, .act = PROBE_HANG},
      {0}};
  assert_int_equal(deliver(b, rules), WEIR_E_TIMEOUT);
  assert_next_run_is_exact(b);
}

static void test_a_cancel_safe_sink_that_hangs_all_the_same_is_given_up(void **state) {
  bench *b = *state;
  snprintf(b->type, sizeof(b->type), "probe_safe");
  const probe_rule rules[] = {{.hook = "write_batch", .nth = 9, .act = PROBE_HANG}, {0}};
  if (deliver(b, rules)) fail_msg("%s", b->err.message);
  assert_int_equal(probe_calls("create"), 3);
  assert_exact("out", ROWS);
}

static void test_a_hung_close_is_told_and_takes_nothing_from_others(void **state) {
  bench *b = *state;
  const probe_rule rules[] = {{.hook = "close", .nth = 1, .act = PROBE_HANG}, {0}};
  assert_int_equal(deliver(b, rules), WEIR_E_TIMEOUT);
  assert_non_null(strstr(b->err.message, "close did not come back"));
  assert_int_equal(probe_calls("close"), 2);
  assert_exact("out", ROWS);
}

static void test_a_hung_source_stops_the_run(void **state) {
  bench *b = *state;
  static const char *const of[] = {"read", "seek", "committed"};
  for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
    start_over(b, "");
    const probe_rule rules[] = {
        {.hook = of[i], .nth = i ? 1 : 9, .act = PROBE_HANG},
        {"write_batch", NULL, 9, 1, PROBE_FAIL, WEIR_E_IO, WEIR_ERR_RETRIABLE},
        {0}};
    weir_status status = deliver(b, rules);
    if (status != WEIR_E_TIMEOUT) fail_msg("%s: %d %s", of[i], status, b->err.message);
    assert_next_run_is_exact(b);
    assert_nothing_alive();
  }
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

static uint64_t lost_as_stored(const bench *b) {
  weir_bytes json = {0};
  weir_config *config = config_of(b);
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
  bench *b = *state;
  static const char *const of[] = {"write_batch", "pre_commit", "read", "begin_epoch",
                                   "position"};
  b->guarantee = "best_effort";
  b->source = ", replay: false";
  for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
    weir_bytes json = {0};
    start_over(b, ways[i % 2]);
    const probe_rule rules[] = {
        {of[i], NULL, 9, 1, PROBE_FAIL, WEIR_E_IO, WEIR_ERR_RETRIABLE}, {0}};
    probe_rules(rules);
    if (open_flags(b, 0) || wait_for_end(b)) fail_msg("%s: %s", of[i], b->err.message);
    assert_int_equal(probe_calls("seek"), 0);
    assert_int_equal(weir_pipeline_stats(b->pipeline, &json, &b->err), WEIR_OK);
    uint64_t lost = number_in(&json, "\"lost\":");
    assert_int_equal(number_in(&json, "\"rows\":"), ROWS - lost);
    weir_bytes_release(&json);
    assert_int_equal(close_now(b), WEIR_OK);
    probe_rows rows = probe_target("out", ROWS);
    assert_int_equal(rows.all, rows.once);
    assert_int_equal(rows.all, ROWS - lost);
    assert_true(i || lost >= 10); /* the batch that was refused, at least */
    assert_int_equal(lost_as_stored(b), lost);
  }
}

/* A source that has ended says so again, and its last rows are of no attempt any more. */
static void test_an_ephemeral_source_that_ended_ends_again(void **state) {
  bench *b = *state;
  const probe_rule rules[] = {
      {"pre_commit", NULL, 1, 1, PROBE_FAIL, WEIR_E_IO, WEIR_ERR_RETRIABLE}, {0}};
  b->guarantee = "best_effort";
  b->source = ", replay: false, batch_rows: 400";
  if (deliver(b, rules)) fail_msg("%s", b->err.message);
  assert_int_equal(probe_target("out", ROWS).all, 0);
  assert_int_equal(lost_as_stored(b), ROWS);
}

/* ---- opening ------------------------------------------------------------------------------------------ */

static void test_an_open_that_fails_leaves_nothing_behind(void **state) {
  bench *b = *state;
  static const char *const of[] = {
      "create",       "bind_runtime_context",  "resolve_schema", "prepare_schema", "open",
      "find_cursors", "source.resolve_schema", "source.open",    "take_over"};
  for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
    for (int nth = 1; nth <= 2; nth++) {
      start_over(b, "");
      const probe_rule rules[] = {{of[i], NULL, nth, 1, PROBE_FAIL, WEIR_E_IO, 0}, {0}};
      probe_rules(rules);
      weir_status status = open_flags(b, 0);
      if (probe_calls(of[i]) < nth) { /* once a run */
        assert_int_equal(nth, 2);
        close_now(b);
        continue;
      }
      assert_int_equal(status, WEIR_E_IO);
      assert_null(b->pipeline);
      assert_nothing_alive();
      /* Whoever was opened is closed. */
      int opened = probe_calls("open") - (strcmp(of[i], "open") == 0);
      assert_int_equal(probe_calls("close"), opened);
      assert_next_run_is_exact(b);
    }
  }
}

/* Each posts its end before the last one is started. */
static void test_sources_may_end_before_the_others_have_begun(void **state) {
  bench *b = *state;
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
  if (wait_for_end(b)) fail_msg("%s", b->err.message);
  assert_int_equal(close_now(b), WEIR_OK);
  assert_exact("out", 40);
}

/* ---- closing --------------------------------------------------------------------------------------------- */

static void test_a_close_at_any_moment_loses_nothing(void **state) {
  bench *b = *state;
  for (int i = 0; i < 40; i++) {
    probe_rules(NULL);
    snprintf(b->options, sizeof(b->options), "%s", ways[i % 2]);
    if (open_flags(b, 0)) fail_msg("%s", b->err.message);
    base_sleep(i * BASE_NS_PER_MS / 4);
    weir_status status = close_now(b);
    if (status && status != WEIR_E_CANCELLED) fail_msg("%s", b->err.message);
  }
  assert_next_run_is_exact(b);
}

static void test_two_pipelines_in_one_process(void **state) {
  bench *b = *state;
  static bench other;
  other = *b;
  assert_int_equal(folder_make(other.folder), 0);
  probe_rules(NULL);
  snprintf(b->options, sizeof(b->options), ", overlap: true");
  if (open_flags(b, 0)) fail_msg("%s", b->err.message);
  /* The same target under another deployment: refused, and the first goes on. */
  weir_status status = wait_for_end(b);
  assert_int_equal(status, WEIR_OK);
  assert_int_equal(open_flags(&other, 0), WEIR_E_CONFLICT);
  assert_non_null(strstr(other.err.message, "--new-deployment"));
  assert_int_equal(close_now(b), WEIR_OK);
  assert_exact("out", ROWS);
  assert_int_equal(folder_remove(other.folder), 0);
}

/* ---- many sinks, many sources ---------------------------------------------------------------------------- */

/* Failures here and there, of one seed after the other: the committable targets are exact, the durable one
 * has every row, whatever happened and however often the run had to be started again. */
static void test_mixed_sinks_and_sources_under_failures(void **state) {
  bench *b = *state;
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
  for (uint32_t seed = 1; seed <= 12; seed++) {
    uint32_t r = seed * 2654435761u;
    start_over(b, ways[seed % 2]);
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
      weir_status status = deliver(b, run < 3 ? rules : NULL);
      if (!status) break;
      if (status != WEIR_E_IO && status != WEIR_E_TIMEOUT)
        fail_msg("seed %u, run %d: %s", seed, run, b->err.message);
    }
    assert_exact("out", 800);
    assert_exact("second", 800);
    assert_int_equal(probe_target("durable", 800).there, 800);
    assert_nothing_alive();
  }
}

static void test_one_source_into_several_sinks(void **state) {
  bench *b = *state;
  b->sinks =
      "  second: {type: probe, overlap: true}\n"
      "  third: {type: file, path: third, format: ndjson, compression: none}\n";
  const probe_rule rules[] = {
      {"write_batch", "second", 9, 1, PROBE_FAIL, WEIR_E_IO, WEIR_ERR_RETRIABLE},
      {"pre_commit", "out", 3, 1, PROBE_FAIL, WEIR_E_IO, WEIR_ERR_RETRIABLE},
      {0}};
  if (deliver(b, rules)) fail_msg("%s", b->err.message);
  assert_exact("out", ROWS);
  assert_exact("second", ROWS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

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
      TEST(test_a_hung_hook_costs_its_instance_and_no_row),
      TEST(test_no_commit_beside_a_hung_one),
      TEST(test_an_instance_made_anew_may_find_its_target_away),
      TEST(test_a_hung_rollback_stops),
      TEST(test_a_cancel_safe_sink_that_hangs_all_the_same_is_given_up),
      TEST(test_a_hung_close_is_told_and_takes_nothing_from_others),
      TEST(test_a_hung_source_stops_the_run),
      TEST(test_an_abort_loses_what_an_ephemeral_source_gave_and_counts_it),
      TEST(test_an_ephemeral_source_that_ended_ends_again),
      TEST(test_an_open_that_fails_leaves_nothing_behind),
      TEST(test_sources_may_end_before_the_others_have_begun),
      TEST(test_a_close_at_any_moment_loses_nothing),
      TEST(test_two_pipelines_in_one_process),
      TEST(test_mixed_sinks_and_sources_under_failures),
      TEST(test_one_source_into_several_sinks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
