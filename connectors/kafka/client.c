/* SPDX-License-Identifier: Apache-2.0 */
/* A handle of librdkafka from the options, its log, and its errors. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kafka.h"

/* What weir sets itself, since a position in the checkpoint store must be the only one. */
static const struct {
  const char *key, *why;
} owned[] = {
    {"bootstrap.servers", "give option brokers"},
    {"metadata.broker.list", "give option brokers"},
    {"group.id", "give option group"},
    {"group.instance.id", "the source is no member of a group"},
    {"enable.auto.commit", "weir publishes offsets once every target has their rows"},
    {"auto.commit.enable", "weir publishes offsets once every target has their rows"},
    {"enable.auto.offset.store", "offsets are kept in the checkpoint store"},
    {"auto.offset.reset", "give option start; a lost offset is never passed over unsaid"},
    {"enable.partition.eof", "weir needs it"},
};

/* Values of these must not show in an error. */
static bool is_secret(const char *key) {
  static const char *const words[] = {"password", "secret",   "pem", "token",
                                      "config",   "username", "jaas"};
  for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
    if (strstr(key, words[i]) != NULL) return true;
  return false;
}

static weir_status set(rd_kafka_conf_t *conf, const char *key, const char *value,
                       const char *option, weir_error *err) {
  char text[256];
  rd_kafka_conf_res_t result = rd_kafka_conf_set(conf, key, value, text, sizeof(text));
  if (result == RD_KAFKA_CONF_OK) return WEIR_OK;
  bool hide = result == RD_KAFKA_CONF_INVALID && is_secret(key);
  return weir_error_set(
      err, WEIR_E_INVALID_CONFIG, 0, "option %s: %s: %s (librdkafka %s)", option, key,
      hide ? "librdkafka does not take the value, which is a secret" : text,
      rd_kafka_version_str());
}

static weir_status set_config(rd_kafka_conf_t *conf, const weir_options *options,
                              weir_error *err) {
  for (size_t i = 0; i < weir_options_count(options, "config"); i++) {
    const char *key = weir_options_key(options, "config", i);
    for (size_t k = 0; k < sizeof(owned) / sizeof(owned[0]); k++) {
      if (strcmp(key, owned[k].key) == 0)
        return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                              "option config: %s is not for the user to set: %s", key,
                              owned[k].why);
    }
    weir_status status =
        set(conf, key, weir_options_item(options, "config", i), "config", err);
    if (status != WEIR_OK) return status;
  }
  return WEIR_OK;
}

weir_status kafka_config_check(const weir_options *options, weir_error *err) {
  rd_kafka_conf_t *conf = rd_kafka_conf_new();
  weir_status status = set_config(conf, options, err);
  rd_kafka_conf_destroy(conf);
  return status;
}

/* ---- callbacks ---- */

/* On any thread of librdkafka. Its errors are mostly of one broker, with which it deals itself. */
static void on_log(const rd_kafka_t *rk, int level, const char *facility,
                   const char *text) {
  const kafka_client *client = rd_kafka_opaque(rk);
  int32_t mapped = level <= 4   ? WEIR_LOG_WARN
                   : level <= 6 ? WEIR_LOG_INFO
                                : WEIR_LOG_DEBUG;
  char line[512];
  snprintf(line, sizeof(line), "%s: %s", facility, text);
  client->host->log(client->host->ctx, mapped, client->where, line);
}

/* On the thread that serves the queue. */
static void on_error(rd_kafka_t *rk, int code, const char *reason, void *opaque) {
  kafka_client *client = opaque;
  (void)rk;
  (void)code;
  snprintf(client->last_error, sizeof(client->last_error), "%s", reason);
}

/* ---- the handle ---- */

static char *join_brokers(const weir_options *options) {
  size_t n = weir_options_count(options, "brokers"), size = 1;
  for (size_t i = 0; i < n; i++)
    size += strlen(weir_options_item(options, "brokers", i)) + 1;
  char *text = malloc(size), *p = text;
  for (size_t i = 0; i < n && text != NULL; i++)
    p += sprintf(p, "%s%s", i > 0 ? "," : "", weir_options_item(options, "brokers", i));
  return text;
}

