/* SPDX-License-Identifier: Apache-2.0 */
/* A Delta table's schema: read, matched with an input's, renamed for the files, made for a new table. */
#include <nanoarrow/nanoarrow.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../connectors/delta/schema.h"

#define FIELD(name, type, nullable) \
  "{\"name\":\"" name "\",\"type\":" type ",\"nullable\":" nullable ",\"metadata\":{}}"
#define STRUCT(fields) "{\"type\":\"struct\",\"fields\":[" fields "]}"

static const delta_features all = {.timestamp_ntz = true,
                                   .invariants = true,
                                   .generated = true,
                                   .identity = true,
                                   .defaults = true};

static void read_good(const char *text, const delta_features *features,
                      delta_arena *arena, delta_schema *out) {
  weir_error err = {0};
  if (delta_schema_read((delta_text){text, strlen(text)}, features, "table", arena, out,
                        &err))
    fail_msg("%s", err.message);
}

static void read_bad(const char *text, const char *says) {
  delta_arena arena = {0};
  delta_schema out;
  weir_error err = {0};
  weir_status status = delta_schema_read((delta_text){text, strlen(text)}, &all, "table",
                                         &arena, &out, &err);
  if (status == WEIR_OK || !strstr(err.message, says))
    fail_msg("expected '%s', got %d '%s'", says, (int)status, err.message);
  delta_arena_done(&arena);
}

static weir_schema *schema_of(const char *const *names, const char *const *types,
                              size_t n) {
  weir_schema *schema = NULL;
  weir_error err = {0};
  if (weir_schema_from_types(names, types, n, &schema, &err)) fail_msg("%s", err.message);
  return schema;
}

static const char *const every_name[] = {"i8",  "i16", "i32",  "i64", "f",  "d",
                                         "s",   "ls",  "b",    "bin", "dt", "ts",
                                         "ntz", "dec", "list", "map", "st"};
static const char *const every_type[] = {"int8 not null",
                                         "int16",
                                         "int32",
                                         "int64",
                                         "float32",
                                         "float64",
                                         "utf8",
                                         "large_utf8",
                                         "bool",
                                         "binary",
                                         "date32",
                                         "timestamp[us, UTC]",
                                         "timestamp[us]",
                                         "decimal128(10, 2)",
                                         "list<int32>",
                                         "map<utf8, float64>",
                                         "struct<a: int64, b: list<utf8>>"};
enum { EVERY = sizeof(every_name) / sizeof(every_name[0]) };

/* What weir makes of an input's columns is a schema that the same columns fit. */
static void every_type_goes_there_and_back(void **state) {
  (void)state;
  delta_arena arena = {0};
  delta_text text;
  delta_schema schema;
  weir_error err = {0};
  bool ntz = false;
  weir_schema *input = schema_of(every_name, every_type, EVERY);
  if (delta_schema_write(weir_schema_arrow(input), &arena, &text, &ntz, &err))
    fail_msg("%s", err.message);
  assert_true(ntz);
  read_good(text.p, &all, &arena, &schema);
  assert_int_equal(schema.root.n_children, EVERY);
  assert_false(schema.root.children[0].nullable);
  assert_true(schema.root.children[1].nullable);
  const delta_column *dec = delta_schema_find(&schema, "dec");
  assert_int_equal(dec->type, DELTA_TYPE_DECIMAL);
  assert_int_equal(dec->precision, 10);
  assert_int_equal(dec->scale, 2);
  assert_int_equal(delta_schema_find(&schema, "ls")->type, DELTA_TYPE_STRING);
  assert_int_equal(delta_schema_find(&schema, "map")->children[1].type,
                   DELTA_TYPE_DOUBLE);
  assert_null(delta_schema_find(&schema, "I8"));
  if (delta_schema_match(&schema, weir_schema_arrow(input), "table", &err))
    fail_msg("%s", err.message);
  weir_schema_unref(input);
  delta_arena_done(&arena);
}

static void types_that_delta_lacks_are_refused_by_column(void **state) {
  (void)state;
  static const char *const types[] = {
      "uint32",  "timestamp[ns]",    "time64[us]",  "decimal256(40, 2)",
      "float16", "struct<x: uint8>", "list<date64>"};
  for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
    const char *name = "odd";
    weir_schema *input = schema_of(&name, &types[i], 1);
    delta_arena arena = {0};
    delta_text text;
    weir_error err = {0};
    bool ntz = false;
    weir_status status =
        delta_schema_write(weir_schema_arrow(input), &arena, &text, &ntz, &err);
    if (status != WEIR_E_SCHEMA || !strstr(err.message, "'odd"))
      fail_msg("%s: %d '%s'", types[i], (int)status, err.message);
    weir_schema_unref(input);
    delta_arena_done(&arena);
  }
}

