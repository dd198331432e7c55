/* SPDX-License-Identifier: Apache-2.0 */
/* Source `kafka` against the mock cluster inside librdkafka. tests/crash has a real broker. ctest: connector kafka */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <librdkafka/rdkafka.h>

#include <librdkafka/rdkafka_mock.h>

#include <weir/ipc.h>
#include "../../connectors/kafka/kafka.h"
#include "support/rows.h"
#include "support/sources.h"

#define OPS &weir_kafka_source_ops

static const char absent[] = ""; /* the value of a tombstone */

typedef struct cluster {
  rd_kafka_t *producer;
  rd_kafka_mock_cluster_t *mock;
  const char *brokers;
} cluster;

static void quiet(const rd_kafka_t *rk, int level, const char *facility,
                  const char *text) {
  (void)rk;
  (void)level;
  (void)facility;
  (void)text;
}

static int start(void **state) {
  static cluster c;
  rd_kafka_conf_t *conf = rd_kafka_conf_new();
  char text[256];
  rd_kafka_conf_set_log_cb(conf, quiet);
  rd_kafka_conf_set(conf, "test.mock.num.brokers", "1", NULL, 0);
  c.producer = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof(text));
  assert_non_null(c.producer);
  c.mock = rd_kafka_handle_mock_cluster(c.producer);
  c.brokers = rd_kafka_mock_cluster_bootstraps(c.mock);
  *state = &c;
  return 0;
}

static int stop(void **state) {
  cluster *c = *state;
  rd_kafka_destroy(c->producer);
  return 0;
}

/* The producer is told at once; else it would look after a second. */
static void make_topic(cluster *c, const char *name, int partitions) {
  const struct rd_kafka_metadata *metadata = NULL;
  assert_int_equal(rd_kafka_mock_topic_create(c->mock, name, partitions, 1), 0);
  rd_kafka_topic_t *topic = rd_kafka_topic_new(c->producer, name, NULL);
  assert_int_equal(rd_kafka_metadata(c->producer, 0, topic, &metadata, 60000), 0);
  rd_kafka_metadata_destroy(metadata);
  rd_kafka_topic_destroy(topic);
}

static void produce(cluster *c, const char *topic, int32_t partition, const char *key,
                    const char *value) {
  size_t key_size = key != NULL ? strlen(key) : 0, size = strlen(value);
  void *data = value != absent ? (void *)(uintptr_t)value : NULL;
  rd_kafka_resp_err_t code = rd_kafka_producev(
      c->producer, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(partition),
      RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_KEY(key, key_size),
      RD_KAFKA_V_VALUE(data, size), RD_KAFKA_V_HEADER("h", "x", 1),
      RD_KAFKA_V_TIMESTAMP(1700000000123), RD_KAFKA_V_END);
  assert_int_equal(code, 0);
  assert_int_equal(rd_kafka_flush(c->producer, 60000), 0);
}

static char *read_once(const char *const *settings) {
  opened_source s = sources_open(OPS, settings, NULL);
  char *text = sources_read_text(&s, 1000);
  sources_close(&s);
  return text;
}

static void expect(const char *const *settings, const char *want) {
  char *text = read_once(settings);
  assert_string_equal(text, want);
  free(text);
}

static void test_json(void **state) {
  cluster *c = *state;
  make_topic(c, "json", 1);
  produce(c, "json", 0, "k", "{\"id\":1,\"name\":\"a\",\"other\":5}");
  produce(c, "json", 0, NULL, "\xef\xbb\xbf {\r\n \"name\" : \"b\",\n \"id\" : 2\n}\n");
  produce(c, "json", 0, "k", absent);
  produce(c, "json", 0, "", "{}");
  const char *const settings[] = {"brokers",     c->brokers, "topics",      "json",
                                  "schema.id",   "int64",    "schema.name", "utf8",
                                  "stop_at_end", "true",     NULL};
  expect(settings,
         "{\"id\":1,\"name\":\"a\"}\n{\"id\":2,\"name\":\"b\"}\n"
         "{\"id\":null,\"name\":null}\n{\"id\":null,\"name\":null}\n");
}

