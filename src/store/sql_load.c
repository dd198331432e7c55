/* SPDX-License-Identifier: Apache-2.0 */
/* Loading: everything at once, every row checked against its sum. */
#include <string.h>

#include "store/sql.h"

typedef struct load_ctx {
  sql_store *store;
  store_state *state;
  weir_store_attempt *attempts; /* those of the state, to fill */
  size_t n_attempts;
  size_t at;       /* attempt that the rows being read belong to: both are in order */
  size_t *entries; /* descriptors that each attempt's parts announce */
} load_ctx;

typedef weir_status (*load_row)(load_ctx *load, const sql_value *v, weir_error *err);

static weir_status load_corrupt(load_ctx *load, const char *what, uint64_t attempt,
                                weir_error *err) {
  return weir_error_set(err, WEIR_E_CORRUPT, 0, "checkpoint store %s: %s (attempt %llu)",
                        load->store->path, what, (unsigned long long)attempt);
}

typedef struct load_table {
  load_ctx *load;
  const char *name;
  load_row row;
} load_table;

static weir_status load_checked(void *ctx, const sql_value *v, int n, weir_error *err) {
  const load_table *table = ctx;
  BASE_TRY(sql_verify(table->load->store, table->name, v, n, err));
  return table->row(table->load, v, err);
}

static weir_status load_rows(load_ctx *load, sql_statement id, const char *name,
                             load_row row, weir_error *err) {
  load_table table = {load, name, row};
  load->at = 0;
  return load->store->driver->query(load->store, id, NULL, 0, load_checked, &table, err);
}

static weir_status load_text(load_ctx *load, const sql_value *v, const char **out,
                             weir_error *err) {
  *out = store_state_text(load->state, v->data, v->size, err);
  return *out ? WEIR_OK : WEIR_E_NOMEM;
}

static weir_status load_blob(load_ctx *load, const sql_value *v, const uint8_t **out,
                             size_t *size, weir_error *err) {
  *size = v->size;
  *out = (const uint8_t *)store_state_text(load->state, v->data, v->size, err);
  return *out ? WEIR_OK : WEIR_E_NOMEM;
}

static weir_status load_digest(load_ctx *load, const sql_value *v,
                               uint8_t out[WEIR_DIGEST_SIZE], weir_error *err) {
  if (v->size != WEIR_DIGEST_SIZE) {
    return load_corrupt(load, "a digest has another length than 32 bytes", 0, err);
  }
  memcpy(out, v->data, WEIR_DIGEST_SIZE);
  return WEIR_OK;
}

static weir_status load_meta(load_ctx *load, const sql_value *v, weir_error *err) {
  weir_store_state *pub = store_state_public(load->state);
  BASE_TRY(load_text(load, &v[0], &pub->pipeline, err));
  if (v[1].size != WEIR_UUID_SIZE) {
    return load_corrupt(load, "the deployment is no UUID", 0, err);
  }
  memcpy(pub->deployment, v[1].data, WEIR_UUID_SIZE);
  return WEIR_OK;
}

static weir_status load_lease(load_ctx *load, const sql_value *v, weir_error *err) {
  (void)err;
  weir_store_state *pub = store_state_public(load->state);
  pub->token = (uint64_t)v[0].i;
  pub->last_attempt = (uint64_t)v[1].i;
  return WEIR_OK;
}

