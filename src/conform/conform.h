/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The conformance kit, inside.
 *
 * A check is a function in the kit's own process. It runs scripts, each in a forked child: a script plays
 * one life of a runtime on a `conform_rig`. What that runtime would have stored lies in shared memory
 * (`conform_memory`) and so outlives a child that is killed; the next child is its successor. A script
 * never unwinds: what must not happen ends the child on the spot, with a reason.
 */
#ifndef CONFORM_CONFORM_H
#define CONFORM_CONFORM_H

#include <stdatomic.h>
#include <weir/conform.h>

#include "config/config.h"
#include "connector/connector.h"

enum {
  CONFORM_WRITERS = 8,
  CONFORM_ATTEMPTS = 512,
  CONFORM_ARENA = 64 << 20,
  CONFORM_ROWS = 3 /* of an ordinary batch */
};

/* ---- what survives a kill (world.c) ------------------------------------------------------------ */

typedef struct conform_bytes {
  bool present;
  size_t at, size; /* in the arena */
} conform_bytes;

enum { CONFORM_RESERVED = 1, CONFORM_DECIDED = 2, CONFORM_ABORTED = 3 };

typedef struct conform_attempt {
  weir_cursor cursor; /* token and digest once it is decided */
  int32_t state;      /* CONFORM_RESERVED .. */
  bool cleaned;
  uint64_t rows; /* by how many the target grows */
  size_t n;      /* participants */
  conform_bytes intents[CONFORM_WRITERS], descriptors[CONFORM_WRITERS];
} conform_attempt;

/* What the checkpoint store would hold. A plain value: a copied state folder is a copy of it. */
typedef struct conform_store {
  uint8_t deployment[WEIR_UUID_SIZE];
  uint64_t token;    /* of the newest owner */
  uint64_t next_row; /* where the source goes on: the last decided position */
  size_t n;          /* attempt k has number k + 1 */
  conform_attempt attempts[CONFORM_ATTEMPTS];
} conform_store;

typedef struct conform_memory {
  /* the child's progress */
  _Atomic uint64_t step;
  _Atomic bool inside;      /* a hook of the connector is under way */
  const char *_Atomic hook; /* the step begun last; static text */
  /* its end */
  bool failed;
  char reason[1024];
  /* what scripts found out */
  bool asked_cleaner, has_cleaner, cannot_cut;
  char leak[64]; /* where a secret stood first; "": nowhere */
  weir_contract contract;
  conform_store store;
  _Atomic size_t used;
  uint8_t arena[CONFORM_ARENA];
} conform_memory;

/* Copies into the arena; aborts the child when it is full. Any thread. */
conform_bytes conform_keep(conform_memory *memory, const weir_bytes *bytes);

/* A schema to offer and rows of whatever schema came of it. `key` may be absent. */
weir_status conform_input_schema(const weir_names *key, weir_schema **out,
                                 weir_error *err);
/* A row: `_op` is U, D (all but the key is null), or N: a U whose key is null. */
typedef struct conform_row {
  uint64_t id;
  char op;
} conform_row;
weir_status conform_rows(const weir_names *key, weir_schema *schema,
                         const conform_row *rows, size_t n, weir_batch **out,
                         weir_error *err);

/* ---- the kit (conform.c) ----------------------------------------------------------------------- */

typedef struct conform {
  const weir_conform_options *given;
  weir_config *config;
  weir_sink_ops ops; /* complete */
  connector_host *host;
  char spool[64]; /* a folder of its own for what waits between decision and commit */
  connector_spec *spec;
  weir_names key; /* keyed_mutation_key's answer */
  bool cancel_safe;
  int64_t patience_ns;
  conform_memory *memory;
  uint64_t
      first_row; /* of the next world: no key is used twice, not even by another run */
  uint64_t baseline; /* rows at the target before this world */
  /* of the check under way */
  int32_t outcome;
  char reason[1200];
  weir_error error; /* of the kit itself; ends all */
} conform;

/* Ends the check under way with a failure; the first one counts. Returns false. */
bool conform_fails(conform *c, const char *fmt, ...) WEIR_PRINTF(2, 3);
/* It could not be shown; weaker than a failure. */
void conform_unshown(conform *c, const char *fmt, ...) WEIR_PRINTF(2, 3);
/* A new deployment, and the target's rows before it. False: an error of the kit itself. */
bool conform_new_world(conform *c);
/* Compares the target's growth in this world with `rows`; `when` ends the sentence. True without a count. */
bool conform_count_is(conform *c, uint64_t rows, const char *when);
/* Rows that the decided attempts of the would-be store add up to. */
uint64_t conform_decided_rows(const conform *c);

