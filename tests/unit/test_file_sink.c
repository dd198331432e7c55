/* SPDX-License-Identifier: Apache-2.0 */
/* The file sink through its table: life, epochs, rolling, rollback, the cleaner, folders it refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/file_rig.h"

static char folder[256];

static int make_folder(void **state) {
  (void)state;
  file_rig_folder(folder);
  return 0;
}

static int remove_folder(void **state) {
  (void)state;
  file_rig_cleanup(folder);
  return 0;
}

static const char *below(const char *name) {
  static char text[2][512];
  static int turn;
  turn = !turn;
  snprintf(text[turn], sizeof(text[turn]), "%s/%s", folder, name);
  return text[turn];
}

static void write_file(const char *path, const char *content) {
  FILE *file = fopen(path, "we");
  assert_non_null(file);
  fputs(content, file);
  assert_int_equal(fclose(file), 0);
}

static void must_commit(file_rig *rig, const weir_cursor *predecessor,
                        file_attempt *attempt) {
  weir_cursor out = {0};
  weir_error err = {0};
  if (file_rig_commit(rig, predecessor, &attempt, 1, &out, &err))
    fail_msg("%s", err.message);
  assert_true(weir_cursor_equal(&out, &attempt->attempt.cursor));
}

static void expect_refused(file_rig *rig, weir_status want, const char *text) {
  weir_error err = {0};
  weir_status status = file_rig_start(rig, &err);
  if (status != want || !strstr(err.message, text)) {
    fail_msg("%d: %s", (int)status, status ? err.message : "it started");
  }
}

static void contract_says_what_it_keeps(void **state) {
  (void)state;
  file_rig rig;
  weir_contract contract = {.struct_size = sizeof(contract)};
  file_rig_init(&rig, below("orders"), NULL, NULL, 0);
  assert_int_equal(weir_file_sink_ops.create(file_rig_host(), &rig.sink, NULL), WEIR_OK);
  assert_ptr_equal(rig.sink.ops, &weir_file_sink_ops);
  assert_int_equal(weir_file_sink_ops.contract(&rig.sink, rig.options, &contract, NULL),
                   WEIR_OK);
  assert_int_equal(contract.consistency, WEIR_COMMITTABLE);
  assert_int_equal(contract.topology, WEIR_MULTI_WRITER);
  assert_int_equal(contract.input, WEIR_INPUT_APPEND);
  assert_int_equal(contract.overlap, 1);
  assert_int_equal(contract.cas_commit, 1);
  assert_int_equal(contract.claims, 1);
  assert_int_equal(file_rig_count(folder), 0); /* no I/O so far */
  file_rig_done(&rig);
}

static void nothing_shows_before_the_commit(void **state) {
  (void)state;
  file_rig rig;
  file_attempt a;
  char staged[1024];
  struct stat info;
  file_rig_init(&rig, below("deep/er/orders"), NULL, NULL, 0);
  file_rig_started(&rig);
  file_rig_inner(&rig, "staged", staged);
  file_rig_epoch(&rig, 1, 1, 0, 10, &a);
  file_rig_expect_rows(rig.path, 0);
  assert_int_equal(file_rig_count(staged), 1);
  assert_int_equal(stat(staged, &info), 0);
  assert_int_equal(info.st_mode & 0777, 0700);
  must_commit(&rig, NULL, &a);
  file_rig_expect_rows(rig.path, 10);
  assert_int_equal(file_rig_count(staged), 0);
  weir_cursor cursor = file_rig_cursor(&rig);
  assert_true(weir_cursor_equal(&cursor, &a.attempt.cursor));
  file_attempt_done(&a);
  file_rig_done(&rig);
}

static void an_epoch_without_rows_leaves_nothing(void **state) {
  (void)state;
  file_rig rig;
  file_attempt a;
  char staged[1024];
  file_rig_init(&rig, below("orders"), NULL, NULL, 0);
  file_rig_started(&rig);
  file_rig_inner(&rig, "staged", staged);
  file_rig_begin(&rig, 1, &a);
  assert_int_equal(file_rig_write(&rig, 0, 0, NULL), WEIR_OK);
  file_rig_prepare(&rig, 1, &a);
  assert_null(a.descriptor.release);
  assert_int_equal(file_rig_count(staged), 0);
  /* It may still ride in a batch. */
  must_commit(&rig, NULL, &a);
  file_rig_expect_rows(rig.path, 0);
  file_attempt_done(&a);
  file_rig_done(&rig);
}