static weir_status load_attempt(load_ctx *load, const sql_value *v, weir_error *err) {
  void *array = load->attempts;
  BASE_TRY(store_state_grow(load->state, &array, load->n_attempts,
                            sizeof(*load->attempts), err));
  load->attempts = array;
  weir_store_attempt *a = &load->attempts[load->n_attempts];
  *a = (weir_store_attempt){
      .attempt = (uint64_t)v[0].i, .state = (int)v[1].i, .token = (uint64_t)v[2].i};
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
static weir_status load_sink(load_ctx *load, const sql_value *v, int column,
                             weir_store_sink *sink, weir_error *err) {
  sink->cursor.token = (uint64_t)v[column].i;
  BASE_TRY(load_digest(load, &v[column + 1], sink->cursor.digest, err));
  sink->has_rows = (int)v[column + 2].i;
  sink->rows = (uint64_t)v[column + 3].i;
  sink->bytes = (uint64_t)v[column + 4].i;
  return load_text(load, &v[1], &sink->sink_id, err);
}

static weir_status load_part(load_ctx *load, const sql_value *v, weir_error *err) {
  uint64_t attempt = (uint64_t)v[0].i;
  weir_store_attempt *a = load_find(load, attempt);
  if (!a || a->state != WEIR_ATTEMPT_COMMIT) {
    return load_corrupt(load, "a sink's part of a decision has no decision", attempt,
                        err);
  }
  weir_store_sink sink = {.cursor.checkpoint = attempt};
  BASE_TRY(load_sink(load, v, 2, &sink, err));
  void *array = (void *)a->sinks;
  BASE_TRY(store_state_grow(load->state, &array, a->n_sinks, sizeof(sink), err));
  ((weir_store_sink *)array)[a->n_sinks++] = sink;
  a->sinks = array;
  load->entries[load->at] += (size_t)(uint64_t)v[7].i;
  return WEIR_OK;
}

static weir_status load_entry(load_ctx *load, const sql_value *v, weir_error *err) {
  uint64_t attempt = (uint64_t)v[0].i;
  int kind = (int)v[1].i;
  weir_store_attempt *a = load_find(load, attempt);
  if (!a || (kind == SQL_DESCRIPTOR) != (a->state == WEIR_ATTEMPT_COMMIT)) {
    return load_corrupt(load, "a descriptor or intent has no attempt", attempt, err);
  }
  weir_store_entry entry = {.participant_id = (uint64_t)v[3].i, .present = (int)v[4].i};
  BASE_TRY(load_text(load, &v[2], &entry.sink_id, err));
  if (entry.present) BASE_TRY(load_blob(load, &v[5], &entry.data, &entry.size, err));
  const weir_store_entry **list = kind == SQL_DESCRIPTOR ? &a->descriptors : &a->intents;
  size_t *n = kind == SQL_DESCRIPTOR ? &a->n_descriptors : &a->n_intents;
  void *array = (void *)*list;
  BASE_TRY(store_state_grow(load->state, &array, *n, sizeof(entry), err));
  ((weir_store_entry *)array)[(*n)++] = entry;
  *list = array;
  return WEIR_OK;
}

static weir_status load_cursor(load_ctx *load, const sql_value *v, weir_error *err) {
  weir_store_state *pub = store_state_public(load->state);
  bool seen = (int)v[0].i == SQL_SEEN;
  const weir_store_sink **list = seen ? &pub->seen : &pub->decided;
  size_t *n = seen ? &pub->n_seen : &pub->n_decided;
  weir_store_sink sink = {.cursor.checkpoint = (uint64_t)v[2].i};
  BASE_TRY(load_sink(load, v, 3, &sink, err));
  void *array = (void *)*list;
  BASE_TRY(store_state_grow(load->state, &array, *n, sizeof(sink), err));
  ((weir_store_sink *)array)[(*n)++] = sink;
  *list = array;
  return WEIR_OK;
}

static weir_status load_position(load_ctx *load, const sql_value *v, weir_error *err) {
  weir_store_state *pub = store_state_public(load->state);
  weir_store_position p = {
      .present = (int)v[1].i, .rows = (uint64_t)v[3].i, .lost = (uint64_t)v[4].i};
  BASE_TRY(load_text(load, &v[0], &p.source, err));
  if (p.present) BASE_TRY(load_blob(load, &v[2], &p.data, &p.size, err));
  void *array = (void *)pub->positions;
  BASE_TRY(store_state_grow(load->state, &array, pub->n_positions, sizeof(p), err));
  ((weir_store_position *)array)[pub->n_positions++] = p;
  pub->positions = array;
  return WEIR_OK;
}

static weir_status load_binding(load_ctx *load, const sql_value *v, weir_error *err) {
  weir_store_state *pub = store_state_public(load->state);
  weir_store_binding b = {0};
  BASE_TRY(load_text(load, &v[0], &b.sink_id, err));
  BASE_TRY(load_blob(load, &v[1], &b.data, &b.size, err));
  void *array = (void *)pub->bindings;
  BASE_TRY(store_state_grow(load->state, &array, pub->n_bindings, sizeof(b), err));
  ((weir_store_binding *)array)[pub->n_bindings++] = b;
  pub->bindings = array;
  return WEIR_OK;
}

static weir_status load_all(load_ctx *load, weir_error *err) {
  weir_store_state *pub = store_state_public(load->state);
  BASE_TRY(load_rows(load, SQL_META_READ, "meta", load_meta, err));
  BASE_TRY(load_rows(load, SQL_LEASE_READ, "lease", load_lease, err));
  BASE_TRY(load_rows(load, SQL_ATTEMPT_READ, "attempt", load_attempt, err));
  /* Made, and its first lease not taken yet: only a reader beside that start can see this. */
  bool young = load->store->base.read_only && !load->n_attempts;
  if (!pub->pipeline || (!pub->token && !young)) {
    return load_corrupt(load, "it lacks its pipeline or its lease", 0, err);
  }
  if (!pub->token) {
    return weir_error_set(err, WEIR_E_NOT_FOUND, 0,
                          "checkpoint store %s holds nothing yet: its first start is "
                          "under way, or was ended before it took the lease",
                          load->store->path);
  }
  load->entries = store_state_alloc(load->state, load->n_attempts, sizeof(size_t), err);
  if (!load->entries) return WEIR_E_NOMEM;
  BASE_TRY(load_rows(load, SQL_PART_READ, "part", load_part, err));
  BASE_TRY(load_rows(load, SQL_ENTRY_READ, "entry", load_entry, err));
  for (size_t i = 0; i < load->n_attempts; i++) {
    if (load->entries[i] == load->attempts[i].n_descriptors) continue;
    return load_corrupt(load, "descriptors are missing", load->attempts[i].attempt, err);
  }
  pub->attempts = load->attempts;
  pub->n_attempts = load->n_attempts;
  BASE_TRY(load_rows(load, SQL_CURSOR_READ, "cursor", load_cursor, err));
  BASE_TRY(load_rows(load, SQL_POSITION_READ, "position", load_position, err));
  return load_rows(load, SQL_BINDING_READ, "binding", load_binding, err);
}

weir_status sql_load(weir_store *base, weir_store_state **out, weir_error *err) {
  sql_store *store = (sql_store *)base;
  load_ctx load = {.store = store};
  load.state = store_state_new(err);
  if (!load.state) return WEIR_E_NOMEM;
  /* One snapshot, also beside a live owner. */
  weir_status status = store->driver->begin_read(store, err);
  if (!status) {
    status = load_all(&load, err);
    (void)store->driver->rollback(store);
  }
  if (status) {
    weir_store_state_free(store_state_public(load.state));
    return status;
  }
  *out = store_state_public(load.state);
  return WEIR_OK;
}