/* ---- children (run.c, calls.c) ------------------------------------------------------------------ */

/* What happens to a child on its way. Zeroed: nothing. */
typedef struct conform_plan {
  uint64_t kill_step; /* killed before that step */
  uint64_t
      kill_call; /* killed before the system call of that number that changes something in a hook */
  bool watch; /* counts those calls, and notes what opens something */
} conform_plan;

typedef enum conform_end {
  CONFORM_ENDED, /* the script is through */
  CONFORM_KILLED,
  CONFORM_PAUSED, /* by conform_pause; goes on with conform_resume */
  CONFORM_WRONG   /* failed, crashed or stuck: conform_fails was called */
} conform_end;

typedef struct conform_child {
  pid_t pid;
  conform_plan plan;
  bool refused;    /* the system does not let us watch */
  uint64_t calls;  /* that change something, within hooks */
  char opened[96]; /* "openat in create": the first that opens something, or "" */
} conform_child;

typedef struct conform_rig conform_rig;
typedef void (*conform_script)(conform_rig *rig);

/* Forks and waits until the script is over, killed or paused. */
conform_end conform_run(conform *c, const conform_plan *plan, conform_script script,
                        conform_child *child);
conform_end conform_resume(conform *c, conform_child *child);
/* As conform_run for a script that must go through. */
bool conform_through(conform *c, conform_script script);

/* In a child: stops until the kit says go on. */
void conform_pause(conform_rig *rig);

/* Table of system calls; `args` are the call's first ones. */
typedef struct conform_call {
  long number;
  const char *name;
  bool opens, changes, bytes; /* bytes: a full disk refuses it */
} conform_call;
/* NULL: one that neither opens nor changes anything. */
const conform_call *conform_find_call(long number, const uint64_t *args);

/* In a child, for the rest of its life: calls that read files, list folders or talk to sockets fail with
 * EIO, or those that write and sync bytes. False: this system cannot do that. */
enum { CONFORM_CUT_READS = 1, CONFORM_CUT_WRITES = 2 };
bool conform_cut_off(int what);

/* ---- one life of a runtime (rig.c) ---------------------------------------------------------------- */

struct conform_rig {
  conform *c;
  conform_plan plan;
  conform_memory *memory;
  conform_store *store;
  weir_call call;
  weir_namespace ns;
  weir_binding binding;
  connector_sink *sinks[CONFORM_WRITERS];
  size_t n;
  weir_contract contract;
  uint64_t token;
  bool may_not_replace; /* a first start that is not `--new-deployment` */
};

/* Ends the child: this must not happen. */
_Noreturn void conform_wrong(conform_rig *rig, const char *fmt, ...) WEIR_PRINTF(2, 3);
/* Ends the child unless `status` is WEIR_OK. */
void conform_must(conform_rig *rig, weir_status status, const char *hook,
                  const weir_error *err);

/* Notes when bytes from the sink hold a secret of its options; `what` is static. Any thread. */
void conform_look(conform *c, const char *what, const void *data, size_t size);

/* Around every call of a hook. `hook` is static. */
void conform_step(conform_rig *rig, const char *hook);
void conform_step_done(conform_rig *rig);

/* From create to open, with `writers` participants; a new owner, whose token is the store's + 1. */
void conform_start(conform_rig *rig, size_t writers);
/* The parts of it: create, contract and bind of one; resolve and prepare of the first. */
connector_sink *conform_create(conform_rig *rig, uint64_t participant);
weir_status conform_prepare_target(conform_rig *rig, weir_error *err);
/* Committable: take_over, the cursor judged, what is decided published, the rest aborted and cleaned. */
void conform_recover(conform_rig *rig);
/* One writer, started and recovered: a session's beginning; and sessions of one epoch, and of none. */
void conform_open(conform_rig *rig);
void conform_one_epoch(conform_rig *rig);
void conform_only_recover(conform_rig *rig);
weir_cursor conform_observe(conform_rig *rig);
/* Reserves the next attempt and begins it on all participants. Its number. */
uint64_t conform_begin(conform_rig *rig);
/* The call alone; *taken are the rows that the sink has accepted. */
weir_status conform_try_write(conform_rig *rig, size_t sink, weir_batch *batch,
                              uint64_t *taken, weir_error *err);
