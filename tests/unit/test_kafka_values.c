/* SPDX-License-Identifier: Apache-2.0 */
/* Rows to messages of the kafka sink. ctest: connector kafka */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <weir/ipc.h>
#include "../../connectors/kafka/sink.h"
#include "support/rows.h"

/* Messages as "key=value;", "-" for none, with headers as "key=value{name:value,}"; or the error. */
static weir_status encode(kafka_sink *sink, const char *columns, const char *rows,
                          char out[512], weir_error *err) {
  weir_schema *schema = rows_schema(columns);
  weir_batch *batch = rows_batch(schema, rows);
  kafka_values *values = NULL;
  const kafka_value *v = NULL;
  int64_t n = 0;
  size_t used = 0;
  out[0] = '\0';
  if (sink->codec == NULL) sink->codec = &kafka_json;
  if (sink->max_message == 0) sink->max_message = 1000000;
  weir_status status = kafka_values_new(sink, schema, &values, err);
  if (status == WEIR_OK) status = kafka_values_encode(values, batch, &v, &n, err);
  for (int64_t i = 0; status == WEIR_OK && i < n; i++) {
    const char *name;
    const void *data;
    size_t size;
    assert_int_equal(v[i].row, i);
    used += (size_t)snprintf(
        out + used, 512 - used, "%.*s=%.*s", v[i].key ? (int)v[i].key_size : 1,
        v[i].key ? (const char *)v[i].key : "-", v[i].value ? (int)v[i].size : 1,
        v[i].value ? (const char *)v[i].value : "-");
    rd_kafka_headers_t *headers = kafka_values_headers(values, &v[i]);
    for (size_t h = 0;
         headers != NULL && rd_kafka_header_get_all(headers, h, &name, &data, &size) == 0;
         h++)
      used +=
          (size_t)snprintf(out + used, 512 - used, "%s%s:%.*s", h == 0 ? "{" : ",", name,
                           data ? (int)size : 1, data ? (const char *)data : "-");
    used += (size_t)snprintf(out + used, 512 - used, headers != NULL ? "};" : ";");
    if (headers != NULL) rd_kafka_headers_destroy(headers);
  }
  kafka_values_free(values);
  weir_batch_unref(batch);
  weir_schema_unref(schema);
  return status;
}

static void test_keys_and_values(void **state) {
  (void)state;
  static const struct {
    const char *key[2];
    size_t n_key;
    bool raw, upsert;
    const char *columns, *rows, *want;
  } cases[] = {
      {{0},
       0,
       false,
       false,
       "a: int64; b: utf8",
       "{\"a\":1,\"b\":\"x\"}\n{}\n",
       "-={\"a\":1,\"b\":\"x\"};-={\"a\":null,\"b\":null};"},
      {{"b"},
       1,
       false,
       false,
       "a: int64; b: utf8",
       "{\"a\":1,\"b\":\"x\"}\n{\"b\":\"\"}\n{}\n",
       "x={\"a\":1,\"b\":\"x\"};={\"a\":null,\"b\":\"\"};-={\"a\":null,\"b\":null};"},
      {{"a\"b"}, 1, false, false, "a\"b: int64", "{\"a\\\"b\":7}\n", "7={\"a\\\"b\":7};"},
      {{"b", "a"},
       2,
       false,
       false,
       "a: int64; b: utf8",
       "{\"a\":1,\"b\":\"x\"}\n",
       "{\"b\":\"x\",\"a\":1}={\"a\":1,\"b\":\"x\"};"},
      {{0},
       0,
       true,
       false,
       "v: utf8",
       "{\"v\":\"x\"}\n{}\n{\"v\":\"\"}\n",
       "-=x;-=-;-=;"},
      {{"v"}, 1, true, false, "v: utf8", "{\"v\":\"x\"}\n", "x=x;"},
      {{"k"},
       1,
       true,
       false,
       "k: int64; v: utf8",
       "{\"k\":5,\"v\":\"x\"}\n{\"v\":\"y\"}\n",
       "5=x;null=y;"},
      {{"a"},
       1,
       false,
       true,
       "a: int64; b: utf8; _op: utf8",
       "{\"a\":1,\"b\":\"x\",\"_op\":\"U\"}\n{\"a\":1,\"_op\":\"D\"}\n",
       "1={\"a\":1,\"b\":\"x\"};1=-;"},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    kafka_sink sink = {.key = (char **)(uintptr_t)cases[i].key,
                       .n_key = cases[i].n_key,
                       .codec = cases[i].raw ? &kafka_plain : &kafka_json,
                       .upsert = cases[i].upsert};
    char got[512];
    weir_error err = {0};
    if (encode(&sink, cases[i].columns, cases[i].rows, got, &err) != WEIR_OK)
      fail_msg("%s", err.message);
    assert_string_equal(got, cases[i].want);
  }
}

