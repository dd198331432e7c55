/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files and folders as the file sink needs them: every step that must survive a power cut has its sync
 * here. Errors are WEIR_E_IO with errno as vendor code, but ENOENT gives WEIR_E_NOT_FOUND and EEXIST
 * WEIR_E_EXISTS; messages name path and operation. EINTR is retried.
 */
#ifndef CONNECTORS_FILE_DISK_H
#define CONNECTORS_FILE_DISK_H

#include <stdbool.h>
#include <sys/types.h>
#include <weir/error.h>

#define DISK_SHA256_SIZE 32

#define FILE_TRY(call)                             \
  do {                                             \
    weir_status file_try_status_ = (call);         \
    if (file_try_status_) return file_try_status_; \
  } while (0)

/* Sets `status` and jumps to the enclosing function's `out` label when the call failed. */
#define FILE_GOTO(status, call) \
  do {                          \
    (status) = (call);          \
    if (status) goto out;       \
  } while (0)

/* A folder held open; `path` is for messages and for opening it again. */
typedef struct file_disk_folder {
  int fd; /* -1 with path == NULL: closed */
  char *path;
} file_disk_folder;

/* malloc'd "dir/name", or NULL with WEIR_E_NOMEM set. */
char *file_disk_join(const char *dir, const char *name, weir_error *err);
char *file_disk_format(weir_error *err, const char *fmt, ...) WEIR_PRINTF(2, 3);

/* As weir_error_errno with the codes named above. Full disks and quotas are retriable. */
weir_status file_disk_error(weir_error *err, int errnum, const char *operation,
                            const char *folder, const char *name);
/* Adds flags to an error already set; returns its code, or `code` without an err. */
weir_status file_disk_flag(weir_error *err, weir_status code, uint32_t flags);

weir_status file_disk_folder_open(const char *path, file_disk_folder *out,
                                  weir_error *err);
void file_disk_folder_done(
    file_disk_folder *folder); /* zeroed or closed is fine; fd becomes -1 */
weir_status file_disk_folder_sync(const file_disk_folder *folder, weir_error *err);

/* mkdir -p, without any sync. An existing file of that name is WEIR_E_INVALID_CONFIG. */
weir_status file_disk_mkdirs(const char *path, mode_t mode, weir_error *err);

weir_status file_disk_write(int fd, const void *data, size_t size, const char *folder,
                            const char *name, weir_error *err);
/* Content and size of a file; nobody relies on its times. */
weir_status file_disk_sync(int fd, const char *folder, const char *name, weir_error *err);

/* A hint: the disk may begin with these bytes now, so that the sync later has less to wait for. */
void file_disk_start_writing(int fd, uint64_t from, uint64_t size);

/* Whole content, NUL behind it, free(). More than `max` bytes is WEIR_E_CORRUPT. */
weir_status file_disk_read(const file_disk_folder *folder, const char *name, size_t max,
                           char **out, size_t *size, weir_error *err);

/* Writes and syncs a new file `name`; removes what it began when that fails. */
weir_status file_disk_write_new(const file_disk_folder *folder, const char *name,
                                const void *data, size_t size, weir_error *err);

/* Size and SHA-256 of a file. */
weir_status file_disk_digest(const file_disk_folder *folder, const char *name,
                             uint64_t *size, uint8_t sha256[DISK_SHA256_SIZE],
                             weir_error *err);

/* *found says whether there is a file of that name, *size how long it is. */
weir_status file_disk_stat(const file_disk_folder *folder, const char *name, bool *found,
                           uint64_t *size, weir_error *err);

/* Moves a file to another folder under the same name and never over an existing one
 * (WEIR_E_EXISTS). WEIR_E_NOT_FOUND: it is not in `from`. */
weir_status file_disk_move(const file_disk_folder *from, const file_disk_folder *to,
                           const char *name, weir_error *err);
/* As file_disk_move, for file systems without RENAME_NOREPLACE: link, then unlink. A kill in between leaves
 * the file under both names. */
weir_status file_disk_move_by_link(const file_disk_folder *from,
                                   const file_disk_folder *to, const char *name,
                                   weir_error *err);

/* Removes a file; one that is gone already is fine. */
weir_status file_disk_remove(const file_disk_folder *folder, const char *name,
                             weir_error *err);

/* Calls `each` with every name but "." and ".."; stops at the first failure. Entries that are there all
 * the time are surely seen; what comes or goes meanwhile may be. */
typedef weir_status (*file_disk_each)(void *ctx, const char *name, weir_error *err);
weir_status file_disk_list(const file_disk_folder *folder, file_disk_each each, void *ctx,
                           weir_error *err);

#endif
