/* SPDX-License-Identifier: Apache-2.0 */
#include "action.h"

#include <string.h>
#include <yyjson.h>

/* What is being read: for messages, and where lists are put. */
typedef struct reader {
  const char *where;
  uint64_t line;
  const char *action;
  delta_arena arena;
} reader;

static weir_status corrupt(const reader *r, const char *field, const char *want,
                           weir_error *err) {
  return weir_error_set(err, WEIR_E_CORRUPT, 0,
                        "%s, line %llu: '%s.%s' is missing or not %s", r->where,
                        (unsigned long long)r->line, r->action, field, want);
}

/* JSON's null is as good as a field that is not there. */
static yyjson_val *field_of(yyjson_val *object, const char *key) {
  yyjson_val *value = yyjson_obj_get(object, key);
  return yyjson_is_null(value) ? NULL : value;
}

static weir_status text_of(const reader *r, yyjson_val *object, const char *key,
                           bool required, delta_text *out, weir_error *err) {
  yyjson_val *value = field_of(object, key);
  *out = (delta_text){0};
  if (!value && !required) return WEIR_OK;
  if (!yyjson_is_str(value)) return corrupt(r, key, "a string", err);
  *out = (delta_text){yyjson_get_str(value), yyjson_get_len(value)};
  return WEIR_OK;
}

static weir_status long_of(const reader *r, yyjson_val *object, const char *key,
                           bool required, delta_long *out, weir_error *err) {
  yyjson_val *value = field_of(object, key);
  *out = (delta_long){0};
  if (!value && !required) return WEIR_OK;
  if (!yyjson_is_int(value) ||
      (yyjson_is_uint(value) && yyjson_get_uint(value) > INT64_MAX))
    return corrupt(r, key, "a whole number of 64 bits", err);
  *out = (delta_long){yyjson_get_sint(value), true};
  return WEIR_OK;
}

static weir_status required_long(const reader *r, yyjson_val *object, const char *key,
                                 int64_t *out, weir_error *err) {
  delta_long value;
  DELTA_TRY(long_of(r, object, key, true, &value, err));
  *out = value.v;
  return WEIR_OK;
}

static weir_status bool_of(const reader *r, yyjson_val *object, const char *key,
                           bool required, delta_long *out, weir_error *err) {
  yyjson_val *value = field_of(object, key);
  *out = (delta_long){0};
  if (!value && !required) return WEIR_OK;
  if (!yyjson_is_bool(value)) return corrupt(r, key, "true or false", err);
  *out = (delta_long){yyjson_get_bool(value), true};
  return WEIR_OK;
}

static weir_status texts_of(reader *r, yyjson_val *object, const char *key, bool required,
                            delta_texts *out, weir_error *err) {
  yyjson_val *array = field_of(object, key), *one = NULL;
  size_t i = 0, max = 0;
  *out = (delta_texts){0};
  if (!array && !required) return WEIR_OK;
  if (!yyjson_is_arr(array)) return corrupt(r, key, "a list of strings", err);
  delta_text *v = delta_arena_take(&r->arena, yyjson_arr_size(array) * sizeof(*v));
  if (!v) return delta_no_memory(err);
  yyjson_arr_foreach(array, i, max, one) {
    if (!yyjson_is_str(one)) return corrupt(r, key, "a list of strings", err);
    v[i] = (delta_text){yyjson_get_str(one), yyjson_get_len(one)};
  }
  *out = (delta_texts){v, yyjson_arr_size(array), true};
  return WEIR_OK;
}

/* A map of strings, whose values may be null. */
static weir_status pairs_of(reader *r, yyjson_val *object, const char *key, bool required,
                            delta_pairs *out, weir_error *err) {
  yyjson_val *map = field_of(object, key), *name = NULL, *value = NULL;
  size_t i = 0, max = 0;
  *out = (delta_pairs){0};
  if (!map && !required) return WEIR_OK;
  if (!yyjson_is_obj(map)) return corrupt(r, key, "a map of strings", err);
  delta_pair *v = delta_arena_take(&r->arena, yyjson_obj_size(map) * sizeof(*v));
  if (!v) return delta_no_memory(err);
  yyjson_obj_foreach(map, i, max, name, value) {
    if (!yyjson_is_str(value) && !yyjson_is_null(value))
      return corrupt(r, key, "a map of strings", err);
    v[i].key = (delta_text){yyjson_get_str(name), yyjson_get_len(name)};
    v[i].value = (delta_text){yyjson_get_str(value), yyjson_get_len(value)};
  }
  *out = (delta_pairs){v, yyjson_obj_size(map), true};
  return WEIR_OK;
}

