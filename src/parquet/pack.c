/* SPDX-License-Identifier: Apache-2.0 */
/* How the pages of a chunk are compressed: learnt from its first page with values, checked now and then. */
#include "column.h"

enum {
  PROBE_BYTES = 96 << 10, /* LZ4 is another compressor up to 64 KiB */
  PROBE_MIN = 256 << 10,
  CHUNK_PAGES = 16,
  LITERALS_LEVEL_MAX = 3,
  CHECK_PAGES = 8, /* from one look at whether what was learnt still holds to the next */
  DICTIONARY_MIN = 4 << 10
};

static bool shrinks(const parquet_context *ctx, double from, double to) {
  /* A gain of less than 1.5 % is not worth a reader's time either. */
  return ctx->small ? to < from : to * 1.015 < from;
}

/* Part of a long body from its middle stands for all of it. */
static const uint8_t *probe_of(const parquet_context *ctx, size_t *size) {
  *size = ctx->body.size;
  if (*size < PROBE_MIN || ctx->small) return ctx->body.data;
  *size = PROBE_BYTES;
  return ctx->body.data + (ctx->body.size - PROBE_BYTES) / 2;
}

/* The body as a frame of literals. */
static weir_status put_literals(parquet_context *ctx, weir_error *err) {
  const base_buf *body = &ctx->body;
  if (body->size + ctx->tail_size > ZSTD_FRAME_MAX) {
    BASE_TRY(body_join(ctx, err));
    return codec_compress(&ctx->codec, body->data, body->size, err);
  }
  if (ctx->tail_size > 0) {
    return codec_huffman(&ctx->codec, body->data, body->size, ctx->tail, ctx->tail_size,
                         err);
  }
  return codec_huffman(&ctx->codec, body->data, ctx->head, body->data + ctx->head,
                       body->size - ctx->head, err);
}

/* ---- literals --------------------------------------------------------------------------------- */

static bool may_be_literals(const parquet_context *ctx) {
  return ctx->codec.id == PARQUET_ZSTD && ctx->codec.level <= LITERALS_LEVEL_MAX &&
         ctx->body.size <= ZSTD_FRAME_MAX;
}

/* Whether a frame of literals is as small as what libzstd has just made of the data: then nothing comes
 * again there, and looking for it is most of the time. */
static weir_status decide_literals(parquet_column *column, parquet_context *ctx,
                                   const uint8_t *data, size_t size, weir_error *err) {
  size_t packed = ctx->codec.out.size;
  if (data == ctx->body.data) {
    BASE_TRY(put_literals(ctx, err));
  } else {
    BASE_TRY(codec_huffman(&ctx->codec, NULL, 0, data, size, err));
  }
  column->literals = ctx->codec.out.size <= packed + (ctx->small ? 0 : packed / 256);
  return WEIR_OK;
}

/* A probe, which libzstd has just compressed, says whether it is worth a look, the first page whether it
 * holds from further off, too; later pages may still begin to repeat themselves. */
static weir_status begin_literals(parquet_column *column, parquet_context *ctx,
                                  const uint8_t *probe, size_t size, weir_error *err) {
  const base_buf *body = &ctx->body;
  if (!may_be_literals(ctx)) return WEIR_OK;
  BASE_TRY(decide_literals(column, ctx, probe, size, err));
  if (!column->literals || probe == body->data) return WEIR_OK;
  BASE_TRY(codec_compress(&ctx->codec, body->data, body->size, err));
  return decide_literals(column, ctx, body->data, body->size, err);
}

static weir_status check_literals(parquet_column *column, parquet_context *ctx,
                                  weir_error *err) {
  size_t pages = column->records.size / sizeof(page_record), size = 0;
  if (pages % CHECK_PAGES != 0) return WEIR_OK;
  BASE_TRY(body_join(ctx, err));
  const uint8_t *probe = probe_of(ctx, &size);
  if (!may_be_literals(ctx)) return WEIR_OK;
  BASE_TRY(codec_compress(&ctx->codec, probe, size, err));
  return decide_literals(column, ctx, probe, size, err);
}

/* ---- planes of split values ------------------------------------------------------------------- */

static size_t plane_size(const parquet_column *column, const parquet_context *ctx) {
  return (ctx->body.size - ctx->head) / column->leaf->width;
}

/* How many of the low planes do not shrink, so that they need not be tried. */
static weir_status find_raw_planes(parquet_column *column, parquet_context *ctx,
                                   weir_error *err) {
  size_t size = plane_size(column, ctx);
  const uint8_t *plane = ctx->body.data + ctx->head;
  column->raw_planes = 0;
  if (size == 0) return WEIR_OK;
  for (; column->raw_planes + 1 < column->leaf->width; column->raw_planes++) {
    BASE_TRY(codec_compress(&ctx->codec, plane, size, err));
    if (shrinks(ctx, (double)size, (double)ctx->codec.out.size)) return WEIR_OK;
    plane += size;
  }
  return WEIR_OK;
}

enum { NOISE_RUNS = 16, NOISE_RUN = 64 };

