/* SPDX-License-Identifier: Apache-2.0 */
/* The table, and weir's own beside it: weir_target (who this database is), weir_claim (whose it is), weir_cursor
 * (how far it is). */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "sqlite.h"

static const char weir_tables[] =
    "CREATE TABLE IF NOT EXISTS weir_target(id TEXT NOT NULL) STRICT; "
    "CREATE TABLE IF NOT EXISTS weir_claim(pipeline TEXT, sink TEXT, n INTEGER, "
    "deployment BLOB NOT NULL, PRIMARY KEY(pipeline, sink, n)) STRICT; "
    "CREATE TABLE IF NOT EXISTS weir_cursor(namespace TEXT PRIMARY KEY, pipeline TEXT, "
    "sink TEXT, deployment BLOB, checkpoint INTEGER, token INTEGER, digest BLOB, "
    "positions TEXT) STRICT;";

/* ---- columns ------------------------------------------------------------------------------------ */

int64_t lite_columns(const struct ArrowSchema *schema) {
  int64_t n = schema->n_children;
  return n && strcmp(schema->children[n - 1]->name, "_op") == 0 ? n - 1 : n;
}

int lite_is_key(const lite_config *config, const char *name) {
  for (size_t i = 0; i < config->n_key; i++)
    if (strcmp(config->key[i], name) == 0) return 1;
  return 0;
}

static weir_status check_input(const lite_config *config, const struct ArrowSchema *in,
                               weir_error *err) {
  int64_t n = config->upsert ? lite_columns(in) : in->n_children;
  size_t keys = 0;
  for (int64_t i = 0; i < n; i++) {
    char type[128];
    const char *name = in->children[i]->name;
    keys += (size_t)lite_is_key(config, name);
    weir_type_format(in->children[i], type, sizeof(type));
    if (!lite_type_of(in->children[i]))
      return weir_error_set(
          err, WEIR_E_SCHEMA, 0,
          "column '%s' is %s, which has no place in SQLite; leave it out "
          "or cast it at its source",
          name, type);
    if (!config->upsert && strcmp(name, "_op") == 0 && i == n - 1) continue;
    for (int64_t k = 0; k < i; k++) {
      if (sqlite3_stricmp(name, in->children[k]->name) == 0)
        return weir_error_set(
            err, WEIR_E_SCHEMA, 0,
            "columns '%s' and '%s' are one name to SQLite; rename one at "
            "its source",
            in->children[k]->name, name);
    }
  }
  if (keys == config->n_key) return WEIR_OK;
  return weir_error_set(err, WEIR_E_SCHEMA, 0,
                        "`key` names a column that does not come in; expected columns of "
                        "the source");
}

/* To free by sqlite3_free; NULL without memory. */
static char *ddl_of(const lite_config *config, const struct ArrowSchema *in) {
  sqlite3_str *sql = sqlite3_str_new(NULL);
  int64_t n = config->upsert ? lite_columns(in) : in->n_children;
  sqlite3_str_appendall(sql, "CREATE TABLE ");
  lite_quote(sql, config->table);
  for (int64_t i = 0; i < n; i++) {
    const struct ArrowSchema *c = in->children[i];
    int not_null = !(c->flags & ARROW_FLAG_NULLABLE) || lite_is_key(config, c->name);
    sqlite3_str_appendall(sql, i ? ", " : "(");
    lite_quote(sql, c->name);
    sqlite3_str_appendf(sql, " %s%s", lite_type_of(c)->sqlite,
                        not_null ? " NOT NULL" : "");
  }
  for (size_t i = 0; i < config->n_key; i++) {
    sqlite3_str_appendall(sql, i ? ", " : ", PRIMARY KEY(");
    lite_quote(sql, config->key[i]);
  }
  sqlite3_str_appendall(sql, config->n_key ? ")) STRICT" : ") STRICT");
  return sqlite3_str_finish(sql);
}

/* ---- a table that is there ------------------------------------------------------------------------ */

/* "Determination Of Column Affinity", sqlite.org/datatype3.html, section 3.1; in a STRICT table ANY keeps all
 * as it is. */
