/* SPDX-License-Identifier: Apache-2.0 */
/* Counted schemas: what is refused, copies, and the comparison of declared with given. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <nanoarrow/nanoarrow.h>
#include <weir/batch.h>

static struct ArrowSchema parse(const char *type) {
  struct ArrowSchema schema = {0};
  weir_error err = {0};
  if (weir_type_parse(type, &schema, &err) != WEIR_OK) fail_msg("%s", err.message);
  return schema;
}

static void takes_over_on_success_only(void **state) {
  (void)state;
  weir_error err = {0};
  weir_schema *schema = NULL;
  struct ArrowSchema ok = parse("struct<a: int64, b: list<utf8>>"), bad = parse("int64");
  assert_int_equal(weir_schema_new(&ok, &schema, &err), WEIR_OK);
  assert_null(ok.release);
  assert_string_equal(weir_schema_arrow(schema)->children[1]->name, "b");
  assert_ptr_equal(weir_schema_ref(schema), schema);
  weir_schema_unref(schema);
  weir_schema_unref(schema);
  weir_schema_unref(NULL);

  schema = NULL;
  assert_int_equal(weir_schema_new(&bad, &schema, &err), WEIR_E_SCHEMA);
  assert_non_null(bad.release);
  assert_null(schema);
  bad.release(&bad);
  assert_int_equal(weir_schema_new(&bad, &schema, &err), WEIR_E_SCHEMA);
}

static void copies_are_independent(void **state) {
  (void)state;
  weir_error err = {0};
  weir_schema *schema = NULL;
  struct ArrowSchema source = parse("struct<a: dictionary<int8, utf8>>"), out = {0};
  assert_int_equal(weir_schema_copy(&source, &schema, &err), WEIR_OK);
  source.release(&source);
  assert_int_equal(weir_schema_export(schema, &out, &err), WEIR_OK);
  weir_schema_unref(schema);
  assert_string_equal(out.children[0]->dictionary->format, "u");
  out.release(&out);
}

/* What a producer may get wrong, one at a time. */
static void refuses_malformed_schemas(void **state) {
  (void)state;
  static const struct {
    const char *format, *message;
  } formats[] = {
      {"", "size > 0"},        {"?", "Unknown format"}, {"w:0", "size > 0"},
      {"w:-3", "size > 0"},    {"d:39,1", "1 to 38"},   {"d:0,1", "1 to 38"},
      {"d:5,1,7", "bitwidth"}, {"tsu", "':'"},          {"ll", "parsed 1/2"},
      {"+l", "1 children"},    {"+us:0", "union"},      {"+w:-1", "1 children"},
      {"+r", "2 children"},
  };
  for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
    struct ArrowSchema source = parse("struct<a: int64>");
    weir_schema *schema = NULL;
    weir_error err = {0};
    assert_int_equal(ArrowSchemaSetFormat(source.children[0], formats[i].format), 0);
    assert_int_equal(weir_schema_new(&source, &schema, &err), WEIR_E_SCHEMA);
    if (strstr(err.message, formats[i].message) == NULL ||
        strstr(err.message, "column 0 'a'") == NULL)
      fail_msg("'%s': %s", formats[i].format, err.message);
    assert_int_equal(err.column, 0);
    assert_int_equal(weir_schema_copy(&source, &schema, &err), WEIR_E_SCHEMA);
    source.release(&source);
  }
}

static void refuses_bad_names(void **state) {
  (void)state;
  static const char *const names[] = {NULL, "\xff"};
  for (size_t i = 0; i < 2; i++) {
    struct ArrowSchema source = parse("struct<a: struct<b: int64>>");
    weir_schema *schema = NULL;
    weir_error err = {0};
    assert_int_equal(ArrowSchemaSetName(source.children[0]->children[0], names[i]), 0);
    assert_int_equal(weir_schema_new(&source, &schema, &err), WEIR_E_SCHEMA);
    assert_non_null(strstr(err.message, "column 0 'a', field 0 ''"));
    assert_non_null(strstr(err.message, "not UTF-8"));
    source.release(&source);
  }
}

