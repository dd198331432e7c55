/* SPDX-License-Identifier: Apache-2.0 */
/* LogicalTypes.md, "Nested Types", with the rules for files that were written before them. */
#include "read_schema.h"

#include <stdlib.h>

typedef struct schema_build {
  const parquet_schema_element *elements, *end; /* `elements`: the next one */
  read_schema *schema;
  base_buf path; /* of the field, with dots */
  int32_t column;
  int depth;
  read_fixed fixed[ARROW_MAX_DEPTH]; /* the lists that the walk is in */
  size_t n_fixed;
  weir_error *err;
} schema_build;

/* The place of a field: levels above it, and what a slot of it needs. */
typedef struct place {
  uint8_t def, rep, carry;
} place;

static weir_status build_field(schema_build *b, place at, const arrow_node *hint,
                               read_node *node, struct ArrowSchema *out);

static weir_status corrupt(schema_build *b, const char *what) {
  if (base_buf_terminate(&b->path, b->err) != WEIR_OK) return WEIR_E_NOMEM;
  return weir_error_set(b->err, WEIR_E_CORRUPT, 0, "schema, field '%s': %s",
                        (const char *)b->path.data, what);
}

static weir_status check_code(schema_build *b, int code) {
  return code == 0 ? WEIR_OK : arrow_errno(b->err, code, "schema");
}

static weir_status set_name(schema_build *b, struct ArrowSchema *out,
                            thrift_binary name) {
  if (memchr(name.data, 0, name.size) != NULL)
    return corrupt(b, "its name has a NUL character");
  char *text = base_strndup((const char *)name.data, name.size, b->err);
  if (text == NULL) return WEIR_E_NOMEM;
  int code = ArrowSchemaSetName(out, text);
  free(text);
  return check_code(b, code);
}

static bool is_group(const parquet_schema_element *element) {
  return (element->has >> 1 & 1) == 0;
}

static bool is_annotated(const parquet_schema_element *element, int logical,
                         int converted) {
  return (element->has >> 10 & 1 && element->logical.has >> logical & 1) ||
         (element->has >> 6 & 1 && element->converted_type == converted);
}

static bool is_list(const parquet_schema_element *element) {
  return is_annotated(element, PARQUET_LOGICAL_LIST, PARQUET_CONVERTED_LIST);
}

static bool is_map(const parquet_schema_element *element) {
  return is_annotated(element, PARQUET_LOGICAL_MAP, PARQUET_CONVERTED_MAP) ||
         (element->has >> 6 & 1 &&
          element->converted_type == PARQUET_CONVERTED_MAP_KEY_VALUE);
}

static void type_done(read_type *type) {
  free(type->name);
  free(type->fixed);
}

static weir_status add_leaf(schema_build *b, const parquet_schema_element *element,
                            place at, const arrow_node *hint, read_node *node,
                            struct ArrowSchema *out) {
  static const uint8_t widths[] = {0, 4, 8, 12, 4, 8, 0, 0};
  if (element->type < 0 || element->type > PARQUET_FIXED)
    return corrupt(b, "its physical type is not known");
  read_type type = {.chunk = b->schema->n_chunks++,
                    .column = b->column,
                    .type = (enum parquet_type)element->type,
                    .width = widths[element->type],
                    .max_def = node->def,
                    .max_rep = at.rep,
                    .carry = at.carry};
  type.flat = at.rep == 0 && node->def == (node->nullable ? 1 : 0);
  if (type.type == PARQUET_FIXED) {
    if (element->type_length <= 0) return corrupt(b, "its values have no length");
    type.width = (uint32_t)element->type_length;
  }
  type.name = base_strndup((const char *)b->path.data, b->path.size, b->err);
  if (type.name == NULL) return WEIR_E_NOMEM;
  type.fixed = base_calloc(b->n_fixed, sizeof(*type.fixed), b->err);
  weir_status status = WEIR_E_NOMEM;
  if (type.fixed != NULL) {
    type.n_fixed = b->n_fixed;
    memcpy(type.fixed, b->fixed, b->n_fixed * sizeof(*type.fixed));
    status = read_type_choose(&type, element, hint, out, b->err);
  }
  if (status == WEIR_OK && type.put == PUT_NOTHING && !node->nullable)
    status = corrupt(b, "it has no type but must have values");
  if (status == WEIR_OK)
    status = base_buf_append(&b->schema->types, &type, sizeof(type), b->err);
  if (status != WEIR_OK) type_done(&type);
  return status;
}

static weir_status add_children(schema_build *b, read_node *node, int64_t n,
                                struct ArrowSchema *out, const char *format) {
  node->children = base_calloc((size_t)n, sizeof(*node->children), b->err);
  if (node->children == NULL) return WEIR_E_NOMEM;
  node->n_children = n;
  BASE_TRY(check_code(b, ArrowSchemaSetFormat(out, format)));
  BASE_TRY(check_code(b, ArrowSchemaAllocateChildren(out, n)));
  for (int64_t i = 0; i < n; i++) ArrowSchemaInit(out->children[i]);
  return WEIR_OK;
}

