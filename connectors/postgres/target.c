/* SPDX-License-Identifier: Apache-2.0 */
#include "target.h"

#include <stdlib.h>
#include <string.h>

/* ---- reading the catalog ---------------------------------------------------------------------------------- */

void pg_sql_fingerprint(pg_sql *sql, const char *oid) {
  fprintf(sql->file,
          "(SELECT pg_catalog.md5(pg_catalog.string_agg(pg_catalog.concat_ws(' ', "
          "a.attnum, pg_catalog.quote_ident(a.attname), a.atttypid, a.atttypmod, "
          "a.attgenerated), ' ' ORDER BY a.attnum)) FROM pg_catalog.pg_attribute a WHERE "
          "a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped)",
          oid);
}

static const char find_table[] =
    "SELECT c.oid, c.relkind, c.relpersistence, (SELECT pg_catalog.count(*) FROM "
    "pg_catalog.pg_partition_tree(c.oid) t JOIN pg_catalog.pg_class p ON p.oid = t.relid "
    "WHERE p.relkind = 'f' OR p.relpersistence <> 'p') FROM pg_catalog.pg_class c JOIN "
    "pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND "
    "c.relname = $2";

/* Domains are followed to what they stand on, arrays to their items, which may be domains again. Whatever has
 * a text's receive function takes texts. */
static const char find_columns[] =
    "WITH RECURSIVE t(attnum, typ, typmod, item, depth) AS ("
    "SELECT a.attnum, a.atttypid, a.atttypmod, 0::pg_catalog.oid, 0 FROM "
    "pg_catalog.pg_attribute a WHERE a.attrelid = $1::pg_catalog.oid AND a.attnum > 0 "
    "AND "
    "NOT a.attisdropped "
    "UNION ALL SELECT t.attnum, CASE WHEN y.typtype = 'd' THEN y.typbasetype ELSE "
    "y.typelem END, CASE WHEN y.typtype = 'd' AND y.typtypmod >= 0 THEN y.typtypmod ELSE "
    "t.typmod END, CASE WHEN y.typtype = 'd' THEN t.item ELSE y.typelem END, t.depth + 1 "
    "FROM t JOIN pg_catalog.pg_type y ON y.oid = t.typ WHERE y.typtype = 'd' OR (t.item "
    "= "
    "0 AND y.typelem <> 0 AND y.typinput = 'pg_catalog.array_in'::pg_catalog.regproc)), "
    "b AS (SELECT DISTINCT ON (attnum) * FROM t ORDER BY attnum, depth DESC) "
    "SELECT a.attname, a.attnotnull, a.attgenerated <> '', a.atthasdef OR a.attidentity "
    "<> '', pg_catalog.format_type(a.atttypid, a.atttypmod), "
    "CASE WHEN y.typtype = 'e' OR r.proname IN ('textrecv', 'citextrecv') THEN 'text' "
    "WHEN n.nspname = 'pg_catalog' THEN y.typname::pg_catalog.text ELSE '' END, "
    "b.typmod, "
    "b.item, pg_catalog.format_type(b.typ, b.typmod) "
    "FROM pg_catalog.pg_attribute a JOIN b ON b.attnum = a.attnum JOIN "
    "pg_catalog.pg_type "
    "y ON y.oid = b.typ JOIN pg_catalog.pg_namespace n ON n.oid = y.typnamespace LEFT "
    "JOIN "
    "pg_catalog.pg_proc r ON r.oid = y.typreceive WHERE a.attrelid = $1::pg_catalog.oid "
    "ORDER BY a.attnum";

static weir_status no_memory(weir_error *err) {
  return weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
}

static weir_status refuse(const pg_config *config, const char *why, weir_error *err) {
  return weir_error_set(err, WEIR_E_SCHEMA, 0, "%s.%s %s", config->schema, config->table,
                        why);
}

