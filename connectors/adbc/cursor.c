/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Table weir_cursor: a row for each deployment of a pipeline's sink. All columns are texts, so that no database's
 * own numbers and bytes come between.
 *
 * The fence is `nonce`. Whoever is about to move the cursor, or must know that nobody else will, writes a random one
 * by an UPDATE and reads it back: so the row is locked, or the other transaction in conflict, whatever the database
 * calls it, and no driver's count of changed rows has to be believed.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "adbc.h"

#define COLUMNS                                                                       \
  "namespace, pipeline, sink, claim, deployment, target, checkpoint, token, digest, " \
  "positions, nonce"
#define CURSOR "checkpoint, token, digest"

static weir_status no_memory(weir_error *err) {
  return weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
}

/* ---- texts --------------------------------------------------------------------------------------------- */

weir_status adbc_nonce(char out[ADBC_NONCE], weir_error *err) {
  uint8_t bytes[16];
  if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
    return weir_error_set(err, WEIR_E_IO, 0, "the system gives no random bytes");
  for (size_t i = 0; i < sizeof(bytes); i++) snprintf(out + 2 * i, 3, "%02x", bytes[i]);
  return WEIR_OK;
}

/* Exactly 2 * size lower-case digits. */
static int from_hex(const char *text, uint8_t *out, size_t size) {
  static const char digits[] = "0123456789abcdef";
  if (strlen(text) != 2 * size) return 0;
  for (size_t i = 0; i < 2 * size; i++) {
    const char *digit = strchr(digits, text[i]);
    if (!digit) return 0;
    out[i / 2] = (uint8_t)(i % 2 ? out[i / 2] | (digit - digits) : (digit - digits) << 4);
  }
  return 1;
}

static void put_table(adbc_sql *sql, const adbc_conn *c) {
  adbc_sql_table(sql, c->config, ADBC_CURSOR);
}

static void put_whose(adbc_sql *sql, const adbc_conn *c, const weir_namespace *ns) {
  fputs(" WHERE pipeline = ", sql->file);
  adbc_sql_text(sql, c, ns->pipeline);
  fputs(" AND sink = ", sql->file);
  adbc_sql_text(sql, c, ns->sink_id);
}

static void put_own(adbc_sql *sql, const weir_namespace *ns) {
  char key[WEIR_NAMESPACE_KEY_SIZE];
  weir_namespace_key(ns, key);
  fprintf(sql->file, " WHERE namespace = '%s'", key);
}

static weir_status select_from(adbc_conn *c, const weir_namespace *ns, int own,
                               const char *columns, adbc_rows *out, weir_error *err) {
  adbc_sql sql;
  ADBC_TRY(adbc_sql_start(&sql, err));
  fprintf(sql.file, "SELECT %s FROM ", columns);
  put_table(&sql, c);
  if (own) {
    put_own(&sql, ns);
  } else {
    put_whose(&sql, c, ns);
  }
  return adbc_run(c, "read " ADBC_CURSOR, &sql, out, err);
}

/* Columns from `at` on: checkpoint, token, digest. */
static weir_status cursor_of(const adbc_rows *rows, size_t row, size_t at,
                             weir_cursor *out, weir_error *err) {
  weir_cursor found = {.checkpoint = strtoull(adbc_text(rows, row, at), NULL, 10),
                       .token = strtoull(adbc_text(rows, row, at + 1), NULL, 10)};
  if (found.checkpoint &&
      !from_hex(adbc_text(rows, row, at + 2), found.digest, sizeof(found.digest)))
    return weir_error_set(err, WEIR_E_CORRUPT, 0,
                          "a row of " ADBC_CURSOR " has no digest of 32 bytes");
  *out = found;
  return WEIR_OK;
}

/* ---- the table -------------------------------------------------------------------------------------------- */

static void put_ddl(adbc_sql *sql, const adbc_conn *c) {
  fputs("CREATE TABLE ", sql->file);
  put_table(sql, c);
  fputs(
      " (namespace VARCHAR(80) NOT NULL PRIMARY KEY, pipeline VARCHAR(255) NOT NULL, "
      "sink "
      "VARCHAR(255) NOT NULL, claim VARCHAR(20) NOT NULL, deployment VARCHAR(32) NOT "
      "NULL, target VARCHAR(32) NOT NULL, checkpoint VARCHAR(20) NOT NULL, token "
      "VARCHAR(20) NOT NULL, digest VARCHAR(64) NOT NULL, positions TEXT, nonce "
      "VARCHAR(32) NOT NULL, UNIQUE (pipeline, sink, claim))",
      sql->file);
}

