/* SPDX-License-Identifier: Apache-2.0 */
/* What all kinds of store share: arguments are checked, cheap lines are remembered, and a store that
 * broke is never used again. */
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

weir_status store_break(weir_store *store, weir_status code, const weir_error *err) {
  store->broken = true;
  if (err) {
    store->why = *err;
  } else {
    weir_error_set(&store->why, code, 0, "checkpoint store: an earlier write failed");
  }
  return code;
}

static weir_status store_usable(weir_store *store, weir_error *err) {
  if (store->broken) {
    if (err) *err = store->why;
    return store->why.code;
  }
  return WEIR_OK;
}

static weir_status store_writable(weir_store *store, weir_error *err) {
  BASE_TRY(store_usable(store, err));
  if (!store->read_only) return WEIR_OK;
  return weir_error_set(
      err, WEIR_E_INVALID_STATE, 0,
      "checkpoint store: opened for reading only, it cannot be written");
}

static weir_status store_check_name(const char *name, const char *what, weir_error *err) {
  if (name && *name) return WEIR_OK;
  return weir_error_set(err, WEIR_E_INTERNAL, 0, "checkpoint store: %s without a name",
                        what);
}

/* Bounds hold here too: what was stored must be loadable and publishable later. */
static weir_status store_check_entries(const weir_store_entry *v, size_t n, size_t one,
                                       size_t all, const char *what, weir_error *err) {
  size_t total = 0;
  for (size_t i = 0; i < n; i++) {
    BASE_TRY(store_check_name(v[i].sink_id, what, err));
    size_t size = v[i].present ? v[i].size : 0;
    if (size > one || (size > 0 && !v[i].data)) {
      return weir_error_set(
          err, WEIR_E_INTERNAL, 0,
          "checkpoint store: %s of sink %s, participant %llu, has %zu bytes; at most "
          "%zu are allowed",
          what, v[i].sink_id, (unsigned long long)v[i].participant_id, size, one);
    }
    total += size;
    if (total > all) {
      return weir_error_set(err, WEIR_E_INTERNAL, 0,
                            "checkpoint store: the %ss of one attempt exceed %zu bytes",
                            what, all);
    }
  }
  return WEIR_OK;
}

static weir_status store_check_number(uint64_t number, const char *what,
                                      weir_error *err) {
  if (number > 0 && number <= INT64_MAX) return WEIR_OK;
  return weir_error_set(err, WEIR_E_INTERNAL, 0, "checkpoint store: %llu is no %s",
                        (unsigned long long)number, what);
}

static void store_lines_clear(weir_store *store) {
  for (size_t i = 0; i < store->n_lines; i++) free(store->lines[i].sink_id);
  store->n_lines = 0;
}

static weir_status store_apply(weir_store *store, const store_step *step,
                               weir_error *err) {
  weir_error local = {0};
  weir_error *e = err ? err : &local;
  weir_status status = store->ops->apply(store, step, e);
  if (!status) store_lines_clear(store);
  return status;
}

static weir_status store_remember(weir_store *store, const char *sink_id,
                                  const weir_cursor *seen, uint64_t cleaned,
                                  weir_error *err) {
  BASE_TRY(store_writable(store, err));
  BASE_TRY(store_check_name(sink_id, "a sink", err));
  for (size_t i = 0; seen && i < store->n_lines; i++) {
    store_line *line = &store->lines[i];
    if (line->seen.checkpoint && strcmp(line->sink_id, sink_id) == 0) {
      line->seen = *seen;
      return WEIR_OK;
    }
  }
  if (store->n_lines == store->lines_room) {
    size_t room = store->lines_room ? 2 * store->lines_room : 8;
    store_line *lines = base_realloc(store->lines, room, sizeof(*lines), err);
    if (!lines) return WEIR_E_NOMEM;
    store->lines = lines;
    store->lines_room = room;
  }
  char *copy = base_strdup(sink_id, err);
  if (!copy) return WEIR_E_NOMEM;
  store_line line = {.sink_id = copy, .cleaned = cleaned};
  if (seen) line.seen = *seen;
  store->lines[store->n_lines++] = line;
  return WEIR_OK;
}

