/* SPDX-License-Identifier: Apache-2.0 */
/* ctest: threads */
/* A pipeline as an embedding program meets it: pushes, barriers, events, rewinds, the end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>
#include <dirent.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/weir.h>

#include "base/base.h"
#include "support/folder.h"
#include "support/rows.h"

#define SOON (30 * BASE_NS_PER_S)

typedef struct host {
  char folder[FOLDER_PATH];
  weir_pipeline *pipeline;
  weir_schema *schema;
  weir_error err;
} host;

static int set_up(void **state) {
  static host h;
  memset(&h, 0, sizeof(h));
  *state = &h;
  h.schema = rows_schema("a: int64");
  return folder_make(h.folder);
}

static int tear_down(void **state) {
  host *h = *state;
  weir_pipeline_close(h->pipeline, 0, NULL);
  weir_schema_unref(h->schema);
  return folder_remove(h->folder);
}

static weir_config *config_of(const host *h, const char *lanes, bool with_schema) {
  char yaml[1024];
  weir_config *config = NULL;
  weir_error err = {0};
  snprintf(yaml, sizeof(yaml),
           "pipeline: embedded\n"
           "checkpoint: {interval: 1h, timeout: 20s}\n"
           "queue_bytes: 64KiB\n"
           "sources:\n"
           "  in: {type: push, lanes: %s%s}\n"
           "sinks:\n"
           "  out: {type: file, path: out, format: ndjson, compression: none}\n",
           lanes, with_schema ? ", schema: {a: int64}" : "");
  assert_int_equal(weir_config_new(&config, &err), WEIR_OK);
  if (weir_config_read(config, yaml, strlen(yaml), "test", h->folder, &err))
    fail_msg("%s", err.message);
  return config;
}

static weir_status open_pipeline(host *h, const char *lanes, bool with_schema) {
  weir_config *config = config_of(h, lanes, with_schema);
  weir_status status = weir_pipeline_open(config, NULL, 0, &h->pipeline, &h->err);
  weir_config_free(config);
  return status;
}

static weir_input *open_with_input(host *h) {
  weir_input *in = NULL;
  if (open_pipeline(h, "1", true) ||
      weir_pipeline_input(h->pipeline, "in", 0, NULL, &in, &h->err))
    fail_msg("%s", h->err.message);
  return in;
}

/* Rows first .. first + n - 1 of column a. */
static weir_status push_rows(host *h, weir_input *in, int first, int n, int64_t timeout) {
  base_buf text = {0};
  struct ArrowArray array = {0};
  for (int i = first; i < first + n; i++)
    base_buf_printf(&text, NULL, "{\"a\": %d}\n", i);
  base_buf_terminate(&text, NULL);
  weir_batch *batch = rows_batch(h->schema, (char *)text.data);
  assert_int_equal(weir_batch_export(batch, &array, NULL), WEIR_OK);
  weir_batch_unref(batch);
  base_buf_done(&text);
  weir_status status = weir_input_push(in, &array, timeout, &h->err);
  /* Moved on OK, else still the caller's. */
  assert_int_equal(array.release == NULL, status == WEIR_OK);
  if (array.release) array.release(&array);
  return status;
}

static weir_event wait_for(host *h, int32_t type) {
  weir_event event = {.struct_size = sizeof(event)};
  int64_t deadline = base_deadline(SOON);
  do {
    assert_int_equal(weir_pipeline_next(h->pipeline, &event, BASE_NS_PER_S, NULL),
                     WEIR_OK);
    if (event.type == WEIR_EVENT_FAILED && type != WEIR_EVENT_FAILED)
      fail_msg("%s", event.error.message);
  } while (event.type != type && base_clock_mono() < deadline);
  assert_int_equal(event.type, type);
  return event;
}

static int position_of(weir_input *in) {
  weir_bytes at = {0};
  int position = 0;
  weir_error err = {0};
  if (weir_input_position(in, &at, &err)) fail_msg("%s", err.message);
  if (at.release) {
    assert_int_equal(at.size, sizeof(position));
    memcpy(&position, at.data, sizeof(position));
  }
  weir_bytes_release(&at);
  return position;
}

