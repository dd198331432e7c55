/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CSV by RFC 4180: records to batches of a given schema, and back. Unstable until 1.0.
 *
 * A record is fields between delimiters, ended by LF or CR LF; a CR anywhere else but in quotes is an
 * error. A field that begins with the quote ends with one; within, a quote is doubled, and delimiters,
 * CR and LF stand for themselves. A quote within a field that does not begin with one is an error, as is
 * anything between a closing quote and the next delimiter: readers differ in what they take. A UTF-8
 * byte order mark at offset 0 is passed over; so are empty lines, unless the file has one column: there
 * an empty line is a record whose field is empty.
 *
 * Null: a field without quotes that equals the option `null_text`, by default the empty one. A quoted
 * field is a value in columns of utf8 and binary, so that "" is the empty text there; in columns of other
 * types the null text in quotes is null too, since it could be no value. Null in a column that is not
 * nullable is an error.
 *
 * Values, with or without quotes, are those of <weir/ndjson.h> without their JSON quotes, and besides:
 * bool may be written True, TRUE, 1, False, FALSE, 0; numbers may have leading zeros and a "+", and lack
 * the digits on one side of the point; "nan", "inf" and "infinity" count in any case and with a sign;
 * blanks around what is not utf8 or binary are passed over. Dates, times and timestamps are texts alone:
 * a bare number does not tell what it counts.
 *
 * With a header, the first record names the columns: the schema's are found by name wherever they stand,
 * others are ignored unless the options refuse them, one that is missing or named twice is WEIR_E_SCHEMA. Without one the fields are the
 * schema's columns in their order. Every record has as many fields as the header, or the schema.
 */
#ifndef WEIR_CSV_H
#define WEIR_CSV_H

#include <weir/batch.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_csv_decoder weir_csv_decoder;
typedef struct weir_csv_encoder weir_csv_encoder;

/* Zeroed but for struct_size: the defaults. Texts are copied. */
typedef struct weir_csv_options {
  uint32_t struct_size;
  int32_t no_header;  /* the first record is a row */
  int64_t batch_rows; /* rows of a full batch, 1 to 1048576; 0 = 16384; decoder alone */
  uint64_t max_line;  /* bytes of one record, up to 1 GiB; 0 = 64 MiB; decoder alone */
  const char *delimiter; /* one ASCII character, no letter, digit, sign or point;
                            NULL = "," */
  const char *quote;     /* one ASCII character likewise; "" = no quotes; NULL = "\"" */
  const char *null_text; /* up to 32 bytes; NULL = "" */
  int32_t
      refuse_unknown; /* a name in the header that the schema lacks is WEIR_E_SCHEMA; decoder
                         alone */
  int32_t bad_at_once; /* see weir_csv_decoder_feed; decoder alone */
} weir_csv_options;

/* Whether delimiter, quote and null text go together: WEIR_E_INVALID_CONFIG tells which does not. */
WEIR_API weir_status weir_csv_options_check(const weir_csv_options *options,
                                            weir_error *err);

/* A decoder for rows of `schema`, of which it keeps a reference; `options` may be NULL.
 * WEIR_E_NOT_IMPLEMENTED names the first column whose type cannot be read from CSV, WEIR_E_SCHEMA a
 * name that two columns share under a header. One thread at a time. */
WEIR_API weir_status weir_csv_decoder_new(weir_schema *schema,
                                          const weir_csv_options *options,
                                          weir_csv_decoder **out, weir_error *err);
WEIR_API void weir_csv_decoder_free(weir_csv_decoder *decoder); /* NULL is a no-op */

/* Drops the rows gathered and starts anew: the next byte fed has this offset, `line` line ends lie before
 * it. At offset 0 the header is forgotten and awaited; elsewhere the one read last goes on to hold. A new
 * decoder stands at 0, 0. */
WEIR_API void weir_csv_decoder_reset(weir_csv_decoder *decoder, uint64_t offset,
                                     uint64_t line);

/* At offset 0, takes the header alone from the data, with the same meaning of `last` and *used as below;
 * 0 bytes when it is not whole. For a caller who then resets to where an earlier run stopped.
 * Feeding takes it too. No bytes without a header, or when it is known. */
