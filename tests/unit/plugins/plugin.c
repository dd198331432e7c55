/* SPDX-License-Identifier: Apache-2.0 */
/* A shared object with connectors, good and bad, for test_connector_registry. One file, built once per
 * PLUGIN_* definition; it uses the public headers alone and calls nothing of the library. */
#include <string.h>
#include <weir/plugin.h>

#include "store.h"

static const weir_option options[] = {{.name = "path",
                                       .type = WEIR_OPT_PATH,
                                       .flags = WEIR_OPT_REQUIRED,
                                       .text = "Where to."},
                                      {0}};

static weir_status create(const weir_host *host, weir_sink *out, weir_error *err) {
  (void)host, (void)err;
  out->state = NULL;
  return WEIR_OK;
}
static void release(weir_sink *sink) {
  sink->ops = NULL;
}
static weir_status open_sink(weir_sink *sink, const weir_call *call,
                             const weir_options *o, const weir_binding *binding,
                             weir_error *err) {
  (void)sink, (void)call, (void)o, (void)binding, (void)err;
  return WEIR_OK;
}
static weir_status write_batch(weir_sink *sink, const weir_call *call, weir_batch *batch,
                               weir_write_result *out, weir_error *err) {
  (void)sink, (void)call, (void)batch, (void)out, (void)err;
  return WEIR_E_IO;
}
static weir_status schema(weir_sink *sink, struct ArrowSchema *out, weir_error *err) {
  (void)sink, (void)out, (void)err;
  return WEIR_E_IO;
}
static uint64_t timeout_ms(weir_sink *sink) {
  (void)sink;
  return 1000;
}
static weir_status close_sink(weir_sink *sink, const weir_call *call, weir_error *err) {
  (void)sink, (void)call, (void)err;
  return WEIR_OK;
}

#define SINK(name_)                          \
  {.abi_version = WEIR_ABI_VERSION,          \
   .struct_size = sizeof(weir_sink_ops),     \
   .name = (name_),                          \
   .text = "A sink of a plugin.",            \
   .options = options,                       \
   .create = create,                         \
   .release = release,                       \
   .open = open_sink,                        \
   .write_batch = write_batch,               \
   .schema = schema,                         \
   .suggested_write_timeout_ms = timeout_ms, \
   .close = close_sink}

static const weir_sink_ops good = SINK("good");
static const weir_sink_ops second = SINK("second");

static weir_status source_create(const weir_host *host, weir_source *out,
                                 weir_error *err) {
  (void)host, (void)out, (void)err;
  return WEIR_OK;
}
static void source_release(weir_source *source) {
  source->ops = NULL;
}
static weir_status source_resolve(weir_source *source, const weir_call *call,
                                  const weir_options *o, weir_schema **out,
                                  weir_error *err) {
  (void)source, (void)call, (void)o, (void)out, (void)err;
  return WEIR_E_IO;
}
static weir_status source_open(weir_source *source, const weir_call *call,
                               const weir_options *o, const weir_bytes *position,
                               weir_error *err) {
  (void)source, (void)call, (void)o, (void)position, (void)err;
  return WEIR_E_IO;
}
static weir_status source_read(weir_source *source, const weir_call *call, int32_t *what,
                               weir_batch **out, weir_error *err) {
  (void)source, (void)call, (void)what, (void)out, (void)err;
  return WEIR_E_IO;
}
static weir_status source_position(weir_source *source, weir_bytes *out,
                                   weir_error *err) {
  (void)source, (void)out, (void)err;
  return WEIR_E_IO;
}
static weir_status source_close(weir_source *source, const weir_call *call,
                                weir_error *err) {
  (void)source, (void)call, (void)err;
  return WEIR_OK;
}
static const weir_source_ops good_source = {.abi_version = WEIR_ABI_VERSION,
                                            .struct_size = sizeof(weir_source_ops),
                                            .name = "good",
                                            .text = "A source of a plugin.",
                                            .options = options,
                                            .create = source_create,
                                            .release = source_release,
                                            .resolve_schema = source_resolve,
                                            .open = source_open,
                                            .read = source_read,
                                            .position = source_position,
                                            .close = source_close};

