/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_PARQUET_CODEC_H
#define WEIR_PARQUET_CODEC_H

#include "format.h"
#include "zstd_blocks.h"

/* One compressor, used again for every page. */
typedef struct parquet_codec {
  enum parquet_codec_id id;
  int level;
  void *state; /* of zstd and gzip */
  zstd_code code;
  base_buf head;
  base_buf out;
} parquet_codec;

/* `codec` and `level` as in weir_parquet_options; checks them. */
weir_status codec_init(parquet_codec *codec, int32_t which, int32_t level,
                       weir_error *err);
void codec_done(parquet_codec *codec);
/* Result in codec->out, replaced. Not for UNCOMPRESSED. */
weir_status codec_compress(parquet_codec *codec, const void *data, size_t size,
                           weir_error *err);
/* The same without an attempt to shrink it, as a frame or block of the codec. */
weir_status codec_store(parquet_codec *codec, const void *data, size_t size,
                        weir_error *err);
/* A frame of zstd_blocks_write of at most ZSTD_FRAME_MAX bytes, those of `head` by libzstd; of zstd only. */
weir_status codec_huffman(parquet_codec *codec, const uint8_t *head, size_t head_size,
                          const uint8_t *data, size_t size, weir_error *err);
/* The same as codec_compress, but the first `stored` bytes are only stored where that can be. */
weir_status codec_compress_rest(parquet_codec *codec, const uint8_t *data, size_t size,
                                size_t stored, weir_error *err);

#endif
