/* SPDX-License-Identifier: Apache-2.0 */
/* Durable steps: one transaction each. */
#include <string.h>

#include "store/sql.h"

/* Literal names, so that a script can list the fault points. */
static int step_fault_before(store_step_type type) {
  switch (type) {
    case STORE_RESERVE:
      return WEIR_FAULT("store.reserve.before");
    case STORE_DECIDE:
      return WEIR_FAULT("store.decide.before");
    case STORE_ABORT:
      return WEIR_FAULT("store.abort.before");
    case STORE_PIN:
      return WEIR_FAULT("store.pin.before");
    case STORE_ADOPT:
      return WEIR_FAULT("store.adopt.before");
    case STORE_FLUSH:
      return WEIR_FAULT("store.flush.before");
  }
  return 0;
}

static int step_fault_after(store_step_type type) {
  switch (type) {
    case STORE_RESERVE:
      return WEIR_FAULT("store.reserve.after");
    case STORE_DECIDE:
      return WEIR_FAULT("store.decide.after");
    case STORE_ABORT:
      return WEIR_FAULT("store.abort.after");
    case STORE_PIN:
      return WEIR_FAULT("store.pin.after");
    case STORE_ADOPT:
      return WEIR_FAULT("store.adopt.after");
    case STORE_FLUSH:
      return WEIR_FAULT("store.flush.after");
  }
  return 0;
}

weir_status sql_check_lease(weir_store *base, weir_error *err) {
  sql_store *store = (sql_store *)base;
  uint64_t token = 0, last = 0;
  BASE_TRY(store->driver->is_owned(store, err));
  BASE_TRY(sql_read_lease(store, &token, &last, err));
  return token == store->token ? WEIR_OK
                               : sql_fenced(store, "a newer owner has taken it", err);
}

static weir_status step_add_entries(sql_store *store, uint64_t attempt, int kind,
                                    const weir_store_entry *v, size_t n,
                                    weir_error *err) {
  for (size_t i = 0; i < n; i++) {
    sql_value row[] = {sql_int(attempt),
                       sql_int((uint64_t)kind),
                       sql_text(v[i].sink_id),
                       sql_int(v[i].participant_id),
                       sql_int(v[i].present ? 1 : 0),
                       v[i].present ? sql_blob(v[i].data, v[i].size) : sql_null()};
    BASE_TRY(sql_put(store, SQL_ENTRY_ADD, "entry", row, BASE_COUNT(row), NULL, err));
  }
  return WEIR_OK;
}

static weir_status step_reserve(sql_store *store, const store_step *step,
                                weir_error *err) {
  if (step->next <= store->last_attempt) {
    return weir_error_set(
        err, WEIR_E_INVALID_STATE, 0,
        "checkpoint store %s: attempt %llu cannot be reserved, numbers up to %llu are "
        "taken and never used again",
        store->path, (unsigned long long)step->next,
        (unsigned long long)store->last_attempt);
  }
  sql_value row[] = {sql_int(step->next), sql_int(WEIR_ATTEMPT_RESERVED),
                     sql_int(store->token)};
  BASE_TRY(sql_put(store, SQL_ATTEMPT_ADD, "attempt", row, BASE_COUNT(row), NULL, err));
  return step_add_entries(store, step->next, SQL_INTENT, step->intents, step->n_intents,
                          err);
}

static weir_status step_settle(sql_store *store, uint64_t attempt, int state,
                               weir_error *err) {
  sql_value row[] = {sql_int(attempt), sql_int((uint64_t)state), sql_int(store->token)};
  uint64_t changes = 0;
  BASE_TRY(
      sql_put(store, SQL_ATTEMPT_SETTLE, "attempt", row, BASE_COUNT(row), &changes, err));
  if (changes == 1) return WEIR_OK;
  return weir_error_set(
      err, WEIR_E_INVALID_STATE, 0,
      "checkpoint store %s: attempt %llu is not reserved, or has its outcome already",
      store->path, (unsigned long long)attempt);
}

static weir_status step_set_cursor(sql_store *store, int kind, const char *sink,
                                   const weir_cursor *c, int has_rows, uint64_t rows,
                                   uint64_t bytes, weir_error *err) {
  sql_value row[] = {sql_int((uint64_t)kind),
                     sql_text(sink),
                     sql_int(c->checkpoint),
                     sql_int(c->token),
                     sql_blob(c->digest, WEIR_DIGEST_SIZE),
                     sql_int(has_rows ? 1 : 0),
                     sql_int(rows),
                     sql_int(bytes)};
  return sql_put(store, SQL_CURSOR_SET, "cursor", row, BASE_COUNT(row), NULL, err);
}

