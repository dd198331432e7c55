/* SPDX-License-Identifier: Apache-2.0 */
/* Chosen rows of a batch as a new one. What rows only point to is not copied but shared with the old batch:
 * dictionaries, the data of views, the items of list views. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "arrow/ipc.h"

/* Slots of an array, counted from `shift` + array->offset. */
typedef struct slots {
  const int64_t *at;
  int64_t n, shift;
} slots;

typedef struct taker {
  ipc_array *made;
  ipc_arena arena;
  weir_error *err;
} taker;

static weir_status take(taker *t, const arrow_node *node, const struct ArrowArray *from,
                        slots rows, struct ArrowArray *out);

static void *take_room(taker *t, int64_t n, size_t width) {
  return ipc_array_alloc(t->made, (size_t)n * width, t->err);
}

static weir_status take_bits(taker *t, const uint8_t *from, slots rows, int64_t *set,
                             const void **out) {
  uint8_t *bits = take_room(t, rows.n / 8 + 1, 1);
  if (bits == NULL) return WEIR_E_NOMEM;
  memset(bits, 0, (size_t)(rows.n / 8 + 1));
  int64_t ones = 0;
  for (int64_t i = 0; i < rows.n; i++) {
    int64_t at = rows.shift + rows.at[i];
    unsigned bit = from[at >> 3] >> (at & 7) & 1;
    bits[i >> 3] |= (uint8_t)(bit << (i & 7));
    ones += bit;
  }
  if (set != NULL) *set = ones;
  *out = bits;
  return WEIR_OK;
}

#define TAKE_WIDTH(type)                                                          \
  do {                                                                            \
    const type *values = from;                                                    \
    type *to = made;                                                              \
    for (int64_t i = 0; i < rows.n; i++) to[i] = values[rows.shift + rows.at[i]]; \
  } while (0)

static weir_status take_values(taker *t, const void *from, size_t width, slots rows,
                               const void **out) {
  void *made = take_room(t, rows.n, width);
  if (made == NULL) return WEIR_E_NOMEM;
  if (width == 1) {
    TAKE_WIDTH(uint8_t);
  } else if (width == 2) {
    TAKE_WIDTH(uint16_t);
  } else if (width == 4) {
    TAKE_WIDTH(uint32_t);
  } else if (width == 8) {
    TAKE_WIDTH(uint64_t);
  } else {
    for (int64_t i = 0; i < rows.n; i++)
      memcpy((uint8_t *)made + (size_t)i * width,
             (const uint8_t *)from + (size_t)(rows.shift + rows.at[i]) * width, width);
  }
  *out = made;
  return WEIR_OK;
}

/* Offsets of what the slots hold, from 0 on; *size is the last. No row is taken twice, so they fit. */
static weir_status take_offsets(taker *t, const arrow_node *node, const void *from,
                                slots rows, int64_t *size, const void **out) {
  void *made = take_room(t, rows.n + 1, (size_t)node->width);
  if (made == NULL) return WEIR_E_NOMEM;
  int64_t end = 0;
  for (int64_t i = 0; i <= rows.n; i++) {
    if (node->width == 8)
      ((int64_t *)made)[i] = end;
    else
      ((int32_t *)made)[i] = (int32_t)end;
    if (i == rows.n) break;
    int64_t at = rows.shift + rows.at[i];
    end += arrow_offset_at(from, node->width, at + 1) -
           arrow_offset_at(from, node->width, at);
  }
  *size = end;
  *out = made;
  return WEIR_OK;
}

static weir_status take_bytes(taker *t, const arrow_node *node,
                              const struct ArrowArray *from, slots rows,
                              struct ArrowArray *out) {
  int64_t size = 0;
  const void *offsets = from->buffers[1];
  BASE_TRY(take_offsets(t, node, offsets, rows, &size, &out->buffers[1]));
  uint8_t *to = take_room(t, size, 1);
  if (to == NULL) return WEIR_E_NOMEM;
  out->buffers[2] = to;
  for (int64_t i = 0; i < rows.n; i++) {
    int64_t at = rows.shift + rows.at[i];
    int64_t start = arrow_offset_at(offsets, node->width, at);
    size_t length = (size_t)(arrow_offset_at(offsets, node->width, at + 1) - start);
    if (length != 0) memcpy(to, (const uint8_t *)from->buffers[2] + start, length);
    to += length;
  }
  return WEIR_OK;
}

static weir_status take_views(taker *t, const struct ArrowArray *from, slots rows,
                              struct ArrowArray *out) {
  for (int64_t i = 2; i < from->n_buffers; i++) out->buffers[i] = from->buffers[i];
  return take_values(t, from->buffers[1], 16, rows, &out->buffers[1]);
}

