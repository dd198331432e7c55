/* SPDX-License-Identifier: Apache-2.0 */
/* Chunks of rows against rows one by one, on random records, good and bad. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/csv.h>

#include <cmocka.h>

#include "base/base.h"
#include "format/csv.h"
#include "support/chunks.h"
#include "support/rows.h"

static weir_status feed(void *decoder, const uint8_t *data, size_t size, size_t *used,
                        weir_batch **out, weir_error *err) {
  return weir_csv_decoder_feed(decoder, data, size, 1, used, out, err);
}

static void pass_over(void *decoder, const uint8_t *data, size_t size, size_t *used) {
  weir_csv_decoder_skip(decoder, data, size, 1, used);
}

static weir_status flush(void *decoder, weir_batch **out, weir_error *err) {
  return weir_csv_decoder_flush(decoder, out, err);
}

static uint64_t line(const void *decoder) {
  return weir_csv_decoder_line(decoder);
}

/* way 1: row by row the slow way; 2: in chunks however short; 0: as it is. */
static char *decode(const char *spec, const weir_csv_options *options, int way,
                    const base_buf *text) {
  static const chunk_decoder calls = {feed, pass_over, flush, line};
  weir_schema *schema = rows_schema(spec);
  weir_csv_decoder *decoder = NULL;
  assert_int_equal(weir_csv_decoder_new(schema, options, &decoder, NULL), WEIR_OK);
  csv_decoder_force_slow(decoder, way == 1);
  if (way == 2) csv_decoder_force_chunks(decoder);
  char *answers = chunk_answers(&calls, decoder, text);
  weir_csv_decoder_free(decoder);
  weir_schema_unref(schema);
  return answers;
}

static void put_text(base_buf *buf) {
  static const char *const pieces[] = {
      "a", "bcdefghijklmnop", "\xc3\xa4", "\xe2\x82\xac", " ", "NA", "true", "0"};
  static const char *const quoted[] = {"\"\"", ",",    "\n",       "\r\n",
                                       "\r",   "text", "\"\"\"\"", "\xc3\xa4"};
  bool quotes = pick(3) == 0;
  if (quotes) put(buf, "\"");
  for (unsigned n = pick(8) ? pick(4) : pick(30); n > 0; n--) {
    put(buf, quotes ? quoted[pick(8)] : pieces[pick(8)]);
  }
  if (quotes) put(buf, "\"");
}

static void put_field(base_buf *buf, unsigned column) {
  static const char *const bools[] = {"true", "false", "True", "0", "truE", " true"};
  static const char *const broken[] = {"x", "\"",     "a\"b", "\r",   "\xff",
                                       ",", "\"a\"b", " 1",   "\"1\""};
  if (pick(12) == 0) return;
  if (pick(15 * calm) == 0) return put(buf, broken[pick(BASE_COUNT(broken))]);
  if (column == 0) put_number(buf, "0");
  if (column == 1) put_text(buf);
  if (column == 2) put_double(buf, "0");
  if (column == 3) put_stamp(buf);
  if (column == 4) put(buf, bools[pick(2 * calm) ? pick(2) : pick(6)]);
  if (column == 5) put_digits(buf, 2), put(buf, pick(4 * calm) ? "" : "9");
  if (column == 6) put_text(buf);
}

#define SPEC                                                                    \
  "i: int64; s: utf8; x: float64; t: timestamp[us, UTC]; b: bool; n: int8; l: " \
  "large_utf8"

static void test_random_records(void **state) {
  (void)state;
  static const char *const nulls[] = {NULL, "NA", "0"};
  for (int run = 0; run < 300; run++) {
    base_buf text = {0};
    weir_csv_options options = {.struct_size = sizeof(options),
                                .no_header = 1,
                                .batch_rows = 1 + pick(1000),
                                .null_text = nulls[pick(3)],
                                .max_line = pick(4) ? 0 : 100 + pick(200)};
    const char *end = pick(2) ? "\n" : "\r\n";
    calm = pick(3) ? 1000 : 10;
    for (unsigned rows = pick(400); rows > 0; rows--) {
      for (unsigned i = 0; i < 7; i++) {
        put_field(&text, i);
        if (i < 6 && pick(100 * calm)) put(&text, ",");
      }
      put(&text, pick(50 * calm) ? end : "\n\n");
    }
    if (text.size == 0) put(&text, "\n");
    char *fast = decode(SPEC, &options, 0, &text),
         *slow = decode(SPEC, &options, 1, &text),
         *chunks = decode(SPEC, &options, 2, &text);
    check_same(fast, slow, "as it is");
    check_same(chunks, slow, "in chunks");
    free(fast);
    free(slow);
    free(chunks);
    base_buf_done(&text);
  }
}

static void test_doubles(void **state) {
  (void)state;
  calm = 10;
  weir_csv_options options = {
      .struct_size = sizeof(options), .no_header = 1, .batch_rows = 1000000};
  base_buf text = {0}, want = {0};
  for (int i = 0; i < 100000; i++) {
    size_t from = text.size;
    put_digits(&text, 1 + pick(i % 2 ? 9 : 18));
    if (pick(4)) put(&text, "."), put_digits(&text, 1 + pick(i % 3 ? 6 : 20));
    if (pick(8) == 0) put(&text, pick(2) ? "e-" : "e"), put_digits(&text, 1 + pick(2));
    assert_int_equal(base_buf_append_byte(&text, 0, NULL), WEIR_OK);
    double value = strtod((char *)text.data + from, NULL);
    assert_int_equal(base_buf_append(&want, &value, sizeof(value), NULL), WEIR_OK);
    text.data[text.size - 1] = '\n';
  }
  weir_schema *schema = rows_schema("x: float64");
  weir_csv_decoder *decoder = NULL;
  weir_batch *batch = NULL;
  size_t used = 0;
  weir_error err = {0};
  assert_int_equal(weir_csv_decoder_new(schema, &options, &decoder, &err), WEIR_OK);
  assert_int_equal(
      weir_csv_decoder_feed(decoder, text.data, text.size, 1, &used, &batch, &err),
      WEIR_OK);
  if (batch == NULL)
    assert_int_equal(weir_csv_decoder_flush(decoder, &batch, &err), WEIR_OK);
  assert_int_equal(weir_batch_rows(batch) * 8, want.size);
  assert_memory_equal(weir_batch_array(batch)->children[0]->buffers[1], want.data,
                      want.size);
  weir_batch_unref(batch);
  weir_csv_decoder_free(decoder);
  weir_schema_unref(schema);
  base_buf_done(&text);
  base_buf_done(&want);
}

/* A bad row in each chunk, and in each row, costs no more than a few times as much as no chunks: else this
 * would take minutes. */
static void test_bad_rows_stay_cheap(void **state) {
  (void)state;
  weir_csv_options options = {.struct_size = sizeof(options), .no_header = 1};
  base_buf text = {0};
  for (int i = 0; i < 100000; i++) put(&text, i % 100 ? "1,some text\n" : "\n");
  char *fast = decode("i: int64; s: utf8", &options, 0, &text),
       *slow = decode("i: int64; s: utf8", &options, 1, &text);
  check_same(fast, slow, "a bad row in each chunk");
  free(fast);
  free(slow);
  base_buf_done(&text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_random_records),
      cmocka_unit_test(test_doubles),
      cmocka_unit_test(test_bad_rows_stay_cheap),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
