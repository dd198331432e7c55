/* SPDX-License-Identifier: Apache-2.0 */
/* Chunks of rows against rows one by one, on random lines, good and bad. */
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
#include "support/chunks.h"
#include "support/rows.h"

static weir_status feed(void *decoder, const uint8_t *data, size_t size, size_t *used,
                        weir_batch **out, weir_error *err) {
  return weir_ndjson_decoder_feed(decoder, data, size, 1, used, out, err);
}

static void pass_over(void *decoder, const uint8_t *data, size_t size, size_t *used) {
  weir_ndjson_decoder_skip(decoder, data, size, 1, used);
}

static weir_status flush(void *decoder, weir_batch **out, weir_error *err) {
  return weir_ndjson_decoder_flush(decoder, out, err);
}

static uint64_t line(const void *decoder) {
  return weir_ndjson_decoder_line(decoder);
}

/* way 1: row by row the slow way; 2: in chunks however short; 0: as it is. */
static char *decode(const char *spec, const weir_ndjson_options *options, int way,
                    const base_buf *text) {
  static const chunk_decoder calls = {feed, pass_over, flush, line};
  weir_schema *schema = rows_schema(spec);
  weir_ndjson_decoder *decoder = NULL;
  assert_int_equal(weir_ndjson_decoder_new(schema, options, &decoder, NULL), WEIR_OK);
  ndjson_decoder_force_slow(decoder, way == 1);
  if (way == 2) ndjson_decoder_force_chunks(decoder);
  char *answers = chunk_answers(&calls, decoder, text);
  weir_ndjson_decoder_free(decoder);
  weir_schema_unref(schema);
  return answers;
}

static void put_text(base_buf *buf) {
  static const char *const pieces[] = {
      "a", "bcdefghijklmnop", "\xc3\xa4", "\xe2\x82\xac", " ", "\\n", "\\\"", "\\u00e4"};
  static const char *const broken[] = {"\xff", "\t", "\\x", "\\ud800", "\"", "\\"};
  put(buf, "\"");
  for (unsigned n = pick(8) ? pick(4) : pick(30); n > 0; n--) {
    put(buf, pieces[pick(pick(5) ? 5 : 8)]);
  }
  if (pick(50 * calm) == 0) put(buf, broken[pick(BASE_COUNT(broken))]);
  put(buf, "\"");
}

static void put_value(base_buf *buf, unsigned column) {
  static const char *const others[] = {"null", "1",   "-0",    "\"x\"", "true",
                                       "{}",   "[1]", "01",    "1.5.",  "\"NaN\"",
                                       "nul",  "1e3", "\"1\"", ""};
  if (pick(12) == 0) return put(buf, "null");
  if (pick(15 * calm) == 0) return put(buf, others[pick(BASE_COUNT(others))]);
  if (column == 0) put_number(buf, "9");
  if (column == 1 || column == 6) put_text(buf);
  if (column == 2) put_double(buf, "9");
  if (column == 3) put(buf, "\""), put_stamp(buf), put(buf, "\"");
  if (column == 4) put(buf, pick(2) ? "true" : "false");
  if (column == 5) put(buf, "1"), put_digits(buf, pick(2));
  if (column == 7) put(buf, pick(calm) ? "12.50" : pick(2) ? "\"7\"" : "x");
}

#define SPEC                                                                    \
  "i: int64; s: utf8; x: float64; t: timestamp[us, UTC]; b: bool; n: int8; l: " \
  "large_utf8; d: decimal128(9, 2)"

/* Keys in their order or not, all of them or not, some unknown, some twice. */
static void put_row(base_buf *buf, const char *blank) {
  static const char *const names[] = {
      "i", "s", "x", "t",           "b",
      "n", "l", "d", "unknown key", "a key that is longer than what is guessed at once"};
  unsigned shift = pick(calm) ? 0 : pick(10), n = pick(calm) ? 8 : pick(11);
  put(buf, "{");
  for (unsigned i = 0; i < n; i++) {
    unsigned column = pick(50 * calm) ? (i + shift) % 10 : pick(10);
    put(buf, i > 0 ? "," : "");
    put(buf, blank);
    put(buf, "\"");
    put(buf, names[column]);
    put(buf, "\":");
    put(buf, blank);
    put_value(buf, column < 8 ? column : pick(6));
    if (pick(50) == 0) put(buf, " ");
  }
  put(buf, pick(100 * calm) ? "}" : "");
  put(buf, pick(300) ? "\n" : pick(2) ? "\n\n" : " \r\n");
}

static void test_random_lines(void **state) {
  (void)state;
  static const char *const blanks[] = {"", " ", "\t ", "\r"};
  for (int run = 0; run < 300; run++) {
    base_buf text = {0};
    weir_ndjson_options options = {.struct_size = sizeof(options),
                                   .batch_rows = 1 + pick(1000),
                                   .max_line = pick(4) ? 0 : 100 + pick(300),
                                   .refuse_unknown = pick(4) == 0};
    const char *blank = blanks[pick(4)];
    calm = pick(3) ? 1000 : 10;
    for (unsigned rows = 1 + pick(400); rows > 0; rows--) put_row(&text, blank);
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

/* Else this would take minutes. */
static void test_bad_rows_stay_cheap(void **state) {
  (void)state;
  weir_ndjson_options options = {.struct_size = sizeof(options)};
  for (int every = 1; every <= 100; every *= 10) {
    base_buf text = {0};
    for (int i = 0; i < 5000; i++) {
      put(&text, i % every ? "{\"i\":1,\"s\":\"some text\"}\n" : "{\"i\":1,\"s\":[]}\n");
    }
    char *fast = decode("i: int64; s: utf8", &options, 0, &text),
         *slow = decode("i: int64; s: utf8", &options, 1, &text);
    check_same(fast, slow, "bad rows");
    free(fast);
    free(slow);
    base_buf_done(&text);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_random_lines),
      cmocka_unit_test(test_bad_rows_stay_cheap),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
