/* SPDX-License-Identifier: Apache-2.0 */
/* Options of sink `kafka`, and its hooks for the adapter. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sink.h"

#define DEFAULT_TIMEOUT_MS 300000   /* the brokers' own limit is 15 min by default */
#define DEFAULT_MAX_MESSAGE 1000000 /* message.max.bytes of librdkafka */
/* A cluster that takes less than this a second needs a longer transaction.timeout.ms. */
#define REPLAY_BYTES_PER_MS INT64_C(8192)

extern const weir_sink_ops weir_kafka_sink_ops;

static const weir_option options[] = {
    {"brokers", WEIR_OPT_LIST, WEIR_OPT_REQUIRED, NULL, 0, 0, NULL,
     "host:port of some brokers, from which the others are learned"},
    {"topic", WEIR_OPT_STRING, WEIR_OPT_REQUIRED, NULL, 0, 0, NULL,
     "the topic that takes the messages; it must be there. Its readers see each row once "
     "with isolation.level: read_committed"},
    {"format", WEIR_OPT_ENUM, 0, "json", 0, 0, "json|raw|arrow|avro",
     "of a message's value: json (the row as an object), raw (the one column of utf8 or "
     "binary that is left beside those of key and headers) or arrow (an IPC stream of "
     "one "
     "record batch, up to 512 KiB of rows). avro is refused until there is a schema "
     "registry to name"},
    {"key", WEIR_OPT_LIST, 0, NULL, 0, 0, NULL,
     "columns of the message's key, which decides its partition as the Java client does: "
     "one "
     "is its text or bytes, or of another type its JSON value; several are a JSON "
     "object. "
     "Without it partitions are taken in turn"},
    {"headers", WEIR_OPT_STRING, 0, NULL, 0, 0, NULL,
     "column of the message's headers, which is not in its value: map<utf8, binary> or "
     "list<struct<key: utf8, value: binary>> (as source kafka gives _headers), the "
     "values "
     "also of utf8; null or empty for none"},
    {"mode", WEIR_OPT_ENUM, 0, "append", 0, 0, "append|upsert",
     "append adds each row; upsert takes changes by key: `_op` U is a message with that "
     "key, "
     "D one without value, which removes the key from a compacted topic"},
    {"cursor_topic", WEIR_OPT_STRING, 0, NULL, 0, 0, NULL,
     "a topic of one partition, cleanup.policy=compact, in which each transaction says "
     "how far "
     "it is; default weir.TOPIC.PIPELINE.SINK. It is made when it is missing"},
    {"config", WEIR_OPT_MAP, WEIR_OPT_SECRET, NULL, 0, 0, NULL,
     "any setting of librdkafka's producer, such as security.protocol, sasl.password, "
     "compression.type, linger.ms or transaction.timeout.ms (300000 unless it says "
     "otherwise; an epoch has at most what 8 MiB a second bring in half of it)"},
    {0}};

static void release(void *state) {
  kafka_sink *s = state;
  for (size_t i = 0; s->key != NULL && i < s->n_key; i++) free(s->key[i]);
  free(s->key);
  free(s->topic);
  free(s->cursor_topic);
  free(s->headers);
  kafka_settings_done(&s->settings);
  free(s);
}

static weir_status no_memory(weir_error *err) {
  return weir_error_set(err, WEIR_E_NOMEM, 0, "no memory for a kafka sink");
}

static weir_status copy(const weir_options *o, kafka_sink *s, weir_error *err) {
  const char *cursor_topic = weir_options_string(o, "cursor_topic"),
             *headers = weir_options_string(o, "headers");
  size_t n = weir_options_count(o, "key");
  KAFKA_TRY(kafka_settings_read(o, &s->settings, err));
  s->topic = strdup(weir_options_string(o, "topic"));
  s->cursor_topic = cursor_topic != NULL ? strdup(cursor_topic) : NULL;
  s->upsert = strcmp(weir_options_string(o, "mode"), "upsert") == 0;
  s->headers = headers != NULL ? strdup(headers) : NULL;
  s->codec = kafka_codec_find(weir_options_string(o, "format"));
  s->key = calloc(n + 1, sizeof(*s->key));
  if (s->topic == NULL || s->key == NULL || (cursor_topic != NULL && !s->cursor_topic) ||
      (headers != NULL && !s->headers))
    return no_memory(err);
  for (size_t i = 0; i < n; i++) {
    s->key[i] = strdup(weir_options_item(o, "key", i));
    if (s->key[i] == NULL) return no_memory(err);
    s->n_key++;
  }
  return WEIR_OK;
}

