/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cursor topic: one partition, compacted. A cursor's key is its namespace's, a claim's is
 * "claim/PIPELINE/SINK/NUMBER"; the values are JSON.
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

#include "sink.h"

#define ASK_MS 15000
#define SLICE_MS 50

static weir_status no_memory(weir_error *err) {
  return weir_error_set(err, WEIR_E_NOMEM, 0, "no memory for the cursor topic");
}

weir_status kafka_sink_name(const kafka_sink *sink, const weir_namespace *ns,
                            char out[250], weir_error *err) {
  int n = snprintf(out, 250, "weir.%s.%s.%s", sink->topic, ns->pipeline, ns->sink_id);
  if (n < 250) return WEIR_OK;
  return weir_error_set(
      err, WEIR_E_INVALID_CONFIG, 0,
      "the names of topic, pipeline and sink are %d bytes long together, "
      "and a topic's name has room for 249; shorten one",
      n);
}

static const char *cursor_topic(const kafka_sink *sink, const char *name) {
  return sink->cursor_topic != NULL ? sink->cursor_topic : name;
}

/* ---- records -------------------------------------------------------------------------------------- */

/* NULL: the record has no such text. */
static bool is_hex(const char *text, uint8_t *out, size_t size) {
  return text != NULL && weir_hex_decode(text, out, size);
}

/* *value is to be freed. cursor == NULL: a claim. */
static weir_status record(const weir_namespace *ns, const weir_cursor *cursor,
                          const char *positions, char **value, weir_error *err) {
  char deployment[2 * WEIR_UUID_SIZE + 1], digest[2 * WEIR_DIGEST_SIZE + 1];
  yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
  yyjson_mut_val *root = doc != NULL ? yyjson_mut_obj(doc) : NULL;
  weir_hex_encode(ns->deployment, WEIR_UUID_SIZE, deployment);
  yyjson_mut_doc_set_root(doc, root);
  bool good = yyjson_mut_obj_add_str(doc, root, "pipeline", ns->pipeline) &&
              yyjson_mut_obj_add_str(doc, root, "sink", ns->sink_id) &&
              yyjson_mut_obj_add_str(doc, root, "deployment", deployment);
  if (good && cursor != NULL) {
    weir_hex_encode(cursor->digest, WEIR_DIGEST_SIZE, digest);
    good = yyjson_mut_obj_add_uint(doc, root, "checkpoint", cursor->checkpoint) &&
           yyjson_mut_obj_add_uint(doc, root, "token", cursor->token) &&
           yyjson_mut_obj_add_str(doc, root, "digest", digest);
    if (good && positions != NULL)
      good = yyjson_mut_obj_add_str(doc, root, "positions", positions);
  }
  *value = good ? yyjson_mut_write(doc, YYJSON_WRITE_NOFLAG, NULL) : NULL;
  yyjson_mut_doc_free(doc);
  return *value != NULL ? WEIR_OK : no_memory(err);
}

weir_status kafka_cursor_record(const weir_namespace *ns, const weir_cursor *cursor,
                                const char *positions, char key[WEIR_NAMESPACE_KEY_SIZE],
                                char **value, weir_error *err) {
  weir_namespace_key(ns, key);
  if (key[0] == '\0') return no_memory(err);
  return record(ns, cursor, positions, value, err);
}

/* ---- reading -------------------------------------------------------------------------------------- */

void kafka_ledger_done(kafka_ledger *ledger) {
  for (size_t i = 0; i < ledger->n_found; i++)
    free((char *)(uintptr_t)ledger->found[i].positions);
  free(ledger->found);
  free(ledger->claims);
  *ledger = (kafka_ledger){0};
}

static weir_status corrupt(const rd_kafka_message_t *m, const char *what,
                           weir_error *err) {
  return weir_error_set(err, WEIR_E_CORRUPT, 0,
                        "cursor topic %s, offset %" PRId64 ": %s; somebody else wrote it",
                        rd_kafka_topic_name(m->rkt), m->offset, what);
}

