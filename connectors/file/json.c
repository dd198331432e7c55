/* SPDX-License-Identifier: Apache-2.0 */
#include "json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

bool file_json_hex_parse(const char *text, size_t length, void *out, size_t size) {
  uint8_t *p = out;
  if (length != 2 * size) return false;
  for (size_t i = 0; i < size; i++) {
    int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    p[i] = (uint8_t)(high << 4 | low);
  }
  return true;
}

bool file_json_uuid_parse(const char *text, uint8_t out[WEIR_UUID_SIZE]) {
  char hex[2 * WEIR_UUID_SIZE + 1], again[37];
  size_t n = 0;
  if (strlen(text) != 36) return false;
  for (size_t i = 0; i < 36; i++) {
    if (text[i] != '-' && n < sizeof(hex) - 1) hex[n++] = text[i];
  }
  if (!file_json_hex_parse(hex, n, out, WEIR_UUID_SIZE)) return false;
  weir_uuid_format(out, again);
  return strcmp(text, again) == 0;
}

weir_status file_json_corrupt(const file_json_reader *r, const char *key,
                              weir_error *err) {
  return weir_error_set(
      err, WEIR_E_CORRUPT, 0,
      "%s: '%s' is missing or not what weir writes; the record was damaged or "
      "edited",
      r->where, key);
}

weir_status file_json_open(const void *data, size_t size, const char *kind,
                           uint64_t version, const char *where, file_json_reader *out,
                           yyjson_val **root, weir_error *err) {
  file_json_reader r = {.where = where};
  yyjson_read_err why = {0};
  uint64_t got = 0;
  /* The parser takes the text as const without the in-situ flag. Numbers beyond 64 bits (in source
   * positions) stay as they are written. */
  r.doc = yyjson_read_opts((char *)(uintptr_t)data, size, YYJSON_READ_BIGNUM_AS_RAW, NULL,
                           &why);
  if (!r.doc) {
    if (why.code == YYJSON_READ_ERROR_MEMORY_ALLOCATION) {
      return weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
    }
    return weir_error_set(err, WEIR_E_CORRUPT, 0, "%s is not JSON: %s at byte %zu", where,
                          why.msg ? why.msg : "empty", why.pos);
  }
  yyjson_val *top = yyjson_doc_get_root(r.doc);
  yyjson_val *mark = yyjson_obj_get(top, "weir");
  if (!mark || !yyjson_equals_str(mark, kind)) {
    weir_error_set(err, WEIR_E_CORRUPT, 0,
                   "%s is no record of weir's (expected \"weir\": \"%s\")", where, kind);
    yyjson_doc_free(r.doc);
    return WEIR_E_CORRUPT;
  }
  weir_status status = file_json_u64(&r, top, "version", &got, err);
  if (!status && (got < 1 || got > version)) {
    status = weir_error_set(
        err, WEIR_E_NOT_IMPLEMENTED, 0,
        "%s has format version %llu, this weir knows %llu: use a newer weir", where,
        (unsigned long long)got, (unsigned long long)version);
  }
  if (status) {
    yyjson_doc_free(r.doc);
    return status;
  }
  *out = r;
  *root = top;
  return WEIR_OK;
}

void file_json_close(file_json_reader *reader) {
  yyjson_doc_free(reader->doc);
  reader->doc = NULL;
}

weir_status file_json_u64(const file_json_reader *r, yyjson_val *object, const char *key,
                          uint64_t *out, weir_error *err) {
  yyjson_val *value = yyjson_obj_get(object, key);
  if (!yyjson_is_uint(value)) return file_json_corrupt(r, key, err);
  *out = yyjson_get_uint(value);
  return WEIR_OK;
}

weir_status file_json_text(const file_json_reader *r, yyjson_val *object, const char *key,
                           size_t max, const char **out, weir_error *err) {
  yyjson_val *value = yyjson_obj_get(object, key);
  if (!yyjson_is_str(value) || yyjson_get_len(value) > max ||
      strlen(yyjson_get_str(value)) != yyjson_get_len(value)) {
    return file_json_corrupt(r, key, err);
  }
  *out = yyjson_get_str(value);
  return WEIR_OK;
}

