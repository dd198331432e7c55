/* SPDX-License-Identifier: Apache-2.0 */
/* The file sink's committer: replay, races, fences, conflicts, roll forward, pruning, lost state. */
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../connectors/file/commits.h"
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

static void start(file_rig *rig) {
  char path[512];
  snprintf(path, sizeof(path), "%s/orders", folder);
  file_rig_init(rig, path, NULL, NULL, 0);
  file_rig_started(rig);
}

static void commit_ok(file_rig *rig, const weir_cursor *predecessor,
                      file_attempt **attempts, size_t n) {
  weir_cursor out = {0};
  weir_error err = {0};
  if (file_rig_commit(rig, predecessor, attempts, n, &out, &err))
    fail_msg("%s", err.message);
  assert_true(weir_cursor_equal(&out, &attempts[n - 1]->attempt.cursor));
  out = file_rig_cursor(rig);
  assert_true(weir_cursor_equal(&out, &attempts[n - 1]->attempt.cursor));
}

static void commit_fails(file_rig *rig, const weir_cursor *predecessor,
                         file_attempt *attempt, weir_status want, uint32_t flags) {
  weir_cursor out = {.checkpoint = 77};
  weir_error err = {0};
  weir_status status = file_rig_commit(rig, predecessor, &attempt, 1, &out, &err);
  if (status != want || err.flags != flags) {
    fail_msg("%d, flags %u: %s", (int)status, err.flags,
             status ? err.message : "committed");
  }
  assert_int_equal(out.checkpoint, 77);
}

static void open_folders(const file_rig *rig, file_place_folders *out) {
  file_place p = {0};
  assert_int_equal(file_place_find(rig->path, &p, NULL), WEIR_OK);
  assert_int_equal(file_place_folders_open(&p, &rig->ns, out, NULL), WEIR_OK);
  file_place_done(&p);
}

/* The manifest of one attempt, created but not rolled forward: an owner that died in between. */
static void append_only(file_rig *rig, const weir_cursor *predecessor,
                        const file_attempt *attempt, uint64_t sequence) {
  file_place_folders folders = {0};
  file_manifest m = {0};
  weir_cursor none = {0};
  weir_error err = {0};
  weir_commit_batch batch = {
      .struct_size = sizeof(batch), .ns = &rig->ns, .n_attempts = 1};
  batch.attempts = &attempt->attempt;
  open_folders(rig, &folders);
  if (file_manifest_build(&batch, 0, sequence, 1, predecessor ? predecessor : &none, &m,
                          &err) ||
      file_commits_append(&folders.commits, &m, &rig->ns, file_rig_host(), &err)) {
    fail_msg("%s", err.message);
  }
  file_manifest_done(&m);
  file_place_folders_done(&folders);
}

static uint64_t newest_sequence(const file_rig *rig) {
  file_place_folders folders = {0};
  file_manifest m = {0};
  weir_error err = {0};
  open_folders(rig, &folders);
  if (file_commits_newest(&folders.commits, &m, &err)) fail_msg("%s", err.message);
  uint64_t sequence = m.sequence;
  file_manifest_done(&m);
  file_place_folders_done(&folders);
  return sequence;
}

static void put(int dir, const char *name, const char *text) {
  int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  assert_true(fd >= 0);
  assert_int_equal(write(fd, text, strlen(text)), strlen(text));
  close(fd);
}

static void replay_changes_nothing(void **state) {
  (void)state;
  file_rig rig;
  file_attempt a, b, *pa = &a, *pb = &b;
  start(&rig);
  file_rig_epoch(&rig, 3, 1, 0, 5, &a);
  commit_ok(&rig, NULL, &pa, 1);
  commit_ok(&rig, NULL, &pa, 1);
  file_rig_stop(&rig); /* another generation, another owner: the same answer */
  file_rig_started(&rig);
  commit_ok(&rig, NULL, &pa, 1);
  assert_int_equal(newest_sequence(&rig), 1);
  file_rig_epoch(&rig, 7, 1, 5, 5, &b);
  commit_ok(&rig, &a.attempt.cursor, &pb, 1);
  file_attempt *both[] = {&a, &b};
  commit_ok(&rig, NULL, both, 2);
  assert_int_equal(newest_sequence(&rig), 2);
  file_rig_expect_rows(rig.path, 10);
  file_attempt_done(&a);
  file_attempt_done(&b);
  file_rig_done(&rig);
}

