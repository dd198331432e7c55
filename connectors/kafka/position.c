/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Positions of the kafka source. Version 1, integers little-endian, "varint" as LEB128:
 *
 *   "WKFK", uint32 version, varint number of partitions, then each, by topic and partition:
 *     varint length and bytes of the topic's name, or 0 for the one before's,
 *     varint partition, varint next offset,
 *     varint 0, or 1 + how many offsets the last message delivered lies before next, and then
 *     uint64 hash of that message
 *   uint64 XXH3 of all before
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "kafka.h"

#define HEAD_SIZE 8
#define TAIL_SIZE 8
#define MAX_TOPIC 249 /* what Kafka allows */
#define ENTRY_ROOM (4 * 10 + 8 + MAX_TOPIC)

static const uint8_t magic[HEAD_SIZE] = {'W', 'K', 'F', 'K', 1, 0, 0, 0};

/* ---- places ---- */

void kafka_places_done(kafka_places *places) {
  for (size_t i = 0; i < places->n; i++) free(places->v[i].topic);
  free(places->v);
  *places = (kafka_places){0};
}

/* The first that is not before it. */
static size_t lower_bound(const kafka_places *places, const char *topic,
                          int32_t partition) {
  size_t from = 0, to = places->n;
  while (from < to) {
    size_t middle = from + (to - from) / 2;
    const kafka_place *place = &places->v[middle];
    int order = strcmp(place->topic, topic);
    if (order == 0)
      order = (place->partition > partition) - (place->partition < partition);
    if (order < 0)
      from = middle + 1;
    else
      to = middle;
  }
  return from;
}

kafka_place *kafka_places_find(const kafka_places *places, const char *topic,
                               int32_t partition) {
  size_t i = lower_bound(places, topic, partition);
  if (i == places->n || places->v[i].partition != partition ||
      strcmp(places->v[i].topic, topic) != 0)
    return NULL;
  return &places->v[i];
}

bool kafka_places_has_topic(const kafka_places *places, const char *topic) {
  size_t i = lower_bound(places, topic, INT32_MIN);
  return i < places->n && strcmp(places->v[i].topic, topic) == 0;
}

weir_status kafka_places_add(kafka_places *places, const char *topic, int32_t partition,
                             kafka_place **out, weir_error *err) {
  char *name = strdup(topic);
  if (name != NULL && places->n == places->room) {
    size_t room = places->room > 0 ? 2 * places->room : 16;
    kafka_place *v = realloc(places->v, room * sizeof(*v));
    if (v != NULL) {
      places->v = v;
      places->room = room;
    }
  }
  if (name == NULL || places->n == places->room) {
    free(name);
    return weir_error_set(err, WEIR_E_NOMEM, 0, "no memory for a partition");
  }
  size_t i = lower_bound(places, topic, partition);
  memmove(&places->v[i + 1], &places->v[i], (places->n - i) * sizeof(*places->v));
  places->n++;
  places->v[i] =
      (kafka_place){.topic = name, .partition = partition, .at = {.last = -1}, .end = -1};
  places->v[i].ahead = places->v[i].at;
  *out = &places->v[i];
  return WEIR_OK;
}

/* ---- writing ---- */

static uint8_t *put_varint(uint8_t *p, uint64_t value) {
  for (; value >= 0x80; value >>= 7) *p++ = (uint8_t)(value | 0x80);
  *p++ = (uint8_t)value;
  return p;
}

static uint8_t *put_fixed(uint8_t *p, uint64_t value) {
  for (int i = 0; i < 8; i++) *p++ = (uint8_t)(value >> (8 * i));
  return p;
}

weir_status kafka_position_write(const kafka_places *places, weir_bytes *out,
                                 weir_error *err) {
  uint8_t *bytes = malloc(HEAD_SIZE + 10 + places->n * ENTRY_ROOM + TAIL_SIZE);
  if (bytes == NULL)
    return weir_error_set(err, WEIR_E_NOMEM, 0, "no memory for a position");
  memcpy(bytes, magic, HEAD_SIZE);
  uint8_t *p = put_varint(bytes + HEAD_SIZE, places->n);
  const char *before = "";
  for (size_t i = 0; i < places->n; i++) {
    const kafka_place *place = &places->v[i];
    size_t size = strcmp(place->topic, before) == 0 ? 0 : strlen(place->topic);
    p = put_varint(p, size);
    memcpy(p, place->topic, size);
    p = put_varint(p + size, (uint64_t)place->partition);
    p = put_varint(p, (uint64_t)place->at.next);
    p = put_varint(
        p, place->at.last < 0 ? 0 : (uint64_t)(place->at.next - place->at.last) + 1);
    if (place->at.last >= 0) p = put_fixed(p, place->at.hash);
    before = place->topic;
  }
  p = put_fixed(p, XXH3_64bits(bytes, (size_t)(p - bytes)));
  size_t size = (size_t)(p - bytes);
  weir_status status =
      size <= WEIR_MAX_POSITION
          ? weir_bytes_copy(out, bytes, size, err)
          : weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                           "the position of %zu partitions does not fit %u bytes; give "
                           "each pipeline a part of the topics",
                           places->n, WEIR_MAX_POSITION);
  free(bytes);
  return status;
}

