/* SPDX-License-Identifier: Apache-2.0 */
/* Values as text, and what is said about texts that hold none. */
#include <math.h>
#include <nanoarrow/nanoarrow.h>
#include <string.h>

#include "base/base.h"
#include "format/digits.h"

#define EXCERPT_BEFORE 24
#define EXCERPT_AFTER (FORMAT_EXCERPT - 8 - EXCERPT_BEFORE)

/* The text around `at`, in one line and as valid UTF-8: what is not printable ASCII or a whole
 * character becomes '?'. */
void format_excerpt(const uint8_t *line, size_t size, size_t at,
                    char out[FORMAT_EXCERPT]) {
  size_t from = at > EXCERPT_BEFORE ? at - EXCERPT_BEFORE : 0;
  size_t to = size - from > EXCERPT_BEFORE + EXCERPT_AFTER
                  ? from + EXCERPT_BEFORE + EXCERPT_AFTER
                  : size;
  size_t n = 0;
  for (size_t i = from; i < to && n + 5 < FORMAT_EXCERPT;) {
    size_t step = 1;
    if (line[i] >= 0x80) {
      /* the longest prefix that is one character */
      for (step = 2; step <= 4 && i + step <= to && !base_utf8_valid(line + i, step);)
        step++;
      if (step > 4 || i + step > to) step = 0;
    }
    if (step == 0 || line[i] < 0x20 || line[i] == 0x7f) {
      out[n++] = '?';
      i++;
      continue;
    }
    memcpy(out + n, line + i, step);
    n += step;
    i += step;
  }
  out[n] = 0;
}

const char *format_result_text(format_result result) {
  switch (result) {
    case FORMAT_TYPE:
      return "has a value of another type";
    case FORMAT_RANGE:
      return "is out of range";
    case FORMAT_TEXT:
      return "has a text that spells no such value";
    case FORMAT_FINE:
      return "has digits finer than the type holds";
    case FORMAT_NO_ZONE:
      return "has no zone, which this type needs";
    case FORMAT_ZONE:
      return "has a zone, which this type would drop: declare a timestamp with a zone";
    case FORMAT_LENGTH:
      return "has another number of bytes";
    case FORMAT_ITEMS:
      return "has another number of items";
    case FORMAT_MANY:
      return "is null in too many lists of fixed size for one batch";
    case FORMAT_NULL:
      return "is null or missing, but not nullable";
    default:
      return "is given twice";
  }
}

static char *put_word(char *p, const char *word) {
  size_t n = strlen(word);
  memcpy(p, word, n);
  return p + n;
}

static char *put_int(char *p, int64_t value) {
  if (value < 0) *p++ = '-';
  return format_uint_write(p, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

static char *put_real(char *p, double value, bool single, bool quotes) {
  if (isnan(value)) return put_word(p, quotes ? "\"NaN\"" : "NaN");
  if (isinf(value)) {
    if (quotes) return put_word(p, value < 0 ? "\"-Infinity\"" : "\"Infinity\"");
    return put_word(p, value < 0 ? "-Infinity" : "Infinity");
  }
  return p +
         (single ? format_float_write((float)value, p) : format_double_write(value, p));
}

/* Dates and times: NULL when the value has no text. */
static char *put_chrono(char *p, const format_column *type, int64_t value, bool quotes) {
  size_t n = 0;
  if (quotes) *p++ = '"';
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
  p += n;
  if (quotes) *p++ = '"';
  return p;
}

char *format_value_write(char *p, const format_column *type,
                         const struct ArrowArrayView *values, int64_t i, bool quotes) {
  switch (type->kind) {
    case FORMAT_BOOL:
      memcpy(p, ArrowArrayViewGetIntUnsafe(values, i) ? "true\0" : "false", 5);
      return p + (p[4] == 'e' ? 5 : 4);
    case FORMAT_UINT64:
      return format_uint_write(p, ArrowArrayViewGetUIntUnsafe(values, i));
    case FORMAT_HALF: {
      const uint16_t *half = values->buffer_views[1].data.as_uint16;
      return put_real(p, format_half_to_double(half[values->offset + i]), true, quotes);
    }
    case FORMAT_FLOAT:
    case FORMAT_DOUBLE:
      return put_real(p, ArrowArrayViewGetDoubleUnsafe(values, i),
                      type->kind == FORMAT_FLOAT, quotes);
    case FORMAT_DECIMAL: {
      const uint8_t *bytes = values->buffer_views[1].data.as_uint8;
      bytes += (size_t)(values->offset + i) * (size_t)type->width;
      return p + format_decimal_write(bytes, type->width, type->scale, p);
    }
    case FORMAT_DATE32:
    case FORMAT_DATE64:
    case FORMAT_TIME32:
    case FORMAT_TIME64:
    case FORMAT_TIMESTAMP:
      return put_chrono(p, type, ArrowArrayViewGetIntUnsafe(values, i), quotes);
    default:
      return put_int(p, ArrowArrayViewGetIntUnsafe(values, i));
  }
}
