/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this room share. */
#ifndef CONNECTOR_INSIDE_H
#define CONNECTOR_INSIDE_H

#include "connector/connector.h"

/* In-tree tables, as their connectors give them; both end with NULL (builtin.c). */
extern const weir_sink_ops *const connector_builtin_sinks[];
extern const weir_source_ops *const connector_builtin_sources[];

/* One hook call under way. On the stack of the thread that makes it. */
typedef struct connector_turn {
  weir_call *call; /* NULL: no deadline, nobody can give up */
  uint64_t turn;
  bool given_up;  /* after leave: somebody took the result away */
  weir_error err; /* what the hook gets */
} connector_turn;

void connector_turn_enter(connector_turn *turn, weir_call *call);
/* The hook is back. WEIR_E_TIMEOUT when it was given up, else what the hook said, with turn->err made
 * to agree: a code, flags that fit, a message. */
weir_status connector_turn_leave(connector_turn *turn, const char *hook,
                                 weir_status status);
/* Whether a failure came after the flag or the deadline: what makes a generation terminal. */
bool connector_turn_cancelled(const connector_turn *turn);
/* A hook that only ran out of time says nothing about the rows: its failure is made RETRIABLE. Not for
 * commits, whose outcome is then in doubt. */
void connector_turn_mark_late(connector_turn *turn);
/* Writes turn->err to *err, "where: " before it. Returns its code. */
weir_status connector_turn_fail(connector_turn *turn, const char *where, weir_error *err);

/* The defaults of the tables (defaults.c), each named after its entry. */
int32_t connector_default_cancellation_policy(weir_sink *sink);
weir_status connector_default_bind_runtime_context(weir_sink *sink,
                                                   const weir_namespace *ns,
                                                   uint64_t participant_id,
                                                   weir_error *err);
weir_task_tracker *connector_default_terminal_task_tracker(weir_sink *sink);
weir_status connector_default_contract(weir_sink *sink, const weir_options *options,
                                       weir_contract *out, weir_error *err);
weir_status connector_default_keyed_mutation_key(weir_sink *sink,
                                                 const weir_options *options,
                                                 weir_names *out, weir_error *err);
weir_status connector_default_resolve_schema(weir_sink *sink, const weir_call *call,
                                             const weir_options *options,
                                             weir_schema *input, weir_binding *out,
                                             weir_error *err);
weir_status connector_default_prepare_schema(weir_sink *sink, const weir_call *call,
                                             const weir_options *options,
                                             weir_binding *binding, weir_error *err);
weir_status connector_default_checkpoint_artifact_intent(weir_sink *sink,
                                                         const weir_call *call,
                                                         uint64_t epoch, weir_bytes *out,
                                                         weir_error *err);
weir_status connector_default_begin_epoch(weir_sink *sink, const weir_call *call,
                                          uint64_t epoch, weir_error *err);
weir_status connector_default_pre_commit(weir_sink *sink, const weir_call *call,
                                         uint64_t epoch, weir_bytes *out,
                                         weir_error *err);
weir_status connector_default_rollback_epoch(weir_sink *sink, const weir_call *call,
                                             uint64_t epoch, weir_error *err);
uint64_t connector_default_flush_interval_ms(weir_sink *sink);
weir_status connector_default_flush(weir_sink *sink, const weir_call *call,
                                    weir_error *err);
weir_committer connector_default_as_coordinated_committer(weir_sink *sink);
weir_cleaner connector_default_coordinated_abort_cleaner(weir_sink *sink);
weir_status connector_default_verify(weir_sink *sink, const weir_call *call,
                                     const weir_options *options, const weir_verify *ask,
                                     weir_verified *out, weir_error *err);
weir_status connector_default_sweep(weir_sink *sink, const weir_call *call,
                                    const weir_options *options, const weir_sweep *ask,
                                    weir_swept *out, weir_error *err);
weir_status connector_default_take_over(void *state, const weir_call *call,
                                        const weir_namespace *ns, weir_error *err);
weir_status connector_default_find_cursors(void *state, const weir_call *call,
                                           const weir_namespace *ns,
                                           weir_cursor_list *out, weir_error *err);
int32_t connector_default_source_cancellation_policy(weir_source *source);
weir_status connector_default_source_contract(weir_source *source,
                                              const weir_options *options,
                                              weir_source_contract *out, weir_error *err);
weir_status connector_default_seek(weir_source *source, const weir_call *call,
                                   const weir_bytes *position, weir_error *err);
weir_status connector_default_committed(weir_source *source, const weir_call *call,
                                        uint64_t checkpoint, const weir_bytes *position,
                                        weir_error *err);
int32_t connector_default_schema_is_inferred(weir_source *source);
weir_status connector_default_use_schema(weir_source *source, weir_schema *schema,
                                         weir_error *err);
weir_status connector_default_describe_position(const weir_bytes *position,
                                                weir_bytes *out, weir_error *err);
int32_t connector_default_keeps_begin(weir_source *source);
weir_status connector_default_set_aside(weir_source *source, const weir_bad_rows *to,
                                        weir_error *err);

/* A namespace of one's own (spec.c). */
typedef struct connector_namespace {
  weir_namespace ns;
  char *pipeline, *sink_id;
} connector_namespace;
weir_status connector_namespace_init(connector_namespace *out, const weir_namespace *ns,
                                     weir_error *err);
void connector_namespace_done(connector_namespace *ns);

struct connector_spec {
  _Atomic size_t refs;
  const weir_sink_ops *sink; /* one of the two */
  const weir_source_ops *source;
  connector_host *host;
  weir_options *options;
};

#endif
