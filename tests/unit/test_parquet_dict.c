/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "parquet/dict.h"

static uint64_t state = 0x2545f4914f6cdd1du;

static uint64_t next_random(void) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

static uint32_t entries_before(uint64_t *seen, uint32_t n, uint64_t value) {
  uint32_t i = 0;
  while (i < n && seen[i] != value) i++;
  if (i == n) seen[i] = value;
  return i;
}

/* Numbers are given in order of first use, and each leads back to its value. */
static void check_fixed(uint32_t width, bool direct, bool runs) {
  enum { N = 1000, ROUNDS = 4 };
  parquet_dict dict;
  dict_init(&dict, width);
  weir_error err = {0};
  uint64_t seen[N * ROUNDS];
  if (direct) assert_int_equal(dict_use_direct(&dict, 100, 600, &err), WEIR_OK);
  for (int round = 0; round < ROUNDS; round++) {
    uint8_t values[N * 16];
    uint32_t indices[N];
    uint64_t wide[N], min = UINT64_MAX, max = 0;
    for (size_t i = 0; i < N; i++) {
      wide[i] =
          runs && i % 5 != 0 ? wide[i - 1] : 100 + next_random() % 500 * (1 + 9 * round);
      min = wide[i] < min ? wide[i] : min;
      max = wide[i] > max ? wide[i] : max;
      memset(values + i * width, 0, width);
      memcpy(values + i * width, &wide[i], width < 8 ? width : 8);
      if (width < 8) wide[i] &= (UINT64_C(1) << (8 * width)) - 1;
    }
    bool full = true;
    assert_int_equal(dict_map_fixed(&dict, values, N, min, max, indices, &full, &err),
                     WEIR_OK);
    assert_false(full);
    uint32_t known = 0;
    for (size_t i = 0; i < N; i++) {
      assert_true(indices[i] < dict.n);
      assert_memory_equal(dict.values.data + (size_t)indices[i] * width,
                          values + i * width, width);
      known = known < indices[i] ? indices[i] : known;
    }
    assert_int_equal(known + 1, dict.n);
    if (round == 0) {
      uint32_t n = 0;
      for (size_t i = 0; i < N; i++) {
        uint32_t entry = entries_before(seen, n, wide[i]);
        n += entry == n;
      }
      assert_int_equal(n, dict.n); /* no value has two entries */
    }
  }
  assert_true(!direct ||
              dict.direct == NULL); /* the later rounds were out of its range */
  dict_done(&dict);
}

static void test_fixed(void **unused) {
  (void)unused;
  const uint32_t widths[] = {2, 4, 8, 12, 16};
  for (size_t i = 0; i < 5; i++) {
    check_fixed(widths[i], false, false);
    check_fixed(widths[i], false, true);
  }
  check_fixed(4, true, false);
  check_fixed(8, true, true);
}

static void test_direct_takes_signed_ranges(void **unused) {
  (void)unused;
  parquet_dict dict;
  dict_init(&dict, 4);
  weir_error err = {0};
  assert_int_equal(dict_use_direct(&dict, (uint64_t)(int64_t)-5, 5, &err), WEIR_OK);
  assert_non_null(dict.direct);
  const int32_t values[] = {-5, 5, 0, -5};
  uint32_t indices[4];
  bool full = false;
  assert_int_equal(
      dict_map_fixed(&dict, values, 4, (uint64_t)(int64_t)-5, 5, indices, &full, &err),
      WEIR_OK);
  assert_non_null(dict.direct);
  assert_memory_equal(indices, ((uint32_t[]){0, 1, 2, 0}), sizeof(indices));
  dict_done(&dict);
  dict_init(&dict, 8);
  assert_int_equal(dict_use_direct(&dict, 0, UINT64_C(1) << 40, &err), WEIR_OK);
  assert_null(dict.direct);
  dict_done(&dict);
}