static weir_status take_claim(kafka_ledger *l, const rd_kafka_message_t *m,
                              yyjson_val *root, size_t number, weir_error *err) {
  const char *deployment = yyjson_get_str(yyjson_obj_get(root, "deployment"));
  if (number == 0 || number > l->n_claims + 1)
    return corrupt(m, "a claim that does not follow the one before", err);
  if (number == l->n_claims + 1) {
    uint8_t *grown = realloc(l->claims, number * WEIR_UUID_SIZE);
    if (grown == NULL) return no_memory(err);
    l->claims = grown;
    l->n_claims = number;
  }
  if (is_hex(deployment, l->claims + (number - 1) * WEIR_UUID_SIZE, WEIR_UUID_SIZE))
    return WEIR_OK;
  return corrupt(m, "a claim without a deployment", err);
}

static weir_status take_cursor(kafka_ledger *l, const weir_namespace *ns,
                               const rd_kafka_message_t *m, yyjson_val *root,
                               weir_error *err) {
  weir_found_cursor f = {
      .cursor = {.checkpoint = yyjson_get_uint(yyjson_obj_get(root, "checkpoint")),
                 .token = yyjson_get_uint(yyjson_obj_get(root, "token"))}};
  const char *positions = yyjson_get_str(yyjson_obj_get(root, "positions"));
  if (!is_hex(yyjson_get_str(yyjson_obj_get(root, "deployment")), f.deployment,
              WEIR_UUID_SIZE) ||
      !is_hex(yyjson_get_str(yyjson_obj_get(root, "digest")), f.cursor.digest,
              WEIR_DIGEST_SIZE))
    return corrupt(m, "a cursor that cannot be read", err);
  if (f.cursor.checkpoint == 0) return WEIR_OK; /* what prepare writes before the first */
  if (positions != NULL) f.positions = strdup(positions);
  if (positions != NULL && f.positions == NULL) return no_memory(err);
  size_t i = 0;
  while (i < l->n_found &&
         memcmp(l->found[i].deployment, f.deployment, WEIR_UUID_SIZE) != 0)
    i++;
  if (i == l->n_found) {
    weir_found_cursor *grown = realloc(l->found, (i + 1) * sizeof(*grown));
    if (grown == NULL) {
      free((char *)(uintptr_t)f.positions);
      return no_memory(err);
    }
    l->found = grown;
    l->n_found++;
  } else {
    free((char *)(uintptr_t)l->found[i].positions);
  }
  l->found[i] = f;
  if (memcmp(ns->deployment, f.deployment, WEIR_UUID_SIZE) == 0) l->cursor = f.cursor;
  return WEIR_OK;
}

/* A cursor topic may be shared: what is not of this sink is passed over. */
static weir_status take_record(kafka_ledger *l, const weir_namespace *ns,
                               const rd_kafka_message_t *m, weir_error *err) {
  char prefix[300], key[300];
  weir_status status = WEIR_OK;
  if (m->key == NULL || m->payload == NULL || m->key_len >= sizeof(key)) return WEIR_OK;
  memcpy(key, m->key, m->key_len);
  key[m->key_len] = '\0';
  int n = snprintf(prefix, sizeof(prefix), "claim/%s/%s/", ns->pipeline, ns->sink_id);
  yyjson_doc *doc = yyjson_read(m->payload, m->len, YYJSON_READ_NOFLAG);
  yyjson_val *root = yyjson_doc_get_root(doc);
  const char *pipeline = yyjson_get_str(yyjson_obj_get(root, "pipeline"));
  const char *sink = yyjson_get_str(yyjson_obj_get(root, "sink"));
  bool ours = pipeline != NULL && sink != NULL && strcmp(pipeline, ns->pipeline) == 0 &&
              strcmp(sink, ns->sink_id) == 0;
  if (ours && strncmp(key, prefix, (size_t)n) == 0)
    status = take_claim(l, m, root, strtoul(key + n, NULL, 10), err);
  else if (ours && strncmp(key, "weir-", 5) == 0)
    status = take_cursor(l, ns, m, root, err);
  yyjson_doc_free(doc);
  return status;
}

static weir_status failed_at(const kafka_client *client, rd_kafka_resp_err_t code,
                             const char *doing, const char *topic, weir_error *err) {
  char what[320];
  snprintf(what, sizeof(what), "%s %s", doing, topic);
  return kafka_error(client, code, what, err);
}

