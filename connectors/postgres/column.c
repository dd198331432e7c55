/* SPDX-License-Identifier: Apache-2.0 */
#include "column.h"

#include <stdlib.h>

/* ---- making ------------------------------------------------------------------------------------------- */

/* Bounds of timestamps: MIN_TIMESTAMP and END_TIMESTAMP of datatype/timestamp.h, here since 1970. */
#define FIRST_US INT64_C(-210866803200000000)
#define LAST_US INT64_MAX
#define LAST_S INT64_C(9224318015999)
/* of dates: from Julian day 0 to before DATE_END_JULIAN */
#define FIRST_DAY INT64_C(-2440588)
#define LAST_DAY INT64_C(2145042905)
#define MS_PER_DAY INT64_C(86400000)
#define US_PER_S INT64_C(1000000)

static void set_unit(pg_column *column, enum ArrowTimeUnit unit) {
  column->multiplier = unit == NANOARROW_TIME_UNIT_SECOND  ? US_PER_S
                       : unit == NANOARROW_TIME_UNIT_MILLI ? 1000
                                                           : 1;
  column->divisor = unit == NANOARROW_TIME_UNIT_NANO ? 1000 : 1;
}

static void set_range(pg_column *column, const struct ArrowSchemaView *view) {
  column->multiplier = column->divisor = 1;
  column->low = INT64_MIN;
  column->high = INT64_MAX;
  switch (view->type) {
    case NANOARROW_TYPE_DATE32:
      column->low = FIRST_DAY;
      column->high = LAST_DAY;
      break;
    case NANOARROW_TYPE_DATE64:
      column->low = FIRST_DAY * MS_PER_DAY;
      column->high = LAST_DAY * MS_PER_DAY;
      column->divisor = MS_PER_DAY;
      break;
    case NANOARROW_TYPE_TIME32:
    case NANOARROW_TYPE_TIME64: {
      set_unit(column, view->time_unit);
      column->low = 0;
      column->high = 86400 * US_PER_S / column->multiplier * column->divisor;
      break;
    }
    case NANOARROW_TYPE_TIMESTAMP:
      set_unit(column, view->time_unit);
      if (column->divisor == 1) column->low = FIRST_US / column->multiplier;
      if (column->multiplier != 1)
        column->high = LAST_S * (US_PER_S / column->multiplier) +
                       (US_PER_S / column->multiplier - 1);
      break;
    case NANOARROW_TYPE_DURATION:
      set_unit(column, view->time_unit);
      column->low = INT64_MIN / column->multiplier;
      column->high = INT64_MAX / column->multiplier;
      break;
    default:
      break;
  }
}

static weir_status init_json(pg_column *column, weir_schema *schema, int64_t number,
                             weir_error *err) {
  struct ArrowSchema one = {0};
  weir_schema *selected = NULL;
  weir_status status = WEIR_OK;
  column->json = calloc(1, sizeof(*column->json));
  if (!column->json)
    return weir_error_set(err, WEIR_E_NOMEM, 0, "no memory for a column");
  column->json->column = number;
  PG_GOTO(status, weir_schema_select(schema, &number, 1, &selected, err));
  PG_GOTO(status, weir_schema_export(selected, &one, err));
  if (ArrowSchemaSetName(one.children[0], "v") != NANOARROW_OK) {
    status = weir_error_set(err, WEIR_E_NOMEM, 0, "no memory for a schema");
    goto out;
  }
  PG_GOTO(status, weir_schema_new(&one, &column->json->schema, err));
  status = weir_ndjson_encoder_new(column->json->schema, &column->json->encoder, err);
out:
  if (one.release) one.release(&one);
  weir_schema_unref(selected);
  column->put = pg_put_json;
  return status;
}

static weir_status init_child(pg_column *column, weir_schema *schema,
                              const struct ArrowSchema *field, weir_error *err) {
  column->child = calloc(1, sizeof(*column->child));
  if (!column->child)
    return weir_error_set(err, WEIR_E_NOMEM, 0, "no memory for a column");
  return pg_column_init(column->child, schema, -1, field, &column->to, err);
}

static int64_t index_width(enum ArrowType type) {
  switch (type) {
    case NANOARROW_TYPE_INT8:
    case NANOARROW_TYPE_UINT8:
      return 1;
    case NANOARROW_TYPE_INT16:
    case NANOARROW_TYPE_UINT16:
      return 2;
    case NANOARROW_TYPE_INT32:
    case NANOARROW_TYPE_UINT32:
      return 4;
    default:
      return 8;
  }
}

static weir_status init_leaf(pg_column *column, const struct ArrowSchemaView *view,
                             weir_error *err) {
  column->rule = pg_rule_find(view, column->to.kind);
  if (!column->rule)
    return weir_error_set(err, WEIR_E_SCHEMA, 0, "no way into type %s", column->to.name);
  column->put = column->rule->put;
  column->room = column->rule->room;
  if (view->type == NANOARROW_TYPE_FIXED_SIZE_BINARY) {
    column->width = view->fixed_size;
    column->room = 4 + (size_t)view->fixed_size;
  }
  if (column->rule->put == pg_put_decimal) {
    column->scale = view->decimal_scale;
    column->words = view->decimal_bitwidth / 32;
  }
  if (column->to.kind == PG_TEXT && column->to.typmod > 4)
    column->longest = column->to.typmod - 4;
  set_range(column, view);
  return WEIR_OK;
}

