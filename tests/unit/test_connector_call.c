/* SPDX-License-Identifier: Apache-2.0 */
/* Calls with deadlines, and the tracking of detached tasks. ctest: threads */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "connector/inside.h"

static void test_a_call_without_deadline(void **state) {
  (void)state;
  weir_error err = {0};
  assert_int_equal(weir_call_deadline(NULL), WEIR_NO_DEADLINE);
  assert_int_equal(weir_call_remaining(NULL), INT64_MAX);
  assert_int_equal(weir_call_cancelled(NULL), 0);
  assert_int_equal(weir_call_check(NULL, "x", &err), WEIR_OK);
  weir_call *call = weir_call_new(-1);
  assert_int_equal(weir_call_deadline(call), WEIR_NO_DEADLINE);
  assert_int_equal(weir_call_remaining(call), INT64_MAX);
  assert_int_equal(weir_call_cancelled(call), 0);
  weir_call_cancel(call);
  assert_int_equal(weir_call_cancelled(call), 1);
  assert_int_equal(weir_call_check(call, "reading", &err), WEIR_E_CANCELLED);
  assert_string_equal(err.message, "reading: the call was cancelled");
  weir_call_free(call);
  assert_false(connector_call_give_up(&(weir_call){0})); /* nobody is inside */
  weir_call_cancel(NULL);
  weir_call_free(NULL);
}

static void test_a_deadline(void **state) {
  (void)state;
  weir_error err = {0};
  weir_call *call = weir_call_new(INT64_C(3600) * BASE_NS_PER_S);
  assert_in_range(weir_call_remaining(call), 1, INT64_C(3600) * BASE_NS_PER_S);
  assert_int_equal(weir_call_cancelled(call), 0);
  weir_call_free(call);
  call = weir_call_new(0);
  assert_int_equal(weir_call_remaining(call), 0);
  assert_int_equal(weir_call_cancelled(call), 1);
  assert_int_equal(weir_call_check(call, "reading", &err), WEIR_E_TIMEOUT);
  assert_string_equal(err.message, "reading: the deadline has passed");
  weir_call_free(call);
}

static void test_expire_looks_at_the_limit(void **state) {
  (void)state;
  weir_call call = {0};
  connector_turn turn;
  connector_call_arm(&call, 100, 500);
  assert_false(connector_call_running(&call));
  assert_false(connector_call_expire(&call, 1000)); /* nobody is inside */
  connector_turn_enter(&turn, &call);
  assert_true(connector_call_running(&call));
  assert_false(
      connector_call_expire(&call, 499)); /* past the deadline, before the limit */
  assert_true(connector_call_expire(&call, 500));
  assert_false(connector_call_expire(&call, 501)); /* once a hook */
  assert_false(connector_call_running(&call));
  assert_int_equal(weir_call_cancelled(&call), 1);
  assert_int_equal(connector_turn_leave(&turn, "hook", WEIR_OK), WEIR_E_TIMEOUT);
  assert_true(turn.given_up);
  assert_int_equal(turn.err.code, WEIR_E_TIMEOUT);
  /* A limit before the deadline is the deadline. */
  connector_call_arm(&call, 100, 50);
  assert_int_equal(atomic_load(&call.limit), 100);
  assert_int_equal(atomic_load(&call.cancelled), 0);
  /* Without a limit nothing expires. */
  connector_call_arm(&call, WEIR_NO_DEADLINE, WEIR_NO_DEADLINE);
  connector_turn_enter(&turn, &call);
  assert_false(connector_call_expire(&call, INT64_MAX));
  assert_true(connector_call_give_up(&call));
  assert_false(connector_call_give_up(&call));
  assert_int_equal(connector_turn_leave(&turn, "hook", WEIR_E_IO), WEIR_E_TIMEOUT);
}

