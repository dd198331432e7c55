/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <weir/ndjson.h>

#include "adbc.h"

/* How much of an answer is taken: weir asks for cursors and samples alone. */
#define MAX_ROWS 100000

static weir_status no_memory(weir_error *err) {
  return weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
}

/* ---- statements' text -------------------------------------------------------------------------------- */

weir_status adbc_sql_start(adbc_sql *sql, weir_error *err) {
  *sql = (adbc_sql){.text = NULL};
  sql->file = open_memstream(&sql->text, &sql->size);
  return sql->file ? WEIR_OK : no_memory(err);
}

weir_status adbc_sql_done(adbc_sql *sql, weir_error *err) {
  int bad = !sql->file || ferror(sql->file);
  if (sql->file) bad |= fclose(sql->file) != 0;
  sql->file = NULL;
  return bad || !sql->text ? no_memory(err) : WEIR_OK;
}

void adbc_sql_free(adbc_sql *sql) {
  if (sql->file) fclose(sql->file);
  free(sql->text);
  *sql = (adbc_sql){.text = NULL};
}

static void put_twice(adbc_sql *sql, const char *text, const char *which) {
  for (; *text; text++) {
    if (strchr(which, *text)) fputc(*text, sql->file);
    fputc(*text, sql->file);
  }
}

void adbc_sql_name(adbc_sql *sql, const char *name) {
  fputc('"', sql->file);
  put_twice(sql, name, "\"");
  fputc('"', sql->file);
}

void adbc_sql_table(adbc_sql *sql, const adbc_config *config, const char *table) {
  if (config->schema) {
    adbc_sql_name(sql, config->schema);
    fputc('.', sql->file);
  }
  adbc_sql_name(sql, table);
}

void adbc_sql_text(adbc_sql *sql, const adbc_conn *c, const char *text) {
  if (!text) {
    fputs("NULL", sql->file);
    return;
  }
  fputc('\'', sql->file);
  put_twice(sql, text, c->backslash ? "'\\" : "'");
  fputc('\'', sql->file);
}

void adbc_sql_hex(adbc_sql *sql, const uint8_t *bytes, size_t size) {
  fputc('\'', sql->file);
  for (size_t i = 0; i < size; i++) fprintf(sql->file, "%02x", bytes[i]);
  fputc('\'', sql->file);
}

void adbc_sql_columns(adbc_sql *sql, const struct ArrowSchema *schema,
                      const int64_t *columns, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    if (i) fputs(", ", sql->file);
    adbc_sql_name(sql, schema->children[columns[i]]->name);
  }
}

/* ---- rows ---------------------------------------------------------------------------------------------- */

void adbc_rows_done(adbc_rows *rows) {
  for (size_t i = 0; i < rows->n; i++) yyjson_doc_free(rows->v[i]);
  free(rows->v);
  *rows = (adbc_rows){.n = 0};
}

yyjson_val *adbc_value(const adbc_rows *rows, size_t row, size_t column) {
  if (row >= rows->n) return NULL;
  yyjson_obj_iter iter = yyjson_obj_iter_with(yyjson_doc_get_root(rows->v[row]));
  yyjson_val *key = NULL;
  for (size_t i = 0; i <= column; i++) key = yyjson_obj_iter_next(&iter);
  return key ? yyjson_obj_iter_get_val(key) : NULL;
}

const char *adbc_text(const adbc_rows *rows, size_t row, size_t column) {
  yyjson_val *value = adbc_value(rows, row, column);
  const char *text = yyjson_is_raw(value) ? yyjson_get_raw(value) : yyjson_get_str(value);
  return text ? text : "";
}

