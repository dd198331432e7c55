/* SPDX-License-Identifier: Apache-2.0 */
/* Copy-truncate: which file is a copy of which. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "source_follow.h"
#include "source_input.h"

#define PATH_ROOM 4352

/* The window's hash against `hash`; a file that is too short by now is in doubt. */
static weir_status compare_open(int fd, const char *path, uint64_t covered, uint64_t hash,
                                file_verdict *out, weir_error *err) {
  uint64_t now = 0;
  weir_status status = file_window_hash(fd, path, covered, &now, err);
  if (status == WEIR_E_BAD_DATA) {
    *out = FILE_DOUBT;
    return WEIR_OK;
  }
  if (status == WEIR_OK) *out = now == hash ? FILE_SAME : FILE_DIFFERENT;
  return status;
}

weir_status file_compare(const file_item *item, uint64_t covered, uint64_t hash,
                         file_verdict *out, weir_error *err) {
  int fd = -1;
  if (item->size < covered) {
    *out = FILE_DIFFERENT;
    return WEIR_OK;
  }
  weir_status status = file_item_try(item, &fd, err);
  if (status != WEIR_OK) return status;
  if (fd < 0) {
    *out = FILE_DOUBT;
    return WEIR_OK;
  }
  status = compare_open(fd, item->path, covered, hash, out, err);
  close(fd);
  return status;
}

bool file_comes_whole(const file_follow *follow, const char *path) {
  return follow->whole ||
         (path != NULL && file_packing_of(follow->compression, path) != FILE_PLAIN);
}

bool file_is_rotation(const char *path, const char *name) {
  char from[PATH_ROOM];
  for (size_t place = 0; file_rotated_from(path, &place, from, sizeof(from));)
    if (strcmp(from, name) == 0) return true;
  return false;
}

uint64_t file_mark(const file_item *item) {
  return item->inode & INT64_MAX;
}

/* What a rotation goes on from when it holds what was read of `known`, or is a copy of it that ended before more
 * was read. One that grew since it was listed is in doubt. */
static weir_status compare_rotation(const file_scan *scan, const file_item *item,
                                    const file_item *known, file_progress *progress,
                                    file_verdict *out, weir_error *err) {
  const file_progress *held =
      item->seen.match ? &scan->known[item->seen.match - 1].item->progress : NULL;
  bool shorter = item->size < known->progress.covered;
  struct stat st;
  int fd = -1;
  *progress = known->progress;
  *out = FILE_DOUBT;
  weir_status status = file_item_try(item, &fd, err);
  if (status != WEIR_OK || fd < 0) return status;
  if (fstat(fd, &st) != 0) {
    status = weir_error_errno(err, errno, "cannot look at %s", item->path);
  } else if (!shorter || (uint64_t)st.st_size == item->size) {
    bool ended = shorter && held != NULL && held->flags & FILE_COPY &&
                 held->covered == item->size && held->row == file_mark(known);
    if (ended) *progress = *held;
    *out = FILE_DIFFERENT;
    if (ended || !shorter)
      status = compare_open(fd, item->path, progress->covered, progress->hash, out, err);
  }
  close(fd);
  return status;
}

weir_status file_find_copy(file_scan *scan, uint32_t name, const file_item *known,
                           file_verdict *out, weir_error *err) {
  *out = FILE_DIFFERENT;
  for (size_t i = file_index_find(&scan->rotated, name, 0);
       file_index_has(&scan->rotated, i, name, 0); i++) {
    file_item *item = &scan->now.items[scan->rotated.entries[i].at];
    file_verdict verdict = FILE_DIFFERENT;
    file_progress moved = {0};
    if (item->seen.state != FILE_FRESH) continue;
    weir_status status = compare_rotation(scan, item, known, &moved, &verdict, err);
    if (status != WEIR_OK) return status;
    if (verdict == FILE_DOUBT) {
      item->seen.wait = true;
      *out = FILE_DOUBT;
    }
    if (verdict != FILE_SAME) continue;
    item->progress = moved;
    if (moved.flags & FILE_COPY) item->progress.row = 0;
    item->progress.flags &= (uint8_t)~FILE_COPY;
    if (item->size > moved.covered) item->progress.flags &= (uint8_t)~FILE_DONE;
    item->seen.state = FILE_KEPT;
    item->seen.other = false;
    *out = FILE_SAME;
    return WEIR_OK;
  }
  return WEIR_OK;
}

