/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows to messages. A key of one column is its text or bytes, or of another type its value in JSON; of several columns
 * it is a JSON object. The value is written by the codec of option format, from all columns but `_op` and the headers;
 * with format raw from the one that is left beside the key's.
 */
#include <inttypes.h>
#include <nanoarrow/nanoarrow.h>
#include <stdlib.h>
#include <string.h>

#include "sink.h"

/* What a record has beside key, value and headers: lengths, timestamp and offset of at most 36 bytes in message format
 * 2 (Kafka protocol, "Record"), rounded up. */
#define RECORD_BYTES 64

/* Some of the columns, and what writes them. */
typedef struct encoded {
  weir_schema *schema;
  int64_t *columns; /* of the batch */
  int64_t n;
  const kafka_codec *codec;
  void *state;
  weir_batch *held; /* whose bytes the parts point to */
  kafka_part *parts;
} encoded;

struct kafka_values {
  const kafka_sink *sink;
  weir_schema *schema;
  encoded key, value;
  kafka_headers *headers; /* NULL: none */
  int64_t op;             /* column `_op`; -1: none */
  kafka_value *rows;
  int64_t room;
};

static weir_status no_memory(weir_error *err) {
  return weir_error_set(err, WEIR_E_NOMEM, 0, "no memory for messages");
}

/* ---- making ------------------------------------------------------------------------------------- */

static weir_status find_column(const struct ArrowSchema *in, const char *option,
                               const char *name, int64_t *out, weir_error *err) {
  for (*out = 0; *out < in->n_children; (*out)++)
    if (strcmp(in->children[*out]->name, name) == 0) return WEIR_OK;
  return weir_error_set(err, WEIR_E_SCHEMA, 0,
                        "option %s: there is no column '%s' among those that come in",
                        option, name);
}

static bool is_key(const kafka_values *v, int64_t column) {
  for (int64_t k = 0; k < v->key.n; k++)
    if (v->key.columns[k] == column) return true;
  return false;
}

static void choose_columns(kafka_values *v, const struct ArrowSchema *in, int64_t headers,
                           bool without_key) {
  v->value.n = 0;
  for (int64_t i = 0; i < in->n_children; i++)
    if (i != v->op && i != headers && !(without_key && is_key(v, i)))
      v->value.columns[v->value.n++] = i;
}

static weir_status find_columns(kafka_values *v, weir_error *err) {
  const kafka_sink *sink = v->sink;
  const struct ArrowSchema *in = weir_schema_arrow(v->schema);
  int64_t headers = -1, last = in->n_children - 1;
  v->op = sink->upsert && last >= 0 && strcmp(in->children[last]->name, "_op") == 0 ? last
                                                                                    : -1;
  v->key.columns = calloc(sink->n_key + 1, sizeof(int64_t));
  v->value.columns = calloc((size_t)in->n_children + 1, sizeof(int64_t));
  if (v->key.columns == NULL || v->value.columns == NULL) return no_memory(err);
  for (size_t k = 0; k < sink->n_key; k++)
    KAFKA_TRY(find_column(in, "key", sink->key[k], &v->key.columns[v->key.n++], err));
  if (sink->headers != NULL) {
    KAFKA_TRY(find_column(in, "headers", sink->headers, &headers, err));
    KAFKA_TRY(kafka_headers_new(v->schema, headers, &v->headers, err));
  }
  choose_columns(v, in, headers, false);
  if (sink->codec != &kafka_plain) return WEIR_OK;
  if (v->value.n > 1) choose_columns(v, in, headers, true);
  if (v->value.n == 1 && kafka_is_plain(in->children[v->value.columns[0]]))
    return WEIR_OK;
  return weir_error_set(err, WEIR_E_SCHEMA, 0,
                        "format raw takes one column of utf8 or binary beside those of "
                        "key and headers, and %lld come in",
                        (long long)v->value.n);
}

static weir_status encoded_open(encoded *e, weir_schema *schema, const kafka_codec *codec,
                                weir_error *err) {
  KAFKA_TRY(weir_schema_select(schema, e->columns, e->n, &e->schema, err));
  e->codec = codec;
  return codec->open(e->schema, &e->state, err);
}

static weir_status open_key(kafka_values *v, weir_error *err) {
  const struct ArrowSchema *in = weir_schema_arrow(v->schema);
  bool one = v->key.n == 1;
  if (v->key.n == 0) return WEIR_OK;
  bool plain = one && kafka_is_plain(in->children[v->key.columns[0]]);
  return encoded_open(&v->key, v->schema,
                      plain ? &kafka_plain
                      : one ? &kafka_bare
                            : &kafka_json,
                      err);
}

weir_status kafka_values_new(const kafka_sink *sink, weir_schema *schema,
                             kafka_values **out, weir_error *err) {
  kafka_values *v = calloc(1, sizeof(*v));
  if (v == NULL) return no_memory(err);
  v->sink = sink;
  v->schema = weir_schema_ref(schema);
  weir_status status = find_columns(v, err);
  if (status == WEIR_OK) status = open_key(v, err);
  if (status == WEIR_OK) status = encoded_open(&v->value, schema, sink->codec, err);
  if (status != WEIR_OK) {
    kafka_values_free(v);
    return status;
  }
  *out = v;
  return WEIR_OK;
}

weir_status kafka_values_check(const kafka_sink *sink, weir_schema *input,
                               weir_error *err) {
  kafka_values *values = NULL;
  weir_status status = kafka_values_new(sink, input, &values, err);
  kafka_values_free(values);
  return status;
}

