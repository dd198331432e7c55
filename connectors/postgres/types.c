/* SPDX-License-Identifier: Apache-2.0 */
#include "types.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/batch.h>

#include "column.h"

#define FLOAT_NOTE                                                                \
  "numeric: the fewest digits that give the float back; not into a numeric with " \
  "bounds; infinities need PostgreSQL 14"
#define TIME_NOTE                                                                       \
  "digits finer than microseconds must be zero, and the target must keep those of the " \
  "unit"

/* Length word and value. */
enum { R1 = 5, R2 = 6, R4 = 8, R8 = 12, R16 = 20, TEXT = 4, DIGITS = 80 };

/* The first of a type is what `create: true` makes; lists, dictionaries and runs have no rules of their own. */
static const pg_rule rules[] = {
#define T(type) NANOARROW_TYPE_##type
    {T(NA), 0, PG_OTHER, 4, pg_put_nothing, NULL},
    {T(BOOL), 0, PG_BOOL, R1, pg_put_bool, NULL},
    {T(INT8), 0, PG_INT2, R2, pg_put_i8_2, NULL},
    {T(INT8), 0, PG_INT4, R4, pg_put_i8_4, NULL},
    {T(INT8), 0, PG_INT8, R8, pg_put_i8_8, NULL},
    {T(INT8), 0, PG_NUMERIC, DIGITS, pg_put_num_i8, NULL},
    {T(INT16), 0, PG_INT2, R2, pg_put_i16_2, NULL},
    {T(INT16), 0, PG_INT4, R4, pg_put_i16_4, NULL},
    {T(INT16), 0, PG_INT8, R8, pg_put_i16_8, NULL},
    {T(INT16), 0, PG_NUMERIC, DIGITS, pg_put_num_i16, NULL},
    {T(INT32), 0, PG_INT4, R4, pg_put_i32_4, NULL},
    {T(INT32), 0, PG_INT8, R8, pg_put_i32_8, NULL},
    {T(INT32), 0, PG_NUMERIC, DIGITS, pg_put_num_i32, NULL},
    {T(INT64), 0, PG_INT8, R8, pg_put_i64_8, NULL},
    {T(INT64), 0, PG_NUMERIC, DIGITS, pg_put_num_i64, NULL},
    {T(UINT8), 0, PG_INT2, R2, pg_put_u8_2, NULL},
    {T(UINT8), 0, PG_INT4, R4, pg_put_u8_4, NULL},
    {T(UINT8), 0, PG_INT8, R8, pg_put_u8_8, NULL},
    {T(UINT8), 0, PG_NUMERIC, DIGITS, pg_put_num_u8, NULL},
    {T(UINT16), 0, PG_INT4, R4, pg_put_u16_4, NULL},
    {T(UINT16), 0, PG_INT8, R8, pg_put_u16_8, NULL},
    {T(UINT16), 0, PG_NUMERIC, DIGITS, pg_put_num_u16, NULL},
    {T(UINT32), 0, PG_INT8, R8, pg_put_u32_8, NULL},
    {T(UINT32), 0, PG_NUMERIC, DIGITS, pg_put_num_u32, NULL},
    {T(UINT64), 0, PG_NUMERIC, DIGITS, pg_put_num_u64, NULL},
    {T(HALF_FLOAT), 0, PG_FLOAT4, R4, pg_put_f16_4, NULL},
    {T(HALF_FLOAT), 0, PG_FLOAT8, R8, pg_put_f16_8, NULL},
    {T(HALF_FLOAT), 0, PG_NUMERIC, DIGITS, pg_put_num_f16, NULL},
    {T(FLOAT), 0, PG_FLOAT4, R4, pg_put_f32_4, NULL},
    {T(FLOAT), 0, PG_FLOAT8, R8, pg_put_f32_8, NULL},
    {T(FLOAT), 0, PG_NUMERIC, DIGITS, pg_put_num_f32, NULL},
    {T(DOUBLE), 0, PG_FLOAT8, R8, pg_put_f64_8, NULL},
    {T(DOUBLE), 0, PG_NUMERIC, DIGITS, pg_put_num_f64, NULL},
    {T(DECIMAL32), 0, PG_NUMERIC, DIGITS, pg_put_decimal, NULL},
    {T(DECIMAL64), 0, PG_NUMERIC, DIGITS, pg_put_decimal, NULL},
    {T(DECIMAL128), 0, PG_NUMERIC, DIGITS, pg_put_decimal, NULL},
    {T(DECIMAL256), 0, PG_NUMERIC, DIGITS, pg_put_decimal, NULL},
#define TEXTS(type, put)                                                \
  {T(type), 0, PG_TEXT, TEXT, put, pg_check_text},                      \
      {T(type), 0, PG_UUID, R16, pg_put_uuid_text, pg_check_uuid_text}, \
      {T(type), 0, PG_JSON, TEXT, put, pg_check_text}, {                \
    T(type), 0, PG_JSONB, TEXT + 1, pg_put_text_jsonb, pg_check_text    \
  }
    TEXTS(STRING, pg_put_text),
    TEXTS(LARGE_STRING, pg_put_large),
    TEXTS(STRING_VIEW, pg_put_view),
    {T(BINARY), 0, PG_BYTEA, TEXT, pg_put_text, NULL},
    {T(LARGE_BINARY), 0, PG_BYTEA, TEXT, pg_put_large, NULL},
    {T(BINARY_VIEW), 0, PG_BYTEA, TEXT, pg_put_view, NULL},
    {T(FIXED_SIZE_BINARY), 0, PG_BYTEA, TEXT, pg_put_fixed, NULL},
    {T(FIXED_SIZE_BINARY), 0, PG_UUID, R16, pg_put_fixed, NULL},
    {T(DATE32), 0, PG_DATE, R4, pg_put_date32, pg_check_time32},
    {T(DATE64), 0, PG_DATE, R4, pg_put_date64, pg_check_time64},
    {T(TIME32), 0, PG_TIME, R8, pg_put_time32, pg_check_time32},
    {T(TIME64), 0, PG_TIME, R8, pg_put_time64, pg_check_time64},
    {T(TIMESTAMP), -1, PG_TIMESTAMP, R8, pg_put_timestamp, pg_check_time64},
    {T(TIMESTAMP), 1, PG_TIMESTAMPTZ, R8, pg_put_timestamp, pg_check_time64},
    {T(DURATION), 0, PG_INTERVAL, R16, pg_put_duration, pg_check_time64},
    {T(INTERVAL_MONTHS), 0, PG_INTERVAL, R16, pg_put_months, NULL},
    {T(INTERVAL_DAY_TIME), 0, PG_INTERVAL, R16, pg_put_day_time, NULL},
    {T(INTERVAL_MONTH_DAY_NANO), 0, PG_INTERVAL, R16, pg_put_month_day_nano,
     pg_check_month_day_nano},
#undef TEXTS
#undef T
};

