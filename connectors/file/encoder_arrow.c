/* SPDX-License-Identifier: Apache-2.0 */
#include <weir/ipc.h>

#include "encoder.h"

/* Arrow has two codecs for bodies; the names and levels are those of parquet. */
static weir_status arrow_configure(const weir_options *options,
                                   file_encoder_config *config, weir_error *err) {
  const char *compression = weir_options_string(options, "compression");
  weir_ipc_writer_options *arrow = &config->arrow;
  int32_t codec = 0, level = 0;
  weir_status status = weir_parquet_codec_parse(compression, &codec, &level, err);
  arrow->struct_size = sizeof(*arrow);
  arrow->file = 1;
  arrow->codec = codec == WEIR_PARQUET_ZSTD  ? WEIR_IPC_ZSTD
                 : codec == WEIR_PARQUET_LZ4 ? WEIR_IPC_LZ4
                                             : WEIR_IPC_PLAIN;
  arrow->level = level;
  if (status || (arrow->codec == WEIR_IPC_PLAIN && codec != WEIR_PARQUET_NONE)) {
    return weir_error_set(
        err, WEIR_E_INVALID_CONFIG, 0,
        "%s: compression '%s' does not go with format arrow; expected zstd, "
        "zstd(LEVEL), lz4 or none",
        weir_options_where(options), compression);
  }
  return file_encoder_parquet_only(options, "arrow", err);
}

static weir_status arrow_create(const file_encoder_config *config, weir_schema *schema,
                                file_encoder_out out, void *ctx, void **state,
                                weir_error *err) {
  weir_ipc_writer *writer = NULL;
  weir_status status =
      weir_ipc_writer_new(schema, &config->arrow, out, ctx, &writer, err);
  if (!status) *state = writer;
  return status;
}

static weir_status swallow(void *ctx, const void *data, size_t size, weir_error *err) {
  (void)ctx;
  (void)data;
  (void)size;
  (void)err;
  return WEIR_OK;
}

static void arrow_free(void *state) {
  weir_ipc_writer_free(state);
}

static weir_status arrow_check(const file_encoder_config *config, weir_schema *schema,
                               weir_error *err) {
  (void)config;
  file_encoder_config plain = {
      .arrow = {.struct_size = sizeof(weir_ipc_writer_options), .file = 1}};
  void *writer = NULL;
  weir_status status = arrow_create(&plain, schema, swallow, NULL, &writer, err);
  arrow_free(writer);
  return status;
}

static weir_status arrow_write(void *state, weir_batch *batch, weir_error *err) {
  return weir_ipc_writer_write(state, batch, err);
}

/* What was written has been handed out. */
static uint64_t arrow_pending(const void *state) {
  (void)state;
  return 0;
}

static weir_status arrow_finish(void *state, weir_error *err) {
  return weir_ipc_writer_finish(state, err);
}

const file_encoder_format file_encoder_arrow = {
    .name = "arrow",
    .extension = "arrow",
    .configure = arrow_configure,
    .check = arrow_check,
    .create = arrow_create,
    .write = arrow_write,
    .pending = arrow_pending,
    .finish = arrow_finish,
    .free = arrow_free,
};
