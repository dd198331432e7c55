/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that owns the session. Requests come first; else the next batch is applied, or an attempt that is
 * whole is proven. */
#include <stdlib.h>
#include <string.h>

#include "spool/txn.h"

#define RETRY_MIN (50 * BASE_NS_PER_MS)
#define RETRY_MAX (2 * BASE_NS_PER_S)

typedef enum step_kind { STEP_NONE, STEP_ABORT, STEP_APPLY, STEP_PROVE } step_kind;

typedef struct step {
  step_kind kind;
  txn_attempt *attempt;
  txn_part *part;
} step;

/* ---- what follows an error ---------------------------------------------------------------------- */

/* Whether what the target said of the attempt is believed now. */
static bool believe(txn_attempt *a, const weir_error *err) {
  if (err->code == WEIR_E_CONFLICT || err->code == WEIR_E_CORRUPT ||
      err->code == WEIR_E_NOT_FOUND)
    return true;
  if (err->flags & (WEIR_ERR_RETRIABLE | WEIR_ERR_IN_DOUBT)) return false;
  if (err->code == WEIR_E_TIMEOUT || err->code == WEIR_E_CANCELLED) return false;
  return ++a->strikes >= (err->code == WEIR_E_FENCED ? TXN_MAX_FENCED : TXN_MAX_STRIKES);
}

static int64_t pause_after(unsigned failures) {
  int64_t pause = RETRY_MIN;
  while (failures-- > 1 && pause < RETRY_MAX) pause *= 2;
  return base_deadline(pause < RETRY_MAX ? pause : RETRY_MAX);
}

/* A step for that attempt failed: the session is over, and all is applied again in the next one. */
static void session_lost(txn_engine *e, txn_attempt *a, const weir_error *err) {
  txn_hub *hub = e->hub;
  txn_session_close(e);
  pthread_mutex_lock(&hub->lock);
  if (!e->orphan) {
    txn_hub_reset(hub);
    e->failures++;
    a->trouble = *err;
    if (a->live && !a->failure.code && believe(a, err)) a->failure = *err;
    /* The first time at once: a session may have been lost while nobody looked. */
    e->retry_at = e->failures > 1 ? pause_after(e->failures) : 0;
    pthread_cond_broadcast(&hub->changed);
  }
  pthread_mutex_unlock(&hub->lock);
}

/* ---- steps -------------------------------------------------------------------------------------- */

/* A session with an open transaction. */
static weir_status ready(txn_engine *e, int64_t deadline, weir_error *err) {
  BASE_TRY(txn_session_ready(e, deadline, err));
  return e->in_txn ? WEIR_OK : txn_session_begin(e, deadline, err);
}

/* Frame `i` of the part: still in memory, or read back. A reference. */
static weir_status take_batch(txn_engine *e, txn_part *part, size_t i, weir_batch **out,
                              weir_error *err) {
  txn_hub *hub = e->hub;
  pthread_mutex_lock(&hub->lock);
  txn_frame frame = part->frames[i];
  if (frame.batch) hub->held_bytes -= weir_batch_bytes(frame.batch);
  part->frames[i].batch = NULL;
  pthread_mutex_unlock(&hub->lock);
  if (frame.batch) {
    *out = frame.batch;
    return WEIR_OK;
  }
  return weir_spool_writer_read_at(part->writer, &frame.at, out, err);
}

static weir_status apply_frame(txn_engine *e, txn_part *part, size_t i, weir_error *err) {
  weir_batch *batch = NULL;
  BASE_TRY(take_batch(e, part, i, &batch, err));
  weir_status status = txn_session_apply(e, txn_session_step(e), batch, err);
  weir_batch_unref(batch);
  return status;
}

static void apply_next(txn_engine *e, const step *s) {
  txn_hub *hub = e->hub;
  weir_error err = {0};
  weir_status status = ready(e, txn_session_step(e), &err);
  pthread_mutex_lock(&hub->lock);
  size_t i = s->part->applied;
  /* When the step failed it may have been left behind, and what its successor noted stays. */
  if (!status) s->attempt->included = s->attempt->live;
  pthread_mutex_unlock(&hub->lock);
  if (!status) status = apply_frame(e, s->part, i, &err);
  if (status) {
    session_lost(e, s->attempt, &err);
    return;
  }
  pthread_mutex_lock(&hub->lock);
  if (!e->orphan) {
    s->part->applied = i + 1;
    if (!s->attempt->live) e->spoiled = true; /* rolled back meanwhile */
    pthread_cond_broadcast(&hub->changed);
  }
  pthread_mutex_unlock(&hub->lock);
}

