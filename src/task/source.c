/* SPDX-License-Identifier: Apache-2.0 */
/* A source loop: reads a connector on its own thread and feeds one lane. */
#include <stdlib.h>

#include <weir/fault.h>

#include "task/task.h"

/* How long a read may wait for rows: the longest that a barrier, a seek or the end waits for it. */
#define READ_WAIT (50 * BASE_NS_PER_MS)
/* Before the next read of a source that had nothing and did not wait itself; doubles up to READ_WAIT. */
#define NOTHING_WAIT_MIN (2 * BASE_NS_PER_MS)

struct task_source {
  atomic_int
      refs; /* the owner's and the thread's: a thread may hang in a read for ever */
  task_source_config config;
  connector_source *source;
  weir_call call;
  pthread_mutex_t lock;
  pthread_cond_t over;
  /* under lock */
  int running;
  int seeking; /* a COORD_SOUGHT is owed, by the thread or, when it hangs, by the watch */
  uint64_t committed; /* newest checkpoint to tell; 0: none */
  weir_bytes committed_position;
  bool
      hung; /* the watch's own: a call is past its deadline, and the thread may never come back */
  /* the thread's own */
  int failed; /* a failure was posted: wait for the seek */
  int ended;
  /* of an ephemeral source: read, and refused by a rewind */
  weir_batch *held, *held_letters;
};

static void source_unref(task_source *s) {
  if (atomic_fetch_sub(&s->refs, 1) != 1) return;
  connector_source_unref(s->source);
  weir_batch_unref(s->held);
  weir_batch_unref(s->held_letters);
  weir_bytes_release(&s->committed_position);
  task_lane_unref(s->config.lane);
  task_mailbox_unref(s->config.mailbox);
  pthread_cond_destroy(&s->over);
  pthread_mutex_destroy(&s->lock);
  free(s);
}

static void arm(task_source *s, int64_t wait_ns) {
  int64_t limit = base_deadline(s->config.call_timeout_ns);
  connector_call_arm(
      &s->call, wait_ns ? base_deadline(wait_ns) : limit,
      wait_ns ? base_deadline(wait_ns + s->config.call_timeout_ns) : limit);
}

static void post_failure(task_source *s, const weir_error *error) {
  coord_event event = {.type = COORD_FAILED,
                       .sink = COORD_NONE,
                       .lane = s->config.lane_index,
                       .error = error};
  task_mailbox_post(s->config.mailbox, &event);
}

/* A source that is terminal cannot be sought, so there is nothing to try again. */
static void drop_hope(const task_source *s, weir_error *error) {
  if (connector_source_state_of(s->source) == CONNECTOR_SOURCE_RETIRED)
    error->flags &= ~(uint32_t)WEIR_ERR_RETRIABLE;
}

static void fail(task_source *s, weir_error *error) {
  drop_hope(s, error);
  post_failure(s, error);
  s->failed = 1;
}

/* What a fault point gives: the next try may succeed, as after a hiccup of a disk or a network. */
static weir_status hiccup(const task_source *s, const char *what, weir_error *err) {
  return weir_error_set(err, WEIR_E_IO, WEIR_ERR_RETRIABLE, "source %s: cannot %s",
                        s->config.name, what);
}

/* A push, barrier or end that a rewind or the finish overtook is no failure. */
static void note(task_source *s, weir_status status, weir_error *error) {
  if (status && status != WEIR_E_REWOUND && status != WEIR_E_ENDED) fail(s, error);
}

static void tell_committed(task_source *s) {
  pthread_mutex_lock(&s->lock);
  uint64_t checkpoint = s->committed;
  weir_bytes position = s->committed_position;
  s->committed = 0;
  s->committed_position = (weir_bytes){0};
  pthread_mutex_unlock(&s->lock);
  if (!checkpoint) return;
  weir_error error = {0};
  arm(s, 0);
  note(s, connector_source_committed(s->source, &s->call, checkpoint, &position, &error),
       &error);
  weir_bytes_release(&position);
}

