/* SPDX-License-Identifier: Apache-2.0 */
/* ctest: connector postgres */
/* The sessions of the postgres sink against a server: what its transactions do and do not do, step by step. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../connectors/postgres/conn.h"
#include "../../connectors/postgres/cursor.h"
#include "../../connectors/postgres/prepare.h"
#include "../../connectors/postgres/session.h"
#include "support/rows.h"
#include "support/stores.h"

typedef struct fixture {
  pg_config config;
  weir_namespace ns;
  weir_binding binding;
  weir_txn_place place;
  void *session;
  weir_error err;
} fixture;

#undef OK
#define OK(call) stores_assert_ok((call), &f->err, #call)

static const weir_cursor none = {.checkpoint = 0};

static weir_cursor at(uint64_t checkpoint) {
  return (weir_cursor){checkpoint, 1, {(uint8_t)checkpoint, 7}};
}

/* Column 0 of row 0 of what the statement gives; static. */
static const char *ask(const char *sql) {
  static char text[400];
  pg_conn c = {0};
  PGresult *rows = NULL;
  weir_error err = {0};
  stores_assert_ok(pg_conn_open(&c, stores_uri(), "test", NULL, &err), &err, "open");
  stores_assert_ok(pg_conn_run(&c, NULL, "test", sql, NULL, 0, &rows, &err), &err, sql);
  const char *value = PQntuples(rows) ? pg_value(rows, 0, 0) : NULL;
  snprintf(text, sizeof(text), "%s", value ? value : "(none)");
  PQclear(rows);
  pg_conn_close(&c);
  return text;
}

static int setup(void **state) {
  fixture *f = calloc(1, sizeof(*f));
  assert_non_null(f);
  stores_sql(
      "DROP SCHEMA IF EXISTS \"S s\" CASCADE; CREATE SCHEMA \"S s\"; CREATE TABLE "
      "\"S s\".\"T\"\"t\" (id int8 PRIMARY KEY, name text NOT NULL, more numeric)");
  static char where[] = "sink pg", schema[] = "S s";
  f->config = (pg_config){.where = where, .schema = schema, .create = true};
  f->config.uri = (char *)(uintptr_t)stores_uri();
  f->config.table = (char *)(uintptr_t)"T\"t";
  f->ns = (weir_namespace){.struct_size = sizeof(f->ns),
                           .pipeline = "p",
                           .sink_id = "s",
                           .identity = {1},
                           .deployment = {2}};
  *state = f;
  return 0;
}

static int teardown(void **state) {
  fixture *f = *state;
  if (f->session) pg_session_close(f->session, NULL);
  weir_binding_done(&f->binding);
  free(f);
  return 0;
}

static weir_status bind(fixture *f, const char *columns) {
  weir_schema *schema = rows_schema(columns);
  weir_binding_done(&f->binding);
  f->binding.struct_size = sizeof(f->binding);
  weir_status status = pg_resolve(&f->config, NULL, &f->ns, schema, &f->binding, &f->err);
  if (!status) status = pg_prepare(&f->config, NULL, &f->ns, &f->binding, &f->err);
  f->place = (weir_txn_place){sizeof(f->place), NULL, &f->ns, &f->binding};
  weir_schema_unref(schema);
  return status;
}

static void *open_session(fixture *f) {
  void *session = NULL;
  OK(pg_session_open(&f->config, NULL, &f->place, &session, &f->err));
  return session;
}

static void start(fixture *f) {
  weir_cursor cursor = {.checkpoint = 99};
  OK(bind(f, "name: utf8; id: int64"));
  f->session = open_session(f);
  OK(pg_session_take_over(f->session, NULL, &f->err));
  OK(pg_session_read_cursor(f->session, NULL, &cursor, &f->err));
  assert_int_equal(cursor.checkpoint, 0);
}

static weir_status apply(fixture *f, const char *lines) {
  weir_batch *batch = rows_batch(f->binding.schema, lines);
  weir_status status = pg_session_apply(f->session, NULL, batch, &f->err);
  weir_batch_unref(batch);
  return status;
}

static weir_status commit(fixture *f, weir_cursor from, weir_cursor to) {
  weir_txn_commit c = {sizeof(c), from, to, "{\"a\": \"it's \\\\ é\"}"};
  return pg_session_commit(f->session, NULL, &c, &f->err);
}

