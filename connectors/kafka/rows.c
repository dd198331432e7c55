/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One message, one row: its value by the format, and with `metadata` what Kafka knows of it. A message without a
 * value (a tombstone) is a row without values. Of Arrow a message is a whole batch, or without a value none.
 */
#include <inttypes.h>
#include <nanoarrow/nanoarrow.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/csv.h>
#include <weir/ipc.h>
#include <weir/ndjson.h>

#include "kafka.h"

/* Message bytes of a batch; one message may be larger. */
#define BATCH_BYTES ((size_t)16 << 20)
#define MAX_MESSAGE (UINT64_C(1) << 30)
#define N_METADATA 7

static const struct {
  const char *name, *type;
} metadata[N_METADATA] = {
    {"_topic", "utf8 not null"},
    {"_partition", "int32 not null"},
    {"_offset", "int64 not null"},
    {"_timestamp", "timestamp[ms, UTC]"},
    {"_key", "binary"},
    {"_headers", "list<struct<key: utf8, value: binary>>"},
    {"_tombstone", "bool not null"},
};

typedef enum kafka_format { KAFKA_JSON, KAFKA_CSV, KAFKA_RAW, KAFKA_ARROW } kafka_format;

struct kafka_rows {
  kafka_format format;
  weir_schema *values, *schema; /* of the values alone, and of the batches */
  weir_ndjson_decoder *ndjson;  /* of json */
  weir_csv_decoder *csv;
  struct ArrowArray raw, meta; /* struct arrays under way; without release: not */
  bool text;                   /* raw: the value must be UTF-8 */
  bool with_meta;
  char *nothing;     /* csv: the record of a tombstone */
  weir_batch *ready; /* values of all rows gathered; none can be added */
  uint8_t *line;     /* a value and its line end */
  size_t line_size, line_room, bytes;
  int64_t count, most;
};

/* ---- making ---- */

static void drop(struct ArrowArray *array) {
  if (array->release != NULL) array->release(array);
}

static weir_status no_memory(weir_error *err) {
  return weir_error_set(err, WEIR_E_NOMEM, 0, "no memory for rows");
}

/* *values as the option gives them (raw: one column), *schema with the metadata behind them. */
static weir_status make_schemas(kafka_rows *rows, const weir_options *options,
                                weir_error *err) {
  size_t n = weir_options_count(options, "schema"),
         extra = rows->with_meta ? N_METADATA : 0;
  const char **names = calloc(n + 1 + extra, sizeof(*names)),
             **types = calloc(n + 1 + extra, sizeof(*types));
  weir_status status = WEIR_OK;
  if (names == NULL || types == NULL) {
    status = no_memory(err);
    goto out;
  }
  for (size_t i = 0; i < n; i++) {
    names[i] = weir_options_key(options, "schema", i);
    types[i] = weir_options_item(options, "schema", i);
  }
  if (n == 0) {
    names[n] = "value";
    types[n++] = "binary";
  }
  status = weir_schema_from_types(names, types, n, &rows->values, err);
  for (size_t i = 0; i < n && extra > 0 && status == WEIR_OK; i++) {
    for (size_t k = 0; k < extra && status == WEIR_OK; k++) {
      if (strcmp(names[i], metadata[k].name) == 0)
        status = weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                                "column '%s' is one of those that metadata: true adds; "
                                "give it another name or leave metadata out",
                                names[i]);
    }
  }
  for (size_t i = 0; i < extra; i++) {
    names[n + i] = metadata[i].name;
    types[n + i] = metadata[i].type;
  }
  if (status == WEIR_OK)
    status = weir_schema_from_types(names, types, n + extra, &rows->schema, err);
  if (status != WEIR_OK) weir_error_prefix(err, status, "option schema");
out:
  free(names);
  free(types);
  return status;
}

static weir_status make_raw(kafka_rows *rows, weir_error *err) {
  const struct ArrowSchema *schema = weir_schema_arrow(rows->values);
  const char *format = schema->n_children == 1 ? schema->children[0]->format : "";
  rows->text = strcmp(format, "u") == 0;
  if (rows->text || strcmp(format, "z") == 0) return WEIR_OK;
  return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                        "option schema: format raw has one column of type binary or "
                        "utf8; without the option it is {value: binary}");
}

