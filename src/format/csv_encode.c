/* SPDX-License-Identifier: Apache-2.0 */
/* The CSV encoder: batches to records. */
#include <errno.h>
#include <nanoarrow/nanoarrow.h>
#include <stdlib.h>
#include <string.h>

#include "format/csv.h"
#include "format/plain.h"

typedef struct encoder_column {
  format_column type;                         /* of the values, dictionary or not */
  const struct ArrowArrayView *view, *values; /* differ for dictionaries */
} encoder_column;

struct weir_csv_encoder {
  weir_schema *schema;
  csv_dialect dialect;
  bool special[256]; /* characters that need quotes */
  bool plain_values; /* numbers and times never need them, nor read as null */
  struct ArrowArrayView view;
  encoder_column *columns;
  int64_t n_columns;
  base_buf header, text;
};

static bool is_null_text(const csv_dialect *dialect, const void *text, size_t n) {
  return n == dialect->null_len && memcmp(text, dialect->null_text, n) == 0;
}

/* A byte order mark could be taken for the file's. */
static bool needs_quotes(const weir_csv_encoder *encoder, const uint8_t *text, size_t n) {
  if (n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) return true;
  for (size_t i = 0; i < n; i++) {
    if (encoder->special[text[i]]) return true;
  }
  return false;
}

/* A text, in quotes if it needs them or must be told from null. False when there are no quotes. */
static weir_status put_text(weir_csv_encoder *encoder, base_buf *buf, const uint8_t *text,
                            size_t n, bool not_null, bool *ok, weir_error *err) {
  int quote = encoder->dialect.quote;
  bool quotes = not_null || needs_quotes(encoder, text, n);
  *ok = !quotes || quote >= 0;
  if (!*ok) return WEIR_OK;
  if (!quotes) return base_buf_append(buf, text, n, err);
  BASE_TRY(base_buf_reserve(buf, 2 * n + 2, err));
  uint8_t *p = buf->data + buf->size;
  *p++ = (uint8_t)quote;
  for (size_t i = 0; i < n; i++) {
    *p++ = text[i];
    if (text[i] == quote) *p++ = (uint8_t)quote;
  }
  *p++ = (uint8_t)quote;
  buf->size = (size_t)(p - buf->data);
  return WEIR_OK;
}

static weir_status bad_value(const encoder_column *col, int64_t row, int64_t column,
                             const char *what, weir_error *err) {
  weir_status status =
      weir_error_set(err, WEIR_E_BAD_DATA, WEIR_ERR_BAD_DATA,
                     "column '%s': %s, so CSV cannot carry it", col->type.name, what);
  return weir_error_at(err, status, row, (int32_t)column);
}

#if defined(__SSE2__)
static inline __m128i find_special(const void *context, __m128i v) {
  const csv_dialect *dialect = context;
  __m128i found = _mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8('\r')),
                               _mm_cmpeq_epi8(v, _mm_set1_epi8('\n')));
  found = _mm_or_si128(found, _mm_cmpeq_epi8(v, _mm_set1_epi8((char)dialect->delimiter)));
  /* without quotes: 0xff, which is none of a plain text */
  return _mm_or_si128(found, _mm_cmpeq_epi8(v, _mm_set1_epi8((char)dialect->quote)));
}
#endif

/* Most values, straight into the output; false for those that may need quotes or have no text. */
static inline bool put_plain(weir_csv_encoder *encoder, const encoder_column *col,
                             int64_t i) {
  base_buf *buf = &encoder->text;
  format_kind kind = col->type.kind;
  if (kind == FORMAT_UTF8) {
#if defined(__SSE2__)
    struct ArrowStringView view = ArrowArrayViewGetStringUnsafe(col->values, i);
    size_t n = (size_t)view.size_bytes;
    if (is_null_text(&encoder->dialect, view.data, n) ||
        base_buf_reserve(buf, n, NULL) != WEIR_OK ||
        !format_copy_plain(buf->data + buf->size, (const uint8_t *)view.data, n,
                           find_special, &encoder->dialect))
      return false;
    buf->size += n;
    return true;
#else
    return false;
#endif
  }
  if (kind == FORMAT_BINARY || kind == FORMAT_FIXED || !encoder->plain_values ||
      base_buf_reserve(buf, FORMAT_VALUE_TEXT, NULL) != WEIR_OK)
    return false;
  char *p = (char *)buf->data + buf->size;
  const char *end = format_value_write(p, &col->type, col->values, i, false);
  if (end == NULL) return false;
  buf->size += (size_t)(end - p);
  return true;
}

