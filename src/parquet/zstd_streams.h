/* SPDX-License-Identifier: Apache-2.0 */
/* Huffman coded streams (RFC 8878, section 4.2.2). */
#ifndef WEIR_PARQUET_ZSTD_STREAMS_H
#define WEIR_PARQUET_ZSTD_STREAMS_H

#include "zstd_blocks.h"

/* An entry of `single` or `pairs`: bits 0-4 the length, from bit 8 the bits themselves, bit 7 set when a
 * byte has no code. A pair is looked up by its two bytes as they lie in memory; the second comes first
 * into the stream, which is read backwards. */
#define UNKNOWN 0x80u
#define ENTRY_LENGTH(entry) ((entry) & 31u)
#define ENTRY_BITS(entry) ((uint64_t)((entry) >> 8))

static inline size_t zstd_stream_bound(size_t size) {
  return size * ZSTD_CODE_MAX / 8 + PARQUET_SLACK;
}

/* The stream's end; NULL if a byte has no code. */
uint8_t *zstd_put_stream(const zstd_code *code, const uint8_t *data, size_t size,
                         uint8_t *out);
/* Two at once, since each alone waits for its own last step. Their ends go to `ends`; returns whether all
 * bytes have codes. */
bool zstd_put_streams(const zstd_code *code, const uint8_t *const data[2],
                      const size_t sizes[2], uint8_t *const out[2], uint8_t *ends[2]);

#endif
