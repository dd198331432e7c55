/* SPDX-License-Identifier: Apache-2.0 */
/* The footer, and where reading stands (README of parquet-format, "File format"). */
#include <inttypes.h>
#include <stdlib.h>

#include "parquet.h"
#include "read.h"

#define BATCH_ROWS 65536
#define MAX_BATCH_BYTES (UINT64_C(2) << 30)
/* Magic bytes at both ends, and the footer's length. */
enum { HEAD = 4, TAIL = 8 };

struct weir_parquet_reader {
  char *name;
  read_context context;
  read_schema schema;
  read_leaf *leaves;
  size_t n_leaves;
  int32_t batch_rows;
  base_buf footer;
  uint64_t data_end;  /* where the footer begins */
  thrift_arena arena; /* of a row group's metadata */
  base_buf groups;    /* read_group */
  uint64_t rows;
  uint64_t group, row; /* the next row */
  bool open;           /* the leaves stand at it */
  bool broken;
};

typedef struct read_group {
  const uint8_t *at, *end; /* its metadata, in the footer */
  uint64_t rows;
} read_group;

static const read_group *groups_of(const weir_parquet_reader *reader, uint64_t *n) {
  *n = reader->groups.size / sizeof(read_group);
  return (const read_group *)(const void *)reader->groups.data;
}

/* ---- footer ------------------------------------------------------------------------------------ */

static weir_status no_parquet(weir_error *err, const char *what) {
  return weir_error_set(err, WEIR_E_CORRUPT, 0, "this is no Parquet file: %s", what);
}

static weir_status read_footer(weir_parquet_reader *reader, weir_error *err) {
  read_context *ctx = &reader->context;
  uint8_t tail[TAIL];
  if (ctx->size < HEAD + TAIL) return no_parquet(err, "it is too short");
  BASE_TRY(ctx->read(ctx->ctx, ctx->size - TAIL, tail, TAIL, err));
  if (memcmp(tail + 4, "PARE", 4) == 0) {
    return weir_error_set(err, WEIR_E_NOT_IMPLEMENTED, 0,
                          "a Parquet file with an encrypted footer cannot be read");
  }
  if (memcmp(tail + 4, "PAR1", 4) != 0)
    return no_parquet(err,
                      "it does not end with PAR1; a file that is still being written "
                      "cannot be read");
  uint64_t size = parquet_load32(tail);
  if (size > ctx->size - HEAD - TAIL)
    return no_parquet(err, "its footer is longer than the file");
  reader->data_end = ctx->size - TAIL - size;
  BASE_TRY(parquet_reserve(&reader->footer, (size_t)size, err));
  if (size == 0) return no_parquet(err, "its footer is empty");
  BASE_TRY(ctx->read(ctx->ctx, reader->data_end, reader->footer.data, (size_t)size, err));
  reader->footer.size = (size_t)size;
  return WEIR_OK;
}

static weir_status decode_group(weir_parquet_reader *reader, thrift_input *in,
                                parquet_row_group *out, weir_error *err) {
  thrift_arena_clear(&reader->arena);
  in->arena = &reader->arena;
  BASE_TRY(thrift_decode(&parquet_row_group_type, in, out, err));
  if (out->num_rows < 0 || out->columns.n != reader->schema.n_chunks) {
    return weir_error_set(err, WEIR_E_CORRUPT, 0,
                          "a row group has %zu columns and %" PRId64
                          " rows; the schema has %zu columns",
                          out->columns.n, out->num_rows, reader->schema.n_chunks);
  }
  return WEIR_OK;
}

static weir_status find_groups(weir_parquet_reader *reader, const thrift_list *raw,
                               weir_error *err) {
  if (raw->n == 0) return WEIR_OK;
  const thrift_binary *bytes = raw->items;
  thrift_input in = {bytes->data, bytes->data + bytes->size, NULL};
  for (size_t i = 0; i < raw->n; i++) {
    parquet_row_group group;
    read_group found = {.at = in.at};
    weir_status status = decode_group(reader, &in, &group, err);
    if (status != WEIR_OK) return weir_error_prefix(err, status, "row group %zu", i);
    found.end = in.at;
    found.rows = (uint64_t)group.num_rows;
    if (found.rows > (uint64_t)INT64_MAX - reader->rows)
      return weir_error_set(err, WEIR_E_CORRUPT, 0, "more rows than can be counted");
    reader->rows += found.rows;
    BASE_TRY(base_buf_append(&reader->groups, &found, sizeof(found), err));
  }
  return WEIR_OK;
}

/* What is under "ARROW:schema", if it is one. */
static weir_schema *find_hint(const thrift_list *pairs) {
  static const char key[] = "ARROW:schema";
  const parquet_key_value *all = pairs->items;
  weir_schema *hint = NULL;
  for (size_t i = 0; i < pairs->n && hint == NULL; i++) {
    if (all[i].key.size == strlen(key) &&
        memcmp(all[i].key.data, key, strlen(key)) == 0 && all[i].has >> 2 & 1)
      parquet_arrow_schema_read(&all[i].value, &hint);
  }
  return hint;
}

