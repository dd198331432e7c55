/* SPDX-License-Identifier: Apache-2.0 */
/* Sinks: from create to open, and what every checked call does first and last. */
#include "connector/sink.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *sink_where(const connector_sink *sink) {
  return connector_spec_where(sink->spec);
}

bool connector_sink_committable(const connector_sink *sink) {
  return sink->contract.consistency == WEIR_COMMITTABLE;
}

connector_sink_state connector_sink_state_of(const connector_sink *sink) {
  return (connector_sink_state)atomic_load(&sink->state);
}

uint64_t connector_sink_generation(const connector_sink *sink) {
  return sink->generation;
}

bool connector_sink_is_cancel_safe(const connector_sink *sink) {
  return sink->cancel_safe;
}

void connector_sink_retire(connector_sink *sink) {
  atomic_store(&sink->state, CONNECTOR_SINK_RETIRED);
}

void connector_sink_move(connector_sink *sink, connector_sink_state to) {
  int from = atomic_load(&sink->state);
  while (from != CONNECTOR_SINK_RETIRED &&
         !atomic_compare_exchange_weak(&sink->state, &from, (int)to)) {
  }
}

weir_status connector_sink_enter(connector_sink *sink, connector_sink_hook hook,
                                 weir_call *call, connector_turn *turn, weir_error *err) {
  connector_sink_state state = connector_sink_state_of(sink);
  if (!connector_sink_may(state, hook, connector_sink_committable(sink))) {
    return weir_error_set(
        err, WEIR_E_INVALID_STATE, 0,
        "%s: %s must not be called on participant %llu, generation %llu, which is %s",
        sink_where(sink), connector_sink_hook_name(hook),
        (unsigned long long)sink->participant, (unsigned long long)sink->generation,
        connector_sink_state_name(state));
  }
  connector_turn_enter(turn, call);
  return WEIR_OK;
}

weir_status connector_sink_leave(connector_sink *sink, connector_sink_hook hook,
                                 connector_turn *turn, weir_status status,
                                 sink_failure failure, weir_error *err) {
  status = connector_turn_leave(turn, connector_sink_hook_name(hook), status);
  if (!status) return WEIR_OK;
  connector_turn_mark_late(turn);
  if (connector_turn_cancelled(turn) && !sink->cancel_safe) {
    connector_sink_retire(sink);
  } else if (failure != SINK_STAYS && !(turn->err.flags & WEIR_ERR_RETRIABLE) &&
             !(hook == CONNECTOR_HOOK_WRITE && turn->err.flags & WEIR_ERR_BAD_DATA)) {
    connector_sink_move(
        sink, failure == SINK_FAILS ? CONNECTOR_SINK_FAILED : CONNECTOR_SINK_CLOSED);
  }
  return connector_turn_fail(turn, sink_where(sink), err);
}

weir_status connector_sink_broken(connector_sink *sink, connector_sink_hook hook,
                                  weir_error *err, const char *fmt, ...) {
  char text[600];
  va_list args;
  va_start(args, fmt);
  vsnprintf(text, sizeof(text), fmt, args);
  va_end(args);
  return weir_error_set(err, WEIR_E_INTERNAL, 0,
                        "%s: %s %s; this is a bug of connector '%s'", sink_where(sink),
                        connector_sink_hook_name(hook), text, sink->ops->name);
}

weir_status connector_sink_new(connector_spec *spec, uint64_t participant,
                               uint64_t generation, connector_sink **out,
                               weir_error *err) {
  connector_turn turn;
  connector_sink *sink = base_calloc(1, sizeof(*sink), err);
  if (!sink) return WEIR_E_NOMEM;
  atomic_init(&sink->refs, 1);
  atomic_init(&sink->state, CONNECTOR_SINK_CREATED);
  sink->spec = connector_spec_ref(spec);
  sink->ops = spec->sink;
  sink->participant = participant;
  sink->generation = generation;
  connector_turn_enter(&turn, NULL);
  weir_status status =
      sink->ops->create(connector_host_get(spec->host), &sink->sink, &turn.err);
  if (connector_turn_leave(&turn, "create", status)) {
    status = connector_turn_fail(&turn, sink_where(sink), err);
    connector_spec_unref(
        sink->spec); /* what create made on its way down is its own to free */
    free(sink);
    return status;
  }
  sink->sink.ops = sink->ops; /* the complete table, for the defaults' sake */
  int32_t policy = sink->ops->cancellation_policy(&sink->sink);
  sink->cancel_safe = policy == WEIR_CANCEL_SAFE; /* anything else: the cautious one */
  *out = sink;
  return WEIR_OK;
}

connector_sink *connector_sink_ref(connector_sink *sink) {
  atomic_fetch_add(&sink->refs, 1);
  return sink;
}