static void names_that_a_new_table_cannot_have_are_refused(void **state) {
  (void)state;
  static const char *const sets[][2] = {{"a b", "c"}, {"a", "A"}, {"a=b", "c"}};
  static const char *const types[] = {"int64", "int64"};
  for (size_t i = 0; i < 3; i++) {
    weir_schema *input = schema_of(sets[i], types, 2);
    delta_arena arena = {0};
    delta_text text;
    weir_error err = {0};
    bool ntz = false;
    assert_int_equal(
        delta_schema_write(weir_schema_arrow(input), &arena, &text, &ntz, &err),
        WEIR_E_SCHEMA);
    assert_non_null(strstr(err.message, sets[i][0]));
    weir_schema_unref(input);
    delta_arena_done(&arena);
  }
}

static void what_does_not_fit_is_named(void **state) {
  (void)state;
  delta_arena arena = {0};
  delta_schema table;
  read_good(STRUCT(FIELD("a", "\"long\"", "false") "," FIELD(
                "b", "\"string\"",
                "true") "," FIELD("c", STRUCT(FIELD("x", "\"integer\"", "true")),
                                  "true") "," FIELD("d",
                                                    "{\"type\":\"array\",\"elementType\":"
                                                    "\"long\",\"containsNull\":true}",
                                                    "true")),
            &all, &arena, &table);
  static const struct {
    const char *names[3], *types[3], *says;
  } cases[] = {
      {{"a", "b", "c"},
       {"int64 not null", "utf8", "struct<x: int64>"},
       "'c.x' is int64, but table has it as integer"},
      {{"a", "b", "z"}, {"int64 not null", "utf8", "int64"}, "table has no column 'z'"},
      {{"a", "B", "c"}, {"int64 not null", "utf8", "int64"}, "but one named 'b'"},
      {{"a", "b", "d"},
       {"int64 not null", "utf8", "list<int32>"},
       "'d.element' is int32"},
      {{"b", "c", "d"},
       {"utf8", "struct<x: int32>", "list<int64>"},
       "column 'a' of table must not be null, but the input lacks it"},
      {{"a", "b", "c"}, {"int64", "utf8", "struct<x: int32>"}, "'a' may be null"},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    weir_error err = {0};
    weir_schema *input = schema_of(cases[i].names, cases[i].types, 3);
    weir_status status =
        delta_schema_match(&table, weir_schema_arrow(input), "table", &err);
    if (status != WEIR_E_SCHEMA || !strstr(err.message, cases[i].says))
      fail_msg("expected '%s', got %d '%s'", cases[i].says, (int)status, err.message);
    weir_schema_unref(input);
  }
  const char *names[] = {"c", "a"}, *types[] = {"struct<x: int32>", "int64 not null"};
  weir_error err = {0};
  weir_schema *some = schema_of(names, types, 2); /* in another order, two of four */
  if (delta_schema_match(&table, weir_schema_arrow(some), "table", &err))
    fail_msg("%s", err.message);
  weir_schema_unref(some);
  delta_arena_done(&arena);
}

#define MAPPED(name, type, id, physical)                                               \
  "{\"name\":\"" name "\",\"type\":" type                                              \
  ",\"nullable\":true,\"metadata\":{"                                                  \
  "\"delta.columnMapping.id\":" id ",\"delta.columnMapping.physicalName\":\"" physical \
  "\"}}"

static const char *field_id(const struct ArrowSchema *field) {
  static char text[32];
  struct ArrowStringView value = {NULL, 0};
  assert_int_equal(
      ArrowMetadataGetValue(field->metadata, ArrowCharView("PARQUET:field_id"), &value),
      0);
  assert_true(value.size_bytes >= 0 && value.size_bytes < (int64_t)sizeof(text));
  memset(text, 0, sizeof(text));
  if (value.data) memcpy(text, value.data, (size_t)value.size_bytes);
  return text;
}

static void files_have_physical_names_and_ids(void **state) {
  (void)state;
  delta_arena arena = {0};
  delta_schema table;
  delta_features features = {.mapping = DELTA_MAPPING_NAME};
  read_good(STRUCT(MAPPED("a", "\"long\"", "1", "col-a") "," MAPPED(
                "p", "\"string\"", "2",
                "col-p") "," MAPPED("e",
                                    "{\"type\":\"array\",\"elementType\":" STRUCT(
                                        MAPPED("d", "\"integer\"", "5",
                                               "col-d")) ",\"containsNull\":true}",
                                    "4", "col-e")),
            &features, &arena, &table);
  const char *names[] = {"p", "e", "a"},
             *types[] = {"utf8", "list<struct<d: int32>>", "int64"};
  weir_schema *input = schema_of(names, types, 3), *files = NULL;
  delta_text by = {"p", 1};
  delta_texts partition_columns = {&by, 1, true};
  int64_t columns[3], n = 0;
  weir_error err = {0};
  if (delta_schema_of_files(&table, input, &partition_columns, columns, &n, &files, &err))
    fail_msg("%s", err.message);
  assert_int_equal(n, 2);
  assert_int_equal(columns[0], 1);
  assert_int_equal(columns[1], 2);
  const struct ArrowSchema *made = weir_schema_arrow(files);
  assert_string_equal(made->children[0]->name, "col-e");
  assert_string_equal(field_id(made->children[0]), "4");
  const struct ArrowSchema *inner = made->children[0]->children[0];
  assert_string_equal(field_id(inner), "");
  assert_string_equal(inner->children[0]->name, "col-d");
  assert_string_equal(field_id(inner->children[0]), "5");
  assert_string_equal(made->children[1]->name, "col-a");
  weir_schema_unref(files);
  weir_schema_unref(input);
  delta_arena_done(&arena);
}

