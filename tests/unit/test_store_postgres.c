/* SPDX-License-Identifier: Apache-2.0 */
/* The checkpoint store: what only the one in PostgreSQL can show: a lease that expires, several pipelines
 * in one database, a server that goes away, passwords. ctest: threads */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "store/pg.h"
#include "support/stores.h"

#define EXPIRE "UPDATE weir.lease SET expires='-infinity'"
#define PASSWORD "s3cr3t-%&-word" /* tools/postgres.py */

static weir_status open_again(stores_fixture *f, weir_store_postgres where) {
  weir_store *second = NULL;
  weir_status status = weir_store_open_postgres(&where, &second, &f->err);
  if (!status) weir_store_close(second);
  return status;
}

static void test_a_live_lease_is_waited_for(void **state) {
  stores_fixture *f = *state;
  char pid[40];
  snprintf(pid, sizeof(pid), "pid %ld on ", (long)getpid());
  assert_int_equal(open_again(f, stores_where()), WEIR_E_FENCED);
  assert_int_equal(f->err.flags, WEIR_ERR_RETRIABLE);
  stores_assert_message(f, pid);
  OK(weir_store_reserve(f->store, 1, NULL, 0, &f->err)); /* the owner goes on */
}

static void test_a_released_lease_is_taken_at_once(void **state) {
  stores_fixture *f = *state;
  stores_reopen(f);
  assert_true(stores_token(f) > 1);
}

static void test_an_expired_lease_is_taken_and_its_owner_fenced(void **state) {
  stores_fixture *f = *state;
  weir_store_postgres where = stores_where();
  weir_store *second = NULL;
  OK(weir_store_reserve(f->store, 1, NULL, 0, &f->err));
  stores_sql(EXPIRE);
  OK(weir_store_open_postgres(&where, &second, &f->err));
  assert_int_equal(weir_store_reserve(f->store, 2, NULL, 0, &f->err), WEIR_E_FENCED);
  assert_int_equal(f->err.flags, 0);
  stores_assert_message(f, "token 1");
  /* Nor does it come back, and its end takes nothing from the other. */
  assert_int_equal(weir_store_check_lease(f->store, &f->err), WEIR_E_FENCED);
  stores_close(f);
  f->store = second;
  OK(weir_store_check_lease(f->store, &f->err));
  weir_store_state *s = stores_load(f);
  assert_true(s->token > 1);
  assert_int_equal(s->last_attempt, 1);
  weir_store_state_free(s);
}

static void test_asking_alone_shows_the_loss(void **state) {
  stores_fixture *f = *state;
  stores_sql(EXPIRE);
  OK(open_again(f, stores_where()));
  OK(weir_store_watch(f->store, &f->err)); /* renewed a moment ago: not asked */
  assert_int_equal(weir_store_check_lease(f->store, &f->err), WEIR_E_FENCED);
  assert_int_equal(weir_store_watch(f->store, &f->err), WEIR_E_FENCED);
}

/* Nobody else came: a lease that ran out is taken up again by whoever has its token. */
static void test_an_expired_lease_goes_on_where_nobody_took_it(void **state) {
  stores_fixture *f = *state;
  stores_sql(EXPIRE);
  OK(weir_store_reserve(f->store, 1, NULL, 0, &f->err));
  assert_int_equal(open_again(f, stores_where()), WEIR_E_FENCED);
}

/* Longer than the lease, with nothing to write: the keeper holds it. */
static void test_the_keeper_renews(void **state) {
  stores_fixture *f = *state;
  weir_store_postgres where = stores_where();
  where.lease_ns = 3 * BASE_NS_PER_S;
  stores_close(f);
  OK(weir_store_open_postgres(&where, &f->store, &f->err));
  stores_sql(
      "DO $$ DECLARE first timestamptz; now_at timestamptz; BEGIN "
      "SELECT expires INTO first FROM weir.lease; "
      "FOR i IN 1..600 LOOP PERFORM pg_sleep(0.1); "
      "SELECT expires INTO now_at FROM weir.lease; "
      "IF now_at > first + interval '1 second' THEN RETURN; END IF; END LOOP; "
      "RAISE 'the lease was not renewed'; END $$");
  OK(weir_store_watch(f->store, &f->err));
}

