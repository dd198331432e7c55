/* SPDX-License-Identifier: Apache-2.0 */
/* Nothing that a driver says of itself is believed: on a table of weir's own, shaped as the target is, rows and the
 * cursor's row are written in one transaction, rolled back and looked for, committed and looked for by another
 * connection, and the values compared with what was sent. */
#include <stdlib.h>
#include <string.h>

#include "adbc.h"

typedef struct proof {
  adbc_conn *c;
  const weir_namespace *ns;
  char table[48];
  weir_schema *schema;
  weir_batch *samples;
} proof;

static weir_status refuse(const proof *p, const char *what, weir_error *err) {
  return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                        "driver '%s' %s, so nothing can be delivered exactly once by it",
                        p->c->config->driver, what);
}

/* ---- the scratch table ------------------------------------------------------------------------------------ */

static void name_table(proof *p) {
  char key[WEIR_NAMESPACE_KEY_SIZE];
  weir_namespace_key(p->ns, key);
  snprintf(p->table, sizeof(p->table), "weir_scratch_%.16s", key + strlen("weir-"));
}

/* One name a namespace: what a kill leaves behind goes with the next start. */
static weir_status drop(const proof *p, weir_error *err) {
  adbc_sql sql;
  ADBC_TRY(adbc_sql_start(&sql, err));
  fputs("DROP TABLE IF EXISTS ", sql.file);
  adbc_sql_table(&sql, p->c->config, p->table);
  return adbc_run(p->c, "drop the scratch table", &sql, NULL, err);
}

/* With all columns of the table, or one: `column` NULL is all. */
static weir_status make(const proof *p, const char *column, weir_error *err) {
  adbc_sql sql;
  ADBC_TRY(drop(p, err));
  ADBC_TRY(adbc_sql_start(&sql, err));
  fputs("CREATE TABLE ", sql.file);
  adbc_sql_table(&sql, p->c->config, p->table);
  fputs(" AS SELECT ", sql.file);
  if (column) adbc_sql_name(&sql, column);
  if (!column) fputc('*', sql.file);
  fputs(" FROM ", sql.file);
  adbc_sql_table(&sql, p->c->config, p->c->config->table);
  fputs(" WHERE 1 = 0", sql.file);
  return adbc_run(p->c, "make a scratch table", &sql, NULL, err);
}

static weir_status put(const proof *p, weir_schema *schema, weir_batch *rows,
                       weir_error *err) {
  return adbc_ingest(p->c, p->table, ADBC_APPEND, schema, rows, err);
}

/* All its rows, with the columns of `schema`. */
static weir_status get(const proof *p, adbc_conn *c, const struct ArrowSchema *schema,
                       adbc_rows *out, weir_error *err) {
  adbc_sql sql;
  ADBC_TRY(adbc_sql_start(&sql, err));
  fputs("SELECT ", sql.file);
  for (int64_t i = 0; i < schema->n_children; i++) {
    if (i) fputs(", ", sql.file);
    adbc_sql_name(&sql, schema->children[i]->name);
  }
  fputs(" FROM ", sql.file);
  adbc_sql_table(&sql, p->c->config, p->table);
  return adbc_run(c, "read the scratch table", &sql, out, err);
}

/* ---- transactions ------------------------------------------------------------------------------------------- */

static weir_status write_both(const proof *p, const char *nonce, int commit,
                              weir_error *err) {
  ADBC_TRY(adbc_begin(p->c, err));
  ADBC_TRY(put(p, p->schema, p->samples, err));
  ADBC_TRY(adbc_cursor_fence(p->c, p->ns, nonce, err));
  return commit ? adbc_commit(p->c, err) : adbc_rollback(p->c, err);
}

/* What another connection sees of it. */
static weir_status look(const proof *p, const char *nonce, size_t *rows, int *cursor,
                        adbc_rows *out, weir_error *err) {
  adbc_conn other;
  weir_status status = adbc_open_beside(p->c, &other, err);
  if (!status) status = get(p, &other, weir_schema_arrow(p->schema), out, err);
  if (!status) status = adbc_cursor_has(&other, p->ns, nonce, cursor, err);
  adbc_close(&other);
  *rows = out->n;
  return status;
}

