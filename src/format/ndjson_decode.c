/* SPDX-License-Identifier: Apache-2.0 */
/* The NDJSON decoder: lines out of blocks, rows into batches. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "format/ndjson.h"

#define DEFAULT_BATCH_ROWS 16384
#define MAX_BATCH_ROWS 1048576
#define DEFAULT_MAX_LINE (UINT64_C(64) << 20)
#define MAX_MAX_LINE (UINT64_C(1) << 30)
/* With the longest line on top, the strings of a batch stay below the 2 GiB that 32-bit offsets reach. */
#define MAX_BATCH_BYTES (UINT64_C(32) << 20)
/* Of a column below lists of fixed size. */
#define MAX_BATCH_SLOTS (INT64_C(1) << 24)
/* Bytes from which a chunk of rows is worth its start. */
#define CHUNK_FROM 4096
#define POOL_SIZE (size_t)(256 << 10)

/* Fewer rows a batch where lists of fixed size would make it large, since a null of theirs takes as many
 * slots as a value. */
static weir_status bound_rows(weir_ndjson_decoder *decoder, weir_error *err) {
  for (int64_t i = 0; i < decoder->n_columns; i++) {
    const format_column *col = &decoder->columns[i];
    int64_t slots = format_nested_slots(col);
    if (slots > MAX_BATCH_SLOTS) {
      return weir_error_set(err, WEIR_E_NOT_IMPLEMENTED, 0,
                            "column '%s': a row of its fixed-size lists takes more than "
                            "%lld slots; declare lists",
                            col->name, (long long)MAX_BATCH_SLOTS);
    }
    if (decoder->batch_rows > MAX_BATCH_SLOTS / slots)
      decoder->batch_rows = MAX_BATCH_SLOTS / slots;
  }
  return WEIR_OK;
}

/* What chunks need, unless there are none for this schema. */
static weir_status init_chunks(weir_ndjson_decoder *decoder, weir_error *err) {
  size_t n = (size_t)decoder->n_columns;
  if (n > NDJSON_CHUNK_VALUES / 8) return WEIR_OK;
  for (size_t i = 0; i < n; i++) {
    if (decoder->columns[i].kind >= FORMAT_LIST) return WEIR_OK;
  }
  decoder->befores = base_calloc(NDJSON_CHUNK_VALUES, sizeof(*decoder->befores), err);
  decoder->afters = base_calloc(NDJSON_CHUNK_VALUES, sizeof(*decoder->afters), err);
  decoder->row_of = base_calloc(n, sizeof(*decoder->row_of), err);
  decoder->gaps = base_calloc(NDJSON_CHUNK_KEYS, sizeof(*decoder->gaps), err);
  bool made = decoder->befores && decoder->afters && decoder->row_of && decoder->gaps;
  return made ? WEIR_OK : WEIR_E_NOMEM;
}

static weir_status decoder_init(weir_ndjson_decoder *decoder, weir_error *err) {
  const struct ArrowSchema *arrow = weir_schema_arrow(decoder->schema);
  if (arrow->n_children < 1) {
    return weir_error_set(err, WEIR_E_SCHEMA, 0,
                          "a schema of rows needs at least one column");
  }
  decoder->columns =
      base_calloc((size_t)arrow->n_children, sizeof(*decoder->columns), err);
  decoder->slots = base_calloc(NDJSON_MAX_SLOTS, sizeof(*decoder->slots), err);
  decoder->pool = base_calloc(1, POOL_SIZE, err);
  if (!decoder->columns || !decoder->slots || !decoder->pool) return WEIR_E_NOMEM;
  decoder->pool_size = POOL_SIZE;
  for (int64_t i = 0; i < arrow->n_children; i++) {
    BASE_TRY(format_column_init(&decoder->columns[i], arrow->children[i], FORMAT_NESTED,
                                "read from NDJSON", err));
    decoder->n_columns = i + 1;
  }
  BASE_TRY(bound_rows(decoder, err));
  decoder->chunk_from = CHUNK_FROM;
  BASE_TRY(init_chunks(decoder, err));
  return format_names_init(&decoder->names, decoder->columns, decoder->n_columns, err);
}

