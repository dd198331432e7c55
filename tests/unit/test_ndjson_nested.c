/* SPDX-License-Identifier: Apache-2.0 */
/* Lists, maps and structs from NDJSON and back; yyjson judges what is written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/ndjson.h>

#include <cmocka.h>

#include "base/base.h"
#include "format/ndjson.h"
#include "support/rows.h"

/* Decodes all lines of the text; bad ones are skipped, their messages gathered in `errors`. The rows as
 * text, to free(). */
static char *decode(weir_schema *schema, const char *text, bool slow, int64_t batch_rows,
                    base_buf *errors) {
  weir_ndjson_decoder *decoder = NULL;
  weir_error err = {0};
  weir_ndjson_options options = {.struct_size = sizeof(options),
                                 .batch_rows = batch_rows};
  base_buf rows = {0};
  size_t size = strlen(text), at = 0;
  if (weir_ndjson_decoder_new(schema, &options, &decoder, &err) != WEIR_OK)
    fail_msg("%s", err.message);
  ndjson_decoder_force_slow(decoder, slow);
  for (bool more = true; more;) {
    weir_batch *batch = NULL;
    size_t used = 0;
    weir_status status =
        weir_ndjson_decoder_feed(decoder, text + at, size - at, 1, &used, &batch, &err);
    if (status == WEIR_OK && batch == NULL) {
      assert_int_equal(weir_ndjson_decoder_flush(decoder, &batch, &err), WEIR_OK);
      more = false;
    } else if (status != WEIR_OK) {
      assert_int_equal(status, WEIR_E_BAD_DATA);
      assert_int_equal(err.flags, WEIR_ERR_BAD_DATA);
      assert_true(base_utf8_valid(err.message, strlen(err.message)));
      assert_int_equal(base_buf_printf(errors, NULL, "%s\n", err.message), WEIR_OK);
      weir_ndjson_decoder_skip(decoder, text + at, size - at, 1, &used);
    }
    at += used;
    if (batch == NULL) continue;
    char *lines = rows_text(batch);
    assert_int_equal(base_buf_append_str(&rows, lines, NULL), WEIR_OK);
    free(lines);
    weir_batch_unref(batch);
  }
  assert_int_equal(at, size);
  weir_ndjson_decoder_free(decoder);
  assert_int_equal(base_buf_append_byte(&rows, 0, NULL), WEIR_OK);
  return (char *)rows.data;
}

static void check_with(const char *spec, const char *text, const char *want,
                       const char *message) {
  weir_schema *schema = rows_schema(spec);
  for (int slow = 0; slow < 2; slow++) {
    for (int64_t batch_rows = 1; batch_rows < 100; batch_rows += 33) {
      base_buf errors = {0};
      char *got = decode(schema, text, slow, batch_rows, &errors);
      assert_int_equal(base_buf_append_byte(&errors, 0, NULL), WEIR_OK);
      assert_string_equal(got, want);
      if (*message ? strstr((char *)errors.data, message) == NULL : errors.data[0] != 0)
        fail_msg("slow %d: '%s', not '%s'", slow, (char *)errors.data, message);
      free(got);
      base_buf_done(&errors);
    }
  }
  weir_schema_unref(schema);
}

static void check(const char *spec, const char *text, const char *want) {
  check_with(spec, text, want, "");
}

/* A bad line between two good ones, of which nothing is taken. */
static void refuses(const char *spec, const char *good, const char *bad,
                    const char *message) {
  char *text = base_format(NULL, "%s\n%s\n%s\n", good, bad, good);
  char *want = base_format(NULL, "%s\n%s\n", good, good);
  char *what = base_format(NULL, "line 2, byte %s", message);
  check_with(spec, text, want, what);
  free(text);
  free(want);
  free(what);
}

/* Text that comes back as it is. */
static void same(const char *spec, const char *text) {
  check(spec, text, text);
}

