/* SPDX-License-Identifier: Apache-2.0 */
#include "encoder.h"

#include <stdlib.h>
#include <string.h>
#include <weir/ndjson.h>

#include "disk.h"

typedef struct ndjson_state {
  weir_schema *schema;
  weir_ndjson_encoder *encoder; /* NULL: made by the next write */
  file_encoder_out out;
  void *ctx;
} ndjson_state;

weir_status file_encoder_parquet_only(const weir_options *options, const char *format,
                                      weir_error *err) {
  static const char *const names[] = {"encodings", "effort", "data_page_version",
                                      "column_encoding", "bloom_filter"};
  for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
    if (!weir_options_given(options, names[i])) continue;
    return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                          "%s: option '%s' goes with format parquet, not with %s",
                          weir_options_where(options), names[i], format);
  }
  return WEIR_OK;
}

weir_status file_encoder_plain_only(const weir_options *options, const char *format,
                                    weir_error *err) {
  const char *compression = weir_options_string(options, "compression");
  if (weir_options_given(options, "compression") && strcmp(compression, "none") != 0) {
    return weir_error_set(
        err, WEIR_E_INVALID_CONFIG, 0,
        "%s: compression '%s' does not go with format %s, whose files are "
        "written plain; expected none",
        weir_options_where(options), compression, format);
  }
  return file_encoder_parquet_only(options, format, err);
}

static weir_status ndjson_configure(const weir_options *options,
                                    file_encoder_config *config, weir_error *err) {
  (void)config;
  return file_encoder_plain_only(options, "ndjson", err);
}

static weir_status ndjson_check(const file_encoder_config *config, weir_schema *schema,
                                weir_error *err) {
  (void)config;
  weir_ndjson_encoder *encoder = NULL;
  weir_status status = weir_ndjson_encoder_new(schema, &encoder, err);
  weir_ndjson_encoder_free(encoder);
  return status;
}

static void ndjson_free(void *state) {
  ndjson_state *s = state;
  if (!s) return;
  weir_ndjson_encoder_free(s->encoder);
  weir_schema_unref(s->schema);
  free(s);
}

static weir_status ndjson_create(const file_encoder_config *config, weir_schema *schema,
                                 file_encoder_out out, void *ctx, void **state,
                                 weir_error *err) {
  (void)config;
  ndjson_state *s = calloc(1, sizeof(*s));
  if (!s) return weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
  s->schema = weir_schema_ref(schema);
  s->out = out;
  s->ctx = ctx;
  *state = s;
  return WEIR_OK;
}

static weir_status ndjson_write(void *state, weir_batch *batch, weir_error *err) {
  ndjson_state *s = state;
  const uint8_t *data = NULL;
  size_t size = 0;
  if (!s->encoder) FILE_TRY(weir_ndjson_encoder_new(s->schema, &s->encoder, err));
  weir_status status = weir_ndjson_encoder_write(s->encoder, batch, &data, &size, err);
  if (!status) status = s->out(s->ctx, data, size, err);
  return status;
}

static void ndjson_trim(void *state) {
  ndjson_state *s = state;
  weir_ndjson_encoder_free(s->encoder);
  s->encoder = NULL;
}

static uint64_t ndjson_pending(const void *state) {
  (void)state;
  return 0;
}

static weir_status ndjson_finish(void *state, weir_error *err) {
  (void)state;
  (void)err;
  return WEIR_OK;
}

static const file_encoder_format ndjson = {
    .name = "ndjson",
    .extension = "ndjson",
    .configure = ndjson_configure,
    .check = ndjson_check,
    .create = ndjson_create,
    .write = ndjson_write,
    .pending = ndjson_pending,
    .trim = ndjson_trim,
    .finish = ndjson_finish,
    .free = ndjson_free,
};

static const file_encoder_format *const formats[] = {
    &file_encoder_parquet, &file_encoder_arrow, &file_encoder_csv, &ndjson};

weir_status file_encoder_configure(const weir_options *options, file_encoder_config *out,
                                   weir_error *err) {
  file_encoder_config config = {0};
  const char *name = weir_options_string(options, "format");
  for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++) {
    if (strcmp(formats[i]->name, name) == 0) config.format = formats[i];
  }
  static const char *const csv[] = {"csv.header", "csv.delimiter", "csv.quote",
                                    "csv.null"};
  for (size_t i = 0; strcmp(name, "csv") != 0 && i < sizeof(csv) / sizeof(*csv); i++) {
    if (!weir_options_given(options, csv[i])) continue;
    return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                          "%s: option '%s' goes with format csv, not with %s",
                          weir_options_where(options), csv[i], name);
  }
  if (!config.format) {
    return weir_error_set(err, WEIR_E_NOT_IMPLEMENTED, 0,
                          "%s: no encoder for format '%s'", weir_options_where(options),
                          name);
  }
  weir_status status = config.format->configure(options, &config, err);
  if (!status) *out = config;
  return status;
}
