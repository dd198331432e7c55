/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "task/task.h"

typedef struct output {
  task_actor **participants;
  uint32_t n;
  bool letters; /* gets those alone, else rows alone */
  /* one of them for a batch: */
  uint32_t next; /* round robin: where the search for room starts */
  uint32_t chosen;
  /* or all of them, by key: */
  task_router *router;
  weir_batch **pieces; /* of the batch that is being pushed; the producer's */
} output;

struct task_lane {
  atomic_int refs;
  task_lane_config config;
  char *name; /* one's own: what config.name points to */
  pthread_mutex_t lock;
  pthread_cond_t changed;
  output *outputs;
  size_t n_outputs;
  /* under lock */
  uint64_t generation;
  uint64_t rows;
  uint64_t wanted; /* attempt whose barrier is asked for */
  int stopped, ended, drain, finished, poked, want_room;
  int held; /* by so many sinks */
  int seek;
  uint64_t seek_rows;
  weir_bytes seek_position;
};

weir_status task_lane_new(const task_lane_config *config, task_lane **out,
                          weir_error *err) {
  task_lane *lane = base_calloc(1, sizeof(*lane), err);
  if (!lane) return WEIR_E_NOMEM;
  lane->config = *config;
  lane->rows = config->rows;
  atomic_init(&lane->refs, 1);
  weir_status status = base_mutex_init(&lane->lock, err);
  if (status) goto fail_lock;
  status = base_cond_init(&lane->changed, err);
  if (status) goto fail_cond;
  lane->config.name = lane->name = base_strdup(config->name, err);
  lane->config.mailbox = task_mailbox_ref(config->mailbox);
  if (!lane->name) {
    task_lane_unref(lane);
    return WEIR_E_NOMEM;
  }
  *out = lane;
  return WEIR_OK;
fail_cond:
  pthread_mutex_destroy(&lane->lock);
fail_lock:
  free(lane);
  return status;
}

task_lane *task_lane_ref(task_lane *lane) {
  atomic_fetch_add(&lane->refs, 1);
  return lane;
}

void task_lane_unref(task_lane *lane) {
  if (!lane || atomic_fetch_sub(&lane->refs, 1) != 1) return;
  task_mailbox_unref(lane->config.mailbox);
  free(lane->name);
  for (size_t i = 0; i < lane->n_outputs; i++) {
    free(lane->outputs[i].participants);
    free(lane->outputs[i].pieces);
    task_router_free(lane->outputs[i].router);
  }
  free(lane->outputs);
  weir_bytes_release(&lane->seek_position);
  pthread_cond_destroy(&lane->changed);
  pthread_mutex_destroy(&lane->lock);
  free(lane);
}

static weir_status connect(task_lane *lane, task_actor *const *participants, uint32_t n,
                           output made, weir_error *err) {
  output *outputs =
      base_realloc(lane->outputs, lane->n_outputs + 1, sizeof(*outputs), err);
  if (outputs) lane->outputs = outputs;
  made.n = n;
  made.participants = base_calloc(n, sizeof(task_actor *), err);
  made.pieces = base_calloc(n, sizeof(weir_batch *), err);
  if (!outputs || !made.participants || !made.pieces) {
    free(made.participants);
    free(made.pieces);
    task_router_free(made.router);
    return WEIR_E_NOMEM;
  }
  output *o = &outputs[lane->n_outputs];
  *o = made;
  memcpy(o->participants, participants, n * sizeof(task_actor *));
  for (uint32_t i = 0; i < n; i++)
    task_actor_set_lane(participants[i], lane->config.index, lane);
  lane->n_outputs++;
  return WEIR_OK;
}

weir_status task_lane_connect(task_lane *lane, task_actor *const *participants,
                              uint32_t n, task_router *router, weir_error *err) {
  return connect(lane, participants, n, (output){.router = router}, err);
}

weir_status task_lane_connect_letters(task_lane *lane, task_actor *const *participants,
                                      uint32_t n, weir_error *err) {
  return connect(lane, participants, n, (output){.letters = true}, err);
}

static int has_room(const task_lane *lane, const output *o, uint32_t p, uint64_t nbytes) {
  return task_actor_room(o->participants[p], lane->config.index, nbytes);
}

/* Whether every participant has room for its rows. */
static int find_room_for_all(const task_lane *lane, const output *o) {
  for (uint32_t p = 0; p < o->n; p++)
    if (o->pieces[p] && !has_room(lane, o, p, weir_batch_bytes(o->pieces[p]))) return 0;
  return 1;
}

