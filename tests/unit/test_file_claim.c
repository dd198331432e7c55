/* SPDX-License-Identifier: Apache-2.0 */
/* Whose the file sink's target is: the chain of deployment claims, alone and with owners at one moment
 * (ctest: threads). */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/file_rig.h"

enum { OWNERS = 4, ROUNDS = 20, ROWS = 10 };

static char folder[256], path[512];

static int make_folder(void **state) {
  (void)state;
  file_rig_folder(folder);
  snprintf(path, sizeof(path), "%s/orders", folder);
  return 0;
}

static int remove_folder(void **state) {
  (void)state;
  file_rig_cleanup(folder);
  return 0;
}

static void rig_of(file_rig *rig, uint8_t deployment, bool may_replace) {
  file_rig_init(rig, path, NULL, NULL, 0);
  rig->ns = file_rig_namespace("orders", "lake", deployment);
  rig->ns.may_replace = may_replace;
}

static const char *beside(const char *name) {
  static char text[1024];
  snprintf(text, sizeof(text), "%s/.weir/orders/%s", folder, name);
  return text;
}

static void expect_refused(file_rig *rig, const char *text) {
  weir_error err = {0};
  assert_int_equal(file_rig_start(rig, &err), WEIR_E_CONFLICT);
  assert_int_equal(err.flags, 0);
  if (!strstr(err.message, text)) fail_msg("%s", err.message);
  file_rig_stop(rig);
}

static weir_status commit_epoch(file_rig *rig, uint64_t number,
                                const weir_cursor *predecessor, int64_t first,
                                weir_cursor *out, weir_error *err) {
  file_attempt a, *list = &a;
  file_rig_epoch(rig, number, 1, first, ROWS, &a);
  weir_status status = file_rig_commit(rig, predecessor, &list, 1, out, err);
  file_attempt_done(&a);
  return status;
}

/* ---- the table ---------------------------------------------------------------------------------- */

static void the_table_of_claims(void **state) {
  (void)state;
  uint8_t chain[3 * WEIR_UUID_SIZE];
  weir_namespace ns = file_rig_namespace("orders", "lake", 2);
  weir_error err = {0};
  int32_t append = 7;
  for (size_t i = 0; i < 3; i++)
    memset(chain + i * WEIR_UUID_SIZE, (int)i + 1, WEIR_UUID_SIZE);
  assert_int_equal(weir_claim_start(&ns, NULL, 0, &append, &err), WEIR_OK);
  assert_int_equal(append, 1);
  assert_int_equal(weir_claim_start(&ns, chain, 2, &append, &err), WEIR_OK);
  assert_int_equal(append, 0);
  assert_int_equal(weir_claim_check(&ns, chain, 2, &err), WEIR_OK);
  append = 7;
  assert_int_equal(weir_claim_start(&ns, chain, 1, &append, &err), WEIR_E_CONFLICT);
  assert_int_equal(append, 7);
  assert_non_null(strstr(err.message, "01010101-"));
  assert_non_null(strstr(err.message, "--new-deployment"));
  ns.may_replace = 1;
  assert_int_equal(weir_claim_start(&ns, chain, 1, &append, &err), WEIR_OK);
  assert_int_equal(append, 1);
  /* Replaced: for good. */
  assert_int_equal(weir_claim_start(&ns, chain, 3, &append, &err), WEIR_E_CONFLICT);
  assert_non_null(strstr(err.message, "has replaced it"));
  assert_int_equal(weir_claim_check(&ns, chain, 3, &err), WEIR_E_CONFLICT);
  assert_non_null(strstr(err.message, "has replaced it"));
  /* Without a state folder there is no deployment to speak of. */
  weir_namespace stateless = ns;
  memset(stateless.deployment, 0, sizeof(stateless.deployment));
  stateless.may_replace = 0;
  assert_int_equal(weir_claim_start(&stateless, chain, 1, &append, &err),
                   WEIR_E_CONFLICT);
  assert_non_null(strstr(err.message, "there is no state folder"));
  /* The wish is none to go on without the target. */
  assert_int_equal(weir_claim_check(&ns, chain, 1, &err), WEIR_E_CONFLICT);
  assert_int_equal(weir_claim_check(&ns, NULL, 0, &err), WEIR_E_CONFLICT);
  /* A host of before this field. */
  ns.struct_size = offsetof(weir_namespace, may_replace);
  assert_int_equal(weir_claim_start(&ns, chain, 1, &append, &err), WEIR_E_CONFLICT);
}

