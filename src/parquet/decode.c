/* SPDX-License-Identifier: Apache-2.0 */
#include "decode.h"

/* ---- bits -------------------------------------------------------------------------------------- */

PARQUET_INLINE uint32_t unpack_one(const uint8_t *data, uint64_t pos, unsigned width) {
  uint64_t bit = pos * width;
  uint64_t v = parquet_load64(data + bit / 8) >> (bit % 8);
  return (uint32_t)(v & ((UINT64_C(1) << width) - 1));
}

/* `groups` times 8 values, beginning with a byte. */
PARQUET_INLINE void unpack_groups(const uint8_t *data, size_t groups, unsigned width,
                                  uint32_t *out) {
  for (size_t g = 0; g < groups; g++, data += width, out += 8) {
    for (unsigned i = 0; i < 8; i++) {
      uint64_t v = parquet_load64(data + i * width / 8) >> (i * width % 8);
      out[i] = (uint32_t)(v & ((UINT64_C(1) << width) - 1));
    }
  }
}

#define WIDTH(w)                         \
  case w:                                \
    unpack_groups(data, groups, w, out); \
    break;

PARQUET_CLONES
static void unpack_aligned(const uint8_t *data, size_t groups, unsigned width,
                           uint32_t *out) {
  switch (width) {
    WIDTH(1)
    WIDTH(2)
    WIDTH(3)
    WIDTH(4)
    WIDTH(5)
    WIDTH(6)
    WIDTH(7)
    WIDTH(8)
    WIDTH(9)
    WIDTH(10)
    WIDTH(11)
    WIDTH(12)
    WIDTH(13)
    WIDTH(14)
    WIDTH(15)
    WIDTH(16)
    WIDTH(17)
    WIDTH(18)
    WIDTH(19)
    WIDTH(20)
    WIDTH(21)
    WIDTH(22)
    WIDTH(23)
    WIDTH(24)
    WIDTH(25)
    WIDTH(26)
    WIDTH(27)
    WIDTH(28)
    WIDTH(29)
    WIDTH(30)
    WIDTH(31)
    WIDTH(32)
    default:
      memset(out, 0, groups * 8 * sizeof(*out));
  }
}

void decode_unpack32(const uint8_t *data, uint64_t pos, unsigned width, uint32_t *out,
                     size_t n) {
  if (width == 0) {
    memset(out, 0, n * sizeof(*out));
    return;
  }
  size_t i = 0;
  for (; i < n && (pos + i) % 8 != 0; i++) out[i] = unpack_one(data, pos + i, width);
  size_t groups = (n - i) / 8;
  unpack_aligned(data + (pos + i) / 8 * width, groups, width, out + i);
  for (i += groups * 8; i < n; i++) out[i] = unpack_one(data, pos + i, width);
}

/* Of up to 64 bits. */
static uint64_t unpack_wide(const uint8_t *data, uint64_t pos, unsigned width) {
  uint64_t bit = pos * width;
  unsigned shift = bit % 8;
  const uint8_t *p = data + bit / 8;
  uint64_t v = parquet_load64(p) >> shift;
  if (shift + width > 64) v |= (uint64_t)p[8] << (64 - shift);
  return width == 64 ? v : v & ((UINT64_C(1) << width) - 1);
}

/* ULEB128; NULL: cut or longer than 64 bits. */
static const uint8_t *load_uleb(const uint8_t *at, const uint8_t *end, uint64_t *out) {
  uint64_t v = 0;
  for (unsigned shift = 0; shift < 64 && at < end; shift += 7) {
    uint8_t byte = *at++;
    if (shift == 63 && byte > 1) return NULL;
    v |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80) {
      *out = v;
      return at;
    }
  }
  return NULL;
}

/* ---- RLE / bit-packing hybrid ------------------------------------------------------------------ */

void decode_hybrid_init(decode_hybrid *in, const uint8_t *data, size_t size,
                        unsigned width) {
  *in = (decode_hybrid){.at = data, .end = data + size, .width = width};
}

/* The next run, of at least one value; false: there is none. Some writers leave out the padding of the
 * last group, so of a packed run there are as many values as bytes are there for. */
static bool next_run(decode_hybrid *in) {
  uint64_t head = 0;
  do {
    const uint8_t *at = load_uleb(in->at, in->end, &head);
    if (at == NULL) return false;
    size_t bytes = (in->width + 7) / 8, have = (size_t)(in->end - at);
    in->packed = head & 1;
    in->at = at;
    if (!in->packed) {
      if (bytes > have) return false;
      in->value = 0;
      memcpy(&in->value, at, bytes);
      if (in->width < 32) in->value &= (UINT32_C(1) << in->width) - 1;
      in->left = head >> 1;
      in->at += bytes;
      continue;
    }
    uint64_t groups = head >> 1;
    if (in->width == 0) {
      in->left = groups > UINT64_MAX / 16 ? 0 : groups * 8;
    } else if (groups <= have / in->width) {
      in->left = groups * 8;
      in->at += groups * in->width;
    } else {
      in->left = have * 8 / in->width;
      in->at = in->end;
    }
    in->packed_at = at;
    in->pos = 0;
  } while (in->left == 0);
  return true;
}

