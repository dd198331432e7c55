/* SPDX-License-Identifier: Apache-2.0 */
/* Rows to write, and the memory that outlives a child. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/ndjson.h>

#include "conform/conform.h"

conform_bytes conform_keep(conform_memory *memory, const weir_bytes *bytes) {
  conform_bytes kept = {.present = bytes->release != NULL, .size = bytes->size};
  if (!kept.present) return (conform_bytes){0};
  kept.at = atomic_fetch_add(&memory->used, bytes->size);
  if (bytes->size > CONFORM_ARENA || kept.at > CONFORM_ARENA - bytes->size) abort();
  if (bytes->size) memcpy(memory->arena + kept.at, bytes->data, bytes->size);
  return kept;
}

uint64_t conform_decided_rows(const conform *c) {
  const conform_store *store = &c->memory->store;
  uint64_t rows = 0;
  for (size_t i = 0; i < store->n; i++) {
    if (store->attempts[i].state == CONFORM_DECIDED) rows += store->attempts[i].rows;
  }
  return rows;
}

/* ---- rows -------------------------------------------------------------------------------------- */

static bool is_key(const weir_names *key, const char *name) {
  for (size_t i = 0; key && i < key->n; i++) {
    if (strcmp(key->v[i], name) == 0) return true;
  }
  return false;
}

weir_status conform_input_schema(const weir_names *key, weir_schema **out,
                                 weir_error *err) {
  enum { MOST = 64 };
  const char *names[MOST], *types[MOST];
  size_t n = 0;
  if (!key->release) {
    names[0] = "id";
    names[1] = "name";
    types[0] = "int64";
    types[1] = "utf8";
    return weir_schema_from_types(names, types, 2, out, err);
  }
  if (key->n > MOST - 2) {
    return weir_error_set(err, WEIR_E_NOT_IMPLEMENTED, 0,
                          "a key of %zu columns; the kit makes %d at most", key->n,
                          MOST - 2);
  }
  for (; n < key->n; n++) {
    names[n] = key->v[n];
    types[n] = "int64";
  }
  names[n] = is_key(key, "name") ? "value" : "name";
  types[n++] = "utf8";
  names[n] = "_op";
  types[n++] = "utf8";
  return weir_schema_from_types(names, types, n, out, err);
}

/* A value of row `id` as JSON, different from that of any other row where the type has the room. */
static bool value(const struct ArrowSchema *column, uint64_t id, char *buf, size_t size) {
  char type[64];
  unsigned long long n = id;
  weir_type_format(column, type, sizeof(type));
  if (strcmp(type, "int64") == 0 || strcmp(type, "uint64") == 0) {
    snprintf(buf, size, "%llu", n);
  } else if (base_starts_with(type, "int") || base_starts_with(type, "uint") ||
             base_starts_with(type, "decimal") || base_starts_with(type, "duration")) {
    snprintf(buf, size, "%llu", n % 100);
  } else if (base_starts_with(type, "float")) {
    snprintf(buf, size, "%llu.5", n);
  } else if (strcmp(type, "bool") == 0) {
    snprintf(buf, size, "%s", n & 1 ? "true" : "false");
  } else if (strcmp(type, "utf8") == 0 || strcmp(type, "large_utf8") == 0) {
    snprintf(buf, size, "\"row %llu\"", n);
  } else if (strcmp(type, "binary") == 0 || strcmp(type, "large_binary") == 0) {
    snprintf(buf, size, "\"d2Vpcg==\"");
  } else if (base_starts_with(type, "date") || base_starts_with(type, "time")) {
    snprintf(buf, size, "%llu",
             n % 80000); /* as Arrow stores it; within a day's seconds */
    if (strcmp(type, "date64") == 0) snprintf(buf, size, "\"2024-02-29\"");
  } else if (column->flags & ARROW_FLAG_NULLABLE) {
    snprintf(buf, size, "null");
  } else {
    return false;
  }
  return true;
}

static weir_status add_row(const weir_names *key, const struct ArrowSchema *schema,
                           const conform_row *row, base_buf *out, weir_error *err) {
  char text[64];
  for (int64_t i = 0; i < schema->n_children; i++) {
    const struct ArrowSchema *column = schema->children[i];
    bool of_key = is_key(key, column->name);
    if (key->release && strcmp(column->name, "_op") == 0) {
      snprintf(text, sizeof(text), "\"%c\"", row->op == 'D' ? 'D' : 'U');
    } else if (of_key ? row->op == 'N' : row->op == 'D') {
      snprintf(text, sizeof(text), "null");
    } else if (!value(column, row->id, text, sizeof(text))) {
      return weir_error_set(err, WEIR_E_NOT_IMPLEMENTED, 0,
                            "the kit has no values for column '%s'", column->name);
    }
    BASE_TRY(base_buf_printf(out, err, "%s\"%s\":%s", i ? "," : "{", column->name, text));
  }
  return base_buf_append_str(out, "}\n", err);
}

weir_status conform_rows(const weir_names *key, weir_schema *schema,
                         const conform_row *rows, size_t n, weir_batch **out,
                         weir_error *err) {
  base_buf text = {0};
  weir_ndjson_decoder *decoder = NULL;
  weir_batch *batch = NULL;
  weir_status status = WEIR_OK;
  size_t used = 0;
  const conform_row filler = {
      1, 'U'}; /* cut off again: the decoder makes no batch of nothing */
  if (n == 0)
    BASE_GOTO(status, add_row(key, weir_schema_arrow(schema), &filler, &text, err));
  for (size_t i = 0; i < n; i++)
    BASE_GOTO(status, add_row(key, weir_schema_arrow(schema), &rows[i], &text, err));
  BASE_GOTO(status, weir_ndjson_decoder_new(schema, NULL, &decoder, err));
  BASE_GOTO(status, weir_ndjson_decoder_feed(decoder, text.data, text.size, 1, &used,
                                             &batch, err));
  if (!batch) BASE_GOTO(status, weir_ndjson_decoder_flush(decoder, &batch, err));
  if (n) {
    *out = batch;
  } else {
    status = weir_batch_slice(batch, 0, 0, out, err);
    weir_batch_unref(batch);
  }
out:
  weir_ndjson_decoder_free(decoder);
  base_buf_done(&text);
  return status;
}

/* ---- secrets ----------------------------------------------------------------------------------- */

void conform_look(conform *c, const char *what, const void *data, size_t size) {
  enum { SHORTEST = 4 }; /* less would be found anywhere */
  for (const weir_option *o = c->ops.options; size && o->name; o++) {
    if (!(o->flags & WEIR_OPT_SECRET)) continue;
    const char *secret = weir_options_string(connector_spec_options(c->spec), o->name);
    if (secret && strlen(secret) >= SHORTEST &&
        memmem(data, size, secret, strlen(secret)) && !c->memory->leak[0])
      snprintf(c->memory->leak, sizeof(c->memory->leak), "%s", what);
  }
}
