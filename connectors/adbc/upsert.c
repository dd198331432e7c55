/* SPDX-License-Identifier: Apache-2.0 */
/* Changes by key, in SQL that every database has: they are gathered in a temporary table of the session, numbered in
 * their order, and the last one of each key counts. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "adbc.h"

#define STAGE "weir_stage"
#define NUMBER "weir_number"

static weir_status no_memory(weir_error *err) {
  return weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
}

/* The input's columns, _op among them, all nullable, and the number behind. */
static weir_status stage_schema(weir_schema *input, weir_schema **out, weir_error *err) {
  struct ArrowSchema of = {.release = NULL};
  const struct ArrowSchema *in = weir_schema_arrow(input);
  int64_t n = in->n_children;
  ArrowSchemaInit(&of);
  int bad = ArrowSchemaSetTypeStruct(&of, n + 1) != NANOARROW_OK;
  for (int64_t i = 0; !bad && i < n; i++) {
    of.children[i]->release(of.children[i]);
    bad = ArrowSchemaDeepCopy(in->children[i], of.children[i]) != NANOARROW_OK;
    if (!bad) of.children[i]->flags |= ARROW_FLAG_NULLABLE;
  }
  bad = bad || ArrowSchemaSetType(of.children[n], NANOARROW_TYPE_INT64) != NANOARROW_OK ||
        ArrowSchemaSetName(of.children[n], NUMBER) != NANOARROW_OK;
  weir_status status = bad ? no_memory(err) : weir_schema_new(&of, out, err);
  if (of.release) of.release(&of);
  return status;
}

weir_status adbc_stage_make(adbc_conn *c, weir_schema *schema, weir_error *err) {
  weir_schema *stage = NULL;
  ADBC_TRY(stage_schema(schema, &stage, err));
  weir_status status =
      adbc_ingest(c, STAGE, ADBC_CREATE | ADBC_TEMPORARY, stage, NULL, err);
  weir_schema_unref(stage);
  return status ? weir_error_prefix(err, status,
                                    "`mode: upsert` needs a temporary table, by bulk "
                                    "ingest")
                : WEIR_OK;
}

static weir_status number_rows(weir_batch *batch, int64_t first, struct ArrowArray *out,
                               weir_error *err) {
  int64_t n = weir_batch_rows(batch);
  if (ArrowArrayInitFromType(out, NANOARROW_TYPE_INT64) != NANOARROW_OK ||
      ArrowArrayStartAppending(out) != NANOARROW_OK)
    return no_memory(err);
  for (int64_t i = 0; i < n; i++)
    if (ArrowArrayAppendInt(out, first + i) != NANOARROW_OK) return no_memory(err);
  return ArrowArrayFinishBuildingDefault(out, NULL) == NANOARROW_OK ? WEIR_OK
                                                                    : no_memory(err);
}

/* The columns of `rows` move over, with `numbers` behind. */
static weir_status join(struct ArrowArray *rows, struct ArrowArray *numbers,
                        struct ArrowArray *out, weir_error *err) {
  if (ArrowArrayInitFromType(out, NANOARROW_TYPE_STRUCT) != NANOARROW_OK ||
      ArrowArrayAllocateChildren(out, rows->n_children + 1) != NANOARROW_OK)
    return no_memory(err);
  for (int64_t i = 0; i < rows->n_children; i++)
    ArrowArrayMove(rows->children[i], out->children[i]);
  out->length = numbers->length;
  ArrowArrayMove(numbers, out->children[rows->n_children]);
  return WEIR_OK;
}

weir_status adbc_stage_put(adbc_conn *c, weir_batch *batch, int64_t first,
                           weir_error *err) {
  weir_schema *schema = NULL;
  weir_batch *staged = NULL;
  struct ArrowArray rows = {.release = NULL}, numbers = {.release = NULL},
                    all = {.release = NULL};
  ADBC_TRY(stage_schema(weir_batch_schema(batch), &schema, err));
  weir_status status = weir_batch_export(batch, &rows, err);
  if (!status) status = number_rows(batch, first, &numbers, err);
  if (!status) status = join(&rows, &numbers, &all, err);
  if (!status) status = weir_batch_new(schema, &all, &staged, err);
  if (!status)
    status = adbc_ingest(c, STAGE, ADBC_APPEND | ADBC_TEMPORARY, schema, staged, err);
  weir_batch_unref(staged);
  if (all.release) all.release(&all);
  if (numbers.release) numbers.release(&numbers);
  if (rows.release) rows.release(&rows);
  weir_schema_unref(schema);
  return status;
}

static void put_key(adbc_sql *sql, const adbc_config *config) {
  for (size_t i = 0; i < config->key.n; i++) {
    if (i) fputs(", ", sql->file);
    adbc_sql_name(sql, config->key.v[i]);
  }
}

static weir_status delete_keys(adbc_conn *c, weir_error *err) {
  const adbc_config *config = c->config;
  adbc_sql sql;
  ADBC_TRY(adbc_sql_start(&sql, err));
  fputs("DELETE FROM ", sql.file);
  adbc_sql_table(&sql, config, config->table);
  fputs(" WHERE EXISTS (SELECT 1 FROM " STAGE " s WHERE ", sql.file);
  for (size_t i = 0; i < config->key.n; i++) {
    fputs(i ? " AND s." : "s.", sql.file);
    adbc_sql_name(&sql, config->key.v[i]);
    fputs(" = ", sql.file);
    adbc_sql_table(&sql, config, config->table);
    fputc('.', sql.file);
    adbc_sql_name(&sql, config->key.v[i]);
  }
  fputc(')', sql.file);
  return adbc_run(c, "delete by key", &sql, NULL, err);
}

weir_status adbc_stage_merge(adbc_conn *c, weir_schema *schema, weir_error *err) {
  const adbc_config *config = c->config;
  const struct ArrowSchema *in = weir_schema_arrow(schema);
  adbc_sql sql;
  ADBC_TRY(delete_keys(c, err));
  ADBC_TRY(adbc_sql_start(&sql, err));
  for (int into = 1; into >= 0; into--) {
    fputs(into ? "INSERT INTO " : " SELECT ", sql.file);
    if (into) adbc_sql_table(&sql, config, config->table);
    if (into) fputs(" (", sql.file);
    for (int64_t i = 0; i < adbc_columns(config, in); i++) {
      if (i) fputs(", ", sql.file);
      adbc_sql_name(&sql, in->children[i]->name);
    }
    if (into) fputc(')', sql.file);
  }
  fputs(" FROM " STAGE " WHERE \"_op\" = 'U' AND " NUMBER " IN (SELECT MAX(" NUMBER
        ") FROM " STAGE " GROUP BY ",
        sql.file);
  put_key(&sql, config);
  fputc(')', sql.file);
  ADBC_TRY(adbc_run(c, "put rows by key", &sql, NULL, err));
  return adbc_exec(c, "empty the stage", "DELETE FROM " STAGE, err);
}