weir_status pg_column_init(pg_column *column, weir_schema *schema, int64_t number,
                           const struct ArrowSchema *field, const pg_type *to,
                           weir_error *err) {
  struct ArrowSchemaView view;
  struct ArrowError arrow;
  weir_status status = WEIR_OK;
  *column = (pg_column){.to = *to};
  PG_GOTO(status, pg_type_check(field, to, err));
  if (ArrowSchemaViewInit(&view, field, &arrow) != NANOARROW_OK) {
    status = weir_error_set(err, WEIR_E_SCHEMA, 0, "%s", arrow.message);
    goto out;
  }
  column->from = view.type;
  bool json = to->kind == PG_JSON || to->kind == PG_JSONB;
  const struct ArrowSchema *values = pg_field_values(field);
  struct ArrowSchemaView under;
  if (ArrowSchemaViewInit(&under, values, &arrow) != NANOARROW_OK) {
    status = weir_error_set(err, WEIR_E_SCHEMA, 0, "%s", arrow.message);
    goto out;
  }
  if (json && !to->array && pg_type_is_nested(under.type)) {
    status = init_json(column, schema, number, err);
  } else if (view.type == NANOARROW_TYPE_DICTIONARY) {
    column->width = index_width(view.storage_type);
    column->put = pg_put_indirect;
    status = init_child(column, schema, field->dictionary, err);
  } else if (view.type == NANOARROW_TYPE_RUN_END_ENCODED) {
    struct ArrowSchemaView ends;
    column->put = pg_put_indirect;
    if (ArrowSchemaViewInit(&ends, field->children[0], &arrow) == NANOARROW_OK)
      column->width = index_width(ends.type);
    status = init_child(column, schema, field->children[1], err);
  } else if (to->array && pg_type_is_list(view.type)) {
    column->width = view.type == NANOARROW_TYPE_FIXED_SIZE_LIST ? view.fixed_size : 0;
    column->put = pg_put_array;
    column->room = 4 + 20;
    column->to.array = false;
    status = init_child(column, schema, field->children[0], err);
  } else {
    status = init_leaf(column, &view, err);
  }
  if (column->put == pg_put_indirect && column->child) column->room = column->child->room;
out:
  if (status) pg_column_done(column);
  return status;
}

void pg_column_done(pg_column *column) {
  if (column->child) {
    pg_column_done(column->child);
    free(column->child);
  }
  if (column->json) {
    weir_ndjson_encoder_free(column->json->encoder);
    weir_schema_unref(column->json->schema);
    free(column->json->ends);
    free(column->json);
  }
  *column = (pg_column){0};
}

/* ---- binding ------------------------------------------------------------------------------------------ */

void pg_column_bind(pg_column *column, const struct ArrowArray *array) {
  column->array = array;
  column->validity = NULL;
  if (column->json || column->from == NANOARROW_TYPE_NA) return;
  if (column->from == NANOARROW_TYPE_RUN_END_ENCODED) {
    pg_column_bind(column->child, array->children[1]);
    return;
  }
  if (array->null_count) column->validity = array->buffers[0];
  column->values = array->n_buffers > 1 ? array->buffers[1] : NULL;
  column->bytes = array->n_buffers > 2 ? array->buffers[2] : NULL;
  if (!column->child) return;
  pg_column_bind(column->child,
                 array->dictionary ? array->dictionary : array->children[0]);
}

/* The cursor of pg_json: where each line ends. */
static weir_status json_lines(pg_json *json, size_t size, int64_t rows, weir_error *err) {
  if (json->room < (size_t)rows) {
    size_t *ends = realloc(json->ends, (size_t)rows * sizeof(*ends));
    if (!ends) return weir_error_set(err, WEIR_E_NOMEM, 0, "no memory for a batch");
    json->ends = ends;
    json->room = (size_t)rows;
  }
  size_t at = 0;
  for (int64_t row = 0; row < rows; row++) {
    const uint8_t *end = memchr(json->text + at, '\n', size - at);
    if (!end) return weir_error_set(err, WEIR_E_INTERNAL, 0, "a line of JSON is missing");
    at = (size_t)(end - json->text) + 1;
    json->ends[row] = at;
  }
  return WEIR_OK;
}

weir_status pg_json_bind(pg_json *json, weir_batch *batch, weir_error *err) {
  weir_batch *one = NULL;
  size_t size = 0;
  weir_status status = weir_batch_select(batch, json->schema, &json->column, &one, err);
  if (!status)
    status = weir_ndjson_encoder_write(json->encoder, one, &json->text, &size, err);
  if (!status) status = json_lines(json, size, weir_batch_rows(batch), err);
  weir_batch_unref(one);
  return status;
}

