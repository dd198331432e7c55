/* SPDX-License-Identifier: Apache-2.0 */
/* Finding connectors: in the library, on the plugin path, by a path; and what is wrong with some. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <weir/connectors.h>
#include <weir/object.h>

#include <cmocka.h>

#include "connector/inside.h"

static int use_plugins(void **state) {
  (void)state;
  /* Empty parts and a folder that is not there are passed over. */
  return setenv("WEIR_PLUGIN_PATH",
                ":/nonexistent:" WEIR_TEST_PLUGINS ":" WEIR_TEST_PLUGINS, 1);
}

static void assert_not_found(const char *type, const char *base_dir, weir_status code,
                             const char *part) {
  const weir_sink_ops *ops = NULL;
  weir_error err = {0};
  weir_status status = connector_find_sink(type, base_dir, &ops, &err);
  if (status != code || !strstr(err.message, part)) {
    fail_msg("%s: %s '%s', not '%s'", type, weir_status_name(status), err.message, part);
  }
  assert_null(ops);
}

static void test_in_tree(void **state) {
  (void)state;
  weir_error err = {0};
  for (size_t i = 0; connector_builtin_sinks[i]; i++) {
    const weir_sink_ops *ops = NULL;
    const char *name = connector_builtin_sinks[i]->name;
    if (connector_find_sink(name, NULL, &ops, &err))
      fail_msg("%s: %s", name, err.message);
    assert_string_equal(ops->name, name);
    assert_non_null(ops->flush);
  }
  for (size_t i = 0; connector_builtin_sources[i]; i++) {
    const weir_source_ops *ops = NULL;
    const char *name = connector_builtin_sources[i]->name;
    if (connector_find_source(name, NULL, &ops, &err))
      fail_msg("%s: %s", name, err.message);
    assert_string_equal(ops->name, name);
  }
}

static void test_on_the_path(void **state) {
  (void)state;
  const weir_sink_ops *sink = NULL, *again = NULL;
  const weir_source_ops *source = NULL;
  weir_error err = {0};
  if (connector_find_sink("good", NULL, &sink, &err)) fail_msg("%s", err.message);
  assert_string_equal(sink->name, "good");
  assert_non_null(sink->rollback_epoch); /* complete */
  /* Init is called once a process; the plugin refuses a second time. */
  assert_int_equal(connector_find_source("good", "/", &source, &err), WEIR_OK);
  assert_int_equal(connector_find_sink("good", "/", &again, &err), WEIR_OK);
  assert_ptr_equal(sink, again);
}

static void test_by_path(void **state) {
  (void)state;
  const weir_sink_ops *sink = NULL, *same = NULL;
  const weir_source_ops *source = NULL;
  weir_error err = {0};
  if (connector_find_sink("./weir-good.so", WEIR_TEST_PLUGINS, &sink, &err))
    fail_msg("%s", err.message);
  assert_int_equal(
      connector_find_sink(WEIR_TEST_PLUGINS "/weir-good.so", NULL, &same, &err), WEIR_OK);
  assert_ptr_equal(sink, same);
  assert_int_equal(
      connector_find_source("../plugins/weir-good.so", WEIR_TEST_PLUGINS, &source, &err),
      WEIR_OK);
  assert_not_found("./weir-two.so", WEIR_TEST_PLUGINS, WEIR_E_INVALID_CONFIG,
                   "offers 2 sinks");
  assert_not_found("./weir-none.so", WEIR_TEST_PLUGINS, WEIR_E_INVALID_CONFIG,
                   "cannot load connector");
  assert_not_found("./weir-none.so", NULL, WEIR_E_INVALID_CONFIG, "././weir-none.so");
  assert_int_equal(
      connector_find_source("./weir-two.so", WEIR_TEST_PLUGINS, &source, &err),
      WEIR_E_INVALID_CONFIG);
  assert_non_null(strstr(err.message, "offers 0 sources"));
}

