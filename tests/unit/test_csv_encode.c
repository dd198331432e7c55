/* SPDX-License-Identifier: Apache-2.0 */
/* What the CSV encoder writes: quotes, nulls, headers, and what it refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <weir/csv.h>

#include <cmocka.h>

#include "base/base.h"
#include "support/rows.h"

/* Header and records of rows given as NDJSON, to free(); NULL with an error. */
static char *encode(const char *spec, const char *rows, const weir_csv_options *options,
                    weir_error *err) {
  weir_schema *schema = rows_schema(spec);
  weir_batch *batch = rows_batch(schema, rows);
  weir_csv_encoder *encoder = NULL;
  base_buf text = {0};
  const uint8_t *data = NULL;
  size_t size = 0;
  weir_status status = weir_csv_encoder_new(schema, options, &encoder, err);
  if (status == WEIR_OK) {
    weir_csv_encoder_header(encoder, &data, &size);
    assert_int_equal(base_buf_append(&text, data, size, NULL), WEIR_OK);
    status = weir_csv_encoder_write(encoder, batch, &data, &size, err);
  }
  if (status == WEIR_OK) {
    assert_int_equal(base_buf_append(&text, data, size, NULL), WEIR_OK);
    assert_int_equal(base_buf_append_byte(&text, 0, NULL), WEIR_OK);
  } else {
    base_buf_done(&text);
  }
  weir_csv_encoder_free(encoder);
  weir_batch_unref(batch);
  weir_schema_unref(schema);
  return (char *)text.data;
}

static void check(const char *spec, const char *rows, const weir_csv_options *options,
                  const char *want) {
  weir_error err = {0};
  char *got = encode(spec, rows, options, &err);
  if (got == NULL) fail_msg("%s", err.message);
  assert_string_equal(got, want);
  free(got);
}

static void check_refused(const char *spec, const char *rows,
                          const weir_csv_options *options, weir_status code,
                          const char *message) {
  weir_error err = {0};
  assert_null(encode(spec, rows, options, &err));
  assert_int_equal(err.code, code);
  assert_string_equal(err.message, message);
}

static void test_texts(void **state) {
  (void)state;
  check("a: utf8; b: utf8",
        "{\"a\":\"x\",\"b\":\"\"}\n{\"a\":null,\"b\":\"a,b\"}\n{\"a\":\"q\\\"q\",\"b\":"
        "\"l\\nl\"}\n"
        "{\"a\":\"c\\r\",\"b\":\" \"}\n{\"a\":\"\\ufeff\",\"b\":\"\xc3\xa9\"}\n",
        NULL,
        "a,b\nx,\"\"\n,\"a,b\"\n\"q\"\"q\",\"l\nl\"\n\"c\r\", "
        "\n\"\xef\xbb\xbf\",\xc3\xa9\n");
  check("a,b: utf8", "{\"a,b\":null}\n{\"a,b\":\"\"}\n", NULL, "\"a,b\"\n\n\"\"\n");
}

static void test_values(void **state) {
  (void)state;
  check("i: int64; u: uint64; f: float64; d: decimal128(10, 2); t: bool",
        "{\"i\":-9223372036854775808,\"u\":18446744073709551615,\"f\":0.1,\"d\":1.5,"
        "\"t\":true}\n"
        "{\"i\":null,\"u\":null,\"f\":\"NaN\",\"d\":null,\"t\":false}\n"
        "{\"i\":0,\"u\":0,\"f\":\"-Infinity\",\"d\":0,\"t\":null}\n",
        NULL,
        "i,u,f,d,t\n-9223372036854775808,18446744073709551615,0.1,1.50,true\n"
        ",,NaN,,false\n0,0,-Infinity,0.00,\n");
  check("d: date32; z: timestamp[ms, UTC]; x: binary; n: duration[s]",
        "{\"d\":\"2024-02-29\",\"z\":\"2024-02-29T00:00:00Z\",\"x\":\"AP8=\",\"n\":-5}\n"
        "{\"d\":null,\"z\":null,\"x\":\"\",\"n\":null}\n",
        NULL, "d,z,x,n\n2024-02-29,2024-02-29T00:00:00.000Z,AP8=,-5\n,,\"\",\n");
}

static void test_options(void **state) {
  (void)state;
  weir_csv_options o = {.struct_size = sizeof(o),
                        .no_header = 1,
                        .delimiter = ":",
                        .quote = "'",
                        .null_text = "NULL"};
  check("a: utf8; t: time32[s]",
        "{\"a\":\"it's\",\"t\":\"01:02:03\"}\n{\"a\":\"NULL\",\"t\":null}\n{\"a\":\"\","
        "\"t\":null}\n"
        "{\"a\":null,\"t\":null}\n",
        &o, "'it''s':'01:02:03'\n'NULL':NULL\n:NULL\nNULL:NULL\n");
}

static void test_refused(void **state) {
  (void)state;
  weir_csv_options o = {.struct_size = sizeof(o), .quote = "", .null_text = "0"};
  check_refused("a: utf8", "{\"a\":\"x\"}\n{\"a\":\"x,\"}\n", &o, WEIR_E_BAD_DATA,
                "column 'a': the text needs quotes, and there are none, so CSV cannot "
                "carry it");
  check_refused("a: utf8", "{\"a\":\"0\"}\n", &o, WEIR_E_BAD_DATA,
                "column 'a': the text needs quotes, and there are none, so CSV cannot "
                "carry it");
  check_refused("a: int32", "{\"a\":10}\n{\"a\":0}\n", &o, WEIR_E_BAD_DATA,
                "column 'a': the value reads as the text of null, so CSV cannot carry "
                "it");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_texts),
      cmocka_unit_test(test_values),
      cmocka_unit_test(test_options),
      cmocka_unit_test(test_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
