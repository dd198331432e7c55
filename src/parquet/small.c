/* SPDX-License-Identifier: Apache-2.0 */
/* Effort `small`: what a chunk's first page takes in each encoding that it may have. */
#include "column.h"

/* Bits a value of the body that was put last, compressed where pages are. */
static weir_status measure(parquet_context *ctx, size_t n, double *bits,
                           weir_error *err) {
  size_t size = ctx->body.size + ctx->tail_size;
  if (ctx->codec.id != PARQUET_UNCOMPRESSED) {
    BASE_TRY(body_join(ctx, err));
    BASE_TRY(codec_compress(&ctx->codec, ctx->body.data, ctx->body.size, err));
    if (ctx->codec.out.size < size) size = ctx->codec.out.size;
  }
  *bits = (double)size * 8 / (double)n;
  return WEIR_OK;
}

typedef struct encodings {
  size_t n;
  enum parquet_encoding v[3];
} encodings;

/* Encodings that the leaf may have beside a dictionary. */
static const encodings *candidates(const parquet_context *ctx, const parquet_leaf *leaf) {
  static const encodings bytes = {
      3, {PARQUET_PLAIN, PARQUET_DELTA_LENGTH_BYTE_ARRAY, PARQUET_DELTA_BYTE_ARRAY}};
  static const encodings whole = {2, {PARQUET_PLAIN, PARQUET_DELTA_BINARY_PACKED}};
  static const encodings newest = {
      3, {PARQUET_PLAIN, PARQUET_DELTA_BINARY_PACKED, PARQUET_BYTE_STREAM_SPLIT}};
  static const encodings floats = {2, {PARQUET_PLAIN, PARQUET_BYTE_STREAM_SPLIT}};
  static const encodings plain = {1, {PARQUET_PLAIN}};
  if (leaf->node->dictionary != NULL) return &plain;
  if (leaf->type == PARQUET_BYTE_ARRAY) return &bytes;
  if (leaf->whole) return ctx->newest ? &newest : &whole;
  bool split = leaf->type == PARQUET_FLOAT || leaf->type == PARQUET_DOUBLE;
  return split ? &floats : &plain;
}

weir_status small_choose(parquet_column *column, parquet_context *ctx,
                         const parquet_values *values, weir_error *err) {
  parquet_piece piece = {.rows = values->n, .levels = values->n, .values = *values};
  const encodings *tried = candidates(ctx, column->leaf);
  bool dictionary = column->choice.encoding == PARQUET_RLE_DICTIONARY;
  if (column->leaf->type == PARQUET_BOOLEAN || values->n == 0) return WEIR_OK;
  column->other_packed = CHOOSE_NEVER;
  for (size_t i = 0; i < tried->n; i++) {
    double bits = 0;
    BASE_TRY(body_put(ctx, column, &piece, tried->v[i], NULL, NULL, err));
    BASE_TRY(measure(ctx, values->n, &bits, err));
    if (bits >= column->other_packed) continue;
    column->other_packed = bits;
    column->choice.other = tried->v[i];
  }
  if (!dictionary) column->choice.encoding = column->choice.other;
  return WEIR_OK;
}

weir_status small_keep(const parquet_column *column, parquet_context *ctx,
                       uint32_t *numbers, size_t n, double entries, bool *keep,
                       weir_error *err) {
  double bits = 0, share = 0;
  parquet_values values = dict_values(&column->dict);
  BASE_TRY(body_put_entries(ctx, column->leaf, &values, err));
  BASE_TRY(measure(ctx, column->dict.n, &share, err));
  parquet_piece piece = {.rows = n, .levels = n, .values.n = n};
  BASE_TRY(body_put(ctx, column, &piece, PARQUET_RLE_DICTIONARY, numbers, NULL, err));
  BASE_TRY(measure(ctx, n, &bits, err));
  *keep = bits + share * entries / CHOOSE_CHUNK_VALUES <= column->other_packed;
  return WEIR_OK;
}