static weir_status prove_rollback(const proof *p, weir_error *err) {
  char nonce[ADBC_NONCE];
  adbc_rows found = {.n = 0};
  size_t rows = 0;
  int cursor = 0;
  ADBC_TRY(adbc_nonce(nonce, err));
  ADBC_TRY(write_both(p, nonce, 0, err));
  weir_status status = look(p, nonce, &rows, &cursor, &found, err);
  adbc_rows_done(&found);
  if (status || (!rows && !cursor)) return status;
  return refuse(p,
                rows && cursor
                    ? "has kept rows and the cursor's row that were rolled back"
                : rows ? "has kept rows that were rolled back"
                       : "has kept the cursor's row that was rolled back",
                err);
}

static weir_status prove_commit(const proof *p, adbc_rows *out, weir_error *err) {
  char nonce[ADBC_NONCE];
  size_t rows = 0;
  int cursor = 0;
  ADBC_TRY(adbc_nonce(nonce, err));
  ADBC_TRY(write_both(p, nonce, 1, err));
  ADBC_TRY(look(p, nonce, &rows, &cursor, out, err));
  if (rows == (size_t)weir_batch_rows(p->samples) && cursor) return WEIR_OK;
  return refuse(p,
                !cursor ? "has lost the cursor's row that was committed"
                        : "has lost or doubled rows that were committed",
                err);
}

/* ---- values ------------------------------------------------------------------------------------------------- */

/* Rows come back in any order: each value that was sent takes one that came back. */
static int column_same(const struct ArrowSchema *field, const adbc_rows *sent,
                       const adbc_rows *got, size_t column, yyjson_val **missing) {
  uint8_t used[64] = {0};
  for (size_t i = 0; i < sent->n; i++) {
    yyjson_val *value = adbc_value(sent, i, column);
    size_t k = 0;
    while (k < got->n && k < sizeof(used) &&
           (used[k] || !adbc_same(field, value, adbc_value(got, k, column))))
      k++;
    if (k >= got->n || k >= sizeof(used)) {
      *missing = value;
      return 0;
    }
    used[k] = 1;
  }
  return sent->n == got->n;
}

static weir_status refuse_column(const proof *p, const struct ArrowSchema *field,
                                 yyjson_val *missing, weir_error *err) {
  char type[128];
  char *value = missing ? yyjson_val_write(missing, 0, NULL) : NULL;
  weir_type_format(field, type, sizeof(type));
  weir_error_set(err, WEIR_E_SCHEMA, 0,
                 "column '%s' is %s, which does not come back as it was written to table "
                 "'%s' through driver '%s': %s became another value; cast it at its "
                 "source, or change the table",
                 field->name, type, p->c->config->table, p->c->config->driver,
                 value ? value : "a value");
  free(value);
  return WEIR_E_SCHEMA;
}

static weir_status compare(const proof *p, const adbc_rows *got, weir_error *err) {
  const struct ArrowSchema *schema = weir_schema_arrow(p->schema);
  adbc_rows sent = {.n = 0};
  weir_status status = adbc_rows_of(p->samples, &sent, err);
  for (int64_t i = 0; !status && i < schema->n_children; i++) {
    yyjson_val *missing = NULL;
    if (!column_same(schema->children[i], &sent, got, (size_t)i, &missing))
      status = refuse_column(p, schema->children[i], missing, err);
  }
  adbc_rows_done(&sent);
  return status;
}

static weir_status refuse_type(const proof *p, const struct ArrowSchema *field,
                               const char *why, weir_error *err) {
  char type[128];
  weir_type_format(field, type, sizeof(type));
  return weir_error_set(
      err, WEIR_E_SCHEMA, 0,
      "column '%s' is %s, which table '%s' does not take: %s; cast it at "
      "its source, or change the table",
      field->name, type, p->c->config->table, why);
}

