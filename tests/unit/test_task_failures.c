/* SPDX-License-Identifier: Apache-2.0 */
/* ctest: failing calls */
/* The pieces of the task room where the system gives no lock: an error comes out, nothing of it is left, and
 * the next try succeeds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "failing/calls.h"
#include "task/task.h"

typedef struct pieces {
  task_mailbox *box;
  task_lane *lane;
  task_actor *actor;
} pieces;

static weir_status make(pieces *p, weir_error *err) {
  static const uint8_t fed = 1;
  BASE_TRY(task_mailbox_new(&p->box, err));
  task_lane_config lane = {.name = "in", .mailbox = p->box};
  BASE_TRY(task_lane_new(&lane, &p->lane, err));
  task_actor_config actor = {.participant = 1,
                             .name = "out",
                             .mailbox = p->box,
                             .n_lanes = 1,
                             .fed = &fed,
                             .queue_bytes = 1000};
  return task_actor_new(&actor, &p->actor, err);
}

static void unmake(pieces *p) {
  task_actor_free(p->actor);
  task_lane_unref(p->lane);
  task_mailbox_unref(p->box);
}

static void test_without_locks(void **state) {
  (void)state;
  uint64_t failures = 0;
  for (bool failed = true; failed;) {
    pieces p = {0};
    weir_error err = {0};
    calls_fail_of("pthread_", failures + 1, CALLS_FAIL);
    weir_status status = make(&p, &err);
    failed = calls_stop() > failures;
    assert_int_equal(status != WEIR_OK, failed);
    assert_int_equal(status, err.code);
    if (failed) assert_null(p.actor); /* the last that is made */
    unmake(&p);
    failures += failed;
  }
  assert_true(failures >= 8); /* a lock and its conditions: of mailbox, lane and actor */
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_without_locks)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
