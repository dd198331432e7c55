/* SPDX-License-Identifier: Apache-2.0 */
#include "schema.h"

#include <stdlib.h>

/* Names and steps from the root down to where the walk is. A list has two more names than its field. */
enum { WAY_NAMES = 3 * ARROW_MAX_DEPTH + 4, WAY_STEPS = ARROW_MAX_DEPTH + 2 };

typedef struct schema_walk {
  parquet_schema *schema;
  int32_t column;
  thrift_binary names[WAY_NAMES];
  size_t n_names;
  level_step steps[WAY_STEPS];
  size_t n_steps;
  uint8_t def, rep;
  weir_error *err;
} schema_walk;

static thrift_binary text_of(const char *text) {
  return (thrift_binary){(const uint8_t *)text, text != NULL ? strlen(text) : 0};
}

static weir_status add_element(schema_walk *walk, parquet_schema_element *element,
                               thrift_binary name, int repetition) {
  THRIFT_SET(element, 3);
  element->repetition = repetition;
  THRIFT_SET(element, 4);
  element->name = name;
  return base_buf_append(&walk->schema->elements, element, sizeof(*element), walk->err);
}

static weir_status add_group(schema_walk *walk, thrift_binary name, int repetition,
                             int64_t children, int logical, int converted) {
  parquet_schema_element element = {.num_children = (int32_t)children};
  THRIFT_SET(&element, 5);
  if (logical != 0) {
    THRIFT_SET(&element, 10);
    element.logical.has = 1u << logical;
    THRIFT_SET(&element, 6);
    element.converted_type = converted;
  }
  return add_element(walk, &element, name, repetition);
}

/* The path with dots, for messages. */
static weir_status dotted(const schema_walk *walk, char **out) {
  base_buf text = {0};
  weir_status status = WEIR_OK;
  for (size_t i = 0; i < walk->n_names && status == WEIR_OK; i++) {
    if (i > 0) status = base_buf_append_byte(&text, '.', walk->err);
    if (status == WEIR_OK && walk->names[i].size > 0)
      status =
          base_buf_append(&text, walk->names[i].data, walk->names[i].size, walk->err);
  }
  if (status == WEIR_OK) {
    *out = base_buf_steal_str(&text, walk->err);
    if (*out == NULL) status = WEIR_E_NOMEM;
  }
  base_buf_done(&text);
  return status;
}

static void leaf_done(parquet_leaf *leaf) {
  free((char *)(uintptr_t)leaf->name);
  free(leaf->steps);
  free(leaf->path);
}

static weir_status fill_leaf(schema_walk *walk, parquet_leaf *leaf, bool nullable) {
  char *name = NULL;
  BASE_TRY(dotted(walk, &name));
  leaf->name = name;
  leaf->nested = walk->n_steps > 1;
  leaf->steps = base_calloc(walk->n_steps, sizeof(*leaf->steps), walk->err);
  leaf->path = base_calloc(walk->n_names, sizeof(*leaf->path), walk->err);
  if (leaf->steps == NULL || leaf->path == NULL) return WEIR_E_NOMEM;
  leaf->n_steps = walk->n_steps;
  leaf->n_path = walk->n_names;
  memcpy(leaf->steps, walk->steps, walk->n_steps * sizeof(*leaf->steps));
  memcpy(leaf->path, walk->names, walk->n_names * sizeof(*leaf->path));
  BASE_TRY(leaf_init_values(leaf, walk->err));
  if (leaf->take == TAKE_NOTHING) nullable = true;
  leaf->steps[leaf->n_steps - 1].nullable = nullable;
  leaf->max_def = (uint8_t)(walk->def + (nullable ? 1 : 0));
  leaf->max_rep = walk->rep;
  return add_element(walk, &leaf->element, leaf->path[leaf->n_path - 1],
                     nullable ? PARQUET_OPTIONAL : PARQUET_REQUIRED);
}

static weir_status add_leaf(schema_walk *walk, const arrow_node *node, bool nullable) {
  parquet_leaf leaf = {.node = node, .column = walk->column};
  weir_status status = fill_leaf(walk, &leaf, nullable);
  if (status == WEIR_OK) {
    status = base_buf_append(&walk->schema->leaves, &leaf, sizeof(leaf), walk->err);
  }
  if (status != WEIR_OK) leaf_done(&leaf);
  return status;
}

