/* SPDX-License-Identifier: Apache-2.0 */
/* Sources: lifecycle table and checked calls. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "connector/inside.h"

#define AT(state) (1u << CONNECTOR_SOURCE_##state)

static const struct {
  const char *name;
  unsigned states;
} source_hooks[CONNECTOR_SOURCE_HOOKS] = {
    [CONNECTOR_SOURCE_HOOK_CONTRACT] = {"contract", AT(CREATED) | AT(RESOLVED)},
    [CONNECTOR_SOURCE_HOOK_USE_SCHEMA] = {"use_schema", AT(CREATED)},
    [CONNECTOR_SOURCE_HOOK_RESOLVE] = {"resolve_schema", AT(CREATED) | AT(RESOLVED)},
    [CONNECTOR_SOURCE_HOOK_SET_ASIDE] = {"set_aside", AT(CREATED) | AT(RESOLVED)},
    [CONNECTOR_SOURCE_HOOK_OPEN] = {"open", AT(RESOLVED)},
    [CONNECTOR_SOURCE_HOOK_READ] = {"read", AT(OPEN)},
    [CONNECTOR_SOURCE_HOOK_POSITION] = {"position", AT(OPEN) | AT(ENDED)},
    [CONNECTOR_SOURCE_HOOK_SEEK] = {"seek", AT(OPEN) | AT(ENDED)},
    [CONNECTOR_SOURCE_HOOK_COMMITTED] = {"committed", AT(OPEN) | AT(ENDED)},
    [CONNECTOR_SOURCE_HOOK_CLOSE] = {"close", AT(OPEN) | AT(ENDED) | AT(FAILED)},
};

bool connector_source_may(connector_source_state state, connector_source_hook hook) {
  return source_hooks[hook].states >> state & 1;
}

const char *connector_source_hook_name(connector_source_hook hook) {
  return source_hooks[hook].name;
}

const char *connector_source_state_name(connector_source_state state) {
  static const char *const names[CONNECTOR_SOURCE_STATES] = {
      [CONNECTOR_SOURCE_CREATED] = "created", [CONNECTOR_SOURCE_RESOLVED] = "resolved",
      [CONNECTOR_SOURCE_OPEN] = "open",       [CONNECTOR_SOURCE_ENDED] = "ended",
      [CONNECTOR_SOURCE_FAILED] = "failed",   [CONNECTOR_SOURCE_CLOSED] = "closed",
      [CONNECTOR_SOURCE_RETIRED] = "retired",
  };
  return names[state];
}

struct connector_source {
  _Atomic size_t refs;
  _Atomic int
      state; /* connector_source_state; RETIRED is final and may come from any thread */
  connector_spec *spec;
  const weir_source_ops *ops; /* complete */
  weir_source source;
  uint64_t generation;
  bool cancel_safe;
  weir_schema *schema;        /* resolved */
  weir_schema *checked;       /* the last batch's schema, known to fit */
  connector_letters *letters; /* NULL: a bad row fails its read */
  weir_bad_rows bad_rows;
};

typedef enum source_failure { SOURCE_STAYS, SOURCE_FAILS, SOURCE_CLOSES } source_failure;

static const char *source_where(const connector_source *source) {
  return connector_spec_where(source->spec);
}

static void source_move(connector_source *source, connector_source_state to) {
  int from = atomic_load(&source->state);
  while (from != CONNECTOR_SOURCE_RETIRED &&
         !atomic_compare_exchange_weak(&source->state, &from, (int)to)) {
  }
}

static weir_status source_enter(connector_source *source, connector_source_hook hook,
                                weir_call *call, connector_turn *turn, weir_error *err) {
  connector_source_state state = connector_source_state_of(source);
  if (!connector_source_may(state, hook)) {
    return weir_error_set(err, WEIR_E_INVALID_STATE, 0,
                          "%s: %s must not be called on generation %llu, which is %s",
                          source_where(source), connector_source_hook_name(hook),
                          (unsigned long long)source->generation,
                          connector_source_state_name(state));
  }
  connector_turn_enter(turn, call);
  return WEIR_OK;
}

static weir_status source_leave(connector_source *source, connector_source_hook hook,
                                connector_turn *turn, weir_status status,
                                source_failure failure, weir_error *err) {
  status = connector_turn_leave(turn, connector_source_hook_name(hook), status);
  if (!status) return WEIR_OK;
  /* A read's deadline only ends its waiting; what counts for it is that somebody gave it up. */
  bool cancelled = hook == CONNECTOR_SOURCE_HOOK_READ ? turn->given_up
                                                      : connector_turn_cancelled(turn);
  connector_turn_mark_late(turn);
  bool again =
      turn->err.flags & WEIR_ERR_RETRIABLE ||
      (hook == CONNECTOR_SOURCE_HOOK_READ && turn->err.flags & WEIR_ERR_BAD_DATA);
  if (cancelled && !source->cancel_safe) {
    connector_source_retire(source);
  } else if (failure != SOURCE_STAYS && !again) {
    source_move(source, failure == SOURCE_FAILS ? CONNECTOR_SOURCE_FAILED
                                                : CONNECTOR_SOURCE_CLOSED);
  }
  return connector_turn_fail(turn, source_where(source), err);
}

