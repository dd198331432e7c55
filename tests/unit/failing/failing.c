/* SPDX-License-Identifier: Apache-2.0 */
/*
 * malloc and its kin, defined in the executable, in which weir is linked. They are not exported, so shared libraries
 * keep their own. Under
 * a sanitizer they hand on to its own, which then watches the blocks; else to those of glibc.
 */
#include "failing/failing.h"

#include <errno.h>
#include <execinfo.h>
#include <nanoarrow/nanoarrow.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

/* These run before the sanitizers are set up. */
#define RAW __attribute__((no_sanitize("address", "undefined", "thread")))
#define OF_SANITIZER __attribute__((weak))

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *block, size_t size);
OF_SANITIZER void *__interceptor_malloc(size_t size);
OF_SANITIZER void *__interceptor_calloc(size_t n, size_t size);
OF_SANITIZER void *__interceptor_realloc(void *block, size_t size);

static atomic_bool counting;
static atomic_uint_fast64_t asked, fails;

void failing_at(uint64_t n) {
  atomic_store(&asked, 0);
  atomic_store(&fails, n);
  atomic_store(&counting, true);
}

uint64_t failing_stop(void) {
  atomic_store(&counting, false);
  return atomic_load(&asked);
}

/* nanoarrow 0.9.0 writes to its second block in the first of these without a look whether it is there, and
 * loses the blocks before the one that the second does not get. The sizes are those of the functions, or so:
 * a neighbour that is excused too does no harm. */
RAW static bool excused(const void *caller) {
  return (uintptr_t)caller - (uintptr_t)ArrowArrayInitFromType < 0x280 ||
         (uintptr_t)caller - (uintptr_t)ArrowArrayAllocateChildren < 0xc0;
}

RAW static bool refuse(const void *caller) {
  if (!atomic_load(&counting) || excused(caller) ||
      atomic_fetch_add(&asked, 1) + 1 != atomic_load(&fails))
    return false;
  if (getenv("WEIR_TEST_WHERE")) { /* for whoever looks into a failure */
    atomic_store(&counting, false);
    void *frames[24];
    backtrace_symbols_fd(frames, backtrace(frames, 24), STDERR_FILENO);
    atomic_store(&counting, true);
  }
  errno = ENOMEM;
  return true;
}

RAW void *malloc(size_t size) {
  if (refuse(__builtin_return_address(0))) return NULL;
  return __interceptor_malloc ? __interceptor_malloc(size) : __libc_malloc(size);
}

RAW void *calloc(size_t n, size_t size) {
  if (refuse(__builtin_return_address(0))) return NULL;
  return __interceptor_calloc ? __interceptor_calloc(n, size) : __libc_calloc(n, size);
}

RAW void *realloc(void *block, size_t size) {
  if (refuse(__builtin_return_address(0))) return NULL;
  return __interceptor_realloc ? __interceptor_realloc(block, size)
                               : __libc_realloc(block, size);
}
