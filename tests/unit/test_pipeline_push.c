/* SPDX-License-Identifier: Apache-2.0 */
/* ctest: threads */
/* Hosts that push: what they are told when things go wrong, and that nothing keeps them waiting. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <weir/weir.h>

#include "base/base.h"
#include "support/folder.h"
#include "support/probe.h"
#include "support/rows.h"

#define SOON (40 * BASE_NS_PER_S)

typedef struct host {
  char folder[FOLDER_PATH];
  weir_pipeline *pipeline;
  weir_schema *schema;
  weir_error err;
} host;

static int set_up(void **state) {
  static host h;
  memset(&h, 0, sizeof(h));
  h.schema = rows_schema("a: int64");
  *state = &h;
  probe_reset();
  return folder_make(h.folder);
}

static int tear_down(void **state) {
  host *h = *state;
  weir_pipeline_close(h->pipeline, 0, NULL);
  weir_schema_unref(h->schema);
  assert_int_equal(probe_alive(), 0);
  return folder_remove(h->folder);
}

static void open_with(host *h, const char *source, const char *sink) {
  char yaml[1024];
  weir_config *config = NULL;
  snprintf(yaml, sizeof(yaml),
           "pipeline: push\ncheckpoint: {interval: 1h, timeout: 2s}\nqueue_bytes: 64KiB\n"
           "sources:\n  in: {type: push%s}\nsinks:\n  out: {type: probe%s}\n",
           source, sink);
  assert_int_equal(weir_config_new(&config, NULL), WEIR_OK);
  if (weir_config_read(config, yaml, strlen(yaml), "test", h->folder, &h->err))
    fail_msg("%s", h->err.message);
  if (weir_pipeline_open(config, NULL, 0, &h->pipeline, &h->err))
    fail_msg("%s", h->err.message);
  weir_config_free(config);
}

static weir_input *input(host *h, uint32_t lane) {
  weir_input *in = NULL;
  if (weir_pipeline_input(h->pipeline, "in", lane, NULL, &in, &h->err))
    fail_msg("%s", h->err.message);
  return in;
}

static weir_status push(host *h, weir_input *in, int first, int n, int64_t timeout,
                        weir_error *err) {
  base_buf text = {0};
  struct ArrowArray array = {0};
  for (int i = first; i < first + n; i++)
    base_buf_printf(&text, NULL, "{\"a\": %d}\n", i);
  base_buf_terminate(&text, NULL);
  weir_batch *batch = rows_batch(h->schema, (char *)text.data);
  assert_int_equal(weir_batch_export(batch, &array, NULL), WEIR_OK);
  weir_batch_unref(batch);
  base_buf_done(&text);
  weir_status status = weir_input_push(in, &array, timeout, err);
  if (array.release) array.release(&array);
  return status;
}

static weir_event next_event(host *h, int64_t timeout) {
  weir_event event = {.struct_size = sizeof(event)};
  assert_int_equal(weir_pipeline_next(h->pipeline, &event, timeout, NULL), WEIR_OK);
  return event;
}

/* The next event of that type; others are passed over. */
static weir_event wait_for(host *h, int32_t type) {
  weir_event event = {0};
  int64_t deadline = base_deadline(SOON);
  do event = next_event(h, BASE_NS_PER_S);
  while (event.type != type && base_clock_mono() < deadline);
  assert_int_equal(event.type, type);
  return event;
}

/* ---- tests --------------------------------------------------------------------------------------- */

#define SCHEMA ", schema: {a: int64}"

typedef struct pusher {
  host *h;
  weir_input *in;
  weir_status status;
  weir_error err;
} pusher;

static void *push_for_ever(void *arg) {
  pusher *p = arg;
  while (!(p->status = push(p->h, p->in, 0, 1000, -1, &p->err))) continue;
  return NULL;
}