static void test_lists(void **state) {
  (void)state;
  same("a: list<int32>",
       "{\"a\":[1,2,3]}\n{\"a\":[]}\n{\"a\":null}\n{\"a\":[null,-4]}\n");
  same("a: large_list<utf8>; b: int8",
       "{\"a\":[\"x\",\"\",null],\"b\":1}\n{\"a\":[\"a\\nb\"],\"b\":null}\n");
  same("a: list_view<bool>; b: large_list_view<float64>",
       "{\"a\":[true,false],\"b\":[]}\n{\"a\":null,\"b\":[1.5,null]}\n"
       "{\"a\":[],\"b\":null}\n{\"a\":[null,true],\"b\":[0.25]}\n");
  same("a: fixed_size_list<int16, 2>",
       "{\"a\":[1,2]}\n{\"a\":null}\n{\"a\":[null,4]}\n{\"a\":[5,6]}\n");
  same("a: fixed_size_list<int16, 0>; b: int8",
       "{\"a\":[],\"b\":1}\n{\"a\":null,\"b\":2}\n");
  same("a: list<list<fixed_size_list<date32, 1>>>",
       "{\"a\":[[[\"2024-02-29\"],null],[],null]}\n{\"a\":[null]}\n{\"a\":[[]]}\n");
  /* blanks in all places */
  check("a: list<int32>; b: list<utf8>",
        " { \"b\" : [ \"x\" ,\t\"y\" ] , \"a\" : [ 1 , 2 ] } \r\n{\"a\":[ ]}",
        "{\"a\":[1,2],\"b\":[\"x\",\"y\"]}\n{\"a\":[],\"b\":null}\n");
}

static void test_structs(void **state) {
  (void)state;
  same("a: struct<x: int64, y: utf8>",
       "{\"a\":{\"x\":1,\"y\":\"s\"}}\n{\"a\":null}\n{\"a\":{\"x\":null,\"y\":null}}\n");
  same("a: struct<>; b: int8", "{\"a\":{},\"b\":1}\n{\"a\":null,\"b\":2}\n");
  same("a: struct<b: struct<c: struct<d: list<bool>>>>",
       "{\"a\":{\"b\":{\"c\":{\"d\":[true]}}}}\n{\"a\":{\"b\":{\"c\":null}}}\n"
       "{\"a\":{\"b\":null}}\n{\"a\":null}\n");
  /* other orders, missing and unknown fields, fields with escapes, at every depth */
  check(
      "a: struct<x: int64, y: struct<z: int8, w: utf8>>",
      "{\"a\":{\"y\":{\"w\":\"s\",\"z\":1},\"x\":2}}\n{\"a\":{\"u\":[1,{\"x\":5}],\"y\":"
      "{\"v\":{},\"z\":3}}}\n{\"a\":{}}\n{\"\\u0061\":{\"\\u0078\":7}}\n",
      "{\"a\":{\"x\":2,\"y\":{\"z\":1,\"w\":\"s\"}}}\n"
      "{\"a\":{\"x\":null,\"y\":{\"z\":3,\"w\":null}}}\n{\"a\":{\"x\":null,\"y\":null}}\n"
      "{\"a\":{\"x\":7,\"y\":null}}\n");
  /* what a null above hides may be declared not null */
  same(
      "a: struct<x: int64 not null, s: utf8 not null, l: list<int8> not null, "
      "f: fixed_size_list<bool not null, 3> not null, n: struct<b: bool not null> not "
      "null>",
      "{\"a\":null}\n{\"a\":{\"x\":1,\"s\":\"t\",\"l\":[],\"f\":[true,true,true],\"n\":"
      "{\"b\":true}}}\n{\"a\":null}\n");
}

static void test_maps(void **state) {
  (void)state;
  same("a: map<utf8, int64>",
       "{\"a\":{\"k\":1,\"\":null}}\n{\"a\":{}}\n{\"a\":null}\n{\"a\":{\"k\\n\":2}}\n");
  same("a: map<large_utf8, list<map<utf8, bool>>>",
       "{\"a\":{\"k\":[{\"b\":true},{},null],\"l\":null}}\n");
  same("a: map<int32, utf8>",
       "{\"a\":[{\"key\":1,\"value\":\"x\"},{\"key\":1,\"value\":null}]}\n{\"a\":[]}\n");
  /* pairs are read for string keys too */
  check(
      "a: map<utf8, int8>",
      "{\"a\":[{\"key\":\"x\",\"value\":1},{\"value\":2,\"key\":\"y\"},{\"key\":\"z\"}]}",
      "{\"a\":{\"x\":1,\"y\":2,\"z\":null}}\n");
  check("a: map<utf8, int8>", "{\"a\":{\"x\\u0041\":1,\"\xc3\xa9\" : 2}}",
        "{\"a\":{\"xA\":1,\"\xc3\xa9\":2}}\n");
}

