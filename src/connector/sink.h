/* SPDX-License-Identifier: Apache-2.0 */
/* A sink's generation, inside. */
#ifndef CONNECTOR_SINK_H
#define CONNECTOR_SINK_H

#include "connector/inside.h"

struct connector_sink {
  _Atomic size_t refs;
  _Atomic int
      state; /* connector_sink_state; RETIRED is final and may come from any thread */
  connector_spec *spec;
  const weir_sink_ops *ops; /* complete */
  weir_sink sink;
  uint64_t participant, generation;
  bool cancel_safe;
  bool has_contract;
  weir_contract contract;
  connector_namespace ns;
  weir_binding binding;             /* one's own: a late thread still finds it */
  weir_schema *schema;              /* what write_batch expects */
  weir_schema *checked;             /* the last batch's schema, known to fit */
  uint64_t epoch;                   /* begun last; 0: none */
  weir_committer_ops committer_ops; /* complete; set once by open */
  void *committer_state;
  bool has_committer;
};

/* What a failure that is not to be repeated does to the lifecycle. */
typedef enum sink_failure {
  SINK_STAYS,  /* nothing: the hook has no state of its own */
  SINK_FAILS,  /* FAILED, unless the error says that the call may be repeated */
  SINK_CLOSES, /* CLOSED, unless the error says that the call may be repeated */
} sink_failure;

/* State, call and error of one hook. On WEIR_OK from enter, leave must follow. */
weir_status connector_sink_enter(connector_sink *sink, connector_sink_hook hook,
                                 weir_call *call, connector_turn *turn, weir_error *err);
weir_status connector_sink_leave(connector_sink *sink, connector_sink_hook hook,
                                 connector_turn *turn, weir_status status,
                                 sink_failure failure, weir_error *err);
/* An answer that breaks the contract of the hook: WEIR_E_INTERNAL, "where: hook what". */
weir_status connector_sink_broken(connector_sink *sink, connector_sink_hook hook,
                                  weir_error *err, const char *fmt, ...)
    WEIR_PRINTF(4, 5);
/* Moves on, unless the generation was retired meanwhile. */
void connector_sink_move(connector_sink *sink, connector_sink_state to);
bool connector_sink_committable(const connector_sink *sink);
/* Committable without a committer, or the reverse, is refused here. After the hook open. */
weir_status connector_sink_ask_committer(connector_sink *sink, weir_error *err);

#endif