/* Of `brief` targets: all that is live up to that attempt into one transaction, which is then dropped. */
static weir_status try_all(txn_engine *e, txn_attempt *until, weir_error *err) {
  txn_hub *hub = e->hub;
  weir_status status = WEIR_OK;
  BASE_TRY(ready(e, txn_session_step(e), err));
  pthread_mutex_lock(&hub->lock);
  for (txn_attempt *a = hub->attempts, *next = NULL;
       a && a->number <= until->number && !status && !e->orphan; a = next) {
    a->refs++;
    for (size_t p = 0; p < a->n_parts && !status; p++) {
      txn_part *part = a->parts[p];
      for (size_t i = 0; i < part->n && !status; i++) {
        pthread_mutex_unlock(&hub->lock);
        status = apply_frame(e, part, i, err);
        pthread_mutex_lock(&hub->lock);
      }
    }
    next = a->live ? a->next : NULL; /* one that was rolled back meanwhile ends it */
    txn_attempt_unref(hub, a);
  }
  pthread_mutex_unlock(&hub->lock);
  if (!status) status = txn_session_prepare(e, txn_session_step(e), err);
  if (!status) txn_session_abort(e, txn_session_step(e));
  return status;
}

static void prove(txn_engine *e, const step *s) {
  txn_hub *hub = e->hub;
  weir_error err = {0};
  weir_status status = WEIR_OK;
  if (hub->config->contract.brief) {
    status = try_all(e, s->attempt, &err);
  } else {
    status = txn_session_prepare(e, txn_session_step(e), &err);
  }
  if (status) {
    session_lost(e, s->attempt, &err);
    return;
  }
  pthread_mutex_lock(&hub->lock);
  if (!e->orphan) {
    s->attempt->proven = true;
    s->attempt->strikes = 0;
    e->failures = 0;
    pthread_cond_broadcast(&hub->changed);
  }
  pthread_mutex_unlock(&hub->lock);
}

/* ---- choosing ----------------------------------------------------------------------------------- */

static bool is_whole(const txn_attempt *a) {
  if (a->n_sealed < a->n_parts) return false;
  for (size_t i = 0; i < a->n_parts; i++)
    if (a->parts[i]->applied < a->parts[i]->n) return false;
  return true;
}

static step step_for(txn_hub *hub, txn_attempt *a) {
  step s = {STEP_NONE, a, NULL};
  if (hub->config->contract.brief) {
    if (a->n_sealed == a->n_parts && !a->proven) s.kind = STEP_PROVE;
    return s;
  }
  for (size_t i = 0; i < a->n_parts; i++) {
    if (a->parts[i]->applied == a->parts[i]->n) continue;
    s.kind = STEP_APPLY;
    s.part = a->parts[i];
    return s;
  }
  if (is_whole(a) && !a->proven) s.kind = STEP_PROVE;
  return s;
}

/* An old transaction asks for its end. `until`: when to look again. */
static void watch_age(txn_engine *e, int64_t *until) {
  int64_t max = e->hub->config->contract.max_age_ns;
  if (!max || !e->in_txn || e->age_told) return;
  int64_t at = e->txn_since + max / 2;
  if (base_clock_mono() >= at) {
    e->age_told = true;
    txn_hub_ask_checkpoint(e->hub);
  } else if (at < *until) {
    *until = at;
  }
}

/* Attempts come one after the other: the next one waits in the spool until the one before is published, or
 * may join its transaction because it waits to be proven. */
static step choose(txn_engine *e, int64_t *until) {
  txn_hub *hub = e->hub;
  step none = {STEP_NONE, NULL, NULL};
  *until = BASE_FOREVER;
  watch_age(e, until);
  if (e->spoiled && e->in_txn) return (step){STEP_ABORT, NULL, NULL};
  if (e->retry_at > base_clock_mono()) {
    if (e->retry_at < *until) *until = e->retry_at;
    return none;
  }
  for (txn_attempt *a = hub->attempts; a; a = a->next) {
    if (a->failure.code) return none;
    if (a != hub->attempts && !hub->config->contract.brief && a->number > hub->merge)
      return none;
    step s = step_for(hub, a);
    if (s.kind) return s;
    if (!a->proven) return none;
  }
  return none;
}

static void run(txn_engine *e, const step *s) {
  if (s->kind == STEP_APPLY) {
    apply_next(e, s);
  } else if (s->kind == STEP_PROVE) {
    prove(e, s);
  } else {
    txn_session_abort(e, txn_session_step(e));
    pthread_mutex_lock(&e->hub->lock);
    if (!e->orphan) txn_hub_reset(e->hub);
    pthread_mutex_unlock(&e->hub->lock);
  }
}

