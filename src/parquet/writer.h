/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a writer, and what its footer tells of the chunks that are written. */
#ifndef WEIR_PARQUET_WRITER_H
#define WEIR_PARQUET_WRITER_H

#include "parquet.h"
#include "schema.h"

#define PARQUET_MAGIC "PAR1"

/* A chunk of a row group that has been written. */
typedef struct written_chunk {
  uint64_t offset, dictionary_size, size, plain_size;
  uint64_t levels, nulls;
  uint32_t encoding_pages[10];
  enum parquet_codec_id codec;
  bool numbered, has_bounds, min_exact, max_exact;
  size_t min_at, min_size, max_at, max_size; /* within writer->bounds */
  size_t columns_at, columns_size, offsets_at,
      offsets_size;  /* indexes, within writer->indexes */
  sizes_chunk sizes; /* its histograms within writer->counts */
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
  base_buf counts;     /* histograms of chunks' size statistics */
  base_buf blooms;     /* Bloom filters of the row group's chunks */
  base_buf indexes;    /* encoded column and offset indexes */
  base_buf metadata;   /* keys and values: each with a NUL */
  size_t *metadata_at; /* 2 * n: where key and value begin; SIZE_MAX: no value */
  size_t n_metadata;
  char *arrow_schema; /* base64, or NULL */
};

/* Hands bytes to the callback. */
weir_status writer_put(weir_parquet_writer *w, const void *data, size_t size,
                       weir_error *err);

/* footer.c: the indexes of all chunks, then the footer with its length and the magic bytes. */
weir_status writer_put_footer(weir_parquet_writer *w, weir_error *err);

#endif
