/* SPDX-License-Identifier: Apache-2.0 */
#include "staging.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weir/fault.h>

enum { WRITE_AHEAD = 8 << 20 };

typedef struct file_staging_file {
  file_data_file info; /* rows and bytes so far */
  const file_disk_folder *folder;
  int fd;
  uint64_t handed_over; /* bytes that the disk was told to begin with */
  EVP_MD_CTX *hash;
  const file_encoder_format *format;
  void *encoder;
} file_staging_file;

/* Hashing goes along with writing: the bytes are in the cache, and no second read is needed. */
static weir_status file_out(void *ctx, const void *data, size_t size, weir_error *err) {
  file_staging_file *file = ctx;
  FILE_TRY(
      file_disk_write(file->fd, data, size, file->folder->path, file->info.name, err));
  if (size && EVP_DigestUpdate(file->hash, data, size) != 1) {
    return weir_error_set(err, WEIR_E_INTERNAL, 0, "cannot hash '%s'", file->info.name);
  }
  file->info.bytes += size;
  if (file->info.bytes - file->handed_over >= WRITE_AHEAD) {
    file_disk_start_writing(file->fd, file->handed_over,
                            file->info.bytes - file->handed_over);
    file->handed_over = file->info.bytes;
  }
  return WEIR_OK;
}

static void file_free(file_staging_file *file) {
  if (!file) return;
  if (file->encoder) file->format->free(file->encoder);
  EVP_MD_CTX_free(file->hash);
  if (file->fd >= 0) close(file->fd);
  free(file);
}

static weir_status file_open(file_staging *s, weir_error *err) {
  weir_status status = WEIR_OK;
  file_data_name name = {.attempt = s->key.attempt, .participant = s->key.participant};
  file_staging_file *file = calloc(1, sizeof(*file));
  if (!file) return weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
  file->fd = -1;
  file->folder = s->folder;
  file->format = s->encoder.format;
  name.index = s->done.n + 1;
  memcpy(name.incarnation, s->key.incarnation, sizeof(name.incarnation));
  snprintf(name.extension, sizeof(name.extension), "%s", file->format->extension);
  file_data_name_format(&name, file->info.name);
  file->info.participant = name.participant;
  file->hash = EVP_MD_CTX_new();
  if (!file->hash || EVP_DigestInit_ex(file->hash, EVP_sha256(), NULL) != 1) {
    status = weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
    goto out;
  }
  /* F5. The folder is 0700, so the file may have its published mode from the start and no later change
   * of mode needs a sync. */
  file->fd = openat(s->folder->fd, file->info.name,
                    O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file->fd < 0 || WEIR_FAULT("file.staged.created")) {
    status = file_disk_error(err, file->fd < 0 ? errno : EIO, "create", s->folder->path,
                             file->info.name);
    goto out;
  }
  FILE_GOTO(status, file->format->create(&s->encoder, s->schema, file_out, file,
                                         &file->encoder, err));
  s->file = file;
  file = NULL;
out:
  file_free(file);
  return status;
}

/* Ends the open file: complete, synced, closed, listed. */
static weir_status file_finish(file_staging *s, weir_error *err) {
  file_staging_file *file = s->file;
  FILE_TRY(file->format->finish(file->encoder, err));
  if (WEIR_FAULT("file.staged.written")) {
    return file_disk_error(err, EIO, "write", s->folder->path, file->info.name);
  }
  FILE_TRY(file_disk_sync(file->fd, s->folder->path, file->info.name, err)); /* F6 */
  if (EVP_DigestFinal_ex(file->hash, file->info.sha256, NULL) != 1) {
    return weir_error_set(err, WEIR_E_INTERNAL, 0, "cannot hash '%s'", file->info.name);
  }
  FILE_TRY(file_data_files_add(&s->done, &file->info, err));
  file_free(file);
  s->file = NULL;
  return WEIR_OK;
}

static uint64_t file_size(const file_staging_file *file) {
  return file->info.bytes + file->format->pending(file->encoder);
}

void file_staging_begin(file_staging *s, const file_epoch_key *key) {
  file_staging_end(s);
  s->key = *key;
}

void file_staging_end(file_staging *s) {
  file_free(s->file);
  s->file = NULL;
  file_data_files_done(&s->done);
  memset(&s->key, 0, sizeof(s->key));
  s->broken = 0;
}

