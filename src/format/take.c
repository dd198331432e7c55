/* SPDX-License-Identifier: Apache-2.0 */
/* Values of one column at a time; <format/span.h> says why. */
#include "format/digits.h"
#include "format/span.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

static inline format_span span_at(const format_spans *spans, int64_t i) {
  uint32_t at = spans->before[i * spans->stride] + 1;
  return (format_span){at, spans->end[i * spans->stride] - at};
}

static bool take_odd(format_column *col, const format_spans *spans, int64_t i) {
  format_span span = span_at(spans, i);
  if (span.size == FORMAT_SPAN_NULL || (span.size == 0 && spans->empty_null))
    return format_column_null(col) == FORMAT_OK;
  return spans->odd(spans->context, col, spans->base, span) == FORMAT_OK;
}

static bool take_any(format_column *col, const format_spans *spans) {
  for (int64_t i = 0; i < spans->n; i++) {
    if (!take_odd(col, spans, i)) return false;
  }
  return true;
}

/* The loops of columns of fixed width count in registers: stores of bytes could change any field of the
 * column, for all that the compiler knows. */

/* ---- whole numbers ---- */

/* Of `width` bytes, which is a constant where this is called; max[1] is that of the magnitudes below 0. */
static inline bool take_integers(format_column *col, const format_spans *spans,
                                 size_t width, const uint64_t max[2]) {
  const uint8_t *base = spans->base;
  const uint32_t *before = spans->before, *end = spans->end;
  const int64_t stride = spans->stride;
  const uint64_t max0 = max[0], max1 = max[1];
  uint8_t *to = col->values + (size_t)col->n * width;
  const int64_t first = col->n, rows = spans->n;
  const bool json = spans->json;
  for (int64_t i = 0; i < rows; i++, to += width, before += stride, end += stride) {
    uint32_t at = *before + 1;
    const uint8_t *p = base + at;
    bool negative = *p == '-';
    size_t n = (size_t)(*end - at) - negative;
    uint64_t size = 0;
    p += negative;
    if (FORMAT_LIKELY(n - 1 < 19) && FORMAT_LIKELY(format_digits_read(p, n, &size)) &&
        size <= (negative ? max1 : max0) && !(json && *p == '0' && n > 1)) {
      uint64_t value = negative ? 0 - size : size;
      memcpy(to, &value, width); /* little-endian machines only, as nanoarrow's IPC is */
      continue;
    }
    col->n = first + i;
    if (!take_odd(col, spans, i)) return false;
  }
  col->n = first + rows;
  return true;
}

static bool take_whole(format_column *col, const format_spans *spans) {
  bool sign = col->kind <= FORMAT_INT64;
  uint64_t top = UINT64_MAX >> (64 - 8 * col->width);
  const uint64_t max[2] = {sign ? top >> 1 : top, sign ? (top >> 1) + 1 : 0};
  switch (col->width) {
    case 1:
      return take_integers(col, spans, 1, max);
    case 2:
      return take_integers(col, spans, 2, max);
    case 4:
      return take_integers(col, spans, 4, max);
    default:
      return take_integers(col, spans, 8, max);
  }
}

/* ---- doubles ---- */

/* Where the point is among the n <= 16 characters at p, of which 16 can be read; n if nowhere. */
static inline size_t find_point(const uint8_t *p, size_t n) {
#if defined(__SSE2__)
  __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
  unsigned at = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(v, _mm_set1_epi8('.')));
  return (size_t)__builtin_ctz(at | 1u << n);
#else
  size_t i = 0;
  while (i < n && p[i] != '.') i++;
  return i;
#endif
}

/* digits[.digits] in up to 16 characters whose digits are at most 2^53, exactly: a whole number and a power
 * of ten that both are doubles are divided, and rounded, once (Clinger's fast path). */
static inline bool read_short_double(const uint8_t *p, size_t n, bool json, double *out) {
  static const uint64_t whole_power[] = {
      1,           10,           100,           1000,           10000,
      100000,      1000000,      10000000,      100000000,      1000000000,
      10000000000, 100000000000, 1000000000000, 10000000000000, 100000000000000};
  size_t point = find_point(p, n), digits = n - point - 1;
  uint64_t whole = 0, fraction = 0;
  if (FORMAT_UNLIKELY(point == 0 || (json && point > 1 && *p == '0'))) return false;
  if (point == n) {
    digits = 0;
    if (!format_digits_read(p, n, &whole)) return false;
  } else {
    if (digits - 1 >= 14 || !format_digits_read(p, point, &whole) ||
        !format_digits_read(p + point + 1, digits, &fraction))
      return false;
  }
  /* up to 16 digits: no overflow */
  uint64_t mantissa = whole * whole_power[digits] + fraction;
  if (mantissa > (UINT64_C(1) << 53)) return false;
  *out = (double)mantissa / format_exact_power[digits];
  return true;
}

