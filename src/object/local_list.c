/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of a folder's objects and unfinished uploads, in the order of their keys. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "object/local.h"

/* One walk: the objects or the uploads below a prefix. */
typedef struct walk {
  const local_store *store;
  const weir_call *call;
  const char *prefix, *after;
  uint32_t flags;
  weir_object_list_fn objects; /* NULL: uploads */
  weir_object_uploads_fn uploads;
  void *ctx;
} walk;

typedef struct entry {
  char *key;         /* of a folder with a '/' behind it, of an upload its object's */
  char *path;        /* an upload's temporary file; NULL: root and key */
  const char *nonce; /* within path */
} entry;

typedef struct entries {
  entry *v;
  size_t n, room;
} entries;

static void entries_done(entries *list) {
  for (size_t i = 0; i < list->n; i++) {
    free(list->v[i].key);
    free(list->v[i].path);
  }
  free(list->v);
}

static weir_status entries_add(entries *list, entry one, weir_error *err) {
  if (list->n == list->room) {
    size_t room = list->room ? 2 * list->room : 64;
    entry *v = base_realloc(list->v, room, sizeof(*v), err);
    if (!v) {
      free(one.key);
      free(one.path);
      return WEIR_E_NOMEM;
    }
    list->v = v;
    list->room = room;
  }
  list->v[list->n++] = one;
  return WEIR_OK;
}

static int by_key(const void *left, const void *right) {
  return strcmp(((const entry *)left)->key, ((const entry *)right)->key);
}

/* Whether anything in that folder, whose key ends with '/', can fit prefix and after. */
static bool folder_wanted(const walk *w, const char *key) {
  size_t size = strlen(key), prefix = strlen(w->prefix);
  if (strncmp(key, w->prefix, size < prefix ? size : prefix) != 0) return false;
  /* All of its keys begin with `key`; they come before `after` unless it does so, too. */
  return strcmp(key, w->after) > 0 || strncmp(w->after, key, size) == 0;
}

static bool file_wanted(const walk *w, const char *key) {
  return base_starts_with(key, w->prefix) && strcmp(key, w->after) > 0;
}

/* Whether the entry is a folder, or a file; links to files count as files, those to folders not at all. */
static weir_status kind_of(const char *path, const struct dirent *d, bool *folder,
                           bool *file, weir_error *err) {
  struct stat st;
  *folder = d->d_type == DT_DIR;
  *file = d->d_type == DT_REG;
  if (d->d_type != DT_UNKNOWN && d->d_type != DT_LNK) return WEIR_OK;
  if (lstat(path, &st) == 0) {
    *folder = S_ISDIR(st.st_mode);
    if (!S_ISLNK(st.st_mode) || stat(path, &st) == 0) *file = S_ISREG(st.st_mode);
    return WEIR_OK;
  }
  return errno == ENOENT ? WEIR_OK : local_error(err, errno, "look at", path);
}

/* Adds one name of the folder `dir`, whose key is `base` ("" or with a '/' behind it), if the walk wants it. */
static weir_status add_entry(const walk *w, const char *dir, const char *base,
                             const struct dirent *d, entries *list, weir_error *err) {
  bool folder = false, file = false;
  size_t size = strlen(d->d_name);
  const char *name = d->d_name, *nonce = NULL;
  if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) return WEIR_OK;
  bool temp = local_temp_parse(name, &size, &nonce);
  if (temp) name++;
  if (strlen(base) + size > WEIR_OBJECT_MAX_KEY || !base_utf8_valid(name, size)) {
    return WEIR_OK;
  }
  entry one = {.path = base_format(err, "%s/%s", dir, d->d_name)};
  weir_status status =
      one.path ? kind_of(one.path, d, &folder, &file, err) : WEIR_E_NOMEM;
  bool wanted = folder || (file && temp == !w->objects);
  if (!status && wanted) {
    one.key = base_format(err, "%s%.*s%s", base, (int)size, name, folder ? "/" : "");
    if (!one.key) status = WEIR_E_NOMEM;
  }
  if (!one.key || !(folder ? folder_wanted(w, one.key) : file_wanted(w, one.key))) {
    free(one.key);
    free(one.path);
    return status;
  }
  if (temp && !folder) {
    one.nonce = one.path + strlen(one.path) - strlen(nonce);
  } else {
    free(one.path);
    one.path = NULL;
  }
  return entries_add(list, one, err);
}

