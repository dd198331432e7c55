/* SPDX-License-Identifier: Apache-2.0 */
/* The CSV decoder: records out of blocks, the header, rows into batches. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/csv.h"

#define DEFAULT_BATCH_ROWS 16384
#define MAX_BATCH_ROWS 1048576
#define DEFAULT_MAX_LINE (UINT64_C(64) << 20)
#define MAX_MAX_LINE (UINT64_C(1) << 30)
/* With the longest record on top, the strings of a batch stay below the 2 GiB that 32-bit offsets reach. */
#define MAX_BATCH_BYTES (UINT64_C(32) << 20)
#define MAX_FIELDS 1000000
/* Bytes from which a chunk of rows is worth its start. */
#define CHUNK_FROM 4096

static weir_status decoder_init(weir_csv_decoder *decoder, weir_error *err) {
  const struct ArrowSchema *arrow = weir_schema_arrow(decoder->schema);
  int64_t n = arrow->n_children;
  if (n < 1) {
    return weir_error_set(err, WEIR_E_SCHEMA, 0,
                          "a schema of rows needs at least one column");
  }
  decoder->columns = base_calloc((size_t)n, sizeof(*decoder->columns), err);
  decoder->fields = base_calloc((size_t)n, sizeof(*decoder->fields), err);
  decoder->ends = base_calloc(CSV_CHUNK_ENDS + 80, sizeof(*decoder->ends), err);
  if (!decoder->columns || !decoder->fields || !decoder->ends) return WEIR_E_NOMEM;
  decoder->chunk_from = CHUNK_FROM;
  for (int64_t i = 0; i < n; i++) {
    BASE_TRY(format_column_init(&decoder->columns[i], arrow->children[i], FORMAT_FLAT,
                                "read from CSV", err));
    decoder->fields[i] = (int32_t)i;
    decoder->n_columns = i + 1;
    for (int64_t k = 0; decoder->dialect.header && k < i; k++) {
      if (strcmp(decoder->columns[k].name, decoder->columns[i].name) != 0) continue;
      return weir_error_set(err, WEIR_E_SCHEMA, 0,
                            "two columns are named '%s'; a header cannot tell them apart",
                            decoder->columns[i].name);
    }
  }
  decoder->n_fields = n;
  decoder->awaits_header = decoder->dialect.header;
  return WEIR_OK;
}

weir_status weir_csv_decoder_new(weir_schema *schema, const weir_csv_options *options,
                                 weir_csv_decoder **out, weir_error *err) {
  weir_csv_options o = {0};
  csv_dialect dialect = {0};
  BASE_TRY(csv_dialect_read(options, &dialect, err));
  if (options != NULL) {
    size_t size = options->struct_size < sizeof(o) ? options->struct_size : sizeof(o);
    memcpy(&o, options, size);
  }
  if (o.batch_rows < 0 || o.batch_rows > MAX_BATCH_ROWS || o.max_line > MAX_MAX_LINE) {
    return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                          "CSV: batch_rows must be 1 to %d and max_line at most 1 GiB",
                          MAX_BATCH_ROWS);
  }
  weir_csv_decoder *decoder = base_calloc(1, sizeof(*decoder), err);
  if (decoder == NULL) return WEIR_E_NOMEM;
  decoder->dialect = dialect;
  decoder->batch_rows = o.batch_rows ? o.batch_rows : DEFAULT_BATCH_ROWS;
  decoder->max_line = o.max_line ? o.max_line : DEFAULT_MAX_LINE;
  decoder->refuse_unknown = o.refuse_unknown;
  decoder->bad_at_once = o.bad_at_once;
  decoder->schema = weir_schema_ref(schema);
  weir_status status = decoder_init(decoder, err);
  if (status != WEIR_OK) {
    weir_csv_decoder_free(decoder);
    return status;
  }
  *out = decoder;
  return WEIR_OK;
}

static void drop_rows(weir_csv_decoder *decoder) {
  for (int64_t i = 0; i < decoder->n_columns; i++) {
    format_column_done(&decoder->columns[i]);
  }
  decoder->started = false;
  decoder->rows = 0;
  decoder->batch_bytes = 0;
}

