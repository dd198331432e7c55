/* SPDX-License-Identifier: Apache-2.0 */
/* One request: its headers, its signature, its repeats. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "object/s3/s3.h"

enum { PATIENCE_S = 60 }; /* of a call without a deadline */

/* One try. */
typedef struct attempt {
  s3_store *store;
  const weir_call *call;
  const s3_ask *ask;
  s3_answer *answer;
  int64_t deadline;
  struct curl_slist *headers;
  char *url;
  char why[CURL_ERROR_SIZE];
} attempt;

void s3_answer_done(s3_answer *answer) {
  base_buf_done(&answer->body);
}

/* ---- the answer ---- */

static size_t take_body(char *data, size_t one, size_t n, void *ctx) {
  attempt *a = ctx;
  size_t size = one * n;
  size_t max = a->answer->status >= 300 ? 65536 : a->ask->max;
  if (size > max - a->answer->body.size) return 0;
  return base_buf_append(&a->answer->body, data, size, NULL) ? 0 : size;
}

static void take_text(char *out, size_t room, const char *value, size_t size) {
  if (size < room) {
    memcpy(out, value, size);
    out[size] = 0;
  }
}

static size_t take_header(char *line, size_t one, size_t n, void *ctx) {
  attempt *a = ctx;
  s3_answer *answer = a->answer;
  size_t size = one * n, name = 0;
  if (size > 9 && memcmp(line, "HTTP/", 5) == 0) {
    const char *space = memchr(line, ' ', size);
    answer->status = space ? strtol(space, NULL, 10) : 0; /* libcurl ends the line */
    return size;
  }
  while (name < size && line[name] != ':') name++;
  if (name == size) return size;
  const char *value = line + name + 1, *end = line + size;
  while (value < end && (*value == ' ' || *value == '\t')) value++;
  while (end > value && (end[-1] == '\r' || end[-1] == '\n' || end[-1] == ' ')) end--;
  size_t length = (size_t)(end - value);
  char text[64] = "";
  take_text(text, sizeof(text), value, length);
#define IS(header) (name == sizeof(header) - 1 && strncasecmp(line, header, name) == 0)
  if (IS("etag")) take_text(answer->info.etag, sizeof(answer->info.etag), value, length);
  if (IS("x-amz-meta-weir-owner")) {
    take_text(answer->info.owner, sizeof(answer->info.owner), value, length);
  }
  if (IS("x-amz-meta-weir-put")) {
    take_text(answer->nonce, sizeof(answer->nonce), value, length);
  }
  if (IS("last-modified")) {
    answer->info.modified_ns = (int64_t)curl_getdate(text, NULL) * BASE_NS_PER_S;
  }
  if (IS("content-length") && !answer->info.size) {
    answer->info.size = strtoull(text, NULL, 10);
  }
  if (IS("content-range") && strchr(text, '/')) {
    answer->info.size = strtoull(strchr(text, '/') + 1, NULL, 10);
  }
#undef IS
  return size;
}

static int watch(void *ctx, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d) {
  (void)a, (void)b, (void)c, (void)d;
  return weir_call_cancelled(((attempt *)ctx)->call);
}

/* ---- the request ---- */

static weir_status add_header(attempt *a, const char *name, const char *value,
                              weir_error *err) {
  /* libcurl drops a header without a value unless it ends with ';'. */
  char *line = base_format(err, *value ? "%s: %s" : "%s;%s", name, value);
  if (!line) return WEIR_E_NOMEM;
  struct curl_slist *list = curl_slist_append(a->headers, line);
  free(line);
  if (!list) return weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
  a->headers = list;
  return WEIR_OK;
}

static weir_status make_request(attempt *a, weir_error *err) {
  const s3_store *store = a->store;
  const s3_ask *ask = a->ask;
  char time[S3_TIME_SIZE], hex[2 * BASE_SHA256_SIZE + 1];
  uint8_t hash[BASE_SHA256_SIZE];
  base_buf url = {0}, sign = {0};
  char *path = base_format(err, "%s/%s%s", store->bucket, ask->key ? store->prefix : "",
                           ask->key ? ask->key : "");
  if (!path) return WEIR_E_NOMEM;
  s3_request request = {.method = ask->method, .path = path, .n_query = ask->n_query};
  memcpy(request.query, ask->query, sizeof(ask->query));
  memcpy(request.headers, ask->headers, sizeof(ask->headers));
  request.n_headers = ask->n_headers;
  weir_status status = base_sha256(ask->body, ask->size, hash, err);
  if (status) goto out;
  weir_hex_encode(hash, sizeof(hash), hex);
  s3_time_text(base_clock_wall(), time);
  request.headers[request.n_headers++] = (s3_pair){"host", store->host};
  request.headers[request.n_headers++] = (s3_pair){"x-amz-date", time};
  request.headers[request.n_headers++] = (s3_pair){"x-amz-content-sha256", hex};
  if (store->session_token) {
    request.headers[request.n_headers++] =
        (s3_pair){"x-amz-security-token", store->session_token};
  }
  s3_identity who = {store->access_key, store->secret_key, store->region, "s3"};
  BASE_GOTO(status, s3_sign(&request, &who, time, hex, &sign, err));
  BASE_GOTO(status, base_buf_terminate(&sign, err));
  for (size_t i = 0; i < request.n_headers; i++) {
    BASE_GOTO(status,
              add_header(a, request.headers[i].name, request.headers[i].value, err));
  }
  BASE_GOTO(status, add_header(a, "authorization", (const char *)sign.data, err));
  a->headers = curl_slist_append(a->headers, "content-type: application/octet-stream");
  a->headers = curl_slist_append(a->headers, "expect:");
  BASE_GOTO(status, base_buf_append_str(&url, store->base, err));
  BASE_GOTO(status, s3_encode(&url, path, true, err));
  if (ask->n_query) {
    BASE_GOTO(status, base_buf_append_byte(&url, '?', err));
    BASE_GOTO(status, s3_query_text(&request, &url, err));
  }
  a->url = base_buf_steal_str(&url, err);
  if (!a->url) status = WEIR_E_NOMEM;
out:
  base_buf_done(&url);
  base_buf_done(&sign);
  free(path);
  return status;
}

