/* SPDX-License-Identifier: Apache-2.0 */
/* The PostgreSQL store: its tables made, its lease taken, read-only access, closing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store/pg.h"

/* "weir", as in the application id of the SQLite store. */
#define PG_ADVISORY_KEY "2003134834"
#define PG_READ_PATIENCE (30 * BASE_NS_PER_S)

static weir_status pg_no_check(weir_store *base, weir_error *err) {
  (void)base;
  (void)err;
  return WEIR_OK;
}

static void pg_close(weir_store *base) {
  pg_store *store = (pg_store *)base;
  pg_stop_keeping(store);
  /* Where that cannot be said the lease expires. Nobody writes under it any more, whatever has happened. */
  if (store->sql.token && pq_is_idle(&store->session)) {
    sql_value token = sql_int(store->sql.token);
    pg_run(&store->sql, PG_LEASE_RELEASE, &token, 1, NULL, NULL);
  }
  pq_close(&store->session);
  pthread_cond_destroy(&store->wake);
  pthread_mutex_destroy(&store->lock);
  sql_done(&store->sql);
  free(store->pipeline);
  free(store);
}

static const store_ops pg_ops = {pg_load, pg_check_lease, pg_apply, pg_close, pg_watch};
static const store_ops pg_reader_ops = {pg_load, pg_no_check, pg_apply, pg_close, NULL};

static weir_status pg_new(const char *pipeline, const store_ops *ops, pg_store **out,
                          weir_error *err) {
  pg_store *store = base_calloc(1, sizeof(*store), err);
  if (!store) return WEIR_E_NOMEM;
  weir_status status = base_mutex_init(&store->lock, err);
  if (status) goto fail_lock;
  status = base_cond_init(&store->wake, err);
  if (status) goto fail_wake;
  status = sql_init(&store->sql, ops, &pg_driver, err);
  if (!status && !(store->pipeline = base_strdup(pipeline, err))) status = WEIR_E_NOMEM;
  if (status) {
    pg_close(&store->sql.base);
  } else {
    *out = store;
  }
  return status;
fail_wake:
  pthread_mutex_destroy(&store->lock);
fail_lock:
  free(store);
  return status;
}

/* ---- sessions and tables ----------------------------------------------------------------------------- */

static weir_status pg_set_up(pg_store *store, weir_error *err) {
  /* What is stronger stays: remote_apply waits for more. Every name has its schema, so that none in the
   * way of search_path is ever taken for ours. */
  char sql[700];
  long long patience = store->session.patience_ns / BASE_NS_PER_MS;
  long long lease = store->lease_ns / BASE_NS_PER_MS;
  snprintf(sql, sizeof(sql),
           "SET search_path=pg_catalog; SET client_min_messages=warning; "
           "SELECT set_config('synchronous_commit', 'on', false) WHERE "
           "current_setting('synchronous_commit') <> 'remote_apply'; "
           "SET statement_timeout=%lld; SET lock_timeout=%lld; "
           "SET idle_in_transaction_session_timeout=%lld; "
           "SET standard_conforming_strings=on",
           patience * 3 / 4, patience / 2, lease ? lease : patience);
  return pq_exec(&store->session, sql, err);
}

static weir_status pg_connect(pg_store *store, const char *uri, weir_error *err) {
  char name[96];
  snprintf(name, sizeof(name), "weir %.64s", store->pipeline);
  store->session.patience_ns = store->lease_ns ? store->lease_ns / 2 : PG_READ_PATIENCE;
  BASE_TRY(pq_open(&store->session, uri, name, store->lease_ns > 0, err));
  store->sql.path = base_strdup(store->session.where, err);
  if (!store->sql.path) return WEIR_E_NOMEM;
  return pg_set_up(store, err);
}