static void many_attempts_one_manifest(void **state) {
  (void)state;
  file_rig rig;
  file_attempt a, b, c;
  start(&rig);
  file_rig_epoch(&rig, 1, 1, 0, 5, &a);
  file_rig_epoch(&rig, 2, 1, 0, 0, &b); /* without rows */
  file_rig_epoch(&rig, 3, 1, 5, 5, &c);
  file_attempt *first[] = {&a}, *all[] = {&a, &b, &c};
  commit_ok(&rig, NULL, first, 1);
  commit_ok(&rig, NULL, all, 3); /* only what is missing */
  assert_int_equal(newest_sequence(&rig), 2);
  file_rig_expect_rows(rig.path, 10);
  file_attempt_done(&a);
  file_attempt_done(&b);
  file_attempt_done(&c);
  file_rig_done(&rig);
}

static void other_histories_are_stopped(void **state) {
  (void)state;
  file_rig rig;
  file_attempt a, b, *pa = &a, *pb = &b;
  start(&rig);
  file_rig_epoch(&rig, 1, 1, 0, 5, &a);
  commit_ok(&rig, NULL, &pa, 1);
  file_rig_epoch(&rig, 2, 5, 5, 5, &b);
  commit_ok(&rig, &a.attempt.cursor, &pb, 1);

  file_attempt other = b; /* the same number, another digest */
  other.attempt.cursor.digest[0] ^= 1;
  commit_fails(&rig, &a.attempt.cursor, &other, WEIR_E_CONFLICT, 0);
  other = b; /* or another token */
  other.attempt.cursor.token = 4;
  commit_fails(&rig, &a.attempt.cursor, &other, WEIR_E_CONFLICT, 0);
  other = a; /* an older owner that never saw its successor */
  other.attempt.cursor.digest[0] ^= 1;
  commit_fails(&rig, NULL, &other, WEIR_E_FENCED, 0);
  other = b; /* a successor of a cursor that this target does not have */
  other.attempt.cursor.checkpoint = 3;
  commit_fails(&rig, &a.attempt.cursor, &other, WEIR_E_CONFLICT, 0);
  assert_int_equal(newest_sequence(&rig), 2);
  file_rig_expect_rows(rig.path, 10);
  file_attempt_done(&a);
  file_attempt_done(&b);
  file_rig_done(&rig);
}

static void a_dead_owners_manifest_is_rolled_forward(void **state) {
  (void)state;
  for (int how = 0; how < 3; how++) {
    file_rig rig;
    file_attempt a, b, *pa = &a, *pb = &b;
    file_rig_folder(folder);
    start(&rig);
    file_rig_epoch(&rig, 1, 1, 0, 5, &a);
    append_only(&rig, NULL, &a, 1);
    file_rig_expect_rows(rig.path, 0);
    file_rig_epoch(&rig, 2, 2, 5, 5, &b);
    weir_cursor cursor = file_rig_cursor(&rig); /* the link was the commit */
    assert_true(weir_cursor_equal(&cursor, &a.attempt.cursor));
    if (how == 0) {
      assert_int_equal(
          rig.committer.ops->take_over(rig.committer.state, NULL, &rig.ns, NULL),
          WEIR_OK);
      file_rig_expect_rows(rig.path, 5);
    }
    if (how == 1) {
      commit_ok(&rig, NULL, &pa, 1);
      file_rig_expect_rows(rig.path, 5);
    }
    commit_ok(&rig, &a.attempt.cursor, &pb,
              1); /* how == 2: the next one, at the latest */
    file_rig_expect_rows(rig.path, 10);
    file_attempt_done(&a);
    file_attempt_done(&b);
    file_rig_done(&rig);
    file_rig_cleanup(folder);
  }
}

static void rollback_and_cleaner_spare_a_linked_manifest(void **state) {
  (void)state;
  file_rig rig;
  file_attempt a, *pa = &a;
  weir_error err = {0};
  start(&rig);
  file_rig_epoch(&rig, 1, 1, 0, 5, &a);
  append_only(&rig, NULL, &a, 1);
  assert_int_equal(rig.sink.ops->rollback_epoch(&rig.sink, NULL, 1, &err), WEIR_OK);
  assert_int_equal(file_rig_clean(&rig, 1, &a.intent, &err), WEIR_OK);
  assert_int_equal(file_rig_clean(&rig, 1, NULL, &err), WEIR_OK);
  commit_ok(&rig, NULL, &pa, 1);
  file_rig_expect_rows(rig.path, 5);
  file_attempt_done(&a);
  file_rig_done(&rig);
}

