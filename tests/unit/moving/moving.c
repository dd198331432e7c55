/* SPDX-License-Identifier: Apache-2.0 */
#include "moving.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { FILES = 256, NAME = 48, OPEN = 16, FIRST_FD = 1 << 20 };
#define TICK INT64_C(4000000)

typedef struct moving_file {
  char name[NAME]; /* empty: nobody's, or open and without a name */
  uint64_t place;
  char *data;
  size_t size, room;
  int64_t born, changed;
  int open;
} moving_file;

typedef struct moving_dir {
  uint64_t cursor;
  struct dirent entries[16];
  size_t at, n, most;
  bool end;
} moving_dir;

static struct {
  moving_options options;
  uint64_t random, places;
  int64_t now;
  int order; /* 0: by hash, 1: first come first, 2: last come first */
  bool inside;
  moving_file files[FILES];
  int fds[OPEN]; /* 1 + file */
} fs;

uint64_t moving_random(uint64_t below) {
  uint64_t x = fs.random += UINT64_C(0x9E3779B97F4A7C15);
  x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
  x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
  return (x ^ x >> 31) % below;
}

int64_t moving_now(void) {
  return fs.now;
}

void moving_wait(int64_t ns) {
  fs.now += ns;
}

void moving_begin(const moving_options *options) {
  memset(&fs, 0, sizeof(fs));
  fs.options = *options;
  fs.random = options->seed;
  fs.places = UINT64_C(1) << 32;
  fs.now = INT64_C(1700000000000000000);
  fs.order = (int)moving_random(3);
}

void moving_end(void) {
  for (int i = 0; i < FILES; i++) free(fs.files[i].data);
  memset(&fs, 0, sizeof(fs));
}

/* ---- somebody else */

static uint64_t place_of(const char *name) {
  uint64_t hash = fs.options.seed + 1;
  if (fs.order != 0) return fs.order == 1 ? fs.places++ : fs.places--;
  for (; *name != 0; name++) hash = (hash ^ (uint8_t)*name) * UINT64_C(0x100000001B3);
  return (hash >> 20) + 1;
}

int moving_find(const char *name) {
  for (int i = 0; i < FILES; i++)
    if (fs.files[i].name[0] != 0 && strcmp(fs.files[i].name, name) == 0) return i;
  return -1;
}

static int64_t stamp(void) {
  fs.now += 1000 + (int64_t)moving_random(20000);
  return fs.now / TICK * TICK;
}

static void fail(const char *what, const char *name) {
  fprintf(stderr, "moving: %s %s\n", what, name);
  abort();
}

int moving_create(const char *name) {
  int at = 0;
  while (at < FILES && (fs.files[at].name[0] != 0 || fs.files[at].open > 0)) at++;
  if (at == FILES || moving_find(name) >= 0) fail("no room, or is there:", name);
  moving_file *file = &fs.files[at];
  free(file->data);
  *file = (moving_file){.place = place_of(name)};
  snprintf(file->name, sizeof(file->name), "%s", name);
  file->born = file->changed = stamp();
  return at;
}

void moving_append(int at, const void *data, size_t size) {
  moving_file *file = &fs.files[at];
  if (file->size + size >= file->room) {
    file->room = 2 * (file->size + size) + 1;
    file->data = realloc(file->data, file->room);
    if (file->data == NULL) fail("no memory", file->name);
  }
  if (size > 0) memcpy(file->data + file->size, data, size);
  file->size += size;
  file->data[file->size] = 0;
  file->changed = stamp();
}

void moving_cut(int at) {
  fs.files[at].size = 0;
  fs.files[at].changed = stamp();
}

void moving_remove(const char *name) {
  int at = moving_find(name);
  if (at < 0) fail("there is no", name);
  fs.files[at].name[0] = 0;
}

void moving_rename(const char *from, const char *to) {
  int at = moving_find(from);
  if (at < 0) fail("there is no", from);
  if (moving_find(to) >= 0) moving_remove(to);
  fs.files[at].place = place_of(to);
  fs.files[at].changed = stamp();
  snprintf(fs.files[at].name, sizeof(fs.files[at].name), "%s", to);
}

