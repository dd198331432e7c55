/* SPDX-License-Identifier: Apache-2.0 */
/* Scratch with slack, and a rope of fixed blocks for the encoded pages of a row group. */
#ifndef WEIR_PARQUET_BUFFER_H
#define WEIR_PARQUET_BUFFER_H

#include <string.h>
#include <weir/parquet.h>

#include "base/base.h"

#if defined(__GNUC__)
#define PARQUET_LIKELY(x) __builtin_expect(!!(x), 1)
#define PARQUET_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define PARQUET_INLINE static inline __attribute__((always_inline))
#define PARQUET_UNUSED __attribute__((unused))
#else
#define PARQUET_LIKELY(x) (x)
#define PARQUET_UNLIKELY(x) (x)
#define PARQUET_INLINE static inline
#define PARQUET_UNUSED
#endif

/* A function compiled for several instruction sets, chosen when the library is loaded. Not under
 * sanitizers: their runtimes are not up yet when the choice is made. */
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12 && defined(__x86_64__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define PARQUET_CLONES \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define PARQUET_CLONES
#endif

/* Room that kernels may read or write past the end of a scratch buffer. */
#define PARQUET_SLACK 64u

/* Makes room for `size` bytes in all, and PARQUET_SLACK beyond; keeps the content. */
weir_status parquet_reserve(base_buf *buf, size_t size, weir_error *err);

/* Blocks that one row group has finished with are kept for the next, so that a long file does not
 * ask the system for the same memory again and again. A rope begins with a small one; a pool that has
 * handed out many large ones carves more from arenas, which the system can map as huge pages. */
typedef struct parquet_block {
  struct parquet_block *next;
  size_t size, room;
  bool carved; /* part of an arena */
  uint8_t data[];
} parquet_block;

typedef struct parquet_arena {
  struct parquet_arena *next;
} parquet_arena;

typedef struct parquet_pool {
  parquet_block *small, *large; /* free ones */
  parquet_arena *arenas;
  size_t large_made;
} parquet_pool;

typedef struct parquet_rope {
  parquet_block *first, *last;
  uint64_t size;
} parquet_rope;

/* All blocks must have been given back. */
void parquet_pool_done(parquet_pool *pool);
weir_status parquet_rope_append(parquet_rope *rope, parquet_pool *pool, const void *data,
                                size_t size, weir_error *err);
/* Gives the blocks back to the pool; the rope is empty afterwards. */
void parquet_rope_clear(parquet_rope *rope, parquet_pool *pool);
weir_status parquet_rope_write(const parquet_rope *rope, weir_parquet_write write,
                               void *ctx, weir_error *err);

PARQUET_INLINE void parquet_store32(uint8_t *out, uint32_t v) {
  out[0] = (uint8_t)v;
  out[1] = (uint8_t)(v >> 8);
  out[2] = (uint8_t)(v >> 16);
  out[3] = (uint8_t)(v >> 24);
}

/* ULEB128, at most 10 bytes; returns the end. */
PARQUET_INLINE uint8_t *parquet_store_uleb(uint8_t *out, uint64_t v) {
  while (v >= 0x80) {
    *out++ = (uint8_t)(v | 0x80);
    v >>= 7;
  }
  *out++ = (uint8_t)v;
  return out;
}

PARQUET_INLINE uint64_t parquet_zigzag(int64_t v) {
  return ((uint64_t)v << 1) ^ (uint64_t)(v >> 63);
}

/* CRC-32 of ISO 3309 / ITU-T V.42, as gzip has it (parquet.thrift, PageHeader.crc). */
uint32_t parquet_crc32(uint32_t crc, const void *data, size_t size);

#endif
