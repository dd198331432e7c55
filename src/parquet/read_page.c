/* SPDX-License-Identifier: Apache-2.0 */
/* From a column chunk to pages that can be decoded (README of parquet-format, "Column chunks", "Data Pages"). */
#include "read.h"

enum { WINDOW = 256 << 10, HEADER_FIRST = 256, HEADER_MAX = 16 << 20 };

weir_status read_corrupt(const read_leaf *leaf, const char *what, weir_error *err) {
  weir_error_set(err, WEIR_E_CORRUPT, 0, "column '%s': %s", leaf->type->name, what);
  return weir_error_at(err, WEIR_E_CORRUPT, -1, leaf->type->column);
}

weir_status read_chunk_open(read_leaf *leaf, const parquet_column_meta *meta,
                            uint64_t data_end, weir_error *err) {
  int64_t start = meta->data_page_offset, size = meta->total_compressed_size;
  bool first = meta->has >> 11 & 1 && meta->dictionary_page_offset > 0 &&
               meta->dictionary_page_offset < start;
  if (first) start = meta->dictionary_page_offset;
  if (start < 4 || size < 0 || (uint64_t)start > data_end ||
      (uint64_t)size > data_end - (uint64_t)start)
    return read_corrupt(leaf, "its pages are not within the file", err);
  if (meta->type != (int32_t)leaf->type->type || meta->num_values < 0)
    return read_corrupt(leaf, "the row group has another type for it", err);
  weir_status status = unpacker_check(meta->codec, err);
  if (status != WEIR_OK) {
    weir_error_prefix(err, status, "column '%s'", leaf->type->name);
    return weir_error_at(err, status, -1, leaf->type->column);
  }
  leaf->at = (uint64_t)start;
  leaf->end = leaf->at + (uint64_t)size;
  leaf->levels = (uint64_t)meta->num_values;
  leaf->codec = meta->codec;
  leaf->window.size = 0;
  leaf->page = (read_page){0};
  leaf->ahead_at = leaf->ahead_n = 0;
  leaf->has_dictionary = false;
  return WEIR_OK;
}

/* Has the `size` bytes from leaf->at on in the window; they are within the chunk. */
static weir_status fill(read_context *ctx, read_leaf *leaf, size_t size,
                        weir_error *err) {
  uint64_t have_end = leaf->window_at + leaf->window.size;
  if (leaf->window.size > 0 && leaf->at >= leaf->window_at && leaf->at + size <= have_end)
    return WEIR_OK;
  size_t keep = 0;
  if (leaf->window.size > 0 && leaf->at >= leaf->window_at && leaf->at < have_end) {
    keep = (size_t)(have_end - leaf->at);
    memmove(leaf->window.data, leaf->window.data + (leaf->at - leaf->window_at), keep);
  }
  leaf->window.size = keep;
  leaf->window_at = leaf->at;
  uint64_t left = leaf->end - leaf->at, want = size > WINDOW ? size : WINDOW;
  if (want > left) want = left;
  BASE_TRY(parquet_reserve(&leaf->window, (size_t)want, err));
  if (want > keep) {
    BASE_TRY(ctx->read(ctx->ctx, leaf->at + keep, leaf->window.data + keep,
                       (size_t)want - keep, err));
  }
  leaf->window.size = (size_t)want;
  return WEIR_OK;
}

static const uint8_t *window(const read_leaf *leaf) {
  return leaf->window.data + (leaf->at - leaf->window_at);
}

/* The header at leaf->at, which moves behind it. Its size is not known before. */
static weir_status get_header(read_context *ctx, read_leaf *leaf,
                              parquet_page_header *out, weir_error *err) {
  uint64_t left = leaf->end - leaf->at;
  for (size_t size = HEADER_FIRST;; size *= 8) {
    if (size > left) size = (size_t)left;
    BASE_TRY(fill(ctx, leaf, size, err));
    const uint8_t *data = window(leaf);
    size_t have = leaf->window.size - (size_t)(leaf->at - leaf->window_at);
    thrift_input in = {data, data + have, &ctx->arena};
    thrift_arena_clear(&ctx->arena);
    weir_status status = thrift_decode(&parquet_page_header_type, &in, out, err);
    if (status == WEIR_OK) {
      leaf->at += (uint64_t)(in.at - data);
      break;
    }
    if (status != WEIR_E_CORRUPT || have >= left || have >= HEADER_MAX)
      return weir_error_prefix(err, status, "column '%s'", leaf->type->name);
  }
  if (out->compressed_page_size < 0 || out->uncompressed_page_size < 0 ||
      (uint64_t)out->compressed_page_size > leaf->end - leaf->at)
    return read_corrupt(leaf, "a page is larger than the bytes that are there", err);
  return WEIR_OK;
}

