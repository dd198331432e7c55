/* SPDX-License-Identifier: Apache-2.0 */
/* Column builders: values appended straight into the buffers of the arrays to come. */
#include "format/format.h"

#include <errno.h>
#include <nanoarrow/nanoarrow.h>
#include <stdlib.h>
#include <string.h>

#include "arrow/arrow.h"
#include "base/base.h"

#define MAX_SCALE 300 /* FORMAT_DECIMAL_TEXT has room for it */

static int32_t unit_digits(enum ArrowTimeUnit unit) {
  return unit == NANOARROW_TIME_UNIT_SECOND  ? 0
         : unit == NANOARROW_TIME_UNIT_MILLI ? 3
         : unit == NANOARROW_TIME_UNIT_MICRO ? 6
                                             : 9;
}

/* Kind and width of a type; false when rows cannot hold it. */
static bool kind_of_type(const struct ArrowSchemaView *view, format_column *col,
                         unsigned allow) {
  static const struct {
    enum ArrowType type;
    format_kind kind;
    int32_t width;
  } known[] = {
      {NANOARROW_TYPE_BOOL, FORMAT_BOOL, 0},
      {NANOARROW_TYPE_INT8, FORMAT_INT8, 1},
      {NANOARROW_TYPE_INT16, FORMAT_INT16, 2},
      {NANOARROW_TYPE_INT32, FORMAT_INT32, 4},
      {NANOARROW_TYPE_INT64, FORMAT_INT64, 8},
      {NANOARROW_TYPE_UINT8, FORMAT_UINT8, 1},
      {NANOARROW_TYPE_UINT16, FORMAT_UINT16, 2},
      {NANOARROW_TYPE_UINT32, FORMAT_UINT32, 4},
      {NANOARROW_TYPE_UINT64, FORMAT_UINT64, 8},
      {NANOARROW_TYPE_HALF_FLOAT, FORMAT_HALF, 2},
      {NANOARROW_TYPE_FLOAT, FORMAT_FLOAT, 4},
      {NANOARROW_TYPE_DOUBLE, FORMAT_DOUBLE, 8},
      {NANOARROW_TYPE_DECIMAL32, FORMAT_DECIMAL, 4},
      {NANOARROW_TYPE_DECIMAL64, FORMAT_DECIMAL, 8},
      {NANOARROW_TYPE_DECIMAL128, FORMAT_DECIMAL, 16},
      {NANOARROW_TYPE_DECIMAL256, FORMAT_DECIMAL, 32},
      {NANOARROW_TYPE_STRING, FORMAT_UTF8, 4},
      {NANOARROW_TYPE_LARGE_STRING, FORMAT_UTF8, 8},
      {NANOARROW_TYPE_STRING_VIEW, FORMAT_UTF8, 4},
      {NANOARROW_TYPE_BINARY, FORMAT_BINARY, 4},
      {NANOARROW_TYPE_LARGE_BINARY, FORMAT_BINARY, 8},
      {NANOARROW_TYPE_BINARY_VIEW, FORMAT_BINARY, 4},
      {NANOARROW_TYPE_FIXED_SIZE_BINARY, FORMAT_FIXED, -1},
      {NANOARROW_TYPE_DATE32, FORMAT_DATE32, 4},
      {NANOARROW_TYPE_DATE64, FORMAT_DATE64, 8},
      {NANOARROW_TYPE_TIME32, FORMAT_TIME32, 4},
      {NANOARROW_TYPE_TIME64, FORMAT_TIME64, 8},
      {NANOARROW_TYPE_TIMESTAMP, FORMAT_TIMESTAMP, 8},
      {NANOARROW_TYPE_DURATION, FORMAT_DURATION, 8},
      {NANOARROW_TYPE_LIST, FORMAT_LIST, 4},
      {NANOARROW_TYPE_LARGE_LIST, FORMAT_LIST, 8},
      {NANOARROW_TYPE_LIST_VIEW, FORMAT_LIST, 4},
      {NANOARROW_TYPE_LARGE_LIST_VIEW, FORMAT_LIST, 8},
      {NANOARROW_TYPE_MAP, FORMAT_MAP, 4},
      {NANOARROW_TYPE_FIXED_SIZE_LIST, FORMAT_FIXED_LIST, 0},
      {NANOARROW_TYPE_STRUCT, FORMAT_STRUCT, 0},
  };
  for (size_t i = 0; i < BASE_COUNT(known); i++) {
    if (known[i].type != view->type) continue;
    col->kind = known[i].kind;
    col->width = known[i].width < 0 ? view->fixed_size : known[i].width;
    return col->kind < FORMAT_LIST || (allow & FORMAT_NESTED);
  }
  return false;
}

