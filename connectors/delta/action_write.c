/* SPDX-License-Identifier: Apache-2.0 */
/* Actions as lines of a log entry. */
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

#include "action.h"

/* A document whose only member is the action `name`; both NULL when there is no memory. */
static yyjson_mut_doc *begin(const char *name, yyjson_mut_val **body) {
  yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
  yyjson_mut_val *root = doc ? yyjson_mut_obj(doc) : NULL;
  *body = root ? yyjson_mut_obj_add_obj(doc, root, name) : NULL;
  if (*body) {
    yyjson_mut_doc_set_root(doc, root);
    return doc;
  }
  yyjson_mut_doc_free(doc);
  return NULL;
}

weir_status delta_lines_raw(delta_lines *lines, const char *text, size_t size,
                            weir_error *err) {
  if (size >= SIZE_MAX / 4 - lines->size) return delta_no_memory(err);
  if (lines->capacity - lines->size < size + 1) {
    size_t capacity = 2 * (lines->size + size + 1);
    char *p = realloc(lines->p, capacity);
    if (!p) return delta_no_memory(err);
    lines->p = p;
    lines->capacity = capacity;
  }
  memcpy(lines->p + lines->size, text, size);
  lines->p[lines->size + size] = '\n';
  lines->size += size + 1;
  return WEIR_OK;
}

void delta_lines_done(delta_lines *lines) {
  free(lines->p);
  memset(lines, 0, sizeof(*lines));
}

/* Appends the document's text and frees it. */
static weir_status finish(delta_lines *lines, yyjson_mut_doc *doc, bool ok,
                          weir_error *err) {
  yyjson_write_err why = {0};
  size_t size = 0;
  char *text = ok ? yyjson_mut_write_opts(doc, 0, NULL, &size, &why) : NULL;
  yyjson_mut_doc_free(doc);
  if (!text && why.code && why.code != YYJSON_WRITE_ERROR_MEMORY_ALLOCATION) {
    return weir_error_set(err, WEIR_E_INTERNAL, 0, "cannot write an action: %s", why.msg);
  }
  if (!text) return delta_no_memory(err);
  weir_status status = delta_lines_raw(lines, text, size, err);
  free(text);
  return status;
}

/* Texts are borrowed: they outlive the document. */
static yyjson_mut_val *text_value(yyjson_mut_doc *doc, delta_text text) {
  return text.p ? yyjson_mut_strn(doc, text.p, text.n) : yyjson_mut_null(doc);
}

static bool put_text(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key,
                     delta_text text) {
  return !text.p || yyjson_mut_obj_add_strn(doc, object, key, text.p, text.n);
}

static bool put_long(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key,
                     delta_long value) {
  return !value.present || yyjson_mut_obj_add_sint(doc, object, key, value.v);
}

static bool put_texts(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key,
                      const delta_texts *texts) {
  if (!texts->present) return true;
  yyjson_mut_val *array = yyjson_mut_obj_add_arr(doc, object, key);
  for (size_t i = 0; i < texts->n; i++) {
    if (!yyjson_mut_arr_append(array, text_value(doc, texts->v[i]))) return false;
  }
  return array != NULL;
}

static bool put_pairs(yyjson_mut_doc *doc, yyjson_mut_val *object, const char *key,
                      const delta_pairs *pairs) {
  yyjson_mut_val *map = yyjson_mut_obj_add_obj(doc, object, key);
  for (size_t i = 0; i < pairs->n; i++) {
    if (!yyjson_mut_obj_add(map, text_value(doc, pairs->v[i].key),
                            text_value(doc, pairs->v[i].value)))
      return false;
  }
  return map != NULL;
}

weir_status delta_lines_protocol(delta_lines *lines, const delta_protocol *protocol,
                                 weir_error *err) {
  yyjson_mut_val *body = NULL;
  yyjson_mut_doc *doc = begin("protocol", &body);
  bool ok = doc &&
            yyjson_mut_obj_add_int(doc, body, "minReaderVersion", protocol->reader) &&
            yyjson_mut_obj_add_int(doc, body, "minWriterVersion", protocol->writer) &&
            put_texts(doc, body, "readerFeatures", &protocol->reader_features) &&
            put_texts(doc, body, "writerFeatures", &protocol->writer_features);
  return finish(lines, doc, ok, err);
}

