/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The encodings of Parquet's Encodings.md, read on and on: each decoder stands somewhere in a page's bytes
 * and gives the next values of it. Nothing in the bytes is trusted. They must be followed by PARQUET_SLACK
 * bytes that can be read, whatever is in them.
 */
#ifndef WEIR_PARQUET_DECODE_H
#define WEIR_PARQUET_DECODE_H

#include "bits.h"

/* "Run Length Encoding / Bit-Packing Hybrid (RLE = 3)", without a length in front. */
typedef struct decode_hybrid {
  const uint8_t *at, *end;
  unsigned width; /* at most 32 */
  bool packed;    /* the run is: `left` values from `pos` on at `packed_at` */
  uint64_t left;
  uint32_t value; /* of an RLE run */
  const uint8_t *packed_at;
  uint64_t pos;
} decode_hybrid;

void decode_hybrid_init(decode_hybrid *in, const uint8_t *data, size_t size,
                        unsigned width);
/* The next n values; false: there are not so many. */
bool decode_hybrid_u32(decode_hybrid *in, uint32_t *out, size_t n);
/* Of a width of 8 at most, a byte each; `out` has room for 8 more. */
bool decode_hybrid_u8(decode_hybrid *in, uint8_t *out, size_t n);
/* Of width 1, as bits from out_bit on; the bits behind them in the last byte become zero. */
bool decode_hybrid_bits(decode_hybrid *in, uint8_t *out, size_t out_bit, size_t n);

/* "Delta Encoding (DELTA_BINARY_PACKED = 5)". */
typedef struct decode_delta {
  const uint8_t *at, *end;
  uint64_t total, left; /* values in all, and still to come */
  uint64_t mini;        /* values of a miniblock */
  uint64_t minis;
  bool started;
  uint64_t last;         /* the value before */
  uint64_t min;          /* of the block */
  const uint8_t *widths; /* of the block's miniblocks that are still to come */
  uint64_t minis_left;
  unsigned width; /* of the present miniblock, with `mini_left` values from `pos` on */
  uint64_t mini_left, pos;
  const uint8_t *packed_at;
} decode_delta;

/* False: not the beginning of such an encoding. */
bool decode_delta_init(decode_delta *in, const uint8_t *data, size_t size);
bool decode_delta_u64(decode_delta *in, uint64_t *out, size_t n);
bool decode_delta_u32(decode_delta *in, uint32_t *out, size_t n);
/* Where the encoding ends; `in` stays where it is. NULL: it is broken. */
const uint8_t *decode_delta_end(const decode_delta *in);

/* "Byte Stream Split (BYTE_STREAM_SPLIT = 9)": values [from, from + n) of `all`, each `width` bytes. */
void decode_split(const uint8_t *data, size_t all, size_t from, size_t n, size_t width,
                  uint8_t *out);

/* n values of `width` bits (at most 32) from value `pos` on. */
void decode_unpack32(const uint8_t *data, uint64_t pos, unsigned width, uint32_t *out,
                     size_t n);

PARQUET_INLINE uint32_t parquet_load32(const void *p) {
  uint32_t v;
  memcpy(&v, p, sizeof(v));
  return v;
}

#endif
