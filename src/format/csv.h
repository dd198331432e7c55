/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of CSV; for the files csv_*.c alone. */
#ifndef FORMAT_CSV_H
#define FORMAT_CSV_H

#include <weir/csv.h>

#include "base/base.h"
#include "format/span.h"

/* Bytes behind a record that csv_row_fast may read, so that it can load whole words. */
#define CSV_PADDING 32
#define CSV_MAX_NULL 32
/* Of a chunk of rows; files of more fields go row by row. */
#define CSV_CHUNK_BYTES ((size_t)64 << 10)
#define CSV_CHUNK_ENDS 8192

/* The options, checked. */
typedef struct csv_dialect {
  bool header;
  uint8_t delimiter;
  int quote; /* -1: none */
  uint8_t null_text[CSV_MAX_NULL + 1];
  size_t null_len;
} csv_dialect;

weir_status csv_dialect_read(const weir_csv_options *options, csv_dialect *out,
                             weir_error *err);

struct weir_csv_decoder {
  weir_schema *schema;
  csv_dialect dialect;
  format_column *columns;
  int64_t n_columns;
  int64_t batch_rows;
  uint64_t max_line;
  bool refuse_unknown; /* names in the header that no column has */
  bool bad_at_once;

  int32_t *fields; /* column of each field of a record, or -1 */
  int64_t n_fields;
  bool awaits_header;

  int64_t rows;         /* gathered */
  uint64_t batch_bytes; /* text of the rows gathered */
  bool started;         /* the columns have buffers */
  uint64_t offset, line;

  uint8_t *copy; /* of a record too close to the end of what was fed */
  size_t copy_room;
  base_buf text;  /* a field without its quotes */
  uint32_t *ends; /* of the fields of a chunk: CSV_CHUNK_ENDS and room for a block more */
  uint32_t befores[FORMAT_SPAN_ROWS],
      afters[FORMAT_SPAN_ROWS]; /* of one column's values */
  int64_t wary;                 /* so many rows do not go in chunks */
  size_t chunk_from;            /* bytes that are worth one */
  bool all_slow;                /* tests: every record takes the slow way */
};

/* A record found in data: its bytes without line end, all its bytes, the LFs among them. */
typedef struct csv_record {
  size_t size, whole;
  uint64_t lines;
  bool unclosed; /* a quote without its end: the record is the first line alone */
  size_t quote;  /* where that is */
} csv_record;

/* The first record of data[0 .. size); false when it is not whole. */
bool csv_record_find(const csv_dialect *dialect, const uint8_t *data, size_t size,
                     int last, csv_record *out);

/* One field of a record, whose end it is told by. */
typedef struct csv_field {
  size_t at; /* of its first byte, the quote if there is one */
  bool quoted;
  size_t size; /* of decoder->text, which holds it, followed by zeros */
} csv_field;

/* Reads the field at *at of record[0 .. size) into `text`; moves *at behind its delimiter, *more tells
 * whether there was one. NULL, or what is wrong at *at. WEIR_E_NOMEM by *nomem. */
const char *csv_field_read(const csv_dialect *dialect, const uint8_t *record, size_t size,
                           size_t *at, base_buf *text, csv_field *out, bool *more,
                           bool *nomem);

/* Appends a field's value, by the rules of <weir/csv.h>. text[0 .. n) is followed by a byte that
 * cannot go on with a number. */
format_result csv_value_append(const csv_dialect *dialect, format_column *col,
                               const uint8_t *text, size_t n, bool quoted);

/* Appends the next rows of data[0 .. size), behind which FORMAT_SPAN_PADDING bytes can be read; returns their
 * bytes. 0 when they need csv_row_fast; columns may hold parts of them, to be cut. Not more than
 * the batch has room for, nor than CSV_CHUNK_BYTES. */
size_t csv_chunk_take(weir_csv_decoder *decoder, const uint8_t *data, size_t size,
                      int64_t *rows, uint64_t *lines);

uint64_t csv_count_lines(const uint8_t *p, const uint8_t *end);

/* Appends the row at p if it is of the common kind and ends at or before `stop`, which is an LF behind
 * which CSV_PADDING bytes can be read; returns what follows it. *lines: the LFs of the row. NULL when the
 * row needs csv_row_slow, which then says what is wrong if anything is; columns may hold a part of the
 * row, to be cut. */
const uint8_t *csv_row_fast(weir_csv_decoder *decoder, const uint8_t *p,
                            const uint8_t *stop, uint64_t *lines);

/* Appends the row of any record, or says what is wrong with it. */
weir_status csv_row_slow(weir_csv_decoder *decoder, const uint8_t *data,
                         const csv_record *record, weir_error *err);

/* "line L, byte B: what; near: ..." about a place in the record at the decoder's offset. */
weir_status csv_bad_record(const weir_csv_decoder *decoder, const uint8_t *record,
                           size_t size, size_t at, const char *what, weir_error *err);

/* For tests and the fuzzer, which compare the ways. */
void csv_decoder_force_slow(weir_csv_decoder *decoder, bool slow);
void csv_decoder_force_chunks(weir_csv_decoder *decoder);

#endif
