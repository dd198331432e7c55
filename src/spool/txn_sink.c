/* SPDX-License-Identifier: Apache-2.0 */
/* The hooks of a sink table. Each comes on its participant's own thread. */
#include "spool/txn.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* How long an attempt waits for the commit of the one before to be sent, until it joins its transaction. */
#define MERGE_AFTER (100 * BASE_NS_PER_MS)

/* ---- creation ----------------------------------------------------------------------------------- */

static const char *missing_entry(const weir_txn_ops *ops) {
  const struct {
    bool there;
    const char *name;
  } required[] = {{ops->configure, "configure"},
                  {ops->release, "release"},
                  {ops->resolve, "resolve"},
                  {ops->prepare_target, "prepare_target"},
                  {ops->open, "open"},
                  {ops->close, "close"},
                  {ops->read_cursor, "read_cursor"},
                  {ops->begin, "begin"},
                  {ops->apply, "apply"},
                  {ops->prepare, "prepare"},
                  {ops->commit, "commit"},
                  {ops->abort, "abort"}};
  for (size_t i = 0; i < BASE_COUNT(required); i++)
    if (!required[i].there) return required[i].name;
  return NULL;
}

weir_status weir_txn_sink_create(const weir_txn_ops *ops, const weir_host *host,
                                 weir_sink *out, weir_error *err) {
  if (ops->abi_version != WEIR_ABI_VERSION || ops->struct_size < sizeof(*ops)) {
    return weir_error_set(err, WEIR_E_NOT_IMPLEMENTED, 0,
                          "a weir_txn_ops of another version; build the connector anew");
  }
  const char *missing = missing_entry(ops);
  if (missing)
    return weir_error_set(err, WEIR_E_NOT_IMPLEMENTED, 0,
                          "the connector's weir_txn_ops has no `%s`", missing);
  txn_sink *s = base_calloc(1, sizeof(*s), err);
  if (!s) return WEIR_E_NOMEM;
  weir_status status = weir_task_owner_new(&s->owner, err);
  if (status) {
    free(s);
    return status;
  }
  s->host = host;
  s->ops = ops;
  out->state = s;
  return WEIR_OK;
}

/* The host's tail is there only in a runtime that knows it. */
static const char *spool_of(const weir_host *host) {
  return host->struct_size >= sizeof(weir_host) ? host->spool : NULL;
}

/* Its epoch is over, for this sink at least. */
static void leave_epoch(txn_sink *s) {
  if (!s->attempt) return;
  pthread_mutex_lock(&s->hub->lock);
  txn_attempt_unref(s->hub, s->attempt);
  pthread_mutex_unlock(&s->hub->lock);
  s->attempt = NULL;
  s->part = NULL;
  s->prepared = false;
}

/* What was accepted and not prepared goes; what was may have been decided. */
static void drop_open_epoch(txn_sink *s) {
  weir_error ignored = {0};
  if (!s->attempt) return;
  pthread_mutex_lock(&s->hub->lock);
  bool open = !s->part->sealed;
  if (open && s->attempt->live) txn_hub_drop(s->hub, s->attempt);
  pthread_mutex_unlock(&s->hub->lock);
  if (open && s->part->writer)
    weir_spool_remove(s->hub->folder, &s->hub->ns, &s->part->id, &ignored);
  leave_epoch(s);
}

void weir_txn_sink_release(weir_sink *sink) {
  txn_sink *s = sink->state;
  sink->ops = NULL;
  sink->state = NULL;
  if (!s) return;
  if (s->hub) {
    leave_epoch(s);
    txn_hub_close(s->hub, false, NULL);
  }
  weir_schema_unref(s->schema);
  txn_cleaner_ops.unref(s->cleaner);
  txn_config_unref(s->config);
  weir_task_owner_free(s->owner);
  free(s);
}

int32_t weir_txn_sink_cancellation_policy(weir_sink *sink) {
  (void)sink;
  return WEIR_CANCEL_SAFE; /* every hook waits with its call; the engine's step is cancelled or left */
}

weir_task_tracker *weir_txn_sink_tracker(weir_sink *sink) {
  return weir_task_owner_tracker(((txn_sink *)sink->state)->owner);
}

