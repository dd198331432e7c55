/* SPDX-License-Identifier: Apache-2.0 */
/* ctest: threads */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"

struct shared {
  pthread_mutex_t mutex;
  pthread_cond_t cond;
  bool ready;

  sigset_t mask;
};

static void *set_ready(void *arg) {
  struct shared *shared = arg;
  pthread_mutex_lock(&shared->mutex);
  pthread_sigmask(SIG_BLOCK, NULL, &shared->mask);
  shared->ready = true;
  pthread_cond_signal(&shared->cond);
  pthread_mutex_unlock(&shared->mutex);
  return arg;
}

static void test_thread_and_condition(void **state) {
  (void)state;
  struct shared shared = {0};
  pthread_t thread;
  void *result = NULL;
  assert_int_equal(base_mutex_init(&shared.mutex, NULL), WEIR_OK);
  assert_int_equal(base_cond_init(&shared.cond, NULL), WEIR_OK);
  assert_int_equal(
      base_thread_start(&thread, "weir-a-name-too-long", set_ready, &shared, NULL),
      WEIR_OK);
  pthread_mutex_lock(&shared.mutex);
  while (!shared.ready) base_cond_wait_until(&shared.cond, &shared.mutex, BASE_FOREVER);
  pthread_mutex_unlock(&shared.mutex);
  assert_int_equal(pthread_join(thread, &result), 0);
  assert_ptr_equal(result, &shared);
  assert_int_equal(sigismember(&shared.mask, SIGTERM), 1);
  assert_int_equal(sigismember(&shared.mask, SIGUSR1), 1);
  sigset_t own;
  pthread_sigmask(SIG_BLOCK, NULL, &own);
  assert_int_equal(sigismember(&own, SIGTERM), 0);
  pthread_cond_destroy(&shared.cond);
  pthread_mutex_destroy(&shared.mutex);
}

static void test_wait_ends_at_its_deadline(void **state) {
  (void)state;
  struct shared shared = {0};
  assert_int_equal(base_mutex_init(&shared.mutex, NULL), WEIR_OK);
  assert_int_equal(base_cond_init(&shared.cond, NULL), WEIR_OK);
  pthread_mutex_lock(&shared.mutex);
  int64_t deadline = base_deadline(5 * BASE_NS_PER_MS);
  while (base_cond_wait_until(&shared.cond, &shared.mutex, deadline)) continue;
  assert_true(base_clock_mono() >= deadline);
  pthread_mutex_unlock(&shared.mutex);
  pthread_cond_destroy(&shared.cond);
  pthread_mutex_destroy(&shared.mutex);
}

static void test_deadlines_saturate(void **state) {
  (void)state;
  assert_true(base_deadline(INT64_MAX) == BASE_FOREVER);
  assert_true(base_deadline(INT64_MIN) <= base_clock_mono());
  /* 2020-01-01: a wall clock before it means that nanoseconds and seconds were mixed up.
   */
  assert_true(base_clock_wall() > INT64_C(1577836800) * BASE_NS_PER_S);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_thread_and_condition),
      cmocka_unit_test(test_wait_ends_at_its_deadline),
      cmocka_unit_test(test_deadlines_saturate),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