/* The page's bytes, of which the first `bare` are not compressed, in *data; leaf->at moves behind them. */
static weir_status get_body(read_context *ctx, read_leaf *leaf,
                            const parquet_page_header *header, size_t bare, bool packed,
                            const uint8_t **data, weir_error *err) {
  size_t size = (size_t)header->compressed_page_size,
         plain = (size_t)header->uncompressed_page_size;
  BASE_TRY(fill(ctx, leaf, size, err));
  const uint8_t *body = window(leaf);
  leaf->at += size;
  if (header->has >> 4 & 1 && parquet_crc32(0, body, size) != (uint32_t)header->crc)
    return read_corrupt(leaf, "a page's checksum is wrong", err);
  if (bare > size || bare > plain)
    return read_corrupt(leaf, "a page's levels are longer than it", err);
  int32_t codec = packed ? leaf->codec : PARQUET_UNCOMPRESSED;
  if (!unpacker_plausible(codec, size - bare, plain - bare))
    return read_corrupt(leaf, "a page's sizes do not fit each other", err);
  *data = body;
  if (codec == PARQUET_UNCOMPRESSED) return WEIR_OK;
  BASE_TRY(parquet_reserve(&leaf->plain, plain, err));
  if (bare > 0) memcpy(leaf->plain.data, body, bare);
  *data = leaf->plain.data;
  if (plain == bare) return WEIR_OK; /* no value: whatever the codec makes of nothing */
  weir_status status = unpacker_run(&ctx->unpacker, codec, body + bare, size - bare,
                                    leaf->plain.data + bare, plain - bare, err);
  return status == WEIR_OK
             ? status
             : weir_error_prefix(err, status, "column '%s'", leaf->type->name);
}

static weir_status load_dictionary(read_context *ctx, read_leaf *leaf,
                                   const parquet_page_header *header, weir_error *err) {
  const uint8_t *data = NULL;
  const parquet_dictionary_page_header *dictionary = &header->dictionary_page;
  if ((header->has >> 7 & 1) == 0 || leaf->has_dictionary || dictionary->num_values < 0)
    return read_corrupt(leaf, "a dictionary page is not what it should be", err);
  if (dictionary->encoding != PARQUET_PLAIN &&
      dictionary->encoding != PARQUET_PLAIN_DICTIONARY)
    return read_corrupt(leaf, "a dictionary page has an unknown encoding", err);
  BASE_TRY(get_body(ctx, leaf, header, 0, true, &data, err));
  BASE_TRY(read_dictionary(ctx, leaf, data, (size_t)header->uncompressed_page_size,
                           (size_t)dictionary->num_values, err));
  leaf->has_dictionary = true;
  return WEIR_OK;
}

static unsigned level_width(uint8_t max) {
  return parquet_width(max);
}

/* Levels of version 1: a length of 4 bytes, then the hybrid. Moves page->at. */
static weir_status begin_levels(read_leaf *leaf, uint8_t max, int32_t encoding,
                                decode_hybrid *out, weir_error *err) {
  read_page *page = &leaf->page;
  if (max == 0) return WEIR_OK;
  if (encoding != PARQUET_RLE) {
    weir_error_set(err, WEIR_E_NOT_IMPLEMENTED, 0,
                   "column '%s': levels in encoding %d (BIT_PACKED is 4) cannot be read",
                   leaf->type->name, (int)encoding);
    return weir_error_at(err, WEIR_E_NOT_IMPLEMENTED, -1, leaf->type->column);
  }
  size_t have = (size_t)(page->end - page->at);
  if (have < 4 || parquet_load32(page->at) > have - 4)
    return read_corrupt(leaf, "a page's levels are longer than it", err);
  uint32_t size = parquet_load32(page->at);
  decode_hybrid_init(out, page->at + 4, size, level_width(max));
  page->at += 4 + size;
  return WEIR_OK;
}

