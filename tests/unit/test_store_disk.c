/* SPDX-License-Identifier: Apache-2.0 */
/* The checkpoint store: what only the one on disk can show: owners, readers, damage, kills. A child
 * that dies is this program again. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <sqlite3.h>

#include "store/store.h"
#include "support/stores.h"

static uint64_t token_on_disk(stores_fixture *f) {
  weir_store *reader = NULL;
  weir_store_state *s = NULL;
  OK(weir_store_open_read(f->state, &reader, &f->err));
  OK(weir_store_load(reader, &s, &f->err));
  uint64_t token = s->token;
  weir_store_state_free(s);
  weir_store_close(reader);
  return token;
}

/* What tells two histories apart that go on from one state, even while neither has rows. */
static void test_a_copy_gets_a_token_of_its_own(void **state) {
  stores_fixture *f = *state;
  char command[400], original[sizeof(f->state)];
  uint64_t token = stores_token(f);
  stores_close(f);
  snprintf(original, sizeof(original), "%s", f->state);
  snprintf(command, sizeof(command), "cp -r '%s' '%s/copy'", f->state, f->dir);
  assert_int_equal(system(command), 0);
  stores_open(f);
  uint64_t of_original = stores_token(f);
  stores_close(f);
  snprintf(f->state, sizeof(f->state), "%s/copy", f->dir);
  stores_open(f);
  uint64_t of_copy = stores_token(f);
  assert_true(of_original > token && of_copy > token);
  assert_true(of_original != of_copy); /* one in a million is equal */
  stores_close(f);
  snprintf(f->state, sizeof(f->state), "%s", original);
  stores_open(f);
}

static void test_reopen_keeps_the_deployment(void **state) {
  stores_fixture *f = *state;
  weir_store_state *first = stores_load(f);
  OK(stores_see(f, "a", 3));
  stores_reopen(f);
  weir_store_state *second = stores_load(f);
  assert_memory_equal(first->deployment, second->deployment, WEIR_UUID_SIZE);
  assert_true(second->token > first->token);
  assert_int_equal(second->n_seen, 1); /* written at close */
  weir_store_state_free(first);
  weir_store_state_free(second);
}

static void test_modes(void **state) {
  stores_fixture *f = *state;
  struct stat st;
  static const char *const files[] = {"store.db", "store.db-wal", "store.db-shm", "lock"};
  assert_int_equal(stat(f->state, &st), 0);
  assert_int_equal(st.st_mode & 0777, 0700);
  for (size_t i = 0; i < BASE_COUNT(files); i++) {
    char path[160];
    snprintf(path, sizeof(path), "%s/%s", f->state, files[i]);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
  }
}

static void test_another_pipeline_is_refused(void **state) {
  stores_fixture *f = *state;
  uint64_t token = stores_token(f);
  stores_close(f);
  assert_int_equal(weir_store_open(f->state, "others", &f->store, &f->err),
                   WEIR_E_INVALID_CONFIG);
  stores_assert_message(f, "'orders'");
  stores_assert_message(f, "'others'");
  assert_int_equal(token_on_disk(f), token); /* the refused one took no lease */
  stores_open(f);
}

static void test_a_second_opener_is_fenced(void **state) {
  stores_fixture *f = *state;
  weir_store *second = NULL;
  char pid[32];
  snprintf(pid, sizeof(pid), "pid %ld)", (long)getpid());
  assert_int_equal(weir_store_open(f->state, STORES_PIPELINE, &second, &f->err),
                   WEIR_E_FENCED);
  stores_assert_message(f, pid);
  assert_null(second);
  /* Closing another descriptor of the lock file frees nothing. */
  char lock[128];
  snprintf(lock, sizeof(lock), "%s/lock", f->state);
  close(open(lock, O_RDWR));
  assert_int_equal(weir_store_open(f->state, STORES_PIPELINE, &second, &f->err),
                   WEIR_E_FENCED);
  OK(weir_store_reserve(f->store, 1, NULL, 0, &f->err));
  OK(weir_store_check_lease(f->store, &f->err));
}

