/* SPDX-License-Identifier: Apache-2.0 */
#include "upsert.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct pg_upsert {
  char *remove, *put; /* statements; $1 is the number to begin with */
  bool has_op;
  int64_t op;
  uint64_t rows, merged; /* since the session began: staged, brought over */
  bool removals;         /* among those that were not brought over */
};

static weir_status no_memory(weir_error *err) {
  return weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
}

/* Columns of the temporary table are c0, c1, .. for those of the batch, and n, which counts. */
static int64_t column_of(const struct ArrowSchema *schema, const char *name) {
  for (int64_t i = 0; i < schema->n_children; i++)
    if (strcmp(schema->children[i]->name, name) == 0) return i;
  return -1;
}

/* "c3, c0": of the key. */
static void put_key(pg_sql *sql, const pg_config *config,
                    const struct ArrowSchema *schema) {
  for (size_t i = 0; i < config->key.n; i++)
    fprintf(sql->file, "%sc%" PRId64, i ? ", " : "", column_of(schema, config->key.v[i]));
}

/* The last row of each key. */
static void put_last(pg_sql *sql, const pg_config *config,
                     const struct ArrowSchema *schema) {
  fputs("WITH s AS (SELECT DISTINCT ON (", sql->file);
  put_key(sql, config, schema);
  fputs(") * FROM " PG_STAGE " WHERE n >= $1::pg_catalog.int8 ORDER BY ", sql->file);
  put_key(sql, config, schema);
  fputs(", n DESC) ", sql->file);
}

static void put_remove(pg_sql *sql, const pg_config *config,
                       const struct ArrowSchema *schema) {
  put_last(sql, config, schema);
  fputs("DELETE FROM ", sql->file);
  pg_sql_table(sql, config, config->table);
  fprintf(sql->file, " t USING s WHERE s.c%" PRId64 " = 'D'", schema->n_children - 1);
  for (size_t i = 0; i < config->key.n; i++) {
    fputs(" AND t.", sql->file);
    pg_sql_name(sql, config->key.v[i]);
    fprintf(sql->file, " = s.c%" PRId64, column_of(schema, config->key.v[i]));
  }
}

static bool is_key(const pg_config *config, const char *name) {
  for (size_t i = 0; i < config->key.n; i++)
    if (strcmp(config->key.v[i], name) == 0) return true;
  return false;
}

static void put_put(pg_sql *sql, const pg_config *config,
                    const struct ArrowSchema *schema, int64_t n) {
  bool more = false;
  put_last(sql, config, schema);
  fputs("INSERT INTO ", sql->file);
  pg_sql_table(sql, config, config->table);
  for (int64_t i = 0; i < n; i++) {
    fputs(i ? ", " : " (", sql->file);
    pg_sql_name(sql, schema->children[i]->name);
  }
  fputs(") OVERRIDING SYSTEM VALUE SELECT ", sql->file);
  for (int64_t i = 0; i < n; i++) fprintf(sql->file, "%sc%" PRId64, i ? ", " : "", i);
  fputs(" FROM s", sql->file);
  if (n < schema->n_children) fprintf(sql->file, " WHERE c%" PRId64 " = 'U'", n);
  fputs(" ON CONFLICT (", sql->file);
  for (size_t i = 0; i < config->key.n; i++) {
    if (i) fputs(", ", sql->file);
    pg_sql_name(sql, config->key.v[i]);
  }
  fputs(") DO ", sql->file);
  for (int64_t i = 0; i < n; i++) {
    const char *name = schema->children[i]->name;
    if (is_key(config, name)) continue;
    fputs(more ? ", " : "UPDATE SET ", sql->file);
    pg_sql_name(sql, name);
    fputs(" = EXCLUDED.", sql->file);
    pg_sql_name(sql, name);
    more = true;
  }
  if (!more) fputs("NOTHING", sql->file);
}

static weir_status take_text(pg_sql *sql, char **out, weir_error *err) {
  weir_status status = pg_sql_done(sql, err);
  if (!status) {
    *out = sql->text;
    sql->text = NULL;
  }
  pg_sql_free(sql);
  return status;
}

/* Nullable, since deletes have their key alone; of the types that domains stand on, for the same reason. */
static weir_status make_stage(pg_conn *c, const weir_call *call, const pg_target *target,
                              const int *fields, int64_t n, weir_error *err) {
  pg_sql sql = {0};
  PG_TRY(pg_sql_start(&sql, err));
  fputs("CREATE TEMPORARY TABLE weir_rows (", sql.file);
  for (int64_t i = 0; i < n; i++)
    fprintf(sql.file, "c%" PRId64 " %s, ", i,
            fields[i] >= 0 ? target->fields[fields[i]].base : "text");
  fputs("n bigint) ON COMMIT DELETE ROWS", sql.file);
  weir_status status = pg_sql_done(&sql, err);
  if (!status)
    status = pg_conn_run(c, call, "making the temporary table for changes", sql.text,
                         NULL, 0, NULL, err);
  pg_sql_free(&sql);
  return status;
}

