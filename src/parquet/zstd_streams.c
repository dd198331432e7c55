/* SPDX-License-Identifier: Apache-2.0 */
#include "zstd_streams.h"

typedef struct bit_writer {
  uint64_t bits;
  unsigned count; /* of bits; below 8 between steps */
  uint8_t *out;
} bit_writer;

PARQUET_INLINE void flush_bits(bit_writer *w) {
  parquet_store64(w->out, w->bits);
  w->out += w->count / 8;
  w->bits >>= w->count & ~7u;
  w->count &= 7;
}

PARQUET_INLINE void put_bits(bit_writer *w, uint64_t bits, unsigned count) {
  w->bits |= bits << w->count;
  w->count += count;
  flush_bits(w);
}

/* The four bytes before `at`: at most 44 bits, so that 64 hold them with what waits. Masked with 63, as
 * shifts of 64 bits are anyhow, entries stand for their lengths. */
PARQUET_INLINE uint32_t put_four(bit_writer *w, const uint32_t *pairs,
                                 const uint8_t *at) {
  uint16_t low, high;
  memcpy(&low, at - 4, sizeof(low));
  memcpy(&high, at - 2, sizeof(high));
  uint32_t first = pairs[high], second = pairs[low];
  w->bits |= (ENTRY_BITS(first) | ENTRY_BITS(second) << (first & 63)) << w->count;
  w->count = (w->count + first + second) & 63;
  flush_bits(w);
  return first | second;
}

/* 4.2.2: the last byte first, and a single 1 behind the first byte's bits. */
static uint8_t *close_stream(bit_writer *w) {
  put_bits(w, 1, 1);
  return w->out + (w->count > 0);
}

/* Bytes until a multiple of four is left. */
static uint32_t open_stream(bit_writer *w, const zstd_code *code, const uint8_t *data,
                            size_t *size) {
  uint32_t seen = 0;
  while (*size % 4 != 0) {
    uint32_t entry = code->single[data[--*size]];
    put_bits(w, ENTRY_BITS(entry), ENTRY_LENGTH(entry));
    seen |= entry;
  }
  return seen;
}

PARQUET_CLONES
static bool put_streams(const zstd_code *code, const uint8_t *const data[2],
                        const size_t sizes[2], uint8_t *const out[2], uint8_t *ends[2]) {
  bit_writer a = {.out = out[0]}, b = {.out = out[1]};
  size_t left_a = sizes[0], left_b = sizes[1];
  const uint8_t *from_a = data[0], *from_b = data[1];
  const uint32_t *pairs = code->pairs;
  uint32_t seen = open_stream(&a, code, from_a, &left_a);
  seen |= open_stream(&b, code, from_b, &left_b);
  while (left_a > 0 && left_b > 0) {
    seen |= put_four(&a, pairs, from_a + left_a);
    seen |= put_four(&b, pairs, from_b + left_b);
    left_a -= 4;
    left_b -= 4;
  }
  for (; left_a > 0; left_a -= 4) seen |= put_four(&a, pairs, from_a + left_a);
  for (; left_b > 0; left_b -= 4) seen |= put_four(&b, pairs, from_b + left_b);
  ends[0] = close_stream(&a);
  ends[1] = close_stream(&b);
  return (seen & UNKNOWN) == 0;
}

/* ---- 64 bytes at a time ----------------------------------------------------------------------- */

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

#define WIDE_TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")))

typedef struct wide_code {
  __m512i lengths[2], bits[2]; /* of the bytes below 128 */
} wide_code;

/* What goes on from step to step: bits that wait, below 8, in the last lane; how many, in all lanes. */
typedef struct wide_stream {
  __m512i spill, count;
  uint8_t *out;
  __mmask64 unknown;
} wide_stream;

/* The codes of 64 bytes, eight to a lane, and their lengths. Codes of neighbours are merged to 16, 32 and 64
 * bits; the later one comes first into the stream, and so does the last lane. */
WIDE_TARGET static inline void merge_codes(const wide_code *code, __m512i v,
                                           __m512i *bits, __m512i *lengths,
                                           __mmask64 *unknown) {
  const __m512i low8 = _mm512_set1_epi16(0xff), low16 = _mm512_set1_epi32(0xffff);
  const __m512i low32 = _mm512_set1_epi64(0xffffffff);
  const __m512i back = _mm512_set_epi64(0, 1, 2, 3, 4, 5, 6, 7);
  __m512i n = _mm512_permutex2var_epi8(code->lengths[0], v, code->lengths[1]);
  __m512i c = _mm512_permutex2var_epi8(code->bits[0], v, code->bits[1]);
  *unknown |= _mm512_testn_epi8_mask(n, n) | _mm512_movepi8_mask(v);
  __m512i later = _mm512_srli_epi16(n, 8);
  c = _mm512_or_si512(_mm512_srli_epi16(c, 8),
                      _mm512_sllv_epi16(_mm512_and_si512(c, low8), later));
  n = _mm512_add_epi16(_mm512_and_si512(n, low8), later);
  later = _mm512_srli_epi32(n, 16);
  c = _mm512_or_si512(_mm512_srli_epi32(c, 16),
                      _mm512_sllv_epi32(_mm512_and_si512(c, low16), later));
  n = _mm512_add_epi32(_mm512_and_si512(n, low16), later);
  later = _mm512_srli_epi64(n, 32);
  c = _mm512_or_si512(_mm512_srli_epi64(c, 32),
                      _mm512_sllv_epi64(_mm512_and_si512(c, low32), later));
  n = _mm512_add_epi64(_mm512_and_si512(n, low32), later);
  *bits = _mm512_permutexvar_epi64(back, c);
  *lengths = _mm512_permutexvar_epi64(back, n);
}

