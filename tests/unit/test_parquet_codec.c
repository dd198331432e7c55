/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <lz4.h>
#include <snappy-c.h>
#include <zstd.h>

#include "parquet/codec.h"

static void test_parse(void **unused) {
  (void)unused;
  int32_t codec = -1, level = -1;
  weir_error err = {0};
  assert_int_equal(weir_parquet_codec_parse("zstd(3)", &codec, &level, &err), WEIR_OK);
  assert_int_equal(codec, WEIR_PARQUET_ZSTD);
  assert_int_equal(level, 3);
  assert_int_equal(weir_parquet_codec_parse("lz4", &codec, &level, &err), WEIR_OK);
  assert_int_equal(codec, WEIR_PARQUET_LZ4);
  assert_int_equal(level, 0);
  assert_int_equal(weir_parquet_codec_parse("gzip(9)", &codec, &level, &err), WEIR_OK);
  const char *wrong[] = {"",        "brotli",   "zstd(",  "zstd()",
                         "zstd(x)", "zstd(23)", "lz4(1)", "gzip(0)",
                         "zstd(3",  "zstd(3))", "ZSTD",   "snappy(1)"};
  for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
    codec = 77;
    assert_int_equal(weir_parquet_codec_parse(wrong[i], &codec, &level, &err),
                     WEIR_E_INVALID_CONFIG);
    assert_int_equal(codec, 77);
    assert_true(strlen(err.message) > 10);
  }
}

/* What is stored is a frame that the codec's own decoder takes. */
static void test_store(void **unused) {
  (void)unused;
  const size_t sizes[] = {0,   1,     14,    15,    16,     269,    270,
                          271, 65535, 65536, 65537, 131072, 131073, 400000};
  weir_error err = {0};
  uint8_t *data = malloc(400000), *back = malloc(400000 + 8);
  for (size_t i = 0; i < 400000; i++) data[i] = (uint8_t)(i * 2654435761u >> 13);
  for (int which = WEIR_PARQUET_ZSTD; which <= WEIR_PARQUET_LZ4; which++) {
    parquet_codec codec;
    assert_int_equal(codec_init(&codec, which, 0, &err), WEIR_OK);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
      size_t size = sizes[i], got = 400000;
      assert_int_equal(codec_store(&codec, data, size, &err), WEIR_OK);
      const char *in = (const char *)codec.out.data;
      if (which == WEIR_PARQUET_ZSTD) {
        got = ZSTD_decompress(back, size, in, codec.out.size);
      } else if (which == WEIR_PARQUET_SNAPPY) {
        assert_int_equal(snappy_uncompress(in, codec.out.size, (char *)back, &got),
                         SNAPPY_OK);
      } else {
        got =
            (size_t)LZ4_decompress_safe(in, (char *)back, (int)codec.out.size, (int)size);
      }
      assert_int_equal(got, size);
      if (size > 0) assert_memory_equal(back, data, size);
    }
    codec_done(&codec);
  }
  free(data);
  free(back);
}

static size_t decode(const parquet_codec *codec, uint8_t *back, size_t size) {
  const char *in = (const char *)codec->out.data;
  if (codec->id == PARQUET_ZSTD) return ZSTD_decompress(back, size, in, codec->out.size);
  if (codec->id == PARQUET_LZ4_RAW) {
    return (size_t)LZ4_decompress_safe(in, (char *)back, (int)codec->out.size, (int)size);
  }
  size_t got = size;
  return snappy_uncompress(in, codec->out.size, (char *)back, &got) == SNAPPY_OK ? got
                                                                                 : 0;
}

