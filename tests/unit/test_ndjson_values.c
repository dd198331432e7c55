/* SPDX-License-Identifier: Apache-2.0 */
/* What each type takes from JSON, what it refuses, and what it is written as. Every value goes both
 * ways of the decoder, the fast one and yyjson's. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/ndjson.h>

#include <cmocka.h>

#include "format/ndjson.h"
#include "support/rows.h"

/* Decodes {"v": value} for one column; the text that the encoder gives back, or the error's. */
static void both_ways(const char *type, const char *value, char *out, size_t room) {
  char spec[200], results[2][1100];
  snprintf(spec, sizeof(spec), "v: %s", type);
  for (int slow = 0; slow < 2; slow++) {
    weir_schema *schema = rows_schema(spec);
    weir_ndjson_decoder *decoder = NULL;
    weir_batch *batch = NULL;
    weir_error err = {0};
    size_t used = 0, n = strlen(value) + 100;
    char *line = calloc(1, n); /* long enough to be decoded in place, padding included */
    assert_non_null(line);
    snprintf(line, n, "{\"v\": %s}\n", value);
    size_t size = strlen(line);
    memset(line + size, ' ', n - size);
    line[n - 1] = '\n';
    assert_int_equal(weir_ndjson_decoder_new(schema, NULL, &decoder, &err), WEIR_OK);
    ndjson_decoder_force_slow(decoder, slow);
    if (weir_ndjson_decoder_feed(decoder, line, n, 0, &used, &batch, &err) == WEIR_OK) {
      assert_int_equal(used, n);
      assert_int_equal(weir_ndjson_decoder_flush(decoder, &batch, &err), WEIR_OK);
      char *text = rows_text(batch);
      text[strlen(text) - 2] = 0; /* "}\n" */
      snprintf(results[slow], sizeof(results[slow]), "%s", text + strlen("{\"v\":"));
      free(text);
      weir_batch_unref(batch);
    } else {
      assert_int_equal(err.code, WEIR_E_BAD_DATA);
      assert_int_equal(err.flags, WEIR_ERR_BAD_DATA);
      snprintf(results[slow], sizeof(results[slow]), "error: %s", err.message);
    }
    weir_ndjson_decoder_free(decoder);
    weir_schema_unref(schema);
    free(line);
  }
  assert_string_equal(results[0], results[1]);
  snprintf(out, room, "%s", results[0]);
}

static void gives(const char *type, const char *value, const char *want) {
  char got[1100];
  both_ways(type, value, got, sizeof(got));
  if (strcmp(got, want) != 0) fail_msg("%s of %s: %s, not %s", type, value, got, want);
}

static void same(const char *type, const char *value) {
  gives(type, value, value);
}

static void refuses(const char *type, const char *value, const char *why) {
  char got[1100];
  both_ways(type, value, got, sizeof(got));
  if (strncmp(got, "error: ", 7) != 0 || strstr(got, why) == NULL) {
    fail_msg("%s of %s: %s, not an error with '%s'", type, value, got, why);
  }
}

static void test_integers(void **state) {
  (void)state;
  static const struct {
    const char *type, *low, *high, *below, *above;
  } ranges[] = {
      {"int8", "-128", "127", "-129", "128"},
      {"int16", "-32768", "32767", "-32769", "32768"},
      {"int32", "-2147483648", "2147483647", "-2147483649", "2147483648"},
      {"int64", "-9223372036854775808", "9223372036854775807", "-9223372036854775809",
       "9223372036854775808"},
      {"uint8", "0", "255", "-1", "256"},
      {"uint16", "0", "65535", "-1", "65536"},
      {"uint32", "0", "4294967295", "-1", "4294967296"},
      {"uint64", "0", "18446744073709551615", "-1", "18446744073709551616"},
  };
  for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
    const char *type = ranges[i].type;
    same(type, ranges[i].low);
    same(type, ranges[i].high);
    same(type, "0");
    same(type, "7");
    same(type, "null");
    gives(type, "-0", "0");
    refuses(type, ranges[i].below, "out of range");
    refuses(type, ranges[i].above, "out of range");
    refuses(type, "99999999999999999999999999999999", "out of range");
    refuses(type, "1.0", "expected a whole number");
    refuses(type, "1e2", "expected a whole number");
    refuses(type, "\"1\"", "expected a whole number");
    refuses(type, "true", "expected a whole number");
    refuses(type, "[1]", "expected a whole number");
    refuses(type, "{}", "expected a whole number");
    refuses(type, "01", "malformed JSON");
    refuses(type, "-", "malformed JSON");
    refuses(type, "+1", "malformed JSON");
    refuses(type, "1x", "malformed JSON");
  }
  same("int64", "9007199254740993"); /* 2^53 + 1, lost by any way through double */
  same("uint64", "9223372036854775808");
}