weir_status weir_ndjson_decoder_new(weir_schema *schema,
                                    const weir_ndjson_options *options,
                                    weir_ndjson_decoder **out, weir_error *err) {
  weir_ndjson_options o = {0};
  if (options != NULL) {
    size_t size = options->struct_size < sizeof(o) ? options->struct_size : sizeof(o);
    memcpy(&o, options, size);
  }
  if (o.batch_rows < 0 || o.batch_rows > MAX_BATCH_ROWS || o.max_line > MAX_MAX_LINE) {
    return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                          "NDJSON: batch_rows must be 1 to %d and max_line at most 1 GiB",
                          MAX_BATCH_ROWS);
  }
  weir_ndjson_decoder *decoder = base_calloc(1, sizeof(*decoder), err);
  if (decoder == NULL) return WEIR_E_NOMEM;
  decoder->batch_rows = o.batch_rows ? o.batch_rows : DEFAULT_BATCH_ROWS;
  decoder->max_line = o.max_line ? o.max_line : DEFAULT_MAX_LINE;
  decoder->refuse_unknown = o.refuse_unknown;
  decoder->bad_at_once = o.bad_at_once;
  decoder->schema = weir_schema_ref(schema);
  weir_status status = decoder_init(decoder, err);
  if (status != WEIR_OK) {
    weir_ndjson_decoder_free(decoder);
    return status;
  }
  *out = decoder;
  return WEIR_OK;
}

static void drop_rows(weir_ndjson_decoder *decoder) {
  for (int64_t i = 0; i < decoder->n_columns; i++)
    format_column_drop(&decoder->columns[i]);
  decoder->started = false;
  decoder->rows = 0;
  decoder->batch_bytes = 0;
}

void weir_ndjson_decoder_free(weir_ndjson_decoder *decoder) {
  if (decoder == NULL) return;
  for (int64_t i = 0; i < decoder->n_columns; i++)
    format_column_done(&decoder->columns[i]);
  weir_schema_unref(decoder->schema);
  free(decoder->columns);
  format_names_done(&decoder->names);
  free(decoder->slots);
  free(decoder->befores);
  free(decoder->afters);
  free(decoder->row_of);
  free(decoder->gaps);
  free(decoder->pool);
  free(decoder->copy);
  free(decoder);
}

void weir_ndjson_decoder_reset(weir_ndjson_decoder *decoder, uint64_t offset,
                               uint64_t line) {
  drop_rows(decoder);
  decoder->offset = offset;
  decoder->line = line;
}

void ndjson_decoder_force_slow(weir_ndjson_decoder *decoder, bool slow) {
  decoder->all_slow = slow;
}

void ndjson_decoder_force_chunks(weir_ndjson_decoder *decoder) {
  decoder->chunk_from = 1;
}

