/* SPDX-License-Identifier: Apache-2.0 */
/* Bindings: identity, canonical text, and what differs between two of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <nanoarrow/nanoarrow.h>

#include "connector/connector.h"
#include "support/rows.h"

static weir_binding binding_of(const char *columns) {
  weir_binding b = {.struct_size = sizeof(b)};
  weir_schema *schema = rows_schema(columns);
  assert_int_equal(weir_binding_logical(schema, &b, NULL), WEIR_OK);
  weir_schema_unref(schema);
  return b;
}

static char *text_of(const weir_binding *b) {
  weir_bytes bytes = {0};
  weir_error err = {0};
  if (connector_binding_text(b, &bytes, &err)) fail_msg("%s", err.message);
  char *text = calloc(1, bytes.size + 1);
  memcpy(text, bytes.data, bytes.size);
  weir_bytes_release(&bytes);
  return text;
}

static void test_identity(void **state) {
  (void)state;
  weir_error err = {0};
  weir_binding b = binding_of("id: int64");
  assert_int_equal(weir_binding_identify(&b, "table_uuid", "a=b c", &err), WEIR_OK);
  assert_int_equal(weir_binding_identify(&b, "db.oid", "5", &err), WEIR_OK);
  assert_int_equal(weir_binding_identify(&b, "db.oid", "5", &err),
                   WEIR_OK); /* said again */
  assert_string_equal(b.identity, "table_uuid=a=b c\ndb.oid=5\n");
  assert_int_equal(weir_binding_identify(&b, "db.oid", "6", &err), WEIR_E_INTERNAL);
  assert_non_null(strstr(err.message, "is '5' already, not '6'"));
  assert_int_equal(weir_binding_identify(&b, "db.oid", "55", &err), WEIR_E_INTERNAL);
  static const char *const keys[] = {"", "A", "a b", "a=b", "a\n"};
  for (size_t i = 0; i < 5; i++) {
    assert_int_equal(weir_binding_identify(&b, keys[i], "x", &err), WEIR_E_INTERNAL);
  }
  assert_int_equal(weir_binding_identify(&b, "k", "two\nlines", &err), WEIR_E_INTERNAL);
  assert_int_equal(weir_binding_identify(&b, "k", "two\rlines", &err), WEIR_E_INTERNAL);
  assert_int_equal(weir_binding_identify(&b, "k", "\xff", &err), WEIR_E_INTERNAL);
  char *big = calloc(1, WEIR_MAX_IDENTITY);
  memset(big, 'v', WEIR_MAX_IDENTITY - 1);
  assert_int_equal(weir_binding_identify(&b, "k", big, &err), WEIR_E_INTERNAL);
  big[WEIR_MAX_IDENTITY - strlen(b.identity) - 3] =
      0; /* k, = and the line's end fit just */
  assert_int_equal(weir_binding_identify(&b, "k", big, &err), WEIR_OK);
  assert_int_equal(strlen(b.identity), WEIR_MAX_IDENTITY);
  free(big);
  weir_binding_done(&b);
  assert_null(b.schema);
  assert_null(b.identity);
  assert_int_equal(b.struct_size, sizeof(b));
  weir_binding_done(&b);
  weir_binding_done(NULL);
}

/* A key is not found in one that begins with it; lines that a connector set itself may lack their end. */
static void test_identity_line_by_line(void **state) {
  (void)state;
  weir_error err = {0};
  weir_binding b = binding_of("id: int64");
  b.identity = strdup("table=7");
  assert_int_equal(weir_binding_identify(&b, "table", "7", &err), WEIR_OK);
  assert_string_equal(b.identity, "table=7");
  assert_int_equal(weir_binding_identify(&b, "tab", "8", &err), WEIR_OK);
  assert_string_equal(b.identity, "table=7\ntab=8\n");
  assert_int_equal(weir_binding_identify(&b, "table", "9", &err), WEIR_E_INTERNAL);
  weir_binding_done(&b);
  b = binding_of("id: int64");
  b.identity = strdup("\n\nz=1\n\na=2"); /* empty lines name nothing */
  char *text = text_of(&b);
  assert_non_null(strstr(text, "binding 1\ntarget a=2\ntarget z=1\ncolumn"));
  free(text);
  weir_binding_done(&b);
}

/* Names come from outside; none may look like the end of its line or of itself. */
/* Of a dictionary the values are what counts. */
static void test_dictionaries(void **state) {
  (void)state;
  weir_binding b = binding_of("d: dictionary<int32, utf8>");
  char *text = text_of(&b);
  assert_non_null(strstr(text, "column 0.0 \"\" utf8"));
  free(text);
  weir_binding_done(&b);
}

