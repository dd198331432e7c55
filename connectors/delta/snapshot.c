/* SPDX-License-Identifier: Apache-2.0 */
#include "snapshot.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void delta_snapshot_done(delta_snapshot *s) {
  for (size_t i = 0; i < s->n_txns; i++) free((char *)(uintptr_t)s->txns[i].app_id.p);
  free(s->txns);
  delta_arena_done(&s->protocol_arena);
  delta_arena_done(&s->metadata_arena);
  memset(s, 0, sizeof(*s));
}

static weir_status take_txn(delta_snapshot *s, const delta_txn *txn, weir_error *err) {
  size_t n = strlen(s->prefix);
  if (txn->app_id.n < n || memcmp(txn->app_id.p, s->prefix, n) != 0) return WEIR_OK;
  for (size_t i = 0; i < s->n_txns; i++) {
    if (!delta_text_same(s->txns[i].app_id, txn->app_id)) continue;
    s->txns[i].version = txn->version;
    s->txns[i].last_updated = txn->last_updated;
    return WEIR_OK;
  }
  delta_txn *v = realloc(s->txns, (s->n_txns + 1) * sizeof(*v));
  if (!v) return delta_no_memory(err);
  s->txns = v;
  char *id = malloc(txn->app_id.n + 1);
  if (!id) return delta_no_memory(err);
  memcpy(id, txn->app_id.p, txn->app_id.n);
  id[txn->app_id.n] = 0;
  v[s->n_txns] = *txn;
  v[s->n_txns++].app_id.p = id;
  return WEIR_OK;
}

static weir_status take(void *ctx, const delta_action *action, weir_error *err) {
  delta_snapshot *s = ctx;
  bool ok = true;
  switch (action->kind) {
    case DELTA_COMMIT_INFO:
      s->in_commit_timestamp = action->u.in_commit_timestamp;
      break;
    case DELTA_PROTOCOL:
      delta_arena_reset(&s->protocol_arena);
      ok = delta_protocol_copy(&s->protocol_arena, &action->u.protocol, &s->protocol);
      s->have_protocol = true;
      break;
    case DELTA_METADATA:
      delta_arena_reset(&s->metadata_arena);
      ok = delta_metadata_copy(&s->metadata_arena, &action->u.metadata, &s->metadata);
      s->have_metadata = true;
      break;
    case DELTA_TXN:
      return take_txn(s, &action->u.txn, err);
    default:
      break;
  }
  return ok ? WEIR_OK : delta_no_memory(err);
}

static weir_status take_commit_info(void *ctx, const delta_action *action,
                                    weir_error *err) {
  return action->kind == DELTA_COMMIT_INFO ? take(ctx, action, err) : WEIR_OK;
}

static weir_status take_entry(weir_object_store *store, const weir_call *call,
                              delta_snapshot *s, int64_t version, weir_error *err) {
  s->in_commit_timestamp = (delta_long){0};
  DELTA_TRY(delta_log_read_entry(store, call, version, take, s, err));
  s->version = version;
  return WEIR_OK;
}

static weir_status take_segment(weir_object_store *store, const weir_call *call,
                                const delta_segment *segment, delta_snapshot *s,
                                weir_error *err) {
  DELTA_TRY(delta_log_read_checkpoint(store, call, segment, 0, take, s, err));
  s->version = s->checkpoint = segment->checkpoint;
  for (int64_t version = segment->checkpoint + 1; version <= segment->last; version++) {
    weir_status status = take_entry(store, call, s, version, err);
    if (status == WEIR_E_NOT_FOUND) {
      return weir_error_set(err, WEIR_E_CORRUPT, 0,
                            "the log of the table at '%s' lacks version %" PRId64
                            ", though a later one is there",
                            weir_object_store_location(store), version);
    }
    if (status) return status;
  }
  /* Checkpoints do not keep commitInfo, so it is asked of the entry, if that was not cleaned up. */
  if (segment->checkpoint >= 0 && segment->last == segment->checkpoint) {
    weir_error local = {0};
    weir_status status = delta_log_read_entry(store, call, segment->checkpoint,
                                              take_commit_info, s, &local);
    if (status && status != WEIR_E_NOT_FOUND) {
      if (err) *err = local;
      return status;
    }
  }
  if (s->version >= 0 && (!s->have_protocol || !s->have_metadata)) {
    return weir_error_set(err, WEIR_E_CORRUPT, 0,
                          "the log of the table at '%s' has no %s action up to version "
                          "%" PRId64,
                          weir_object_store_location(store),
                          s->have_protocol ? "metaData" : "protocol", s->version);
  }
  return WEIR_OK;
}

weir_status delta_snapshot_open(weir_object_store *store, const weir_call *call,
                                const char *prefix, delta_snapshot *out,
                                weir_error *err) {
  delta_snapshot s = {.version = -1, .checkpoint = -1, .prefix = prefix};
  delta_segment segment = {0};
  DELTA_TRY(delta_log_find(store, call, &segment, err));
  weir_status status = take_segment(store, call, &segment, &s, err);
  if (!status && segment.last >= 0)
    status =
        delta_snapshot_refresh(store, call, &s, err); /* what came while it was read */
  delta_segment_done(&segment);
  if (status)
    delta_snapshot_done(&s);
  else
    *out = s;
  return status;
}

weir_status delta_snapshot_refresh(weir_object_store *store, const weir_call *call,
                                   delta_snapshot *s, weir_error *err) {
  for (;;) {
    weir_error local = {0};
    delta_long kept = s->in_commit_timestamp;
    weir_status status = take_entry(store, call, s, s->version + 1, &local);
    if (status == WEIR_OK) continue;
    if (status == WEIR_E_NOT_FOUND) {
      s->in_commit_timestamp = kept;
      return WEIR_OK;
    }
    if (err) *err = local;
    return status;
  }
}

int64_t delta_snapshot_txn(const delta_snapshot *s, const char *app_id, bool *found) {
  for (size_t i = 0; i < s->n_txns; i++) {
    if (strcmp(s->txns[i].app_id.p, app_id) != 0) continue;
    *found = true;
    return s->txns[i].version;
  }
  *found = false;
  return 0;
}
