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

/* Some rows of a leaf. A flat column has one level a row: valid is a bitmap from bit 0, padded with zeros
 * to 64 bits, or NULL when no slot is null. A nested one has `levels` bytes of definition levels, and of
 * repetition levels if it repeats, in its place. nulls = levels - values.n. */
typedef struct parquet_piece {
  size_t rows, levels, nulls;
  const uint8_t *valid;
  const uint8_t *def, *rep;
  parquet_values values;
} parquet_piece;

/* Memory that pieces point into, until the next take. */
typedef struct take_scratch {
  base_buf valid, raw, values, offsets, indices;
} take_scratch;

void take_scratch_done(take_scratch *scratch);

static inline bool take_may_have_nulls(const struct ArrowArray *array) {
  return array->null_count != 0 && array->n_buffers > 0 && array->buffers[0] != NULL;
}

/* Row of the dictionary that a slot, counted from the array's first, names. A null slot may name none. */
size_t take_index_at(const parquet_leaf *leaf, const struct ArrowArray *array,
                     size_t slot);
/* Bytes that a slot's value takes; of a null slot anything. */
size_t take_slot_bytes(const parquet_leaf *leaf, const struct ArrowArray *array,
                       size_t slot);

/* Slots of an array that hold values, counted from its first: those of [start, start + length) whose bit
 * in `valid` is set (NULL: all; else padded as a piece's), or `rows` one by one. */
typedef struct take_selection {
  size_t start, length, nulls;
  const uint8_t *valid;
  const uint32_t *rows; /* length of them; start, nulls and valid are not in use */
} take_selection;

/* Values of a column without a dictionary. */
weir_status take_selected(const parquet_leaf *leaf, const struct ArrowArray *array,
                          const take_selection *selection, take_scratch *scratch,
                          parquet_values *out, weir_error *err);
/* Row numbers of the dictionary, as take_indices gives them; none names a null. */
weir_status take_selected_indices(const parquet_leaf *leaf,
                                  const struct ArrowArray *array,
                                  const take_selection *selection, take_scratch *scratch,
                                  parquet_values *out, weir_error *err);

/* How many slots from `start`, at least 1 and at most `length`, hold about `budget` bytes of values. */
size_t take_fit(const parquet_leaf *leaf, const struct ArrowArray *array, size_t start,
                size_t length, size_t budget);

/* Bytes of the slots' values where offsets tell at once, else 0. */
size_t take_bytes(const parquet_leaf *leaf, const struct ArrowArray *array, size_t start,
                  size_t length);

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