/* Published rows as a set: each of 0 .. n-1 once. */
static void assert_published(const host *h, int n) {
  char path[FOLDER_PATH + 300];
  int *seen = calloc((size_t)n + 1, sizeof(*seen)), rows = 0;
  snprintf(path, sizeof(path), "%s/out", h->folder);
  DIR *dir = opendir(path);
  assert_non_null(dir);
  for (struct dirent *e; (e = readdir(dir));) {
    if (e->d_name[0] == '.') continue;
    snprintf(path, sizeof(path), "%s/out/%s", h->folder, e->d_name);
    FILE *f = fopen(path, "r");
    int a = -1;
    assert_non_null(f);
    while (fscanf(f, "{\"a\":%d}\n", &a) == 1) {
      assert_in_range(a, 0, n - 1);
      seen[a]++;
      rows++;
    }
    assert_true(feof(f));
    fclose(f);
  }
  closedir(dir);
  for (int i = 0; i < n; i++) assert_int_equal(seen[i], 1);
  assert_int_equal(rows, n);
  free(seen);
}

static void end_and_close(host *h, weir_input *in, int position) {
  assert_int_equal(weir_input_end(in, &position, sizeof(position), &h->err), WEIR_OK);
  wait_for(h, WEIR_EVENT_ENDED);
  assert_int_equal(weir_pipeline_close(h->pipeline, 0, &h->err), WEIR_OK);
  h->pipeline = NULL;
}

/* ---- tests -------------------------------------------------------------------------------------- */

#ifdef WEIR_FAULTS
static void test_a_failed_write_rewinds_and_the_host_replays(void **state) {
  host *h = *state;
  weir_input *in = open_with_input(h);
  int next = position_of(in), rewinds = 0;
  while (next < 100) {
    weir_status status = push_rows(h, in, next, 10, SOON);
    if (!status) {
      next += 10;
    } else {
      assert_int_equal(status, WEIR_E_REWOUND);
      next = position_of(in);
      rewinds++; /* ... and no event sends us there again */
    }
    weir_event event = {.struct_size = sizeof(event)};
    weir_pipeline_next(h->pipeline, &event, 50 * BASE_NS_PER_MS, NULL);
    if (event.type != WEIR_EVENT_REWIND) continue;
    assert_ptr_equal(event.input, in);
    next = position_of(in);
    rewinds++;
  }
  assert_int_equal(rewinds, 1);
  end_and_close(h, in, next);
  assert_published(h, 100);
}
#endif

static void test_rows_are_delivered_after_their_barrier(void **state) {
  host *h = *state;
  weir_input *in = open_with_input(h);
  uint64_t asked = 0;
  int position = 20;
  assert_int_equal(position_of(in), 0);
  assert_int_equal(push_rows(h, in, 0, 20, 0), WEIR_OK);
  assert_int_equal(weir_pipeline_checkpoint(h->pipeline, &asked, NULL), WEIR_OK);
  weir_event barrier = wait_for(h, WEIR_EVENT_BARRIER);
  assert_int_equal(barrier.checkpoint, asked);
  assert_int_equal(push_rows(h, in, 20, 1, 0),
                   WEIR_OK); /* before the answer: before the barrier */
  position = 21;
  assert_int_equal(weir_input_barrier(in, asked, &position, sizeof(position), NULL),
                   WEIR_OK);
  assert_int_equal(push_rows(h, in, 21, 9, 0), WEIR_OK);
  assert_int_equal(wait_for(h, WEIR_EVENT_COMMITTED).checkpoint, asked);
  assert_published(h, 21);
  assert_int_equal(position_of(in), 21);
  /* Not asked for: refused, nothing happens. */
  assert_int_equal(weir_input_barrier(in, asked, &position, sizeof(position), &h->err),
                   WEIR_E_INVALID_STATE);
  end_and_close(h, in, 30);
  assert_published(h, 30);
}

