/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transactions: one producer a session. The cursor's record is a message of the same transaction as the rows, so both
 * are there or neither. That nobody else can move the cursor meanwhile is the fence of the transactional.id, which
 * the next owner's init_transactions raises.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sink.h"

#define NS_PER_MS INT64_C(1000000)
#define SLICE_MS 50
#define CLOSE_MS 2000
#define PADDING \
  (2 * WEIR_MAX_CURSOR_POSITIONS) /* each character of them may be escaped */

typedef struct session {
  kafka_client client; /* first: librdkafka's opaque is it, and so this */
  const kafka_sink *sink;
  const weir_txn_place *place;
  kafka_values *values;
  rd_kafka_topic_t *topic, *cursor_topic;
  weir_cursor at; /* as read since take_over, or committed */
  bool known, in_txn;
  size_t room;               /* that the positions in the next cursor's record may need */
  char padding[PADDING + 1]; /* text that compresses no better than positions do */
  weir_error refused; /* the first message that a broker did not take; code 0: none */
} session;

int kafka_call_ms(const weir_call *call, int most) {
  int64_t left = weir_call_remaining(call) / NS_PER_MS;
  return left < 1 ? 1 : left > most ? most : (int)left;
}

/* ---- producers ---------------------------------------------------------------------------------- */

/* On the thread that polls: the session's own. Of a row the opaque is its number within its batch, from 1. */
static void on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *message, void *client) {
  session *s = client;
  int64_t row = (int64_t)(intptr_t)message->_private - 1;
  (void)rk;
  if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR || s->refused.code != WEIR_OK) return;
  /* Dropped with a transaction that is aborted: the reason is told where that was asked for. */
  if (message->err == RD_KAFKA_RESP_ERR__PURGE_QUEUE ||
      message->err == RD_KAFKA_RESP_ERR__PURGE_INFLIGHT)
    return;
  bool large = message->err == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE;
  if (large && row >= 0) {
    weir_error_set(&s->refused, WEIR_E_BAD_DATA, WEIR_ERR_BAD_DATA,
                   "row %" PRId64
                   " of a batch: its message of %zu bytes is larger than "
                   "topic %s takes (max.message.bytes)",
                   row, message->len, s->sink->topic);
    weir_error_at(&s->refused, WEIR_E_BAD_DATA, row, -1);
    return;
  }
  char what[320];
  snprintf(what, sizeof(what), "%s topic %s does not take",
           row >= 0 ? "a message that" : "the cursor's record, which",
           rd_kafka_topic_name(message->rkt));
  kafka_error(&s->client, message->err, what, &s->refused);
}

weir_status kafka_producer_open(const kafka_sink *sink, const weir_namespace *ns,
                                kafka_client *client, weir_error *err) {
  char id[250], timeout[24];
  snprintf(timeout, sizeof(timeout), "%" PRId64, sink->timeout_ms);
  KAFKA_TRY(kafka_sink_name(sink, ns, id, err));
  const kafka_pair fixed[] = {{"transactional.id", id},
                              {"transaction.timeout.ms", timeout},
                              {"message.timeout.ms", timeout},
                              {"partitioner", "murmur2_random"},
                              {"queue.buffering.max.kbytes", "65536"},
                              {0}};
  client->host = sink->host;
  return kafka_client_open(client, &sink->settings, RD_KAFKA_PRODUCER, fixed, err);
}

/* Retriable: nothing was committed. Fenced may also mean that the transaction expired: the adapter asks. */
weir_status kafka_txn_error(const kafka_client *client, rd_kafka_error_t *error,
                            const char *what, weir_error *err) {
  rd_kafka_resp_err_t code = rd_kafka_error_code(error);
  bool fenced = code == RD_KAFKA_RESP_ERR__FENCED ||
                code == RD_KAFKA_RESP_ERR_PRODUCER_FENCED ||
                code == RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH;
  uint32_t flags =
      rd_kafka_error_is_retriable(error) || rd_kafka_error_txn_requires_abort(error)
          ? WEIR_ERR_RETRIABLE
          : 0;
  bool more = client->last_error[0] != '\0';
  weir_error_set(err, fenced ? WEIR_E_FENCED : WEIR_E_IO, flags, "%s: %s%s%s%s%s", what,
                 rd_kafka_error_string(error), kafka_advice(code),
                 more ? " (the last error of a broker: " : "",
                 more ? client->last_error : "", more ? ")" : "");
  if (err != NULL) err->vendor_code = code;
  rd_kafka_error_destroy(error);
  return fenced ? WEIR_E_FENCED : WEIR_E_IO;
}

/* A call that timed out, or found its broker not ready, goes on when it is called again, and must not be followed by
 * any other. */
