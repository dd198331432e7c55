/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One participant: a thread that lets batches through the gate into write_batch, and executes the
 * coordinator's jobs between them.
 *
 * A thread that is inside the connector holds no lock. When it comes back it looks first whether its
 * generation was retired meanwhile; if so it touches nothing of the actor any more but its count.
 */
#include "task/actor.h"

#include <stdlib.h>
#include <string.h>

/* Between two tries of an open that failed retriably; doubles. */
#define OPEN_PAUSE_MIN (100 * BASE_NS_PER_MS)

/* ---- counts ------------------------------------------------------------------------------ */

void actor_unref(task_actor *a) {
  if (atomic_fetch_sub(&a->refs, 1) != 1) return;
  for (uint32_t i = 0; a->queues && i < a->n_queues; i++) task_queue_done(&a->queues[i]);
  weir_batch_unref(a->letters);
  task_router_free(a->keys);
  free(a->takers);
  free(a->feeders);
  free(a->fed);
  for (task_job *job; (job = job_list_take(&a->jobs));) task_job_free(job);
  for (task_job *job; (job = job_list_take(&a->commit_jobs));) task_job_free(job);
  for (size_t i = 0; i < a->n_trackers; i++) weir_task_tracker_unref(a->trackers[i]);
  free(a->trackers);
  free(a->queues);
  free(a->lanes);
  free(a->met);
  free(a->fin);
  pthread_cond_destroy(&a->over);
  pthread_cond_destroy(&a->wake_commit);
  pthread_cond_destroy(&a->wake);
  pthread_mutex_destroy(&a->lock);
  free(a);
}

static void generation_free(generation *g) {
  task_actor *a = g->actor;
  connector_sink_unref(g->sink);
  weir_task_tracker_unref(g->tracker);
  free(g);
  actor_unref(a);
}

void generation_unref(generation *g) {
  if (atomic_fetch_sub(&g->refs, 1) == 1) generation_free(g);
}

/* ---- making ------------------------------------------------------------------------------ */

weir_status task_actor_new(const task_actor_config *config, task_actor **out,
                           weir_error *err) {
  task_actor *a = base_calloc(1, sizeof(*a), err);
  if (!a) return WEIR_E_NOMEM;
  a->config = *config;
  atomic_init(&a->refs, 1);
  weir_status status = base_mutex_init(&a->lock, err);
  if (status) goto fail_lock;
  status = base_cond_init(&a->wake, err);
  if (status) goto fail_wake;
  status = base_cond_init(&a->wake_commit, err);
  if (status) goto fail_commit;
  status = base_cond_init(&a->over, err);
  if (status) goto fail_over;
  size_t n = config->n_lanes + config->n_feeders;
  a->n_queues = (uint32_t)n;
  a->queues = base_calloc(n, sizeof(*a->queues), err);
  a->lanes = base_calloc(n, sizeof(*a->lanes), err);
  a->feeders = base_calloc(n, sizeof(*a->feeders), err);
  a->fed = base_calloc(n, 1, err);
  a->met = base_calloc(n, 1, err);
  a->fin = base_calloc(n, 1, err);
  if (!a->queues || !a->lanes || !a->feeders || !a->fed || !a->met || !a->fin) {
    actor_unref(a);
    return WEIR_E_NOMEM;
  }
  memcpy(a->fed, config->fed, config->n_lanes);
  memset(a->fed + config->n_lanes, 1, config->n_feeders);
  *out = a;
  return WEIR_OK;
fail_over:
  pthread_cond_destroy(&a->wake_commit);
fail_commit:
  pthread_cond_destroy(&a->wake);
fail_wake:
  pthread_mutex_destroy(&a->lock);
fail_lock:
  free(a);
  return status;
}

/* Starts a thread that holds a reference to its generation. Lock held. */
static weir_status start_thread(generation *g, const char *name, void *(*run)(void *),
                                weir_error *err) {
  pthread_t thread;
  atomic_fetch_add(&g->refs, 1);
  g->threads++;
  weir_status status = base_thread_start(&thread, name, run, g, err);
  if (status) {
    g->threads--;
    atomic_fetch_sub(&g->refs, 1);
    return status;
  }
  /* Nobody joins: a thread may hang in a connector for ever. `threads` and `over` say when it ended. */
  pthread_detach(thread);
  return WEIR_OK;
}