static void test_names_are_quoted(void **state) {
  (void)state;
  struct ArrowSchema schema;
  weir_schema *counted = NULL;
  weir_error err = {0};
  ArrowSchemaInit(&schema);
  assert_int_equal(ArrowSchemaSetTypeStruct(&schema, 2), NANOARROW_OK);
  assert_int_equal(ArrowSchemaSetType(schema.children[0], NANOARROW_TYPE_INT64),
                   NANOARROW_OK);
  assert_int_equal(ArrowSchemaSetName(schema.children[0], "a\"b\\c\n\x01"), NANOARROW_OK);
  assert_int_equal(ArrowSchemaSetType(schema.children[1], NANOARROW_TYPE_LIST),
                   NANOARROW_OK);
  assert_int_equal(ArrowSchemaSetName(schema.children[1], ""), NANOARROW_OK);
  /* A list's values need no name. */
  struct ArrowSchema *item = schema.children[1]->children[0];
  assert_int_equal(ArrowSchemaSetType(item, NANOARROW_TYPE_INT64), NANOARROW_OK);
  assert_int_equal(ArrowSchemaSetName(item, NULL), NANOARROW_OK);
  if (weir_schema_new(&schema, &counted, &err)) fail_msg("%s", err.message);
  weir_binding b = {.struct_size = sizeof(b), .schema = counted};
  char *text = text_of(&b);
  assert_string_equal(text,
                      "weir-binding 1\n"
                      "column 0 \"a\\\"b\\\\c\\x0a\\x01\" int64\n"
                      "column 1 \"\" list<int64>\n"
                      "column 1.0 \"\" int64\n");
  free(text);
  weir_binding_done(&b);
}

static void test_long_names_are_cut_in_messages(void **state) {
  (void)state;
  weir_error err = {0};
  char was[700] = "weir-binding 1\ncolumn 0 \"", now[700];
  size_t used = strlen(was);
  memset(was + used, 'n', 300);
  strcpy(was + used + 300, "\" int64\n");
  memcpy(now, was, sizeof(now));
  memcpy(strstr(now, "int64"), "int32", 5);
  assert_int_equal(
      connector_binding_compare("sink x", was, strlen(was), now, strlen(now), &err),
      WEIR_E_SCHEMA);
  assert_non_null(strstr(err.message, "nnn was int64 and is now int32"));
  assert_true(strspn(strchr(err.message, '"') + 1, "n") == 199);
  /* And values: of targets, which may be as long as an identity. */
  strcpy(was, "weir-binding 1\ntarget uri=");
  used = strlen(was);
  memset(was + used, 'v', 300);
  strcpy(was + used + 300, "\n");
  strcpy(now, "weir-binding 1\ntarget uri=w\n");
  assert_int_equal(
      connector_binding_compare("sink x", was, strlen(was), now, strlen(now), &err),
      WEIR_E_CONFLICT);
  const char *value = strstr(err.message, "was ");
  assert_non_null(value);
  assert_int_equal(strspn(value + 4, "v"), 200);
  assert_int_equal(connector_binding_compare("sink x", "", 0, "", 0, &err), WEIR_OK);
}

static void test_canonical_text(void **state) {
  (void)state;
  weir_binding b =
      binding_of("id: int64 not null; tags: list<int32>; at: timestamp[us, UTC]");
  assert_int_equal(weir_binding_identify(&b, "z", "1", NULL), WEIR_OK);
  assert_int_equal(weir_binding_identify(&b, "a", "2", NULL), WEIR_OK);
  char *text = text_of(&b);
  assert_string_equal(text,
                      "weir-binding 1\n"
                      "target a=2\n"
                      "target z=1\n"
                      "column 0 \"id\" int64 not null\n"
                      "column 1 \"tags\" list<int32>\n"
                      "column 1.0 \"item\" int32\n"
                      "column 2 \"at\" timestamp[us, UTC]\n");
  free(text);
  weir_binding_done(&b);
}

/* The order in which a connector names its target does not matter. */
static void test_identity_is_sorted(void **state) {
  (void)state;
  weir_binding a = binding_of("id: int64"), b = binding_of("id: int64");
  assert_int_equal(weir_binding_identify(&a, "x", "1", NULL), WEIR_OK);
  assert_int_equal(weir_binding_identify(&a, "y", "2", NULL), WEIR_OK);
  assert_int_equal(weir_binding_identify(&b, "y", "2", NULL), WEIR_OK);
  assert_int_equal(weir_binding_identify(&b, "x", "1", NULL), WEIR_OK);
  char *ta = text_of(&a), *tb = text_of(&b);
  assert_string_equal(ta, tb);
  free(ta);
  free(tb);
  weir_binding_done(&a);
  weir_binding_done(&b);
}

