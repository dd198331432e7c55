/* SPDX-License-Identifier: Apache-2.0 */
/* The table's schema and Arrow's: which types go together, what the files' schema is, and the schema of a new table. */
#include <nanoarrow/nanoarrow.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <yyjson.h>

#include "schema.h"

static int timestamp_type(const char *format) {
  if (strncmp(format, "tsu:", 4) != 0) return 0;
  return format[4] ? DELTA_TYPE_TIMESTAMP : DELTA_TYPE_TIMESTAMP_NTZ;
}

static int decimal_type(const char *format, int *precision, int *scale) {
  if (strncmp(format, "d:", 2) != 0) return 0;
  const char *at = format + 2;
  if (!delta_small_number(&at, precision) || *at++ != ',') return 0;
  if (!delta_small_number(&at, scale)) return 0;
  bool fits = (*at == '\0' || strcmp(at, ",128") == 0) && *precision >= 1 &&
              *precision <= 38 && *scale <= *precision;
  return fits ? DELTA_TYPE_DECIMAL : 0;
}

int delta_type_of_arrow(const struct ArrowSchema *field, int *precision, int *scale) {
  const char *f = field->dictionary ? field->dictionary->format : field->format;
  static const struct {
    const char *format;
    int type;
  } plain[] = {
      {"u", DELTA_TYPE_STRING},  {"U", DELTA_TYPE_STRING}, {"vu", DELTA_TYPE_STRING},
      {"z", DELTA_TYPE_BINARY},  {"Z", DELTA_TYPE_BINARY}, {"vz", DELTA_TYPE_BINARY},
      {"c", DELTA_TYPE_BYTE},    {"s", DELTA_TYPE_SHORT},  {"i", DELTA_TYPE_INTEGER},
      {"l", DELTA_TYPE_LONG},    {"f", DELTA_TYPE_FLOAT},  {"g", DELTA_TYPE_DOUBLE},
      {"b", DELTA_TYPE_BOOLEAN}, {"tdD", DELTA_TYPE_DATE}, {"+s", DELTA_TYPE_STRUCT},
      {"+l", DELTA_TYPE_ARRAY},  {"+L", DELTA_TYPE_ARRAY}, {"+m", DELTA_TYPE_MAP},
  };
  *precision = *scale = 0;
  if (field->dictionary && (f[0] == '+' || field->dictionary->dictionary)) return 0;
  for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
    if (strcmp(f, plain[i].format) == 0) return plain[i].type;
  }
  if (strncmp(f, "w:", 2) == 0) return DELTA_TYPE_BINARY;
  if (f[0] == 'd') return decimal_type(f, precision, scale);
  return timestamp_type(f);
}

static const char *type_name(const delta_column *column, char *buf, size_t size) {
  static const char *const names[] = {[DELTA_TYPE_STRING] = "string",
                                      [DELTA_TYPE_LONG] = "long",
                                      [DELTA_TYPE_INTEGER] = "integer",
                                      [DELTA_TYPE_SHORT] = "short",
                                      [DELTA_TYPE_BYTE] = "byte",
                                      [DELTA_TYPE_FLOAT] = "float",
                                      [DELTA_TYPE_DOUBLE] = "double",
                                      [DELTA_TYPE_BOOLEAN] = "boolean",
                                      [DELTA_TYPE_BINARY] = "binary",
                                      [DELTA_TYPE_DATE] = "date",
                                      [DELTA_TYPE_TIMESTAMP] = "timestamp",
                                      [DELTA_TYPE_TIMESTAMP_NTZ] = "timestamp_ntz",
                                      [DELTA_TYPE_VOID] = "void",
                                      [DELTA_TYPE_DECIMAL] = "decimal",
                                      [DELTA_TYPE_STRUCT] = "struct",
                                      [DELTA_TYPE_ARRAY] = "array",
                                      [DELTA_TYPE_MAP] = "map"};
  if (column->type != DELTA_TYPE_DECIMAL) return names[column->type];
  snprintf(buf, size, "decimal(%d,%d)", column->precision, column->scale);
  return buf;
}

/* ---- match -------------------------------------------------------------------------------------- */

