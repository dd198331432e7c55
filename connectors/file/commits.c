/* SPDX-License-Identifier: Apache-2.0 */
#include "commits.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weir/fault.h>

#include "json.h"

enum { SEQUENCE_DIGITS = 20, NAME_MAX_SIZE = 80 };

static bool sequence_parse(const char *text, uint64_t *out) {
  uint64_t value = 0;
  for (int i = 0; i < SEQUENCE_DIGITS; i++) {
    if (text[i] < '0' || text[i] > '9' ||
        __builtin_mul_overflow(value, (uint64_t)10, &value) ||
        __builtin_add_overflow(value, (uint64_t)(text[i] - '0'), &value)) {
      return false;
    }
  }
  *out = value;
  return true;
}

static void file_manifest_name(uint64_t sequence, char out[NAME_MAX_SIZE]) {
  snprintf(out, NAME_MAX_SIZE, "%020" PRIu64 ".json", sequence);
}

/* The digest is in the name so that a marker never speaks for another manifest of that number, as may
 * lie there after a folder was restored in part. */
static void done_name(const file_manifest *m, char out[NAME_MAX_SIZE]) {
  char digest[17];
  weir_hex_encode(file_manifest_cursor(m)->digest, 8, digest);
  snprintf(out, NAME_MAX_SIZE, "%020" PRIu64 "-%s.done", m->sequence, digest);
}

static weir_status highest(void *ctx, const char *name, weir_error *err) {
  uint64_t *top = ctx, sequence = 0;
  (void)err;
  if (sequence_parse(name, &sequence) && strcmp(name + SEQUENCE_DIGITS, ".json") == 0 &&
      sequence > *top) {
    *top = sequence;
  }
  return WEIR_OK;
}

weir_status file_commits_read(const file_disk_folder *commits, uint64_t sequence,
                              file_manifest *out, weir_error *err) {
  char name[NAME_MAX_SIZE], *data = NULL;
  size_t size = 0;
  file_manifest_name(sequence, name);
  FILE_TRY(file_disk_read(commits, name, MANIFEST_MAX, &data, &size, err));
  char *where = file_disk_join(commits->path, name, err);
  weir_status status =
      where ? file_manifest_read(data, size, sequence, where, out, err) : WEIR_E_NOMEM;
  free(where);
  free(data);
  return status;
}

weir_status file_commits_newest(const file_disk_folder *commits, file_manifest *out,
                                weir_error *err) {
  enum { TRIES = 100 };
  for (int i = 0; i < TRIES; i++) {
    uint64_t top = 0;
    FILE_TRY(file_disk_list(commits, highest, &top, err));
    if (!top) {
      memset(out, 0, sizeof(*out));
      return WEIR_OK;
    }
    weir_status status = file_commits_read(commits, top, out, err);
    /* Pruned since it was listed: then there is a newer one. */
    if (status != WEIR_E_NOT_FOUND) return status;
  }
  return weir_error_set(err, WEIR_E_IO, WEIR_ERR_RETRIABLE,
                        "cannot read the newest manifest in '%s': it went away %d times",
                        commits->path, TRIES);
}

/* F12. An owner that was paused before its link() may find the number free again because newer owners
 * have pruned it. Their newest manifest says so: what lies below its floor is void. */
static weir_status check_not_void(const file_disk_folder *commits, uint64_t sequence,
                                  const char *name, weir_error *err) {
  file_manifest newest = {0};
  FILE_TRY(file_commits_newest(commits, &newest, err));
  bool is_void = sequence < newest.floor;
  file_manifest_done(&newest);
  if (!is_void) return WEIR_OK;
  FILE_TRY(file_disk_remove(commits, name, err));
  return weir_error_set(err, WEIR_E_EXISTS, 0,
                        "manifest %" PRIu64 " in '%s' is long past", sequence,
                        commits->path);
}

