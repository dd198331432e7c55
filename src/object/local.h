/* SPDX-License-Identifier: Apache-2.0 */
/* The store in a folder, between its files. */
#ifndef OBJECT_LOCAL_H
#define OBJECT_LOCAL_H

#include <sys/stat.h>

#include "object/object.h"

#define LOCAL_NONCE_SIZE 17 /* 16 hex digits and NUL; an upload's id, too */

typedef struct local_store {
  char *root;
  pthread_mutex_t mutex;
  char *durable[8]; /* with the mutex: folders known to be durable, a ring */
  size_t next;
} local_store;

/* An object's name on disk. `temp` lies beside it, so that it can be linked to. */
typedef struct local_name {
  char *folder, *path, *temp;
} local_name;

/* As base_io_error; what may pass by itself is flagged retriable. */
weir_status local_error(weir_error *err, int errnum, const char *operation,
                        const char *path);
void local_info(const struct stat *st, weir_object_info *out);
weir_status local_random(char out[LOCAL_NONCE_SIZE], weir_error *err);

/* nonce NULL: without temp. */
weir_status local_name_init(const local_store *store, const char *key, const char *nonce,
                            local_name *out, weir_error *err);
void local_name_done(local_name *name); /* zeroed is fine */
/* Whether an entry of a folder is a temporary file: then *size is that of NAME, behind the first dot, and *nonce
 * its 16 digits. */
bool local_temp_parse(const char *entry, size_t *size, const char **nonce);

/* Makes the folder, and durable that it is there. */
weir_status local_folder_ready(local_store *store, const char *folder, weir_error *err);
/* Forgets that a folder is there: it was not. */
void local_folder_gone(local_store *store, const char *folder);

/* Gives the synced temporary file its name under the options' condition, drops the temporary one and syncs the
 * folder. A failure before the name is given leaves the temporary file. */
weir_status local_publish(const weir_call *call, const local_name *name,
                          const weir_object_put_options *options, weir_object_info *out,
                          weir_error *err);

weir_status local_list(void *state, const weir_call *call, const char *prefix,
                       const char *after, uint32_t flags, weir_object_list_fn fn,
                       void *ctx, weir_error *err);
weir_status local_upload_create(void *state, const weir_call *call, const char *key,
                                weir_object_upload *upload, weir_error *err);
weir_status local_upload_part(void *state, const weir_call *call, const char *key,
                              const weir_object_upload *upload, uint32_t number,
                              const void *data, size_t size, weir_object_part *out,
                              weir_error *err);
weir_status local_upload_complete(void *state, const weir_call *call, const char *key,
                                  const weir_object_upload *upload,
                                  const weir_object_part *parts, uint32_t n,
                                  uint32_t flags, weir_object_info *out, weir_error *err);
weir_status local_upload_abort(void *state, const weir_call *call, const char *key,
                               const char *id, weir_error *err);
weir_status local_uploads_list(void *state, const weir_call *call, const char *prefix,
                               weir_object_uploads_fn fn, void *ctx, weir_error *err);

#endif
