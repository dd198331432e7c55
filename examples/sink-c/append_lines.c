/* SPDX-License-Identifier: Apache-2.0 */
/* The least that a useful sink needs: rows as JSON lines at the end of one file, synced at every
 * checkpoint, so at least once: what a crash cuts off is delivered again, what it left is not removed. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <weir/ndjson.h>
#include <weir/plugin.h>

typedef struct append {
  weir_schema *schema;
  weir_ndjson_encoder *encoder;
  FILE *file;
} append;

static const weir_option options[] = {{.name = "path",
                                       .type = WEIR_OPT_PATH,
                                       .flags = WEIR_OPT_REQUIRED,
                                       .text = "The file that lines are added to."},
                                      {0}};

static weir_status create(const weir_host *host, weir_sink *out, weir_error *err) {
  (void)host;
  out->state = calloc(1, sizeof(append));
  return out->state ? WEIR_OK : weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
}

static void release(weir_sink *sink) {
  append *s = sink->state;
  weir_ndjson_encoder_free(s->encoder);
  weir_schema_unref(s->schema);
  free(s);
  sink->ops = NULL;
}

static weir_status contract(weir_sink *sink, const weir_options *given,
                            weir_contract *out, weir_error *err) {
  (void)sink, (void)given, (void)err;
  out->consistency = WEIR_DURABLE_AT_LEAST_ONCE;
  return WEIR_OK;
}

static weir_status open_file(weir_sink *sink, const weir_call *call,
                             const weir_options *given, const weir_binding *binding,
                             weir_error *err) {
  append *s = sink->state;
  const char *path = weir_options_string(given, "path");
  (void)call;
  s->schema = weir_schema_ref(binding->schema);
  weir_status status = weir_ndjson_encoder_new(s->schema, &s->encoder, err);
  if (status) return status;
  s->file = fopen(path, "ae");
  return s->file ? WEIR_OK : weir_error_errno(err, errno, "cannot open %s", path);
}

static weir_status write_batch(weir_sink *sink, const weir_call *call, weir_batch *batch,
                               weir_write_result *out, weir_error *err) {
  append *s = sink->state;
  const uint8_t *lines = NULL;
  size_t size = 0;
  (void)call;
  weir_status status = weir_ndjson_encoder_write(s->encoder, batch, &lines, &size, err);
  if (status) return status;
  if (fwrite(lines, 1, size, s->file) != size)
    return weir_error_errno(err, errno, "cannot write");
  *out = (weir_write_result){(uint64_t)weir_batch_rows(batch), size};
  return WEIR_OK;
}

static weir_status schema(weir_sink *sink, struct ArrowSchema *out, weir_error *err) {
  return weir_schema_export(((append *)sink->state)->schema, out, err);
}

static weir_status flush(weir_sink *sink, const weir_call *call, weir_error *err) {
  (void)call;
  return fflush(((append *)sink->state)->file)
             ? weir_error_errno(err, errno, "cannot write")
             : WEIR_OK;
}

static weir_status pre_commit(weir_sink *sink, const weir_call *call, uint64_t epoch,
                              weir_bytes *out, weir_error *err) {
  append *s = sink->state;
  (void)epoch, (void)out; /* nothing for a committer: absent */
  weir_status status = flush(sink, call, err);
  if (!status && fdatasync(fileno(s->file)))
    status = weir_error_errno(err, errno, "cannot sync");
  return status;
}

static uint64_t write_timeout_ms(weir_sink *sink) {
  (void)sink;
  return 10000;
}

static weir_status close_file(weir_sink *sink, const weir_call *call, weir_error *err) {
  append *s = sink->state;
  (void)call;
  return fclose(s->file) ? weir_error_errno(err, errno, "cannot write") : WEIR_OK;
}

static const weir_sink_ops ops = {.abi_version = WEIR_ABI_VERSION,
                                  .struct_size = sizeof(ops),
                                  .name = "append-lines",
                                  .text = "Rows as JSON lines at the end of one file.",
                                  .options = options,
                                  .create = create,
                                  .release = release,
                                  .contract = contract,
                                  .open = open_file,
                                  .write_batch = write_batch,
                                  .schema = schema,
                                  .pre_commit = pre_commit,
                                  .suggested_write_timeout_ms = write_timeout_ms,
                                  .flush = flush,
                                  .close = close_file};

weir_status weir_plugin_init(uint32_t host_abi, const weir_host *host, weir_plugin *out,
                             weir_error *err) {
  static const weir_sink_ops *const sinks[] = {&ops};
  (void)host, (void)host_abi, (void)err; /* any host knows ABI 1 */
  out->sinks = sinks;
  out->n_sinks = 1;
  return WEIR_OK;
}
