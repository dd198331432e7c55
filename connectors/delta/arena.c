/* SPDX-License-Identifier: Apache-2.0 */
#include "arena.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK = 16 << 10, ALIGN = 16 };

struct delta_arena_block {
  struct delta_arena_block *next;
  size_t used, size;
  _Alignas(ALIGN) char data[];
};

weir_status delta_no_memory(weir_error *err) {
  return weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
}

bool delta_text_is(delta_text text, const char *other) {
  return text.p && text.n == strlen(other) && memcmp(text.p, other, text.n) == 0;
}

bool delta_text_same(delta_text a, delta_text b) {
  if (!a.p || !b.p) return !a.p && !b.p;
  return a.n == b.n && memcmp(a.p, b.p, a.n) == 0;
}

bool delta_texts_have(const delta_texts *texts, const char *one) {
  for (size_t i = 0; i < texts->n; i++) {
    if (delta_text_is(texts->v[i], one)) return true;
  }
  return false;
}

delta_text delta_pairs_get(const delta_pairs *pairs, const char *key) {
  for (size_t i = 0; i < pairs->n; i++) {
    if (delta_text_is(pairs->v[i].key, key)) return pairs->v[i].value;
  }
  return (delta_text){0};
}

void *delta_arena_take(delta_arena *arena, size_t size) {
  struct delta_arena_block *block = arena->blocks;
  if (size > SIZE_MAX - 2 * ALIGN) return NULL;
  size = (size + ALIGN - 1) / ALIGN * ALIGN;
  if (!block || block->size - block->used < size) {
    size_t room = size > BLOCK ? size : BLOCK;
    if (room > SIZE_MAX - sizeof(*block)) return NULL;
    struct delta_arena_block *fresh = malloc(sizeof(*fresh) + room);
    if (!fresh) return NULL;
    fresh->next = block;
    fresh->used = 0;
    fresh->size = room;
    arena->blocks = block = fresh;
  }
  void *at = block->data + block->used;
  block->used += size;
  return at;
}

void delta_arena_reset(delta_arena *arena) {
  struct delta_arena_block *kept = NULL;
  while (arena->blocks) {
    struct delta_arena_block *block = arena->blocks;
    arena->blocks = block->next;
    if (!kept && block->size == BLOCK)
      kept = block;
    else
      free(block);
  }
  if (kept) {
    kept->next = NULL;
    kept->used = 0;
  }
  arena->blocks = kept;
}

void delta_arena_done(delta_arena *arena) {
  while (arena->blocks) {
    struct delta_arena_block *block = arena->blocks;
    arena->blocks = block->next;
    free(block);
  }
}

bool delta_text_copy(delta_arena *arena, delta_text from, delta_text *out) {
  *out = (delta_text){0};
  if (!from.p) return true;
  char *p = delta_arena_take(arena, from.n + 1);
  if (!p) return false;
  memcpy(p, from.p, from.n);
  p[from.n] = 0;
  *out = (delta_text){p, from.n};
  return true;
}

bool delta_texts_copy(delta_arena *arena, const delta_texts *from, delta_texts *out) {
  delta_text *v = from->n ? delta_arena_take(arena, from->n * sizeof(*v)) : NULL;
  if (from->n && !v) return false;
  for (size_t i = 0; i < from->n; i++) {
    if (!delta_text_copy(arena, from->v[i], &v[i])) return false;
  }
  *out = (delta_texts){v, from->n, from->present};
  return true;
}

bool delta_pairs_copy(delta_arena *arena, const delta_pairs *from, delta_pairs *out) {
  delta_pair *v = from->n ? delta_arena_take(arena, from->n * sizeof(*v)) : NULL;
  if (from->n && !v) return false;
  for (size_t i = 0; i < from->n; i++) {
    if (!delta_text_copy(arena, from->v[i].key, &v[i].key) ||
        !delta_text_copy(arena, from->v[i].value, &v[i].value))
      return false;
  }
  *out = (delta_pairs){v, from->n, from->present};
  return true;
}
