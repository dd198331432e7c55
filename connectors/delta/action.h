/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The actions of a Delta table's log (PROTOCOL.md, section "Actions"), as a JSON log entry or a checkpoint's row
 * holds them. Unknown actions and unknown fields are passed over, as section "Protocol Evolution" demands; a known
 * field of another type is WEIR_E_CORRUPT and named.
 */
#ifndef CONNECTORS_DELTA_ACTION_H
#define CONNECTORS_DELTA_ACTION_H

#include <stdint.h>

#include "arena.h"

/* Of one line of an entry, and so of one action. */
#define DELTA_LINE_MAX (256u << 20)

typedef struct delta_long {
  int64_t v;
  bool present;
} delta_long;

enum {
  DELTA_NONE = 0, /* nothing that matters here: an unknown action */
  DELTA_COMMIT_INFO,
  DELTA_PROTOCOL,
  DELTA_METADATA,
  DELTA_TXN,
  DELTA_DOMAIN,
  DELTA_ADD,
  DELTA_REMOVE,
  DELTA_CDC,
  DELTA_SIDECAR,
  DELTA_CHECKPOINT
};

typedef struct delta_protocol {
  int32_t reader, writer; /* minReaderVersion, minWriterVersion */
  delta_texts reader_features, writer_features;
} delta_protocol;

typedef struct delta_metadata {
  delta_text id, name, description, provider, schema;
  delta_pairs format_options, configuration;
  delta_texts partition_columns;
  delta_long created_time; /* ms */
} delta_metadata;

typedef struct delta_txn {
  delta_text app_id;
  int64_t version;
  delta_long last_updated; /* ms */
} delta_txn;

typedef struct delta_domain {
  delta_text domain, configuration;
  bool removed;
} delta_domain;

/* Section "Deletion Vector Descriptor Schema". storage absent: the file has none. */
typedef struct delta_vector {
  delta_text storage, path;
  delta_long offset;
  int64_t size, cardinality;
} delta_vector;

/* add or remove */
typedef struct delta_file {
  delta_text path;     /* a URI, as it stands in the log */
  delta_long size;     /* always there for add */
  delta_long time;     /* ms; modificationTime, or deletionTimestamp */
  delta_long extended; /* of remove: extendedFileMetadata as 0 or 1 */
  bool data_change;
  delta_pairs partition_values, tags;
  delta_text stats; /* of add: JSON */
  delta_vector vector;
  delta_long base_row_id, default_row_commit_version;
  delta_text clustering_provider;
} delta_file;

typedef struct delta_action {
  int kind; /* DELTA_* */
  union {
    delta_long in_commit_timestamp; /* of COMMIT_INFO: ms */
    delta_protocol protocol;
    delta_metadata metadata;
    delta_txn txn;
    delta_domain domain;
    delta_file file;    /* ADD, REMOVE */
    delta_text sidecar; /* its path, a URI */
    int64_t checkpoint; /* version of the table that the checkpoint holds */
  } u;
} delta_action;

/* Called for every action in the order of the entry; what it is given lives until it returns. */
typedef weir_status (*delta_each)(void *ctx, const delta_action *action, weir_error *err);

/* A log entry, or a checkpoint in JSON: one action a line. `where` names it in messages. */
weir_status delta_entry_read(const char *data, size_t size, const char *where,
                             delta_each each, void *ctx, weir_error *err);

bool delta_protocol_copy(delta_arena *arena, const delta_protocol *from,
                         delta_protocol *out);
bool delta_metadata_copy(delta_arena *arena, const delta_metadata *from,
                         delta_metadata *out);
bool delta_file_copy(delta_arena *arena, const delta_file *from, delta_file *out);

/* One line each, with its line break, appended to *out: malloc'd, `*size` bytes long, NULL and 0 at the
 * beginning. */
typedef struct delta_lines {
  char *p;
  size_t size, capacity;
} delta_lines;

weir_status delta_lines_protocol(delta_lines *lines, const delta_protocol *protocol,
                                 weir_error *err);
weir_status delta_lines_metadata(delta_lines *lines, const delta_metadata *metadata,
                                 weir_error *err);
weir_status delta_lines_txn(delta_lines *lines, const delta_txn *txn, weir_error *err);
weir_status delta_lines_domain(delta_lines *lines, const delta_domain *domain,
                               weir_error *err);
weir_status delta_lines_add(delta_lines *lines, const delta_file *add, weir_error *err);
/* As a tombstone: without stats and tags. */
weir_status delta_lines_remove(delta_lines *lines, const delta_file *gone,
                               weir_error *err);
/* `text` is a line of JSON without its break. */
weir_status delta_lines_raw(delta_lines *lines, const char *text, size_t size,
                            weir_error *err);
void delta_lines_done(delta_lines *lines);

#endif
