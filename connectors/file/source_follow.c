/* SPDX-License-Identifier: Apache-2.0 */
/* One scan of a followed folder. */
#include "source_follow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <weir/plugin.h>

#define PATH_ROOM 4352
/* Of files that are gone, and of all that a position has room for in any case. An empty folder may be one
 * that is not mounted, whose files come back. */
#define MAX_GONE 10000
#define MAX_KNOWN 24000
#define WHOLE (FILE_COUNTED | FILE_PACKED)
/* Longer than the clock of file systems may lag behind a change. */
#define QUIET_NS 50000000

bool file_follow_has_more(const file_item *item) {
  const file_seen *seen = &item->seen;
  if (seen->wait || seen->other || item->path == NULL || item->size == 0 ||
      item->progress.flags & FILE_DONE)
    return false;
  return seen->tried != item->size;
}

/* ---- setting up */

static weir_status know(file_scan *scan, const file_list *list, bool gone,
                        weir_error *err) {
  weir_status status = WEIR_OK;
  for (size_t i = 0; status == WEIR_OK && i < list->n; i++) {
    const file_item *item = &list->items[i];
    size_t at = scan->n_known++;
    scan->known[at] = (file_known){item, gone, false};
    status = file_index_add(&scan->known_inodes, item->inode, item->device, at, err);
    if (status == WEIR_OK)
      status = file_index_add(&scan->known_names, item->name, 0, at, err);
  }
  return status;
}

static weir_status begin(file_scan *scan, const file_list *files, const file_list *gone,
                         weir_error *err) {
  struct timespec clock = {0};
  file_list missing = {0};
  clock_gettime(CLOCK_REALTIME, &clock);
  scan->started = clock.tv_sec * INT64_C(1000000000) + clock.tv_nsec;
  scan->known = calloc(files->n + gone->n + 1, sizeof(*scan->known));
  if (scan->known == NULL)
    return weir_error_set(err, WEIR_E_NOMEM, 0, "no memory for %zu files", files->n);
  weir_status status = know(scan, files, false, err);
  if (status == WEIR_OK) status = know(scan, gone, true, err);
  file_index_sort(&scan->known_inodes);
  file_index_sort(&scan->known_names);
  /* the order counts: see the top of source_follow.h */
  if (status == WEIR_OK)
    status = file_source_list(scan->follow->options, &scan->now, &missing, err);
  file_list_done(&missing);
  if (status == WEIR_OK)
    status = file_around_read(scan->follow->options, &scan->around, err);
  return status;
}

static void end(file_scan *scan) {
  free(scan->known);
  file_list_done(&scan->now);
  file_around_done(&scan->around);
  file_index_done(&scan->known_inodes);
  file_index_done(&scan->known_names);
  file_index_done(&scan->inodes);
  file_index_done(&scan->names);
  file_index_done(&scan->bases);
  file_index_done(&scan->rotated);
  file_index_done(&scan->missed);
}

/* ---- who is who */

static bool same_inode(const file_item *a, const file_item *b) {
  return a->inode == b->inode && a->device == b->device &&
         (a->born == 0 || b->born == 0 || a->born == b->born);
}

static void match(file_scan *scan, file_item *item) {
  const file_index *index = &scan->known_inodes;
  for (size_t i = file_index_find(index, item->inode, item->device);
       file_index_has(index, i, item->inode, item->device); i++) {
    file_known *known = &scan->known[index->entries[i].at];
    if (known->taken || !same_inode(known->item, item)) continue;
    known->taken = true;
    item->seen.match = index->entries[i].at + 1;
    return;
  }
}

/* A file that `path` does not name: ours when it is known as such, else none of ours until that is shown. */
static weir_status add_aside(file_scan *scan, file_item *item, weir_error *err) {
  const file_item *known =
      item->seen.match ? scan->known[item->seen.match - 1].item : NULL;
  item->seen.aside = true;
  item->seen.other = !known || known->seen.other || known->progress.flags & FILE_COPY;
  return file_list_add(&scan->now, item, err);
}