const char *moving_data(int at, size_t *size) {
  *size = fs.files[at].size;
  return fs.files[at].data;
}

/* ---- the process */

#define REAL(name) __typeof__(&name) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

static void called(void) {
  if (fs.inside) return;
  fs.inside = true;
  fs.now += 1000 + (int64_t)moving_random(20000);
  fs.options.before_call();
  fs.inside = false;
}

/* The name inside of the folder; empty for the folder itself, NULL for another path. */
static const char *inside(const char *path) {
  size_t n = strlen(MOVING_FOLDER);
  if (fs.options.before_call == NULL || strncmp(path, MOVING_FOLDER, n) != 0) return NULL;
  return path[n] == '/' ? path + n + 1 : path[n] == 0 ? path + n : NULL;
}

static moving_file *opened(int fd) {
  if (fd < FIRST_FD || fd >= FIRST_FD + OPEN || fs.fds[fd - FIRST_FD] == 0) return NULL;
  return &fs.files[fs.fds[fd - FIRST_FD] - 1];
}

static struct statx_timestamp timestamp(int64_t ns) {
  return (struct statx_timestamp){.tv_sec = ns / 1000000000,
                                  .tv_nsec = (uint32_t)(ns % 1000000000)};
}

int statx(int folder, const char *path, int flags, unsigned mask, struct statx *out) {
  REAL(statx);
  const char *name = inside(path);
  moving_file *file = path[0] == 0 ? opened(folder) : NULL;
  if (name == NULL && file == NULL) return real(folder, path, flags, mask, out);
  called();
  if (name != NULL) {
    int at = moving_find(name);
    if (at < 0) {
      errno = ENOENT;
      return -1;
    }
    file = &fs.files[at];
  }
  *out = (struct statx){.stx_mask = STATX_BASIC_STATS | STATX_BTIME,
                        .stx_mode = S_IFREG | 0644,
                        .stx_nlink = file->name[0] != 0,
                        .stx_ino = (uint64_t)(file - fs.files) + 100,
                        .stx_size = file->size,
                        .stx_btime = timestamp(file->born),
                        .stx_mtime = timestamp(file->changed),
                        .stx_ctime = timestamp(file->changed),
                        .stx_dev_minor = 7};
  return 0;
}

int access(const char *path, int how) {
  REAL(access);
  const char *name = inside(path);
  if (name == NULL) return real(path, how);
  called();
  errno = ENOENT;
  return moving_find(name) < 0 ? -1 : 0;
}

int fstat(int fd, struct stat *out) {
  REAL(fstat);
  const moving_file *file = opened(fd);
  if (file == NULL) return real(fd, out);
  called();
  *out = (struct stat){.st_mode = S_IFREG | 0644, .st_size = (off_t)file->size};
  return 0;
}

int open(const char *path, int flags, ...) {
  REAL(open);
  const char *name = inside(path);
  va_list more;
  va_start(more, flags);
  unsigned mode = flags & O_CREAT ? va_arg(more, unsigned) : 0;
  va_end(more);
  if (name == NULL) return real(path, flags, mode);
  called();
  int at = moving_find(name), fd = 0;
  if (at < 0) {
    errno = ENOENT;
    return -1;
  }
  while (fd < OPEN && fs.fds[fd] != 0) fd++;
  if (fd == OPEN) fail("too many are open:", name);
  fs.fds[fd] = at + 1;
  fs.files[at].open++;
  return FIRST_FD + fd;
}

int close(int fd) {
  REAL(close);
  moving_file *file = opened(fd);
  if (file == NULL) return real(fd);
  file->open--;
  fs.fds[fd - FIRST_FD] = 0;
  return 0;
}

ssize_t pread(int fd, void *to, size_t size, off_t offset) {
  REAL(pread);
  const moving_file *file = opened(fd);
  if (file == NULL) return real(fd, to, size, offset);
  called();
  size_t from = (size_t)offset, left = from < file->size ? file->size - from : 0;
  if (size > left) size = left;
  if (size > 0) memcpy(to, file->data + from, size);
  return (ssize_t)size;
}

