/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Object stores: names that hold bytes, in a local folder or in an S3 bucket, behind one small table of verbs.
 * UNSTABLE until 1.0: used by weir's own connectors; may change without notice.
 *
 * A store stands at a location, "s3://bucket/prefix" or a folder ("/data/lake", "file:///data/lake"), and its
 * keys are relative to it. An object appears whole or not at all, and what a verb called done is durable.
 *
 * Keys are 1 to WEIR_OBJECT_MAX_KEY bytes of UTF-8. '/' stands between their segments; no segment is empty,
 * "." or "..". Any other character is allowed, control characters too. In a local store a key cannot be the folder
 * of another one, its last segment has at most 230 bytes and does not look like a temporary file of the store
 * (".NAME.<16 hex digits>.tmp"), and what lies behind a symbolic link to a folder is not listed.
 *
 * What came of a verb, for all of them:
 *
 *   outcome    status and flags of the error                what holds
 *   done       WEIR_OK                                      it is there (gone), durably
 *   conflict   WEIR_E_EXISTS                                IF_ABSENT: another's object has that key; nothing changed
 *              WEIR_E_CONFLICT                              if_match: the object is not the one named; nothing changed
 *   missing    WEIR_E_NOT_FOUND                             no such object, upload, bucket or folder
 *   denied     WEIR_E_IO, vendor_code 401, 403 or EACCES    nothing changed. Flagged retriable, since access may
 *                                                           return: nothing is to be given up for it in mid run
 *   throttled  WEIR_E_IO, vendor_code 429 or 503            nothing changed; retriable, and slower
 *   not done   any other without WEIR_ERR_IN_DOUBT          nothing changed; WEIR_ERR_RETRIABLE: may succeed later
 *   unknown    any with WEIR_ERR_IN_DOUBT                   it may be done, now or later: look it up, or do the very
 *                                                           same under a condition that fails if the first one lands
 *
 * vendor_code is the HTTP status of an answer, errno of the operating system, 0 without either. The store repeats
 * by itself what may be repeated, with growing, random pauses, until the call's deadline (without one: a
 * minute). Its repeats of a conditional verb know their own work: one that meets the object that its first try
 * left is 'done', and only another's is a conflict. Reads have no 'unknown'.
 *
 * Every verb may be called by any number of threads at once, looks at the deadline and the cancel flag of its
 * call (NULL: none), and writes its out parameters on success only.
 */
#ifndef WEIR_OBJECT_H
#define WEIR_OBJECT_H

#include <stddef.h>
#include <weir/bytes.h>
#include <weir/call.h>
#include <weir/options.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_OBJECT_MAX_KEY 1024
#define WEIR_OBJECT_ETAG_SIZE 128    /* with its NUL */
#define WEIR_OBJECT_OWNER_SIZE 256   /* with its NUL */
#define WEIR_OBJECT_UPLOAD_SIZE 1024 /* with its NUL */

/* Rows for the option table of whoever opens stores: what an s3:// location takes besides its name. Absent
 * credentials are those of the environment (AWS_ACCESS_KEY_ID and so on). Proxies are taken from it, too. */
/* clang-format off */
#define WEIR_OBJECT_OPTIONS                                                                                   \
  {"s3.endpoint", WEIR_OPT_STRING, 0, NULL, 0, 0, NULL,                                                       \
   "Address of an S3 server that is not AWS's, `https://host:port`; else AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL"}, \
  {"s3.region", WEIR_OPT_STRING, 0, NULL, 0, 0, NULL,                                                         \
   "Region that requests are signed for; else AWS_REGION, or us-east-1"},                      \
  {"s3.access_key", WEIR_OPT_STRING, 0, NULL, 0, 0, NULL, "Access key, with `s3.secret_key`"},                \
  {"s3.secret_key", WEIR_OPT_STRING, WEIR_OPT_SECRET, NULL, 0, 0, NULL, "Secret key"},                        \
  {"s3.session_token", WEIR_OPT_STRING, WEIR_OPT_SECRET, NULL, 0, 0, NULL, "Session token of temporary keys"}, \
  {"s3.path_style", WEIR_OPT_BOOL, 0, NULL, 0, 0, NULL,                                                       \
   "Whether the bucket is named in the path instead of the host; by default true with an endpoint, else false"}, \
  {"s3.ca_file", WEIR_OPT_PATH, 0, NULL, 0, 0, NULL,                                                          \
   "PEM file of the authorities that may vouch for the server; else the system's"}
/* clang-format on */

