/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The coordinator's inside. Events record facts; after each, coord_progress makes every move that the
 * facts allow. Phases change through coord_enter alone, which asks coord_may.
 */
#ifndef COORD_STATE_H
#define COORD_STATE_H

#include "base/base.h"
#include "coord/coord.h"

/* ---- phases of the present attempt (phase.c) */
typedef enum coord_phase {
  PHASE_NEW,            /* COORD_START has not come */
  PHASE_TAKING_OVER,    /* recovery: every committable sink's cursor is read */
  PHASE_PUBLISHING,     /* recovery: what is decided and not at its target is published */
  PHASE_RESOLVING,      /* recovery: Abort for what is reserved without a decision */
  PHASE_NAMING,         /* intents of the next attempt are asked for */
  PHASE_RESERVING,      /* its reservation is under way to the store */
  PHASE_BEGINNING,      /* begin_epoch */
  PHASE_OPEN,           /* gates are open */
  PHASE_SEALING,        /* barriers are under way */
  PHASE_PREPARING,      /* pre_commit, then waiting for the commits before */
  PHASE_DECIDING,       /* the decision is under way to the store */
  PHASE_STOPPING_LANES, /* abort: until no lane pushes any more */
  PHASE_ABORTING,       /* Abort is under way to the store */
  PHASE_ROLLING_BACK,   /* rollback_epoch on every committable sink */
  PHASE_PURGING,     /* rewind: participants drop what is older than the new generation */
  PHASE_SEEKING,     /* rewind: lanes go to the last decided position */
  PHASE_BACKING_OFF, /* before the next attempt */
  PHASE_FINISHING,   /* nothing more will be decided: commits and cleaning are awaited */
  PHASE_HALTING,     /* an error stops the run: commits in flight are awaited */
  PHASE_STOPPED,     /* COORD_STOP was given */
  PHASE_COUNT
} coord_phase;

const char *coord_phase_name(coord_phase phase);
bool coord_may(coord_phase from, coord_phase to);

/* Failures of one sink or lane since the last decision that have one code. Kept for each, so that two
 * which fail in turn do not hide one another for ever. */
typedef struct coord_count {
  weir_status code;
  uint32_t n;
} coord_count;

/* ---- sinks */
typedef enum coord_commit_state {
  COMMIT_IDLE,    /* no batch is out */
  COMMIT_RUNNING, /* sent, not answered */
  COMMIT_WAITING /* answered retriable or in doubt: the same batch goes out again at retry_at */
} coord_commit_state;

const char *coord_commit_state_name(coord_commit_state state);
bool coord_commit_may(coord_commit_state from, coord_commit_state to);

typedef enum coord_asked { ASK_NOT, ASK_SENT, ASK_DONE } coord_asked;

/* The positions of a decided attempt, until the lanes are told. */
typedef struct coord_cut {
  uint64_t attempt;
  weir_bytes *positions; /* one a lane of the config */
} coord_cut;

/* A decided attempt of one sink that its target does not show yet. */
typedef struct coord_debt {
  weir_cursor cursor;
  bool has_rows;
  int64_t since; /* when it was decided, or recovered */
  size_t size;   /* of its descriptors */
  size_t n_entries;
  weir_commit_entry *entries;
  weir_bytes *owners; /* one an entry */
} coord_debt;

typedef struct coord_part {
  coord_asked intent_asked, begin, prepare, rollback, purge;
  bool sealed;
  uint64_t rows, nbytes;  /* of the present attempt */
  weir_bytes intent;      /* of the present attempt */
  weir_bytes next_intent; /* of the attempt after it */
  weir_bytes descriptor;
} coord_part;

typedef struct coord_sink_state {
  char *id;
  bool committable, overlap;
  int64_t commit_interval;
  uint32_t n_parts;
  uint32_t unprepared; /* while `preparing` is ASK_SENT: answers still to come */
  coord_part *parts;
  uint64_t rows, bytes; /* decided, since the deployment began */
  weir_cursor decided;  /* last decided cursor */
  weir_cursor seen;     /* what the target shows, as far as is known */

  coord_asked take_over; /* recovery */
  uint32_t take_over_failures;
  int64_t retry_at; /* take-over, then commits */

  weir_cursor
      *resolved; /* of decided attempts that are not owed any more: a person said so */
  size_t n_resolved;
  coord_debt *owed; /* oldest first */
  size_t n_owed, owed_capacity;
  size_t rows_owed;  /* of those, how many have rows */
  size_t owed_size;  /* bytes of descriptors owed */
  size_t owed_parts; /* entries owed */

  coord_commit_state commit;
  int64_t backoff;
  weir_commit_batch batch; /* frozen while commit != COMMIT_IDLE */
  weir_commit_attempt *batch_attempts;

  coord_asked preparing; /* pre_commit of the present attempt: whole sink */
  coord_count failures;
} coord_sink_state;

