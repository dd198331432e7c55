/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of the transactional adapter.
 *
 * txn_sink.c       the hooks of a sink table: one txn_sink a participant
 * txn_hub.c        what the participants of one sink share: attempts, requests, limits
 * txn_engine.c     the thread that owns the session: what it does next
 * txn_commit.c     a commit batch, by the open transaction or from the spool
 * txn_session.c    calls of the session's hooks, and what follows an error
 * txn_committer.c  the committer's and the cleaner's tables
 *
 * Locks: a hub has one, which is never held around a call of the connector or while a file is read or
 * written. Under it the registry's, which counts hubs, and the host's may be taken.
 */
#ifndef SPOOL_TXN_H
#define SPOOL_TXN_H

#include <stdatomic.h>

#include "spool/spool.h"

/* Published attempts whose segments are kept for a target that loses its tail. */
#define TXN_KEEP_ATTEMPTS 10
/* From which time on a refusal is believed; a transaction that merely expired may be called fenced, and so may
 * the next. */
#define TXN_MAX_STRIKES 2u
#define TXN_MAX_FENCED 5u

/* The connector's options, read. Counted: of a sink, and of sessions that outlive it. */
typedef struct txn_config {
  _Atomic size_t refs;
  const weir_txn_ops *ops;
  void *config;
  weir_txn_contract contract;
} txn_config;
txn_config *txn_config_ref(txn_config *config);
void txn_config_unref(txn_config *config); /* NULL is a no-op */

typedef struct txn_frame {
  weir_spool_frame at;
  weir_batch *batch; /* NULL: to be read from the segment */
} txn_frame;

/* One participant's part of an attempt. */
typedef struct txn_part {
  weir_spool_id id;
  weir_spool_writer *writer; /* NULL: no row yet. Its participant's thread's */
  /* below: under the hub's lock */
  txn_frame *frames;
  size_t n, room;
  size_t applied; /* to the open transaction */
  bool sealed;
} txn_part;

/* Fields but `number` and `refs` under the hub's lock. A decided attempt stays until its commit. */
typedef struct txn_attempt {
  struct txn_attempt *next;
  size_t refs; /* under the hub's lock */
  uint64_t number;
  txn_part **parts;
  size_t n_parts, n_sealed;
  uint64_t bytes;     /* in the spool */
  bool live;          /* in the hub's list: neither rolled back nor published */
  bool included;      /* something of it is in the open transaction */
  bool proven;        /* prepared, or tried */
  bool asked;         /* a checkpoint was asked for because of it */
  unsigned strikes;   /* refusals not believed yet */
  weir_error failure; /* what the target said, believed; code 0: nothing */
  weir_error trouble; /* what stood in the way last */
} txn_attempt;

typedef enum txn_request_type {
  TXN_OPEN,
  TXN_TAKE_OVER,
  TXN_READ_CURSOR,
  TXN_FIND_CURSORS,
  TXN_COMMIT
} txn_request_type;

/* One attempt's segments in a commit. */
typedef struct txn_commit_part {
  size_t attempt; /* index into the batch */
  weir_spool_segment segment;
} txn_commit_part;

/* What a committer asks of the engine. Holds all that it needs, for whoever asked may leave. */
typedef struct txn_request {
  struct txn_request *next;
  size_t refs; /* under the hub's lock */
  txn_request_type type;
  int64_t deadline;
  bool done;
  weir_status status;
  weir_error error;
  weir_cursor cursor;
  weir_cursor_list list;
  /* COMMIT: `batch` without entries */
  weir_commit_batch batch;
  weir_commit_attempt *attempts;
  weir_cursor *accepted;
  char *positions;
  txn_commit_part *parts; /* ordered by attempt, participant */
  size_t n_parts;
} txn_request;

typedef struct txn_hub txn_hub;

typedef struct txn_engine {
  txn_hub *hub; /* one of its references */
  pthread_t thread;
  weir_task_guard *guard;
  /* the engine's thread's alone */
  void *session;
  bool took_over, in_txn;
  int64_t txn_since;
  unsigned failures; /* sessions lost in a row */
  /* under the hub's lock */
  bool orphan;  /* left behind: it touches nothing of the hub any more */
  bool spoiled; /* what was rolled back is in the open transaction */
  bool age_told;
  weir_call *call; /* of the step under way, NULL between steps */
  int64_t step_deadline;
  bool cancelled; /* whoever waited for that step has left */
  int64_t retry_at;
  bool ended;
} txn_engine;

struct txn_hub {
  struct txn_hub *next; /* of the registry */
  size_t refs;          /* under the registry's lock: sinks and engines */
  size_t sinks;         /* opened and not closed; under the registry's lock */
  const weir_txn_ops *ops;
  char key[WEIR_NAMESPACE_KEY_SIZE];
  char *folder;      /* of the spool */
  weir_namespace ns; /* own strings */
  char *pipeline, *sink_id;
  weir_binding binding;
  txn_config *config;
  weir_host host; /* what sessions see: it outlives the runtime's */
  weir_txn_place place;
  uint64_t limit, keep;

  pthread_mutex_t lock;
  pthread_cond_t changed;
  /* below: under lock */
  const weir_host *real; /* NULL: gone */
  txn_engine *engine;
  bool stop;
  txn_attempt *attempts; /* by number */
  uint64_t merge; /* attempts up to this one may share the transaction of those before */
  txn_request *requests, **last_request, *serving;
  bool at_known;
  weir_cursor at;      /* the target's cursor, as read last */
  uint64_t held_bytes; /* of batches in frames */
  bool holding;        /* sources are held */
  unsigned commit_strikes;
};