/* A number or a truth. */
static weir_status pg_ask_int(pg_store *store, const char *sql, int64_t *out,
                              weir_error *err) {
  PGresult *result = NULL;
  int size = 0;
  bool prepared = false;
  BASE_TRY(pq_run(&store->session, "", &prepared, sql, NULL, 0, &result, err));
  *out = 0;
  const char *bytes = pq_rows(result) ? pq_value(result, 0, 0, &size) : NULL;
  for (int i = 0; bytes && i < size; i++) *out = *out << 8 | (uint8_t)bytes[i];
  pq_clear(result);
  return WEIR_OK;
}

/* Asked of the catalog itself: to_regclass answers from what a transaction knew when it began to wait for
 * a lock. */
static weir_status pg_find_tables(pg_store *store, int64_t *there, weir_error *err) {
  return pg_ask_int(store,
                    "SELECT count(*) FROM pg_catalog.pg_class c JOIN "
                    "pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
                    "WHERE n.nspname = 'weir' AND c.relname = 'version'",
                    there, err);
}

static weir_status pg_make_tables(pg_store *store, weir_error *err) {
  int64_t there = 0;
  BASE_TRY(pq_exec(&store->session,
                   "BEGIN; SELECT pg_advisory_xact_lock(" PG_ADVISORY_KEY ")", err));
  BASE_TRY(pg_find_tables(store, &there, err));
  if (!there) {
    BASE_TRY(pg_ask_int(
        store, "SELECT count(*) FROM pg_catalog.pg_namespace WHERE nspname = 'weir'",
        &there, err));
    if (!there) BASE_TRY(pq_exec(&store->session, "CREATE SCHEMA weir", err));
    BASE_TRY(pq_exec(&store->session, pg_schema, err));
  }
  return pq_commit(&store->session, err);
}

/* *there: whether there are tables, and of a version that this weir knows. */
static weir_status pg_check_tables(pg_store *store, bool *there, weir_error *err) {
  int64_t found = 0, version = 0;
  BASE_TRY(pg_find_tables(store, &found, err));
  *there = found;
  if (!found) return WEIR_OK;
  BASE_TRY(pg_ask_int(store, "SELECT version FROM weir.version", &version, err));
  if (version == PG_SCHEMA_VERSION) return WEIR_OK;
  return weir_error_set(err, WEIR_E_NOT_IMPLEMENTED, 0,
                        "checkpoint store %s: schema weir has version %lld, this weir "
                        "knows version %d; use "
                        "the weir that made it",
                        store->sql.path, (long long)version, PG_SCHEMA_VERSION);
}

static weir_status pg_need_tables(pg_store *store, weir_error *err) {
  bool there = false;
  BASE_TRY(pg_check_tables(store, &there, err));
  if (there) return WEIR_OK;
  weir_status status = pg_make_tables(store, err);
  if (!status) return pg_check_tables(store, &there, err);
  if (strcmp(err->sqlstate, "42501") != 0) return status;
  /* insufficient_privilege */
  err->code = WEIR_E_INVALID_CONFIG;
  return weir_error_prefix(err, err->code,
                           "the tables of the store cannot be made; as the database's "
                           "owner run CREATE SCHEMA weir AUTHORIZATION <this user>");
}

/* ---- the lease --------------------------------------------------------------------------------------- */

typedef struct pg_who {
  bool found;
  char owner[200];
  int64_t ms_left;
} pg_who;

static weir_status pg_who_row(void *ctx, const sql_value *v, int n, weir_error *err) {
  pg_who *who = ctx;
  (void)n;
  (void)err;
  snprintf(who->owner, sizeof(who->owner), "%.*s", (int)v[0].size,
           (const char *)v[0].data);
  who->ms_left = v[1].i;
  who->found = true;
  return WEIR_OK;
}

/* Retriable: it will be free, or the owner's to the end. */
static weir_status pg_held(pg_store *store, const pg_who *who, weir_error *err) {
  return weir_error_set(
      err, WEIR_E_FENCED, WEIR_ERR_RETRIABLE,
      "checkpoint store %s: pipeline %s is run by %s; its lease expires "
      "in %.1f s unless it is renewed",
      store->sql.path, store->pipeline,
      who->found ? who->owner : "an instance that begins just now",
      (double)who->ms_left / 1000);
}