static rd_kafka_error_t *insist(rd_kafka_t *rk, const weir_call *call,
                                rd_kafka_error_t *(*step)(rd_kafka_t *rk, int ms)) {
  for (;;) {
    rd_kafka_error_t *error = step(rk, kafka_call_ms(call, 1000));
    if (error == NULL || !rd_kafka_error_is_retriable(error) ||
        weir_call_cancelled(call) ||
        weir_call_remaining(call) <= 2 * SLICE_MS * NS_PER_MS)
      return error;
    rd_kafka_error_destroy(error);
    rd_kafka_poll(rk, SLICE_MS);
  }
}

weir_status kafka_producer_init(const kafka_sink *sink, const weir_namespace *ns,
                                kafka_client *client, const weir_call *call,
                                weir_error *err) {
  char id[250], what[320];
  rd_kafka_error_t *error = insist(client->rk, call, rd_kafka_init_transactions);
  if (error == NULL) return WEIR_OK;
  KAFKA_TRY(kafka_sink_name(sink, ns, id, err));
  snprintf(what, sizeof(what), "becoming the only producer of transactional id %s", id);
  return kafka_txn_error(client, error, what, err);
}

/* ---- life --------------------------------------------------------------------------------------- */

static weir_status failed(const session *s, weir_status status, weir_error *err) {
  return weir_error_prefix(err, status, "topic %s at %s", s->sink->topic,
                           s->sink->settings.brokers);
}

static weir_status open_topics(session *s, const weir_call *call, weir_error *err) {
  char name[250];
  const rd_kafka_metadata_t *metadata = NULL;
  KAFKA_TRY(kafka_sink_name(s->sink, s->place->ns, name, err));
  const char *cursors = s->sink->cursor_topic != NULL ? s->sink->cursor_topic : name;
  s->topic = rd_kafka_topic_new(s->client.rk, s->sink->topic, NULL);
  s->cursor_topic = rd_kafka_topic_new(s->client.rk, cursors, NULL);
  if (s->topic == NULL || s->cursor_topic == NULL)
    return kafka_error(&s->client, rd_kafka_last_error(), "topic handles", err);
  /* Else the first message to each waits up to a second for it. */
  rd_kafka_resp_err_t code =
      rd_kafka_metadata(s->client.rk, 0, s->topic, &metadata, kafka_call_ms(call, 15000));
  rd_kafka_poll(s->client.rk, 0);
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
    return kafka_error(&s->client, code, "no usable answer", err);
  rd_kafka_metadata_destroy(metadata);
  return WEIR_OK;
}

static weir_status make_padding(session *s, weir_error *err) {
  static const char digits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-";
  const weir_host *host = s->place->host;
  KAFKA_TRY(host->random(host->ctx, s->padding, PADDING, err));
  for (size_t i = 0; i < PADDING; i++) s->padding[i] = digits[s->padding[i] & 63];
  s->room = PADDING;
  return WEIR_OK;
}

weir_status kafka_session_open(void *config, const weir_call *call,
                               const weir_txn_place *place, void **out, weir_error *err) {
  session *s = calloc(1, sizeof(*s));
  if (s == NULL) return weir_error_set(err, WEIR_E_NOMEM, 0, "no memory for a session");
  s->sink = config;
  s->place = place;
  s->client.on_delivery = on_delivery;
  weir_status status = kafka_values_new(s->sink, place->binding->schema, &s->values, err);
  if (status == WEIR_OK)
    status = kafka_producer_open(s->sink, place->ns, &s->client, err);
  if (status == WEIR_OK) status = open_topics(s, call, err);
  if (status == WEIR_OK) status = make_padding(s, err);
  if (status != WEIR_OK) {
    failed(s, status, err);
    kafka_session_close(s, call);
    return status;
  }
  *out = s;
  return WEIR_OK;
}

