/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <weir/ndjson.h>
#include <weir/parquet.h>
#include <weir/parquet_read.h>

#include "base/base.h"
#include "parquet/decode.h"
#include "parquet/encode.h"

/* Files in memory, of which each read is checked, and which end at the end of their memory. */

typedef struct file {
  uint8_t *data;
  size_t size;
} file;

static weir_status file_read(void *ctx, uint64_t offset, void *data, size_t size,
                             weir_error *err) {
  const file *f = ctx;
  (void)err;
  assert_true(offset <= f->size && size <= f->size - offset);
  memcpy(data, f->data + offset, size);
  return WEIR_OK;
}

static weir_status collect(void *ctx, const void *data, size_t size, weir_error *err) {
  return base_buf_append(ctx, data, size, err);
}

static const char *const names[] = {"i", "t", "b", "n", "d", "l", "s", "m"};
static const char *const types[] = {"int64",
                                    "utf8",
                                    "bool",
                                    "int16 not null",
                                    "decimal128(20, 3)",
                                    "list<struct<a: list<utf8>, b: float32>>",
                                    "struct<x: uint32, y: binary>",
                                    "map<utf8, int32>"};

static void put_rows(base_buf *text, int rows) {
  for (int i = 0; i < rows; i++) {
    const char *list = i % 4 == 0   ? "null"
                       : i % 4 == 1 ? "[]"
                                    : "[{\"a\":[\"p\",null],\"b\":1.5},null,{\"a\":[]}]";
    assert_int_equal(
        base_buf_printf(
            text, NULL,
            "{\"i\":%s%d,\"t\":%s,\"b\":%s,\"n\":%d,\"d\":\"%d.125\",\"l\":%s,\"s\":%s,"
            "\"m\":{\"k%d\":%d,\"j\":null}}\n",
            i % 3 == 0 ? "-1" : "7", i, i % 5 == 0 ? "null" : "\"text of a row\"",
            i % 7 == 0   ? "null"
            : i % 2 == 0 ? "true"
                         : "false",
            i % 1000, i, list, i % 3 == 0 ? "null" : "{\"x\":5,\"y\":\"AAEC\"}", i, i),
        WEIR_OK);
  }
}

static weir_batch *sample(int rows) {
  base_buf text = {0};
  weir_schema *schema = NULL;
  weir_batch *batch = NULL;
  weir_ndjson_decoder *decoder = NULL;
  weir_ndjson_options options = {.struct_size = sizeof(options), .batch_rows = rows};
  weir_error err = {0};
  size_t used = 0;
  put_rows(&text, rows);
  assert_int_equal(weir_schema_from_types(names, types, 8, &schema, &err), WEIR_OK);
  assert_int_equal(weir_ndjson_decoder_new(schema, &options, &decoder, &err), WEIR_OK);
  weir_status status =
      weir_ndjson_decoder_feed(decoder, text.data, text.size, 1, &used, &batch, &err);
  if (status == WEIR_OK && batch == NULL)
    status = weir_ndjson_decoder_flush(decoder, &batch, &err);
  assert_string_equal(err.message, "");
  assert_int_equal(status, WEIR_OK);
  assert_int_equal(weir_batch_rows(batch), rows);
  weir_ndjson_decoder_free(decoder);
  weir_schema_unref(schema);
  base_buf_done(&text);
  return batch;
}

static file write_file(weir_batch *batch, int32_t codec, uint64_t group_rows) {
  weir_parquet_options options;
  weir_parquet_writer *writer = NULL;
  weir_error err = {0};
  base_buf out = {0};
  options.struct_size = sizeof(options);
  weir_parquet_options_init(&options);
  options.codec = codec;
  options.row_group_rows = group_rows;
  options.page_bytes = 300;
  assert_int_equal(weir_parquet_writer_new(weir_batch_schema(batch), &options, collect,
                                           &out, &writer, &err),
                   WEIR_OK);
  assert_int_equal(weir_parquet_writer_write(writer, batch, &err), WEIR_OK);
  assert_int_equal(weir_parquet_writer_finish(writer, NULL, &err), WEIR_OK);
  weir_parquet_writer_free(writer);
  return (file){out.data, out.size};
}

