/* SPDX-License-Identifier: Apache-2.0 */
#include "partition.h"

#include <inttypes.h>
#include <math.h>
#include <nanoarrow/nanoarrow.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "value.h"

enum { COMPONENT_MAX = 200, FOLDER_MAX = 600 };

typedef struct part {
  const delta_column *column; /* borrowed from the table's schema */
  int64_t input;              /* which of the batch's columns */
} part;

typedef struct table_slot {
  size_t group; /* + 1; 0: free */
  uint64_t hash;
} table_slot;

struct delta_partitions {
  part parts[DELTA_PARTITION_COLUMNS_MAX];
  size_t n;
  delta_arena arena; /* of one split */
  delta_group *groups;
  size_t n_groups, groups_capacity;
  table_slot *slots;
  size_t n_slots; /* a power of two */
  size_t *group_of;
  int64_t *rows;
  int64_t rows_capacity;
};

void delta_partitions_free(delta_partitions *p) {
  if (!p) return;
  delta_arena_done(&p->arena);
  free(p->groups);
  free(p->slots);
  free(p->group_of);
  free(p->rows);
  free(p);
}

static weir_status add_part(delta_partitions *p, const delta_schema *table,
                            const struct ArrowSchema *input, delta_text name,
                            weir_error *err) {
  part one = {.input = -1};
  for (size_t i = 0; i < table->root.n_children; i++) {
    if (delta_text_is(name, table->root.children[i].name))
      one.column = &table->root.children[i];
  }
  if (!one.column || p->n == DELTA_PARTITION_COLUMNS_MAX) {
    return weir_error_set(err, WEIR_E_CORRUPT, 0,
                          "partition column '%.*s' is not in the table's schema, or one "
                          "too many",
                          (int)name.n, name.p);
  }
  for (int64_t i = 0; i < input->n_children; i++) {
    if (delta_text_is(name, input->children[i]->name)) one.input = i;
  }
  if (one.input < 0) {
    return weir_error_set(
        err, WEIR_E_SCHEMA, 0,
        "the input lacks column '%.*s', by which the table is partitioned", (int)name.n,
        name.p);
  }
  if (one.column->type >= DELTA_TYPE_STRUCT || one.column->type == DELTA_TYPE_BINARY) {
    return weir_error_set(err, WEIR_E_SCHEMA, 0,
                          "column '%.*s' cannot be partitioned by: its type has no value "
                          "that a partition could be named after",
                          (int)name.n, name.p);
  }
  p->parts[p->n++] = one;
  return WEIR_OK;
}

weir_status delta_partitions_new(const delta_schema *table,
                                 const struct ArrowSchema *input,
                                 const delta_texts *partition_columns,
                                 delta_partitions **out, weir_error *err) {
  *out = NULL;
  if (!partition_columns->n) return WEIR_OK;
  delta_partitions *p = calloc(1, sizeof(*p));
  if (!p) return delta_no_memory(err);
  for (size_t i = 0; i < partition_columns->n; i++) {
    weir_status status = add_part(p, table, input, partition_columns->v[i], err);
    if (status) {
      delta_partitions_free(p);
      return status;
    }
  }
  *out = p;
  return WEIR_OK;
}

/* ---- values ------------------------------------------------------------------------------------- */

/* The fewest digits that give the value back. */
static void format_double(double v, bool single, char out[DELTA_VALUE_SIZE]) {
  if (isnan(v)) {
    snprintf(out, DELTA_VALUE_SIZE, "NaN");
    return;
  }
  if (isinf(v)) {
    snprintf(out, DELTA_VALUE_SIZE, v < 0 ? "-Infinity" : "Infinity");
    return;
  }
  for (int digits = single ? 6 : 15; digits <= 17; digits++) {
    snprintf(out, DELTA_VALUE_SIZE, "%.*g", digits, v);
    if (single ? strtof(out, NULL) == (float)v : strtod(out, NULL) == v) return;
  }
}