static void a_half_move_is_finished(void **state) {
  (void)state;
  file_rig rig;
  file_attempt a, *pa = &a;
  file_place_folders folders = {0};
  file_manifest m = {0};
  start(&rig);
  file_rig_epoch(&rig, 1, 1, 0, 5, &a);
  append_only(&rig, NULL, &a, 1);
  open_folders(&rig, &folders);
  assert_int_equal(file_commits_newest(&folders.commits, &m, NULL), WEIR_OK);
  const char *name = m.files.v[0].name;
  assert_int_equal(linkat(folders.staged.fd, name, folders.path.fd, name, 0), 0);
  commit_ok(&rig, NULL, &pa, 1);
  assert_int_equal(file_rig_count(folders.staged.path), 0);
  file_rig_expect_rows(rig.path, 5);
  file_manifest_done(&m);
  file_place_folders_done(&folders);
  file_attempt_done(&a);
  file_rig_done(&rig);
}

static void published_files_belong_to_the_user(void **state) {
  (void)state;
  file_rig rig;
  file_attempt a, b, *pa = &a, *pb = &b;
  start(&rig);
  file_rig_epoch(&rig, 1, 1, 0, 5, &a);
  commit_ok(&rig, NULL, &pa, 1);
  file_rig_cleanup(rig.path); /* all moved on, folder and all */
  file_rig_stop(&rig);
  file_rig_started(&rig);
  assert_int_equal(rig.committer.ops->take_over(rig.committer.state, NULL, &rig.ns, NULL),
                   WEIR_OK);
  commit_ok(&rig, NULL, &pa, 1);
  file_rig_epoch(&rig, 2, 1, 0, 5, &b);
  commit_ok(&rig, &a.attempt.cursor, &pb, 1);
  file_rig_expect_rows(rig.path, 5);
  file_attempt_done(&a);
  file_attempt_done(&b);
  file_rig_done(&rig);
}

static void nothing_is_overwritten(void **state) {
  (void)state;
  file_rig rig;
  file_attempt a, *pa = &a;
  file_place_folders folders = {0};
  file_manifest m = {0};
  char text[8] = {0};
  start(&rig);
  file_rig_epoch(&rig, 1, 1, 0, 5, &a);
  append_only(&rig, NULL, &a, 1);
  open_folders(&rig, &folders);
  assert_int_equal(file_commits_newest(&folders.commits, &m, NULL), WEIR_OK);
  const char *name = m.files.v[0].name;
  put(folders.path.fd, name, "mine");
  commit_fails(&rig, NULL, &a, WEIR_E_CORRUPT, 0);
  int fd = openat(folders.path.fd, name, O_RDONLY);
  assert_int_equal(read(fd, text, sizeof(text)), 4);
  assert_string_equal(text, "mine");
  close(fd);
  /* Not one that has the right size either. */
  int sized = openat(folders.path.fd, name, O_WRONLY);
  assert_int_equal(ftruncate(sized, (off_t)m.files.v[0].bytes), 0);
  close(sized);
  commit_fails(&rig, NULL, &a, WEIR_E_CORRUPT, 0);
  assert_int_equal(unlinkat(folders.path.fd, name, 0),
                   0); /* the cause is gone: it goes on */
  commit_ok(&rig, NULL, &pa, 1);
  file_rig_expect_rows(rig.path, 5);
  file_manifest_done(&m);
  file_place_folders_done(&folders);
  file_attempt_done(&a);
  file_rig_done(&rig);
}

static void lost_staged_files_are_noticed_before_the_cursor_moves(void **state) {
  (void)state;
  file_rig rig;
  file_attempt a;
  char staged[1024];
  start(&rig);
  file_rig_epoch(&rig, 1, 1, 0, 5, &a);
  file_rig_inner(&rig, "staged", staged);
  file_rig_cleanup(staged);
  assert_int_equal(mkdir(staged, 0700), 0);
  commit_fails(&rig, NULL, &a, WEIR_E_CORRUPT, 0);
  assert_int_equal(file_rig_cursor(&rig).checkpoint, 0);
  file_attempt_done(&a);
  file_rig_done(&rig);
}

