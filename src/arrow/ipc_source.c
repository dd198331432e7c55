/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes into messages ("Arrow Columnar Format", section "Encapsulated message format"): 0xFFFFFFFF,
 * the metadata's size, the metadata, the body. Before Arrow 0.15 the first four bytes were missing. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "arrow/ipc.h"

weir_status ipc_source_error(const ipc_source *source, uint64_t at, weir_error *err,
                             weir_status status) {
  return weir_error_prefix(err, status, "%s: offset %" PRIu64, source->name, at);
}

/* Up to `size` bytes; fewer at the end. */
static weir_status read_some(ipc_source *source, void *buf, size_t size, size_t *got,
                             weir_error *err) {
  size_t have = 0;
  if (source->blob != NULL) {
    uint64_t left = source->blob->size - source->at;
    have = size < left ? size : (size_t)left;
    if (have > 0) memcpy(buf, source->blob->data + source->at, have);
  }
  while (source->blob == NULL && have < size) {
    size_t n = 0;
    weir_status status =
        source->read(source->ctx, (uint8_t *)buf + have, size - have, &n, err);
    if (status != WEIR_OK)
      return ipc_source_error(source, source->at + have, err, status);
    if (n == 0) break;
    have += n;
  }
  source->at += have;
  *got = have;
  return WEIR_OK;
}

weir_status ipc_source_bytes(ipc_source *source, void *buf, size_t size,
                             weir_error *err) {
  size_t got = 0;
  BASE_TRY(read_some(source, buf, size, &got, err));
  if (got == size) return WEIR_OK;
  weir_error_set(err, WEIR_E_CORRUPT, 0,
                 "cut short: %zu more bytes belong here. Was it written to its end?",
                 size - got);
  return ipc_source_error(source, source->at, err, WEIR_E_CORRUPT);
}

/* Grows with what arrives, so a size that is a lie costs nothing. */
static weir_status read_growing(ipc_source *source, base_buf *buf, size_t size,
                                weir_error *err) {
  while (buf->size < size) {
    size_t step = buf->size < ((size_t)1 << 20) ? (size_t)1 << 20 : buf->size;
    if (step > size - buf->size) step = size - buf->size;
    BASE_TRY(base_buf_reserve(buf, step, err));
    BASE_TRY(ipc_source_bytes(source, buf->data + buf->size, step, err));
    buf->size += step;
  }
  return WEIR_OK;
}

static weir_status read_metadata(ipc_source *source, uint64_t at, uint32_t size,
                                 ipc_message *out, weir_error *err) {
  if (size > source->max_metadata ||
      (source->blob != NULL && size > source->blob->size - at)) {
    weir_error_set(err, WEIR_E_CORRUPT, 0,
                   "a message with %" PRIu32 " bytes of metadata: more than %s", size,
                   size > source->max_metadata ? "the limit" : "there are; cut short?");
    return ipc_source_error(source, at, err, WEIR_E_CORRUPT);
  }
  /* A copy, also of mapped metadata: what was verified cannot change afterwards. */
  base_buf_clear(&source->metadata);
  BASE_TRY(read_growing(source, &source->metadata, size, err));
  weir_status status = ipc_message_parse(source->metadata.data, size, out, err);
  return status == WEIR_OK ? status : ipc_source_error(source, at, err, status);
}

static weir_status read_body(ipc_source *source, ipc_message *out, weir_error *err) {
  const uint64_t size = (uint64_t)out->body_length;
  if (source->blob != NULL) {
    if (size > source->blob->size - source->at) {
      weir_error_set(err, WEIR_E_CORRUPT, 0,
                     "cut short: a body of %" PRIu64 " bytes, of which %" PRIu64
                     " are there. Was it written to its end?",
                     size, source->blob->size - source->at);
      return ipc_source_error(source, source->at, err, WEIR_E_CORRUPT);
    }
    out->blob = source->blob;
    out->body = source->blob->data + source->at;
    source->at += size;
    return WEIR_OK;
  }
  if (size > source->max_body) {
    weir_error_set(err, WEIR_E_CORRUPT, 0,
                   "a body of %" PRIu64 " bytes: more than the limit %" PRIu64, size,
                   source->max_body);
    return ipc_source_error(source, source->at, err, WEIR_E_CORRUPT);
  }
  base_buf buf = {0};
  weir_status status = read_growing(source, &buf, (size_t)size, err);
  ipc_blob *blob = status == WEIR_OK ? ipc_blob_new(err) : NULL;
  if (blob == NULL) {
    base_buf_done(&buf);
    return status != WEIR_OK ? status : WEIR_E_NOMEM;
  }
  blob->heap = buf.data;
  blob->data = buf.size > 0 ? buf.data : (const uint8_t *)ipc_zeros;
  blob->size = buf.size;
  ipc_blob_unref(source->body);
  source->body = blob;
  out->blob = blob;
  out->body = blob->data;
  return WEIR_OK;
}

/* A file that comes through a pipe: behind its head ("ARROW1" and padding) lies a stream. */
static weir_status skip_head(ipc_source *source, uint32_t *size, weir_error *err) {
  char rest[4];
  BASE_TRY(ipc_source_bytes(source, rest, 4, err));
  if (memcmp(rest, "W1\0", 4) != 0)
    return weir_error_set(err, WEIR_E_CORRUPT, 0, "%s: a damaged Arrow file head",
                          source->name);
  return ipc_source_bytes(source, size, 4, err);
}

weir_status ipc_source_message(ipc_source *source, ipc_message *out, bool *end,
                               weir_error *err) {
  const uint64_t at = source->at;
  ipc_message made = {0};
  uint32_t size = 0;
  size_t got = 0;
  BASE_TRY(read_some(source, &size, 4, &got, err));
  *end = got == 0;
  if (*end) return WEIR_OK;
  if (got < 4) BASE_TRY(ipc_source_bytes(source, (uint8_t *)&size + got, 4 - got, err));
  if (at == 0 && source->blob == NULL && memcmp(&size, "ARRO", 4) == 0)
    BASE_TRY(skip_head(source, &size, err));
  if (size == UINT32_MAX) BASE_TRY(ipc_source_bytes(source, &size, 4, err));
  *end = size == 0;
  if (*end) return WEIR_OK;
  BASE_TRY(read_metadata(source, at, size, &made, err));
  BASE_TRY(read_body(source, &made, err));
  made.at = at;
  *out = made;
  return WEIR_OK;
}

void ipc_source_done(ipc_source *source) {
  free(source->name);
  ipc_blob_unref(source->blob);
  ipc_blob_unref(source->body);
  base_buf_done(&source->metadata);
  *source = (ipc_source){0};
}