static void test_a_hook_that_was_in_time_keeps_its_result(void **state) {
  (void)state;
  weir_call call = {0};
  connector_turn turn;
  connector_call_arm(&call, 100, 100); /* long ago: late, but nobody gave it up */
  connector_turn_enter(&turn, &call);
  assert_int_equal(connector_turn_leave(&turn, "hook", WEIR_OK), WEIR_OK);
  assert_false(turn.given_up);
  assert_false(connector_call_give_up(&call));
}

static void test_errors_are_made_to_agree(void **state) {
  (void)state;
  connector_turn turn;
  weir_error err = {0};
  connector_turn_enter(&turn, NULL);
  assert_int_equal(connector_turn_leave(&turn, "open", WEIR_E_IO), WEIR_E_IO);
  assert_int_equal(connector_turn_fail(&turn, "sink lake", &err), WEIR_E_IO);
  assert_string_equal(err.message,
                      "sink lake: open failed with IO and said nothing more");
  connector_turn_enter(&turn, NULL);
  weir_error_set(&turn.err, WEIR_E_IO, 0, "sink lake: no room");
  connector_turn_leave(&turn, "open", WEIR_E_IO);
  connector_turn_fail(&turn, "sink lake", &err);
  assert_string_equal(err.message, "sink lake: no room");
  connector_turn_fail(&turn, "sink la", &err);
  assert_string_equal(err.message, "sink la: sink lake: no room");
  connector_turn_enter(&turn, NULL);
  weir_error_set(&turn.err, WEIR_E_IO, WEIR_ERR_RETRIABLE | WEIR_ERR_IN_DOUBT,
                 "no answer");
  assert_int_equal(connector_turn_leave(&turn, "commit", WEIR_E_TIMEOUT), WEIR_E_TIMEOUT);
  assert_int_equal(turn.err.code, WEIR_E_TIMEOUT);
  assert_int_equal(turn.err.flags, WEIR_ERR_IN_DOUBT);
  connector_turn_enter(&turn, NULL);
  weir_error_set(&turn.err, WEIR_E_BAD_DATA, 0, "row");
  connector_turn_leave(&turn, "write_batch", WEIR_E_BAD_DATA);
  assert_int_equal(turn.err.flags, WEIR_ERR_BAD_DATA);
  assert_int_equal(connector_turn_fail(&turn, "x", NULL), WEIR_E_BAD_DATA);
}

/* Only who ran out of time may be asked again on the runtime's word. */
static void test_late_failures_are_retriable_when_they_say_no_more(void **state) {
  (void)state;
  static const struct {
    weir_status code;
    uint32_t flags, then;
  } cases[] = {
      {WEIR_E_TIMEOUT, 0, WEIR_ERR_RETRIABLE},
      {WEIR_E_CANCELLED, 0, WEIR_ERR_RETRIABLE},
      {WEIR_E_IO, 0, 0},
      {WEIR_E_TIMEOUT, WEIR_ERR_IN_DOUBT, WEIR_ERR_IN_DOUBT},
      {WEIR_E_TIMEOUT, WEIR_ERR_BAD_DATA, WEIR_ERR_BAD_DATA},
  };
  for (int late = 0; late < 2; late++) {
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
      weir_call call = {0};
      connector_turn turn;
      connector_call_arm(&call, WEIR_NO_DEADLINE, WEIR_NO_DEADLINE);
      connector_turn_enter(&turn, &call);
      if (late) weir_call_cancel(&call);
      weir_error_set(&turn.err, cases[i].code, cases[i].flags, "late");
      connector_turn_leave(&turn, "hook", cases[i].code);
      assert_int_equal(connector_turn_cancelled(&turn), late);
      connector_turn_mark_late(&turn);
      assert_int_equal(turn.err.flags, late ? cases[i].then : cases[i].flags);
    }
  }
}

/* A watchdog and a hook race for every turn: exactly one of them has the result. */
enum { RACES = 20000 };
typedef struct race {
  weir_call call;
  _Atomic int stop;
  size_t given_up;
} race;

static void *race_watchdog(void *arg) {
  race *r = arg;
  while (!atomic_load(&r->stop)) {
    if (connector_call_expire(&r->call, 200)) r->given_up++;
  }
  return NULL;
}