static weir_status refuse(schema_walk *walk, const arrow_node *node, const char *why) {
  char *name = NULL;
  BASE_TRY(dotted(walk, &name));
  parquet_leaf leaf = {.name = name, .node = node, .column = walk->column};
  weir_status status = leaf_refuse(&leaf, why, walk->err);
  free(name);
  return status;
}

static weir_status add_field(schema_walk *walk, const arrow_node *node,
                             thrift_binary name, bool nullable);

static bool is_nullable(const arrow_node *node) {
  return (node->schema->flags & ARROW_FLAG_NULLABLE) != 0;
}

static weir_status add_struct(schema_walk *walk, const arrow_node *node, bool nullable) {
  if (node->n_children == 0) {
    return refuse(walk, node, "Parquet has no struct without fields; leave it out");
  }
  BASE_TRY(add_group(walk, walk->names[walk->n_names - 1],
                     nullable ? PARQUET_OPTIONAL : PARQUET_REQUIRED, node->n_children, 0,
                     0));
  level_step *step = &walk->steps[walk->n_steps - 1];
  for (int64_t i = 0; i < node->n_children; i++) {
    const arrow_node *child = &node->children[i];
    step->child = i;
    BASE_TRY(add_field(walk, child, text_of(child->schema->name), is_nullable(child)));
  }
  return WEIR_OK;
}

/* The annotated group of a list or map and the repeated group in it, with room for `children`. Undone by
 * leave_repeated. */
static weir_status enter_repeated(schema_walk *walk, bool nullable, int logical,
                                  int converted, const char *middle, int64_t children) {
  thrift_binary name = text_of(middle);
  BASE_TRY(add_group(walk, walk->names[walk->n_names - 1],
                     nullable ? PARQUET_OPTIONAL : PARQUET_REQUIRED, 1, logical,
                     converted));
  BASE_TRY(add_group(walk, name, PARQUET_REPEATED, children, 0, 0));
  walk->names[walk->n_names++] = name;
  walk->def++;
  walk->rep++;
  return WEIR_OK;
}

static void leave_repeated(schema_walk *walk) {
  walk->def--;
  walk->rep--;
  walk->n_names--;
}

/* "Lists": <list> group name (LIST) { repeated group list { <element> element; } } */
static weir_status add_list(schema_walk *walk, const arrow_node *node, bool nullable) {
  const arrow_node *element = &node->children[0];
  BASE_TRY(enter_repeated(walk, nullable, PARQUET_LOGICAL_LIST, PARQUET_CONVERTED_LIST,
                          "list", 1));
  weir_status status = add_field(walk, element, text_of("element"), is_nullable(element));
  leave_repeated(walk);
  return status;
}

/* "Maps": <map> group name (MAP) { repeated group key_value { required key; <value> value; } }. Arrow's
 * struct of entries is the repeated group. */
static weir_status add_map(schema_walk *walk, const arrow_node *node, bool nullable) {
  const arrow_node *entries = &node->children[0], *value = &entries->children[1];
  BASE_TRY(enter_repeated(walk, nullable, PARQUET_LOGICAL_MAP, PARQUET_CONVERTED_MAP,
                          "key_value", 2));
  level_step *step = &walk->steps[walk->n_steps++];
  *step = (level_step){.node = entries};
  weir_status status = add_field(walk, &entries->children[0], text_of("key"), false);
  step->child = 1;
  if (status == WEIR_OK)
    status = add_field(walk, value, text_of("value"), is_nullable(value));
  walk->n_steps--;
  leave_repeated(walk);
  return status;
}

static weir_status add_kind(schema_walk *walk, const arrow_node *node, bool nullable) {
  if (node->dictionary != NULL) return add_leaf(walk, node, nullable);
  switch (node->layout) {
    case ARROW_STRUCT:
      return add_struct(walk, node, nullable);
    case ARROW_LIST:
    case ARROW_LIST_VIEW:
    case ARROW_FIXED_LIST:
      return node->type == NANOARROW_TYPE_MAP ? add_map(walk, node, nullable)
                                              : add_list(walk, node, nullable);
    default:
      return add_leaf(walk, node, nullable);
  }
}