static weir_status begin_numbers(read_leaf *leaf, weir_error *err) {
  read_page *page = &leaf->page;
  if (!leaf->has_dictionary) return read_corrupt(leaf, "its dictionary is missing", err);
  page->encoding = PARQUET_RLE_DICTIONARY;
  unsigned width = page->at < page->end ? *page->at++ : 0;
  if (width > 32)
    return read_corrupt(leaf, "a page's numbers are wider than 32 bits", err);
  decode_hybrid_init(&page->numbers, page->at, (size_t)(page->end - page->at), width);
  return WEIR_OK;
}

static weir_status begin_delta(read_leaf *leaf, decode_delta *out, weir_error *err) {
  read_page *page = &leaf->page;
  if (!decode_delta_init(out, page->at, (size_t)(page->end - page->at)))
    return read_corrupt(leaf, "a page does not begin as delta encoding does", err);
  page->at = decode_delta_end(out);
  return page->at != NULL ? WEIR_OK
                          : read_corrupt(leaf, "a page's delta encoding is cut", err);
}

static weir_status begin_values(read_leaf *leaf, weir_error *err) {
  read_page *page = &leaf->page;
  size_t have = (size_t)(page->end - page->at);
  enum parquet_type type = leaf->type->type;
  bool bytes = type == PARQUET_BYTE_ARRAY || type == PARQUET_FIXED, good = true;
  if (have == 0) { /* all null; whatever takes a value of it fails */
    page->encoding = PARQUET_PLAIN;
    return WEIR_OK;
  }
  switch (page->encoding) {
    case PARQUET_PLAIN:
      break;
    case PARQUET_PLAIN_DICTIONARY:
    case PARQUET_RLE_DICTIONARY:
      return begin_numbers(leaf, err);
    case PARQUET_RLE:
      good = type == PARQUET_BOOLEAN && have >= 4 && parquet_load32(page->at) <= have - 4;
      if (good)
        decode_hybrid_init(&page->numbers, page->at + 4, parquet_load32(page->at), 1);
      break;
    case PARQUET_DELTA_BINARY_PACKED:
      good = type == PARQUET_INT32 || type == PARQUET_INT64;
      if (good) return begin_delta(leaf, &page->delta, err);
      break;
    case PARQUET_DELTA_LENGTH_BYTE_ARRAY:
      good = type == PARQUET_BYTE_ARRAY;
      if (good) return begin_delta(leaf, &page->lengths, err);
      break;
    case PARQUET_DELTA_BYTE_ARRAY:
      good = bytes;
      leaf->last.size = 0;
      if (!good) break;
      BASE_TRY(begin_delta(leaf, &page->delta, err));
      return begin_delta(leaf, &page->lengths, err);
    case PARQUET_BYTE_STREAM_SPLIT:
      good =
          leaf->type->width > 0 && type != PARQUET_INT96 && have % leaf->type->width == 0;
      if (good) page->split_all = have / leaf->type->width;
      break;
    default:
      good = false;
  }
  if (good) return WEIR_OK;
  weir_error_set(err, WEIR_E_CORRUPT, 0,
                 "column '%s': a page of encoding %d, which its type (%d) does not have",
                 leaf->type->name, (int)page->encoding, (int)type);
  return weir_error_at(err, WEIR_E_CORRUPT, -1, leaf->type->column);
}

static weir_status load_v1(read_context *ctx, read_leaf *leaf,
                           const parquet_page_header *header, weir_error *err) {
  const parquet_data_page_header *data = &header->data_page;
  read_page *page = &leaf->page;
  BASE_TRY(get_body(ctx, leaf, header, 0, true, &page->at, err));
  page->end = page->at + header->uncompressed_page_size;
  page->encoding = (enum parquet_encoding)data->encoding;
  BASE_TRY(begin_levels(leaf, leaf->type->max_rep, data->repetition_level_encoding,
                        &page->rep, err));
  BASE_TRY(begin_levels(leaf, leaf->type->max_def, data->definition_level_encoding,
                        &page->def, err));
  return begin_values(leaf, err);
}