#define ROWS "SELECT string_agg(id || name, ' ' ORDER BY id) FROM \"S s\".\"T\"\"t\""
#define CURSOR                                                                  \
  "SELECT checkpoint || ' ' || token || ' ' || encode(digest, 'hex') FROM \"S " \
  "s\".weir_cursor"

static void test_an_epoch(void **state) {
  fixture *f = *state;
  start(f);
  OK(pg_session_begin(f->session, NULL, &f->err));
  OK(apply(f, "{\"id\":1,\"name\":\"a\"}\n{\"id\":2,\"name\":\"b\"}\n"));
  OK(pg_session_prepare(f->session, NULL, &none, &f->err));
  OK(apply(f, "{\"id\":3,\"name\":\"c\"}\n"));
  OK(pg_session_prepare(f->session, NULL, &none, &f->err));
  assert_string_equal(ask(ROWS), "(none)");
  OK(commit(f, none, at(1)));
  assert_string_equal(ask(ROWS), "1a 2b 3c");
  OK(pg_session_begin(f->session, NULL, &f->err));
  OK(apply(f, "{\"id\":4,\"name\":\"d\"}\n"));
  OK(pg_session_prepare(f->session, NULL, &(weir_cursor){1, 1, {1, 7}}, &f->err));
  OK(commit(f, at(1), at(2)));
  OK(pg_session_begin(f->session, NULL, &f->err));
  OK(apply(f, "{\"id\":5,\"name\":\"e\"}\n"));
  OK(pg_session_abort(f->session, NULL, &f->err));
  assert_string_equal(ask(ROWS), "1a 2b 3c 4d");
  weir_cursor cursor = none, two = at(2);
  OK(pg_session_read_cursor(f->session, NULL, &cursor, &f->err));
  assert_true(weir_cursor_equal(&cursor, &two));
  weir_cursor_list list = {.n = 0};
  OK(pg_session_find_cursors(f->session, NULL, &list, &f->err));
  assert_int_equal(list.n, 1);
  assert_true(weir_cursor_equal(&list.v[0].cursor, &two));
  assert_memory_equal(list.v[0].deployment, f->ns.deployment, WEIR_UUID_SIZE);
  assert_string_equal(list.v[0].positions, "{\"a\": \"it's \\\\ é\"}");
  list.release(&list);
}

static void assert_message(const fixture *f, const char *part) {
  if (!strstr(f->err.message, part))
    fail_msg("'%s' is not in '%s'", part, f->err.message);
}

/* Rows committed with the cursor where it was would be applied once more. */
static void test_nothing_commits_without_its_cursor(void **state) {
  fixture *f = *state;
  start(f);
  OK(pg_session_begin(f->session, NULL, &f->err));
  OK(apply(f, "{\"id\":1,\"name\":\"a\"}\n"));
  assert_int_equal(commit(f, at(7), at(8)), WEIR_E_IO); /* the cursor is none */
  assert_int_equal(f->err.flags, 0);
  assert_message(f, "nothing was committed");
  OK(pg_session_abort(f->session, NULL, &f->err));
  stores_sql(
      "CREATE FUNCTION \"S s\".nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN "
      "RETURN NULL; END'; CREATE TRIGGER t BEFORE UPDATE ON \"S s\".weir_cursor FOR EACH "
      "ROW EXECUTE FUNCTION \"S s\".nothing()");
  OK(pg_session_begin(f->session, NULL, &f->err));
  OK(apply(f, "{\"id\":1,\"name\":\"a\"}\n"));
  assert_int_equal(pg_session_prepare(f->session, NULL, &none, &f->err), WEIR_E_CONFLICT);
  assert_message(f, "a trigger or a policy");
  assert_int_equal(commit(f, none, at(1)), WEIR_E_IO);
  assert_string_equal(ask(ROWS), "(none)");
  assert_string_equal(ask(CURSOR), "0 0 ");
}

static void test_a_failed_transaction_does_not_commit(void **state) {
  fixture *f = *state;
  start(f);
  OK(pg_session_begin(f->session, NULL, &f->err));
  assert_int_equal(apply(f, "{\"id\":1,\"name\":\"a\"}\n{\"id\":1,\"name\":\"b\"}\n"),
                   WEIR_E_BAD_DATA);
  assert_int_equal(f->err.row, 1);
  assert_string_equal(f->err.sqlstate, "23505");
  assert_int_equal(commit(f, none, at(1)), WEIR_E_IO);
  assert_int_equal(f->err.flags, WEIR_ERR_RETRIABLE);
  assert_string_equal(ask(CURSOR), "0 0 ");
}

