/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "parquet/bloom.h"

/* Reference values of XXH64 with seed 0 (xxHash's specification and its users). */
static void test_hash(void **unused) {
  (void)unused;
  static const uint32_t offsets[] = {1, 1, 2, 5};
  parquet_values values = {(const uint8_t *)"-aabc", offsets, 3};
  base_buf hashes = {0};
  weir_error err = {0};
  assert_int_equal(bloom_hash(&values, 0, &hashes, &err), WEIR_OK);
  assert_int_equal(hashes.size, 24);
  uint64_t got[3];
  memcpy(got, hashes.data, sizeof(got));
  assert_true(got[0] == UINT64_C(0xef46db3751d8e999)); /* "" */
  assert_true(got[1] == UINT64_C(0xd24ec4f1a98c6e5b)); /* "a" */
  assert_true(got[2] == UINT64_C(0x44bc2cf5ad770999)); /* "abc" */
  /* Widths, and behind what is there. */
  values = (parquet_values){(const uint8_t *)"abcabc", NULL, 2};
  assert_int_equal(bloom_hash(&values, 3, &hashes, &err), WEIR_OK);
  assert_int_equal(hashes.size, 40);
  memcpy(got, hashes.data + 16, sizeof(got));
  assert_true(got[0] == got[1] && got[1] == got[2]);
  base_buf_done(&hashes);
}

static void test_size(void **unused) {
  (void)unused;
  assert_int_equal(bloom_size(1), 32);
  assert_int_equal(bloom_size(26), 32);
  assert_int_equal(bloom_size(27), 64);
  assert_int_equal(bloom_size(100000), 128 << 10);
  assert_int_equal(bloom_size(BLOOM_MAX_VALUES), BLOOM_MAX_BYTES);
  assert_int_equal(bloom_size(SIZE_MAX >> 16), BLOOM_MAX_BYTES);
}

/* BloomFilter.md: bit (salt * low half) >> 27 of each word. With 0 and 1 as halves that is known. */
static void test_filter(void **unused) {
  (void)unused;
  const uint64_t hashes[] = {0, UINT64_C(0xffffffff00000001)};
  base_buf out = {0};
  weir_error err = {0};
  assert_int_equal(bloom_put(hashes, 2, &out, &err), WEIR_OK);
  /* numBytes 32 (zigzag 64), then three unions whose field 1 is an empty struct. */
  static const uint8_t header[] = {0x15, 0x40, 0x1c, 0x1c, 0, 0, 0x1c, 0x1c,
                                   0,    0,    0x1c, 0x1c, 0, 0, 0};
  assert_int_equal(out.size, sizeof(header) + 32);
  assert_memory_equal(out.data, header, sizeof(header));
  static const uint32_t salts[] = {0x47b6137bu, 0x44974d91u, 0x8824ad5bu, 0xa2b7289du,
                                   0x705495c7u, 0x2df1424bu, 0x9efc4947u, 0x5c6bfb31u};
  for (size_t i = 0; i < 8; i++) {
    uint32_t word;
    memcpy(&word, out.data + sizeof(header) + 4 * i, 4);
    assert_int_equal(word, 1u | 1u << (salts[i] >> 27));
  }
  base_buf_done(&out);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_hash),
                                     cmocka_unit_test(test_size),
                                     cmocka_unit_test(test_filter)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