/* The first batch hangs, so the queue fills up; then the pipeline stops. */
static void test_no_push_waits_for_a_pipeline_that_has_stopped(void **state) {
  host *h = *state;
  const probe_rule rules[] = {{.hook = "pre_commit", .nth = 1, .act = PROBE_FAIL}, {0}};
  pthread_t thread;
  weir_bytes at = {0};
  uint64_t id = 0;
  open_with(h, SCHEMA ", lanes: 2", "");
  probe_rules(rules);
  pusher p = {h, input(h, 0), WEIR_OK, {0}};
  weir_input *other = input(h, 1);
  assert_int_equal(weir_pipeline_checkpoint(h->pipeline, &id, NULL), WEIR_OK);
  id = wait_for(h, WEIR_EVENT_BARRIER).checkpoint;
  assert_int_equal(weir_input_barrier(p.in, id, "x", 1, NULL), WEIR_OK);
  /* Behind its barrier nothing is taken: the queue fills up. */
  assert_int_equal(base_thread_start(&thread, "pusher", push_for_ever, &p, NULL),
                   WEIR_OK);
  assert_int_equal(weir_input_barrier(other, id, "x", 1, NULL), WEIR_OK);
  wait_for(h, WEIR_EVENT_FAILED);
  pthread_join(thread, NULL);
  assert_true(p.status == WEIR_E_ENDED || p.status == WEIR_E_REWOUND);
  assert_int_equal(push(h, other, 0, 1, -1, NULL), WEIR_E_ENDED);
  /* Stopped in the middle of a rewind: there is no position to wait for. */
  assert_int_equal(weir_input_position(p.in, &at, &h->err), WEIR_E_ENDED);
}

/* A host that learned of a rewind by its push and read the position has pushed on since: were it sent back
 * once more, rows would be doubled. */
static void test_a_rewind_is_told_once(void **state) {
  host *h = *state;
  const probe_rule rules[] = {
      {"write_batch", NULL, 1, 1, PROBE_FAIL, WEIR_E_IO, WEIR_ERR_RETRIABLE}, {0}};
  weir_bytes at = {0};
  open_with(h, SCHEMA, "");
  probe_rules(rules);
  weir_input *in = input(h, 0);
  weir_status status = WEIR_OK;
  while (!status || status == WEIR_E_TIMEOUT) status = push(h, in, 0, 1, 0, NULL);
  assert_int_equal(status, WEIR_E_REWOUND);
  assert_int_equal(weir_input_position(in, &at, NULL), WEIR_OK);
  assert_null(at.release);
  assert_int_equal(push(h, in, 0, 5, 0, NULL), WEIR_OK);
  assert_int_equal(weir_input_end(in, "5", 1, NULL), WEIR_OK);
  weir_event event = {0};
  while ((event = next_event(h, SOON)).type != WEIR_EVENT_ENDED)
    assert_int_not_equal(event.type, WEIR_EVENT_REWIND);
  assert_int_equal(probe_target("out", 5).all, 5);
}

/* The other way round: the event comes first, and a barrier that is not wanted any more is refused. */
static void test_a_rewind_takes_the_barrier_back(void **state) {
  host *h = *state;
  const probe_rule rules[] = {
      {"write_batch", NULL, 1, 1, PROBE_FAIL, WEIR_E_IO, WEIR_ERR_RETRIABLE}, {0}};
  weir_bytes at = {0};
  uint64_t id = 0;
  open_with(h, SCHEMA, "");
  probe_rules(rules);
  weir_input *in = input(h, 0);
  assert_int_equal(weir_pipeline_checkpoint(h->pipeline, &id, NULL), WEIR_OK);
  id = wait_for(h, WEIR_EVENT_BARRIER).checkpoint;
  assert_int_equal(push(h, in, 0, 1, 0, NULL), WEIR_OK);
  assert_ptr_equal(wait_for(h, WEIR_EVENT_REWIND).input, in);
  assert_int_equal(weir_input_barrier(in, id, "x", 1, &h->err), WEIR_E_REWOUND);
  assert_int_equal(weir_input_position(in, &at, NULL), WEIR_OK);
  assert_int_equal(weir_input_barrier(in, id, "x", 1, &h->err), WEIR_E_INVALID_STATE);
  assert_int_equal(push(h, in, 0, 3, SOON, NULL), WEIR_OK);
  assert_int_equal(weir_input_end(in, "3", 1, NULL), WEIR_OK);
  wait_for(h, WEIR_EVENT_ENDED);
  assert_int_equal(probe_target("out", 3).once, 3);
}