typedef struct coord_lane {
  char *name;
  bool inert;          /* known to the store alone: its position is carried on */
  bool ephemeral;      /* a rewind does not bring back what was not decided */
  weir_bytes position; /* last decided */
  uint64_t rows; /* at that position, since the deployment began, without the lost ones */
  uint64_t lost; /* by aborts, since the deployment began */
  bool barrier;  /* sent one in this round */
  weir_bytes barrier_position;
  uint64_t barrier_rows;
  bool ended;
  weir_bytes end_position;
  uint64_t end_rows;
  coord_asked stop, seek;
  int64_t seek_retry_at; /* 0: not waiting */
  int64_t seek_backoff;
  coord_count failures;
} coord_lane;

/* What an aborted attempt may have left at one sink's target. */
typedef struct coord_dirt {
  uint64_t attempt;
  uint32_t sink;
  bool running;
  bool given_up; /* it failed while the run was ending: the next start sees to it */
  int64_t retry_at, backoff;
  weir_store_entry *entries; /* intents */
  size_t n_entries;
  weir_bytes *owners;
} coord_dirt;

struct coord {
  uint32_t n_sinks, n_lanes,
      n_inert; /* inert lanes lie behind the n_lanes of the config */
  coord_sink_state *sinks;
  coord_lane *lanes;
  /* Counts of what the states below say one by one, so that an answer costs the same however many there
   * are. */
  uint32_t n_parts;    /* of all sinks */
  uint32_t awaited;    /* answers to what all participants were last asked for */
  uint32_t n_sealed;   /* participants */
  uint32_t preparing;  /* sinks with pre_commit out */
  uint32_t prepared;   /* sinks with pre_commit answered */
  uint32_t committing; /* sinks with a batch out */
  /* Where to look first, so that one sink after the other is found without a look at all before it. */
  uint32_t next_prepare; /* pre_commit was sent to every sink before this one */
  uint32_t next_commit;  /* behind the sink whose batch was sent last */
  uint32_t behind;       /* a sink that did not show all rows when last asked */
  int64_t interval, timeout, backoff_min, backoff_max;
  uint64_t token;
  char *pipeline; /* name, for messages */

  int64_t now;
  coord_phase phase;
  bool recovered;
  uint64_t attempt; /* present attempt; between attempts the last one */
  uint64_t last;    /* highest number ever used */
  uint64_t decided; /* last decided attempt */
  uint64_t epochs;  /* decisions in this run */
  uint64_t next;    /* reserved with the decision under way; 0: none */
  bool opened;      /* the gates of the present attempt were opened */
  uint64_t generation;

  uint64_t *unresolved; /* recovery: reserved without a decision, ascending */
  size_t n_unresolved, resolved;

  int64_t checkpoint_at; /* next by the interval */
  bool checkpoint_asked;
  bool draining;
  bool drain_asked;      /* the drain's own barriers were sent */
  int64_t prepare_until; /* checkpoint timeout */
  bool withdrawing;      /* Abort of an attempt that took nothing, at the end of a run */

  bool failed; /* a failure waits until the attempt can be aborted */
  weir_error failure;
  uint32_t failure_sink, failure_lane;
  uint32_t aborts;      /* in a row */
  weir_error cause;     /* of the last one */
  coord_count failures; /* of no sink or lane */
  bool stopping;        /* the run ends with `error` once what is under way is done */
  weir_error error;
  int64_t backoff_until;

  coord_cut *cuts;
  size_t n_cuts, cuts_capacity;
  coord_cut told; /* keeps the bytes of the last COORD_TELL_LANE */

  coord_dirt *dirt;
  size_t n_dirt, dirt_capacity;

  weir_store_decision decision; /* valid while DECIDING */
  weir_store_sink *decision_sinks;
  weir_store_entry *decision_descriptors, *decision_intents;
  weir_store_position *decision_positions;
  coord_debt *decision_owed; /* one a committable sink, in order */
  coord_cut decision_cut;
  weir_store_entry *reserve_entries;
  weir_store_position *abort_positions; /* valid while ABORTING */

  coord_command *commands;
  size_t n_commands, first_command, commands_capacity;
};

enum { COORD_AT_ONCE = 8, COORD_CAUSE_LIMIT = 5, COORD_EMPTY_LIMIT = 1024 };

/* ---- coord.c */
weir_status coord_enter(coord *c, coord_phase to, weir_error *err);
weir_status coord_push(coord *c, const coord_command *command, weir_error *err);
weir_status coord_progress(coord *c, weir_error *err);
weir_status coord_not_now(const coord *c, const char *event, weir_error *err);
/* Stops with this error and nothing more, not even what is queued. */
void coord_halt_now(coord *c, const weir_error *error);
/* Stops with this error once the commits in flight are answered. The first error is kept. */
weir_status coord_halt(coord *c, const weir_error *error, weir_error *err);
int64_t coord_later(const coord *c, int64_t span);
int64_t coord_grow_backoff(const coord *c, int64_t backoff);
bool coord_attempt_running(const coord *c);
/* The sink's or lane's index is checked; NULL and an error when it is not one. */
coord_sink_state *coord_event_sink(coord *c, const coord_event *e, weir_error *err);
coord_part *coord_event_part(coord *c, const coord_event *e, weir_error *err);
coord_lane *coord_event_lane(coord *c, const coord_event *e, weir_error *err);
/* Moves the event's bytes; *into is released first. */
void coord_take(weir_bytes *into, weir_bytes *from);
weir_status coord_copy_bytes(weir_bytes *out, int present, const void *data, size_t size,
                             weir_error *err);