/* What may be lost in a crash of the server, or is elsewhere, cannot be exactly once. */
static weir_status check_table(const pg_config *config, const PGresult *row,
                               weir_error *err) {
  char kind = *pg_value(row, 0, 1);
  if (kind != 'r' && kind != 'p')
    return refuse(config, "is no table; rows go to tables and partitioned tables", err);
  if (*pg_value(row, 0, 2) != 'p' || strcmp(pg_value(row, 0, 3), "0") != 0)
    return refuse(
        config,
        "is unlogged, temporary or has such partitions or foreign ones, whose rows "
        "do not stay or do not commit with the rest",
        err);
  return WEIR_OK;
}

static bool is_true(const PGresult *rows, int row, int column) {
  const char *value = pg_value(rows, row, column);
  return value && *value == 't';
}

static weir_status read_field(const PGresult *rows, int i, pg_field *f, weir_error *err) {
  f->not_null = is_true(rows, i, 1);
  f->generated = is_true(rows, i, 2);
  f->filled = is_true(rows, i, 3);
  f->type.kind = pg_kind_of(pg_value(rows, i, 5));
  f->type.typmod = (int32_t)strtol(pg_value(rows, i, 6), NULL, 10);
  f->type.oid = (uint32_t)strtoul(pg_value(rows, i, 7), NULL, 10);
  f->type.array = f->type.oid != 0;
  snprintf(f->type.name, sizeof(f->type.name), "%s", pg_value(rows, i, 4));
  if (asprintf(&f->base, "%s%s", pg_value(rows, i, 8), f->type.array ? "[]" : "") < 0)
    f->base = NULL;
  f->name = strdup(pg_value(rows, i, 0));
  return f->name && f->base ? WEIR_OK : no_memory(err);
}

static weir_status read_fields(pg_conn *c, const weir_call *call, pg_target *out,
                               weir_error *err) {
  PGresult *rows = NULL;
  const char *oid = out->oid;
  PG_TRY(pg_conn_run(c, call, "reading the table's columns", find_columns, &oid, 1, &rows,
                     err));
  weir_status status = WEIR_OK;
  int n = PQntuples(rows);
  out->fields = calloc((size_t)n + 1, sizeof(*out->fields));
  if (!out->fields) status = no_memory(err);
  for (; !status && out->n < n; out->n++)
    status = read_field(rows, out->n, &out->fields[out->n], err);
  PQclear(rows);
  return status;
}

static weir_status read_fingerprint(pg_conn *c, const weir_call *call, pg_target *out,
                                    weir_error *err) {
  PGresult *rows = NULL;
  pg_sql sql = {0};
  PG_TRY(pg_sql_start(&sql, err));
  fputs("SELECT ", sql.file);
  pg_sql_fingerprint(&sql, out->oid);
  weir_status status = pg_sql_done(&sql, err);
  if (!status)
    status = pg_conn_run(c, call, "reading the table's columns", sql.text, NULL, 0, &rows,
                         err);
  pg_sql_free(&sql);
  if (status) return status;
  const char *value = pg_value(rows, 0, 0);
  snprintf(out->columns, sizeof(out->columns), "%s", value ? value : "");
  PQclear(rows);
  return WEIR_OK;
}

weir_status pg_target_load(pg_conn *c, const weir_call *call, const pg_config *config,
                           pg_target *out, weir_error *err) {
  PGresult *rows = NULL;
  const char *names[] = {config->schema, config->table};
  pg_target target = {.n = 0};
  PG_TRY(pg_conn_run(c, call, "looking for the table", find_table, names, 2, &rows, err));
  weir_status status = WEIR_OK;
  if (!PQntuples(rows)) {
    status = weir_error_set(err, WEIR_E_NOT_FOUND, 0,
                            "%s: there is no table %s.%s; make it, or set `create: true`",
                            c->where, config->schema, config->table);
  } else {
    snprintf(target.oid, sizeof(target.oid), "%s", pg_value(rows, 0, 0));
    status = check_table(config, rows, err);
  }
  PQclear(rows);
  /* The fingerprint first: what changes in between shows. */
  if (!status) status = read_fingerprint(c, call, &target, err);
  if (!status) status = read_fields(c, call, &target, err);
  if (status) {
    pg_target_done(&target);
  } else {
    *out = target;
  }
  return status;
}