/* Files that were named by `path` once and are not any more, by their inodes. */
static weir_status find_renamed(file_scan *scan, weir_error *err) {
  char path[PATH_ROOM];
  for (size_t k = 0; k < scan->n_known; k++) {
    file_known *known = &scan->known[k];
    const file_index *inodes = &scan->around.inodes;
    uint64_t inode = known->item->inode;
    for (size_t i = file_index_find(inodes, inode, 0);
         !known->taken && file_index_has(inodes, i, inode, 0); i++) {
      file_item item = {0};
      bool there = false;
      file_around_path(&scan->around, inodes->entries[i].at, path, sizeof(path));
      weir_status status = file_item_look(path, &item, &there, err);
      if (status != WEIR_OK) return status;
      if (!there || !same_inode(known->item, &item)) {
        free(item.path);
        continue;
      }
      known->taken = true;
      item.seen.match = k + 1;
      status = add_aside(scan, &item, err);
      free(item.path);
      if (status != WEIR_OK) return status;
    }
  }
  return WEIR_OK;
}

static weir_status index_now(file_scan *scan, weir_error *err) {
  weir_status status = WEIR_OK;
  scan->inodes.n = scan->names.n = 0;
  for (size_t i = 0; status == WEIR_OK && i < scan->now.n; i++) {
    const file_item *item = &scan->now.items[i];
    status = file_index_add(&scan->inodes, item->inode, item->device, i, err);
    if (status == WEIR_OK) status = file_index_add(&scan->names, item->name, 0, i, err);
  }
  file_index_sort(&scan->inodes);
  file_index_sort(&scan->names);
  return status;
}

/* Whether some file of ours is or was called so. */
static bool is_named(const file_scan *scan, uint32_t name) {
  return file_index_holds(&scan->names, name, 0) ||
         file_index_holds(&scan->known_names, name, 0) ||
         file_index_holds(&scan->bases, name, 0);
}

static weir_status index_bases(file_scan *scan, weir_error *err) {
  char name[PATH_ROOM];
  weir_status status = WEIR_OK;
  for (size_t i = 0; i < scan->now.n; i++) {
    const file_item *item = &scan->now.items[i];
    if (!item->seen.aside || item->seen.other) continue;
    for (size_t place = 0;
         status == WEIR_OK && file_rotated_from(item->path, &place, name, sizeof(name));)
      status = file_index_add(&scan->bases, file_name_hash(name), 0, 0, err);
  }
  file_index_sort(&scan->bases);
  return status;
}

static bool rotates(const file_scan *scan, const char *path) {
  char name[PATH_ROOM];
  for (size_t place = 0; file_rotated_from(path, &place, name, sizeof(name));)
    if (is_named(scan, file_name_hash(name))) return true;
  return false;
}

/* What lies beside and looks like a rotation of ours; or ours, moved to that name since the folder was read. */
static weir_status find_rotations(file_scan *scan, weir_error *err) {
  char path[PATH_ROOM];
  size_t from = scan->now.n;
  for (size_t i = 0; i < scan->around.n; i++) {
    file_item item = {0};
    bool there = false;
    file_around_path(&scan->around, i, path, sizeof(path));
    if (!rotates(scan, path)) continue;
    weir_status status = file_item_look(path, &item, &there, err);
    if (status != WEIR_OK) return status;
    for (size_t j = from; there && j < scan->now.n; j++)
      there = !same_inode(&scan->now.items[j], &item); /* hard links */
    if (there && !file_index_holds(&scan->inodes, item.inode, item.device)) {
      match(scan, &item);
      status = add_aside(scan, &item, err);
    }
    free(item.path);
    if (status != WEIR_OK) return status;
  }
  return WEIR_OK;
}

static weir_status index_rotations(file_scan *scan, weir_error *err) {
  char name[PATH_ROOM];
  weir_status status = WEIR_OK;
  for (size_t i = 0; status == WEIR_OK && i < scan->now.n; i++) {
    const char *path = scan->now.items[i].path;
    for (size_t place = 0;
         status == WEIR_OK && file_rotated_from(path, &place, name, sizeof(name));) {
      status = file_index_add(&scan->rotated, file_name_hash(name), 0, i, err);
    }
  }
  file_index_sort(&scan->rotated);
  return status;
}

