/* SPDX-License-Identifier: Apache-2.0 */
/* Touches every value of a batch, and aborts where an index or offset leads outside. */
#ifndef TESTS_FUZZ_TOUCH_H
#define TESTS_FUZZ_TOUCH_H

#include <nanoarrow/nanoarrow.h>
#include <stdbool.h>
#include <stdlib.h>
#include <weir/batch.h>

static volatile uint64_t touched;

/* Fixed-width values, offsets and type ids: all bytes of the first rows. */
static void touch_plain(const struct ArrowArrayView *view, int64_t rows) {
  for (int i = 0; i < NANOARROW_MAX_FIXED_BUFFERS; i++) {
    const uint8_t *data = view->buffer_views[i].data.as_uint8;
    int64_t bits = view->layout.element_size_bits[i];
    if (data == NULL || bits == 0) continue;
    for (int64_t k = view->offset * bits / 8; k < ((view->offset + rows) * bits + 7) / 8;
         k++)
      touched += data[k];
  }
}

static void touch_bytes(struct ArrowBufferView bytes) {
  for (int64_t k = 0; k < bytes.size_bytes && k < 100; k++)
    touched += bytes.data.as_uint8[k];
  if (bytes.size_bytes > 0) touched += bytes.data.as_uint8[bytes.size_bytes - 1];
}

static void touch_list_view(const struct ArrowArrayView *view, int64_t i) {
  bool large = view->storage_type == NANOARROW_TYPE_LARGE_LIST_VIEW;
  const struct ArrowBufferView *offsets = &view->buffer_views[1],
                               *sizes = &view->buffer_views[2];
  i += view->offset;
  int64_t at = large ? offsets->data.as_int64[i] : offsets->data.as_int32[i];
  int64_t size = large ? sizes->data.as_int64[i] : sizes->data.as_int32[i];
  if (at < 0 || size < 0 || at + size > view->children[0]->length) abort();
}

/* What the reader vouches for: whatever the schema says, no index or offset leads outside. */
static void touch(const struct ArrowArrayView *view) {
  int64_t rows = view->length < 1000 ? view->length : 1000;
  touch_plain(view, rows);
  for (int64_t i = 0; i < rows; i++) {
    if (view->storage_type == NANOARROW_TYPE_RUN_END_ENCODED ||
        ArrowArrayViewIsNull(view, i))
      continue;
    if (view->dictionary != NULL) {
      uint64_t index = ArrowArrayViewGetUIntUnsafe(view, i);
      if (index >= (uint64_t)view->dictionary->length) abort();
    }
    switch (view->storage_type) {
      case NANOARROW_TYPE_STRING:
      case NANOARROW_TYPE_LARGE_STRING:
      case NANOARROW_TYPE_BINARY:
      case NANOARROW_TYPE_LARGE_BINARY:
      case NANOARROW_TYPE_FIXED_SIZE_BINARY:
      case NANOARROW_TYPE_STRING_VIEW:
      case NANOARROW_TYPE_BINARY_VIEW:
        touch_bytes(ArrowArrayViewGetBytesUnsafe(view, i));
        break;
      case NANOARROW_TYPE_LIST:
      case NANOARROW_TYPE_LARGE_LIST:
      case NANOARROW_TYPE_MAP:
        if (ArrowArrayViewListChildOffset(view, i) < 0 ||
            ArrowArrayViewListChildOffset(view, i) >
                ArrowArrayViewListChildOffset(view, i + 1) ||
            ArrowArrayViewListChildOffset(view, i + 1) > view->children[0]->length)
          abort();
        break;
      case NANOARROW_TYPE_LIST_VIEW:
      case NANOARROW_TYPE_LARGE_LIST_VIEW:
        touch_list_view(view, i);
        break;
      case NANOARROW_TYPE_FIXED_SIZE_LIST:
        if ((view->offset + i + 1) * view->layout.child_size_elements >
            view->children[0]->length)
          abort();
        break;
      case NANOARROW_TYPE_STRUCT:
        for (int64_t k = 0; k < view->n_children; k++)
          if (view->offset + i >= view->children[k]->length) abort();
        break;
      default:
        break;
    }
  }
  for (int64_t i = 0; i < view->n_children; i++) touch(view->children[i]);
  if (view->dictionary != NULL) touch(view->dictionary);
}

static void touch_batch(weir_batch *batch) {
  struct ArrowArrayView view;
  struct ArrowError why;
  struct ArrowArray array = {0};
  weir_schema *schema = weir_batch_schema(batch);
  if (ArrowArrayViewInitFromSchema(&view, weir_schema_arrow(schema), &why) !=
      NANOARROW_OK)
    abort();
  if (weir_batch_export(batch, &array, NULL) != WEIR_OK) abort();
  if (ArrowArrayViewSetArray(&view, &array, &why) == NANOARROW_OK) touch(&view);
  ArrowArrayViewReset(&view);
  array.release(&array);
  touched += weir_batch_bytes(batch);
}

#endif