void weir_store_close(weir_store *store) {
  if (!store) return;
  /* Lost lines cost a look at the target, so a failure here needs no word. */
  if (!store->read_only && !store->broken && store->n_lines)
    weir_store_flush(store, NULL);
  store_lines_clear(store);
  free(store->lines);
  store->ops->close(store);
}

weir_status weir_store_load(weir_store *store, weir_store_state **out, weir_error *err) {
  BASE_TRY(store_usable(store, err));
  return store->ops->load(store, out, err);
}

weir_status weir_store_check_lease(weir_store *store, weir_error *err) {
  BASE_TRY(store_writable(store, err));
  weir_error local = {0};
  return store->ops->check_lease(store, err ? err : &local);
}

weir_status weir_store_watch(weir_store *store, weir_error *err) {
  BASE_TRY(store_writable(store, err));
  weir_error local = {0};
  return store->ops->watch ? store->ops->watch(store, err ? err : &local) : WEIR_OK;
}

weir_status weir_store_reserve(weir_store *store, uint64_t attempt,
                               const weir_store_entry *intents, size_t n_intents,
                               weir_error *err) {
  BASE_TRY(store_writable(store, err));
  BASE_TRY(store_check_number(attempt, "attempt", err));
  BASE_TRY(store_check_entries(intents, n_intents, WEIR_MAX_INTENT, WEIR_MAX_INTENTS,
                               "intent", err));
  store_step step = {.type = STORE_RESERVE,
                     .attempt = attempt,
                     .next = attempt,
                     .intents = intents,
                     .n_intents = n_intents};
  return store_apply(store, &step, err);
}

static weir_status store_check_positions(const weir_store_position *v, size_t n,
                                         weir_error *err) {
  for (size_t i = 0; i < n; i++) {
    BASE_TRY(store_check_name(v[i].source, "a source", err));
    if (v[i].present && v[i].size > 0 && !v[i].data) {
      return weir_error_set(err, WEIR_E_INTERNAL, 0,
                            "checkpoint store: position of %s without bytes",
                            v[i].source);
    }
  }
  return WEIR_OK;
}

static weir_status store_check_decision(const weir_store_decision *d, weir_error *err) {
  BASE_TRY(store_check_number(d->attempt, "attempt", err));
  if (d->next_attempt) BASE_TRY(store_check_number(d->next_attempt, "attempt", err));
  for (size_t i = 0; i < d->n_sinks; i++) {
    const weir_store_sink *s = &d->sinks[i];
    BASE_TRY(store_check_name(s->sink_id, "a sink", err));
    if (s->cursor.checkpoint != d->attempt || s->cursor.token != d->token) {
      return weir_error_set(
          err, WEIR_E_INTERNAL, 0,
          "checkpoint store: decision %llu gives sink %s the cursor of attempt %llu",
          (unsigned long long)d->attempt, s->sink_id,
          (unsigned long long)s->cursor.checkpoint);
    }
  }
  BASE_TRY(store_check_positions(d->positions, d->n_positions, err));
  BASE_TRY(store_check_entries(d->descriptors, d->n_descriptors, WEIR_MAX_DESCRIPTOR,
                               SIZE_MAX / 2, "descriptor", err));
  return store_check_entries(d->intents, d->n_intents, WEIR_MAX_INTENT, WEIR_MAX_INTENTS,
                             "intent", err);
}

weir_status weir_store_decide(weir_store *store, const weir_store_decision *decision,
                              weir_error *err) {
  BASE_TRY(store_writable(store, err));
  BASE_TRY(store_check_decision(decision, err));
  store_step step = {.type = STORE_DECIDE,
                     .attempt = decision->attempt,
                     .positions = decision->positions,
                     .n_positions = decision->n_positions,
                     .next = decision->next_attempt,
                     .intents = decision->intents,
                     .n_intents = decision->n_intents,
                     .decision = decision};
  return store_apply(store, &step, err);
}