/* A place for the tracker of one more generation, so that a retirement needs no memory. Lock held. */
static weir_status reserve_tracker(task_actor *a, weir_error *err) {
  weir_task_tracker **trackers =
      base_realloc(a->trackers, a->n_generations + 1, sizeof(*trackers), err);
  if (!trackers) return WEIR_E_NOMEM;
  a->trackers = trackers;
  a->n_generations++;
  return WEIR_OK;
}

weir_status task_actor_start(task_actor *a, connector_sink *sink,
                             const weir_binding *binding, weir_error *err) {
  generation *g = base_calloc(1, sizeof(*g), err);
  if (!g) return WEIR_E_NOMEM;
  atomic_init(&g->refs, 1);
  g->actor = a;
  g->sink = sink;
  g->binding = binding;
  g->opening = binding != NULL;
  pthread_mutex_lock(&a->lock);
  weir_status status = reserve_tracker(a, err);
  if (!status) status = start_thread(g, a->config.name, generation_main, err);
  if (!status) {
    atomic_fetch_add(&a->refs, 1);
    a->gen = g;
    g->tracker = connector_sink_tracker(sink);
    g->has_commit_thread = a->config.overlap && a->config.participant == 1;
    if (g->has_commit_thread) {
      weir_error ignored = {0};
      /* Without a second thread the committer's jobs run on the first: slower, as safe. */
      if (start_thread(g, "weir-commit", generation_commit_main, &ignored))
        g->has_commit_thread = 0;
    }
  }
  pthread_mutex_unlock(&a->lock);
  if (status) free(g);
  return status;
}

int task_actor_wants_generation(task_actor *a) {
  pthread_mutex_lock(&a->lock);
  int wants = !a->gen && !a->stopping && (a->jobs.first || a->commit_jobs.first);
  pthread_mutex_unlock(&a->lock);
  return wants;
}

void task_actor_send(task_actor *a, task_job *job) {
  int commits = job->type >= TASK_TAKE_OVER;
  pthread_mutex_lock(&a->lock);
  job_list_add(commits ? &a->commit_jobs : &a->jobs, job);
  pthread_cond_signal(&a->wake);
  pthread_cond_signal(&a->wake_commit);
  pthread_mutex_unlock(&a->lock);
}

/* ---- the thread ---------------------------------------------------------------------------- */

void seat_enter(seat *at, const char *hook, int64_t timeout_ns) {
  int64_t deadline = base_deadline(timeout_ns);
  at->doing = hook;
  at->timeout = timeout_ns;
  at->late_at = 0;
  connector_call_arm(&at->call, deadline, deadline);
}

void seat_leave(seat *at) {
  at->doing = NULL;
}

/* One try, whose failure may be followed by another. Lock held at entry and exit. */
static weir_status try_open(generation *g, weir_error *err) {
  task_actor *a = g->actor;
  seat_enter(&g->main, "open", a->config.timeouts.open);
  pthread_mutex_unlock(&a->lock);
  weir_status status = connector_sink_open(g->sink, &g->main.call, g->binding, err);
  pthread_mutex_lock(&a->lock);
  seat_leave(&g->main);
  return status;
}

/* A target that is away for a moment must not end the run: an open that may be repeated is, for the
 * length of one call's deadline in all. */
static void open_first(generation *g) {
  task_actor *a = g->actor;
  int64_t give_up = base_deadline(a->config.timeouts.open);
  pthread_mutex_lock(&a->lock);
  weir_status status = g->opening ? try_open(g, &g->open_error) : WEIR_OK;
  for (int64_t pause = OPEN_PAUSE_MIN; status; pause *= 2) {
    int64_t next = base_deadline(pause);
    if (!(g->open_error.flags & WEIR_ERR_RETRIABLE) || next >= give_up ||
        connector_sink_state_of(g->sink) != CONNECTOR_SINK_BOUND)
      break;
    while (!g->retired && !a->stopping && base_clock_mono() < next)
      base_cond_wait_until(&a->wake, &a->lock, next);
    if (g->retired || a->stopping) break;
    status = try_open(g, &g->open_error);
  }
  if (g->opening && !g->retired) {
    g->opening = 0;
    g->open_failed = status != WEIR_OK;
    pthread_cond_broadcast(&a->wake_commit);
    if (status) generation_retire_if_terminal(g, &g->open_error, 0);
    if (status && !g->retired) actor_failed(a, &g->open_error);
  }
  pthread_mutex_unlock(&a->lock);
}

