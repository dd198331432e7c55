/* SPDX-License-Identifier: Apache-2.0 */
#include "prepare.h"

#include <stdlib.h>
#include <string.h>

#include "cursor.h"
#include "target.h"
#include "upsert.h"

/* Which server and which table: what a copy or a table made anew differs in. */
static weir_status identify(pg_conn *conn, const weir_call *call, const pg_target *target,
                            weir_binding *binding, weir_error *err) {
  static const char *const keys[] = {"system_identifier", "database_oid"};
  PGresult *rows = NULL;
  PG_TRY(
      pg_conn_run(conn, call, "identifying the database",
                  "SELECT s.system_identifier, d.oid FROM pg_catalog.pg_control_system() "
                  "s, pg_catalog.pg_database d WHERE d.datname = "
                  "pg_catalog.current_database()",
                  NULL, 0, &rows, err));
  weir_status status = WEIR_OK;
  for (int i = 0; i < 2 && !status; i++)
    status = weir_binding_identify(binding, keys[i], pg_value(rows, 0, i), err);
  PQclear(rows);
  if (!status) status = weir_binding_identify(binding, "table_oid", target->oid, err);
  return status;
}

/* A table that is to be made: whether it could be. */
static weir_status check_creation(const pg_config *config, weir_schema *input,
                                  weir_error *err) {
  pg_sql sql = {0};
  PG_TRY(pg_sql_start(&sql, err));
  weir_status status = pg_target_create(config, input, &sql, err);
  pg_sql_free(&sql);
  return status;
}

static weir_status resolve_at(pg_conn *conn, const weir_call *call,
                              const pg_config *config, const weir_namespace *ns,
                              weir_schema *input, weir_binding *out, weir_error *err) {
  pg_target target = {.n = 0};
  int *fields = NULL;
  weir_error why = {0};
  weir_status status = pg_cursor_table(conn, call, config, &why);
  if (!status) {
    status = pg_cursor_claim(conn, call, config, ns, false, err);
  } else if (status == WEIR_E_NOT_FOUND && config->create) {
    status = WEIR_OK;
  } else if (err) {
    *err = why;
  }
  if (status) return status;
  status = pg_target_load(conn, call, config, &target, err);
  if (status == WEIR_E_NOT_FOUND && config->create) {
    status = check_creation(config, input, err);
  } else if (!status) {
    status = pg_target_match(config, &target, input, &fields, err);
    if (!status && config->upsert)
      status = pg_upsert_check_key(conn, call, config, &target, err);
    if (!status) status = identify(conn, call, &target, out, err);
  }
  free(fields);
  pg_target_done(&target);
  return status;
}

weir_status pg_resolve(void *config, const weir_call *call, const weir_namespace *ns,
                       weir_schema *input, weir_binding *out, weir_error *err) {
  const pg_config *c = config;
  pg_conn conn = {0};
  weir_binding binding = {.struct_size = sizeof(binding)};
  PG_TRY(pg_conn_open(&conn, c->uri, PG_PASSING, call, err));
  weir_status status = weir_binding_logical(input, &binding, err);
  if (!status) status = resolve_at(&conn, call, c, ns, input, &binding, err);
  pg_conn_close(&conn);
  if (status) {
    weir_binding_done(&binding);
  } else {
    *out = binding;
  }
  return status;
}

static weir_status create_table(pg_conn *conn, const weir_call *call,
                                const pg_config *config, weir_schema *input,
                                weir_error *err) {
  pg_sql sql = {0};
  PG_TRY(pg_sql_start(&sql, err));
  weir_status status = pg_target_create(config, input, &sql, err);
  if (!status) status = pg_sql_done(&sql, err);
  if (!status)
    status = pg_conn_run(conn, call, "making the table", sql.text, NULL, 0, NULL, err);
  pg_sql_free(&sql);
  return status;
}

static weir_status make_missing(pg_conn *conn, const weir_call *call,
                                const pg_config *config, weir_schema *input,
                                weir_error *err) {
  pg_target target = {.n = 0};
  weir_status status = pg_cursor_table(conn, call, config, err);
  if (status == WEIR_E_NOT_FOUND && config->create)
    status = pg_cursor_create(conn, call, config, err);
  if (status) return status;
  status = pg_target_load(conn, call, config, &target, err);
  if (status == WEIR_E_NOT_FOUND && config->create)
    status = create_table(conn, call, config, input, err);
  pg_target_done(&target);
  return status;
}

/* All or nothing of what is made, and with it the claim. */
static weir_status prepare_at(pg_conn *conn, const weir_call *call,
                              const pg_config *config, const weir_namespace *ns,
                              weir_binding *binding, weir_error *err) {
  pg_target target = {.n = 0};
  int *fields = NULL;
  weir_schema *schema = NULL;
  weir_status status = WEIR_OK;
  PG_GOTO(status, pg_conn_run(conn, call, "BEGIN",
                              "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE", NULL, 0,
                              NULL, err));
  PG_GOTO(status, pg_cursor_alone(conn, call, err));
  PG_GOTO(status, make_missing(conn, call, config, binding->schema, err));
  PG_GOTO(status, pg_cursor_claim(conn, call, config, ns, true, err));
  PG_GOTO(status, pg_target_load(conn, call, config, &target, err));
  PG_GOTO(status, pg_target_match(config, &target, binding->schema, &fields, err));
  if (config->upsert)
    PG_GOTO(status, pg_upsert_check_key(conn, call, config, &target, err));
  PG_GOTO(status, pg_target_annotate(&target, fields, binding->schema, &schema, err));
  PG_GOTO(status, pg_conn_run(conn, call, "COMMIT", "COMMIT", NULL, 0, NULL, err));
  PG_GOTO(status, identify(conn, call, &target, binding, err));
  weir_schema_unref(binding->schema);
  binding->schema = weir_schema_ref(schema);
out:
  free(fields);
  weir_schema_unref(schema);
  pg_target_done(&target);
  return status;
}

weir_status pg_prepare(void *config, const weir_call *call, const weir_namespace *ns,
                       weir_binding *binding, weir_error *err) {
  const pg_config *c = config;
  pg_conn conn = {0};
  PG_TRY(pg_conn_open(&conn, c->uri, PG_PASSING, call, err));
  weir_status status = prepare_at(&conn, call, c, ns, binding, err);
  pg_conn_close(&conn);
  return status;
}
