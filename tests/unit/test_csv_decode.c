/* SPDX-License-Identifier: Apache-2.0 */
/* Records, quotes, headers, blocks, batches and positions of the CSV decoder. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/csv.h>

#include <cmocka.h>

#include "base/base.h"
#include "format/csv.h"
#include "support/rows.h"

static const weir_csv_options plain = {.struct_size = sizeof(plain), .batch_rows = 2};
static const weir_csv_options bare = {
    .struct_size = sizeof(bare), .batch_rows = 2, .no_header = 1};

/* Way 0: as it is; 1: each record the slow way; 2: in chunks from the first byte on. */
static weir_csv_decoder *new_decoder(const char *spec, const weir_csv_options *options,
                                     int way) {
  weir_schema *schema = rows_schema(spec);
  weir_csv_decoder *decoder = NULL;
  weir_error err = {0};
  if (weir_csv_decoder_new(schema, options, &decoder, &err) != WEIR_OK) {
    fail_msg("%s", err.message);
  }
  csv_decoder_force_slow(decoder, way == 1);
  if (way == 2) csv_decoder_force_chunks(decoder);
  weir_schema_unref(schema);
  return decoder;
}

static void append_batch(base_buf *out, weir_batch *batch) {
  if (batch == NULL) return;
  char *text = rows_text(batch);
  assert_int_equal(base_buf_append_str(out, text, NULL), WEIR_OK);
  free(text);
  weir_batch_unref(batch);
}

/* Feeds a text in blocks of `block` bytes, what is left of one before the next, each block in memory
 * of its exact size. The rows as NDJSON, to free(), up to the first error; with `skip` on behind it,
 * each message in the place of its record. */
static char *decode_all(weir_csv_decoder *decoder, const char *text, size_t block,
                        int skip, weir_error *err) {
  base_buf rows = {0}, held = {0};
  size_t size = strlen(text), at = 0;
  weir_status status = WEIR_OK;
  weir_batch *batch = NULL;
  for (;;) {
    size_t more = size - at < block ? size - at : block, used = 0;
    assert_int_equal(base_buf_append(&held, text + at, more, NULL), WEIR_OK);
    at += more;
    uint8_t *exact = malloc(held.size + 1);
    assert_non_null(exact);
    if (held.size > 0) memcpy(exact, held.data, held.size);
    batch = NULL;
    status =
        weir_csv_decoder_feed(decoder, exact, held.size, at == size, &used, &batch, err);
    if (status == WEIR_E_BAD_DATA && skip) {
      weir_csv_decoder_skip(decoder, exact, held.size, at == size, &used);
      if (used > 0) {
        assert_int_equal(base_buf_printf(&rows, NULL, "%s\n", err->message), WEIR_OK);
      }
      status = WEIR_OK;
    }
    free(exact);
    if (status != WEIR_OK) break;
    append_batch(&rows, batch);
    if (used > 0) memmove(held.data, held.data + used, held.size - used);
    held.size -= used;
    if (batch == NULL && used == 0 && at == size) break;
  }
  if (status == WEIR_OK) {
    assert_int_equal(weir_csv_decoder_flush(decoder, &batch, err), WEIR_OK);
    append_batch(&rows, batch);
    assert_int_equal(held.size, 0);
    assert_int_equal(weir_csv_decoder_offset(decoder), size);
  }
  base_buf_done(&held);
  assert_int_equal(base_buf_append_byte(&rows, 0, NULL), WEIR_OK);
  return (char *)rows.data;
}

static void check_with(const weir_csv_options *options, const char *spec,
                       const char *text, const char *want, int skip) {
  size_t step = strlen(text) > 2000 ? 997 : 7;
  for (int way = 0; way < 3; way++) {
    for (size_t block = step > 7 ? step : 1; block < 12 * step;
         block += block < 8 ? 1 : step) {
      weir_error err = {0};
      weir_csv_decoder *decoder = new_decoder(spec, options, way);
      char *got = decode_all(decoder, text, block, skip, &err);
      if (strcmp(got, want) != 0) {
        fail_msg("blocks of %zu, way %d: %s%s, not %s", block, way, got, err.message,
                 want);
      }
      free(got);
      weir_csv_decoder_free(decoder);
    }
  }
}

static void check_rows(const char *spec, const char *text, const char *want) {
  check_with(&plain, spec, text, want, 0);
}

