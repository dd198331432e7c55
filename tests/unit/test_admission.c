/* SPDX-License-Identifier: Apache-2.0 */
/* Admission: all combinations against the rules written down once more, in another way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "connector/connector.h"
#include "support/rows.h"

static const char *const from[] = {"orders", "more"};
static const char *const key_columns[] = {"id"};
static const weir_names some_key = {
    .v = key_columns, .n = 1, .release = weir_names_release};

typedef struct fixture {
  connector_admission_source sources[2];
  connector_admission_sink sink;
  connector_admission in;
  weir_error err;
} fixture;

/* A pipeline that is admitted. */
static fixture good(void) {
  fixture f = {0};
  f.sources[0] = (connector_admission_source){.name = "orders", .type = "file"};
  f.sources[0].contract.replay = WEIR_SOURCE_REPLAYABLE;
  f.sources[1] = f.sources[0];
  f.sources[1].name = "more";
  f.sink = (connector_admission_sink){.name = "lake",
                                      .type = "file",
                                      .has_committer = true,
                                      .writers = 1,
                                      .from = from,
                                      .n_from = 1};
  f.sink.contract.consistency = WEIR_COMMITTABLE;
  f.in.guarantee = WEIR_EXACTLY_ONCE;
  return f;
}

static weir_status admit(fixture *f) {
  f->in.sources = f->sources;
  f->in.n_sources = 2;
  f->in.sinks = &f->sink;
  f->in.n_sinks = 1;
  return connector_admit(&f->in, NULL, &f->err);
}

static void refused(fixture *f, weir_status code, const char *part) {
  weir_status status = admit(f);
  if (status != code || !strstr(f->err.message, part)) {
    fail_msg("%s '%s', not %s '%s'", weir_status_name(status), f->err.message,
             weir_status_name(code), part);
  }
  assert_non_null(strstr(f->err.message, "sink lake"));
}

/* Which guarantee a replayable (1) or other source and a sink's consistency can keep. */
static const int32_t keeps[2][3] = {
    {WEIR_BEST_EFFORT, WEIR_BEST_EFFORT, WEIR_BEST_EFFORT},
    {WEIR_BEST_EFFORT, WEIR_AT_LEAST_ONCE, WEIR_EXACTLY_ONCE},
};

static void test_every_combination(void **state) {
  (void)state;
  size_t admitted = 0, all = 0;
  for (int32_t guarantee = 0; guarantee <= WEIR_EXACTLY_ONCE; guarantee++)
    for (int32_t replay = 0; replay <= WEIR_SOURCE_COMMIT_COUPLED; replay++)
      for (int32_t changes = 0; changes <= 1; changes++)
        for (int32_t consistency = 0; consistency <= WEIR_COMMITTABLE; consistency++)
          for (int committer = 0; committer <= 1; committer++)
            for (int32_t topology = 0; topology <= WEIR_NODE_LOCAL; topology++)
              for (uint32_t writers = 1; writers <= 2; writers++)
                for (int32_t input = 0; input <= WEIR_INPUT_CHANGELOG; input++)
                  for (int keyed = 0; keyed <= 1; keyed++)
                    for (int as_rows = 0; as_rows <= 1; as_rows++) {
                      fixture f = good();
                      f.in.guarantee = guarantee;
                      f.sources[0].contract.replay = replay;
                      f.sources[0].contract.keyed = changes;
                      f.sink.contract.consistency = consistency;
                      f.sink.contract.topology = topology;
                      f.sink.contract.input = input;
                      f.sink.has_committer = committer;
                      f.sink.writers = writers;
                      f.sink.key = keyed ? &some_key : NULL;
                      f.sink.changelog_as_rows = as_rows;
                      bool want = keeps[replay > 0][consistency] >= guarantee &&
                                  committer >= (consistency == WEIR_COMMITTABLE) &&
                                  (writers == 1 || topology == WEIR_MULTI_WRITER) &&
                                  keyed == (input == WEIR_INPUT_KEYED) &&
                                  !(keyed && as_rows) &&
                                  !(changes && input == WEIR_INPUT_APPEND && !as_rows);
                      weir_status status = admit(&f);
                      all++;
                      admitted += want;
                      if ((status == WEIR_OK) != want) {
                        fail_msg(
                            "guarantee %d replay %d changes %d consistency %d committer "
                            "%d topology "
                            "%d writers %u input %d keyed %d as_rows %d: %s '%s'",
                            guarantee, replay, changes, consistency, committer, topology,
                            writers, input, keyed, as_rows, weir_status_name(status),
                            f.err.message);
                      }
                    }
  assert_int_equal(all, 7776);
  assert_true(admitted > 100);
}

