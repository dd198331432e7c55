/* SPDX-License-Identifier: Apache-2.0 */
/* Uploads in parts. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "object/s3/s3.h"

typedef struct found {
  const char *name; /* of the element */
  char *out;
  size_t room;
  bool error; /* the document is an <Error> */
  char code[S3_CODE_SIZE];
} found;

static void found_begin(void *ctx, const char *name) {
  if (strcmp(name, "Error") == 0) ((found *)ctx)->error = true;
}

static weir_status found_end(void *ctx, const char *name, const char *text,
                             weir_error *err) {
  (void)err;
  found *f = ctx;
  if (strcmp(name, f->name) == 0 && strlen(text) < f->room) {
    memcpy(f->out, text, strlen(text) + 1);
  }
  if (f->error && strcmp(name, "Code") == 0) {
    snprintf(f->code, sizeof(f->code), "%s", text);
  }
  return WEIR_OK;
}

weir_status s3_upload_create(void *state, const weir_call *call, const char *key,
                             weir_object_upload *upload, weir_error *err) {
  s3_store *store = state;
  s3_ask ask = {.verb = "begin of an upload",
                .method = "POST",
                .key = key,
                .query = {{"uploads", ""}},
                .n_query = 1,
                .max = 65536};
  if (*upload->owner) {
    ask.headers[ask.n_headers++] = (s3_pair){"x-amz-meta-weir-owner", upload->owner};
  }
  char id[WEIR_OBJECT_UPLOAD_SIZE] = "";
  found f = {.name = "UploadId", .out = id, .room = sizeof(id)};
  s3_xml reader = {.begin = found_begin, .end = found_end, .ctx = &f};
  s3_answer answer = {0};
  weir_status status = s3_send(store, call, &ask, &answer, err);
  if (!status && answer.status != 200) status = s3_fail(store, &ask, &answer, err);
  if (!status) status = s3_xml_read(&reader, answer.body.data, answer.body.size, err);
  if (!status && !*id) {
    status = weir_error_set(err, WEIR_E_CORRUPT, 0,
                            "%s: begin of an upload of '%s': the answer names no upload",
                            store->name, key);
  }
  if (!status) memcpy(upload->id, id, sizeof(id));
  s3_answer_done(&answer);
  return status;
}

weir_status s3_upload_part(void *state, const weir_call *call, const char *key,
                           const weir_object_upload *upload, uint32_t number,
                           const void *data, size_t size, weir_object_part *out,
                           weir_error *err) {
  s3_store *store = state;
  char text[16];
  snprintf(text, sizeof(text), "%" PRIu32, number);
  s3_ask ask = {.verb = "part of an upload",
                .method = "PUT",
                .key = key,
                .query = {{"partNumber", text}, {"uploadId", upload->id}},
                .n_query = 2,
                .body = data,
                .size = size,
                .max = 65536};
  s3_answer answer = {0};
  weir_status status = s3_send(store, call, &ask, &answer, err);
  if (!status && answer.status != 200) status = s3_fail(store, &ask, &answer, err);
  if (!status && !*answer.info.etag) {
    status = weir_error_set(err, WEIR_E_CORRUPT, 0,
                            "%s: part %" PRIu32 " of '%s': the answer has no etag",
                            store->name, number, key);
  }
  if (!status) {
    *out = (weir_object_part){.size = size};
    memcpy(out->etag, answer.info.etag, sizeof(out->etag));
  }
  s3_answer_done(&answer);
  return status;
}

static weir_status add_escaped(base_buf *out, const char *text, weir_error *err) {
  for (; *text; text++) {
    const char *word = *text == '&'   ? "&amp;"
                       : *text == '<' ? "&lt;"
                       : *text == '>' ? "&gt;"
                       : *text == '"' ? "&quot;"
                                      : NULL;
    if (word) {
      BASE_TRY(base_buf_append_str(out, word, err));
    } else {
      BASE_TRY(base_buf_append_byte(out, (uint8_t)*text, err));
    }
  }
  return WEIR_OK;
}

static weir_status part_list(const weir_object_part *parts, uint32_t n, base_buf *out,
                             weir_error *err) {
  BASE_TRY(base_buf_append_str(out,
                               "<CompleteMultipartUpload "
                               "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">",
                               err));
  for (uint32_t i = 0; i < n; i++) {
    BASE_TRY(base_buf_printf(out, err, "<Part><PartNumber>%" PRIu32 "</PartNumber><ETag>",
                             i + 1));
    BASE_TRY(add_escaped(out, parts[i].etag, err));
    BASE_TRY(base_buf_append_str(out, "</ETag></Part>", err));
  }
  return base_buf_append_str(out, "</CompleteMultipartUpload>", err);
}

