/* SPDX-License-Identifier: Apache-2.0 */
/* Strict reading and writing of the file sink's JSON records: a member that is absent, of another type
 * or out of bounds is WEIR_E_CORRUPT and named. */
#ifndef CONNECTORS_FILE_JSON_H
#define CONNECTORS_FILE_JSON_H

#include <stdbool.h>
#include <weir/bytes.h>
#include <weir/cursor.h>
#include <yyjson.h>

/* A document being read, and what to call it in messages. */
typedef struct file_json_reader {
  yyjson_doc *doc;
  const char *where;
} file_json_reader;

/* Parses, and checks that {"weir": kind, "version": <= version}. On failure nothing is to be freed. */
weir_status file_json_open(const void *data, size_t size, const char *kind,
                           uint64_t version, const char *where, file_json_reader *out,
                           yyjson_val **root, weir_error *err);
void file_json_close(file_json_reader *reader);

weir_status file_json_u64(const file_json_reader *r, yyjson_val *object, const char *key,
                          uint64_t *out, weir_error *err);
weir_status file_json_hex(const file_json_reader *r, yyjson_val *object, const char *key,
                          void *out, size_t size, weir_error *err);
/* Borrowed from the document; at most `max` bytes, no NUL within. */
weir_status file_json_text(const file_json_reader *r, yyjson_val *object, const char *key,
                           size_t max, const char **out, weir_error *err);
weir_status file_json_array(const file_json_reader *r, yyjson_val *object,
                            const char *key, yyjson_val **out, weir_error *err);
weir_status file_json_object(const file_json_reader *r, yyjson_val *object,
                             const char *key, yyjson_val **out, weir_error *err);
weir_status file_json_cursor(const file_json_reader *r, yyjson_val *object,
                             weir_cursor *out, weir_error *err);
weir_status file_json_corrupt(const file_json_reader *r, const char *key,
                              weir_error *err);

/* Writing: any of them gives false when there is no memory. */
bool file_json_put_hex(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key,
                       const void *data, size_t size);
bool file_json_put_uuid(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key,
                        const uint8_t uuid[WEIR_UUID_SIZE]);
bool file_json_put_cursor(yyjson_mut_doc *doc, yyjson_mut_val *object,
                          const weir_cursor *cursor);
yyjson_mut_doc *file_json_begin(const char *kind, uint64_t version,
                                yyjson_mut_val **root);
/* The text with a line break at its end, malloc'd; frees the document in any case. doc may be NULL and
 * ok false: out of memory. */
weir_status file_json_finish(yyjson_mut_doc *doc, bool ok, bool pretty, char **out,
                             size_t *size, weir_error *err);

bool file_json_uuid_parse(const char *text, uint8_t out[WEIR_UUID_SIZE]);
bool file_json_hex_parse(const char *text, size_t length, void *out,
                         size_t size); /* lower case only */

#endif
