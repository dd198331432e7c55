/* SPDX-License-Identifier: Apache-2.0 */
/* Two arrays as one, for dictionary deltas. Both come from the reader, so no array has an offset. */
#include <inttypes.h>
#include <string.h>

#include "arrow/ipc.h"

/* `length` slots of an array from `start` on. */
typedef struct part {
  const struct ArrowArray *array;
  int64_t start, length;
} part;

typedef struct concat {
  ipc_array *made;
  ipc_arena arena;
  weir_error *err;
} concat;

static part whole(const struct ArrowArray *array) {
  return (part){array, 0, array->length};
}

static part child_of(part p, int64_t i, int64_t start, int64_t length) {
  return (part){p.array->children[i], start, length};
}

static void copy_bits(uint8_t *to, int64_t at, const uint8_t *from, int64_t start,
                      int64_t n) {
  if (at % 8 == 0 && start % 8 == 0) {
    memcpy(to + at / 8, from + start / 8, (size_t)((n + 7) / 8));
    return;
  }
  for (int64_t i = 0; i < n; i++)
    ArrowBitSetTo(to, at + i, (uint8_t)ArrowBitGet(from, start + i));
}

/* A bitmap of both parts; a missing one is all set. The second part is written last, so bits that
 * copy_bits wrote past the first are overwritten. */
static weir_status join_bits(concat *c, const uint8_t *x, part a, const uint8_t *y,
                             part b, const void **out) {
  size_t bytes = (size_t)((a.length + b.length + 7) / 8);
  uint8_t *bits = ipc_array_alloc(c->made, bytes + 1, c->err);
  if (bits == NULL) return WEIR_E_NOMEM;
  memset(bits, 0xff, bytes + 1);
  if (x != NULL) copy_bits(bits, 0, x, a.start, a.length);
  if (y != NULL)
    copy_bits(bits, a.length, y, b.start, b.length);
  else
    ArrowBitsSetTo(bits, a.length, b.length, 1);
  *out = bits;
  return WEIR_OK;
}

static weir_status join_validity(concat *c, part a, part b, struct ArrowArray *out) {
  const uint8_t *x = a.array->buffers[0], *y = b.array->buffers[0];
  if (x == NULL && y == NULL) return WEIR_OK;
  BASE_TRY(join_bits(c, x, a, y, b, &out->buffers[0]));
  out->null_count = out->length - ArrowBitCountSet(out->buffers[0], 0, out->length);
  return WEIR_OK;
}

static weir_status join_values(concat *c, size_t width, const void *x, part a,
                               const void *y, part b, const void **out) {
  size_t first = (size_t)a.length * width, second = (size_t)b.length * width;
  uint8_t *values = ipc_array_alloc(c->made, first + second, c->err);
  if (values == NULL) return WEIR_E_NOMEM;
  memcpy(values, (const uint8_t *)x + (size_t)a.start * width, first);
  memcpy(values + first, (const uint8_t *)y + (size_t)b.start * width, second);
  *out = values;
  return WEIR_OK;
}

static weir_status too_large(const concat *c, const arrow_node *node) {
  char type[120];
  weir_type_format(node->schema, type, sizeof type);
  return weir_error_set(c->err, WEIR_E_NOT_IMPLEMENTED, 0,
                        "the dictionary's deltas come to more than a %s can hold", type);
}

static void put_offset(void *offsets, int32_t width, int64_t i, int64_t value) {
  if (width == 8)
    ((int64_t *)offsets)[i] = value;
  else
    ((int32_t *)offsets)[i] = (int32_t)value;
}

/* Where the slots of a part begin and end in its data or child; nothing of an empty array is read. */
static part range_of(const arrow_node *node, part p) {
  const void *offsets = p.array->buffers[1];
  if (p.length == 0) return (part){NULL, 0, 0};
  int64_t from = arrow_offset_at(offsets, node->width, p.start);
  return (part){NULL, from,
                arrow_offset_at(offsets, node->width, p.start + p.length) - from};
}

/* Offsets of both parts, from 0 on, for data that is the first's range and then the second's. */
static weir_status join_offsets(concat *c, const arrow_node *node, part a, part range_a,
                                part b, part range_b, const void **out) {
  int64_t total = range_a.length + range_b.length;
  if (node->width == 4 && total > INT32_MAX) return too_large(c, node);
  void *offsets = ipc_array_alloc(
      c->made, (size_t)(a.length + b.length + 1) * (size_t)node->width, c->err);
  if (offsets == NULL) return WEIR_E_NOMEM;
  for (int64_t i = 0; i < a.length; i++)
    put_offset(
        offsets, node->width, i,
        arrow_offset_at(a.array->buffers[1], node->width, a.start + i) - range_a.start);
  for (int64_t i = 0; i < b.length; i++)
    put_offset(offsets, node->width, a.length + i,
               arrow_offset_at(b.array->buffers[1], node->width, b.start + i) -
                   range_b.start + range_a.length);
  put_offset(offsets, node->width, a.length + b.length, total);
  *out = offsets;
  return WEIR_OK;
}