void kafka_session_close(void *state, const weir_call *call) {
  session *s = state;
  if (s->in_txn) {
    /* So that readers need not wait for its timeout; the next session's take_over does it otherwise. */
    rd_kafka_error_destroy(
        rd_kafka_abort_transaction(s->client.rk, kafka_call_ms(call, CLOSE_MS)));
  }
  if (s->client.rk != NULL)
    rd_kafka_purge(s->client.rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
  if (s->topic != NULL) rd_kafka_topic_destroy(s->topic);
  if (s->cursor_topic != NULL) rd_kafka_topic_destroy(s->cursor_topic);
  kafka_client_close(&s->client);
  kafka_values_free(s->values);
  free(s);
}

/* ---- the cursor ---------------------------------------------------------------------------------- */

static weir_status check_claim(session *s, bool sure, const weir_call *call,
                               weir_error *err) {
  kafka_ledger ledger = {0};
  weir_status status = kafka_ledger_read(s->sink, s->place->ns, sure, call, &ledger, err);
  if (status == WEIR_OK)
    status = weir_claim_check(s->place->ns, ledger.claims, ledger.n_claims, err);
  kafka_ledger_done(&ledger);
  return status;
}

/* Asked before the fence too: an owner that was replaced must not stop the one that replaced it. */
weir_status kafka_session_take_over(void *state, const weir_call *call, weir_error *err) {
  session *s = state;
  weir_status status = check_claim(s, false, call, err);
  if (status == WEIR_OK)
    status = kafka_producer_init(s->sink, s->place->ns, &s->client, call, err);
  if (status == WEIR_OK) status = check_claim(s, true, call, err);
  return status == WEIR_OK ? status : failed(s, status, err);
}

weir_status kafka_session_read_cursor(void *state, const weir_call *call,
                                      weir_cursor *out, weir_error *err) {
  session *s = state;
  kafka_ledger ledger = {0};
  /* An open transaction of one's own would be waited for in vain. It has fenced every older producer, so that none of
   * theirs can land any more; a newer one has fenced this, whose commit then fails. */
  bool sure = !s->in_txn;
  weir_status status = kafka_ledger_need(s->sink, s->place->ns, sure, call, &ledger, err);
  if (status == WEIR_OK) {
    s->at = ledger.cursor;
    s->known = true;
    *out = ledger.cursor;
  }
  kafka_ledger_done(&ledger);
  return status == WEIR_OK ? status : failed(s, status, err);
}

static void release_list(weir_cursor_list *list) {
  kafka_ledger ledger = {.found = list->private_data, .n_found = list->n};
  kafka_ledger_done(&ledger);
  list->release = NULL;
}

weir_status kafka_session_find_cursors(void *state, const weir_call *call,
                                       weir_cursor_list *out, weir_error *err) {
  session *s = state;
  kafka_ledger ledger = {0};
  weir_status status = kafka_ledger_read(s->sink, s->place->ns, true, call, &ledger, err);
  if (status == WEIR_OK) {
    *out = (weir_cursor_list){ledger.found, ledger.n_found, release_list, ledger.found};
    ledger.found = NULL;
    ledger.n_found = 0;
  }
  kafka_ledger_done(&ledger);
  return status == WEIR_OK ? status : failed(s, status, err);
}

/* ---- transactions -------------------------------------------------------------------------------- */

weir_status kafka_session_begin(void *state, const weir_call *call, weir_error *err) {
  session *s = state;
  (void)call;
  s->refused = (weir_error){0};
  rd_kafka_error_t *error = rd_kafka_begin_transaction(s->client.rk);
  if (error != NULL)
    return failed(s, kafka_txn_error(&s->client, error, "beginning a transaction", err),
                  err);
  s->in_txn = true;
  return WEIR_OK;
}

static weir_status is_refused(const session *s, weir_error *err) {
  if (s->refused.code == WEIR_OK) return WEIR_OK;
  if (err != NULL) *err = s->refused;
  return s->refused.code;
}

/* One try. Takes *headers when it succeeds. */
static rd_kafka_resp_err_t try_produce(session *s, rd_kafka_topic_t *topic,
                                       int32_t partition, const kafka_value *m,
                                       rd_kafka_headers_t *headers) {
  void *value = (void *)(uintptr_t)m->value, *opaque = (void *)(intptr_t)(m->row + 1);
  if (headers != NULL)
    return rd_kafka_producev(
        s->client.rk, RD_KAFKA_V_RKT(topic), RD_KAFKA_V_PARTITION(partition),
        RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_VALUE(value, m->size),
        RD_KAFKA_V_KEY(m->key, m->key_size), RD_KAFKA_V_OPAQUE(opaque),
        RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_END);
  int sent = rd_kafka_produce(topic, partition, RD_KAFKA_MSG_F_COPY, value, m->size,
                              m->key, m->key_size, opaque);
  return sent == 0 ? RD_KAFKA_RESP_ERR_NO_ERROR : rd_kafka_last_error();
}

/* Waits for room in the producer's queue. Row -1: the cursor's record. */
static weir_status produce(session *s, rd_kafka_topic_t *topic, int32_t partition,
                           const kafka_value *m, const weir_call *call, weir_error *err) {
  rd_kafka_headers_t *headers = m->row >= 0 ? kafka_values_headers(s->values, m) : NULL;
  weir_status status = WEIR_OK;
  for (;;) {
    rd_kafka_resp_err_t code = try_produce(s, topic, partition, m, headers);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR) return WEIR_OK;
    if (code != RD_KAFKA_RESP_ERR__QUEUE_FULL)
      status = kafka_error(&s->client, code, "producing", err);
    if (status == WEIR_OK)
      status = weir_call_check(call, "waiting for the brokers to take messages", err);
    if (status == WEIR_OK) rd_kafka_poll(s->client.rk, SLICE_MS);
    if (status == WEIR_OK) status = is_refused(s, err);
    if (status != WEIR_OK) break;
  }
  if (headers != NULL) rd_kafka_headers_destroy(headers);
  return status;
}