static weir_status cannot_be(const struct ArrowSchema *field, const format_column *col,
                             const char *path, unsigned allow, const char *what,
                             weir_error *err) {
  char type[120];
  weir_type_format(field, type, sizeof(type));
  const char *advice = col->view ? "declare utf8 or binary" : "flat types can";
  if (!col->view && (allow & FORMAT_NESTED)) {
    advice = "flat types, lists, structs and maps can";
  } else if (col->kind >= FORMAT_LIST) {
    advice = "flat types can; format ndjson, arrow or parquet holds nested ones";
  }
  return weir_error_set(err, WEIR_E_NOT_IMPLEMENTED, 0,
                        "column '%s': type %s cannot be %s; %s", path, type, what,
                        advice);
}

static bool decimal_is_sane(const format_column *col) {
  static const int32_t digits[] = {[4] = 9, [8] = 18, [16] = 38, [32] = 76};
  return col->precision >= 1 && col->precision <= digits[col->width] &&
         col->scale >= -MAX_SCALE && col->scale <= MAX_SCALE;
}

weir_status format_column_init_at(format_column *col, const struct ArrowSchema *field,
                                  const char *path, unsigned allow, const char *what,
                                  weir_error *err) {
  format_column made = {.field = field};
  struct ArrowSchemaView view = {0};
  struct ArrowError why = {0};
  made.name = field->name ? field->name : "";
  made.name_len = strlen(made.name);
  made.nullable = field->flags & ARROW_FLAG_NULLABLE;
  if ((allow & FORMAT_ENCODED) && field->dictionary)
    made.field = field = field->dictionary;
  if (ArrowSchemaViewInit(&view, field, &why) != NANOARROW_OK) {
    return weir_error_set(err, WEIR_E_SCHEMA, 0, "column '%s': %s", path, why.message);
  }
  bool known = kind_of_type(&view, &made, allow);
  if (known && made.kind == FORMAT_DECIMAL) {
    made.precision = view.decimal_precision;
    made.scale = view.decimal_scale;
    known = decimal_is_sane(&made);
  }
  made.view =
      view.type == NANOARROW_TYPE_STRING_VIEW || view.type == NANOARROW_TYPE_BINARY_VIEW;
  if (!known || (made.view && !(allow & FORMAT_VIEWS))) {
    return cannot_be(field, &made, path, allow, what, err);
  }
  made.unit = unit_digits(view.time_unit);
  made.zoned = view.type == NANOARROW_TYPE_TIMESTAMP && view.timezone && view.timezone[0];
  if (made.kind >= FORMAT_LIST) {
    weir_status status = format_nested_init(&made, &view, path, allow, what, err);
    if (status != WEIR_OK) {
      format_column_done(&made);
      return status;
    }
  }
  *col = made;
  return WEIR_OK;
}

weir_status format_column_init(format_column *col, const struct ArrowSchema *field,
                               unsigned allow, const char *what, weir_error *err) {
  return format_column_init_at(col, field, field->name ? field->name : "", allow, what,
                               err);
}

void format_column_drop(format_column *col) {
  free(col->validity);
  free(col->values);
  free(col->data);
  col->validity = col->values = col->data = NULL;
  col->n = col->nulls = col->room = col->data_len = col->data_room = 0;
  for (int64_t i = 0; i < col->n_children; i++) format_column_drop(&col->children[i]);
}

void format_column_done(format_column *col) {
  format_column_drop(col);
  for (int64_t i = 0; i < col->n_children; i++) format_column_done(&col->children[i]);
  free(col->children);
  format_names_done(&col->names);
  col->children = NULL;
  col->n_children = 0;
}

