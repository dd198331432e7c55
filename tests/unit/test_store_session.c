/* SPDX-License-Identifier: Apache-2.0 */
/* ctest: failing calls */
/* A session with a PostgreSQL server, and the lease of the store in it, where something is amiss at one place:
 * what is said, and whether the session or the store may be used again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "failing/calls.h"
#include "store/pg.h"
#include "support/stores.h"

#define LEASE_LOCKED "BEGIN; LOCK TABLE weir.lease"

static pq_session connected(stores_fixture *f, int64_t patience_ns) {
  pq_session s = {.patience_ns = patience_ns};
  OK(pq_open(&s, stores_uri(), "test", true, &f->err));
  return s;
}

/* ---- libpq itself. A child: it is loaded once a process */

static int child(const char *call) {
  weir_store *store = NULL;
  weir_error err = {0};
  weir_store_postgres where = {
      .struct_size = sizeof(where), .uri = "postgresql://x/x", .pipeline = "orders"};
  calls_fail_of(call, 1, CALLS_FAIL);
  weir_status status = weir_store_open_postgres(&where, &store, &err);
  calls_stop();
  puts(err.message);
  return status == WEIR_E_NOT_IMPLEMENTED ? 0 : 1;
}

static void assert_libpq_is_wanted(const char *call, const char *why) {
  char command[200], said[400] = {0};
  char self[300] = {0};
  assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
  assert_true(snprintf(command, sizeof(command), "'%.150s' child %s", self, call) < 200);
  FILE *out = popen(command, "r");
  assert_non_null(out);
  assert_non_null(fgets(said, sizeof(said), out));
  assert_int_equal(pclose(out), 0);
  if (!strstr(said, "needs libpq.so.5") || !strstr(said, why)) fail_msg("%s", said);
}

static void test_without_libpq(void **state) {
  (void)state;
  assert_libpq_is_wanted("dlopen", "that-is-not-there");
  assert_libpq_is_wanted("dlsym", "it lacks PQ");
}

/* ---- what the URI says */

static void with_options(char uri[400], const char *options) {
  snprintf(uri, 400, "%s&%s", stores_uri(), options);
}

static void test_what_the_uri_says_counts(void **state) {
  stores_fixture *f = *state;
  pq_session s = {.patience_ns = BASE_NS_PER_S};
  char uri[400];
  /* An encoding is not taken: what is stored is UTF-8. */
  with_options(uri, "client_encoding=LATIN1&connect_timeout=7&application_name=mine");
  OK(pq_open(&s, uri, "test", true, &f->err));
  OK(pq_exec(&s,
             "DO $$ BEGIN IF current_setting('client_encoding') <> 'UTF8' OR "
             "current_setting('application_name') <> 'mine' THEN RAISE 'no'; END IF; "
             "END $$",
             &f->err));
  pq_close(&s);
  assert_int_equal(pq_open(&s, "postgres://127.0.0.1:1/none", "test", true, &f->err),
                   WEIR_E_IO);
  stores_assert_message(f, "postgresql://127.0.0.1:1/none");
  pq_close(&s);
  assert_int_equal(pq_open(&s, "postgresql:///none?hostaddr=127.0.0.1&port=1&password=",
                           "test", true, &f->err),
                   WEIR_E_IO);
  stores_assert_message(f, "postgresql://127.0.0.1:1/none");
  pq_close(&s);
}

static void test_an_older_libpq_lacks_an_option(void **state) {
  stores_fixture *f = *state;
  calls_fail_of("PQconninfoParse", 1, CALLS_SHORT);
  pq_session s = connected(f, BASE_NS_PER_S);
  assert_int_equal(calls_stop(), 1);
  OK(pq_exec(&s, "SELECT 1", &f->err));
  pq_close(&s);
}

/* ---- answers */

