/* SPDX-License-Identifier: Apache-2.0 */
/* A Schema table into a schema (Apache Arrow's format/Schema.fbs). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arrow/ipc.h"
#include "arrow/ipc_flat.h"

typedef struct schema_parser {
  size_t budget; /* bytes of names and metadata left */
  int64_t *ids;  /* of dictionaries, in the order the tree is walked */
  size_t n_ids, capacity;
  weir_error *err;
} schema_parser;

static weir_status corrupt(const schema_parser *p, const char *what) {
  return weir_error_set(p->err, WEIR_E_CORRUPT, 0, "schema: %s", what);
}

static weir_status from_errno(const schema_parser *p, int code) {
  return arrow_errno(p->err, code, "schema");
}

static weir_status spend(schema_parser *p, size_t bytes) {
  if (bytes > p->budget)
    return corrupt(p, "names and metadata are larger than the message");
  p->budget -= bytes;
  return WEIR_OK;
}

static weir_status parse_metadata(schema_parser *p, flat(KeyValue_vec_t) pairs,
                                  struct ArrowSchema *out) {
  struct ArrowBuffer buffer;
  size_t n = pairs == NULL ? 0 : flat(KeyValue_vec_len(pairs));
  if (n == 0) return WEIR_OK;
  weir_status status = from_errno(p, ArrowMetadataBuilderInit(&buffer, NULL));
  for (size_t i = 0; i < n && status == WEIR_OK; i++) {
    flat(KeyValue_table_t) pair = flat(KeyValue_vec_at(pairs, i));
    flatbuffers_string_t key = flat(KeyValue_key(pair)),
                         value = flat(KeyValue_value(pair));
    struct ArrowStringView k = {key == NULL ? "" : key,
                                key == NULL ? 0 : (int64_t)flatbuffers_string_len(key)};
    struct ArrowStringView v = {
        value == NULL ? "" : value,
        value == NULL ? 0 : (int64_t)flatbuffers_string_len(value)};
    status = spend(p, (size_t)k.size_bytes + (size_t)v.size_bytes + 8);
    if (status == WEIR_OK)
      status = from_errno(p, ArrowMetadataBuilderAppend(&buffer, k, v));
  }
  if (status == WEIR_OK)
    status = from_errno(p, ArrowSchemaSetMetadata(out, (const char *)buffer.data));
  ArrowBufferReset(&buffer);
  return status;
}

static const char *int_format(flat(Int_table_t) type) {
  bool is_signed = flat(Int_is_signed(type));
  switch (flat(Int_bitWidth(type))) {
    case 8:
      return is_signed ? "c" : "C";
    case 16:
      return is_signed ? "s" : "S";
    case 32:
      return is_signed ? "i" : "I";
    case 64:
      return is_signed ? "l" : "L";
    default:
      return NULL;
  }
}

static const char *unit_format(const char *const formats[4], int unit) {
  return unit < 0 || unit > 3 ? NULL : formats[unit];
}

static const char *time_format(flat(Time_table_t) type) {
  static const char *const formats[4] = {"tts", "ttm", "ttu", "ttn"};
  int unit = flat(Time_unit(type));
  if (flat(Time_bitWidth(type)) != (unit < 2 ? 32 : 64)) return NULL;
  return unit_format(formats, unit);
}

static const char *float_format(flat(FloatingPoint_table_t) type) {
  static const char *const formats[4] = {"e", "f", "g", NULL};
  return unit_format(formats, flat(FloatingPoint_precision(type)));
}

static const char *duration_format(flat(Duration_table_t) type) {
  static const char *const formats[4] = {"tDs", "tDm", "tDu", "tDn"};
  return unit_format(formats, flat(Duration_unit(type)));
}

static const char *interval_format(flat(Interval_table_t) type) {
  static const char *const formats[4] = {"tiM", "tiD", "tin", NULL};
  return unit_format(formats, flat(Interval_unit(type)));
}

static const char *date_format(flat(Date_table_t) type) {
  static const char *const formats[4] = {"tdD", "tdm", NULL, NULL};
  return unit_format(formats, flat(Date_unit(type)));
}

