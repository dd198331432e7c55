/* SPDX-License-Identifier: Apache-2.0 */
/* A small exactly-once sink: rows become JSON lines in a table of a SQLite file. What a writer
 * prepares are the rows themselves, so the descriptor carries them (16 MiB an epoch at most), nothing is
 * staged and nothing is left to clean. The committer moves rows and cursor in one transaction. */
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <weir/ndjson.h>
#include <weir/plugin.h>

typedef struct lines {
  weir_ndjson_encoder *encoder;
  weir_schema *schema;
  const weir_namespace *ns;
  sqlite3 *db;
  char *rows; /* of the open epoch: "[{..},{..}," */
  size_t size;
} lines;

static weir_status failed(lines *s, uint32_t flags, weir_error *err) {
  return weir_error_set(err, WEIR_E_IO, flags, "SQLite: %s", sqlite3_errmsg(s->db));
}

static const weir_option options[] = {{.name = "path",
                                       .type = WEIR_OPT_PATH,
                                       .flags = WEIR_OPT_REQUIRED,
                                       .text = "The SQLite file."},
                                      {0}};

/* One statement; ?1 is the namespace's key, ?2 bytes. A cursor that it finds becomes *out. */
static int run(lines *s, const char *sql, const weir_namespace *ns, const void *data,
               size_t size, weir_cursor *out) {
  char key[WEIR_NAMESPACE_KEY_SIZE];
  sqlite3_stmt *q = NULL;
  weir_namespace_key(ns, key);
  if (!sqlite3_prepare_v2(s->db, sql, -1, &q, NULL)) {
    sqlite3_bind_text(q, 1, key, -1, SQLITE_TRANSIENT);
    if (data) sqlite3_bind_blob64(q, 2, data, size, SQLITE_STATIC);
    if (sqlite3_step(q) == SQLITE_ROW && sqlite3_column_bytes(q, 0) == sizeof(*out))
      memcpy(out, sqlite3_column_blob(q, 0), sizeof(*out));
  }
  sqlite3_finalize(q);
  return sqlite3_errcode(s->db);
}

/* The deployments that have claimed this file for the pipeline's sink, oldest first, in one array. */
static int read_claims(lines *s, uint8_t **out, size_t *n) {
  sqlite3_stmt *q = NULL;
  const char *sql =
      "SELECT deployment FROM weir_claim WHERE pipeline = ?1 AND sink = ?2 ORDER BY n";
  *n = 0;
  if (!sqlite3_prepare_v2(s->db, sql, -1, &q, NULL)) {
    sqlite3_bind_text(q, 1, s->ns->pipeline, -1, SQLITE_STATIC);
    sqlite3_bind_text(q, 2, s->ns->sink_id, -1, SQLITE_STATIC);
    while (sqlite3_step(q) == SQLITE_ROW &&
           sqlite3_column_bytes(q, 0) == WEIR_UUID_SIZE) {
      uint8_t *grown = realloc(*out, (*n + 1) * WEIR_UUID_SIZE);
      if (!grown) break;
      *out = grown;
      memcpy(grown + (*n)++ * WEIR_UUID_SIZE, sqlite3_column_blob(q, 0), WEIR_UUID_SIZE);
    }
  }
  sqlite3_finalize(q);
  return sqlite3_errcode(s->db);
}

/* The next link of the chain. */
static int add_claim(lines *s, size_t n) {
  sqlite3_stmt *q = NULL;
  if (!sqlite3_prepare_v2(s->db, "INSERT INTO weir_claim VALUES (?1, ?2, ?3, ?4)", -1, &q,
                          NULL)) {
    sqlite3_bind_text(q, 1, s->ns->pipeline, -1, SQLITE_STATIC);
    sqlite3_bind_text(q, 2, s->ns->sink_id, -1, SQLITE_STATIC);
    sqlite3_bind_int64(q, 3, (sqlite3_int64)n + 1);
    sqlite3_bind_blob(q, 4, s->ns->deployment, WEIR_UUID_SIZE, SQLITE_STATIC);
    sqlite3_step(q);
  }
  sqlite3_finalize(q);
  return sqlite3_errcode(s->db);
}

static weir_status check_owner(lines *s, weir_error *err) {
  uint8_t *claims = NULL;
  size_t n = 0;
  weir_status status = read_claims(s, &claims, &n)
                           ? failed(s, WEIR_ERR_RETRIABLE, err)
                           : weir_claim_check(s->ns, claims, n, err);
  free(claims);
  return status;
}

static weir_status observe_cursor(void *state, const weir_call *call,
                                  const weir_namespace *ns, weir_cursor *out,
                                  weir_error *err) {
  weir_cursor found = {0};
  (void)call;
  if (run(state, "SELECT at FROM weir_cursor WHERE key = ?1", ns, NULL, 0, &found))
    return failed(state, WEIR_ERR_RETRIABLE, err);
  *out = found;
  return WEIR_OK;
}

