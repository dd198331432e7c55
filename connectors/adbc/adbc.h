/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sink `adbc`: rows in a table of any database that has an ADBC driver, exactly once, through the transactional
 * adapter.
 *
 * sink.c     options and the adapter's table
 * driver.c   the driver's shared library, and what an error of it means
 * conn.c     connections: statements, their rows, bulk ingest, transactions
 * cursor.c   table weir_cursor: claims, the cursor, the fence
 * target.c   the table, and what it is made of
 * proof.c    that the driver keeps its transactions and the target the values, shown on a table of weir's own
 * samples.c  values that are sent and read back
 * upsert.c   changes by key, through a temporary table
 * session.c  the hooks of the adapter
 */
#ifndef CONNECTORS_ADBC_H
#define CONNECTORS_ADBC_H

#include <nanoarrow/nanoarrow.h>
/* behind nanoarrow, whose guards of the Arrow C data interface it shares */
#include <arrow-adbc/adbc.h>
#include <stdio.h>
#include <weir/txn_sink.h>
#include <yyjson.h>

#define ADBC_TRY(call)                             \
  do {                                             \
    weir_status adbc_try_status_ = (call);         \
    if (adbc_try_status_) return adbc_try_status_; \
  } while (0)

#define ADBC_CURSOR "weir_cursor"
/* Metadata of a binding's schema: the target makes something else of NaN. */
#define ADBC_NO_NAN "weir.adbc.no_nan"

/* What the options say; immutable. */
typedef struct adbc_config {
  char *where; /* "sink lake" */
  char *driver, *entrypoint;
  weir_names keys, values; /* of `options`, for the driver */
  char *schema, *table;    /* schema NULL: where the connection starts */
  int upsert, create;
  weir_names key;
} adbc_config;

/* ---- driver.c */

/* A driver that was loaded; zeroed: none. */
typedef struct adbc_driver {
  struct AdbcDriver table;
  void *library;
} adbc_driver;

/* WEIR_E_INVALID_CONFIG tells what was tried. */
weir_status adbc_driver_load(const adbc_config *config, adbc_driver *out,
                             weir_error *err);
void adbc_driver_unload(adbc_driver *driver);
/* The name by which the library at `path` exports its start: "AdbcDriverSqliteInit". */
void adbc_driver_entrypoint(const char *path, char *out, size_t size);
/* Sets *err from what a call of the driver gave, without the values of `options`, and releases `error`. */
weir_status adbc_error(const adbc_config *config, const char *what, AdbcStatusCode code,
                       struct AdbcError *error, weir_error *err);

/* ---- conn.c */

/* A connection with a database handle and driver of its own; autocommit outside of begin .. commit. */
typedef struct adbc_conn {
  const adbc_config *config;
  const weir_call *call; /* of the hook under way */
  adbc_driver *driver;
  struct AdbcDatabase *database;
  struct AdbcConnection connection;
  int ready, open; /* the connection is there; a transaction is open */
  int owner;       /* of driver and database */
  int backslash;   /* a backslash escapes within a text of this database's SQL */
} adbc_conn;

/* *out is closed by adbc_close also after a failure. */
weir_status adbc_open(const adbc_config *config, const weir_call *call, adbc_conn *out,
                      weir_error *err);
/* One more to the same database handle, as drivers of embedded databases want it. */
weir_status adbc_open_beside(adbc_conn *first, adbc_conn *out, weir_error *err);
void adbc_close(adbc_conn *c);

/* Text of a statement; ended by adbc_sql_done or adbc_sql_free. */
typedef struct adbc_sql {
  FILE *file;
  char *text;
  size_t size;
} adbc_sql;

weir_status adbc_sql_start(adbc_sql *sql, weir_error *err);
weir_status adbc_sql_done(adbc_sql *sql, weir_error *err);
void adbc_sql_free(adbc_sql *sql);
/* "name" */
void adbc_sql_name(adbc_sql *sql, const char *name);
/* "schema"."table" */
void adbc_sql_table(adbc_sql *sql, const adbc_config *config, const char *table);
/* 'text', or NULL */
void adbc_sql_text(adbc_sql *sql, const adbc_conn *c, const char *text);
void adbc_sql_hex(adbc_sql *sql, const uint8_t *bytes, size_t size);
/* "a", "b" of the columns named by `columns` */
void adbc_sql_columns(adbc_sql *sql, const struct ArrowSchema *schema,
                      const int64_t *columns, int64_t n);

/* Rows of an answer, each a JSON array of its values; numbers as they stand there. */
typedef struct adbc_rows {
  yyjson_doc **v;
  size_t n;
} adbc_rows;

void adbc_rows_done(adbc_rows *rows); /* zeroed is fine */
/* A value, NULL when there is none. */
yyjson_val *adbc_value(const adbc_rows *rows, size_t row, size_t column);
/* The text of a number or string, "" for anything else. */
const char *adbc_text(const adbc_rows *rows, size_t row, size_t column);

weir_status adbc_exec(adbc_conn *c, const char *what, const char *sql, weir_error *err);
weir_status adbc_query(adbc_conn *c, const char *what, const char *sql, adbc_rows *out,
                       weir_error *err);
/* Runs and frees the text; out NULL: no rows are wanted. */
weir_status adbc_run(adbc_conn *c, const char *what, adbc_sql *sql, adbc_rows *out,
                     weir_error *err);

enum { ADBC_APPEND = 0, ADBC_CREATE = 1, ADBC_TEMPORARY = 2 };

/* Bulk ingest of the batch, or of no row of `schema` where batch is NULL. The table is in the configured schema
 * unless ADBC_TEMPORARY. */
weir_status adbc_ingest(adbc_conn *c, const char *table, int how, weir_schema *schema,
                        weir_batch *batch, weir_error *err);