static weir_status start_batch(weir_ndjson_decoder *decoder, weir_error *err) {
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

static void cut_row(weir_ndjson_decoder *decoder) {
  for (int64_t i = 0; i < decoder->n_columns; i++) {
    format_column_cut(&decoder->columns[i], decoder->rows);
  }
}

/* The same line with LF and the padding behind it, in memory of the decoder. */
static weir_status copy_line(weir_ndjson_decoder *decoder, const uint8_t *line,
                             size_t size, weir_error *err) {
  size_t need = size + 1 + NDJSON_PADDING;
  if (need > decoder->copy_room) {
    uint8_t *copy = base_realloc(decoder->copy, need, 1, err);
    if (copy == NULL) return WEIR_E_NOMEM;
    decoder->copy = copy;
    decoder->copy_room = need;
  }
  memcpy(decoder->copy, line, size);
  decoder->copy[size] = '\n';
  memset(decoder->copy + size + 1, 0, NDJSON_PADDING);
  return WEIR_OK;
}

static bool is_blank(const uint8_t *line, size_t size) {
  for (size_t i = 0; i < size; i++) {
    if (line[i] != ' ' && line[i] != '\t' && line[i] != '\r') return false;
  }
  return true;
}

/* Bytes of the mark that a file may begin with, U+FEFF in UTF-8. */
static uint32_t mark_size(uint64_t offset, const uint8_t *line, size_t size) {
  return offset == 0 && size >= 3 && memcmp(line, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

/* Appends one line's row; `readable` bytes from its start belong to the caller's block. */
static weir_status decode_line(weir_ndjson_decoder *decoder, const uint8_t *line,
                               size_t size, size_t readable, weir_error *err) {
  weir_status status;
  decoder->mark = mark_size(decoder->offset, line, size);
  line += decoder->mark;
  size -= decoder->mark;
  readable -= decoder->mark;
  if (FORMAT_UNLIKELY((size == 0 || line[0] <= ' ') && is_blank(line, size)))
    return WEIR_OK;
  if (!decoder->started) BASE_TRY(start_batch(decoder, err));
  if (!decoder->all_slow) {
    const uint8_t *padded = line;
    if (readable - size <= NDJSON_PADDING) {
      BASE_TRY(copy_line(decoder, line, size, err));
      padded = decoder->copy;
    }
    if (FORMAT_LIKELY(ndjson_row_fast(decoder, padded, size))) {
      decoder->rows++;
      return WEIR_OK;
    }
    cut_row(decoder);
  }
  status = ndjson_row_slow(decoder, line, size, err);
  if (status != WEIR_OK) {
    cut_row(decoder);
    return status;
  }
  decoder->rows++;
  return WEIR_OK;
}

/* Bytes of the first line of data[0 .. size), with and without its LF; false when it is not whole. */
static bool find_line(const uint8_t *data, size_t size, int last, size_t *line,
                      size_t *whole) {
  const uint8_t *end = size > 0 ? memchr(data, '\n', size) : NULL;
  if (end == NULL && (!last || size == 0)) return false;
  *line = end != NULL ? (size_t)(end - data) : size;
  *whole = *line + (end != NULL);
  return true;
}

static weir_status too_long(const weir_ndjson_decoder *decoder, weir_error *err) {
  weir_status status = decoder->bad_at_once ? WEIR_E_CORRUPT : WEIR_E_BAD_DATA;
  return weir_error_set(err, status, WEIR_ERR_BAD_DATA,
                        "line %llu, byte %llu: longer than the %llu bytes of `max_line`; "
                        "is this newline-delimited JSON?",
                        (unsigned long long)decoder->line + 1,
                        (unsigned long long)decoder->offset,
                        (unsigned long long)decoder->max_line);
}

weir_status weir_ndjson_decoder_flush(weir_ndjson_decoder *decoder, weir_batch **out,
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

/* Takes a chunk of rows at the start of the data if that is worth it; its bytes or 0. */
static size_t take_chunk(weir_ndjson_decoder *decoder, const uint8_t *data, size_t size) {
  int64_t rows = 0;
  if (decoder->wary > 0 || decoder->gaps == NULL || decoder->all_slow ||
      size < decoder->chunk_from + FORMAT_SPAN_PADDING ||
      decoder->batch_bytes + NDJSON_CHUNK_BYTES > MAX_BATCH_BYTES)
    return 0;
  size_t taken = ndjson_chunk_take(decoder, data, size - FORMAT_SPAN_PADDING, &rows);
  if (taken == 0) cut_row(decoder);
  decoder->rows += rows;
  decoder->offset += taken;
  decoder->line += (uint64_t)rows;
  decoder->batch_bytes += taken;
  /* one that ended before its bytes did, and soon, was not worth its start: the next ones may not be either */
  bool soon = rows < FORMAT_SPAN_ROWS / 8 && decoder->rows < decoder->batch_rows &&
              size - taken >= NDJSON_CHUNK_BYTES;
  if (taken == 0 || soon) decoder->wary = decoder->chunk_from == 1 ? 1 : FORMAT_SPAN_WARY;
  return taken;
}

/* Takes lines until a batch is full (*full), no whole line is left, or a line fails. */
static weir_status take_lines(weir_ndjson_decoder *decoder, const uint8_t *data,
                              size_t size, int last, size_t *used, bool *full,
                              weir_error *err) {
  size_t done = 0;
  weir_status status = WEIR_OK;
  while (status == WEIR_OK && decoder->rows < decoder->batch_rows) {
    size_t line = 0, whole = 0, left = size - done;
    if (!decoder->started && left >= decoder->chunk_from) {
      status = start_batch(decoder, err);
      if (status != WEIR_OK) break;
    }
    whole = take_chunk(decoder, data + done, left);
    done += whole;
    if (whole > 0) continue;
    if (decoder->wary > 0) decoder->wary--;
    bool found = find_line(data + done, left, last, &line, &whole);
    if (FORMAT_UNLIKELY((found ? line : left) > decoder->max_line)) {
      status = too_long(decoder, err);
      break;
    }
    if (!found) break;
    if (decoder->rows > 0 && decoder->batch_bytes + line > MAX_BATCH_BYTES) {
      *full = true;
      break;
    }
    status = decode_line(decoder, data + done, line, left, err);
    if (status != WEIR_OK) break;
    done += whole;
    decoder->offset += whole;
    decoder->line++;
    decoder->batch_bytes += whole;
  }
  *used = done;
  *full |= decoder->rows == decoder->batch_rows;
  return status;
}

weir_status weir_ndjson_decoder_feed(weir_ndjson_decoder *decoder, const void *data,
                                     size_t size, int last, size_t *used,
                                     weir_batch **out, weir_error *err) {
  uint64_t offset = decoder->offset, line = decoder->line;
  size_t done = 0;
  bool full = false;
  weir_batch *batch = NULL;
  weir_status status = take_lines(decoder, data, size, last, &done, &full, err);
  if (status == WEIR_E_BAD_DATA && decoder->bad_at_once) {
    *used = done;
    return status;
  }
  if (status == WEIR_E_BAD_DATA && decoder->rows > 0) {
    /* the rows before the bad line go out first; it fails again, alone, in the next call */
    status = WEIR_OK;
    full = true;
  }
  if (status == WEIR_OK && full) status = weir_ndjson_decoder_flush(decoder, &batch, err);
  if (status != WEIR_OK) {
    decoder->offset = offset;
    decoder->line = line;
    return status;
  }
  *used = done;
  *out = batch;
  return WEIR_OK;
}

void weir_ndjson_decoder_skip(weir_ndjson_decoder *decoder, const void *data, size_t size,
                              int last, size_t *used) {
  const uint8_t *bytes = data;
  size_t done = 0, line = 0, whole = 0;
  uint64_t lines = 0;
  bool blank = true;
  while (blank && find_line(bytes + done, size - done, last, &line, &whole)) {
    uint32_t mark = mark_size(decoder->offset + done, bytes + done, line);
    blank = is_blank(bytes + done + mark, line - mark);
    done += whole;
    lines++;
  }
  if (blank) done = 0; /* the line to skip is not whole yet */
  if (!blank) {
    decoder->offset += done;
    decoder->line += lines;
  }
  *used = done;
}

uint64_t weir_ndjson_decoder_offset(const weir_ndjson_decoder *decoder) {
  return decoder->offset;
}

uint64_t weir_ndjson_decoder_line(const weir_ndjson_decoder *decoder) {
  return decoder->line;
}

int64_t weir_ndjson_decoder_rows(const weir_ndjson_decoder *decoder) {
  return decoder->rows;
}
