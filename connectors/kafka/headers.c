/* SPDX-License-Identifier: Apache-2.0 */
/* Headers of messages from a column: a map, or a list of structs, of names and values. Null or empty: none. */
#include <nanoarrow/nanoarrow.h>
#include <stdlib.h>
#include <string.h>

#include "sink.h"

/* A record's own: two lengths as varints (Kafka protocol, "Record Header"). */
#define HEADER_BYTES 10

struct kafka_headers {
  int32_t column;
  struct ArrowArrayView view; /* of a batch with all its columns */
};

static bool is_text(const struct ArrowSchema *s) {
  return strcmp(s->format, "u") == 0 || strcmp(s->format, "U") == 0;
}

static bool is_bytes(const struct ArrowSchema *s) {
  return is_text(s) || strcmp(s->format, "z") == 0 || strcmp(s->format, "Z") == 0;
}

static bool is_headers(const struct ArrowSchema *s) {
  static const char *const outer[] = {"+m", "+l", "+L"};
  bool good = false;
  for (size_t i = 0; i < sizeof(outer) / sizeof(outer[0]); i++)
    good |= strcmp(s->format, outer[i]) == 0;
  if (!good || s->n_children != 1) return false;
  const struct ArrowSchema *pair = s->children[0];
  return strcmp(pair->format, "+s") == 0 && pair->n_children == 2 &&
         is_text(pair->children[0]) && is_bytes(pair->children[1]);
}

weir_status kafka_headers_new(weir_schema *schema, int64_t column, kafka_headers **out,
                              weir_error *err) {
  const struct ArrowSchema *s = weir_schema_arrow(schema);
  char type[160];
  if (!is_headers(s->children[column])) {
    weir_type_format(s->children[column], type, sizeof(type));
    return weir_error_set(
        err, WEIR_E_SCHEMA, 0,
        "option headers: column '%s' is %s, and must be map<utf8, binary> or "
        "list<struct<key: utf8, value: binary>>; the values may be utf8 as well",
        s->children[column]->name, type);
  }
  kafka_headers *h = calloc(1, sizeof(*h));
  if (h == NULL || ArrowArrayViewInitFromSchema(&h->view, s, NULL) != NANOARROW_OK) {
    free(h);
    return weir_error_set(err, WEIR_E_NOMEM, 0, "no memory for headers");
  }
  h->column = (int32_t)column;
  *out = h;
  return WEIR_OK;
}

void kafka_headers_free(kafka_headers *h) {
  if (h == NULL) return;
  ArrowArrayViewReset(&h->view);
  free(h);
}

/* The pairs [*at, *end) of a row within the column's items. */
static const struct ArrowArrayView *pairs_of(const kafka_headers *h, int64_t row,
                                             int64_t *at, int64_t *end) {
  const struct ArrowArrayView *column = h->view.children[h->column];
  const struct ArrowArrayView *pairs = column->children[0];
  *at = *end = 0;
  if (ArrowArrayViewIsNull(column, row)) return pairs;
  row += column->offset;
  *at = ArrowArrayViewListChildOffset(column, row);
  *end = ArrowArrayViewListChildOffset(column, row + 1);
  return pairs;
}

static weir_status check_row(const kafka_headers *h, int64_t row, weir_error *err) {
  int64_t at, end;
  const struct ArrowArrayView *pairs = pairs_of(h, row, &at, &end);
  for (; at < end; at++) {
    if (!ArrowArrayViewIsNull(pairs, at) &&
        !ArrowArrayViewIsNull(pairs->children[0], at + pairs->offset))
      continue;
    weir_error_set(err, WEIR_E_BAD_DATA, WEIR_ERR_BAD_DATA, "a header without a name");
    return weir_error_at(err, WEIR_E_BAD_DATA, row, h->column);
  }
  return WEIR_OK;
}

weir_status kafka_headers_set(kafka_headers *h, weir_batch *batch, weir_error *err) {
  weir_status status = WEIR_OK;
  if (ArrowArrayViewSetArray(&h->view, weir_batch_array(batch), NULL) != NANOARROW_OK)
    return weir_error_set(err, WEIR_E_NOMEM, 0, "no memory for headers");
  for (int64_t i = 0; i < weir_batch_rows(batch) && status == WEIR_OK; i++)
    status = check_row(h, i, err);
  return status;
}

size_t kafka_headers_size(const kafka_headers *h, int64_t row) {
  int64_t at, end;
  size_t size = 0;
  const struct ArrowArrayView *pairs = pairs_of(h, row, &at, &end);
  for (; at < end; at++) {
    for (int c = 0; c < 2; c++)
      size += (size_t)ArrowArrayViewGetBytesUnsafe(pairs->children[c], at + pairs->offset)
                  .size_bytes;
    size += HEADER_BYTES;
  }
  return size;
}

rd_kafka_headers_t *kafka_headers_make(const kafka_headers *h, int64_t row) {
  int64_t at, end;
  const struct ArrowArrayView *pairs = pairs_of(h, row, &at, &end);
  if (at == end) return NULL;
  rd_kafka_headers_t *made = rd_kafka_headers_new((size_t)(end - at));
  for (; at < end; at++) {
    int64_t i = at + pairs->offset;
    struct ArrowBufferView name = ArrowArrayViewGetBytesUnsafe(pairs->children[0], i),
                           value = ArrowArrayViewGetBytesUnsafe(pairs->children[1], i);
    const void *data = value.data.data != NULL ? value.data.data : "";
    if (ArrowArrayViewIsNull(pairs->children[1], i)) data = NULL;
    rd_kafka_header_add(made, name.data.data != NULL ? name.data.as_char : "",
                        name.size_bytes, data,
                        data != NULL ? (ssize_t)value.size_bytes : 0);
  }
  return made;
}
