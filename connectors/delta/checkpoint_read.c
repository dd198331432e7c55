/* SPDX-License-Identifier: Apache-2.0 */
#include <nanoarrow/nanoarrow.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/parquet_read.h>

#include "checkpoint.h"

enum { ROWS = 4096, BLOCK_SIZE = 1 << 20 };

/* ---- the object as a file ----------------------------------------------------------------------- */

/* The reader asks for pieces that lie behind one another, so a block is fetched at a time. */
typedef struct source {
  weir_object_store *store;
  const weir_call *call;
  const char *key;
  uint64_t at; /* of the block */
  weir_bytes block;
} source;

static weir_status fetch(source *s, uint64_t offset, size_t size, weir_error *err) {
  weir_bytes_release(&s->block);
  return weir_object_get(s->store, s->call, s->key, offset,
                         size > BLOCK_SIZE ? size : BLOCK_SIZE, &s->block, NULL, err);
}

static weir_status read_at(void *ctx, uint64_t offset, void *data, size_t size,
                           weir_error *err) {
  source *s = ctx;
  bool inside = s->block.release && offset >= s->at && offset - s->at <= s->block.size &&
                size <= s->block.size - (offset - s->at);
  if (!inside) {
    DELTA_TRY(fetch(s, offset, size, err));
    s->at = offset;
  }
  if (size > s->block.size - (offset - s->at)) {
    return weir_error_set(err, WEIR_E_CORRUPT, 0, "'%s' became shorter while it was read",
                          s->key);
  }
  if (size) memcpy(data, s->block.data + (offset - s->at), size);
  return WEIR_OK;
}

/* ---- columns ------------------------------------------------------------------------------------ */

/* One batch: the view of its columns, their schema, and what a message needs. */
typedef struct rows {
  const char *key;
  const struct ArrowSchema *schema;
  const struct ArrowArrayView *view;
  delta_arena *arena;
} rows;

/* A struct's row: where fields are looked for. */
typedef struct row {
  const rows *of;
  const char *action;
  const struct ArrowSchema *schema;
  const struct ArrowArrayView *view;
  int64_t at;
} row;

static weir_status corrupt(const row *r, const char *field, const char *want,
                           weir_error *err) {
  return weir_error_set(err, WEIR_E_CORRUPT, 0,
                        "checkpoint '%s': '%s.%s' is missing or not %s", r->of->key,
                        r->action, field, want);
}

/* NULL: no such field, or null in this row. */
static const struct ArrowArrayView *field_of(const row *r, const char *name) {
  for (int64_t i = 0; i < r->view->n_children; i++) {
    const struct ArrowArrayView *child = r->view->children[i];
    if (strcmp(r->schema->children[i]->name, name) != 0) continue;
    return ArrowArrayViewIsNull(child, r->at) ? NULL : child;
  }
  return NULL;
}

static bool is_text(const struct ArrowArrayView *view) {
  enum ArrowType t = view->storage_type;
  return t == NANOARROW_TYPE_STRING || t == NANOARROW_TYPE_LARGE_STRING ||
         t == NANOARROW_TYPE_STRING_VIEW;
}

static bool is_long(const struct ArrowArrayView *view) {
  return view->storage_type == NANOARROW_TYPE_INT64 ||
         view->storage_type == NANOARROW_TYPE_INT32;
}

static delta_text text_at(const struct ArrowArrayView *view, int64_t at) {
  if (ArrowArrayViewIsNull(view, at)) return (delta_text){0};
  struct ArrowStringView s = ArrowArrayViewGetStringUnsafe(view, at);
  return (delta_text){s.data ? s.data : "", (size_t)s.size_bytes};
}

static weir_status text_of(const row *r, const char *name, bool required, delta_text *out,
                           weir_error *err) {
  const struct ArrowArrayView *view = field_of(r, name);
  *out = (delta_text){0};
  if (!view && !required) return WEIR_OK;
  if (!view || !is_text(view)) return corrupt(r, name, "a string", err);
  *out = text_at(view, r->at);
  return WEIR_OK;
}