/* The Arrow fields that stand for a column's children: those of a map lie in its entries. */
static struct ArrowSchema *const *arrow_children(const struct ArrowSchema *field,
                                                 int type, int64_t *n) {
  const struct ArrowSchema *of = type == DELTA_TYPE_MAP ? field->children[0] : field;
  *n = of->n_children;
  return of->children;
}

static weir_status match_field(const delta_column *column,
                               const struct ArrowSchema *field, const char *path,
                               const char *where, weir_error *err);

/* A struct's fields by name; `what` is the struct's path with its dot, or empty at the top. */
static weir_status match_struct(const delta_column *column,
                                struct ArrowSchema *const *fields, int64_t n,
                                const char *what, const char *where, weir_error *err) {
  char path[256];
  for (int64_t i = 0; i < n; i++) {
    const char *name = fields[i]->name ? fields[i]->name : "";
    const delta_column *found = NULL, *close = NULL;
    for (size_t j = 0; j < column->n_children; j++) {
      if (strcmp(column->children[j].name, name) == 0) found = &column->children[j];
      if (strcasecmp(column->children[j].name, name) == 0) close = &column->children[j];
    }
    snprintf(path, sizeof(path), "%s%s", what, name);
    if (!found) {
      return weir_error_set(err, WEIR_E_SCHEMA, 0, "%s has no column '%s'%s%s%s", where,
                            path, close ? ", but one named '" : "",
                            close ? close->name : "", close ? "'" : "");
    }
    for (int64_t j = 0; j < i; j++) {
      if (fields[j]->name && strcmp(fields[j]->name, name) == 0)
        return weir_error_set(err, WEIR_E_SCHEMA, 0, "two columns are named '%s'", path);
    }
    DELTA_TRY(match_field(found, fields[i], path, where, err));
  }
  for (size_t j = 0; j < column->n_children; j++) {
    const delta_column *child = &column->children[j];
    bool there = child->nullable && !child->has_default;
    for (int64_t i = 0; i < n && !there; i++)
      there = fields[i]->name && strcmp(fields[i]->name, child->name) == 0;
    if (there) continue;
    return weir_error_set(err, WEIR_E_SCHEMA, 0,
                          "column '%s%s' of %s %s, but the input lacks it", what,
                          child->name, where,
                          child->nullable ? "has a default, which weir cannot compute"
                                          : "must not be null");
  }
  return WEIR_OK;
}

static weir_status match_field(const delta_column *column,
                               const struct ArrowSchema *field, const char *path,
                               const char *where, weir_error *err) {
  int precision = 0, scale = 0;
  int type = delta_type_of_arrow(field, &precision, &scale);
  if (type != column->type || precision != column->precision || scale != column->scale) {
    char want[32], got[160];
    weir_type_format(field, got, sizeof(got));
    return weir_error_set(err, WEIR_E_SCHEMA, 0,
                          "column '%s' is %s, but %s has it as %s: cast it", path, got,
                          where, type_name(column, want, sizeof(want)));
  }
  if ((field->flags & ARROW_FLAG_NULLABLE) && !column->nullable) {
    return weir_error_set(err, WEIR_E_SCHEMA, 0,
                          "column '%s' may be null, but not in %s: declare it 'not null'",
                          path, where);
  }
  char below[256];
  int64_t n = 0;
  if (type < DELTA_TYPE_STRUCT) return WEIR_OK;
  struct ArrowSchema *const *fields = arrow_children(field, type, &n);
  if (type == DELTA_TYPE_STRUCT) {
    snprintf(below, sizeof(below), "%s.", path);
    return match_struct(column, fields, n, below, where, err);
  }
  for (size_t i = 0; i < column->n_children; i++) {
    snprintf(below, sizeof(below), "%s.%s", path, column->children[i].name);
    DELTA_TRY(match_field(&column->children[i], fields[i], below, where, err));
  }
  return WEIR_OK;
}

weir_status delta_schema_match(const delta_schema *table, const struct ArrowSchema *input,
                               const char *where, weir_error *err) {
  return match_struct(&table->root, input->children, input->n_children, "", where, err);
}

/* ---- the files' schema -------------------------------------------------------------------------- */

/* Section "Writer Requirements for Column Mapping": physical names, and the id as Parquet's field_id. */
static weir_status map_field(const delta_column *column, struct ArrowSchema *field,
                             weir_error *err);

