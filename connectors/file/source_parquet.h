/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONNECTORS_FILE_SOURCE_PARQUET_H
#define CONNECTORS_FILE_SOURCE_PARQUET_H

#include "source.h"

typedef struct file_parquet file_parquet;

/* Reads the footer. `fd` and `path` are borrowed, `size` is the file's. */
weir_status file_parquet_new(int fd, const char *path, uint64_t size, int64_t batch_rows,
                             file_parquet **out, weir_error *err);
void file_parquet_free(file_parquet *parquet);                 /* NULL is a no-op */
weir_schema *file_parquet_schema(const file_parquet *parquet); /* borrowed */
/* Goes to progress->row of row group progress->count. */
weir_status file_parquet_seek(file_parquet *parquet, const file_progress *progress,
                              weir_error *err);
/* The next batch, and where reading stands behind it; *out = NULL at the end. */
weir_status file_parquet_next(file_parquet *parquet, file_progress *progress,
                              weir_batch **out, weir_error *err);
#endif