/* The metadata "PARQUET:field_id" of a field, as Arrow has it, becomes its element's id. */
static weir_status keep_field_id(schema_walk *walk, const arrow_node *field, size_t at) {
  struct ArrowStringView value = {0};
  if (field->schema->metadata == NULL) return WEIR_OK;
  ArrowMetadataGetValue(field->schema->metadata, ArrowCharView("PARQUET:field_id"),
                        &value);
  if (value.data == NULL) return WEIR_OK;
  int64_t id = 0;
  for (int64_t i = 0; i < value.size_bytes; i++) {
    char c = value.data[i];
    id = c >= '0' && c <= '9' && id <= INT32_MAX ? id * 10 + (c - '0') : INT64_MAX / 16;
  }
  if (value.size_bytes == 0 || id > INT32_MAX) {
    return refuse(walk, field,
                  "its metadata PARQUET:field_id is not a number from 0 to 2147483647");
  }
  parquet_schema_element *elements =
      (parquet_schema_element *)(void *)walk->schema->elements.data;
  THRIFT_SET(&elements[at], 9);
  elements[at].field_id = (int32_t)id;
  return WEIR_OK;
}

/* A field and what is in it. Run-end encoded values stand for themselves: nullability is the field's,
 * nulls are among the values. */
static weir_status add_field(schema_walk *walk, const arrow_node *node,
                             thrift_binary name, bool nullable) {
  const arrow_node *field = node;
  size_t steps = walk->n_steps;
  size_t element = walk->schema->elements.size / sizeof(parquet_schema_element);
  walk->names[walk->n_names++] = name;
  while (node->layout == ARROW_RUN_ENDS) {
    walk->steps[walk->n_steps++] = (level_step){.node = node};
    node = &node->children[1];
  }
  walk->steps[walk->n_steps++] = (level_step){.node = node, .nullable = nullable};
  bool leaf = node->layout < ARROW_LIST || node->dictionary != NULL;
  uint8_t more = nullable && !leaf ? 1 : 0;
  walk->def = (uint8_t)(walk->def + more);
  weir_status status = add_kind(walk, node, nullable);
  if (status == WEIR_OK) status = keep_field_id(walk, field, element);
  walk->def = (uint8_t)(walk->def - more);
  walk->n_names--;
  walk->n_steps = steps;
  return status;
}

weir_status parquet_schema_init(parquet_schema *schema, const arrow_node *root,
                                weir_error *err) {
  *schema = (parquet_schema){0};
  if (root->n_children == 0) {
    return weir_error_set(err, WEIR_E_SCHEMA, 0, "a Parquet file needs a column");
  }
  schema_walk *walk = base_calloc(1, sizeof(*walk), err);
  if (walk == NULL) return WEIR_E_NOMEM;
  walk->schema = schema;
  walk->err = err;
  parquet_schema_element top = {.has = 1u << 4 | 1u << 5,
                                .name = text_of("schema"),
                                .num_children = (int32_t)root->n_children};
  weir_status status = base_buf_append(&schema->elements, &top, sizeof(top), err);
  for (int64_t i = 0; status == WEIR_OK && i < root->n_children; i++) {
    const arrow_node *node = &root->children[i];
    walk->column = (int32_t)i;
    status = add_field(walk, node, text_of(node->schema->name), is_nullable(node));
  }
  free(walk);
  if (status != WEIR_OK) parquet_schema_done(schema);
  return status;
}

parquet_leaf *parquet_schema_leaves(const parquet_schema *schema, size_t *n) {
  *n = schema->leaves.size / sizeof(parquet_leaf);
  return (parquet_leaf *)(void *)schema->leaves.data;
}

void parquet_schema_done(parquet_schema *schema) {
  size_t n = 0;
  parquet_leaf *leaves = parquet_schema_leaves(schema, &n);
  for (size_t i = 0; i < n; i++) leaf_done(&leaves[i]);
  base_buf_done(&schema->leaves);
  base_buf_done(&schema->elements);
}
