/* SPDX-License-Identifier: Apache-2.0 */
/* How many bytes a stretch of an array's slots reaches. */
#include "arrow/arrow.h"

static uint64_t bits(int64_t n) {
  return ((uint64_t)n + 7) / 8;
}

static uint64_t views_bytes(const struct ArrowArray *a, int64_t start, int64_t length) {
  const union ArrowBinaryView *views = a->buffers[1];
  const uint8_t *validity = a->buffers[0];
  uint64_t total = 16 * (uint64_t)length;
  for (int64_t i = a->offset + start; i < a->offset + start + length; i++)
    if ((validity == NULL || ArrowBitGet(validity, i)) && views[i].inlined.size > 12)
      total += (uint64_t)views[i].inlined.size;
  return total;
}

/* Of an offsets buffer: itself, and where its first and last offset lie. */
static uint64_t offsets_bytes(const arrow_node *node, const struct ArrowArray *a,
                              int64_t start, int64_t length, int64_t *first,
                              int64_t *count) {
  *first = arrow_offset_at(a->buffers[1], node->width, a->offset + start);
  *count =
      arrow_offset_at(a->buffers[1], node->width, a->offset + start + length) - *first;
  return ((uint64_t)length + 1) * (uint64_t)node->width;
}

/* Child slots that list views reach: each slot once, however many lists share it, up to
 * the child. */
static uint64_t list_views_bytes(const arrow_node *node, const struct ArrowArray *a,
                                 int64_t start, int64_t length) {
  int64_t low = INT64_MAX, high = 0;
  for (int64_t i = a->offset + start; i < a->offset + start + length; i++) {
    int64_t at = arrow_offset_at(a->buffers[1], node->width, i);
    int64_t size = arrow_offset_at(a->buffers[2], node->width, i);
    if (size == 0) continue;
    if (at < low) low = at;
    if (at + size > high) high = at + size;
  }
  uint64_t own = 2 * (uint64_t)node->width * (uint64_t)length;
  if (high <= low) return own;
  return own + arrow_array_bytes(&node->children[0], a->children[0], low, high - low);
}

static uint64_t whole_bytes(const arrow_node *node, const struct ArrowArray *array) {
  return arrow_array_bytes(node, array, 0, array->length);
}

uint64_t arrow_array_bytes(const arrow_node *node, const struct ArrowArray *a,
                           int64_t start, int64_t length) {
  uint64_t total = 0;
  int64_t first = 0, count = 0;
  if (length == 0) return 0;
  if (arrow_node_has_validity(node) && a->buffers[0] != NULL) total += bits(length);
  if (node->dictionary != NULL) total += whole_bytes(node->dictionary, a->dictionary);
  switch (node->layout) {
    case ARROW_NULL:
      break;
    case ARROW_BITS:
      return total + bits(length);
    case ARROW_FIXED:
      return total + (uint64_t)node->width * (uint64_t)length;
    case ARROW_BYTES:
      total += offsets_bytes(node, a, start, length, &first, &count);
      return total + (uint64_t)count;
    case ARROW_VIEWS:
      return total + views_bytes(a, start, length);
    case ARROW_LIST:
      total += offsets_bytes(node, a, start, length, &first, &count);
      return total + arrow_array_bytes(&node->children[0], a->children[0], first, count);
    case ARROW_LIST_VIEW:
      return total + list_views_bytes(node, a, start, length);
    case ARROW_FIXED_LIST:
      return total + arrow_array_bytes(&node->children[0], a->children[0],
                                       (a->offset + start) * node->width,
                                       length * node->width);
    case ARROW_SPARSE_UNION:
      total += (uint64_t)length; /* fall through: its children run along with it */
      __attribute__((fallthrough));
    case ARROW_STRUCT:
      for (int64_t i = 0; i < node->n_children; i++)
        total += arrow_array_bytes(&node->children[i], a->children[i], a->offset + start,
                                   length);
      return total;
    case ARROW_DENSE_UNION:
      total += 5 * (uint64_t)length;
      __attribute__((fallthrough));
    case ARROW_RUN_ENDS:
      for (int64_t i = 0; i < node->n_children; i++)
        total += whole_bytes(&node->children[i], a->children[i]);
      return total;
  }
  return total;
}
