/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"

static char *temp_dir;

static char *in_temp(const char *name) {
  char *path = base_path_join(temp_dir, name, NULL);
  assert_non_null(path);
  return path;
}

static int remove_entry(const char *path, const struct stat *info, int kind,
                        struct FTW *where) {
  (void)info;
  (void)kind;
  (void)where;
  return remove(path);
}

static int make_temp(void **state) {
  (void)state;
  const char *base = getenv("TMPDIR");
  temp_dir = base_path_join(base ? base : "/tmp", "weir-test-XXXXXX", NULL);
  return mkdtemp(temp_dir) ? 0 : -1;
}

static int drop_temp(void **state) {
  (void)state;
  int failed = nftw(temp_dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
  free(temp_dir);
  return failed;
}

static size_t entries(const char *path) {
  size_t n = 0;
  DIR *dir = opendir(path);
  assert_non_null(dir);
  while (readdir(dir)) n++;
  closedir(dir);
  return n - 2;
}

static void test_create_once(void **state) {
  (void)state;
  weir_error err = {0};
  char *path = in_temp("manifest.json");
  assert_int_equal(base_create_once(path, "first", 5, &err), WEIR_OK);
  assert_int_equal(base_create_once(path, "second", 6, &err), WEIR_E_EXISTS);
  assert_int_equal(err.code, WEIR_E_EXISTS);
  assert_non_null(strstr(err.message, "manifest.json"));
  base_buf buf = {0};
  assert_int_equal(base_read_file(path, 100, &buf, &err), WEIR_OK);
  assert_int_equal(buf.size, 5);
  assert_memory_equal(buf.data, "first", 5);
  struct stat info;
  assert_int_equal(stat(path, &info), 0);
  assert_int_equal(info.st_mode & 0777, 0600);
  assert_int_equal(entries(temp_dir), 1); /* no temporary name is left */
  base_buf_done(&buf);
  free(path);
}

static void test_create_once_without_folder(void **state) {
  (void)state;
  weir_error err = {0};
  char *path = in_temp("none/manifest.json");
  assert_int_equal(base_create_once(path, "x", 1, &err), WEIR_E_NOT_FOUND);
  assert_int_equal(err.vendor_code, ENOENT);
  assert_int_equal(entries(temp_dir), 0);
  free(path);
}

static void test_read_is_bounded(void **state) {
  (void)state;
  weir_error err = {0};
  char *path = in_temp("f");
  char data[200000];
  memset(data, 'z', sizeof(data));
  assert_int_equal(base_create_once(path, data, sizeof(data), NULL), WEIR_OK);
  base_buf buf = {0};
  assert_int_equal(base_buf_append_str(&buf, "before", NULL), WEIR_OK);
  assert_int_equal(base_read_file(path, sizeof(data) - 1, &buf, &err), WEIR_E_IO);
  assert_non_null(strstr(err.message, "199999"));
  assert_int_equal(buf.size, 6);
  assert_int_equal(base_read_file(path, sizeof(data), &buf, &err), WEIR_OK);
  assert_int_equal(buf.size, 6 + sizeof(data));
  assert_memory_equal(buf.data + 6, data, sizeof(data));
  assert_int_equal(base_read_file("/nonexistent/file", 1, &buf, &err), WEIR_E_NOT_FOUND);
  base_buf_done(&buf);
  free(path);
}

static void test_mkdirs_makes_what_is_missing(void **state) {
  (void)state;
  char *deep = in_temp("a//b/c/"), *missing = in_temp("a/d");
  assert_int_equal(base_mkdirs(deep, 0700, NULL), WEIR_OK);
  assert_int_equal(base_mkdirs(deep, 0700, NULL), WEIR_OK);
  assert_int_equal(base_sync_upwards(deep, NULL), WEIR_OK);
  assert_int_equal(base_sync_upwards(missing, NULL), WEIR_E_NOT_FOUND);
  free(deep);
  free(missing);
}

static void test_mkdirs_says_what_is_in_the_way(void **state) {
  (void)state;
  weir_error err = {0};
  char *file = in_temp("file"), *last = in_temp("x/file"), *below = in_temp("file/x");
  assert_int_equal(base_create_once(file, "", 0, NULL), WEIR_OK);
  assert_int_equal(base_mkdirs(file, 0700, &err), WEIR_E_INVALID_CONFIG);
  assert_non_null(strstr(err.message, "in the way"));
  assert_int_not_equal(base_mkdirs(below, 0700, &err), WEIR_OK);
  assert_int_equal(base_mkdirs(last, 0700, &err), WEIR_OK);
  free(file);
  free(last);
  free(below);
}

static void test_paths(void **state) {
  (void)state;
  static const char *const cases[][2] = {{"a/b", "a"},  {"a", "."},  {"/a", "/"},
                                         {"a/b/", "a"}, {"/", "/"},  {"a//b", "a"},
                                         {"", "."},     {"//a", "/"}};
  for (size_t i = 0; i < BASE_COUNT(cases); i++) {
    char *dir = base_dirname(cases[i][0], NULL);
    assert_string_equal(dir, cases[i][1]);
    free(dir);
  }
  static const char *const joins[][3] = {
      {"a", "b", "a/b"}, {"a/", "b", "a/b"}, {"a", "/b", "/b"}, {"", "b", "b"}};
  for (size_t i = 0; i < BASE_COUNT(joins); i++) {
    char *path = base_path_join(joins[i][0], joins[i][1], NULL);
    assert_string_equal(path, joins[i][2]);
    free(path);
  }
}

static void test_write_reports_a_full_disk(void **state) {
  (void)state;
  weir_error err = {0};
  int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
  if (fd < 0) skip();
  assert_int_equal(base_write_all(fd, "x", 1, "/dev/full", &err), WEIR_E_IO);
  assert_int_equal(err.vendor_code, ENOSPC);
  close(fd);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_create_once, make_temp, drop_temp),
      cmocka_unit_test_setup_teardown(test_create_once_without_folder, make_temp,
                                      drop_temp),
      cmocka_unit_test_setup_teardown(test_read_is_bounded, make_temp, drop_temp),
      cmocka_unit_test_setup_teardown(test_mkdirs_makes_what_is_missing, make_temp,
                                      drop_temp),
      cmocka_unit_test_setup_teardown(test_mkdirs_says_what_is_in_the_way, make_temp,
                                      drop_temp),
      cmocka_unit_test(test_paths),
      cmocka_unit_test(test_write_reports_a_full_disk),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