static void test_metadata(void **state) {
  cluster *c = *state;
  make_topic(c, "meta", 1);
  produce(c, "meta", 0, "k", "v");
  produce(c, "meta", 0, NULL, absent);
  produce(c, "meta", 0, "", "");
  const char *const settings[] = {
      "brokers", c->brokers, "topics", "meta",        "format", "raw", "schema.text",
      "utf8",    "metadata", "true",   "stop_at_end", "true",   NULL};
#define REST(o, key, none)                                     \
  "\"_topic\":\"meta\",\"_partition\":0,\"_offset\":" o        \
  ",\"_timestamp\":\"2023-11-14T22:13:20.123Z\",\"_key\":" key \
  ",\"_headers\":[{\"key\":\"h\",\"value\":\"eA==\"}],\"_tombstone\":" none "}\n"
  expect(settings,
         "{\"text\":\"v\"," REST("0", "\"aw==\"", "false") "{\"text\":null," REST(
             "1", "null", "true") "{\"text\":\"\"," REST("2", "\"\"", "false"));
}

static void test_csv(void **state) {
  cluster *c = *state;
  make_topic(c, "csv", 1);
  produce(c, "csv", 0, NULL, "1,a");
  produce(c, "csv", 0, NULL, "2,\"b\nc\"\r\n");
  produce(c, "csv", 0, NULL, absent);
  produce(c, "csv", 0, NULL, "3,");
  const char *const settings[] = {
      "brokers", c->brokers,    "topics", "csv",         "format", "csv", "schema.id",
      "int64",   "schema.name", "utf8",   "stop_at_end", "true",   NULL};
  expect(settings,
         "{\"id\":1,\"name\":\"a\"}\n{\"id\":2,\"name\":\"b\\nc\"}\n"
         "{\"id\":null,\"name\":null}\n{\"id\":3,\"name\":null}\n");
}

typedef struct stream {
  uint8_t data[8192];
  size_t size;
} stream;

static weir_status write_stream(void *ctx, const void *data, size_t size,
                                weir_error *err) {
  stream *s = ctx;
  (void)err;
  assert_true(size <= sizeof(s->data) - s->size);
  memcpy(s->data + s->size, data, size);
  s->size += size;
  return WEIR_OK;
}

/* A stream of `batches` batches of two rows each. */
static void produce_arrow(cluster *c, const char *topic, int64_t first, int batches) {
  static const char *const names[] = {"id"}, *const types[] = {"int64"};
  stream s = {0};
  weir_ipc_writer_options options = {.struct_size = sizeof(options)};
  weir_ipc_writer *writer = NULL;
  weir_schema *schema = NULL;
  assert_int_equal(weir_schema_from_types(names, types, 1, &schema, NULL), WEIR_OK);
  assert_int_equal(weir_ipc_writer_new(schema, &options, write_stream, &s, &writer, NULL),
                   WEIR_OK);
  for (int i = 0; i < batches; i++) {
    char text[64];
    int64_t id = first + 2 * i;
    snprintf(text, sizeof(text), "{\"id\":%lld}\n{\"id\":%lld}\n", (long long)id,
             (long long)id + 1);
    weir_batch *batch = rows_batch(schema, text);
    assert_int_equal(weir_ipc_writer_write(writer, batch, NULL), WEIR_OK);
    weir_batch_unref(batch);
  }
  assert_int_equal(weir_ipc_writer_finish(writer, NULL), WEIR_OK);
  weir_ipc_writer_free(writer);
  weir_schema_unref(schema);
  rd_kafka_resp_err_t code =
      rd_kafka_producev(c->producer, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(0),
                        RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
                        RD_KAFKA_V_VALUE(s.data, s.size), RD_KAFKA_V_END);
  assert_int_equal(code, 0);
  assert_int_equal(rd_kafka_flush(c->producer, 60000), 0);
}

static void expect_bad(const char *const *settings, const char *words) {
  opened_source s = sources_open(OPS, settings, NULL);
  weir_batch *batch = NULL;
  int32_t what = 0;
  weir_error err = {0};
  assert_int_equal(s.source.ops->read(&s.source, NULL, &what, &batch, &err),
                   WEIR_E_BAD_DATA);
  if (strstr(err.message, words) == NULL) fail_msg("%s", err.message);
  sources_close(&s);
}

