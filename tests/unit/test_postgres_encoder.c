/* SPDX-License-Identifier: Apache-2.0 */
/* ctest: connector postgres */
/* Rows in COPY's binary format, byte by byte; what must be refused, and in what words. */
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

#include "../../connectors/postgres/encoder.h"
#include "support/rows.h"

/* "int4", "int4[]", "numeric(10,2)", "varchar(3)", "timestamp(3)". */
static pg_type type_of(const char *text) {
  pg_type type = {.typmod = -1, .oid = 4711};
  char name[40] = {0};
  int a = 0, b = 0;
  sscanf(text, "%39[^[(]", name);
  const char *bounds = strchr(text, '(');
  int n = bounds ? sscanf(bounds, "(%d,%d", &a, &b) : 0;
  type.kind = pg_kind_of(name);
  assert_int_not_equal(type.kind, PG_OTHER);
  type.array = strchr(text, '[');
  if (type.kind == PG_NUMERIC && n) type.typmod = (a << 16 | (b & 0x7ff)) + 4;
  if (type.kind == PG_TEXT && n) type.typmod = a + 4;
  if (type.kind == PG_TIMESTAMP && n) type.typmod = a;
  snprintf(type.name, sizeof(type.name), "%s", text);
  return type;
}

static weir_status encode(weir_batch *batch, const char *to, char **hex,
                          weir_error *err) {
  pg_encoder *encoder = NULL;
  pg_type type = type_of(to);
  size_t used = 0, size = 0;
  const uint8_t *data = NULL;
  char *out = NULL;
  weir_status status =
      pg_encoder_new(weir_batch_schema(batch), &type, false, &encoder, err);
  if (!status) status = pg_encoder_start(encoder, batch, err);
  while (!status) {
    status = pg_encoder_next(encoder, &data, &size, err);
    if (status || !size) break;
    out = realloc(out, used + 2 * size + 1);
    assert_non_null(out);
    for (size_t i = 0; i < size; i++, used += 2) sprintf(out + used, "%02x", data[i]);
  }
  pg_encoder_free(encoder);
  if (!status && hex) {
    *hex = out ? out : strdup("");
  } else {
    free(out);
  }
  return status;
}

/* The values of one column, each without the row's "0001", separated by spaces. */
static char *split(const char *hex) {
  char *out = calloc(1, 2 * strlen(hex) + 1), *at = out;
  assert_non_null(out);
  while (*hex) {
    int size = 0;
    assert_memory_equal(hex, "0001", 4);
    hex += 4;
    unsigned word = 0;
    assert_int_equal(sscanf(hex, "%8x", &word), 1);
    size = word == UINT32_MAX ? 8 : 8 + 2 * (int)word;
    at += sprintf(at, "%s%.*s", at == out ? "" : " ", size, hex);
    hex += size;
  }
  return out;
}

typedef struct sample {
  const char *type, *to, *values; /* the last: JSON, separated by '|' */
  const char *want;
} sample;

static weir_batch *batch_of(const char *type, const char *values) {
  char schema[200], *lines = calloc(1, 4 * strlen(values) + 400), *at = lines;
  assert_non_null(lines);
  snprintf(schema, sizeof(schema), "v: %s", type);
  for (const char *v = values; v;) {
    size_t size = strcspn(v, "|");
    at += sprintf(at, "{\"v\":%.*s}\n", (int)size, v);
    v = v[size] ? v + size + 1 : NULL;
  }
  weir_schema *made = rows_schema(schema);
  weir_batch *batch = rows_batch(made, lines);
  weir_schema_unref(made);
  free(lines);
  return batch;
}

