/* SPDX-License-Identifier: Apache-2.0 */
/* Uploads in parts: the temporary file of the object, with each part at its place and synced. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "object/local.h"

/* The names of an upload; its id becomes part of a path. */
static weir_status upload_name(const local_store *store, const char *key, const char *id,
                               local_name *out, weir_error *err) {
  if (strlen(id) != LOCAL_NONCE_SIZE - 1 ||
      strspn(id, "0123456789abcdef") != LOCAL_NONCE_SIZE - 1) {
    return weir_error_set(err, WEIR_E_INVALID_STATE, 0,
                          "'%s': '%.40s' is no upload of a folder; its id has 16 hex "
                          "digits",
                          key, id);
  }
  return local_name_init(store, key, id, out, err);
}

static weir_status create_temp(local_store *store, const local_name *name,
                               weir_error *err) {
  BASE_TRY(local_folder_ready(store, name->folder, err));
  int fd = open(name->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) return local_error(err, errno, "create", name->temp);
  close(fd);
  weir_status status = base_sync_dir(name->folder, err);
  if (status) unlink(name->temp);
  return status;
}

weir_status local_upload_create(void *state, const weir_call *call, const char *key,
                                weir_object_upload *upload, weir_error *err) {
  (void)call;
  local_store *store = state;
  local_name name = {0};
  char nonce[LOCAL_NONCE_SIZE];
  BASE_TRY(local_random(nonce, err));
  BASE_TRY(local_name_init(store, key, nonce, &name, err));
  weir_status status = create_temp(store, &name, err);
  if (status == WEIR_E_NOT_FOUND) {
    local_folder_gone(store, name.folder);
    status = create_temp(store, &name, err);
  }
  if (!status) memcpy(upload->id, nonce, sizeof(nonce));
  local_name_done(&name);
  return status;
}

static weir_status write_at(int fd, const char *path, const void *data, size_t size,
                            uint64_t offset, weir_error *err) {
  const uint8_t *p = data;
  while (size) {
    ssize_t n = pwrite(fd, p, size, (off_t)offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return local_error(err, errno, "write", path);
    p += n;
    offset += (uint64_t)n;
    size -= (size_t)n;
  }
  return WEIR_OK;
}

weir_status local_upload_part(void *state, const weir_call *call, const char *key,
                              const weir_object_upload *upload, uint32_t number,
                              const void *data, size_t size, weir_object_part *out,
                              weir_error *err) {
  (void)call;
  local_name name = {0};
  BASE_TRY(upload_name(state, key, upload->id, &name, err));
  weir_status status = WEIR_OK;
  int fd = open(name.temp, O_WRONLY | O_CLOEXEC);
  if (fd < 0) {
    status = local_error(err, errno, "open", name.temp);
    goto out;
  }
  BASE_GOTO(status,
            write_at(fd, name.temp, data, size, (number - 1) * upload->part_size, err));
  status = base_fdatasync(fd, name.temp, err);
  /* The kernel may have dropped the pages: nobody may take this file for whole. */
  if (status) unlink(name.temp);
  if (!status) *out = (weir_object_part){.size = size};
out:
  if (fd >= 0) close(fd);
  local_name_done(&name);
  return status;
}

/* The upload is gone: its object tells whether it was completed. */
static weir_status settle(const local_name *name, uint64_t size, weir_object_info *out,
                          weir_error *err) {
  struct stat st;
  if (stat(name->path, &st)) {
    if (errno != ENOENT && errno != ENOTDIR) {
      return local_error(err, errno, "look at", name->path);
    }
    return weir_error_set(err, WEIR_E_NOT_FOUND, WEIR_ERR_IN_DOUBT,
                          "neither '%s' nor its unfinished upload is there", name->path);
  }
  local_info(&st, out);
  if (out->size == size) return base_sync_dir(name->folder, err);
  return weir_error_set(err, WEIR_E_EXISTS, 0,
                        "'%s' has %" PRIu64 " bytes instead of the upload's %" PRIu64
                        ": it is another writer's",
                        name->path, out->size, size);
}

static weir_status complete(const weir_call *call, const local_name *name, uint64_t size,
                            uint32_t flags, weir_object_info *out, weir_error *err) {
  weir_object_put_options options = {.flags = flags};
  struct stat temp, final;
  if (stat(name->temp, &temp)) {
    return errno == ENOENT ? settle(name, size, out, err)
                           : local_error(err, errno, "look at", name->temp);
  }
  if ((uint64_t)temp.st_size != size) {
    return weir_error_set(err, WEIR_E_CORRUPT, 0,
                          "'%s' has %" PRIu64 " bytes instead of %" PRIu64
                          ": parts of the upload are missing",
                          name->temp, (uint64_t)temp.st_size, size);
  }
  if (stat(name->path, &final) == 0 && final.st_dev == temp.st_dev &&
      final.st_ino == temp.st_ino) {
    unlink(name->temp); /* killed between the two, an earlier owner left both names */
    return settle(name, size, out, err);
  }
  weir_status status = local_publish(call, name, &options, out, err);
  /* Another owner of the upload was faster. */
  return status == WEIR_E_NOT_FOUND ? settle(name, size, out, err) : status;
}

weir_status local_upload_complete(void *state, const weir_call *call, const char *key,
                                  const weir_object_upload *upload,
                                  const weir_object_part *parts, uint32_t n,
                                  uint32_t flags, weir_object_info *out,
                                  weir_error *err) {
  local_name name = {0};
  uint64_t size = (n - 1) * upload->part_size + parts[n - 1].size;
  BASE_TRY(upload_name(state, key, upload->id, &name, err));
  weir_status status = complete(call, &name, size, flags, out, err);
  local_name_done(&name);
  return status;
}

weir_status local_upload_abort(void *state, const weir_call *call, const char *key,
                               const char *id, weir_error *err) {
  (void)call;
  local_name name = {0};
  BASE_TRY(upload_name(state, key, id, &name, err));
  weir_status status = WEIR_OK;
  if (unlink(name.temp) && errno != ENOENT && errno != ENOTDIR) {
    status = local_error(err, errno, "remove", name.temp);
  }
  local_name_done(&name);
  return status;
}
