/* SPDX-License-Identifier: Apache-2.0 */
/* Whether an array has the buffers, offsets and children that its schema says, so that
 * whoever reads it later needs no check of his own. Sizes of buffers cannot be seen
 * through the C data interface: that they hold offset + length slots is the producer's
 * word (and the IPC reader's own check). */
#include <inttypes.h>
#include <string.h>

#include "arrow/arrow.h"

typedef struct array_view {
  const arrow_node *node;
  const struct ArrowArray *array;
  const arrow_path *path;
  weir_error *err;
  int64_t end;  /* offset + length */
  unsigned how; /* ARROW_CHECK_* */
} array_view;

static bool slot_valid(const uint8_t *validity, int64_t i) {
  return validity == NULL || ((validity[i >> 3] >> (i & 7)) & 1);
}

static weir_status wrong(const array_view *v, const char *what, int64_t at) {
  return arrow_path_error(v->err, v->path, WEIR_E_CORRUPT, "%s at slot %" PRId64, what,
                          at);
}

static weir_status missing(const array_view *v, const char *which) {
  return arrow_path_error(v->err, v->path, WEIR_E_SCHEMA,
                          "the buffer of %s is missing in an array of %" PRId64 " slots",
                          which, v->array->length);
}

/* Counts and pointers, which every later check leans on. */
static weir_status check_shape(const array_view *v) {
  const struct ArrowArray *a = v->array;
  int64_t buffers = arrow_node_buffers(v->node);
  if (a->length < 0 || a->offset < 0 || a->length > INT64_MAX / 64 - a->offset)
    return arrow_path_error(v->err, v->path, WEIR_E_SCHEMA,
                            "length %" PRId64 " and offset %" PRId64 " make no sense",
                            a->length, a->offset);
  if (a->null_count < -1 || a->null_count > a->length)
    return arrow_path_error(v->err, v->path, WEIR_E_SCHEMA,
                            "null count %" PRId64 " of %" PRId64 " slots", a->null_count,
                            a->length);
  if (buffers < 0 ? a->n_buffers < 3 || a->n_buffers > INT32_MAX
                  : a->n_buffers != buffers)
    return arrow_path_error(
        v->err, v->path, WEIR_E_SCHEMA, "expected %s%" PRId64 " buffers, got %" PRId64,
        buffers < 0 ? "at least " : "", buffers < 0 ? 3 : buffers, a->n_buffers);
  if (a->n_children != v->node->n_children)
    return arrow_path_error(v->err, v->path, WEIR_E_SCHEMA,
                            "expected %" PRId64 " children, got %" PRId64,
                            v->node->n_children, a->n_children);
  if ((v->how & ARROW_CHECK_DICTIONARIES) &&
      (a->dictionary == NULL) != (v->node->dictionary == NULL))
    return arrow_path_error(v->err, v->path, WEIR_E_SCHEMA, "%s a dictionary",
                            a->dictionary == NULL ? "lacks" : "does not expect");
  if ((a->n_buffers > 0 && a->buffers == NULL) ||
      (a->n_children > 0 && a->children == NULL))
    return arrow_path_error(v->err, v->path, WEIR_E_SCHEMA,
                            "the pointer to its buffers or children is NULL");
  for (int64_t i = 0; i < a->n_children; i++)
    if (a->children[i] == NULL || a->children[i]->release == NULL)
      return arrow_path_error(v->err, v->path, WEIR_E_SCHEMA,
                              "child %" PRId64 " is missing or was released", i);
  if ((v->how & ARROW_CHECK_DICTIONARIES) && a->dictionary != NULL &&
      a->dictionary->release == NULL)
    return arrow_path_error(v->err, v->path, WEIR_E_SCHEMA,
                            "the dictionary was released");
  return WEIR_OK;
}

static weir_status check_validity(const array_view *v) {
  const struct ArrowArray *a = v->array;
  if (v->node->layout == ARROW_NULL) return WEIR_OK;
  if (!arrow_node_has_validity(v->node)) {
    if (a->null_count > 0)
      return arrow_path_error(v->err, v->path, WEIR_E_SCHEMA,
                              "null count %" PRId64 " in a type without validity",
                              a->null_count);
    return WEIR_OK;
  }
  if (a->buffers[0] == NULL)
    return a->null_count > 0 ? missing(v, "the validity") : WEIR_OK;
  if (a->null_count < 0 || a->length == 0) return WEIR_OK;
  int64_t nulls = a->length - ArrowBitCountSet(a->buffers[0], a->offset, a->length);
  if (nulls != a->null_count)
    return arrow_path_error(v->err, v->path, WEIR_E_CORRUPT,
                            "null count %" PRId64 ", but the validity has %" PRId64,
                            a->null_count, nulls);
  return WEIR_OK;
}

