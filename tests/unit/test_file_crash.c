/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file sink killed at every fault point it passes, and failed at each of them.
 *
 * The test runs itself as a child that delivers EPOCHS epochs the way the runtime does, with a store of
 * its own: one file to which intents and decisions are appended. The child is killed at the first, the
 * second, .. the last fault point; the parent looks at what readers would see, lets another child recover
 * that is killed as well, then one that is not, and counts every row. Then the same with points that
 * fail instead of killing, which a child must survive on its own.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "support/file_rig.h"

enum { EPOCHS = 2, EPOCH_ROWS = 25, ATTEMPTS = 32, TRIES = 20 };

/* ---- the child ---------------------------------------------------------------------------------- */

typedef struct store {
  char path[512];
  file_attempt attempts[ATTEMPTS]; /* by number - 1 */
  size_t n, n_decided;
} store;

typedef struct store_entry {
  uint32_t kind; /* 'I' or 'D' */
  uint32_t size;
  uint64_t number, token;
} store_entry;

static void store_append(const store *s, uint32_t kind, uint64_t number,
                         const weir_bytes *bytes) {
  store_entry entry = {kind, (uint32_t)bytes->size, number, 1};
  base_buf buf = {0};
  int fd = open(s->path, O_WRONLY | O_CREAT | O_APPEND, 0600);
  base_buf_append(&buf, &entry, sizeof(entry), NULL);
  base_buf_append(&buf, bytes->data, bytes->size, NULL);
  if (fd < 0 || write(fd, buf.data, buf.size) != (ssize_t)buf.size) _exit(90);
  close(fd);
  base_buf_done(&buf);
}

static void decide(store *s, file_attempt *a) {
  a->entry.participant_id = 1;
  a->entry.present = 1;
  a->entry.descriptor = a->descriptor.data;
  a->entry.size = a->descriptor.size;
  a->attempt.entries = &a->entry;
  a->attempt.n_entries = 1;
  a->attempt.cursor.checkpoint = a->number;
  a->attempt.cursor.token = 1;
  base_sha256(a->descriptor.data, a->descriptor.size, a->attempt.cursor.digest, NULL);
  s->n_decided++;
}

static void store_load(store *s) {
  base_buf buf = {0};
  size_t at = 0;
  if (access(s->path, F_OK) == 0 && base_read_file(s->path, 1 << 20, &buf, NULL))
    _exit(91);
  while (at < buf.size) {
    store_entry entry;
    memcpy(&entry, buf.data + at, sizeof(entry));
    at += sizeof(entry);
    file_attempt *a = &s->attempts[entry.number - 1];
    a->number = entry.number;
    weir_bytes_copy(entry.kind == 'I' ? &a->intent : &a->descriptor, buf.data + at,
                    entry.size, NULL);
    at += entry.size;
    if (entry.kind == 'D') decide(s, a);
    if (entry.number > s->n) s->n = entry.number;
  }
  base_buf_done(&buf);
}

/* Any attempt with a descriptor in the store is decided. */
static bool is_decided(const file_attempt *a) {
  return a->attempt.n_entries > 0;
}

static void give_up(const char *what, const weir_error *err) {
  fprintf(stderr, "child: %s: %s\n", what, err->message);
  _exit(92);
}

/* What is decided and not at the target, in one batch; again until it is settled. */
static void publish(file_rig *rig, store *s) {
  weir_error err = {0};
  for (int i = 0; i < TRIES; i++) {
    file_attempt *owed[8];
    weir_cursor predecessor = {0}, at_target = {0}, out = {0};
    size_t n = 0;
    if (rig->committer.ops->observe_cursor(rig->committer.state, NULL, &rig->ns,
                                           &at_target, &err)) {
      continue;
    }
    for (size_t k = 0; k < s->n; k++) {
      file_attempt *a = &s->attempts[k];
      if (!is_decided(a)) continue;
      /* The last one published rides along, so that it is rolled forward. */
      if (a->number >= at_target.checkpoint) {
        owed[n++] = a;
      } else {
        predecessor = a->attempt.cursor;
      }
    }
    if (!n || !file_rig_commit(rig, &predecessor, owed, n, &out, &err)) return;
    if (!(err.flags & (WEIR_ERR_RETRIABLE | WEIR_ERR_IN_DOUBT))) break;
  }
  give_up("commit", &err);
}

