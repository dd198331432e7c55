/* SPDX-License-Identifier: Apache-2.0 */
#include "encode.h"

/* ---- RLE / bit-packing hybrid ---------------------------------------------------------------- */

enum { RUN_MIN = 16 };

size_t encode_hybrid_bound(size_t n, unsigned width) {
  size_t groups = n / 8 + 1;
  /* An RLE run stands for at least RUN_MIN values; at worst each is followed by one literal group. */
  return groups * width + (n / RUN_MIN + 2) * (20 + (width + 7) / 8) + 16;
}

static uint8_t *put_packed(const uint32_t *values, size_t n, unsigned width,
                           uint8_t *out) {
  size_t groups = (n + 7) / 8;
  out = parquet_store_uleb(out, groups << 1 | 1);
  bits_pack32(values, groups * 8, width, out);
  return out + groups * width;
}

static uint8_t *put_run(uint32_t value, size_t n, unsigned width, uint8_t *out) {
  out = parquet_store_uleb(out, n << 1);
  for (unsigned i = 0; i < (width + 7) / 8; i++) *out++ = (uint8_t)(value >> (8 * i));
  return out;
}

/* How many of the values lie in aligned stretches of RUN_MIN equal ones. */
PARQUET_CLONES
static size_t count_steady(const uint32_t *values, size_t n) {
  size_t steady = 0;
  for (size_t i = 0; i + RUN_MIN <= n; i += RUN_MIN) {
    uint32_t differ = 0;
    for (size_t k = 0; k < RUN_MIN; k++) differ |= values[i + k] ^ values[i];
    steady += differ == 0 ? RUN_MIN : 0;
  }
  return steady;
}

static size_t run_length(const uint32_t *values, size_t n) {
  size_t i = 1;
  while (i < n && values[i] == values[0]) i++;
  return i;
}

/* Literals come in groups of 8, so a run first fills up the group before it. */
static uint8_t *hybrid_runs(uint32_t *values, size_t n, unsigned width, uint8_t *out) {
  size_t literal = 0; /* where the pending literals begin */
  size_t i = 0;
  while (i < n) {
    size_t run = run_length(values + i, n - i);
    size_t fill = (8 - (i - literal) % 8) % 8;
    if (run < fill + RUN_MIN) {
      i += run;
      continue;
    }
    i += fill;
    if (i > literal) out = put_packed(values + literal, i - literal, width, out);
    out = put_run(values[i], run - fill, width, out);
    i += run - fill;
    literal = i;
  }
  return literal < n ? put_packed(values + literal, n - literal, width, out) : out;
}

uint8_t *encode_hybrid(uint32_t *values, size_t n, unsigned width, uint8_t *out) {
  if (n == 0) return out;
  memset(values + n, 0, 8 * sizeof(*values));
  if (width == 0) return put_run(0, n, 0, out);
  /* Chance runs are not worth the loss of one straight packing loop. */
  if (count_steady(values, n) > n / 8) return hybrid_runs(values, n, width, out);
  return put_packed(values, n, width, out);
}

uint8_t *encode_hybrid_bitmap(const uint8_t *bits, size_t n, size_t ones, uint8_t *out) {
  if (ones == n || ones == 0) return put_run(ones != 0, n, 1, out);
  out = parquet_store_uleb(out, (n + 7) / 8 << 1 | 1);
  memcpy(out, bits, (n + 7) / 8);
  return out + (n + 7) / 8;
}

/* ---- delta ----------------------------------------------------------------------------------- */

/* A block is a multiple of 128 values, a miniblock of 32; these sizes pack better than the customary
 * 128 / 4 and are within what the format allows. */
enum {
  DELTA_BLOCK = 1024,
  DELTA_MINIBLOCKS = 8,
  DELTA_MINI = DELTA_BLOCK / DELTA_MINIBLOCKS
};

size_t encode_delta_bound(size_t n, size_t width) {
  size_t blocks = n / DELTA_BLOCK + 1;
  return 40 + blocks * (10 + DELTA_MINIBLOCKS + DELTA_BLOCK * width);
}

/* Values come from memory while those before them are worked on. */
enum { AHEAD_BYTES = 4096, LINE_BYTES = 64 };

PARQUET_INLINE void fetch_ahead(const void *values, size_t size) {
  const char *at = (const char *)values + AHEAD_BYTES;
  for (size_t i = 0; i < size; i += LINE_BYTES) __builtin_prefetch(at + i);
}

PARQUET_INLINE void show(const encode_witness *witness, const void *values, size_t n) {
  if (witness != NULL && n > 0) witness->look(witness->ctx, values, n);
}