static void test_what_was_not_decided_comes_again(void **state) {
  host *h = *state;
  weir_input *in = open_with_input(h);
  uint64_t asked = 0;
  int position = 5;
  assert_int_equal(push_rows(h, in, 0, 5, 0), WEIR_OK);
  weir_pipeline_checkpoint(h->pipeline, &asked, NULL);
  wait_for(h, WEIR_EVENT_BARRIER);
  assert_int_equal(weir_input_barrier(in, asked, &position, sizeof(position), NULL),
                   WEIR_OK);
  wait_for(h, WEIR_EVENT_COMMITTED);
  assert_int_equal(push_rows(h, in, 5, 7, 0), WEIR_OK);
  assert_int_equal(weir_pipeline_close(h->pipeline, 0, &h->err), WEIR_E_CANCELLED);
  h->pipeline = NULL;
  assert_published(h, 5);
  in = open_with_input(h);
  assert_int_equal(position_of(in), 5);
  assert_int_equal(push_rows(h, in, 5, 7, 0), WEIR_OK);
  end_and_close(h, in, 12);
  assert_published(h, 12);
}

static void test_the_host_gives_the_schema_with_its_first_input(void **state) {
  host *h = *state;
  weir_input *in = NULL, *other = NULL;
  assert_int_equal(open_pipeline(h, "2", false), WEIR_OK);
  assert_int_equal(weir_pipeline_input(h->pipeline, "in", 0, NULL, &in, &h->err),
                   WEIR_E_INVALID_CONFIG);
  assert_int_equal(weir_pipeline_input(h->pipeline, "in", 0, weir_schema_arrow(h->schema),
                                       &in, &h->err),
                   WEIR_OK);
  weir_schema *different = rows_schema("b: utf8");
  assert_int_equal(weir_pipeline_input(h->pipeline, "in", 1, weir_schema_arrow(different),
                                       &other, &h->err),
                   WEIR_E_SCHEMA);
  weir_schema_unref(different);
  assert_int_equal(weir_pipeline_input(h->pipeline, "in", 2, NULL, &other, &h->err),
                   WEIR_E_INVALID_CONFIG);
  assert_int_equal(weir_pipeline_input(h->pipeline, "nowhere", 0, NULL, &other, &h->err),
                   WEIR_E_NOT_FOUND);
  assert_int_equal(weir_pipeline_input(h->pipeline, "in", 1, NULL, &other, &h->err),
                   WEIR_OK);
  int none = 0;
  assert_int_equal(push_rows(h, in, 0, 3, 0), WEIR_OK);
  assert_int_equal(push_rows(h, other, 3, 4, 0), WEIR_OK);
  assert_int_equal(weir_input_end(other, &none, sizeof(none), NULL), WEIR_OK);
  end_and_close(h, in, 7);
  assert_published(h, 7);
}

static void test_the_descriptor_is_readable_while_events_wait(void **state) {
  host *h = *state;
  weir_input *in = open_with_input(h);
  struct pollfd fd = {.fd = weir_pipeline_fd(h->pipeline), .events = POLLIN};
  weir_event event = {.struct_size = sizeof(event)};
  uint64_t asked = 0;
  while (weir_pipeline_next(h->pipeline, &event, 0, NULL) == WEIR_OK && event.type)
    continue;
  assert_int_equal(poll(&fd, 1, 0), 0);
  assert_int_equal(push_rows(h, in, 0, 1, 0), WEIR_OK);
  weir_pipeline_checkpoint(h->pipeline, &asked, NULL);
  assert_int_equal(poll(&fd, 1, 30000), 1);
  assert_int_equal(weir_pipeline_next(h->pipeline, &event, 0, NULL), WEIR_OK);
  assert_int_equal(event.type, WEIR_EVENT_BARRIER);
  assert_int_equal(poll(&fd, 1, 0), 0);
  int position = 1;
  assert_int_equal(weir_input_end(in, &position, sizeof(position), NULL), WEIR_OK);
  wait_for(h, WEIR_EVENT_ENDED);
  /* After the end it stays readable and gives the same event again. */
  assert_int_equal(poll(&fd, 1, 0), 1);
  assert_int_equal(weir_pipeline_next(h->pipeline, &event, 0, NULL), WEIR_OK);
  assert_int_equal(event.type, WEIR_EVENT_ENDED);
  assert_int_equal(push_rows(h, in, 1, 1, 0), WEIR_E_INVALID_STATE);
}