static void test_unknown_types(void **state) {
  (void)state;
  assert_not_found("goood", NULL, WEIR_E_INVALID_CONFIG, "did you mean 'good'?");
  assert_not_found("zzzzzzzzz", NULL, WEIR_E_INVALID_CONFIG,
                   "weir-zzzzzzzzz.so is looked for");
  assert_not_found("", NULL, WEIR_E_INVALID_CONFIG, "without a type");
  assert_not_found(NULL, NULL, WEIR_E_INVALID_CONFIG, "without a type");
  /* The file is there, the connector in it is called otherwise. */
  assert_not_found("two", NULL, WEIR_E_INVALID_CONFIG, "no sink of type 'two'");
}

static void test_unknown_sources(void **state) {
  (void)state;
  const weir_source_ops *ops = NULL;
  weir_error err = {0};
  assert_int_equal(connector_find_source("generatr", NULL, &ops, &err),
                   WEIR_E_INVALID_CONFIG);
  assert_non_null(strstr(err.message, "no source of type 'generatr', did you mean"));
  assert_int_equal(connector_find_source("", NULL, &ops, &err), WEIR_E_INVALID_CONFIG);
  assert_non_null(strstr(err.message, "a source without a type"));
  /* The file is there, with a connector of the other kind alone. */
  assert_int_equal(connector_find_source("two", NULL, &ops, &err), WEIR_E_INVALID_CONFIG);
  assert_non_null(strstr(err.message, "no source of type 'two'"));
  assert_not_found("./weir-none.so", "", WEIR_E_INVALID_CONFIG, "././weir-none.so");
  assert_int_equal(connector_find_sink("oldabi", NULL, &(const weir_sink_ops *){NULL},
                                       NULL), /* the reason need not be read */
                   WEIR_E_NOT_IMPLEMENTED);
  assert_null(ops);
}

static void test_bad_plugins(void **state) {
  (void)state;
  static const struct {
    const char *type;
    weir_status code;
    const char *part;
  } cases[] = {
      {"oldabi", WEIR_E_NOT_IMPLEMENTED, "built for connector ABI 99"},
      {"missing", WEIR_E_NOT_IMPLEMENTED, "has no 'write_batch'"},
      {"refuses", WEIR_E_NOT_IMPLEMENTED, "weir-refuses.so: needs a newer kernel"},
      {"noinit", WEIR_E_NOT_IMPLEMENTED, "exports no weir_plugin_init"},
      {"nulls", WEIR_E_NOT_IMPLEMENTED, "table 0 of its sinks is NULL"},
      {"many", WEIR_E_NOT_IMPLEMENTED, "3 sinks and no array"},
      {"empty", WEIR_E_NOT_IMPLEMENTED, "offers no connector"},
      {"manysources", WEIR_E_NOT_IMPLEMENTED, "1001 sources"},
      {"nullsource", WEIR_E_NOT_IMPLEMENTED, "table 1 of its sources is NULL"},
      {"badsource", WEIR_E_NOT_IMPLEMENTED, "has no 'read'"},
      {"nullstore", WEIR_E_NOT_IMPLEMENTED, "table 1 of its object stores is NULL"},
      {"nostores", WEIR_E_NOT_IMPLEMENTED, "1 object stores and no array"},
      {"badstore", WEIR_E_NOT_IMPLEMENTED,
       "its object store lacks the entry uploads_list"},
      {"shortstore", WEIR_E_NOT_IMPLEMENTED, "its table of an object store has 64 bytes"},
  };
  for (int again = 0; again < 2; again++) { /* the answer is remembered */
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
      assert_not_found(cases[i].type, NULL, cases[i].code, cases[i].part);
    }
  }
}