static weir_status bad(const part *p, int64_t row, const char *what, weir_error *err) {
  weir_error_set(err, WEIR_E_BAD_DATA, WEIR_ERR_BAD_DATA,
                 "column '%s' cannot be a partition's value: %s", p->column->name, what);
  return weir_error_at(err, WEIR_E_BAD_DATA, row, (int32_t)p->input);
}

static weir_status text_value(const part *p, int64_t row, struct ArrowStringView text,
                              delta_text *out, weir_error *err) {
  const uint8_t *at = (const uint8_t *)text.data;
  size_t n = (size_t)text.size_bytes;
  if (!n)
    return bad(p, row, "the text is empty, which stands for null in a Delta log", err);
  for (size_t i = 0; i < n;) {
    size_t size = at[i] ? delta_value_character(at + i, n - i) : 0;
    if (!size) return bad(p, row, "the text is not UTF-8 or has a NUL", err);
    i += size;
  }
  *out = (delta_text){text.data, n};
  return WEIR_OK;
}

/* The value of a row; out->p stays NULL for null. Short ones are put into `room`. */
static weir_status value_of(const part *p, const struct ArrowArrayView *view, int64_t row,
                            char room[DELTA_VALUE_SIZE], delta_text *out,
                            weir_error *err) {
  int64_t at = row;
  bool good = true;
  *out = (delta_text){0};
  if (ArrowArrayViewIsNull(view, at)) return WEIR_OK;
  if (view->dictionary) {
    at = ArrowArrayViewGetIntUnsafe(view, at);
    view = view->dictionary;
    if (at < 0 || at >= view->length)
      return bad(p, row, "its index is outside the dictionary", err);
    if (ArrowArrayViewIsNull(view, at)) return WEIR_OK;
  }
  switch (p->column->type) {
    case DELTA_TYPE_STRING:
      return text_value(p, row, ArrowArrayViewGetStringUnsafe(view, at), out, err);
    case DELTA_TYPE_BOOLEAN:
      snprintf(room, DELTA_VALUE_SIZE,
               ArrowArrayViewGetIntUnsafe(view, at) ? "true" : "false");
      break;
    case DELTA_TYPE_DATE:
      good = delta_value_date(ArrowArrayViewGetIntUnsafe(view, at), room);
      break;
    case DELTA_TYPE_TIMESTAMP:
      good = delta_value_timestamp(ArrowArrayViewGetIntUnsafe(view, at), 'T', true, room);
      break;
    case DELTA_TYPE_TIMESTAMP_NTZ:
      good =
          delta_value_timestamp(ArrowArrayViewGetIntUnsafe(view, at), ' ', false, room);
      break;
    case DELTA_TYPE_FLOAT:
    case DELTA_TYPE_DOUBLE:
      format_double(ArrowArrayViewGetDoubleUnsafe(view, at),
                    p->column->type == DELTA_TYPE_FLOAT, room);
      break;
    case DELTA_TYPE_DECIMAL: {
      delta_int128 v;
      memcpy(&v, view->buffer_views[1].data.as_uint8 + 16 * (view->offset + at),
             sizeof(v));
      delta_value_decimal(v, p->column->scale, room);
      break;
    }
    default:
      snprintf(room, DELTA_VALUE_SIZE, "%" PRId64, ArrowArrayViewGetIntUnsafe(view, at));
  }
  if (!good) return bad(p, row, "the year is not within 1 to 9999", err);
  *out = (delta_text){room, strlen(room)};
  return WEIR_OK;
}

/* ---- folders ------------------------------------------------------------------------------------ */

static bool plain(uint8_t c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         c == '-' || c == '_' || c == '.' || c == '~';
}

/* As Hive has them, which escapes what means something to file systems; here everything but letters, digits and
 * what is beyond ASCII. False: too long. */