/* The error that ends reading, after the rows `before`. */
static void check_error(const weir_csv_options *options, const char *spec,
                        const char *text, weir_status code, const char *before,
                        const char *message) {
  for (int way = 0; way < 3; way++) {
    weir_error err = {0};
    weir_csv_decoder *decoder = new_decoder(spec, options, way);
    char *got = decode_all(decoder, text, 1000, 0, &err);
    assert_string_equal(err.message, message);
    assert_int_equal(err.code, code);
    assert_int_equal(err.flags, code == WEIR_E_BAD_DATA ? WEIR_ERR_BAD_DATA : 0);
    assert_string_equal(got, before);
    free(got);
    weir_csv_decoder_free(decoder);
  }
}

#define SPEC "id: int64; name: utf8; x: float64"
#define AB "a: utf8; b: utf8"

static void test_rfc_4180(void **state) {
  (void)state;
  /* 2.1, 2.2: CR LF, with and without the last one; LF alone is taken too */
  const char *want = "{\"a\":\"aaa\",\"b\":\"bbb\"}\n{\"a\":\"zzz\",\"b\":\"yyy\"}\n";
  check_with(&bare, AB, "aaa,bbb\r\nzzz,yyy\r\n", want, 0);
  check_with(&bare, AB, "aaa,bbb\r\nzzz,yyy", want, 0);
  check_with(&bare, AB, "aaa,bbb\nzzz,yyy\n", want, 0);
  check_with(&bare, AB,
             "\xef\xbb\xbf"
             "aaa,bbb\n\r\n\nzzz,yyy\n\n",
             want, 0);
  /* 2.3: the header */
  check_rows(AB, "b,a\r\nbbb,aaa\r\nyyy,zzz\r\n", want);
  check_rows(AB,
             "\xef\xbb\xbf\r\n\"b\",skipped,\"a\"\r\nbbb,\"x,\"\"\n\",aaa\r\nyyy,,zzz",
             want);
  /* 2.4: blanks are part of a field, and the last field ends at the line */
  check_with(&bare, AB, " a , b \n,\n",
             "{\"a\":\" a \",\"b\":\" b \"}\n{\"a\":null,\"b\":null}\n", 0);
  /* 2.5, 2.6, 2.7: quotes */
  check_with(
      &bare, AB, "\"aaa\",\"b \r\nbb\"\r\n\"z\"\"zz\",\"\"\"y,y\"\"\"\r\n",
      "{\"a\":\"aaa\",\"b\":\"b \\r\\nbb\"}\n{\"a\":\"z\\\"zz\",\"b\":\"\\\"y,y\\\"\"}\n",
      0);
  check_with(&bare, AB, "\"\",\"\"\"\"\n", "{\"a\":\"\",\"b\":\"\\\"\"}\n", 0);
  check_with(&bare, AB, "", "", 0);
  check_rows(AB, "", "");
  check_rows(AB, "a,b", "");
  check_rows(AB, "\xef\xbb\xbf", "");
}

static void test_one_column(void **state) {
  (void)state;
  /* an empty line is a record there, but not a header */
  check_with(&bare, "a: utf8", "x\n\n\"\"\n\r\n",
             "{\"a\":\"x\"}\n{\"a\":null}\n{\"a\":\"\"}\n{\"a\":null}\n", 0);
  check_rows("a: utf8", "\n\na\n\nx\n", "{\"a\":null}\n{\"a\":\"x\"}\n");
  check_rows("a: utf8", "a,b\n\nx,y\n", "{\"a\":\"x\"}\n");
}

