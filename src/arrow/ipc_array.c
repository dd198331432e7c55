/* SPDX-License-Identifier: Apache-2.0 */
/* Counted memory of the IPC reader: blobs that arrays point into, and decoded arrays. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "arrow/ipc.h"

const uint64_t ipc_zeros[8];

ipc_blob *ipc_blob_new(weir_error *err) {
  ipc_blob *blob = base_calloc(1, sizeof *blob, err);
  if (blob != NULL) atomic_init(&blob->refs, 1);
  return blob;
}

ipc_blob *ipc_blob_ref(ipc_blob *blob) {
  atomic_fetch_add_explicit(&blob->refs, 1, memory_order_relaxed);
  return blob;
}

void ipc_blob_unref(ipc_blob *blob) {
  if (blob == NULL) return;
  if (atomic_fetch_sub_explicit(&blob->refs, 1, memory_order_acq_rel) != 1) return;
  if (blob->mapping != NULL) munmap(blob->mapping, blob->size);
  free(blob->heap);
  weir_bytes_release(&blob->bytes);
  free(blob);
}

void ipc_release_noop(struct ArrowArray *array) {
  array->release = NULL;
}

ipc_array *ipc_array_new(weir_error *err) {
  ipc_array *array = base_calloc(1, sizeof *array, err);
  if (array != NULL) atomic_init(&array->refs, 1);
  return array;
}

ipc_array *ipc_array_ref(ipc_array *array) {
  atomic_fetch_add_explicit(&array->refs, 1, memory_order_relaxed);
  return array;
}

/* The recursion is as deep as dictionaries nest, and two levels for clones and joined arrays. */
void ipc_array_unref(ipc_array *array) {
  if (array == NULL) return;
  if (atomic_fetch_sub_explicit(&array->refs, 1, memory_order_acq_rel) != 1) return;
  for (size_t i = 0; i < array->n_heap; i++) free(array->heap[i]);
  free(array->heap);
  for (size_t i = 0; i < array->n_uses; i++) ipc_array_unref(array->uses[i]);
  free(array->uses);
  free(array->arena);
  ipc_blob_unref(array->body);
  free(array);
}

weir_status ipc_array_adopt(ipc_array *array, void *block, weir_error *err) {
  if (array->n_heap == array->heap_capacity) {
    size_t capacity = array->heap_capacity == 0 ? 8 : 2 * array->heap_capacity;
    void **heap = base_realloc(array->heap, capacity, sizeof *heap, err);
    if (heap == NULL) {
      free(block);
      return WEIR_E_NOMEM;
    }
    array->heap = heap;
    array->heap_capacity = capacity;
  }
  array->heap[array->n_heap++] = block;
  return WEIR_OK;
}

void *ipc_array_alloc(ipc_array *array, size_t size, weir_error *err) {
  void *block = base_realloc(NULL, size == 0 ? 1 : size, 1, err);
  if (block == NULL) return NULL;
  return ipc_array_adopt(array, block, err) == WEIR_OK ? block : NULL;
}

weir_status ipc_array_use(ipc_array *array, ipc_array *other, weir_error *err) {
  if (array->n_uses == array->uses_capacity) {
    size_t capacity = array->uses_capacity == 0 ? 4 : 2 * array->uses_capacity;
    ipc_array **uses = base_realloc(array->uses, capacity, sizeof *uses, err);
    if (uses == NULL) return WEIR_E_NOMEM;
    array->uses = uses;
    array->uses_capacity = capacity;
  }
  array->uses[array->n_uses++] = ipc_array_ref(other);
  return WEIR_OK;
}

static void count_nodes(const arrow_node *node, bool dictionaries, ipc_arena_size *size) {
  int64_t buffers = arrow_node_buffers(node);
  size->arrays++;
  size->children += (size_t)node->n_children;
  size->buffers += buffers < 0 ? 3 : (size_t)buffers;
  for (int64_t i = 0; i < node->n_children; i++)
    count_nodes(&node->children[i], dictionaries, size);
  if (dictionaries && node->dictionary != NULL) count_nodes(node->dictionary, true, size);
}