static bool escape(char *out, size_t *used, size_t most, delta_text text) {
  size_t n = *used;
  for (size_t i = 0; i < text.n; i++) {
    uint8_t c = (uint8_t)text.p[i];
    if (n + 4 > most) return false;
    if (plain(c) || c >= 0x80)
      out[n++] = (char)c;
    else
      n += (size_t)snprintf(out + n, 4, "%%%02X", c);
  }
  *used = n;
  return true;
}

static const char *folder_of(delta_partitions *p, const delta_pair *values) {
  char text[FOLDER_MAX];
  size_t n = 0;
  for (size_t i = 0; i < p->n; i++) {
    static const delta_text null = {"__HIVE_DEFAULT_PARTITION__", 26};
    size_t most = n + COMPONENT_MAX < FOLDER_MAX ? n + COMPONENT_MAX : FOLDER_MAX - 1;
    if (i) text[n++] = '/';
    if (!escape(text, &n, most, values[i].key)) return "";
    text[n++] = '=';
    if (!escape(text, &n, most, values[i].value.p ? values[i].value : null)) return "";
  }
  delta_text copy;
  return delta_text_copy(&p->arena, (delta_text){text, n}, &copy) ? copy.p : NULL;
}

bool delta_path_encode(delta_arena *arena, const char *key, delta_text *out) {
  size_t n = 0, size = strlen(key);
  char *text = delta_arena_take(arena, 3 * size + 1);
  if (!text) return false;
  for (size_t i = 0; i < size; i++) {
    uint8_t c = (uint8_t)key[i];
    if (plain(c) || c == '/' || c == '=')
      text[n++] = (char)c;
    else
      n += (size_t)snprintf(text + n, 4, "%%%02X", c);
  }
  text[n] = 0;
  *out = (delta_text){text, n};
  return true;
}

/* ---- groups ------------------------------------------------------------------------------------- */

static uint64_t hash_add(uint64_t hash, const void *data, size_t n) {
  const uint8_t *p = data; /* FNV-1a: values are short */
  for (size_t i = 0; i < n; i++) hash = (hash ^ p[i]) * 0x100000001b3u;
  return hash;
}

static bool same_values(const delta_group *group, const delta_text *values) {
  for (size_t i = 0; i < group->values.n; i++) {
    if (!delta_text_same(group->values.v[i].value, values[i])) return false;
  }
  return true;
}

static weir_status grow_slots(delta_partitions *p, weir_error *err) {
  size_t n = p->n_slots ? 2 * p->n_slots : 64;
  table_slot *slots = calloc(n, sizeof(*slots));
  if (!slots) return delta_no_memory(err);
  for (size_t i = 0; i < p->n_slots; i++) {
    size_t at = p->slots[i].hash & (n - 1);
    if (!p->slots[i].group) continue;
    while (slots[at].group) at = (at + 1) & (n - 1);
    slots[at] = p->slots[i];
  }
  free(p->slots);
  p->slots = slots;
  p->n_slots = n;
  return WEIR_OK;
}

static weir_status new_group(delta_partitions *p, const delta_text *values,
                             weir_error *err) {
  if (p->n_groups == p->groups_capacity) {
    size_t capacity = p->groups_capacity ? 2 * p->groups_capacity : 16;
    delta_group *groups = realloc(p->groups, capacity * sizeof(*groups));
    if (!groups) return delta_no_memory(err);
    p->groups = groups;
    p->groups_capacity = capacity;
  }
  delta_pair *pairs = delta_arena_take(&p->arena, p->n * sizeof(*pairs));
  if (!pairs) return delta_no_memory(err);
  for (size_t i = 0; i < p->n; i++) {
    const char *name = p->parts[i].column->physical;
    pairs[i].key = (delta_text){name, strlen(name)};
    if (!delta_text_copy(&p->arena, values[i], &pairs[i].value))
      return delta_no_memory(err);
  }
  delta_group *group = &p->groups[p->n_groups];
  *group = (delta_group){.values = {pairs, p->n, true}, .folder = folder_of(p, pairs)};
  if (!group->folder) return delta_no_memory(err);
  p->n_groups++;
  return WEIR_OK;
}

