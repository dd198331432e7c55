/* SPDX-License-Identifier: Apache-2.0 */
/* LogicalTypes.md, and the converted types that came before, as Arrow types. */
#include "leaf.h"
#include "read_schema.h"

/* What a leaf is annotated with, in one form. */
typedef struct annotation {
  uint32_t
      logical; /* 1 << PARQUET_LOGICAL_*; 0: nothing, or nothing that Arrow has a type for */
  bool interval; /* has no logical type */
  int32_t scale, precision;
  int32_t unit; /* PARQUET_UNIT_* */
  bool utc;
  int32_t bits;
  bool is_signed;
} annotation;

static annotation of_converted(const parquet_schema_element *element) {
  annotation a = {.scale = element->scale, .precision = element->precision};
  int32_t c = element->has >> 6 & 1 ? element->converted_type : PARQUET_CONVERTED_NONE;
  switch (c) {
    case PARQUET_CONVERTED_UTF8:
    case PARQUET_CONVERTED_ENUM:
    case PARQUET_CONVERTED_JSON:
      a.logical = 1u << PARQUET_LOGICAL_STRING;
      break;
    case PARQUET_CONVERTED_DECIMAL:
      a.logical = 1u << PARQUET_LOGICAL_DECIMAL;
      break;
    case PARQUET_CONVERTED_DATE:
      a.logical = 1u << PARQUET_LOGICAL_DATE;
      break;
    case PARQUET_CONVERTED_TIME_MILLIS:
    case PARQUET_CONVERTED_TIME_MICROS:
      a.logical = 1u << PARQUET_LOGICAL_TIME;
      a.unit =
          c == PARQUET_CONVERTED_TIME_MILLIS ? PARQUET_UNIT_MILLIS : PARQUET_UNIT_MICROS;
      break;
    case PARQUET_CONVERTED_TIMESTAMP_MILLIS:
    case PARQUET_CONVERTED_TIMESTAMP_MICROS:
      a.logical = 1u << PARQUET_LOGICAL_TIMESTAMP;
      a.unit = c == PARQUET_CONVERTED_TIMESTAMP_MILLIS ? PARQUET_UNIT_MILLIS
                                                       : PARQUET_UNIT_MICROS;
      a.utc = true;
      break;
    case PARQUET_CONVERTED_INTERVAL:
      a.interval = true;
      break;
    default:
      if (c < PARQUET_CONVERTED_UINT_8 || c > PARQUET_CONVERTED_INT_64) break;
      a.logical = 1u << PARQUET_LOGICAL_INTEGER;
      a.is_signed = c >= PARQUET_CONVERTED_INT_8;
      a.bits =
          8 << (c - (a.is_signed ? PARQUET_CONVERTED_INT_8 : PARQUET_CONVERTED_UINT_8));
  }
  return a;
}

static annotation annotation_of(const parquet_schema_element *element) {
  const parquet_logical_type *logical = &element->logical;
  annotation a = of_converted(element);
  if ((element->has >> 10 & 1) == 0 || logical->has == 0) logical = NULL;
  if (logical != NULL && !a.interval) {
    a.logical = logical->has & (0u - logical->has); /* a union: one of them */
    if (a.logical & (1u << PARQUET_LOGICAL_ENUM | 1u << PARQUET_LOGICAL_JSON))
      a.logical = 1u << PARQUET_LOGICAL_STRING;
    if (a.logical & (1u << PARQUET_LOGICAL_BSON | 1u << PARQUET_LOGICAL_UUID))
      a.logical = 0;
    if (a.logical == 1u << PARQUET_LOGICAL_DECIMAL) {
      a.scale = logical->decimal.scale;
      a.precision = logical->decimal.precision;
    }
    a.utc = logical->time.is_adjusted_to_utc;
    uint32_t unit = logical->time.unit.has;
    if (unit != 0) a.unit = __builtin_ctz(unit);
    if (a.logical == 1u << PARQUET_LOGICAL_INTEGER) {
      a.bits = (uint8_t)logical->integer.bit_width;
      a.is_signed = logical->integer.is_signed;
    }
  }
  /* What the physical type says by itself. */
  if (a.logical == 1u << PARQUET_LOGICAL_INTEGER && a.is_signed &&
      a.bits == (element->type == PARQUET_INT64 ? 64 : 32))
    a.logical = 0;
  return a;
}

