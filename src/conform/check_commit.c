/* SPDX-License-Identifier: Apache-2.0 */
/* The committer: when rows appear, when they must not, and what it says instead. */
#include <string.h>
#include <unistd.h>

#include "conform/conform.h"

/* One's own attempts from `first` to `last`, whatever the target says. */
static weir_status commit(conform_rig *rig, uint64_t first, uint64_t last,
                          weir_error *err) {
  conform_batch batch;
  conform_make_batch(rig, first, last, &batch);
  return conform_commit(rig, &batch, err);
}

/* It must be refused with that status, and stay so. */
static void must_refuse(conform_rig *rig, const conform_batch *batch, weir_status want,
                        const char *what) {
  for (int i = 0; i < 2; i++) {
    weir_error err = {0};
    weir_status status = conform_commit(rig, batch, &err);
    if (status != want)
      conform_wrong(rig, "commit_aggregated: %s is %s%s%s; expected %s", what,
                    weir_status_name(status), status ? ": " : "",
                    status ? err.message : "", weir_status_name(want));
  }
}

/* ---- when rows appear -------------------------------------------------------------------------- */

static void not_before(conform_rig *rig) {
  conform_open(rig);
  uint64_t n = conform_begin(rig);
  conform_fill(rig, n, 0);
  conform_prepare(rig, n);
  if (conform_observe(rig).checkpoint)
    conform_wrong(rig, "observe_cursor: there is one before anything was committed");
  conform_pause(rig);
  conform_decide(rig, n);
  conform_publish(rig);
  conform_stop(rig);
}

void conform_check_not_before(conform *c) {
  conform_child child;
  if (conform_run(c, &(conform_plan){0}, not_before, &child) != CONFORM_PAUSED) return;
  conform_count_is(c, 0, "between pre_commit and commit");
  if (conform_resume(c, &child) == CONFORM_ENDED)
    conform_count_is(c, conform_decided_rows(c), "after the commit");
}

/* Its process ends as soon as the committer has answered. */
static void unheard(conform_rig *rig) {
  weir_error err = {0};
  conform_open(rig);
  uint64_t n = conform_decided(rig);
  for (int i = 0; i < 3; i++)
    conform_must(rig, commit(rig, n, n, &err), "commit_aggregated", &err);
}

static void same_again(conform_rig *rig) {
  weir_error err = {0};
  conform_start(rig, 1);
  conform_must(rig, commit(rig, 1, 1, &err), "the same batch by another process", &err);
  conform_epoch(rig);
  conform_must(rig, commit(rig, 1, 2, &err), "a batch that begins with what is there",
               &err);
  conform_stop(rig);
}

void conform_check_again(conform *c) {
  if (!conform_through(c, unheard)) return;
  conform_count_is(c, conform_decided_rows(c), "after the same commit batch three times");
  if (conform_through(c, same_again))
    conform_count_is(c, conform_decided_rows(c),
                     "after it was sent again by the next process");
}

/* ---- other owners ------------------------------------------------------------------------------ */

/* Pauses with a decided attempt in hand, and is refused when it wakes up. */
static void wake_too_late(conform_rig *rig, weir_status want, const char *what) {
  conform_batch batch;
  conform_open(rig);
  conform_epoch(rig);
  uint64_t n = conform_decided(rig);
  conform_make_batch(rig, n, n, &batch);
  conform_pause(rig);
  must_refuse(rig, &batch, want, what);
}

/* The next owner publishes its attempt, and another one. */
static void paused_owner(conform_rig *rig) {
  wake_too_late(rig, WEIR_E_FENCED,
                "an attempt of an older owner, with a newer one's cursor at the target,");
}

void conform_check_fenced(conform *c) {
  conform_child child;
  if (conform_run(c, &(conform_plan){0}, paused_owner, &child) != CONFORM_PAUSED) return;
  bool taken_over = conform_through(c, conform_one_epoch);
  uint64_t rows = conform_decided_rows(c);
  if (conform_resume(c, &child) == CONFORM_ENDED && taken_over)
    conform_count_is(c, rows, "after an older owner has tried to commit");
}

