/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows to messages. A value is the row as JSON (<weir/ndjson.h>), or with format raw the bytes of its one column. A key
 * of one column is its text or bytes, or of another type its value in JSON; of several columns it is a JSON object.
 */
#include <nanoarrow/nanoarrow.h>
#include <stdlib.h>
#include <string.h>
#include <weir/ndjson.h>

#include "sink.h"

/* Texts of columns, one a row. */
typedef struct encoded {
  weir_schema *schema; /* of the columns */
  int64_t *columns;    /* of the batch */
  int64_t n;
  weir_ndjson_encoder *json; /* NULL: one column of text or bytes, as they are */
} encoded;

struct kafka_values {
  weir_schema *schema;
  encoded key, value;
  bool has_key;
  int64_t op; /* column `_op`; -1: none */
  kafka_value *rows;
  int64_t room;
  uint8_t *keys, *texts; /* of the batch under way */
  weir_batch *held[2];   /* whose bytes rows point to */
};

static weir_status no_memory(weir_error *err) {
  return weir_error_set(err, WEIR_E_NOMEM, 0, "no memory for messages");
}

static bool is_plain(const struct ArrowSchema *column) {
  return strcmp(column->format, "u") == 0 || strcmp(column->format, "z") == 0;
}

/* ---- making ------------------------------------------------------------------------------------- */

static weir_status encoded_new(weir_schema *schema, encoded *e, bool plain,
                               weir_error *err) {
  KAFKA_TRY(weir_schema_select(schema, e->columns, e->n, &e->schema, err));
  if (plain && e->n == 1 && is_plain(weir_schema_arrow(e->schema)->children[0]))
    return WEIR_OK;
  return weir_ndjson_encoder_new(e->schema, &e->json, err);
}

static weir_status find_key(const kafka_sink *sink, const struct ArrowSchema *in,
                            encoded *e, weir_error *err) {
  for (size_t k = 0; k < sink->n_key; k++) {
    int64_t i = 0;
    while (i < in->n_children && strcmp(in->children[i]->name, sink->key[k]) != 0) i++;
    if (i == in->n_children)
      return weir_error_set(
          err, WEIR_E_SCHEMA, 0,
          "option key: there is no column '%s' among those that come in", sink->key[k]);
    e->columns[e->n++] = i;
  }
  return WEIR_OK;
}

weir_status kafka_values_new(const kafka_sink *sink, weir_schema *schema,
                             kafka_values **out, weir_error *err) {
  const struct ArrowSchema *in = weir_schema_arrow(schema);
  kafka_values *v = calloc(1, sizeof(*v));
  if (v == NULL) return no_memory(err);
  v->schema = weir_schema_ref(schema);
  v->op = sink->upsert && in->n_children > 0 &&
                  strcmp(in->children[in->n_children - 1]->name, "_op") == 0
              ? in->n_children - 1
              : -1;
  v->has_key = sink->n_key > 0;
  v->key.columns = calloc(sink->n_key + 1, sizeof(int64_t));
  v->value.columns = calloc((size_t)in->n_children + 1, sizeof(int64_t));
  weir_status status = v->key.columns && v->value.columns ? WEIR_OK : no_memory(err);
  if (status == WEIR_OK) status = find_key(sink, in, &v->key, err);
  for (int64_t i = 0; i < in->n_children && status == WEIR_OK; i++)
    if (i != v->op) v->value.columns[v->value.n++] = i;
  if (status == WEIR_OK && sink->raw && (v->value.n != 1 || !is_plain(in->children[0])))
    status = weir_error_set(err, WEIR_E_SCHEMA, 0,
                            "format raw takes one column of utf8 or binary, and "
                            "%lld columns come in",
                            (long long)v->value.n);
  if (status == WEIR_OK && v->has_key) status = encoded_new(schema, &v->key, true, err);
  if (status == WEIR_OK) status = encoded_new(schema, &v->value, sink->raw, err);
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
  weir_ndjson_encoder_free(e->json);
  weir_schema_unref(e->schema);
  free(e->columns);
}

static void forget(kafka_values *v) {
  for (int i = 0; i < 2; i++) {
    weir_batch_unref(v->held[i]);
    v->held[i] = NULL;
  }
  free(v->keys);
  free(v->texts);
  v->keys = v->texts = NULL;
}

void kafka_values_free(kafka_values *v) {
  if (v == NULL) return;
  forget(v);
  encoded_done(&v->key);
  encoded_done(&v->value);
  weir_schema_unref(v->schema);
  free(v->rows);
  free(v);
}

/* ---- encoding ----------------------------------------------------------------------------------- */

typedef struct part {
  const uint8_t *data;
  size_t size;
} part;