weir_status ipc_arena_init(ipc_arena *arena, ipc_array *array, const arrow_node *node,
                           bool dictionaries, size_t more_buffers, weir_error *err) {
  ipc_arena_size size = {0};
  count_nodes(node, dictionaries, &size);
  size.buffers += more_buffers;
  uint8_t *block = base_calloc(1,
                               size.arrays * sizeof(struct ArrowArray) +
                                   size.children * sizeof(struct ArrowArray *) +
                                   size.buffers * sizeof(void *) +
                                   (more_buffers + 1) * sizeof(int64_t),
                               err);
  if (block == NULL) return WEIR_E_NOMEM;
  array->arena = block;
  arena->arrays = (struct ArrowArray *)block;
  arena->children = (struct ArrowArray **)(arena->arrays + size.arrays);
  arena->buffers = (const void **)(arena->children + size.children);
  arena->sizes = (int64_t *)(arena->buffers + size.buffers);
  return WEIR_OK;
}

void ipc_arena_shape(ipc_arena *arena, const arrow_node *node, size_t n_buffers,
                     struct ArrowArray *out) {
  *out = (struct ArrowArray){.n_buffers = (int64_t)n_buffers,
                             .n_children = node->n_children,
                             .buffers = arena->buffers,
                             .children = arena->children,
                             .release = ipc_release_noop};
  arena->buffers += n_buffers;
  arena->children += node->n_children;
  for (int64_t i = 0; i < node->n_children; i++) out->children[i] = arena->arrays++;
}

static void fill_empty(ipc_arena *arena, const arrow_node *node, struct ArrowArray *out) {
  int64_t buffers = arrow_node_buffers(node);
  ipc_arena_shape(arena, node, buffers < 0 ? 3 : (size_t)buffers, out);
  for (int64_t i = 0; i < out->n_buffers; i++)
    out->buffers[i] = i == 0 && arrow_node_has_validity(node) ? NULL : ipc_zeros;
  for (int64_t i = 0; i < node->n_children; i++)
    fill_empty(arena, &node->children[i], out->children[i]);
  if (node->dictionary == NULL) return;
  out->dictionary = arena->arrays++;
  fill_empty(arena, node->dictionary, out->dictionary);
}

ipc_array *ipc_array_empty(const arrow_node *node, weir_error *err) {
  ipc_arena arena = {0};
  ipc_array *made = ipc_array_new(err);
  if (made == NULL) return NULL;
  if (ipc_arena_init(&arena, made, node, true, 0, err) != WEIR_OK) {
    ipc_array_unref(made);
    return NULL;
  }
  fill_empty(&arena, node, &made->root);
  return made;
}

static void fill_clone(ipc_arena *arena, const arrow_node *node,
                       const struct ArrowArray *from, struct ArrowArray *out) {
  ipc_arena_shape(arena, node, 0, out);
  out->length = from->length;
  out->null_count = from->null_count;
  out->offset = from->offset;
  out->n_buffers = from->n_buffers;
  out->buffers = from->buffers;
  for (int64_t i = 0; i < node->n_children; i++)
    fill_clone(arena, &node->children[i], from->children[i], out->children[i]);
}

ipc_array *ipc_array_clone(const arrow_node *node, ipc_array *from, weir_error *err) {
  ipc_arena arena = {0};
  ipc_array *made = ipc_array_new(err);
  if (made == NULL) return NULL;
  if (ipc_arena_init(&arena, made, node, false, 0, err) != WEIR_OK ||
      ipc_array_use(made, from, err) != WEIR_OK) {
    ipc_array_unref(made);
    return NULL;
  }
  fill_clone(&arena, node, &from->root, &made->root);
  return made;
}
