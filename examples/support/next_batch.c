/* SPDX-License-Identifier: Apache-2.0 */
/* The user's part of examples/push.c: a million rows {n: int64, even: bool}, a thousand a batch. A real
 * program has these arrays from elsewhere; here they are made by hand, as the Arrow C data interface
 * lays them out. */
#include <stdlib.h>
#include <weir/arrow.h>

int next_batch(uint64_t n, struct ArrowArray *out);

enum { ROWS = 1000, BATCHES = 1000 };

static void release_array(struct ArrowArray *array) {
  for (int64_t i = 0; i < array->n_children; i++) {
    struct ArrowArray *child = array->children[i];
    if (child->release) child->release(child);
    free(child);
  }
  free(array->children);
  if (array->n_buffers == 2) free((void *)array->buffers[1]);
  free(array->buffers);
  array->release = NULL;
}

static int make_array(struct ArrowArray *out, int64_t n_buffers, int64_t n_children,
                      void *values) {
  *out = (struct ArrowArray){.length = ROWS,
                             .n_buffers = n_buffers,
                             .n_children = n_children,
                             .buffers = calloc((size_t)n_buffers, sizeof(void *)),
                             .release = release_array};
  if (n_children) out->children = calloc((size_t)n_children, sizeof(*out->children));
  if (out->buffers && n_buffers == 2) out->buffers[1] = values;
  return out->buffers && (!n_children || out->children) && (n_buffers == 1 || values);
}

int next_batch(uint64_t n, struct ArrowArray *out) {
  if (n >= BATCHES) return 0;
  int64_t *numbers = calloc(ROWS, sizeof(*numbers));
  uint8_t *bits = calloc(1, (ROWS + 7) / 8);
  struct ArrowArray *first = calloc(1, sizeof(*first)),
                    *second = calloc(1, sizeof(*second));
  if (!numbers || !bits || !first || !second || !make_array(out, 1, 2, NULL) ||
      !make_array(first, 2, 0, numbers) || !make_array(second, 2, 0, bits)) {
    abort();
  }
  for (uint64_t i = 0; i < ROWS; i++) {
    numbers[i] = (int64_t)(n * ROWS + i);
    if (i % 2 == 0) bits[i / 8] |= (uint8_t)(1u << (i % 8));
  }
  out->children[0] = first;
  out->children[1] = second;
  return 1;
}
