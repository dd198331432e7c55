/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Schemas and record batches: Arrow C data with a count, immutable once made, shared
 * between threads without a copy.
 */
#ifndef WEIR_BATCH_H
#define WEIR_BATCH_H

#include <weir/arrow.h>
#include <weir/bytes.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A record batch's schema: an ArrowSchema of format "+s". */
typedef struct weir_schema weir_schema;

/* A record batch: an ArrowArray of struct type with its schema. Its array always has
 * offset 0 and no validity (one whose struct array has nulls is refused), and each
 * column's length is the number of rows; columns and what lies below them may have
 * offsets of their own. In an array of no slots any buffer may be NULL. A null count is
 * right or -1. */
typedef struct weir_batch weir_batch;

/* Takes *schema over (moved: its release becomes NULL) on WEIR_OK; otherwise it is still
 * the caller's. Refuses what is not a struct, has no valid names or formats, or is nested
 * deeper than 64. */
WEIR_API weir_status weir_schema_new(struct ArrowSchema *schema, weir_schema **out,
                                     weir_error *err);
/* Deep copy of a schema that stays the caller's. */
WEIR_API weir_status weir_schema_copy(const struct ArrowSchema *schema, weir_schema **out,
                                      weir_error *err);
WEIR_API weir_schema *weir_schema_ref(weir_schema *schema);
WEIR_API void weir_schema_unref(weir_schema *schema); /* NULL is a no-op */
/* Borrowed; valid as long as the caller holds a reference. */
WEIR_API const struct ArrowSchema *weir_schema_arrow(const weir_schema *schema);
/* Deep copy into *out, which the caller releases. */
WEIR_API weir_status weir_schema_export(const weir_schema *schema,
                                        struct ArrowSchema *out, weir_error *err);

/* A schema of `n` of the columns, in the order named; the schema's own metadata stays. */
WEIR_API weir_status weir_schema_select(const weir_schema *schema, const int64_t *columns,
                                        int64_t n, weir_schema **out, weir_error *err);

/* Whether `got` may be written where `want` is declared: same columns, names, types and
 * order; a column that `want` declares not nullable must not be nullable in `got`.
 * Metadata is not compared. WEIR_E_SCHEMA names the first column that differs and both
 * types; `what` begins the message. */
WEIR_API weir_status weir_schema_check(const struct ArrowSchema *want,
                                       const struct ArrowSchema *got, const char *what,
                                       weir_error *err);

/* Type names as Arrow people write them: "int64", "utf8", "timestamp[us, UTC]",
 * "decimal128(38, 10)", "list<int32>", "struct<a: int64, b: utf8>", "dictionary<int32,
 * utf8>". parse fills *out (name "", nullable), which the caller releases; an unknown
 * type is WEIR_E_INVALID_CONFIG and names the nearest known one. */
WEIR_API weir_status weir_type_parse(const char *text, struct ArrowSchema *out,
                                     weir_error *err);
/* A schema of n columns from names and type texts, as the `schema` options of sources give them. A type
 * may be followed by " not null"; else the column is nullable. Names must be valid UTF-8 and differ. */
WEIR_API weir_status weir_schema_from_types(const char *const *names,
                                            const char *const *types, size_t n,
                                            weir_schema **out, weir_error *err);
/* Text of a field's type into buf, cut at `size` with NUL. */
WEIR_API void weir_type_format(const struct ArrowSchema *field, char *buf, size_t size);

/* Takes *array over (moved) on WEIR_OK; otherwise it is still the caller's. Checks buffer
 * counts, lengths, offsets' bounds and children against the schema (so that whoever reads
 * the batch later may trust it), that null counts are right and that what is declared not
 * nullable, as are the keys of maps, has no nulls but below nulls, which hide them; not the
 * contents of values: UTF-8 and dictionary indices are the producer's word, as is the
 * size of each buffer. Keeps a reference to `schema`. */
WEIR_API weir_status weir_batch_new(weir_schema *schema, struct ArrowArray *array,
                                    weir_batch **out, weir_error *err);
WEIR_API weir_batch *weir_batch_ref(weir_batch *batch);
WEIR_API void weir_batch_unref(
    weir_batch *batch); /* NULL is a no-op; the last one releases the array */
/* A view of `length` rows from `offset`, sharing the buffers and holding a reference to
 * `batch`. */
WEIR_API weir_status weir_batch_slice(weir_batch *batch, int64_t offset, int64_t length,
                                      weir_batch **out, weir_error *err);
/* The rows named, in that order, each at most once, as a batch of its own: values are copied, but dictionaries
 * and what views and list views point to are shared with `batch`, to which it holds a reference. */
WEIR_API weir_status weir_batch_take(weir_batch *batch, const int64_t *rows, int64_t n,
                                     weir_batch **out, weir_error *err);
/* A view of chosen columns, sharing the buffers and holding a reference to `batch`. `schema` is what
 * weir_schema_select gave for the same columns of the batch's schema or of one with the same types. */
WEIR_API weir_status weir_batch_select(weir_batch *batch, weir_schema *schema,
                                       const int64_t *columns, weir_batch **out,
                                       weir_error *err);
WEIR_API weir_schema *weir_batch_schema(const weir_batch *batch); /* borrowed */
WEIR_API const struct ArrowArray *weir_batch_array(
    const weir_batch *batch); /* borrowed */
WEIR_API int64_t weir_batch_rows(const weir_batch *batch);
/* Bytes of the buffers that the rows reach (an estimate for views and dictionaries). */
WEIR_API uint64_t weir_batch_bytes(const weir_batch *batch);
/* An array of the same buffers for another Arrow library; it holds a reference, the
 * caller releases it. */
WEIR_API weir_status weir_batch_export(weir_batch *batch, struct ArrowArray *out,
                                       weir_error *err);

#ifdef __cplusplus
}
#endif
#endif
