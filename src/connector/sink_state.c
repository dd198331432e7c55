/* SPDX-License-Identifier: Apache-2.0 */
/* The lifecycle of a sink: one table. */
#include "connector/sink.h"

#define AT(state) (1u << CONNECTOR_SINK_##state)

/* States in which a hook may be called: of a committable sink, and of a weaker one. */
static const struct {
  const char *name;
  unsigned committable, weaker;
} sink_hooks[CONNECTOR_SINK_HOOKS] = {
    [CONNECTOR_HOOK_CONTRACT] = {"contract", AT(CREATED) | AT(BOUND),
                                 AT(CREATED) | AT(BOUND)},
    [CONNECTOR_HOOK_KEY] = {"keyed_mutation_key", AT(CREATED) | AT(BOUND),
                            AT(CREATED) | AT(BOUND)},
    [CONNECTOR_HOOK_BIND] = {"bind_runtime_context", AT(CREATED), AT(CREATED)},
    [CONNECTOR_HOOK_RESOLVE] = {"resolve_schema", AT(BOUND), AT(BOUND)},
    [CONNECTOR_HOOK_PREPARE] = {"prepare_schema", AT(BOUND), AT(BOUND)},
    [CONNECTOR_HOOK_OPEN] = {"open", AT(BOUND), AT(BOUND)},
    [CONNECTOR_HOOK_WRITE] = {"write_batch", AT(EPOCH), AT(OPEN)},
    [CONNECTOR_HOOK_SCHEMA] = {"schema", AT(OPEN) | AT(EPOCH) | AT(PREPARED), AT(OPEN)},
    [CONNECTOR_HOOK_INTENT] = {"checkpoint_artifact_intent",
                               AT(OPEN) | AT(EPOCH) | AT(PREPARED), 0},
    [CONNECTOR_HOOK_BEGIN] = {"begin_epoch", AT(OPEN) | AT(PREPARED), 0},
    [CONNECTOR_HOOK_PRE_COMMIT] = {"pre_commit", AT(EPOCH), AT(OPEN)},
    [CONNECTOR_HOOK_ROLLBACK] = {"rollback_epoch",
                                 AT(OPEN) | AT(EPOCH) | AT(PREPARED) | AT(FAILED), 0},
    /* A committable sink flushes through its checkpoint protocol alone. */
    [CONNECTOR_HOOK_FLUSH] = {"flush", 0, AT(OPEN)},
    [CONNECTOR_HOOK_CLOSE] = {"close", AT(OPEN) | AT(EPOCH) | AT(PREPARED) | AT(FAILED),
                              AT(OPEN) | AT(FAILED)},
    /* A failed writer's committer may still publish what was decided. */
    [CONNECTOR_HOOK_COMMITTER] = {"commit",
                                  AT(OPEN) | AT(EPOCH) | AT(PREPARED) | AT(FAILED), 0},
    [CONNECTOR_HOOK_VERIFY] = {"verify", AT(BOUND), AT(BOUND)},
    [CONNECTOR_HOOK_SWEEP] = {"sweep", AT(BOUND), AT(BOUND)},
    [CONNECTOR_HOOK_CLEANER] = {"coordinated_abort_cleaner",
                                AT(BOUND) | AT(OPEN) | AT(EPOCH) | AT(PREPARED) |
                                    AT(FAILED) | AT(CLOSED),
                                AT(BOUND) | AT(OPEN) | AT(FAILED) | AT(CLOSED)},
};

bool connector_sink_may(connector_sink_state state, connector_sink_hook hook,
                        bool committable) {
  unsigned at = committable ? sink_hooks[hook].committable : sink_hooks[hook].weaker;
  return at >> state & 1;
}

const char *connector_sink_hook_name(connector_sink_hook hook) {
  return sink_hooks[hook].name;
}

const char *connector_sink_state_name(connector_sink_state state) {
  static const char *const names[CONNECTOR_SINK_STATES] = {
      [CONNECTOR_SINK_CREATED] = "created",   [CONNECTOR_SINK_BOUND] = "bound",
      [CONNECTOR_SINK_OPEN] = "open",         [CONNECTOR_SINK_EPOCH] = "in an epoch",
      [CONNECTOR_SINK_PREPARED] = "prepared", [CONNECTOR_SINK_FAILED] = "failed",
      [CONNECTOR_SINK_CLOSED] = "closed",     [CONNECTOR_SINK_RETIRED] = "retired",
  };
  return names[state];
}
