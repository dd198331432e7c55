/* SPDX-License-Identifier: Apache-2.0 */
/* The file: magic bytes, row groups, page indexes, footer (README of parquet-format, "File format"). */
#include <inttypes.h>
#include <stdlib.h>

#include "nested.h"
#include "writer.h"

#define GROUP_ROWS (UINT64_C(1) << 20)
/* Encoded bytes, which is what a row group takes in memory here. The customary 128 MiB are of a writer
 * that keeps them elsewhere; a reader gains nothing past some 10 MiB. */
#define GROUP_BYTES (UINT64_C(32) << 20)
#define PAGE_ROWS 65536u
#define PAGE_BYTES (UINT64_C(512) << 10)

/* The options as this library knows them, from a caller's struct of any age. */
static weir_status read_options(const weir_parquet_options *given,
                                weir_parquet_options *out, weir_error *err) {
  out->struct_size = sizeof(*out);
  weir_parquet_options_init(out);
  if (given != NULL) {
    if (given->struct_size < sizeof(given->struct_size)) {
      return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                            "Parquet writer: struct_size of the options is not set");
    }
    size_t size = given->struct_size < sizeof(*out) ? given->struct_size : sizeof(*out);
    memcpy(out, given, size);
  }
  if (out->row_group_rows == 0) out->row_group_rows = GROUP_ROWS;
  if (out->row_group_bytes == 0) out->row_group_bytes = GROUP_BYTES;
  if (out->page_bytes == 0) out->page_bytes = PAGE_BYTES;
  if (out->page_bytes > (UINT64_C(256) << 20)) {
    return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                          "Parquet writer: page_bytes is %" PRIu64 ", 256 MiB at most",
                          out->page_bytes);
  }
  if (out->row_group_rows > INT32_MAX) out->row_group_rows = INT32_MAX;
  if (out->encodings < 0 || out->encodings > WEIR_PARQUET_NEWEST || out->effort < 0 ||
      out->effort > WEIR_PARQUET_SMALL) {
    return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                          "Parquet writer: encodings %d and effort %d are 0 or 1",
                          (int)out->encodings, (int)out->effort);
  }
  if (out->data_page_version > 2) {
    return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                          "Parquet writer: data_page_version is 1 or 2, not %u",
                          (unsigned)out->data_page_version);
  }
  if (out->threads > 1) {
    return weir_error_set(err, WEIR_E_NOT_IMPLEMENTED, 0,
                          "Parquet writer: threads is 1 for now, not %u",
                          (unsigned)out->threads);
  }
  return WEIR_OK;
}

void weir_parquet_options_init(weir_parquet_options *options) {
  weir_parquet_options known = {.struct_size = options->struct_size,
                                .codec = WEIR_PARQUET_ZSTD};
  size_t size = options->struct_size;
  memcpy(options, &known, size < sizeof(known) ? size : sizeof(known));
}

/* ---- making ----------------------------------------------------------------------------------- */

static weir_status init_leaves(weir_parquet_writer *w, weir_error *err) {
  weir_status status =
      parquet_schema_init(&w->elements, arrow_schema_root(w->schema), err);
  if (status != WEIR_OK) return weir_error_prefix(err, status, "Parquet writer");
  w->leaves = parquet_schema_leaves(&w->elements, &w->n_columns);
  w->columns = base_calloc(w->n_columns, sizeof(*w->columns), err);
  if (w->columns == NULL) return WEIR_E_NOMEM;
  for (size_t i = 0; i < w->n_columns; i++) {
    w->has_dictionaries |= w->leaves[i].node->dictionary != NULL;
    column_init(&w->columns[i], &w->leaves[i]);
  }
  return WEIR_OK;
}