/* Somebody else looks at the table for long: no answer in time, and nothing of it happened. */
static void test_a_lock_that_does_not_come(void **state) {
  stores_fixture *f = *state;
  weir_store_postgres where = stores_where();
  pq_session other = {.patience_ns = 60 * BASE_NS_PER_S};
  where.lease_ns = 9 * BASE_NS_PER_S;
  stores_close(f);
  OK(weir_store_open_postgres(&where, &f->store, &f->err));
  OK(pq_open(&other, stores_uri(), "test", true, &f->err));
  OK(pq_exec(&other, "BEGIN; LOCK TABLE weir.lease", &f->err));
  assert_int_equal(weir_store_reserve(f->store, 1, NULL, 0, &f->err), WEIR_E_IO);
  assert_int_equal(f->err.flags, WEIR_ERR_RETRIABLE);
  assert_string_equal(f->err.sqlstate, "55P03");
  OK(pq_exec(&other, "ROLLBACK", &f->err));
  pq_close(&other);
  OK(weir_store_reserve(f->store, 1, NULL, 0, &f->err));
}

static void test_pipelines_do_not_meet(void **state) {
  stores_fixture *f = *state;
  weir_store_postgres where = stores_where();
  weir_store *other = NULL;
  where.pipeline = "others";
  OK(weir_store_open_postgres(&where, &other, &f->err));
  OK(weir_store_reserve(f->store, 1, NULL, 0, &f->err));
  OK(stores_decide(f, 1, 10, true));
  weir_store_state *s = NULL;
  OK(weir_store_load(other, &s, &f->err));
  assert_string_equal(s->pipeline, "others");
  assert_int_equal(s->n_attempts + s->n_positions + s->n_decided, 0);
  weir_store_state_free(s);
  weir_store_close(other);
}

/* It says so, and a new deployment is the way out; an owner of before is fenced by it. */
static void test_a_damaged_lease(void **state) {
  stores_fixture *f = *state;
  weir_store_postgres where = stores_where();
  static const char *const damages[] = {
      "UPDATE weir.lease SET token=0", "UPDATE weir.lease SET token=9223372036854775807",
      "UPDATE weir.lease SET sum='\\x00'", "DELETE FROM weir.lease"};
  uint64_t before = stores_token(f);
  OK(weir_store_reserve(f->store, 1, NULL, 0, &f->err));
  for (size_t i = 0; i < BASE_COUNT(damages); i++) {
    stores_close(f);
    stores_sql(damages[i]);
    where.new_deployment = 0;
    assert_int_equal(open_again(f, where), WEIR_E_CORRUPT);
    stores_assert_message(f, "--new-deployment");
    where.new_deployment = 1;
    OK(weir_store_open_postgres(&where, &f->store, &f->err));
    assert_true(stores_token(f) > before);
    if (i + 1 < BASE_COUNT(damages)) before = stores_token(f);
    OK(weir_store_reserve(f->store, 1, NULL, 0, &f->err));
    stores_reopen(f);
  }
}

static void test_a_new_deployment_sets_the_old_one_aside(void **state) {
  stores_fixture *f = *state;
  weir_store_postgres where = stores_where();
  where.new_deployment = 1;
  OK(weir_store_reserve(f->store, 1, NULL, 0, &f->err));
  OK(stores_decide(f, 1, 10, true));
  weir_store_state *first = stores_load(f);
  assert_int_equal(open_again(f, where), WEIR_E_FENCED); /* not beside a live owner */
  stores_close(f);
  OK(weir_store_open_postgres(&where, &f->store, &f->err));
  weir_store_state *s = stores_load(f);
  assert_memory_not_equal(s->deployment, first->deployment, WEIR_UUID_SIZE);
  assert_int_equal(s->n_attempts + s->n_positions + s->n_decided, 0);
  assert_true(s->token > first->token); /* the old owner's is never given again */
  uint64_t token = s->token;
  assert_int_equal(s->last_attempt, 2);
  weir_store_state_free(s);
  weir_store_state_free(first);
  char sql[200];
  snprintf(sql, sizeof(sql),
           "DO $$ BEGIN IF (SELECT count(*) FROM weir.cursor WHERE "
           "pipeline='orders.before-%llu') <> 2 "
           "THEN RAISE 'the old deployment is gone'; END IF; END $$",
           (unsigned long long)token);
  stores_sql(sql);
}

