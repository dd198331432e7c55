/* SPDX-License-Identifier: Apache-2.0 */
/* The table's schema, from the JSON that its metadata holds. */
#include "schema.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <yyjson.h>

enum { DEPTH_MAX = 60, FIELDS_MAX = 100000, PATH_MAX_SHOWN = 200 };

typedef struct reader {
  const char *where;
  const delta_features *features;
  delta_arena *arena;
  size_t fields;
  char path[PATH_MAX_SHOWN]; /* of the column being read */
} reader;

static const struct {
  const char *name;
  int type;
} primitives[] = {
    {"string", DELTA_TYPE_STRING},       {"long", DELTA_TYPE_LONG},
    {"integer", DELTA_TYPE_INTEGER},     {"short", DELTA_TYPE_SHORT},
    {"byte", DELTA_TYPE_BYTE},           {"float", DELTA_TYPE_FLOAT},
    {"double", DELTA_TYPE_DOUBLE},       {"boolean", DELTA_TYPE_BOOLEAN},
    {"binary", DELTA_TYPE_BINARY},       {"date", DELTA_TYPE_DATE},
    {"timestamp", DELTA_TYPE_TIMESTAMP}, {"timestamp_ntz", DELTA_TYPE_TIMESTAMP_NTZ},
    {"void", DELTA_TYPE_VOID},
};

static weir_status corrupt(const reader *r, const char *what, weir_error *err) {
  return weir_error_set(err, WEIR_E_CORRUPT, 0,
                        "%s: the schema's column '%s' has no %s that the Delta protocol "
                        "knows",
                        r->where, r->path, what);
}

static weir_status refuse(const reader *r, const char *what, weir_error *err) {
  return weir_error_set(err, WEIR_E_NOT_IMPLEMENTED, 0,
                        "%s: column '%s' %s: write the table with a program that can",
                        r->where, r->path, what);
}

static weir_status read_type(reader *r, yyjson_val *type, int depth, delta_column *out,
                             weir_error *err);

static char *copy_text(reader *r, yyjson_val *value) {
  delta_text text = {yyjson_get_str(value), yyjson_get_len(value)}, copy;
  if (!delta_text_copy(r->arena, text, &copy)) return NULL;
  return (char *)(uintptr_t)copy.p;
}

bool delta_small_number(const char **at, int *out) {
  int n = 0;
  for (*out = 0; **at >= '0' && **at <= '9' && n < 3; n++)
    *out = 10 * *out + (*(*at)++ - '0');
  return n > 0 && n < 3;
}

/* "decimal(10,2)", at most 38 digits; `text` begins with "decimal(". */
static bool parse_decimal(const char *text, int *precision, int *scale) {
  const char *at = text + strlen("decimal(");
  if (!delta_small_number(&at, precision) || *at++ != ',') return false;
  if (!delta_small_number(&at, scale) || strcmp(at, ")") != 0) return false;
  return *precision >= 1 && *precision <= 38 && *scale >= 0 && *scale <= *precision;
}

static weir_status read_primitive(reader *r, const char *name, delta_column *out,
                                  weir_error *err) {
  for (size_t i = 0; i < sizeof(primitives) / sizeof(primitives[0]); i++) {
    if (strcmp(name, primitives[i].name) == 0) out->type = primitives[i].type;
  }
  if (strncmp(name, "decimal(", 8) == 0) {
    if (!parse_decimal(name, &out->precision, &out->scale))
      return corrupt(r, "decimal type", err);
    out->type = DELTA_TYPE_DECIMAL;
  }
  if (!out->type) {
    char what[128];
    snprintf(what, sizeof(what), "has type '%.60s', which weir cannot write", name);
    return refuse(r, what, err);
  }
  if (out->type == DELTA_TYPE_TIMESTAMP_NTZ && !r->features->timestamp_ntz) {
    return weir_error_set(err, WEIR_E_CORRUPT, 0,
                          "%s: column '%s' is timestamp_ntz, but the table's protocol "
                          "lacks the feature timestampNtz",
                          r->where, r->path);
  }
  return WEIR_OK;
}

static bool has(yyjson_val *metadata, const char *key) {
  yyjson_val *value = yyjson_obj_get(metadata, key);
  return value && !yyjson_is_null(value);
}