static bool same(const annotation *a, const annotation *b) {
  if (a->logical != b->logical || a->interval != b->interval) return false;
  switch (a->logical) {
    case 1u << PARQUET_LOGICAL_DECIMAL:
      return a->scale == b->scale && a->precision == b->precision;
    case 1u << PARQUET_LOGICAL_TIME:
      return a->unit == b->unit;
    case 1u << PARQUET_LOGICAL_TIMESTAMP:
      return a->unit == b->unit && a->utc == b->utc;
    case 1u << PARQUET_LOGICAL_INTEGER:
      return a->bits == b->bits && a->is_signed == b->is_signed;
    default:
      return true;
  }
}

/* ---- values ----------------------------------------------------------------------------------- */

static bool put_as(read_type *type, enum read_put put, uint32_t slot, bool possible) {
  type->put = put;
  type->slot = slot;
  return possible;
}

static bool put_decimal(read_type *type, uint32_t slot) {
  switch (type->type) {
    case PARQUET_INT32:
    case PARQUET_INT64:
      return put_as(type, type->width == slot ? PUT_COPY : PUT_DECIMAL_INT, slot,
                    type->width <= slot);
    case PARQUET_FIXED:
      return put_as(type, PUT_DECIMAL_BYTES, slot, type->width > 0);
    case PARQUET_BYTE_ARRAY:
      type->decimal = slot;
      return put_as(type, PUT_BYTES, 4, true);
    default:
      return false;
  }
}

/* How values of the leaf's physical type become slots of the Arrow type; false: they do not. */
static bool choose_put(read_type *type, const struct ArrowSchemaView *view) {
  bool i32 = type->type == PARQUET_INT32, i64 = type->type == PARQUET_INT64;
  bool fixed = type->type == PARQUET_FIXED, bytes = type->type == PARQUET_BYTE_ARRAY;
  bool seconds = view->time_unit == NANOARROW_TIME_UNIT_SECOND;
  switch (view->type) {
    case NANOARROW_TYPE_NA:
      return put_as(type, PUT_NOTHING, 0, true);
    case NANOARROW_TYPE_BOOL:
      return put_as(type, PUT_BITS, 0, type->type == PARQUET_BOOLEAN);
    case NANOARROW_TYPE_INT8:
    case NANOARROW_TYPE_UINT8:
      return put_as(type, PUT_NARROW, 1, i32);
    case NANOARROW_TYPE_INT16:
    case NANOARROW_TYPE_UINT16:
      return put_as(type, PUT_NARROW, 2, i32);
    case NANOARROW_TYPE_INT32:
    case NANOARROW_TYPE_UINT32:
    case NANOARROW_TYPE_DATE32:
      return put_as(type, PUT_COPY, 4, i32);
    case NANOARROW_TYPE_TIME32:
      return put_as(type, seconds ? PUT_SECONDS32 : PUT_COPY, 4, i32);
    case NANOARROW_TYPE_INT64:
    case NANOARROW_TYPE_UINT64:
    case NANOARROW_TYPE_TIME64:
    case NANOARROW_TYPE_DURATION:
      return put_as(type, PUT_COPY, 8, i64);
    case NANOARROW_TYPE_TIMESTAMP:
      if (type->type == PARQUET_INT96)
        return put_as(type, PUT_INT96, 8, view->time_unit == NANOARROW_TIME_UNIT_NANO);
      return put_as(type, seconds ? PUT_SECONDS64 : PUT_COPY, 8, i64);
    case NANOARROW_TYPE_DATE64:
      return put_as(type, PUT_DATE64, 8, i32);
    case NANOARROW_TYPE_HALF_FLOAT:
      return put_as(type, PUT_COPY, 2, fixed && type->width == 2);
    case NANOARROW_TYPE_FLOAT:
      return put_as(type, PUT_COPY, 4, type->type == PARQUET_FLOAT);
    case NANOARROW_TYPE_DOUBLE:
      return put_as(type, PUT_COPY, 8, type->type == PARQUET_DOUBLE);
    case NANOARROW_TYPE_DECIMAL32:
      return put_decimal(type, 4);
    case NANOARROW_TYPE_DECIMAL64:
      return put_decimal(type, 8);
    case NANOARROW_TYPE_DECIMAL128:
      return put_decimal(type, 16);
    case NANOARROW_TYPE_DECIMAL256:
      return put_decimal(type, 32);
    case NANOARROW_TYPE_INTERVAL_MONTHS:
      return put_as(type, PUT_MONTHS, 4, fixed && type->width == 12);
    case NANOARROW_TYPE_INTERVAL_DAY_TIME:
      return put_as(type, PUT_DAY_TIME, 8, fixed && type->width == 12);
    case NANOARROW_TYPE_INTERVAL_MONTH_DAY_NANO:
      return put_as(type, PUT_MONTH_DAY_NANO, 16, fixed && type->width == 12);
    case NANOARROW_TYPE_FIXED_SIZE_BINARY:
      return put_as(type, PUT_COPY, type->width,
                    fixed && view->fixed_size == (int32_t)type->width);
    case NANOARROW_TYPE_STRING:
    case NANOARROW_TYPE_BINARY:
      return put_as(type, PUT_BYTES, 4, bytes);
    case NANOARROW_TYPE_LARGE_STRING:
    case NANOARROW_TYPE_LARGE_BINARY:
      return put_as(type, PUT_BYTES, 8, bytes);
    case NANOARROW_TYPE_STRING_VIEW:
    case NANOARROW_TYPE_BINARY_VIEW:
      type->views = true;
      return put_as(type, PUT_BYTES, 4, bytes);
    default:
      return false;
  }
}