static void put_text(weir_batch *batch, base_buf *out) {
  weir_ndjson_encoder *encoder = NULL;
  const uint8_t *text = NULL;
  size_t size = 0;
  weir_error err = {0};
  assert_int_equal(weir_ndjson_encoder_new(weir_batch_schema(batch), &encoder, &err),
                   WEIR_OK);
  assert_int_equal(weir_ndjson_encoder_write(encoder, batch, &text, &size, &err),
                   WEIR_OK);
  assert_int_equal(base_buf_append(out, text, size, NULL), WEIR_OK);
  weir_ndjson_encoder_free(encoder);
}

/* All rows as text, if the file can be read to its end. */
static weir_status read_file(file *f, int32_t batch_rows, base_buf *out,
                             weir_error *err) {
  weir_parquet_read_options options = {.struct_size = sizeof(options),
                                       .batch_rows = batch_rows,
                                       .max_batch_bytes = 16 << 20};
  weir_parquet_reader *reader = NULL;
  weir_batch *batch = NULL;
  weir_status status =
      weir_parquet_reader_new(file_read, f, f->size, "mem", &options, &reader, err);
  while (status == WEIR_OK) {
    status = weir_parquet_reader_next(reader, &batch, err);
    if (status != WEIR_OK || batch == NULL) break;
    if (out != NULL) put_text(batch, out);
    weir_batch_unref(batch);
    batch = NULL;
  }
  weir_parquet_reader_free(reader);
  return status;
}

static void test_round_trip(void **state) {
  (void)state;
  weir_batch *batch = sample(1000);
  base_buf want = {0};
  put_text(batch, &want);
  for (int32_t codec = WEIR_PARQUET_NONE; codec <= WEIR_PARQUET_GZIP; codec++) {
    file f = write_file(batch, codec, 370);
    for (int32_t rows = 1; rows < 2000; rows = rows * 7 + 3) {
      base_buf got = {0};
      weir_error err = {0};
      weir_status status = read_file(&f, rows, &got, &err);
      assert_string_equal(err.message, "");
      assert_int_equal(status, WEIR_OK);
      assert_int_equal(got.size, want.size);
      assert_memory_equal(got.data, want.data, want.size);
      base_buf_done(&got);
    }
    free(f.data);
  }
  base_buf_done(&want);
  weir_batch_unref(batch);
}

/* The file in a block of its own, so that the sanitizer sees a read behind it. */
static weir_status read_part(const file *whole, size_t size, weir_error *err) {
  file part = {malloc(size + 1), size};
  assert_non_null(part.data);
  memcpy(part.data, whole->data, size);
  weir_status status = read_file(&part, 0, NULL, err);
  free(part.data);
  return status;
}

static void test_every_cut_is_told(void **state) {
  (void)state;
  weir_batch *batch = sample(20);
  file f = write_file(batch, WEIR_PARQUET_NONE, 0);
  for (size_t size = 0; size < f.size; size++) {
    weir_error err = {0};
    assert_int_equal(read_part(&f, size, &err), WEIR_E_CORRUPT);
  }
  weir_error err = {0};
  assert_int_equal(read_part(&f, f.size, &err), WEIR_OK);
  free(f.data);
  weir_batch_unref(batch);
}

static void test_flipped_bits_do_no_harm(void **state) {
  (void)state;
  weir_batch *batch = sample(20);
  for (int32_t codec = WEIR_PARQUET_NONE; codec <= WEIR_PARQUET_ZSTD; codec++) {
    file f = write_file(batch, codec, 0);
    for (size_t i = 0; i < f.size; i++) {
      uint8_t before = f.data[i];
      f.data[i] ^= (uint8_t)(1u << (i * 5 % 8));
      weir_error err = {0};
      weir_status status = read_file(&f, 0, NULL, &err);
      assert_true(status == WEIR_OK || err.message[0] != '\0');
      f.data[i] = before;
    }
    free(f.data);
  }
  weir_batch_unref(batch);
}

/* ---- decoders against the encoders ---- */

static uint64_t random_state = 88172645463325252u;
static uint64_t random64(void) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  return random_state ^= random_state << 17;
}

