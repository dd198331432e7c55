/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames of Zstandard (RFC 8878) that do without sequences: each block is raw, one byte repeated, or
 * literals in a Huffman code. Data without repeats, such as short texts one after the other, shrinks by
 * that as much as by the fast levels of libzstd, and in a third of the time.
 */
#ifndef WEIR_PARQUET_ZSTD_BLOCKS_H
#define WEIR_PARQUET_ZSTD_BLOCKS_H

#include "bits.h"

enum {
  ZSTD_BLOCK_MAX = 128 << 10, /* 3.1.1.2: Block_Maximum_Size */
  /* 3.1.1.1.2: a single segment's window is its content. Decoders need not have windows of more than 8 MiB,
   * and those that stream, as parquet-rs and parquet-java do, end at 128 MiB. */
  ZSTD_FRAME_MAX = 8 << 20,
  ZSTD_CODE_MAX = 11, /* 4.2.1: Max_Number_of_Bits */
  ZSTD_CODE_NARROW = 8
};

/* A Huffman code, kept from block to block and from frame to frame while it serves. */
typedef struct zstd_code {
  uint8_t lengths[256]; /* 0: the byte has no code */
  uint8_t tree[65];     /* 4.2.1.1: Huffman_Tree_Description */
  size_t tree_size;     /* 0: there is no code */
  uint32_t single[256]; /* see zstd_streams.h */
  uint32_t *pairs;
  bool
      narrow; /* no length is above ZSTD_CODE_NARROW, and no byte with a code above 127 */
  bool portable; /* not to be written 64 bytes at a time, for comparison */
} zstd_code;

void zstd_code_done(zstd_code *code);

/* All make frames of at most ZSTD_FRAME_MAX bytes of content. */
size_t zstd_blocks_bound(size_t size);
/* A frame of raw blocks; returns its size. */
size_t zstd_blocks_store(const uint8_t *data, size_t size, uint8_t *out);
/* A frame of what `frame`, which libzstd made without a dictionary or a checksum, holds `head` bytes of, and
 * then of `data` as whatever block is smallest. Without head there is no frame. `out` has room for
 * zstd_blocks_bound of both sizes and for that of the frame. */
weir_status zstd_blocks_write(zstd_code *code, const base_buf *frame, size_t head,
                              const uint8_t *data, size_t size, uint8_t *out,
                              size_t *written, weir_error *err);
/* A frame of `data` as raw blocks, and then of the `rest` bytes, at least 1, that `frame` holds; returns its
 * size. The same room. */
size_t zstd_blocks_join(const uint8_t *data, size_t size, const base_buf *frame,
                        size_t rest, uint8_t *out);

#endif