static bool try_put(read_type *type, const struct ArrowSchema *schema) {
  struct ArrowSchemaView view;
  read_type tried = *type;
  tried.views = false;
  tried.decimal = 0;
  if (ArrowSchemaViewInit(&view, schema, NULL) != 0 || !choose_put(&tried, &view))
    return false;
  *type = tried;
  return true;
}

/* ---- the file's own types --------------------------------------------------------------------- */

static const enum ArrowTimeUnit units[] = {
    [PARQUET_UNIT_MILLIS] = NANOARROW_TIME_UNIT_MILLI,
    [PARQUET_UNIT_MICROS] = NANOARROW_TIME_UNIT_MICRO,
    [PARQUET_UNIT_NANOS] = NANOARROW_TIME_UNIT_NANO};

static int set_integer(struct ArrowSchema *out, const annotation *a) {
  enum ArrowType type = NANOARROW_TYPE_UNINITIALIZED;
  switch (a->bits) {
    case 8:
      type = a->is_signed ? NANOARROW_TYPE_INT8 : NANOARROW_TYPE_UINT8;
      break;
    case 16:
      type = a->is_signed ? NANOARROW_TYPE_INT16 : NANOARROW_TYPE_UINT16;
      break;
    case 32:
      type = a->is_signed ? NANOARROW_TYPE_INT32 : NANOARROW_TYPE_UINT32;
      break;
    case 64:
      type = a->is_signed ? NANOARROW_TYPE_INT64 : NANOARROW_TYPE_UINT64;
      break;
    default:
      return EINVAL;
  }
  return ArrowSchemaSetType(out, type);
}

static int set_decimal(struct ArrowSchema *out, const annotation *a) {
  if (a->precision < 1 || a->precision > 76 || a->scale < 0 || a->scale > a->precision)
    return EINVAL;
  return ArrowSchemaSetTypeDecimal(
      out, a->precision <= 38 ? NANOARROW_TYPE_DECIMAL128 : NANOARROW_TYPE_DECIMAL256,
      a->precision, a->scale);
}

/* EINVAL: an annotation that is none. */
static int set_annotated(struct ArrowSchema *out, const annotation *a) {
  if (a->interval) return ArrowSchemaSetType(out, NANOARROW_TYPE_INTERVAL_MONTH_DAY_NANO);
  bool timed = a->unit >= PARQUET_UNIT_MILLIS && a->unit <= PARQUET_UNIT_NANOS;
  switch (a->logical) {
    case 1u << PARQUET_LOGICAL_STRING:
      return ArrowSchemaSetType(out, NANOARROW_TYPE_STRING);
    case 1u << PARQUET_LOGICAL_DECIMAL:
      return set_decimal(out, a);
    case 1u << PARQUET_LOGICAL_DATE:
      return ArrowSchemaSetType(out, NANOARROW_TYPE_DATE32);
    case 1u << PARQUET_LOGICAL_TIME:
      if (!timed) return EINVAL;
      return ArrowSchemaSetTypeDateTime(
          out,
          a->unit == PARQUET_UNIT_MILLIS ? NANOARROW_TYPE_TIME32 : NANOARROW_TYPE_TIME64,
          units[a->unit], NULL);
    case 1u << PARQUET_LOGICAL_TIMESTAMP:
      if (!timed) return EINVAL;
      return ArrowSchemaSetTypeDateTime(out, NANOARROW_TYPE_TIMESTAMP, units[a->unit],
                                        a->utc ? "UTC" : NULL);
    case 1u << PARQUET_LOGICAL_INTEGER:
      return set_integer(out, a);
    case 1u << PARQUET_LOGICAL_UNKNOWN:
      return ArrowSchemaSetType(out, NANOARROW_TYPE_NA);
    case 1u << PARQUET_LOGICAL_FLOAT16:
      return ArrowSchemaSetType(out, NANOARROW_TYPE_HALF_FLOAT);
    default:
      return EINVAL;
  }
}

