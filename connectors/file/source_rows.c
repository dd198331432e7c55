/* SPDX-License-Identifier: Apache-2.0 */
/* The formats of rows of text behind one set of verbs. */
#include <stdlib.h>
#include <weir/ndjson.h>

#include "source.h"

/* Of rows set aside in one read: then it gives what it has. */
#define ASIDE_ROWS 8192
#define ASIDE_BYTES ((size_t)4 << 20)

struct file_rows {
  weir_ndjson_decoder *ndjson; /* one of the two */
  weir_csv_decoder *csv;
  bool header;
  const weir_schema *schema; /* the decoder holds it */
  const weir_bad_rows *to;   /* NULL: bad rows are errors */
  const char *part;
  size_t aside, aside_bytes;
};

weir_status file_rows_new(const file_reader_options *options, file_rows **out,
                          weir_error *err) {
  weir_status status;
  file_rows *rows = calloc(1, sizeof(*rows));
  if (rows == NULL)
    return weir_error_set(err, WEIR_E_NOMEM, 0, "no memory for a decoder");
  rows->schema = options->schema;
  rows->to = options->set_aside;
  if (options->format == FILE_CSV) {
    weir_csv_options csv = options->csv;
    csv.struct_size = sizeof(csv);
    csv.batch_rows = options->batch_rows;
    csv.max_line = options->max_line;
    csv.refuse_unknown = options->inferred;
    csv.bad_at_once = options->set_aside != NULL;
    rows->header = !csv.no_header;
    status = weir_csv_decoder_new(options->schema, &csv, &rows->csv, err);
  } else {
    weir_ndjson_options ndjson = {.struct_size = sizeof(ndjson),
                                  .batch_rows = options->batch_rows,
                                  .max_line = options->max_line,
                                  .refuse_unknown = options->inferred,
                                  .bad_at_once = options->set_aside != NULL};
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
  rows->aside = rows->aside_bytes = 0;
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

static weir_status feed(file_rows *rows, const uint8_t *data, size_t size, int last,
                        size_t *used, weir_batch **out, weir_error *err) {
  return rows->csv != NULL
             ? weir_csv_decoder_feed(rows->csv, data, size, last, used, out, err)
             : weir_ndjson_decoder_feed(rows->ndjson, data, size, last, used, out, err);
}

static void skip(file_rows *rows, const uint8_t *data, size_t size, int last,
                 size_t *used) {
  if (rows->csv != NULL) {
    weir_csv_decoder_skip(rows->csv, data, size, last, used);
  } else {
    weir_ndjson_decoder_skip(rows->ndjson, data, size, last, used);
  }
}

/* Hands out the row at the start of the data, which `why` speaks of, and passes over it. */
static weir_status set_aside(file_rows *rows, const uint8_t *data, size_t size, int last,
                             const weir_error *why, size_t *used, weir_error *err) {
  const struct ArrowSchema *columns = weir_schema_arrow(rows->schema);
  weir_bad_row row = {.struct_size = sizeof(row),
                      .data = data,
                      .part = rows->part,
                      .offset = (int64_t)file_rows_offset(rows),
                      .line = (int64_t)file_rows_line(rows) + 1,
                      .reason = why->message};
  if (why->column >= 0 && why->column < columns->n_children)
    row.column = columns->children[why->column]->name;
  skip(rows, data, size, last, used);
  if (*used == 0)
    return weir_error_set(err, WEIR_E_INTERNAL, 0, "%s; and its end is not found",
                          why->message);
  row.size = *used;
  if (row.size > 0 && data[row.size - 1] == '\n') row.size--;
  if (row.size > 0 && data[row.size - 1] == '\r') row.size--;
  rows->aside++;
  rows->aside_bytes += row.size;
  return rows->to->add(rows->to->ctx, &row, err);
}

weir_status file_rows_feed(file_rows *rows, const uint8_t *data, size_t size, int last,
                           size_t *used, weir_batch **out, weir_error *err) {
  size_t done = 0;
  for (;;) {
    weir_error why = {0};
    size_t n = 0;
    weir_status status = feed(rows, data + done, size - done, last, &n, out, &why);
    done += n;
    if (status == WEIR_OK) break;
    if (status != WEIR_E_BAD_DATA || rows->to == NULL) {
      if (err != NULL) *err = why;
      return status;
    }
    status = set_aside(rows, data + done, size - done, last, &why, &n, err);
    if (status != WEIR_OK) return status;
    done += n;
    if (file_rows_aside_full(rows)) break;
  }
  *used = done;
  return WEIR_OK;
}

size_t file_rows_set_aside(file_rows *rows) {
  size_t n = rows->aside;
  rows->aside = rows->aside_bytes = 0;
  return n;
}

bool file_rows_aside_full(const file_rows *rows) {
  return rows->aside >= ASIDE_ROWS || rows->aside_bytes >= ASIDE_BYTES;
}

void file_rows_set_part(file_rows *rows, const char *part) {
  rows->part = part;
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
