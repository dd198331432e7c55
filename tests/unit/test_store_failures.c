/* SPDX-License-Identifier: Apache-2.0 */
/* ctest: failing calls */
/*
 * The checkpoint store while the system fails it: each call on files, each call of libpq goes wrong in turn, in each
 * way it can, in the middle of opening and of every durable step. What the store says of a step is what the next
 * owner finds: done, or not; where it says that nobody knows, either. WEIR_SWEEP=all tries every call; else some
 * sweeps leave most of them out.
 */
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <sqlite3.h>

#include "failing/calls.h"
#include "support/folder.h"
#include "support/stores.h"

/* ---- steps, in their order */

static weir_status do_pin(stores_fixture *f) {
  weir_store_binding pinned = {"a", stores_bytes("id"), 2};
  return weir_store_pin(f->store, &pinned, 0, &f->err);
}
static weir_status do_reserve(stores_fixture *f) {
  return weir_store_reserve(f->store, 1, NULL, 0, &f->err);
}
static weir_status do_decide(stores_fixture *f) {
  return stores_decide(f, 1, 100, true);
}
static weir_status do_abort(stores_fixture *f) {
  return weir_store_abort(f->store, 2, NULL, 0, &f->err);
}
static weir_status do_reserve_next(stores_fixture *f) {
  weir_store_entry intent = {"a", 1, 1, stores_bytes("next"), 4};
  return weir_store_reserve(f->store, 3, &intent, 1, &f->err);
}
static weir_status do_flush(stores_fixture *f) {
  weir_status status = stores_see(f, "a", 1);
  if (!status) status = weir_store_cleaned(f->store, "a", 2, &f->err);
  return status ? status : weir_store_flush(f->store, &f->err);
}

static weir_status (*const steps[])(stores_fixture *f) = {
    do_pin, do_reserve, do_decide, do_abort, do_reserve_next, do_flush};
enum { STEPS = BASE_COUNT(steps) };

/* How many of the steps a state shows. */
static size_t shown(const weir_store_state *s) {
  if (!s->n_bindings) return 0;
  if (s->last_attempt < 2) return 1 + (size_t)s->last_attempt;
  if (s->last_attempt == 3) return s->n_seen ? 6 : 5;
  return s->attempts[s->n_attempts - 1].attempt == 2 &&
                 s->attempts[s->n_attempts - 1].state == WEIR_ATTEMPT_RESERVED
             ? 3
             : 4;
}

/* ---- one trial */

static size_t open_files(void) {
  size_t n = 0;
  DIR *dir = opendir("/proc/self/fd");
  assert_non_null(dir);
  while (readdir(dir)) n++;
  closedir(dir);
  return n;
}

static weir_status open_store(stores_fixture *f) {
  weir_store_postgres where = stores_where();
  return f->kind == STORES_POSTGRES
             ? weir_store_open_postgres(&where, &f->store, &f->err)
             : weir_store_open(f->state, STORES_PIPELINE, &f->store, &f->err);
}

typedef struct trial {
  const char *only; /* calls */
  uint64_t n;
  calls_fault fault;
  size_t done, end; /* steps that the store calls done, of how many */
  bool opened, failed, doubt, reached;
} trial;

static void look_at_error(const trial *t, const stores_fixture *f, weir_status status) {
  if (status != f->err.code || !strstr(f->err.message, " "))
    fail_msg("call %llu, fault %d: %s, %s: '%s'", (unsigned long long)t->n, t->fault,
             weir_status_name(status), weir_status_name(f->err.code), f->err.message);
}

/* Steps on from `t->done` until one fails; one that may be repeated is, once. */
static void take_steps(trial *t, stores_fixture *f) {
  f->err = (weir_error){0};
  weir_status status = open_store(f);
  if (status) look_at_error(t, f, status);
  t->failed = status != WEIR_OK;
  t->opened = !t->failed;
  bool again = true;
  while (!t->failed && t->done < t->end) {
    status = steps[t->done](f);
    if (!status) {
      t->done++;
      continue;
    }
    look_at_error(t, f, status);
    t->doubt = f->err.flags & WEIR_ERR_IN_DOUBT;
    if (again && f->err.flags & WEIR_ERR_RETRIABLE) {
      again = false;
      continue;
    }
    t->failed = true;
    /* What is in doubt is not touched again. */
    if (t->doubt) assert_int_equal(weir_store_check_lease(f->store, NULL), status);
  }
}