/* Sets the flag to `to`; what it was. */
static int set_seeking(task_source *s, int to) {
  pthread_mutex_lock(&s->lock);
  int was = s->seeking;
  s->seeking = to;
  pthread_mutex_unlock(&s->lock);
  return was;
}

/* What a rewind overtook comes again after it when the source is sought; else it is held. */
static void push_one(task_source *s, weir_batch *batch, weir_batch **held) {
  weir_error error = {0};
  weir_status status =
      held == &s->held
          ? task_lane_push(s->config.lane, batch, BASE_FOREVER, &error)
          : task_lane_push_letters(s->config.lane, batch, BASE_FOREVER, &error);
  if (status == WEIR_E_REWOUND && s->config.ephemeral) {
    *held = batch;
    return;
  }
  note(s, status, &error);
  weir_batch_unref(batch);
}

/* Takes both over; either may be NULL. */
static void push(task_source *s, weir_batch *batch, weir_batch *letters) {
  if (letters) push_one(s, letters, &s->held_letters);
  if (batch && !s->failed)
    push_one(s, batch, &s->held);
  else
    weir_batch_unref(batch);
}

static void send_mark(task_source *s, uint64_t attempt) {
  weir_error error = {0};
  weir_bytes position = {0};
  weir_status status = WEIR_FAULT("task.barrier")
                           ? hiccup(s, "tell its position", &error)
                           : connector_source_position(s->source, &position, &error);
  if (!status)
    status = attempt ? task_lane_barrier(s->config.lane, attempt, &position, &error)
                     : task_lane_end(s->config.lane, &position, &error);
  /* An ephemeral source is not asked again after its end, though a rewind overtook the word of it. */
  bool overtaken = status == WEIR_E_REWOUND && s->config.ephemeral;
  if (!attempt && (!status || overtaken)) s->ended = 1;
  weir_bytes_release(&position);
  note(s, status, &error);
}

static void seek(task_source *s) {
  weir_bytes position = {0};
  if (!task_lane_take_seek(s->config.lane, &position)) return;
  weir_error error = {0};
  weir_status status = WEIR_OK;
  set_seeking(s, 1);
  arm(s, 0);
  if (WEIR_FAULT("task.seek"))
    status = hiccup(s, "seek", &error);
  else if (!s->config.ephemeral)
    status = connector_source_seek(s->source, &s->call, &position, &error);
  weir_bytes_release(&position);
  weir_batch *held = s->held, *held_letters = s->held_letters;
  int ended = s->ended;
  if (!status) {
    s->failed = s->ended = 0;
    s->held = s->held_letters = NULL;
  } else {
    drop_hope(s, &error);
  }
  if (set_seeking(s, 0)) task_lane_live(s->config.lane, status ? &error : NULL);
  if (status || !s->config.ephemeral) return;
  /* It stands where it stood: what it gave last is all that there is to say again. */
  push(s, held, held_letters);
  if (ended) send_mark(s, 0);
}

/* 1: it had nothing. */
static int read_once(task_source *s) {
  weir_error error = {0};
  weir_batch *batch = NULL, *letters = NULL;
  int32_t what = 0;
  arm(s, READ_WAIT);
  weir_status status =
      WEIR_FAULT("task.read")
          ? hiccup(s, "read", &error)
          : connector_source_read(s->source, &s->call, &what, &batch, &letters, &error);
  int nothing = !status && what == WEIR_READ_NOTHING && !letters;
  if (status)
    fail(s, &error);
  else
    push(s, batch, letters);
  if (!s->failed && what == WEIR_READ_END) send_mark(s, 0);
  return nothing;
}

