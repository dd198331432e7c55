/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors: a status that a program can act on, and a caller-owned struct that tells a person what
 * happened. Setting an error never allocates, so it cannot fail.
 */
#ifndef WEIR_ERROR_H
#define WEIR_ERROR_H

#include <weir/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/* 0 = WEIR_OK, else one of WEIR_E_*. Never an enum type (its width is the compiler's), never errno. */
typedef int32_t weir_status;

enum {
  WEIR_OK = 0,
  WEIR_E_INVALID_CONFIG = 1, /* configuration or usage; exit status 2 */
  /* the call is not allowed in the object's present state */
  WEIR_E_INVALID_STATE = 2,
  WEIR_E_NOT_IMPLEMENTED = 3, /* unknown ABI, type or feature, named in the message */
  /* the guarantee asked for cannot be kept; exit status 3 */
  WEIR_E_ADMISSION = 4,
  WEIR_E_SCHEMA = 5,    /* a schema or type does not fit */
  WEIR_E_IO = 6,        /* the operating system or the target failed */
  WEIR_E_TIMEOUT = 7,   /* a deadline passed */
  WEIR_E_CANCELLED = 8, /* the call's cancel flag was seen */
  /* a newer owner exists: write nothing more; exit status 4 */
  WEIR_E_FENCED = 9,
  /* the target does not agree with the store; exit status 4 */
  WEIR_E_CONFLICT = 10,
  WEIR_E_CORRUPT = 11, /* bytes that fail their checksum or their format */
  WEIR_E_NOMEM = 12,
  WEIR_E_INTERNAL = 13, /* a broken invariant: a bug in weir or in a connector */
  /* a row that cannot be decoded or mapped; exit status 6 */
  WEIR_E_BAD_DATA = 14,
  /* a file, object, row or name that should be there is not */
  WEIR_E_NOT_FOUND = 15,
  WEIR_E_EXISTS = 16, /* a create-once name is taken */
  /* an input was rewound: read its position, seek, push again */
  WEIR_E_REWOUND = 17,
  /* nothing more will come: the pipeline or the input has ended */
  WEIR_E_ENDED = 18
};

/* What comes next. No flag set means fatal: stop. */
enum {
  WEIR_ERR_RETRIABLE = 1, /* nothing happened; the same call may succeed later */
  /* it may have happened: look it up at the target, never retry blindly */
  WEIR_ERR_IN_DOUBT = 2,
  /* the rows are at fault, not the target; nothing of the batch was taken */
  WEIR_ERR_BAD_DATA = 4,
  /* beside RETRIABLE: the target cannot be reached, so that no attempt would fare better; however often
   * it happens, a run that has begun waits for the target */
  WEIR_ERR_AWAY = 8
};

/* Caller-owned and zeroed before use; frozen at 1 KiB. Every function that takes one accepts NULL. */
typedef struct weir_error {
  weir_status code;
  uint32_t flags;      /* WEIR_ERR_* */
  int32_t vendor_code; /* errno, SQLite or broker code; 0 = none */
  int32_t column;      /* zero-based column at fault; -1 = none */
  int64_t row;         /* zero-based row within the batch at fault; -1 = none */
  char sqlstate[6];    /* five characters and NUL; empty = none */
  char message[994];   /* UTF-8, NUL-terminated, cut at a character's edge */
} weir_error;

/* Fills *err (row and column become -1, vendor code 0) and returns `code`, so that a failing
 * function can end with `return weir_error_set(err, ...)`. A message of more than 993 bytes is cut.
 * Thread-safe as long as *err belongs to the caller. */
WEIR_API weir_status weir_error_set(weir_error *err, weir_status code, uint32_t flags,
                                    const char *fmt, ...) WEIR_PRINTF(4, 5);

/* As weir_error_set with code WEIR_E_IO; appends ": " and the text of `errnum` and keeps it as
 * vendor code. EINTR, EAGAIN and ENOSPC are flagged retriable. */
WEIR_API weir_status weir_error_errno(weir_error *err, int errnum, const char *fmt, ...)
    WEIR_PRINTF(3, 4);

/* Names the row and column at fault in an error already set. Returns err->code (or `code` when err
 * is NULL). */
WEIR_API weir_status weir_error_at(weir_error *err, weir_status code, int64_t row,
                                   int32_t column);

/* Puts "prefix: " before the message, as a caller that knows more of the place does. Keeps code,
 * flags and the rest. Returns err->code, or `code` when err is NULL. */
WEIR_API weir_status weir_error_prefix(weir_error *err, weir_status code, const char *fmt,
                                       ...) WEIR_PRINTF(3, 4);

/* "INVALID_CONFIG" and so on; "UNKNOWN" for a code that this library does not know. */
WEIR_API const char *weir_status_name(weir_status code);

#ifdef __cplusplus
}
#endif
#endif
