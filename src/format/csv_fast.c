/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fast way of a row: one pass over the record, each value straight into its column; 16 bytes at a
 * time where texts are concerned. It takes what it is sure of and gives up on the rest (errors of any
 * kind, a quoted field beyond the last whole line), for which the record goes the slow way: so what is
 * accepted, and every message, is decided in one place. Outside of quotes LF ends everything, so no loop
 * there looks for the data's end; within quotes each step does.
 */
#include <string.h>

#include "format/csv.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/* The characters that end something, in registers. */
typedef struct csv_marks {
#if defined(__SSE2__)
  __m128i delimiter, quote, cr, lf;
#else
  uint8_t delimiter, quote;
#endif
} csv_marks;

static inline csv_marks make_marks(const csv_dialect *dialect) {
  uint8_t quote = dialect->quote < 0 ? dialect->delimiter : (uint8_t)dialect->quote;
#if defined(__SSE2__)
  return (csv_marks){_mm_set1_epi8((char)dialect->delimiter), _mm_set1_epi8((char)quote),
                     _mm_set1_epi8('\r'), _mm_set1_epi8('\n')};
#else
  return (csv_marks){dialect->delimiter, quote};
#endif
}

static inline bool ends_field(const csv_dialect *dialect, uint8_t c) {
  return c == dialect->delimiter || c == '\n' || c == '\r';
}

#if defined(__SSE2__)
static inline unsigned plain_stops(const csv_marks *m, __m128i v) {
  __m128i stop =
      _mm_or_si128(_mm_cmpeq_epi8(v, m->delimiter), _mm_cmpeq_epi8(v, m->quote));
  stop = _mm_or_si128(stop,
                      _mm_or_si128(_mm_cmpeq_epi8(v, m->cr), _mm_cmpeq_epi8(v, m->lf)));
  return (unsigned)_mm_movemask_epi8(stop);
}
#else
static inline bool plain_stop(const csv_marks *m, uint8_t c) {
  return c == m->delimiter || c == m->quote || c == '\r' || c == '\n';
}
#endif

/* The first delimiter, quote, CR or LF from p on. */
static inline const uint8_t *find_end(const csv_marks *m, const uint8_t *p) {
#if defined(__SSE2__)
  for (;; p += 16) {
    unsigned at = plain_stops(m, _mm_loadu_si128((const __m128i *)(const void *)p));
    if (at != 0) return p + __builtin_ctz(at);
  }
#else
  while (!plain_stop(m, *p)) p++;
  return p;
#endif
}

/* Ends a value of `n` bytes behind data_len. */
static inline void close_text(format_column *col, int64_t n) {
  col->data_len += n;
  /* a batch holds 32 MiB of text and one record, far less than 2 GiB */
  format_offset_store(col->values, col->width, ++col->n, col->data_len);
}

/* Room for 16 bytes and more behind the `n` bytes of a value being copied. */
static inline bool text_room(format_column *col, int64_t n) {
  if (FORMAT_LIKELY(col->data_room - col->data_len - n >= 32)) return true;
  return format_column_grow(col, n + 64);
}

static const uint8_t *take_text(const csv_marks *m, format_column *col,
                                const uint8_t *p) {
  int64_t n = 0;
  bool high = false;
#if defined(__SSE2__)
  for (;; n += 16) {
    if (FORMAT_UNLIKELY(!text_room(col, n))) return NULL;
    __m128i v = _mm_loadu_si128((const __m128i *)(const void *)(p + n));
    _mm_storeu_si128((__m128i *)(void *)(col->data + col->data_len + n), v);
    unsigned at = plain_stops(m, v), beyond = (unsigned)_mm_movemask_epi8(v);
    if (at != 0) {
      int few = __builtin_ctz(at);
      high |= (beyond & ((1u << few) - 1)) != 0;
      n += few;
      break;
    }
    high |= beyond != 0;
  }
#else
  n = find_end(m, p) - p;
  if (!format_column_grow(col, n)) return NULL;
  memcpy(col->data + col->data_len, p, (size_t)n);
  high = true;
#endif
  if (FORMAT_UNLIKELY(high) && !base_utf8_valid(p, (size_t)n)) return NULL;
  close_text(col, n);
  return p + n;
}