/* Within the transaction: the row is there, expired, and locked. *lost: it had to be made, and must not
 * have been missing. */
static weir_status pg_lock_lease(pg_store *store, bool *lost, weir_error *err) {
  pg_who who = {0};
  bool free_now = false;
  uint64_t one = 0;
  BASE_TRY(pg_query(&store->sql, PG_LEASE_WHO, NULL, 0, pg_who_row, &who, err));
  if (who.ms_left > 0) return pg_held(store, &who, err);
  sql_value first[] = {sql_int(0), sql_int(0)};
  /* A pipeline that has a deployment has a lease: else numbers would be given a second time. */
  if (!who.found)
    BASE_TRY(sql_get_ints(&store->sql, SQL_META_READ, NULL, 0, &one, 1, lost, err));
  /* Only then: it would wait for whoever has the row locked. */
  if (!who.found)
    BASE_TRY(
        sql_put(&store->sql, (sql_statement)PG_LEASE_MAKE, "lease", first, 2, NULL, err));
  weir_status status = sql_get_ints(&store->sql, (sql_statement)PG_LEASE_LOCK, NULL, 0,
                                    &one, 1, &free_now, err);
  /* lock_not_available: its owner is in the middle of a transaction, or was stopped there. */
  bool busy = status && strcmp(err->sqlstate, "55P03") == 0;
  if (busy || (!status && !free_now)) return pg_held(store, &who, err);
  return status;
}

/* What the old deployment had stays, under a name that no pipeline can have. The lease goes on, so that its
 * owner is fenced. */
static weir_status pg_set_aside(pg_store *store, weir_error *err) {
  static const char *const tables[] = {"meta",   "attempt",  "entry",  "part",
                                       "cursor", "position", "binding"};
  for (size_t i = 0; i < BASE_COUNT(tables); i++) {
    char sql[300];
    /* A pipeline's name is of a-z, 0-9, _ and -. */
    snprintf(sql, sizeof(sql),
             "UPDATE weir.%s SET pipeline='%s.before-%llu' WHERE pipeline='%s'",
             tables[i], store->pipeline, (unsigned long long)store->sql.token,
             store->pipeline);
    BASE_TRY(pq_exec(&store->session, sql, err));
  }
  return WEIR_OK;
}

/* The lease as it was. A new deployment begins also where it is damaged or missing. Nobody can say then what
 * tokens were given; a start, which takes longer, raises them by 2^20 at most, so nanoseconds since 1970 are beyond. */
static weir_status pg_read_lease(pg_store *store, bool lost, bool anew, uint64_t *token,
                                 uint64_t *last, weir_error *err) {
  weir_status status =
      lost ? WEIR_E_CORRUPT : sql_read_lease(&store->sql, token, last, err);
  if (status != WEIR_E_CORRUPT) return status;
  if (lost)
    weir_error_set(err, status, 0, "checkpoint store %s: pipeline %s has no lease row%s",
                   store->sql.path, store->pipeline, sql_damaged);
  if (!anew) return status;
  *token = (uint64_t)base_clock_wall();
  *last = 0;
  return WEIR_OK;
}

