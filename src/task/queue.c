/* SPDX-License-Identifier: Apache-2.0 */
#include "task/queue.h"

#include <stdlib.h>

weir_status task_queue_reserve(task_queue *queue, weir_error *err) {
  if (queue->n < queue->capacity) return WEIR_OK;
  size_t capacity = queue->capacity ? queue->capacity * 2 : 8;
  task_item *v = base_calloc(capacity, sizeof(*v), err);
  if (!v) return WEIR_E_NOMEM;
  for (size_t i = 0; i < queue->n; i++)
    v[i] = queue->v[(queue->head + i) & (queue->capacity - 1)];
  free(queue->v);
  queue->v = v;
  queue->capacity = capacity;
  queue->head = 0;
  return WEIR_OK;
}

void task_queue_push(task_queue *queue, const task_item *item) {
  queue->v[(queue->head + queue->n) & (queue->capacity - 1)] = *item;
  queue->n++;
  if (item->type == TASK_ITEM_BATCH) {
    queue->batches++;
    queue->nbytes += item->nbytes;
  }
}

int task_queue_pop(task_queue *queue, task_item *out) {
  if (!queue->n) return 0;
  *out = queue->v[queue->head];
  queue->head = (queue->head + 1) & (queue->capacity - 1);
  queue->n--;
  if (out->type == TASK_ITEM_BATCH) {
    queue->batches--;
    queue->nbytes -= out->nbytes;
  }
  return 1;
}

void task_queue_done(task_queue *queue) {
  task_item item;
  while (task_queue_pop(queue, &item)) weir_batch_unref(item.batch);
  free(queue->v);
  *queue = (task_queue){0};
}
