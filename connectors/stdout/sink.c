/* SPDX-License-Identifier: Apache-2.0 */
/* Sink `stdout`: rows as lines on standard output, for people and pipes. The only code of the library
 * that writes there. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <weir/csv.h>
#include <weir/ndjson.h>
#include <weir/plugin.h>
#include <weir/sink.h>

extern const weir_sink_ops weir_stdout_sink_ops;

typedef struct stdout_sink {
  weir_schema *schema;
  weir_ndjson_encoder *ndjson; /* one of the two */
  weir_csv_encoder *csv;
  int begun; /* the header is out */
} stdout_sink;

static const weir_option stdout_options[] = {
    {"format", WEIR_OPT_ENUM, 0, "ndjson", 0, 0, "ndjson|csv", "Format of the lines."},
    {"csv.header", WEIR_OPT_BOOL, 0, "true", 0, 0, NULL,
     "Csv begins with the columns' names."},
    {"csv.delimiter", WEIR_OPT_STRING, 0, ",", 0, 0, NULL,
     "Character between fields of csv."},
    {"csv.quote", WEIR_OPT_STRING, 0, "\"", 0, 0, NULL,
     "Character around fields of csv that need it; empty for none."},
    {"csv.null", WEIR_OPT_STRING, 0, "", 0, 0, NULL, "Text of null in csv."},
    {0},
};

static weir_status create(const weir_host *host, weir_sink *out, weir_error *err) {
  (void)host;
  out->state = calloc(1, sizeof(stdout_sink));
  if (!out->state) return weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
  if (!out->ops) out->ops = &weir_stdout_sink_ops;
  return WEIR_OK;
}

static void release(weir_sink *sink) {
  stdout_sink *s = sink->state;
  sink->ops = NULL;
  sink->state = NULL;
  if (!s) return;
  weir_ndjson_encoder_free(s->ndjson);
  weir_csv_encoder_free(s->csv);
  weir_schema_unref(s->schema);
  free(s);
}

/* One stream, so one writer. */
static weir_status contract(weir_sink *sink, const weir_options *options,
                            weir_contract *out, weir_error *err) {
  (void)sink;
  (void)options;
  (void)err;
  out->consistency = WEIR_EPHEMERAL;
  out->topology = WEIR_SINGLETON;
  return WEIR_OK;
}

/* The encoder that the options ask for, in *to. */
static weir_status make_encoder(const weir_options *options, weir_schema *schema,
                                stdout_sink *to, weir_error *err) {
  if (strcmp(weir_options_string(options, "format"), "csv") != 0) {
    return weir_ndjson_encoder_new(schema, &to->ndjson, err);
  }
  weir_csv_options csv = {.struct_size = sizeof(csv),
                          .no_header = !weir_options_bool(options, "csv.header"),
                          .delimiter = weir_options_string(options, "csv.delimiter"),
                          .quote = weir_options_string(options, "csv.quote"),
                          .null_text = weir_options_string(options, "csv.null")};
  return weir_csv_encoder_new(schema, &csv, &to->csv, err);
}

static weir_status resolve_schema(weir_sink *sink, const weir_call *call,
                                  const weir_options *options, weir_schema *input,
                                  weir_binding *out, weir_error *err) {
  stdout_sink probe = {0};
  (void)sink;
  (void)call;
  weir_status status = make_encoder(options, input, &probe, err);
  weir_ndjson_encoder_free(probe.ndjson);
  weir_csv_encoder_free(probe.csv);
  if (status) return weir_error_prefix(err, status, "%s", weir_options_where(options));
  return weir_binding_logical(input, out, err);
}

static weir_status open_sink(weir_sink *sink, const weir_call *call,
                             const weir_options *options, const weir_binding *binding,
                             weir_error *err) {
  stdout_sink *s = sink->state;
  (void)call;
  weir_status status = make_encoder(options, binding->schema, s, err);
  if (!status) s->schema = weir_schema_ref(binding->schema);
  return status;
}

/* Waits until a non-blocking standard output takes more. */
static weir_status wait_writable(const weir_call *call, weir_error *err) {
  enum { SLICE_MS = 200 }; /* how soon a cancelled call is noticed */
  struct pollfd wait = {.fd = STDOUT_FILENO, .events = POLLOUT};
  int ready = 0;
  while (ready == 0 || (ready < 0 && errno == EINTR)) {
    weir_status status = weir_call_check(call, "write to standard output", err);
    if (status) return status;
    ready = poll(&wait, 1, SLICE_MS);
  }
  return ready > 0 ? WEIR_OK
                   : weir_error_errno(err, errno, "cannot write to standard output");
}

