/* SPDX-License-Identifier: Apache-2.0 */
#include "leaf.h"

#include <inttypes.h>
#include <stdio.h>

/* One row a type that needs nothing but constants. */
typedef struct simple_row {
  enum ArrowType arrow;
  enum leaf_take take;
  enum parquet_type type;
  uint8_t width, whole, utf8;
  enum parquet_order order;
  int8_t int_bits, int_signed; /* 0: no INTEGER annotation */
  int16_t converted;
  uint8_t logical; /* 0: none */
} simple_row;

#define NO PARQUET_CONVERTED_NONE
static const simple_row simple_rows[] = {
    {NANOARROW_TYPE_NA, TAKE_NOTHING, PARQUET_INT32, 4, 0, 0, ORDER_NONE, 0, 0, NO,
     PARQUET_LOGICAL_UNKNOWN},
    {NANOARROW_TYPE_BOOL, TAKE_BITS, PARQUET_BOOLEAN, 0, 0, 0, ORDER_BOOL, 0, 0, NO, 0},
    {NANOARROW_TYPE_INT8, TAKE_INT8, PARQUET_INT32, 4, 1, 0, ORDER_INT32, 8, 1,
     PARQUET_CONVERTED_INT_8, PARQUET_LOGICAL_INTEGER},
    {NANOARROW_TYPE_UINT8, TAKE_UINT8, PARQUET_INT32, 4, 1, 0, ORDER_UINT32, 8, 0,
     PARQUET_CONVERTED_UINT_8, PARQUET_LOGICAL_INTEGER},
    {NANOARROW_TYPE_INT16, TAKE_INT16, PARQUET_INT32, 4, 1, 0, ORDER_INT32, 16, 1,
     PARQUET_CONVERTED_INT_16, PARQUET_LOGICAL_INTEGER},
    {NANOARROW_TYPE_UINT16, TAKE_UINT16, PARQUET_INT32, 4, 1, 0, ORDER_UINT32, 16, 0,
     PARQUET_CONVERTED_UINT_16, PARQUET_LOGICAL_INTEGER},
    {NANOARROW_TYPE_INT32, TAKE_COPY, PARQUET_INT32, 4, 1, 0, ORDER_INT32, 0, 0, NO, 0},
    {NANOARROW_TYPE_UINT32, TAKE_COPY, PARQUET_INT32, 4, 1, 0, ORDER_UINT32, 32, 0,
     PARQUET_CONVERTED_UINT_32, PARQUET_LOGICAL_INTEGER},
    {NANOARROW_TYPE_INT64, TAKE_COPY, PARQUET_INT64, 8, 1, 0, ORDER_INT64, 0, 0, NO, 0},
    {NANOARROW_TYPE_UINT64, TAKE_COPY, PARQUET_INT64, 8, 1, 0, ORDER_UINT64, 64, 0,
     PARQUET_CONVERTED_UINT_64, PARQUET_LOGICAL_INTEGER},
    {NANOARROW_TYPE_HALF_FLOAT, TAKE_COPY, PARQUET_FIXED, 2, 0, 0, ORDER_HALF, 0, 0, NO,
     PARQUET_LOGICAL_FLOAT16},
    {NANOARROW_TYPE_FLOAT, TAKE_COPY, PARQUET_FLOAT, 4, 0, 0, ORDER_FLOAT, 0, 0, NO, 0},
    {NANOARROW_TYPE_DOUBLE, TAKE_COPY, PARQUET_DOUBLE, 8, 0, 0, ORDER_DOUBLE, 0, 0, NO,
     0},
    {NANOARROW_TYPE_DATE32, TAKE_COPY, PARQUET_INT32, 4, 1, 0, ORDER_INT32, 0, 0,
     PARQUET_CONVERTED_DATE, PARQUET_LOGICAL_DATE},
    {NANOARROW_TYPE_DATE64, TAKE_DATE64, PARQUET_INT32, 4, 1, 0, ORDER_INT32, 0, 0,
     PARQUET_CONVERTED_DATE, PARQUET_LOGICAL_DATE},
    /* No logical type: "ARROW:schema" gives the unit back. */
    {NANOARROW_TYPE_DURATION, TAKE_COPY, PARQUET_INT64, 8, 1, 0, ORDER_INT64, 0, 0, NO,
     0},
    {NANOARROW_TYPE_INTERVAL_MONTHS, TAKE_MONTHS, PARQUET_FIXED, 12, 0, 0, ORDER_NONE, 0,
     0, PARQUET_CONVERTED_INTERVAL, 0},
    {NANOARROW_TYPE_INTERVAL_DAY_TIME, TAKE_DAY_TIME, PARQUET_FIXED, 12, 0, 0, ORDER_NONE,
     0, 0, PARQUET_CONVERTED_INTERVAL, 0},
    {NANOARROW_TYPE_INTERVAL_MONTH_DAY_NANO, TAKE_MONTH_DAY_NANO, PARQUET_FIXED, 12, 0, 0,
     ORDER_NONE, 0, 0, PARQUET_CONVERTED_INTERVAL, 0},
    {NANOARROW_TYPE_STRING, TAKE_BYTES, PARQUET_BYTE_ARRAY, 0, 0, 1, ORDER_BYTES, 0, 0,
     PARQUET_CONVERTED_UTF8, PARQUET_LOGICAL_STRING},
    {NANOARROW_TYPE_LARGE_STRING, TAKE_BYTES, PARQUET_BYTE_ARRAY, 0, 0, 1, ORDER_BYTES, 0,
     0, PARQUET_CONVERTED_UTF8, PARQUET_LOGICAL_STRING},
    {NANOARROW_TYPE_STRING_VIEW, TAKE_VIEWS, PARQUET_BYTE_ARRAY, 0, 0, 1, ORDER_BYTES, 0,
     0, PARQUET_CONVERTED_UTF8, PARQUET_LOGICAL_STRING},
    {NANOARROW_TYPE_BINARY, TAKE_BYTES, PARQUET_BYTE_ARRAY, 0, 0, 0, ORDER_BYTES, 0, 0,
     NO, 0},
    {NANOARROW_TYPE_LARGE_BINARY, TAKE_BYTES, PARQUET_BYTE_ARRAY, 0, 0, 0, ORDER_BYTES, 0,
     0, NO, 0},
    {NANOARROW_TYPE_BINARY_VIEW, TAKE_VIEWS, PARQUET_BYTE_ARRAY, 0, 0, 0, ORDER_BYTES, 0,
     0, NO, 0},
};