static void test_nulls(void **state) {
  (void)state;
  weir_csv_options na = plain;
  na.null_text = "NA";
  check_rows("s: utf8; i: int32; x: binary; t: bool",
             "s,i,x,t\n,,,\n\"\",\"\",\"\",\"\"\n",
             "{\"s\":null,\"i\":null,\"x\":null,\"t\":null}\n"
             "{\"s\":\"\",\"i\":null,\"x\":\"\",\"t\":null}\n");
  check_with(&na, "s: utf8; i: int32", "s,i\nNA,NA\n\"NA\",\"NA\"\n,1\nNAN,2\nN,3\n",
             "{\"s\":null,\"i\":null}\n{\"s\":\"NA\",\"i\":null}\n{\"s\":\"\",\"i\":1}\n"
             "{\"s\":\"NAN\",\"i\":2}\n{\"s\":\"N\",\"i\":3}\n",
             0);
  check_error(&na, "i: int32", "i\n\n", WEIR_E_BAD_DATA, "",
              "line 2, byte 2: column 'i' (int32) has a text that spells no such value; "
              "expected a "
              "whole number; near: ");
  check_error(&plain, "i: int32 not null; s: utf8 not null", "i,s\n1,x\n2,\n",
              WEIR_E_BAD_DATA, "{\"i\":1,\"s\":\"x\"}\n",
              "line 3, byte 10: column 's' (utf8) is null, but not nullable; expected "
              "valid UTF-8; near: 2,");
}

static void test_values(void **state) {
  (void)state;
  check_rows(
      "i: int64; u: uint64; d: decimal128(20, 4); f: float64",
      "i,u,d,f\n-9223372036854775808,18446744073709551615,-1234567890123456.7891,1e-7\n"
      "0007, +5 ,\"+.5\",5.\n9007199254740993,9007199254740993,00.10,-.25e1\n"
      "1,2,3,-INF\n1,2,3,nan\n1,2,3,+Infinity\n",
      "{\"i\":-9223372036854775808,\"u\":18446744073709551615,\"d\":-1234567890123456."
      "7891,\"f\":1e-7}\n"
      "{\"i\":7,\"u\":5,\"d\":0.5000,\"f\":5.0}\n"
      "{\"i\":9007199254740993,\"u\":9007199254740993,\"d\":0.1000,\"f\":-2.5}\n"
      "{\"i\":1,\"u\":2,\"d\":3.0000,\"f\":\"-Infinity\"}\n"
      "{\"i\":1,\"u\":2,\"d\":3.0000,\"f\":\"NaN\"}\n"
      "{\"i\":1,\"u\":2,\"d\":3.0000,\"f\":\"Infinity\"}\n");
  check_rows("t: bool; d: date32; z: timestamp[us, UTC]; x: binary; n: duration[s]",
             "t,d,z,x,n\ntrue,2024-02-29,2024-02-29T01:02:03.5+01:00,AP8=,-5\n"
             "FALSE, 1969-12-31,2024-02-29 00:00:00Z,\"\",\n0,,,,\nTrue,,,,7\n",
             "{\"t\":true,\"d\":\"2024-02-29\",\"z\":\"2024-02-29T00:02:03.500000Z\","
             "\"x\":\"AP8=\",\"n\":-5}\n"
             "{\"t\":false,\"d\":\"1969-12-31\",\"z\":\"2024-02-29T00:00:00.000000Z\","
             "\"x\":\"\",\"n\":null}\n"
             "{\"t\":false,\"d\":null,\"z\":null,\"x\":null,\"n\":null}\n"
             "{\"t\":true,\"d\":null,\"z\":null,\"x\":null,\"n\":7}\n");
}

static void test_bad_values(void **state) {
  (void)state;
  static const char *const cases[][3] = {
      {"int8", "128", "is out of range; expected a whole number"},
      {"uint8", "-1", "is out of range; expected a whole number"},
      {"int32", "1.5", "has a text that spells no such value; expected a whole number"},
      {"int32", "- 1", "has a text that spells no such value; expected a whole number"},
      {"int64", "9223372036854775808", "is out of range; expected a whole number"},
      {"float64", ".", "has a text that spells no such value; expected a number"},
      {"float64", "1e", "has a text that spells no such value; expected a number"},
      {"float64", "1e999", "is out of range; expected a number"},
      {"float64", "+-1", "has a text that spells no such value; expected a number"},
      {"decimal128(4, 2)", "1.005",
       "has digits finer than the type holds; expected a number"},
      {"bool", "yes", "has a text that spells no such value; expected true or false"},
      {"date32", "19000",
       "has a text that spells no such value; expected a date as 2024-02-29"},
      {"utf8", "\xff", "has a text that spells no such value; expected valid UTF-8"},
      {"binary", "x", "has a text that spells no such value; expected base64"},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    for (int quoted = 0; quoted < 2; quoted++) {
      char spec[80], text[200], want[400];
      const char *q = quoted ? "\"" : "";
      snprintf(spec, sizeof(spec), "a: utf8; v: %s", cases[i][0]);
      snprintf(text, sizeof(text), "a,v\n,%s%s%s\nx,\n", q, cases[i][1], q);
      snprintf(
          want, sizeof(want),
          "line 2, byte 5: column 'v' (%s) %s; near: ,%s%s%s\n{\"a\":\"x\",\"v\":null}\n",
          cases[i][0], cases[i][2], q, cases[i][1][0] == '\xff' ? "?" : cases[i][1], q);
      check_with(&plain, spec, text, want, 1);
    }
  }
}