/* Number of partitions; 0: there is no such topic. */
static weir_status count_partitions(kafka_client *client, const char *name,
                                    const weir_call *call, int *out, weir_error *err) {
  const rd_kafka_metadata_t *metadata = NULL;
  rd_kafka_topic_t *topic = rd_kafka_topic_new(client->rk, name, NULL);
  if (topic == NULL) return kafka_error(client, rd_kafka_last_error(), name, err);
  rd_kafka_resp_err_t code =
      rd_kafka_metadata(client->rk, 0, topic, &metadata, kafka_call_ms(call, ASK_MS));
  rd_kafka_topic_destroy(topic);
  rd_kafka_poll(client->rk, 0);
  if (code == RD_KAFKA_RESP_ERR_NO_ERROR && metadata->topic_cnt == 1) {
    code = metadata->topics[0].err;
    *out = metadata->topics[0].partition_cnt;
  }
  if (metadata != NULL) rd_kafka_metadata_destroy(metadata);
  if (code == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART) *out = 0;
  if (code == RD_KAFKA_RESP_ERR_NO_ERROR ||
      code == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART)
    return WEIR_OK;
  return failed_at(client, code, "looking at topic", name, err);
}

/* The end of all that is there, open transactions included: a consumer that reads committed messages alone, like
 * any producer, is told of the last stable offset instead. */
static weir_status find_end(const kafka_sink *sink, const char *topic,
                            const weir_call *call, int64_t *end, bool *missing,
                            weir_error *err) {
  static const kafka_pair fixed[] = {{"isolation.level", "read_uncommitted"},
                                     {"group.id", "weir"},
                                     {"enable.auto.commit", "false"},
                                     {0}};
  kafka_client client = {.host = sink->host};
  int64_t low = 0;
  KAFKA_TRY(kafka_client_open(&client, &sink->settings, RD_KAFKA_CONSUMER, fixed, err));
  rd_kafka_resp_err_t code = rd_kafka_query_watermark_offsets(
      client.rk, topic, 0, &low, end, kafka_call_ms(call, ASK_MS));
  weir_status status = WEIR_OK;
  rd_kafka_poll(client.rk, 0);
  *missing = code == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART ||
             code == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION ||
             code == RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC;
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR && !*missing)
    status = failed_at(&client, code, "reading cursor topic", topic, err);
  kafka_client_close(&client);
  return status;
}

/* Reads up to `end`, or to the first transaction that is open. *waited: one was. */
static weir_status scan(kafka_client *client, const weir_namespace *ns, int64_t end,
                        bool sure, const weir_call *call, kafka_ledger *l, bool *waited,
                        weir_error *err) {
  weir_status status = WEIR_OK;
  bool over = end == 0;
  while (!over && status == WEIR_OK) {
    rd_kafka_message_t *m = rd_kafka_consumer_poll(client->rk, SLICE_MS);
    if (m == NULL || m->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
      bool short_of = m == NULL || m->offset < end;
      over = m != NULL && (!short_of || !sure);
      *waited |= m != NULL && short_of;
      if (!over)
        status = weir_call_check(
            call, "the cursor cannot be read: a transaction is open before it", err);
      if (status != WEIR_OK && err != NULL) err->flags |= WEIR_ERR_RETRIABLE;
    } else if (m->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
      status = take_record(l, ns, m, err);
      over = m->offset + 1 >= end;
    } else if (m->rkt != NULL) {
      status = failed_at(client, m->err, "reading cursor topic",
                         rd_kafka_topic_name(m->rkt), err);
    } else {
      status = weir_call_check(call, "reading the cursor topic", err);
    }
    if (m != NULL) rd_kafka_message_destroy(m);
  }
  return status;
}