/* What a build with checks calls instead; it declares it, too. */
#if !__USE_FORTIFY_LEVEL
ssize_t __pread_chk(int fd, void *to, size_t size, off_t offset, size_t room);
#endif
ssize_t __pread_chk(int fd, void *to, size_t size, off_t offset, size_t room) {
  if (size > room) abort();
  return pread(fd, to, size, offset);
}

static void read_some(moving_dir *dir) {
  dir->at = dir->n = 0;
  while (dir->n < dir->most) {
    int next = -1;
    for (int i = 0; i < FILES; i++)
      if (fs.files[i].name[0] != 0 && fs.files[i].place > dir->cursor &&
          (next < 0 || fs.files[i].place < fs.files[next].place))
        next = i;
    if (next < 0) {
      dir->end = true;
      return;
    }
    struct dirent *entry = &dir->entries[dir->n++];
    entry->d_ino = (ino_t)next + 100;
    entry->d_type = DT_REG;
    snprintf(entry->d_name, sizeof(entry->d_name), "%s", fs.files[next].name);
    dir->cursor = fs.files[next].place;
  }
}

static struct dirent *next_entry(moving_dir *dir) {
  if (dir->most == 0) dir->most = 1 + (size_t)moving_random(16);
  if (dir->at == dir->n && !dir->end) {
    called();
    read_some(dir);
  }
  return dir->at < dir->n ? &dir->entries[dir->at++] : NULL;
}

DIR *opendir(const char *path) {
  REAL(opendir);
  if (inside(path) == NULL) return real(path);
  moving_dir *dir = calloc(1, sizeof(*dir));
  if (dir == NULL) abort();
  return (DIR *)dir;
}

struct dirent *readdir(DIR *dir) {
  REAL(readdir);
  return fs.options.before_call == NULL ? real(dir) : next_entry((moving_dir *)dir);
}

int closedir(DIR *dir) {
  REAL(closedir);
  if (fs.options.before_call == NULL) return real(dir);
  free(dir);
  return 0;
}

static char *path_to(const char *name) {
  size_t room = sizeof(MOVING_FOLDER) + strlen(name) + 1;
  char *path = malloc(room);
  if (path == NULL) abort();
  snprintf(path, room, "%s/%s", MOVING_FOLDER, name);
  return path;
}

int glob(const char *pattern, int flags, int (*on_error)(const char *, int),
         glob_t *out) {
  REAL(glob);
  if (inside(pattern) == NULL) return real(pattern, flags, on_error, out);
  *out = (glob_t){0};
  out->gl_pathv = calloc((size_t)fs.options.rounds * FILES * 2, sizeof(char *));
  if (out->gl_pathv == NULL) return GLOB_NOSPACE;
  for (int round = 0; round < fs.options.rounds; round++) {
    const struct dirent *entry;
    moving_dir dir = {0};
    while ((entry = next_entry(&dir)) != NULL)
      if (fs.options.matches(entry->d_name, round))
        out->gl_pathv[out->gl_pathc++] = path_to(entry->d_name);
  }
  return 0;
}

void globfree(glob_t *found) {
  REAL(globfree);
  if (fs.options.before_call == NULL) {
    real(found);
    return;
  }
  for (size_t i = 0; i < found->gl_pathc; i++) free(found->gl_pathv[i]);
  free(found->gl_pathv);
}

int clock_gettime(clockid_t clock, struct timespec *out) {
  REAL(clock_gettime);
  if (fs.options.before_call == NULL ||
      (clock != CLOCK_REALTIME && clock != CLOCK_THREAD_CPUTIME_ID))
    return real(clock, out);
  *out = (struct timespec){fs.now / 1000000000, fs.now % 1000000000};
  if (clock == CLOCK_THREAD_CPUTIME_ID) *out = (struct timespec){0};
  return 0;
}