/* A record of nulls: fields of the null text. */
static weir_status make_csv(kafka_rows *rows, const weir_options *options,
                            bool sets_aside, weir_error *err) {
  weir_csv_options csv = {.struct_size = sizeof(csv),
                          .no_header = 1,
                          .bad_at_once = sets_aside,
                          .batch_rows = 1048576,
                          .max_line = MAX_MESSAGE,
                          .delimiter = weir_options_string(options, "csv.delimiter"),
                          .quote = weir_options_string(options, "csv.quote"),
                          .null_text = weir_options_string(options, "csv.null")};
  weir_status status = weir_csv_options_check(&csv, err);
  if (status != WEIR_OK) return weir_error_prefix(err, status, "option csv");
  int64_t n = weir_schema_arrow(rows->values)->n_children;
  size_t size = strlen(csv.null_text);
  rows->nothing = malloc((size_t)n * (size + 1) + 1);
  if (rows->nothing == NULL) return no_memory(err);
  char *p = rows->nothing;
  for (int64_t i = 0; i < n; i++) {
    if (i > 0) *p++ = csv.delimiter[0];
    memcpy(p, csv.null_text, size);
    p += size;
  }
  *p = '\0';
  return weir_csv_decoder_new(rows->values, &csv, &rows->csv, err);
}

static weir_status make_format(kafka_rows *rows, const weir_options *options,
                               bool sets_aside, weir_error *err) {
  const char *name = weir_options_string(options, "format");
  static const char *const csv[] = {"csv.delimiter", "csv.quote", "csv.null"};
  rows->format = strcmp(name, "json") == 0  ? KAFKA_JSON
                 : strcmp(name, "csv") == 0 ? KAFKA_CSV
                 : strcmp(name, "raw") == 0 ? KAFKA_RAW
                                            : KAFKA_ARROW;
  for (size_t i = 0; i < sizeof(csv) / sizeof(csv[0]); i++) {
    if (rows->format != KAFKA_CSV && weir_options_given(options, csv[i]))
      return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                            "option %s goes with format csv alone", csv[i]);
  }
  if ((rows->format != KAFKA_RAW || weir_options_given(options, "schema")) &&
      weir_options_count(options, "schema") == 0)
    return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                          "option schema: format %s needs a mapping column: type, as in "
                          "{id: int64, name: utf8}; format raw does without",
                          name);
  weir_status status = make_schemas(rows, options, err);
  if (status != WEIR_OK) return status;
  if (rows->format == KAFKA_ARROW) return WEIR_OK;
  if (rows->format == KAFKA_RAW) return make_raw(rows, err);
  if (rows->format == KAFKA_CSV) return make_csv(rows, options, sets_aside, err);
  weir_ndjson_options ndjson = {.struct_size = sizeof(ndjson),
                                .batch_rows = 1048576,
                                .max_line = MAX_MESSAGE,
                                .bad_at_once = sets_aside};
  return weir_ndjson_decoder_new(rows->values, &ndjson, &rows->ndjson, err);
}

/* Bytes count from 1: only at offset 0 would the decoders pass over another byte order mark. */
static void reset(kafka_rows *rows) {
  if (rows->csv != NULL) weir_csv_decoder_reset(rows->csv, 1, 0);
  if (rows->ndjson != NULL) weir_ndjson_decoder_reset(rows->ndjson, 1, 0);
}

weir_status kafka_rows_new(const weir_options *options, bool sets_aside, kafka_rows **out,
                           weir_schema **schema, weir_error *err) {
  kafka_rows *rows = calloc(1, sizeof(*rows));
  if (rows == NULL) return no_memory(err);
  rows->most = weir_options_int(options, "batch_rows");
  rows->with_meta = weir_options_bool(options, "metadata");
  weir_status status = make_format(rows, options, sets_aside, err);
  if (status != WEIR_OK) {
    kafka_rows_free(rows);
    return status;
  }
  if (schema != NULL) *schema = weir_schema_ref(rows->schema);
  reset(rows);
  *out = rows;
  return WEIR_OK;
}

