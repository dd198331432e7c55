/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../connectors/generator/generator.h"
#include "support/rows.h"
#include "support/sources.h"

#define OPS &weir_generator_source_ops
#define NS_PER_S INT64_C(1000000000)

static char *read_all(const char *const *settings) {
  opened_source s = sources_open(OPS, settings, NULL);
  char *text = sources_read_text(&s, 1000);
  sources_close(&s);
  return text;
}

static void test_default_schema(void **state) {
  (void)state;
  static const char *const settings[] = {"rows", "3", NULL};
  char *text = read_all(settings);
  char *line = strchr(text, '\n');
  assert_non_null(line);
  *line++ = 0;
  assert_memory_equal(
      text, "{\"id\":0,\"ts\":\"2024-01-01T00:00:00.000000Z\",\"key\":\"key-00", 55);
  assert_memory_equal(
      line, "{\"id\":1,\"ts\":\"2024-01-01T00:00:00.001000Z\",\"key\":\"key-00", 55);
  free(text);
}

/* The same rows in batches of any size, from any position, again and again; other ones by another seed. */
static void test_rows_follow_from_seed_and_number(void **state) {
  (void)state;
  static const char *const whole[] = {"rows", "100", "seed", "5", NULL};
  static const char *const small[] = {"rows",       "100", "seed", "5",
                                      "batch_rows", "7",   NULL};
  static const char *const other[] = {"rows", "100", "seed", "6", NULL};
  char *want = read_all(whole), *got = read_all(small), *another = read_all(other);
  assert_string_equal(got, want);
  assert_string_not_equal(another, want);
  free(another);
  free(got);
  opened_source s = sources_open(OPS, small, NULL);
  char *first = sources_read_text(&s, 5);
  weir_bytes position = sources_position(&s);
  for (int round = 0; round < 2; round++) {
    char *rest = sources_read_text(&s, 1000);
    assert_int_equal(strlen(first) + strlen(rest), strlen(want));
    assert_string_equal(rest, want + strlen(first));
    free(rest);
    assert_null(sources_read(&s)); /* the end stays the end until a seek */
    sources_seek(&s, &position);
  }
  sources_close(&s);
  s = sources_open(OPS, whole, &position);
  char *rest = sources_read_text(&s, 1000);
  assert_string_equal(rest, want + strlen(first));
  sources_close(&s);
  free(rest);
  free(first);
  free(want);
  weir_bytes_release(&position);
}

static void test_every_flat_type(void **state) {
  (void)state;
  static const char *const settings[] = {"rows",     "2000",
                                         "nulls",    "30",
                                         "schema.a", "int8",
                                         "schema.b", "uint16",
                                         "schema.c", "int64",
                                         "schema.d", "float32",
                                         "schema.e", "float64",
                                         "schema.f", "bool",
                                         "schema.g", "decimal128(10, 2)",
                                         "schema.h", "decimal256(40, 0) not null",
                                         "schema.i", "large_utf8",
                                         "schema.j", "binary",
                                         "schema.k", "date32",
                                         "schema.l", "date64",
                                         "schema.m", "time32[ms]",
                                         "schema.n", "time64[ns]",
                                         "schema.o", "timestamp[s]",
                                         "schema.p", "timestamp[ns, UTC]",
                                         "schema.q", "duration[ms]",
                                         "schema.r", "float16",
                                         "schema.s", "fixed_size_binary[20]",
                                         "schema.t", "fixed_size_binary[1]",
                                         "schema.u", "uint64",
                                         "schema.v", "decimal128(38, 0)",
                                         NULL};
  opened_source s = sources_open(OPS, settings, NULL);
  weir_batch *batch = sources_read(&s);
  assert_int_equal(weir_batch_rows(batch), 2000);
  const struct ArrowArray *array = weir_batch_array(batch);
  for (int64_t i = 0; i < array->n_children; i++) {
    int64_t nulls = array->children[i]->null_count;
    if (i == 2 || i == 7) {
      assert_int_equal(nulls, 0); /* counts the rows; is not nullable */
    } else {
      assert_in_range(nulls, 450, 750);
    }
  }
  for (int64_t i = 0; i < 2000; i++) {
    assert_int_equal(((const int64_t *)array->children[2]->buffers[1])[i], i);
  }
  /* every value survives the way through its text: none is out of its type's range */
  char *text = rows_text(batch);
  weir_batch *again = rows_batch(weir_batch_schema(batch), text);
  char *second = rows_text(again);
  assert_string_equal(second, text);
  free(second);
  free(text);
  weir_batch_unref(again);
  weir_batch_unref(batch);
  sources_close(&s);
}

