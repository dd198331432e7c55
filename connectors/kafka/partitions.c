/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which partitions there are, and from where each is read. No group is joined: every partition is this source's,
 * at the offset that the checkpoint store knows.
 *
 * That a topic is still the one that was read is seen in the offsets, which must lie within what the broker has, and
 * in the last message delivered: it is fetched once more and compared, if the broker still has it. A topic that was
 * deleted and made again under its name has another message there.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kafka.h"

#define NS_PER_MS INT64_C(1000000)
#define START_MS 15000  /* for the brokers' first answer */
#define MARGIN_MS 1000  /* before the call's deadline, so that the error is told */
#define REFRESH_MS 1000 /* a look at the topics beside reading */
#define TRY_MS 1000

typedef struct patience {
  kafka_source *source;
  const weir_call *call;
  int64_t until; /* of the host's clock */
} patience;

static int64_t now_ns(const kafka_source *s) {
  return s->client.host->monotonic_ns(s->client.host->ctx);
}

static patience patience_new(kafka_source *s, const weir_call *call, int64_t ms) {
  int64_t left = weir_call_remaining(call);
  int64_t wait = ms * NS_PER_MS;
  if (left < INT64_MAX && left - MARGIN_MS * NS_PER_MS < wait)
    wait = left - MARGIN_MS * NS_PER_MS;
  return (patience){.source = s, .call = call, .until = now_ns(s) + wait};
}

/* How long the next try may take; at least one is made. */
static int try_ms(const patience *p) {
  int64_t left = (p->until - now_ns(p->source)) / NS_PER_MS;
  return left > TRY_MS ? TRY_MS : left < 1 ? 1 : (int)left;
}

/* Whether to try again after this answer. */
static bool again(const patience *p, rd_kafka_resp_err_t code) {
  weir_error err = {0};
  kafka_error(&p->source->client, code, "", &err);
  if (!(err.flags & WEIR_ERR_RETRIABLE) || weir_call_cancelled(p->call) ||
      now_ns(p->source) >= p->until)
    return false;
  if (p->source->queue == NULL)
    rd_kafka_poll(p->source->client.rk, 0); /* for last_error */
  struct timespec nap = {0, 50 * NS_PER_MS};
  nanosleep(&nap, NULL);
  return true;
}

static weir_status broker_error(const kafka_source *s, rd_kafka_resp_err_t code,
                                const char *topic, weir_error *err) {
  weir_status status = kafka_error(&s->client, code, "no usable answer", err);
  if (topic != NULL) weir_error_prefix(err, status, "topic %s", topic);
  return weir_error_prefix(err, status, "brokers %s",
                           weir_options_item(s->options, "brokers", 0));
}

/* ---- topics ---- */

static rd_kafka_resp_err_t ask_topic(kafka_source *s, rd_kafka_topic_t *topic, int ms,
                                     const rd_kafka_metadata_t **out) {
  rd_kafka_resp_err_t code = rd_kafka_metadata(s->client.rk, 0, topic, out, ms);
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return code;
  code = (*out)->topic_cnt == 1 ? (*out)->topics[0].err
                                : RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) rd_kafka_metadata_destroy(*out);
  return code;
}

/* Number of partitions of a topic; they are numbered from 0. */
static rd_kafka_resp_err_t count_partitions(kafka_source *s, const char *name,
                                            const patience *p, int32_t *out) {
  const rd_kafka_metadata_t *metadata = NULL;
  rd_kafka_topic_t *topic = rd_kafka_topic_new(s->client.rk, name, NULL);
  if (topic == NULL) return rd_kafka_last_error();
  rd_kafka_resp_err_t code;
  bool answered = false;
  for (;;) {
    code = ask_topic(s, topic, try_ms(p), &metadata);
    /* A broker says so of a topic that is not there, and for a moment of one that is new to it. */
    bool unknown = code == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR || (unknown && answered) || !again(p, code))
      break;
    answered = unknown;
  }
  rd_kafka_topic_destroy(topic);
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return code;
  *out = metadata->topics[0].partition_cnt;
  rd_kafka_metadata_destroy(metadata);
  return code;
}

