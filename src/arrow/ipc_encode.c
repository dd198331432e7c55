/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays into the buffers of a body, cut down to the slots that are wanted. */
#include <inttypes.h>
#include <lz4frame.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "arrow/ipc.h"

void ipc_body_done(ipc_body *body) {
  for (size_t i = 0; i < ipc_body_pieces(body); i++) free(ipc_body_piece(body, i)->owned);
  base_buf_done(&body->nodes);
  base_buf_done(&body->pieces);
  base_buf_done(&body->variadic);
}

size_t ipc_body_pieces(const ipc_body *body) {
  return body->pieces.size / sizeof(ipc_piece);
}

const ipc_piece *ipc_body_piece(const ipc_body *body, size_t i) {
  return (const ipc_piece *)body->pieces.data + i;
}

static weir_status put_piece(ipc_body *b, const void *data, int64_t size,
                             weir_error *err) {
  ipc_piece piece = {size == 0 ? NULL : data, size, NULL};
  return base_buf_append(&b->pieces, &piece, sizeof piece, err);
}

/* A zeroed block of `size` bytes that becomes the next piece; NULL when there is no memory. */
static void *own_piece(ipc_body *b, int64_t size, weir_error *err) {
  void *block = base_calloc((size_t)size + 1, 1, err);
  ipc_piece piece = {block, size, block};
  if (block == NULL) return NULL;
  if (base_buf_append(&b->pieces, &piece, sizeof piece, err) == WEIR_OK) return block;
  free(block);
  return NULL;
}

/* Bits from `start` on; those behind the last one are 0. */
static weir_status put_bits(ipc_body *b, const uint8_t *bits, int64_t start,
                            int64_t length, weir_error *err) {
  if (start % 8 == 0 && length % 8 == 0)
    return put_piece(b, bits + start / 8, length / 8, err);
  uint8_t *out = own_piece(b, (length + 7) / 8, err);
  if (out == NULL) return WEIR_E_NOMEM;
  if (start % 8 == 0) {
    memcpy(out, bits + start / 8, (size_t)(length + 7) / 8);
    if (length % 8 != 0) out[length / 8] &= (uint8_t)((1u << (length % 8)) - 1);
    return WEIR_OK;
  }
  for (int64_t i = 0; i < length; i++)
    out[i / 8] |= (uint8_t)(ArrowBitGet(bits, start + i) << (i % 8));
  return WEIR_OK;
}

static int64_t count_nulls(const arrow_node *node, const struct ArrowArray *a, int64_t at,
                           int64_t length) {
  if (node->layout == ARROW_NULL) return length;
  if (!arrow_node_has_validity(node) || a->null_count == 0 || a->buffers[0] == NULL)
    return 0;
  return length - ArrowBitCountSet(a->buffers[0], at, length);
}

/* Offsets of slots [at, at + length), from 0 on; *first and *count: the range they mean. */
static weir_status put_offsets(ipc_body *b, const arrow_node *node,
                               const struct ArrowArray *a, int64_t at, int64_t length,
                               int64_t *first, int64_t *count, weir_error *err) {
  const int32_t width = node->width;
  const uint8_t *offsets = a->buffers[1];
  *first = *count = 0;
  if (length == 0) return own_piece(b, width, err) == NULL ? WEIR_E_NOMEM : WEIR_OK;
  *first = arrow_offset_at(offsets, width, at);
  *count = arrow_offset_at(offsets, width, at + length) - *first;
  if (*first == 0) return put_piece(b, offsets + at * width, (length + 1) * width, err);
  void *out = own_piece(b, (length + 1) * width, err);
  if (out == NULL) return WEIR_E_NOMEM;
  for (int64_t i = 0; i <= length; i++) {
    int64_t moved = arrow_offset_at(offsets, width, at + i) - *first;
    if (width == 8)
      ((int64_t *)out)[i] = moved;
    else
      ((int32_t *)out)[i] = (int32_t)moved;
  }
  return WEIR_OK;
}

/* Data that views of valid slots reach, and what all data buffers hold. */
static void weigh_views(const struct ArrowArray *a, int64_t at, int64_t length,
                        int64_t *used, int64_t *held) {
  const union ArrowBinaryView *views = a->buffers[1];
  const int64_t *sizes = a->buffers[a->n_buffers - 1];
  *used = *held = 0;
  for (int64_t i = 0; i < a->n_buffers - 3; i++) *held += sizes[i];
  for (int64_t i = at; i < at + length && *held > 0; i++)
    if ((a->buffers[0] == NULL || ArrowBitGet(a->buffers[0], i)) &&
        views[i].inlined.size > 12)
      *used += views[i].inlined.size;
}

