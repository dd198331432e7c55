/* SPDX-License-Identifier: Apache-2.0 */
#include "buffer.h"

#include <stdlib.h>
#include <sys/mman.h>

weir_status parquet_reserve(base_buf *buf, size_t size, weir_error *err) {
  if (size + PARQUET_SLACK <= buf->capacity) return WEIR_OK;
  return base_buf_reserve(buf, size - buf->size + PARQUET_SLACK, err);
}

/* ---- blocks ----------------------------------------------------------------------------------- */

enum {
  SMALL_BYTES = 32 << 10,
  LARGE_BYTES = 256 << 10,
  ARENA_BYTES = 2 << 20, /* a huge page of x86-64 */
  LARGE_SINGLES = 8,     /* large blocks before the first arena */
  BLOCK_ALIGN = 64
};

static void free_blocks(parquet_block *block) {
  while (block != NULL) {
    parquet_block *next = block->next;
    if (!block->carved) free(block);
    block = next;
  }
}

void parquet_pool_done(parquet_pool *pool) {
  free_blocks(pool->small);
  free_blocks(pool->large);
  while (pool->arenas != NULL) {
    parquet_arena *next = pool->arenas->next;
    free(pool->arenas);
    pool->arenas = next;
  }
  *pool = (parquet_pool){0};
}

static parquet_block *new_block(size_t bytes) {
  parquet_block *block = malloc(bytes);
  if (block != NULL) *block = (parquet_block){.room = bytes - sizeof(*block)};
  return block;
}

/* Puts the blocks of a new arena among the free ones. */
static bool add_arena(parquet_pool *pool) {
  parquet_arena *arena = aligned_alloc(ARENA_BYTES, ARENA_BYTES);
  if (arena == NULL) return false;
#ifdef MADV_HUGEPAGE
  (void)madvise(arena, ARENA_BYTES, MADV_HUGEPAGE);
#endif
  arena->next = pool->arenas;
  pool->arenas = arena;
  enum { BLOCKS = ARENA_BYTES / LARGE_BYTES };
  size_t each = (ARENA_BYTES - BLOCK_ALIGN) / BLOCKS / BLOCK_ALIGN * BLOCK_ALIGN;
  for (size_t i = BLOCKS; i-- > 0;) {
    parquet_block *block =
        (parquet_block *)(void *)((uint8_t *)arena + BLOCK_ALIGN + i * each);
    *block = (parquet_block){
        .next = pool->large, .room = each - sizeof(*block), .carved = true};
    pool->large = block;
  }
  return true;
}

static parquet_block *pool_take(parquet_pool *pool, bool large) {
  parquet_block **first = large ? &pool->large : &pool->small;
  if (*first == NULL && large && pool->large_made++ >= LARGE_SINGLES) add_arena(pool);
  parquet_block *block = *first;
  if (block == NULL) return new_block(large ? LARGE_BYTES : SMALL_BYTES);
  *first = block->next;
  block->next = NULL;
  block->size = 0;
  return block;
}

/* ---- ropes ------------------------------------------------------------------------------------ */

weir_status parquet_rope_append(parquet_rope *rope, parquet_pool *pool, const void *data,
                                size_t size, weir_error *err) {
  const uint8_t *from = data;
  while (size > 0) {
    parquet_block *last = rope->last;
    if (last == NULL || last->size == last->room) {
      parquet_block *block = pool_take(pool, last != NULL);
      if (block == NULL) {
        return weir_error_set(
            err, WEIR_E_NOMEM, 0,
            "Parquet writer: no memory for a page; lower row_group_bytes");
      }
      if (last == NULL) {
        rope->first = block;
      } else {
        last->next = block;
      }
      rope->last = last = block;
    }
    size_t room = last->room - last->size;
    size_t take = size < room ? size : room;
    memcpy(last->data + last->size, from, take);
    last->size += take;
    rope->size += take;
    from += take;
    size -= take;
  }
  return WEIR_OK;
}

void parquet_rope_clear(parquet_rope *rope, parquet_pool *pool) {
  for (parquet_block *block = rope->first, *next; block != NULL; block = next) {
    parquet_block **first = block == rope->first ? &pool->small : &pool->large;
    next = block->next;
    block->next = *first;
    *first = block;
  }
  *rope = (parquet_rope){0};
}

weir_status parquet_rope_write(const parquet_rope *rope, weir_parquet_write write,
                               void *ctx, weir_error *err) {
  for (const parquet_block *block = rope->first; block != NULL; block = block->next) {
    weir_status status = write(ctx, block->data, block->size, err);
    if (status != WEIR_OK) return status;
  }
  return WEIR_OK;
}
