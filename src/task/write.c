/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A batch into write_batch, and out of it the rows that the connector calls bad, when they are wanted as letters.
 *
 * What a failed write names is cut out and the rest offered again, in ranges: half as long after each bad row,
 * twice as long after each that went through. However the connector goes through a range, all ranges together are
 * then a few times as long as the batch, also when every row of it is bad.
 */
#include <stdlib.h>
#include <string.h>
#include <weir/fault.h>
#include <weir/ipc.h>
#include <weir/ndjson.h>

#include "task/actor.h"

typedef struct cutting {
  generation *g;
  weir_batch *batch;
  int64_t rows;
  uint8_t *bad; /* by row */
  connector_letters *letters;
  weir_ndjson_encoder *encoder; /* NULL: JSON cannot hold such rows */
  weir_write_result *result;    /* of all that was taken */
} cutting;

/* ---- one row as a letter ------------------------------------------------------------------------ */

static weir_status append(void *ctx, const void *data, size_t size, weir_error *err) {
  return base_buf_append(ctx, data, size, err);
}

/* As an Arrow stream: whatever it is, it can be read again. */
static weir_status write_stream(weir_batch *row, base_buf *out, weir_error *err) {
  weir_ipc_writer *writer = NULL;
  BASE_TRY(weir_ipc_writer_new(weir_batch_schema(row), NULL, append, out, &writer, err));
  weir_status status = weir_ipc_writer_write(writer, row, err);
  if (!status) status = weir_ipc_writer_finish(writer, err);
  weir_ipc_writer_free(writer);
  return status;
}

static weir_status set_aside(cutting *c, int64_t at, const weir_error *why,
                             weir_error *err) {
  const struct ArrowSchema *columns = weir_schema_arrow(weir_batch_schema(c->batch));
  const uint8_t *json = NULL;
  size_t size = 0;
  base_buf stream = {0};
  weir_batch *row = NULL;
  BASE_TRY(weir_batch_slice(c->batch, at, 1, &row, err));
  weir_bad_row letter = {
      .struct_size = sizeof(letter), .offset = -1, .line = -1, .reason = why->message};
  if (why->column >= 0 && why->column < columns->n_children)
    letter.column = columns->children[why->column]->name;
  weir_status status = WEIR_OK;
  if (c->encoder && !weir_ndjson_encoder_write(c->encoder, row, &json, &size, NULL)) {
    letter.data = json;
    letter.size = size - 1; /* its line end */
  } else {
    status = write_stream(row, &stream, err);
    letter.data = stream.data;
    letter.size = stream.size;
  }
  if (!status) status = connector_letters_add(c->letters, &letter, err);
  base_buf_done(&stream);
  weir_batch_unref(row);
  return status;
}

/* ---- ranges ------------------------------------------------------------------------------------------ */

static weir_status offer(generation *g, weir_batch *batch, weir_write_result *sum,
                         weir_error *err) {
  weir_write_result result = {0};
  task_actor *a = g->actor;
  if (a->keys) BASE_TRY(task_router_check(a->keys, batch, err));
  BASE_TRY(connector_sink_write_batch(g->sink, &g->main.call, batch, &result, err));
  sum->records += result.records;
  sum->bytes += result.bytes;
  return WEIR_OK;
}

/* Whether the failure is one row's of so many. */
static bool names_a_row(const weir_error *error, int64_t rows) {
  return error->flags & WEIR_ERR_BAD_DATA && error->row >= 0 && error->row < rows;
}

/* A rewind or the end waits for this thread. */
static bool is_over(task_actor *a) {
  pthread_mutex_lock(&a->lock);
  bool over = a->stopping || a->jobs.first;
  pthread_mutex_unlock(&a->lock);
  return over;
}

static weir_status offer_range(cutting *c, int64_t from, int64_t rows, weir_error *err) {
  weir_batch *slice = NULL;
  if (is_over(c->g->actor))
    return weir_error_set(err, WEIR_E_CANCELLED, WEIR_ERR_RETRIABLE,
                          "sink %s: the attempt is over", c->g->actor->config.name);
  BASE_TRY(weir_batch_slice(c->batch, from, rows, &slice, err));
  seat_next(c->g, &c->g->main, "write_batch", c->g->actor->config.timeouts.write);
  weir_status status = offer(c->g, slice, c->result, err);
  weir_batch_unref(slice);
  return status;
}