static void test_errors_name_the_path(void **state) {
  (void)state;
  refuses("a: struct<b: list<struct<c: int32>>>", "{\"a\":{\"b\":[{\"c\":1}]}}",
          "{\"a\":{\"b\":[{\"c\":1},{},null,{\"c\":\"x\"}]}}",
          "55: column 'a.b[3].c' (int32) has a value of another type; expected a whole "
          "number; near: :[{\"c\":1},{},null,{\"c\":\"x\"}]}}");
  refuses("a: map<utf8, struct<v: int8>>", "{\"a\":{\"k\":null}}",
          "{\"a\":{\"k\":{\"v\":1},\"l\":{\"v\":128}}}",
          "44: column 'a[\"l\"].v' (int8) is out of range; expected a whole number");
  refuses("a: list<int8>", "{\"a\":[1]}", "{\"a\":{}}",
          "12: column 'a' (list<int8>) has a value of another type; expected an array");
  refuses("a: list<int8>", "{\"a\":[1]}", "{\"a\":5}", "15: column 'a' (list<int8>) has");
  refuses("a: list<int8>", "{\"a\":[1]}", "{\"a\":\"x\"}", "16: column 'a' (list<int8>)");
  refuses("a: list<int8>", "{\"a\":[1]}", "{\"a\":true}", "12: column 'a' (list<int8>)");
  refuses("a: list<int8>", "{\"a\":[1]}", "{\"a\":[1,[2]]}",
          "12: column 'a[1]' (int8) has a value of another type");
  refuses("a: struct<x: int8>", "{\"a\":{\"x\":1}}", "{\"a\":[1]}",
          "16: column 'a' (struct<x: int8>) has a value of another type; expected an "
          "object");
  refuses("a: map<int8, int8>", "{\"a\":[]}", "{\"a\":{\"1\":1}}",
          "11: column 'a' (map<int8, int8>) has a value of another type; expected an "
          "array of {\"key\": ..., \"value\": ...}");
  refuses("a: fixed_size_list<int8, 2>", "{\"a\":[1,2]}", "{\"a\":[1]}",
          "14: column 'a' (fixed_size_list<int8, 2>) has another number of items; "
          "expected an array with as many items as the type says");
  refuses("a: fixed_size_list<int8, 2>", "{\"a\":[1,2]}", "{\"a\":[1,2,3]}",
          "14: column 'a' (fixed_size_list<int8, 2>) has another number of items");
  refuses("a: list<int8 not null>", "{\"a\":[1]}", "{\"a\":[1,null]}",
          "12: column 'a[1]' (int8) is null or missing, but not nullable");
  refuses("a: struct<b: struct<x: int8 not null>>", "{\"a\":{\"b\":null}}",
          "{\"a\":{\"b\":{}}}", "24: column 'a.b.x' (int8) is null or missing");
  refuses("a: map<utf8, int8>", "{\"a\":{\"x\":1}}", "{\"a\":[{\"value\":1}]}",
          "16: column 'a[0].key' (utf8) is null or missing, but not nullable");
  refuses("a: map<utf8, int8>", "{\"a\":{\"x\":1}}", "{\"a\":[null]}",
          "16: column 'a[0]'");
  refuses("a: list<int8>", "{\"a\":[1]}", "{\"a\":[1,]}", "");
  refuses("a: list<int8>", "{\"a\":[1]}", "{\"a\":[1", "");
  refuses("a: list<int8>", "{\"a\":[1]}", "{\"a\":[1}", "");
  refuses("a: struct<x: int8>", "{\"a\":{\"x\":1}}", "{\"a\":{\"x\":1,}}", "");
  refuses("a: struct<x: int8>", "{\"a\":{\"x\":1}}", "{\"a\":{\"x\":1]}", "");
}