static void test_arrow(void **state) {
  cluster *c = *state;
  make_topic(c, "arrow", 1);
  produce_arrow(c, "arrow", 1, 1);
  produce(c, "arrow", 0, NULL, absent);
  produce_arrow(c, "arrow", 0, 0);
  produce_arrow(c, "arrow", 3, 1);
  const char *const settings[] = {"brokers",     c->brokers, "topics",    "arrow",
                                  "format",      "arrow",    "schema.id", "int64",
                                  "stop_at_end", "true",     NULL};
  expect(settings, "{\"id\":1}\n{\"id\":2}\n{\"id\":3}\n{\"id\":4}\n");
  const char *const more[] = {"brokers",     c->brokers,  "topics", "arrow",    "format",
                              "arrow",       "schema.id", "int64",  "metadata", "true",
                              "stop_at_end", "true",      NULL};
  char *text = read_once(more);
  assert_non_null(strstr(text,
                         "{\"id\":2,\"_topic\":\"arrow\",\"_partition\":0,"
                         "\"_offset\":0,"));
  assert_non_null(strstr(text,
                         "{\"id\":4,\"_topic\":\"arrow\",\"_partition\":0,"
                         "\"_offset\":3,"));
  free(text);
  static const struct {
    const char *topic, *type, *words;
  } cases[] = {{"arrow-two", "int64", "got several"},
               {"arrow-type", "utf8", "int64"},
               {"arrow-junk", "int64", "offset 0: "}};
  for (int i = 0; i < 3; i++) {
    make_topic(c, cases[i].topic, 1);
    if (i == 2)
      produce(c, cases[i].topic, 0, NULL, "junk");
    else
      produce_arrow(c, cases[i].topic, 1, i == 0 ? 2 : 1);
    const char *const bad[] = {"brokers",      c->brokers,    "topics",
                               cases[i].topic, "format",      "arrow",
                               "schema.id",    cases[i].type, NULL};
    expect_bad(bad, cases[i].words);
  }
}

/* The rows before it are delivered, and the error tells where it lies; then and after each seek. */
static void test_bad_values_tell_where(void **state) {
  cluster *c = *state;
  static const struct {
    const char *format, *value, *words;
  } cases[] = {
      {"json", "{\"id\":\"x\"}", "column 'id'"},
      {"json", "{\"id\":1}\n{\"id\":2}", "expected"},
      {"json", "{\"name\":\"a\nb\"}", "expected"},
      {"json", " \n", "empty value"},
      {"json", "", "empty value"},
      {"json", "\xef\xbb\xbf\xef\xbb\xbf{}", "malformed"},
      {"csv", "1,a\n2,b", "several"},
      {"csv", "1,\"a", "quote"},
      {"csv", "", "empty value"},
      {"csv", "1", "field"},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    char topic[16];
    snprintf(topic, sizeof(topic), "bad%zu", i);
    make_topic(c, topic, 1);
    produce(c, topic, 0, NULL,
            strcmp(cases[i].format, "csv") == 0 ? "1,a" : "{\"id\":1}");
    produce(c, topic, 0, NULL, cases[i].value);
    const char *const settings[] = {"brokers",     c->brokers,      "topics",    topic,
                                    "format",      cases[i].format, "schema.id", "int64",
                                    "schema.name", "utf8",          NULL};
    opened_source s = sources_open(OPS, settings, NULL);
    weir_bytes position = {0};
    weir_call *call = weir_call_new(-1);
    for (int round = 0; round < 2; round++) {
      weir_error err = {0};
      weir_status status = WEIR_OK;
      int64_t rows = 0;
      while (status == WEIR_OK) {
        weir_batch *batch = NULL;
        int32_t what = 0;
        status = s.source.ops->read(&s.source, call, &what, &batch, &err);
        if (batch != NULL) rows += weir_batch_rows(batch);
        if (rows > 0 && position.release == NULL) position = sources_position(&s);
        weir_batch_unref(batch);
      }
      assert_int_equal(status, WEIR_E_BAD_DATA);
      assert_true(err.flags & WEIR_ERR_BAD_DATA);
      if (strstr(err.message, cases[i].words) == NULL) fail_msg("%s", err.message);
      char where[64];
      snprintf(where, sizeof(where), "topic %s, partition 0, offset 1: ", topic);
      assert_memory_equal(err.message, where, strlen(where));
      assert_int_equal(rows, round == 0 ? 1 : 0);
      sources_seek(&s, &position);
    }
    weir_bytes_release(&position);
    weir_call_free(call);
    sources_close(&s);
  }
}

