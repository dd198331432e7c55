/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of a partitioned table by their partition values (PROTOCOL.md, section "Partition Value Serialization").
 * Timestamps are written in UTC as ISO 8601, as that section advises. The log's values are what counts; files also lie
 * in folders named after them, column=value, as people and other tools expect it.
 *
 * What the serialization cannot hold is bad data, with its row and column: an empty text, which readers take for null,
 * text that is not UTF-8 or has a NUL, and dates outside the years 1 to 9999.
 */
#ifndef CONNECTORS_DELTA_PARTITION_H
#define CONNECTORS_DELTA_PARTITION_H

#include "schema.h"

enum { DELTA_PARTITION_COLUMNS_MAX = 64 };

typedef struct delta_partitions delta_partitions;

/* *out is NULL without partition columns. WEIR_E_SCHEMA names a partition column that the input lacks, or whose type
 * cannot be one: nested, binary. */
weir_status delta_partitions_new(const delta_schema *table,
                                 const struct ArrowSchema *input,
                                 const delta_texts *partition_columns,
                                 delta_partitions **out, weir_error *err);
void delta_partitions_free(delta_partitions *p); /* NULL is a no-op */

/* Rows of one partition. */
typedef struct delta_group {
  delta_pairs values; /* by physical name, as add.partitionValues */
  const char *
      folder; /* "day=2024-02-29/kind=a%2Fb", below the table's; "" where a value is too long for one */
  const int64_t *rows;
  int64_t n;
} delta_group;

/* The groups of a batch, each with its rows in order; valid until the next call. */
weir_status delta_partitions_split(delta_partitions *p, weir_batch *batch,
                                   const delta_group **groups, size_t *n,
                                   weir_error *err);

/* A key as add.path has it: what RFC 2396 does not allow in a path as %XX. */
bool delta_path_encode(delta_arena *arena, const char *key, delta_text *out);

#endif