static void start_child(file_rig *rig) {
  weir_error err = {0};
  for (int i = 0; i < TRIES; i++) {
    if (!file_rig_start(rig, &err) &&
        !rig->committer.ops->take_over(rig->committer.state, NULL, &rig->ns, &err)) {
      return;
    }
    file_rig_stop(rig);
  }
  give_up("start", &err);
}

static bool one_epoch(file_rig *rig, store *s) {
  const weir_sink_ops *ops = rig->sink.ops;
  file_attempt *a = &s->attempts[s->n++];
  weir_error err = {0};
  int64_t first = (int64_t)s->n_decided * EPOCH_ROWS;
  a->number = s->n;
  bool ok =
      !ops->checkpoint_artifact_intent(&rig->sink, NULL, a->number, &a->intent, &err);
  if (ok) store_append(s, 'I', a->number, &a->intent);
  ok = ok && !ops->begin_epoch(&rig->sink, NULL, a->number, &err) &&
       !file_rig_write(rig, first, 7, &err) &&
       !file_rig_write(rig, first + 7, EPOCH_ROWS - 7, &err) &&
       !ops->pre_commit(&rig->sink, NULL, a->number, &a->descriptor, &err);
  if (ok) {
    store_append(s, 'D', a->number, &a->descriptor);
    decide(s, a);
    return true;
  }
  for (int i = 0; i < TRIES; i++) {
    if (!ops->rollback_epoch(&rig->sink, NULL, a->number, &err)) return false;
  }
  give_up("rollback", &err);
  return false;
}

static void clean(file_rig *rig, const file_attempt *a) {
  weir_error err = {0};
  for (int i = 0; i < TRIES; i++) {
    if (!file_rig_clean(rig, a->number, &a->intent, &err)) return;
  }
  give_up("clean", &err);
}

static int child(const char *folder) {
  static const char *const names[] = {"roll.rows"}, *const values[] = {"10"};
  static store s;
  file_rig rig;
  char path[512];
  snprintf(s.path, sizeof(s.path), "%s/store", folder);
  snprintf(path, sizeof(path), "%s/out/orders", folder);
  file_rig_init(&rig, path, names, values, 1);
  store_load(&s);
  start_child(&rig);
  publish(&rig, &s);
  while (s.n_decided < EPOCHS && s.n < ATTEMPTS) {
    if (one_epoch(&rig, &s)) publish(&rig, &s);
  }
  for (size_t i = 0; i < s.n; i++) {
    file_attempt *a = &s.attempts[i];
    if (!is_decided(a) && a->intent.release) clean(&rig, a);
  }
  for (size_t i = 0; i < s.n; i++) file_attempt_done(&s.attempts[i]);
  file_rig_done(&rig);
  return s.n_decided == EPOCHS ? 0 : 93;
}

/* ---- the parent --------------------------------------------------------------------------------- */

/* Runs a child under fault rules; its wait status. */
static int run(const char *folder, const char *rules) {
  pid_t pid = fork();
  assert_true(pid >= 0);
  if (pid == 0) {
    setenv("WEIR_FAULTS", rules, 1);
    execl("/proc/self/exe", "test_file_crash", "child", folder, (char *)NULL);
    _exit(94);
  }
  int status = 0;
  assert_int_equal(waitpid(pid, &status, 0), pid);
  return status;
}