static weir_status long_of(const row *r, const char *name, bool required, delta_long *out,
                           weir_error *err) {
  const struct ArrowArrayView *view = field_of(r, name);
  *out = (delta_long){0};
  if (!view && !required) return WEIR_OK;
  if (!view || !is_long(view)) return corrupt(r, name, "a whole number", err);
  *out = (delta_long){ArrowArrayViewGetIntUnsafe(view, r->at), true};
  return WEIR_OK;
}

static weir_status bool_of(const row *r, const char *name, bool required, delta_long *out,
                           weir_error *err) {
  const struct ArrowArrayView *view = field_of(r, name);
  *out = (delta_long){0};
  if (!view && !required) return WEIR_OK;
  if (!view || view->storage_type != NANOARROW_TYPE_BOOL)
    return corrupt(r, name, "true or false", err);
  *out = (delta_long){ArrowArrayViewGetIntUnsafe(view, r->at) != 0, true};
  return WEIR_OK;
}

/* The slots of a list or map in its child: false when the view is neither. */
static bool slots_of(const struct ArrowArrayView *view, int64_t at, int64_t *first,
                     int64_t *n) {
  enum ArrowType t = view->storage_type;
  if (t != NANOARROW_TYPE_LIST && t != NANOARROW_TYPE_LARGE_LIST &&
      t != NANOARROW_TYPE_MAP)
    return false;
  at += view->offset; /* which this function of nanoarrow leaves to its caller */
  *first = ArrowArrayViewListChildOffset(view, at);
  *n = ArrowArrayViewListChildOffset(view, at + 1) - *first;
  return true;
}

static weir_status texts_of(const row *r, const char *name, bool required,
                            delta_texts *out, weir_error *err) {
  const struct ArrowArrayView *view = field_of(r, name);
  int64_t first = 0, n = 0;
  *out = (delta_texts){0};
  if (!view && !required) return WEIR_OK;
  if (!view || !slots_of(view, r->at, &first, &n) || !is_text(view->children[0]))
    return corrupt(r, name, "a list of strings", err);
  delta_text *v = delta_arena_take(r->of->arena, (size_t)n * sizeof(*v));
  if (!v) return delta_no_memory(err);
  for (int64_t i = 0; i < n; i++) v[i] = text_at(view->children[0], first + i);
  *out = (delta_texts){v, (size_t)n, true};
  return WEIR_OK;
}

static weir_status pairs_of(const row *r, const char *name, bool required,
                            delta_pairs *out, weir_error *err) {
  const struct ArrowArrayView *view = field_of(r, name);
  int64_t first = 0, n = 0;
  *out = (delta_pairs){0};
  if (!view && !required) return WEIR_OK;
  const struct ArrowArrayView *entries =
      view && slots_of(view, r->at, &first, &n) ? view->children[0] : NULL;
  if (!entries || entries->n_children != 2 || !is_text(entries->children[0]) ||
      !is_text(entries->children[1]))
    return corrupt(r, name, "a map of strings", err);
  delta_pair *v = delta_arena_take(r->of->arena, (size_t)n * sizeof(*v));
  if (!v) return delta_no_memory(err);
  first += entries->offset;
  for (int64_t i = 0; i < n; i++)
    v[i] = (delta_pair){text_at(entries->children[0], first + i),
                        text_at(entries->children[1], first + i)};
  *out = (delta_pairs){v, (size_t)n, true};
  return WEIR_OK;
}

/* A struct within; *there says whether it is not null. */
static weir_status struct_of(const row *r, const char *name, row *out, bool *there,
                             weir_error *err) {
  const struct ArrowArrayView *view = field_of(r, name);
  *there = view != NULL;
  if (!view) return WEIR_OK;
  if (view->storage_type != NANOARROW_TYPE_STRUCT)
    return corrupt(r, name, "a struct", err);
  *out = (row){r->of, r->action, NULL, view, r->at + view->offset};
  for (int64_t i = 0; i < r->view->n_children; i++) {
    if (r->view->children[i] == view) out->schema = r->schema->children[i];
  }
  return WEIR_OK;
}

