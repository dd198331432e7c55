/* SPDX-License-Identifier: Apache-2.0 */
#include "staging.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <weir/fault.h>

enum { WRITE_AHEAD = 8 << 20, OPEN_MAX_FILES = 1024, PENDING_MAX = 128 << 20 };

typedef struct file_staging_file {
  file_data_file info; /* rows and bytes so far */
  const file_disk_folder *folder;
  int fd;
  uint64_t handed_over; /* bytes that the disk was told to begin with */
  bool complete;        /* the format has put its end */
  EVP_MD_CTX *hash;
  const file_encoder_format *format;
  void *encoder;
} file_staging_file;

struct file_staging_open {
  uint64_t hash; /* of the folder */
  uint64_t used; /* when it was written last */
  file_staging_file *file;
};

/* ---- one file ----------------------------------------------------------------------------------- */

/* Files that participants of this process hold open. */
static atomic_size_t open_files;

static void start_writing(file_staging_file *file) {
  file_disk_start_writing(file->fd, file->handed_over,
                          file->info.bytes - file->handed_over);
  file->handed_over = file->info.bytes;
}

/* Hashing goes along with writing: the bytes are in the cache, and no second read is needed. */
static weir_status file_out(void *ctx, const void *data, size_t size, weir_error *err) {
  file_staging_file *file = ctx;
  FILE_TRY(
      file_disk_write(file->fd, data, size, file->folder->path, file->info.name, err));
  if (size && EVP_DigestUpdate(file->hash, data, size) != 1) {
    return weir_error_set(err, WEIR_E_INTERNAL, 0, "cannot hash '%s'", file->info.name);
  }
  file->info.bytes += size;
  if (file->info.bytes - file->handed_over >= WRITE_AHEAD) start_writing(file);
  return WEIR_OK;
}

static void file_free(file_staging_file *file) {
  if (!file) return;
  if (file->encoder) file->format->free(file->encoder);
  EVP_MD_CTX_free(file->hash);
  if (file->fd >= 0) {
    close(file->fd);
    atomic_fetch_sub(&open_files, 1);
  }
  free(file->info.folder);
  free(file);
}

static weir_status file_create(file_staging *s, file_staging_file *file,
                               weir_error *err) {
  file_data_name name = {.attempt = s->key.attempt,
                         .participant = s->key.participant,
                         .index = s->begun + 1};
  memcpy(name.incarnation, s->key.incarnation, sizeof(name.incarnation));
  snprintf(name.extension, sizeof(name.extension), "%s", file->format->extension);
  file_data_name_format(&name, file->info.name);
  file->info.participant = name.participant;
  /* F5. The folder is 0700, so the file may have its published mode from the start and no later change
   * of mode needs a sync. */
  file->fd = openat(s->folder->fd, file->info.name,
                    O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file->fd >= 0) {
    atomic_fetch_add(&open_files, 1);
    s->begun++;
  }
  if (file->fd < 0 || WEIR_FAULT("file.staged.created")) {
    return file_disk_error(err, file->fd < 0 ? errno : EIO, "create", s->folder->path,
                           file->info.name);
  }
  return WEIR_OK;
}

static weir_status file_new(file_staging *s, const char *folder, file_staging_file **out,
                            weir_error *err) {
  weir_status status = WEIR_OK;
  file_staging_file *file = calloc(1, sizeof(*file));
  if (!file) return weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
  file->fd = -1;
  file->folder = s->folder;
  file->format = s->encoder.format;
  file->hash = EVP_MD_CTX_new();
  if (folder) file->info.folder = strdup(folder);
  if (!file->hash || (folder && !file->info.folder) ||
      EVP_DigestInit_ex(file->hash, EVP_sha256(), NULL) != 1) {
    status = weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
    goto out;
  }
  FILE_GOTO(status, file_create(s, file, err));
  FILE_GOTO(status, file->format->create(&s->encoder, s->schema, file_out, file,
                                         &file->encoder, err));
  *out = file;
  file = NULL;
out:
  file_free(file);
  return status;
}

