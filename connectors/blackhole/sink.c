/* SPDX-License-Identifier: Apache-2.0 */
/* Sink `blackhole`: counts rows and forgets them. For measuring everything before a sink. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <weir/plugin.h>
#include <weir/sink.h>

extern const weir_sink_ops weir_blackhole_sink_ops;

typedef struct blackhole_sink {
  const weir_host *host;
  weir_schema *schema;
  uint64_t rows, bytes;
} blackhole_sink;

static const weir_option blackhole_options[] = {{0}};

static weir_status create(const weir_host *host, weir_sink *out, weir_error *err) {
  blackhole_sink *s = calloc(1, sizeof(*s));
  if (!s) return weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
  s->host = host;
  out->state = s;
  if (!out->ops) out->ops = &weir_blackhole_sink_ops;
  return WEIR_OK;
}

static void release(weir_sink *sink) {
  blackhole_sink *s = sink->state;
  sink->ops = NULL;
  sink->state = NULL;
  if (s) weir_schema_unref(s->schema);
  free(s);
}

static weir_status contract(weir_sink *sink, const weir_options *options,
                            weir_contract *out, weir_error *err) {
  (void)sink;
  (void)options;
  (void)err;
  out->consistency = WEIR_EPHEMERAL;
  out->topology = WEIR_MULTI_WRITER;
  return WEIR_OK;
}

static weir_status open_sink(weir_sink *sink, const weir_call *call,
                             const weir_options *options, const weir_binding *binding,
                             weir_error *err) {
  blackhole_sink *s = sink->state;
  (void)call;
  (void)options;
  (void)err;
  s->schema = weir_schema_ref(binding->schema);
  return WEIR_OK;
}

static weir_status write_batch(weir_sink *sink, const weir_call *call, weir_batch *batch,
                               weir_write_result *out, weir_error *err) {
  blackhole_sink *s = sink->state;
  (void)call;
  (void)err;
  out->records = (uint64_t)weir_batch_rows(batch);
  out->bytes = weir_batch_bytes(batch);
  s->rows += out->records;
  s->bytes += out->bytes;
  return WEIR_OK;
}

static weir_status schema(weir_sink *sink, struct ArrowSchema *out, weir_error *err) {
  blackhole_sink *s = sink->state;
  if (!s->schema) {
    return weir_error_set(err, WEIR_E_INVALID_STATE, 0, "blackhole sink: not open");
  }
  return weir_schema_export(s->schema, out, err);
}

static uint64_t suggested_write_timeout_ms(weir_sink *sink) {
  (void)sink;
  return 10000;
}

static weir_status close_sink(weir_sink *sink, const weir_call *call, weir_error *err) {
  blackhole_sink *s = sink->state;
  char text[96];
  (void)call;
  (void)err;
  snprintf(text, sizeof(text), "%" PRIu64 " rows, %" PRIu64 " bytes swallowed", s->rows,
           s->bytes);
  if (s->host->log) s->host->log(s->host->ctx, WEIR_LOG_DEBUG, "sink blackhole", text);
  return WEIR_OK;
}

const weir_sink_ops weir_blackhole_sink_ops = {
    .abi_version = WEIR_ABI_VERSION,
    .struct_size = sizeof(weir_sink_ops),
    .name = "blackhole",
    .text = "Counts rows and forgets them.",
    .options = blackhole_options,
    .create = create,
    .release = release,
    .contract = contract,
    .open = open_sink,
    .write_batch = write_batch,
    .schema = schema,
    .suggested_write_timeout_ms = suggested_write_timeout_ms,
    .close = close_sink,
};