static const sample samples[] = {
    {"bool", "bool", "true|false|null", "0000000101 0000000100 ffffffff"},
    {"int8", "int2", "-1|127", "00000002ffff 00000002007f"},
    {"int8", "int8", "-2", "00000008fffffffffffffffe"},
    {"uint8", "int2", "255", "0000000200ff"},
    {"uint16", "int4", "65535", "000000040000ffff"},
    {"uint32", "int8", "4294967295", "0000000800000000ffffffff"},
    {"int64", "int8", "-9223372036854775808", "000000088000000000000000"},
    /* ndigits, weight, sign, dscale, digits */
    {"uint64", "numeric", "18446744073709551615",
     "00000012000500040000000007341a5802e103bb064f"},
    {"int64", "numeric", "0|10000|-9223372036854775808",
     "000000080000000000000000 0000000a00010001000000000001 "
     "000000120005000440000000039a0d2c0170156516b0"},
    {"float32", "float4", "1.5", "000000043fc00000"},
    {"float32", "float8", "1.5", "000000083ff8000000000000"},
    {"float16", "float4", "-2.5|\"NaN\"|\"Infinity\"|0.00006103515625",
     "00000004c0200000 000000047fc00000 000000047f800000 0000000438800000"},
    {"float64", "float8", "-0.0", "000000088000000000000000"},
    {"float64", "numeric", "0.1|\"NaN\"|\"-Infinity\"|-10000.5|1e-9|0",
     "0000000a0001ffff0000000103e8 0000000800000000c0000000 0000000800000000f0000000 "
     "0000000e0003000140000001000100001388 0000000a0001fffd0000000903e8 "
     "000000080000000000000000"},
    {"decimal128(38, 6)", "numeric", "99999999999999999999.999999|-0.000001|0",
     "000000160007000400000006270f270f270f270f270f270f26ac "
     "0000000a0001fffe400000060064 000000080000000000000006"},
    {"decimal32(5, 2)", "numeric(5,2)", "-123.45", "0000000c0002000040000002007b1194"},
    {"decimal64(18, 0)", "numeric(20,2)", "1456312800000000",
     "0000000c000200030000000005b00c38"},
    {"decimal128(5, -3)", "numeric", "12345000", "0000000c000200010000000004d21388"},
    {"decimal256(76, 0)", "numeric",
     "-1000000000000000000000000000000000000000000000000000000000000000000000000001",
     "0000002e001300124000000003e80000000000000000000000000000000000000000000000000000000"
     "000000000"
     "00000001"},
    {"utf8", "text", "\"\"|\"h\xc3\xa9\"|null", "00000000 0000000368c3a9 ffffffff"},
    {"large_utf8", "varchar(2)", "\"h\xc3\xa9\"", "0000000368c3a9"},
    {"utf8", "jsonb", "\"[1]\"", "00000004015b315d"},
    {"utf8", "json", "\"[1]\"", "000000035b315d"},
    {"utf8", "uuid", "\"00112233-4455-6677-8899-aAbBcCdDeEfF\"",
     "0000001000112233445566778899aabbccddeeff"},
    {"fixed_size_binary(16)", "uuid", "\"AAECAwQFBgcICQoLDA0ODw==\"",
     "00000010000102030405060708090a0b0c0d0e0f"},
    {"binary", "bytea", "\"AP8=\"", "0000000200ff"},
    {"date32", "date", "\"2000-01-01\"|\"1999-12-31\"",
     "0000000400000000 00000004ffffffff"},
    {"date64", "date", "\"2000-01-02\"", "0000000400000001"},
    {"time32[s]", "time", "\"00:00:01\"", "0000000800000000000f4240"},
    {"time64[ns]", "time", "\"00:00:00.000001\"", "000000080000000000000001"},
    {"timestamp[us, UTC]", "timestamptz", "\"2000-01-01T00:00:00.000001Z\"",
     "000000080000000000000001"},
    {"timestamp[ns]", "timestamp", "\"1999-12-31T23:59:59.999999\"",
     "00000008ffffffffffffffff"},
    {"timestamp[ms]", "timestamp(3)", "\"2000-01-01T00:00:00.001\"",
     "0000000800000000000003e8"},
    {"timestamp[s]", "timestamp", "\"2000-01-01T00:00:01\"", "0000000800000000000f4240"},
    {"duration[ms]", "interval", "-1", "00000010fffffffffffffc180000000000000000"},
    {"list<int16>", "int2[]", "[]|[1,null]|null",
     "0000000c000000000000000100001267 "
     "0000001e0000000100000001000012670000000200000001000000020001ffffffff ffffffff"},
    {"fixed_size_list<int64, 1>", "int8[]", "[7]",
     "000000200000000100000000000012670000000100000001000000080000000000000007"},
    {"struct<a: int8>", "jsonb", "{\"a\":1}|null", "00000008017b2261223a317d ffffffff"},
    {"list<list<int8>>", "json", "[[1],[]]", "000000085b5b315d2c5b5d5d"},
};