void weir_csv_decoder_free(weir_csv_decoder *decoder) {
  if (decoder == NULL) return;
  drop_rows(decoder);
  weir_schema_unref(decoder->schema);
  base_buf_done(&decoder->text);
  free(decoder->columns);
  free(decoder->fields);
  free(decoder->ends);
  free(decoder->copy);
  free(decoder);
}

void weir_csv_decoder_reset(weir_csv_decoder *decoder, uint64_t offset, uint64_t line) {
  drop_rows(decoder);
  decoder->offset = offset;
  decoder->line = line;
  if (offset == 0) decoder->awaits_header = decoder->dialect.header;
}

void csv_decoder_force_slow(weir_csv_decoder *decoder, bool slow) {
  decoder->all_slow = slow;
}

void csv_decoder_force_chunks(weir_csv_decoder *decoder) {
  decoder->chunk_from = 1;
}

static weir_status start_batch(weir_csv_decoder *decoder, weir_error *err) {
  for (int64_t i = 0; i < decoder->n_columns; i++) {
    weir_status status =
        format_column_start(&decoder->columns[i], decoder->batch_rows, err);
    if (status != WEIR_OK) {
      drop_rows(decoder);
      return status;
    }
  }
  decoder->started = true;
  return WEIR_OK;
}

static void cut_row(weir_csv_decoder *decoder) {
  for (int64_t i = 0; i < decoder->n_columns; i++) {
    format_column_cut(&decoder->columns[i], decoder->rows);
  }
}

/* The byte order mark, or an empty line, at the start of the data; 0 when there is none. */
static size_t passed_over(const weir_csv_decoder *decoder, const uint8_t *data,
                          size_t size, bool blanks) {
  if (decoder->offset == 0 && size >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0) return 3;
  if (!blanks || size == 0) return 0;
  if (data[0] == '\n') return 1;
  return size > 1 && data[0] == '\r' && data[1] == '\n' ? 2 : 0;
}

static bool skips_blanks(const weir_csv_decoder *decoder) {
  return decoder->awaits_header || decoder->n_fields != 1;
}

static void advance(weir_csv_decoder *decoder, size_t bytes, uint64_t lines) {
  decoder->offset += bytes;
  decoder->line += lines;
}

static size_t pass_over(weir_csv_decoder *decoder, const uint8_t *data, size_t size) {
  size_t done = 0, n;
  while ((n = passed_over(decoder, data + done, size - done, skips_blanks(decoder))) >
         0) {
    advance(decoder, n, data[done + n - 1] == '\n');
    done += n;
  }
  return done;
}

/* ---- header ---- */

static weir_status bad_header(weir_error *err, weir_status status) {
  /* nothing behind it can be read, so it is no row to skip */
  if (err != NULL) {
    err->code = WEIR_E_SCHEMA;
    err->flags = 0;
  }
  bool bad = status == WEIR_E_BAD_DATA || status == WEIR_E_CORRUPT;
  return bad ? weir_error_prefix(err, WEIR_E_SCHEMA, "header") : status;
}

/* Of a record whose end cannot be told: nobody can skip it. */
static weir_status no_end(const weir_csv_decoder *decoder, weir_status status,
                          weir_error *err) {
  if (!decoder->bad_at_once) return status;
  if (err != NULL) err->code = WEIR_E_CORRUPT;
  return WEIR_E_CORRUPT;
}

static weir_status too_long(const weir_csv_decoder *decoder, weir_error *err) {
  weir_status status = weir_error_set(
      err, WEIR_E_BAD_DATA, WEIR_ERR_BAD_DATA,
      "line %llu, byte %llu: a record longer than %llu bytes; is a quote missing, or is "
      "this no CSV?",
      (unsigned long long)decoder->line + 1, (unsigned long long)decoder->offset,
      (unsigned long long)decoder->max_line);
  return no_end(decoder, status, err);
}