static void test_a_lost_lease_writes_nothing(void **state) {
  stores_fixture *f = *state;
  stores_fixture *other = calloc(1, sizeof(*other));
  char lock[128];
  snprintf(lock, sizeof(lock), "%s/lock", f->state);
  *other = *f;
  other->store = NULL;
  OK(weir_store_reserve(f->store, 1, NULL, 0, &f->err));
  assert_int_equal(unlink(lock), 0);
  stores_open(other);
  assert_int_equal(stores_decide(other, 1, 10, false), WEIR_OK);
  weir_store_entry none = {"a", 1, 0, NULL, 0};
  assert_int_equal(weir_store_reserve(f->store, 9, &none, 1, &f->err), WEIR_E_FENCED);
  stores_assert_message(f, "newer owner");
  assert_int_equal(weir_store_check_lease(f->store, &f->err), WEIR_E_FENCED);
  assert_int_equal(weir_store_abort(f->store, 2, NULL, 0, &f->err), WEIR_E_FENCED);
  weir_store_state *s = stores_load(other);
  assert_int_equal(s->last_attempt, 2);
  weir_store_state_free(s);
  weir_store_close(other->store);
  free(other);
}

static void test_check_lease_sees_the_newer_owner(void **state) {
  stores_fixture *f = *state;
  weir_store *second = NULL;
  char lock[128];
  snprintf(lock, sizeof(lock), "%s/lock", f->state);
  assert_int_equal(unlink(lock), 0);
  OK(weir_store_open(f->state, STORES_PIPELINE, &second, &f->err));
  assert_int_equal(weir_store_check_lease(f->store, &f->err), WEIR_E_FENCED);
  weir_store_close(second);
}

static void test_a_replaced_file_fences(void **state) {
  stores_fixture *f = *state;
  char away[160];
  snprintf(away, sizeof(away), "%s.away", f->db);
  OK(weir_store_reserve(f->store, 1, NULL, 0, &f->err));
  assert_int_equal(rename(f->db, away), 0);
  assert_int_equal(weir_store_check_lease(f->store, &f->err), WEIR_E_FENCED);
  stores_assert_message(f, "moved, deleted or replaced");
  assert_int_equal(weir_store_abort(f->store, 1, NULL, 0, &f->err), WEIR_E_FENCED);
}

static void test_a_wal_without_its_file_is_dropped(void **state) {
  stores_fixture *f = *state;
  char command[400];
  OK(weir_store_reserve(f->store, 1, NULL, 0, &f->err));
  OK(stores_decide(f, 1, 10, false));
  /* As a kill and a careless hand would leave it. */
  snprintf(command, sizeof(command), "mkdir '%s/b' && cp '%s-wal' '%s/b/store.db-wal'",
           f->dir, f->db, f->dir);
  assert_int_equal(system(command), 0);
  stores_close(f);
  snprintf(f->state, sizeof(f->state), "%s/b", f->dir);
  stores_open(f);
  weir_store_state *s = stores_load(f);
  assert_int_equal(s->last_attempt, 0);
  assert_int_equal(s->token, 1);
  weir_store_state_free(s);
}

static void test_network_file_systems(void **state) {
  (void)state;
  weir_error err = {0};
  assert_int_equal(store_refuse_network(0x6969, "/s", &err), WEIR_E_INVALID_CONFIG);
  assert_non_null(strstr(err.message, "NFS"));
  assert_int_equal(store_refuse_network((int32_t)0xFE534D42, "/s", &err),
                   WEIR_E_INVALID_CONFIG);
  assert_int_equal(store_refuse_network(0xEF53, "/s", &err), WEIR_OK);     /* ext4 */
  assert_int_equal(store_refuse_network(0x01021994, "/s", &err), WEIR_OK); /* tmpfs */
  setenv("WEIR_STATE_ON_NETWORK", "accept-risk", 1);
  assert_int_equal(store_refuse_network(0x6969, "/s", &err), WEIR_OK);
  unsetenv("WEIR_STATE_ON_NETWORK");
}

