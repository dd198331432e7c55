/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of a data file: null counts and bounds of every type, cut texts, and which columns have any. */
#include <nanoarrow/nanoarrow.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../connectors/delta/stats.h"
#include "../../connectors/delta/value.h"
#include "support/rows.h"

/* The JSON for rows in two batches: the first line alone, and the others. */
static char *stats_of(const char *columns, const char *rows,
                      const delta_pairs *settings) {
  weir_error err = {0};
  delta_stats *stats = NULL;
  char *out = NULL;
  size_t size = 0;
  weir_schema *schema = rows_schema(columns);
  const struct ArrowSchema *arrow = weir_schema_arrow(schema);
  weir_batch *all = rows_batch(schema, rows), *first = NULL, *rest = NULL;
  assert_int_equal(weir_batch_slice(all, 0, 1, &first, &err), WEIR_OK);
  assert_int_equal(weir_batch_slice(all, 1, weir_batch_rows(all) - 1, &rest, &err),
                   WEIR_OK);
  if (delta_stats_new(arrow, arrow, settings, &stats, &err) ||
      delta_stats_add(stats, first, &err) || delta_stats_add(stats, rest, &err) ||
      delta_stats_write(stats, &out, &size, &err))
    fail_msg("%s", err.message);
  assert_int_equal(size, strlen(out));
  delta_stats_free(stats);
  weir_batch_unref(first);
  weir_batch_unref(rest);
  weir_batch_unref(all);
  weir_schema_unref(schema);
  return out;
}

static void check(const char *columns, const char *rows, const char *want) {
  delta_pairs none = {0};
  char *got = stats_of(columns, rows, &none);
  assert_string_equal(got, want);
  free(got);
}

static void numbers_have_exact_bounds(void **state) {
  (void)state;
  check("a: int8; b: int64; c: int32 not null",
        "{\"a\":-128,\"b\":9223372036854775807,\"c\":1}\n"
        "{\"a\":null,\"b\":-9223372036854775808,\"c\":0}\n{\"a\":127,\"c\":7}\n",
        "{\"numRecords\":3,\"minValues\":{\"a\":-128,\"b\":-9223372036854775808,\"c\":0},"
        "\"maxValues\":{\"a\":127,\"b\":9223372036854775807,\"c\":7},"
        "\"nullCount\":{\"a\":1,\"b\":1,\"c\":0}}");
  check("f: float32; d: float64", "{\"f\":1.5,\"d\":0.1}\n{\"f\":-2.25,\"d\":1e300}\n",
        "{\"numRecords\":2,\"minValues\":{\"f\":-2.25,\"d\":0.1},"
        "\"maxValues\":{\"f\":1.5,\"d\":1e300},\"nullCount\":{\"f\":0,\"d\":0}}");
  check("d: decimal128(38, 2)",
        "{\"d\":\"123456789012345678901234567890123456.78\"}\n{\"d\":\"-0.05\"}\n",
        "{\"numRecords\":2,\"minValues\":{\"d\":-0.05},"
        "\"maxValues\":{\"d\":123456789012345678901234567890123456.78},"
        "\"nullCount\":{\"d\":0}}");
}

/* A reader that trusted them would pass over rows. */
static void what_has_no_order_in_json_has_no_bounds(void **state) {
  (void)state;
  check("d: float64; e: float64",
        "{\"d\":1,\"e\":1}\n{\"d\":\"NaN\",\"e\":2}\n{\"d\":3,\"e\":\"Infinity\"}\n",
        "{\"numRecords\":3,\"minValues\":{},\"maxValues\":{},"
        "\"nullCount\":{\"d\":0,\"e\":0}}");
  check("b: bool; z: binary; l: list<int64>; n: int64",
        "{\"b\":true,\"z\":\"AA==\",\"l\":[1]}\n{\"l\":null}\n",
        "{\"numRecords\":2,\"minValues\":{},\"maxValues\":{},"
        "\"nullCount\":{\"b\":1,\"z\":1,\"l\":1,\"n\":2}}");
}

static void times_are_written_as_readers_know_them(void **state) {
  (void)state;
  check("d: date32; t: timestamp[us, UTC]; n: timestamp[us]",
        "{\"d\":\"2024-02-29\",\"t\":\"2024-02-29T12:00:00.000001Z\","
        "\"n\":\"1969-12-31T23:59:59.999999\"}\n"
        "{\"d\":\"0001-01-01\",\"t\":\"9999-12-31T23:59:59.5Z\",\"n\":\"2000-03-01\"}\n",
        "{\"numRecords\":2,\"minValues\":{\"d\":\"0001-01-01\","
        "\"t\":\"2024-02-29T12:00:00.000001Z\",\"n\":\"1969-12-31T23:59:59.999999\"},"
        "\"maxValues\":{\"d\":\"2024-02-29\",\"t\":\"9999-12-31T23:59:59.500000Z\","
        "\"n\":\"2000-03-01T00:00:00.000000\"},\"nullCount\":{\"d\":0,\"t\":0,\"n\":0}}");
  /* the year 10000: that bound alone is left out */
  check("d: date32", "{\"d\":2932897}\n{\"d\":0}\n",
        "{\"numRecords\":2,\"minValues\":{\"d\":\"1970-01-01\"},\"maxValues\":{},"
        "\"nullCount\":{\"d\":0}}");
}