static size_t run_part(decode_hybrid *in, size_t n) {
  if (in->left == 0 && !next_run(in)) return 0;
  return in->left < n ? (size_t)in->left : n;
}

static void run_pass(decode_hybrid *in, size_t n) {
  in->left -= n;
  in->pos += n;
}

bool decode_hybrid_u32(decode_hybrid *in, uint32_t *out, size_t n) {
  while (n > 0) {
    size_t part = run_part(in, n);
    if (part == 0) return false;
    if (in->packed) {
      decode_unpack32(in->packed_at, in->pos, in->width, out, part);
    } else {
      for (size_t i = 0; i < part; i++) out[i] = in->value;
    }
    run_pass(in, part);
    out += part;
    n -= part;
  }
  return true;
}

/* 8 values of up to 8 bits, spread to a byte each. */
PARQUET_INLINE uint64_t spread(uint64_t v, unsigned width) {
  uint64_t mask4 = (UINT64_C(1) << 4 * width) - 1;
  v = (v & mask4) | (v >> 4 * width & mask4) << 32;
  uint64_t mask2 = ((UINT64_C(1) << 2 * width) - 1) * UINT64_C(0x0000000100000001);
  v = (v & mask2) | (v >> 2 * width & mask2) << 16;
  uint64_t mask1 = ((UINT64_C(1) << width) - 1) * UINT64_C(0x0001000100010001);
  return (v & mask1) | (v >> width & mask1) << 8;
}

static void unpack8(const uint8_t *data, uint64_t pos, unsigned width, uint8_t *out,
                    size_t n) {
  size_t i = 0;
  for (; i < n && (pos + i) % 8 != 0; i++)
    out[i] = (uint8_t)unpack_one(data, pos + i, width);
  const uint8_t *at = data + (pos + i) / 8 * width;
  uint64_t all = width == 8 ? UINT64_MAX : (UINT64_C(1) << 8 * width) - 1;
  for (; i < n; i += 8, at += width)
    parquet_store64(out + i, spread(parquet_load64(at) & all, width));
}

bool decode_hybrid_u8(decode_hybrid *in, uint8_t *out, size_t n) {
  while (n > 0) {
    size_t part = run_part(in, n);
    if (part == 0) return false;
    if (in->packed && in->width > 0) {
      unpack8(in->packed_at, in->pos, in->width, out, part);
    } else {
      memset(out, in->packed ? 0 : (int)in->value, part);
    }
    run_pass(in, part);
    out += part;
    n -= part;
  }
  return true;
}

bool decode_hybrid_bits(decode_hybrid *in, uint8_t *out, size_t out_bit, size_t n) {
  static const uint8_t zeros[64] = {0};
  while (n > 0) {
    size_t part = run_part(in, n);
    if (part == 0) return false;
    if (in->packed) {
      bits_copy(out, out_bit, in->packed_at, (size_t)in->pos, part);
    } else if (in->value != 0) {
      bits_set(out, out_bit, part);
    } else {
      if (part > 512) part = 512;
      bits_copy(out, out_bit, zeros, 0, part);
    }
    run_pass(in, part);
    out_bit += part;
    n -= part;
  }
  return true;
}

/* ---- delta ------------------------------------------------------------------------------------- */

static uint64_t unzigzag(uint64_t v) {
  return v >> 1 ^ (0 - (v & 1));
}

bool decode_delta_init(decode_delta *in, const uint8_t *data, size_t size) {
  *in = (decode_delta){.at = data, .end = data + size};
  uint64_t block = 0;
  in->at = load_uleb(in->at, in->end, &block);
  if (in->at != NULL) in->at = load_uleb(in->at, in->end, &in->minis);
  if (in->at != NULL) in->at = load_uleb(in->at, in->end, &in->total);
  if (in->at != NULL) in->at = load_uleb(in->at, in->end, &in->last);
  if (in->at == NULL || block == 0 || block > UINT32_MAX || in->minis == 0 ||
      in->total > INT64_MAX || block % in->minis != 0)
    return false;
  in->mini = block / in->minis;
  in->last = unzigzag(in->last);
  in->left = in->total;
  return in->mini % 8 == 0;
}

/* The block's least difference and its widths. */
static bool next_block(decode_delta *in) {
  in->at = load_uleb(in->at, in->end, &in->min);
  if (in->at == NULL || in->minis > (uint64_t)(in->end - in->at)) return false;
  in->min = unzigzag(in->min);
  in->widths = in->at;
  in->minis_left = in->minis;
  in->at += in->minis;
  return true;
}

