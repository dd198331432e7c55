/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The coordinator: a deterministic state machine. Events go in, commands come out. It owns no thread,
 * clock, file or connector; descriptors and positions are bytes to it. The pipeline executes the
 * commands and feeds the answers back; a test can do the same in any order it likes.
 *
 * One thread at a time. Time is what the caller says it is (monotonic nanoseconds).
 *
 * The way of attempt n (docs/protocol.md has the numbered durable steps):
 *
 *   RESERVING -> BEGINNING -> OPEN -> SEALING -> PREPARING -> DECIDING -> (decided: n+1 is BEGINNING)
 *        \___________\___________\________\___________\-> ABORTING -> ROLLING_BACK -> REWINDING -> RESERVING
 *
 * beside which each committable sink is IDLE, COMMITTING or WAITING (backoff) with the decided attempts
 * that its target does not show yet.
 */
#ifndef WEIR_COORD_H
#define WEIR_COORD_H

#include <weir/cursor.h>
#include <weir/error.h>
#include <weir/store.h>

typedef struct coord coord;

typedef struct coord_sink {
  const char *sink_id;
  uint32_t participants; /* numbered from 1 */
  int committable;
  int overlap; /* commit n may run beside pre_commit n+1 */
  /* decided attempts are gathered that long; 0: each at once */
  int64_t commit_interval_ns;
} coord_sink;

typedef struct coord_config {
  const coord_sink *sinks; /* copied */
  uint32_t n_sinks;
  /* store names of the lanes: a source, or "source/lane"; copied */
  const char *const *lanes;
  /* by lane: its source cannot go back, so a rewind loses what is not decided; NULL: none is */
  const uint8_t *ephemeral;
  uint32_t n_lanes;
  int64_t interval_ns; /* between checkpoints; 0: only when asked */
  int64_t timeout_ns;  /* from 'all sealed' to the decision */
  int64_t backoff_min_ns, backoff_max_ns;
} coord_config;

/* ---- events: what happened. Bytes in events are moved to the coordinator when release is set. */
typedef enum coord_event_type {
  COORD_START,    /* first event; commands of recovery follow */
  COORD_OBSERVED, /* sink, cursor | error: answer to COORD_TAKE_OVER */
  /* sink, participant, attempt, bytes | error: answer to COORD_GET_INTENT */
  COORD_INTENT,
  COORD_RESERVED, /* attempt | error: answer to COORD_RESERVE */
  COORD_BEGUN,    /* sink, participant, attempt | error: answer to COORD_BEGIN */
  /* lane, attempt, bytes = position (absent: none), rows = rows of the lane since the
   * deployment began */
  COORD_BARRIER_SENT,
  COORD_LANE_ENDED, /* lane, generation, bytes = position, rows: its last barrier */
  /* sink, participant, attempt, rows, nbytes: taken in this attempt */
  COORD_SEALED,
  /* sink, participant, attempt, bytes = descriptor, intent | error */
  COORD_PREPARED,
  COORD_DECIDED,     /* attempt | error: answer to COORD_DECIDE */
  COORD_ABORTED,     /* attempt | error: answer to COORD_ABORT */
  COORD_ROLLED_BACK, /* sink, participant, attempt | error */
  /* lane, generation, rows: answer to COORD_STOP_LANES: it pushes nothing more */
  COORD_STOPPED,
  COORD_PURGED,    /* sink, participant, generation: all that was older is dropped */
  COORD_SOUGHT,    /* lane, generation | error: answer to COORD_SEEK */
  COORD_COMMITTED, /* sink, cursor | error: answer to COORD_COMMIT */
  COORD_CLEANED,   /* sink, attempt | error: answer to COORD_CLEAN */
  /* sink, participant | lane, error: a write, flush or read failed outside the above */
  COORD_FAILED,
  COORD_TICK,       /* time passed; see coord_wakeup */
  COORD_CHECKPOINT, /* somebody asks for a checkpoint now */
  COORD_DRAIN,      /* one last checkpoint, then stop; lanes have been told to end */
  COORD_FENCED      /* the lease is lost */
} coord_event_type;

#define COORD_NONE UINT32_MAX

typedef struct coord_event {
  coord_event_type type;
  uint32_t sink;        /* index into config, or COORD_NONE */
  uint32_t participant; /* from 1 */
  uint32_t lane;        /* index into config, or COORD_NONE */
  uint64_t attempt;
  uint64_t generation; /* rewind generation */
  uint64_t rows, nbytes;
  weir_bytes bytes;
  /* PREPARED: the intent of the attempt named `next` in the command */
  weir_bytes intent;
  weir_cursor cursor;
  const weir_error *error; /* NULL: it went well; borrowed */
} coord_event;

/* ---- commands: what to do. Everything pointed to is valid until the next coord_step; what RESERVE,
 * DECIDE, ABORT, COMMIT and CLEAN point to is valid until their answer is stepped. */
