/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many rows at once: an index of the characters that end fields, found 64 bytes at a time, then one column
 * after the other. It takes rows of the right number of well-formed fields and gives up on anything else, for
 * which the rows go one by one.
 */
#include <string.h>

#include "format/csv.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/* Of 64 bytes, which are what; the lowest bit is the first byte. */
typedef struct csv_bits {
  uint64_t end, quote, cr; /* end: delimiter or LF */
  uint64_t lf;             /* if there are quotes or CRs; else the first bit alone */
  bool high;               /* some byte is beyond ASCII */
  uint32_t lines;          /* how many are LF */
} csv_bits;

static inline csv_bits find_bits(const csv_dialect *dialect, const uint8_t *p) {
  csv_bits bits = {.lf = *p == '\n'};
  uint8_t quote = dialect->quote < 0 ? '\n' : (uint8_t)dialect->quote;
#if defined(__SSE2__)
  const __m128i ends = _mm_set1_epi8((char)dialect->delimiter), lf = _mm_set1_epi8('\n'),
                cr = _mm_set1_epi8('\r'), quotes = _mm_set1_epi8((char)quote);
  __m128i rare = _mm_setzero_si128(), all = rare, lines = rare, v[4];
  for (int i = 0; i < 4; i++) {
    v[i] = _mm_loadu_si128((const __m128i *)(const void *)(p + 16 * i));
    __m128i line = _mm_cmpeq_epi8(v[i], lf);
    __m128i end = _mm_or_si128(_mm_cmpeq_epi8(v[i], ends), line);
    lines = _mm_sub_epi8(lines, line);
    bits.end |= (uint64_t)(unsigned)_mm_movemask_epi8(end) << (16 * i);
    rare = _mm_or_si128(
        rare, _mm_or_si128(_mm_cmpeq_epi8(v[i], cr), _mm_cmpeq_epi8(v[i], quotes)));
    all = _mm_or_si128(all, v[i]);
  }
  bits.high = _mm_movemask_epi8(all) != 0;
  lines = _mm_sad_epu8(lines, _mm_setzero_si128());
  bits.lines = (uint32_t)(_mm_cvtsi128_si32(lines) + _mm_extract_epi16(lines, 4));
  if (_mm_movemask_epi8(rare) != 0) {
    for (int i = 0; i < 4; i++) {
      unsigned q = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(v[i], quotes)),
               c = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(v[i], cr)),
               l = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(v[i], lf));
      bits.quote |= (uint64_t)q << (16 * i);
      bits.cr |= (uint64_t)c << (16 * i);
      bits.lf |= (uint64_t)l << (16 * i);
    }
  }
#else
  for (int i = 0; i < 64; i++) {
    bits.end |= (uint64_t)(p[i] == dialect->delimiter || p[i] == '\n') << i;
    bits.quote |= (uint64_t)(p[i] == quote) << i;
    bits.cr |= (uint64_t)(p[i] == '\r') << i;
    bits.high |= p[i] >= 0x80;
    bits.lf |= (uint64_t)(p[i] == '\n') << i;
    bits.lines += p[i] == '\n';
  }
#endif
  if (dialect->quote < 0) bits.quote = 0;
  return bits;
}

