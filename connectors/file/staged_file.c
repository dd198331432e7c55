/* SPDX-License-Identifier: Apache-2.0 */
#include "staged_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weir/fault.h>

enum { WRITE_AHEAD = 8 << 20 };

static atomic_size_t open_files;

size_t file_staged_count(void) {
  return atomic_load(&open_files);
}

static void start_writing(file_staged *file) {
  if (file->fd < 0) return;
  file_disk_start_writing(file->fd, file->handed_over,
                          file->info.bytes - file->handed_over);
  file->handed_over = file->info.bytes;
}

/* F5. The folder is 0700, so the file may have its published mode from the start and no later change of mode
 * needs a sync. */
static weir_status create(file_staged *file, weir_error *err) {
  const char *folder = file->folder->path, *name = file->info.name;
  file->fd =
      openat(file->folder->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file->fd >= 0) {
    atomic_fetch_add(&open_files, 1);
    file->created = true;
  }
  if (file->fd < 0 || WEIR_FAULT("file.staged.created"))
    return file_disk_error(err, file->fd < 0 ? errno : EIO, "create", folder, name);
  weir_status status =
      file->held_size
          ? file_disk_write(file->fd, file->held, file->held_size, folder, name, err)
          : WEIR_OK;
  free(file->held);
  file->held = NULL;
  file->held_size = file->held_capacity = 0;
  return status;
}

static weir_status hold(file_staged *file, const void *data, size_t size,
                        weir_error *err) {
  size_t capacity = file->held_capacity ? file->held_capacity : 512;
  while (capacity - file->held_size < size) capacity *= 2;
  if (capacity > file->held_capacity) {
    uint8_t *held = realloc(file->held, capacity);
    if (!held) return weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
    file->held = held;
    file->held_capacity = capacity;
  }
  memcpy(file->held + file->held_size, data, size);
  file->held_size += size;
  return WEIR_OK;
}

/* Hashing goes along with writing: the bytes are in the cache, and no second read is needed. */
static weir_status file_out(void *ctx, const void *data, size_t size, weir_error *err) {
  file_staged *file = ctx;
  if (!size) return WEIR_OK;
  if (EVP_DigestUpdate(file->hash, data, size) != 1) {
    return weir_error_set(err, WEIR_E_INTERNAL, 0, "cannot hash '%s'", file->info.name);
  }
  if (file->fd < 0 && size <= file->held_max - file->held_size) {
    FILE_TRY(hold(file, data, size, err));
    file->info.bytes += size;
    return WEIR_OK;
  }
  if (file->fd < 0) FILE_TRY(create(file, err));
  FILE_TRY(
      file_disk_write(file->fd, data, size, file->folder->path, file->info.name, err));
  file->info.bytes += size;
  if (file->info.bytes - file->handed_over >= WRITE_AHEAD) start_writing(file);
  return WEIR_OK;
}

static void file_close(file_staged *file) {
  if (file->fd < 0) return;
  close(file->fd);
  file->fd = -1;
  atomic_fetch_sub(&open_files, 1);
}

void file_staged_free(file_staged *file) {
  if (!file) return;
  if (file->encoder) file->format->free(file->encoder);
  EVP_MD_CTX_free(file->hash);
  file_close(file);
  free(file->held);
  free(file->info.folder);
  free(file);
}

weir_status file_staged_new(const file_encoder_config *config, weir_schema *schema,
                            const file_disk_folder *staged, const file_data_name *name,
                            const char *folder, size_t held_max, file_staged **out,
                            weir_error *err) {
  weir_status status = WEIR_OK;
  file_staged *file = calloc(1, sizeof(*file));
  if (!file) return weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
  file->fd = -1;
  file->folder = staged;
  file->format = config->format;
  file->held_max = held_max;
  file_data_name_format(name, file->info.name);
  file->info.participant = name->participant;
  file->hash = EVP_MD_CTX_new();
  if (folder) file->info.folder = strdup(folder);
  if (!file->hash || (folder && !file->info.folder) ||
      EVP_DigestInit_ex(file->hash, EVP_sha256(), NULL) != 1) {
    status = weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
    goto out;
  }
  if (!held_max) FILE_GOTO(status, create(file, err));
  FILE_GOTO(status,
            file->format->create(config, schema, file_out, file, &file->encoder, err));
  *out = file;
  file = NULL;
out:
  file_staged_free(file);
  return status;
}

uint64_t file_staged_pending(const file_staged *file) {
  return file->format->pending(file->encoder) + file->held_size;
}

uint64_t file_staged_size(const file_staged *file) {
  return file->info.bytes + file->format->pending(file->encoder);
}

weir_status file_staged_spill(file_staged *file, weir_error *err) {
  if (file->format->flush) FILE_TRY(file->format->flush(file->encoder, err));
  return file->fd < 0 ? create(file, err) : WEIR_OK;
}

weir_status file_staged_complete(file_staged *file, weir_error *err) {
  if (file->complete) return WEIR_OK;
  FILE_TRY(file->format->finish(file->encoder, err));
  file->complete = true;
  start_writing(file);
  return WEIR_OK;
}

weir_status file_staged_finish(file_staged *file, weir_error *err) {
  FILE_TRY(file_staged_complete(file, err));
  if (file->fd < 0) FILE_TRY(create(file, err));
  if (WEIR_FAULT("file.staged.written")) {
    return file_disk_error(err, EIO, "write", file->folder->path, file->info.name);
  }
  FILE_TRY(file_disk_sync(file->fd, file->folder->path, file->info.name, err)); /* F6 */
  if (EVP_DigestFinal_ex(file->hash, file->info.sha256, NULL) != 1) {
    return weir_error_set(err, WEIR_E_INTERNAL, 0, "cannot hash '%s'", file->info.name);
  }
  file_close(file);
  return WEIR_OK;
}