/* Whether a sample of the bytes has all of them about equally often. */
static bool is_noise(const uint8_t *bytes, size_t size) {
  enum { SAMPLE = NOISE_RUNS * NOISE_RUN };
  uint32_t counts[256] = {0}, squares = 0;
  if (size < SAMPLE) return false;
  for (size_t r = 0; r < NOISE_RUNS; r++) {
    const uint8_t *run = bytes + (size - NOISE_RUN) / (NOISE_RUNS - 1) * r;
    for (size_t i = 0; i < NOISE_RUN; i++) counts[run[i]]++;
  }
  for (size_t b = 0; b < 256; b++) squares += counts[b] * counts[b];
  return squares < (SAMPLE * SAMPLE / 256 + SAMPLE) * 5 / 4;
}

/* Looks again when the planes that did not shrink no longer look like noise. */
static weir_status check_planes(parquet_column *column, parquet_context *ctx,
                                weir_error *err) {
  const uint8_t *plane = ctx->body.data + ctx->head;
  size_t size = plane_size(column, ctx);
  bool due = column->encoding_pages[PARQUET_BYTE_STREAM_SPLIT] == 0;
  for (unsigned i = 0; i < column->raw_planes; i++)
    due |= !is_noise(plane + i * size, size);
  return due ? find_raw_planes(column, ctx, err) : WEIR_OK;
}

static weir_status compress_planes(const parquet_column *column, parquet_context *ctx,
                                   weir_error *err) {
  size_t raw = column->raw_planes == 0
                   ? 0
                   : ctx->head + column->raw_planes * plane_size(column, ctx);
  return codec_compress_rest(&ctx->codec, ctx->body.data, ctx->body.size, raw, err);
}

/* ---- chunks and pages ------------------------------------------------------------------------- */

/* All pages of a chunk share one codec, so the first page with values decides. If only the dictionary
 * would shrink, the chunk has the codec and its data pages are frames of stored blocks. */
static weir_status decide(parquet_column *column, parquet_context *ctx, size_t n,
                          enum parquet_encoding encoding, weir_error *err) {
  column->packed = true;
  column->stored = column->literals = false;
  column->compress = ctx->codec.id != PARQUET_UNCOMPRESSED;
  if (!column->compress || n == 0) return WEIR_OK;
  BASE_TRY(body_join(ctx, err));
  if (encoding == PARQUET_BYTE_STREAM_SPLIT) {
    BASE_TRY(find_raw_planes(column, ctx, err));
    BASE_TRY(compress_planes(column, ctx, err));
    column->compress = shrinks(ctx, (double)ctx->body.size, (double)ctx->codec.out.size);
    return WEIR_OK;
  }
  size_t size = 0;
  const uint8_t *probe = probe_of(ctx, &size);
  BASE_TRY(codec_compress(&ctx->codec, probe, size, err));
  column->compress = shrinks(ctx, (double)size, (double)ctx->codec.out.size);
  if (column->compress) return begin_literals(column, ctx, probe, size, err);
  if (encoding != PARQUET_RLE_DICTIONARY) return WEIR_OK;
  const base_buf *entries = &column->dict.values;
  if (entries->size < DICTIONARY_MIN) return WEIR_OK;
  BASE_TRY(codec_compress(&ctx->codec, entries->data, entries->size, err));
  double pages = (double)ctx->body.size * CHUNK_PAGES;
  column->compress =
      shrinks(ctx, pages + (double)entries->size, pages + (double)ctx->codec.out.size);
  column->stored = column->compress;
  return WEIR_OK;
}

weir_status pack_learn(parquet_column *column, parquet_context *ctx, size_t n,
                       enum parquet_encoding encoding, weir_error *err) {
  if (!column->packed) return decide(column, ctx, n, encoding, err);
  if (!column->compress || n == 0) return WEIR_OK;
  if (encoding == PARQUET_BYTE_STREAM_SPLIT) return check_planes(column, ctx, err);
  return column->literals ? check_literals(column, ctx, err) : WEIR_OK;
}

static weir_status compress_body(const parquet_column *column, parquet_context *ctx,
                                 const parquet_page_header *header, weir_error *err) {
  const base_buf *body = &ctx->body;
  bool data_page = header->type != PARQUET_DICTIONARY_PAGE;
  int32_t encoding = header->type == PARQUET_DATA_PAGE_V2 ? header->data_page_v2.encoding
                                                          : header->data_page.encoding;
  bool split = data_page && encoding == PARQUET_BYTE_STREAM_SPLIT;
  if (data_page && column->literals && !split) return put_literals(ctx, err);
  BASE_TRY(body_join(ctx, err));
  if (split) return compress_planes(column, ctx, err);
  if (data_page && column->stored)
    return codec_store(&ctx->codec, body->data, body->size, err);
  return codec_compress(&ctx->codec, body->data, body->size, err);
}

weir_status pack_body(const parquet_column *column, parquet_context *ctx,
                      const parquet_page_header *header, const base_buf **out,
                      weir_error *err) {
  const base_buf *body = &ctx->body;
  size_t plain = body->size + ctx->tail_size;
  bool v2 = header->type == PARQUET_DATA_PAGE_V2;
  *out = body;
  if (!column->compress || (v2 && column->stored)) return WEIR_OK;
  BASE_TRY(compress_body(column, ctx, header, err));
  /* What did not shrink stays as it is; where the page has a tail, that has been joined to the body. */
  if (v2 && ctx->codec.out.size >= plain) return body_join(ctx, err);
  *out = &ctx->codec.out;
  return WEIR_OK;
}