weir_status weir_txn_sink_bind(weir_sink *sink, const weir_namespace *ns,
                               uint64_t participant_id, weir_error *err) {
  txn_sink *s = sink->state;
  if (!participant_id)
    return weir_error_set(err, WEIR_E_INVALID_STATE, 0, "participants begin with 1");
  s->ns = ns;
  s->participant = participant_id;
  return WEIR_OK;
}

/* ---- configuration ------------------------------------------------------------------------------- */

static weir_status configure(txn_sink *s, const weir_options *options, weir_error *err) {
  if (s->config) return WEIR_OK;
  txn_config *c = base_calloc(1, sizeof(*c), err);
  if (!c) return WEIR_E_NOMEM;
  weir_status status = s->ops->configure(s->host, options, &c->config, err);
  if (status) {
    free(c);
    return status;
  }
  atomic_init(&c->refs, 1);
  c->ops = s->ops;
  c->contract.struct_size = sizeof(c->contract);
  if (s->ops->contract) status = s->ops->contract(c->config, &c->contract, err);
  if (status) {
    txn_config_unref(c);
    return status;
  }
  s->config = c;
  return WEIR_OK;
}

static weir_status bound(txn_sink *s, const weir_options *options, weir_error *err) {
  if (!s->ns)
    return weir_error_set(err, WEIR_E_INVALID_STATE, 0, "before bind_runtime_context");
  return configure(s, options, err);
}

weir_status weir_txn_sink_contract(weir_sink *sink, const weir_options *options,
                                   weir_contract *out, weir_error *err) {
  txn_sink *s = sink->state;
  BASE_TRY(configure(s, options, err));
  out->consistency = WEIR_COMMITTABLE;
  out->topology = WEIR_MULTI_WRITER;
  out->input = s->config->contract.input;
  out->claims = s->config->contract.claims;
  out->overlap = 1;
  out->cas_commit = 1;
  out->staging = spool_of(s->host) && s->host->spool_shared ? WEIR_STAGING_SHARED
                                                            : WEIR_STAGING_NODE;
  return WEIR_OK;
}

weir_status weir_txn_sink_key(weir_sink *sink, const weir_options *options,
                              weir_names *out, weir_error *err) {
  txn_sink *s = sink->state;
  BASE_TRY(configure(s, options, err));
  return s->ops->key ? s->ops->key(s->config->config, out, err) : WEIR_OK;
}

weir_status weir_txn_sink_resolve(weir_sink *sink, const weir_call *call,
                                  const weir_options *options, weir_schema *input,
                                  weir_binding *out, weir_error *err) {
  txn_sink *s = sink->state;
  BASE_TRY(bound(s, options, err));
  return s->ops->resolve(s->config->config, call, s->ns, input, out, err);
}

weir_status weir_txn_sink_prepare(weir_sink *sink, const weir_call *call,
                                  const weir_options *options, weir_binding *binding,
                                  weir_error *err) {
  txn_sink *s = sink->state;
  BASE_TRY(bound(s, options, err));
  return s->ops->prepare_target(s->config->config, call, s->ns, binding, err);
}

weir_status weir_txn_sink_verify(weir_sink *sink, const weir_call *call,
                                 const weir_options *options, const weir_verify *ask,
                                 weir_verified *out, weir_error *err) {
  txn_sink *s = sink->state;
  BASE_TRY(bound(s, options, err));
  return s->ops->verify ? s->ops->verify(s->config->config, call, ask, out, err)
                        : WEIR_OK;
}

/* ---- the session --------------------------------------------------------------------------------- */

static weir_status need_cleaner(txn_sink *s, weir_error *err) {
  if (s->cleaner) return WEIR_OK;
  if (!spool_of(s->host)) {
    return weir_error_set(
        err, WEIR_E_INVALID_STATE, 0,
        "this host gives no spool folder, without which nothing can be delivered once");
  }
  return txn_cleaner_new(s->host->spool, &s->cleaner, err);
}