static int keeps(const char *declared, int strict, int storage) {
  char up[64] = "";
  for (size_t i = 0; declared[i] && i < sizeof(up) - 1; i++)
    up[i] =
        (char)(declared[i] >= 'a' && declared[i] <= 'z' ? declared[i] - 32 : declared[i]);
  if (strict && strcmp(up, "ANY") == 0) return 1;
  if (strstr(up, "INT")) return storage == LITE_INTEGER;
  if (strstr(up, "CHAR") || strstr(up, "CLOB") || strstr(up, "TEXT"))
    return storage == LITE_TEXT;
  if (!*up || strstr(up, "BLOB")) return storage == LITE_BLOB || !strict;
  if (strstr(up, "REAL") || strstr(up, "FLOA") || strstr(up, "DOUB"))
    return storage == LITE_REAL;
  return storage == LITE_INTEGER; /* NUMERIC turns 1.0 into 1, and texts into numbers */
}

static int64_t find_input(const struct ArrowSchema *in, int64_t n, const char *name) {
  int64_t i = 0;
  while (i < n && sqlite3_stricmp(in->children[i]->name, name) != 0) i++;
  return i;
}

/* One column of the table: 0 name, 1 type, 2 not null, 3 default or key, 4 hidden, 5 strict. */
static weir_status check_column(const lite_config *config, sqlite3_stmt *row,
                                const struct ArrowSchema *in, int64_t n, uint8_t *found,
                                weir_error *err) {
  const char *name = (const char *)sqlite3_column_text(row, 0);
  const char *declared = (const char *)sqlite3_column_text(row, 1);
  int64_t i = find_input(in, n, name ? name : "");
  if (!name || !declared) return weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
  if (i == n) {
    if (!sqlite3_column_int(row, 2) || sqlite3_column_int(row, 3) ||
        sqlite3_column_int(row, 4))
      return WEIR_OK;
    return weir_error_set(
        err, WEIR_E_SCHEMA, 0,
        "table '%s' has a column '%s' that is NOT NULL without a default "
        "and does not come in; give it a default",
        config->table, name);
  }
  found[i] = 1;
  char type[128];
  const lite_type *of = lite_type_of(in->children[i]);
  weir_type_format(in->children[i], type, sizeof(type));
  if (sqlite3_column_int(row, 4))
    return weir_error_set(err, WEIR_E_SCHEMA, 0,
                          "column '%s' of table '%s' is generated, so nothing can be "
                          "written to it; leave it out at the source",
                          name, config->table);
  if (keeps(declared, sqlite3_column_int(row, 5), of->storage)) return WEIR_OK;
  return weir_error_set(
      err, WEIR_E_SCHEMA, 0,
      "column '%s' of table '%s' is declared '%s', which does not keep %s "
      "as it comes; expected %s",
      name, config->table, declared, type, of->sqlite);
}

/* 1: there is a unique index on exactly the key. */
static weir_status has_key(const lite_config *config, lite_db *db, int *out,
                           weir_error *err) {
  static const char sql[] =
      "SELECT group_concat(name, char(10)) FROM (SELECT name FROM "
      "pragma_table_xinfo(?1) WHERE pk > 0) UNION ALL SELECT (SELECT group_concat(name, "
      "char(10)) FROM pragma_index_info(l.name)) FROM pragma_index_list(?1) l WHERE "
      "l.\"unique\" AND NOT l.partial";
  sqlite3_stmt *stmt = NULL;
  int row = 0;
  *out = 0;
  weir_status status = lite_prepare(db, sql, &stmt, err);
  if (!status) sqlite3_bind_text(stmt, 1, config->table, -1, SQLITE_STATIC);
  while (!status && !(status = lite_step(db, stmt, &row, err)) && row && !*out) {
    const char *names = (const char *)sqlite3_column_text(stmt, 0);
    size_t n = 0, same = 0;
    while (names && *names) {
      size_t length = strcspn(names, "\n");
      n++;
      for (size_t i = 0; i < config->n_key; i++)
        same += strlen(config->key[i]) == length &&
                sqlite3_strnicmp(config->key[i], names, (int)length) == 0;
      names += length + (names[length] == '\n');
    }
    *out = n == config->n_key && same == n;
  }
  sqlite3_finalize(stmt);
  return status;
}

