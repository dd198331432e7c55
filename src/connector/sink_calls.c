/* SPDX-License-Identifier: Apache-2.0 */
/* Sinks: the hooks between open and close. */
#include <string.h>

#include "arrow/arrow.h"
#include "connector/sink.h"

/* By pointer first: a source gives all its batches one schema. */
static weir_status sink_check_batch(connector_sink *sink, weir_batch *batch,
                                    weir_error *err) {
  weir_schema *schema = weir_batch_schema(batch);
  if (schema == sink->checked) return WEIR_OK;
  BASE_TRY(weir_schema_check(weir_schema_arrow(sink->schema), weir_schema_arrow(schema),
                             connector_spec_where(sink->spec), err));
  weir_schema_unref(sink->checked);
  sink->checked = weir_schema_ref(schema);
  return WEIR_OK;
}

weir_status connector_sink_write_batch(connector_sink *sink, weir_call *call,
                                       weir_batch *batch, weir_write_result *out,
                                       weir_error *err) {
  connector_turn turn;
  weir_write_result result = {0};
  BASE_TRY(arrow_batch_check_offsets(batch, err));
  if (sink->schema) BASE_TRY(sink_check_batch(sink, batch, err));
  BASE_TRY(connector_sink_enter(sink, CONNECTOR_HOOK_WRITE, call, &turn, err));
  weir_status status =
      sink->ops->write_batch(&sink->sink, call, batch, &result, &turn.err);
  BASE_TRY(
      connector_sink_leave(sink, CONNECTOR_HOOK_WRITE, &turn, status, SINK_FAILS, err));
  uint64_t rows = (uint64_t)weir_batch_rows(batch);
  if (result.records != rows) {
    connector_sink_move(sink, CONNECTOR_SINK_FAILED);
    return connector_sink_broken(sink, CONNECTOR_HOOK_WRITE, err,
                                 "answered OK for %llu of the %llu rows of a batch",
                                 (unsigned long long)result.records,
                                 (unsigned long long)rows);
  }
  *out = result;
  return WEIR_OK;
}

weir_status connector_sink_flush(connector_sink *sink, weir_call *call, weir_error *err) {
  connector_turn turn;
  BASE_TRY(connector_sink_enter(sink, CONNECTOR_HOOK_FLUSH, call, &turn, err));
  weir_status status = sink->ops->flush(&sink->sink, call, &turn.err);
  return connector_sink_leave(sink, CONNECTOR_HOOK_FLUSH, &turn, status, SINK_FAILS, err);
}

static weir_status sink_check_epoch(connector_sink *sink, connector_sink_hook hook,
                                    bool right, uint64_t epoch, weir_error *err) {
  if (epoch && right) return WEIR_OK;
  return weir_error_set(err, WEIR_E_INVALID_STATE, 0,
                        "%s: %s of epoch %llu after begin_epoch of %llu",
                        connector_spec_where(sink->spec), connector_sink_hook_name(hook),
                        (unsigned long long)epoch, (unsigned long long)sink->epoch);
}

/* Bytes that a hook answered: their size, and that they are there. Releases them when not. */
static weir_status sink_check_bytes(connector_sink *sink, connector_sink_hook hook,
                                    weir_bytes *bytes, size_t most, weir_error *err) {
  weir_status status = WEIR_OK;
  if (!bytes->release) return WEIR_OK;
  if (bytes->size > most) {
    status = connector_sink_broken(sink, hook, err,
                                   "answered %zu bytes; at most %zu are allowed",
                                   bytes->size, most);
  } else if (bytes->size > 0 && !bytes->data) {
    status = connector_sink_broken(
        sink, hook, err, "answered %zu bytes and no pointer to them", bytes->size);
  }
  if (status) weir_bytes_release(bytes);
  return status;
}

weir_status connector_sink_intent(connector_sink *sink, weir_call *call, uint64_t epoch,
                                  weir_bytes *out, weir_error *err) {
  connector_turn turn;
  weir_bytes intent = {0};
  BASE_TRY(
      sink_check_epoch(sink, CONNECTOR_HOOK_INTENT, epoch > sink->epoch, epoch, err));
  BASE_TRY(connector_sink_enter(sink, CONNECTOR_HOOK_INTENT, call, &turn, err));
  weir_status status =
      sink->ops->checkpoint_artifact_intent(&sink->sink, call, epoch, &intent, &turn.err);
  status =
      connector_sink_leave(sink, CONNECTOR_HOOK_INTENT, &turn, status, SINK_FAILS, err);
  if (status) {
    weir_bytes_release(&intent);
    return status;
  }
  status = sink_check_bytes(sink, CONNECTOR_HOOK_INTENT, &intent, WEIR_MAX_INTENT, err);
  if (status) {
    connector_sink_move(sink, CONNECTOR_SINK_FAILED);
    return status;
  }
  *out = intent;
  return WEIR_OK;
}