weir_status weir_txn_sink_open(weir_sink *sink, const weir_call *call,
                               const weir_options *options, const weir_binding *binding,
                               weir_error *err) {
  txn_sink *s = sink->state;
  BASE_TRY(bound(s, options, err));
  if (s->schema) return weir_error_set(err, WEIR_E_INVALID_STATE, 0, "opened twice");
  BASE_TRY(weir_call_check(call, "open", err));
  BASE_TRY(need_cleaner(s, err));
  BASE_TRY(weir_spool_prepare(s->host->spool, s->ns, err));
  BASE_TRY(txn_hub_open(s->config, s->host, s->ns, binding, &s->hub, err));
  txn_request *r = base_calloc(1, sizeof(*r), err);
  weir_status status = r ? WEIR_OK : WEIR_E_NOMEM;
  if (r) {
    r->type = TXN_OPEN;
    r->refs = 1;
    status = txn_hub_ask(s->hub, s->owner, r, call, err);
    pthread_mutex_lock(&s->hub->lock);
    txn_request_unref(r);
    pthread_mutex_unlock(&s->hub->lock);
  }
  if (status) {
    txn_hub_close(s->hub, true, call);
    s->hub = NULL;
    return status;
  }
  s->schema = weir_schema_ref(binding->schema);
  return WEIR_OK;
}

weir_status weir_txn_sink_close(weir_sink *sink, const weir_call *call, weir_error *err) {
  txn_sink *s = sink->state;
  (void)err;
  if (!s->hub) return WEIR_OK;
  drop_open_epoch(s);
  txn_hub_close(s->hub, true, call);
  s->hub = NULL;
  return WEIR_OK;
}

weir_status weir_txn_sink_schema(weir_sink *sink, struct ArrowSchema *out,
                                 weir_error *err) {
  txn_sink *s = sink->state;
  if (!s->schema)
    return weir_error_set(err, WEIR_E_INVALID_STATE, 0, "the schema before open");
  return weir_schema_export(s->schema, out, err);
}

weir_committer weir_txn_sink_committer(weir_sink *sink) {
  txn_sink *s = sink->state;
  return s->hub ? (weir_committer){&txn_committer_ops, s} : (weir_committer){NULL, NULL};
}

weir_cleaner weir_txn_sink_cleaner(weir_sink *sink) {
  txn_sink *s = sink->state;
  if (need_cleaner(s, NULL)) return (weir_cleaner){NULL, NULL};
  txn_cleaner_ops.ref(s->cleaner);
  return (weir_cleaner){&txn_cleaner_ops, s->cleaner};
}

/* ---- epochs -------------------------------------------------------------------------------------- */

static weir_spool_id *find_key(txn_sink *s, uint64_t epoch) {
  for (size_t i = 0; i < TXN_KEYS; i++)
    if (s->keys[i].attempt == epoch) return &s->keys[i];
  return NULL;
}

static weir_status need_open(const txn_sink *s, uint64_t epoch, const char *what,
                             weir_error *err) {
  if (s->hub && epoch) return WEIR_OK;
  return weir_error_set(err, WEIR_E_INVALID_STATE, 0, "%s of epoch %" PRIu64 " %s", what,
                        epoch, epoch ? "before open" : "which is no epoch");
}

/* Asked twice, it gives the same incarnation: the store may hold the first answer. */
weir_status weir_txn_sink_intent(weir_sink *sink, const weir_call *call, uint64_t epoch,
                                 weir_bytes *out, weir_error *err) {
  txn_sink *s = sink->state;
  (void)call;
  BASE_TRY(need_open(s, epoch, "the intent", err));
  weir_spool_id *known = find_key(s, epoch);
  if (known) return txn_intent_write(known, out, err);
  weir_spool_id id = {.attempt = epoch, .participant = s->participant};
  BASE_TRY(base_random(id.incarnation, sizeof(id.incarnation), err));
  BASE_TRY(txn_intent_write(&id, out, err));
  s->keys[s->next_key++ % TXN_KEYS] = id;
  return WEIR_OK;
}

