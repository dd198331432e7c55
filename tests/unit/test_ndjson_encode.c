/* SPDX-License-Identifier: Apache-2.0 */
/* What only the encoder meets: slices, dictionaries, views, batches that it refuses. */
#include <nanoarrow/nanoarrow.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <weir/ndjson.h>

#include <cmocka.h>

#include "support/rows.h"

static void check_text(const weir_batch *batch, const char *want) {
  char *text = rows_text(batch);
  assert_string_equal(text, want);
  free(text);
}

static weir_status encode_error(const weir_batch *batch, weir_error *err) {
  weir_ndjson_encoder *encoder = NULL;
  const uint8_t *data = NULL;
  size_t size = 0;
  weir_status status = weir_ndjson_encoder_new(weir_batch_schema(batch), &encoder, err);
  if (status == WEIR_OK)
    status = weir_ndjson_encoder_write(encoder, batch, &data, &size, err);
  assert_null(data);
  weir_ndjson_encoder_free(encoder);
  return status;
}

/* A batch of one column that nanoarrow builds from texts; NULL is null. */
static weir_batch *text_batch(enum ArrowType type, const char *const *texts, int64_t n) {
  struct ArrowSchema schema = {0};
  struct ArrowArray array = {0};
  weir_schema *counted = NULL;
  weir_batch *batch = NULL;
  weir_error err = {0};
  ArrowSchemaInit(&schema);
  assert_int_equal(ArrowSchemaSetTypeStruct(&schema, 1), NANOARROW_OK);
  assert_int_equal(ArrowSchemaSetType(schema.children[0], type), NANOARROW_OK);
  assert_int_equal(ArrowSchemaSetName(schema.children[0], "v"), NANOARROW_OK);
  assert_int_equal(ArrowArrayInitFromSchema(&array, &schema, NULL), NANOARROW_OK);
  assert_int_equal(ArrowArrayStartAppending(&array), NANOARROW_OK);
  for (int64_t i = 0; i < n; i++) {
    if (texts[i] == NULL) {
      assert_int_equal(ArrowArrayAppendNull(array.children[0], 1), NANOARROW_OK);
    } else {
      assert_int_equal(ArrowArrayAppendString(array.children[0], ArrowCharView(texts[i])),
                       NANOARROW_OK);
    }
    assert_int_equal(ArrowArrayFinishElement(&array), NANOARROW_OK);
  }
  assert_int_equal(ArrowArrayFinishBuildingDefault(&array, NULL), NANOARROW_OK);
  if (weir_schema_new(&schema, &counted, &err) != WEIR_OK ||
      weir_batch_new(counted, &array, &batch, &err) != WEIR_OK) {
    fail_msg("%s", err.message);
  }
  weir_schema_unref(counted);
  return batch;
}

static void test_slices(void **state) {
  (void)state;
  weir_schema *schema = rows_schema("a: int64; b: utf8; c: bool; d: decimal128(9, 2)");
  weir_batch *batch =
      rows_batch(schema,
                 "{\"a\":1,\"b\":\"x\",\"c\":true,\"d\":1}\n{\"a\":2,\"b\":null}\n"
                 "{\"a\":3,\"b\":\"yz\",\"c\":true,\"d\":-0.25}\n");
  weir_batch *slice = NULL, *inner = NULL;
  weir_error err = {0};
  assert_int_equal(weir_batch_slice(batch, 1, 2, &slice, &err), WEIR_OK);
  check_text(slice,
             "{\"a\":2,\"b\":null,\"c\":null,\"d\":null}\n{\"a\":3,\"b\":\"yz\",\"c\":"
             "true,\"d\":"
             "-0.25}\n");
  assert_int_equal(weir_batch_slice(slice, 1, 1, &inner, &err), WEIR_OK);
  check_text(inner, "{\"a\":3,\"b\":\"yz\",\"c\":true,\"d\":-0.25}\n");
  weir_batch_unref(inner);
  assert_int_equal(weir_batch_slice(batch, 3, 0, &inner, &err), WEIR_OK);
  check_text(inner, "");
  weir_batch_unref(inner);
  weir_batch_unref(slice);
  weir_batch_unref(batch);
  weir_schema_unref(schema);
}

static void test_names_are_escaped(void **state) {
  (void)state;
  weir_schema *schema = rows_schema("a \"b\"\\\t: int8");
  weir_batch *batch = rows_batch(schema, "{\"a \\\"b\\\"\\\\\\t\":1}\n");
  check_text(batch, "{\"a \\\"b\\\"\\\\\\t\":1}\n");
  weir_batch_unref(batch);
  weir_schema_unref(schema);
}

static void test_views(void **state) {
  (void)state;
  static const char *const texts[] = {"short", NULL,
                                      "longer than the twelve bytes of a view", ""};
  weir_batch *batch = text_batch(NANOARROW_TYPE_STRING_VIEW, texts, 4);
  check_text(batch,
             "{\"v\":\"short\"}\n{\"v\":null}\n"
             "{\"v\":\"longer than the twelve bytes of a view\"}\n{\"v\":\"\"}\n");
  weir_batch_unref(batch);
}

static void test_strings_must_be_utf8(void **state) {
  (void)state;
  static const char *const texts[] = {"fine", "\xff"};
  weir_error err = {0};
  weir_batch *batch = text_batch(NANOARROW_TYPE_STRING, texts, 2);
  assert_int_equal(encode_error(batch, &err), WEIR_E_BAD_DATA);
  assert_int_equal(err.flags, WEIR_ERR_BAD_DATA);
  assert_int_equal(err.row, 1);
  assert_int_equal(err.column, 0);
  assert_non_null(strstr(err.message, "column 'v'"));
  weir_batch_unref(batch);
}