weir_status delta_lines_metadata(delta_lines *lines, const delta_metadata *metadata,
                                 weir_error *err) {
  yyjson_mut_val *body = NULL, *format = NULL;
  yyjson_mut_doc *doc = begin("metaData", &body);
  bool ok = doc && put_text(doc, body, "id", metadata->id) &&
            put_text(doc, body, "name", metadata->name) &&
            put_text(doc, body, "description", metadata->description);
  if (ok) format = yyjson_mut_obj_add_obj(doc, body, "format");
  ok = ok && format && put_text(doc, format, "provider", metadata->provider) &&
       put_pairs(doc, format, "options", &metadata->format_options) &&
       put_text(doc, body, "schemaString", metadata->schema) &&
       put_texts(doc, body, "partitionColumns", &metadata->partition_columns) &&
       put_long(doc, body, "createdTime", metadata->created_time) &&
       put_pairs(doc, body, "configuration", &metadata->configuration);
  return finish(lines, doc, ok, err);
}

weir_status delta_lines_txn(delta_lines *lines, const delta_txn *txn, weir_error *err) {
  yyjson_mut_val *body = NULL;
  yyjson_mut_doc *doc = begin("txn", &body);
  bool ok = doc && put_text(doc, body, "appId", txn->app_id) &&
            yyjson_mut_obj_add_sint(doc, body, "version", txn->version) &&
            put_long(doc, body, "lastUpdated", txn->last_updated);
  return finish(lines, doc, ok, err);
}

weir_status delta_lines_domain(delta_lines *lines, const delta_domain *domain,
                               weir_error *err) {
  yyjson_mut_val *body = NULL;
  yyjson_mut_doc *doc = begin("domainMetadata", &body);
  bool ok = doc && put_text(doc, body, "domain", domain->domain) &&
            put_text(doc, body, "configuration", domain->configuration) &&
            yyjson_mut_obj_add_bool(doc, body, "removed", domain->removed);
  return finish(lines, doc, ok, err);
}

static bool put_vector(yyjson_mut_doc *doc, yyjson_mut_val *body,
                       const delta_vector *vector) {
  if (!vector->storage.p) return true;
  yyjson_mut_val *object = yyjson_mut_obj_add_obj(doc, body, "deletionVector");
  return object && put_text(doc, object, "storageType", vector->storage) &&
         put_text(doc, object, "pathOrInlineDv", vector->path) &&
         put_long(doc, object, "offset", vector->offset) &&
         yyjson_mut_obj_add_sint(doc, object, "sizeInBytes", vector->size) &&
         yyjson_mut_obj_add_sint(doc, object, "cardinality", vector->cardinality);
}

weir_status delta_lines_add(delta_lines *lines, const delta_file *add, weir_error *err) {
  yyjson_mut_val *body = NULL;
  yyjson_mut_doc *doc = begin("add", &body);
  bool ok =
      doc && put_text(doc, body, "path", add->path) &&
      put_pairs(doc, body, "partitionValues", &add->partition_values) &&
      put_long(doc, body, "size", add->size) &&
      put_long(doc, body, "modificationTime", add->time) &&
      yyjson_mut_obj_add_bool(doc, body, "dataChange", add->data_change) &&
      put_text(doc, body, "stats", add->stats) &&
      (!add->tags.present || put_pairs(doc, body, "tags", &add->tags)) &&
      put_vector(doc, body, &add->vector) &&
      put_long(doc, body, "baseRowId", add->base_row_id) &&
      put_long(doc, body, "defaultRowCommitVersion", add->default_row_commit_version) &&
      put_text(doc, body, "clusteringProvider", add->clustering_provider);
  return finish(lines, doc, ok, err);
}

weir_status delta_lines_remove(delta_lines *lines, const delta_file *gone,
                               weir_error *err) {
  yyjson_mut_val *body = NULL;
  yyjson_mut_doc *doc = begin("remove", &body);
  bool ok =
      doc && put_text(doc, body, "path", gone->path) &&
      put_long(doc, body, "deletionTimestamp", gone->time) &&
      yyjson_mut_obj_add_bool(doc, body, "dataChange", gone->data_change) &&
      (!gone->extended.present ||
       yyjson_mut_obj_add_bool(doc, body, "extendedFileMetadata",
                               gone->extended.v != 0)) &&
      (!gone->partition_values.present ||
       put_pairs(doc, body, "partitionValues", &gone->partition_values)) &&
      put_long(doc, body, "size", gone->size) && put_vector(doc, body, &gone->vector) &&
      put_long(doc, body, "baseRowId", gone->base_row_id) &&
      put_long(doc, body, "defaultRowCommitVersion", gone->default_row_commit_version);
  return finish(lines, doc, ok, err);
}
