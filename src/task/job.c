/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs: what the coordinator commands, executed on a sink's thread, answered as events. */
#include <stdlib.h>
#include <string.h>

#include "task/actor.h"

void task_job_free(task_job *job) {
  if (!job) return;
  free(job->commit);
  free(job->abort);
  free(job);
}

void job_list_add(job_list *list, task_job *job) {
  job->link = NULL;
  if (list->last)
    list->last->link = job;
  else
    list->first = job;
  list->last = job;
}

task_job *job_list_take(job_list *list) {
  task_job *job = list->first;
  if (!job) return NULL;
  list->first = job->link;
  if (!list->first) list->last = NULL;
  return job;
}

static coord_event_type answer_type(task_job_type type) {
  switch (type) {
    case TASK_GET_INTENT:
      return COORD_INTENT;
    case TASK_BEGIN:
      return COORD_BEGUN;
    case TASK_PRE_COMMIT:
      return COORD_PREPARED;
    case TASK_ROLLBACK:
      return COORD_ROLLED_BACK;
    case TASK_PURGE:
      return COORD_PURGED;
    case TASK_TAKE_OVER:
      return COORD_OBSERVED;
    case TASK_COMMIT:
      return COORD_COMMITTED;
    case TASK_CLEAN:
      return COORD_CLEANED;
  }
  return COORD_FAILED;
}

const char *task_job_name(task_job_type type) {
  static const char *const names[] = {
      [TASK_GET_INTENT] = "checkpoint_artifact_intent",
      [TASK_BEGIN] = "begin_epoch",
      [TASK_PRE_COMMIT] = "pre_commit",
      [TASK_ROLLBACK] = "rollback_epoch",
      [TASK_PURGE] = "a purge",
      [TASK_TAKE_OVER] = "take_over",
      [TASK_COMMIT] = "commit_aggregated",
      [TASK_CLEAN] = "clean",
  };
  return names[type];
}

static int64_t timeout_of(const task_timeouts *t, task_job_type type) {
  switch (type) {
    case TASK_GET_INTENT:
    case TASK_BEGIN:
      return t->begin;
    case TASK_PRE_COMMIT:
      return t->pre_commit;
    case TASK_ROLLBACK:
      return t->rollback;
    case TASK_CLEAN:
      return t->clean;
    case TASK_TAKE_OVER:
    case TASK_COMMIT:
      return t->commit;
    case TASK_PURGE:
      break; /* no hook */
  }
  return BASE_FOREVER;
}

int task_job_ends_attempt(task_job_type type) {
  return type == TASK_GET_INTENT || type == TASK_BEGIN || type == TASK_PRE_COMMIT ||
         type == TASK_ROLLBACK;
}

void actor_answer(task_actor *actor, const task_job *job, coord_event *event,
                  const weir_error *error) {
  event->type = answer_type(job->type);
  event->sink = actor->config.sink;
  event->participant = actor->config.participant;
  event->lane = COORD_NONE;
  event->attempt = job->attempt;
  event->generation = job->generation;
  event->error = error;
  task_mailbox_post(actor->config.mailbox, event);
}

void actor_failed(task_actor *actor, const weir_error *error) {
  coord_event event = {.type = COORD_FAILED,
                       .sink = actor->config.sink,
                       .participant = actor->config.participant,
                       .lane = COORD_NONE,
                       .attempt = actor->attempt,
                       .error = error};
  task_mailbox_post(actor->config.mailbox, &event);
}

void seat_next(generation *g, seat *at, const char *hook, int64_t timeout_ns) {
  pthread_mutex_lock(&g->actor->lock);
  seat_enter(at, hook, timeout_ns);
  pthread_mutex_unlock(&g->actor->lock);
}

static weir_status take_over(generation *g, seat *at, coord_event *event,
                             weir_error *err) {
  BASE_TRY(connector_sink_take_over(g->sink, &at->call, err));
  seat_next(g, at, "observe_cursor", g->actor->config.timeouts.commit);
  return connector_sink_observe_cursor(g->sink, &at->call, &event->cursor, err);
}

static weir_status clean(generation *g, weir_call *call, const task_job *job,
                         weir_error *err) {
  connector_cleaner *cleaner = NULL;
  BASE_TRY(connector_sink_cleaner(g->sink, &cleaner, err));
  weir_status status =
      cleaner ? connector_cleaner_clean(cleaner, call, job->abort, err) : WEIR_OK;
  connector_cleaner_free(cleaner);
  return status;
}

static weir_status pre_commit(generation *g, seat *at, const task_job *job,
                              coord_event *event, weir_error *err) {
  const task_actor_config *config = &g->actor->config;
  BASE_TRY(
      connector_sink_pre_commit(g->sink, &at->call, job->attempt, &event->bytes, err));
  if (!job->next || !config->committable) return WEIR_OK;
  seat_next(g, at, "checkpoint_artifact_intent", config->timeouts.begin);
  return connector_sink_intent(g->sink, &at->call, job->next, &event->intent, err);
}