static weir_status read_folder(const walk *w, const char *base, entries *list,
                               weir_error *err) {
  weir_status status = WEIR_OK;
  char *dir = base_format(err, "%s/%s", w->store->root, base);
  if (!dir) return WEIR_E_NOMEM;
  size_t size = strlen(dir);
  if (size > 1 && dir[size - 1] == '/') dir[size - 1] = 0;
  DIR *stream = opendir(dir);
  if (!stream) {
    /* Removed meanwhile, or never there. */
    if (errno != ENOENT && errno != ENOTDIR) {
      status = local_error(err, errno, "open folder", dir);
    }
    goto out;
  }
  for (;;) {
    errno = 0;
    const struct dirent *d = readdir(stream);
    if (!d && errno) status = local_error(err, errno, "read folder", dir);
    if (!d || status) break;
    BASE_GOTO(status, add_entry(w, dir, base, d, list, err));
  }
  if (list->n) qsort(list->v, list->n, sizeof(*list->v), by_key);
out:
  if (stream) closedir(stream);
  free(dir);
  return status;
}

static weir_status tell(const walk *w, const entry *one, weir_error *err) {
  struct stat st;
  weir_object_info info = {0};
  char *path = one->path ? base_strdup(one->path, err)
                         : base_format(err, "%s/%s", w->store->root, one->key);
  if (!path) return WEIR_E_NOMEM;
  weir_status status = WEIR_OK;
  bool there = stat(path, &st) == 0;
  if (!there && errno != ENOENT && errno != ENOTDIR) {
    status = local_error(err, errno, "look at", path);
  }
  free(path);
  if (status || !there) return status;
  local_info(&st, &info);
  if (w->objects) return w->objects(w->ctx, one->key, &info, err);
  char nonce[LOCAL_NONCE_SIZE] = {0};
  memcpy(nonce, one->nonce, LOCAL_NONCE_SIZE - 1);
  return w->uploads(w->ctx, one->key, nonce, info.modified_ns, err);
}

/* As deep as keys are long at most, since each level takes two of their bytes. */
static weir_status walk_folder(const walk *w, const char *base, weir_error *err) {
  static const weir_object_info none = {0};
  entries list = {0};
  weir_status status = read_folder(w, base, &list, err);
  for (size_t i = 0; i < list.n && !status; i++) {
    const entry *one = &list.v[i];
    status = weir_call_check(w->call, "list of a folder", err);
    if (status) break;
    if (!base_ends_with(one->key, "/")) {
      status = tell(w, one, err);
    } else if ((w->flags & WEIR_OBJECT_SHALLOW) &&
               base_starts_with(one->key, w->prefix)) {
      /* As S3 has it, `after` hides a folder that it lies in. */
      if (strcmp(one->key, w->after) > 0)
        status = w->objects(w->ctx, one->key, &none, err);
    } else {
      status = walk_folder(w, one->key, err);
    }
  }
  entries_done(&list);
  return status;
}

/* Begins at the deepest folder that all keys with the prefix lie in. */
static weir_status walk_all(const walk *w, weir_error *err) {
  const char *slash = strrchr(w->prefix, '/');
  char *base = base_strndup(w->prefix, slash ? (size_t)(slash - w->prefix) + 1 : 0, err);
  if (!base) return WEIR_E_NOMEM;
  weir_status status = walk_folder(w, base, err);
  free(base);
  return status;
}

weir_status local_list(void *state, const weir_call *call, const char *prefix,
                       const char *after, uint32_t flags, weir_object_list_fn fn,
                       void *ctx, weir_error *err) {
  walk w = {.store = state,
            .call = call,
            .prefix = prefix,
            .after = after,
            .flags = flags,
            .objects = fn,
            .ctx = ctx};
  return walk_all(&w, err);
}

weir_status local_uploads_list(void *state, const weir_call *call, const char *prefix,
                               weir_object_uploads_fn fn, void *ctx, weir_error *err) {
  walk w = {.store = state,
            .call = call,
            .prefix = prefix,
            .after = "",
            .uploads = fn,
            .ctx = ctx};
  return walk_all(&w, err);
}