/* A slice of few rows must not carry all data of its batch: then the views get data of their own. */
static weir_status put_views(ipc_body *b, const struct ArrowArray *a, int64_t at,
                             int64_t length, weir_error *err) {
  int64_t used = 0, held = 0, variadic = a->n_buffers - 3;
  const union ArrowBinaryView *views = a->buffers[1];
  weigh_views(a, at, length, &used, &held);
  bool compact = used < held / 2 && used <= INT32_MAX;
  if (compact) variadic = used > 0;
  BASE_TRY(base_buf_append(&b->variadic, &variadic, sizeof variadic, err));
  if (!compact) {
    BASE_TRY(put_piece(b, length == 0 ? NULL : views + at, length * 16, err));
    const int64_t *sizes = a->buffers[a->n_buffers - 1];
    for (int64_t i = 0; i < variadic; i++)
      BASE_TRY(put_piece(b, a->buffers[2 + i], sizes[i], err));
    return WEIR_OK;
  }
  union ArrowBinaryView *out = own_piece(b, length * 16, err);
  uint8_t *data = out == NULL || used == 0 ? NULL : own_piece(b, used, err);
  if (out == NULL || (used > 0 && data == NULL)) return WEIR_E_NOMEM;
  int32_t filled = 0;
  for (int64_t i = 0; i < length; i++) {
    if (a->buffers[0] != NULL && !ArrowBitGet(a->buffers[0], at + i)) continue;
    out[i] = views[at + i];
    if (data == NULL || out[i].inlined.size <= 12) continue;
    memcpy(data + filled,
           (const uint8_t *)a->buffers[2 + views[at + i].ref.buffer_index] +
               views[at + i].ref.offset,
           (size_t)out[i].ref.size);
    out[i].ref.buffer_index = 0;
    out[i].ref.offset = filled;
    filled += out[i].ref.size;
  }
  return WEIR_OK;
}

#define SHIFT_INDICES(type, max)                                            \
  do {                                                                      \
    for (int64_t i = 0; i < length; i++) {                                  \
      uint64_t moved = (uint64_t)((const type *)from)[i] + (uint64_t)shift; \
      if (valid != NULL && !ArrowBitGet(valid, at + i)) continue;           \
      if (moved > (uint64_t)(max)) return false;                            \
      ((type *)to)[i] = (type)moved;                                        \
    }                                                                       \
  } while (0)

/* False: an index type too small. Null slots become 0. */
static bool shift_indices(const arrow_node *node, const void *from, const uint8_t *valid,
                          int64_t at, int64_t length, int64_t shift, void *to) {
  switch (node->storage) {
    case NANOARROW_TYPE_INT8:
      SHIFT_INDICES(int8_t, INT8_MAX);
      break;
    case NANOARROW_TYPE_UINT8:
      SHIFT_INDICES(uint8_t, UINT8_MAX);
      break;
    case NANOARROW_TYPE_INT16:
      SHIFT_INDICES(int16_t, INT16_MAX);
      break;
    case NANOARROW_TYPE_UINT16:
      SHIFT_INDICES(uint16_t, UINT16_MAX);
      break;
    case NANOARROW_TYPE_INT32:
      SHIFT_INDICES(int32_t, INT32_MAX);
      break;
    case NANOARROW_TYPE_UINT32:
      SHIFT_INDICES(uint32_t, UINT32_MAX);
      break;
    case NANOARROW_TYPE_INT64:
      SHIFT_INDICES(int64_t, INT64_MAX);
      break;
    default:
      SHIFT_INDICES(uint64_t, UINT64_MAX);
  }
  return true;
}

