/* SPDX-License-Identifier: Apache-2.0 */
/* The formats of rows of text behind one set of verbs. */
#include <stdlib.h>
#include <weir/ndjson.h>

#include "source.h"

struct file_rows {
  weir_ndjson_decoder *ndjson; /* one of the two */
  weir_csv_decoder *csv;
  bool header;
};

weir_status file_rows_new(const file_reader_options *options, file_rows **out,
                          weir_error *err) {
  weir_status status;
  file_rows *rows = calloc(1, sizeof(*rows));
  if (rows == NULL)
    return weir_error_set(err, WEIR_E_NOMEM, 0, "no memory for a decoder");
  if (options->format == FILE_CSV) {
    weir_csv_options csv = options->csv;
    csv.struct_size = sizeof(csv);
    csv.batch_rows = options->batch_rows;
    csv.max_line = options->max_line;
    csv.refuse_unknown = options->inferred;
    rows->header = !csv.no_header;
    status = weir_csv_decoder_new(options->schema, &csv, &rows->csv, err);
  } else {
    weir_ndjson_options ndjson = {sizeof(ndjson), options->batch_rows, options->max_line,
                                  options->inferred};
    status = weir_ndjson_decoder_new(options->schema, &ndjson, &rows->ndjson, err);
  }
  if (status != WEIR_OK) {
    file_rows_free(rows);
    return status;
  }
  *out = rows;
  return WEIR_OK;
}

weir_status file_rows_check(file_format format, weir_schema *schema, weir_error *err) {
  file_reader_options options = {.format = format, .schema = schema};
  file_rows *rows = NULL;
  weir_status status = file_rows_new(&options, &rows, err);
  file_rows_free(rows);
  return status;
}

void file_rows_free(file_rows *rows) {
  if (rows == NULL) return;
  weir_ndjson_decoder_free(rows->ndjson);
  weir_csv_decoder_free(rows->csv);
  free(rows);
}

void file_rows_reset(file_rows *rows, uint64_t offset, uint64_t line) {
  if (rows->csv != NULL) {
    weir_csv_decoder_reset(rows->csv, offset, line);
  } else {
    weir_ndjson_decoder_reset(rows->ndjson, offset, line);
  }
}

bool file_rows_has_header(const file_rows *rows) {
  return rows->header;
}

weir_status file_rows_header(file_rows *rows, const uint8_t *data, size_t size, int last,
                             size_t *used, weir_error *err) {
  return weir_csv_decoder_header(rows->csv, data, size, last, used, err);
}

weir_status file_rows_feed(file_rows *rows, const uint8_t *data, size_t size, int last,
                           size_t *used, weir_batch **out, weir_error *err) {
  return rows->csv != NULL
             ? weir_csv_decoder_feed(rows->csv, data, size, last, used, out, err)
             : weir_ndjson_decoder_feed(rows->ndjson, data, size, last, used, out, err);
}

weir_status file_rows_flush(file_rows *rows, weir_batch **out, weir_error *err) {
  return rows->csv != NULL ? weir_csv_decoder_flush(rows->csv, out, err)
                           : weir_ndjson_decoder_flush(rows->ndjson, out, err);
}

uint64_t file_rows_offset(const file_rows *rows) {
  return rows->csv != NULL ? weir_csv_decoder_offset(rows->csv)
                           : weir_ndjson_decoder_offset(rows->ndjson);
}

uint64_t file_rows_line(const file_rows *rows) {
  return rows->csv != NULL ? weir_csv_decoder_line(rows->csv)
                           : weir_ndjson_decoder_line(rows->ndjson);
}