static CURL *take_handle(s3_store *store) {
  CURL *handle = NULL;
  pthread_mutex_lock(&store->mutex);
  if (store->n_idle) handle = store->idle[--store->n_idle];
  pthread_mutex_unlock(&store->mutex);
  return handle ? handle : curl_easy_init();
}

static void give_handle(s3_store *store, CURL *handle) {
  bool kept = false;
  curl_easy_reset(handle); /* connections and sessions stay */
  pthread_mutex_lock(&store->mutex);
  if (store->n_idle < BASE_COUNT(store->idle)) {
    store->idle[store->n_idle++] = handle;
    kept = true;
  }
  pthread_mutex_unlock(&store->mutex);
  if (!kept) curl_easy_cleanup(handle);
}

static CURLcode run(attempt *a, CURL *h) {
  const s3_ask *ask = a->ask;
  int64_t left = (a->deadline - base_clock_mono()) / BASE_NS_PER_MS;
  curl_easy_setopt(h, CURLOPT_URL, a->url);
  curl_easy_setopt(h, CURLOPT_PATH_AS_IS, 1L);
  curl_easy_setopt(h, CURLOPT_HTTPHEADER, a->headers);
  curl_easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(h, CURLOPT_ERRORBUFFER, a->why);
  curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, take_body);
  curl_easy_setopt(h, CURLOPT_WRITEDATA, a);
  curl_easy_setopt(h, CURLOPT_HEADERFUNCTION, take_header);
  curl_easy_setopt(h, CURLOPT_HEADERDATA, a);
  curl_easy_setopt(h, CURLOPT_XFERINFOFUNCTION, watch);
  curl_easy_setopt(h, CURLOPT_XFERINFODATA, a);
  curl_easy_setopt(h, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(h, CURLOPT_CONNECTTIMEOUT_MS, 10000L);
  curl_easy_setopt(h, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(h, CURLOPT_LOW_SPEED_TIME, 20L);
  curl_easy_setopt(h, CURLOPT_TIMEOUT_MS,
                   left < 1          ? 1L
                   : left > 86400000 ? 86400000L
                                     : (long)left);
  curl_easy_setopt(h, CURLOPT_BUFFERSIZE, 262144L);
  curl_easy_setopt(h, CURLOPT_UPLOAD_BUFFERSIZE, 524288L);
  if (a->store->ca_file) curl_easy_setopt(h, CURLOPT_CAINFO, a->store->ca_file);
  if (strcmp(ask->method, "HEAD") == 0) {
    curl_easy_setopt(h, CURLOPT_NOBODY, 1L);
  } else if (ask->body || strcmp(ask->method, "PUT") == 0 ||
             strcmp(ask->method, "POST") == 0) {
    curl_easy_setopt(h, CURLOPT_POST, 1L);
    curl_easy_setopt(h, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)ask->size);
    curl_easy_setopt(h, CURLOPT_POSTFIELDS, ask->body ? ask->body : "");
    curl_easy_setopt(h, CURLOPT_CUSTOMREQUEST, ask->method);
  } else {
    curl_easy_setopt(h, CURLOPT_CUSTOMREQUEST, ask->method);
  }
  return curl_easy_perform(h);
}

/* ---- what came of it ---- */

static weir_status code_end(void *ctx, const char *name, const char *text,
                            weir_error *err) {
  (void)err;
  s3_answer *answer = ctx;
  if (strcmp(name, "Code") == 0 && !*answer->code) {
    snprintf(answer->code, sizeof(answer->code), "%s", text);
  }
  return WEIR_OK;
}

static bool nothing_sent(CURLcode code) {
  return code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_RESOLVE_PROXY ||
         code == CURLE_COULDNT_CONNECT || code == CURLE_SSL_CONNECT_ERROR;
}