weir_status connector_sink_begin_epoch(connector_sink *sink, weir_call *call,
                                       uint64_t epoch, weir_error *err) {
  connector_turn turn;
  BASE_TRY(sink_check_epoch(sink, CONNECTOR_HOOK_BEGIN, epoch > sink->epoch, epoch, err));
  BASE_TRY(connector_sink_enter(sink, CONNECTOR_HOOK_BEGIN, call, &turn, err));
  weir_status status = sink->ops->begin_epoch(&sink->sink, call, epoch, &turn.err);
  status =
      connector_sink_leave(sink, CONNECTOR_HOOK_BEGIN, &turn, status, SINK_FAILS, err);
  /* A failed one that may be called again keeps its number free. */
  if (!status || connector_sink_state_of(sink) == CONNECTOR_SINK_FAILED)
    sink->epoch = epoch;
  if (!status) connector_sink_move(sink, CONNECTOR_SINK_EPOCH);
  return status;
}

weir_status connector_sink_pre_commit(connector_sink *sink, weir_call *call,
                                      uint64_t epoch, weir_bytes *out, weir_error *err) {
  connector_turn turn;
  weir_bytes descriptor = {0};
  bool committable = connector_sink_committable(sink);
  BASE_TRY(sink_check_epoch(sink, CONNECTOR_HOOK_PRE_COMMIT,
                            !committable || epoch == sink->epoch, epoch, err));
  BASE_TRY(connector_sink_enter(sink, CONNECTOR_HOOK_PRE_COMMIT, call, &turn, err));
  weir_status status =
      sink->ops->pre_commit(&sink->sink, call, epoch, &descriptor, &turn.err);
  status = connector_sink_leave(sink, CONNECTOR_HOOK_PRE_COMMIT, &turn, status,
                                SINK_FAILS, err);
  if (status) {
    weir_bytes_release(&descriptor);
    return status;
  }
  status = sink_check_bytes(sink, CONNECTOR_HOOK_PRE_COMMIT, &descriptor,
                            WEIR_MAX_DESCRIPTOR, err);
  if (!status && descriptor.release && !committable) {
    weir_bytes_release(&descriptor);
    status = connector_sink_broken(
        sink, CONNECTOR_HOOK_PRE_COMMIT, err,
        "answered a descriptor, which nobody would ever commit: the contract is "
        "not committable");
  }
  if (status) {
    connector_sink_move(sink, CONNECTOR_SINK_FAILED);
    return status;
  }
  if (committable) connector_sink_move(sink, CONNECTOR_SINK_PREPARED);
  *out = descriptor;
  return WEIR_OK;
}

weir_status connector_sink_rollback_epoch(connector_sink *sink, weir_call *call,
                                          uint64_t epoch, weir_error *err) {
  connector_turn turn;
  BASE_TRY(sink_check_epoch(sink, CONNECTOR_HOOK_ROLLBACK, true, epoch, err));
  BASE_TRY(connector_sink_enter(sink, CONNECTOR_HOOK_ROLLBACK, call, &turn, err));
  weir_status status = sink->ops->rollback_epoch(&sink->sink, call, epoch, &turn.err);
  BASE_TRY(connector_sink_leave(sink, CONNECTOR_HOOK_ROLLBACK, &turn, status, SINK_FAILS,
                                err));
  if (epoch == sink->epoch) connector_sink_move(sink, CONNECTOR_SINK_OPEN);
  return WEIR_OK;
}

weir_status connector_sink_close(connector_sink *sink, weir_call *call, weir_error *err) {
  connector_turn turn;
  BASE_TRY(connector_sink_enter(sink, CONNECTOR_HOOK_CLOSE, call, &turn, err));
  connector_sink_move(sink,
                      CONNECTOR_SINK_CLOSED); /* at most once, whatever it answers */
  weir_status status = sink->ops->close(&sink->sink, call, &turn.err);
  return connector_sink_leave(sink, CONNECTOR_HOOK_CLOSE, &turn, status, SINK_STAYS, err);
}

weir_status connector_sink_verify(connector_sink *sink, weir_call *call,
                                  const weir_verify *ask, weir_verified *out,
                                  weir_error *err) {
  connector_turn turn;
  weir_verified found = {.struct_size = sizeof(found)};
  BASE_TRY(connector_sink_enter(sink, CONNECTOR_HOOK_VERIFY, call, &turn, err));
  weir_status status =
      sink->ops->verify(&sink->sink, call, sink->spec->options, ask, &found, &turn.err);
  BASE_TRY(
      connector_sink_leave(sink, CONNECTOR_HOOK_VERIFY, &turn, status, SINK_STAYS, err));
  if (!(found.checked & WEIR_CHECKED_CURSOR) || !found.cursor.checkpoint)
    found.cursor = (weir_cursor){0};
  *out = found;
  return WEIR_OK;
}

weir_status connector_sink_sweep(connector_sink *sink, weir_call *call,
                                 const weir_sweep *ask, weir_swept *out,
                                 weir_error *err) {
  connector_turn turn;
  weir_swept found = {.struct_size = sizeof(found)};
  BASE_TRY(connector_sink_enter(sink, CONNECTOR_HOOK_SWEEP, call, &turn, err));
  weir_status status =
      sink->ops->sweep(&sink->sink, call, sink->spec->options, ask, &found, &turn.err);
  BASE_TRY(
      connector_sink_leave(sink, CONNECTOR_HOOK_SWEEP, &turn, status, SINK_STAYS, err));
  *out = found;
  return WEIR_OK;
}
