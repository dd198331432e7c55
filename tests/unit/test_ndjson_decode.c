/* SPDX-License-Identifier: Apache-2.0 */
/* Lines, blocks, batches, keys and positions of the NDJSON decoder. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/ndjson.h>

#include <cmocka.h>

#include "base/base.h"
#include "format/ndjson.h"
#include "support/rows.h"

static int32_t refuse_unknown; /* of decoders made from now on */

static weir_ndjson_decoder *new_decoder(const char *spec, int64_t batch_rows,
                                        uint64_t max_line) {
  weir_schema *schema = rows_schema(spec);
  weir_ndjson_decoder *decoder = NULL;
  weir_error err = {0};
  weir_ndjson_options options = {.struct_size = sizeof(options),
                                 .batch_rows = batch_rows,
                                 .max_line = max_line,
                                 .refuse_unknown = refuse_unknown};
  if (weir_ndjson_decoder_new(schema, &options, &decoder, &err) != WEIR_OK) {
    fail_msg("%s", err.message);
  }
  weir_schema_unref(schema);
  return decoder;
}

/* Way 0: as it is; 1: each line the slow way; 2: in chunks from the first byte on. */
static void force(weir_ndjson_decoder *decoder, int way) {
  ndjson_decoder_force_slow(decoder, way == 1);
  if (way == 2) ndjson_decoder_force_chunks(decoder);
}

static void append_batch(base_buf *out, weir_batch *batch) {
  if (batch == NULL) return;
  char *text = rows_text(batch);
  assert_int_equal(base_buf_append_str(out, text, NULL), WEIR_OK);
  free(text);
  weir_batch_unref(batch);
}

/* Feeds a text in blocks of `block` bytes, what is left of one before the next, each block in memory
 * of its exact size. The rows as text, to free(), up to the first error. */
static char *decode_all(weir_ndjson_decoder *decoder, const char *text, size_t block,
                        weir_error *err) {
  base_buf rows = {0}, held = {0};
  size_t size = strlen(text), at = 0;
  weir_status status = WEIR_OK;
  while (status == WEIR_OK) {
    size_t more = size - at < block ? size - at : block, used = 0;
    assert_int_equal(base_buf_append(&held, text + at, more, NULL), WEIR_OK);
    at += more;
    uint8_t *exact = malloc(held.size + 1);
    assert_non_null(exact);
    if (held.size > 0) memcpy(exact, held.data, held.size);
    weir_batch *batch = NULL;
    status = weir_ndjson_decoder_feed(decoder, exact, held.size, at == size, &used,
                                      &batch, err);
    free(exact);
    if (status != WEIR_OK) break;
    append_batch(&rows, batch);
    if (used > 0) memmove(held.data, held.data + used, held.size - used);
    held.size -= used;
    if (batch == NULL && at == size) break;
  }
  if (status == WEIR_OK) {
    weir_batch *batch = NULL;
    assert_int_equal(weir_ndjson_decoder_flush(decoder, &batch, err), WEIR_OK);
    append_batch(&rows, batch);
    assert_int_equal(held.size, 0);
    assert_int_equal(weir_ndjson_decoder_offset(decoder), size);
  }
  base_buf_done(&held);
  assert_int_equal(base_buf_append_byte(&rows, 0, NULL), WEIR_OK);
  return (char *)rows.data;
}

static void check_rows(const char *spec, const char *text, const char *want) {
  for (int way = 0; way < 3; way++) {
    for (size_t block = 1; block < 80; block += block < 8 ? 1 : 7) {
      weir_error err = {0};
      weir_ndjson_decoder *decoder = new_decoder(spec, 2, 0);
      force(decoder, way);
      char *got = decode_all(decoder, text, block, &err);
      if (strcmp(got, want) != 0) {
        fail_msg("blocks of %zu, way %d: %s%s, not %s", block, way, got, err.message,
                 want);
      }
      free(got);
      weir_ndjson_decoder_free(decoder);
    }
  }
}

