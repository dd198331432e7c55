/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statistics of a data file (PROTOCOL.md, section "Per-file Statistics"): its rows, and of its first columns how many
 * values are null and the bounds of the others.
 *
 * Bounds are exact, but that texts are cut after 32 characters: the lower one is a prefix, the upper one the prefix with
 * the largest character behind it, so that both are bounds in the order of UTF-8. Timestamps keep their
 * microseconds, though the protocol allows readers to expect milliseconds: those widen the bound and lose nothing.
 * Bounds are left out where JSON or readers have no value for them (NaN, infinities, years beyond 9999, text that is not
 * UTF-8), and for booleans, bytes, arrays and maps.
 */
#ifndef CONNECTORS_DELTA_STATS_H
#define CONNECTORS_DELTA_STATS_H

#include "schema.h"

typedef struct delta_stats delta_stats;

/* `input` and `files` are the same columns under their own names and under the files' (delta_schema_of_files); `files`
 * outlives it. Which columns: delta.dataSkippingStatsColumns, else delta.dataSkippingNumIndexedCols (-1: all), else
 * the first 32, counted without structs around them. */
weir_status delta_stats_new(const struct ArrowSchema *input,
                            const struct ArrowSchema *files,
                            const delta_pairs *configuration, delta_stats **out,
                            weir_error *err);
void delta_stats_free(delta_stats *stats); /* NULL is a no-op */

/* Rows of the file; the batch has the types of `files`. */
weir_status delta_stats_add(delta_stats *stats, weir_batch *batch, weir_error *err);

/* The JSON of add.stats, malloc'd. */
weir_status delta_stats_write(const delta_stats *stats, char **out, size_t *size,
                              weir_error *err);

#endif
