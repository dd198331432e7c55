/* SPDX-License-Identifier: Apache-2.0 */
#include "cursor.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define TABLE "weir_cursor"
enum { DIGEST_TEXT = 2 * WEIR_DIGEST_SIZE + 1 };

static weir_status no_memory(weir_error *err) {
  return weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
}

/* ---- texts ---------------------------------------------------------------------------------------------------- */

/* "" for null, which a table that was made by hand may let into any column. */
static const char *text_of(const PGresult *rows, int row, int column) {
  const char *text = pg_value(rows, row, column);
  return text ? text : "";
}

static void put_table(pg_sql *sql, const pg_config *config) {
  pg_sql_table(sql, config, TABLE);
}

static void put_bytes(pg_sql *sql, const uint8_t *bytes, size_t size) {
  fputs("'\\x", sql->file);
  for (size_t i = 0; i < size; i++) fprintf(sql->file, "%02x", bytes[i]);
  fputs("'::pg_catalog.bytea", sql->file);
}

/* Of this pipeline and sink under any deployment. */
static void put_whose(pg_sql *sql, const weir_namespace *ns) {
  fputs("pipeline = ", sql->file);
  pg_sql_text(sql, ns->pipeline);
  fputs(" AND sink = ", sql->file);
  pg_sql_text(sql, ns->sink_id);
}

static weir_status put_own(pg_sql *sql, const weir_namespace *ns, weir_error *err) {
  char key[WEIR_NAMESPACE_KEY_SIZE];
  weir_namespace_key(ns, key);
  if (!*key) return no_memory(err);
  fputs("namespace = ", sql->file);
  pg_sql_text(sql, key);
  return WEIR_OK;
}

/* Ends the text, runs it and frees it. */
static weir_status run(pg_conn *c, const weir_call *call, const char *what, pg_sql *sql,
                       PGresult **out, weir_error *err) {
  weir_status status = pg_sql_done(sql, err);
  if (!status) status = pg_conn_run(c, call, what, sql->text, NULL, 0, out, err);
  pg_sql_free(sql);
  return status;
}

static weir_status read_cursor(const pg_config *config, const PGresult *rows, int row,
                               int first, weir_cursor *out, weir_error *err) {
  weir_cursor cursor = {.checkpoint = strtoull(text_of(rows, row, first), NULL, 10),
                        .token = strtoull(text_of(rows, row, first + 1), NULL, 10)};
  if (cursor.checkpoint && !weir_hex_decode(text_of(rows, row, first + 2), cursor.digest,
                                            sizeof(cursor.digest)))
    return weir_error_set(err, WEIR_E_CORRUPT, 0,
                          "%s." TABLE " has a cursor whose digest is not of 32 bytes",
                          config->schema);
  *out = cursor;
  return WEIR_OK;
}

#define CURSOR_COLUMNS "checkpoint, token, pg_catalog.encode(digest, 'hex')"

/* ---- the table ------------------------------------------------------------------------------------------------ */

weir_status pg_cursor_alone(pg_conn *c, const weir_call *call, weir_error *err) {
  /* "weir" */
  return pg_conn_run(c, call, "waiting for whoever prepares too",
                     "SELECT pg_catalog.pg_advisory_xact_lock(2003134834, 1)", NULL, 0,
                     NULL, err);
}

static void put_ddl(pg_sql *sql, const pg_config *config) {
  fputs("CREATE TABLE ", sql->file);
  put_table(sql, config);
  fputs(
      " (namespace text PRIMARY KEY, pipeline text NOT NULL, sink text NOT NULL, claim "
      "bigint NOT NULL, deployment uuid NOT NULL, target text NOT NULL, checkpoint "
      "bigint "
      "NOT NULL, token bigint NOT NULL, digest bytea NOT NULL, positions text, changed "
      "timestamptz NOT NULL DEFAULT now(), UNIQUE (pipeline, sink, claim)) WITH "
      "(fillfactor = 10)",
      sql->file);
}