weir_status weir_store_abort(weir_store *store, uint64_t attempt,
                             const weir_store_position *positions, size_t n_positions,
                             weir_error *err) {
  BASE_TRY(store_writable(store, err));
  BASE_TRY(store_check_number(attempt, "attempt", err));
  BASE_TRY(store_check_positions(positions, n_positions, err));
  store_step step = {.type = STORE_ABORT,
                     .attempt = attempt,
                     .positions = positions,
                     .n_positions = n_positions};
  return store_apply(store, &step, err);
}

weir_status weir_store_pin(weir_store *store, const weir_store_binding *binding,
                           int replace, weir_error *err) {
  BASE_TRY(store_writable(store, err));
  BASE_TRY(store_check_name(binding->sink_id, "a binding's sink", err));
  store_step step = {.type = STORE_PIN, .binding = binding, .replace = replace};
  return store_apply(store, &step, err);
}

weir_status weir_store_adopt(weir_store *store, const weir_store_adoption *from,
                             weir_error *err) {
  BASE_TRY(store_writable(store, err));
  BASE_TRY(store_check_number(from->last_attempt, "attempt", err));
  BASE_TRY(store_check_number(from->token, "token", err));
  BASE_TRY(store_check_positions(from->positions, from->n_positions, err));
  for (size_t i = 0; i < from->n_sinks; i++)
    BASE_TRY(store_check_name(from->sinks[i].sink_id, "a sink", err));
  store_step step = {.type = STORE_ADOPT,
                     .positions = from->positions,
                     .n_positions = from->n_positions,
                     .next = from->last_attempt,
                     .adoption = from};
  return store_apply(store, &step, err);
}

/* The name under which a resolution is pinned. */
static char *store_resolved_key(const char *sink_id, uint64_t attempt, weir_error *err) {
  return base_format(err, "resolved:%s:%llu", sink_id, (unsigned long long)attempt);
}

weir_status weir_store_resolve(weir_store *store, const char *sink_id, uint64_t attempt,
                               const uint8_t *data, size_t size, weir_error *err) {
  BASE_TRY(store_check_name(sink_id, "a resolution's sink", err));
  BASE_TRY(store_check_number(attempt, "attempt", err));
  char *key = store_resolved_key(sink_id, attempt, err);
  if (!key) return WEIR_E_NOMEM;
  weir_store_binding binding = {key, data, size};
  weir_status status = weir_store_pin(store, &binding, 0, err);
  free(key);
  return status;
}

const weir_store_binding *weir_store_resolved(const weir_store_state *state,
                                              const char *sink_id, uint64_t attempt) {
  for (size_t i = 0; i < state->n_bindings; i++) {
    const char *at = state->bindings[i].sink_id, *prefix = "resolved:";
    size_t n = strlen(sink_id);
    char number[24];
    if (!base_starts_with(at, prefix)) continue;
    at += strlen(prefix);
    if (strncmp(at, sink_id, n) != 0 || at[n] != ':') continue;
    snprintf(number, sizeof(number), "%llu", (unsigned long long)attempt);
    if (strcmp(at + n + 1, number) == 0) return &state->bindings[i];
  }
  return NULL;
}

weir_status weir_store_seen(weir_store *store, const char *sink_id,
                            const weir_cursor *cursor, weir_error *err) {
  BASE_TRY(store_check_number(cursor->checkpoint, "attempt", err));
  return store_remember(store, sink_id, cursor, 0, err);
}

weir_status weir_store_cleaned(weir_store *store, const char *sink_id, uint64_t attempt,
                               weir_error *err) {
  BASE_TRY(store_check_number(attempt, "attempt", err));
  return store_remember(store, sink_id, NULL, attempt, err);
}

weir_status weir_store_flush(weir_store *store, weir_error *err) {
  BASE_TRY(store_writable(store, err));
  if (!store->n_lines) return weir_store_check_lease(store, err);
  store_step step = {.type = STORE_FLUSH};
  return store_apply(store, &step, err);
}
