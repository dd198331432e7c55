/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Positions of the file source. Version 2, integers little-endian, "varint" as LEB128:
 *
 *   "WFIL", uint32 version, varint number of files, then each file:
 *     uint8 flags (FILE_*), varint device, varint inode, uint32 born, uint32 name,
 *     varint covered, uint64 hash, varint count, varint row,
 *     and when it is neither done nor just seen: varint length, path
 *   uint64 XXH3 of all before
 *
 * Version 1 is the same without FILE_PACKED, and still read. A version 2 with FILE_GROUPS is refused by what came
 * before Parquet was read.
 *
 * A file that is done takes about 30 bytes, so that some 30,000 fit WEIR_MAX_POSITION. Files that are
 * done and gone from the folder are kept, in case they come back, until there are more than
 * MAX_GONE.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "source.h"
#include "source_index.h"

#define VERSION 2
#define HEAD_SIZE 8
#define MAX_GONE 10000
#define MAX_PATH_TEXT 4096
#define ENTRY_ROOM (1 + 6 * 10 + 4 + 4 + 8 + MAX_PATH_TEXT)

static const uint8_t magic[HEAD_SIZE] = {'W', 'F', 'I', 'L', VERSION, 0, 0, 0};

/* ---- writing ---- */

static uint8_t *put_varint(uint8_t *p, uint64_t value) {
  for (; value >= 0x80; value >>= 7) *p++ = (uint8_t)(value | 0x80);
  *p++ = (uint8_t)value;
  return p;
}

static uint8_t *put_fixed(uint8_t *p, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; i++) *p++ = (uint8_t)(value >> (8 * i));
  return p;
}

static uint8_t *put_item(uint8_t *p, const file_item *item) {
  bool unread = item->progress.covered == 0;
  uint8_t flags = unread ? FILE_SEEN : item->progress.flags;
  *p++ = flags;
  p = put_varint(p, item->device);
  p = put_varint(p, item->inode);
  p = put_fixed(p, item->born, 4);
  p = put_fixed(p, item->name, 4);
  p = put_varint(p, item->progress.covered);
  p = put_fixed(p, item->progress.hash, 8);
  p = put_varint(p, item->progress.count);
  p = put_varint(p, item->progress.row);
  if (!(flags & (FILE_DONE | FILE_SEEN))) {
    size_t n = strlen(item->path);
    if (n > MAX_PATH_TEXT) n = MAX_PATH_TEXT; /* for messages only */
    p = put_varint(p, n);
    memcpy(p, item->path, n);
    p += n;
  }
  return p;
}

static bool was_read(const file_item *item) {
  const file_progress *progress = &item->progress;
  if (item->seen.followed && progress->covered == 0) return true;
  return progress->covered > 0 && (progress->flags & FILE_DONE ||
                                   !(progress->flags & (FILE_COUNTED | FILE_PACKED)) ||
                                   progress->count > 0 || progress->row > 0);
}

static size_t count_read(const file_list *list) {
  size_t n = 0;
  for (size_t i = 0; i < list->n; i++) n += was_read(&list->items[i]);
  return n;
}

weir_status file_position_write(const file_list *listed, const file_list *gone,
                                weir_bytes *out, weir_error *err) {
  const file_list *lists[] = {listed, gone};
  uint8_t *bytes = malloc(WEIR_MAX_POSITION + ENTRY_ROOM);
  if (bytes == NULL)
    return weir_error_set(err, WEIR_E_NOMEM, 0, "no memory for a position");
  uint8_t *p = bytes;
  weir_status status = WEIR_OK;
  size_t n = count_read(listed) + count_read(gone);
  memcpy(p, magic, HEAD_SIZE);
  p = put_varint(p + HEAD_SIZE, n);
  for (int k = 0; k < 2; k++) {
    for (size_t i = 0; i < lists[k]->n; i++) {
      if (!was_read(&lists[k]->items[i])) continue;
      p = put_item(p, &lists[k]->items[i]);
      if (p - bytes > (ptrdiff_t)WEIR_MAX_POSITION - 8) {
        status = weir_error_set(
            err, WEIR_E_INVALID_CONFIG, 0,
            "the position of %zu files does not fit %u bytes; give each pipeline a "
            "part of the files, or move away those that are done",
            n, WEIR_MAX_POSITION);
        goto out;
      }
    }
  }
  p = put_fixed(p, XXH3_64bits(bytes, (size_t)(p - bytes)), 8);
  status = weir_bytes_copy(out, bytes, (size_t)(p - bytes), err);
out:
  free(bytes);
  return status;
}