static void test_bad_records(void **state) {
  (void)state;
  check_with(
      &plain, SPEC,
      "id,name,x\n1,a,2\n2,a\n3,b,1,2\n4,a\"b,1\n5,\"a\"b,1\n6,a\rb,1\n7,\"x\ny\",z\n8,b,"
      "3\n",
      "{\"id\":1,\"name\":\"a\",\"x\":2.0}\n"
      "line 3, byte 16: 2 fields, expected 3 as in the header; near: 2,a\n"
      "line 4, byte 20: 4 fields, expected 3 as in the header; near: 3,b,1,2\n"
      "line 5, byte 31: field 2, column 'name': a quote within a field that does not "
      "begin with one; such a field goes into quotes; near: 4,a\"b,1\n"
      "line 6, byte 41: field 2, column 'name': text between a closing quote and the "
      "next delimiter; a quote within quotes is doubled; near: 5,\"a\"b,1\n"
      "line 7, byte 48: field 2, column 'name': a carriage return that no line feed "
      "follows; lines end with LF or CR LF; near: 6,a?b,1\n"
      "line 9, byte 61: column 'x' (float64) has a text that spells no such value; "
      "expected a "
      "number; near: 7,\"x?y\",z\n"
      "{\"id\":8,\"name\":\"b\",\"x\":3.0}\n",
      1);
  /* a CR more than the line end has, and one where the file ends: no part of a line end */
  check_with(
      &plain, SPEC, "id,name,x\n1,a,2\r\r\n2,b,3\n3,c\r",
      "line 2, byte 15: field 3, column 'x': a carriage return that no line feed "
      "follows; lines end with LF or CR LF; near: 1,a,2?\n"
      "{\"id\":2,\"name\":\"b\",\"x\":3.0}\n"
      "line 4, byte 27: field 2, column 'name': a carriage return that no line feed "
      "follows; lines end with LF or CR LF; near: 3,c?\n",
      1);
  /* a quote that is never closed costs its line alone */
  check_with(&plain, SPEC, "id,name,x\n1,a,2\n2,\"a,3\n3,b,4\n",
             "{\"id\":1,\"name\":\"a\",\"x\":2.0}\n"
             "line 3, byte 18: a quote that is never closed; near: 2,\"a,3?3,b,4?\n"
             "{\"id\":3,\"name\":\"b\",\"x\":4.0}\n",
             1);
  weir_csv_options narrow = plain;
  narrow.max_line = 10;
  check_error(
      &narrow, AB, "a,b\n12345,7890\n12345,78901\n", WEIR_E_BAD_DATA,
      "{\"a\":\"12345\",\"b\":\"7890\"}\n",
      "line 3, byte 15: a record longer than 10 bytes; is a quote missing, or is this "
      "no CSV?");
  check_error(&bare, AB, "a,b\nc\n", WEIR_E_BAD_DATA, "{\"a\":\"a\",\"b\":\"b\"}\n",
              "line 2, byte 4: 1 field, expected 2 as the schema has columns; near: c");
}

static void test_bad_headers(void **state) {
  (void)state;
  check_error(&plain, AB, "a;b\n1;2\n", WEIR_E_SCHEMA, "",
              "the header lacks column 'a': a;b; is the delimiter right, or is there no "
              "header?");
  check_error(&plain, AB, "a,b,a\n1,2,3\n", WEIR_E_SCHEMA, "",
              "the header names column 'a' twice, as fields 1 and 3");
  weir_csv_options known = plain;
  known.refuse_unknown = 1;
  check_error(&known, AB, "b,c d,a\n1,2,3\n", WEIR_E_SCHEMA, "",
              "line 1: the header names column 'c d', field 2, which the schema lacks");
  check_error(
      &plain, AB, "a,\"b\n", WEIR_E_SCHEMA, "",
      "header: line 1, byte 2: field 2: a quote that is never closed; near: a,\"b?");
}