static weir_status join(concat *c, const arrow_node *node, part a, part b,
                        struct ArrowArray *out);

static weir_status join_bytes(concat *c, const arrow_node *node, part a, part b,
                              struct ArrowArray *out) {
  part x = range_of(node, a), y = range_of(node, b);
  BASE_TRY(join_offsets(c, node, a, x, b, y, &out->buffers[1]));
  return join_values(c, 1, a.array->buffers[2], x, b.array->buffers[2], y,
                     &out->buffers[2]);
}

/* The views' data stays where it is: the new array holds both old ones. */
static weir_status join_views(concat *c, part a, part b, struct ArrowArray *out) {
  const int64_t first = a.array->n_buffers - 3, second = b.array->n_buffers - 3;
  const void *views = NULL;
  BASE_TRY(join_values(c, 16, a.array->buffers[1], a, b.array->buffers[1], b, &views));
  union ArrowBinaryView *moved = (union ArrowBinaryView *)views;
  for (int64_t i = a.length; i < a.length + b.length; i++)
    if (moved[i].inlined.size > 12) moved[i].ref.buffer_index += (int32_t)first;
  out->buffers[1] = views;
  const int64_t *x = a.array->buffers[a.array->n_buffers - 1];
  const int64_t *y = b.array->buffers[b.array->n_buffers - 1];
  int64_t *sizes = c->arena.sizes;
  c->arena.sizes += first + second;
  for (int64_t i = 0; i < first; i++) {
    out->buffers[2 + i] = a.array->buffers[2 + i];
    sizes[i] = x[i];
  }
  for (int64_t i = 0; i < second; i++) {
    out->buffers[2 + first + i] = b.array->buffers[2 + i];
    sizes[first + i] = y[i];
  }
  out->buffers[2 + first + second] = sizes;
  return WEIR_OK;
}

static weir_status join_lists(concat *c, const arrow_node *node, part a, part b,
                              struct ArrowArray *out) {
  part x = range_of(node, a), y = range_of(node, b);
  BASE_TRY(join_offsets(c, node, a, x, b, y, &out->buffers[1]));
  return join(c, &node->children[0], child_of(a, 0, x.start, x.length),
              child_of(b, 0, y.start, y.length), out->children[0]);
}

static weir_status join_list_views(concat *c, const arrow_node *node, part a, part b,
                                   struct ArrowArray *out) {
  const size_t width = (size_t)node->width;
  const struct ArrowArray *x = a.array->children[0], *y = b.array->children[0];
  const void *offsets = NULL;
  if (node->width == 4 && x->length + y->length > INT32_MAX) return too_large(c, node);
  BASE_TRY(
      join_values(c, width, a.array->buffers[1], a, b.array->buffers[1], b, &offsets));
  for (int64_t i = a.length; i < a.length + b.length; i++)
    put_offset((void *)offsets, node->width, i,
               arrow_offset_at(offsets, node->width, i) + x->length);
  out->buffers[1] = offsets;
  BASE_TRY(join_values(c, width, a.array->buffers[2], a, b.array->buffers[2], b,
                       &out->buffers[2]));
  return join(c, &node->children[0], whole(x), whole(y), out->children[0]);
}

static weir_status join_dense(concat *c, const arrow_node *node, part a, part b,
                              struct ArrowArray *out) {
  const void *offsets = NULL;
  BASE_TRY(join_values(c, 1, a.array->buffers[0], a, b.array->buffers[0], b,
                       &out->buffers[0]));
  BASE_TRY(join_values(c, 4, a.array->buffers[1], a, b.array->buffers[1], b, &offsets));
  const int8_t *types = out->buffers[0];
  for (int64_t i = a.length; i < a.length + b.length; i++) {
    int64_t shift = a.array->children[node->child_of_type[types[i]]]->length;
    int64_t moved = shift + ((const int32_t *)offsets)[i];
    if (moved > INT32_MAX) return too_large(c, node);
    ((int32_t *)offsets)[i] = (int32_t)moved;
  }
  out->buffers[1] = offsets;
  for (int64_t i = 0; i < node->n_children; i++)
    BASE_TRY(join(c, &node->children[i], whole(a.array->children[i]),
                  whole(b.array->children[i]), out->children[i]));
  return WEIR_OK;
}

