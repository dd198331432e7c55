/* SPDX-License-Identifier: Apache-2.0 */
/* Values and levels to finished pages: data pages and dictionary pages (README of parquet-format, "Data
 * Pages"). A page v1 compresses its levels and values as one, a page v2 its values alone. */
#include "column.h"

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

/* What a compressor leaves of an integer's planes: no more than the bits of the values' range. */
static double split_bits(const parquet_context *ctx, const parquet_leaf *leaf,
                         const stats_page *stats) {
  bool may = ctx->newest && ctx->codec.id == PARQUET_ZSTD && leaf->whole && stats->has;
  if (!may) return CHOOSE_NEVER;
  uint64_t range = as_bits(leaf, stats->max) - as_bits(leaf, stats->min);
  return range >> 32 != 0 ? 32 + parquet_width((uint32_t)(range >> 32))
                          : parquet_width((uint32_t)range);
}

weir_status page_decide(parquet_column *column, parquet_context *ctx,
                        const parquet_values *values, const stats_page *stats,
                        weir_error *err) {
  const parquet_leaf *leaf = column->leaf;
  choose_rules rules = {.dictionary = !column->closed,
                        .compressed = ctx->codec.id != PARQUET_UNCOMPRESSED,
                        .split_bits = split_bits(ctx, leaf, stats)};
  column->choice = choose_wished(leaf, values, &rules, column->wish);
  column->decided = true;
  if (ctx->small && !column->wish.set) BASE_TRY(small_choose(column, ctx, values, err));
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
  bool keep = cost <= column->choice.other_bits;
  if (keep && ctx->small && !column->wish.set)
    BASE_TRY(small_keep(column, ctx, *numbers, n, entries, &keep, err));
  if (keep) return WEIR_OK;
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
  BASE_TRY(body_put(ctx, column, piece, encoding, numbers, late ? &witness : NULL, err));
  BASE_TRY(pack_learn(column, ctx, values->n, encoding, err));
  if (numbers == NULL) BASE_TRY(column_hash(column, values, err));
  if (numbers != NULL) BASE_TRY(body_learn_width(column, ctx, piece, numbers, err));
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
  BASE_TRY(body_put_entries(ctx, column->leaf, &values, err));
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
