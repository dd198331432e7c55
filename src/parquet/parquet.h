/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of the Parquet room. From the outside it is reached through <weir/parquet.h> alone. */
#ifndef WEIR_PARQUET_ROOM_H
#define WEIR_PARQUET_ROOM_H

#include "column.h"

/* Appends the ColumnIndex of a finished chunk; nothing, when a page with values has no bounds. */
weir_status parquet_put_column_index(const parquet_column *column, base_buf *out,
                                     weir_error *err);
/* Appends its OffsetIndex; its first data page is at `offset` of the file. */
weir_status parquet_put_offset_index(const parquet_column *column, uint64_t offset,
                                     base_buf *out, weir_error *err);

/* sizes.c: a chunk's size statistics; its histograms lie in a buffer that many chunks share. */
typedef struct sizes_chunk {
  int64_t bytes;
  size_t rep_at, def_at, end; /* within that buffer */
} sizes_chunk;

weir_status sizes_of_chunk(const parquet_column *column, sizes_chunk *out,
                           base_buf *counts, weir_error *err);
void sizes_fill(const sizes_chunk *chunk, const base_buf *counts, bool bytes,
                parquet_size_statistics *out);
/* Counts of a column's pages, as a list. */
thrift_list sizes_list(const base_buf *counts);

/* Value of "ARROW:schema": base64 of the encapsulated IPC schema message; free(). */
weir_status parquet_arrow_schema(weir_schema *schema, char **out, weir_error *err);
/* The other way; *out stays as it is when the text is none. */
void parquet_arrow_schema_read(const thrift_binary *text, weir_schema **out);

#endif
