/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as an Arrow IPC stream or file, mapped and streamed: an error or sound batches, whose every
 * value is then touched. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <nanoarrow/nanoarrow.h>
#include <weir/ipc.h>
#include <weir/ndjson.h>

#include "touch.h"

typedef struct feed {
  const uint8_t *data;
  size_t size, at;
} feed;

static weir_status feed_read(void *ctx, void *buf, size_t size, size_t *got,
                             weir_error *err) {
  feed *f = ctx;
  (void)err;
  size_t n = f->size - f->at;
  if (n > size) n = size;
  if (n > 0) memcpy(buf, f->data + f->at, n);
  f->at += n;
  *got = n;
  return WEIR_OK;
}

/* Dictionaries and list views on a way down the schema: each may show the same bytes many times. */
static int sharing(const struct ArrowSchema *schema) {
  int most = schema->dictionary != NULL ? sharing(schema->dictionary) + 1 : 0;
  for (int64_t i = 0; i < schema->n_children; i++) {
    int below = sharing(schema->children[i]) + (schema->format[1] == 'v');
    if (below > most) most = below;
  }
  return most;
}

/* Whatever NDJSON can hold is written, or refused with a reason. */
static void write_rows(weir_batch *batch) {
  weir_ndjson_encoder *encoder = NULL;
  const uint8_t *text = NULL;
  size_t size = 0;
  weir_error err = {0};
  if (sharing(weir_schema_arrow(weir_batch_schema(batch))) > 1) return;
  if (weir_ndjson_encoder_new(weir_batch_schema(batch), &encoder, &err) != WEIR_OK)
    return;
  if (weir_ndjson_encoder_write(encoder, batch, &text, &size, &err) == WEIR_OK) {
    for (size_t i = 0; i < size; i++) touched += text[i];
  } else if (err.flags != WEIR_ERR_BAD_DATA) {
    abort();
  }
  weir_ndjson_encoder_free(encoder);
}

static weir_status swallow(void *ctx, const void *data, size_t size, weir_error *err) {
  const uint8_t *bytes = data;
  (void)ctx;
  (void)err;
  for (size_t i = 0; i < size; i++) touched += bytes[i];
  return WEIR_OK;
}

/* Writes a batch as it is, and its second half, in both formats. */
static void write_again(weir_batch *batch) {
  for (int32_t file = 0; file < 2; file++) {
    const weir_ipc_writer_options options = {sizeof options, file, file, 0};
    weir_ipc_writer *writer = NULL;
    weir_batch *half = NULL;
    int64_t rows = weir_batch_rows(batch);
    if (weir_ipc_writer_new(weir_batch_schema(batch), &options, swallow, NULL, &writer,
                            NULL))
      abort();
    if (weir_batch_slice(batch, rows / 2, rows - rows / 2, &half, NULL)) abort();
    if (weir_ipc_writer_write(writer, batch, NULL) == WEIR_OK &&
        weir_ipc_writer_write(writer, half, NULL) == WEIR_OK)
      weir_ipc_writer_finish(writer, NULL);
    weir_ipc_writer_free(writer);
    weir_batch_unref(half);
  }
}

static uint64_t drain(weir_ipc_reader *reader) {
  uint64_t n = 0;
  weir_batch *batch = NULL;
  weir_error err = {0};
  while (n < 64 && weir_ipc_reader_next(reader, &batch, &err) == WEIR_OK &&
         batch != NULL) {
    touch_batch(batch);
    if (weir_batch_rows(batch) < 10000) write_again(batch);
    if (weir_batch_bytes(batch) < 10000 && weir_batch_rows(batch) < 100)
      write_rows(batch);
    weir_batch_unref(batch);
    batch = NULL;
    n++;
  }
  return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const weir_ipc_options options = {sizeof options, 0, 1u << 20, 64u << 20};
  weir_ipc_reader *reader = NULL;
  weir_error err = {0};
  weir_bytes bytes = {0};
  feed f = {data, size, 0};
  if (weir_bytes_copy(&bytes, data, size, &err) != WEIR_OK) return 0;
  if (weir_ipc_reader_open_bytes(&bytes, "fuzz", &options, &reader, &err) == WEIR_OK) {
    uint64_t n = drain(reader);
    weir_ipc_reader_seek_batch(reader, n / 2, &err);
    drain(reader);
    weir_ipc_reader_free(reader);
  }
  weir_bytes_release(&bytes);
  reader = NULL;
  if (weir_ipc_reader_open_stream(feed_read, &f, "fuzz", &options, &reader, &err) ==
      WEIR_OK) {
    drain(reader);
    weir_ipc_reader_free(reader);
  }
  return 0;
}