static weir_status topic_error(const kafka_source *s, rd_kafka_resp_err_t code,
                               const char *name, weir_error *err) {
  const char *brokers = weir_options_item(s->options, "brokers", 0);
  if (code == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART)
    return weir_error_set(err, WEIR_E_NOT_FOUND, 0,
                          "brokers %s: there is no topic '%s'; create it, or correct "
                          "option topics",
                          brokers, name);
  if (code == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED)
    return weir_error_set(err, WEIR_E_IO, 0,
                          "brokers %s: topic '%s' may not be read: give this user the "
                          "rights DESCRIBE and READ on it",
                          brokers, name);
  return broker_error(s, code, name, err);
}

/* ---- offsets ---- */

static weir_status ask_range(kafka_source *s, const kafka_place *place, const patience *p,
                             int64_t *low, int64_t *high, weir_error *err) {
  rd_kafka_resp_err_t code;
  do {
    code = rd_kafka_query_watermark_offsets(s->client.rk, place->topic, place->partition,
                                            low, high, try_ms(p));
  } while (code != RD_KAFKA_RESP_ERR_NO_ERROR && again(p, code));
  if (code == RD_KAFKA_RESP_ERR_NO_ERROR) return WEIR_OK;
  weir_status status = topic_error(s, code, place->topic, err);
  return weir_error_prefix(err, status, "partition %" PRId32, place->partition);
}

static weir_status made_again(const kafka_place *place, const char *what,
                              weir_error *err) {
  return weir_error_set(
      err, WEIR_E_CONFLICT, 0,
      "topic %s, partition %" PRId32 ": read up to offset %" PRId64
      ", but %s: it is not the topic that was read, or lost what it had. It was deleted "
      "and "
      "made again, or restored; give the pipeline another name (or start it with "
      "--new-deployment) to read what is there now",
      place->topic, place->partition, place->at.next, what);
}

/* Puts a place within what the broker has, or says why that would lose rows. */
static weir_status fit(kafka_source *s, kafka_place *place, int64_t low, int64_t high,
                       weir_error *err) {
  char text[128];
  if (place->at.next > high) {
    snprintf(text, sizeof(text),
             "the broker has only the offsets %" PRId64 " to %" PRId64, low, high);
    return made_again(place, text, err);
  }
  if (place->at.next >= low) return WEIR_OK;
  if (strcmp(weir_options_string(s->options, "on_loss"), "skip") != 0)
    return weir_error_set(err, WEIR_E_NOT_FOUND, 0,
                          "topic %s, partition %" PRId32 ": offset %" PRId64
                          " is next, but the broker begins at %" PRId64
                          ": retention removed what lies between before it was read; "
                          "with on_loss: skip the "
                          "source warns and goes on without it",
                          place->topic, place->partition, place->at.next, low);
  snprintf(text, sizeof(text), "%" PRId64 " to %" PRId64 " were removed unread",
           place->at.next, low - 1);
  char line[512];
  snprintf(line, sizeof(line), "topic %s, partition %" PRId32 ": the offsets %s",
           place->topic, place->partition, text);
  s->client.host->log(s->client.host->ctx, WEIR_LOG_WARN, s->client.where, line);
  place->at = (kafka_stand){.next = low, .last = -1};
  return WEIR_OK;
}

/* Where a partition begins that the position does not know. */
typedef enum beginning { AT_FIRST, AT_LOW, AT_HIGH } beginning;

static weir_status settle(kafka_source *s, kafka_place *place, const beginning *fresh,
                          const patience *p, weir_error *err) {
  int64_t low = 0, high = 0;
  weir_status status = ask_range(s, place, p, &low, &high, err);
  if (status != WEIR_OK) return status;
  if (fresh != NULL)
    place->at.next = *fresh == AT_FIRST ? 0 : *fresh == AT_LOW ? low : high;
  status = fit(s, place, low, high, err);
  if (status != WEIR_OK) return status;
  place->active = true;
  place->recheck = place->at.last >= low;
  place->ahead = place->at;
  place->done = false;
  place->end = -1;
  if (weir_options_bool(s->options, "stop_at_end")) {
    place->end = high;
    place->done = place->at.next >= high && !place->recheck;
  }
  return WEIR_OK;
}