static void test_read_beside_the_owner(void **state) {
  stores_fixture *f = *state;
  weir_store *reader = NULL;
  weir_store_state *s = NULL;
  OK(weir_store_reserve(f->store, 1, NULL, 0, &f->err));
  OK(weir_store_open_read(f->state, &reader, &f->err));
  for (uint64_t n = 1; n <= 5; n++) {
    OK(stores_decide(f, n, 1000, false));
    OK(stores_see(f, "a", n));
    OK(weir_store_load(reader, &s, &f->err));
    assert_int_equal(s->last_attempt, n + 1);
    assert_int_equal(s->decided[0].cursor.checkpoint, n);
    assert_int_equal(s->token, 1);
    weir_store_state_free(s);
  }
  assert_int_equal(weir_store_reserve(reader, 99, NULL, 0, &f->err),
                   WEIR_E_INVALID_STATE);
  assert_int_equal(weir_store_check_lease(reader, &f->err), WEIR_E_INVALID_STATE);
  weir_store_sink sink = stores_sink("a", 1, 1, 5);
  weir_store_decision decision = {.attempt = 1, .token = 1};
  weir_store_adoption adoption = {
      .pipeline = STORES_PIPELINE, .token = 1, .last_attempt = 1};
  weir_store_binding binding = {"a", stores_bytes("id"), 2};
  const weir_status refused[] = {
      weir_store_decide(reader, &decision, &f->err),
      weir_store_abort(reader, 1, NULL, 0, &f->err),
      weir_store_pin(reader, &binding, 0, &f->err),
      weir_store_adopt(reader, &adoption, &f->err),
      weir_store_seen(reader, "a", &sink.cursor, &f->err),
      weir_store_cleaned(reader, "a", 1, &f->err),
      weir_store_flush(reader, &f->err),
      weir_store_watch(reader, &f->err),
  };
  for (size_t i = 0; i < BASE_COUNT(refused); i++)
    assert_int_equal(refused[i], WEIR_E_INVALID_STATE);
  weir_store_close(reader);
  OK(weir_store_check_lease(f->store, &f->err));
  OK(stores_decide(f, 6, 10, false));
}

static void test_read_of_a_closed_store(void **state) {
  stores_fixture *f = *state;
  weir_store *reader = NULL;
  OK(weir_store_reserve(f->store, 3, NULL, 0, &f->err));
  stores_close(f);
  OK(weir_store_open_read(f->state, &reader, &f->err));
  weir_store_state *s = NULL;
  OK(weir_store_load(reader, &s, &f->err));
  assert_int_equal(s->last_attempt, 3);
  weir_store_state_free(s);
  stores_open(f); /* a reader does not keep an owner out */
  OK(weir_store_reserve(f->store, 4, NULL, 0, &f->err));
  weir_store_close(reader);
  OK(weir_store_reserve(f->store, 5, NULL, 0, &f->err));
}

static void test_nothing_to_read(void **state) {
  stores_fixture *f = *state;
  weir_store *reader = NULL;
  char missing[128];
  snprintf(missing, sizeof(missing), "%s/none", f->dir);
  assert_int_equal(weir_store_open_read(missing, &reader, &f->err), WEIR_E_NOT_FOUND);
  assert_int_equal(mkdir(missing, 0700), 0);
  assert_int_equal(weir_store_open_read(missing, &reader, &f->err), WEIR_E_NOT_FOUND);
  char file[160];
  snprintf(file, sizeof(file), "%s/store.db", missing);
  close(open(file, O_CREAT | O_WRONLY, 0600));
  assert_int_equal(weir_store_open_read(missing, &reader, &f->err), WEIR_E_NOT_FOUND);
  assert_null(reader);
}

/* ---- damage --------------------------------------------------------------------------------------------- */

static void damage(stores_fixture *f, const char *sql) {
  sqlite3 *db = NULL;
  assert_int_equal(sqlite3_open(f->db, &db), SQLITE_OK);
  char *message = NULL;
  if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK)
    fail_msg("%s: %s", sql, message);
  assert_int_not_equal(sqlite3_changes(db), 0);
  sqlite3_close(db);
}