static weir_status set_id(struct ArrowSchema *field, int32_t id, weir_error *err) {
  struct ArrowBuffer metadata;
  char text[16];
  snprintf(text, sizeof(text), "%d", id);
  if (ArrowMetadataBuilderInit(&metadata, field->metadata)) return delta_no_memory(err);
  int code = ArrowMetadataBuilderSet(&metadata, ArrowCharView("PARQUET:field_id"),
                                     ArrowCharView(text));
  if (!code) code = ArrowSchemaSetMetadata(field, (const char *)metadata.data);
  ArrowBufferReset(&metadata);
  return code ? delta_no_memory(err) : WEIR_OK;
}

static weir_status map_children(const delta_column *column, struct ArrowSchema *field,
                                weir_error *err) {
  int64_t n = 0;
  struct ArrowSchema *const *fields = arrow_children(field, column->type, &n);
  for (int64_t i = 0; i < n; i++) {
    const delta_column *child = NULL;
    for (size_t j = 0; j < column->n_children && !child; j++) {
      if (column->type != DELTA_TYPE_STRUCT
              ? j == (size_t)i
              : strcmp(column->children[j].name, fields[i]->name) == 0)
        child = &column->children[j];
    }
    if (!child) return weir_error_set(err, WEIR_E_INTERNAL, 0, "an unmatched column");
    DELTA_TRY(map_field(child, fields[i], err));
  }
  return WEIR_OK;
}

static weir_status map_field(const delta_column *column, struct ArrowSchema *field,
                             weir_error *err) {
  if (column->id) {
    DELTA_TRY(set_id(field, column->id, err));
    if (ArrowSchemaSetName(field, column->physical)) return delta_no_memory(err);
  }
  return column->type >= DELTA_TYPE_STRUCT ? map_children(column, field, err) : WEIR_OK;
}

weir_status delta_schema_of_files(const delta_schema *table, const weir_schema *input,
                                  const delta_texts *partition_columns, int64_t *columns,
                                  int64_t *n_columns, weir_schema **out,
                                  weir_error *err) {
  const struct ArrowSchema *from = weir_schema_arrow(input);
  struct ArrowSchema made = {0};
  weir_schema *kept = NULL;
  int64_t n = 0;
  for (int64_t i = 0; i < from->n_children; i++) {
    if (!delta_texts_have(partition_columns, from->children[i]->name)) columns[n++] = i;
  }
  DELTA_TRY(weir_schema_select(input, columns, n, &kept, err));
  weir_status status = weir_schema_export(kept, &made, err);
  weir_schema_unref(kept);
  if (!status) status = map_children(&table->root, &made, err);
  if (!status) status = weir_schema_new(&made, out, err);
  if (made.release) made.release(&made);
  if (!status) *n_columns = n;
  return status;
}

/* ---- a new table's schema ----------------------------------------------------------------------- */

static yyjson_mut_val *write_type(yyjson_mut_doc *doc, const struct ArrowSchema *field,
                                  const char *path, bool *ntz, weir_error *err);

static void refuse_field(const struct ArrowSchema *field, const char *path,
                         weir_error *err) {
  char got[160];
  weir_type_format(field, got, sizeof(got));
  weir_error_set(err, WEIR_E_SCHEMA, 0,
                 "column '%s' is %s, for which Delta has no type: cast it (timestamps to "
                 "microseconds, unsigned integers to wider signed ones)",
                 path, got);
}

/* Without column mapping Spark refuses these in names, since Parquet writers did. */
static bool name_valid(const char *name) {
  return name && *name && !strpbrk(name, " ,;{}()\n\t=");
}

