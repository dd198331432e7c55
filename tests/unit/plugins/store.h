/* SPDX-License-Identifier: Apache-2.0 */
/* A store of objects that holds none, for plugin.c. */
#include <weir/object.h>

static weir_status store_create(const char *rest, const weir_options *o, void **out,
                                weir_error *err) {
  (void)o, (void)err;
  *out = (void *)(uintptr_t)rest;
  return WEIR_OK;
}
static void store_release(void *store) {
  (void)store;
}
static weir_status store_put(void *store, const weir_call *call, const char *key,
                             const void *data, size_t size,
                             const weir_object_put_options *o, weir_object_info *out,
                             weir_error *err) {
  (void)store, (void)call, (void)key, (void)data, (void)size, (void)o, (void)out;
  (void)err;
  return WEIR_E_IO;
}
static weir_status store_get(void *store, const weir_call *call, const char *key,
                             uint64_t offset, size_t max, weir_bytes *out,
                             weir_object_info *info, weir_error *err) {
  (void)store, (void)call, (void)key, (void)offset, (void)max, (void)out, (void)info;
  (void)err;
  return WEIR_E_IO;
}
static weir_status store_head(void *store, const weir_call *call, const char *key,
                              weir_object_info *out, weir_error *err) {
  (void)store, (void)call, (void)key, (void)out, (void)err;
  return WEIR_E_IO;
}
static weir_status store_list(void *store, const weir_call *call, const char *prefix,
                              const char *after, uint32_t flags, weir_object_list_fn fn,
                              void *ctx, weir_error *err) {
  (void)store, (void)call, (void)prefix, (void)after, (void)flags, (void)fn, (void)ctx;
  (void)err;
  return WEIR_E_IO;
}
static weir_status store_remove(void *store, const weir_call *call,
                                const char *const *keys, size_t n, weir_error *err) {
  (void)store, (void)call, (void)keys, (void)n, (void)err;
  return WEIR_E_IO;
}
static weir_status store_upload_create(void *store, const weir_call *call,
                                       const char *key, weir_object_upload *upload,
                                       weir_error *err) {
  (void)store, (void)call, (void)key, (void)upload, (void)err;
  return WEIR_E_IO;
}
static weir_status store_upload_part(void *store, const weir_call *call, const char *key,
                                     const weir_object_upload *upload, uint32_t number,
                                     const void *data, size_t size, weir_object_part *out,
                                     weir_error *err) {
  (void)store, (void)call, (void)key, (void)upload, (void)number, (void)data, (void)size;
  (void)out, (void)err;
  return WEIR_E_IO;
}
static weir_status store_upload_complete(void *store, const weir_call *call,
                                         const char *key,
                                         const weir_object_upload *upload,
                                         const weir_object_part *parts, uint32_t n,
                                         uint32_t flags, weir_object_info *out,
                                         weir_error *err) {
  (void)store, (void)call, (void)key, (void)upload, (void)parts, (void)n, (void)flags;
  (void)out, (void)err;
  return WEIR_E_IO;
}
static weir_status store_upload_abort(void *store, const weir_call *call, const char *key,
                                      const char *id, weir_error *err) {
  (void)store, (void)call, (void)key, (void)id, (void)err;
  return WEIR_E_IO;
}
static weir_status store_uploads_list(void *store, const weir_call *call,
                                      const char *prefix, weir_object_uploads_fn fn,
                                      void *ctx, weir_error *err) {
  (void)store, (void)call, (void)prefix, (void)fn, (void)ctx, (void)err;
  return WEIR_E_IO;
}
static const weir_object_ops store_ops = {.abi_version = WEIR_ABI_VERSION,
                                          .struct_size = sizeof(weir_object_ops),
                                          .scheme = "hollow",
                                          .create = store_create,
                                          .release = store_release,
                                          .put = store_put,
                                          .get = store_get,
                                          .head = store_head,
                                          .list = store_list,
                                          .remove = store_remove,
                                          .upload_create = store_upload_create,
                                          .upload_part = store_upload_part,
                                          .upload_complete = store_upload_complete,
                                          .upload_abort = store_upload_abort,
                                          .uploads_list = store_uploads_list};
