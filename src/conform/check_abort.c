/* SPDX-License-Identifier: Apache-2.0 */
/* Ways back: rollback of the living, cleaning after the dead. */
#include "conform/conform.h"

static void check_rows(conform *c, conform_script script, const char *when) {
  if (conform_through(c, script)) conform_count_is(c, conform_decided_rows(c), when);
}

/* ---- rollback ---------------------------------------------------------------------------------- */

static void rollback_twice(conform_rig *rig) {
  conform_open(rig);
  for (int i = 0; i < 2; i++) {
    uint64_t n = conform_begin(rig);
    conform_fill(rig, n, 0);
    conform_prepare(rig, n);
    conform_rollback(rig, n);
    conform_rollback(rig, n);
    conform_epoch(rig);
  }
  conform_stop(rig);
}

void conform_check_rollback_twice(conform *c) {
  check_rows(c, rollback_twice, "after epochs of which every other one was rolled back");
}

/* Of the next number, which nobody has reserved or begun, and of one of a process that died. */
static void rollback_unbegun(conform_rig *rig) {
  conform_open(rig);
  conform_rollback(rig, rig->store->n + 1);
  if (rig->store->n) conform_rollback(rig, rig->store->n);
  conform_epoch(rig);
  uint64_t n = conform_begin(rig);
  conform_fill(rig, n, 0);
  conform_prepare(rig, n);
}

void conform_check_rollback_unbegun(conform *c) {
  for (int i = 0; i < 2; i++)
    check_rows(c, rollback_unbegun, "after a rollback of what was never begun");
}

static void rollback_half_way(conform_rig *rig) {
  conform_open(rig);
  for (int i = 0; i < 2; i++) {
    uint64_t n = conform_begin(rig);
    if (i) conform_fill(rig, n, 0);
    conform_rollback(rig, n);
    conform_epoch(rig);
  }
  conform_stop(rig);
}

void conform_check_rollback_half_way(conform *c) {
  check_rows(c, rollback_half_way,
             "after epochs that were rolled back before pre_commit");
}

static void rollback_published(conform_rig *rig) {
  conform_open(rig);
  uint64_t n = conform_epoch(rig);
  conform_rollback(rig, n);
  conform_stop(rig);
}

void conform_check_rollback_published(conform *c) {
  check_rows(c, rollback_published, "after rollback_epoch of a published attempt");
}

static void rollback_next(conform_rig *rig) {
  conform_open(rig);
  conform_decided(rig);
  uint64_t n = conform_begin(rig);
  conform_fill(rig, n, 0);
  conform_rollback(rig, n);
  conform_publish(rig);
  conform_epoch(rig);
  conform_stop(rig);
}

void conform_check_rollback_next(conform *c) {
  check_rows(c, rollback_next, "after a rollback behind an attempt that was decided");
}

/* ---- cleaning ---------------------------------------------------------------------------------- */

/* Dies with attempt 1 prepared. */
static void die_prepared(conform_rig *rig) {
  conform_open(rig);
  uint64_t n = conform_begin(rig);
  conform_fill(rig, n, 0);
  conform_prepare(rig, n);
}

/* The next process has aborted attempt 1, and its cursor is beyond it. */
static connector_cleaner *cleaner_beyond(conform_rig *rig) {
  conform_open(rig);
  conform_attempt_of(rig, 1)->cleaned = true; /* by the script */
  conform_epoch(rig);
  return conform_cleaner(rig);
}

static void clean_twice(conform_rig *rig) {
  connector_cleaner *cleaner = cleaner_beyond(rig);
  for (int i = 0; i < 3; i++)
    conform_clean(rig, cleaner, conform_attempt_of(rig, 1), true);
  connector_cleaner_free(cleaner);
  conform_epoch(rig);
  conform_stop(rig);
}

void conform_check_clean_twice(conform *c) {
  if (conform_through(c, die_prepared))
    check_rows(c, clean_twice, "after a cleaner ran thrice");
}

static void clean_without_intent(conform_rig *rig) {
  connector_cleaner *cleaner = cleaner_beyond(rig);
  for (int i = 0; i < 2; i++)
    conform_clean(rig, cleaner, conform_attempt_of(rig, 1), false);
  connector_cleaner_free(cleaner);
  conform_epoch(rig);
  conform_stop(rig);
}

void conform_check_clean_without_intent(conform *c) {
  if (conform_through(c, die_prepared))
    check_rows(c, clean_without_intent, "after a cleaner ran without an intent");
}

static void clean_later(conform_rig *rig) {
  connector_cleaner *cleaner = cleaner_beyond(rig);
  conform_stop(rig);
  conform_clean(rig, cleaner, conform_attempt_of(rig, 1), true);
  connector_cleaner_free(cleaner);
}

void conform_check_clean_later(conform *c) {
  if (conform_through(c, die_prepared))
    check_rows(c, clean_later, "after a cleaner ran behind its sink's release");
}

/* Attempt 1 is cleaned beside a published, a decided and an open one. */
static void clean_live(conform_rig *rig) {
  connector_cleaner *cleaner = cleaner_beyond(rig);
  conform_decided(rig);
  uint64_t n = conform_begin(rig);
  conform_fill(rig, n, 0);
  conform_clean(rig, cleaner, conform_attempt_of(rig, 1), true);
  conform_clean(rig, cleaner, conform_attempt_of(rig, 1), false);
  conform_publish(rig);
  conform_prepare(rig, n);
  conform_clean(rig, cleaner, conform_attempt_of(rig, 1), false);
  conform_decide(rig, n);
  conform_publish(rig);
  connector_cleaner_free(cleaner);
  conform_stop(rig);
}

void conform_check_clean_live(conform *c) {
  if (conform_through(c, die_prepared))
    check_rows(c, clean_live, "after a cleaner ran beside attempts that were decided");
}

/* A copied store has given number 1 out again; `dead` is the other history's. */
static conform_attempt dead;

static void clean_incarnation(conform_rig *rig) {
  conform_open(rig);
  conform_decided(rig);
  connector_cleaner *cleaner = conform_cleaner(rig);
  if (dead.intents[0].present) conform_clean(rig, cleaner, &dead, true);
  connector_cleaner_free(cleaner);
  conform_publish(rig);
  conform_stop(rig);
}

void conform_check_clean_incarnation(conform *c) {
  static conform_store copy;
  copy = c->memory->store;
  if (!conform_through(c, die_prepared)) return;
  dead = c->memory->store.attempts[0];
  c->memory->store = copy;
  check_rows(c, clean_incarnation,
             "after a cleaner ran for another history's attempt of the same number");
}
