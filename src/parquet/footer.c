/* SPDX-License-Identifier: Apache-2.0 */
/* FileMetaData of parquet.thrift: what a reader needs to find its chunks and pages. */
#include <stdlib.h>

#include "writer.h"

static void fill_statistics(const weir_parquet_writer *w, const written_chunk *chunk,
                            parquet_statistics *out) {
  THRIFT_SET(out, 3);
  out->null_count = (int64_t)chunk->nulls;
  if (!chunk->has_bounds) return;
  out->has |= 1u << 5 | 1u << 6 | 1u << 7 | 1u << 8;
  out->max_value = (thrift_binary){w->bounds.data + chunk->max_at, chunk->max_size};
  out->min_value = (thrift_binary){w->bounds.data + chunk->min_at, chunk->min_size};
  out->is_max_value_exact = chunk->max_exact;
  out->is_min_value_exact = chunk->min_exact;
}

/* What one chunk's lists point to while it is encoded. */
typedef struct chunk_lists {
  int32_t encodings[12];
  parquet_encoding_stats stats[12];
} chunk_lists;

static void fill_encodings(const weir_parquet_writer *w, const written_chunk *chunk,
                           chunk_lists *lists, parquet_column_meta *meta) {
  int32_t data_page = w->context.v2 ? PARQUET_DATA_PAGE_V2 : PARQUET_DATA_PAGE;
  size_t n = 0, pages = 0;
  if (chunk->numbered) {
    lists->encodings[n++] = PARQUET_PLAIN; /* the dictionary page's */
    lists->stats[pages++] =
        (parquet_encoding_stats){14, PARQUET_DICTIONARY_PAGE, PARQUET_PLAIN, 1};
  }
  lists->encodings[n++] = PARQUET_RLE; /* the levels' */
  for (int32_t e = 0; e < 10; e++) {
    if (chunk->encoding_pages[e] == 0) continue;
    if (e != PARQUET_RLE && !(e == PARQUET_PLAIN && chunk->numbered))
      lists->encodings[n++] = e;
    lists->stats[pages++] =
        (parquet_encoding_stats){14, data_page, e, (int32_t)chunk->encoding_pages[e]};
  }
  meta->encodings = (thrift_list){lists->encodings, n};
  meta->encoding_stats = (thrift_list){lists->stats, pages};
}

static void fill_chunk(const weir_parquet_writer *w, const parquet_leaf *leaf,
                       const written_chunk *chunk, uint64_t indexes, chunk_lists *lists,
                       parquet_column_chunk *out) {
  *out = (parquet_column_chunk){.has = 1u << 2 | 1u << 3 | 1u << 4 | 1u << 5};
  /* "file_offset: deprecated, should be 0". */
  out->offset_index_offset = (int64_t)(indexes + chunk->offsets_at);
  out->offset_index_length = (int32_t)chunk->offsets_size;
  if (chunk->columns_size > 0) {
    out->has |= 1u << 6 | 1u << 7;
    out->column_index_offset = (int64_t)(indexes + chunk->columns_at);
    out->column_index_length = (int32_t)chunk->columns_size;
  }
  parquet_column_meta *meta = &out->meta;
  meta->has = 0xfeu | 1u << 9 | 1u << 12 | 1u << 13;
  meta->has &= ~(1u << 8);
  meta->type = leaf->type;
  meta->codec = (int32_t)chunk->codec;
  fill_encodings(w, chunk, lists, meta);
  meta->path_in_schema = (thrift_list){leaf->path, leaf->n_path};
  meta->num_values = (int64_t)chunk->levels;
  meta->total_uncompressed_size = (int64_t)chunk->plain_size;
  meta->total_compressed_size = (int64_t)chunk->size;
  meta->data_page_offset = (int64_t)(chunk->offset + chunk->dictionary_size);
  if (chunk->numbered) {
    THRIFT_SET(meta, 11);
    meta->dictionary_page_offset = (int64_t)chunk->offset;
  }
  if (chunk->bloom_size > 0) {
    THRIFT_SET(meta, 14);
    THRIFT_SET(meta, 15);
    meta->bloom_filter_offset = (int64_t)chunk->bloom_at;
    meta->bloom_filter_length = (int32_t)chunk->bloom_size;
  }
  fill_statistics(w, chunk, &meta->statistics);
  sizes_fill(&chunk->sizes, &w->counts, leaf->type == PARQUET_BYTE_ARRAY,
             &meta->size_statistics);
  if (meta->size_statistics.has != 0) THRIFT_SET(meta, 16);
}

