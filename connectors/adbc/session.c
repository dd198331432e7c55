/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "adbc.h"

typedef struct session {
  const adbc_config *config;
  const weir_txn_place *place;
  adbc_conn conn;
  int64_t *order;      /* columns as the table has them */
  int64_t n;           /* of them */
  weir_schema *schema; /* of these columns */
  int64_t staged;      /* rows, of the open transaction */
  char nonce[ADBC_NONCE];
} session;

static weir_status failed(const session *s, weir_status status, weir_error *err) {
  return status ? weir_error_prefix(err, status, "%s", s->config->where) : WEIR_OK;
}

/* The table's columns are looked up anew: a batch's are put into their order. */
static weir_status lay_out(session *s, weir_error *err) {
  weir_schema *input = s->place->binding->schema;
  s->n = adbc_columns(s->config, weir_schema_arrow(input));
  ADBC_TRY(adbc_order(&s->conn, weir_schema_arrow(input), &s->order, err));
  ADBC_TRY(weir_schema_select(input, s->order, s->n, &s->schema, err));
  return s->config->upsert ? adbc_stage_make(&s->conn, input, err) : WEIR_OK;
}

weir_status adbc_session_open(void *config, const weir_call *call,
                              const weir_txn_place *place, void **out, weir_error *err) {
  session *s = calloc(1, sizeof(*s));
  if (!s) return weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
  s->config = config;
  s->place = place;
  weir_status status = adbc_open(config, call, &s->conn, err);
  if (!status) status = lay_out(s, err);
  if (status) {
    failed(s, status, err);
    adbc_session_close(s, call);
    return status;
  }
  *out = s;
  return WEIR_OK;
}

void adbc_session_close(void *state, const weir_call *call) {
  session *s = state;
  s->conn.call = call;
  adbc_close(&s->conn);
  weir_schema_unref(s->schema);
  free(s->order);
  free(s);
}

/* ---- the cursor ---------------------------------------------------------------------------------------- */

/* With a new nonce in its row, no older session's transaction can move the cursor any more. */
static weir_status read_fenced(session *s, weir_cursor *out, weir_error *err) {
  int alone = !s->conn.open;
  char nonce[ADBC_NONCE];
  if (!alone) return adbc_cursor_read(&s->conn, s->place->ns, out, err);
  ADBC_TRY(adbc_nonce(nonce, err));
  ADBC_TRY(adbc_begin(&s->conn, err));
  ADBC_TRY(adbc_cursor_fence(&s->conn, s->place->ns, nonce, err));
  weir_cursor found = {.checkpoint = 0};
  ADBC_TRY(adbc_cursor_read(&s->conn, s->place->ns, &found, err));
  ADBC_TRY(adbc_commit(&s->conn, err));
  *out = found;
  return WEIR_OK;
}

weir_status adbc_session_read_cursor(void *state, const weir_call *call, weir_cursor *out,
                                     weir_error *err) {
  session *s = state;
  s->conn.call = call;
  return failed(s, read_fenced(s, out, err), err);
}

/* ADBC has no word for ending another session: the nonce ends what it could do. */
weir_status adbc_session_take_over(void *state, const weir_call *call, weir_error *err) {
  session *s = state;
  s->conn.call = call;
  return failed(s, adbc_cursor_check_claim(&s->conn, s->place->ns, err), err);
}

weir_status adbc_session_find_cursors(void *state, const weir_call *call,
                                      weir_cursor_list *out, weir_error *err) {
  session *s = state;
  s->conn.call = call;
  return failed(s, adbc_cursor_find(&s->conn, s->place->ns, out, err), err);
}

/* ---- transactions -------------------------------------------------------------------------------------- */

/* The cursor's row is written to first: two owners meet there and not at their rows. */
weir_status adbc_session_begin(void *state, const weir_call *call, weir_error *err) {
  session *s = state;
  s->conn.call = call;
  s->staged = 0;
  weir_status status = adbc_nonce(s->nonce, err);
  if (!status) status = adbc_begin(&s->conn, err);
  if (!status) status = adbc_cursor_fence(&s->conn, s->place->ns, s->nonce, err);
  return failed(s, status, err);
}

static weir_status append(session *s, weir_batch *batch, weir_error *err) {
  weir_batch *ordered = NULL;
  ADBC_TRY(weir_batch_select(batch, s->schema, s->order, &ordered, err));
  weir_status status =
      adbc_ingest(&s->conn, s->config->table, ADBC_APPEND, s->schema, ordered, err);
  weir_batch_unref(ordered);
  return status;
}

weir_status adbc_session_apply(void *state, const weir_call *call, weir_batch *batch,
                               weir_error *err) {
  session *s = state;
  s->conn.call = call;
  if (!weir_batch_rows(batch)) return WEIR_OK;
  weir_status status = s->config->upsert ? adbc_stage_put(&s->conn, batch, s->staged, err)
                                         : append(s, batch, err);
  if (!status) s->staged += weir_batch_rows(batch);
  return failed(s, status, err);
}

static weir_status prepare(session *s, const weir_cursor *predecessor, weir_error *err) {
  weir_cursor at = {.checkpoint = 0};
  int same = 0;
  if (s->config->upsert && s->staged)
    ADBC_TRY(adbc_stage_merge(&s->conn, s->place->binding->schema, err));
  s->staged = 0;
  ADBC_TRY(adbc_cursor_has(&s->conn, s->place->ns, s->nonce, &same, err));
  if (!same)
    return weir_error_set(err, WEIR_E_IO, WEIR_ERR_RETRIABLE,
                          "somebody else has written to the cursor's row");
  ADBC_TRY(adbc_cursor_check_claim(&s->conn, s->place->ns, err));
  ADBC_TRY(adbc_cursor_read(&s->conn, s->place->ns, &at, err));
  if (weir_cursor_equal(&at, predecessor)) return WEIR_OK;
  return weir_error_set(err, WEIR_E_CONFLICT, 0,
                        "the cursor is at attempt %" PRIu64 " and not at %" PRIu64
                        "; somebody else delivers here under this state",
                        at.checkpoint, predecessor->checkpoint);
}

weir_status adbc_session_prepare(void *state, const weir_call *call,
                                 const weir_cursor *predecessor, weir_error *err) {
  session *s = state;
  s->conn.call = call;
  return failed(s, prepare(s, predecessor, err), err);
}

weir_status adbc_session_commit(void *state, const weir_call *call,
                                const weir_txn_commit *commit, weir_error *err) {
  session *s = state;
  char nonce[ADBC_NONCE];
  s->conn.call = call;
  weir_status status = adbc_nonce(nonce, err);
  if (!status)
    status = adbc_cursor_move(&s->conn, s->place->ns, commit, s->nonce, nonce, err);
  if (status) return failed(s, status, err);
  status = adbc_commit(&s->conn, err);
  /* The driver cannot tell whether it landed. */
  if (status && err) err->flags = WEIR_ERR_IN_DOUBT;
  return failed(s, status, err);
}

weir_status adbc_session_abort(void *state, const weir_call *call, weir_error *err) {
  session *s = state;
  s->conn.call = call;
  return s->conn.open ? failed(s, adbc_rollback(&s->conn, err), err) : WEIR_OK;
}