/* A quoted text whose quote is before p, into a column of utf8; returns what follows its end. */
static const uint8_t *take_quoted_text(const csv_marks *m, uint8_t quote,
                                       format_column *col, const uint8_t *p,
                                       const uint8_t *stop) {
  int64_t n = 0;
  bool high = false;
  for (;;) {
    const uint8_t *q = p;
#if defined(__SSE2__)
    for (;; q += 16) {
      if (FORMAT_UNLIKELY(q > stop || !text_room(col, n + (q - p)))) return NULL;
      __m128i v = _mm_loadu_si128((const __m128i *)(const void *)q);
      _mm_storeu_si128((__m128i *)(void *)(col->data + col->data_len + n + (q - p)), v);
      unsigned at = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(v, m->quote));
      unsigned beyond = (unsigned)_mm_movemask_epi8(v);
      if (at != 0) {
        int few = __builtin_ctz(at);
        high |= (beyond & ((1u << few) - 1)) != 0;
        q += few;
        break;
      }
      high |= beyond != 0;
    }
#else
    (void)m;
    q = p <= stop ? memchr(p, quote, (size_t)(stop - p) + 1) : NULL;
    if (q == NULL || !format_column_grow(col, n + (q - p) + 1)) return NULL;
    memcpy(col->data + col->data_len + n, p, (size_t)(q - p));
    high = true;
#endif
    if (FORMAT_UNLIKELY(q >= stop)) return NULL; /* *stop is an LF within the quotes */
    n += q - p;
    p = q + 1;
    if (FORMAT_LIKELY(*p != quote)) break;
    if (FORMAT_UNLIKELY(!text_room(col, n))) return NULL;
    col->data[col->data_len + n++] = quote;
    p++;
  }
  if (FORMAT_UNLIKELY(high) && !base_utf8_valid(col->data + col->data_len, (size_t)n)) {
    return NULL;
  }
  close_text(col, n);
  return p;
}

/* A quoted field whose quote is before p. */
static const uint8_t *take_quoted(const weir_csv_decoder *decoder, const csv_marks *m,
                                  format_column *col, const uint8_t *p,
                                  const uint8_t *stop) {
  uint8_t quote = (uint8_t)decoder->dialect.quote;
  if (col != NULL && col->kind == FORMAT_UTF8) {
    return take_quoted_text(m, quote, col, p, stop);
  }
  for (const uint8_t *from = p;;) {
    const uint8_t *q = from < stop ? memchr(from, quote, (size_t)(stop - from)) : NULL;
    if (q == NULL) return NULL;
    if (q[1] == quote) {
      if (col != NULL) return NULL;
      from = q + 2;
      continue;
    }
    if (col != NULL &&
        csv_value_append(&decoder->dialect, col, p, (size_t)(q - p), true) != FORMAT_OK) {
      return NULL;
    }
    return q + 1;
  }
}

/* A whole number of up to 18 digits, and what follows it; NULL for anything else. */
static inline const uint8_t *take_integer(const csv_dialect *dialect, format_column *col,
                                          const uint8_t *p) {
  bool negative = *p == '-';
  const uint8_t *start = p + negative, *q = start;
  uint64_t value = 0;
  unsigned digit;
  while ((digit = (unsigned)*q - '0') <= 9) {
    value = value * 10 + digit;
    q++;
  }
  if (q == start || q - start > 18 || !ends_field(dialect, *q)) return NULL;
  if (col->kind == FORMAT_INT64) {
    ((int64_t *)(void *)col->values)[col->n++] =
        negative ? -(int64_t)value : (int64_t)value;
    return q;
  }
  if (!format_integer_store(col->kind, negative, value,
                            col->values + (size_t)col->n * (size_t)col->width)) {
    return NULL;
  }
  col->n++;
  return q;
}

