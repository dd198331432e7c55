/* SPDX-License-Identifier: Apache-2.0 */
/* An Arrow schema as Parquet has it: a tree of elements, one after the other, and its leaves. */
#ifndef WEIR_PARQUET_SCHEMA_H
#define WEIR_PARQUET_SCHEMA_H

#include "leaf.h"

typedef struct parquet_schema {
  base_buf
      elements; /* parquet_schema_element, the root first (parquet.thrift, FileMetaData.schema) */
  base_buf leaves; /* parquet_leaf */
} parquet_schema;

/* Refuses what has no mapping, naming the column. Borrows from the nodes. */
weir_status parquet_schema_init(parquet_schema *schema, const arrow_node *root,
                                weir_error *err);
void parquet_schema_done(parquet_schema *schema);

parquet_leaf *parquet_schema_leaves(const parquet_schema *schema, size_t *n);

#endif
