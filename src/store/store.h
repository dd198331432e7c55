/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside of the checkpoint store: what all kinds of store share (checks, remembered lines, the loaded
 * state) and the operations that one kind implements: tables in a database (sql.h). In memory it is SQLite,
 * on a database without a file.
 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include <weir/store.h>

#include "base/base.h"

/* A durable step: one transaction. */
typedef enum store_step_type {
  STORE_RESERVE,
  STORE_DECIDE,
  STORE_ABORT,
  STORE_PIN,
  STORE_ADOPT,
  STORE_FLUSH
} store_step_type;

typedef struct store_step {
  store_step_type type;
  uint64_t attempt; /* reserve, decide, abort */
  const weir_store_position
      *positions; /* decide: of every source; abort: of those that lose rows */
  size_t n_positions;
  /* attempt that the step reserves; adopt: the highest that is taken; 0: none */
  uint64_t next;
  const weir_store_entry *intents; /* of `next` */
  size_t n_intents;
  const weir_store_decision *decision;
  const weir_store_binding *binding;
  int replace;
  const weir_store_adoption *adoption;
} store_step;

/* A line that the next durable step takes along. */
typedef struct store_line {
  char *sink_id;
  weir_cursor seen; /* checkpoint 0: the line says 'cleaned' */
  uint64_t cleaned; /* attempt */
} store_line;

typedef struct store_ops {
  weir_status (*load)(weir_store *store, weir_store_state **out, weir_error *err);
  weir_status (*check_lease)(weir_store *store, weir_error *err);
  /* Everything of the step and every line, or nothing. */
  weir_status (*apply)(weir_store *store, const store_step *step, weir_error *err);
  void (*close)(weir_store *store);
  /* NULL: a lease that does not expire */
  weir_status (*watch)(weir_store *store, weir_error *err);
} store_ops;

/* First member of every kind. */
struct weir_store {
  const store_ops *ops;
  bool read_only;
  bool
      broken; /* a write of unknown outcome, a failed sync or a lost lease: never used again */
  weir_error why;
  store_line *lines;
  size_t n_lines, lines_room;
};

/* Marks the store broken with `code` and message of *err (already set); returns code. */
weir_status store_break(weir_store *store, weir_status code, const weir_error *err);

/* ---- state.c: memory of a loaded state ------------------------------------------------------- */

typedef struct store_state
    store_state; /* a weir_store_state with the blocks that it points to */

store_state *store_state_new(weir_error *err);
weir_store_state *store_state_public(store_state *state);
/* Zeroed memory that lives as long as the state. */
void *store_state_alloc(store_state *state, size_t n, size_t size, weir_error *err);
/* Room for one more element behind `n` of them: the same array or a copy twice as large. */
weir_status store_state_grow(store_state *state, void **array, size_t n, size_t size,
                             weir_error *err);
char *store_state_text(store_state *state, const void *text, size_t size,
                       weir_error *err);

/* ---- folder.c: the state folder ----------------------------------------------------------------- */

/* Makes the folder (0700), refuses network file systems, takes the owner's lock for the life of *lock_fd
 * and rewrites and syncs a WAL that a dead owner may have left unsynced. `folder` need not exist. */
weir_status store_folder_own(const char *folder, int *lock_fd, weir_error *err);
/* After the store's files are there: their names and the folder's are made durable. */
weir_status store_folder_sync(const char *folder, weir_error *err);
/* "<folder>/store.db"; free(). */
char *store_folder_file(const char *folder, weir_error *err);
/* WEIR_E_INVALID_CONFIG when the magic number of statfs() is that of a network file system. */
weir_status store_refuse_network(int64_t magic, const char *folder, weir_error *err);

#endif
