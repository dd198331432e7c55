/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Source `generator`: made-up rows, for trying a pipeline and for measuring one. Row n follows from the
 * seed and n alone, so a position is the next row's number and any row can be made again.
 *
 * Position, little-endian: "WGEN", version 1 as uint32, the next row as uint64, a fingerprint of seed,
 * nulls and schema as uint64. With another fingerprint the rows would be others: refused.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <weir/batch.h>
#include <weir/plugin.h>

#include "generator.h"
#include "values.h"

#define DEFAULT_BATCH_ROWS "16384"
#define MAX_BATCH_ROWS 1048576
#define BATCHES_PER_SECOND \
  50 /* with a rate: many small batches would cost more than they are worth */
#define NS_PER_S INT64_C(1000000000)
#define NAP_NS INT64_C(10000000) /* how soon a cancelled call comes back */

static const char magic[8] = {'W', 'G', 'E', 'N', 1, 0, 0, 0};

typedef struct generator_position {
  char magic[8];
  uint8_t next[8], fingerprint[8];
} generator_position;

typedef struct generator {
  const weir_host *host;
  weir_schema *schema;
  uint64_t seed, fingerprint;
  int64_t rate, rows, nulls, batch_rows;
  int64_t next;            /* row */
  int64_t start_ns, start; /* rate counts from here */
} generator;

static const weir_option options[] = {
    {"rate", WEIR_OPT_INT, 0, "0", 0, 1000000000, NULL,
     "rows per second; 0 = as fast as possible"},
    {"rows", WEIR_OPT_INT, 0, "0", 0, INT64_MAX, NULL, "rows in all; 0 = endless"},
    {"seed", WEIR_OPT_INT, 0, "0", INT64_MIN, INT64_MAX, NULL,
     "the same seed gives the same rows again"},
    {"schema", WEIR_OPT_MAP, 0, NULL, 0, 0, NULL,
     "mapping column: type; default id: int64, ts: timestamp[us, UTC], key: utf8, value: "
     "float64. "
     "The first int64 or uint64 column holds the row's number, timestamps grow by a "
     "millisecond a "
     "row, all else is random"},
    {"nulls", WEIR_OPT_INT, 0, "0", 0, 100, NULL,
     "percent of nulls in each nullable column but the one of the row's number"},
    {"batch_rows", WEIR_OPT_INT, 0, DEFAULT_BATCH_ROWS, 1, MAX_BATCH_ROWS, NULL,
     "rows of a full batch"},
    {0}};

static void put64(uint8_t *to, uint64_t value) {
  for (int i = 0; i < 8; i++) to[i] = (uint8_t)(value >> (8 * i));
}

static uint64_t get64(const uint8_t *from) {
  uint64_t value = 0;
  for (int i = 0; i < 8; i++) value |= (uint64_t)from[i] << (8 * i);
  return value;
}

static int64_t now_ns(const generator *g) {
  return g->host->monotonic_ns(g->host->ctx);
}

static weir_status create(const weir_host *host, weir_source *out, weir_error *err) {
  generator *g = calloc(1, sizeof(*g));
  if (g == NULL) return weir_error_set(err, WEIR_E_NOMEM, 0, "no memory for a generator");
  g->host = host;
  out->ops = &weir_generator_source_ops;
  out->state = g;
  return WEIR_OK;
}

static void release(weir_source *source) {
  generator *g = source->state;
  if (g != NULL) {
    weir_schema_unref(g->schema);
    free(g);
  }
  source->state = NULL;
  source->ops = NULL;
}

static int32_t cancellation_policy(weir_source *source) {
  (void)source;
  return WEIR_CANCEL_SAFE; /* read changes nothing before it answers */
}

