/* SPDX-License-Identifier: Apache-2.0 */
#include "nested.h"

#include <inttypes.h>

enum {
  LEVELS_AT_ONCE = 1 << 17, /* about what a call of levels_take is to give */
  FIRST_ROWS = 1024,
  ROWS_AT_ONCE = 1 << 16
};

/* The arrays' slots are counted in 32 bits where they are taken one by one. */
#define SLOTS_MAX ((int64_t)UINT32_MAX)
#define RECORD_MAX ((uint64_t)1 << 30)

/* Where in the levels of a call a page begins, and with it in their slots. */
typedef struct level_cursor {
  size_t level;
  size_t range, within; /* slots of the range that lie before */
} level_cursor;

/* Levels that go into one page. */
typedef struct level_part {
  size_t n, rows, values, slots;
} level_part;

static const level_range *ranges_of(const parquet_levels *l) {
  return (const level_range *)(const void *)l->ranges.data;
}

static size_t slot_at(const parquet_levels *l, const level_cursor *at) {
  return ranges_of(l)[at->range].start + at->within;
}

static void next_slot(const parquet_levels *l, level_cursor *at) {
  if (++at->within < ranges_of(l)[at->range].length) return;
  at->range++;
  at->within = 0;
}

static void skip_slots(const parquet_levels *l, level_cursor *at, size_t n) {
  while (n > 0) {
    size_t left = ranges_of(l)[at->range].length - at->within;
    if (n < left) {
      at->within += n;
      return;
    }
    n -= left;
    at->range++;
    at->within = 0;
  }
}

/* ---- check ------------------------------------------------------------------------------------ */

static weir_status check_arrays(const parquet_leaf *leaf, const struct ArrowArray *array,
                                const struct ArrowArray **out, weir_error *err) {
  for (size_t i = 0; i < leaf->n_steps; i++) {
    const arrow_node *node = leaf->steps[i].node;
    if (array->length > SLOTS_MAX - array->offset) {
      weir_error_set(err, WEIR_E_BAD_DATA, WEIR_ERR_BAD_DATA,
                     "column %d '%s': %" PRId64
                     " values in one batch, 2^32 at most; use smaller batches",
                     (int)leaf->column, leaf->name, array->length);
      return weir_error_at(err, WEIR_E_BAD_DATA, -1, leaf->column);
    }
    if (i + 1 == leaf->n_steps) break;
    array = node->layout == ARROW_STRUCT     ? array->children[leaf->steps[i].child]
            : node->layout == ARROW_RUN_ENDS ? array->children[1]
                                             : array->children[0];
  }
  *out = array;
  return WEIR_OK;
}

static uint64_t value_bytes(const parquet_leaf *leaf, const parquet_levels *l,
                            const level_cursor *at) {
  return take_slot_bytes(leaf, l->array, slot_at(l, at)) + sizeof(uint32_t);
}

/* Values of the levels that were taken, one by one; `row` is that of the first level. */
static weir_status check_levels(const parquet_leaf *leaf, const parquet_levels *l,
                                int64_t row, weir_error *err) {
  const uint8_t *def = l->def.data, *rep = leaf->max_rep > 0 ? l->rep.data : NULL;
  level_cursor at = {0};
  uint64_t bytes = 0;
  row--;
  for (; at.level < l->n; at.level++) {
    if (rep == NULL || rep[at.level] == 0) {
      bytes = 0;
      row++;
    }
    bool value = def[at.level] == leaf->max_def;
    if (value) {
      BASE_TRY(leaf_check_slot(leaf, l->array, slot_at(l, &at), row, err));
      bytes += value_bytes(leaf, l, &at);
    }
    if (bytes > RECORD_MAX) {
      return leaf_bad(leaf, row,
                      "the record is longer than 1 GiB, which no page can hold", err);
    }
    if (def[at.level] >= l->carry) next_slot(l, &at);
  }
  return WEIR_OK;
}