/* Of the last miniblock the values that are not needed may be left out. */
static bool next_mini(decode_delta *in) {
  if (in->minis_left == 0 && !next_block(in)) return false;
  in->width = *in->widths++;
  in->minis_left--;
  if (in->width > 64) return false;
  uint64_t have = (uint64_t)(in->end - in->at), size = in->mini / 8 * in->width;
  if (size > have) {
    uint64_t need = in->left < in->mini ? in->left : in->mini;
    if ((need * in->width + 7) / 8 > have) return false;
    size = have;
  }
  in->packed_at = in->at;
  in->at += size;
  in->mini_left = in->mini;
  in->pos = 0;
  return true;
}

const uint8_t *decode_delta_end(const decode_delta *in) {
  decode_delta ahead = *in;
  if (ahead.left > 0 && !ahead.started) ahead.left--;
  while (ahead.left > ahead.mini_left) {
    ahead.left -= ahead.mini_left;
    if (!next_mini(&ahead)) return NULL;
  }
  return ahead.at;
}

/* Up to 64 values at a time, of one miniblock. */
enum { DELTA_PART = 64 };

static void unpack_deltas(decode_delta *in, size_t n, uint64_t *out) {
  if (in->width <= 32) {
    uint32_t narrow[DELTA_PART];
    decode_unpack32(in->packed_at, in->pos, in->width, narrow, n);
    for (size_t i = 0; i < n; i++) out[i] = narrow[i];
    return;
  }
  for (size_t i = 0; i < n; i++)
    out[i] = unpack_wide(in->packed_at, in->pos + i, in->width);
}

static size_t delta_part(decode_delta *in, size_t n) {
  if (in->mini_left == 0 && !next_mini(in)) return 0;
  size_t part = n < DELTA_PART ? n : DELTA_PART;
  return in->mini_left < part ? (size_t)in->mini_left : part;
}

static void delta_pass(decode_delta *in, size_t n) {
  in->mini_left -= n;
  in->pos += n;
  in->left -= n;
}

bool decode_delta_u64(decode_delta *in, uint64_t *out, size_t n) {
  if (n > in->left) return false;
  if (n > 0 && !in->started) {
    in->started = true;
    in->left--;
    n--;
    *out++ = in->last;
  }
  while (n > 0) {
    size_t part = delta_part(in, n);
    if (part == 0) return false;
    unpack_deltas(in, part, out);
    uint64_t last = in->last, min = in->min;
    for (size_t i = 0; i < part; i++) out[i] = last += out[i] + min;
    in->last = last;
    delta_pass(in, part);
    out += part;
    n -= part;
  }
  return true;
}

bool decode_delta_u32(decode_delta *in, uint32_t *out, size_t n) {
  if (n > in->left) return false;
  if (n > 0 && !in->started) {
    in->started = true;
    in->left--;
    n--;
    *out++ = (uint32_t)in->last;
  }
  while (n > 0) {
    size_t part = delta_part(in, n);
    if (part == 0) return false;
    if (in->width <= 32) {
      decode_unpack32(in->packed_at, in->pos, in->width, out, part);
    } else {
      for (size_t i = 0; i < part; i++)
        out[i] = (uint32_t)unpack_wide(in->packed_at, in->pos + i, in->width);
    }
    uint32_t last = (uint32_t)in->last, min = (uint32_t)in->min;
    for (size_t i = 0; i < part; i++) out[i] = last += out[i] + min;
    in->last = last;
    delta_pass(in, part);
    out += part;
    n -= part;
  }
  return true;
}

/* ---- byte stream split ------------------------------------------------------------------------- */

#define JOIN(name, type)                                                            \
  PARQUET_CLONES                                                                    \
  static void name(const uint8_t *data, size_t all, size_t n, type *restrict out) { \
    memset(out, 0, n * sizeof(type));                                               \
    for (size_t from = 0; from < n; from += 1024) {                                 \
      size_t m = n - from < 1024 ? n - from : 1024;                                 \
      for (unsigned plane = 0; plane < sizeof(type); plane++) {                     \
        const uint8_t *restrict p = data + plane * all + from;                      \
        type *restrict to = out + from;                                             \
        for (size_t i = 0; i < m; i++) to[i] |= (type)((type)p[i] << (8 * plane));  \
      }                                                                             \
    }                                                                               \
  }

JOIN(join4, uint32_t)
JOIN(join8, uint64_t)

void decode_split(const uint8_t *data, size_t all, size_t from, size_t n, size_t width,
                  uint8_t *out) {
  data += from;
  if (width == 4) {
    join4(data, all, n, (uint32_t *)(void *)out);
  } else if (width == 8) {
    join8(data, all, n, (uint64_t *)(void *)out);
  } else {
    for (size_t plane = 0; plane < width; plane++) {
      for (size_t i = 0; i < n; i++) out[i * width + plane] = data[plane * all + i];
    }
  }
}
