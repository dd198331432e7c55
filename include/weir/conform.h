/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The conformance kit: does a sink keep what its contract promises?
 *
 * It drives one sink as the runtime would, in child processes that it kills, pauses and cuts off from
 * their files, and keeps in memory what the checkpoint store would have kept. What came of it is read
 * off the target in two ways: the committer's cursor, and the caller's count of rows.
 *
 * The target is written to: give it one of its own. Each check is a new deployment of pipeline
 * `weir-conform` that replaces the one before, so the target need not be empty, and rows are compared
 * by how many more there are. A sink that is claimed by a real pipeline refuses this one.
 *
 * Unlike the rest of the library this forks. Call it from a process with one thread.
 */
#ifndef WEIR_CONFORM_H
#define WEIR_CONFORM_H

#include <weir/contract.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weir_sink_ops;

/* outcome of a check */
enum {
  WEIR_CONFORM_PASSED = 1,
  WEIR_CONFORM_FAILED = 2,
  /* nothing was found wrong, but it could not be shown; `reason` says what is missing */
  WEIR_CONFORM_NOT_SHOWN = 3,
  /* the contract does not claim it */
  WEIR_CONFORM_NOT_CLAIMED = 4,
  /* a check of an earlier group failed, and this one stands on it */
  WEIR_CONFORM_NOT_RUN = 5
};

typedef struct weir_conform_check {
  uint32_t struct_size;
  int32_t outcome;   /* WEIR_CONFORM_* */
  const char *group; /* "commit"; static, as name and text */
  const char *name;  /* "answer-lost"; unique over all groups */
  const char *text;  /* the promise, in one sentence */
  const char *
      reason; /* what was seen; "" when there is nothing to say. Valid during the callback */
} weir_conform_check;

/* Zeroed but for struct_size and what is needed: `type` or `ops`. Strings are borrowed for the call. */
typedef struct weir_conform_options {
  uint32_t struct_size;
  const char *type;                /* as in a pipeline file: a name, or "./libsink.so" */
  const struct weir_sink_ops *ops; /* a table of one's own instead */
  /* The sink's options in YAML, as they stand under `sinks: NAME:`; NULL: none. */
  const char *config;
  size_t config_size;
  const char *config_name; /* how messages call it */
  const char *base_dir;    /* where relative paths start; NULL: they stay */
  void *ctx;               /* first argument of both functions */
  /* Rows that a reader of the target sees now; of a keyed sink, rows that are not deleted. Called in this
   * process, never while a child writes. Without it rows cannot be shown to be there exactly once. */
  weir_status (*count)(void *ctx, uint64_t *rows, weir_error *err);
  /* Told each check as soon as it is over, in their order. */
  void (*check)(void *ctx, const weir_conform_check *check);
  /* How long a hook may stay away before it counts as stuck; 0: 30 s. */
  int64_t patience_ns;
  const char *only; /* one group or one check; NULL: all. Never certified then */
} weir_conform_options;

typedef struct weir_conform_summary {
  uint32_t struct_size; /* set before the call */
  /* 1: every check of what the contract claims passed */
  int32_t certified;
  weir_contract contract; /* zeroed when it could not be had */
  uint64_t passed, failed, not_shown, not_claimed, not_run;
} weir_conform_summary;

/* Runs the checks. WEIR_OK: they were run, and *out says what came of it. An error (of configuration, of
 * `count`, of the system) says that they could not be. */
WEIR_API weir_status weir_conform(const weir_conform_options *options,
                                  weir_conform_summary *out, weir_error *err);

#ifdef __cplusplus
}
#endif
#endif
