/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session with a server. Every wait ends at the call's deadline or when it is cancelled; what was asked may
 * then still happen, and the session is of no use any more (`lost`).
 */
#ifndef CONNECTORS_POSTGRES_CONN_H
#define CONNECTORS_POSTGRES_CONN_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <stdio.h>
#include <weir/bytes.h>
#include <weir/call.h>

#include "types.h"

typedef struct pg_conn {
  PGconn *conn;
  PQconninfoOption *given; /* what the URI says */
  char *where;             /* host and database, no secret */
  char tag[24];            /* of the last statement: "COMMIT" */
  bool lost;
  bool verifies; /* since another machine is asked and nothing was said of it */
  bool warned;   /* by the server, since it was cleared */
} pg_conn;

/* `application`: what the server shows and others find the session by. Zeroed *c; on failure nothing is left. */
weir_status pg_conn_open(pg_conn *c, const char *uri, const char *application,
                         const weir_call *call, weir_error *err);
void pg_conn_close(pg_conn *c); /* zeroed is fine; ends a transaction that is open */

/* Statements separated by ';' without parameters, or one with. *out (may be NULL): the first result with
 * rows, or else the last; to PQclear. */
weir_status pg_conn_run(pg_conn *c, const weir_call *call, const char *what,
                        const char *sql, const char *const *params, int n, PGresult **out,
                        weir_error *err);

/* COPY .. FROM STDIN: begin, then bytes, then end. A failure ends it; *row of a failed end is the row at fault
 * within the stream, or -1, and `column` its column's name, if the server has said so. */
weir_status pg_conn_copy_begin(pg_conn *c, const weir_call *call, const char *sql,
                               weir_error *err);
weir_status pg_conn_copy_put(pg_conn *c, const weir_call *call, const void *data,
                             size_t size, weir_error *err);
weir_status pg_conn_copy_end(pg_conn *c, const weir_call *call, int64_t *row,
                             char column[64], weir_error *err);

/* Text of a statement. */
typedef struct pg_sql {
  FILE *file;
  char *text; /* once it is done */
  size_t size;
} pg_sql;

weir_status pg_sql_start(pg_sql *sql, weir_error *err);
/* "name", quotes within doubled */
void pg_sql_name(pg_sql *sql, const char *name);
/* E'text' */
void pg_sql_text(pg_sql *sql, const char *text);
weir_status pg_sql_done(pg_sql *sql, weir_error *err); /* `text` is there */
void pg_sql_free(pg_sql *sql);                         /* zeroed is fine */

/* Column `column` of row 0 .. as text; NULL: it is null. */
const char *pg_value(const PGresult *result, int row, int column);

#endif