/* The whole batch was offered and refused with `first`. */
static weir_status offer_in_ranges(cutting *c, const weir_error *first, weir_error *err) {
  weir_error error = *first;
  int64_t stride = c->rows, from = 0, n = 0;
  for (;;) {
    int64_t row = from + error.row;
    c->bad[row] = 1;
    BASE_TRY(set_aside(c, row, &error, err));
    if (stride > 1) stride /= 2;
    for (;;) {
      while (from < c->rows && c->bad[from]) from++;
      if (from == c->rows) return WEIR_OK;
      for (n = 1; n < stride && from + n < c->rows && !c->bad[from + n];) n++;
      if (offer_range(c, from, n, &error)) break;
      from += n;
      if (n == stride && stride < c->rows) stride *= 2;
    }
    if (!names_a_row(&error, n)) break;
  }
  *err = error;
  return error.code;
}

static weir_status cut_out(generation *g, weir_batch *batch, weir_write_result *result,
                           const weir_error *first, weir_batch **letters,
                           weir_error *err) {
  cutting c = {.g = g, .batch = batch, .rows = weir_batch_rows(batch), .result = result};
  weir_status status = WEIR_E_NOMEM;
  c.bad = base_calloc((size_t)c.rows, 1, err);
  if (!c.bad) goto out;
  BASE_GOTO(status, connector_letters_new(g->actor->config.sets_aside, &c.letters, err));
  if (weir_ndjson_encoder_new(weir_batch_schema(batch), &c.encoder, NULL))
    c.encoder = NULL;
  BASE_GOTO(status, offer_in_ranges(&c, first, err));
  status = connector_letters_take(c.letters, letters, err);
out:
  weir_ndjson_encoder_free(c.encoder);
  connector_letters_free(c.letters);
  free(c.bad);
  return status;
}

static weir_status write_rows(generation *g, weir_batch *batch, weir_write_result *result,
                              weir_batch **letters, weir_error *err) {
  task_actor *a = g->actor;
  weir_error first = {0};
  if (WEIR_FAULT("task.write"))
    return weir_error_set(err, WEIR_E_IO, WEIR_ERR_RETRIABLE,
                          "sink %s: cannot take a batch", a->config.name);
  int64_t rows = weir_batch_rows(batch);
  weir_status status = offer(g, batch, result, &first);
  if (!status) return WEIR_OK;
  bool row = names_a_row(&first, rows);
  if (row && a->config.sets_aside) return cut_out(g, batch, result, &first, letters, err);
  /* A letter is the row itself, wherever it lay, so connectors leave this to whoever stops for it. */
  if (row)
    weir_error_prefix(&first, status, "row %lld of a batch of %lld", (long long)first.row,
                      (long long)rows);
  *err = first;
  return status;
}

void actor_write(generation *g, uint32_t queue, task_item *item) {
  task_actor *a = g->actor;
  weir_error error = {0};
  weir_write_result result = {0};
  weir_batch *letters = NULL;
  seat_enter(&g->main, "write_batch", a->config.timeouts.write);
  int64_t since = a->dirty_since || a->config.committable ? 0 : base_clock_mono();
  pthread_mutex_unlock(&a->lock);
  actor_made_room(a, queue);
  weir_status status = write_rows(g, item->batch, &result, &letters, &error);
  weir_batch_unref(item->batch);
  pthread_mutex_lock(&a->lock);
  seat_leave(&g->main);
  if (g->retired || status) weir_batch_unref(letters);
  if (g->retired) return;
  if (status) {
    a->gate = 0; /* nothing more of this attempt: an abort follows */
    generation_retire_if_terminal(g, &error, 0);
    if (!g->retired) actor_failed(a, &error);
    return;
  }
  a->letters = letters;
  a->rows += result.records;
  a->nbytes += result.bytes;
  a->total_rows += result.records;
  a->total_bytes += result.bytes;
  if (since && result.records) a->dirty_since = since;
}