static weir_status read_schema(const weir_options *o, weir_schema **out,
                               weir_error *err) {
  static const char *const default_names[] = {"id", "ts", "key", "value"};
  static const char *const default_types[] = {"int64 not null", "timestamp[us, UTC]",
                                              "utf8", "float64"};
  size_t n = weir_options_count(o, "schema");
  weir_schema *schema = NULL;
  weir_status status;
  if (n == 0) {
    if (weir_options_given(o, "schema")) {
      return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                            "option schema: expected a mapping column: type");
    }
    return weir_schema_from_types(default_names, default_types, 4, out, err);
  }
  const char **names = calloc(n, sizeof(*names)), **types = calloc(n, sizeof(*types));
  if (names == NULL || types == NULL) {
    status = weir_error_set(err, WEIR_E_NOMEM, 0, "no memory for a schema");
    goto out;
  }
  for (size_t i = 0; i < n; i++) {
    names[i] = weir_options_key(o, "schema", i);
    types[i] = weir_options_item(o, "schema", i);
  }
  status = weir_schema_from_types(names, types, n, &schema, err);
  if (status == WEIR_OK) status = generator_check_schema(schema, err);
  if (status != WEIR_OK) {
    weir_error_prefix(err, status, "option schema");
    goto out;
  }
  *out = schema;
  schema = NULL;
out:
  weir_schema_unref(schema);
  free(names);
  free(types);
  return status;
}

static weir_status contract(weir_source *source, const weir_options *o,
                            weir_source_contract *out, weir_error *err) {
  (void)source;
  weir_schema *schema = NULL;
  weir_status status = read_schema(o, &schema, err);
  if (status != WEIR_OK) return status;
  weir_schema_unref(schema);
  out->replay = WEIR_SOURCE_REPLAYABLE;
  out->keyed = 0;
  return WEIR_OK;
}

static uint64_t hash_bytes(uint64_t hash, const void *data, size_t size) {
  const uint8_t *p = data;
  for (size_t i = 0; i < size; i++)
    hash = (hash ^ p[i]) * UINT64_C(1099511628211); /* FNV-1a */
  return hash;
}

static uint64_t make_fingerprint(const generator *g) {
  const struct ArrowSchema *arrow = weir_schema_arrow(g->schema);
  uint64_t hash = UINT64_C(14695981039346656037);
  uint8_t numbers[16];
  put64(numbers, g->seed);
  put64(numbers + 8, (uint64_t)g->nulls);
  hash = hash_bytes(hash, numbers, sizeof(numbers));
  for (int64_t i = 0; i < arrow->n_children; i++) {
    char type[256];
    weir_type_format(arrow->children[i], type, sizeof(type));
    uint8_t nullable = arrow->children[i]->flags & ARROW_FLAG_NULLABLE ? 1 : 0;
    hash =
        hash_bytes(hash, arrow->children[i]->name, strlen(arrow->children[i]->name) + 1);
    hash = hash_bytes(hash, type, strlen(type) + 1);
    hash = hash_bytes(hash, &nullable, 1);
  }
  return hash;
}

static weir_status resolve_schema(weir_source *source, const weir_call *call,
                                  const weir_options *o, weir_schema **out,
                                  weir_error *err) {
  (void)source;
  (void)call;
  return read_schema(o, out, err);
}

static weir_status go_to(generator *g, const weir_bytes *position, weir_error *err) {
  generator_position p;
  int64_t next = 0;
  if (position != NULL && position->release != NULL) {
    if (position->size != sizeof(p) ||
        memcmp(position->data, magic, sizeof(magic)) != 0) {
      return weir_error_set(err, WEIR_E_CORRUPT, 0,
                            "this is no position of a generator (version 1, %zu bytes)",
                            sizeof(p));
    }
    memcpy(&p, position->data, sizeof(p));
    next = (int64_t)get64(p.next);
    if (next < 0)
      return weir_error_set(err, WEIR_E_CORRUPT, 0, "a generator's position is negative");
    if (get64(p.fingerprint) != g->fingerprint) {
      return weir_error_set(
          err, WEIR_E_INVALID_CONFIG, 0,
          "seed, nulls or schema are not those under which the first %lld rows were "
          "made, so the rows would not continue them: set them back, or give the "
          "pipeline another name",
          (long long)next);
    }
  }
  g->next = g->start = next;
  g->start_ns = now_ns(g);
  return WEIR_OK;
}

static weir_status open_source(weir_source *source, const weir_call *call,
                               const weir_options *o, const weir_bytes *position,
                               weir_error *err) {
  generator *g = source->state;
  (void)call;
  weir_schema *schema = NULL;
  weir_status status = read_schema(o, &schema, err);
  if (status != WEIR_OK) return status;
  weir_schema_unref(g->schema);
  g->schema = schema;
  g->rate = weir_options_int(o, "rate");
  g->rows = weir_options_int(o, "rows");
  g->seed = (uint64_t)weir_options_int(o, "seed");
  g->nulls = weir_options_int(o, "nulls");
  g->batch_rows = weir_options_int(o, "batch_rows");
  g->fingerprint = make_fingerprint(g);
  return go_to(g, position, err);
}

