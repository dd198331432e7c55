/* SPDX-License-Identifier: Apache-2.0 */
/* Counted record batches. Whatever offset and length the producer's struct array had, a
 * batch's own top-level array starts at 0, has no validity, and its columns have as many
 * slots as it has rows. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "arrow/arrow.h"
#include "base/base.h"

struct weir_batch {
  atomic_size_t refs;
  atomic_bool unchecked; /* arrow_batch_check_offsets has not seen it */
  weir_schema *schema;
  struct ArrowArray top;     /* what readers see; its children are `columns` */
  struct ArrowArray owned;   /* released with the batch; release == NULL in a slice */
  weir_batch *parent;        /* of a slice: keeps the buffers */
  const void *no_buffers[1]; /* top.buffers */
  struct ArrowArray **column_at;
  struct ArrowArray
      *columns; /* shallow: they share buffers and children with `owned` or parent */
};

/* The columns and the top are views: whoever releases them by mistake frees nothing. */
static void view_release(struct ArrowArray *array) {
  array->release = NULL;
}

/* Slots [offset, offset + length) of `column`, sharing everything. */
static struct ArrowArray column_window(const struct ArrowArray *column, int64_t offset,
                                       int64_t length, bool all_null) {
  struct ArrowArray view = *column;
  bool whole = offset == 0 && length == column->length;
  view.offset += offset;
  view.length = length;
  if (all_null)
    view.null_count = length;
  else if (!whole && column->null_count != 0)
    view.null_count = length == 0 ? 0 : -1;
  view.private_data = NULL;
  view.release = view_release;
  return view;
}

static weir_status batch_make(weir_schema *schema, const struct ArrowArray *from,
                              int64_t offset, int64_t length, weir_batch **out,
                              weir_error *err) {
  size_t n = (size_t)from->n_children;
  weir_batch *batch = base_calloc(
      1, sizeof *batch + n * sizeof(struct ArrowArray *) + n * sizeof(struct ArrowArray),
      err);
  if (batch == NULL) return WEIR_E_NOMEM;
  const arrow_node *root = arrow_schema_root(schema);
  batch->columns = (struct ArrowArray *)(batch + 1);
  batch->column_at = (struct ArrowArray **)(batch->columns + n);
  for (size_t i = 0; i < n; i++) {
    batch->columns[i] = column_window(from->children[i], offset, length,
                                      root->children[i].layout == ARROW_NULL);
    batch->column_at[i] = &batch->columns[i];
  }
  batch->top = (struct ArrowArray){.length = length,
                                   .n_buffers = 1,
                                   .n_children = (int64_t)n,
                                   .buffers = batch->no_buffers,
                                   .children = batch->column_at,
                                   .release = view_release};
  batch->schema = weir_schema_ref(schema);
  atomic_init(&batch->refs, 1);
  *out = batch;
  return WEIR_OK;
}

static weir_status check_and_wrap(weir_schema *schema, struct ArrowArray *array,
                                  unsigned how, weir_batch **out, weir_error *err) {
  if (array == NULL || array->release == NULL)
    return weir_error_set(err, WEIR_E_SCHEMA, 0,
                          "batch: there is no array, or it was released");
  weir_status status =
      arrow_array_check(arrow_schema_root(schema), array, how, NULL, err);
  if (status != WEIR_OK) return weir_error_prefix(err, status, "batch");
  return arrow_batch_wrap(schema, array, out, err);
}

weir_status weir_batch_new(weir_schema *schema, struct ArrowArray *array,
                           weir_batch **out, weir_error *err) {
  return check_and_wrap(schema, array, ARROW_CHECK_DICTIONARIES, out, err);
}

weir_status arrow_batch_new_pushed(weir_schema *schema, struct ArrowArray *array,
                                   weir_batch **out, weir_error *err) {
  unsigned how = ARROW_CHECK_DICTIONARIES | ARROW_CHECK_OFFSETS_LATER;
  BASE_TRY(check_and_wrap(schema, array, how, out, err));
  atomic_init(&(*out)->unchecked, true);
  return WEIR_OK;
}

weir_status arrow_batch_check_offsets(weir_batch *batch, weir_error *err) {
  if (!atomic_load_explicit(&batch->unchecked, memory_order_relaxed)) return WEIR_OK;
  weir_status status = arrow_array_check(arrow_schema_root(batch->schema), &batch->top,
                                         ARROW_CHECK_DICTIONARIES, NULL, err);
  if (status != WEIR_OK) return weir_error_prefix(err, status, "a batch that was pushed");
  atomic_store_explicit(&batch->unchecked, false, memory_order_relaxed);
  return WEIR_OK;
}

weir_status arrow_batch_wrap(weir_schema *schema, struct ArrowArray *array,
                             weir_batch **out, weir_error *err) {
  weir_batch *batch = NULL;
  weir_status status = arrow_nulls_check(arrow_schema_root(schema), array, err);
  if (status != WEIR_OK) return status;
  status = batch_make(schema, array, array->offset, array->length, &batch, err);
  if (status != WEIR_OK) return status;
  batch->owned = *array;
  array->release = NULL;
  *out = batch;
  return WEIR_OK;
}

weir_batch *weir_batch_ref(weir_batch *batch) {
  atomic_fetch_add_explicit(&batch->refs, 1, memory_order_relaxed);
  return batch;
}

