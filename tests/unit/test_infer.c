/* SPDX-License-Identifier: Apache-2.0 */
/* Schemas from samples. Whatever is inferred, the decoder must take each row of the sample with it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/infer.h>

#include <cmocka.h>

#include "base/base.h"

static const weir_csv_options headed = {.struct_size = sizeof(headed)};
static const weir_csv_options bare = {.struct_size = sizeof(bare), .no_header = 1};

/* Feeds one file in blocks of `block` bytes, each in memory of its exact size. */
static weir_status feed(weir_inference *inference, const char *text, size_t block,
                        int64_t rows, weir_error *err) {
  size_t size = strlen(text), at = 0, have = 0;
  for (;;) {
    size_t more = size - at - have < block ? size - at - have : block, used = 0;
    int last = more == 0;
    have += more;
    uint8_t *exact = malloc(have + 1);
    assert_non_null(exact);
    memcpy(exact, text + at, have);
    uint8_t *fit = realloc(exact, have ? have : 1);
    weir_status status =
        weir_inference_feed(inference, fit, have, last, rows, &used, err);
    free(fit);
    if (status != WEIR_OK) return status;
    assert_true(used <= have);
    at += used;
    have -= used;
    if (last) return WEIR_OK;
  }
}

static char *text_of(const weir_schema *schema) {
  weir_bytes yaml = {0};
  weir_error err = {0};
  assert_int_equal(weir_schema_yaml(schema, &yaml, &err), WEIR_OK);
  char *out = calloc(1, yaml.size + 1);
  assert_non_null(out);
  memcpy(out, yaml.data, yaml.size);
  weir_bytes_release(&yaml);
  return out;
}

/* All rows of the sample must be taken by a decoder of the schema. */
static void decode(const weir_csv_options *csv, weir_schema *schema, const char *text) {
  weir_error err = {0};
  weir_batch *batch = NULL;
  size_t used = 0;
  weir_status status;
  if (csv != NULL) {
    weir_csv_decoder *decoder = NULL;
    assert_int_equal(weir_csv_decoder_new(schema, csv, &decoder, &err), WEIR_OK);
    status = weir_csv_decoder_feed(decoder, text, strlen(text), 1, &used, &batch, &err);
    weir_csv_decoder_free(decoder);
  } else {
    weir_ndjson_decoder *decoder = NULL;
    assert_int_equal(weir_ndjson_decoder_new(schema, NULL, &decoder, &err), WEIR_OK);
    status =
        weir_ndjson_decoder_feed(decoder, text, strlen(text), 1, &used, &batch, &err);
    weir_ndjson_decoder_free(decoder);
  }
  if (status != WEIR_OK) fail_msg("%s\n%s", err.message, text);
  weir_batch_unref(batch);
}

static weir_inference *new_inference(const weir_csv_options *csv) {
  weir_inference *inference = NULL;
  weir_error err = {0};
  weir_status status = csv ? weir_inference_new_csv(csv, &inference, &err)
                           : weir_inference_new_ndjson(NULL, &inference, &err);
  assert_int_equal(status, WEIR_OK);
  return inference;
}

/* The schema as YAML, or the error's message; to free(). */
static char *infer(const weir_csv_options *csv, const char *const *files, size_t block) {
  weir_inference *inference = new_inference(csv);
  weir_schema *schema = NULL;
  weir_error err = {0};
  weir_status status = WEIR_OK;
  for (size_t i = 0; files[i] != NULL && status == WEIR_OK; i++) {
    if (i > 0) weir_inference_next_file(inference);
    status = feed(inference, files[i], block, INT64_MAX, &err);
  }
  if (status == WEIR_OK) status = weir_inference_schema(inference, &schema, &err);
  char *out = NULL;
  if (status == WEIR_OK) {
    for (size_t i = 0; files[i] != NULL; i++) decode(csv, schema, files[i]);
    out = text_of(schema);
  } else {
    out = strdup(err.message);
  }
  weir_schema_unref(schema);
  weir_inference_free(inference);
  assert_non_null(out);
  return out;
}

static void gives(const weir_csv_options *csv, const char *text, const char *want) {
  static const size_t blocks[] = {1, 2, 7, 1000000};
  for (size_t i = 0; i < BASE_COUNT(blocks); i++) {
    const char *files[] = {text, NULL};
    char *got = infer(csv, files, blocks[i]);
    if (strcmp(got, want) != 0)
      fail_msg("%s\ngives %s\nnot   %s (blocks of %zu)", text, got, want, blocks[i]);
    free(got);
  }
}

