/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SUPPORT_BROKEN_CLEANER_H
#define SUPPORT_BROKEN_CLEANER_H

#include <weir/sink.h>

/* Finds what was staged in a folder by intent, or by number and participant. */
typedef struct broken_cleaner {
  _Atomic int refs;
  char folder[400];
  uint64_t last; /* attempt cleaned last */
} broken_cleaner;

broken_cleaner *broken_cleaner_new(void);
extern const weir_cleaner_ops broken_cleaner_ops;

#endif
