/* SPDX-License-Identifier: Apache-2.0 */
/* A value of a partition column: how to find it in a batch, compare it and write it as a folder's name. */
#ifndef CONNECTORS_FILE_PARTITION_VALUE_H
#define CONNECTORS_FILE_PARTITION_VALUE_H

#include <stdbool.h>
#include <weir/batch.h>

#define PARTITION_COMPONENT_MAX 255 /* NAME_MAX of Linux's file systems */

typedef enum file_partition_kind {
  PARTITION_SIGNED,
  PARTITION_UNSIGNED,
  PARTITION_BOOL,
  PARTITION_DATE,
  PARTITION_TIMESTAMP,
  PARTITION_TEXT, /* int32 offsets */
  PARTITION_LARGE_TEXT,
  PARTITION_TEXT_VIEW
} file_partition_kind;

typedef struct file_partition_type {
  file_partition_kind kind;
  int width;       /* bytes of a fixed value */
  int digits;      /* of a second's fraction */
  bool utc;        /* the timestamp has a zone */
  int index_width; /* 0: no dictionary */
} file_partition_type;

/* False: such columns name no folder. */
bool file_partition_type_of(const struct ArrowSchema *field, file_partition_type *out);

/* One column of one batch. */
typedef struct file_partition_column_view {
  const file_partition_type *type;
  const struct ArrowArray *array;  /* of the batch: values, or indices */
  const struct ArrowArray *values; /* the dictionary, or the same */
} file_partition_column_view;

/* Where a row's value lies in `values`; -1: null; -2: its index is outside the dictionary. */
int64_t file_partition_slot(const file_partition_column_view *view, int64_t row);
uint64_t file_partition_hash(const file_partition_column_view *view, int64_t slot);
bool file_partition_same(const file_partition_column_view *view, int64_t a, int64_t b);

/* The value of slot `slot` (not null) as it stands in a folder's name, without NUL, into room for
 * PARTITION_COMPONENT_MAX bytes. NULL, or what is wrong with it. */
const char *file_partition_format(const file_partition_column_view *view, int64_t slot,
                                  char *out, size_t *size);

#define PARTITION_NULL "__HIVE_DEFAULT_PARTITION__"

/* Bytes of a value that stand for themselves, and those of a column's name that may be there at all. */
bool file_partition_plain(uint8_t byte);
bool file_partition_name_valid(const char *name, size_t size);

#endif