/* As the next owner finds it. */
static void look_at_store(const trial *t, stores_fixture *f) {
  stores_open(f);
  weir_store_state *s = stores_load(f);
  size_t n = shown(s);
  /* A store that is whole writes what it remembers when it is closed. */
  bool by_closing = n == STEPS && t->done == STEPS - 1 && t->opened;
  if (n < t->done || (n > t->done + t->doubt && !by_closing))
    fail_msg("call %llu, fault %d: %zu steps are said to be done, %zu are there: '%s'",
             (unsigned long long)t->n, t->fault, t->done, n, f->err.message);
  assert_int_equal(s->n_decided, n >= 3 ? 2 : 0);
  assert_int_equal(s->n_positions, n >= 3 ? 1 : 0);
  weir_store_state_free(s);
  OK(weir_store_check_lease(f->store, &f->err));
  stores_close(f);
}

static void try_once(trial *t, stores_fixture *f) {
  size_t before = open_files();
  if (t->only) {
    calls_fail_of(t->only, t->n, t->fault);
  } else {
    calls_fail(t->n, t->fault);
  }
  take_steps(t, f);
  t->reached = calls_stop() >= t->n;
  stores_close(f);
  if (!t->reached && t->failed) fail_msg("nothing went wrong, but: '%s'", f->err.message);
  assert_int_equal(open_files(), before);
}

/* ---- on disk */

/* `to` as `from` is, files in it alone, or no more. */
static void replace(const char *to, const char *from) {
  weir_error err = {0};
  DIR *dir = NULL;
  if (access(to, F_OK) == 0) assert_int_equal(folder_remove(to), 0);
  if (!from) return;
  stores_assert_ok(base_mkdirs(to, 0700, &err), &err, to);
  assert_non_null(dir = opendir(from));
  for (struct dirent *e; (e = readdir(dir));) {
    char path[500];
    base_buf file = {0};
    if (e->d_name[0] == '.') continue;
    snprintf(path, sizeof(path), "%s/%s", from, e->d_name);
    stores_assert_ok(base_read_file(path, 1 << 24, &file, &err), &err, path);
    snprintf(path, sizeof(path), "%s/%s", to, e->d_name);
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    stores_assert_ok(base_write_all(fd, file.data, file.size, path, &err), &err, path);
    close(fd);
    base_buf_done(&file);
  }
  closedir(dir);
}

/* In a new folder, or where a killed owner left `done` steps and a WAL in `left`. */
static void sweep_disk(stores_fixture *f, const char *calls, calls_fault fault,
                       const char *left, size_t done, uint64_t stride) {
  bool reached = true;
  if (getenv("WEIR_SWEEP")) stride = 1;
  stores_close(f);
  for (uint64_t n = 1; reached; n += stride) {
    trial t = {.only = calls, .n = n, .fault = fault, .done = done, .end = STEPS};
    replace(f->state, left);
    try_once(&t, f);
    look_at_store(&t, f);
    reached = t.reached;
  }
}

static void test_a_call_on_files_fails(void **state) {
  sweep_disk(*state, NULL, CALLS_FAIL, NULL, 0, 1);
}
static void test_all_calls_on_files_fail(void **state) {
  sweep_disk(*state, NULL, CALLS_DEAD, NULL, 0, 7);
}
static void test_a_call_on_files_is_broken_off(void **state) {
  sweep_disk(*state, NULL, CALLS_BREAK, NULL, 0, 1);
}
static void test_half_of_the_bytes_are_moved(void **state) {
  sweep_disk(*state, NULL, CALLS_SHORT, NULL, 0, 3);
}
static void test_sqlite_fails(void **state) {
  sweep_disk(*state, "sqlite3", CALLS_FAIL, NULL, 0, 1);
}
static void test_sqlite_is_busy(void **state) {
  sweep_disk(*state, "sqlite3", CALLS_BREAK, NULL, 0, 5);
}
static void test_a_sum_fails(void **state) {
  sweep_disk(*state, "EVP", CALLS_FAIL, NULL, 0, 3);
}
static void test_all_sums_fail(void **state) {
  sweep_disk(*state, "EVP", CALLS_DEAD, NULL, 0, 11);
}
static void test_nothing_is_random(void **state) {
  sweep_disk(*state, "getrandom", CALLS_FAIL, NULL, 0, 1);
}
#if defined(WEIR_FAULTS)
static void test_a_fault_point_fails(void **state) {
  sweep_disk(*state, "store.", CALLS_FAIL, NULL, 0, 1);
}
#endif

static void test_what_a_killed_owner_left(void **state) {
  stores_fixture *f = *state;
  char left[160];
  snprintf(left, sizeof(left), "%s/left", f->dir);
  for (size_t i = 0; i < 3; i++) OK(steps[i](f));
  replace(left, f->state);
  for (calls_fault fault = CALLS_FAIL; fault <= CALLS_SHORT; fault++)
    sweep_disk(f, NULL, fault, left, 3, fault == CALLS_DEAD ? 13 : 1);
}

