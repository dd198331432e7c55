/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sink `sqlite`: rows in a table of a SQLite file, exactly once, through the transactional adapter.
 *
 * sink.c     options and the adapter's table
 * db.c       connections: waits that end with their call, errors with what follows from them
 * target.c   the table, weir's own tables beside it, the claim
 * types.c    which Arrow type is stored as what; the table that the docs are made of
 * rows.c     values of a batch, checked and bound
 * session.c  transactions
 */
#ifndef CONNECTORS_SQLITE_H
#define CONNECTORS_SQLITE_H

#include <nanoarrow/nanoarrow.h>
#include <sqlite3.h>
#include <weir/ndjson.h>
#include <weir/txn_sink.h>

#define LITE_TRY(call)                             \
  do {                                             \
    weir_status lite_try_status_ = (call);         \
    if (lite_try_status_) return lite_try_status_; \
  } while (0)

typedef struct lite_config {
  char *where; /* "sink lake" */
  char *path, *table;
  int upsert, create;
  char **key;
  size_t n_key;
} lite_config;

/* ---- db.c */

typedef struct lite_db {
  sqlite3 *db;
  const weir_call *call; /* of the hook under way: waits end with it */
  const char *path;
} lite_db;

enum { LITE_READ, LITE_WRITE, LITE_CREATE };

/* *out is closed by lite_close also after a failure. */
weir_status lite_open(const lite_config *config, int how, const weir_call *call,
                      lite_db *out, weir_error *err);
void lite_close(lite_db *db);
/* The folder that holds the file, and those above it. */
weir_status lite_make_folder(const lite_config *config, weir_error *err);
/* What SQLite said last, with the flag that it asks for. */
weir_status lite_error(lite_db *db, const char *what, weir_error *err);
weir_status lite_exec(lite_db *db, const char *sql, weir_error *err);
/* A statement with text and blobs bound from 1 on, NULL-terminated by the number; finalized by the caller. */
weir_status lite_prepare(lite_db *db, const char *sql, sqlite3_stmt **out,
                         weir_error *err);
/* 1 in *row when there is one. */
weir_status lite_step(lite_db *db, sqlite3_stmt *stmt, int *row, weir_error *err);
/* `name` within double quotes, appended. */
void lite_quote(sqlite3_str *sql, const char *name);

/* ---- types.c */

enum { LITE_INTEGER = 1, LITE_REAL = 2, LITE_TEXT = 3, LITE_BLOB = 4 };
/* how a value comes out of its column */
enum { LITE_BY_VALUE = 1, LITE_BY_TEXT = 2, LITE_BY_JSON = 3 };

typedef struct lite_type {
  const char *arrow;  /* as people write them, for the docs */
  const char *sqlite; /* in CREATE TABLE */
  int storage;        /* LITE_INTEGER .. */
  int way;            /* LITE_BY_VALUE .. */
  const char *note;
} lite_type;

/* NULL: this type cannot be stored. */
const lite_type *lite_type_of(const struct ArrowSchema *column);

/* ---- target.c */

weir_status lite_resolve(const lite_config *config, const weir_call *call,
                         const weir_namespace *ns, weir_schema *input, weir_binding *out,
                         weir_error *err);
weir_status lite_prepare_target(const lite_config *config, const weir_call *call,
                                const weir_namespace *ns, weir_binding *binding,
                                weir_error *err);
/* That the last claim is this deployment's. */
weir_status lite_check_claim(lite_db *db, const weir_namespace *ns, weir_error *err);
weir_status lite_read_cursor(lite_db *db, const weir_namespace *ns, weir_cursor *out,
                             weir_error *err);
/* Cursors of the pipeline's sink under any deployment. */
weir_status lite_each_cursor(lite_db *db, const weir_namespace *ns, void *ctx,
                             weir_status (*found)(void *ctx,
                                                  const weir_found_cursor *cursor,
                                                  weir_error *err),
                             weir_error *err);
weir_status lite_verify(const lite_config *config, const weir_call *call,
                        const weir_verify *ask, weir_verified *out, weir_error *err);
/* Columns of a binding without `_op`. */
int64_t lite_columns(const struct ArrowSchema *schema);
int lite_is_key(const lite_config *config, const char *name);

/* ---- rows.c */

typedef struct lite_rows lite_rows;

/* Checks every value; WEIR_E_BAD_DATA with row and column. Holds a reference to the batch. */
weir_status lite_rows_open(const lite_config *config, weir_batch *batch, lite_rows **out,
                           weir_error *err);
void lite_rows_free(lite_rows *rows); /* NULL is a no-op */
int lite_rows_deletes(const lite_rows *rows, int64_t row);
/* Binds column `column` of `row` to parameter `at`. */
int lite_rows_bind(const lite_rows *rows, int64_t row, int64_t column, sqlite3_stmt *stmt,
                   int at);

/* ---- session.c: the hooks of weir_txn_ops */

weir_status lite_session_open(void *config, const weir_call *call,
                              const weir_txn_place *place, void **out, weir_error *err);
void lite_session_close(void *session, const weir_call *call);
weir_status lite_session_take_over(void *session, const weir_call *call, weir_error *err);
weir_status lite_session_read_cursor(void *session, const weir_call *call,
                                     weir_cursor *out, weir_error *err);
weir_status lite_session_find_cursors(void *session, const weir_call *call,
                                      weir_cursor_list *out, weir_error *err);
weir_status lite_session_begin(void *session, const weir_call *call, weir_error *err);
weir_status lite_session_apply(void *session, const weir_call *call, weir_batch *batch,
                               weir_error *err);
weir_status lite_session_prepare(void *session, const weir_call *call,
                                 const weir_cursor *predecessor, weir_error *err);
weir_status lite_session_commit(void *session, const weir_call *call,
                                const weir_txn_commit *c, weir_error *err);
weir_status lite_session_abort(void *session, const weir_call *call, weir_error *err);

#endif
