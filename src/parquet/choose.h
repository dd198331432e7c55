/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_PARQUET_CHOOSE_H
#define WEIR_PARQUET_CHOOSE_H

#include "leaf.h"
#include "take.h"

typedef struct parquet_choice {
  enum parquet_encoding encoding;
  enum parquet_encoding other; /* what takes a dictionary's place; never one itself */
  double other_bits;           /* what a value costs with it */
} parquet_choice;

/* The encoding for a column chunk, from a sample of its first page. `dictionary`: it may be one. */
parquet_choice choose_encoding(const parquet_leaf *leaf, const parquet_values *values,
                               bool dictionary, bool compressed);

#define CHOOSE_CHUNK_VALUES 1e6 /* of a chunk of which only the first page is there yet */

/* What a value costs with a dictionary of so many entries in a chunk of so many values. */
double choose_dictionary_bits(double distinct, double value_bytes, double chunk);

#endif
