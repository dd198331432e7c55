/* SPDX-License-Identifier: Apache-2.0 */
/* The store, and its verbs on one object. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/plugin.h>

#include "object/s3/s3.h"

/* ---- where it is ---- */

static void s3_release(void *state) {
  s3_store *store = state;
  while (store->n_idle) curl_easy_cleanup(store->idle[--store->n_idle]);
  pthread_mutex_destroy(&store->mutex);
  if (store->secret_key) memset(store->secret_key, 0, strlen(store->secret_key));
  if (store->session_token) memset(store->session_token, 0, strlen(store->session_token));
  char *texts[] = {store->base,       store->host,          store->bucket,
                   store->prefix,     store->name,          store->access_key,
                   store->secret_key, store->session_token, store->region,
                   store->ca_file};
  for (size_t i = 0; i < BASE_COUNT(texts); i++) free(texts[i]);
  free(store);
}

static const char *option(const weir_options *options, const char *name,
                          const char *variable, const char *other) {
  const char *text = options ? weir_options_string(options, name) : NULL;
  if (!text && variable) text = getenv(variable);
  if ((!text || !*text) && other) text = getenv(other);
  return text && *text ? text : NULL;
}

static weir_status copy_text(char **out, const char *text, weir_error *err) {
  *out = base_strdup(text, err);
  return *out ? WEIR_OK : WEIR_E_NOMEM;
}

/* "bucket/prefix" -> the two, checked. */
static weir_status set_names(s3_store *store, const char *rest, char **bucket,
                             weir_error *err) {
  size_t size = strcspn(rest, "/");
  size_t plain = strspn(rest, "abcdefghijklmnopqrstuvwxyz0123456789.-_");
  if (size < 3 || size > 63 || plain < size) {
    return weir_error_set(
        err, WEIR_E_INVALID_CONFIG, 0,
        "'s3://%.200s' does not name a bucket: write s3://BUCKET/PREFIX, "
        "the bucket of 3 to 63 small letters, digits, dots and hyphens",
        rest);
  }
  *bucket = base_strndup(rest, size, err);
  store->name = base_format(err, "s3://%s", rest);
  const char *prefix = rest + size + strspn(rest + size, "/");
  size_t length = strlen(prefix);
  while (length && prefix[length - 1] == '/') length--;
  store->prefix = base_format(err, "%.*s%s", (int)length, prefix, length ? "/" : "");
  return *bucket && store->name && store->prefix ? WEIR_OK : WEIR_E_NOMEM;
}

static weir_status set_address(s3_store *store, const char *bucket,
                               const weir_options *options, weir_error *err) {
  const char *endpoint =
      option(options, "s3.endpoint", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL");
  bool path_style = endpoint || strchr(bucket, '.'); /* dots do not fit certificates */
  if (options && weir_options_given(options, "s3.path_style")) {
    path_style = weir_options_bool(options, "s3.path_style");
  }
  const char *scheme = "https://", *rest = endpoint;
  if (endpoint && base_starts_with(endpoint, "http://")) scheme = "http://";
  if (endpoint && strstr(endpoint, "://")) rest = strstr(endpoint, "://") + 3;
  size_t size = rest ? strcspn(rest, "/") : 0;
  if (endpoint &&
      ((!base_starts_with(endpoint, scheme) && strstr(endpoint, "://")) || size == 0 ||
       rest[size + strspn(rest + size, "/")] || strpbrk(endpoint, "@?# "))) {
    return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                          "s3.endpoint is to be http://HOST:PORT or https://HOST:PORT, "
                          "without a path and without a password");
  }
  char *host = rest ? base_strndup(rest, size, err)
                    : base_format(err, "s3.%s.amazonaws.com", store->region);
  if (!host) return WEIR_E_NOMEM;
  store->host =
      base_format(err, "%s%s%s", path_style ? "" : bucket, path_style ? "" : ".", host);
  free(host);
  store->bucket =
      base_format(err, "%s%s", path_style ? "/" : "", path_style ? bucket : "");
  store->base = store->host ? base_format(err, "%s%s", scheme, store->host) : NULL;
  return store->bucket && store->base ? WEIR_OK : WEIR_E_NOMEM;
}

static weir_status set_identity(s3_store *store, const weir_options *options,
                                weir_error *err) {
  const char *access = option(options, "s3.access_key", NULL, NULL);
  const char *secret = option(options, "s3.secret_key", NULL, NULL);
  const char *session = option(options, "s3.session_token", NULL, NULL);
  if (!access && !secret && !session) {
    access = option(NULL, NULL, "AWS_ACCESS_KEY_ID", NULL);
    secret = option(NULL, NULL, "AWS_SECRET_ACCESS_KEY", NULL);
    session = option(NULL, NULL, "AWS_SESSION_TOKEN", NULL);
  }
  if (!access || !secret) {
    return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                          "%s: no credentials; set s3.access_key and s3.secret_key, or "
                          "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
                          store->name);
  }
  BASE_TRY(copy_text(&store->access_key, access, err));
  BASE_TRY(copy_text(&store->secret_key, secret, err));
  return session ? copy_text(&store->session_token, session, err) : WEIR_OK;
}

