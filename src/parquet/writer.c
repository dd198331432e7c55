/* SPDX-License-Identifier: Apache-2.0 */
/* The file: magic bytes, row groups, page indexes, footer (README of parquet-format, "File format"). */
#include <inttypes.h>
#include <stdlib.h>

#include "nested.h"
#include "parquet.h"
#include "schema.h"

#define GROUP_ROWS (UINT64_C(1) << 20)
/* Encoded bytes, which is what a row group takes in memory here. The customary 128 MiB are of a writer
 * that keeps them elsewhere; a reader gains nothing past some 10 MiB. */
#define GROUP_BYTES (UINT64_C(32) << 20)
#define PAGE_ROWS 65536u
#define PAGE_BYTES (UINT64_C(512) << 10)

static const char magic[4] = {'P', 'A', 'R', '1'};

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

/* A chunk of a row group that has been written. */
typedef struct written_chunk {
  uint64_t offset, dictionary_size, size, plain_size;
  uint64_t levels, nulls;
  uint32_t encoding_pages[10];
  enum parquet_codec_id codec;
  bool numbered, has_bounds, min_exact, max_exact;
  size_t min_at, min_size, max_at, max_size; /* within writer->bounds */
  size_t columns_at, columns_size, offsets_at,
      offsets_size; /* indexes, within writer->indexes */
  uint64_t bloom_at;
  size_t bloom_size; /* with its header; 0: none */
} written_chunk;

typedef struct written_group {
  uint64_t rows, offset, size, plain_size;
} written_group;

struct weir_parquet_writer {
  weir_schema *schema;
  weir_schema *checked; /* the last batch's schema that was found to fit */
  weir_parquet_write write;
  void *ctx;
  weir_parquet_options options;
  parquet_context context;
  parquet_schema elements;
  parquet_leaf *leaves; /* of elements, n_columns */
  parquet_column *columns;
  size_t n_columns;
  bool has_dictionaries, broken, finished;
  uint64_t rows, group_rows, written, buffered;
  base_buf groups;     /* written_group */
  base_buf chunks;     /* written_chunk, n_columns of each group */
  base_buf bounds;     /* bytes of chunks' statistics */
  base_buf blooms;     /* Bloom filters of the row group's chunks */
  base_buf indexes;    /* encoded column and offset indexes */
  base_buf metadata;   /* keys and values: each with a NUL */
  size_t *metadata_at; /* 2 * n: where key and value begin; SIZE_MAX: no value */
  size_t n_metadata;
  char *arrow_schema; /* base64, or NULL */
};

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

static weir_status put(weir_parquet_writer *w, const void *data, size_t size,
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
  w->context.small = w->options.effort == WEIR_PARQUET_SMALL;
  BASE_TRY(parquet_arrow_schema(w->schema, &w->arrow_schema, err));
  return put(w, magic, sizeof(magic), err);
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

/* The leaf of the column with that name, if it can have a filter. */
static weir_status find_bloom_column(const arrow_node *root, const parquet_leaf *leaves,
                                     size_t n, const char *name, size_t *out,
                                     weir_error *err) {
  for (size_t i = 0; i < n; i++) {
    if (strcmp(root->children[leaves[i].column].schema->name, name) != 0) continue;
    const char *why = bloom_refusal(&leaves[i]);
    *out = i;
    if (why == NULL) return WEIR_OK;
    return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                          "column '%s' cannot have a Bloom filter: %s", name, why);
  }
  return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                        "there is no column '%s' for a Bloom filter", name);
}

weir_status weir_parquet_writer_bloom_filter(weir_parquet_writer *w, const char *name,
                                             weir_error *err) {
  if (w->rows > 0 || w->broken || w->finished) {
    return weir_error_set(err, WEIR_E_INVALID_STATE, 0,
                          "Parquet writer: Bloom filters are asked for before rows");
  }
  size_t column = 0;
  BASE_TRY(find_bloom_column(arrow_schema_root(w->schema), w->leaves, w->n_columns, name,
                             &column, err));
  w->columns[column].bloom = true;
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
  base_buf_done(&w->blooms);
  base_buf_done(&w->indexes);
  base_buf_done(&w->metadata);
  free(w->metadata_at);
  free(w->arrow_schema);
  weir_schema_unref(w->checked);
  weir_schema_unref(w->schema);
  free(w);
}

/* With a name: whether that column can have a Bloom filter. */
static weir_status check_schema(const struct ArrowSchema *schema, const char *bloom,
                                weir_error *err) {
  weir_schema *copy = NULL;
  BASE_TRY(weir_schema_copy(schema, &copy, err));
  parquet_schema elements = {0};
  const arrow_node *root = arrow_schema_root(copy);
  weir_status status = parquet_schema_init(&elements, root, err);
  if (status == WEIR_OK && bloom != NULL) {
    size_t n = 0, column = 0;
    const parquet_leaf *leaves = parquet_schema_leaves(&elements, &n);
    status = find_bloom_column(root, leaves, n, bloom, &column, err);
  }
  parquet_schema_done(&elements);
  weir_schema_unref(copy);
  return status;
}

weir_status weir_parquet_schema_check(const struct ArrowSchema *schema, weir_error *err) {
  return check_schema(schema, NULL, err);
}

weir_status weir_parquet_bloom_filter_check(const struct ArrowSchema *schema,
                                            const char *column, weir_error *err) {
  return check_schema(schema, column, err);
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
  weir_status status = put(w, w->blooms.data, w->blooms.size, err);
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
    } else if (column->dictionary != NULL) {
      BASE_TRY(leaf_check(&w->leaves[i], column->dictionary, 0,
                          column->dictionary->length, err));
    } else {
      BASE_TRY(leaf_check(&w->leaves[i], column, array->offset, array->length, err));
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

/* ---- footer ----------------------------------------------------------------------------------- */

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

static void fill_encodings(const written_chunk *chunk, chunk_lists *lists,
                           parquet_column_meta *meta) {
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
    lists->stats[pages++] = (parquet_encoding_stats){14, PARQUET_DATA_PAGE, e,
                                                     (int32_t)chunk->encoding_pages[e]};
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
  fill_encodings(chunk, lists, meta);
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

static weir_status write_footer(weir_parquet_writer *w, weir_error *err) {
  base_buf groups = {0}, footer = {0};
  uint64_t indexes = w->written;
  weir_status status = WEIR_OK;
  BASE_GOTO(status, put(w, w->indexes.data, w->indexes.size, err));
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
  memcpy(tail + 4, magic, sizeof(magic));
  BASE_GOTO(status, base_buf_append(&footer, tail, sizeof(tail), err));
  BASE_GOTO(status, put(w, footer.data, footer.size, err));
out:
  base_buf_done(&groups);
  base_buf_done(&footer);
  return status;
}

weir_status weir_parquet_writer_finish(weir_parquet_writer *w, weir_parquet_result *out,
                                       weir_error *err) {
  BASE_TRY(usable(w, err));
  weir_status status = write_group(w, err);
  if (status == WEIR_OK) status = write_footer(w, err);
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