static void check_error(const char *spec, const char *text, const char *before,
                        const char *message) {
  for (int way = 0; way < 3; way++) {
    weir_error err = {0};
    weir_ndjson_decoder *decoder = new_decoder(spec, 2, 100);
    force(decoder, way);
    char *got = decode_all(decoder, text, 1000, &err);
    assert_int_equal(err.code, WEIR_E_BAD_DATA);
    assert_int_equal(err.flags, WEIR_ERR_BAD_DATA);
    assert_string_equal(err.message, message);
    assert_string_equal(got, before);
    free(got);
    weir_ndjson_decoder_free(decoder);
  }
}

#define SPEC "id: int64; name: utf8; x: float64"

static void test_lines_and_blocks(void **state) {
  (void)state;
  const char *want =
      "{\"id\":1,\"name\":\"a\xe2\x82\xac\",\"x\":0.5}\n"
      "{\"id\":2,\"name\":\"b\\n\",\"x\":null}\n"
      "{\"id\":3,\"name\":null,\"x\":2.0}\n";
  check_rows(SPEC,
             "{\"id\":1,\"name\":\"a\xe2\x82\xac\",\"x\":0.5}\n"
             "{\"id\":2,\"name\":\"b\\n\",\"x\":null}\n{\"id\":3,\"x\":2}\n",
             want);
  /* CR LF, blank lines, blanks in all places, no LF at the end, a byte order mark */
  check_rows(SPEC,
             "\xef\xbb\xbf{ \"id\" : 1 , \"name\" : \"a\xe2\x82\xac\" ,\t\"x\":0.5 } "
             "\r\n\r\n \t\n"
             "{\"id\": 2, \"name\": \"b\\n\", \"x\": null}\r\n\n\n {\"x\":2,\"id\":3}",
             want);
  check_rows(SPEC, "", "");
  check_rows(SPEC, "\n \n\r\n", "");
  check_rows(SPEC, "{}", "{\"id\":null,\"name\":null,\"x\":null}\n");
}

static void test_unknown_keys_refused(void **state) {
  (void)state;
  refuse_unknown = 1;
  check_rows(SPEC, "{\"x\":1,\"id\":1}\n{\"name\":\"a\",\"id\":2}\n{}\n",
             "{\"id\":1,\"name\":null,\"x\":1.0}\n{\"id\":2,\"name\":\"a\",\"x\":null}\n"
             "{\"id\":null,\"name\":null,\"x\":null}\n");
  check_error("id: int64", "{\"id\":1}\n{\"id\":2,\"new\":null}\n{\"id\":3}\n",
              "{\"id\":1}\n",
              "line 2, byte 18: column 'new' is not in the schema; near: "
              "{\"id\":2,\"new\":null}");
  check_error("id: int64", "{\"id\":1,\"n\\u0065w\":[1]}\n{\"id\":3}\n", "",
              "line 1, byte 9: column 'new' is not in the schema; near: "
              "{\"id\":1,\"n\\u0065w\":[1]}");
  check_error("s: struct<a: int64>", "{\"s\":{\"a\":1,\"b\":2}}\n", "",
              "line 1, byte 13: column 's.b' is not in the schema; near: "
              "{\"s\":{\"a\":1,\"b\":2}}");
  refuse_unknown = 0;
}

static void test_keys(void **state) {
  (void)state;
  const char *want =
      "{\"id\":1,\"name\":\"n\",\"x\":1.5}\n{\"id\":2,\"name\":\"m\",\"x\":null}\n";
  /* other orders, unknown keys of every kind, keys with escapes, a key that begins like another */
  check_rows(SPEC,
             "{\"x\":1.5,\"i\":5,\"name\":\"n\",\"id\":1}\n"
             "{\"id2\":[1,{\"id\":7}],\"id\":2,\"n\\u0061me\":\"m\"}\n",
             want);
  check_rows(SPEC,
             "{\"u\":\"\\\"\",\"id\":1,\"name\":\"n\",\"u\":null,\"x\":1.5,\"u\":-1e5}\n"
             "{\"u\":true,\"id\":2,\"name\":\"m\",\"u\":false,\"x\":null,\"u\":{}}\n",
             want);
  check_rows(
      "a key of many more bytes than one compare takes: int8; a key of many more bytes "
      "than "
      "one compare makes: int8",
      "{\"a key of many more bytes than one compare takes\":1,"
      "\"a key of many more bytes than one compare makes\":2}\n",
      "{\"a key of many more bytes than one compare takes\":1,"
      "\"a key of many more bytes than one compare makes\":2}\n");
}

