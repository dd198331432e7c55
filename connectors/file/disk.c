/* SPDX-License-Identifier: Apache-2.0 */
#include "disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <weir/fault.h>

char *file_disk_format(weir_error *err, const char *fmt, ...) {
  char *out = NULL;
  va_list args;
  va_start(args, fmt);
  int n = vasprintf(&out, fmt, args);
  va_end(args);
  if (n >= 0) return out;
  weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
  return NULL;
}

char *file_disk_join(const char *dir, const char *name, weir_error *err) {
  return file_disk_format(err, "%s/%s", dir, name);
}

weir_status file_disk_error(weir_error *err, int errnum, const char *operation,
                            const char *folder, const char *name) {
  weir_status code =
      name ? weir_error_errno(err, errnum, "cannot %s '%s/%s'", operation, folder, name)
           : weir_error_errno(err, errnum, "cannot %s '%s'", operation, folder);
  if (errnum == ENOENT || errnum == ENOTDIR) code = WEIR_E_NOT_FOUND;
  if (errnum == EEXIST) code = WEIR_E_EXISTS;
  if (err) {
    err->code = code;
    if (errnum == ENOSPC || errnum == EDQUOT) err->flags |= WEIR_ERR_RETRIABLE;
  }
  return code;
}

weir_status file_disk_flag(weir_error *err, weir_status code, uint32_t flags) {
  if (!err) return code;
  err->flags |= flags;
  return err->code;
}

weir_status file_disk_folder_open(const char *path, file_disk_folder *out,
                                  weir_error *err) {
  char *copy = file_disk_format(err, "%s", path);
  if (!copy) return WEIR_E_NOMEM;
  int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) {
    weir_status status = file_disk_error(err, errno, "open folder", path, NULL);
    free(copy);
    return status;
  }
  out->fd = fd;
  out->path = copy;
  return WEIR_OK;
}

void file_disk_folder_done(file_disk_folder *folder) {
  if (folder->path) close(folder->fd);
  free(folder->path);
  folder->path = NULL;
  folder->fd = -1;
}

static weir_status sync_with(int (*how)(int), int fd, const char *folder,
                             const char *name, weir_error *err) {
  int failed;
  if (WEIR_FAULT("file.sync")) return file_disk_error(err, EIO, "sync", folder, name);
  do {
    failed = how(fd);
  } while (failed && errno == EINTR);
  return failed ? file_disk_error(err, errno, "sync", folder, name) : WEIR_OK;
}

weir_status file_disk_sync(int fd, const char *folder, const char *name,
                           weir_error *err) {
  return sync_with(fdatasync, fd, folder, name, err);
}

weir_status file_disk_folder_sync(const file_disk_folder *folder, weir_error *err) {
  return sync_with(fsync, folder->fd, folder->path, NULL, err);
}

void file_disk_start_writing(int fd, uint64_t from, uint64_t size) {
#ifdef SYNC_FILE_RANGE_WRITE
  sync_file_range(fd, (off_t)from, (off_t)size, SYNC_FILE_RANGE_WRITE);
#else
  (void)fd;
  (void)from;
  (void)size;
#endif
}

static bool is_folder(const char *path) {
  struct stat info;
  return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* One folder whose parent exists. What mkdir() says of one that exists may be EEXIST, EROFS or EACCES:
 * what counts is that it does. */
static weir_status make_folder(const char *path, mode_t mode, weir_error *err) {
  if (is_folder(path)) return WEIR_OK;
  if (mkdir(path, mode) == 0) return WEIR_OK;
  int failed = errno;
  if (is_folder(path)) return WEIR_OK;
  if (failed == EEXIST || failed == ENOTDIR) {
    return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                          "cannot make folder '%s': a file of that name is in the way",
                          path);
  }
  return file_disk_error(err, failed, "make folder", path, NULL);
}

weir_status file_disk_mkdirs(const char *path, mode_t mode, weir_error *err) {
  weir_status status = WEIR_OK;
  if (is_folder(path)) return WEIR_OK;
  char *part = file_disk_format(err, "%s", path);
  if (!part) return WEIR_E_NOMEM;
  for (char *p = part; !status && *p;) {
    p += strspn(p, "/");
    p += strcspn(p, "/");
    char kept = *p;
    *p = 0;
    if (*part) status = make_folder(part, mode, err);
    *p = kept;
    if (kept && p[strspn(p, "/")] == 0) break;
  }
  free(part);
  return status;
}

