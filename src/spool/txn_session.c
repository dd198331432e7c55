/* SPDX-License-Identifier: Apache-2.0 */
/* The session's hooks, called: each with a call of its own that whoever waits may cancel. */
#include <string.h>

#include "spool/txn.h"

static weir_call *enter(txn_engine *e, int64_t deadline) {
  int64_t left = deadline == BASE_FOREVER ? -1 : deadline - base_clock_mono();
  weir_call *call = weir_call_new(deadline == BASE_FOREVER ? -1 : left > 0 ? left : 0);
  pthread_mutex_lock(&e->hub->lock);
  e->call = call;
  e->step_deadline = deadline;
  e->cancelled = false;
  pthread_mutex_unlock(&e->hub->lock);
  return call;
}

/* What a connector says is made to agree with itself. */
static weir_status leave(txn_engine *e, weir_call *call, const char *hook,
                         weir_status status, weir_error *err) {
  pthread_mutex_lock(&e->hub->lock);
  bool orphan = e->orphan;
  e->call = NULL;
  pthread_mutex_unlock(&e->hub->lock);
  weir_call_free(call);
  if (orphan)
    return weir_error_set(err, WEIR_E_CANCELLED, 0, "this session was left behind");
  if (status && err->code != status)
    weir_error_set(err, status, 0, "%s failed without saying why", hook);
  return status;
}

/* What a fault point gives: the session is lost before the hook was called. */
static weir_status lost(const char *hook, weir_error *err) {
  return weir_error_set(err, WEIR_E_IO, WEIR_ERR_RETRIABLE, "%s: the session was lost",
                        hook);
}

int64_t txn_session_step(const txn_engine *e) {
  int64_t given = e->hub->config->contract.step_timeout_ns;
  return base_deadline(given > 0 ? given : 60 * BASE_NS_PER_S);
}

weir_status txn_session_open(txn_engine *e, int64_t deadline, weir_error *err) {
  if (e->session) return WEIR_OK;
  if (WEIR_FAULT("txn.open")) return lost("open", err);
  void *session = NULL;
  weir_call *call = enter(e, deadline);
  weir_status status =
      e->hub->ops->open(e->hub->config->config, call, &e->hub->place, &session, err);
  status = leave(e, call, "open", status, err);
  if (status && session) {
    /* Left behind while it opened. */
    e->session = session;
    txn_session_close(e);
    return status;
  }
  if (status) return status;
  e->session = session;
  e->took_over = e->in_txn = false;
  return WEIR_OK;
}

void txn_session_close(txn_engine *e) {
  if (!e->session) return;
  weir_call *call = weir_call_new(10 * BASE_NS_PER_S);
  e->hub->ops->close(e->session, call);
  weir_call_free(call);
  e->session = NULL;
  e->took_over = e->in_txn = false;
}

weir_status txn_session_take_over(txn_engine *e, int64_t deadline, weir_error *err) {
  weir_status status = WEIR_OK;
  BASE_TRY(txn_session_open(e, deadline, err));
  if (e->hub->ops->take_over) {
    weir_call *call = enter(e, deadline);
    status = e->hub->ops->take_over(e->session, call, err);
    status = leave(e, call, "take_over", status, err);
  }
  if (!status) e->took_over = true;
  return status;
}

/* Keeps it. Another one than was there when this hub moved it last is somebody else's doing, and what is open
 * stands on it no more. */
static weir_status keep_cursor(txn_engine *e, const weir_cursor *read, weir_error *err) {
  weir_status status = WEIR_OK;
  txn_hub *hub = e->hub;
  pthread_mutex_lock(&hub->lock);
  if (hub->at_known && !weir_cursor_equal(&hub->at, read)) {
    status = weir_error_set(
        err, read->token > hub->at.token ? WEIR_E_FENCED : WEIR_E_CONFLICT, 0,
        "the target's cursor went from attempt %llu (token %llu) to attempt %llu (token "
        "%llu) by somebody else; stop the other pipeline that delivers there under this "
        "state",
        (unsigned long long)hub->at.checkpoint, (unsigned long long)hub->at.token,
        (unsigned long long)read->checkpoint, (unsigned long long)read->token);
    for (txn_attempt *a = hub->attempts; a; a = a->next)
      if (!a->failure.code) a->failure = *err;
  }
  hub->at = *read;
  hub->at_known = true;
  pthread_mutex_unlock(&hub->lock);
  return status;
}

