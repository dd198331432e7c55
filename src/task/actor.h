/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of an actor, shared by its files. */
#ifndef TASK_ACTOR_H
#define TASK_ACTOR_H

#include "task/queue.h"
#include "task/task.h"

/* What one thread of a generation is at. Under the actor's lock, but for the call, which is atomic. */
typedef struct seat {
  weir_call call;
  task_job job; /* answered by the watchdog when the thread does not come back */
  int has_job;
  const char *doing; /* the hook it is in; NULL: none */
  int64_t timeout;   /* that hook's */
  int64_t
      late_at; /* since when a cancel-safe hook has been past its deadline; 0: it is not */
} seat;

/* One live instance of the connector with the threads that may call it. Counted: the actor's reference
 * and one per thread; a thread that hangs in the connector keeps it, the actor and nothing else. */
typedef struct generation {
  atomic_int refs;
  task_actor *actor;
  connector_sink *sink;
  weir_task_tracker *tracker;  /* of the connector's detached tasks; NULL: none */
  const weir_binding *binding; /* not open yet: the thread opens it first */
  seat main, committer;
  /* below: under the actor's lock */
  int retired; /* touch nothing of the actor any more */
  int threads; /* running */
  int has_commit_thread;
  int opening; /* the commit thread waits until it is over */
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
  uint32_t n_queues;  /* those of the lanes, then of the feeders */
  task_queue *queues; /* this and below: n_queues */
  task_lane **lanes;
  task_actor **feeders;
  uint8_t *fed, *met, *fin;
  uint32_t next_queue;
  /* where its own letters go; set before it starts */
  task_actor **takers;
  uint32_t n_takers, next_taker;
  uint32_t taker_queue; /* of each */
  task_router *keys;    /* NULL: rows have no key that could be missing */
  weir_batch
      *letters;    /* of the last batch, to be handed over before the next one is taken */
  uint64_t rewind; /* what is older is dropped */
  uint64_t attempt;
  uint64_t rows, nbytes; /* taken in this attempt */
  int gate;              /* open */
  int stopping;
  int strays;                   /* threads of retired generations that are not back */
  const char *stuck;            /* where the last of them hangs */
  weir_task_tracker **trackers; /* of generations that are over; room for every one */
  size_t n_trackers, n_generations;
  int64_t join_by; /* how long join waits; since stop */
  weir_error close_error;
  int64_t dirty_since; /* the oldest row's time in the connector's buffer; 0: empty */
  uint64_t total_rows, total_bytes;
};

/* Into a hook, which is late `timeout_ns` from now, and out of it. Lock held. */
void seat_enter(seat *at, const char *hook, int64_t timeout_ns);
void seat_leave(seat *at);
/* Out of one hook and into another, or the same again. Lock not held. */
void seat_next(generation *g, seat *at, const char *hook, int64_t timeout_ns);

void actor_unref(task_actor *actor);
void generation_unref(generation *g);

/* Adds a job at the end; takes nothing out. Lock held. */
void job_list_add(job_list *list, task_job *job);
task_job *job_list_take(job_list *list);
void task_job_free(task_job *job);
const char *task_job_name(task_job_type type); /* the hook it is made for */
/* Whether its failure makes the coordinator give the attempt up, or stop. */
int task_job_ends_attempt(task_job_type type);

/* Runs a job on the present thread, at its seat, and posts its answer, unless the generation was retired
 * meanwhile. Frees it. Lock not held. */
void generation_run(generation *g, seat *at, task_job *job);
/* Posts the answer that `job` owes. */
void actor_answer(task_actor *actor, const task_job *job, coord_event *event,
                  const weir_error *error);
void actor_failed(task_actor *actor, const weir_error *error);

/* retire.c. From here on the generation's threads find `retired` and leave, and what they and the queue
 * owe is answered with `error`. `told`: the coordinator knows already that the attempt is lost. Lock
 * held. */
void generation_retire(generation *g, const weir_error *error, int told);
/* Retires it when the connector made itself terminal: a hook that came back after its deadline. Lock
 * held. */
void generation_retire_if_terminal(generation *g, const weir_error *error, int told);

/* write.c. Lock held at entry and exit. */
void actor_write(generation *g, uint32_t queue, task_item *item);

/* The thread functions (actor.c). */
void *generation_main(void *arg);
void *generation_commit_main(void *arg);

/* A purge (queues.c): drops what is older than `rewind`, closes the gate, forgets barriers met. Lock
 * held; dropped batches are released with the lock given up and taken again. */
void actor_purge(task_actor *actor, uint64_t rewind);
/* The next item that may be read: gate open, barrier of its queue not met. Lock held. */
int actor_next_item(task_actor *actor, uint32_t *queue, task_item *out);
/* Gives the letters to a participant of the sink that takes them; false: none has room. Lock held. */
bool actor_hand_over(task_actor *actor);
/* Something was taken out of that queue: tells who fills it. Lock not held. */
void actor_made_room(task_actor *actor, uint32_t queue);
/* Marks a barrier or an end as met; closes the gate, sends the barrier on to the sink that takes its letters and posts
 * COORD_SEALED when all are. Lock held. */
void actor_meet(task_actor *actor, uint32_t queue, const task_item *item);
void actor_seal_if_met(task_actor *actor);

#endif