/* The value's text; *what tells why it has none. */
static weir_status put_value(weir_csv_encoder *encoder, const encoder_column *col,
                             int64_t i, const char **what, weir_error *err) {
  const csv_dialect *dialect = &encoder->dialect;
  format_kind kind = col->type.kind;
  char plain[FORMAT_VALUE_TEXT], *base64 = NULL;
  const uint8_t *text = (const uint8_t *)plain;
  size_t n = 0;
  bool ok = true;
  if (kind == FORMAT_UTF8) {
    struct ArrowStringView view = ArrowArrayViewGetStringUnsafe(col->values, i);
    text = (const uint8_t *)view.data;
    n = (size_t)view.size_bytes;
    if (!base_utf8_valid(text, n)) {
      *what = "the string is not valid UTF-8";
      return WEIR_OK;
    }
  } else if (kind == FORMAT_BINARY || kind == FORMAT_FIXED) {
    struct ArrowBufferView view = ArrowArrayViewGetBytesUnsafe(col->values, i);
    base64 = base_calloc((size_t)view.size_bytes / 3 + 2, 4, err);
    if (base64 == NULL) return WEIR_E_NOMEM;
    n = format_base64_write(view.data.as_uint8, (size_t)view.size_bytes, base64);
    text = (const uint8_t *)base64;
  } else {
    char *end = format_value_write(plain, &col->type, col->values, i, false);
    if (end == NULL) {
      *what = "the value is outside of its calendar";
      return WEIR_OK;
    }
    n = (size_t)(end - plain);
  }
  bool null = is_null_text(dialect, text, n);
  if (null && kind != FORMAT_UTF8 && kind != FORMAT_BINARY) {
    *what = "the value reads as the text of null";
  } else {
    weir_status status = put_text(encoder, &encoder->text, text, n, null, &ok, err);
    if (status != WEIR_OK) {
      free(base64);
      return status;
    }
    if (!ok) *what = "the text needs quotes, and there are none";
  }
  free(base64);
  return WEIR_OK;
}

static weir_status put_column(weir_csv_encoder *encoder, int64_t column, int64_t row,
                              int64_t i, weir_error *err) {
  const encoder_column *col = &encoder->columns[column];
  const char *what = NULL;
  bool null = ArrowArrayViewIsNull(col->view, i);
  if (column > 0) {
    BASE_TRY(base_buf_reserve(&encoder->text, 1, err));
    encoder->text.data[encoder->text.size++] = encoder->dialect.delimiter;
  }
  if (!null && col->values != col->view) {
    i = ArrowArrayViewGetIntUnsafe(col->view, i);
    if (i < 0 || i >= col->values->length) {
      return bad_value(col, row, column, "the index is outside of its dictionary", err);
    }
    null = ArrowArrayViewIsNull(col->values, i);
  }
  if (null) {
    return base_buf_append(&encoder->text, encoder->dialect.null_text,
                           encoder->dialect.null_len, err);
  }
  if (FORMAT_LIKELY(put_plain(encoder, col, i))) return WEIR_OK;
  BASE_TRY(put_value(encoder, col, i, &what, err));
  return what == NULL ? WEIR_OK : bad_value(col, row, column, what, err);
}

static weir_status put_header(weir_csv_encoder *encoder, weir_error *err) {
  for (int64_t i = 0; i < encoder->n_columns; i++) {
    const char *name = encoder->columns[i].type.name;
    const uint8_t *text = (const uint8_t *)name;
    size_t n = strlen(name);
    bool ok = true;
    for (int64_t k = 0; k < i; k++) {
      if (strcmp(encoder->columns[k].type.name, name) != 0) continue;
      return weir_error_set(err, WEIR_E_SCHEMA, 0,
                            "two columns are named '%s'; a header cannot tell them apart",
                            name);
    }
    if (i > 0) {
      BASE_TRY(base_buf_append_byte(&encoder->header, encoder->dialect.delimiter, err));
    }
    BASE_TRY(put_text(encoder, &encoder->header, text, n, n == 0, &ok, err));
    if (!ok) {
      return weir_error_set(err, WEIR_E_SCHEMA, 0,
                            "column '%s': its name needs quotes, and there are none",
                            name);
    }
  }
  return base_buf_append_byte(&encoder->header, '\n', err);
}