/* Types whose format is a constant; NULL for the others and for parameters out of range. */
static const char *fixed_format(int type, const void *table) {
  switch (type) {
    case flat(Type_Null):
      return "n";
    case flat(Type_Bool):
      return "b";
    case flat(Type_Int):
      return int_format(table);
    case flat(Type_FloatingPoint):
      return float_format(table);
    case flat(Type_Binary):
      return "z";
    case flat(Type_LargeBinary):
      return "Z";
    case flat(Type_BinaryView):
      return "vz";
    case flat(Type_Utf8):
      return "u";
    case flat(Type_LargeUtf8):
      return "U";
    case flat(Type_Utf8View):
      return "vu";
    case flat(Type_Date):
      return date_format(table);
    case flat(Type_Time):
      return time_format(table);
    case flat(Type_Duration):
      return duration_format(table);
    case flat(Type_Interval):
      return interval_format(table);
    case flat(Type_List):
      return "+l";
    case flat(Type_LargeList):
      return "+L";
    case flat(Type_ListView):
      return "+vl";
    case flat(Type_LargeListView):
      return "+vL";
    case flat(Type_Struct_):
      return "+s";
    case flat(Type_Map):
      return "+m";
    case flat(Type_RunEndEncoded):
      return "+r";
    default:
      return NULL;
  }
}

static weir_status timestamp_format(schema_parser *p, flat(Timestamp_table_t) type,
                                    base_buf *out) {
  static const char *const formats[4] = {"tss:", "tsm:", "tsu:", "tsn:"};
  const char *format = unit_format(formats, flat(Timestamp_unit(type)));
  flatbuffers_string_t zone = flat(Timestamp_timezone(type));
  if (format == NULL) return corrupt(p, "a timestamp of unknown unit");
  BASE_TRY(spend(p, zone == NULL ? 0 : flatbuffers_string_len(zone)));
  BASE_TRY(base_buf_append_str(out, format, p->err));
  return zone == NULL ? WEIR_OK : base_buf_append_str(out, zone, p->err);
}

/* Without type ids, they count from 0 in the order of the children (Schema.fbs, table Union). */
static weir_status union_format(schema_parser *p, flat(Union_table_t) type,
                                size_t children, base_buf *out) {
  flatbuffers_int32_vec_t ids = flat(Union_typeIds(type));
  size_t n = ids == NULL ? children : flatbuffers_int32_vec_len(ids);
  int mode = flat(Union_mode(type));
  if (n != children || n > 128 ||
      (mode != flat(UnionMode_Sparse) && mode != flat(UnionMode_Dense)))
    return corrupt(p, "a union whose mode or type ids make no sense");
  BASE_TRY(
      base_buf_append_str(out, mode == flat(UnionMode_Dense) ? "+ud:" : "+us:", p->err));
  for (size_t i = 0; i < n; i++) {
    int32_t id = ids == NULL ? (int32_t)i : flatbuffers_int32_vec_at(ids, i);
    BASE_TRY(base_buf_printf(out, p->err, "%s%" PRId32, i == 0 ? "" : ",", id));
  }
  return WEIR_OK;
}

/* The C data interface's format of the field's own type, dictionary encoding aside. */
static weir_status type_format(schema_parser *p, flat(Field_table_t) field,
                               size_t children, base_buf *out) {
  int type = flat(Field_type_type(field));
  const void *table = flat(Field_type(field));
  if (table == NULL) return corrupt(p, "a field without a type");
  switch (type) {
    case flat(Type_Timestamp):
      BASE_TRY(timestamp_format(p, table, out));
      break;
    case flat(Type_Union):
      BASE_TRY(union_format(p, table, children, out));
      break;
    case flat(Type_Decimal):
      BASE_TRY(base_buf_printf(out, p->err, "d:%" PRId32 ",%" PRId32 ",%" PRId32,
                               flat(Decimal_precision((flat(Decimal_table_t))table)),
                               flat(Decimal_scale((flat(Decimal_table_t))table)),
                               flat(Decimal_bitWidth((flat(Decimal_table_t))table))));
      if (base_ends_with((const char *)out->data, ",128")) out->size -= 4;
      break;
    case flat(Type_FixedSizeBinary):
      BASE_TRY(base_buf_printf(
          out, p->err, "w:%" PRId32,
          flat(FixedSizeBinary_byteWidth((flat(FixedSizeBinary_table_t))table))));
      break;
    case flat(Type_FixedSizeList):
      BASE_TRY(base_buf_printf(
          out, p->err, "+w:%" PRId32,
          flat(FixedSizeList_listSize((flat(FixedSizeList_table_t))table))));
      break;
    default: {
      const char *format = fixed_format(type, table);
      if (format == NULL)
        return weir_error_set(p->err, WEIR_E_CORRUPT, 0,
                              "schema: a field of unknown type or parameters (type %d)",
                              type);
      BASE_TRY(base_buf_append_str(out, format, p->err));
    }
  }
  return base_buf_terminate(out, p->err);
}