weir_status file_commits_append(const file_disk_folder *commits, const file_manifest *m,
                                const weir_namespace *ns, const weir_host *host,
                                weir_error *err) {
  uint8_t random[WEIR_INCARNATION_SIZE];
  char hex[2 * WEIR_INCARNATION_SIZE + 1], temp[NAME_MAX_SIZE], name[NAME_MAX_SIZE];
  char *data = NULL;
  size_t size = 0;
  FILE_TRY(host->random(host->ctx, random, sizeof(random), err));
  weir_hex_encode(random, sizeof(random), hex);
  snprintf(temp, sizeof(temp), ".tmp-%020" PRIu64 "-%s", m->sequence, hex);
  file_manifest_name(m->sequence, name);
  FILE_TRY(file_manifest_write(m, ns, &data, &size, err));
  weir_status status = file_disk_write_new(commits, temp, data, size, err); /* F9 */
  free(data);
  if (status) return file_disk_flag(err, status, WEIR_ERR_RETRIABLE);
  if (WEIR_FAULT("file.manifest.written")) {
    status = file_disk_error(err, EIO, "create", commits->path, name);
    unlinkat(commits->fd, temp, 0);
    return file_disk_flag(err, status, WEIR_ERR_RETRIABLE);
  }
  /* F10: the commit. link() gives the name to one owner alone, and the content is whole from the start. */
  int failed = linkat(commits->fd, temp, commits->fd, name, 0) ? errno : 0;
  if (WEIR_FAULT("file.manifest.linked")) failed = EIO;
  unlinkat(commits->fd, temp, 0);
  if (failed == ENOENT)
    failed = EEXIST; /* a newer owner removed the temporary file: the number is taken */
  if (failed) {
    status = file_disk_error(err, failed, "create", commits->path, name);
    /* Network file systems may have linked it and lost the answer. */
    return failed == EEXIST ? status : file_disk_flag(err, status, WEIR_ERR_IN_DOUBT);
  }
  status = file_disk_folder_sync(commits, err); /* F11 */
  if (!status && WEIR_FAULT("file.manifest.synced")) {
    status = file_disk_error(err, EIO, "sync", commits->path, NULL);
  }
  if (!status) status = check_not_void(commits, m->sequence, name, err);
  return status && status != WEIR_E_EXISTS
             ? file_disk_flag(err, status, WEIR_ERR_IN_DOUBT)
             : status;
}

bool file_commits_is_done(const file_disk_folder *commits, const file_manifest *m) {
  char name[NAME_MAX_SIZE];
  done_name(m, name);
  return faccessat(commits->fd, name, F_OK, 0) == 0;
}

weir_status file_commits_mark_done(const file_disk_folder *commits,
                                   const file_manifest *m, weir_error *err) {
  char name[NAME_MAX_SIZE];
  done_name(m, name);
  int fd = openat(commits->fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) return file_disk_error(err, errno, "create", commits->path, name);
  close(fd);
  return WEIR_OK;
}

bool file_commits_temporary(const char *name, uint64_t *sequence) {
  return strncmp(name, ".tmp-", 5) == 0 && sequence_parse(name + 5, sequence);
}

typedef struct prune {
  const file_disk_folder *commits;
  uint64_t sequence, floor;
} prune;

static weir_status prune_one(void *ctx, const char *name, weir_error *err) {
  const prune *p = ctx;
  uint64_t sequence = 0;
  bool temp = file_commits_temporary(name, &sequence);
  if (!temp && !sequence_parse(name, &sequence)) return WEIR_OK;
  if (temp ? sequence > p->sequence : sequence >= p->floor) return WEIR_OK;
  return file_disk_remove(p->commits, name, err);
}

weir_status file_commits_prune(const file_disk_folder *commits, const file_manifest *m,
                               weir_error *err) {
  prune p = {.commits = commits, .sequence = m->sequence, .floor = m->floor};
  return file_disk_list(commits, prune_one, &p, err);
}
