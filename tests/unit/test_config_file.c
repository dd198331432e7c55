/* SPDX-License-Identifier: Apache-2.0 */
/* A whole pipeline file: its top, sources and sinks, `--set`, and how errors are told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "config/config.h"

static const weir_option file_table[] = {
    {"path", WEIR_OPT_PATH, WEIR_OPT_REQUIRED, NULL, 0, 0, NULL, "Where to."},
    {"format", WEIR_OPT_ENUM, 0, "parquet", 0, 0, "parquet|csv", "The format."},
    {"roll.size", WEIR_OPT_SIZE, 0, "64MiB", 1, 0, NULL, "Size of a file."},
    {"schema", WEIR_OPT_MAP, 0, NULL, 0, 0, NULL, "Columns to types."},
    {"config", WEIR_OPT_MAP, 0, NULL, 0, 0, NULL, "Free keys."},
    {"token", WEIR_OPT_STRING, WEIR_OPT_SECRET, NULL, 0, 0, NULL, "A secret."},
    {"rows", WEIR_OPT_INT, WEIR_OPT_SECRET, NULL, 0, 0, NULL, "A secret number."},
    {0},
};

#define HEAD "pipeline: orders\nsources:\n  in: {type: generator}\n"
#define SINK HEAD "sinks:\n  lake:\n    type: file\n    path: out\n"

static weir_config *read_text(const char *yaml) {
  weir_config *config = NULL;
  weir_error err = {0};
  assert_int_equal(weir_config_new(&config, &err), WEIR_OK);
  if (weir_config_read(config, yaml, strlen(yaml), "p.yaml", "/", &err))
    fail_msg("%s", err.message);
  return config;
}

static void set(weir_config *config, const char *dotted, const char *value) {
  weir_error err = {0};
  if (weir_config_set(config, dotted, value, &err)) fail_msg("%s", err.message);
}

static void has_parts(const weir_error *err, va_list parts) {
  for (const char *part = va_arg(parts, const char *); part;
       part = va_arg(parts, const char *)) {
    if (!strstr(err->message, part)) fail_msg("'%s' lacks '%s'", err->message, part);
  }
}

/* Everything the pipeline room does with a file, up to the first error. */
static weir_status read_all(const weir_config *config, weir_error *err) {
  config_top top = {0};
  weir_status status = config_top_init(config, &top, err);
  config_top_done(&top);
  for (int32_t kind = CONFIG_SOURCES; kind <= CONFIG_SINKS && !status; kind++) {
    for (size_t i = 0; i < config_connector_count(config, kind) && !status; i++) {
      config_connector c = {0};
      weir_options *options = NULL;
      status = config_connector_at(config, kind, i, &c, err);
      if (!status)
        status = config_options(config, &c, kind ? file_table : NULL, &options, err);
      weir_options_free(options);
    }
  }
  return status;
}

static void refused(const char *yaml, ...) {
  weir_config *config = NULL;
  weir_error err = {0};
  assert_int_equal(weir_config_new(&config, &err), WEIR_OK);
  weir_status status = weir_config_read(config, yaml, strlen(yaml), "p.yaml", "/", &err);
  if (!status) status = read_all(config, &err);
  assert_int_equal(status, WEIR_E_INVALID_CONFIG);
  va_list parts;
  va_start(parts, yaml);
  has_parts(&err, parts);
  va_end(parts);
  weir_config_free(config);
}

static void test_top_has_defaults(void **state) {
  (void)state;
  weir_config *config = read_text(SINK);
  config_top top = {0};
  weir_error err = {0};
  if (config_top_init(config, &top, &err)) fail_msg("%s", err.message);
  assert_string_equal(top.pipeline, "orders");
  assert_int_equal(top.guarantee, WEIR_EXACTLY_ONCE);
  assert_string_equal(top.state, "/weir-state/orders");
  assert_int_equal(top.interval_ns, 10 * BASE_NS_PER_S);
  assert_int_equal(top.timeout_ns, 60 * BASE_NS_PER_S);
  assert_int_equal(top.queue_bytes, 16 << 20);
  config_top_done(&top);
  assert_int_equal(read_all(config, &err), WEIR_OK);
  weir_config_free(config);
}