/* ---- the chain ---------------------------------------------------------------------------------- */

static void the_first_has_the_target(void **state) {
  (void)state;
  file_rig first, second;
  char inner[1024];
  rig_of(&first, 1, false);
  file_rig_started(&first);
  rig_of(&second, 2, false);
  for (int i = 0; i < 2; i++) expect_refused(&second, "belongs to deployment 01010101-");
  /* Nothing was made for the one that is refused. */
  file_rig_inner(&second, "", inner);
  assert_int_equal(access(inner, F_OK), -1);
  assert_int_equal(access(beside("deployment-2.json"), F_OK), -1);
  file_rig_stop(&first);
  file_rig_started(&first); /* finds its own claim */
  assert_int_equal(access(beside("deployment-2.json"), F_OK), -1);
  file_rig_done(&second);
  file_rig_done(&first);
}

static void a_replaced_one_is_stopped_at_its_next_commit(void **state) {
  (void)state;
  file_rig first, second;
  weir_cursor one = {0}, other = {0};
  weir_error err = {0};
  rig_of(&first, 1, false);
  file_rig_started(&first);
  assert_int_equal(commit_epoch(&first, 1, NULL, 0, &one, &err), WEIR_OK);
  rig_of(&second, 2, true);
  file_rig_started(&second);
  assert_int_equal(commit_epoch(&first, 2, &one, ROWS, &other, &err), WEIR_E_CONFLICT);
  assert_int_equal(err.flags, 0);
  if (!strstr(err.message, "02020202-")) fail_msg("%s", err.message);
  file_rig_expect_rows(path, ROWS);
  assert_int_equal(file_rig_cursor(&first).checkpoint, 1);
  assert_int_equal(
      first.committer.ops->take_over(first.committer.state, NULL, &first.ns, &err),
      WEIR_E_CONFLICT);
  file_rig_stop(&first);
  expect_refused(&first, "has replaced it");
  first.ns.may_replace = 1;
  expect_refused(&first, "has replaced it");
  /* The new one delivers what the old one could not, and goes on without the wish. */
  assert_int_equal(commit_epoch(&second, 1, NULL, ROWS, &other, &err), WEIR_OK);
  file_rig_stop(&second);
  second.ns.may_replace = 0;
  file_rig_started(&second);
  assert_int_equal(commit_epoch(&second, 2, &other, 2 * ROWS, &other, &err), WEIR_OK);
  file_rig_expect_rows(path, 3 * ROWS);
  file_rig_done(&second);
  file_rig_done(&first);
}

/* Another sink has the folder since its owner record was removed: the claims of the one before are no
 * hindrance, and that one is stopped. */
static void a_folder_that_was_given_away(void **state) {
  (void)state;
  file_rig first, other;
  weir_cursor out = {0};
  weir_error err = {0};
  rig_of(&first, 1, false);
  file_rig_started(&first);
  assert_int_equal(unlink(beside("owner.json")), 0);
  rig_of(&other, 3, false);
  other.ns = file_rig_namespace("returns", "lake", 3);
  file_rig_started(&other);
  assert_int_equal(access(beside("deployment-2.json"), F_OK), 0);
  assert_int_equal(commit_epoch(&first, 1, NULL, 0, &out, &err), WEIR_E_CONFLICT);
  assert_int_equal(commit_epoch(&other, 1, NULL, 0, &out, &err), WEIR_OK);
  file_rig_expect_rows(path, ROWS);
  file_rig_done(&other);
  file_rig_done(&first);
}

