/* SPDX-License-Identifier: Apache-2.0 */
/* Every verb's arguments, checked before a store sees them; the probe. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "object/object.h"

struct weir_object_store {
  const weir_object_ops *ops;
  void *state;
  char *location;
};

#define MAX_OBJECT ((uint64_t)5 << 30) /* of one PUT or part, S3's limit */
#define MIN_PART ((uint64_t)5 << 20)
#define MAX_PARTS 10000u

weir_status object_ops_check(const weir_object_ops *ops, const char *where,
                             weir_error *err) {
  const struct {
    const char *name;
    bool there;
  } entries[] = {{"scheme", ops->scheme},
                 {"create", ops->create},
                 {"release", ops->release},
                 {"put", ops->put},
                 {"get", ops->get},
                 {"head", ops->head},
                 {"list", ops->list},
                 {"remove", ops->remove},
                 {"upload_create", ops->upload_create},
                 {"upload_part", ops->upload_part},
                 {"upload_complete", ops->upload_complete},
                 {"upload_abort", ops->upload_abort},
                 {"uploads_list", ops->uploads_list}};
  if (ops->struct_size < sizeof(*ops)) {
    return weir_error_set(err, WEIR_E_NOT_IMPLEMENTED, 0,
                          "%s: its table of an object store has %" PRIu32
                          " bytes, but %zu are needed; build it against this weir",
                          where, ops->struct_size, sizeof(*ops));
  }
  for (size_t i = 0; i < BASE_COUNT(entries); i++) {
    if (entries[i].there) continue;
    return weir_error_set(err, WEIR_E_NOT_IMPLEMENTED, 0,
                          "%s: its object store lacks the entry %s", where,
                          entries[i].name);
  }
  return WEIR_OK;
}

weir_status object_store_new(const weir_object_ops *ops, const char *location,
                             const char *rest, const weir_options *options,
                             weir_object_store **out, weir_error *err) {
  weir_object_store *store = base_calloc(1, sizeof(*store), err);
  if (!store) return WEIR_E_NOMEM;
  weir_status status = WEIR_OK;
  store->location = base_strdup(location, err);
  if (!store->location) {
    status = WEIR_E_NOMEM;
    goto out;
  }
  BASE_GOTO(status, ops->create(rest, options, &store->state, err));
  store->ops = ops;
  *out = store;
  return WEIR_OK;
out:
  weir_object_store_free(store);
  return status;
}

void weir_object_store_free(weir_object_store *store) {
  if (!store) return;
  if (store->ops) store->ops->release(store->state);
  free(store->location);
  free(store);
}

const char *weir_object_store_location(const weir_object_store *store) {
  return store->location;
}

/* ---- checks ---- */

static weir_status refuse_key(const char *key, const char *why, weir_error *err) {
  return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                        "'%.200s' cannot be an object's key: %s", key, why);
}

static weir_status check_key(const char *key, weir_error *err) {
  size_t size = strlen(key);
  if (size == 0) return refuse_key(key, "it is empty", err);
  if (size > WEIR_OBJECT_MAX_KEY) {
    return refuse_key(key, "it has more than 1024 bytes", err);
  }
  if (!base_utf8_valid(key, size)) return refuse_key(key, "it is not UTF-8", err);
  for (const char *segment = key;; segment++) {
    size_t n = strcspn(segment, "/");
    if (n == 0) return refuse_key(key, "a segment of it is empty", err);
    if (segment[0] == '.' && (n == 1 || (n == 2 && segment[1] == '.'))) {
      return refuse_key(key, "a segment of it is '.' or '..'", err);
    }
    segment += n;
    if (!*segment) return WEIR_OK;
  }
}

/* A prefix may end within a segment or behind a '/'. */
static weir_status check_prefix(const char *prefix, weir_error *err) {
  char text[WEIR_OBJECT_MAX_KEY + 2];
  size_t size = strlen(prefix);
  if (size == 0) return WEIR_OK;
  if (size > WEIR_OBJECT_MAX_KEY) return check_key(prefix, err);
  memcpy(text, prefix, size);
  text[size] = '_'; /* so that its last segment is that of some key */
  text[size + 1] = 0;
  if (size == WEIR_OBJECT_MAX_KEY) text[size] = 0;
  return check_key(text, err);
}

static weir_status check_owner(const char *owner, weir_error *err) {
  size_t size = owner ? strlen(owner) : 0;
  if (size >= WEIR_OBJECT_OWNER_SIZE) {
    return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                          "the owner of an object has %zu bytes; at most %d are kept",
                          size, WEIR_OBJECT_OWNER_SIZE - 1);
  }
  for (size_t i = 0; i < size; i++) {
    if (owner[i] > ' ' && owner[i] < 0x7f) continue;
    return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                          "byte %zu of an object's owner is not printable ASCII", i);
  }
  return WEIR_OK;
}

