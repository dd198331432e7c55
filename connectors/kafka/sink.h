/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside of the sink `kafka`: rows as messages of a topic, exactly once, through the transactional adapter.
 *
 * sink.c     options and the adapter's table
 * values.c   rows to messages
 * codec.c    how keys and values are written
 * headers.c  the column of headers
 * cursor.c   the cursor topic: cursors and claims
 * session.c  transactions
 *
 * The transactional.id follows from topic, pipeline and sink, not from the deployment: so whoever owns the claim and
 * starts a session fences every older producer of the same sink, of whatever deployment it is.
 */
#ifndef CONNECTORS_KAFKA_SINK_H
#define CONNECTORS_KAFKA_SINK_H

#include <weir/txn_sink.h>

#include "client.h"

#define KAFKA_TRY(call)                              \
  do {                                               \
    weir_status kafka_try_status_ = (call);          \
    if (kafka_try_status_) return kafka_try_status_; \
  } while (0)

typedef struct kafka_codec kafka_codec;

typedef struct kafka_sink {
  const weir_host *host;
  kafka_settings settings;
  char *topic;
  char *cursor_topic; /* NULL: by default */
  char *headers;      /* the column of headers; NULL: none */
  bool upsert;
  const kafka_codec *codec; /* of values */
  char **key;
  size_t n_key;
  int64_t timeout_ms;  /* transaction.timeout.ms */
  int64_t max_message; /* message.max.bytes of the client */
} kafka_sink;

/* ---- codec.c */

/* Some bytes of a batch, borrowed until the next one is written; NULL data: none. */
typedef struct kafka_part {
  const uint8_t *data;
  size_t size;
  int64_t row; /* the first that they are of */
} kafka_part;

/* A way to write columns as bytes. */
struct kafka_codec {
  const char *format; /* in option format */
  bool many;          /* several rows go into one part; else each has its own */
  /* Of a schema of the columns alone; WEIR_E_NOT_IMPLEMENTED names a type that cannot be written. */
  weir_status (*open)(weir_schema *schema, void **state, weir_error *err);
  /* At most as many parts as the batch has rows. WEIR_E_BAD_DATA with row and column. */
  weir_status (*write)(void *state, weir_batch *batch, kafka_part *parts, int64_t *n,
                       weir_error *err);
  void (*close)(void *state);
};

extern const kafka_codec kafka_plain, kafka_json; /* bytes as they are; an object */
extern const kafka_codec kafka_bare;              /* JSON of the one column, for keys */
/* NULL: there is no such format. */
const kafka_codec *kafka_codec_find(const char *format);
bool kafka_is_plain(const struct ArrowSchema *column);

/* ---- headers.c */

typedef struct kafka_headers kafka_headers;

/* For batches of that schema, of which the column holds headers. */
weir_status kafka_headers_new(weir_schema *schema, int64_t column, kafka_headers **out,
                              weir_error *err);
void kafka_headers_free(kafka_headers *headers); /* NULL is a no-op */
/* Reads from that batch, which must stay. WEIR_E_BAD_DATA: a header has no name. */
weir_status kafka_headers_set(kafka_headers *headers, weir_batch *batch, weir_error *err);
size_t kafka_headers_size(const kafka_headers *headers, int64_t row); /* in a record */
/* The caller's; NULL: none. */
rd_kafka_headers_t *kafka_headers_make(const kafka_headers *headers, int64_t row);

/* ---- values.c */

typedef struct kafka_values kafka_values;

/* Whether rows of `input` can become messages. */
weir_status kafka_values_check(const kafka_sink *sink, weir_schema *input,
                               weir_error *err);
/* For batches of that schema. */
weir_status kafka_values_new(const kafka_sink *sink, weir_schema *schema,
                             kafka_values **out, weir_error *err);
void kafka_values_free(kafka_values *values); /* NULL is a no-op */
/* A message; NULL data of a key or value: none. Borrowed until the next batch. */
typedef struct kafka_value {
  const uint8_t *key, *value;
  size_t key_size, size;
  int64_t row; /* the first of its rows */
} kafka_value;
/* All rows of a batch, which must stay until the next; WEIR_E_BAD_DATA with row and column. *out is borrowed until
 * the next call. */