/* A lane whose barrier is met is not read on until the other lane's is met too. */
static void test_a_push_without_room_stays_with_its_caller(void **state) {
  host *h = *state;
  weir_input *in = NULL, *other = NULL;
  uint64_t asked = 0;
  int next = 0;
  weir_status status = WEIR_OK;
  assert_int_equal(open_pipeline(h, "2", true), WEIR_OK);
  assert_int_equal(weir_pipeline_input(h->pipeline, "in", 0, NULL, &in, &h->err),
                   WEIR_OK);
  assert_int_equal(weir_pipeline_input(h->pipeline, "in", 1, NULL, &other, &h->err),
                   WEIR_OK);
  weir_pipeline_checkpoint(h->pipeline, &asked, NULL);
  wait_for(h, WEIR_EVENT_BARRIER);
  assert_int_equal(weir_input_barrier(in, asked, &next, sizeof(next), NULL), WEIR_OK);
  for (; !status && next < 1000000; next += status ? 0 : 1000)
    status = push_rows(h, in, next, 1000, 0);
  assert_int_equal(status, WEIR_E_TIMEOUT);
  assert_int_equal(h->err.flags, WEIR_ERR_RETRIABLE);
  assert_int_equal(weir_input_end(other, &next, sizeof(next), NULL), WEIR_OK);
  assert_ptr_equal(wait_for(h, WEIR_EVENT_ROOM).input, in);
  assert_int_equal(push_rows(h, in, next, 1000, SOON), WEIR_OK);
  end_and_close(h, in, next + 1000);
  assert_published(h, next + 1000);
}

static void test_a_second_owner_is_refused(void **state) {
  host *h = *state;
  open_with_input(h);
  host second = *h;
  assert_int_equal(open_pipeline(&second, "1", true), WEIR_E_FENCED);
}

/* A string of the document, to free(). */
static char *text_of(weir_bytes *json) {
  char *text = calloc(json->size + 1, 1);
  assert_non_null(text);
  memcpy(text, json->data, json->size);
  weir_bytes_release(json);
  return text;
}

static void test_status_and_stats_say_what_is_decided(void **state) {
  host *h = *state;
  weir_input *in = open_with_input(h);
  weir_bytes json = {0};
  int position = 4;
  assert_int_equal(push_rows(h, in, 0, 4, 0), WEIR_OK);
  assert_int_equal(weir_input_end(in, &position, sizeof(position), NULL), WEIR_OK);
  wait_for(h, WEIR_EVENT_ENDED);
  assert_int_equal(weir_pipeline_stats(h->pipeline, &json, &h->err), WEIR_OK);
  char *text = text_of(&json);
  assert_non_null(strstr(text, "\"decided\":1,\"committed\":1,\"unresolved\":[]"));
  assert_non_null(strstr(text, "\"out\":{\"rows\":4,"));
  assert_non_null(strstr(text, "\"guarantee\":\"exactly_once\",\"epochs\":1"));
  free(text);
  weir_config *config = config_of(h, "1", true);
  assert_int_equal(weir_pipeline_status(config, &json, &h->err), WEIR_OK);
  text = text_of(&json);
  assert_non_null(strstr(text, "\"pipeline\":\"embedded\""));
  assert_non_null(strstr(text, "\"decided\":1"));
  free(text);
  weir_config_free(config);
}

int main(void) {
#ifdef WEIR_FAULTS
  /* The third write of this process: the first test's. */
  setenv("WEIR_FAULTS", "file.write=fail@4", 1);
#endif
  const struct CMUnitTest tests[] = {
#ifdef WEIR_FAULTS
      cmocka_unit_test_setup_teardown(test_a_failed_write_rewinds_and_the_host_replays,
                                      set_up, tear_down),
#endif
      cmocka_unit_test_setup_teardown(test_rows_are_delivered_after_their_barrier, set_up,
                                      tear_down),
      cmocka_unit_test_setup_teardown(test_what_was_not_decided_comes_again, set_up,
                                      tear_down),
      cmocka_unit_test_setup_teardown(test_the_host_gives_the_schema_with_its_first_input,
                                      set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_the_descriptor_is_readable_while_events_wait,
                                      set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_a_push_without_room_stays_with_its_caller,
                                      set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_a_second_owner_is_refused, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_status_and_stats_say_what_is_decided, set_up,
                                      tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