static weir_status copy_metadata(weir_parquet_writer *w, weir_error *err) {
  size_t n = w->options.n_metadata;
  w->metadata_at = base_calloc(2 * n + 1, sizeof(*w->metadata_at), err);
  if (w->metadata_at == NULL) return WEIR_E_NOMEM;
  for (size_t i = 0; i < n; i++) {
    const weir_parquet_key_value *pair = &w->options.metadata[i];
    if (pair->key == NULL) {
      return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                            "Parquet writer: metadata key %zu is NULL", i);
    }
    w->metadata_at[2 * i] = w->metadata.size;
    BASE_TRY(base_buf_append(&w->metadata, pair->key, strlen(pair->key) + 1, err));
    w->metadata_at[2 * i + 1] = pair->value != NULL ? w->metadata.size : SIZE_MAX;
    if (pair->value == NULL) continue;
    BASE_TRY(base_buf_append(&w->metadata, pair->value, strlen(pair->value) + 1, err));
  }
  w->n_metadata = n;
  w->options.metadata = NULL;
  return WEIR_OK;
}

weir_status writer_put(weir_parquet_writer *w, const void *data, size_t size,
                       weir_error *err) {
  if (size == 0) return WEIR_OK;
  BASE_TRY(w->write(w->ctx, data, size, err));
  w->written += size;
  return WEIR_OK;
}

static weir_status init_writer(weir_parquet_writer *w,
                               const weir_parquet_options *options, weir_error *err) {
  BASE_TRY(read_options(options, &w->options, err));
  BASE_TRY(init_leaves(w, err));
  BASE_TRY(copy_metadata(w, err));
  BASE_TRY(codec_init(&w->context.codec, w->options.codec, w->options.level, err));
  w->context.page_rows = PAGE_ROWS;
  w->context.page_bytes = (size_t)w->options.page_bytes;
  w->context.v2 = w->options.data_page_version == 2;
  w->context.newest = w->options.encodings == WEIR_PARQUET_NEWEST;
  w->context.small = w->options.effort == WEIR_PARQUET_SMALL;
  BASE_TRY(parquet_arrow_schema(w->schema, &w->arrow_schema, err));
  return writer_put(w, PARQUET_MAGIC, sizeof(PARQUET_MAGIC) - 1, err);
}

weir_status weir_parquet_writer_new(weir_schema *schema,
                                    const weir_parquet_options *options,
                                    weir_parquet_write write, void *ctx,
                                    weir_parquet_writer **out, weir_error *err) {
  weir_parquet_writer *w = base_calloc(1, sizeof(*w), err);
  if (w == NULL) return WEIR_E_NOMEM;
  w->schema = weir_schema_ref(schema);
  w->write = write;
  w->ctx = ctx;
  weir_status status = init_writer(w, options, err);
  if (status != WEIR_OK) {
    weir_parquet_writer_free(w);
    return status;
  }
  *out = w;
  return WEIR_OK;
}

void weir_parquet_writer_free(weir_parquet_writer *w) {
  if (w == NULL) return;
  for (size_t i = 0; w->columns != NULL && i < w->n_columns; i++)
    column_done(&w->columns[i], &w->context);
  free(w->columns);
  parquet_schema_done(&w->elements);
  context_done(&w->context);
  base_buf_done(&w->groups);
  base_buf_done(&w->chunks);
  base_buf_done(&w->bounds);
  base_buf_done(&w->counts);
  base_buf_done(&w->blooms);
  base_buf_done(&w->indexes);
  base_buf_done(&w->metadata);
  free(w->metadata_at);
  free(w->arrow_schema);
  weir_schema_unref(w->checked);
  weir_schema_unref(w->schema);
  free(w);
}

/* ---- row groups ------------------------------------------------------------------------------- */

static weir_status keep_bounds(weir_parquet_writer *w, const parquet_column *column,
                               written_chunk *chunk, weir_error *err) {
  const stats_bounds *bounds = &column->bounds;
  if (!bounds->has || bounds->nan) return WEIR_OK;
  thrift_binary min = {bounds->min.data, bounds->min.size};
  thrift_binary max = {bounds->max.data, bounds->max.size};
  uint8_t room[STATS_MAX_BYTES + 4];
  chunk->min_exact = chunk->max_exact = true;
  if (column->leaf->type == PARQUET_BYTE_ARRAY) {
    bool utf8 = column->leaf->utf8;
    if (!stats_short_min(min, utf8, &min, &chunk->min_exact)) return WEIR_OK;
    if (!stats_short_max(max, utf8, room, &max, &chunk->max_exact)) return WEIR_OK;
  }
  chunk->min_at = w->bounds.size;
  chunk->min_size = min.size;
  BASE_TRY(base_buf_append(&w->bounds, min.data, min.size, err));
  chunk->max_at = w->bounds.size;
  chunk->max_size = max.size;
  BASE_TRY(base_buf_append(&w->bounds, max.data, max.size, err));
  chunk->has_bounds = true;
  return WEIR_OK;
}

