/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"

#if defined(WEIR_FAULTS)
/* Runs `hits` hits of two points in a child under these rules; gives its wait status. The
 * child exits with the number of hits that failed. */
static int run_child(const char *rules, int hits) {
  pid_t child = fork();
  if (child == 0) {
    int failed = 0;
    setenv("WEIR_FAULTS", rules, 1);
    for (int i = 0; i < hits; i++)
      failed += WEIR_FAULT("test.first") + WEIR_FAULT("test.second");
    _exit(failed);
  }
  int status = 0;
  assert_true(child > 0);
  assert_int_equal(waitpid(child, &status, WUNTRACED), child);
  if (WIFSTOPPED(status)) {
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
  }
  return status;
}

static int failed_hits(const char *rules, int hits) {
  int status = run_child(rules, hits);
  assert_true(WIFEXITED(status));
  return WEXITSTATUS(status);
}

static void test_rules(void **state) {
  (void)state;
  assert_int_equal(failed_hits("", 5), 0);
  assert_int_equal(failed_hits("test.first=fail@2", 5), 1);
  assert_int_equal(failed_hits("test.first=fail@2+", 5), 4);
  assert_int_equal(failed_hits("test.first=fail,test.second=fail@5", 5), 6);
  assert_int_equal(failed_hits("*=fail@3", 5), 1);
  assert_int_equal(failed_hits("test.other=kill", 5), 0);
  assert_int_equal(failed_hits("test.first=sleep:1us", 5), 0);
}

static void test_signals(void **state) {
  (void)state;
  int status = run_child("test.second=kill@3", 3);
  assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  assert_int_equal(failed_hits("test.second=kill@3", 2), 0);
  status = run_child("test.first=stop", 1);
  assert_true(WIFSTOPPED(status));
}

static void test_unreadable_rules_abort(void **state) {
  (void)state;
  static const char *const bad[] = {"test.first",        "=kill",
                                    "test.first=boom",   "test.first=kill@0",
                                    "test.first=kill@x", "test.first=kill@1x",
                                    "test.first=sleep:1"};
  /* The message to stderr is part of what a person sees; the test's own output stays
   * readable. */
  for (size_t i = 0; i < BASE_COUNT(bad); i++) {
    int status = run_child(bad[i], 1);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
  }
}
#else
static void test_release_has_none(void **state) {
  (void)state;
  setenv("WEIR_FAULTS", "test.first=kill", 1);
  assert_int_equal(WEIR_FAULT("test.first"), 0);
}
#endif

int main(void) {
  const struct CMUnitTest tests[] = {
#if defined(WEIR_FAULTS)
      cmocka_unit_test(test_rules),
      cmocka_unit_test(test_signals),
      cmocka_unit_test(test_unreadable_rules_abort),
#else
      cmocka_unit_test(test_release_has_none),
#endif
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