/* The sink's descriptors are those from *at on: descriptors come in the order of the sinks. */
static weir_status step_decide_sink(sql_store *store, const weir_store_decision *d,
                                    const weir_store_sink *sink, size_t *at,
                                    weir_error *err) {
  size_t end = *at;
  while (end < d->n_descriptors &&
         strcmp(d->descriptors[end].sink_id, sink->sink_id) == 0)
    end++;
  uint64_t entries = end - *at;
  *at = end;
  sql_value row[] = {sql_int(d->attempt),
                     sql_text(sink->sink_id),
                     sql_int(sink->cursor.token),
                     sql_blob(sink->cursor.digest, WEIR_DIGEST_SIZE),
                     sql_int(sink->has_rows ? 1 : 0),
                     sql_int(sink->rows),
                     sql_int(sink->bytes),
                     sql_int(entries)};
  BASE_TRY(sql_put(store, SQL_PART_ADD, "part", row, BASE_COUNT(row), NULL, err));
  return step_set_cursor(store, SQL_DECIDED, sink->sink_id, &sink->cursor, sink->has_rows,
                         sink->rows, sink->bytes, err);
}

static weir_status step_decide(sql_store *store, const weir_store_decision *d,
                               weir_error *err) {
  if (d->token != store->token) {
    return weir_error_set(
        err, WEIR_E_INVALID_STATE, 0,
        "checkpoint store %s: decision %llu was made under token %llu, the lease has "
        "token %llu",
        store->path, (unsigned long long)d->attempt, (unsigned long long)d->token,
        (unsigned long long)store->token);
  }
  BASE_TRY(step_settle(store, d->attempt, WEIR_ATTEMPT_COMMIT, err));
  sql_value attempt = sql_int(d->attempt);
  BASE_TRY(store->driver->run(store, SQL_INTENTS_DROP, &attempt, 1, NULL, err));
  size_t at = 0;
  for (size_t i = 0; i < d->n_sinks; i++) {
    BASE_TRY(step_decide_sink(store, d, &d->sinks[i], &at, err));
  }
  if (at != d->n_descriptors) {
    return weir_error_set(
        err, WEIR_E_INTERNAL, 0,
        "checkpoint store %s: decision %llu has a descriptor of a sink that is not part "
        "of it, or out of order",
        store->path, (unsigned long long)d->attempt);
  }
  BASE_TRY(step_add_entries(store, d->attempt, SQL_DESCRIPTOR, d->descriptors,
                            d->n_descriptors, err));
  return WEIR_OK;
}

static weir_status step_positions(sql_store *store, const store_step *step,
                                  weir_error *err) {
  for (size_t i = 0; i < step->n_positions; i++) {
    const weir_store_position *p = &step->positions[i];
    sql_value row[] = {sql_text(p->source), sql_int(p->present ? 1 : 0),
                       p->present ? sql_blob(p->data, p->size) : sql_null(),
                       sql_int(p->rows), sql_int(p->lost)};
    BASE_TRY(
        sql_put(store, SQL_POSITION_SET, "position", row, BASE_COUNT(row), NULL, err));
  }
  return WEIR_OK;
}

typedef struct pin_ctx {
  sql_store *store;
  const weir_store_binding *binding;
  bool found, same;
} pin_ctx;

static weir_status pin_row(void *ctx, const sql_value *v, int n, weir_error *err) {
  pin_ctx *pin = ctx;
  BASE_TRY(sql_verify(pin->store, "binding", v, n, err));
  pin->found = true;
  pin->same = v[1].size == pin->binding->size &&
              (!v[1].size || memcmp(v[1].data, pin->binding->data, v[1].size) == 0);
  return WEIR_OK;
}

static weir_status step_pin(sql_store *store, const store_step *step, weir_error *err) {
  const weir_store_binding *b = step->binding;
  sql_value row[] = {sql_text(b->sink_id), sql_blob(b->data, b->size)};
  if (!step->replace) {
    pin_ctx pin = {.store = store, .binding = b};
    BASE_TRY(store->driver->query(store, SQL_BINDING_GET, row, 1, pin_row, &pin, err));
    if (pin.same) return WEIR_OK;
    if (pin.found) {
      return weir_error_set(err, WEIR_E_CONFLICT, 0,
                            "checkpoint store %s: sink %s is pinned to another binding",
                            store->path, b->sink_id);
    }
  }
  return sql_put(store, SQL_BINDING_SET, "binding", row, BASE_COUNT(row), NULL, err);
}

