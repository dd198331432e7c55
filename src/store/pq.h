/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session with a PostgreSQL server. libpq is loaded when the first session is opened, so that whoever
 * keeps the store on disk neither needs it nor pays for it: it brings some twenty libraries along.
 *
 * Every wait has an end. A session that was lost, or whose answer did not come in time, is never used
 * again.
 */
#ifndef STORE_PQ_H
#define STORE_PQ_H

#include <libpq-fe.h>

#include "base/base.h"

typedef struct pq_session {
  PGconn *conn;
  PQconninfoOption *given; /* what the URI says */
  char *where;         /* host and database for messages: never a user or a password */
  int64_t patience_ns; /* how long an answer may take */
  bool lost;
  bool warned; /* the server has warned since this was last set to false */
} pq_session;

/* A parameter in binary form; oid 20 int8, 25 text, 17 bytea. data == NULL: null. */
typedef struct pq_param {
  Oid oid;
  const char *data;
  int size;
} pq_param;

enum { PQ_INT8 = 20, PQ_TEXT = 25, PQ_BYTEA = 17 };

/* Connects; `writes`: to a server that can be written, unless the URI says otherwise.
 * WEIR_E_INVALID_CONFIG: a malformed URI, which is not repeated: it may hold a password. */
weir_status pq_open(pq_session *s, const char *uri, const char *application, bool writes,
                    weir_error *err);
void pq_close(pq_session *s); /* zeroed ok */

/* One or more statements without parameters. */
weir_status pq_exec(pq_session *s, const char *sql, weir_error *err);
/* Runs a statement with parameters, prepared as `name` unless *prepared; the result, in binary form, is the
 * caller's to pq_clear. */
weir_status pq_run(pq_session *s, const char *name, bool *prepared, const char *sql,
                   const pq_param *params, int n, PGresult **out, weir_error *err);
/* As pq_exec for COMMIT: IN_DOUBT when nobody can say whether it happened. */
weir_status pq_commit(pq_session *s, weir_error *err);
bool pq_is_idle(const pq_session *s); /* connected, and in no transaction */

void pq_clear(PGresult *result);
int pq_rows(const PGresult *result);
int pq_columns(const PGresult *result);
Oid pq_type(const PGresult *result, int column);
/* NULL for null. */
const char *pq_value(const PGresult *result, int row, int column, int *size);
uint64_t pq_changes(PGresult *result);

#endif