void kafka_rows_free(kafka_rows *rows) {
  if (rows == NULL) return;
  weir_batch_unref(rows->ready);
  drop(&rows->raw);
  drop(&rows->meta);
  weir_ndjson_decoder_free(rows->ndjson);
  weir_csv_decoder_free(rows->csv);
  weir_schema_unref(rows->values);
  weir_schema_unref(rows->schema);
  free(rows->nothing);
  free(rows->line);
  free(rows);
}

/* ---- values ---- */

static weir_status bad(weir_error *err, const char *why) {
  return weir_error_set(err, WEIR_E_BAD_DATA, WEIR_ERR_BAD_DATA, "%s", why);
}

/* RFC 3629. */
static bool is_utf8(const uint8_t *p, size_t size) {
  const uint8_t *end = p + size;
  while (p < end) {
    uint8_t c = *p++;
    int more = c < 0x80   ? 0
               : c < 0xc2 ? -1
               : c < 0xe0 ? 1
               : c < 0xf0 ? 2
               : c < 0xf5 ? 3
                          : -1;
    if (more < 0 || end - p < more) return false;
    if (more > 1 && ((c == 0xe0 && p[0] < 0xa0) || (c == 0xed && p[0] > 0x9f) ||
                     (c == 0xf0 && p[0] < 0x90) || (c == 0xf4 && p[0] > 0x8f)))
      return false;
    for (; more > 0; more--)
      if ((*p++ & 0xc0) != 0x80) return false;
  }
  return true;
}

/* The value as a line for a decoder, without a byte order mark. JSON may have line ends between its parts; a tab
 * means the same there, and like them is refused within texts. */
static weir_status make_line(kafka_rows *rows, const uint8_t *value, size_t size,
                             weir_error *err) {
  bool json = rows->format == KAFKA_JSON, blank = true;
  if (size >= 3 && memcmp(value, "\xef\xbb\xbf", 3) == 0) {
    value += 3;
    size -= 3;
  }
  if (rows->line_room < size + 1) {
    uint8_t *line = realloc(rows->line, size + 1);
    if (line == NULL) return no_memory(err);
    rows->line = line;
    rows->line_room = size + 1;
  }
  if (size > 0) memcpy(rows->line, value, size);
  for (size_t i = 0; i < size && json; i++) {
    uint8_t c = rows->line[i];
    if (c == '\n' || c == '\r') rows->line[i] = '\t';
    blank &= c == ' ' || c == '\t' || c == '\n' || c == '\r';
  }
  if (json && blank) return bad(err, "expected a JSON object, got an empty value");
  if (json || size == 0 || rows->line[size - 1] != '\n') rows->line[size++] = '\n';
  rows->line_size = size;
  return WEIR_OK;
}

static weir_status feed(kafka_rows *rows, size_t *used, weir_error *err) {
  return rows->csv != NULL
             ? weir_csv_decoder_feed(rows->csv, rows->line, rows->line_size, 1, used,
                                     &rows->ready, err)
             : weir_ndjson_decoder_feed(rows->ndjson, rows->line, rows->line_size, 1,
                                        used, &rows->ready, err);
}

/* Rows in the decoder, those of a batch that is ready included. */
static int64_t decoded(const kafka_rows *rows) {
  if (rows->ready != NULL) return weir_batch_rows(rows->ready);
  if (rows->format == KAFKA_ARROW) return 0;
  return rows->csv != NULL ? weir_csv_decoder_rows(rows->csv)
                           : weir_ndjson_decoder_rows(rows->ndjson);
}

/* Takes the rows of the last line back: they become a batch without them. */
static weir_status take_back(kafka_rows *rows, weir_error *err) {
  weir_batch *all = rows->ready, *kept = NULL;
  weir_status status = WEIR_OK;
  rows->ready = NULL;
  if (all == NULL) status = weir_csv_decoder_flush(rows->csv, &all, err);
  if (status == WEIR_OK && rows->count > 0)
    status = weir_batch_slice(all, 0, rows->count, &kept, err);
  weir_batch_unref(all);
  rows->ready = kept;
  return status;
}

