/* SPDX-License-Identifier: Apache-2.0 */
/* Compression.md, the other way round from codec.c. */
#include "unpack.h"

#include <lz4.h>
#include <snappy-c.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

void unpacker_done(parquet_unpacker *unpacker) {
  ZSTD_freeDCtx(unpacker->zstd);
  if (unpacker->gzip != NULL) inflateEnd(unpacker->gzip);
  free(unpacker->gzip);
  *unpacker = (parquet_unpacker){0};
}

weir_status unpacker_check(int32_t codec, weir_error *err) {
  const char *name = "unknown";
  switch (codec) {
    case PARQUET_UNCOMPRESSED:
    case PARQUET_SNAPPY:
    case PARQUET_GZIP:
    case PARQUET_ZSTD:
    case PARQUET_LZ4_RAW:
      return WEIR_OK;
    case PARQUET_LZO:
      name = "lzo";
      break;
    case PARQUET_BROTLI:
      name = "brotli";
      break;
    case PARQUET_LZ4:
      name = "lz4, the old framing";
      break;
    default:
      break;
  }
  return weir_error_set(err, WEIR_E_NOT_IMPLEMENTED, 0,
                        "codec %d (%s) cannot be read; zstd, snappy, gzip, lz4_raw and "
                        "none can: write the file anew with one of these",
                        (int)codec, name);
}

/* The most that a byte can stand for. zstd: a block of 128 KiB in 4 bytes; deflate: 258 bytes in 2 bits;
 * lz4: 255 in a byte; snappy: 64 in 3 bytes. */
bool unpacker_plausible(int32_t codec, uint64_t packed, uint64_t plain) {
  switch (codec) {
    case PARQUET_ZSTD:
      return plain / 32768 <= packed;
    case PARQUET_GZIP:
      return plain / 1032 <= packed;
    case PARQUET_LZ4_RAW:
      return plain / 255 <= packed;
    case PARQUET_SNAPPY:
      return plain / 32 <= packed;
    default:
      return plain == packed;
  }
}

static weir_status no_memory(weir_error *err) {
  return weir_error_set(err, WEIR_E_NOMEM, 0, "no memory for a decompressor");
}

static weir_status run_gzip(parquet_unpacker *unpacker, const uint8_t *data, size_t size,
                            uint8_t *out, size_t plain, size_t *got, weir_error *err) {
  z_stream *stream = unpacker->gzip;
  if (stream == NULL) {
    stream = base_calloc(1, sizeof(*stream), err);
    if (stream == NULL) return WEIR_E_NOMEM;
    /* 15 bits of window, + 32: gzip's header or zlib's, which some writers use */
    if (inflateInit2(stream, 15 + 32) != Z_OK) {
      free(stream);
      return no_memory(err);
    }
    unpacker->gzip = stream;
  }
  stream->next_in = (z_const Bytef *)(uintptr_t)data;
  stream->avail_in = (uInt)size;
  stream->next_out = out;
  stream->avail_out = (uInt)plain;
  int code = Z_STREAM_END;
  /* several members may follow each other (RFC 1952, 2.2) */
  while (code == Z_STREAM_END && stream->avail_in > 0 && inflateReset(stream) == Z_OK)
    code = inflate(stream, Z_FINISH);
  *got = code == Z_STREAM_END ? plain - stream->avail_out : SIZE_MAX;
  return WEIR_OK;
}

weir_status unpacker_run(parquet_unpacker *unpacker, int32_t codec, const uint8_t *data,
                         size_t size, uint8_t *out, size_t plain, weir_error *err) {
  size_t got = SIZE_MAX;
  switch (codec) {
    case PARQUET_ZSTD:
      if (unpacker->zstd == NULL) unpacker->zstd = ZSTD_createDCtx();
      if (unpacker->zstd == NULL) return no_memory(err);
      got = ZSTD_decompressDCtx(unpacker->zstd, out, plain, data, size);
      break;
    case PARQUET_SNAPPY:
      if (snappy_uncompressed_length((const char *)data, size, &got) != SNAPPY_OK ||
          got != plain ||
          snappy_uncompress((const char *)data, size, (char *)out, &got) != SNAPPY_OK)
        got = SIZE_MAX;
      break;
    case PARQUET_LZ4_RAW: {
      int n = LZ4_decompress_safe((const char *)data, (char *)out, (int)size, (int)plain);
      if (n >= 0) got = (size_t)n;
      break;
    }
    default:
      BASE_TRY(run_gzip(unpacker, data, size, out, plain, &got, err));
      break;
  }
  if (got == plain) return WEIR_OK;
  return weir_error_set(err, WEIR_E_CORRUPT, 0,
                        "%zu compressed bytes do not become the %zu that they should",
                        size, plain);
}