static weir_status identify(file_scan *scan, weir_error *err) {
  for (size_t i = 0; i < scan->now.n; i++) match(scan, &scan->now.items[i]);
  weir_status status = find_renamed(scan, err);
  if (status == WEIR_OK) status = index_now(scan, err);
  if (status == WEIR_OK) status = index_bases(scan, err);
  if (status == WEIR_OK && !scan->follow->whole) status = find_rotations(scan, err);
  if (status == WEIR_OK) status = index_now(scan, err);
  if (status == WEIR_OK) status = index_rotations(scan, err);
  return status;
}

/* ---- whether they are as they were */

static weir_status changed(const file_item *item, const char *how, weir_error *err) {
  return weir_error_set(
      err, WEIR_E_BAD_DATA, WEIR_ERR_BAD_DATA,
      "file %s %s since it was read; bring the old file back, or put what is new "
      "into a file of its own",
      item->path, how);
}

static void keep(file_item *item, const file_progress *progress) {
  item->progress = *progress;
  item->seen.state = FILE_KEPT;
  if (item->size > progress->covered) item->progress.flags &= (uint8_t)~FILE_DONE;
}

static weir_status judge(const file_scan *scan, file_item *item, weir_error *err) {
  const file_item *known = scan->known[item->seen.match - 1].item;
  const file_progress *progress = &known->progress;
  file_verdict verdict = FILE_DIFFERENT;
  bool whole = progress->flags & WHOLE;
  bool unchanged = known->seen.modified == item->seen.modified &&
                   known->seen.changed == item->seen.changed && known->size == item->size;
  if (unchanged) item->seen.tried = known->seen.tried;
  if (known->seen.other || progress->covered == 0 || progress->flags & FILE_COPY)
    return WEIR_OK;
  if (unchanged && known->seen.quiet && !known->seen.wait) {
    keep(item, progress);
    return WEIR_OK;
  }
  weir_status status =
      file_compare(item, progress->covered, progress->hash, &verdict, err);
  if (status != WEIR_OK) return status;
  if (whole && verdict != FILE_DOUBT && item->size != progress->covered)
    return changed(item, "changed its size", err);
  if (whole && verdict == FILE_DIFFERENT) return changed(item, "changed", err);
  if (progress->flags & FILE_CUT && verdict == FILE_SAME &&
      item->size > progress->covered)
    return changed(
        item, "grew behind a last line without line end, which was delivered as it was,",
        err);
  keep(item, progress);
  item->seen.wait = verdict == FILE_DOUBT;
  if (verdict != FILE_SAME) item->name = known->name;
  if (verdict == FILE_DIFFERENT) item->seen.state = FILE_LOST;
  return WEIR_OK;
}

static weir_status judge_all(file_scan *scan, weir_error *err) {
  weir_status status = WEIR_OK;
  for (size_t i = 0; status == WEIR_OK && i < scan->now.n; i++) {
    file_item *item = &scan->now.items[i];
    item->seen.quiet = item->seen.changed < scan->started - QUIET_NS;
    if (item->seen.match != 0) status = judge(scan, item, err);
  }
  return status;
}

/* ---- where the bytes went */

static bool is_owed(const file_known *known) {
  return !known->taken && !known->item->seen.other && known->item->progress.covered > 0 &&
         !(known->item->progress.flags & FILE_COPY);
}

/* A file of the same name with the same bytes: restored, saved by an editor, or on a device that has
 * another number since the machine was started. */