/* Differences wrap in the width of the type, as the format says; the smallest is taken off. */
#define DELTA(suffix, type, stype)                                                      \
  PARQUET_CLONES                                                                        \
  static stype delta_block##suffix(const type *values, size_t n, type *delta,           \
                                   type *any) {                                         \
    stype min = (stype)(values[0] - values[-1]);                                        \
    for (size_t i = 0; i < n; i++) {                                                    \
      delta[i] = values[i] - values[(ptrdiff_t)i - 1];                                  \
      min = (stype)delta[i] < min ? (stype)delta[i] : min;                              \
    }                                                                                   \
    for (size_t i = n; i < DELTA_BLOCK; i++) delta[i] = (type)min;                      \
    for (size_t m = 0; m < DELTA_MINIBLOCKS; m++) {                                     \
      type all = 0;                                                                     \
      for (size_t i = m * DELTA_MINI; i < (m + 1) * DELTA_MINI; i++) {                  \
        delta[i] -= (type)min;                                                          \
        all |= delta[i];                                                                \
      }                                                                                 \
      any[m] = all;                                                                     \
    }                                                                                   \
    return min;                                                                         \
  }                                                                                     \
  uint8_t *encode_delta##suffix(const type *values, size_t n,                           \
                                const encode_witness *witness, uint8_t *out) {          \
    show(witness, values, n < 1 ? n : 1);                                               \
    out = parquet_store_uleb(out, DELTA_BLOCK);                                         \
    out = parquet_store_uleb(out, DELTA_MINIBLOCKS);                                    \
    out = parquet_store_uleb(out, n);                                                   \
    out = parquet_store_uleb(out, parquet_zigzag(n > 0 ? (stype)values[0] : 0));        \
    for (size_t i = 1; i < n; i += DELTA_BLOCK) {                                       \
      size_t m = n - i < DELTA_BLOCK ? n - i : DELTA_BLOCK;                             \
      type delta[DELTA_BLOCK], any[DELTA_MINIBLOCKS];                                   \
      fetch_ahead(values + i, m * sizeof(type));                                        \
      show(witness, values + i, m);                                                     \
      stype min = delta_block##suffix(values + i, m, delta, any);                       \
      out = parquet_store_uleb(out, parquet_zigzag(min));                               \
      uint8_t *widths = out;                                                            \
      out += DELTA_MINIBLOCKS;                                                          \
      for (size_t k = 0; k < DELTA_MINIBLOCKS; k++) {                                   \
        unsigned width = k * DELTA_MINI < m ? parquet_width(any[k]) : 0;                \
        widths[k] = (uint8_t)width;                                                     \
        if (k * DELTA_MINI < m) delta_pack##suffix(delta + k * DELTA_MINI, width, out); \
        out += width * DELTA_MINI / 8;                                                  \
      }                                                                                 \
    }                                                                                   \
    return out;                                                                         \
  }

PARQUET_INLINE void delta_pack32(const uint32_t *delta, unsigned width, uint8_t *out) {
  bits_pack32(delta, DELTA_MINI, width, out);
}

static void delta_pack64(const uint64_t *delta, unsigned width, uint8_t *out) {
  if (width > 32) {
    bits_pack64(delta, DELTA_MINI, width, out);
    return;
  }
  uint32_t narrow[DELTA_MINI];
  for (size_t i = 0; i < DELTA_MINI; i++) narrow[i] = (uint32_t)delta[i];
  bits_pack32(narrow, DELTA_MINI, width, out);
}

DELTA(32, uint32_t, int32_t)
DELTA(64, uint64_t, int64_t)

double encode_delta_estimate(const void *values, size_t n, size_t width) {
  if (n < 2) return 0;
  size_t windows = n > 16 * DELTA_BLOCK ? 16 : (n - 2) / DELTA_BLOCK + 1;
  size_t step = (n - 1) / windows;
  uint64_t bits = 0, count = 0;
  for (size_t w = 0; w < windows; w++) {
    size_t from = 1 + w * step;
    size_t m = n - from < DELTA_BLOCK ? n - from : DELTA_BLOCK;
    uint64_t any64[DELTA_MINIBLOCKS], delta64[DELTA_BLOCK];
    uint32_t any32[DELTA_MINIBLOCKS], delta32[DELTA_BLOCK];
    if (width == 8) {
      delta_block64((const uint64_t *)values + from, m, delta64, any64);
    } else {
      delta_block32((const uint32_t *)values + from, m, delta32, any32);
    }
    for (size_t k = 0; k * DELTA_MINI < m; k++) {
      bits += (uint64_t)parquet_width(width == 8 ? any64[k] : any32[k]) * DELTA_MINI;
    }
    count += m;
    bits += 8 * (2 + DELTA_MINIBLOCKS);
  }
  return (double)bits / (double)count;
}

/* ---- byte stream split ----------------------------------------------------------------------- */

/* Blocks stay in the first cache while their planes are drawn. */
enum { SPLIT_BLOCK = 1024 };

#define SPLIT(name, type)                                                      \
  PARQUET_CLONES                                                               \
  static void name(const type *restrict v, size_t m, size_t n, uint8_t *out) { \
    for (unsigned plane = 0; plane < sizeof(type); plane++) {                  \
      uint8_t *restrict to = out + plane * n;                                  \
      for (size_t i = 0; i < m; i++) to[i] = (uint8_t)(v[i] >> (8 * plane));   \
    }                                                                          \
  }

SPLIT(split8, uint64_t)
SPLIT(split4, uint32_t)

static void split_any(const uint8_t *values, size_t m, size_t n, size_t width,
                      uint8_t *out) {
  for (size_t plane = 0; plane < width; plane++) {
    for (size_t i = 0; i < m; i++) out[plane * n + i] = values[i * width + plane];
  }
}

void encode_split(const uint8_t *values, size_t n, size_t width,
                  const encode_witness *witness, uint8_t *out) {
  for (size_t from = 0; from < n; from += SPLIT_BLOCK) {
    size_t m = n - from < SPLIT_BLOCK ? n - from : SPLIT_BLOCK;
    const uint8_t *block = values + from * width;
    fetch_ahead(block, m * width);
    show(witness, block, m);
    if (width == 8) {
      split8((const uint64_t *)(const void *)block, m, n, out + from);
    } else if (width == 4) {
      split4((const uint32_t *)(const void *)block, m, n, out + from);
    } else {
      split_any(block, m, n, width, out + from);
    }
  }
}
