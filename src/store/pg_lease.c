/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The PostgreSQL store: holding the lease. It expires by the server's clock `lease_ns` after the server
 * confirmed it last. The keeper renews it every third of that; whoever finds it not renewed for two thirds,
 * by this machine's monotonic clock, asks the server before anything else and goes on only if the answer
 * is that nobody else has it. So clocks decide when to ask, never who owns.
 */
#include <string.h>

#include "store/pg.h"

/* Lock held. */
static weir_status lease_renew(pg_store *store, weir_error *err) {
  uint64_t changes = 0;
  sql_value token = sql_int(store->sql.token);
  int64_t now = base_clock_mono();
  BASE_TRY(pg_run(&store->sql, PG_LEASE_RENEW, &token, 1, &changes, err));
  if (changes == 1) {
    store->renewed_at = now;
    return WEIR_OK;
  }
  return weir_error_set(
      err, WEIR_E_FENCED, 0,
      "checkpoint store %s: the lease with token %llu is lost: a newer owner has taken "
      "it; nothing more is written",
      store->sql.path, (unsigned long long)store->sql.token);
}

static int64_t lease_doubted_at(const pg_store *store) {
  return store->renewed_at + store->lease_ns / 3 * 2;
}

static void *lease_main(void *arg) {
  pg_store *store = arg;
  int64_t again =
      0; /* after a failure that may pass, such as a lock held by somebody else */
  pthread_mutex_lock(&store->lock);
  while (!store->quit && !store->why.code) {
    int64_t due = store->renewed_at + store->lease_ns / 3;
    if (due < again) due = again;
    if (base_clock_mono() < due) {
      base_cond_wait_until(&store->wake, &store->lock, due);
      continue;
    }
    weir_error err = {0};
    if (!lease_renew(store, &err)) continue;
    again = base_clock_mono() + store->lease_ns / 12;
    if (!(err.flags & WEIR_ERR_RETRIABLE) || again > lease_doubted_at(store))
      store->why = err;
  }
  pthread_mutex_unlock(&store->lock);
  return NULL;
}

weir_status pg_keep(pg_store *store, weir_error *err) {
  weir_status status =
      base_thread_start(&store->keeper, "weir-lease", lease_main, store, err);
  store->has_keeper = !status;
  return status;
}

void pg_stop_keeping(pg_store *store) {
  if (!store->has_keeper) return;
  pthread_mutex_lock(&store->lock);
  store->quit = true;
  pthread_cond_broadcast(&store->wake);
  pthread_mutex_unlock(&store->lock);
  pthread_join(store->keeper, NULL);
  store->has_keeper = false;
}

/* Lock held. What the keeper met with ends the store; what is in doubt is asked. */
static weir_status lease_held(pg_store *store, bool ask, weir_error *err) {
  if (!store->why.code && (ask || base_clock_mono() > lease_doubted_at(store))) {
    weir_error why = {0};
    if (lease_renew(store, &why)) store->why = why;
  }
  if (!store->why.code) return WEIR_OK;
  *err = store->why;
  return store_break(&store->sql.base, err->code, err);
}

weir_status pg_load(weir_store *base, weir_store_state **out, weir_error *err) {
  pg_store *store = (pg_store *)base;
  pthread_mutex_lock(&store->lock);
  weir_status status = sql_load(base, out, err);
  pthread_mutex_unlock(&store->lock);
  return status;
}

weir_status pg_apply(weir_store *base, const store_step *step, weir_error *err) {
  pg_store *store = (pg_store *)base;
  pthread_mutex_lock(&store->lock);
  weir_status status = lease_held(store, false, err);
  if (!status) status = sql_apply(base, step, err);
  pthread_mutex_unlock(&store->lock);
  return status;
}

weir_status pg_check_lease(weir_store *base, weir_error *err) {
  pg_store *store = (pg_store *)base;
  pthread_mutex_lock(&store->lock);
  weir_status status = lease_held(store, true, err);
  pthread_mutex_unlock(&store->lock);
  return status;
}

weir_status pg_watch(weir_store *base, weir_error *err) {
  pg_store *store = (pg_store *)base;
  /* Taken: the keeper is asking just now. */
  if (pthread_mutex_trylock(&store->lock)) return WEIR_OK;
  weir_status status = lease_held(store, false, err);
  pthread_mutex_unlock(&store->lock);
  return status;
}