static weir_status put_fixed(ipc_body *b, const arrow_node *node,
                             const struct ArrowArray *a, int64_t at, int64_t length,
                             weir_error *err) {
  const uint8_t *from = a->buffers[1];
  int64_t shift = node->dictionary == NULL || b->shifts == NULL
                      ? 0
                      : b->shifts[node - b->tree->nodes];
  if (length == 0) return put_piece(b, NULL, 0, err);
  from += at * node->width;
  if (shift == 0) return put_piece(b, from, length * node->width, err);
  void *to = own_piece(b, length * node->width, err);
  if (to == NULL) return WEIR_E_NOMEM;
  const uint8_t *valid = a->null_count == 0 ? NULL : a->buffers[0];
  if (shift_indices(node, from, valid, at, length, shift, to)) return WEIR_OK;
  char type[160];
  weir_type_format(node->schema, type, sizeof type);
  return weir_error_set(
      err, WEIR_E_NOT_IMPLEMENTED, 0,
      "column '%s': the dictionaries of all batches come to more values than a "
      "%s can number; write a stream, or use larger indices",
      node->schema->name, type);
}

static int64_t run_end(const struct ArrowArray *ends, int32_t width, int64_t i) {
  i += ends->offset;
  return width == 2 ? ((const int16_t *)ends->buffers[1])[i]
                    : arrow_offset_at(ends->buffers[1], width, i);
}

/* The runs that slots [at, at + length) lie in, cut at both ends. */
static weir_status put_runs(ipc_body *b, const arrow_node *node,
                            const struct ArrowArray *a, int64_t at, int64_t length,
                            weir_error *err) {
  const struct ArrowArray *ends = a->children[0];
  int64_t low = 0, high = ends->length;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (run_end(ends, node->width, middle) > at)
      high = middle;
    else
      low = middle + 1;
  }
  int64_t n = 0;
  while (length > 0 && (n == 0 || run_end(ends, node->width, low + n - 1) < at + length))
    n++;
  ipc_node field = {n, 0};
  BASE_TRY(base_buf_append(&b->nodes, &field, sizeof field, err));
  BASE_TRY(put_piece(b, NULL, 0, err));
  void *out = own_piece(b, n * node->width, err);
  if (out == NULL) return WEIR_E_NOMEM;
  for (int64_t i = 0; i < n; i++) {
    int64_t end = run_end(ends, node->width, low + i) - at;
    if (end > length) end = length;
    if (node->width == 2)
      ((int16_t *)out)[i] = (int16_t)end;
    else if (node->width == 4)
      ((int32_t *)out)[i] = (int32_t)end;
    else
      ((int64_t *)out)[i] = end;
  }
  return ipc_encode_array(b, &node->children[1], a->children[1], low, n, err);
}

static weir_status put_children(ipc_body *b, const arrow_node *node,
                                const struct ArrowArray *a, int64_t start, int64_t length,
                                weir_error *err) {
  for (int64_t i = 0; i < node->n_children; i++)
    BASE_TRY(ipc_encode_array(b, &node->children[i], a->children[i], start, length, err));
  return WEIR_OK;
}

static weir_status put_whole_children(ipc_body *b, const arrow_node *node,
                                      const struct ArrowArray *a, weir_error *err) {
  for (int64_t i = 0; i < node->n_children; i++)
    BASE_TRY(ipc_encode_array(b, &node->children[i], a->children[i], 0,
                              a->children[i]->length, err));
  return WEIR_OK;
}

/* Slots [at, at + length) of a buffer whose elements have `width` bytes. */
static weir_status put_slots(ipc_body *b, const void *buffer, int64_t at, int64_t length,
                             int64_t width, weir_error *err) {
  if (length == 0) return put_piece(b, NULL, 0, err);
  return put_piece(b, (const uint8_t *)buffer + at * width, length * width, err);
}

