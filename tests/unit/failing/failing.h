/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that runs out: the n-th allocation fails of weir and of what is linked into it; not of shared libraries.
 * A test that says "ctest: failing" is linked with it. What else is built for a sanitizer still sees every block. */
#ifndef TESTS_UNIT_FAILING_H
#define TESTS_UNIT_FAILING_H

#include <stdint.h>

/* Counts from now on, and lets the n-th allocation fail, once; 0: none fails. */
void failing_at(uint64_t n);
/* No allocation fails from now on; how many were asked for since failing_at. */
uint64_t failing_stop(void);

#endif