/* A copied state folder: the same number again, under the same token, with other rows. */
static void copy_of_history(conform_rig *rig) {
  conform_batch batch;
  conform_start(rig, 1);
  rig->store->next_row += 1 << 10;
  uint64_t n = conform_decided(rig);
  conform_make_batch(rig, n, n, &batch);
  must_refuse(rig, &batch, WEIR_E_CONFLICT,
              "an attempt that the target knows with another digest");
}

void conform_check_other_digest(conform *c) {
  static conform_store copy;
  if (!conform_through(c, conform_one_epoch)) return;
  copy = c->memory->store;
  if (!conform_through(c, conform_one_epoch)) return;
  uint64_t rows = conform_decided_rows(c);
  c->memory->store = copy;
  if (conform_through(c, copy_of_history))
    conform_count_is(c, rows, "after a copied history has tried to commit");
}

static void skip_one(conform_rig *rig) {
  conform_batch batch;
  conform_open(rig);
  conform_epoch(rig);
  conform_decided(rig);
  uint64_t n = conform_decided(rig);
  conform_make_batch(rig, n, n, &batch);
  must_refuse(rig, &batch, WEIR_E_CONFLICT,
              "a batch whose predecessor is not the target's cursor");
  conform_publish(rig);
  conform_stop(rig);
}

void conform_check_predecessor(conform *c) {
  if (conform_through(c, skip_one))
    conform_count_is(c, conform_decided_rows(c),
                     "after a batch that left an attempt out, and a whole one");
}

/* ---- a target that cannot be reached ------------------------------------------------------------ */

static void cut(conform_rig *rig, int what) {
  if (conform_cut_off(what)) return;
  rig->memory->cannot_cut = true;
  _exit(0);
}

static void tell_uncut(conform *c) {
  if (c->memory->cannot_cut)
    conform_unshown(c, "this system does not let system calls be filtered (seccomp)");
}

static void unreadable(conform_rig *rig) {
  weir_cursor cursor = {0};
  weir_error err = {0};
  conform_open(rig);
  uint64_t n = conform_epoch(rig);
  cut(rig, CONFORM_CUT_READS);
  conform_step(rig, "observe_cursor");
  weir_status status =
      connector_sink_observe_cursor(rig->sinks[0], &rig->call, &cursor, &err);
  conform_step_done(rig);
  if (!status && cursor.checkpoint != n)
    conform_wrong(rig,
                  "observe_cursor: with reads failing it answers attempt %llu instead of "
                  "an error or attempt %llu",
                  (unsigned long long)cursor.checkpoint, (unsigned long long)n);
}

void conform_check_unreadable(conform *c) {
  conform_through(c, unreadable);
  tell_uncut(c);
}

/* Whatever the sink said then, the next process brings all that was decided, once. */
static void check_cut(conform *c, conform_script script, const char *when) {
  if (conform_through(c, script) && conform_through(c, conform_only_recover) &&
      conform_count_is(c, conform_decided_rows(c), when) &&
      conform_through(c, conform_one_epoch))
    conform_count_is(c, conform_decided_rows(c), when);
  tell_uncut(c);
}

/* An answer of OK is decided, any other aborted. */
static void failed_prepare(conform_rig *rig, int what) {
  weir_bytes descriptor = {0};
  weir_error err = {0};
  conform_open(rig);
  uint64_t n = conform_begin(rig);
  conform_fill(rig, n, 0);
  cut(rig, what);
  conform_step(rig, "pre_commit");
  weir_status status =
      connector_sink_pre_commit(rig->sinks[0], &rig->call, n, &descriptor, &err);
  conform_step_done(rig);
  if (status) return;
  conform_attempt_of(rig, n)->descriptors[0] = conform_keep(rig->memory, &descriptor);
  conform_decide(rig, n);
}