static void rolls_by_rows_without_empty_files(void **state) {
  (void)state;
  static const char *const names[] = {"roll.rows"}, *const values[] = {"100"};
  file_rig rig;
  file_attempt a, b;
  file_rig_init(&rig, below("orders"), names, values, 1);
  file_rig_started(&rig);
  file_rig_begin(&rig, 1, &a);
  for (int i = 0; i < 4; i++)
    assert_int_equal(file_rig_write(&rig, 50 * i, 50, NULL), WEIR_OK);
  file_rig_prepare(&rig, 1, &a);
  must_commit(&rig, NULL, &a);
  assert_int_equal(file_rig_count(rig.path), 2);
  file_rig_begin(&rig, 2, &b); /* one batch over many files, from the middle of one */
  assert_int_equal(file_rig_write(&rig, 200, 30, NULL), WEIR_OK);
  assert_int_equal(file_rig_write(&rig, 230, 325, NULL), WEIR_OK);
  file_rig_prepare(&rig, 1, &b);
  must_commit(&rig, &a.attempt.cursor, &b);
  assert_int_equal(file_rig_count(rig.path), 2 + 4);
  file_rig_expect_rows(rig.path, 555);
  file_attempt_done(&a);
  file_attempt_done(&b);
  file_rig_done(&rig);
}

static void rolls_by_size(void **state) {
  (void)state;
  static const char *const names[] = {"roll.size"}, *const values[] = {"1KiB"};
  file_rig rig;
  file_attempt a;
  file_rig_init(&rig, below("orders"), names, values, 1);
  file_rig_started(&rig);
  file_rig_begin(&rig, 1, &a);
  for (int i = 0; i < 10; i++)
    assert_int_equal(file_rig_write(&rig, 100 * i, 100, NULL), WEIR_OK);
  file_rig_prepare(&rig, 1, &a);
  must_commit(&rig, NULL, &a);
  file_rig_expect_rows(rig.path, 1000);
  assert_int_equal(file_rig_count(rig.path),
                   9); /* 100 lines of three digits are past 1 KiB */
  file_attempt_done(&a);
  file_rig_done(&rig);
}

static void hooks_out_of_order_are_refused(void **state) {
  (void)state;
  file_rig rig;
  file_attempt a;
  weir_bytes bytes = {0};
  file_rig_init(&rig, below("orders"), NULL, NULL, 0);
  file_rig_started(&rig);
  const weir_sink_ops *ops = rig.sink.ops;
  assert_int_equal(file_rig_write(&rig, 0, 1, NULL), WEIR_E_INVALID_STATE);
  assert_int_equal(ops->begin_epoch(&rig.sink, NULL, 7, NULL), WEIR_E_INVALID_STATE);
  assert_int_equal(ops->begin_epoch(&rig.sink, NULL, 0, NULL), WEIR_E_INVALID_STATE);
  assert_int_equal(ops->pre_commit(&rig.sink, NULL, 7, &bytes, NULL),
                   WEIR_E_INVALID_STATE);
  assert_int_equal(ops->checkpoint_artifact_intent(&rig.sink, NULL, 0, &bytes, NULL),
                   WEIR_E_INVALID_STATE);
  file_rig_epoch(&rig, 1, 1, 0, 5, &a);
  assert_int_equal(file_rig_write(&rig, 5, 1, NULL),
                   WEIR_E_INVALID_STATE); /* it is sealed */
  /* Asked again, both hooks give the same bytes. */
  assert_int_equal(ops->pre_commit(&rig.sink, NULL, 1, &bytes, NULL), WEIR_OK);
  assert_int_equal(bytes.size, a.descriptor.size);
  assert_memory_equal(bytes.data, a.descriptor.data, bytes.size);
  weir_bytes_release(&bytes);
  assert_int_equal(ops->checkpoint_artifact_intent(&rig.sink, NULL, 1, &bytes, NULL),
                   WEIR_OK);
  assert_int_equal(bytes.size, a.intent.size);
  assert_memory_equal(bytes.data, a.intent.data, bytes.size);
  weir_bytes_release(&bytes);
  file_attempt_done(&a);
  file_rig_done(&rig);
}