/* Notes which column the header's field `i` is. */
static weir_status name_field(weir_csv_decoder *decoder, int64_t i, const char *name,
                              size_t n, size_t *room, weir_error *err) {
  if (i == MAX_FIELDS) {
    return weir_error_set(err, WEIR_E_SCHEMA, 0, "the header has more than %d fields",
                          MAX_FIELDS);
  }
  if ((size_t)i == *room) {
    int32_t *fields = base_realloc(decoder->fields, *room * 2, sizeof(*fields), err);
    if (fields == NULL) return WEIR_E_NOMEM;
    decoder->fields = fields;
    *room *= 2;
  }
  decoder->fields[i] = -1;
  for (int64_t c = 0; c < decoder->n_columns; c++) {
    const format_column *col = &decoder->columns[c];
    if (col->name_len != n || memcmp(col->name, name, n) != 0) continue;
    for (int64_t k = 0; k < i; k++) {
      if (decoder->fields[k] != c) continue;
      return weir_error_set(err, WEIR_E_SCHEMA, 0,
                            "the header names column '%s' twice, as fields %lld and %lld",
                            col->name, (long long)k + 1, (long long)i + 1);
    }
    decoder->fields[i] = (int32_t)c;
  }
  if (decoder->fields[i] < 0 && decoder->refuse_unknown) {
    char text[FORMAT_EXCERPT];
    format_excerpt((const uint8_t *)name, n, 0, text);
    return weir_error_set(
        err, WEIR_E_SCHEMA, 0,
        "line %llu: the header names column '%s', field %lld, which the "
        "schema lacks",
        (unsigned long long)decoder->line + 1, text, (long long)i + 1);
  }
  return WEIR_OK;
}

static weir_status check_header(const weir_csv_decoder *decoder, const uint8_t *record,
                                size_t size, weir_error *err) {
  for (int64_t c = 0; c < decoder->n_columns; c++) {
    bool found = false;
    for (int64_t i = 0; i < decoder->n_fields; i++) found |= decoder->fields[i] == c;
    if (found) continue;
    char near[FORMAT_EXCERPT];
    format_excerpt(record, size, 0, near);
    return weir_error_set(err, WEIR_E_SCHEMA, 0,
                          "the header lacks column '%s': %s; is the delimiter right, or "
                          "is there no header?",
                          decoder->columns[c].name, near);
  }
  return WEIR_OK;
}

static weir_status read_header(weir_csv_decoder *decoder, const uint8_t *record,
                               size_t size, weir_error *err) {
  size_t at = 0, room = (size_t)decoder->n_columns;
  int64_t n = 0;
  if ((int64_t)room < decoder->n_fields) room = (size_t)decoder->n_fields;
  for (bool more = true; more; n++) {
    csv_field field = {0};
    bool nomem = false;
    char what[300];
    const char *wrong = csv_field_read(&decoder->dialect, record, size, &at,
                                       &decoder->text, &field, &more, &nomem);
    if (nomem) return weir_error_set(err, WEIR_E_NOMEM, 0, "no memory for the header");
    if (wrong != NULL) {
      snprintf(what, sizeof(what), "field %lld: %s", (long long)n + 1, wrong);
      return bad_header(err, csv_bad_record(decoder, record, size, at, what, err));
    }
    BASE_TRY(
        name_field(decoder, n, (const char *)decoder->text.data, field.size, &room, err));
  }
  decoder->n_fields = n;
  return check_header(decoder, record, size, err);
}

weir_status weir_csv_decoder_header(weir_csv_decoder *decoder, const void *data,
                                    size_t size, int last, size_t *used,
                                    weir_error *err) {
  const uint8_t *bytes = data;
  uint64_t offset = decoder->offset, line = decoder->line;
  csv_record record = {0};
  size_t done = 0;
  weir_status status = WEIR_OK;
  if (!decoder->awaits_header) {
    *used = 0;
    return WEIR_OK;
  }
  done = pass_over(decoder, bytes, size);
  bool found =
      csv_record_find(&decoder->dialect, bytes + done, size - done, last, &record);
  if ((found ? record.size : size - done) > decoder->max_line) {
    status = bad_header(err, too_long(decoder, err));
  } else if (found) {
    /* the record of a quote without end is what is left, so that the message says so */
    size_t shown = record.unclosed ? size - done : record.size;
    status = read_header(decoder, bytes + done, shown, err);
    advance(decoder, record.whole, record.lines);
    done += record.whole;
    if (status == WEIR_OK) decoder->awaits_header = false;
  } else if (!last) {
    done = 0; /* with what precedes it, so that the bytes stay together */
  }
  if (status != WEIR_OK || done == 0) {
    decoder->offset = offset;
    decoder->line = line;
  }
  if (status == WEIR_OK) *used = done;
  return status;
}

