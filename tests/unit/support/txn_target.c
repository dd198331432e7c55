/* SPDX-License-Identifier: Apache-2.0 */
#include "support/txn_target.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"

struct target target = {.lock = PTHREAD_MUTEX_INITIALIZER};

typedef struct session {
  uint64_t epoch;
  int number;
  bool in_txn;
  int64_t rows[ROWS];
  size_t n;
} session;

void lock(void) {
  pthread_mutex_lock(&target.lock);
}

void unlock(void) {
  pthread_mutex_unlock(&target.lock);
}

void add_rule(rule r) {
  size_t i = 0;
  lock();
  while (target.rules[i].hook) i++;
  target.rules[i] = r;
  target.calls[i] = 0;
  unlock();
}

void drop_rule(size_t i) {
  lock();
  target.rules[i].hook = NULL;
  unlock();
}

void drop_rules(void) {
  lock();
  memset(target.rules, 0, sizeof(target.rules));
  unlock();
}

void lose_sessions(void) {
  lock();
  target.epoch++;
  unlock();
}

/* With the lock held. */
static weir_status scripted(const char *hook, const session *s, bool *lands,
                            weir_error *err) {
  if (s && s->epoch < target.epoch)
    return weir_error_set(err, WEIR_E_IO, WEIR_ERR_RETRIABLE, "connection lost");
  for (size_t i = 0; i < RULES && target.rules[i].hook; i++) {
    rule *r = &target.rules[i];
    if (strcmp(r->hook, hook) != 0) continue;
    if (++target.calls[i] != r->nth && r->nth) continue;
    if (lands) *lands = r->lands;
    weir_error_set(err, r->status, r->flags, "%s as scripted", hook);
    return weir_error_at(err, r->status, r->flags & WEIR_ERR_BAD_DATA ? 0 : -1, -1);
  }
  return WEIR_OK;
}

static weir_status configure(const weir_host *host, const weir_options *options,
                             void **config, weir_error *err) {
  (void)host, (void)options, (void)err;
  *config = &target;
  return WEIR_OK;
}

static void release(void *config) {
  (void)config;
}

static weir_status contract(void *config, weir_txn_contract *out, weir_error *err) {
  (void)config, (void)err;
  *out = target.contract;
  return WEIR_OK;
}

static weir_status resolve(void *config, const weir_call *call, const weir_namespace *ns,
                           weir_schema *input, weir_binding *out, weir_error *err) {
  (void)config, (void)call, (void)ns;
  return weir_binding_logical(input, out, err);
}

static weir_status prepare_target(void *config, const weir_call *call,
                                  const weir_namespace *ns, weir_binding *binding,
                                  weir_error *err) {
  (void)config, (void)call, (void)ns;
  return weir_binding_identify(binding, "target", "memory", err);
}

static weir_status check(void *config, const weir_binding *binding, weir_batch *batch,
                         weir_error *err) {
  (void)config, (void)binding;
  const int64_t *ids = weir_batch_array(batch)->children[0]->buffers[1];
  for (int64_t i = 0; i < weir_batch_rows(batch); i++) {
    if (ids[i] >= 0) continue;
    weir_error_set(err, WEIR_E_BAD_DATA, WEIR_ERR_BAD_DATA, "negative");
    return weir_error_at(err, WEIR_E_BAD_DATA, i, 0);
  }
  return WEIR_OK;
}

static weir_status open_session(void *config, const weir_call *call,
                                const weir_txn_place *place, void **out,
                                weir_error *err) {
  (void)config, (void)call;
  assert_string_equal(place->ns->sink_id, "s");
  lock();
  weir_status status = scripted("open", NULL, NULL, err);
  if (!status) {
    session *s = calloc(1, sizeof(*s));
    s->epoch = target.epoch;
    s->number = ++target.opened;
    *out = s;
  }
  unlock();
  return status;
}

static void close_session(void *state, const weir_call *call) {
  (void)call;
  lock();
  target.closed++;
  unlock();
  free(state);
}

