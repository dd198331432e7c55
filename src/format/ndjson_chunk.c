/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many rows at once: one pass over the lines finds where each value lies, keys guessed from the row before
 * with all that is between two values; then one column after the other. It takes rows of flat
 * values and stops at the first one that it is not sure of, which then goes alone.
 */
#include <string.h>

#include "base/base.h"
#include "format/digits.h"
#include "format/ndjson.h"

/* What a row's values lie behind: the bytes that were between the same two values in the row before. */
static inline bool gap_matches(const ndjson_gap *gap, const uint8_t *p) {
#if defined(__SSE2__)
  const __m128i *at = (const __m128i *)(const void *)p,
                *text = (const __m128i *)(const void *)gap->text,
                *mask = (const __m128i *)(const void *)gap->mask;
  __m128i a = _mm_and_si128(_mm_xor_si128(_mm_loadu_si128(at), _mm_loadu_si128(text)),
                            _mm_loadu_si128(mask));
  __m128i b =
      _mm_and_si128(_mm_xor_si128(_mm_loadu_si128(at + 1), _mm_loadu_si128(text + 1)),
                    _mm_loadu_si128(mask + 1));
  __m128i same = _mm_cmpeq_epi8(_mm_or_si128(a, b), _mm_setzero_si128());
  return _mm_movemask_epi8(same) == 0xffff && gap->size > 0;
#else
  return gap->size > 0 && memcmp(gap->text, p, gap->size) == 0;
#endif
}

/* Reads what is before value `place` of a row, keeps it as the guess for the next one, and returns the
 * value; NULL when it is not a key. */
static const uint8_t *learn_gap(weir_ndjson_decoder *decoder, const uint8_t *p,
                                uint32_t place, int32_t *column) {
  ndjson_gap *gap = &decoder->gaps[place];
  const uint8_t *start = p;
  p = ndjson_skip_blanks(p);
  if (*p != (place == 0 ? '{' : ',')) return NULL;
  p = ndjson_take_key(decoder, ndjson_skip_blanks(p + 1), place, column);
  if (p == NULL) return NULL;
  p = ndjson_skip_blanks(p);
  size_t size = (size_t)(p - start);
  gap->size = 0;
  if (size > sizeof(gap->text)) return p;
  memcpy(gap->text, start, size);
  memset(gap->mask, 0, sizeof(gap->mask));
  memset(gap->mask, 0xff, size);
  gap->size = (uint32_t)size;
  gap->column = *column;
  return p;
}

/* The first character at or behind p that ends a run of plain ones. *high gathers whether bytes beyond ASCII were met,
 * or were near. */
static inline const uint8_t *find_stop(const uint8_t *p, bool *high) {
#if defined(__SSE2__)
  for (;; p += 32) {
    __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p),
            w = _mm_loadu_si128((const __m128i *)(const void *)(p + 16));
    unsigned at = (unsigned)_mm_movemask_epi8(ndjson_stops(v)) |
                  (unsigned)_mm_movemask_epi8(ndjson_stops(w)) << 16;
    *high |= _mm_movemask_epi8(_mm_or_si128(v, w)) != 0;
    if (at != 0) return p + __builtin_ctz(at);
  }
#else
  for (; !ndjson_is_stop(*p); p++) *high |= *p >= 0x80;
  return p;
#endif
}

/* The end of a number or word: a comma, a brace, a blank or a control character. */
static inline const uint8_t *find_bare_end(const uint8_t *p) {
#if defined(__SSE2__)
  for (;; p += 16) {
    __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
    __m128i stop = _mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8(',')),
                                _mm_cmpeq_epi8(v, _mm_set1_epi8('}')));
    stop = _mm_or_si128(stop, _mm_cmpeq_epi8(_mm_min_epu8(v, _mm_set1_epi8(' ')), v));
    unsigned at = (unsigned)_mm_movemask_epi8(stop);
    if (at != 0) return p + __builtin_ctz(at);
  }
#else
  while (*p != ',' && *p != '}' && *p > ' ') p++;
  return p;
#endif
}

/* Rows on their way into spans. */
typedef struct chunk {
  weir_ndjson_decoder *decoder;
  const uint8_t *base;
  int64_t room; /* rows of each column's spans */
  bool high;
} chunk;

/* Whether the loop of a column takes the inside of strings; else bare values. */
static inline bool takes_strings(const format_column *col) {
  return col->kind == FORMAT_UTF8 || col->kind == FORMAT_TIMESTAMP;
}

