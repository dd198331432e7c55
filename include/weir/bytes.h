/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes and names handed over the Arrow way: the producer's release callback frees them. */
#ifndef WEIR_BYTES_H
#define WEIR_BYTES_H

#include <weir/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Absent and empty differ: absent has release == NULL, empty has release != NULL and size == 0.
 * A struct is moved by copying it and setting the source's release to NULL. */
typedef struct weir_bytes {
  const uint8_t *data; /* `size` bytes; may be NULL when size is 0 */
  size_t size;
  void (*release)(struct weir_bytes *); /* frees, sets release = NULL; any thread */
  void *private_data;
} weir_bytes;

/* A list of NUL-terminated UTF-8 names, absent when release == NULL. */
typedef struct weir_names {
  const char *const *v;
  size_t n;
  void (*release)(struct weir_names *);
  void *private_data;
} weir_names;

/* Copies `size` bytes into *out, which is overwritten and must hold nothing. With data == NULL and
 * size == 0 the result is present and empty. */
WEIR_API weir_status weir_bytes_copy(weir_bytes *out, const void *data, size_t size,
                                     weir_error *err);

/* Copies n names. */
WEIR_API weir_status weir_names_copy(weir_names *out, const char *const *v, size_t n,
                                     weir_error *err);

/* Writes 2 * size hex digits, in lower case, and a NUL. */
WEIR_API void weir_hex_encode(const void *data, size_t size, char *out);
/* 1: `text` is exactly 2 * size hex digits of either case, and `out` has their bytes; else 0. */
WEIR_API int weir_hex_decode(const char *text, void *out, size_t size);

/* Releases if present; absent and NULL are no-ops. */
WEIR_API void weir_bytes_release(weir_bytes *bytes);
WEIR_API void weir_names_release(weir_names *names);

#ifdef __cplusplus
}
#endif
#endif