/* ---- reading ---- */

struct input {
  const uint8_t *p, *end;
  bool bad; /* sticky */
  uint32_t version;
};

static uint64_t get_fixed(struct input *in, int bytes) {
  uint64_t value = 0;
  if (in->end - in->p < bytes) {
    in->bad = true;
    return 0;
  }
  for (int i = 0; i < bytes; i++) value |= (uint64_t)*in->p++ << (8 * i);
  return value;
}

static uint64_t get_varint(struct input *in) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (in->p == in->end) break;
    uint8_t byte = *in->p++;
    if (shift == 63 && byte > 1) break;
    value |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  in->bad = true;
  return 0;
}

static weir_status get_item(struct input *in, file_item *item, weir_error *err) {
  item->progress.flags = (uint8_t)get_fixed(in, 1);
  item->device = get_varint(in);
  item->inode = get_varint(in);
  item->born = (uint32_t)get_fixed(in, 4);
  item->name = (uint32_t)get_fixed(in, 4);
  item->progress.covered = get_varint(in);
  item->progress.hash = get_fixed(in, 8);
  item->progress.count = get_varint(in);
  item->progress.row = get_varint(in);
  uint8_t known = FILE_DONE | FILE_CUT | FILE_COUNTED;
  if (in->version > 1) known |= FILE_PACKED | FILE_COPY | FILE_SEEN | FILE_GROUPS;
  if (item->progress.flags & ~known || item->progress.covered > INT64_MAX ||
      item->progress.count > INT64_MAX || item->progress.row > INT64_MAX ||
      (item->progress.covered == 0) != (item->progress.flags == FILE_SEEN)) {
    in->bad = true;
  }
  if (in->bad || item->progress.flags & (FILE_DONE | FILE_SEEN)) return WEIR_OK;
  uint64_t n = get_varint(in);
  if (in->bad || n > MAX_PATH_TEXT || n > (uint64_t)(in->end - in->p)) {
    in->bad = true;
    return WEIR_OK;
  }
  item->path = calloc(1, n + 1);
  if (item->path == NULL) {
    return weir_error_set(err, WEIR_E_NOMEM, 0, "no memory for a position");
  }
  memcpy(item->path, in->p, n);
  in->p += n;
  return WEIR_OK;
}

static weir_status bad_position(weir_error *err) {
  return weir_error_set(err, WEIR_E_CORRUPT, 0,
                        "this is no position of a file source of this version (1 to %d)",
                        VERSION);
}

weir_status file_position_read(const weir_bytes *position, file_list *out,
                               weir_error *err) {
  if (position->size < HEAD_SIZE + 1 + 8 || memcmp(position->data, magic, 4) != 0)
    return bad_position(err);
  struct input in = {position->data + 4, position->data + position->size - 8, false, 0};
  struct input sum = {in.end, in.end + 8, false, 0};
  in.version = (uint32_t)get_fixed(&in, 4);
  if (in.version < 1 || in.version > VERSION) return bad_position(err);
  if (get_fixed(&sum, 8) != XXH3_64bits(position->data, position->size - 8)) {
    return bad_position(err);
  }
  uint64_t n = get_varint(&in);
  weir_status status = WEIR_OK;
  for (uint64_t i = 0; status == WEIR_OK && i < n && !in.bad; i++) {
    file_item item = {0};
    status = get_item(&in, &item, err);
    if (status == WEIR_OK && !in.bad) status = file_list_add(out, &item, err);
    free(item.path);
  }
  if (status == WEIR_OK && (in.bad || in.p != in.end)) status = bad_position(err);
  return status;
}

