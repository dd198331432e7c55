/* SPDX-License-Identifier: Apache-2.0 */
/* An actor's queues: one per lane and per participant whose letters it takes, the gate before them, and the
 * barriers met. */
#include <stdlib.h>

#include "task/actor.h"

#define MAX_QUEUED_BATCHES \
  1024 /* for tiny batches: bounds the items, where bytes do not */

int task_actor_room(task_actor *actor, uint32_t lane, uint64_t nbytes) {
  pthread_mutex_lock(&actor->lock);
  task_queue *q = &actor->queues[lane];
  int room = !q->batches || (q->batches < MAX_QUEUED_BATCHES &&
                             q->nbytes + nbytes <= actor->config.queue_bytes);
  if (room && task_queue_reserve(q, NULL)) room = 0;
  pthread_mutex_unlock(&actor->lock);
  return room;
}

weir_status task_actor_reserve(task_actor *actor, uint32_t lane, weir_error *err) {
  pthread_mutex_lock(&actor->lock);
  weir_status status = task_queue_reserve(&actor->queues[lane], err);
  pthread_mutex_unlock(&actor->lock);
  return status;
}

/* Lanes are stopped before a purge, but a participant may hand something over between its own and this one's: what is
 * older never enters, where it would take room that nobody is told of when it is dropped. */
void task_actor_add(task_actor *actor, uint32_t lane, const task_item *item) {
  pthread_mutex_lock(&actor->lock);
  if (item->generation < actor->rewind)
    weir_batch_unref(item->batch);
  else
    task_queue_push(&actor->queues[lane], item);
  pthread_mutex_unlock(&actor->lock);
  /* Not under the lock, which the woken thread takes first. */
  pthread_cond_signal(&actor->wake);
}

void task_actor_set_lane(task_actor *actor, uint32_t lane, task_lane *producer) {
  actor->lanes[lane] = producer;
}

void task_actor_open_gate(task_actor *actor, uint64_t attempt) {
  pthread_mutex_lock(&actor->lock);
  if (attempt != actor->attempt) {
    actor->attempt = attempt;
    actor->rows = 0;
    actor->nbytes = 0;
  }
  /* An end that was met stands for every later barrier. */
  for (uint32_t i = 0; i < actor->n_queues; i++) actor->met[i] = actor->fin[i];
  actor->gate = 1;
  actor_seal_if_met(actor);
  pthread_cond_signal(&actor->wake);
  pthread_mutex_unlock(&actor->lock);
}

weir_status task_actor_connect_letters(task_actor *actor, task_actor *const *takers,
                                       uint32_t n, uint32_t feeder, task_router *keys,
                                       weir_error *err) {
  actor->keys = keys;
  actor->takers = base_calloc(n, sizeof(*takers), err);
  if (!actor->takers) return WEIR_E_NOMEM;
  actor->n_takers = n;
  actor->next_taker = feeder % n;
  actor->taker_queue = takers[0]->config.n_lanes + feeder;
  for (uint32_t i = 0; i < n; i++) {
    actor->takers[i] = takers[i];
    takers[i]->feeders[actor->taker_queue] = actor;
  }
  return WEIR_OK;
}

/* Lock held, and then that of the taker: no sink takes letters of one that takes its own. */
bool actor_hand_over(task_actor *actor) {
  uint64_t nbytes = actor->letters ? weir_batch_bytes(actor->letters) : 0;
  for (uint32_t i = 0; actor->letters && i < actor->n_takers; i++) {
    uint32_t k = (actor->next_taker + i) % actor->n_takers;
    if (!task_actor_room(actor->takers[k], actor->taker_queue, nbytes)) continue;
    task_item item = {TASK_ITEM_BATCH, actor->rewind, 0, actor->letters, nbytes};
    task_actor_add(actor->takers[k], actor->taker_queue, &item);
    actor->letters = NULL;
    actor->next_taker = (k + 1) % actor->n_takers;
  }
  return !actor->letters;
}

void actor_made_room(task_actor *actor, uint32_t queue) {
  task_actor *feeder = actor->feeders[queue];
  if (!feeder) {
    task_lane_room(actor->lanes[queue]);
    return;
  }
  /* Under its lock, which it holds from its look for room until it waits. */
  pthread_mutex_lock(&feeder->lock);
  pthread_cond_signal(&feeder->wake);
  pthread_mutex_unlock(&feeder->lock);
}

int actor_next_item(task_actor *actor, uint32_t *queue, task_item *out) {
  if (!actor->gate) return 0;
  uint32_t n = actor->n_queues;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t q = (actor->next_queue + i) % n;
    if (!actor->fed[q] || actor->met[q] || !task_queue_pop(&actor->queues[q], out))
      continue;
    actor->next_queue = (q + 1) % n;
    *queue = q;
    return 1;
  }
  return 0;
}

/* All letters of this attempt are with the takers: so is its barrier behind them. Lock held. */
static weir_status send_barrier_on(task_actor *actor, weir_error *err) {
  task_item item = {TASK_ITEM_BARRIER, actor->rewind, actor->attempt, NULL, 0};
  for (uint32_t i = 0; i < actor->n_takers; i++)
    BASE_TRY(task_actor_reserve(actor->takers[i], actor->taker_queue, err));
  for (uint32_t i = 0; i < actor->n_takers; i++)
    task_actor_add(actor->takers[i], actor->taker_queue, &item);
  return WEIR_OK;
}

void actor_seal_if_met(task_actor *actor) {
  weir_error error = {0};
  for (uint32_t i = 0; i < actor->n_queues; i++)
    if (actor->fed[i] && !actor->met[i]) return;
  actor->gate = 0;
  if (send_barrier_on(actor, &error)) {
    actor_failed(actor, &error);
    return;
  }
  coord_event event = {.type = COORD_SEALED,
                       .sink = actor->config.sink,
                       .participant = actor->config.participant,
                       .lane = COORD_NONE,
                       .attempt = actor->attempt,
                       .rows = actor->rows,
                       .nbytes = actor->nbytes};
  task_mailbox_post(actor->config.mailbox, &event);
}

void actor_meet(task_actor *actor, uint32_t queue, const task_item *item) {
  actor->met[queue] = 1;
  if (item->type == TASK_ITEM_END) actor->fin[queue] = 1;
  actor_seal_if_met(actor);
}

void actor_purge(task_actor *actor, uint64_t rewind) {
  actor->gate = 0;
  actor->rows = 0;
  actor->nbytes = 0;
  actor->rewind = rewind;
  weir_batch_unref(actor->letters);
  actor->letters = NULL;
  for (uint32_t i = 0; i < actor->n_queues; i++) {
    actor->met[i] = 0;
    actor->fin[i] = 0;
    task_queue *q = &actor->queues[i];
    task_item item = {0};
    /* Lanes are stopped: what is newer cannot lie before what is older. */
    while (q->n && q->v[q->head].generation < rewind) {
      task_queue_pop(q, &item);
      pthread_mutex_unlock(&actor->lock);
      weir_batch_unref(item.batch);
      pthread_mutex_lock(&actor->lock);
    }
  }
}
