/* SPDX-License-Identifier: Apache-2.0 */
#include "support/folder.h"

#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

int folder_make(char path[FOLDER_PATH]) {
  const char *base = getenv("TMPDIR");
  snprintf(path, FOLDER_PATH, "%s/weir-test-XXXXXX", base && base[0] ? base : "/tmp");
  return mkdtemp(path) == NULL;
}

static int remove_entry(const char *path, const struct stat *st, int type,
                        struct FTW *ftw) {
  (void)st;
  (void)type;
  (void)ftw;
  return remove(path);
}

int folder_remove(const char *path) {
  return nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static const char *in(const char *folder, const char *name, char path[600]) {
  snprintf(path, 600, "%s/%s", folder, name);
  return path;
}

static void write_text(const char *path, int flags, long offset, const char *text) {
  int fd = open(path, O_WRONLY | O_CREAT | flags, 0600);
  size_t n = strlen(text);
  assert_true(fd >= 0);
  if (offset > 0) assert_int_equal(lseek(fd, offset, SEEK_SET), offset);
  assert_int_equal(write(fd, text, n), n);
  assert_int_equal(close(fd), 0);
}

void folder_put(const char *folder, const char *name, const char *text) {
  char path[600];
  write_text(in(folder, name, path), O_TRUNC, 0, text);
}

void folder_add(const char *folder, const char *name, const char *text) {
  char path[600];
  write_text(in(folder, name, path), O_APPEND, 0, text);
}

void folder_patch(const char *folder, const char *name, long offset, const char *text) {
  char path[600];
  write_text(in(folder, name, path), 0, offset, text);
}

void folder_cut(const char *folder, const char *name, long size) {
  char path[600];
  assert_int_equal(truncate(in(folder, name, path), size), 0);
}

void folder_rename(const char *folder, const char *from, const char *to) {
  char a[600], b[600];
  assert_int_equal(rename(in(folder, from, a), in(folder, to, b)), 0);
}

void folder_link(const char *folder, const char *from, const char *to) {
  char a[600], b[600];
  assert_int_equal(link(in(folder, from, a), in(folder, to, b)), 0);
}

void folder_remove_file(const char *folder, const char *name) {
  char path[600];
  assert_int_equal(unlink(in(folder, name, path)), 0);
}