/* Complete, but not yet durable. */
static weir_status file_complete(file_staging_file *file, weir_error *err) {
  if (file->complete) return WEIR_OK;
  FILE_TRY(file->format->finish(file->encoder, err));
  file->complete = true;
  return WEIR_OK;
}

/* Complete, synced, listed. */
static weir_status file_finish(file_staging *s, file_staging_file *file,
                               weir_error *err) {
  FILE_TRY(file_complete(file, err));
  if (WEIR_FAULT("file.staged.written")) {
    return file_disk_error(err, EIO, "write", s->folder->path, file->info.name);
  }
  FILE_TRY(file_disk_sync(file->fd, s->folder->path, file->info.name, err)); /* F6 */
  if (EVP_DigestFinal_ex(file->hash, file->info.sha256, NULL) != 1) {
    return weir_error_set(err, WEIR_E_INTERNAL, 0, "cannot hash '%s'", file->info.name);
  }
  FILE_TRY(file_data_files_add(&s->done, &file->info, err));
  file->info.folder = NULL; /* moved */
  return WEIR_OK;
}

static uint64_t file_pending(const file_staging_file *file) {
  return file->format->pending(file->encoder);
}

static uint64_t file_size(const file_staging_file *file) {
  return file->info.bytes + file_pending(file);
}

/* ---- the open files ----------------------------------------------------------------------------- */

/* Forgets the open file at `at`, whose descriptor is closed. */
static void open_drop(file_staging *s, size_t at) {
  file_free(s->open[at].file);
  s->open[at] = s->open[--s->n_open];
}

static weir_status open_finish(file_staging *s, size_t at, weir_error *err) {
  weir_status status = WEIR_OK;
  file_staging_file *file = s->open[at].file;
  if (file->info.rows)
    status = file_finish(s, file, err);
  else /* All its batches were bad: the file has no row and must not be published. */
    unlinkat(s->folder->fd, file->info.name, 0);
  if (!status) open_drop(s, at);
  return status;
}

static bool may_open(const file_staging *s) {
  struct rlimit limit = {0};
  size_t most = OPEN_MAX_FILES;
  if (!s->n_open) return true;
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur / 2 < most)
    most = (size_t)limit.rlim_cur / 2;
  return s->n_open < OPEN_MAX_FILES && atomic_load(&open_files) < most;
}

static weir_status make_way(file_staging *s, weir_error *err) {
  while (!may_open(s)) {
    size_t oldest = 0;
    for (size_t i = 1; i < s->n_open; i++) {
      if (s->open[i].used < s->open[oldest].used) oldest = i;
    }
    FILE_TRY(open_finish(s, oldest, err));
  }
  return WEIR_OK;
}

static weir_status check_described(file_staging *s, const char *folder, weir_error *err) {
  s->described += file_descriptor_bytes(folder);
  if (s->described <= WEIR_MAX_DESCRIPTOR - 1024) return WEIR_OK;
  return weir_error_set(err, WEIR_E_INTERNAL, 0,
                        "attempt %llu comes to %llu files, more than one participant's "
                        "descriptor can name: partition_by columns with fewer values, "
                        "roll larger files, or checkpoint more often",
                        (unsigned long long)s->key.attempt, (unsigned long long)s->begun);
}

/* The open file of a folder, NULL when there is none. */
static struct file_staging_open *open_find(const file_staging *s, const char *folder,
                                           uint64_t hash) {
  for (size_t i = 0; i < s->n_open; i++) {
    struct file_staging_open *o = &s->open[i];
    if (o->hash == hash && (!folder || strcmp(o->file->info.folder, folder) == 0))
      return o;
  }
  return NULL;
}