/* The column that cannot be written or read at all; none: *err stays. */
static weir_status blame(const proof *p, weir_status status, weir_error *err) {
  const struct ArrowSchema *schema = weir_schema_arrow(p->schema);
  if (err && err->flags & WEIR_ERR_RETRIABLE) return status;
  for (int64_t i = 0; i < schema->n_children; i++) {
    weir_error why = {0};
    weir_schema *alone = NULL;
    weir_batch *rows = NULL;
    adbc_rows got = {.n = 0};
    weir_status one = make(p, schema->children[i]->name, &why);
    if (!one) one = weir_schema_select(p->schema, &i, 1, &alone, &why);
    if (!one) one = weir_batch_select(p->samples, alone, &i, &rows, &why);
    if (!one) one = put(p, alone, rows, &why);
    if (!one) one = get(p, p->c, weir_schema_arrow(alone), &got, &why);
    adbc_rows_done(&got);
    weir_batch_unref(rows);
    weir_schema_unref(alone);
    if (!one) continue;
    return refuse_type(p, schema->children[i], why.message, err);
  }
  return status;
}

static weir_status prove_nan(const proof *p, int *nan, weir_error *err) {
  weir_batch *rows = NULL;
  adbc_rows sent = {.n = 0}, got = {.n = 0};
  const struct ArrowSchema *schema = weir_schema_arrow(p->schema);
  *nan = 0;
  ADBC_TRY(make(p, NULL, err));
  weir_status status = adbc_samples(p->schema, 1, &rows, err);
  if (!status) status = adbc_rows_of(rows, &sent, err);
  if (!status && !put(p, p->schema, rows, NULL) && !get(p, p->c, schema, &got, NULL)) {
    yyjson_val *missing = NULL;
    *nan = 1;
    for (int64_t i = 0; i < schema->n_children; i++)
      *nan &= column_same(schema->children[i], &sent, &got, (size_t)i, &missing);
  }
  adbc_rows_done(&sent);
  adbc_rows_done(&got);
  weir_batch_unref(rows);
  return status;
}

static weir_status prove_all(proof *p, int *nan, weir_error *err) {
  adbc_rows got = {.n = 0};
  ADBC_TRY(adbc_samples(p->schema, 0, &p->samples, err));
  ADBC_TRY(make(p, NULL, err));
  weir_status status = prove_rollback(p, err);
  if (!status) status = prove_commit(p, &got, err);
  if (status && p->c->open && adbc_rollback(p->c, NULL)) {
    adbc_rows_done(&got);
    return status; /* this connection is of no more use */
  }
  if (status && status != WEIR_E_INVALID_CONFIG) status = blame(p, status, err);
  if (!status) status = compare(p, &got, err);
  adbc_rows_done(&got);
  if (!status) status = prove_nan(p, nan, err);
  weir_status dropped = drop(p, status ? NULL : err);
  return status ? status : dropped;
}

weir_status adbc_blame_create(adbc_conn *c, const weir_namespace *ns, weir_schema *schema,
                              weir_status status, weir_error *err) {
  const struct ArrowSchema *arrow = weir_schema_arrow(schema);
  proof p = {.c = c, .ns = ns, .schema = schema};
  if (err && err->flags & WEIR_ERR_RETRIABLE) return status;
  name_table(&p);
  for (int64_t i = 0; i < arrow->n_children; i++) {
    weir_error why = {0};
    weir_schema *alone = NULL;
    weir_status one = drop(&p, &why);
    if (!one) one = weir_schema_select(schema, &i, 1, &alone, &why);
    if (!one) one = adbc_ingest(c, p.table, ADBC_CREATE, alone, NULL, &why);
    weir_schema_unref(alone);
    if (one) {
      drop(&p, NULL);
      return refuse_type(&p, arrow->children[i], why.message, err);
    }
  }
  drop(&p, NULL);
  return status;
}

weir_status adbc_prove(adbc_conn *c, const weir_namespace *ns, weir_schema *input,
                       const int64_t *columns, int64_t n, int *nan, weir_error *err) {
  proof p = {.c = c, .ns = ns};
  name_table(&p);
  ADBC_TRY(weir_schema_select(input, columns, n, &p.schema, err));
  weir_status status = prove_all(&p, nan, err);
  weir_batch_unref(p.samples);
  weir_schema_unref(p.schema);
  return status;
}
