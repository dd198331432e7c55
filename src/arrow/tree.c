/* SPDX-License-Identifier: Apache-2.0 */
/* A schema compiled into nodes: what an array of each field must look like. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "arrow/arrow.h"
#include "base/base.h"

bool arrow_node_has_validity(const arrow_node *node) {
  return node->layout != ARROW_NULL && node->layout != ARROW_SPARSE_UNION &&
         node->layout != ARROW_DENSE_UNION && node->layout != ARROW_RUN_ENDS;
}

int64_t arrow_node_buffers(const arrow_node *node) {
  switch (node->layout) {
    case ARROW_NULL:
    case ARROW_RUN_ENDS:
      return 0;
    case ARROW_FIXED_LIST:
    case ARROW_STRUCT:
    case ARROW_SPARSE_UNION:
      return 1;
    case ARROW_BITS:
    case ARROW_FIXED:
    case ARROW_LIST:
    case ARROW_DENSE_UNION:
      return 2;
    case ARROW_BYTES:
    case ARROW_LIST_VIEW:
      return 3;
    case ARROW_VIEWS:
      break;
  }
  return -1;
}

static void set_layout(arrow_node *node, arrow_layout layout, int32_t width) {
  node->layout = layout;
  node->width = width;
}

/* Layout and width by storage type; false for a type that has none here. */
static bool layout_of(arrow_node *node, const struct ArrowSchemaView *view) {
  switch (view->storage_type) {
    case NANOARROW_TYPE_NA:
      return set_layout(node, ARROW_NULL, 0), true;
    case NANOARROW_TYPE_BOOL:
      return set_layout(node, ARROW_BITS, 0), true;
    case NANOARROW_TYPE_INT8:
    case NANOARROW_TYPE_UINT8:
      return set_layout(node, ARROW_FIXED, 1), true;
    case NANOARROW_TYPE_INT16:
    case NANOARROW_TYPE_UINT16:
    case NANOARROW_TYPE_HALF_FLOAT:
      return set_layout(node, ARROW_FIXED, 2), true;
    case NANOARROW_TYPE_INT32:
    case NANOARROW_TYPE_UINT32:
    case NANOARROW_TYPE_FLOAT:
    case NANOARROW_TYPE_INTERVAL_MONTHS:
    case NANOARROW_TYPE_DECIMAL32:
      return set_layout(node, ARROW_FIXED, 4), true;
    case NANOARROW_TYPE_INT64:
    case NANOARROW_TYPE_UINT64:
    case NANOARROW_TYPE_DOUBLE:
    case NANOARROW_TYPE_INTERVAL_DAY_TIME:
    case NANOARROW_TYPE_DECIMAL64:
      return set_layout(node, ARROW_FIXED, 8), true;
    case NANOARROW_TYPE_DECIMAL128:
    case NANOARROW_TYPE_INTERVAL_MONTH_DAY_NANO:
      return set_layout(node, ARROW_FIXED, 16), true;
    case NANOARROW_TYPE_DECIMAL256:
      return set_layout(node, ARROW_FIXED, 32), true;
    case NANOARROW_TYPE_FIXED_SIZE_BINARY:
      return set_layout(node, ARROW_FIXED, view->fixed_size), view->fixed_size > 0;
    case NANOARROW_TYPE_STRING:
    case NANOARROW_TYPE_BINARY:
      return set_layout(node, ARROW_BYTES, 4), true;
    case NANOARROW_TYPE_LARGE_STRING:
    case NANOARROW_TYPE_LARGE_BINARY:
      return set_layout(node, ARROW_BYTES, 8), true;
    case NANOARROW_TYPE_STRING_VIEW:
    case NANOARROW_TYPE_BINARY_VIEW:
      return set_layout(node, ARROW_VIEWS, 16), true;
    case NANOARROW_TYPE_LIST:
    case NANOARROW_TYPE_MAP:
      return set_layout(node, ARROW_LIST, 4), true;
    case NANOARROW_TYPE_LARGE_LIST:
      return set_layout(node, ARROW_LIST, 8), true;
    case NANOARROW_TYPE_LIST_VIEW:
      return set_layout(node, ARROW_LIST_VIEW, 4), true;
    case NANOARROW_TYPE_LARGE_LIST_VIEW:
      return set_layout(node, ARROW_LIST_VIEW, 8), true;
    case NANOARROW_TYPE_FIXED_SIZE_LIST:
      return set_layout(node, ARROW_FIXED_LIST, view->fixed_size), view->fixed_size >= 0;
    case NANOARROW_TYPE_STRUCT:
      return set_layout(node, ARROW_STRUCT, 0), true;
    case NANOARROW_TYPE_SPARSE_UNION:
      return set_layout(node, ARROW_SPARSE_UNION, 1), true;
    case NANOARROW_TYPE_DENSE_UNION:
      return set_layout(node, ARROW_DENSE_UNION, 1), true;
    case NANOARROW_TYPE_RUN_END_ENCODED:
      return set_layout(node, ARROW_RUN_ENDS, 0), true;
    default:
      return false;
  }
}

