/* SPDX-License-Identifier: Apache-2.0 */
/* SizeStatistics of parquet.thrift: what a page or chunk takes once it is decoded. */
#include "column.h"
#include "parquet.h"

/* "may be omitted if max_repetition_level is 0", "if max_definition_level is 0 or 1": bounds and null counts
 * tell as much. */
static weir_status add_histogram(const uint8_t *levels, size_t n, uint8_t max,
                                 uint8_t known, base_buf *out, weir_error *err) {
  if (max <= known) return WEIR_OK;
  for (unsigned level = 0; level <= max; level++) {
    int64_t count = (int64_t)levels_count(levels, n, (uint8_t)level);
    BASE_TRY(base_buf_append(out, &count, sizeof(count), err));
  }
  return WEIR_OK;
}

static int64_t bytes_of(const parquet_column *column, const parquet_values *values,
                        const uint32_t *numbers) {
  if (values->n == 0) return 0;
  if (values->offsets != NULL) return values->offsets[values->n] - values->offsets[0];
  const uint32_t *offsets = dict_values(&column->dict).offsets;
  int64_t bytes = 0;
  for (size_t i = 0; i < values->n; i++)
    bytes += offsets[numbers[i] + 1] - offsets[numbers[i]];
  return bytes;
}

weir_status sizes_add_page(parquet_column *column, const parquet_piece *piece,
                           const uint32_t *numbers, weir_error *err) {
  const parquet_leaf *leaf = column->leaf;
  if (leaf->type == PARQUET_BYTE_ARRAY) {
    int64_t bytes = bytes_of(column, &piece->values, numbers);
    BASE_TRY(base_buf_append(&column->page_bytes, &bytes, sizeof(bytes), err));
  }
  if (piece->def == NULL) return WEIR_OK;
  BASE_TRY(add_histogram(piece->rep, piece->levels, leaf->max_rep, 0, &column->rep_counts,
                         err));
  return add_histogram(piece->def, piece->levels, leaf->max_def, 1, &column->def_counts,
                       err);
}

thrift_list sizes_list(const base_buf *counts) {
  return (thrift_list){counts->data, counts->size / sizeof(int64_t)};
}

/* The sums of the pages' histograms. */
static weir_status sum_histograms(const base_buf *counts, size_t levels, base_buf *out,
                                  weir_error *err) {
  const int64_t *count = (const int64_t *)(const void *)counts->data;
  size_t n = counts->size / sizeof(*count), at = out->size;
  if (n == 0) return WEIR_OK;
  BASE_TRY(parquet_reserve(out, at + levels * sizeof(*count), err));
  int64_t *sums = (int64_t *)(void *)(out->data + at);
  memset(sums, 0, levels * sizeof(*sums));
  for (size_t i = 0; i < n; i++) sums[i % levels] += count[i];
  out->size = at + levels * sizeof(*sums);
  return WEIR_OK;
}

weir_status sizes_of_chunk(const parquet_column *column, sizes_chunk *out,
                           base_buf *counts, weir_error *err) {
  const parquet_leaf *leaf = column->leaf;
  const int64_t *bytes = (const int64_t *)(const void *)column->page_bytes.data;
  *out = (sizes_chunk){.rep_at = counts->size};
  for (size_t i = 0; i < column->page_bytes.size / sizeof(*bytes); i++)
    out->bytes += bytes[i];
  BASE_TRY(sum_histograms(&column->rep_counts, leaf->max_rep + 1u, counts, err));
  out->def_at = counts->size;
  BASE_TRY(sum_histograms(&column->def_counts, leaf->max_def + 1u, counts, err));
  out->end = counts->size;
  return WEIR_OK;
}

void sizes_fill(const sizes_chunk *chunk, const base_buf *counts, bool bytes,
                parquet_size_statistics *out) {
  size_t rep = (chunk->def_at - chunk->rep_at) / sizeof(int64_t);
  size_t def = (chunk->end - chunk->def_at) / sizeof(int64_t);
  if (bytes) THRIFT_SET(out, 1);
  if (rep > 0) THRIFT_SET(out, 2);
  if (def > 0) THRIFT_SET(out, 3);
  out->unencoded_byte_array_data_bytes = chunk->bytes;
  out->repetition_level_histogram = (thrift_list){counts->data + chunk->rep_at, rep};
  out->definition_level_histogram = (thrift_list){counts->data + chunk->def_at, def};
}
