/* SPDX-License-Identifier: Apache-2.0 */
#include "bits.h"

static uint64_t load_tail(const uint8_t *p, size_t bytes) {
  uint64_t v = 0;
  for (size_t i = 0; i < bytes; i++) v |= (uint64_t)p[i] << (8 * i);
  return v;
}

/* Up to 64 bits from any bit position, never reading past the byte of the last one. */
static uint64_t load_bits(const uint8_t *src, size_t bit, size_t n) {
  const uint8_t *p = src + bit / 8;
  unsigned shift = bit % 8;
  size_t bytes = (shift + n + 7) / 8;
  uint64_t v = bytes >= 8 ? parquet_load64(p) : load_tail(p, bytes);
  v >>= shift;
  if (bytes > 8) v |= (uint64_t)p[8] << (63 - shift) << 1; /* shift is not 0 here */
  return n == 64 ? v : v & ((UINT64_C(1) << n) - 1);
}

void bits_copy(uint8_t *dst, size_t dst_bit, const uint8_t *src, size_t src_bit,
               size_t n) {
  if (n == 0) return;
  dst += dst_bit / 8;
  unsigned shift = dst_bit % 8;
  if (shift != 0) {
    size_t first = 8 - shift < n ? 8 - shift : n;
    *dst =
        (uint8_t)((*dst & ((1u << shift) - 1)) | load_bits(src, src_bit, first) << shift);
    dst++;
    src_bit += first;
    n -= first;
  }
  if (src_bit % 8 == 0) {
    memcpy(dst, src + src_bit / 8, n / 8);
    dst += n / 8;
    src_bit += n & ~(size_t)7;
    n %= 8;
  }
  for (; n >= 64; n -= 64, src_bit += 64, dst += 8) {
    parquet_store64(dst, load_bits(src, src_bit, 64));
  }
  if (n > 0) {
    uint64_t v = load_bits(src, src_bit, n);
    for (size_t i = 0; i < (n + 7) / 8; i++) dst[i] = (uint8_t)(v >> (8 * i));
  }
}

void bits_set(uint8_t *dst, size_t dst_bit, size_t n) {
  static const uint8_t ones[64] = {
      255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
      255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
      255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
      255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255};
  while (n > 0) {
    size_t part = n < 512 ? n : 512;
    bits_copy(dst, dst_bit, ones, 0, part);
    dst_bit += part;
    n -= part;
  }
}

PARQUET_CLONES
size_t bits_count(const uint8_t *src, size_t src_bit, size_t n) {
  size_t count = 0;
  for (; n >= 64; n -= 64, src_bit += 64) {
    count += (size_t)__builtin_popcountll(load_bits(src, src_bit, 64));
  }
  if (n > 0) count += (size_t)__builtin_popcountll(load_bits(src, src_bit, n));
  return count;
}

/* Packing merges neighbours, always two into one: pairs of 32-bit values in 64-bit lanes first (which
 * compilers turn into vector shifts), then pairs of those as long as they fit 64 bits. */
enum { PACK_BLOCK = 64 };

PARQUET_INLINE void pack_pairs(const uint32_t *values, size_t pairs, unsigned width,
                               uint64_t *out) {
  for (size_t i = 0; i < pairs; i++) {
    uint64_t v = parquet_load64(values + 2 * i);
    out[i] = (v & 0xffffffffu) | (v >> 32) << width;
  }
}

PARQUET_INLINE void pack_merge(uint64_t *values, size_t n, unsigned width) {
  for (size_t i = 0; i < n; i++) values[i] = values[2 * i] | values[2 * i + 1] << width;
}

/* Four lanes of 2 * width bits, 33..64 each, to width bytes. */
PARQUET_INLINE void store_wide(const uint64_t *lane, unsigned width, uint8_t *out) {
  typedef unsigned __int128 u128;
  u128 low = (u128)lane[0] | (u128)lane[1] << (2 * width);
  u128 high = (u128)lane[2] | (u128)lane[3] << (2 * width);
  memcpy(out, &low, 16);
  if (width % 2 != 0) high = high << 4 | (out[width / 2] & 15u);
  memcpy(out + width / 2, &high, 16);
}