static weir_status check_size(const char *key, uint64_t size, weir_error *err) {
  if (size <= MAX_OBJECT) return WEIR_OK;
  return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                        "'%s': %" PRIu64
                        " bytes are too many for one put; 5 GiB are the most, larger "
                        "objects go up in parts",
                        key, size);
}

static weir_status check_upload(const char *key, const weir_object_upload *upload,
                                weir_error *err) {
  BASE_TRY(check_key(key, err));
  BASE_TRY(check_owner(upload->owner, err));
  if (upload->part_size >= MIN_PART && upload->part_size <= MAX_OBJECT) return WEIR_OK;
  return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                        "'%s': parts of %" PRIu64
                        " bytes; from 5 MiB to 5 GiB are allowed",
                        key, upload->part_size);
}

static weir_status check_id(const char *key, const char *id, weir_error *err) {
  if (*id && strlen(id) < WEIR_OBJECT_UPLOAD_SIZE) return WEIR_OK;
  return weir_error_set(err, WEIR_E_INVALID_STATE, 0, "'%s': an upload without an id",
                        key);
}

/* ---- verbs ---- */

weir_status weir_object_put(weir_object_store *store, const weir_call *call,
                            const char *key, const void *data, size_t size,
                            const weir_object_put_options *options, weir_object_info *out,
                            weir_error *err) {
  static const weir_object_put_options none = {0};
  weir_object_info info = {0};
  if (!options) options = &none;
  BASE_TRY(check_key(key, err));
  BASE_TRY(check_owner(options->owner, err));
  BASE_TRY(check_size(key, size, err));
  if ((options->flags & WEIR_OBJECT_IF_ABSENT) && options->if_match) {
    return weir_error_set(err, WEIR_E_INVALID_STATE, 0,
                          "'%s': put if absent and if it matches exclude each other",
                          key);
  }
  BASE_TRY(weir_call_check(call, "put of an object", err));
  BASE_TRY(store->ops->put(store->state, call, key, data, size, options, &info, err));
  if (out) *out = info;
  return WEIR_OK;
}

weir_status weir_object_get(weir_object_store *store, const weir_call *call,
                            const char *key, uint64_t offset, size_t max, weir_bytes *out,
                            weir_object_info *info, weir_error *err) {
  weir_object_info whole = {0};
  BASE_TRY(check_key(key, err));
  if (max == 0 || offset > INT64_MAX - (uint64_t)max) {
    return weir_error_set(err, WEIR_E_INVALID_STATE, 0,
                          "'%s': no range: %zu bytes from %" PRIu64, key, max, offset);
  }
  BASE_TRY(weir_call_check(call, "get of an object", err));
  BASE_TRY(store->ops->get(store->state, call, key, offset, max, out, &whole, err));
  if (info) *info = whole;
  return WEIR_OK;
}

weir_status weir_object_head(weir_object_store *store, const weir_call *call,
                             const char *key, weir_object_info *out, weir_error *err) {
  BASE_TRY(check_key(key, err));
  BASE_TRY(weir_call_check(call, "head of an object", err));
  return store->ops->head(store->state, call, key, out, err);
}

weir_status weir_object_list(weir_object_store *store, const weir_call *call,
                             const char *prefix, const char *after, uint32_t flags,
                             weir_object_list_fn fn, void *ctx, weir_error *err) {
  BASE_TRY(check_prefix(prefix, err));
  BASE_TRY(check_prefix(after ? after : "", err));
  BASE_TRY(weir_call_check(call, "list of objects", err));
  weir_status status = store->ops->list(store->state, call, prefix, after ? after : "",
                                        flags, fn, ctx, err);
  return status == WEIR_E_ENDED ? WEIR_OK : status;
}

weir_status weir_object_remove(weir_object_store *store, const weir_call *call,
                               const char *const *keys, size_t n, weir_error *err) {
  for (size_t i = 0; i < n; i++) BASE_TRY(check_key(keys[i], err));
  BASE_TRY(weir_call_check(call, "removal of objects", err));
  return n ? store->ops->remove(store->state, call, keys, n, err) : WEIR_OK;
}

weir_status weir_object_upload_create(weir_object_store *store, const weir_call *call,
                                      const char *key, weir_object_upload *upload,
                                      weir_error *err) {
  BASE_TRY(check_upload(key, upload, err));
  BASE_TRY(weir_call_check(call, "begin of an upload", err));
  return store->ops->upload_create(store->state, call, key, upload, err);
}

weir_status weir_object_upload_part(weir_object_store *store, const weir_call *call,
                                    const char *key, const weir_object_upload *upload,
                                    uint32_t number, const void *data, size_t size,
                                    weir_object_part *out, weir_error *err) {
  BASE_TRY(check_upload(key, upload, err));
  BASE_TRY(check_id(key, upload->id, err));
  if (number < 1 || number > MAX_PARTS || size == 0 || size > upload->part_size) {
    return weir_error_set(err, WEIR_E_INVALID_STATE, 0,
                          "'%s': part %" PRIu32
                          " of %zu bytes; there are parts 1 to %u of up to %" PRIu64
                          " bytes",
                          key, number, size, MAX_PARTS, upload->part_size);
  }
  BASE_TRY(weir_call_check(call, "part of an upload", err));
  return store->ops->upload_part(store->state, call, key, upload, number, data, size, out,
                                 err);
}