/* A later try may fare better, though the server has not said that nothing was done. */
static bool worth_repeating(const s3_answer *answer) {
  return answer->status >= 500 || answer->status == 429 || answer->status == 408 ||
         strcmp(answer->code, "RequestTimeout") == 0 ||
         strcmp(answer->code, "ConditionalRequestConflict") == 0 ||
         strcmp(answer->code, "OperationAborted") == 0;
}

static weir_status try_once(attempt *a, CURLcode *code, weir_error *err) {
  s3_answer *answer = a->answer;
  base_buf_clear(&answer->body);
  answer->status = 0;
  answer->code[0] = 0;
  answer->info = (weir_object_info){0};
  answer->nonce[0] = 0;
  weir_status status = make_request(a, err);
  CURL *handle = status ? NULL : take_handle(a->store);
  if (!status && !handle) {
    status = weir_error_set(err, WEIR_E_NOMEM, 0, "libcurl could not be started");
  }
  if (handle) {
    *code = run(a, handle);
    give_handle(a->store, handle);
  }
  curl_slist_free_all(a->headers);
  a->headers = NULL;
  free(a->url);
  a->url = NULL;
  if (!status && !*code && answer->status >= 300 && answer->body.size) {
    s3_xml reader = {.end = code_end, .ctx = answer};
    (void)s3_xml_read(&reader, answer->body.data, answer->body.size, NULL);
  }
  return status;
}

static weir_status no_answer(const attempt *a, CURLcode code, weir_error *err) {
  weir_status status = weir_call_check(a->call, "request to the object store", err);
  if (!status) {
    bool fatal = code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_WRITE_ERROR ||
                 code == CURLE_SSL_CACERT_BADFILE;
    status = weir_error_set(
        err, code == CURLE_OPERATION_TIMEDOUT ? WEIR_E_TIMEOUT : WEIR_E_IO,
        fatal ? 0 : WEIR_ERR_RETRIABLE, "%s: %s of '%s': no answer from %s: %s",
        a->store->name, a->ask->verb, a->ask->key ? a->ask->key : "", a->store->base,
        *a->why ? a->why : curl_easy_strerror(code));
  }
  return status;
}

static void pause_before(int tries, int64_t deadline) {
  uint32_t random = 0;
  int64_t most = (int64_t)50 << (tries < 7 ? tries : 7); /* up to 6.4 s */
  (void)base_random(&random, sizeof(random), NULL);
  int64_t span = (most / 2 + random % (most / 2 + 1)) * BASE_NS_PER_MS;
  int64_t left = deadline - base_clock_mono();
  base_sleep(span < left / 2 ? span : left / 2);
}

weir_status s3_send(s3_store *store, const weir_call *call, const s3_ask *ask,
                    s3_answer *answer, weir_error *err) {
  int64_t deadline = weir_call_deadline(call);
  if (deadline == WEIR_NO_DEADLINE) deadline = base_deadline(PATIENCE_S * BASE_NS_PER_S);
  /* A try that has hardly any time would only bring doubt. */
  int64_t last = deadline - (deadline - base_clock_mono()) / 8;
  attempt a = {
      .store = store, .call = call, .ask = ask, .answer = answer, .deadline = deadline};
  for (int tries = 0;; tries++) {
    CURLcode code = CURLE_OK;
    BASE_TRY(try_once(&a, &code, err));
    if (!code && !worth_repeating(answer)) return WEIR_OK;
    if (code ? !nothing_sent(code) : answer->status >= 500) answer->doubt = true;
    bool over = base_clock_mono() >= last || weir_call_cancelled(call) ||
                code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_WRITE_ERROR ||
                code == CURLE_SSL_CACERT_BADFILE;
    if (!over) {
      pause_before(tries, deadline);
      continue;
    }
    return code ? no_answer(&a, code, err) : s3_fail(store, ask, answer, err);
  }
}

weir_status s3_fail(const s3_store *store, const s3_ask *ask, const s3_answer *answer,
                    weir_error *err) {
  weir_status status = WEIR_E_IO;
  uint32_t flags = 0;
  const char *advice = "";
  if (answer->status == 404) status = WEIR_E_NOT_FOUND;
  if (answer->status == 501) status = WEIR_E_NOT_IMPLEMENTED;
  if (answer->status == 401 || answer->status == 403) {
    flags = WEIR_ERR_RETRIABLE;
    advice = "; check the credentials, their rights and this machine's clock";
  }
  if (answer->status == 429 || (answer->status >= 500 && answer->status != 501)) {
    flags = WEIR_ERR_RETRIABLE;
  }
  if (answer->status == 301 || answer->status == 307) {
    advice = "; the bucket is in another region: set s3.region";
  }
  weir_error_set(err, status, flags, "%s: %s of '%s': the server answered %ld%s%s%s",
                 store->name, ask->verb, ask->key ? ask->key : "", answer->status,
                 *answer->code ? " " : "", answer->code, advice);
  if (err) err->vendor_code = (int32_t)answer->status;
  return status;
}