typedef struct weir_object_info {
  uint64_t size;
  int64_t modified_ns; /* since 1970, by the store's own clock; often whole seconds */
  /* Changes when the object does; opaque. */
  char etag[WEIR_OBJECT_ETAG_SIZE];
  /* As it was put; "" when nothing was said, and always in lists. A local store keeps none. */
  char owner[WEIR_OBJECT_OWNER_SIZE];
} weir_object_info;

enum {
  WEIR_OBJECT_IF_ABSENT =
      1, /* conflict when the key is taken; else what is there is replaced */
};

typedef struct weir_object_put_options {
  uint32_t flags; /* WEIR_OBJECT_IF_ABSENT */
  const char
      *if_match; /* etag of the object to replace, or NULL; not together with IF_ABSENT */
  const char *owner; /* printable ASCII, kept with the object; or NULL */
} weir_object_put_options;

/* An upload in parts. All parts but the last have part_size bytes, at least 5 MiB and at most 5 GiB; at most
 * 10,000 of them. Whoever has these fields, in another process too, may go on with it. */
typedef struct weir_object_upload {
  char id[WEIR_OBJECT_UPLOAD_SIZE]; /* the store's name for it */
  uint64_t part_size;
  char owner
      [WEIR_OBJECT_OWNER_SIZE]; /* distinct for every upload, so that its object is known */
} weir_object_upload;

/* A part that is there. Opaque but for size. */
typedef struct weir_object_part {
  uint64_t size;
  uint32_t crc32c;
  char etag[WEIR_OBJECT_ETAG_SIZE];
} weir_object_part;

enum {
  WEIR_OBJECT_SHALLOW =
      1, /* folders below the prefix are named once, as "folder/" with size 0, not entered */
};

/* One name of a list, relative to the store. Any status but WEIR_OK ends the list with it; WEIR_E_ENDED ends it
 * with WEIR_OK. It must not call the store. */
typedef weir_status (*weir_object_list_fn)(void *ctx, const char *key,
                                           const weir_object_info *info, weir_error *err);
/* One unfinished upload. */
typedef weir_status (*weir_object_uploads_fn)(void *ctx, const char *key, const char *id,
                                              int64_t initiated_ns, weir_error *err);

/* The table of verbs that a kind of store implements; each as the function of that name below, which checks the
 * arguments before it calls the entry. All are required. */
typedef struct weir_object_ops {
  uint32_t abi_version, struct_size;
  const char *scheme; /* "s3" for locations that begin with s3:// */
  /* `rest` is the location behind "scheme://". No I/O. options may be NULL. */
  weir_status (*create)(const char *rest, const weir_options *options, void **out,
                        weir_error *err);
  void (*release)(void *store);
  weir_status (*put)(void *store, const weir_call *call, const char *key,
                     const void *data, size_t size,
                     const weir_object_put_options *options, weir_object_info *out,
                     weir_error *err);
  weir_status (*get)(void *store, const weir_call *call, const char *key, uint64_t offset,
                     size_t max, weir_bytes *out, weir_object_info *info,
                     weir_error *err);
  weir_status (*head)(void *store, const weir_call *call, const char *key,
                      weir_object_info *out, weir_error *err);
  weir_status (*list)(void *store, const weir_call *call, const char *prefix,
                      const char *after, uint32_t flags, weir_object_list_fn fn,
                      void *ctx, weir_error *err);
  weir_status (*remove)(void *store, const weir_call *call, const char *const *keys,
                        size_t n, weir_error *err);
  weir_status (*upload_create)(void *store, const weir_call *call, const char *key,
                               weir_object_upload *upload, weir_error *err);
  weir_status (*upload_part)(void *store, const weir_call *call, const char *key,
                             const weir_object_upload *upload, uint32_t number,
                             const void *data, size_t size, weir_object_part *out,
                             weir_error *err);
  weir_status (*upload_complete)(void *store, const weir_call *call, const char *key,
                                 const weir_object_upload *upload,
                                 const weir_object_part *parts, uint32_t n,
                                 uint32_t flags, weir_object_info *out, weir_error *err);
  weir_status (*upload_abort)(void *store, const weir_call *call, const char *key,
                              const char *id, weir_error *err);
  weir_status (*uploads_list)(void *store, const weir_call *call, const char *prefix,
                              weir_object_uploads_fn fn, void *ctx, weir_error *err);
} weir_object_ops;

typedef struct weir_object_store weir_object_store;

/* Opens the store at `location`, without I/O: nothing needs to be there yet. Other schemes than file:// are looked
 * for in the shared object weir-<scheme>.so, as connectors are. `options`, which may be NULL, has the rows of
 * WEIR_OBJECT_OPTIONS and must live as long as the store. */