static bool has_data(const format_column *col) {
  return col->kind == FORMAT_UTF8 || col->kind == FORMAT_BINARY;
}

static bool has_offsets(const format_column *col) {
  return has_data(col) || col->kind == FORMAT_LIST || col->kind == FORMAT_MAP;
}

static size_t values_size(const format_column *col, int64_t rows) {
  if (col->kind == FORMAT_BOOL) return (size_t)(rows + 7) / 8;
  return (size_t)(rows + has_offsets(col)) * (size_t)col->width;
}

weir_status format_column_start(format_column *col, int64_t rows, weir_error *err) {
  size_t bits = (size_t)(rows + 7) / 8, values = values_size(col, rows);
  /* a byte more, so that no size is 0 */
  col->validity = malloc(bits + 1);
  col->values = malloc(values + 1);
  if (col->validity == NULL || col->values == NULL ||
      (has_data(col) &&
       !format_column_grow(col, col->data_hint + col->data_hint / 8 + 64))) {
    format_column_drop(col);
    return weir_error_set(err, WEIR_E_NOMEM, 0, "column '%s': no memory for %lld rows",
                          col->name, (long long)rows);
  }
  memset(col->validity, 0xff, bits);
  if (col->kind == FORMAT_BOOL) memset(col->values, 0, values);
  if (has_offsets(col)) memset(col->values, 0, (size_t)col->width);
  col->room = rows;
  for (int64_t i = 0; i < col->n_children; i++) {
    format_column *child = &col->children[i];
    weir_status status =
        format_column_start(child, format_nested_rows(col, child, rows), err);
    if (status != WEIR_OK) {
      format_column_drop(col);
      return status;
    }
  }
  return WEIR_OK;
}

bool format_column_grow_values(format_column *col, int64_t more) {
  int64_t room = col->n + more > 2 * col->room ? col->n + more : 2 * col->room;
  size_t bits = (size_t)(col->room + 7) / 8, new_bits = (size_t)(room + 7) / 8;
  size_t values = values_size(col, col->room), new_values = values_size(col, room);
  uint8_t *block = realloc(col->validity, new_bits + 1);
  if (block == NULL) return false;
  col->validity = block;
  memset(block + bits, 0xff, new_bits - bits);
  block = realloc(col->values, new_values + 1);
  if (block == NULL) return false;
  col->values = block;
  if (col->kind == FORMAT_BOOL) memset(block + values, 0, new_values - values);
  col->room = room;
  return true;
}

bool format_column_grow(format_column *col, int64_t more) {
  int64_t need = col->data_len + more;
  if (need <= col->data_room) return true;
  if (need < col->data_room * 2) need = col->data_room * 2;
  uint8_t *data = realloc(col->data, (size_t)need);
  if (data == NULL) return false;
  col->data = data;
  col->data_room = need;
  return true;
}

/* Ends value n - 1 at data_len. */
static void close_offset(format_column *col) {
  format_offset_store(col->values, col->width, col->n, col->data_len);
}

void format_column_cut(format_column *col, int64_t n) {
  for (int64_t i = n; i < col->n; i++) {
    uint8_t bit = (uint8_t)(1u << (i & 7));
    if (!(col->validity[i >> 3] & bit)) col->nulls--;
    col->validity[i >> 3] |= bit;
    if (col->kind == FORMAT_BOOL) col->values[i >> 3] &= (uint8_t)~bit;
  }
  if (n < col->n) col->n = n;
  if (has_data(col)) col->data_len = arrow_offset_at(col->values, col->width, col->n);
  for (int64_t i = 0; i < col->n_children; i++) {
    format_column_cut(&col->children[i], format_nested_end(col, col->n));
  }
}

format_result format_column_null(format_column *col) {
  if (!col->nullable) return FORMAT_NULL;
  if (FORMAT_UNLIKELY(col->kind >= FORMAT_LIST)) return format_nested_null(col);
  int64_t i = col->n++;
  col->validity[i >> 3] &= (uint8_t)~(1u << (i & 7));
  col->nulls++;
  if (has_data(col)) {
    close_offset(col);
  } else if (col->width > 0) {
    memset(col->values + (size_t)i * (size_t)col->width, 0, (size_t)col->width);
  }
  return FORMAT_OK;
}