typedef enum coord_command_type {
  COORD_TAKE_OVER,  /* sink: take_over, then observe_cursor -> OBSERVED */
  COORD_GET_INTENT, /* sink, participant, attempt -> INTENT */
  COORD_RESERVE,    /* attempt, entries = intents: store, durable -> RESERVED */
  COORD_BEGIN,      /* sink, participant, attempt: begin_epoch -> BEGUN */
  COORD_OPEN_GATES, /* attempt: every participant may write (again) */
  /* attempt: every lane sends barrier -> BARRIER_SENT; participants -> SEALED */
  COORD_SEND_BARRIERS,
  /* sink, participant, attempt; next: also its intent (0: not) -> PREPARED */
  COORD_PRE_COMMIT,
  COORD_DECIDE, /* decision: store, durable -> DECIDED */
  /* attempt, positions = of the lanes that lose rows: store, durable -> ABORTED. error: why; NULL: it
   * took nothing, or an earlier run left it */
  COORD_ABORT,
  COORD_ROLLBACK, /* sink, participant, attempt: rollback_epoch -> ROLLED_BACK */
  /* generation (the present one, from 0): all lanes; a push that waits returns -> STOPPED each */
  COORD_STOP_LANES,
  COORD_PURGE, /* sink, participant, generation: drop what is older -> PURGED */
  /* lane, generation, position, rows: go there (an ephemeral one stays where it is), be live again ->
   * SOUGHT */
  COORD_SEEK,
  /* sink, batch: check the lease if `repeat`, commit_aggregated -> COMMITTED */
  COORD_COMMIT,
  /* sink, attempt, entries = intents of the aborted attempt -> CLEANED */
  COORD_CLEAN,
  COORD_SEEN,         /* sink, cursor: weir_store_seen */
  COORD_MARK_CLEANED, /* sink, attempt: weir_store_cleaned */
  COORD_TELL_LANE,    /* lane, attempt, position: every target has it */
  /* error (NULL: all delivered and committed): nothing more will be commanded */
  COORD_STOP
} coord_command_type;

typedef struct coord_command {
  coord_command_type type;
  uint32_t sink;
  uint32_t participant;
  uint32_t lane;
  uint64_t attempt;
  uint64_t next;
  uint64_t generation;
  uint64_t rows; /* SEEK: of the lane at that position, since the deployment began */
  int repeat;
  int has_position;
  const uint8_t *position;
  size_t position_size;
  weir_cursor cursor;
  const weir_store_entry *entries;
  size_t n_entries;
  const weir_store_decision *decision;
  const weir_store_position *positions;
  size_t n_positions;
  const weir_commit_batch *batch; /* its ns is NULL: the pipeline fills a copy */
  const weir_error *error;
} coord_command;

/* `state` is what the store knows (copied; may be NULL for an empty store), `token` the lease's. */
weir_status coord_new(const coord_config *config, const weir_store_state *state,
                      uint64_t token, coord **out, weir_error *err);
void coord_free(coord *c);

/* Takes one event. WEIR_E_INTERNAL for an event that the present state does not allow (a bug of the
 * caller); late answers of an attempt or generation that is over are allowed and ignored. */
weir_status coord_step(coord *c, int64_t now_ns, coord_event *event, weir_error *err);

/* The next command, oldest first; 0 when there is none. */
int coord_next(coord *c, coord_command *out);

/* When the caller should send COORD_TICK at the latest; INT64_MAX: no need. */
int64_t coord_wakeup(const coord *c);

/* For status and tests. */
typedef struct coord_view {
  const char *phase; /* name of the attempt's state */
  uint64_t attempt;  /* present attempt */
  uint64_t decided;  /* last decided attempt; 0: none */
  uint64_t epochs;   /* decisions in this run */
  uint32_t aborts;   /* in a row */
  int recovered;     /* recovery is over */
} coord_view;
void coord_look(const coord *c, coord_view *out);
/* Decided attempts that the sink's target does not show yet. */
size_t coord_owed(const coord *c, uint32_t sink);
/* The number of the i-th of them, oldest first, or 0 if it has no rows. */
uint64_t coord_owed_rows(const coord *c, uint32_t sink, size_t i);
/* The sink's last decided cursor and last seen one. */
void coord_sink_cursors(const coord *c, uint32_t sink, weir_cursor *decided,
                        weir_cursor *seen);
/* Last decided position of a lane; 0: none (from the start). */
int coord_position(const coord *c, uint32_t lane, const uint8_t **data, size_t *size);

/* SHA-256 over ordered participants and descriptors of one sink's part of an attempt. */
weir_status coord_digest(const char *sink_id, uint64_t attempt,
                         const weir_commit_entry *entries, size_t n,
                         uint8_t out[WEIR_DIGEST_SIZE], weir_error *err);

#endif