/* ---- actions ------------------------------------------------------------------------------------ */

static weir_status read_protocol(const row *r, delta_action *out, weir_error *err) {
  delta_protocol *p = &out->u.protocol;
  delta_long reader, writer;
  DELTA_TRY(long_of(r, "minReaderVersion", true, &reader, err));
  DELTA_TRY(long_of(r, "minWriterVersion", true, &writer, err));
  if (reader.v < 1 || reader.v > INT32_MAX || writer.v < 1 || writer.v > INT32_MAX)
    return corrupt(r, "minReaderVersion", "a version from 1 on", err);
  p->reader = (int32_t)reader.v;
  p->writer = (int32_t)writer.v;
  DELTA_TRY(texts_of(r, "readerFeatures", false, &p->reader_features, err));
  return texts_of(r, "writerFeatures", false, &p->writer_features, err);
}

static weir_status read_metadata(const row *r, delta_action *out, weir_error *err) {
  delta_metadata *m = &out->u.metadata;
  row format;
  bool there = false;
  DELTA_TRY(struct_of(r, "format", &format, &there, err));
  if (!there) return corrupt(r, "format", "a format", err);
  DELTA_TRY(text_of(r, "id", true, &m->id, err));
  DELTA_TRY(text_of(r, "name", false, &m->name, err));
  DELTA_TRY(text_of(r, "description", false, &m->description, err));
  DELTA_TRY(text_of(&format, "provider", true, &m->provider, err));
  DELTA_TRY(pairs_of(&format, "options", false, &m->format_options, err));
  DELTA_TRY(text_of(r, "schemaString", true, &m->schema, err));
  DELTA_TRY(texts_of(r, "partitionColumns", true, &m->partition_columns, err));
  DELTA_TRY(pairs_of(r, "configuration", false, &m->configuration, err));
  return long_of(r, "createdTime", false, &m->created_time, err);
}

static weir_status read_txn(const row *r, delta_action *out, weir_error *err) {
  delta_long version;
  DELTA_TRY(text_of(r, "appId", true, &out->u.txn.app_id, err));
  DELTA_TRY(long_of(r, "version", true, &version, err));
  out->u.txn.version = version.v;
  return long_of(r, "lastUpdated", false, &out->u.txn.last_updated, err);
}

static weir_status read_domain(const row *r, delta_action *out, weir_error *err) {
  delta_long removed;
  DELTA_TRY(text_of(r, "domain", true, &out->u.domain.domain, err));
  DELTA_TRY(text_of(r, "configuration", true, &out->u.domain.configuration, err));
  DELTA_TRY(bool_of(r, "removed", false, &removed, err));
  out->u.domain.removed = removed.v != 0;
  return WEIR_OK;
}

static weir_status read_vector(const row *r, delta_vector *out, weir_error *err) {
  row vector;
  bool there = false;
  delta_long size, cardinality;
  DELTA_TRY(struct_of(r, "deletionVector", &vector, &there, err));
  if (!there) return WEIR_OK;
  DELTA_TRY(text_of(&vector, "storageType", true, &out->storage, err));
  DELTA_TRY(text_of(&vector, "pathOrInlineDv", true, &out->path, err));
  DELTA_TRY(long_of(&vector, "offset", false, &out->offset, err));
  DELTA_TRY(long_of(&vector, "sizeInBytes", true, &size, err));
  DELTA_TRY(long_of(&vector, "cardinality", true, &cardinality, err));
  out->size = size.v;
  out->cardinality = cardinality.v;
  return WEIR_OK;
}

