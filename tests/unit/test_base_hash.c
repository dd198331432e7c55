/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"

/* FIPS 180-4, the "abc" example. */
static const char abc_digest[] =
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

static void test_sha256_one_shot(void **state) {
  (void)state;
  uint8_t digest[BASE_SHA256_SIZE];
  char text[2 * BASE_SHA256_SIZE + 1];
  assert_int_equal(base_sha256("abc", 3, digest, NULL), WEIR_OK);
  weir_hex_encode(digest, sizeof(digest), text);
  assert_string_equal(text, abc_digest);
  assert_int_equal(base_sha256(NULL, 0, digest, NULL), WEIR_OK);
  weir_hex_encode(digest, sizeof(digest), text);
  assert_string_equal(text,
                      "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

static void test_sha256_stream_starts_over(void **state) {
  (void)state;
  base_sha256_stream stream = {0};
  base_sha256_done(&stream);
  assert_int_equal(base_sha256_init(&stream, NULL), WEIR_OK);
  for (int round = 0; round < 2; round++) {
    uint8_t digest[BASE_SHA256_SIZE];
    char text[2 * BASE_SHA256_SIZE + 1];
    assert_int_equal(base_sha256_update(&stream, "a", 1, NULL), WEIR_OK);
    assert_int_equal(base_sha256_update(&stream, "bc", 2, NULL), WEIR_OK);
    assert_int_equal(base_sha256_final(&stream, digest, NULL), WEIR_OK);
    weir_hex_encode(digest, sizeof(digest), text);
    assert_string_equal(text, abc_digest);
  }
  base_sha256_done(&stream);
}

static void test_xxh3(void **state) {
  (void)state;
  /* The reference value of XXH3_64bits for empty input (xxHash's own sanity test). */
  assert_true(base_xxh3(NULL, 0, 0) == UINT64_C(0x2D06800538D394C2));
  assert_true(base_xxh3("a", 1, 0) != base_xxh3("a", 1, 1));
}

static void test_hex(void **state) {
  (void)state;
  uint8_t bytes[3] = {9, 9, 9};
  assert_true(weir_hex_decode("00fFa5", bytes, 3));
  assert_memory_equal(bytes, "\x00\xFF\xA5", 3);
  assert_false(weir_hex_decode("00ff", bytes, 3));
  assert_false(weir_hex_decode("00ffa5b", bytes, 3));
  assert_false(weir_hex_decode("00ffg5", bytes, 3));
  assert_true(weir_hex_decode("", bytes, 0));
}

static void test_uuid(void **state) {
  (void)state;
  uint8_t uuid[WEIR_UUID_SIZE], again[WEIR_UUID_SIZE];
  char text[WEIR_UUID_TEXT];
  assert_int_equal(base_uuid_new(uuid, NULL), WEIR_OK);
  weir_uuid_format(uuid, text);
  assert_int_equal(strlen(text), 36);
  assert_int_equal(text[14], '4');
  assert_non_null(strchr("89ab", text[19]));
  assert_true(weir_uuid_parse(text, again));
  assert_memory_equal(uuid, again, sizeof(uuid));
  assert_true(weir_uuid_parse("00112233-4455-6677-8899-AABBCCDDEEFF", again));
  assert_memory_equal(
      again, "\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xAA\xBB\xCC\xDD\xEE\xFF", 16);
  static const char *const bad[] = {"",
                                    "00112233-4455-6677-8899-AABBCCDDEEF",
                                    "00112233-4455-6677-8899-AABBCCDDEEFFF",
                                    "0011223-34455-6677-8899-AABBCCDDEEFF",
                                    "00112233-4455-6677-8899-AABBCCDDEEFG",
                                    "00112233445566778899AABBCCDDEEFF"};
  for (size_t i = 0; i < BASE_COUNT(bad); i++)
    assert_false(weir_uuid_parse(bad[i], again));
}

static void test_random_differs(void **state) {
  (void)state;
  uint8_t a[32] = {0}, b[32] = {0};
  assert_int_equal(base_random(a, sizeof(a), NULL), WEIR_OK);
  assert_int_equal(base_random(b, sizeof(b), NULL), WEIR_OK);
  assert_memory_not_equal(a, b, sizeof(a));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_sha256_one_shot),
      cmocka_unit_test(test_sha256_stream_starts_over),
      cmocka_unit_test(test_xxh3),
      cmocka_unit_test(test_hex),
      cmocka_unit_test(test_uuid),
      cmocka_unit_test(test_random_differs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