PARQUET_INLINE uint8_t *pack_block(const uint32_t *values, size_t n, unsigned width,
                                   uint8_t *out) {
  uint64_t lane[PACK_BLOCK / 2] = {0};
  pack_pairs(values, n / 2, width, lane);
  if (width > 16) {
    for (size_t i = 0; i < n / 8; i++, out += width) store_wide(lane + 4 * i, width, out);
    return out;
  }
  pack_merge(lane, n / 4, 2 * width);
  if (width > 8) {
    for (size_t i = 0; i < n / 8; i++, out += width) {
      unsigned __int128 v = (unsigned __int128)lane[2 * i] |
                            (unsigned __int128)lane[2 * i + 1] << (4 * width);
      memcpy(out, &v, 16);
    }
    return out;
  }
  for (size_t i = 0; i < n / 8; i++, out += width) {
    parquet_store64(out, lane[2 * i] | lane[2 * i + 1] << (4 * width));
  }
  return out;
}

PARQUET_CLONES
void bits_pack32(const uint32_t *values, size_t n, unsigned width, uint8_t *out) {
  if (width == 0) return;
  for (; n >= PACK_BLOCK; n -= PACK_BLOCK, values += PACK_BLOCK) {
    out = pack_block(values, PACK_BLOCK, width, out);
  }
  if (n > 0) pack_block(values, n, width, out);
}

void bits_pack64(const uint64_t *values, size_t n, unsigned width, uint8_t *out) {
  if (width == 64) {
    memcpy(out, values, n * 8);
    return;
  }
  unsigned __int128 pending = 0;
  unsigned bits = 0;
  for (size_t i = 0; i < n; i++) {
    pending |= (unsigned __int128)values[i] << bits;
    bits += width;
    if (bits >= 64) {
      parquet_store64(out, (uint64_t)pending);
      out += 8;
      pending >>= 64;
      bits -= 64;
    }
  }
  for (; bits > 0; bits -= 8, pending >>= 8) *out++ = (uint8_t)pending;
}

#define COMPACT(name, type)                                                           \
  PARQUET_CLONES                                                                      \
  static size_t name(const type *values, const uint8_t *valid, size_t n, type *out) { \
    size_t count = 0;                                                                 \
    for (size_t i = 0; i < n; i += 64) {                                              \
      uint64_t word = parquet_load64(valid + i / 8);                                  \
      size_t m = n - i < 64 ? n - i : 64;                                             \
      if (word == UINT64_MAX) {                                                       \
        memcpy(out + count, values + i, 64 * sizeof(type));                           \
        count += 64;                                                                  \
        continue;                                                                     \
      }                                                                               \
      for (size_t k = 0; k < m; k++, word >>= 1) {                                    \
        out[count] = values[i + k];                                                   \
        count += word & 1;                                                            \
      }                                                                               \
    }                                                                                 \
    return count;                                                                     \
  }

COMPACT(compact4, uint32_t)
COMPACT(compact8, uint64_t)

size_t bits_compact(const void *values, size_t width, const uint8_t *valid, size_t n,
                    void *out) {
  if (width == 4) return compact4(values, valid, n, out);
  if (width == 8) return compact8(values, valid, n, out);
  const uint8_t *from = values;
  uint8_t *to = out;
  size_t count = 0;
  for (size_t i = 0; i < n; i++) {
    if ((valid[i / 8] >> (i % 8) & 1) == 0) continue;
    memcpy(to + count * width, from + i * width, width);
    count++;
  }
  return count;
}

size_t bits_compact_bits(const uint8_t *values, const uint8_t *valid, size_t n,
                         uint8_t *out) {
  size_t count = 0;
  uint8_t byte = 0;
  for (size_t i = 0; i < n; i++) {
    if ((valid[i / 8] >> (i % 8) & 1) == 0) continue;
    byte |= (uint8_t)((values[i / 8] >> (i % 8) & 1) << (count % 8));
    if (++count % 8 == 0) {
      out[count / 8 - 1] = byte;
      byte = 0;
    }
  }
  if (count % 8 != 0) out[count / 8] = byte;
  return count;
}