/* ---- one action each ---------------------------------------------------------------------------- */

static weir_status read_commit_info(reader *r, yyjson_val *body, delta_action *out,
                                    weir_error *err) {
  return long_of(r, body, "inCommitTimestamp", false, &out->u.in_commit_timestamp, err);
}

static weir_status version_of(const reader *r, yyjson_val *body, const char *key,
                              int32_t *out, weir_error *err) {
  int64_t version = 0;
  DELTA_TRY(required_long(r, body, key, &version, err));
  if (version < 1 || version > INT32_MAX)
    return corrupt(r, key, "a version from 1 on", err);
  *out = (int32_t)version;
  return WEIR_OK;
}

static weir_status read_protocol(reader *r, yyjson_val *body, delta_action *out,
                                 weir_error *err) {
  delta_protocol *p = &out->u.protocol;
  DELTA_TRY(version_of(r, body, "minReaderVersion", &p->reader, err));
  DELTA_TRY(version_of(r, body, "minWriterVersion", &p->writer, err));
  DELTA_TRY(texts_of(r, body, "readerFeatures", false, &p->reader_features, err));
  return texts_of(r, body, "writerFeatures", false, &p->writer_features, err);
}

static weir_status read_metadata(reader *r, yyjson_val *body, delta_action *out,
                                 weir_error *err) {
  delta_metadata *m = &out->u.metadata;
  yyjson_val *format = field_of(body, "format");
  if (!yyjson_is_obj(format)) return corrupt(r, "format", "a format", err);
  DELTA_TRY(text_of(r, body, "id", true, &m->id, err));
  DELTA_TRY(text_of(r, body, "name", false, &m->name, err));
  DELTA_TRY(text_of(r, body, "description", false, &m->description, err));
  DELTA_TRY(text_of(r, format, "provider", true, &m->provider, err));
  DELTA_TRY(pairs_of(r, format, "options", false, &m->format_options, err));
  DELTA_TRY(text_of(r, body, "schemaString", true, &m->schema, err));
  DELTA_TRY(texts_of(r, body, "partitionColumns", true, &m->partition_columns, err));
  DELTA_TRY(pairs_of(r, body, "configuration", false, &m->configuration, err));
  return long_of(r, body, "createdTime", false, &m->created_time, err);
}

static weir_status read_txn(reader *r, yyjson_val *body, delta_action *out,
                            weir_error *err) {
  DELTA_TRY(text_of(r, body, "appId", true, &out->u.txn.app_id, err));
  DELTA_TRY(required_long(r, body, "version", &out->u.txn.version, err));
  return long_of(r, body, "lastUpdated", false, &out->u.txn.last_updated, err);
}

static weir_status read_domain(reader *r, yyjson_val *body, delta_action *out,
                               weir_error *err) {
  delta_long removed;
  DELTA_TRY(text_of(r, body, "domain", true, &out->u.domain.domain, err));
  DELTA_TRY(text_of(r, body, "configuration", true, &out->u.domain.configuration, err));
  DELTA_TRY(bool_of(r, body, "removed", true, &removed, err));
  out->u.domain.removed = removed.v != 0;
  return WEIR_OK;
}

static weir_status read_vector(reader *r, yyjson_val *body, delta_vector *out,
                               weir_error *err) {
  yyjson_val *vector = field_of(body, "deletionVector");
  if (!vector) return WEIR_OK;
  if (!yyjson_is_obj(vector))
    return corrupt(r, "deletionVector", "a deletion vector", err);
  DELTA_TRY(text_of(r, vector, "storageType", true, &out->storage, err));
  DELTA_TRY(text_of(r, vector, "pathOrInlineDv", true, &out->path, err));
  DELTA_TRY(long_of(r, vector, "offset", false, &out->offset, err));
  DELTA_TRY(required_long(r, vector, "sizeInBytes", &out->size, err));
  return required_long(r, vector, "cardinality", &out->cardinality, err);
}