static format_result append_bytes(format_column *col, const uint8_t *text, size_t n);

format_result format_column_bool(format_column *col, bool value) {
  if (col->kind == FORMAT_UTF8)
    return append_bytes(col, (const uint8_t *)(value ? "true" : "false"), 5u - value);
  if (col->kind != FORMAT_BOOL) return FORMAT_TYPE;
  int64_t i = col->n++;
  col->values[i >> 3] |= (uint8_t)(value << (i & 7));
  return FORMAT_OK;
}

/* Stores a count of units or days, as the type holds it. */
static format_result append_count(format_column *col, int64_t value) {
  if (col->width == 4) {
    if (value < INT32_MIN || value > INT32_MAX) return FORMAT_RANGE;
    ((int32_t *)(void *)col->values)[col->n] = (int32_t)value;
  } else {
    ((int64_t *)(void *)col->values)[col->n] = value;
  }
  col->n++;
  return FORMAT_OK;
}

static format_result append_raw_count(format_column *col, bool negative,
                                      uint64_t magnitude) {
  int64_t value = 0, day = 86400, per_second = 1;
  if (!format_integer_store(FORMAT_INT64, negative, magnitude, &value))
    return FORMAT_RANGE;
  for (int32_t i = 0; i < col->unit; i++) per_second *= 10;
  bool time = col->kind == FORMAT_TIME32 || col->kind == FORMAT_TIME64;
  if (time && (value < 0 || value >= day * per_second)) return FORMAT_RANGE;
  /* The format's text: "values must be evenly divisible by 86400000". */
  if (col->kind == FORMAT_DATE64 && value % (day * 1000) != 0) return FORMAT_FINE;
  return append_count(col, value);
}

format_result format_column_number(format_column *col, const uint8_t *text, size_t n) {
  uint8_t *to = col->values + (size_t)col->n * (size_t)col->width;
  format_result result = FORMAT_TYPE;
  bool negative = false;
  uint64_t magnitude = 0;
  switch (col->kind) {
    case FORMAT_HALF: {
      uint16_t half = 0;
      result = format_half_parse(text, n, &half);
      if (result == FORMAT_OK) memcpy(to, &half, sizeof(half));
      break;
    }
    case FORMAT_FLOAT: {
      float value = 0;
      result = format_float_parse(text, n, &value);
      if (result == FORMAT_OK) memcpy(to, &value, sizeof(value));
      break;
    }
    case FORMAT_DOUBLE: {
      double value = 0;
      result = format_double_parse(text, n, &value);
      if (result == FORMAT_OK) memcpy(to, &value, sizeof(value));
      break;
    }
    case FORMAT_DECIMAL:
      result = format_decimal_parse(text, n, col->precision, col->scale, col->width, to);
      break;
    case FORMAT_UTF8:
      return append_bytes(col, text, n);
    case FORMAT_BOOL:
    case FORMAT_BINARY:
    case FORMAT_FIXED:
    case FORMAT_LIST:
    case FORMAT_MAP:
    case FORMAT_FIXED_LIST:
    case FORMAT_STRUCT:
      return FORMAT_TYPE;
    default:
      result = format_integer_parse(text, n, &negative, &magnitude);
      if (result != FORMAT_OK) return result;
      if (col->kind >= FORMAT_DATE32) return append_raw_count(col, negative, magnitude);
      if (!format_integer_store(col->kind, negative, magnitude, to))
        result = FORMAT_RANGE;
  }
  if (result == FORMAT_OK) col->n++;
  return result;
}

static format_result append_bytes(format_column *col, const uint8_t *text, size_t n) {
  if (!format_column_grow(col, (int64_t)n)) return FORMAT_NOMEM;
  int64_t got = (int64_t)n;
  if (col->kind == FORMAT_UTF8) {
    memcpy(col->data + col->data_len, text, n);
  } else {
    got = format_base64_read(text, n, col->data + col->data_len);
    if (got < 0) return FORMAT_TEXT;
  }
  if (col->width == 4 && col->data_len + got > INT32_MAX) return FORMAT_RANGE;
  col->data_len += got;
  col->n++;
  close_offset(col);
  return FORMAT_OK;
}

