/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hooks of connectors that have no thread of their own yet, or no more: resolve, prepare, open, close.
 * Some at a time, each with a deadline. A hook that does not come back is left behind on its thread,
 * which holds all that it can reach: the round and the connector.
 */
#include <stdlib.h>

#include "pipeline/pipeline.h"

#define AT_ONCE 8
/* For a hook whose flag was set to come back and say something better than 'too late'. */
#define GRACE (2 * BASE_NS_PER_S)

typedef struct hook_call {
  pipe_hook hook;
  connector_sink *sink; /* or: */
  connector_source *source;
  const char *where; /* the connector's own, as long as that */
  int64_t timeout;
  pipe_source *to_source;
  pipe_sink *to_sink;
  /* in, out: all the call's own */
  weir_schema *schema;
  weir_binding binding;
  weir_bytes position;
  weir_cursor_list cursors;
  weir_call call;
  /* under the round's lock */
  bool taken, done;
  weir_status status;
  weir_error error;
} hook_call;

struct pipe_round {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  size_t n, capacity;
  hook_call *calls;
  /* under lock */
  size_t refs; /* the opener's, and one a thread */
  bool failed; /* no more calls are begun */
};

/* ---- the round --------------------------------------------------------------------------------- */

weir_status pipe_round_new(size_t capacity, pipe_round **out, weir_error *err) {
  weir_status status = WEIR_E_NOMEM;
  pipe_round *r = base_calloc(1, sizeof(*r), err);
  if (!r) return status;
  r->calls = base_calloc(capacity, sizeof(*r->calls), err);
  if (!r->calls) goto fail_calls;
  status = base_mutex_init(&r->lock, err);
  if (status) goto fail_calls;
  status = base_cond_init(&r->changed, err);
  if (status) goto fail_cond;
  r->refs = 1;
  r->capacity = capacity;
  *out = r;
  return WEIR_OK;
fail_cond:
  pthread_mutex_destroy(&r->lock);
fail_calls:
  free(r->calls);
  free(r);
  return status;
}

/* With the lock held, which it gives back. */
static void round_drop(pipe_round *r) {
  bool last = --r->refs == 0;
  pthread_mutex_unlock(&r->lock);
  if (!last) return;
  for (size_t i = 0; i < r->n; i++) {
    hook_call *c = &r->calls[i];
    if (c->cursors.release) c->cursors.release(&c->cursors);
    connector_sink_unref(c->sink);
    connector_source_unref(c->source);
    weir_schema_unref(c->schema);
    weir_binding_done(&c->binding);
    weir_bytes_release(&c->position);
  }
  pthread_cond_destroy(&r->changed);
  pthread_mutex_destroy(&r->lock);
  free(r->calls);
  free(r);
}

void pipe_round_free(pipe_round *r) {
  if (!r) return;
  pthread_mutex_lock(&r->lock);
  round_drop(r);
}

static hook_call *add(pipe_round *r, pipe_hook hook) {
  hook_call *c = &r->calls[r->n++];
  c->hook = hook;
  c->binding.struct_size = sizeof(c->binding);
  return c;
}

weir_status pipe_round_add_sink(pipe_round *r, pipe_hook hook, pipe_sink *s, uint32_t k,
                                weir_schema *input, weir_error *err) {
  hook_call *c = add(r, hook);
  c->to_sink = s;
  c->where = connector_spec_where(s->spec);
  c->sink = connector_sink_ref(s->first[k]);
  c->timeout = hook == PIPE_CLOSE          ? s->timeouts.close
               : hook == PIPE_FIND_CURSORS ? s->timeouts.commit
                                           : s->timeouts.open;
  if (input) c->schema = weir_schema_ref(input);
  if (hook != PIPE_PREPARE && hook != PIPE_OPEN) return WEIR_OK;
  c->binding.schema = weir_schema_ref(s->binding.schema);
  if (!s->binding.identity) return WEIR_OK;
  c->binding.identity = base_strdup(s->binding.identity, err);
  return c->binding.identity ? WEIR_OK : WEIR_E_NOMEM;
}

weir_status pipe_round_add_source(pipe_round *r, pipe_hook hook, pipe_source *s,
                                  const weir_bytes *position, weir_error *err) {
  hook_call *c = add(r, hook);
  c->to_source = s;
  c->where = connector_spec_where(s->spec);
  c->source = connector_source_ref(s->source);
  c->timeout = s->open_timeout_ns;
  if (!position || !position->release) return WEIR_OK;
  return weir_bytes_copy(&c->position, position->data, position->size, err);
}

/* ---- its threads --------------------------------------------------------------------------------- */

static const char *name_of(pipe_hook hook) {
  static const char *const names[] = {
      [PIPE_RESOLVE] = "resolve_schema",
      [PIPE_PREPARE] = "prepare_schema",
      [PIPE_OPEN] = "open",
      [PIPE_FIND_CURSORS] = "find_cursors",
      [PIPE_CLOSE] = "close",
      [PIPE_SOURCE_RESOLVE] = "resolve_schema",
      [PIPE_SOURCE_OPEN] = "open",
  };
  return names[hook];
}