static void test_messages(void **state) {
  (void)state;
  fixture f = good();
  f.sources[0].contract.replay = WEIR_SOURCE_EPHEMERAL;
  refused(&f, WEIR_E_ADMISSION, "source orders (file) is ephemeral");
  assert_non_null(strstr(f.err.message, "guarantee: best_effort"));
  f = good();
  f.sink.contract.consistency = WEIR_DURABLE_AT_LEAST_ONCE;
  f.sink.has_committer = false;
  refused(&f, WEIR_E_ADMISSION, "exactly_once needs a sink that is committable");
  assert_non_null(strstr(f.err.message, "guarantee: at_least_once"));
  f = good();
  f.sink.has_committer = false;
  refused(&f, WEIR_E_ADMISSION, "has no committer");
  f = good();
  f.sink.writers = 4;
  refused(&f, WEIR_E_ADMISSION, "'writers: 4', but connector file takes a single writer");
  f.sink.contract.topology = WEIR_NODE_LOCAL;
  refused(&f, WEIR_E_ADMISSION, "one writer a machine");
  f.sink.writers = 0;
  refused(&f, WEIR_E_INVALID_CONFIG, "at least 1");
  f = good();
  f.sink.flush_interval_given = true;
  refused(&f, WEIR_E_INVALID_CONFIG, "'flush_interval' has no effect");
  f.sink.contract.consistency = WEIR_EPHEMERAL;
  f.sink.has_committer = false;
  f.in.guarantee = WEIR_BEST_EFFORT;
  assert_int_equal(admit(&f), WEIR_OK);
}

static void test_staging(void **state) {
  (void)state;
  for (int remote = 0; remote <= 1; remote++)
    for (int spool = 0; spool <= 1; spool++)
      for (int32_t staging = 0; staging <= WEIR_STAGING_SHARED; staging++) {
        fixture f = good();
        f.in.store_remote = remote;
        f.in.staging_shared = spool;
        f.sink.contract.staging = staging;
        bool want = !remote || spool || staging == WEIR_STAGING_SHARED;
        assert_int_equal(admit(&f) == WEIR_OK, want);
        if (!want) refused(&f, WEIR_E_ADMISSION, "this machine only");
      }
}

static void test_from(void **state) {
  (void)state;
  static const char *const twice[] = {"orders", "orders"};
  static const char *const unknown[] = {"orders", "nobody"};
  fixture f = good();
  f.sink.n_from = 2;
  assert_int_equal(admit(&f), WEIR_OK);
  f.sink.n_from = 0;
  refused(&f, WEIR_E_INVALID_CONFIG, "names no source");
  f.sink.n_from = 2;
  f.sink.from = twice;
  refused(&f, WEIR_E_INVALID_CONFIG, "source orders twice");
  f.sink.from = unknown;
  refused(&f, WEIR_E_INVALID_CONFIG, "source nobody, which is not in the pipeline");
  f = good();
  f.sink.n_from = 2;
  f.sink.contract.input = WEIR_INPUT_KEYED;
  f.sink.key = &some_key;
  refused(&f, WEIR_E_INVALID_CONFIG, "has 2 sources");
  /* The second source counts like the first. */
  f = good();
  f.sink.n_from = 2;
  f.sources[1].contract.replay = WEIR_SOURCE_EPHEMERAL;
  refused(&f, WEIR_E_ADMISSION, "source more (file)");
}