#define AS "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define LARGEST "\xf4\x8f\xbf\xbf"

static void texts_are_cut_so_that_they_stay_bounds(void **state) {
  (void)state;
  check("s: utf8", "{\"s\":\"b\"}\n{\"s\":\"\xc3\xa9\"}\n{\"s\":\"a\\\"\"}\n",
        "{\"numRecords\":3,\"minValues\":{\"s\":\"a\\\"\"},\"maxValues\":{\"s\":"
        "\"\xc3\xa9\"},"
        "\"nullCount\":{\"s\":0}}");
  check("s: large_utf8", "{\"s\":\"" AS "zz\"}\n{\"s\":\"" AS "\"}\n{\"s\":null}\n",
        "{\"numRecords\":3,\"minValues\":{\"s\":\"" AS
        "\"},\"maxValues\":{\"s\":\"" AS LARGEST "\"},\"nullCount\":{\"s\":1}}");
  /* 32 characters of two bytes each */
  check(
      "s: utf8",
      "{\"s\":\"\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"
      "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"
      "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"
      "\xc3\xa9\xc3\xa9\xc3\xa9\"}\n{}\n",
      "{\"numRecords\":2,\"minValues\":{\"s\":\"\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"
      "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"
      "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"
      "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\"},\"maxValues\":{\"s\":"
      "\"\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"
      "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"
      "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"
      "\xc3\xa9\xc3\xa9\xc3\xa9\"},\"nullCount\":{\"s\":1}}");
  /* nothing is larger than what follows the cut */
  check("s: utf8", "{\"s\":\"" AS LARGEST "x\"}\n{\"s\":\"b\"}\n",
        "{\"numRecords\":2,\"minValues\":{},\"maxValues\":{},\"nullCount\":{\"s\":0}}");
}

static void fields_of_a_null_struct_are_null(void **state) {
  (void)state;
  check(
      "s: struct<a: int64, t: struct<b: utf8>>; x: int64",
      "{\"s\":{\"a\":1,\"t\":{\"b\":\"q\"}},\"x\":1}\n{\"s\":null,\"x\":2}\n"
      "{\"s\":{\"a\":5,\"t\":null},\"x\":3}\n{\"s\":{\"a\":null,\"t\":{\"b\":\"p\"}}}\n",
      "{\"numRecords\":4,\"minValues\":{\"s\":{\"a\":1,\"t\":{\"b\":\"p\"}},\"x\":1},"
      "\"maxValues\":{\"s\":{\"a\":5,\"t\":{\"b\":\"q\"}},\"x\":3},"
      "\"nullCount\":{\"s\":{\"a\":2,\"t\":{\"b\":2}},\"x\":1}}");
}

static void check_setting(const char *key, const char *value, const char *nulls) {
  delta_pair pair = {{key, strlen(key)}, {value, strlen(value)}};
  delta_pairs settings = {&pair, 1, true};
  char *got = stats_of("a: int64; s: struct<b: int64, c: int64>; d: int64",
                       "{\"a\":1}\n{\"a\":1}\n", &settings);
  const char *tail = strstr(got, "\"nullCount\":");
  assert_non_null(tail);
  assert_string_equal(tail + strlen("\"nullCount\":"), nulls);
  free(got);
}

static void properties_say_which_columns(void **state) {
  (void)state;
  const char *number = "delta.dataSkippingNumIndexedCols",
             *names = "delta.dataSkippingStatsColumns";
  check_setting(number, "2", "{\"a\":0,\"s\":{\"b\":2}}}");
  check_setting(number, "0", "{}}");
  check_setting(number, "-1", "{\"a\":0,\"s\":{\"b\":2,\"c\":2},\"d\":2}}");
  check_setting(number, "odd", "{\"a\":0,\"s\":{\"b\":2,\"c\":2},\"d\":2}}");
  check_setting(names, "d, `s`.c", "{\"s\":{\"c\":2},\"d\":2}}");
  check_setting(names, "s", "{\"s\":{\"b\":2,\"c\":2}}}");
  check_setting(names, "", "{}}");
  char columns[1024] = "";
  for (int i = 0; i < 40; i++) {
    size_t n = strlen(columns);
    snprintf(columns + n, sizeof(columns) - n, "%sc%d: int64", i ? "; " : "", i);
  }
  delta_pairs none = {0};
  char *got = stats_of(columns, "{\"c0\":1}\n{}\n", &none);
  const char *tail = strstr(got, "\"nullCount\":");
  assert_non_null(tail);
  assert_null(strstr(tail, "\"c32\""));
  assert_non_null(strstr(tail, "\"c31\":2"));
  free(got);
}

