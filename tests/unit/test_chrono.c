/* SPDX-License-Identifier: Apache-2.0 */
/* The common spelling of timestamps, read by words, against the parser of dates and the writer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "format/format.h"

/* Every year of two eras, every month and day that may be written, real or not. */
static void test_every_date(void **state) {
  (void)state;
  char text[32];
  for (int year = 0; year < 10000; year += year < 800 || year > 1900 ? 1 : 7) {
    for (int month = 0; month < 14; month++) {
      for (int day = 0; day < 33; day += day == 1 ? 26 : 1) {
        int64_t days = 0, seconds = 0;
        int n = snprintf(text, sizeof(text), "%04d-%02d-%02dT00:00:00", year, month, day);
        format_result want = format_date_parse((const uint8_t *)text, 10, &days);
        assert_int_equal(
            format_timestamp_parse((const uint8_t *)text, (size_t)n, 0, false, &seconds),
            want);
        if (want == FORMAT_OK) assert_int_equal(seconds, days * 86400);
      }
    }
  }
}

static void test_round_trips(void **state) {
  (void)state;
  static const int32_t units[] = {0, 3, 6, 9};
  uint64_t seed = 1;
  for (int i = 0; i < 100000; i++) {
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    int32_t unit = units[seed >> 62];
    int64_t value = (int64_t)seed, got = 0;
    if (unit < 9) value %= unit == 0 ? INT64_C(250000000000) : INT64_C(250000000000000);
    char text[FORMAT_CHRONO_TEXT + 1] = {0};
    size_t n = format_timestamp_write(value, unit, i & 1, text);
    assert_true(n > 0);
    assert_int_equal(format_timestamp_parse((const uint8_t *)text, n, unit, i & 1, &got),
                     FORMAT_OK);
    assert_int_equal(got, value);
  }
}

/* Each character replaced by each other one: a text that is taken means what is in it. */
static void test_no_other_character(void **state) {
  (void)state;
  const char good[] = "2024-02-29T23:59:58.123456Z";
  for (size_t at = 0; at < sizeof(good) - 1; at++) {
    for (int c = 0; c < 256; c++) {
      char text[sizeof(good)], again[FORMAT_CHRONO_TEXT];
      int64_t value = 0;
      memcpy(text, good, sizeof(good));
      text[at] = (char)c;
      format_result got = format_timestamp_parse((const uint8_t *)text, sizeof(good) - 1,
                                                 6, true, &value);
      if (got != FORMAT_OK) continue;
      if (at == 10) text[at] = 'T'; /* or a blank, or t */
      if (at == 19) text[at] = '.'; /* or a comma */
      if (at == 26) text[at] = 'Z'; /* or z */
      assert_int_equal(format_timestamp_write(value, 6, true, again), sizeof(good) - 1);
      assert_memory_equal(again, text, sizeof(good) - 1);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_every_date),
      cmocka_unit_test(test_round_trips),
      cmocka_unit_test(test_no_other_character),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