static void test_prepare_compares_the_cursor(void **state) {
  fixture *f = *state;
  start(f);
  OK(pg_session_begin(f->session, NULL, &f->err));
  weir_cursor other = at(3);
  assert_int_equal(pg_session_prepare(f->session, NULL, &other, &f->err),
                   WEIR_E_CONFLICT);
  assert_message(f,
                 "the cursor in S s.weir_cursor is (0, token 0, digest "
                 "0000000000000000), expected (3, token 1, digest 0307");
}

/* What the target refuses at COMMIT comes to light before. */
static void test_deferred_constraints(void **state) {
  fixture *f = *state;
  stores_sql(
      "ALTER TABLE \"S s\".\"T\"\"t\" ADD UNIQUE (name) DEFERRABLE INITIALLY DEFERRED");
  start(f);
  OK(pg_session_begin(f->session, NULL, &f->err));
  OK(apply(f, "{\"id\":1,\"name\":\"a\"}\n{\"id\":2,\"name\":\"a\"}\n"));
  assert_int_equal(pg_session_prepare(f->session, NULL, &none, &f->err), WEIR_E_BAD_DATA);
  assert_string_equal(f->err.sqlstate, "23505");
}

/* A session stopped inside COPY holds its locks for as long as it lives; its successor ends it. */
static void test_take_over_ends_older_sessions(void **state) {
  fixture *f = *state;
  start(f);
  void *old = f->session;
  OK(pg_session_begin(old, NULL, &f->err));
  OK(apply(f, "{\"id\":1,\"name\":\"a\"}\n"));
  OK(pg_session_prepare(old, NULL, &none, &f->err));
  f->session = open_session(f);
  weir_cursor cursor = at(9);
  weir_call *call = weir_call_new(300000000);
  assert_int_equal(pg_session_read_cursor(f->session, call, &cursor, &f->err),
                   WEIR_E_TIMEOUT);
  weir_call_free(call);
  pg_session_close(f->session, NULL);
  f->session = open_session(f);
  OK(pg_session_take_over(f->session, NULL, &f->err));
  OK(pg_session_read_cursor(f->session, NULL, &cursor, &f->err));
  assert_int_equal(cursor.checkpoint, 0);
  weir_txn_commit c = {sizeof(c), none, at(1), NULL};
  assert_int_equal(pg_session_commit(old, NULL, &c, &f->err), WEIR_E_IO);
  assert_string_equal(ask(CURSOR), "0 0 ");
  assert_string_equal(ask(ROWS), "(none)");
  pg_session_close(old, NULL);
}

static void test_take_over_ends_a_copy(void **state) {
  fixture *f = *state;
  start(f);
  char name[PG_APPLICATION];
  pg_conn old = {0};
  OK(pg_application(&f->ns, name, &f->err));
  OK(pg_conn_open(&old, stores_uri(), name, NULL, &f->err));
  OK(pg_conn_run(&old, NULL, "BEGIN", "BEGIN", NULL, 0, NULL, &f->err));
  OK(pg_conn_copy_begin(&old, NULL, "COPY \"S s\".\"T\"\"t\" FROM STDIN", &f->err));
  OK(pg_conn_copy_put(&old, NULL, "1\ta\t1\n", 6, &f->err));
  OK(pg_session_take_over(f->session, NULL, &f->err));
  int64_t row = 0;
  char column[64];
  assert_int_equal(pg_conn_copy_end(&old, NULL, &row, column, &f->err), WEIR_E_IO);
  assert_true(old.lost);
  pg_conn_close(&old);
  OK(pg_session_begin(f->session, NULL, &f->err));
  OK(apply(f, "{\"id\":1,\"name\":\"a\"}\n"));
}