static yyjson_mut_val *write_fields(yyjson_mut_doc *doc, const struct ArrowSchema *of,
                                    const char *path, bool *ntz, weir_error *err) {
  yyjson_mut_val *object = yyjson_mut_obj(doc), *fields = NULL;
  if (yyjson_mut_obj_add_str(doc, object, "type", "struct"))
    fields = yyjson_mut_obj_add_arr(doc, object, "fields");
  for (int64_t i = 0; i < of->n_children; i++) {
    const struct ArrowSchema *field = of->children[i];
    char below[256];
    snprintf(below, sizeof(below), "%s%s%s", path, *path ? "." : "",
             field->name ? field->name : "");
    if (!name_valid(field->name)) {
      weir_error_set(err, WEIR_E_SCHEMA, 0,
                     "column '%s' cannot have this name in a Delta table without column "
                     "mapping: none of ' ,;{}()=', tab and line break",
                     below);
      return NULL;
    }
    for (int64_t j = 0; j < i; j++) {
      if (strcasecmp(of->children[j]->name, field->name) != 0) continue;
      weir_error_set(err, WEIR_E_SCHEMA, 0,
                     "columns '%s' and '%s' differ in case alone, which Delta does not "
                     "tell apart",
                     of->children[j]->name, field->name);
      return NULL;
    }
    yyjson_mut_val *type = write_type(doc, field, below, ntz, err);
    if (!type) return NULL;
    yyjson_mut_val *one = yyjson_mut_arr_add_obj(doc, fields);
    bool ok = yyjson_mut_obj_add_strcpy(doc, one, "name", field->name) &&
              yyjson_mut_obj_add_val(doc, one, "type", type) &&
              yyjson_mut_obj_add_bool(doc, one, "nullable",
                                      (field->flags & ARROW_FLAG_NULLABLE) != 0) &&
              yyjson_mut_obj_add_obj(doc, one, "metadata") != NULL;
    if (!ok) return NULL;
  }
  return fields ? object : NULL;
}

static yyjson_mut_val *write_nested(yyjson_mut_doc *doc, const struct ArrowSchema *field,
                                    int kind, const char *path, bool *ntz,
                                    weir_error *err) {
  bool map = kind == DELTA_TYPE_MAP;
  int64_t n = 0;
  struct ArrowSchema *const *parts = arrow_children(field, kind, &n);
  yyjson_mut_val *object = yyjson_mut_obj(doc);
  yyjson_mut_val *first = write_type(doc, parts[0], path, ntz, err);
  if (!first || !yyjson_mut_obj_add_str(doc, object, "type", map ? "map" : "array") ||
      !yyjson_mut_obj_add_val(doc, object, map ? "keyType" : "elementType", first))
    return NULL;
  if (map) {
    yyjson_mut_val *value = write_type(doc, parts[1], path, ntz, err);
    if (!value || !yyjson_mut_obj_add_val(doc, object, "valueType", value)) return NULL;
  }
  bool nulls = (parts[n - 1]->flags & ARROW_FLAG_NULLABLE) != 0;
  return yyjson_mut_obj_add_bool(doc, object, map ? "valueContainsNull" : "containsNull",
                                 nulls)
             ? object
             : NULL;
}

static yyjson_mut_val *write_type(yyjson_mut_doc *doc, const struct ArrowSchema *field,
                                  const char *path, bool *ntz, weir_error *err) {
  delta_column column = {0};
  char name[32];
  column.type = delta_type_of_arrow(field, &column.precision, &column.scale);
  if (!column.type) {
    refuse_field(field, path, err);
    return NULL;
  }
  if (column.type == DELTA_TYPE_TIMESTAMP_NTZ) *ntz = true;
  if (column.type == DELTA_TYPE_STRUCT) return write_fields(doc, field, path, ntz, err);
  if (column.type > DELTA_TYPE_STRUCT)
    return write_nested(doc, field, column.type, path, ntz, err);
  return yyjson_mut_strcpy(doc, type_name(&column, name, sizeof(name)));
}

weir_status delta_schema_write(const struct ArrowSchema *input, delta_arena *arena,
                               delta_text *out, bool *ntz, weir_error *err) {
  weir_error local = {0};
  yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
  *ntz = false;
  yyjson_mut_val *root = doc ? write_fields(doc, input, "", ntz, &local) : NULL;
  size_t size = 0;
  char *text = NULL;
  if (root) {
    yyjson_mut_doc_set_root(doc, root);
    text = yyjson_mut_write(doc, 0, &size);
  }
  yyjson_mut_doc_free(doc);
  bool ok = text && delta_text_copy(arena, (delta_text){text, size}, out);
  free(text);
  if (ok) return WEIR_OK;
  if (!local.code) return delta_no_memory(err);
  if (err) *err = local;
  return local.code;
}