static weir_status run(hook_call *c, weir_error *err) {
  switch (c->hook) {
    case PIPE_RESOLVE:
      return connector_sink_resolve_schema(c->sink, &c->call, c->schema, &c->binding,
                                           err);
    case PIPE_PREPARE:
      return connector_sink_prepare_schema(c->sink, &c->call, &c->binding, err);
    case PIPE_OPEN:
      return connector_sink_open(c->sink, &c->call, &c->binding, err);
    case PIPE_FIND_CURSORS:
      return connector_sink_find_cursors(c->sink, &c->call, &c->cursors, err);
    case PIPE_CLOSE:
      return connector_sink_close(c->sink, &c->call, err);
    case PIPE_SOURCE_RESOLVE:
      return connector_source_resolve_schema(c->source, &c->call, &c->schema, err);
    case PIPE_SOURCE_OPEN:
      return connector_source_open(c->source, &c->call, &c->position, err);
  }
  return WEIR_OK;
}

static void *work(void *arg) {
  pipe_round *r = arg;
  pthread_mutex_lock(&r->lock);
  for (size_t i = 0; i < r->n && !r->failed; i++) {
    hook_call *c = &r->calls[i];
    if (c->taken) continue;
    weir_error error = {0};
    int64_t deadline = base_deadline(c->timeout);
    c->taken = true;
    connector_call_arm(&c->call, deadline, deadline);
    pthread_cond_broadcast(&r->changed); /* there is a deadline to wait for */
    pthread_mutex_unlock(&r->lock);
    weir_status status = run(c, &error);
    pthread_mutex_lock(&r->lock);
    c->done = true;
    c->status = status;
    c->error = error;
    /* Sinks that are closed do not wait for each other's success. */
    if (status && c->hook != PIPE_CLOSE) r->failed = true;
    pthread_cond_broadcast(&r->changed);
  }
  round_drop(r);
  return NULL;
}

/* Lock held at entry and exit. A thread that cannot be started is missed only when it is the first. */
static weir_status start_threads(pipe_round *r, weir_error *err) {
  /* Targets are claimed in one order, so that of two pipelines that start at the same moment one gets all
   * and not each some. */
  size_t at_once = r->n && r->calls[0].hook == PIPE_PREPARE ? 1 : AT_ONCE;
  for (size_t i = 0; i < r->n && i < at_once; i++) {
    pthread_t thread;
    weir_status status = base_thread_start(&thread, "weir-open", work, r, i ? NULL : err);
    if (status && !i) return status;
    if (status) break;
    r->refs++;
    pthread_detach(thread);
  }
  return WEIR_OK;
}

/* Whether something is still worth waiting for. Lock held. */
static bool busy(pipe_round *r, int64_t now, int64_t *until) {
  bool any = false;
  *until = BASE_FOREVER;
  for (size_t i = 0; i < r->n; i++) {
    hook_call *c = &r->calls[i];
    if (c->done || (!c->taken && r->failed)) continue;
    int64_t limit = c->taken ? weir_call_deadline(&c->call) : BASE_FOREVER;
    (void)connector_call_expire(&c->call, now);
    if (c->taken && now >= limit) limit += GRACE;
    if (now >= limit) {
      r->failed = true;
      continue;
    }
    any = true;
    if (limit < *until) *until = limit;
  }
  return any;
}

weir_status pipe_round_run(pipe_round *r, weir_error *err) {
  int64_t until = 0;
  pthread_mutex_lock(&r->lock);
  weir_status status = start_threads(r, err);
  while (!status && busy(r, base_clock_mono(), &until))
    base_cond_wait_until(&r->changed, &r->lock, until);
  for (size_t i = 0; i < r->n && !status; i++) {
    hook_call *c = &r->calls[i];
    if (c->done) {
      status = c->status;
      if (status && err) *err = c->error;
    } else if (c->taken) {
      status = weir_error_set(err, WEIR_E_TIMEOUT, WEIR_ERR_RETRIABLE,
                              "%s: %s did not come back within %g s; look whether its "
                              "target answers, then run again",
                              c->where, name_of(c->hook),
                              (double)c->timeout / (double)BASE_NS_PER_S);
    }
  }
  pthread_mutex_unlock(&r->lock);
  return status;
}

/* ---- what came of it: after a round that went well ---------------------------------------------------- */

void pipe_round_keep(pipe_round *r) {
  for (size_t i = 0; i < r->n; i++) {
    hook_call *c = &r->calls[i];
    if (c->hook == PIPE_SOURCE_RESOLVE) {
      c->to_source->schema = c->schema;
      c->schema = NULL;
    } else if (c->hook == PIPE_RESOLVE || c->hook == PIPE_PREPARE) {
      weir_binding_done(&c->to_sink->binding);
      c->to_sink->binding = c->binding;
      c->binding = (weir_binding){0};
    }
  }
}

const weir_cursor_list *pipe_round_cursors(const pipe_round *r, size_t i,
                                           const pipe_sink **sink) {
  if (i >= r->n) return NULL;
  *sink = r->calls[i].to_sink;
  return &r->calls[i].cursors;
}
