/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of the reader: a column chunk read page by page into the buffers of a batch. */
#ifndef WEIR_PARQUET_READ_ROOM_H
#define WEIR_PARQUET_READ_ROOM_H

#include <weir/parquet_read.h>

#include "decode.h"
#include "read_schema.h"
#include "unpack.h"

/* Where the file's bytes come from, and what all columns share. */
typedef struct read_context {
  weir_parquet_read read;
  void *ctx;
  uint64_t size;
  parquet_unpacker unpacker;
  thrift_arena arena; /* of page headers */
  base_buf physical;  /* values before they become slots */
  base_buf dense;     /* slots before nulls come between them */
  base_buf indices;
  uint64_t batch_bytes, max_batch_bytes; /* memory of the batch so far */
} read_context;

/* A page that is being read. */
typedef struct read_page {
  uint64_t levels; /* still to come */
  decode_hybrid rep, def;
  enum parquet_encoding encoding;
  const uint8_t *at, *end; /* values: PLAIN, and the bytes of DELTA_*_BYTE_ARRAY */
  size_t bit;              /* PLAIN of booleans: the next one, from `at` */
  size_t split_all, split_at;
  decode_hybrid numbers; /* of the dictionary, or booleans */
  decode_delta delta;    /* integers, or prefix lengths */
  decode_delta lengths;
} read_page;

typedef struct read_leaf {
  const read_type *type;
  /* the chunk */
  uint64_t at, end; /* in the file: the next page, and behind the last one */
  uint64_t levels;  /* of pages to come */
  int32_t codec;
  base_buf window; /* bytes of the file from window_at on */
  uint64_t window_at;
  base_buf plain; /* the page decompressed */
  read_page page;
  base_buf last;           /* DELTA_BYTE_ARRAY: the value before */
  uint8_t ahead[2048 + 8]; /* repetition levels decoded but not yet used */
  size_t ahead_at, ahead_n;
  bool has_dictionary;
  uint32_t entries;
  base_buf dictionary, dictionary_offsets; /* slots; or bytes, with uint32 offsets */
  /* the batch */
  size_t rows, levels_n, slots, nulls;
  base_buf defs, reps; /* of what is not flat */
  base_buf valid;      /* a bit a slot; of what may have nulls */
  base_buf values;     /* slots or bits; of PUT_BYTES uint32 offsets */
  base_buf data;
} read_leaf;

/* Room for `size` bytes and PARQUET_SLACK in a buffer of the batch, within max_batch_bytes. */
weir_status read_reserve(read_context *ctx, base_buf *buf, size_t size, weir_error *err);
/* WEIR_E_CORRUPT of a column. */
weir_status read_corrupt(const read_leaf *leaf, const char *what, weir_error *err);

/* read_page.c */
weir_status read_chunk_open(read_leaf *leaf, const parquet_column_meta *meta,
                            uint64_t data_end, weir_error *err);
/* The next page that has levels. */
weir_status read_page_next(read_context *ctx, read_leaf *leaf, weir_error *err);
/* Of a flat column: passes over whole pages that begin with at most `rows` rows to pass over; how many
 * were, in *passed. */
weir_status read_page_pass(read_context *ctx, read_leaf *leaf, uint64_t rows,
                           uint64_t *passed, weir_error *err);

/* read_values.c: appends n values of the page behind the leaf's slots. For PUT_BYTES offsets and data
 * grow; else they go to `out`, room for n slots and PARQUET_SLACK, or bits from `bit` on. */
weir_status read_values(read_context *ctx, read_leaf *leaf, size_t n, uint8_t *out,
                        size_t bit, weir_error *err);
/* Decimals of type->decimal bytes, of the bytes of the leaf's slots. */
weir_status read_bytes_decimals(read_leaf *leaf, base_buf *out, weir_error *err);
/* Keeps the entries of a dictionary page. */
weir_status read_dictionary(read_context *ctx, read_leaf *leaf, const uint8_t *data,
                            size_t size, size_t n, weir_error *err);

/* read_leaf.c */
void read_leaf_done(read_leaf *leaf);
/* Forgets the batch's values; buffers that were moved out are empty. */
void read_leaf_clear(read_leaf *leaf);
/* Appends n rows. */
weir_status read_leaf_rows(read_context *ctx, read_leaf *leaf, size_t n, weir_error *err);

/* read_batch.c: the leaves' values as a batch, whose buffers they lose. */
weir_status read_batch_make(const read_schema *schema, read_leaf *leaves, int64_t rows,
                            weir_batch **out, weir_error *err);

#endif