static void test_damaged_rows(void **state) {
  stores_fixture *f = *state;
  static const char *const damages[] = {
      "UPDATE entry SET data=CAST('dddddddddx' AS BLOB) WHERE kind=1",
      "UPDATE entry SET data=CAST('nexx' AS BLOB) WHERE kind=2",
      "UPDATE entry SET present=0 WHERE kind=1",
      "UPDATE entry SET participant=2 WHERE kind=1",
      "UPDATE position SET data=CAST('row 2' AS BLOB)",
      "UPDATE position SET rows=rows+1",
      "UPDATE part SET digest=zeroblob(32)",
      "UPDATE part SET token=7",
      "UPDATE cursor SET checkpoint=9 WHERE kind=1",
      "UPDATE cursor SET kind=2 WHERE kind=1",
      "UPDATE attempt SET state=3 WHERE state=1",
      "UPDATE lease SET last_attempt=1",
      "UPDATE meta SET deployment=zeroblob(16)",
      "UPDATE binding SET data=zeroblob(3)",
      "UPDATE entry SET sum=zeroblob(32)",
      "DELETE FROM entry WHERE kind=1",
      "DELETE FROM part",
      "DELETE FROM attempt",
      "DELETE FROM lease",
      "DELETE FROM meta",
  };
  weir_store_binding pinned = {"a", stores_bytes("id"), 2};
  OK(weir_store_pin(f->store, &pinned, 0, &f->err));
  OK(weir_store_reserve(f->store, 1, NULL, 0, &f->err));
  OK(stores_decide(f, 1, 10, false));
  stores_close(f);
  char save[400], back[400];
  snprintf(save, sizeof(save), "cp '%s' '%s/saved'", f->db, f->dir);
  snprintf(back, sizeof(back), "rm -f '%s'*; cp '%s/saved' '%s'", f->db, f->dir, f->db);
  assert_int_equal(system(save), 0);
  for (size_t i = 0; i < BASE_COUNT(damages); i++) {
    assert_int_equal(system(back), 0);
    damage(f, damages[i]);
    weir_store_state *s = NULL;
    weir_status status = weir_store_open(f->state, STORES_PIPELINE, &f->store, &f->err);
    if (!status) status = weir_store_load(f->store, &s, &f->err);
    if (status != WEIR_E_CORRUPT)
      fail_msg("%s: %s", damages[i], weir_status_name(status));
    assert_null(s);
    stores_close(f);
    status = weir_store_open_read(f->state, &f->store, &f->err);
    if (!status) status = weir_store_load(f->store, &s, &f->err);
    if (status != WEIR_E_CORRUPT)
      fail_msg("%s: %s", damages[i], weir_status_name(status));
    stores_close(f);
  }
}

/* Every byte of the file is damaged once: an error or the same content, never another one. */
static void test_flipped_bytes(void **state) {
  stores_fixture *f = *state;
  OK(weir_store_reserve(f->store, 1, NULL, 0, &f->err));
  OK(stores_decide(f, 1, 10, false));
  stores_close(f);
  base_buf file = {0};
  OK(base_read_file(f->db, 1 << 24, &file, &f->err));
  size_t caught = 0;
  for (size_t i = 0; i < file.size; i += 37) {
    int fd = open(f->db, O_WRONLY);
    uint8_t flipped = file.data[i] ^ 0x41;
    assert_int_equal(pwrite(fd, &flipped, 1, (off_t)i), 1);
    weir_store_state *s = NULL;
    weir_status status = weir_store_open_read(f->state, &f->store, &f->err);
    if (!status) status = weir_store_load(f->store, &s, &f->err);
    if (!status) {
      assert_string_equal(s->pipeline, STORES_PIPELINE);
      assert_int_equal(s->last_attempt, 2);
      assert_int_equal(s->n_attempts, 2);
      assert_int_equal(s->attempts[0].n_descriptors, 1);
      assert_memory_equal(s->attempts[0].descriptors[0].data, "dddddddddd", 10);
      assert_memory_equal(s->positions[0].data, "row 1", 5);
      assert_int_equal(s->decided[0].cursor.checkpoint, 1);
      weir_store_state_free(s);
    } else {
      caught++;
    }
    stores_close(f);
    assert_int_equal(pwrite(fd, &file.data[i], 1, (off_t)i), 1);
    close(fd);
  }
  assert_true(caught > 20);
  base_buf_done(&file);
}

