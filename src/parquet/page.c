/* SPDX-License-Identifier: Apache-2.0 */
/* Values and levels to finished pages: data pages and dictionary pages (README of parquet-format, "Data
 * Pages"). A page v1 compresses its levels and values as one, a page v2 its values alone. */
#include "column.h"
#include "encode.h"

/* ---- bodies ----------------------------------------------------------------------------------- */

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

static weir_status put_body(parquet_context *ctx, const parquet_column *column,
                            const parquet_piece *piece, enum parquet_encoding encoding,
                            uint32_t *numbers, const encode_witness *witness,
                            weir_error *err) {
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

/* ---- headers ---------------------------------------------------------------------------------- */

static weir_status append_page(parquet_column *column, parquet_context *ctx,
                               parquet_rope *rope, parquet_page_header *header,
                               uint64_t *size, weir_error *err) {
  const base_buf *stored = NULL, *levels = &ctx->level_bytes;
  size_t plain = levels->size + ctx->body.size + ctx->tail_size;
  BASE_TRY(pack_body(column, ctx, header, &stored, err));
  size_t tail = stored == &ctx->body ? ctx->tail_size : 0;
  size_t size_stored = levels->size + stored->size + tail;
  if (plain > INT32_MAX || size_stored > INT32_MAX) {
    return weir_error_set(err, WEIR_E_INTERNAL, 0,
                          "Parquet writer: column '%s' has a page of %zu bytes",
                          column->leaf->name, plain);
  }
  THRIFT_SET(header, 1);
  THRIFT_SET(header, 2);
  THRIFT_SET(header, 3);
  THRIFT_SET(header, 4);
  header->uncompressed_page_size = (int32_t)plain;
  header->compressed_page_size = (int32_t)size_stored;
  header->data_page_v2.is_compressed = stored != &ctx->body;
  uint32_t crc = parquet_crc32(0, levels->data, levels->size);
  crc = parquet_crc32(crc, stored->data, stored->size);
  header->crc = (int32_t)parquet_crc32(crc, ctx->tail, tail);
  base_buf_clear(&ctx->header);
  BASE_TRY(thrift_encode(&parquet_page_header_type, header, &ctx->header, err));
  BASE_TRY(
      parquet_rope_append(rope, &ctx->pool, ctx->header.data, ctx->header.size, err));
  BASE_TRY(parquet_rope_append(rope, &ctx->pool, levels->data, levels->size, err));
  BASE_TRY(parquet_rope_append(rope, &ctx->pool, stored->data, stored->size, err));
  BASE_TRY(parquet_rope_append(rope, &ctx->pool, ctx->tail, tail, err));
  column->plain_bytes += ctx->header.size + plain;
  *size = ctx->header.size + size_stored;
  return WEIR_OK;
}

/* ---- statistics ------------------------------------------------------------------------------- */

/* The entries that a page's numbers name, each once, as values. */
static weir_status entries_of(parquet_column *column, parquet_context *ctx,
                              const uint32_t *numbers, size_t n, parquet_values *out,
                              weir_error *err) {
  const parquet_dict *dict = &column->dict;
  BASE_TRY(parquet_reserve(&ctx->fresh, dict->n, err));
  uint8_t *seen = ctx->fresh.data;
  memset(seen, 0, dict->n);
  for (size_t i = 0; i < n; i++) seen[numbers[i]] = 1;
  BASE_TRY(parquet_reserve(&ctx->entries, dict->values.size, err));
  BASE_TRY(parquet_reserve(&ctx->entry_offsets, ((size_t)dict->n + 1) * sizeof(uint32_t),
                           err));
  uint8_t *to = ctx->entries.data;
  uint32_t *offsets = (uint32_t *)(void *)ctx->entry_offsets.data;
  const uint32_t *known = (const uint32_t *)(const void *)dict->offsets.data;
  size_t count = 0, at = 0;
  for (uint32_t k = 0; k < dict->n; k++) {
    if (!seen[k]) continue;
    size_t from = dict->width != 0 ? (size_t)k * dict->width : known[k];
    size_t size = dict->width != 0 ? dict->width : known[k + 1] - known[k];
    if (size > 0) memcpy(to + at, dict->values.data + from, size);
    offsets[count++] = (uint32_t)at;
    at += size;
  }
  offsets[count] = (uint32_t)at;
  *out = (parquet_values){to, dict->width == 0 ? offsets : NULL, count};
  return WEIR_OK;
}

static weir_status keep_bound(parquet_column *column, thrift_binary value, uint32_t *at,
                              uint32_t *size, weir_error *err) {
  *at = (uint32_t)column->bounds_bytes.size;
  *size = (uint32_t)value.size;
  return base_buf_append(&column->bounds_bytes, value.data, value.size, err);
}

static weir_status record_page(parquet_column *column, const parquet_piece *piece,
                               const stats_page *stats, uint64_t size, weir_error *err) {
  page_record record = {.size = size,
                        .first_row = column->rows,
                        .nulls = piece->nulls,
                        .has_values = piece->values.n > 0};
  record.has_bounds = stats->has && !stats->nan;
  if (record.has_bounds) {
    thrift_binary min, max;
    uint8_t room[STATS_MAX_BYTES + 4];
    bool bytes = column->leaf->type == PARQUET_BYTE_ARRAY, utf8 = column->leaf->utf8;
    min = stats->min;
    max = stats->max;
    record.min_exact = record.max_exact = true;
    if (bytes) {
      record.has_bounds =
          stats_short_min(stats->min, utf8, &min, &record.min_exact) &&
          stats_short_max(stats->max, utf8, room, &max, &record.max_exact);
    }
    if (record.has_bounds) {
      BASE_TRY(keep_bound(column, min, &record.min_at, &record.min_size, err));
      BASE_TRY(keep_bound(column, max, &record.max_at, &record.max_size, err));
    }
  }
  column->unbounded |= record.has_values && !record.has_bounds;
  return base_buf_append(&column->records, &record, sizeof(record), err);
}

/* ---- pages ------------------------------------------------------------------------------------ */

enum { FIRST_MIN = 16 << 10 /* values from which a first page is judged */ };

static uint64_t as_bits(const parquet_leaf *leaf, thrift_binary value) {
  uint64_t v = 0;
  if (value.size == 8) return parquet_load64(value.data);
  memcpy(&v, value.data, value.size);
  return leaf->order == ORDER_INT32 ? (uint64_t)(int64_t)(int32_t)v : v;
}

weir_status page_decide(parquet_column *column, parquet_context *ctx,
                        const parquet_values *values, const stats_page *stats,
                        weir_error *err) {
  const parquet_leaf *leaf = column->leaf;
  column->choice = choose_encoding(leaf, values, !column->closed,
                                   ctx->codec.id != PARQUET_UNCOMPRESSED);
  column->decided = true;
  if (column->choice.encoding != PARQUET_RLE_DICTIONARY || !stats->has) return WEIR_OK;
  if (leaf->type == PARQUET_DOUBLE) {
    double min, max;
    memcpy(&min, stats->min.data, sizeof(min));
    memcpy(&max, stats->max.data, sizeof(max));
    return dict_use_decimals(&column->dict, (const double *)(const void *)values->data,
                             values->n, min, max, err);
  }
  if (!leaf->whole) return WEIR_OK;
  return dict_use_direct(&column->dict, as_bits(leaf, stats->min),
                         as_bits(leaf, stats->max), err);
}

/* Goes on without a dictionary. */
static void close_dictionary(parquet_column *column) {
  column->closed = true;
  column->choice.encoding = column->choice.other;
}

/* The first page shows better than the sample how many entries there will be: a dictionary that will not
 * pay is forgotten before a page names it. */
static weir_status judge_first(parquet_column *column, parquet_context *ctx,
                               uint32_t **numbers, size_t n, weir_error *err) {
  parquet_dict *dict = &column->dict;
  if (n < FIRST_MIN) return WEIR_OK;
  BASE_TRY(parquet_reserve(&ctx->fresh, dict->n * sizeof(uint32_t), err));
  double entries = dict_expected(dict, *numbers, n, (uint32_t *)(void *)ctx->fresh.data);
  double bytes = (double)dict->values.size / dict->n + (dict->width == 0 ? 4 : 0);
  double cost = choose_dictionary_bits(entries, bytes, CHOOSE_CHUNK_VALUES);
  if (cost <= column->choice.other_bits) return WEIR_OK;
  dict_clear(dict);
  close_dictionary(column);
  *numbers = NULL;
  return WEIR_OK;
}

/* A dictionary grows fastest at first; if a later page still costs more with it than without, most of
 * its values do not come again. */
static void judge_dictionary(parquet_column *column, uint32_t entries, uint64_t bytes,
                             size_t n) {
  const parquet_dict *dict = &column->dict;
  uint64_t grown = dict->values.size - bytes + 4 * (uint64_t)(dict->n - entries);
  double cost = (double)grown * 8 / (double)n + parquet_width(dict->n);
  if (cost > column->choice.other_bits) close_dictionary(column);
}

/* Numbers for the page's values; NULL in *out when the dictionary is full and another encoding takes
 * its place. */
static weir_status number_values(parquet_column *column, parquet_context *ctx,
                                 const parquet_values *values, const stats_page *stats,
                                 uint32_t **out, weir_error *err) {
  const parquet_leaf *leaf = column->leaf;
  parquet_dict *dict = &column->dict;
  uint32_t entries = dict->n;
  uint64_t bytes = dict->values.size;
  BASE_TRY(parquet_reserve(&ctx->indices, (values->n + 8) * sizeof(uint32_t), err));
  uint32_t *numbers = (uint32_t *)(void *)ctx->indices.data;
  bool full = false;
  if (values->offsets != NULL) {
    BASE_TRY(dict_map_bytes(dict, values->data, values->offsets, values->n, numbers,
                            &full, err));
  } else {
    uint64_t min = 0, max = 0;
    if (leaf->whole) {
      min = as_bits(leaf, stats->min);
      max = as_bits(leaf, stats->max);
    }
    BASE_TRY(
        dict_map_fixed(dict, values->data, values->n, min, max, numbers, &full, err));
  }
  *out = full ? NULL : numbers;
  if (full) {
    close_dictionary(column);
  } else if (entries == 0) {
    return judge_first(column, ctx, out, values->n, err);
  } else {
    judge_dictionary(column, entries, bytes, values->n);
  }
  return WEIR_OK;
}

/* Whether the encoder shows the values to look_at_values. */
static bool bounds_come_late(const parquet_column *column) {
  enum parquet_encoding encoding = column->choice.encoding;
  return column->decided && column->leaf->type != PARQUET_FIXED &&
         (encoding == PARQUET_DELTA_BINARY_PACKED ||
          encoding == PARQUET_BYTE_STREAM_SPLIT);
}

typedef struct late_bounds {
  const parquet_leaf *leaf;
  stats_page *stats;
} late_bounds;

static void look_at_values(void *ctx, const void *values, size_t n) {
  const late_bounds *late = ctx;
  stats_add(late->leaf->order, late->leaf->width, values, n, late->stats);
}

/* The page's dictionary numbers, NULL in *numbers when it has none, and its bounds. Bounds of bytes are
 * sought among the dictionary's entries where there is one: there are fewer of them. */
static weir_status number_page(parquet_column *column, parquet_context *ctx,
                               const parquet_values *values, bool numbered,
                               uint32_t **numbers, stats_page *stats, weir_error *err) {
  const parquet_leaf *leaf = column->leaf;
  bool early =
      !numbered && leaf->type != PARQUET_BYTE_ARRAY && leaf->type != PARQUET_FIXED;
  *stats = (stats_page){0};
  *numbers = NULL;
  if (values->n == 0 || (early && bounds_come_late(column))) return WEIR_OK;
  if (early) {
    stats_of_page(leaf->order, values->data, NULL, leaf->width, values->n, stats);
  }
  if (!column->decided && !numbered) {
    BASE_TRY(page_decide(column, ctx, values, stats, err));
  }
  if (numbered) {
    /* Scratch of this writer, with room for the 8 more that the encoder fills in. */
    *numbers = (uint32_t *)(uintptr_t)values->data;
  } else if (column->choice.encoding == PARQUET_RLE_DICTIONARY) {
    BASE_TRY(number_values(column, ctx, values, stats, numbers, err));
  }
  if (early || leaf->order == ORDER_NONE) return WEIR_OK;
  parquet_values bounded = *values;
  if (*numbers != NULL) {
    BASE_TRY(entries_of(column, ctx, *numbers, values->n, &bounded, err));
  }
  stats_of_page(leaf->order, bounded.data, bounded.offsets, leaf->width, bounded.n,
                stats);
  return WEIR_OK;
}

/* Learns from the first page of numbers whether rounding their width up pays. */
static weir_status learn_width(parquet_column *column, parquet_context *ctx,
                               const parquet_piece *piece, uint32_t *numbers,
                               weir_error *err) {
  if (column->width_known || !column->compress || piece->values.n < 4096) return WEIR_OK;
  column->width_known = true;
  unsigned width = parquet_width(greatest(numbers, piece->values.n));
  if (width == rounded(width)) return WEIR_OK;
  BASE_TRY(codec_compress(&ctx->codec, ctx->body.data, ctx->body.size, err));
  size_t exact = ctx->codec.out.size;
  column->round_width = true;
  BASE_TRY(put_body(ctx, column, piece, PARQUET_RLE_DICTIONARY, numbers, NULL, err));
  BASE_TRY(codec_compress(&ctx->codec, ctx->body.data, ctx->body.size, err));
  if (ctx->codec.out.size < exact) return WEIR_OK;
  column->round_width = false;
  return put_body(ctx, column, piece, PARQUET_RLE_DICTIONARY, numbers, NULL, err);
}

static void fill_data_header(const parquet_context *ctx, const parquet_piece *piece,
                             enum parquet_encoding encoding, parquet_page_header *out) {
  if (!ctx->v2) {
    THRIFT_SET(out, 5);
    out->type = PARQUET_DATA_PAGE;
    out->data_page =
        (parquet_data_page_header){.has = 1u << 1 | 1u << 2 | 1u << 3 | 1u << 4,
                                   .num_values = (int32_t)piece->levels,
                                   .encoding = encoding,
                                   .definition_level_encoding = PARQUET_RLE,
                                   .repetition_level_encoding = PARQUET_RLE};
    return;
  }
  THRIFT_SET(out, 8);
  out->type = PARQUET_DATA_PAGE_V2;
  out->data_page_v2 = (parquet_data_page_header_v2){
      .has = 0xfe,
      .num_values = (int32_t)piece->levels,
      .num_nulls = (int32_t)piece->nulls,
      .num_rows = (int32_t)piece->rows,
      .encoding = encoding,
      .definition_levels_byte_length = (int32_t)ctx->def_size,
      .repetition_levels_byte_length = (int32_t)ctx->rep_size};
}

weir_status page_write(parquet_column *column, parquet_context *ctx,
                       const parquet_piece *piece, bool numbered, weir_error *err) {
  const parquet_values *values = &piece->values;
  stats_page stats;
  uint32_t *numbers = NULL;
  bool late = !numbered && bounds_come_late(column);
  BASE_TRY(number_page(column, ctx, values, numbered, &numbers, &stats, err));
  enum parquet_encoding encoding = numbers != NULL  ? PARQUET_RLE_DICTIONARY
                                   : values->n == 0 ? PARQUET_PLAIN
                                                    : column->choice.encoding;
  encode_witness witness = {look_at_values, &(late_bounds){column->leaf, &stats}};
  BASE_TRY(put_body(ctx, column, piece, encoding, numbers, late ? &witness : NULL, err));
  BASE_TRY(pack_learn(column, ctx, values->n, encoding, err));
  if (numbers == NULL) BASE_TRY(column_hash(column, values, err));
  if (numbers != NULL) BASE_TRY(learn_width(column, ctx, piece, numbers, err));
  parquet_page_header header = {0};
  fill_data_header(ctx, piece, encoding, &header);
  uint64_t size = 0;
  BASE_TRY(append_page(column, ctx, &column->pages, &header, &size, err));
  BASE_TRY(record_page(column, piece, &stats, size, err));
  BASE_TRY(sizes_add_page(column, piece, numbers, err));
  BASE_TRY(stats_merge(&column->bounds, column->leaf->order, &stats, err));
  column->numbered |= numbers != NULL;
  column->encoding_pages[encoding]++;
  column->rows += piece->rows;
  column->levels += piece->levels;
  column->nulls += piece->nulls;
  return WEIR_OK;
}

weir_status page_write_dictionary(parquet_column *column, parquet_context *ctx,
                                  weir_error *err) {
  const parquet_dict *dict = &column->dict;
  parquet_values values = dict_values(dict);
  BASE_TRY(parquet_reserve(&ctx->body, values_bound(column->leaf, &values, PARQUET_PLAIN),
                           err));
  uint8_t *end = put_plain(column->leaf, &values, ctx->body.data);
  ctx->body.size = (size_t)(end - ctx->body.data);
  ctx->tail_size = 0;
  ctx->level_bytes.size = 0;
  parquet_page_header header = {0};
  THRIFT_SET(&header, 7);
  header.type = PARQUET_DICTIONARY_PAGE;
  header.dictionary_page =
      (parquet_dictionary_page_header){.has = 1u << 1 | 1u << 2,
                                       .num_values = (int32_t)dict->n,
                                       .encoding = PARQUET_PLAIN};
  uint64_t size = 0;
  return append_page(column, ctx, &column->dictionary_page, &header, &size, err);
}
