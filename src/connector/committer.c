/* SPDX-License-Identifier: Apache-2.0 */
/* Committers and cleaners. Committer calls may come from a second thread beside the sink's own (contract
 * `overlap`), so nothing here changes the sink but its retirement, which is atomic. */
#include <stdlib.h>
#include <string.h>

#include "connector/sink.h"

weir_status connector_sink_ask_committer(connector_sink *sink, weir_error *err) {
  weir_committer committer = sink->ops->as_coordinated_committer(&sink->sink);
  bool committable = connector_sink_committable(sink);
  if (!committer.ops && committable) {
    return connector_sink_broken(sink, CONNECTOR_HOOK_OPEN, err,
                                 "gave no committer, but its contract is committable");
  }
  if (committer.ops && !committable) {
    return connector_sink_broken(sink, CONNECTOR_HOOK_OPEN, err,
                                 "gave a committer, but its contract is not committable");
  }
  if (!committer.ops) return WEIR_OK;
  weir_status status = connector_fill_committer(committer.ops, &sink->committer_ops, err);
  if (status)
    return weir_error_prefix(err, status, "%s", connector_spec_where(sink->spec));
  sink->committer_state = committer.state;
  sink->has_committer = true;
  return WEIR_OK;
}

static weir_status committer_enter(connector_sink *sink, weir_call *call,
                                   connector_turn *turn, weir_error *err) {
  return connector_sink_enter(sink, CONNECTOR_HOOK_COMMITTER, call, turn, err);
}

static weir_status committer_leave(connector_sink *sink, connector_turn *turn,
                                   const char *hook, weir_status status,
                                   bool may_have_landed, weir_error *err) {
  status = connector_turn_leave(turn, hook, status);
  if (!status) return WEIR_OK;
  if (connector_turn_cancelled(turn) && !sink->cancel_safe) connector_sink_retire(sink);
  if (may_have_landed && !(turn->err.flags & WEIR_ERR_RETRIABLE) &&
      (turn->given_up || status == WEIR_E_TIMEOUT || status == WEIR_E_CANCELLED)) {
    turn->err.flags |= WEIR_ERR_IN_DOUBT;
  }
  if (!may_have_landed) connector_turn_mark_late(turn);
  return connector_turn_fail(turn, connector_spec_where(sink->spec), err);
}

weir_status connector_sink_take_over(connector_sink *sink, weir_call *call,
                                     weir_error *err) {
  connector_turn turn;
  BASE_TRY(committer_enter(sink, call, &turn, err));
  weir_status status =
      sink->committer_ops.take_over(sink->committer_state, call, &sink->ns.ns, &turn.err);
  return committer_leave(sink, &turn, "take_over", status, false, err);
}

/* A cursor that names an attempt names its token too. */
static weir_status committer_check_cursor(connector_sink *sink, const weir_cursor *cursor,
                                          const char *hook, weir_error *err) {
  if (cursor->checkpoint == 0 || cursor->token != 0) return WEIR_OK;
  return connector_sink_broken(sink, CONNECTOR_HOOK_COMMITTER, err,
                               "(%s) answered a cursor of attempt %llu without a token",
                               hook, (unsigned long long)cursor->checkpoint);
}

weir_status connector_sink_observe_cursor(connector_sink *sink, weir_call *call,
                                          weir_cursor *out, weir_error *err) {
  connector_turn turn;
  weir_cursor cursor = {0};
  BASE_TRY(committer_enter(sink, call, &turn, err));
  weir_status status = sink->committer_ops.observe_cursor(
      sink->committer_state, call, &sink->ns.ns, &cursor, &turn.err);
  BASE_TRY(committer_leave(sink, &turn, "observe_cursor", status, false, err));
  BASE_TRY(committer_check_cursor(sink, &cursor, "observe_cursor", err));
  if (cursor.checkpoint == 0) cursor = (weir_cursor){0};
  *out = cursor;
  return WEIR_OK;
}

weir_status connector_sink_find_cursors(connector_sink *sink, weir_call *call,
                                        weir_cursor_list *out, weir_error *err) {
  connector_turn turn;
  weir_cursor_list list = {0};
  BASE_TRY(committer_enter(sink, call, &turn, err));
  weir_status status = sink->committer_ops.find_cursors(sink->committer_state, call,
                                                        &sink->ns.ns, &list, &turn.err);
  status = committer_leave(sink, &turn, "find_cursors", status, false, err);
  if (!status && list.n && !(list.v && list.release)) {
    status = connector_sink_broken(
        sink, CONNECTOR_HOOK_COMMITTER, err,
        "(find_cursors) answered %zu cursors and no list of them", list.n);
  }
  for (size_t i = 0; i < list.n && !status; i++) {
    status = committer_check_cursor(sink, &list.v[i].cursor, "find_cursors", err);
  }
  if (status) {
    if (list.release) list.release(&list);
    return status;
  }
  *out = list;
  return WEIR_OK;
}

static weir_status committer_bad_batch(connector_sink *sink, uint64_t attempt,
                                       const char *why, weir_error *err) {
  return weir_error_set(
      err, WEIR_E_INTERNAL, 0, "%s: a commit batch that is not valid: attempt %llu %s",
      connector_spec_where(sink->spec), (unsigned long long)attempt, why);
}