static weir_status commit_aggregated(void *state, const weir_call *call,
                                     const weir_commit_batch *batch, weir_cursor *out,
                                     weir_error *err) {
  lines *s = state;
  size_t first = 0;
  weir_cursor at = {0}, last = batch->attempts[batch->n_attempts - 1].cursor;
  if (sqlite3_exec(s->db, "BEGIN IMMEDIATE", NULL, NULL, NULL))
    return failed(s, WEIR_ERR_RETRIABLE, err);
  weir_status status = check_owner(s, err);
  if (!status) status = observe_cursor(s, call, batch->ns, &at, err);
  if (!status) status = weir_commit_batch_start(batch, &at, &first, err);
  for (size_t i = first; !status && i < batch->n_attempts; i++) {
    const weir_commit_attempt *attempt = &batch->attempts[i];
    for (size_t k = 0; !status && k < attempt->n_entries; k++) {
      const weir_commit_entry *e = &attempt->entries[k];
      if (e->present &&
          run(s, "INSERT INTO line SELECT value FROM json_each(CAST(?2 AS TEXT))",
              batch->ns, e->descriptor, e->size, NULL))
        status = failed(s, 0, err);
    }
  }
  if (!status && run(s, "REPLACE INTO weir_cursor VALUES (?1, ?2)", batch->ns, &last,
                     sizeof(last), NULL))
    status = failed(s, WEIR_ERR_RETRIABLE, err);
  if (!status && sqlite3_exec(s->db, "COMMIT", NULL, NULL, NULL))
    status = failed(s, WEIR_ERR_IN_DOUBT, err);
  if (!sqlite3_get_autocommit(s->db)) sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
  if (!status) *out = last;
  return status;
}

static const weir_committer_ops committer_ops = {.abi_version = WEIR_ABI_VERSION,
                                                 .struct_size = sizeof(committer_ops),
                                                 .observe_cursor = observe_cursor,
                                                 .commit_aggregated = commit_aggregated};

static weir_status create(const weir_host *host, weir_sink *out, weir_error *err) {
  (void)host;
  out->state = calloc(1, sizeof(lines));
  return out->state ? WEIR_OK : weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
}

static void release(weir_sink *sink) {
  lines *s = sink->state;
  weir_ndjson_encoder_free(s->encoder);
  weir_schema_unref(s->schema);
  sqlite3_close(s->db);
  free(s->rows);
  free(s);
  sink->ops = NULL;
}

static weir_status contract(weir_sink *sink, const weir_options *given,
                            weir_contract *out, weir_error *err) {
  (void)sink, (void)given, (void)err;
  out->consistency = WEIR_COMMITTABLE;
  out->topology = WEIR_MULTI_WRITER;
  out->claims = 1;
  out->staging = WEIR_STAGING_SHARED; /* descriptors lie in the checkpoint store */
  return WEIR_OK;
}

static weir_status bind_context(weir_sink *sink, const weir_namespace *ns,
                                uint64_t participant_id, weir_error *err) {
  (void)participant_id, (void)err;
  ((lines *)sink->state)->ns = ns;
  return WEIR_OK;
}

static weir_status open_database(lines *s, const weir_options *given, weir_error *err) {
  if (s->db) return WEIR_OK;
  if (sqlite3_open(weir_options_string(given, "path"), &s->db)) return failed(s, 0, err);
  sqlite3_busy_timeout(s->db, 1000);
  return WEIR_OK;
}

/* The binding names this very file, so that one put in its place is not taken for it. */
static weir_status identify(lines *s, weir_binding *binding, weir_error *err) {
  sqlite3_stmt *q = NULL;
  weir_status status =
      sqlite3_prepare_v2(s->db, "SELECT id FROM weir_target", -1, &q, NULL) ||
              sqlite3_step(q) != SQLITE_ROW
          ? failed(s, WEIR_ERR_RETRIABLE, err)
          : weir_binding_identify(binding, "database",
                                  (const char *)sqlite3_column_text(q, 0), err);
  sqlite3_finalize(q);
  return status;
}

