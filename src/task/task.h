/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads of a pipeline: lanes (where batches come in), actors (one thread per sink participant),
 * committers (a second thread per sink with `overlap`) and source loops.
 *
 *   source thread or host thread            actor thread
 *   lane: push, barrier, end  == queue ==>  gate -> write_batch -> seal
 *
 * What happens is posted to one mailbox as coordinator events; what to do comes back as jobs. No
 * function here decides anything about an attempt.
 *
 * Threads are never killed. One that hangs in a connector when its owner stops is left behind: the join
 * function says so. What it can reach is counted, and freed once it is back.
 *
 * Locks, in the order in which they may be held together: lane -> actor -> mailbox. A connector is
 * called with no lock held.
 */
#ifndef WEIR_TASK_H
#define WEIR_TASK_H

#include <stdatomic.h>

#include "base/base.h"
#include "connector/connector.h"
#include "coord/coord.h"

/* ---- mailbox: many writers, one reader */

typedef struct task_mailbox task_mailbox;

weir_status task_mailbox_new(task_mailbox **out, weir_error *err);
task_mailbox *task_mailbox_ref(task_mailbox *box);
void task_mailbox_unref(task_mailbox *box); /* NULL is a no-op */
/* Copies the event and its error; bytes with a release are moved. Cannot fail for the caller: without
 * memory the reader gets the flag `lost` and must stop. */
void task_mailbox_post(task_mailbox *box, coord_event *event);
/* The oldest event, waiting until the deadline; 0: none came. event->error points into *error. */
int task_mailbox_take(task_mailbox *box, int64_t deadline_ns, coord_event *event,
                      weir_error *error, int *lost);

/* ---- actor: one participant, over all its generations */

typedef struct task_actor task_actor;
typedef struct task_lane task_lane;

typedef enum task_job_type {
  TASK_GET_INTENT,
  TASK_BEGIN,
  TASK_PRE_COMMIT,
  TASK_ROLLBACK,
  TASK_PURGE,
  TASK_TAKE_OVER, /* this and below: the committer's, on its own thread when the contract has overlap */
  TASK_COMMIT,
  TASK_CLEAN
} task_job_type;

/* Data that jobs carry is owned by the job and freed with it. */
typedef struct task_job {
  struct task_job *link;
  task_job_type type;
  uint64_t attempt, next, generation;
  weir_commit_batch *commit; /* COMMIT: deep copy, freed by free() */
  weir_abort_batch *abort;   /* CLEAN: deep copy, freed by free() */
} task_job;

/* How long each hook may take, in ns: its deadline, behind which its generation may be over. */
typedef struct task_timeouts {
  int64_t open;
  int64_t begin; /* checkpoint_artifact_intent, begin_epoch */
  int64_t write;
  int64_t pre_commit;
  int64_t commit; /* take_over, observe_cursor, commit_aggregated */
  int64_t rollback, clean, flush, close;
} task_timeouts;

typedef struct task_actor_config {
  uint32_t sink, participant;
  const char *name; /* of the sink, for threads and messages; borrowed for life */
  task_mailbox *mailbox;
  uint32_t n_lanes;   /* queues, by lane index of the pipeline; unused ones stay empty */
  const uint8_t *fed; /* n_lanes flags: which lanes feed this sink */
  uint32_t
      n_feeders; /* participants whose bad rows it takes: their queues are behind those of the lanes */
  const char *
      sets_aside; /* "sink lake": rows that the connector calls bad become letters; NULL: they fail */
  uint64_t queue_bytes;
  int committable, overlap, cas_commit, cancel_safe;
  int64_t flush_interval_ns;
  task_timeouts timeouts;
} task_actor_config;

weir_status task_actor_new(const task_actor_config *config, task_actor **out,
                           weir_error *err);
/* Gives the actor a connector (taken over on OK) and starts its thread. Also after a retirement: the old
 * thread, wherever it hangs, touches nothing of the actor any more. With a `binding` (borrowed for the
 * actor's life) the connector is bound but not open yet: its thread opens it first. */
weir_status task_actor_start(task_actor *actor, connector_sink *sink,
                             const weir_binding *binding, weir_error *err);
/* 1: its generation was retired and jobs wait for a new one. */
int task_actor_wants_generation(task_actor *actor);
/* Queues a job for the actor's or its committer's thread; takes it over, whatever happens. */
void task_actor_send(task_actor *actor, task_job *job);
/* Opens the gate for `attempt`: rows may pass until every live queue's barrier is met. */
void task_actor_open_gate(task_actor *actor, uint64_t attempt);
/* Cancels a hook that is past its deadline. Under `retire`, and when a cancel-safe one does not come back
 * in the same time again, its generation is over: what it owes is answered, 1 is returned and *what says
 * so. Coordinator thread. */