static void test_options(void **state) {
  (void)state;
  weir_csv_options odd = plain;
  odd.delimiter = "|";
  odd.quote = "'";
  odd.null_text = "\\N";
  check_with(
      &odd, SPEC, "x|id|name\n.5|1|'it''s|'\n\\N|\\N|\\N\n",
      "{\"id\":1,\"name\":\"it's|\",\"x\":0.5}\n{\"id\":null,\"name\":null,\"x\":null}\n",
      0);
  odd = plain;
  odd.delimiter = "\t";
  odd.quote = "";
  check_with(&odd, AB, "a\tb\n\"x\"\t\"\n", "{\"a\":\"\\\"x\\\"\",\"b\":\"\\\"\"}\n", 0);
  static const struct {
    const char *delimiter, *quote, *null;
    const char *message;
  } bad[] = {
      {"::", NULL, NULL,
       "CSV delimiter '::': expected one ASCII character that is no letter, "
       "digit, sign, point or line end"},
      {"\xc2\xa6", NULL, NULL,
       "CSV delimiter '\xc2\xa6': expected one ASCII character that is no "
       "letter, digit, sign, point or line end"},
      {"", NULL, NULL,
       "CSV delimiter '': expected one ASCII character that is no letter, "
       "digit, sign, point or line end"},
      {"e", NULL, NULL,
       "CSV delimiter 'e': expected one ASCII character that is no letter, "
       "digit, sign, point or line end"},
      {NULL, "\n", NULL,
       "CSV quote '\n': expected one ASCII character that is no letter, "
       "digit, sign, point or line end"},
      {"|", "|", NULL, "CSV: quote and delimiter are both '|'"},
      {NULL, NULL, "a,b",
       "CSV null 'a,b': expected a text of up to 32 bytes without "
       "delimiter, quote and line end"},
  };
  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
    weir_error err = {0};
    weir_csv_options options = {.struct_size = sizeof(options),
                                .delimiter = bad[i].delimiter,
                                .quote = bad[i].quote,
                                .null_text = bad[i].null};
    assert_int_equal(weir_csv_options_check(&options, &err), WEIR_E_INVALID_CONFIG);
    assert_string_equal(err.message, bad[i].message);
  }
}

/* What stands at the edge of two blocks, and at the edge of what the fast way may read: CR LF within
 * and without quotes, doubled quotes, characters of several bytes, at every offset from the edge. */
static void test_every_offset_of_an_edge(void **state) {
  (void)state;
  static const char inner[] = "\"x\r\ny\"\",\"\"\xf0\x9f\x98\x80\r\n\"\"\xe2\x82\xac\"";
  static const char json[] = "x\\r\\ny\\\",\\\"\xf0\x9f\x98\x80\\r\\n\\\"\xe2\x82\xac";
  enum { EDGE = 96 };
  char text[400], want[500], pad[EDGE + 1];
  for (size_t fill = 0; fill < EDGE; fill++) {
    memset(pad, 'p', fill);
    pad[fill] = 0;
    snprintf(text, sizeof(text), "a,b\r\n%s,%s\r\n%s,\"%s\"\r\nlast,\xc3\xa9\r\n", pad,
             inner, inner, pad);
    snprintf(want, sizeof(want),
             "{\"a\":%s%s%s,\"b\":\"%s\"}\n{\"a\":\"%s\",\"b\":\"%s\"}\n{\"a\":\"last\","
             "\"b\":\"\xc3\xa9\"}\n",
             fill ? "\"" : "", fill ? pad : "null", fill ? "\"" : "", json, json, pad);
    for (int way = 0; way < 3; way++) {
      for (size_t block = EDGE - 2; block < EDGE + 40; block++) {
        weir_error err = {0};
        weir_csv_decoder *decoder = new_decoder(AB, &plain, way);
        char *got = decode_all(decoder, text, block, 0, &err);
        if (strcmp(got, want) != 0) {
          fail_msg("%zu before, blocks of %zu, way %d: %s%s, not %s", fill, block, way,
                   got, err.message, want);
        }
        assert_int_equal(weir_csv_decoder_line(decoder), 8);
        free(got);
        weir_csv_decoder_free(decoder);
      }
    }
  }
}