/* ---- assigning ---- */

static weir_status assign(kafka_source *s, rd_kafka_topic_partition_list_t *list,
                          weir_error *err) {
  rd_kafka_error_t *error = rd_kafka_incremental_assign(s->client.rk, list);
  if (error == NULL) return WEIR_OK;
  weir_status status = weir_error_set(err, WEIR_E_INTERNAL, 0, "assigning partitions: %s",
                                      rd_kafka_error_string(error));
  rd_kafka_error_destroy(error);
  return status;
}

static void assign_at(rd_kafka_topic_partition_list_t *list, const kafka_place *place) {
  rd_kafka_topic_partition_list_add(list, place->topic, place->partition)->offset =
      place->recheck ? place->at.last : place->at.next;
}

/* A partition that no position knows joins once it is known where. */
static weir_status join_fresh(kafka_source *s, const char *name, int32_t partition,
                              beginning at, const patience *p, kafka_place **out,
                              weir_error *err) {
  char topic[256];
  snprintf(topic, sizeof(topic), "%s", name);
  kafka_place made = {.topic = topic, .partition = partition, .at = {.last = -1}};
  weir_status status = settle(s, &made, &at, p, err);
  if (status == WEIR_OK) status = kafka_places_add(&s->places, name, partition, out, err);
  if (status != WEIR_OK) return status;
  made.topic = (*out)->topic;
  **out = made;
  return WEIR_OK;
}

/* Adds what is new of one topic to the places and to the list. */
static weir_status join_topic(kafka_source *s, const char *name, int32_t n, bool known,
                              bool first, const patience *p,
                              rd_kafka_topic_partition_list_t *list, weir_error *err) {
  bool latest = strcmp(weir_options_string(s->options, "start"), "latest") == 0;
  for (int32_t i = 0; i < n; i++) {
    kafka_place *place = kafka_places_find(&s->places, name, i);
    if (place != NULL && !first) continue;
    /* A partition added to a topic that is being read holds nothing from before that. */
    beginning at = known ? AT_FIRST : latest ? AT_HIGH : AT_LOW;
    weir_status status = place != NULL ? settle(s, place, NULL, p, err)
                                       : join_fresh(s, name, i, at, p, &place, err);
    if (status != WEIR_OK) return status;
    if (!place->done) assign_at(list, place);
  }
  return WEIR_OK;
}

/* Partitions that were read and are no more. */
static weir_status check_kept(const kafka_source *s, const char *name, int32_t n,
                              weir_error *err) {
  for (size_t i = 0; i < s->places.n; i++) {
    const kafka_place *place = &s->places.v[i];
    if (place->partition >= n && strcmp(place->topic, name) == 0)
      return made_again(place, "the topic has no such partition any more", err);
  }
  return WEIR_OK;
}

static weir_status join(kafka_source *s, const patience *p, bool first, weir_error *err) {
  weir_status status = WEIR_OK;
  rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(16);
  for (size_t i = 0; i < weir_options_count(s->options, "topics") && status == WEIR_OK;
       i++) {
    const char *name = weir_options_item(s->options, "topics", i);
    bool known = kafka_places_has_topic(&s->places, name);
    int32_t n = 0;
    rd_kafka_resp_err_t code = count_partitions(s, name, p, &n);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) status = topic_error(s, code, name, err);
    if (status == WEIR_OK) status = check_kept(s, name, n, err);
    if (status == WEIR_OK) status = join_topic(s, name, n, known, first, p, list, err);
  }
  s->hit = NULL; /* places may have moved */
  /* What has joined is read, whatever became of the rest. */
  if (list->cnt > 0 && (status == WEIR_OK || !first)) {
    weir_status assigned = assign(s, list, status == WEIR_OK ? err : NULL);
    if (status == WEIR_OK) status = assigned;
  }
  rd_kafka_topic_partition_list_destroy(list);
  return status;
}

