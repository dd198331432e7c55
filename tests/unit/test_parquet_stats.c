/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "parquet/stats.h"

#define CHECK_BOUNDS(order, type, low, high, ...)                                     \
  do {                                                                                \
    const type values_[] = {__VA_ARGS__};                                             \
    stats_page page_;                                                                 \
    stats_of_page(order, values_, NULL, sizeof(type), sizeof(values_) / sizeof(type), \
                  &page_);                                                            \
    assert_true(page_.has);                                                           \
    const type low_ = (low), high_ = (high);                                          \
    assert_int_equal(page_.min.size, sizeof(type));                                   \
    assert_memory_equal(page_.min.data, &low_, sizeof(type));                         \
    assert_memory_equal(page_.max.data, &high_, sizeof(type));                        \
  } while (0)

static void test_integers(void **unused) {
  (void)unused;
  CHECK_BOUNDS(ORDER_INT32, int32_t, -3, 9, 1, -3, 9);
  CHECK_BOUNDS(ORDER_UINT32, uint32_t, 1, 0xfffffffdu, 1, 0xfffffffdu, 9);
  CHECK_BOUNDS(ORDER_INT64, int64_t, INT64_MIN, INT64_MAX, 0, INT64_MIN, INT64_MAX);
  CHECK_BOUNDS(ORDER_UINT64, uint64_t, 0, UINT64_MAX, 5, UINT64_MAX, 0);
}

static void test_every_position(void **unused) {
  (void)unused;
  int64_t values[50];
  for (size_t n = 1; n <= 50; n++) {
    for (size_t at = 0; at < n; at++) {
      for (size_t i = 0; i < n; i++) values[i] = 5;
      values[at] = -1;
      values[(at + 1) % n] = n > 1 ? 8 : -1;
      stats_page page;
      stats_of_page(ORDER_INT64, values, NULL, 8, n, &page);
      int64_t min, max;
      memcpy(&min, page.min.data, 8);
      memcpy(&max, page.max.data, 8);
      assert_int_equal(min, -1);
      assert_int_equal(max, n > 1 ? 8 : -1);
    }
  }
}

static void test_nan_is_never_a_bound(void **unused) {
  (void)unused;
  double values[40];
  for (size_t at = 0; at < 40; at++) {
    for (size_t i = 0; i < 40; i++) values[i] = 3;
    values[at] = NAN;
    stats_page page;
    stats_of_page(ORDER_DOUBLE, values, NULL, 8, 40, &page);
    assert_true(page.has && page.nan);
    const double three = 3;
    assert_memory_equal(page.min.data, &three, 8);
    assert_memory_equal(page.max.data, &three, 8);
  }
  const double nans[] = {NAN, -NAN};
  stats_page page;
  stats_of_page(ORDER_DOUBLE, nans, NULL, 8, 2, &page);
  assert_true(page.nan && !page.has);
  const uint16_t half_nan[] = {0x7e00};
  stats_of_page(ORDER_HALF, half_nan, NULL, 2, 1, &page);
  assert_true(page.nan && !page.has);
}

static void test_signed_zero_and_infinity(void **unused) {
  (void)unused;
  CHECK_BOUNDS(ORDER_DOUBLE, double, -0.0, 0.0, 0.0);
  CHECK_BOUNDS(ORDER_DOUBLE, double, -0.0, 0.0, -0.0);
  CHECK_BOUNDS(ORDER_DOUBLE, double, -0.0, 2.0, 0.0, 2.0);
  CHECK_BOUNDS(ORDER_FLOAT, float, -1.0f, 0.0f, -0.0f, -1.0f);
  CHECK_BOUNDS(ORDER_DOUBLE, double, INFINITY, INFINITY, INFINITY);
  CHECK_BOUNDS(ORDER_DOUBLE, double, -INFINITY, -INFINITY, -INFINITY);
  CHECK_BOUNDS(ORDER_HALF, uint16_t, 0x8000, 0x3c00, 0x0000, 0x3c00); /* 0, 1 */
  CHECK_BOUNDS(ORDER_HALF, uint16_t, 0xbc00, 0x0000, 0x8000, 0xbc00); /* -0, -1 */
}

static void test_decimals_are_signed_bytes(void **unused) {
  (void)unused;
  const uint8_t values[3][3] = {{0, 0, 1}, {0xff, 0xff, 0xff}, {0, 0, 0}};
  stats_page page;
  stats_of_page(ORDER_DECIMAL, values, NULL, 3, 3, &page);
  assert_memory_equal(page.min.data, values[1], 3);
  assert_memory_equal(page.max.data, values[0], 3);
}

