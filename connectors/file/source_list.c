/* SPDX-License-Identifier: Apache-2.0 */
/* Which files a source reads. */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "source.h"

void file_list_done(file_list *list) {
  for (size_t i = 0; i < list->n; i++) free(list->items[i].path);
  free(list->items);
  *list = (file_list){0};
}

weir_status file_list_add(file_list *list, file_item *item, weir_error *err) {
  if (list->n == list->room) {
    size_t room = list->room ? list->room * 2 : 16;
    file_item *items = realloc(list->items, room * sizeof(*items));
    if (items == NULL) {
      return weir_error_set(err, WEIR_E_NOMEM, 0, "no memory for %zu files", room);
    }
    list->items = items;
    list->room = room;
  }
  list->items[list->n++] = *item;
  *item = (file_item){0};
  return WEIR_OK;
}

static weir_status file_error(weir_error *err, int errnum, const char *what,
                              const char *path) {
  if (errnum == ENOENT || errnum == ENOTDIR) {
    return weir_error_set(err, WEIR_E_NOT_FOUND, 0, "%s %s: %s", what, path,
                          strerror(errnum));
  }
  return weir_error_errno(err, errnum, "%s %s", what, path);
}

uint32_t file_name_hash(const char *path) {
  return (uint32_t)XXH3_64bits(path, strlen(path));
}

static int64_t nanoseconds(const struct statx_timestamp *t) {
  return t->tv_sec * 1000000000 + t->tv_nsec;
}

static void identify(const struct statx *st, file_item *item) {
  item->device = (uint64_t)st->stx_dev_major << 32 | st->stx_dev_minor;
  item->inode = st->stx_ino;
  item->size = st->stx_size;
  item->born = 0;
  if (st->stx_mask & STATX_BTIME) {
    uint64_t time[2] = {(uint64_t)st->stx_btime.tv_sec, st->stx_btime.tv_nsec};
    item->born = (uint32_t)XXH3_64bits(time, sizeof(time)) | 1;
    item->seen.born = nanoseconds(&st->stx_btime);
  }
  item->seen.modified = nanoseconds(&st->stx_mtime);
  item->seen.changed = nanoseconds(&st->stx_ctime);
}

static weir_status add_file(file_list *list, const char *path, const struct statx *st,
                            weir_error *err) {
  file_item item = {0};
  if (S_ISDIR(st->stx_mode)) {
    return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                          "path %s is a folder; name its files, as in %s%s*.ndjson", path,
                          path, path[strlen(path) - 1] == '/' ? "" : "/");
  }
  if (!S_ISREG(st->stx_mode)) {
    return weir_error_set(
        err, WEIR_E_INVALID_CONFIG, 0,
        "path %s is no regular file, so its rows could not be read again", path);
  }
  item.path = strdup(path);
  if (item.path == NULL)
    return weir_error_set(err, WEIR_E_NOMEM, 0, "no memory for a path");
  item.name = file_name_hash(path);
  identify(st, &item);
  weir_status status = file_list_add(list, &item, err);
  free(item.path);
  return status;
}

bool file_path_is_stream(const char *path) {
  return strcmp(path, "-") == 0 || strcmp(path, "/dev/stdin") == 0;
}

static int stat_path(const char *path, struct statx *st) {
  return statx(AT_FDCWD, path, 0, STATX_BASIC_STATS | STATX_BTIME, st);
}

weir_status file_item_look(const char *path, file_item *item, bool *there,
                           weir_error *err) {
  struct statx st;
  *item = (file_item){0};
  *there = false;
  if (stat_path(path, &st) != 0) {
    if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == EACCES)
      return WEIR_OK;
    return weir_error_errno(err, errno, "cannot look at %s", path);
  }
  if (!S_ISREG(st.stx_mode)) return WEIR_OK;
  item->path = strdup(path);
  if (item->path == NULL)
    return weir_error_set(err, WEIR_E_NOMEM, 0, "no memory for a path");
  item->name = file_name_hash(path);
  identify(&st, item);
  *there = true;
  return WEIR_OK;
}

/* What glob met: it gives its callback no context of ours. */
static _Thread_local int list_errno;

/* A folder that cannot be read is no folder without files. */
static int on_list_error(const char *path, int errnum) {
  (void)path;
  if (errnum == ENOENT || errnum == ENOTDIR) return 0;
  list_errno = errnum;
  return 1;
}