void connector_sink_unref(connector_sink *sink) {
  if (!sink || atomic_fetch_sub(&sink->refs, 1) != 1) return;
  sink->ops->release(&sink->sink);
  weir_schema_unref(sink->schema);
  weir_schema_unref(sink->checked);
  weir_binding_done(&sink->binding);
  connector_namespace_done(&sink->ns);
  connector_spec_unref(sink->spec);
  free(sink);
}

static bool sink_between(int32_t value, int32_t last) {
  return value >= 0 && value <= last;
}

weir_status connector_sink_contract(connector_sink *sink, weir_contract *out,
                                    weir_error *err) {
  connector_turn turn;
  weir_contract c = {.struct_size = sizeof(c)};
  BASE_TRY(connector_sink_enter(sink, CONNECTOR_HOOK_CONTRACT, NULL, &turn, err));
  weir_status status =
      sink->ops->contract(&sink->sink, sink->spec->options, &c, &turn.err);
  BASE_TRY(connector_sink_leave(sink, CONNECTOR_HOOK_CONTRACT, &turn, status, SINK_STAYS,
                                err));
  if (!sink_between(c.consistency, WEIR_COMMITTABLE) ||
      !sink_between(c.topology, WEIR_NODE_LOCAL) ||
      !sink_between(c.input, WEIR_INPUT_CHANGELOG) ||
      !sink_between(c.staging, WEIR_STAGING_SHARED) || !sink_between(c.overlap, 1) ||
      !sink_between(c.cas_commit, 1) || !sink_between(c.claims, 1) ||
      c.commit_interval_ns < 0) {
    return connector_sink_broken(sink, CONNECTOR_HOOK_CONTRACT, err,
                                 "answered a value out of range");
  }
  c.struct_size = sizeof(c);
  sink->contract = c;
  sink->has_contract = true;
  *out = c;
  return WEIR_OK;
}

weir_status connector_sink_keyed_mutation_key(connector_sink *sink, weir_names *out,
                                              weir_error *err) {
  connector_turn turn;
  weir_names key = {0};
  BASE_TRY(connector_sink_enter(sink, CONNECTOR_HOOK_KEY, NULL, &turn, err));
  weir_status status =
      sink->ops->keyed_mutation_key(&sink->sink, sink->spec->options, &key, &turn.err);
  BASE_TRY(
      connector_sink_leave(sink, CONNECTOR_HOOK_KEY, &turn, status, SINK_STAYS, err));
  const char *wrong = NULL;
  if (key.release && (key.n == 0 || !key.v)) wrong = "answered an empty key";
  for (size_t i = 0; key.release && i < key.n && !wrong; i++) {
    if (!key.v[i] || !*key.v[i]) wrong = "answered a key column without a name";
    for (size_t j = 0; j < i && !wrong; j++) {
      if (strcmp(key.v[i], key.v[j]) == 0)
        wrong = "answered a key that names a column twice";
    }
  }
  if (wrong) {
    weir_names_release(&key);
    return connector_sink_broken(sink, CONNECTOR_HOOK_KEY, err, "%s", wrong);
  }
  *out = key;
  return WEIR_OK;
}

weir_status connector_sink_bind(connector_sink *sink, const weir_namespace *ns,
                                weir_error *err) {
  connector_turn turn;
  BASE_TRY(connector_sink_enter(sink, CONNECTOR_HOOK_BIND, NULL, &turn, err));
  if (!sink->has_contract || sink->participant == 0) {
    return weir_error_set(
        err, WEIR_E_INVALID_STATE, 0,
        "%s: bind_runtime_context needs the contract and a participant's number",
        sink_where(sink));
  }
  BASE_TRY(connector_namespace_init(&sink->ns, ns, err));
  weir_status status = sink->ops->bind_runtime_context(&sink->sink, &sink->ns.ns,
                                                       sink->participant, &turn.err);
  /* The sink may have kept the namespace, so it stays until release, and there is no second try. */
  BASE_TRY(
      connector_sink_leave(sink, CONNECTOR_HOOK_BIND, &turn, status, SINK_CLOSES, err));
  connector_sink_move(sink, CONNECTOR_SINK_BOUND);
  return WEIR_OK;
}

weir_task_tracker *connector_sink_tracker(connector_sink *sink) {
  if (connector_sink_state_of(sink) == CONNECTOR_SINK_RETIRED) return NULL;
  return sink->ops->terminal_task_tracker(&sink->sink);
}

uint64_t connector_sink_write_timeout_ms(connector_sink *sink) {
  if (connector_sink_state_of(sink) == CONNECTOR_SINK_RETIRED) return 1;
  uint64_t ms = sink->ops->suggested_write_timeout_ms(&sink->sink);
  return ms ? ms : 1;
}

uint64_t connector_sink_flush_interval_ms(connector_sink *sink) {
  if (connector_sink_state_of(sink) == CONNECTOR_SINK_RETIRED) return 1;
  uint64_t ms = sink->ops->flush_interval_ms(&sink->sink);
  return ms ? ms : 1;
}