/* A dictionary column, with an index that `bad` makes point outside. */
static weir_batch *dictionary_batch(bool bad) {
  static const char *const words[] = {"red", NULL, "green"};
  struct ArrowSchema schema = {0};
  struct ArrowArray array = {0};
  weir_schema *counted = NULL;
  weir_batch *batch = NULL;
  weir_error err = {0};
  ArrowSchemaInit(&schema);
  assert_int_equal(ArrowSchemaSetTypeStruct(&schema, 1), NANOARROW_OK);
  struct ArrowSchema *field = schema.children[0];
  assert_int_equal(ArrowSchemaSetType(field, NANOARROW_TYPE_INT8), NANOARROW_OK);
  assert_int_equal(ArrowSchemaSetName(field, "v"), NANOARROW_OK);
  assert_int_equal(ArrowSchemaAllocateDictionary(field), NANOARROW_OK);
  assert_int_equal(ArrowSchemaInitFromType(field->dictionary, NANOARROW_TYPE_STRING),
                   NANOARROW_OK);
  assert_int_equal(ArrowArrayInitFromSchema(&array, &schema, NULL), NANOARROW_OK);
  assert_int_equal(ArrowArrayStartAppending(&array), NANOARROW_OK);
  struct ArrowArray *codes = array.children[0];
  for (size_t i = 0; i < 3; i++) {
    if (words[i] == NULL) {
      assert_int_equal(ArrowArrayAppendNull(codes->dictionary, 1), NANOARROW_OK);
    } else {
      assert_int_equal(ArrowArrayAppendString(codes->dictionary, ArrowCharView(words[i])),
                       NANOARROW_OK);
    }
  }
  for (int64_t i = 0; i < 5; i++) {
    if (i == 3) {
      assert_int_equal(ArrowArrayAppendNull(codes, 1), NANOARROW_OK);
    } else {
      assert_int_equal(ArrowArrayAppendInt(codes, i == 4 ? (bad ? 3 : 0) : 2 - i),
                       NANOARROW_OK);
    }
    assert_int_equal(ArrowArrayFinishElement(&array), NANOARROW_OK);
  }
  assert_int_equal(ArrowArrayFinishBuildingDefault(&array, NULL), NANOARROW_OK);
  if (weir_schema_new(&schema, &counted, &err) != WEIR_OK ||
      weir_batch_new(counted, &array, &batch, &err) != WEIR_OK) {
    fail_msg("%s", err.message);
  }
  weir_schema_unref(counted);
  return batch;
}

static void test_dictionaries(void **state) {
  (void)state;
  weir_error err = {0};
  weir_batch *batch = dictionary_batch(false);
  check_text(batch,
             "{\"v\":\"green\"}\n{\"v\":null}\n{\"v\":\"red\"}\n{\"v\":null}\n{\"v\":"
             "\"red\"}\n");
  weir_batch_unref(batch);
  batch = dictionary_batch(true);
  assert_int_equal(encode_error(batch, &err), WEIR_E_BAD_DATA);
  assert_int_equal(err.row, 4);
  weir_batch_unref(batch);
}

static void test_other_types_are_named(void **state) {
  (void)state;
  weir_schema *schema = rows_schema("a: int8; tags: list<run_end_encoded<int32, utf8>>");
  weir_ndjson_encoder *encoder = NULL;
  weir_error err = {0};
  assert_int_equal(weir_ndjson_encoder_new(schema, &encoder, &err),
                   WEIR_E_NOT_IMPLEMENTED);
  assert_non_null(strstr(err.message, "column 'tags[]': type run_end_encoded<"));
  assert_null(encoder);
  weir_schema_unref(schema);
  weir_ndjson_encoder_free(NULL);
}

static void test_another_schema_is_refused(void **state) {
  (void)state;
  weir_schema *schema = rows_schema("a: int8"), *other = rows_schema("a: int16");
  weir_batch *batch = rows_batch(other, "{\"a\":1}\n");
  weir_ndjson_encoder *encoder = NULL;
  const uint8_t *data = NULL;
  size_t size = 0;
  weir_error err = {0};
  assert_int_equal(weir_ndjson_encoder_new(schema, &encoder, &err), WEIR_OK);
  assert_int_equal(weir_ndjson_encoder_write(encoder, batch, &data, &size, &err),
                   WEIR_E_SCHEMA);
  weir_ndjson_encoder_free(encoder);
  weir_batch_unref(batch);
  weir_schema_unref(schema);
  weir_schema_unref(other);
}

/* Longer than what is reserved blindly, and made of what grows most. */
static void test_long_strings(void **state) {
  (void)state;
  char value[10001];
  const char *const texts[] = {value};
  memset(value, 1, 5000);
  memset(value + 5000, '"', 5000);
  value[10000] = 0;
  weir_batch *batch = text_batch(NANOARROW_TYPE_LARGE_STRING, texts, 1);
  char *text = rows_text(batch);
  assert_int_equal(strlen(text), 5000 * 6 + 5000 * 2 + 9);
  weir_batch *again = rows_batch(weir_batch_schema(batch), text);
  assert_memory_equal(weir_batch_array(again)->children[0]->buffers[2], value, 10000);
  free(text);
  weir_batch_unref(again);
  weir_batch_unref(batch);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_slices),
      cmocka_unit_test(test_names_are_escaped),
      cmocka_unit_test(test_views),
      cmocka_unit_test(test_strings_must_be_utf8),
      cmocka_unit_test(test_dictionaries),
      cmocka_unit_test(test_other_types_are_named),
      cmocka_unit_test(test_another_schema_is_refused),
      cmocka_unit_test(test_long_strings),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
