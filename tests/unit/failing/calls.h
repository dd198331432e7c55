/* SPDX-License-Identifier: Apache-2.0 */
/* Calls to the system that fail: files, threads, locks and waiting, whoever makes them, SQLite too; and calls of
 * libraries: SQLite's, libcrypto's, and libpq's, where it is loaded by weir. A test that says "ctest: failing calls"
 * is linked with it. */
#ifndef TESTS_UNIT_CALLS_H
#define TESTS_UNIT_CALLS_H

#include <stdbool.h>
#include <stdint.h>

/* What goes wrong. */
typedef enum calls_fault {
  CALLS_FAIL,  /* the call, once: EIO, SQLITE_IOERR, or what its kind says instead */
  CALLS_DEAD,  /* it and every one after it; of libpq: the connection is gone */
  CALLS_BREAK, /* EINTR or SQLITE_BUSY once, where a call may say so */
  CALLS_SHORT, /* half of the bytes are moved, an answer is without a result, once */
} calls_fault;

/* Counts this thread's calls from now on; the n-th goes wrong, 0: none. Meanwhile SQLite does not sleep between two
 * tries. */
void calls_fail(uint64_t n, calls_fault fault);
/* As calls_fail, only of calls whose names begin so: "fstat", "pthread", "PQ". Those of libraries, and fault points,
 * count only here. `name` is borrowed. */
void calls_fail_of(const char *name, uint64_t n, calls_fault fault);
/* Nothing fails: the n-th call of that name is made when `run` has run. */
void calls_run_before(const char *name, uint64_t n, void (*run)(void *ctx), void *ctx);
/* Nothing goes wrong from now on; how many calls there were. */
uint64_t calls_stop(void);

#endif