static const char *sink_check_binding(const weir_binding *binding) {
  if (!binding->schema) return "left the binding without a schema";
  if (binding->identity &&
      strnlen(binding->identity, WEIR_MAX_IDENTITY + 1) > WEIR_MAX_IDENTITY) {
    return "gave an identity that is too long";
  }
  return NULL;
}

weir_status connector_sink_resolve_schema(connector_sink *sink, weir_call *call,
                                          weir_schema *input, weir_binding *out,
                                          weir_error *err) {
  connector_turn turn;
  weir_binding b = {.struct_size = sizeof(b)};
  BASE_TRY(connector_sink_enter(sink, CONNECTOR_HOOK_RESOLVE, call, &turn, err));
  weir_status status = sink->ops->resolve_schema(&sink->sink, call, sink->spec->options,
                                                 input, &b, &turn.err);
  status =
      connector_sink_leave(sink, CONNECTOR_HOOK_RESOLVE, &turn, status, SINK_STAYS, err);
  const char *wrong = status ? NULL : sink_check_binding(&b);
  if (wrong)
    status = connector_sink_broken(sink, CONNECTOR_HOOK_RESOLVE, err, "%s", wrong);
  if (status) {
    weir_binding_done(&b);
    return status;
  }
  *out = b;
  return WEIR_OK;
}

weir_status connector_sink_prepare_schema(connector_sink *sink, weir_call *call,
                                          weir_binding *binding, weir_error *err) {
  connector_turn turn;
  BASE_TRY(connector_sink_enter(sink, CONNECTOR_HOOK_PREPARE, call, &turn, err));
  weir_status status = sink->ops->prepare_schema(&sink->sink, call, sink->spec->options,
                                                 binding, &turn.err);
  BASE_TRY(
      connector_sink_leave(sink, CONNECTOR_HOOK_PREPARE, &turn, status, SINK_STAYS, err));
  const char *wrong = sink_check_binding(binding);
  return wrong ? connector_sink_broken(sink, CONNECTOR_HOOK_PREPARE, err, "%s", wrong)
               : WEIR_OK;
}

static weir_status sink_copy_binding(connector_sink *sink, const weir_binding *binding,
                                     weir_error *err) {
  weir_binding copy = {.struct_size = sizeof(copy)};
  if (binding->identity) {
    copy.identity = base_strdup(binding->identity, err);
    if (!copy.identity) return WEIR_E_NOMEM;
  }
  copy.schema = weir_schema_ref(binding->schema);
  weir_binding_done(&sink->binding);
  sink->binding = copy;
  return WEIR_OK;
}

/* schema() once, compared with the binding: from here on the runtime compares batches with it. */
static weir_status sink_ask_schema(connector_sink *sink, weir_error *err) {
  connector_turn turn;
  struct ArrowSchema schema = {0};
  weir_schema *counted = NULL;
  connector_turn_enter(&turn, NULL);
  weir_status status = sink->ops->schema(&sink->sink, &schema, &turn.err);
  if (connector_turn_leave(&turn, "schema", status)) {
    return connector_turn_fail(&turn, sink_where(sink), err);
  }
  if (!schema.release) {
    return connector_sink_broken(sink, CONNECTOR_HOOK_SCHEMA, err,
                                 "answered OK without a schema");
  }
  status = weir_schema_new(&schema, &counted, err);
  if (status) {
    schema.release(&schema);
    return weir_error_prefix(err, status, "%s: schema", sink_where(sink));
  }
  status = weir_schema_check(weir_schema_arrow(counted),
                             weir_schema_arrow(sink->binding.schema),
                             "its schema and its binding differ", err);
  if (status) {
    weir_schema_unref(counted);
    return weir_error_prefix(err, status, "%s", sink_where(sink));
  }
  weir_schema_unref(sink->schema);
  sink->schema = counted;
  return WEIR_OK;
}

weir_status connector_sink_open(connector_sink *sink, weir_call *call,
                                const weir_binding *binding, weir_error *err) {
  connector_turn turn;
  BASE_TRY(connector_sink_enter(sink, CONNECTOR_HOOK_OPEN, call, &turn, err));
  weir_status status = sink_copy_binding(sink, binding, &turn.err);
  if (!status) {
    status = sink->ops->open(&sink->sink, call, sink->spec->options, &sink->binding,
                             &turn.err);
  }
  BASE_TRY(
      connector_sink_leave(sink, CONNECTOR_HOOK_OPEN, &turn, status, SINK_CLOSES, err));
  status = sink_ask_schema(sink, err);
  if (!status) status = connector_sink_ask_committer(sink, err);
  connector_sink_move(sink, status ? CONNECTOR_SINK_FAILED : CONNECTOR_SINK_OPEN);
  return status;
}

weir_schema *connector_sink_schema(connector_sink *sink) {
  return sink->schema;
}
