/* SPDX-License-Identifier: Apache-2.0 */
/* PageIndex.md: where each page is, and what values it may hold. */
#include <stdlib.h>

#include "parquet.h"

static const page_record *records_of(const parquet_column *column, size_t *n) {
  *n = column->records.size / sizeof(page_record);
  return (const page_record *)(const void *)column->records.data;
}

weir_status parquet_put_offset_index(const parquet_column *column, uint64_t offset,
                                     base_buf *out, weir_error *err) {
  size_t n = 0;
  const page_record *records = records_of(column, &n);
  parquet_page_location *pages = base_calloc(n, sizeof(*pages), err);
  if (pages == NULL) return WEIR_E_NOMEM;
  for (size_t i = 0; i < n; i++) {
    pages[i] = (parquet_page_location){.has = 1u << 1 | 1u << 2 | 1u << 3,
                                       .offset = (int64_t)offset,
                                       .compressed_page_size = (int32_t)records[i].size,
                                       .first_row_index = (int64_t)records[i].first_row};
    offset += records[i].size;
  }
  parquet_offset_index index = {.has = 1u << 1, .page_locations = {pages, n}};
  if (column->page_bytes.size > 0) THRIFT_SET(&index, 2);
  index.unencoded_byte_array_data_bytes = sizes_list(&column->page_bytes);
  weir_status status = thrift_encode(&parquet_offset_index_type, &index, out, err);
  free(pages);
  return status;
}

/* Pages without values are skipped; equal bounds count as either. */
static int32_t order_of(const parquet_column *column, const page_record *records,
                        const thrift_binary *min, const thrift_binary *max, size_t n) {
  enum parquet_order order = column->leaf->order;
  bool up = true, down = true;
  size_t before = SIZE_MAX;
  for (size_t i = 0; i < n; i++) {
    if (!records[i].has_values) continue;
    if (before != SIZE_MAX) {
      int by_min = stats_compare(order, min[before], min[i]);
      int by_max = stats_compare(order, max[before], max[i]);
      up &= by_min <= 0 && by_max <= 0;
      down &= by_min >= 0 && by_max >= 0;
    }
    before = i;
  }
  return up ? PARQUET_ASCENDING : down ? PARQUET_DESCENDING : PARQUET_UNORDERED;
}

weir_status parquet_put_column_index(const parquet_column *column, base_buf *out,
                                     weir_error *err) {
  if (column->unbounded) return WEIR_OK;
  size_t n = 0;
  const page_record *records = records_of(column, &n);
  weir_status status = WEIR_E_NOMEM;
  uint8_t *null_pages = base_calloc(n, sizeof(*null_pages), err);
  int64_t *null_counts = base_calloc(n, sizeof(*null_counts), err);
  thrift_binary *min = base_calloc(n, sizeof(*min), err);
  thrift_binary *max = base_calloc(n, sizeof(*max), err);
  if (null_pages == NULL || null_counts == NULL || min == NULL || max == NULL) goto out;
  for (size_t i = 0; i < n; i++) {
    null_pages[i] = !records[i].has_values;
    null_counts[i] = (int64_t)records[i].nulls;
    if (!records[i].has_values)
      continue; /* "a byte array of length 0" for pages of nulls */
    min[i] = (thrift_binary){column->bounds_bytes.data + records[i].min_at,
                             records[i].min_size};
    max[i] = (thrift_binary){column->bounds_bytes.data + records[i].max_at,
                             records[i].max_size};
  }
  parquet_column_index index = {.has = 1u << 1 | 1u << 2 | 1u << 3 | 1u << 4 | 1u << 5,
                                .null_pages = {null_pages, n},
                                .min_values = {min, n},
                                .max_values = {max, n},
                                .null_counts = {null_counts, n},
                                .boundary_order = order_of(column, records, min, max, n)};
  if (column->rep_counts.size > 0) THRIFT_SET(&index, 6);
  if (column->def_counts.size > 0) THRIFT_SET(&index, 7);
  index.repetition_level_histograms = sizes_list(&column->rep_counts);
  index.definition_level_histograms = sizes_list(&column->def_counts);
  status = thrift_encode(&parquet_column_index_type, &index, out, err);
out:
  free(null_pages);
  free(null_counts);
  free(min);
  free(max);
  return status;
}
