/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `partition_by`: which folder below `path` a row goes to, as Hive, Spark, DuckDB, pyarrow and Polars name
 * them: column=value/column=value, in the order of the option. The columns are left out of the files.
 *
 * A value is text: letters, digits, "-", "_", "." and everything beyond ASCII as it is, any other byte as %XX,
 * null as __HIVE_DEFAULT_PARTITION__. Names of columns are not encoded, since not all readers decode them. What
 * those readers would give back as something else is refused: a type or a name at the start, a value as bad
 * data.
 */
#ifndef CONNECTORS_FILE_PARTITION_H
#define CONNECTORS_FILE_PARTITION_H

#include <stdbool.h>
#include <weir/batch.h>
#include <weir/options.h>

#define PARTITION_COLUMNS_MAX 16
#define PARTITION_FOLDER_MAX 2048 /* bytes of a folder's name below `path` */

typedef struct file_partitions file_partitions;

/* *out is NULL without `partition_by`. WEIR_E_INVALID_CONFIG or WEIR_E_SCHEMA names the column. */
weir_status file_partitions_new(const weir_options *options, weir_schema *schema,
                                file_partitions **out, weir_error *err);
void file_partitions_free(file_partitions *p); /* NULL is a no-op */
/* What is in the files; borrowed. */
weir_schema *file_partitions_schema(const file_partitions *p);
/* The columns' names, separated by commas; borrowed. */
const char *file_partitions_names(const file_partitions *p);

/* Rows of one folder. */
typedef struct file_partition_group {
  const char *folder;
  uint64_t hash;
  int64_t first, rows; /* of the batch that split gives */
} file_partition_group;

/* The batch's rows ordered by folder, without the partition columns; within a folder in their own order.
 * The groups are valid until the next call. Bad data names row and column, and takes nothing. */
weir_status file_partitions_split(file_partitions *p, weir_batch *batch, weir_batch **out,
                                  const file_partition_group **groups, size_t *n,
                                  weir_error *err);

/* Turns the row and the column that an encoder named in the last batch of split into those of the batch that it was
 * made of. */
void file_partitions_point_back(const file_partitions *p, weir_error *err);

/* True for exactly those texts that a group's folder can be: so a record that names one cannot lead
 * elsewhere. */
bool file_partition_folder_valid(const char *text, size_t size);

#endif