/* What a column's metadata demands of writers. */
static weir_status check_rules(const reader *r, yyjson_val *metadata, weir_error *err) {
  const delta_features *f = r->features;
  if (f->invariants && has(metadata, "delta.invariants"))
    return refuse(r,
                  "has an invariant (feature invariants), an SQL expression that weir "
                  "cannot check",
                  err);
  if (f->generated && has(metadata, "delta.generationExpression"))
    return refuse(r,
                  "is generated (feature generatedColumns) by an SQL expression that "
                  "weir cannot check",
                  err);
  if (f->identity && has(metadata, "delta.identity.start"))
    return refuse(r,
                  "is an identity column (feature identityColumns), whose values weir "
                  "does not make",
                  err);
  return WEIR_OK;
}

/* Section "Column Mapping": every column has a physical name and an id then. */
static weir_status read_mapping(reader *r, yyjson_val *metadata, delta_column *out,
                                weir_error *err) {
  yyjson_val *name = yyjson_obj_get(metadata, "delta.columnMapping.physicalName");
  yyjson_val *id = yyjson_obj_get(metadata, "delta.columnMapping.id");
  if (!yyjson_is_str(name) || !yyjson_get_len(name) ||
      strlen(yyjson_get_str(name)) != yyjson_get_len(name))
    return corrupt(r, "delta.columnMapping.physicalName", err);
  if (!yyjson_is_int(id) || yyjson_get_sint(id) < 1 || yyjson_get_sint(id) > INT32_MAX)
    return corrupt(r, "delta.columnMapping.id", err);
  out->physical = copy_text(r, name);
  out->id = (int32_t)yyjson_get_sint(id);
  return out->physical ? WEIR_OK : delta_no_memory(err);
}

static weir_status nullable_of(const reader *r, yyjson_val *object, const char *key,
                               bool *out, weir_error *err) {
  yyjson_val *value = yyjson_obj_get(object, key);
  if (!yyjson_is_bool(value)) return corrupt(r, key, err);
  *out = yyjson_get_bool(value);
  return WEIR_OK;
}

static weir_status read_field(reader *r, yyjson_val *field, int depth, delta_column *out,
                              weir_error *err) {
  yyjson_val *name = yyjson_obj_get(field, "name");
  yyjson_val *metadata = yyjson_obj_get(field, "metadata");
  size_t parent = strlen(r->path);
  if (!yyjson_is_str(name) || !yyjson_get_len(name) ||
      strlen(yyjson_get_str(name)) != yyjson_get_len(name))
    return corrupt(r, "name", err);
  snprintf(r->path + parent, sizeof(r->path) - parent, "%s%s", parent ? "." : "",
           yyjson_get_str(name));
  out->name = copy_text(r, name);
  if (!out->name) return delta_no_memory(err);
  out->physical = out->name;
  DELTA_TRY(nullable_of(r, field, "nullable", &out->nullable, err));
  DELTA_TRY(check_rules(r, metadata, err));
  if (r->features->mapping) DELTA_TRY(read_mapping(r, metadata, out, err));
  out->has_default = r->features->defaults && has(metadata, "CURRENT_DEFAULT");
  DELTA_TRY(read_type(r, yyjson_obj_get(field, "type"), depth, out, err));
  r->path[parent] = 0;
  return WEIR_OK;
}

static delta_column *take_columns(reader *r, size_t n) {
  if (n > FIELDS_MAX - r->fields) return NULL;
  r->fields += n;
  delta_column *v = delta_arena_take(r->arena, n * sizeof(*v));
  if (v) memset(v, 0, n * sizeof(*v));
  return v;
}

/* Section "Schema Serialization Format": names are unique regardless of casing. */
static weir_status check_unique(const reader *r, const delta_column *out,
                                weir_error *err) {
  for (size_t i = 0; i < out->n_children; i++) {
    for (size_t j = 0; j < i; j++) {
      if (strcasecmp(out->children[i].name, out->children[j].name) != 0) continue;
      return weir_error_set(err, WEIR_E_CORRUPT, 0,
                            "%s: the schema has both columns '%s' and '%s'", r->where,
                            out->children[j].name, out->children[i].name);
    }
  }
  return WEIR_OK;
}