static weir_status open_get(file_staging *s, const char *folder, uint64_t hash,
                            struct file_staging_open **out, weir_error *err) {
  struct file_staging_open *o = open_find(s, folder, hash);
  if (!o) {
    FILE_TRY(make_way(s, err));
    FILE_TRY(check_described(s, folder, err));
    if (s->n_open == s->open_capacity) {
      size_t capacity = s->open_capacity ? 2 * s->open_capacity : 4;
      o = realloc(s->open, capacity * sizeof(*o));
      if (!o) return weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
      s->open = o;
      s->open_capacity = capacity;
    }
    o = &s->open[s->n_open];
    *o = (struct file_staging_open){.hash = hash};
    FILE_TRY(file_new(s, folder, &o->file, err));
    s->n_open++;
  }
  o->used = ++s->clock;
  *out = o;
  return WEIR_OK;
}

/* What waits in all open files, so that many of them together stay within bounds. */
static weir_status bound_pending(file_staging *s, weir_error *err) {
  while (s->encoder.format->flush) {
    uint64_t sum = 0, most = 0;
    size_t largest = 0;
    for (size_t i = 0; i < s->n_open; i++) {
      uint64_t pending = file_pending(s->open[i].file);
      sum += pending;
      if (pending > most) most = pending, largest = i;
    }
    if (sum <= PENDING_MAX) break;
    FILE_TRY(s->encoder.format->flush(s->open[largest].file->encoder, err));
  }
  return WEIR_OK;
}

/* ---- epochs ------------------------------------------------------------------------------------- */

void file_staging_begin(file_staging *s, const file_epoch_key *key) {
  file_staging_end(s);
  s->key = *key;
}

void file_staging_end(file_staging *s) {
  while (s->n_open) open_drop(s, s->n_open - 1);
  file_data_files_done(&s->done);
  memset(&s->key, 0, sizeof(s->key));
  s->broken = 0;
  s->begun = 0;
  s->described = 0;
}

void file_staging_done(file_staging *s) {
  file_staging_end(s);
  file_partitions_free(s->partitions);
  s->partitions = NULL;
  free(s->open);
  s->open = NULL;
  s->open_capacity = 0;
}

static weir_status swallow(void *ctx, const void *data, size_t size, weir_error *err) {
  (void)ctx;
  (void)data;
  (void)size;
  (void)err;
  return WEIR_OK;
}

/* A batch that falls into several files must be known to be good before its first part is taken: it is
 * checked, or where the format cannot, encoded into nothing. */
static weir_status rehearse(const file_staging *s, weir_batch *batch, weir_error *err) {
  void *trial = NULL;
  const file_encoder_format *format = s->encoder.format;
  file_encoder_config cheap = s->encoder;
  cheap.parquet.codec = WEIR_PARQUET_NONE;
  cheap.parquet.level = 0;
  cheap.arrow.codec = WEIR_IPC_PLAIN;
  weir_status status = format->create(&cheap, s->schema, swallow, NULL, &trial, err);
  if (!status)
    status = format->check_batch ? format->check_batch(trial, batch, err)
                                 : format->write(trial, batch, err);
  format->free(trial);
  return status;
}

/* Rows that the folder's open file has room for. */
static int64_t room(const file_staging *s, const file_partition_group *group,
                    int64_t rows) {
  const struct file_staging_open *o = open_find(s, group->folder, group->hash);
  uint64_t taken = o ? o->file->info.rows : 0;
  if (!s->roll_rows || s->roll_rows - taken >= (uint64_t)rows) return rows;
  return (int64_t)(s->roll_rows - taken);
}

/* Writes rows that fit the folder's open file; rolls it when it is full. */
static weir_status write_part(file_staging *s, const file_partition_group *group,
                              weir_batch *batch, uint64_t *bytes, weir_error *err) {
  struct file_staging_open *o = NULL;
  FILE_TRY(open_get(s, group->folder, group->hash, &o, err));
  file_staging_file *file = o->file;
  uint64_t before = file_size(file);
  FILE_TRY(file->format->write(file->encoder, batch, err));
  file->info.rows += (uint64_t)weir_batch_rows(batch);
  uint64_t after = file_size(file);
  if (after > before)
    *bytes += after - before; /* shrinks where an estimate was too high */
  if (s->partitions && file->format->trim) file->format->trim(file->encoder);
  if ((s->roll_rows && file->info.rows >= s->roll_rows) ||
      (s->roll_bytes && file_size(file) >= s->roll_bytes)) {
    return open_finish(s, (size_t)(o - s->open), err);
  }
  return WEIR_OK;
}

