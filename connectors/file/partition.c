/* SPDX-License-Identifier: Apache-2.0 */
#include "partition.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "disk.h"
#include "partition_value.h"

typedef struct partition_column {
  int64_t column; /* in the batch */
  const char *name;
  file_partition_type type;
} partition_column;

struct file_partitions {
  weir_schema *input, *data;
  partition_column *columns;
  size_t n_columns;
  int64_t *kept; /* the columns of `data` in the batch */
  char *names;

  /* Of the batch at hand; `capacity` rows. */
  size_t capacity;
  int64_t *row_of_group; /* the first row of each group */
  int32_t *group_of_row;
  uint64_t *hashes; /* of rows */
  int64_t *order;   /* rows by group */
  bool reordered;   /* the batch that split gave has its rows in that order */
  file_partition_group *groups;
  size_t n_groups;
  int32_t *
      table; /* hash -> group + 1; table_size is a power of two, at least twice the groups */
  size_t table_size;
  char *folders; /* texts of the groups */
  size_t folders_size, folders_capacity;
};

/* ---- which columns ------------------------------------------------------------------------------ */

static weir_status no_column(const char *name, const struct ArrowSchema *schema,
                             weir_error *err) {
  char have[400] = "";
  size_t used = 0;
  for (int64_t i = 0; i < schema->n_children && used < sizeof(have); i++)
    used += (size_t)snprintf(have + used, sizeof(have) - used, "%s%s", i ? ", " : "",
                             schema->children[i]->name);
  return weir_error_set(
      err, WEIR_E_INVALID_CONFIG, 0,
      "partition_by names column '%s', which is not there; there are: %s", name, have);
}

/* DuckDB does not tell the case of names apart, and a folder's value hides a column of the file. */
static weir_status check_name(const partition_column *c, const struct ArrowSchema *schema,
                              weir_error *err) {
  if (!file_partition_name_valid(c->name, strlen(c->name))) {
    return weir_error_set(
        err, WEIR_E_INVALID_CONFIG, 0,
        "partition_by: column '%s' cannot be part of a folder's name, since readers "
        "do not decode it there; expected letters, digits, '-', '.', ' ' and '_', not "
        "'.' or '_' at the beginning, at most 200 bytes",
        c->name);
  }
  for (int64_t i = 0; i < schema->n_children; i++) {
    if (i == c->column || strcasecmp(schema->children[i]->name, c->name) != 0) continue;
    return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                          "partition_by: column '%s' and column '%s' are one name to "
                          "readers that do not tell upper from lower case",
                          c->name, schema->children[i]->name);
  }
  return WEIR_OK;
}

static weir_status find_column(const char *name, const struct ArrowSchema *schema,
                               partition_column *out, weir_error *err) {
  char type[200];
  partition_column c = {.column = -1};
  for (int64_t i = 0; i < schema->n_children && c.column < 0; i++) {
    if (strcmp(schema->children[i]->name, name) == 0) c.column = i;
  }
  if (c.column < 0) return no_column(name, schema, err);
  const struct ArrowSchema *field = schema->children[c.column];
  c.name = field->name;
  FILE_TRY(check_name(&c, schema, err));
  if (!file_partition_type_of(field, &c.type)) {
    weir_type_format(field, type, sizeof(type));
    weir_error_set(err, WEIR_E_SCHEMA, 0,
                   "partition_by: column '%s' is %s; expected integers, bool, date32, "
                   "utf8 or timestamps of s, ms or us, which readers give back unchanged "
                   "from a folder's name",
                   name, type);
    return weir_error_at(err, WEIR_E_SCHEMA, -1, (int32_t)c.column);
  }
  *out = c;
  return WEIR_OK;
}

