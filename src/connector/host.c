/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "connector/inside.h"

struct connector_host {
  weir_host pub;
  _Atomic size_t refs;
  pthread_mutex_t
      mutex; /* held while the log is written, so that mute can say 'never again' */
  bool muted;
  base_log log;
  char *spool;
  void *pipeline;
  void (*checkpoint)(void *ctx); /* NULL: there is no pipeline */
  void (*hold)(void *ctx, int32_t on);
};

static void host_log(void *ctx, int32_t level, const char *where, const char *text) {
  connector_host *host = ctx;
  pthread_mutex_lock(&host->mutex);
  if (!host->muted)
    base_log_printf(&host->log, level, where ? where : "", "%s", text ? text : "");
  pthread_mutex_unlock(&host->mutex);
}

static int64_t host_monotonic(void *ctx) {
  (void)ctx;
  return base_clock_mono();
}

static int64_t host_wall(void *ctx) {
  (void)ctx;
  return base_clock_wall();
}

static weir_status host_random(void *ctx, void *out, size_t size, weir_error *err) {
  (void)ctx;
  return base_random(out, size, err);
}

static void host_checkpoint(void *ctx) {
  connector_host *host = ctx;
  pthread_mutex_lock(&host->mutex);
  if (!host->muted && host->checkpoint) host->checkpoint(host->pipeline);
  pthread_mutex_unlock(&host->mutex);
}

static void host_hold(void *ctx, int32_t on) {
  connector_host *host = ctx;
  pthread_mutex_lock(&host->mutex);
  if (!host->muted && host->hold) host->hold(host->pipeline, on);
  pthread_mutex_unlock(&host->mutex);
}

connector_host *connector_host_new(const base_log *log, weir_error *err) {
  connector_host *host = base_calloc(1, sizeof(*host), err);
  if (!host) return NULL;
  if (base_mutex_init(&host->mutex, err)) {
    free(host);
    return NULL;
  }
  atomic_init(&host->refs, 1);
  if (log) host->log = *log;
  host->pub = (weir_host){.abi_version = WEIR_ABI_VERSION,
                          .struct_size = sizeof(weir_host),
                          .ctx = host,
                          .log = host_log,
                          .monotonic_ns = host_monotonic,
                          .wall_ns = host_wall,
                          .random = host_random,
                          .checkpoint = host_checkpoint,
                          .hold = host_hold};
  return host;
}

connector_host *connector_host_ref(connector_host *host) {
  atomic_fetch_add(&host->refs, 1);
  return host;
}

void connector_host_unref(connector_host *host) {
  if (!host || atomic_fetch_sub(&host->refs, 1) != 1) return;
  pthread_mutex_destroy(&host->mutex);
  free(host->spool);
  free(host);
}

weir_status connector_host_spool(connector_host *host, const char *folder, bool shared,
                                 uint64_t limit, uint64_t keep, weir_error *err) {
  host->spool = base_strdup(folder, err);
  if (!host->spool) return WEIR_E_NOMEM;
  host->pub.spool = host->spool;
  host->pub.spool_shared = shared;
  host->pub.spool_limit = limit;
  host->pub.spool_keep = keep;
  return WEIR_OK;
}

void connector_host_serve(connector_host *host, void *ctx, void (*checkpoint)(void *ctx),
                          void (*hold)(void *ctx, int32_t on)) {
  pthread_mutex_lock(&host->mutex);
  host->pipeline = ctx;
  host->checkpoint = checkpoint;
  host->hold = hold;
  pthread_mutex_unlock(&host->mutex);
}

void connector_host_mute(connector_host *host) {
  pthread_mutex_lock(&host->mutex);
  host->muted = true;
  pthread_mutex_unlock(&host->mutex);
}

const weir_host *connector_host_get(connector_host *host) {
  return &host->pub;
}