weir_status file_json_hex(const file_json_reader *r, yyjson_val *object, const char *key,
                          void *out, size_t size, weir_error *err) {
  yyjson_val *value = yyjson_obj_get(object, key);
  if (!yyjson_is_str(value) ||
      !file_json_hex_parse(yyjson_get_str(value), yyjson_get_len(value), out, size)) {
    return file_json_corrupt(r, key, err);
  }
  return WEIR_OK;
}

weir_status file_json_array(const file_json_reader *r, yyjson_val *object,
                            const char *key, yyjson_val **out, weir_error *err) {
  *out = yyjson_obj_get(object, key);
  return yyjson_is_arr(*out) ? WEIR_OK : file_json_corrupt(r, key, err);
}

weir_status file_json_object(const file_json_reader *r, yyjson_val *object,
                             const char *key, yyjson_val **out, weir_error *err) {
  *out = yyjson_obj_get(object, key);
  return yyjson_is_obj(*out) ? WEIR_OK : file_json_corrupt(r, key, err);
}

weir_status file_json_cursor(const file_json_reader *r, yyjson_val *object,
                             weir_cursor *out, weir_error *err) {
  weir_cursor cursor = {0};
  weir_status status = file_json_u64(r, object, "checkpoint", &cursor.checkpoint, err);
  if (!status) status = file_json_u64(r, object, "token", &cursor.token, err);
  if (!status)
    status = file_json_hex(r, object, "digest", cursor.digest, WEIR_DIGEST_SIZE, err);
  if (!status) *out = cursor;
  return status;
}

bool file_json_put_hex(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key,
                       const void *data, size_t size) {
  char text[2 * WEIR_DIGEST_SIZE + 1];
  if (size > WEIR_DIGEST_SIZE) return false;
  weir_hex_encode(data, size, text);
  return yyjson_mut_obj_add_strcpy(doc, object, key, text);
}

bool file_json_put_uuid(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key,
                        const uint8_t uuid[WEIR_UUID_SIZE]) {
  char text[37];
  weir_uuid_format(uuid, text);
  return yyjson_mut_obj_add_strcpy(doc, object, key, text);
}

bool file_json_put_cursor(yyjson_mut_doc *doc, yyjson_mut_val *object,
                          const weir_cursor *cursor) {
  return yyjson_mut_obj_add_uint(doc, object, "checkpoint", cursor->checkpoint) &&
         yyjson_mut_obj_add_uint(doc, object, "token", cursor->token) &&
         file_json_put_hex(doc, object, "digest", cursor->digest, WEIR_DIGEST_SIZE);
}

yyjson_mut_doc *file_json_begin(const char *kind, uint64_t version,
                                yyjson_mut_val **root) {
  yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
  yyjson_mut_val *top = doc ? yyjson_mut_obj(doc) : NULL;
  if (top && yyjson_mut_obj_add_strcpy(doc, top, "weir", kind) &&
      yyjson_mut_obj_add_uint(doc, top, "version", version)) {
    yyjson_mut_doc_set_root(doc, top);
    *root = top;
    return doc;
  }
  yyjson_mut_doc_free(doc);
  *root = NULL;
  return NULL;
}

weir_status file_json_finish(yyjson_mut_doc *doc, bool ok, bool pretty, char **out,
                             size_t *size, weir_error *err) {
  yyjson_write_flag flags =
      YYJSON_WRITE_NEWLINE_AT_END | (pretty ? YYJSON_WRITE_PRETTY_TWO_SPACES : 0);
  yyjson_write_err why = {0};
  char *text = doc && ok ? yyjson_mut_write_opts(doc, flags, NULL, size, &why) : NULL;
  yyjson_mut_doc_free(doc);
  if (!text && why.code && why.code != YYJSON_WRITE_ERROR_MEMORY_ALLOCATION) {
    return weir_error_set(err, WEIR_E_INTERNAL, 0, "cannot write a record: %s", why.msg);
  }
  if (!text) return weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
  *out = text;
  return WEIR_OK;
}