static weir_status read_file(const row *r, delta_action *out, weir_error *err) {
  delta_file *f = &out->u.file;
  bool add = out->kind == DELTA_ADD;
  delta_long data_change;
  DELTA_TRY(text_of(r, "path", true, &f->path, err));
  DELTA_TRY(pairs_of(r, "partitionValues", add, &f->partition_values, err));
  DELTA_TRY(long_of(r, "size", add, &f->size, err));
  if (f->size.v < 0) return corrupt(r, "size", "a size", err);
  DELTA_TRY(
      long_of(r, add ? "modificationTime" : "deletionTimestamp", add, &f->time, err));
  DELTA_TRY(bool_of(r, "dataChange", true, &data_change, err));
  DELTA_TRY(bool_of(r, "extendedFileMetadata", false, &f->extended, err));
  DELTA_TRY(text_of(r, "stats", false, &f->stats, err));
  DELTA_TRY(pairs_of(r, "tags", false, &f->tags, err));
  DELTA_TRY(read_vector(r, &f->vector, err));
  DELTA_TRY(long_of(r, "baseRowId", false, &f->base_row_id, err));
  DELTA_TRY(
      long_of(r, "defaultRowCommitVersion", false, &f->default_row_commit_version, err));
  DELTA_TRY(text_of(r, "clusteringProvider", false, &f->clustering_provider, err));
  f->data_change = data_change.v != 0;
  return WEIR_OK;
}

static weir_status read_sidecar(const row *r, delta_action *out, weir_error *err) {
  return text_of(r, "path", true, &out->u.sidecar, err);
}

static weir_status read_version(const row *r, delta_action *out, weir_error *err) {
  delta_long version;
  DELTA_TRY(long_of(r, "version", true, &version, err));
  out->u.checkpoint = version.v;
  return WEIR_OK;
}

static const struct kind {
  const char *name;
  int kind;
  weir_status (*read)(const row *r, delta_action *out, weir_error *err);
} kinds[] = {
    /* those without DELTA_CHECKPOINT_FILES first */
    {"protocol", DELTA_PROTOCOL, read_protocol},
    {"metaData", DELTA_METADATA, read_metadata},
    {"txn", DELTA_TXN, read_txn},
    {"domainMetadata", DELTA_DOMAIN, read_domain},
    {"checkpointMetadata", DELTA_CHECKPOINT, read_version},
    {"sidecar", DELTA_SIDECAR, read_sidecar},
    {"add", DELTA_ADD, read_file},
    {"remove", DELTA_REMOVE, read_file},
};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]), KINDS_SMALL = KINDS - 2 };

/* ---- rows --------------------------------------------------------------------------------------- */

static weir_status read_row(const rows *of, const int *kind_of, int64_t at,
                            delta_each each, void *ctx, weir_error *err) {
  delta_action action = {0};
  for (int64_t i = 0; i < of->view->n_children; i++) {
    const struct ArrowArrayView *view = of->view->children[i];
    if (kind_of[i] < 0 || ArrowArrayViewIsNull(view, at)) continue;
    const struct kind *kind = &kinds[kind_of[i]];
    row r = {of, kind->name, of->schema->children[i], view, at + view->offset};
    if (action.kind) return corrupt(&r, "*", "the one action of its row", err);
    action.kind = kind->kind;
    DELTA_TRY(kind->read(&r, &action, err));
  }
  if (!action.kind) return WEIR_OK;
  weir_status status = each(ctx, &action, err);
  delta_arena_reset(of->arena);
  return status;
}

static weir_status read_batch(const char *key, weir_batch *batch, const int *kind_of,
                              delta_arena *arena, delta_each each, void *ctx,
                              weir_error *err) {
  const struct ArrowSchema *schema = weir_schema_arrow(weir_batch_schema(batch));
  struct ArrowArrayView view;
  weir_status status = WEIR_OK;
  if (ArrowArrayViewInitFromSchema(&view, schema, NULL) ||
      ArrowArrayViewSetArray(&view, weir_batch_array(batch), NULL)) {
    ArrowArrayViewReset(&view);
    return weir_error_set(err, WEIR_E_CORRUPT, 0, "checkpoint '%s' cannot be read", key);
  }
  rows of = {key, schema, &view, arena};
  for (int64_t i = 0; !status && i < weir_batch_rows(batch); i++)
    status = read_row(&of, kind_of, i, each, ctx, err);
  ArrowArrayViewReset(&view);
  return status;
}