static void records_that_were_removed(void **state) {
  (void)state;
  file_rig first, second;
  weir_cursor out = {0};
  weir_error err = {0};
  rig_of(&first, 1, false);
  file_rig_started(&first);
  assert_int_equal(unlink(beside("deployment-1.json")), 0);
  assert_int_equal(commit_epoch(&first, 1, NULL, 0, &out, &err), WEIR_E_CONFLICT);
  if (!strstr(err.message, "removed")) fail_msg("%s", err.message);
  file_rig_stop(&first);
  file_rig_started(&first); /* nobody else took it */
  rig_of(&second, 2, true);
  file_rig_started(&second);
  assert_int_equal(unlink(beside("deployment-1.json")), 0);
  file_rig_stop(&second);
  assert_int_equal(file_rig_start(&second, &err), WEIR_E_CORRUPT);
  if (!strstr(err.message, "deployment-1.json")) fail_msg("%s", err.message);
  file_rig_done(&second);
  file_rig_done(&first);
}

/* ---- at one moment ------------------------------------------------------------------------------ */

typedef struct owner {
  file_rig rig;
  pthread_t thread;
  pthread_barrier_t *start;
  weir_status status;
  weir_error err;
} owner;

static void *start_owner(void *arg) {
  owner *o = arg;
  pthread_barrier_wait(o->start);
  o->status = file_rig_start(&o->rig, &o->err);
  return NULL;
}

/* Of OWNERS that start at one moment; the one that has the target in the end. */
static owner *race(owner *owners, uint8_t first, bool may_replace) {
  pthread_barrier_t start;
  assert_int_equal(pthread_barrier_init(&start, NULL, OWNERS), 0);
  memset(owners, 0, OWNERS * sizeof(*owners));
  for (int i = 0; i < OWNERS; i++) {
    rig_of(&owners[i].rig, (uint8_t)(first + i), may_replace);
    owners[i].start = &start;
    assert_int_equal(pthread_create(&owners[i].thread, NULL, start_owner, &owners[i]), 0);
  }
  for (int i = 0; i < OWNERS; i++)
    assert_int_equal(pthread_join(owners[i].thread, NULL), 0);
  pthread_barrier_destroy(&start);
  owner *winner = NULL;
  for (int i = 0; i < OWNERS; i++) {
    owner *o = &owners[i];
    weir_cursor out = {0};
    if (o->status) {
      assert_int_equal(o->status, WEIR_E_CONFLICT);
      continue;
    }
    /* Whoever was replaced at once publishes nothing. */
    weir_status status = commit_epoch(&o->rig, 1, NULL, 0, &out, &o->err);
    if (status) {
      assert_int_equal(status, WEIR_E_CONFLICT);
      assert_true(may_replace);
      continue;
    }
    assert_null(winner);
    winner = o;
  }
  assert_non_null(winner);
  return winner;
}

static void of_first_starts_one_wins(void **state) {
  (void)state;
  owner owners[OWNERS];
  for (int r = 0; r < ROUNDS; r++) {
    race(owners, 1, false);
    file_rig_expect_rows(path, ROWS);
    for (int i = 0; i < OWNERS; i++) file_rig_done(&owners[i].rig);
    remove_folder(NULL);
    make_folder(NULL);
  }
}

static void of_new_deployments_one_is_left(void **state) {
  (void)state;
  owner owners[OWNERS];
  for (int r = 0; r < ROUNDS; r++) {
    file_rig old;
    weir_cursor out = {0};
    weir_error err = {0};
    rig_of(&old, 100, false);
    file_rig_started(&old);
    race(owners, 1, true);
    file_rig_expect_rows(path, ROWS);
    assert_int_equal(commit_epoch(&old, 1, NULL, 0, &out, &err), WEIR_E_CONFLICT);
    for (int i = 0; i < OWNERS; i++) file_rig_done(&owners[i].rig);
    file_rig_done(&old);
    remove_folder(NULL);
    make_folder(NULL);
  }
}

#define claim_test(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_table_of_claims),
      claim_test(the_first_has_the_target),
      claim_test(a_replaced_one_is_stopped_at_its_next_commit),
      claim_test(a_folder_that_was_given_away),
      claim_test(records_that_were_removed),
      claim_test(of_first_starts_one_wins),
      claim_test(of_new_deployments_one_is_left),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