static weir_status run(generation *g, seat *at, task_job *job, coord_event *event,
                       weir_error *err) {
  weir_call *call = &at->call;
  switch (job->type) {
    case TASK_GET_INTENT:
      return connector_sink_intent(g->sink, call, job->attempt, &event->bytes, err);
    case TASK_BEGIN:
      return connector_sink_begin_epoch(g->sink, call, job->attempt, err);
    case TASK_PRE_COMMIT:
      return pre_commit(g, at, job, event, err);
    case TASK_ROLLBACK:
      return connector_sink_rollback_epoch(g->sink, call, job->attempt, err);
    case TASK_PURGE:
      return WEIR_OK;
    case TASK_TAKE_OVER:
      return take_over(g, at, event, err);
    case TASK_COMMIT:
      return connector_sink_commit(g->sink, call, job->commit, &event->cursor, err);
    case TASK_CLEAN:
      return clean(g, call, job, err);
  }
  return WEIR_OK;
}

void generation_run(generation *g, seat *at, task_job *job) {
  task_actor *a = g->actor;
  coord_event event = {0};
  weir_error error = {0};
  pthread_mutex_lock(&a->lock);
  at->job = *job;
  at->has_job = 1;
  seat_enter(at, task_job_name(job->type), timeout_of(&a->config.timeouts, job->type));
  /* The attempt is over: what is queued behind its last batch taken waits for the purge. */
  if (job->type == TASK_ROLLBACK) a->gate = 0;
  int open_failed = g->open_failed;
  pthread_mutex_unlock(&a->lock);

  weir_status status = WEIR_OK;
  if (open_failed && job->type != TASK_PURGE) {
    error = g->open_error;
    status = error.code;
  } else {
    status = run(g, at, job, &event, &error);
  }

  pthread_mutex_lock(&a->lock);
  at->has_job = 0;
  seat_leave(at);
  if (!g->retired) {
    if (job->type == TASK_PURGE) actor_purge(a, job->generation);
    if (job->type == TASK_PRE_COMMIT && !status) a->dirty_since = 0;
    actor_answer(a, job, &event, status ? &error : NULL);
    if (status)
      generation_retire_if_terminal(g, &error, task_job_ends_attempt(job->type));
  }
  pthread_mutex_unlock(&a->lock);
  weir_bytes_release(&event.bytes);
  weir_bytes_release(&event.intent);
  task_job_free(job);
}

/* ---- deep copies: one block each ------------------------------------------------------------ */

weir_commit_batch *task_copy_commit(const weir_commit_batch *batch, const char *positions,
                                    weir_error *err) {
  size_t entries = 0, positions_size = positions ? strlen(positions) + 1 : 0;
  size_t bytes = positions_size;
  for (size_t i = 0; i < batch->n_attempts; i++) {
    entries += batch->attempts[i].n_entries;
    for (size_t k = 0; k < batch->attempts[i].n_entries; k++)
      bytes += batch->attempts[i].entries[k].size;
  }
  size_t size = sizeof(weir_commit_batch) + batch->n_accepted * sizeof(weir_cursor) +
                batch->n_attempts * sizeof(weir_commit_attempt) +
                entries * sizeof(weir_commit_entry) + bytes;
  weir_commit_batch *copy = base_calloc(1, size, err);
  if (!copy) return NULL;
  weir_cursor *accepted = (weir_cursor *)(copy + 1);
  weir_commit_attempt *attempts = (weir_commit_attempt *)(accepted + batch->n_accepted);
  weir_commit_entry *entry = (weir_commit_entry *)(attempts + batch->n_attempts);
  char *data = (char *)(entry + entries);
  *copy = *batch;
  copy->accepted = accepted;
  copy->attempts = attempts;
  copy->positions = NULL;
  if (batch->n_accepted)
    memcpy(accepted, batch->accepted, batch->n_accepted * sizeof(*accepted));
  for (size_t i = 0; i < batch->n_attempts; i++) {
    attempts[i] = batch->attempts[i];
    attempts[i].entries = entry;
    for (size_t k = 0; k < attempts[i].n_entries; k++, entry++) {
      *entry = batch->attempts[i].entries[k];
      if (entry->size) memcpy(data, entry->descriptor, entry->size);
      entry->descriptor = entry->present ? (uint8_t *)data : NULL;
      data += entry->size;
    }
  }
  if (positions) {
    memcpy(data, positions, positions_size);
    copy->positions = data;
  }
  return copy;
}

weir_abort_batch *task_copy_abort(const weir_store_entry *entries, size_t n,
                                  uint64_t attempt, weir_error *err) {
  size_t bytes = 0;
  for (size_t i = 0; i < n; i++) bytes += entries[i].size;
  weir_abort_batch *copy =
      base_calloc(1, sizeof(*copy) + n * sizeof(weir_abort_entry) + bytes, err);
  if (!copy) return NULL;
  weir_abort_entry *v = (weir_abort_entry *)(copy + 1);
  uint8_t *data = (uint8_t *)(v + n);
  *copy = (weir_abort_batch){sizeof(*copy), NULL, v, n};
  for (size_t i = 0; i < n; i++) {
    v[i] = (weir_abort_entry){.checkpoint = attempt,
                              .participant_id = entries[i].participant_id,
                              .has_intent = entries[i].present,
                              .intent = entries[i].present ? data : NULL,
                              .size = entries[i].size};
    if (entries[i].size) memcpy(data, entries[i].data, entries[i].size);
    data += entries[i].size;
  }
  return copy;
}
