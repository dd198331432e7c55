/* SPDX-License-Identifier: Apache-2.0 */
/* The formats in which the file sink writes: one table of verbs, so that a format is one row. */
#ifndef CONNECTORS_FILE_ENCODER_H
#define CONNECTORS_FILE_ENCODER_H

#include <weir/batch.h>
#include <weir/csv.h>
#include <weir/ipc.h>
#include <weir/options.h>
#include <weir/parquet.h>

/* Texts of an option, each with its NUL; of a mapping key and value in turn. */
typedef struct file_encoder_texts {
  size_t n; /* items or pairs */
  char texts[4096];
} file_encoder_texts;

/* What the options say about the format, checked. */
typedef struct file_encoder_config {
  const struct file_encoder_format *format;
  weir_parquet_options parquet;
  file_encoder_texts bloom_filter, column_encoding;
  weir_ipc_writer_options arrow;
  struct {
    int32_t no_header;
    char delimiter[8], quote[8], null_text[40]; /* too long a text stays too long */
  } csv;
} file_encoder_config;

typedef weir_status (*file_encoder_out)(void *ctx, const void *data, size_t size,
                                        weir_error *err);

typedef struct file_encoder_format {
  const char *name;      /* as users write it */
  const char *extension; /* at most DATA_EXTENSION_MAX characters */
  weir_status (*configure)(const weir_options *options, file_encoder_config *config,
                           weir_error *err);
  /* Whether the format can hold every column; no I/O. */
  weir_status (*check)(const file_encoder_config *config, weir_schema *schema,
                       weir_error *err);
  /* `config` stays where it is until free. */
  weir_status (*create)(const file_encoder_config *config, weir_schema *schema,
                        file_encoder_out out, void *ctx, void **state, weir_error *err);
  /* One call takes a batch wholly or, with WEIR_ERR_BAD_DATA, not at all. */
  weir_status (*write)(void *state, weir_batch *batch, weir_error *err);
  /* What `write` would refuse of the batch and of any part of it; NULL: only `write` can tell. */
  weir_status (*check_batch)(void *state, weir_batch *batch, weir_error *err);
  uint64_t (*pending)(const void *state); /* encoded bytes not yet handed out */
  weir_status (*flush)(void *state,
                       weir_error *err); /* hands them out; NULL: never any */
  void (*trim)(
      void *state); /* drops memory that the next write can make again; or NULL */
  weir_status (*finish)(void *state, weir_error *err);
  void (*free)(void *state); /* NULL is a no-op */
} file_encoder_format;

extern const file_encoder_format file_encoder_parquet;
extern const file_encoder_format file_encoder_arrow;
extern const file_encoder_format file_encoder_csv;

/* Refuses options that only parquet has. */
weir_status file_encoder_parquet_only(const weir_options *options, const char *format,
                                      weir_error *err);
/* Refuses a compression of files that are written plain. */
weir_status file_encoder_plain_only(const weir_options *options, const char *format,
                                    weir_error *err);

/* Reads format, compression, encodings, effort, data_page_version, column_encoding, bloom_filter, csv. WEIR_E_INVALID_CONFIG where they do not go
 * together. */
weir_status file_encoder_configure(const weir_options *options, file_encoder_config *out,
                                   weir_error *err);

#endif
