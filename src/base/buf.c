/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

void *base_calloc(size_t n, size_t size, weir_error *err) {
  size_t total = 0;
  void *block = NULL;
  if (base_mul_size(n, size, &total)) block = calloc(1, total ? total : 1);
  if (!block) {
    weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory (%zu x %zu bytes asked for)", n,
                   size);
  }
  return block;
}

void *base_realloc(void *block, size_t n, size_t size, weir_error *err) {
  size_t total = 0;
  void *next = NULL;
  if (base_mul_size(n, size, &total)) next = realloc(block, total ? total : 1);
  if (!next) {
    weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory (%zu x %zu bytes asked for)", n,
                   size);
  }
  return next;
}

char *base_strndup(const char *text, size_t size, weir_error *err) {
  size_t total = 0;
  char *copy = base_add_size(size, 1, &total) ? base_calloc(1, total, err) : NULL;
  if (copy && size) memcpy(copy, text, size);
  return copy;
}

char *base_strdup(const char *text, weir_error *err) {
  return base_strndup(text, strlen(text), err);
}

char *base_format(weir_error *err, const char *fmt, ...) {
  char *text = NULL;
  va_list args;
  va_start(args, fmt);
  int n = vasprintf(&text, fmt, args);
  va_end(args);
  if (n >= 0) return text;
  weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory formatting a text");
  return NULL;
}

weir_status base_buf_grow(base_buf *buf, size_t extra, weir_error *err) {
  size_t need = 0;
  if (!base_add_size(buf->size, extra, &need)) {
    return weir_error_set(err, WEIR_E_NOMEM, 0,
                          "a buffer of %zu bytes cannot grow by %zu", buf->size, extra);
  }
  if (need <= buf->capacity && buf->data) return WEIR_OK;
  size_t capacity = buf->capacity < 64 ? 64 : buf->capacity;
  while (capacity < need) {
    if (!base_add_size(capacity, capacity / 2, &capacity)) capacity = need;
  }
  uint8_t *data = base_realloc(buf->data, 1, capacity, err);
  if (!data) return WEIR_E_NOMEM;
  buf->data = data;
  buf->capacity = capacity;
  return WEIR_OK;
}

weir_status base_buf_append(base_buf *buf, const void *data, size_t size,
                            weir_error *err) {
  if (!size) return WEIR_OK;
  BASE_TRY(base_buf_reserve(buf, size, err));
  memcpy(buf->data + buf->size, data, size);
  buf->size += size;
  return WEIR_OK;
}

weir_status base_buf_append_str(base_buf *buf, const char *text, weir_error *err) {
  return base_buf_append(buf, text, strlen(text), err);
}

weir_status base_buf_append_byte(base_buf *buf, uint8_t byte, weir_error *err) {
  return base_buf_append(buf, &byte, 1, err);
}

weir_status base_buf_printf(base_buf *buf, weir_error *err, const char *fmt, ...) {
  va_list args, again;
  va_start(args, fmt);
  va_copy(again, args);
  int n = vsnprintf(NULL, 0, fmt, args);
  va_end(args);
  weir_status status = WEIR_OK;
  if (n < 0) {
    status =
        weir_error_set(err, WEIR_E_INTERNAL, 0, "cannot format a text with '%s'", fmt);
  } else {
    status = base_buf_reserve(buf, (size_t)n + 1, err);
  }
  if (!status) {
    vsnprintf((char *)buf->data + buf->size, (size_t)n + 1, fmt, again);
    buf->size += (size_t)n;
  }
  va_end(again);
  return status;
}

weir_status base_buf_terminate(base_buf *buf, weir_error *err) {
  BASE_TRY(base_buf_reserve(buf, 1, err));
  buf->data[buf->size] = 0;
  return WEIR_OK;
}

char *base_buf_steal_str(base_buf *buf, weir_error *err) {
  if (base_buf_terminate(buf, err)) return NULL;
  char *text = (char *)buf->data;
  *buf = (base_buf){0};
  return text;
}

void base_buf_clear(base_buf *buf) {
  buf->size = 0;
}

void base_buf_done(base_buf *buf) {
  free(buf->data);
  *buf = (base_buf){0};
}