/* Also from under a live session: the type it encodes for is no longer the column's. */
static void test_a_changed_column_is_noticed(void **state) {
  fixture *f = *state;
  start(f);
  stores_sql("ALTER TABLE \"S s\".\"T\"\"t\" ALTER more TYPE float8");
  OK(pg_session_begin(f->session, NULL, &f->err));
  OK(apply(f, "{\"id\":1,\"name\":\"a\"}\n"));
  assert_int_equal(pg_session_prepare(f->session, NULL, &none, &f->err), WEIR_E_SCHEMA);
  assert_message(f, "have changed since the run began");
  OK(pg_session_abort(f->session, NULL, &f->err));
  stores_sql("DROP TABLE \"S s\".\"T\"\"t\"");
  OK(pg_session_begin(f->session, NULL, &f->err));
  assert_int_equal(apply(f, "{\"id\":1,\"name\":\"a\"}\n"), WEIR_E_SCHEMA);
  OK(pg_session_abort(f->session, NULL, &f->err));
  stores_sql("CREATE TABLE \"S s\".\"T\"\"t\" (id int8, name text)");
  void *other = NULL;
  assert_int_equal(pg_session_open(&f->config, NULL, &f->place, &other, &f->err),
                   WEIR_E_SCHEMA);
  assert_message(f, "is another table than when the run began");
}

static void test_claims(void **state) {
  fixture *f = *state;
  start(f);
  void *first = f->session;
  f->ns.deployment[0] = 3;
  assert_int_equal(bind(f, "name: utf8; id: int64"), WEIR_E_CONFLICT);
  f->ns.may_replace = 1;
  OK(bind(f, "name: utf8; id: int64"));
  f->ns.may_replace = 0;
  f->session = open_session(f);
  OK(pg_session_begin(f->session, NULL, &f->err));
  OK(apply(f, "{\"id\":1,\"name\":\"a\"}\n"));
  OK(pg_session_prepare(f->session, NULL, &none, &f->err));
  OK(commit(f, none, at(1)));
  OK(pg_session_take_over(f->session, NULL, &f->err));
  /* The one that was replaced can do nothing more. */
  f->ns.deployment[0] = 2;
  weir_txn_commit c = {sizeof(c), none, at(1), NULL};
  OK(pg_session_begin(first, NULL, &f->err));
  assert_int_equal(pg_session_prepare(first, NULL, &none, &f->err), WEIR_E_CONFLICT);
  OK(pg_session_abort(first, NULL, &f->err));
  OK(pg_session_begin(first, NULL, &f->err));
  assert_int_equal(pg_session_commit(first, NULL, &c, &f->err), WEIR_E_CONFLICT);
  assert_int_equal(pg_session_take_over(first, NULL, &f->err), WEIR_E_CONFLICT);
  pg_session_close(first, NULL);
}

static void test_what_is_refused(void **state) {
  static const struct {
    const char *sql, *table, *columns, *message;
  } cases[] = {
      {"SELECT", "nope", "id: int64", "there is no table S s.nope"},
      {"SELECT", "T\"t", "id: int64; name: utf8; x: int8",
       "column 'x': table S s.T\"t has no such column"},
      {"SELECT", "T\"t", "id: int64", "column 'name' of table S s.T\"t must not be null"},
      {"SELECT", "T\"t", "id: utf8; name: utf8",
       "column 'id': utf8 cannot go into type bigint"},
      {"CREATE VIEW \"S s\".v AS SELECT 1 AS id", "v", "id: int32", "S s.v is no table"},
      {"CREATE UNLOGGED TABLE \"S s\".u (id int)", "u", "id: int32", "S s.u is unlogged"},
      {"CREATE TABLE \"S s\".g (a int, b int GENERATED ALWAYS AS (a + 1) STORED)", "g",
       "a: int32; b: int32", "column 'b' of table S s.g is generated"},
  };
  fixture *f = *state;
  OK(bind(f, "name: utf8; id: int64")); /* weir_cursor is there */
  f->config.create = false;
  for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
    stores_sql(cases[i].sql);
    f->config.table = (char *)(uintptr_t)cases[i].table;
    assert_int_not_equal(bind(f, cases[i].columns), WEIR_OK);
    assert_message(f, cases[i].message);
  }
}

/* The statement of the message, run, is enough. */
static void test_a_missing_cursor_table(void **state) {
  fixture *f = *state;
  f->config.create = false;
  assert_int_equal(bind(f, "name: utf8; id: int64"), WEIR_E_NOT_FOUND);
  const char *ddl = strstr(f->err.message, "run: ");
  assert_non_null(ddl);
  stores_sql(ddl + 5);
  OK(bind(f, "name: utf8; id: int64"));
  assert_string_equal(ask(CURSOR), "0 0 ");
}

