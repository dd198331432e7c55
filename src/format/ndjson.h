/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of NDJSON; for the files ndjson_*.c alone. */
#ifndef FORMAT_NDJSON_H
#define FORMAT_NDJSON_H

#include <weir/ndjson.h>
#include <yyjson.h>

#include "format/span.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/* What ends a run of a string's plain characters: a quote, a backslash, a control character. */
static inline bool ndjson_is_stop(uint8_t c) {
  return c < 0x20 || c == '"' || c == '\\';
}
#if defined(__SSE2__)
/* Bytes of ones for those of 16 that do. */
static inline __m128i ndjson_stops(__m128i v) {
  __m128i stop = _mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8('"')),
                              _mm_cmpeq_epi8(v, _mm_set1_epi8('\\')));
  return _mm_or_si128(stop, _mm_cmpeq_epi8(_mm_min_epu8(v, _mm_set1_epi8(0x1f)), v));
}
#endif

/* Bytes behind a line that ndjson_row_fast may read, so that it can load whole words. */
#define NDJSON_PADDING 32
#define NDJSON_SLOT_WORDS 3
#define NDJSON_MAX_SLOTS 1024

/* What the row before had at this place: the bytes of `"key":`, and the column of that key or -1. The
 * rows of one file mostly have the same keys in the same order, so one compare of words
 * replaces finding the key's end, hashing it and looking it up. */
typedef struct ndjson_slot {
  uint64_t words[NDJSON_SLOT_WORDS], masks[NDJSON_SLOT_WORDS];
  uint32_t size; /* 0: nothing known */
  int32_t column;
} ndjson_slot;

/* Of a chunk of rows; rows of more keys or columns, or with nested columns, go one by one. */
#define NDJSON_CHUNK_BYTES ((size_t)64 << 10)
#define NDJSON_CHUNK_KEYS 256
#define NDJSON_CHUNK_VALUES 8192

/* The same for chunks: all bytes between two values, without their quotes. */
typedef struct ndjson_gap {
  uint8_t text[32], mask[32];
  uint32_t size; /* 0: nothing known */
  int32_t column;
} ndjson_gap;

struct weir_ndjson_decoder {
  weir_schema *schema;
  format_column *columns;
  int64_t n_columns;
  int64_t batch_rows;
  uint64_t max_line;
  bool refuse_unknown; /* keys that no column has */
  bool bad_at_once;

  int64_t rows;         /* gathered */
  uint64_t batch_bytes; /* text of the rows gathered */
  bool started;         /* the columns have buffers */
  uint64_t offset, line;
  uint32_t mark; /* bytes of the byte order mark before the line at hand */

  format_names names;
  ndjson_slot *slots;
  uint32_t n_slots;

  uint8_t *copy; /* of a line too close to the end of what was fed */
  size_t copy_room;
  void *pool; /* memory that yyjson parses short lines in */
  size_t pool_size;
  ndjson_gap *gaps;           /* NDJSON_CHUNK_KEYS; NULL: no chunks */
  uint32_t *befores, *afters; /* of a chunk's values, column by column */
  int64_t *row_of;   /* the last row of the chunk that a column has a value of, plus 1 */
  int64_t wary;      /* so many rows do not go in chunks */
  size_t chunk_from; /* bytes that are worth one */

  bool all_slow; /* tests: every line takes the slow way */
};

static inline const uint8_t *ndjson_skip_blanks(const uint8_t *p) {
  while (*p == ' ' || *p == '\t' || *p == '\r') p++;
  return p;
}
/* Parts of ndjson_row_fast: the value at p into a column below another one, or into a nested column; what
 * follows it, or NULL to give up. `end` is the line's. */
const uint8_t *ndjson_take_value(format_column *col, const uint8_t *p,
                                 const uint8_t *end);
const uint8_t *ndjson_take_nested(format_column *col, const uint8_t *p,
                                  const uint8_t *end);

/* The same for a value that no column takes. */
const uint8_t *ndjson_pass_value(const uint8_t *p);
/* A key at p that is not the guessed one: finds its column, keeps it as the guess for this place in the next row,
 * and returns what follows its colon. */
const uint8_t *ndjson_take_key(weir_ndjson_decoder *decoder, const uint8_t *p,
                               uint32_t place, int32_t *column);

/* Where a value lies in its row, from the inside out: a column, a field, an item or a map's key. */
typedef struct ndjson_path {
  const struct ndjson_path *up;
  format_column *col;        /* of the value */
  const format_key *map_key; /* NULL: `col` has a name, or this is item `item` */
  int64_t item;              /* -1: `col` has a name */
} ndjson_path;
/* "a.b[3].c" or "a["key"]"; what does not fit is left out at the end. */
#define NDJSON_PATH_TEXT 200
void ndjson_path_text(const ndjson_path *path, char out[NDJSON_PATH_TEXT]);

/* Appends the row of line[0 .. size) if it is of the common kind: line[size] is LF, and
 * NDJSON_PADDING bytes from there can be read. False when the row needs ndjson_row_slow, which then says
 * what is wrong if anything is; columns may hold a part of the row, to be cut. */
bool ndjson_row_fast(weir_ndjson_decoder *decoder, const uint8_t *line, size_t size);

/* Appends the next rows of data[0 .. size), behind which FORMAT_SPAN_PADDING bytes can be read; returns their
 * bytes. 0 when they need ndjson_row_fast; columns may hold parts of them, to be cut. Not more
 * than the batch has room for, nor than NDJSON_CHUNK_BYTES. */
size_t ndjson_chunk_take(weir_ndjson_decoder *decoder, const uint8_t *data, size_t size,
                         int64_t *rows);

/* Appends the row of any line, by yyjson, or says what is wrong with it. */
weir_status ndjson_row_slow(weir_ndjson_decoder *decoder, const uint8_t *line,
                            size_t size, weir_error *err);

/* For tests: rows of more than this count as endless. */
void ndjson_encoder_limit_row(weir_ndjson_encoder *encoder, size_t size);
/* For tests and the fuzzer, which compare the ways. */
void ndjson_decoder_force_slow(weir_ndjson_decoder *decoder, bool slow);
void ndjson_decoder_force_chunks(weir_ndjson_decoder *decoder);

#endif