weir_status adbc_begin(adbc_conn *c, weir_error *err);
weir_status adbc_commit(adbc_conn *c, weir_error *err);
weir_status adbc_rollback(adbc_conn *c, weir_error *err);

/* Whether there is such a table; *out is released by the caller when *there. */
weir_status adbc_table_schema(adbc_conn *c, const char *table, int *there,
                              struct ArrowSchema *out, weir_error *err);

/* ---- cursor.c */

#define ADBC_NONCE 33 /* 32 hex digits + NUL */

weir_status adbc_nonce(char out[ADBC_NONCE], weir_error *err);
/* WEIR_E_NOT_FOUND: there is no table weir_cursor; the message has the statement that makes it. */
weir_status adbc_cursor_table(adbc_conn *c, weir_error *err);
weir_status adbc_cursor_create(adbc_conn *c, weir_error *err);
/* `add`: the claim is made, in a transaction of its own, when it is due, else only asked for. */
weir_status adbc_cursor_claim(adbc_conn *c, const weir_namespace *ns, int add,
                              weir_error *err);
weir_status adbc_cursor_check_claim(adbc_conn *c, const weir_namespace *ns,
                                    weir_error *err);
/* What the database is known by, "" when nobody has claimed it. */
weir_status adbc_cursor_target(adbc_conn *c, const weir_namespace *ns, char **out,
                               weir_error *err);
weir_status adbc_cursor_read(adbc_conn *c, const weir_namespace *ns, weir_cursor *out,
                             weir_error *err);
weir_status adbc_cursor_find(adbc_conn *c, const weir_namespace *ns,
                             weir_cursor_list *out, weir_error *err);
/* Writes the nonce into the namespace's row: nobody else's transaction can move the cursor any more. */
weir_status adbc_cursor_fence(adbc_conn *c, const weir_namespace *ns, const char *nonce,
                              weir_error *err);
/* The nonce that stands there; 1: it is `nonce`. */
weir_status adbc_cursor_has(adbc_conn *c, const weir_namespace *ns, const char *nonce,
                            int *same, weir_error *err);
/* Moves the cursor where the row still has nonce `from`, and leaves `to` there. WEIR_E_IO when it did not move. */
weir_status adbc_cursor_move(adbc_conn *c, const weir_namespace *ns,
                             const weir_txn_commit *commit, const char *from,
                             const char *to, weir_error *err);

/* ---- target.c */

int adbc_is_key(const adbc_config *config, const char *name);
/* Columns that go to the table: without the `_op` of keyed streams. */
int64_t adbc_columns(const adbc_config *config, const struct ArrowSchema *schema);
weir_status adbc_resolve(void *config, const weir_call *call, const weir_namespace *ns,
                         weir_schema *input, weir_binding *out, weir_error *err);
weir_status adbc_prepare_target(void *config, const weir_call *call,
                                const weir_namespace *ns, weir_binding *binding,
                                weir_error *err);
/* The input's columns in the order of the table's, malloc'd. */
weir_status adbc_order(adbc_conn *c, const struct ArrowSchema *input, int64_t **out,
                       weir_error *err);
weir_status adbc_verify(void *config, const weir_call *call, const weir_verify *ask,
                        weir_verified *out, weir_error *err);

/* ---- proof.c, samples.c */

/* Shows it at the target, or refuses with the reason. *nan: whether NaN arrives as such. */
weir_status adbc_prove(adbc_conn *c, const weir_namespace *ns, weir_schema *input,
                       const int64_t *columns, int64_t n, int *nan, weir_error *err);
/* The table could not be made: for which column. */
weir_status adbc_blame_create(adbc_conn *c, const weir_namespace *ns, weir_schema *schema,
                              weir_status status, weir_error *err);
/* Values that each column must carry; `nan`: one row, with NaN in the columns of floats. */
weir_status adbc_samples(weir_schema *schema, int nan, weir_batch **out, weir_error *err);
/* Whether `got` is what became of `sent` in a column of this type. */
int adbc_same(const struct ArrowSchema *field, yyjson_val *sent, yyjson_val *got);
/* A batch as adbc_query would give it. */
weir_status adbc_rows_of(weir_batch *batch, adbc_rows *out, weir_error *err);

/* ---- upsert.c */

/* Makes the temporary table of a session. */
weir_status adbc_stage_make(adbc_conn *c, weir_schema *schema, weir_error *err);
weir_status adbc_stage_put(adbc_conn *c, weir_batch *batch, int64_t first,
                           weir_error *err);
/* Moves what is staged into the table, the last change of each key. */
weir_status adbc_stage_merge(adbc_conn *c, weir_schema *schema, weir_error *err);

/* ---- session.c: hooks of weir_txn_ops */

weir_status adbc_session_open(void *config, const weir_call *call,
                              const weir_txn_place *place, void **out, weir_error *err);
void adbc_session_close(void *session, const weir_call *call);
weir_status adbc_session_take_over(void *session, const weir_call *call, weir_error *err);
weir_status adbc_session_read_cursor(void *session, const weir_call *call,
                                     weir_cursor *out, weir_error *err);
weir_status adbc_session_find_cursors(void *session, const weir_call *call,
                                      weir_cursor_list *out, weir_error *err);
weir_status adbc_session_begin(void *session, const weir_call *call, weir_error *err);
weir_status adbc_session_apply(void *session, const weir_call *call, weir_batch *batch,
                               weir_error *err);
weir_status adbc_session_prepare(void *session, const weir_call *call,
                                 const weir_cursor *predecessor, weir_error *err);
weir_status adbc_session_commit(void *session, const weir_call *call,
                                const weir_txn_commit *c, weir_error *err);
weir_status adbc_session_abort(void *session, const weir_call *call, weir_error *err);

#endif