static void test_a_reader_beside_the_owner(void **state) {
  stores_fixture *f = *state;
  weir_store_postgres where = stores_where();
  weir_store *reader = NULL;
  weir_store_state *s = NULL;
  OK(weir_store_reserve(f->store, 1, NULL, 0, &f->err));
  OK(weir_store_read_postgres(&where, &reader, &f->err));
  OK(weir_store_load(reader, &s, &f->err));
  assert_int_equal(s->n_attempts, 1);
  weir_store_state_free(s);
  assert_int_equal(weir_store_reserve(reader, 2, NULL, 0, &f->err), WEIR_E_INVALID_STATE);
  weir_store_close(reader);
  where.pipeline = "nobody";
  assert_int_equal(weir_store_read_postgres(&where, &reader, &f->err), WEIR_E_NOT_FOUND);
  stores_close(f);
  stores_sql("DROP SCHEMA weir CASCADE");
  assert_int_equal(weir_store_read_postgres(&where, &reader, &f->err), WEIR_E_NOT_FOUND);
}

/* As a hot standby is, to libpq: good enough to look, and refused to an owner, with the reason. */
static void test_a_server_that_only_reads(void **state) {
  stores_fixture *f = *state;
  weir_store_postgres where = stores_where();
  weir_store *reader = NULL;
  weir_store_state *s = NULL;
  OK(weir_store_reserve(f->store, 1, NULL, 0, &f->err));
  stores_close(f);
  stores_sql("ALTER DATABASE postgres SET default_transaction_read_only=on");
  weir_status read = weir_store_read_postgres(&where, &reader, &f->err);
  weir_status loaded = read ? read : weir_store_load(reader, &s, &f->err);
  weir_error err = {0};
  weir_status owned = weir_store_open_postgres(&where, &f->store, &err);
  stores_sql(
      "BEGIN READ WRITE; ALTER DATABASE postgres RESET default_transaction_read_only; "
      "COMMIT");
  OK(loaded);
  assert_int_equal(s->n_attempts, 1);
  assert_int_equal(owned, WEIR_E_IO);
  assert_non_null(strstr(err.message, "read-only"));
  weir_store_state_free(s);
  weir_store_close(reader);
  stores_open(f);
}

static void test_damage_shows(void **state) {
  stores_fixture *f = *state;
  weir_store_state *s = NULL;
  OK(weir_store_reserve(f->store, 1, NULL, 0, &f->err));
  OK(stores_decide(f, 1, 10, true));
  stores_sql("UPDATE weir.position SET rows=rows+1");
  assert_int_equal(weir_store_load(f->store, &s, &f->err), WEIR_E_CORRUPT);
  stores_assert_message(f, "table position");
  stores_close(f);
  stores_sql("UPDATE weir.version SET version=99");
  assert_int_equal(open_again(f, stores_where()), WEIR_E_NOT_IMPLEMENTED);
  stores_assert_message(f, "version 99");
}

static void test_the_session_goes_away(void **state) {
  stores_fixture *f = *state;
  OK(weir_store_reserve(f->store, 1, NULL, 0, &f->err));
  stores_sql(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE "
      "application_name='weir orders'");
  assert_int_equal(stores_decide(f, 1, 10, true), WEIR_E_IO);
  stores_sql(EXPIRE);
  stores_close(f);
  stores_open(f);
  weir_store_state *s = stores_load(f);
  assert_int_equal(s->attempts[0].state, WEIR_ATTEMPT_RESERVED);
  weir_store_state_free(s);
}

static void assert_setting(stores_fixture *f, const char *name, const char *value) {
  char sql[200];
  snprintf(sql, sizeof(sql),
           "DO $$ BEGIN IF current_setting('%s') <> '%s' THEN RAISE 'it is %%', "
           "current_setting('%s'); END IF; END $$",
           name, value, name);
  OK(pq_exec(&((pg_store *)f->store)->session, sql, &f->err));
}

