/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"

static void test_layout_is_frozen(void **state) {
  (void)state;
  assert_int_equal(sizeof(weir_error), 1024);
}

static void test_set_fills_everything(void **state) {
  (void)state;
  weir_error err;
  memset(&err, 0xAA, sizeof(err));
  assert_int_equal(weir_error_set(&err, WEIR_E_SCHEMA, WEIR_ERR_BAD_DATA, "column %d", 7),
                   WEIR_E_SCHEMA);
  assert_int_equal(err.code, WEIR_E_SCHEMA);
  assert_int_equal(err.flags, WEIR_ERR_BAD_DATA);
  assert_int_equal(err.vendor_code, 0);
  assert_int_equal(err.row, -1);
  assert_int_equal(err.column, -1);
  assert_string_equal(err.sqlstate, "");
  assert_string_equal(err.message, "column 7");
}

static void test_null_is_accepted(void **state) {
  (void)state;
  assert_int_equal(weir_error_set(NULL, WEIR_E_IO, 0, "x"), WEIR_E_IO);
  assert_int_equal(weir_error_errno(NULL, ENOENT, "x"), WEIR_E_IO);
  assert_int_equal(weir_error_at(NULL, WEIR_E_BAD_DATA, 1, 2), WEIR_E_BAD_DATA);
  assert_int_equal(weir_error_prefix(NULL, WEIR_E_BAD_DATA, "x"), WEIR_E_BAD_DATA);
}

static void test_long_message_is_cut_at_a_character(void **state) {
  (void)state;
  char text[1200];
  for (size_t shift = 0; shift < 4; shift++) {
    weir_error err = {0};
    memset(text, 'a', shift);
    size_t n = shift;
    while (n + 3 < sizeof(text)) {
      memcpy(text + n, "\xE2\x82\xAC", 3); /* the euro sign */
      n += 3;
    }
    text[n] = 0;
    weir_error_set(&err, WEIR_E_IO, 0, "%s", text);
    size_t kept = strlen(err.message);
    assert_in_range(kept, 990, 993);
    assert_true(base_utf8_valid(err.message, kept));
  }
}

static void test_errno_keeps_the_reason(void **state) {
  (void)state;
  char path[1500];
  weir_error err = {0};
  memset(path, 'p', sizeof(path) - 1);
  path[sizeof(path) - 1] = 0;
  weir_error_errno(&err, ENOSPC, "cannot write %s", path);
  assert_int_equal(err.code, WEIR_E_IO);
  assert_int_equal(err.vendor_code, ENOSPC);
  assert_int_equal(err.flags, WEIR_ERR_RETRIABLE);
  assert_true(base_ends_with(err.message, ": No space left on device"));
  weir_error_errno(&err, EACCES, "cannot open f");
  assert_string_equal(err.message, "cannot open f: Permission denied");
  assert_int_equal(err.flags, 0);
}

static void test_prefix_and_place(void **state) {
  (void)state;
  weir_error err = {0};
  weir_error_set(&err, WEIR_E_BAD_DATA, WEIR_ERR_BAD_DATA, "not a number");
  assert_int_equal(weir_error_at(&err, 0, 41, 3), WEIR_E_BAD_DATA);
  assert_int_equal(weir_error_prefix(&err, 0, "source %s", "orders"), WEIR_E_BAD_DATA);
  assert_string_equal(err.message, "source orders: not a number");
  assert_int_equal(err.row, 41);
  assert_int_equal(err.column, 3);
  assert_int_equal(err.flags, WEIR_ERR_BAD_DATA);
}

static void test_own_message_as_argument(void **state) {
  (void)state;
  weir_error err = {0};
  weir_error_set(&err, WEIR_E_IO, 0, "inner");
  weir_error_set(&err, WEIR_E_IO, 0, "outer (%s)", err.message);
  assert_string_equal(err.message, "outer (inner)");
}

static void test_passwords_in_uris_are_masked(void **state) {
  (void)state;
  static const char *const texts[][2] = {
      {"got 'pg://u:secret@h:5/d?a=b' and s3://k:s@b",
       "got 'pg://u:***@h:5/d?a=b' and s3://k:*@b"},
      {"pg://u:se@cr/et@h", "pg://u:***@h"},
      {"pg://u@h:5432/d, http://h:80, http://[::1]:80/x",
       "pg://u@h:5432/d, http://h:80, http://[::1]:80/x"},
      {"'pg://u:secret", "'pg://u:***"}, /* cut */
      {"pg://u:@h", "pg://u:@h"},
      {"no URI: a@b", "no URI: a@b"},
  };
  for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
    weir_error err = {0};
    weir_error_set(&err, WEIR_E_IO, 0, "%s", texts[i][0]);
    assert_string_equal(err.message, texts[i][1]);
    weir_error_errno(&err, 0, "%s", texts[i][0]);
    assert_memory_equal(err.message, texts[i][1], strlen(texts[i][1]));
    weir_error_set(&err, WEIR_E_IO, 0, "x");
    weir_error_prefix(&err, WEIR_E_IO, "%s", texts[i][0]);
    assert_memory_equal(err.message, texts[i][1], strlen(texts[i][1]));
  }
}

static void test_status_names(void **state) {
  (void)state;
  for (weir_status code = WEIR_OK; code <= WEIR_E_ENDED; code++) {
    assert_string_not_equal(weir_status_name(code), "UNKNOWN");
  }
  assert_string_equal(weir_status_name(WEIR_E_FENCED), "FENCED");
  assert_string_equal(weir_status_name(-1), "UNKNOWN");
  assert_string_equal(weir_status_name(WEIR_E_ENDED + 1), "UNKNOWN");
}

static void test_bytes_absent_and_empty_differ(void **state) {
  (void)state;
  weir_bytes bytes = {0};
  weir_bytes_release(&bytes);
  weir_bytes_release(NULL);
  assert_int_equal(weir_bytes_copy(&bytes, NULL, 0, NULL), WEIR_OK);
  assert_non_null(bytes.release);
  assert_int_equal(bytes.size, 0);
  weir_bytes_release(&bytes);
  assert_null(bytes.release);
  assert_int_equal(weir_bytes_copy(&bytes, "abc", 3, NULL), WEIR_OK);
  assert_memory_equal(bytes.data, "abc", 3);
  weir_bytes_release(&bytes);
}

static void test_names_are_copied(void **state) {
  (void)state;
  char first[] = "id";
  const char *const v[] = {first, "", "ts"};
  weir_names names = {0};
  assert_int_equal(weir_names_copy(&names, v, 3, NULL), WEIR_OK);
  first[0] = 'X';
  assert_int_equal(names.n, 3);
  assert_string_equal(names.v[0], "id");
  assert_string_equal(names.v[1], "");
  assert_string_equal(names.v[2], "ts");
  weir_names_release(&names);
  assert_null(names.release);
  assert_int_equal(weir_names_copy(&names, NULL, 0, NULL), WEIR_OK);
  assert_non_null(names.release);
  weir_names_release(&names);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_layout_is_frozen),
      cmocka_unit_test(test_set_fills_everything),
      cmocka_unit_test(test_null_is_accepted),
      cmocka_unit_test(test_long_message_is_cut_at_a_character),
      cmocka_unit_test(test_errno_keeps_the_reason),
      cmocka_unit_test(test_prefix_and_place),
      cmocka_unit_test(test_own_message_as_argument),
      cmocka_unit_test(test_passwords_in_uris_are_masked),
      cmocka_unit_test(test_status_names),
      cmocka_unit_test(test_bytes_absent_and_empty_differ),
      cmocka_unit_test(test_names_are_copied),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
