/* SPDX-License-Identifier: Apache-2.0 */
#include "staging.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <weir/fault.h>

#include "staged_file.h"

enum {
  HELD_MAX = 16 << 10,
  UNDER_WAY_BYTES = 192 << 20, /* what the files under way cost, empty */
  PENDING_MAX = 128 << 20,     /* what they hold in memory */
  BUCKETS = 4096
};

/* ---- the files under way ------------------------------------------------------------------------ */

/* By folder in buckets, and in the order in which they were written. */
struct file_staging_files {
  file_staged *buckets[BUCKETS];
  file_staged *newest, *oldest;
  size_t n, most;
};

/* An empty Parquet writer takes 6 KiB and 1.1 KiB a column. */
static size_t most_files(const weir_schema *schema) {
  size_t each = (8 << 10) + (size_t)weir_schema_arrow(schema)->n_children * (2 << 10);
  size_t n = UNDER_WAY_BYTES / each;
  return n < 64 ? 64 : n;
}

static file_staged *files_find(const file_staging *s, const char *folder, uint64_t key) {
  for (file_staged *file = s->files ? s->files->buckets[key % BUCKETS] : NULL; file;
       file = file->next) {
    if (file->key == key && (!folder || strcmp(file->info.folder, folder) == 0))
      return file;
  }
  return NULL;
}

static void unlink_age(struct file_staging_files *files, file_staged *file) {
  if (file->newer)
    file->newer->older = file->older;
  else
    files->newest = file->older;
  if (file->older)
    file->older->newer = file->newer;
  else
    files->oldest = file->newer;
  file->newer = file->older = NULL;
}

static void make_newest(struct file_staging_files *files, file_staged *file) {
  file->older = files->newest;
  if (files->newest)
    files->newest->newer = file;
  else
    files->oldest = file;
  files->newest = file;
}

static void files_drop(struct file_staging_files *files, file_staged *file) {
  file_staged **at = &files->buckets[file->key % BUCKETS];
  while (*at != file) at = &(*at)->next;
  *at = file->next;
  unlink_age(files, file);
  files->n--;
  file_staged_free(file);
}

