/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"

weir_status base_io_error(weir_error *err, int errnum, const char *operation,
                          const char *path) {
  weir_status code = weir_error_errno(err, errnum, "cannot %s '%s'", operation, path);
  if (errnum == ENOENT || errnum == ENOTDIR) code = WEIR_E_NOT_FOUND;
  if (errnum == EEXIST) code = WEIR_E_EXISTS;
  if (err) err->code = code;
  return code;
}

weir_status base_read_file(const char *path, size_t max, base_buf *out, weir_error *err) {
  weir_status status = WEIR_OK;
  size_t before = out->size;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return base_io_error(err, errno, "open", path);
  for (;;) {
    /* One byte more than allowed is asked for, so that a file that is too large shows
     * itself. */
    size_t room = max - (out->size - before);
    size_t chunk = room < 65536 ? room + 1 : 65536;
    BASE_GOTO(status, base_buf_reserve(out, chunk, err));
    ssize_t n = read(fd, out->data + out->size, chunk);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      status = base_io_error(err, errno, "read", path);
      goto out;
    }
    if (n == 0) break;
    if ((size_t)n > room) {
      status = weir_error_set(err, WEIR_E_IO, 0,
                              "'%s' has more than the %zu bytes allowed", path, max);
      goto out;
    }
    out->size += (size_t)n;
  }
out:
  if (status) out->size = before;
  close(fd);
  return status;
}

weir_status base_write_all(int fd, const void *data, size_t size, const char *path,
                           weir_error *err) {
  const uint8_t *p = data;
  while (size) {
    ssize_t n = write(fd, p, size);
    if (n < 0) {
      if (errno == EINTR) continue;
      return base_io_error(err, errno, "write", path);
    }
    p += n;
    size -= (size_t)n;
  }
  return WEIR_OK;
}

static weir_status sync_with(int (*sync)(int), int fd, const char *path,
                             weir_error *err) {
  if (WEIR_FAULT("base.sync")) return base_io_error(err, EIO, "sync", path);
  int failed = 0;
  do {
    failed = sync(fd);
  } while (failed && errno == EINTR);
  return failed ? base_io_error(err, errno, "sync", path) : WEIR_OK;
}

weir_status base_fsync(int fd, const char *path, weir_error *err) {
  return sync_with(fsync, fd, path, err);
}

weir_status base_fdatasync(int fd, const char *path, weir_error *err) {
  return sync_with(fdatasync, fd, path, err);
}

weir_status base_sync_dir(const char *path, weir_error *err) {
  int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return base_io_error(err, errno, "open folder", path);
  weir_status status = base_fsync(fd, path, err);
  close(fd);
  return status;
}

static bool is_dir(const char *path) {
  struct stat info;
  return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* Makes one folder whose parent exists. mkdir() of one that exists may say EEXIST, EROFS
 * or EACCES: what counts is that it does. */
static weir_status make_folder(const char *path, mode_t mode, weir_error *err) {
  int failed = mkdir(path, mode) ? errno : 0;
  if (!failed || is_dir(path)) return WEIR_OK;
  if (failed == EEXIST) {
    return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                          "cannot make folder '%s': a file of that name is in the way; "
                          "name another folder",
                          path);
  }
  return base_io_error(err, failed, "make folder", path);
}

weir_status base_mkdirs(const char *path, mode_t mode, weir_error *err) {
  weir_status status = WEIR_OK;
  if (is_dir(path)) return WEIR_OK;
  char *part = base_strdup(path, err);
  if (!part) return WEIR_E_NOMEM;
  for (char *p = part; !status && *p;) {
    p += strspn(p, "/");
    p += strcspn(p, "/");
    char kept = *p;
    *p = 0;
    if (*part) status = make_folder(part, mode, err);
    *p = kept;
  }
  free(part);
  return status;
}

weir_status base_sync_upwards(const char *path, weir_error *err) {
  weir_status status = WEIR_OK;
  struct stat info, above;
  int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0 || fstat(fd, &info)) {
    status = base_io_error(err, errno, "open folder", path);
    goto out;
  }
  for (;;) {
    BASE_GOTO(status, base_fsync(fd, path, err));
    /* One that may not be read was not made by weir, nor was any above it. */
    int parent = openat(fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (parent < 0) break;
    close(fd);
    fd = parent;
    if (fstat(fd, &above) || above.st_dev != info.st_dev || above.st_ino == info.st_ino)
      break;
    info = above;
  }
out:
  if (fd >= 0) close(fd);
  return status;
}

char *base_dirname(const char *path, weir_error *err) {
  size_t size = strlen(path);
  while (size > 1 && path[size - 1] == '/') size--; /* trailing slashes name no entry */
  while (size > 0 && path[size - 1] != '/') size--;
  if (size == 0) return base_strdup(".", err);
  while (size > 1 && path[size - 1] == '/') size--;
  return base_strndup(path, size, err);
}

char *base_path_join(const char *dir, const char *name, weir_error *err) {
  if (*name == '/' || !*dir) return base_strdup(name, err);
  return base_format(err, base_ends_with(dir, "/") ? "%s%s" : "%s/%s", dir, name);
}

/* Writes and syncs a new file of mode 0600; unlinks what it began when that fails. */
static weir_status write_temp(const char *path, const void *data, size_t size,
                              weir_error *err) {
  int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return base_io_error(err, errno, "create", path);
  weir_status status = base_write_all(fd, data, size, path, err);
  if (!status) status = base_fsync(fd, path, err);
  if (close(fd) && !status) status = base_io_error(err, errno, "close", path);
  if (status) unlink(path);
  return status;
}

weir_status base_create_once(const char *path, const void *data, size_t size,
                             weir_error *err) {
  weir_status status = WEIR_OK;
  uint64_t nonce = 0;
  char *temp = NULL;
  char *dir = base_dirname(path, err);
  const char *slash = strrchr(path, '/');
  if (!dir) return WEIR_E_NOMEM;
  BASE_GOTO(status, base_random(&nonce, sizeof(nonce), err));
  temp = base_format(err, "%s/.%s.%016llx" BASE_TEMP_SUFFIX, dir,
                     slash ? slash + 1 : path, (unsigned long long)nonce);
  if (!temp) {
    status = WEIR_E_NOMEM;
    goto out;
  }
  BASE_GOTO(status, write_temp(temp, data, size, err));
  /* link() refuses a taken name and makes the content visible whole; rename() would
   * overwrite. */
  int failed = link(temp, path) ? errno : 0;
  unlink(temp);
  if (failed) {
    status = base_io_error(err, failed, "create", path);
    /* NFS may answer EEXIST to its own repeat; the caller compares the content to find
     * out. */
    goto out;
  }
  status = base_sync_dir(dir, err);
  if (status && err) err->flags |= WEIR_ERR_IN_DOUBT;
out:
  free(temp);
  free(dir);
  return status;
}
