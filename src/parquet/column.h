/* SPDX-License-Identifier: Apache-2.0 */
/* One column of the open row group: an open page of values, a dictionary, and the finished pages. */
#ifndef WEIR_PARQUET_COLUMN_H
#define WEIR_PARQUET_COLUMN_H

#include "bloom.h"
#include "choose.h"
#include "codec.h"
#include "dict.h"
#include "encode.h"
#include "levels.h"

/* What all columns of a writer share; scratch is used within one call. */
typedef struct parquet_context {
  parquet_codec codec;
  parquet_pool pool;
  take_scratch take;
  parquet_levels levels;
  base_buf selected;    /* slots that hold values */
  base_buf level_bytes; /* of a page v2, which keeps them apart from its body */
  size_t rep_size, def_size;
  base_buf body;       /* a page before compression */
  size_t head;         /* how much of it comes before the values, or before their bytes */
  const uint8_t *tail; /* the body's end, where it lies elsewhere */
  size_t tail_size;
  base_buf indices; /* dictionary numbers of a page, or lengths */
  base_buf numbers; /* dictionary numbers of a piece */
  base_buf map;     /* rows of an Arrow dictionary to dictionary numbers */
  base_buf fresh;   /* rows that have no number yet; entries of a page */
  base_buf entries; /* values of a page's entries */
  base_buf entry_offsets;
  base_buf header;
  size_t page_rows, page_bytes;
  bool small;
  bool v2; /* data pages are */
  bool newest;
} parquet_context;

/* The entries of a dictionary. */
static inline parquet_values dict_values(const parquet_dict *dict) {
  const uint32_t *offsets = (const uint32_t *)(const void *)dict->offsets.data;
  return (parquet_values){dict->values.data, dict->width == 0 ? offsets : NULL, dict->n};
}

void context_done(parquet_context *ctx);

/* A finished page, for the page index (PageIndex.md). */
typedef struct page_record {
  uint64_t size; /* with its header */
  uint64_t first_row, nulls;
  bool has_values, has_bounds, min_exact, max_exact;
  uint32_t min_at, min_size, max_at, max_size; /* within column->bounds_bytes */
} page_record;

/* Values and levels that wait for their page to fill up. */
typedef struct open_page {
  size_t rows, levels, nulls, n;
  bool numbered;     /* values are dictionary numbers */
  base_buf valid;    /* only when nulls > 0 */
  base_buf def, rep; /* of a nested column, in its place */
  base_buf values, offsets;
} open_page;

typedef struct parquet_column {
  const parquet_leaf *leaf;
  open_page open;
  parquet_dict dict;
  parquet_rope dictionary_page, pages;
  base_buf records, bounds_bytes;
  base_buf page_bytes;             /* int64_t: of each page's texts or binaries, bare */
  base_buf rep_counts, def_counts; /* int64_t: each page's levels by their value */
  stats_bounds bounds;
  choose_wish wish;
  parquet_choice choice; /* of the pages to come */
  double other_packed;   /* bits a value that choice.other took; of effort `small` */
  bool decided;          /* choice is */
  bool numbered;         /* the chunk has pages of dictionary numbers */
  bool closed;           /* the dictionary was full: the chunk goes on without */
  bool packed;           /* compress is decided */
  bool compress;
  bool stored;         /* data pages do not shrink, though the dictionary does */
  bool literals;       /* nothing in them comes again: zstd_blocks_write serves */
  unsigned raw_planes; /* how many low planes of split values do not shrink */
  bool width_known,
      round_width; /* learnt once a file: whether whole nibbles and bytes compress better */
  bool unbounded;               /* a page with values has no bounds: no column index */
  uint64_t rows, levels, nulls; /* of finished pages */
  size_t rows_at_once;          /* of a nested column */
  bool bloom;                   /* the chunk shall have a Bloom filter */
  bool bloom_full;              /* it has too many values for one */
  base_buf hashes;              /* of its values outside the dictionary */
  uint64_t plain_bytes;        /* finished pages with their headers, before compression */
  uint32_t encoding_pages[10]; /* data pages by encoding */
} parquet_column;

void column_init(parquet_column *column, const parquet_leaf *leaf);
/* Before the first row: the encoding of all its chunks. */
void column_wish(parquet_column *column, choose_wish wish);
/* Before context_done. */
void column_done(parquet_column *column, parquet_context *ctx);