static weir_status write_all(const weir_call *call, const uint8_t *data, size_t size,
                             weir_error *err) {
  while (size) {
    ssize_t n = write(STDOUT_FILENO, data, size);
    if (n >= 0) {
      data += n;
      size -= (size_t)n;
      continue;
    }
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
      weir_status status = wait_writable(call, err);
      if (status) return status;
      continue;
    }
    if (errno == EPIPE) {
      weir_error_errno(
          err, EPIPE,
          "standard output was closed by its reader; rows after this are lost");
      return WEIR_E_IO;
    }
    return weir_error_errno(err, errno, "cannot write to standard output");
  }
  return WEIR_OK;
}

/* A write to a pipe without a reader raises SIGPIPE, whose default ends the host. Signal dispositions
 * are the host's, so the signal is blocked on this thread alone, and taken if this write raised it. */
static weir_status write_guarded(const weir_call *call, const uint8_t *data, size_t size,
                                 weir_error *err) {
  sigset_t pipe_set, pending, old;
  sigemptyset(&pipe_set);
  sigaddset(&pipe_set, SIGPIPE);
  sigpending(&pending);
  pthread_sigmask(SIG_BLOCK, &pipe_set, &old);
  weir_status status = write_all(call, data, size, err);
  if (!sigismember(&pending, SIGPIPE)) {
    struct timespec now = {0, 0};
    while (sigtimedwait(&pipe_set, NULL, &now) < 0 && errno == EINTR) {
    }
  }
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  return status;
}

/* Before the first rows. */
static weir_status write_header(stdout_sink *s, const weir_call *call, weir_error *err) {
  const uint8_t *data = NULL;
  size_t size = 0;
  if (!s->csv || s->begun) return WEIR_OK;
  weir_csv_encoder_header(s->csv, &data, &size);
  weir_status status = size ? write_guarded(call, data, size, err) : WEIR_OK;
  s->begun = !status;
  return status;
}

static weir_status write_batch(weir_sink *sink, const weir_call *call, weir_batch *batch,
                               weir_write_result *out, weir_error *err) {
  stdout_sink *s = sink->state;
  const uint8_t *data = NULL;
  size_t size = 0;
  if (!s->schema)
    return weir_error_set(err, WEIR_E_INVALID_STATE, 0, "stdout sink: not open");
  weir_status status =
      s->csv ? weir_csv_encoder_write(s->csv, batch, &data, &size, err)
             : weir_ndjson_encoder_write(s->ndjson, batch, &data, &size, err);
  if (!status) status = write_header(s, call, err);
  if (!status) status = write_guarded(call, data, size, err);
  if (status) return status;
  out->records = (uint64_t)weir_batch_rows(batch);
  out->bytes = size;
  return WEIR_OK;
}

static weir_status schema(weir_sink *sink, struct ArrowSchema *out, weir_error *err) {
  stdout_sink *s = sink->state;
  if (!s->schema)
    return weir_error_set(err, WEIR_E_INVALID_STATE, 0, "stdout sink: not open");
  return weir_schema_export(s->schema, out, err);
}

/* A pager may hold its input for as long as somebody reads: no deadline of our own making. */
static uint64_t suggested_write_timeout_ms(weir_sink *sink) {
  (void)sink;
  return UINT64_C(24) * 3600 * 1000;
}

static weir_status close_sink(weir_sink *sink, const weir_call *call, weir_error *err) {
  (void)sink;
  (void)call;
  (void)err;
  return WEIR_OK;
}

const weir_sink_ops weir_stdout_sink_ops = {
    .abi_version = WEIR_ABI_VERSION,
    .struct_size = sizeof(weir_sink_ops),
    .name = "stdout",
    .text = "Rows as lines on standard output.",
    .options = stdout_options,
    .create = create,
    .release = release,
    .contract = contract,
    .resolve_schema = resolve_schema,
    .open = open_sink,
    .write_batch = write_batch,
    .schema = schema,
    .suggested_write_timeout_ms = suggested_write_timeout_ms,
    .close = close_sink,
};
