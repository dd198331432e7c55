/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fast way of a row: one pass over the line, each value straight into its column, keys guessed from
 * the row before. It takes what it is sure of and gives up on the rest (rare spellings, errors of any
 * kind), for which the line goes through yyjson again: so what is accepted, and every
 * message, is decided in one place. LF ends every token, since JSON allows no LF but as a blank,
 * so no loop here looks for the line's end.
 */
#include <string.h>

#include "base/base.h"
#include "format/digits.h"
#include "format/ndjson.h"

static inline bool is_word(const uint8_t *p, const char *four) {
  return format_load32(p) == format_load32((const uint8_t *)four);
}

static inline bool slot_matches(const ndjson_slot *slot, const uint8_t *p) {
  uint64_t differ = (format_load64(p) ^ slot->words[0]) & slot->masks[0];
  differ |= (format_load64(p + 8) ^ slot->words[1]) & slot->masks[1];
  differ |= (format_load64(p + 16) ^ slot->words[2]) & slot->masks[2];
  return differ == 0 && slot->size > 0;
}

static void learn_slot(ndjson_slot *slot, const uint8_t *text, size_t size,
                       int32_t column) {
  uint8_t bytes[NDJSON_SLOT_WORDS * 8] = {0}, mask[NDJSON_SLOT_WORDS * 8] = {0};
  slot->size = 0;
  if (size > sizeof(bytes)) return;
  memcpy(bytes, text, size);
  memset(mask, 0xff, size);
  memcpy(slot->words, bytes, sizeof(bytes));
  memcpy(slot->masks, mask, sizeof(mask));
  slot->size = (uint32_t)size;
  slot->column = column;
}

/* Copies a run of plain characters of a string to `to`, up to a quote, a backslash, a control
 * character; returns where it stopped. May write 16 bytes more than the run. *high gathers
 * whether bytes beyond ASCII were met. */
static inline const uint8_t *copy_plain(const uint8_t *p, uint8_t *to, bool *high) {
#if defined(__SSE2__)
  for (;;) {
    __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
    _mm_storeu_si128((__m128i *)(void *)to, v);
    unsigned at = (unsigned)_mm_movemask_epi8(ndjson_stops(v)),
             beyond = (unsigned)_mm_movemask_epi8(v);
    if (at != 0) {
      int n = __builtin_ctz(at);
      *high |= (beyond & ((1u << n) - 1)) != 0;
      return p + n;
    }
    *high |= beyond != 0;
    p += 16;
    to += 16;
  }
#else
  while (!ndjson_is_stop(*p)) {
    *high |= *p >= 0x80;
    *to++ = *p++;
  }
  return p;
#endif
}

static int32_t hex4(const uint8_t *p) {
  int32_t value = 0;
  for (int i = 0; i < 4; i++) {
    uint8_t c = p[i], low = c | 0x20;
    int digit = c >= '0' && c <= '9'       ? c - '0'
                : low >= 'a' && low <= 'f' ? low - 'a' + 10
                                           : -1;
    if (digit < 0) return -1;
    value = value << 4 | digit;
  }
  return value;
}

static uint8_t *put_utf8(uint8_t *to, uint32_t c) {
  if (c < 0x80) {
    *to++ = (uint8_t)c;
  } else if (c < 0x800) {
    *to++ = (uint8_t)(0xc0 | c >> 6);
    *to++ = (uint8_t)(0x80 | (c & 63));
  } else if (c < 0x10000) {
    *to++ = (uint8_t)(0xe0 | c >> 12);
    *to++ = (uint8_t)(0x80 | (c >> 6 & 63));
    *to++ = (uint8_t)(0x80 | (c & 63));
  } else {
    *to++ = (uint8_t)(0xf0 | c >> 18);
    *to++ = (uint8_t)(0x80 | (c >> 12 & 63));
    *to++ = (uint8_t)(0x80 | (c >> 6 & 63));
    *to++ = (uint8_t)(0x80 | (c & 63));
  }
  return to;
}