static weir_status write_group(file_staging *s, const file_partition_group *group,
                               weir_batch *batch, uint64_t *bytes, bool *took,
                               weir_error *err) {
  for (int64_t at = 0; at < group->rows;) {
    weir_status status = WEIR_OK;
    weir_batch *part = NULL;
    int64_t length = room(s, group, group->rows - at);
    if (length == weir_batch_rows(batch))
      part = weir_batch_ref(batch);
    else
      status = weir_batch_slice(batch, group->first + at, length, &part, err);
    if (!status) status = write_part(s, group, part, bytes, err);
    weir_batch_unref(part);
    if (status) return status;
    *took = true;
    at += length;
  }
  return WEIR_OK;
}

static weir_status write_groups(file_staging *s, const file_partition_group *groups,
                                size_t n, weir_batch *batch, uint64_t *bytes, bool *took,
                                weir_error *err) {
  if (n > 1 || room(s, groups, groups->rows) < groups->rows)
    FILE_TRY(rehearse(s, batch, err));
  for (size_t i = 0; i < n; i++)
    FILE_TRY(write_group(s, &groups[i], batch, bytes, took, err));
  return s->partitions ? bound_pending(s, err) : WEIR_OK;
}

static weir_status write_rows(file_staging *s, weir_batch *batch, uint64_t *bytes,
                              bool *took, weir_error *err) {
  if (!s->partitions) {
    file_partition_group all = {.rows = weir_batch_rows(batch)};
    return write_groups(s, &all, 1, batch, bytes, took, err);
  }
  const file_partition_group *groups = NULL;
  weir_batch *ordered = NULL;
  size_t n = 0;
  FILE_TRY(file_partitions_split(s->partitions, batch, &ordered, &groups, &n, err));
  weir_status status = write_groups(s, groups, n, ordered, bytes, took, err);
  weir_batch_unref(ordered);
  return status;
}

static weir_status broken(const file_staging *s, weir_error *err) {
  return weir_error_set(err, WEIR_E_INVALID_STATE, 0,
                        "attempt %llu failed before and can only be rolled back",
                        (unsigned long long)s->key.attempt);
}

weir_status file_staging_write(file_staging *s, weir_batch *batch, uint64_t *bytes,
                               weir_error *err) {
  weir_error local = {0};
  bool took = false;
  if (s->broken) return broken(s, err);
  *bytes = 0;
  if (!weir_batch_rows(batch)) return WEIR_OK;
  weir_status status = write_rows(s, batch, bytes, &took, &local);
  if (!status) return WEIR_OK;
  /* Bad data was taken nowhere, and the epoch goes on without that batch. Anything else leaves a file
   * whose content nobody knows. */
  if (took || !(local.flags & WEIR_ERR_BAD_DATA)) {
    s->broken = 1;
    local.flags &= ~(uint32_t)WEIR_ERR_BAD_DATA;
  }
  if (err) *err = local;
  return status;
}

weir_status file_staging_prepare(file_staging *s, weir_error *err) {
  weir_status status = WEIR_OK;
  if (s->broken) return broken(s, err);
  /* The disk begins with all of them before the first is waited for. */
  for (size_t i = 0; !status && s->n_open > 1 && i < s->n_open; i++) {
    file_staging_file *file = s->open[i].file;
    if (file->info.rows) status = file_complete(file, err);
    if (!status) start_writing(file);
  }
  while (!status && s->n_open) status = open_finish(s, s->n_open - 1, err);
  file_data_files_sort(&s->done);
  if (!status && s->done.n && WEIR_FAULT("file.staged.synced")) {
    status = file_disk_error(err, EIO, "sync", s->folder->path, NULL);
  }
  if (!status && s->done.n) status = file_disk_folder_sync(s->folder, err); /* F7 */
  /* After a failed sync the kernel may have dropped the pages: none of these files is used again. */
  if (status) s->broken = 1;
  return status;
}
