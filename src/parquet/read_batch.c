/* SPDX-License-Identifier: Apache-2.0 */
/* Leaves to arrays: offsets and validity of what is nested come from the levels of the first leaf below it. */
#include <stdlib.h>

#include "read.h"

typedef struct batch_make {
  read_leaf *leaves;
  weir_error *err;
} batch_make;

static weir_status check_code(batch_make *b, int code) {
  return code == 0 ? WEIR_OK : arrow_errno(b->err, code, "array");
}

/* Both are malloc's memory. */
static weir_status move_buffer(batch_make *b, struct ArrowArray *array, int64_t i,
                               base_buf *buf) {
  struct ArrowBuffer out;
  ArrowBufferInit(&out);
  out.data = buf->data;
  out.size_bytes = (int64_t)buf->size;
  out.capacity_bytes = (int64_t)buf->capacity;
  *buf = (base_buf){0};
  return check_code(b, ArrowArraySetBuffer(array, i, &out));
}

/* ---- leaves ------------------------------------------------------------------------------------ */

static weir_status widen_offsets(batch_make *b, read_leaf *leaf) {
  base_buf wide = {0};
  size_t n = leaf->slots + 1;
  BASE_TRY(base_buf_reserve(&wide, 8 * n, b->err));
  const uint32_t *from = (const uint32_t *)(const void *)leaf->values.data;
  for (size_t i = 0; i < n; i++) ((int64_t *)(void *)wide.data)[i] = from[i];
  wide.size = 8 * n;
  base_buf_done(&leaf->values);
  leaf->values = wide;
  return WEIR_OK;
}

static weir_status make_views(batch_make *b, read_leaf *leaf, struct ArrowArray *array) {
  const uint32_t *offsets = (const uint32_t *)(const void *)leaf->values.data;
  BASE_TRY(check_code(b, ArrowArrayStartAppending(array)));
  BASE_TRY(check_code(b, ArrowArrayReserve(array, (int64_t)leaf->slots)));
  for (size_t i = 0; i < leaf->slots; i++) {
    struct ArrowBufferView view = {{leaf->data.data + offsets[i]},
                                   (int64_t)offsets[i + 1] - offsets[i]};
    bool null = leaf->nulls > 0 && (leaf->valid.data[i / 8] >> (i % 8) & 1) == 0;
    BASE_TRY(check_code(
        b, null ? ArrowArrayAppendNull(array, 1) : ArrowArrayAppendBytes(array, view)));
  }
  return check_code(
      b, ArrowArrayFinishBuilding(array, NANOARROW_VALIDATION_LEVEL_NONE, NULL));
}

/* Of the bytes of each, the most significant first (LogicalTypes.md, "DECIMAL"); of a null there are none. */
static weir_status make_decimals(batch_make *b, read_leaf *leaf,
                                 struct ArrowArray *array) {
  base_buf decimals = {0};
  if (leaf->slots == 0) return WEIR_OK;
  weir_status status = read_bytes_decimals(leaf, &decimals, b->err);
  if (status == WEIR_OK && leaf->nulls > 0)
    status = move_buffer(b, array, 0, &leaf->valid);
  if (status == WEIR_OK) status = move_buffer(b, array, 1, &decimals);
  base_buf_done(&decimals);
  return status;
}

static weir_status make_leaf(batch_make *b, const read_node *node,
                             struct ArrowArray *array) {
  read_leaf *leaf = &b->leaves[node->leaf];
  if (leaf->type->views && leaf->slots > 0) return make_views(b, leaf, array);
  array->length = (int64_t)leaf->slots;
  array->null_count = (int64_t)leaf->nulls;
  if (leaf->type->put == PUT_NOTHING) return WEIR_OK;
  if (leaf->type->decimal > 0) return make_decimals(b, leaf, array);
  if (leaf->slots == 0) { /* other libraries want an offset all the same */
    if (leaf->type->put != PUT_BYTES || leaf->type->views) return WEIR_OK;
    return check_code(
        b, ArrowBufferAppendFill(ArrowArrayBuffer(array, 1), 0, leaf->type->slot));
  }
  if (leaf->nulls > 0) BASE_TRY(move_buffer(b, array, 0, &leaf->valid));
  if (leaf->type->put == PUT_BYTES) {
    if (leaf->type->slot == 8) BASE_TRY(widen_offsets(b, leaf));
    BASE_TRY(move_buffer(b, array, 2, &leaf->data));
  }
  return move_buffer(b, array, 1, &leaf->values);
}

/* ---- what is nested ---------------------------------------------------------------------------- */

/* Slots of a list or struct as they are found. */
typedef struct slots {
  base_buf valid, offsets;
  size_t n, nulls;
} slots;

static weir_status slots_init(slots *s, size_t most, size_t width, weir_error *err) {
  *s = (slots){0};
  weir_status status = base_buf_reserve(&s->valid, most / 8 + 1, err);
  if (status == WEIR_OK && width > 0)
    status = base_buf_reserve(&s->offsets, (most + 1) * width, err);
  return status;
}

static void slots_add(slots *s, bool valid) {
  if (s->n % 8 == 0) s->valid.data[s->n / 8] = 0;
  s->valid.data[s->n / 8] |= (uint8_t)(valid << (s->n % 8));
  s->nulls += !valid;
  s->n++;
  s->valid.size = (s->n + 7) / 8;
}

static void put_offset(slots *s, bool large, size_t count) {
  if (large) {
    ((int64_t *)(void *)s->offsets.data)[s->n] = (int64_t)count;
  } else {
    ((int32_t *)(void *)s->offsets.data)[s->n] = (int32_t)count;
  }
}

