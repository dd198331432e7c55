/* SPDX-License-Identifier: Apache-2.0 */
/* An actor's queues: one per lane, the gate before them, and the barriers met. */
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

void task_actor_add(task_actor *actor, uint32_t lane, const task_item *item) {
  pthread_mutex_lock(&actor->lock);
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
  for (uint32_t i = 0; i < actor->config.n_lanes; i++) actor->met[i] = actor->fin[i];
  actor->gate = 1;
  actor_seal_if_met(actor);
  pthread_cond_signal(&actor->wake);
  pthread_mutex_unlock(&actor->lock);
}

int actor_next_item(task_actor *actor, uint32_t *lane, task_item *out) {
  if (!actor->gate) return 0;
  uint32_t n = actor->config.n_lanes;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t l = (actor->next_lane + i) % n;
    if (!actor->config.fed[l] || actor->met[l]) continue;
    if (!task_queue_pop(&actor->queues[l], out)) continue;
    actor->next_lane = (l + 1) % n;
    *lane = l;
    return 1;
  }
  return 0;
}

void actor_seal_if_met(task_actor *actor) {
  for (uint32_t i = 0; i < actor->config.n_lanes; i++)
    if (actor->config.fed[i] && !actor->met[i]) return;
  actor->gate = 0;
  coord_event event = {.type = COORD_SEALED,
                       .sink = actor->config.sink,
                       .participant = actor->config.participant,
                       .lane = COORD_NONE,
                       .attempt = actor->attempt,
                       .rows = actor->rows,
                       .nbytes = actor->nbytes};
  task_mailbox_post(actor->config.mailbox, &event);
}

void actor_meet(task_actor *actor, uint32_t lane, const task_item *item) {
  actor->met[lane] = 1;
  if (item->type == TASK_ITEM_END) actor->fin[lane] = 1;
  actor_seal_if_met(actor);
}

void actor_purge(task_actor *actor, uint64_t rewind) {
  actor->gate = 0;
  actor->rows = 0;
  actor->nbytes = 0;
  for (uint32_t l = 0; l < actor->config.n_lanes; l++) {
    actor->met[l] = 0;
    actor->fin[l] = 0;
    task_queue *q = &actor->queues[l];
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
