/* SPDX-License-Identifier: Apache-2.0 */
/* A handle of librdkafka from the options, its log, and its errors. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"

/* What weir sets itself: a position in the checkpoint store, or the transaction's cursor, must be all that counts. */
static const struct {
  const char *key, *why;
} owned[] = {
    {"bootstrap.servers", "give option brokers"},
    {"metadata.broker.list", "give option brokers"},
    {"group.id", "give a source the option group"},
    {"group.instance.id", "no group is joined"},
    {"enable.auto.commit", "weir publishes offsets once every target has their rows"},
    {"auto.commit.enable", "weir publishes offsets once every target has their rows"},
    {"enable.auto.offset.store", "offsets are kept in the checkpoint store"},
    {"auto.offset.reset", "give option start; a lost offset is never passed over unsaid"},
    {"enable.partition.eof", "weir needs it"},
    {"transactional.id", "it is the cursor's"},
    {"enable.idempotence", "transactions need it"},
    {"acks", "transactions need all"},
    {"request.required.acks", "transactions need all"},
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

static weir_status set_config(rd_kafka_conf_t *conf, const kafka_settings *settings,
                              weir_error *err) {
  weir_status status = WEIR_OK;
  for (size_t i = 0; i < settings->n && status == WEIR_OK; i++)
    status = set(conf, settings->keys[i], settings->values[i], "config", err);
  return status;
}

static weir_status check_keys(const kafka_settings *settings, weir_error *err) {
  for (size_t i = 0; i < settings->n; i++) {
    const char *name = settings->keys[i];
    if (strncmp(name, "topic.", 6) == 0) name += 6; /* librdkafka takes both */
    for (size_t k = 0; k < sizeof(owned) / sizeof(owned[0]); k++) {
      if (strcmp(name, owned[k].key) == 0)
        return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                              "option config: %s is not for the user to set: %s",
                              owned[k].key, owned[k].why);
    }
  }
  rd_kafka_conf_t *conf = rd_kafka_conf_new();
  weir_status status = set_config(conf, settings, err);
  rd_kafka_conf_destroy(conf);
  return status;
}

void kafka_settings_done(kafka_settings *settings) {
  for (size_t i = 0; i < settings->n; i++) {
    free(settings->keys[i]);
    free(settings->values[i]);
  }
  free(settings->keys);
  free(settings->values);
  free(settings->where);
  free(settings->brokers);
  *settings = (kafka_settings){0};
}

static char *join_brokers(const weir_options *options) {
  size_t n = weir_options_count(options, "brokers"), size = 1;
  for (size_t i = 0; i < n; i++)
    size += strlen(weir_options_item(options, "brokers", i)) + 1;
  char *text = calloc(1, size), *p = text;
  for (size_t i = 0; i < n && text != NULL; i++)
    p += sprintf(p, "%s%s", i > 0 ? "," : "", weir_options_item(options, "brokers", i));
  return text;
}

weir_status kafka_settings_read(const weir_options *options, kafka_settings *out,
                                weir_error *err) {
  size_t n = weir_options_count(options, "config");
  kafka_settings made = {.where = strdup(weir_options_where(options)),
                         .brokers = join_brokers(options),
                         .keys = calloc(n + 1, sizeof(char *)),
                         .values = calloc(n + 1, sizeof(char *))};
  bool good = made.where && made.brokers && made.keys && made.values;
  for (size_t i = 0; i < n && good; i++) {
    made.keys[i] = strdup(weir_options_key(options, "config", i));
    made.values[i] = strdup(weir_options_item(options, "config", i));
    made.n++;
    good = made.keys[i] && made.values[i];
  }
  weir_status status =
      good ? check_keys(&made, err)
           : weir_error_set(err, WEIR_E_NOMEM, 0, "no memory for the options");
  if (status == WEIR_OK && made.brokers[0] == '\0')
    status = weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                            "option brokers: the list is empty");
  if (status != WEIR_OK) {
    kafka_settings_done(&made);
    return status;
  }
  *out = made;
  return WEIR_OK;
}

/* As librdkafka reads it, which took the value before. */
int64_t kafka_settings_int(const kafka_settings *settings, const char *key,
                           int64_t otherwise) {
  for (size_t i = 0; i < settings->n; i++)
    if (strcmp(settings->keys[i], key) == 0) return strtoll(settings->values[i], NULL, 0);
  return otherwise;
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
  /* A setting of consumers is no use to a producer, and the other way round: the sink has both. */
  if (strcmp(facility, "CONFWARN") == 0) return;
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

weir_status kafka_client_open(kafka_client *client, const kafka_settings *settings,
                              rd_kafka_type_t type, const kafka_pair *fixed,
                              weir_error *err) {
  char text[256];
  rd_kafka_conf_t *conf = rd_kafka_conf_new();
  client->last_error[0] = '\0';
  snprintf(client->where, sizeof(client->where), "%s", settings->where);
  weir_status status = set(conf, "client.id", "weir", "config", err);
  /* The user's after those that may be otherwise; the others are refused in `config`. */
  for (; fixed->key != NULL && status == WEIR_OK; fixed++)
    status = set(conf, fixed->key, fixed->value, "config", err);
  if (status == WEIR_OK) status = set_config(conf, settings, err);
  if (status == WEIR_OK)
    status = set(conf, "bootstrap.servers", settings->brokers, "brokers", err);
  rd_kafka_conf_set_opaque(conf, client);
  rd_kafka_conf_set_log_cb(conf, on_log);
  rd_kafka_conf_set_error_cb(conf, on_error);
  if (client->on_delivery != NULL) rd_kafka_conf_set_dr_msg_cb(conf, client->on_delivery);
  if (status == WEIR_OK) {
    client->rk = rd_kafka_new(type, conf, text, sizeof(text));
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

/* What to do about it; "" when the words of librdkafka must do. */
const char *kafka_advice(rd_kafka_resp_err_t code) {
  switch (code) {
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
      return "; give this user the rights on that topic that docs/kafka.md lists";
    case RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
      return "; give this user WRITE and DESCRIBE on that transactional id";
    case RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED:
      return "; give this user the rights on the cluster that docs/kafka.md lists";
    case RD_KAFKA_RESP_ERR_INVALID_TRANSACTION_TIMEOUT:
      return "; transaction.timeout.ms is above transaction.max.timeout.ms of the "
             "brokers: lower the one in option config, or raise the other";
    case RD_KAFKA_RESP_ERR_INVALID_PRODUCER_ID_MAPPING:
    case RD_KAFKA_RESP_ERR_UNKNOWN_PRODUCER_ID:
      return "; the brokers have forgotten this producer, which was idle for longer than "
             "their transactional.id.expiration.ms";
    case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
      return "; raise max.message.bytes of that topic";
    case RD_KAFKA_RESP_ERR__AUTHENTICATION:
    case RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED:
      return "; the brokers do not take the user or password of option config";
    default:
      return "";
  }
}

weir_status kafka_error(const kafka_client *client, rd_kafka_resp_err_t code,
                        const char *what, weir_error *err) {
  bool more = client->last_error[0] != '\0';
  weir_error_set(err, WEIR_E_IO, is_passing(code) ? WEIR_ERR_RETRIABLE : 0,
                 "%s: %s%s%s%s%s", what, rd_kafka_err2str(code), kafka_advice(code),
                 more ? " (the last error of a broker: " : "",
                 more ? client->last_error : "", more ? ")" : "");
  if (err != NULL) err->vendor_code = code;
  return WEIR_E_IO;
}