static weir_status add_line(adbc_rows *rows, const char *line, size_t size,
                            weir_error *err) {
  if (rows->n >= MAX_ROWS)
    return weir_error_set(err, WEIR_E_IO, 0, "the answer has more than %d rows",
                          MAX_ROWS);
  if (!(rows->n & (rows->n + 1))) {
    yyjson_doc **grown = realloc(rows->v, 2 * (rows->n + 1) * sizeof(*grown));
    if (!grown) return no_memory(err);
    rows->v = grown;
  }
  yyjson_doc *doc = yyjson_read(line, size, YYJSON_READ_NUMBER_AS_RAW);
  if (!doc) return no_memory(err);
  rows->v[rows->n++] = doc;
  return WEIR_OK;
}

weir_status adbc_rows_of(weir_batch *batch, adbc_rows *out, weir_error *err) {
  weir_ndjson_encoder *encoder = NULL;
  const uint8_t *data = NULL;
  size_t size = 0;
  weir_status status = weir_ndjson_encoder_new(weir_batch_schema(batch), &encoder, err);
  if (!status) status = weir_ndjson_encoder_write(encoder, batch, &data, &size, err);
  while (!status && size) {
    const uint8_t *end = memchr(data, '\n', size);
    size_t n = end ? (size_t)(end - data) : size;
    status = add_line(out, (const char *)data, n, err);
    n += end != NULL;
    data += n;
    size -= n;
  }
  weir_ndjson_encoder_free(encoder);
  return status;
}

static weir_status stream_failed(struct ArrowArrayStream *stream, weir_error *err) {
  const char *why = stream->get_last_error ? stream->get_last_error(stream) : NULL;
  return weir_error_set(err, WEIR_E_IO, WEIR_ERR_RETRIABLE,
                        "cannot read the driver's answer: %s", why ? why : "no reason");
}

/* Takes what the driver answers for foreign bytes: weir_schema_new and weir_batch_new check it. */
static weir_status read_stream(struct ArrowArrayStream *stream, adbc_rows *out,
                               weir_error *err) {
  struct ArrowSchema arrow = {.release = NULL};
  weir_schema *schema = NULL;
  if (stream->get_schema(stream, &arrow)) return stream_failed(stream, err);
  weir_status status = weir_schema_new(&arrow, &schema, err);
  if (arrow.release) arrow.release(&arrow);
  while (!status) {
    struct ArrowArray array = {.release = NULL};
    weir_batch *batch = NULL;
    if (stream->get_next(stream, &array)) {
      status = stream_failed(stream, err);
      break;
    }
    if (!array.release) break;
    status = weir_batch_new(schema, &array, &batch, err);
    if (array.release) array.release(&array);
    if (!status && weir_batch_rows(batch)) status = adbc_rows_of(batch, out, err);
    weir_batch_unref(batch);
  }
  weir_schema_unref(schema);
  return status;
}

/* ---- statements ---------------------------------------------------------------------------------------- */

typedef struct statement {
  struct AdbcStatement s;
  int made;
} statement;

static weir_status statement_new(adbc_conn *c, statement *out, weir_error *err) {
  struct AdbcError error = ADBC_ERROR_INIT;
  *out = (statement){.s.private_driver = &c->driver->table};
  AdbcStatusCode code = c->driver->table.StatementNew(&c->connection, &out->s, &error);
  if (code) return adbc_error(c->config, "make a statement", code, &error, err);
  out->made = 1;
  return WEIR_OK;
}

static void statement_free(adbc_conn *c, statement *st) {
  struct AdbcError error = ADBC_ERROR_INIT;
  if (st->made) c->driver->table.StatementRelease(&st->s, &error);
  if (error.release) error.release(&error);
}

static weir_status run_statement(adbc_conn *c, statement *st, const char *what,
                                 adbc_rows *rows, weir_error *err) {
  struct AdbcError error = ADBC_ERROR_INIT;
  struct ArrowArrayStream stream = {.release = NULL};
  int64_t changed = -1;
  AdbcStatusCode code = c->driver->table.StatementExecuteQuery(
      &st->s, rows ? &stream : NULL, &changed, &error);
  if (code) return adbc_error(c->config, what, code, &error, err);
  if (!rows) return WEIR_OK;
  weir_status status = stream.release ? read_stream(&stream, rows, err) : WEIR_OK;
  if (stream.release) stream.release(&stream);
  return status ? weir_error_prefix(err, status, "cannot %s", what) : WEIR_OK;
}

