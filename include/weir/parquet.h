/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parquet files from record batches. Unstable until 1.0.
 *
 * A writer encodes and compresses pages as batches arrive and keeps only those finished pages, plus
 * at most one open page a column, until a row group is full; then the row group goes to the write
 * callback, in order. It never seeks and never reads back, so the callback may feed a file, a socket
 * or an upload. What was handed over before a failure is not a Parquet file; only finish() makes it one.
 *
 * Encodings are chosen per column chunk from the data: a sample decides, not the type alone.
 * Dictionary-typed columns keep their dictionary. The Arrow schema is kept in the key-value metadata
 * under "ARROW:schema", so that Arrow readers give back the types that Parquet itself does not have.
 *
 * A field's metadata "PARQUET:field_id", a decimal number, becomes the id of its schema element.
 *
 * Nested columns are written as LogicalTypes.md has them: lists of any kind with `list` and `element`,
 * maps with `key_value`, `key` and `value`. A page begins with a record. List views come back as lists and
 * run-end encoded columns as their values; intervals are Parquet's INTERVAL, so they must not be negative
 * and have whole milliseconds. Unions and structs without fields are refused by name.
 *
 * Threads: one at a time per writer; writers are independent of each other.
 */
#ifndef WEIR_PARQUET_H
#define WEIR_PARQUET_H

#include <weir/batch.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Codecs; LZ4 is Parquet's LZ4_RAW. A column chunk that does not shrink is stored uncompressed. */
enum {
  WEIR_PARQUET_NONE = 0,
  WEIR_PARQUET_ZSTD = 1,
  WEIR_PARQUET_SNAPPY = 2,
  WEIR_PARQUET_LZ4 = 3,
  WEIR_PARQUET_GZIP = 4
};

/* Which encodings may be used. COMPATIBLE: what readers of 2022 and later know (PLAIN, dictionary,
 * DELTA_*, BYTE_STREAM_SPLIT of floats). NEWEST: also what format 2.11 added: BYTE_STREAM_SPLIT of integers. */
enum { WEIR_PARQUET_COMPATIBLE = 0, WEIR_PARQUET_NEWEST = 1 };

/* SMALL: each chunk's first page is tried in every encoding that it may have, and more of what shrinks a little
 * is compressed. */
enum { WEIR_PARQUET_FAST = 0, WEIR_PARQUET_SMALL = 1 };

typedef struct weir_parquet_key_value {
  const char *key;
  const char *value; /* NULL: a key without a value */
} weir_parquet_key_value;

/* A zeroed struct with struct_size set, and a NULL pointer, mean the defaults. */
typedef struct weir_parquet_options {
  uint32_t struct_size; /* sizeof(weir_parquet_options) as the caller compiled it */
  int32_t codec;        /* WEIR_PARQUET_*; _options_init sets ZSTD */
  /* of zstd (-7..22) and gzip (1..9); 0 = 1 for zstd, 6 for gzip */
  int32_t level;
  int32_t encodings;       /* WEIR_PARQUET_COMPATIBLE or NEWEST */
  int32_t effort;          /* WEIR_PARQUET_FAST or SMALL */
  uint32_t threads;        /* 0 = 1; only 1 for now */
  uint64_t row_group_rows; /* 0 = 1 Mi rows */
  /* encoded bytes kept before a row group is written; 0 = 32 MiB */
  uint64_t row_group_bytes;
  uint64_t page_bytes;                    /* of a page before compression; 0 = 512 KiB */
  const weir_parquet_key_value *metadata; /* copied by _new */
  size_t n_metadata;
  uint32_t data_page_version; /* 1 or 2; 0 = 1, which every reader knows */
} weir_parquet_options;

typedef struct weir_parquet_result {
  uint64_t rows;
  uint64_t bytes; /* of the whole file: the sum of all that the callback took */
  uint64_t row_groups;
} weir_parquet_result;

typedef struct weir_parquet_writer weir_parquet_writer;

/* Takes all `size` bytes or fails; called from within _new, _write and _finish, on their thread.
 * `data` is valid during the call only. */
typedef weir_status (*weir_parquet_write)(void *ctx, const void *data, size_t size,
                                          weir_error *err);

/* Fills in the defaults: zstd at level 1, compatible, fast, one thread. struct_size is set before the call,
 * and no byte beyond it is written. */
WEIR_API void weir_parquet_options_init(weir_parquet_options *options);

/* "zstd", "zstd(3)", "snappy", "lz4", "gzip", "gzip(9)", "none". Anything else, "brotli" and "lzo"
 * included, is WEIR_E_INVALID_CONFIG and lists these. `level` becomes 0 when none is given. */
WEIR_API weir_status weir_parquet_codec_parse(const char *text, int32_t *codec,
                                              int32_t *level, weir_error *err);

