/* SPDX-License-Identifier: Apache-2.0 */
/* The SQLite store: everything at once, every row checked against its sum. */
#include <string.h>

#include "store/sqlite.h"

typedef struct load_ctx {
  sq_store *store;
  store_state *state;
  weir_store_attempt *attempts; /* those of the state, to fill */
  size_t n_attempts;
  size_t at;       /* attempt that the rows being read belong to: both are in order */
  size_t *entries; /* descriptors that each attempt's parts announce */
} load_ctx;

typedef weir_status (*load_row)(load_ctx *load, sqlite3_stmt *s, weir_error *err);

static weir_status load_corrupt(load_ctx *load, const char *what, uint64_t attempt,
                                weir_error *err) {
  return weir_error_set(err, WEIR_E_CORRUPT, 0, "checkpoint store %s: %s (attempt %llu)",
                        load->store->path, what, (unsigned long long)attempt);
}

static weir_status load_rows(load_ctx *load, sq_statement id, const char *table,
                             load_row row, weir_error *err) {
  sqlite3_stmt *s = NULL;
  bool more = false;
  weir_status status = WEIR_OK;
  load->at = 0;
  BASE_TRY(sq_get(load->store, id, &s, err));
  for (;;) {
    status = sq_step(load->store, s, &more, err);
    if (status || !more) break;
    status = sq_verify(load->store, s, table, err);
    if (!status) status = row(load, s, err);
    if (status) break;
  }
  sqlite3_reset(s);
  return status;
}

static weir_status load_text(load_ctx *load, sqlite3_stmt *s, int column,
                             const char **out, weir_error *err) {
  const unsigned char *text = sqlite3_column_text(s, column);
  if (!text) return sq_error(load->store, SQLITE_NOMEM, "reading a text", err);
  *out =
      store_state_text(load->state, text, (size_t)sqlite3_column_bytes(s, column), err);
  return *out ? WEIR_OK : WEIR_E_NOMEM;
}

static weir_status load_blob(load_ctx *load, sqlite3_stmt *s, int column,
                             const uint8_t **out, size_t *size, weir_error *err) {
  const void *data = sqlite3_column_blob(s, column);
  *size = (size_t)sqlite3_column_bytes(s, column);
  if (*size && !data) return sq_error(load->store, SQLITE_NOMEM, "reading bytes", err);
  *out = (const uint8_t *)store_state_text(load->state, data, *size, err);
  return *out ? WEIR_OK : WEIR_E_NOMEM;
}

static weir_status load_digest(load_ctx *load, sqlite3_stmt *s, int column,
                               uint8_t out[WEIR_DIGEST_SIZE], weir_error *err) {
  if (sqlite3_column_bytes(s, column) != WEIR_DIGEST_SIZE) {
    return load_corrupt(load, "a digest has another length than 32 bytes", 0, err);
  }
  memcpy(out, sqlite3_column_blob(s, column), WEIR_DIGEST_SIZE);
  return WEIR_OK;
}

static uint64_t load_u64(sqlite3_stmt *s, int column) {
  return (uint64_t)sqlite3_column_int64(s, column);
}

static weir_status load_meta(load_ctx *load, sqlite3_stmt *s, weir_error *err) {
  weir_store_state *pub = store_state_public(load->state);
  BASE_TRY(load_text(load, s, 0, &pub->pipeline, err));
  if (sqlite3_column_bytes(s, 1) != WEIR_UUID_SIZE) {
    return load_corrupt(load, "the deployment is no UUID", 0, err);
  }
  memcpy(pub->deployment, sqlite3_column_blob(s, 1), WEIR_UUID_SIZE);
  return WEIR_OK;
}

static weir_status load_lease(load_ctx *load, sqlite3_stmt *s, weir_error *err) {
  (void)err;
  weir_store_state *pub = store_state_public(load->state);
  pub->token = load_u64(s, 0);
  pub->last_attempt = load_u64(s, 1);
  return WEIR_OK;
}