static void test_long_fields(void **state) {
  (void)state;
  size_t n = 5000;
  char *text = calloc(1, 3 * n), *want = calloc(1, 3 * n), *p = text, *w = want;
  assert_non_null(text);
  assert_non_null(want);
  p += sprintf(p, "a,b\n");
  w += sprintf(w, "{\"a\":\"");
  for (size_t i = 0; i < n; i++) *p++ = *w++ = 'l';
  p += sprintf(p, ",\"");
  w += sprintf(w, "\",\"b\":\"");
  for (size_t i = 0; i < n; i++) *p++ = *w++ = i % 50 == 49 ? ',' : 'q';
  sprintf(p, "\"\n");
  sprintf(w, "\"}\n");
  check_rows(AB, text, want);
  free(text);
  free(want);
}

/* From the end of each batch a decoder that knows the header goes on. */
static void test_positions(void **state) {
  (void)state;
  const char *text = "b,a\r\n\"1\r\n\",x\r\n2,y\r\n\r\n3,z\n4,w\n5,v";
  size_t size = strlen(text), used = 0, header = 0;
  weir_error err = {0};
  weir_batch *batch = NULL;
  weir_csv_decoder *decoder = new_decoder(AB, &plain, 0);
  assert_int_equal(weir_csv_decoder_feed(decoder, text, size, 1, &used, &batch, &err),
                   WEIR_OK);
  assert_non_null(batch);
  weir_batch_unref(batch);
  uint64_t offset = weir_csv_decoder_offset(decoder),
           line = weir_csv_decoder_line(decoder);
  assert_int_equal(offset, used);
  assert_int_equal(line, 4);
  weir_csv_decoder_free(decoder);

  decoder = new_decoder(AB, &plain, 0);
  assert_int_equal(weir_csv_decoder_header(decoder, text, 4, 0, &header, &err), WEIR_OK);
  assert_int_equal(header, 0);
  assert_int_equal(weir_csv_decoder_header(decoder, text, size, 0, &header, &err),
                   WEIR_OK);
  assert_int_equal(header, 5);
  weir_csv_decoder_reset(decoder, offset, line);
  base_buf rows = {0};
  while (offset < size) {
    assert_int_equal(weir_csv_decoder_feed(decoder, text + offset, size - (size_t)offset,
                                           1, &used, &batch, &err),
                     WEIR_OK);
    offset += used;
    append_batch(&rows, batch);
  }
  assert_int_equal(weir_csv_decoder_flush(decoder, &batch, &err), WEIR_OK);
  append_batch(&rows, batch);
  assert_int_equal(base_buf_append_byte(&rows, 0, NULL), WEIR_OK);
  assert_string_equal((char *)rows.data,
                      "{\"a\":\"z\",\"b\":\"3\"}\n{\"a\":\"w\",\"b\":\"4\"}\n"
                      "{\"a\":\"v\",\"b\":\"5\"}\n");
  assert_int_equal(weir_csv_decoder_line(decoder), 7);
  base_buf_done(&rows);
  weir_csv_decoder_free(decoder);
}

static void test_refused_schemas(void **state) {
  (void)state;
  weir_error err = {0};
  weir_csv_decoder *decoder = NULL;
  weir_schema *schema = rows_schema("a: utf8; a: utf8");
  assert_int_equal(weir_csv_decoder_new(schema, &plain, &decoder, &err), WEIR_E_SCHEMA);
  assert_string_equal(err.message,
                      "two columns are named 'a'; a header cannot tell them apart");
  assert_int_equal(weir_csv_decoder_new(schema, &bare, &decoder, &err), WEIR_OK);
  weir_csv_decoder_free(decoder);
  weir_schema_unref(schema);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_rfc_4180),
      cmocka_unit_test(test_one_column),
      cmocka_unit_test(test_nulls),
      cmocka_unit_test(test_values),
      cmocka_unit_test(test_bad_values),
      cmocka_unit_test(test_bad_records),
      cmocka_unit_test(test_bad_headers),
      cmocka_unit_test(test_options),
      cmocka_unit_test(test_every_offset_of_an_edge),
      cmocka_unit_test(test_long_fields),
      cmocka_unit_test(test_positions),
      cmocka_unit_test(test_refused_schemas),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