weir_status adbc_cursor_create(adbc_conn *c, weir_error *err) {
  adbc_sql sql;
  ADBC_TRY(adbc_sql_start(&sql, err));
  put_ddl(&sql, c);
  return adbc_run(c, "make table " ADBC_CURSOR, &sql, NULL, err);
}

static weir_status refuse_missing(adbc_conn *c, weir_error *err) {
  adbc_sql sql;
  ADBC_TRY(adbc_sql_start(&sql, err));
  put_ddl(&sql, c);
  weir_status status = adbc_sql_done(&sql, err);
  if (!status)
    status = weir_error_set(err, WEIR_E_NOT_FOUND, 0,
                            "there is no table " ADBC_CURSOR
                            " beside '%s', where the cursor is kept; set `create: true`, "
                            "or run: %s",
                            c->config->table, sql.text);
  adbc_sql_free(&sql);
  return status;
}

weir_status adbc_cursor_table(adbc_conn *c, weir_error *err) {
  struct ArrowSchema schema;
  int there = 0, nonce = 0;
  ADBC_TRY(adbc_table_schema(c, ADBC_CURSOR, &there, &schema, err));
  if (!there) return refuse_missing(c, err);
  for (int64_t i = 0; i < schema.n_children; i++)
    nonce |= strcmp(schema.children[i]->name, "nonce") == 0;
  schema.release(&schema);
  if (nonce) return WEIR_OK;
  return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                        "the table " ADBC_CURSOR
                        " beside '%s' is that of another kind of sink; deliver into a "
                        "schema or database of its own",
                        c->config->table);
}

/* ---- claims ------------------------------------------------------------------------------------------------- */

typedef struct chain {
  uint8_t *deployments; /* oldest first */
  size_t n;
} chain;

/* Databases that do not enforce UNIQUE may have let two in. */
static weir_status order_chain(const adbc_rows *rows, chain *out, weir_error *err) {
  for (size_t row = 0; row < rows->n; row++) {
    uint64_t claim = strtoull(adbc_text(rows, row, 0), NULL, 10);
    uint8_t deployment[WEIR_UUID_SIZE];
    if (!from_hex(adbc_text(rows, row, 1), deployment, sizeof(deployment)))
      return weir_error_set(err, WEIR_E_CORRUPT, 0,
                            "a row of " ADBC_CURSOR " has no deployment");
    if (claim < 1 || claim > rows->n)
      return weir_error_set(err, WEIR_E_CORRUPT, 0,
                            "the claims in " ADBC_CURSOR " are not numbered from 1 on");
    uint8_t *place = out->deployments + (claim - 1) * WEIR_UUID_SIZE;
    static const uint8_t none[WEIR_UUID_SIZE];
    if (memcmp(place, none, sizeof(none)) != 0)
      return weir_error_set(err, WEIR_E_CONFLICT, 0,
                            "two deployments hold claim %" PRIu64 " in " ADBC_CURSOR
                            "; remove the row of the one that is not meant",
                            claim);
    memcpy(place, deployment, sizeof(deployment));
  }
  out->n = rows->n;
  return WEIR_OK;
}

static weir_status read_chain(adbc_conn *c, const weir_namespace *ns, chain *out,
                              weir_error *err) {
  adbc_rows rows = {.n = 0};
  *out = (chain){.n = 0};
  ADBC_TRY(select_from(c, ns, 0, "claim, deployment", &rows, err));
  out->deployments = calloc(rows.n + 1, WEIR_UUID_SIZE);
  weir_status status = out->deployments ? order_chain(&rows, out, err) : no_memory(err);
  adbc_rows_done(&rows);
  if (status) {
    free(out->deployments);
    out->deployments = NULL;
  }
  return status;
}

