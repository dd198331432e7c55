/* SPDX-License-Identifier: Apache-2.0 */
/* YAML to a tree: shapes, places, environment variables, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "config/node.h"

static config_node *parse(const char *yaml) {
  config_node *root = NULL;
  weir_error err = {0};
  if (config_parse(yaml, strlen(yaml), "p.yaml", &root, &err))
    fail_msg("%s", err.message);
  return root;
}

/* Expects the text to be refused with a message that holds every one of the parts (NULL
 * ends). */
static void refused(const char *yaml, ...) {
  config_node *root = NULL;
  weir_error err = {0};
  assert_int_equal(config_parse(yaml, strlen(yaml), "p.yaml", &root, &err),
                   WEIR_E_INVALID_CONFIG);
  assert_null(root);
  va_list parts;
  va_start(parts, yaml);
  for (const char *part = va_arg(parts, const char *); part;
       part = va_arg(parts, const char *)) {
    if (!strstr(err.message, part)) fail_msg("'%s' lacks '%s'", err.message, part);
  }
  va_end(parts);
}

static void test_tree_keeps_order_and_place(void **state) {
  (void)state;
  config_node *root = parse(
      "# a comment\npipeline: orders\nsinks:\n  z: {type: file}\n  a:\n    - 1\n    - "
      "'two'\n");
  assert_int_equal(root->kind, CONFIG_MAP);
  assert_int_equal(root->n, 2);
  assert_string_equal(root->children[0]->key, "pipeline");
  assert_string_equal(root->children[0]->text, "orders");
  assert_int_equal(root->children[0]->line, 2);
  assert_int_equal(root->children[0]->column, 11);
  config_node *sinks = config_node_get(root, "sinks");
  assert_string_equal(sinks->children[0]->key, "z");
  assert_string_equal(sinks->children[1]->key, "a");
  assert_int_equal(sinks->children[1]->key_line, 5);
  assert_int_equal(sinks->children[1]->key_column, 3);
  assert_int_equal(sinks->children[1]->kind, CONFIG_LIST);
  assert_string_equal(sinks->children[1]->children[1]->text, "two");
  assert_null(config_node_get(root, "nothing"));
  config_node_free(root);
}

static void test_plain_nothing_is_null_and_quoted_is_not(void **state) {
  (void)state;
  config_node *root = parse("a:\nb: ~\nc: null\nd: \"\"\ne: 'null'\nf: NULL\n");
  assert_int_equal(config_node_get(root, "a")->kind, CONFIG_NULL);
  assert_int_equal(config_node_get(root, "b")->kind, CONFIG_NULL);
  assert_int_equal(config_node_get(root, "c")->kind, CONFIG_NULL);
  assert_int_equal(config_node_get(root, "f")->kind, CONFIG_NULL);
  assert_string_equal(config_node_get(root, "d")->text, "");
  assert_string_equal(config_node_get(root, "e")->text, "null");
  config_node_free(root);
}

static void test_empty_text_gives_no_tree(void **state) {
  (void)state;
  assert_null(parse(""));
  assert_null(parse("# only a comment\n"));
}

static void test_duplicate_keys_name_both_lines(void **state) {
  (void)state;
  refused("a: 1\nb: 2\na: 3\n", "p.yaml:3:1: ", "'a'", "first at line 1",
          "again at line 3", NULL);
  refused("s: {x: 1,\n y: 2, x: 3}\n", "p.yaml:2:8: ", "'x'", "first at line 1", NULL);
  refused("a: 1\n'a': 2\n", "given twice", NULL);
}

static void test_types_in_braces_get_the_hint(void **state) {
  (void)state;
  refused("s: {a: decimal128(38, 10)}\n", "p.yaml:1:8: ", "'decimal128(38'", "quote",
          NULL);
  refused("s: {a: timestamp[us, UTC]}\n", "p.yaml:1:", "quote", NULL);
  refused("s: {a: struct<x: int64, y: utf8>}\n", "p.yaml:1:", "quote", NULL);
  refused("s: {a: map<utf8, int64>}\n", "'map<utf8'", "quote", NULL);
  refused("s: [bucket(16, id)]\n", "'bucket(16'", "quote", NULL);
  refused("s:\n  a: struct<x: int64>\n", "p.yaml:2:", "quote", NULL);
  refused("s: {a: 1\n", "not valid YAML", "quote", NULL);
  config_node *root = parse(
      "s: {a: 'decimal128(38, 10)', b: list<int32>, c: year(ts)}\nt: decimal128(38, "
      "10)\n");
  assert_string_equal(root->children[0]->children[0]->text, "decimal128(38, 10)");
  assert_string_equal(root->children[0]->children[1]->text, "list<int32>");
  assert_string_equal(root->children[1]->text, "decimal128(38, 10)");
  config_node_free(root);
}

