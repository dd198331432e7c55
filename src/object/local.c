/* SPDX-License-Identifier: Apache-2.0 */
/* Objects as files: put, get, head, remove. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "object/local.h"

enum { MAX_SEGMENT = 230 }; /* with ".", "." + 16 digits and ".tmp" it fits 255 */

weir_status local_error(weir_error *err, int errnum, const char *operation,
                        const char *path) {
  weir_status status = base_io_error(err, errnum, operation, path);
  if (err && (errnum == EACCES || errnum == EPERM || errnum == EDQUOT)) {
    err->flags |= WEIR_ERR_RETRIABLE;
  }
  return status;
}

void local_info(const struct stat *st, weir_object_info *out) {
  *out = (weir_object_info){.size = (uint64_t)st->st_size};
  out->modified_ns = st->st_mtim.tv_sec * BASE_NS_PER_S + st->st_mtim.tv_nsec;
  /* Every put makes a new file, so inode and time tell two objects apart; ctime would change with the links. */
  snprintf(out->etag, sizeof(out->etag), "%" PRIx64 "-%" PRIx64 "-%" PRIx64,
           (uint64_t)st->st_ino, out->size, (uint64_t)out->modified_ns);
}

weir_status local_random(char out[LOCAL_NONCE_SIZE], weir_error *err) {
  uint8_t bytes[(LOCAL_NONCE_SIZE - 1) / 2];
  BASE_TRY(base_random(bytes, sizeof(bytes), err));
  weir_hex_encode(bytes, sizeof(bytes), out);
  return WEIR_OK;
}

/* ---- names ---- */

bool local_temp_parse(const char *entry, size_t *size, const char **nonce) {
  enum { TAIL = LOCAL_NONCE_SIZE - 1 + sizeof(BASE_TEMP_SUFFIX) }; /* with a dot before */
  size_t length = strlen(entry);
  if (entry[0] != '.' || length < TAIL + 2 || !base_ends_with(entry, BASE_TEMP_SUFFIX)) {
    return false;
  }
  const char *dot = entry + length - TAIL;
  if (*dot != '.' || strspn(dot + 1, "0123456789abcdef") != LOCAL_NONCE_SIZE - 1) {
    return false;
  }
  *size = (size_t)(dot - entry) - 1;
  *nonce = dot + 1;
  return true;
}

static weir_status check_last(const char *key, const char *last, weir_error *err) {
  size_t size = 0;
  const char *nonce = NULL;
  if (strlen(last) > MAX_SEGMENT) {
    return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                          "'%.300s' cannot be an object's key in a folder: its last "
                          "segment has more than %d bytes",
                          key, MAX_SEGMENT);
  }
  if (!local_temp_parse(last, &size, &nonce)) return WEIR_OK;
  return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                        "'%.300s' cannot be an object's key in a folder: temporary files "
                        "have such names",
                        key);
}

weir_status local_name_init(const local_store *store, const char *key, const char *nonce,
                            local_name *out, weir_error *err) {
  const char *slash = strrchr(key, '/');
  const char *last = slash ? slash + 1 : key;
  BASE_TRY(check_last(key, last, err));
  local_name name = {0};
  name.path = base_format(err, "%s/%s", store->root, key);
  name.folder = name.path ? base_dirname(name.path, err) : NULL;
  if (name.folder && nonce) {
    name.temp = base_format(err, "%s/.%s.%s" BASE_TEMP_SUFFIX, name.folder, last, nonce);
  }
  if (!name.folder || (nonce && !name.temp)) {
    local_name_done(&name);
    return WEIR_E_NOMEM;
  }
  *out = name;
  return WEIR_OK;
}

void local_name_done(local_name *name) {
  free(name->folder);
  free(name->path);
  free(name->temp);
  *name = (local_name){0};
}

/* ---- folders ---- */

static bool folder_known(local_store *store, const char *folder, bool forget) {
  bool known = false;
  pthread_mutex_lock(&store->mutex);
  for (size_t i = 0; i < BASE_COUNT(store->durable); i++) {
    if (!store->durable[i] || strcmp(store->durable[i], folder) != 0) continue;
    known = true;
    if (!forget) continue;
    free(store->durable[i]);
    store->durable[i] = NULL;
  }
  pthread_mutex_unlock(&store->mutex);
  return known;
}

weir_status local_folder_ready(local_store *store, const char *folder, weir_error *err) {
  if (folder_known(store, folder, false)) return WEIR_OK;
  BASE_TRY(base_mkdirs(folder, 0777, err));
  BASE_TRY(base_sync_upwards(folder, err));
  char *copy = base_strdup(folder, err);
  if (!copy) return WEIR_E_NOMEM;
  pthread_mutex_lock(&store->mutex);
  free(store->durable[store->next]);
  store->durable[store->next] = copy;
  store->next = (store->next + 1) % BASE_COUNT(store->durable);
  pthread_mutex_unlock(&store->mutex);
  return WEIR_OK;
}