/* ---- txn_hub.c */

/* The hub of that namespace and host, made if there is none. A reference. */
weir_status txn_hub_open(txn_config *config, const weir_host *host,
                         const weir_namespace *ns, const weir_binding *binding,
                         txn_hub **out, weir_error *err);
/* One sink less: the last one stops the engine, and waits for it as long as the call allows, or not at all. */
void txn_hub_close(txn_hub *hub, bool wait, const weir_call *call);
void txn_hub_unref(txn_hub *hub);
/* Starts the engine if there is none. Lock held. */
weir_status txn_hub_need_engine(txn_hub *hub, weir_task_owner *owner, weir_error *err);
/* Waits for a change, not longer than the call. False: the call is over. Lock held. */
bool txn_hub_wait(txn_hub *hub, const weir_call *call);
/* Whoever waited for the engine leaves: its step is cancelled, or it is left behind. Lock held. */
void txn_hub_give_up(txn_hub *hub);
/* Asks the engine and waits; the request is the caller's until then. */
weir_status txn_hub_ask(txn_hub *hub, weir_task_owner *owner, txn_request *request,
                        const weir_call *call, weir_error *err);
void txn_request_unref(txn_request *request); /* lock held */

/* Lock held for all of these. */
txn_attempt *txn_hub_find(txn_hub *hub, uint64_t number);
weir_status txn_hub_begin(txn_hub *hub, const weir_spool_id *id, txn_attempt **attempt,
                          txn_part **part, weir_error *err); /* a reference */
void txn_attempt_unref(txn_hub *hub, txn_attempt *attempt);
/* Out of the list, and its reference. */
void txn_hub_drop(txn_hub *hub, txn_attempt *attempt);
weir_status txn_hub_add_frame(txn_hub *hub, txn_attempt *attempt, txn_part *part,
                              const weir_spool_frame *at, weir_batch *batch,
                              weir_error *err);
/* Nothing is applied any more: the transaction is over. */
void txn_hub_reset(txn_hub *hub);
/* Limits: asks for a checkpoint at half, holds the sources at all of it. */
void txn_hub_press(txn_hub *hub);
void txn_hub_ask_checkpoint(txn_hub *hub);

/* ---- txn_engine.c */
weir_status txn_engine_start(txn_hub *hub, weir_task_owner *owner, weir_error *err);

/* ---- txn_session.c. No lock held; deadlines are monotonic ns. WEIR_E_CANCELLED with e->orphan: leave. */

weir_status txn_session_open(txn_engine *e, int64_t deadline, weir_error *err);
/* Open, taken over, the cursor read: ready for begin. */
weir_status txn_session_ready(txn_engine *e, int64_t deadline, weir_error *err);
void txn_session_close(txn_engine *e);
weir_status txn_session_take_over(txn_engine *e, int64_t deadline, weir_error *err);
weir_status txn_session_read_cursor(txn_engine *e, int64_t deadline, weir_cursor *out,
                                    weir_error *err);
weir_status txn_session_find_cursors(txn_engine *e, int64_t deadline,
                                     weir_cursor_list *out, weir_error *err);
weir_status txn_session_begin(txn_engine *e, int64_t deadline, weir_error *err);
weir_status txn_session_apply(txn_engine *e, int64_t deadline, weir_batch *batch,
                              weir_error *err);
weir_status txn_session_prepare(txn_engine *e, int64_t deadline, weir_error *err);
weir_status txn_session_commit(txn_engine *e, int64_t deadline, const weir_txn_commit *c,
                               weir_error *err);
/* Ends the transaction, by abort or with the session. */
void txn_session_abort(txn_engine *e, int64_t deadline);
/* Until when a step may take for which nobody waits. */
int64_t txn_session_step(const txn_engine *e);

/* ---- txn_commit.c */
void txn_commit_serve(txn_engine *e, txn_request *r);

/* ---- txn_committer.c */
typedef struct txn_cleaner txn_cleaner;
weir_status txn_cleaner_new(const char *folder, txn_cleaner **out, weir_error *err);
extern const weir_cleaner_ops txn_cleaner_ops;
extern const weir_committer_ops txn_committer_ops; /* state: a txn_sink */

/* An intent as bytes: which segment. */
weir_status txn_intent_write(const weir_spool_id *id, weir_bytes *out, weir_error *err);
bool txn_intent_read(const uint8_t *data, size_t size, weir_spool_id *out);

/* ---- txn_sink.c */

enum { TXN_KEYS = 8 }; /* incarnations of epochs asked for and not yet over */

typedef struct txn_sink {
  const weir_host *host;
  const weir_txn_ops *ops;
  const weir_namespace *ns;
  uint64_t participant;
  txn_config *config; /* NULL: not configured yet */
  weir_task_owner *owner;
  txn_cleaner *cleaner;
  weir_schema *schema;
  txn_hub *hub; /* NULL: not open */
  weir_spool_id keys[TXN_KEYS];
  size_t next_key;
  txn_attempt *attempt; /* the open epoch; NULL: none */
  txn_part *part;
  bool prepared;
} txn_sink;

#endif
