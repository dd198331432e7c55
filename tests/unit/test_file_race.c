/* SPDX-License-Identifier: Apache-2.0 */
/* Owners of the file sink at the same moment (ctest: threads): one chain of manifests, one set of rows. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/file_rig.h"

enum { OWNERS = 4, EPOCHS = 30, ROWS = 20 };

typedef struct owner {
  file_rig rig;
  pthread_t thread;
  file_attempt *const *attempts;
  weir_cursor predecessor, out;
  size_t n;
  weir_status status;
  weir_error err;
  pthread_barrier_t *start;
} owner;

static void *commit(void *arg) {
  owner *o = arg;
  pthread_barrier_wait(o->start);
  o->status =
      file_rig_commit(&o->rig, &o->predecessor, o->attempts, o->n, &o->out, &o->err);
  return NULL;
}

static void run_owners(owner *owners, size_t n) {
  pthread_barrier_t start;
  assert_int_equal(pthread_barrier_init(&start, NULL, (unsigned)n), 0);
  for (size_t i = 0; i < n; i++) {
    owners[i].start = &start;
    assert_int_equal(pthread_create(&owners[i].thread, NULL, commit, &owners[i]), 0);
  }
  for (size_t i = 0; i < n; i++)
    assert_int_equal(pthread_join(owners[i].thread, NULL), 0);
  pthread_barrier_destroy(&start);
}

static void owners_start(owner *owners, size_t n, const char *folder) {
  char path[512];
  snprintf(path, sizeof(path), "%s/orders", folder);
  memset(owners, 0, n * sizeof(*owners));
  for (size_t i = 0; i < n; i++) {
    file_rig_init(&owners[i].rig, path, NULL, NULL, 0);
    file_rig_started(&owners[i].rig);
  }
}

static void owners_stop(owner *owners, size_t n) {
  for (size_t i = 0; i < n; i++) file_rig_done(&owners[i].rig);
}

/* A deadline passed, the lease moved, and now the same decision is published from several sides. */
static void the_same_decision_from_all_sides(void **state) {
  (void)state;
  owner owners[OWNERS];
  char folder[256], path[512];
  weir_cursor predecessor = {0};
  file_rig_folder(folder);
  owners_start(owners, OWNERS, folder);
  snprintf(path, sizeof(path), "%s", owners[0].rig.path);
  for (int e = 0; e < EPOCHS; e++) {
    file_attempt a, *list[] = {&a};
    file_rig_epoch(&owners[0].rig, (uint64_t)e + 1, 1, (int64_t)e * ROWS, ROWS, &a);
    for (int i = 0; i < OWNERS; i++) {
      owners[i].attempts = list;
      owners[i].n = 1;
      owners[i].predecessor = predecessor;
    }
    run_owners(owners, OWNERS);
    for (int i = 0; i < OWNERS; i++) {
      if (owners[i].status) fail_msg("owner %d: %s", i, owners[i].err.message);
      assert_true(weir_cursor_equal(&owners[i].out, &a.attempt.cursor));
    }
    predecessor = a.attempt.cursor;
    file_attempt_done(&a);
  }
  file_rig_expect_rows(path, EPOCHS * ROWS);
  owners_stop(owners, OWNERS);
  file_rig_cleanup(folder);
}

/* A copied state folder: two histories decide the same number differently. One of them wins whole. */
static void two_histories_one_wins(void **state) {
  (void)state;
  for (int e = 0; e < EPOCHS; e++) {
    owner owners[2];
    file_attempt a[2], *list[2] = {&a[0], &a[1]};
    char folder[256];
    file_rig_folder(folder);
    owners_start(owners, 2, folder);
    for (int i = 0; i < 2; i++) {
      file_rig_epoch(&owners[i].rig, 5, 1, 0, ROWS, &a[i]);
      owners[i].attempts = &list[i];
      owners[i].n = 1;
    }
    run_owners(owners, 2);
    assert_int_equal((owners[0].status == WEIR_OK) + (owners[1].status == WEIR_OK), 1);
    const owner *loser = owners[0].status ? &owners[0] : &owners[1];
    assert_int_equal(loser->status, WEIR_E_CONFLICT);
    assert_int_equal(loser->err.flags, 0);
    file_rig_expect_rows(owners[0].rig.path, ROWS);
    for (int i = 0; i < 2; i++) file_attempt_done(&a[i]);
    owners_stop(owners, 2);
    file_rig_cleanup(folder);
  }
}

/* The overlap that the contract declares: commit n beside the writes of n + 1, on another thread. */
static void commits_run_beside_writes(void **state) {
  (void)state;
  owner o[1];
  char folder[256];
  file_attempt attempts[2], *list[1];
  weir_cursor predecessor = {0};
  file_rig_folder(folder);
  owners_start(o, 1, folder);
  file_rig_epoch(&o->rig, 1, 1, 0, ROWS, &attempts[0]);
  for (int e = 1; e < EPOCHS; e++) {
    pthread_barrier_t start;
    file_attempt *now = &attempts[(e - 1) % 2], *next = &attempts[e % 2];
    assert_int_equal(pthread_barrier_init(&start, NULL, 2), 0);
    list[0] = now;
    o->attempts = list;
    o->n = 1;
    o->predecessor = predecessor;
    o->start = &start;
    assert_int_equal(pthread_create(&o->thread, NULL, commit, o), 0);
    pthread_barrier_wait(&start);
    file_rig_epoch(&o->rig, (uint64_t)e + 1, 1, (int64_t)e * ROWS, ROWS, next);
    assert_int_equal(pthread_join(o->thread, NULL), 0);
    if (o->status) fail_msg("%s", o->err.message);
    predecessor = now->attempt.cursor;
    file_attempt_done(now);
    pthread_barrier_destroy(&start);
  }
  file_rig_expect_rows(o->rig.path, (EPOCHS - 1) * ROWS);
  file_attempt_done(&attempts[(EPOCHS - 1) % 2]);
  owners_stop(o, 1);
  file_rig_cleanup(folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_same_decision_from_all_sides),
      cmocka_unit_test(two_histories_one_wins),
      cmocka_unit_test(commits_run_beside_writes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