static weir_status source_broken(connector_source *source, connector_source_hook hook,
                                 weir_error *err, const char *fmt, ...) WEIR_PRINTF(4, 5);
static weir_status source_broken(connector_source *source, connector_source_hook hook,
                                 weir_error *err, const char *fmt, ...) {
  char text[600];
  va_list args;
  va_start(args, fmt);
  vsnprintf(text, sizeof(text), fmt, args);
  va_end(args);
  return weir_error_set(
      err, WEIR_E_INTERNAL, 0, "%s: %s %s; this is a bug of connector '%s'",
      source_where(source), connector_source_hook_name(hook), text, source->ops->name);
}

weir_status connector_source_new(connector_spec *spec, uint64_t generation,
                                 connector_source **out, weir_error *err) {
  connector_turn turn;
  connector_source *source = base_calloc(1, sizeof(*source), err);
  if (!source) return WEIR_E_NOMEM;
  atomic_init(&source->refs, 1);
  atomic_init(&source->state, CONNECTOR_SOURCE_CREATED);
  source->spec = connector_spec_ref(spec);
  source->ops = spec->source;
  source->generation = generation;
  connector_turn_enter(&turn, NULL);
  weir_status status =
      source->ops->create(connector_host_get(spec->host), &source->source, &turn.err);
  if (connector_turn_leave(&turn, "create", status)) {
    status = connector_turn_fail(&turn, source_where(source), err);
    connector_spec_unref(source->spec);
    free(source);
    return status;
  }
  source->source.ops = source->ops;
  source->cancel_safe =
      source->ops->cancellation_policy(&source->source) == WEIR_CANCEL_SAFE;
  *out = source;
  return WEIR_OK;
}

connector_source *connector_source_ref(connector_source *source) {
  atomic_fetch_add(&source->refs, 1);
  return source;
}

void connector_source_unref(connector_source *source) {
  if (!source || atomic_fetch_sub(&source->refs, 1) != 1) return;
  source->ops->release(&source->source);
  weir_schema_unref(source->schema);
  weir_schema_unref(source->checked);
  connector_letters_free(source->letters);
  connector_spec_unref(source->spec);
  free(source);
}

connector_source_state connector_source_state_of(const connector_source *source) {
  return (connector_source_state)atomic_load(&source->state);
}

uint64_t connector_source_generation(const connector_source *source) {
  return source->generation;
}

bool connector_source_is_cancel_safe(const connector_source *source) {
  return source->cancel_safe;
}

void connector_source_retire(connector_source *source) {
  atomic_store(&source->state, CONNECTOR_SOURCE_RETIRED);
}

weir_status connector_source_contract(connector_source *source, weir_source_contract *out,
                                      weir_error *err) {
  connector_turn turn;
  weir_source_contract c = {.struct_size = sizeof(c)};
  BASE_TRY(source_enter(source, CONNECTOR_SOURCE_HOOK_CONTRACT, NULL, &turn, err));
  weir_status status =
      source->ops->contract(&source->source, source->spec->options, &c, &turn.err);
  BASE_TRY(source_leave(source, CONNECTOR_SOURCE_HOOK_CONTRACT, &turn, status,
                        SOURCE_STAYS, err));
  if (c.replay < WEIR_SOURCE_EPHEMERAL || c.replay > WEIR_SOURCE_COMMIT_COUPLED ||
      c.keyed < 0 || c.keyed > 1) {
    return source_broken(source, CONNECTOR_SOURCE_HOOK_CONTRACT, err,
                         "answered a value out of range");
  }
  if (c.replay != WEIR_SOURCE_EPHEMERAL && source->ops->seek == connector_default_seek) {
    return source_broken(source, CONNECTOR_SOURCE_HOOK_CONTRACT, err,
                         "says that it is replayable, but its table has no 'seek'");
  }
  c.struct_size = sizeof(c);
  *out = c;
  return WEIR_OK;
}

bool connector_source_keeps_begin(connector_source *source) {
  return source->ops->keeps_begin(&source->source) == 1;
}

bool connector_source_schema_is_inferred(connector_source *source) {
  return source->ops->schema_is_inferred(&source->source) == 1;
}

weir_status connector_source_use_schema(connector_source *source, weir_schema *schema,
                                        weir_error *err) {
  connector_turn turn;
  BASE_TRY(source_enter(source, CONNECTOR_SOURCE_HOOK_USE_SCHEMA, NULL, &turn, err));
  weir_status status = source->ops->use_schema(&source->source, schema, &turn.err);
  return source_leave(source, CONNECTOR_SOURCE_HOOK_USE_SCHEMA, &turn, status,
                      SOURCE_STAYS, err);
}