static void test_floats(void **state) {
  (void)state;
  same("float64", "0.0");
  same("float64", "-0.0");
  gives("float64", "-0", "-0.0");
  gives("float64", "0e5", "0.0");
  gives("float64", "-0e99999999999999999999", "-0.0");
  same("float64", "0.1");
  gives("float64", "5", "5.0");
  same("float64", "1.7976931348623157e308");
  same("float64", "5e-324");
  gives("float64", "1e-400", "0.0");
  gives("float64", "9007199254740993", "9007199254740992.0");
  gives("float64", "12345678901234567890123", "1.2345678901234568e22");
  gives("float64", "0.3000000000000000444089209850062616169452667236328125",
        "0.30000000000000004");
  same("float64", "\"NaN\"");
  same("float64", "\"Infinity\"");
  same("float64", "\"-Infinity\"");
  refuses("float64", "1e400", "out of range");
  refuses("float64", "NaN", "malformed JSON");
  refuses("float64", "\"1.5\"", "expected a number");
  refuses("float64", "1.", "malformed JSON");
  refuses("float64", ".5", "malformed JSON");
  refuses("float64", "1e", "malformed JSON");
  refuses("float64", "00.5", "malformed JSON");
  same("float32", "0.1");
  same("float32", "3.4028235e38");
  same("float32", "1e-45");
  same("float32", "\"NaN\"");
  refuses("float32", "3.5e38", "out of range");
  /* halfway between two floats as a double, just above it as a text */
  gives("float32", "1.00000005960464477539062500000001", "1.0000001");
  gives("float32", "1.000000059604644775390625", "1.0");
  same("float16", "0.099975586");
  gives("float16", "65504", "65504.0");
  refuses("float16", "65520", "out of range");
  gives("float16", "65519.99999999999999999999", "65504.0");
  /* halfway between two of them, and as doubles also what is just beside it */
  gives("float16", "1.00048828125", "1.0");
  gives("float16", "1.00048828125000000000000000001", "1.0009766");
  gives("float16", "-1.00048828125000000000000000001", "-1.0009766");
  gives("float16", "1.00146484375", "1.0019531");
  gives("float16", "1.00146484374999999999999999999", "1.0009766");
  gives("float16", "-1.00146484374999999999999999999", "-1.0009766");
  same("float16", "0.0");
  same("float16", "-0.0");
  gives("float16", "1e-9", "0.0");
  gives("float16", "5.960464477539063e-8", "5.9604645e-8");
  same("float16", "\"-Infinity\"");
}

static void test_decimals(void **state) {
  (void)state;
  same("decimal128(38, 10)", "1234567890123456789012345678.0123456789");
  same("decimal128(38, 10)", "-9999999999999999999999999999.9999999999");
  gives("decimal128(38, 10)", "\"-0.5\"", "-0.5000000000");
  gives("decimal128(38, 10)", "1e3", "1000.0000000000");
  gives("decimal128(38, 10)", "1500e-3", "1.5000000000");
  gives("decimal128(38, 10)", "0.10000000000000000000", "0.1000000000");
  gives("decimal128(38, 10)", "0e999999999999999999999", "0.0000000000");
  refuses("decimal128(38, 10)", "0.00000000001", "digits finer");
  refuses("decimal128(38, 10)", "1e28", "out of range");
  refuses("decimal128(38, 10)", "1e999999999999999999999", "out of range");
  refuses("decimal128(38, 10)", "\"1,5\"", "has a text that spells no such value");
  refuses("decimal128(38, 10)", "\"\"", "has a text that spells no such value");
  refuses("decimal128(38, 10)", "true", "expected a number");
  same("decimal128(5, 2)", "999.99");
  gives("decimal128(5, 0)", "12345", "12345");
  refuses("decimal128(5, 2)", "1000", "out of range");
  same("decimal256(76, 38)",
       "-99999999999999999999999999999999999999.99999999999999999999999999999999999999");
}