static void assert_never_used_again(stores_fixture *f, pq_session *s) {
  bool prepared = false;
  PGresult *result = NULL;
  assert_false(pq_is_idle(s));
  assert_int_equal(pq_exec(s, "SELECT 1", &f->err), WEIR_E_IO);
  stores_assert_message(f, "the connection was lost");
  assert_int_equal(pq_run(s, "", &prepared, "SELECT 1", NULL, 0, &result, &f->err),
                   WEIR_E_IO);
  assert_int_equal(pq_commit(s, &f->err), WEIR_E_IO);
  assert_int_equal(f->err.flags, 0); /* never sent */
  assert_null(result);
}

static void test_an_answer_that_is_late(void **state) {
  stores_fixture *f = *state;
  pq_session s = connected(f, 1);
  assert_int_equal(pq_exec(&s, "SELECT pg_sleep(60)", &f->err), WEIR_E_TIMEOUT);
  stores_assert_message(f, "no answer within");
  assert_never_used_again(f, &s);
  pq_close(&s);
}

static void test_a_long_wait_is_cut_into_pieces(void **state) {
  stores_fixture *f = *state;
  pq_session s = connected(f, 1000 * BASE_NS_PER_S);
  OK(pq_exec(&s, "SELECT pg_sleep(0.05)", &f->err));
  pq_close(&s);
}

/* Waited for in vain, with the server's word of another failure under way. */
static void test_no_wait_for_the_rest(void **state) {
  static const char *const calls[] = {"PQflush", "PQconsumeInput", "poll"};
  stores_fixture *f = *state;
  for (size_t i = 0; i < BASE_COUNT(calls); i++) {
    pq_session s = connected(f, 60 * BASE_NS_PER_S);
    calls_fail_of(calls[i], 1, CALLS_FAIL);
    weir_status status = pq_exec(&s, "SELECT pg_sleep(0.01)", &f->err);
    assert_true(calls_stop() >= 1);
    assert_int_equal(status, WEIR_E_IO);
    assert_never_used_again(f, &s);
    pq_close(&s);
  }
  pq_session s = connected(f, 60 * BASE_NS_PER_S);
  calls_fail_of("PQflush", 2, CALLS_FAIL);
  assert_int_equal(pq_exec(&s, "SELECT 1/0", &f->err), WEIR_E_IO);
  calls_stop();
  pq_close(&s);
}

static void test_an_answer_without_a_result(void **state) {
  stores_fixture *f = *state;
  pq_session s = connected(f, 60 * BASE_NS_PER_S);
  calls_fail_of("PQgetResult", 1, CALLS_SHORT);
  assert_int_equal(pq_exec(&s, "SELECT 1", &f->err), WEIR_E_INTERNAL);
  calls_stop();
  stores_assert_message(f, "gave no answer");
  pq_close(&s);
}

/* A full disk is worth another try, but not over a connection that is gone. */
static void test_a_failure_that_ends_the_session(void **state) {
  static const char full[] = "DO $$ BEGIN RAISE 'x' USING ERRCODE='53100'; END $$";
  stores_fixture *f = *state;
  pq_session s = connected(f, 60 * BASE_NS_PER_S);
  assert_int_equal(pq_exec(&s, full, &f->err), WEIR_E_IO);
  assert_int_equal(f->err.flags, WEIR_ERR_RETRIABLE);
  OK(pq_exec(&s, "SELECT 1", &f->err));
  calls_fail_of("PQstatus", 1, CALLS_FAIL);
  assert_int_equal(pq_exec(&s, full, &f->err), WEIR_E_IO);
  calls_stop();
  assert_int_equal(f->err.flags, 0);
  assert_never_used_again(f, &s);
  pq_close(&s);
}

static void test_a_commit_that_is_no_commit(void **state) {
  stores_fixture *f = *state;
  pq_session s = connected(f, 60 * BASE_NS_PER_S);
  OK(pq_exec(&s, "BEGIN", &f->err));
  assert_int_not_equal(pq_exec(&s, "SELECT 1/0", &f->err), WEIR_OK);
  assert_string_equal(f->err.sqlstate, "22012");
  assert_int_equal(pq_commit(&s, &f->err), WEIR_E_IO);
  assert_int_equal(f->err.flags, 0);
  stores_assert_message(f, "rolled the step back");
  pq_close(&s);
}

