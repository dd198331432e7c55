/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

static void bytes_free(weir_bytes *bytes) {
  free(bytes->private_data);
  *bytes = (weir_bytes){0};
}

weir_status weir_bytes_copy(weir_bytes *out, const void *data, size_t size,
                            weir_error *err) {
  void *copy = NULL;
  if (size) {
    copy = base_calloc(1, size, err);
    if (!copy) return WEIR_E_NOMEM;
    memcpy(copy, data, size);
  }
  *out = (weir_bytes){
      .data = copy, .size = size, .release = bytes_free, .private_data = copy};
  return WEIR_OK;
}

void base_buf_steal(base_buf *buf, weir_bytes *out) {
  *out = (weir_bytes){.data = buf->data,
                      .size = buf->size,
                      .release = bytes_free,
                      .private_data = buf->data};
  *buf = (base_buf){0};
}

static void names_free(weir_names *names) {
  free(names->private_data);
  *names = (weir_names){0};
}

weir_status weir_names_copy(weir_names *out, const char *const *v, size_t n,
                            weir_error *err) {
  /* One block: the pointers, then the texts. */
  size_t total = 0;
  if (!base_mul_size(n, sizeof(char *), &total)) goto too_large;
  for (size_t i = 0; i < n; i++) {
    if (!base_add_size(total, strlen(v[i]) + 1, &total)) goto too_large;
  }
  char **block = base_calloc(1, total, err);
  if (!block) return WEIR_E_NOMEM;
  char *text = (char *)(block + n);
  for (size_t i = 0; i < n; i++) {
    size_t size = strlen(v[i]) + 1;
    block[i] = memcpy(text, v[i], size);
    text += size;
  }
  *out = (weir_names){.v = (const char *const *)block,
                      .n = n,
                      .release = names_free,
                      .private_data = block};
  return WEIR_OK;
too_large:
  return weir_error_set(err, WEIR_E_NOMEM, 0, "a list of %zu names is too large to copy",
                        n);
}

void weir_bytes_release(weir_bytes *bytes) {
  if (bytes && bytes->release) bytes->release(bytes);
}

void weir_names_release(weir_names *names) {
  if (names && names->release) names->release(names);
}
