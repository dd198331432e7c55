/* SPDX-License-Identifier: Apache-2.0 */
#include "buffer.h"

#include <stdlib.h>

weir_status parquet_reserve(base_buf *buf, size_t size, weir_error *err) {
  if (size + PARQUET_SLACK <= buf->capacity) return WEIR_OK;
  return base_buf_reserve(buf, size - buf->size + PARQUET_SLACK, err);
}

static void free_blocks(parquet_block *block) {
  while (block != NULL) {
    parquet_block *next = block->next;
    free(block);
    block = next;
  }
}

void parquet_pool_done(parquet_pool *pool) {
  free_blocks(pool->free);
  pool->free = NULL;
}

static parquet_block *pool_take(parquet_pool *pool) {
  parquet_block *block = pool->free;
  if (block != NULL) {
    pool->free = block->next;
  } else {
    block = malloc(sizeof(parquet_block) + PARQUET_BLOCK_BYTES);
    if (block == NULL) return NULL;
  }
  block->next = NULL;
  block->size = 0;
  return block;
}

weir_status parquet_rope_append(parquet_rope *rope, parquet_pool *pool, const void *data,
                                size_t size, weir_error *err) {
  const uint8_t *from = data;
  while (size > 0) {
    parquet_block *last = rope->last;
    if (last == NULL || last->size == PARQUET_BLOCK_BYTES) {
      parquet_block *block = pool_take(pool);
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
    size_t room = PARQUET_BLOCK_BYTES - last->size;
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
  if (rope->last != NULL) {
    rope->last->next = pool->free;
    pool->free = rope->first;
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