weir_status pg_cursor_create(pg_conn *c, const weir_call *call, const pg_config *config,
                             weir_error *err) {
  pg_sql sql = {0};
  PG_TRY(pg_sql_start(&sql, err));
  put_ddl(&sql, config);
  return run(c, call, "making table " TABLE, &sql, NULL, err);
}

static weir_status refuse_missing(const pg_config *config, weir_error *err) {
  pg_sql sql = {0};
  PG_TRY(pg_sql_start(&sql, err));
  put_ddl(&sql, config);
  weir_status status = pg_sql_done(&sql, err);
  if (!status)
    status = weir_error_set(err, WEIR_E_NOT_FOUND, 0,
                            "there is no table %s." TABLE
                            ", where the cursor is kept; set "
                            "`create: true`, or run: %s",
                            config->schema, sql.text);
  pg_sql_free(&sql);
  return status;
}

weir_status pg_cursor_table(pg_conn *c, const weir_call *call, const pg_config *config,
                            weir_error *err) {
  PGresult *rows = NULL;
  PG_TRY(pg_conn_run(c, call, "looking for table " TABLE,
                     "SELECT c.relkind = 'r' AND c.relpersistence = 'p' FROM "
                     "pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = "
                     "c.relnamespace WHERE n.nspname = $1 AND c.relname = '" TABLE "'",
                     (const char *const[]){config->schema}, 1, &rows, err));
  bool there = PQntuples(rows), good = there && *pg_value(rows, 0, 0) == 't';
  PQclear(rows);
  if (!there) return refuse_missing(config, err);
  if (good) return WEIR_OK;
  return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                        "%s." TABLE
                        " is no table, or unlogged: a crash would lose the cursor",
                        config->schema);
}

/* ---- claims ----------------------------------------------------------------------------------------------------- */

/* The deployments that have claimed the target, oldest first, malloc'd, and the number of the last claim. */
static weir_status read_chain(pg_conn *c, const weir_call *call, const pg_config *config,
                              const weir_namespace *ns, uint8_t **out, size_t *n,
                              uint64_t *last, weir_error *err) {
  pg_sql sql = {0};
  PGresult *rows = NULL;
  PG_TRY(pg_sql_start(&sql, err));
  fputs("SELECT claim, deployment FROM ", sql.file);
  put_table(&sql, config);
  fputs(" WHERE ", sql.file);
  put_whose(&sql, ns);
  fputs(" ORDER BY claim", sql.file);
  PG_TRY(run(c, call, "reading the claims", &sql, &rows, err));
  weir_status status = WEIR_OK;
  int count = PQntuples(rows);
  uint8_t *v = malloc((size_t)count * WEIR_UUID_SIZE + 1);
  *last = 0;
  if (!v) status = no_memory(err);
  for (int i = 0; i < count && !status; i++) {
    *last = strtoull(text_of(rows, i, 0), NULL, 10);
    if (!weir_uuid_parse(text_of(rows, i, 1), v + i * WEIR_UUID_SIZE))
      status = weir_error_set(err, WEIR_E_CORRUPT, 0,
                              "%s." TABLE " has a claim without UUID", config->schema);
  }
  PQclear(rows);
  if (status) {
    free(v);
  } else {
    *out = v;
    *n = (size_t)count;
  }
  return status;
}

static weir_status insert(pg_conn *c, const weir_call *call, const pg_config *config,
                          const weir_namespace *ns, uint64_t claim, weir_error *err) {
  char deployment[2 * WEIR_UUID_SIZE + 1], key[WEIR_NAMESPACE_KEY_SIZE];
  pg_sql sql = {0};
  weir_namespace_key(ns, key);
  if (!*key) return no_memory(err);
  weir_hex_encode(ns->deployment, WEIR_UUID_SIZE, deployment);
  PG_TRY(pg_sql_start(&sql, err));
  fputs("INSERT INTO ", sql.file);
  put_table(&sql, config);
  fprintf(sql.file,
          " (namespace, pipeline, sink, claim, deployment, target, checkpoint, token, "
          "digest) VALUES ('%s', ",
          key);
  pg_sql_text(&sql, ns->pipeline);
  fputs(", ", sql.file);
  pg_sql_text(&sql, ns->sink_id);
  fprintf(sql.file, ", %" PRIu64 ", '%s', ", claim, deployment);
  pg_sql_text(&sql, config->table);
  fputs(", 0, 0, '')", sql.file);
  return run(c, call, "claiming the target", &sql, NULL, err);
}