static weir_status write_chunk(weir_parquet_writer *w, parquet_column *column,
                               weir_error *err) {
  written_chunk chunk = {
      .offset = w->written,
      .dictionary_size = column->dictionary_page.size,
      .size = column->dictionary_page.size + column->pages.size,
      .plain_size = column->plain_bytes,
      .levels = column->levels,
      .nulls = column->nulls,
      .numbered = column->numbered,
      .codec = column->compress ? w->context.codec.id : PARQUET_UNCOMPRESSED};
  memcpy(chunk.encoding_pages, column->encoding_pages, sizeof(chunk.encoding_pages));
  BASE_TRY(keep_bounds(w, column, &chunk, err));
  BASE_TRY(sizes_of_chunk(column, &chunk.sizes, &w->counts, err));
  uint64_t first_page = w->written + column->dictionary_page.size;
  chunk.columns_at = w->indexes.size;
  BASE_TRY(parquet_put_column_index(column, &w->indexes, err));
  chunk.columns_size = w->indexes.size - chunk.columns_at;
  chunk.offsets_at = w->indexes.size;
  BASE_TRY(parquet_put_offset_index(column, first_page, &w->indexes, err));
  chunk.offsets_size = w->indexes.size - chunk.offsets_at;
  BASE_TRY(base_buf_append(&w->chunks, &chunk, sizeof(chunk), err));
  BASE_TRY(parquet_rope_write(&column->dictionary_page, w->write, w->ctx, err));
  BASE_TRY(parquet_rope_write(&column->pages, w->write, w->ctx, err));
  w->written += chunk.size;
  return WEIR_OK;
}

/* Gathers a finished chunk's filter. */
static weir_status keep_bloom(weir_parquet_writer *w, parquet_column *column,
                              weir_error *err) {
  written_chunk *chunk = (written_chunk *)(void *)(w->chunks.data + w->chunks.size) - 1;
  chunk->bloom_at = w->blooms.size;
  BASE_TRY(column_put_bloom(column, &w->blooms, err));
  chunk->bloom_size = w->blooms.size - chunk->bloom_at;
  return WEIR_OK;
}

/* BloomFilter.md, "File Format": between row groups, or before the indexes at the end. */
static weir_status write_blooms(weir_parquet_writer *w, weir_error *err) {
  written_chunk *chunks = (written_chunk *)(void *)w->chunks.data;
  chunks += w->chunks.size / sizeof(*chunks) - w->n_columns;
  for (size_t i = 0; i < w->n_columns; i++) chunks[i].bloom_at += w->written;
  weir_status status = writer_put(w, w->blooms.data, w->blooms.size, err);
  base_buf_clear(&w->blooms);
  return status;
}

static weir_status write_group(weir_parquet_writer *w, weir_error *err) {
  if (w->group_rows == 0) return WEIR_OK;
  written_group group = {.rows = w->group_rows, .offset = w->written};
  for (size_t i = 0; i < w->n_columns; i++) {
    parquet_column *column = &w->columns[i];
    BASE_TRY(column_finish(column, &w->context, err));
    group.plain_size += column->plain_bytes;
    BASE_TRY(write_chunk(w, column, err));
    BASE_TRY(keep_bloom(w, column, err));
    column_clear(column, &w->context);
  }
  group.size = w->written - group.offset;
  BASE_TRY(write_blooms(w, err));
  BASE_TRY(base_buf_append(&w->groups, &group, sizeof(group), err));
  w->group_rows = 0;
  w->buffered = 0;
  return WEIR_OK;
}

/* ---- batches ---------------------------------------------------------------------------------- */

