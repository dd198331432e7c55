/* SPDX-License-Identifier: Apache-2.0 */
/* A Parquet file of the file source, by row group and row. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include <weir/parquet_read.h>

#include "source.h"
#include "source_parquet.h"

struct file_parquet {
  int fd; /* borrowed */
  const char *path;
  weir_parquet_reader *reader;
};

static weir_status read_at(void *ctx, uint64_t offset, void *data, size_t size,
                           weir_error *err) {
  const file_parquet *parquet = ctx;
  uint8_t *to = data;
  while (size > 0) {
    ssize_t got = pread(parquet->fd, to, size, (off_t)offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return weir_error_errno(err, errno, "cannot read %s", parquet->path);
    if (got == 0) {
      return weir_error_set(err, WEIR_E_CORRUPT, 0,
                            "the file became shorter while it was read");
    }
    to += got;
    offset += (uint64_t)got;
    size -= (size_t)got;
  }
  return WEIR_OK;
}

weir_status file_parquet_new(int fd, const char *path, uint64_t size, int64_t batch_rows,
                             file_parquet **out, weir_error *err) {
  weir_parquet_read_options options = {.struct_size = sizeof(options),
                                       .batch_rows = (int32_t)batch_rows};
  file_parquet *parquet = calloc(1, sizeof(*parquet));
  if (parquet == NULL)
    return weir_error_set(err, WEIR_E_NOMEM, 0, "no memory for a reader");
  parquet->fd = fd;
  parquet->path = path;
  weir_status status = weir_parquet_reader_new(read_at, parquet, size, path, &options,
                                               &parquet->reader, err);
  if (status != WEIR_OK) {
    file_parquet_free(parquet);
    return status;
  }
  *out = parquet;
  return WEIR_OK;
}

void file_parquet_free(file_parquet *parquet) {
  if (parquet == NULL) return;
  weir_parquet_reader_free(parquet->reader);
  free(parquet);
}

weir_schema *file_parquet_schema(const file_parquet *parquet) {
  return weir_parquet_reader_schema(parquet->reader);
}

weir_status file_parquet_seek(file_parquet *parquet, const file_progress *progress,
                              weir_error *err) {
  return weir_parquet_reader_seek(parquet->reader, progress->count, progress->row, err);
}

weir_status file_parquet_next(file_parquet *parquet, file_progress *progress,
                              weir_batch **out, weir_error *err) {
  weir_status status = weir_parquet_reader_next(parquet->reader, out, err);
  if (status == WEIR_OK && *out != NULL)
    weir_parquet_reader_tell(parquet->reader, &progress->count, &progress->row);
  return status;
}