/* An input that ended is live again, and ends again. */
static void test_an_end_that_is_rewound_is_sent_again(void **state) {
  host *h = *state;
  const probe_rule rules[] = {
      {"pre_commit", NULL, 1, 1, PROBE_FAIL, WEIR_E_IO, WEIR_ERR_RETRIABLE}, {0}};
  weir_bytes at = {0};
  open_with(h, SCHEMA, "");
  probe_rules(rules);
  weir_input *in = input(h, 0);
  for (int round = 0; round < 2; round++) {
    assert_int_equal(push(h, in, 0, 3, SOON, NULL), WEIR_OK);
    assert_int_equal(weir_input_end(in, "3", 1, NULL), WEIR_OK);
    if (round) break;
    wait_for(h, WEIR_EVENT_REWIND);
    assert_int_equal(weir_input_position(in, &at, NULL), WEIR_OK);
  }
  wait_for(h, WEIR_EVENT_ENDED);
  assert_int_equal(probe_target("out", 3).all, 3);
}

static void test_a_drain_that_nobody_answers_ends(void **state) {
  host *h = *state;
  open_with(h, SCHEMA, "");
  assert_int_equal(push(h, input(h, 0), 0, 3, 0, NULL), WEIR_OK);
  assert_int_equal(weir_pipeline_close(h->pipeline, 50 * BASE_NS_PER_MS, &h->err),
                   WEIR_E_CANCELLED);
  h->pipeline = NULL;
  assert_int_equal(probe_target("out", 3).all, 0);
}

/* A rewind whose host never reads the position holds the pipeline; closing it does not wait for that. */
static void test_a_close_in_the_middle_of_a_rewind(void **state) {
  host *h = *state;
  const probe_rule rules[] = {
      {"write_batch", NULL, 1, 1, PROBE_FAIL, WEIR_E_IO, WEIR_ERR_RETRIABLE}, {0}};
  open_with(h, SCHEMA, "");
  probe_rules(rules);
  assert_int_equal(push(h, input(h, 0), 0, 3, 0, NULL), WEIR_OK);
  wait_for(h, WEIR_EVENT_REWIND);
  assert_int_equal(weir_pipeline_close(h->pipeline, 20 * BASE_NS_PER_MS, NULL),
                   WEIR_E_CANCELLED);
  h->pipeline = NULL;
}

static void leave(struct ArrowArray *array) {
  array->release = NULL;
}

/* Three rows of column `a`, text, with the offsets that a test gives. */
typedef struct text_rows {
  const void *none[1], *buffers[3];
  struct ArrowArray column, *children[1], top;
} text_rows;

static struct ArrowArray *text_rows_init(text_rows *t, const int32_t *offsets) {
  *t = (text_rows){.buffers = {NULL, offsets, "hello"}};
  t->column = (struct ArrowArray){
      .length = 3, .n_buffers = 3, .buffers = t->buffers, .release = leave};
  t->children[0] = &t->column;
  t->top = (struct ArrowArray){.length = 3,
                               .n_buffers = 1,
                               .n_children = 1,
                               .buffers = t->none,
                               .children = t->children,
                               .release = leave};
  return &t->top;
}

/* Offsets that fall within a column are found by the sink's thread, before the sink reads them; those that
 * end before they begin by the push. */
