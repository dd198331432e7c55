/* SPDX-License-Identifier: Apache-2.0 */
/* The SQLite store, inside: one connection, its prepared statements, rows with a sum. */
#ifndef STORE_SQLITE_H
#define STORE_SQLITE_H

#include <sqlite3.h>

#include "store/store.h"

enum { SQ_DESCRIPTOR = 1, SQ_INTENT = 2 }; /* entry.kind */
enum { SQ_DECIDED = 1, SQ_SEEN = 2 };      /* cursor.kind */

typedef enum sq_statement {
  SQ_BEGIN,
  SQ_BEGIN_READ,
  SQ_COMMIT,
  SQ_ROLLBACK,
  SQ_LEASE_HOLD,
  SQ_LEASE_TAKE,
  SQ_LEASE_READ,
  SQ_META_ADD,
  SQ_META_READ,
  SQ_ATTEMPT_ADD,
  SQ_ATTEMPT_SETTLE,
  SQ_ATTEMPT_DROP_CLEAN,
  SQ_ATTEMPT_PRUNE,
  SQ_ATTEMPT_READ,
  SQ_ENTRY_ADD,
  SQ_INTENTS_DROP,
  SQ_INTENTS_CLEANED,
  SQ_ENTRY_PRUNE,
  SQ_ENTRY_READ,
  SQ_PART_ADD,
  SQ_PART_TOTALS,
  SQ_PART_FLOOR,
  SQ_PART_PRUNE,
  SQ_PART_READ,
  SQ_CURSOR_SET,
  SQ_CURSOR_READ,
  SQ_POSITION_SET,
  SQ_POSITION_READ,
  SQ_BINDING_SET,
  SQ_BINDING_GET,
  SQ_BINDING_READ,
  SQ_FREE_PAGES,
  SQ_STATEMENTS
} sq_statement;

typedef struct sq_store {
  weir_store base;
  sqlite3 *db;
  char *path; /* of the database, for messages; "in memory" */
  int lock_fd;
  bool in_memory;
  uint64_t token;
  uint64_t last_attempt;
  int wal_pages; /* as the commit hook was last told */
  base_sha256_stream sha;
  bool sha_open;
  sqlite3_stmt *statements[SQ_STATEMENTS];
} sq_store;

/* A column's value on its way in. */
typedef struct sq_value {
  int type; /* SQLITE_INTEGER, SQLITE_TEXT, SQLITE_BLOB, SQLITE_NULL */
  int64_t i;
  const void *data;
  size_t size;
} sq_value;

sq_value sq_int(uint64_t v);
sq_value sq_text(const char *text);
sq_value sq_blob(const void *data, size_t size);
sq_value sq_null(void);

/* Error of a SQLite result code: where, what was tried, what SQLite says. */
weir_status sq_error(sq_store *store, int rc, const char *what, weir_error *err);
weir_status sq_exec(sq_store *store, const char *sql, const char *what, weir_error *err);
/* The prepared statement, reset and without bindings. */
weir_status sq_get(sq_store *store, sq_statement id, sqlite3_stmt **out, weir_error *err);
/* Binds the values and steps once. */
weir_status sq_run(sq_store *store, sq_statement id, const sq_value *v, int n,
                   weir_error *err);
/* As sq_run, with the row's sum as the parameter behind the values. `table` is part of the sum, so that
 * no row passes for one of another table. */
weir_status sq_put(sq_store *store, sq_statement id, const char *table, const sq_value *v,
                   int n, weir_error *err);
/* The row that `s` stands on: its last column must be the sum of those before it, else CORRUPT. */
weir_status sq_verify(sq_store *store, sqlite3_stmt *s, const char *table,
                      weir_error *err);
/* Steps; *row is set when there is one. */
weir_status sq_step(sq_store *store, sqlite3_stmt *s, bool *row, weir_error *err);

/* sqlite_load.c */
weir_status sq_load(weir_store *store, weir_store_state **out, weir_error *err);
/* sqlite_step.c */
weir_status sq_apply(weir_store *store, const store_step *step, weir_error *err);
weir_status sq_check_lease(weir_store *store, weir_error *err);

#endif