/* Rows that may be out by `now`, counted from the start. */
static int64_t rows_due(const generator *g, int64_t now) {
  __int128 due = (__int128)(now - g->start_ns) * g->rate / NS_PER_S;
  return due > INT64_MAX - g->start ? INT64_MAX : g->start + (int64_t)due;
}

/* Waits until `want` rows are due, the call's deadline, or its cancellation, whichever is first; returns
 * how many are due. */
static int64_t wait_for_rows(const generator *g, const weir_call *call, int64_t want) {
  for (;;) {
    int64_t now = now_ns(g), due = rows_due(g, now) - g->next;
    if (due >= want || weir_call_cancelled(call)) return due;
    int64_t nap = weir_call_remaining(call);
    if (nap <= 0) return due;
    __int128 wait = (__int128)(want - due) * NS_PER_S / g->rate + 1;
    if (wait < nap) nap = (int64_t)wait;
    if (nap > NAP_NS) nap = NAP_NS;
    struct timespec t = {0, (long)nap};
    nanosleep(&t, NULL);
  }
}

static weir_status read_batch(weir_source *source, const weir_call *call, int32_t *what,
                              weir_batch **out, weir_error *err) {
  generator *g = source->state;
  int64_t rows = g->batch_rows;
  weir_batch *batch = NULL;
  int64_t left = (g->rows > 0 ? g->rows : INT64_MAX) - g->next;
  if (left <= 0) {
    *what = WEIR_READ_END;
    return WEIR_OK;
  }
  if (rows > left) rows = left;
  if (g->rate > 0) {
    int64_t want = g->rate / BATCHES_PER_SECOND;
    if (want < 1) want = 1;
    if (want > rows) want = rows;
    int64_t due = wait_for_rows(g, call, want);
    if (due < want) {
      *what = WEIR_READ_NOTHING;
      return WEIR_OK;
    }
    if (due < rows) rows = due;
  }
  weir_status status =
      generator_make_batch(g->schema, g->seed, g->nulls, g->next, rows, &batch, err);
  if (status != WEIR_OK) return status;
  g->next += rows;
  *what = WEIR_READ_BATCH;
  *out = batch;
  return WEIR_OK;
}

static weir_status position(weir_source *source, weir_bytes *out, weir_error *err) {
  const generator *g = source->state;
  generator_position p;
  memcpy(p.magic, magic, sizeof(magic));
  put64(p.next, (uint64_t)g->next);
  put64(p.fingerprint, g->fingerprint);
  return weir_bytes_copy(out, &p, sizeof(p), err);
}

static weir_status describe_position(const weir_bytes *position, weir_bytes *out,
                                     weir_error *err) {
  generator_position p;
  char text[40];
  if (position->size != sizeof(p) || memcmp(position->data, magic, sizeof(magic)) != 0)
    return WEIR_OK;
  memcpy(&p, position->data, sizeof(p));
  int n = snprintf(text, sizeof(text), "row %llu", (unsigned long long)get64(p.next));
  return weir_bytes_copy(out, text, (size_t)n, err);
}

static weir_status seek(weir_source *source, const weir_call *call, const weir_bytes *to,
                        weir_error *err) {
  (void)call;
  return go_to(source->state, to, err);
}

static weir_status close_source(weir_source *source, const weir_call *call,
                                weir_error *err) {
  (void)source;
  (void)call;
  (void)err;
  return WEIR_OK;
}

const weir_source_ops weir_generator_source_ops = {
    .abi_version = WEIR_ABI_VERSION,
    .struct_size = sizeof(weir_source_ops),
    .name = "generator",
    .text =
        "Made-up rows for trying and measuring pipelines; row n follows from seed and n.",
    .options = options,
    .create = create,
    .release = release,
    .cancellation_policy = cancellation_policy,
    .contract = contract,
    .resolve_schema = resolve_schema,
    .open = open_source,
    .read = read_batch,
    .position = position,
    .seek = seek,
    .close = close_source,
    .describe_position = describe_position,
};