static void prepare_on_a_full_disk(conform_rig *rig) {
  failed_prepare(rig, CONFORM_CUT_WRITES);
}

void conform_check_failed_prepare(conform *c) {
  check_cut(c, prepare_on_a_full_disk, "after a pre_commit whose writes failed");
}

static void failed_commit(conform_rig *rig, int what) {
  weir_error err = {0};
  conform_open(rig);
  uint64_t n = conform_decided(rig);
  cut(rig, what);
  if (!commit(rig, n, n, &err)) return;
  conform_look(rig->c, "an error", err.message, strlen(err.message));
}

static void commit_without_writes(conform_rig *rig) {
  failed_commit(rig, CONFORM_CUT_WRITES);
}

static void commit_without_reads(conform_rig *rig) {
  failed_commit(rig, CONFORM_CUT_READS);
}

void conform_check_failed_commit(conform *c) {
  check_cut(c, commit_without_writes, "after a commit whose writes failed");
  check_cut(c, commit_without_reads, "after a commit whose reads failed");
}

/* ---- claims ------------------------------------------------------------------------------------ */

static void unasked_deployment(conform_rig *rig) {
  weir_error err = {0};
  rig->may_not_replace = true;
  rig->sinks[rig->n++] = conform_create(rig, 1);
  weir_status status = conform_prepare_target(rig, &err);
  if (status != WEIR_E_CONFLICT)
    conform_wrong(rig,
                  "prepare_schema: a second deployment that did not ask to replace the "
                  "first is %s%s%s; expected CONFLICT",
                  weir_status_name(status), status ? ": " : "",
                  status ? err.message : "");
}

/* A store without attempts and another deployment; the one before stays in *kept. */
static bool other_deployment(conform *c, conform_store *kept) {
  *kept = c->memory->store;
  memset(&c->memory->store, 0, sizeof(c->memory->store));
  c->memory->store.next_row = kept->next_row + (1 << 10);
  return !base_uuid_new(c->memory->store.deployment, &c->error);
}

void conform_check_second_deployment(conform *c) {
  static conform_store first;
  if (!conform_through(c, conform_one_epoch) || !other_deployment(c, &first) ||
      !conform_through(c, unasked_deployment))
    return;
  c->memory->store = first;
  if (conform_through(c, conform_one_epoch))
    conform_count_is(c, conform_decided_rows(c), "after a second deployment was refused");
}

static void replaced_owner(conform_rig *rig) {
  wake_too_late(rig, WEIR_E_CONFLICT, "an attempt of a deployment that was replaced");
}

static void replaced_start(conform_rig *rig) {
  weir_error err = {0};
  rig->sinks[rig->n++] = conform_create(rig, 1);
  weir_status status = conform_prepare_target(rig, &err);
  if (status != WEIR_E_CONFLICT)
    conform_wrong(rig,
                  "prepare_schema: a deployment that was replaced is %s; expected "
                  "CONFLICT",
                  weir_status_name(status));
}

void conform_check_replaced(conform *c) {
  static conform_store first, second;
  conform_child child;
  if (conform_run(c, &(conform_plan){0}, replaced_owner, &child) != CONFORM_PAUSED)
    return;
  uint64_t rows = CONFORM_ROWS; /* of the first epoch; the second was not published */
  bool replaced = other_deployment(c, &first) && conform_through(c, conform_one_epoch);
  rows += conform_decided_rows(c);
  second = c->memory->store;
  c->memory->store = first;
  if (conform_resume(c, &child) == CONFORM_ENDED && replaced &&
      conform_count_is(c, rows, "after a replaced owner has tried to commit") &&
      conform_through(c, replaced_start)) {
    c->memory->store = second;
    if (conform_through(c, conform_one_epoch))
      conform_count_is(c, rows + CONFORM_ROWS, "after the new deployment went on");
  }
}