/* Made by hand, and not as it is written down. */
static void test_a_cursor_table_with_nulls(void **state) {
  fixture *f = *state;
  weir_cursor cursor = none;
  start(f);
  stores_sql(
      "ALTER TABLE \"S s\".weir_cursor ALTER deployment DROP NOT NULL, ALTER digest DROP "
      "NOT NULL; UPDATE \"S s\".weir_cursor SET deployment = NULL, checkpoint = 1, "
      "digest "
      "= NULL");
  assert_int_equal(pg_session_take_over(f->session, NULL, &f->err), WEIR_E_CORRUPT);
  assert_message(f, "a claim without UUID");
  assert_int_equal(pg_session_read_cursor(f->session, NULL, &cursor, &f->err),
                   WEIR_E_CORRUPT);
  assert_message(f, "digest is not of 32 bytes");
}

static void test_creation(void **state) {
  fixture *f = *state;
  f->config.table = (char *)(uintptr_t)"new";
  OK(bind(f,
          "a: uint64; b: list<decimal128(9, 2)>; c: struct<x: int8>; d: timestamp[ns, "
          "UTC] not null; e: decimal64(4, -2)"));
  assert_string_equal(
      ask("SELECT string_agg(attname || ' ' || format_type(atttypid, atttypmod) || ' ' "
          "|| attnotnull, ', ' ORDER BY attnum) "
          "FROM pg_attribute WHERE attrelid = '\"S s\".new'::regclass AND attnum > 0"),
      "a numeric(20,0) false, b numeric(9,2)[] false, c jsonb false, d timestamp with "
      "time zone true, e numeric(6,0) false");
  OK(bind(
      f,
      "a: uint64; b: list<decimal128(9, 2)>; d: timestamp[ns, UTC]")); /* it is there now */
}

/* Domains, enums, arrays of them, defaults, identities, partitions. */
static void test_what_a_table_may_have(void **state) {
  fixture *f = *state;
  stores_sql(
      "CREATE TYPE \"S s\".mood AS ENUM ('ok', 'bad'); CREATE DOMAIN \"S s\".money2 AS "
      "numeric(9,2) CHECK (VALUE > 0); "
      "CREATE DOMAIN \"S s\".deep AS \"S s\".money2; CREATE TABLE \"S s\".p (id int8 "
      "GENERATED ALWAYS AS IDENTITY, "
      "at date NOT NULL, m \"S s\".mood, ms \"S s\".mood[], d \"S s\".deep, ds \"S "
      "s\".deep[], v varchar(3), "
      "n int DEFAULT 7 NOT NULL, g text GENERATED ALWAYS AS (v || '!') STORED) PARTITION "
      "BY RANGE (at); "
      "CREATE TABLE \"S s\".p1 PARTITION OF \"S s\".p FOR VALUES FROM ('2024-01-01') TO "
      "('2025-01-01')");
  f->config.table = (char *)(uintptr_t)"p";
  OK(bind(f,
          "at: date32; m: utf8; ms: list<utf8>; d: decimal128(9, 2); ds: "
          "list<decimal128(9, 2)>; v: utf8"));
  f->session = open_session(f);
  OK(pg_session_begin(f->session, NULL, &f->err));
  OK(apply(f,
           "{\"at\":\"2024-02-29\",\"m\":\"ok\",\"ms\":[\"bad\",null],\"d\":1.5,\"ds\":["
           "2.25],\"v\":\"abc\"}\n"));
  OK(pg_session_prepare(f->session, NULL, &none, &f->err));
  OK(commit(f, none, at(1)));
  assert_string_equal(ask("SELECT to_jsonb(p)::text FROM \"S s\".p"),
                      "{\"d\": 1.50, \"g\": \"abc!\", \"m\": \"ok\", \"n\": 7, \"v\": "
                      "\"abc\", \"at\": \"2024-02-29\", "
                      "\"ds\": [2.25], \"id\": 1, \"ms\": [\"bad\", null]}");
  OK(pg_session_begin(f->session, NULL, &f->err));
  assert_int_equal(apply(f,
                         "{\"at\":\"2024-02-29\",\"m\":\"ok\"}\n{\"at\":\"2024-02-29\","
                         "\"m\":\"good\"}\n"),
                   WEIR_E_BAD_DATA);
  assert_int_equal(f->err.row, 1);
  assert_int_equal(f->err.column, 1);
  OK(pg_session_abort(f->session, NULL, &f->err));
  OK(pg_session_begin(f->session, NULL, &f->err));
  assert_int_equal(apply(f, "{\"at\":\"2026-02-28\"}\n"), WEIR_E_BAD_DATA);
}