/* The server's own no is one; a session that it ended before, too; else nobody knows. */
static void test_who_says_that_a_commit_failed(void **state) {
  static const char deferred[] =
      "CREATE TEMP TABLE t(i int PRIMARY KEY DEFERRABLE INITIALLY DEFERRED); BEGIN; "
      "INSERT INTO t VALUES(1),(1)";
  stores_fixture *f = *state;
  pq_session s = connected(f, 60 * BASE_NS_PER_S);
  OK(pq_exec(&s, deferred, &f->err));
  assert_int_equal(pq_commit(&s, &f->err), WEIR_E_IO);
  assert_string_equal(f->err.sqlstate, "23505");
  assert_int_equal(f->err.flags, 0);
  assert_true(pq_is_idle(&s));
  OK(pq_exec(&s, "BEGIN", &f->err));
  calls_fail_of("PQgetResult", 1, CALLS_FAIL);
  assert_int_equal(pq_commit(&s, &f->err), WEIR_E_IO);
  calls_stop();
  assert_int_equal(f->err.flags, WEIR_ERR_IN_DOUBT);
  OK(pq_exec(&s, "BEGIN; SET idle_in_transaction_session_timeout=1", &f->err));
  stores_sql(
      "DO $$ BEGIN WHILE EXISTS (SELECT 1 FROM pg_stat_activity WHERE "
      "application_name='test' AND state LIKE 'idle in%' AND pid <> pg_backend_pid()) "
      "LOOP "
      "PERFORM pg_stat_clear_snapshot(); END LOOP; END $$");
  assert_int_equal(pq_commit(&s, &f->err), WEIR_E_IO);
  assert_string_equal(f->err.sqlstate, "25P03");
  assert_int_equal(f->err.flags, 0);
  pq_close(&s);
}

/* ---- tables and opening */

static weir_status open_again(stores_fixture *f, weir_store_postgres where) {
  stores_close(f);
  f->err = (weir_error){0};
  return weir_store_open_postgres(&where, &f->store, &f->err);
}

static void test_tables_of_another_hand(void **state) {
  stores_fixture *f = *state;
  weir_store_state *s = NULL;
  OK(weir_store_reserve(f->store, 1, NULL, 0, &f->err));
  stores_sql("ALTER TABLE weir.attempt ALTER state TYPE int");
  assert_int_equal(weir_store_load(f->store, &s, &f->err), WEIR_E_CORRUPT);
  stores_assert_message(f, "table attempt");
  stores_sql("DELETE FROM weir.version");
  assert_int_equal(open_again(f, stores_where()), WEIR_E_NOT_IMPLEMENTED);
  stores_assert_message(f, "version 0");
}

static void *open_in_thread(void *arg) {
  stores_fixture *f = arg;
  open_again(f, stores_where());
  return NULL;
}

/* Another one makes them, while this one waits to do so. */
static void test_the_tables_are_made_once(void **state) {
  stores_fixture *f = *state;
  pthread_t thread;
  stores_close(f);
  stores_sql("DROP SCHEMA weir CASCADE");
  pq_session other = connected(f, 60 * BASE_NS_PER_S);
  OK(pq_exec(&other, "BEGIN; SELECT pg_advisory_xact_lock(2003134834)", &f->err));
  assert_int_equal(pthread_create(&thread, NULL, open_in_thread, f), 0);
  stores_sql(
      "DO $$ BEGIN WHILE NOT EXISTS (SELECT 1 FROM pg_locks WHERE locktype='advisory' "
      "AND NOT granted) LOOP END LOOP; END $$");
  weir_error err = {0};
  stores_assert_ok(pq_exec(&other, "CREATE SCHEMA weir", &err), &err, "schema");
  stores_assert_ok(pq_exec(&other, pg_schema, &err), &err, "tables");
  stores_assert_ok(pq_commit(&other, &err), &err, "commit");
  pthread_join(thread, NULL);
  stores_assert_ok(f->err.code, &f->err, "open");
  OK(weir_store_check_lease(f->store, &f->err));
  pq_close(&other);
}