/* By pg_kind: names in pg_catalog, the first of each the type that is meant by the kind. */
static const struct kind_name {
  const char *typname;
  pg_kind kind;
  const char *name;
} kind_names[] = {
    {"bool", PG_BOOL, "boolean"},
    {"int2", PG_INT2, "smallint"},
    {"int4", PG_INT4, "integer"},
    {"int8", PG_INT8, "bigint"},
    {"float4", PG_FLOAT4, "real"},
    {"float8", PG_FLOAT8, "double precision"},
    {"numeric", PG_NUMERIC, "numeric"},
    {"text", PG_TEXT, "text"},
    {"varchar", PG_TEXT, "varchar"},
    {"bpchar", PG_TEXT, "char"},
    {"bytea", PG_BYTEA, "bytea"},
    {"uuid", PG_UUID, "uuid"},
    {"date", PG_DATE, "date"},
    {"time", PG_TIME, "time"},
    {"timestamp", PG_TIMESTAMP, "timestamp"},
    {"timestamptz", PG_TIMESTAMPTZ, "timestamptz"},
    {"interval", PG_INTERVAL, "interval"},
    {"json", PG_JSON, "json"},
    {"jsonb", PG_JSONB, "jsonb"},
};

pg_kind pg_kind_of(const char *typname) {
  for (size_t i = 0; i < PG_COUNT(kind_names); i++)
    if (strcmp(kind_names[i].typname, typname) == 0) return kind_names[i].kind;
  return PG_OTHER;
}

