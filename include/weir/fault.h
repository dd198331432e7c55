/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fault points: named places where a test can kill, stop, delay or fail the process. A
 * release build has none of them: WEIR_FAULT() is 0 there and the code behind it is gone.
 *
 * Names are literals, "<room or connector>.<what is about to happen or just did>", so
 * that a script can list them: `WEIR_FAULT("store.decided")`.
 *
 * In a build with WEIR_FAULTS defined, the environment variable WEIR_FAULTS holds rules,
 * comma separated, NAME=ACTION: kill      SIGKILL to this process stop      SIGSTOP to
 * this process fail      WEIR_FAULT returns 1, and the caller behaves as if the operation
 * had failed sleep:D   waits that long (250ms, 2s) ACTION@N acts at the Nth hit alone,
 * ACTION@N+ from the Nth hit on, ACTION at every hit. A name of
 * "*" stands for every point, with one common count. WEIR_FAULTS_LOG names a file to
 * which every hit appends its point's name and a newline. A rule that cannot be read
 * aborts the process: a test must not pass because of a typing error.
 */
#ifndef WEIR_FAULT_H
#define WEIR_FAULT_H

#include <weir/export.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(WEIR_FAULTS)
#define WEIR_FAULT(name) weir_fault_hit(name)

/* Counts a hit of `name` and does what the rules say; 1 = fail, else 0. Any thread. */
WEIR_API int weir_fault_hit(const char *name);
#else
#define WEIR_FAULT(name) weir_fault_none()

static inline int weir_fault_none(void) {
  return 0;
}
#endif

#ifdef __cplusplus
}
#endif
#endif
