/* SPDX-License-Identifier: Apache-2.0 */
/* A classic checkpoint following the V1 spec (PROTOCOL.md, sections "Checkpoints", "Action Reconciliation"). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <weir/ndjson.h>
#include <weir/parquet.h>

#include "log.h"

/* Section "Checkpoint Schema". */
static const char *const column_names[] = {"protocol",       "metaData", "txn",
                                           "domainMetadata", "add",      "remove"};
#define VECTOR                                                                      \
  "deletionVector: struct<storageType: utf8, pathOrInlineDv: utf8, offset: int32, " \
  "sizeInBytes: int32, cardinality: int64>"
static const char *const column_types[] = {
    "struct<minReaderVersion: int32, minWriterVersion: int32, readerFeatures: "
    "list<utf8>, writerFeatures: list<utf8>>",
    "struct<id: utf8, name: utf8, description: utf8, format: struct<provider: utf8, "
    "options: map<utf8, utf8>>, schemaString: utf8, partitionColumns: list<utf8>, "
    "createdTime: int64, configuration: map<utf8, utf8>>",
    "struct<appId: utf8, version: int64, lastUpdated: int64>",
    "struct<domain: utf8, configuration: utf8, removed: bool>",
    "struct<path: utf8, partitionValues: map<utf8, utf8>, size: int64, "
    "modificationTime: int64, dataChange: bool, stats: utf8, tags: map<utf8, "
    "utf8>, " VECTOR
    ", baseRowId: int64, defaultRowCommitVersion: int64, clusteringProvider: utf8>",
    "struct<path: utf8, deletionTimestamp: int64, dataChange: bool, "
    "extendedFileMetadata: bool, partitionValues: map<utf8, utf8>, size: int64, " VECTOR
    ", baseRowId: int64, defaultRowCommitVersion: int64>"};
enum { COLUMNS = sizeof(column_names) / sizeof(column_names[0]) };

/* ---- the file ----------------------------------------------------------------------------------- */

typedef struct file {
  weir_schema *schema;
  weir_ndjson_decoder *rows;
  weir_parquet_writer *parquet;
  delta_lines line, bytes;
  uint64_t actions, adds;
} file;

static weir_status keep_bytes(void *ctx, const void *data, size_t size, weir_error *err) {
  delta_lines *bytes = ctx;
  DELTA_TRY(delta_lines_raw(bytes, data, size, err));
  bytes->size--; /* the line break that it adds */
  return WEIR_OK;
}

static void file_done(file *f) {
  weir_parquet_writer_free(f->parquet);
  weir_ndjson_decoder_free(f->rows);
  weir_schema_unref(f->schema);
  delta_lines_done(&f->line);
  delta_lines_done(&f->bytes);
}

static weir_status file_begin(file *f, weir_error *err) {
  weir_ndjson_options options = {.struct_size = sizeof(options), .max_line = 1u << 30};
  DELTA_TRY(weir_schema_from_types(column_names, column_types, COLUMNS, &f->schema, err));
  DELTA_TRY(weir_ndjson_decoder_new(f->schema, &options, &f->rows, err));
  return weir_parquet_writer_new(f->schema, NULL, keep_bytes, &f->bytes, &f->parquet,
                                 err);
}

static weir_status file_take_batch(file *f, weir_batch *batch, weir_error *err) {
  if (!batch) return WEIR_OK;
  weir_status status = weir_parquet_writer_write(f->parquet, batch, err);
  weir_batch_unref(batch);
  return status;
}