static weir_status group_of_row(delta_partitions *p, struct ArrowArrayView *view,
                                int64_t row, size_t *out, weir_error *err) {
  char room[DELTA_PARTITION_COLUMNS_MAX][DELTA_VALUE_SIZE];
  delta_text values[DELTA_PARTITION_COLUMNS_MAX] = {{0}};
  uint64_t hash = 0xcbf29ce484222325u;
  for (size_t i = 0; i < p->n; i++) {
    const part *of = &p->parts[i];
    DELTA_TRY(value_of(of, view->children[of->input], row, room[i], &values[i], err));
    hash = hash_add(hash, &values[i].n, sizeof(values[i].n));
    if (values[i].n) hash = hash_add(hash, values[i].p, values[i].n);
  }
  if (2 * p->n_groups >= p->n_slots) DELTA_TRY(grow_slots(p, err));
  size_t at = hash & (p->n_slots - 1);
  for (; p->slots[at].group; at = (at + 1) & (p->n_slots - 1)) {
    *out = p->slots[at].group - 1;
    if (p->slots[at].hash == hash && same_values(&p->groups[*out], values))
      return WEIR_OK;
  }
  DELTA_TRY(new_group(p, values, err));
  p->slots[at] = (table_slot){p->n_groups, hash};
  *out = p->n_groups - 1;
  return WEIR_OK;
}

static weir_status make_room(delta_partitions *p, int64_t n, weir_error *err) {
  p->n_groups = 0;
  delta_arena_reset(&p->arena);
  if (p->slots) memset(p->slots, 0, p->n_slots * sizeof(*p->slots));
  if (n <= p->rows_capacity) return WEIR_OK;
  free(p->rows);
  free(p->group_of);
  p->rows_capacity = 0;
  p->rows = malloc((size_t)n * sizeof(*p->rows));
  p->group_of = calloc((size_t)n, sizeof(*p->group_of));
  if (!p->rows || !p->group_of) return delta_no_memory(err);
  p->rows_capacity = n;
  return WEIR_OK;
}

static weir_status find_groups(delta_partitions *p, weir_batch *batch, weir_error *err) {
  struct ArrowArrayView view;
  weir_status status = WEIR_OK;
  const struct ArrowSchema *schema = weir_schema_arrow(weir_batch_schema(batch));
  if (ArrowArrayViewInitFromSchema(&view, schema, NULL) ||
      ArrowArrayViewSetArray(&view, weir_batch_array(batch), NULL)) {
    status = weir_error_set(err, WEIR_E_INTERNAL, 0, "a batch cannot be viewed");
  }
  for (int64_t row = 0; !status && row < weir_batch_rows(batch); row++) {
    status = group_of_row(p, &view, row, &p->group_of[row], err);
    if (!status) p->groups[p->group_of[row]].n++;
  }
  ArrowArrayViewReset(&view);
  return status;
}

weir_status delta_partitions_split(delta_partitions *p, weir_batch *batch,
                                   const delta_group **groups, size_t *n,
                                   weir_error *err) {
  int64_t rows = weir_batch_rows(batch), at = 0;
  DELTA_TRY(make_room(p, rows, err));
  DELTA_TRY(find_groups(p, batch, err));
  for (size_t i = 0; i < p->n_groups; i++) {
    p->groups[i].rows = p->rows + at;
    at += p->groups[i].n;
    p->groups[i].n = 0;
  }
  for (int64_t row = 0; row < rows; row++) {
    delta_group *group = &p->groups[p->group_of[row]];
    p->rows[(group->rows - p->rows) + group->n++] = row;
  }
  *groups = p->groups;
  *n = p->n_groups;
  return WEIR_OK;
}
