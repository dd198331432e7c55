/* SPDX-License-Identifier: Apache-2.0 */
/* Type names: every spelling parsed, weir's own printed, both the same type again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <weir/batch.h>

static const struct {
  const char *text, *canonical, *format;
} good[] = {
    {"null", "null", "n"},
    {"bool", "bool", "b"},
    {"boolean", "bool", "b"},
    {"int8", "int8", "c"},
    {"uint8", "uint8", "C"},
    {"int16", "int16", "s"},
    {"uint16", "uint16", "S"},
    {"int32", "int32", "i"},
    {"uint32", "uint32", "I"},
    {"int64", "int64", "l"},
    {"uint64", "uint64", "L"},
    {"float16", "float16", "e"},
    {"halffloat", "float16", "e"},
    {"float", "float32", "f"},
    {"float32", "float32", "f"},
    {"double", "float64", "g"},
    {"float64", "float64", "g"},
    {"utf8", "utf8", "u"},
    {" string ", "utf8", "u"},
    {"large_string", "large_utf8", "U"},
    {"string_view", "utf8_view", "vu"},
    {"binary", "binary", "z"},
    {"large_binary", "large_binary", "Z"},
    {"binary_view", "binary_view", "vz"},
    {"fixed_size_binary(16)", "fixed_size_binary(16)", "w:16"},
    {"fixed_size_binary[16]", "fixed_size_binary(16)", "w:16"},
    {"date32", "date32", "tdD"},
    {"date32[day]", "date32", "tdD"},
    {"date64[ms]", "date64", "tdm"},
    {"time32[s]", "time32[s]", "tts"},
    {"time32[ms]", "time32[ms]", "ttm"},
    {"time64[us]", "time64[us]", "ttu"},
    {"time64[ns]", "time64[ns]", "ttn"},
    {"timestamp[s]", "timestamp[s]", "tss:"},
    {"timestamp[ms]", "timestamp[ms]", "tsm:"},
    {"timestamp[us, UTC]", "timestamp[us, UTC]", "tsu:UTC"},
    {"timestamp[ns,tz=Europe/Berlin]", "timestamp[ns, Europe/Berlin]",
     "tsn:Europe/Berlin"},
    {"timestamp[us, +05:30]", "timestamp[us, +05:30]", "tsu:+05:30"},
    {"duration[us]", "duration[us]", "tDu"},
    {"month_interval", "interval_months", "tiM"},
    {"day_time_interval", "interval_day_time", "tiD"},
    {"month_day_nano_interval", "interval_month_day_nano", "tin"},
    {"decimal128(38, 10)", "decimal128(38, 10)", "d:38,10"},
    {"decimal(5)", "decimal128(5, 0)", "d:5,0"},
    {"decimal128(3, -2)", "decimal128(3, -2)", "d:3,-2"},
    {"decimal256(76, 0)", "decimal256(76, 0)", "d:76,0,256"},
    {"decimal32(9, 2)", "decimal32(9, 2)", "d:9,2,32"},
    {"decimal64(18, 2)", "decimal64(18, 2)", "d:18,2,64"},
    {"list<int32>", "list<int32>", "+l"},
    {"list<item: int32 not null>", "list<int32 not null>", "+l"},
    {"large_list<element: utf8>", "large_list<utf8>", "+L"},
    {"list_view<int8>", "list_view<int8>", "+vl"},
    {"large_list_view<int8>", "large_list_view<int8>", "+vL"},
    {"fixed_size_list<int32, 3>", "fixed_size_list<int32, 3>", "+w:3"},
    {"fixed_size_list<item: int32>[3]", "fixed_size_list<int32, 3>", "+w:3"},
    {"struct<>", "struct<>", "+s"},
    {"struct<a: int64, b: utf8 not null>", "struct<a: int64, b: utf8 not null>", "+s"},
    {"struct<\"a: \\\"x\\\\\": int64>", "struct<\"a: \\\"x\\\\\": int64>", "+s"},
    {"struct<größe: int8>", "struct<größe: int8>", "+s"},
    {"struct<two words: list<struct<x: int8>>>",
     "struct<two words: list<struct<x: int8>>>", "+s"},
    {"map<utf8, list<int64>>", "map<utf8, list<int64>>", "+m"},
    {"map<string, int64 not null, keys_sorted>", "map<utf8, int64 not null, keys_sorted>",
     "+m"},
    {"sparse_union<a: int64, b: utf8>", "sparse_union<a: int64=0, b: utf8=1>", "+us:0,1"},
    {"dense_union<a: int64=5, b: utf8=127>", "dense_union<a: int64=5, b: utf8=127>",
     "+ud:5,127"},
    {"dictionary<int32, utf8>", "dictionary<int32, utf8>", "i"},
    {"dictionary<values=string, indices=uint8, ordered=1>",
     "dictionary<uint8, utf8, ordered>", "C"},
    {"dictionary<int8, list<dictionary<int8, utf8>>>",
     "dictionary<int8, list<dictionary<int8, utf8>>>", "c"},
    {"run_end_encoded<run_ends: int32, values: string>", "run_end_encoded<int32, utf8>",
     "+r"},
};

static void parses_and_prints_every_type(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    struct ArrowSchema schema = {0}, again = {0};
    weir_error err = {0};
    char text[256];
    if (weir_type_parse(good[i].text, &schema, &err) != WEIR_OK)
      fail_msg("%s", err.message);
    assert_string_equal(schema.format, good[i].format);
    assert_string_equal(schema.name, "");
    assert_true(schema.flags & ARROW_FLAG_NULLABLE);
    weir_type_format(&schema, text, sizeof text);
    assert_string_equal(text, good[i].canonical);
    assert_int_equal(weir_type_parse(text, &again, &err), WEIR_OK);
    weir_type_format(&again, text, sizeof text);
    assert_string_equal(text, good[i].canonical);
    schema.release(&schema);
    again.release(&again);
  }
}

static const struct {
  const char *text, *message; /* a part of the message */
} bad[] = {
    {"int644", "the nearest is 'int64'"},
    {"list<strng>", "'strng' is not a type; the nearest is 'string'"},
    {"Int64", "the nearest is 'int64'"},
    {"zzzzzzzzzz", "types are written as in int64"},
    {"", "expected a type at its end"},
    {"list<int32", "expected '>' at its end"},
    {"list<int32>>", "expected nothing more at character 12"},
    {"list", "as in list<int32>"},
    {"timestamp", "as in timestamp[us] or timestamp[us, UTC]"},
    {"timestamp[us", "the closing bracket"},
    {"timestamp[us, ]", "a time zone"},
    {"timestamp[day]", "a unit of s, ms, us or ns"},
    {"time32[us]", "a unit of s or ms"},
    {"time64[s]", "a unit of us or ns"},
    {"date32[ms]", "the unit day"},
    {"decimal128", "as in decimal128(38, 10)"},
    {"decimal128(39, 1)", "a number of digits from 1 to 38"},
    {"decimal128(0, 1)", "a number of digits from 1 to 38"},
    {"decimal32(10, 1)", "from 1 to 9"},
    {"decimal128(38, 99)", "a scale"},
    {"fixed_size_binary(0)", "a width from 1"},
    {"fixed_size_binary(99999999999999999999)", "a width from 1"},
    {"fixed_size_list<int8>", "the list size"},
    {"struct<int64>", "a field, as in a: int64"},
    {"struct<a: int64,>", "a field"},
    {"struct<a: int64 not>", "'null' behind 'not'"},
    {"struct<\"a: int64>", "a closing quote"},
    {"dictionary<utf8, utf8>", "an integer type for the indices"},
    {"dictionary<int8, dictionary<int8, utf8>>", "values that are not a dictionary"},
    {"run_end_encoded<int8, utf8>", "run ends of int16, int32 or int64"},
    {"sparse_union<a: int8=1, b: int8=1>", "distinct type ids"},
    {"sparse_union<a: int8=128>", "a type id from 0 to 127"},
    {"map<utf8>", "',' and the values' type"},
    {"\xff\xfe", "UTF-8"},
};

