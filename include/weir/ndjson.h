/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Newline-delimited JSON: lines to batches of a given schema, and back. Unstable until 1.0.
 *
 * One line is one JSON object (RFC 8259), lines end with LF or CR LF; lines of blanks only are passed
 * over, and so is a UTF-8 byte order mark at offset 0. How a column's type meets JSON:
 *
 *   int8 .. int64, uint8 .. uint64   a number without fraction or exponent, exact and within range
 *   float16, float32, float64        any number, rounded to nearest; "NaN", "Infinity", "-Infinity"
 *   decimal32 .. decimal256          a number or a string holding one, exact: digits beyond the scale
 *                                    must be zero
 *   bool                             true, false
 *   utf8, large_utf8                 a string; a number, true or false as the text that stands there
 *   binary, large_binary,            a string in base64 with padding (RFC 4648, section 4)
 *   fixed_size_binary
 *   date32, date64                   "2024-02-29"
 *   time32, time64                   "23:59:59.999999"; seconds may be left out
 *   timestamp[unit]                  "2024-02-29T23:59:59.5", or with a space, or a date alone; a zone
 *                                    is refused, since it would have to be dropped
 *   timestamp[unit, zone]            the same with "Z", "+02", "+0200" or "+02:00", stored as UTC; one
 *                                    without a zone is refused, since it would have to be guessed
 *   duration                         a whole number of the column's unit
 *   list, large_list, list_view,     an array
 *   large_list_view
 *   fixed_size_list                  an array of that many items
 *   struct                           an object; its fields are treated as columns are
 *   map with utf8 keys               an object with distinct keys; read also as the next
 *   map with other keys              an array of {"key": ..., "value": ...}
 *
 * Dates, times and timestamps may also be whole numbers: the value as Arrow stores it, in the column's
 * unit since 1970 or midnight. Digits finer than the unit must be zero. Years outside 0000 to 9999
 * carry a sign. null and a missing key are null, an error in a column that is not nullable. Keys that
 * the schema lacks are ignored, unless the options refuse them; a column's key given twice in one object is an error, since readers
 * differ in which value they take; the same goes for the fields of structs and the keys of maps.
 */
#ifndef WEIR_NDJSON_H
#define WEIR_NDJSON_H

#include <weir/batch.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_ndjson_decoder weir_ndjson_decoder;
typedef struct weir_ndjson_encoder weir_ndjson_encoder;

/* Zeroed but for struct_size: the defaults. */
typedef struct weir_ndjson_options {
  uint32_t struct_size;
  int64_t
      batch_rows; /* rows of a full batch, 1 to 1048576; 0 = 16384; fewer where lists of fixed
                     size would make more than 2^24 slots of them */
  uint64_t max_line; /* bytes of one line, up to 1 GiB; 0 = 64 MiB */
  int32_t
      refuse_unknown; /* a key that the schema lacks is bad data, in structs too; the error's
                         column is the number of those that there are */
  int32_t bad_at_once; /* see weir_ndjson_decoder_feed */
} weir_ndjson_options;

/* A decoder for rows of `schema`, of which it keeps a reference; `options` may be NULL.
 * WEIR_E_NOT_IMPLEMENTED names the first column or field whose type cannot be read from JSON,
 * WEIR_E_SCHEMA a name that two columns or fields share. One thread at a time. */
WEIR_API weir_status weir_ndjson_decoder_new(weir_schema *schema,
                                             const weir_ndjson_options *options,
                                             weir_ndjson_decoder **out, weir_error *err);
WEIR_API void weir_ndjson_decoder_free(
    weir_ndjson_decoder *decoder); /* NULL is a no-op */

/* Drops the rows gathered and starts anew: the next byte fed has this offset, `line` lines end before
 * it. A new decoder stands at 0, 0. */
WEIR_API void weir_ndjson_decoder_reset(weir_ndjson_decoder *decoder, uint64_t offset,
                                        uint64_t line);

/* Decodes lines from data[0 .. size) until a batch is full or no whole line is left. *used becomes the
 * number of bytes decoded, which end at a line's end; the caller offers the rest again with more behind
 * it. With `last` the data ends here and a rest without line end is a line. *out is a full batch, the
 * caller's, or NULL when more data is wanted; rows short of a batch stay inside until
 * weir_ndjson_decoder_flush. A batch is also full before a line that would take it past 32 MiB of text.
 *
 * A line that cannot be decoded is WEIR_E_BAD_DATA with WEIR_ERR_BAD_DATA; the message tells line,
 * byte, column (below it as in a.b[3].c), what was expected, and an excerpt. It is raised once the rows before it are out: the
 * call that meets it gives them as a batch, the next one fails, takes nothing, and fails again until
 * weir_ndjson_decoder_skip. After any other error the rows gathered are lost: reset.
 *
 * With option `bad_at_once`, for a caller who will skip: a bad line fails the call that meets it, the rows before it stay
 * gathered, and *used is set: where the line begins. A line longer than max_line is WEIR_E_CORRUPT then. */
WEIR_API weir_status weir_ndjson_decoder_feed(weir_ndjson_decoder *decoder,
                                              const void *data, size_t size, int last,
                                              size_t *used, weir_batch **out,
                                              weir_error *err);

/* The rows gathered as a batch, or NULL in *out when there are none. */
WEIR_API weir_status weir_ndjson_decoder_flush(weir_ndjson_decoder *decoder,
                                               weir_batch **out, weir_error *err);

/* Passes over the first line of data[0 .. size) that is not blank, undecoded, with the same meaning of
 * `last` and *used; 0 bytes when it is not whole. Rows gathered stay. */
WEIR_API void weir_ndjson_decoder_skip(weir_ndjson_decoder *decoder, const void *data,
                                       size_t size, int last, size_t *used);

/* Offset just after the last line decoded, its line end included, and the number of lines before it:
 * with no rows gathered, where a decoder reset to the same two goes on with the next row. */
WEIR_API uint64_t weir_ndjson_decoder_offset(const weir_ndjson_decoder *decoder);
WEIR_API uint64_t weir_ndjson_decoder_line(const weir_ndjson_decoder *decoder);
/* Rows gathered and not yet out. */
WEIR_API int64_t weir_ndjson_decoder_rows(const weir_ndjson_decoder *decoder);

/* An encoder for batches of `schema`, of which it keeps a reference. It writes what the table above
 * reads back to the same value: nulls as null, floats with the fewest digits that give them back,
 * timestamps with a zone in UTC with "Z", dictionaries as their values. Types without a row
 * above are WEIR_E_NOT_IMPLEMENTED with the column's name; views count as utf8 and binary. */
WEIR_API weir_status weir_ndjson_encoder_new(weir_schema *schema,
                                             weir_ndjson_encoder **out, weir_error *err);
WEIR_API void weir_ndjson_encoder_free(
    weir_ndjson_encoder *encoder); /* NULL is a no-op */

/* One line a row, each with its LF, in *data, borrowed until the next call. A value that JSON cannot
 * carry (a string that is not UTF-8, a date beyond what the calendar here reaches, a map that has a key
 * twice) is WEIR_E_BAD_DATA with row and column. */
WEIR_API weir_status weir_ndjson_encoder_write(weir_ndjson_encoder *encoder,
                                               const weir_batch *batch,
                                               const uint8_t **data, size_t *size,
                                               weir_error *err);

#ifdef __cplusplus
}
#endif
#endif