static format_result append_fixed(format_column *col, const uint8_t *text, size_t n) {
  size_t width = (size_t)col->width;
  if (n != (width + 2) / 3 * 4) {
    return n % 4 == 0 ? FORMAT_LENGTH : FORMAT_TEXT;
  }
  uint8_t *bytes = malloc(n + 1);
  if (bytes == NULL) return FORMAT_NOMEM;
  int64_t got = format_base64_read(text, n, bytes);
  format_result result = got < 0             ? FORMAT_TEXT
                         : got != col->width ? FORMAT_LENGTH
                                             : FORMAT_OK;
  if (result == FORMAT_OK) {
    memcpy(col->values + (size_t)col->n * width, bytes, width);
    col->n++;
  }
  free(bytes);
  return result;
}

static bool text_is(const uint8_t *text, size_t n, const char *word) {
  return n == strlen(word) && memcmp(text, word, n) == 0;
}

/* The floats that JSON has no number for. */
static format_result append_special(format_column *col, const uint8_t *text, size_t n) {
  static const struct {
    const char *text;
    uint16_t half;
    double value;
  } special[] = {{"NaN", 0x7e00, __builtin_nan("")},
                 {"Infinity", 0x7c00, __builtin_inf()},
                 {"-Infinity", 0xfc00, -__builtin_inf()}};
  for (size_t i = 0; i < BASE_COUNT(special); i++) {
    if (!text_is(text, n, special[i].text)) continue;
    float narrow = (float)special[i].value;
    const void *from = col->kind == FORMAT_HALF    ? (const void *)&special[i].half
                       : col->kind == FORMAT_FLOAT ? (const void *)&narrow
                                                   : (const void *)&special[i].value;
    memcpy(col->values + (size_t)col->n * (size_t)col->width, from, (size_t)col->width);
    col->n++;
    return FORMAT_OK;
  }
  return FORMAT_TYPE;
}

format_result format_column_string(format_column *col, const uint8_t *text, size_t n) {
  int64_t value = 0;
  format_result result;
  switch (col->kind) {
    case FORMAT_UTF8:
    case FORMAT_BINARY:
      return append_bytes(col, text, n);
    case FORMAT_FIXED:
      return append_fixed(col, text, n);
    case FORMAT_HALF:
    case FORMAT_FLOAT:
    case FORMAT_DOUBLE:
      return append_special(col, text, n);
    case FORMAT_DECIMAL:
      result = format_decimal_parse(text, n, col->precision, col->scale, col->width,
                                    col->values + (size_t)col->n * (size_t)col->width);
      if (result == FORMAT_OK) col->n++;
      return result;
    case FORMAT_DATE32:
    case FORMAT_DATE64:
      result = format_date_parse(text, n, &value);
      if (col->kind == FORMAT_DATE64 &&
          __builtin_mul_overflow(value, INT64_C(86400000), &value)) {
        return FORMAT_RANGE;
      }
      break;
    case FORMAT_TIME32:
    case FORMAT_TIME64:
      result = format_time_parse(text, n, col->unit, &value);
      break;
    case FORMAT_TIMESTAMP:
      result = format_timestamp_parse(text, n, col->unit, col->zoned, &value);
      break;
    default:
      return FORMAT_TYPE;
  }
  return result == FORMAT_OK ? append_count(col, value) : result;
}

/* Moves malloc'ed memory into an array's buffer. */
static ArrowErrorCode hand_over(struct ArrowArray *array, int64_t i, uint8_t **memory,
                                size_t size) {
  struct ArrowBuffer buffer = {0};
  ArrowBufferInit(&buffer);
  buffer.data = *memory;
  buffer.size_bytes = (int64_t)size;
  buffer.capacity_bytes = (int64_t)size;
  *memory = NULL;
  return ArrowArraySetBuffer(array, i, &buffer);
}