/* The escape whose backslash is at p; returns what follows it, or NULL. */
static const uint8_t *unescape(const uint8_t *p, uint8_t **to) {
  static const char plain[128] = {['"'] = '"',  ['\\'] = '\\', ['/'] = '/',
                                  ['b'] = '\b', ['f'] = '\f',  ['n'] = '\n',
                                  ['r'] = '\r', ['t'] = '\t'};
  uint8_t c = p[1];
  if (c < 128 && plain[c]) {
    *(*to)++ = (uint8_t)plain[c];
    return p + 2;
  }
  if (c != 'u') return NULL;
  int32_t code = hex4(p + 2);
  p += 6;
  if (code < 0 || (code >= 0xdc00 && code <= 0xdfff)) return NULL;
  if (code >= 0xd800 && code <= 0xdbff) {
    if (p[0] != '\\' || p[1] != 'u') return NULL;
    int32_t low = hex4(p + 2);
    if (low < 0xdc00 || low > 0xdfff) return NULL;
    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    p += 6;
  }
  *to = put_utf8(*to, (uint32_t)code);
  return p;
}

/* A string of a utf8 column whose quote is before p; `end` is the line's. */
static const uint8_t *take_utf8(format_column *col, const uint8_t *p,
                                const uint8_t *end) {
  bool high = false;
  if (FORMAT_UNLIKELY(!format_column_grow(col, end - p + NDJSON_PADDING))) return NULL;
  uint8_t *start = col->data + col->data_len, *to = start;
  for (;;) {
    const uint8_t *stop = copy_plain(p, to, &high);
    to += stop - p;
    p = stop;
    if (FORMAT_LIKELY(*p == '"')) break;
    if (*p != '\\') return NULL;
    p = unescape(p, &to);
    if (p == NULL) return NULL;
  }
  if (FORMAT_UNLIKELY(high) && !base_utf8_valid(start, (size_t)(to - start))) return NULL;
  col->data_len += to - start;
  /* a batch holds 32 MiB of text and one line, far less than 2 GiB */
  format_offset_store(col->values, col->width, ++col->n, col->data_len);
  return p + 1;
}

/* The end of a string of ASCII without escapes whose quote is before p. */
static inline const uint8_t *find_quote(const uint8_t *p) {
#if defined(__SSE2__)
  for (;; p += 16) {
    __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
    /* with the bytes beyond ASCII, whose highest bit is set as it is */
    unsigned at = (unsigned)_mm_movemask_epi8(_mm_or_si128(ndjson_stops(v), v));
    if (at == 0) continue;
    p += __builtin_ctz(at);
    return *p == '"' ? p : NULL;
  }
#else
  while (*p != '"') {
    if (*p < 0x20 || *p >= 0x80 || *p == '\\') return NULL;
    p++;
  }
  return p;
#endif
}

static const uint8_t *take_string(format_column *col, const uint8_t *p,
                                  const uint8_t *end) {
  if (col->kind == FORMAT_UTF8) return take_utf8(col, p, end);
  const uint8_t *quote = find_quote(p);
  if (quote == NULL || format_column_string(col, p, (size_t)(quote - p)) != FORMAT_OK)
    return NULL;
  return quote + 1;
}

