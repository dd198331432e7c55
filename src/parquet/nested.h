/* SPDX-License-Identifier: Apache-2.0 */
/* Nested columns: levels and selected slots to pages that begin at records. */
#ifndef WEIR_PARQUET_NESTED_H
#define WEIR_PARQUET_NESTED_H

#include "column.h"

/* Whether rows [0, length) of the leaf's column can be kept; as leaf_check. */
weir_status nested_check(const parquet_leaf *leaf, const struct ArrowArray *column,
                         parquet_levels *levels, weir_error *err);

/* Appends rows of a nested column; as column_append. */
weir_status nested_append(parquet_column *column, parquet_context *ctx,
                          const struct ArrowArray *array, size_t start, size_t length,
                          weir_error *err);

#endif
