/* SPDX-License-Identifier: Apache-2.0 */
/* Source `kafka`: its options, its table, and reading. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kafka.h"

#define NS_PER_MS INT64_C(1000000)
#define FETCH 1000  /* messages taken out of librdkafka's queue at once */
#define SLICE_MS 20 /* how soon a cancelled call comes back */
#define MAX_SLICES 3
#define MAX_ASIDE (4 << 20) /* bytes of bad messages of one read */
#define ACKS_MS 5000 /* close waits so long for the group's offsets to be written */

static const weir_option options[] = {
    {"brokers", WEIR_OPT_LIST, WEIR_OPT_REQUIRED, NULL, 0, 0, NULL,
     "host:port of some brokers, from which the others are learned"},
    {"topics", WEIR_OPT_LIST, WEIR_OPT_REQUIRED, NULL, 0, 0, NULL,
     "names of topics; every partition of theirs is read by this source, also one that "
     "is "
     "added later"},
    {"group", WEIR_OPT_STRING, 0, NULL, 0, 0, NULL,
     "consumer group for which the offsets are published once every target has the rows "
     "before them, for people's tools; weir itself goes by its own store. Nobody may be "
     "a "
     "member of it"},
    {"format", WEIR_OPT_ENUM, 0, "json", 0, 0, "json|csv|raw|arrow",
     "of a message's value: json (one object), csv (one record without header), raw (one "
     "column of bytes) or arrow (an IPC stream of one record batch)"},
    {"schema", WEIR_OPT_MAP, 0, NULL, 0, 0, NULL,
     "mapping column: type; keys of a JSON object that it leaves out are ignored. With "
     "raw "
     "one column of binary or utf8, by default {value: binary}. A message without value "
     "(a "
     "tombstone) is a row of nulls"},
    {"csv.delimiter", WEIR_OPT_STRING, 0, ",", 0, 0, NULL, "character between fields"},
    {"csv.quote", WEIR_OPT_STRING, 0, "\"", 0, 0, NULL,
     "character around fields that hold others; empty for none"},
    {"csv.null", WEIR_OPT_STRING, 0, "", 0, 0, NULL,
     "the text that means null when it is a whole field without quotes"},
    {"metadata", WEIR_OPT_BOOL, 0, "false", 0, 0, NULL,
     "add the columns _topic, _partition, _offset, _timestamp, _key, _headers and "
     "_tombstone"},
    {"start", WEIR_OPT_ENUM, 0, "earliest", 0, 0, "earliest|latest",
     "where to begin in a topic of which nothing was read yet; partitions added to it "
     "later "
     "are read from their beginning"},
    {"stop_at_end", WEIR_OPT_BOOL, 0, "false", 0, 0, NULL,
     "end once all is read that the topics held at the start of the run, instead of "
     "waiting "
     "for more"},
    {"on_loss", WEIR_OPT_ENUM, 0, "stop", 0, 0, "stop|skip",
     "when retention removed messages before they were read: stop, or warn and go on "
     "without "
     "them"},
    {"batch_rows", WEIR_OPT_INT, 0, "16384", 1, 1048576, NULL,
     "rows of a full batch; what has come in 50 ms, or 16 MiB, is a batch too"},
    {"refresh", WEIR_OPT_DURATION, 0, "30s", INT64_C(100000000), INT64_C(86400000000000),
     NULL, "how often to look for new partitions; they join between two checkpoints"},
    {"config", WEIR_OPT_MAP, WEIR_OPT_SECRET, NULL, 0, 0, NULL,
     "any setting of librdkafka's consumer, such as security.protocol, sasl.password or "
     "queued.max.messages.kbytes; isolation.level is read_committed unless it says "
     "otherwise"},
    {0}};

static weir_status check(const weir_options *o, weir_error *err) {
  kafka_settings settings = {0};
  kafka_rows *rows = NULL;
  if (weir_options_count(o, "topics") == 0)
    return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                          "option topics: the list is empty");
  for (size_t i = 0; i < weir_options_count(o, "topics"); i++) {
    const char *topic = weir_options_item(o, "topics", i);
    size_t size = strspn(topic,
                         "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                         "0123456789._-");
    if (size == 0 || size > 249 || topic[size] != '\0')
      return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                            "option topics: '%s' is no topic's name: up to 249 letters, "
                            "digits, '.', '_' and '-'; patterns are not known",
                            topic);
    for (size_t k = 0; k < i; k++)
      if (strcmp(topic, weir_options_item(o, "topics", k)) == 0)
        return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                              "option topics: '%s' is named twice", topic);
  }
  weir_status status = kafka_settings_read(o, &settings, err);
  kafka_settings_done(&settings);
  if (status == WEIR_OK) status = kafka_rows_new(o, false, &rows, NULL, err);
  kafka_rows_free(rows);
  return status;
}