/* Chooses one participant with room in every sink, or says that there is none. */
static int find_room(task_lane *lane, uint64_t nbytes, bool letters) {
  for (size_t i = 0; i < lane->n_outputs; i++) {
    output *o = &lane->outputs[i];
    uint32_t tried = 0;
    if (o->letters != letters) continue;
    if (o->router && find_room_for_all(lane, o)) continue;
    if (o->router) return 0;
    for (; tried < o->n; tried++) {
      o->chosen = (o->next + tried) % o->n;
      if (has_room(lane, o, o->chosen, nbytes)) break;
    }
    if (tried == o->n) return 0;
  }
  return 1;
}

static weir_status closed_to_pushes(const task_lane *lane, weir_error *err) {
  if (lane->finished && !lane->ended)
    return weir_error_set(err, WEIR_E_ENDED, 0, "source %s: the pipeline has stopped",
                          lane->config.name);
  if (lane->stopped)
    return weir_error_set(
        err, WEIR_E_REWOUND, 0,
        "source %s: rewound to its last decided position; seek there and push again",
        lane->config.name);
  if (lane->ended)
    return weir_error_set(err, WEIR_E_INVALID_STATE, 0,
                          "source %s: its end was sent; nothing can be pushed behind it",
                          lane->config.name);
  return WEIR_OK;
}

/* What lies in `pieces` is not queued. */
static void drop_pieces(task_lane *lane) {
  for (size_t i = 0; i < lane->n_outputs; i++) {
    output *o = &lane->outputs[i];
    for (uint32_t p = 0; o->router && p < o->n; p++) {
      weir_batch_unref(o->pieces[p]);
      o->pieces[p] = NULL;
    }
  }
}

static weir_status split(task_lane *lane, weir_batch *batch, weir_error *err) {
  weir_status status = WEIR_OK;
  for (size_t i = 0; i < lane->n_outputs && !status; i++) {
    output *o = &lane->outputs[i];
    if (o->router) status = task_router_split(o->router, batch, o->pieces, err);
  }
  if (status) {
    drop_pieces(lane);
    return weir_error_prefix(err, status, "source %s", lane->config.name);
  }
  return WEIR_OK;
}

static void add_batch(task_lane *lane, output *o, uint32_t p, weir_batch *batch,
                      uint64_t nbytes) {
  task_item item = {TASK_ITEM_BATCH, lane->generation, 0, batch, nbytes};
  task_actor_add(o->participants[p], lane->config.index, &item);
}

/* Into every sink's queues, where find_room has found room. Lock held. */
static void add_to_all(task_lane *lane, weir_batch *batch, uint64_t nbytes,
                       bool letters) {
  for (size_t i = 0; i < lane->n_outputs; i++) {
    output *o = &lane->outputs[i];
    if (o->letters != letters) continue;
    if (!o->router) {
      add_batch(lane, o, o->chosen, weir_batch_ref(batch), nbytes);
      o->next = (o->chosen + 1) % o->n;
      continue;
    }
    for (uint32_t p = 0; p < o->n; p++) {
      weir_batch *piece = o->pieces[p];
      if (piece) add_batch(lane, o, p, piece, weir_batch_bytes(piece));
      o->pieces[p] = NULL;
    }
  }
  lane->rows += (uint64_t)weir_batch_rows(batch);
}

static weir_status no_room(const task_lane *lane, weir_error *err) {
  return weir_error_set(
      err, WEIR_E_TIMEOUT, WEIR_ERR_RETRIABLE,
      "source %s: no room in the queue; push again after the event ROOM",
      lane->config.name);
}

weir_status task_lane_wait_unheld(task_lane *lane, int64_t deadline_ns, weir_error *err) {
  weir_status status = WEIR_OK;
  pthread_mutex_lock(&lane->lock);
  while (lane->held && !status) {
    status = closed_to_pushes(lane, err);
    if (status) break;
    lane->want_room = 1;
    if (lane->wanted || base_clock_mono() >= deadline_ns)
      status = no_room(lane, err);
    else
      base_cond_wait_until(&lane->changed, &lane->lock, deadline_ns);
  }
  pthread_mutex_unlock(&lane->lock);
  return status;
}