static weir_status check_columns(const lite_config *config, lite_db *db,
                                 const struct ArrowSchema *in, int64_t n, uint8_t *found,
                                 int *there, weir_error *err) {
  static const char sql[] =
      "SELECT x.name, x.type, x.\"notnull\", x.dflt_value IS NOT NULL OR (x.pk > 0 AND "
      "upper(x.type) = 'INTEGER'), x.hidden, coalesce((SELECT strict FROM "
      "pragma_table_list WHERE schema = 'main' AND name = ?1 COLLATE NOCASE), 0) FROM "
      "pragma_table_xinfo(?1) x";
  sqlite3_stmt *stmt = NULL;
  int row = 0;
  weir_status status = lite_prepare(db, sql, &stmt, err);
  if (!status) sqlite3_bind_text(stmt, 1, config->table, -1, SQLITE_STATIC);
  while (!status && !(status = lite_step(db, stmt, &row, err)) && row) {
    *there = 1;
    status = check_column(config, stmt, in, n, found, err);
  }
  sqlite3_finalize(stmt);
  return status;
}

/* *there: the table exists; then it takes the input. */
static weir_status check_table(const lite_config *config, lite_db *db,
                               const struct ArrowSchema *in, int *there,
                               weir_error *err) {
  int64_t n = config->upsert ? lite_columns(in) : in->n_children;
  int key = 0;
  *there = 0;
  uint8_t *found = calloc((size_t)n + 1, 1);
  if (!found) return weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
  weir_status status = check_columns(config, db, in, n, found, there, err);
  for (int64_t i = 0; !status && *there && i < n; i++) {
    if (!found[i])
      status =
          weir_error_set(err, WEIR_E_SCHEMA, 0,
                         "table '%s' has no column '%s'; add it, or leave it out at the "
                         "source",
                         config->table, in->children[i]->name);
  }
  free(found);
  if (status || !*there || !config->upsert) return status;
  LITE_TRY(has_key(config, db, &key, err));
  if (key) return WEIR_OK;
  return weir_error_set(err, WEIR_E_SCHEMA, 0,
                        "table '%s' has no primary key or unique index on exactly the "
                        "columns of `key`; make one",
                        config->table);
}

static weir_status refuse_missing(const lite_config *config, const char *what,
                                  const char *sql, weir_error *err) {
  return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                        "SQLite file '%s' has no %s; say `create: true`, or run: %s",
                        config->path, what, sql);
}

static weir_status refuse_missing_table(const lite_config *config,
                                        const struct ArrowSchema *in, weir_error *err) {
  char *ddl = ddl_of(config, in);
  weir_status status = ddl ? refuse_missing(config, config->table, ddl, err)
                           : weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
  sqlite3_free(ddl);
  return status;
}

/* ---- claims and cursors ---------------------------------------------------------------------------- */

static weir_status read_claims(lite_db *db, const weir_namespace *ns, uint8_t **out,
                               size_t *n, weir_error *err) {
  sqlite3_stmt *stmt = NULL;
  int row = 0;
  weir_status status = lite_prepare(db,
                                    "SELECT deployment FROM weir_claim WHERE pipeline = "
                                    "?1 AND sink = ?2 ORDER BY n",
                                    &stmt, err);
  if (!status) {
    sqlite3_bind_text(stmt, 1, ns->pipeline, -1, SQLITE_STATIC);
    sqlite3_bind_text(stmt, 2, ns->sink_id, -1, SQLITE_STATIC);
  }
  while (!status && !(status = lite_step(db, stmt, &row, err)) && row) {
    uint8_t *grown = realloc(*out, (*n + 1) * WEIR_UUID_SIZE);
    if (grown) *out = grown;
    if (!grown) {
      status = weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
    } else if (sqlite3_column_bytes(stmt, 0) != WEIR_UUID_SIZE) {
      status = weir_error_set(err, WEIR_E_CORRUPT, 0,
                              "SQLite file '%s': a deployment in weir_claim is no UUID",
                              db->path);
    } else {
      memcpy(grown + (*n)++ * WEIR_UUID_SIZE, sqlite3_column_blob(stmt, 0),
             WEIR_UUID_SIZE);
    }
  }
  sqlite3_finalize(stmt);
  return status;
}