static void test_bytes(void **state) {
  (void)state;
  int wrong = 0;
  for (size_t i = 0; i < sizeof(samples) / sizeof(*samples); i++) {
    const sample *s = &samples[i];
    weir_batch *batch = batch_of(s->type, s->values);
    weir_error err = {0};
    char *hex = NULL;
    if (encode(batch, s->to, &hex, &err)) fail_msg("%s: %s", s->type, err.message);
    char *got = split(hex);
    if (strcmp(got, s->want) != 0) {
      print_error("%s to %s:\n%s\nexpected\n%s\n", s->type, s->to, got, s->want);
      wrong++;
    }
    free(got);
    free(hex);
    weir_batch_unref(batch);
  }
  assert_int_equal(wrong, 0);
}

/* What begins the message. */
typedef struct refusal {
  const char *type, *to, *message;
} refusal;

static const refusal refusals[] = {
    {"int64", "int4",
     "column 'v': int64 cannot go into type int4: expected bigint, numeric"},
    {"uint64", "int8", "column 'v': uint64 cannot go into type int8: expected numeric"},
    {"int64", "numeric(10,2)",
     "column 'v': int64 cannot go into type numeric(10,2): not all"},
    {"float64", "numeric(10,2)",
     "column 'v': float64 cannot go into type numeric(10,2): it would"},
    {"float64", "float4",
     "column 'v': float64 cannot go into type float4: expected double precision, "
     "numeric"},
    {"decimal128(38, 10)", "numeric(38,2)",
     "column 'v': decimal128(38, 10) cannot go into type numeric(38,2): it would be "
     "rounded"},
    {"decimal128(38, 2)", "numeric(30,2)",
     "column 'v': decimal128(38, 2) cannot go into type numeric(30,2): not all"},
    {"timestamp[us]", "timestamp(3)",
     "column 'v': timestamp[us] cannot go into type timestamp(3): it would be rounded"},
    {"timestamp[us]", "timestamptz",
     "column 'v': timestamp[us] cannot go into type timestamptz: expected timestamp"},
    {"timestamp[us, UTC]", "timestamp",
     "column 'v': timestamp[us, UTC] cannot go into type timestamp: expected "
     "timestamptz"},
    {"utf8", "bytea",
     "column 'v': utf8 cannot go into type bytea: expected text, uuid, json, jsonb"},
    {"fixed_size_binary(15)", "uuid",
     "column 'v': fixed_size_binary(15) cannot go into type uuid: a UUID has 16 bytes"},
    {"utf8", "text[]", "column 'v': utf8 cannot go into type text[]: expected text"},
    {"list<int64>", "int4[]",
     "column 'v': int64 cannot go into type int4[]: expected bigint"},
    {"list<list<int8>>", "int2[]",
     "column 'v': list<list<int8>> cannot go into type int2[]: lists of nested"},
    {"struct<a: int8>", "text",
     "column 'v': struct<a: int8> cannot go into type text: expected jsonb, json"},
    {"list<int8>", "int2",
     "column 'v': list<int8> cannot go into type int2: expected an array"},
};

static void test_refusals(void **state) {
  (void)state;
  int wrong = 0;
  for (size_t i = 0; i < sizeof(refusals) / sizeof(*refusals); i++) {
    const refusal *r = &refusals[i];
    weir_batch *batch = batch_of(r->type, "null");
    weir_error err = {0};
    assert_int_equal(encode(batch, r->to, NULL, &err), WEIR_E_SCHEMA);
    if (strncmp(err.message, r->message, strlen(r->message)) != 0) {
      print_error("%s\nexpected\n%s\n", err.message, r->message);
      wrong++;
    }
    weir_batch_unref(batch);
  }
  assert_int_equal(wrong, 0);
}

typedef struct bad {
  const char *type, *to, *values;
  int64_t row;
  const char *message;
} bad;

#define NUL_TEXT "column 'v' is no UTF-8, or holds a NUL character"
#define WHOLE "column 'v' is no whole number of microseconds, or outside"

