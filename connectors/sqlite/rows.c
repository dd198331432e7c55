/* SPDX-License-Identifier: Apache-2.0 */
/* Values of a batch: checked before anything of it is taken, then bound one by one. */
#include <stdlib.h>
#include <string.h>

#include "sqlite.h"

typedef struct value_column {
  const lite_type *type;
  int key;
  /* of what is written as text: that of row i is text[ends[i] .. ends[i + 1]) */
  char *text;
  size_t *ends;
} value_column;

struct lite_rows {
  weir_batch *batch;
  struct ArrowArrayView view;
  int64_t n, columns;
  const struct ArrowArrayView *op; /* NULL: all rows are replaced or added */
  value_column *v;
};

/* ---- checks ------------------------------------------------------------------------------------- */

static weir_status bad(const lite_rows *rows, int64_t row, int64_t column,
                       const char *what, weir_error *err) {
  const struct ArrowSchema *schema = weir_schema_arrow(weir_batch_schema(rows->batch));
  weir_error_set(err, WEIR_E_BAD_DATA, WEIR_ERR_BAD_DATA, "column '%s': %s",
                 schema->children[column]->name, what);
  return weir_error_at(err, WEIR_E_BAD_DATA, row, (int32_t)column);
}

/* Length of the sequence that begins there, 0 when there is none. Unicode 15, table 3-7. */
static size_t sequence(const uint8_t *p, size_t left) {
  static const struct {
    uint8_t first, last, low, high, size;
  } forms[] = {{0x01, 0x7f, 0, 0, 1},       {0xc2, 0xdf, 0x80, 0xbf, 2},
               {0xe0, 0xe0, 0xa0, 0xbf, 3}, {0xe1, 0xec, 0x80, 0xbf, 3},
               {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
               {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4},
               {0xf4, 0xf4, 0x80, 0x8f, 4}};
  for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
    if (*p < forms[i].first || *p > forms[i].last) continue;
    if (forms[i].size > left) return 0;
    if (forms[i].size > 1 && (p[1] < forms[i].low || p[1] > forms[i].high)) return 0;
    for (size_t k = 2; k < forms[i].size; k++)
      if ((p[k] & 0xc0) != 0x80) return 0;
    return forms[i].size;
  }
  return 0;
}

/* NULL, or what is wrong with a text. */
static const char *wrong_text(struct ArrowStringView text) {
  const uint8_t *p = (const uint8_t *)text.data;
  for (size_t i = 0, left = (size_t)text.size_bytes; left;) {
    size_t n = sequence(p + i, left);
    if (!n)
      return p[i] ? "the text is not UTF-8"
                  : "the text has a NUL, at which SQLite's functions would stop";
    i += n;
    left -= n;
  }
  return NULL;
}

/* The view that holds the value, and where; NULL: it is null. */
static const struct ArrowArrayView *find(const lite_rows *rows, int64_t row,
                                         int64_t column, int64_t *at) {
  const struct ArrowArrayView *view = rows->view.children[column];
  if (ArrowArrayViewIsNull(view, row)) return NULL;
  *at = row;
  if (!view->dictionary) return view;
  *at = ArrowArrayViewGetIntUnsafe(view, row);
  return ArrowArrayViewIsNull(view->dictionary, *at) ? NULL : view->dictionary;
}

static const char *wrong_value(const value_column *v, const struct ArrowArrayView *view,
                               int64_t at) {
  if (v->type->way != LITE_BY_VALUE) return NULL;
  if (v->type->storage == LITE_TEXT)
    return wrong_text(ArrowArrayViewGetStringUnsafe(view, at));
  if (view->storage_type == NANOARROW_TYPE_UINT64 &&
      ArrowArrayViewGetUIntUnsafe(view, at) > INT64_MAX)
    return "more than SQLite's largest integer, 9223372036854775807";
  if (v->type->storage == LITE_REAL) {
    double d = ArrowArrayViewGetDoubleUnsafe(view, at);
    if (d != d) return "NaN, which SQLite would store as NULL";
  }
  return NULL;
}

