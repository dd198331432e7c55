/* SPDX-License-Identifier: Apache-2.0 */
/* Options, fields and values of CSV. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "format/csv.h"

/* A character that no value but a text can hold, so that it ends numbers and words. */
static bool is_separator(const char *text) {
  unsigned char c = (unsigned char)text[0];
  if (c == 0 || text[1] != 0 || c >= 0x7f || c == '\r' || c == '\n') return false;
  if ((c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z')) return false;
  return c != '+' && c != '-' && c != '.';
}

weir_status csv_dialect_read(const weir_csv_options *options, csv_dialect *out,
                             weir_error *err) {
  weir_csv_options o = {0};
  csv_dialect d = {.header = true, .delimiter = ',', .quote = '"'};
  if (options != NULL) {
    size_t size = options->struct_size < sizeof(o) ? options->struct_size : sizeof(o);
    memcpy(&o, options, size);
  }
  static const char expected[] =
      "expected one ASCII character that is no letter, digit, sign, point or line end";
  if (o.delimiter != NULL && !is_separator(o.delimiter)) {
    return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0, "CSV delimiter '%.40s': %s",
                          o.delimiter, expected);
  }
  if (o.quote != NULL && o.quote[0] != 0 && !is_separator(o.quote)) {
    return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0, "CSV quote '%.40s': %s", o.quote,
                          expected);
  }
  if (o.delimiter != NULL) d.delimiter = (uint8_t)o.delimiter[0];
  if (o.quote != NULL) d.quote = o.quote[0] ? (uint8_t)o.quote[0] : -1;
  if (d.quote == d.delimiter) {
    return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                          "CSV: quote and delimiter are both '%c'", d.quote);
  }
  if (o.null_text != NULL) {
    const uint8_t *null = (const uint8_t *)o.null_text;
    d.null_len = strlen(o.null_text);
    bool plain = d.null_len <= CSV_MAX_NULL &&
                 memchr(null, d.delimiter, d.null_len) == NULL &&
                 memchr(null, '\r', d.null_len) == NULL &&
                 memchr(null, '\n', d.null_len) == NULL &&
                 (d.quote < 0 || memchr(null, d.quote, d.null_len) == NULL);
    if (!plain) {
      return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                            "CSV null '%.40s': expected a text of up to %d bytes without "
                            "delimiter, quote and line end",
                            o.null_text, CSV_MAX_NULL);
    }
    memcpy(d.null_text, null, d.null_len);
  }
  d.header = !o.no_header;
  *out = d;
  return WEIR_OK;
}

weir_status weir_csv_options_check(const weir_csv_options *options, weir_error *err) {
  csv_dialect dialect = {0};
  return csv_dialect_read(options, &dialect, err);
}

uint64_t csv_count_lines(const uint8_t *p, const uint8_t *end) {
  uint64_t n = 0;
  for (; p < end; p++) n += *p == '\n';
  return n;
}

/* The end of the quoted text that begins at `at`, just after its closing quote; 0 when the data does not
 * hold it or, unless it is the last, when the next byte could double the quote. */
static size_t quoted_end(int quote, const uint8_t *data, size_t size, size_t at,
                         int last) {
  for (;;) {
    const uint8_t *q = at < size ? memchr(data + at, quote, size - at) : NULL;
    if (q == NULL) return 0;
    at = (size_t)(q - data) + 1;
    if (at == size) return last ? at : 0;
    if (data[at] != quote) return at;
    at++;
  }
}

bool csv_record_find(const csv_dialect *dialect, const uint8_t *data, size_t size,
                     int last, csv_record *out) {
  csv_record found = {0};
  size_t i = 0;
  bool begins = true; /* a field */
  for (; i < size; i++) {
    if (begins && data[i] == dialect->quote) {
      size_t end = quoted_end(dialect->quote, data, size, i + 1, last);
      if (end == 0) {
        if (!last) return false;
        found.unclosed = true;
        found.quote = i;
        i = 0;
        while (i < size && data[i] != '\n') i++;
        break;
      }
      found.lines += csv_count_lines(data + i, data + end);
      i = end;
      if (i == size) break;
    }
    if (data[i] == '\n') break;
    begins = data[i] == dialect->delimiter;
  }
  bool ended = i < size;
  if (found.unclosed) found.lines = 0;
  if (!ended && (!last || size == 0)) return false;
  found.whole = i + ended;
  found.lines += ended;
  found.size = i - (ended && i > 0 && data[i - 1] == '\r');
  *out = found;
  return true;
}

static const char *take_quoted(int quote, const uint8_t *record, size_t size, size_t *at,
                               base_buf *text, bool *nomem) {
  size_t i = *at + 1;
  for (;;) {
    const uint8_t *q = i < size ? memchr(record + i, quote, size - i) : NULL;
    if (q == NULL) return "a quote that is never closed";
    size_t end = (size_t)(q - record);
    bool doubled = end + 1 < size && record[end + 1] == quote;
    if (base_buf_append(text, record + i, end - i + doubled, NULL) != WEIR_OK) {
      *nomem = true;
      return "no memory";
    }
    i = end + 1 + doubled;
    if (!doubled) break;
  }
  *at = i;
  return NULL;
}

