/* SPDX-License-Identifier: Apache-2.0 */
/* Pipelines of probes (probe.h) from a source `in` into a sink `out`, run to their end. */
#ifndef TESTS_UNIT_SUPPORT_HOOKS_H
#define TESTS_UNIT_SUPPORT_HOOKS_H

#include <weir/weir.h>

#include "base/base.h"
#include "support/folder.h"
#include "support/probe.h"

#define HOOKS_SOON (40 * BASE_NS_PER_S)
#define HOOKS_ROWS 400

typedef struct hooks_bench {
  char folder[FOLDER_PATH];
  weir_pipeline *pipeline;
  weir_error err;
  char type[32], options[256];        /* of sink `out` */
  const char *source;                 /* options of `in` */
  const char *sources, *from, *sinks; /* further ones */
  const char *guarantee;
  const char *timeout; /* checkpoint.timeout; default 250ms */
} hooks_bench;

int hooks_set_up(void **state);
int hooks_tear_down(void **state);

weir_config *hooks_config(const hooks_bench *b);
/* Under the rules that are set. */
weir_status hooks_open(hooks_bench *b);
/* Until it ends or fails. */
weir_status hooks_wait(hooks_bench *b);
weir_status hooks_close(hooks_bench *b);
/* The three of them. */
weir_status hooks_deliver(hooks_bench *b, const probe_rule *rules);
/* Forgets targets and state. */
void hooks_start_over(hooks_bench *b, const char *options);

void hooks_assert_exact(const char *sink, uint64_t n);
/* However the run before ended: the next one delivers the rest. */
void hooks_assert_next_run_is_exact(hooks_bench *b);
void hooks_assert_nothing_alive(void);

/* Hooks of a run, and the call that rules are about: not the first where that is the start's. */
#define HOOKS_CALLS 12
typedef struct hooks_call {
  const char *hook;
  int nth;
} hooks_call;
extern const hooks_call hooks_calls[HOOKS_CALLS];

/* Contracts of the sink. */
extern const char *const hooks_ways[4];

#endif