void conform_write(conform_rig *rig, size_t sink, uint64_t first, size_t rows);
/* Writes CONFORM_ROWS rows to each participant but those in `empty` (bits), and notes them. */
void conform_fill(conform_rig *rig, uint64_t attempt, uint32_t empty);
/* pre_commit of all; the descriptors are kept. */
void conform_prepare(conform_rig *rig, uint64_t attempt);
void conform_decide(conform_rig *rig, uint64_t attempt);
/* Attempts first .. last of the store as one batch. `attempts` and `entries` are its memory. */
typedef struct conform_batch {
  weir_commit_batch batch;
  weir_commit_attempt attempts[16];
  weir_commit_entry entries[16 * CONFORM_WRITERS];
} conform_batch;
void conform_make_batch(conform_rig *rig, uint64_t first, uint64_t last,
                        conform_batch *out);
weir_status conform_commit(conform_rig *rig, const conform_batch *batch, weir_error *err);
/* Commits what is decided and not at the target. */
void conform_publish(conform_rig *rig);
/* begin, fill, prepare, decide. Its number. */
uint64_t conform_decided(conform_rig *rig);
/* The same and the commit. */
uint64_t conform_epoch(conform_rig *rig);
void conform_rollback(conform_rig *rig, uint64_t attempt);
/* Cleans an aborted attempt; `intents` false: without them. */
void conform_clean(conform_rig *rig, connector_cleaner *cleaner,
                   const conform_attempt *attempt, bool intents);
conform_attempt *conform_attempt_of(conform_rig *rig, uint64_t number);
/* The first participant's; NULL: it has none. */
connector_cleaner *conform_cleaner(conform_rig *rig);
/* close and release of all. */
void conform_stop(conform_rig *rig);

/* ---- the checks (check_*.c, checks.c) ------------------------------------------------------------- */

enum { /* what a check is about; not claimed: not run */
       CONFORM_IF_COMMITTABLE = 1,
       CONFORM_IF_DURABLE = 2, /* at least once */
       CONFORM_IF_MULTI_WRITER = 4,
       CONFORM_IF_KEYED = 8,
       CONFORM_IF_CLAIMS = 16,
       CONFORM_IF_CLEANER = 32,
       CONFORM_IF_SECRETS = 64,
       CONFORM_IF_CANCEL_SAFE = 128,
       CONFORM_COUNTED = 256 /* passed means nothing without a count of rows */
};

typedef struct conform_check {
  const char *group, *name, *text;
  unsigned about;
  void (*run)(conform *c);
} conform_check;

extern const conform_check conform_checks[]; /* ends with a NULL name */

/* check_lifecycle.c */
void conform_check_create(conform *c);
void conform_check_no_io(conform *c);
void conform_check_intent(conform *c);
void conform_check_session(conform *c);
/* Asks a sink for its cleaner, as the session does. */
bool conform_learn_cleaner(conform *c);
void conform_check_prepare_again(conform *c);
void conform_check_close_anywhere(conform *c);
void conform_check_release_anywhere(conform *c);
void conform_check_leaks(conform *c);
/* check_epochs.c */
void conform_check_bad_batch(conform *c);
void conform_check_no_rows(conform *c);
void conform_check_order(conform *c);
void conform_check_null_key(conform *c);
void conform_check_empty(conform *c);
void conform_check_next_begins(conform *c);
void conform_check_writers(conform *c);
void conform_check_several(conform *c);
void conform_check_empty_behind_rows(conform *c);
/* check_commit.c */
void conform_check_not_before(conform *c);
void conform_check_again(conform *c);
void conform_check_fenced(conform *c);
void conform_check_other_digest(conform *c);
void conform_check_predecessor(conform *c);
void conform_check_unreadable(conform *c);
void conform_check_failed_prepare(conform *c);
void conform_check_failed_commit(conform *c);
void conform_check_second_deployment(conform *c);
void conform_check_replaced(conform *c);
/* check_abort.c */
void conform_check_rollback_twice(conform *c);
void conform_check_rollback_unbegun(conform *c);
void conform_check_rollback_half_way(conform *c);
void conform_check_rollback_published(conform *c);
void conform_check_rollback_next(conform *c);
void conform_check_clean_twice(conform *c);
void conform_check_clean_without_intent(conform *c);
void conform_check_clean_later(conform *c);
void conform_check_clean_live(conform *c);
void conform_check_clean_incarnation(conform *c);
/* check_kill.c */
void conform_check_expired(conform *c);
void conform_check_cancel_safe(conform *c);
void conform_check_durable(conform *c);
void conform_check_kill_between(conform *c);
void conform_check_kill_inside(conform *c);
void conform_check_kill_recovery(conform *c);
void conform_check_secrets(conform *c);

#endif
