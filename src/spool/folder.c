/* SPDX-License-Identifier: Apache-2.0 */
/* Names of segments, and their removal. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "spool/segment.h"

#define SUFFIX ".spool"

char *spool_folder_of(const char *folder, const weir_namespace *ns, weir_error *err) {
  char key[WEIR_NAMESPACE_KEY_SIZE];
  weir_namespace_key(ns, key);
  if (!*key) {
    weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
    return NULL;
  }
  return base_path_join(folder, key, err);
}

void spool_name_format(const weir_spool_id *id, char out[SPOOL_MAX_NAME]) {
  char hex[2 * WEIR_INCARNATION_SIZE + 1];
  weir_hex_encode(id->incarnation, sizeof(id->incarnation), hex);
  snprintf(out, SPOOL_MAX_NAME, "%" PRIu64 "-%" PRIu64 "-%s" SUFFIX, id->attempt,
           id->participant, hex);
}

char *spool_path_of(const char *folder, const weir_namespace *ns, const weir_spool_id *id,
                    weir_error *err) {
  char name[SPOOL_MAX_NAME];
  char *dir = spool_folder_of(folder, ns, err);
  if (!dir) return NULL;
  spool_name_format(id, name);
  char *path = base_path_join(dir, name, err);
  free(dir);
  return path;
}

/* Only what spool_name_format could have made. */
bool spool_name_parse(const char *name, weir_spool_id *out) {
  weir_spool_id id = {0};
  char again[SPOOL_MAX_NAME], hex[2 * WEIR_INCARNATION_SIZE + 1] = "", *end = NULL;
  id.attempt = strtoull(name, &end, 10);
  if (*end != '-') return false;
  id.participant = strtoull(end + 1, &end, 10);
  if (*end != '-') return false;
  snprintf(hex, sizeof(hex), "%s", end + 1);
  if (!weir_hex_decode(hex, id.incarnation, sizeof(id.incarnation))) return false;
  spool_name_format(&id, again);
  if (strcmp(again, name) != 0) return false;
  *out = id;
  return true;
}

weir_status weir_spool_prepare(const char *folder, const weir_namespace *ns,
                               weir_error *err) {
  char *dir = spool_folder_of(folder, ns, err);
  if (!dir) return WEIR_E_NOMEM;
  weir_status status = base_mkdirs(dir, 0700, err);
  if (!status) status = base_sync_upwards(dir, err);
  free(dir);
  return status;
}

static weir_status remove_path(const char *path, weir_error *err) {
  return unlink(path) && errno != ENOENT ? base_io_error(err, errno, "remove", path)
                                         : WEIR_OK;
}

weir_status weir_spool_remove(const char *folder, const weir_namespace *ns,
                              const weir_spool_id *id, weir_error *err) {
  char *path = spool_path_of(folder, ns, id, err);
  if (!path) return WEIR_E_NOMEM;
  weir_status status = remove_path(path, err);
  free(path);
  return status;
}

/* ---- listings ----------------------------------------------------------------------------------- */

typedef struct entry {
  weir_spool_id id;
  uint64_t bytes;
} entry;

typedef struct listing {
  entry *v;
  size_t n, room;
} listing;

static int newest_first(const void *a, const void *b) {
  const weir_spool_id *x = &((const entry *)a)->id, *y = &((const entry *)b)->id;
  return x->attempt < y->attempt ? 1 : x->attempt > y->attempt ? -1 : 0;
}

static weir_status add_entry(listing *l, const weir_spool_id *id, uint64_t bytes,
                             weir_error *err) {
  if (l->n == l->room) {
    size_t room = l->room ? 2 * l->room : 32;
    entry *v = base_realloc(l->v, room, sizeof(*v), err);
    if (!v) return WEIR_E_NOMEM;
    l->v = v;
    l->room = room;
  }
  l->v[l->n++] = (entry){*id, bytes};
  return WEIR_OK;
}

/* Segments that are there, newest attempt first; none where there is no folder. What is called otherwise is
 * nobody's business here. */
static weir_status list(const char *dir, listing *out, weir_error *err) {
  weir_status status = WEIR_OK;
  DIR *d = opendir(dir);
  int fd = d ? dirfd(d) : -1;
  if (fd < 0) return errno == ENOENT ? WEIR_OK : base_io_error(err, errno, "list", dir);
  for (struct dirent *e = readdir(d); e && !status; e = readdir(d)) {
    weir_spool_id id;
    struct stat info;
    if (!spool_name_parse(e->d_name, &id)) continue;
    if (fstatat(fd, e->d_name, &info, AT_SYMLINK_NOFOLLOW)) continue;
    status = add_entry(out, &id, (uint64_t)info.st_size, err);
  }
  closedir(d);
  if (!status && out->n) qsort(out->v, out->n, sizeof(*out->v), newest_first);
  return status;
}

static weir_status remove_entry(const char *dir, const weir_spool_id *id,
                                weir_error *err) {
  char name[SPOOL_MAX_NAME];
  spool_name_format(id, name);
  char *path = base_path_join(dir, name, err);
  if (!path) return WEIR_E_NOMEM;
  weir_status status = remove_path(path, err);
  free(path);
  return status;
}

weir_status weir_spool_remove_all(const char *folder, const weir_namespace *ns,
                                  uint64_t attempt, uint64_t participant,
                                  weir_error *err) {
  listing all = {0};
  char *dir = spool_folder_of(folder, ns, err);
  if (!dir) return WEIR_E_NOMEM;
  weir_status status = list(dir, &all, err);
  for (size_t i = 0; i < all.n && !status; i++) {
    const weir_spool_id *id = &all.v[i].id;
    if (id->attempt == attempt && id->participant == participant)
      status = remove_entry(dir, id, err);
  }
  free(all.v);
  free(dir);
  return status;
}

weir_status weir_spool_prune(const char *folder, const weir_namespace *ns,
                             uint64_t published, uint64_t attempts, uint64_t bytes,
                             weir_error *err) {
  listing all = {0};
  uint64_t kept = 0, left = bytes;
  bool full = false;
  char *dir = spool_folder_of(folder, ns, err);
  if (!dir) return WEIR_E_NOMEM;
  weir_status status = list(dir, &all, err);
  for (size_t i = 0, end = 0; i < all.n && !status; i = end) {
    uint64_t size = 0;
    for (end = i; end < all.n && all.v[end].id.attempt == all.v[i].id.attempt; end++)
      size += all.v[end].bytes;
    if (all.v[i].id.attempt > published) continue;
    /* Behind the first that does not fit, none: a target is refilled without a gap or not at all. */
    full = full || kept == attempts || size > left;
    if (!full) {
      kept++;
      left -= size;
      continue;
    }
    for (size_t k = i; k < end && !status; k++)
      status = remove_entry(dir, &all.v[k].id, err);
  }
  free(all.v);
  free(dir);
  return status;
}
