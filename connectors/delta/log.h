/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log's objects (PROTOCOL.md, sections "Delta Log Entries", "Checkpoints", "Last Checkpoint File"): which there
 * are, and which of them make up the table's newest version.
 */
#ifndef CONNECTORS_DELTA_LOG_H
#define CONNECTORS_DELTA_LOG_H

#include "checkpoint.h"

#define DELTA_ENTRY_MAX (1u << 30) /* bytes of one log entry */
#define DELTA_KEY_SIZE 64

/* "_delta_log/00000000000000000010.json" */
void delta_log_entry_key(int64_t version, char out[DELTA_KEY_SIZE]);

/* What is to be read: a checkpoint, and the entries behind it. */
typedef struct delta_segment {
  int64_t checkpoint; /* version that the checkpoint holds; -1: none */
  char **keys;        /* of its files: one, or all parts of a multi-part one */
  size_t n_keys;
  int64_t last; /* version of the last entry; -1 with checkpoint -1: there is no table */
} delta_segment;

/* The newest complete checkpoint and the last version: one GET of `_last_checkpoint` and one LIST; a second LIST
 * where that hint leads nowhere. */
weir_status delta_log_find(weir_object_store *store, const weir_call *call,
                           delta_segment *out, weir_error *err);
void delta_segment_done(delta_segment *segment); /* zeroed is fine */

/* The checkpoint's actions; with DELTA_CHECKPOINT_FILES also add and remove, those in sidecars too. Nothing
 * when the segment has none. */
weir_status delta_log_read_checkpoint(weir_object_store *store, const weir_call *call,
                                      const delta_segment *segment, uint32_t flags,
                                      delta_each each, void *ctx, weir_error *err);

/* One entry's actions. WEIR_E_NOT_FOUND when there is no such version. */
weir_status delta_log_read_entry(weir_object_store *store, const weir_call *call,
                                 int64_t version, delta_each each, void *ctx,
                                 weir_error *err);

/*
 * Writes the checkpoint of `version`, made of the segment and the entries up to that version, and `_last_checkpoint`:
 * a classic one following the V1 spec, which any table may have. What waits in memory is the entries' actions and the
 * compressed file, not the old checkpoint's actions. `now_ms` since 1970: tombstones older than the table's retention are
 * left out. WEIR_E_NOT_IMPLEMENTED for a table that wants its statistics as structs: it gets none from weir. Idempotent;
 * of two writers the latest wins, with the same content.
 */
weir_status delta_log_write_checkpoint(weir_object_store *store, const weir_call *call,
                                       const delta_segment *segment, int64_t version,
                                       int64_t now_ms, weir_error *err);

#endif
