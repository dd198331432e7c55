/* SPDX-License-Identifier: Apache-2.0 */
/* The codecs of IPC bodies: LZ4 frames and ZSTD frames (Message.fbs, enum CompressionType). */
#include <inttypes.h>
#include <lz4frame.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "arrow/ipc.h"

/* No frame can grow more: an LZ4 sequence makes at most 255 bytes of one; a ZSTD block of 4 bytes
 * (RLE) makes at most 128 KiB. What claims more is refused before anything is allocated. */
static bool plausible(ipc_codec codec, size_t from, size_t to) {
  uint64_t ratio = codec == IPC_LZ4 ? 256 : 65536;
  return to <= (1u << 18) || to / ratio <= from;
}

static weir_status wrong(ipc_codec codec, const char *why, weir_error *err) {
  return weir_error_set(err, WEIR_E_CORRUPT, 0, "a %s buffer does not decompress: %s",
                        codec == IPC_LZ4 ? "LZ4" : "ZSTD", why);
}

/* One step of either codec: reads from in[*read...], writes to out[*wrote...], *done at the frame's
 * end. */
static weir_status step(ipc_decoder *d, ipc_codec codec, const uint8_t *in,
                        size_t in_size, size_t *read, uint8_t *out, size_t out_size,
                        size_t *wrote, bool *done, weir_error *err) {
  if (codec == IPC_LZ4) {
    size_t take = in_size - *read, give = out_size - *wrote;
    size_t hint = LZ4F_decompress(d->lz4, out + *wrote, &give, in + *read, &take, NULL);
    if (LZ4F_isError(hint)) return wrong(codec, LZ4F_getErrorName(hint), err);
    *read += take;
    *wrote += give;
    *done = hint == 0;
    return WEIR_OK;
  }
  ZSTD_inBuffer from = {in, in_size, *read};
  ZSTD_outBuffer to = {out, out_size, *wrote};
  size_t hint = ZSTD_decompressStream(d->zstd, &to, &from);
  if (ZSTD_isError(hint)) return wrong(codec, ZSTD_getErrorName(hint), err);
  *read = from.pos;
  *wrote = to.pos;
  *done = hint == 0;
  return WEIR_OK;
}

static weir_status prepare(ipc_decoder *d, ipc_codec codec, weir_error *err) {
  if (codec == IPC_LZ4 && d->lz4 == NULL) {
    LZ4F_dctx *context = NULL;
    if (LZ4F_isError(LZ4F_createDecompressionContext(&context, LZ4F_VERSION)))
      context = NULL;
    d->lz4 = context;
  } else if (codec == IPC_ZSTD && d->zstd == NULL) {
    d->zstd = ZSTD_createDCtx();
  }
  if ((codec == IPC_LZ4 ? d->lz4 : d->zstd) == NULL)
    return weir_error_set(err, WEIR_E_NOMEM, 0, "decompression: out of memory");
  if (codec == IPC_LZ4)
    LZ4F_resetDecompressionContext(d->lz4);
  else
    ZSTD_DCtx_reset(d->zstd, ZSTD_reset_session_only);
  return WEIR_OK;
}

/* Memory for `size` bytes comes in growing pieces, so that only what was really there is
 * paid for; usual data fits the first one. */
static size_t next_room(size_t room, size_t data_size, size_t size) {
  size_t most = 4 * room;
  if (room == 0) most = data_size > ((size_t)1 << 18) ? 64 * data_size : (size_t)1 << 24;
  return size < most ? size : most;
}

static weir_status inflate(ipc_decoder *d, ipc_codec codec, const uint8_t *data,
                           size_t data_size, size_t size, uint8_t **block,
                           weir_error *err) {
  size_t room = next_room(0, data_size, size), read = 0, wrote = 0;
  bool done = false;
  *block = base_realloc(NULL, room + 1, 1, err);
  if (*block == NULL) return WEIR_E_NOMEM;
  while (!done) {
    if (wrote == room && room < size) {
      room = next_room(room, data_size, size);
      uint8_t *grown = base_realloc(*block, room + 1, 1, err);
      if (grown == NULL) return WEIR_E_NOMEM;
      *block = grown;
    }
    size_t read_before = read, wrote_before = wrote;
    BASE_TRY(step(d, codec, data, data_size, &read, *block, room, &wrote, &done, err));
    if (!done && read == read_before && wrote == wrote_before)
      return wrong(codec, wrote < size ? "it is cut short" : "it is longer than it says",
                   err);
  }
  return wrote == size ? WEIR_OK : wrong(codec, "it is shorter than it says", err);
}

weir_status ipc_decompress(ipc_decoder *d, ipc_codec codec, const uint8_t *data,
                           size_t data_size, size_t size, void **out, weir_error *err) {
  uint8_t *block = NULL;
  if (!plausible(codec, data_size, size))
    return weir_error_set(err, WEIR_E_CORRUPT, 0,
                          "a buffer of %zu bytes claims to be %zu decompressed",
                          data_size, size);
  BASE_TRY(prepare(d, codec, err));
  weir_status status = inflate(d, codec, data, data_size, size, &block, err);
  if (status == WEIR_OK)
    *out = block;
  else
    free(block);
  return status;
}

void ipc_decoder_done(ipc_decoder *decoder) {
  LZ4F_freeDecompressionContext(decoder->lz4);
  ZSTD_freeDCtx(decoder->zstd);
  *decoder = (ipc_decoder){0};
}