/* Of a word with at most 8 bits set, or any with the instruction for it. */
static inline unsigned count_bits(uint64_t x) {
#if defined(__POPCNT__)
  return (unsigned)__builtin_popcountll(x);
#else
  x -= x >> 1 & UINT64_C(0x5555555555555555);
  x = (x & UINT64_C(0x3333333333333333)) + (x >> 2 & UINT64_C(0x3333333333333333));
  x = (x + (x >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
  return (unsigned)(x * UINT64_C(0x0101010101010101) >> 56);
#endif
}

/* What the block before says of the first bytes of the next one. */
typedef struct csv_carry {
  uint64_t inside;         /* all ones: within quotes */
  uint64_t end, close, cr; /* 1: the last byte was that */
} csv_carry;

/* Takes the ends within quotes out of bits->end. False when a quote is not where one may be, or a CR is not
 * before LF: RFC 4180 as <weir/csv.h> has it. */
static inline bool mind_quotes(csv_bits *bits, csv_carry *carry, bool *doubled) {
  /* from each opening quote up to before its closing one, by the parity of the quotes before */
  uint64_t inside = bits->quote;
  for (int i = 1; i < 64; i *= 2) inside ^= inside << i;
  inside ^= carry->inside;
  uint64_t open = bits->quote & inside, close = bits->quote & ~inside;
  uint64_t cr = bits->cr & ~inside, end = bits->end & ~inside;
  /* a doubled quote closes and opens again */
  bool wrong = open & ~((end | close) << 1 | carry->end | carry->close);
  *doubled |= (open & (close << 1 | carry->close)) != 0;
  wrong |= ((close << 1 | carry->close) & ~(end | cr | open)) != 0;
  wrong |= ((cr << 1 | carry->cr) & ~bits->lf) != 0;
  carry->inside = 0 - (inside >> 63);
  carry->end = end >> 63;
  carry->close = close >> 63;
  carry->cr = cr >> 63;
  bits->end = end;
  return !wrong;
}

typedef struct csv_index {
  size_t n;     /* ends found */
  size_t lines; /* LFs met */
  bool quotes, doubled, crs, high;
} csv_index;

/* Writes `from` + the number of each bit; returns how many there are. Eight at once, needed or not: a loop
 * of as many as there are would end with a branch that nothing predicts. Up to 71 are written. */
static inline size_t put_places(uint64_t bits, uint32_t from, uint32_t *to) {
  uint32_t *start = to;
  while (bits != 0) {
    uint64_t left = bits;
    for (int i = 0; i < 8; i++, left &= left - 1) {
      to[i] = from + (uint32_t)__builtin_ctzll(left | UINT64_C(1) << 63);
    }
    if (FORMAT_LIKELY(left == 0)) return (size_t)(to - start) + count_bits(bits);
    to += 8;
    bits = left;
  }
  return (size_t)(to - start);
}

/* Writes the places of up to `want` ends and some more, for which there is room; at[0] is where the first
 * row would have its end before it. `size` is a multiple of 64. */
static csv_index find_ends(const csv_dialect *dialect, const uint8_t *p, size_t size,
                           size_t want, uint32_t *at) {
  csv_index index = {0};
  csv_carry carry = {.end = 1};
  *at++ = UINT32_MAX; /* the byte behind it is 0 */
  for (size_t i = 0; i < size && index.n < want; i += 64) {
    csv_bits bits = find_bits(dialect, p + i);
    if (FORMAT_UNLIKELY((bits.quote | bits.cr | carry.inside | carry.close | carry.cr) !=
                        0)) {
      index.quotes |= (bits.quote | carry.inside) != 0;
      index.crs |= bits.cr != 0;
      if (!mind_quotes(&bits, &carry, &index.doubled)) break;
    } else {
      carry.end = bits.end >> 63;
    }
    index.high |= bits.high;
    index.lines += bits.lines;
    index.n += put_places(bits.end, (uint32_t)i, at + index.n);
  }
  return index;
}

/* The value of a field in quotes; when there are quotes in it, by take_odd. */
static inline format_span quoted_span(int quote, const uint8_t *base, format_span span,
                                      bool doubled) {
  span.at++;
  span.size -= 2;
  if (doubled && memchr(base + span.at, quote, span.size) != NULL)
    span.size |= FORMAT_SPAN_ODD;
  return span;
}

static bool has_null_text(const csv_dialect *dialect, const uint8_t *base,
                          format_span span) {
  return span.size == dialect->null_len &&
         (span.size == 0 ||
          memcmp(base + span.at, dialect->null_text, dialect->null_len) == 0);
}

/* Whether all rows end with an LF and no field does, when there are no quotes: by the last ends of the
 * rows, and the number of LFs. */
static bool are_rows(const weir_csv_decoder *decoder, const uint8_t *base,
                     const csv_index *index, int64_t rows) {
  const uint32_t *at = decoder->ends + 1;
  size_t lines = 0, taken = (size_t)(rows * decoder->n_fields);
  for (int64_t i = 1; i <= rows; i++)
    lines += base[at[i * decoder->n_fields - 1]] == '\n';
  if (lines != (size_t)rows) return false;
  for (size_t i = taken; i < index->n; i++) lines += base[at[i]] == '\n';
  return lines == index->lines;
}

/* Values that are not simply what lies between two ends: in quotes, before CR LF, with a text for null. False
 * when a row has another number of fields. */
static bool find_values(weir_csv_decoder *decoder, const uint8_t *base, int64_t field,
                        int64_t rows, const csv_index *index, bool texts) {
  const csv_dialect *dialect = &decoder->dialect;
  const uint32_t *at = decoder->ends + field;
  const bool last = field + 1 == decoder->n_fields;
  const uint8_t want = last ? '\n' : dialect->delimiter;
  uint8_t differ = 0;
  for (int64_t i = 0; i < rows; i++, at += decoder->n_fields) {
    format_span span = {at[0] + 1, at[1] - at[0] - 1};
    bool quoted = false;
    differ |= base[at[1]] ^ want;
    if (last && span.size > 0 && base[at[1] - 1] == '\r') span.size--;
    if (index->quotes && span.size > 0 && base[span.at] == dialect->quote) {
      span = quoted_span(dialect->quote, base, span, index->doubled);
      quoted = true;
    }
    if (!(quoted && texts) && has_null_text(dialect, base, span))
      span.size = FORMAT_SPAN_NULL;
    decoder->befores[i] = span.at - 1;
    decoder->afters[i] = span.at + span.size;
  }
  return differ == 0;
}

/* A text with doubled quotes, or any value that the loops do not know. */
static format_result take_odd(const void *context, format_column *col,
                              const uint8_t *base, format_span span) {
  const csv_dialect *dialect = context;
  const uint8_t *p = base + span.at;
  if (!(span.size & FORMAT_SPAN_ODD)) {
    /* null is told apart already */
    return csv_value_append(dialect, col, p, span.size, true);
  }
  int64_t n = span.size & ~FORMAT_SPAN_ODD;
  if (col->kind != FORMAT_UTF8) return FORMAT_TEXT;
  if (!format_column_grow(col, n)) return FORMAT_NOMEM;
  uint8_t *to = col->data + col->data_len;
  for (const uint8_t *end = p + n; p < end; p++) {
    *to++ = *p;
    p += *p == dialect->quote;
  }
  col->data_len = to - col->data;
  format_offset_store(col->values, col->width, ++col->n, col->data_len);
  return FORMAT_OK;
}

static bool lines_fit(const weir_csv_decoder *decoder, int64_t rows) {
  for (int64_t i = 0; i < rows; i++) {
    const uint32_t *at = decoder->ends + i * decoder->n_fields;
    if (at[decoder->n_fields] - (at[0] + 1) > decoder->max_line) return false;
  }
  return true;
}

size_t csv_chunk_take(weir_csv_decoder *decoder, const uint8_t *base, size_t size,
                      int64_t *taken, uint64_t *lines) {
  int64_t fields = decoder->n_fields, want = CSV_CHUNK_ENDS / fields, rows;
  if (want > FORMAT_SPAN_ROWS) want = FORMAT_SPAN_ROWS;
  if (want > decoder->batch_rows - decoder->rows)
    want = decoder->batch_rows - decoder->rows;
  if (size > CSV_CHUNK_BYTES) size = CSV_CHUNK_BYTES;
  csv_index index = find_ends(&decoder->dialect, base, size & ~(size_t)63,
                              (size_t)(want * fields), decoder->ends);
  rows = (int64_t)index.n / fields;
  if (rows > want) rows = want;
  if (rows == 0 || !lines_fit(decoder, rows)) return 0;
  size_t whole = (size_t)decoder->ends[rows * fields] + 1;
  if (index.high && !base_utf8_valid(base, whole)) return 0;
  if (!index.quotes && !are_rows(decoder, base, &index, rows)) return 0;
  bool plain = !index.quotes && decoder->dialect.null_len == 0;
  format_spans spans = {
      .base = base, .n = rows, .odd = take_odd, .context = &decoder->dialect};
  for (int64_t i = 0; i < fields; i++) {
    int32_t column = decoder->fields[i];
    format_column *col = column < 0 ? NULL : &decoder->columns[column];
    spans.empty_null = plain && !(index.crs && i + 1 == fields);
    if (spans.empty_null) {
      spans.before = decoder->ends + i;
      spans.stride = fields;
    } else {
      bool texts =
          col != NULL && (col->kind == FORMAT_UTF8 || col->kind == FORMAT_BINARY);
      if (!find_values(decoder, base, i, rows, &index, texts)) return 0;
      spans.before = decoder->befores;
      spans.stride = 1;
    }
    spans.end = spans.empty_null ? spans.before + 1 : decoder->afters;
    if (col != NULL && !format_column_take(col, &spans)) return 0;
  }
  *taken = rows;
  *lines = index.quotes ? csv_count_lines(base, base + whole) : (uint64_t)rows;
  return whole;
}