static void test_bytes(void **unused) {
  (void)unused;
  const uint8_t data[] =
      "ab\xff"
      "aba"
      "abcdefghi"
      "abcdefghj";
  const uint32_t offsets[] = {0, 2, 3, 3, 6, 15, 24};
  stats_page page;
  stats_of_page(ORDER_BYTES, data, offsets, 0, 6, &page);
  assert_int_equal(page.min.size, 0);
  assert_int_equal(page.max.size, 1);
  assert_int_equal(page.max.data[0], 0xff);
  stats_of_page(ORDER_BYTES, data, offsets + 4, 0, 2, &page);
  assert_memory_equal(page.min.data, "abcdefghi", 9);
  assert_memory_equal(page.max.data, "abcdefghj", 9);
}

static void test_merge(void **unused) {
  (void)unused;
  stats_bounds bounds = {0};
  weir_error err = {0};
  const int32_t pages[3][2] = {{4, 6}, {-2, 5}, {9, 7}};
  for (size_t i = 0; i < 3; i++) {
    stats_page page;
    stats_of_page(ORDER_INT32, pages[i], NULL, 4, 2, &page);
    assert_int_equal(stats_merge(&bounds, ORDER_INT32, &page, &err), WEIR_OK);
  }
  const int32_t low = -2, high = 9;
  assert_memory_equal(bounds.min.data, &low, 4);
  assert_memory_equal(bounds.max.data, &high, 4);
  stats_done(&bounds);
}

static thrift_binary text(const char *value, size_t size) {
  return (thrift_binary){(const uint8_t *)value, size};
}

static int compare(thrift_binary a, thrift_binary b) {
  return stats_compare(ORDER_BYTES, a, b);
}

static void test_short_bounds(void **unused) {
  (void)unused;
  uint8_t room[STATS_MAX_BYTES + 4];
  char value[200];
  memset(value, 'a', sizeof(value));
  bool exact = false;
  thrift_binary out;
  assert_true(stats_short_max(text(value, 64), true, room, &out, &exact));
  assert_true(exact);
  assert_int_equal(out.size, 64);
  assert_true(stats_short_max(text(value, 200), true, room, &out, &exact));
  assert_false(exact);
  assert_int_equal(out.size, 64);
  assert_int_equal(out.data[63], 'b');
  assert_true(stats_short_min(text(value, 200), true, &out, &exact));
  assert_false(exact);
  assert_int_equal(out.size, 64);
  assert_true(compare(out, text(value, 200)) < 0);
}

static void test_short_bounds_of_ones(void **unused) {
  (void)unused;
  uint8_t room[STATS_MAX_BYTES + 4];
  char ones[STATS_WHOLE_BYTES + 1];
  memset(ones, 0xff, sizeof(ones));
  bool exact = false;
  thrift_binary out;
  assert_true(stats_short_max(text(ones, 100), false, room, &out, &exact));
  assert_true(exact);
  assert_int_equal(out.size, 100);
  assert_false(stats_short_max(text(ones, sizeof(ones)), false, room, &out, &exact));
  ones[10] = 0x41;
  assert_true(stats_short_max(text(ones, 100), false, room, &out, &exact));
  assert_int_equal(out.size, 11);
  assert_int_equal(out.data[10], 0x42);
}

/* Characters of 1 to 4 bytes at the cut and at the end, with the last ones of each length. */
static void test_short_bounds_stay_utf8(void **unused) {
  (void)unused;
  const char *tails[] = {
      "\x7f",         "\xc2\x80",         "\xdf\xbf",        "\xed\x9f\xbf",
      "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"};
  for (size_t t = 0; t < sizeof(tails) / sizeof(*tails); t++) {
    for (size_t lead = 58; lead <= 66; lead++) {
      char value[200];
      size_t size = strlen(tails[t]);
      memset(value, 'a', lead);
      for (size_t i = 0; i < 20; i++) memcpy(value + lead + i * size, tails[t], size);
      thrift_binary whole = text(value, lead + 20 * size), low, high;
      uint8_t room[STATS_MAX_BYTES + 4];
      bool exact = true;
      assert_true(stats_short_min(whole, true, &low, &exact));
      assert_true(base_utf8_valid(low.data, low.size));
      assert_true(compare(low, whole) < 0);
      assert_true(stats_short_max(whole, true, room, &high, &exact));
      assert_false(exact);
      assert_true(base_utf8_valid(high.data, high.size));
      assert_true(compare(high, whole) > 0);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_integers),
      cmocka_unit_test(test_every_position),
      cmocka_unit_test(test_nan_is_never_a_bound),
      cmocka_unit_test(test_signed_zero_and_infinity),
      cmocka_unit_test(test_decimals_are_signed_bytes),
      cmocka_unit_test(test_bytes),
      cmocka_unit_test(test_merge),
      cmocka_unit_test(test_short_bounds),
      cmocka_unit_test(test_short_bounds_of_ones),
      cmocka_unit_test(test_short_bounds_stay_utf8),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
