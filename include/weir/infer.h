/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A schema for rows of text that come without one, from a sample of them. Unstable until 1.0.
 *
 * A column gets the narrowest type that holds each value of the sample exactly:
 *
 *   bool                   true and false, in CSV also in the spellings True and TRUE
 *   int64, else uint64     whole numbers
 *   float64                numbers with a fraction or exponent, if the whole ones among them are exact
 *                          as float64 too; nan, inf and infinity (as <weir/csv.h> and <weir/ndjson.h> spell
 *                          them) beside numbers
 *   date32                 2024-02-29
 *   timestamp[us]          2024-02-29T23:59:59.5 or with a space, also beside dates; no zone anywhere
 *   timestamp[us, UTC]     the same with a zone everywhere
 *   utf8                   all else: texts, numbers with leading zeros or a "+" ("007"), whole numbers beyond
 *                          uint64, digits finer than microseconds, values of different kinds, no value
 *
 * So no number is ever rounded to fit a column but for what float64 does to fractions, and decimals are not
 * guessed. Every column is nullable.
 *
 * CSV: the columns are those of the header, which all files must share, in the first one's order; without a
 * header they are as many as the first record has fields, named column_1, column_2 and so on. Quotes do
 * not make a number a text. NDJSON: the union of all keys in the order in which they are met; a key that
 * some rows lack is null there; objects become structs and lists lists, which hold any number of such
 * columns. A column that mixes them with anything else has no type.
 *
 * Records that no decoder would take are passed over, so that it is the decoder which complains of them.
 */
#ifndef WEIR_INFER_H
#define WEIR_INFER_H

#include <weir/csv.h>
#include <weir/ndjson.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_inference weir_inference;

/* Of the options, batch_rows is not looked at. One thread at a time. */
WEIR_API weir_status weir_inference_new_csv(const weir_csv_options *options,
                                            weir_inference **out, weir_error *err);
WEIR_API weir_status weir_inference_new_ndjson(const weir_ndjson_options *options,
                                               weir_inference **out, weir_error *err);
WEIR_API void weir_inference_free(weir_inference *inference); /* NULL is a no-op */

/* The next data are the start of another file. A new inference stands at the first one's. */
WEIR_API void weir_inference_next_file(weir_inference *inference);

/* Looks at whole records of data[0 .. size), at most `rows` of them. *used becomes the number of bytes
 * looked at; the caller offers the rest again with more behind it. With `last` the data ends here. A
 * record that is too long, a header that cannot be read or is not the first file's is an error. */
WEIR_API weir_status weir_inference_feed(weir_inference *inference, const void *data,
                                         size_t size, int last, int64_t rows,
                                         size_t *used, weir_error *err);

/* Rows looked at in all; those passed over do not count. */
WEIR_API int64_t weir_inference_rows(const weir_inference *inference);

/* The schema. WEIR_E_NOT_FOUND: no column is known, or no row was seen in which one is named;
 * WEIR_E_SCHEMA names a column that has no type, and says what to do. */
WEIR_API weir_status weir_inference_schema(const weir_inference *inference,
                                           weir_schema **out, weir_error *err);

/* The schema as YAML takes it for the option `schema` of a source: a mapping column: type in one line,
 * `{id: int64, ts: "timestamp[us, UTC]"}`, without a trailing NUL. */
WEIR_API weir_status weir_schema_yaml(const weir_schema *schema, weir_bytes *out,
                                      weir_error *err);

#ifdef __cplusplus
}
#endif
#endif