/* ---- by key ------------------------------------------------------------------------------------------------------ */

static void make_keyed(fixture *f, const char *ddl, const char *columns,
                       const char *const *key, size_t n) {
  stores_sql(ddl);
  f->config.table = (char *)(uintptr_t)"k";
  f->config.upsert = true;
  f->config.key = (weir_names){key, n, NULL, NULL};
  OK(bind(f, columns));
  f->session = open_session(f);
}

#define KEYED                                                                            \
  "SELECT string_agg(id || coalesce(v, '-') || coalesce(w, '-'), ' ' ORDER BY id) FROM " \
  "\"S s\".k"

static void test_changes_by_key(void **state) {
  fixture *f = *state;
  static const char *const key[] = {"id"};
  make_keyed(f, "CREATE TABLE \"S s\".k (id int8 PRIMARY KEY, v text NOT NULL, w text)",
             "v: utf8; id: int64; w: utf8; _op: utf8", key, 1);
  OK(pg_session_begin(f->session, NULL, &f->err));
  OK(apply(f,
           "{\"id\":7,\"v\":\"1\",\"_op\":\"U\"}\n{\"id\":7,\"v\":\"2\",\"w\":\"x\",\"_"
           "op\":\"U\"}\n"
           "{\"id\":8,\"v\":\"8\",\"_op\":\"U\"}\n{\"id\":8,\"_op\":\"D\"}\n"));
  OK(apply(f,
           "{\"id\":7,\"v\":\"3\",\"_op\":\"U\"}\n{\"id\":9,\"_op\":\"D\"}\n{\"id\":9,"
           "\"v\":\"9\",\"_op\":\"U\"}\n"));
  OK(pg_session_prepare(f->session, NULL, &none, &f->err));
  OK(apply(
      f, "{\"id\":7,\"v\":\"4\",\"_op\":\"U\"}\n{\"id\":5,\"v\":\"5\",\"_op\":\"U\"}\n"));
  OK(pg_session_prepare(f->session, NULL, &none, &f->err));
  OK(pg_session_prepare(f->session, NULL, &none, &f->err));
  OK(commit(f, none, at(1)));
  assert_string_equal(ask(KEYED), "55- 74- 99-");
  /* What was rolled back does not come again. */
  OK(pg_session_begin(f->session, NULL, &f->err));
  OK(apply(f, "{\"id\":5,\"_op\":\"D\"}\n"));
  OK(pg_session_abort(f->session, NULL, &f->err));
  OK(pg_session_begin(f->session, NULL, &f->err));
  OK(apply(
      f, "{\"id\":9,\"_op\":\"D\"}\n{\"id\":1,\"v\":\"1\",\"w\":\"y\",\"_op\":\"U\"}\n"));
  weir_cursor one = at(1);
  OK(pg_session_prepare(f->session, NULL, &one, &f->err));
  OK(commit(f, one, at(2)));
  assert_string_equal(ask(KEYED), "11y 55- 74-");
  OK(pg_session_begin(f->session, NULL, &f->err));
  OK(apply(f, "{\"id\":1,\"_op\":\"U\"}\n"));
  weir_cursor two = at(2);
  assert_int_equal(pg_session_prepare(f->session, NULL, &two, &f->err), WEIR_E_BAD_DATA);
}

/* id = id + 1, as pairs of a delete and an insert, interleaved. */
static void test_keys_that_move(void **state) {
  fixture *f = *state;
  enum { N = 1000 };
  static const char *const key[] = {"id"};
  make_keyed(f,
             "CREATE TABLE \"S s\".k (id int8 PRIMARY KEY); INSERT INTO \"S s\".k SELECT "
             "generate_series(1, 1000)",
             "id: int64; _op: utf8", key, 1);
  char *lines = malloc(N * 80), *to = lines;
  assert_non_null(lines);
  OK(pg_session_begin(f->session, NULL, &f->err));
  /* Backwards, as whoever moves the keys had to: in order each insert would meet a row. */
  for (int i = N; i >= 1; i--)
    to += sprintf(to, "{\"id\":%d,\"_op\":\"D\"}\n{\"id\":%d,\"_op\":\"U\"}\n", i, i + 1);
  OK(apply(f, lines));
  free(lines);
  OK(pg_session_prepare(f->session, NULL, &none, &f->err));
  OK(commit(f, none, at(1)));
  assert_string_equal(
      ask("SELECT count(*) || ' ' || min(id) || ' ' || max(id) FROM \"S s\".k"),
      "1000 2 1001");
}