static weir_status adopt_row(void *ctx, const sql_value *v, int n, weir_error *err) {
  (void)v;
  (void)n;
  return weir_error_set(err, WEIR_E_INVALID_STATE, 0,
                        "checkpoint store %s has attempts or cursors already: it cannot "
                        "take those of a lost one",
                        ((const sql_store *)ctx)->path);
}

/* The deployment of before, and a lease beyond every token that a target has seen. */
static weir_status step_adopt(sql_store *store, const weir_store_adoption *from,
                              weir_error *err) {
  uint64_t changes = 0;
  uint64_t token = from->token > store->token ? from->token : store->token;
  BASE_TRY(store->driver->query(store, SQL_ATTEMPT_READ, NULL, 0, adopt_row, store, err));
  BASE_TRY(store->driver->query(store, SQL_CURSOR_READ, NULL, 0, adopt_row, store, err));
  sql_value meta[] = {sql_text(from->pipeline),
                      sql_blob(from->deployment, WEIR_UUID_SIZE)};
  BASE_TRY(sql_put(store, SQL_META_SET, "meta", meta, 2, &changes, err));
  if (changes != 1)
    return weir_error_set(err, WEIR_E_INVALID_STATE, 0,
                          "checkpoint store %s is not that of pipeline %s", store->path,
                          from->pipeline);
  sql_value lease[] = {sql_int(token), sql_int(from->last_attempt)};
  BASE_TRY(sql_put(store, SQL_LEASE_TAKE, "lease", lease, 2, NULL, err));
  for (size_t i = 0; i < from->n_sinks; i++) {
    const weir_store_sink *s = &from->sinks[i];
    for (int kind = SQL_DECIDED; kind <= SQL_SEEN; kind++)
      BASE_TRY(step_set_cursor(store, kind, s->sink_id, &s->cursor, s->has_rows, s->rows,
                               s->bytes, err));
  }
  return WEIR_OK;
}

static weir_status step_seen(sql_store *store, const store_line *line, weir_error *err) {
  bool found = false;
  uint64_t totals[3] = {0}, floor = 0; /* has_rows, rows, bytes */
  sql_value part[] = {sql_int(line->seen.checkpoint), sql_text(line->sink_id)};
  BASE_TRY(sql_get_ints(store, SQL_PART_TOTALS, part, 2, totals, 3, &found, err));
  BASE_TRY(step_set_cursor(store, SQL_SEEN, line->sink_id, &line->seen, (int)totals[0],
                           totals[1], totals[2], err));

  /* What this sink published before its last WEIR_STORE_KEEP attempts is let go, sink by sink: one that
   * owes nothing but empty attempts keeps no other sink's descriptors. */
  sql_value kept[] = {sql_text(line->sink_id), sql_int(line->seen.checkpoint),
                      sql_int(WEIR_STORE_KEEP - 1)};
  BASE_TRY(sql_get_ints(store, SQL_PART_FLOOR, kept, 3, &floor, 1, &found, err));
  if (!found) return WEIR_OK;
  sql_value below[] = {sql_text(line->sink_id), sql_int(floor)};
  BASE_TRY(store->driver->run(store, SQL_PART_PRUNE, below, 2, NULL, err));
  return store->driver->run(store, SQL_ENTRY_PRUNE, below, 2, NULL, err);
}

static weir_status step_lines(sql_store *store, weir_error *err) {
  for (size_t i = 0; i < store->base.n_lines; i++) {
    const store_line *line = &store->base.lines[i];
    if (line->seen.checkpoint) {
      BASE_TRY(step_seen(store, line, err));
    } else {
      sql_value v[] = {sql_int(line->cleaned), sql_text(line->sink_id)};
      BASE_TRY(store->driver->run(store, SQL_INTENTS_CLEANED, v, 2, NULL, err));
      BASE_TRY(store->driver->run(store, SQL_ATTEMPT_DROP_CLEAN, v, 1, NULL, err));
    }
  }
  return WEIR_OK;
}