WEIR_API weir_status weir_object_store_open(const char *location,
                                            const weir_options *options,
                                            weir_object_store **out, weir_error *err);
/* NULL is a no-op. No verb may be under way. */
WEIR_API void weir_object_store_free(weir_object_store *store);
/* As opened, for messages. */
WEIR_API const char *weir_object_store_location(const weir_object_store *store);

/* Puts an object of `size` bytes (at most 5 GiB). options and out may be NULL. */
WEIR_API weir_status weir_object_put(weir_object_store *store, const weir_call *call,
                                     const char *key, const void *data, size_t size,
                                     const weir_object_put_options *options,
                                     weir_object_info *out, weir_error *err);

/* At most `max` bytes from `offset` on, in new memory; fewer mean that the object ends there, and none that it does
 * not reach beyond offset. info, which may be NULL, is that of the whole object, so that a reader of a part knows
 * its size. Both are of one version of the object. */
WEIR_API weir_status weir_object_get(weir_object_store *store, const weir_call *call,
                                     const char *key, uint64_t offset, size_t max,
                                     weir_bytes *out, weir_object_info *info,
                                     weir_error *err);

WEIR_API weir_status weir_object_head(weir_object_store *store, const weir_call *call,
                                      const char *key, weir_object_info *out,
                                      weir_error *err);

/* Calls fn for each object whose key begins with `prefix` ("" all; it may end within a segment) and comes behind
 * `after` (NULL: all), ascending by the bytes of the keys. Nothing there is an empty list. Objects that come or go
 * meanwhile may be in it or not. With WEIR_OBJECT_SHALLOW a local store names empty folders, too. */
WEIR_API weir_status weir_object_list(weir_object_store *store, const weir_call *call,
                                      const char *prefix, const char *after,
                                      uint32_t flags, weir_object_list_fn fn, void *ctx,
                                      weir_error *err);

/* Removes n objects; one that is not there is fine. After a failure some are gone; all may be removed again. */
WEIR_API weir_status weir_object_remove(weir_object_store *store, const weir_call *call,
                                        const char *const *keys, size_t n,
                                        weir_error *err);

/* Begins an upload; part_size and owner of *upload are the caller's, id is filled in. When the answer is lost an
 * empty upload may stay, which uploads_list finds by the key; so it is never in doubt. */
WEIR_API weir_status weir_object_upload_create(weir_object_store *store,
                                               const weir_call *call, const char *key,
                                               weir_object_upload *upload,
                                               weir_error *err);

/* Puts part `number`, from 1; again is allowed, the last one counts. Parts may be put by several threads at once. */
WEIR_API weir_status weir_object_upload_part(weir_object_store *store,
                                             const weir_call *call, const char *key,
                                             const weir_object_upload *upload,
                                             uint32_t number, const void *data,
                                             size_t size, weir_object_part *out,
                                             weir_error *err);

/* Makes the object of parts 1 to n. Idempotent, for any owner at any time: when the upload is gone and the object is
 * there with this upload's owner and size, it is done; with another's, a conflict (WEIR_E_EXISTS); when both are
 * gone, missing and in doubt, since an answer may be older than the question. flags: WEIR_OBJECT_IF_ABSENT. out may
 * be NULL. A local store, which keeps no owners, goes by the size. */
WEIR_API weir_status weir_object_upload_complete(weir_object_store *store,
                                                 const weir_call *call, const char *key,
                                                 const weir_object_upload *upload,
                                                 const weir_object_part *parts,
                                                 uint32_t n, uint32_t flags,
                                                 weir_object_info *out, weir_error *err);

/* Gives the upload up and frees its parts; one that is gone is fine. A part that is on its way may outlive it. */
WEIR_API weir_status weir_object_upload_abort(weir_object_store *store,
                                              const weir_call *call, const char *key,
                                              const char *id, weir_error *err);

/* Calls fn for each unfinished upload whose key begins with `prefix`. The temporary file of a put that was killed
 * is one, too, in a local store. */
WEIR_API weir_status weir_object_uploads_list(weir_object_store *store,
                                              const weir_call *call, const char *prefix,
                                              weir_object_uploads_fn fn, void *ctx,
                                              weir_error *err);

/* Whether the store keeps conditions: puts two objects under one new key below `prefix` ("" or "a/b/") with
 * IF_ABSENT, a third with a wrong if_match, and removes what it put. WEIR_E_ADMISSION names what the store does
 * not keep: nothing can be published exactly once through it. */
WEIR_API weir_status weir_object_probe(weir_object_store *store, const weir_call *call,
                                       const char *prefix, weir_error *err);

#ifdef __cplusplus
}
#endif
#endif