static weir_status create(const weir_host *host, weir_source *out, weir_error *err) {
  kafka_source *s = calloc(1, sizeof(*s));
  if (s != NULL) s->messages = calloc(FETCH, sizeof(rd_kafka_message_t *));
  if (s == NULL || s->messages == NULL) {
    free(s);
    return weir_error_set(err, WEIR_E_NOMEM, 0, "no memory for a kafka source");
  }
  s->client.host = host;
  out->ops = &weir_kafka_source_ops;
  out->state = s;
  return WEIR_OK;
}

static void release(weir_source *source) {
  kafka_source *s = source->state;
  if (s != NULL) {
    kafka_source_stop(s);
    free(s->messages);
    free(s);
  }
  source->state = NULL;
  source->ops = NULL;
}

static weir_status contract(weir_source *source, const weir_options *o,
                            weir_source_contract *out, weir_error *err) {
  (void)source;
  weir_status status = check(o, err);
  if (status != WEIR_OK) return status;
  out->replay = WEIR_SOURCE_REPLAYABLE;
  out->keyed = 0;
  return WEIR_OK;
}

static weir_status resolve_schema(weir_source *source, const weir_call *call,
                                  const weir_options *o, weir_schema **out,
                                  weir_error *err) {
  kafka_rows *rows = NULL;
  (void)source;
  (void)call;
  weir_status status = kafka_rows_new(o, false, &rows, out, err);
  kafka_rows_free(rows);
  return status;
}

static weir_status set_aside(weir_source *source, const weir_bad_rows *to,
                             weir_error *err) {
  kafka_source *s = source->state;
  (void)err;
  s->aside = to;
  return WEIR_OK;
}

static weir_status open_source(weir_source *source, const weir_call *call,
                               const weir_options *o, const weir_bytes *position,
                               weir_error *err) {
  kafka_source *s = source->state;
  s->options = o;
  return kafka_source_start(s, call, position, err);
}

/* ---- reading ---- */

static kafka_place *place_of(kafka_source *s, const rd_kafka_message_t *message) {
  kafka_place *hit = s->hit;
  if (message->rkt == NULL) return NULL;
  if (hit == NULL || s->hit_topic != message->rkt || hit->partition != message->partition)
    s->hit = kafka_places_find(&s->places, rd_kafka_topic_name(message->rkt),
                               message->partition);
  s->hit_topic = message->rkt;
  return s->hit;
}

/* An error in the place of a message, or the end of a partition. */
static weir_status take_event(kafka_source *s, const rd_kafka_message_t *message,
                              kafka_place *place, weir_error *err) {
  char where[320] = "the cluster";
  switch (message->err) {
    case RD_KAFKA_RESP_ERR__PARTITION_EOF:
      /* Behind the last message lie marks of transactions and what they aborted. */
      if (place == NULL) return WEIR_OK;
      if (message->offset > place->ahead.next) place->ahead.next = message->offset;
      place->recheck = false;
      place->done = place->end >= 0 && place->ahead.next >= place->end;
      return WEIR_OK;
    case RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET:
      if (place != NULL) return kafka_source_out_of_range(s, place, err);
      break;
    case RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED:
      if (weir_options_string(s->options, "group") == NULL)
        return WEIR_OK; /* none is used */
      break;
    default:
      break;
  }
  if (place != NULL)
    snprintf(where, sizeof(where),
             "topic %s, partition %" PRId32 ", next offset %" PRId64, place->topic,
             place->partition, place->ahead.next);
  weir_status status = kafka_error(&s->client, message->err, where, err);
  if (place == NULL && err != NULL && err->flags & WEIR_ERR_RETRIABLE)
    return WEIR_OK; /* of brokers, which librdkafka tries again itself; it is in the log */
  if (message->err == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED)
    weir_error_prefix(err, status, "give this user the right READ");
  return weir_error_prefix(err, status, "brokers %s",
                           weir_options_item(s->options, "brokers", 0));
}

/* The last message of before, fetched again. */
static weir_status compare(const kafka_place *place, const rd_kafka_message_t *message,
                           weir_error *err) {
  if (kafka_message_hash(message) == place->at.hash) return WEIR_OK;
  return weir_error_set(
      err, WEIR_E_CONFLICT, 0,
      "topic %s, partition %" PRId32 ": the message at offset %" PRId64
      " is not the one that was read there: the topic was deleted and made again, or "
      "restored; give the pipeline another name (or start it with --new-deployment) to "
      "read what is there now",
      place->topic, place->partition, message->offset);
}

