/* SPDX-License-Identifier: Apache-2.0 */
/* The state folder: who owns it, and that its names are on disk. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "store/store.h"

/* f_type of file systems that other machines can write, statfs(2) and linux/magic.h. Their locks are
 * local, leased or absent, so the owner's lock would not hold. */
static const struct {
  int64_t magic;
  const char *name;
} folder_networks[] = {
    {0x6969, "NFS"},       {0x517B, "SMB"},        {0xFE534D42, "SMB2"},
    {0xFF534D42, "CIFS"},  {0x00C36400, "Ceph"},   {0x5346414F, "AFS"},
    {0x6B414653, "AFS"},   {0x73757245, "Coda"},   {0x01021997, "9P"},
    {0x65735546, "FUSE"},  {0x0BD00BD0, "Lustre"}, {0x01161970, "GFS2"},
    {0x7461636F, "OCFS2"}, {0x47504653, "GPFS"},   {0x19830326, "BeeGFS"},
    {0xAAD7AAEA, "PanFS"},
};

weir_status store_refuse_network(int64_t magic, const char *folder, weir_error *err) {
  const char *allowed = getenv("WEIR_STATE_ON_NETWORK");
  if (allowed && strcmp(allowed, "accept-risk") == 0) return WEIR_OK;
  for (size_t i = 0; i < BASE_COUNT(folder_networks); i++) {
    /* f_type is signed and 32 bits wide on some machines. */
    if ((uint32_t)folder_networks[i].magic != (uint32_t)magic) continue;
    return weir_error_set(
        err, WEIR_E_INVALID_CONFIG, 0,
        "state folder %s is on %s, where a lock does not keep a second machine out; use "
        "a local folder, or set WEIR_STATE_ON_NETWORK=accept-risk when no other machine "
        "can ever run this pipeline",
        folder, folder_networks[i].name);
  }
  return WEIR_OK;
}

static weir_status folder_check_place(const char *folder, weir_error *err) {
  struct statfs fs;
  int rc;
  do rc = statfs(folder, &fs);
  while (rc && errno == EINTR);
  if (rc) return base_io_error(err, errno, "look at the file system of", folder);
  return store_refuse_network((int64_t)fs.f_type, folder, err);
}

/* A lock says nothing once its file is no longer the one of that name: whoever makes a new deployment has
 * moved the folder, lock and all, between our opening and locking it. */
static weir_status folder_check_lock(const char *folder, const char *path, int fd,
                                     weir_error *err) {
  struct stat named, locked;
  if (fstat(fd, &locked)) return base_io_error(err, errno, "look at", path);
  if (stat(path, &named) == 0 && named.st_dev == locked.st_dev &&
      named.st_ino == locked.st_ino) {
    return WEIR_OK;
  }
  return weir_error_set(err, WEIR_E_FENCED, 0,
                        "state folder %s was moved or replaced by another instance while "
                        "this one opened it; run again",
                        folder);
}

/* An OFD lock: it belongs to this open file, so neither closing another descriptor of the file nor
 * another thread can drop or share it (fcntl(2), "Open file description locks"). */
static weir_status folder_lock(const char *folder, int *lock_fd, weir_error *err) {
  weir_status status = WEIR_OK;
  int fd = -1;
  char *path = base_path_join(folder, "lock", err);
  if (!path) return WEIR_E_NOMEM;
  fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) {
    status = base_io_error(err, errno, "open", path);
    goto out;
  }
  if (WEIR_FAULT("store.lock.opened")) {
    status = base_io_error(err, EIO, "lock", path);
    goto out;
  }
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  if (fcntl(fd, F_OFD_SETLK, &lock)) {
    if (errno != EAGAIN && errno != EACCES) {
      status = base_io_error(err, errno, "lock", path);
      goto out;
    }
    char owner[32] = {0};
    ssize_t n = pread(fd, owner, sizeof(owner) - 1, 0);
    owner[n > 0 ? strspn(owner, "0123456789") : 0] = 0;
    status = weir_error_set(
        err, WEIR_E_FENCED, 0,
        "state folder %s is owned by another live instance (pid %s); stop that one "
        "first, or give this pipeline a state folder of its own",
        folder, *owner ? owner : "unknown");
    goto out;
  }
  BASE_GOTO(status, folder_check_lock(folder, path, fd, err));
  char pid[32];
  int size = snprintf(pid, sizeof(pid), "%ld\n", (long)getpid());
  /* For the message above only, so it need not be durable. */
  if (ftruncate(fd, 0) || pwrite(fd, pid, (size_t)size, 0) != size) {
    status = base_io_error(err, errno, "write", path);
    goto out;
  }
  *lock_fd = fd;
  fd = -1;
out:
  if (fd >= 0) close(fd);
  free(path);
  return status;
}

/* A dead owner may have left frames that its own sync never brought to disk, and after a failed sync
 * the kernel takes such pages for clean. They are written again, byte for byte, and synced, before any
 * of them is believed. Safe beside readers: nothing changes. Only the owner does this. */
static weir_status folder_rewrite_wal(const char *folder, weir_error *err) {
  weir_status status = WEIR_OK;
  int fd = -1;
  uint8_t *chunk = NULL;
  char *path = base_path_join(folder, "store.db-wal", err);
  if (!path) return WEIR_E_NOMEM;
  enum { CHUNK = 1 << 18 };
  fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) {
    if (errno != ENOENT) status = base_io_error(err, errno, "open", path);
    goto out;
  }
  chunk = base_calloc(CHUNK, 1, err);
  if (!chunk) {
    status = WEIR_E_NOMEM;
    goto out;
  }
  off_t at = 0;
  for (;;) {
    ssize_t n = pread(fd, chunk, CHUNK, at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      status = base_io_error(err, errno, "read", path);
      goto out;
    }
    if (n == 0) break;
    for (ssize_t done = 0; done < n;) {
      ssize_t w = pwrite(fd, chunk + done, (size_t)(n - done), at + done);
      if (w < 0 && errno == EINTR) continue;
      if (w < 0) {
        status = base_io_error(err, errno, "write", path);
        goto out;
      }
      done += w;
    }
    at += n;
  }
  if (at > 0) status = base_fsync(fd, path, err);
out:
  if (fd >= 0) close(fd);
  free(chunk);
  free(path);
  return status;
}

weir_status store_folder_own(const char *folder, int *lock_fd, weir_error *err) {
  weir_status status = WEIR_OK;
  int fd = -1;
  status = base_mkdirs(folder, 0700, err);
  if (status) {
    weir_error_prefix(err, status, "state folder (option `state`)");
    goto out;
  }
  BASE_GOTO(status, folder_check_place(folder, err));
  BASE_GOTO(status, folder_lock(folder, &fd, err));
  BASE_GOTO(status, folder_rewrite_wal(folder, err));
  *lock_fd = fd;
  fd = -1;
out:
  if (fd >= 0) close(fd);
  return status;
}

weir_status store_folder_sync(const char *folder, weir_error *err) {
  BASE_TRY(base_sync_dir(folder, err));
  char *parent = base_dirname(folder, err);
  if (!parent) return WEIR_E_NOMEM;
  weir_status status = base_sync_dir(parent, err);
  free(parent);
  return status;
}

char *store_folder_file(const char *folder, weir_error *err) {
  return base_path_join(folder, "store.db", err);
}