weir_status adbc_cursor_check_claim(adbc_conn *c, const weir_namespace *ns,
                                    weir_error *err) {
  chain found;
  ADBC_TRY(read_chain(c, ns, &found, err));
  weir_status status = weir_claim_check(ns, found.deployments, found.n, err);
  free(found.deployments);
  return status;
}

weir_status adbc_cursor_target(adbc_conn *c, const weir_namespace *ns, char **out,
                               weir_error *err) {
  adbc_rows rows = {.n = 0};
  ADBC_TRY(select_from(c, ns, 0, "target", &rows, err));
  *out = strdup(adbc_text(&rows, 0, 0));
  adbc_rows_done(&rows);
  return *out ? WEIR_OK : no_memory(err);
}

/* Rows of older deployments get a new nonce, so that none of their transactions comes after the claim. */
static weir_status add_claim(adbc_conn *c, const weir_namespace *ns, size_t n,
                             weir_error *err) {
  char key[WEIR_NAMESPACE_KEY_SIZE], nonce[ADBC_NONCE], *target = NULL;
  adbc_sql sql;
  weir_namespace_key(ns, key);
  if (!*key) return no_memory(err);
  ADBC_TRY(adbc_nonce(nonce, err));
  ADBC_TRY(adbc_sql_start(&sql, err));
  fputs("UPDATE ", sql.file);
  put_table(&sql, c);
  fprintf(sql.file, " SET nonce = '%s'", nonce);
  put_whose(&sql, c, ns);
  ADBC_TRY(adbc_run(c, "end older owners", &sql, NULL, err));
  ADBC_TRY(adbc_cursor_target(c, ns, &target, err));
  weir_status status = adbc_sql_start(&sql, err);
  if (!status) {
    fputs("INSERT INTO ", sql.file);
    put_table(&sql, c);
    fprintf(sql.file, " (" COLUMNS ") VALUES ('%s', ", key);
    adbc_sql_text(&sql, c, ns->pipeline);
    fputs(", ", sql.file);
    adbc_sql_text(&sql, c, ns->sink_id);
    fprintf(sql.file, ", '%zu', ", n + 1);
    adbc_sql_hex(&sql, ns->deployment, WEIR_UUID_SIZE);
    fprintf(sql.file, ", '%s', '0', '0', '-', NULL, '%s')", *target ? target : nonce,
            nonce);
    status = adbc_run(c, "claim the target", &sql, NULL, err);
  }
  free(target);
  return status;
}

weir_status adbc_cursor_claim(adbc_conn *c, const weir_namespace *ns, int add,
                              weir_error *err) {
  chain found;
  int32_t due = 0;
  ADBC_TRY(read_chain(c, ns, &found, err));
  weir_status status = weir_claim_start(ns, found.deployments, found.n, &due, err);
  free(found.deployments);
  if (status || !due || !add) return status;
  ADBC_TRY(adbc_begin(c, err));
  ADBC_TRY(add_claim(c, ns, found.n, err));
  ADBC_TRY(adbc_commit(c, err));
  return adbc_cursor_check_claim(c, ns, err);
}

/* ---- reading -------------------------------------------------------------------------------------------------- */

weir_status adbc_cursor_read(adbc_conn *c, const weir_namespace *ns, weir_cursor *out,
                             weir_error *err) {
  adbc_rows rows = {.n = 0};
  weir_cursor found = {.checkpoint = 0};
  ADBC_TRY(select_from(c, ns, 1, CURSOR, &rows, err));
  weir_status status = rows.n ? cursor_of(&rows, 0, 0, &found, err) : WEIR_OK;
  adbc_rows_done(&rows);
  if (!status) *out = found;
  return status;
}

typedef struct found_list {
  adbc_rows rows;
  weir_found_cursor *v;
} found_list;

static void release_list(weir_cursor_list *list) {
  found_list *l = list->private_data;
  adbc_rows_done(&l->rows);
  free(l->v);
  free(l);
  *list = (weir_cursor_list){.n = 0};
}

