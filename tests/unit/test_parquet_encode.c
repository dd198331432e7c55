/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "parquet/encode.h"

/* Decoders as Encodings.md describes them, one bit after the other, so that they share nothing with the
 * encoders under test. */

static uint64_t state = 88172645463325252u;

static uint64_t next_random(void) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

static uint64_t get_bits(const uint8_t *data, size_t bit, unsigned width) {
  uint64_t v = 0;
  for (unsigned i = 0; i < width; i++, bit++) {
    v |= (uint64_t)(data[bit / 8] >> (bit % 8) & 1) << i;
  }
  return v;
}

static uint64_t get_uleb(const uint8_t **at) {
  uint64_t v = 0;
  for (unsigned shift = 0;; shift += 7) {
    uint8_t byte = *(*at)++;
    v |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80) return v;
  }
}

static int64_t get_zigzag(const uint8_t **at) {
  uint64_t v = get_uleb(at);
  return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

static uint64_t mask(unsigned width) {
  return width == 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1;
}

static void test_pack_every_width(void **unused) {
  (void)unused;
  enum { N = 200 };
  uint32_t values[N];
  uint64_t wide[N];
  uint8_t out[N * 8 + PARQUET_SLACK];
  for (unsigned width = 1; width <= 64; width++) {
    for (size_t n = 8; n <= N; n += 64) {
      for (size_t i = 0; i < n; i++) wide[i] = next_random() & mask(width);
      wide[0] = mask(width);
      memset(out, 0xee, sizeof(out));
      bits_pack64(wide, n, width, out);
      for (size_t i = 0; i < n; i++)
        assert_true(get_bits(out, i * width, width) == wide[i]);
      if (width > 32) continue;
      for (size_t i = 0; i < n; i++) values[i] = (uint32_t)wide[i];
      memset(out, 0xee, sizeof(out));
      bits_pack32(values, n, width, out);
      for (size_t i = 0; i < n; i++) {
        assert_true(get_bits(out, i * width, width) == values[i]);
      }
    }
  }
}

static void test_copy_bits_at_every_offset(void **unused) {
  (void)unused;
  uint8_t src[40], dst[48];
  for (size_t i = 0; i < sizeof(src); i++) src[i] = (uint8_t)next_random();
  for (size_t from = 0; from < 17; from++) {
    for (size_t to = 0; to < 17; to++) {
      for (size_t n = 0; n <= 200; n += 1 + n / 9) {
        memset(dst, 0xff, sizeof(dst));
        bits_copy(dst, to, src, from, n);
        for (size_t i = 0; i < to; i++) assert_true(get_bits(dst, i, 1) == 1);
        size_t ones = 0;
        for (size_t i = 0; i < n; i++) {
          assert_true(get_bits(dst, to + i, 1) == get_bits(src, from + i, 1));
          ones += get_bits(src, from + i, 1);
        }
        assert_int_equal(bits_count(src, from, n), ones);
      }
    }
  }
}

static void test_compact(void **unused) {
  (void)unused;
  enum { N = 300 };
  uint64_t values[N], got[N + 1];
  uint32_t small[N], got_small[N + 1];
  uint8_t valid[N / 8 + 16] = {0}, bits[N / 8 + 16], got_bits[N / 8 + 16];
  for (size_t i = 0; i < N; i++) {
    values[i] = next_random();
    small[i] = (uint32_t)values[i];
    if (i < 128 || next_random() % 3 != 0) valid[i / 8] |= (uint8_t)(1u << (i % 8));
  }
  for (size_t i = 0; i < sizeof(bits); i++) bits[i] = (uint8_t)next_random();
  size_t n = bits_compact(values, 8, valid, N, got), count = 0;
  assert_int_equal(bits_compact(small, 4, valid, N, got_small), n);
  assert_int_equal(bits_compact_bits(bits, valid, N, got_bits), n);
  for (size_t i = 0; i < N; i++) {
    if (get_bits(valid, i, 1) == 0) continue;
    assert_true(got[count] == values[i]);
    assert_true(got_small[count] == small[i]);
    assert_true(get_bits(got_bits, count, 1) == get_bits(bits, i, 1));
    count++;
  }
  assert_int_equal(count, n);
}

static void check_runs(const uint8_t *out, const uint8_t *end, const uint32_t *values,
                       size_t n, unsigned width) {
  const uint8_t *at = out;
  size_t i = 0;
  while (i < n) {
    assert_true(at < end);
    uint64_t head = get_uleb(&at);
    if ((head & 1) == 0) {
      uint32_t value = (uint32_t)get_bits(at, 0, (width + 7) / 8 * 8);
      at += (width + 7) / 8;
      assert_true(head >> 1 <= n - i);
      for (uint64_t k = 0; k < head >> 1; k++) assert_int_equal(values[i++], value);
      continue;
    }
    size_t count = (size_t)(head >> 1) * 8;
    for (size_t k = 0; k < count && i < n; k++, i++) {
      assert_true(get_bits(at, k * width, width) == values[i]);
    }
    at += (head >> 1) * width;
  }
  assert_ptr_equal(at, end);
}

static void check_hybrid(const uint32_t *values, size_t n, unsigned width) {
  size_t bound = encode_hybrid_bound(n, width) + PARQUET_SLACK;
  uint32_t *copy = malloc((n + 8) * sizeof(*copy));
  uint8_t *out = malloc(bound);
  memcpy(copy, values, n * sizeof(*copy));
  uint8_t *end = encode_hybrid(copy, n, width, out);
  assert_true((size_t)(end - out) + PARQUET_SLACK <= bound);
  check_runs(out, end, values, n, width);
  free(copy);
  free(out);
}

static void test_hybrid(void **unused) {
  (void)unused;
  enum { N = 2000 };
  uint32_t values[N];
  for (unsigned width = 1; width <= 32; width += 3) {
    for (size_t run = 1; run < 400; run = run * 3 + 1) {
      for (size_t i = 0; i < N;) {
        uint32_t value = (uint32_t)(next_random() & mask(width));
        for (size_t k = next_random() % (2 * run) + 1; k > 0 && i < N; k--)
          values[i++] = value;
      }
      for (size_t n = 0; n < 20; n++) check_hybrid(values, n, width);
      check_hybrid(values, N, width);
      check_hybrid(values, N - 5, width);
    }
  }
}

static void test_levels(void **unused) {
  (void)unused;
  enum { N = 1200 };
  uint32_t values[N];
  for (unsigned width = 1; width <= 8; width++) {
    for (size_t run = 1; run < 300; run = run * 3 + 1) {
      for (size_t i = 0; i < N;) {
        uint32_t value = (uint32_t)(next_random() & mask(width));
        for (size_t k = next_random() % (2 * run) + 1; k > 0 && i < N; k--)
          values[i++] = value;
      }
      for (size_t n = 0; n <= N; n += n < 70 ? 1 : 283) {
        size_t bound = encode_levels_bound(n) + PARQUET_SLACK;
        uint8_t *levels = malloc(n + PARQUET_SLACK), *out = malloc(bound);
        for (size_t i = 0; i < n; i++) levels[i] = (uint8_t)values[i];
        uint8_t *end = encode_levels(levels, n, width, out);
        assert_true((size_t)(end - out) + PARQUET_SLACK <= bound);
        check_runs(out, end, values, n, width);
        free(levels);
        free(out);
      }
    }
  }
}

/* A long steady stretch is one run, not thousands of packed groups. */
static void test_hybrid_shortens_runs(void **unused) {
  (void)unused;
  uint32_t values[1008] = {0};
  for (size_t i = 0; i < 1000; i++) values[i] = 5;
  uint8_t out[1200];
  assert_int_equal(encode_hybrid(values, 1000, 3, out) - out, 3);
}

static void test_hybrid_bitmap(void **unused) {
  (void)unused;
  uint8_t bits[8] = {0xf1, 0x03, 0}, out[64];
  assert_int_equal(encode_hybrid_bitmap(bits, 10, 10, out) - out, 2);
  assert_memory_equal(out, ((uint8_t[]){20, 1}), 2);
  assert_int_equal(encode_hybrid_bitmap(NULL, 10, 0, out) - out, 2);
  assert_memory_equal(out, ((uint8_t[]){20, 0}), 2);
  assert_int_equal(encode_hybrid_bitmap(bits, 10, 7, out) - out, 3);
  assert_memory_equal(out, ((uint8_t[]){2 << 1 | 1, 0xf1, 0x03}), 3);
}

static void check_delta(const uint64_t *want, size_t n, size_t width) {
  size_t bound = encode_delta_bound(n, width) + PARQUET_SLACK;
  uint8_t *out = malloc(bound);
  uint32_t *narrow = malloc((n + 1) * sizeof(*narrow));
  for (size_t i = 0; i < n; i++) narrow[i] = (uint32_t)want[i];
  uint8_t *end = width == 8 ? encode_delta64(want, n, NULL, out)
                            : encode_delta32(narrow, n, NULL, out);
  assert_true((size_t)(end - out) + PARQUET_SLACK <= bound);
  const uint8_t *at = out;
  uint64_t block = get_uleb(&at), minis = get_uleb(&at);
  assert_int_equal(block % 128, 0);
  assert_int_equal(block / minis % 32, 0);
  assert_int_equal(get_uleb(&at), n);
  uint64_t value = (uint64_t)get_zigzag(&at);
  size_t i = 0;
  if (n > 0) assert_true((width == 8 ? value : (uint32_t)value) == want[i++]);
  while (i < n) {
    uint64_t min = (uint64_t)get_zigzag(&at);
    const uint8_t *widths = at;
    at += minis;
    for (uint64_t m = 0; m < minis && i < n; m++) {
      for (uint64_t k = 0; k < block / minis && i < n; k++, i++) {
        value += min + get_bits(at, (size_t)k * widths[m], widths[m]);
        assert_true((width == 8 ? value : (uint32_t)value) == want[i]);
      }
      at += block / minis * widths[m] / 8;
    }
  }
  assert_ptr_equal(at, end);
  free(narrow);
  free(out);
}

static void test_delta(void **unused) {
  (void)unused;
  enum { N = 1500 };
  uint64_t values[N];
  const size_t sizes[] = {0, 1, 2, 63, 64, 65, 66, 256, 257, 258, 513, N};
  for (unsigned width = 0; width <= 64; width += 4) {
    for (size_t i = 0; i < N; i++) {
      values[i] = width == 0 ? 1000 + 3 * i : next_random() & mask(width);
    }
    for (size_t k = 0; k < sizeof(sizes) / sizeof(*sizes); k++) {
      check_delta(values, sizes[k], 8);
      if (width <= 32) check_delta(values, sizes[k], 4);
    }
  }
  /* The differences of the extremes do not fit the type; they wrap. */
  for (size_t i = 0; i < N; i++)
    values[i] = i % 2 ? (uint64_t)INT64_MAX : (uint64_t)INT64_MIN;
  check_delta(values, N, 8);
  for (size_t i = 0; i < N; i++) values[i] = i % 2 ? INT32_MAX : (uint32_t)INT32_MIN;
  check_delta(values, N, 4);
}

static void test_delta_estimate(void **unused) {
  (void)unused;
  uint64_t values[5000];
  for (size_t i = 0; i < 5000; i++) values[i] = i * 7;
  assert_true(encode_delta_estimate(values, 5000, 8) < 1);
  for (size_t i = 0; i < 5000; i++) values[i] = next_random();
  assert_true(encode_delta_estimate(values, 5000, 8) > 60);
  assert_true(encode_delta_estimate(values, 1, 8) == 0);
}

static void test_split(void **unused) {
  (void)unused;
  enum { N = 1500 };
  uint8_t values[N * 8], out[N * 8];
  for (size_t i = 0; i < sizeof(values); i++) values[i] = (uint8_t)next_random();
  const size_t widths[] = {2, 4, 8};
  for (size_t w = 0; w < 3; w++) {
    size_t width = widths[w];
    encode_split(values, N, width, NULL, out);
    for (size_t i = 0; i < N; i++) {
      for (size_t p = 0; p < width; p++) {
        assert_int_equal(out[p * N + i], values[i * width + p]);
      }
    }
  }
}

/* What a witness was shown, one after the other. */
typedef struct shown {
  uint8_t bytes[3000 * 8];
  size_t size, width;
} shown;

static void keep_shown(void *ctx, const void *values, size_t n) {
  shown *all = ctx;
  assert_true(n > 0 && all->size + n * all->width <= sizeof(all->bytes));
  memcpy(all->bytes + all->size, values, n * all->width);
  all->size += n * all->width;
}

static void test_witness_sees_all(void **unused) {
  (void)unused;
  static const size_t counts[] = {0, 1, 2, 256, 257, 258, 1024, 1025, 3000};
  uint64_t values[3000];
  uint8_t *out = malloc(encode_delta_bound(3000, 8) + PARQUET_SLACK);
  for (size_t i = 0; i < 3000; i++) values[i] = i * 2654435761u;
  for (size_t c = 0; c < sizeof(counts) / sizeof(*counts); c++) {
    for (int way = 0; way < 4; way++) {
      shown all = {.width = way % 2 == 0 ? 8 : 4};
      encode_witness witness = {keep_shown, &all};
      size_t n = counts[c];
      if (way == 0) encode_delta64(values, n, &witness, out);
      if (way == 1)
        encode_delta32((const uint32_t *)(const void *)values, n, &witness, out);
      if (way > 1) encode_split((const uint8_t *)values, n, all.width, &witness, out);
      assert_int_equal(all.size, n * all.width);
      if (n > 0) assert_memory_equal(all.bytes, values, all.size);
    }
  }
  free(out);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_witness_sees_all),
      cmocka_unit_test(test_pack_every_width),
      cmocka_unit_test(test_copy_bits_at_every_offset),
      cmocka_unit_test(test_compact),
      cmocka_unit_test(test_hybrid),
      cmocka_unit_test(test_levels),
      cmocka_unit_test(test_hybrid_shortens_runs),
      cmocka_unit_test(test_hybrid_bitmap),
      cmocka_unit_test(test_delta),
      cmocka_unit_test(test_delta_estimate),
      cmocka_unit_test(test_split),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