static weir_status file_add(file *f, const delta_action *action, weir_error *err) {
  f->line.size = 0;
  switch (action->kind) {
    case DELTA_PROTOCOL:
      DELTA_TRY(delta_lines_protocol(&f->line, &action->u.protocol, err));
      break;
    case DELTA_METADATA:
      DELTA_TRY(delta_lines_metadata(&f->line, &action->u.metadata, err));
      break;
    case DELTA_TXN:
      DELTA_TRY(delta_lines_txn(&f->line, &action->u.txn, err));
      break;
    case DELTA_DOMAIN:
      DELTA_TRY(delta_lines_domain(&f->line, &action->u.domain, err));
      break;
    case DELTA_ADD:
      DELTA_TRY(delta_lines_add(&f->line, &action->u.file, err));
      f->adds++;
      break;
    default:
      DELTA_TRY(delta_lines_remove(&f->line, &action->u.file, err));
  }
  f->actions++;
  for (size_t at = 0; at < f->line.size;) {
    size_t used = 0;
    weir_batch *batch = NULL;
    DELTA_TRY(weir_ndjson_decoder_feed(f->rows, f->line.p + at, f->line.size - at, 0,
                                       &used, &batch, err));
    DELTA_TRY(file_take_batch(f, batch, err));
    at += used;
  }
  return WEIR_OK;
}

static weir_status file_finish(file *f, weir_error *err) {
  weir_batch *batch = NULL;
  DELTA_TRY(weir_ndjson_decoder_flush(f->rows, &batch, err));
  DELTA_TRY(file_take_batch(f, batch, err));
  return weir_parquet_writer_finish(f->parquet, NULL, err);
}

/* ---- what the entries say ----------------------------------------------------------------------- */

/* The newest action of each thing that reconciles: found again by its key. */
typedef struct state {
  delta_arena arena;
  delta_action *v;
  size_t n, capacity;
  size_t *slots; /* index + 1; 0: free */
  size_t n_slots;
  file out;
  int64_t oldest_tombstone; /* ms */
  bool keep_tombstones, keep_stats;
} state;

static void state_done(state *s) {
  delta_arena_done(&s->arena);
  free(s->v);
  free(s->slots);
  file_done(&s->out);
}

/* add and remove are of one kind here: a logical file, by its path and deletion vector. */
static int group_of(const delta_action *a) {
  return a->kind == DELTA_REMOVE ? DELTA_ADD : a->kind;
}

static delta_text key_of(const delta_action *a) {
  if (a->kind == DELTA_TXN) return a->u.txn.app_id;
  if (a->kind == DELTA_DOMAIN) return a->u.domain.domain;
  if (group_of(a) == DELTA_ADD) return a->u.file.path;
  return (delta_text){"", 0};
}

/* deletionVector.uniqueId is its storage type, path and offset: section "Derived Fields". */
static bool same_thing(const delta_action *a, const delta_action *b) {
  if (group_of(a) != group_of(b) || !delta_text_same(key_of(a), key_of(b))) return false;
  if (group_of(a) != DELTA_ADD) return true;
  const delta_vector *x = &a->u.file.vector, *y = &b->u.file.vector;
  return delta_text_same(x->storage, y->storage) && delta_text_same(x->path, y->path) &&
         x->offset.present == y->offset.present && x->offset.v == y->offset.v;
}

static uint64_t hash_of(const delta_action *a) {
  delta_text key = key_of(a);
  uint64_t hash = 0xcbf29ce484222325u ^ (uint64_t)group_of(a); /* FNV-1a */
  for (size_t i = 0; i < key.n; i++) hash = (hash ^ (uint8_t)key.p[i]) * 0x100000001b3u;
  return hash;
}

/* The slot of the thing, or the free one where it belongs; NULL without any slots. */
static size_t *find(const state *s, const delta_action *a) {
  if (!s->n_slots) return NULL;
  size_t at = hash_of(a) & (s->n_slots - 1);
  while (s->slots[at] && !same_thing(&s->v[s->slots[at] - 1], a))
    at = (at + 1) & (s->n_slots - 1);
  return &s->slots[at];
}

static weir_status grow(state *s, weir_error *err) {
  size_t n = s->n_slots ? 2 * s->n_slots : 256;
  size_t *slots = calloc(n, sizeof(*slots));
  delta_action *v = realloc(s->v, n / 2 * sizeof(*v));
  if (v) s->v = v;
  if (!slots || !v) {
    free(slots);
    return delta_no_memory(err);
  }
  free(s->slots);
  s->slots = slots;
  s->n_slots = n;
  s->capacity = n / 2;
  for (size_t i = 0; i < s->n; i++) *find(s, &s->v[i]) = i + 1;
  return WEIR_OK;
}