const char *pg_kind_name(pg_kind kind) {
  for (size_t i = 0; i < PG_COUNT(kind_names); i++)
    if (kind_names[i].kind == kind) return kind_names[i].name;
  return "any";
}

bool pg_type_is_list(enum ArrowType type) {
  return type == NANOARROW_TYPE_LIST || type == NANOARROW_TYPE_LARGE_LIST ||
         type == NANOARROW_TYPE_FIXED_SIZE_LIST || type == NANOARROW_TYPE_LIST_VIEW ||
         type == NANOARROW_TYPE_LARGE_LIST_VIEW;
}

bool pg_type_is_nested(enum ArrowType type) {
  return pg_type_is_list(type) || type == NANOARROW_TYPE_STRUCT ||
         type == NANOARROW_TYPE_MAP;
}

const struct ArrowSchema *pg_field_values(const struct ArrowSchema *field) {
  for (;;) {
    if (field->dictionary) {
      field = field->dictionary;
    } else if (strcmp(field->format, "+r") == 0) {
      field = field->children[1];
    } else {
      return field;
    }
  }
}

static bool has_zone(const struct ArrowSchemaView *view) {
  return view->timezone && *view->timezone;
}

static bool rule_fits(const pg_rule *rule, const struct ArrowSchemaView *view) {
  return rule->from == view->type && (!rule->zone || (rule->zone > 0) == has_zone(view));
}

const pg_rule *pg_rule_find(const struct ArrowSchemaView *view, pg_kind to) {
  for (size_t i = 0; i < PG_COUNT(rules); i++)
    if (rule_fits(&rules[i], view) &&
        (rules[i].to == to || view->type == NANOARROW_TYPE_NA))
      return &rules[i];
  return NULL;
}

/* ---- admission ------------------------------------------------------------------------------------------ */

static weir_status view_of(const struct ArrowSchema *field, struct ArrowSchemaView *view,
                           weir_error *err) {
  struct ArrowError arrow;
  if (ArrowSchemaViewInit(view, field, &arrow) == NANOARROW_OK) return WEIR_OK;
  return weir_error_set(err, WEIR_E_SCHEMA, 0, "%s", arrow.message);
}

/* "bigint, numeric", of what the field may go into. */
static void list_accepted(const struct ArrowSchemaView *view, char *out, size_t size) {
  size_t n = 0;
  out[0] = 0;
  for (size_t i = 0; i < PG_COUNT(rules) && n < size; i++) {
    if (!rule_fits(&rules[i], view)) continue;
    int more =
        snprintf(out + n, size - n, "%s%s", n ? ", " : "", pg_kind_name(rules[i].to));
    n += more > 0 ? (size_t)more : 0;
  }
  if (!n && pg_type_is_list(view->type))
    snprintf(out, size, "an array of what its items may go into, jsonb, json");
  if (!n && (view->type == NANOARROW_TYPE_STRUCT || view->type == NANOARROW_TYPE_MAP))
    snprintf(out, size, "jsonb, json");
}

static weir_status refuse(const struct ArrowSchema *field, const pg_type *to,
                          const char *why, weir_error *err) {
  char from[120];
  weir_type_format(field, from, sizeof(from));
  return weir_error_set(err, WEIR_E_SCHEMA, 0, "%s cannot go into type %s: %s", from,
                        to->name, why);
}

