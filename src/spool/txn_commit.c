/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A commit batch. When the open transaction holds exactly its rows, prepared, it is committed; in every other
 * case the segments are applied in a transaction made for it. The target's cursor decides what is missing, and
 * what a lost answer meant.
 */
#include <stdlib.h>
#include <string.h>

#include "spool/txn.h"

static weir_status judge(const txn_request *r, const weir_cursor *at, size_t *first,
                         weir_error *err) {
  return weir_commit_batch_start(&r->batch, at, first, err);
}

static weir_cursor last_cursor(const txn_request *r) {
  return r->attempts[r->batch.n_attempts - 1].cursor;
}

/* ---- the open transaction ----------------------------------------------------------------------- */

static bool has_part(const txn_request *r, size_t attempt, const weir_spool_id *id) {
  for (size_t i = 0; i < r->n_parts; i++) {
    const weir_spool_id *other = &r->parts[i].segment.id;
    if (r->parts[i].attempt == attempt && other->participant == id->participant &&
        memcmp(other->incarnation, id->incarnation, sizeof(id->incarnation)) == 0)
      return true;
  }
  return false;
}

/* Attempt `i` of the batch is this one, part by part. */
static bool same_parts(const txn_request *r, size_t i, const txn_attempt *a) {
  size_t with_rows = 0, wanted = 0;
  for (size_t p = 0; p < a->n_parts; p++) {
    if (!a->parts[p]->n) continue;
    with_rows++;
    if (!has_part(r, i, &a->parts[p]->id)) return false;
  }
  for (size_t k = 0; k < r->n_parts; k++) wanted += r->parts[k].attempt == i;
  return with_rows == wanted;
}

static size_t index_of(const txn_request *r, uint64_t number) {
  size_t i = 0;
  while (i < r->batch.n_attempts && r->attempts[i].cursor.checkpoint != number) i++;
  return i;
}

/* Whether it holds what the batch has and nothing else. */
static bool is_whole_transaction(txn_engine *e, const txn_request *r) {
  txn_hub *hub = e->hub;
  size_t parts = 0;
  if (!e->session || !e->in_txn || e->spoiled || hub->config->contract.brief ||
      !hub->at_known)
    return false;
  for (txn_attempt *a = hub->attempts; a; a = a->next) {
    size_t i = index_of(r, a->number);
    if (i == r->batch.n_attempts) {
      if (a->included) return false;
      continue;
    }
    if (!a->included || !a->proven || !same_parts(r, i, a)) return false;
    for (size_t p = 0; p < a->n_parts; p++) parts += a->parts[p]->n > 0;
  }
  return parts == r->n_parts;
}

/* ---- from the spool ----------------------------------------------------------------------------- */

static weir_status apply_segment(txn_engine *e, const weir_spool_segment *segment,
                                 int64_t deadline, weir_error *err) {
  weir_spool_reader *reader = NULL;
  weir_batch *batch = NULL;
  weir_status status =
      weir_spool_reader_open(e->hub->folder, &e->hub->ns, segment, &reader, err);
  while (!status) {
    status = weir_spool_reader_next(reader, &batch, err);
    if (status || !batch) break;
    status = txn_session_apply(e, deadline, batch, err);
    weir_batch_unref(batch);
  }
  weir_spool_reader_free(reader);
  return status;
}

/* The cursor as it is now; 1 in *settled: that answers the request, one way or the other. */
static weir_status look(txn_engine *e, txn_request *r, weir_cursor *at, size_t *first,
                        bool *settled, weir_error *err) {
  *settled = false;
  BASE_TRY(txn_session_read_cursor(e, r->deadline, at, err));
  weir_status status = judge(r, at, first, err);
  *settled = status || *first == r->batch.n_attempts;
  return status;
}

static void keep_at(txn_engine *e, const weir_cursor *at) {
  pthread_mutex_lock(&e->hub->lock);
  if (!e->orphan) {
    e->hub->at = *at;
    e->hub->at_known = true;
  }
  pthread_mutex_unlock(&e->hub->lock);
}

/* Up to `prepare`; the transaction is open then unless *settled. */
static weir_status apply_missing(txn_engine *e, txn_request *r, weir_cursor *at,
                                 bool *settled, weir_error *err) {
  size_t first = 0;
  /* Before anybody else's session is ended: an owner that was replaced learns it here. */
  BASE_TRY(look(e, r, at, &first, settled, err));
  if (*settled) return WEIR_OK;
  if (!e->took_over) {
    BASE_TRY(txn_session_take_over(e, r->deadline, err));
    BASE_TRY(look(e, r, at, &first, settled, err));
    if (*settled) return WEIR_OK;
  }
  keep_at(e, at);
  BASE_TRY(txn_session_begin(e, r->deadline, err));
  for (size_t i = 0; i < r->n_parts; i++) {
    if (r->parts[i].attempt < first) continue;
    BASE_TRY(apply_segment(e, &r->parts[i].segment, r->deadline, err));
  }
  return txn_session_prepare(e, r->deadline, err);
}