/* A value is one record, no less and no more. */
static weir_status add_line(kafka_rows *rows, const rd_kafka_message_t *message,
                            bool *taken, weir_error *err) {
  const char *nothing = rows->csv != NULL ? rows->nothing : "{}";
  const void *value = message->payload;
  size_t size = message->len, used = 0;
  if (value == NULL) {
    value = nothing;
    size = strlen(nothing);
  }
  weir_status status = make_line(rows, value, size, err);
  if (status != WEIR_OK) return status;
  status = feed(rows, &used, err);
  if (status != WEIR_OK) return status;
  if (used == 0 || (rows->ready != NULL && decoded(rows) == rows->count)) {
    *taken = false; /* it makes the batch too large, or is bad data behind good rows */
    return WEIR_OK;
  }
  if (decoded(rows) == rows->count + 1 && used == rows->line_size) return WEIR_OK;
  if (decoded(rows) == rows->count)
    return bad(err, "expected one CSV record, got an empty value");
  status = take_back(rows, err);
  return status == WEIR_OK ? bad(err, "expected one CSV record, got several") : status;
}

static ArrowErrorCode start(struct ArrowArray *array, const struct ArrowSchema *schema) {
  struct ArrowArrayView view = {0}; /* keeps nothing of a failed try, unlike the array */
  if (array->release != NULL) return NANOARROW_OK;
  ArrowErrorCode code = ArrowArrayViewInitFromSchema(&view, schema, NULL);
  if (code == NANOARROW_OK) code = ArrowArrayInitFromArrayView(array, &view, NULL);
  ArrowArrayViewReset(&view);
  return code == NANOARROW_OK ? ArrowArrayStartAppending(array) : code;
}

static ArrowErrorCode append_bytes(struct ArrowArray *array, const void *data,
                                   size_t size) {
  if (data == NULL) return ArrowArrayAppendNull(array, 1);
  struct ArrowBufferView view = {.data = {.data = data}, .size_bytes = (int64_t)size};
  return ArrowArrayAppendBytes(array, view);
}

static weir_status add_raw(kafka_rows *rows, const rd_kafka_message_t *message,
                           weir_error *err) {
  const struct ArrowSchema *schema = weir_schema_arrow(rows->values);
  if (message->payload != NULL && rows->text && !is_utf8(message->payload, message->len))
    return bad(err, "the value is not valid UTF-8; take the column as binary");
  if (message->payload == NULL && !(schema->children[0]->flags & ARROW_FLAG_NULLABLE))
    return bad(err, "the message has no value, and the column is not null");
  if (start(&rows->raw, schema) != NANOARROW_OK ||
      append_bytes(rows->raw.children[0], message->payload, message->len) !=
          NANOARROW_OK ||
      ArrowArrayFinishElement(&rows->raw) != NANOARROW_OK)
    return no_memory(err);
  return WEIR_OK;
}

/* A stream of exactly one batch, so that a position never lies within a message. */
static weir_status read_arrow(kafka_rows *rows, weir_ipc_reader *reader,
                              weir_error *err) {
  struct ArrowArray array = {0};
  weir_batch *batch = NULL, *more = NULL;
  weir_status status = weir_schema_check(
      weir_schema_arrow(rows->values), weir_schema_arrow(weir_ipc_reader_schema(reader)),
      "the Arrow stream", err);
  if (status == WEIR_OK) status = weir_ipc_reader_next(reader, &batch, err);
  if (status == WEIR_OK && batch != NULL)
    status = weir_ipc_reader_next(reader, &more, err);
  if (status == WEIR_OK && more != NULL)
    status = bad(err, "expected an Arrow stream of one record batch, got several");
  if (status == WEIR_OK && batch != NULL && weir_batch_rows(batch) > 0) {
    status = weir_batch_export(batch, &array, err);
    if (status == WEIR_OK)
      status = weir_batch_new(rows->values, &array, &rows->ready, err);
  }
  drop(&array);
  weir_batch_unref(batch);
  weir_batch_unref(more);
  return status;
}

