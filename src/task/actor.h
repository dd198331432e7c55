/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of an actor, shared by its files. */
#ifndef TASK_ACTOR_H
#define TASK_ACTOR_H

#include "task/queue.h"
#include "task/task.h"

/* One live instance of the connector with the threads that may call it. Counted: the actor's reference
 * and one per thread; a thread that hangs in the connector keeps it, the actor and nothing else. */
typedef struct generation {
  atomic_int refs;
  task_actor *actor;
  connector_sink *sink;
  const weir_binding *binding; /* not open yet: the thread opens it first */
  weir_call call, commit_call;
  /* what each thread is at, for the watchdog's answer; under the actor's lock */
  task_job job, commit_job;
  int has_job, has_commit_job;
  const char *doing;
  int retired; /* under the actor's lock: touch nothing of the actor any more */
  int threads; /* running; under the actor's lock */
  int has_commit_thread;
  int opening; /* the commit thread waits until it is over; under the actor's lock */
  int open_failed;
  weir_error open_error;
} generation;

typedef struct job_list {
  task_job *first, *last;
} job_list;

struct task_actor {
  atomic_int refs; /* the owner's and one per generation */
  task_actor_config config;
  pthread_mutex_t lock;
  pthread_cond_t wake;        /* the actor's thread */
  pthread_cond_t wake_commit; /* the committer's thread */
  pthread_cond_t over;        /* a thread ended */
  /* below: under lock */
  generation *gen; /* NULL: retired or stopped */
  job_list jobs, commit_jobs;
  task_queue *queues; /* n_lanes */
  task_lane **lanes;
  uint8_t *met, *fin; /* n_lanes */
  uint32_t next_lane;
  uint64_t attempt;
  uint64_t rows, nbytes; /* taken in this attempt */
  int gate;              /* open */
  int stopping;
  int64_t dirty_since; /* the oldest row's time in the connector's buffer; 0: empty */
  uint64_t total_rows, total_bytes;
};

void actor_unref(task_actor *actor);
void generation_unref(generation *g);

/* Adds a job at the end; takes nothing out. Lock held. */
void job_list_add(job_list *list, task_job *job);
task_job *job_list_take(job_list *list);
void task_job_free(task_job *job);

/* Runs a job on the present thread with the given call and posts its answer, unless the generation was
 * retired meanwhile. Lock not held. */
void generation_run(generation *g, task_job *job, weir_call *call);
/* Posts the answer that `job` owes. */
void actor_answer(task_actor *actor, const task_job *job, coord_event *event,
                  const weir_error *error);
void actor_failed(task_actor *actor, const weir_error *error);

/* The thread functions (actor.c). */
void *generation_main(void *arg);
void *generation_commit_main(void *arg);

/* A purge (queues.c): drops what is older than `rewind`, closes the gate, forgets barriers met. Lock
 * held; dropped batches are released with the lock given up and taken again. */
void actor_purge(task_actor *actor, uint64_t rewind);
/* The next item that may be read: gate open, barrier of its queue not met. Lock held. */
int actor_next_item(task_actor *actor, uint32_t *lane, task_item *out);
/* Marks a barrier or an end as met; closes the gate and posts COORD_SEALED when all are. Lock held. */
void actor_meet(task_actor *actor, uint32_t lane, const task_item *item);
void actor_seal_if_met(task_actor *actor);

#endif