void local_folder_gone(local_store *store, const char *folder) {
  folder_known(store, folder, true);
}

/* ---- put ---- */

/* Writers that replace or remove take turns, so that a condition holds when the name is given. Of one that creates
 * link() takes care. The lock is the folder's, and falls with the descriptor. */
static weir_status lock_folder(const weir_call *call, int fd, const char *folder,
                               weir_error *err) {
  while (flock(fd, LOCK_EX | LOCK_NB)) {
    if (errno != EWOULDBLOCK && errno != EINTR) {
      return local_error(err, errno, "lock", folder);
    }
    BASE_TRY(weir_call_check(call, "wait for another writer of the folder", err));
    base_sleep(BASE_NS_PER_MS);
  }
  return WEIR_OK;
}

static weir_status check_match(const local_name *name, const char *if_match,
                               weir_error *err) {
  struct stat st;
  weir_object_info info = {0};
  if (stat(name->path, &st)) {
    if (errno != ENOENT) return local_error(err, errno, "look at", name->path);
    return weir_error_set(err, WEIR_E_CONFLICT, 0,
                          "'%s' is gone; another writer removed it", name->path);
  }
  local_info(&st, &info);
  if (strcmp(info.etag, if_match) == 0) return WEIR_OK;
  return weir_error_set(err, WEIR_E_CONFLICT, 0,
                        "'%s' is not the version that was to be replaced; another writer "
                        "has put a newer one",
                        name->path);
}

/* Gives the name; what may have happened is known. */
static weir_status give_name(const local_name *name,
                             const weir_object_put_options *options, weir_error *err) {
  struct stat st;
  if (!(options->flags & WEIR_OBJECT_IF_ABSENT)) {
    if (options->if_match) BASE_TRY(check_match(name, options->if_match, err));
    return rename(name->temp, name->path) ? local_error(err, errno, "create", name->path)
                                          : WEIR_OK;
  }
  if (link(name->temp, name->path)) {
    int failed = errno;
    /* NFS answers EEXIST to its own repeat of a link() that was done; the count of links tells. */
    if (stat(name->temp, &st) || st.st_nlink != 2) {
      return local_error(err, failed, "create", name->path);
    }
  }
  unlink(name->temp);
  return WEIR_OK;
}

weir_status local_publish(const weir_call *call, const local_name *name,
                          const weir_object_put_options *options, weir_object_info *out,
                          weir_error *err) {
  struct stat st;
  int fd = open(name->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return local_error(err, errno, "open folder", name->folder);
  weir_status status = WEIR_OK;
  if (stat(name->temp, &st)) {
    status = local_error(err, errno, "look at", name->temp);
    goto out;
  }
  local_info(&st, out); /* of this object, whatever replaces it meanwhile */
  if (!(options->flags & WEIR_OBJECT_IF_ABSENT)) {
    BASE_GOTO(status, lock_folder(call, fd, name->folder, err));
  }
  BASE_GOTO(status, give_name(name, options, err));
  status = base_fsync(fd, name->folder, err);
  if (status && err) err->flags |= WEIR_ERR_IN_DOUBT;
out:
  close(fd);
  return status;
}

static weir_status write_temp(const local_name *name, const void *data, size_t size,
                              weir_error *err) {
  int fd = open(name->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) return local_error(err, errno, "create", name->temp);
  weir_status status = base_write_all(fd, data, size, name->temp, err);
  if (!status) status = base_fsync(fd, name->temp, err);
  if (close(fd) && !status) status = local_error(err, errno, "close", name->temp);
  return status;
}

static weir_status local_put(void *state, const weir_call *call, const char *key,
                             const void *data, size_t size,
                             const weir_object_put_options *options,
                             weir_object_info *out, weir_error *err) {
  local_store *store = state;
  local_name name = {0};
  char nonce[LOCAL_NONCE_SIZE];
  BASE_TRY(local_random(nonce, err));
  BASE_TRY(local_name_init(store, key, nonce, &name, err));
  weir_status status = WEIR_OK;
  /* Once more where somebody has removed the folder. */
  for (int tries = 0; tries < 2; tries++) {
    BASE_GOTO(status, local_folder_ready(store, name.folder, err));
    status = write_temp(&name, data, size, err);
    if (status != WEIR_E_NOT_FOUND) break;
    local_folder_gone(store, name.folder);
  }
  if (!status) status = local_publish(call, &name, options, out, err);
  if (status) unlink(name.temp);
out:
  local_name_done(&name);
  return status;
}

/* ---- get, head, remove ---- */

static weir_status read_range(int fd, const char *path, uint64_t offset, size_t max,
                              weir_bytes *out, weir_object_info *info, weir_error *err) {
  struct stat st;
  if (fstat(fd, &st)) return local_error(err, errno, "look at", path);
  if (!S_ISREG(st.st_mode)) {
    return weir_error_set(err, WEIR_E_NOT_FOUND, 0,
                          "'%s' is a folder or device, so no object", path);
  }
  local_info(&st, info);
  uint64_t left = info->size > offset ? info->size - offset : 0;
  size_t size = left < max ? (size_t)left : max;
  base_buf buf = {0};
  BASE_TRY(base_buf_reserve(&buf, size, err));
  while (buf.size < size) {
    ssize_t n =
        pread(fd, buf.data + buf.size, size - buf.size, (off_t)(offset + buf.size));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      weir_status status = n < 0 ? local_error(err, errno, "read", path)
                                 : weir_error_set(err, WEIR_E_CORRUPT, 0,
                                                  "'%s' became shorter as it was read: "
                                                  "something else writes to it",
                                                  path);
      base_buf_done(&buf);
      return status;
    }
    buf.size += (size_t)n;
  }
  base_buf_steal(&buf, out);
  return WEIR_OK;
}

