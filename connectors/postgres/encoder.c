/* SPDX-License-Identifier: Apache-2.0 */
#include "encoder.h"

#include <stdlib.h>

#include "column.h"

const uint8_t pg_copy_head[19] = {'P', 'G', 'C', 'O', 'P', 'Y', '\n', 0xff, '\r', '\n'};
const uint8_t pg_copy_tail[2] = {0xff, 0xff};

enum {
  PIECE = 256 << 10, /* stays in a core's cache until the socket has it */
  ROWS = 4096,       /* measured at once */
  MOST = 0x3fffffff  /* MaxAllocSize: what the server takes as one row */
};

struct pg_encoder {
  weir_schema *schema;
  pg_column *columns;
  int64_t n;
  size_t room; /* of a row, without what pg_column_extra adds */
  bool numbered;
  uint64_t number;   /* of the next row */
  int64_t row, rows; /* of the batch */
  uint8_t *buffer;
  size_t size;
};

weir_status pg_encoder_new(weir_schema *schema, const pg_type *types, bool numbered,
                           pg_encoder **out, weir_error *err) {
  weir_status status = WEIR_OK;
  const struct ArrowSchema *arrow = weir_schema_arrow(schema);
  int64_t n = arrow->n_children;
  pg_encoder *encoder = calloc(1, sizeof(*encoder));
  if (encoder) encoder->columns = calloc((size_t)n + 1, sizeof(*encoder->columns));
  if (!encoder || !encoder->columns) {
    status = weir_error_set(err, WEIR_E_NOMEM, 0, "no memory for an encoder");
    goto out;
  }
  encoder->schema = weir_schema_ref(schema);
  encoder->numbered = numbered;
  encoder->room = numbered ? 2 + 12 : 2;
  for (int64_t i = 0; i < n; i++, encoder->n++) {
    const struct ArrowSchema *field = arrow->children[i];
    status = pg_column_init(&encoder->columns[i], schema, i, field, &types[i], err);
    if (status) {
      weir_error_prefix(err, status, "column '%s'", field->name);
      goto out;
    }
    encoder->room += encoder->columns[i].room;
  }
out:
  if (status) {
    pg_encoder_free(encoder);
  } else {
    *out = encoder;
  }
  return status;
}

void pg_encoder_free(pg_encoder *encoder) {
  if (!encoder) return;
  for (int64_t i = 0; i < encoder->n; i++) pg_column_done(&encoder->columns[i]);
  free(encoder->columns);
  weir_schema_unref(encoder->schema);
  free(encoder->buffer);
  free(encoder);
}

static weir_status bad_value(const pg_encoder *encoder, int64_t column, int64_t row,
                             weir_error *err) {
  weir_error_set(err, WEIR_E_BAD_DATA, WEIR_ERR_BAD_DATA, "column '%s' %s",
                 weir_schema_arrow(encoder->schema)->children[column]->name,
                 pg_column_why(&encoder->columns[column]));
  return weir_error_at(err, WEIR_E_BAD_DATA, row, (int32_t)column);
}

/* Bytes of n rows, at most. */
static size_t bound(pg_encoder *encoder, int64_t row, int64_t n) {
  size_t size = (size_t)n * encoder->room;
  for (int64_t k = 0; k < encoder->n; k++) {
    pg_column *column = &encoder->columns[k];
    size += pg_column_extra(column, column->array->offset + row, n);
  }
  return size;
}

static weir_status check_sizes(pg_encoder *encoder, weir_error *err) {
  if (bound(encoder, 0, encoder->rows) <= MOST) return WEIR_OK;
  for (int64_t row = 0; row < encoder->rows; row++) {
    if (bound(encoder, row, 1) <= MOST) continue;
    weir_error_set(err, WEIR_E_BAD_DATA, WEIR_ERR_BAD_DATA,
                   "the row is larger than the 1 GiB that PostgreSQL takes as one");
    return weir_error_at(err, WEIR_E_BAD_DATA, row, -1);
  }
  return WEIR_OK;
}

static weir_status start_column(pg_encoder *encoder, int64_t k, weir_batch *batch,
                                weir_error *err) {
  pg_column *column = &encoder->columns[k];
  pg_column_bind(column, weir_batch_array(batch)->children[k]);
  weir_status status = column->json ? pg_json_bind(column->json, batch, err) : WEIR_OK;
  if (status) {
    if (err && err->column >= 0) err->column = (int32_t)k;
    return weir_error_prefix(err, status, "column '%s'",
                             weir_schema_arrow(encoder->schema)->children[k]->name);
  }
  int64_t offset = column->array->offset;
  int64_t bad = pg_column_check(column, offset, weir_batch_rows(batch));
  return bad < 0 ? WEIR_OK : bad_value(encoder, k, bad - offset, err);
}

weir_status pg_encoder_start(pg_encoder *encoder, weir_batch *batch, weir_error *err) {
  encoder->row = encoder->rows = 0;
  for (int64_t k = 0; k < encoder->n; k++) PG_TRY(start_column(encoder, k, batch, err));
  encoder->rows = weir_batch_rows(batch);
  return check_sizes(encoder, err);
}

weir_status pg_encoder_next(pg_encoder *encoder, const uint8_t **data, size_t *size,
                            weir_error *err) {
  int64_t n = encoder->rows - encoder->row;
  if (n > ROWS) n = ROWS;
  size_t most = n ? bound(encoder, encoder->row, n) : 0;
  for (; n > 1 && most > PIECE; most = bound(encoder, encoder->row, n)) n = (n + 1) / 2;
  if (most > encoder->size) {
    size_t room = most > PIECE ? most : PIECE;
    uint8_t *buffer = malloc(room);
    if (!buffer) return weir_error_set(err, WEIR_E_NOMEM, 0, "no memory for rows");
    free(encoder->buffer);
    encoder->buffer = buffer;
    encoder->size = room;
  }
  uint8_t *at = encoder->buffer;
  for (int64_t end = encoder->row + n; encoder->row < end; encoder->row++) {
    at = pg_put16(at, (uint16_t)(encoder->n + encoder->numbered));
    for (int64_t k = 0; k < encoder->n; k++) {
      const pg_column *column = &encoder->columns[k];
      at = pg_put(column, column->array->offset + encoder->row, at);
    }
    if (encoder->numbered) at = pg_put64(pg_put32(at, 8), encoder->number++);
  }
  *data = encoder->buffer;
  *size = (size_t)(at - encoder->buffer);
  return WEIR_OK;
}
