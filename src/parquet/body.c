/* SPDX-License-Identifier: Apache-2.0 */
/* What is between a page's header and the next one, before it is compressed: levels, then values. */
#include "column.h"

static size_t bytes_total(const parquet_values *values) {
  return values->offsets == NULL ? 0 : values->offsets[values->n] - values->offsets[0];
}

static size_t levels_bound(const parquet_piece *piece) {
  return piece->def == NULL ? piece->rows / 8 + 32
                            : 2 * (encode_levels_bound(piece->levels) + 4);
}

/* Levels of one kind; pages v1 say before them how many bytes they are. */
static uint8_t *put_hybrid_levels(const uint8_t *levels, size_t n, uint8_t max, bool v2,
                                  uint8_t *out) {
  if (max == 0) return out;
  if (v2) return encode_levels(levels, n, parquet_width(max), out);
  uint8_t *end = encode_levels(levels, n, parquet_width(max), out + 4);
  parquet_store32(out, (uint32_t)(end - out - 4));
  return end;
}

static uint8_t *put_bitmap_levels(const parquet_piece *piece, bool v2, uint8_t *out) {
  size_t ones = piece->rows - piece->nulls;
  if (v2) return encode_hybrid_bitmap(piece->valid, piece->rows, ones, out);
  uint8_t *end = encode_hybrid_bitmap(piece->valid, piece->rows, ones, out + 4);
  parquet_store32(out, (uint32_t)(end - out - 4));
  return end;
}

/* "Data Pages": repetition levels, then definition levels, each unless all are 0 by the schema. */
static uint8_t *put_levels(const parquet_leaf *leaf, const parquet_piece *piece,
                           parquet_context *ctx, uint8_t *out) {
  uint8_t *begin = out;
  if (piece->def != NULL)
    out = put_hybrid_levels(piece->rep, piece->levels, leaf->max_rep, ctx->v2, out);
  ctx->rep_size = (size_t)(out - begin);
  begin = out;
  if (piece->def != NULL) {
    out = put_hybrid_levels(piece->def, piece->levels, leaf->max_def, ctx->v2, out);
  } else if (leaf->max_def > 0) {
    out = put_bitmap_levels(piece, ctx->v2, out);
  }
  ctx->def_size = (size_t)(out - begin);
  return out;
}

static size_t values_bound(const parquet_leaf *leaf, const parquet_values *values,
                           enum parquet_encoding encoding) {
  size_t n = values->n;
  switch (encoding) {
    case PARQUET_RLE_DICTIONARY:
      return 1 + encode_hybrid_bound(n, 32);
    case PARQUET_DELTA_BINARY_PACKED:
      return encode_delta_bound(n, leaf->width);
    case PARQUET_DELTA_LENGTH_BYTE_ARRAY:
      return encode_delta_bound(n, 4); /* of the lengths; the bytes stay where they are */
    case PARQUET_DELTA_BYTE_ARRAY:
      return 2 * encode_delta_bound(n, 4) + bytes_total(values);
    default:
      return leaf->type == PARQUET_BYTE_ARRAY ? bytes_total(values) + 4 * n
             : leaf->type == PARQUET_BOOLEAN  ? n / 8 + 1
                                              : n * leaf->width;
  }
}

static uint8_t *put_plain(const parquet_leaf *leaf, const parquet_values *values,
                          uint8_t *out) {
  size_t n = values->n;
  if (n == 0) return out;
  if (leaf->type != PARQUET_BYTE_ARRAY) {
    size_t size = leaf->type == PARQUET_BOOLEAN ? (n + 7) / 8 : n * leaf->width;
    memcpy(out, values->data, size);
    return out + size;
  }
  for (size_t i = 0; i < n; i++) {
    uint32_t size = values->offsets[i + 1] - values->offsets[i];
    parquet_store32(out, size);
    if (size > 0) memcpy(out + 4, values->data + values->offsets[i], size);
    out += 4 + size;
  }
  return out;
}

/* "Delta-length byte array": all lengths, then all bytes. */
static uint8_t *put_lengths(const parquet_values *values, uint32_t *lengths,
                            uint8_t *out) {
  for (size_t i = 0; i < values->n; i++)
    lengths[i] = values->offsets[i + 1] - values->offsets[i];
  return encode_delta32(lengths, values->n, NULL, out);
}

static uint32_t common_prefix(const uint8_t *a, const uint8_t *b, uint32_t most) {
  uint32_t n = 0;
  while (n < most && a[n] == b[n]) n++;
  return n;
}

/* "Delta Strings (DELTA_BYTE_ARRAY = 7)": how much of the value before each begins with, then what follows as
 * lengths and bytes. `counts` has room for 2 * n. */
static uint8_t *put_suffixes(const parquet_values *values, uint32_t *counts,
                             uint8_t *out) {
  uint32_t *prefixes = counts, *rests = counts + values->n;
  const uint32_t *offsets = values->offsets;
  for (size_t i = 0; i < values->n; i++) {
    uint32_t size = offsets[i + 1] - offsets[i];
    uint32_t before = i == 0 ? 0 : offsets[i] - offsets[i - 1];
    const uint8_t *value = values->data + offsets[i];
    prefixes[i] = common_prefix(value - before, value, size < before ? size : before);
    rests[i] = size - prefixes[i];
  }
  out = encode_delta32(prefixes, values->n, NULL, out);
  out = encode_delta32(rests, values->n, NULL, out);
  for (size_t i = 0; i < values->n; i++) {
    if (rests[i] > 0) memcpy(out, values->data + offsets[i] + prefixes[i], rests[i]);
    out += rests[i];
  }
  return out;
}