static weir_status swallow(void *ctx, const void *data, size_t size, weir_error *err) {
  (void)ctx;
  (void)data;
  (void)size;
  (void)err;
  return WEIR_OK;
}

/* A batch that falls into several files must be known to be good before its first part is taken: a
 * trial run into nothing. */
static weir_status rehearse(file_staging *s, weir_batch *batch, weir_error *err) {
  void *trial = NULL;
  const file_encoder_format *format = s->encoder.format;
  file_encoder_config cheap = s->encoder;
  cheap.parquet.codec = WEIR_PARQUET_NONE;
  cheap.parquet.level = 0;
  cheap.arrow.codec = WEIR_IPC_PLAIN;
  weir_status status = format->create(&cheap, s->schema, swallow, NULL, &trial, err);
  if (!status) status = format->write(trial, batch, err);
  format->free(trial);
  return status;
}

/* Writes rows that fit the open file; rolls it when it is full. */
static weir_status write_part(file_staging *s, weir_batch *batch, uint64_t *bytes,
                              weir_error *err) {
  if (!s->file) FILE_TRY(file_open(s, err));
  uint64_t before = file_size(s->file);
  FILE_TRY(s->file->format->write(s->file->encoder, batch, err));
  s->file->info.rows += (uint64_t)weir_batch_rows(batch);
  uint64_t after = file_size(s->file);
  if (after > before)
    *bytes += after - before; /* shrinks where an estimate was too high */
  if ((s->roll_rows && s->file->info.rows >= s->roll_rows) ||
      (s->roll_bytes && file_size(s->file) >= s->roll_bytes)) {
    FILE_TRY(file_finish(s, err));
  }
  return WEIR_OK;
}

static int64_t room(const file_staging *s, int64_t rows) {
  uint64_t taken = s->file ? s->file->info.rows : 0;
  if (!s->roll_rows || s->roll_rows - taken >= (uint64_t)rows) return rows;
  return (int64_t)(s->roll_rows - taken);
}

weir_status file_staging_write(file_staging *s, weir_batch *batch, uint64_t *bytes,
                               weir_error *err) {
  weir_status status = WEIR_OK;
  weir_error local = {0};
  int64_t rows = weir_batch_rows(batch), at = 0;
  if (s->broken) {
    return weir_error_set(err, WEIR_E_INVALID_STATE, 0,
                          "attempt %llu failed before and can only be rolled back",
                          (unsigned long long)s->key.attempt);
  }
  *bytes = 0;
  if (!rows) return WEIR_OK;
  if (room(s, rows) < rows) FILE_TRY(rehearse(s, batch, err));
  while (at < rows) {
    weir_batch *part = NULL;
    int64_t length = room(s, rows - at);
    if (length == rows) {
      status = write_part(s, batch, bytes, &local);
    } else {
      status = weir_batch_slice(batch, at, length, &part, &local);
      if (!status) status = write_part(s, part, bytes, &local);
      weir_batch_unref(part);
    }
    if (status) break;
    at += length;
  }
  if (!status) return WEIR_OK;
  /* Bad data was taken nowhere, and the epoch goes on without that batch. Anything else leaves a file
   * whose content nobody knows. */
  if (at || !(local.flags & WEIR_ERR_BAD_DATA)) {
    s->broken = 1;
    local.flags &= ~(uint32_t)WEIR_ERR_BAD_DATA;
  }
  if (err) *err = local;
  return status;
}

weir_status file_staging_prepare(file_staging *s, weir_error *err) {
  weir_status status = WEIR_OK;
  if (s->broken) {
    return weir_error_set(err, WEIR_E_INVALID_STATE, 0,
                          "attempt %llu failed before and can only be rolled back",
                          (unsigned long long)s->key.attempt);
  }
  if (s->file && !s->file->info.rows) {
    /* All its batches were bad: the file has no row and must not be published. */
    unlinkat(s->folder->fd, s->file->info.name, 0);
    file_free(s->file);
    s->file = NULL;
  }
  if (s->file) status = file_finish(s, err);
  if (!status && s->done.n && WEIR_FAULT("file.staged.synced")) {
    status = file_disk_error(err, EIO, "sync", s->folder->path, NULL);
  }
  if (!status && s->done.n) status = file_disk_folder_sync(s->folder, err); /* F7 */
  /* After a failed sync the kernel may have dropped the pages: none of these files is used again. */
  if (status) s->broken = 1;
  return status;
}