static void test_errors_tell_the_place(void **state) {
  (void)state;
  check_error(SPEC,
              "{\"id\":1,\"name\":\"a\",\"x\":1}\n\n{\"id\":\"2\",\"x\":1}\n{\"id\":3}\n",
              "{\"id\":1,\"name\":\"a\",\"x\":1.0}\n",
              "line 3, byte 34: column 'id' (int64) has a value of another type; "
              "expected a whole "
              "number; near: {\"id\":\"2\",\"x\":1}");
  check_error("id: int8", "{\"id\":1000}", "",
              "line 1, byte 6: column 'id' (int8) is out of range; expected a whole "
              "number; near: "
              "{\"id\":1000}");
  check_error("id: int8", "{\"id\":1}\n{\"id\":1,\"id\":1}\n", "{\"id\":1}\n",
              "line 2, byte 22: column 'id' (int8) is given twice; expected a whole "
              "number; near: "
              "{\"id\":1,\"id\":1}");
  check_error("id: int8 not null; x: int8", "{\"x\":1}\n", "",
              "line 1, byte 0: column 'id' (int8) is null or missing, but not nullable; "
              "expected a "
              "whole number; near: {\"x\":1}");
  check_error("id: int8", "\xef\xbb\xbf{\"id\":x}", "",
              "line 1, byte 9: malformed JSON: unexpected character, expected a valid "
              "JSON value; near: "
              "{\"id\":x}");
  check_error("id: int8", "[1]\n", "", "line 1, byte 0: not a JSON object; near: [1]");
  check_error("id: int8", "{\"id\":1} {\"id\":2}\n", "",
              "line 1, byte 9: malformed JSON: unexpected content after document; near: "
              "{\"id\":1} "
              "{\"id\":2}");
  check_error("id: int8", "{\"id\":1}\n{\"id\":", "{\"id\":1}\n",
              "line 2, byte 15: malformed JSON: unexpected end of data; near: {\"id\":");
  check_error("id: int8", "{\"id\":1,\"u\":\"\x80\xe2\x82\xac\x01\"}\n", "",
              "line 1, byte 13: malformed JSON: invalid UTF-8 encoding in string; near: "
              "{\"id\":1,\"u\":\"?\xe2\x82\xac?\"}");
}

static void test_long_lines_are_bounded(void **state) {
  (void)state;
  char text[301];
  memset(text, ' ', sizeof(text) - 1);
  text[300] = 0;
  memcpy(text, "{\"id\":1}\n{", 10);
  const char *message =
      "line 2, byte 9: longer than the 100 bytes of `max_line`; is this "
      "newline-delimited JSON?";
  check_error("id: int8", text, "{\"id\":1}\n", message); /* the end is not even there */
  text[250] = '\n';
  check_error("id: int8", text, "{\"id\":1}\n", message);
  memcpy(text + 100, "}\n", 3);
  weir_error err = {0};
  weir_ndjson_decoder *decoder = new_decoder("id: int8", 0, 92);
  char *got = decode_all(decoder, text, 10, &err);
  assert_string_equal(got, "{\"id\":1}\n{\"id\":null}\n"); /* 92 bytes are not too long */
  free(got);
  weir_ndjson_decoder_free(decoder);
}

