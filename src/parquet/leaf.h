/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How Arrow columns are kept in Parquet (LogicalTypes.md): a flat column is one leaf; a nested one has a
 * leaf for each primitive field in it, with the way down to it. Nothing below the levels cares.
 */
#ifndef WEIR_PARQUET_LEAF_H
#define WEIR_PARQUET_LEAF_H

#include "arrow/arrow.h"
#include "stats.h"

/* How the slots of an Arrow array become values of the physical type. */
enum leaf_take {
  TAKE_NOTHING, /* null type */
  TAKE_BITS,
  TAKE_COPY, /* the same bytes */
  TAKE_INT8, /* widened to INT32 */
  TAKE_UINT8,
  TAKE_INT16,
  TAKE_UINT16,
  TAKE_SECONDS32, /* seconds to milliseconds */
  TAKE_SECONDS64,
  TAKE_DATE64, /* milliseconds to days */
  TAKE_DECIMAL, /* 16 or 32 bytes to INT32, INT64 or the least FIXED that holds the precision */
  TAKE_MONTHS, /* INTERVAL: months, days, milliseconds, each uint32 */
  TAKE_DAY_TIME,
  TAKE_MONTH_DAY_NANO,
  TAKE_BYTES, /* offsets and data */
  TAKE_VIEWS
};

/* One field on the way from a column to a leaf. */
typedef struct level_step {
  const arrow_node *node;
  int64_t child; /* of a struct: which one follows */
  bool nullable;
} level_step;

typedef struct parquet_leaf {
  const char *name;       /* of a nested one its path, with dots; for messages */
  const arrow_node *node; /* the field */
  const arrow_node
      *values;    /* the node of the values: the dictionary's, else the field itself */
  int32_t column; /* of the batch */
  bool nested;    /* levels come from `steps`, else from the column's validity alone */
  level_step *steps;
  size_t n_steps;
  thrift_binary *path; /* ColumnMetaData.path_in_schema */
  size_t n_path;
  enum parquet_type type;
  uint32_t width;        /* bytes of a value; 0: BYTE_ARRAY and BOOLEAN */
  uint32_t source_width; /* of a slot in the Arrow array; of offsets for TAKE_BYTES */
  uint8_t max_def, max_rep;
  bool utf8;
  bool whole; /* an integer that may be delta encoded or looked up directly */
  enum leaf_take take;
  enum parquet_order order;
  parquet_schema_element element;
} parquet_leaf;

/* The physical and logical type for the field's values, into leaf->element too. Refuses what has no
 * mapping. The leaf borrows from the node; name, node and column are set. */
weir_status leaf_init_values(parquet_leaf *leaf, weir_error *err);
weir_status leaf_refuse(const parquet_leaf *leaf, const char *why, weir_error *err);

/* Whether every valid value of `array` can be kept: WEIR_E_BAD_DATA with row and column of the first
 * that cannot. Nothing else in the writer can fail for the sake of a value. */
weir_status leaf_check(const parquet_leaf *leaf, const struct ArrowArray *array,
                       weir_error *err);
/* Whether it need be looked at at all. */
bool leaf_may_fail(const parquet_leaf *leaf, const struct ArrowArray *array);
/* leaf_check of one valid slot, counted without array->offset; `row` is the one to be named. */
weir_status leaf_check_slot(const parquet_leaf *leaf, const struct ArrowArray *array,
                            size_t slot, int64_t row, weir_error *err);
weir_status leaf_bad(const parquet_leaf *leaf, int64_t row, const char *what,
                     weir_error *err);

#endif
