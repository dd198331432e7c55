/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels on bits: validity bitmaps, packing to a width, dropping null slots. Least significant bit
 * first, as Arrow's bitmaps and Parquet's RLE / DELTA packing both have it. */
#ifndef WEIR_PARQUET_BITS_H
#define WEIR_PARQUET_BITS_H

#include "buffer.h"

PARQUET_INLINE uint64_t parquet_load64(const void *p) {
  uint64_t v;
  memcpy(&v, p, sizeof(v));
  return v;
}

PARQUET_INLINE void parquet_store64(void *p, uint64_t v) {
  memcpy(p, &v, sizeof(v));
}

PARQUET_INLINE unsigned parquet_width(uint64_t v) {
  return v == 0 ? 0 : 64u - (unsigned)__builtin_clzll(v);
}

/* Copies n bits. The bits of dst before dst_bit are kept, those after the last one up to the byte's
 * end become zero. Reads no byte of src without a bit of the range. */
void bits_copy(uint8_t *dst, size_t dst_bit, const uint8_t *src, size_t src_bit,
               size_t n);
void bits_set(uint8_t *dst, size_t dst_bit, size_t n);
size_t bits_count(const uint8_t *src, size_t src_bit, size_t n);

/* Packs n values of `width` bits, n a multiple of 8, into n / 8 * width bytes; writes up to
 * PARQUET_SLACK bytes behind them. The values must fit the width. */
void bits_pack32(const uint32_t *values, size_t n, unsigned width, uint8_t *out);
void bits_pack64(const uint64_t *values, size_t n, unsigned width, uint8_t *out);

/* Copies the values whose bit is set to the front of `out`; returns how many. `valid` begins at bit 0
 * and is padded with zero bits to a multiple of 64 bits; `out` has room for n + 1 values. */
size_t bits_compact(const void *values, size_t width, const uint8_t *valid, size_t n,
                    void *out);
/* The same for values of one bit; out is padded with zero bits. */
size_t bits_compact_bits(const uint8_t *values, const uint8_t *valid, size_t n,
                         uint8_t *out);

#endif