/* "b", null (no index), "a", null (of the dictionary) */
static weir_batch *dictionary_batch(weir_schema *schema) {
  struct ArrowArray array;
  weir_batch *batch = NULL;
  weir_error err = {0};
  assert_int_equal(ArrowArrayInitFromSchema(&array, weir_schema_arrow(schema), NULL), 0);
  assert_int_equal(ArrowArrayStartAppending(&array), 0);
  struct ArrowArray *indices = array.children[0], *values = indices->dictionary;
  assert_int_equal(ArrowArrayAppendString(values, ArrowCharView("a")), 0);
  assert_int_equal(ArrowArrayAppendNull(values, 1), 0);
  assert_int_equal(ArrowArrayAppendString(values, ArrowCharView("b")), 0);
  assert_int_equal(ArrowArrayAppendInt(indices, 2), 0);
  assert_int_equal(ArrowArrayAppendNull(indices, 1), 0);
  assert_int_equal(ArrowArrayAppendInt(indices, 0), 0);
  assert_int_equal(ArrowArrayAppendInt(indices, 1), 0);
  array.length = 4;
  assert_int_equal(ArrowArrayFinishBuildingDefault(&array, NULL), 0);
  if (weir_batch_new(schema, &array, &batch, &err)) fail_msg("%s", err.message);
  return batch;
}

static void dictionaries_count_as_their_values(void **state) {
  (void)state;
  weir_error err = {0};
  delta_stats *stats = NULL;
  delta_pairs none = {0};
  char *out = NULL;
  size_t size = 0;
  weir_schema *schema = rows_schema("s: dictionary<int32, utf8>");
  weir_batch *batch = dictionary_batch(schema);
  const struct ArrowSchema *arrow = weir_schema_arrow(schema);
  if (delta_stats_new(arrow, arrow, &none, &stats, &err) ||
      delta_stats_add(stats, batch, &err) || delta_stats_write(stats, &out, &size, &err))
    fail_msg("%s", err.message);
  assert_string_equal(out,
                      "{\"numRecords\":4,\"minValues\":{\"s\":\"a\"},"
                      "\"maxValues\":{\"s\":\"b\"},\"nullCount\":{\"s\":2}}");
  free(out);
  delta_stats_free(stats);
  weir_batch_unref(batch);
  weir_schema_unref(schema);
}

static void decimals_and_characters(void **state) {
  (void)state;
  char text[DELTA_VALUE_SIZE];
  delta_value_decimal(0, 0, text);
  assert_string_equal(text, "0");
  delta_value_decimal(5, 3, text);
  assert_string_equal(text, "0.005");
  delta_value_decimal(-1234, 2, text);
  assert_string_equal(text, "-12.34");
  assert_true(delta_value_timestamp(-1, ' ', false, text));
  assert_string_equal(text, "1969-12-31 23:59:59.999999");
  assert_false(delta_value_timestamp(INT64_MIN, 'T', true, text));
  static const struct {
    const char *text;
    size_t size;
  } cases[] = {{"a", 1},        {"\xc3\xa9", 2},         {"\xe2\x82\xac", 3},
               {LARGEST, 4},    {"\xf4\x90\x80\x80", 0}, {"\xed\xa0\x80", 0},
               {"\xc0\x80", 0}, {"\xe0\x80\x80", 0},     {"\xf0\x80\x80\x80", 0},
               {"\x80", 0},     {"\xe2\x82", 0},         {"\xe2\x82(", 0}};
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
    assert_int_equal(
        delta_value_character((const uint8_t *)cases[i].text, strlen(cases[i].text)),
        cases[i].size);
  assert_int_equal(delta_value_character((const uint8_t *)"", 0), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(numbers_have_exact_bounds),
      cmocka_unit_test(what_has_no_order_in_json_has_no_bounds),
      cmocka_unit_test(times_are_written_as_readers_know_them),
      cmocka_unit_test(texts_are_cut_so_that_they_stay_bounds),
      cmocka_unit_test(fields_of_a_null_struct_are_null),
      cmocka_unit_test(properties_say_which_columns),
      cmocka_unit_test(dictionaries_count_as_their_values),
      cmocka_unit_test(decimals_and_characters),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