static weir_status keep_metadata(schema_build *b, const arrow_node *hint,
                                 struct ArrowSchema *out) {
  if (hint == NULL) return WEIR_OK;
  return check_code(b, ArrowSchemaSetMetadata(out, hint->schema->metadata));
}

static weir_status add_struct(schema_build *b, const parquet_schema_element *element,
                              place at, const arrow_node *hint, read_node *node,
                              struct ArrowSchema *out) {
  int64_t n = element->num_children;
  if (n == 0) return corrupt(b, "structs without fields cannot be read");
  if (hint != NULL && (hint->layout != ARROW_STRUCT || hint->n_children != n))
    hint = NULL;
  node->kind = READ_STRUCT;
  BASE_TRY(add_children(b, node, n, out, "+s"));
  for (int64_t i = 0; i < n; i++) {
    BASE_TRY(build_field(b, (place){node->def, at.rep, at.carry},
                         hint != NULL ? &hint->children[i] : NULL, &node->children[i],
                         out->children[i]));
  }
  return keep_metadata(b, hint, out);
}

static weir_status build_value(schema_build *b, const parquet_schema_element *element,
                               place at, bool nullable, const arrow_node *hint,
                               read_node *node, struct ArrowSchema *out);

/* "Backward-compatibility rules": whether the repeated field is the element itself, not a group around it. */
static bool is_two_level(const parquet_schema_element *list,
                         const parquet_schema_element *repeated) {
  if (is_group(repeated) == 0 || repeated->num_children != 1) return true;
  if (is_list(repeated) || is_map(repeated)) return true;
  if (repeated[1].repetition == PARQUET_REPEATED) return true;
  thrift_binary name = repeated->name;
  if (name.size == 5 && memcmp(name.data, "array", 5) == 0) return true;
  static const char suffix[] = "_tuple";
  return name.size == list->name.size + strlen(suffix) &&
         memcmp(name.data, list->name.data, list->name.size) == 0 &&
         memcmp(name.data + list->name.size, suffix, strlen(suffix)) == 0;
}

static const arrow_node *list_hint(const arrow_node *hint) {
  return hint != NULL && hint->type != NANOARROW_TYPE_MAP &&
                 (hint->layout == ARROW_LIST || hint->layout == ARROW_LIST_VIEW ||
                  (hint->layout == ARROW_FIXED_LIST && hint->width > 0))
             ? hint
             : NULL;
}

/* The children of a list; `element` is the repeated field, which is the element or has it in it. */
static weir_status add_list(schema_build *b, const parquet_schema_element *list, place at,
                            const arrow_node *hint, read_node *node,
                            struct ArrowSchema *out) {
  const parquet_schema_element *repeated = b->elements++;
  hint = list_hint(hint);
  node->kind = READ_LIST;
  bool fixed = hint != NULL && hint->layout == ARROW_FIXED_LIST;
  node->large = hint != NULL && !fixed && hint->width == 8;
  node->element_def = (uint8_t)(node->def + 1);
  place below = {node->element_def, (uint8_t)(at.rep + 1), node->element_def};
  if (fixed) {
    node->fixed = (uint32_t)hint->width;
    below.carry = at.carry;
    b->fixed[b->n_fixed++] =
        (read_fixed){at.carry, node->element_def, below.rep, node->fixed};
  }
  const char *format = fixed ? hint->schema->format : node->large ? "+L" : "+l";
  BASE_TRY(add_children(b, node, 1, out, format));
  const arrow_node *inner = hint != NULL ? &hint->children[0] : NULL;
  struct ArrowSchema *child = out->children[0];
  if (list == NULL || is_two_level(list, repeated)) {
    BASE_TRY(set_name(b, child, repeated->name));
    BASE_TRY(build_value(b, repeated, below, false, inner, &node->children[0], child));
  } else {
    BASE_TRY(build_field(b, below, inner, &node->children[0], child));
  }
  if (inner != NULL)
    BASE_TRY(check_code(b, ArrowSchemaSetName(child, inner->schema->name)));
  if (fixed) b->n_fixed--;
  return keep_metadata(b, hint, out);
}