static weir_status check_column(const lite_rows *rows, int64_t column, weir_error *err) {
  const value_column *v = &rows->v[column];
  for (int64_t row = 0; row < rows->n; row++) {
    int64_t at = 0;
    if (!v->key && lite_rows_deletes(rows, row)) continue;
    const struct ArrowArrayView *view = find(rows, row, column, &at);
    const char *wrong = view     ? wrong_value(v, view, at)
                        : v->key ? "null in a column of the key"
                                 : NULL;
    if (wrong) return bad(rows, row, column, wrong, err);
  }
  return WEIR_OK;
}

static weir_status check_op(const lite_rows *rows, weir_error *err) {
  for (int64_t row = 0; rows->op && row < rows->n; row++) {
    struct ArrowStringView op = {NULL, 0};
    if (!ArrowArrayViewIsNull(rows->op, row))
      op = ArrowArrayViewGetStringUnsafe(rows->op, row);
    if (op.size_bytes != 1 || (*op.data != 'U' && *op.data != 'D'))
      return bad(rows, row, rows->columns, "neither U nor D", err);
  }
  return WEIR_OK;
}

/* ---- values that are written as text ------------------------------------------------------------- */

/* The column alone, called "v". */
static weir_status one_column(weir_batch *batch, int64_t column, weir_batch **out,
                              weir_error *err) {
  weir_schema *alone = NULL, *renamed = NULL;
  struct ArrowSchema copy = {0};
  weir_status status =
      weir_schema_select(weir_batch_schema(batch), &column, 1, &alone, err);
  if (!status) status = weir_schema_export(alone, &copy, err);
  if (!status && ArrowSchemaSetName(copy.children[0], "v") != NANOARROW_OK)
    status = weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
  if (!status) status = weir_schema_new(&copy, &renamed, err);
  if (!status) status = weir_batch_select(batch, renamed, &column, out, err);
  if (copy.release) copy.release(&copy);
  weir_schema_unref(alone);
  weir_schema_unref(renamed);
  return status;
}

/* Lines of {"v":VALUE} become the values, of which texts lose their quotes. */
static weir_status keep_lines(value_column *v, int64_t rows, const uint8_t *data,
                              size_t size, weir_error *err) {
  v->text = malloc(size + 1);
  v->ends = calloc((size_t)rows + 1, sizeof(*v->ends));
  if (!v->text || !v->ends) return weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
  const uint8_t *line = data;
  for (int64_t row = 0; row < rows; row++) {
    const uint8_t *end = memchr(line, '\n', size - (size_t)(line - data));
    const uint8_t *from = line + strlen("{\"v\":"), *to = end - 1;
    if (v->type->way == LITE_BY_TEXT && *from == '"') from++, to--;
    memcpy(v->text + v->ends[row], from, (size_t)(to - from));
    v->ends[row + 1] = v->ends[row] + (size_t)(to - from);
    line = end + 1;
  }
  return WEIR_OK;
}

static weir_status write_text(lite_rows *rows, int64_t column, weir_error *err) {
  weir_batch *alone = NULL;
  weir_ndjson_encoder *encoder = NULL;
  const uint8_t *data = NULL;
  size_t size = 0;
  LITE_TRY(one_column(rows->batch, column, &alone, err));
  weir_status status = weir_ndjson_encoder_new(weir_batch_schema(alone), &encoder, err);
  if (!status) status = weir_ndjson_encoder_write(encoder, alone, &data, &size, err);
  if (status && err && err->row >= 0) {
    err->column = (int32_t)column;
    weir_error_prefix(
        err, status, "column '%s'",
        weir_schema_arrow(weir_batch_schema(rows->batch))->children[column]->name);
  }
  if (!status) status = keep_lines(&rows->v[column], rows->n, data, size, err);
  weir_ndjson_encoder_free(encoder);
  weir_batch_unref(alone);
  return status;
}

/* ---- life --------------------------------------------------------------------------------------- */