static weir_status add_arrow(kafka_rows *rows, const rd_kafka_message_t *message,
                             bool *taken, weir_error *err) {
  weir_bytes bytes = {0};
  weir_ipc_reader *reader = NULL;
  *taken = rows->count == 0;
  if (rows->count > 0 || message->payload == NULL) return WEIR_OK;
  weir_status status = weir_bytes_copy(&bytes, message->payload, message->len, err);
  if (status == WEIR_OK)
    status = weir_ipc_reader_open_bytes(&bytes, "the value", NULL, &reader, err);
  if (status == WEIR_OK) status = read_arrow(rows, reader, err);
  weir_ipc_reader_free(reader);
  weir_bytes_release(&bytes);
  if (status == WEIR_OK || status == WEIR_E_NOMEM) return status;
  if (err != NULL) {
    err->code = WEIR_E_BAD_DATA;
    err->flags = WEIR_ERR_BAD_DATA;
  }
  return WEIR_E_BAD_DATA;
}

/* ---- metadata ---- */

static weir_status check_headers(const rd_kafka_message_t *message, weir_error *err) {
  rd_kafka_headers_t *headers = NULL;
  const char *name = NULL;
  const void *value = NULL;
  size_t size = 0;
  if (rd_kafka_message_headers(message, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR)
    return WEIR_OK;
  for (size_t i = 0; rd_kafka_header_get_all(headers, i, &name, &value, &size) ==
                     RD_KAFKA_RESP_ERR_NO_ERROR;
       i++) {
    if (!is_utf8((const uint8_t *)name, strlen(name)))
      return bad(err, "a header's key is not valid UTF-8; leave out metadata: true");
  }
  return WEIR_OK;
}

static ArrowErrorCode append_headers(struct ArrowArray *list,
                                     const rd_kafka_message_t *message) {
  rd_kafka_headers_t *headers = NULL;
  const char *name = NULL;
  const void *value = NULL;
  size_t size = 0;
  struct ArrowArray *items = list->children[0];
  if (rd_kafka_message_headers(message, &headers) == RD_KAFKA_RESP_ERR_NO_ERROR) {
    for (size_t i = 0; rd_kafka_header_get_all(headers, i, &name, &value, &size) ==
                       RD_KAFKA_RESP_ERR_NO_ERROR;
         i++) {
      NANOARROW_RETURN_NOT_OK(append_bytes(items->children[0], name, strlen(name)));
      NANOARROW_RETURN_NOT_OK(append_bytes(items->children[1], value, size));
      NANOARROW_RETURN_NOT_OK(ArrowArrayFinishElement(items));
    }
  }
  return ArrowArrayFinishElement(list);
}

static ArrowErrorCode add_meta(kafka_rows *rows, const rd_kafka_message_t *message) {
  const char *topic = rd_kafka_topic_name(message->rkt);
  rd_kafka_timestamp_type_t type;
  int64_t timestamp = rd_kafka_message_timestamp(message, &type);
  struct ArrowArray **columns;
  NANOARROW_RETURN_NOT_OK(start(&rows->meta, weir_schema_arrow(rows->schema)));
  columns = rows->meta.children + weir_schema_arrow(rows->values)->n_children;
  NANOARROW_RETURN_NOT_OK(append_bytes(columns[0], topic, strlen(topic)));
  NANOARROW_RETURN_NOT_OK(ArrowArrayAppendInt(columns[1], message->partition));
  NANOARROW_RETURN_NOT_OK(ArrowArrayAppendInt(columns[2], message->offset));
  NANOARROW_RETURN_NOT_OK(type == RD_KAFKA_TIMESTAMP_NOT_AVAILABLE || timestamp < 0
                              ? ArrowArrayAppendNull(columns[3], 1)
                              : ArrowArrayAppendInt(columns[3], timestamp));
  NANOARROW_RETURN_NOT_OK(append_bytes(columns[4], message->key, message->key_len));
  NANOARROW_RETURN_NOT_OK(append_headers(columns[5], message));
  return ArrowArrayAppendInt(columns[6], message->payload == NULL);
}

/* ---- batches ---- */

weir_status kafka_rows_add(kafka_rows *rows, const rd_kafka_message_t *message,
                           bool *taken, weir_error *err) {
  bool now = true;
  weir_status status = rows->with_meta ? check_headers(message, err) : WEIR_OK;
  if (status == WEIR_OK)
    status = rows->format == KAFKA_RAW     ? add_raw(rows, message, err)
             : rows->format == KAFKA_ARROW ? add_arrow(rows, message, &now, err)
                                           : add_line(rows, message, &now, err);
  int64_t n = rows->format != KAFKA_ARROW ? 1 : decoded(rows);
  for (int64_t i = 0; i < n && status == WEIR_OK && now && rows->with_meta; i++) {
    if (add_meta(rows, message) != NANOARROW_OK) status = no_memory(err);
  }
  if (status != WEIR_OK) return status;
  if (now) {
    rows->count += n;
    rows->bytes += message->len + message->key_len;
  }
  *taken = now;
  return WEIR_OK;
}

bool kafka_rows_full(const kafka_rows *rows) {
  return rows->ready != NULL || rows->count >= rows->most || rows->bytes >= BATCH_BYTES;
}

weir_status kafka_rows_set_aside(const kafka_rows *rows, const weir_bad_rows *to,
                                 const rd_kafka_message_t *message, const weir_error *why,
                                 weir_error *err) {
  const struct ArrowSchema *columns = weir_schema_arrow(rows->values);
  char part[320];
  snprintf(part, sizeof(part), "%s/%" PRId32, rd_kafka_topic_name(message->rkt),
           message->partition);
  weir_bad_row row = {.struct_size = sizeof(row),
                      .data = message->payload,
                      .size = message->len,
                      .part = part,
                      .offset = message->offset,
                      .line = -1,
                      .reason = why->message};
  if (why->column >= 0 && why->column < columns->n_children)
    row.column = columns->children[why->column]->name;
  return to->add(to->ctx, &row, err);
}

int64_t kafka_rows_count(const kafka_rows *rows) {
  return rows->count;
}

static weir_status finish_values(kafka_rows *rows, weir_error *err) {
  if (rows->ready != NULL) return WEIR_OK;
  if (rows->csv != NULL) return weir_csv_decoder_flush(rows->csv, &rows->ready, err);
  if (rows->ndjson != NULL)
    return weir_ndjson_decoder_flush(rows->ndjson, &rows->ready, err);
  if (ArrowArrayFinishBuildingDefault(&rows->raw, NULL) != NANOARROW_OK)
    return no_memory(err);
  return weir_batch_new(rows->values, &rows->raw, &rows->ready, err);
}

/* The columns of the values in place of the empty ones before the metadata. */
static weir_status join(kafka_rows *rows, weir_batch **out, weir_error *err) {
  struct ArrowArray values = {0};
  weir_status status = weir_batch_export(rows->ready, &values, err);
  if (status != WEIR_OK) return status;
  rows->meta.length = rows->count;
  for (int64_t i = 0; i < values.n_children; i++) {
    ArrowArrayRelease(rows->meta.children[i]);
    ArrowArrayMove(values.children[i], rows->meta.children[i]);
  }
  ArrowArrayRelease(&values);
  return weir_batch_new(rows->schema, &rows->meta, out, err);
}

weir_status kafka_rows_flush(kafka_rows *rows, weir_batch **out, weir_error *err) {
  weir_batch *batch = NULL;
  weir_status status = rows->count > 0 ? finish_values(rows, err) : WEIR_OK;
  if (rows->count > 0 && rows->with_meta && status == WEIR_OK) {
    if (ArrowArrayFinishBuilding(&rows->meta, NANOARROW_VALIDATION_LEVEL_NONE, NULL) !=
        NANOARROW_OK)
      status = no_memory(err);
    if (status == WEIR_OK) status = join(rows, &batch, err);
  } else if (status == WEIR_OK) {
    batch = rows->ready;
    rows->ready = NULL;
  }
  if (status != WEIR_OK) return status;
  weir_batch_unref(rows->ready);
  rows->ready = NULL;
  rows->count = 0;
  rows->bytes = 0;
  reset(rows);
  *out = batch;
  return WEIR_OK;
}