static void test_hosts_of_other_versions(void **state) {
  stores_fixture *f = *state;
  weir_store_postgres where = stores_where();
  where.struct_size = offsetof(weir_store_postgres, lease_ns); /* it knows no lease */
  where.lease_ns = 1;
  OK(open_again(f, where));
  assert_int_equal(((pg_store *)f->store)->lease_ns, WEIR_STORE_LEASE_NS);
  where = stores_where();
  where.struct_size = 0;
  OK(open_again(f, where));
  where.struct_size = sizeof(where) + 64;
  OK(open_again(f, where));
  assert_int_equal(((pg_store *)f->store)->lease_ns, where.lease_ns);
  /* Whoever wants no words gets none. */
  weir_store *second = NULL;
  assert_int_equal(weir_store_open_postgres(&where, &second, NULL), WEIR_E_FENCED);
  assert_null(second);
}

static void test_a_host_without_a_name(void **state) {
  stores_fixture *f = *state;
  weir_store *second = NULL;
  weir_store_postgres where = stores_where();
  stores_close(f);
  calls_fail_of("gethostname", 1, CALLS_FAIL);
  stores_open(f);
  assert_int_equal(calls_stop(), 1);
  assert_int_equal(weir_store_open_postgres(&where, &second, &f->err), WEIR_E_FENCED);
  stores_assert_message(f, "on unknown");
}

/* Nothing is left of an opening that fails, and the next one succeeds. */
static void test_openings_that_fail(void **state) {
  static const char *const calls[] = {"pthread_mutex_init", "pthread_cond_init",
                                      "pthread_create", "EVP_DigestInit_ex", "getrandom"};
  stores_fixture *f = *state;
  for (size_t i = 0; i < BASE_COUNT(calls); i++) {
    weir_store_postgres where = stores_where();
    stores_close(f);
    calls_fail_of(calls[i], 1, CALLS_FAIL);
    weir_status status = weir_store_open_postgres(&where, &f->store, &f->err);
    assert_int_equal(calls_stop(), 1);
    assert_int_not_equal(status, WEIR_OK);
    assert_int_equal(status, f->err.code);
    assert_null(f->store);
    stores_open(f);
  }
  stores_close(f);
  calls_fail_of("pthread_mutex_init", 1, CALLS_FAIL);
  weir_store_postgres where = stores_where();
  assert_int_not_equal(weir_store_read_postgres(&where, &f->store, &f->err), WEIR_OK);
  calls_stop();
  assert_null(f->store);
}

static void test_setting_aside_fails(void **state) {
  stores_fixture *f = *state;
  weir_store_postgres where = stores_where();
  weir_store_state *before = stores_load(f);
  OK(weir_store_reserve(f->store, 1, NULL, 0, &f->err));
  where.new_deployment = 1;
  bool failed = true;
  size_t failures = 0;
  for (uint64_t n = 1; failed; n++) {
    stores_close(f);
    calls_fail_of("PQgetResult", n, CALLS_FAIL);
    failed = weir_store_open_postgres(&where, &f->store, &f->err) != WEIR_OK;
    calls_stop();
    if (!failed) break;
    failures++;
    stores_sql("UPDATE weir.lease SET expires='-infinity'");
    stores_open(f);
    weir_store_state *s = stores_load(f);
    /* COMMIT, the last one, may have happened. */
    if (memcmp(s->deployment, before->deployment, WEIR_UUID_SIZE) == 0)
      assert_int_equal(s->n_attempts, 1);
    weir_store_state_free(s);
  }
  assert_true(failures > 20);
  weir_store_state_free(before);
}

#if defined(WEIR_FAULTS)
static uint64_t token_on_server(stores_fixture *f, weir_store_postgres where) {
  weir_store *reader = NULL;
  weir_store_state *s = NULL;
  OK(weir_store_read_postgres(&where, &reader, &f->err));
  OK(weir_store_load(reader, &s, &f->err));
  uint64_t token = s->token;
  weir_store_state_free(s);
  weir_store_close(reader);
  return token;
}