/* ---- telling ---- */

weir_status file_position_describe(const weir_bytes *position, weir_bytes *out,
                                   weir_error *err) {
  enum { NAMED = 3 }; /* more are a number */
  char text[512];
  file_list list = {0};
  size_t done = 0, open = 0, used = 0;
  weir_status status = file_position_read(position, &list, err);
  if (status) goto out;
  for (size_t i = 0; i < list.n; i++) done += list.items[i].progress.flags & FILE_DONE;
  used = (size_t)snprintf(text, sizeof(text), "%zu %s read", done,
                          done == 1 ? "file" : "files");
  for (size_t i = 0; i < list.n && used < sizeof(text); i++) {
    const file_item *item = &list.items[i];
    const file_progress *progress = &item->progress;
    if (progress->flags & (FILE_DONE | FILE_SEEN) || ++open > NAMED) continue;
    /* The end of a path tells more than its beginning. */
    size_t size = strlen(item->path), most = 100;
    const char *path = size > most ? item->path + size - most : item->path;
    while (path != item->path && ((unsigned char)*path & 0xC0) == 0x80) path++;
    bool counted = progress->flags & FILE_COUNTED, packed = progress->flags & FILE_PACKED;
    uint64_t at = counted ? progress->count : packed ? progress->row : progress->covered;
    const char *unit = progress->flags & FILE_GROUPS ? "row group"
                       : counted                     ? "batch"
                                                     : "byte";
    used += (size_t)snprintf(text + used, sizeof(text) - used, "; %s%s at %s %llu%s",
                             path == item->path ? "" : "..", path, unit,
                             (unsigned long long)at,
                             packed && !counted ? " of its text" : "");
  }
  if (open > NAMED && used < sizeof(text))
    used += (size_t)snprintf(text + used, sizeof(text) - used, "; %zu more begun",
                             open - NAMED);
  status = used < sizeof(text) ? weir_bytes_copy(out, text, used, err) : WEIR_OK;
out:
  file_list_done(&list);
  return status;
}

/* ---- matching ---- */

static weir_status changed(const file_item *item, const char *how, weir_error *err) {
  return weir_error_set(
      err, WEIR_E_BAD_DATA, WEIR_ERR_BAD_DATA,
      "file %s %s since it was read; bring the old file back, or put what is new "
      "into a file of its own",
      item->path, how);
}

/* Whether the bytes before what was covered are still the same. */
static weir_status same_bytes(const file_item *item, const file_progress *progress,
                              bool *same, weir_error *err) {
  int fd = -1;
  uint64_t hash = 0;
  *same = false;
  if (item->size < progress->covered) return WEIR_OK;
  weir_status status = file_item_open(item, &fd, err);
  if (status != WEIR_OK) return status;
  status = file_window_hash(fd, item->path, progress->covered, &hash, err);
  close(fd);
  *same = status == WEIR_OK && hash == progress->hash;
  return status;
}

/* The file that was read, by its inode: it must have kept what was read. */
static weir_status continue_file(file_item *item, const file_item *known,
                                 weir_error *err) {
  const file_progress *progress = &known->progress;
  bool same = false;
  if (item->size < progress->covered) {
    return changed(item,
                   progress->flags & (FILE_COUNTED | FILE_PACKED) ? "changed its size"
                                                                  : "became shorter",
                   err);
  }
  if (progress->flags & (FILE_COUNTED | FILE_PACKED) && item->size != progress->covered) {
    return changed(item, "changed its size", err);
  }
  weir_status status = same_bytes(item, progress, &same, err);
  if (status != WEIR_OK) return status;
  if (!same) return changed(item, "changed", err);
  if (progress->flags & FILE_CUT && item->size > progress->covered) {
    return changed(
        item, "grew behind a last line without line end, which was delivered as it was,",
        err);
  }
  item->progress = *progress;
  if (item->size > progress->covered) item->progress.flags &= (uint8_t)~FILE_DONE;
  return WEIR_OK;
}