static void what_weir_cannot_keep_is_refused_by_column(void **state) {
  (void)state;
  read_bad(STRUCT("{\"name\":\"x\",\"type\":\"integer\",\"nullable\":true,\"metadata\":{"
                  "\"delta.invariants\":\"{}\"}}"),
           "column 'x' has an invariant");
  read_bad(STRUCT("{\"name\":\"x\",\"type\":\"integer\",\"nullable\":true,\"metadata\":{"
                  "\"delta.generationExpression\":\"a\"}}"),
           "column 'x' is generated");
  read_bad(STRUCT("{\"name\":\"x\",\"type\":\"long\",\"nullable\":true,\"metadata\":{"
                  "\"delta.identity.start\":1}}"),
           "column 'x' is an identity column");
  read_bad(STRUCT(FIELD("v", "\"variant\"", "true")), "column 'v' has type 'variant'");
  read_bad(STRUCT(FIELD("a", STRUCT(FIELD("v", "\"interval\"", "true")), "true")),
           "column 'a.v' has type 'interval'");
  read_bad(STRUCT(FIELD("a",
                        "{\"type\":\"array\",\"elementType\":\"void\","
                        "\"containsNull\":true}",
                        "true")),
           "column 'a.element' is void");
}

static void a_damaged_schema_is_corrupt(void **state) {
  (void)state;
  delta_features none = {0};
  delta_arena arena = {0};
  delta_schema out;
  weir_error err = {0};
  const char *ntz = STRUCT(FIELD("t", "\"timestamp_ntz\"", "true"));
  assert_int_equal(delta_schema_read((delta_text){ntz, strlen(ntz)}, &none, "table",
                                     &arena, &out, &err),
                   WEIR_E_CORRUPT);
  none.mapping = DELTA_MAPPING_ID;
  const char *unmapped = STRUCT(FIELD("t", "\"long\"", "true"));
  assert_int_equal(delta_schema_read((delta_text){unmapped, strlen(unmapped)}, &none,
                                     "table", &arena, &out, &err),
                   WEIR_E_CORRUPT);
  assert_non_null(strstr(err.message, "physicalName"));
  delta_arena_done(&arena);
  read_bad("{", "not JSON");
  read_bad("\"long\"", "no struct");
  read_bad("{\"type\":\"struct\"}", "no fields");
  read_bad(STRUCT(FIELD("", "\"long\"", "true")), "no name");
  read_bad(STRUCT(FIELD("a", "7", "true")), "column 'a' has no type");
  read_bad(STRUCT(FIELD("a", "\"decimal(39,0)\"", "true")), "decimal");
  read_bad(STRUCT(FIELD("a", "\"decimal(5,6)\"", "true")), "decimal");
  read_bad(STRUCT(FIELD("a", "\"decimal(5,2) \"", "true")), "decimal");
  read_bad(STRUCT(FIELD("a", "\"long\"", "1")), "column 'a' has no nullable");
  read_bad(STRUCT(FIELD("a", "\"long\"", "true") "," FIELD("A", "\"long\"", "true")),
           "both columns 'a' and 'A'");
  char deep[8192] = "";
  for (int i = 0; i < 80; i++)
    strcat(deep, "{\"type\":\"array\",\"containsNull\":true,\"elementType\":");
  strcat(deep, "\"long\"");
  for (int i = 0; i < 80; i++) strcat(deep, "}");
  char text[8400];
  snprintf(
      text, sizeof(text),
      "{\"type\":\"struct\",\"fields\":[{\"name\":\"a\",\"nullable\":true,\"type\":%s}]}",
      deep);
  read_bad(text, "nested too deeply");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_type_goes_there_and_back),
      cmocka_unit_test(types_that_delta_lacks_are_refused_by_column),
      cmocka_unit_test(names_that_a_new_table_cannot_have_are_refused),
      cmocka_unit_test(what_does_not_fit_is_named),
      cmocka_unit_test(files_have_physical_names_and_ids),
      cmocka_unit_test(what_weir_cannot_keep_is_refused_by_column),
      cmocka_unit_test(a_damaged_schema_is_corrupt),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