/* Batches come when the clock says so, never before, and none is lost. */
static void test_rate(void **state) {
  (void)state;
  static const char *const settings[] = {"rate", "1000", "rows", "150", NULL};
  opened_source s = sources_open(OPS, settings, NULL);
  weir_call *call = weir_call_new(0); /* no time to wait */
  weir_error err = {0};
  int32_t what = 0;
  weir_batch *batch = NULL;
  assert_int_equal(weir_generator_source_ops.read(&s.source, call, &what, &batch, &err),
                   WEIR_OK);
  assert_int_equal(what, WEIR_READ_NOTHING);
  sources_now += NS_PER_S / 1000 * 19;
  assert_int_equal(weir_generator_source_ops.read(&s.source, call, &what, &batch, &err),
                   WEIR_OK);
  assert_int_equal(what, WEIR_READ_NOTHING); /* a fiftieth of a second at a time */
  sources_now += NS_PER_S / 1000 * 81;
  assert_int_equal(weir_generator_source_ops.read(&s.source, call, &what, &batch, &err),
                   WEIR_OK);
  assert_int_equal(what, WEIR_READ_BATCH);
  assert_int_equal(weir_batch_rows(batch), 100);
  weir_batch_unref(batch);
  assert_int_equal(weir_generator_source_ops.read(&s.source, call, &what, &batch, &err),
                   WEIR_OK);
  assert_int_equal(what, WEIR_READ_NOTHING);
  weir_bytes position = sources_position(&s);
  sources_seek(&s, &position); /* the rate counts from here */
  weir_bytes_release(&position);
  sources_now += NS_PER_S;
  assert_int_equal(weir_generator_source_ops.read(&s.source, call, &what, &batch, &err),
                   WEIR_OK);
  assert_int_equal(what, WEIR_READ_BATCH);
  assert_int_equal(weir_batch_rows(batch),
                   50); /* `rows` is the end, however late it is */
  weir_batch_unref(batch);
  assert_int_equal(weir_generator_source_ops.read(&s.source, call, &what, &batch, &err),
                   WEIR_OK);
  assert_int_equal(what, WEIR_READ_END);
  weir_call_free(call);
  sources_close(&s);
}

static void test_refused_positions(void **state) {
  (void)state;
  static const char *const settings[] = {"rows", "10", "seed", "1", NULL};
  static const char *const other[] = {"rows", "10", "seed", "2", NULL};
  static const char *const types[] = {"rows",      "10",    "seed", "1",
                                      "schema.id", "int32", NULL};
  weir_error err = {0};
  opened_source s = sources_open(OPS, settings, NULL);
  weir_bytes position = sources_position(&s);
  sources_close(&s);
  assert_int_equal(sources_open_error(OPS, other, &position, &err),
                   WEIR_E_INVALID_CONFIG);
  assert_int_equal(sources_open_error(OPS, types, &position, &err),
                   WEIR_E_INVALID_CONFIG);
  for (size_t i = 0; i < position.size; i++) {
    weir_bytes cut = position;
    cut.size = i;
    assert_int_equal(sources_open_error(OPS, settings, &cut, &err), WEIR_E_CORRUPT);
  }
  for (size_t i = 0; i < 8; i++) {
    weir_bytes bent = {0};
    assert_int_equal(weir_bytes_copy(&bent, position.data, position.size, &err), WEIR_OK);
    ((uint8_t *)(uintptr_t)bent.data)[i] ^= 1;
    assert_int_equal(sources_open_error(OPS, settings, &bent, &err), WEIR_E_CORRUPT);
    weir_bytes_release(&bent);
  }
  weir_bytes_release(&position);
}

static void test_refused_options(void **state) {
  (void)state;
  static const char *const nested[] = {"schema.id", "int64", "schema.x", "list<int8>",
                                       NULL};
  static const char *const word[] = {"schema", "infer", NULL};
  static const char *const typo[] = {"schema.id", "int46", NULL};
  weir_error err = {0};
  assert_int_equal(sources_open_error(OPS, nested, NULL, &err), WEIR_E_NOT_IMPLEMENTED);
  assert_non_null(strstr(err.message, "option schema: column 'x'"));
  assert_int_equal(sources_open_error(OPS, word, NULL, &err), WEIR_E_INVALID_CONFIG);
  assert_int_equal(sources_open_error(OPS, typo, NULL, &err), WEIR_E_INVALID_CONFIG);
  assert_non_null(strstr(err.message, "column 'id'"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_default_schema),
      cmocka_unit_test(test_rows_follow_from_seed_and_number),
      cmocka_unit_test(test_every_flat_type),
      cmocka_unit_test(test_rate),
      cmocka_unit_test(test_refused_positions),
      cmocka_unit_test(test_refused_options),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