static weir_status local_get(void *state, const weir_call *call, const char *key,
                             uint64_t offset, size_t max, weir_bytes *out,
                             weir_object_info *info, weir_error *err) {
  (void)call;
  local_name name = {0};
  BASE_TRY(local_name_init(state, key, NULL, &name, err));
  int fd = open(name.path, O_RDONLY | O_CLOEXEC);
  weir_status status = fd < 0 ? local_error(err, errno, "open", name.path)
                              : read_range(fd, name.path, offset, max, out, info, err);
  if (fd >= 0) close(fd);
  local_name_done(&name);
  return status;
}

static weir_status local_head(void *state, const weir_call *call, const char *key,
                              weir_object_info *out, weir_error *err) {
  (void)call;
  struct stat st;
  local_name name = {0};
  weir_status status = WEIR_OK;
  BASE_TRY(local_name_init(state, key, NULL, &name, err));
  if (stat(name.path, &st)) {
    status = local_error(err, errno, "look at", name.path);
  } else if (!S_ISREG(st.st_mode)) {
    status = weir_error_set(err, WEIR_E_NOT_FOUND, 0, "'%s' is a folder, so no object",
                            name.path);
  } else {
    local_info(&st, out);
  }
  local_name_done(&name);
  return status;
}

static weir_status remove_one(local_store *store, const weir_call *call, const char *key,
                              weir_error *err) {
  local_name name = {0};
  weir_status status = WEIR_OK;
  BASE_TRY(local_name_init(store, key, NULL, &name, err));
  int fd = open(name.folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) {
    if (errno != ENOENT && errno != ENOTDIR) {
      status = local_error(err, errno, "open folder", name.folder);
    }
    goto out;
  }
  BASE_GOTO(status, lock_folder(call, fd, name.folder, err));
  if (unlink(name.path)) {
    /* A folder of that name is no object either. */
    if (errno != ENOENT && errno != EISDIR) {
      status = local_error(err, errno, "remove", name.path);
    }
    goto out;
  }
  status = base_fsync(fd, name.folder, err);
out:
  if (fd >= 0) close(fd);
  local_name_done(&name);
  return status;
}

static weir_status local_remove(void *state, const weir_call *call,
                                const char *const *keys, size_t n, weir_error *err) {
  for (size_t i = 0; i < n; i++) BASE_TRY(remove_one(state, call, keys[i], err));
  return WEIR_OK;
}

/* ---- the store ---- */

static void local_release(void *state) {
  local_store *store = state;
  for (size_t i = 0; i < BASE_COUNT(store->durable); i++) free(store->durable[i]);
  pthread_mutex_destroy(&store->mutex);
  free(store->root);
  free(store);
}

static weir_status local_create(const char *rest, const weir_options *options, void **out,
                                weir_error *err) {
  (void)options;
  size_t size = strlen(rest);
  while (size > 1 && rest[size - 1] == '/') size--;
  if (size == 0) {
    return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                          "an object store without a location; name a folder");
  }
  local_store *store = base_calloc(1, sizeof(*store), err);
  if (!store) return WEIR_E_NOMEM;
  weir_status status = base_mutex_init(&store->mutex, err);
  if (status) {
    free(store);
    return status;
  }
  /* Keys follow a slash, so "/" itself is the empty text. */
  store->root = base_strndup(rest, size == 1 && *rest == '/' ? 0 : size, err);
  if (!store->root) {
    local_release(store);
    return WEIR_E_NOMEM;
  }
  *out = store;
  return WEIR_OK;
}

const weir_object_ops object_local_ops = {.abi_version = WEIR_ABI_VERSION,
                                          .struct_size = sizeof(weir_object_ops),
                                          .scheme = "file",
                                          .create = local_create,
                                          .release = local_release,
                                          .put = local_put,
                                          .get = local_get,
                                          .head = local_head,
                                          .list = local_list,
                                          .remove = local_remove,
                                          .upload_create = local_upload_create,
                                          .upload_part = local_upload_part,
                                          .upload_complete = local_upload_complete,
                                          .upload_abort = local_upload_abort,
                                          .uploads_list = local_uploads_list};
