/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store as tables: rows with a sum, durable steps, loading. A database is a driver: SQLite
 * (sqlite.h), PostgreSQL (pg.h). Both have the same tables and the same statements in their own words.
 */
#ifndef STORE_SQL_H
#define STORE_SQL_H

#include "store/store.h"

enum { SQL_DESCRIPTOR = 1, SQL_INTENT = 2 }; /* entry.kind */
enum { SQL_DECIDED = 1, SQL_SEEN = 2 };      /* cursor.kind */

/* Parameters and columns stand in one order in every database; the row's sum is always the last. */
typedef enum sql_statement {
  SQL_LEASE_HOLD, /* token, last_attempt, sum: only where the token is that one */
  SQL_LEASE_TAKE,
  SQL_LEASE_READ,
  SQL_META_ADD,
  SQL_META_READ,
  SQL_META_SET, /* deployment, where the pipeline is that one */
  SQL_ATTEMPT_ADD,
  SQL_ATTEMPT_SETTLE, /* only where there is no outcome: it is written once */
  SQL_ATTEMPT_DROP_CLEAN,
  SQL_ATTEMPT_PRUNE,
  SQL_ATTEMPT_READ,
  SQL_ENTRY_ADD,
  SQL_INTENTS_DROP,
  SQL_INTENTS_CLEANED,
  SQL_ENTRY_PRUNE,
  SQL_ENTRY_READ,
  SQL_PART_ADD,
  SQL_PART_TOTALS,
  SQL_PART_FLOOR,
  SQL_PART_PRUNE,
  SQL_PART_READ,
  SQL_CURSOR_SET,
  SQL_CURSOR_READ,
  SQL_POSITION_SET,
  SQL_POSITION_READ,
  SQL_BINDING_SET,
  SQL_BINDING_GET,
  SQL_BINDING_READ,
  SQL_STATEMENTS
} sql_statement;

/* The numbers are part of every sum. */
typedef enum sql_type {
  SQL_INTEGER = 1,
  SQL_TEXT = 3,
  SQL_BLOB = 4,
  SQL_NULL = 5
} sql_type;

/* A column's value; bytes are borrowed. */
typedef struct sql_value {
  sql_type type;
  int64_t i;
  const void *data;
  size_t size;
} sql_value;

sql_value sql_int(uint64_t v);
sql_value sql_text(const char *text);
sql_value sql_blob(const void *data, size_t size);
sql_value sql_null(void);

typedef struct sql_store sql_store;

/* Called for each row; the values are gone when it returns. */
typedef weir_status (*sql_row)(void *ctx, const sql_value *v, int n, weir_error *err);

typedef struct sql_driver {
  /* A writing transaction; it comes after whatever must hold before any step. */
  weir_status (*begin)(sql_store *store, weir_error *err);
  weir_status (*begin_read)(sql_store *store, weir_error *err); /* one snapshot */
  /* A failure that leaves the outcome unknown has flag IN_DOUBT. */
  weir_status (*commit)(sql_store *store, weir_error *err);
  /* True: nothing of the transaction happened, and the connection can be used again. */
  bool (*rollback)(sql_store *store);
  weir_status (*run)(sql_store *store, sql_statement id, const sql_value *v, int n,
                     uint64_t *changes, weir_error *err); /* changes may be NULL */
  weir_status (*query)(sql_store *store, sql_statement id, const sql_value *v, int n,
                       sql_row row, void *ctx, weir_error *err);
  weir_status (*is_owned)(sql_store *store, weir_error *err);   /* FENCED: no more */
  weir_status (*give_space)(sql_store *store, weir_error *err); /* within a step */
  void (*committed)(sql_store *store);                          /* behind a step */
} sql_driver;

/* First member of every database's own store. */
struct sql_store {
  weir_store base;
  const sql_driver *driver;
  char *path; /* of the database, for messages */
  uint64_t token;
  uint64_t last_attempt;
  base_sha256_stream sha;
  bool sha_open;
};

/* sql.c */
weir_status sql_init(sql_store *store, const store_ops *ops, const sql_driver *driver,
                     weir_error *err);
void sql_done(sql_store *store);
/* A row with its sum as the parameter behind the values. `table` is part of the sum, so that no row passes
 * for one of another table. */
weir_status sql_put(sql_store *store, sql_statement id, const char *table,
                    const sql_value *v, int n, uint64_t *changes, weir_error *err);
/* The last of the n columns must be the sum of those before it, else CORRUPT. */
weir_status sql_verify(sql_store *store, const char *table, const sql_value *v, int n,
                       weir_error *err);
/* The integers of the row that the statement finds, and whether it finds one. */
weir_status sql_get_ints(sql_store *store, sql_statement id, const sql_value *v, int n,
                         uint64_t *out, int n_out, bool *found, weir_error *err);
weir_status sql_next_token(uint64_t token, uint64_t *out, weir_error *err);
/* The lease row, checked; CORRUPT when there is none. */
weir_status sql_read_lease(sql_store *store, uint64_t *token, uint64_t *last,
                           weir_error *err);
weir_status sql_fenced(sql_store *store, const char *why, weir_error *err);
extern const char sql_damaged[]; /* "; it is damaged: ..." */

/* sql_load.c */
weir_status sql_load(weir_store *store, weir_store_state **out, weir_error *err);
/* sql_step.c */
weir_status sql_apply(weir_store *store, const store_step *step, weir_error *err);
weir_status sql_check_lease(weir_store *store, weir_error *err);

#endif