static weir_status check_options(kafka_sink *s, weir_error *err) {
  s->timeout_ms =
      kafka_settings_int(&s->settings, "transaction.timeout.ms", DEFAULT_TIMEOUT_MS);
  s->max_message =
      kafka_settings_int(&s->settings, "message.max.bytes", DEFAULT_MAX_MESSAGE);
  for (size_t i = 0; i < s->settings.n; i++) {
    /* `config` comes after weir's own: a cursor of an open transaction would count. */
    if (strcmp(s->settings.keys[i], "isolation.level") == 0)
      return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                            "option config: isolation.level is not for the user to set: "
                            "the cursor is read with its own");
  }
  if (s->upsert && s->n_key == 0)
    return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                          "option mode: upsert needs option key");
  if (s->codec == NULL)
    return weir_error_set(
        err, WEIR_E_INVALID_CONFIG, 0,
        "option format: avro is not there yet, for want of an option that names the "
        "schema registry; take json or arrow");
  if (s->upsert && s->codec != &kafka_json)
    return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                          "option mode: upsert needs format: json");
  if (s->codec->many && (s->n_key > 0 || s->headers != NULL))
    return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                          "option format: a message of %s has many rows, and so neither "
                          "key nor headers; leave those options out, or take json",
                          s->codec->format);
  if (s->cursor_topic != NULL && strcmp(s->cursor_topic, s->topic) == 0)
    return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                          "option cursor_topic: '%s' is the topic of the rows; name "
                          "another one",
                          s->topic);
  return WEIR_OK;
}

static weir_status configure(const weir_host *host, const weir_options *o, void **out,
                             weir_error *err) {
  kafka_sink *s = calloc(1, sizeof(*s));
  if (s == NULL) return no_memory(err);
  s->host = host;
  weir_status status = copy(o, s, err);
  if (status == WEIR_OK) status = check_options(s, err);
  if (status != WEIR_OK) {
    release(s);
    return status;
  }
  *out = s;
  return WEIR_OK;
}

static weir_status contract(void *config, weir_txn_contract *out, weir_error *err) {
  const kafka_sink *s = config;
  (void)err;
  out->input = s->upsert ? WEIR_INPUT_KEYED : WEIR_INPUT_APPEND;
  out->claims = 1;
  out->max_age_ns = s->timeout_ms * 1000000;
  out->max_epoch_bytes = (uint64_t)(s->timeout_ms / 2 * REPLAY_BYTES_PER_MS);
  return WEIR_OK;
}

static weir_status key(void *config, weir_names *out, weir_error *err) {
  const kafka_sink *s = config;
  if (!s->upsert) return WEIR_OK;
  return weir_names_copy(out, (const char *const *)s->key, s->n_key, err);
}

static weir_status resolve(void *config, const weir_call *call, const weir_namespace *ns,
                           weir_schema *input, weir_binding *out, weir_error *err) {
  return kafka_sink_resolve(config, call, ns, input, out, err);
}

static weir_status prepare_target(void *config, const weir_call *call,
                                  const weir_namespace *ns, weir_binding *binding,
                                  weir_error *err) {
  return kafka_sink_prepare_target(config, call, ns, binding, err);
}

static weir_status check(void *config, const weir_binding *binding, weir_batch *batch,
                         weir_error *err) {
  kafka_values *values = NULL;
  const kafka_value *rows = NULL;
  int64_t n = 0;
  weir_status status = kafka_values_new(config, binding->schema, &values, err);
  if (status == WEIR_OK) status = kafka_values_encode(values, batch, &rows, &n, err);
  kafka_values_free(values);
  return status;
}

static weir_status verify(void *config, const weir_call *call, const weir_verify *ask,
                          weir_verified *out, weir_error *err) {
  return kafka_sink_verify(config, call, ask, out, err);
}

static const weir_txn_ops txn = {.abi_version = WEIR_ABI_VERSION,
                                 .struct_size = sizeof(txn),
                                 .configure = configure,
                                 .release = release,
                                 .contract = contract,
                                 .key = key,
                                 .resolve = resolve,
                                 .prepare_target = prepare_target,
                                 .check = check,
                                 .verify = verify,
                                 .open = kafka_session_open,
                                 .close = kafka_session_close,
                                 .take_over = kafka_session_take_over,
                                 .read_cursor = kafka_session_read_cursor,
                                 .find_cursors = kafka_session_find_cursors,
                                 .begin = kafka_session_begin,
                                 .apply = kafka_session_apply,
                                 .prepare = kafka_session_prepare,
                                 .commit = kafka_session_commit,
                                 .abort = kafka_session_abort};

static weir_status create(const weir_host *host, weir_sink *out, weir_error *err) {
  return weir_txn_sink_create(&txn, host, out, err);
}

const weir_sink_ops weir_kafka_sink_ops = WEIR_TXN_SINK_OPS(
    "kafka", "Messages of a Kafka topic, exactly once.", options, create);