static void refuses(const weir_csv_options *csv, const char *text, const char *words) {
  const char *files[] = {text, NULL};
  char *got = infer(csv, files, 5);
  if (strstr(got, words) == NULL)
    fail_msg("%s\ngives %s\nwithout '%s'", text, got, words);
  free(got);
}

/* A column of CSV that holds these values, a space between them. */
static void csv_column(const char *values, const char *type) {
  char text[1000] = "v\n", want[100];
  size_t n = 2;
  for (const char *p = values; *p; p++) text[n++] = *p == ' ' ? '\n' : *p;
  text[n] = 0;
  snprintf(want, sizeof(want), strchr(type, '[') ? "{v: \"%s\"}" : "{v: %s}", type);
  gives(&headed, text, want);
}

static void json_column(const char *values, const char *type) {
  char text[2000] = "", want[300];
  char *copy = strdup(values), *rest = NULL;
  assert_non_null(copy);
  for (char *v = strtok_r(copy, " ", &rest); v; v = strtok_r(NULL, " ", &rest))
    snprintf(text + strlen(text), sizeof(text) - strlen(text), "{\"v\": %s}\n", v);
  free(copy);
  snprintf(want, sizeof(want), strchr(type, '[') ? "{v: \"%s\"}" : "{v: %s}", type);
  gives(NULL, text, want);
}

static void test_numbers(void **state) {
  (void)state;
  csv_column("1 -5 0", "int64");
  csv_column("9223372036854775807 -9223372036854775808", "int64");
  csv_column("9223372036854775808 1", "uint64");
  csv_column("18446744073709551615", "uint64");
  csv_column("18446744073709551616", "utf8");
  csv_column("9223372036854775808 -1", "utf8");
  csv_column("007", "utf8");
  csv_column("1 007", "utf8");
  csv_column("00", "utf8");
  csv_column("0 10", "int64");
  csv_column("+5", "utf8");
  csv_column("1.5 2", "float64");
  csv_column("2 1.5", "float64");
  csv_column(".5 5. -1e3 1E-3", "float64");
  csv_column("00.5", "utf8");
  csv_column("1e999", "utf8");
  csv_column("-0 1", "float64");
  csv_column("1.5 9007199254740992", "float64");
  csv_column("1.5 9007199254740993", "utf8"); /* 2^53 + 1 is no double */
  csv_column("1.5 18446744073709549568", "float64");
  csv_column("9007199254740993", "int64");
  csv_column("nan 1.5 -inf Infinity", "float64");
  csv_column("nan 2", "float64");
  csv_column("nan inf", "utf8");
  csv_column("1_000", "utf8");
  csv_column("0x10", "utf8");
  csv_column("1 -", "utf8");
  gives(&headed, "v,w\n 1 ,\t2.5\n", "{v: int64, w: float64}");
  json_column("1 -5 null", "int64");
  json_column("9223372036854775808 1", "uint64");
  json_column("18446744073709551616", "utf8");
  json_column("9223372036854775808 -1", "utf8");
  json_column("1.5 2", "float64");
  json_column("1.5 9007199254740993", "utf8");
  json_column("1e999", "utf8");
  json_column("1 \"NaN\" \"-Infinity\"", "float64");
  json_column("\"NaN\"", "utf8");
  json_column("\"12\"", "utf8");
}