/* No branch in the loops: compilers make vectors of them. */
static bool ascending32(const int32_t *o, int64_t n) {
  int32_t bad = 0;
  for (int64_t i = 0; i < n; i++) bad |= o[i + 1] < o[i];
  return !bad;
}

static bool ascending64(const int64_t *o, int64_t n) {
  int64_t bad = 0;
  for (int64_t i = 0; i < n; i++) bad |= o[i + 1] < o[i];
  return !bad;
}

/* Offsets from the first slot on: not negative, never falling, the last at most `limit`.
 */
static weir_status check_offsets(const array_view *v, int64_t limit) {
  const void *offsets = v->array->buffers[1];
  int32_t width = v->node->width;
  int64_t first = v->array->offset, n = v->array->length;
  if (n == 0) return WEIR_OK;
  if (offsets == NULL) return missing(v, "the offsets");
  if (arrow_offset_at(offsets, width, first) < 0) return wrong(v, "negative offset", 0);
  bool ok = width == 8 ? ascending64((const int64_t *)offsets + first, n)
                       : ascending32((const int32_t *)offsets + first, n);
  for (int64_t i = 0; !ok && i < n; i++)
    if (arrow_offset_at(offsets, width, first + i + 1) <
        arrow_offset_at(offsets, width, first + i))
      return wrong(v, "falling offset", i);
  int64_t last = arrow_offset_at(offsets, width, first + n);
  if (last > limit)
    return arrow_path_error(
        v->err, v->path, WEIR_E_CORRUPT,
        "the last offset %" PRId64 " is past the child's %" PRId64 " slots", last, limit);
  return WEIR_OK;
}

/* The ends of a top-level column's offsets, which is all that its size in bytes is told from. */
static weir_status check_ends(const array_view *v) {
  const void *offsets = v->array->buffers[1];
  if (v->array->length == 0) return WEIR_OK;
  if (offsets == NULL) return missing(v, "the offsets");
  int64_t first = arrow_offset_at(offsets, v->node->width, v->array->offset);
  if (first < 0) return wrong(v, "negative offset", 0);
  if (arrow_offset_at(offsets, v->node->width, v->end) < first)
    return wrong(v, "falling offset", v->array->length - 1);
  return WEIR_OK;
}

static weir_status check_bytes(const array_view *v) {
  bool top = v->path != NULL && v->path->up == NULL;
  bool later = top && (v->how & ARROW_CHECK_OFFSETS_LATER);
  weir_status status = later ? check_ends(v) : check_offsets(v, INT64_MAX);
  if (status != WEIR_OK || v->array->length == 0) return status;
  const void *offsets = v->array->buffers[1];
  if (v->array->buffers[2] == NULL &&
      arrow_offset_at(offsets, v->node->width, v->end) !=
          arrow_offset_at(offsets, v->node->width, v->array->offset))
    return missing(v, "the data");
  return WEIR_OK;
}

/* "Variable-size Binary View Layout": up to 12 bytes inline, else prefix, buffer index,
 * offset. */
static weir_status check_views(const array_view *v) {
  const struct ArrowArray *a = v->array;
  const int64_t variadic = a->n_buffers - 3;
  const int64_t *sizes = a->buffers[a->n_buffers - 1];
  if (variadic > 0 && sizes == NULL) return missing(v, "the sizes of data buffers");
  for (int64_t i = 0; i < variadic; i++) {
    if (sizes[i] < 0) return wrong(v, "negative size of data buffer", i);
    if (sizes[i] > 0 && a->buffers[2 + i] == NULL) return missing(v, "the data");
  }
  const union ArrowBinaryView *views = a->buffers[1];
  if (views == NULL) return a->length == 0 ? WEIR_OK : missing(v, "the views");
  for (int64_t i = a->offset; i < v->end; i++) {
    if (!slot_valid(a->buffers[0], i)) continue;
    int32_t size = views[i].inlined.size;
    if (size < 0) return wrong(v, "view of negative size", i - a->offset);
    if (size <= 12) continue;
    int32_t buffer = views[i].ref.buffer_index, offset = views[i].ref.offset;
    if (buffer < 0 || buffer >= variadic || offset < 0 ||
        (int64_t)offset + size > sizes[buffer])
      return wrong(v, "view past its data buffer", i - a->offset);
  }
  return WEIR_OK;
}