static weir_status find_by_name(file_scan *scan, file_known *known, weir_error *err) {
  const file_progress *progress = &known->item->progress;
  uint32_t name = known->item->name;
  for (size_t i = file_index_find(&scan->names, name, 0);
       !known->taken && file_index_has(&scan->names, i, name, 0); i++) {
    file_item *item = &scan->now.items[scan->names.entries[i].at];
    file_verdict verdict = FILE_DIFFERENT;
    if (item->seen.state != FILE_FRESH ||
        (progress->flags & WHOLE && item->size != progress->covered))
      continue;
    weir_status status =
        file_compare(item, progress->covered, progress->hash, &verdict, err);
    if (status != WEIR_OK) return status;
    if (verdict == FILE_DOUBT) item->seen.wait = true;
    if (verdict != FILE_SAME) continue;
    keep(item, progress);
    known->taken = true;
  }
  return WEIR_OK;
}

/* Of files that are gone; one that was missed just now may be there yet, and be the one to go on. */
static weir_status find_moved(file_scan *scan, weir_error *err) {
  weir_status status = WEIR_OK;
  for (size_t k = 0; status == WEIR_OK && k < scan->n_known; k++) {
    file_known *known = &scan->known[k];
    file_verdict verdict = FILE_DIFFERENT;
    if (!known->gone && known->item->seen.absent + 1 < FILE_ABSENT_MAX) continue;
    if (is_owed(known)) status = find_by_name(scan, known, err);
    if (status == WEIR_OK && is_owed(known) && !(known->item->progress.flags & WHOLE))
      status = file_find_copy(scan, known->item->name, known->item, &verdict, err);
    known->taken |= verdict == FILE_SAME;
  }
  return status;
}

/* Rows that cannot be read any more. A file of which nothing was delivered might as well have gone before
 * the first look at it. */
static weir_status lose(const file_scan *scan, const file_item *item, const char *what,
                        const char *help, weir_error *err) {
  const weir_host *host = scan->follow->host;
  bool skip = scan->follow->skip_losses || item->progress.covered == 0;
  weir_error told = {0};
  weir_error_set(&told, WEIR_E_BAD_DATA, WEIR_ERR_BAD_DATA,
                 "file %s %s; rows behind its first %llu bytes may be lost%s",
                 item->path != NULL ? item->path : "(of an earlier run)", what,
                 (unsigned long long)item->progress.covered, skip ? "" : help);
  if (!skip) return weir_error_set(err, told.code, told.flags, "%s", told.message);
  host->log(host->ctx, WEIR_LOG_WARN, "source file", told.message);
  return WEIR_OK;
}

/* A rotation that is overwritten by the next one, as `cp app.log app.log.1` does. What was cut under another name and
 * renamed looks the same. */
static bool is_overwritten(const file_scan *scan, const file_item *item) {
  char name[PATH_ROOM];
  const file_item *known = scan->known[item->seen.match - 1].item;
  if (!(known->progress.flags & FILE_DONE) || known->name != file_name_hash(item->path))
    return false;
  for (size_t place = 0; file_rotated_from(item->path, &place, name, sizeof(name));)
    if (file_index_holds(&scan->names, file_name_hash(name), 0)) return true;
  return false;
}

/* The copy may be a rotation of each name that the file had, and of those from which it was rotated itself. */
static weir_status find_copy(file_scan *scan, const file_item *item, file_verdict *out,
                             weir_error *err) {
  char name[PATH_ROOM];
  const file_item *known = scan->known[item->seen.match - 1].item;
  bool doubt = false;
  weir_status status = file_find_copy(scan, known->name, known, out, err);
  for (size_t place = 0; status == WEIR_OK && *out != FILE_SAME;) {
    doubt |= *out == FILE_DOUBT;
    if (!file_rotated_from(item->path, &place, name, sizeof(name))) break;
    status = file_find_copy(scan, file_name_hash(name), known, out, err);
  }
  if (doubt && *out != FILE_SAME) *out = FILE_DOUBT;
  return status;
}

