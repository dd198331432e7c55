/* SPDX-License-Identifier: Apache-2.0 */
/* Linkage and compiler attributes used by every public header. */
#ifndef WEIR_EXPORT_H
#define WEIR_EXPORT_H

#include <stddef.h>
#include <stdint.h>

#define WEIR_VERSION_MAJOR 0
#define WEIR_VERSION_MINOR 1
#define WEIR_VERSION_PATCH 0
#define WEIR_VERSION "0.1.0"

/* Version of the connector tables. A table of another major layout is refused at load; a table
 * of the same version with a smaller struct_size simply lacks the tail. */
#define WEIR_ABI_VERSION 1u

#if defined(__GNUC__)
#define WEIR_API __attribute__((visibility("default")))
#define WEIR_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define WEIR_MUST_CHECK __attribute__((warn_unused_result))
#else
#define WEIR_API
#define WEIR_PRINTF(fmt, args)
#define WEIR_MUST_CHECK
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the library that runs, "MAJOR.MINOR.PATCH"; static storage. */
WEIR_API const char *weir_version(void);

#ifdef __cplusplus
}
#endif
#endif
