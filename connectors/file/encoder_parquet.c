/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "encoder.h"

static weir_status keep_text(const weir_options *options, const char *option,
                             const char *text, file_encoder_texts *out, size_t *used,
                             weir_error *err) {
  size_t size = strlen(text) + 1;
  if (size > sizeof(out->texts) - *used) {
    return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                          "%s: %s: its texts are longer than %zu bytes in all",
                          weir_options_where(options), option, sizeof(out->texts));
  }
  memcpy(out->texts + *used, text, size);
  *used += size;
  return WEIR_OK;
}

/* The texts stay with the config, which outlives the options. */
static weir_status keep_texts(const weir_options *options, const char *option,
                              file_encoder_texts *out, weir_error *err) {
  size_t n = weir_options_count(options, option), used = 0;
  for (size_t i = 0; i < n; i++) {
    const char *key = weir_options_key(options, option, i);
    const char *item = weir_options_item(options, option, i);
    weir_status status =
        key != NULL ? keep_text(options, option, key, out, &used, err) : WEIR_OK;
    if (!status) status = keep_text(options, option, item, out, &used, err);
    if (status) return status;
  }
  out->n = n;
  return WEIR_OK;
}

static weir_status parquet_configure(const weir_options *options,
                                     file_encoder_config *config, weir_error *err) {
  weir_parquet_options *p = &config->parquet;
  const char *compression = weir_options_string(options, "compression");
  p->struct_size = sizeof(*p);
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
  const char *version = weir_options_string(options, "data_page_version");
  p->data_page_version = strcmp(version, "2") == 0 ? 2 : 1;
  status = keep_texts(options, "column_encoding", &config->column_encoding, err);
  if (status) return status;
  return keep_texts(options, "bloom_filter", &config->bloom_filter, err);
}

/* Asks the writer for the filters; without one, whether it could have them. */
static weir_status ask_bloom_filters(const file_encoder_config *config,
                                     const weir_schema *schema,
                                     weir_parquet_writer *writer, weir_error *err) {
  const char *name = config->bloom_filter.texts;
  for (size_t i = 0; i < config->bloom_filter.n; i++, name += strlen(name) + 1) {
    weir_status status =
        writer != NULL
            ? weir_parquet_writer_bloom_filter(writer, name, err)
            : weir_parquet_bloom_filter_check(weir_schema_arrow(schema), name, err);
    if (status) return weir_error_prefix(err, status, "bloom_filter");
  }
  return WEIR_OK;
}

/* The same of encodings. */
static weir_status ask_encodings(const file_encoder_config *config,
                                 const weir_schema *schema, weir_parquet_writer *writer,
                                 weir_error *err) {
  const char *column = config->column_encoding.texts;
  for (size_t i = 0; i < config->column_encoding.n; i++) {
    const char *encoding = column + strlen(column) + 1;
    weir_status status = writer != NULL
                             ? weir_parquet_writer_encoding(writer, column, encoding, err)
                             : weir_parquet_encoding_check(weir_schema_arrow(schema),
                                                           config->parquet.encodings,
                                                           column, encoding, err);
    if (status) return weir_error_prefix(err, status, "column_encoding");
    column = encoding + strlen(encoding) + 1;
  }
  return WEIR_OK;
}

static weir_status parquet_create(const file_encoder_config *config, weir_schema *schema,
                                  file_encoder_out out, void *ctx, void **state,
                                  weir_error *err) {
  weir_parquet_writer *writer = NULL;
  weir_status status =
      weir_parquet_writer_new(schema, &config->parquet, out, ctx, &writer, err);
  if (status) return status;
  status = ask_bloom_filters(config, schema, writer, err);
  if (!status) status = ask_encodings(config, schema, writer, err);
  if (status) {
    weir_parquet_writer_free(writer);
    return status;
  }
  *state = writer;
  return WEIR_OK;
}

static void parquet_free(void *state) {
  weir_parquet_writer_free(state);
}

static weir_status parquet_check(const file_encoder_config *config, weir_schema *schema,
                                 weir_error *err) {
  weir_status status = weir_parquet_schema_check(weir_schema_arrow(schema), err);
  if (!status) status = ask_bloom_filters(config, schema, NULL, err);
  return status ? status : ask_encodings(config, schema, NULL, err);
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
