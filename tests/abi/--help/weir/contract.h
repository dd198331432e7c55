/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a connector promises, and what a pipeline asks for. Admission compares the two before
 * anything outside is touched.
 */
#ifndef WEIR_CONTRACT_H
#define WEIR_CONTRACT_H

#include <weir/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* the floor that a pipeline asks for */
enum { WEIR_BEST_EFFORT = 0, WEIR_AT_LEAST_ONCE = 1, WEIR_EXACTLY_ONCE = 2 };

/* consistency of a sink */
enum {
  WEIR_EPHEMERAL = 0, /* what was accepted may vanish */
  /* pre_commit OK: all that was accepted is durable at the target */
  WEIR_DURABLE_AT_LEAST_ONCE = 1,
  /* prepares in pre_commit, its committer publishes after the decision */
  WEIR_COMMITTABLE = 2
};

/* topology of a sink */
enum {
  WEIR_SINGLETON = 0,
  WEIR_MULTI_WRITER = 1, /* any number of participants in one process */
  WEIR_NODE_LOCAL = 2    /* one participant a machine */
};

/* input of a sink */
enum {
  WEIR_INPUT_APPEND = 0,
  WEIR_INPUT_KEYED = 1,    /* _op U and D by key */
  WEIR_INPUT_CHANGELOG = 2 /* every change as a row */
};

/* where what pre_commit prepared lies */
enum {
  WEIR_STAGING_NODE = 0,  /* on this machine only */
  WEIR_STAGING_SHARED = 1 /* reachable from every machine that may take the lease */
};

/* A zeroed contract is the fail-closed default: an ephemeral, append-only singleton. */
typedef struct weir_contract {
  uint32_t struct_size;
  int32_t consistency; /* WEIR_EPHEMERAL .. */
  int32_t topology;    /* WEIR_SINGLETON .. */
  int32_t input;       /* WEIR_INPUT_APPEND .. */
  int32_t staging;     /* WEIR_STAGING_NODE .. */
  /* 1: the committer may run beside writes and pre_commit, on a second thread */
  int32_t overlap;
  /* 1: the target's step is conditional on the cursor, so that a commit may follow one
   * whose thread never came back */
  int32_t cas_commit;
  /* 1: the target keeps deployment claims (cursor.h), so that prepare_schema has said whose it is */
  int32_t claims;
  /* committable sinks: decided attempts are gathered that long and committed as one batch, sooner at the
   * end of a run and when they near the bounds of a batch; 0: each at once */
  int64_t commit_interval_ns;
} weir_contract;

/* replay of a source */
enum {
  WEIR_SOURCE_EPHEMERAL = 0,
  /* the same position gives the same rows again, in the same order */
  WEIR_SOURCE_REPLAYABLE = 1,
  /* replays only what `committed` has not released; counts as replayable */
  WEIR_SOURCE_COMMIT_COUPLED = 2
};

typedef struct weir_source_contract {
  uint32_t struct_size;
  int32_t replay; /* WEIR_SOURCE_EPHEMERAL .. */
  int32_t keyed;  /* 1: its batches end with a Utf8 column `_op` */
} weir_source_contract;

#ifdef __cplusplus
}
#endif
#endif
