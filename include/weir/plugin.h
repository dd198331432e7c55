/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connector in a shared object: `weir-<name>.so` on $WEIR_PLUGIN_PATH or in <libdir>/weir, or a path
 * that starts with "./" or "/". It exports one symbol, weir_plugin_init.
 *
 *   static const weir_sink_ops ops = {WEIR_ABI_VERSION, sizeof(weir_sink_ops), "mysink", ...};
 *   static const weir_sink_ops *const sinks[] = {&ops};
 *   weir_status weir_plugin_init(uint32_t host_abi, const weir_host *host, weir_plugin *out, weir_error *err) {
 *     if (host_abi < 1) return WEIR_E_NOT_IMPLEMENTED;
 *     out->sinks = sinks; out->n_sinks = 1;
 *     return WEIR_OK;
 *   }
 */
#ifndef WEIR_PLUGIN_H
#define WEIR_PLUGIN_H

#include <weir/sink.h>
#include <weir/source.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { WEIR_LOG_ERROR = 1, WEIR_LOG_WARN = 2, WEIR_LOG_INFO = 3, WEIR_LOG_DEBUG = 4 };

/* Services of the runtime; valid as long as the connector. All functions are thread-safe. */
struct weir_host {
  uint32_t abi_version, struct_size;
  void *ctx; /* first argument of every function */
  /* One line without a break; never a secret, never a row's values. `where` names the connector. */
  void (*log)(void *ctx, int32_t level, const char *where, const char *text);
  int64_t (*monotonic_ns)(void *ctx);
  int64_t (*wall_ns)(void *ctx); /* since 1970, UTC; for people, never for order */
  /* Cryptographically strong. */
  weir_status (*random)(void *ctx, void *out, size_t size, weir_error *err);

  /* Where batches are kept that wait for their target (spool.h), one folder for the pipeline; NULL: none. */
  const char *spool;
  int32_t spool_shared; /* 1: it is the same on every machine that may run the pipeline */
  /* Bytes of a sink that may wait there (a checkpoint is asked for at half, sources are held at all of it), and
   * of published ones that are kept; 0: no limit, none. */
  uint64_t spool_limit, spool_keep;
  /* Asks for a checkpoint soon. NULL: nobody to ask. */
  void (*checkpoint)(void *ctx);
  /* 1: nothing more is to be read from the sources, until as many 0 have come. NULL: nobody to ask. */
  void (*hold)(void *ctx, int32_t on);
};

struct weir_object_ops; /* <weir/object.h>, which is not stable yet */

/* What a shared object offers. Zeroed by the host but for struct_size; arrays are static. */
typedef struct weir_plugin {
  uint32_t struct_size;
  const weir_sink_ops *const *sinks;
  size_t n_sinks;
  const weir_source_ops *const *sources;
  size_t n_sources;
  /* Object stores; the one with scheme "s3" is looked for in weir-s3.so. */
  const struct weir_object_ops *const *stores;
  size_t n_stores;
} weir_plugin;

/* Implemented by the shared object. Called once, before anything else of it. */
typedef weir_status (*weir_plugin_init_fn)(uint32_t host_abi, const weir_host *host,
                                           weir_plugin *out, weir_error *err);
WEIR_API weir_status weir_plugin_init(uint32_t host_abi, const weir_host *host,
                                      weir_plugin *out, weir_error *err);

#ifdef __cplusplus
}
#endif
#endif
