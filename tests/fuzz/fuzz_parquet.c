/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a Parquet file: an error or sound batches, whose every value is then touched. */
#include <stdlib.h>
#include <string.h>

#include <weir/parquet_read.h>

#include "touch.h"

typedef struct file {
  const uint8_t *data;
  size_t size;
} file;

static weir_status file_read(void *ctx, uint64_t offset, void *data, size_t size,
                             weir_error *err) {
  const file *f = ctx;
  (void)err;
  if (offset > f->size || size > f->size - offset) abort();
  memcpy(data, f->data + offset, size);
  return WEIR_OK;
}

static void drain(weir_parquet_reader *reader) {
  weir_error err = {0};
  weir_batch *batch = NULL;
  for (int n = 0; n < 64; n++) {
    if (weir_parquet_reader_next(reader, &batch, &err) != WEIR_OK || batch == NULL) break;
    touch_batch(batch);
    weir_batch_unref(batch);
    batch = NULL;
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  file f = {data, size};
  weir_error err = {0};
  weir_parquet_reader *reader = NULL;
  const weir_parquet_read_options options = {
      .struct_size = sizeof(options), .batch_rows = 100, .max_batch_bytes = 8u << 20};
  if (weir_parquet_reader_new(file_read, &f, size, "fuzz", &options, &reader, &err) !=
      WEIR_OK) {
    if (err.message[0] == '\0') abort();
    return 0;
  }
  drain(reader);
  uint64_t group = weir_parquet_reader_row_groups(reader) / 2;
  uint64_t row = weir_parquet_reader_group_rows(reader, group) / 2;
  if (weir_parquet_reader_seek(reader, group, row, &err) != WEIR_OK) abort();
  if (row < 100000) drain(reader);
  weir_parquet_reader_free(reader);
  return 0;
}