/* Whether a rotation that was overwritten, and has not begun again yet, may be the copy. */
static bool may_come(const file_scan *scan, const file_item *item) {
  uint32_t name = scan->known[item->seen.match - 1].item->name;
  for (size_t i = file_index_find(&scan->rotated, name, 0);
       file_index_has(&scan->rotated, i, name, 0); i++) {
    const file_item *other = &scan->now.items[scan->rotated.entries[i].at];
    if (other->seen.state == FILE_KEPT && other->seen.wait && other->seen.match != 0 &&
        is_overwritten(scan, other))
      return true;
  }
  return false;
}

/* Files whose bytes were replaced: another one goes on for them, and they begin anew. */
static weir_status replace(file_scan *scan, file_item *item, weir_error *err) {
  const file_item *known = scan->known[item->seen.match - 1].item;
  file_verdict verdict = FILE_DIFFERENT;
  weir_status status = find_copy(scan, item, &verdict, err);
  if (status != WEIR_OK) return status;
  bool found = verdict == FILE_SAME, overwritten = is_overwritten(scan, item);
  if (!found && !overwritten && may_come(scan, item)) verdict = FILE_DOUBT;
  item->seen.unheld = known->seen.unheld + (verdict != FILE_DOUBT);
  if (!found && item->seen.unheld < FILE_ABSENT_MAX) {
    item->seen.wait = true;
    item->seen.state = FILE_KEPT;
    item->progress = known->progress;
    return WEIR_OK;
  }
  item->seen.unheld = 0;
  if (!found && !overwritten) {
    status = lose(scan, item, "was cut, and no copy of what was read is in its folder",
                  ": bring that copy back beside it, named as its rotation, or go on "
                  "without these rows with on_loss: skip",
                  err);
    if (status != WEIR_OK) return status;
  }
  item->name = file_name_hash(item->path);
  item->progress = (file_progress){0};
  item->seen.state = FILE_FRESH;
  return WEIR_OK;
}

static int longest_first(const void *a, const void *b) {
  const file_item *const *x = a, *const *y = b;
  size_t length[2] = {strlen((*x)->path), strlen((*y)->path)};
  if (length[0] != length[1]) return length[0] > length[1] ? -1 : 1;
  return *x < *y ? -1 : *x > *y;
}

/* A rotation's name is longer than its log's: one that was overwritten may be the copy of a log that was cut, and
 * begins again before that is looked for. */
static weir_status replace_all(file_scan *scan, weir_error *err) {
  file_item **lost = calloc(scan->now.n + 1, sizeof(*lost));
  weir_status status = WEIR_OK;
  size_t n = 0;
  if (lost == NULL)
    return weir_error_set(err, WEIR_E_NOMEM, 0, "no memory for %zu files", scan->now.n);
  for (size_t i = 0; i < scan->now.n; i++)
    if (scan->now.items[i].seen.state == FILE_LOST) lost[n++] = &scan->now.items[i];
  if (n > 1) qsort(lost, n, sizeof(*lost), longest_first);
  for (size_t i = 0; status == WEIR_OK && i < n; i++)
    status = replace(scan, lost[i], err);
  free(lost);
  return status;
}

/* ---- what is not there */

/* What this scan has not found, or not with its bytes. */
static weir_status index_missed(file_scan *scan, weir_error *err) {
  weir_status status = WEIR_OK;
  for (size_t k = 0; status == WEIR_OK && k < scan->n_known; k++) {
    const file_known *known = &scan->known[k];
    const file_progress *progress = &known->item->progress;
    if (known->taken || known->gone || known->item->seen.other) continue;
    if (progress->flags & FILE_COPY)
      status = file_index_add(&scan->missed, progress->row, FILE_MISSED_COPY, 0, err);
    else if (progress->covered > 0)
      status = file_index_add(&scan->missed, known->item->name, FILE_MISSED, 0, err);
  }
  for (size_t i = 0; status == WEIR_OK && i < scan->now.n; i++) {
    const file_item *item = &scan->now.items[i];
    if (item->seen.state == FILE_KEPT && item->seen.wait)
      status = file_index_add(&scan->missed, item->name, FILE_MISSED_BYTES, 0, err);
  }
  file_index_sort(&scan->missed);
  return status;
}