static void test_one_of_two_has_the_result(void **state) {
  (void)state;
  race r = {0};
  pthread_t thread;
  connector_turn turn;
  size_t lost = 0;
  assert_int_equal(base_thread_start(&thread, "watchdog", race_watchdog, &r, NULL),
                   WEIR_OK);
  for (int i = 0; i < RACES; i++) {
    /* Every other turn has a limit in the future and must never be given up. */
    int64_t limit = i % 2 ? 100 : 1000;
    connector_call_arm(&r.call, limit, limit);
    connector_turn_enter(&turn, &r.call);
    if (connector_turn_leave(&turn, "hook", WEIR_OK)) {
      lost++;
      assert_int_equal(limit, 100);
    }
  }
  atomic_store(&r.stop, 1);
  pthread_join(thread, NULL);
  assert_int_equal(lost, r.given_up);
}

/* ---- tasks ------------------------------------------------------------------------------------- */

static void test_tracker_counts(void **state) {
  (void)state;
  weir_error err = {0};
  weir_task_owner *owner = NULL;
  weir_task_guard *a = NULL, *b = NULL, *c = NULL;
  assert_int_equal(weir_task_owner_new(&owner, &err), WEIR_OK);
  weir_task_tracker *t = weir_task_owner_tracker(owner);
  assert_int_equal(weir_task_tracker_running(t), 0);
  assert_int_equal(weir_task_tracker_wait(t, 0, &err),
                   WEIR_E_TIMEOUT); /* it may still start some */
  assert_int_equal(weir_task_guard_new(owner, "upload part 1", &a, &err), WEIR_OK);
  assert_int_equal(weir_task_guard_new(owner, "upload part 2", &b, &err), WEIR_OK);
  assert_int_equal(weir_task_guard_new(owner, "upload part 3", &c, &err), WEIR_OK);
  assert_int_equal(weir_task_tracker_running(t), 3);
  weir_task_owner_free(owner);
  weir_task_guard_drop(b);
  weir_task_guard_drop(c);
  assert_int_equal(weir_task_tracker_wait(t, 1000, &err), WEIR_E_TIMEOUT);
  assert_non_null(strstr(err.message, "upload part 1"));
  weir_task_guard_drop(a);
  assert_int_equal(weir_task_tracker_wait(t, 0, &err), WEIR_OK);
  assert_ptr_equal(weir_task_tracker_ref(t), t);
  weir_task_tracker_unref(t);
  weir_task_tracker_unref(t);
  weir_task_tracker_unref(NULL);
  weir_task_owner_free(NULL);
  weir_task_guard_drop(NULL);
}

static void test_a_guard_may_outlive_all(void **state) {
  (void)state;
  weir_task_owner *owner = NULL;
  weir_task_guard *guard = NULL;
  char what[100];
  memset(what, 'w', sizeof(what) - 1);
  what[sizeof(what) - 1] = 0;
  memcpy(what + 62, "\xC3\xA4", 2); /* a character on the edge of what is kept */
  assert_int_equal(weir_task_owner_new(&owner, NULL), WEIR_OK);
  assert_int_equal(weir_task_guard_new(owner, what, &guard, NULL), WEIR_OK);
  weir_task_owner_free(owner);
  weir_task_guard_drop(guard);
}

static void test_names_of_tasks_are_text(void **state) {
  (void)state;
  weir_task_owner *owner = NULL;
  weir_task_guard *guard = NULL;
  weir_error err = {0};
  assert_int_equal(weir_task_owner_new(&owner, NULL), WEIR_OK);
  weir_task_tracker *t = weir_task_owner_tracker(owner);
  assert_int_equal(weir_task_guard_new(owner, "\xff\xff", &guard, NULL), WEIR_OK);
  assert_int_equal(weir_task_tracker_wait(t, 0, &err), WEIR_E_TIMEOUT);
  assert_non_null(strstr(err.message, "among them ''"));
  weir_task_guard_drop(guard);
  weir_task_tracker_unref(t); /* while the owner is there */
  weir_task_owner_free(owner);
}

