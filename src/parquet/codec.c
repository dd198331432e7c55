/* SPDX-License-Identifier: Apache-2.0 */
/* Compression.md: each page is one frame (zstd), one raw block (snappy, LZ4_RAW) or one gzip member. */
#include "codec.h"

#include <lz4.h>
#include <snappy-c.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

static weir_status no_memory(weir_error *err) {
  return weir_error_set(err, WEIR_E_NOMEM, 0,
                        "Parquet writer: no memory for the compressor");
}

static weir_status check_level(int32_t level, int low, int high, const char *name,
                               weir_error *err) {
  if (level >= low && level <= high) return WEIR_OK;
  return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                        "compression: the level of %s is from %d to %d, not %d", name,
                        low, high, (int)level);
}

static weir_status init_gzip(parquet_codec *codec, weir_error *err) {
  z_stream *stream = base_calloc(1, sizeof(*stream), err);
  if (stream == NULL) return WEIR_E_NOMEM;
  /* 15 bits of window, + 16: with gzip's header, not zlib's. */
  if (deflateInit2(stream, codec->level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) !=
      Z_OK) {
    free(stream);
    return no_memory(err);
  }
  codec->state = stream;
  return WEIR_OK;
}

weir_status codec_init(parquet_codec *codec, int32_t which, int32_t level,
                       weir_error *err) {
  *codec = (parquet_codec){0};
  switch (which) {
    case WEIR_PARQUET_NONE:
      codec->id = PARQUET_UNCOMPRESSED;
      return WEIR_OK;
    case WEIR_PARQUET_SNAPPY:
      codec->id = PARQUET_SNAPPY;
      return WEIR_OK;
    case WEIR_PARQUET_LZ4:
      codec->id = PARQUET_LZ4_RAW;
      return WEIR_OK;
    case WEIR_PARQUET_ZSTD:
      BASE_TRY(check_level(level, -7, 22, "zstd", err));
      codec->id = PARQUET_ZSTD;
      codec->level = level == 0 ? 1 : level;
      codec->state = ZSTD_createCCtx();
      return codec->state != NULL ? WEIR_OK : no_memory(err);
    case WEIR_PARQUET_GZIP:
      BASE_TRY(check_level(level, 0, 9, "gzip", err));
      codec->id = PARQUET_GZIP;
      codec->level = level == 0 ? 6 : level;
      return init_gzip(codec, err);
    default:
      return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                            "compression: unknown codec %d", (int)which);
  }
}

void codec_done(parquet_codec *codec) {
  if (codec->id == PARQUET_ZSTD) ZSTD_freeCCtx(codec->state);
  if (codec->id == PARQUET_GZIP && codec->state != NULL) {
    deflateEnd(codec->state);
    free(codec->state);
  }
  zstd_code_done(&codec->code);
  base_buf_done(&codec->head);
  base_buf_done(&codec->out);
  *codec = (parquet_codec){0};
}

static size_t gzip_once(z_stream *stream, const void *data, size_t size, uint8_t *out,
                        size_t room) {
  if (deflateReset(stream) != Z_OK) return 0;
  stream->next_in = (z_const Bytef *)(uintptr_t)data;
  stream->avail_in = (uInt)size;
  stream->next_out = out;
  stream->avail_out = (uInt)room;
  return deflate(stream, Z_FINISH) == Z_STREAM_END ? room - stream->avail_out : 0;
}

static size_t bound_of(const parquet_codec *codec, size_t size) {
  switch (codec->id) {
    case PARQUET_ZSTD:
      return ZSTD_compressBound(size);
    case PARQUET_SNAPPY:
      return snappy_max_compressed_length(size);
    case PARQUET_LZ4_RAW:
      return (size_t)LZ4_compressBound((int)size);
    default:
      return deflateBound(codec->state, (uLong)size) + 32;
  }
}

weir_status codec_compress(parquet_codec *codec, const void *data, size_t size,
                           weir_error *err) {
  if (size > LZ4_MAX_INPUT_SIZE) {
    return weir_error_set(err, WEIR_E_INTERNAL, 0, "Parquet writer: a page of %zu bytes",
                          size);
  }
  size_t bound = bound_of(codec, size), written = 0;
  BASE_TRY(parquet_reserve(&codec->out, bound, err));
  uint8_t *out = codec->out.data;
  switch (codec->id) {
    case PARQUET_ZSTD:
      written = ZSTD_compressCCtx(codec->state, out, bound, data, size, codec->level);
      if (ZSTD_isError(written)) written = 0;
      break;
    case PARQUET_SNAPPY:
      written = bound;
      if (snappy_compress(data, size, (char *)out, &written) != SNAPPY_OK) written = 0;
      break;
    case PARQUET_LZ4_RAW:
      written = (size_t)LZ4_compress_default(data, (char *)out, (int)size, (int)bound);
      break;
    default:
      written = gzip_once(codec->state, data, size, out, bound);
      break;
  }
  if (written == 0) {
    return weir_error_set(err, WEIR_E_INTERNAL, 0,
                          "Parquet writer: the compressor failed on %zu bytes", size);
  }
  codec->out.size = written;
  return WEIR_OK;
}

/* lz4_Block_format.md: the token and the length of a sequence's literals. */
static uint8_t *put_lz4_literals(size_t size, uint8_t *out) {
  *out++ = (uint8_t)((size < 15 ? size : 15) << 4);
  if (size < 15) return out;
  size_t left = size - 15;
  for (; left >= 255; left -= 255) *out++ = 255;
  *out++ = (uint8_t)left;
  return out;
}

/* One last sequence, which is literals only. */
static size_t store_lz4(const uint8_t *data, size_t size, uint8_t *out) {
  uint8_t *to = put_lz4_literals(size, out);
  memcpy(to, data, size);
  return (size_t)(to - out) + size;
}