/* Lock held at entry and exit. */
static void flush(generation *g) {
  task_actor *a = g->actor;
  weir_error error = {0};
  seat_enter(&g->main, "flush", a->config.timeouts.flush);
  a->dirty_since = 0;
  pthread_mutex_unlock(&a->lock);
  weir_status status = connector_sink_flush(g->sink, &g->main.call, &error);
  pthread_mutex_lock(&a->lock);
  seat_leave(&g->main);
  if (!status || g->retired) return;
  a->gate = 0;
  generation_retire_if_terminal(g, &error, 0);
  if (!g->retired) actor_failed(a, &error);
}

static int64_t flush_at(const task_actor *a) {
  if (!a->dirty_since) return BASE_FOREVER;
  return a->dirty_since + a->config.flush_interval_ns;
}

/* One turn of the loop: a job, a flush that is due, an item, or a wait. Lock held at entry and exit;
 * 0: stop. */
static int turn(generation *g) {
  task_actor *a = g->actor;
  if (g->retired) return 0;
  task_job *job = job_list_take(&a->jobs);
  if (!job && !g->has_commit_thread) job = job_list_take(&a->commit_jobs);
  if (job) {
    pthread_mutex_unlock(&a->lock);
    generation_run(g, &g->main, job);
    pthread_mutex_lock(&a->lock);
    return 1;
  }
  if (a->stopping) return 0;
  if (a->dirty_since && base_clock_mono() >= flush_at(a)) {
    flush(g);
    return 1;
  }
  uint32_t queue = 0;
  task_item item = {0};
  if (g->open_failed || !actor_hand_over(a) || !actor_next_item(a, &queue, &item)) {
    base_cond_wait_until(&a->wake, &a->lock, flush_at(a));
    return 1;
  }
  if (item.type == TASK_ITEM_BATCH)
    actor_write(g, queue, &item);
  else
    actor_meet(a, queue, &item);
  return 1;
}

/* The last thing a thread does. The count goes down before the lock is given up, so that whoever waits for
 * `threads` and then drops the last reference has released the connector when it goes on. Lock held at
 * entry, not at exit. */
static void thread_over(generation *g) {
  task_actor *a = g->actor;
  atomic_fetch_add(&a->refs, 1);
  g->threads--;
  if (g->retired) a->strays--;
  pthread_cond_broadcast(&a->over);
  pthread_cond_broadcast(&a->wake);
  int last = atomic_fetch_sub(&g->refs, 1) == 1;
  pthread_mutex_unlock(&a->lock);
  if (last) generation_free(g);
  actor_unref(a);
}

/* Lock held at entry and exit. */
static void close_sink(generation *g) {
  task_actor *a = g->actor;
  weir_error error = {0};
  seat_enter(&g->main, "close", a->config.timeouts.close);
  pthread_mutex_unlock(&a->lock);
  weir_status status = connector_sink_close(g->sink, &g->main.call, &error);
  pthread_mutex_lock(&a->lock);
  seat_leave(&g->main);
  if (status && !g->retired) a->close_error = error;
}

void *generation_main(void *arg) {
  generation *g = arg;
  task_actor *a = g->actor;
  open_first(g);
  pthread_mutex_lock(&a->lock);
  while (turn(g)) continue;
  /* The committer's thread ends first: close is the last call. */
  while (!g->retired && g->threads > 1)
    base_cond_wait_until(&a->wake, &a->lock, BASE_FOREVER);
  if (!g->retired && !g->opening && !g->open_failed) close_sink(g);
  thread_over(g);
  return NULL;
}

