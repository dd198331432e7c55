/* SPDX-License-Identifier: Apache-2.0 */
/* The way of any row, through yyjson, and what is said about rows that cannot be taken. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "format/ndjson.h"

static weir_status bad_line(const weir_ndjson_decoder *decoder, const uint8_t *line,
                            size_t size, size_t at, const char *what, weir_error *err) {
  char near[FORMAT_EXCERPT];
  if (at > size) at = size;
  format_excerpt(line, size, at, near);
  return weir_error_set(
      err, WEIR_E_BAD_DATA, WEIR_ERR_BAD_DATA, "line %llu, byte %llu: %s; near: %s",
      (unsigned long long)decoder->line + 1,
      (unsigned long long)(decoder->offset + decoder->mark + at), what, near);
}

static const char *expected_text(const format_column *col) {
  switch (col->kind) {
    case FORMAT_BOOL:
      return "true or false";
    case FORMAT_HALF:
    case FORMAT_FLOAT:
    case FORMAT_DOUBLE:
      return "a number, or \"NaN\", \"Infinity\", \"-Infinity\"";
    case FORMAT_DECIMAL:
      return "a number, or a string holding one";
    case FORMAT_UTF8:
      return "a string, number, true or false";
    case FORMAT_BINARY:
    case FORMAT_FIXED:
      return "a string in base64";
    case FORMAT_DATE32:
    case FORMAT_DATE64:
      return "a date as \"2024-02-29\"";
    case FORMAT_TIME32:
    case FORMAT_TIME64:
      return "a time as \"23:59:59\"";
    case FORMAT_TIMESTAMP:
      return col->zoned ? "a timestamp with its zone as \"2024-02-29T23:59:59Z\""
                        : "a timestamp as \"2024-02-29T23:59:59\"";
    case FORMAT_LIST:
      return "an array";
    case FORMAT_FIXED_LIST:
      return "an array with as many items as the type says";
    case FORMAT_MAP:
      return col->string_keys ? "an object with distinct keys"
                              : "an array of {\"key\": ..., \"value\": ...}";
    case FORMAT_STRUCT:
      return "an object";
    default:
      return "a whole number";
  }
}

/* One row on its way into the columns. */
typedef struct row {
  weir_ndjson_decoder *decoder;
  yyjson_doc *doc;
  const uint8_t *line;
  size_t size;
  int32_t column; /* the one being filled */
  weir_error *err;
} row;

static weir_status bad_value(const row *r, const ndjson_path *path, size_t at,
                             format_result result) {
  char type[80], where[NDJSON_PATH_TEXT], what[600];
  ndjson_path_text(path, where);
  if (result == FORMAT_NOMEM) {
    return weir_error_set(r->err, WEIR_E_NOMEM, 0, "line %llu: no memory for column '%s'",
                          (unsigned long long)r->decoder->line + 1, where);
  }
  weir_type_format(path->col->field, type, sizeof(type));
  snprintf(what, sizeof(what), "column '%s' (%s) %s; expected %s", where, type,
           format_result_text(result), expected_text(path->col));
  weir_status status = bad_line(r->decoder, r->line, r->size, at, what, r->err);
  return weir_error_at(r->err, status, -1, r->column);
}

/* Where a key or value stands in the line: yyjson keeps strings and raw numbers in place, in its copy
 * of the line. Other values are placed by the nearest key. */
static size_t place_of(const yyjson_doc *doc, yyjson_val *key, yyjson_val *val) {
  const char *text = yyjson_is_str(val) ? yyjson_get_str(val) : yyjson_get_raw(val);
  if (text == NULL) text = yyjson_get_str(key);
  return text == NULL ? 0 : (size_t)(text - doc->str_pool);
}