static weir_status find_columns(const weir_options *options, file_partitions *p,
                                weir_error *err) {
  const struct ArrowSchema *schema = weir_schema_arrow(p->input);
  size_t n = weir_options_count(options, "partition_by"), size = 1;
  if (n > PARTITION_COLUMNS_MAX) {
    return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                          "partition_by names %zu columns; at most %d are allowed", n,
                          PARTITION_COLUMNS_MAX);
  }
  for (size_t i = 0; i < n; i++) {
    const char *name = weir_options_item(options, "partition_by", i);
    FILE_TRY(find_column(name, schema, &p->columns[i], err));
    for (size_t k = 0; k < i; k++) {
      if (p->columns[k].column == p->columns[i].column)
        return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                              "partition_by names column '%s' twice", name);
    }
    size += strlen(name) + 1;
  }
  p->n_columns = n;
  p->names = calloc(1, size);
  if (!p->names) return weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
  for (size_t i = 0, at = 0; i < n; i++) {
    at += (size_t)snprintf(p->names + at, size - at, "%s%s", i ? "," : "",
                           p->columns[i].name);
  }
  return WEIR_OK;
}

static weir_status choose_data(file_partitions *p, weir_error *err) {
  const struct ArrowSchema *schema = weir_schema_arrow(p->input);
  int64_t n = 0;
  for (int64_t i = 0; i < schema->n_children; i++) {
    bool names_folder = false;
    for (size_t k = 0; k < p->n_columns; k++) names_folder |= p->columns[k].column == i;
    if (!names_folder) p->kept[n++] = i;
  }
  if (!n) {
    return weir_error_set(
        err, WEIR_E_INVALID_CONFIG, 0,
        "partition_by names every column; at least one must be left for the files");
  }
  return weir_schema_select(p->input, p->kept, n, &p->data, err);
}

weir_status file_partitions_new(const weir_options *options, weir_schema *schema,
                                file_partitions **out, weir_error *err) {
  size_t n = weir_options_count(options, "partition_by");
  *out = NULL;
  if (!n) return WEIR_OK;
  file_partitions *p = calloc(1, sizeof(*p));
  if (!p) return weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
  p->input = weir_schema_ref(schema);
  p->columns = calloc(PARTITION_COLUMNS_MAX, sizeof(*p->columns));
  p->kept = calloc((size_t)weir_schema_arrow(schema)->n_children + 1, sizeof(*p->kept));
  weir_status status = p->columns && p->kept
                           ? WEIR_OK
                           : weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
  if (!status) status = find_columns(options, p, err);
  if (!status) status = choose_data(p, err);
  if (status) {
    file_partitions_free(p);
    return status;
  }
  *out = p;
  return WEIR_OK;
}

void file_partitions_free(file_partitions *p) {
  if (!p) return;
  weir_schema_unref(p->input);
  weir_schema_unref(p->data);
  free(p->columns);
  free(p->kept);
  free(p->names);
  free(p->row_of_group);
  free(p->group_of_row);
  free(p->hashes);
  free(p->order);
  free(p->groups);
  free(p->table);
  free(p->folders);
  free(p);
}

weir_schema *file_partitions_schema(const file_partitions *p) {
  return p->data;
}

const char *file_partitions_names(const file_partitions *p) {
  return p->names;
}

/* ---- groups of rows ----------------------------------------------------------------------------- */

static bool grow(void **block, size_t n, size_t size) {
  void *grown = n < SIZE_MAX / size ? realloc(*block, n * size) : NULL;
  if (grown) *block = grown;
  return grown != NULL;
}

static weir_status make_room(file_partitions *p, int64_t rows, weir_error *err) {
  size_t n = (size_t)rows, table = 1024;
  if (n <= p->capacity) return WEIR_OK;
  while (table < 2 * n) table *= 2;
  p->capacity = 0;
  if (n > INT32_MAX / 2 ||
      !grow((void **)&p->row_of_group, n, sizeof(*p->row_of_group)) ||
      !grow((void **)&p->group_of_row, n, sizeof(*p->group_of_row)) ||
      !grow((void **)&p->hashes, n, sizeof(*p->hashes)) ||
      !grow((void **)&p->order, n, sizeof(*p->order)) ||
      !grow((void **)&p->groups, n, sizeof(*p->groups)) ||
      !grow((void **)&p->table, table, sizeof(*p->table))) {
    return weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory for %zu rows of a batch",
                          n);
  }
  p->capacity = n;
  p->table_size = table;
  return WEIR_OK;
}

static void make_views(const file_partitions *p, const struct ArrowArray *array,
                       file_partition_column_view *views) {
  for (size_t i = 0; i < p->n_columns; i++) {
    const struct ArrowArray *column = array->children[p->columns[i].column];
    views[i] = (file_partition_column_view){
        &p->columns[i].type, column, column->dictionary ? column->dictionary : column};
  }
}