static weir_status column_init(encoder_column *col, const struct ArrowSchema *field,
                               weir_error *err) {
  const struct ArrowSchema *values = field->dictionary ? field->dictionary : field;
  const char *name = field->name ? field->name : "";
  weir_status status =
      format_column_init(&col->type, values, FORMAT_VIEWS, "written as CSV", err);
  if (status != WEIR_OK) {
    return values == field ? status : weir_error_prefix(err, status, "column '%s'", name);
  }
  col->type.name = name;
  return WEIR_OK;
}

static weir_status encoder_init(weir_csv_encoder *encoder, weir_error *err) {
  const struct ArrowSchema *arrow = weir_schema_arrow(encoder->schema);
  struct ArrowError why = {0};
  if (arrow->n_children < 1) {
    return weir_error_set(err, WEIR_E_SCHEMA, 0,
                          "a schema of rows needs at least one column");
  }
  encoder->columns =
      base_calloc((size_t)arrow->n_children, sizeof(*encoder->columns), err);
  if (encoder->columns == NULL) return WEIR_E_NOMEM;
  encoder->n_columns = arrow->n_children;
  for (int64_t i = 0; i < arrow->n_children; i++) {
    BASE_TRY(column_init(&encoder->columns[i], arrow->children[i], err));
  }
  ArrowErrorCode code = ArrowArrayViewInitFromSchema(&encoder->view, arrow, &why);
  if (code != NANOARROW_OK) {
    return weir_error_set(err, code == ENOMEM ? WEIR_E_NOMEM : WEIR_E_SCHEMA, 0,
                          "CSV: %s", why.message);
  }
  for (int64_t i = 0; i < encoder->n_columns; i++) {
    const struct ArrowArrayView *view = encoder->view.children[i];
    encoder->columns[i].view = view;
    encoder->columns[i].values = view->dictionary ? view->dictionary : view;
  }
  encoder->special['\r'] = encoder->special['\n'] = true;
  encoder->special[encoder->dialect.delimiter] = true;
  if (encoder->dialect.quote >= 0) encoder->special[encoder->dialect.quote] = true;
  encoder->plain_values = !encoder->special[':'] && encoder->dialect.null_len == 0;
  return encoder->dialect.header ? put_header(encoder, err) : WEIR_OK;
}

weir_status weir_csv_encoder_new(weir_schema *schema, const weir_csv_options *options,
                                 weir_csv_encoder **out, weir_error *err) {
  csv_dialect dialect = {0};
  BASE_TRY(csv_dialect_read(options, &dialect, err));
  weir_csv_encoder *encoder = base_calloc(1, sizeof(*encoder), err);
  if (encoder == NULL) return WEIR_E_NOMEM;
  ArrowArrayViewInitFromType(&encoder->view, NANOARROW_TYPE_UNINITIALIZED);
  encoder->dialect = dialect;
  encoder->schema = weir_schema_ref(schema);
  weir_status status = encoder_init(encoder, err);
  if (status != WEIR_OK) {
    weir_csv_encoder_free(encoder);
    return status;
  }
  *out = encoder;
  return WEIR_OK;
}

void weir_csv_encoder_free(weir_csv_encoder *encoder) {
  if (encoder == NULL) return;
  free(encoder->columns);
  ArrowArrayViewReset(&encoder->view);
  base_buf_done(&encoder->text);
  base_buf_done(&encoder->header);
  weir_schema_unref(encoder->schema);
  free(encoder);
}

void weir_csv_encoder_header(const weir_csv_encoder *encoder, const uint8_t **data,
                             size_t *size) {
  *data = encoder->header.data;
  *size = encoder->header.size;
}

weir_status weir_csv_encoder_write(weir_csv_encoder *encoder, const weir_batch *batch,
                                   const uint8_t **data, size_t *size, weir_error *err) {
  const struct ArrowArray *array = weir_batch_array(batch);
  struct ArrowError why = {0};
  BASE_TRY(weir_schema_check(weir_schema_arrow(encoder->schema),
                             weir_schema_arrow(weir_batch_schema(batch)), "CSV", err));
  if (ArrowArrayViewSetArray(&encoder->view, array, &why) != NANOARROW_OK) {
    return weir_error_set(err, WEIR_E_INTERNAL, 0, "CSV: %s", why.message);
  }
  base_buf_clear(&encoder->text);
  for (int64_t row = 0; row < array->length; row++) {
    for (int64_t column = 0; column < encoder->n_columns; column++) {
      BASE_TRY(put_column(encoder, column, row, array->offset + row, err));
    }
    BASE_TRY(base_buf_append_byte(&encoder->text, '\n', err));
  }
  *data = encoder->text.data;
  *size = encoder->text.size;
  return WEIR_OK;
}