static const weir_sink_ops *const one_sink[] = {&good};
static const weir_sink_ops *const two_sinks[] = {&good, &second};
static const weir_sink_ops *const no_table[] = {NULL};
static const weir_source_ops *const one_source[] = {&good_source};
static const weir_source_ops *const half_sources[] = {&good_source, NULL};
static const weir_object_ops *const one_store[] = {&store_ops};
static const weir_object_ops *const half_stores[] = {&store_ops, NULL};

#if defined(PLUGIN_NOINIT)
#define PLUGIN_INIT weir_plugin_other
WEIR_API weir_status weir_plugin_other(uint32_t host_abi, const weir_host *host,
                                       weir_plugin *out, weir_error *err);
#else
#define PLUGIN_INIT weir_plugin_init
#endif

static int calls;

weir_status PLUGIN_INIT(uint32_t host_abi, const weir_host *host, weir_plugin *out,
                        weir_error *err) {
  (void)one_sink, (void)two_sinks, (void)no_table, (void)one_source, (void)half_sources;
  (void)one_store, (void)half_stores;
  /* A second call is the host's fault. */
  if (host_abi != WEIR_ABI_VERSION || calls++ || !host->log || !host->random ||
      out->struct_size != sizeof(*out) || out->sinks || out->n_sources) {
    return WEIR_E_INTERNAL;
  }
  host->log(host->ctx, WEIR_LOG_INFO, "plugin", "loaded");
#if defined(PLUGIN_GOOD)
  out->sinks = one_sink;
  out->n_sinks = 1;
  out->sources = one_source;
  out->n_sources = 1;
#elif defined(PLUGIN_TWO)
  out->sinks = two_sinks;
  out->n_sinks = 2;
#elif defined(PLUGIN_NULLS)
  out->sinks = no_table;
  out->n_sinks = 1;
#elif defined(PLUGIN_MANYSOURCES)
  out->sources = one_source;
  out->n_sources = 1001;
#elif defined(PLUGIN_NULLSOURCE)
  out->sources = half_sources;
  out->n_sources = 2;
#elif defined(PLUGIN_BADSOURCE)
  static weir_source_ops bad;
  static const weir_source_ops *const bads[] = {&bad};
  bad = good_source;
  bad.read = NULL;
  out->sources = bads;
  out->n_sources = 1;
#elif defined(PLUGIN_HOLLOW)
  out->stores = one_store;
  out->n_stores = 1;
#elif defined(PLUGIN_NULLSTORE)
  out->stores = half_stores;
  out->n_stores = 2;
#elif defined(PLUGIN_NOSTORES)
  out->n_stores = 1;
#elif defined(PLUGIN_BADSTORE)
  static weir_object_ops bad;
  static const weir_object_ops *const bads[] = {&bad};
  bad = store_ops;
  bad.uploads_list = NULL;
  out->stores = bads;
  out->n_stores = 1;
#elif defined(PLUGIN_SHORTSTORE)
  static weir_object_ops short_one;
  static const weir_object_ops *const shorts[] = {&short_one};
  short_one = store_ops;
  short_one.struct_size = 64;
  out->stores = shorts;
  out->n_stores = 1;
#elif defined(PLUGIN_MANY)
  out->n_sinks = 3;
#elif defined(PLUGIN_OLDABI)
  static weir_sink_ops old;
  static const weir_sink_ops *const olds[] = {&old};
  old = good;
  old.abi_version = 99;
  out->sinks = olds;
  out->n_sinks = 1;
#elif defined(PLUGIN_MISSING)
  static weir_sink_ops missing;
  static const weir_sink_ops *const missings[] = {&missing};
  missing = good;
  missing.write_batch = NULL;
  out->sinks = missings;
  out->n_sinks = 1;
#elif defined(PLUGIN_REFUSES)
  if (err) {
    err->code = WEIR_E_NOT_IMPLEMENTED;
    strcpy(err->message, "needs a newer kernel");
  }
  return WEIR_E_NOT_IMPLEMENTED;
#endif
  (void)err;
  return WEIR_OK;
}