/* Which columns of the file are actions: -1 for others. A column that is no struct is one of nobody's. */
static weir_status find_kinds(const weir_parquet_reader *reader, const char *key,
                              int kind_of[KINDS], weir_error *err) {
  const struct ArrowSchema *schema =
      weir_schema_arrow(weir_parquet_reader_schema(reader));
  if (schema->n_children > KINDS) {
    return weir_error_set(err, WEIR_E_CORRUPT, 0,
                          "checkpoint '%s' has two columns of one name", key);
  }
  for (int64_t i = 0; i < schema->n_children; i++) {
    kind_of[i] = -1;
    for (int j = 0; j < KINDS; j++) {
      if (strcmp(schema->children[i]->name, kinds[j].name) == 0) kind_of[i] = j;
    }
    if (kind_of[i] < 0 || strcmp(schema->children[i]->format, "+s") != 0) {
      return weir_error_set(err, WEIR_E_CORRUPT, 0,
                            "checkpoint '%s': column '%s' is no struct", key,
                            schema->children[i]->name);
    }
  }
  return WEIR_OK;
}

/* The columns to read: of those that are wanted the ones that are there. */
static weir_status open_reader(source *s, uint64_t size, uint32_t flags,
                               weir_parquet_reader **out, weir_error *err) {
  const char *columns[KINDS];
  weir_parquet_read_options options = {.struct_size = sizeof(options),
                                       .batch_rows = ROWS};
  weir_parquet_reader *all = NULL;
  DELTA_TRY(weir_parquet_reader_new(read_at, s, size, s->key, &options, &all, err));
  const struct ArrowSchema *schema = weir_schema_arrow(weir_parquet_reader_schema(all));
  int wanted = flags & DELTA_CHECKPOINT_FILES ? KINDS : KINDS_SMALL;
  for (int j = 0; j < wanted; j++) {
    int64_t i = 0;
    while (i < schema->n_children &&
           strcmp(schema->children[i]->name, kinds[j].name) != 0)
      i++;
    if (i < schema->n_children) columns[options.n_columns++] = kinds[j].name;
  }
  weir_parquet_reader_free(all);
  *out = NULL;
  if (!options.n_columns) return WEIR_OK; /* a file without an action of that kind */
  options.columns = columns;
  return weir_parquet_reader_new(read_at, s, size, s->key, &options, out, err);
}

weir_status delta_checkpoint_read(weir_object_store *store, const weir_call *call,
                                  const char *key, uint32_t flags, delta_each each,
                                  void *ctx, weir_error *err) {
  source s = {.store = store, .call = call, .key = key};
  weir_object_info info = {0};
  weir_parquet_reader *reader = NULL;
  delta_arena arena = {0};
  weir_batch *batch = NULL;
  int kind_of[KINDS];
  weir_status status = WEIR_OK;
  DELTA_GOTO(status, weir_object_head(store, call, key, &info, err));
  DELTA_GOTO(status, open_reader(&s, info.size, flags, &reader, err));
  if (!reader) goto out;
  DELTA_GOTO(status, find_kinds(reader, key, kind_of, err));
  for (;;) {
    DELTA_GOTO(status, weir_parquet_reader_next(reader, &batch, err));
    if (!batch) break;
    status = read_batch(key, batch, kind_of, &arena, each, ctx, err);
    weir_batch_unref(batch);
    if (status) break;
  }
out:
  delta_arena_done(&arena);
  weir_parquet_reader_free(reader);
  weir_bytes_release(&s.block);
  return status;
}
