/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How each Arrow column is kept in Parquet (LogicalTypes.md): one leaf a flat column. A nested column
 * would give several leaves with a path and higher levels; nothing below the leaf cares.
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
  TAKE_BYTES, /* offsets and data */
  TAKE_VIEWS
};

typedef struct parquet_leaf {
  const char *name;       /* borrowed from the schema */
  const arrow_node *node; /* the column */
  const arrow_node
      *values; /* the node of the values: the dictionary's, else the column itself */
  int32_t column;
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

/* Refuses what has no mapping, naming the column. The leaf borrows from the node. */
weir_status leaf_init(parquet_leaf *leaf, const arrow_node *node, int32_t column,
                      weir_error *err);

/* Whether every valid value of `array` can be kept: WEIR_E_BAD_DATA with row and column of the first
 * that cannot. Nothing else in the writer can fail for the sake of a value. */
weir_status leaf_check(const parquet_leaf *leaf, const struct ArrowArray *array,
                       int64_t start, int64_t length, weir_error *err);

#endif
