/* SPDX-License-Identifier: Apache-2.0 */
#include "stats.h"

#include <float.h>
#include <math.h>

#include "bits.h"

/* ---- numbers ---------------------------------------------------------------------------------- */

#define BOUNDS(name, type)                                          \
  PARQUET_CLONES                                                    \
  static void name(const type *v, size_t n, type *min, type *max) { \
    type low = v[0], high = v[0];                                   \
    for (size_t i = 1; i < n; i++) {                                \
      low = v[i] < low ? v[i] : low;                                \
      high = v[i] > high ? v[i] : high;                             \
    }                                                               \
    *min = low;                                                     \
    *max = high;                                                    \
  }

BOUNDS(bounds_int32, int32_t)
BOUNDS(bounds_uint32, uint32_t)
BOUNDS(bounds_int64, int64_t)
BOUNDS(bounds_uint64, uint64_t)

/* Several running bounds at once, so that the loop has no chain and becomes vector instructions, which for
 * floats a compiler does not do itself. */
enum { LANES = 16 };

/* A comparison with NaN is false, so NaN never becomes a bound; they are counted besides. */
#define FLOAT_BOUNDS(name, type, uint)                                                        \
  PARQUET_CLONES                                                                              \
  static void name(const type *restrict v, size_t n, type *min, type *max, bool *nan) {       \
    type low[LANES], high[LANES];                                                             \
    uint nans = 0;                                                                            \
    for (size_t k = 0; k < LANES; k++) {                                                      \
      low[k] = (type)INFINITY;                                                                \
      high[k] = (type) - INFINITY;                                                            \
    }                                                                                         \
    size_t i = 0;                                                                             \
    for (; i + LANES <= n; i += LANES) {                                                      \
      for (size_t k = 0; k < LANES; k++) {                                                    \
        low[k] = v[i + k] < low[k] ? v[i + k] : low[k];                                       \
        high[k] = v[i + k] > high[k] ? v[i + k] : high[k];                                    \
        nans |= v[i + k] != v[i + k];                                                         \
      }                                                                                       \
    }                                                                                         \
    for (; i < n; i++) {                                                                      \
      low[0] = v[i] < low[0] ? v[i] : low[0];                                                 \
      high[0] = v[i] > high[0] ? v[i] : high[0];                                              \
      nans |= v[i] != v[i];                                                                   \
    }                                                                                         \
    for (size_t k = 1; k < LANES; k++) {                                                      \
      low[0] = low[k] < low[0] ? low[k] : low[0];                                             \
      high[0] = high[k] > high[0] ? high[k] : high[0];                                        \
    }                                                                                         \
    /* "If the min is +0, the row group may contain -0 values as well" and so on: the sign */ \
    /* of a zero bound is always the outer one. */                                            \
    *min = low[0] == 0 ? (type) - 0.0 : low[0];                                               \
    *max = high[0] == 0 ? (type)0.0 : high[0];                                                \
    *nan = nans != 0;                                                                         \
  }

FLOAT_BOUNDS(bounds_float, float, uint32_t)
FLOAT_BOUNDS(bounds_double, double, uint64_t)

static bool half_is_nan(uint16_t v) {
  return (v & 0x7fffu) > 0x7c00u;
}

/* Sign and magnitude to a number of the same order; both zeros become 0. */
static int half_rank(uint16_t v) {
  int magnitude = v & 0x7fff;
  return (v & 0x8000u) != 0 ? -magnitude : magnitude;
}

static bool bounds_half(const uint8_t *values, size_t n, uint16_t *min, uint16_t *max,
                        bool *nan) {
  bool has = false;
  for (size_t i = 0; i < n; i++) {
    uint16_t v;
    memcpy(&v, values + 2 * i, sizeof(v));
    if (half_is_nan(v)) {
      *nan = true;
      continue;
    }
    if (!has || half_rank(v) < half_rank(*min)) *min = v;
    if (!has || half_rank(v) > half_rank(*max)) *max = v;
    has = true;
  }
  if (has && half_rank(*min) == 0) *min = 0x8000u;
  if (has && half_rank(*max) == 0) *max = 0;
  return has;
}

/* ---- bytes ------------------------------------------------------------------------------------ */

static int compare_bytes(thrift_binary a, thrift_binary b) {
  size_t common = a.size < b.size ? a.size : b.size;
  int order = common == 0 ? 0 : memcmp(a.data, b.data, common);
  if (order != 0) return order;
  return (a.size > b.size) - (a.size < b.size);
}

/* The first 8 bytes as a number of the same order; short values are filled up with zeros, so equal
 * prefixes still need the bytes themselves. */
static uint64_t prefix_of(const uint8_t *data, size_t size) {
  if (size >= 8) return __builtin_bswap64(parquet_load64(data));
  uint64_t v = 0;
  for (size_t i = 0; i < size; i++) v |= (uint64_t)data[i] << (56 - 8 * i);
  return v;
}