static void set_logical(parquet_schema_element *element, int logical) {
  THRIFT_SET(element, 10);
  element->logical.has = 1u << logical;
}

static void set_converted(parquet_schema_element *element, int converted) {
  if (converted == PARQUET_CONVERTED_NONE) return;
  THRIFT_SET(element, 6);
  element->converted_type = converted;
}

static bool init_simple(parquet_leaf *leaf, enum ArrowType type) {
  for (size_t i = 0; i < BASE_COUNT(simple_rows); i++) {
    const simple_row *row = &simple_rows[i];
    if (row->arrow != type) continue;
    leaf->take = row->take;
    leaf->type = row->type;
    leaf->width = row->width;
    leaf->whole = row->whole;
    leaf->utf8 = row->utf8;
    leaf->order = row->order;
    if (row->logical != 0) set_logical(&leaf->element, row->logical);
    set_converted(&leaf->element, row->converted);
    if (row->int_bits != 0) {
      parquet_integer_type *integer = &leaf->element.logical.integer;
      integer->has = 1u << 1 | 1u << 2;
      integer->bit_width = row->int_bits;
      integer->is_signed = (uint8_t)row->int_signed;
    }
    return true;
  }
  return false;
}

/* TIME and TIMESTAMP have no seconds, so those become milliseconds. The old annotations exist for
 * milli- and microseconds only, and say "adjusted to UTC" for timestamps. */
static void init_time(parquet_leaf *leaf, const struct ArrowSchemaView *view) {
  bool stamp = view->type == NANOARROW_TYPE_TIMESTAMP;
  bool utc = stamp && view->timezone != NULL && view->timezone[0] != '\0';
  bool four = view->type == NANOARROW_TYPE_TIME32;
  bool seconds = view->time_unit == NANOARROW_TIME_UNIT_SECOND;
  leaf->type = four ? PARQUET_INT32 : PARQUET_INT64;
  leaf->width = four ? 4 : 8;
  leaf->order = four ? ORDER_INT32 : ORDER_INT64;
  leaf->whole = true;
  leaf->take = !seconds ? TAKE_COPY : four ? TAKE_SECONDS32 : TAKE_SECONDS64;
  int unit = view->time_unit == NANOARROW_TIME_UNIT_NANO    ? PARQUET_UNIT_NANOS
             : view->time_unit == NANOARROW_TIME_UNIT_MICRO ? PARQUET_UNIT_MICROS
                                                            : PARQUET_UNIT_MILLIS;
  set_logical(&leaf->element, stamp ? PARQUET_LOGICAL_TIMESTAMP : PARQUET_LOGICAL_TIME);
  parquet_time_type *time = &leaf->element.logical.time;
  time->has = 1u << 1 | 1u << 2;
  time->is_adjusted_to_utc = utc;
  time->unit.has = 1u << unit;
  if (stamp && !utc) return;
  static const int converted[2][4] = {
      {0, PARQUET_CONVERTED_TIME_MILLIS, PARQUET_CONVERTED_TIME_MICROS, NO},
      {0, PARQUET_CONVERTED_TIMESTAMP_MILLIS, PARQUET_CONVERTED_TIMESTAMP_MICROS, NO}};
  set_converted(&leaf->element, converted[stamp][unit]);
}

