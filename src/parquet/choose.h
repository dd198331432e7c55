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

#define CHOOSE_NEVER 1e9 /* bits a value that nothing costs */

typedef struct choose_rules {
  bool dictionary; /* it may be one */
  bool compressed; /* pages will be */
  double
      split_bits; /* what integers cost split into planes; CHOOSE_NEVER: they may not be */
} choose_rules;

/* The encoding for a column chunk, from a sample of its first page. */
parquet_choice choose_encoding(const parquet_leaf *leaf, const parquet_values *values,
                               const choose_rules *rules);

/* A way to write that is asked for by its name. */
typedef struct choose_wish {
  bool set;
  enum parquet_encoding encoding;
} choose_wish;

/* The encoding of that name: WEIR_E_INVALID_CONFIG if there is none, the leaf cannot have it, or only readers of
 * the newest format know it and `newest` is not set. */
weir_status choose_named(const parquet_leaf *leaf, const char *name, bool newest,
                         choose_wish *out, weir_error *err);
/* The choice that the wish leaves. */
parquet_choice choose_wished(const parquet_leaf *leaf, const parquet_values *values,
                             const choose_rules *rules, choose_wish wish);

#define CHOOSE_CHUNK_VALUES 1e6 /* of a chunk of which only the first page is there yet */

/* What a value costs with a dictionary of so many entries in a chunk of so many values. */
double choose_dictionary_bits(double distinct, double value_bytes, double chunk);

#endif
