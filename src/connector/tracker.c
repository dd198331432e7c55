/* SPDX-License-Identifier: Apache-2.0 */
/* One counted object behind owner, guards and trackers. */
#include <stdlib.h>
#include <string.h>

#include "connector/inside.h"

struct weir_task_guard {
  weir_task_tracker *tracker;
  weir_task_guard *next, *prev;
  char what[64];
};

struct weir_task_tracker {
  pthread_mutex_t mutex; /* guards all below */
  pthread_cond_t ended;
  size_t refs; /* owner, guards and trackers */
  bool owned;
  size_t running;
  weir_task_guard *guards;
};

struct weir_task_owner {
  weir_task_tracker *tracker;
};

static void tracker_free(weir_task_tracker *t) {
  pthread_cond_destroy(&t->ended);
  pthread_mutex_destroy(&t->mutex);
  free(t);
}

/* With the mutex held, which it gives back. */
static void tracker_drop(weir_task_tracker *t) {
  bool last = --t->refs == 0;
  if (!t->owned && t->running == 0) pthread_cond_broadcast(&t->ended);
  pthread_mutex_unlock(&t->mutex);
  if (last) tracker_free(t);
}

weir_status weir_task_owner_new(weir_task_owner **out, weir_error *err) {
  weir_status status = WEIR_OK;
  weir_task_owner *owner = base_calloc(1, sizeof(*owner), err);
  weir_task_tracker *t = owner ? base_calloc(1, sizeof(*t), err) : NULL;
  if (!t) {
    free(owner);
    return WEIR_E_NOMEM;
  }
  status = base_mutex_init(&t->mutex, err);
  if (status) goto no_mutex;
  status = base_cond_init(&t->ended, err);
  if (status) goto no_cond;
  t->refs = 1;
  t->owned = true;
  owner->tracker = t;
  *out = owner;
  return WEIR_OK;
no_cond:
  pthread_mutex_destroy(&t->mutex);
no_mutex:
  free(t);
  free(owner);
  return status;
}

void weir_task_owner_free(weir_task_owner *owner) {
  if (!owner) return;
  weir_task_tracker *t = owner->tracker;
  pthread_mutex_lock(&t->mutex);
  t->owned = false;
  tracker_drop(t);
  free(owner);
}

weir_task_tracker *weir_task_owner_tracker(weir_task_owner *owner) {
  return weir_task_tracker_ref(owner->tracker);
}

weir_status weir_task_guard_new(weir_task_owner *owner, const char *what,
                                weir_task_guard **out, weir_error *err) {
  weir_task_tracker *t = owner->tracker;
  weir_task_guard *guard = base_calloc(1, sizeof(*guard), err);
  if (!guard) return WEIR_E_NOMEM;
  size_t size = strnlen(what, sizeof(guard->what) - 1);
  /* Cut at a character's edge, never inside. */
  while (size > 0 && !base_utf8_valid(what, size)) size--;
  memcpy(guard->what, what, size);
  guard->tracker = t;
  pthread_mutex_lock(&t->mutex);
  guard->next = t->guards;
  if (t->guards) t->guards->prev = guard;
  t->guards = guard;
  t->running++;
  t->refs++;
  pthread_mutex_unlock(&t->mutex);
  *out = guard;
  return WEIR_OK;
}

void weir_task_guard_drop(weir_task_guard *guard) {
  if (!guard) return;
  weir_task_tracker *t = guard->tracker;
  pthread_mutex_lock(&t->mutex);
  if (guard->prev) {
    guard->prev->next = guard->next;
  } else {
    t->guards = guard->next;
  }
  if (guard->next) guard->next->prev = guard->prev;
  t->running--;
  tracker_drop(t);
  free(guard);
}

weir_task_tracker *weir_task_tracker_ref(weir_task_tracker *t) {
  pthread_mutex_lock(&t->mutex);
  t->refs++;
  pthread_mutex_unlock(&t->mutex);
  return t;
}

void weir_task_tracker_unref(weir_task_tracker *t) {
  if (!t) return;
  pthread_mutex_lock(&t->mutex);
  tracker_drop(t);
}

size_t weir_task_tracker_running(weir_task_tracker *t) {
  pthread_mutex_lock(&t->mutex);
  size_t running = t->running;
  pthread_mutex_unlock(&t->mutex);
  return running;
}

weir_status weir_task_tracker_wait(weir_task_tracker *t, int64_t timeout_ns,
                                   weir_error *err) {
  weir_status status = WEIR_OK;
  int64_t deadline = base_deadline(timeout_ns);
  pthread_mutex_lock(&t->mutex);
  bool in_time = true;
  while ((t->owned || t->running) && in_time) {
    in_time = base_cond_wait_until(&t->ended, &t->mutex, deadline);
  }
  if (t->running) {
    status = weir_error_set(err, WEIR_E_TIMEOUT, 0,
                            "%zu detached task(s) still run, among them '%s'", t->running,
                            t->guards->what);
  } else if (t->owned) {
    status = weir_error_set(err, WEIR_E_TIMEOUT, 0,
                            "the connector is still there and may start detached tasks");
  }
  pthread_mutex_unlock(&t->mutex);
  return status;
}
