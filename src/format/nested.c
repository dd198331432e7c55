/* SPDX-License-Identifier: Apache-2.0 */
/* Columns of lists, maps and structs: what column.c builds, with columns below it. */
#include <nanoarrow/nanoarrow.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arrow/arrow.h"
#include "base/base.h"
#include "format/format.h"

/* Slots of a batch below lists of fixed size, where a null takes as many as a list. */
#define MAX_SLOTS (INT64_C(1) << 27)
#define FIRST_ITEMS 64
#define FIRST_SLOTS 65536
#define FEW_KEYS 16

static uint32_t hash_name(const uint8_t *name, size_t n) {
  uint32_t hash = 2166136261u; /* FNV-1a */
  for (size_t i = 0; i < n; i++) hash = (hash ^ name[i]) * 16777619u;
  return hash;
}

int32_t format_names_find(const format_names *names, const format_column *cols,
                          const uint8_t *name, size_t n) {
  for (uint32_t i = hash_name(name, n);; i++) {
    int32_t entry = names->table[i & names->mask];
    if (entry == 0) return -1;
    const format_column *col = &cols[entry - 1];
    if (col->name_len == n && memcmp(col->name, name, n) == 0) return entry - 1;
  }
}

weir_status format_names_init(format_names *names, const format_column *cols, int64_t n,
                              weir_error *err) {
  uint32_t room = 4;
  while ((int64_t)room < 2 * n) room *= 2;
  names->table = base_calloc(room, sizeof(*names->table), err);
  if (names->table == NULL) return WEIR_E_NOMEM;
  names->mask = room - 1;
  for (int64_t i = 0; i < n; i++) {
    const uint8_t *name = (const uint8_t *)cols[i].name;
    if (format_names_find(names, cols, name, cols[i].name_len) >= 0) {
      return weir_error_set(
          err, WEIR_E_SCHEMA, 0,
          "two columns are named '%s'; rows of JSON cannot tell them apart",
          cols[i].name);
    }
    uint32_t at = hash_name(name, cols[i].name_len);
    while (names->table[at & names->mask] != 0) at++;
    names->table[at & names->mask] = (int32_t)i + 1;
  }
  return WEIR_OK;
}

void format_names_done(format_names *names) {
  free(names->table);
  *names = (format_names){0};
}

static void set_name(format_column *col, const char *name) {
  col->name = name;
  col->name_len = strlen(name);
}

static void child_path(const format_column *col, const struct ArrowSchema *child,
                       const char *path, char *out, size_t size) {
  bool named = col->kind == FORMAT_STRUCT;
  snprintf(out, size, "%.150s%s%.100s", path, named ? "." : "[]",
           named && child->name ? child->name : "");
}

weir_status format_nested_init(format_column *col, const struct ArrowSchemaView *view,
                               const char *path, unsigned allow, const char *what,
                               weir_error *err) {
  const struct ArrowSchema *field = col->field;
  col->list_size = col->kind == FORMAT_FIXED_LIST ? view->fixed_size : 0;
  col->list_view = view->type == NANOARROW_TYPE_LIST_VIEW ||
                   view->type == NANOARROW_TYPE_LARGE_LIST_VIEW;
  col->children = base_calloc((size_t)field->n_children, sizeof(*col->children), err);
  if (col->children == NULL) return WEIR_E_NOMEM;
  for (int64_t i = 0; i < field->n_children; i++) {
    char below[300];
    child_path(col, field->children[i], path, below, sizeof(below));
    BASE_TRY(format_column_init_at(&col->children[i], field->children[i], below, allow,
                                   what, err));
    col->n_children = i + 1;
  }
  if (col->kind == FORMAT_MAP) {
    /* whatever a program called them */
    format_column *entries = &col->children[0];
    set_name(&entries->children[0], "key");
    set_name(&entries->children[1], "value");
    format_names_done(&entries->names);
    entries->nullable = entries->children[0].nullable = false;
    col->string_keys = entries->children[0].kind == FORMAT_UTF8;
    return format_names_init(&entries->names, entries->children, 2, err);
  }
  if (col->kind != FORMAT_STRUCT) return WEIR_OK;
  weir_status status =
      format_names_init(&col->names, col->children, col->n_children, err);
  return status ? weir_error_prefix(err, status, "column '%s'", path) : status;
}

int64_t format_nested_slots(const format_column *col) {
  int64_t most = 1, below = 0;
  if (col->kind != FORMAT_STRUCT && col->kind != FORMAT_FIXED_LIST) return 1;
  for (int64_t i = 0; i < col->n_children; i++) {
    below = format_nested_slots(&col->children[i]);
    if (col->kind == FORMAT_FIXED_LIST &&
        __builtin_mul_overflow(below, col->list_size, &below)) {
      return INT64_MAX;
    }
    if (below > most) most = below;
  }
  return most;
}

int64_t format_nested_rows(const format_column *col, const format_column *child,
                           int64_t rows) {
  if (col->kind == FORMAT_STRUCT) return rows;
  if (col->kind == FORMAT_FIXED_LIST) {
    return col->list_size < FIRST_SLOTS && rows * col->list_size < FIRST_SLOTS
               ? rows * col->list_size
               : FIRST_SLOTS;
  }
  return child->n_hint + child->n_hint / 8 + FIRST_ITEMS;
}