weir_status adbc_query(adbc_conn *c, const char *what, const char *sql, adbc_rows *out,
                       weir_error *err) {
  struct AdbcError error = ADBC_ERROR_INIT;
  statement st;
  adbc_rows rows = {.n = 0};
  if (c->call) ADBC_TRY(weir_call_check(c->call, what, err));
  weir_status status = statement_new(c, &st, err);
  if (!status) {
    AdbcStatusCode code = c->driver->table.StatementSetSqlQuery(&st.s, sql, &error);
    if (code) status = adbc_error(c->config, what, code, &error, err);
  }
  if (!status) status = run_statement(c, &st, what, out ? &rows : NULL, err);
  statement_free(c, &st);
  if (!status && out) {
    *out = rows;
  } else {
    adbc_rows_done(&rows);
  }
  return status;
}

weir_status adbc_exec(adbc_conn *c, const char *what, const char *sql, weir_error *err) {
  return adbc_query(c, what, sql, NULL, err);
}

weir_status adbc_run(adbc_conn *c, const char *what, adbc_sql *sql, adbc_rows *out,
                     weir_error *err) {
  weir_status status = adbc_sql_done(sql, err);
  if (!status) status = adbc_query(c, what, sql->text, out, err);
  adbc_sql_free(sql);
  return status;
}

/* ---- ingest ---------------------------------------------------------------------------------------------- */

static weir_status make_stream(weir_schema *schema, weir_batch *batch,
                               struct ArrowArrayStream *out, weir_error *err) {
  struct ArrowSchema arrow = {.release = NULL};
  struct ArrowArray array = {.release = NULL};
  ADBC_TRY(weir_schema_export(schema, &arrow, err));
  weir_status status = batch ? weir_batch_export(batch, &array, err) : WEIR_OK;
  if (!status && ArrowBasicArrayStreamInit(out, &arrow, batch ? 1 : 0) != NANOARROW_OK)
    status = no_memory(err);
  if (!status && batch) ArrowBasicArrayStreamSetArray(out, 0, &array);
  if (arrow.release) arrow.release(&arrow);
  if (array.release) array.release(&array);
  return status;
}

static weir_status set_ingest(adbc_conn *c, statement *st, const char *table, int how,
                              weir_error *err) {
  const char *const options[][2] = {
      {ADBC_INGEST_OPTION_TARGET_TABLE, table},
      {ADBC_INGEST_OPTION_MODE, how & ADBC_CREATE ? ADBC_INGEST_OPTION_MODE_CREATE
                                                  : ADBC_INGEST_OPTION_MODE_APPEND},
      {ADBC_INGEST_OPTION_TEMPORARY,
       how & ADBC_TEMPORARY ? ADBC_OPTION_VALUE_ENABLED : NULL},
      {ADBC_INGEST_OPTION_TARGET_DB_SCHEMA,
       how & ADBC_TEMPORARY ? NULL : c->config->schema}};
  for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++) {
    struct AdbcError error = ADBC_ERROR_INIT;
    if (!options[i][1]) continue;
    AdbcStatusCode code =
        c->driver->table.StatementSetOption(&st->s, options[i][0], options[i][1], &error);
    if (code) return adbc_error(c->config, options[i][0], code, &error, err);
  }
  return WEIR_OK;
}