static weir_status pg_take(pg_store *store, bool anew, weir_error *err) {
  uint64_t token = 0, last = 0;
  bool lost = false;
  uint8_t deployment[WEIR_UUID_SIZE];
  char host[100] = {0}, owner[160];
  BASE_TRY(base_uuid_new(deployment, err));
  BASE_TRY(pg_lock_lease(store, &lost, err));
  BASE_TRY(pg_read_lease(store, lost, anew, &token, &last, err));
  BASE_TRY(sql_next_token(token, &store->sql.token, err));
  store->sql.last_attempt = last;
  sql_value lease[] = {sql_int(store->sql.token), sql_int(last)};
  BASE_TRY(sql_put(&store->sql, SQL_LEASE_TAKE, "lease", lease, 2, NULL, err));
  if (gethostname(host, sizeof(host) - 1)) snprintf(host, sizeof(host), "unknown");
  snprintf(owner, sizeof(owner), "pid %ld on %s", (long)getpid(), host);
  sql_value own[] = {sql_text(owner),
                     sql_int((uint64_t)(store->lease_ns / BASE_NS_PER_MS))};
  BASE_TRY(pg_run(&store->sql, PG_LEASE_OWN, own, 2, NULL, err));
  if (anew) BASE_TRY(pg_set_aside(store, err));
  sql_value meta[] = {sql_text(store->pipeline),
                      sql_blob(deployment, sizeof(deployment))};
  return sql_put(&store->sql, SQL_META_ADD, "meta", meta, 2, NULL, err);
}

static weir_status pg_own(pg_store *store, bool anew, weir_error *err) {
  BASE_TRY(pg_begin(&store->sql, err));
  weir_status status = pg_take(store, anew, err);
  if (!status && WEIR_FAULT("store.lease.before"))
    status = weir_error_set(err, WEIR_E_IO, 0, "checkpoint store %s: cannot be written",
                            store->sql.path);
  if (!status) status = pq_commit(&store->session, err);
  if (status) {
    /* The server goes on with a session for a moment after its end: the lease's row is not left locked. */
    pg_rollback(&store->sql);
    return status;
  }
  store->renewed_at = store->asked_at;
  if (WEIR_FAULT("store.lease.after"))
    return weir_error_set(err, WEIR_E_IO, 0, "checkpoint store %s: cannot be written",
                          store->sql.path);
  return pg_keep(store, err);
}

/* An older host's struct is shorter. */
static weir_store_postgres pg_where(const weir_store_postgres *given) {
  weir_store_postgres where = {0};
  size_t size = given->struct_size;
  memcpy(&where, given, size && size < sizeof(where) ? size : sizeof(where));
  return where;
}

/* ---- what others call -------------------------------------------------------------------------------- */

weir_status weir_store_open_postgres(const weir_store_postgres *given, weir_store **out,
                                     weir_error *err) {
  pg_store *store = NULL;
  weir_store_postgres where = pg_where(given);
  weir_error local = {0};
  weir_error *e = err ? err : &local;
  BASE_TRY(pg_new(where.pipeline, &pg_ops, &store, e));
  store->lease_ns = where.lease_ns ? where.lease_ns : WEIR_STORE_LEASE_NS;
  weir_status status = pg_connect(store, where.uri, e);
  if (!status) status = pg_need_tables(store, e);
  if (!status) status = pg_own(store, where.new_deployment, e);
  if (status) {
    /* Nothing was done under it, so an answer that was lost leaves no doubt worth the word. */
    e->flags &= ~(uint32_t)WEIR_ERR_IN_DOUBT;
    pg_close(&store->sql.base);
    return status;
  }
  *out = &store->sql.base;
  return WEIR_OK;
}

weir_status weir_store_read_postgres(const weir_store_postgres *given, weir_store **out,
                                     weir_error *err) {
  pg_store *store = NULL;
  weir_store_postgres where = pg_where(given);
  bool there = false;
  uint64_t none = 0;
  BASE_TRY(pg_new(where.pipeline, &pg_reader_ops, &store, err));
  store->sql.base.read_only = true;
  weir_status status = pg_connect(store, where.uri, err);
  if (!status) status = pg_check_tables(store, &there, err);
  if (!status && there)
    status = sql_get_ints(&store->sql, SQL_META_READ, NULL, 0, &none, 1, &there, err);
  if (!status && !there)
    status = weir_error_set(err, WEIR_E_NOT_FOUND, 0,
                            "checkpoint store %s holds nothing of pipeline %s yet",
                            store->sql.path, where.pipeline);
  if (status) {
    pg_close(&store->sql.base);
    return status;
  }
  *out = &store->sql.base;
  return WEIR_OK;
}