static weir_status check_batch(weir_parquet_writer *w, weir_batch *batch,
                               weir_error *err) {
  weir_schema *schema = weir_batch_schema(batch);
  if (schema != w->schema && schema != w->checked) {
    BASE_TRY(weir_schema_check(weir_schema_arrow(w->schema), weir_schema_arrow(schema),
                               "Parquet writer", err));
    weir_schema_unref(w->checked);
    w->checked = weir_schema_ref(schema);
  }
  const struct ArrowArray *array = weir_batch_array(batch);
  if (w->has_dictionaries) {
    BASE_TRY(arrow_indices_check(arrow_schema_root(w->schema), array, NULL, err));
  }
  for (size_t i = 0; i < w->n_columns; i++) {
    const struct ArrowArray *column = array->children[w->leaves[i].column];
    if (w->leaves[i].nested) {
      BASE_TRY(nested_check(&w->leaves[i], column, &w->context.levels, err));
    } else {
      BASE_TRY(leaf_check(&w->leaves[i], column, err));
    }
  }
  return WEIR_OK;
}

/* At most a page of rows at a time, so that a row group ends close to its bounds. */
static weir_status append_rows(weir_parquet_writer *w, const struct ArrowArray *array,
                               weir_error *err) {
  uint64_t done = 0, rows = (uint64_t)array->length;
  while (done < rows) {
    uint64_t left = w->options.row_group_rows - w->group_rows;
    uint64_t part = rows - done < left ? rows - done : left;
    if (part > PAGE_ROWS) part = PAGE_ROWS;
    w->buffered = 0;
    for (size_t i = 0; i < w->n_columns; i++) {
      BASE_TRY(column_append(&w->columns[i], &w->context,
                             array->children[w->leaves[i].column],
                             (size_t)array->offset + done, part, err));
      w->buffered += column_bytes(&w->columns[i]);
    }
    done += part;
    w->group_rows += part;
    w->rows += part;
    if (w->group_rows >= w->options.row_group_rows ||
        w->buffered >= w->options.row_group_bytes) {
      BASE_TRY(write_group(w, err));
    }
  }
  return WEIR_OK;
}

static weir_status usable(const weir_parquet_writer *w, weir_error *err) {
  if (!w->broken && !w->finished) return WEIR_OK;
  return weir_error_set(err, WEIR_E_INVALID_STATE, 0, "Parquet writer: %s",
                        w->finished ? "the file is finished" : "an earlier call failed");
}

weir_status weir_parquet_writer_write(weir_parquet_writer *w, weir_batch *batch,
                                      weir_error *err) {
  BASE_TRY(usable(w, err));
  BASE_TRY(check_batch(w, batch, err));
  weir_status status = append_rows(w, weir_batch_array(batch), err);
  w->broken = status != WEIR_OK;
  return status;
}

weir_status weir_parquet_writer_check(weir_parquet_writer *w, weir_batch *batch,
                                      weir_error *err) {
  BASE_TRY(usable(w, err));
  return check_batch(w, batch, err);
}

weir_status weir_parquet_writer_flush(weir_parquet_writer *w, weir_error *err) {
  BASE_TRY(usable(w, err));
  weir_status status = write_group(w, err);
  w->broken = status != WEIR_OK;
  return status;
}

uint64_t weir_parquet_writer_written(const weir_parquet_writer *w) {
  return w->written;
}

uint64_t weir_parquet_writer_buffered(const weir_parquet_writer *w) {
  return w->buffered;
}

uint64_t weir_parquet_writer_rows(const weir_parquet_writer *w) {
  return w->rows;
}

weir_status weir_parquet_writer_finish(weir_parquet_writer *w, weir_parquet_result *out,
                                       weir_error *err) {
  BASE_TRY(usable(w, err));
  weir_status status = write_group(w, err);
  if (status == WEIR_OK) status = writer_put_footer(w, err);
  w->broken = status != WEIR_OK;
  if (status != WEIR_OK) return status;
  w->finished = true;
  if (out != NULL) {
    *out = (weir_parquet_result){.rows = w->rows,
                                 .bytes = w->written,
                                 .row_groups = w->groups.size / sizeof(written_group)};
  }
  return WEIR_OK;
}