weir_status adbc_ingest(adbc_conn *c, const char *table, int how, weir_schema *schema,
                        weir_batch *batch, weir_error *err) {
  struct AdbcError error = ADBC_ERROR_INIT;
  struct ArrowArrayStream stream = {.release = NULL};
  statement st;
  if (c->call) ADBC_TRY(weir_call_check(c->call, "write rows", err));
  weir_status status = statement_new(c, &st, err);
  if (!status) status = set_ingest(c, &st, table, how, err);
  if (!status) status = make_stream(schema, batch, &stream, err);
  if (!status) {
    AdbcStatusCode code = c->driver->table.StatementBindStream(&st.s, &stream, &error);
    if (code) status = adbc_error(c->config, "bind rows", code, &error, err);
  }
  if (!status) status = run_statement(c, &st, "write rows", NULL, err);
  statement_free(c, &st);
  if (stream.release) stream.release(&stream); /* not taken over */
  return status;
}

/* ---- transactions ------------------------------------------------------------------------------------------ */

static weir_status set_autocommit(adbc_conn *c, int on, weir_error *err) {
  struct AdbcError error = ADBC_ERROR_INIT;
  AdbcStatusCode code = c->driver->table.ConnectionSetOption(
      &c->connection, ADBC_CONNECTION_OPTION_AUTOCOMMIT,
      on ? ADBC_OPTION_VALUE_ENABLED : ADBC_OPTION_VALUE_DISABLED, &error);
  return code ? adbc_error(c->config, on ? "turn autocommit on" : "turn autocommit off",
                           code, &error, err)
              : WEIR_OK;
}

weir_status adbc_begin(adbc_conn *c, weir_error *err) {
  ADBC_TRY(set_autocommit(c, 0, err));
  c->open = 1;
  return WEIR_OK;
}

static weir_status end(adbc_conn *c, const char *what,
                       AdbcStatusCode (*how)(struct AdbcConnection *, struct AdbcError *),
                       weir_error *err) {
  struct AdbcError error = ADBC_ERROR_INIT;
  AdbcStatusCode code = how(&c->connection, &error);
  if (code) return adbc_error(c->config, what, code, &error, err);
  c->open = 0;
  return WEIR_OK;
}

/* The session is of no use when autocommit cannot be turned on again, but what was committed is. */
weir_status adbc_commit(adbc_conn *c, weir_error *err) {
  ADBC_TRY(end(c, "commit", c->driver->table.ConnectionCommit, err));
  return set_autocommit(c, 1, err);
}

weir_status adbc_rollback(adbc_conn *c, weir_error *err) {
  ADBC_TRY(end(c, "roll back", c->driver->table.ConnectionRollback, err));
  return set_autocommit(c, 1, err);
}

weir_status adbc_table_schema(adbc_conn *c, const char *table, int *there,
                              struct ArrowSchema *out, weir_error *err) {
  struct AdbcError error = ADBC_ERROR_INIT;
  weir_error why = {0};
  out->release = NULL;
  AdbcStatusCode code = c->driver->table.ConnectionGetTableSchema(
      &c->connection, NULL, c->config->schema, table, out, &error);
  *there = !code;
  if (!code) return WEIR_OK;
  weir_status status = adbc_error(c->config, "look at the table", code, &error, &why);
  if (!(why.flags & WEIR_ERR_RETRIABLE)) return WEIR_OK;
  if (err) *err = why;
  return status;
}

/* ---- life ------------------------------------------------------------------------------------------------------ */

static weir_status set_options(adbc_conn *c, weir_error *err) {
  const adbc_config *config = c->config;
  for (size_t i = 0; i < config->keys.n; i++) {
    struct AdbcError error = ADBC_ERROR_INIT;
    AdbcStatusCode code = c->driver->table.DatabaseSetOption(
        c->database, config->keys.v[i], config->values.v[i], &error);
    if (code) {
      char what[200];
      snprintf(what, sizeof(what), "set option '%s'", config->keys.v[i]);
      return adbc_error(config, what, code, &error, err);
    }
  }
  return WEIR_OK;
}

