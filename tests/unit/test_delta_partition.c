/* SPDX-License-Identifier: Apache-2.0 */
/* Partition values as the log has them, the folders named after them, and the rows that go there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../connectors/delta/partition.h"
#include "support/rows.h"

typedef struct rig {
  delta_arena arena;
  delta_schema table;
  delta_text by[4];
  weir_schema *input;
  weir_batch *batch;
  delta_partitions *partitions;
  const delta_group *groups;
  size_t n;
} rig;

/* A table of the input's own columns, partitioned by those named "p...". */
static weir_status make(rig *r, const char *columns, const char *rows, weir_error *err) {
  bool ntz = false;
  delta_text text;
  delta_features features = {.timestamp_ntz = true};
  size_t n = 0;
  memset(r, 0, sizeof(*r));
  r->input = rows_schema(columns);
  r->batch = rows_batch(r->input, rows);
  const struct ArrowSchema *arrow = weir_schema_arrow(r->input);
  assert_int_equal(delta_schema_write(arrow, &r->arena, &text, &ntz, err), WEIR_OK);
  assert_int_equal(delta_schema_read(text, &features, "table", &r->arena, &r->table, err),
                   WEIR_OK);
  for (int64_t i = 0; i < arrow->n_children; i++) {
    const char *name = arrow->children[i]->name;
    if (name[0] == 'p') r->by[n++] = (delta_text){name, strlen(name)};
  }
  delta_texts by = {r->by, n, true};
  DELTA_TRY(delta_partitions_new(&r->table, arrow, &by, &r->partitions, err));
  if (!r->partitions) return WEIR_OK;
  return delta_partitions_split(r->partitions, r->batch, &r->groups, &r->n, err);
}

static void done(rig *r) {
  delta_partitions_free(r->partitions);
  weir_batch_unref(r->batch);
  weir_schema_unref(r->input);
  delta_arena_done(&r->arena);
}

static void check_value(const char *type, const char *json, const char *value,
                        const char *folder) {
  rig r;
  weir_error err = {0};
  char columns[64], rows[128], want[64];
  snprintf(columns, sizeof(columns), "p: %s; x: int64", type);
  snprintf(rows, sizeof(rows), "{\"p\":%s,\"x\":1}\n", json);
  if (make(&r, columns, rows, &err)) fail_msg("%s", err.message);
  assert_int_equal(r.n, 1);
  delta_text got = r.groups[0].values.v[0].value;
  if (!value) {
    assert_null(got.p);
  } else if (!delta_text_is(got, value)) {
    fail_msg("%s: expected '%s', got '%.*s'", json, value, (int)got.n, got.p);
  }
  snprintf(want, sizeof(want), "p=%s", folder);
  assert_string_equal(r.groups[0].folder, want);
  done(&r);
}

static void values_are_written_as_the_protocol_says(void **state) {
  (void)state;
  check_value("utf8", "\"plain\"", "plain", "plain");
  check_value("utf8", "\"a b/c%d=\xc3\xa9\"", "a b/c%d=\xc3\xa9",
              "a%20b%2Fc%25d%3D\xc3\xa9");
  check_value("utf8", "null", NULL, "__HIVE_DEFAULT_PARTITION__");
  check_value("int8", "-128", "-128", "-128");
  check_value("int64", "9223372036854775807", "9223372036854775807",
              "9223372036854775807");
  check_value("bool", "true", "true", "true");
  check_value("date32", "\"2024-02-29\"", "2024-02-29", "2024-02-29");
  check_value("timestamp[us, UTC]", "\"2024-02-29T12:00:00.5Z\"",
              "2024-02-29T12:00:00.500000Z", "2024-02-29T12%3A00%3A00.500000Z");
  check_value("timestamp[us]", "\"2024-02-29T12:00:00\"", "2024-02-29 12:00:00.000000",
              "2024-02-29%2012%3A00%3A00.000000");
  check_value("decimal128(10, 2)", "\"-0.05\"", "-0.05", "-0.05");
  check_value("float64", "0.1", "0.1", "0.1");
  check_value("float32", "0.1", "0.1", "0.1");
  check_value("float64", "0.30000000000000004", "0.30000000000000004",
              "0.30000000000000004");
  check_value("float64", "\"-Infinity\"", "-Infinity", "-Infinity");
  check_value("float64", "\"NaN\"", "NaN", "NaN");
}