static weir_status push(task_lane *lane, weir_batch *batch, bool letters,
                        int64_t deadline_ns, weir_error *err) {
  uint64_t nbytes = weir_batch_bytes(batch);
  weir_status status = WEIR_OK;
  pthread_mutex_lock(&lane->lock);
  for (;;) {
    status = closed_to_pushes(lane, err);
    if (status) break;
    if (find_room(lane, nbytes, letters)) {
      add_to_all(lane, batch, nbytes, letters);
      break;
    }
    /* Set before the clock is asked: an actor that makes room from here on calls task_lane_room, which
     * waits for the lock that the wait below gives back. */
    lane->want_room = 1;
    if (!base_cond_wait_until(&lane->changed, &lane->lock, deadline_ns) &&
        base_clock_mono() >= deadline_ns) {
      status = no_room(lane, err);
      break;
    }
  }
  pthread_mutex_unlock(&lane->lock);
  return status;
}

weir_status task_lane_push(task_lane *lane, weir_batch *batch, int64_t deadline_ns,
                           weir_error *err) {
  BASE_TRY(split(lane, batch, err));
  weir_status status = push(lane, batch, false, deadline_ns, err);
  drop_pieces(lane);
  return status;
}

weir_status task_lane_push_letters(task_lane *lane, weir_batch *letters,
                                   int64_t deadline_ns, weir_error *err) {
  return push(lane, letters, true, deadline_ns, err);
}

/* A barrier or the end into every queue, or into none. Lock held. */
static weir_status add_everywhere(task_lane *lane, const task_item *item,
                                  coord_event *event, weir_error *err) {
  for (size_t i = 0; i < lane->n_outputs; i++)
    for (uint32_t p = 0; p < lane->outputs[i].n; p++)
      BASE_TRY(
          task_actor_reserve(lane->outputs[i].participants[p], lane->config.index, err));
  /* Posted first: the coordinator hears of the position before anybody has sealed with it. */
  task_mailbox_post(lane->config.mailbox, event);
  for (size_t i = 0; i < lane->n_outputs; i++)
    for (uint32_t p = 0; p < lane->outputs[i].n; p++)
      task_actor_add(lane->outputs[i].participants[p], lane->config.index, item);
  return WEIR_OK;
}

static coord_event lane_event(const task_lane *lane, coord_event_type type) {
  return (coord_event){.type = type,
                       .sink = COORD_NONE,
                       .lane = lane->config.index,
                       .generation = lane->generation,
                       .rows = lane->rows};
}

static weir_status copy_position(const weir_bytes *position, weir_bytes *out,
                                 weir_error *err) {
  if (!position || !position->release) return WEIR_OK;
  return weir_bytes_copy(out, position->data, position->size, err);
}

weir_status task_lane_barrier(task_lane *lane, uint64_t attempt,
                              const weir_bytes *position, weir_error *err) {
  weir_bytes copy = {0};
  BASE_TRY(copy_position(position, &copy, err));
  pthread_mutex_lock(&lane->lock);
  weir_status status = closed_to_pushes(lane, err);
  if (!status && lane->wanted != attempt)
    status = weir_error_set(err, WEIR_E_INVALID_STATE, 0,
                            "source %s: checkpoint %llu was not asked for (wanted: %llu)",
                            lane->config.name, (unsigned long long)attempt,
                            (unsigned long long)lane->wanted);
  if (!status) {
    coord_event event = lane_event(lane, COORD_BARRIER_SENT);
    event.attempt = attempt;
    event.bytes = copy;
    task_item item = {TASK_ITEM_BARRIER, lane->generation, attempt, NULL, 0};
    status = add_everywhere(lane, &item, &event, err);
    copy = event.bytes;
    if (!status) lane->wanted = 0;
  }
  pthread_mutex_unlock(&lane->lock);
  weir_bytes_release(&copy);
  return status;
}

weir_status task_lane_end(task_lane *lane, const weir_bytes *position, weir_error *err) {
  weir_bytes copy = {0};
  BASE_TRY(copy_position(position, &copy, err));
  pthread_mutex_lock(&lane->lock);
  weir_status status = closed_to_pushes(lane, err);
  if (!status) {
    coord_event event = lane_event(lane, COORD_LANE_ENDED);
    event.bytes = copy;
    task_item item = {TASK_ITEM_END, lane->generation, 0, NULL, 0};
    status = add_everywhere(lane, &item, &event, err);
    copy = event.bytes;
    if (!status) {
      lane->ended = 1;
      lane->wanted = 0;
    }
  }
  pthread_mutex_unlock(&lane->lock);
  weir_bytes_release(&copy);
  return status;
}