static void test_headers(void **state) {
  (void)state;
  static const struct {
    const char *type, *rows, *want;
  } cases[] = {
      {"map<utf8, utf8>", "{\"a\":1,\"h\":{\"x\":\"1\",\"y\":null}}\n{\"h\":{}}\n{}\n",
       "-={\"a\":1}{x:1,y:-};-={\"a\":null};-={\"a\":null};"},
      {"map<utf8, binary>", "{\"h\":{\"x\":\"eA==\",\"\":\"\"}}\n",
       "-={\"a\":null}{x:x,:};"},
      {"list<struct<key: utf8, value: binary>>",
       "{\"h\":[{\"key\":\"x\",\"value\":\"eA==\"},{\"key\":\"x\"}]}\n"
       "{\"h\":[{\"key\":\"z\",\"value\":\"eA==\"}]}\n",
       "-={\"a\":null}{x:x,x:-};-={\"a\":null}{z:x};"},
  };
  char got[512], columns[128], h[] = "h";
  weir_error err = {0};
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    kafka_sink sink = {.headers = h};
    snprintf(columns, sizeof(columns), "h: %s; a: int64", cases[i].type);
    if (encode(&sink, columns, cases[i].rows, got, &err) != WEIR_OK)
      fail_msg("%s", err.message);
    assert_string_equal(got, cases[i].want);
  }
  kafka_sink sink = {.headers = h};
  assert_int_equal(encode(&sink, "a: int64", "{}\n", got, &err), WEIR_E_SCHEMA);
  assert_non_null(strstr(err.message, "no column 'h'"));
  assert_int_equal(encode(&sink, "h: list<utf8>", "{}\n", got, &err), WEIR_E_SCHEMA);
  assert_non_null(strstr(err.message, "list<utf8>"));
  assert_int_equal(encode(&sink, "a: int64; h: list<struct<key: utf8, value: utf8>>",
                          "{}\n{\"h\":[{\"value\":\"x\"}]}\n", got, &err),
                   WEIR_E_BAD_DATA);
  assert_int_equal(err.row, 1);
  assert_int_equal(err.column, 1);
}

/* Rows of a batch that begins and ends within its buffers: headers of its own rows. */
static void test_headers_of_a_slice(void **state) {
  (void)state;
  char h[] = "h";
  kafka_sink sink = {.headers = h, .codec = &kafka_json, .max_message = 1000};
  weir_schema *schema = rows_schema("a: int64; h: map<utf8, utf8>");
  weir_batch *batch = rows_batch(schema,
                                 "{\"a\":1,\"h\":{\"x\":\"1\"}}\n"
                                 "{\"a\":2,\"h\":{\"y\":\"2\",\"z\":\"3\"}}\n"
                                 "{\"a\":3,\"h\":{\"w\":\"4\"}}\n"),
             *slice = NULL;
  kafka_values *values = NULL;
  const kafka_value *v = NULL;
  const char *name;
  const void *data;
  size_t size;
  int64_t n = 0;
  assert_int_equal(weir_batch_slice(batch, 1, 2, &slice, NULL), WEIR_OK);
  assert_int_equal(kafka_values_new(&sink, schema, &values, NULL), WEIR_OK);
  assert_int_equal(kafka_values_encode(values, slice, &v, &n, NULL), WEIR_OK);
  assert_int_equal(n, 2);
  rd_kafka_headers_t *headers = kafka_values_headers(values, &v[0]);
  assert_int_equal(rd_kafka_header_cnt(headers), 2);
  assert_int_equal(rd_kafka_header_get_all(headers, 1, &name, &data, &size), 0);
  assert_string_equal(name, "z");
  assert_memory_equal(data, "3", size);
  rd_kafka_headers_destroy(headers);
  headers = kafka_values_headers(values, &v[1]);
  assert_int_equal(rd_kafka_header_get_all(headers, 0, &name, &data, &size), 0);
  assert_string_equal(name, "w");
  rd_kafka_headers_destroy(headers);
  kafka_values_free(values);
  weir_batch_unref(slice);
  weir_batch_unref(batch);
  weir_schema_unref(schema);
}