static void test_top_takes_what_is_given(void **state) {
  (void)state;
  weir_config *config =
      read_text(SINK
                "guarantee: at_least_once\nstate: ./st\nqueue_bytes: 1MiB\n"
                "checkpoint: {interval: 1s, timeout: 5s}\n");
  config_top top = {0};
  weir_error err = {0};
  if (config_top_init(config, &top, &err)) fail_msg("%s", err.message);
  assert_int_equal(top.guarantee, WEIR_AT_LEAST_ONCE);
  assert_string_equal(top.state, "/st");
  assert_int_equal(top.interval_ns, BASE_NS_PER_S);
  assert_int_equal(top.timeout_ns, 5 * BASE_NS_PER_S);
  assert_int_equal(top.queue_bytes, 1 << 20);
  config_top_done(&top);
  weir_config_free(config);
}

static void test_what_a_host_asks(void **state) {
  (void)state;
  weir_config *config = read_text(SINK "checkpoint: {timeout: 3s}\n");
  int64_t timeout = 0;
  weir_error err = {0};
  assert_int_equal(weir_config_checkpoint_timeout(config, &timeout, &err), WEIR_OK);
  assert_int_equal(timeout, 3 * BASE_NS_PER_S);
  assert_int_equal(weir_config_uses(config, "sinks", "file"), 1);
  assert_int_equal(weir_config_uses(config, "sinks", "generator"), 0);
  assert_int_equal(weir_config_uses(config, "sources", "generator"), 1);
  assert_int_equal(weir_config_uses(config, "nothing", "file"), 0);
  set(config, "checkpoint.timeout", "x");
  assert_int_equal(weir_config_checkpoint_timeout(config, &timeout, &err),
                   WEIR_E_INVALID_CONFIG);
  weir_config_free(config);
}

static void test_top_complaints(void **state) {
  (void)state;
  refused("", "p.yaml", "nothing", NULL);
  refused("[a]\n", "a list", NULL);
  refused("sourcs: {}\n", "p.yaml:1:1: ", "'sourcs'", "did you mean 'sources'", NULL);
  refused("checkpoint: {intervall: 1s}\n", "p.yaml:1:14: ", "'checkpoint.intervall'",
          "'checkpoint.interval'", NULL);
  refused("checkpoint: 1s\n", "'checkpoint'", "expected a mapping", NULL);
  refused(SINK "store_lease: 10ms\n", "'store_lease'", "1s", NULL);
  refused("pipeline: Orders\nsources: {a: {type: x}}\nsinks: {b: {type: x}}\n",
          "p.yaml:1:11: ", "'pipeline'", "a-z", "'Orders'", NULL);
  refused("sources: {a: {type: x}}\nsinks: {b: {type: x}}\n", "'pipeline'", "is missing",
          NULL);
  refused("pipeline: a\nsinks: {b: {type: x}}\n", "'sources'", "at least one", NULL);
  refused("pipeline: a\nsources: {b: {type: x}}\nsinks: []\n", "p.yaml:3:8: ", "'sinks'",
          "a list", NULL);
  refused(SINK "checkpoint: {interval: 10}\n", "pipeline orders", "'checkpoint.interval'",
          "'10'", NULL);
  refused(SINK "queue_bytes: 1\n", "'queue_bytes'", "64KiB", NULL);
  refused(SINK "guarantee: exactly-once\n", "one of exactly_once", NULL);
}

static void test_connectors_come_in_file_order(void **state) {
  (void)state;
  weir_config *config =
      read_text(HEAD "  b: {type: ./x.so}\nsinks:\n  z: {type: file, path: p}\n");
  config_connector c = {0};
  weir_error err = {0};
  assert_int_equal(config_connector_count(config, CONFIG_SOURCES), 2);
  assert_int_equal(config_connector_count(config, CONFIG_SINKS), 1);
  assert_int_equal(config_connector_at(config, CONFIG_SOURCES, 1, &c, &err), WEIR_OK);
  assert_string_equal(c.name, "b");
  assert_string_equal(c.type, "./x.so");
  assert_string_equal(c.where, "source b");
  char *path = config_path(config, c.type, &err);
  assert_string_equal(path, "/x.so");
  free(path);
  assert_int_equal(config_connector_at(config, CONFIG_SINKS, 0, &c, &err), WEIR_OK);
  assert_string_equal(c.where, "sink z");
  weir_config_free(config);
}