static void both_gone_is_an_error(void **state) {
  (void)state;
  file_rig rig;
  file_attempt a;
  char staged[1024];
  start(&rig);
  file_rig_epoch(&rig, 1, 1, 0, 5, &a);
  append_only(&rig, NULL, &a, 1);
  file_rig_inner(&rig, "staged", staged);
  file_rig_cleanup(staged);
  assert_int_equal(mkdir(staged, 0700), 0);
  commit_fails(&rig, NULL, &a, WEIR_E_CORRUPT, 0);
  file_attempt_done(&a);
  file_rig_done(&rig);
}

static void damaged_manifests_are_no_cursor(void **state) {
  (void)state;
  file_rig rig;
  file_attempt a, *pa = &a;
  file_place_folders folders = {0};
  weir_cursor out = {0};
  weir_error err = {0};
  start(&rig);
  file_rig_epoch(&rig, 1, 1, 0, 5, &a);
  commit_ok(&rig, NULL, &pa, 1);
  open_folders(&rig, &folders);
  put(folders.commits.fd, "00000000000000000001.json", "{\"weir\":");
  assert_int_equal(
      rig.committer.ops->observe_cursor(rig.committer.state, NULL, &rig.ns, &out, &err),
      WEIR_E_CORRUPT);
  assert_non_null(strstr(err.message, "00000000000000000001.json"));
  commit_fails(&rig, NULL, &a, WEIR_E_CORRUPT, 0);
  file_place_folders_done(&folders);
  file_attempt_done(&a);
  file_rig_done(&rig);
}

static void a_broken_descriptor_publishes_nothing(void **state) {
  (void)state;
  file_rig rig;
  file_attempt a, *pa = &a;
  start(&rig);
  file_rig_epoch(&rig, 1, 1, 0, 5, &a);
  file_attempt cut = a;
  cut.entry.size--; /* the line break is no part of the document */
  for (cut.entry.size--; cut.entry.size > 0; cut.entry.size--) {
    cut.attempt.entries = &cut.entry;
    commit_fails(&rig, NULL, &cut, WEIR_E_CORRUPT, 0);
  }
  assert_int_equal(newest_sequence(&rig), 0);
  commit_ok(&rig, NULL, &pa, 1);
  file_attempt_done(&a);
  file_rig_done(&rig);
}

static void old_manifests_are_pruned_and_void(void **state) {
  (void)state;
  enum { EPOCHS = 2 * COMMITS_KEPT + 32 };
  file_rig rig;
  file_attempt a, last = {0}, *pa = &a;
  weir_cursor predecessor = {0};
  char commits[1024], name[64];
  file_place_folders folders = {0};
  file_manifest stale = {0};
  weir_error err = {0};
  start(&rig);
  for (uint64_t i = 1; i <= EPOCHS; i++) {
    file_rig_epoch(&rig, i, 1, (int64_t)i - 1, 1, &a);
    commit_ok(&rig, &predecessor, &pa, 1);
    predecessor = a.attempt.cursor;
    file_attempt_done(&last);
    last = a;
  }
  file_rig_expect_rows(rig.path, EPOCHS);
  file_rig_inner(&rig, "commits", commits);
  /* A manifest and its mark each, and what waits for the next pruning. */
  assert_in_range(file_rig_count(commits), 2 * COMMITS_KEPT, 2 * (COMMITS_KEPT + 16));
  open_folders(&rig, &folders);

  /* An owner that was paused before its link() comes back: the number is free again, its manifest void. */
  weir_commit_batch batch = {
      .struct_size = sizeof(batch), .ns = &rig.ns, .n_attempts = 1};
  weir_commit_attempt attempt = {.cursor = {.checkpoint = 2, .token = 1}};
  weir_cursor first = {.checkpoint = 1, .token = 1};
  batch.attempts = &attempt;
  assert_int_equal(file_manifest_build(&batch, 0, 2, 1, &first, &stale, &err), WEIR_OK);
  assert_int_equal(
      file_commits_append(&folders.commits, &stale, &rig.ns, file_rig_host(), &err),
      WEIR_E_EXISTS);
  snprintf(name, sizeof(name), "%020d.json", 2);
  assert_int_equal(faccessat(folders.commits.fd, name, F_OK, 0), -1);
  weir_cursor cursor = file_rig_cursor(&rig);
  assert_true(weir_cursor_equal(&cursor, &predecessor));
  file_manifest_done(&stale);
  file_place_folders_done(&folders);
  file_attempt_done(&last);
  file_rig_done(&rig);
}