static void test_words_and_times(void **state) {
  (void)state;
  csv_column("true False TRUE", "bool");
  csv_column("true 1", "utf8");
  csv_column("yes no", "utf8");
  csv_column("2024-02-29 1970-01-01", "date32");
  csv_column("2023-02-29", "utf8");
  csv_column("2024-2-9", "utf8");
  csv_column("2024-02-29T10:00:00 2024-02-29T10:00", "timestamp[us]");
  csv_column("2024-02-29 2024-02-29T10:00:00", "timestamp[us]");
  csv_column("2024-02-29T10:00:00Z 2024-02-29T10:00:00.123456+02:00",
             "timestamp[us, UTC]");
  csv_column("2024-02-29T10:00:00Z 2024-02-29T10:00:00", "utf8");
  csv_column("2024-02-29 2024-02-29T10:00:00Z", "utf8");
  csv_column("2024-02-29T10:00:00.1234567", "utf8"); /* finer than a microsecond */
  csv_column("2024-02-29T10:00:00.123456000", "timestamp[us]");
  csv_column("10:00:00", "utf8");
  csv_column("20240229", "int64");
  csv_column("2024-02-29 x", "utf8");
  gives(&headed, "t\n2024-02-29 10:00:00\n", "{t: \"timestamp[us]\"}");
  json_column("true false null", "bool");
  json_column("true 1", "utf8");
  json_column("true \"x\"", "utf8");
  json_column("1 \"x\"", "utf8");
  json_column("\"2024-02-29\"", "date32");
  json_column("\"2024-02-29T10:00:00Z\"", "timestamp[us, UTC]");
  json_column("\"2024-02-29\" 5", "utf8");
  json_column("null", "utf8");
}

static void test_csv(void **state) {
  (void)state;
  gives(&headed, "a,b\n,\n1,\n", "{a: int64, b: utf8}");
  gives(&headed, "\xef\xbb\xbf\n\na,b\r\n\r\n1,x\r\n", "{a: int64, b: utf8}");
  gives(&headed, "a,b\n\"1\",\"x\ny\"\n\"\",\"\"\n", "{a: int64, b: utf8}");
  gives(&headed, "a\n1\n\n2", "{a: int64}"); /* an empty line of one column is null */
  gives(&bare, "1,x,2.5\n2,y,3\n",
        "{column_1: int64, column_2: utf8, column_3: float64}");
  weir_csv_options null = headed;
  null.null_text = "NA";
  gives(&null, "a,b\nNA,1\n2.5,NA\n", "{a: float64, b: int64}");
  gives(&null, "a\n\"NA\"\n2\n", "{a: int64}");
  gives(&null, "a,b\n,x\n2,\n", "{a: utf8, b: utf8}"); /* "" is a value here */
  weir_csv_options semicolon = headed;
  semicolon.delimiter = ";";
  gives(&semicolon, "a;b\n1,5;2\n", "{a: utf8, b: int64}");
  gives(
      &headed, "id,a b,true,9,\xc3\xa4\n1,2,3,4,5\n",
      "{id: int64, \"a b\": int64, \"true\": int64, \"9\": int64, \"\xc3\xa4\": int64}");
  refuses(&headed, "a,b,a\n1,2,3\n", "names column 'a' twice");
  refuses(&headed, "a,\"b\n1,2", "quote");
  refuses(&headed, "a\xff,b\n1,2\n", "not valid UTF-8");
  refuses(&headed, "", "no row to infer a schema from; write the schema down");
  refuses(&headed, "a,b\n", "no row");
  refuses(&bare, "\n\n", "no row");
}

static void test_files(void **state) {
  (void)state;
  const char *same[] = {"a,b\n1,2\n", "b,a\n1.5,x\n", NULL};
  char *got = infer(&headed, same, 3);
  assert_string_equal(got, "{a: utf8, b: float64}");
  free(got);
  const char *more[] = {"a,b\n1,2\n", "a,b,c\n1,2,3\n", NULL};
  got = infer(&headed, more, 3);
  assert_non_null(strstr(got, "the header has column 'c', unlike"));
  free(got);
  const char *less[] = {"a,b\n1,2\n", "a\n1\n", NULL};
  got = infer(&headed, less, 3);
  assert_non_null(strstr(got, "the header lacks column 'b', unlike"));
  free(got);
  const char *lines[] = {"{\"b\": 1}\n", "\xef\xbb\xbf{\"a\": 1, \"b\": 2.5}", NULL};
  got = infer(NULL, lines, 3);
  assert_string_equal(got, "{b: float64, a: int64}");
  free(got);
}

static void test_keys(void **state) {
  (void)state;
  gives(NULL, "{\"b\":1}\n\n{\"a\":\"x\",\"c\":null}\n{\"c\":true,\"b\":2}\n",
        "{b: int64, a: utf8, c: bool}");
  gives(NULL, "{\"a.b\": 1, \"\\u00e4\": 2}\n", "{\"a.b\": int64, \"\xc3\xa4\": int64}");
  refuses(NULL, "", "no row");
  refuses(NULL, "\n \n", "no row");
  refuses(NULL, "{}\n", "no row");
  refuses(NULL, "{\"a\\u0000\": 1}\n", "NUL");
  refuses(NULL, "{\"v\": 1}\n{\"v\": [1]}\n", "column 'v' holds objects or lists beside");
  refuses(NULL, "{\"v\": {\"a\": 1}}\n{\"v\": [1]}\n",
          "column 'v' holds objects or lists");
  refuses(NULL, "{\"v\": {}}\n", "column 'v' holds empty objects alone");
}