static void *source_main(void *arg) {
  task_source *s = arg;
  int64_t nothing = 0; /* how long to wait before the next read */
  int64_t read_at = 0; /* until when; barriers that come more often do not put it off */
  task_lane_wish wish = {0};
  for (;;) {
    int idle = s->failed || s->ended || wish.stopped;
    int64_t until = idle ? BASE_FOREVER : read_at;
    task_lane_wishes(s->config.lane, until, idle, &wish);
    if (wish.finished) break;
    tell_committed(s);
    if (wish.seek) {
      seek(s);
      nothing = read_at = 0;
      wish.stopped = 0;
      continue;
    }
    if (wish.stopped || s->failed || s->ended) continue;
    if (wish.barrier) {
      send_mark(s, wish.barrier);
    } else if (wish.drain) {
      send_mark(s, 0);
    } else {
      nothing = !read_once(s) ? 0 : nothing ? nothing * 2 : NOTHING_WAIT_MIN;
      if (nothing > READ_WAIT) nothing = READ_WAIT;
      read_at = nothing ? base_deadline(nothing) : 0;
    }
  }
  weir_error error = {0};
  tell_committed(s);
  arm(s, 0);
  connector_source_close(s->source, &s->call, &error);
  pthread_mutex_lock(&s->lock);
  s->running = 0;
  pthread_cond_broadcast(&s->over);
  pthread_mutex_unlock(&s->lock);
  source_unref(s);
  return NULL;
}

weir_status task_source_start(const task_source_config *config, connector_source *source,
                              task_source **out, weir_error *err) {
  task_source *s = base_calloc(1, sizeof(*s), err);
  if (!s) return WEIR_E_NOMEM;
  s->config = *config;
  atomic_init(&s->refs, 2);
  weir_status status = base_mutex_init(&s->lock, err);
  if (status) goto fail_lock;
  status = base_cond_init(&s->over, err);
  if (status) goto fail_cond;
  s->source = source;
  s->running = 1;
  s->config.lane = task_lane_ref(config->lane);
  s->config.mailbox = task_mailbox_ref(config->mailbox);
  pthread_t thread;
  status = base_thread_start(&thread, config->name, source_main, s, err);
  if (status) goto fail_thread;
  pthread_detach(thread);
  *out = s;
  return WEIR_OK;
fail_thread:
  task_lane_unref(s->config.lane);
  task_mailbox_unref(s->config.mailbox);
  pthread_cond_destroy(&s->over);
fail_cond:
  pthread_mutex_destroy(&s->lock);
fail_lock:
  free(s);
  return status;
}

void task_source_committed(task_source *s, uint64_t checkpoint,
                           const weir_bytes *position) {
  weir_bytes copy = {0};
  if (position && position->release &&
      weir_bytes_copy(&copy, position->data, position->size, NULL))
    return; /* without memory this one is not told; a later one covers it */
  pthread_mutex_lock(&s->lock);
  weir_bytes_release(&s->committed_position);
  s->committed_position = copy;
  s->committed = checkpoint;
  pthread_mutex_unlock(&s->lock);
  task_lane_poke(s->config.lane);
}

void task_source_watch(task_source *s, int64_t now_ns) {
  bool news = connector_call_expire(&s->call, now_ns) &&
              !connector_source_is_cancel_safe(s->source);
  s->hung |= news;
  if (!s->hung) return;
  weir_error error = {0};
  weir_bytes position = {0};
  weir_error_set(
      &error, WEIR_E_TIMEOUT, 0,
      "source %s: a call did not come back before its deadline; run again once "
      "the source answers",
      s->config.name);
  /* During a rewind a failure may speak of the aborted attempt and is passed over: what counts then is
   * the answer to the seek, also to one that comes when the thread has long been hanging elsewhere. */
  bool sought = news && set_seeking(s, 0);
  sought |= task_lane_take_seek(s->config.lane, &position);
  weir_bytes_release(&position);
  if (sought)
    task_lane_live(s->config.lane, &error);
  else if (news)
    post_failure(s, &error);
}

weir_status task_source_join(task_source *s, int64_t deadline_ns, weir_error *err) {
  weir_status status = WEIR_OK;
  pthread_mutex_lock(&s->lock);
  while (s->running && base_cond_wait_until(&s->over, &s->lock, deadline_ns)) continue;
  if (s->running) {
    connector_source_retire(s->source);
    connector_call_give_up(&s->call);
    status = weir_error_set(
        err, WEIR_E_TIMEOUT, 0,
        "source %s: a call did not come back; its thread is left behind", s->config.name);
  }
  pthread_mutex_unlock(&s->lock);
  return status;
}

void task_source_free(task_source *s) {
  if (s) source_unref(s);
}