int64_t format_nested_end(const format_column *col, int64_t n) {
  if (col->kind == FORMAT_STRUCT) return n;
  if (col->kind == FORMAT_FIXED_LIST) return n * col->list_size;
  return arrow_offset_at(col->values, col->width, n);
}

format_result format_list_close(format_column *col) {
  int64_t end = col->children[0].n;
  if (col->kind == FORMAT_FIXED_LIST) {
    if (end != (col->n + 1) * col->list_size) return FORMAT_ITEMS;
    col->n++;
    return FORMAT_OK;
  }
  /* an item takes two bytes of text at least, and a batch has less than 2 GiB */
  format_offset_store(col->values, col->width, ++col->n, end);
  return FORMAT_OK;
}

/* A value for a slot that a null above hides: null, or what is zero and empty. */
static format_result hidden(format_column *col) {
  if (!format_column_room(col)) return FORMAT_NOMEM;
  if (col->nullable) return format_column_null(col);
  /* as a null, whose bit is set again */
  col->nullable = true;
  format_result result = format_column_null(col);
  col->nullable = false;
  if (result != FORMAT_OK) return result;
  int64_t i = col->n - 1;
  col->validity[i >> 3] |= (uint8_t)(1u << (i & 7));
  col->nulls--;
  return FORMAT_OK;
}

format_result format_nested_null(format_column *col) {
  int64_t i = col->n;
  format_result result = FORMAT_OK;
  if (col->kind == FORMAT_FIXED_LIST) {
    format_column *items = &col->children[0];
    if (items->n + col->list_size > MAX_SLOTS) return FORMAT_MANY;
    for (int64_t k = 0; k < col->list_size && result == FORMAT_OK; k++)
      result = hidden(items);
  }
  for (int64_t k = 0; col->kind == FORMAT_STRUCT && k < col->n_children; k++) {
    if (result == FORMAT_OK) result = hidden(&col->children[k]);
  }
  if (result == FORMAT_OK && col->kind == FORMAT_STRUCT) {
    col->n++;
  } else if (result == FORMAT_OK) {
    result = format_list_close(col);
  }
  if (result != FORMAT_OK) return result;
  col->validity[i >> 3] &= (uint8_t)~(1u << (i & 7));
  col->nulls++;
  return FORMAT_OK;
}

format_result format_struct_close(format_column *col) {
  for (int64_t i = 0; i < col->n_children; i++) {
    format_column *child = &col->children[i];
    if (child->n > col->n) continue;
    if (!format_column_room(child)) return FORMAT_NOMEM;
    format_result result = format_column_null(child);
    if (result != FORMAT_OK) return result;
  }
  col->n++;
  return FORMAT_OK;
}

static bool key_is(const format_key *a, const format_key *b) {
  return a->size == b->size && (a->size == 0 || memcmp(a->data, b->data, a->size) == 0);
}

static int compare_keys(const void *left, const void *right) {
  const format_key *a = left, *b = right;
  size_t shared = a->size < b->size ? a->size : b->size;
  int order = shared > 0 ? memcmp(a->data, b->data, shared) : 0;
  if (order == 0) order = (a->size > b->size) - (a->size < b->size);
  return order != 0 ? order : (a->at > b->at) - (a->at < b->at);
}

bool format_keys_repeat(format_key *keys, size_t n, format_key *twice) {
  if (n <= FEW_KEYS) {
    for (size_t i = 1; i < n; i++) {
      for (size_t k = 0; k < i; k++) {
        if (!key_is(&keys[i], &keys[k])) continue;
        *twice = keys[i];
        return true;
      }
    }
    return false;
  }
  /* sorted, since hashes of outside bytes could be made to collide */
  const format_key *first = NULL;
  qsort(keys, n, sizeof(*keys), compare_keys);
  for (size_t i = 1; i < n; i++) {
    if (!key_is(&keys[i], &keys[i - 1])) continue;
    if (first == NULL || keys[i].at < first->at) first = &keys[i];
  }
  if (first == NULL) return false;
  *twice = *first;
  return true;
}

format_result format_map_check(const format_column *col, format_key *twice) {
  const format_column *entries = &col->children[0], *keys = &entries->children[0];
  format_key few[FEW_KEYS], *all = few;
  int64_t from = format_nested_end(col, col->n), n = entries->n - from;
  if (!col->string_keys || n < 2) return FORMAT_OK;
  if (n > FEW_KEYS) all = calloc((size_t)n, sizeof(*all));
  if (all == NULL) return FORMAT_NOMEM;
  for (int64_t i = 0; i < n; i++) {
    int64_t start = arrow_offset_at(keys->values, keys->width, from + i);
    int64_t end = arrow_offset_at(keys->values, keys->width, from + i + 1);
    all[i] = (format_key){keys->data + start, (size_t)(end - start), i};
  }
  bool repeat = format_keys_repeat(all, (size_t)n, twice);
  if (all != few) free(all);
  return repeat ? FORMAT_TWICE : FORMAT_OK;
}