/* ---- load.c: the store's state, at the start */
weir_status coord_load(coord *c, const weir_store_state *state, weir_error *err);

/* ---- recovery.c */
weir_status coord_on_observed(coord *c, coord_event *e, weir_error *err);
weir_status coord_progress_recovery(coord *c, bool *moved, weir_error *err);
weir_status coord_resolved(coord *c, uint64_t attempt, weir_error *err);

/* ---- attempt.c */
weir_status coord_on_intent(coord *c, coord_event *e, weir_error *err);
weir_status coord_on_reserved(coord *c, coord_event *e, weir_error *err);
weir_status coord_on_begun(coord *c, coord_event *e, weir_error *err);
weir_status coord_on_barrier_sent(coord *c, coord_event *e, weir_error *err);
weir_status coord_on_lane_ended(coord *c, coord_event *e, weir_error *err);
weir_status coord_on_sealed(coord *c, coord_event *e, weir_error *err);
weir_status coord_name_next(coord *c, weir_error *err);
weir_status coord_begin(coord *c, weir_error *err);
weir_status coord_progress_attempt(coord *c, bool *moved, weir_error *err);
bool coord_all_ended(const coord *c);
void coord_reset_attempt(coord *c);
void coord_reset_preparing(coord *c);

/* ---- decide.c */
weir_status coord_on_prepared(coord *c, coord_event *e, weir_error *err);
weir_status coord_on_decided(coord *c, coord_event *e, weir_error *err);
weir_status coord_start_preparing(coord *c, weir_error *err);
weir_status coord_progress_preparing(coord *c, bool *moved, weir_error *err);
/* INT64_MAX while no pre_commit is out. */
int64_t coord_prepare_deadline(const coord *c);
void coord_drop_decision(coord *c);
/* Every lane has ended, and the present attempt's positions are those of the ends. */
bool coord_is_last(const coord *c);
/* Once all is sealed: the present attempt's position, of the lane's barrier, else of its end. */
const weir_bytes *coord_lane_position(const coord_lane *lane);
uint64_t coord_lane_rows(const coord_lane *lane);
bool coord_same_bytes(const weir_bytes *a, const weir_bytes *b);

/* ---- abort.c */
weir_status coord_on_aborted(coord *c, coord_event *e, weir_error *err);
weir_status coord_on_rolled_back(coord *c, coord_event *e, weir_error *err);
weir_status coord_on_stopped(coord *c, coord_event *e, weir_error *err);
weir_status coord_on_purged(coord *c, coord_event *e, weir_error *err);
weir_status coord_on_sought(coord *c, coord_event *e, weir_error *err);
weir_status coord_on_failed(coord *c, coord_event *e, weir_error *err);
/* A failure before the decision: aborts at once where that is allowed, else as soon as it is. */
weir_status coord_fail(coord *c, const weir_error *error, uint32_t sink, uint32_t lane,
                       weir_error *err);
/* Aborts now: the attempt is reserved and its decision was not asked for. */
weir_status coord_abort(coord *c, const weir_error *error, uint32_t sink, uint32_t lane,
                        weir_error *err);
weir_status coord_withdraw(coord *c, weir_error *err);
weir_status coord_progress_abort(coord *c, bool *moved, weir_error *err);
/* Counts a failure; true when it ends the run. */
bool coord_count_failure(coord *c, const weir_error *error, uint32_t sink, uint32_t lane);
void coord_forget_failures(coord *c); /* a decision was made */

/* ---- commit.c */
weir_status coord_on_committed(coord *c, coord_event *e, weir_error *err);
weir_status coord_progress_commits(coord *c, weir_error *err);
bool coord_commit_due(const coord *c, const coord_sink_state *s);
int64_t coord_commit_wakeup(const coord *c, const coord_sink_state *s);
void coord_owe(coord_sink_state *s, const coord_debt *debt); /* room was made */
weir_status coord_reserve_debt(coord_sink_state *s, weir_error *err);
void coord_debt_done(coord_debt *owed);
void coord_drop_owed(coord_sink_state *s, size_t n);
weir_status coord_saw(coord *c, uint32_t sink, const weir_cursor *cursor,
                      weir_error *err);
weir_status coord_progress_tell(coord *c, weir_error *err);
void coord_cut_done(coord *c, coord_cut *cut);

/* ---- clean.c */
weir_status coord_on_cleaned(coord *c, coord_event *e, weir_error *err);
weir_status coord_progress_clean(coord *c, weir_error *err);
/* After the durable Abort of the present attempt: each sink owes cleaning, or provably nothing. */
weir_status coord_soil(coord *c, weir_error *err);
weir_status coord_add_dirt(coord *c, uint32_t sink, uint64_t attempt,
                           const weir_store_entry *entries, size_t n, weir_error *err);
bool coord_cleaning(const coord *c);
void coord_dirt_done(coord_dirt *dirt);

#endif