static weir_status check_list_views(const array_view *v) {
  const struct ArrowArray *a = v->array;
  const void *offsets = a->buffers[1], *sizes = a->buffers[2];
  int64_t limit = a->children[0]->length;
  if (a->length == 0) return WEIR_OK;
  if (offsets == NULL || sizes == NULL) return missing(v, "the offsets or sizes");
  for (int64_t i = a->offset; i < v->end; i++) {
    int64_t at = arrow_offset_at(offsets, v->node->width, i);
    int64_t size = arrow_offset_at(sizes, v->node->width, i);
    if (at < 0 || size < 0 || at > limit || size > limit - at)
      return wrong(v, "list past its child", i - a->offset);
  }
  return WEIR_OK;
}

static weir_status check_fixed_list(const array_view *v) {
  int64_t slots = v->array->children[0]->length, need = 0;
  if (__builtin_mul_overflow(v->end, (int64_t)v->node->width, &need) || need > slots)
    return arrow_path_error(v->err, v->path, WEIR_E_CORRUPT,
                            "the child has %" PRId64 " slots, not %" PRId64 " times %d",
                            slots, v->end, (int)v->node->width);
  return WEIR_OK;
}

static weir_status check_children_cover(const array_view *v) {
  for (int64_t i = 0; i < v->array->n_children; i++)
    if (v->array->children[i]->length < v->end)
      return arrow_path_error(v->err, v->path, WEIR_E_CORRUPT,
                              "child %" PRId64 " has %" PRId64
                              " slots, expected %" PRId64,
                              i, v->array->children[i]->length, v->end);
  return WEIR_OK;
}

static weir_status check_union(const array_view *v) {
  const struct ArrowArray *a = v->array;
  const int8_t *types = a->buffers[0];
  const int32_t *offsets = v->node->layout == ARROW_DENSE_UNION ? a->buffers[1] : NULL;
  if (a->length == 0) return WEIR_OK;
  if (types == NULL) return missing(v, "the type ids");
  if (v->node->layout == ARROW_DENSE_UNION && offsets == NULL)
    return missing(v, "the offsets");
  for (int64_t i = a->offset; i < v->end; i++) {
    int child = types[i] < 0 ? -1 : v->node->child_of_type[types[i]];
    if (child < 0) return wrong(v, "unknown union type id", i - a->offset);
    if (offsets != NULL && (offsets[i] < 0 || offsets[i] >= a->children[child]->length))
      return wrong(v, "union offset past its child", i - a->offset);
  }
  return offsets != NULL ? WEIR_OK : check_children_cover(v);
}

static int64_t run_end_at(const struct ArrowArray *ends, int32_t width, int64_t i) {
  i += ends->offset;
  if (width == 2) return ((const int16_t *)ends->buffers[1])[i];
  return arrow_offset_at(ends->buffers[1], width, i);
}

/* "Run-End Encoded Layout": run ends without nulls, rising, covering offset + length; a
 * value each. */
static weir_status check_runs(const array_view *v) {
  const struct ArrowArray *ends = v->array->children[0];
  int64_t before = 0;
  if (ends->null_count > 0 ||
      (ends->null_count < 0 && ends->buffers[0] != NULL &&
       ArrowBitCountSet(ends->buffers[0], ends->offset, ends->length) != ends->length))
    return arrow_path_error(v->err, v->path, WEIR_E_CORRUPT, "run ends have nulls");
  for (int64_t i = 0; i < ends->length; i++) {
    int64_t end = run_end_at(ends, v->node->width, i);
    if (end <= before) return wrong(v, "run end that does not rise", i);
    before = end;
  }
  if (v->array->length > 0 && before < v->end)
    return arrow_path_error(v->err, v->path, WEIR_E_CORRUPT,
                            "the runs end at %" PRId64 ", before slot %" PRId64, before,
                            v->end);
  if (v->array->children[1]->length < ends->length)
    return arrow_path_error(v->err, v->path, WEIR_E_CORRUPT,
                            "%" PRId64 " runs but %" PRId64 " values", ends->length,
                            v->array->children[1]->length);
  return WEIR_OK;
}