static void rollback_drops_its_epoch_and_no_other(void **state) {
  (void)state;
  file_rig rig;
  file_attempt a, b, c;
  char staged[1024];
  file_rig_init(&rig, below("orders"), NULL, NULL, 0);
  file_rig_started(&rig);
  file_rig_inner(&rig, "staged", staged);
  const weir_sink_ops *ops = rig.sink.ops;
  file_rig_epoch(&rig, 1, 1, 0, 5, &a); /* decided, its commit is on its way */
  file_rig_begin(&rig, 2, &b);
  assert_int_equal(file_rig_write(&rig, 100, 5, NULL), WEIR_OK);
  assert_int_equal(file_rig_count(staged), 2);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(ops->rollback_epoch(&rig.sink, NULL, 2, NULL), WEIR_OK);
    assert_int_equal(file_rig_count(staged), 1);
  }
  assert_int_equal(ops->rollback_epoch(&rig.sink, NULL, 3, NULL),
                   WEIR_OK); /* never begun */
  must_commit(&rig, NULL, &a);
  assert_int_equal(ops->rollback_epoch(&rig.sink, NULL, 1, NULL),
                   WEIR_OK); /* published: too late */
  file_rig_expect_rows(rig.path, 5);
  file_rig_epoch(&rig, 4, 1, 5, 5, &c);
  must_commit(&rig, &a.attempt.cursor, &c);
  file_rig_expect_rows(rig.path, 10);
  file_attempt_done(&a);
  file_attempt_done(&b);
  file_attempt_done(&c);
  file_rig_done(&rig);
}

/* How many files may be open is taken away and given back: what failed would go well the next time. */
static struct rlimit no_more_files(void) {
  struct rlimit before = {0}, none = {0};
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
  none.rlim_max = before.rlim_max;
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
  return before;
}

/* Nobody knows what of the batch is in which file. */
static void an_epoch_that_failed_can_only_be_rolled_back(void **state) {
  (void)state;
  const weir_sink_ops *ops = &weir_file_sink_ops;
  file_rig rig;
  file_attempt failed = {0}, again = {0};
  weir_bytes bytes = {0};
  weir_error err = {0};
  file_rig_init(&rig, below("orders"), NULL, NULL, 0);
  file_rig_started(&rig);
  file_rig_begin(&rig, 1, &failed);
  const struct rlimit before = no_more_files();
  assert_int_equal(file_rig_write(&rig, 0, 5, &err), WEIR_E_IO);
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
  assert_int_equal(file_rig_write(&rig, 0, 5, &err), WEIR_E_INVALID_STATE);
  assert_non_null(strstr(err.message, "only be rolled back"));
  assert_int_equal(ops->pre_commit(&rig.sink, NULL, 1, &bytes, &err),
                   WEIR_E_INVALID_STATE);
  assert_null(bytes.release);
  assert_int_equal(ops->rollback_epoch(&rig.sink, NULL, 1, &err), WEIR_OK);
  file_rig_epoch(&rig, 2, 1, 0, 5, &again);
  must_commit(&rig, NULL, &again);
  file_rig_expect_rows(rig.path, 5);
  file_attempt_done(&failed);
  file_attempt_done(&again);
  file_rig_done(&rig);
}

static void cleaner_works_from_the_intent_alone(void **state) {
  (void)state;
  file_rig rig;
  file_attempt dead, live;
  char staged[1024];
  weir_error err = {0};
  file_rig_init(&rig, below("orders"), NULL, NULL, 0);
  file_rig_started(&rig);
  file_rig_inner(&rig, "staged", staged);
  file_rig_epoch(&rig, 1, 1, 0, 5, &dead);
  file_rig_stop(&rig); /* as if it had died */
  file_rig_started(&rig);
  /* A restored store gives the number out again; only the incarnation tells the two apart. */
  file_rig_epoch(&rig, 1, 2, 0, 7, &live);
  assert_int_equal(file_rig_count(staged), 2);
  for (int i = 0; i < 2; i++) {
    if (file_rig_clean(&rig, 1, &dead.intent, &err)) fail_msg("%s", err.message);
    assert_int_equal(file_rig_count(staged), 1);
  }
  must_commit(&rig, NULL, &live);
  /* Now the live one is decided and published: neither its intent nor none may harm it. */
  if (file_rig_clean(&rig, 1, &live.intent, &err)) fail_msg("%s", err.message);
  if (file_rig_clean(&rig, 1, NULL, &err)) fail_msg("%s", err.message);
  file_rig_expect_rows(rig.path, 7);
  file_attempt_done(&dead);
  file_attempt_done(&live);
  file_rig_done(&rig);
}

