/* SPDX-License-Identifier: Apache-2.0 */
/* Hashes of values for tables in memory: multiply 64 x 64 -> 128 and fold, as wyhash does. */
#ifndef WEIR_PARQUET_HASH_H
#define WEIR_PARQUET_HASH_H

#include "bits.h"

#define MIX_A UINT64_C(0x9e3779b97f4a7c15)
#define MIX_B UINT64_C(0xd1b54a32d192ed03)

PARQUET_INLINE uint64_t mix(uint64_t a, uint64_t b) {
  unsigned __int128 product = (unsigned __int128)a * b;
  return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Multiplications of 64 bits, which vector units have; folding, since neighbours among floats differ in
 * patterns that a product alone keeps. */
PARQUET_INLINE uint64_t hash_fixed(uint64_t value) {
  value ^= value >> 32;
  value *= MIX_A;
  value ^= value >> 29;
  return value * MIX_B;
}

static inline uint64_t hash_long(const uint8_t *p, size_t size) {
  uint64_t h = size * MIX_A;
  size_t left = size;
  for (; left > 16; left -= 16, p += 16) {
    h = mix(parquet_load64(p) ^ MIX_A ^ h, parquet_load64(p + 8) ^ MIX_B);
  }
  return mix(parquet_load64(p + left - 16) ^ MIX_A ^ h,
             parquet_load64(p + left - 8) ^ MIX_B);
}

PARQUET_INLINE uint64_t load32(const uint8_t *p) {
  uint32_t v;
  memcpy(&v, p, sizeof(v));
  return v;
}

PARQUET_INLINE uint64_t hash_bytes(const uint8_t *p, size_t size) {
  uint64_t a, b;
  if (size >= 8) {
    if (size > 16) return hash_long(p, size);
    a = parquet_load64(p);
    b = parquet_load64(p + size - 8);
  } else if (size >= 4) {
    a = load32(p);
    b = load32(p + size - 4);
  } else if (size > 0) {
    a = (uint64_t)p[0] << 16 | (uint64_t)p[size / 2] << 8 | p[size - 1];
    b = 0;
  } else {
    a = b = 0;
  }
  return mix(a ^ MIX_A, b ^ MIX_B ^ size * MIX_A);
}

#endif
