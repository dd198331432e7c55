/* SPDX-License-Identifier: Apache-2.0 */
/* The steps and their names: AWS General Reference, "Signature Version 4 signing process". */
#include "object/s3/sign.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

weir_status s3_encode(base_buf *out, const char *text, bool keep_slash, weir_error *err) {
  static const char plain[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
  for (const char *p = text; *p; p++) {
    if (strchr(plain, *p) || (keep_slash && *p == '/')) {
      BASE_TRY(base_buf_append_byte(out, (uint8_t)*p, err));
    } else {
      BASE_TRY(base_buf_printf(out, err, "%%%02X", (unsigned)(uint8_t)*p));
    }
  }
  return WEIR_OK;
}

/* ---- sorted pairs ---- */

typedef struct encoded {
  char *name, *value;
} encoded;

static int by_name(const void *left, const void *right) {
  const encoded *a = left, *b = right;
  int order = strcmp(a->name, b->name);
  return order ? order : strcmp(a->value, b->value);
}

static char *encode_text(const char *text, weir_error *err) {
  base_buf buf = {0};
  if (s3_encode(&buf, text, false, err)) {
    base_buf_done(&buf);
    return NULL;
  }
  return base_buf_steal_str(&buf, err);
}

weir_status s3_query_text(const s3_request *request, base_buf *out, weir_error *err) {
  encoded pairs[BASE_COUNT(request->query)] = {{0}};
  weir_status status = WEIR_OK;
  for (size_t i = 0; i < request->n_query; i++) {
    pairs[i].name = encode_text(request->query[i].name, err);
    pairs[i].value = encode_text(request->query[i].value, err);
    if (!pairs[i].name || !pairs[i].value) {
      status = WEIR_E_NOMEM;
      goto out;
    }
  }
  qsort(pairs, request->n_query, sizeof(*pairs), by_name);
  for (size_t i = 0; i < request->n_query; i++) {
    BASE_GOTO(status, base_buf_printf(out, err, "%s%s=%s", i ? "&" : "", pairs[i].name,
                                      pairs[i].value));
  }
out:
  for (size_t i = 0; i < request->n_query; i++) {
    free(pairs[i].name);
    free(pairs[i].value);
  }
  return status;
}

static int by_header(const void *left, const void *right) {
  return strcmp(((const s3_pair *)left)->name, ((const s3_pair *)right)->name);
}

/* A header's value without spaces around it, and with one where several stand. */
static weir_status add_value(base_buf *out, const char *value, weir_error *err) {
  value += strspn(value, " ");
  for (const char *p = value; *p; p++) {
    bool last_of_several = *p != ' ' || (p[1] != ' ' && p[1] != 0);
    if (last_of_several) BASE_TRY(base_buf_append_byte(out, (uint8_t)*p, err));
  }
  return base_buf_append_byte(out, '\n', err);
}

/* ---- the signature ---- */

void s3_time_text(int64_t wall_ns, char out[S3_TIME_SIZE]) {
  time_t seconds = (time_t)(wall_ns / BASE_NS_PER_S);
  struct tm utc = {0};
  gmtime_r(&seconds, &utc);
  strftime(out, S3_TIME_SIZE, "%Y%m%dT%H%M%SZ", &utc);
}

static weir_status hmac(const void *key, size_t key_size, const void *data, size_t size,
                        uint8_t out[BASE_SHA256_SIZE], weir_error *err) {
  unsigned n = 0;
  if (HMAC(EVP_sha256(), key, (int)key_size, data, size, out, &n)) return WEIR_OK;
  return weir_error_set(err, WEIR_E_INTERNAL, 0, "libcrypto: HMAC-SHA-256 failed");
}

static weir_status canonical_request(const s3_request *request, const s3_pair *headers,
                                     const char *payload_hash, const char *names,
                                     base_buf *out, weir_error *err) {
  BASE_TRY(base_buf_printf(out, err, "%s\n", request->method));
  BASE_TRY(s3_encode(out, request->path, true, err));
  BASE_TRY(base_buf_append_byte(out, '\n', err));
  BASE_TRY(s3_query_text(request, out, err));
  BASE_TRY(base_buf_append_byte(out, '\n', err));
  for (size_t i = 0; i < request->n_headers; i++) {
    BASE_TRY(base_buf_printf(out, err, "%s:", headers[i].name));
    BASE_TRY(add_value(out, headers[i].value, err));
  }
  return base_buf_printf(out, err, "\n%s\n%s", names, payload_hash);
}

static weir_status signing_key(const s3_identity *who, const char *date,
                               uint8_t key[BASE_SHA256_SIZE], weir_error *err) {
  char *secret = base_format(err, "AWS4%s", who->secret_key);
  if (!secret) return WEIR_E_NOMEM;
  weir_status status = hmac(secret, strlen(secret), date, 8, key, err);
  free(secret);
  const char *steps[] = {who->region, who->service, "aws4_request"};
  for (size_t i = 0; i < BASE_COUNT(steps) && !status; i++) {
    status = hmac(key, BASE_SHA256_SIZE, steps[i], strlen(steps[i]), key, err);
  }
  return status;
}

weir_status s3_sign(const s3_request *request, const s3_identity *who, const char *time,
                    const char *payload_hash, base_buf *out, weir_error *err) {
  s3_pair headers[BASE_COUNT(request->headers)];
  base_buf names = {0}, text = {0};
  uint8_t hash[BASE_SHA256_SIZE], key[BASE_SHA256_SIZE];
  char hex[2 * BASE_SHA256_SIZE + 1];
  char scope[200];
  weir_status status = WEIR_OK;
  int size = snprintf(scope, sizeof(scope), "%.8s/%s/%s/aws4_request", time, who->region,
                      who->service);
  if (size < 0 || (size_t)size >= sizeof(scope)) {
    return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                          "'%.40s...' is no region of S3: it is too long", who->region);
  }
  memcpy(headers, request->headers, sizeof(headers));
  qsort(headers, request->n_headers, sizeof(*headers), by_header);
  for (size_t i = 0; i < request->n_headers; i++) {
    BASE_GOTO(status,
              base_buf_printf(&names, err, "%s%s", i ? ";" : "", headers[i].name));
  }
  BASE_GOTO(status, base_buf_terminate(&names, err));
  BASE_GOTO(status, canonical_request(request, headers, payload_hash,
                                      (const char *)names.data, &text, err));
  BASE_GOTO(status, base_sha256(text.data, text.size, hash, err));
  weir_hex_encode(hash, sizeof(hash), hex);
  base_buf_clear(&text);
  BASE_GOTO(status, base_buf_printf(&text, err, "AWS4-HMAC-SHA256\n%s\n%s\n%s", time,
                                    scope, hex));
  BASE_GOTO(status, signing_key(who, time, key, err));
  BASE_GOTO(status, hmac(key, sizeof(key), text.data, text.size, hash, err));
  weir_hex_encode(hash, sizeof(hash), hex);
  status = base_buf_printf(out, err,
                           "AWS4-HMAC-SHA256 Credential=%s/%s, SignedHeaders=%s, "
                           "Signature=%s",
                           who->access_key, scope, (const char *)names.data, hex);
out:
  base_buf_done(&names);
  base_buf_done(&text);
  return status;
}