static weir_status take_list(taker *t, const arrow_node *node,
                             const struct ArrowArray *from, slots rows,
                             struct ArrowArray *out) {
  const void *offsets = from->buffers[1];
  int64_t n = 0;
  BASE_TRY(take_offsets(t, node, offsets, rows, &n, &out->buffers[1]));
  int64_t *items = base_calloc((size_t)n + 1, sizeof *items, t->err);
  if (items == NULL) return WEIR_E_NOMEM;
  n = 0;
  for (int64_t i = 0; i < rows.n; i++) {
    int64_t at = rows.shift + rows.at[i];
    int64_t end = arrow_offset_at(offsets, node->width, at + 1);
    for (int64_t k = arrow_offset_at(offsets, node->width, at); k < end; k++)
      items[n++] = k;
  }
  weir_status status = take(t, &node->children[0], from->children[0],
                            (slots){items, n, 0}, out->children[0]);
  free(items);
  return status;
}

static weir_status take_fixed_list(taker *t, const arrow_node *node,
                                   const struct ArrowArray *from, slots rows,
                                   struct ArrowArray *out) {
  int64_t *items = base_calloc((size_t)(rows.n * node->width) + 1, sizeof *items, t->err);
  if (items == NULL) return WEIR_E_NOMEM;
  for (int64_t i = 0; i < rows.n; i++)
    for (int64_t k = 0; k < node->width; k++)
      items[i * node->width + k] = (rows.shift + rows.at[i]) * node->width + k;
  weir_status status = take(t, &node->children[0], from->children[0],
                            (slots){items, rows.n * node->width, 0}, out->children[0]);
  free(items);
  return status;
}

static weir_status take_children(taker *t, const arrow_node *node,
                                 const struct ArrowArray *from, slots rows,
                                 struct ArrowArray *out) {
  for (int64_t i = 0; i < node->n_children; i++)
    BASE_TRY(take(t, &node->children[i], from->children[i], rows, out->children[i]));
  return WEIR_OK;
}

/* The offsets into each child must rise ("Dense Union"), so the children are taken along. */
static weir_status take_dense(taker *t, const arrow_node *node,
                              const struct ArrowArray *from, slots rows,
                              struct ArrowArray *out) {
  BASE_TRY(take_values(t, from->buffers[0], 1, rows, &out->buffers[0]));
  const int8_t *types = out->buffers[0];
  int32_t *offsets = take_room(t, rows.n, sizeof *offsets);
  int64_t *items = base_calloc((size_t)rows.n + 1, sizeof *items, t->err);
  weir_status status = offsets == NULL || items == NULL ? WEIR_E_NOMEM : WEIR_OK;
  for (int64_t c = 0; !status && c < node->n_children; c++) {
    int64_t n = 0;
    for (int64_t i = 0; i < rows.n; i++) {
      if (node->child_of_type[types[i]] != c) continue;
      items[n] = ((const int32_t *)from->buffers[1])[rows.shift + rows.at[i]];
      offsets[i] = (int32_t)n++;
    }
    status = take(t, &node->children[c], from->children[c], (slots){items, n, 0},
                  out->children[c]);
  }
  out->buffers[1] = offsets;
  free(items);
  return status;
}