weir_status kafka_session_apply(void *state, const weir_call *call, weir_batch *batch,
                                weir_error *err) {
  session *s = state;
  const kafka_value *values = NULL;
  int64_t n = 0;
  weir_status status = kafka_values_encode(s->values, batch, &values, &n, err);
  for (int64_t i = 0; i < n && status == WEIR_OK; i++)
    status = produce(s, s->topic, RD_KAFKA_PARTITION_UA, &values[i], call, err);
  rd_kafka_poll(s->client.rk, 0);
  if (status == WEIR_OK) status = is_refused(s, err);
  return status == WEIR_OK ? status : failed(s, status, err);
}

static weir_status write_cursor(session *s, const weir_cursor *cursor,
                                const char *positions, const weir_call *call,
                                weir_error *err) {
  char key[WEIR_NAMESPACE_KEY_SIZE], *value = NULL;
  KAFKA_TRY(kafka_cursor_record(s->place->ns, cursor, positions, key, &value, err));
  kafka_value message = {(const uint8_t *)key, (const uint8_t *)value, strlen(key),
                         strlen(value), -1};
  weir_status status = produce(s, s->cursor_topic, 0, &message, call, err);
  free(value);
  return status;
}

/* Until every message has its answer. */
static weir_status flush(session *s, const weir_call *call, weir_error *err) {
  while (rd_kafka_flush(s->client.rk, SLICE_MS) != RD_KAFKA_RESP_ERR_NO_ERROR) {
    KAFKA_TRY(is_refused(s, err));
    weir_status status = weir_call_check(call, "waiting for the brokers' answers", err);
    if (status != WEIR_OK) {
      if (err != NULL) err->flags |= WEIR_ERR_RETRIABLE;
      return status;
    }
  }
  return is_refused(s, err);
}

/* The predecessor's record once more, with room for the positions of the next: that shows the transaction alive, and
 * the cursor topic taking records of this size by this user, before anything is decided. */
static weir_status prepare(session *s, const weir_cursor *predecessor,
                           const weir_call *call, weir_error *err) {
  if (!s->known || !weir_cursor_equal(&s->at, predecessor))
    return weir_error_set(err, WEIR_E_CONFLICT, 0,
                          "the cursor is at attempt %" PRIu64 " and not at %" PRIu64
                          "; somebody else delivers here under this state",
                          s->at.checkpoint, predecessor->checkpoint);
  KAFKA_TRY(write_cursor(s, predecessor, s->padding + PADDING - s->room, call, err));
  return flush(s, call, err);
}

weir_status kafka_session_prepare(void *state, const weir_call *call,
                                  const weir_cursor *predecessor, weir_error *err) {
  session *s = state;
  weir_status status = prepare(s, predecessor, call, err);
  return status == WEIR_OK ? status : failed(s, status, err);
}

weir_status kafka_session_commit(void *state, const weir_call *call,
                                 const weir_txn_commit *c, weir_error *err) {
  session *s = state;
  weir_status status = write_cursor(s, &c->cursor, c->positions, call, err);
  if (status == WEIR_OK) status = flush(s, call, err);
  if (status != WEIR_OK) {
    /* Only commit_transaction commits. */
    if (err != NULL) err->flags = WEIR_ERR_RETRIABLE;
    return failed(s, status, err);
  }
  rd_kafka_error_t *error = insist(s->client.rk, call, rd_kafka_commit_transaction);
  if (error != NULL) {
    bool undone = rd_kafka_error_txn_requires_abort(error) != 0;
    status = kafka_txn_error(&s->client, error, "committing a transaction", err);
    if (err != NULL) err->flags = undone ? WEIR_ERR_RETRIABLE : WEIR_ERR_IN_DOUBT;
    return failed(s, status, err);
  }
  size_t positions = c->positions != NULL ? strlen(c->positions) : 0;
  s->room = 2 * positions + 1024 < PADDING ? 2 * positions + 1024 : PADDING;
  s->in_txn = false;
  s->at = c->cursor;
  return WEIR_OK;
}

weir_status kafka_session_abort(void *state, const weir_call *call, weir_error *err) {
  session *s = state;
  if (!s->in_txn) return WEIR_OK;
  rd_kafka_error_t *error = insist(s->client.rk, call, rd_kafka_abort_transaction);
  if (error != NULL)
    return failed(s, kafka_txn_error(&s->client, error, "aborting a transaction", err),
                  err);
  s->in_txn = false;
  return WEIR_OK;
}