static void bounds_bytes(const uint8_t *data, const uint32_t *offsets, size_t width,
                         size_t n, thrift_binary *min, thrift_binary *max) {
  uint64_t low = UINT64_MAX, high = 0;
  for (size_t i = 0; i < n; i++) {
    thrift_binary v = {data + i * width, width};
    if (offsets != NULL)
      v = (thrift_binary){data + offsets[i], offsets[i + 1] - offsets[i]};
    uint64_t prefix = prefix_of(v.data, v.size);
    if (prefix <= low && (i == 0 || prefix < low || compare_bytes(v, *min) < 0)) {
      *min = v;
      low = prefix;
    }
    if (prefix >= high && (i == 0 || prefix > high || compare_bytes(v, *max) > 0)) {
      *max = v;
      high = prefix;
    }
  }
}

static int compare_decimal(thrift_binary a, thrift_binary b) {
  int sign_a = a.data[0] >> 7, sign_b = b.data[0] >> 7;
  if (sign_a != sign_b) return sign_b - sign_a;
  return memcmp(a.data, b.data, a.size);
}

static void bounds_decimal(const uint8_t *values, size_t width, size_t n,
                           thrift_binary *min, thrift_binary *max) {
  *min = *max = (thrift_binary){values, width};
  for (size_t i = 1; i < n; i++) {
    thrift_binary v = {values + i * width, width};
    if (compare_decimal(v, *min) < 0) *min = v;
    if (compare_decimal(v, *max) > 0) *max = v;
  }
}

/* ---- pages ------------------------------------------------------------------------------------ */

#define KEEP(out, v_min, v_max)                               \
  do {                                                        \
    memcpy((out)->low, &(v_min), sizeof(v_min));              \
    memcpy((out)->high, &(v_max), sizeof(v_max));             \
    (out)->min = (thrift_binary){(out)->low, sizeof(v_min)};  \
    (out)->max = (thrift_binary){(out)->high, sizeof(v_max)}; \
  } while (0)

#define NUMBERS(bounds, type)         \
  do {                                \
    type low_ = 0, high_ = 0;         \
    bounds(values, n, &low_, &high_); \
    KEEP(out, low_, high_);           \
  } while (0)

#define FLOATS(bounds, type)                     \
  do {                                           \
    type low_ = 0, high_ = 0;                    \
    bounds(values, n, &low_, &high_, &out->nan); \
    out->has = low_ <= high_;                    \
    KEEP(out, low_, high_);                      \
  } while (0)

void stats_of_page(enum parquet_order order, const void *values, const uint32_t *offsets,
                   size_t width, size_t n, stats_page *out) {
  *out = (stats_page){0};
  if (n == 0 || order == ORDER_NONE) return;
  out->has = true;
  switch (order) {
    case ORDER_BOOL: {
      size_t ones = bits_count(values, 0, n);
      uint8_t low = ones == n, high = ones > 0;
      KEEP(out, low, high);
      break;
    }
    case ORDER_INT32:
      NUMBERS(bounds_int32, int32_t);
      break;
    case ORDER_UINT32:
      NUMBERS(bounds_uint32, uint32_t);
      break;
    case ORDER_INT64:
      NUMBERS(bounds_int64, int64_t);
      break;
    case ORDER_UINT64:
      NUMBERS(bounds_uint64, uint64_t);
      break;
    case ORDER_FLOAT:
      FLOATS(bounds_float, float);
      break;
    case ORDER_DOUBLE:
      FLOATS(bounds_double, double);
      break;
    case ORDER_HALF: {
      uint16_t low = 0, high = 0;
      out->has = bounds_half(values, n, &low, &high, &out->nan);
      KEEP(out, low, high);
      break;
    }
    case ORDER_BYTES:
      bounds_bytes(values, offsets, width, n, &out->min, &out->max);
      break;
    case ORDER_DECIMAL:
      bounds_decimal(values, width, n, &out->min, &out->max);
      break;
    default:
      out->has = false;
  }
}

#define COMPARE(type)              \
  do {                             \
    type x, y;                     \
    memcpy(&x, a.data, sizeof(x)); \
    memcpy(&y, b.data, sizeof(y)); \
    return (x > y) - (x < y);      \
  } while (0)

int stats_compare(enum parquet_order order, thrift_binary a, thrift_binary b) {
  switch (order) {
    case ORDER_INT32:
      COMPARE(int32_t);
    case ORDER_UINT32:
      COMPARE(uint32_t);
    case ORDER_INT64:
      COMPARE(int64_t);
    case ORDER_UINT64:
      COMPARE(uint64_t);
    case ORDER_FLOAT:
      COMPARE(float);
    case ORDER_DOUBLE:
      COMPARE(double);
    case ORDER_HALF: {
      uint16_t x, y;
      memcpy(&x, a.data, sizeof(x));
      memcpy(&y, b.data, sizeof(y));
      return half_rank(x) - half_rank(y);
    }
    case ORDER_DECIMAL:
      return compare_decimal(a, b);
    default:
      return compare_bytes(a, b);
  }
}