/* The encoded RowGroup structs, one after the other. */
static weir_status encode_groups(weir_parquet_writer *w, uint64_t indexes, base_buf *out,
                                 weir_error *err) {
  const written_group *groups = (const written_group *)(const void *)w->groups.data;
  const written_chunk *chunk = (const written_chunk *)(const void *)w->chunks.data;
  size_t n = w->groups.size / sizeof(*groups);
  parquet_column_chunk *columns = base_calloc(w->n_columns, sizeof(*columns), err);
  chunk_lists *lists = base_calloc(w->n_columns, sizeof(*lists), err);
  weir_status status = columns != NULL && lists != NULL ? WEIR_OK : WEIR_E_NOMEM;
  for (size_t g = 0; status == WEIR_OK && g < n; g++) {
    for (size_t i = 0; i < w->n_columns; i++, chunk++) {
      fill_chunk(w, &w->leaves[i], chunk, indexes, &lists[i], &columns[i]);
    }
    parquet_row_group group = {.has = 1u << 1 | 1u << 2 | 1u << 3 | 1u << 5 | 1u << 6,
                               .columns = {columns, w->n_columns},
                               .total_byte_size = (int64_t)groups[g].plain_size,
                               .num_rows = (int64_t)groups[g].rows,
                               .file_offset = (int64_t)groups[g].offset,
                               .total_compressed_size = (int64_t)groups[g].size};
    if (g <= INT16_MAX) {
      THRIFT_SET(&group, 7);
      group.ordinal = (int16_t)g;
    }
    status = thrift_encode(&parquet_row_group_type, &group, out, err);
  }
  free(columns);
  free(lists);
  return status;
}

static thrift_binary text_of(const char *text) {
  return (thrift_binary){(const uint8_t *)text, strlen(text)};
}

static size_t fill_metadata(const weir_parquet_writer *w, parquet_key_value *pairs) {
  size_t n = 0;
  if (w->arrow_schema != NULL) {
    pairs[n++] =
        (parquet_key_value){6, text_of("ARROW:schema"), text_of(w->arrow_schema)};
  }
  const char *texts = (const char *)w->metadata.data;
  for (size_t i = 0; i < w->n_metadata; i++) {
    parquet_key_value *pair = &pairs[n++];
    *pair = (parquet_key_value){.has = 1u << 1,
                                .key = text_of(texts + w->metadata_at[2 * i])};
    if (w->metadata_at[2 * i + 1] == SIZE_MAX) continue;
    THRIFT_SET(pair, 2);
    pair->value = text_of(texts + w->metadata_at[2 * i + 1]);
  }
  return n;
}

static weir_status encode_footer(weir_parquet_writer *w, const base_buf *groups,
                                 base_buf *out, weir_error *err) {
  size_t n = w->n_columns;
  parquet_column_order *orders = base_calloc(n, sizeof(*orders), err);
  parquet_key_value *pairs = base_calloc(w->n_metadata + 1, sizeof(*pairs), err);
  weir_status status = WEIR_E_NOMEM;
  if (orders == NULL || pairs == NULL) goto out;
  for (size_t i = 0; i < n; i++) orders[i].has = 1u << 1;
  size_t n_pairs = fill_metadata(w, pairs);
  parquet_file_meta meta = {
      .has = 1u << 1 | 1u << 2 | 1u << 3 | 1u << 4 | 1u << 6 | 1u << 7,
      .version = 2,
      .schema = {w->elements.elements.data,
                 w->elements.elements.size / sizeof(parquet_schema_element)},
      .num_rows = (int64_t)w->rows,
      .row_groups = {&(thrift_binary){groups->data, groups->size},
                     w->groups.size / sizeof(written_group)},
      .key_value_metadata = {pairs, n_pairs},
      .column_orders = {orders, n},
      .created_by = text_of("weir version " WEIR_VERSION)};
  if (n_pairs > 0) THRIFT_SET(&meta, 5);
  status = thrift_encode(&parquet_file_meta_type, &meta, out, err);
out:
  free(orders);
  free(pairs);
  return status;
}

weir_status writer_put_footer(weir_parquet_writer *w, weir_error *err) {
  base_buf groups = {0}, footer = {0};
  uint64_t indexes = w->written;
  weir_status status = WEIR_OK;
  BASE_GOTO(status, writer_put(w, w->indexes.data, w->indexes.size, err));
  BASE_GOTO(status, encode_groups(w, indexes, &groups, err));
  BASE_GOTO(status, encode_footer(w, &groups, &footer, err));
  if (footer.size > INT32_MAX) {
    status = weir_error_set(err, WEIR_E_INTERNAL, 0,
                            "Parquet writer: a footer of %zu bytes; raise row_group_rows",
                            footer.size);
    goto out;
  }
  uint8_t tail[8];
  parquet_store32(tail, (uint32_t)footer.size);
  memcpy(tail + 4, PARQUET_MAGIC, 4);
  BASE_GOTO(status, base_buf_append(&footer, tail, sizeof(tail), err));
  BASE_GOTO(status, writer_put(w, footer.data, footer.size, err));
out:
  base_buf_done(&groups);
  base_buf_done(&footer);
  return status;
}
