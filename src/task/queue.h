/* SPDX-License-Identifier: Apache-2.0 */
/* A growing ring of items. Bounds are the caller's: barriers must never wait for room. */
#ifndef TASK_QUEUE_H
#define TASK_QUEUE_H

#include "task/task.h"

typedef struct task_queue {
  task_item *v;
  size_t capacity; /* a power of two, or 0 */
  size_t head, n;
  size_t batches;
  uint64_t nbytes; /* of the batches */
} task_queue;

weir_status task_queue_reserve(task_queue *queue,
                               weir_error *err);                /* room for one more */
void task_queue_push(task_queue *queue, const task_item *item); /* after reserve */
int task_queue_pop(task_queue *queue, task_item *out);          /* 0: empty */
void task_queue_done(task_queue *queue); /* drops the items' batches */

#endif
