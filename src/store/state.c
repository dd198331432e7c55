/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "store/store.h"

typedef struct store_block {
  struct store_block *next;
  max_align_t data[];
} store_block;

struct store_state {
  weir_store_state pub; /* first: freed through it */
  store_block *blocks;
};

store_state *store_state_new(weir_error *err) {
  store_state *state = base_calloc(1, sizeof(*state), err);
  if (state) state->pub.private_data = state;
  return state;
}

weir_store_state *store_state_public(store_state *state) {
  return &state->pub;
}

void *store_state_alloc(store_state *state, size_t n, size_t size, weir_error *err) {
  size_t bytes = 0;
  if (!base_mul_size(n, size, &bytes) ||
      !base_add_size(bytes, sizeof(store_block), &bytes)) {
    weir_error_set(err, WEIR_E_NOMEM, 0, "checkpoint store: too large to load");
    return NULL;
  }
  store_block *block = base_calloc(1, bytes, err);
  if (!block) return NULL;
  block->next = state->blocks;
  state->blocks = block;
  return block->data;
}

weir_status store_state_grow(store_state *state, void **array, size_t n, size_t size,
                             weir_error *err) {
  if (n & (n - 1)) return WEIR_OK; /* the room is always a power of two */
  void *bigger = store_state_alloc(state, n ? 2 * n : 1, size, err);
  if (!bigger) return WEIR_E_NOMEM;
  if (n) memcpy(bigger, *array, n * size);
  *array = bigger;
  return WEIR_OK;
}

char *store_state_text(store_state *state, const void *text, size_t size,
                       weir_error *err) {
  char *copy = store_state_alloc(state, size + 1, 1, err);
  if (copy && size) memcpy(copy, text, size);
  return copy;
}

void weir_store_state_free(weir_store_state *pub) {
  if (!pub) return;
  store_state *state = pub->private_data;
  while (state->blocks) {
    store_block *next = state->blocks->next;
    free(state->blocks);
    state->blocks = next;
  }
  free(state);
}
