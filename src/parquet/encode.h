/* SPDX-License-Identifier: Apache-2.0 */
/* The encodings of Parquet's Encodings.md that carry more than a copy. Each writes to `out`, which has
 * room for its bound and PARQUET_SLACK beyond, and returns the end of what it wrote. */
#ifndef WEIR_PARQUET_ENCODE_H
#define WEIR_PARQUET_ENCODE_H

#include "bits.h"

/* RLE / bit-packing hybrid ("Run Length Encoding / Bit-Packing Hybrid (RLE = 3)") without a length in
 * front. `values` has room for 8 more, which are overwritten with zeros. */
size_t encode_hybrid_bound(size_t n, unsigned width);
uint8_t *encode_hybrid(uint32_t *values, size_t n, unsigned width, uint8_t *out);
/* Definition levels of 0 and 1 taken from a bitmap that begins at bit 0; `ones` of its n bits are set. */
uint8_t *encode_hybrid_bitmap(const uint8_t *bits, size_t n, size_t ones, uint8_t *out);
/* Levels of nested columns, a byte each, all below 1 << width; width is 1 to 8. Reads PARQUET_SLACK bytes
 * behind the last one. */
size_t encode_levels_bound(size_t n);
uint8_t *encode_levels(const uint8_t *levels, size_t n, unsigned width, uint8_t *out);

/* Shown every value once, some at a time, just when the encoder has them at hand. */
typedef struct encode_witness {
  void (*look)(void *ctx, const void *values, size_t n);
  void *ctx;
} encode_witness;

/* "Delta Encoding (DELTA_BINARY_PACKED = 5)". `witness` may be NULL. */
size_t encode_delta_bound(size_t n, size_t width);
uint8_t *encode_delta32(const uint32_t *values, size_t n, const encode_witness *witness,
                        uint8_t *out);
uint8_t *encode_delta64(const uint64_t *values, size_t n, const encode_witness *witness,
                        uint8_t *out);
/* Average bits per value that delta encoding would take, from a few blocks spread over the page. */
double encode_delta_estimate(const void *values, size_t n, size_t width);

/* "Byte Stream Split (BYTE_STREAM_SPLIT = 9)": n * width bytes. `witness` may be NULL. */
void encode_split(const uint8_t *values, size_t n, size_t width,
                  const encode_witness *witness, uint8_t *out);

#endif