static const bad bads[] = {
    {"utf8", "text", "\"a\"|null|\"\\u0000\"", 2, NUL_TEXT},
    {"large_utf8", "text", "\"a\"|null|\"\\u0000\"", 2, NUL_TEXT},
    {"utf8", "varchar(2)", "\"ab\"|\"abc\"", 1, "column 'v' is longer than"},
    {"list<utf8>", "text[]", "[\"a\"]|null|[\"\\u0000\"]", 2, NUL_TEXT},
    {"struct<a: utf8>", "jsonb", "{\"a\":\"\\\\u0000\"}|null|{\"a\":\"\\u0000\"}", 2,
     "column 'v' holds a NUL character in a text, which jsonb cannot"},
    {"utf8", "uuid",
     "\"00112233-4455-6677-8899-aabbccddeeff\"|\"00112233445566778899aabbccddeeff\"", 1,
     "column 'v' is no UUID"},
    {"timestamp[ns]", "timestamp", "1000|1001", 1, WHOLE},
    {"timestamp[us]", "timestamp", "-210866803200000000|-210866803200000001", 1, WHOLE},
    {"timestamp[s]", "timestamp", "9224318015999|9224318016000", 1, WHOLE},
    {"time64[ns]", "time", "86399000000000|1", 1, WHOLE},
    {"date32", "date", "-2440588|2145042906", 1, WHOLE},
    {"duration[s]", "interval", "9223372036854|9223372036855", 1, WHOLE},
};

static void test_bad_values(void **state) {
  (void)state;
  int wrong = 0;
  for (size_t i = 0; i < sizeof(bads) / sizeof(*bads); i++) {
    const bad *b = &bads[i];
    weir_batch *batch = batch_of(b->type, b->values);
    weir_error err = {0};
    weir_status status = encode(batch, b->to, NULL, &err);
    if (status != WEIR_E_BAD_DATA || err.flags != WEIR_ERR_BAD_DATA ||
        err.row != b->row || err.column != 0 ||
        strncmp(err.message, b->message, strlen(b->message)) != 0) {
      print_error("%s: status %d, row %lld: %s\n", b->type, status, (long long)err.row,
                  err.message);
      wrong++;
    }
    weir_batch_unref(batch);
  }
  assert_int_equal(wrong, 0);
}

/* Each byte of UTF-8 that a validator may get wrong, at every offset of a word. */
static void test_utf8(void **state) {
  (void)state;
  static const char *const good[] = {"",
                                     "a",
                                     "\x7f",
                                     "\xc2\x80",
                                     "\xdf\xbf",
                                     "\xe0\xa0\x80",
                                     "\xed\x9f\xbf",
                                     "\xee\x80\x80",
                                     "\xef\xbf\xbf",
                                     "\xf0\x90\x80\x80",
                                     "\xf4\x8f\xbf\xbf"};
  static const char *const wrong[] = {"\x80",
                                      "\xbf",
                                      "\xc0\x80",
                                      "\xc1\xbf",
                                      "\xc2",
                                      "\xc2\x41",
                                      "\xe0\x9f\xbf",
                                      "\xed\xa0\x80",
                                      "\xe2\x82",
                                      "\xf0\x8f\xbf\xbf",
                                      "\xf4\x90\x80\x80",
                                      "\xf5\x80\x80\x80",
                                      "\xff"};
  weir_schema *schema = rows_schema("v: utf8");
  for (size_t i = 0; i < sizeof(good) / sizeof(*good) + sizeof(wrong) / sizeof(*wrong);
       i++) {
    bool fine = i < sizeof(good) / sizeof(*good);
    const char *what = fine ? good[i] : wrong[i - sizeof(good) / sizeof(*good)];
    for (int before = 0; before < 17; before++) {
      /* A text of the right length, whose bytes are then put there. */
      char text[80], line[120];
      int size = snprintf(text, sizeof(text), "%.*s%s%.*s", before, "aaaaaaaaaaaaaaaaa",
                          what, 17 - before, "bbbbbbbbbbbbbbbbb");
      snprintf(line, sizeof(line), "{\"v\":\"%0*d\"}\n", size, 0);
      weir_batch *batch = rows_batch(schema, line);
      weir_error err = {0};
      memcpy((char *)(uintptr_t)weir_batch_array(batch)->children[0]->buffers[2], text,
             (size_t)size);
      assert_int_equal(encode(batch, "text", NULL, &err),
                       fine ? WEIR_OK : WEIR_E_BAD_DATA);
      weir_batch_unref(batch);
    }
  }
  weir_schema_unref(schema);
}

