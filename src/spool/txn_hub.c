/* SPDX-License-Identifier: Apache-2.0 */
/* What the participants of one sink share. */
#include <stdlib.h>
#include <string.h>

#include "spool/txn.h"

/* Batches that wait in memory for the engine, of all participants of a sink; beyond it they are read back. */
#define HELD_BYTES (UINT64_C(32) << 20)
/* How long a cancel flag, which wakes nobody, may go unseen. */
#define LOOK (50 * BASE_NS_PER_MS)

/* Hubs of this process, each found by its participants; guarded by the lock beside it. */
static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static txn_hub *registry;

txn_config *txn_config_ref(txn_config *config) {
  atomic_fetch_add(&config->refs, 1);
  return config;
}

void txn_config_unref(txn_config *config) {
  if (!config || atomic_fetch_sub(&config->refs, 1) != 1) return;
  config->ops->release(config->config);
  free(config);
}

/* ---- what sessions see of the host -------------------------------------------------------------- */

static void hub_log(void *ctx, int32_t level, const char *where, const char *text) {
  txn_hub *hub = ctx;
  pthread_mutex_lock(&hub->lock);
  if (hub->real) hub->real->log(hub->real->ctx, level, where, text);
  pthread_mutex_unlock(&hub->lock);
}

static int64_t hub_monotonic(void *ctx) {
  (void)ctx;
  return base_clock_mono();
}

static int64_t hub_wall(void *ctx) {
  (void)ctx;
  return base_clock_wall();
}

static weir_status hub_random(void *ctx, void *out, size_t size, weir_error *err) {
  (void)ctx;
  return base_random(out, size, err);
}

/* ---- life --------------------------------------------------------------------------------------- */

static void hub_free(txn_hub *hub) {
  while (hub->attempts) txn_hub_drop(hub, hub->attempts);
  while (hub->requests) {
    txn_request *r = hub->requests;
    hub->requests = r->next;
    txn_request_unref(r);
  }
  if (hub->serving) txn_request_unref(hub->serving); /* left behind with its engine */
  txn_config_unref(hub->config);
  weir_binding_done(&hub->binding);
  free(hub->pipeline);
  free(hub->sink_id);
  free(hub->folder);
  pthread_cond_destroy(&hub->changed);
  pthread_mutex_destroy(&hub->lock);
  free(hub);
}

static weir_status copy_binding(const weir_binding *binding, weir_binding *out,
                                weir_error *err) {
  out->struct_size = sizeof(*out);
  if (binding->identity) {
    out->identity = base_strdup(binding->identity, err);
    if (!out->identity) return WEIR_E_NOMEM;
  }
  out->schema = weir_schema_ref(binding->schema);
  return WEIR_OK;
}

static weir_status hub_fill(txn_hub *hub, const weir_namespace *ns,
                            const weir_binding *binding, weir_error *err) {
  hub->ns = *ns;
  hub->ns.pipeline = hub->pipeline = base_strdup(ns->pipeline, err);
  hub->ns.sink_id = hub->sink_id = base_strdup(ns->sink_id, err);
  hub->folder = base_strdup(hub->real->spool, err);
  if (!hub->pipeline || !hub->sink_id || !hub->folder) return WEIR_E_NOMEM;
  BASE_TRY(copy_binding(binding, &hub->binding, err));
  hub->limit = hub->real->spool_limit;
  hub->keep = hub->real->spool_keep;
  hub->last_request = &hub->requests;
  hub->host = (weir_host){.abi_version = WEIR_ABI_VERSION,
                          .struct_size = sizeof(weir_host),
                          .ctx = hub,
                          .log = hub_log,
                          .monotonic_ns = hub_monotonic,
                          .wall_ns = hub_wall,
                          .random = hub_random};
  hub->place = (weir_txn_place){.struct_size = sizeof(weir_txn_place),
                                .host = &hub->host,
                                .ns = &hub->ns,
                                .binding = &hub->binding};
  return WEIR_OK;
}