static int by_inode(const void *a, const void *b) {
  const file_item *x = a, *y = b;
  if (x->inode != y->inode) return x->inode < y->inode ? -1 : 1;
  return x->device < y->device ? -1 : x->device > y->device;
}

static file_item *find_known(const file_list *known, const file_item *item) {
  return known->n == 0
             ? NULL
             : bsearch(item, known->items, known->n, sizeof(*known->items), by_inode);
}

static bool is_taken(const file_item *known) {
  return known->progress.covered == 0;
}

static void take(file_item *known) {
  known->progress = (file_progress){0};
}

/* The second try, by name: devices get other numbers after a restart of the machine, and folders are
 * restored from backups. The same name with the same bytes is the same file. */
static weir_status match_by_name(file_item *item, file_list *known,
                                 const file_index *names, weir_error *err) {
  for (size_t i = file_index_find(names, item->name, 0);
       file_index_has(names, i, item->name, 0); i++) {
    file_item *k = &known->items[names->entries[i].at];
    bool same = false;
    if (is_taken(k)) continue;
    weir_status status = same_bytes(item, &k->progress, &same, err);
    if (status != WEIR_OK) return status;
    if (!same) continue; /* another file under an old name, as rotation leaves them */
    status = continue_file(item, k, err);
    if (status != WEIR_OK) return status;
    take(k);
    return WEIR_OK;
  }
  return WEIR_OK;
}

static weir_status match_by_names(file_list *listed, file_list *known, weir_error *err) {
  file_index names = {0};
  weir_status status = WEIR_OK;
  for (size_t i = 0; status == WEIR_OK && i < known->n; i++) {
    if (!is_taken(&known->items[i]))
      status = file_index_add(&names, known->items[i].name, 0, i, err);
  }
  file_index_sort(&names);
  for (size_t i = 0; status == WEIR_OK && i < listed->n; i++) {
    if (listed->items[i].progress.covered == 0)
      status = match_by_name(&listed->items[i], known, &names, err);
  }
  file_index_done(&names);
  return status;
}

/* Drops what was found again, and what is done and gone for long. */
static void keep_gone(file_list *known) {
  size_t kept = 0, left = 0;
  for (size_t i = 0; i < known->n; i++) left += !is_taken(&known->items[i]);
  for (size_t i = 0; i < known->n; i++) {
    if (is_taken(&known->items[i]) || left > MAX_GONE) {
      left -= !is_taken(&known->items[i]);
      free(known->items[i].path);
    } else {
      known->items[kept++] = known->items[i];
    }
  }
  known->n = kept;
}

weir_status file_position_match(file_list *listed, file_list *known, weir_error *err) {
  weir_status status = WEIR_OK;
  if (known->n > 1) qsort(known->items, known->n, sizeof(*known->items), by_inode);
  for (size_t i = 0; status == WEIR_OK && i < listed->n; i++) {
    file_item *item = &listed->items[i], *k = find_known(known, item);
    if (k == NULL || is_taken(k)) continue;
    /* the inode of a deleted file, given to a new one */
    if (k->born != 0 && item->born != 0 && k->born != item->born) continue;
    status = continue_file(item, k, err);
    if (status == WEIR_OK) take(k);
  }
  if (status == WEIR_OK) status = match_by_names(listed, known, err);
  for (size_t i = 0; status == WEIR_OK && i < known->n; i++) {
    const file_item *k = &known->items[i];
    if (is_taken(k) || k->progress.flags & FILE_DONE) continue;
    for (size_t j = 0; j < listed->n; j++) {
      if (listed->items[j].name == k->name)
        return changed(&listed->items[j], "was replaced by another file", err);
    }
    status = weir_error_set(
        err, WEIR_E_NOT_FOUND, 0,
        "file %s is gone, though only %llu of its bytes were read; bring it back",
        k->path, (unsigned long long)k->progress.covered);
  }
  if (status == WEIR_OK) keep_gone(known);
  return status;
}