weir_status weir_object_upload_complete(weir_object_store *store, const weir_call *call,
                                        const char *key, const weir_object_upload *upload,
                                        const weir_object_part *parts, uint32_t n,
                                        uint32_t flags, weir_object_info *out,
                                        weir_error *err) {
  weir_object_info info = {0};
  BASE_TRY(check_upload(key, upload, err));
  BASE_TRY(check_id(key, upload->id, err));
  if (n < 1 || n > MAX_PARTS) {
    return weir_error_set(err, WEIR_E_INVALID_STATE, 0,
                          "'%s': an upload of %" PRIu32 " parts; 1 to %u are allowed",
                          key, n, MAX_PARTS);
  }
  for (uint32_t i = 0; i < n; i++) {
    bool last = i + 1 == n;
    if (last ? parts[i].size > 0 && parts[i].size <= upload->part_size
             : parts[i].size == upload->part_size) {
      continue;
    }
    return weir_error_set(err, WEIR_E_INVALID_STATE, 0,
                          "'%s': part %" PRIu32 " has %" PRIu64
                          " bytes; all but the last have %" PRIu64,
                          key, i + 1, parts[i].size, upload->part_size);
  }
  BASE_TRY(weir_call_check(call, "end of an upload", err));
  BASE_TRY(store->ops->upload_complete(store->state, call, key, upload, parts, n, flags,
                                       &info, err));
  if (out) *out = info;
  return WEIR_OK;
}

weir_status weir_object_upload_abort(weir_object_store *store, const weir_call *call,
                                     const char *key, const char *id, weir_error *err) {
  BASE_TRY(check_key(key, err));
  BASE_TRY(check_id(key, id, err));
  BASE_TRY(weir_call_check(call, "abort of an upload", err));
  return store->ops->upload_abort(store->state, call, key, id, err);
}

weir_status weir_object_uploads_list(weir_object_store *store, const weir_call *call,
                                     const char *prefix, weir_object_uploads_fn fn,
                                     void *ctx, weir_error *err) {
  BASE_TRY(check_prefix(prefix, err));
  BASE_TRY(weir_call_check(call, "list of uploads", err));
  weir_status status = store->ops->uploads_list(store->state, call, prefix, fn, ctx, err);
  return status == WEIR_E_ENDED ? WEIR_OK : status;
}

/* ---- the probe ---- */

static weir_status probe_refuse(const weir_object_store *store, const char *what,
                                weir_error *err) {
  return weir_error_set(
      err, WEIR_E_ADMISSION, 0,
      "%s does not keep conditions: %s; two writers could overwrite each other's commits "
      "there, so nothing can be published exactly once. Use a store that supports "
      "If-None-Match and If-Match on PUT",
      store->location, what);
}

static weir_status probe_key(weir_object_store *store, const weir_call *call,
                             const char *key, weir_error *err) {
  weir_object_put_options options = {.flags = WEIR_OBJECT_IF_ABSENT};
  weir_error why = {0};
  weir_object_info info = {0};
  BASE_TRY(weir_object_put(store, call, key, "weir probes", 11, &options, &info, err));
  weir_status status =
      weir_object_put(store, call, key, "weir probed", 11, &options, NULL, &why);
  if (!status) return probe_refuse(store, "a put with If-None-Match overwrote", err);
  if (status == WEIR_E_EXISTS) {
    /* Last but one digit or letter changed: well-formed, and not its etag. */
    size_t at = strlen(info.etag) / 2;
    info.etag[at] = info.etag[at] == '0' ? '1' : '0';
    options = (weir_object_put_options){.if_match = info.etag};
    status = weir_object_put(store, call, key, "weir probed", 11, &options, NULL, &why);
    if (!status) return probe_refuse(store, "a put with If-Match overwrote", err);
    if (status == WEIR_E_CONFLICT) return WEIR_OK;
  }
  if (status == WEIR_E_NOT_IMPLEMENTED) return probe_refuse(store, why.message, err);
  if (err) *err = why;
  return status;
}

weir_status weir_object_probe(weir_object_store *store, const weir_call *call,
                              const char *prefix, weir_error *err) {
  uint8_t nonce[8];
  char hex[2 * sizeof(nonce) + 1];
  BASE_TRY(base_random(nonce, sizeof(nonce), err));
  weir_hex_encode(nonce, sizeof(nonce), hex);
  char *key = base_format(err, "%sweir-probe-%s", prefix, hex);
  if (!key) return WEIR_E_NOMEM;
  const char *keys[] = {key};
  weir_error why = {0};
  weir_status status = probe_key(store, call, key, &why);
  weir_status removed = weir_object_remove(store, call, keys, 1, status ? NULL : &why);
  if (!status) status = removed;
  if (status && err) *err = why;
  free(key);
  return status;
}
