/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <weir/batch.h>

#include <cmocka.h>

static void test_columns(void **state) {
  (void)state;
  static const char *const names[] = {"id", "", "ts"};
  static const char *const types[] = {"int64 not null", "list<int8>",
                                      "timestamp[us, UTC]"};
  weir_schema *schema = NULL;
  weir_error err = {0};
  assert_int_equal(weir_schema_from_types(names, types, 3, &schema, &err), WEIR_OK);
  const struct ArrowSchema *arrow = weir_schema_arrow(schema);
  assert_int_equal(arrow->n_children, 3);
  assert_string_equal(arrow->children[0]->name, "id");
  assert_string_equal(arrow->children[0]->format, "l");
  assert_false(arrow->children[0]->flags & ARROW_FLAG_NULLABLE);
  assert_string_equal(arrow->children[1]->name, "");
  assert_true(arrow->children[1]->flags & ARROW_FLAG_NULLABLE);
  assert_string_equal(arrow->children[2]->format, "tsu:UTC");
  weir_schema_unref(schema);
}

static void test_refusals(void **state) {
  (void)state;
  static const char *const twice[] = {"a", "b", "a"}, *const broken[] = {"\xff", "b",
                                                                         "c"};
  static const char *const types[] = {"int8", "int8", "int8"};
  static const char *const typo[] = {"int8", "int46", "int8"};
  static const char *const names[] = {"a", "b", "c"};
  weir_schema *schema = NULL;
  weir_error err = {0};
  assert_int_equal(weir_schema_from_types(twice, types, 3, &schema, &err),
                   WEIR_E_INVALID_CONFIG);
  assert_non_null(strstr(err.message, "'a' is given twice"));
  assert_int_equal(weir_schema_from_types(names, typo, 3, &schema, &err),
                   WEIR_E_INVALID_CONFIG);
  assert_memory_equal(err.message, "column 'b': ", 12);
  assert_int_equal(weir_schema_from_types(broken, types, 3, &schema, &err),
                   WEIR_E_INVALID_CONFIG);
  assert_null(schema);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_columns),
      cmocka_unit_test(test_refusals),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