static void refuses_nesting_deeper_than_64(void **state) {
  (void)state;
  for (int levels = 62; levels <= 70; levels += 8) {
    weir_schema *schema = NULL;
    weir_error err = {0};
    struct ArrowSchema root = parse("struct<a: int8>");
    struct ArrowSchema *at = root.children[0];
    for (int i = 0; i < levels; i++) {
      assert_int_equal(ArrowSchemaSetFormat(at, "+l"), 0);
      assert_int_equal(ArrowSchemaAllocateChildren(at, 1), 0);
      at = at->children[0];
      assert_int_equal(ArrowSchemaInitFromType(at, NANOARROW_TYPE_INT8), 0);
    }
    if (levels == 62) {
      assert_int_equal(weir_schema_new(&root, &schema, &err), WEIR_OK);
      weir_schema_unref(schema);
    } else {
      assert_int_equal(weir_schema_new(&root, &schema, &err), WEIR_E_SCHEMA);
      assert_non_null(strstr(err.message, "nested deeper"));
      root.release(&root);
    }
  }
}

static const struct {
  const char *want, *got, *message; /* message NULL: they fit */
} pairs[] = {
    {"struct<a: int64, b: utf8>", "struct<a: int64, b: utf8>", NULL},
    {"struct<a: int64>", "struct<a: int64 not null>", NULL},
    {"struct<a: list<item: int8>>", "struct<a: list<element: int8>>", NULL},
    {"struct<a: int64 not null>", "struct<a: int64>",
     "t: column 0 'a' is declared not null"},
    {"struct<a: int64>", "struct<a: int32>",
     "t: column 0 'a' is declared int64, got int32"},
    {"struct<a: int64, b: utf8>", "struct<a: int64>",
     "column 1 'b' (utf8) is declared but missing"},
    {"struct<a: int64>", "struct<a: int64, b: utf8>", "column 1 'b' is not declared"},
    {"struct<a: int64, b: int64>", "struct<b: int64, a: int64>", "other order"},
    {"struct<a: int64, b: int64>", "struct<a: int64, c: int64>",
     "column 1 'b' (int64) is declared"},
    {"struct<a: struct<x: int8>>", "struct<a: struct<y: int8>>",
     "declared struct<x: int8>, got struct<y: int8>"},
    {"struct<a: list<int8 not null>>", "struct<a: list<int8>>",
     "declared list<int8 not null>"},
    {"struct<a: timestamp[us, UTC]>", "struct<a: timestamp[us]>", "got timestamp[us]"},
    {"struct<a: utf8>", "struct<a: dictionary<int8, utf8>>",
     "got dictionary<int8, utf8>"},
    {"struct<a: dictionary<int8, utf8>>", "struct<a: dictionary<int8, binary>>",
     "got dictionary<int8, binary>"},
    {"struct<>", "struct<>", NULL},
    {"struct<a: struct<b: list<struct<c: int8>>>>",
     "struct<a: struct<b: list<struct<c: utf8>>>>",
     "got struct<b: list<struct<c: utf8>>>; field 0 'b', child 0 'item', field 0 'c' is "
     "declared int8, got utf8"},
    {"struct<a: struct<b: int8, c: int8>>", "struct<a: struct<b: int8, d: int8>>",
     "; field 1 'c' is declared, got 'd'"},
    {"struct<a: map<utf8, int8 not null>>", "struct<a: map<utf8, int8>>",
     "; child 0 'entries', field 1 'value' is declared not null, got a nullable one"},
    {"struct<a: list<struct<b: int8>>>", "struct<a: list<struct<b: int8, c: int8>>>",
     "; child 0 'item' is declared struct<b: int8>, got struct<b: int8, c: int8>"},
    {"struct<a: list<dictionary<int8, utf8>>>",
     "struct<a: list<dictionary<int8, binary>>>",
     "; child 0 'item', dictionary is declared utf8, got binary"},
};

static void compares_column_by_column(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    weir_error err = {0};
    struct ArrowSchema want = parse(pairs[i].want), got = parse(pairs[i].got);
    weir_status status = weir_schema_check(&want, &got, "t", &err);
    assert_int_equal(status, pairs[i].message == NULL ? WEIR_OK : WEIR_E_SCHEMA);
    if (pairs[i].message != NULL && strstr(err.message, pairs[i].message) == NULL)
      fail_msg("'%s' is not in: %s", pairs[i].message, err.message);
    want.release(&want);
    got.release(&got);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(takes_over_on_success_only),
      cmocka_unit_test(copies_are_independent),
      cmocka_unit_test(refuses_malformed_schemas),
      cmocka_unit_test(refuses_bad_names),
      cmocka_unit_test(refuses_nesting_deeper_than_64),
      cmocka_unit_test(compares_column_by_column),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
