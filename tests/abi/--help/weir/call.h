/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The call that a blocking hook is given: an absolute deadline and a cancel flag.
 *
 * C cannot drop a call that is under way. When the deadline passes, the flag is set and the caller
 * goes on; a hook that waits should look at both and come back with WEIR_E_TIMEOUT or
 * WEIR_E_CANCELLED. What follows for the connector is its cancellation policy (see sink.h).
 */
#ifndef WEIR_CALL_H
#define WEIR_CALL_H

#include <weir/error.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_call weir_call;

#define WEIR_NO_DEADLINE INT64_MAX

/* Nanoseconds of the monotonic clock (CLOCK_MONOTONIC) at which the call must be over, or
 * WEIR_NO_DEADLINE. A NULL call has no deadline. Any thread. */
WEIR_API int64_t weir_call_deadline(const weir_call *call);

/* Nanoseconds left, never negative; INT64_MAX without a deadline. */
WEIR_API int64_t weir_call_remaining(const weir_call *call);

/* 1 once the caller has given up or the deadline has passed, else 0. */
WEIR_API int weir_call_cancelled(const weir_call *call);

/* WEIR_OK, or WEIR_E_CANCELLED / WEIR_E_TIMEOUT with a message that begins with `what`. */
WEIR_API weir_status weir_call_check(const weir_call *call, const char *what,
                                     weir_error *err);

/* For hosts that drive connectors themselves: a call with a deadline `timeout_ns` from now (negative:
 * none). Freed by weir_call_free once no thread uses it. */
WEIR_API weir_call *weir_call_new(int64_t timeout_ns);
WEIR_API void weir_call_cancel(weir_call *call);
WEIR_API void weir_call_free(weir_call *call);

#ifdef __cplusplus
}
#endif
#endif