static void cleaner_without_an_intent(void **state) {
  (void)state;
  file_rig rig, other;
  file_attempt dead, next, theirs;
  char staged[1024];
  weir_error err = {0};
  file_rig_init(&rig, below("orders"), NULL, NULL, 0);
  file_rig_init(&other, below("orders"), NULL, NULL, 0);
  other.participant = 2;
  file_rig_started(&rig);
  file_rig_started(&other);
  file_rig_inner(&rig, "staged", staged);
  file_rig_epoch(&rig, 1, 1, 0, 5, &dead);
  file_rig_epoch(&other, 1, 1, 0, 5, &theirs);
  file_rig_begin(&rig, 2, &next); /* live */
  assert_int_equal(file_rig_write(&rig, 0, 5, NULL), WEIR_OK);
  assert_int_equal(file_rig_count(staged), 3);
  for (int i = 0; i < 2; i++) {
    if (file_rig_clean(&rig, 1, NULL, &err)) fail_msg("%s", err.message);
    assert_int_equal(file_rig_count(staged),
                     2); /* participant 2 and the live attempt stay */
  }
  file_rig_prepare(&rig, 1, &next);
  must_commit(&rig, NULL, &next);
  file_rig_expect_rows(rig.path, 5);
  weir_bytes broken = {.data = (const uint8_t *)"{}", .size = 2};
  assert_int_equal(file_rig_clean(&rig, 1, &broken, &err), WEIR_E_CORRUPT);
  /* An intent of another attempt than the entry says would clean the wrong files. */
  assert_int_equal(file_rig_clean(&rig, 3, &dead.intent, &err), WEIR_E_CORRUPT);
  file_attempt_done(&dead);
  file_attempt_done(&next);
  file_attempt_done(&theirs);
  file_rig_done(&rig);
  file_rig_done(&other);
}

/* Nothing tells what is left of it from its own. */
static void without_an_intent_a_decided_attempt_is_left_alone(void **state) {
  (void)state;
  file_rig rig;
  file_attempt dead, live;
  char staged[1024];
  weir_error err = {0};
  file_rig_init(&rig, below("orders"), NULL, NULL, 0);
  file_rig_started(&rig);
  file_rig_inner(&rig, "staged", staged);
  file_rig_epoch(&rig, 1, 1, 0, 5, &dead);
  file_rig_stop(&rig);
  file_rig_started(&rig);
  file_rig_epoch(&rig, 1, 2, 0, 7, &live);
  must_commit(&rig, NULL, &live);
  if (file_rig_clean(&rig, 1, NULL, &err)) fail_msg("%s", err.message);
  assert_int_equal(file_rig_count(staged), 1);
  if (file_rig_clean(&rig, 1, &dead.intent, &err)) fail_msg("%s", err.message);
  assert_int_equal(file_rig_count(staged), 0);
  file_attempt_done(&dead);
  file_attempt_done(&live);
  file_rig_done(&rig);
}

static void cleaner_outlives_the_sink(void **state) {
  (void)state;
  file_rig rig;
  file_attempt dead;
  char staged[1024];
  weir_error err = {0};
  file_rig_init(&rig, below("orders"), NULL, NULL, 0);
  file_rig_started(&rig);
  file_rig_inner(&rig, "staged", staged);
  file_rig_epoch(&rig, 1, 1, 0, 5, &dead);
  weir_cleaner cleaner = rig.sink.ops->coordinated_abort_cleaner(&rig.sink);
  file_rig_stop(&rig);
  weir_abort_entry entry = {1, 1, 1, dead.intent.data, dead.intent.size};
  weir_abort_batch batch = {sizeof(batch), &rig.ns, &entry, 1};
  if (cleaner.ops->clean(cleaner.state, NULL, &batch, &err)) fail_msg("%s", err.message);
  assert_int_equal(file_rig_count(staged), 0);
  file_rig_cleanup(folder); /* all of it gone: nothing left to clean is no failure */
  if (cleaner.ops->clean(cleaner.state, NULL, &batch, &err)) fail_msg("%s", err.message);
  cleaner.ops->unref(cleaner.state);
  cleaner.ops->unref(NULL);
  file_attempt_done(&dead);
  file_rig_done(&rig);
}