static void test_hybrid(void **state) {
  (void)state;
  enum { N = 777 };
  uint32_t values[N + 8], want[N], got[N];
  for (unsigned width = 0; width <= 32; width++) {
    for (size_t i = 0; i < N; i++) {
      bool same = i > 0 && random64() % 8 != 0 && i / 100 % 2 == 0;
      want[i] =
          same ? want[i - 1] : (uint32_t)(random64() & ((UINT64_C(1) << width) - 1));
    }
    memcpy(values, want, sizeof(want));
    uint8_t *out = calloc(1, encode_hybrid_bound(N, width) + 2 * PARQUET_SLACK);
    assert_non_null(out);
    size_t size = (size_t)(encode_hybrid(values, N, width, out) - out);
    for (size_t step = 1; step <= N; step = step * 3 + 1) {
      decode_hybrid in;
      decode_hybrid_init(&in, out, size, width);
      for (size_t i = 0; i < N; i += step)
        assert_true(decode_hybrid_u32(&in, got + i, N - i < step ? N - i : step));
      assert_memory_equal(got, want, sizeof(want));
    }
    if (width <= 8) {
      uint8_t bytes[N + 8];
      decode_hybrid in;
      decode_hybrid_init(&in, out, size, width);
      assert_true(decode_hybrid_u8(&in, bytes, 13) &&
                  decode_hybrid_u8(&in, bytes + 13, N - 13));
      for (size_t i = 0; i < N; i++) assert_int_equal(bytes[i], want[i]);
    }
    if (width > 0) {
      decode_hybrid in;
      decode_hybrid_init(&in, out, size / 2, width);
      assert_false(decode_hybrid_u32(&in, got, N));
    }
    free(out);
  }
}

static void test_delta(void **state) {
  (void)state;
  enum { N = 1000 };
  uint64_t want[N], got[N];
  for (unsigned bits = 0; bits <= 64; bits++) {
    uint64_t mask = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
    for (size_t i = 0; i < N; i++)
      want[i] = random64() & (i < 500 ? mask : mask >> bits / 2);
    uint8_t *out = calloc(1, encode_delta_bound(N, 8) + 2 * PARQUET_SLACK);
    assert_non_null(out);
    for (size_t n = 0; n <= N; n = n * 3 + 1) {
      size_t size = (size_t)(encode_delta64(want, n, NULL, out) - out);
      decode_delta in;
      assert_true(decode_delta_init(&in, out, size));
      assert_ptr_equal(decode_delta_end(&in), out + size);
      for (size_t i = 0; i < n; i += 77)
        assert_true(decode_delta_u64(&in, got + i, n - i < 77 ? n - i : 77));
      assert_memory_equal(got, want, n * sizeof(*got));
      assert_false(decode_delta_u64(&in, got, 1));
    }
    free(out);
  }
}

/* A caller's struct may be shorter than the library's, or longer. */
static void test_options_of_any_age(void **unused) {
  (void)unused;
  struct {
    weir_parquet_options options;
    uint8_t later[8];
  } room;
  memset(&room, 0xaa, sizeof(room));
  room.options.struct_size = offsetof(weir_parquet_options, encodings);
  weir_parquet_options_init(&room.options);
  assert_int_equal(room.options.struct_size, offsetof(weir_parquet_options, encodings));
  assert_int_equal(room.options.codec, WEIR_PARQUET_ZSTD);
  assert_int_equal(room.options.level, 0);
  assert_int_equal(room.options.encodings, (int32_t)0xaaaaaaaa);
  room.options.struct_size = sizeof(room);
  weir_parquet_options_init(&room.options);
  assert_int_equal(room.options.encodings, WEIR_PARQUET_COMPATIBLE);
  assert_int_equal(room.options.n_metadata, 0);
  assert_int_equal(room.later[0], 0xaa);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_options_of_any_age),
      cmocka_unit_test(test_hybrid),
      cmocka_unit_test(test_delta),
      cmocka_unit_test(test_round_trip),
      cmocka_unit_test(test_every_cut_is_told),
      cmocka_unit_test(test_flipped_bits_do_no_harm),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