static bool was_killed(int status) {
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

static void expect_exact(const char *folder) {
  char path[512], staged[1024];
  file_rig rig;
  snprintf(path, sizeof(path), "%s/out/orders", folder);
  file_rig_expect_rows(path, (int64_t)EPOCHS * EPOCH_ROWS);
  file_rig_init(&rig, path, NULL, NULL, 0);
  file_rig_inner(&rig, "staged", staged);
  assert_int_equal(file_rig_count(staged), 0); /* nothing is left behind */
  file_rig_done(&rig);
}

static void killed_at_every_point(void **state) {
  (void)state;
  int kills = 0;
  for (int k = 1; k < 500; k++) {
    char folder[256], path[512], rules[64], again[64];
    file_rig_folder(folder);
    snprintf(path, sizeof(path), "%s/out/orders", folder);
    snprintf(rules, sizeof(rules), "*=kill@%d", k);
    int status = run(folder, rules);
    if (!was_killed(status)) {
      assert_int_equal(status, 0);
      expect_exact(folder);
      file_rig_cleanup(folder);
      break;
    }
    kills++;
    file_rig_expect_whole(path, EPOCHS * EPOCH_ROWS, 5);
    snprintf(again, sizeof(again), "*=kill@%d", k * 7 % 23 + 1);
    status = run(folder, again);
    assert_true(status == 0 || was_killed(status));
    file_rig_expect_whole(path, EPOCHS * EPOCH_ROWS, 5);
    assert_int_equal(run(folder, "none=kill"), 0);
    expect_exact(folder);
    file_rig_cleanup(folder);
  }
#if defined(WEIR_FAULTS)
  assert_true(kills > 2 * 20);
#else
  assert_int_equal(kills, 0);
#endif
}

static void failed_at_every_point(void **state) {
  (void)state;
#if defined(WEIR_FAULTS)
  char folder[256], log[512], rules[64];
  base_buf hits = {0};
  int points = 0;
  file_rig_folder(folder);
  snprintf(log, sizeof(log), "%s/log", folder);
  setenv("WEIR_FAULTS_LOG", log, 1);
  assert_int_equal(run(folder, "none=kill"), 0);
  unsetenv("WEIR_FAULTS_LOG");
  assert_int_equal(base_read_file(log, 1 << 20, &hits, NULL), WEIR_OK);
  for (size_t i = 0; i < hits.size; i++) points += hits.data[i] == '\n';
  base_buf_done(&hits);
  file_rig_cleanup(folder);
  for (int k = 1; k <= points; k++) {
    file_rig_folder(folder);
    snprintf(rules, sizeof(rules), "*=fail@%d", k);
    assert_int_equal(run(folder, rules), 0);
    expect_exact(folder);
    file_rig_cleanup(folder);
  }
#endif
}

#if defined(WEIR_FAULTS)
/* In a child: whether all but the rollback of an epoch is refused once its folder was not synced. */
static bool refuses_what_was_not_synced(const char *folder) {
  const weir_sink_ops *ops = &weir_file_sink_ops;
  file_rig rig;
  file_attempt a = {0};
  weir_bytes bytes = {0};
  char path[512];
  snprintf(path, sizeof(path), "%s/orders", folder);
  file_rig_init(&rig, path, NULL, NULL, 0);
  start_child(&rig);
  file_rig_begin(&rig, 1, &a);
  return !file_rig_write(&rig, 0, 5, NULL) &&
         ops->pre_commit(&rig.sink, NULL, 1, &bytes, NULL) == WEIR_E_IO &&
         ops->pre_commit(&rig.sink, NULL, 1, &bytes, NULL) == WEIR_E_INVALID_STATE &&
         file_rig_write(&rig, 5, 5, NULL) == WEIR_E_INVALID_STATE &&
         ops->rollback_epoch(&rig.sink, NULL, 1, NULL) == WEIR_OK;
}
#endif

/* After a failed sync the kernel may have dropped the pages, and the next sync says nothing of it. */
static void what_was_not_synced_is_not_prepared_again(void **state) {
  (void)state;
#if defined(WEIR_FAULTS)
  char folder[256];
  int status = 0;
  file_rig_folder(folder);
  pid_t pid = fork();
  assert_true(pid >= 0);
  if (pid == 0) {
    setenv("WEIR_FAULTS", "file.staged.synced=fail@1", 1);
    _exit(refuses_what_was_not_synced(folder) ? 0 : 95);
  }
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_int_equal(status, 0);
  file_rig_cleanup(folder);
#endif
}

int main(int argc, char **argv) {
  if (argc == 3 && strcmp(argv[1], "child") == 0) return child(argv[2]);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(killed_at_every_point),
      cmocka_unit_test(failed_at_every_point),
      cmocka_unit_test(what_was_not_synced_is_not_prepared_again),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