/* The value at p as *span; what follows it, or NULL. `col` may be NULL. */
static inline const uint8_t *find_value(chunk *c, const format_column *col,
                                        const uint8_t *p, format_span *span) {
  const uint8_t *end;
  uint32_t odd = 0;
  if (*p == '"') {
    end = find_stop(++p, &c->high);
    while (FORMAT_UNLIKELY(*end == '\\') && col != NULL) {
      if (end[1] < 0x20) return NULL;
      odd = FORMAT_SPAN_ODD;
      end = find_stop(end + 2, &c->high);
    }
    if (*end != '"') return NULL;
    if (col != NULL && !takes_strings(col)) odd = FORMAT_SPAN_ODD;
    *span = (format_span){(uint32_t)(p - c->base), (uint32_t)(end - p) | odd};
    return end + 1;
  }
  end = find_bare_end(p);
  if (format_load32(p) == format_load32((const uint8_t *)"null") && end - p == 4) {
    *span = (format_span){(uint32_t)(p - c->base), FORMAT_SPAN_NULL};
    return end;
  }
  if (FORMAT_UNLIKELY(*p == '{' || *p == '[')) return NULL;
  if (FORMAT_UNLIKELY(col == NULL) && ndjson_pass_value(p) != end) return NULL;
  if (col != NULL && takes_strings(col)) odd = FORMAT_SPAN_ODD;
  *span = (format_span){(uint32_t)(p - c->base), (uint32_t)(end - p) | odd};
  return end;
}

static inline void put_span(const chunk *c, int64_t column, int64_t row,
                            format_span span) {
  int64_t at = column * c->room + row;
  c->decoder->befores[at] = span.at - 1;
  c->decoder->afters[at] = span.at + span.size;
}

/* Finds the values of the row at p; what follows its LF, or NULL. */
static const uint8_t *find_row(chunk *c, const uint8_t *p, int64_t row) {
  weir_ndjson_decoder *decoder = c->decoder;
  const uint8_t *line = p;
  int64_t filled = 0;
  for (uint32_t place = 0;; place++) {
    const ndjson_gap *gap = &decoder->gaps[place];
    int32_t column = gap->column;
    format_span span = {0};
    if (FORMAT_LIKELY(gap_matches(gap, p))) {
      p += gap->size;
    } else {
      const uint8_t *end = ndjson_skip_blanks(p);
      if (*end == '}' && place > 0) {
        p = end;
        break;
      }
      if (place == NDJSON_CHUNK_KEYS - 1) return NULL;
      p = learn_gap(decoder, p, place, &column);
      if (p == NULL) return NULL;
    }
    const format_column *col = column < 0 ? NULL : &decoder->columns[column];
    p = find_value(c, col, p, &span);
    if (p == NULL) return NULL;
    if (FORMAT_LIKELY(col != NULL)) {
      if (decoder->row_of[column] == row + 1) return NULL; /* given twice */
      decoder->row_of[column] = row + 1;
      put_span(c, column, row, span);
      filled++;
    } else if (decoder->refuse_unknown) {
      return NULL;
    }
    if (*p == '}') break;
  }
  p = ndjson_skip_blanks(p + 1);
  if (*p != '\n' || (uint64_t)(p - line) > decoder->max_line) return NULL;
  for (int64_t i = 0; filled < decoder->n_columns && i < decoder->n_columns; i++) {
    if (decoder->row_of[i] == row + 1) continue;
    put_span(c, i, row, (format_span){(uint32_t)(line - c->base), FORMAT_SPAN_NULL});
  }
  return p + 1;
}

/* The way of one value, by that of a row's. */
static format_result take_odd(const void *context, format_column *col,
                              const uint8_t *base, format_span span) {
  (void)context;
  const uint8_t *p = base + span.at, *end = p + (span.size & ~FORMAT_SPAN_ODD);
  bool string = p[-1] == '"'; /* before any other value is a colon or a blank */
  const uint8_t *got = ndjson_take_value(col, p - string, end);
  return got == end + string ? FORMAT_OK : FORMAT_TEXT;
}

size_t ndjson_chunk_take(weir_ndjson_decoder *decoder, const uint8_t *base, size_t size,
                         int64_t *taken) {
  chunk c = {decoder, base, NDJSON_CHUNK_VALUES / decoder->n_columns, false};
  if (c.room > FORMAT_SPAN_ROWS) c.room = FORMAT_SPAN_ROWS;
  int64_t want = decoder->batch_rows - decoder->rows, rows = 0;
  if (want > c.room) want = c.room;
  if (size > NDJSON_CHUNK_BYTES) size = NDJSON_CHUNK_BYTES;
  const uint8_t *stop = memrchr(base, '\n', size), *p = base;
  *taken = 0;
  if (stop == NULL) return 0;
  memset(decoder->row_of, 0, (size_t)decoder->n_columns * sizeof(*decoder->row_of));
  while (rows < want && p <= stop) {
    /* Told by the LF, not by the row before, whose values are found one behind the other: so the processor
     * begins with the next row while it waits for this one. */
    const uint8_t *next = (const uint8_t *)memchr(p, '\n', (size_t)(stop - p) + 1) + 1;
    if (find_row(&c, p, rows) != next) break;
    p = next;
    rows++;
  }
  size_t whole = (size_t)(p - base);
  if (rows == 0 || (c.high && !base_utf8_valid(base, whole))) return 0;
  format_spans spans = {
      .base = base, .n = rows, .stride = 1, .json = true, .odd = take_odd};
  for (int64_t i = 0; i < decoder->n_columns; i++) {
    spans.before = decoder->befores + i * c.room;
    spans.end = decoder->afters + i * c.room;
    if (!format_column_take(&decoder->columns[i], &spans)) return 0;
  }
  *taken = rows;
  return whole;
}
