/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of numbers against those of the C library and of yyjson. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

#include <cmocka.h>

#include "format/digits.h"

static void check_double(double value) {
  char got[40] = {0}, pool[1024];
  yyjson_alc alc;
  yyjson_val val = {0};
  size_t n = format_double_write(value, got);
  got[n] = 0;
  unsafe_yyjson_set_real(&val, value);
  yyjson_alc_pool_init(&alc, pool, sizeof(pool));
  assert_string_equal(got, yyjson_val_write_opts(&val, 0, &alc, NULL, NULL));
  assert_true(strtod(got, NULL) == value);
}

static void test_doubles(void **state) {
  (void)state;
  uint64_t seed = 7;
  for (int i = 0; i < 200000; i++) {
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    double whole = (double)(seed >> (11 + (seed & 31))), any;
    check_double(whole / pow(10, (double)(seed >> 5 & 15)));
    check_double(-nextafter(whole / pow(10, (double)(seed >> 5 & 7)), 0));
    memcpy(&any, &seed, sizeof(any));
    if (isfinite(any)) check_double(any);
  }
  static const double some[] = {
      0.0, -0.0,   1e-3,      9.99e-4, 1e8,     99999999.999999, 1e-6,   0.1,      0.3,
      5.0, 123.45, 0.1 + 0.2, 1e8 - 1, 0.00125, 1234567.25,      2.5e-3, -7.000001};
  for (size_t i = 0; i < sizeof(some) / sizeof(some[0]); i++) check_double(some[i]);
}

static void test_whole_numbers(void **state) {
  (void)state;
  char got[40], want[40];
  for (uint64_t power = 1, i = 0; i < 20; i++, power *= 10) {
    for (uint64_t value = power - 2; value != power + 2; value++) {
      *format_uint_write(got, value) = 0;
      snprintf(want, sizeof(want), "%llu", (unsigned long long)value);
      assert_string_equal(got, want);
    }
  }
  *format_uint_write(got, UINT64_MAX) = 0;
  assert_string_equal(got, "18446744073709551615");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_doubles),
      cmocka_unit_test(test_whole_numbers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