typedef struct asides {
  char text[1024];
  size_t n;
} asides;

static weir_status note_aside(void *ctx, const weir_bad_row *row, weir_error *err) {
  asides *a = ctx;
  size_t used = strlen(a->text);
  (void)err;
  snprintf(a->text + used, sizeof(a->text) - used, "%s@%lld:%s:%.*s;", row->part,
           (long long)row->offset, row->column != NULL ? row->column : "-",
           (int)row->size, (const char *)row->data);
  a->n++;
  return WEIR_OK;
}

static void forget_asides(void *ctx) {
  *(asides *)ctx = (asides){0};
}

/* Bad messages go to where they are wanted, the rows around them stay, and the position is behind them. */
static void test_bad_values_are_set_aside(void **state) {
  cluster *c = *state;
  static const char *const values[] = {"1,a", "x,b", "2,b\n3,c", "", "4,d", "5"};
  make_topic(c, "aside", 1);
  for (size_t i = 0; i < 6; i++) produce(c, "aside", 0, NULL, values[i]);
  const char *names[] = {"brokers",   "topics",      "format",
                         "schema.id", "schema.name", "stop_at_end"};
  const char *settings[] = {c->brokers, "aside", "csv", "int64", "utf8", "true"};
  opened_source s = {0};
  asides got = {0};
  const weir_bad_rows to = {sizeof(to), &got, note_aside, forget_asides};
  weir_bytes none = {0};
  weir_error err = {0};
  const weir_source_ops *ops = OPS;
  assert_int_equal(weir_options_new(ops->options, "source in", names, settings, 6, NULL,
                                    &s.options, &err),
                   WEIR_OK);
  assert_int_equal(ops->create(&sources_host, &s.source, &err), WEIR_OK);
  assert_int_equal(ops->set_aside(&s.source, &to, &err), WEIR_OK);
  assert_int_equal(ops->open(&s.source, NULL, s.options, &none, &err), WEIR_OK);
  char *text = sources_read_text(&s, 100);
  assert_string_equal(text, "{\"id\":1,\"name\":\"a\"}\n{\"id\":4,\"name\":\"d\"}\n");
  assert_string_equal(
      got.text, "aside/0@1:id:x,b;aside/0@2:-:2,b\n3,c;aside/0@3:-:;aside/0@5:-:5;");
  weir_bytes position = sources_position(&s), words = {0};
  assert_int_equal(ops->describe_position(&position, &words, &err), WEIR_OK);
  assert_int_equal(words.size, strlen("aside/0 at offset 6"));
  assert_memory_equal(words.data, "aside/0 at offset 6", words.size);
  weir_bytes_release(&words);
  weir_bytes_release(&position);
  free(text);
  sources_close(&s);
}

/* From any position the rest, each message once, in any size of batch. */
static void test_positions(void **state) {
  cluster *c = *state;
  make_topic(c, "places", 3);
  for (int i = 0; i < 60; i++) {
    char value[32];
    snprintf(value, sizeof(value), "{\"id\":%d}", i);
    produce(c, "places", i % 3, NULL, value);
  }
  const char *const settings[] = {"brokers",     c->brokers, "topics",     "places",
                                  "schema.id",   "int64",    "batch_rows", "7",
                                  "stop_at_end", "true",     NULL};
  opened_source s = sources_open(OPS, settings, NULL);
  char *first = sources_read_text(&s, 3);
  weir_bytes position = sources_position(&s);
  for (int round = 0; round < 3; round++) {
    bool seen[60] = {0};
    char *rest = sources_read_text(&s, 1000);
    char *const texts[] = {first, rest};
    size_t n = 0;
    for (int k = 0; k < 2; k++) {
      for (const char *p = texts[k]; *p != '\0'; p = strchr(p, '\n') + 1) {
        int id = atoi(p + strlen("{\"id\":"));
        assert_false(seen[id]);
        seen[id] = true;
        n++;
      }
    }
    assert_int_equal(n, 60);
    free(rest);
    assert_null(sources_read(&s));
    if (round == 0) {
      sources_seek(&s, &position);
    } else {
      sources_close(&s);
      s = sources_open(OPS, settings, &position);
    }
  }
  sources_close(&s);
  free(first);
  weir_bytes_release(&position);
}