static void test_keys_given_twice(void **state) {
  (void)state;
  refuses("a: struct<x: int8, y: int8>", "{\"a\":{\"x\":1,\"y\":2}}",
          "{\"a\":{\"x\":1,\"y\":2,\"x\":1}}", "");
  refuses("a: list<struct<x: int8>>", "{\"a\":[{\"x\":1}]}",
          "{\"a\":[{\"x\":1},{\"x\":2,\"x\":2}]}",
          "41: column 'a[1].x' (int8) is given twice");
  refuses("a: list<int8>", "{\"a\":[1]}", "{\"a\":[1],\"a\":[1]}",
          "20: column 'a' (list<int8>) is given twice");
  refuses(
      "a: map<utf8, int8>", "{\"a\":{\"x\":1}}", "{\"a\":{\"k\":1,\"l\":1,\"k\":2}}",
      "16: column 'a[\"k\"]' (map<utf8, int8>) is given twice; expected an object with "
      "distinct keys");
  refuses("a: map<utf8, int8>", "{\"a\":{\"x\":1}}",
          "{\"a\":[{\"key\":\"k\",\"value\":1},{\"key\":\"k\",\"value\":1}]}",
          "16: column 'a[\"k\"]'");
  /* enough of them to be sorted, in an order that is not theirs */
  base_buf row = {0}, twice = {0};
  for (int i = 0; i < 40; i++) {
    assert_int_equal(base_buf_printf(&row, NULL, "%s\"k%d\":%d",
                                     i == 0 ? "{\"a\":{" : ",", i * 7 % 40, i),
                     WEIR_OK);
  }
  assert_int_equal(base_buf_append(&twice, row.data, row.size, NULL), WEIR_OK);
  assert_int_equal(base_buf_append_str(&twice, ",\"k9\":1,\"k3\":2}}", NULL), WEIR_OK);
  assert_int_equal(base_buf_append_str(&row, "}}", NULL), WEIR_OK);
  assert_int_equal(base_buf_append_byte(&row, 0, NULL), WEIR_OK);
  assert_int_equal(base_buf_append_byte(&twice, 0, NULL), WEIR_OK);
  refuses("a: map<utf8, int8>", (char *)row.data, (char *)twice.data, "");
  char *message = base_format(NULL, "%zu: column 'a[\"k9\"]'", row.size + 2);
  refuses("a: map<utf8, int8>", (char *)row.data, (char *)twice.data, message);
  free(message);
  base_buf_done(&row);
  base_buf_done(&twice);
}

/* The lines of `rows` rows that nest `depth` lists, each item a struct. */
static void test_deep(void **state) {
  (void)state;
  base_buf type = {0}, text = {0};
  const int depth = 15;
  base_buf_append_str(&type, "a: ", NULL);
  base_buf_append_str(&text, "{\"a\":", NULL);
  for (int i = 0; i < depth; i++) {
    base_buf_append_str(&type, "list<struct<f: ", NULL);
    base_buf_append_str(&text, "[null,{\"f\":", NULL);
  }
  base_buf_append_str(&type, "int8", NULL);
  base_buf_append_str(&text, "7", NULL);
  for (int i = 0; i < depth; i++) {
    base_buf_append_str(&type, ">>", NULL);
    base_buf_append_str(&text, "}]", NULL);
  }
  base_buf_append_byte(&type, 0, NULL);
  base_buf_append_str(&text, "}\n", NULL);
  base_buf_append_byte(&text, 0, NULL);
  same((char *)type.data, (char *)text.data);
  base_buf_done(&type);
  base_buf_done(&text);
}

/* A number of the stream s, below n. */
static uint32_t draw(uint64_t *s, uint32_t n) {
  *s = *s * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(*s >> 33) % n;
}