static weir_status set_up(s3_store *store, const char *rest, const weir_options *options,
                          weir_error *err) {
  char *bucket = NULL;
  const char *region = option(options, "s3.region", "AWS_REGION", "AWS_DEFAULT_REGION");
  const char *ca_file = option(options, "s3.ca_file", "AWS_CA_BUNDLE", NULL);
  weir_status status = set_names(store, rest, &bucket, err);
  if (!status) status = copy_text(&store->region, region ? region : "us-east-1", err);
  if (!status) status = set_address(store, bucket, options, err);
  if (!status) status = set_identity(store, options, err);
  if (!status && ca_file) status = copy_text(&store->ca_file, ca_file, err);
  free(bucket);
  return status;
}

static weir_status s3_create(const char *rest, const weir_options *options, void **out,
                             weir_error *err) {
  s3_store *store = base_calloc(1, sizeof(*store), err);
  if (!store) return WEIR_E_NOMEM;
  weir_status status = base_mutex_init(&store->mutex, err);
  if (status) {
    free(store);
    return status;
  }
  status = set_up(store, rest, options, err);
  if (status) {
    s3_release(store);
    return status;
  }
  *out = store;
  return WEIR_OK;
}

/* ---- verbs ---- */

static weir_status conflict(const s3_store *store, const char *key, bool absent,
                            weir_error *err) {
  weir_status status =
      weir_error_set(err, absent ? WEIR_E_EXISTS : WEIR_E_CONFLICT, 0,
                     absent ? "%s: '%s' is taken: another writer put it"
                            : "%s: '%s' is not the version that was to be replaced",
                     store->name, key);
  if (err) err->vendor_code = 412;
  return status;
}

/* The condition did not hold: perhaps since an earlier try of this put made it so. *own tells. */
static weir_status look_for_own(s3_store *store, const weir_call *call, const char *key,
                                const char *nonce, bool *own, bool *there,
                                weir_object_info *out, weir_error *err) {
  s3_ask ask = {.verb = "head", .method = "HEAD", .key = key};
  s3_answer answer = {0};
  weir_status status = s3_send(store, call, &ask, &answer, err);
  if (!status && answer.status != 200 && answer.status != 404) {
    status = s3_fail(store, &ask, &answer, err);
  }
  *there = answer.status == 200;
  *own = *there && strcmp(answer.nonce, nonce) == 0;
  *out = answer.info;
  s3_answer_done(&answer);
  return status;
}

static weir_status put_in_doubt(weir_status status, bool doubt, weir_error *err) {
  if (doubt && err) {
    err->flags |= WEIR_ERR_IN_DOUBT;
    err->flags &= ~(uint32_t)WEIR_ERR_RETRIABLE;
  }
  return status;
}

static weir_status s3_put(void *state, const weir_call *call, const char *key,
                          const void *data, size_t size,
                          const weir_object_put_options *options, weir_object_info *out,
                          weir_error *err) {
  s3_store *store = state;
  uint8_t random[(S3_NONCE_SIZE - 1) / 2];
  char nonce[S3_NONCE_SIZE];
  bool absent = options->flags & WEIR_OBJECT_IF_ABSENT, doubt = false;
  BASE_TRY(base_random(random, sizeof(random), err));
  weir_hex_encode(random, sizeof(random), nonce);
  s3_ask ask = {.verb = "put",
                .method = "PUT",
                .key = key,
                .headers = {{"x-amz-meta-weir-put", nonce}},
                .n_headers = 1,
                .body = data,
                .size = size,
                .max = 65536};
  if (absent) ask.headers[ask.n_headers++] = (s3_pair){"if-none-match", "*"};
  if (options->if_match) {
    ask.headers[ask.n_headers++] = (s3_pair){"if-match", options->if_match};
  }
  if (options->owner && *options->owner) {
    ask.headers[ask.n_headers++] = (s3_pair){"x-amz-meta-weir-owner", options->owner};
  }
  for (;;) {
    s3_answer answer = {0};
    weir_object_info there = {0};
    weir_status status = s3_send(store, call, &ask, &answer, err);
    doubt |= answer.doubt;
    long got = answer.status;
    if (!status && got == 200) {
      *out = answer.info;
      out->size = size;
      s3_answer_done(&answer);
      return WEIR_OK;
    }
    bool condition = got == 412 || (got == 404 && options->if_match);
    if (!status && !condition) status = s3_fail(store, &ask, &answer, err);
    s3_answer_done(&answer);
    if (status) return put_in_doubt(status, doubt, err);
    bool own = false, any = false;
    status = look_for_own(store, call, key, nonce, &own, &any, &there, err);
    if (status) return put_in_doubt(status, true, err);
    if (own) {
      *out = there;
      return WEIR_OK;
    }
    if (any || !absent) return conflict(store, key, absent, err);
    /* Taken when it was put, gone when it was looked for: put it again, while there is time. */
    BASE_TRY(weir_call_check(call, "put of an object", err));
  }
}