/* Bytes that hold every number of `precision` digits with its sign: ceil((precision * log2 10 + 1) / 8). */
static uint32_t decimal_bytes(int32_t precision) {
  return ((uint32_t)precision * 3322u / 1000u + 2u + 7u) / 8u;
}

/* "DECIMAL": int32 up to 9 digits, int64 up to 18, else bytes. */
static weir_status init_decimal(parquet_leaf *leaf, const struct ArrowSchemaView *view,
                                weir_error *err) {
  int32_t precision = view->decimal_precision, scale = view->decimal_scale;
  if (scale < 0 || scale > precision) {
    weir_error_set(
        err, WEIR_E_NOT_IMPLEMENTED, 0,
        "column %d '%s': a decimal of precision %d and scale %d cannot be kept in "
        "Parquet, which wants a scale from 0 to the precision; cast it",
        (int)leaf->column, leaf->name, (int)precision, (int)scale);
    return weir_error_at(err, WEIR_E_NOT_IMPLEMENTED, -1, leaf->column);
  }
  bool native = leaf->source_width <= 8;
  uint32_t width = native            ? leaf->source_width
                   : precision <= 9  ? 4
                   : precision <= 18 ? 8
                                     : 0;
  leaf->take = native ? TAKE_COPY : TAKE_DECIMAL;
  leaf->type = width == 4 ? PARQUET_INT32 : width == 8 ? PARQUET_INT64 : PARQUET_FIXED;
  leaf->width = width != 0 ? width : decimal_bytes(precision);
  leaf->order = width == 4 ? ORDER_INT32 : width == 8 ? ORDER_INT64 : ORDER_DECIMAL;
  leaf->whole = width != 0;
  set_logical(&leaf->element, PARQUET_LOGICAL_DECIMAL);
  set_converted(&leaf->element, PARQUET_CONVERTED_DECIMAL);
  parquet_decimal_type *decimal = &leaf->element.logical.decimal;
  decimal->has = 1u << 1 | 1u << 2;
  decimal->scale = leaf->element.scale = scale;
  decimal->precision = leaf->element.precision = precision;
  THRIFT_SET(&leaf->element, 7);
  THRIFT_SET(&leaf->element, 8);
  return WEIR_OK;
}

weir_status leaf_refuse(const parquet_leaf *leaf, const char *why, weir_error *err) {
  char type[128];
  weir_type_format(leaf->node->schema, type, sizeof(type));
  weir_error_set(err, WEIR_E_NOT_IMPLEMENTED, 0, "column %d '%s' of type %s: %s",
                 (int)leaf->column, leaf->name, type, why);
  return weir_error_at(err, WEIR_E_NOT_IMPLEMENTED, -1, leaf->column);
}

static weir_status refuse(const parquet_leaf *leaf, weir_error *err) {
  return leaf_refuse(leaf, "this type has no Parquet mapping; cast it", err);
}

static weir_status init_values(parquet_leaf *leaf, weir_error *err) {
  struct ArrowSchemaView view;
  struct ArrowError detail = {{0}};
  if (ArrowSchemaViewInit(&view, leaf->values->schema, &detail) != 0) {
    return weir_error_set(err, WEIR_E_SCHEMA, 0, "column %d '%s': %s", (int)leaf->column,
                          leaf->name, detail.message);
  }
  if (init_simple(leaf, view.type)) return WEIR_OK;
  switch (view.type) {
    case NANOARROW_TYPE_TIME32:
    case NANOARROW_TYPE_TIME64:
    case NANOARROW_TYPE_TIMESTAMP:
      init_time(leaf, &view);
      return WEIR_OK;
    case NANOARROW_TYPE_DECIMAL32:
    case NANOARROW_TYPE_DECIMAL64:
    case NANOARROW_TYPE_DECIMAL128:
    case NANOARROW_TYPE_DECIMAL256:
      return init_decimal(leaf, &view, err);
    case NANOARROW_TYPE_FIXED_SIZE_BINARY:
      if (view.fixed_size <= 0) return refuse(leaf, err);
      leaf->take = TAKE_COPY;
      leaf->type = PARQUET_FIXED;
      leaf->width = (uint32_t)view.fixed_size;
      leaf->order = ORDER_BYTES;
      return WEIR_OK;
    default:
      return refuse(leaf, err);
  }
}

weir_status leaf_init_values(parquet_leaf *leaf, weir_error *err) {
  leaf->values = leaf->node->dictionary != NULL ? leaf->node->dictionary : leaf->node;
  leaf->source_width = (uint32_t)leaf->values->width;
  if (leaf->values->dictionary != NULL || leaf->values->n_children > 0)
    return refuse(leaf, err);
  BASE_TRY(init_values(leaf, err));
  parquet_schema_element *element = &leaf->element;
  THRIFT_SET(element, 1);
  element->type = leaf->type;
  if (leaf->type != PARQUET_FIXED) return WEIR_OK;
  THRIFT_SET(element, 2);
  element->type_length = (int32_t)leaf->width;
  return WEIR_OK;
}
