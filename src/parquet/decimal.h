/* SPDX-License-Identifier: Apache-2.0 */
/* Doubles that are whole numbers of a small range divided by a power of ten, such as prices: they can be
 * looked up directly. */
#ifndef WEIR_PARQUET_DECIMAL_H
#define WEIR_PARQUET_DECIMAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct decimal_range {
  double scale; /* the power of ten; 0: none */
  int64_t base; /* the whole number of slot 0 */
  uint64_t range;
} decimal_range;

/* Finds a scale for values between min and max, from a few of the n, at least 1, with fewer than about
 * 2 * span slots. */
bool decimal_find(const double *values, size_t n, double min, double max, uint32_t span,
                  decimal_range *out);

/* The slot of each value: equal slots are equal bits, and the reverse. False: one of them has none, and
 * `out` holds nothing. */
bool decimal_slots(const decimal_range *decimals, const double *values, size_t n,
                   uint32_t *out);

#endif