static void cursors_of_other_deployments_are_found(void **state) {
  (void)state;
  file_rig rig, second;
  file_attempt a, *pa = &a;
  weir_cursor_list list = {0};
  weir_error err = {0};
  start(&rig);
  if (rig.committer.ops->find_cursors(rig.committer.state, NULL, &rig.ns, &list, &err))
    fail_msg("%s", err.message);
  assert_int_equal(list.n, 0);
  list.release(&list);
  file_rig_epoch(&rig, 9, 3, 0, 5, &a);
  commit_ok(&rig, NULL, &pa, 1);
  file_rig_init(&second, rig.path, NULL, NULL, 0);
  second.ns = file_rig_namespace("orders", "lake", 0x44);
  second.ns.may_replace = 1;
  file_rig_started(&second);
  if (second.committer.ops->find_cursors(second.committer.state, NULL, &second.ns, &list,
                                         &err)) {
    fail_msg("%s", err.message);
  }
  assert_int_equal(list.n, 1);
  assert_memory_equal(list.v[0].deployment, rig.ns.deployment, WEIR_UUID_SIZE);
  assert_true(weir_cursor_equal(&list.v[0].cursor, &a.attempt.cursor));
  assert_string_equal(list.v[0].positions,
                      "{\"orders\":{\"offset\":18446744073709551616123}}");
  list.release(&list);
  assert_null(list.release);
  assert_int_equal(file_rig_cursor(&second).checkpoint, 0);
  file_attempt_done(&a);
  file_rig_done(&rig);
  file_rig_done(&second);
}

static void moving_by_link_never_overwrites(void **state) {
  (void)state;
  file_disk_folder a = {0}, b = {0};
  weir_error err = {0};
  char path[512];
  snprintf(path, sizeof(path), "%s/a", folder);
  assert_int_equal(mkdir(path, 0700), 0);
  assert_int_equal(file_disk_folder_open(path, &a, &err), WEIR_OK);
  assert_int_equal(file_disk_folder_open(folder, &b, &err), WEIR_OK);
  for (int by_link = 0; by_link < 2; by_link++) {
    weir_status (*move)(const file_disk_folder *, const file_disk_folder *, const char *,
                        weir_error *) = by_link ? file_disk_move_by_link : file_disk_move;
    assert_int_equal(move(&a, &b, "x", &err), WEIR_E_NOT_FOUND);
    put(a.fd, "x", "new");
    assert_int_equal(move(&a, &b, "x", &err), WEIR_OK);
    put(a.fd, "x", "newer");
    assert_int_equal(move(&a, &b, "x", &err), WEIR_E_EXISTS);
    assert_int_equal(unlinkat(b.fd, "x", 0), 0);
    assert_int_equal(move(&a, &b, "x", &err), WEIR_OK);
    assert_int_equal(unlinkat(b.fd, "x", 0), 0);
  }
  file_disk_folder_done(&a);
  file_disk_folder_done(&b);
}

#define file_test(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void) {
  const struct CMUnitTest tests[] = {
      file_test(replay_changes_nothing),
      file_test(many_attempts_one_manifest),
      file_test(other_histories_are_stopped),
      cmocka_unit_test(a_dead_owners_manifest_is_rolled_forward),
      file_test(rollback_and_cleaner_spare_a_linked_manifest),
      file_test(a_half_move_is_finished),
      file_test(published_files_belong_to_the_user),
      file_test(nothing_is_overwritten),
      file_test(lost_staged_files_are_noticed_before_the_cursor_moves),
      file_test(both_gone_is_an_error),
      file_test(damaged_manifests_are_no_cursor),
      file_test(a_broken_descriptor_publishes_nothing),
      file_test(old_manifests_are_pruned_and_void),
      file_test(cursors_of_other_deployments_are_found),
      file_test(moving_by_link_never_overwrites),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