weir_status connector_source_resolve_schema(connector_source *source, weir_call *call,
                                            weir_schema **out, weir_error *err) {
  connector_turn turn;
  weir_schema *schema = NULL;
  BASE_TRY(source_enter(source, CONNECTOR_SOURCE_HOOK_RESOLVE, call, &turn, err));
  weir_status status = source->ops->resolve_schema(
      &source->source, call, source->spec->options, &schema, &turn.err);
  status = source_leave(source, CONNECTOR_SOURCE_HOOK_RESOLVE, &turn, status,
                        SOURCE_STAYS, err);
  if (!status && !schema) {
    status = source_broken(source, CONNECTOR_SOURCE_HOOK_RESOLVE, err,
                           "answered OK without a schema");
  }
  if (status) {
    weir_schema_unref(schema);
    return status;
  }
  weir_schema_unref(source->schema);
  source->schema = schema;
  source_move(source, CONNECTOR_SOURCE_RESOLVED);
  *out = weir_schema_ref(schema);
  return WEIR_OK;
}

static weir_status add_letter(void *ctx, const weir_bad_row *row, weir_error *err) {
  connector_source *source = ctx;
  weir_bad_row known = {.offset = -1, .line = -1};
  memcpy(&known, row,
         row->struct_size < sizeof(known) ? row->struct_size : sizeof(known));
  return connector_letters_add(source->letters, &known, err);
}

static void drop_letters(void *ctx) {
  connector_source *source = ctx;
  connector_letters_drop(source->letters);
}

weir_status connector_source_set_aside(connector_source *source, weir_error *err) {
  connector_turn turn;
  connector_letters *letters = NULL;
  BASE_TRY(connector_letters_new(source_where(source), &letters, err));
  connector_letters_free(source->letters);
  source->letters = letters;
  source->bad_rows =
      (weir_bad_rows){sizeof(source->bad_rows), source, add_letter, drop_letters};
  BASE_TRY(source_enter(source, CONNECTOR_SOURCE_HOOK_SET_ASIDE, NULL, &turn, err));
  weir_status status =
      source->ops->set_aside(&source->source, &source->bad_rows, &turn.err);
  return source_leave(source, CONNECTOR_SOURCE_HOOK_SET_ASIDE, &turn, status,
                      SOURCE_STAYS, err);
}

static const weir_bytes source_start = {0};

weir_status connector_source_open(connector_source *source, weir_call *call,
                                  const weir_bytes *position, weir_error *err) {
  connector_turn turn;
  BASE_TRY(source_enter(source, CONNECTOR_SOURCE_HOOK_OPEN, call, &turn, err));
  weir_status status = source->ops->open(&source->source, call, source->spec->options,
                                         position ? position : &source_start, &turn.err);
  /* The store keeps a sum of what a source gave it, so a position that its source cannot read is that
   * of another kind of source. */
  if (status == WEIR_E_CORRUPT && position && position->release) {
    weir_error_prefix(&turn.err, WEIR_E_INVALID_CONFIG,
                      "the stored position is not one of this kind of source: "
                      "set its type back, give it another name, or deliver "
                      "everything again with `weir run --new-deployment`");
    turn.err.code = status = WEIR_E_INVALID_CONFIG;
  }
  BASE_TRY(source_leave(source, CONNECTOR_SOURCE_HOOK_OPEN, &turn, status, SOURCE_CLOSES,
                        err));
  source_move(source, CONNECTOR_SOURCE_OPEN);
  return WEIR_OK;
}

static weir_status source_check_read(connector_source *source, int32_t what,
                                     weir_batch *batch, weir_error *err) {
  if (what < WEIR_READ_BATCH || what > WEIR_READ_END) {
    return source_broken(source, CONNECTOR_SOURCE_HOOK_READ, err, "answered %d",
                         (int)what);
  }
  if ((what == WEIR_READ_BATCH) != (batch != NULL)) {
    return source_broken(source, CONNECTOR_SOURCE_HOOK_READ, err, "answered %s a batch",
                         batch ? "'nothing' or 'end' with" : "'batch' without");
  }
  weir_schema *schema = batch ? weir_batch_schema(batch) : NULL;
  if (!batch || schema == source->checked) return WEIR_OK;
  BASE_TRY(weir_schema_check(weir_schema_arrow(source->schema), weir_schema_arrow(schema),
                             source_where(source), err));
  weir_schema_unref(source->checked);
  source->checked = weir_schema_ref(schema);
  return WEIR_OK;
}

