/* SPDX-License-Identifier: Apache-2.0 */
/* Handles of librdkafka, their log and their errors: what source and sink share. */
#ifndef CONNECTORS_KAFKA_CLIENT_H
#define CONNECTORS_KAFKA_CLIENT_H

#include <librdkafka/rdkafka.h>
#include <stdbool.h>
#include <weir/plugin.h>

/* What brokers to talk to, and how: of the options, copied. */
typedef struct kafka_settings {
  char *where; /* "source orders" */
  char *brokers;
  char **keys, **values; /* option config */
  size_t n;
} kafka_settings;

typedef struct kafka_pair {
  const char *key, *value;
} kafka_pair;

/* Known keys, values that librdkafka takes, none that weir sets itself. */
weir_status kafka_settings_read(const weir_options *options, kafka_settings *out,
                                weir_error *err);
/* A number of option config; `otherwise` when it is not there. */
int64_t kafka_settings_int(const kafka_settings *settings, const char *key,
                           int64_t otherwise);
void kafka_settings_done(kafka_settings *settings); /* zeroed is fine */

/* What librdkafka's callbacks get; it must stay where it is while the handle lives. */
typedef struct kafka_client {
  const weir_host *host;
  rd_kafka_t *rk;       /* NULL: none */
  char where[128];      /* names the connector in the log */
  char last_error[256]; /* of a broker or of the client itself; may be empty */
  /* Of a producer, set before it is opened: sees each message that a broker took or refused. */
  void (*on_delivery)(rd_kafka_t *rk, const rd_kafka_message_t *message, void *client);
} kafka_client;

/* A handle; `fixed` ends with {0}, and `config` of the settings comes after it. No I/O by this thread. */
weir_status kafka_client_open(kafka_client *client, const kafka_settings *settings,
                              rd_kafka_type_t type, const kafka_pair *fixed,
                              weir_error *err);
void kafka_client_close(kafka_client *client); /* without a handle a no-op */
/* "; what to do" about an error, or "". */
const char *kafka_advice(rd_kafka_resp_err_t code);
/* An error of librdkafka as weir's: "what: text; what to do", retriable where another try may help. */
weir_status kafka_error(const kafka_client *client, rd_kafka_resp_err_t code,
                        const char *what, weir_error *err);

#endif