static void test_stores_of_plugins(void **state) {
  (void)state;
  weir_object_store *store = NULL;
  weir_object_info info;
  weir_error err = {0};
  assert_int_equal(weir_object_store_open("hollow://bucket/x", NULL, &store, &err),
                   WEIR_OK);
  assert_string_equal(weir_object_store_location(store), "hollow://bucket/x");
  assert_int_equal(weir_object_head(store, NULL, "key", &info, &err), WEIR_E_IO);
  weir_object_store_free(store);
  store = NULL;
  assert_int_equal(weir_object_store_open("nowhere://x", NULL, &store, &err),
                   WEIR_E_INVALID_CONFIG);
  assert_non_null(strstr(err.message, "weir-nowhere.so is neither on WEIR_PLUGIN_PATH"));
  /* The file is there, with connectors alone. */
  assert_int_equal(weir_object_store_open("two://x", NULL, &store, &err),
                   WEIR_E_INVALID_CONFIG);
  assert_int_equal(weir_object_store_open("badstore://x", NULL, &store, &err),
                   WEIR_E_NOT_IMPLEMENTED);
  assert_null(store);
}

static void test_a_file_that_is_no_library(void **state) {
  (void)state;
  char dir[] = "/tmp/weir-plugins-XXXXXX", file[64];
  assert_non_null(mkdtemp(dir));
  snprintf(file, sizeof(file), "%s/weir-text.so", dir);
  FILE *f = fopen(file, "w");
  fputs("not a library", f);
  fclose(f);
  setenv("WEIR_PLUGIN_PATH", dir, 1);
  assert_not_found("text", NULL, WEIR_E_INVALID_CONFIG, "weir-text.so");
  unlink(file);
  assert_not_found("text", NULL, WEIR_E_INVALID_CONFIG, "no sink of type 'text'");
  rmdir(dir);
}

/* ---- the list ------------------------------------------------------------------------------------ */

typedef struct listed {
  char text[8192];
  size_t n, stop_at;
} listed;

static weir_status list_one(void *ctx, const weir_connector_info *info) {
  listed *l = ctx;
  size_t used = strlen(l->text);
  assert_int_equal(info->struct_size, sizeof(*info));
  assert_non_null(info->name);
  if (info->problem) {
    snprintf(l->text + used, sizeof(l->text) - used, "problem %s\n", info->name);
    assert_int_equal(info->kind, 0);
    assert_non_null(info->origin);
  } else if (info->origin) { /* the library's own change as it grows */
    snprintf(l->text + used, sizeof(l->text) - used, "%s %s %s\n",
             info->kind == WEIR_CONNECTOR_SINK ? "sink" : "source", info->name,
             info->text);
    assert_string_equal(info->options[0].name, "path");
  } else {
    assert_non_null(info->options);
  }
  return ++l->n == l->stop_at ? WEIR_E_CANCELLED : WEIR_OK;
}

static void test_list(void **state) {
  (void)state;
  listed l = {0};
  weir_error err = {0};
  if (weir_connectors_each(list_one, &l, &err)) fail_msg("%s", err.message);
  assert_string_equal(
      l.text,
      "source good A source of a plugin.\n"
      "sink good A sink of a plugin.\n"
      "sink good A sink of a plugin.\n"
      "sink second A sink of a plugin.\n"
      "problem badsource\nproblem badstore\nproblem empty\nproblem many\n"
      "problem manysources\nproblem missing\nproblem noinit\nproblem nostores\n"
      "problem nulls\nproblem nullsource\nproblem nullstore\nproblem oldabi\n"
      "problem refuses\nproblem shortstore\n");
  listed first = {.stop_at = 1};
  assert_int_equal(weir_connectors_each(list_one, &first, &err), WEIR_E_CANCELLED);
  assert_int_equal(first.n, 1);
}

#define TEST(name) cmocka_unit_test_setup(name, use_plugins)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_in_tree),
      TEST(test_on_the_path),
      TEST(test_by_path),
      TEST(test_unknown_types),
      TEST(test_unknown_sources),
      TEST(test_bad_plugins),
      TEST(test_stores_of_plugins),
      TEST(test_a_file_that_is_no_library),
      TEST(test_list),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