/* Another file takes the lock's name between the lock's opening and its locking. */
static void exchange_lock(void *ctx) {
  char lock[160], other[160];
  stores_fixture *f = ctx;
  snprintf(lock, sizeof(lock), "%s/lock", f->state);
  snprintf(other, sizeof(other), "%s/other", f->dir);
  fclose(fopen(other, "w"));
  assert_int_equal(rename(other, lock), 0);
}
static void exchange_lock_abroad(void *ctx) {
  char lock[160];
  stores_fixture *f = ctx;
  snprintf(lock, sizeof(lock), "%s/lock", f->state);
  assert_int_equal(unlink(lock), 0);
  assert_int_equal(symlink("/proc/self/stat", lock), 0);
}

static void test_a_lock_that_is_exchanged(void **state) {
  stores_fixture *f = *state;
  void (*const exchanges[])(void *) = {exchange_lock, exchange_lock_abroad};
  stores_close(f);
  for (size_t i = 0; i < BASE_COUNT(exchanges); i++) {
    calls_run_before("fcntl", 1, exchanges[i], f);
    weir_status status = open_store(f);
    calls_stop();
    assert_int_equal(status, WEIR_E_FENCED);
    stores_assert_message(f, "moved or replaced");
    replace(f->state, NULL);
  }
}

/* Held by somebody who has not written yet who it is. */
static void test_a_lock_without_a_name(void **state) {
  stores_fixture *f = *state;
  char lock[160];
  struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  snprintf(lock, sizeof(lock), "%s/lock", f->state);
  stores_close(f);
  int fd = open(lock, O_RDWR | O_TRUNC);
  assert_int_equal(fcntl(fd, F_OFD_SETLK, &whole), 0);
  assert_int_equal(open_store(f), WEIR_E_FENCED);
  stores_assert_message(f, "(pid unknown)");
  close(fd);
  stores_open(f);
}

/* A file system without shared memory, which a WAL needs. */
static void test_no_place_for_a_wal(void **state) {
  stores_fixture *f = *state;
  sqlite3_vfs *usual = sqlite3_vfs_find(NULL);
  stores_close(f);
  replace(f->state, NULL);
  sqlite3_vfs_register(sqlite3_vfs_find("unix-dotfile"), 1);
  weir_status status = open_store(f);
  sqlite3_vfs_register(usual, 1);
  assert_int_equal(status, WEIR_E_IO);
  stores_assert_message(f, "cannot hold a WAL");
  stores_open(f);
}

/* An owner whose lock file was removed, in the middle of a step. */
static void test_somebody_writes_beside_the_lock(void **state) {
  stores_fixture *f = *state;
  sqlite3 *db = NULL;
  stores_close(f);
  assert_int_equal(sqlite3_open(f->db, &db), SQLITE_OK);
  assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
  calls_fail_of("usleep", 0, CALLS_FAIL);
  weir_status status = open_store(f);
  calls_stop();
  assert_int_equal(status, WEIR_E_FENCED);
  stores_assert_message(f, "in the middle of writing");
  sqlite3_close(db);
  stores_open(f);
}

/* Opening for reading alone, and in memory: nothing is left where it fails. */
static void test_other_openings_fail(void **state) {
  stores_fixture *f = *state;
  bool failed = true;
  for (uint64_t n = 1; failed; n++) {
    weir_store *reader = NULL, *memory = NULL;
    calls_fail_of("sqlite3", n, CALLS_FAIL);
    bool read = weir_store_open_read(f->state, &reader, &f->err);
    calls_fail_of("sqlite3", n, CALLS_FAIL);
    bool made = weir_store_open_memory(STORES_PIPELINE, &memory, &f->err);
    calls_stop();
    assert_int_equal(read, reader == NULL);
    assert_int_equal(made, memory == NULL);
    weir_store_close(reader);
    weir_store_close(memory);
    failed = read || made;
    if (n == 1) assert_true(read && made);
  }
}

/* What is made of a lost store is there whole or not at all. */
static void test_an_adoption_fails(void **state) {
  stores_fixture *f = *state;
  weir_store_sink sink = stores_sink("a", 7, 50, 400);
  weir_store_adoption from = {.struct_size = sizeof(from),
                              .pipeline = STORES_PIPELINE,
                              .token = 51,
                              .last_attempt = 9,
                              .sinks = &sink,
                              .n_sinks = 1};
  weir_status status = WEIR_E_IO;
  for (uint64_t n = 1; status; n++) {
    calls_fail_of("sqlite3", n, CALLS_FAIL);
    status = weir_store_adopt(f->store, &from, &f->err);
    calls_stop();
    bool doubt = status && f->err.flags & WEIR_ERR_IN_DOUBT;
    stores_reopen(f);
    weir_store_state *s = stores_load(f);
    assert_int_equal(s->n_decided, s->n_seen);
    assert_int_equal(s->last_attempt, s->n_seen ? 9 : 0);
    if (!doubt) assert_int_equal(s->n_seen, status ? 0 : 1);
    weir_store_state_free(s);
  }
}