PARQUET_CLONES
static uint32_t greatest(const uint32_t *values, size_t n) {
  uint32_t all = 0;
  for (size_t i = 0; i < n; i++) all |= values[i];
  return all; /* of the same width as the greatest */
}

/* Whole nibbles, bytes and words repeat where odd widths do not, which compressors make use of. */
static unsigned rounded(unsigned width) {
  return width <= 4 ? 4 : width <= 8 ? 8 : width <= 16 ? 16 : width;
}

static uint8_t *put_numbers(uint32_t *numbers, size_t n, bool round, uint8_t *out) {
  unsigned width = parquet_width(greatest(numbers, n));
  if (width == 0) width = 1; /* some readers do not know what to make of 0 */
  if (round) width = rounded(width);
  *out++ = (uint8_t)width;
  return encode_hybrid(numbers, n, width, out);
}

weir_status body_put(parquet_context *ctx, const parquet_column *column,
                     const parquet_piece *piece, enum parquet_encoding encoding,
                     uint32_t *numbers, const encode_witness *witness, weir_error *err) {
  const parquet_leaf *leaf = column->leaf;
  const parquet_values *values = &piece->values;
  BASE_TRY(parquet_reserve(
      &ctx->body, levels_bound(piece) + values_bound(leaf, values, encoding), err));
  uint8_t *out = ctx->body.data;
  if (ctx->v2) {
    BASE_TRY(parquet_reserve(&ctx->level_bytes, levels_bound(piece), err));
    uint8_t *end = put_levels(leaf, piece, ctx, ctx->level_bytes.data);
    ctx->level_bytes.size = (size_t)(end - ctx->level_bytes.data);
  } else {
    out = put_levels(leaf, piece, ctx, out);
  }
  ctx->head = (size_t)(out - ctx->body.data);
  const void *data = values->data;
  ctx->tail_size = 0;
  switch (encoding) {
    case PARQUET_RLE_DICTIONARY:
      out = put_numbers(numbers, values->n, column->round_width, out);
      break;
    case PARQUET_DELTA_BINARY_PACKED:
      out = leaf->width == 8 ? encode_delta64(data, values->n, witness, out)
                             : encode_delta32(data, values->n, witness, out);
      break;
    case PARQUET_DELTA_LENGTH_BYTE_ARRAY:
      BASE_TRY(parquet_reserve(&ctx->indices, values->n * sizeof(uint32_t), err));
      out = put_lengths(values, (uint32_t *)(void *)ctx->indices.data, out);
      ctx->head = (size_t)(out - ctx->body.data);
      ctx->tail_size = bytes_total(values);
      if (ctx->tail_size > 0) ctx->tail = values->data + values->offsets[0];
      break;
    case PARQUET_DELTA_BYTE_ARRAY:
      BASE_TRY(parquet_reserve(&ctx->indices, 2 * values->n * sizeof(uint32_t), err));
      out = put_suffixes(values, (uint32_t *)(void *)ctx->indices.data, out);
      break;
    case PARQUET_BYTE_STREAM_SPLIT:
      encode_split(data, values->n, leaf->width, witness, out);
      out += values->n * leaf->width;
      break;
    default:
      out = put_plain(leaf, values, out);
      break;
  }
  ctx->body.size = (size_t)(out - ctx->body.data);
  return WEIR_OK;
}

weir_status body_join(parquet_context *ctx, weir_error *err) {
  base_buf *body = &ctx->body;
  if (ctx->tail_size == 0) return WEIR_OK;
  BASE_TRY(parquet_reserve(body, body->size + ctx->tail_size, err));
  memcpy(body->data + body->size, ctx->tail, ctx->tail_size);
  body->size += ctx->tail_size;
  ctx->tail_size = 0;
  return WEIR_OK;
}

weir_status body_put_entries(parquet_context *ctx, const parquet_leaf *leaf,
                             const parquet_values *values, weir_error *err) {
  BASE_TRY(parquet_reserve(&ctx->body, values_bound(leaf, values, PARQUET_PLAIN), err));
  uint8_t *end = put_plain(leaf, values, ctx->body.data);
  ctx->body.size = (size_t)(end - ctx->body.data);
  ctx->tail_size = 0;
  ctx->level_bytes.size = 0;
  return WEIR_OK;
}

weir_status body_learn_width(parquet_column *column, parquet_context *ctx,
                             const parquet_piece *piece, uint32_t *numbers,
                             weir_error *err) {
  if (column->width_known || !column->compress || piece->values.n < 4096) return WEIR_OK;
  column->width_known = true;
  unsigned width = parquet_width(greatest(numbers, piece->values.n));
  if (width == rounded(width)) return WEIR_OK;
  BASE_TRY(codec_compress(&ctx->codec, ctx->body.data, ctx->body.size, err));
  size_t exact = ctx->codec.out.size;
  column->round_width = true;
  BASE_TRY(body_put(ctx, column, piece, PARQUET_RLE_DICTIONARY, numbers, NULL, err));
  BASE_TRY(codec_compress(&ctx->codec, ctx->body.data, ctx->body.size, err));
  if (ctx->codec.out.size < exact) return WEIR_OK;
  column->round_width = false;
  return body_put(ctx, column, piece, PARQUET_RLE_DICTIONARY, numbers, NULL, err);
}