/* Assigning partitions needs the name of a group, though none is joined; without the option none is written to. */
static weir_status open_consumer(kafka_source *s, weir_error *err) {
  const char *group = weir_options_string(s->options, "group");
  const kafka_pair fixed[] = {{"isolation.level", "read_committed"},
                              {"check.crcs", "true"},
                              {"enable.auto.commit", "false"},
                              {"enable.auto.offset.store", "false"},
                              {"auto.offset.reset", "error"},
                              {"enable.partition.eof", "true"},
                              {"group.id", group != NULL ? group : "weir"},
                              {0}};
  kafka_settings settings = {0};
  weir_status status = kafka_settings_read(s->options, &settings, err);
  if (status == WEIR_OK)
    status = kafka_client_open(&s->client, &settings, RD_KAFKA_CONSUMER, fixed, err);
  kafka_settings_done(&settings);
  return status;
}

weir_status kafka_source_start(kafka_source *s, const weir_call *call,
                               const weir_bytes *position, weir_error *err) {
  kafka_source_stop(s);
  weir_status status = WEIR_OK;
  if (position != NULL && position->release != NULL)
    status = kafka_position_read(position, &s->places, err);
  if (status == WEIR_OK)
    status = kafka_rows_new(s->options, s->aside != NULL, &s->rows, NULL, err);
  if (status == WEIR_OK) status = open_consumer(s, err);
  patience p = patience_new(s, call, START_MS);
  if (status == WEIR_OK) status = join(s, &p, true, err);
  if (status == WEIR_OK) {
    rd_kafka_poll_set_consumer(s->client.rk);
    s->queue = rd_kafka_queue_get_consumer(s->client.rk);
  } else {
    kafka_source_stop(s);
  }
  s->began_at_end = (position == NULL || position->release == NULL) &&
                    strcmp(weir_options_string(s->options, "start"), "latest") == 0;
  s->edge = false;
  s->refresh_at = now_ns(s) + weir_options_int(s->options, "refresh");
  return status;
}

void kafka_source_stop(kafka_source *s) {
  for (; s->at < s->n; s->at++) rd_kafka_message_destroy(s->messages[s->at]);
  if (s->queue != NULL) rd_kafka_queue_destroy(s->queue);
  if (s->acks != NULL) rd_kafka_queue_destroy(s->acks);
  kafka_client_close(&s->client);
  kafka_rows_free(s->rows);
  kafka_places_done(&s->places);
  s->queue = s->acks = NULL;
  s->acks_owed = 0;
  s->rows = NULL;
  s->hit = NULL;
}

weir_status kafka_source_refresh(kafka_source *s, weir_error *err) {
  if (!s->edge || now_ns(s) < s->refresh_at) return WEIR_OK;
  patience p = patience_new(s, NULL, REFRESH_MS);
  weir_error found = {0};
  s->edge = false;
  weir_status status = join(s, &p, false, &found);
  s->refresh_at = now_ns(s) + weir_options_int(s->options, "refresh");
  if (status == WEIR_OK || found.flags & WEIR_ERR_RETRIABLE) return WEIR_OK;
  if (err != NULL) *err = found;
  return status;
}

weir_status kafka_source_out_of_range(kafka_source *s, kafka_place *place,
                                      weir_error *err) {
  patience p = patience_new(s, NULL, START_MS);
  int64_t low = 0, high = 0;
  place->at = place->ahead; /* no rows are gathered */
  weir_status status = ask_range(s, place, &p, &low, &high, err);
  if (status == WEIR_OK) status = fit(s, place, low, high, err);
  if (status != WEIR_OK) return status;
  /* Only the message to compare is gone, or on_loss allows it: on from there. */
  rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
  place->ahead = place->at;
  place->recheck = false;
  assign_at(list, place);
  rd_kafka_error_t *error = rd_kafka_incremental_unassign(s->client.rk, list);
  rd_kafka_error_destroy(error);
  status = assign(s, list, err);
  rd_kafka_topic_partition_list_destroy(list);
  return status;
}
