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
      return "a string";
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
    default:
      return "a whole number";
  }
}

static weir_status bad_value(const weir_ndjson_decoder *decoder, int64_t column,
                             const uint8_t *line, size_t size, size_t at,
                             format_result result, weir_error *err) {
  const format_column *col = &decoder->columns[column];
  char type[80], what[400];
  if (result == FORMAT_NOMEM) {
    return weir_error_set(err, WEIR_E_NOMEM, 0, "line %llu: no memory for column '%s'",
                          (unsigned long long)decoder->line + 1, col->name);
  }
  weir_type_format(weir_schema_arrow(decoder->schema)->children[column], type,
                   sizeof(type));
  snprintf(what, sizeof(what), "column '%.100s' (%s) %s; expected %s", col->name, type,
           format_result_text(result), expected_text(col));
  weir_status status = bad_line(decoder, line, size, at, what, err);
  return weir_error_at(err, status, -1, (int32_t)column);
}

static format_result append_value(format_column *col, yyjson_val *val) {
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

/* Where a key or value stands in the line: yyjson keeps strings and raw numbers in place, in its copy
 * of the line. Other values are placed by their key. */
static size_t place_of(const yyjson_doc *doc, yyjson_val *key, yyjson_val *val) {
  const char *text = yyjson_is_str(val) ? yyjson_get_str(val) : yyjson_get_raw(val);
  if (text == NULL) text = yyjson_get_str(key);
  return (size_t)(text - doc->str_pool);
}

static weir_status append_object(weir_ndjson_decoder *decoder, yyjson_doc *doc,
                                 const uint8_t *line, size_t size, weir_error *err) {
  yyjson_obj_iter iter;
  yyjson_val *key;
  yyjson_val *root = yyjson_doc_get_root(doc);
  if (!yyjson_is_obj(root)) {
    return bad_line(decoder, line, size, 0, "not a JSON object", err);
  }
  yyjson_obj_iter_init(root, &iter);
  while ((key = yyjson_obj_iter_next(&iter)) != NULL) {
    yyjson_val *val = yyjson_obj_iter_get_val(key);
    int32_t column = ndjson_find_column(decoder, (const uint8_t *)yyjson_get_str(key),
                                        yyjson_get_len(key));
    if (column < 0) continue;
    format_column *col = &decoder->columns[column];
    format_result result =
        col->n == decoder->rows ? append_value(col, val) : FORMAT_TWICE;
    if (result != FORMAT_OK) {
      return bad_value(decoder, column, line, size, place_of(doc, key, val), result, err);
    }
  }
  for (int64_t i = 0; i < decoder->n_columns; i++) {
    format_column *col = &decoder->columns[i];
    if (col->n > decoder->rows) continue;
    format_result result = format_column_null(col);
    if (result != FORMAT_OK) return bad_value(decoder, i, line, size, 0, result, err);
  }
  return WEIR_OK;
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