weir_status kafka_values_encode(kafka_values *values, weir_batch *batch,
                                const kafka_value **out, int64_t *n, weir_error *err);
/* Headers of one of them, the caller's; NULL: none. */
rd_kafka_headers_t *kafka_values_headers(const kafka_values *values,
                                         const kafka_value *message);

/* ---- cursor.c */

/* "weir.<topic>.<pipeline>.<sink>": the transactional.id, and the cursor topic unless the option names one. */
weir_status kafka_sink_name(const kafka_sink *sink, const weir_namespace *ns,
                            char out[250], weir_error *err);

/* What the cursor topic says; zeroed before use, kafka_ledger_done after. */
typedef struct kafka_ledger {
  weir_cursor cursor;       /* of the namespace asked for */
  weir_found_cursor *found; /* of the pipeline's sink under any deployment */
  size_t n_found;
  uint8_t *claims; /* n_claims times WEIR_UUID_SIZE, oldest first */
  size_t n_claims;
  bool missing; /* there is no such topic */
} kafka_ledger;

void kafka_ledger_done(kafka_ledger *ledger);
/* Reads what is committed. `sure`: all that was before the call, waiting for transactions that are open there; else
 * only what lies before the first of them. */
weir_status kafka_ledger_read(const kafka_sink *sink, const weir_namespace *ns, bool sure,
                              const weir_call *call, kafka_ledger *out, weir_error *err);
/* As that, of a topic that was seen or made: a broker that has just started may not know it, which is no cursor
 * of 0 and no claim that is missing. */
weir_status kafka_ledger_need(const kafka_sink *sink, const weir_namespace *ns, bool sure,
                              const weir_call *call, kafka_ledger *out, weir_error *err);
/* A record of the cursor topic, to free(): its key and its value. */
weir_status kafka_cursor_record(const weir_namespace *ns, const weir_cursor *cursor,
                                const char *positions, char key[WEIR_NAMESPACE_KEY_SIZE],
                                char **value, weir_error *err);
weir_status kafka_sink_resolve(kafka_sink *sink, const weir_call *call,
                               const weir_namespace *ns, weir_schema *input,
                               weir_binding *out, weir_error *err);
weir_status kafka_sink_prepare_target(kafka_sink *sink, const weir_call *call,
                                      const weir_namespace *ns, weir_binding *binding,
                                      weir_error *err);
weir_status kafka_sink_verify(kafka_sink *sink, const weir_call *call,
                              const weir_verify *ask, weir_verified *out,
                              weir_error *err);

/* ---- session.c */

/* A producer with the transactional.id, not yet initialized. */
weir_status kafka_producer_open(const kafka_sink *sink, const weir_namespace *ns,
                                kafka_client *client, weir_error *err);
/* init_transactions: fences every older producer of the id, and ends its transaction. */
weir_status kafka_producer_init(const kafka_sink *sink, const weir_namespace *ns,
                                kafka_client *client, const weir_call *call,
                                weir_error *err);
/* An error of a transactional call as weir's; takes *error. */
weir_status kafka_txn_error(const kafka_client *client, rd_kafka_error_t *error,
                            const char *what, weir_error *err);
int kafka_call_ms(const weir_call *call, int most); /* left, at least 1 */

weir_status kafka_session_open(void *config, const weir_call *call,
                               const weir_txn_place *place, void **out, weir_error *err);
void kafka_session_close(void *session, const weir_call *call);
weir_status kafka_session_take_over(void *session, const weir_call *call,
                                    weir_error *err);
weir_status kafka_session_read_cursor(void *session, const weir_call *call,
                                      weir_cursor *out, weir_error *err);
weir_status kafka_session_find_cursors(void *session, const weir_call *call,
                                       weir_cursor_list *out, weir_error *err);
weir_status kafka_session_begin(void *session, const weir_call *call, weir_error *err);
weir_status kafka_session_apply(void *session, const weir_call *call, weir_batch *batch,
                                weir_error *err);
weir_status kafka_session_prepare(void *session, const weir_call *call,
                                  const weir_cursor *predecessor, weir_error *err);
weir_status kafka_session_commit(void *session, const weir_call *call,
                                 const weir_txn_commit *c, weir_error *err);
weir_status kafka_session_abort(void *session, const weir_call *call, weir_error *err);

#endif