static weir_status fill(const lite_config *config, lite_rows *rows, weir_error *err) {
  struct ArrowError why = {0};
  const struct ArrowSchema *schema = weir_schema_arrow(weir_batch_schema(rows->batch));
  const struct ArrowArray *array = weir_batch_array(rows->batch);
  if (ArrowArrayViewInitFromSchema(&rows->view, schema, &why) != NANOARROW_OK ||
      ArrowArrayViewSetArray(&rows->view, array, &why) != NANOARROW_OK)
    return weir_error_set(err, WEIR_E_INTERNAL, 0, "sink sqlite: %s", why.message);
  rows->n = array->length;
  rows->columns = lite_columns(schema);
  if (rows->columns < schema->n_children) rows->op = rows->view.children[rows->columns];
  rows->v = calloc((size_t)rows->columns, sizeof(*rows->v));
  if (!rows->v) return weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
  LITE_TRY(check_op(rows, err));
  for (int64_t i = 0; i < rows->columns; i++) {
    value_column *v = &rows->v[i];
    v->type = lite_type_of(schema->children[i]);
    v->key = lite_is_key(config, schema->children[i]->name);
    if (!v->type)
      return weir_error_set(err, WEIR_E_SCHEMA, 0,
                            "column '%s' has a type without a place",
                            schema->children[i]->name);
    LITE_TRY(check_column(rows, i, err));
    if (v->type->way != LITE_BY_VALUE) LITE_TRY(write_text(rows, i, err));
  }
  return WEIR_OK;
}

weir_status lite_rows_open(const lite_config *config, weir_batch *batch, lite_rows **out,
                           weir_error *err) {
  lite_rows *rows = calloc(1, sizeof(*rows));
  if (!rows) return weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
  ArrowArrayViewInitFromType(&rows->view, NANOARROW_TYPE_UNINITIALIZED);
  rows->batch = weir_batch_ref(batch);
  weir_status status = fill(config, rows, err);
  if (status) {
    lite_rows_free(rows);
    return status;
  }
  *out = rows;
  return WEIR_OK;
}

void lite_rows_free(lite_rows *rows) {
  if (!rows) return;
  for (int64_t i = 0; rows->v && i < rows->columns; i++) {
    free(rows->v[i].text);
    free(rows->v[i].ends);
  }
  free(rows->v);
  ArrowArrayViewReset(&rows->view);
  weir_batch_unref(rows->batch);
  free(rows);
}

int lite_rows_deletes(const lite_rows *rows, int64_t row) {
  return rows->op && *ArrowArrayViewGetStringUnsafe(rows->op, row).data == 'D';
}

int lite_rows_bind(const lite_rows *rows, int64_t row, int64_t column, sqlite3_stmt *stmt,
                   int at) {
  const value_column *v = &rows->v[column];
  int64_t i = 0;
  const struct ArrowArrayView *view = find(rows, row, column, &i);
  if (!view) return sqlite3_bind_null(stmt, at);
  if (v->text)
    return sqlite3_bind_text64(stmt, at, v->text + v->ends[row],
                               v->ends[row + 1] - v->ends[row], SQLITE_STATIC,
                               SQLITE_UTF8);
  struct ArrowBufferView bytes;
  struct ArrowStringView text;
  switch (v->type->storage) {
    case LITE_INTEGER:
      return sqlite3_bind_int64(stmt, at, ArrowArrayViewGetIntUnsafe(view, i));
    case LITE_REAL:
      return sqlite3_bind_double(stmt, at, ArrowArrayViewGetDoubleUnsafe(view, i));
    case LITE_TEXT:
      text = ArrowArrayViewGetStringUnsafe(view, i);
      return sqlite3_bind_text64(stmt, at, text.size_bytes ? text.data : "",
                                 (sqlite3_uint64)text.size_bytes, SQLITE_STATIC,
                                 SQLITE_UTF8);
    default:
      bytes = ArrowArrayViewGetBytesUnsafe(view, i);
      if (!bytes.size_bytes) return sqlite3_bind_zeroblob(stmt, at, 0);
      return sqlite3_bind_blob64(stmt, at, bytes.data.data,
                                 (sqlite3_uint64)bytes.size_bytes, SQLITE_STATIC);
  }
}