static weir_status take_over(void *state, const weir_call *call, weir_error *err) {
  (void)call;
  lock();
  weir_status status = scripted("take_over", state, NULL, err);
  if (!status) target.taken_over++;
  unlock();
  return status;
}

static weir_status read_cursor(void *state, const weir_call *call, weir_cursor *out,
                               weir_error *err) {
  (void)call;
  lock();
  weir_status status = scripted("read_cursor", state, NULL, err);
  if (!status) *out = target.cursor;
  unlock();
  return status;
}

static weir_status begin(void *state, const weir_call *call, weir_error *err) {
  session *s = state;
  (void)call;
  lock();
  while (target.stuck == s->number) {
    unlock();
    base_sleep(BASE_NS_PER_MS);
    lock();
  }
  weir_status status = scripted("begin", s, NULL, err);
  assert_false(s->in_txn);
  if (!status) {
    s->in_txn = true;
    s->n = 0;
    target.begun++;
  }
  unlock();
  return status;
}

static weir_status apply(void *state, const weir_call *call, weir_batch *batch,
                         weir_error *err) {
  session *s = state;
  (void)call;
  lock();
  while (target.hang) {
    unlock();
    base_sleep(BASE_NS_PER_MS);
    lock();
  }
  assert_true(s->in_txn);
  weir_status status = scripted("apply", s, NULL, err);
  const int64_t *ids = weir_batch_array(batch)->children[0]->buffers[1];
  for (int64_t i = 0; !status && i < weir_batch_rows(batch); i++)
    s->rows[s->n++] = ids[i];
  if (!status) target.applied++;
  unlock();
  return status;
}

static weir_status prepare(void *state, const weir_call *call,
                           const weir_cursor *predecessor, weir_error *err) {
  session *s = state;
  (void)call;
  lock();
  assert_true(s->in_txn);
  weir_status status = scripted("prepare", s, NULL, err);
  if (!status && !weir_cursor_equal(&target.cursor, predecessor))
    status = weir_error_set(err, WEIR_E_CONFLICT, 0, "not the predecessor");
  if (!status) target.prepared++;
  unlock();
  return status;
}

static weir_status commit(void *state, const weir_call *call, const weir_txn_commit *c,
                          weir_error *err) {
  session *s = state;
  bool lands = false;
  (void)call;
  lock();
  assert_true(s->in_txn);
  weir_status status = scripted("commit", s, &lands, err);
  if (!status && !weir_cursor_equal(&target.cursor, &c->predecessor))
    status = weir_error_set(err, WEIR_E_CONFLICT, 0, "not the predecessor");
  if (!status || lands) {
    memcpy(target.rows + target.n, s->rows, s->n * sizeof(*s->rows));
    target.n += s->n;
    target.cursor = c->cursor;
    s->in_txn = false;
  }
  unlock();
  return status;
}

static weir_status abort_txn(void *state, const weir_call *call, weir_error *err) {
  session *s = state;
  (void)call;
  lock();
  weir_status status = scripted("abort", s, NULL, err);
  s->in_txn = false;
  unlock();
  return status;
}

const weir_txn_ops txn_target_ops = {.abi_version = WEIR_ABI_VERSION,
                                     .struct_size = sizeof(txn_target_ops),
                                     .configure = configure,
                                     .release = release,
                                     .contract = contract,
                                     .resolve = resolve,
                                     .prepare_target = prepare_target,
                                     .check = check,
                                     .open = open_session,
                                     .close = close_session,
                                     .take_over = take_over,
                                     .read_cursor = read_cursor,
                                     .begin = begin,
                                     .apply = apply,
                                     .prepare = prepare,
                                     .commit = commit,
                                     .abort = abort_txn};

static weir_status create(const weir_host *host, weir_sink *out, weir_error *err) {
  return weir_txn_sink_create(&txn_target_ops, host, out, err);
}

const weir_option txn_target_options[] = {{0}};
const weir_sink_ops txn_target_sink =
    WEIR_TXN_SINK_OPS("memory", "A target in memory.", txn_target_options, create);