static weir_status load_v2(read_context *ctx, read_leaf *leaf,
                           const parquet_page_header *header, weir_error *err) {
  const parquet_data_page_header_v2 *data = &header->data_page_v2;
  read_page *page = &leaf->page;
  int64_t rep = data->repetition_levels_byte_length,
          def = data->definition_levels_byte_length;
  if (rep < 0 || def < 0) return read_corrupt(leaf, "a page's levels are broken", err);
  bool packed = (data->has >> 7 & 1) == 0 || data->is_compressed;
  BASE_TRY(get_body(ctx, leaf, header, (size_t)(rep + def), packed, &page->at, err));
  page->end = page->at + header->uncompressed_page_size;
  page->encoding = (enum parquet_encoding)data->encoding;
  decode_hybrid_init(&page->rep, page->at, (size_t)rep, level_width(leaf->type->max_rep));
  page->at += rep;
  decode_hybrid_init(&page->def, page->at, (size_t)def, level_width(leaf->type->max_def));
  page->at += def;
  return begin_values(leaf, err);
}

/* Headers up to that of a data page; dictionaries on the way are kept. */
static weir_status next_data_header(read_context *ctx, read_leaf *leaf,
                                    parquet_page_header *header, uint64_t *levels,
                                    weir_error *err) {
  for (;;) {
    if (leaf->levels == 0 || leaf->at >= leaf->end)
      return read_corrupt(leaf, "it has fewer values than its row group has rows", err);
    BASE_TRY(get_header(ctx, leaf, header, err));
    int32_t n = -1;
    switch (header->type) {
      case PARQUET_DICTIONARY_PAGE:
        BASE_TRY(load_dictionary(ctx, leaf, header, err));
        continue;
      case PARQUET_DATA_PAGE:
        if (header->has >> 5 & 1) n = header->data_page.num_values;
        break;
      case PARQUET_DATA_PAGE_V2:
        if (header->has >> 8 & 1) n = header->data_page_v2.num_values;
        break;
      default: /* an index page, or what a later format has */
        leaf->at += (uint64_t)header->compressed_page_size;
        continue;
    }
    if (n < 0 || (uint64_t)n > leaf->levels)
      return read_corrupt(leaf, "its pages have more values than it has", err);
    *levels = (uint64_t)n;
    return WEIR_OK;
  }
}

static weir_status load_page(read_context *ctx, read_leaf *leaf,
                             const parquet_page_header *header, uint64_t levels,
                             weir_error *err) {
  leaf->page = (read_page){.levels = levels};
  leaf->levels -= levels;
  leaf->ahead_at = leaf->ahead_n = 0;
  return header->type == PARQUET_DATA_PAGE ? load_v1(ctx, leaf, header, err)
                                           : load_v2(ctx, leaf, header, err);
}

weir_status read_page_next(read_context *ctx, read_leaf *leaf, weir_error *err) {
  parquet_page_header header = {0};
  do {
    uint64_t levels = 0;
    BASE_TRY(next_data_header(ctx, leaf, &header, &levels, err));
    BASE_TRY(load_page(ctx, leaf, &header, levels, err));
  } while (leaf->page.levels == 0);
  return WEIR_OK;
}

weir_status read_page_pass(read_context *ctx, read_leaf *leaf, uint64_t rows,
                           uint64_t *passed, weir_error *err) {
  *passed = 0;
  while (leaf->page.levels == 0 && *passed < rows) {
    parquet_page_header header = {0};
    uint64_t levels = 0;
    BASE_TRY(next_data_header(ctx, leaf, &header, &levels, err));
    if (levels > rows - *passed) return load_page(ctx, leaf, &header, levels, err);
    leaf->levels -= levels;
    leaf->at += (uint64_t)header.compressed_page_size;
    *passed += levels;
  }
  return WEIR_OK;
}