weir_status file_disk_write(int fd, const void *data, size_t size, const char *folder,
                            const char *name, weir_error *err) {
  const uint8_t *p = data;
  if (WEIR_FAULT("file.write"))
    return file_disk_error(err, ENOSPC, "write", folder, name);
  while (size) {
    ssize_t n = write(fd, p, size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return file_disk_error(err, errno, "write", folder, name);
    p += n;
    size -= (size_t)n;
  }
  return WEIR_OK;
}

weir_status file_disk_read(const file_disk_folder *folder, const char *name, size_t max,
                           char **out, size_t *size, weir_error *err) {
  weir_status status = WEIR_OK;
  struct stat info;
  char *data = NULL;
  size_t have = 0;
  int fd = openat(folder->fd, name, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return file_disk_error(err, errno, "open", folder->path, name);
  if (fstat(fd, &info)) {
    status = file_disk_error(err, errno, "read", folder->path, name);
    goto out;
  }
  if (info.st_size < 0 || (uint64_t)info.st_size > max) {
    status = weir_error_set(err, WEIR_E_CORRUPT, 0,
                            "'%s/%s' has %lld bytes, more than the %zu allowed",
                            folder->path, name, (long long)info.st_size, max);
    goto out;
  }
  data = malloc((size_t)info.st_size + 1);
  if (!data) {
    status = weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
    goto out;
  }
  while (have < (size_t)info.st_size) {
    ssize_t n = read(fd, data + have, (size_t)info.st_size - have);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      status = file_disk_error(err, errno, "read", folder->path, name);
      goto out;
    }
    if (n == 0) break;
    have += (size_t)n;
  }
  data[have] = 0;
  *out = data;
  *size = have;
  data = NULL;
out:
  free(data);
  close(fd);
  return status;
}

weir_status file_disk_write_new(const file_disk_folder *folder, const char *name,
                                const void *data, size_t size, weir_error *err) {
  int fd = openat(folder->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) return file_disk_error(err, errno, "create", folder->path, name);
  weir_status status = file_disk_write(fd, data, size, folder->path, name, err);
  if (!status) status = file_disk_sync(fd, folder->path, name, err);
  if (close(fd) && !status)
    status = file_disk_error(err, errno, "close", folder->path, name);
  if (status) unlinkat(folder->fd, name, 0);
  return status;
}

weir_status file_disk_digest(const file_disk_folder *folder, const char *name,
                             uint64_t *size, uint8_t sha256[DISK_SHA256_SIZE],
                             weir_error *err) {
  enum { CHUNK = 256 << 10 };
  weir_status status = WEIR_OK;
  uint64_t total = 0;
  uint8_t *chunk = malloc(CHUNK);
  EVP_MD_CTX *hash = EVP_MD_CTX_new();
  int fd = openat(folder->fd, name, O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    status = file_disk_error(err, errno, "open", folder->path, name);
    goto out;
  }
  if (!chunk || !hash || EVP_DigestInit_ex(hash, EVP_sha256(), NULL) != 1) {
    status = weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
    goto out;
  }
  for (;;) {
    ssize_t n = read(fd, chunk, CHUNK);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      status = file_disk_error(err, errno, "read", folder->path, name);
      goto out;
    }
    if (n == 0) break;
    EVP_DigestUpdate(hash, chunk, (size_t)n);
    total += (uint64_t)n;
  }
  EVP_DigestFinal_ex(hash, sha256, NULL);
  *size = total;
out:
  if (fd >= 0) close(fd);
  EVP_MD_CTX_free(hash);
  free(chunk);
  return status;
}

weir_status file_disk_stat(const file_disk_folder *folder, const char *name, bool *found,
                           uint64_t *size, weir_error *err) {
  struct stat info;
  if (fstatat(folder->fd, name, &info, AT_SYMLINK_NOFOLLOW)) {
    if (errno != ENOENT)
      return file_disk_error(err, errno, "look at", folder->path, name);
    *found = false;
    return WEIR_OK;
  }
  *found = true;
  *size = (uint64_t)info.st_size;
  return WEIR_OK;
}

weir_status file_disk_move_by_link(const file_disk_folder *from,
                                   const file_disk_folder *to, const char *name,
                                   weir_error *err) {
  if (linkat(from->fd, name, to->fd, name, 0)) {
    return file_disk_error(err, errno, "publish", to->path, name);
  }
  return file_disk_remove(from, name, err);
}

weir_status file_disk_move(const file_disk_folder *from, const file_disk_folder *to,
                           const char *name, weir_error *err) {
#ifdef RENAME_NOREPLACE
  if (renameat2(from->fd, name, to->fd, name, RENAME_NOREPLACE) == 0) return WEIR_OK;
  if (errno != EINVAL && errno != ENOSYS) {
    return file_disk_error(err, errno, "publish", to->path, name);
  }
#endif
  return file_disk_move_by_link(from, to, name, err);
}

weir_status file_disk_remove(const file_disk_folder *folder, const char *name,
                             weir_error *err) {
  if (unlinkat(folder->fd, name, 0) == 0 || errno == ENOENT) return WEIR_OK;
  return file_disk_error(err, errno, "remove", folder->path, name);
}

weir_status file_disk_list(const file_disk_folder *folder, file_disk_each each, void *ctx,
                           weir_error *err) {
  weir_status status = WEIR_OK;
  /* A description of its own: two threads may list one folder. */
  int fd = openat(folder->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *dir = fd < 0 ? NULL : fdopendir(fd);
  if (!dir) {
    status = file_disk_error(err, errno, "list", folder->path, NULL);
    if (fd >= 0) close(fd);
    return status;
  }
  while (!status) {
    errno = 0;
    const struct dirent *entry = readdir(dir);
    if (!entry) {
      if (errno) status = file_disk_error(err, errno, "list", folder->path, NULL);
      break;
    }
    if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
      status = each(ctx, entry->d_name, err);
    }
  }
  closedir(dir);
  return status;
}