weir_status lite_check_claim(lite_db *db, const weir_namespace *ns, weir_error *err) {
  uint8_t *claims = NULL;
  size_t n = 0;
  weir_status status = read_claims(db, ns, &claims, &n, err);
  if (!status) status = weir_claim_check(ns, claims, n, err);
  free(claims);
  return status;
}

static weir_status add_claim(lite_db *db, const weir_namespace *ns, size_t n,
                             weir_error *err) {
  sqlite3_stmt *stmt = NULL;
  weir_status status =
      lite_prepare(db, "INSERT INTO weir_claim VALUES (?1, ?2, ?3, ?4)", &stmt, err);
  if (!status) {
    sqlite3_bind_text(stmt, 1, ns->pipeline, -1, SQLITE_STATIC);
    sqlite3_bind_text(stmt, 2, ns->sink_id, -1, SQLITE_STATIC);
    sqlite3_bind_int64(stmt, 3, (sqlite3_int64)n + 1);
    sqlite3_bind_blob(stmt, 4, ns->deployment, WEIR_UUID_SIZE, SQLITE_STATIC);
    status = lite_step(db, stmt, NULL, err);
  }
  sqlite3_finalize(stmt);
  return status;
}

/* `add`: the claim is made when it is due, else only asked for. */
static weir_status claim(lite_db *db, const weir_namespace *ns, int add,
                         weir_error *err) {
  uint8_t *claims = NULL;
  size_t n = 0;
  int32_t due = 0;
  weir_status status = read_claims(db, ns, &claims, &n, err);
  if (!status) status = weir_claim_start(ns, claims, n, &due, err);
  if (!status && due && add) status = add_claim(db, ns, n, err);
  free(claims);
  return status;
}

/* Columns from `at` on: checkpoint, token, digest. */
static weir_status cursor_of(lite_db *db, sqlite3_stmt *stmt, int at, weir_cursor *out,
                             weir_error *err) {
  if (sqlite3_column_int64(stmt, at) <= 0 ||
      sqlite3_column_bytes(stmt, at + 2) != WEIR_DIGEST_SIZE)
    return weir_error_set(err, WEIR_E_CORRUPT, 0,
                          "SQLite file '%s': a row of weir_cursor is no cursor",
                          db->path);
  out->checkpoint = (uint64_t)sqlite3_column_int64(stmt, at);
  out->token = (uint64_t)sqlite3_column_int64(stmt, at + 1);
  memcpy(out->digest, sqlite3_column_blob(stmt, at + 2), WEIR_DIGEST_SIZE);
  return WEIR_OK;
}

weir_status lite_read_cursor(lite_db *db, const weir_namespace *ns, weir_cursor *out,
                             weir_error *err) {
  char key[WEIR_NAMESPACE_KEY_SIZE];
  sqlite3_stmt *stmt = NULL;
  weir_cursor found = {0};
  int row = 0;
  weir_namespace_key(ns, key);
  weir_status status = lite_prepare(db,
                                    "SELECT checkpoint, token, digest FROM weir_cursor "
                                    "WHERE namespace = ?1",
                                    &stmt, err);
  if (!status) {
    sqlite3_bind_text(stmt, 1, key, -1, SQLITE_STATIC);
    status = lite_step(db, stmt, &row, err);
  }
  if (!status && row) status = cursor_of(db, stmt, 0, &found, err);
  sqlite3_finalize(stmt);
  if (!status) *out = found;
  return status;
}