static weir_status add_map(schema_build *b, place at, const arrow_node *hint,
                           read_node *node, struct ArrowSchema *out) {
  const parquet_schema_element *repeated = b->elements++;
  if (hint != NULL && hint->type != NANOARROW_TYPE_MAP) hint = NULL;
  const arrow_node *inner = hint != NULL ? &hint->children[0] : NULL;
  node->kind = READ_LIST;
  node->element_def = (uint8_t)(node->def + 1);
  BASE_TRY(add_children(b, node, 1, out, "+m"));
  if (hint != NULL) out->flags |= hint->schema->flags & ARROW_FLAG_MAP_KEYS_SORTED;
  place below = {node->element_def, (uint8_t)(at.rep + 1), node->element_def};
  struct ArrowSchema *entries = out->children[0];
  BASE_TRY(set_name(b, entries, repeated->name));
  BASE_TRY(build_value(b, repeated, below, false, inner, &node->children[0], entries));
  /* Keys are "required"; where a file says otherwise, a null is refused when it is met. */
  entries->children[0]->flags &= ~(int64_t)ARROW_FLAG_NULLABLE;
  if (inner != NULL) {
    BASE_TRY(check_code(b, ArrowSchemaSetName(entries, inner->schema->name)));
    for (int i = 0; i < 2; i++) {
      BASE_TRY(check_code(
          b, ArrowSchemaSetName(entries->children[i], inner->children[i].schema->name)));
    }
  }
  return keep_metadata(b, hint, out);
}

static weir_status build_kind(schema_build *b, const parquet_schema_element *element,
                              place at, bool nullable, const arrow_node *hint,
                              read_node *node, struct ArrowSchema *out) {
  *node = (read_node){.nullable = nullable,
                      .def = (uint8_t)(at.def + (nullable ? 1 : 0)),
                      .rep = at.rep,
                      .carry = at.carry,
                      .leaf = b->schema->types.size / sizeof(read_type)};
  out->flags &= ~(int64_t)ARROW_FLAG_NULLABLE;
  if (nullable) out->flags |= ARROW_FLAG_NULLABLE;
  if (!is_group(element)) return add_leaf(b, element, at, hint, node, out);
  const parquet_schema_element *next = b->elements;
  if (element->num_children < 0 || element->num_children > b->end - next)
    return corrupt(b, "it has more fields than the schema");
  bool repeats = element->num_children == 1 && next->repetition == PARQUET_REPEATED &&
                 (next->has >> 3 & 1) != 0;
  if (repeats && is_map(element) && is_group(next) && next->num_children == 2 &&
      b->end - next > 2)
    return add_map(b, at, hint, node, out);
  if (repeats && is_list(element) && (!is_group(next) || b->end - next > 1))
    return add_list(b, element, at, hint, node, out);
  return add_struct(b, element, at, hint, node, out);
}

/* A field whose own repetition is seen to. */
static weir_status build_value(schema_build *b, const parquet_schema_element *element,
                               place at, bool nullable, const arrow_node *hint,
                               read_node *node, struct ArrowSchema *out) {
  if (b->depth == ARROW_MAX_DEPTH) return corrupt(b, "fields nest more than 64 deep");
  b->depth++;
  BASE_TRY(build_kind(b, element, at, nullable, hint, node, out));
  b->depth--;
  return WEIR_OK;
}

static weir_status build_named(schema_build *b, place at, const arrow_node *hint,
                               read_node *node, struct ArrowSchema *out) {
  const parquet_schema_element *element = b->elements;
  BASE_TRY(set_name(b, out, element->name));
  if (hint != NULL && hint->schema->name != NULL && hint->schema->name[0] != '\0' &&
      at.rep == 0 && strcmp(hint->schema->name, out->name) != 0)
    hint = NULL;
  if ((element->has >> 3 & 1) != 0 && element->repetition == PARQUET_REPEATED) {
    /* "A repeated field that is neither contained by a LIST- or MAP-annotated group": a list of it */
    *node = (read_node){.def = at.def,
                        .rep = at.rep,
                        .carry = at.carry,
                        .leaf = b->schema->types.size / sizeof(read_type)};
    out->flags &= ~(int64_t)ARROW_FLAG_NULLABLE;
    return add_list(b, NULL, at, NULL, node, out);
  }
  b->elements++;
  return build_value(b, element, at, element->repetition == PARQUET_OPTIONAL, hint, node,
                     out);
}

static weir_status build_field(schema_build *b, place at, const arrow_node *hint,
                               read_node *node, struct ArrowSchema *out) {
  size_t size = b->path.size;
  if (b->elements == b->end) return corrupt(b, "the schema ends before its fields");
  thrift_binary name = b->elements->name;
  if (size > 0) BASE_TRY(base_buf_append_byte(&b->path, '.', b->err));
  BASE_TRY(base_buf_append(&b->path, name.data, name.size, b->err));
  BASE_TRY(build_named(b, at, hint, node, out));
  b->path.size = size;
  return WEIR_OK;
}

/* ---- columns ----------------------------------------------------------------------------------- */

static bool is_wanted(thrift_binary name, const char *const *names, size_t n) {
  for (size_t i = 0; i < n; i++) {
    if (strlen(names[i]) == name.size && memcmp(names[i], name.data, name.size) == 0)
      return true;
  }
  return n == 0;
}

