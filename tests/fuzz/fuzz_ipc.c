/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as an Arrow IPC stream or file, mapped and streamed: an error or sound batches, whose every
 * value is then touched. */
#include <stdlib.h>
#include <string.h>

#include <nanoarrow/nanoarrow.h>
#include <weir/ipc.h>

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

static volatile int64_t touched;

/* nanoarrow's own full validation reads offsets, indices and run ends; values are summed here. */
static void touch(const struct ArrowArrayView *view, int depth) {
  int64_t rows = view->length < 1000 ? view->length : 1000;
  for (int64_t i = 0; i < rows; i++) {
    if (ArrowArrayViewIsNull(view, i)) continue;
    switch (view->storage_type) {
      case NANOARROW_TYPE_STRING:
      case NANOARROW_TYPE_LARGE_STRING:
      case NANOARROW_TYPE_BINARY:
      case NANOARROW_TYPE_LARGE_BINARY:
      case NANOARROW_TYPE_FIXED_SIZE_BINARY:
      case NANOARROW_TYPE_STRING_VIEW:
      case NANOARROW_TYPE_BINARY_VIEW: {
        struct ArrowBufferView bytes = ArrowArrayViewGetBytesUnsafe(view, i);
        for (int64_t k = 0; k < bytes.size_bytes && k < 100; k++)
          touched += bytes.data.as_uint8[k];
        if (bytes.size_bytes > 0) touched += bytes.data.as_uint8[bytes.size_bytes - 1];
        break;
      }
      default:
        touched += ArrowArrayViewGetIntUnsafe(view, i);
    }
  }
  if (depth > 80) return;
  for (int64_t i = 0; i < view->n_children; i++) touch(view->children[i], depth + 1);
  if (view->dictionary != NULL) touch(view->dictionary, depth + 1);
}

static void check(weir_batch *batch) {
  struct ArrowArrayView view;
  struct ArrowError why;
  struct ArrowArray array = {0};
  weir_schema *schema = weir_batch_schema(batch);
  if (ArrowArrayViewInitFromSchema(&view, weir_schema_arrow(schema), &why) !=
      NANOARROW_OK)
    abort();
  if (weir_batch_export(batch, &array, NULL) != WEIR_OK) abort();
  if (ArrowArrayViewSetArray(&view, &array, &why) == NANOARROW_OK) touch(&view, 0);
  ArrowArrayViewReset(&view);
  array.release(&array);
  touched += (int64_t)weir_batch_bytes(batch);
}

static uint64_t drain(weir_ipc_reader *reader) {
  uint64_t n = 0;
  weir_batch *batch = NULL;
  weir_error err = {0};
  while (n < 64 && weir_ipc_reader_next(reader, &batch, &err) == WEIR_OK &&
         batch != NULL) {
    check(batch);
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