/* The fast ways give up at such a key, so that it is told here. */
static weir_status unknown_key(const row *r, const ndjson_path *path, yyjson_val *key) {
  char name[FORMAT_EXCERPT], where[NDJSON_PATH_TEXT] = "", what[600];
  format_excerpt((const uint8_t *)yyjson_get_str(key), yyjson_get_len(key), 0, name);
  if (path != NULL) ndjson_path_text(path, where);
  snprintf(what, sizeof(what), "column '%s%s%s' is not in the schema", where,
           path != NULL ? "." : "", name);
  size_t at = place_of(r->doc, key, NULL);
  weir_status status = bad_line(r->decoder, r->line, r->size, at, what, r->err);
  return weir_error_at(r->err, status, -1, (int32_t)r->decoder->n_columns);
}

static format_result append_flat(format_column *col, yyjson_val *val) {
  switch (yyjson_get_type(val)) {
    case YYJSON_TYPE_NULL:
      return format_column_null(col);
    case YYJSON_TYPE_BOOL:
      return format_column_bool(col, yyjson_get_bool(val));
    case YYJSON_TYPE_RAW: /* a number's text, with a NUL behind it */
      return format_column_number(col, (const uint8_t *)yyjson_get_raw(val),
                                  yyjson_get_len(val));
    case YYJSON_TYPE_STR:
      return format_column_string(col, (const uint8_t *)yyjson_get_str(val),
                                  yyjson_get_len(val));
    default:
      return FORMAT_TYPE;
  }
}

static weir_status append_value(row *r, const ndjson_path *path, yyjson_val *key,
                                yyjson_val *val);

/* Ends a list or map. */
static weir_status close_list(row *r, const ndjson_path *path, yyjson_val *key) {
  format_key twice = {0};
  ndjson_path at_key = {path, path->col, &twice, -1};
  format_result result = FORMAT_OK;
  if (path->col->kind == FORMAT_MAP) result = format_map_check(path->col, &twice);
  if (result == FORMAT_TWICE) path = &at_key;
  if (result == FORMAT_OK) result = format_list_close(path->col);
  return result ? bad_value(r, path, place_of(r->doc, key, NULL), result) : WEIR_OK;
}

static weir_status append_list(row *r, const ndjson_path *path, yyjson_val *key,
                               yyjson_val *array) {
  yyjson_arr_iter iter;
  yyjson_val *val;
  ndjson_path item = {path, &path->col->children[0], NULL, 0};
  yyjson_arr_iter_init(array, &iter);
  for (; (val = yyjson_arr_iter_next(&iter)) != NULL; item.item++)
    BASE_TRY(append_value(r, &item, key, val));
  return close_list(r, path, key);
}

static weir_status append_map(row *r, const ndjson_path *path, yyjson_val *map_key,
                              yyjson_val *object) {
  format_column *entries = &path->col->children[0];
  format_column *keys = &entries->children[0], *values = &entries->children[1];
  yyjson_obj_iter iter;
  yyjson_val *key;
  yyjson_obj_iter_init(object, &iter);
  while ((key = yyjson_obj_iter_next(&iter)) != NULL) {
    format_key text = {(const uint8_t *)yyjson_get_str(key), yyjson_get_len(key), 0};
    ndjson_path value = {path, values, &text, -1};
    format_result result = FORMAT_NOMEM;
    if (format_column_room(entries) && format_column_room(keys))
      result = format_column_string(keys, text.data, text.size);
    if (result != FORMAT_OK)
      return bad_value(r, &value, place_of(r->doc, key, key), result);
    BASE_TRY(append_value(r, &value, key, yyjson_obj_iter_get_val(key)));
    entries->n++;
  }
  return close_list(r, path, map_key);
}

/* The fields of an object into columns that have `n` values each, all of them one more then. `path` and
 * `above` are those of the object, NULL for the row itself. */