static void rows_go_to_their_groups_in_order(void **state) {
  (void)state;
  rig r;
  weir_error err = {0};
  char rows[16384] = "";
  for (int i = 0; i < 300; i++) {
    size_t n = strlen(rows);
    snprintf(rows + n, sizeof(rows) - n, "{\"pa\":%d,\"x\":%d,\"pb\":\"%s\"}\n", i % 50,
             i, i % 3 ? "u" : "v");
  }
  if (make(&r, "pa: int32; x: int64; pb: utf8", rows, &err)) fail_msg("%s", err.message);
  assert_int_equal(r.n, 150 - 50); /* 50 numbers, of each u and v */
  int64_t sum = 0;
  for (size_t g = 0; g < r.n; g++) {
    const delta_group *group = &r.groups[g];
    for (int64_t i = 0; i < group->n; i++) {
      char want[32];
      int64_t row = group->rows[i];
      snprintf(want, sizeof(want), "pa=%d/pb=%s", (int)(row % 50), row % 3 ? "u" : "v");
      assert_string_equal(group->folder, want);
      assert_true(i == 0 || group->rows[i - 1] < row);
    }
    sum += group->n;
  }
  assert_int_equal(sum, 300);
  weir_error again = {0}; /* what the first call left is forgotten */
  assert_int_equal(delta_partitions_split(r.partitions, r.batch, &r.groups, &r.n, &again),
                   WEIR_OK);
  assert_int_equal(r.n, 100);
  done(&r);
}

static void a_value_too_long_for_a_folder_has_none(void **state) {
  (void)state;
  rig r;
  weir_error err = {0};
  char rows[512] = "{\"p\":\"";
  memset(rows + 6, 'x', 300);
  strcpy(rows + 306, "\",\"x\":1}\n");
  if (make(&r, "p: utf8; x: int64", rows, &err)) fail_msg("%s", err.message);
  assert_string_equal(r.groups[0].folder, "");
  assert_int_equal(r.groups[0].values.v[0].value.n, 300);
  done(&r);
}

static void what_the_log_cannot_hold_is_bad_data(void **state) {
  (void)state;
  static const struct {
    const char *columns, *rows, *says;
  } cases[] = {
      {"x: int64; p: utf8", "{\"p\":\"a\"}\n{\"p\":\"\"}\n", "stands for null"},
      {"x: int64; p: utf8", "{\"p\":\"a\"}\n{\"p\":\"a\\u0000b\"}\n", "NUL"},
      {"x: int64; p: date32", "{\"p\":1}\n{\"p\":2932897}\n", "1 to 9999"},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    rig r;
    weir_error err = {0};
    weir_status status = make(&r, cases[i].columns, cases[i].rows, &err);
    assert_int_equal(status, WEIR_E_BAD_DATA);
    assert_int_equal(err.flags, WEIR_ERR_BAD_DATA);
    assert_int_equal(err.row, 1);
    assert_int_equal(err.column, 1);
    assert_non_null(strstr(err.message, cases[i].says));
    done(&r);
  }
}

static void columns_that_cannot_be_partitioned_by_are_refused(void **state) {
  (void)state;
  static const char *const columns[] = {"p: binary; x: int64", "p: list<int64>; x: int64",
                                        "p: struct<a: int64>; x: int64"};
  for (size_t i = 0; i < 3; i++) {
    rig r;
    weir_error err = {0};
    assert_int_equal(make(&r, columns[i], "{\"x\":1}\n", &err), WEIR_E_SCHEMA);
    assert_non_null(strstr(err.message, "'p' cannot be partitioned by"));
    done(&r);
  }
  rig r;
  weir_error err = {0};
  assert_int_equal(make(&r, "x: int64; y: int64", "{\"x\":1}\n", &err), WEIR_OK);
  assert_null(r.partitions);
  delta_text missing[] = {{"y", 1}, {"z", 1}};
  delta_texts by = {missing, 2, true};
  assert_int_equal(delta_partitions_new(&r.table, weir_schema_arrow(r.input), &by,
                                        &r.partitions, &err),
                   WEIR_E_CORRUPT);
  done(&r);
}

static void paths_are_uris(void **state) {
  (void)state;
  delta_arena arena = {0};
  delta_text out;
  assert_true(delta_path_encode(&arena, "p=a%20b/\xc3\xa9 x.parquet", &out));
  assert_string_equal(out.p, "p=a%2520b/%C3%A9%20x.parquet");
  delta_arena_done(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(values_are_written_as_the_protocol_says),
      cmocka_unit_test(rows_go_to_their_groups_in_order),
      cmocka_unit_test(a_value_too_long_for_a_folder_has_none),
      cmocka_unit_test(what_the_log_cannot_hold_is_bad_data),
      cmocka_unit_test(columns_that_cannot_be_partitioned_by_are_refused),
      cmocka_unit_test(paths_are_uris),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
