/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <weir/options.h>

#include "base/base.h"

static void test_buf_grows_and_prints(void **state) {
  (void)state;
  base_buf buf = {0};
  for (int i = 0; i < 1000; i++) {
    assert_int_equal(base_buf_printf(&buf, NULL, "%03d,", i), WEIR_OK);
  }
  assert_int_equal(buf.size, 4000);
  assert_memory_equal(buf.data + 3996, "999,", 4);
  base_buf_clear(&buf);
  assert_int_equal(buf.size, 0);
  assert_int_equal(base_buf_append_str(&buf, "ab", NULL), WEIR_OK);
  assert_int_equal(base_buf_append_byte(&buf, 'c', NULL), WEIR_OK);
  assert_int_equal(base_buf_append(&buf, NULL, 0, NULL), WEIR_OK);
  assert_int_equal(base_buf_terminate(&buf, NULL), WEIR_OK);
  assert_string_equal((char *)buf.data, "abc");
  assert_int_equal(buf.size, 3);
  base_buf_done(&buf);
  assert_null(buf.data);
}

static void test_buf_refuses_overflow_and_stays(void **state) {
  (void)state;
  weir_error err = {0};
  base_buf buf = {0};
  assert_int_equal(base_buf_append_str(&buf, "kept", NULL), WEIR_OK);
  assert_int_equal(base_buf_reserve(&buf, SIZE_MAX, &err), WEIR_E_NOMEM);
  assert_int_equal(err.code, WEIR_E_NOMEM);
  assert_int_equal(base_buf_reserve(&buf, SIZE_MAX / 2 - 64, &err), WEIR_E_NOMEM);
  assert_int_equal(buf.size, 4);
  assert_memory_equal(buf.data, "kept", 4);
  base_buf_done(&buf);
}

static void test_buf_steal(void **state) {
  (void)state;
  base_buf buf = {0};
  weir_bytes bytes = {0};
  base_buf_steal(&buf, &bytes);
  assert_non_null(bytes.release);
  assert_int_equal(bytes.size, 0);
  weir_bytes_release(&bytes);
  assert_int_equal(base_buf_append_str(&buf, "xyz", NULL), WEIR_OK);
  base_buf_steal(&buf, &bytes);
  assert_null(buf.data);
  assert_memory_equal(bytes.data, "xyz", 3);
  weir_bytes_release(&bytes);
  char *text = base_buf_steal_str(&buf, NULL);
  assert_string_equal(text, "");
  free(text);
}

static void test_calloc_checks_the_product(void **state) {
  (void)state;
  weir_error err = {0};
  assert_null(base_calloc(SIZE_MAX / 2, 3, &err));
  assert_int_equal(err.code, WEIR_E_NOMEM);
  assert_null(base_strndup("x", SIZE_MAX, NULL));
  void *empty = base_calloc(0, 8, NULL);
  assert_non_null(empty);
  free(empty);
}

static void test_sizes(void **state) {
  (void)state;
  static const struct {
    const char *text;
    uint64_t value;
  } good[] = {
      {"0", 0},
      {"17", 17},
      {"64MiB", 64u << 20},
      {"64 MiB", 64u << 20},
      {"500kB", 500000},
      {"1TB", UINT64_C(1000000000000)},
      {"9223372036854775807", INT64_MAX},
      {"8388607TiB", UINT64_C(8388607) << 40},
  };
  for (size_t i = 0; i < BASE_COUNT(good); i++) {
    uint64_t value = 1;
    assert_int_equal(base_parse_size(good[i].text, &value, NULL), WEIR_OK);
    assert_true(value == good[i].value);
  }
  static const char *const bad[] = {"",
                                    "MiB",
                                    "-1",
                                    "1.5GiB",
                                    "64mib",
                                    "64MiBx",
                                    "8388608TiB",
                                    "0x10",
                                    "+1",
                                    "18446744073709551616",
                                    "9223372036854775808"};
  for (size_t i = 0; i < BASE_COUNT(bad); i++) {
    uint64_t value = 77;
    weir_error err = {0};
    assert_int_equal(base_parse_size(bad[i], &value, &err), WEIR_E_INVALID_CONFIG);
    assert_true(value == 77);
    assert_non_null(strstr(err.message, "is not a size"));
  }
}

static void test_durations(void **state) {
  (void)state;
  int64_t ns = 1;
  assert_int_equal(base_parse_duration("250ms", &ns, NULL), WEIR_OK);
  assert_true(ns == 250 * BASE_NS_PER_MS);
  assert_int_equal(base_parse_duration("7d", &ns, NULL), WEIR_OK);
  assert_true(ns == 7 * 86400 * BASE_NS_PER_S);
  assert_int_equal(base_parse_duration("0", &ns, NULL), WEIR_OK);
  assert_true(ns == 0);
  static const char *const bad[] = {"10",  "s",       "10 sec", "1.5s",
                                    "-1s", "106752d", "",       "10S"};
  for (size_t i = 0; i < BASE_COUNT(bad); i++) {
    ns = 77;
    assert_int_equal(base_parse_duration(bad[i], &ns, NULL), WEIR_E_INVALID_CONFIG);
    assert_true(ns == 77);
  }
}

static void test_integers(void **state) {
  (void)state;
  int64_t value = 0;
  assert_int_equal(base_parse_int("-5", -5, 5, &value, NULL), WEIR_OK);
  assert_true(value == -5);
  assert_int_equal(base_parse_int("9223372036854775807", 0, INT64_MAX, &value, NULL),
                   WEIR_OK);
  static const char *const bad[] = {
      "", " 1", "+1", "1 ", "6", "-6", "x", "-", "9223372036854775808"};
  for (size_t i = 0; i < BASE_COUNT(bad); i++) {
    assert_int_equal(base_parse_int(bad[i], -5, 5, &value, NULL), WEIR_E_INVALID_CONFIG);
  }
}