static weir_status open_database(adbc_conn *c, weir_error *err) {
  struct AdbcError error = ADBC_ERROR_INIT;
  AdbcStatusCode code = c->driver->table.DatabaseNew(c->database, &error);
  if (code) return adbc_error(c->config, "make a database handle", code, &error, err);
  c->database->private_driver = &c->driver->table;
  ADBC_TRY(set_options(c, err));
  code = c->driver->table.DatabaseInit(c->database, &error);
  return code ? adbc_error(c->config, "open the database", code, &error, err) : WEIR_OK;
}

static weir_status open_connection(adbc_conn *c, weir_error *err) {
  struct AdbcError error = ADBC_ERROR_INIT;
  AdbcStatusCode code = c->driver->table.ConnectionNew(&c->connection, &error);
  if (code) return adbc_error(c->config, "make a connection", code, &error, err);
  c->ready = 1;
  c->connection.private_driver = &c->driver->table;
  code = c->driver->table.ConnectionInit(&c->connection, c->database, &error);
  return code ? adbc_error(c->config, "connect", code, &error, err) : WEIR_OK;
}

/* Whether the database answers the question; one that does not know it is another one. */
static int answers(adbc_conn *c, const char *question, const char *begin) {
  adbc_rows rows = {.n = 0};
  int yes = !adbc_query(c, "ask for the database", question, &rows, NULL) &&
            strncmp(adbc_text(&rows, 0, 0), begin, strlen(begin)) == 0;
  adbc_rows_done(&rows);
  return yes;
}

/* Durability and waits, where the database is known to leave them to its clients. */
static weir_status settle(adbc_conn *c, weir_error *err) {
  static const char *const sqlite[] = {"PRAGMA busy_timeout = 20000",
                                       "PRAGMA synchronous = FULL",
                                       "PRAGMA foreign_keys = ON"};
  if (answers(c, "SELECT sqlite_version()", "3")) {
    for (size_t i = 0; i < sizeof(sqlite) / sizeof(*sqlite); i++)
      ADBC_TRY(adbc_exec(c, "set it up", sqlite[i], err));
  } else if (answers(c, "SELECT version()", "PostgreSQL")) {
    ADBC_TRY(adbc_exec(c, "set it up", "SET synchronous_commit = on", err));
  }
  c->backslash = answers(c, "SELECT LENGTH('\\\\') AS n", "1");
  return WEIR_OK;
}

weir_status adbc_open(const adbc_config *config, const weir_call *call, adbc_conn *out,
                      weir_error *err) {
  *out = (adbc_conn){.config = config, .call = call, .owner = 1};
  out->driver = calloc(1, sizeof(*out->driver));
  out->database = calloc(1, sizeof(*out->database));
  if (!out->driver || !out->database) return no_memory(err);
  ADBC_TRY(adbc_driver_load(config, out->driver, err));
  ADBC_TRY(open_database(out, err));
  ADBC_TRY(open_connection(out, err));
  return settle(out, err);
}

weir_status adbc_open_beside(adbc_conn *first, adbc_conn *out, weir_error *err) {
  *out = (adbc_conn){.config = first->config,
                     .call = first->call,
                     .driver = first->driver,
                     .database = first->database,
                     .backslash = first->backslash};
  return open_connection(out, err);
}

void adbc_close(adbc_conn *c) {
  struct AdbcError error = ADBC_ERROR_INIT;
  if (c->ready) {
    if (c->open) c->driver->table.ConnectionRollback(&c->connection, &error);
    if (error.release) error.release(&error);
    memset(&error, 0, sizeof(error));
    c->driver->table.ConnectionRelease(&c->connection, &error);
    if (error.release) error.release(&error);
    memset(&error, 0, sizeof(error));
  }
  if (c->owner && c->database && c->database->private_data)
    c->driver->table.DatabaseRelease(c->database, &error);
  if (error.release) error.release(&error);
  if (c->owner && c->driver) adbc_driver_unload(c->driver);
  if (c->owner) {
    free(c->driver);
    free(c->database);
  }
  *c = (adbc_conn){.config = NULL};
}