/* ---- records ---- */

/* The same record with LF and the padding behind it, in memory of the decoder. */
static weir_status copy_record(weir_csv_decoder *decoder, const uint8_t *record,
                               size_t size, weir_error *err) {
  size_t need = size + 1 + CSV_PADDING;
  if (need > decoder->copy_room) {
    uint8_t *copy = base_realloc(decoder->copy, need, 1, err);
    if (copy == NULL) return WEIR_E_NOMEM;
    decoder->copy = copy;
    decoder->copy_room = need;
  }
  if (size > 0) memcpy(decoder->copy, record, size);
  decoder->copy[size] = '\n';
  memset(decoder->copy + size + 1, 0, CSV_PADDING);
  return WEIR_OK;
}

/* Appends the row of a record that was found, and moves behind it. */
static weir_status decode_record(weir_csv_decoder *decoder, const uint8_t *data,
                                 const csv_record *record, weir_error *err) {
  bool taken = false;
  /* The copy gets a line end of its own, before which a CR of the record would pass for half of one. */
  bool lone_cr = record->size > 0 && data[record->size - 1] == '\r';
  if (!decoder->all_slow && !lone_cr) {
    uint64_t lines = 0;
    BASE_TRY(copy_record(decoder, data, record->size, err));
    const uint8_t *end = decoder->copy + record->size;
    taken = csv_row_fast(decoder, decoder->copy, end, &lines) == end + 1;
    if (!taken) cut_row(decoder);
  }
  if (!taken) {
    weir_status status = csv_row_slow(decoder, data, record, err);
    if (status != WEIR_OK) {
      cut_row(decoder);
      return status;
    }
  }
  decoder->rows++;
  decoder->batch_bytes += record->whole;
  advance(decoder, record->whole, record->lines);
  return WEIR_OK;
}

/* Takes the record at the start of the data, if it is whole; 0 bytes in *used if not. */
static weir_status take_record(weir_csv_decoder *decoder, const uint8_t *data,
                               size_t size, int last, size_t *used, weir_error *err) {
  csv_record record = {0};
  bool found = csv_record_find(&decoder->dialect, data, size, last, &record);
  if ((found ? record.size : size) > decoder->max_line) return too_long(decoder, err);
  if (!found) return WEIR_OK;
  if (record.unclosed) {
    weir_status status = csv_bad_record(decoder, data, size, record.quote,
                                        "a quote that is never closed", err);
    return no_end(decoder, status, err);
  }
  BASE_TRY(decode_record(decoder, data, &record, err));
  *used = record.whole;
  return WEIR_OK;
}

weir_status weir_csv_decoder_flush(weir_csv_decoder *decoder, weir_batch **out,
                                   weir_error *err) {
  weir_batch *batch = NULL;
  if (decoder->rows > 0) {
    weir_status status = format_columns_finish(decoder->columns, decoder->n_columns,
                                               decoder->schema, &batch, err);
    if (status != WEIR_OK) {
      drop_rows(decoder);
      return status;
    }
    decoder->started = false;
    decoder->rows = 0;
    decoder->batch_bytes = 0;
  }
  *out = batch;
  return WEIR_OK;
}

static bool is_full(const weir_csv_decoder *decoder) {
  return decoder->rows == decoder->batch_rows || decoder->batch_bytes >= MAX_BATCH_BYTES;
}

/* Takes a chunk of rows at the start of the data if that is worth it; its bytes or 0. */
static size_t take_chunk(weir_csv_decoder *decoder, const uint8_t *data, size_t size) {
  int64_t rows = 0;
  uint64_t lines = 0;
  if (decoder->wary > 0 || size < decoder->chunk_from + FORMAT_SPAN_PADDING ||
      decoder->n_fields > CSV_CHUNK_ENDS / 8 || decoder->all_slow ||
      decoder->batch_bytes + CSV_CHUNK_BYTES > MAX_BATCH_BYTES)
    return 0;
  size_t taken = csv_chunk_take(decoder, data, size - FORMAT_SPAN_PADDING, &rows, &lines);
  if (taken == 0) {
    cut_row(decoder);
    decoder->wary = decoder->chunk_from == 1 ? 1 : FORMAT_SPAN_WARY;
    return 0;
  }
  decoder->rows += rows;
  decoder->batch_bytes += taken;
  advance(decoder, taken, lines);
  return taken;
}