void task_lane_wishes(task_lane *lane, int64_t deadline_ns, int idle,
                      task_lane_wish *out) {
  pthread_mutex_lock(&lane->lock);
  while (!lane->finished && !lane->seek && !lane->poked &&
         (idle || lane->stopped || lane->ended || (!lane->wanted && !lane->drain)))
    if (!base_cond_wait_until(&lane->changed, &lane->lock,
                              lane->held ? BASE_FOREVER : deadline_ns))
      break;
  lane->poked = 0;
  *out = (task_lane_wish){.barrier = lane->stopped || lane->ended ? 0 : lane->wanted,
                          .stopped = lane->stopped,
                          .ended = lane->ended,
                          .drain = lane->drain,
                          .finished = lane->finished,
                          .seek = lane->seek};
  pthread_mutex_unlock(&lane->lock);
}

void task_lane_poke(task_lane *lane) {
  pthread_mutex_lock(&lane->lock);
  lane->poked = 1;
  pthread_cond_broadcast(&lane->changed);
  pthread_mutex_unlock(&lane->lock);
}

void task_lane_request(task_lane *lane, uint64_t attempt) {
  pthread_mutex_lock(&lane->lock);
  if (!lane->stopped && !lane->ended) {
    lane->wanted = attempt;
    pthread_cond_broadcast(&lane->changed);
  }
  pthread_mutex_unlock(&lane->lock);
}

void task_lane_stop(task_lane *lane, uint64_t generation) {
  pthread_mutex_lock(&lane->lock);
  lane->stopped = 1;
  lane->wanted = 0;
  lane->generation = generation;
  pthread_cond_broadcast(&lane->changed);
  coord_event event = lane_event(lane, COORD_STOPPED);
  task_mailbox_post(lane->config.mailbox, &event);
  pthread_mutex_unlock(&lane->lock);
}

weir_status task_lane_seek(task_lane *lane, uint64_t generation,
                           const weir_bytes *position, uint64_t rows, weir_error *err) {
  weir_bytes copy = {0};
  BASE_TRY(copy_position(position, &copy, err));
  pthread_mutex_lock(&lane->lock);
  weir_bytes_release(&lane->seek_position);
  lane->generation = generation;
  lane->seek_position = copy;
  lane->seek_rows = rows;
  lane->seek = 1;
  pthread_cond_broadcast(&lane->changed);
  pthread_mutex_unlock(&lane->lock);
  return WEIR_OK;
}

int task_lane_take_seek(task_lane *lane, weir_bytes *position) {
  pthread_mutex_lock(&lane->lock);
  int taken = lane->seek;
  if (taken) {
    *position = lane->seek_position;
    lane->seek_position = (weir_bytes){0};
    lane->seek = 0;
  }
  pthread_mutex_unlock(&lane->lock);
  return taken;
}

void task_lane_live(task_lane *lane, const weir_error *error) {
  pthread_mutex_lock(&lane->lock);
  if (!error) {
    lane->rows = lane->seek_rows;
    lane->stopped = 0;
    lane->ended = 0;
  }
  coord_event event = lane_event(lane, COORD_SOUGHT);
  event.error = error;
  task_mailbox_post(lane->config.mailbox, &event);
  pthread_mutex_unlock(&lane->lock);
}

void task_lane_drain(task_lane *lane) {
  pthread_mutex_lock(&lane->lock);
  lane->drain = 1;
  pthread_cond_broadcast(&lane->changed);
  pthread_mutex_unlock(&lane->lock);
}

void task_lane_finish(task_lane *lane) {
  pthread_mutex_lock(&lane->lock);
  lane->finished = 1;
  pthread_cond_broadcast(&lane->changed);
  pthread_mutex_unlock(&lane->lock);
}

int task_lane_owes_barrier(task_lane *lane) {
  pthread_mutex_lock(&lane->lock);
  int owes = lane->wanted != 0;
  pthread_mutex_unlock(&lane->lock);
  return owes;
}

uint64_t task_lane_rows(task_lane *lane) {
  pthread_mutex_lock(&lane->lock);
  uint64_t rows = lane->rows;
  pthread_mutex_unlock(&lane->lock);
  return rows;
}

void task_lane_room(task_lane *lane) {
  pthread_mutex_lock(&lane->lock);
  int wanted = lane->want_room;
  if (wanted) {
    lane->want_room = 0;
    pthread_cond_broadcast(&lane->changed);
  }
  pthread_mutex_unlock(&lane->lock);
  if (wanted && lane->config.on_room)
    lane->config.on_room(lane->config.ctx, lane->config.index);
}

void task_lane_hold(task_lane *lane, int on) {
  pthread_mutex_lock(&lane->lock);
  lane->held += on ? 1 : -1;
  int free_again = !lane->held;
  pthread_cond_broadcast(&lane->changed);
  pthread_mutex_unlock(&lane->lock);
  if (free_again) task_lane_room(lane);
}