WEIR_API weir_status weir_csv_decoder_header(weir_csv_decoder *decoder, const void *data,
                                             size_t size, int last, size_t *used,
                                             weir_error *err);

/* Decodes records from data[0 .. size) until a batch is full or no whole record is left. *used becomes
 * the number of bytes decoded, which end at a record's end; the caller offers the rest again with more
 * behind it. With `last` the data ends here and a rest without line end is a record. *out is a full
 * batch, the caller's, or NULL when more data is wanted; rows short of a batch stay inside until
 * weir_csv_decoder_flush. A batch is also full once it holds 32 MiB of text.
 *
 * A record that cannot be decoded is WEIR_E_BAD_DATA with WEIR_ERR_BAD_DATA; the message tells line,
 * byte, column, what was expected, and an excerpt. It is raised once the rows before it are out: the
 * call that meets it gives them as a batch, the next one fails, takes nothing, and fails again until
 * weir_csv_decoder_skip. After any other error the rows gathered are lost: reset.
 *
 * With option `bad_at_once`, for a caller who will skip: a bad record fails the call that meets it, the rows before it
 * stay gathered, and *used is set: where the record, or an empty line before it, begins. A record whose end cannot be told (a quote that is never
 * closed, longer than max_line) is WEIR_E_CORRUPT then. */
WEIR_API weir_status weir_csv_decoder_feed(weir_csv_decoder *decoder, const void *data,
                                           size_t size, int last, size_t *used,
                                           weir_batch **out, weir_error *err);

/* The rows gathered as a batch, or NULL in *out when there are none. */
WEIR_API weir_status weir_csv_decoder_flush(weir_csv_decoder *decoder, weir_batch **out,
                                            weir_error *err);

/* Passes over the first record of data[0 .. size) that is not an empty line, undecoded, with the same
 * meaning of `last` and *used; 0 bytes when it is not whole. Rows gathered stay. Of a record whose quote is never closed only
 * the first line is passed over. */
WEIR_API void weir_csv_decoder_skip(weir_csv_decoder *decoder, const void *data,
                                    size_t size, int last, size_t *used);

/* Offset just after the last record decoded, its line end included, and the number of line ends before
 * it: with no rows gathered, where a decoder that knows the header goes on with the next row. */
WEIR_API uint64_t weir_csv_decoder_offset(const weir_csv_decoder *decoder);
WEIR_API uint64_t weir_csv_decoder_line(const weir_csv_decoder *decoder);
/* Rows gathered and not yet out. */
WEIR_API int64_t weir_csv_decoder_rows(const weir_csv_decoder *decoder);

/* An encoder for batches of `schema`, of which it keeps a reference; `options` may be NULL. It writes
 * what a decoder with the same options reads back to the same value, with LF and with quotes only where
 * they are needed: floats with the fewest digits that give them back, timestamps with a zone in UTC with
 * "Z", dictionaries as their values. WEIR_E_NOT_IMPLEMENTED names a column whose type CSV cannot hold. */
WEIR_API weir_status weir_csv_encoder_new(weir_schema *schema,
                                          const weir_csv_options *options,
                                          weir_csv_encoder **out, weir_error *err);
WEIR_API void weir_csv_encoder_free(weir_csv_encoder *encoder); /* NULL is a no-op */

/* The header's line, or no bytes when the options say no_header; borrowed as long as the encoder. */
WEIR_API void weir_csv_encoder_header(const weir_csv_encoder *encoder,
                                      const uint8_t **data, size_t *size);

/* One record a row, each with its LF, in *data, borrowed until the next call. A value that CSV cannot
 * carry (a string that is not UTF-8, one that needs quotes when there are none, a date beyond the
 * calendar) is WEIR_E_BAD_DATA with row and column. */
WEIR_API weir_status weir_csv_encoder_write(weir_csv_encoder *encoder,
                                            const weir_batch *batch, const uint8_t **data,
                                            size_t *size, weir_error *err);

#ifdef __cplusplus
}
#endif
#endif