static void test_broken_offsets_stop_the_pipeline_before_the_sink(void **state) {
  host *h = *state;
  text_rows rows;
  open_with(h, ", schema: {a: utf8}", "");
  weir_input *in = input(h, 0);
  struct ArrowArray *array = text_rows_init(&rows, (int32_t[]){0, 4, 2, -1});
  assert_int_equal(weir_input_push(in, array, 0, &h->err), WEIR_E_CORRUPT);
  assert_non_null(strstr(h->err.message, "column 0 'a': falling offset"));
  array = text_rows_init(&rows, (int32_t[]){0, 4, 2, 5});
  assert_int_equal(weir_input_push(in, array, 0, &h->err), WEIR_OK);
  weir_event event = wait_for(h, WEIR_EVENT_FAILED);
  assert_int_equal(event.error.code, WEIR_E_CORRUPT);
  assert_non_null(strstr(event.error.message, "column 0 'a': falling offset at slot 1"));
  assert_int_equal(probe_target("out", 3).all, 0);
}

/* Rows that are sent by key are read by the push itself. */
static void test_broken_offsets_of_a_key_are_refused(void **state) {
  host *h = *state;
  text_rows rows;
  open_with(h, ", schema: {a: utf8}", ", key: [a]");
  struct ArrowArray *array = text_rows_init(&rows, (int32_t[]){0, 1 << 20, 2, 5});
  assert_int_equal(weir_input_push(input(h, 0), array, 0, &h->err), WEIR_E_CORRUPT);
  assert_non_null(strstr(h->err.message, "column 0 'a': falling offset at slot 1"));
  assert_non_null(array->release);
}

static void *ask_for_lane(void *arg) {
  pusher *p = arg;
  p->status = weir_pipeline_input(p->h->pipeline, "in", p->err.column == 1, /* the lane */
                                  weir_schema_arrow(p->h->schema), &p->in, NULL);
  if (!p->status) p->status = push(p->h, p->in, 0, 1, SOON, NULL);
  return NULL;
}

/* Whichever comes first starts the pipeline; the others find it started. */
static void test_inputs_may_be_asked_for_by_many_threads(void **state) {
  host *h = *state;
  pthread_t threads[2];
  pusher p[2] = {{h, NULL, WEIR_OK, {.column = 0}}, {h, NULL, WEIR_OK, {.column = 1}}};
  open_with(h, ", lanes: 2", "");
  for (int i = 0; i < 2; i++)
    assert_int_equal(base_thread_start(&threads[i], "asker", ask_for_lane, &p[i], NULL),
                     WEIR_OK);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(p[i].status, WEIR_OK);
    assert_int_equal(weir_input_end(p[i].in, NULL, 0, NULL), WEIR_OK);
  }
  wait_for(h, WEIR_EVENT_ENDED);
  assert_int_equal(probe_target("out", 1).all, 2);
}

static void test_a_start_that_failed_says_so_again(void **state) {
  host *h = *state;
  const probe_rule rules[] = {{.hook = "open", .nth = 1, .act = PROBE_FAIL}, {0}};
  weir_input *in = NULL;
  weir_error first = {0}, second = {0};
  open_with(h, "", "");
  probe_rules(rules);
  assert_int_equal(weir_pipeline_input(h->pipeline, "in", 0, weir_schema_arrow(h->schema),
                                       &in, &first),
                   WEIR_E_IO);
  assert_int_equal(weir_pipeline_input(h->pipeline, "in", 0, NULL, &in, &second),
                   WEIR_E_IO);
  assert_string_equal(first.message, second.message);
  assert_null(in);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_no_push_waits_for_a_pipeline_that_has_stopped),
      TEST(test_a_rewind_is_told_once),
      TEST(test_a_rewind_takes_the_barrier_back),
      TEST(test_an_end_that_is_rewound_is_sent_again),
      TEST(test_a_drain_that_nobody_answers_ends),
      TEST(test_a_close_in_the_middle_of_a_rewind),
      TEST(test_broken_offsets_stop_the_pipeline_before_the_sink),
      TEST(test_broken_offsets_of_a_key_are_refused),
      TEST(test_inputs_may_be_asked_for_by_many_threads),
      TEST(test_a_start_that_failed_says_so_again),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