static weir_status read_struct(reader *r, yyjson_val *type, int depth, delta_column *out,
                               weir_error *err) {
  yyjson_val *fields = yyjson_obj_get(type, "fields"), *field = NULL;
  size_t i = 0, max = 0;
  if (!yyjson_is_arr(fields)) return corrupt(r, "fields", err);
  out->type = DELTA_TYPE_STRUCT;
  out->n_children = yyjson_arr_size(fields);
  out->children = take_columns(r, out->n_children);
  if (!out->children) return corrupt(r, "number of fields", err);
  yyjson_arr_foreach(fields, i, max, field) {
    DELTA_TRY(read_field(r, field, depth + 1, &out->children[i], err));
  }
  return check_unique(r, out, err);
}

static weir_status read_nested(reader *r, yyjson_val *type, int depth, delta_column *out,
                               weir_error *err) {
  static const char *const array_parts[] = {"element"}, *const map_parts[] = {"key",
                                                                              "value"};
  bool map = yyjson_equals_str(yyjson_obj_get(type, "type"), "map");
  const char *const *parts = map ? map_parts : array_parts;
  size_t n = map ? 2 : 1, parent = strlen(r->path);
  out->type = map ? DELTA_TYPE_MAP : DELTA_TYPE_ARRAY;
  out->n_children = n;
  out->children = take_columns(r, n);
  if (!out->children) return corrupt(r, "number of fields", err);
  for (size_t i = 0; i < n; i++) {
    delta_column *part = &out->children[i];
    char key[16];
    snprintf(key, sizeof(key), "%sType", parts[i]);
    snprintf(r->path + parent, sizeof(r->path) - parent, ".%s", parts[i]);
    part->name = part->physical = parts[i];
    DELTA_TRY(read_type(r, yyjson_obj_get(type, key), depth + 1, part, err));
    /* Section "Void Type": such tables take no new files. */
    if (part->type == DELTA_TYPE_VOID)
      return refuse(r, "is void within an array or map, which no file can hold", err);
    r->path[parent] = 0;
  }
  return nullable_of(r, type, map ? "valueContainsNull" : "containsNull",
                     &out->children[n - 1].nullable, err);
}

static weir_status read_type(reader *r, yyjson_val *type, int depth, delta_column *out,
                             weir_error *err) {
  yyjson_val *kind = yyjson_obj_get(type, "type");
  if (depth > DEPTH_MAX) return refuse(r, "is nested too deeply", err);
  if (yyjson_is_str(type)) return read_primitive(r, yyjson_get_str(type), out, err);
  if (yyjson_equals_str(kind, "struct")) return read_struct(r, type, depth, out, err);
  if (yyjson_equals_str(kind, "array") || yyjson_equals_str(kind, "map"))
    return read_nested(r, type, depth, out, err);
  return corrupt(r, "type", err);
}

weir_status delta_schema_read(delta_text text, const delta_features *features,
                              const char *where, delta_arena *arena, delta_schema *out,
                              weir_error *err) {
  reader r = {.where = where, .features = features, .arena = arena};
  yyjson_read_err why = {0};
  yyjson_doc *doc = yyjson_read_opts((char *)(uintptr_t)text.p, text.n,
                                     YYJSON_READ_BIGNUM_AS_RAW, NULL, &why);
  memset(out, 0, sizeof(*out));
  if (!doc) {
    return weir_error_set(err, WEIR_E_CORRUPT, 0,
                          "%s: the schema is not JSON: %s at byte %zu", where, why.msg,
                          why.pos);
  }
  yyjson_val *root = yyjson_doc_get_root(doc);
  weir_status status =
      yyjson_equals_str(yyjson_obj_get(root, "type"), "struct")
          ? read_type(&r, root, 0, &out->root, err)
          : weir_error_set(err, WEIR_E_CORRUPT, 0, "%s: the schema is no struct", where);
  yyjson_doc_free(doc);
  return status;
}

const delta_column *delta_schema_find(const delta_schema *schema, const char *name) {
  for (size_t i = 0; i < schema->root.n_children; i++) {
    if (strcmp(schema->root.children[i].name, name) == 0)
      return &schema->root.children[i];
  }
  return NULL;
}
