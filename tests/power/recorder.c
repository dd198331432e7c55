/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded, it writes down what a process does to the files of one file system, in one order: new names,
 * writes with their bytes, truncates, links, renames, removals, and where each sync begins and ends. From
 * that simulated_disk.py makes what a power cut may leave. Nothing is really synced: to wait for a disk
 * would only make the tests slow.
 *
 * RECORDER_LOG    the file that records are appended to; the file system is that of the log
 * RECORDER_KILL   N or N:KIND: SIGKILL after so many records, or so many of that kind
 * RECORDER_SYNC   the most microseconds a sync takes, so that other threads get in between
 * RECORDER_PACE   microseconds that each opening of a file below .../source/ takes: a slow source
 *
 * A write through a mapping is not seen. SQLite's -shm is all there is of that, and holds nothing that is
 * believed after a power cut. That nothing else is missed is checked for every recording: played again, it
 * must give the very files that the process left.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { CREATE = 1, MKDIR, WRITE, TRUNCATE, LINK, UNLINK, RENAME, SYNC_BEGIN, SYNC_END };

/* In front of the bytes of name, new_name and data. simulated_disk.py reads the same. */
typedef struct record {
  uint32_t kind, name_size, new_name_size, data_size;
  uint64_t inode, folder, new_folder, offset;
} record;

#define REAL(name) __typeof__(name) *real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

/* Held while a call is made and written down, so that the log has the order of the calls. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int log_fd = -1;
static dev_t device;
static uint64_t syncs;
static unsigned long kill_after, kill_kind, sync_us, pace_us;

static unsigned long number(const char *name) {
  const char *text = getenv(name);
  return text ? strtoul(text, NULL, 10) : 0;
}

__attribute__((constructor)) static void begin(void) {
  struct stat info;
  const char *path = getenv("RECORDER_LOG");
  if (!path) return;
  REAL(open);
  int fd = real(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  log_fd = fcntl(fd, F_DUPFD_CLOEXEC, 500);
  close(fd);
  if (log_fd < 0 || fstat(log_fd, &info)) abort();
  device = info.st_dev;
  kill_after = number("RECORDER_KILL");
  const char *kind = kill_after ? strchr(getenv("RECORDER_KILL"), ':') : NULL;
  kill_kind = kind ? strtoul(kind + 1, NULL, 10) : 0;
  sync_us = number("RECORDER_SYNC");
  pace_us = number("RECORDER_PACE");
}

static void append(record r, const char *name, const char *new_name, const void *data) {
  r.name_size = name ? (uint32_t)strlen(name) : 0;
  r.new_name_size = new_name ? (uint32_t)strlen(new_name) : 0;
  struct iovec parts[] = {{&r, sizeof(r)},
                          {(void *)(uintptr_t)name, r.name_size},
                          {(void *)(uintptr_t)new_name, r.new_name_size},
                          {(void *)(uintptr_t)data, r.data_size}};
  ssize_t size = (ssize_t)(sizeof(r) + r.name_size + r.new_name_size + r.data_size);
  REAL(writev);
  if (real(log_fd, parts, 4) != size) abort();
  if (kill_after && (!kill_kind || kill_kind == r.kind) && !--kill_after) raise(SIGKILL);
}

static const char *last_part(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/* The inode of the folder that `path` is in; 0 when it is on another file system. */
static uint64_t folder_of(int fd, const char *path) {
  struct stat info;
  char folder[4096] = ".";
  size_t size = (size_t)(last_part(path) - path);
  if (size >= sizeof(folder)) abort();
  if (size) {
    memcpy(folder, path, size);
    folder[size] = 0;
  }
  return fstatat(fd, folder, &info, 0) || info.st_dev != device ? 0 : info.st_ino;
}

static uint64_t inode_at(int fd, const char *path) {
  struct stat info;
  return fstatat(fd, path, &info, AT_SYMLINK_NOFOLLOW) ? 0 : info.st_ino;
}

static uint64_t inode_of(int fd) {
  struct stat info;
  if (log_fd < 0 || fstat(fd, &info) || info.st_dev != device) return 0;
  return S_ISREG(info.st_mode) || S_ISDIR(info.st_mode) ? info.st_ino : 0;
}

/* ---- names -------------------------------------------------------------------------------------- */

static int open_file(int folder, const char *path, int flags, mode_t mode) {
  REAL(openat);
  if (log_fd < 0 || !(flags & (O_CREAT | O_TRUNC))) {
    if (pace_us && strstr(path, "/source/") && !(flags & O_DIRECTORY)) usleep(pace_us);
    return real(folder, path, flags, mode);
  }
  pthread_mutex_lock(&lock);
  int existed = inode_at(folder, path) != 0;
  int fd = real(folder, path, flags, mode), failed = errno;
  uint64_t inode = fd < 0 ? 0 : inode_of(fd);
  if (inode && !existed) {
    append((record){.kind = CREATE, .folder = folder_of(folder, path), .inode = inode},
           last_part(path), NULL, NULL);
  } else if (inode && (flags & O_TRUNC)) {
    append((record){.kind = TRUNCATE, .inode = inode}, NULL, NULL, NULL);
  }
  pthread_mutex_unlock(&lock);
  errno = failed;
  return fd;
}

#define OPEN_AT(name)                                         \
  int name(int folder, const char *path, int flags, ...) {    \
    va_list args;                                             \
    va_start(args, flags);                                    \
    mode_t mode = flags & O_CREAT ? va_arg(args, mode_t) : 0; \
    va_end(args);                                             \
    return open_file(folder, path, flags, mode);              \
  }

OPEN_AT(openat)
OPEN_AT(openat64)