/* Bounds and order, before any connector I/O. */
static weir_status committer_check_batch(connector_sink *sink,
                                         const weir_commit_batch *batch,
                                         weir_error *err) {
  uint64_t before = batch->predecessor.checkpoint;
  size_t entries = 0, bytes = 0;
  if (batch->n_attempts == 0)
    return committer_bad_batch(sink, before, "has no successor in it", err);
  for (size_t i = 0; i < batch->n_attempts; i++) {
    const weir_commit_attempt *a = &batch->attempts[i];
    uint64_t number = a->cursor.checkpoint;
    if (number <= before)
      return committer_bad_batch(sink, number, "is out of order", err);
    if (a->cursor.token == 0)
      return committer_bad_batch(sink, number, "has no token", err);
    before = number;
    entries += a->n_entries;
    for (size_t j = 0; j < a->n_entries; j++) {
      const weir_commit_entry *e = &a->entries[j];
      uint64_t last = j ? a->entries[j - 1].participant_id : 0;
      if (e->participant_id <= last) {
        return committer_bad_batch(sink, number, "has its participants out of order",
                                   err);
      }
      size_t size = e->present ? e->size : 0;
      if (size > WEIR_MAX_DESCRIPTOR || (size > 0 && !e->descriptor)) {
        return committer_bad_batch(sink, number, "has a descriptor that is too large",
                                   err);
      }
      bytes += size;
    }
    if (entries > WEIR_MAX_BATCH_ENTRIES || bytes > WEIR_MAX_BATCH_DESCRIPTORS) {
      return committer_bad_batch(sink, number, "exceeds the bounds of a batch", err);
    }
  }
  return WEIR_OK;
}

weir_status connector_sink_commit(connector_sink *sink, weir_call *call,
                                  const weir_commit_batch *batch, weir_cursor *out,
                                  weir_error *err) {
  connector_turn turn;
  weir_cursor cursor = {0};
  weir_commit_batch copy = *batch;
  copy.struct_size = sizeof(copy);
  if (!copy.ns) copy.ns = &sink->ns.ns;
  BASE_TRY(committer_check_batch(sink, batch, err));
  BASE_TRY(committer_enter(sink, call, &turn, err));
  weir_status status = sink->committer_ops.commit_aggregated(sink->committer_state, call,
                                                             &copy, &cursor, &turn.err);
  BASE_TRY(committer_leave(sink, &turn, "commit_aggregated", status, true, err));
  const weir_cursor *want = &batch->attempts[batch->n_attempts - 1].cursor;
  if (!weir_cursor_equal(&cursor, want)) {
    return connector_sink_broken(
        sink, CONNECTOR_HOOK_COMMITTER, err,
        "answered OK with the cursor of attempt %llu (token %llu), not that of "
        "attempt %llu (token %llu), or with another digest",
        (unsigned long long)cursor.checkpoint, (unsigned long long)cursor.token,
        (unsigned long long)want->checkpoint, (unsigned long long)want->token);
  }
  *out = cursor;
  return WEIR_OK;
}

/* ---- cleaners ---------------------------------------------------------------------------------- */

struct connector_cleaner {
  connector_spec *spec;
  weir_cleaner_ops ops; /* complete */
  void *state;
  connector_namespace ns;
};

weir_status connector_sink_cleaner(connector_sink *sink, connector_cleaner **out,
                                   weir_error *err) {
  connector_turn turn;
  BASE_TRY(connector_sink_enter(sink, CONNECTOR_HOOK_CLEANER, NULL, &turn, err));
  connector_cleaner *cleaner = base_calloc(1, sizeof(*cleaner), err);
  weir_status status =
      cleaner ? connector_namespace_init(&cleaner->ns, &sink->ns.ns, err) : WEIR_E_NOMEM;
  if (status) {
    free(cleaner);
    return status;
  }
  cleaner->spec = connector_spec_ref(sink->spec);
  weir_cleaner got = sink->ops->coordinated_abort_cleaner(&sink->sink);
  if (got.ops) {
    status = connector_fill_cleaner(got.ops, &cleaner->ops, err);
    if (!status) {
      cleaner->state = got.state;
      *out = cleaner;
      return WEIR_OK;
    }
    weir_error_prefix(err, status, "%s", connector_spec_where(sink->spec));
  } else {
    *out = NULL;
  }
  connector_cleaner_free(cleaner);
  return status;
}

void connector_cleaner_free(connector_cleaner *cleaner) {
  if (!cleaner) return;
  if (cleaner->ops.unref) cleaner->ops.unref(cleaner->state);
  connector_namespace_done(&cleaner->ns);
  connector_spec_unref(cleaner->spec);
  free(cleaner);
}

weir_status connector_cleaner_clean(connector_cleaner *cleaner, weir_call *call,
                                    const weir_abort_batch *batch, weir_error *err) {
  connector_turn turn;
  weir_abort_batch copy = *batch;
  copy.struct_size = sizeof(copy);
  if (!copy.ns) copy.ns = &cleaner->ns.ns;
  for (size_t i = 1; i < batch->n_entries; i++) {
    const weir_abort_entry *a = &batch->entries[i - 1], *b = &batch->entries[i];
    if (a->checkpoint < b->checkpoint ||
        (a->checkpoint == b->checkpoint && a->participant_id < b->participant_id)) {
      continue;
    }
    return weir_error_set(err, WEIR_E_INTERNAL, 0,
                          "%s: an abort batch that is out of order",
                          connector_spec_where(cleaner->spec));
  }
  connector_turn_enter(&turn, call);
  weir_status status = cleaner->ops.clean(cleaner->state, call, &copy, &turn.err);
  if (!connector_turn_leave(&turn, "clean", status)) return WEIR_OK;
  connector_turn_mark_late(&turn);
  return connector_turn_fail(&turn, connector_spec_where(cleaner->spec), err);
}