weir_status weir_txn_sink_begin(weir_sink *sink, const weir_call *call, uint64_t epoch,
                                weir_error *err) {
  txn_sink *s = sink->state;
  (void)call;
  BASE_TRY(need_open(s, epoch, "the beginning", err));
  const weir_spool_id *key = find_key(s, epoch);
  if (!key) {
    return weir_error_set(err, WEIR_E_INVALID_STATE, 0,
                          "epoch %" PRIu64
                          " begins without an intent, so that its segment could not be "
                          "found again",
                          epoch);
  }
  if (s->attempt && !s->prepared) {
    return weir_error_set(err, WEIR_E_INVALID_STATE, 0,
                          "epoch %" PRIu64 " begins while epoch %" PRIu64 " is open",
                          epoch, s->attempt->number);
  }
  leave_epoch(s);
  pthread_mutex_lock(&s->hub->lock);
  weir_status status = txn_hub_begin(s->hub, key, &s->attempt, &s->part, err);
  pthread_mutex_unlock(&s->hub->lock);
  return status;
}

/* What the target has said of this attempt is told as soon as possible. A row that it names is of a batch that
 * was taken before, and none of the batch at hand. Lock held. */
static weir_status told(const txn_sink *s, weir_error *err) {
  const weir_error *failure = &s->attempt->failure;
  if (!failure->code) return WEIR_OK;
  if (err) *err = *failure;
  return weir_error_at(err, failure->code, -1, -1);
}

static weir_status add_batch(txn_sink *s, weir_batch *batch, weir_spool_frame *frame,
                             weir_error *err) {
  if (!s->part->writer)
    BASE_TRY(weir_spool_writer_new(s->hub->folder, &s->hub->ns, &s->part->id,
                                   &s->part->writer, err));
  return weir_spool_writer_append(s->part->writer, batch, frame, err);
}

weir_status weir_txn_sink_write(weir_sink *sink, const weir_call *call, weir_batch *batch,
                                weir_write_result *out, weir_error *err) {
  txn_sink *s = sink->state;
  weir_spool_frame frame = {0};
  if (!s->attempt || s->prepared)
    return weir_error_set(err, WEIR_E_INVALID_STATE, 0, "a batch outside an epoch");
  BASE_TRY(weir_call_check(call, "write", err));
  if (weir_batch_rows(batch) > 0) {
    pthread_mutex_lock(&s->hub->lock);
    weir_status status = told(s, err);
    pthread_mutex_unlock(&s->hub->lock);
    if (!status && s->ops->check)
      status = s->ops->check(s->config->config, &s->hub->binding, batch, err);
    if (!status) status = add_batch(s, batch, &frame, err);
    if (status) return status;
    pthread_mutex_lock(&s->hub->lock);
    status = txn_hub_add_frame(s->hub, s->attempt, s->part, &frame, batch, err);
    pthread_mutex_unlock(&s->hub->lock);
    if (status) return status;
  }
  *out = (weir_write_result){(uint64_t)weir_batch_rows(batch), frame.size};
  return WEIR_OK;
}

/* ---- pre_commit ----------------------------------------------------------------------------------- */

static bool has_rows(const txn_attempt *a) {
  for (size_t i = 0; i < a->n_parts; i++)
    if (a->parts[i]->n) return true;
  return false;
}

/* Counts this participant as sealed. *last: it was the last one. Lock held. */
static void seal_part(txn_sink *s, bool *last) {
  txn_attempt *a = s->attempt;
  if (!s->part->sealed) {
    s->part->sealed = true;
    a->n_sealed++;
  }
  *last = a->n_sealed == a->n_parts;
  /* Nothing to prove, and no commit comes for it. */
  if (*last && !has_rows(a)) txn_hub_drop(s->hub, a);
  pthread_cond_broadcast(&s->hub->changed);
}

static weir_status waited_in_vain(const txn_sink *s, const weir_call *call,
                                  weir_error *err) {
  const weir_error *trouble = &s->attempt->trouble;
  bool behind = s->hub->attempts != s->attempt;
  weir_status status = weir_call_check(call, "pre_commit", err);
  if (!status) status = WEIR_E_TIMEOUT;
  return weir_error_set(
      err, status, WEIR_ERR_RETRIABLE | (trouble->flags & WEIR_ERR_AWAY),
      "the target has not taken epoch %" PRIu64 ": %s", s->attempt->number,
      trouble->code ? trouble->message
      : behind ? "the commit of the epoch before it is not over"
               : "it is still at work; a longer `timeouts.pre_commit` and "
                 "`checkpoint.timeout`, or a shorter `checkpoint.interval`, may help");
}