/* Digits before the point that all values of a type have at most, and after it. */
static void digits_of(const struct ArrowSchemaView *view, int32_t *before,
                      int32_t *after) {
  *after = 0;
  switch (view->type) {
    case NANOARROW_TYPE_INT8:
    case NANOARROW_TYPE_UINT8:
      *before = 3;
      break;
    case NANOARROW_TYPE_INT16:
    case NANOARROW_TYPE_UINT16:
      *before = 5;
      break;
    case NANOARROW_TYPE_INT32:
    case NANOARROW_TYPE_UINT32:
      *before = 10;
      break;
    case NANOARROW_TYPE_INT64:
      *before = 19;
      break;
    case NANOARROW_TYPE_UINT64:
      *before = 20;
      break;
    case NANOARROW_TYPE_DECIMAL32:
    case NANOARROW_TYPE_DECIMAL64:
    case NANOARROW_TYPE_DECIMAL128:
    case NANOARROW_TYPE_DECIMAL256:
      *before = view->decimal_precision - view->decimal_scale;
      *after = view->decimal_scale;
      break;
    default:
      *before = *after = 1 << 20;
  }
}

/* typmod of numeric(p, s): numeric.c, make_numeric_typmod. */
static weir_status check_numeric(const struct ArrowSchema *field,
                                 const struct ArrowSchemaView *view, const pg_type *to,
                                 weir_error *err) {
  int32_t before, after;
  if (to->typmod < 4) return WEIR_OK;
  int32_t precision = (to->typmod - 4) >> 16 & 0xffff;
  int32_t scale = (((to->typmod - 4) & 0x7ff) ^ 1024) - 1024;
  digits_of(view, &before, &after);
  if (after > scale)
    return refuse(field, to,
                  "it would be rounded; a column of type numeric without "
                  "bounds, or with more decimals, takes it",
                  err);
  if (before > precision - scale)
    return refuse(field, to,
                  "not all its values have room; a column of type numeric "
                  "without bounds, or with more digits, takes them",
                  err);
  return WEIR_OK;
}

/* Decimals of seconds: those of the unit must not be rounded away. */
static weir_status check_time(const struct ArrowSchema *field,
                              const struct ArrowSchemaView *view, const pg_type *to,
                              weir_error *err) {
  static const int digits[] = {0, 3, 6, 6};
  int32_t precision = to->typmod;
  if (to->kind == PG_INTERVAL && precision >= 0) {
    /* INTERVAL_TYPMOD: which fields are kept, and the precision, 0xFFFF for all. */
    if ((precision >> 16 & 0x7fff) != 0x7fff)
      return refuse(field, to, "fields would be dropped; a plain interval takes it", err);
    precision = (precision & 0xffff) == 0xffff ? -1 : precision & 0xffff;
  }
  int32_t unit = view->type == NANOARROW_TYPE_INTERVAL_MONTHS     ? 0
                 : view->type == NANOARROW_TYPE_INTERVAL_DAY_TIME ? 3
                 : view->type == NANOARROW_TYPE_INTERVAL_MONTH_DAY_NANO
                     ? 6
                     : digits[view->time_unit];
  if (precision < 0 || unit <= precision) return WEIR_OK;
  return refuse(field, to,
                "it would be rounded; a column with more decimals of seconds "
                "takes it",
                err);
}

static weir_status check_leaf(const struct ArrowSchema *field,
                              const struct ArrowSchemaView *view, const pg_type *to,
                              weir_error *err) {
  char accepted[160], why[220];
  if (view->type == NANOARROW_TYPE_NA) return WEIR_OK;
  if (!pg_rule_find(view, to->kind) || to->array) {
    list_accepted(view, accepted, sizeof(accepted));
    if (accepted[0]) {
      snprintf(why, sizeof(why), "expected %s", accepted);
    } else {
      snprintf(why, sizeof(why), "PostgreSQL has no type for it");
    }
    return refuse(field, to, why, err);
  }
  switch (to->kind) {
    case PG_NUMERIC:
      return check_numeric(field, view, to, err);
    case PG_TIME:
    case PG_TIMESTAMP:
    case PG_TIMESTAMPTZ:
    case PG_INTERVAL:
      return check_time(field, view, to, err);
    case PG_UUID:
      if (view->type != NANOARROW_TYPE_FIXED_SIZE_BINARY || view->fixed_size == 16)
        return WEIR_OK;
      return refuse(field, to, "a UUID has 16 bytes", err);
    default:
      return WEIR_OK;
  }
}

