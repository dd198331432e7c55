/* SPDX-License-Identifier: Apache-2.0 */
/* Slots of an Arrow array to a piece of a column: levels, and the values that are there, in their
 * Parquet form. */
#ifndef WEIR_PARQUET_TAKE_H
#define WEIR_PARQUET_TAKE_H

#include "leaf.h"

/* Values without gaps. BOOLEAN: packed bits from bit 0. BYTE_ARRAY: value i is
 * data[offsets[i], offsets[i + 1]), and the first offset need not be 0. */
typedef struct parquet_values {
  const uint8_t *data;
  const uint32_t *offsets; /* BYTE_ARRAY only */
  size_t n;
} parquet_values;

/* `rows` slots. A flat column has one level a row: valid is a bitmap from bit 0, padded with zeros to
 * 64 bits, or NULL when no slot is null. (A nested column would carry arrays of definition and
 * repetition levels in its place; the values are the same.) */
typedef struct parquet_piece {
  size_t rows, nulls;
  const uint8_t *valid;
  parquet_values values;
} parquet_piece;

/* Memory that pieces point into, until the next take. */
typedef struct take_scratch {
  base_buf valid, raw, values, offsets, indices;
} take_scratch;

void take_scratch_done(take_scratch *scratch);

/* How many slots from `start`, at least 1 and at most `length`, hold about `budget` bytes of values. */
size_t take_fit(const parquet_leaf *leaf, const struct ArrowArray *array, size_t start,
                size_t length, size_t budget);

/* Slots [start, start + length) of a column without a dictionary, counted from its first row. The
 * piece points into the array where nothing need be changed. */
weir_status take_slots(const parquet_leaf *leaf, const struct ArrowArray *array,
                       size_t start, size_t length, take_scratch *scratch,
                       parquet_piece *out, weir_error *err);

/* Of a column with a dictionary: levels and the dictionary's row numbers, as out->values.data
 * (uint32_t). A slot that points at a null in the dictionary is null. */
weir_status take_indices(const parquet_leaf *leaf, const struct ArrowArray *array,
                         size_t start, size_t length, take_scratch *scratch,
                         parquet_piece *out, weir_error *err);

/* The values of the given rows of a dictionary, none of them null. */
weir_status take_rows(const parquet_leaf *leaf, const struct ArrowArray *dictionary,
                      const uint32_t *rows, size_t n, take_scratch *scratch,
                      parquet_values *out, weir_error *err);

#endif
