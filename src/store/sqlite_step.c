/* SPDX-License-Identifier: Apache-2.0 */
/* Durable steps: one transaction, one sync of the WAL each. */
#include <string.h>

#include "store/sqlite.h"

/* WAL pages at which the WAL is copied into the database: about one step in a hundred then pays for two
 * more syncs. */
enum { STEP_WAL_PAGES = 1000 };
/* Free pages from which the file is given back to the file system, and how many at a time. */
enum { STEP_FREE_PAGES = 2048 };
#define STEP_VACUUM "PRAGMA incremental_vacuum(512)"

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
    case STORE_FLUSH:
      return WEIR_FAULT("store.flush.after");
  }
  return 0;
}

static weir_status step_fenced(sq_store *store, const char *why, weir_error *err) {
  weir_error_set(err, WEIR_E_FENCED, 0,
                 "checkpoint store %s: the lease with token %llu is lost: %s; nothing "
                 "more is written",
                 store->path, (unsigned long long)store->token, why);
  return store_break(&store->base, WEIR_E_FENCED, err);
}

/* A file that was moved, deleted or replaced under the owner is no longer what the next start asks. */
static weir_status step_check_file(sq_store *store, weir_error *err) {
  int moved = 0;
  if (store->in_memory) return WEIR_OK;
  int rc = sqlite3_file_control(store->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
  if (rc != SQLITE_OK) return sq_error(store, rc, "looking for the file", err);
  return moved ? step_fenced(store, "the file was moved, deleted or replaced", err)
               : WEIR_OK;
}

weir_status sq_check_lease(weir_store *base, weir_error *err) {
  sq_store *store = (sq_store *)base;
  sqlite3_stmt *s = NULL;
  bool row = false;
  BASE_TRY(step_check_file(store, err));
  BASE_TRY(sq_get(store, SQ_LEASE_READ, &s, err));
  BASE_TRY(sq_step(store, s, &row, err));
  uint64_t token = row ? (uint64_t)sqlite3_column_int64(s, 0) : 0;
  sqlite3_reset(s);
  return token == store->token ? WEIR_OK
                               : step_fenced(store, "a newer owner has taken it", err);
}

static weir_status step_add_entries(sq_store *store, uint64_t attempt, int kind,
                                    const weir_store_entry *v, size_t n,
                                    weir_error *err) {
  for (size_t i = 0; i < n; i++) {
    sq_value row[] = {sq_int(attempt),
                      sq_int((uint64_t)kind),
                      sq_text(v[i].sink_id),
                      sq_int(v[i].participant_id),
                      sq_int(v[i].present ? 1 : 0),
                      v[i].present ? sq_blob(v[i].data, v[i].size) : sq_null()};
    BASE_TRY(sq_put(store, SQ_ENTRY_ADD, "entry", row, BASE_COUNT(row), err));
  }
  return WEIR_OK;
}

static weir_status step_reserve(sq_store *store, const store_step *step,
                                weir_error *err) {
  if (step->next <= store->last_attempt) {
    return weir_error_set(
        err, WEIR_E_INVALID_STATE, 0,
        "checkpoint store %s: attempt %llu cannot be reserved, numbers up to %llu are "
        "taken and never used again",
        store->path, (unsigned long long)step->next,
        (unsigned long long)store->last_attempt);
  }
  sq_value row[] = {sq_int(step->next), sq_int(WEIR_ATTEMPT_RESERVED),
                    sq_int(store->token)};
  BASE_TRY(sq_put(store, SQ_ATTEMPT_ADD, "attempt", row, BASE_COUNT(row), err));
  return step_add_entries(store, step->next, SQ_INTENT, step->intents, step->n_intents,
                          err);
}

static weir_status step_settle(sq_store *store, uint64_t attempt, int state,
                               weir_error *err) {
  sq_value row[] = {sq_int(attempt), sq_int((uint64_t)state), sq_int(store->token)};
  BASE_TRY(sq_put(store, SQ_ATTEMPT_SETTLE, "attempt", row, BASE_COUNT(row), err));
  if (sqlite3_changes(store->db) == 1) return WEIR_OK;
  return weir_error_set(
      err, WEIR_E_INVALID_STATE, 0,
      "checkpoint store %s: attempt %llu is not reserved, or has its outcome already",
      store->path, (unsigned long long)attempt);
}

static weir_status step_set_cursor(sq_store *store, int kind, const char *sink,
                                   const weir_cursor *c, int has_rows, uint64_t rows,
                                   uint64_t bytes, weir_error *err) {
  sq_value row[] = {sq_int((uint64_t)kind),
                    sq_text(sink),
                    sq_int(c->checkpoint),
                    sq_int(c->token),
                    sq_blob(c->digest, WEIR_DIGEST_SIZE),
                    sq_int(has_rows ? 1 : 0),
                    sq_int(rows),
                    sq_int(bytes)};
  return sq_put(store, SQ_CURSOR_SET, "cursor", row, BASE_COUNT(row), err);
}

static weir_status step_decide_sink(sq_store *store, const weir_store_decision *d,
                                    const weir_store_sink *sink, size_t *matched,
                                    weir_error *err) {
  uint64_t entries = 0;
  for (size_t i = 0; i < d->n_descriptors; i++) {
    if (strcmp(d->descriptors[i].sink_id, sink->sink_id) == 0) entries++;
  }
  *matched += entries;
  sq_value row[] = {sq_int(d->attempt),
                    sq_text(sink->sink_id),
                    sq_int(sink->cursor.token),
                    sq_blob(sink->cursor.digest, WEIR_DIGEST_SIZE),
                    sq_int(sink->has_rows ? 1 : 0),
                    sq_int(sink->rows),
                    sq_int(sink->bytes),
                    sq_int(entries)};
  BASE_TRY(sq_put(store, SQ_PART_ADD, "part", row, BASE_COUNT(row), err));
  return step_set_cursor(store, SQ_DECIDED, sink->sink_id, &sink->cursor, sink->has_rows,
                         sink->rows, sink->bytes, err);
}

static weir_status step_decide(sq_store *store, const weir_store_decision *d,
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
  sq_value attempt = sq_int(d->attempt);
  BASE_TRY(sq_run(store, SQ_INTENTS_DROP, &attempt, 1, err));
  size_t matched = 0;
  for (size_t i = 0; i < d->n_sinks; i++) {
    BASE_TRY(step_decide_sink(store, d, &d->sinks[i], &matched, err));
  }
  if (matched != d->n_descriptors) {
    return weir_error_set(
        err, WEIR_E_INTERNAL, 0,
        "checkpoint store %s: decision %llu has a descriptor of a sink that is not part "
        "of it",
        store->path, (unsigned long long)d->attempt);
  }
  BASE_TRY(step_add_entries(store, d->attempt, SQ_DESCRIPTOR, d->descriptors,
                            d->n_descriptors, err));
  return WEIR_OK;
}

static weir_status step_positions(sq_store *store, const store_step *step,
                                  weir_error *err) {
  for (size_t i = 0; i < step->n_positions; i++) {
    const weir_store_position *p = &step->positions[i];
    sq_value row[] = {sq_text(p->source), sq_int(p->present ? 1 : 0),
                      p->present ? sq_blob(p->data, p->size) : sq_null(), sq_int(p->rows),
                      sq_int(p->lost)};
    BASE_TRY(sq_put(store, SQ_POSITION_SET, "position", row, BASE_COUNT(row), err));
  }
  return WEIR_OK;
}

static weir_status step_pin(sq_store *store, const store_step *step, weir_error *err) {
  const weir_store_binding *b = step->binding;
  sq_value row[] = {sq_text(b->sink_id), sq_blob(b->data, b->size)};
  if (!step->replace) {
    sqlite3_stmt *s = NULL;
    bool found = false, same = false;
    BASE_TRY(sq_get(store, SQ_BINDING_GET, &s, err));
    sqlite3_bind_text(s, 1, b->sink_id, -1, SQLITE_STATIC);
    BASE_TRY(sq_step(store, s, &found, err));
    if (found) {
      BASE_TRY(sq_verify(store, s, "binding", err));
      same = (size_t)sqlite3_column_bytes(s, 1) == b->size &&
             (!b->size || memcmp(sqlite3_column_blob(s, 1), b->data, b->size) == 0);
    }
    sqlite3_reset(s);
    if (same) return WEIR_OK;
    if (found) {
      return weir_error_set(err, WEIR_E_CONFLICT, 0,
                            "checkpoint store %s: sink %s is pinned to another binding",
                            store->path, b->sink_id);
    }
  }
  return sq_put(store, SQ_BINDING_SET, "binding", row, BASE_COUNT(row), err);
}

static weir_status step_seen(sq_store *store, const store_line *line, weir_error *err) {
  sqlite3_stmt *s = NULL;
  bool found = false;
  int has_rows = 0;
  uint64_t rows = 0, bytes = 0;
  BASE_TRY(sq_get(store, SQ_PART_TOTALS, &s, err));
  sqlite3_bind_int64(s, 1, (int64_t)line->seen.checkpoint);
  sqlite3_bind_text(s, 2, line->sink_id, -1, SQLITE_STATIC);
  BASE_TRY(sq_step(store, s, &found, err));
  if (found) {
    has_rows = sqlite3_column_int(s, 0);
    rows = (uint64_t)sqlite3_column_int64(s, 1);
    bytes = (uint64_t)sqlite3_column_int64(s, 2);
  }
  sqlite3_reset(s);
  BASE_TRY(step_set_cursor(store, SQ_SEEN, line->sink_id, &line->seen, has_rows, rows,
                           bytes, err));

  /* What this sink published before its last WEIR_STORE_KEEP attempts is let go, sink by sink: one that
   * owes nothing but empty attempts keeps no other sink's descriptors. */
  BASE_TRY(sq_get(store, SQ_PART_FLOOR, &s, err));
  sqlite3_bind_text(s, 1, line->sink_id, -1, SQLITE_STATIC);
  sqlite3_bind_int64(s, 2, (int64_t)line->seen.checkpoint);
  sqlite3_bind_int64(s, 3, WEIR_STORE_KEEP - 1);
  BASE_TRY(sq_step(store, s, &found, err));
  sq_value floor[] = {sq_text(line->sink_id),
                      sq_int(found ? (uint64_t)sqlite3_column_int64(s, 0) : 0)};
  sqlite3_reset(s);
  if (!found) return WEIR_OK;
  BASE_TRY(sq_run(store, SQ_PART_PRUNE, floor, 2, err));
  return sq_run(store, SQ_ENTRY_PRUNE, floor, 2, err);
}

static weir_status step_lines(sq_store *store, weir_error *err) {
  for (size_t i = 0; i < store->base.n_lines; i++) {
    const store_line *line = &store->base.lines[i];
    if (line->seen.checkpoint) {
      BASE_TRY(step_seen(store, line, err));
    } else {
      sq_value v[] = {sq_int(line->cleaned), sq_text(line->sink_id)};
      BASE_TRY(sq_run(store, SQ_INTENTS_CLEANED, v, 2, err));
      BASE_TRY(sq_run(store, SQ_ATTEMPT_DROP_CLEAN, v, 1, err));
    }
  }
  return WEIR_OK;
}

/* Rows of attempts that no sink needs, then pages that no row needs. */
static weir_status step_prune(sq_store *store, weir_error *err) {
  sq_value keep = sq_int(WEIR_STORE_KEEP - 1);
  sqlite3_stmt *s = NULL;
  bool row = false;
  BASE_TRY(sq_run(store, SQ_ATTEMPT_PRUNE, &keep, 1, err));
  BASE_TRY(sq_get(store, SQ_FREE_PAGES, &s, err));
  BASE_TRY(sq_step(store, s, &row, err));
  int pages = row ? sqlite3_column_int(s, 0) : 0;
  sqlite3_reset(s);
  return pages < STEP_FREE_PAGES ? WEIR_OK
                                 : sq_exec(store, STEP_VACUUM, "giving space back", err);
}

static weir_status step_body(sq_store *store, const store_step *step, weir_error *err) {
  switch (step->type) {
    case STORE_RESERVE:
      BASE_TRY(step_reserve(store, step, err));
      break;
    case STORE_DECIDE:
      BASE_TRY(step_decide(store, step->decision, err));
      if (step->next) BASE_TRY(step_reserve(store, step, err));
      break;
    case STORE_ABORT: {
      sq_value attempt = sq_int(step->attempt);
      BASE_TRY(step_settle(store, step->attempt, WEIR_ATTEMPT_ABORT, err));
      BASE_TRY(sq_run(store, SQ_ATTEMPT_DROP_CLEAN, &attempt, 1, err));
      break;
    }
    case STORE_PIN:
      BASE_TRY(step_pin(store, step, err));
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
static weir_status step_undo(sq_store *store, weir_status status, weir_error *err) {
  sqlite3_stmt *s = NULL;
  if (!sqlite3_get_autocommit(store->db) && !sq_get(store, SQ_ROLLBACK, &s, NULL)) {
    sqlite3_step(s);
    sqlite3_reset(s);
  }
  bool harmless = status == WEIR_E_INVALID_STATE || status == WEIR_E_CONFLICT ||
                  (err->flags & WEIR_ERR_RETRIABLE) || status == WEIR_E_NOMEM;
  if (sqlite3_get_autocommit(store->db) && harmless) return status;
  return store->base.broken ? status : store_break(&store->base, status, err);
}

static weir_status step_in_doubt(sq_store *store, weir_error *err) {
  err->flags = WEIR_ERR_IN_DOUBT;
  weir_error_prefix(err, err->code,
                    "the outcome of a durable step is unknown, the next start asks the "
                    "store");
  return store_break(&store->base, err->code, err);
}

static weir_status step_commit(sq_store *store, store_step_type type, weir_error *err) {
  sqlite3_stmt *s = NULL;
  weir_status status = sq_get(store, SQ_COMMIT, &s, err);
  if (status) return step_undo(store, status, err);
  if (WEIR_FAULT("store.commit.sync")) {
    weir_error_set(err, WEIR_E_IO, 0, "checkpoint store %s: COMMIT failed", store->path);
    return step_in_doubt(store, err);
  }
  status = sq_step(store, s, NULL, err);
  /* From here on nobody can say what is on disk. */
  if (status) return step_in_doubt(store, err);
  sqlite3_reset(s);
  if (step_fault_after(type)) {
    weir_error_set(err, WEIR_E_IO, 0,
                   "checkpoint store %s: the answer of COMMIT was lost", store->path);
    return step_in_doubt(store, err);
  }
  return WEIR_OK;
}

/* The step itself is durable already, so a failure here is told by the next call. */
static void step_settle_wal(sq_store *store) {
  if (store->in_memory || store->wal_pages < STEP_WAL_PAGES) return;
  int rc = WEIR_FAULT("store.checkpoint.before") ? SQLITE_IOERR_FSYNC : SQLITE_OK;
  if (rc == SQLITE_OK) {
    rc =
        sqlite3_wal_checkpoint_v2(store->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
  }
  if (rc == SQLITE_OK || (rc & 0xff) == SQLITE_BUSY) return;
  weir_error err = {0};
  weir_status status = sq_error(store, rc, "copying the WAL into the database", &err);
  store_break(&store->base, status, &err);
}

weir_status sq_apply(weir_store *base, const store_step *step, weir_error *err) {
  sq_store *store = (sq_store *)base;
  sqlite3_stmt *s = NULL;
  if (step_fault_before(step->type)) {
    return weir_error_set(err, WEIR_E_IO, WEIR_ERR_RETRIABLE,
                          "checkpoint store %s: cannot be written", store->path);
  }
  BASE_TRY(step_check_file(store, err));
  BASE_TRY(sq_get(store, SQ_BEGIN, &s, err));
  BASE_TRY(sq_step(store, s, NULL, err));
  sqlite3_reset(s);
  /* Lease first: a lost one leaves no trace of this step. */
  uint64_t last = step->next > store->last_attempt ? step->next : store->last_attempt;
  sq_value lease[] = {sq_int(store->token), sq_int(last)};
  weir_status status =
      sq_put(store, SQ_LEASE_HOLD, "lease", lease, BASE_COUNT(lease), err);
  if (!status && sqlite3_changes(store->db) != 1) {
    status = step_fenced(store, "a newer owner has taken it", err);
  }
  if (!status) status = step_body(store, step, err);
  if (!status && WEIR_FAULT("store.commit.before")) {
    status = weir_error_set(err, WEIR_E_IO, WEIR_ERR_RETRIABLE,
                            "checkpoint store %s: cannot be written", store->path);
  }
  if (status) return step_undo(store, status, err);
  BASE_TRY(step_commit(store, step->type, err));
  store->last_attempt = last;
  step_settle_wal(store);
  return WEIR_OK;
}