/* Passes over a field and all in it. */
static weir_status skip_field(schema_build *b) {
  for (int64_t left = 1; left > 0; left--) {
    if (b->elements == b->end) return corrupt(b, "the schema ends before its fields");
    const parquet_schema_element *element = b->elements++;
    if (!is_group(element)) {
      b->schema->n_chunks++;
    } else if (element->num_children < 0 ||
               element->num_children > b->end - b->elements) {
      return corrupt(b, "it has more fields than the schema");
    } else {
      left += element->num_children;
    }
  }
  return WEIR_OK;
}

static weir_status check_names(const thrift_list *elements, const char *const *names,
                               size_t n_names, weir_error *err) {
  const parquet_schema_element *all = elements->items;
  for (size_t k = 0; k < n_names; k++) {
    bool found = false;
    for (size_t i = 1; i < elements->n && !found; i++)
      found = is_wanted(all[i].name, &names[k], 1);
    if (!found) {
      return weir_error_set(err, WEIR_E_NOT_FOUND, 0, "the file has no column '%s'",
                            names[k]);
    }
  }
  return WEIR_OK;
}

static weir_status build_root(schema_build *b, const arrow_node *hint,
                              const char *const *names, size_t n_names,
                              struct ArrowSchema *out) {
  const parquet_schema_element *root = b->elements++;
  read_node *node = &b->schema->root;
  int64_t n = root->num_children, wanted = 0;
  if (n < 1 || n > b->end - b->elements)
    return weir_error_set(b->err, WEIR_E_CORRUPT, 0, "schema: it has no columns");
  if (hint != NULL && hint->n_children != n) hint = NULL;
  node->kind = READ_STRUCT;
  node->children = base_calloc((size_t)n, sizeof(*node->children), b->err);
  if (node->children == NULL) return WEIR_E_NOMEM;
  BASE_TRY(check_code(b, ArrowSchemaSetFormat(out, "+s")));
  BASE_TRY(check_code(b, ArrowSchemaAllocateChildren(out, n)));
  for (int64_t i = 0; i < n; i++) ArrowSchemaInit(out->children[i]);
  for (int64_t i = 0; i < n; i++) {
    if (b->elements < b->end && !is_wanted(b->elements->name, names, n_names)) {
      BASE_TRY(skip_field(b));
      continue;
    }
    b->column = (int32_t)wanted;
    node->n_children = wanted + 1;
    BASE_TRY(build_field(b, (place){0}, hint != NULL ? &hint->children[i] : NULL,
                         &node->children[wanted], out->children[wanted]));
    wanted++;
  }
  if (wanted == 0)
    return weir_error_set(b->err, WEIR_E_NOT_FOUND, 0, "no column of the file is wanted");
  for (int64_t i = wanted; i < n; i++) { /* columns that are not read */
    ArrowSchemaRelease(out->children[i]);
    ArrowFree(out->children[i]);
    out->children[i] = NULL;
  }
  out->n_children = wanted;
  return keep_metadata(b, hint, out);
}

static void node_done(read_node *node) {
  for (int64_t i = 0; i < node->n_children; i++) node_done(&node->children[i]);
  free(node->children);
}

weir_status read_schema_init(read_schema *schema, const thrift_list *elements,
                             const weir_schema *hint, const char *const *names,
                             size_t n_names, weir_error *err) {
  const parquet_schema_element *all = elements->items;
  schema_build b = {
      .elements = all, .end = all + elements->n, .schema = schema, .err = err};
  struct ArrowSchema out = {0};
  *schema = (read_schema){0};
  if (elements->n < 2)
    return weir_error_set(err, WEIR_E_CORRUPT, 0, "schema: it has no columns");
  weir_status status = check_names(elements, names, n_names, err);
  if (status == WEIR_OK) {
    ArrowSchemaInit(&out);
    status = build_root(&b, hint != NULL ? arrow_schema_root(hint) : NULL, names, n_names,
                        &out);
  }
  if (status == WEIR_OK && b.elements != b.end)
    status = weir_error_set(err, WEIR_E_CORRUPT, 0, "schema: fields belong to no column");
  if (status == WEIR_OK) status = weir_schema_new(&out, &schema->arrow, err);
  if (out.release != NULL) ArrowSchemaRelease(&out);
  base_buf_done(&b.path);
  if (status != WEIR_OK) read_schema_done(schema);
  return status;
}

void read_schema_done(read_schema *schema) {
  read_type *types = (read_type *)(void *)schema->types.data;
  for (size_t i = 0; i < schema->types.size / sizeof(*types); i++) type_done(&types[i]);
  base_buf_done(&schema->types);
  node_done(&schema->root);
  weir_schema_unref(schema->arrow);
  *schema = (read_schema){0};
}