int task_actor_watch(task_actor *actor, int64_t now_ns, weir_error *what);
/* Threads and detached tasks of generations that are over: they may still do something to the target. */
size_t task_actor_strays(task_actor *actor);
size_t task_actor_detached(task_actor *actor); /* the tasks alone */
/* The hook in which the last generation to be retired hangs; NULL: no thread of one is left. */
const char *task_actor_stuck(task_actor *actor);
/* Rows and bytes written by all generations. */
void task_actor_totals(task_actor *actor, uint64_t *rows, uint64_t *bytes);
/* Asks the threads to close the connector and end; queued jobs are dropped. */
void task_actor_stop(task_actor *actor);
/* After it: waits as long as the hook under way and close may still take. A thread or detached task that
 * does not come back in that time is left behind with what it holds (WEIR_E_TIMEOUT); else what close
 * said. */
weir_status task_actor_join(task_actor *actor, weir_error *err);
void task_actor_free(task_actor *actor); /* after join; NULL is a no-op */

typedef struct task_router task_router;
/* The participants of the sink that takes this one's letters, which it gets on the queue of feeder `feeder` of each.
 * Before task_actor_start. `keys` (taken over, may be NULL) finds rows that have no key. */
weir_status task_actor_connect_letters(task_actor *actor, task_actor *const *takers,
                                       uint32_t n, uint32_t feeder, task_router *keys,
                                       weir_error *err);

/* The lane's side of an actor's queues. room: whether a batch of that size may be queued (and one more
 * item without an allocation); add: takes the batch's reference over, cannot fail after room or reserve. */
typedef enum task_item_type {
  TASK_ITEM_BATCH,
  TASK_ITEM_BARRIER,
  TASK_ITEM_END
} task_item_type;
typedef struct task_item {
  task_item_type type;
  uint64_t generation;
  uint64_t attempt;
  weir_batch *batch;
  uint64_t nbytes;
} task_item;
int task_actor_room(task_actor *actor, uint32_t lane, uint64_t nbytes);
weir_status task_actor_reserve(task_actor *actor, uint32_t lane, weir_error *err);
void task_actor_add(task_actor *actor, uint32_t lane, const task_item *item);
void task_actor_set_lane(task_actor *actor, uint32_t lane, task_lane *producer);
/* An actor took a batch out of this lane's queue. */
void task_lane_room(task_lane *lane);

/* ---- lane: where one producer's batches enter */

typedef struct task_lane_config {
  uint32_t index;
  const char *name; /* copied */
  task_mailbox *mailbox;
  uint64_t rows; /* delivered before this run */
  void (*on_room)(
      void *ctx,
      uint32_t lane); /* after a push found no room; no lock held; may be NULL */
  void *ctx;
} task_lane_config;

weir_status task_lane_new(const task_lane_config *config, task_lane **out,
                          weir_error *err);
/* Rows to `writers` participants by key. One thread at a time; sink and schema are borrowed for life. */
weir_status task_router_new(const char *sink, const weir_schema *schema,
                            const weir_names *key, uint32_t writers, task_router **out,
                            weir_error *err);
void task_router_free(task_router *router); /* NULL is a no-op */
/* Rows that split would refuse go to some participant from now on, who has to find them. */
void task_router_pass_bad(task_router *router);
/* What split would refuse. Any thread. */
weir_status task_router_check(const task_router *router, const weir_batch *batch,
                              weir_error *err);
/* One batch per writer, NULL where it gets no row, all of them after a failure. A key without a value, or an `_op` that is neither U nor D,
 * is WEIR_E_BAD_DATA. */
weir_status task_router_split(task_router *router, weir_batch *batch, weir_batch **pieces,
                              weir_error *err);

/* The participants of one more sink that this lane feeds: each batch to one of them, or, with a `router`
 * (taken over, whatever happens), each row by its key. Before the first push. */
weir_status task_lane_connect(task_lane *lane, task_actor *const *participants,
                              uint32_t n, task_router *router, weir_error *err);
/* The participants of the sink that takes the bad rows of this lane's source, and no others. Once at most. */
weir_status task_lane_connect_letters(task_lane *lane, task_actor *const *participants,
                                      uint32_t n, weir_error *err);