static void test_strings(void **state) {
  (void)state;
  same("utf8", "\"\"");
  same("utf8", "\"plain\"");
  same("large_utf8", "\"a string longer than sixteen bytes, to cross a load\"");
  same("utf8", "\"\\\"\\\\\\b\\f\\n\\r\\t\\u0000\\u001f\"");
  gives("utf8", "\"\\/\"", "\"/\"");
  gives("utf8", "\"\\u0041\\u00e9\\u20AC\\ud83d\\ude00\"",
        "\"A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"");
  same("utf8", "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80 and on\"");
  gives("utf8", "\"\x7f\"", "\"\x7f\"");
  gives("utf8", "5", "\"5\"");
  gives("utf8", "-1.50e+400", "\"-1.50e+400\"");
  gives("large_utf8", "12345678901234567890123", "\"12345678901234567890123\"");
  gives("utf8", "true", "\"true\"");
  gives("utf8", "false", "\"false\"");
  refuses("utf8", "01", "malformed JSON");
  refuses("utf8", "[5]", "expected a string");
  refuses("utf8", "\"\\ud83d\"", "malformed JSON");
  refuses("utf8", "\"\\ude00\"", "malformed JSON");
  refuses("utf8", "\"\\x\"", "malformed JSON");
  refuses("utf8", "\"\\u12g4\"", "malformed JSON");
  refuses("utf8", "\"\x01\"", "malformed JSON");
  refuses("utf8", "\"\xff\"", "UTF-8");
  refuses("utf8", "\"\xc0\xaf\"", "UTF-8");
  refuses("utf8", "\"\xed\xa0\x80\"", "UTF-8");
  refuses("utf8", "\"\xf4\x90\x80\x80\"", "UTF-8");
  refuses("utf8", "\"\xe2\x82\"", "UTF-8");
  refuses("utf8", "\"open", "malformed JSON");
}

static void test_binary(void **state) {
  (void)state;
  same("binary", "\"\"");
  same("binary", "\"AA==\"");
  same("binary", "\"AAE=\"");
  same("binary", "\"AAEC\"");
  same("large_binary", "\"/+8AAQID\"");
  refuses("binary", "\"AA\"", "text that spells no such value");
  refuses("binary", "\"AB==\"",
          "text that spells no such value"); /* bits that no byte takes */
  refuses("binary", "\"A===\"", "text that spells no such value");
  refuses("binary", "\"AA=A\"", "text that spells no such value");
  refuses("binary", "\"_-8A\"", "text that spells no such value");
  same("fixed_size_binary[4]", "\"AAECAw==\"");
  refuses("fixed_size_binary[4]", "\"AAEC\"", "another number of bytes");
  refuses("fixed_size_binary[4]", "\"AAECAwQ=\"", "another number of bytes");
}

static void test_dates_and_times(void **state) {
  (void)state;
  same("date32", "\"1970-01-01\"");
  same("date32", "\"2000-02-29\"");
  same("date32", "\"0001-01-01\"");
  same("date32", "\"+12345-06-07\"");
  same("date32", "\"-0044-03-15\"");
  gives("date32", "-1", "\"1969-12-31\"");
  refuses("date32", "\"1900-02-29\"", "text that spells no such value");
  refuses("date32", "\"2024-13-01\"", "text that spells no such value");
  refuses("date32", "\"2024-1-1\"", "text that spells no such value");
  refuses("date32", "\"2024-01-01T00:00:00\"", "text that spells no such value");
  refuses("date32", "\"+999999999-01-01\"", "out of range");
  same("date64", "\"2024-02-29\"");
  refuses("date64", "1", "finer");
  same("time32[s]", "\"23:59:59\"");
  gives("time32[s]", "\"23:59\"", "\"23:59:00\"");
  gives("time32[ms]", "\"00:00:00.5\"", "\"00:00:00.500\"");
  same("time64[us]", "\"12:34:56.000001\"");
  same("time64[ns]", "\"12:34:56.000000001\"");
  refuses("time64[us]", "\"12:34:56.0000001\"", "finer");
  refuses("time32[s]", "\"24:00:00\"", "text that spells no such value");
  refuses("time32[s]", "\"23:60:00\"", "text that spells no such value");
  refuses("time32[s]", "\"23:59:60\"", "text that spells no such value");
  refuses("time32[s]", "86400", "out of range");
  refuses("time32[s]", "-1", "out of range");
  same("duration[ms]", "-1500");
}

static void test_timestamps(void **state) {
  (void)state;
  same("timestamp[s]", "\"1969-12-31T23:59:59\"");
  gives("timestamp[us]", "\"2024-02-29\"", "\"2024-02-29T00:00:00.000000\"");
  gives("timestamp[us]", "\"2024-02-29 01:02\"", "\"2024-02-29T01:02:00.000000\"");
  gives("timestamp[ms]", "\"1969-12-31T23:59:59.9\"", "\"1969-12-31T23:59:59.900\"");
  gives("timestamp[ms]", "\"2024-02-29T01:02:03.1000\"", "\"2024-02-29T01:02:03.100\"");
  gives("timestamp[us]", "1500000", "\"1970-01-01T00:00:01.500000\"");
  refuses("timestamp[ms]", "\"2024-02-29T01:02:03.0001\"", "finer");
  refuses("timestamp[us]", "\"2024-02-29T01:02:03Z\"", "has a zone");
  refuses("timestamp[us]", "\"2024-02-29T01\"", "text that spells no such value");
  refuses("timestamp[us]", "\"2024-02-29x01:02:03\"", "text that spells no such value");
  refuses("timestamp[us]", "\"\"", "text that spells no such value");
  same("timestamp[us, UTC]", "\"2024-02-29T01:02:03.000004Z\"");
  gives("timestamp[s, Europe/Berlin]", "\"2024-02-29T01:00:00+02:00\"",
        "\"2024-02-28T23:00:00Z\"");
  gives("timestamp[s, UTC]", "\"2024-02-28T22:30:00-0130\"", "\"2024-02-29T00:00:00Z\"");
  gives("timestamp[s, UTC]", "\"2024-02-28T22:30:00+01\"", "\"2024-02-28T21:30:00Z\"");
  refuses("timestamp[s, UTC]", "\"2024-02-29T01:02:03\"", "has no zone");
  refuses("timestamp[s, UTC]", "\"2024-02-29\"", "has no zone");
  refuses("timestamp[s, UTC]", "\"2024-02-29T01:02:03+2\"",
          "text that spells no such value");
  same("timestamp[ns]",
       "\"1677-09-21T00:12:43.145224192\""); /* the least and the greatest */
  same("timestamp[ns]", "\"2262-04-11T23:47:16.854775807\"");
  refuses("timestamp[ns]", "\"2262-04-11T23:47:16.854775808\"", "out of range");
  refuses("timestamp[ns]", "\"1677-09-21T00:12:43.145224191\"", "out of range");
}

static void test_bool_and_null(void **state) {
  (void)state;
  same("bool", "true");
  same("bool", "false");
  same("bool", "null");
  refuses("bool", "1", "expected true or false");
  refuses("bool", "\"true\"", "expected true or false");
  refuses("bool", "tru", "malformed JSON");
  refuses("bool", "nul", "malformed JSON");
  refuses("int64 not null", "null", "not nullable");
}

static void test_types_without_a_row(void **state) {
  (void)state;
  static const char *const specs[] = {"id: int64; x: dense_union<a: int8=0>",
                                      "id: int64; x: run_end_encoded<int32, utf8>",
                                      "id: int64; x: utf8_view"};
  for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
    weir_schema *schema = rows_schema(specs[i]);
    weir_ndjson_decoder *decoder = NULL;
    weir_error err = {0};
    assert_int_equal(weir_ndjson_decoder_new(schema, NULL, &decoder, &err),
                     WEIR_E_NOT_IMPLEMENTED);
    assert_non_null(strstr(err.message, "column 'x'"));
    assert_null(decoder);
    weir_schema_unref(schema);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_integers),
      cmocka_unit_test(test_floats),
      cmocka_unit_test(test_decimals),
      cmocka_unit_test(test_strings),
      cmocka_unit_test(test_binary),
      cmocka_unit_test(test_dates_and_times),
      cmocka_unit_test(test_timestamps),
      cmocka_unit_test(test_bool_and_null),
      cmocka_unit_test(test_types_without_a_row),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