static weir_status bad_value(const file_partitions *p, size_t column, int64_t row,
                             const char *what, weir_error *err) {
  const partition_column *c = &p->columns[column];
  weir_error_set(err, WEIR_E_BAD_DATA, WEIR_ERR_BAD_DATA,
                 "column '%s', which names the folder (partition_by): %s", c->name, what);
  return weir_error_at(err, WEIR_E_BAD_DATA, row, (int32_t)c->column);
}

static weir_status hash_rows(file_partitions *p, const file_partition_column_view *views,
                             int64_t rows, weir_error *err) {
  for (size_t c = 0; c < p->n_columns; c++) {
    for (int64_t i = 0; i < rows; i++) {
      int64_t slot = file_partition_slot(&views[c], i);
      if (slot == -2) return bad_value(p, c, i, "its dictionary has no such value", err);
      uint64_t h = file_partition_hash(&views[c], slot);
      p->hashes[i] = c ? (p->hashes[i] ^ h) * 0x9fb21c651e98df25u + 1 : h;
    }
  }
  return WEIR_OK;
}

static bool same_values(const file_partitions *p, const file_partition_column_view *views,
                        int64_t a, int64_t b) {
  for (size_t c = 0; c < p->n_columns; c++) {
    if (!file_partition_same(&views[c], file_partition_slot(&views[c], a),
                             file_partition_slot(&views[c], b))) {
      return false;
    }
  }
  return true;
}

/* Which group a row belongs to; a new one when no row before had its values. */
static int32_t group_of(file_partitions *p, const file_partition_column_view *views,
                        int64_t row) {
  size_t mask = p->table_size - 1;
  uint64_t hash = p->hashes[row];
  for (size_t at = (hash ^ hash >> 32) & mask;; at = (at + 1) & mask) {
    int32_t group = p->table[at] - 1;
    if (group < 0) {
      group = (int32_t)p->n_groups++;
      p->table[at] = group + 1;
      p->row_of_group[group] = row;
      p->groups[group] = (file_partition_group){0};
      return group;
    }
    int64_t first = p->row_of_group[group];
    if (p->hashes[first] == hash && same_values(p, views, first, row)) return group;
  }
}

/* Groups in the order in which they come up; *runs counts the stretches of rows of one group. */
static void group_rows(file_partitions *p, const file_partition_column_view *views,
                       int64_t rows, size_t *runs) {
  p->n_groups = *runs = 0;
  memset(p->table, 0, p->table_size * sizeof(*p->table));
  for (int64_t i = 0; i < rows; i++) {
    bool goes_on =
        i && p->hashes[i] == p->hashes[i - 1] && same_values(p, views, i - 1, i);
    p->group_of_row[i] = goes_on ? p->group_of_row[i - 1] : group_of(p, views, i);
    p->groups[p->group_of_row[i]].rows++;
    *runs += !goes_on;
  }
  int64_t first = 0;
  for (size_t g = 0; g < p->n_groups; g++) {
    p->groups[g].first = first;
    first += p->groups[g].rows;
  }
}

/* ---- folders ------------------------------------------------------------------------------------ */

static weir_status name_folder(file_partitions *p,
                               const file_partition_column_view *views, int64_t row,
                               weir_error *err) {
  char value[PARTITION_COMPONENT_MAX + 1];
  size_t began = p->folders_size;
  for (size_t c = 0; c < p->n_columns; c++) {
    const char *name = p->columns[c].name;
    size_t size = strlen(PARTITION_NULL), name_size = strlen(name);
    int64_t slot = file_partition_slot(&views[c], row);
    const char *wrong = NULL;
    if (slot < 0)
      memcpy(value, PARTITION_NULL, size);
    else
      wrong = file_partition_format(&views[c], slot, value, &size);
    if (!wrong && name_size + 1 + size > PARTITION_COMPONENT_MAX)
      wrong = "the value is too long for a folder's name";
    if (!wrong && p->folders_size - began + name_size + size + 2 > PARTITION_FOLDER_MAX)
      wrong = "the values together are too long for a folder's name";
    if (wrong) return bad_value(p, c, row, wrong, err);
    if (p->folders_capacity - p->folders_size < PARTITION_FOLDER_MAX) {
      size_t capacity = 2 * p->folders_capacity + 4 * PARTITION_FOLDER_MAX;
      if (!grow((void **)&p->folders, capacity, 1))
        return weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
      p->folders_capacity = capacity;
    }
    p->folders_size +=
        (size_t)sprintf(p->folders + p->folders_size, "%s%s=", c ? "/" : "", name);
    memcpy(p->folders + p->folders_size, value, size);
    p->folders_size += size;
  }
  p->folders[p->folders_size++] = 0;
  return WEIR_OK;
}