weir_status nested_check(const parquet_leaf *leaf, const struct ArrowArray *column,
                         parquet_levels *levels, weir_error *err) {
  const struct ArrowArray *array = NULL;
  BASE_TRY(check_arrays(leaf, column, &array, err));
  bool look = array->length > (int64_t)(RECORD_MAX / 64) || leaf_may_fail(leaf, array);
  size_t rows = (size_t)column->length, at_once = FIRST_ROWS;
  for (size_t done = 0; look && done < rows; done += at_once) {
    if (at_once > rows - done) at_once = rows - done;
    BASE_TRY(levels_take(leaf, column, done, at_once, levels, err));
    BASE_TRY(check_levels(leaf, levels, (int64_t)done, err));
  }
  return WEIR_OK;
}

/* ---- pages ------------------------------------------------------------------------------------ */

/* How many of `most` levels hold about `budget` bytes of values. */
static size_t fit_bytes(const parquet_leaf *leaf, const parquet_levels *l,
                        level_cursor at, size_t most, size_t budget) {
  if (leaf->take != TAKE_BYTES && leaf->take != TAKE_VIEWS) {
    size_t fit = leaf->width == 0 ? most : budget / leaf->width;
    return fit < most ? fit : most;
  }
  const uint8_t *def = l->def.data + at.level;
  size_t sum = 0;
  for (size_t i = 0; i < most; i++) {
    if (def[i] == leaf->max_def) {
      sum += take_slot_bytes(leaf, l->array, slot_at(l, &at));
      if (sum > budget) return i;
    }
    if (def[i] >= l->carry) next_slot(l, &at);
  }
  return most;
}

/* The levels that the open page has room for, whole records; none (n == 0) if it has to end first. */
static level_part fit(const parquet_column *column, const parquet_context *ctx,
                      const parquet_levels *l, const level_cursor *at, bool numbered) {
  const parquet_leaf *leaf = column->leaf;
  const open_page *open = &column->open;
  const uint8_t *rep = leaf->max_rep > 0 ? l->rep.data + at->level : NULL;
  size_t left = l->n - at->level;
  size_t room = open->levels < ctx->page_rows ? ctx->page_rows - open->levels : 0;
  size_t n = left < room ? left : room;
  if (!numbered) {
    size_t used = open->values.size;
    n = fit_bytes(leaf, l, *at, n, used < ctx->page_bytes ? ctx->page_bytes - used : 0);
  }
  while (rep != NULL && n > 0 && n < left && rep[n] != 0) n--;
  if (n == 0 && open->rows == 0) {
    n = 1;
    while (rep != NULL && n < left && rep[n] != 0) n++;
  }
  level_part part = {.n = n, .rows = n};
  const uint8_t *def = l->def.data + at->level;
  if (rep != NULL) part.rows = levels_count(rep, n, 0);
  part.values = levels_count(def, n, leaf->max_def);
  part.slots = levels_count_from(def, n, l->carry);
  return part;
}

/* The slots of a part that hold values: a range where there is one, else one by one. */
static weir_status select_slots(const parquet_leaf *leaf, parquet_context *ctx,
                                const parquet_levels *l, level_cursor at,
                                const level_part *part, take_selection *out,
                                weir_error *err) {
  const uint8_t *def = l->def.data + at.level;
  *out = (take_selection){.length = part->slots, .nulls = part->slots - part->values};
  if (part->slots == 0) return WEIR_OK;
  if (ranges_of(l)[at.range].length - at.within >= part->slots) {
    out->start = slot_at(l, &at);
    if (out->nulls == 0) return WEIR_OK;
    BASE_TRY(parquet_reserve(&ctx->selected, part->slots / 8 + 16, err));
    uint8_t *valid = ctx->selected.data;
    memset(valid, 0, part->slots / 8 + 16);
    for (size_t i = 0, slot = 0; i < part->n; i++) {
      valid[slot / 8] |= (uint8_t)((def[i] == leaf->max_def) << (slot % 8));
      slot += def[i] >= l->carry;
    }
    out->valid = valid;
    return WEIR_OK;
  }
  BASE_TRY(parquet_reserve(&ctx->selected, (part->values + 1) * sizeof(uint32_t), err));
  uint32_t *rows = (uint32_t *)(void *)ctx->selected.data;
  size_t count = 0;
  for (size_t i = 0; i < part->n; i++) {
    if (def[i] == leaf->max_def) rows[count++] = (uint32_t)slot_at(l, &at);
    if (def[i] >= l->carry) next_slot(l, &at);
  }
  *out = (take_selection){.length = count, .rows = rows};
  return WEIR_OK;
}