/* Synced and listed; or gone, when all its batches were bad: a file without a row must not be published. */
static weir_status files_finish(file_staging *s, file_staged *file, weir_error *err) {
  if (file->info.rows) {
    FILE_TRY(file_staged_finish(file, err));
    FILE_TRY(file_data_files_add(&s->done, &file->info, err));
    file->info.folder = NULL; /* moved */
  } else if (file->created) {
    unlinkat(s->folder->fd, file->info.name, 0);
  }
  files_drop(s->files, file);
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

static weir_status files_begin(file_staging *s, const char *folder, uint64_t key,
                               file_staged **out, weir_error *err) {
  if (!s->files) {
    s->files = calloc(1, sizeof(*s->files));
    if (!s->files) return weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
    s->files->most = most_files(s->schema);
  }
  while (s->files->n >= s->files->most) FILE_TRY(files_finish(s, s->files->oldest, err));
  FILE_TRY(check_described(s, folder, err));
  file_staged *file = NULL;
  file_data_name name = {
      .attempt = s->key.attempt, .participant = s->key.participant, .index = ++s->begun};
  memcpy(name.incarnation, s->key.incarnation, sizeof(name.incarnation));
  snprintf(name.extension, sizeof(name.extension), "%s", s->encoder.format->extension);
  FILE_TRY(file_staged_new(&s->encoder, s->schema, s->folder, &name, folder,
                           folder ? HELD_MAX : 0, &file, err));
  file->key = key;
  file->next = s->files->buckets[key % BUCKETS];
  s->files->buckets[key % BUCKETS] = file;
  make_newest(s->files, file);
  s->files->n++;
  *out = file;
  return WEIR_OK;
}

static bool too_many_open(void) {
  struct rlimit limit = {0};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
         file_staged_count() > limit.rlim_cur / 2;
}

/* Leaves the file that was written last, however many others have open. */
static weir_status bound_open(file_staging *s, weir_error *err) {
  file_staged *file = s->files->oldest;
  while (file && file != s->files->newest && too_many_open()) {
    file_staged *newer = file->newer;
    if (file->fd >= 0) FILE_TRY(files_finish(s, file, err));
    file = newer;
  }
  return WEIR_OK;
}

/* What waits in memory for all files, so that many of them together stay within bounds. */
static weir_status bound_pending(file_staging *s, weir_error *err) {
  for (;;) {
    uint64_t sum = 0, most = 0;
    file_staged *largest = NULL;
    for (file_staged *file = s->files ? s->files->newest : NULL; file;
         file = file->older) {
      uint64_t pending = file_staged_pending(file);
      sum += pending;
      if (pending > most) most = pending, largest = file;
    }
    if (sum <= PENDING_MAX || !largest) return WEIR_OK;
    FILE_TRY(file_staged_spill(largest, err));
    FILE_TRY(bound_open(s, err));
  }
}

/* ---- epochs ------------------------------------------------------------------------------------- */

void file_staging_begin(file_staging *s, const file_epoch_key *key) {
  file_staging_end(s);
  s->key = *key;
}

void file_staging_end(file_staging *s) {
  while (s->files && s->files->n) files_drop(s->files, s->files->newest);
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
  free(s->files);
  s->files = NULL;
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
  const file_staged *file = files_find(s, group->folder, group->hash);
  uint64_t taken = file ? file->info.rows : 0;
  if (!s->roll_rows || s->roll_rows - taken >= (uint64_t)rows) return rows;
  return (int64_t)(s->roll_rows - taken);
}

/* Writes rows that fit the folder's open file; rolls it when it is full. */
static weir_status write_part(file_staging *s, const file_partition_group *group,
                              weir_batch *batch, uint64_t *bytes, weir_error *err) {
  file_staged *file = files_find(s, group->folder, group->hash);
  if (!file) FILE_TRY(files_begin(s, group->folder, group->hash, &file, err));
  unlink_age(s->files, file);
  make_newest(s->files, file);
  uint64_t before = file_staged_size(file);
  FILE_TRY(file->format->write(file->encoder, batch, err));
  file->info.rows += (uint64_t)weir_batch_rows(batch);
  uint64_t after = file_staged_size(file);
  if (after > before)
    *bytes += after - before; /* shrinks where an estimate was too high */
  if (s->partitions && file->format->trim) file->format->trim(file->encoder);
  if ((s->roll_rows && file->info.rows >= s->roll_rows) ||
      (s->roll_bytes && file_staged_size(file) >= s->roll_bytes)) {
    return files_finish(s, file, err);
  }
  return s->partitions && file->fd >= 0 ? bound_open(s, err) : WEIR_OK;
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
  if (status && !*took) file_partitions_point_back(s->partitions, err);
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

/* The disk begins with files that are open before the first is waited for. */
static weir_status finish_all(file_staging *s, weir_error *err) {
  for (file_staged *file = s->files->n > 1 ? s->files->oldest : NULL; file;
       file = file->newer) {
    if (file->info.rows && file->fd >= 0) FILE_TRY(file_staged_complete(file, err));
  }
  while (s->files->n) FILE_TRY(files_finish(s, s->files->oldest, err));
  return WEIR_OK;
}

weir_status file_staging_prepare(file_staging *s, weir_error *err) {
  if (s->broken) return broken(s, err);
  weir_status status = s->files ? finish_all(s, err) : WEIR_OK;
  file_data_files_sort(&s->done);
  if (!status && s->done.n && WEIR_FAULT("file.staged.synced")) {
    status = file_disk_error(err, EIO, "sync", s->folder->path, NULL);
  }
  if (!status && s->done.n) status = file_disk_folder_sync(s->folder, err); /* F7 */
  /* After a failed sync the kernel may have dropped the pages: none of these files is used again. */
  if (status) s->broken = 1;
  return status;
}
