/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "encoder.h"

static weir_status parquet_configure(const weir_options *options,
                                     file_encoder_config *config, weir_error *err) {
  weir_parquet_options *p = &config->parquet;
  const char *compression = weir_options_string(options, "compression");
  weir_parquet_options_init(p);
  weir_status status = weir_parquet_codec_parse(compression, &p->codec, &p->level, err);
  if (status) {
    return weir_error_prefix(err, status, "%s: compression", weir_options_where(options));
  }
  const char *encodings = weir_options_string(options, "encodings");
  p->encodings =
      strcmp(encodings, "newest") == 0 ? WEIR_PARQUET_NEWEST : WEIR_PARQUET_COMPATIBLE;
  const char *effort = weir_options_string(options, "effort");
  p->effort = strcmp(effort, "small") == 0 ? WEIR_PARQUET_SMALL : WEIR_PARQUET_FAST;
  return WEIR_OK;
}

static weir_status parquet_check(const file_encoder_config *config, weir_schema *schema,
                                 weir_error *err) {
  (void)config;
  return weir_parquet_schema_check(weir_schema_arrow(schema), err);
}

static weir_status parquet_create(const file_encoder_config *config, weir_schema *schema,
                                  file_encoder_out out, void *ctx, void **state,
                                  weir_error *err) {
  weir_parquet_writer *writer = NULL;
  weir_status status =
      weir_parquet_writer_new(schema, &config->parquet, out, ctx, &writer, err);
  if (!status) *state = writer;
  return status;
}

static weir_status parquet_write(void *state, weir_batch *batch, weir_error *err) {
  return weir_parquet_writer_write(state, batch, err);
}

static weir_status parquet_check_batch(void *state, weir_batch *batch, weir_error *err) {
  return weir_parquet_writer_check(state, batch, err);
}

static weir_status parquet_flush(void *state, weir_error *err) {
  return weir_parquet_writer_flush(state, err);
}

static uint64_t parquet_pending(const void *state) {
  return weir_parquet_writer_buffered(state);
}

static weir_status parquet_finish(void *state, weir_error *err) {
  return weir_parquet_writer_finish(state, NULL, err);
}

static void parquet_free(void *state) {
  weir_parquet_writer_free(state);
}

const file_encoder_format file_encoder_parquet = {
    .name = "parquet",
    .extension = "parquet",
    .configure = parquet_configure,
    .check = parquet_check,
    .create = parquet_create,
    .write = parquet_write,
    .check_batch = parquet_check_batch,
    .pending = parquet_pending,
    .flush = parquet_flush,
    .finish = parquet_finish,
    .free = parquet_free,
};
