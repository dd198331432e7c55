/* SPDX-License-Identifier: Apache-2.0 */
/* Nulls where a schema declares that there are none, at any depth. A null above hides what lies below it:
 * only what can be seen from a row counts. */
#include <inttypes.h>

#include "arrow/arrow.h"

/* One row's way down. `keys`: below a map, whose entries and keys are never null, whatever is declared
 * ("Map Type" in Schema.fbs). */
typedef struct null_walk {
  int64_t row;
  weir_error *err;
} null_walk;

static bool may_be_null(const arrow_node *parent, int64_t child, bool keys) {
  if (parent->type == NANOARROW_TYPE_MAP || (keys && child == 0)) return false;
  return parent->children[child].schema->flags & ARROW_FLAG_NULLABLE;
}

static bool own_nulls(const arrow_node *node, const struct ArrowArray *a) {
  return arrow_node_has_validity(node) && a->null_count != 0 && a->length > 0 &&
         a->buffers[0] != NULL &&
         ArrowBitCountSet(a->buffers[0], a->offset, a->length) != a->length;
}

/* Its own, or those among the values of its dictionary, named by a slot or not. */
static bool has_nulls(const arrow_node *node, const struct ArrowArray *a) {
  return own_nulls(node, a) || (a->length > 0 && node->dictionary != NULL &&
                                own_nulls(node->dictionary, a->dictionary));
}

static bool is_null(const arrow_node *node, const struct ArrowArray *a, int64_t at) {
  return arrow_node_has_validity(node) && a->null_count != 0 && a->buffers[0] != NULL &&
         !ArrowBitGet(a->buffers[0], at);
}

/* Whether the index at a slot names a null. One outside the dictionary names nothing. */
static bool names_null(const arrow_node *node, const struct ArrowArray *a, int64_t at) {
  const void *indices = a->buffers[1];
  const struct ArrowArray *values = a->dictionary;
  uint64_t i = node->width == 1   ? ((const uint8_t *)indices)[at]
               : node->width == 2 ? ((const uint16_t *)indices)[at]
               : node->width == 4 ? ((const uint32_t *)indices)[at]
                                  : ((const uint64_t *)indices)[at];
  return i < (uint64_t)values->length &&
         is_null(node->dictionary, values, values->offset + (int64_t)i);
}

static bool leads_down(const arrow_node *node) {
  return node->layout == ARROW_STRUCT || node->layout == ARROW_LIST ||
         node->layout == ARROW_LIST_VIEW || node->layout == ARROW_FIXED_LIST;
}

/* Whether anything below is null that may not be, hidden or not. */
static bool any_below(const arrow_node *node, const struct ArrowArray *a, bool keys) {
  if (!leads_down(node)) return false;
  for (int64_t i = 0; i < node->n_children; i++) {
    const arrow_node *child = &node->children[i];
    if (!may_be_null(node, i, keys) && has_nulls(child, a->children[i])) return true;
    if (any_below(child, a->children[i], node->type == NANOARROW_TYPE_MAP)) return true;
  }
  return false;
}

static weir_status check_slot(const null_walk *walk, const arrow_node *node,
                              const struct ArrowArray *a, int64_t i, bool nullable,
                              bool keys, const arrow_path *path);

static weir_status check_items(const null_walk *walk, const arrow_node *node,
                               const struct ArrowArray *a, int64_t start, int64_t end,
                               const arrow_path *path) {
  const char *name = node->children[0].schema->name;
  arrow_path here = {path, "child", 0, name == NULL ? "" : name};
  for (int64_t i = start; i < end; i++) {
    weir_status status =
        check_slot(walk, &node->children[0], a->children[0], i,
                   may_be_null(node, 0, false), node->type == NANOARROW_TYPE_MAP, &here);
    if (status != WEIR_OK) return status;
  }
  return WEIR_OK;
}

static weir_status check_below(const null_walk *walk, const arrow_node *node,
                               const struct ArrowArray *a, int64_t at, bool keys,
                               const arrow_path *path) {
  int64_t start = 0;
  switch (node->layout) {
    case ARROW_LIST:
      return check_items(walk, node, a, arrow_offset_at(a->buffers[1], node->width, at),
                         arrow_offset_at(a->buffers[1], node->width, at + 1), path);
    case ARROW_LIST_VIEW:
      start = arrow_offset_at(a->buffers[1], node->width, at);
      return check_items(walk, node, a, start,
                         start + arrow_offset_at(a->buffers[2], node->width, at), path);
    case ARROW_FIXED_LIST:
      return check_items(walk, node, a, at * node->width, (at + 1) * node->width, path);
    case ARROW_STRUCT:
      for (int64_t k = 0; k < node->n_children; k++) {
        const char *name = node->children[k].schema->name;
        arrow_path here = {path, "field", k, name == NULL ? "" : name};
        weir_status status = check_slot(walk, &node->children[k], a->children[k], at,
                                        may_be_null(node, k, keys), false, &here);
        if (status != WEIR_OK) return status;
      }
      return WEIR_OK;
    default: /* unions and runs: nothing is asked of what lies below */
      return WEIR_OK;
  }
}

static weir_status check_slot(const null_walk *walk, const arrow_node *node,
                              const struct ArrowArray *a, int64_t i, bool nullable,
                              bool keys, const arrow_path *path) {
  int64_t at = a->offset + i;
  if (!is_null(node, a, at) && (node->dictionary == NULL || !names_null(node, a, at)))
    return check_below(walk, node, a, at, keys, path);
  if (nullable) return WEIR_OK;
  char where[300];
  int32_t column = arrow_path_column(path);
  bool top = path->up == NULL;
  arrow_path_format(path, where, sizeof where);
  weir_error_set(walk->err, WEIR_E_BAD_DATA, WEIR_ERR_BAD_DATA,
                 "batch: %s is declared not null, but row %" PRId64 " is null%s", where,
                 walk->row, top ? "" : " there");
  return weir_error_at(walk->err, WEIR_E_BAD_DATA, walk->row, column);
}

weir_status arrow_nulls_check(const arrow_node *root, const struct ArrowArray *array,
                              weir_error *err) {
  const int64_t first = array->offset, rows = array->length;
  if (array->buffers[0] != NULL && array->null_count != 0 && rows > 0 &&
      ArrowBitCountSet(array->buffers[0], first, rows) != rows)
    return weir_error_set(
        err, WEIR_E_SCHEMA, 0,
        "batch: rows that are null as a whole have no meaning; nulls belong into "
        "the columns");
  for (int64_t i = 0; i < array->n_children; i++) {
    const arrow_node *node = &root->children[i];
    const struct ArrowArray *column = array->children[i];
    bool nullable = may_be_null(root, i, false);
    if ((nullable || !has_nulls(node, column)) && !any_below(node, column, false))
      continue;
    arrow_path path = {NULL, "column", i,
                       node->schema->name == NULL ? "" : node->schema->name};
    null_walk walk = {0, err};
    for (; walk.row < rows; walk.row++) {
      weir_status status =
          check_slot(&walk, node, column, first + walk.row, nullable, false, &path);
      if (status != WEIR_OK) return status;
    }
  }
  return WEIR_OK;
}