static void test_schemas(void **state) {
  (void)state;
  static const struct {
    const char *source, *binding;
    int changes;
    int keyed;
    weir_status code;
    const char *part;
  } cases[] = {
      {"id: int64", "id: int64", 0, 0, WEIR_OK, ""},
      {"id: int64", "id: utf8", 0, 0, WEIR_E_SCHEMA, "source orders does not fit it"},
      {"id: int64", "id: int64; v: utf8", 0, 0, WEIR_E_SCHEMA, "does not fit"},
      {"id: int64; _op: utf8", "id: int64; _op: utf8", 1, 1, WEIR_OK, ""},
      {"id: int64", "id: int64", 1, 1, WEIR_E_SCHEMA, "last column is not a utf8 '_op'"},
      {"_op: utf8; id: int64", "_op: utf8; id: int64", 1, 1, WEIR_E_SCHEMA,
       "last column"},
      {"id: int64; _op: int8", "id: int64; _op: int8", 1, 1, WEIR_E_SCHEMA,
       "last column"},
      {"v: int64; _op: utf8", "v: int64; _op: utf8", 1, 1, WEIR_E_SCHEMA,
       "key column 'id' is not among the columns of source orders"},
      {"id: int64; _op: utf8", "v: int64; _op: utf8", 1, 1, WEIR_E_SCHEMA,
       "columns of the target"},
      {"id: int64; _op: utf8", NULL, 1, 1, WEIR_OK, ""},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    fixture f = good();
    weir_schema *source = rows_schema(cases[i].source);
    weir_schema *binding = cases[i].binding ? rows_schema(cases[i].binding) : NULL;
    f.sources[0].schema = weir_schema_arrow(source);
    f.sources[0].contract.keyed = cases[i].changes;
    f.sink.binding = binding ? weir_schema_arrow(binding) : NULL;
    if (cases[i].keyed) {
      f.sink.contract.input = WEIR_INPUT_KEYED;
      f.sink.key = &some_key;
    }
    if (cases[i].code) {
      refused(&f, cases[i].code, cases[i].part);
    } else if (admit(&f)) {
      fail_msg("case %zu: %s", i, f.err.message);
    }
    weir_schema_unref(source);
    weir_schema_unref(binding);
  }
}

static void test_no_columns_at_all(void **state) {
  (void)state;
  const struct ArrowSchema schema = {.format = "+s"};
  fixture f = good();
  f.sources[0].schema = &schema;
  f.sources[0].contract.keyed = 1;
  f.sink.contract.input = WEIR_INPUT_KEYED;
  f.sink.key = &some_key;
  refused(&f, WEIR_E_SCHEMA, "last column is not a utf8 '_op'");
  assert_int_equal(connector_admit(&f.in, NULL, NULL), WEIR_E_SCHEMA);
}

/* A sink of dead letters never sees the sources' columns. */
static void test_letters_have_columns_of_their_own(void **state) {
  (void)state;
  fixture f = good();
  weir_schema *schema = rows_schema("id: int64"), *other = rows_schema("v: utf8");
  f.sources[0].schema = weir_schema_arrow(schema);
  f.sources[0].contract.keyed = 1;
  f.sink.binding = weir_schema_arrow(other);
  f.sink.takes_letters = true;
  if (admit(&f)) fail_msg("%s", f.err.message);
  connector_admission_table table = {0};
  assert_int_equal(connector_admit(&f.in, &table, &f.err), WEIR_OK);
  assert_non_null(strstr(table.rows[0].crash, "every bad row of orders"));
  connector_admission_table_done(&table);
  f.sink.contract.input = WEIR_INPUT_KEYED;
  f.sink.key = &some_key;
  refused(&f, WEIR_E_INVALID_CONFIG, "dead letters have none");
  weir_schema_unref(schema);
  weir_schema_unref(other);
}

static void test_names_of_guarantees(void **state) {
  (void)state;
  assert_string_equal(connector_guarantee_name(WEIR_EXACTLY_ONCE), "exactly_once");
  assert_string_equal(connector_guarantee_name(-1), "unknown");
  assert_string_equal(connector_guarantee_name(3), "unknown");
}