static bool take_doubles(format_column *col, const format_spans *spans) {
  double *to = (double *)(void *)col->values + col->n;
  const int64_t first = col->n;
  for (int64_t i = 0; i < spans->n; i++) {
    format_span span = span_at(spans, i);
    const uint8_t *p = spans->base + span.at;
    bool negative = *p == '-';
    size_t n = (size_t)span.size - negative;
    double value = 0;
    if (FORMAT_LIKELY(n - 1 < 16) &&
        FORMAT_LIKELY(read_short_double(p + negative, n, spans->json, &value))) {
      to[i] = negative ? -value : value;
      continue;
    }
    col->n = first + i;
    if (!take_odd(col, spans, i)) return false;
  }
  col->n = first + spans->n;
  return true;
}

/* ---- bool, times, texts ---- */

static bool take_bools(format_column *col, const format_spans *spans) {
  uint8_t *to = col->values + (col->n >> 3);
  const int64_t first = col->n;
  unsigned bits = *to, bit = (unsigned)col->n & 7;
  for (int64_t i = 0; i < spans->n; i++) {
    format_span span = span_at(spans, i);
    const uint8_t *p = spans->base + span.at;
    uint32_t word = format_load32(p), size = span.size;
    /* no branch on the value, which nothing predicts */
    bool yes = (word == format_load32((const uint8_t *)"true")) & (size == 4);
    bool no =
        (word == format_load32((const uint8_t *)"fals")) & (p[4] == 'e') & (size == 5);
    if (FORMAT_LIKELY(yes | no)) {
      bits |= (unsigned)yes << bit;
      *to = (uint8_t)bits;
    } else {
      col->n = first + i;
      if (!take_odd(col, spans, i)) return false;
      bits = *to;
    }
    if (++bit == 8) {
      to++;
      bits = bit = 0;
    }
  }
  col->n = first + spans->n;
  return true;
}

static bool take_timestamps(format_column *col, const format_spans *spans) {
  int64_t *to = (int64_t *)(void *)col->values + col->n;
  const int64_t first = col->n;
  for (int64_t i = 0; i < spans->n; i++) {
    format_span span = span_at(spans, i);
    int64_t value = 0;
    if (FORMAT_LIKELY(span.size <= FORMAT_SPAN_MAX) &&
        FORMAT_LIKELY(format_timestamp_parse(spans->base + span.at, span.size, col->unit,
                                             col->zoned, &value) == FORMAT_OK)) {
      to[i] = value;
      continue;
    }
    col->n = first + i;
    if (!take_odd(col, spans, i)) return false;
  }
  col->n = first + spans->n;
  return true;
}

/* Copies 16 or 64 bytes for what are mostly fewer: cheaper than a loop whose length nothing predicts. */
static inline void copy_text(uint8_t *to, const uint8_t *from, size_t n) {
  memcpy(to, from, 16);
  if (n > 16) {
    memcpy(to + 16, from + 16, 48);
    if (FORMAT_UNLIKELY(n > 64)) memcpy(to + 64, from + 64, n - 64);
  }
}

static inline bool take_texts(format_column *col, const format_spans *spans,
                              int32_t width) {
  const uint8_t *base = spans->base;
  const uint32_t *before = spans->before, *end = spans->end;
  const int64_t first = col->n, rows = spans->n, stride = spans->stride;
  const uint32_t empty = spans->empty_null; /* 0 - 1 is above all sizes */
  uint8_t *data = col->data, *ends = col->values;
  int64_t have = col->data_len, room = col->data_room;
  for (int64_t i = 0; i < rows; i++) {
    uint32_t at = before[i * stride] + 1, size = end[i * stride] - at;
    if (FORMAT_LIKELY(size - empty <= FORMAT_SPAN_MAX) &&
        FORMAT_LIKELY(room - have >= (int64_t)size + FORMAT_SPAN_PADDING)) {
      copy_text(data + have, base + at, size);
      /* a batch holds 32 MiB of text and one record, far less than 2 GiB */
      have += size;
      format_offset_store(ends, width, first + i + 1, have);
      continue;
    }
    col->n = first + i;
    col->data_len = have;
    if (size - empty <= FORMAT_SPAN_MAX) {
      if (!format_column_grow(col, (int64_t)size + FORMAT_SPAN_PADDING)) return false;
      i--; /* once more, with room */
    } else if (!take_odd(col, spans, i)) {
      return false;
    }
    data = col->data;
    have = col->data_len;
    room = col->data_room;
  }
  col->n = first + rows;
  col->data_len = have;
  return true;
}

bool format_column_take(format_column *col, const format_spans *spans) {
  switch (col->kind) {
    case FORMAT_BOOL:
      return take_bools(col, spans);
    case FORMAT_INT8:
    case FORMAT_INT16:
    case FORMAT_INT32:
    case FORMAT_INT64:
    case FORMAT_UINT8:
    case FORMAT_UINT16:
    case FORMAT_UINT32:
    case FORMAT_UINT64:
      return take_whole(col, spans);
    case FORMAT_DOUBLE:
      return take_doubles(col, spans);
    case FORMAT_TIMESTAMP:
      return take_timestamps(col, spans);
    case FORMAT_UTF8:
      return col->width == 4 ? take_texts(col, spans, 4) : take_texts(col, spans, 8);
    default:
      return take_any(col, spans);
  }
}