weir_status lite_each_cursor(lite_db *db, const weir_namespace *ns, void *ctx,
                             weir_status (*found)(void *ctx,
                                                  const weir_found_cursor *cursor,
                                                  weir_error *err),
                             weir_error *err) {
  sqlite3_stmt *stmt = NULL;
  int row = 0;
  weir_status status = lite_prepare(db,
                                    "SELECT checkpoint, token, digest, deployment, "
                                    "positions FROM weir_cursor WHERE pipeline = ?1 AND "
                                    "sink = ?2",
                                    &stmt, err);
  if (!status) {
    sqlite3_bind_text(stmt, 1, ns->pipeline, -1, SQLITE_STATIC);
    sqlite3_bind_text(stmt, 2, ns->sink_id, -1, SQLITE_STATIC);
  }
  while (!status && !(status = lite_step(db, stmt, &row, err)) && row) {
    weir_found_cursor one = {0};
    status = cursor_of(db, stmt, 0, &one.cursor, err);
    if (sqlite3_column_bytes(stmt, 3) == WEIR_UUID_SIZE)
      memcpy(one.deployment, sqlite3_column_blob(stmt, 3), WEIR_UUID_SIZE);
    one.positions = (const char *)sqlite3_column_text(stmt, 4);
    if (!status) status = found(ctx, &one, err);
  }
  sqlite3_finalize(stmt);
  return status;
}

/* ---- the hooks ------------------------------------------------------------------------------------- */

static weir_status has_table(lite_db *db, const char *name, int *there, weir_error *err) {
  sqlite3_stmt *stmt = NULL;
  weir_status status =
      lite_prepare(db, "SELECT 1 FROM sqlite_schema WHERE name = ?1", &stmt, err);
  if (!status) {
    sqlite3_bind_text(stmt, 1, name, -1, SQLITE_STATIC);
    status = lite_step(db, stmt, there, err);
  }
  sqlite3_finalize(stmt);
  return status;
}

/* A file that is not there and will be made says nothing. */
static weir_status look(const lite_config *config, const weir_call *call,
                        const weir_namespace *ns, const struct ArrowSchema *in,
                        weir_error *err) {
  lite_db db;
  int there = 0, claims = 0;
  weir_status status = lite_open(config, LITE_READ, call, &db, err);
  if (status && config->create && sqlite3_extended_errcode(db.db) == SQLITE_CANTOPEN) {
    lite_close(&db);
    return WEIR_OK;
  }
  if (!status) status = check_table(config, &db, in, &there, err);
  if (!status && !there && !config->create)
    status = refuse_missing_table(config, in, err);
  if (!status) status = has_table(&db, "weir_claim", &claims, err);
  if (!status && !claims && !config->create)
    status = refuse_missing(config, "tables of weir's own", weir_tables, err);
  if (!status && claims) status = claim(&db, ns, 0, err);
  lite_close(&db);
  return status;
}

weir_status lite_resolve(const lite_config *config, const weir_call *call,
                         const weir_namespace *ns, weir_schema *input, weir_binding *out,
                         weir_error *err) {
  const struct ArrowSchema *in = weir_schema_arrow(input);
  weir_status status = check_input(config, in, err);
  if (!status) status = look(config, call, ns, in, err);
  if (status) return weir_error_prefix(err, status, "%s", config->where);
  LITE_TRY(weir_binding_logical(input, out, err));
  status = weir_binding_identify(out, "path", config->path, err);
  if (!status) status = weir_binding_identify(out, "table", config->table, err);
  if (status) weir_binding_done(out);
  return status;
}

/* Within one transaction: tables, then whose they are. */
static weir_status make(const lite_config *config, lite_db *db, const weir_namespace *ns,
                        const struct ArrowSchema *in, weir_error *err) {
  int there = 0;
  if (config->create) LITE_TRY(lite_exec(db, weir_tables, err));
  LITE_TRY(claim(db, ns, 1, err));
  LITE_TRY(check_table(config, db, in, &there, err));
  if (!there && !config->create) return refuse_missing_table(config, in, err);
  if (!there) {
    char *ddl = ddl_of(config, in);
    weir_status status = ddl ? lite_exec(db, ddl, err)
                             : weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
    sqlite3_free(ddl);
    LITE_TRY(status);
  }
  return lite_exec(db,
                   "INSERT INTO weir_target SELECT lower(hex(randomblob(16))) WHERE NOT "
                   "EXISTS (SELECT 1 FROM weir_target)",
                   err);
}

/* A new file is kept with a log, so that readers never wait for a commit, nor a commit for them; one that
 * was there stays as its owner wants it. */
