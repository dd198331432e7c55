/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of one thing's parts, freed together; texts and lists of them, which are always borrowed: from an
 * arena, from the entry being read, or from a column of a checkpoint.
 */
#ifndef CONNECTORS_DELTA_ARENA_H
#define CONNECTORS_DELTA_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <weir/error.h>

#define DELTA_TRY(call)                              \
  do {                                               \
    weir_status delta_try_status_ = (call);          \
    if (delta_try_status_) return delta_try_status_; \
  } while (0)

/* Sets `status` and jumps to the enclosing function's `out` label when the call failed. */
#define DELTA_GOTO(status, call) \
  do {                           \
    (status) = (call);           \
    if (status) goto out;        \
  } while (0)

/* Not NUL-terminated unless an arena made it. p == NULL: absent. */
typedef struct delta_text {
  const char *p;
  size_t n;
} delta_text;

typedef struct delta_texts {
  const delta_text *v;
  size_t n;
  bool present;
} delta_texts;

typedef struct delta_pair {
  delta_text key, value;
} delta_pair;

typedef struct delta_pairs {
  const delta_pair *v;
  size_t n;
  bool present;
} delta_pairs;

bool delta_text_is(delta_text text, const char *other);
bool delta_text_same(delta_text a, delta_text b);
bool delta_texts_have(const delta_texts *texts, const char *one);
/* Absent when there is no such key. */
delta_text delta_pairs_get(const delta_pairs *pairs, const char *key);

/* Zeroed: empty. */
typedef struct delta_arena {
  struct delta_arena_block *blocks;
} delta_arena;

/* Aligned for anything; NULL when there is no memory. */
void *delta_arena_take(delta_arena *arena, size_t size);
/* Forgets all that was taken, and keeps a block for what comes. */
void delta_arena_reset(delta_arena *arena);
void delta_arena_done(delta_arena *arena);

/* Copies, NUL-terminated; false when there is no memory. */
bool delta_text_copy(delta_arena *arena, delta_text from, delta_text *out);
bool delta_texts_copy(delta_arena *arena, const delta_texts *from, delta_texts *out);
bool delta_pairs_copy(delta_arena *arena, const delta_pairs *from, delta_pairs *out);

weir_status delta_no_memory(weir_error *err);

#endif