static const uint8_t *take_integer(format_column *col, const uint8_t *p) {
  bool negative = *p == '-';
  const uint8_t *start = p + negative, *q = start;
  uint64_t value = 0;
  unsigned digit;
  while ((digit = (unsigned)*q - '0') <= 9) {
    value = value * 10 + digit;
    q++;
  }
  if (q == start || (q - start > 1 && *start == '0') || *q == '.' || (*q | 0x20) == 'e')
    return NULL;
  if (FORMAT_UNLIKELY(q - start > 18)) {
    return format_column_number(col, p, (size_t)(q - p)) == FORMAT_OK ? q : NULL;
  }
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

/* The end of the number at p, by the grammar of JSON. */
static const uint8_t *scan_number(const uint8_t *p) {
  p += *p == '-';
  if (*p == '0') {
    p++;
  } else {
    if ((unsigned)*p - '1' > 8) return NULL;
    while ((unsigned)*p - '0' <= 9) p++;
  }
  if (*p == '.') {
    if ((unsigned)*++p - '0' > 9) return NULL;
    while ((unsigned)*p - '0' <= 9) p++;
  }
  if ((*p | 0x20) == 'e') {
    p++;
    if (*p == '-' || *p == '+') p++;
    if ((unsigned)*p - '0' > 9) return NULL;
    while ((unsigned)*p - '0' <= 9) p++;
  }
  return p;
}

static const uint8_t *take_number(format_column *col, const uint8_t *p,
                                  const uint8_t *end) {
  if (col->kind >= FORMAT_INT8 && col->kind <= FORMAT_UINT64) return take_integer(col, p);
  if (col->kind == FORMAT_DOUBLE) {
    double value = 0;
    if (format_double_scan(&p, end + NDJSON_PADDING, &value) != FORMAT_OK) return NULL;
    ((double *)(void *)col->values)[col->n++] = value;
    return p;
  }
  const uint8_t *stop = scan_number(p);
  if (stop == NULL || format_column_number(col, p, (size_t)(stop - p)) != FORMAT_OK) {
    return NULL;
  }
  return stop;
}

static const uint8_t *take_value(format_column *col, const uint8_t *p,
                                 const uint8_t *end) {
  switch (*p) {
    case '"':
      return take_string(col, p + 1, end);
    case 'n':
      return is_word(p, "null") && format_column_null(col) == FORMAT_OK ? p + 4 : NULL;
    case 't':
      return is_word(p, "true") && format_column_bool(col, true) == FORMAT_OK ? p + 4
                                                                              : NULL;
    case 'f':
      return is_word(p + 1, "alse") && format_column_bool(col, false) == FORMAT_OK ? p + 5
                                                                                   : NULL;
    default:
      if (FORMAT_UNLIKELY(col->kind >= FORMAT_LIST))
        return ndjson_take_nested(col, p, end);
      return take_number(col, p, end);
  }
}

const uint8_t *ndjson_take_value(format_column *col, const uint8_t *p,
                                 const uint8_t *end) {
  return format_column_room(col) ? take_value(col, p, end) : NULL;
}

const uint8_t *ndjson_pass_value(const uint8_t *p) {
  switch (*p) {
    case '"':
      p = find_quote(p + 1);
      return p == NULL ? NULL : p + 1;
    case 'n':
      return is_word(p, "null") ? p + 4 : NULL;
    case 't':
      return is_word(p, "true") ? p + 4 : NULL;
    case 'f':
      return is_word(p + 1, "alse") ? p + 5 : NULL;
    default:
      return scan_number(p);
  }
}

const uint8_t *ndjson_take_key(weir_ndjson_decoder *decoder, const uint8_t *p,
                               uint32_t place, int32_t *column) {
  if (*p != '"') return NULL;
  const uint8_t *q = p + 1;
  bool high = false;
  for (; *q != '"'; q++) {
    if (*q < 0x20 || *q == '\\') return NULL;
    high |= *q >= 0x80;
  }
  if (high && !base_utf8_valid(p + 1, (size_t)(q - p - 1))) return NULL;
  *column =
      format_names_find(&decoder->names, decoder->columns, p + 1, (size_t)(q - p - 1));
  q++;
  if (*q == ':') {
    if (place < NDJSON_MAX_SLOTS) {
      learn_slot(&decoder->slots[place], p, (size_t)(q + 1 - p), *column);
    }
    return q + 1;
  }
  q = ndjson_skip_blanks(q);
  return *q == ':' ? q + 1 : NULL;
}

static bool fill_missing(weir_ndjson_decoder *decoder) {
  for (int64_t i = 0; i < decoder->n_columns; i++) {
    format_column *col = &decoder->columns[i];
    if (col->n == decoder->rows && format_column_null(col) != FORMAT_OK) return false;
  }
  return true;
}

bool ndjson_row_fast(weir_ndjson_decoder *decoder, const uint8_t *line, size_t size) {
  const uint8_t *end = line + size, *p = ndjson_skip_blanks(line);
  int64_t filled = 0;
  if (*p != '{') return false;
  p = ndjson_skip_blanks(p + 1);
  if (*p == '}') {
    p++;
  } else {
    for (uint32_t place = 0;; place++) {
      int32_t column = -1;
      const ndjson_slot *slot = &decoder->slots[place < NDJSON_MAX_SLOTS ? place : 0];
      if (FORMAT_LIKELY(slot_matches(slot, p))) {
        column = slot->column;
        p += slot->size;
      } else {
        p = ndjson_take_key(decoder, p, place, &column);
        if (p == NULL) return false;
      }
      p = ndjson_skip_blanks(p);
      if (column >= 0) {
        format_column *col = &decoder->columns[column];
        if (col->n != decoder->rows) return false; /* given twice */
        p = take_value(col, p, end);
        filled++;
      } else {
        if (decoder->refuse_unknown) return false;
        p = ndjson_pass_value(p);
      }
      if (p == NULL) return false;
      p = ndjson_skip_blanks(p);
      if (*p == ',') {
        p = ndjson_skip_blanks(p + 1);
        continue;
      }
      if (*p != '}') return false;
      p++;
      break;
    }
  }
  if (ndjson_skip_blanks(p) != end) return false;
  return filled == decoder->n_columns || fill_missing(decoder);
}