static void test_connector_complaints(void **state) {
  (void)state;
  refused(HEAD "sinks:\n  lake: file\n", "p.yaml:5:3: ", "pipeline orders, sink lake",
          "a mapping with a `type`", NULL);
  refused(HEAD "sinks:\n  lake: {path: x}\n", "sink lake", "'type'", "is missing", NULL);
  refused(HEAD "sinks:\n  lake: {type: [a]}\n", "'type'", "does not name", NULL);
  refused(HEAD "sinks:\n  la.ke: {type: file}\n", "p.yaml:5:3: ", "1 to 64", NULL);
  refused(SINK "    formatt: csv\n", "p.yaml:8:5: ", "pipeline orders, sink lake",
          "'formatt'", "'format'", "weir connectors file", NULL);
  refused(SINK "    writer: 2\n", "'writer'", "'writers'", NULL);
  refused(SINK "    writers: 0\n", "p.yaml:8:14: ", "sink lake, option 'writers'",
          "from 1 to 1024", "'0'", NULL);
  refused(SINK "    roll: {size: big}\n", "p.yaml:8:18: ", "'roll.size'", "a size", NULL);
  refused(SINK "    roll: 5\n", "'roll'", "expected a mapping", NULL);
  refused(SINK "    roll.size: 1MiB\n    roll: {size: 2MiB}\n", "'roll.size'", "twice",
          NULL);
  refused(SINK "    format: [csv]\n", "a list", NULL);
  refused(SINK "    schema: {a: {b: c}}\n", "'schema'", "'a'", "a mapping", NULL);
  refused(SINK "    schema: {a: }\n", "'schema'", "'a'", "no value", NULL);
  refused(SINK "    on_bad_row: skip\n", "'on_bad_row'", "fail", NULL);
  refused(SINK "    on_bad_row: {dead_leter: x}\n", "'on_bad_row.dead_leter'",
          "'on_bad_row.dead_letter'", NULL);
  refused(HEAD "sinks:\n  lake: {type: file}\n", "sink lake", "'path'", "is missing",
          "Where to.", NULL);
}

static void test_core_and_own_options_in_one(void **state) {
  (void)state;
  weir_config *config = read_text(SINK
                                  "    from: [in, other]\n    writers: 3\n    "
                                  "write_timeout: 2s\n    roll: {size: 1KiB}\n");
  config_connector c = {0};
  weir_options *o = NULL;
  weir_error err = {0};
  assert_int_equal(config_connector_at(config, CONFIG_SINKS, 0, &c, &err), WEIR_OK);
  if (config_options(config, &c, file_table, &o, &err)) fail_msg("%s", err.message);
  assert_string_equal(weir_options_where(o), "sink lake");
  assert_string_equal(weir_options_string(o, "path"), "/out");
  assert_int_equal(weir_options_int(o, "writers"), 3);
  assert_int_equal(weir_options_count(o, "from"), 2);
  assert_string_equal(weir_options_item(o, "from", 1), "other");
  assert_int_equal(weir_options_int(o, "write_timeout"), 2 * BASE_NS_PER_S);
  assert_false(weir_options_given(o, "flush_interval"));
  assert_string_equal(weir_options_string(o, "on_bad_row"), "fail");
  assert_int_equal(weir_options_int(o, "roll.size"), 1024);
  weir_options_free(o);
  weir_config_free(config);
}

static void test_secrets_and_variables_never_show(void **state) {
  (void)state;
  setenv("WEIR_TEST_PW", "hunter2", 1);
  const char *texts[] = {
      SINK "    rows: hunter2\n",
      SINK "    token: [hunter2]\n",
      SINK "    token: {a: hunter2}\n",
      SINK "    format: ${WEIR_TEST_PW}\n",
      SINK "    roll: {size: '${WEIR_TEST_PW}'}\n",
      SINK "    token: file:hunter-none\n",
      "pipeline: ${WEIR_TEST_PW}!\nsources: {a: {type: x}}\nsinks: {b: {type: x}}\n"};
  for (size_t i = 0; i < BASE_COUNT(texts); i++) {
    weir_config *config = read_text(texts[i]);
    weir_error err = {0};
    assert_int_equal(read_all(config, &err), WEIR_E_INVALID_CONFIG);
    if (strstr(err.message, "hunter2")) fail_msg("%s", err.message);
    weir_config_free(config);
  }
}

