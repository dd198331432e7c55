/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows to participants by their key: all rows of a key go to one, in the order in which they came. Also where
 * there is one participant, since this is where a row without a key is found.
 */
#include <stdlib.h>
#include <string.h>

#include "arrow/arrow.h"
#include "task/task.h"

struct task_router {
  const char *sink; /* borrowed */
  const weir_schema *schema;
  uint32_t writers;
  bool passes_bad; /* rows without a key or with a wrong `_op` go to some participant */
  size_t n_columns;
  int64_t *columns; /* of the key */
  int64_t op;       /* column `_op`; -1: none, all rows replace */
  /* scratch for a batch of `capacity` rows */
  int64_t capacity;
  uint64_t *hashes;
  int64_t *rows;
  int64_t *first; /* writers + 1: where each one's rows begin */
};

void task_router_free(task_router *r) {
  if (!r) return;
  free(r->columns);
  free(r->hashes);
  free(r->rows);
  free(r->first);
  free(r);
}

static int64_t find_column(const weir_schema *schema, const char *name) {
  const struct ArrowSchema *arrow = weir_schema_arrow(schema);
  for (int64_t i = 0; i < arrow->n_children; i++)
    if (strcmp(arrow->children[i]->name, name) == 0) return i;
  return -1;
}

static int64_t op_column(const weir_schema *schema) {
  const struct ArrowSchema *arrow = weir_schema_arrow(schema);
  int64_t last = arrow->n_children - 1;
  bool is_op = last >= 0 && strcmp(arrow->children[last]->name, "_op") == 0 &&
               strcmp(arrow->children[last]->format, "u") == 0;
  return is_op ? last : -1;
}

static weir_status find_key(task_router *r, const weir_names *key, weir_error *err) {
  for (size_t i = 0; i < key->n; i++) {
    int64_t column = find_column(r->schema, key->v[i]);
    if (column < 0)
      return weir_error_set(err, WEIR_E_SCHEMA, 0,
                            "sink %s: key column '%s' is not among the source's columns",
                            r->sink, key->v[i]);
    const arrow_node *node = &arrow_schema_root(r->schema)->children[column];
    if (!arrow_can_hash(node)) {
      char type[120];
      weir_type_format(node->schema, type, sizeof(type));
      return weir_error_set(err, WEIR_E_SCHEMA, 0,
                            "sink %s: key column '%s' is of type %s, which cannot be a "
                            "key; use columns of plain values",
                            r->sink, key->v[i], type);
    }
    r->columns[r->n_columns++] = column;
  }
  return WEIR_OK;
}

weir_status task_router_new(const char *sink, const weir_schema *schema,
                            const weir_names *key, uint32_t writers, task_router **out,
                            weir_error *err) {
  weir_status status = WEIR_E_NOMEM;
  task_router *r = base_calloc(1, sizeof(*r), err);
  if (!r) return status;
  r->sink = sink;
  r->schema = schema;
  r->writers = writers;
  r->op = op_column(schema);
  r->columns = base_calloc(key->n, sizeof(*r->columns), err);
  r->first = base_calloc((size_t)writers + 1, sizeof(*r->first), err);
  if (r->columns && r->first) status = find_key(r, key, err);
  if (status)
    task_router_free(r);
  else
    *out = r;
  return status;
}

void task_router_pass_bad(task_router *r) {
  r->passes_bad = true;
}

static weir_status reserve(task_router *r, int64_t rows, weir_error *err) {
  if (rows <= r->capacity) return WEIR_OK;
  uint64_t *hashes = base_realloc(r->hashes, (size_t)rows, sizeof(*hashes), err);
  if (!hashes) return WEIR_E_NOMEM;
  r->hashes = hashes;
  int64_t *order = base_realloc(r->rows, (size_t)rows, sizeof(*order), err);
  if (!order) return WEIR_E_NOMEM;
  r->rows = order;
  r->capacity = rows;
  return WEIR_OK;
}

static weir_status bad_row(const task_router *r, int64_t row, int64_t column,
                           const char *what, weir_error *err) {
  const struct ArrowSchema *arrow = weir_schema_arrow(r->schema);
  weir_error_set(err, WEIR_E_BAD_DATA, WEIR_ERR_BAD_DATA, "sink %s: column '%s' %s",
                 r->sink, arrow->children[column]->name, what);
  if (err) {
    err->row = row;
    err->column = (int32_t)column;
  }
  return WEIR_E_BAD_DATA;
}