static void test_differences(void **state) {
  (void)state;
  static const struct {
    const char *was, *now;
    const char *parts[3];
  } cases[] = {
      {"a: int64", "a: utf8", {"column \"a\" was int64 and is now utf8"}},
      {"a: int64", "a: int64 not null", {"was int64 and is now int64 not null"}},
      {"a: int64; b: utf8", "a: int64", {"column \"b\" (utf8) is gone"}},
      {"a: int64", "x: date32; a: int64", {"column \"x\" (date32) is new"}},
      {"a: int64; b: utf8", "b: utf8; a: int64", {"another order"}},
      {"a: int64; b: utf8; c: int8",
       "a: int32; c: int8; d: bool",
       {"\"a\" was int64", "\"b\" (utf8) is gone", "\"d\" (bool) is new"}},
      {"s: struct<x: int64>",
       "s: struct<x: utf8>",
       {"was struct<x: int64> and is now struct<x: utf8>"}},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    weir_error err = {0};
    weir_binding was = binding_of(cases[i].was), now = binding_of(cases[i].now);
    char *tw = text_of(&was), *tn = text_of(&now);
    assert_int_equal(
        connector_binding_compare("sink lake", tw, strlen(tw), tw, strlen(tw), &err),
        WEIR_OK);
    assert_int_equal(
        connector_binding_compare("sink lake", tw, strlen(tw), tn, strlen(tn), &err),
        WEIR_E_SCHEMA);
    assert_int_equal(strncmp(err.message, "sink lake: ", 11), 0);
    for (size_t p = 0; p < 3 && cases[i].parts[p]; p++) {
      if (!strstr(err.message, cases[i].parts[p])) {
        fail_msg("'%s' is not in '%s'", cases[i].parts[p], err.message);
      }
    }
    free(tw);
    free(tn);
    weir_binding_done(&was);
    weir_binding_done(&now);
  }
}

/* Nullability inside a struct does not show in the type's text, but counts. */
static void test_differs_inside(void **state) {
  (void)state;
  weir_error err = {0};
  const char *was =
      "weir-binding 1\ncolumn 0 \"s\" struct<x: int64>\ncolumn 0.0 \"x\" int64\n";
  const char *now =
      "weir-binding 1\ncolumn 0 \"s\" struct<x: int64>\ncolumn 0.0 \"x\" int64 not "
      "null\n";
  assert_int_equal(
      connector_binding_compare("x", was, strlen(was), now, strlen(now), &err),
      WEIR_E_SCHEMA);
  assert_non_null(strstr(err.message, "column \"s\" (struct<x: int64>) differs inside"));
}

static void test_another_target(void **state) {
  (void)state;
  weir_error err = {0};
  weir_binding was = binding_of("a: int64"), now = binding_of("a: utf8");
  assert_int_equal(weir_binding_identify(&was, "folder", "7:42", NULL), WEIR_OK);
  assert_int_equal(weir_binding_identify(&now, "folder", "7:43", NULL), WEIR_OK);
  char *tw = text_of(&was), *tn = text_of(&now);
  assert_int_equal(
      connector_binding_compare("sink lake", tw, strlen(tw), tn, strlen(tn), &err),
      WEIR_E_CONFLICT);
  assert_non_null(strstr(err.message, "target folder was 7:42 and is now 7:43"));
  assert_non_null(strstr(err.message, "column \"a\" was int64"));
  free(tw);
  free(tn);
  weir_binding_done(&was);
  weir_binding_done(&now);
}

/* What the store gives back may be anything: an error, never a crash. */
static void test_pinned_text_of_any_kind(void **state) {
  (void)state;
  static const char *const texts[] = {"",
                                      "\n\n\n",
                                      "column ",
                                      "column 0",
                                      "column 0 ",
                                      "column 0 \"",
                                      "column 0 \"a\\",
                                      "target ",
                                      "target x",
                                      "column 0.0 \"a\" int64\n",
                                      "column 0 \"a\" int64"};
  weir_error err = {0};
  const char *now = "weir-binding 1\ncolumn 0 \"a\" int64\n";
  for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
    char *exact =
        malloc(strlen(texts[i]) + 1); /* so that the sanitizer sees a byte too many */
    size_t size = strlen(texts[i]);
    memcpy(exact, texts[i], size);
    char *tight = realloc(exact, size ? size : 1);
    assert_int_not_equal(
        connector_binding_compare("x", tight, size, now, strlen(now), &err), WEIR_OK);
    assert_int_not_equal(
        connector_binding_compare("x", now, strlen(now), tight, size, &err), WEIR_OK);
    free(tight);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_identity),
      cmocka_unit_test(test_identity_line_by_line),
      cmocka_unit_test(test_dictionaries),
      cmocka_unit_test(test_names_are_quoted),
      cmocka_unit_test(test_long_names_are_cut_in_messages),
      cmocka_unit_test(test_canonical_text),
      cmocka_unit_test(test_identity_is_sorted),
      cmocka_unit_test(test_differences),
      cmocka_unit_test(test_differs_inside),
      cmocka_unit_test(test_another_target),
      cmocka_unit_test(test_pinned_text_of_any_kind),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