/* Slices begin within buffers, and what lies below them elsewhere. */
static void test_slices(void **state) {
  (void)state;
  static const char *const types[][3] = {
      {"int64", "int8", "1|2|null|4"},
      {"bool", "bool", "true|false|null|true"},
      {"utf8", "text", "\"a\"|\"bcd\"|null|\"\""},
      {"list<utf8>", "text[]", "[\"a\"]|[\"b\",null]|null|[]"},
      {"struct<a: int8>", "jsonb", "{\"a\":1}|{\"a\":2}|null|{\"a\":4}"},
      {"decimal128(9, 2)", "numeric", "1|-2.25|null|0"},
  };
  for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
    weir_batch *batch = batch_of(types[i][0], types[i][2]), *slice = NULL;
    weir_error err = {0};
    char *whole = NULL, *part = NULL;
    assert_int_equal(encode(batch, types[i][1], &whole, &err), WEIR_OK);
    for (int64_t from = 0; from < 4; from++) {
      assert_int_equal(weir_batch_slice(batch, from, 4 - from, &slice, &err), WEIR_OK);
      assert_int_equal(encode(slice, types[i][1], &part, &err), WEIR_OK);
      const char *end = whole + strlen(whole) - strlen(part);
      assert_true(end >= whole);
      assert_string_equal(end, part);
      if (from) assert_true(end > whole);
      free(part);
      weir_batch_unref(slice);
    }
    free(whole);
    weir_batch_unref(batch);
  }
}

/* A batch of more than one piece is the rows of its parts. */
static void test_pieces(void **state) {
  (void)state;
  enum { ROWS = 5000 };
  weir_schema *schema = rows_schema("v: utf8");
  char *text = malloc(ROWS * 140), *at = text, *hex = NULL;
  assert_non_null(text);
  for (int i = 0; i < ROWS; i++) at += sprintf(at, "{\"v\":\"%0120d\"}\n", i);
  weir_batch *batch = rows_batch(schema, text);
  weir_error err = {0};
  assert_int_equal(encode(batch, "text", &hex, &err), WEIR_OK);
  assert_int_equal(strlen(hex), ROWS * 2 * (2 + 4 + 120));
  for (int i = 0; i < ROWS; i++) {
    const char *row = hex + i * 2 * (2 + 4 + 120);
    int number = 0;
    assert_memory_equal(row, "000100000078", 12);
    for (int k = 110; k < 120; k++) number = number * 10 + row[12 + 2 * k + 1] - '0';
    assert_int_equal(number, i);
  }
  free(hex);
  free(text);
  weir_batch_unref(batch);
  weir_schema_unref(schema);
}

/* The table of the page is the code's own. WEIR_REWRITE=1 puts it there. */
static void test_the_page(void **state) {
  (void)state;
  static const char path[] = WEIR_TEST_TOOLS "/../docs/postgres.md";
  static const char begin[] = "<!-- types -->\n", end[] = "<!-- end of types -->\n";
  enum { MOST = 64 << 10 };
  char *text = calloc(1, MOST), *table = pg_types_markdown();
  FILE *file = fopen(path, "r");
  assert_non_null(text);
  assert_non_null(table);
  assert_non_null(file);
  assert_true(fread(text, 1, MOST - 1, file) < MOST - 1);
  fclose(file);
  char *from = strstr(text, begin), *to = strstr(text, end);
  assert_true(from && to && from < to);
  from += sizeof(begin) - 1;
  if (getenv("WEIR_REWRITE")) {
    file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "%.*s%s%s", (int)(from - text), text, table, to);
    fclose(file);
  } else if (strncmp(from, table, (size_t)(to - from)) != 0 ||
             strlen(table) != (size_t)(to - from)) {
    fail_msg(
        "docs/postgres.md does not have the table of connectors/postgres/types.c; run "
        "this test with "
        "WEIR_REWRITE=1");
  }
  free(table);
  free(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_bytes),      cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_bad_values), cmocka_unit_test(test_slices),
      cmocka_unit_test(test_pieces),     cmocka_unit_test(test_the_page),
      cmocka_unit_test(test_utf8),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
