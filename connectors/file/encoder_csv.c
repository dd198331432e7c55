/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "disk.h"
#include "encoder.h"

typedef struct csv_state {
  const file_encoder_config *config;
  weir_schema *schema;
  weir_csv_encoder *encoder; /* NULL: made when it is needed */
  file_encoder_out out;
  void *ctx;
  int begun; /* the header is out */
} csv_state;

static weir_csv_options options_of(const file_encoder_config *config) {
  return (weir_csv_options){.struct_size = sizeof(weir_csv_options),
                            .no_header = config->csv.no_header,
                            .delimiter = config->csv.delimiter,
                            .quote = config->csv.quote,
                            .null_text = config->csv.null_text};
}

static weir_status csv_configure(const weir_options *options, file_encoder_config *config,
                                 weir_error *err) {
  snprintf(config->csv.delimiter, sizeof(config->csv.delimiter), "%s",
           weir_options_string(options, "csv.delimiter"));
  snprintf(config->csv.quote, sizeof(config->csv.quote), "%s",
           weir_options_string(options, "csv.quote"));
  snprintf(config->csv.null_text, sizeof(config->csv.null_text), "%s",
           weir_options_string(options, "csv.null"));
  config->csv.no_header = !weir_options_bool(options, "csv.header");
  weir_csv_options csv = options_of(config);
  weir_status status = weir_csv_options_check(&csv, err);
  if (status) return weir_error_prefix(err, status, "%s", weir_options_where(options));
  return file_encoder_plain_only(options, "csv", err);
}

static weir_status csv_check(const file_encoder_config *config, weir_schema *schema,
                             weir_error *err) {
  weir_csv_options csv = options_of(config);
  weir_csv_encoder *encoder = NULL;
  weir_status status = weir_csv_encoder_new(schema, &csv, &encoder, err);
  weir_csv_encoder_free(encoder);
  return status;
}

static void csv_free(void *state) {
  csv_state *s = state;
  if (!s) return;
  weir_csv_encoder_free(s->encoder);
  weir_schema_unref(s->schema);
  free(s);
}

static weir_status csv_create(const file_encoder_config *config, weir_schema *schema,
                              file_encoder_out out, void *ctx, void **state,
                              weir_error *err) {
  csv_state *s = calloc(1, sizeof(*s));
  if (!s) return weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
  s->config = config;
  s->schema = weir_schema_ref(schema);
  s->out = out;
  s->ctx = ctx;
  *state = s;
  return WEIR_OK;
}

static weir_status make(csv_state *s, weir_error *err) {
  weir_csv_options csv = options_of(s->config);
  return s->encoder ? WEIR_OK : weir_csv_encoder_new(s->schema, &csv, &s->encoder, err);
}

static weir_status begin(csv_state *s, weir_error *err) {
  const uint8_t *data = NULL;
  size_t size = 0;
  if (s->begun) return WEIR_OK;
  FILE_TRY(make(s, err));
  weir_csv_encoder_header(s->encoder, &data, &size);
  weir_status status = size ? s->out(s->ctx, data, size, err) : WEIR_OK;
  s->begun = !status;
  return status;
}

static weir_status csv_write(void *state, weir_batch *batch, weir_error *err) {
  csv_state *s = state;
  const uint8_t *data = NULL;
  size_t size = 0;
  FILE_TRY(make(s, err));
  weir_status status = weir_csv_encoder_write(s->encoder, batch, &data, &size, err);
  if (!status) status = begin(s, err);
  if (!status) status = s->out(s->ctx, data, size, err);
  return status;
}

static void csv_trim(void *state) {
  csv_state *s = state;
  weir_csv_encoder_free(s->encoder);
  s->encoder = NULL;
}

static uint64_t csv_pending(const void *state) {
  (void)state;
  return 0;
}

static weir_status csv_finish(void *state, weir_error *err) {
  return begin(state, err);
}

const file_encoder_format file_encoder_csv = {
    .name = "csv",
    .extension = "csv",
    .configure = csv_configure,
    .check = csv_check,
    .create = csv_create,
    .write = csv_write,
    .pending = csv_pending,
    .trim = csv_trim,
    .finish = csv_finish,
    .free = csv_free,
};