static weir_status open_footer(weir_parquet_reader *reader,
                               const weir_parquet_read_options *options,
                               weir_error *err) {
  parquet_file_meta meta;
  thrift_arena arena = {0};
  const base_buf *footer = &reader->footer;
  thrift_input in = {footer->data, footer->data + footer->size, &arena};
  weir_status status = thrift_decode(&parquet_file_meta_type, &in, &meta, err);
  if (status == WEIR_OK) {
    weir_schema *hint = find_hint(&meta.key_value_metadata);
    status = read_schema_init(&reader->schema, &meta.schema, hint, options->columns,
                              options->n_columns, err);
    weir_schema_unref(hint);
  }
  if (status == WEIR_OK) status = find_groups(reader, &meta.row_groups, err);
  thrift_arena_done(&arena);
  return status;
}

/* ---- making ------------------------------------------------------------------------------------ */

static weir_status read_options(const weir_parquet_read_options *given,
                                weir_parquet_read_options *out, weir_error *err) {
  *out = (weir_parquet_read_options){.struct_size = sizeof(*out)};
  if (given != NULL) {
    if (given->struct_size < sizeof(given->struct_size)) {
      return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                            "Parquet reader: struct_size of the options is not set");
    }
    memcpy(out, given,
           given->struct_size < sizeof(*out) ? given->struct_size : sizeof(*out));
  }
  if (out->batch_rows < 0) {
    return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                          "Parquet reader: batch_rows is %d", (int)out->batch_rows);
  }
  if (out->batch_rows == 0) out->batch_rows = BATCH_ROWS;
  if (out->max_batch_bytes == 0) out->max_batch_bytes = MAX_BATCH_BYTES;
  return WEIR_OK;
}

static weir_status init_reader(weir_parquet_reader *reader,
                               const weir_parquet_read_options *given, weir_error *err) {
  weir_parquet_read_options options;
  BASE_TRY(read_options(given, &options, err));
  reader->batch_rows = options.batch_rows;
  reader->context.max_batch_bytes = options.max_batch_bytes;
  weir_status status = read_footer(reader, err);
  if (status == WEIR_OK) status = open_footer(reader, &options, err);
  if (status != WEIR_OK) return weir_error_prefix(err, status, "%s", reader->name);
  const read_type *types = (const read_type *)(const void *)reader->schema.types.data;
  reader->n_leaves = reader->schema.types.size / sizeof(*types);
  reader->leaves = base_calloc(reader->n_leaves, sizeof(*reader->leaves), err);
  if (reader->leaves == NULL) return WEIR_E_NOMEM;
  for (size_t i = 0; i < reader->n_leaves; i++) reader->leaves[i].type = &types[i];
  return weir_parquet_reader_seek(reader, 0, 0, err);
}

weir_status weir_parquet_reader_new(weir_parquet_read read, void *ctx, uint64_t size,
                                    const char *name,
                                    const weir_parquet_read_options *options,
                                    weir_parquet_reader **out, weir_error *err) {
  weir_parquet_reader *reader = base_calloc(1, sizeof(*reader), err);
  if (reader == NULL) return WEIR_E_NOMEM;
  reader->context.read = read;
  reader->context.ctx = ctx;
  reader->context.size = size;
  reader->name = base_strdup(name, err);
  weir_status status =
      reader->name == NULL ? WEIR_E_NOMEM : init_reader(reader, options, err);
  if (status != WEIR_OK) {
    weir_parquet_reader_free(reader);
    return status;
  }
  *out = reader;
  return WEIR_OK;
}

void weir_parquet_reader_free(weir_parquet_reader *reader) {
  if (reader == NULL) return;
  for (size_t i = 0; reader->leaves != NULL && i < reader->n_leaves; i++)
    read_leaf_done(&reader->leaves[i]);
  free(reader->leaves);
  read_schema_done(&reader->schema);
  unpacker_done(&reader->context.unpacker);
  thrift_arena_done(&reader->context.arena);
  base_buf_done(&reader->context.physical);
  base_buf_done(&reader->context.dense);
  base_buf_done(&reader->context.indices);
  thrift_arena_done(&reader->arena);
  base_buf_done(&reader->footer);
  base_buf_done(&reader->groups);
  free(reader->name);
  free(reader);
}

weir_schema *weir_parquet_reader_schema(const weir_parquet_reader *reader) {
  return reader->schema.arrow;
}

uint64_t weir_parquet_reader_rows(const weir_parquet_reader *reader) {
  return reader->rows;
}

uint64_t weir_parquet_reader_row_groups(const weir_parquet_reader *reader) {
  uint64_t n = 0;
  groups_of(reader, &n);
  return n;
}