/* Children that run along with their parent, `times` slots to one. */
static weir_status join_children(concat *c, const arrow_node *node, part a, part b,
                                 int64_t times, struct ArrowArray *out) {
  for (int64_t i = 0; i < node->n_children; i++)
    BASE_TRY(join(c, &node->children[i],
                  child_of(a, i, a.start * times, a.length * times),
                  child_of(b, i, b.start * times, b.length * times), out->children[i]));
  return WEIR_OK;
}

static weir_status join_layout(concat *c, const arrow_node *node, part a, part b,
                               struct ArrowArray *out) {
  switch (node->layout) {
    case ARROW_NULL:
      out->null_count = out->length;
      return WEIR_OK;
    case ARROW_BITS:
      return join_bits(c, a.array->buffers[1], a, b.array->buffers[1], b,
                       &out->buffers[1]);
    case ARROW_FIXED:
      return join_values(c, (size_t)node->width, a.array->buffers[1], a,
                         b.array->buffers[1], b, &out->buffers[1]);
    case ARROW_BYTES:
      return join_bytes(c, node, a, b, out);
    case ARROW_VIEWS:
      return join_views(c, a, b, out);
    case ARROW_LIST:
      return join_lists(c, node, a, b, out);
    case ARROW_LIST_VIEW:
      return join_list_views(c, node, a, b, out);
    case ARROW_FIXED_LIST:
      return join_children(c, node, a, b, node->width, out);
    case ARROW_STRUCT:
      return join_children(c, node, a, b, 1, out);
    case ARROW_SPARSE_UNION:
      BASE_TRY(join_values(c, 1, a.array->buffers[0], a, b.array->buffers[0], b,
                           &out->buffers[0]));
      return join_children(c, node, a, b, 1, out);
    case ARROW_DENSE_UNION:
      return join_dense(c, node, a, b, out);
    case ARROW_RUN_ENDS:
      break;
  }
  return weir_error_set(c->err, WEIR_E_NOT_IMPLEMENTED, 0,
                        "deltas of a dictionary with run-end encoded values");
}

static weir_status join(concat *c, const arrow_node *node, part a, part b,
                        struct ArrowArray *out) {
  int64_t buffers = arrow_node_buffers(node);
  if (buffers < 0) buffers = a.array->n_buffers + b.array->n_buffers - 3;
  ipc_arena_shape(&c->arena, node, (size_t)buffers, out);
  out->length = a.length + b.length;
  if (arrow_node_has_validity(node)) BASE_TRY(join_validity(c, a, b, out));
  return join_layout(c, node, a, b, out);
}

static size_t count_variadic(const arrow_node *node, const struct ArrowArray *array) {
  size_t n = node->layout == ARROW_VIEWS ? (size_t)array->n_buffers - 3 : 0;
  for (int64_t i = 0; i < node->n_children; i++)
    n += count_variadic(&node->children[i], array->children[i]);
  return n;
}

/* A joined array's views point into what it was joined from, never into itself: holding those alone
 * keeps the chain of references flat. */
static weir_status use_leaves(ipc_array *made, ipc_array *from, weir_error *err) {
  if (!from->joined) return ipc_array_use(made, from, err);
  for (size_t i = 0; i < from->n_uses; i++)
    BASE_TRY(ipc_array_use(made, from->uses[i], err));
  return WEIR_OK;
}

weir_status ipc_array_concat(const arrow_node *node, ipc_array *first, ipc_array *second,
                             ipc_array **out, weir_error *err) {
  concat c = {.err = err};
  weir_status status = WEIR_OK;
  size_t variadic =
      count_variadic(node, &first->root) + count_variadic(node, &second->root);
  c.made = ipc_array_new(err);
  if (c.made == NULL) return WEIR_E_NOMEM;
  BASE_GOTO(status, ipc_arena_init(&c.arena, c.made, node, false, variadic, err));
  c.made->joined = true;
  if (variadic > 0) {
    BASE_GOTO(status, use_leaves(c.made, first, err));
    BASE_GOTO(status, use_leaves(c.made, second, err));
  }
  status = join(&c, node, whole(&first->root), whole(&second->root), &c.made->root);
out:
  if (status == WEIR_OK)
    *out = c.made;
  else
    ipc_array_unref(c.made);
  return status;
}