/* ---- in PostgreSQL */

/* In a database with the tables, or, without a step, in an empty one. Before the next owner comes the server has
 * seen that the last one is gone. */
static void sweep_postgres(stores_fixture *f, const char *calls, calls_fault fault,
                           size_t end) {
  bool reached = true;
  uint64_t stride = getenv("WEIR_SWEEP") ? 1 : end ? 17 : 5;
  stores_close(f);
  for (uint64_t n = 1; reached; n += stride) {
    trial t = {.only = calls, .n = n, .fault = fault, .end = end};
    stores_sql(end ? "DELETE FROM weir.meta; DELETE FROM weir.lease; "
                     "DELETE FROM weir.attempt; DELETE FROM weir.entry; "
                     "DELETE FROM weir.part; DELETE FROM weir.cursor; "
                     "DELETE FROM weir.position; DELETE FROM weir.binding"
                   : "DROP SCHEMA IF EXISTS weir CASCADE");
    try_once(&t, f);
    stores_sql(
        "DO $$ BEGIN "
        "WHILE EXISTS (SELECT 1 FROM pg_stat_activity WHERE "
        "application_name='weir orders') LOOP PERFORM pg_stat_clear_snapshot(); "
        "END LOOP; UPDATE weir.lease SET expires='-infinity'; "
        "EXCEPTION WHEN undefined_table OR invalid_schema_name THEN NULL; END $$");
    look_at_store(&t, f);
    reached = t.reached;
  }
}

static void test_libpq_refuses_to_connect(void **state) {
  sweep_postgres(*state, "PQconn", CALLS_FAIL, 0);
}
static void test_libpq_refuses_a_statement(void **state) {
  sweep_postgres(*state, "PQsend", CALLS_FAIL, STEPS);
}
static void test_a_result_fails(void **state) {
  sweep_postgres(*state, "PQgetResult", CALLS_FAIL, STEPS);
}
static void test_an_opening_fails(void **state) {
  sweep_postgres(*state, "PQgetResult", CALLS_FAIL, 0);
}
static void test_the_connection_goes_in_an_opening(void **state) {
  sweep_postgres(*state, "PQsend", CALLS_DEAD, 0);
}
static void test_the_connection_goes_before_a_statement(void **state) {
  sweep_postgres(*state, "PQsend", CALLS_DEAD, STEPS);
}
static void test_the_connection_goes_at_any_time(void **state) {
  sweep_postgres(*state, "PQ", CALLS_DEAD, STEPS);
}
static void test_waiting_is_broken_off(void **state) {
  sweep_postgres(*state, "poll", CALLS_BREAK, STEPS);
}
static void test_waiting_fails(void **state) {
  sweep_postgres(*state, "poll", CALLS_FAIL, STEPS);
}

#define DISK(test) \
  cmocka_unit_test_setup_teardown(test, stores_setup_disk, stores_teardown)
#define SERVER(test) \
  cmocka_unit_test_setup_teardown(test, stores_setup_postgres, stores_teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      DISK(test_a_call_on_files_fails),
      DISK(test_all_calls_on_files_fail),
      DISK(test_a_call_on_files_is_broken_off),
      DISK(test_half_of_the_bytes_are_moved),
      DISK(test_what_a_killed_owner_left),
      DISK(test_sqlite_fails),
      DISK(test_sqlite_is_busy),
      DISK(test_a_sum_fails),
      DISK(test_all_sums_fail),
      DISK(test_nothing_is_random),
#if defined(WEIR_FAULTS)
      DISK(test_a_fault_point_fails),
#endif
      DISK(test_a_lock_that_is_exchanged),
      DISK(test_a_lock_without_a_name),
      DISK(test_no_place_for_a_wal),
      DISK(test_somebody_writes_beside_the_lock),
      DISK(test_other_openings_fail),
      DISK(test_an_adoption_fails),
      SERVER(test_libpq_refuses_to_connect),
      SERVER(test_libpq_refuses_a_statement),
      SERVER(test_a_result_fails),
      SERVER(test_an_opening_fails),
      SERVER(test_the_connection_goes_in_an_opening),
      SERVER(test_the_connection_goes_before_a_statement),
      SERVER(test_the_connection_goes_at_any_time),
      SERVER(test_waiting_is_broken_off),
      SERVER(test_waiting_fails),
  };
  return cmocka_run_group_tests(tests, stores_start_server, stores_stop_server);
}