void pg_target_done(pg_target *target) {
  for (int i = 0; i <= target->n && target->fields; i++) {
    free(target->fields[i].name);
    free(target->fields[i].base);
  }
  free(target->fields);
  *target = (pg_target){.n = 0};
}

/* ---- mapping ------------------------------------------------------------------------------------------------ */

bool pg_is_op(const pg_config *config, const struct ArrowSchema *schema, int64_t column) {
  return config->upsert && column == schema->n_children - 1 &&
         strcmp(schema->children[column]->name, "_op") == 0;
}

static int find_field(const pg_target *target, const char *name) {
  for (int i = 0; i < target->n; i++)
    if (strcmp(target->fields[i].name, name) == 0) return i;
  return -1;
}

static weir_status match_column(const pg_config *config, const pg_target *target,
                                const struct ArrowSchema *field, const int *before,
                                int64_t n, int *out, weir_error *err) {
  int found = find_field(target, field->name);
  if (found < 0)
    return weir_error_set(err, WEIR_E_SCHEMA, 0,
                          "column '%s': table %s.%s has no such column", field->name,
                          config->schema, config->table);
  for (int64_t k = 0; k < n; k++)
    if (before[k] == found)
      return weir_error_set(err, WEIR_E_SCHEMA, 0, "column '%s' is there twice",
                            field->name);
  const pg_field *f = &target->fields[found];
  if (f->generated)
    return weir_error_set(
        err, WEIR_E_SCHEMA, 0,
        "column '%s' of table %s.%s is generated from others and cannot "
        "be written; leave it out",
        field->name, config->schema, config->table);
  weir_status status = pg_type_check(field, &f->type, err);
  if (status) return weir_error_prefix(err, status, "column '%s'", field->name);
  *out = found;
  return WEIR_OK;
}

/* What rows would lack. */
static weir_status check_rest(const pg_config *config, const pg_target *target,
                              const int *fields, int64_t n, weir_error *err) {
  for (int i = 0; i < target->n; i++) {
    const pg_field *f = &target->fields[i];
    bool given = false;
    for (int64_t k = 0; k < n; k++) given |= fields[k] == i;
    if (given || !f->not_null || f->filled || f->generated) continue;
    return weir_error_set(
        err, WEIR_E_SCHEMA, 0,
        "column '%s' of table %s.%s must not be null, has no default, and "
        "is not among the columns of the source",
        f->name, config->schema, config->table);
  }
  return WEIR_OK;
}

weir_status pg_target_match(const pg_config *config, const pg_target *target,
                            weir_schema *input, int **fields, weir_error *err) {
  const struct ArrowSchema *arrow = weir_schema_arrow(input);
  int64_t n = arrow->n_children;
  int *found = calloc((size_t)n + 1, sizeof(*found));
  if (!found) return no_memory(err);
  weir_status status = WEIR_OK;
  for (int64_t i = 0; i < n && !status; i++) {
    found[i] = -1;
    if (pg_is_op(config, arrow, i)) continue;
    status = match_column(config, target, arrow->children[i], found, i, &found[i], err);
  }
  if (!status) status = check_rest(config, target, found, n, err);
  if (status) {
    free(found);
  } else {
    *fields = found;
  }
  return status;
}

/* ---- making --------------------------------------------------------------------------------------------------- */

void pg_sql_table(pg_sql *sql, const pg_config *config, const char *table) {
  pg_sql_name(sql, config->schema);
  fputc('.', sql->file);
  pg_sql_name(sql, table);
}

void pg_sql_columns(pg_sql *sql, const struct ArrowSchema *schema) {
  for (int64_t i = 0; i < schema->n_children; i++) {
    fputs(i ? ", " : " (", sql->file);
    pg_sql_name(sql, schema->children[i]->name);
  }
  fputc(')', sql->file);
}