static weir_status hub_new(txn_config *config, const weir_host *host,
                           const weir_namespace *ns, const weir_binding *binding,
                           txn_hub **out, weir_error *err) {
  txn_hub *hub = base_calloc(1, sizeof(*hub), err);
  if (!hub) return WEIR_E_NOMEM;
  weir_status status = base_mutex_init(&hub->lock, err);
  if (status) goto fail_lock;
  status = base_cond_init(&hub->changed, err);
  if (status) goto fail_cond;
  hub->ops = config->ops;
  hub->config = txn_config_ref(config);
  hub->real = host;
  weir_namespace_key(ns, hub->key);
  status = hub_fill(hub, ns, binding, err);
  if (status) {
    hub_free(hub);
    return status;
  }
  *out = hub;
  return WEIR_OK;
fail_cond:
  pthread_mutex_destroy(&hub->lock);
fail_lock:
  free(hub);
  return status;
}

/* Never one of another run of the pipeline, of which a sink was left behind: its options are not these, and
 * nobody hears what it asks of its host. While there are sinks their host stays. */
weir_status txn_hub_open(txn_config *config, const weir_host *host,
                         const weir_namespace *ns, const weir_binding *binding,
                         txn_hub **out, weir_error *err) {
  char key[WEIR_NAMESPACE_KEY_SIZE];
  weir_status status = WEIR_OK;
  weir_namespace_key(ns, key);
  pthread_mutex_lock(&registry_lock);
  txn_hub *hub = registry;
  while (hub && (hub->ops != config->ops || strcmp(hub->key, key) != 0 || !hub->sinks ||
                 hub->real != host))
    hub = hub->next;
  if (!hub) {
    status = hub_new(config, host, ns, binding, &hub, err);
    if (!status) {
      hub->next = registry;
      registry = hub;
    }
  }
  if (!status) {
    hub->refs++;
    hub->sinks++;
    *out = hub;
  }
  pthread_mutex_unlock(&registry_lock);
  return status;
}

void txn_hub_unref(txn_hub *hub) {
  pthread_mutex_lock(&registry_lock);
  bool last = --hub->refs == 0;
  for (txn_hub **at = &registry; last && *at; at = &(*at)->next) {
    if (*at != hub) continue;
    *at = hub->next;
    break;
  }
  pthread_mutex_unlock(&registry_lock);
  if (last) hub_free(hub);
}

/* The engine ends by itself; one that does not in time is left to its guard. */
static void stop_engine(txn_hub *hub, bool wait, const weir_call *call) {
  pthread_mutex_lock(&hub->lock);
  hub->stop = true;
  if (hub->holding) hub->real->hold(hub->real->ctx, 0);
  hub->holding = false;
  hub->real = NULL;
  txn_engine *e = hub->engine;
  hub->engine = NULL;
  pthread_cond_broadcast(&hub->changed);
  while (e && !e->ended && wait && txn_hub_wait(hub, call)) continue;
  bool ended = e && e->ended;
  if (e && !ended) {
    e->orphan = true;
    if (e->call) weir_call_cancel(e->call);
  }
  pthread_t thread = e ? e->thread : 0;
  pthread_mutex_unlock(&hub->lock);
  if (!e) return;
  if (!ended) {
    pthread_detach(thread);
    return;
  }
  pthread_join(thread, NULL);
  free(e);
}

void txn_hub_close(txn_hub *hub, bool wait, const weir_call *call) {
  pthread_mutex_lock(&registry_lock);
  bool last = --hub->sinks == 0;
  pthread_mutex_unlock(&registry_lock);
  if (last) stop_engine(hub, wait, call);
  txn_hub_unref(hub);
}