weir_status pg_type_check(const struct ArrowSchema *field, const pg_type *to,
                          weir_error *err) {
  struct ArrowSchemaView view;
  const struct ArrowSchema *values = pg_field_values(field);
  PG_TRY(view_of(values, &view, err));
  if (to->array && pg_type_is_list(view.type)) {
    pg_type item = *to;
    struct ArrowSchemaView under;
    item.array = false;
    PG_TRY(view_of(pg_field_values(values->children[0]), &under, err));
    if (pg_type_is_nested(under.type))
      return refuse(field, to, "lists of nested values go into jsonb or json", err);
    return pg_type_check(values->children[0], &item, err);
  }
  if (!to->array && (to->kind == PG_JSON || to->kind == PG_JSONB) &&
      pg_type_is_nested(view.type))
    return WEIR_OK;
  return check_leaf(field, &view, to, err);
}

/* ---- creation ------------------------------------------------------------------------------------------- */

static bool has_extension(const struct ArrowSchemaView *view, const char *name) {
  size_t size = strlen(name);
  return view->extension_name.data && view->extension_name.size_bytes == (int64_t)size &&
         memcmp(view->extension_name.data, name, size) == 0;
}

weir_status pg_type_create(const struct ArrowSchema *field, char *out, size_t size,
                           weir_error *err) {
  struct ArrowSchemaView view;
  char from[120], item[80];
  const struct ArrowSchema *values = pg_field_values(field);
  PG_TRY(view_of(values, &view, err));
  if (pg_type_is_list(view.type)) {
    struct ArrowSchemaView under;
    PG_TRY(view_of(pg_field_values(values->children[0]), &under, err));
    if (!pg_type_is_nested(under.type)) {
      PG_TRY(pg_type_create(values->children[0], item, sizeof(item), err));
      snprintf(out, size, "%s[]", item);
      return WEIR_OK;
    }
  }
  const char *name = NULL;
  if (pg_type_is_nested(view.type)) name = "jsonb";
  if (has_extension(&view, "arrow.json")) name = "jsonb";
  if (has_extension(&view, "arrow.uuid") && view.fixed_size == 16) name = "uuid";
  for (size_t i = 0; !name && i < PG_COUNT(rules); i++)
    if (rule_fits(&rules[i], &view) && rules[i].to) name = pg_kind_name(rules[i].to);
  if (!name) {
    weir_type_format(field, from, sizeof(from));
    return weir_error_set(err, WEIR_E_SCHEMA, 0,
                          "a table cannot be created for %s, which has no type of "
                          "PostgreSQL's; create it by hand, or leave the column out",
                          from);
  }
  if (view.type == NANOARROW_TYPE_UINT64) name = "numeric(20,0)";
  if (strcmp(name, "numeric") == 0) { /* a decimal's */
    /* A scale outside 0 to the precision is for PostgreSQL 15 and later alone. */
    int32_t scale = view.decimal_scale > 0 ? view.decimal_scale : 0;
    int32_t precision = view.decimal_precision + scale - view.decimal_scale;
    snprintf(out, size, "numeric(%d,%d)", precision > scale ? precision : scale, scale);
  } else {
    snprintf(out, size, "%s", name);
  }
  return WEIR_OK;
}

/* ---- the page ------------------------------------------------------------------------------------------- */