/* The run that a slot lies in: the first that ends behind it. */
static int64_t run_of(const struct ArrowArray *ends, int32_t width, int64_t slot) {
  int64_t low = 0, high = ends->length - 1;
  while (low < high) {
    int64_t middle = low + (high - low) / 2, at = ends->offset + middle;
    int64_t end = width == 2 ? ((const int16_t *)ends->buffers[1])[at]
                             : arrow_offset_at(ends->buffers[1], width, at);
    if (end > slot)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

/* A run to each slot: neighbours are seldom of one run once rows are chosen. */
static weir_status take_runs(taker *t, const arrow_node *node,
                             const struct ArrowArray *from, slots rows,
                             struct ArrowArray *out) {
  const arrow_node *ends = &node->children[0];
  int64_t *runs = base_calloc((size_t)rows.n + 1, sizeof *runs, t->err);
  uint8_t *made = take_room(t, rows.n, (size_t)ends->width);
  weir_status status = runs == NULL || made == NULL ? WEIR_E_NOMEM : WEIR_OK;
  for (int64_t i = 0; !status && i < rows.n; i++) {
    runs[i] = run_of(from->children[0], ends->width, rows.shift + rows.at[i]);
    int64_t end = i + 1; /* its low bytes: Arrow's buffers are little-endian here */
    memcpy(made + i * ends->width, &end, (size_t)ends->width);
  }
  if (!status) {
    ipc_arena_shape(&t->arena, ends, 2, out->children[0]);
    out->children[0]->length = rows.n;
    out->children[0]->buffers[1] = made;
    status = take(t, &node->children[1], from->children[1], (slots){runs, rows.n, 0},
                  out->children[1]);
  }
  free(runs);
  return status;
}

static weir_status take_layout(taker *t, const arrow_node *node,
                               const struct ArrowArray *from, slots rows,
                               struct ArrowArray *out) {
  switch (node->layout) {
    case ARROW_NULL:
      out->null_count = rows.n;
      return WEIR_OK;
    case ARROW_BITS:
      return take_bits(t, from->buffers[1], rows, NULL, &out->buffers[1]);
    case ARROW_FIXED:
      return take_values(t, from->buffers[1], (size_t)node->width, rows,
                         &out->buffers[1]);
    case ARROW_BYTES:
      return take_bytes(t, node, from, rows, out);
    case ARROW_VIEWS:
      return take_views(t, from, rows, out);
    case ARROW_LIST:
      return take_list(t, node, from, rows, out);
    case ARROW_LIST_VIEW:
      *out->children[0] = *from->children[0];
      out->children[0]->release = ipc_release_noop;
      BASE_TRY(
          take_values(t, from->buffers[1], (size_t)node->width, rows, &out->buffers[1]));
      return take_values(t, from->buffers[2], (size_t)node->width, rows,
                         &out->buffers[2]);
    case ARROW_FIXED_LIST:
      return take_fixed_list(t, node, from, rows, out);
    case ARROW_STRUCT:
      return take_children(t, node, from, rows, out);
    case ARROW_SPARSE_UNION:
      BASE_TRY(take_values(t, from->buffers[0], 1, rows, &out->buffers[0]));
      return take_children(t, node, from, rows, out);
    case ARROW_DENSE_UNION:
      return take_dense(t, node, from, rows, out);
    case ARROW_RUN_ENDS:
      return take_runs(t, node, from, rows, out);
  }
  return weir_error_set(t->err, WEIR_E_INTERNAL, 0, "batch: a layout without a name");
}

static weir_status take(taker *t, const arrow_node *node, const struct ArrowArray *from,
                        slots rows, struct ArrowArray *out) {
  ipc_arena_shape(&t->arena, node, (size_t)from->n_buffers, out);
  out->length = rows.n;
  rows.shift += from->offset;
  if (arrow_node_has_validity(node) && from->null_count != 0 &&
      from->buffers[0] != NULL) {
    int64_t set = 0;
    BASE_TRY(take_bits(t, from->buffers[0], rows, &set, &out->buffers[0]));
    out->null_count = rows.n - set;
    if (out->null_count == 0) out->buffers[0] = NULL;
  }
  if (node->dictionary != NULL) out->dictionary = from->dictionary;
  return take_layout(t, node, from, rows, out);
}

static size_t count_data(const arrow_node *node, const struct ArrowArray *array) {
  size_t n = node->layout == ARROW_VIEWS ? (size_t)array->n_buffers - 3 : 0;
  for (int64_t i = 0; i < node->n_children; i++)
    n += count_data(&node->children[i], array->children[i]);
  return n;
}

typedef struct taken {
  ipc_array *made;
  weir_batch *from;
} taken;

static void taken_release(struct ArrowArray *array) {
  taken *both = array->private_data;
  ipc_array_unref(both->made);
  weir_batch_unref(both->from);
  free(both);
  array->release = NULL;
}

weir_status weir_batch_take(weir_batch *batch, const int64_t *rows, int64_t n,
                            weir_batch **out, weir_error *err) {
  const arrow_node *root = arrow_schema_root(weir_batch_schema(batch));
  const struct ArrowArray *from = weir_batch_array(batch);
  if (n < 0 || n > from->length)
    return weir_error_set(err, WEIR_E_INVALID_STATE, 0,
                          "batch: %" PRId64 " rows to take of %" PRId64, n, from->length);
  for (int64_t i = 0; i < n; i++)
    if (rows[i] < 0 || rows[i] >= from->length)
      return weir_error_set(err, WEIR_E_INVALID_STATE, 0,
                            "batch: row %" PRId64 " to take of %" PRId64, rows[i],
                            from->length);
  taker t = {.made = ipc_array_new(err), .err = err};
  taken *both = base_calloc(1, sizeof *both, err);
  weir_status status = t.made == NULL || both == NULL ? WEIR_E_NOMEM : WEIR_OK;
  if (!status)
    status = ipc_arena_init(&t.arena, t.made, root, false, count_data(root, from), err);
  if (!status) status = take(&t, root, from, (slots){rows, n, 0}, &t.made->root);
  if (!status) {
    *both = (taken){t.made, weir_batch_ref(batch)};
    struct ArrowArray array = t.made->root;
    array.private_data = both;
    array.release = taken_release;
    status = arrow_batch_wrap(weir_batch_schema(batch), &array, out, err);
    if (status) array.release(&array);
    return status;
  }
  ipc_array_unref(t.made);
  free(both);
  return status;
}
