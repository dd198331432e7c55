/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded, it makes the disk full: after FULL_AFTER bytes written to files, all in all, writes fail with
 * ENOSPC, as do new names once it is full. Works for anyone, anywhere, which a small file system does not.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static atomic_llong written;

static int full(size_t size) {
  const char *limit = getenv("FULL_AFTER");
  if (!limit) return 0;
  long long room = atoll(limit);
  if (atomic_fetch_add(&written, (long long)size) + (long long)size <= room) return 0;
  atomic_store(&written, room); /* full it stays, for whatever size */
  errno = ENOSPC;
  return 1;
}

static int is_file(int fd) {
  struct stat st;
  return fd > 2 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

#define REAL(name) __typeof__(name) *real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

ssize_t write(int fd, const void *data, size_t size) {
  REAL(write);
  if (is_file(fd) && full(size)) return -1;
  return real(fd, data, size);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
  REAL(pwrite);
  if (is_file(fd) && full(size)) return -1;
  return real(fd, data, size, at);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) {
  REAL(pwrite64);
  if (is_file(fd) && full(size)) return -1;
  return real(fd, data, size, at);
}

int mkdir(const char *path, mode_t mode) {
  REAL(mkdir);
  if (full(1)) return -1;
  return real(path, mode);
}

int linkat(int from, const char *old, int to, const char *name, int flags) {
  REAL(linkat);
  if (full(1)) return -1;
  return real(from, old, to, name, flags);
}