/* Appends slots of the column's array. */
weir_status column_append(parquet_column *column, parquet_context *ctx,
                          const struct ArrowArray *array, size_t start, size_t length,
                          weir_error *err);
/* Adds a piece to the open page, which ends with it if it is the last; flush ends it at once. */
weir_status column_place(parquet_column *column, parquet_context *ctx,
                         const parquet_piece *piece, bool numbered, bool last,
                         weir_error *err);
weir_status column_flush(parquet_column *column, parquet_context *ctx, weir_error *err);
/* Gives the rows of an Arrow dictionary that a piece names their numbers in the chunk's dictionary.
 * *full: it has no room for them. */
weir_status column_number_rows(parquet_column *column, parquet_context *ctx,
                               const struct ArrowArray *dictionary, parquet_piece *piece,
                               bool *full, weir_error *err);
/* Writes the open page and the dictionary's. */
weir_status column_finish(parquet_column *column, parquet_context *ctx, weir_error *err);
/* Keeps hashes of values outside the dictionary for the Bloom filter, where there shall be one. */
weir_status column_hash(parquet_column *column, const parquet_values *values,
                        weir_error *err);
/* Appends the finished chunk's Bloom filter; nothing, when none is asked for or it has too many values. */
weir_status column_put_bloom(parquet_column *column, base_buf *out, weir_error *err);
/* Forgets the chunk; its memory goes back to the pool. */
void column_clear(parquet_column *column, parquet_context *ctx);

/* Bytes that the chunk takes in memory now. */
uint64_t column_bytes(const parquet_column *column);

/* sizes.c: counts a page for the size statistics; `numbers` are those of a page of dictionary numbers. */
weir_status sizes_add_page(parquet_column *column, const parquet_piece *piece,
                           const uint32_t *numbers, weir_error *err);

/* pack.c: whether and how the pages of the chunk are compressed, learnt from the body of one with n values;
 * then the body, as the page keeps it, in *out: unless that is the body itself, it has no tail. */
weir_status pack_learn(parquet_column *column, parquet_context *ctx, size_t n,
                       enum parquet_encoding encoding, weir_error *err);
weir_status pack_body(const parquet_column *column, parquet_context *ctx,
                      const parquet_page_header *header, const base_buf **out,
                      weir_error *err);

/* body.c: the body of a page: its levels and values, these as `numbers` where they are of the dictionary.
 * `witness` may be NULL. */
weir_status body_put(parquet_context *ctx, const parquet_column *column,
                     const parquet_piece *piece, enum parquet_encoding encoding,
                     uint32_t *numbers, const encode_witness *witness, weir_error *err);
weir_status body_put_entries(parquet_context *ctx, const parquet_leaf *leaf,
                             const parquet_values *values, weir_error *err);
/* Takes in the end that lies elsewhere. */
weir_status body_join(parquet_context *ctx, weir_error *err);
/* Learns from the first page of numbers, whose body is there, whether rounding their width up pays; the body is
 * then what pays. */
weir_status body_learn_width(parquet_column *column, parquet_context *ctx,
                             const parquet_piece *piece, uint32_t *numbers,
                             weir_error *err);

/* small.c, effort `small`: tries on a chunk's first page what else than a dictionary is smallest once it is
 * compressed, into column->choice. */
weir_status small_choose(parquet_column *column, parquet_context *ctx,
                         const parquet_values *values, weir_error *err);
/* Whether the page's n dictionary numbers, with their share of a dictionary of so many entries, are smaller. */
weir_status small_keep(const parquet_column *column, parquet_context *ctx,
                       uint32_t *numbers, size_t n, double entries, bool *keep,
                       weir_error *err);

/* page.c */
/* Chooses the encoding of the pages to come, from values of the first; `stats`, where it has bounds, helps a
 * dictionary of numbers. */
weir_status page_decide(parquet_column *column, parquet_context *ctx,
                        const parquet_values *values, const stats_page *stats,
                        weir_error *err);
weir_status page_write(parquet_column *column, parquet_context *ctx,
                       const parquet_piece *piece, bool numbered, weir_error *err);
weir_status page_write_dictionary(parquet_column *column, parquet_context *ctx,
                                  weir_error *err);

#endif