weir_status pg_cursor_claim(pg_conn *c, const weir_call *call, const pg_config *config,
                            const weir_namespace *ns, bool append, weir_error *err) {
  uint8_t *deployments = NULL;
  size_t n = 0;
  uint64_t last = 0;
  int32_t wanted = 0;
  PG_TRY(read_chain(c, call, config, ns, &deployments, &n, &last, err));
  weir_status status = weir_claim_start(ns, deployments, n, &wanted, err);
  free(deployments);
  if (status || !wanted || !append) return status;
  return insert(c, call, config, ns, last + 1, err);
}

weir_status pg_cursor_check_claim(pg_conn *c, const weir_call *call,
                                  const pg_config *config, const weir_namespace *ns,
                                  weir_error *err) {
  uint8_t *deployments = NULL;
  size_t n = 0;
  uint64_t last = 0;
  PG_TRY(read_chain(c, call, config, ns, &deployments, &n, &last, err));
  weir_status status = weir_claim_check(ns, deployments, n, err);
  free(deployments);
  return status;
}

/* ---- reading ------------------------------------------------------------------------------------------------------ */

weir_status pg_cursor_read(pg_conn *c, const weir_call *call, const pg_config *config,
                           const weir_namespace *ns, bool lock, weir_cursor *out,
                           weir_error *err) {
  pg_sql sql = {0};
  PGresult *rows = NULL;
  weir_cursor cursor = {.checkpoint = 0};
  PG_TRY(pg_sql_start(&sql, err));
  fputs("SELECT " CURSOR_COLUMNS " FROM ", sql.file);
  put_table(&sql, config);
  fputs(" WHERE ", sql.file);
  weir_status status = put_own(&sql, ns, err);
  if (lock) fputs(" FOR UPDATE", sql.file);
  if (status) {
    pg_sql_free(&sql);
    return status;
  }
  PG_TRY(run(c, call, "reading the cursor", &sql, &rows, err));
  if (PQntuples(rows)) status = read_cursor(config, rows, 0, 0, &cursor, err);
  PQclear(rows);
  if (!status) *out = cursor;
  return status;
}

static void release_list(weir_cursor_list *list) {
  PQclear(list->private_data);
  free((void *)list->v);
  *list = (weir_cursor_list){.n = 0};
}

weir_status pg_cursor_find(pg_conn *c, const weir_call *call, const pg_config *config,
                           const weir_namespace *ns, weir_cursor_list *out,
                           weir_error *err) {
  pg_sql sql = {0};
  PGresult *rows = NULL;
  PG_TRY(pg_sql_start(&sql, err));
  fputs("SELECT deployment, " CURSOR_COLUMNS ", positions FROM ", sql.file);
  put_table(&sql, config);
  fputs(" WHERE checkpoint > 0 AND ", sql.file);
  put_whose(&sql, ns);
  fputs(" ORDER BY claim", sql.file);
  PG_TRY(run(c, call, "looking for cursors", &sql, &rows, err));
  int n = PQntuples(rows);
  weir_status status = WEIR_OK;
  weir_found_cursor *v = calloc((size_t)n + 1, sizeof(*v));
  if (!v) status = no_memory(err);
  for (int i = 0; i < n && !status; i++) {
    v[i].positions = pg_value(rows, i, 4);
    status = read_cursor(config, rows, i, 1, &v[i].cursor, err);
    if (!status && !weir_uuid_parse(text_of(rows, i, 0), v[i].deployment))
      status = weir_error_set(err, WEIR_E_CORRUPT, 0,
                              "%s." TABLE " has a row without UUID", config->schema);
  }
  if (status) {
    free(v);
    PQclear(rows);
  } else {
    *out = (weir_cursor_list){v, (size_t)n, release_list, rows};
  }
  return status;
}