/* The message before the position is not the one that was read. */
static void test_another_topic_under_the_name_is_refused(void **state) {
  cluster *c = *state;
  make_topic(c, "again", 2);
  produce(c, "again", 0, NULL, "a");
  produce(c, "again", 0, NULL, "b");
  const char *const settings[] = {"brokers", c->brokers,    "topics", "again", "format",
                                  "raw",     "stop_at_end", "true",   NULL};
  opened_source s = sources_open(OPS, settings, NULL);
  free(sources_read_text(&s, 1000));
  weir_bytes position = sources_position(&s), other = {0};
  sources_close(&s);
  static const struct {
    int32_t partition;
    kafka_stand at;
    const char *words;
  } cases[] = {
      {0, {.next = 2, .last = 1, .hash = 7}, "the message at offset 1 is not"},
      {0, {.next = 3, .last = 1, .hash = 7}, "only the offsets 0 to 2"},
      {2, {.next = 0, .last = -1}, "no such partition"},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    kafka_places places = {0};
    kafka_place *place = NULL;
    weir_error err = {0};
    int32_t what = WEIR_READ_NOTHING;
    weir_batch *batch = NULL;
    assert_int_equal(kafka_places_add(&places, "again", cases[i].partition, &place, NULL),
                     0);
    place->at = cases[i].at;
    assert_int_equal(kafka_position_write(&places, &other, NULL), WEIR_OK);
    kafka_places_done(&places);
    if (i == 0) {
      s = sources_open(OPS, settings, &other);
      assert_int_equal(s.source.ops->read(&s.source, NULL, &what, &batch, &err),
                       WEIR_E_CONFLICT);
      sources_close(&s);
    } else {
      assert_int_equal(sources_open_error(OPS, settings, &other, &err), WEIR_E_CONFLICT);
    }
    if (strstr(err.message, cases[i].words) == NULL) fail_msg("%s", err.message);
    assert_non_null(strstr(err.message, "topic again, partition"));
    weir_bytes_release(&other);
  }
  s = sources_open(OPS, settings, &position);
  assert_null(sources_read(&s));
  sources_close(&s);
  weir_bytes_release(&position);
}

static void test_refused_options(void **state) {
  cluster *c = *state;
  static const struct {
    const char *name, *value, *words;
  } cases[] = {
      {"topics", "a b", "'a b' is no topic's name"},
      {"topics", "^a", "'^a' is no topic's name"},
      {"csv.null", "-", "format csv alone"},
      {"schema", "infer", "needs a mapping"},
      {"schema._key", "utf8", "'_key' is one of those"},
      {"config.bootstrap.servers", "x", "option brokers"},
      {"config.auto.offset.reset", "latest", "option start"},
      {"config.topic.auto.offset.reset", "latest", "option start"},
      {"config.group.id", "x", "option group"},
      {"config.no.such.key", "x", "no.such.key"},
      {"config.isolation.level", "none", "isolation.level"},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    const char *const settings[] = {
        "brokers",
        c->brokers,
        "topics",
        "good",
        "metadata",
        "true",
        cases[i].name,
        cases[i].value,
        strcmp(cases[i].name, "schema") == 0 ? NULL : "schema.id",
        "int64",
        NULL};
    weir_error err = {0};
    assert_int_equal(sources_open_error(OPS, settings, NULL, &err),
                     WEIR_E_INVALID_CONFIG);
    if (strstr(err.message, cases[i].words) == NULL) fail_msg("%s", err.message);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_json),
      cmocka_unit_test(test_metadata),
      cmocka_unit_test(test_csv),
      cmocka_unit_test(test_arrow),
      cmocka_unit_test(test_bad_values_tell_where),
      cmocka_unit_test(test_bad_values_are_set_aside),
      cmocka_unit_test(test_positions),
      cmocka_unit_test(test_another_topic_under_the_name_is_refused),
      cmocka_unit_test(test_refused_options),
  };
  return cmocka_run_group_tests(tests, start, stop);
}
