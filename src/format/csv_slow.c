/* SPDX-License-Identifier: Apache-2.0 */
/* The way of any record, field by field, and what is said about records that cannot be taken. */
#include <stdio.h>
#include <string.h>

#include "format/csv.h"

weir_status csv_bad_record(const weir_csv_decoder *decoder, const uint8_t *record,
                           size_t size, size_t at, const char *what, weir_error *err) {
  char near[FORMAT_EXCERPT];
  uint64_t line = decoder->line + 1;
  if (at > size) at = size;
  for (size_t i = 0; i < at; i++) line += record[i] == '\n';
  format_excerpt(record, size, at, near);
  return weir_error_set(err, WEIR_E_BAD_DATA, WEIR_ERR_BAD_DATA,
                        "line %llu, byte %llu: %s; near: %s", (unsigned long long)line,
                        (unsigned long long)(decoder->offset + at), what, near);
}

static weir_status no_memory(const weir_csv_decoder *decoder, weir_error *err) {
  return weir_error_set(err, WEIR_E_NOMEM, 0, "line %llu: no memory for its record",
                        (unsigned long long)decoder->line + 1);
}

static const char *expected_text(const format_column *col) {
  switch (col->kind) {
    case FORMAT_BOOL:
      return "true or false";
    case FORMAT_HALF:
    case FORMAT_FLOAT:
    case FORMAT_DOUBLE:
    case FORMAT_DECIMAL:
      return "a number";
    case FORMAT_UTF8:
      return "valid UTF-8";
    case FORMAT_BINARY:
    case FORMAT_FIXED:
      return "base64";
    case FORMAT_DATE32:
    case FORMAT_DATE64:
      return "a date as 2024-02-29";
    case FORMAT_TIME32:
    case FORMAT_TIME64:
      return "a time as 23:59:59";
    case FORMAT_TIMESTAMP:
      return col->zoned ? "a timestamp with its zone as 2024-02-29T23:59:59Z"
                        : "a timestamp as 2024-02-29T23:59:59";
    default:
      return "a whole number";
  }
}

static weir_status bad_value(const weir_csv_decoder *decoder, int32_t column,
                             const uint8_t *record, size_t size, size_t at,
                             format_result result, weir_error *err) {
  const format_column *col = &decoder->columns[column];
  char type[80], what[400];
  if (result == FORMAT_NOMEM) return no_memory(decoder, err);
  if (result == FORMAT_TYPE) result = FORMAT_TEXT; /* CSV has texts alone */
  weir_type_format(weir_schema_arrow(decoder->schema)->children[column], type,
                   sizeof(type));
  snprintf(
      what, sizeof(what), "column '%.100s' (%s) %s; expected %s", col->name, type,
      result == FORMAT_NULL ? "is null, but not nullable" : format_result_text(result),
      expected_text(col));
  weir_status status = csv_bad_record(decoder, record, size, at, what, err);
  return weir_error_at(err, status, -1, column);
}

/* Whether the record is made as RFC 4180 says, of as many fields as there must be: looked at
 * first, since a field too many puts wrong texts into all columns behind it. */
static weir_status check_shape(weir_csv_decoder *decoder, const uint8_t *record,
                               size_t size, weir_error *err) {
  char what[300];
  size_t at = 0;
  int64_t n = 0;
  bool more = true, nomem = false;
  for (; more; n++) {
    csv_field field = {0};
    const char *wrong = csv_field_read(&decoder->dialect, record, size, &at,
                                       &decoder->text, &field, &more, &nomem);
    if (nomem) return no_memory(decoder, err);
    if (wrong == NULL) continue;
    int32_t column = n < decoder->n_fields ? decoder->fields[n] : -1;
    snprintf(what, sizeof(what), "field %lld%s%.100s%s: %s", (long long)n + 1,
             column < 0 ? "" : ", column '",
             column < 0 ? "" : decoder->columns[column].name, column < 0 ? "" : "'",
             wrong);
    weir_status status = csv_bad_record(decoder, record, size, at, what, err);
    return weir_error_at(err, status, -1, column);
  }
  if (n == decoder->n_fields) return WEIR_OK;
  snprintf(what, sizeof(what), "%lld field%s, expected %lld as %s", (long long)n,
           n == 1 ? "" : "s", (long long)decoder->n_fields,
           decoder->dialect.header ? "in the header" : "the schema has columns");
  return csv_bad_record(decoder, record, size, 0, what, err);
}

weir_status csv_row_slow(weir_csv_decoder *decoder, const uint8_t *data,
                         const csv_record *record, weir_error *err) {
  size_t at = 0, size = record->size;
  BASE_TRY(check_shape(decoder, data, size, err));
  for (int64_t i = 0; i < decoder->n_fields; i++) {
    int32_t column = decoder->fields[i];
    csv_field field = {0};
    bool more = false, nomem = false;
    csv_field_read(&decoder->dialect, data, size, &at, &decoder->text, &field, &more,
                   &nomem);
    if (nomem) return no_memory(decoder, err);
    if (column < 0) continue;
    format_result result = csv_value_append(&decoder->dialect, &decoder->columns[column],
                                            decoder->text.data, field.size, field.quoted);
    if (result != FORMAT_OK) {
      return bad_value(decoder, column, data, size, field.at, result, err);
    }
  }
  return WEIR_OK;
}