static void *task_run(void *arg) {
  base_sleep(BASE_NS_PER_MS);
  weir_task_guard_drop(arg);
  return NULL;
}

static void test_wait_for_running_tasks(void **state) {
  (void)state;
  enum { TASKS = 8 };
  pthread_t threads[TASKS];
  weir_task_owner *owner = NULL;
  assert_int_equal(weir_task_owner_new(&owner, NULL), WEIR_OK);
  weir_task_tracker *t = weir_task_owner_tracker(owner);
  for (int i = 0; i < TASKS; i++) {
    weir_task_guard *guard = NULL;
    assert_int_equal(weir_task_guard_new(owner, "task", &guard, NULL), WEIR_OK);
    assert_int_equal(base_thread_start(&threads[i], "task", task_run, guard, NULL),
                     WEIR_OK);
  }
  weir_task_owner_free(owner);
  assert_int_equal(weir_task_tracker_wait(t, 60 * BASE_NS_PER_S, NULL), WEIR_OK);
  assert_int_equal(weir_task_tracker_running(t), 0);
  weir_task_tracker_unref(t);
  for (int i = 0; i < TASKS; i++) pthread_join(threads[i], NULL);
}

/* ---- services ------------------------------------------------------------------------------------ */

static size_t logged;
static char last_line[200];
static void log_write(void *ctx, int32_t level, const char *where, const char *text) {
  (void)ctx;
  logged++;
  snprintf(last_line, sizeof(last_line), "%d %s: %s", (int)level, where, text);
}

static void test_host(void **state) {
  (void)state;
  base_log log = {.write = log_write, .level = WEIR_LOG_INFO};
  connector_host *host = connector_host_new(&log, NULL);
  const weir_host *h = connector_host_get(host);
  uint8_t random[2][16] = {{0}};
  assert_int_equal(h->abi_version, WEIR_ABI_VERSION);
  assert_int_equal(h->struct_size, sizeof(*h));
  h->log(h->ctx, WEIR_LOG_WARN, "sink lake", "100% full");
  assert_string_equal(last_line, "2 sink lake: 100% full");
  h->log(h->ctx, WEIR_LOG_DEBUG, "sink lake", "dropped");
  assert_int_equal(logged, 1);
  h->log(h->ctx, WEIR_LOG_WARN, NULL, NULL); /* from a plugin that does not look */
  assert_int_equal(logged, 2);
  assert_true(h->monotonic_ns(h->ctx) > 0);
  assert_true(h->wall_ns(h->ctx) > INT64_C(1600000000) * BASE_NS_PER_S);
  assert_int_equal(h->random(h->ctx, random[0], 16, NULL), WEIR_OK);
  assert_int_equal(h->random(h->ctx, random[1], 16, NULL), WEIR_OK);
  assert_memory_not_equal(random[0], random[1], 16);
  connector_host_ref(host);
  connector_host_mute(host);
  connector_host_unref(host);
  h->log(h->ctx, WEIR_LOG_ERROR, "sink lake", "too late");
  assert_int_equal(logged, 2);
  connector_host_unref(host);
  connector_host_unref(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_call_without_deadline),
      cmocka_unit_test(test_a_deadline),
      cmocka_unit_test(test_expire_looks_at_the_limit),
      cmocka_unit_test(test_a_hook_that_was_in_time_keeps_its_result),
      cmocka_unit_test(test_errors_are_made_to_agree),
      cmocka_unit_test(test_late_failures_are_retriable_when_they_say_no_more),
      cmocka_unit_test(test_one_of_two_has_the_result),
      cmocka_unit_test(test_tracker_counts),
      cmocka_unit_test(test_a_guard_may_outlive_all),
      cmocka_unit_test(test_names_of_tasks_are_text),
      cmocka_unit_test(test_wait_for_running_tasks),
      cmocka_unit_test(test_host),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