static inline const uint8_t *take_double(const csv_dialect *dialect, format_column *col,
                                         const uint8_t *p, const uint8_t *stop) {
  double value = 0;
  if (format_double_scan(&p, stop, &value) != FORMAT_OK || !ends_field(dialect, *p)) {
    return NULL;
  }
  ((double *)(void *)col->values)[col->n++] = value;
  return p;
}

/* The spelling that most writers use. */
static inline const uint8_t *take_bool(const csv_dialect *dialect, format_column *col,
                                       const uint8_t *p) {
  size_t n = *p == 't' ? 4 : 5;
  if (memcmp(p, n == 4 ? "true" : "false", n) != 0 || !ends_field(dialect, p[n]) ||
      format_column_bool(col, n == 4) != FORMAT_OK)
    return NULL;
  return p + n;
}

static inline bool is_null(const csv_dialect *dialect, const uint8_t *p) {
  if (dialect->null_len == 0) return ends_field(dialect, *p);
  return *p == dialect->null_text[0] &&
         memcmp(p, dialect->null_text, dialect->null_len) == 0 &&
         ends_field(dialect, p[dialect->null_len]);
}

/* A field without quotes. */
static inline const uint8_t *take_plain(const weir_csv_decoder *decoder,
                                        const csv_marks *m, format_column *col,
                                        const uint8_t *p, const uint8_t *stop) {
  const csv_dialect *dialect = &decoder->dialect;
  const uint8_t *end = NULL;
  if (col == NULL) return find_end(m, p);
  if (is_null(dialect, p)) {
    return format_column_null(col) == FORMAT_OK ? p + dialect->null_len : NULL;
  }
  if (col->kind == FORMAT_UTF8) return take_text(m, col, p);
  if (col->kind >= FORMAT_INT8 && col->kind <= FORMAT_UINT64) {
    end = take_integer(dialect, col, p);
  } else if (col->kind == FORMAT_DOUBLE) {
    end = take_double(dialect, col, p, stop);
  } else if (col->kind == FORMAT_BOOL) {
    end = take_bool(dialect, col, p);
  }
  if (FORMAT_LIKELY(end != NULL)) return end;
  end = find_end(m, p);
  /* most have no blanks to be passed over */
  if (col->kind >= FORMAT_DATE32 && col->kind <= FORMAT_TIMESTAMP &&
      format_column_string(col, p, (size_t)(end - p)) == FORMAT_OK)
    return end;
  return csv_value_append(dialect, col, p, (size_t)(end - p), false) == FORMAT_OK ? end
                                                                                  : NULL;
}

const uint8_t *csv_row_fast(weir_csv_decoder *decoder, const uint8_t *p,
                            const uint8_t *stop, uint64_t *lines) {
  const csv_marks m = make_marks(&decoder->dialect);
  const uint8_t *row = p;
  bool quoted = false;
  for (int64_t i = 0; i < decoder->n_fields; i++) {
    int32_t column = decoder->fields[i];
    format_column *col = column < 0 ? NULL : &decoder->columns[column];
    if (*p == decoder->dialect.quote) {
      quoted = true;
      p = take_quoted(decoder, &m, col, p + 1, stop);
    } else {
      p = take_plain(decoder, &m, col, p, stop);
    }
    if (FORMAT_UNLIKELY(p == NULL)) return NULL;
    if (i + 1 < decoder->n_fields) {
      if (FORMAT_UNLIKELY(*p != decoder->dialect.delimiter)) return NULL;
      p++;
    }
  }
  p += *p == '\r';
  if (*p != '\n' || (uint64_t)(p - row) > decoder->max_line) return NULL;
  p++;
  *lines = quoted ? csv_count_lines(row, p) : 1;
  return p;
}