/* With `follow` a name that is gone before it is looked at is one that has not come yet. */
static weir_status add_matches(file_list *list, const char *pattern, bool follow,
                               weir_error *err) {
  glob_t found = {0};
  weir_status status = WEIR_OK;
  struct statx st;
  list_errno = 0;
  int code = glob(pattern, GLOB_NOSORT | GLOB_BRACE, on_list_error, &found);
  if (code == GLOB_NOSPACE) {
    status =
        weir_error_set(err, WEIR_E_NOMEM, 0, "no memory for the files of %s", pattern);
  } else if (code == GLOB_ABORTED) {
    status = file_error(err, list_errno ? list_errno : EIO, "cannot list", pattern);
  }
  for (size_t i = 0; status == WEIR_OK && code == 0 && i < found.gl_pathc; i++) {
    const char *path = found.gl_pathv[i];
    if (stat_path(path, &st) != 0) {
      if (!follow || (errno != ENOENT && errno != ENOTDIR))
        status = file_error(err, errno, "cannot look at", path);
    } else if (!S_ISDIR(st.stx_mode)) { /* a folder that a wildcard meets is not meant */
      status = add_file(list, path, &st, err);
    }
  }
  globfree(&found);
  return status;
}

static weir_status add_missing(file_list *missing, const char *path, weir_error *err) {
  file_item item = {.path = strdup(path), .name = file_name_hash(path)};
  if (item.path == NULL)
    return weir_error_set(err, WEIR_E_NOMEM, 0, "no memory for a path");
  weir_status status = file_list_add(missing, &item, err);
  free(item.path);
  return status;
}

static weir_status add_stream(file_list *list, weir_error *err) {
  file_item item = {.path = strdup("(standard input)")};
  if (item.path == NULL)
    return weir_error_set(err, WEIR_E_NOMEM, 0, "no memory for a path");
  weir_status status = file_list_add(list, &item, err);
  free(item.path);
  return status;
}

static weir_status add_path(file_list *list, file_list *missing, const char *path,
                            bool follow, weir_error *err) {
  struct statx st;
  if (file_path_is_stream(path)) return add_stream(list, err);
  if (stat_path(path, &st) == 0) return add_file(list, path, &st, err);
  if (errno != ENOENT && errno != ENOTDIR)
    return file_error(err, errno, "cannot look at", path);
  if (strpbrk(path, "*?[{") == NULL) {
    return add_missing(missing, path, err);
  }
  if (strstr(path, "**") != NULL) {
    return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                          "path %s: ** is not supported; give one pattern a folder level",
                          path);
  }
  return add_matches(list, path, follow, err);
}

static int by_path(const void *a, const void *b) {
  return strcmp(((const file_item *)a)->path, ((const file_item *)b)->path);
}

static int by_identity(const void *a, const void *b) {
  const file_item *const *x = a, *const *y = b;
  if ((*x)->device != (*y)->device) return (*x)->device < (*y)->device ? -1 : 1;
  if ((*x)->inode != (*y)->inode) return (*x)->inode < (*y)->inode ? -1 : 1;
  return *x < *y ? -1 : *x > *y; /* the first by path stays */
}

/* Keeps one name of each inode: hard links, symbolic links and patterns that overlap name one file. */
static weir_status drop_twins(file_list *list, weir_error *err) {
  file_item **order = calloc(list->n + 1, sizeof(*order));
  size_t kept = 0;
  if (order == NULL)
    return weir_error_set(err, WEIR_E_NOMEM, 0, "no memory for %zu files", list->n);
  for (size_t i = 0; i < list->n; i++) order[i] = &list->items[i];
  qsort(order, list->n, sizeof(*order), by_identity);
  for (size_t i = 1; i < list->n; i++) {
    if (order[i]->device == order[i - 1]->device &&
        order[i]->inode == order[i - 1]->inode) {
      order[i]->name = 0;
      free(order[i]->path);
      order[i]->path = NULL;
    }
  }
  for (size_t i = 0; i < list->n; i++) {
    if (list->items[i].path != NULL) list->items[kept++] = list->items[i];
  }
  list->n = kept;
  free(order);
  return WEIR_OK;
}