weir_status pg_upsert_new(pg_conn *c, const weir_call *call, const pg_config *config,
                          const pg_target *target, const int *fields, weir_schema *schema,
                          pg_upsert **out, weir_error *err) {
  const struct ArrowSchema *arrow = weir_schema_arrow(schema);
  pg_sql sql = {0};
  weir_status status = WEIR_OK;
  pg_upsert *u = calloc(1, sizeof(*u));
  if (!u) return no_memory(err);
  u->op = arrow->n_children - 1;
  u->has_op = pg_is_op(config, arrow, u->op);
  PG_GOTO(status, pg_sql_start(&sql, err));
  put_remove(&sql, config, arrow);
  PG_GOTO(status, take_text(&sql, &u->remove, err));
  PG_GOTO(status, pg_sql_start(&sql, err));
  put_put(&sql, config, arrow, u->has_op ? u->op : arrow->n_children);
  PG_GOTO(status, take_text(&sql, &u->put, err));
  status = make_stage(c, call, target, fields, arrow->n_children, err);
out:
  if (status) {
    pg_upsert_free(u);
  } else {
    *out = u;
  }
  return status;
}

void pg_upsert_free(pg_upsert *upsert) {
  if (!upsert) return;
  free(upsert->remove);
  free(upsert->put);
  free(upsert);
}

void pg_upsert_note(pg_upsert *upsert, weir_batch *batch) {
  int64_t rows = weir_batch_rows(batch);
  upsert->rows += (uint64_t)rows;
  if (!upsert->has_op) return;
  const struct ArrowArray *op = weir_batch_array(batch)->children[upsert->op];
  const int32_t *offsets = (const int32_t *)op->buffers[1] + op->offset;
  const char *text = op->buffers[2];
  for (int64_t i = 0; i < rows && !upsert->removals; i++)
    upsert->removals = text[offsets[i]] == 'D';
}

static weir_status run_from(pg_upsert *u, pg_conn *c, const weir_call *call,
                            const char *what, const char *sql, weir_error *err) {
  char number[24];
  snprintf(number, sizeof(number), "%" PRIu64, u->merged);
  return pg_conn_run(c, call, what, sql, (const char *const[]){number}, 1, NULL, err);
}

weir_status pg_upsert_merge(pg_upsert *upsert, pg_conn *c, const weir_call *call,
                            weir_error *err) {
  if (upsert->rows == upsert->merged) return WEIR_OK;
  if (upsert->removals)
    PG_TRY(run_from(upsert, c, call, "deleting rows by key", upsert->remove, err));
  PG_TRY(run_from(upsert, c, call, "putting rows by key", upsert->put, err));
  upsert->merged = upsert->rows;
  upsert->removals = false;
  return WEIR_OK;
}

weir_status pg_upsert_check_key(pg_conn *c, const weir_call *call,
                                const pg_config *config, const pg_target *target,
                                weir_error *err) {
  pg_sql sql = {0};
  PGresult *rows = NULL;
  PG_TRY(pg_sql_start(&sql, err));
  fprintf(
      sql.file,
      "SELECT 1 FROM pg_catalog.pg_index i WHERE i.indrelid = %s AND i.indisunique AND "
      "i.indisvalid AND i.indimmediate AND i.indpred IS NULL AND i.indexprs IS NULL AND "
      "(SELECT pg_catalog.array_agg(a.attname::pg_catalog.text ORDER BY "
      "a.attname::pg_catalog.text) FROM pg_catalog.generate_series(0, i.indnkeyatts - 1) "
      "k JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = "
      "i.indkey[k]) = (SELECT pg_catalog.array_agg(x ORDER BY x) FROM "
      "pg_catalog.unnest(ARRAY[",
      target->oid);
  for (size_t i = 0; i < config->key.n; i++) {
    if (i) fputs(", ", sql.file);
    pg_sql_text(&sql, config->key.v[i]);
  }
  fputs("]::pg_catalog.text[]) x)", sql.file);
  weir_status status = pg_sql_done(&sql, err);
  if (!status)
    status = pg_conn_run(c, call, "looking for the key", sql.text, NULL, 0, &rows, err);
  pg_sql_free(&sql);
  if (status) return status;
  bool found = PQntuples(rows) > 0;
  PQclear(rows);
  if (found) return WEIR_OK;
  return weir_error_set(
      err, WEIR_E_SCHEMA, 0,
      "%s.%s has no unique index on exactly the columns of `key`, immediate "
      "and without a condition; make one, so that rows can be found by it",
      config->schema, config->table);
}