static int set_physical(struct ArrowSchema *out, const read_type *type) {
  static const enum ArrowType types[] = {[PARQUET_BOOLEAN] = NANOARROW_TYPE_BOOL,
                                         [PARQUET_INT32] = NANOARROW_TYPE_INT32,
                                         [PARQUET_INT64] = NANOARROW_TYPE_INT64,
                                         [PARQUET_FLOAT] = NANOARROW_TYPE_FLOAT,
                                         [PARQUET_DOUBLE] = NANOARROW_TYPE_DOUBLE,
                                         [PARQUET_BYTE_ARRAY] = NANOARROW_TYPE_BINARY};
  if (type->type == PARQUET_INT96) {
    return ArrowSchemaSetTypeDateTime(out, NANOARROW_TYPE_TIMESTAMP,
                                      NANOARROW_TIME_UNIT_NANO, NULL);
  }
  if (type->type == PARQUET_FIXED) {
    return ArrowSchemaSetTypeFixedSize(out, NANOARROW_TYPE_FIXED_SIZE_BINARY,
                                       (int32_t)type->width);
  }
  return ArrowSchemaSetType(out, types[type->type]);
}

static weir_status set_own(read_type *type, const annotation *a, struct ArrowSchema *out,
                           weir_error *err) {
  int code = set_annotated(out, a);
  if (code == 0 && try_put(type, out)) return WEIR_OK;
  if (a->logical == 1u << PARQUET_LOGICAL_DECIMAL) {
    return weir_error_set(err, WEIR_E_NOT_IMPLEMENTED, 0,
                          "column '%s': a decimal of precision %d and scale %d in this "
                          "physical type (%d) cannot be read",
                          type->name, (int)a->precision, (int)a->scale, (int)type->type);
  }
  /* An annotation that does not fit is none (LogicalTypes.md: readers may ignore them). */
  if (code == 0 || code == EINVAL) code = set_physical(out, type);
  if (code != 0) return arrow_errno(err, code, "schema");
  if (try_put(type, out)) return WEIR_OK;
  return weir_error_set(err, WEIR_E_CORRUPT, 0, "column '%s': no known type", type->name);
}

/* ---- the type that Arrow writers kept --------------------------------------------------------- */

/* The hint's annotation, if the writer would have made this leaf of it. */
static bool hint_agrees(const read_type *type, const annotation *own,
                        const arrow_node *hint) {
  parquet_leaf leaf = {.name = type->name, .node = hint, .column = type->column};
  if (leaf_init_values(&leaf, NULL) != WEIR_OK) return false;
  annotation a = annotation_of(&leaf.element);
  return same(own, &a);
}

static bool is_zoned(const annotation *own, const struct ArrowSchema *hint) {
  return own->logical == 1u << PARQUET_LOGICAL_TIMESTAMP && own->utc &&
         strncmp(hint->format, "ts", 2) == 0 && strlen(hint->format) > 4;
}

weir_status read_type_choose(read_type *type, const parquet_schema_element *element,
                             const arrow_node *hint, struct ArrowSchema *out,
                             weir_error *err) {
  annotation own = annotation_of(element);
  if (hint == NULL) return set_own(type, &own, out, err);
  /* Dictionaries come as their values. */
  const struct ArrowSchema *kept =
      hint->dictionary != NULL ? hint->dictionary->schema : hint->schema;
  int code = 0;
  if (hint_agrees(type, &own, hint) && try_put(type, kept)) {
    code = ArrowSchemaSetFormat(out, kept->format);
    if (code == 0) code = ArrowSchemaSetMetadata(out, hint->schema->metadata);
    return code == 0 ? WEIR_OK : arrow_errno(err, code, "schema");
  }
  BASE_TRY(set_own(type, &own, out, err));
  if (is_zoned(&own, kept)) { /* coerced to another unit: the zone holds */
    code = ArrowSchemaSetTypeDateTime(out, NANOARROW_TYPE_TIMESTAMP, units[own.unit],
                                      kept->format + 4);
  }
  return code == 0 ? WEIR_OK : arrow_errno(err, code, "schema");
}