/* Rows that the decoder will refuse say nothing of the types. */
static void test_bad_rows(void **state) {
  (void)state;
  weir_error err = {0};
  weir_schema *schema = NULL;
  static const char *const texts[] = {"a,b\n1,2\nx,y,z\nx\nx\"y,2\n3,4\n",
                                      "{\"a\":1,\"b\":2}\n{\"a\":\n[1]\n7\n{\"b\":3}\n"};
  static const int64_t rows[] = {2, 2};
  for (size_t i = 0; i < 2; i++) {
    weir_inference *inference = new_inference(i == 0 ? &headed : NULL);
    assert_int_equal(feed(inference, texts[i], 4, INT64_MAX, &err), WEIR_OK);
    assert_int_equal(weir_inference_rows(inference), rows[i]);
    assert_int_equal(weir_inference_schema(inference, &schema, &err), WEIR_OK);
    char *text = text_of(schema);
    assert_string_equal(text, "{a: int64, b: int64}");
    free(text);
    weir_schema_unref(schema);
    weir_inference_free(inference);
  }
}

static void test_bounds(void **state) {
  (void)state;
  weir_error err = {0};
  weir_inference *inference = NULL;
  weir_ndjson_options options = {.struct_size = sizeof(options), .max_line = 20};
  size_t used = 0;
  assert_int_equal(weir_inference_new_ndjson(&options, &inference, &err), WEIR_OK);
  assert_int_equal(
      weir_inference_feed(inference, "{\"a\":1}\n{\"a\":2}\n", 16, 0, 1, &used, &err),
      WEIR_OK);
  assert_int_equal(used, 8);
  assert_int_equal(weir_inference_rows(inference), 1);
  assert_int_equal(weir_inference_feed(inference, "{\"a\":\"0123456789012345\"}", 24, 0,
                                       1, &used, &err),
                   WEIR_E_BAD_DATA);
  assert_non_null(strstr(err.message, "line 2: longer than 20 bytes"));
  weir_inference_free(inference);
  /* keys that are values */
  inference = new_inference(NULL);
  weir_status status = WEIR_OK;
  for (int i = 0; i < 20000 && status == WEIR_OK; i++) {
    char line[50];
    int n = snprintf(line, sizeof(line), "{\"key %d\":1}\n", i);
    status = weir_inference_feed(inference, line, (size_t)n, 0, 1, &used, &err);
  }
  assert_int_equal(status, WEIR_E_SCHEMA);
  assert_non_null(strstr(err.message, "write the schema down"));
  weir_inference_free(inference);
}

static void test_yaml(void **state) {
  (void)state;
  static const char *const names[] = {"id", "a \"b\"\\", "no", "t\tb", "${x}", "1"};
  static const char *const types[] = {"int64 not null",     "timestamp[us, UTC]",
                                      "decimal128(38, 10)", "utf8",
                                      "list<item: utf8>",   "struct<\"${a}\": int64>"};
  weir_schema *schema = NULL;
  weir_error err = {0};
  assert_int_equal(weir_schema_from_types(names, types, 6, &schema, &err), WEIR_OK);
  char *text = text_of(schema);
  assert_string_equal(
      text,
      "{id: \"int64 not null\", \"a \\\"b\\\"\\\\\": \"timestamp[us, UTC]\", \"no\": "
      "\"decimal128(38, 10)\", \"t\\x09b\": utf8, \"${x}\": \"list<utf8>\", \"1\": "
      "\"struct<$${a}: int64>\"}");
  free(text);
  weir_schema_unref(schema);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_numbers), cmocka_unit_test(test_words_and_times),
      cmocka_unit_test(test_csv),     cmocka_unit_test(test_files),
      cmocka_unit_test(test_keys),    cmocka_unit_test(test_bad_rows),
      cmocka_unit_test(test_bounds),  cmocka_unit_test(test_yaml),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
