/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connectors for tests of whole pipelines: sinks `probe`, `probe_safe` (cancel-safe) and `probe_weak` (of a
 * weaker kind) with targets in memory that outlive pipelines, and source `numbers`. Rules make any hook fail, hang or come late. Linking this file replaces the
 * library's list of connectors with file, generator, push and these two.
 *
 * A committable target applies a commit under its cursor, as a conditional one does when `cas` is set,
 * else by a look first and a blind write later, so a commit beside another one doubles rows.
 */
#ifndef TESTS_UNIT_SUPPORT_PROBE_H
#define TESTS_UNIT_SUPPORT_PROBE_H

#include <stdbool.h>
#include <stdint.h>
#include <weir/plugin.h>

typedef enum probe_act {
  PROBE_FAIL,   /* at once */
  PROBE_LATE,   /* waits until it is cancelled, then fails */
  PROBE_HANG,   /* waits until probe_let_go, whatever its call says, then goes on */
  PROBE_LANDED, /* does it, then fails: commits, whose answer is lost */
} probe_act;

typedef struct probe_rule {
  const char *hook; /* as in weir_sink_ops, weir_committer_ops, ... ; NULL: no rule */
  const char *sink; /* id; NULL: any */
  int nth;          /* from which call on, counted from 1 */
  int times;        /* how many calls; 0: one */
  probe_act act;
  weir_status code; /* 0: WEIR_E_IO, of PROBE_LATE WEIR_E_TIMEOUT */
  uint32_t flags;
} probe_rule;

/* A clean slate: targets empty, no rules, no counts. */
void probe_reset(void);
/* Rules from now on; counting starts anew. Hooks that hang are let go. `rules` ends with a {0} row; NULL:
 * none. */
void probe_rules(const probe_rule *rules);
void probe_let_go(void);

/* How often a hook was called since the rules were set. */
int probe_calls(const char *hook);
/* Instances made less instances released, sinks and sources. */
int probe_alive(void);
/* Threads that hang in a hook. */
int probe_hanging(void);

/* Rows of a sink's target: how many of 0 .. n-1 are there exactly once, at least once, and all rows. */
typedef struct probe_rows {
  uint64_t once, there, all;
} probe_rows;
probe_rows probe_target(const char *sink, uint64_t n);

#endif