weir_status txn_hub_need_engine(txn_hub *hub, weir_task_owner *owner, weir_error *err) {
  if (hub->engine) return WEIR_OK;
  BASE_TRY(txn_engine_start(hub, owner, err));
  pthread_mutex_lock(&registry_lock);
  hub->refs++; /* the engine's */
  pthread_mutex_unlock(&registry_lock);
  return WEIR_OK;
}

/* ---- waiting ------------------------------------------------------------------------------------ */

bool txn_hub_wait(txn_hub *hub, const weir_call *call) {
  if (weir_call_cancelled(call)) return false;
  int64_t until = base_deadline(LOOK), deadline = weir_call_deadline(call);
  base_cond_wait_until(&hub->changed, &hub->lock, until < deadline ? until : deadline);
  return true;
}

/* The step is asked to come back; one that was asked before, or is past its own deadline, does not. */
void txn_hub_give_up(txn_hub *hub) {
  txn_engine *e = hub->engine;
  if (!e || !e->call) return;
  bool late = base_clock_mono() >= e->step_deadline;
  weir_call_cancel(e->call);
  if (!e->cancelled && !late) {
    e->cancelled = true;
    return;
  }
  e->orphan = true;
  hub->engine = NULL;
  hub->at_known = false;
  txn_hub_reset(hub);
  pthread_detach(e->thread);
  txn_request *r = hub->serving;
  hub->serving = NULL;
  if (r) {
    r->status = weir_error_set(&r->error, WEIR_E_TIMEOUT, WEIR_ERR_IN_DOUBT,
                               "the target did not answer; a new session will ask it");
    r->done = true;
    txn_request_unref(r);
  }
  pthread_cond_broadcast(&hub->changed);
}

void txn_request_unref(txn_request *r) {
  if (--r->refs) return;
  if (r->list.release) r->list.release(&r->list);
  free(r->attempts);
  free(r->accepted);
  free(r->positions);
  free(r->parts);
  free(r);
}

weir_status txn_hub_ask(txn_hub *hub, weir_task_owner *owner, txn_request *request,
                        const weir_call *call, weir_error *err) {
  pthread_mutex_lock(&hub->lock);
  weir_status status = txn_hub_need_engine(hub, owner, err);
  if (!status) {
    request->deadline = weir_call_deadline(call);
    request->next = NULL;
    request->refs++;
    *hub->last_request = request;
    hub->last_request = &request->next;
    pthread_cond_broadcast(&hub->changed);
    while (!request->done && txn_hub_wait(hub, call)) continue;
    if (!request->done) {
      txn_hub_give_up(hub);
      status = weir_error_set(
          err, WEIR_E_TIMEOUT,
          request->type == TXN_COMMIT ? WEIR_ERR_IN_DOUBT : WEIR_ERR_RETRIABLE,
          "the target did not answer in time");
    } else {
      status = request->status;
      if (status && err) *err = request->error;
    }
  }
  pthread_mutex_unlock(&hub->lock);
  return status;
}

/* ---- attempts ----------------------------------------------------------------------------------- */

txn_attempt *txn_hub_find(txn_hub *hub, uint64_t number) {
  txn_attempt *a = hub->attempts;
  while (a && a->number != number) a = a->next;
  return a;
}

static void part_free(txn_hub *hub, txn_part *part) {
  for (size_t i = 0; i < part->n; i++) {
    if (!part->frames[i].batch) continue;
    hub->held_bytes -= weir_batch_bytes(part->frames[i].batch);
    weir_batch_unref(part->frames[i].batch);
  }
  weir_spool_writer_free(part->writer);
  free(part->frames);
  free(part);
}

void txn_attempt_unref(txn_hub *hub, txn_attempt *a) {
  if (!a || --a->refs) return;
  for (size_t i = 0; i < a->n_parts; i++) part_free(hub, a->parts[i]);
  free(a->parts);
  free(a);
}