/* Lengths round the borders of the key, bytes that differ in one place only, NULs and empty values. */
static void test_bytes(void **unused) {
  (void)unused;
  enum { N = 900 };
  parquet_dict dict;
  dict_init(&dict, 0);
  weir_error err = {0};
  uint8_t data[N * 40];
  uint32_t offsets[N + 1] = {0}, indices[N];
  for (size_t i = 0; i < N; i++) {
    size_t size = next_random() % 34;
    uint8_t *value = data + offsets[i];
    memset(value, 0, size);
    if (size > 0) value[next_random() % size] = (uint8_t)(next_random() % 2);
    offsets[i + 1] = offsets[i] + (uint32_t)size;
  }
  /* Exactly as many bytes as there are, so that a sanitizer sees a read past the end. */
  uint8_t *exact = malloc(offsets[N]);
  memcpy(exact, data, offsets[N]);
  bool full = true;
  assert_int_equal(dict_map_bytes(&dict, exact, offsets, N, indices, &full, &err),
                   WEIR_OK);
  assert_false(full);
  const uint32_t *known = (const uint32_t *)(const void *)dict.offsets.data;
  for (size_t i = 0; i < N; i++) {
    size_t size = offsets[i + 1] - offsets[i];
    assert_int_equal(known[indices[i] + 1] - known[indices[i]], size);
    if (size > 0) {
      assert_memory_equal(dict.values.data + known[indices[i]], exact + offsets[i], size);
    }
    for (size_t k = 0; k < i; k++) {
      bool same =
          offsets[k + 1] - offsets[k] == size &&
          (size == 0 || memcmp(exact + offsets[k], exact + offsets[i], size) == 0);
      assert_int_equal(same, indices[i] == indices[k]);
    }
  }
  free(exact);
  dict_done(&dict);
}

/* A page that finds no room leaves no entry behind. */
static void test_full(void **unused) {
  (void)unused;
  enum { N = 1 << 16 };
  parquet_dict dict;
  dict_init(&dict, 8);
  weir_error err = {0};
  uint64_t *values = malloc(N * sizeof(*values));
  uint32_t *indices = malloc(N * sizeof(*indices));
  bool full = false;
  uint32_t before = 0;
  for (uint64_t page = 0; !full; page++) {
    assert_true(page < 16);
    before = dict.n;
    for (size_t i = 0; i < N; i++) values[i] = page * (N - 9) + i;
    assert_int_equal(dict_map_fixed(&dict, values, N, 0, 0, indices, &full, &err),
                     WEIR_OK);
  }
  assert_true(before > 0);
  assert_int_equal(dict.n, before);
  assert_int_equal(dict.values.size, (size_t)before * 8);
  dict_clear(&dict);
  assert_int_equal(dict_map_fixed(&dict, values, 100, 0, 0, indices, &full, &err),
                   WEIR_OK);
  assert_false(full);
  assert_int_equal(dict.n, 100);
  free(values);
  free(indices);
  dict_done(&dict);
}

static void test_sample(void **unused) {
  (void)unused;
  enum { N = 1 << 15 };
  uint64_t *values = malloc(N * sizeof(*values));
  for (size_t i = 0; i < N; i++) values[i] = i % 10;
  dict_sample_result result = dict_sample(values, NULL, 8, N);
  assert_int_equal(result.distinct, 10);
  assert_int_equal(result.repeats, 0);
  for (size_t i = 0; i < N; i++) values[i] = i;
  result = dict_sample(values, NULL, 8, N);
  assert_int_equal(result.distinct, result.total);
  assert_int_equal(result.once, result.total);
  for (size_t i = 0; i < N; i++) values[i] = 7;
  result = dict_sample(values, NULL, 8, N);
  assert_int_equal(result.distinct, 1);
  assert_true(result.repeats > result.total * 9 / 10);
  free(values);
}