static weir_status take_row(kafka_source *s, const rd_kafka_message_t *message,
                            bool *taken, weir_error *err) {
  weir_error why = {0};
  weir_status status = kafka_rows_add(s->rows, message, taken, &why);
  if (status == WEIR_E_BAD_DATA && s->aside != NULL) {
    s->aside_bytes += message->len;
    return kafka_rows_set_aside(s->rows, s->aside, message, &why, err);
  }
  if (status == WEIR_E_BAD_DATA && kafka_rows_count(s->rows) > 0) {
    *taken = false; /* it is told once the rows before it are out */
    return WEIR_OK;
  }
  if (status != WEIR_OK && err != NULL) *err = why;
  return status;
}

static bool is_full(const kafka_source *s) {
  return kafka_rows_full(s->rows) || s->aside_bytes >= MAX_ASIDE;
}

/* *taken is false when the rows gathered must go out first. */
static weir_status take(kafka_source *s, const rd_kafka_message_t *message, bool *taken,
                        weir_error *err) {
  kafka_place *place = place_of(s, message);
  *taken = true;
  if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
    bool end = message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF;
    *taken = end || kafka_rows_count(s->rows) == 0;
    return *taken ? take_event(s, message, place, err) : WEIR_OK;
  }
  if (place == NULL) return WEIR_OK;
  if (place->recheck) {
    if (message->offset == place->at.last) {
      weir_status status = compare(place, message, err);
      place->recheck = status != WEIR_OK;
      place->done = place->end >= 0 && place->at.next >= place->end;
      return status;
    }
    place->recheck = message->offset < place->at.last;
  }
  if (place->end >= 0 && message->offset >= place->end) place->done = true;
  if (message->offset < place->ahead.next || place->done) return WEIR_OK;
  weir_status status = take_row(s, message, taken, err);
  if (status != WEIR_OK)
    return weir_error_prefix(err, status,
                             "topic %s, partition %" PRId32 ", offset %" PRId64,
                             place->topic, place->partition, message->offset);
  if (!*taken) return WEIR_OK;
  place->ahead = (kafka_stand){.next = message->offset + 1,
                               .last = message->offset,
                               .hash = kafka_message_hash(message)};
  place->done = place->end >= 0 && place->ahead.next >= place->end;
  return WEIR_OK;
}

/* Takes what was fetched until a batch is full. */
static weir_status take_fetched(kafka_source *s, bool *full, weir_error *err) {
  *full = is_full(s);
  while (s->at < s->n && !*full) {
    bool taken = true;
    weir_status status = take(s, s->messages[s->at], &taken, err);
    if (status != WEIR_OK) return status;
    if (taken) rd_kafka_message_destroy(s->messages[s->at++]);
    *full = !taken || is_full(s);
  }
  return WEIR_OK;
}

static bool at_end(const kafka_source *s) {
  bool bounded = false;
  for (size_t i = 0; i < s->places.n; i++) {
    if (s->places.v[i].active && !s->places.v[i].done) return false;
    bounded |= s->places.v[i].end >= 0;
  }
  return bounded;
}

/* Waits for messages, as long as the call may; with rows gathered also no longer than a few slices. */
static weir_status fetch(kafka_source *s, const weir_call *call, int slices, bool *over,
                         weir_error *err) {
  int64_t left = weir_call_remaining(call) / NS_PER_MS;
  *over = weir_call_cancelled(call) || left <= 0 ||
          (slices > MAX_SLICES && kafka_rows_count(s->rows) > 0);
  int wait = left > SLICE_MS ? SLICE_MS : (int)left;
  ssize_t n =
      rd_kafka_consume_batch_queue(s->queue, *over ? 0 : wait, s->messages, FETCH);
  s->at = 0;
  s->n = n > 0 ? (size_t)n : 0;
  if (n >= 0) return WEIR_OK;
  return kafka_error(&s->client, rd_kafka_last_error(), "consuming", err);
}

static weir_status flush(kafka_source *s, int32_t *what, weir_batch **out,
                         weir_error *err) {
  weir_batch *batch = NULL;
  weir_status status = kafka_rows_flush(s->rows, &batch, err);
  if (status != WEIR_OK) return status;
  for (size_t i = 0; i < s->places.n; i++) s->places.v[i].at = s->places.v[i].ahead;
  *what = batch != NULL ? WEIR_READ_BATCH : WEIR_READ_NOTHING;
  if (batch != NULL) *out = batch;
  return WEIR_OK;
}