void stats_add(enum parquet_order order, size_t width, const void *values, size_t n,
               stats_page *page) {
  stats_page part;
  stats_of_page(order, values, NULL, width, n, &part);
  page->nan |= part.nan;
  if (!part.has) return;
  if (!page->has || stats_compare(order, part.min, page->min) < 0) {
    memcpy(page->low, part.low, sizeof(part.low));
    page->min = (thrift_binary){page->low, part.min.size};
  }
  if (!page->has || stats_compare(order, part.max, page->max) > 0) {
    memcpy(page->high, part.high, sizeof(part.high));
    page->max = (thrift_binary){page->high, part.max.size};
  }
  page->has = true;
}

static weir_status replace(base_buf *buf, thrift_binary value, weir_error *err) {
  base_buf_clear(buf);
  return base_buf_append(buf, value.data, value.size, err);
}

weir_status stats_merge(stats_bounds *bounds, enum parquet_order order,
                        const stats_page *page, weir_error *err) {
  bounds->nan |= page->nan;
  if (!page->has) return WEIR_OK;
  thrift_binary min = {bounds->min.data, bounds->min.size};
  thrift_binary max = {bounds->max.data, bounds->max.size};
  if (!bounds->has || stats_compare(order, page->min, min) < 0) {
    BASE_TRY(replace(&bounds->min, page->min, err));
  }
  if (!bounds->has || stats_compare(order, page->max, max) > 0) {
    BASE_TRY(replace(&bounds->max, page->max, err));
  }
  bounds->has = true;
  return WEIR_OK;
}

void stats_clear(stats_bounds *bounds) {
  bounds->has = bounds->nan = false;
  base_buf_clear(&bounds->min);
  base_buf_clear(&bounds->max);
}

void stats_done(stats_bounds *bounds) {
  base_buf_done(&bounds->min);
  base_buf_done(&bounds->max);
}

/* ---- short bounds ----------------------------------------------------------------------------- */

/* Where a text may be cut at or before `size`: not within a character. */
static size_t cut(thrift_binary value, bool utf8, size_t size) {
  if (!utf8) return size;
  while (size > 0 && (value.data[size] & 0xc0u) == 0x80u) size--;
  return size;
}

bool stats_short_min(thrift_binary value, bool utf8, thrift_binary *out, bool *exact) {
  *out = value;
  *exact = value.size <= STATS_MAX_BYTES;
  if (!*exact) out->size = cut(value, utf8, STATS_MAX_BYTES);
  return true;
}

/* The next code point after the one of `size` bytes at `p`, in place; its size, or 0 when there is none. */
static size_t next_character(uint8_t *p, size_t size) {
  uint32_t c = size == 1 ? p[0] : p[0] & (0xffu >> (size + 1));
  for (size_t i = 1; i < size; i++) c = c << 6 | (p[i] & 0x3fu);
  c = c + 1 == 0xd800u ? 0xe000u : c + 1;
  if (c > 0x10ffffu) return 0;
  if (c < 0x80) {
    p[0] = (uint8_t)c;
    return 1;
  }
  size_t n = c < 0x800u ? 2 : c < 0x10000u ? 3 : 4;
  for (size_t i = n - 1; i > 0; i--, c >>= 6) p[i] = (uint8_t)(0x80u | (c & 0x3fu));
  p[0] = (uint8_t)(0xf00u >> n | c);
  return n;
}

/* Raises `text` to the least one above all that begin with it, dropping what cannot be raised. */
static size_t raise(uint8_t *text, size_t size, bool utf8) {
  while (size > 0) {
    if (!utf8) {
      if (text[size - 1] != 0xff) {
        text[size - 1]++;
        return size;
      }
      size--;
      continue;
    }
    size_t start = size - 1;
    while (start > 0 && (text[start] & 0xc0u) == 0x80u) start--;
    size_t n = next_character(text + start, size - start);
    if (n != 0) return start + n;
    size = start;
  }
  return 0;
}

bool stats_short_max(thrift_binary value, bool utf8, uint8_t room[STATS_MAX_BYTES + 4],
                     thrift_binary *out, bool *exact) {
  *out = value;
  *exact = true;
  if (value.size <= STATS_MAX_BYTES) return true;
  utf8 = utf8 && base_utf8_valid(value.data, value.size);
  size_t size = cut(value, utf8, STATS_MAX_BYTES);
  memcpy(room, value.data, size);
  size = raise(room, size, utf8);
  if (size == 0) return value.size <= STATS_WHOLE_BYTES;
  *out = (thrift_binary){room, size};
  *exact = false;
  return true;
}