weir_status connector_source_read(connector_source *source, weir_call *call,
                                  int32_t *what, weir_batch **out, weir_batch **letters,
                                  weir_error *err) {
  connector_turn turn;
  int32_t got = 0;
  weir_batch *batch = NULL, *set_aside = NULL;
  BASE_TRY(source_enter(source, CONNECTOR_SOURCE_HOOK_READ, call, &turn, err));
  weir_status status = source->ops->read(&source->source, call, &got, &batch, &turn.err);
  if ((status == WEIR_E_CANCELLED || status == WEIR_E_TIMEOUT) &&
      weir_call_cancelled(call)) {
    status = WEIR_OK; /* waiting ended, which is no failure */
    got = WEIR_READ_NOTHING;
  }
  status =
      source_leave(source, CONNECTOR_SOURCE_HOOK_READ, &turn, status, SOURCE_FAILS, err);
  if (!status) {
    status = source_check_read(source, got, batch, err);
    if (!status && source->letters)
      status = connector_letters_take(source->letters, &set_aside, err);
    if (status) source_move(source, CONNECTOR_SOURCE_FAILED);
  }
  if (status) {
    if (source->letters) connector_letters_drop(source->letters);
    weir_batch_unref(batch);
    return status;
  }
  if (got == WEIR_READ_END) source_move(source, CONNECTOR_SOURCE_ENDED);
  *what = got;
  *out = batch;
  *letters = set_aside;
  return WEIR_OK;
}

weir_status connector_source_position(connector_source *source, weir_bytes *out,
                                      weir_error *err) {
  connector_turn turn;
  weir_bytes position = {0};
  BASE_TRY(source_enter(source, CONNECTOR_SOURCE_HOOK_POSITION, NULL, &turn, err));
  weir_status status = source->ops->position(&source->source, &position, &turn.err);
  status = source_leave(source, CONNECTOR_SOURCE_HOOK_POSITION, &turn, status,
                        SOURCE_FAILS, err);
  if (!status && position.release && position.size > WEIR_MAX_POSITION) {
    status = source_broken(source, CONNECTOR_SOURCE_HOOK_POSITION, err,
                           "answered %zu bytes; at most %u are allowed", position.size,
                           WEIR_MAX_POSITION);
  }
  if (!status && position.release && position.size > 0 && !position.data) {
    status = source_broken(source, CONNECTOR_SOURCE_HOOK_POSITION, err,
                           "answered %zu bytes and no pointer to them", position.size);
  }
  if (status) {
    weir_bytes_release(&position);
    return status;
  }
  *out = position;
  return WEIR_OK;
}

weir_status connector_source_seek(connector_source *source, weir_call *call,
                                  const weir_bytes *position, weir_error *err) {
  connector_turn turn;
  BASE_TRY(source_enter(source, CONNECTOR_SOURCE_HOOK_SEEK, call, &turn, err));
  weir_status status = source->ops->seek(&source->source, call,
                                         position ? position : &source_start, &turn.err);
  BASE_TRY(
      source_leave(source, CONNECTOR_SOURCE_HOOK_SEEK, &turn, status, SOURCE_FAILS, err));
  source_move(source, CONNECTOR_SOURCE_OPEN);
  return WEIR_OK;
}

weir_status connector_source_committed(connector_source *source, weir_call *call,
                                       uint64_t checkpoint, const weir_bytes *position,
                                       weir_error *err) {
  connector_turn turn;
  BASE_TRY(source_enter(source, CONNECTOR_SOURCE_HOOK_COMMITTED, call, &turn, err));
  weir_status status = source->ops->committed(
      &source->source, call, checkpoint, position ? position : &source_start, &turn.err);
  return source_leave(source, CONNECTOR_SOURCE_HOOK_COMMITTED, &turn, status,
                      SOURCE_STAYS, err);
}

weir_status connector_source_close(connector_source *source, weir_call *call,
                                   weir_error *err) {
  connector_turn turn;
  BASE_TRY(source_enter(source, CONNECTOR_SOURCE_HOOK_CLOSE, call, &turn, err));
  source_move(source, CONNECTOR_SOURCE_CLOSED); /* at most once, whatever it answers */
  weir_status status = source->ops->close(&source->source, call, &turn.err);
  return source_leave(source, CONNECTOR_SOURCE_HOOK_CLOSE, &turn, status, SOURCE_STAYS,
                      err);
}

void connector_describe_position(const weir_source_ops *ops, const weir_bytes *position,
                                 weir_bytes *out) {
  weir_bytes text = {0};
  if (ops->describe_position(position, &text, NULL) || !text.release) return;
  if (text.size && text.size <= WEIR_MAX_POSITION_TEXT &&
      base_utf8_valid(text.data, text.size) && !memchr(text.data, '\n', text.size) &&
      !memchr(text.data, 0, text.size)) {
    *out = text;
  } else {
    weir_bytes_release(&text);
  }
}
