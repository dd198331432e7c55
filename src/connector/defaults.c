/* SPDX-License-Identifier: Apache-2.0 */
/* What an entry that a connector leaves NULL does: the defaults that <weir/sink.h> and <weir/source.h>
 * name. */
#include "connector/inside.h"

int32_t connector_default_cancellation_policy(weir_sink *sink) {
  (void)sink;
  return WEIR_CANCEL_RETIRE;
}

weir_status connector_default_bind_runtime_context(weir_sink *sink,
                                                   const weir_namespace *ns,
                                                   uint64_t participant_id,
                                                   weir_error *err) {
  (void)sink, (void)ns, (void)participant_id, (void)err;
  return WEIR_OK;
}

weir_task_tracker *connector_default_terminal_task_tracker(weir_sink *sink) {
  (void)sink;
  return NULL;
}

/* Fail-closed: *out stays zeroed, an ephemeral append-only singleton. */
weir_status connector_default_contract(weir_sink *sink, const weir_options *options,
                                       weir_contract *out, weir_error *err) {
  (void)sink, (void)options, (void)out, (void)err;
  return WEIR_OK;
}

weir_status connector_default_keyed_mutation_key(weir_sink *sink,
                                                 const weir_options *options,
                                                 weir_names *out, weir_error *err) {
  (void)sink, (void)options, (void)out, (void)err;
  return WEIR_OK;
}

weir_status connector_default_resolve_schema(weir_sink *sink, const weir_call *call,
                                             const weir_options *options,
                                             weir_schema *input, weir_binding *out,
                                             weir_error *err) {
  (void)sink, (void)call, (void)options;
  return weir_binding_logical(input, out, err);
}

weir_status connector_default_prepare_schema(weir_sink *sink, const weir_call *call,
                                             const weir_options *options,
                                             weir_binding *binding, weir_error *err) {
  (void)sink, (void)call, (void)options, (void)binding, (void)err;
  return WEIR_OK;
}

weir_status connector_default_checkpoint_artifact_intent(weir_sink *sink,
                                                         const weir_call *call,
                                                         uint64_t epoch, weir_bytes *out,
                                                         weir_error *err) {
  (void)sink, (void)call, (void)epoch, (void)out, (void)err;
  return WEIR_OK;
}

weir_status connector_default_begin_epoch(weir_sink *sink, const weir_call *call,
                                          uint64_t epoch, weir_error *err) {
  (void)sink, (void)call, (void)epoch, (void)err;
  return WEIR_OK;
}

/* sink->ops is the complete table here: the runtime puts it there after create. */
weir_status connector_default_pre_commit(weir_sink *sink, const weir_call *call,
                                         uint64_t epoch, weir_bytes *out,
                                         weir_error *err) {
  (void)epoch, (void)out;
  if (sink->ops->as_coordinated_committer(sink).ops) {
    return weir_error_set(
        err, WEIR_E_INVALID_CONFIG, 0,
        "the sink has a committer but no pre_commit of its own, so its epochs would end "
        "without a commit");
  }
  return sink->ops->flush(sink, call, err);
}

weir_status connector_default_rollback_epoch(weir_sink *sink, const weir_call *call,
                                             uint64_t epoch, weir_error *err) {
  (void)sink, (void)call, (void)epoch, (void)err;
  return WEIR_OK;
}

uint64_t connector_default_flush_interval_ms(weir_sink *sink) {
  (void)sink;
  return 5000;
}

weir_status connector_default_flush(weir_sink *sink, const weir_call *call,
                                    weir_error *err) {
  (void)sink, (void)call, (void)err;
  return WEIR_OK;
}

weir_committer connector_default_as_coordinated_committer(weir_sink *sink) {
  (void)sink;
  return (weir_committer){NULL, NULL};
}

weir_cleaner connector_default_coordinated_abort_cleaner(weir_sink *sink) {
  (void)sink;
  return (weir_cleaner){NULL, NULL};
}

weir_status connector_default_verify(weir_sink *sink, const weir_call *call,
                                     const weir_options *options, const weir_verify *ask,
                                     weir_verified *out, weir_error *err) {
  (void)sink, (void)call, (void)options, (void)ask, (void)out, (void)err;
  return WEIR_OK;
}

weir_status connector_default_sweep(weir_sink *sink, const weir_call *call,
                                    const weir_options *options, const weir_sweep *ask,
                                    weir_swept *out, weir_error *err) {
  (void)sink, (void)call, (void)options, (void)ask, (void)out, (void)err;
  return WEIR_OK;
}

weir_status connector_default_take_over(void *state, const weir_call *call,
                                        const weir_namespace *ns, weir_error *err) {
  (void)state, (void)call, (void)ns, (void)err;
  return WEIR_OK;
}

weir_status connector_default_find_cursors(void *state, const weir_call *call,
                                           const weir_namespace *ns,
                                           weir_cursor_list *out, weir_error *err) {
  (void)state, (void)call, (void)ns, (void)out, (void)err;
  return WEIR_OK;
}

int32_t connector_default_source_cancellation_policy(weir_source *source) {
  (void)source;
  return WEIR_CANCEL_RETIRE;
}

weir_status connector_default_source_contract(weir_source *source,
                                              const weir_options *options,
                                              weir_source_contract *out,
                                              weir_error *err) {
  (void)source, (void)options, (void)out, (void)err;
  return WEIR_OK;
}

weir_status connector_default_seek(weir_source *source, const weir_call *call,
                                   const weir_bytes *position, weir_error *err) {
  (void)source, (void)call, (void)position;
  return weir_error_set(err, WEIR_E_NOT_IMPLEMENTED, 0,
                        "this source cannot go back to a position");
}

weir_status connector_default_committed(weir_source *source, const weir_call *call,
                                        uint64_t checkpoint, const weir_bytes *position,
                                        weir_error *err) {
  (void)source, (void)call, (void)checkpoint, (void)position, (void)err;
  return WEIR_OK;
}

int32_t connector_default_schema_is_inferred(weir_source *source) {
  (void)source;
  return 0;
}

weir_status connector_default_use_schema(weir_source *source, weir_schema *schema,
                                         weir_error *err) {
  (void)source, (void)schema, (void)err;
  return WEIR_OK;
}

weir_status connector_default_describe_position(const weir_bytes *position,
                                                weir_bytes *out, weir_error *err) {
  (void)position, (void)out, (void)err;
  return WEIR_OK;
}

int32_t connector_default_keeps_begin(weir_source *source) {
  (void)source;
  return 0;
}

weir_status connector_default_set_aside(weir_source *source, const weir_bad_rows *to,
                                        weir_error *err) {
  (void)source, (void)to;
  return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                        "this connector has no rows that could be bad one by one; leave "
                        "'on_bad_row' out");
}