/* Gives back what a short batch did not need; a failure to shrink keeps the block. */
static void shrink(uint8_t **memory, size_t size, size_t room) {
  if (room - size < 4096 && room < size * 2) return;
  uint8_t *block = realloc(*memory, size + 1);
  if (block != NULL) *memory = block;
}

/* The sizes of a list view, whose lists here follow each other. */
static ArrowErrorCode give_sizes(const format_column *col, struct ArrowArray *array) {
  size_t size = (size_t)col->n * (size_t)col->width;
  uint8_t *sizes = malloc(size + 1);
  if (sizes == NULL) return ENOMEM;
  for (int64_t i = 0; i < col->n; i++) {
    int64_t items = arrow_offset_at(col->values, col->width, i + 1) -
                    arrow_offset_at(col->values, col->width, i);
    format_offset_store(sizes, col->width, i, items);
  }
  return hand_over(array, 2, &sizes, size);
}

static ArrowErrorCode column_finish(format_column *col, struct ArrowArray *array) {
  size_t bits = (size_t)(col->n + 7) / 8, values = values_size(col, col->n);
  array->length = col->n;
  array->null_count = col->nulls;
  if (col->nulls > 0) {
    /* bits beyond the length are zero, as other writers leave them */
    if (col->n % 8) col->validity[bits - 1] &= (uint8_t)((1u << (col->n % 8)) - 1);
    shrink(&col->validity, bits, (size_t)(col->room + 7) / 8);
    NANOARROW_RETURN_NOT_OK(hand_over(array, 0, &col->validity, bits));
  }
  if (col->kind < FORMAT_FIXED_LIST) {
    if (col->list_view) NANOARROW_RETURN_NOT_OK(give_sizes(col, array));
    shrink(&col->values, values, values_size(col, col->room));
    NANOARROW_RETURN_NOT_OK(hand_over(array, 1, &col->values, values));
  }
  if (has_data(col)) {
    size_t data = (size_t)col->data_len;
    shrink(&col->data, data, (size_t)col->data_room);
    NANOARROW_RETURN_NOT_OK(hand_over(array, 2, &col->data, data));
    col->data_hint = (int64_t)data;
  }
  col->n_hint = col->n;
  for (int64_t i = 0; i < col->n_children; i++) {
    NANOARROW_RETURN_NOT_OK(column_finish(&col->children[i], array->children[i]));
  }
  return NANOARROW_OK;
}

weir_status format_columns_finish(format_column *cols, int64_t n_cols,
                                  weir_schema *schema, weir_batch **out,
                                  weir_error *err) {
  struct ArrowArray array = {0};
  struct ArrowArrayView view = {
      0}; /* ArrowArrayInitFromSchema loses its own on failure */
  struct ArrowError why = {0};
  weir_status status = WEIR_OK;
  if (ArrowArrayViewInitFromSchema(&view, weir_schema_arrow(schema), &why) !=
          NANOARROW_OK ||
      ArrowArrayInitFromArrayView(&array, &view, &why) != NANOARROW_OK) {
    status = weir_error_set(err, WEIR_E_NOMEM, 0, "no memory for a batch");
    goto out;
  }
  array.length = n_cols > 0 ? cols[0].n : 0;
  array.null_count = 0;
  for (int64_t i = 0; i < n_cols; i++) {
    if (column_finish(&cols[i], array.children[i]) != NANOARROW_OK) {
      status = weir_error_set(err, WEIR_E_NOMEM, 0, "no memory for a batch");
      goto out;
    }
  }
  if (ArrowArrayFinishBuilding(&array, NANOARROW_VALIDATION_LEVEL_NONE, &why) !=
      NANOARROW_OK) {
    status =
        weir_error_set(err, WEIR_E_INTERNAL, 0, "cannot make a batch: %s", why.message);
    goto out;
  }
  status = weir_batch_new(schema, &array, out, err);
out:
  ArrowArrayViewReset(&view);
  for (int64_t i = 0; i < n_cols; i++) format_column_drop(&cols[i]);
  if (array.release) array.release(&array);
  return status;
}