static const struct page_row {
  enum ArrowType type; /* whose rules are listed */
  int32_t zone;
  const char *name;
  const char *note;
} page[] = {
    {NANOARROW_TYPE_NA, 0, "null",
     "any type; each value is NULL; no table can be created for it"},
    {NANOARROW_TYPE_BOOL, 0, "bool", ""},
    {NANOARROW_TYPE_INT8, 0, "int8", ""},
    {NANOARROW_TYPE_INT16, 0, "int16", ""},
    {NANOARROW_TYPE_INT32, 0, "int32", ""},
    {NANOARROW_TYPE_INT64, 0, "int64", ""},
    {NANOARROW_TYPE_UINT8, 0, "uint8", ""},
    {NANOARROW_TYPE_UINT16, 0, "uint16", ""},
    {NANOARROW_TYPE_UINT32, 0, "uint32", ""},
    {NANOARROW_TYPE_UINT64, 0, "uint64", "created as numeric(20,0)"},
    {NANOARROW_TYPE_HALF_FLOAT, 0, "float16", FLOAT_NOTE},
    {NANOARROW_TYPE_FLOAT, 0, "float32", FLOAT_NOTE},
    {NANOARROW_TYPE_DOUBLE, 0, "float64", FLOAT_NOTE},
    {NANOARROW_TYPE_DECIMAL128, 0, "decimal32, decimal64, decimal128, decimal256",
     "exact, with the scale shown; created with precision and scale"},
    {NANOARROW_TYPE_STRING, 0, "utf8, large_utf8, utf8_view",
     "text: also varchar, char, enums and whatever else of the target receives text; a "
     "value longer than varchar(n) lets in is bad data, also when it "
     "only ends in blanks; NUL is bad data; extension arrow.json is created as jsonb"},
    {NANOARROW_TYPE_BINARY, 0, "binary, large_binary, binary_view", ""},
    {NANOARROW_TYPE_FIXED_SIZE_BINARY, 0, "fixed_size_binary",
     "uuid: of 16 bytes; extension arrow.uuid is created as uuid"},
    {NANOARROW_TYPE_DATE32, 0, "date32, date64", "date64: whole days"},
    {NANOARROW_TYPE_TIME64, 0, "time32, time64", TIME_NOTE},
    {NANOARROW_TYPE_TIMESTAMP, -1, "timestamp[unit]", TIME_NOTE},
    {NANOARROW_TYPE_TIMESTAMP, 1, "timestamp[unit, zone]", TIME_NOTE},
    {NANOARROW_TYPE_DURATION, 0, "duration", TIME_NOTE},
    {NANOARROW_TYPE_INTERVAL_MONTH_DAY_NANO, 0,
     "interval_months, interval_day_time, interval_month_day_nano", TIME_NOTE},
    {NANOARROW_TYPE_LIST, 0,
     "list, large_list, list_view, large_list_view, fixed_size_list",
     "items as above; with nested items jsonb, json"},
    {NANOARROW_TYPE_STRUCT, 0, "struct, map", "as the NDJSON writer puts them"},
};

/* Each kind that a rule gives, with the one that is created first. */
static void list_page(const struct page_row *row, char *out, size_t size) {
  struct ArrowSchemaView view = {.type = row->type,
                                 .timezone = row->zone > 0 ? "UTC" : ""};
  list_accepted(&view, out, size);
}

char *pg_types_markdown(void) {
  enum { SIZE = 16384 };
  char accepted[160], *text = malloc(SIZE);
  if (!text) return NULL;
  size_t n = (size_t)snprintf(text, SIZE, "| Arrow | PostgreSQL | |\n|---|---|---|\n");
  for (size_t i = 0; i < PG_COUNT(page) && n < SIZE; i++) {
    list_page(&page[i], accepted, sizeof(accepted));
    n += (size_t)snprintf(text + n, SIZE - n, "| %s | %s | %s |\n", page[i].name,
                          accepted, page[i].note);
  }
  return text;
}