static weir_status append_fields(row *r, const ndjson_path *path, yyjson_val *above,
                                 yyjson_val *object, format_column *cols, int64_t n_cols,
                                 const format_names *names, int64_t n) {
  yyjson_obj_iter iter;
  yyjson_val *key;
  yyjson_obj_iter_init(object, &iter);
  while ((key = yyjson_obj_iter_next(&iter)) != NULL) {
    yyjson_val *val = yyjson_obj_iter_get_val(key);
    int32_t i = format_names_find(names, cols, (const uint8_t *)yyjson_get_str(key),
                                  yyjson_get_len(key));
    if (i < 0 && r->decoder->refuse_unknown) return unknown_key(r, path, key);
    if (i < 0) continue;
    ndjson_path field = {path, &cols[i], NULL, -1};
    if (path == NULL) r->column = i;
    if (cols[i].n != n)
      return bad_value(r, &field, place_of(r->doc, key, val), FORMAT_TWICE);
    BASE_TRY(append_value(r, &field, key, val));
  }
  for (int64_t i = 0; i < n_cols; i++) {
    if (cols[i].n > n) continue;
    ndjson_path field = {path, &cols[i], NULL, -1};
    if (path == NULL) r->column = (int32_t)i;
    format_result result =
        format_column_room(&cols[i]) ? format_column_null(&cols[i]) : FORMAT_NOMEM;
    if (result != FORMAT_OK)
      return bad_value(r, &field, place_of(r->doc, above, NULL), result);
  }
  return WEIR_OK;
}

static weir_status append_value(row *r, const ndjson_path *path, yyjson_val *key,
                                yyjson_val *val) {
  format_column *col = path->col;
  bool list = col->kind >= FORMAT_LIST && col->kind <= FORMAT_FIXED_LIST;
  format_result result = FORMAT_NOMEM;
  if (format_column_room(col)) {
    if (list && yyjson_is_arr(val)) return append_list(r, path, key, val);
    if (col->kind == FORMAT_MAP && col->string_keys && yyjson_is_obj(val))
      return append_map(r, path, key, val);
    if (col->kind == FORMAT_STRUCT && yyjson_is_obj(val)) {
      BASE_TRY(append_fields(r, path, key, val, col->children, col->n_children,
                             &col->names, col->n));
      col->n++;
      return WEIR_OK;
    }
    result = append_flat(col, val);
  }
  return result ? bad_value(r, path, place_of(r->doc, key, val), result) : WEIR_OK;
}

static weir_status append_object(weir_ndjson_decoder *decoder, yyjson_doc *doc,
                                 const uint8_t *line, size_t size, weir_error *err) {
  row r = {decoder, doc, line, size, -1, err};
  yyjson_val *root = yyjson_doc_get_root(doc);
  if (!yyjson_is_obj(root)) {
    return bad_line(decoder, line, size, 0, "not a JSON object", err);
  }
  return append_fields(&r, NULL, NULL, root, decoder->columns, decoder->n_columns,
                       &decoder->names, decoder->rows);
}

weir_status ndjson_row_slow(weir_ndjson_decoder *decoder, const uint8_t *line,
                            size_t size, weir_error *err) {
  yyjson_alc alc;
  yyjson_read_err why = {0};
  yyjson_read_flag flags = YYJSON_READ_NUMBER_AS_RAW;
  bool pooled = yyjson_read_max_memory_usage(size, flags) <= decoder->pool_size &&
                yyjson_alc_pool_init(&alc, decoder->pool, decoder->pool_size);
  yyjson_doc *doc =
      yyjson_read_opts((char *)(uintptr_t)line, size, flags, pooled ? &alc : NULL, &why);
  if (doc == NULL) {
    if (why.code == YYJSON_READ_ERROR_MEMORY_ALLOCATION) {
      return weir_error_set(err, WEIR_E_NOMEM, 0,
                            "line %llu: no memory for its %zu bytes",
                            (unsigned long long)decoder->line + 1, size);
    }
    char what[200];
    snprintf(what, sizeof(what), "malformed JSON: %s", why.msg);
    return bad_line(decoder, line, size, why.pos, what, err);
  }
  weir_status status = append_object(decoder, doc, line, size, err);
  yyjson_doc_free(doc);
  return status;
}
