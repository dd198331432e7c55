/* SPDX-License-Identifier: Apache-2.0 */
#include "encode.h"

/* Levels go in groups of 8; this many equal groups or more make a run. */
enum { GROUP = 8, RUN_GROUPS = 6 };

size_t encode_levels_bound(size_t n) {
  /* At worst a literal group and a run of RUN_GROUPS by turns, each with a length of up to 10 bytes. */
  return n + (n / (GROUP * RUN_GROUPS) + 2) * 24 + 2 * GROUP;
}

/* The low `width` bits of 8 bytes, one behind the other. */
PARQUET_INLINE uint64_t pack_group(uint64_t v, unsigned width) {
  v = (v & UINT64_C(0x00ff00ff00ff00ff)) | (v >> 8 & UINT64_C(0x00ff00ff00ff00ff))
                                               << width;
  v = (v & UINT64_C(0x0000ffff0000ffff)) | (v >> 16 & UINT64_C(0x0000ffff0000ffff))
                                               << (2 * width);
  return (v & UINT64_C(0x00000000ffffffff)) | v >> 32 << (4 * width);
}

static uint8_t *put_groups(const uint8_t *levels, size_t groups, unsigned width,
                           uint8_t *out) {
  for (size_t g = 0; g < groups; g++, out += width) {
    parquet_store64(out, pack_group(parquet_load64(levels + GROUP * g), width));
  }
  return out;
}

static uint8_t *put_literals(const uint8_t *levels, size_t groups, unsigned width,
                             uint8_t *out) {
  if (groups == 0) return out;
  return put_groups(levels, groups, width, parquet_store_uleb(out, groups << 1 | 1));
}

/* Levels from the first on that equal it. */
static size_t run_length(const uint8_t *levels, size_t n) {
  uint64_t all = levels[0] * UINT64_C(0x0101010101010101);
  size_t i = 0;
  while (i + GROUP <= n && parquet_load64(levels + i) == all) i += GROUP;
  while (i < n && levels[i] == levels[0]) i++;
  return i;
}

uint8_t *encode_levels(const uint8_t *levels, size_t n, unsigned width, uint8_t *out) {
  size_t literal = 0, i = 0;
  while (i < n) {
    size_t run = run_length(levels + i, n - i);
    if (run < GROUP * RUN_GROUPS && (run < n || i > 0)) {
      i += run < GROUP ? GROUP : run & ~(size_t)(GROUP - 1);
      continue;
    }
    size_t whole = i + run == n ? run : run & ~(size_t)(GROUP - 1);
    out = put_literals(levels + literal, (i - literal) / GROUP, width, out);
    out = parquet_store_uleb(out, whole << 1);
    *out++ = levels[i];
    i += whole;
    literal = i;
  }
  if (literal >= n) return out;
  /* The last group is filled up with zeros. */
  size_t whole = (n - literal) / GROUP, rest = (n - literal) % GROUP;
  if (rest == 0) return put_literals(levels + literal, whole, width, out);
  out = parquet_store_uleb(out, (whole + 1) << 1 | 1);
  out = put_groups(levels + literal, whole, width, out);
  uint8_t last[GROUP] = {0};
  memcpy(last, levels + literal + GROUP * whole, rest);
  return put_groups(last, 1, width, out);
}