static weir_status check_layout(const array_view *v) {
  switch (v->node->layout) {
    case ARROW_NULL:
      return WEIR_OK;
    case ARROW_BITS:
    case ARROW_FIXED:
      if (v->array->buffers[1] == NULL && v->end > 0) return missing(v, "the values");
      return WEIR_OK;
    case ARROW_BYTES:
      return check_bytes(v);
    case ARROW_VIEWS:
      return check_views(v);
    case ARROW_LIST:
      return check_offsets(v, v->array->children[0]->length);
    case ARROW_LIST_VIEW:
      return check_list_views(v);
    case ARROW_FIXED_LIST:
      return check_fixed_list(v);
    case ARROW_STRUCT:
      return check_children_cover(v);
    case ARROW_SPARSE_UNION:
    case ARROW_DENSE_UNION:
      return check_union(v);
    case ARROW_RUN_ENDS:
      return check_runs(v);
  }
  return WEIR_OK;
}

static const char *child_word(const arrow_node *parent, const arrow_path *path) {
  if (path == NULL) return "column";
  return parent->layout == ARROW_STRUCT ? "field" : "child";
}

weir_status arrow_array_check(const arrow_node *node, const struct ArrowArray *array,
                              unsigned how, const arrow_path *path, weir_error *err) {
  array_view v = {.node = node, .array = array, .path = path, .err = err, .how = how};
  weir_status status = check_shape(&v);
  if (status != WEIR_OK) return status;
  v.end = array->offset + array->length;
  status = check_validity(&v);
  /* Children before their parent, whose check may read them (run ends). */
  for (int64_t i = 0; i < array->n_children && status == WEIR_OK; i++) {
    const char *name = node->children[i].schema->name;
    arrow_path here = {path, child_word(node, path), i, name == NULL ? "" : name};
    status = arrow_array_check(&node->children[i], array->children[i], how, &here, err);
  }
  if (status == WEIR_OK) status = check_layout(&v);
  if (status != WEIR_OK || node->dictionary == NULL || !(how & ARROW_CHECK_DICTIONARIES))
    return status;
  arrow_path here = {path, "dictionary", 0, NULL};
  return arrow_array_check(node->dictionary, array->dictionary, how, &here, err);
}

#define FIRST_BAD_INDEX(type)                                                            \
  do {                                                                                   \
    const type *index = a->buffers[1];                                                   \
    bool bad = false;                                                                    \
    for (int64_t i = a->offset; i < end; i++)                                            \
      bad |= (index[i] < 0) | ((uint64_t)index[i] >= slots);                             \
    for (int64_t i = a->offset; bad && i < end; i++)                                     \
      if ((index[i] < 0 || (uint64_t)index[i] >= slots) && slot_valid(a->buffers[0], i)) \
        return i - a->offset;                                                            \
  } while (0)

/* Position of the first valid slot whose index is outside the dictionary, or -1. Slots
 * that are null may hold anything. */
static int64_t first_bad_index(const arrow_node *node, const struct ArrowArray *a) {
  const uint64_t slots = (uint64_t)a->dictionary->length;
  const int64_t end = a->offset + a->length;
  switch (node->storage) {
    case NANOARROW_TYPE_INT8:
      FIRST_BAD_INDEX(int8_t);
      break;
    case NANOARROW_TYPE_INT16:
      FIRST_BAD_INDEX(int16_t);
      break;
    case NANOARROW_TYPE_INT32:
      FIRST_BAD_INDEX(int32_t);
      break;
    case NANOARROW_TYPE_INT64:
      FIRST_BAD_INDEX(int64_t);
      break;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wtype-limits"
    case NANOARROW_TYPE_UINT8:
      FIRST_BAD_INDEX(uint8_t);
      break;
    case NANOARROW_TYPE_UINT16:
      FIRST_BAD_INDEX(uint16_t);
      break;
    case NANOARROW_TYPE_UINT32:
      FIRST_BAD_INDEX(uint32_t);
      break;
    default:
      FIRST_BAD_INDEX(uint64_t);
      break;
#pragma GCC diagnostic pop
  }
  return -1;
}

weir_status arrow_indices_check(const arrow_node *node, const struct ArrowArray *array,
                                const arrow_path *path, weir_error *err) {
  weir_status status = WEIR_OK;
  if (node->dictionary != NULL && array->length > 0) {
    int64_t at = first_bad_index(node, array);
    if (at >= 0)
      return arrow_path_error(err, path, WEIR_E_CORRUPT,
                              "the index at slot %" PRId64
                              " is outside the dictionary of %" PRId64 " values",
                              at, array->dictionary->length);
  }
  for (int64_t i = 0; i < array->n_children && status == WEIR_OK; i++) {
    const char *name = node->children[i].schema->name;
    arrow_path here = {path, child_word(node, path), i, name == NULL ? "" : name};
    status = arrow_indices_check(&node->children[i], array->children[i], &here, err);
  }
  return status;
}
