/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Definition and repetition levels of nested columns (README of parquet-format, "Nested Encoding"),
 * straight from offsets and validity: each step from a column down to one of its leaves goes over whole
 * arrays of levels, never over values one by one.
 */
#ifndef WEIR_PARQUET_LEVELS_H
#define WEIR_PARQUET_LEVELS_H

#include "take.h"

/* Slots of an array, counted from its first one. */
typedef struct level_range {
  size_t start, length;
} level_range;

/* What some rows of a column are for one leaf. Of the levels, in their order, those with a definition
 * level of at least `carry` have a slot in the leaf's array; the slots are the ranges one after the
 * other. A slot holds a value if its level is the leaf's max_def. */
typedef struct parquet_levels {
  const struct ArrowArray *array; /* the leaf's */
  size_t n, slots;
  uint8_t carry;
  base_buf def, rep; /* n bytes each; rep is empty when the leaf does not repeat */
  base_buf ranges;
  base_buf next_def, next_rep, next_ranges, sizes, valid; /* scratch */
} parquet_levels;

void levels_done(parquet_levels *levels);

/* Levels of rows [start, start + length) of a column, valid until the next call. */
weir_status levels_take(const parquet_leaf *leaf, const struct ArrowArray *column,
                        size_t start, size_t length, parquet_levels *levels,
                        weir_error *err);

/* How many of the bytes equal `value`, and how many are at least that. */
size_t levels_count(const uint8_t *levels, size_t n, uint8_t value);
size_t levels_count_from(const uint8_t *levels, size_t n, uint8_t value);

#endif