/* ---- checking and measuring ----------------------------------------------------------------------------- */

/* jsonb holds no NUL, which JSON writes as \u0000 behind an even number of backslashes. */
static int64_t check_json(const pg_column *column, int64_t i, int64_t n) {
  static const char nul[] = "\\u0000";
  const pg_json *json = column->json;
  int64_t first = i - column->array->offset;
  if (column->to.kind != PG_JSONB || !n) return -1;
  size_t from = first ? json->ends[first - 1] : 0;
  const uint8_t *at = json->text + from, *end = json->text + json->ends[first + n - 1];
  while ((at = memmem(at, (size_t)(end - at), nul, sizeof(nul) - 1))) {
    size_t before = 0;
    while (at - before > json->text && at[-1 - (ptrdiff_t)before] == '\\') before++;
    if (before % 2 == 0) {
      int64_t row = first;
      while (json->ends[row] <= (size_t)(at - json->text)) row++;
      return row + column->array->offset;
    }
    at++;
  }
  return -1;
}

/* Whether position i alone cannot be put. */
static bool is_bad(pg_column *column, int64_t i) {
  if (column->validity && !pg_bit(column->validity, i)) return false;
  if (column->put == pg_put_indirect)
    return pg_column_check(column->child, pg_column_place(column, i), 1) >= 0;
  if (column->put == pg_put_array) {
    int64_t first, n;
    pg_list_range(column, i, &first, &n);
    return pg_column_check(column->child, first, n) >= 0;
  }
  return column->rule->check(column, i, 1) >= 0;
}

/* All at once, with what lies under nulls: whether anything may be wrong. */
static bool may_be_bad(pg_column *column, int64_t i, int64_t n) {
  if (column->put == pg_put_indirect || column->put == pg_put_array) {
    pg_column *child = column->child;
    return pg_column_check(child, child->array->offset, child->array->length) >= 0;
  }
  return column->rule->check && column->rule->check(column, i, n) >= 0;
}

int64_t pg_column_check(pg_column *column, int64_t i, int64_t n) {
  if (!n) return -1;
  if (column->json) return check_json(column, i, n);
  if (!may_be_bad(column, i, n)) return -1;
  for (int64_t end = i + n; i < end; i++)
    if (is_bad(column, i)) return i;
  return -1;
}

static size_t extra_of_one(pg_column *column, int64_t i) {
  if (column->validity && !pg_bit(column->validity, i)) return 0;
  if (column->put == pg_put_indirect)
    return pg_column_extra(column->child, pg_column_place(column, i), 1);
  if (column->put == pg_put_array) {
    int64_t first, n;
    pg_list_range(column, i, &first, &n);
    return (size_t)n * column->child->room + pg_column_extra(column->child, first, n);
  }
  size_t size = 0;
  pg_text(column, i, &size);
  return size;
}

size_t pg_column_extra(pg_column *column, int64_t i, int64_t n) {
  if (!n) return 0;
  if (column->json) {
    const pg_json *json = column->json;
    int64_t first = i - column->array->offset;
    size_t from = first ? json->ends[first - 1] : 0;
    return json->ends[first + n - 1] - from;
  }
  size_t size = 0;
  switch (column->from) {
    case NANOARROW_TYPE_STRING:
    case NANOARROW_TYPE_BINARY:
    case NANOARROW_TYPE_LARGE_STRING:
    case NANOARROW_TYPE_LARGE_BINARY: {
      const uint8_t *first = pg_text(column, i, &size);
      const uint8_t *last = pg_text(column, i + n - 1, &size);
      return (size_t)(last - first) + size;
    }
    case NANOARROW_TYPE_STRING_VIEW:
    case NANOARROW_TYPE_BINARY_VIEW:
      break;
    default:
      if (!column->child) return 0;
  }
  for (int64_t end = i + n; i < end; i++) size += extra_of_one(column, i);
  return size;
}

const char *pg_column_why(const pg_column *column) {
  if (column->json) return "holds a NUL character in a text, which jsonb cannot";
  while (column->child) column = column->child;
  switch (column->from) {
    case NANOARROW_TYPE_STRING:
    case NANOARROW_TYPE_LARGE_STRING:
    case NANOARROW_TYPE_STRING_VIEW:
      if (column->to.kind == PG_UUID)
        return "is no UUID of 32 hex digits in groups of 8, 4, 4, 4 and 12";
      return column->longest ? "is longer than its column lets in, or is no UTF-8, or "
                               "holds a NUL character, which PostgreSQL's texts cannot"
                             : "is no UTF-8, or holds a NUL character, which "
                               "PostgreSQL's texts cannot";
    case NANOARROW_TYPE_DATE64:
      return "is no whole day, or outside the dates of PostgreSQL";
    default:
      return "is no whole number of microseconds, or outside what PostgreSQL's type "
             "reaches";
  }
}