static void put_random(base_buf *out, uint64_t *s, const format_column *col) {
  static const char *const words[] = {"", "a", "b\\\"c", "Ã©\\u0001",
                                      "long enough to pass a vector"};
  if (col->nullable && draw(s, 5) == 0) {
    base_buf_append_str(out, "null", NULL);
    return;
  }
  uint32_t n = col->kind == FORMAT_FIXED_LIST ? (uint32_t)col->list_size : draw(s, 4);
  switch (col->kind) {
    case FORMAT_UTF8:
      base_buf_printf(out, NULL, "\"%s\"", words[draw(s, BASE_COUNT(words))]);
      break;
    case FORMAT_BOOL:
      base_buf_append_str(out, draw(s, 2) ? "true" : "false", NULL);
      break;
    case FORMAT_LIST:
    case FORMAT_FIXED_LIST:
      for (uint32_t i = 0; i < n; i++) {
        base_buf_append_byte(out, i == 0 ? '[' : ',', NULL);
        put_random(out, s, &col->children[0]);
      }
      base_buf_append_str(out, n == 0 ? "[]" : "]", NULL);
      break;
    case FORMAT_MAP:
      for (uint32_t i = 0; i < n; i++) {
        base_buf_printf(out, NULL, "%s\"k%u\":", i == 0 ? "{" : ",", i);
        put_random(out, s, &col->children[0].children[1]);
      }
      base_buf_append_str(out, n == 0 ? "{}" : "}", NULL);
      break;
    case FORMAT_STRUCT:
      for (int64_t i = 0; i < col->n_children; i++) {
        base_buf_printf(out, NULL, "%s\"%s\":", i == 0 ? "{" : ",",
                        col->children[i].name);
        put_random(out, s, &col->children[i]);
      }
      base_buf_append_str(out, "}", NULL);
      break;
    default:
      base_buf_printf(out, NULL, "%u", draw(s, 100));
  }
}

/* Rows of every shape, more than a child's first room: what is written is what was read, and yyjson finds
 * the same values in both. */
static void test_random_rows(void **state) {
  (void)state;
  static const char spec[] =
      "a: list<struct<x: int8, y: list<utf8>, z: fixed_size_list<bool, 3>>>; "
      "b: map<utf8, struct<m: map<large_utf8, large_list<int64>>, n: int16 not null>>; "
      "c: struct<p: struct<q: list_view<bool>, r: utf8> not null, s: list<list<bool>>>; "
      "d: fixed_size_list<struct<u: list<int32 not null>, v: bool>, 2>";
  weir_schema *schema = rows_schema(spec);
  const struct ArrowSchema *arrow = weir_schema_arrow(schema);
  base_buf text = {0};
  uint64_t seed = 5;
  format_column cols[4] = {{0}};
  for (int i = 0; i < 4; i++) {
    assert_int_equal(
        format_column_init(&cols[i], arrow->children[i], FORMAT_NESTED, "read", NULL),
        WEIR_OK);
  }
  for (int row = 0; row < 300; row++) {
    for (int i = 0; i < 4; i++) {
      base_buf_printf(&text, NULL, "%s\"%s\":", i == 0 ? "{" : ",", cols[i].name);
      put_random(&text, &seed, &cols[i]);
    }
    base_buf_append_str(&text, "}\n", NULL);
  }
  base_buf_append_byte(&text, 0, NULL);
  for (int slow = 0; slow < 2; slow++) {
    base_buf errors = {0};
    char *got = decode(schema, (char *)text.data, slow, 70, &errors), *at = got;
    assert_int_equal(errors.size, 0);
    assert_int_equal(strlen(got), text.size - 1);
    for (char *want = (char *)text.data; *want != 0;) {
      size_t n = strcspn(want, "\n"), m = strcspn(at, "\n");
      yyjson_doc *a = yyjson_read(want, n, 0), *b = yyjson_read(at, m, 0);
      assert_non_null(a);
      assert_non_null(b);
      assert_true(yyjson_equals(yyjson_doc_get_root(a), yyjson_doc_get_root(b)));
      yyjson_doc_free(a);
      yyjson_doc_free(b);
      want += n + 1;
      at += m + 1;
    }
    free(got);
  }
  for (int i = 0; i < 4; i++) format_column_done(&cols[i]);
  base_buf_done(&text);
  weir_schema_unref(schema);
}

static void expect_decoder(const char *spec, weir_status want, const char *message) {
  weir_schema *schema = rows_schema(spec);
  weir_ndjson_decoder *decoder = NULL;
  weir_error err = {0};
  assert_int_equal(weir_ndjson_decoder_new(schema, NULL, &decoder, &err), want);
  if (want != WEIR_OK) assert_string_equal(err.message, message);
  weir_ndjson_decoder_free(decoder);
  weir_schema_unref(schema);
}