static void test_a_session_sets_what_it_needs(void **state) {
  stores_fixture *f = *state;
  stores_sql("ALTER ROLE postgres SET synchronous_commit=off");
  stores_reopen(f);
  assert_setting(f, "synchronous_commit", "on");
  assert_setting(f, "application_name", "weir orders");
  assert_setting(f, "idle_in_transaction_session_timeout", "1min");
  /* Stronger than needed, and so left alone. */
  stores_sql("ALTER ROLE postgres SET synchronous_commit=remote_apply");
  stores_reopen(f);
  assert_setting(f, "synchronous_commit", "remote_apply");
  stores_sql("ALTER ROLE postgres RESET synchronous_commit");
}

static void test_a_role_that_may_not_make_tables(void **state) {
  stores_fixture *f = *state;
  weir_store_postgres where = stores_where();
  char uri[300];
  stores_close(f);
  stores_sql(
      "DROP SCHEMA weir CASCADE; DROP ROLE IF EXISTS guest; CREATE ROLE guest LOGIN");
  snprintf(uri, sizeof(uri), "%s", stores_uri());
  char *user = strstr(uri, "user=postgres");
  snprintf(user, 14, "user=guest");
  where.uri = uri;
  assert_int_equal(open_again(f, where), WEIR_E_INVALID_CONFIG);
  stores_assert_message(f, "CREATE SCHEMA weir AUTHORIZATION");
  stores_sql("CREATE SCHEMA weir AUTHORIZATION guest");
  OK(open_again(f, where));
}

static void assert_no_password(const stores_fixture *f, weir_status status) {
  assert_int_not_equal(status, WEIR_OK);
  assert_null(strstr(f->err.message, "s3cr3t"));
}

static void test_passwords_are_in_no_message(void **state) {
  stores_fixture *f = *state;
  static const char percent[] = "postgresql://locked:" PASSWORD "@/postgres";
  static const char *const bad[] = {
      percent, /* it begins no escape there */
      "postgresql://locked:s3cr3t-word@[::1/postgres",
      "postgresql://locked:s3cr3t-word@localhost:none/postgres",
      "postgresql://locked:s3cr3t-word@localhost/postgres?s3cr3t=word",
      "postgresql://locked:s3cr3t-word@localhost/postgres?sslmode=s3cr3t-word",
      "host=localhost password=s3cr3t-word",
      "mysql://locked:s3cr3t-word@localhost/postgres",
  };
  weir_store_postgres where = stores_where();
  for (size_t i = 0; i < BASE_COUNT(bad); i++) {
    where.uri = bad[i];
    assert_no_password(f, open_again(f, where));
  }
  const char *host = strstr(stores_uri(), "host=");
  char uri[400];
  where.uri = uri;
  snprintf(uri, sizeof(uri), "postgresql://locked:s3cr3t-word@/postgres?%.*s",
           (int)strcspn(host, "&"), host);
  assert_no_password(f, open_again(f, where));
  assert_int_equal(f->err.code, WEIR_E_IO);
  stores_close(f);
  stores_sql("DROP SCHEMA weir CASCADE");
  snprintf(uri, sizeof(uri), "postgresql://locked:s3cr3t-%%25%%26-word@/postgres?%.*s",
           (int)strcspn(host, "&"), host);
  OK(open_again(f, where));
}

#define ONE(test) \
  cmocka_unit_test_setup_teardown(test, stores_setup_postgres, stores_teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      ONE(test_a_live_lease_is_waited_for),
      ONE(test_a_released_lease_is_taken_at_once),
      ONE(test_an_expired_lease_is_taken_and_its_owner_fenced),
      ONE(test_asking_alone_shows_the_loss),
      ONE(test_an_expired_lease_goes_on_where_nobody_took_it),
      ONE(test_the_keeper_renews),
      ONE(test_a_lock_that_does_not_come),
      ONE(test_pipelines_do_not_meet),
      ONE(test_a_damaged_lease),
      ONE(test_a_new_deployment_sets_the_old_one_aside),
      ONE(test_a_reader_beside_the_owner),
      ONE(test_a_server_that_only_reads),
      ONE(test_damage_shows),
      ONE(test_the_session_goes_away),
      ONE(test_a_session_sets_what_it_needs),
      ONE(test_a_role_that_may_not_make_tables),
      ONE(test_passwords_are_in_no_message),
  };
  return cmocka_run_group_tests(tests, stores_start_server, stores_stop_server);
}