const char *csv_field_read(const csv_dialect *dialect, const uint8_t *record, size_t size,
                           size_t *at, base_buf *text, csv_field *out, bool *more,
                           bool *nomem) {
  csv_field field = {.at = *at};
  size_t i = *at;
  base_buf_clear(text);
  if (i < size && record[i] == dialect->quote) {
    field.quoted = true;
    const char *what = take_quoted(dialect->quote, record, size, &i, text, nomem);
    if (what != NULL) return what;
    if (i < size && record[i] != dialect->delimiter) {
      *at = i;
      return "text between a closing quote and the next delimiter; a quote within "
             "quotes is doubled";
    }
  } else {
    for (; i < size && record[i] != dialect->delimiter; i++) {
      *at = i;
      if (record[i] == dialect->quote) {
        return "a quote within a field that does not begin with one; such a field goes "
               "into quotes";
      }
      if (record[i] == '\r') {
        return "a carriage return that no line feed follows; lines end with LF or CR LF";
      }
    }
    *nomem = base_buf_append(text, record + field.at, i - field.at, NULL) != WEIR_OK;
    if (*nomem) return "no memory";
  }
  field.size = text->size;
  *nomem = base_buf_append(text, "\0\0\0\0\0\0\0\0", 8, NULL) != WEIR_OK;
  if (*nomem) return "no memory";
  *more = i < size;
  *at = i + *more;
  *out = field;
  return NULL;
}

static bool word_is(const uint8_t *text, size_t n, const char *word) {
  return n == strlen(word) && memcmp(text, word, n) == 0;
}

static format_result append_bool(format_column *col, const uint8_t *text, size_t n) {
  static const char *const words[] = {"false", "true", "False", "True",
                                      "FALSE", "TRUE", "0",     "1"};
  for (size_t i = 0; i < BASE_COUNT(words); i++) {
    if (word_is(text, n, words[i])) return format_column_bool(col, i & 1);
  }
  return FORMAT_TEXT;
}

/* A number as JSON would write it: to[0 .. returned), to[returned] = 0. At most n + 1 characters. */
static size_t normal_number(const uint8_t *text, size_t n, uint8_t *to) {
  const uint8_t *p = text, *end = text + n;
  uint8_t *start = to;
  if (p < end && (*p == '+' || *p == '-')) {
    if (*p == '-') *to++ = '-';
    p++;
    if (p < end && (*p == '+' || *p == '-')) return 0;
  }
  while (end - p > 1 && *p == '0' && (unsigned)p[1] - '0' <= 9) p++;
  if (end - p > 1 && *p == '.' && (unsigned)p[1] - '0' <= 9) *to++ = '0';
  bool digits = to > start && to[-1] == '0';
  for (; p < end; p++) {
    if (*p == '.' && digits && (p + 1 == end || (p[1] | 0x20) == 'e')) continue;
    digits |= (unsigned)*p - '0' <= 9;
    *to++ = *p;
  }
  *to = 0;
  return (size_t)(to - start);
}

static format_result append_number(format_column *col, const uint8_t *text, size_t n) {
  format_result result = format_column_number(col, text, n);
  if (result != FORMAT_TYPE && result != FORMAT_TEXT) return result;
  uint8_t small[128], *normal = n < sizeof(small) - 8 ? small : malloc(n + 8);
  if (normal == NULL) return FORMAT_NOMEM;
  size_t size = normal_number(text, n, normal);
  result = size == 0 ? FORMAT_TEXT : format_column_number(col, normal, size);
  if (normal != small) free(normal);
  return result;
}

/* The names of what is no number, in any case, with any sign. */
static format_result append_real(format_column *col, const uint8_t *text, size_t n) {
  const char *word = (const char *)text;
  size_t size = n;
  bool negative = n > 0 && word[0] == '-';
  if (n > 0 && (word[0] == '-' || word[0] == '+')) {
    word++;
    size--;
  }
  if (size == 3 && strncasecmp(word, "nan", 3) == 0) {
    return format_column_string(col, (const uint8_t *)"NaN", 3);
  }
  if ((size == 3 && strncasecmp(word, "inf", 3) == 0) ||
      (size == 8 && strncasecmp(word, "infinity", 8) == 0)) {
    return format_column_string(col, (const uint8_t *)"-Infinity" + !negative,
                                8u + negative);
  }
  return append_number(col, text, n);
}

static bool is_null(const csv_dialect *dialect, const uint8_t *text, size_t n) {
  return n == dialect->null_len && memcmp(text, dialect->null_text, n) == 0;
}

format_result csv_value_append(const csv_dialect *dialect, format_column *col,
                               const uint8_t *text, size_t n, bool quoted) {
  bool is_text = col->kind == FORMAT_UTF8 || col->kind == FORMAT_BINARY;
  if (!(quoted && is_text) && is_null(dialect, text, n)) return format_column_null(col);
  if (col->kind == FORMAT_UTF8 && !base_utf8_valid(text, n)) return FORMAT_TEXT;
  if (is_text) return format_column_string(col, text, n);
  while (n > 0 && (text[0] == ' ' || text[0] == '\t')) text++, n--;
  while (n > 0 && (text[n - 1] == ' ' || text[n - 1] == '\t')) n--;
  if (n == 0 && col->kind != FORMAT_FIXED) return FORMAT_TEXT;
  switch (col->kind) {
    case FORMAT_BOOL:
      return append_bool(col, text, n);
    case FORMAT_HALF:
    case FORMAT_FLOAT:
    case FORMAT_DOUBLE:
      return append_real(col, text, n);
    case FORMAT_FIXED:
    case FORMAT_DATE32:
    case FORMAT_DATE64:
    case FORMAT_TIME32:
    case FORMAT_TIME64:
    case FORMAT_TIMESTAMP:
      return format_column_string(col, text, n);
    default:
      return append_number(col, text, n);
  }
}