static void test_nearest_name(void **state) {
  (void)state;
  static const char *const names[] = {"path", "format", "compression", "schema",
                                      "batch_rows"};
  assert_string_equal(base_nearest_name("compresion", names, 5), "compression");
  assert_string_equal(base_nearest_name("pahT", names, 5), "path"); /* one swap */
  assert_string_equal(base_nearest_name("batchrows", names, 5), "batch_rows");
  assert_null(base_nearest_name("endpoint", names, 5));
  assert_null(base_nearest_name("x", names, 5));
  assert_null(base_nearest_name("", names, 5));
  char longer[200];
  memset(longer, 'p', sizeof(longer) - 1);
  longer[sizeof(longer) - 1] = 0;
  assert_null(base_nearest_name(longer, names, 5));
}

static void test_utf8(void **state) {
  (void)state;
  static const char *const good[] = {"",
                                     "plain ascii text",
                                     "\xC2\x80",
                                     "\xED\x9F\xBF",
                                     "\xEF\xBF\xBD",
                                     "\xF4\x8F\xBF\xBF",
                                     "abcdefg\xC3\xA9"};
  for (size_t i = 0; i < BASE_COUNT(good); i++) {
    assert_true(base_utf8_valid(good[i], strlen(good[i])));
  }
  static const char *const bad[] = {"\x80",
                                    "\xC0\xAF",
                                    "\xC1\xBF",
                                    "\xC2",
                                    "\xE0\x80\x80",
                                    "\xED\xA0\x80",
                                    "\xE2\x82",
                                    "\xF5\x80\x80\x80",
                                    "\xF4\x90\x80\x80",
                                    "\xF0\x80\x80\x80",
                                    "\xE2(\xA1",
                                    "12345678\xFF",
                                    "1234567\xE2"};
  for (size_t i = 0; i < BASE_COUNT(bad); i++) {
    assert_false(base_utf8_valid(bad[i], strlen(bad[i])));
  }
}

static void test_affixes(void **state) {
  (void)state;
  assert_true(base_starts_with("abc", "ab"));
  assert_true(base_starts_with("abc", ""));
  assert_false(base_starts_with("a", "ab"));
  assert_true(base_ends_with("f.ndjson.gz", ".gz"));
  assert_false(base_ends_with("gz", ".gz"));
}

struct seen {
  int calls;
  char text[64];
};
static void seen_write(void *ctx, int32_t level, const char *where, const char *text) {
  struct seen *seen = ctx;
  seen->calls++;
  snprintf(seen->text, sizeof(seen->text), "%s %s: %s", base_log_level_name(level), where,
           text);
}

static void test_log_levels_and_sink(void **state) {
  (void)state;
  struct seen seen = {0};
  base_log log = {.write = seen_write, .ctx = &seen, .level = 2};
  base_log_printf(&log, 3, "store", "dropped");
  assert_int_equal(seen.calls, 0);
  base_log_printf(&log, 2, "store", "kept %d", 5);
  assert_int_equal(seen.calls, 1);
  assert_string_equal(seen.text, "warn store: kept 5");
  base_log_printf(NULL, 1, "store", "nowhere");
  base_log_printf(&(base_log){.level = 4}, 1, "store", "nowhere");
  int32_t level = 0;
  assert_true(base_log_level_parse("debug", &level));
  assert_int_equal(level, 4);
  assert_false(base_log_level_parse("loud", &level));
}

static void test_what_stays_on_this_machine(void **state) {
  (void)state;
  static const char *const local[] = {"",
                                      "localhost",
                                      "LocalHost",
                                      "127.0.0.1",
                                      "127.8.9.1",
                                      "::1",
                                      "/run/postgresql",
                                      "@abstract",
                                      "localhost,127.0.0.1,/tmp",
                                      ","};
  static const char *const remote[] = {"db.example",
                                       "127.example",
                                       "127.0.0.1.example",
                                       "localhost.example",
                                       "128.0.0.1",
                                       "0.0.0.0",
                                       "::2",
                                       "127.0.0.1,db.example",
                                       "/tmp,db",
                                       "local",
                                       "localhost "};
  for (size_t i = 0; i < BASE_COUNT(local); i++)
    if (!weir_hosts_are_local(local[i])) fail_msg("%s leaves", local[i]);
  for (size_t i = 0; i < BASE_COUNT(remote); i++)
    if (weir_hosts_are_local(remote[i])) fail_msg("%s stays", remote[i]);
  char name[400]; /* the rest of a name counts */
  snprintf(name, sizeof(name), "%0*d", 300, 0);
  assert_int_equal(weir_hosts_are_local(name), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_buf_grows_and_prints),
      cmocka_unit_test(test_buf_refuses_overflow_and_stays),
      cmocka_unit_test(test_buf_steal),
      cmocka_unit_test(test_calloc_checks_the_product),
      cmocka_unit_test(test_sizes),
      cmocka_unit_test(test_durations),
      cmocka_unit_test(test_integers),
      cmocka_unit_test(test_nearest_name),
      cmocka_unit_test(test_utf8),
      cmocka_unit_test(test_affixes),
      cmocka_unit_test(test_what_stays_on_this_machine),
      cmocka_unit_test(test_log_levels_and_sink),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