static bool is_key(const pg_config *config, const char *name) {
  for (size_t i = 0; i < config->key.n; i++)
    if (strcmp(config->key.v[i], name) == 0) return true;
  return false;
}

weir_status pg_target_create(const pg_config *config, weir_schema *input, pg_sql *sql,
                             weir_error *err) {
  const struct ArrowSchema *arrow = weir_schema_arrow(input);
  fputs("CREATE TABLE ", sql->file);
  pg_sql_table(sql, config, config->table);
  fputs(" (", sql->file);
  for (int64_t i = 0; i < arrow->n_children; i++) {
    const struct ArrowSchema *field = arrow->children[i];
    char type[100];
    if (pg_is_op(config, arrow, i)) continue;
    weir_status status = pg_type_create(field, type, sizeof(type), err);
    if (status) return weir_error_prefix(err, status, "column '%s'", field->name);
    /* A keyed stream's deletes have the key alone. */
    bool required = !config->upsert && !(field->flags & ARROW_FLAG_NULLABLE);
    if (i) fputs(", ", sql->file);
    pg_sql_name(sql, field->name);
    fprintf(sql->file, " %s%s", type,
            required || is_key(config, field->name) ? " NOT NULL" : "");
  }
  for (size_t i = 0; i < config->key.n; i++) {
    fputs(i ? ", " : ", PRIMARY KEY (", sql->file);
    pg_sql_name(sql, config->key.v[i]);
  }
  fputs(config->key.n ? "))" : ")", sql->file);
  return WEIR_OK;
}

/* ---- what a schema says of its target --------------------------------------------------------------------------- */

#define NOTE "weir.postgres"

static weir_status annotate_field(struct ArrowSchema *field, const pg_field *f,
                                  weir_error *err) {
  struct ArrowBuffer metadata;
  char note[160];
  snprintf(note, sizeof(note), "%d %d %u %d %d %s", f->type.kind, f->type.array,
           f->type.oid, f->type.typmod, f->not_null, f->type.name);
  bool ok = ArrowMetadataBuilderInit(&metadata, field->metadata) == NANOARROW_OK &&
            ArrowMetadataBuilderSet(&metadata, ArrowCharView(NOTE),
                                    ArrowCharView(note)) == NANOARROW_OK &&
            ArrowSchemaSetMetadata(field, (const char *)metadata.data) == NANOARROW_OK;
  ArrowBufferReset(&metadata);
  return ok ? WEIR_OK : no_memory(err);
}

weir_status pg_target_annotate(const pg_target *target, const int *fields,
                               weir_schema *input, weir_schema **out, weir_error *err) {
  struct ArrowSchema arrow = {0};
  weir_status status = weir_schema_export(input, &arrow, err);
  for (int64_t i = 0; !status && i < arrow.n_children; i++)
    if (fields[i] >= 0)
      status = annotate_field(arrow.children[i], &target->fields[fields[i]], err);
  if (!status) status = weir_schema_new(&arrow, out, err);
  if (arrow.release) arrow.release(&arrow);
  return status;
}

bool pg_field_type(const struct ArrowSchema *field, pg_type *type, bool *not_null) {
  struct ArrowStringView note = ArrowCharView(NULL);
  char text[160], *at = text;
  long v[5]; /* as annotate_field writes them */
  if (ArrowMetadataGetValue(field->metadata, ArrowCharView(NOTE), &note) !=
          NANOARROW_OK ||
      !note.data)
    return false;
  snprintf(text, sizeof(text), "%.*s", (int)note.size_bytes, note.data);
  for (int i = 0; i < 5; i++) {
    v[i] = strtol(at, &at, 10);
    if (*at++ != ' ') return false;
  }
  type->kind = (pg_kind)v[0];
  type->array = v[1];
  type->oid = (uint32_t)v[2];
  type->typmod = (int32_t)v[3];
  *not_null = v[4];
  snprintf(type->name, sizeof(type->name), "%s", at);
  return true;
}