static weir_status s3_get(void *state, const weir_call *call, const char *key,
                          uint64_t offset, size_t max, weir_bytes *out,
                          weir_object_info *info, weir_error *err) {
  char range[64];
  snprintf(range, sizeof(range), "bytes=%" PRIu64 "-%" PRIu64, offset, offset + max - 1);
  s3_ask ask = {.verb = "get",
                .method = "GET",
                .key = key,
                .headers = {{"range", range}},
                .n_headers = 1,
                .max = max};
  s3_answer answer = {0};
  weir_status status = s3_send(state, call, &ask, &answer, err);
  if (status) goto out;
  if (answer.status == 416) { /* also for the first byte of an empty object */
    BASE_GOTO(status, s3_head(state, call, key, info, err));
    base_buf_clear(&answer.body);
  } else if (answer.status != 206 && !(answer.status == 200 && offset == 0)) {
    status = s3_fail(state, &ask, &answer, err);
    goto out;
  } else {
    *info = answer.info;
  }
  uint64_t left = info->size > offset ? info->size - offset : 0;
  if (answer.body.size != (left < max ? left : max)) {
    status = weir_error_set(
        err, WEIR_E_IO, WEIR_ERR_RETRIABLE,
        "%s: get of '%s': %zu bytes came from %" PRIu64 " on, of an object of %" PRIu64,
        ((s3_store *)state)->name, key, answer.body.size, offset, info->size);
    goto out;
  }
  base_buf_steal(&answer.body, out);
out:
  s3_answer_done(&answer);
  return status;
}

weir_status s3_head(void *state, const weir_call *call, const char *key,
                    weir_object_info *out, weir_error *err) {
  s3_ask ask = {.verb = "head", .method = "HEAD", .key = key};
  s3_answer answer = {0};
  weir_status status = s3_send(state, call, &ask, &answer, err);
  if (!status && answer.status != 200) status = s3_fail(state, &ask, &answer, err);
  if (!status) *out = answer.info;
  s3_answer_done(&answer);
  return status;
}

static weir_status s3_remove(void *state, const weir_call *call, const char *const *keys,
                             size_t n, weir_error *err) {
  weir_status status = WEIR_OK;
  for (size_t i = 0; i < n && !status; i++) {
    s3_ask ask = {.verb = "delete", .method = "DELETE", .key = keys[i], .max = 65536};
    s3_answer answer = {0};
    status = s3_send(state, call, &ask, &answer, err);
    bool gone = answer.status == 404 && strcmp(answer.code, "NoSuchBucket") != 0;
    if (!status && answer.status != 204 && answer.status != 200 && !gone) {
      status = s3_fail(state, &ask, &answer, err);
    }
    s3_answer_done(&answer);
  }
  return status;
}

/* ---- the shared object ---- */

static const weir_object_ops s3_ops = {.abi_version = WEIR_ABI_VERSION,
                                       .struct_size = sizeof(weir_object_ops),
                                       .scheme = "s3",
                                       .create = s3_create,
                                       .release = s3_release,
                                       .put = s3_put,
                                       .get = s3_get,
                                       .head = s3_head,
                                       .list = s3_list,
                                       .remove = s3_remove,
                                       .upload_create = s3_upload_create,
                                       .upload_part = s3_upload_part,
                                       .upload_complete = s3_upload_complete,
                                       .upload_abort = s3_upload_abort,
                                       .uploads_list = s3_uploads_list};
static const weir_object_ops *const stores[] = {&s3_ops};

weir_status weir_plugin_init(uint32_t host_abi, const weir_host *host, weir_plugin *out,
                             weir_error *err) {
  (void)host;
  if (host_abi < 1 || out->struct_size < sizeof(*out)) {
    return weir_error_set(err, WEIR_E_NOT_IMPLEMENTED, 0, "needs a newer weir");
  }
  if (curl_global_init(CURL_GLOBAL_DEFAULT)) {
    return weir_error_set(err, WEIR_E_INTERNAL, 0, "libcurl could not be started");
  }
  out->stores = stores;
  out->n_stores = 1;
  return WEIR_OK;
}