/* Counts fields and unions, and refuses what a walk of the schema could not survive:
 * missing or released children, and nesting without end. */
static weir_status count_fields(const struct ArrowSchema *schema, int depth, size_t *n,
                                size_t *unions, const arrow_path *path, weir_error *err) {
  if (schema == NULL || schema->release == NULL)
    return arrow_path_error(err, path, WEIR_E_SCHEMA,
                            "the schema is missing or was released");
  if (depth > ARROW_MAX_DEPTH)
    return weir_error_set(err, WEIR_E_SCHEMA, 0, "schema: nested deeper than %d levels",
                          ARROW_MAX_DEPTH);
  if (schema->format == NULL || schema->n_children < 0 ||
      (schema->n_children > 0 && schema->children == NULL))
    return arrow_path_error(err, path, WEIR_E_SCHEMA,
                            "the schema has no format or no children");
  if (schema->n_children > ARROW_MAX_FIELDS || ++*n > ARROW_MAX_FIELDS)
    return weir_error_set(err, WEIR_E_SCHEMA, 0, "schema: more than %d fields",
                          ARROW_MAX_FIELDS);
  bool is_union = strncmp(schema->format, "+u", 2) == 0;
  if (is_union) ++*unions;
  bool named = is_union || strcmp(schema->format, "+s") == 0;
  for (int64_t i = 0; i < schema->n_children; i++) {
    const struct ArrowSchema *child = schema->children[i];
    const char *name = child == NULL ? NULL : child->name;
    if (name != NULL && !base_utf8_valid(name, strlen(name))) name = NULL;
    arrow_path here = {path, path == NULL ? "column" : "field", i,
                       name == NULL ? "" : name};
    if (child != NULL && (child->name == NULL ? named : name == NULL))
      return arrow_path_error(err, &here, WEIR_E_SCHEMA,
                              "the name is missing or not UTF-8");
    weir_status status = count_fields(child, depth + 1, n, unions, &here, err);
    if (status != WEIR_OK) return status;
  }
  if (schema->dictionary == NULL) return WEIR_OK;
  arrow_path here = {path, "dictionary", 0, NULL};
  if (schema->dictionary->dictionary != NULL)
    return arrow_path_error(err, path, WEIR_E_SCHEMA,
                            "a dictionary's values are a dictionary");
  return count_fields(schema->dictionary, depth + 1, n, unions, &here, err);
}

static weir_status union_types(arrow_node *node, const char *ids, int8_t *child_of,
                               const arrow_path *path, weir_error *err) {
  memset(child_of, -1, 128);
  for (int64_t i = 0; i < node->n_children; i++) {
    char *end = NULL;
    long id = strtol(ids, &end, 10);
    if (end == ids || id < 0 || id > 127 || child_of[id] != -1)
      return arrow_path_error(err, path, WEIR_E_SCHEMA,
                              "union type ids must be distinct and 0 to 127");
    child_of[id] = (int8_t)i;
    ids = *end == ',' ? end + 1 : end;
  }
  node->child_of_type = child_of;
  return WEIR_OK;
}

static int decimal_digits(enum ArrowType type) {
  switch (type) {
    case NANOARROW_TYPE_DECIMAL32:
      return 9;
    case NANOARROW_TYPE_DECIMAL64:
      return 18;
    case NANOARROW_TYPE_DECIMAL128:
      return 38;
    case NANOARROW_TYPE_DECIMAL256:
      return 76;
    default:
      return 0;
  }
}

