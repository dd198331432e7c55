/* SPDX-License-Identifier: Apache-2.0 */
/* The S3 store, between its files. */
#ifndef OBJECT_S3_S3_H
#define OBJECT_S3_S3_H

#include <curl/curl.h>

#include "object/object.h"
#include "object/s3/sign.h"

#define S3_NONCE_SIZE 33
#define S3_CODE_SIZE 64

typedef struct s3_store {
  char *base;   /* "https://host:port", what precedes the path of a URL */
  char *host;   /* the header */
  char *bucket; /* "/bucket" with path style, else "" */
  char *prefix; /* of all keys: "" or ending with '/' */
  char *name;   /* "s3://bucket/prefix", for messages */
  char *access_key, *secret_key, *session_token, *region;
  char *ca_file; /* NULL: the system's */
  pthread_mutex_t mutex;
  CURL *idle[16]; /* with the mutex: connections to use again */
  size_t n_idle;
} s3_store;

/* One request, sent as often as it takes. */
typedef struct s3_ask {
  const char *verb;   /* for messages: "put" */
  const char *method; /* GET, HEAD, PUT, POST, DELETE */
  const char *key;    /* relative to the store; NULL: the bucket itself */
  s3_pair query[6];
  size_t n_query;
  s3_pair headers[6]; /* names in lower case */
  size_t n_headers;
  const void *body;
  size_t size;
  size_t max; /* bytes of the answer's body that are taken */
} s3_ask;

typedef struct s3_answer {
  long status; /* 2xx, or one that no repeat can change */
  base_buf body;
  char code[S3_CODE_SIZE]; /* of an error's document, or "" */
  weir_object_info info;   /* from the headers */
  char nonce[S3_NONCE_SIZE];
  bool doubt; /* an earlier try of it may have been done */
} s3_answer;

/* Sends it until an answer is worth looking at, the call is over, or there is nothing to hope for. On WEIR_OK
 * the caller looks at answer->status. Done with s3_answer_done in any case. */
weir_status s3_send(s3_store *store, const weir_call *call, const s3_ask *ask,
                    s3_answer *answer, weir_error *err);
void s3_answer_done(s3_answer *answer);
/* Sets the error that an answer which is no success stands for. */
weir_status s3_fail(const s3_store *store, const s3_ask *ask, const s3_answer *answer,
                    weir_error *err);

/* Reads a document: calls begin at each element's start and end at its end with the text directly in it, cut to
 * what a key may take. No document type, 16 levels at most. */
typedef struct s3_xml {
  void (*begin)(void *ctx, const char *name);
  weir_status (*end)(void *ctx, const char *name, const char *text, weir_error *err);
  void *ctx;
} s3_xml;
weir_status s3_xml_read(const s3_xml *reader, const void *data, size_t size,
                        weir_error *err);
/* Nanoseconds of "2009-10-12T17:50:30.000Z", 0 when it is none. */
int64_t s3_time_parse(const char *text);

weir_status s3_head(void *state, const weir_call *call, const char *key,
                    weir_object_info *out, weir_error *err);
weir_status s3_list(void *state, const weir_call *call, const char *prefix,
                    const char *after, uint32_t flags, weir_object_list_fn fn, void *ctx,
                    weir_error *err);
weir_status s3_upload_create(void *state, const weir_call *call, const char *key,
                             weir_object_upload *upload, weir_error *err);
weir_status s3_upload_part(void *state, const weir_call *call, const char *key,
                           const weir_object_upload *upload, uint32_t number,
                           const void *data, size_t size, weir_object_part *out,
                           weir_error *err);
weir_status s3_upload_complete(void *state, const weir_call *call, const char *key,
                               const weir_object_upload *upload,
                               const weir_object_part *parts, uint32_t n, uint32_t flags,
                               weir_object_info *out, weir_error *err);
weir_status s3_upload_abort(void *state, const weir_call *call, const char *key,
                            const char *id, weir_error *err);
weir_status s3_uploads_list(void *state, const weir_call *call, const char *prefix,
                            weir_object_uploads_fn fn, void *ctx, weir_error *err);

#endif