static void test_what_cannot_be_read(void **state) {
  (void)state;
  expect_decoder(
      "a: list<struct<b: dense_union<x: int8=0>>>", WEIR_E_NOT_IMPLEMENTED,
      "column 'a[].b': type dense_union<x: int8=0> cannot be read from NDJSON; "
      "flat types, lists, structs and maps can");
  expect_decoder("a: struct<b: run_end_encoded<int32, utf8>>", WEIR_E_NOT_IMPLEMENTED,
                 "column 'a.b': type run_end_encoded<int32, utf8> cannot be read from "
                 "NDJSON; flat types, lists, structs and maps can");
  expect_decoder(
      "a: list<utf8_view>", WEIR_E_NOT_IMPLEMENTED,
      "column 'a[]': type utf8_view cannot be read from NDJSON; declare utf8 or "
      "binary");
  expect_decoder("a: struct<x: int8, x: int8>", WEIR_E_SCHEMA,
                 "column 'a': two columns are named 'x'; rows of JSON cannot tell them "
                 "apart");
  expect_decoder("a: fixed_size_list<fixed_size_list<int8, 1000000>, 1000>",
                 WEIR_E_NOT_IMPLEMENTED,
                 "column 'a': a row of its fixed-size lists takes more than 16777216 "
                 "slots; declare lists");
  expect_decoder("a: fixed_size_list<fixed_size_list<int8, 1000>, 1000>", WEIR_OK, "");
}

/* Nulls of five bytes that take a million slots each are bad data before they are out of memory. */
static void test_many_hidden_slots(void **state) {
  (void)state;
  weir_schema *schema = rows_schema("a: list<fixed_size_list<int8, 1000000>>");
  base_buf text = {0}, errors = {0};
  for (int i = 0; i < 200; i++)
    base_buf_append_str(&text, i == 0 ? "{\"a\":[null" : ",null", NULL);
  base_buf_append(&text, "]}", 3, NULL);
  char *rows = decode(schema, (char *)text.data, true, 1, &errors);
  assert_string_equal(rows, "");
  assert_int_equal(base_buf_append_byte(&errors, 0, NULL), WEIR_OK);
  assert_non_null(strstr((char *)errors.data, "column 'a[134]'"));
  assert_non_null(strstr((char *)errors.data, "is null in too many lists of fixed size"));
  free(rows);
  base_buf_done(&text);
  base_buf_done(&errors);
  weir_schema_unref(schema);
}

/* What shows the same bytes again and again is stopped, and the row is named. */
static void test_rows_without_end(void **state) {
  (void)state;
  weir_schema *schema = rows_schema("a: list<list<int8>>");
  weir_batch *batch =
      rows_batch(schema, "{\"a\":[[1]]}\n{\"a\":[[1,2],[3,4,5,6,7,8,9]]}\n");
  weir_ndjson_encoder *encoder = NULL;
  const uint8_t *data = NULL;
  size_t size = 0;
  weir_error err = {0};
  assert_int_equal(weir_ndjson_encoder_new(schema, &encoder, &err), WEIR_OK);
  ndjson_encoder_limit_row(encoder, 20);
  assert_int_equal(weir_ndjson_encoder_write(encoder, batch, &data, &size, &err),
                   WEIR_E_BAD_DATA);
  assert_int_equal(err.flags, WEIR_ERR_BAD_DATA);
  assert_int_equal(err.row, 1);
  assert_non_null(strstr(err.message, "column 'a[1]["));
  assert_non_null(strstr(err.message, "the row takes more than 1 GiB of text"));
  ndjson_encoder_limit_row(encoder, 40);
  assert_int_equal(weir_ndjson_encoder_write(encoder, batch, &data, &size, &err),
                   WEIR_OK);
  weir_ndjson_encoder_free(encoder);
  weir_batch_unref(batch);
  weir_schema_unref(schema);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_lists),
      cmocka_unit_test(test_structs),
      cmocka_unit_test(test_maps),
      cmocka_unit_test(test_errors_name_the_path),
      cmocka_unit_test(test_keys_given_twice),
      cmocka_unit_test(test_deep),
      cmocka_unit_test(test_random_rows),
      cmocka_unit_test(test_what_cannot_be_read),
      cmocka_unit_test(test_many_hidden_slots),
      cmocka_unit_test(test_rows_without_end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