void *generation_commit_main(void *arg) {
  generation *g = arg;
  task_actor *a = g->actor;
  pthread_mutex_lock(&a->lock);
  while (!g->retired) {
    task_job *job = g->opening ? NULL : job_list_take(&a->commit_jobs);
    if (job) {
      pthread_mutex_unlock(&a->lock);
      generation_run(g, &g->committer, job);
      pthread_mutex_lock(&a->lock);
    } else if (a->stopping) {
      break;
    } else {
      base_cond_wait_until(&a->wake_commit, &a->lock, BASE_FOREVER);
    }
  }
  thread_over(g);
  return NULL;
}

/* ---- the end ----------------------------------------------------------------------------------- */

void task_actor_totals(task_actor *a, uint64_t *rows, uint64_t *bytes) {
  pthread_mutex_lock(&a->lock);
  *rows = a->total_rows;
  *bytes = a->total_bytes;
  pthread_mutex_unlock(&a->lock);
}

/* Until when the seat's hook may still be under way. */
static int64_t busy_until(const seat *at, int64_t now) {
  int64_t deadline = at->doing ? weir_call_deadline(&at->call) : now;
  return deadline > now ? deadline : now;
}

void task_actor_stop(task_actor *a) {
  pthread_mutex_lock(&a->lock);
  a->stopping = 1;
  int64_t until = base_clock_mono();
  if (a->gen) {
    until = busy_until(&a->gen->main, until);
    until = busy_until(&a->gen->committer, until);
  }
  if (__builtin_add_overflow(until, a->config.timeouts.close, &a->join_by))
    a->join_by = BASE_FOREVER;
  for (task_job *job; (job = job_list_take(&a->jobs));) task_job_free(job);
  for (task_job *job; (job = job_list_take(&a->commit_jobs));) task_job_free(job);
  pthread_cond_broadcast(&a->wake);
  pthread_cond_broadcast(&a->wake_commit);
  pthread_mutex_unlock(&a->lock);
}

/* Lock held. */
static weir_status leave_behind(generation *g, weir_error *err) {
  task_actor *a = g->actor;
  const char *doing = g->committer.doing ? g->committer.doing : g->main.doing;
  g->retired = 1;
  a->strays += g->threads;
  connector_sink_retire(g->sink);
  connector_call_give_up(&g->main.call);
  connector_call_give_up(&g->committer.call);
  pthread_cond_broadcast(&a->wake);
  pthread_cond_broadcast(&a->wake_commit);
  return weir_error_set(
      err, WEIR_E_TIMEOUT, 0,
      "sink %s: participant %u: %s did not come back; its thread is left behind",
      a->config.name, a->config.participant, doing ? doing : "a call");
}

/* Detached tasks of generations that are released; no other thread is left to add one. */
static weir_status wait_for_trackers(task_actor *a, int64_t deadline_ns,
                                     weir_error *err) {
  weir_status status = WEIR_OK;
  for (size_t i = 0; i < a->n_trackers && !status; i++) {
    int64_t left = deadline_ns - base_clock_mono();
    status = weir_task_tracker_wait(a->trackers[i], left > 0 ? left : 0, err);
    if (status)
      weir_error_prefix(err, status, "sink %s: participant %u", a->config.name,
                        a->config.participant);
  }
  return status;
}

weir_status task_actor_join(task_actor *a, weir_error *err) {
  weir_status status = WEIR_OK;
  pthread_mutex_lock(&a->lock);
  int64_t deadline_ns = a->join_by;
  generation *g = a->gen;
  while (g && g->threads && base_cond_wait_until(&a->over, &a->lock, deadline_ns))
    continue;
  if (g && g->threads) status = leave_behind(g, err);
  if (g && g->tracker) {
    a->trackers[a->n_trackers++] = g->tracker;
    g->tracker = NULL;
  }
  a->gen = NULL;
  pthread_mutex_unlock(&a->lock);
  if (g) generation_unref(g);
  if (!status) status = wait_for_trackers(a, deadline_ns, err);
  if (!status && a->close_error.code) {
    *err = a->close_error;
    status = err->code;
  }
  return status;
}

void task_actor_free(task_actor *a) {
  if (a) actor_unref(a);
}