/* Noise that is stored, then text that repeats itself or has but a few bytes. */
static void test_compress_rest(void **unused) {
  (void)unused;
  static const int32_t codecs[] = {WEIR_PARQUET_ZSTD, WEIR_PARQUET_LZ4,
                                   WEIR_PARQUET_SNAPPY};
  static const size_t stored[] = {0, 1, 14, 15, 16, 269, 270, 271, 5000, 70000};
  static const size_t rests[] = {1, 4, 13, 14, 15, 16, 30, 300, 3000, 200000};
  enum { SIZE = 70000 + 200000 };
  weir_error err = {0};
  uint8_t *data = malloc(SIZE), *back = malloc(SIZE);
  for (int way = 0; way < 2; way++) {
    for (size_t c = 0; c < BASE_COUNT(codecs); c++) {
      parquet_codec codec;
      assert_int_equal(codec_init(&codec, codecs[c], 0, &err), WEIR_OK);
      for (size_t i = 0; i < BASE_COUNT(stored); i++) {
        for (size_t k = 0; k < BASE_COUNT(rests); k++) {
          size_t size = stored[i] + rests[k];
          for (size_t b = 0; b < size; b++) {
            uint8_t noise = (uint8_t)((b * 2654435761u) >> 13);
            data[b] = b < stored[i] || way == 0 ? noise : (uint8_t)(b % 5);
          }
          assert_int_equal(codec_compress_rest(&codec, data, size, stored[i], &err),
                           WEIR_OK);
          assert_int_equal(decode(&codec, back, size), size);
          assert_memory_equal(back, data, size);
        }
      }
      codec_done(&codec);
    }
  }
  free(data);
  free(back);
}

/* Whether a decoder with a window of 8 MiB (RFC 8878, 3.1.1.1.2) reads the frame as it comes. */
static bool streams(const base_buf *frame, uint8_t *back, const uint8_t *data,
                    size_t size) {
  ZSTD_DCtx *decoder = ZSTD_createDCtx();
  assert_false(ZSTD_isError(ZSTD_DCtx_setParameter(decoder, ZSTD_d_windowLogMax, 23)));
  ZSTD_inBuffer in = {frame->data, 0, 0};
  ZSTD_outBuffer out = {back, size, 0};
  size_t left = 1;
  while (left != 0 && !ZSTD_isError(left) && in.size < frame->size) {
    in.size = frame->size - in.size < 4096 ? frame->size : in.size + 4096;
    left = ZSTD_decompressStream(decoder, &out, &in);
  }
  ZSTD_freeDCtx(decoder);
  return left == 0 && out.pos == size && memcmp(back, data, size) == 0;
}

static void test_large_pages_need_no_large_window(void **unused) {
  (void)unused;
  enum { LIMIT = 8 << 20 };
  weir_error err = {0};
  uint8_t *data = malloc(LIMIT + 1), *back = malloc(LIMIT + 1);
  for (size_t i = 0; i <= LIMIT; i++) data[i] = (uint8_t)(i * 2654435761u >> 13) & 15;
  parquet_codec codec;
  assert_int_equal(codec_init(&codec, WEIR_PARQUET_ZSTD, 0, &err), WEIR_OK);
  for (size_t size = LIMIT; size <= LIMIT + 1; size++) {
    assert_int_equal(codec_store(&codec, data, size, &err), WEIR_OK);
    assert_true(streams(&codec.out, back, data, size));
    assert_int_equal(codec_compress_rest(&codec, data, size, size / 2, &err), WEIR_OK);
    assert_true(streams(&codec.out, back, data, size));
  }
  codec_done(&codec);
  free(data);
  free(back);
}

static void test_levels_are_checked(void **unused) {
  (void)unused;
  parquet_codec codec;
  weir_error err = {0};
  assert_int_equal(codec_init(&codec, WEIR_PARQUET_ZSTD, 23, &err),
                   WEIR_E_INVALID_CONFIG);
  codec_done(&codec);
  assert_int_equal(codec_init(&codec, WEIR_PARQUET_GZIP, 10, &err),
                   WEIR_E_INVALID_CONFIG);
  codec_done(&codec);
  assert_int_equal(codec_init(&codec, 99, 0, &err), WEIR_E_INVALID_CONFIG);
  codec_done(&codec);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_parse),
      cmocka_unit_test(test_store),
      cmocka_unit_test(test_compress_rest),
      cmocka_unit_test(test_large_pages_need_no_large_window),
      cmocka_unit_test(test_levels_are_checked),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