static weir_status copy_to(file_list *list, const file_item *from, weir_error *err) {
  file_item item = *from;
  item.seen.match = 0;
  if (from->path != NULL) {
    item.path = strdup(from->path);
    if (item.path == NULL)
      return weir_error_set(err, WEIR_E_NOMEM, 0, "no memory for a path");
  }
  weir_status status = file_list_add(list, &item, err);
  free(item.path);
  return status;
}

static weir_status miss(file_scan *scan, const file_item *known, file_list *gone,
                        weir_error *err) {
  if (known->seen.other) return WEIR_OK;
  if (known->seen.absent + 1 < FILE_ABSENT_MAX) {
    weir_status status = copy_to(&scan->now, known, err);
    if (status != WEIR_OK) return status;
    file_item *item = &scan->now.items[scan->now.n - 1];
    item->seen.absent++;
    item->seen.wait = true;
    item->seen.state = FILE_KEPT;
    return WEIR_OK;
  }
  if (known->progress.flags & FILE_COPY) return WEIR_OK;
  if (known->progress.flags & FILE_DONE) return copy_to(gone, known, err);
  if (known->progress.covered == 0 && known->size == 0) return WEIR_OK;
  return lose(scan, known, "is gone, and was not read to its end",
              ": bring it back, or go on without these rows with on_loss: skip", err);
}

static weir_status miss_all(file_scan *scan, file_list *gone, weir_error *err) {
  weir_status status = WEIR_OK;
  size_t left = 0, most = scan->now.n < MAX_KNOWN ? MAX_KNOWN - scan->now.n : 0;
  if (scan->now.n > 0 && most > MAX_GONE) most = MAX_GONE;
  for (size_t k = 0; k < scan->n_known; k++)
    left += scan->known[k].gone && !scan->known[k].taken;
  for (size_t k = 0; status == WEIR_OK && k < scan->n_known; k++) {
    const file_known *known = &scan->known[k];
    if (!known->gone || known->taken) continue;
    if (left <= most)
      status = copy_to(gone, known->item, err);
    else
      left--; /* the oldest */
  }
  for (size_t k = 0; status == WEIR_OK && k < scan->n_known; k++) {
    const file_known *known = &scan->known[k];
    if (!known->gone && !known->taken) status = miss(scan, known->item, gone, err);
  }
  return status;
}

static int by_turn(const void *a, const void *b) {
  const file_item *x = a, *y = b;
  bool begun[2] = {x->progress.covered > 0, y->progress.covered > 0};
  if (begun[0] != begun[1]) return begun[0] ? -1 : 1;
  if (x->path == NULL || y->path == NULL) return (x->path == NULL) - (y->path == NULL);
  return strcmp(x->path, y->path);
}

weir_status file_follow_scan(const file_follow *follow, const file_list *files,
                             const file_list *gone, file_list *out_files,
                             file_list *out_gone, weir_error *err) {
  file_scan scan = {.follow = follow};
  file_list left = {0};
  weir_status status = begin(&scan, files, gone, err);
  if (status == WEIR_OK) status = identify(&scan, err);
  if (status == WEIR_OK) status = judge_all(&scan, err);
  if (status == WEIR_OK) status = find_moved(&scan, err);
  if (status == WEIR_OK) status = replace_all(&scan, err);
  if (status == WEIR_OK) status = index_missed(&scan, err);
  if (status == WEIR_OK) status = file_hold_copies(&scan, err);
  if (status == WEIR_OK) status = miss_all(&scan, &left, err);
  for (size_t i = 0; status == WEIR_OK && i < scan.now.n; i++) {
    file_item *item = &scan.now.items[i];
    item->seen.followed = !item->seen.other && !file_comes_whole(follow, item->path);
  }
  if (status == WEIR_OK) {
    if (scan.now.n > 1)
      qsort(scan.now.items, scan.now.n, sizeof(*scan.now.items), by_turn);
    *out_files = scan.now;
    *out_gone = left;
    scan.now = left = (file_list){0};
  }
  file_list_done(&left);
  end(&scan);
  return status;
}