static void test_option_errors_of_others_have_the_same_shape(void **state) {
  (void)state;
  weir_config *config = read_text(SINK "    from: nowhere\n    roll: {size: 1KiB}\n");
  config_connector c = {0};
  weir_error err = {0};
  assert_int_equal(config_connector_at(config, CONFIG_SINKS, 0, &c, &err), WEIR_OK);
  assert_int_equal(
      config_option_error(config, &c, "from", &err, "no source %s", "nowhere"),
      WEIR_E_INVALID_CONFIG);
  assert_string_equal(
      err.message,
      "p.yaml:8:11: pipeline orders, sink lake, option 'from': no source nowhere");
  config_option_error(config, &c, "roll.size", &err, "x");
  assert_string_equal(err.message,
                      "p.yaml:9:18: pipeline orders, sink lake, option 'roll.size': x");
  config_option_error(config, &c, NULL, &err, "x");
  assert_string_equal(err.message, "p.yaml:6:5: pipeline orders, sink lake: x");
  config_option_error(config, NULL, "state", &err, "x");
  assert_string_equal(err.message, "p.yaml:1:1: pipeline orders, option 'state': x");
  weir_config_free(config);
}

static void test_set_replaces_and_adds(void **state) {
  (void)state;
  weir_config *config = read_text(SINK "    roll: {size: 1KiB}\n");
  set(config, "pipeline", "p2");
  set(config, "checkpoint.interval", "2s");
  set(config, "sinks.lake.path", "*.x: #y");
  set(config, "sinks.lake.roll.size", "2KiB");
  set(config, "sinks.lake.from", "[in]");
  set(config, "sinks.lake.schema", "{a: int64, b: \"decimal128(3, 1)\"}");
  set(config, "sinks.lake.config.\"a.b\"", "'1'");
  set(config, "sinks.new.type", "blackhole");
  config_top top = {0};
  config_connector c = {0};
  weir_options *o = NULL;
  weir_error err = {0};
  if (config_top_init(config, &top, &err)) fail_msg("%s", err.message);
  assert_string_equal(top.pipeline, "p2");
  assert_int_equal(top.interval_ns, 2 * BASE_NS_PER_S);
  config_top_done(&top);
  assert_int_equal(config_connector_count(config, CONFIG_SINKS), 2);
  assert_int_equal(config_connector_at(config, CONFIG_SINKS, 0, &c, &err), WEIR_OK);
  if (config_options(config, &c, file_table, &o, &err)) fail_msg("%s", err.message);
  assert_string_equal(weir_options_string(o, "path"), "/*.x: #y");
  assert_int_equal(weir_options_int(o, "roll.size"), 2048);
  assert_string_equal(weir_options_item(o, "schema", 1), "decimal128(3, 1)");
  assert_string_equal(weir_options_key(o, "config", 0), "a.b");
  weir_options_free(o);
  weir_config_free(config);
}

static void set_refused(const char *dotted, const char *value, ...) {
  weir_config *config = read_text(SINK);
  weir_error err = {0};
  assert_int_equal(weir_config_set(config, dotted, value, &err), WEIR_E_INVALID_CONFIG);
  va_list parts;
  va_start(parts, value);
  has_parts(&err, parts);
  va_end(parts);
  assert_int_equal(read_all(config, &err), WEIR_OK);
  weir_config_free(config);
}

static void test_set_complaints(void **state) {
  (void)state;
  set_refused("sink.lake.path", "x", "--set sink.lake.path", "'sink'", "'sinks'", NULL);
  set_refused("", "x", "joined by dots", NULL);
  set_refused("sinks..x", "x", "joined by dots", NULL);
  set_refused("sinks.", "x", "joined by dots", NULL);
  set_refused("sinks.\"x", "x", "joined by dots", NULL);
  set_refused("sinks.lake.schema", "{a: decimal128(38, 10)}", "--set sinks.lake.schema",
              "quote", NULL);
  set_refused("sinks.lake.schema", "{a: 1, a: 2}", "given twice", NULL);
  set_refused("sinks.lake.from", "[a", "--set sinks.lake.from", "not valid YAML", NULL);
  set_refused("sinks.lake.path", "\xff", "UTF-8", NULL);
  set_refused("sinks.lake.path", "${WEIR_TEST_UNSET}", "WEIR_TEST_UNSET", NULL);
  set_refused(
      "sinks.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a",
      "1", "32", NULL);
}

static void test_errors_in_set_values_say_so(void **state) {
  (void)state;
  weir_config *config = read_text(SINK);
  weir_error err = {0};
  set(config, "sinks.lake.writers", "none");
  assert_int_equal(read_all(config, &err), WEIR_E_INVALID_CONFIG);
  assert_non_null(
      strstr(err.message, "--set: pipeline orders, sink lake, option 'writers'"));
  weir_config_free(config);
}

