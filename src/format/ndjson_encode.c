/* SPDX-License-Identifier: Apache-2.0 */
/* The NDJSON encoder: batches to lines. */
#include <nanoarrow/nanoarrow.h>
#include <stdlib.h>
#include <string.h>

#include <weir/ndjson.h>
#include "base/base.h"
#include "format/format.h"

/* Room for any value that is not a string, its quotes, and what follows it. */
#define VALUE_ROOM FORMAT_VALUE_TEXT

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
    end = p + 4;
    memcpy(p, "null", 4);
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
    end = format_value_write(p, &col->type, col->values, i, true);
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