static weir_status read_file(reader *r, yyjson_val *body, delta_action *out,
                             weir_error *err) {
  delta_file *f = &out->u.file;
  delta_long data_change;
  bool add = out->kind == DELTA_ADD;
  DELTA_TRY(text_of(r, body, "path", true, &f->path, err));
  DELTA_TRY(pairs_of(r, body, "partitionValues", add, &f->partition_values, err));
  DELTA_TRY(long_of(r, body, "size", add, &f->size, err));
  if (f->size.v < 0) return corrupt(r, "size", "a size", err);
  DELTA_TRY(long_of(r, body, add ? "modificationTime" : "deletionTimestamp", add,
                    &f->time, err));
  DELTA_TRY(bool_of(r, body, "dataChange", true, &data_change, err));
  DELTA_TRY(bool_of(r, body, "extendedFileMetadata", false, &f->extended, err));
  DELTA_TRY(text_of(r, body, "stats", false, &f->stats, err));
  DELTA_TRY(pairs_of(r, body, "tags", false, &f->tags, err));
  DELTA_TRY(read_vector(r, body, &f->vector, err));
  DELTA_TRY(long_of(r, body, "baseRowId", false, &f->base_row_id, err));
  DELTA_TRY(long_of(r, body, "defaultRowCommitVersion", false,
                    &f->default_row_commit_version, err));
  DELTA_TRY(text_of(r, body, "clusteringProvider", false, &f->clustering_provider, err));
  f->data_change = data_change.v != 0;
  return WEIR_OK;
}

static weir_status read_nothing(reader *r, yyjson_val *body, delta_action *out,
                                weir_error *err) {
  (void)r;
  (void)body;
  (void)out;
  (void)err;
  return WEIR_OK;
}

static weir_status read_sidecar(reader *r, yyjson_val *body, delta_action *out,
                                weir_error *err) {
  return text_of(r, body, "path", true, &out->u.sidecar, err);
}

static weir_status read_checkpoint(reader *r, yyjson_val *body, delta_action *out,
                                   weir_error *err) {
  return required_long(r, body, "version", &out->u.checkpoint, err);
}

static const struct kind {
  const char *name;
  int kind;
  weir_status (*read)(reader *r, yyjson_val *body, delta_action *out, weir_error *err);
} kinds[] = {
    {"add", DELTA_ADD, read_file},
    {"remove", DELTA_REMOVE, read_file},
    {"txn", DELTA_TXN, read_txn},
    {"commitInfo", DELTA_COMMIT_INFO, read_commit_info},
    {"protocol", DELTA_PROTOCOL, read_protocol},
    {"metaData", DELTA_METADATA, read_metadata},
    {"domainMetadata", DELTA_DOMAIN, read_domain},
    {"cdc", DELTA_CDC, read_nothing},
    {"sidecar", DELTA_SIDECAR, read_sidecar},
    {"checkpointMetadata", DELTA_CHECKPOINT, read_checkpoint},
};

/* ---- lines -------------------------------------------------------------------------------------- */

static weir_status read_action(reader *r, yyjson_val *root, delta_action *out,
                               weir_error *err) {
  memset(out, 0, sizeof(*out));
  if (!yyjson_is_obj(root)) {
    return weir_error_set(err, WEIR_E_CORRUPT, 0, "%s, line %llu is no action", r->where,
                          (unsigned long long)r->line);
  }
  const struct kind *kind = NULL;
  yyjson_val *body = NULL;
  for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
    yyjson_val *found = field_of(root, kinds[i].name);
    if (!found) continue;
    if (kind || !yyjson_is_obj(found)) {
      return weir_error_set(err, WEIR_E_CORRUPT, 0,
                            "%s, line %llu: '%s' is not the one action of its line",
                            r->where, (unsigned long long)r->line, kinds[i].name);
    }
    kind = &kinds[i];
    body = found;
  }
  if (!kind) return WEIR_OK;
  r->action = kind->name;
  out->kind = kind->kind;
  return kind->read(r, body, out, err);
}