weir_status txn_session_read_cursor(txn_engine *e, int64_t deadline, weir_cursor *out,
                                    weir_error *err) {
  weir_cursor read = {0};
  BASE_TRY(txn_session_open(e, deadline, err));
  if (WEIR_FAULT("txn.read_cursor")) return lost("read_cursor", err);
  weir_call *call = enter(e, deadline);
  weir_status status = e->hub->ops->read_cursor(e->session, call, &read, err);
  BASE_TRY(leave(e, call, "read_cursor", status, err));
  *out = read;
  return WEIR_OK;
}

weir_status txn_session_ready(txn_engine *e, int64_t deadline, weir_error *err) {
  weir_cursor read = {0};
  pthread_mutex_lock(&e->hub->lock);
  bool known = e->hub->at_known;
  pthread_mutex_unlock(&e->hub->lock);
  if (e->session && e->took_over && known) return WEIR_OK;
  if (!e->session || !e->took_over) BASE_TRY(txn_session_take_over(e, deadline, err));
  BASE_TRY(txn_session_read_cursor(e, deadline, &read, err));
  return keep_cursor(e, &read, err);
}

weir_status txn_session_find_cursors(txn_engine *e, int64_t deadline,
                                     weir_cursor_list *out, weir_error *err) {
  BASE_TRY(txn_session_open(e, deadline, err));
  if (!e->hub->ops->find_cursors) return WEIR_OK;
  weir_call *call = enter(e, deadline);
  weir_status status = e->hub->ops->find_cursors(e->session, call, out, err);
  return leave(e, call, "find_cursors", status, err);
}

weir_status txn_session_begin(txn_engine *e, int64_t deadline, weir_error *err) {
  if (WEIR_FAULT("txn.begin")) return lost("begin", err);
  weir_call *call = enter(e, deadline);
  weir_status status = e->hub->ops->begin(e->session, call, err);
  BASE_TRY(leave(e, call, "begin", status, err));
  e->in_txn = true;
  e->txn_since = base_clock_mono();
  pthread_mutex_lock(&e->hub->lock);
  e->spoiled = e->age_told = false;
  pthread_mutex_unlock(&e->hub->lock);
  return WEIR_OK;
}

weir_status txn_session_apply(txn_engine *e, int64_t deadline, weir_batch *batch,
                              weir_error *err) {
  if (WEIR_FAULT("txn.apply")) return lost("apply", err);
  weir_call *call = enter(e, deadline);
  weir_status status = e->hub->ops->apply(e->session, call, batch, err);
  return leave(e, call, "apply", status, err);
}

weir_status txn_session_prepare(txn_engine *e, int64_t deadline, weir_error *err) {
  if (WEIR_FAULT("txn.prepare")) return lost("prepare", err);
  pthread_mutex_lock(&e->hub->lock);
  weir_cursor at = e->hub->at;
  pthread_mutex_unlock(&e->hub->lock);
  weir_call *call = enter(e, deadline);
  weir_status status = e->hub->ops->prepare(e->session, call, &at, err);
  BASE_TRY(leave(e, call, "prepare", status, err));
  return WEIR_FAULT("txn.prepared") ? lost("prepare", err) : WEIR_OK;
}

weir_status txn_session_commit(txn_engine *e, int64_t deadline, const weir_txn_commit *c,
                               weir_error *err) {
  if (WEIR_FAULT("txn.commit")) return lost("commit", err);
  weir_call *call = enter(e, deadline);
  weir_status status = e->hub->ops->commit(e->session, call, c, err);
  BASE_TRY(leave(e, call, "commit", status, err));
  e->in_txn = false;
  if (WEIR_FAULT("txn.committed"))
    return weir_error_set(err, WEIR_E_IO, WEIR_ERR_IN_DOUBT, "commit: no answer came");
  return WEIR_OK;
}

void txn_session_abort(txn_engine *e, int64_t deadline) {
  weir_error err = {0};
  if (!e->session || !e->in_txn) return;
  weir_call *call = enter(e, deadline);
  weir_status status = e->hub->ops->abort(e->session, call, &err);
  status = leave(e, call, "abort", status, &err);
  e->in_txn = false;
  if (status) txn_session_close(e);
}