/* Whether all of `copy` is what `name` begins with, and that as it was read. What differs may be so because it
 * was cut just now: then it is in doubt, unless nothing was delivered of it. */
static weir_status compare_files(file_item *copy, int copy_fd, file_item *name,
                                 int name_fd, file_verdict *out, weir_error *err) {
  struct stat st;
  uint64_t hash = 0;
  weir_status status = WEIR_OK;
  file_verdict as_read = FILE_SAME;
  *out = FILE_DIFFERENT;
  if (fstat(copy_fd, &st) != 0)
    return weir_error_errno(err, errno, "cannot look at %s", copy->path);
  uint64_t size = (uint64_t)st.st_size;
  if (size > 0 && fstat(name_fd, &st) == 0 && (uint64_t)st.st_size >= size) {
    status = file_window_hash(copy_fd, copy->path, size, &hash, err);
    if (status == WEIR_OK)
      status = compare_open(name_fd, name->path, size, hash, out, err);
    if (status == WEIR_E_BAD_DATA) {
      *out = FILE_DOUBT;
      return WEIR_OK;
    }
  }
  if (status == WEIR_OK && name->progress.covered > 0)
    status = compare_open(name_fd, name->path, name->progress.covered,
                          name->progress.hash, &as_read, err);
  if (status != WEIR_OK) return status;
  if (as_read != FILE_SAME) *out = FILE_DOUBT;
  if (*out != FILE_SAME) return WEIR_OK;
  copy->size = size;
  copy->progress = (file_progress){.flags = FILE_COPY | FILE_DONE,
                                   .covered = size,
                                   .hash = hash,
                                   .row = file_mark(name)};
  if (name->seen.held < size) {
    name->seen.held = size;
    name->seen.held_hash = hash;
  }
  return WEIR_OK;
}

static weir_status compare_with(file_item *copy, file_item *name, file_verdict *out,
                                weir_error *err) {
  int copy_fd = -1, name_fd = -1;
  *out = FILE_DOUBT;
  if (name->seen.wait) return WEIR_OK;
  weir_status status = file_item_try(copy, &copy_fd, err);
  if (status == WEIR_OK) status = file_item_try(name, &name_fd, err);
  if (status == WEIR_OK && copy_fd >= 0 && name_fd >= 0)
    status = compare_files(copy, copy_fd, name, name_fd, out, err);
  if (copy_fd >= 0) close(copy_fd);
  if (name_fd >= 0) close(name_fd);
  return status;
}

static file_item *find_marked(const file_scan *scan, uint64_t mark, uint64_t device,
                              bool *missed) {
  const file_index *now = &scan->inodes, *known = &scan->known_inodes;
  size_t i = file_index_find(now, mark, device), k = file_index_find(known, mark, device);
  *missed = false;
  if (file_index_has(now, i, mark, device)) return &scan->now.items[now->entries[i].at];
  for (; file_index_has(known, k, mark, device); k++) {
    const file_known *one = &scan->known[known->entries[k].at];
    *missed |= !one->taken && !one->gone;
  }
  return NULL;
}

/* What was a copy stays one until the file that it is a copy of was looked at and is another. */
static weir_status keep_copy(file_scan *scan, file_item *item, weir_error *err) {
  const file_item *known =
      item->seen.match ? scan->known[item->seen.match - 1].item : NULL;
  file_verdict verdict = FILE_DIFFERENT;
  bool missed = false;
  if (known == NULL || !(known->progress.flags & FILE_COPY)) return WEIR_OK;
  file_item *other = find_marked(scan, known->progress.row, item->device, &missed);
  if (other != NULL && other != item && !other->seen.other) {
    weir_status status = compare_with(item, other, &verdict, err);
    if (status != WEIR_OK) return status;
  }
  if (verdict != FILE_DOUBT && !missed) return WEIR_OK;
  item->progress = known->progress;
  if (other != NULL && other->progress.covered == 0) other->seen.wait = true;
  return WEIR_OK;
}

