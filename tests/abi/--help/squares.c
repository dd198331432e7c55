/* SPDX-License-Identifier: Apache-2.0 */
/* A replayable source: the squares of 0, 1, 2 .. up to `rows`. It makes JSON lines and lets weir's decoder
 * turn them into a batch; a source with columns of its own calls weir_batch_new instead. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/ndjson.h>
#include <weir/plugin.h>

typedef struct squares {
  weir_schema *schema;
  weir_ndjson_decoder *decoder;
  uint64_t next, rows; /* the row to come is our position */
} squares;

static const weir_option options[] = {{.name = "rows",
                                       .type = WEIR_OPT_INT,
                                       .default_value = "1000",
                                       .max = INT64_C(1) << 31,
                                       .text = "How many rows there are."},
                                      {0}};

static weir_status create(const weir_host *host, weir_source *out, weir_error *err) {
  (void)host;
  out->state = calloc(1, sizeof(squares));
  return out->state ? WEIR_OK : weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
}

static void release(weir_source *source) {
  squares *s = source->state;
  weir_ndjson_decoder_free(s->decoder);
  weir_schema_unref(s->schema);
  free(s);
  source->ops = NULL;
}

static weir_status contract(weir_source *source, const weir_options *given,
                            weir_source_contract *out, weir_error *err) {
  (void)source, (void)given, (void)err;
  out->replay = WEIR_SOURCE_REPLAYABLE;
  return WEIR_OK;
}

static weir_status resolve_schema(weir_source *source, const weir_call *call,
                                  const weir_options *given, weir_schema **out,
                                  weir_error *err) {
  static const char *const names[] = {"n", "square"}, *const types[] = {
                                                          "uint64 not null",
                                                          "uint64 not null"};
  (void)source, (void)call, (void)given;
  return weir_schema_from_types(names, types, 2, out, err);
}

/* Positions come back from the checkpoint store: bytes from outside. */
static weir_status seek(weir_source *source, const weir_call *call,
                        const weir_bytes *position, weir_error *err) {
  squares *s = source->state;
  uint64_t at = 0;
  (void)call;
  if (position->release && position->size == sizeof(at))
    memcpy(&at, position->data, sizeof(at));
  if ((position->release && position->size != sizeof(at)) || at > s->rows)
    return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                          "this position is not one of %" PRIu64 " squares", s->rows);
  s->next = at;
  return WEIR_OK;
}

static weir_status open_source(weir_source *source, const weir_call *call,
                               const weir_options *given, const weir_bytes *position,
                               weir_error *err) {
  squares *s = source->state;
  s->rows = (uint64_t)weir_options_int(given, "rows");
  weir_status status = resolve_schema(source, call, given, &s->schema, err);
  if (!status) status = weir_ndjson_decoder_new(s->schema, NULL, &s->decoder, err);
  return status ? status : seek(source, call, position, err);
}

static weir_status read_batch(weir_source *source, const weir_call *call, int32_t *what,
                              weir_batch **out, weir_error *err) {
  enum { LINES = 1000 };
  squares *s = source->state;
  char text[LINES * 64];
  size_t size = 0, used = 0;
  uint64_t n = s->next;
  (void)call;
  for (; n < s->rows && n < s->next + LINES; n++)
    size += (size_t)snprintf(text + size, 64,
                             "{\"n\":%" PRIu64 ",\"square\":%" PRIu64 "}\n", n, n * n);
  weir_status status =
      size ? weir_ndjson_decoder_feed(s->decoder, text, size, 0, &used, out, err)
           : WEIR_OK;
  if (!status && size) status = weir_ndjson_decoder_flush(s->decoder, out, err);
  if (status) return status;
  *what = size ? WEIR_READ_BATCH : WEIR_READ_END;
  s->next = n;
  return WEIR_OK;
}

static weir_status position(weir_source *source, weir_bytes *out, weir_error *err) {
  squares *s = source->state;
  return weir_bytes_copy(out, &s->next, sizeof(s->next), err);
}

static weir_status close_source(weir_source *source, const weir_call *call,
                                weir_error *err) {
  (void)source, (void)call, (void)err;
  return WEIR_OK;
}

static const weir_source_ops ops = {.abi_version = WEIR_ABI_VERSION,
                                    .struct_size = sizeof(ops),
                                    .name = "squares",
                                    .text = "The squares of the numbers from 0 on.",
                                    .options = options,
                                    .create = create,
                                    .release = release,
                                    .contract = contract,
                                    .resolve_schema = resolve_schema,
                                    .open = open_source,
                                    .read = read_batch,
                                    .position = position,
                                    .seek = seek,
                                    .close = close_source};

weir_status weir_plugin_init(uint32_t host_abi, const weir_host *host, weir_plugin *out,
                             weir_error *err) {
  static const weir_source_ops *const sources[] = {&ops};
  (void)host, (void)host_abi, (void)err; /* any host knows ABI 1 */
  out->sources = sources;
  out->n_sources = 1;
  return WEIR_OK;
}