static weir_status configure(rd_kafka_conf_t *conf, kafka_client *client,
                             const weir_options *options, weir_error *err) {
  static const char *const fixed[][2] = {
      {"client.id", "weir"},
      {"isolation.level", "read_committed"},
      {"check.crcs", "true"},
      {"enable.auto.commit", "false"},
      {"enable.auto.offset.store", "false"},
      {"auto.offset.reset", "error"},
      {"enable.partition.eof", "true"},
  };
  weir_status status = WEIR_OK;
  char *brokers = join_brokers(options);
  if (brokers == NULL)
    return weir_error_set(err, WEIR_E_NOMEM, 0, "no memory for the brokers");
  for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]) && status == WEIR_OK; i++)
    status = set(conf, fixed[i][0], fixed[i][1], "config", err);
  if (status == WEIR_OK) status = set_config(conf, options, err);
  if (status == WEIR_OK) status = set(conf, "bootstrap.servers", brokers, "brokers", err);
  /* Assigning partitions needs a name, though no group is joined; without the option none is written to. */
  const char *group = weir_options_string(options, "group");
  if (status == WEIR_OK)
    status = set(conf, "group.id", group != NULL ? group : "weir", "group", err);
  rd_kafka_conf_set_opaque(conf, client);
  rd_kafka_conf_set_log_cb(conf, on_log);
  rd_kafka_conf_set_error_cb(conf, on_error);
  free(brokers);
  return status;
}

weir_status kafka_client_consumer(kafka_client *client, const weir_options *options,
                                  weir_error *err) {
  char text[256];
  rd_kafka_conf_t *conf = rd_kafka_conf_new();
  client->last_error[0] = '\0';
  snprintf(client->where, sizeof(client->where), "%s", weir_options_where(options));
  weir_status status = configure(conf, client, options, err);
  if (status == WEIR_OK) {
    client->rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, text, sizeof(text));
    if (client->rk != NULL) conf = NULL; /* the handle's by now */
    if (client->rk == NULL)
      status = weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                              "option config: no client can be made of it: %s", text);
  }
  if (conf != NULL) rd_kafka_conf_destroy(conf);
  return status;
}

void kafka_client_close(kafka_client *client) {
  if (client->rk == NULL) return;
  /* No group to leave, and nothing to wait for. */
  rd_kafka_destroy_flags(client->rk, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
  client->rk = NULL;
}

/* What another try of the same may cure. */
static bool is_passing(rd_kafka_resp_err_t code) {
  switch (code) {
    case RD_KAFKA_RESP_ERR__TRANSPORT:
    case RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN:
    case RD_KAFKA_RESP_ERR__RESOLVE:
    case RD_KAFKA_RESP_ERR__TIMED_OUT:
    case RD_KAFKA_RESP_ERR__TIMED_OUT_QUEUE:
    case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
    case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
    case RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE:
    case RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION:
    case RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT:
    case RD_KAFKA_RESP_ERR_BROKER_NOT_AVAILABLE:
    case RD_KAFKA_RESP_ERR_REPLICA_NOT_AVAILABLE:
    case RD_KAFKA_RESP_ERR_NETWORK_EXCEPTION:
    case RD_KAFKA_RESP_ERR_OFFSET_NOT_AVAILABLE:
    case RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR:
    case RD_KAFKA_RESP_ERR_FENCED_LEADER_EPOCH:
    case RD_KAFKA_RESP_ERR_UNKNOWN_LEADER_EPOCH:
    case RD_KAFKA_RESP_ERR__WAIT_CACHE:
    case RD_KAFKA_RESP_ERR__NO_OFFSET:
      return true;
    default:
      return false;
  }
}

weir_status kafka_error(const kafka_client *client, rd_kafka_resp_err_t code,
                        const char *what, weir_error *err) {
  bool more = client->last_error[0] != '\0';
  weir_error_set(err, WEIR_E_IO, is_passing(code) ? WEIR_ERR_RETRIABLE : 0,
                 "%s: %s%s%s%s", what, rd_kafka_err2str(code),
                 more ? " (the last error of a broker: " : "",
                 more ? client->last_error : "", more ? ")" : "");
  if (err != NULL) err->vendor_code = code;
  return WEIR_E_IO;
}