static void test_what_a_pipeline_file_has_no_use_for(void **state) {
  (void)state;
  refused("a: &x 1\n", "p.yaml:1:4: ", "anchors", NULL);
  refused("a: *x\n", "aliases", "quote", NULL);
  refused("a: !!str 1\n", "tags", NULL);
  refused("a: *.ndjson\n", "p.yaml:1:", "quote a value that begins with *", NULL);
  refused("&k a: 1\n", "anchors", NULL);
  refused("*k : 1\n", "aliases", NULL);
  refused("[a, b]: 1\n", "a key must be a plain word", NULL);
  refused("? {a: b}\n: 1\n", "a key must be a plain word", NULL);
  refused("'': 1\n", "a key is empty", NULL);
  refused("a: 1\n---\nb: 2\n", "second YAML document", NULL);
  refused("a:\n\tb: 1\n", "p.yaml:2:1: ", "tabs", NULL);
  refused("a: \"x\\0y\"\n", "NUL", NULL);
  refused("a: \xff\n", "UTF-8", NULL);
  refused("a: 'open\n", "not valid YAML", NULL);
}

static void test_limits(void **state) {
  (void)state;
  char deep[200] = "a: ";
  memset(deep + 3, '[', 60);
  memset(deep + 63, ']', 60);
  refused(deep, "deeper than 32", NULL);

  base_buf many = {0};
  for (size_t i = 0; i < CONFIG_MAX_NODES + 1; i++)
    base_buf_append_str(&many, "- 1\n", NULL);
  base_buf_terminate(&many, NULL);
  refused((const char *)many.data, "more than 100000 values", NULL);
  base_buf_done(&many);

  weir_error err = {0};
  config_node *root = NULL;
  assert_int_equal(config_parse("a", (size_t)CONFIG_MAX_FILE + 1, "p.yaml", &root, &err),
                   WEIR_E_INVALID_CONFIG);
  assert_non_null(strstr(err.message, "16 MiB"));
}

static void test_variables_are_filled_in(void **state) {
  (void)state;
  setenv("WEIR_TEST_HOST", "h1", 1);
  setenv("WEIR_TEST_EMPTY", "", 1);
  config_node *root = parse(
      "a: orders-${WEIR_TEST_HOST}\nb: '${WEIR_TEST_HOST}${WEIR_TEST_HOST}'\nc: "
      "$${WEIR_TEST_HOST}\n"
      "d: ${WEIR_TEST_EMPTY}\ne: cost $5 ${WEIR_TEST_HOST}\n${WEIR_TEST_HOST}: key\n");
  assert_string_equal(config_node_get(root, "a")->text, "orders-h1");
  assert_string_equal(config_node_shown(config_node_get(root, "a")),
                      "orders-${WEIR_TEST_HOST}");
  assert_string_equal(config_node_get(root, "b")->text, "h1h1");
  assert_string_equal(config_node_get(root, "c")->text, "${WEIR_TEST_HOST}");
  assert_int_equal(config_node_get(root, "d")->kind, CONFIG_SCALAR);
  assert_string_equal(config_node_get(root, "d")->text, "");
  assert_string_equal(config_node_get(root, "e")->text, "cost $5 h1");
  assert_non_null(config_node_get(root, "${WEIR_TEST_HOST}"));
  config_node_free(root);
}

static void test_a_variable_cannot_bring_structure(void **state) {
  (void)state;
  setenv("WEIR_TEST_YAML", "{x: 1}\ny: 2", 1);
  config_node *root = parse("a: ${WEIR_TEST_YAML}\n");
  assert_int_equal(root->n, 1);
  assert_string_equal(root->children[0]->text, "{x: 1}\ny: 2");
  config_node_free(root);
}

static void test_bad_variables_are_named(void **state) {
  (void)state;
  unsetenv("WEIR_TEST_UNSET");
  setenv("WEIR_TEST_BYTES", "\xff", 1);
  refused("a: 1\nb: x${WEIR_TEST_UNSET}\n", "p.yaml:2:4: ", "WEIR_TEST_UNSET", "not set",
          NULL);
  refused("a: ${WEIR_TEST_BYTES}\n", "WEIR_TEST_BYTES", "UTF-8", NULL);
  refused("a: ${}\n", "p.yaml:1:4: ", "variable's name", NULL);
  refused("a: ${1x}\n", "variable's name", NULL);
  refused("a: ${open\n", "variable's name", NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_tree_keeps_order_and_place),
      cmocka_unit_test(test_plain_nothing_is_null_and_quoted_is_not),
      cmocka_unit_test(test_empty_text_gives_no_tree),
      cmocka_unit_test(test_duplicate_keys_name_both_lines),
      cmocka_unit_test(test_types_in_braces_get_the_hint),
      cmocka_unit_test(test_what_a_pipeline_file_has_no_use_for),
      cmocka_unit_test(test_limits),
      cmocka_unit_test(test_variables_are_filled_in),
      cmocka_unit_test(test_a_variable_cannot_bring_structure),
      cmocka_unit_test(test_bad_variables_are_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