static void test_foreign_files(void **state) {
  stores_fixture *f = *state;
  stores_close(f);
  damage(f, "PRAGMA user_version=1000; UPDATE lease SET token=token");
  assert_int_equal(weir_store_open(f->state, STORES_PIPELINE, &f->store, &f->err),
                   WEIR_E_NOT_IMPLEMENTED);
  stores_assert_message(f, "version 1000");
  damage(f, "PRAGMA application_id=5; UPDATE lease SET token=token");
  assert_int_equal(weir_store_open(f->state, STORES_PIPELINE, &f->store, &f->err),
                   WEIR_E_CORRUPT);
  int fd = open(f->db, O_WRONLY | O_TRUNC);
  assert_int_equal(write(fd, "this is no database, by any means at all", 40), 40);
  close(fd);
  assert_int_equal(weir_store_open(f->state, STORES_PIPELINE, &f->store, &f->err),
                   WEIR_E_CORRUPT);
  assert_int_equal(weir_store_open_read(f->state, &f->store, &f->err), WEIR_E_CORRUPT);
  assert_null(f->store);
  char under[160];
  snprintf(under, sizeof(under), "%s/state", f->db);
  assert_int_not_equal(weir_store_open(under, STORES_PIPELINE, &f->store, &f->err),
                       WEIR_OK);
}

static void test_the_file_stays_small(void **state) {
  stores_fixture *f = *state;
  struct stat st;
  OK(weir_store_reserve(f->store, 1, NULL, 0, &f->err));
  for (uint64_t n = 1; n <= 400; n++) {
    OK(stores_decide(f, n, n == 100 ? 12u << 20 : 20000, false));
    OK(stores_see(f, "a", n));
  }
  OK(weir_store_flush(f->store, &f->err));
  char wal[160];
  snprintf(wal, sizeof(wal), "%s-wal", f->db);
  assert_int_equal(stat(wal, &st), 0);
  assert_in_range(st.st_size, 0, 12 << 20);
  stores_reopen(f);
  assert_int_equal(stat(f->db, &st), 0);
  assert_in_range(st.st_size, 0, 10 << 20);
}

/* ---- children that fail and die --------------------------------------------------------------------------- */

/* What a child does in `folder`: exit status 0 when all went well, else the number of the step. */
static int child(const char *scenario, const char *folder) {
  stores_fixture fix = {0}, *f = &fix;
  snprintf(f->state, sizeof(f->state), "%s", folder);
  if (weir_store_open(folder, STORES_PIPELINE, &f->store, &f->err)) return 10;
  if (strcmp(scenario, "open") == 0) return 0;
  if (strcmp(scenario, "hold") == 0) {
    if (weir_store_reserve(f->store, 1, NULL, 0, &f->err)) return 11;
    if (stores_decide(f, 1, 10, false)) return 12;
    OK(stores_see(f, "a", 1));
    raise(SIGKILL);
  }
  weir_store_binding binding = {"a", stores_bytes("id"), 2};
  if (weir_store_pin(f->store, &binding, 0, &f->err)) goto failed;
  if (weir_store_reserve(f->store, 1, NULL, 0, &f->err)) goto failed;
  if (stores_decide(f, 1, 10, false)) goto failed;
  if (weir_store_abort(f->store, 2, NULL, 0, &f->err)) goto failed;
  OK(stores_see(f, "a", 1));
  if (weir_store_flush(f->store, &f->err)) goto failed;
  if (strcmp(scenario, "many") == 0) {
    if (weir_store_reserve(f->store, 3, NULL, 0, &f->err)) goto failed;
    for (uint64_t n = 3; n < 60; n++) {
      if (stores_decide(f, n, 100000, false)) goto failed;
      weir_store_sink s = stores_sink("a", n, 1, 0);
      if (weir_store_seen(f->store, "a", &s.cursor, &f->err)) goto failed;
    }
  }
  weir_store_close(f->store);
  return 0;
failed:
  /* A step of unknown outcome ends the store; one that surely did not happen does not. */
  if (f->err.flags & WEIR_ERR_IN_DOUBT) {
    weir_status again = weir_store_check_lease(f->store, NULL);
    weir_store_close(f->store);
    return again ? 20 : 21;
  }
  if (f->err.flags & WEIR_ERR_RETRIABLE) {
    weir_status again = weir_store_check_lease(f->store, NULL);
    weir_store_close(f->store);
    return again ? 31 : 30;
  }
  weir_store_close(f->store);
  return 40;
}

