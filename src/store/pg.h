/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The PostgreSQL store, inside: the tables of the SQLite store in schema `weir` of one database, each with
 * the pipeline as its first column, so that one database serves many pipelines.
 *
 * The lease expires by the server's clock. A thread of its own renews it; it and the caller take turns on
 * the one session under `lock`.
 */
#ifndef STORE_PG_H
#define STORE_PG_H

#include "store/pq.h"
#include "store/sql.h"

enum { /* behind those of every database; the pipeline is $1 of each */
       PG_LEASE_MAKE =
           SQL_STATEMENTS, /* token, last_attempt, sum: where there is none yet */
       PG_LEASE_WHO,       /* -> owner, milliseconds left, as of now */
       PG_LEASE_LOCK,      /* -> a row if it has expired, locked */
       PG_LEASE_OWN,       /* owner, milliseconds */
       PG_LEASE_RENEW,     /* token */
       PG_LEASE_RELEASE,   /* token */
       PG_STATEMENTS
};

typedef struct pg_store {
  sql_store sql;
  pq_session session;
  char *pipeline;
  int64_t lease_ns; /* 0: opened for reading */
  bool prepared[PG_STATEMENTS];
  pthread_mutex_t lock; /* over all of the above and below, `sql.base` excepted */
  pthread_cond_t wake;
  pthread_t keeper;
  bool has_keeper, quit;
  int64_t asked_at;   /* monotonic, before the renewal under way was sent */
  int64_t renewed_at; /* `asked_at` of the last one that the server confirmed */
  weir_error why;     /* what the keeper met with; code 0: nothing */
} pg_store;

extern const sql_driver pg_driver;
extern const char *const pg_sql[PG_STATEMENTS];
extern const char pg_schema[]; /* makes the tables */
#define PG_SCHEMA_VERSION 1

weir_status pg_run(sql_store *base, int id, const sql_value *v, int n, uint64_t *changes,
                   weir_error *err);
weir_status pg_query(sql_store *base, int id, const sql_value *v, int n, sql_row row,
                     void *ctx, weir_error *err);
weir_status pg_begin(sql_store *base, weir_error *err);
bool pg_rollback(sql_store *base);

/* ---- pg_lease.c: all with the lock not held ------------------------------------------------------- */

weir_status pg_load(weir_store *base, weir_store_state **out, weir_error *err);
weir_status pg_apply(weir_store *base, const store_step *step, weir_error *err);
weir_status pg_check_lease(weir_store *base, weir_error *err);
weir_status pg_watch(weir_store *base, weir_error *err);
weir_status pg_keep(pg_store *store, weir_error *err); /* starts the keeper */
void pg_stop_keeping(pg_store *store);

#endif
