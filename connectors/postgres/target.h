/* SPDX-License-Identifier: Apache-2.0 */
/* The table that rows go to, as the server's catalog has it. */
#ifndef CONNECTORS_POSTGRES_TARGET_H
#define CONNECTORS_POSTGRES_TARGET_H

#include <weir/batch.h>
#include <weir/plugin.h>

#include "conn.h"
#include "types.h"

/* What the options say; immutable. */
typedef struct pg_config {
  const weir_host *host;
  char *where; /* "sink lake" */
  char *uri, *schema, *table;
  bool create, upsert;
  weir_names key;
} pg_config;

typedef struct pg_field {
  char *name;
  pg_type type;
  char *base; /* the type that a domain stands on, as it stands in DDL */
  bool not_null;
  bool filled;    /* by a default, an identity or an expression, where it is left out */
  bool generated; /* cannot be written */
} pg_field;

typedef struct pg_target {
  char oid[16];
  char columns[40]; /* a fingerprint of names and types */
  pg_field *fields;
  int n;
} pg_target;

/* Zeroed *out. WEIR_E_NOT_FOUND: there is no such table; WEIR_E_SCHEMA: it is none that can be written to. */
weir_status pg_target_load(pg_conn *c, const weir_call *call, const pg_config *config,
                           pg_target *out, weir_error *err);
void pg_target_done(pg_target *target); /* zeroed is fine */

/* Whether batches of `input` fit, by name: *fields[i] is the target's field for column i, malloc'd. The
 * trailing _op of keyed streams has none (-1). */
weir_status pg_target_match(const pg_config *config, const pg_target *target,
                            weir_schema *input, int **fields, weir_error *err);

/* CREATE TABLE for batches of `input`. */
weir_status pg_target_create(const pg_config *config, weir_schema *input, pg_sql *sql,
                             weir_error *err);

/* An expression for the fingerprint as it is now. */
void pg_sql_fingerprint(pg_sql *sql, const char *oid);

/* "schema"."table" */
void pg_sql_table(pg_sql *sql, const pg_config *config, const char *table);

/* ("a", "b") */
void pg_sql_columns(pg_sql *sql, const struct ArrowSchema *schema);

/* The schema with each field's type at the target, so that values can be checked without a server. */
weir_status pg_target_annotate(const pg_target *target, const int *fields,
                               weir_schema *input, weir_schema **out, weir_error *err);
/* What pg_target_annotate wrote; false: nothing. */
bool pg_field_type(const struct ArrowSchema *field, pg_type *type, bool *not_null);

/* Whether the field is the _op of a keyed stream. */
bool pg_is_op(const pg_config *config, const struct ArrowSchema *schema, int64_t column);

#endif