/* *full: the dictionary has no room for the part, and the column goes on without. */
static weir_status take_part(parquet_column *column, parquet_context *ctx,
                             const parquet_levels *l, const level_cursor *at,
                             const level_part *part, bool numbered, parquet_piece *piece,
                             bool *full, weir_error *err) {
  const parquet_leaf *leaf = column->leaf;
  const struct ArrowArray *dictionary = l->array->dictionary;
  take_selection selection;
  *piece = (parquet_piece){.rows = part->rows,
                           .levels = part->n,
                           .nulls = part->n - part->values,
                           .def = l->def.data + at->level};
  if (leaf->max_rep > 0) piece->rep = l->rep.data + at->level;
  if (part->values == 0) return WEIR_OK;
  BASE_TRY(select_slots(leaf, ctx, l, *at, part, &selection, err));
  if (dictionary == NULL) {
    return take_selected(leaf, l->array, &selection, &ctx->take, &piece->values, err);
  }
  BASE_TRY(
      take_selected_indices(leaf, l->array, &selection, &ctx->take, &piece->values, err));
  if (numbered) return column_number_rows(column, ctx, dictionary, piece, full, err);
  const uint32_t *rows = (const uint32_t *)(const void *)piece->values.data;
  return take_rows(leaf, dictionary, rows, piece->values.n, &ctx->take, &piece->values,
                   err);
}

static weir_status append_levels(parquet_column *column, parquet_context *ctx,
                                 const parquet_levels *l, weir_error *err) {
  const parquet_leaf *leaf = column->leaf;
  bool encoded = leaf->node->dictionary != NULL && leaf->type != PARQUET_BOOLEAN;
  level_cursor at = {0};
  while (at.level < l->n) {
    bool numbered = encoded && !column->closed, full = false;
    level_part part = fit(column, ctx, l, &at, numbered);
    if (part.n == 0) {
      BASE_TRY(column_flush(column, ctx, err));
      continue;
    }
    parquet_piece piece;
    BASE_TRY(take_part(column, ctx, l, &at, &part, numbered, &piece, &full, err));
    if (full) {
      column->closed = true;
      BASE_TRY(column_flush(column, ctx, err));
      continue;
    }
    bool last =
        at.level + part.n < l->n || column->open.levels + part.n >= ctx->page_rows;
    BASE_TRY(column_place(column, ctx, &piece, numbered, last, err));
    at.level += part.n;
    skip_slots(l, &at, part.slots);
  }
  return WEIR_OK;
}

weir_status nested_append(parquet_column *column, parquet_context *ctx,
                          const struct ArrowArray *array, size_t start, size_t length,
                          weir_error *err) {
  parquet_levels *l = &ctx->levels;
  while (length > 0) {
    size_t rows = column->rows_at_once == 0 ? FIRST_ROWS : column->rows_at_once;
    if (rows > length) rows = length;
    BASE_TRY(levels_take(column->leaf, array, start, rows, l, err));
    BASE_TRY(append_levels(column, ctx, l, err));
    start += rows;
    length -= rows;
    rows = rows * LEVELS_AT_ONCE / l->n;
    column->rows_at_once = rows < 1 ? 1 : rows < ROWS_AT_ONCE ? rows : ROWS_AT_ONCE;
  }
  return WEIR_OK;
}
