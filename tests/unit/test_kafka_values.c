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

#include "../../connectors/kafka/sink.h"
#include "support/rows.h"

/* Messages as "key=value;", "-" for none; or the error. */
static weir_status encode(kafka_sink *sink, const char *columns, const char *rows,
                          char out[512], weir_error *err) {
  weir_schema *schema = rows_schema(columns);
  weir_batch *batch = rows_batch(schema, rows);
  kafka_values *values = NULL;
  const kafka_value *v = NULL;
  size_t used = 0;
  out[0] = '\0';
  weir_status status = kafka_values_new(sink, schema, &values, err);
  if (status == WEIR_OK) status = kafka_values_encode(values, batch, &v, err);
  for (int64_t i = 0; status == WEIR_OK && i < weir_batch_rows(batch); i++)
    used += (size_t)snprintf(
        out + used, 512 - used, "%.*s=%.*s;", v[i].key ? (int)v[i].key_size : 1,
        v[i].key ? (const char *)v[i].key : "-", v[i].value ? (int)v[i].size : 1,
        v[i].value ? (const char *)v[i].value : "-");
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
                       .raw = cases[i].raw,
                       .upsert = cases[i].upsert};
    char got[512];
    weir_error err = {0};
    if (encode(&sink, cases[i].columns, cases[i].rows, got, &err) != WEIR_OK)
      fail_msg("%s", err.message);
    assert_string_equal(got, cases[i].want);
  }
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
  kafka_sink raw = {.raw = true};
  assert_int_equal(encode(&raw, "a: int64", "{}\n", got, &err), WEIR_E_SCHEMA);
  assert_int_equal(encode(&raw, "a: utf8; b: utf8", "{}\n", got, &err), WEIR_E_SCHEMA);
}

/* JSON has no text for it, and the key's columns are in an order of their own. */
static void test_a_value_without_a_text_names_its_column(void **state) {
  (void)state;
  static const char *const key[] = {"t"};
  kafka_sink sink = {.key = (char **)(uintptr_t)key, .n_key = 1};
  const kafka_value *values = NULL;
  kafka_values *v = NULL;
  weir_error err = {0};
  weir_schema *schema = rows_schema("a: int64; t: timestamp[s]");
  weir_batch *batch = rows_batch(schema,
                                 "{\"a\":1,\"t\":\"2024-02-29T00:00:00\"}\n"
                                 "{\"a\":2,\"t\":\"2024-02-29T00:00:00\"}\n");
  ((int64_t *)(uintptr_t)weir_batch_array(batch)->children[1]->buffers[1])[1] = INT64_MAX;
  assert_int_equal(kafka_values_new(&sink, schema, &v, NULL), WEIR_OK);
  assert_int_equal(kafka_values_encode(v, batch, &values, &err), WEIR_E_BAD_DATA);
  assert_int_equal(err.row, 1);
  assert_int_equal(err.column, 1);
  kafka_values_free(v);
  weir_batch_unref(batch);
  weir_schema_unref(schema);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_keys_and_values),
      cmocka_unit_test(test_what_cannot_be_a_message),
      cmocka_unit_test(test_a_value_without_a_text_names_its_column),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