/* A bad row is met alone, again and again, until it is skipped. */
static void test_skip_a_bad_row(void **state) {
  (void)state;
  static const char text[] = "{\"id\":1}\n{\"id\":2}\n\n{\"id\":x}\n{\"id\":4}\n";
  weir_ndjson_decoder *decoder = new_decoder("id: int8", 10, 0);
  weir_batch *batch = NULL;
  weir_error err = {0};
  base_buf rows = {0};
  size_t used = 0, size = sizeof(text) - 1, at;
  assert_int_equal(weir_ndjson_decoder_feed(decoder, text, size, 1, &used, &batch, &err),
                   WEIR_OK);
  assert_int_equal(used, 19);
  assert_non_null(batch);
  append_batch(&rows, batch);
  at = used;
  for (int i = 0; i < 3; i++) {
    used = 77;
    batch = NULL;
    assert_int_equal(
        weir_ndjson_decoder_feed(decoder, text + at, size - at, 1, &used, &batch, &err),
        WEIR_E_BAD_DATA);
    assert_int_equal(used, 77);
    assert_null(batch);
    assert_memory_equal(err.message, "line 4, byte ", 13);
    assert_int_equal(weir_ndjson_decoder_offset(decoder), 19);
  }
  weir_ndjson_decoder_skip(decoder, text + at, 4, 0, &used);
  assert_int_equal(used, 0);
  weir_ndjson_decoder_skip(decoder, text + at, size - at, 0, &used);
  assert_int_equal(used, 9);
  at += used;
  assert_int_equal(weir_ndjson_decoder_line(decoder), 4);
  assert_int_equal(weir_ndjson_decoder_offset(decoder), at);
  assert_int_equal(
      weir_ndjson_decoder_feed(decoder, text + at, size - at, 1, &used, &batch, &err),
      WEIR_OK);
  assert_int_equal(weir_ndjson_decoder_flush(decoder, &batch, &err), WEIR_OK);
  append_batch(&rows, batch);
  assert_int_equal(base_buf_terminate(&rows, &err), WEIR_OK);
  assert_string_equal((char *)rows.data, "{\"id\":1}\n{\"id\":2}\n{\"id\":4}\n");
  base_buf_done(&rows);
  weir_ndjson_decoder_free(decoder);
}

/* A line that holds the byte order mark alone is blank and is passed over with the bad row. */
static void test_skip_past_a_mark(void **state) {
  (void)state;
  static const char text[] = "\xef\xbb\xbf\n\n{\"id\":x}\n";
  weir_ndjson_decoder *decoder = new_decoder("id: int8", 10, 0);
  weir_batch *batch = NULL;
  weir_error err = {0};
  size_t used = 0, size = sizeof(text) - 1;
  assert_int_equal(weir_ndjson_decoder_feed(decoder, text, size, 1, &used, &batch, &err),
                   WEIR_E_BAD_DATA);
  weir_ndjson_decoder_skip(decoder, text, 5, 1, &used);
  assert_int_equal(used, 0); /* nothing but blank lines */
  weir_ndjson_decoder_skip(decoder, text, size, 1, &used);
  assert_int_equal(used, size);
  assert_int_equal(weir_ndjson_decoder_line(decoder), 3);
  weir_ndjson_decoder_free(decoder);
}

/* The offset after each batch is where a new decoder goes on with the next row. */
static void test_offsets_resume(void **state) {
  (void)state;
  base_buf text = {0};
  for (int i = 0; i < 50; i++) {
    assert_int_equal(
        base_buf_printf(&text, NULL, "{\"id\":%d}%s", i, i % 3 ? "\n" : "\r\n\n"),
        WEIR_OK);
  }
  for (int64_t batch_rows = 1; batch_rows < 20; batch_rows++) {
    uint64_t offset = 0, line = 0;
    int64_t rows = 0;
    while (offset < text.size) {
      weir_ndjson_decoder *decoder = new_decoder("id: int64", batch_rows, 0);
      weir_batch *batch = NULL;
      size_t used = 0;
      weir_error err = {0};
      weir_ndjson_decoder_reset(decoder, offset, line);
      assert_int_equal(
          weir_ndjson_decoder_feed(decoder, text.data + offset, text.size - offset, 1,
                                   &used, &batch, &err),
          WEIR_OK);
      offset += used;
      line = weir_ndjson_decoder_line(decoder);
      assert_int_equal(weir_ndjson_decoder_offset(decoder), offset);
      if (batch == NULL) {
        assert_int_equal(weir_ndjson_decoder_flush(decoder, &batch, &err), WEIR_OK);
      }
      if (batch != NULL) {
        const int64_t *ids = weir_batch_array(batch)->children[0]->buffers[1];
        assert_true(weir_batch_rows(batch) <= batch_rows);
        for (int64_t i = 0; i < weir_batch_rows(batch); i++)
          assert_int_equal(ids[i], rows++);
      }
      weir_batch_unref(batch);
      weir_ndjson_decoder_free(decoder);
    }
    assert_int_equal(rows, 50);
    assert_int_equal(line, 50 + 17);
  }
  base_buf_done(&text);
}