/* ---- moving --------------------------------------------------------------------------------------------------------- */

/* The claim that is highest is the row's own. */
static void put_head(pg_sql *sql, const pg_config *config, const weir_namespace *ns) {
  fputs("claim = (SELECT pg_catalog.max(h.claim) FROM ", sql->file);
  put_table(sql, config);
  fputs(" h WHERE ", sql->file);
  put_whose(sql, ns);
  fputs(")", sql->file);
}

static weir_status conflict(const pg_config *config, const weir_cursor *found,
                            const weir_cursor *wanted, weir_error *err) {
  char a[DIGEST_TEXT], b[DIGEST_TEXT];
  weir_hex_encode(found->digest, WEIR_DIGEST_SIZE, a);
  weir_hex_encode(wanted->digest, WEIR_DIGEST_SIZE, b);
  return weir_error_set(err, WEIR_E_CONFLICT, 0,
                        "the cursor in %s." TABLE " is (%" PRIu64 ", token %" PRIu64
                        ", digest %.16s), expected (%" PRIu64 ", token %" PRIu64
                        ", digest %.16s)",
                        config->schema, found->checkpoint, found->token, a,
                        wanted->checkpoint, wanted->token, b);
}

weir_status pg_cursor_prepare(pg_conn *c, const weir_call *call, const pg_config *config,
                              const weir_namespace *ns, const pg_target *target,
                              const weir_cursor *predecessor, weir_error *err) {
  pg_sql sql = {0};
  PGresult *rows = NULL;
  weir_cursor found = {.checkpoint = 0};
  PG_TRY(pg_sql_start(&sql, err));
  fputs("UPDATE ", sql.file);
  put_table(&sql, config);
  fputs(" SET changed = pg_catalog.now() WHERE ", sql.file);
  weir_status status = put_own(&sql, ns, err);
  fputs(" RETURNING " CURSOR_COLUMNS ", ", sql.file);
  put_head(&sql, config, ns);
  fputs(", ", sql.file);
  pg_sql_fingerprint(&sql, target->oid);
  fputs("; SET CONSTRAINTS ALL IMMEDIATE", sql.file);
  if (status) {
    pg_sql_free(&sql);
    return status;
  }
  PG_TRY(run(c, call, "preparing to commit", &sql, &rows, err));
  const char *columns = NULL;
  bool there = PQntuples(rows), head = false;
  if (there) {
    status = read_cursor(config, rows, 0, 0, &found, err);
    head = *text_of(rows, 0, 3) == 't';
    columns = pg_value(rows, 0, 4);
  }
  bool same = columns && strcmp(columns, target->columns) == 0;
  PQclear(rows);
  if (status) return status;
  if (!there || !head) PG_TRY(pg_cursor_check_claim(c, call, config, ns, err));
  if (!there)
    return weir_error_set(err, WEIR_E_CONFLICT, 0,
                          "the row of this deployment in %s." TABLE
                          " cannot be updated: a trigger or a policy prevents it",
                          config->schema);
  if (!weir_cursor_equal(&found, predecessor))
    return conflict(config, &found, predecessor, err);
  if (same) return WEIR_OK;
  return weir_error_set(err, WEIR_E_SCHEMA, 0,
                        "the columns of %s.%s have changed since the run began; start it "
                        "again",
                        config->schema, config->table);
}