weir_status file_source_list(const weir_options *options, file_list *out,
                             file_list *missing, weir_error *err) {
  size_t n = weir_options_count(options, "path");
  bool follow = weir_options_bool(options, "follow");
  weir_status status = WEIR_OK;
  for (size_t i = 0; status == WEIR_OK && i < n; i++) {
    status = add_path(out, missing, weir_options_item(options, "path", i), follow, err);
  }
  if (status != WEIR_OK) return status;
  if (out->n > 1) qsort(out->items, out->n, sizeof(*out->items), by_path);
  return drop_twins(out, err);
}

weir_status file_list_again(const file_list *old, file_list *out, file_list *missing,
                            weir_error *err) {
  weir_status status = WEIR_OK;
  for (size_t i = 0; status == WEIR_OK && i < old->n; i++) {
    struct statx st;
    const char *path = old->items[i].path;
    if (stat_path(path, &st) == 0) {
      status = add_file(out, path, &st, err);
    } else if (errno == ENOENT || errno == ENOTDIR) {
      status = add_missing(missing, path, err);
    } else {
      status = file_error(err, errno, "cannot look at", path);
    }
  }
  return status == WEIR_OK ? drop_twins(out, err) : status;
}

static weir_status read_window(int fd, const char *path, uint8_t *to, size_t size,
                               uint64_t offset, weir_error *err) {
  size_t got = 0;
  while (got < size) {
    ssize_t n = pread(fd, to + got, size - got, (off_t)(offset + got));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return weir_error_errno(err, errno, "cannot read %s", path);
    if (n == 0) {
      return weir_error_set(err, WEIR_E_BAD_DATA, WEIR_ERR_BAD_DATA,
                            "file %s became shorter than the %llu bytes read from it",
                            path, (unsigned long long)(offset + size));
    }
    got += (size_t)n;
  }
  return WEIR_OK;
}

uint64_t file_hash(const void *data, size_t size) {
  return XXH3_64bits(data, size);
}

weir_status file_window_hash(int fd, const char *path, uint64_t covered, uint64_t *hash,
                             weir_error *err) {
  uint8_t window[2 * FILE_WINDOW];
  size_t head = covered < FILE_WINDOW ? (size_t)covered : FILE_WINDOW;
  size_t tail = covered - head < FILE_WINDOW ? (size_t)(covered - head) : FILE_WINDOW;
  weir_status status = read_window(fd, path, window, head, 0, err);
  if (status == WEIR_OK)
    status = read_window(fd, path, window + head, tail, covered - tail, err);
  if (status == WEIR_OK) *hash = file_hash(window, head + tail);
  return status;
}

static bool same_file(const file_item *a, const file_item *b) {
  return a->device == b->device && a->inode == b->inode && a->born == b->born;
}

/* *same: whether the open file is the one that was listed. */
static weir_status check_file(const file_item *item, int fd, bool *same,
                              weir_error *err) {
  struct statx st;
  file_item now = {0};
  if (statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &st) != 0)
    return weir_error_errno(err, errno, "cannot look at %s", item->path);
  identify(&st, &now);
  *same = same_file(&now, item);
  return WEIR_OK;
}

weir_status file_item_try(const file_item *item, int *fd, weir_error *err) {
  bool same = false;
  int opened = open(item->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (opened < 0 && errno != ENOENT && errno != ENOTDIR)
    return file_error(err, errno, "cannot open", item->path);
  weir_status status = opened < 0 ? WEIR_OK : check_file(item, opened, &same, err);
  if (opened >= 0 && !same) {
    close(opened);
    opened = -1;
  }
  if (status == WEIR_OK) *fd = opened;
  return status;
}

weir_status file_item_open(const file_item *item, int *fd, weir_error *err) {
  bool same = false;
  int opened = open(item->path, O_RDONLY | O_CLOEXEC);
  if (opened < 0) return file_error(err, errno, "cannot open", item->path);
  weir_status status = check_file(item, opened, &same, err);
  if (status == WEIR_OK && !same) {
    status = weir_error_set(
        err, WEIR_E_IO, WEIR_ERR_RETRIABLE,
        "file %s was replaced by another file since the run began; run again",
        item->path);
  }
  if (status == WEIR_OK)
    *fd = opened;
  else
    close(opened);
  return status;
}