/* Whether a file of this schema can be written: WEIR_E_NOT_IMPLEMENTED or WEIR_E_SCHEMA with the
 * first column that cannot, its type, and err->column set. No I/O. */
WEIR_API weir_status weir_parquet_schema_check(const struct ArrowSchema *schema,
                                               weir_error *err);

/* Whether weir_parquet_writer_bloom_filter would take the column of such a schema; refuses as it does. No
 * I/O. */
WEIR_API weir_status weir_parquet_bloom_filter_check(const struct ArrowSchema *schema,
                                                     const char *column, weir_error *err);

/* Whether weir_parquet_writer_encoding would take the column of such a schema, under these `encodings`; refuses as
 * it does. No I/O. */
WEIR_API weir_status weir_parquet_encoding_check(const struct ArrowSchema *schema,
                                                 int32_t encodings, const char *column,
                                                 const char *encoding, weir_error *err);

/* Begins a file: checks schema and options, writes the leading magic bytes. Keeps a reference to
 * `schema` and the callback, but not `options`. */
WEIR_API weir_status weir_parquet_writer_new(weir_schema *schema,
                                             const weir_parquet_options *options,
                                             weir_parquet_write write, void *ctx,
                                             weir_parquet_writer **out, weir_error *err);

/* Asks for a split-block Bloom filter in each of the column's chunks, for readers that look for single
 * values: about 1 % of those that are not there pass. At most 2 MiB each; a chunk with more than about
 * 1.7 million values has none. Before the first row. WEIR_E_INVALID_CONFIG with the name: no column of
 * the schema, nested, or of a type whose equal values may differ in bytes (floats, intervals) or of which
 * there are but a few (bool, null). */
WEIR_API weir_status weir_parquet_writer_bloom_filter(weir_parquet_writer *writer,
                                                      const char *column,
                                                      weir_error *err);

/* The encoding of all the column's chunks, instead of one chosen from the data: "plain", "dictionary" (until it
 * is full), "delta_binary_packed", "delta_length_byte_array", "delta_byte_array" or "byte_stream_split". A nested
 * column's values are named by their path, such as "tags.list.element". Before the first row.
 * WEIR_E_INVALID_CONFIG with the name: no such column, or an encoding that its type cannot have (Encodings.md)
 * or that WEIR_PARQUET_COMPATIBLE leaves out. */
WEIR_API weir_status weir_parquet_writer_encoding(weir_parquet_writer *writer,
                                                  const char *column,
                                                  const char *encoding, weir_error *err);

/* Appends a batch whose schema fits the writer's (checked). The batch is borrowed for the call. A
 * batch without rows is a no-op.
 * A batch refused with WEIR_ERR_BAD_DATA (a value that its Parquet type cannot hold, a null in a
 * column that is not nullable) or with WEIR_E_SCHEMA changed nothing; the next one may follow. After
 * any other failure the writer refuses everything but _free. */
WEIR_API weir_status weir_parquet_writer_write(weir_parquet_writer *writer,
                                               weir_batch *batch, weir_error *err);

/* Whether _write would take the batch, without taking it: its refusals with WEIR_ERR_BAD_DATA and
 * WEIR_E_SCHEMA. A slice of a batch that passes passes too. */
WEIR_API weir_status weir_parquet_writer_check(weir_parquet_writer *writer,
                                               weir_batch *batch, weir_error *err);

/* Hands over what is buffered as a row group of its own, for callers with many writers and a bound on
 * memory. With nothing buffered a no-op. */
WEIR_API weir_status weir_parquet_writer_flush(weir_parquet_writer *writer,
                                               weir_error *err);

/* Bytes handed to the callback so far, and bytes that wait in memory for their row group. Their sum
 * estimates the size that the file would have if it ended now, footer apart. */
WEIR_API uint64_t weir_parquet_writer_written(const weir_parquet_writer *writer);
WEIR_API uint64_t weir_parquet_writer_buffered(const weir_parquet_writer *writer);
/* Rows taken so far. */
WEIR_API uint64_t weir_parquet_writer_rows(const weir_parquet_writer *writer);

/* Writes the last row group, the indexes and the footer. A file without rows is valid and has no row
 * group. Once only; `out` may be NULL. Afterwards only _free is allowed. */
WEIR_API weir_status weir_parquet_writer_finish(weir_parquet_writer *writer,
                                                weir_parquet_result *out,
                                                weir_error *err);

/* Frees; without a finish() before, nothing more is written and what was is no Parquet file. NULL is
 * a no-op. */
WEIR_API void weir_parquet_writer_free(weir_parquet_writer *writer);

#ifdef __cplusplus
}
#endif
#endif
