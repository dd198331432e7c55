/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that follow from a seed and their number alone. */
#ifndef CONNECTORS_GENERATOR_VALUES_H
#define CONNECTORS_GENERATOR_VALUES_H

#include <weir/batch.h>

/* Refuses, by the column's name, a type that no values are made for. */
weir_status generator_check_schema(const weir_schema *schema, weir_error *err);

/* Rows first .. first + rows. Of the nullable columns, but the one that counts the rows, `nulls` percent
 * of the values are null. */
weir_status generator_make_batch(weir_schema *schema, uint64_t seed, int64_t nulls,
                                 int64_t first, int64_t rows, weir_batch **out,
                                 weir_error *err);

#endif