/* The 64 bytes before `at`. A lane has at least 8 bits, one a code, so that what it spills into the byte in
 * which the next one begins is its own. Each word is stored whole; the next one goes over its end. */
WIDE_TARGET static inline void put_sixty_four(wide_stream *w, const wide_code *code,
                                              const uint8_t *at) {
  const __m512i seven = _mm512_set1_epi64(7), zero = _mm512_setzero_si512();
  __m512i bits, n;
  merge_codes(code, _mm512_loadu_si512(at - 64), &bits, &n, &w->unknown);
  __m512i end = _mm512_add_epi64(n, _mm512_alignr_epi64(n, zero, 7));
  end = _mm512_add_epi64(end, _mm512_alignr_epi64(end, zero, 6));
  end = _mm512_add_epi64(end, _mm512_alignr_epi64(end, zero, 4));
  end = _mm512_add_epi64(end, w->count);
  __m512i begin = _mm512_sub_epi64(end, n), shift = _mm512_and_si512(begin, seven);
  __m512i byte = _mm512_srli_epi64(begin, 3), next = _mm512_srli_epi64(end, 3);
  __m512i done = _mm512_slli_epi64(_mm512_sub_epi64(next, byte), 3);
  __m512i spill = _mm512_srlv_epi64(bits, _mm512_sub_epi64(done, shift));
  __m512i word = _mm512_or_si512(_mm512_sllv_epi64(bits, shift),
                                 _mm512_alignr_epi64(spill, w->spill, 7));
  uint64_t words[8], bytes[8];
  _mm512_storeu_si512(words, word);
  _mm512_storeu_si512(bytes, byte);
  for (size_t k = 0; k < 8; k++) parquet_store64(w->out + bytes[k], words[k]);
  end = _mm512_permutexvar_epi64(seven, end);
  w->out += (uint64_t)_mm_cvtsi128_si64(_mm512_castsi512_si128(end)) / 8;
  w->count = _mm512_and_si512(end, seven);
  w->spill = spill;
}

WIDE_TARGET static void load_wide(const zstd_code *code, wide_code *out) {
  uint8_t bits[128];
  for (size_t i = 0; i < sizeof(bits); i++) bits[i] = (uint8_t)(code->single[i] >> 8);
  for (size_t k = 0; k < 2; k++) {
    out->lengths[k] = _mm512_loadu_si512(code->lengths + 64 * k);
    out->bits[k] = _mm512_loadu_si512(bits + 64 * k);
  }
}

/* What is not a multiple of 64 bytes comes first. */
WIDE_TARGET static wide_stream open_wide(const zstd_code *code, const uint8_t *data,
                                         size_t *size, uint8_t *out, uint32_t *seen) {
  bit_writer first = {.out = out};
  while (*size % 64 != 0) {
    uint32_t entry = code->single[data[--*size]];
    put_bits(&first, ENTRY_BITS(entry), ENTRY_LENGTH(entry));
    *seen |= entry;
  }
  return (wide_stream){_mm512_set1_epi64((int64_t)first.bits),
                       _mm512_set1_epi64((int64_t)first.count), first.out, 0};
}

WIDE_TARGET static uint8_t *close_wide(const wide_stream *w) {
  uint64_t spill[8];
  _mm512_storeu_si512(spill, w->spill);
  bit_writer last = {
      spill[7], (unsigned)_mm_cvtsi128_si32(_mm512_castsi512_si128(w->count)), w->out};
  return close_stream(&last);
}

/* As put_streams, of a narrow code. */
WIDE_TARGET static bool put_streams_wide(const zstd_code *code,
                                         const uint8_t *const data[2],
                                         const size_t sizes[2], uint8_t *const out[2],
                                         uint8_t *ends[2]) {
  wide_code wide;
  load_wide(code, &wide);
  size_t left_a = sizes[0], left_b = sizes[1];
  const uint8_t *from_a = data[0], *from_b = data[1];
  uint32_t seen = 0;
  wide_stream a = open_wide(code, from_a, &left_a, out[0], &seen);
  wide_stream b = open_wide(code, from_b, &left_b, out[1], &seen);
  for (; left_a > 0 && left_b > 0; left_a -= 64, left_b -= 64) {
    put_sixty_four(&a, &wide, from_a + left_a);
    put_sixty_four(&b, &wide, from_b + left_b);
  }
  for (; left_a > 0; left_a -= 64) put_sixty_four(&a, &wide, from_a + left_a);
  for (; left_b > 0; left_b -= 64) put_sixty_four(&b, &wide, from_b + left_b);
  ends[0] = close_wide(&a);
  ends[1] = close_wide(&b);
  return (seen & UNKNOWN) == 0 && (a.unknown | b.unknown) == 0;
}

static bool can_wide(const zstd_code *code) {
  return code->narrow && !code->portable && __builtin_cpu_supports("avx512vbmi") &&
         __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("bmi2");
}
#endif

bool zstd_put_streams(const zstd_code *code, const uint8_t *const data[2],
                      const size_t sizes[2], uint8_t *const out[2], uint8_t *ends[2]) {
#if defined(__x86_64__) && defined(__GNUC__)
  if (can_wide(code)) return put_streams_wide(code, data, sizes, out, ends);
#endif
  return put_streams(code, data, sizes, out, ends);
}

uint8_t *zstd_put_stream(const zstd_code *code, const uint8_t *data, size_t size,
                         uint8_t *out) {
  bit_writer w = {.out = out};
  uint32_t seen = open_stream(&w, code, data, &size);
  for (; size > 0; size -= 4) seen |= put_four(&w, code->pairs, data + size);
  return (seen & UNKNOWN) == 0 ? close_stream(&w) : NULL;
}