/* What the buffers hold beyond values: no validity without nulls, offsets from zero, counts. */
static void test_buffers(void **state) {
  (void)state;
  weir_schema *schema = rows_schema("a: int32; b: utf8; c: bool");
  weir_batch *batch =
      rows_batch(schema,
                 "{\"a\":1,\"b\":\"xy\",\"c\":true}\n{\"a\":2,\"b\":null,\"c\":false}"
                 "\n{\"a\":3,\"b\":\"\",\"c\":true}\n");
  const struct ArrowArray *array = weir_batch_array(batch);
  static const int32_t offsets[] = {0, 2, 2, 2};
  assert_int_equal(array->length, 3);
  assert_null(array->children[0]->buffers[0]);
  assert_int_equal(array->children[0]->null_count, 0);
  assert_int_equal(array->children[1]->null_count, 1);
  assert_int_equal(*(const uint8_t *)array->children[1]->buffers[0], 5);
  assert_memory_equal(array->children[1]->buffers[1], offsets, sizeof(offsets));
  assert_memory_equal(array->children[1]->buffers[2], "xy", 2);
  assert_int_equal(*(const uint8_t *)array->children[2]->buffers[1], 5);
  weir_batch_unref(batch);
  weir_schema_unref(schema);
}

/* A row that fails after some of its columns leaves no trace in the row after it. */
static void test_half_rows_are_cut(void **state) {
  (void)state;
  static const char text[] =
      "{\"a\":true,\"b\":\"long text of the bad row\",\"c\":null,\"d\":\"x\"}\n"
      "{\"a\":false,\"b\":\"s\",\"c\":1,\"d\":2}\n{\"a\":null,\"b\":\"t\",\"c\":2,\"d\":"
      "3}\n";
  weir_ndjson_decoder *decoder = new_decoder("a: bool; b: utf8; c: int8; d: int8", 10, 0);
  weir_batch *batch = NULL;
  weir_error err = {0};
  size_t used = 0;
  assert_int_equal(
      weir_ndjson_decoder_feed(decoder, text, sizeof(text) - 1, 1, &used, &batch, &err),
      WEIR_E_BAD_DATA);
  assert_int_equal(err.column, 3);
  weir_ndjson_decoder_skip(decoder, text, sizeof(text) - 1, 1, &used);
  assert_int_equal(weir_ndjson_decoder_feed(decoder, text + used, sizeof(text) - 1 - used,
                                            1, &used, &batch, &err),
                   WEIR_OK);
  assert_int_equal(weir_ndjson_decoder_flush(decoder, &batch, &err), WEIR_OK);
  char *got = rows_text(batch);
  assert_string_equal(got,
                      "{\"a\":false,\"b\":\"s\",\"c\":1,\"d\":2}\n"
                      "{\"a\":null,\"b\":\"t\",\"c\":2,\"d\":3}\n");
  assert_int_equal(weir_batch_array(batch)->children[2]->null_count, 0);
  free(got);
  weir_batch_unref(batch);
  weir_ndjson_decoder_free(decoder);
}

static void test_refused_decoders(void **state) {
  (void)state;
  weir_schema *schema = rows_schema("a: int8; b: int8; a: utf8");
  weir_ndjson_decoder *decoder = NULL;
  weir_error err = {0};
  assert_int_equal(weir_ndjson_decoder_new(schema, NULL, &decoder, &err), WEIR_E_SCHEMA);
  assert_non_null(strstr(err.message, "'a'"));
  weir_schema_unref(schema);
  schema = rows_schema("a: int8");
  weir_ndjson_options options = {.struct_size = sizeof(options), .batch_rows = 1048577};
  assert_int_equal(weir_ndjson_decoder_new(schema, &options, &decoder, &err),
                   WEIR_E_INVALID_CONFIG);
  weir_schema_unref(schema);
  assert_null(decoder);
  weir_ndjson_decoder_free(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_lines_and_blocks),
      cmocka_unit_test(test_keys),
      cmocka_unit_test(test_unknown_keys_refused),
      cmocka_unit_test(test_errors_tell_the_place),
      cmocka_unit_test(test_long_lines_are_bounded),
      cmocka_unit_test(test_skip_a_bad_row),
      cmocka_unit_test(test_skip_past_a_mark),
      cmocka_unit_test(test_offsets_resume),
      cmocka_unit_test(test_buffers),
      cmocka_unit_test(test_half_rows_are_cut),
      cmocka_unit_test(test_refused_decoders),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