/* The upload is gone or its key taken: whose object is there? */
static weir_status settle(s3_store *store, const weir_call *call, const char *key,
                          const weir_object_upload *upload, uint64_t size,
                          weir_object_info *out, weir_error *err) {
  weir_object_info info = {0};
  weir_status status = s3_head(store, call, key, &info, err);
  if (status) {
    if (err) err->flags |= WEIR_ERR_IN_DOUBT;
    return status;
  }
  if (info.size == size && strcmp(info.owner, upload->owner) == 0) {
    *out = info;
    return WEIR_OK;
  }
  return weir_error_set(err, WEIR_E_EXISTS, 0,
                        "%s: '%s' is another writer's: it has %" PRIu64
                        " bytes of '%s', not %" PRIu64 " of '%s'",
                        store->name, key, info.size, info.owner, size, upload->owner);
}

weir_status s3_upload_complete(void *state, const weir_call *call, const char *key,
                               const weir_object_upload *upload,
                               const weir_object_part *parts, uint32_t n, uint32_t flags,
                               weir_object_info *out, weir_error *err) {
  s3_store *store = state;
  base_buf body = {0};
  uint64_t size = (n - 1) * upload->part_size + parts[n - 1].size;
  weir_status status = part_list(parts, n, &body, err);
  s3_ask ask = {.verb = "end of an upload",
                .method = "POST",
                .key = key,
                .query = {{"uploadId", upload->id}},
                .n_query = 1,
                .body = body.data,
                .size = body.size,
                .max = 65536};
  if (flags & WEIR_OBJECT_IF_ABSENT) {
    ask.headers[ask.n_headers++] = (s3_pair){"if-none-match", "*"};
  }
  for (bool again = !status; again;) {
    again = false;
    s3_answer answer = {0};
    weir_object_info info = {0};
    found f = {.name = "ETag", .out = info.etag, .room = sizeof(info.etag)};
    s3_xml reader = {.begin = found_begin, .end = found_end, .ctx = &f};
    status = s3_send(store, call, &ask, &answer, err);
    /* A 200 is sent before the work is done, so that an error may follow in its body. */
    if (!status && answer.status == 200) {
      status = s3_xml_read(&reader, answer.body.data, answer.body.size, err);
    }
    if (status) {
      if (err) err->flags |= WEIR_ERR_IN_DOUBT;
    } else if (answer.status == 412 || answer.status == 404) {
      status = settle(store, call, key, upload, size, out, err);
    } else if (answer.status != 200) {
      status = s3_fail(store, &ask, &answer, err);
    } else if (f.error) {
      snprintf(answer.code, sizeof(answer.code), "%s", f.code);
      answer.status = strcmp(f.code, "PreconditionFailed") == 0 ? 412 : 500;
      if (answer.status == 412) {
        status = settle(store, call, key, upload, size, out, err);
      } else {
        status = s3_fail(store, &ask, &answer, err);
        if (err) err->flags = WEIR_ERR_IN_DOUBT | WEIR_ERR_RETRIABLE;
        base_sleep(200 * BASE_NS_PER_MS);
        again =
            weir_call_deadline(call) != WEIR_NO_DEADLINE && !weir_call_cancelled(call);
      }
    } else {
      info.size = size;
      memcpy(info.owner, upload->owner, sizeof(info.owner));
      *out = info;
    }
    s3_answer_done(&answer);
  }
  base_buf_done(&body);
  return status;
}

weir_status s3_upload_abort(void *state, const weir_call *call, const char *key,
                            const char *id, weir_error *err) {
  s3_ask ask = {.verb = "abort of an upload",
                .method = "DELETE",
                .key = key,
                .query = {{"uploadId", id}},
                .n_query = 1,
                .max = 65536};
  s3_answer answer = {0};
  weir_status status = s3_send(state, call, &ask, &answer, err);
  bool gone = answer.status == 404 && strcmp(answer.code, "NoSuchBucket") != 0;
  if (!status && answer.status != 204 && answer.status != 200 && !gone) {
    status = s3_fail(state, &ask, &answer, err);
  }
  s3_answer_done(&answer);
  return status;
}