static txn_attempt *add_attempt(txn_hub *hub, uint64_t number, weir_error *err) {
  txn_attempt *a = base_calloc(1, sizeof(*a), err);
  if (!a) return NULL;
  a->number = number;
  a->refs = 1;
  a->live = true;
  txn_attempt **at = &hub->attempts;
  while (*at && (*at)->number < number) at = &(*at)->next;
  a->next = *at;
  *at = a;
  return a;
}

weir_status txn_hub_begin(txn_hub *hub, const weir_spool_id *id, txn_attempt **attempt,
                          txn_part **part, weir_error *err) {
  txn_attempt *a = txn_hub_find(hub, id->attempt);
  if (!a) a = add_attempt(hub, id->attempt, err);
  txn_part *p = base_calloc(1, sizeof(*p), err);
  txn_part **parts =
      a ? base_realloc(a->parts, a->n_parts + 1, sizeof(txn_part *), err) : NULL;
  if (parts) a->parts = parts;
  if (!parts || !p) {
    free(p);
    return WEIR_E_NOMEM;
  }
  p->id = *id;
  a->parts[a->n_parts++] = p;
  a->refs++;
  *attempt = a;
  *part = p;
  return WEIR_OK;
}

void txn_hub_drop(txn_hub *hub, txn_attempt *a) {
  txn_attempt **at = &hub->attempts;
  while (*at && *at != a) at = &(*at)->next;
  if (!*at) return;
  *at = a->next;
  a->next = NULL;
  a->live = false;
  if (a->included && hub->engine) hub->engine->spoiled = true;
  txn_attempt_unref(hub, a);
  txn_hub_press(hub);
  pthread_cond_broadcast(&hub->changed);
}

weir_status txn_hub_add_frame(txn_hub *hub, txn_attempt *a, txn_part *part,
                              const weir_spool_frame *at, weir_batch *batch,
                              weir_error *err) {
  if (part->n == part->room) {
    size_t room = part->room ? 2 * part->room : 16;
    txn_frame *frames = base_realloc(part->frames, room, sizeof(*frames), err);
    if (!frames) return WEIR_E_NOMEM;
    part->frames = frames;
    part->room = room;
  }
  uint64_t bytes = weir_batch_bytes(batch);
  bool hold = !hub->config->contract.brief && a == hub->attempts &&
              hub->held_bytes + bytes <= HELD_BYTES;
  if (hold) hub->held_bytes += bytes;
  part->frames[part->n++] = (txn_frame){*at, hold ? weir_batch_ref(batch) : NULL};
  a->bytes += at->size;
  txn_hub_press(hub);
  pthread_cond_broadcast(&hub->changed);
  return WEIR_OK;
}

void txn_hub_reset(txn_hub *hub) {
  for (txn_attempt *a = hub->attempts; a; a = a->next) {
    a->included = false;
    if (!hub->config->contract.brief) a->proven = false;
    for (size_t i = 0; i < a->n_parts; i++) a->parts[i]->applied = 0;
  }
  if (hub->engine) hub->engine->spoiled = false;
}

/* ---- limits ------------------------------------------------------------------------------------- */

void txn_hub_ask_checkpoint(txn_hub *hub) {
  if (hub->real && hub->real->checkpoint) hub->real->checkpoint(hub->real->ctx);
}

void txn_hub_press(txn_hub *hub) {
  uint64_t epoch = hub->config->contract.max_epoch_bytes, all = 0;
  bool full = false;
  for (txn_attempt *a = hub->attempts; a; a = a->next) {
    all += a->bytes;
    bool half = (epoch && a->bytes >= epoch / 2) || (hub->limit && all >= hub->limit / 2);
    if (half && !a->asked && a->n_sealed < a->n_parts) {
      a->asked = true;
      txn_hub_ask_checkpoint(hub);
    }
    full = full || (epoch && a->bytes >= epoch) || (hub->limit && all >= hub->limit);
  }
  if (full == hub->holding || !hub->real || !hub->real->hold) return;
  hub->holding = full;
  hub->real->hold(hub->real->ctx, full);
}