static bool copy_action(state *s, const delta_action *from, delta_action *out) {
  *out = *from;
  switch (from->kind) {
    case DELTA_PROTOCOL:
      return delta_protocol_copy(&s->arena, &from->u.protocol, &out->u.protocol);
    case DELTA_METADATA:
      return delta_metadata_copy(&s->arena, &from->u.metadata, &out->u.metadata);
    case DELTA_TXN:
      return delta_text_copy(&s->arena, from->u.txn.app_id, &out->u.txn.app_id);
    case DELTA_DOMAIN:
      return delta_text_copy(&s->arena, from->u.domain.domain, &out->u.domain.domain) &&
             delta_text_copy(&s->arena, from->u.domain.configuration,
                             &out->u.domain.configuration);
    default:
      return delta_file_copy(&s->arena, &from->u.file, &out->u.file);
  }
}

static bool reconciles(int kind) {
  return kind == DELTA_PROTOCOL || kind == DELTA_METADATA || kind == DELTA_TXN ||
         kind == DELTA_DOMAIN || kind == DELTA_ADD || kind == DELTA_REMOVE;
}

static weir_status take(void *ctx, const delta_action *action, weir_error *err) {
  state *s = ctx;
  if (!reconciles(action->kind)) return WEIR_OK;
  if (s->n == s->capacity) DELTA_TRY(grow(s, err));
  size_t *slot = find(s, action);
  delta_action copy;
  if (!copy_action(s, action, &copy)) return delta_no_memory(err);
  if (!*slot) *slot = ++s->n;
  s->v[*slot - 1] = copy;
  return WEIR_OK;
}

/* ---- writing ------------------------------------------------------------------------------------ */

static weir_status put_action(state *s, const delta_action *action, weir_error *err) {
  if (action->kind == DELTA_DOMAIN && action->u.domain.removed) return WEIR_OK;
  /* one without a time is as old as can be: the protocol's default is 0 */
  if (action->kind == DELTA_REMOVE && !s->keep_tombstones &&
      (!action->u.file.time.present || action->u.file.time.v < s->oldest_tombstone))
    return WEIR_OK;
  if (action->kind == DELTA_ADD && !s->keep_stats && action->u.file.stats.p) {
    delta_action without = *action;
    without.u.file.stats = (delta_text){0};
    return file_add(&s->out, &without, err);
  }
  return file_add(&s->out, action, err);
}

/* Of the old checkpoint what no entry speaks of. */
static weir_status put_old(void *ctx, const delta_action *action, weir_error *err) {
  state *s = ctx;
  if (!reconciles(action->kind)) return WEIR_OK;
  const size_t *slot = find(s, action);
  return slot && *slot ? WEIR_OK : put_action(s, action, err);
}

/* "interval 1 week"; -1: weir cannot tell, so that nothing is left out. */
static int64_t interval_ms(delta_text text) {
  static const struct {
    const char *unit;
    int64_t ms;
  } units[] = {{"week", 604800000}, {"day", 86400000}, {"hour", 3600000},
               {"minute", 60000},   {"second", 1000},  {"millisecond", 1}};
  char copy[64], *unit = NULL;
  if (!text.p) return 604800000;
  if (text.n >= sizeof(copy)) return -1;
  memcpy(copy, text.p, text.n);
  copy[text.n] = 0;
  const char *p = strncasecmp(copy, "interval ", 9) == 0 ? copy + 9 : copy;
  if (*p < '0' || *p > '9') return -1;
  long long n = strtoll(p, &unit, 10);
  size_t size = strlen(unit);
  if (n > 1000000 || size < 2 || *unit++ != ' ') return -1;
  size -= 1 + (unit[size - 2] == 's' || unit[size - 2] == 'S');
  for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
    if (size == strlen(units[i].unit) && strncasecmp(unit, units[i].unit, size) == 0)
      return n * units[i].ms;
  }
  return -1;
}