#define OPEN_HERE(name)                                       \
  int name(const char *path, int flags, ...) {                \
    va_list args;                                             \
    va_start(args, flags);                                    \
    mode_t mode = flags & O_CREAT ? va_arg(args, mode_t) : 0; \
    va_end(args);                                             \
    return open_file(AT_FDCWD, path, flags, mode);            \
  }

OPEN_HERE(open)
OPEN_HERE(open64)

int mkdirat(int folder, const char *path, mode_t mode) {
  REAL(mkdirat);
  pthread_mutex_lock(&lock);
  int result = real(folder, path, mode), failed = errno;
  if (!result && log_fd >= 0) {
    append((record){.kind = MKDIR,
                    .folder = folder_of(folder, path),
                    .inode = inode_at(folder, path)},
           last_part(path), NULL, NULL);
  }
  pthread_mutex_unlock(&lock);
  errno = failed;
  return result;
}

int mkdir(const char *path, mode_t mode) {
  return mkdirat(AT_FDCWD, path, mode);
}

int linkat(int from, const char *old, int to, const char *name, int flags) {
  REAL(linkat);
  pthread_mutex_lock(&lock);
  int result = real(from, old, to, name, flags), failed = errno;
  if (!result && log_fd >= 0) {
    append(
        (record){
            .kind = LINK, .folder = folder_of(to, name), .inode = inode_at(to, name)},
        last_part(name), NULL, NULL);
  }
  pthread_mutex_unlock(&lock);
  errno = failed;
  return result;
}

int link(const char *old, const char *name) {
  return linkat(AT_FDCWD, old, AT_FDCWD, name, 0);
}

int unlinkat(int folder, const char *path, int flags) {
  REAL(unlinkat);
  pthread_mutex_lock(&lock);
  int result = real(folder, path, flags), failed = errno;
  if (!result && log_fd >= 0) {
    append((record){.kind = UNLINK, .folder = folder_of(folder, path)}, last_part(path),
           NULL, NULL);
  }
  pthread_mutex_unlock(&lock);
  errno = failed;
  return result;
}

int unlink(const char *path) {
  return unlinkat(AT_FDCWD, path, 0);
}

int rmdir(const char *path) {
  return unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
}

int renameat2(int from, const char *old, int to, const char *name, unsigned flags) {
  REAL(renameat2);
  pthread_mutex_lock(&lock);
  int result = real(from, old, to, name, flags), failed = errno;
  if (!result && log_fd >= 0) {
    append((record){.kind = RENAME,
                    .folder = folder_of(from, old),
                    .new_folder = folder_of(to, name)},
           last_part(old), last_part(name), NULL);
  }
  pthread_mutex_unlock(&lock);
  errno = failed;
  return result;
}

int renameat(int from, const char *old, int to, const char *name) {
  return renameat2(from, old, to, name, 0);
}

int rename(const char *old, const char *name) {
  return renameat2(AT_FDCWD, old, AT_FDCWD, name, 0);
}

/* ---- content ------------------------------------------------------------------------------------ */

static ssize_t put(int fd, const void *data, size_t size, off64_t at) {
  REAL(pwrite64);
  pthread_mutex_lock(&lock);
  ssize_t n = real(fd, data, size, at);
  int failed = errno;
  uint64_t inode = n > 0 ? inode_of(fd) : 0;
  if (inode) {
    append((record){.kind = WRITE,
                    .inode = inode,
                    .offset = (uint64_t)at,
                    .data_size = (uint32_t)n},
           NULL, NULL, data);
  }
  pthread_mutex_unlock(&lock);
  errno = failed;
  return n;
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) {
  return put(fd, data, size, at);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
  return put(fd, data, size, at);
}

ssize_t write(int fd, const void *data, size_t size) {
  struct stat info;
  REAL(write);
  if (log_fd < 0 || fstat(fd, &info) || !S_ISREG(info.st_mode))
    return real(fd, data, size);
  off64_t at = fcntl(fd, F_GETFL) & O_APPEND ? info.st_size : lseek64(fd, 0, SEEK_CUR);
  ssize_t n = put(fd, data, size, at);
  if (n > 0) lseek64(fd, at + n, SEEK_SET);
  return n;
}

int ftruncate64(int fd, off64_t size) {
  REAL(ftruncate64);
  pthread_mutex_lock(&lock);
  int result = real(fd, size), failed = errno;
  uint64_t inode = result ? 0 : inode_of(fd);
  if (inode) {
    append((record){.kind = TRUNCATE, .inode = inode, .offset = (uint64_t)size}, NULL,
           NULL, NULL);
  }
  pthread_mutex_unlock(&lock);
  errno = failed;
  return result;
}

int ftruncate(int fd, off_t size) {
  return ftruncate64(fd, size);
}

/* ---- syncs -------------------------------------------------------------------------------------- */

/* What was done before it began is durable once it has ended; what is done meanwhile may be or not. */
static int sync_file(int fd) {
  uint64_t inode = inode_of(fd), id;
  if (!inode) return 0;
  pthread_mutex_lock(&lock);
  id = ++syncs;
  append((record){.kind = SYNC_BEGIN, .inode = inode, .offset = id}, NULL, NULL, NULL);
  pthread_mutex_unlock(&lock);
  if (sync_us) usleep((useconds_t)(id * 2654435761U % sync_us));
  pthread_mutex_lock(&lock);
  append((record){.kind = SYNC_END, .inode = inode, .offset = id}, NULL, NULL, NULL);
  pthread_mutex_unlock(&lock);
  return 0;
}

int fsync(int fd) {
  return sync_file(fd);
}

int fdatasync(int fd) {
  return sync_file(fd);
}