/* ---- the commit --------------------------------------------------------------------------------- */

static weir_status commit(txn_engine *e, txn_request *r, const weir_cursor *at,
                          weir_error *err) {
  weir_txn_commit c = {.struct_size = sizeof(c),
                       .predecessor = *at,
                       .cursor = last_cursor(r),
                       .positions = r->positions};
  return txn_session_commit(e, r->deadline, &c, err);
}

/* Nothing has landed. What the target said is not believed the first time: the runtime asks the lease and
 * comes again, to a new session. */
static weir_status doubt(txn_engine *e, weir_error *err) {
  bool spool = err->code == WEIR_E_CORRUPT || err->code == WEIR_E_NOT_FOUND;
  bool tired = err->flags & (WEIR_ERR_RETRIABLE | WEIR_ERR_IN_DOUBT) ||
               err->code == WEIR_E_TIMEOUT || err->code == WEIR_E_CANCELLED;
  if (err->code == WEIR_E_CONFLICT || spool) return err->code;
  if (!tired) {
    pthread_mutex_lock(&e->hub->lock);
    unsigned strikes = ++e->hub->commit_strikes;
    pthread_mutex_unlock(&e->hub->lock);
    if (strikes >= (err->code == WEIR_E_FENCED ? TXN_MAX_FENCED : TXN_MAX_STRIKES))
      return err->code;
  }
  if (err->code == WEIR_E_FENCED) err->code = WEIR_E_IO;
  err->flags = WEIR_ERR_RETRIABLE;
  return err->code;
}

/* What came of a commit that failed. A cursor that has not moved is the answer only when it cannot move any
 * more, which is what read_cursor promises. */
static weir_status look_after(txn_engine *e, txn_request *r, weir_error *err) {
  weir_error looked = {0};
  weir_cursor at = {0};
  size_t first = 0;
  bool settled = false;
  if (err->code == WEIR_E_CONFLICT) return err->code;
  bool surely = err->flags & WEIR_ERR_RETRIABLE && !(err->flags & WEIR_ERR_IN_DOUBT);
  weir_status status = look(e, r, &at, &first, &settled, &looked);
  if (settled) {
    if (status) *err = looked;
    return status;
  }
  if (status && !surely) {
    err->flags |= WEIR_ERR_IN_DOUBT;
    err->flags &= ~(uint32_t)WEIR_ERR_RETRIABLE;
    return err->code;
  }
  return doubt(e, err); /* not there */
}

/* Published: what was live up to there is over. */
static void publish(txn_engine *e, const weir_cursor *at) {
  txn_hub *hub = e->hub;
  weir_error ignored = {0};
  pthread_mutex_lock(&hub->lock);
  if (!e->orphan) {
    hub->at = *at;
    hub->at_known = true;
    hub->commit_strikes = 0;
    e->failures = 0;
    txn_hub_reset(hub);
    while (hub->attempts && hub->attempts->number <= at->checkpoint)
      txn_hub_drop(hub, hub->attempts);
  }
  pthread_mutex_unlock(&hub->lock);
  /* What cannot be removed now is found by the next one. */
  weir_spool_prune(hub->folder, &hub->ns, at->checkpoint, TXN_KEEP_ATTEMPTS, hub->keep,
                   &ignored);
}

static weir_status serve(txn_engine *e, txn_request *r, weir_error *err) {
  txn_hub *hub = e->hub;
  weir_cursor at = {0};
  size_t first = 0;
  bool settled = false;
  weir_status status = WEIR_OK;
  pthread_mutex_lock(&hub->lock);
  bool fast = is_whole_transaction(e, r);
  at = hub->at;
  pthread_mutex_unlock(&hub->lock);
  /* The cursor was locked by prepare, so it is still what it was then. */
  if (!fast || judge(r, &at, &first, NULL) || first) {
    txn_session_abort(e, r->deadline);
    status = apply_missing(e, r, &at, &settled, err);
    if (settled) return status;
    if (status) return doubt(e, err);
  }
  status = commit(e, r, &at, err);
  if (!status) return WEIR_OK;
  txn_session_close(e);
  pthread_mutex_lock(&hub->lock);
  if (!e->orphan) hub->at_known = false;
  pthread_mutex_unlock(&hub->lock);
  return look_after(e, r, err);
}

void txn_commit_serve(txn_engine *e, txn_request *r) {
  txn_hub *hub = e->hub;
  weir_error err = {0};
  weir_status status = serve(e, r, &err);
  weir_cursor at = last_cursor(r);
  if (status) txn_session_close(e);
  pthread_mutex_lock(&hub->lock);
  if (!e->orphan) {
    txn_hub_reset(hub);
    r->status = status;
    r->error = err;
    r->cursor = at;
  }
  bool orphan = e->orphan;
  pthread_mutex_unlock(&hub->lock);
  if (!status && !orphan) publish(e, &at);
}
