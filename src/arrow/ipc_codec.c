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

/* Memory for `size` bytes comes in doubling pieces, so that only what was really there is paid for;
 * usual data fits the first one. */
weir_status ipc_decompress(ipc_decoder *d, ipc_codec codec, const uint8_t *data,
                           size_t data_size, size_t size, void **out, weir_error *err) {
  size_t room = 0, read = 0, wrote = 0;
  uint8_t *block = NULL;
  bool done = false;
  weir_status status = WEIR_OK;
  if (!plausible(codec, data_size, size))
    return weir_error_set(err, WEIR_E_CORRUPT, 0,
                          "a buffer of %zu bytes claims to be %zu decompressed",
                          data_size, size);
  BASE_GOTO(status, prepare(d, codec, err));
  while (!done) {
    if (wrote == room && room < size) {
      size_t most = room == 0 ? (size_t)1 << 24 : 4 * room;
      if (room == 0 && data_size > most / 64) most = 64 * data_size;
      size_t next = size < most ? size : most;
      uint8_t *grown = base_realloc(block, next, 1, err);
      if (grown == NULL) {
        status = WEIR_E_NOMEM;
        goto out;
      }
      block = grown;
      room = next;
    }
    size_t read_before = read, wrote_before = wrote;
    BASE_GOTO(status,
              step(d, codec, data, data_size, &read, block, room, &wrote, &done, err));
    if (!done && read == read_before && wrote == wrote_before &&
        (wrote < room || room == size)) {
      status = wrong(codec,
                     wrote < size ? "it is cut short" : "it is longer than it says", err);
      goto out;
    }
  }
  if (wrote != size) {
    status = wrong(codec, "it is shorter than it says", err);
    goto out;
  }
  if (block == NULL) block = base_calloc(1, 1, err);
  if (block == NULL) status = WEIR_E_NOMEM;
out:
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