/* What nanoarrow's parse of one format leaves unchecked. */
static weir_status check_field(arrow_node *node, const struct ArrowSchemaView *view,
                               const arrow_path *path, weir_error *err) {
  const char *format = node->schema->format;
  int digits = decimal_digits(view->storage_type);
  if (digits > 0 && (view->decimal_precision < 1 || view->decimal_precision > digits))
    return arrow_path_error(err, path, WEIR_E_SCHEMA,
                            "'%s': a %d-bit decimal has 1 to %d digits", format,
                            view->decimal_bitwidth, digits);
  if (node->layout == ARROW_RUN_ENDS) {
    const struct ArrowSchema *ends = node->schema->children[0];
    node->width = strcmp(ends->format, "s") == 0   ? 2
                  : strcmp(ends->format, "i") == 0 ? 4
                  : strcmp(ends->format, "l") == 0 ? 8
                                                   : 0;
    if (node->width == 0 || ends->dictionary != NULL)
      return arrow_path_error(err, path, WEIR_E_SCHEMA,
                              "run ends are int16, int32 or int64, not '%s'",
                              ends->format);
  }
  return WEIR_OK;
}

typedef struct tree_builder {
  arrow_tree *tree;
  size_t next_node, next_union;
  weir_error *err;
} tree_builder;

static weir_status compile(tree_builder *b, arrow_node *node,
                           const struct ArrowSchema *schema, const arrow_path *path) {
  struct ArrowSchemaView view = {0};
  struct ArrowError why = {0};
  if (ArrowSchemaViewInit(&view, schema, &why) != NANOARROW_OK)
    return arrow_path_error(b->err, path, WEIR_E_SCHEMA, "%s", why.message);
  node->schema = schema;
  node->type = view.type;
  node->storage = view.storage_type;
  node->n_children = schema->n_children;
  if (!layout_of(node, &view))
    return arrow_path_error(b->err, path, WEIR_E_SCHEMA, "format '%s' is not supported",
                            schema->format);
  weir_status status = check_field(node, &view, path, b->err);
  if (status != WEIR_OK) return status;
  node->children = &b->tree->nodes[b->next_node];
  b->next_node += (size_t)node->n_children;
  if (node->layout == ARROW_SPARSE_UNION || node->layout == ARROW_DENSE_UNION) {
    int8_t *map = b->tree->type_ids + 128 * b->next_union++;
    status = union_types(node, view.union_type_ids, map, path, b->err);
  }
  for (int64_t i = 0; i < node->n_children && status == WEIR_OK; i++) {
    const char *name = schema->children[i]->name;
    arrow_path here = {path, path == NULL ? "column" : "field", i,
                       name == NULL ? "" : name};
    status = compile(b, &node->children[i], schema->children[i], &here);
  }
  if (schema->dictionary == NULL || status != WEIR_OK) return status;
  arrow_path here = {path, "dictionary", 0, NULL};
  node->dictionary = &b->tree->nodes[b->next_node++];
  return compile(b, node->dictionary, schema->dictionary, &here);
}

weir_status arrow_tree_init(arrow_tree *tree, const struct ArrowSchema *schema,
                            weir_error *err) {
  size_t unions = 0;
  *tree = (arrow_tree){0};
  weir_status status = count_fields(schema, 0, &tree->n, &unions, NULL, err);
  if (status != WEIR_OK) return status;
  tree->nodes = base_calloc(tree->n, sizeof *tree->nodes, err);
  tree->type_ids = base_calloc(unions + 1, 128, err);
  if (tree->nodes == NULL || tree->type_ids == NULL) {
    status = WEIR_E_NOMEM;
  } else {
    tree_builder builder = {.tree = tree, .next_node = 1, .err = err};
    status = compile(&builder, &tree->nodes[0], schema, NULL);
  }
  if (status != WEIR_OK) arrow_tree_done(tree);
  return status;
}

void arrow_tree_done(arrow_tree *tree) {
  free(tree->nodes);
  free(tree->type_ids);
  *tree = (arrow_tree){0};
}