static void test_the_lease_before_and_after(void **state) {
  stores_fixture *f = *state;
  weir_store_postgres where = stores_where();
  uint64_t token = stores_token(f);
  stores_close(f);
  calls_fail_of("store.lease.before", 1, CALLS_FAIL);
  assert_int_equal(open_again(f, where), WEIR_E_IO);
  calls_stop();
  assert_int_equal(token_on_server(f, where), token);
  calls_fail_of("store.lease.after", 1, CALLS_FAIL);
  assert_int_equal(open_again(f, where), WEIR_E_IO);
  calls_stop();
  uint64_t taken = token_on_server(f, where);
  assert_true(taken > token);
  stores_open(f);
  assert_true(stores_token(f) > taken);
}
#endif

/* ---- the keeper */

static weir_store_postgres short_lease(stores_fixture *f, int64_t lease_ns) {
  weir_store_postgres where = stores_where();
  where.lease_ns = lease_ns;
  OK(open_again(f, where));
  return where;
}

/* The keeper, or whoever asks first, ends the store when nobody can say any more whose the lease is. */
static void wait_for_the_end(stores_fixture *f, weir_status expected) {
  int64_t deadline = base_deadline(60 * BASE_NS_PER_S);
  weir_status status = WEIR_OK;
  while (!status && base_clock_mono() < deadline) {
    status = weir_store_watch(f->store, &f->err);
    if (!status) sched_yield();
  }
  assert_int_equal(status, expected);
  assert_int_equal(weir_store_reserve(f->store, 1, NULL, 0, &f->err), expected);
}

static void test_the_keeper_meets_a_newer_owner(void **state) {
  stores_fixture *f = *state;
  short_lease(f, BASE_NS_PER_S);
  stores_sql("UPDATE weir.lease SET token=token+1");
  wait_for_the_end(f, WEIR_E_FENCED);
}

static void test_the_keeper_loses_its_session(void **state) {
  stores_fixture *f = *state;
  short_lease(f, BASE_NS_PER_S);
  stores_sql(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE "
      "application_name='weir orders'");
  wait_for_the_end(f, WEIR_E_IO);
}

/* Somebody has the table locked: the keeper tries again for as long as there is no doubt, no longer. */
static void test_the_keeper_waits_in_vain(void **state) {
  stores_fixture *f = *state;
  short_lease(f, 3 * BASE_NS_PER_S);
  pq_session other = connected(f, 60 * BASE_NS_PER_S);
  OK(pq_exec(&other, LEASE_LOCKED, &f->err));
  wait_for_the_end(f, WEIR_E_IO);
  assert_string_equal(f->err.sqlstate, "55P03");
  OK(pq_exec(&other, "ROLLBACK", &f->err));
  pq_close(&other);
}

#define ONE(test) \
  cmocka_unit_test_setup_teardown(test, stores_setup_postgres, stores_teardown)

int main(int argc, char **argv) {
  if (argc == 3 && strcmp(argv[1], "child") == 0) return child(argv[2]);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_without_libpq),
      ONE(test_what_the_uri_says_counts),
      ONE(test_an_older_libpq_lacks_an_option),
      ONE(test_an_answer_that_is_late),
      ONE(test_a_long_wait_is_cut_into_pieces),
      ONE(test_no_wait_for_the_rest),
      ONE(test_an_answer_without_a_result),
      ONE(test_a_failure_that_ends_the_session),
      ONE(test_a_commit_that_is_no_commit),
      ONE(test_who_says_that_a_commit_failed),
      ONE(test_tables_of_another_hand),
      ONE(test_the_tables_are_made_once),
      ONE(test_hosts_of_other_versions),
      ONE(test_a_host_without_a_name),
      ONE(test_openings_that_fail),
      ONE(test_setting_aside_fails),
#if defined(WEIR_FAULTS)
      ONE(test_the_lease_before_and_after),
#endif
      ONE(test_the_keeper_meets_a_newer_owner),
      ONE(test_the_keeper_loses_its_session),
      ONE(test_the_keeper_waits_in_vain),
  };
  return cmocka_run_group_tests(tests, stores_start_server, stores_stop_server);
}
