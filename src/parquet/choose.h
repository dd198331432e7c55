/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_PARQUET_CHOOSE_H
#define WEIR_PARQUET_CHOOSE_H

#include "leaf.h"
#include "take.h"

/* The encoding for a column chunk, from a sample of its first page. `dictionary`: it may be one. */
enum parquet_encoding choose_encoding(const parquet_leaf *leaf,
                                      const parquet_values *values, bool dictionary,
                                      bool compressed);

#endif