weir_status kafka_ledger_read(const kafka_sink *sink, const weir_namespace *ns, bool sure,
                              const weir_call *call, kafka_ledger *out, weir_error *err) {
  static const kafka_pair fixed[] = {{"isolation.level", "read_committed"},
                                     {"check.crcs", "true"},
                                     {"group.id", "weir"},
                                     {"enable.auto.commit", "false"},
                                     {"enable.auto.offset.store", "false"},
                                     {"auto.offset.reset", "error"},
                                     {"enable.partition.eof", "true"},
                                     {0}};
  char name[250];
  kafka_client client = {.host = sink->host};
  kafka_ledger ledger = {0};
  KAFKA_TRY(kafka_sink_name(sink, ns, name, err));
  const char *topic = cursor_topic(sink, name);
  int64_t end = 0, before = -1;
  KAFKA_TRY(find_end(sink, topic, call, &end, &ledger.missing, err));
  if (ledger.missing) {
    *out = ledger;
    return WEIR_OK;
  }
  weir_status status =
      kafka_client_open(&client, &sink->settings, RD_KAFKA_CONSUMER, fixed, err);
  if (status != WEIR_OK) return status;
  /* Else fetching begins after a second, when librdkafka looks for the topic. */
  int n = 0;
  status = count_partitions(&client, topic, call, &n, err);
  rd_kafka_poll_set_consumer(client.rk);
  rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
  rd_kafka_topic_partition_list_add(list, topic, 0)->offset = RD_KAFKA_OFFSET_BEGINNING;
  rd_kafka_resp_err_t code = rd_kafka_assign(client.rk, list);
  rd_kafka_topic_partition_list_destroy(list);
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR && status == WEIR_OK)
    status = failed_at(&client, code, "reading cursor topic", topic, err);
  /* What it had to wait for may have been followed by more of the same owner: the end is taken again. */
  for (bool waited = true; waited && end > before && status == WEIR_OK;) {
    waited = false;
    status = scan(&client, ns, end, sure, call, &ledger, &waited, err);
    before = end;
    waited &= sure;
    if (waited && status == WEIR_OK)
      status = find_end(sink, topic, call, &end, &ledger.missing, err);
  }
  kafka_client_close(&client);
  if (status != WEIR_OK) {
    kafka_ledger_done(&ledger);
    return status;
  }
  *out = ledger;
  return WEIR_OK;
}

weir_status kafka_ledger_need(const kafka_sink *sink, const weir_namespace *ns, bool sure,
                              const weir_call *call, kafka_ledger *out, weir_error *err) {
  kafka_ledger ledger = {0};
  char name[250];
  KAFKA_TRY(kafka_sink_name(sink, ns, name, err));
  KAFKA_TRY(kafka_ledger_read(sink, ns, sure, call, &ledger, err));
  if (ledger.missing)
    return weir_error_set(err, WEIR_E_IO, WEIR_ERR_RETRIABLE,
                          "the brokers do not know cursor topic %s, which was there",
                          cursor_topic(sink, name));
  *out = ledger;
  return WEIR_OK;
}

/* ---- the target ----------------------------------------------------------------------------------- */

static weir_status look(const kafka_sink *sink, kafka_client *client, const char *cursors,
                        const weir_call *call, weir_binding *binding, weir_error *err) {
  int n = 0;
  KAFKA_TRY(count_partitions(client, sink->topic, call, &n, err));
  if (n == 0)
    return weir_error_set(err, WEIR_E_NOT_FOUND, 0,
                          "there is no such topic; create it, or correct option topic");
  char *cluster = rd_kafka_clusterid(client->rk, kafka_call_ms(call, ASK_MS));
  weir_status status = WEIR_OK;
  if (cluster != NULL) status = weir_binding_identify(binding, "cluster", cluster, err);
  if (cluster != NULL) rd_kafka_mem_free(client->rk, cluster);
  if (status == WEIR_OK)
    status = weir_binding_identify(binding, "topic", sink->topic, err);
  if (status == WEIR_OK)
    status = weir_binding_identify(binding, "cursor_topic", cursors, err);
  return status;
}

static weir_status failed(const kafka_sink *sink, weir_status status, weir_error *err) {
  return weir_error_prefix(err, status, "topic %s at %s", sink->topic,
                           sink->settings.brokers);
}

/* Read-only: what lies before the first open transaction tells whose the topic is. */
weir_status kafka_sink_resolve(kafka_sink *sink, const weir_call *call,
                               const weir_namespace *ns, weir_schema *input,
                               weir_binding *out, weir_error *err) {
  /* A producer that asks for a topic makes it, where brokers allow that. */
  static const kafka_pair fixed[] = {{"group.id", "weir"}, {0}};
  kafka_client client = {.host = sink->host};
  kafka_ledger ledger = {0};
  char name[250];
  int32_t due = 0;
  KAFKA_TRY(kafka_values_check(sink, input, err));
  KAFKA_TRY(kafka_sink_name(sink, ns, name, err));
  KAFKA_TRY(weir_binding_logical(input, out, err));
  weir_status status =
      kafka_client_open(&client, &sink->settings, RD_KAFKA_CONSUMER, fixed, err);
  if (status == WEIR_OK)
    status = look(sink, &client, cursor_topic(sink, name), call, out, err);
  kafka_client_close(&client);
  if (status == WEIR_OK) status = kafka_ledger_read(sink, ns, false, call, &ledger, err);
  if (status == WEIR_OK)
    status = weir_claim_start(ns, ledger.claims, ledger.n_claims, &due, err);
  kafka_ledger_done(&ledger);
  if (status == WEIR_OK) return WEIR_OK;
  weir_binding_done(out);
  return failed(sink, status, err);
}