/* Sooner than the runtime's own checkpoint timeout, which knows nothing of what stood in the way. */
static int64_t patience(const weir_call *call) {
  int64_t left = weir_call_remaining(call);
  return left == BASE_FOREVER ? BASE_FOREVER : base_deadline(left - left / 10);
}

/* Until this part is applied; the last one's, until the whole attempt is proven. Lock held. */
static weir_status wait_for_target(txn_sink *s, const weir_call *call, bool last,
                                   weir_error *err) {
  txn_attempt *a = s->attempt;
  bool brief = s->config->contract.brief;
  int64_t merge_at = base_deadline(MERGE_AFTER), until = patience(call);
  while (a->live) {
    BASE_TRY(told(s, err));
    if (a->proven || (!last && (brief || s->part->applied == s->part->n))) return WEIR_OK;
    if (base_clock_mono() >= merge_at && s->hub->merge < a->number) {
      s->hub->merge = a->number;
      pthread_cond_broadcast(&s->hub->changed);
    }
    if (base_clock_mono() < until && txn_hub_wait(s->hub, call)) continue;
    txn_hub_give_up(s->hub);
    return waited_in_vain(s, call, err);
  }
  if (!has_rows(a)) return WEIR_OK;
  return weir_error_set(err, WEIR_E_INVALID_STATE, WEIR_ERR_RETRIABLE,
                        "epoch %" PRIu64 " was rolled back meanwhile", a->number);
}

weir_status weir_txn_sink_pre_commit(weir_sink *sink, const weir_call *call,
                                     uint64_t epoch, weir_bytes *out, weir_error *err) {
  txn_sink *s = sink->state;
  weir_bytes descriptor = {0};
  bool last = false;
  if (!epoch || !s->attempt || s->attempt->number != epoch) {
    return weir_error_set(err, WEIR_E_INVALID_STATE, 0,
                          "pre_commit of epoch %" PRIu64 ", which is not open", epoch);
  }
  BASE_TRY(weir_call_check(call, "pre_commit", err));
  /* Durable before the target is asked: whatever becomes of its transaction, this can be applied again. */
  if (s->part->writer)
    BASE_TRY(weir_spool_writer_seal(s->part->writer, &descriptor, err));
  pthread_mutex_lock(&s->hub->lock);
  weir_status status = txn_hub_need_engine(s->hub, s->owner, err);
  if (!status) {
    seal_part(s, &last);
    status = wait_for_target(s, call, last, err);
  }
  pthread_mutex_unlock(&s->hub->lock);
  if (status) {
    weir_bytes_release(&descriptor);
    return status;
  }
  s->prepared = true;
  *out = descriptor;
  return WEIR_OK;
}

/* ---- rollback ------------------------------------------------------------------------------------- */

/* Of the whole attempt, whoever of its participants is asked first. Not waited for: what is in the open
 * transaction can only be committed by a batch that names it. */
weir_status weir_txn_sink_rollback(weir_sink *sink, const weir_call *call, uint64_t epoch,
                                   weir_error *err) {
  txn_sink *s = sink->state;
  weir_status status = WEIR_OK;
  (void)call;
  if (!epoch || !s->hub) return WEIR_OK;
  txn_hub *hub = s->hub;
  pthread_mutex_lock(&hub->lock);
  txn_attempt *a = txn_hub_find(hub, epoch);
  if (a) {
    a->refs++;
    txn_hub_drop(hub, a);
  }
  pthread_mutex_unlock(&hub->lock);
  /* Nobody adds a part to an attempt that is not live. */
  for (size_t i = 0; a && i < a->n_parts; i++) {
    weir_status failed = weir_spool_remove(hub->folder, &hub->ns, &a->parts[i]->id, err);
    if (failed) status = failed;
  }
  if (s->attempt && s->attempt->number == epoch) leave_epoch(s);
  pthread_mutex_lock(&hub->lock);
  txn_attempt_unref(hub, a);
  pthread_mutex_unlock(&hub->lock);
  return status;
}

uint64_t weir_txn_sink_write_timeout_ms(weir_sink *sink) {
  (void)sink;
  return 60000;
}
