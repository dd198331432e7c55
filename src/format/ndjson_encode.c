/* SPDX-License-Identifier: Apache-2.0 */
/* The NDJSON encoder: batches to lines. */
#include <math.h>
#include <nanoarrow/nanoarrow.h>
#include <stdlib.h>
#include <string.h>

#include <weir/ndjson.h>
#include "base/base.h"
#include "format/format.h"

/* Room for any value that is not a string, its quotes, and what follows it. */
#define VALUE_ROOM (FORMAT_DECIMAL_TEXT + 16)

typedef struct encoder_column {
  format_column type; /* of the values, dictionary or not */
  char *key;          /* `"name":` with the brace or comma before it */
  size_t key_size;
  const struct ArrowArrayView *view, *values; /* differ for dictionaries */
} encoder_column;

struct weir_ndjson_encoder {
  weir_schema *schema;
  struct ArrowArrayView view;
  encoder_column *columns;
  int64_t n_columns;
  base_buf text;
};

static weir_status put_string(base_buf *buf, const uint8_t *text, size_t n,
                              weir_error *err) {
  static const char hex[] = "0123456789abcdef";
  static const char escapes[32] = {
      ['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'};
  size_t room = n * 6 + 2 + VALUE_ROOM;
  if (n >= 4096) { /* six bytes a character is rare: worth counting for long strings */
    room = 2 + VALUE_ROOM;
    for (size_t i = 0; i < n; i++) room += text[i] < 0x20 ? 6 : 2;
  }
  BASE_TRY(base_buf_reserve(buf, room, err));
  uint8_t *p = buf->data + buf->size;
  *p++ = '"';
  for (size_t i = 0; i < n;) {
    size_t run = i;
    while (run < n && text[run] >= 0x20 && text[run] != '"' && text[run] != '\\') run++;
    memcpy(p, text + i, run - i);
    p += run - i;
    i = run;
    if (i == n) break;
    uint8_t c = text[i++];
    *p++ = '\\';
    if (c >= 0x20) {
      *p++ = c;
    } else if (escapes[c]) {
      *p++ = (uint8_t)escapes[c];
    } else {
      memcpy(p, "u00", 3);
      p[3] = (uint8_t)hex[c >> 4];
      p[4] = (uint8_t)hex[c & 15];
      p += 5;
    }
  }
  *p++ = '"';
  buf->size = (size_t)(p - buf->data);
  return WEIR_OK;
}

static char *put_word(char *p, const char *word) {
  size_t n = strlen(word);
  memcpy(p, word, n);
  return p + n;
}

static char *put_uint(char *p, uint64_t value) {
  char digits[20];
  int n = 0;
  do digits[n++] = (char)('0' + value % 10);
  while ((value /= 10) > 0);
  while (n > 0) *p++ = digits[--n];
  return p;
}

static char *put_int(char *p, int64_t value) {
  if (value < 0) *p++ = '-';
  return put_uint(p, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

static char *put_real(char *p, double value, bool single) {
  if (isnan(value)) return put_word(p, "\"NaN\"");
  if (isinf(value)) return put_word(p, value < 0 ? "\"-Infinity\"" : "\"Infinity\"");
  return p +
         (single ? format_float_write((float)value, p) : format_double_write(value, p));
}

/* Dates and times: NULL when the value has no text. */
static char *put_chrono(char *p, const format_column *type, int64_t value) {
  size_t n = 0;
  *p++ = '"';
  switch (type->kind) {
    case FORMAT_DATE32:
      n = format_date_write(value, p);
      break;
    case FORMAT_DATE64:
      if (value % INT64_C(86400000) == 0)
        n = format_date_write(value / INT64_C(86400000), p);
      break;
    case FORMAT_TIMESTAMP:
      n = format_timestamp_write(value, type->unit, type->zoned, p);
      break;
    default:
      n = format_time_write(value, type->unit, p);
  }
  if (n == 0) return NULL;
  p[n] = '"';
  return p + n + 1;
}

/* A value that needs no more than VALUE_ROOM; NULL when it has no text. */
static char *put_value(char *p, const encoder_column *col, int64_t i) {
  const format_column *type = &col->type;
  switch (type->kind) {
    case FORMAT_BOOL:
      return put_word(p, ArrowArrayViewGetIntUnsafe(col->values, i) ? "true" : "false");
    case FORMAT_UINT64:
      return put_uint(p, ArrowArrayViewGetUIntUnsafe(col->values, i));
    case FORMAT_HALF: {
      const uint16_t *half = col->values->buffer_views[1].data.as_uint16;
      return put_real(p, format_half_to_double(half[col->values->offset + i]), true);
    }
    case FORMAT_FLOAT:
    case FORMAT_DOUBLE:
      return put_real(p, ArrowArrayViewGetDoubleUnsafe(col->values, i),
                      type->kind == FORMAT_FLOAT);
    case FORMAT_DECIMAL: {
      const uint8_t *bytes = col->values->buffer_views[1].data.as_uint8;
      bytes += (size_t)(col->values->offset + i) * (size_t)type->width;
      return p + format_decimal_write(bytes, type->width, type->scale, p);
    }
    case FORMAT_DATE32:
    case FORMAT_DATE64:
    case FORMAT_TIME32:
    case FORMAT_TIME64:
    case FORMAT_TIMESTAMP:
      return put_chrono(p, type, ArrowArrayViewGetIntUnsafe(col->values, i));
    default:
      return put_int(p, ArrowArrayViewGetIntUnsafe(col->values, i));
  }
}

static weir_status bad_value(const encoder_column *col, int64_t row, int64_t column,
                             const char *what, weir_error *err) {
  weir_status status =
      weir_error_set(err, WEIR_E_BAD_DATA, WEIR_ERR_BAD_DATA,
                     "row %lld, column '%s': %s, so NDJSON cannot carry it",
                     (long long)row, col->type.name, what);
  return weir_error_at(err, status, row, (int32_t)column);
}

static weir_status put_column(weir_ndjson_encoder *encoder, int64_t column, int64_t row,
                              int64_t i, weir_error *err) {
  const encoder_column *col = &encoder->columns[column];
  base_buf *buf = &encoder->text;
  BASE_TRY(base_buf_reserve(buf, col->key_size + VALUE_ROOM, err));
  memcpy(buf->data + buf->size, col->key, col->key_size);
  buf->size += col->key_size;
  bool null = ArrowArrayViewIsNull(col->view, i);
  if (!null && col->values != col->view) {
    i = ArrowArrayViewGetIntUnsafe(col->view, i);
    if (i < 0 || i >= col->values->length) {
      return bad_value(col, row, column, "the index is outside of its dictionary", err);
    }
    null = ArrowArrayViewIsNull(col->values, i);
  }
  char *p = (char *)buf->data + buf->size, *end;
  if (null) {
    end = put_word(p, "null");
  } else if (col->type.kind == FORMAT_UTF8) {
    struct ArrowStringView text = ArrowArrayViewGetStringUnsafe(col->values, i);
    if (!base_utf8_valid(text.data, (size_t)text.size_bytes)) {
      return bad_value(col, row, column, "the string is not valid UTF-8", err);
    }
    return put_string(buf, (const uint8_t *)text.data, (size_t)text.size_bytes, err);
  } else if (col->type.kind == FORMAT_BINARY || col->type.kind == FORMAT_FIXED) {
    struct ArrowBufferView bytes = ArrowArrayViewGetBytesUnsafe(col->values, i);
    BASE_TRY(base_buf_reserve(buf, (size_t)bytes.size_bytes / 3 * 4 + VALUE_ROOM, err));
    p = (char *)buf->data + buf->size;
    end = p;
    *end++ = '"';
    end += format_base64_write(bytes.data.as_uint8, (size_t)bytes.size_bytes, end);
    *end++ = '"';
  } else {
    end = put_value(p, col, i);
    if (end == NULL)
      return bad_value(col, row, column, "the value is outside of its calendar", err);
  }
  buf->size += (size_t)(end - p);
  return WEIR_OK;
}

static weir_status column_init(encoder_column *col, const struct ArrowSchema *field,
                               bool first, weir_error *err) {
  const struct ArrowSchema *values = field->dictionary ? field->dictionary : field;
  base_buf key = {0};
  const char *name = field->name ? field->name : "";
  weir_status status =
      format_column_init(&col->type, values, true, "written as NDJSON", err);
  if (status != WEIR_OK) {
    return values == field ? status : weir_error_prefix(err, status, "column '%s'", name);
  }
  col->type.name = name;
  BASE_GOTO(status, base_buf_append_byte(&key, first ? '{' : ',', err));
  BASE_GOTO(status, put_string(&key, (const uint8_t *)name, strlen(name), err));
  BASE_GOTO(status, base_buf_append_byte(&key, ':', err));
  col->key_size = key.size;
  col->key = base_buf_steal_str(&key, err);
  if (col->key == NULL) status = WEIR_E_NOMEM;
out:
  base_buf_done(&key);
  return status;
}

static weir_status encoder_init(weir_ndjson_encoder *encoder, weir_error *err) {
  const struct ArrowSchema *arrow = weir_schema_arrow(encoder->schema);
  struct ArrowError why = {0};
  encoder->columns =
      base_calloc((size_t)arrow->n_children, sizeof(*encoder->columns), err);
  if (encoder->columns == NULL) return WEIR_E_NOMEM;
  encoder->n_columns = arrow->n_children;
  for (int64_t i = 0; i < arrow->n_children; i++) {
    BASE_TRY(column_init(&encoder->columns[i], arrow->children[i], i == 0, err));
  }
  if (ArrowArrayViewInitFromSchema(&encoder->view, arrow, &why) != NANOARROW_OK) {
    return weir_error_set(err, WEIR_E_SCHEMA, 0, "NDJSON: %s", why.message);
  }
  for (int64_t i = 0; i < encoder->n_columns; i++) {
    const struct ArrowArrayView *view = encoder->view.children[i];
    encoder->columns[i].view = view;
    encoder->columns[i].values = view->dictionary ? view->dictionary : view;
  }
  return WEIR_OK;
}

weir_status weir_ndjson_encoder_new(weir_schema *schema, weir_ndjson_encoder **out,
                                    weir_error *err) {
  weir_ndjson_encoder *encoder = base_calloc(1, sizeof(*encoder), err);
  if (encoder == NULL) return WEIR_E_NOMEM;
  ArrowArrayViewInitFromType(&encoder->view, NANOARROW_TYPE_UNINITIALIZED);
  encoder->schema = weir_schema_ref(schema);
  weir_status status = encoder_init(encoder, err);
  if (status != WEIR_OK) {
    weir_ndjson_encoder_free(encoder);
    return status;
  }
  *out = encoder;
  return WEIR_OK;
}

void weir_ndjson_encoder_free(weir_ndjson_encoder *encoder) {
  if (encoder == NULL) return;
  for (int64_t i = 0; i < encoder->n_columns; i++) free(encoder->columns[i].key);
  free(encoder->columns);
  ArrowArrayViewReset(&encoder->view);
  base_buf_done(&encoder->text);
  weir_schema_unref(encoder->schema);
  free(encoder);
}

weir_status weir_ndjson_encoder_write(weir_ndjson_encoder *encoder,
                                      const weir_batch *batch, const uint8_t **data,
                                      size_t *size, weir_error *err) {
  const struct ArrowArray *array = weir_batch_array(batch);
  struct ArrowError why = {0};
  BASE_TRY(weir_schema_check(weir_schema_arrow(encoder->schema),
                             weir_schema_arrow(weir_batch_schema(batch)), "NDJSON", err));
  if (ArrowArrayViewSetArray(&encoder->view, array, &why) != NANOARROW_OK) {
    return weir_error_set(err, WEIR_E_INTERNAL, 0, "NDJSON: %s", why.message);
  }
  base_buf *buf = &encoder->text;
  base_buf_clear(buf);
  for (int64_t row = 0; row < array->length; row++) {
    for (int64_t column = 0; column < encoder->n_columns; column++) {
      BASE_TRY(put_column(encoder, column, row, array->offset + row, err));
    }
    if (encoder->n_columns == 0) BASE_TRY(base_buf_append_byte(buf, '{', err));
    BASE_TRY(base_buf_append(buf, "}\n", 2, err));
  }
  *data = buf->data;
  *size = buf->size;
  return WEIR_OK;
}