/* Takes records until a batch is full, no whole record is left, or one fails. *used in any case. */
static weir_status take_records(weir_csv_decoder *decoder, const uint8_t *data,
                                size_t size, int last, size_t *used, weir_error *err) {
  const uint8_t *stop = NULL; /* the last LF with the padding behind it */
  if (size > CSV_PADDING && !decoder->all_slow) {
    stop = memrchr(data, '\n', size - CSV_PADDING);
  }
  while (!is_full(decoder)) {
    *used += pass_over(decoder, data + *used, size - *used);
    const uint8_t *p = data + *used;
    size_t taken = 0;
    uint64_t lines = 0;
    if (*used == size) break;
    if (!decoder->started) BASE_TRY(start_batch(decoder, err));
    taken = take_chunk(decoder, p, size - *used);
    *used += taken;
    if (taken > 0) continue;
    if (decoder->wary > 0) decoder->wary--;
    if (FORMAT_LIKELY(stop != NULL && p <= stop)) {
      const uint8_t *next = csv_row_fast(decoder, p, stop, &lines);
      if (FORMAT_LIKELY(next != NULL)) {
        taken = (size_t)(next - p);
        decoder->rows++;
        decoder->batch_bytes += taken;
        advance(decoder, taken, lines);
        *used += taken;
        continue;
      }
      cut_row(decoder);
    }
    BASE_TRY(take_record(decoder, p, size - *used, last, &taken, err));
    if (taken == 0) break;
    *used += taken;
  }
  return WEIR_OK;
}

weir_status weir_csv_decoder_feed(weir_csv_decoder *decoder, const void *data,
                                  size_t size, int last, size_t *used, weir_batch **out,
                                  weir_error *err) {
  uint64_t offset = decoder->offset, line = decoder->line;
  bool awaited = decoder->awaits_header, failed = false;
  size_t done = 0;
  weir_batch *batch = NULL;
  weir_status status = weir_csv_decoder_header(decoder, data, size, last, &done, err);
  if (status == WEIR_OK && !decoder->awaits_header) {
    status = take_records(decoder, data, size, last, &done, err);
    if (status == WEIR_E_BAD_DATA && decoder->bad_at_once) {
      *used = done;
      return status;
    }
    /* the rows before a bad record go out first; it fails again, alone, in the next call */
    failed = status == WEIR_E_BAD_DATA && decoder->rows > 0;
    if (failed) status = WEIR_OK;
  }
  if (status == WEIR_OK && (failed || is_full(decoder))) {
    status = weir_csv_decoder_flush(decoder, &batch, err);
  }
  if (status != WEIR_OK) {
    decoder->offset = offset;
    decoder->line = line;
    decoder->awaits_header = awaited;
    return status;
  }
  *used = done;
  *out = batch;
  return WEIR_OK;
}

void weir_csv_decoder_skip(weir_csv_decoder *decoder, const void *data, size_t size,
                           int last, size_t *used) {
  const uint8_t *bytes = data;
  uint64_t offset = decoder->offset, line = decoder->line;
  bool awaited = decoder->awaits_header;
  csv_record record = {0};
  size_t done = 0;
  *used = 0;
  if (weir_csv_decoder_header(decoder, data, size, last, &done, NULL) != WEIR_OK ||
      decoder->awaits_header) {
    decoder->offset = offset;
    decoder->line = line;
    return;
  }
  done += pass_over(decoder, bytes + done, size - done);
  if (!csv_record_find(&decoder->dialect, bytes + done, size - done, last, &record)) {
    decoder->offset = offset; /* the record to skip is not whole yet */
    decoder->line = line;
    decoder->awaits_header = awaited;
    return;
  }
  advance(decoder, record.whole, record.lines);
  *used = done + record.whole;
}

uint64_t weir_csv_decoder_offset(const weir_csv_decoder *decoder) {
  return decoder->offset;
}

uint64_t weir_csv_decoder_line(const weir_csv_decoder *decoder) {
  return decoder->line;
}

int64_t weir_csv_decoder_rows(const weir_csv_decoder *decoder) {
  return decoder->rows;
}