static void two_writers_one_commit(void **state) {
  (void)state;
  file_rig one, two;
  file_attempt a, b;
  weir_cursor out = {0};
  weir_error err = {0};
  file_rig_init(&one, below("orders"), NULL, NULL, 0);
  file_rig_init(&two, below("orders"), NULL, NULL, 0);
  two.participant = 2;
  file_rig_started(&one);
  file_rig_started(&two);
  file_rig_epoch(&one, 1, 1, 0, 5, &a);
  file_rig_epoch(&two, 1, 1, 5, 6, &b);
  weir_commit_entry entries[] = {a.entry, b.entry};
  weir_commit_attempt attempt = {
      .cursor = a.attempt.cursor, .entries = entries, .n_entries = 2};
  weir_commit_batch batch = {
      .struct_size = sizeof(batch), .ns = &one.ns, .n_attempts = 1};
  batch.attempts = &attempt;
  if (one.committer.ops->commit_aggregated(one.committer.state, NULL, &batch, &out,
                                           &err)) {
    fail_msg("%s", err.message);
  }
  file_rig_expect_rows(one.path, 11);
  file_attempt_done(&a);
  file_attempt_done(&b);
  file_rig_done(&one);
  file_rig_done(&two);
}

static void identity_follows_the_folder(void **state) {
  (void)state;
  file_rig rig, moved;
  char first[256];
  file_rig_init(&rig, below("home/orders"), NULL, NULL, 0);
  file_rig_started(&rig);
  snprintf(first, sizeof(first), "%s", rig.binding.identity);
  assert_int_equal(strncmp(first, "folder=", 7), 0);
  file_rig_stop(&rig);
  file_rig_started(&rig);
  assert_string_equal(rig.binding.identity, first);
  file_rig_done(&rig);
  assert_int_equal(rename(below("home"), below("house")), 0);
  file_rig_init(&moved, below("house/orders"), NULL, NULL, 0);
  file_rig_started(&moved); /* the whole tree has moved: the same target */
  assert_string_equal(moved.binding.identity, first);
  file_rig_done(&moved);
  file_rig_cleanup(below("house/.weir"));
  file_rig_init(&moved, below("house/orders"), NULL, NULL, 0);
  file_rig_started(&moved); /* cursors and record are gone: another target */
  assert_string_not_equal(moved.binding.identity, first);
  file_rig_done(&moved);
}

static void one_folder_one_sink(void **state) {
  (void)state;
  file_rig first, other;
  file_rig_init(&first, below("orders"), NULL, NULL, 0);
  file_rig_started(&first);
  file_rig_init(&other, below("orders"), NULL, NULL, 0);
  other.ns = file_rig_namespace("orders", "lake2", 0x22); /* same pipeline, other sink */
  expect_refused(&other, WEIR_E_INVALID_CONFIG,
                 "belongs to sink 'lake' of pipeline 'orders'");
  file_rig_stop(&other);
  other.ns = file_rig_namespace("returns", "lake", 0x22); /* other pipeline */
  expect_refused(&other, WEIR_E_INVALID_CONFIG,
                 "belongs to sink 'lake' of pipeline 'orders'");
  file_rig_stop(&other);
  other.ns =
      file_rig_namespace("orders", "lake", 0x33); /* a new deployment of the same */
  other.ns.may_replace = 1;
  file_rig_started(&other);
  file_rig_done(&other);
  /* By a link, too. */
  assert_int_equal(symlink(below("orders"), below("alias")), 0);
  file_rig_init(&other, below("alias"), NULL, NULL, 0);
  other.ns = file_rig_namespace("returns", "lake", 0x22);
  expect_refused(&other, WEIR_E_INVALID_CONFIG, "belongs to sink 'lake'");
  file_rig_done(&other);
  file_rig_done(&first);
}