static weir_status use_log(lite_db *db, weir_error *err) {
  sqlite3_stmt *stmt = NULL;
  int row = 0;
  weir_status status = lite_prepare(db, "PRAGMA page_count", &stmt, err);
  if (!status) status = lite_step(db, stmt, &row, err);
  int fresh = !status && row && sqlite3_column_int64(stmt, 0) == 0;
  sqlite3_finalize(stmt);
  return fresh ? lite_exec(db, "PRAGMA journal_mode=WAL", err) : status;
}

static weir_status identify(const lite_config *config, lite_db *db, weir_binding *binding,
                            weir_error *err) {
  sqlite3_stmt *stmt = NULL;
  int row = 0;
  weir_status status = lite_prepare(db, "SELECT id FROM weir_target", &stmt, err);
  if (!status) status = lite_step(db, stmt, &row, err);
  free(binding->identity); /* the path, by which resolve named it */
  binding->identity = NULL;
  const char *id = !status && row ? (const char *)sqlite3_column_text(stmt, 0) : NULL;
  if (!status)
    status = id ? weir_binding_identify(binding, "database", id, err)
                : weir_error_set(err, WEIR_E_CORRUPT, 0,
                                 "SQLite file '%s': weir_target is empty", db->path);
  if (!status) status = weir_binding_identify(binding, "table", config->table, err);
  sqlite3_finalize(stmt);
  return status;
}

weir_status lite_prepare_target(const lite_config *config, const weir_call *call,
                                const weir_namespace *ns, weir_binding *binding,
                                weir_error *err) {
  lite_db db = {.path = config->path};
  weir_status status = config->create ? lite_make_folder(config, err) : WEIR_OK;
  if (status) return weir_error_prefix(err, status, "%s", config->where);
  status = lite_open(config, config->create ? LITE_CREATE : LITE_WRITE, call, &db, err);
  if (!status && config->create) status = use_log(&db, err);
  if (!status) status = lite_exec(&db, "BEGIN IMMEDIATE", err);
  if (!status) status = make(config, &db, ns, weir_schema_arrow(binding->schema), err);
  if (!status) status = identify(config, &db, binding, err);
  if (!status) status = lite_exec(&db, "COMMIT", err);
  lite_close(&db);
  return status ? weir_error_prefix(err, status, "%s", config->where) : WEIR_OK;
}

/* ---- verify ------------------------------------------------------------------------------------------ */

static weir_status tell_cursor(void *ctx, const weir_found_cursor *cursor,
                               weir_error *err) {
  const weir_verify *ask = ctx;
  (void)err;
  if (ask->struct_size >= offsetof(weir_verify, cursor) + sizeof(ask->cursor) &&
      ask->cursor)
    ask->cursor(ask->ctx, cursor);
  return WEIR_OK;
}

static weir_status look_at_all(const lite_config *config, lite_db *db,
                               const weir_verify *ask, weir_verified *out,
                               weir_error *err) {
  const weir_namespace *ns = ask->ledger->ns;
  weir_error foreign = {0};
  int there = 0;
  LITE_TRY(lite_exec(db, "BEGIN", err)); /* one state of the file */
  LITE_TRY(has_table(db, "weir_cursor", &there, err));
  if (!there) return WEIR_OK;
  weir_status status = lite_check_claim(db, ns, &foreign);
  if (status == WEIR_E_CONFLICT) {
    weir_finding finding = {.struct_size = sizeof(finding),
                            .kind = WEIR_FOUND_FOREIGN,
                            .artifact = config->path,
                            .text = foreign.message};
    ask->found(ask->ctx, &finding);
  } else if (status) {
    if (err) *err = foreign;
    return status;
  }
  LITE_TRY(lite_read_cursor(db, ns, &out->cursor, err));
  LITE_TRY(lite_each_cursor(db, ns, (void *)(uintptr_t)ask, tell_cursor, err));
  out->checked = WEIR_CHECKED_CURSOR;
  return WEIR_OK;
}

weir_status lite_verify(const lite_config *config, const weir_call *call,
                        const weir_verify *ask, weir_verified *out, weir_error *err) {
  lite_db db;
  weir_status status = lite_open(config, LITE_READ, call, &db, err);
  if (!status) status = look_at_all(config, &db, ask, out, err);
  lite_close(&db);
  return status ? weir_error_prefix(err, status, "%s", config->where) : WEIR_OK;
}
