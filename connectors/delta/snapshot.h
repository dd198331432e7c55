/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an appender knows of a version of the table (PROTOCOL.md, section "Action Reconciliation"): everything but its
 * files, so that memory does not grow with them.
 */
#ifndef CONNECTORS_DELTA_SNAPSHOT_H
#define CONNECTORS_DELTA_SNAPSHOT_H

#include "log.h"

typedef struct delta_snapshot {
  int64_t version;    /* -1: there is no table */
  int64_t checkpoint; /* version of the newest one when it was opened; -1: none */
  delta_protocol protocol;
  delta_metadata metadata;
  delta_long in_commit_timestamp; /* of this version's entry: ms */
  delta_txn *txns;                /* those whose appId begins with `prefix` */
  size_t n_txns;

  const char *prefix; /* borrowed */
  bool have_protocol, have_metadata;
  delta_arena protocol_arena, metadata_arena;
} delta_snapshot;

/* The newest version. `prefix` lives as long as the snapshot. */
weir_status delta_snapshot_open(weir_object_store *store, const weir_call *call,
                                const char *prefix, delta_snapshot *out, weir_error *err);
/* Entries that have come since: one GET each, and one that finds nothing. After a failure the snapshot is only to be
 * freed. */
weir_status delta_snapshot_refresh(weir_object_store *store, const weir_call *call,
                                   delta_snapshot *snapshot, weir_error *err);
void delta_snapshot_done(delta_snapshot *snapshot); /* zeroed is fine */

/* *found is false where no such transaction identifier was ever committed. */
int64_t delta_snapshot_txn(const delta_snapshot *snapshot, const char *app_id,
                           bool *found);

#endif