/* Counted, with the mailbox: a source that hangs may come back to both after everything else is gone. */
task_lane *task_lane_ref(task_lane *lane);
void task_lane_unref(task_lane *lane); /* NULL is a no-op */

/* Producer's side, one thread at a time. push takes its own reference. */
weir_status task_lane_push(task_lane *lane, weir_batch *batch, int64_t deadline_ns,
                           weir_error *err);
/* Rows that were set aside; they count as rows of the lane. */
weir_status task_lane_push_letters(task_lane *lane, weir_batch *letters,
                                   int64_t deadline_ns, weir_error *err);
/* Comes before the push of a host: waits while the lane is held. With a barrier asked for it does not wait,
 * since only that barrier can end the hold: WEIR_E_TIMEOUT, as for want of room. */
weir_status task_lane_wait_unheld(task_lane *lane, int64_t deadline_ns, weir_error *err);
weir_status task_lane_barrier(task_lane *lane, uint64_t attempt,
                              const weir_bytes *position, weir_error *err);
weir_status task_lane_end(task_lane *lane, const weir_bytes *position, weir_error *err);

/* What the producer is asked for. */
typedef struct task_lane_wish {
  uint64_t barrier; /* attempt whose barrier is wanted; 0: none */
  int stopped;      /* a rewind is under way: push nothing */
  int ended;        /* the lane has sent its end */
  int drain;        /* send the end where you stand */
  int finished;     /* the pipeline is over */
  int seek;         /* a seek waits: task_lane_take_seek */
} task_lane_wish;
/* Waits until something is wanted, task_lane_poke came, or the deadline. `idle`: the producer has nothing
 * to give (stopped, ended or failed), so only a seek, a poke and the finish wake it. */
void task_lane_wishes(task_lane *lane, int64_t deadline_ns, int idle,
                      task_lane_wish *out);
void task_lane_poke(task_lane *lane);

/* Coordinator's side. */
void task_lane_request(task_lane *lane, uint64_t attempt);
/* From now on nothing of an older generation can enter a queue. Posts COORD_STOPPED. */
void task_lane_stop(task_lane *lane, uint64_t generation);
/* Leaves a seek for the producer (position copied; absent: from the start). */
weir_status task_lane_seek(task_lane *lane, uint64_t generation,
                           const weir_bytes *position, uint64_t rows, weir_error *err);
/* 1: a sink has no room for more than is under way: nothing new is read, barriers pass. Until as many 0 have
 * come. Any thread. */
void task_lane_hold(task_lane *lane, int on);
void task_lane_drain(task_lane *lane);
/* The pipeline is over: whoever waits in the lane comes back with WEIR_E_ENDED. */
void task_lane_finish(task_lane *lane);
/* Whether a barrier was asked for and has not come. */
int task_lane_owes_barrier(task_lane *lane);

/* Producer's side of a seek: 1 and the position to go to; then live (posts COORD_SOUGHT). */
int task_lane_take_seek(task_lane *lane, weir_bytes *position);
void task_lane_live(task_lane *lane, const weir_error *error);
uint64_t task_lane_rows(task_lane *lane);

/* ---- source loop: a connector that feeds one lane */

typedef struct task_source task_source;

typedef struct task_source_config {
  task_lane *lane;
  uint32_t lane_index;
  const char *name;
  task_mailbox *mailbox;
  int ephemeral; /* it is never sought: a rewind goes on where it stands */
  int64_t call_timeout_ns;
} task_source_config;

/* Takes over an opened source. */
weir_status task_source_start(const task_source_config *config, connector_source *source,
                              task_source **out, weir_error *err);
/* Every target has `checkpoint`; told between two reads. */
void task_source_committed(task_source *source, uint64_t checkpoint,
                           const weir_bytes *position);
/* Gives up a call that is past its limit: posts COORD_FAILED, or answers the seek that the thread owes.
 * Coordinator thread. */
void task_source_watch(task_source *source, int64_t now_ns);
/* After task_lane_finish, upon which the thread closes the source: as task_actor_join, until
 * `deadline_ns`. */
weir_status task_source_join(task_source *source, int64_t deadline_ns, weir_error *err);
void task_source_free(task_source *source);

/* ---- deep copies for jobs; one block each, to free(). Without a namespace: the connector's own is
 * filled in, which a thread that is left behind still finds. */
weir_commit_batch *task_copy_commit(const weir_commit_batch *batch, const char *positions,
                                    weir_error *err);
weir_abort_batch *task_copy_abort(const weir_store_entry *entries, size_t n,
                                  uint64_t attempt, weir_error *err);

#endif