static void put_cursor(pg_sql *sql, const weir_cursor *cursor, const char *between) {
  fprintf(sql->file,
          "checkpoint = %" PRIu64 "%stoken = %" PRIu64 "%sdigest = ", cursor->checkpoint,
          between, cursor->token, between);
  put_bytes(sql, cursor->digest, cursor->checkpoint ? WEIR_DIGEST_SIZE : 0);
}

/* Division by zero keeps COMMIT from being run where no row was updated: with the rows committed and the cursor
 * where it was, they would be applied once more. */
static weir_status put_commit(pg_sql *sql, const pg_config *config,
                              const weir_namespace *ns, const weir_cursor *predecessor,
                              const weir_cursor *cursor, const char *positions,
                              weir_error *err) {
  fputs("WITH u AS (UPDATE ", sql->file);
  put_table(sql, config);
  fputs(" SET ", sql->file);
  put_cursor(sql, cursor, ", ");
  fputs(", positions = ", sql->file);
  if (positions) {
    pg_sql_text(sql, positions);
  } else {
    fputs("NULL", sql->file);
  }
  fputs(", changed = pg_catalog.now() WHERE ", sql->file);
  PG_TRY(put_own(sql, ns, err));
  fputs(" AND ", sql->file);
  put_cursor(sql, predecessor, " AND ");
  fputs(" AND ", sql->file);
  put_head(sql, config, ns);
  fputs(" RETURNING 1) SELECT 1 / (SELECT pg_catalog.count(*) FROM u); COMMIT",
        sql->file);
  return WEIR_OK;
}

/* No row was updated, so nothing was committed: because this deployment was replaced, or because the cursor is not
 * where it was. */
static weir_status refuse_commit(pg_conn *c, const weir_call *call,
                                 const pg_config *config, const weir_namespace *ns,
                                 weir_error *err) {
  weir_status status = pg_conn_run(c, call, "ROLLBACK", "ROLLBACK", NULL, 0, NULL, err);
  if (!status) status = pg_cursor_check_claim(c, call, config, ns, err);
  if (status) return status;
  return weir_error_set(err, WEIR_E_IO, 0,
                        "the cursor in %s." TABLE
                        " is no longer where it was; nothing was committed",
                        config->schema);
}

/* What a failed commit means. A session that was idle too long (25P03) was ended before COMMIT came; 57P0x comes
 * from a server that shuts down, maybe after the commit. */
static weir_status judge(const pg_conn *c, weir_status status, weir_error *err) {
  bool before = strcmp(err->sqlstate, "25P03") == 0;
  if (!before && (c->lost || strncmp(err->sqlstate, "57P", 3) == 0))
    err->flags = WEIR_ERR_IN_DOUBT;
  return status;
}

weir_status pg_cursor_commit(pg_conn *c, const weir_call *call, const pg_config *config,
                             const weir_namespace *ns, const weir_cursor *predecessor,
                             const weir_cursor *cursor, const char *positions,
                             weir_error *err) {
  weir_error local = {0}, *why = err ? err : &local;
  pg_sql sql = {0};
  PG_TRY(pg_sql_start(&sql, why));
  weir_status status = put_commit(&sql, config, ns, predecessor, cursor, positions, why);
  if (status) {
    pg_sql_free(&sql);
    return status;
  }
  c->warned = false;
  why->sqlstate[0] = 0;
  status = run(c, call, "committing", &sql, NULL, why);
  if (status && strcmp(why->sqlstate, "22012") == 0)
    return refuse_commit(c, call, config, ns, why);
  if (status) return judge(c, status, why);
  if (strcmp(c->tag, "COMMIT") != 0)
    return weir_error_set(why, WEIR_E_IO, WEIR_ERR_RETRIABLE,
                          "%s: the server rolled the transaction back", c->where);
  /* The one warning that COMMIT gives: it did not wait for the synchronous standby to the end. */
  if (!c->warned) return WEIR_OK;
  return weir_error_set(
      why, WEIR_E_IO, WEIR_ERR_IN_DOUBT,
      "%s: the server could not say whether its standby has this commit", c->where);
}