static void refuses_with_a_hint(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    struct ArrowSchema schema = {0};
    weir_error err = {0};
    assert_int_equal(weir_type_parse(bad[i].text, &schema, &err), WEIR_E_INVALID_CONFIG);
    if (strstr(err.message, bad[i].message) == NULL)
      fail_msg("'%s' is not in: %s", bad[i].message, err.message);
    assert_null(schema.release);
  }
}

static void refuses_endless_nesting(void **state) {
  (void)state;
  struct ArrowSchema schema = {0};
  weir_error err = {0};
  const size_t levels = 20000;
  char *text = malloc(levels * 5 + 1);
  for (size_t i = 0; i < levels; i++) memcpy(text + 5 * i, "list<", 5);
  text[5 * levels] = '\0';
  assert_int_equal(weir_type_parse(text, &schema, &err), WEIR_E_INVALID_CONFIG);
  assert_non_null(strstr(err.message, "nested deeper"));
  free(text);
}

/* As deep as a column of a schema may be, in lists (one level each) and maps (two). */
static void takes_what_a_schema_takes(void **state) {
  (void)state;
  static const struct {
    const char *open, *close;
    int most;
  } kinds[] = {{"list<", ">", 63}, {"map<utf8, ", ">", 31}, {"struct<a: ", ">", 63}};
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
    for (int more = 0; more < 2; more++) {
      char text[1200] = "", again[1200];
      const char *name = "a", *type = text;
      weir_schema *schema = NULL;
      weir_error err = {0};
      int levels = kinds[k].most + more;
      for (int i = 0; i < levels; i++) strcat(text, kinds[k].open);
      strcat(text, "int8");
      for (int i = 0; i < levels; i++) strcat(text, kinds[k].close);
      weir_status status = weir_schema_from_types(&name, &type, 1, &schema, &err);
      if (more) {
        assert_int_equal(status, WEIR_E_INVALID_CONFIG);
        assert_non_null(strstr(err.message, "nested deeper than 64 levels"));
        continue;
      }
      if (status != WEIR_OK) fail_msg("%s", err.message);
      weir_type_format(weir_schema_arrow(schema)->children[0], again, sizeof again);
      assert_string_equal(again, text);
      weir_schema_unref(schema);
    }
  }
}

static void cuts_text_at_the_buffer(void **state) {
  (void)state;
  struct ArrowSchema schema = {0};
  weir_error err = {0};
  char text[32];
  assert_int_equal(weir_type_parse("struct<abc: int64, b: utf8>", &schema, &err),
                   WEIR_OK);
  for (size_t size = 1; size < sizeof text; size++) {
    memset(text, 'x', sizeof text);
    weir_type_format(&schema, text, size);
    assert_true(strlen(text) < size);
    assert_memory_equal(text, "struct<abc: int64, b: utf8>", strlen(text));
  }
  weir_type_format(&schema, NULL, 0);
  schema.release(&schema);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(parses_and_prints_every_type),
      cmocka_unit_test(refuses_with_a_hint),
      cmocka_unit_test(refuses_endless_nesting),
      cmocka_unit_test(takes_what_a_schema_takes),
      cmocka_unit_test(cuts_text_at_the_buffer),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