static weir_status load_attempt(load_ctx *load, sqlite3_stmt *s, weir_error *err) {
  void *array = load->attempts;
  BASE_TRY(store_state_grow(load->state, &array, load->n_attempts,
                            sizeof(*load->attempts), err));
  load->attempts = array;
  weir_store_attempt *a = &load->attempts[load->n_attempts];
  *a = (weir_store_attempt){.attempt = load_u64(s, 0),
                            .state = sqlite3_column_int(s, 1),
                            .token = load_u64(s, 2)};
  if (a->state < WEIR_ATTEMPT_RESERVED || a->state > WEIR_ATTEMPT_ABORT) {
    return load_corrupt(load, "an attempt is in an unknown state", a->attempt, err);
  }
  load->n_attempts++;
  return WEIR_OK;
}

/* The attempt of a part or entry; all come in the attempts' order. */
static weir_store_attempt *load_find(load_ctx *load, uint64_t attempt) {
  while (load->at < load->n_attempts && load->attempts[load->at].attempt < attempt)
    load->at++;
  if (load->at == load->n_attempts || load->attempts[load->at].attempt != attempt)
    return NULL;
  return &load->attempts[load->at];
}

/* Columns from `column` on: token, digest, has_rows, rows, bytes. */
static weir_status load_sink(load_ctx *load, sqlite3_stmt *s, int column,
                             weir_store_sink *sink, weir_error *err) {
  sink->cursor.token = load_u64(s, column);
  BASE_TRY(load_digest(load, s, column + 1, sink->cursor.digest, err));
  sink->has_rows = sqlite3_column_int(s, column + 2);
  sink->rows = load_u64(s, column + 3);
  sink->bytes = load_u64(s, column + 4);
  return load_text(load, s, 1, &sink->sink_id, err);
}

static weir_status load_part(load_ctx *load, sqlite3_stmt *s, weir_error *err) {
  uint64_t attempt = load_u64(s, 0);
  weir_store_attempt *a = load_find(load, attempt);
  if (!a || a->state != WEIR_ATTEMPT_COMMIT) {
    return load_corrupt(load, "a sink's part of a decision has no decision", attempt,
                        err);
  }
  weir_store_sink sink = {.cursor.checkpoint = attempt};
  BASE_TRY(load_sink(load, s, 2, &sink, err));
  void *array = (void *)a->sinks;
  BASE_TRY(store_state_grow(load->state, &array, a->n_sinks, sizeof(sink), err));
  ((weir_store_sink *)array)[a->n_sinks++] = sink;
  a->sinks = array;
  load->entries[load->at] += (size_t)load_u64(s, 7);
  return WEIR_OK;
}

static weir_status load_entry(load_ctx *load, sqlite3_stmt *s, weir_error *err) {
  uint64_t attempt = load_u64(s, 0);
  int kind = sqlite3_column_int(s, 1);
  weir_store_attempt *a = load_find(load, attempt);
  if (!a || (kind == SQ_DESCRIPTOR) != (a->state == WEIR_ATTEMPT_COMMIT)) {
    return load_corrupt(load, "a descriptor or intent has no attempt", attempt, err);
  }
  weir_store_entry entry = {.participant_id = load_u64(s, 3),
                            .present = sqlite3_column_int(s, 4)};
  BASE_TRY(load_text(load, s, 2, &entry.sink_id, err));
  if (entry.present) BASE_TRY(load_blob(load, s, 5, &entry.data, &entry.size, err));
  const weir_store_entry **list = kind == SQ_DESCRIPTOR ? &a->descriptors : &a->intents;
  size_t *n = kind == SQ_DESCRIPTOR ? &a->n_descriptors : &a->n_intents;
  void *array = (void *)*list;
  BASE_TRY(store_state_grow(load->state, &array, *n, sizeof(entry), err));
  ((weir_store_entry *)array)[(*n)++] = entry;
  *list = array;
  return WEIR_OK;
}

static weir_status load_cursor(load_ctx *load, sqlite3_stmt *s, weir_error *err) {
  weir_store_state *pub = store_state_public(load->state);
  bool seen = sqlite3_column_int(s, 0) == SQ_SEEN;
  const weir_store_sink **list = seen ? &pub->seen : &pub->decided;
  size_t *n = seen ? &pub->n_seen : &pub->n_decided;
  weir_store_sink sink = {.cursor.checkpoint = load_u64(s, 2)};
  BASE_TRY(load_sink(load, s, 3, &sink, err));
  void *array = (void *)*list;
  BASE_TRY(store_state_grow(load->state, &array, *n, sizeof(sink), err));
  ((weir_store_sink *)array)[(*n)++] = sink;
  *list = array;
  return WEIR_OK;
}