static void test_set_is_enough_without_a_file(void **state) {
  (void)state;
  weir_config *config = NULL;
  config_top top = {0};
  config_connector c = {0};
  weir_options *o = NULL;
  weir_error err = {0};
  assert_int_equal(weir_config_new(&config, &err), WEIR_OK);
  set(config, "pipeline", "p");
  set(config, "sources.in.type", "push");
  set(config, "sinks.out.type", "file");
  set(config, "sinks.out.path", "rel");
  if (config_top_init(config, &top, &err)) fail_msg("%s", err.message);
  assert_string_equal(top.state, "weir-state/p");
  config_top_done(&top);
  assert_int_equal(config_connector_at(config, CONFIG_SINKS, 0, &c, &err), WEIR_OK);
  if (config_options(config, &c, file_table, &o, &err)) fail_msg("%s", err.message);
  assert_string_equal(weir_options_string(o, "path"), "rel");
  weir_options_free(o);
  assert_int_equal(weir_config_read(config, "a: 1", 4, "x", NULL, &err),
                   WEIR_E_INVALID_STATE);
  weir_config_free(config);
}

static void test_a_failed_read_leaves_the_config_as_it_was(void **state) {
  (void)state;
  weir_config *config = NULL;
  weir_error err = {0};
  assert_int_equal(weir_config_new(&config, &err), WEIR_OK);
  assert_int_equal(weir_config_read(config, "a: [", 4, "x", NULL, &err),
                   WEIR_E_INVALID_CONFIG);
  assert_int_equal(
      weir_config_read(config, SINK, strlen(SINK), "x", "/nowhere-at-all", &err),
      WEIR_E_NOT_FOUND);
  assert_int_equal(weir_config_read(config, SINK, strlen(SINK), "x", "/", &err), WEIR_OK);
  weir_config_free(config);
}

static void test_relative_paths_start_at_the_file(void **state) {
  (void)state;
  char dir[] = "/tmp/weir-config-XXXXXX", path[200], expected[200];
  assert_non_null(mkdtemp(dir));
  snprintf(path, sizeof(path), "%s/p.yaml", dir);
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  assert_true(fputs(SINK, f) >= 0);
  assert_int_equal(fclose(f), 0);
  assert_int_equal(chdir(dir), 0);
  const char *spellings[] = {"p.yaml", "./p.yaml", path};
  char *real = realpath(dir, NULL);
  snprintf(expected, sizeof(expected), "%s/weir-state/orders", real);
  free(real);
  for (size_t i = 0; i < BASE_COUNT(spellings); i++) {
    weir_config *config = NULL;
    config_top top = {0};
    weir_error err = {0};
    assert_int_equal(weir_config_new(&config, &err), WEIR_OK);
    if (weir_config_read_file(config, spellings[i], &err)) fail_msg("%s", err.message);
    assert_int_equal(config_top_init(config, &top, &err), WEIR_OK);
    assert_string_equal(top.state, expected);
    config_top_done(&top);
    weir_config_free(config);
  }
  weir_config *config = NULL;
  weir_error err = {0};
  assert_int_equal(unlink(path), 0);
  assert_int_equal(weir_config_new(&config, &err), WEIR_OK);
  assert_int_equal(weir_config_read_file(config, path, &err), WEIR_E_NOT_FOUND);
  assert_non_null(strstr(err.message, path));
  weir_config_free(config);
  assert_int_equal(chdir("/"), 0);
  assert_int_equal(rmdir(dir), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_top_has_defaults),
      cmocka_unit_test(test_top_takes_what_is_given),
      cmocka_unit_test(test_what_a_host_asks),
      cmocka_unit_test(test_top_complaints),
      cmocka_unit_test(test_connectors_come_in_file_order),
      cmocka_unit_test(test_connector_complaints),
      cmocka_unit_test(test_core_and_own_options_in_one),
      cmocka_unit_test(test_secrets_and_variables_never_show),
      cmocka_unit_test(test_option_errors_of_others_have_the_same_shape),
      cmocka_unit_test(test_set_replaces_and_adds),
      cmocka_unit_test(test_set_complaints),
      cmocka_unit_test(test_errors_in_set_values_say_so),
      cmocka_unit_test(test_set_is_enough_without_a_file),
      cmocka_unit_test(test_a_failed_read_leaves_the_config_as_it_was),
      cmocka_unit_test(test_relative_paths_start_at_the_file),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