static bool is_text(delta_text value, const char *word) {
  return value.p && value.n == strlen(word) && strncasecmp(value.p, word, value.n) == 0;
}

/* What the table's properties say of its checkpoints. */
static weir_status read_properties(state *s, const delta_pairs *properties,
                                   int64_t now_ms, weir_error *err) {
  if (is_text(delta_pairs_get(properties, "delta.checkpoint.writeStatsAsStruct"),
              "true")) {
    return weir_error_set(err, WEIR_E_NOT_IMPLEMENTED, 0,
                          "the table has delta.checkpoint.writeStatsAsStruct, and weir "
                          "writes no such checkpoints");
  }
  s->keep_stats =
      !is_text(delta_pairs_get(properties, "delta.checkpoint.writeStatsAsJson"), "false");
  int64_t retention =
      interval_ms(delta_pairs_get(properties, "delta.deletedFileRetentionDuration"));
  s->keep_tombstones = retention < 0;
  s->oldest_tombstone = now_ms - (retention < 0 ? 0 : retention);
  return WEIR_OK;
}

/* The metadata as of the checkpoint to be written: an entry's, or the old checkpoint's. */
static weir_status find_properties(void *ctx, const delta_action *action,
                                   weir_error *err) {
  state *s = ctx;
  const size_t *slot = find(s, action);
  if (action->kind != DELTA_METADATA || (slot && *slot)) return WEIR_OK;
  return take(ctx, action, err);
}

static weir_status put_all(state *s, weir_object_store *store, const weir_call *call,
                           const delta_segment *segment, int64_t now_ms,
                           weir_error *err) {
  const delta_action wanted = {.kind = DELTA_METADATA};
  DELTA_TRY(delta_log_read_checkpoint(store, call, segment, 0, find_properties, s, err));
  const size_t *slot = find(s, &wanted);
  if (!slot || !*slot) {
    return weir_error_set(err, WEIR_E_CORRUPT, 0,
                          "the log of the table at '%s' has no metaData action",
                          weir_object_store_location(store));
  }
  DELTA_TRY(read_properties(s, &s->v[*slot - 1].u.metadata.configuration, now_ms, err));
  DELTA_TRY(file_begin(&s->out, err));
  for (size_t i = 0; i < s->n; i++) DELTA_TRY(put_action(s, &s->v[i], err));
  DELTA_TRY(delta_log_read_checkpoint(store, call, segment, DELTA_CHECKPOINT_FILES,
                                      put_old, s, err));
  return file_finish(&s->out, err);
}

weir_status delta_log_write_checkpoint(weir_object_store *store, const weir_call *call,
                                       const delta_segment *segment, int64_t version,
                                       int64_t now_ms, weir_error *err) {
  state s = {0};
  weir_status status = WEIR_OK;
  char key[DELTA_KEY_SIZE], hint[160];
  for (int64_t v = segment->checkpoint + 1; v <= version; v++)
    DELTA_GOTO(status, delta_log_read_entry(store, call, v, take, &s, err));
  DELTA_GOTO(status, put_all(&s, store, call, segment, now_ms, err));
  snprintf(key, sizeof(key), "_delta_log/%020" PRId64 ".checkpoint.parquet", version);
  DELTA_GOTO(status, weir_object_put(store, call, key, s.out.bytes.p, s.out.bytes.size,
                                     NULL, NULL, err));
  snprintf(hint, sizeof(hint),
           "{\"version\":%" PRId64 ",\"size\":%" PRIu64
           ",\"sizeInBytes\":%zu,\"numOfAddFiles\":%" PRIu64 "}",
           version, s.out.actions, s.out.bytes.size, s.out.adds);
  status = weir_object_put(store, call, "_delta_log/_last_checkpoint", hint, strlen(hint),
                           NULL, NULL, err);
out:
  state_done(&s);
  return status;
}