static weir_status push_id(schema_parser *p, int64_t id) {
  if (p->n_ids == p->capacity) {
    size_t capacity = p->capacity == 0 ? 8 : 2 * p->capacity;
    int64_t *ids = base_realloc(p->ids, capacity, sizeof *ids, p->err);
    if (ids == NULL) return WEIR_E_NOMEM;
    p->ids = ids;
    p->capacity = capacity;
  }
  p->ids[p->n_ids++] = id;
  return WEIR_OK;
}

/* Turns *out, a field of the index type, into one with a dictionary; *values gets its values. */
static weir_status start_dictionary(schema_parser *p,
                                    flat(DictionaryEncoding_table_t) encoding,
                                    struct ArrowSchema *out,
                                    struct ArrowSchema **values) {
  flat(Int_table_t) index = flat(DictionaryEncoding_indexType(encoding));
  /* Schema.fbs, table DictionaryEncoding: without an index type it is int32. */
  const char *format = index == NULL ? "i" : int_format(index);
  if (format == NULL) return corrupt(p, "a dictionary whose indices are not integers");
  BASE_TRY(push_id(p, flat(DictionaryEncoding_id(encoding))));
  BASE_TRY(from_errno(p, ArrowSchemaSetFormat(out, format)));
  if (flat(DictionaryEncoding_isOrdered(encoding)))
    out->flags |= ARROW_FLAG_DICTIONARY_ORDERED;
  BASE_TRY(from_errno(p, ArrowSchemaAllocateDictionary(out)));
  ArrowSchemaInit(out->dictionary);
  out->dictionary->flags = ARROW_FLAG_NULLABLE;
  *values = out->dictionary;
  return WEIR_OK;
}

static weir_status parse_field(schema_parser *p, flat(Field_table_t) field, int depth,
                               struct ArrowSchema *out);

static weir_status parse_type(schema_parser *p, flat(Field_table_t) field, int depth,
                              struct ArrowSchema *out) {
  base_buf format = {0};
  flat(Field_vec_t) children = flat(Field_children(field));
  size_t n = children == NULL ? 0 : flat(Field_vec_len(children));
  weir_status status = type_format(p, field, n, &format);
  if (status == WEIR_OK)
    status = from_errno(p, ArrowSchemaSetFormat(out, (char *)format.data));
  base_buf_done(&format);
  if (status == WEIR_OK) status = spend(p, n * 16);
  if (status == WEIR_OK)
    status = from_errno(p, ArrowSchemaAllocateChildren(out, (int64_t)n));
  for (size_t i = 0; i < n && status == WEIR_OK; i++)
    status = parse_field(p, flat(Field_vec_at(children, i)), depth + 1, out->children[i]);
  if (status != WEIR_OK || flat(Field_type_type(field)) != flat(Type_Map)) return status;
  if (flat(Map_keysSorted((flat(Map_table_t))flat(Field_type(field)))))
    out->flags |= ARROW_FLAG_MAP_KEYS_SORTED;
  if (n != 1 || out->children[0]->n_children != 2)
    return corrupt(p, "a map without keys and values");
  /* Some writers mark entries and keys nullable, which the format rules out. */
  out->children[0]->flags &= ~(int64_t)ARROW_FLAG_NULLABLE;
  out->children[0]->children[0]->flags &= ~(int64_t)ARROW_FLAG_NULLABLE;
  return WEIR_OK;
}