/* ---- requests ----------------------------------------------------------------------------------- */

/* A session that was there may have been lost while it was idle: a new one is asked once. */
static weir_status read_cursor(txn_engine *e, int64_t deadline, weir_cursor *out,
                               weir_error *err) {
  bool old = e->session != NULL;
  weir_status status = txn_session_read_cursor(e, deadline, out, err);
  if (!status || !old || e->orphan) return status;
  txn_session_close(e);
  pthread_mutex_lock(&e->hub->lock);
  if (!e->orphan) txn_hub_reset(e->hub);
  pthread_mutex_unlock(&e->hub->lock);
  return txn_session_read_cursor(e, deadline, out, err);
}

static void serve(txn_engine *e, txn_request *r) {
  weir_cursor cursor = {0};
  weir_cursor_list list = {0};
  weir_error err = {0};
  weir_status status = WEIR_OK;
  switch (r->type) {
    case TXN_OPEN:
      status = txn_session_open(e, r->deadline, &err);
      break;
    case TXN_TAKE_OVER:
      status = txn_session_take_over(e, r->deadline, &err);
      break;
    case TXN_READ_CURSOR:
      status = read_cursor(e, r->deadline, &cursor, &err);
      break;
    case TXN_FIND_CURSORS:
      status = txn_session_find_cursors(e, r->deadline, &list, &err);
      break;
    case TXN_COMMIT:
      txn_commit_serve(e, r);
      return;
  }
  if (status) txn_session_close(e);
  pthread_mutex_lock(&e->hub->lock);
  if (!e->orphan) {
    if (status) txn_hub_reset(e->hub);
    r->status = status;
    r->error = err;
    r->cursor = cursor;
    r->list = list;
    list = (weir_cursor_list){0};
  }
  pthread_mutex_unlock(&e->hub->lock);
  if (list.release) list.release(&list);
}

static void serve_next(txn_engine *e) {
  txn_hub *hub = e->hub;
  txn_request *r = hub->requests;
  hub->requests = r->next;
  if (!hub->requests) hub->last_request = &hub->requests;
  hub->serving = r;
  if (r->refs > 1) { /* else whoever asked has left */
    r->refs++;
    pthread_mutex_unlock(&hub->lock);
    serve(e, r);
    pthread_mutex_lock(&hub->lock);
    txn_request_unref(r);
  }
  if (e->orphan) return;
  hub->serving = NULL;
  r->done = true;
  txn_request_unref(r);
  pthread_cond_broadcast(&hub->changed);
}

/* ---- the thread --------------------------------------------------------------------------------- */

static void *engine_main(void *arg) {
  txn_engine *e = arg;
  txn_hub *hub = e->hub;
  weir_task_guard *guard = e->guard;
  pthread_mutex_lock(&hub->lock);
  while (!e->orphan && !hub->stop) {
    int64_t until = BASE_FOREVER;
    if (hub->requests) {
      serve_next(e);
      continue;
    }
    step s = choose(e, &until);
    if (!s.kind) {
      base_cond_wait_until(&hub->changed, &hub->lock, until);
      continue;
    }
    if (s.attempt) s.attempt->refs++;
    pthread_mutex_unlock(&hub->lock);
    run(e, &s);
    pthread_mutex_lock(&hub->lock);
    txn_attempt_unref(hub, s.attempt);
  }
  pthread_mutex_unlock(&hub->lock);
  txn_session_close(e);
  pthread_mutex_lock(&hub->lock);
  bool orphan = e->orphan;
  e->ended = true;
  pthread_cond_broadcast(&hub->changed);
  pthread_mutex_unlock(&hub->lock);
  if (orphan) free(e); /* else whoever joins does */
  txn_hub_unref(hub);
  weir_task_guard_drop(guard);
  return NULL;
}

weir_status txn_engine_start(txn_hub *hub, weir_task_owner *owner, weir_error *err) {
  txn_engine *e = base_calloc(1, sizeof(*e), err);
  if (!e) return WEIR_E_NOMEM;
  e->hub = hub;
  weir_status status = weir_task_guard_new(owner, "the target's session", &e->guard, err);
  if (!status) status = base_thread_start(&e->thread, "weir-txn", engine_main, e, err);
  if (status) {
    weir_task_guard_drop(e->guard);
    free(e);
    return status;
  }
  hub->engine = e;
  return WEIR_OK;
}
