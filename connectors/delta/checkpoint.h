/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checkpoints as Parquet (PROTOCOL.md, sections "Checkpoints" and "Checkpoint Schema"): classic ones, parts of
 * multi-part ones, UUID-named ones, sidecars. Each row is an action; columns that nobody here knows are not read.
 */
#ifndef CONNECTORS_DELTA_CHECKPOINT_H
#define CONNECTORS_DELTA_CHECKPOINT_H

#include <weir/object.h>

#include "action.h"

enum { DELTA_CHECKPOINT_FILES = 1 /* also add and remove, which are most of it */ };

/* Calls `each` for the actions of the Parquet file `key`, in its order. Memory is that of one batch of rows. */
weir_status delta_checkpoint_read(weir_object_store *store, const weir_call *call,
                                  const char *key, uint32_t flags, delta_each each,
                                  void *ctx, weir_error *err);

#endif