static weir_status parse_field(schema_parser *p, flat(Field_table_t) field, int depth,
                               struct ArrowSchema *out) {
  struct ArrowSchema *values = out;
  flatbuffers_string_t name = flat(Field_name(field));
  ArrowSchemaInit(out);
  if (depth > ARROW_MAX_DEPTH) return corrupt(p, "nested deeper than 64 levels");
  if (name != NULL && strlen(name) != flatbuffers_string_len(name))
    return corrupt(p, "a name with a NUL in it");
  BASE_TRY(spend(p, 16 + (name == NULL ? 0 : flatbuffers_string_len(name))));
  BASE_TRY(from_errno(p, ArrowSchemaSetName(out, name == NULL ? "" : name)));
  out->flags = flat(Field_nullable(field)) ? ARROW_FLAG_NULLABLE : 0;
  BASE_TRY(parse_metadata(p, flat(Field_custom_metadata(field)), out));
  if (flat(Field_dictionary(field)) != NULL)
    BASE_TRY(start_dictionary(p, flat(Field_dictionary(field)), out, &values));
  return parse_type(p, field, depth, values);
}

/* Walks the tree in the order in which parse_field met the dictionaries. */
static void place_ids(const arrow_tree *tree, const arrow_node *node,
                      const int64_t **next, int64_t *ids) {
  if (node->dictionary != NULL) {
    ids[node - tree->nodes] = *(*next)++;
    node = node->dictionary;
  }
  for (int64_t i = 0; i < node->n_children; i++)
    place_ids(tree, &node->children[i], next, ids);
}

static weir_status check_endianness(flat(Schema_table_t) table, weir_error *err) {
  if (flat(Schema_endianness(table)) == flat(Endianness_Little)) return WEIR_OK;
  return weir_error_set(
      err, WEIR_E_NOT_IMPLEMENTED, 0,
      "schema: big-endian data; weir reads little-endian only, which nearly every "
      "Arrow library can write");
}

weir_status ipc_schema_parse(const void *schema_table, size_t budget, ipc_schema *out,
                             weir_error *err) {
  schema_parser p = {.budget = 4096 + 8 * budget, .err = err};
  flat(Schema_table_t) table = schema_table;
  struct ArrowSchema root = {0};
  ipc_schema made = {0};
  flat(Field_vec_t) fields = flat(Schema_fields(table));
  size_t n = fields == NULL ? 0 : flat(Field_vec_len(fields));
  weir_status status = check_endianness(table, err);
  if (status != WEIR_OK) return status;
  ArrowSchemaInit(&root);
  BASE_GOTO(status, from_errno(&p, ArrowSchemaSetTypeStruct(&root, 0)));
  BASE_GOTO(status, from_errno(&p, ArrowSchemaSetName(&root, "")));
  root.flags = 0;
  BASE_GOTO(status, parse_metadata(&p, flat(Schema_custom_metadata(table)), &root));
  BASE_GOTO(status, from_errno(&p, ArrowSchemaAllocateChildren(&root, (int64_t)n)));
  for (size_t i = 0; i < n; i++)
    BASE_GOTO(status,
              parse_field(&p, flat(Field_vec_at(fields, i)), 1, root.children[i]));
  status = weir_schema_new(&root, &made.schema, err);
  if (status == WEIR_E_SCHEMA) {
    status = WEIR_E_CORRUPT;
    if (err != NULL) err->code = status;
    weir_error_prefix(err, status, "schema");
  }
  if (status != WEIR_OK) goto out;
  const arrow_tree *tree = &made.schema->tree;
  made.ids = base_calloc(tree->n, sizeof *made.ids, err);
  if (made.ids == NULL) {
    status = WEIR_E_NOMEM;
    goto out;
  }
  const int64_t *next = p.ids;
  place_ids(tree, &tree->nodes[0], &next, made.ids);
  *out = made;
  made = (ipc_schema){0};
out:
  if (root.release != NULL) ArrowSchemaRelease(&root);
  ipc_schema_done(&made);
  free(p.ids);
  return status;
}

void ipc_schema_done(ipc_schema *schema) {
  weir_schema_unref(schema->schema);
  free(schema->ids);
  *schema = (ipc_schema){0};
}
