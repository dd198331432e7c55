/* SPDX-License-Identifier: Apache-2.0 */
/* Calls to the system that fail: files, threads, locks and waiting, whoever makes them, SQLite too; and libpq's,
 * where it is loaded by weir. A test that says "ctest: failing calls" is linked with it. */
#ifndef TESTS_UNIT_CALLS_H
#define TESTS_UNIT_CALLS_H

#include <stdbool.h>
#include <stdint.h>

/* What goes wrong. */
typedef enum calls_fault {
  CALLS_FAIL,  /* the call, once: EIO, or what its kind says instead */
  CALLS_DEAD,  /* it and every one after it; of libpq: the connection is gone */
  CALLS_BREAK, /* EINTR once, where a call may say so */
  CALLS_SHORT, /* half of the bytes are moved, once */
} calls_fault;

/* Counts this thread's calls from now on; the n-th goes wrong, 0: none. */
void calls_fail(uint64_t n, calls_fault fault);
/* As calls_fail, only of calls whose names begin so: "fstat", "pthread", "PQ". `name` is borrowed. */
void calls_fail_of(const char *name, uint64_t n, calls_fault fault);
/* Nothing goes wrong from now on; how many calls there were. */
uint64_t calls_stop(void);

#endif
