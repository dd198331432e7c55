/* SPDX-License-Identifier: Apache-2.0 */
/* Deadlines: hooks that come back late, or not at all, and what is owed when their generation is over. */
#include "task/actor.h"

static void answer_late(task_actor *a, const task_job *job, const weir_error *error) {
  coord_event event = {0};
  weir_error late = *error;
  /* The commit may have landed, or land yet. */
  if (job->type == TASK_COMMIT) {
    late.flags &= ~(uint32_t)WEIR_ERR_RETRIABLE;
    late.flags |= WEIR_ERR_IN_DOUBT;
  }
  actor_answer(a, job, &event, &late);
}

/* Another generation has other incarnations than the intents name, so nothing that was asked for the
 * attempt may be done by it. Rollback, purge and the committer's jobs wait for the next generation. */
static int answer_queued(task_actor *a, const weir_error *error) {
  int told = 0;
  job_list kept = {0};
  for (task_job *job; (job = job_list_take(&a->jobs));) {
    if (job->type == TASK_ROLLBACK || !task_job_ends_attempt(job->type)) {
      job_list_add(&kept, job);
    } else {
      answer_late(a, job, error);
      task_job_free(job);
      told = 1;
    }
  }
  a->jobs = kept;
  return told;
}

void generation_retire(generation *g, const weir_error *error, int told) {
  task_actor *a = g->actor;
  g->retired = 1;
  connector_sink_retire(g->sink);
  connector_call_give_up(&g->main.call);
  connector_call_give_up(&g->committer.call);
  a->gen = NULL;
  a->gate = 0;
  a->dirty_since = 0; /* the buffer went with it */
  weir_batch_unref(a->letters);
  a->letters = NULL;
  a->strays += g->threads;
  a->stuck = g->committer.doing ? g->committer.doing : g->main.doing;
  if (g->tracker) a->trackers[a->n_trackers++] = g->tracker;
  g->tracker = NULL;
  if (g->main.has_job) {
    answer_late(a, &g->main.job, error);
    told |= task_job_ends_attempt(g->main.job.type);
  }
  if (g->committer.has_job) answer_late(a, &g->committer.job, error);
  told |= answer_queued(a, error);
  if (!told) actor_failed(a, error);
  pthread_cond_broadcast(&a->wake);
  pthread_cond_broadcast(&a->wake_commit);
  generation_unref(g); /* the actor's; a thread has one still */
}

void generation_retire_if_terminal(generation *g, const weir_error *error, int told) {
  if (g->retired || connector_sink_state_of(g->sink) != CONNECTOR_SINK_RETIRED) return;
  generation_retire(g, error, told);
}

/* Whether the generation must be retired for what this seat's hook does. One that is cancel-safe must
 * come back soon after its flag was set; it gets the same time again. */
static int is_too_late(task_actor *a, seat *at, int64_t now_ns) {
  if (connector_call_expire(&at->call, now_ns)) {
    at->late_at = now_ns;
    return !a->config.cancel_safe;
  }
  return at->doing && at->late_at && now_ns - at->late_at > at->timeout;
}

int task_actor_watch(task_actor *a, int64_t now_ns, weir_error *what) {
  int retired = 0;
  pthread_mutex_lock(&a->lock);
  generation *g = a->gen;
  seat *late = NULL;
  if (g && is_too_late(a, &g->main, now_ns)) late = &g->main;
  if (g && !late && is_too_late(a, &g->committer, now_ns)) late = &g->committer;
  if (late) {
    weir_error_set(
        what, WEIR_E_TIMEOUT, WEIR_ERR_RETRIABLE,
        "sink %s: participant %u: %s did not come back before its deadline; this "
        "instance of the connector is not used again",
        a->config.name, a->config.participant, late->doing ? late->doing : "a call");
    generation_retire(g, what, 0);
    if (late->doing) a->stuck = late->doing;
    retired = 1;
  }
  pthread_mutex_unlock(&a->lock);
  return retired;
}

size_t task_actor_detached(task_actor *a) {
  size_t n = 0;
  pthread_mutex_lock(&a->lock);
  for (size_t i = 0; i < a->n_trackers; i++)
    n += weir_task_tracker_running(a->trackers[i]);
  pthread_mutex_unlock(&a->lock);
  return n;
}

const char *task_actor_stuck(task_actor *a) {
  pthread_mutex_lock(&a->lock);
  const char *call = a->strays ? a->stuck : NULL;
  pthread_mutex_unlock(&a->lock);
  return call;
}

size_t task_actor_strays(task_actor *a) {
  size_t n = task_actor_detached(a);
  pthread_mutex_lock(&a->lock);
  n += (size_t)a->strays;
  pthread_mutex_unlock(&a->lock);
  return n;
}
