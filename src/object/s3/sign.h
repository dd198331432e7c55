/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AWS Signature Version 4 in the Authorization header, as S3 wants it: the path is encoded once and not
 * normalized. libcurl's own differs between its versions (docs/dependencies.md).
 */
#ifndef OBJECT_S3_SIGN_H
#define OBJECT_S3_SIGN_H

#include "base/base.h"

typedef struct s3_pair {
  const char *name, *value; /* of a header: the name in lower case */
} s3_pair;

typedef struct s3_request {
  const char *method;
  const char *path; /* "/bucket/key", not encoded */
  s3_pair query[8];
  size_t n_query;
  s3_pair headers[16]; /* all are signed; host is one of them */
  size_t n_headers;
} s3_request;

typedef struct s3_identity {
  const char *access_key, *secret_key, *region, *service;
} s3_identity;

/* Appends text with every byte but A-Z a-z 0-9 - . _ ~ as %XX, and '/' too unless it is kept. */
weir_status s3_encode(base_buf *out, const char *text, bool keep_slash, weir_error *err);
/* "name=value&..." of the query, encoded and in the order of the encoded names, as it must be signed. */
weir_status s3_query_text(const s3_request *request, base_buf *out, weir_error *err);

#define S3_TIME_SIZE 17 /* "20130524T000000Z" */
void s3_time_text(int64_t wall_ns, char out[S3_TIME_SIZE]);

/* Appends the value of the Authorization header. `time` is also the header x-amz-date, payload_hash is what
 * x-amz-content-sha256 says: the SHA-256 of the body in hex, or UNSIGNED-PAYLOAD. */
weir_status s3_sign(const s3_request *request, const s3_identity *who, const char *time,
                    const char *payload_hash, base_buf *out, weir_error *err);

#endif