static weir_status read_line(reader *r, const char *line, size_t size, delta_each each,
                             void *ctx, weir_error *err) {
  delta_action action;
  yyjson_read_err why = {0};
  if (size > DELTA_LINE_MAX) {
    return weir_error_set(err, WEIR_E_CORRUPT, 0,
                          "%s, line %llu has %zu bytes, at most %u", r->where,
                          (unsigned long long)r->line, size, DELTA_LINE_MAX);
  }
  /* Numbers beyond 64 bits (in fields that nobody here knows) stay as they are written. The parser takes the
   * text as const without the in-situ flag. */
  yyjson_doc *doc = yyjson_read_opts((char *)(uintptr_t)line, size,
                                     YYJSON_READ_BIGNUM_AS_RAW, NULL, &why);
  if (!doc) {
    if (why.code == YYJSON_READ_ERROR_MEMORY_ALLOCATION) return delta_no_memory(err);
    return weir_error_set(err, WEIR_E_CORRUPT, 0,
                          "%s, line %llu is not JSON: %s at byte %zu", r->where,
                          (unsigned long long)r->line, why.msg, why.pos);
  }
  weir_status status = read_action(r, yyjson_doc_get_root(doc), &action, err);
  if (!status && action.kind) status = each(ctx, &action, err);
  yyjson_doc_free(doc);
  delta_arena_reset(&r->arena);
  return status;
}

static bool blank(const char *line, size_t size) {
  for (size_t i = 0; i < size; i++) {
    if (line[i] != ' ' && line[i] != '\t' && line[i] != '\r') return false;
  }
  return true;
}

weir_status delta_entry_read(const char *data, size_t size, const char *where,
                             delta_each each, void *ctx, weir_error *err) {
  reader r = {.where = where};
  weir_status status = WEIR_OK;
  for (size_t at = 0; !status && at < size;) {
    const char *end = memchr(data + at, '\n', size - at);
    size_t length = end ? (size_t)(end - data) - at : size - at;
    r.line++;
    if (!blank(data + at, length))
      status = read_line(&r, data + at, length, each, ctx, err);
    at += length + 1;
  }
  delta_arena_done(&r.arena);
  return status;
}

/* ---- copies ------------------------------------------------------------------------------------- */

bool delta_protocol_copy(delta_arena *arena, const delta_protocol *from,
                         delta_protocol *out) {
  *out = *from;
  return delta_texts_copy(arena, &from->reader_features, &out->reader_features) &&
         delta_texts_copy(arena, &from->writer_features, &out->writer_features);
}

bool delta_metadata_copy(delta_arena *arena, const delta_metadata *from,
                         delta_metadata *out) {
  *out = *from;
  return delta_text_copy(arena, from->id, &out->id) &&
         delta_text_copy(arena, from->name, &out->name) &&
         delta_text_copy(arena, from->description, &out->description) &&
         delta_text_copy(arena, from->provider, &out->provider) &&
         delta_text_copy(arena, from->schema, &out->schema) &&
         delta_pairs_copy(arena, &from->format_options, &out->format_options) &&
         delta_pairs_copy(arena, &from->configuration, &out->configuration) &&
         delta_texts_copy(arena, &from->partition_columns, &out->partition_columns);
}

bool delta_file_copy(delta_arena *arena, const delta_file *from, delta_file *out) {
  *out = *from;
  return delta_text_copy(arena, from->path, &out->path) &&
         delta_text_copy(arena, from->stats, &out->stats) &&
         delta_text_copy(arena, from->clustering_provider, &out->clustering_provider) &&
         delta_text_copy(arena, from->vector.storage, &out->vector.storage) &&
         delta_text_copy(arena, from->vector.path, &out->vector.path) &&
         delta_pairs_copy(arena, &from->partition_values, &out->partition_values) &&
         delta_pairs_copy(arena, &from->tags, &out->tags);
}