/* Rows of attempts that no sink needs, then the space that no row needs. */
static weir_status step_prune(sql_store *store, weir_error *err) {
  sql_value keep = sql_int(WEIR_STORE_KEEP - 1);
  BASE_TRY(store->driver->run(store, SQL_ATTEMPT_PRUNE, &keep, 1, NULL, err));
  return store->driver->give_space(store, err);
}

static weir_status step_body(sql_store *store, const store_step *step, weir_error *err) {
  switch (step->type) {
    case STORE_RESERVE:
      BASE_TRY(step_reserve(store, step, err));
      break;
    case STORE_DECIDE:
      BASE_TRY(step_decide(store, step->decision, err));
      if (step->next) BASE_TRY(step_reserve(store, step, err));
      break;
    case STORE_ABORT: {
      sql_value attempt = sql_int(step->attempt);
      BASE_TRY(step_settle(store, step->attempt, WEIR_ATTEMPT_ABORT, err));
      BASE_TRY(store->driver->run(store, SQL_ATTEMPT_DROP_CLEAN, &attempt, 1, NULL, err));
      break;
    }
    case STORE_PIN:
      BASE_TRY(step_pin(store, step, err));
      break;
    case STORE_ADOPT:
      BASE_TRY(step_adopt(store, step->adoption, err));
      break;
    case STORE_FLUSH:
      break;
  }
  BASE_TRY(step_positions(store, step, err));
  BASE_TRY(step_lines(store, err));
  return step_prune(store, err);
}

/* Nothing of the step happened. After anything but a full disk or a busy file the connection is not
 * trusted again. */
static weir_status step_undo(sql_store *store, weir_status status, weir_error *err) {
  bool usable = store->driver->rollback(store);
  bool harmless = status == WEIR_E_INVALID_STATE || status == WEIR_E_CONFLICT ||
                  (err->flags & WEIR_ERR_RETRIABLE) || status == WEIR_E_NOMEM;
  if (usable && harmless) return status;
  return store->base.broken ? status : store_break(&store->base, status, err);
}

static weir_status step_in_doubt(sql_store *store, weir_error *err) {
  err->flags = WEIR_ERR_IN_DOUBT;
  weir_error_prefix(err, err->code,
                    "the outcome of a durable step is unknown, the next start asks the "
                    "store");
  return store_break(&store->base, err->code, err);
}

static weir_status step_commit(sql_store *store, store_step_type type, weir_error *err) {
  if (WEIR_FAULT("store.commit.sync")) {
    weir_error_set(err, WEIR_E_IO, 0, "checkpoint store %s: COMMIT failed", store->path);
    return step_in_doubt(store, err);
  }
  weir_status status = store->driver->commit(store, err);
  if (status)
    return err->flags & WEIR_ERR_IN_DOUBT ? step_in_doubt(store, err)
                                          : step_undo(store, status, err);
  if (step_fault_after(type)) {
    weir_error_set(err, WEIR_E_IO, 0,
                   "checkpoint store %s: the answer of COMMIT was lost", store->path);
    return step_in_doubt(store, err);
  }
  return WEIR_OK;
}

weir_status sql_apply(weir_store *base, const store_step *step, weir_error *err) {
  sql_store *store = (sql_store *)base;
  uint64_t changes = 0;
  if (step_fault_before(step->type)) {
    return weir_error_set(err, WEIR_E_IO, WEIR_ERR_RETRIABLE,
                          "checkpoint store %s: cannot be written", store->path);
  }
  BASE_TRY(store->driver->is_owned(store, err));
  BASE_TRY(store->driver->begin(store, err));
  /* Lease first: a lost one leaves no trace of this step. */
  uint64_t last = step->next > store->last_attempt ? step->next : store->last_attempt;
  sql_value lease[] = {sql_int(store->token), sql_int(last)};
  weir_status status =
      sql_put(store, SQL_LEASE_HOLD, "lease", lease, BASE_COUNT(lease), &changes, err);
  if (!status && changes != 1)
    status = sql_fenced(store, "a newer owner has taken it", err);
  if (!status) status = step_body(store, step, err);
  if (!status && WEIR_FAULT("store.commit.before")) {
    status = weir_error_set(err, WEIR_E_IO, WEIR_ERR_RETRIABLE,
                            "checkpoint store %s: cannot be written", store->path);
  }
  if (status) return step_undo(store, status, err);
  BASE_TRY(step_commit(store, step->type, err));
  store->last_attempt = last;
  if (step->adoption && step->adoption->token > store->token)
    store->token = step->adoption->token;
  store->driver->committed(store);
  return WEIR_OK;
}