static bool begins_slot(const read_node *node, const read_leaf *leaf, size_t i) {
  return (leaf->type->max_rep == 0 || leaf->reps.data[i] <= node->rep) &&
         leaf->defs.data[i] >= node->carry;
}

static weir_status give(batch_make *b, slots *s, struct ArrowArray *array, bool list) {
  array->length = (int64_t)s->n;
  array->null_count = (int64_t)s->nulls;
  weir_status status = WEIR_OK;
  if (s->nulls > 0) status = move_buffer(b, array, 0, &s->valid);
  if (status == WEIR_OK && list) status = move_buffer(b, array, 1, &s->offsets);
  return status;
}

static weir_status make_node(batch_make *b, const read_node *node,
                             struct ArrowArray *array);

static weir_status differ(const read_leaf *leaf, weir_error *err) {
  return read_corrupt(leaf, "the columns of a field do not have the same elements", err);
}

/* Validity of slots alone. */
static weir_status make_valid(batch_make *b, const read_node *node,
                              struct ArrowArray *array) {
  const read_leaf *leaf = &b->leaves[node->leaf];
  slots s;
  weir_status status = slots_init(&s, leaf->levels_n, 0, b->err);
  for (size_t i = 0; status == WEIR_OK && i < leaf->levels_n; i++) {
    if (begins_slot(node, leaf, i)) slots_add(&s, leaf->defs.data[i] >= node->def);
  }
  if (status == WEIR_OK) status = give(b, &s, array, false);
  base_buf_done(&s.valid);
  return status;
}

/* Null lists have got their elements with the levels; all others must have as many. */
static weir_status make_fixed(batch_make *b, const read_node *node,
                              struct ArrowArray *array) {
  const read_leaf *leaf = &b->leaves[node->leaf];
  uint64_t count = 0, want = 0;
  for (size_t i = 0; i < leaf->levels_n; i++) {
    if (begins_slot(node, leaf, i)) {
      if (count != want) break;
      want += node->fixed;
    }
    count += leaf->reps.data[i] <= node->rep + 1 && leaf->defs.data[i] >= node->carry;
  }
  if (count != want)
    return read_corrupt(leaf, "a fixed-size list has another number of elements", b->err);
  BASE_TRY(make_valid(b, node, array));
  BASE_TRY(make_node(b, &node->children[0], array->children[0]));
  return array->children[0]->length == (int64_t)count ? WEIR_OK : differ(leaf, b->err);
}

static weir_status make_list(batch_make *b, const read_node *node,
                             struct ArrowArray *array) {
  const read_leaf *leaf = &b->leaves[node->leaf];
  size_t count = 0, width = node->large ? 8 : 4;
  slots s;
  if (leaf->levels_n >= INT32_MAX) return differ(leaf, b->err);
  weir_status status = slots_init(&s, leaf->levels_n, width, b->err);
  for (size_t i = 0; status == WEIR_OK && i < leaf->levels_n; i++) {
    if (begins_slot(node, leaf, i)) {
      put_offset(&s, node->large, count);
      slots_add(&s, leaf->defs.data[i] >= node->def);
    }
    count +=
        leaf->reps.data[i] <= node->rep + 1 && leaf->defs.data[i] >= node->element_def;
  }
  if (status == WEIR_OK) {
    put_offset(&s, node->large, count);
    s.offsets.size = (s.n + 1) * width;
    status = give(b, &s, array, true);
  }
  base_buf_done(&s.valid);
  base_buf_done(&s.offsets);
  if (status == WEIR_OK) status = make_node(b, &node->children[0], array->children[0]);
  if (status == WEIR_OK && array->children[0]->length != (int64_t)count)
    status = differ(leaf, b->err);
  return status;
}

static weir_status make_struct(batch_make *b, const read_node *node,
                               struct ArrowArray *array) {
  if (node->nullable) BASE_TRY(make_valid(b, node, array));
  for (int64_t i = 0; i < node->n_children; i++) {
    BASE_TRY(make_node(b, &node->children[i], array->children[i]));
    if (i == 0 && !node->nullable) array->length = array->children[0]->length;
    if (array->children[i]->length != array->length)
      return differ(&b->leaves[node->children[i].leaf], b->err);
  }
  return WEIR_OK;
}

/* No deeper than ARROW_MAX_DEPTH, as the schema was made. */
static weir_status make_node(batch_make *b, const read_node *node,
                             struct ArrowArray *array) {
  switch (node->kind) {
    case READ_LEAF:
      return make_leaf(b, node, array);
    case READ_STRUCT:
      return make_struct(b, node, array);
    default:
      return node->fixed > 0 ? make_fixed(b, node, array) : make_list(b, node, array);
  }
}

weir_status read_batch_make(const read_schema *schema, read_leaf *leaves, int64_t rows,
                            weir_batch **out, weir_error *err) {
  batch_make b = {leaves, err};
  struct ArrowArray array = {0};
  weir_status status = check_code(
      &b, ArrowArrayInitFromSchema(&array, weir_schema_arrow(schema->arrow), NULL));
  array.length = rows;
  for (int64_t i = 0; status == WEIR_OK && i < schema->root.n_children; i++) {
    const read_node *node = &schema->root.children[i];
    status = make_node(&b, node, array.children[i]);
    if (status == WEIR_OK && array.children[i]->length != rows)
      status = differ(&leaves[node->leaf], err);
  }
  if (status == WEIR_OK)
    status = check_code(
        &b, ArrowArrayFinishBuilding(&array, NANOARROW_VALIDATION_LEVEL_NONE, NULL));
  if (status == WEIR_OK) status = weir_batch_new(schema->arrow, &array, out, err);
  if (array.release != NULL) array.release(&array);
  return status;
}