static weir_status create_topic(kafka_client *client, const char *name,
                                const weir_call *call, weir_error *err) {
  static const kafka_pair config[] = {{"cleanup.policy", "compact"},
                                      {"segment.bytes", "16777216"},
                                      {"min.cleanable.dirty.ratio", "0.1"}};
  char text[256];
  rd_kafka_NewTopic_t *topic = rd_kafka_NewTopic_new(name, 1, -1, text, sizeof(text));
  if (topic == NULL)
    return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0, "cursor topic %s: %s", name,
                          text);
  for (size_t i = 0; i < sizeof(config) / sizeof(config[0]); i++)
    rd_kafka_NewTopic_set_config(topic, config[i].key, config[i].value);
  rd_kafka_queue_t *queue = rd_kafka_queue_new(client->rk);
  rd_kafka_CreateTopics(client->rk, &topic, 1, NULL, queue);
  rd_kafka_event_t *event = rd_kafka_queue_poll(queue, kafka_call_ms(call, ASK_MS));
  rd_kafka_resp_err_t code =
      event != NULL ? rd_kafka_event_error(event) : RD_KAFKA_RESP_ERR__TIMED_OUT;
  const char *why = event != NULL ? rd_kafka_event_error_string(event) : "no answer";
  if (code == RD_KAFKA_RESP_ERR_NO_ERROR) {
    size_t n = 0;
    const rd_kafka_topic_result_t **results = rd_kafka_CreateTopics_result_topics(
        rd_kafka_event_CreateTopics_result(event), &n);
    code = n == 1 ? rd_kafka_topic_result_error(results[0]) : code;
    why = n == 1 ? rd_kafka_topic_result_error_string(results[0]) : why;
  }
  weir_status status = WEIR_OK;
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR &&
      code != RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS)
    status = weir_error_set(
        err, WEIR_E_IO, code == RD_KAFKA_RESP_ERR__TIMED_OUT ? WEIR_ERR_RETRIABLE : 0,
        "cursor topic %s cannot be made: %s; give this user the right, or make it: 1 "
        "partition, cleanup.policy=compact",
        name, why != NULL ? why : rd_kafka_err2str(code));
  if (event != NULL) rd_kafka_event_destroy(event);
  rd_kafka_queue_destroy(queue);
  rd_kafka_NewTopic_destroy(topic);
  return status;
}

/* Until every broker asked knows the topic. */
static weir_status need_topic(kafka_client *client, const char *name,
                              const weir_call *call, weir_error *err) {
  int n = 0;
  KAFKA_TRY(count_partitions(client, name, call, &n, err));
  if (n == 0) KAFKA_TRY(create_topic(client, name, call, err));
  while (n == 0) {
    KAFKA_TRY(weir_call_check(call, "waiting for the cursor topic that was made", err));
    rd_kafka_poll(client->rk, SLICE_MS);
    KAFKA_TRY(count_partitions(client, name, call, &n, err));
  }
  if (n == 1) return WEIR_OK;
  return weir_error_set(
      err, WEIR_E_INVALID_CONFIG, 0,
      "cursor topic %s has %d partitions, and must have 1; name another "
      "one in option cursor_topic",
      name, n);
}

/* Under the fence of the transactional.id: of two that claim at once, the later one ends the other's transaction or
 * sees its claim. */
