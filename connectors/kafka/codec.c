/* SPDX-License-Identifier: Apache-2.0 */
/* How keys and values are written, a row of the table for each way. A new one (Avro with the id of its schema in a
 * registry) is another row, and a word in option format. */
#include <nanoarrow/nanoarrow.h>
#include <stdlib.h>
#include <string.h>
#include <weir/ipc.h>
#include <weir/ndjson.h>

#include "sink.h"

/* Bytes of rows in one message of Arrow; brokers take 1 MiB unless told otherwise. */
#define ARROW_BYTES ((size_t)512 << 10)

static weir_status no_memory(weir_error *err) {
  return weir_error_set(err, WEIR_E_NOMEM, 0, "no memory for messages");
}

bool kafka_is_plain(const struct ArrowSchema *column) {
  return strcmp(column->format, "u") == 0 || strcmp(column->format, "z") == 0;
}

/* ---- plain: the bytes of the one column --------------------------------------------------------- */

static weir_status plain_open(weir_schema *schema, void **out, weir_error *err) {
  struct ArrowArrayView *view = calloc(1, sizeof(*view));
  if (view == NULL) return no_memory(err);
  if (ArrowArrayViewInitFromSchema(view, weir_schema_arrow(schema), NULL) !=
      NANOARROW_OK) {
    free(view);
    return no_memory(err);
  }
  *out = view;
  return WEIR_OK;
}

static void plain_close(void *state) {
  ArrowArrayViewReset(state);
  free(state);
}

static weir_status plain_write(void *state, weir_batch *batch, kafka_part *parts,
                               int64_t *n, weir_error *err) {
  struct ArrowArrayView *view = state;
  *n = weir_batch_rows(batch);
  if (ArrowArrayViewSetArray(view, weir_batch_array(batch), NULL) != NANOARROW_OK)
    return no_memory(err);
  for (int64_t i = 0; i < *n; i++) {
    parts[i] = (kafka_part){.row = i};
    if (ArrowArrayViewIsNull(view->children[0], i)) continue;
    struct ArrowBufferView bytes = ArrowArrayViewGetBytesUnsafe(view->children[0], i);
    parts[i].size = (size_t)bytes.size_bytes;
    parts[i].data =
        bytes.data.as_uint8 != NULL ? bytes.data.as_uint8 : (const uint8_t *)"";
  }
  return WEIR_OK;
}

/* ---- json: an object a row; bare: the value of the one column -------------------------------------- */

static weir_status json_open(weir_schema *schema, void **out, weir_error *err) {
  weir_ndjson_encoder *encoder = NULL;
  weir_status status = weir_ndjson_encoder_new(schema, &encoder, err);
  *out = encoder;
  return status;
}

static void json_close(void *state) {
  weir_ndjson_encoder_free(state);
}

static weir_status json_write(void *state, weir_batch *batch, kafka_part *parts,
                              int64_t *n, weir_error *err) {
  const uint8_t *p = NULL;
  size_t size = 0;
  KAFKA_TRY(weir_ndjson_encoder_write(state, batch, &p, &size, err));
  const uint8_t *end = p + size;
  for (*n = 0; p < end; (*n)++) {
    const uint8_t *line_end = memchr(p, '\n', (size_t)(end - p));
    parts[*n] = (kafka_part){p, (size_t)(line_end - p), *n};
    p = line_end + 1;
  }
  return WEIR_OK;
}

/* The value within {"name":value}. The name ends before the first ':' outside of its quotes. */
static weir_status bare_write(void *state, weir_batch *batch, kafka_part *parts,
                              int64_t *n, weir_error *err) {
  size_t head = 1;
  bool quoted = false;
  KAFKA_TRY(json_write(state, batch, parts, n, err));
  if (*n == 0) return WEIR_OK;
  for (; quoted || parts[0].data[head] != ':'; head++) {
    if (parts[0].data[head] == '\\')
      head++;
    else if (parts[0].data[head] == '"')
      quoted = !quoted;
  }
  head++;
  for (int64_t i = 0; i < *n; i++) {
    parts[i].data += head;
    parts[i].size -= head + 1;
  }
  return WEIR_OK;
}

/* ---- arrow: an IPC stream of one record batch, of as many rows as fit ------------------------------ */

typedef struct arrow {
  weir_schema *schema;
  uint8_t *data; /* the streams of a batch, one after the other */
  size_t size, room;
} arrow;

static weir_status arrow_open(weir_schema *schema, void **out, weir_error *err) {
  arrow *a = calloc(1, sizeof(*a));
  if (a == NULL) return no_memory(err);
  a->schema = weir_schema_ref(schema);
  *out = a;
  return WEIR_OK;
}

static void arrow_close(void *state) {
  arrow *a = state;
  weir_schema_unref(a->schema);
  free(a->data);
  free(a);
}

static weir_status append(void *ctx, const void *data, size_t size, weir_error *err) {
  arrow *a = ctx;
  if (a->room - a->size < size) {
    size_t room = 2 * a->room > a->size + size ? 2 * a->room : a->size + size;
    uint8_t *grown = realloc(a->data, room);
    if (grown == NULL) return no_memory(err);
    a->data = grown;
    a->room = room;
  }
  memcpy(a->data + a->size, data, size);
  a->size += size;
  return WEIR_OK;
}

static weir_status arrow_stream(arrow *a, weir_batch *batch, int64_t from, int64_t rows,
                                weir_error *err) {
  weir_ipc_writer *writer = NULL;
  weir_batch *slice = NULL;
  weir_ipc_writer_options options = {.struct_size = sizeof(options)};
  KAFKA_TRY(weir_batch_slice(batch, from, rows, &slice, err));
  weir_status status = weir_ipc_writer_new(a->schema, &options, append, a, &writer, err);
  if (status == WEIR_OK) status = weir_ipc_writer_write(writer, slice, err);
  if (status == WEIR_OK) status = weir_ipc_writer_finish(writer, err);
  weir_ipc_writer_free(writer);
  weir_batch_unref(slice);
  return status;
}

static weir_status arrow_write(void *state, weir_batch *batch, kafka_part *parts,
                               int64_t *n, weir_error *err) {
  arrow *a = state;
  int64_t all = weir_batch_rows(batch), rows = all;
  a->size = 0;
  *n = 0;
  for (int64_t at = 0; at < all;) {
    size_t begin = a->size;
    if (rows > all - at) rows = all - at;
    KAFKA_TRY(arrow_stream(a, batch, at, rows, err));
    if (a->size - begin > ARROW_BYTES && rows > 1) {
      a->size = begin; /* the same rows in more messages */
      rows = (rows + 1) / 2;
      continue;
    }
    parts[(*n)++] = (kafka_part){.size = a->size - begin, .row = at};
    at += rows;
  }
  const uint8_t *p = a->data; /* it stays where it is from now on */
  for (int64_t i = 0; i < *n; p += parts[i++].size) parts[i].data = p;
  return WEIR_OK;
}

/* ---- the table ------------------------------------------------------------------------------------ */

const kafka_codec kafka_plain = {"raw", false, plain_open, plain_write, plain_close};
const kafka_codec kafka_bare = {"bare", false, json_open, bare_write, json_close};
const kafka_codec kafka_json = {"json", false, json_open, json_write, json_close};
static const kafka_codec kafka_arrow = {"arrow", true, arrow_open, arrow_write,
                                        arrow_close};

const kafka_codec *kafka_codec_find(const char *format) {
  static const kafka_codec *const all[] = {&kafka_json, &kafka_plain, &kafka_arrow};
  for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
    if (strcmp(all[i]->format, format) == 0) return all[i];
  return NULL;
}
