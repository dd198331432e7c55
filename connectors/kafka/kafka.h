/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside of the source `kafka`: where it stands in each partition, and messages to rows.
 */
#ifndef CONNECTORS_KAFKA_KAFKA_H
#define CONNECTORS_KAFKA_KAFKA_H

#include <weir/batch.h>

#include "client.h"

extern const weir_source_ops weir_kafka_source_ops;

/* ---- position.c: where reading stands ---- */

/* One partition. What was delivered is in the position; `ahead` is the same with the rows that were gathered
 * for the next batch. */
typedef struct kafka_stand {
  int64_t next; /* offset to go on from */
  int64_t last; /* of the last message delivered; -1: none */
  uint64_t
      hash; /* of that message: a topic made again under its name has another one there */
} kafka_stand;

typedef struct kafka_place {
  char *topic;
  int32_t partition;
  kafka_stand at, ahead;
  int64_t end;  /* stop_at_end: nothing from this offset on is read; else -1 */
  bool active;  /* of a topic that the options name */
  bool recheck; /* its last message comes once more, to be compared */
  bool done;    /* `end` was reached */
} kafka_place;

typedef struct kafka_places {
  kafka_place *v; /* by topic, then partition */
  size_t n, room;
} kafka_places;

void kafka_places_done(kafka_places *places); /* zeroed is fine */
/* NULL: there is none. */
kafka_place *kafka_places_find(const kafka_places *places, const char *topic,
                               int32_t partition);
bool kafka_places_has_topic(const kafka_places *places, const char *topic);
/* A new place at offset 0; pointers to others are void afterwards. */
weir_status kafka_places_add(kafka_places *places, const char *topic, int32_t partition,
                             kafka_place **out, weir_error *err);

weir_status kafka_position_write(const kafka_places *places, weir_bytes *out,
                                 weir_error *err);
/* Position bytes come from outside; *out must be empty. */
weir_status kafka_position_read(const weir_bytes *position, kafka_places *out,
                                weir_error *err);
weir_status kafka_position_describe(const weir_bytes *position, weir_bytes *out,
                                    weir_error *err);
uint64_t kafka_message_hash(const rd_kafka_message_t *message);

/* ---- rows.c: messages to batches ---- */

typedef struct kafka_rows kafka_rows;

/* Checks format, schema and their options. *schema is that of the batches. `sets_aside`: a bad message is not
 * the end, so that batches need not end before it. */
weir_status kafka_rows_new(const weir_options *options, bool sets_aside, kafka_rows **out,
                           weir_schema **schema, weir_error *err);
void kafka_rows_free(kafka_rows *rows); /* NULL is a no-op */
/* Takes one message as a row. *taken is false when the rows gathered must be out first: then the message
 * is offered again. WEIR_E_BAD_DATA leaves no trace of the message. */
weir_status kafka_rows_add(kafka_rows *rows, const rd_kafka_message_t *message,
                           bool *taken, weir_error *err);
bool kafka_rows_full(const kafka_rows *rows);
int64_t kafka_rows_count(const kafka_rows *rows);
/* Hands a message that cannot be a row, which `why` speaks of, to `to`. */
weir_status kafka_rows_set_aside(const kafka_rows *rows, const weir_bad_rows *to,
                                 const rd_kafka_message_t *message, const weir_error *why,
                                 weir_error *err);
/* The rows gathered, or NULL when there are none. */
weir_status kafka_rows_flush(kafka_rows *rows, weir_batch **out, weir_error *err);

/* ---- partitions.c: what there is to read, and from where ---- */

typedef struct kafka_source {
  kafka_client client;
  const weir_options *options; /* borrowed from open on */
  rd_kafka_queue_t *queue;
  kafka_rows *rows;
  const weir_bad_rows
      *aside;         /* where messages go that cannot be rows; NULL: they are errors */
  size_t aside_bytes; /* of those of the read under way */
  kafka_places places;
  rd_kafka_message_t **messages; /* fetched and not yet looked at: [at, n) */
  size_t at, n;
  kafka_place *hit;      /* the place of the last message */
  const void *hit_topic; /* and librdkafka's handle of its topic */
  bool began_at_end;     /* without a position, at the end of a topic */
  bool edge;          /* the position was asked for since the last look at the topics */
  int64_t refresh_at; /* when to look again */
  rd_kafka_queue_t *acks; /* of offsets published for the group; NULL: none yet */
  size_t acks_owed;
} kafka_source;

/* Connects and assigns every partition, going on from `position` (or, absent, from the start). */
weir_status kafka_source_start(kafka_source *source, const weir_call *call,
                               const weir_bytes *position, weir_error *err);
/* Drops handle, queue and places. */
void kafka_source_stop(kafka_source *source);
/* Partitions that were added since; failing to ask is no error. */
weir_status kafka_source_refresh(kafka_source *source, weir_error *err);
/* The broker no longer has (or does not have yet) the offset that was asked for. */
weir_status kafka_source_out_of_range(kafka_source *source, kafka_place *place,
                                      weir_error *err);

#endif