void weir_batch_unref(weir_batch *batch) {
  while (batch != NULL &&
         atomic_fetch_sub_explicit(&batch->refs, 1, memory_order_acq_rel) == 1) {
    weir_batch *parent = batch->parent;
    if (batch->owned.release != NULL) batch->owned.release(&batch->owned);
    weir_schema_unref(batch->schema);
    free(batch);
    batch = parent;
  }
}

void arrow_batch_give_back(weir_batch *batch, struct ArrowArray *array) {
  *array = batch->owned;
  batch->owned.release = NULL;
  weir_batch_unref(batch);
}

weir_status weir_batch_slice(weir_batch *batch, int64_t offset, int64_t length,
                             weir_batch **out, weir_error *err) {
  weir_batch *slice = NULL;
  if (offset < 0 || length < 0 || offset > batch->top.length ||
      length > batch->top.length - offset)
    return weir_error_set(err, WEIR_E_INVALID_STATE, 0,
                          "batch: rows %" PRId64 " to %" PRId64 " + %" PRId64
                          " of %" PRId64,
                          offset, offset, length, batch->top.length);
  weir_status status =
      batch_make(batch->schema, &batch->top, offset, length, &slice, err);
  if (status != WEIR_OK) return status;
  /* A slice of a slice holds the batch with the buffers, not the slice between. */
  slice->parent = weir_batch_ref(batch->parent != NULL ? batch->parent : batch);
  *out = slice;
  return WEIR_OK;
}

weir_status weir_batch_select(weir_batch *batch, weir_schema *schema,
                              const int64_t *columns, weir_batch **out, weir_error *err) {
  const struct ArrowSchema *want = weir_schema_arrow(schema);
  const struct ArrowSchema *have = weir_schema_arrow(batch->schema);
  size_t n = (size_t)want->n_children;
  struct ArrowArray **chosen = base_calloc(n + 1, sizeof *chosen, err);
  if (chosen == NULL) return WEIR_E_NOMEM;
  weir_status status = WEIR_OK;
  for (size_t i = 0; i < n && !status; i++) {
    if (columns[i] < 0 || columns[i] >= have->n_children ||
        !arrow_types_match(want->children[i], have->children[columns[i]]))
      status = weir_error_set(err, WEIR_E_SCHEMA, 0,
                              "batch: no column %" PRId64 " of that type", columns[i]);
    else
      chosen[i] = batch->top.children[columns[i]];
  }
  struct ArrowArray top = {.n_children = (int64_t)n, .children = chosen};
  weir_batch *made = NULL;
  if (!status) status = batch_make(schema, &top, 0, batch->top.length, &made, err);
  free(chosen);
  if (status) return status;
  made->parent = weir_batch_ref(batch->parent != NULL ? batch->parent : batch);
  *out = made;
  return WEIR_OK;
}

weir_schema *weir_batch_schema(const weir_batch *batch) {
  return batch->schema;
}

const struct ArrowArray *weir_batch_array(const weir_batch *batch) {
  return &batch->top;
}

int64_t weir_batch_rows(const weir_batch *batch) {
  return batch->top.length;
}

uint64_t weir_batch_bytes(const weir_batch *batch) {
  return arrow_array_bytes(arrow_schema_root(batch->schema), &batch->top, 0,
                           batch->top.length);
}

/* An exported array and everything below it may be moved out by its reader one by one, so
 * each holds the batch by itself. */
static void export_release(struct ArrowArray *array) {
  for (int64_t i = 0; i < array->n_children; i++) {
    if (array->children[i] == NULL) continue;
    if (array->children[i]->release != NULL)
      array->children[i]->release(array->children[i]);
    free(array->children[i]);
  }
  free(array->children);
  if (array->dictionary != NULL) {
    if (array->dictionary->release != NULL) array->dictionary->release(array->dictionary);
    free(array->dictionary);
  }
  weir_batch_unref(array->private_data);
  array->release = NULL;
}

/* Fills *out; on false what is there is still to be released. */
static bool export_fill(weir_batch *batch, const struct ArrowArray *from,
                        struct ArrowArray *out) {
  *out = (struct ArrowArray){.length = from->length,
                             .null_count = from->null_count,
                             .offset = from->offset,
                             .n_buffers = from->n_buffers,
                             .buffers = from->buffers,
                             .release = export_release,
                             .private_data = weir_batch_ref(batch)};
  if (from->n_children > 0) {
    out->children = calloc((size_t)from->n_children, sizeof *out->children);
    if (out->children == NULL) return false;
  }
  for (int64_t i = 0; i < from->n_children; i++) {
    struct ArrowArray *child = calloc(1, sizeof *child);
    if (child == NULL) return false;
    out->children[i] = child;
    out->n_children = i + 1;
    if (!export_fill(batch, from->children[i], child)) return false;
  }
  if (from->dictionary == NULL) return true;
  out->dictionary = calloc(1, sizeof *out->dictionary);
  return out->dictionary != NULL && export_fill(batch, from->dictionary, out->dictionary);
}

weir_status weir_batch_export(weir_batch *batch, struct ArrowArray *out,
                              weir_error *err) {
  struct ArrowArray made = {0};
  if (!export_fill(batch, &batch->top, &made)) {
    made.release(&made);
    return weir_error_set(err, WEIR_E_NOMEM, 0, "batch: out of memory");
  }
  *out = made;
  return WEIR_OK;
}