static weir_status name_folders(file_partitions *p,
                                const file_partition_column_view *views,
                                weir_error *err) {
  p->folders_size = 0;
  for (size_t g = 0; g < p->n_groups; g++)
    FILE_TRY(name_folder(p, views, p->row_of_group[g], err));
  const char *at = p->folders; /* which does not move any more */
  for (size_t g = 0; g < p->n_groups; g++) {
    size_t size = strlen(at);
    p->groups[g].folder = at;
    p->groups[g].hash = XXH3_64bits(at, size);
    at += size + 1;
  }
  return WEIR_OK;
}

weir_status file_partitions_split(file_partitions *p, weir_batch *batch, weir_batch **out,
                                  const file_partition_group **groups, size_t *n,
                                  weir_error *err) {
  file_partition_column_view views[PARTITION_COLUMNS_MAX];
  int64_t rows = weir_batch_rows(batch);
  size_t runs = 0;
  weir_batch *data = NULL;
  make_views(p, weir_batch_array(batch), views);
  FILE_TRY(make_room(p, rows, err));
  FILE_TRY(hash_rows(p, views, rows, err));
  group_rows(p, views, rows, &runs);
  FILE_TRY(name_folders(p, views, err));
  FILE_TRY(weir_batch_select(batch, p->data, p->kept, &data, err));
  /* Rows of one folder side by side already need not be moved. */
  p->reordered = runs > p->n_groups;
  if (p->reordered) {
    weir_batch *ordered = NULL;
    for (int64_t i = 0; i < rows; i++)
      p->order[p->groups[p->group_of_row[i]].first++] = i;
    for (size_t g = 0; g < p->n_groups; g++) p->groups[g].first -= p->groups[g].rows;
    weir_status status = weir_batch_take(data, p->order, rows, &ordered, err);
    weir_batch_unref(data);
    if (status) return status;
    data = ordered;
  }
  *out = data;
  *groups = p->groups;
  *n = p->n_groups;
  return WEIR_OK;
}

void file_partitions_point_back(const file_partitions *p, weir_error *err) {
  if (err->row >= 0 && p->reordered) err->row = p->order[err->row];
  if (err->column >= 0) err->column = (int32_t)p->kept[err->column];
}

/* ---- what a record may name --------------------------------------------------------------------- */

static int hex_of(char c) {
  return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* One spelling only: what must not be encoded is not. */
static bool value_valid(const char *text, size_t size) {
  for (size_t i = 0; i < size; i++) {
    if (file_partition_plain((uint8_t)text[i])) continue;
    if (text[i] != '%' || size - i < 3) return false;
    int high = hex_of(text[i + 1]), low = hex_of(text[i + 2]);
    if (high < 0 || low < 0 || file_partition_plain((uint8_t)(high << 4 | low)))
      return false;
    i += 2;
  }
  return true;
}

bool file_partition_folder_valid(const char *text, size_t size) {
  if (!size || size > PARTITION_FOLDER_MAX || memchr(text, 0, size)) return false;
  for (const char *end = text + size; text <= end;) {
    const char *slash = memchr(text, '/', (size_t)(end - text));
    size_t part = (size_t)((slash ? slash : end) - text);
    const char *equals = memchr(text, '=', part);
    if (!equals || part > PARTITION_COMPONENT_MAX) return false;
    size_t name = (size_t)(equals - text);
    if (!file_partition_name_valid(text, name) ||
        !value_valid(equals + 1, part - name - 1)) {
      return false;
    }
    text += part + 1;
  }
  return true;
}