static weir_status add_claim(const kafka_sink *sink, kafka_client *client,
                             const weir_namespace *ns, const char *cursors,
                             const weir_call *call, weir_error *err) {
  kafka_ledger ledger = {0};
  int32_t due = 0;
  char *value = NULL, key[300];
  KAFKA_TRY(kafka_producer_init(sink, ns, client, call, err));
  weir_status status = kafka_ledger_need(sink, ns, true, call, &ledger, err);
  if (status == WEIR_OK)
    status = weir_claim_start(ns, ledger.claims, ledger.n_claims, &due, err);
  size_t number = ledger.n_claims + 1;
  kafka_ledger_done(&ledger);
  if (status != WEIR_OK || !due) return status;
  KAFKA_TRY(record(ns, NULL, NULL, &value, err));
  snprintf(key, sizeof(key), "claim/%s/%s/%zu", ns->pipeline, ns->sink_id, number);
  rd_kafka_error_t *error = rd_kafka_begin_transaction(client->rk);
  rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR_NO_ERROR;
  if (error == NULL)
    code = rd_kafka_producev(client->rk, RD_KAFKA_V_TOPIC(cursors),
                             RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_KEY(key, strlen(key)),
                             RD_KAFKA_V_VALUE(value, strlen(value)),
                             RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END);
  if (error == NULL && code == RD_KAFKA_RESP_ERR_NO_ERROR)
    error = rd_kafka_commit_transaction(client->rk, kafka_call_ms(call, ASK_MS));
  free(value);
  if (error != NULL) return kafka_txn_error(client, error, "claiming the topic", err);
  return code == RD_KAFKA_RESP_ERR_NO_ERROR
             ? WEIR_OK
             : kafka_error(client, code, "claiming the topic", err);
}

/* *due: a claim is to be added. */
static weir_status make_ready(const kafka_sink *sink, const weir_namespace *ns,
                              const char *cursors, const weir_call *call, int32_t *due,
                              weir_error *err) {
  static const kafka_pair fixed[] = {{"group.id", "weir"}, {0}};
  kafka_client client = {.host = sink->host};
  kafka_ledger ledger = {0};
  KAFKA_TRY(kafka_client_open(&client, &sink->settings, RD_KAFKA_CONSUMER, fixed, err));
  weir_status status = need_topic(&client, cursors, call, err);
  kafka_client_close(&client);
  if (status == WEIR_OK) status = kafka_ledger_read(sink, ns, false, call, &ledger, err);
  if (status == WEIR_OK)
    status = weir_claim_start(ns, ledger.claims, ledger.n_claims, due, err);
  kafka_ledger_done(&ledger);
  return status;
}

weir_status kafka_sink_prepare_target(kafka_sink *sink, const weir_call *call,
                                      const weir_namespace *ns, weir_binding *binding,
                                      weir_error *err) {
  kafka_client client = {0};
  char name[250];
  int32_t due = 0;
  (void)binding;
  KAFKA_TRY(kafka_sink_name(sink, ns, name, err));
  const char *cursors = cursor_topic(sink, name);
  weir_status status = make_ready(sink, ns, cursors, call, &due, err);
  if (status == WEIR_OK && due) status = kafka_producer_open(sink, ns, &client, err);
  if (status == WEIR_OK && due) status = add_claim(sink, &client, ns, cursors, call, err);
  kafka_client_close(&client);
  return status == WEIR_OK ? status : failed(sink, status, err);
}

/* ---- verify --------------------------------------------------------------------------------------- */

weir_status kafka_sink_verify(kafka_sink *sink, const weir_call *call,
                              const weir_verify *ask, weir_verified *out,
                              weir_error *err) {
  const weir_namespace *ns = ask->ledger->ns;
  kafka_ledger ledger = {0};
  weir_error foreign = {0};
  weir_status status = kafka_ledger_read(sink, ns, true, call, &ledger, err);
  if (status != WEIR_OK) return failed(sink, status, err);
  if (ledger.n_claims > 0 &&
      weir_claim_check(ns, ledger.claims, ledger.n_claims, &foreign) != WEIR_OK) {
    weir_finding finding = {.struct_size = sizeof(finding),
                            .kind = WEIR_FOUND_FOREIGN,
                            .artifact = sink->topic,
                            .text = foreign.message};
    ask->found(ask->ctx, &finding);
  }
  bool told = ask->struct_size >= offsetof(weir_verify, cursor) + sizeof(ask->cursor) &&
              ask->cursor != NULL;
  for (size_t i = 0; i < ledger.n_found && told; i++)
    ask->cursor(ask->ctx, &ledger.found[i]);
  if (!ledger.missing) {
    out->cursor = ledger.cursor;
    out->checked = WEIR_CHECKED_CURSOR;
  }
  kafka_ledger_done(&ledger);
  return WEIR_OK;
}