static weir_status read_batch(weir_source *source, const weir_call *call, int32_t *what,
                              weir_batch **out, weir_error *err) {
  kafka_source *s = source->state;
  bool full = false, over = false;
  int slices = 0; /* that were waited for in full */
  weir_status status = WEIR_OK;
  s->aside_bytes = 0;
  if (!weir_options_bool(s->options, "stop_at_end"))
    status = kafka_source_refresh(s, err);
  while (status == WEIR_OK) {
    status = take_fetched(s, &full, err);
    if (status != WEIR_OK || full || over || at_end(s)) break;
    status = fetch(s, call, slices, &over, err);
    slices += s->n < FETCH;
  }
  if (status != WEIR_OK) return status;
  bool ended = kafka_rows_count(s->rows) == 0 && !full && at_end(s);
  status = flush(s, what, out, err);
  if (status == WEIR_OK && ended) *what = WEIR_READ_END;
  return status;
}

/* ---- positions ---- */

static weir_status position(weir_source *source, weir_bytes *out, weir_error *err) {
  kafka_source *s = source->state;
  s->edge = true;
  return kafka_position_write(&s->places, out, err);
}

static int32_t keeps_begin(weir_source *source) {
  const kafka_source *s = source->state;
  return s->began_at_end;
}

static weir_status seek(weir_source *source, const weir_call *call, const weir_bytes *to,
                        weir_error *err) {
  return kafka_source_start(source->state, call, to, err);
}

/* What the brokers said of offsets published earlier. */
static void take_acks(kafka_source *s, int wait_ms) {
  rd_kafka_event_t *event = NULL;
  while (s->acks_owed > 0 && (event = rd_kafka_queue_poll(s->acks, wait_ms))) {
    rd_kafka_resp_err_t code = rd_kafka_event_error(event);
    char line[512];
    s->acks_owed--;
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
      snprintf(
          line, sizeof(line),
          "the offsets of group %s could not be published: %s; delivery does not depend "
          "on it",
          weir_options_string(s->options, "group"), rd_kafka_err2str(code));
      s->client.host->log(s->client.host->ctx, WEIR_LOG_WARN, s->client.where, line);
    }
    rd_kafka_event_destroy(event);
  }
}

static weir_status committed(weir_source *source, const weir_call *call,
                             uint64_t checkpoint, const weir_bytes *at, weir_error *err) {
  kafka_source *s = source->state;
  kafka_places places = {0};
  (void)call;
  (void)checkpoint;
  if (weir_options_string(s->options, "group") == NULL || s->client.rk == NULL ||
      at == NULL || at->release == NULL)
    return WEIR_OK;
  if (s->acks == NULL) s->acks = rd_kafka_queue_new(s->client.rk);
  take_acks(s, 0);
  weir_status status = kafka_position_read(at, &places, err);
  if (status != WEIR_OK) return status;
  rd_kafka_topic_partition_list_t *list =
      rd_kafka_topic_partition_list_new((int)places.n);
  for (size_t i = 0; i < places.n; i++)
    rd_kafka_topic_partition_list_add(list, places.v[i].topic, places.v[i].partition)
        ->offset = places.v[i].at.next;
  if (places.n > 0 && rd_kafka_commit_queue(s->client.rk, list, s->acks, NULL, NULL) ==
                          RD_KAFKA_RESP_ERR_NO_ERROR)
    s->acks_owed++;
  rd_kafka_topic_partition_list_destroy(list);
  kafka_places_done(&places);
  return WEIR_OK;
}

static weir_status close_source(weir_source *source, const weir_call *call,
                                weir_error *err) {
  kafka_source *s = source->state;
  (void)err;
  int64_t left = weir_call_remaining(call) / NS_PER_MS / 2;
  take_acks(s, left > ACKS_MS ? ACKS_MS : (int)left);
  kafka_source_stop(s);
  return WEIR_OK;
}

const weir_source_ops weir_kafka_source_ops = {
    .abi_version = WEIR_ABI_VERSION,
    .struct_size = sizeof(weir_source_ops),
    .name = "kafka",
    .text = "Messages of Kafka topics; offsets are kept in the checkpoint store.",
    .options = options,
    .create = create,
    .release = release,
    .contract = contract,
    .resolve_schema = resolve_schema,
    .open = open_source,
    .read = read_batch,
    .position = position,
    .seek = seek,
    .committed = committed,
    .close = close_source,
    .describe_position = kafka_position_describe,
    .set_aside = set_aside,
    .keeps_begin = keeps_begin,
};
