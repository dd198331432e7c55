/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CRC-32, by folding with carry-less multiplication where the processor has it: "Fast CRC Computation
 * for Generic Polynomials Using PCLMULQDQ Instruction" (Gopal et al., Intel, 2009), reflected form;
 * the constants are x^n mod P of that paper's section on the gzip polynomial.
 */
#include <zlib.h>

#include "buffer.h"

static uint32_t crc_portable(uint32_t crc, const uint8_t *data, size_t size) {
  while (size > 0) {
    uInt part = size > (1u << 30) ? (1u << 30) : (uInt)size;
    crc = (uint32_t)crc32(crc, data, part);
    data += part;
    size -= part;
  }
  return crc;
}

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

#define FOLD_TARGET __attribute__((target("pclmul,sse4.1")))

FOLD_TARGET static inline __m128i fold(__m128i x, __m128i k, __m128i next) {
  __m128i low = _mm_clmulepi64_si128(x, k, 0x00);
  __m128i high = _mm_clmulepi64_si128(x, k, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

FOLD_TARGET static inline __m128i load(const uint8_t *p) {
  return _mm_loadu_si128((const __m128i *)(const void *)p);
}

/* 128 bits to 32: to 64 by one fold, then Barrett reduction. */
FOLD_TARGET static uint32_t reduce(__m128i x) {
  const __m128i k34 = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
  const __m128i k5 = _mm_set_epi64x(0, 0x163cd6124);
  const __m128i poly = _mm_set_epi64x(0x1f7011641, 0x1db710641);
  const __m128i mask = _mm_setr_epi32(-1, 0, -1, 0);
  __m128i t = _mm_clmulepi64_si128(x, k34, 0x10);
  x = _mm_xor_si128(_mm_srli_si128(x, 8), t);
  t = _mm_srli_si128(x, 4);
  x = _mm_xor_si128(_mm_clmulepi64_si128(_mm_and_si128(x, mask), k5, 0x00), t);
  t = _mm_and_si128(_mm_clmulepi64_si128(_mm_and_si128(x, mask), poly, 0x10), mask);
  x = _mm_xor_si128(x, _mm_clmulepi64_si128(t, poly, 0x00));
  return (uint32_t)_mm_extract_epi32(x, 1);
}

/* `size` is a multiple of 16 and at least 64; `crc` is already inverted. */
FOLD_TARGET static uint32_t crc_fold(uint32_t crc, const uint8_t *data, size_t size) {
  const __m128i k12 = _mm_set_epi64x(0x1c6e41596, 0x154442bd4);
  const __m128i k34 = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
  __m128i a = _mm_xor_si128(load(data), _mm_cvtsi32_si128((int)crc));
  __m128i b = load(data + 16), c = load(data + 32), d = load(data + 48);
  data += 64;
  size -= 64;
  for (; size >= 64; data += 64, size -= 64) {
    a = fold(a, k12, load(data));
    b = fold(b, k12, load(data + 16));
    c = fold(c, k12, load(data + 32));
    d = fold(d, k12, load(data + 48));
  }
  a = fold(a, k34, b);
  a = fold(a, k34, c);
  a = fold(a, k34, d);
  for (; size >= 16; data += 16, size -= 16) a = fold(a, k34, load(data));
  return reduce(a);
}

uint32_t parquet_crc32(uint32_t crc, const void *data, size_t size) {
  const uint8_t *bytes = data;
  if (size >= 64 && __builtin_cpu_supports("pclmul") &&
      __builtin_cpu_supports("sse4.1")) {
    size_t whole = size & ~(size_t)15;
    crc = ~crc_fold(~crc, bytes, whole);
    bytes += whole;
    size -= whole;
  }
  return crc_portable(crc, bytes, size);
}

#else

uint32_t parquet_crc32(uint32_t crc, const void *data, size_t size) {
  return crc_portable(crc, data, size);
}

#endif