static void folders_that_cannot_be_targets(void **state) {
  (void)state;
  file_rig rig;
  write_file(below("file"), "x");
  file_rig_init(&rig, below("file"), NULL, NULL, 0);
  expect_refused(&rig, WEIR_E_INVALID_CONFIG, "is a file");
  file_rig_done(&rig);
  file_rig_init(&rig, below("file/orders"), NULL, NULL, 0);
  expect_refused(&rig, WEIR_E_INVALID_CONFIG, "a file");
  file_rig_done(&rig);
  file_rig_init(&rig, below(".weir/orders"), NULL, NULL, 0);
  expect_refused(&rig, WEIR_E_INVALID_CONFIG, ".weir");
  file_rig_done(&rig);
  file_rig_init(&rig, "/", NULL, NULL, 0);
  expect_refused(&rig, WEIR_E_INVALID_CONFIG, "'/'");
  file_rig_done(&rig);
  file_rig_init(&rig, "s3://bucket/orders", NULL, NULL, 0);
  expect_refused(&rig, WEIR_E_INVALID_CONFIG, "s3://bucket/orders");
  file_rig_done(&rig);
  file_rig_init(&rig, "-", NULL, NULL, 0);
  expect_refused(&rig, WEIR_E_INVALID_CONFIG, "stdout");
  file_rig_done(&rig);
  file_rig_init(&rig, "/proc", NULL, NULL, 0);
  expect_refused(&rig, WEIR_E_INVALID_CONFIG, "another mount");
  file_rig_done(&rig);
  assert_int_equal(access("/.weir/proc", F_OK), -1);
}

static void targets_within_each_other(void **state) {
  (void)state;
  file_rig outer, inner;
  file_rig_init(&outer, below("a"), NULL, NULL, 0);
  file_rig_started(&outer);
  file_rig_init(&inner, below("a/b/c"), NULL, NULL, 0);
  expect_refused(&inner, WEIR_E_INVALID_CONFIG, "lies within");
  file_rig_done(&inner);
  file_rig_done(&outer);
  file_rig_init(&inner, below("x/y"), NULL, NULL, 0);
  file_rig_started(&inner);
  file_rig_init(&outer, below("x"), NULL, NULL, 0);
  expect_refused(&outer, WEIR_E_INVALID_CONFIG, "a sink's target already");
  file_rig_done(&outer);
  file_rig_done(&inner);
}

static void options_must_go_together(void **state) {
  (void)state;
  static const char *const names[] = {"compression"}, *const values[] = {"zstd"};
  static const char *const names2[] = {"effort"}, *const values2[] = {"small"};
  file_rig rig;
  file_rig_init(&rig, below("orders"), names, values, 1);
  expect_refused(&rig, WEIR_E_INVALID_CONFIG, "compression");
  file_rig_done(&rig);
  file_rig_init(&rig, below("orders"), names2, values2, 1);
  expect_refused(&rig, WEIR_E_INVALID_CONFIG, "effort");
  file_rig_done(&rig);
  assert_int_equal(file_rig_count(folder), 0);
}

static void a_folder_may_hold_files_of_others(void **state) {
  (void)state;
  file_rig rig;
  file_attempt a;
  assert_int_equal(mkdir(below("orders"), 0755), 0);
  write_file(below("orders/old.ndjson"), "{\"id\":0}\n");
  file_rig_init(&rig, below("orders"), NULL, NULL, 0);
  file_rig_started(&rig);
  file_rig_epoch(&rig, 1, 1, 1, 5, &a);
  must_commit(&rig, NULL, &a);
  file_rig_expect_rows(rig.path, 6);
  file_attempt_done(&a);
  file_rig_done(&rig);
}

#define file_test(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void) {
  const struct CMUnitTest tests[] = {
      file_test(contract_says_what_it_keeps),
      file_test(nothing_shows_before_the_commit),
      file_test(an_epoch_without_rows_leaves_nothing),
      file_test(rolls_by_rows_without_empty_files),
      file_test(rolls_by_size),
      file_test(hooks_out_of_order_are_refused),
      file_test(rollback_drops_its_epoch_and_no_other),
      file_test(an_epoch_that_failed_can_only_be_rolled_back),
      file_test(cleaner_works_from_the_intent_alone),
      file_test(cleaner_without_an_intent),
      file_test(without_an_intent_a_decided_attempt_is_left_alone),
      file_test(cleaner_outlives_the_sink),
      file_test(two_writers_one_commit),
      file_test(identity_follows_the_folder),
      file_test(one_folder_one_sink),
      file_test(folders_that_cannot_be_targets),
      file_test(targets_within_each_other),
      file_test(options_must_go_together),
      file_test(a_folder_may_hold_files_of_others),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