static weir_status no_key(const task_router *r, int64_t row, int64_t column,
                          weir_error *err) {
  return bad_row(r, row, column, "is part of the key and has no value", err);
}

static weir_status check_ops(const task_router *r, const struct ArrowArray *array,
                             int64_t rows, weir_error *err) {
  if (r->op < 0) return WEIR_OK;
  const struct ArrowArray *op = array->children[r->op];
  const int32_t *offsets = op->buffers[1];
  const char *data = op->buffers[2];
  for (int64_t i = 0; i < rows; i++) {
    int64_t at = op->offset + i;
    bool null = op->buffers[0] && !ArrowBitGet(op->buffers[0], at);
    if (null || offsets[at + 1] - offsets[at] != 1 ||
        (data[offsets[at]] != 'U' && data[offsets[at]] != 'D'))
      return bad_row(r, i, r->op, "is neither U (replace by key) nor D (delete by key)",
                     err);
  }
  return WEIR_OK;
}

weir_status task_router_check(const task_router *r, const weir_batch *batch,
                              weir_error *err) {
  const struct ArrowArray *array = weir_batch_array(batch);
  const arrow_node *root = arrow_schema_root(weir_batch_schema(batch));
  int64_t rows = weir_batch_rows(batch);
  BASE_TRY(check_ops(r, array, rows, err));
  for (size_t k = 0; k < r->n_columns; k++) {
    int64_t column = r->columns[k];
    int64_t good = arrow_hash_column(&root->children[column], array->children[column], 0,
                                     rows, NULL);
    if (good < rows) return no_key(r, good, column, err);
  }
  return WEIR_OK;
}

/* Sorts the rows by participant, each one's in the order in which they came. */
static void sort_rows(task_router *r, int64_t rows) {
  memset(r->first, 0, ((size_t)r->writers + 1) * sizeof(*r->first));
  for (int64_t i = 0; i < rows; i++) {
    r->hashes[i] = (r->hashes[i] >> 32) * r->writers >> 32;
    r->first[r->hashes[i] + 1]++;
  }
  for (uint32_t w = 0; w < r->writers; w++) r->first[w + 1] += r->first[w];
  for (int64_t i = 0; i < rows; i++) r->rows[r->first[r->hashes[i]]++] = i;
  /* Each one's beginning has moved to its end. */
  memmove(r->first + 1, r->first, r->writers * sizeof(*r->first));
  r->first[0] = 0;
}

weir_status task_router_split(task_router *r, weir_batch *batch, weir_batch **pieces,
                              weir_error *err) {
  const struct ArrowArray *array = weir_batch_array(batch);
  const arrow_node *root = arrow_schema_root(weir_batch_schema(batch));
  int64_t rows = weir_batch_rows(batch);
  weir_status status = WEIR_OK;
  memset(pieces, 0, r->writers * sizeof(*pieces));
  if (rows == 0) {
    pieces[0] = weir_batch_ref(batch);
    return WEIR_OK;
  }
  BASE_TRY(arrow_batch_check_offsets(batch, err));
  BASE_TRY(reserve(r, rows, err));
  if (!r->passes_bad) BASE_TRY(check_ops(r, array, rows, err));
  memset(r->hashes, 0, (size_t)rows * sizeof(*r->hashes));
  for (size_t k = 0; k < r->n_columns; k++) {
    int64_t column = r->columns[k];
    for (int64_t at = 0; at < rows; at++) {
      at = arrow_hash_column(&root->children[column], array->children[column], at, rows,
                             r->hashes);
      if (at < rows && !r->passes_bad) return no_key(r, at, column, err);
    }
  }
  sort_rows(r, rows);
  for (uint32_t w = 0; w < r->writers && !status; w++) {
    int64_t n = r->first[w + 1] - r->first[w];
    if (n == rows)
      pieces[w] = weir_batch_ref(batch);
    else if (n)
      status = weir_batch_take(batch, r->rows + r->first[w], n, &pieces[w], err);
  }
  for (uint32_t w = 0; w < r->writers && status; w++) {
    weir_batch_unref(pieces[w]);
    pieces[w] = NULL;
  }
  return status;
}
