/* SPDX-License-Identifier: Apache-2.0 */
#include "values.h"

#include <nanoarrow/nanoarrow.h>
#include <stdbool.h>
#include <string.h>

/* Times begin here: 2024-01-01T00:00:00Z, in seconds and days since 1970. */
#define FIRST_SECOND INT64_C(1704067200)
#define FIRST_DAY INT64_C(19723)
#define DAY_SECONDS INT64_C(86400)
#define TEXT_SIZE 10 /* "key-004711" */
#define KEYS 10000
#define BINARY_SIZE 8

/* One column's values: cell(column, n) depends on nothing else. */
typedef struct column_maker {
  struct ArrowSchemaView type;
  uint64_t seed; /* of this column */
  bool counts;   /* holds the row's number */
  int64_t nulls;
  int64_t first, rows;
} column_maker;

/* splitmix64's output function over a counter: any row can be made alone. */
static uint64_t mix(uint64_t seed, uint64_t n) {
  uint64_t z = seed + (n + 1) * UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

static int64_t per_second(enum ArrowTimeUnit unit) {
  return unit == NANOARROW_TIME_UNIT_SECOND  ? 1
         : unit == NANOARROW_TIME_UNIT_MILLI ? 1000
         : unit == NANOARROW_TIME_UNIT_MICRO ? 1000000
                                             : 1000000000;
}

/* Bytes of a value; 0 for bool, -1 for strings, -2 for what cannot be made. */
static int64_t value_width(const struct ArrowSchemaView *type) {
  switch (type->type) {
    case NANOARROW_TYPE_BOOL:
      return 0;
    case NANOARROW_TYPE_STRING:
    case NANOARROW_TYPE_LARGE_STRING:
    case NANOARROW_TYPE_BINARY:
    case NANOARROW_TYPE_LARGE_BINARY:
      return -1;
    case NANOARROW_TYPE_FIXED_SIZE_BINARY:
      return type->fixed_size;
    case NANOARROW_TYPE_INT8:
    case NANOARROW_TYPE_UINT8:
      return 1;
    case NANOARROW_TYPE_INT16:
    case NANOARROW_TYPE_UINT16:
    case NANOARROW_TYPE_HALF_FLOAT:
      return 2;
    case NANOARROW_TYPE_INT32:
    case NANOARROW_TYPE_UINT32:
    case NANOARROW_TYPE_FLOAT:
    case NANOARROW_TYPE_DATE32:
    case NANOARROW_TYPE_TIME32:
      return 4;
    case NANOARROW_TYPE_INT64:
    case NANOARROW_TYPE_UINT64:
    case NANOARROW_TYPE_DOUBLE:
    case NANOARROW_TYPE_DATE64:
    case NANOARROW_TYPE_TIME64:
    case NANOARROW_TYPE_TIMESTAMP:
    case NANOARROW_TYPE_DURATION:
      return 8;
    case NANOARROW_TYPE_DECIMAL32:
    case NANOARROW_TYPE_DECIMAL64:
    case NANOARROW_TYPE_DECIMAL128:
    case NANOARROW_TYPE_DECIMAL256:
      return type->decimal_bitwidth / 8;
    default:
      return -2;
  }
}

weir_status generator_check_schema(const weir_schema *schema, weir_error *err) {
  const struct ArrowSchema *arrow = weir_schema_arrow(schema);
  for (int64_t i = 0; i < arrow->n_children; i++) {
    struct ArrowSchemaView view;
    char text[120];
    if (ArrowSchemaViewInit(&view, arrow->children[i], NULL) == NANOARROW_OK &&
        value_width(&view) > -2) {
      continue;
    }
    weir_type_format(arrow->children[i], text, sizeof(text));
    weir_error_set(
        err, WEIR_E_NOT_IMPLEMENTED, 0,
        "column '%s': the generator makes no values of type %s; use a flat type",
        arrow->children[i]->name, text);
    return weir_error_at(err, WEIR_E_NOT_IMPLEMENTED, -1, (int32_t)i);
  }
  return WEIR_OK;
}

/* A number with at most `precision` digits (18 at most), of either sign. */
static int64_t decimal_cell(int32_t precision, uint64_t random) {
  uint64_t limit = 1;
  for (int32_t i = 0; i < precision && i < 18; i++) limit *= 10;
  int64_t size = (int64_t)(random % limit);
  return random >> 63 ? -size : size;
}

/* The value of a type of fixed width, in its lowest bytes. */
static uint64_t fixed_cell(const column_maker *m, int64_t n) {
  uint64_t random = mix(m->seed, (uint64_t)n), bits = 0;
  int64_t unit = per_second(m->type.time_unit);
  double real = (double)(random >> 11) * 0x1p-53; /* 0 <= real < 1, all 53 bits used */
  switch (m->type.type) {
    case NANOARROW_TYPE_DOUBLE:
      real *= 1000;
      memcpy(&bits, &real, sizeof(real));
      return bits;
    case NANOARROW_TYPE_FLOAT: {
      float narrow = (float)(real * 1000);
      memcpy(&bits, &narrow, sizeof(narrow));
      return bits;
    }
    case NANOARROW_TYPE_HALF_FLOAT:
      return 0x3c00 + random % 1024; /* 1 <= value < 2 */
    case NANOARROW_TYPE_TIMESTAMP: /* a millisecond a row; wraps around in nanoseconds after 250 years */
      return (uint64_t)FIRST_SECOND * (uint64_t)unit +
             (unit == 1 ? (uint64_t)n / 1000 : (uint64_t)n * (uint64_t)(unit / 1000));
    case NANOARROW_TYPE_DATE32:
      return (uint64_t)(FIRST_DAY + (int64_t)(random % 3653));
    case NANOARROW_TYPE_DATE64:
      return (uint64_t)((FIRST_DAY + (int64_t)(random % 3653)) * DAY_SECONDS * 1000);
    case NANOARROW_TYPE_TIME32:
    case NANOARROW_TYPE_TIME64:
      return random % (uint64_t)(DAY_SECONDS * unit);
    case NANOARROW_TYPE_DURATION:
      return random % (uint64_t)(DAY_SECONDS * unit);
    case NANOARROW_TYPE_DECIMAL32:
    case NANOARROW_TYPE_DECIMAL64:
    case NANOARROW_TYPE_DECIMAL128:
    case NANOARROW_TYPE_DECIMAL256:
      return (uint64_t)decimal_cell(m->type.decimal_precision, random);
    default:
      return m->counts ? (uint64_t)n : random;
  }
}

static bool is_null(const column_maker *m, int64_t n) {
  return m->nulls > 0 && mix(~m->seed, (uint64_t)n) % 100 < (uint64_t)m->nulls;
}

static ArrowErrorCode make_validity(const column_maker *m, struct ArrowArray *array) {
  struct ArrowBitmap *bitmap = ArrowArrayValidityBitmap(array);
  array->null_count = 0;
  if (m->nulls == 0) return NANOARROW_OK;
  NANOARROW_RETURN_NOT_OK(ArrowBitmapReserve(bitmap, m->rows));
  for (int64_t i = 0; i < m->rows; i++) {
    bool null = is_null(m, m->first + i);
    ArrowBitmapAppendUnsafe(bitmap, !null, 1);
    array->null_count += null;
  }
  return NANOARROW_OK;
}

static ArrowErrorCode make_fixed(const column_maker *m, struct ArrowArray *array,
                                 int64_t width) {
  struct ArrowBuffer *buffer = ArrowArrayBuffer(array, 1);
  bool number = m->type.type != NANOARROW_TYPE_FIXED_SIZE_BINARY;
  NANOARROW_RETURN_NOT_OK(ArrowBufferResize(buffer, m->rows * width, false));
  if (width == 0) return NANOARROW_OK; /* fixed_size_binary[0] */
  uint8_t *to = buffer->data;
  for (int64_t i = 0; i < m->rows; i++, to += width) {
    uint64_t cell = fixed_cell(m, m->first + i);
    if (width <= 8) {
      memcpy(to, &cell, (size_t)width);
    } else {
      /* wide decimals are extended with their sign, bytes with zeros */
      memset(to, number && cell >> 63 ? 0xff : 0, (size_t)width);
      memcpy(to, &cell, sizeof(cell));
    }
  }
  return NANOARROW_OK;
}

static ArrowErrorCode make_bools(const column_maker *m, struct ArrowArray *array) {
  struct ArrowBuffer *buffer = ArrowArrayBuffer(array, 1);
  NANOARROW_RETURN_NOT_OK(ArrowBufferResize(buffer, (m->rows + 7) / 8, false));
  if (m->rows > 0) memset(buffer->data, 0, (size_t)buffer->size_bytes);
  for (int64_t i = 0; i < m->rows; i++) {
    if (mix(m->seed, (uint64_t)(m->first + i)) & 1) ArrowBitSet(buffer->data, i);
  }
  return NANOARROW_OK;
}

static ArrowErrorCode make_strings(const column_maker *m, struct ArrowArray *array) {
  bool large = m->type.type == NANOARROW_TYPE_LARGE_STRING ||
               m->type.type == NANOARROW_TYPE_LARGE_BINARY;
  bool text = m->type.type == NANOARROW_TYPE_STRING ||
              m->type.type == NANOARROW_TYPE_LARGE_STRING;
  int64_t size = text ? TEXT_SIZE : BINARY_SIZE, end = 0;
  struct ArrowBuffer *offsets = ArrowArrayBuffer(array, 1),
                     *data = ArrowArrayBuffer(array, 2);
  NANOARROW_RETURN_NOT_OK(ArrowBufferReserve(offsets, (m->rows + 1) * 8));
  NANOARROW_RETURN_NOT_OK(ArrowBufferReserve(data, m->rows * size + 8));
  for (int64_t i = -1; i < m->rows; i++) {
    int64_t n = m->first + i;
    if (i >= 0 && !is_null(m, n)) {
      uint64_t random = mix(m->seed, (uint64_t)n);
      char key[TEXT_SIZE] = {'k', 'e', 'y', '-'};
      unsigned digits = (unsigned)(random % KEYS);
      for (int k = TEXT_SIZE - 1; k > 3; k--, digits /= 10)
        key[k] = (char)('0' + digits % 10);
      ArrowBufferAppendUnsafe(data, text ? (const void *)key : (const void *)&random,
                              size);
      end += size;
    }
    int32_t narrow = (int32_t)end; /* 1048576 rows of ten bytes at most */
    ArrowBufferAppendUnsafe(offsets, large ? (const void *)&end : (const void *)&narrow,
                            large ? 8 : 4);
  }
  return NANOARROW_OK;
}

static ArrowErrorCode make_column(const column_maker *m, struct ArrowArray *array) {
  int64_t width = value_width(&m->type);
  array->length = m->rows;
  NANOARROW_RETURN_NOT_OK(make_validity(m, array));
  if (width == 0 && m->type.type == NANOARROW_TYPE_BOOL) return make_bools(m, array);
  return width < 0 ? make_strings(m, array) : make_fixed(m, array, width);
}

weir_status generator_make_batch(weir_schema *schema, uint64_t seed, int64_t nulls,
                                 int64_t first, int64_t rows, weir_batch **out,
                                 weir_error *err) {
  const struct ArrowSchema *arrow = weir_schema_arrow(schema);
  struct ArrowArray array = {0};
  struct ArrowArrayView view = {
      0}; /* ArrowArrayInitFromSchema loses its own on failure */
  bool counted = false;
  ArrowErrorCode code = ArrowArrayViewInitFromSchema(&view, arrow, NULL);
  if (code == NANOARROW_OK) code = ArrowArrayInitFromArrayView(&array, &view, NULL);
  ArrowArrayViewReset(&view);
  for (int64_t i = 0; code == NANOARROW_OK && i < arrow->n_children; i++) {
    const struct ArrowSchema *field = arrow->children[i];
    column_maker m = {.seed = mix(seed, (uint64_t)i), .first = first, .rows = rows};
    code = ArrowSchemaViewInit(&m.type, field, NULL);
    m.counts = !counted && (m.type.type == NANOARROW_TYPE_INT64 ||
                            m.type.type == NANOARROW_TYPE_UINT64);
    counted |= m.counts;
    if (!m.counts && field->flags & ARROW_FLAG_NULLABLE) m.nulls = nulls;
    if (code == NANOARROW_OK) code = make_column(&m, array.children[i]);
  }
  array.length = rows;
  array.null_count = 0;
  if (code == NANOARROW_OK) {
    code = ArrowArrayFinishBuilding(&array, NANOARROW_VALIDATION_LEVEL_NONE, NULL);
  }
  weir_status status =
      code == NANOARROW_OK
          ? weir_batch_new(schema, &array, out, err)
          : weir_error_set(err, WEIR_E_NOMEM, 0, "no memory for a batch of %lld rows",
                           (long long)rows);
  if (array.release) array.release(&array);
  return status;
}