static void encoded_done(encoded *e) {
  if (e->state != NULL) e->codec->close(e->state);
  weir_batch_unref(e->held);
  weir_schema_unref(e->schema);
  free(e->columns);
  free(e->parts);
}

void kafka_values_free(kafka_values *v) {
  if (v == NULL) return;
  encoded_done(&v->key);
  encoded_done(&v->value);
  kafka_headers_free(v->headers);
  weir_schema_unref(v->schema);
  free(v->rows);
  free(v);
}

/* ---- encoding ----------------------------------------------------------------------------------- */

static weir_status make_room(kafka_values *v, int64_t n, weir_error *err) {
  if (n <= v->room) return WEIR_OK;
  free(v->rows);
  free(v->key.parts);
  free(v->value.parts);
  v->rows = calloc((size_t)n, sizeof(*v->rows));
  v->key.parts = calloc((size_t)n, sizeof(*v->key.parts));
  v->value.parts = calloc((size_t)n, sizeof(*v->value.parts));
  v->room = v->rows && v->key.parts && v->value.parts ? n : 0;
  return v->room > 0 ? WEIR_OK : no_memory(err);
}

static weir_status encode(encoded *e, weir_batch *batch, int64_t *n, weir_error *err) {
  weir_batch_unref(e->held);
  e->held = NULL;
  KAFKA_TRY(weir_batch_select(batch, e->schema, e->columns, &e->held, err));
  weir_status status = e->codec->write(e->state, e->held, e->parts, n, err);
  if (status != WEIR_OK && err != NULL && err->column >= 0)
    err->column = (int32_t)e->columns[err->column];
  return status;
}

/* Rows to delete have no value; NULL in a key is no key. */
static weir_status mind_changes(kafka_values *v, const weir_batch *batch,
                                weir_error *err) {
  struct ArrowArrayView view = {0};
  int64_t n = weir_batch_rows(batch), bad = -1;
  ArrowErrorCode code =
      ArrowArrayViewInitFromSchema(&view, weir_schema_arrow(v->schema), NULL);
  if (code == NANOARROW_OK)
    code = ArrowArrayViewSetArray(&view, weir_batch_array(batch), NULL);
  int32_t column = -1;
  for (int64_t i = 0; i < n && code == NANOARROW_OK && bad < 0; i++) {
    struct ArrowBufferView op = {0};
    for (int64_t k = 0; k < v->key.n; k++) {
      if (!ArrowArrayViewIsNull(view.children[v->key.columns[k]], i)) continue;
      bad = i;
      column = (int32_t)v->key.columns[k];
    }
    if (!ArrowArrayViewIsNull(view.children[v->op], i))
      op = ArrowArrayViewGetBytesUnsafe(view.children[v->op], i);
    if (op.size_bytes != 1 || op.data.as_char[0] != 'D') continue;
    v->rows[i].value = NULL;
    v->rows[i].size = 0;
  }
  ArrowArrayViewReset(&view);
  if (code != NANOARROW_OK) return no_memory(err);
  if (bad < 0) return WEIR_OK;
  weir_error_set(err, WEIR_E_BAD_DATA, WEIR_ERR_BAD_DATA, "key column '%s' is null",
                 weir_schema_arrow(v->schema)->children[column]->name);
  return weir_error_at(err, WEIR_E_BAD_DATA, bad, column);
}

/* What the client would not take. Of what brokers take, which may be less, compression decides. */
static weir_status check_sizes(const kafka_values *v, int64_t n, weir_error *err) {
  for (int64_t i = 0; i < n; i++) {
    const kafka_value *m = &v->rows[i];
    size_t size = m->key_size + m->size + RECORD_BYTES;
    if (v->headers != NULL) size += kafka_headers_size(v->headers, m->row);
    if (size <= (size_t)v->sink->max_message) continue;
    weir_error_set(
        err, WEIR_E_BAD_DATA, WEIR_ERR_BAD_DATA,
        "its message of %zu bytes is larger than the client takes (%" PRId64
        "); set message.max.bytes in option config, and max.message.bytes of topic %s",
        size, v->sink->max_message, v->sink->topic);
    return weir_error_at(err, WEIR_E_BAD_DATA, m->row, -1);
  }
  return WEIR_OK;
}

weir_status kafka_values_encode(kafka_values *v, weir_batch *batch,
                                const kafka_value **out, int64_t *n, weir_error *err) {
  int64_t keys = 0;
  *n = 0;
  *out = NULL;
  if (weir_batch_rows(batch) == 0) return WEIR_OK;
  KAFKA_TRY(make_room(v, weir_batch_rows(batch), err));
  if (v->key.n > 0) KAFKA_TRY(encode(&v->key, batch, &keys, err));
  KAFKA_TRY(encode(&v->value, batch, n, err));
  if (v->headers != NULL) KAFKA_TRY(kafka_headers_set(v->headers, batch, err));
  for (int64_t i = 0; i < *n; i++) {
    const kafka_part *value = &v->value.parts[i];
    v->rows[i] =
        (kafka_value){.value = value->data, .size = value->size, .row = value->row};
    if (keys == 0) continue;
    v->rows[i].key = v->key.parts[i].data;
    v->rows[i].key_size = v->key.parts[i].size;
  }
  if (v->op >= 0) KAFKA_TRY(mind_changes(v, batch, err));
  *out = v->rows;
  return check_sizes(v, *n, err);
}

rd_kafka_headers_t *kafka_values_headers(const kafka_values *v, const kafka_value *m) {
  return v->headers != NULL ? kafka_headers_make(v->headers, m->row) : NULL;
}