static weir_status fill_list(found_list *l, size_t *n, weir_error *err) {
  for (size_t row = 0; row < l->rows.n; row++) {
    weir_found_cursor *one = &l->v[*n];
    ADBC_TRY(cursor_of(&l->rows, row, 0, &one->cursor, err));
    if (!one->cursor.checkpoint) continue;
    if (!from_hex(adbc_text(&l->rows, row, 3), one->deployment, WEIR_UUID_SIZE))
      return weir_error_set(err, WEIR_E_CORRUPT, 0,
                            "a row of " ADBC_CURSOR " has no deployment");
    one->positions = yyjson_get_str(adbc_value(&l->rows, row, 4));
    (*n)++;
  }
  return WEIR_OK;
}

weir_status adbc_cursor_find(adbc_conn *c, const weir_namespace *ns,
                             weir_cursor_list *out, weir_error *err) {
  size_t n = 0;
  found_list *l = calloc(1, sizeof(*l));
  if (!l) return no_memory(err);
  weir_status status =
      select_from(c, ns, 0, CURSOR ", deployment, positions", &l->rows, err);
  if (!status) {
    l->v = calloc(l->rows.n + 1, sizeof(*l->v));
    status = l->v ? fill_list(l, &n, err) : no_memory(err);
  }
  weir_cursor_list list = {l->v, n, release_list, l};
  if (status) {
    release_list(&list);
  } else {
    *out = list;
  }
  return status;
}

/* ---- the fence ---------------------------------------------------------------------------------------------------- */

weir_status adbc_cursor_has(adbc_conn *c, const weir_namespace *ns, const char *nonce,
                            int *same, weir_error *err) {
  adbc_rows rows = {.n = 0};
  ADBC_TRY(select_from(c, ns, 1, "nonce", &rows, err));
  *same = rows.n == 1 && strcmp(adbc_text(&rows, 0, 0), nonce) == 0;
  adbc_rows_done(&rows);
  return WEIR_OK;
}

weir_status adbc_cursor_fence(adbc_conn *c, const weir_namespace *ns, const char *nonce,
                              weir_error *err) {
  adbc_sql sql;
  int same = 0;
  ADBC_TRY(adbc_sql_start(&sql, err));
  fputs("UPDATE ", sql.file);
  put_table(&sql, c);
  fprintf(sql.file, " SET nonce = '%s'", nonce);
  put_own(&sql, ns);
  ADBC_TRY(adbc_run(c, "lock the cursor", &sql, NULL, err));
  ADBC_TRY(adbc_cursor_has(c, ns, nonce, &same, err));
  if (same) return WEIR_OK;
  return weir_error_set(err, WEIR_E_CONFLICT, 0,
                        "the row of this deployment in " ADBC_CURSOR
                        " cannot be written to; is it gone, or is there a trigger or a "
                        "policy on it?");
}

static void put_cursor(adbc_sql *sql, const weir_cursor *cursor, const char *between) {
  fprintf(sql->file, "checkpoint = '%" PRIu64 "'%stoken = '%" PRIu64 "'%sdigest = ",
          cursor->checkpoint, between, cursor->token, between);
  if (cursor->checkpoint) {
    adbc_sql_hex(sql, cursor->digest, WEIR_DIGEST_SIZE);
  } else {
    fputs("'-'", sql->file);
  }
}

weir_status adbc_cursor_move(adbc_conn *c, const weir_namespace *ns,
                             const weir_txn_commit *commit, const char *from,
                             const char *to, weir_error *err) {
  adbc_sql sql;
  int same = 0;
  ADBC_TRY(adbc_sql_start(&sql, err));
  fputs("UPDATE ", sql.file);
  put_table(&sql, c);
  fprintf(sql.file, " SET nonce = '%s', ", to);
  put_cursor(&sql, &commit->cursor, ", ");
  fputs(", positions = ", sql.file);
  adbc_sql_text(&sql, c, commit->positions);
  put_own(&sql, ns);
  fprintf(sql.file, " AND nonce = '%s' AND ", from);
  put_cursor(&sql, &commit->predecessor, " AND ");
  ADBC_TRY(adbc_run(c, "move the cursor", &sql, NULL, err));
  ADBC_TRY(adbc_cursor_has(c, ns, to, &same, err));
  if (same) return WEIR_OK;
  return weir_error_set(err, WEIR_E_IO, 0,
                        "the cursor in " ADBC_CURSOR
                        " does not move: it is no longer where it was, or a trigger or a "
                        "policy prevents it; nothing was committed");
}