static void test_op_is_no_key(void **state) {
  (void)state;
  static const char *const op[] = {"_op"};
  const weir_names key = {.v = op, .n = 1, .release = weir_names_release};
  fixture f = good();
  weir_schema *schema = rows_schema("id: int64; _op: utf8");
  f.sources[0].schema = weir_schema_arrow(schema);
  f.sources[0].contract.keyed = 1;
  f.sink.contract.input = WEIR_INPUT_KEYED;
  f.sink.key = &key;
  refused(&f, WEIR_E_SCHEMA, "'_op' says what happens");
  weir_schema_unref(schema);
}

static void test_letters_fit_their_target(void **state) {
  (void)state;
  weir_schema *letters = NULL, *other = rows_schema("id: int64; _op: utf8");
  fixture f = good();
  assert_int_equal(connector_letters_schema(&letters, NULL), WEIR_OK);
  f.sink.takes_letters = true;
  f.sources[0].contract.keyed = 1;
  f.sources[0].schema = weir_schema_arrow(other);
  assert_int_equal(admit(&f), WEIR_OK);
  f.sink.letters = f.sink.binding = weir_schema_arrow(letters);
  assert_int_equal(admit(&f), WEIR_OK);
  f.sink.binding = weir_schema_arrow(other);
  refused(&f, WEIR_E_SCHEMA, "dead letters do not fit it");
  f.sink.binding = NULL;
  f.sink.contract.consistency = WEIR_DURABLE_AT_LEAST_ONCE;
  f.sink.has_committer = false;
  refused(&f, WEIR_E_ADMISSION, "needs a sink that is committable");
  weir_schema_unref(letters);
  weir_schema_unref(other);
}

static void test_the_printed_table(void **state) {
  (void)state;
  fixture f = good();
  connector_admission_sink sinks[2] = {f.sink, f.sink};
  connector_admission_table table = {0};
  sinks[0].n_from = 2;
  sinks[1].name = "screen";
  sinks[1].type = "stdout";
  sinks[1].contract.consistency = WEIR_EPHEMERAL;
  sinks[1].has_committer = false;
  f.sources[1].contract.replay = WEIR_SOURCE_EPHEMERAL;
  f.in = (connector_admission){.guarantee = WEIR_EXACTLY_ONCE,
                               .sources = f.sources,
                               .n_sources = 2,
                               .sinks = sinks,
                               .n_sinks = 2};
  assert_int_equal(connector_admit(&f.in, &table, &f.err), WEIR_E_ADMISSION);
  assert_non_null(strstr(f.err.message, "source more")); /* the first refusal */
  assert_int_equal(table.n_rows, 3);
  assert_true(table.rows[0].admitted);
  assert_string_equal(table.rows[0].source, "orders");
  assert_string_equal(table.rows[0].replay, "replayable");
  assert_string_equal(table.rows[0].consistency, "committable");
  assert_string_equal(table.rows[0].topology, "singleton");
  assert_string_equal(table.rows[0].input, "append");
  assert_string_equal(table.rows[0].reason, "");
  assert_string_equal(connector_guarantee_name(table.rows[0].delivers), "exactly_once");
  assert_non_null(
      strstr(table.rows[0].crash, "every row of orders is in lake exactly once"));
  assert_false(table.rows[1].admitted);
  assert_string_equal(table.rows[1].replay, "ephemeral");
  assert_non_null(strstr(table.rows[1].reason, "source more"));
  assert_non_null(
      strstr(table.rows[1].crash, "is lost; what was decided before is in lake once"));
  assert_false(table.rows[2].admitted);
  assert_string_equal(table.rows[2].sink, "screen");
  assert_string_equal(connector_guarantee_name(table.rows[2].delivers), "best_effort");
  connector_admission_table_done(&table);
  assert_null(table.rows);
  assert_string_equal(connector_guarantee_name(3), "unknown");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_combination),
      cmocka_unit_test(test_messages),
      cmocka_unit_test(test_staging),
      cmocka_unit_test(test_from),
      cmocka_unit_test(test_schemas),
      cmocka_unit_test(test_op_is_no_key),
      cmocka_unit_test(test_no_columns_at_all),
      cmocka_unit_test(test_names_of_guarantees),
      cmocka_unit_test(test_letters_have_columns_of_their_own),
      cmocka_unit_test(test_letters_fit_their_target),
      cmocka_unit_test(test_the_printed_table),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
