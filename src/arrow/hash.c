/* SPDX-License-Identifier: Apache-2.0 */
/* Hashes of values: equal values have equal hashes, in whatever batch, dictionary or layout they lie. */
#include <string.h>

#include "arrow/arrow.h"
#include "base/base.h"

bool arrow_can_hash(const arrow_node *node) {
  if (node->dictionary) return arrow_can_hash(node->dictionary);
  return node->layout == ARROW_BITS || node->layout == ARROW_FIXED ||
         node->layout == ARROW_BYTES || node->layout == ARROW_VIEWS;
}

/* A value's bytes; `room` for those that lie nowhere as they count. */
typedef struct value {
  const void *data;
  size_t size;
  uint64_t room;
} value;

/* 0.0 and -0.0 are one value, and so are all NaN. */
static void fixed_value(const arrow_node *node, const uint8_t *at, value *out) {
  out->data = at;
  out->size = (size_t)node->width;
  double d = 0;
  float f = 0;
  uint16_t h = 0;
  if (node->type == NANOARROW_TYPE_DOUBLE) {
    memcpy(&d, at, sizeof(d));
    if (d == 0) d = 0;
    if (d != d) d = __builtin_nan("");
    memcpy(&out->room, &d, sizeof(d));
  } else if (node->type == NANOARROW_TYPE_FLOAT) {
    memcpy(&f, at, sizeof(f));
    if (f == 0) f = 0;
    if (f != f) f = __builtin_nanf("");
    memcpy(&out->room, &f, sizeof(f));
  } else if (node->type == NANOARROW_TYPE_HALF_FLOAT) {
    memcpy(&h, at, sizeof(h));
    if ((h & 0x7fff) == 0) h = 0;
    if ((h & 0x7fff) > 0x7c00) h = 0x7e00;
    memcpy(&out->room, &h, sizeof(h));
  } else {
    return;
  }
  out->data = &out->room;
}

static void view_value(const struct ArrowArray *array, int64_t slot, value *out) {
  const union ArrowBinaryView *view =
      (const union ArrowBinaryView *)array->buffers[1] + slot;
  out->size = (size_t)view->inlined.size;
  out->data = out->size <= NANOARROW_BINARY_VIEW_INLINE_SIZE
                  ? (const void *)view->inlined.data
                  : (const uint8_t *)array->buffers[2 + view->ref.buffer_index] +
                        view->ref.offset;
}

static int64_t index_at(const arrow_node *node, const struct ArrowArray *array,
                        int64_t slot) {
  uint64_t index = 0; /* a negative one becomes too large, as it should */
  size_t width = (size_t)node->width;
  memcpy(&index, (const uint8_t *)array->buffers[1] + (size_t)slot * width, width);
  return index > INT64_MAX ? INT64_MAX : (int64_t)index;
}

/* False: null, or an index that is not within its dictionary. */
static bool find_value(const arrow_node *node, const struct ArrowArray *array,
                       int64_t slot, value *out) {
  slot += array->offset;
  if (array->buffers[0] && !ArrowBitGet(array->buffers[0], slot)) return false;
  if (node->dictionary) {
    int64_t index = index_at(node, array, slot);
    return index < array->dictionary->length &&
           find_value(node->dictionary, array->dictionary, index, out);
  }
  switch (node->layout) {
    case ARROW_BITS:
      out->room = (uint64_t)ArrowBitGet(array->buffers[1], slot);
      out->data = &out->room;
      out->size = 1;
      return true;
    case ARROW_FIXED:
      fixed_value(node, (const uint8_t *)array->buffers[1] + slot * node->width, out);
      return true;
    case ARROW_BYTES: {
      int64_t from = arrow_offset_at(array->buffers[1], node->width, slot);
      out->size =
          (size_t)(arrow_offset_at(array->buffers[1], node->width, slot + 1) - from);
      out->data = out->size ? (const char *)array->buffers[2] + from : "";
      return true;
    }
    default:
      view_value(array, slot, out);
      return true;
  }
}

int64_t arrow_hash_column(const arrow_node *node, const struct ArrowArray *array,
                          int64_t from, int64_t rows, uint64_t *hashes) {
  for (int64_t i = from; i < rows; i++) {
    value v = {0};
    if (!find_value(node, array, i, &v)) return i;
    if (hashes) hashes[i] = base_xxh3(v.data, v.size, hashes[i]);
  }
  return rows;
}