static void put(kafka_value *row, bool key, part p) {
  if (key) {
    row->key = p.data;
    row->key_size = p.size;
  } else {
    row->value = p.data;
    row->size = p.size;
  }
}

static weir_status put_plain(kafka_values *v, const encoded *e, const weir_batch *batch,
                             bool key, weir_error *err) {
  struct ArrowArrayView view = {0};
  const struct ArrowSchema *schema = weir_schema_arrow(e->schema);
  int64_t n = weir_batch_rows(batch);
  ArrowErrorCode code = ArrowArrayViewInitFromSchema(&view, schema, NULL);
  if (code == NANOARROW_OK)
    code = ArrowArrayViewSetArray(&view, weir_batch_array(batch), NULL);
  for (int64_t i = 0; i < n && code == NANOARROW_OK; i++) {
    const struct ArrowArrayView *column = view.children[0];
    part p = {0};
    if (!ArrowArrayViewIsNull(column, i)) {
      struct ArrowBufferView bytes = ArrowArrayViewGetBytesUnsafe(column, i);
      p = (part){bytes.data.as_uint8, (size_t)bytes.size_bytes};
      if (p.data == NULL) p.data = (const uint8_t *)"";
    }
    put(&v->rows[i], key, p);
  }
  ArrowArrayViewReset(&view);
  return code == NANOARROW_OK ? WEIR_OK : no_memory(err);
}

/* A line of JSON a row; of one key column the value within `{"name":value}`. */
static weir_status put_json(kafka_values *v, encoded *e, const weir_batch *batch,
                            bool key, weir_error *err) {
  const uint8_t *data = NULL;
  size_t size = 0, head = 0, tail = 0;
  KAFKA_TRY(weir_ndjson_encoder_write(e->json, batch, &data, &size, err));
  uint8_t *copy = malloc(size + 1);
  if (copy == NULL) return no_memory(err);
  memcpy(copy, data, size);
  *(key ? &v->keys : &v->texts) = copy;
  const uint8_t *p = copy, *end = copy + size;
  if (key && e->n == 1) {
    /* the name is the same in each row, and ends before the first ':' outside of its quotes */
    bool quoted = false;
    for (head = 1; p + head < end && (quoted || p[head] != ':'); head++) {
      if (p[head] == '\\')
        head++;
      else if (p[head] == '"')
        quoted = !quoted;
    }
    head++;
    tail = 1;
  }
  for (int64_t i = 0; p < end; i++) {
    const uint8_t *line_end = memchr(p, '\n', (size_t)(end - p));
    put(&v->rows[i], key, (part){p + head, (size_t)(line_end - p) - head - tail});
    p = line_end + 1;
  }
  return WEIR_OK;
}

static weir_status put_part(kafka_values *v, encoded *e, weir_batch *batch, bool key,
                            weir_error *err) {
  weir_batch *part_of = NULL;
  KAFKA_TRY(weir_batch_select(batch, e->schema, e->columns, &part_of, err));
  v->held[key] = part_of;
  if (e->json == NULL) return put_plain(v, e, part_of, key, err);
  weir_status status = put_json(v, e, part_of, key, err);
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
    if (v->op >= 0 && !ArrowArrayViewIsNull(view.children[v->op], i))
      op = ArrowArrayViewGetBytesUnsafe(view.children[v->op], i);
    if (op.size_bytes == 1 && op.data.as_char[0] == 'D')
      put(&v->rows[i], false, (part){0});
  }
  ArrowArrayViewReset(&view);
  if (code != NANOARROW_OK) return no_memory(err);
  if (bad < 0) return WEIR_OK;
  weir_error_set(err, WEIR_E_BAD_DATA, WEIR_ERR_BAD_DATA, "key column '%s' is null",
                 weir_schema_arrow(v->schema)->children[column]->name);
  return weir_error_at(err, WEIR_E_BAD_DATA, bad, column);
}

weir_status kafka_values_encode(kafka_values *v, weir_batch *batch,
                                const kafka_value **out, weir_error *err) {
  int64_t n = weir_batch_rows(batch);
  forget(v);
  if (n > v->room) {
    free(v->rows);
    v->rows = calloc((size_t)n, sizeof(*v->rows));
    v->room = v->rows != NULL ? n : 0;
    if (v->rows == NULL) return no_memory(err);
  }
  memset(v->rows, 0, (size_t)n * sizeof(*v->rows));
  if (n > 0 && v->has_key) KAFKA_TRY(put_part(v, &v->key, batch, true, err));
  if (n > 0) KAFKA_TRY(put_part(v, &v->value, batch, false, err));
  if (n > 0 && v->op >= 0) KAFKA_TRY(mind_changes(v, batch, err));
  *out = v->rows;
  return WEIR_OK;
}