static int run_child(const char *scenario, const char *folder, const char *faults) {
  pid_t pid = fork();
  if (pid == 0) {
    if (faults) setenv("WEIR_FAULTS", faults, 1);
    execl("/proc/self/exe", "test_store", "child", scenario, folder, (char *)NULL);
    _exit(99);
  }
  int status = 0;
  assert_int_equal(waitpid(pid, &status, 0), pid);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static void test_a_killed_owner_leaves_all(void **state) {
  stores_fixture *f = *state;
  stores_close(f);
  assert_int_equal(run_child("hold", f->state, NULL), -SIGKILL);
  weir_store *reader = NULL;
  weir_store_state *s = NULL;
  OK(weir_store_open_read(f->state, &reader, &f->err));
  OK(weir_store_load(reader, &s, &f->err));
  assert_int_equal(s->last_attempt, 2);
  assert_int_equal(s->decided[0].cursor.checkpoint, 1);
  uint64_t token = s->token;
  assert_true(token > 1);
  assert_int_equal(s->n_seen, 0); /* only remembered */
  weir_store_state_free(s);
  weir_store_close(reader);
  stores_open(f);
  s = stores_load(f);
  assert_int_equal(s->last_attempt, 2);
  assert_true(s->token > token);
  weir_store_state_free(s);
}

/* Whoever wants no words gets none; one that failed says no more than that it did. */
static void test_without_words(void **state) {
  stores_fixture *f = *state;
  weir_store *second = NULL;
  assert_int_equal(weir_store_open(f->state, STORES_PIPELINE, &second, NULL),
                   WEIR_E_FENCED);
  assert_int_equal(weir_store_open(f->db, STORES_PIPELINE, &second, NULL),
                   WEIR_E_INVALID_CONFIG);
  stores_close(f);
  int fd = open(f->db, O_WRONLY | O_TRUNC);
  assert_int_equal(write(fd, "this is no database, by any means at all", 40), 40);
  close(fd);
  assert_int_equal(weir_store_open(f->state, STORES_PIPELINE, &second, NULL),
                   WEIR_E_CORRUPT);
  assert_null(second);
}

static void test_another_process_is_fenced(void **state) {
  stores_fixture *f = *state;
  assert_int_equal(run_child("open", f->state, NULL), 10);
  OK(weir_store_reserve(f->store, 1, NULL, 0, &f->err));
}

#if defined(WEIR_FAULTS)
typedef struct kill_case {
  const char *point;
  uint64_t last_attempt; /* what must be found afterwards */
  uint64_t decided;
  size_t n_attempts, n_bindings, n_seen;
} kill_case;

/* The order of the child's steps: pin, reserve 1, decide 1 (reserves 2), abort 2, flush. */
static const kill_case kill_cases[] = {
    {"store.open.locked", 0, 0, 0, 0, 0},
    {"store.create.before", 0, 0, 0, 0, 0},
    {"store.create.after", 0, 0, 0, 0, 0},
    {"store.pin.before", 0, 0, 0, 0, 0},
    {"store.pin.after", 0, 0, 0, 1, 0},
    {"store.reserve.before", 0, 0, 0, 1, 0},
    {"store.reserve.after", 1, 0, 1, 1, 0},
    {"store.decide.before", 1, 0, 1, 1, 0},
    {"store.decide.after", 2, 1, 2, 1, 0},
    {"store.abort.before", 2, 1, 2, 1, 0},
    {"store.abort.after", 2, 1, 2, 1, 0},
    {"store.flush.before", 2, 1, 2, 1, 0},
    {"store.flush.after", 2, 1, 2, 1, 1},
    {"store.commit.before=kill@3", 1, 0, 1, 1, 0},
    {"store.commit.sync=kill@3", 1, 0, 1, 1, 0},
};

static void test_killed_at_every_point(void **state) {
  stores_fixture *f = *state;
  stores_close(f);
  for (size_t i = 0; i < BASE_COUNT(kill_cases); i++) {
    const kill_case *k = &kill_cases[i];
    char faults[96];
    snprintf(f->state, sizeof(f->state), "%s/kill%zu", f->dir, i);
    snprintf(faults, sizeof(faults), "%s%s", k->point,
             strchr(k->point, '=') ? "" : "=kill");
    int rc = run_child("steps", f->state, faults);
    if (rc != -SIGKILL) fail_msg("%s: the child ended with %d", k->point, rc);
    stores_open(f);
    weir_store_state *s = stores_load(f);
    if (s->last_attempt != k->last_attempt || s->n_attempts != k->n_attempts ||
        s->n_bindings != k->n_bindings || s->n_seen != k->n_seen ||
        (s->n_decided ? s->decided[0].cursor.checkpoint : 0) != k->decided) {
      fail_msg("%s: last %llu, %zu attempts, %zu bindings, %zu seen", k->point,
               (unsigned long long)s->last_attempt, s->n_attempts, s->n_bindings,
               s->n_seen);
    }
    OK(weir_store_reserve(f->store, s->last_attempt + 1, NULL, 0, &f->err));
    weir_store_state_free(s);
    stores_close(f);
  }
  stores_open(f);
}

static void test_killed_while_taking_the_lease(void **state) {
  stores_fixture *f = *state;
  uint64_t token = stores_token(f);
  stores_close(f);
  assert_int_equal(run_child("open", f->state, "store.lease.before=kill"), -SIGKILL);
  assert_int_equal(token_on_disk(f), token);
  assert_int_equal(run_child("open", f->state, "store.lease.after=kill"), -SIGKILL);
  uint64_t taken = token_on_disk(f);
  assert_true(taken > token);
  assert_int_equal(run_child("many", f->state, "store.checkpoint.before=kill"), -SIGKILL);
  assert_true(token_on_disk(f) > taken);
  taken = token_on_disk(f);
  stores_open(f);
  assert_true(stores_token(f) > taken);
}

static void test_failures_say_what_is_known(void **state) {
  stores_fixture *f = *state;
  static const struct {
    const char *faults;
    int rc;
  } cases[] = {
      {"store.reserve.before=fail", 30},    {"store.decide.before=fail", 30},
      {"store.abort.before=fail", 30},      {"store.pin.before=fail", 30},
      {"store.flush.before=fail", 30},      {"store.commit.before=fail@3", 30},
      {"store.commit.sync=fail@2", 20},     {"store.decide.after=fail", 20},
      {"store.reserve.after=fail", 20},     {"store.abort.after=fail", 20},
      {"store.pin.after=fail", 20},         {"store.flush.after=fail", 20},
      {"store.checkpoint.before=fail", 40}, {"store.create.before=fail", 10},
      {"store.lock.opened=fail", 10},       {"store.lease.before=fail", 10},
      {"store.lease.after=fail", 10},       {"store.create.after=fail", 10},
      {"store.open.locked=fail", 10},       {"store.none=fail", 0},
  };
  for (size_t i = 0; i < BASE_COUNT(cases); i++) {
    char folder[128];
    snprintf(folder, sizeof(folder), "%s/fail%zu", f->dir, i);
    int rc = run_child("many", folder, cases[i].faults);
    if (rc != cases[i].rc) fail_msg("%s: %d, not %d", cases[i].faults, rc, cases[i].rc);
  }
}
#endif

#define DISK(test) \
  cmocka_unit_test_setup_teardown(test, stores_setup_disk, stores_teardown)

int main(int argc, char **argv) {
  if (argc == 4 && strcmp(argv[1], "child") == 0) return child(argv[2], argv[3]);
  const struct CMUnitTest tests[] = {
      DISK(test_reopen_keeps_the_deployment),
      DISK(test_a_copy_gets_a_token_of_its_own),
      DISK(test_modes),
      DISK(test_another_pipeline_is_refused),
      DISK(test_a_second_opener_is_fenced),
      DISK(test_a_lost_lease_writes_nothing),
      DISK(test_check_lease_sees_the_newer_owner),
      DISK(test_a_replaced_file_fences),
      DISK(test_a_wal_without_its_file_is_dropped),
      DISK(test_network_file_systems),
      DISK(test_read_beside_the_owner),
      DISK(test_read_of_a_closed_store),
      DISK(test_nothing_to_read),
      DISK(test_damaged_rows),
      DISK(test_flipped_bytes),
      DISK(test_foreign_files),
      DISK(test_the_file_stays_small),
      DISK(test_a_killed_owner_leaves_all),
      DISK(test_another_process_is_fenced),
      DISK(test_without_words),
#if defined(WEIR_FAULTS)
      DISK(test_killed_at_every_point),
      DISK(test_killed_while_taking_the_lease),
      DISK(test_failures_say_what_is_known),
#endif
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