/* Tables, and the claim: whose file this is, settled before anything is written. */
static weir_status prepare_schema(weir_sink *sink, const weir_call *call,
                                  const weir_options *given, weir_binding *binding,
                                  weir_error *err) {
  lines *s = sink->state;
  uint8_t *claims = NULL;
  size_t n = 0;
  int32_t append = 0;
  (void)call;
  weir_status status = open_database(s, given, err);
  if (status) return status;
  if (sqlite3_exec(
          s->db,
          "BEGIN IMMEDIATE;"
          "CREATE TABLE IF NOT EXISTS weir_target(id TEXT);"
          "INSERT INTO weir_target SELECT hex(randomblob(16))"
          " WHERE NOT EXISTS (SELECT 1 FROM weir_target);"
          "CREATE TABLE IF NOT EXISTS line(row TEXT);"
          "CREATE TABLE IF NOT EXISTS weir_cursor(key TEXT PRIMARY KEY, at BLOB);"
          "CREATE TABLE IF NOT EXISTS weir_claim(pipeline TEXT, sink TEXT, n INTEGER,"
          " deployment BLOB, PRIMARY KEY(pipeline, sink, n));",
          NULL, NULL, NULL) ||
      read_claims(s, &claims, &n))
    status = failed(s, WEIR_ERR_RETRIABLE, err);
  if (!status) status = weir_claim_start(s->ns, claims, n, &append, err);
  if (!status && append && add_claim(s, n)) status = failed(s, 0, err);
  if (!status) status = identify(s, binding, err);
  if (!status && sqlite3_exec(s->db, "COMMIT", NULL, NULL, NULL))
    status = failed(s, 0, err);
  if (!sqlite3_get_autocommit(s->db)) sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
  free(claims);
  return status;
}

static weir_status open_sink(weir_sink *sink, const weir_call *call,
                             const weir_options *given, const weir_binding *binding,
                             weir_error *err) {
  lines *s = sink->state;
  (void)call;
  weir_status status = open_database(s, given, err);
  if (status) return status;
  s->schema = weir_schema_ref(binding->schema);
  return weir_ndjson_encoder_new(s->schema, &s->encoder, err);
}

static weir_status write_batch(weir_sink *sink, const weir_call *call, weir_batch *batch,
                               weir_write_result *out, weir_error *err) {
  lines *s = sink->state;
  const uint8_t *text = NULL;
  size_t size = 0;
  (void)call;
  weir_status status = weir_ndjson_encoder_write(s->encoder, batch, &text, &size, err);
  if (status) return status;
  if (s->size + size > WEIR_MAX_DESCRIPTOR - 1)
    return weir_error_set(err, WEIR_E_IO, 0,
                          "an epoch of more than 16 MiB; lower checkpoint.interval");
  char *rows = realloc(s->rows, s->size + size + 1);
  if (!rows) return weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
  s->rows = rows;
  rows[0] = '[';
  if (!s->size) s->size = 1;
  for (size_t i = 0; i < size; i++)
    rows[s->size++] = text[i] == '\n' ? ',' : (char)text[i];
  *out = (weir_write_result){.records = (uint64_t)weir_batch_rows(batch), .bytes = size};
  return WEIR_OK;
}

static weir_status schema(weir_sink *sink, struct ArrowSchema *out, weir_error *err) {
  return weir_schema_export(((lines *)sink->state)->schema, out, err);
}

static weir_status begin_epoch(weir_sink *sink, const weir_call *call, uint64_t epoch,
                               weir_error *err) {
  (void)call, (void)epoch, (void)err;
  ((lines *)sink->state)->size = 0;
  return WEIR_OK;
}

static weir_status pre_commit(weir_sink *sink, const weir_call *call, uint64_t epoch,
                              weir_bytes *out, weir_error *err) {
  lines *s = sink->state;
  (void)call, (void)epoch;
  if (!s->size) return WEIR_OK; /* absent: no rows */
  s->rows[s->size - 1] = ']';
  return weir_bytes_copy(out, s->rows, s->size, err);
}

static uint64_t write_timeout_ms(weir_sink *sink) {
  (void)sink;
  return 10000;
}

static weir_status close_sink(weir_sink *sink, const weir_call *call, weir_error *err) {
  (void)sink, (void)call, (void)err;
  return WEIR_OK; /* what is not prepared may be dropped */
}

static weir_committer as_committer(weir_sink *sink) {
  return (weir_committer){.ops = &committer_ops, .state = sink->state};
}

static const weir_sink_ops ops = {
    .abi_version = WEIR_ABI_VERSION,
    .struct_size = sizeof(ops),
    .name = "sqlite-lines",
    .text = "Rows as JSON lines in a table of a SQLite file.",
    .options = options,
    .create = create,
    .release = release,
    .contract = contract,
    .bind_runtime_context = bind_context,
    .prepare_schema = prepare_schema,
    .open = open_sink,
    .write_batch = write_batch,
    .schema = schema,
    .begin_epoch = begin_epoch,
    .pre_commit = pre_commit,
    .rollback_epoch = begin_epoch, /* both forget the rows */
    .suggested_write_timeout_ms = write_timeout_ms,
    .close = close_sink,
    .as_coordinated_committer = as_committer};

weir_status weir_plugin_init(uint32_t host_abi, const weir_host *host, weir_plugin *out,
                             weir_error *err) {
  static const weir_sink_ops *const sinks[] = {&ops};
  (void)host;
  if (host_abi < 1) return weir_error_set(err, WEIR_E_NOT_IMPLEMENTED, 0, "needs ABI 1");
  out->sinks = sinks;
  out->n_sinks = 1;
  return WEIR_OK;
}