static weir_status put_layout(ipc_body *b, const arrow_node *node,
                              const struct ArrowArray *a, int64_t at, int64_t length,
                              weir_error *err) {
  int64_t first = 0, count = 0;
  switch (node->layout) {
    case ARROW_NULL:
      return WEIR_OK;
    case ARROW_BITS:
      if (length == 0) return put_piece(b, NULL, 0, err);
      return put_bits(b, a->buffers[1], at, length, err);
    case ARROW_FIXED:
      return put_fixed(b, node, a, at, length, err);
    case ARROW_BYTES:
      BASE_TRY(put_offsets(b, node, a, at, length, &first, &count, err));
      return put_slots(b, a->buffers[2], first, count, 1, err);
    case ARROW_VIEWS:
      return put_views(b, a, at, length, err);
    case ARROW_LIST:
      BASE_TRY(put_offsets(b, node, a, at, length, &first, &count, err));
      return ipc_encode_array(b, &node->children[0], a->children[0], first, count, err);
    case ARROW_LIST_VIEW:
      BASE_TRY(put_slots(b, a->buffers[1], at, length, node->width, err));
      BASE_TRY(put_slots(b, a->buffers[2], at, length, node->width, err));
      return put_whole_children(b, node, a, err);
    case ARROW_FIXED_LIST:
      return put_children(b, node, a, at * node->width, length * node->width, err);
    case ARROW_STRUCT:
      return put_children(b, node, a, at, length, err);
    case ARROW_SPARSE_UNION:
      BASE_TRY(put_slots(b, a->buffers[0], at, length, 1, err));
      return put_children(b, node, a, at, length, err);
    case ARROW_DENSE_UNION:
      BASE_TRY(put_slots(b, a->buffers[0], at, length, 1, err));
      BASE_TRY(put_slots(b, a->buffers[1], at, length, 4, err));
      return put_whole_children(b, node, a, err);
    case ARROW_RUN_ENDS:
      return put_runs(b, node, a, at, length, err);
  }
  return WEIR_E_INTERNAL;
}

weir_status ipc_encode_array(ipc_body *b, const arrow_node *node,
                             const struct ArrowArray *a, int64_t start, int64_t length,
                             weir_error *err) {
  const int64_t at = a->offset + start;
  ipc_node field = {length, length == 0 ? 0 : count_nulls(node, a, at, length)};
  BASE_TRY(base_buf_append(&b->nodes, &field, sizeof field, err));
  if (arrow_node_has_validity(node) && field.null_count > 0)
    BASE_TRY(put_bits(b, a->buffers[0], at, length, err));
  else if (arrow_node_has_validity(node))
    BASE_TRY(put_piece(b, NULL, 0, err));
  return put_layout(b, node, a, at, length, err);
}

weir_status ipc_body_flatten(const ipc_body *body, base_buf *out, weir_error *err) {
  base_buf_clear(out);
  if (body->nodes.size > 0)
    BASE_TRY(base_buf_append(out, body->nodes.data, body->nodes.size, err));
  for (size_t i = 0; i < ipc_body_pieces(body); i++) {
    const ipc_piece *piece = ipc_body_piece(body, i);
    BASE_TRY(base_buf_append(out, &piece->size, sizeof piece->size, err));
    if (piece->size > 0)
      BASE_TRY(base_buf_append(out, piece->data, (size_t)piece->size, err));
  }
  return WEIR_OK;
}

/* Size of the frame written to `to`, or 0 when there was an error. */
static size_t compress_frame(ipc_codec codec, int level, const ipc_piece *piece, void *to,
                             size_t room) {
  size_t size = 0;
  if (codec == IPC_LZ4) {
    size = LZ4F_compressFrame(to, room, piece->data, (size_t)piece->size, NULL);
    return LZ4F_isError(size) ? 0 : size;
  }
  size =
      ZSTD_compress(to, room, piece->data, (size_t)piece->size, level == 0 ? 1 : level);
  return ZSTD_isError(size) ? 0 : size;
}

/* "Arrow Columnar Format", section "Compression": the size before compression, little-endian, before
 * each buffer, or -1 and the buffer as it was. */
weir_status ipc_body_compress(ipc_body *body, ipc_codec codec, int level,
                              weir_error *err) {
  for (size_t i = 0; i < ipc_body_pieces(body); i++) {
    ipc_piece *piece = (ipc_piece *)body->pieces.data + i;
    if (piece->size == 0) continue;
    size_t bound = codec == IPC_LZ4 ? LZ4F_compressFrameBound((size_t)piece->size, NULL)
                                    : ZSTD_compressBound((size_t)piece->size);
    uint8_t *block = base_realloc(NULL, 8 + bound, 1, err);
    if (block == NULL) return WEIR_E_NOMEM;
    size_t size = compress_frame(codec, level, piece, block + 8, bound);
    int64_t before = piece->size;
    if (size == 0 || (int64_t)size >= piece->size) {
      before = -1;
      size = (size_t)piece->size;
      memcpy(block + 8, piece->data, size);
    }
    memcpy(block, &before, 8);
    free(piece->owned);
    *piece = (ipc_piece){block, (int64_t)size + 8, block};
  }
  return WEIR_OK;
}
