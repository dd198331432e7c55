/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A schema binding: which columns a sink will be given, and which concrete target they go to. The
 * runtime pins its canonical form in the checkpoint store and refuses a changed one at restart.
 */
#ifndef WEIR_BINDING_H
#define WEIR_BINDING_H

#include <weir/batch.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_MAX_IDENTITY 4096

/* Zero it before use (struct_size set); weir_binding_done when over. */
typedef struct weir_binding {
  uint32_t struct_size;
  /* one reference, owned by the binding; what write_batch will be given */
  weir_schema *schema;
  /* malloc'd; UTF-8 "key=value" lines that name the concrete target (table UUID,
   * database oid, device and inode of a folder); no secrets; NULL = none yet */
  char *identity;
} weir_binding;

/* The logical binding: takes what the query gives. Takes a reference to `input`. */
WEIR_API weir_status weir_binding_logical(weir_schema *input, weir_binding *out,
                                          weir_error *err);

/* Appends "key=value\n" to the identity. Keys are [a-z0-9_.]; values must not hold a line break;
 * the whole is bounded by WEIR_MAX_IDENTITY. */
WEIR_API weir_status weir_binding_identify(weir_binding *binding, const char *key,
                                           const char *value, weir_error *err);

/* Releases what it holds and zeroes it, keeping struct_size; NULL is a no-op. */
WEIR_API void weir_binding_done(weir_binding *binding);

#ifdef __cplusplus
}
#endif
#endif