static weir_status load_position(load_ctx *load, sqlite3_stmt *s, weir_error *err) {
  weir_store_state *pub = store_state_public(load->state);
  weir_store_position p = {.present = sqlite3_column_int(s, 1),
                           .rows = load_u64(s, 3),
                           .lost = load_u64(s, 4)};
  BASE_TRY(load_text(load, s, 0, &p.source, err));
  if (p.present) BASE_TRY(load_blob(load, s, 2, &p.data, &p.size, err));
  void *array = (void *)pub->positions;
  BASE_TRY(store_state_grow(load->state, &array, pub->n_positions, sizeof(p), err));
  ((weir_store_position *)array)[pub->n_positions++] = p;
  pub->positions = array;
  return WEIR_OK;
}

static weir_status load_binding(load_ctx *load, sqlite3_stmt *s, weir_error *err) {
  weir_store_state *pub = store_state_public(load->state);
  weir_store_binding b = {0};
  BASE_TRY(load_text(load, s, 0, &b.sink_id, err));
  BASE_TRY(load_blob(load, s, 1, &b.data, &b.size, err));
  void *array = (void *)pub->bindings;
  BASE_TRY(store_state_grow(load->state, &array, pub->n_bindings, sizeof(b), err));
  ((weir_store_binding *)array)[pub->n_bindings++] = b;
  pub->bindings = array;
  return WEIR_OK;
}

static weir_status load_all(load_ctx *load, weir_error *err) {
  weir_store_state *pub = store_state_public(load->state);
  BASE_TRY(load_rows(load, SQ_META_READ, "meta", load_meta, err));
  BASE_TRY(load_rows(load, SQ_LEASE_READ, "lease", load_lease, err));
  if (!pub->pipeline || !pub->token) {
    return load_corrupt(load, "it lacks its pipeline or its lease", 0, err);
  }
  BASE_TRY(load_rows(load, SQ_ATTEMPT_READ, "attempt", load_attempt, err));
  load->entries = store_state_alloc(load->state, load->n_attempts, sizeof(size_t), err);
  if (!load->entries) return WEIR_E_NOMEM;
  BASE_TRY(load_rows(load, SQ_PART_READ, "part", load_part, err));
  BASE_TRY(load_rows(load, SQ_ENTRY_READ, "entry", load_entry, err));
  for (size_t i = 0; i < load->n_attempts; i++) {
    if (load->entries[i] == load->attempts[i].n_descriptors) continue;
    return load_corrupt(load, "descriptors are missing", load->attempts[i].attempt, err);
  }
  pub->attempts = load->attempts;
  pub->n_attempts = load->n_attempts;
  BASE_TRY(load_rows(load, SQ_CURSOR_READ, "cursor", load_cursor, err));
  BASE_TRY(load_rows(load, SQ_POSITION_READ, "position", load_position, err));
  return load_rows(load, SQ_BINDING_READ, "binding", load_binding, err);
}

weir_status sq_load(weir_store *base, weir_store_state **out, weir_error *err) {
  sq_store *store = (sq_store *)base;
  load_ctx load = {.store = store};
  sqlite3_stmt *s = NULL;
  load.state = store_state_new(err);
  if (!load.state) return WEIR_E_NOMEM;
  /* One snapshot, also beside a live owner. */
  weir_status status = sq_get(store, SQ_BEGIN_READ, &s, err);
  if (!status) status = sq_step(store, s, NULL, err);
  if (!status) {
    sqlite3_reset(s);
    status = load_all(&load, err);
    if (!sq_get(store, SQ_ROLLBACK, &s, NULL)) {
      sqlite3_step(s);
      sqlite3_reset(s);
    }
  }
  if (status) {
    weir_store_state_free(store_state_public(load.state));
    return status;
  }
  *out = store_state_public(load.state);
  return WEIR_OK;
}
