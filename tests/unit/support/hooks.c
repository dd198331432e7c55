/* SPDX-License-Identifier: Apache-2.0 */
#include "support/hooks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <stdio.h>

int hooks_set_up(void **state) {
  static hooks_bench b;
  memset(&b, 0, sizeof(b));
  snprintf(b.type, sizeof(b.type), "probe");
  b.source = ", barriers: 4";
  b.sources = b.from = b.sinks = "";
  b.guarantee = "exactly_once";
  b.timeout = "250ms";
  *state = &b;
  probe_reset();
  return folder_make(b.folder);
}

void hooks_assert_nothing_alive(void) {
  int64_t deadline = base_deadline(HOOKS_SOON);
  probe_let_go();
  while (probe_alive() && base_clock_mono() < deadline) base_sleep(BASE_NS_PER_MS);
  assert_int_equal(probe_alive(), 0);
}

int hooks_tear_down(void **state) {
  hooks_bench *b = *state;
  weir_pipeline_close(b->pipeline, 0, NULL);
  hooks_assert_nothing_alive();
  return folder_remove(b->folder);
}

weir_config *hooks_config(const hooks_bench *b) {
  char yaml[2048];
  weir_config *config = NULL;
  weir_error err = {0};
  snprintf(yaml, sizeof(yaml),
           "pipeline: hooks\n"
           "guarantee: %s\n"
           "checkpoint: {interval: 10ms, timeout: %s}\n"
           "sources:\n"
           "  in: {type: numbers, rows: %d%s}\n"
           "%s"
           "sinks:\n"
           "  out: {type: %s, writers: 2, from: [in%s]%s}\n"
           "%s",
           b->guarantee, b->timeout, HOOKS_ROWS, b->source, b->sources, b->type, b->from,
           b->options, b->sinks);
  assert_int_equal(weir_config_new(&config, &err), WEIR_OK);
  if (weir_config_read(config, yaml, strlen(yaml), "test", b->folder, &err))
    fail_msg("%s\n%s", err.message, yaml);
  return config;
}

weir_status hooks_open(hooks_bench *b) {
  weir_config *config = hooks_config(b);
  weir_status status = weir_pipeline_open(config, NULL, 0, &b->pipeline, &b->err);
  weir_config_free(config);
  return status;
}

weir_status hooks_close(hooks_bench *b) {
  weir_pipeline *p = b->pipeline;
  weir_error err = {0};
  b->pipeline = NULL;
  weir_status status = weir_pipeline_close(p, 0, &err);
  if (status) b->err = err;
  return status;
}

weir_status hooks_wait(hooks_bench *b) {
  weir_event event = {.struct_size = sizeof(event)};
  int64_t deadline = base_deadline(HOOKS_SOON);
  while (event.type != WEIR_EVENT_ENDED && event.type != WEIR_EVENT_FAILED) {
    if (base_clock_mono() > deadline) fail_msg("the run does not end");
    weir_pipeline_next(b->pipeline, &event, BASE_NS_PER_S, NULL);
  }
  if (event.type == WEIR_EVENT_FAILED) b->err = event.error;
  return event.type == WEIR_EVENT_FAILED ? event.error.code : WEIR_OK;
}

weir_status hooks_deliver(hooks_bench *b, const probe_rule *rules) {
  probe_rules(rules);
  memset(&b->err, 0, sizeof(b->err));
  weir_status status = hooks_open(b);
  if (status) return status;
  status = hooks_wait(b);
  weir_status closed = hooks_close(b);
  return status ? status : closed;
}

void hooks_assert_exact(const char *sink, uint64_t n) {
  probe_rows rows = probe_target(sink, n);
  assert_int_equal(rows.all, n);
  assert_int_equal(rows.once, n);
}

void hooks_assert_next_run_is_exact(hooks_bench *b) {
  probe_let_go();
  if (hooks_deliver(b, NULL)) fail_msg("%s", b->err.message);
  hooks_assert_exact("out", HOOKS_ROWS);
}

const hooks_call hooks_calls[HOOKS_CALLS] = {
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

const char *const hooks_ways[4] = {", overlap: true", ", overlap: false",
                                   ", overlap: true, cas: false",
                                   ", overlap: false, cas: false"};

void hooks_start_over(hooks_bench *b, const char *options) {
  char path[FOLDER_PATH + 64];
  probe_reset();
  snprintf(b->options, sizeof(b->options), "%s", options);
  snprintf(path, sizeof(path), "rm -rf %s/weir-state", b->folder);
  assert_int_equal(system(path), 0);
}