/* Decimals are numbered as a hash table would number them, also from where they end to be decimals. */
static void check_decimals(double strange, size_t at, bool used) {
  enum { N = 3000, PAGES = 3 };
  weir_error err = {0};
  parquet_dict direct, hashed;
  dict_init(&direct, 8);
  dict_init(&hashed, 8);
  for (size_t page = 0; page < PAGES; page++) {
    double values[N];
    uint32_t a[N], b[N];
    bool full = true;
    for (size_t i = 0; i < N; i++)
      values[i] = (double)((int64_t)(next_random() % 4000) - 1000) / 100;
    if (page == 1 && at < N) values[at] = strange;
    if (page == 0) {
      values[0] = -10;
      values[1] = 29.99;
      assert_int_equal(dict_use_decimals(&direct, values, N, -10, 29.99, &err), WEIR_OK);
      assert_true(direct.decimals.scale == 100);
    }
    assert_int_equal(dict_map_fixed(&direct, values, N, 0, 0, a, &full, &err), WEIR_OK);
    assert_false(full);
    assert_int_equal(dict_map_fixed(&hashed, values, N, 0, 0, b, &full, &err), WEIR_OK);
    assert_memory_equal(a, b, sizeof(a));
    assert_int_equal(direct.n, hashed.n);
    assert_memory_equal(direct.values.data, hashed.values.data, 8 * (size_t)direct.n);
  }
  assert_int_equal(direct.decimals.scale != 0, used);
  dict_clear(&direct);
  assert_true(direct.decimals.scale == 0);
  dict_done(&direct);
  dict_done(&hashed);
}

static void test_decimals(void **unused) {
  (void)unused;
  static const double strange[] = {-0.0,   NAN,     INFINITY, -INFINITY, 0.001,    1e300,
                                   -1e300, 1000000, 0x1p52,   -0x1p53,   0.1 + 0.2};
  check_decimals(0, SIZE_MAX, true);
  check_decimals(-19.37, 0, true); /* within the slack */
  for (size_t i = 0; i < sizeof(strange) / sizeof(*strange); i++) {
    check_decimals(strange[i], i * 290, false);
  }
  weir_error err = {0};
  parquet_dict dict;
  dict_init(&dict, 8);
  const double halves[] = {0.5, 1.25, 1.0 / 3};
  assert_int_equal(dict_use_decimals(&dict, halves, 3, 1.0 / 3, 1.25, &err), WEIR_OK);
  assert_true(dict.decimals.scale == 0);
  assert_int_equal(dict_use_decimals(&dict, halves, 2, 0, 1e9, &err), WEIR_OK);
  assert_int_equal(dict_use_decimals(&dict, halves, 2, -INFINITY, NAN, &err), WEIR_OK);
  assert_true(dict.decimals.scale == 0);
  assert_int_equal(dict_use_decimals(&dict, halves, 2, 0.5, 1.25, &err), WEIR_OK);
  assert_true(dict.decimals.scale == 100);
  dict_done(&dict);
}

/* 60000 values that all come equally often, and as many as there are numbers. */
static void test_expected(void **unused) {
  (void)unused;
  enum { N = 65536 };
  weir_error err = {0};
  uint64_t *values = malloc(N * sizeof(*values));
  uint32_t *numbers = malloc(N * sizeof(*numbers)), *counts = malloc(N * sizeof(*counts));
  bool full = false;
  parquet_dict dict;
  dict_init(&dict, 8);
  for (size_t i = 0; i < N; i++) values[i] = next_random() % 60000;
  assert_int_equal(dict_map_fixed(&dict, values, N, 0, 0, numbers, &full, &err), WEIR_OK);
  double expected = dict_expected(&dict, numbers, N, counts);
  assert_true(expected > 57000 && expected < 63000);
  dict_clear(&dict);
  for (size_t i = 0; i < N; i++) values[i] = i;
  assert_int_equal(dict_map_fixed(&dict, values, N, 0, 0, numbers, &full, &err), WEIR_OK);
  assert_true(dict_expected(&dict, numbers, N, counts) > 1e9);
  dict_done(&dict);
  free(values);
  free(numbers);
  free(counts);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_fixed),    cmocka_unit_test(test_direct_takes_signed_ranges),
      cmocka_unit_test(test_bytes),    cmocka_unit_test(test_full),
      cmocka_unit_test(test_sample),   cmocka_unit_test(test_decimals),
      cmocka_unit_test(test_expected),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