/* Compares a fresh file with those whose rotation it may be. */
static weir_status hold(file_scan *scan, file_item *item, weir_error *err) {
  char name[PATH_ROOM];
  weir_status status = keep_copy(scan, item, err);
  if (status != WEIR_OK || item->progress.flags & FILE_COPY) return status;
  for (size_t place = 0; file_rotated_from(item->path, &place, name, sizeof(name));) {
    uint32_t hash = file_name_hash(name);
    bool known = false;
    /* it may have been cut, and this be its copy */
    if (file_index_holds(&scan->missed, hash, FILE_MISSED) ||
        file_index_holds(&scan->missed, hash, FILE_MISSED_BYTES))
      item->seen.wait = true;
    for (size_t i = file_index_find(&scan->names, hash, 0);
         file_index_has(&scan->names, i, hash, 0); i++) {
      file_item *other = &scan->now.items[scan->names.entries[i].at];
      file_verdict verdict = FILE_DIFFERENT;
      if (other == item || other->seen.other || other->progress.flags & FILE_COPY ||
          strcmp(other->path, name) != 0)
        continue;
      known = true;
      status = compare_with(item, other, &verdict, err);
      if (status != WEIR_OK) return status;
      if (verdict == FILE_SAME) return WEIR_OK;
      if (verdict == FILE_DOUBT) item->seen.wait = true;
    }
    /* it came after the folder was read, and this may be its copy, unless this is older */
    if (!known && item->seen.match == 0 && access(name, F_OK) == 0)
      item->seen.wait = true;
  }
  return status;
}

/*
 * A file beside that `path` does not name is ours when it was made after one that was followed out of `path`:
 * of the same name, rotated later, and never seen under it.
 */
static bool came_later(const file_scan *scan, const file_item *item) {
  char name[PATH_ROOM];
  if (item->seen.born == 0) return false;
  for (size_t place = 0; file_rotated_from(item->path, &place, name, sizeof(name));) {
    uint32_t hash = file_name_hash(name);
    for (size_t i = file_index_find(&scan->rotated, hash, 0);
         file_index_has(&scan->rotated, i, hash, 0); i++) {
      const file_item *older = &scan->now.items[scan->rotated.entries[i].at];
      if (older->seen.aside && !older->seen.other && older->seen.born != 0 &&
          older->seen.born < item->seen.born && file_is_rotation(older->path, name))
        return true;
    }
  }
  return false;
}

/* Of another's file nothing changed since it was found to be no copy. */
static bool is_settled(const file_scan *scan, const file_item *item) {
  if (!item->seen.other || item->seen.match == 0) return false;
  const file_item *known = scan->known[item->seen.match - 1].item;
  return known->seen.other && known->seen.quiet && !known->seen.wait &&
         known->size == item->size && known->seen.modified == item->seen.modified;
}

weir_status file_hold_copies(file_scan *scan, weir_error *err) {
  for (size_t i = 0; i < scan->now.n; i++) {
    file_item *item = &scan->now.items[i];
    if (item->seen.state != FILE_FRESH) continue;
    if (item->seen.other && came_later(scan, item)) item->seen.other = false;
    /* that one may be this one on another device; this may have been cut after it was copied there */
    if (file_index_holds(&scan->missed, item->name, FILE_MISSED) ||
        file_index_holds(&scan->missed, file_mark(item), FILE_MISSED_COPY))
      item->seen.wait = true;
    if (file_comes_whole(scan->follow, item->path) || is_settled(scan, item)) continue;
    weir_status status = hold(scan, item, err);
    /* what may not be read, and was not asked for, is none of ours */
    if (status != WEIR_OK && !item->seen.other) return status;
    if (item->progress.flags & FILE_COPY) {
      item->seen.other = item->seen.wait = false;
      item->seen.state = FILE_KEPT;
    }
  }
  return WEIR_OK;
}