/* format_description.txt of snappy: the length, then literals whose length - 1 takes 2 bytes. */
static size_t store_snappy(const uint8_t *data, size_t size, uint8_t *out) {
  enum { LITERAL_MAX = 1 << 16, TAG_TWO_BYTES = 61 << 2 };
  uint8_t *to = parquet_store_uleb(out, size);
  while (size > 0) {
    size_t part = size < LITERAL_MAX ? size : LITERAL_MAX;
    *to++ = TAG_TWO_BYTES;
    *to++ = (uint8_t)(part - 1);
    *to++ = (uint8_t)((part - 1) >> 8);
    memcpy(to, data, part);
    to += part;
    data += part;
    size -= part;
  }
  return (size_t)(to - out);
}

weir_status codec_store(parquet_codec *codec, const void *data, size_t size,
                        weir_error *err) {
  bool too_large = size > (codec->id == PARQUET_ZSTD ? ZSTD_FRAME_MAX : INT32_MAX);
  if (codec->id == PARQUET_GZIP || too_large) {
    return codec_compress(codec, data, size, err);
  }
  BASE_TRY(parquet_reserve(&codec->out, size + size / 255 + 32, err));
  uint8_t *out = codec->out.data;
  codec->out.size = codec->id == PARQUET_ZSTD      ? zstd_blocks_store(data, size, out)
                    : codec->id == PARQUET_LZ4_RAW ? store_lz4(data, size, out)
                                                   : store_snappy(data, size, out);
  return WEIR_OK;
}

/* A base_buf for another: what libzstd or lz4 has just made becomes codec->head. */
static void keep_out(parquet_codec *codec) {
  base_buf head = codec->head;
  codec->head = codec->out;
  codec->out = head;
}

weir_status codec_huffman(parquet_codec *codec, const uint8_t *head, size_t head_size,
                          const uint8_t *data, size_t size, weir_error *err) {
  codec->head.size = 0;
  if (head_size > 0) {
    BASE_TRY(codec_compress(codec, head, head_size, err));
    keep_out(codec);
  }
  BASE_TRY(parquet_reserve(&codec->out,
                           zstd_blocks_bound(head_size + size) + codec->head.size, err));
  return zstd_blocks_write(&codec->code, &codec->head, head_size, data, size,
                           codec->out.data, &codec->out.size, err);
}

/* lz4_Block_format.md: the literals of a block's first sequence with `size` bytes before them. */
static size_t join_lz4(const uint8_t *data, size_t size, const base_buf *rest,
                       uint8_t *out) {
  const uint8_t *from = rest->data;
  uint8_t token = *from++, *to = out;
  size_t literals = size + (token >> 4);
  if (token >> 4 == 15) {
    do {
      literals += *from;
    } while (*from++ == 255);
  }
  to = put_lz4_literals(literals, to);
  *out |= token & 15;
  memcpy(to, data, size);
  to += size;
  size_t left = rest->size - (size_t)(from - rest->data);
  memcpy(to, from, left);
  return (size_t)(to - out) + left;
}

weir_status codec_compress_rest(parquet_codec *codec, const uint8_t *data, size_t size,
                                size_t stored, weir_error *err) {
  bool zstd = codec->id == PARQUET_ZSTD && size <= ZSTD_FRAME_MAX;
  if (stored == 0 || stored == size || (!zstd && codec->id != PARQUET_LZ4_RAW)) {
    return codec_compress(codec, data, size, err);
  }
  BASE_TRY(codec_compress(codec, data + stored, size - stored, err));
  keep_out(codec);
  BASE_TRY(parquet_reserve(&codec->out,
                           zstd_blocks_bound(size) + size / 255 + codec->head.size, err));
  codec->out.size =
      zstd ? zstd_blocks_join(data, stored, &codec->head, size - stored, codec->out.data)
           : join_lz4(data, stored, &codec->head, codec->out.data);
  return WEIR_OK;
}

static const char *const codec_names[] = {"none", "zstd", "snappy", "lz4", "gzip", NULL};

weir_status weir_parquet_codec_parse(const char *text, int32_t *codec, int32_t *level,
                                     weir_error *err) {
  const char *open = strchr(text, '(');
  size_t size = open != NULL ? (size_t)(open - text) : strlen(text);
  for (int32_t i = 0; codec_names[i] != NULL; i++) {
    if (strlen(codec_names[i]) != size || memcmp(codec_names[i], text, size) != 0)
      continue;
    long value = 0;
    if (open != NULL) {
      char *end = NULL;
      value = strtol(open + 1, &end, 10);
      bool number = end != open + 1 && strcmp(end, ")") == 0;
      bool leveled = i == WEIR_PARQUET_ZSTD || i == WEIR_PARQUET_GZIP;
      if (!number || !leveled || value == 0) {
        return weir_error_set(
            err, WEIR_E_INVALID_CONFIG, 0,
            "compression '%s': a level is written as zstd(3) or gzip(9)", text);
      }
      int low = i == WEIR_PARQUET_ZSTD ? -7 : 1, high = i == WEIR_PARQUET_ZSTD ? 22 : 9;
      if (value < low || value > high) {
        return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                              "compression '%s': the level of %s is from %d to %d", text,
                              codec_names[i], low, high);
      }
    }
    *codec = i;
    *level = (int32_t)value;
    return WEIR_OK;
  }
  return weir_error_set(
      err, WEIR_E_INVALID_CONFIG, 0,
      "compression '%s' is not known; there are zstd, zstd(LEVEL), snappy, lz4, "
      "gzip, gzip(LEVEL) and none",
      text);
}