/* As many rows a message as fit, each an Arrow stream of its own, none lost between two. */
static void test_arrow(void **state) {
  (void)state;
  enum { ROWS = 3000 };
  kafka_sink sink = {.codec = kafka_codec_find("arrow"), .max_message = 1000000};
  weir_schema *schema = rows_schema("a: int64; b: utf8");
  char *text = calloc(ROWS, 600), *p = text;
  for (int i = 0; i < ROWS; i++) p += sprintf(p, "{\"a\":%d,\"b\":\"%0500d\"}\n", i, i);
  weir_batch *batch = rows_batch(schema, text);
  kafka_values *values = NULL;
  const kafka_value *v = NULL;
  int64_t n = 0, at = 0;
  assert_int_equal(kafka_values_new(&sink, schema, &values, NULL), WEIR_OK);
  assert_int_equal(kafka_values_encode(values, batch, &v, &n, NULL), WEIR_OK);
  assert_true(n > 1 && n < 10);
  for (int64_t i = 0; i < n; i++) {
    weir_bytes bytes = {0};
    weir_ipc_reader *reader = NULL;
    weir_batch *got = NULL, *none = NULL;
    assert_int_equal(v[i].row, at);
    assert_true(v[i].size <= 512 * 1024);
    assert_int_equal(weir_bytes_copy(&bytes, v[i].value, v[i].size, NULL), WEIR_OK);
    assert_int_equal(weir_ipc_reader_open_bytes(&bytes, "m", NULL, &reader, NULL), 0);
    assert_int_equal(weir_ipc_reader_next(reader, &got, NULL), WEIR_OK);
    const int64_t *a = weir_batch_array(got)->children[0]->buffers[1];
    assert_int_equal(a[weir_batch_array(got)->children[0]->offset], at);
    at += weir_batch_rows(got);
    assert_int_equal(weir_ipc_reader_next(reader, &none, NULL), WEIR_OK);
    assert_null(none);
    weir_batch_unref(got);
    weir_ipc_reader_free(reader);
  }
  assert_int_equal(at, ROWS);
  kafka_values_free(values);
  weir_batch_unref(batch);
  weir_schema_unref(schema);
  free(text);
}

static void test_what_cannot_be_a_message(void **state) {
  (void)state;
  static const char *const key[] = {"a"};
  char got[512];
  weir_error err = {0};
  kafka_sink upsert = {.key = (char **)(uintptr_t)key, .n_key = 1, .upsert = true};
  assert_int_equal(encode(&upsert, "a: int64; _op: utf8",
                          "{\"a\":1,\"_op\":\"U\"}\n{\"_op\":\"D\"}\n", got, &err),
                   WEIR_E_BAD_DATA);
  assert_int_equal(err.row, 1);
  assert_int_equal(err.column, 0);
  assert_int_equal(encode(&upsert, "b: int64", "{}\n", got, &err), WEIR_E_SCHEMA);
  assert_non_null(strstr(err.message, "no column 'a'"));
  kafka_sink raw = {.codec = &kafka_plain};
  assert_int_equal(encode(&raw, "a: int64", "{}\n", got, &err), WEIR_E_SCHEMA);
  assert_int_equal(encode(&raw, "a: utf8; b: utf8", "{}\n", got, &err), WEIR_E_SCHEMA);
}

/* JSON has no text for it, and the key's columns are in an order of their own. */
static void test_a_value_without_a_text_names_its_column(void **state) {
  (void)state;
  static const char *const key[] = {"t"};
  kafka_sink sink = {.key = (char **)(uintptr_t)key,
                     .n_key = 1,
                     .codec = &kafka_json,
                     .max_message = 1000};
  const kafka_value *values = NULL;
  kafka_values *v = NULL;
  weir_error err = {0};
  int64_t n = 0;
  weir_schema *schema = rows_schema("a: int64; t: timestamp[s]");
  weir_batch *batch = rows_batch(schema,
                                 "{\"a\":1,\"t\":\"2024-02-29T00:00:00\"}\n"
                                 "{\"a\":2,\"t\":\"2024-02-29T00:00:00\"}\n");
  ((int64_t *)(uintptr_t)weir_batch_array(batch)->children[1]->buffers[1])[1] = INT64_MAX;
  assert_int_equal(kafka_values_new(&sink, schema, &v, NULL), WEIR_OK);
  assert_int_equal(kafka_values_encode(v, batch, &values, &n, &err), WEIR_E_BAD_DATA);
  assert_int_equal(err.row, 1);
  assert_int_equal(err.column, 1);
  kafka_values_free(v);
  weir_batch_unref(batch);
  weir_schema_unref(schema);
}

/* What the client takes is known before anything of the batch is taken; the headers count. */
static void test_a_message_too_large(void **state) {
  (void)state;
  char topic[] = "orders", h[] = "h", got[512];
  kafka_sink sink = {.topic = topic, .headers = h, .max_message = 160};
  weir_error err = {0};
  assert_int_equal(
      encode(&sink, "b: utf8; h: map<utf8, utf8>",
             "{\"b\":\"x\"}\n{\"b\":\"x\",\"h\":{\"a\":\"b\"}}\n", got, &err),
      WEIR_OK);
  assert_int_equal(
      encode(
          &sink, "b: utf8; h: map<utf8, utf8>",
          "{\"b\":\"x\"}\n{\"b\":\"x\",\"h\":{\"a\":\"0123456789012345678901234567890123"
          "4567890123456789012345678901234567890123456789\"}}\n",
          got, &err),
      WEIR_E_BAD_DATA);
  assert_int_equal(err.row, 1);
  assert_non_null(strstr(err.message, "max.message.bytes of topic orders"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_keys_and_values),
      cmocka_unit_test(test_headers),
      cmocka_unit_test(test_headers_of_a_slice),
      cmocka_unit_test(test_arrow),
      cmocka_unit_test(test_what_cannot_be_a_message),
      cmocka_unit_test(test_a_value_without_a_text_names_its_column),
      cmocka_unit_test(test_a_message_too_large),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