/* ---- reading ---- */

struct input {
  const uint8_t *p, *end;
  bool bad; /* sticky */
};

static uint64_t get_fixed(struct input *in) {
  uint64_t value = 0;
  if (in->end - in->p < 8) {
    in->bad = true;
    return 0;
  }
  for (int i = 0; i < 8; i++) value |= (uint64_t)*in->p++ << (8 * i);
  return value;
}

static uint64_t get_varint(struct input *in, uint64_t max) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64 && in->p < in->end; shift += 7) {
    uint8_t byte = *in->p++;
    if (shift == 63 && byte > 1) break;
    value |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80 && value <= max) return value;
    if (byte < 0x80) break;
  }
  in->bad = true;
  return 0;
}

/* One partition; `topic` holds the name of the one before and gets this one's. */
static weir_status get_place(struct input *in, char topic[MAX_TOPIC + 1],
                             kafka_places *out, weir_error *err) {
  uint64_t size = get_varint(in, MAX_TOPIC);
  if (!in->bad && size > (uint64_t)(in->end - in->p)) in->bad = true;
  if (in->bad) return WEIR_OK;
  if (size > 0) {
    memcpy(topic, in->p, size);
    topic[size] = '\0';
    in->p += size;
    in->bad |= strlen(topic) != size;
  }
  int32_t partition = (int32_t)get_varint(in, INT32_MAX);
  kafka_stand at = {.next = (int64_t)get_varint(in, INT64_MAX), .last = -1};
  uint64_t back = get_varint(in, INT64_MAX);
  if (back > 0) {
    at.hash = get_fixed(in);
    at.last = at.next - (int64_t)(back - 1);
    in->bad |= back < 2 || at.last < 0;
  }
  in->bad |= topic[0] == '\0' || kafka_places_find(out, topic, partition) != NULL;
  if (in->bad) return WEIR_OK;
  kafka_place *place = NULL;
  weir_status status = kafka_places_add(out, topic, partition, &place, err);
  if (status == WEIR_OK) place->at = place->ahead = at;
  return status;
}

weir_status kafka_position_read(const weir_bytes *position, kafka_places *out,
                                weir_error *err) {
  struct input in = {.p = position->data, .end = position->data + position->size};
  kafka_places places = {0};
  weir_status status = WEIR_OK;
  char topic[MAX_TOPIC + 1] = "";
  if (position->size < HEAD_SIZE + 1 + TAIL_SIZE ||
      memcmp(position->data, magic, HEAD_SIZE) != 0) {
    return weir_error_set(
        err, WEIR_E_CORRUPT, 0,
        "this is no position of a kafka source that this version reads");
  }
  in.end -= TAIL_SIZE;
  struct input tail = {.p = in.end, .end = in.end + TAIL_SIZE};
  in.bad = get_fixed(&tail) != XXH3_64bits(position->data, position->size - TAIL_SIZE);
  in.p += HEAD_SIZE;
  uint64_t n = get_varint(&in, position->size);
  for (uint64_t i = 0; i < n && !in.bad && status == WEIR_OK; i++)
    status = get_place(&in, topic, &places, err);
  if (status == WEIR_OK && (in.bad || in.p != in.end))
    status = weir_error_set(err, WEIR_E_CORRUPT, 0,
                            "the position of the kafka source is damaged");
  if (status == WEIR_OK) {
    *out = places;
    return WEIR_OK;
  }
  kafka_places_done(&places);
  return status;
}

weir_status kafka_position_describe(const weir_bytes *position, weir_bytes *out,
                                    weir_error *err) {
  kafka_places places = {0};
  char text[WEIR_MAX_POSITION_TEXT];
  size_t used = 0;
  if (kafka_position_read(position, &places, NULL) != WEIR_OK) return WEIR_OK;
  for (size_t i = 0; i < places.n; i++) {
    const kafka_place *place = &places.v[i];
    int n =
        snprintf(text + used, sizeof(text) - used, "%s%s/%" PRId32 " at offset %" PRId64,
                 i > 0 ? ", " : "", place->topic, place->partition, place->at.next);
    if (n < 0 || (size_t)n >= sizeof(text) - used - 4) {
      memcpy(text + used, " ...", 4);
      used += 4;
      break;
    }
    used += (size_t)n;
  }
  kafka_places_done(&places);
  return used > 0 ? weir_bytes_copy(out, text, used, err) : WEIR_OK;
}

uint64_t kafka_message_hash(const rd_kafka_message_t *message) {
  rd_kafka_timestamp_type_t type;
  int64_t head[3] = {rd_kafka_message_timestamp(message, &type),
                     message->key != NULL ? (int64_t)message->key_len : -1,
                     message->payload != NULL ? (int64_t)message->len : -1};
  uint64_t hash = XXH3_64bits(head, sizeof(head));
  hash = XXH3_64bits_withSeed(message->key, message->key_len, hash);
  return XXH3_64bits_withSeed(message->payload, message->len, hash);
}