static void test_keys_of_several_columns(void **state) {
  fixture *f = *state;
  static const char *const key[] = {"b %s", "a"};
  make_keyed(f,
             "CREATE DOMAIN \"S s\".word AS text NOT NULL; CREATE TABLE \"S s\".k (a "
             "int, \"b %s\" text, "
             "d \"S s\".word, UNIQUE (a, \"b %s\"))",
             "a: int32; b %s: utf8; d: utf8", key, 2); /* without _op all rows replace */
  OK(pg_session_begin(f->session, NULL, &f->err));
  OK(apply(f,
           "{\"a\":1,\"b %s\":\"x\",\"d\":\"1\"}\n{\"a\":1,\"b "
           "%s\":\"y\",\"d\":\"2\"}\n{\"a\":1,\"b %s\":\"x\",\"d\":\"3\"}\n"));
  OK(pg_session_prepare(f->session, NULL, &none, &f->err));
  OK(commit(f, none, at(1)));
  assert_string_equal(
      ask("SELECT string_agg(a || \"b %s\" || d, ' ' ORDER BY d) FROM \"S s\".k"),
      "1y2 1x3");
}

static void test_a_key_without_index(void **state) {
  fixture *f = *state;
  static const char *const key[] = {"id"};
  static const char *const indexes[] = {
      "SELECT", "CREATE INDEX ON \"S s\".k (id)",
      "CREATE UNIQUE INDEX ON \"S s\".k (id, v)",
      "CREATE UNIQUE INDEX ON \"S s\".k (id) WHERE v > ''",
      "ALTER TABLE \"S s\".k ADD UNIQUE (id) DEFERRABLE"};
  stores_sql("CREATE TABLE \"S s\".k (id int8, v text)");
  f->config.table = (char *)(uintptr_t)"k";
  f->config.upsert = true;
  f->config.key = (weir_names){key, 1, NULL, NULL};
  for (size_t i = 0; i < sizeof(indexes) / sizeof(*indexes); i++) {
    stores_sql(indexes[i]);
    assert_int_equal(bind(f, "id: int64; v: utf8; _op: utf8"), WEIR_E_SCHEMA);
    assert_message(f, "no unique index on exactly the columns of `key`");
  }
  stores_sql("CREATE UNIQUE INDEX ON \"S s\".k (id) INCLUDE (v)");
  OK(bind(f, "id: int64; v: utf8; _op: utf8"));
  f->config.table = (char *)(uintptr_t)"k2"; /* made with its key */
  OK(bind(f, "id: int64; v: utf8 not null; _op: utf8"));
  assert_string_equal(ask("SELECT string_agg(attname || attnotnull, ' ' ORDER BY attnum) "
                          "FROM pg_attribute WHERE "
                          "attrelid = '\"S s\".k2'::regclass AND attnum > 0"),
                      "idtrue vfalse");
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(test_an_epoch),
      TEST(test_nothing_commits_without_its_cursor),
      TEST(test_a_failed_transaction_does_not_commit),
      TEST(test_prepare_compares_the_cursor),
      TEST(test_deferred_constraints),
      TEST(test_take_over_ends_older_sessions),
      TEST(test_take_over_ends_a_copy),
      TEST(test_a_changed_column_is_noticed),
      TEST(test_claims),
      TEST(test_what_is_refused),
      TEST(test_a_missing_cursor_table),
      TEST(test_a_cursor_table_with_nulls),
      TEST(test_creation),
      TEST(test_what_a_table_may_have),
      TEST(test_changes_by_key),
      TEST(test_keys_that_move),
      TEST(test_keys_of_several_columns),
      TEST(test_a_key_without_index),
  };
  return cmocka_run_group_tests(tests, stores_start_server, stores_stop_server);
}