uint64_t weir_parquet_reader_group_rows(const weir_parquet_reader *reader,
                                        uint64_t group) {
  uint64_t n = 0;
  const read_group *groups = groups_of(reader, &n);
  return group < n ? groups[group].rows : 0;
}

/* ---- reading ----------------------------------------------------------------------------------- */

/* Past the end of a row group is the beginning of the next, which may have no rows. */
static void settle(weir_parquet_reader *reader) {
  uint64_t n = 0;
  const read_group *groups = groups_of(reader, &n);
  while (reader->group < n && reader->row == groups[reader->group].rows) {
    reader->group++;
    reader->row = 0;
    reader->open = false;
  }
}

weir_status weir_parquet_reader_seek(weir_parquet_reader *reader, uint64_t group,
                                     uint64_t row, weir_error *err) {
  if (group > weir_parquet_reader_row_groups(reader) ||
      row > weir_parquet_reader_group_rows(reader, group)) {
    return weir_error_set(err, WEIR_E_INVALID_STATE, 0,
                          "%s: there is no row %" PRIu64 " in row group %" PRIu64,
                          reader->name, row, group);
  }
  reader->group = group;
  reader->row = row;
  reader->open = reader->broken = false;
  settle(reader);
  return WEIR_OK;
}

void weir_parquet_reader_tell(const weir_parquet_reader *reader, uint64_t *group,
                              uint64_t *row) {
  *group = reader->group;
  *row = reader->row;
}

/* Passes over the rows before `row`: whole pages of flat columns, the others piece by piece. */
static weir_status pass_rows(weir_parquet_reader *reader, read_leaf *leaf, uint64_t row,
                             weir_error *err) {
  while (row > 0) {
    uint64_t part = 0;
    if (leaf->type->flat) {
      BASE_TRY(read_page_pass(&reader->context, leaf, row, &part, err));
      row -= part;
    }
    part = row < (uint64_t)reader->batch_rows ? row : (uint64_t)reader->batch_rows;
    BASE_TRY(read_leaf_rows(&reader->context, leaf, (size_t)part, err));
    read_leaf_clear(leaf);
    row -= part;
  }
  return WEIR_OK;
}

static weir_status open_chunks(weir_parquet_reader *reader, weir_error *err) {
  uint64_t n = 0;
  const read_group *at = &groups_of(reader, &n)[reader->group];
  parquet_row_group group;
  thrift_input in = {at->at, at->end, NULL};
  BASE_TRY(decode_group(reader, &in, &group, err));
  const parquet_column_chunk *chunks = group.columns.items;
  for (size_t i = 0; i < reader->n_leaves; i++) {
    read_leaf *leaf = &reader->leaves[i];
    const parquet_column_chunk *chunk = &chunks[leaf->type->chunk];
    if (chunk->has >> 1 & 1 && chunk->file_path.size > 0) {
      return weir_error_set(err, WEIR_E_NOT_IMPLEMENTED, 0,
                            "column '%s': its values are in another file, which cannot "
                            "be read",
                            leaf->type->name);
    }
    read_leaf_clear(leaf);
    BASE_TRY(read_chunk_open(leaf, &chunk->meta, reader->data_end, err));
    BASE_TRY(pass_rows(reader, leaf, reader->row, err));
  }
  reader->open = true;
  return WEIR_OK;
}

static weir_status read_on(weir_parquet_reader *reader, weir_batch **out,
                           weir_error *err) {
  reader->context.batch_bytes = 0;
  if (!reader->open) BASE_TRY(open_chunks(reader, err));
  uint64_t left = weir_parquet_reader_group_rows(reader, reader->group) - reader->row;
  size_t rows =
      left < (uint64_t)reader->batch_rows ? (size_t)left : (size_t)reader->batch_rows;
  reader->context.batch_bytes = 0;
  for (size_t i = 0; i < reader->n_leaves; i++) {
    read_leaf_clear(&reader->leaves[i]);
    BASE_TRY(read_leaf_rows(&reader->context, &reader->leaves[i], rows, err));
  }
  BASE_TRY(read_batch_make(&reader->schema, reader->leaves, (int64_t)rows, out, err));
  reader->row += rows;
  settle(reader);
  return WEIR_OK;
}

weir_status weir_parquet_reader_next(weir_parquet_reader *reader, weir_batch **out,
                                     weir_error *err) {
  if (reader->broken) {
    return weir_error_set(err, WEIR_E_INVALID_STATE, 0, "%s: an earlier call failed",
                          reader->name);
  }
  *out = NULL;
  uint64_t group = reader->group;
  if (group == weir_parquet_reader_row_groups(reader)) return WEIR_OK;
  weir_status status = read_on(reader, out, err);
  if (status == WEIR_OK) return WEIR_OK;
  reader->broken = true;
  return weir_error_prefix(err, status, "%s: row group %" PRIu64, reader->name, group);
}
