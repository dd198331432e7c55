/* SPDX-License-Identifier: Apache-2.0 */
#include "column.h"

#include "bits.h"
#include "nested.h"

void context_done(parquet_context *ctx) {
  codec_done(&ctx->codec);
  parquet_pool_done(&ctx->pool);
  take_scratch_done(&ctx->take);
  levels_done(&ctx->levels);
  base_buf_done(&ctx->selected);
  base_buf_done(&ctx->level_bytes);
  base_buf_done(&ctx->body);
  base_buf_done(&ctx->indices);
  base_buf_done(&ctx->numbers);
  base_buf_done(&ctx->map);
  base_buf_done(&ctx->fresh);
  base_buf_done(&ctx->entries);
  base_buf_done(&ctx->entry_offsets);
  base_buf_done(&ctx->header);
}

void column_init(parquet_column *column, const parquet_leaf *leaf) {
  *column = (parquet_column){.leaf = leaf};
  dict_init(&column->dict, leaf->width);
}

void column_wish(parquet_column *column, choose_wish wish) {
  column->wish = wish;
  column->closed = wish.set && wish.encoding != PARQUET_RLE_DICTIONARY;
}

static void open_clear(open_page *open) {
  open->rows = open->levels = open->nulls = open->n = 0;
  open->numbered = false;
  base_buf_clear(&open->valid);
  base_buf_clear(&open->def);
  base_buf_clear(&open->rep);
  base_buf_clear(&open->values);
  base_buf_clear(&open->offsets);
}

void column_clear(parquet_column *column, parquet_context *ctx) {
  parquet_rope_clear(&column->dictionary_page, &ctx->pool);
  parquet_rope_clear(&column->pages, &ctx->pool);
  open_clear(&column->open);
  dict_clear(&column->dict);
  base_buf_clear(&column->records);
  base_buf_clear(&column->bounds_bytes);
  base_buf_clear(&column->page_bytes);
  base_buf_clear(&column->rep_counts);
  base_buf_clear(&column->def_counts);
  stats_clear(&column->bounds);
  column->choice = (parquet_choice){0};
  column->decided = column->numbered = false;
  column_wish(column, column->wish);
  column->packed = column->compress = column->stored = column->literals = false;
  column->unbounded = column->bloom_full = false;
  column->raw_planes = 0;
  base_buf_clear(&column->hashes);
  column->rows = column->levels = column->nulls = column->plain_bytes = 0;
  memset(column->encoding_pages, 0, sizeof(column->encoding_pages));
}

void column_done(parquet_column *column, parquet_context *ctx) {
  parquet_rope_clear(&column->dictionary_page, &ctx->pool);
  parquet_rope_clear(&column->pages, &ctx->pool);
  base_buf_done(&column->open.valid);
  base_buf_done(&column->open.def);
  base_buf_done(&column->open.rep);
  base_buf_done(&column->open.values);
  base_buf_done(&column->open.offsets);
  base_buf_done(&column->records);
  base_buf_done(&column->bounds_bytes);
  base_buf_done(&column->page_bytes);
  base_buf_done(&column->rep_counts);
  base_buf_done(&column->def_counts);
  base_buf_done(&column->hashes);
  stats_done(&column->bounds);
  dict_done(&column->dict);
}

uint64_t column_bytes(const parquet_column *column) {
  return column->pages.size + column->dictionary_page.size + column->open.values.size +
         column->open.offsets.size + column->open.valid.size + column->open.def.size +
         column->open.rep.size + column->hashes.size +
         (column->dictionary_page.size == 0 ? column->dict.values.size : 0);
}

/* ---- the open page ---------------------------------------------------------------------------- */

static weir_status keep_valid(open_page *open, const parquet_piece *piece,
                              weir_error *err) {
  if (open->nulls == 0 && piece->nulls == 0) return WEIR_OK;
  size_t rows = open->rows + piece->rows;
  BASE_TRY(parquet_reserve(&open->valid, rows / 8 + 16, err));
  if (open->nulls == 0) bits_set(open->valid.data, 0, open->rows);
  if (piece->valid != NULL) {
    bits_copy(open->valid.data, open->rows, piece->valid, 0, piece->rows);
  } else {
    bits_set(open->valid.data, open->rows, piece->rows);
  }
  memset(open->valid.data + (rows + 7) / 8, 0, 16);
  open->valid.size = (rows + 7) / 8;
  return WEIR_OK;
}

static weir_status keep_bytes(open_page *open, const parquet_values *values,
                              weir_error *err) {
  size_t n = values->n;
  uint32_t first = values->offsets[0], at = (uint32_t)open->values.size;
  BASE_TRY(parquet_reserve(&open->offsets, (open->n + n + 1) * sizeof(uint32_t), err));
  uint32_t *offsets = (uint32_t *)(void *)open->offsets.data + open->n;
  for (size_t i = 0; i <= n; i++) offsets[i] = values->offsets[i] - first + at;
  size_t size = values->offsets[n] - first;
  if (size > 0) BASE_TRY(base_buf_append(&open->values, values->data + first, size, err));
  open->offsets.size = (open->n + n + 1) * sizeof(uint32_t);
  return WEIR_OK;
}

static weir_status keep_values(parquet_column *column, const parquet_values *values,
                               bool numbered, weir_error *err) {
  open_page *open = &column->open;
  const parquet_leaf *leaf = column->leaf;
  if (values->n == 0) return WEIR_OK;
  if (numbered || leaf->width != 0) {
    size_t width = numbered ? sizeof(uint32_t) : leaf->width;
    /* Room for the 8 numbers that the hybrid encoding fills up with. */
    BASE_TRY(parquet_reserve(&open->values, (open->n + values->n) * width, err));
    return base_buf_append(&open->values, values->data, values->n * width, err);
  }
  if (leaf->type == PARQUET_BYTE_ARRAY) return keep_bytes(open, values, err);
  size_t bits = open->n + values->n;
  BASE_TRY(parquet_reserve(&open->values, bits / 8 + 16, err));
  bits_copy(open->values.data, open->n, values->data, 0, values->n);
  open->values.size = (bits + 7) / 8;
  return WEIR_OK;
}

static weir_status keep(parquet_column *column, const parquet_piece *piece, bool numbered,
                        weir_error *err) {
  open_page *open = &column->open;
  open->numbered = numbered;
  if (piece->def == NULL) {
    BASE_TRY(keep_valid(open, piece, err));
  } else {
    BASE_TRY(base_buf_append(&open->def, piece->def, piece->levels, err));
    if (piece->rep != NULL)
      BASE_TRY(base_buf_append(&open->rep, piece->rep, piece->levels, err));
  }
  BASE_TRY(keep_values(column, &piece->values, numbered, err));
  open->rows += piece->rows;
  open->levels += piece->levels;
  open->nulls += piece->nulls;
  open->n += piece->values.n;
  return WEIR_OK;
}

weir_status column_flush(parquet_column *column, parquet_context *ctx, weir_error *err) {
  open_page *open = &column->open;
  if (open->rows == 0) return WEIR_OK;
  parquet_piece piece = {.rows = open->rows,
                         .levels = open->levels,
                         .nulls = open->nulls,
                         .valid = open->nulls > 0 ? open->valid.data : NULL,
                         .values = {open->values.data, NULL, open->n}};
  if (column->leaf->nested) {
    piece.valid = NULL;
    piece.def = open->def.data;
    piece.rep = column->leaf->max_rep > 0 ? open->rep.data : NULL;
  }
  if (column->leaf->type == PARQUET_BYTE_ARRAY && !open->numbered && open->n > 0) {
    piece.values.offsets = (const uint32_t *)(const void *)open->offsets.data;
  }
  weir_status status = page_write(column, ctx, &piece, open->numbered, err);
  open_clear(open);
  return status;
}

/* ---- pieces ----------------------------------------------------------------------------------- */

/* A piece that ends its page goes there without being copied if nothing waits before it. */
weir_status column_place(parquet_column *column, parquet_context *ctx,
                         const parquet_piece *piece, bool numbered, bool last,
                         weir_error *err) {
  if (last && column->open.rows == 0)
    return page_write(column, ctx, piece, numbered, err);
  BASE_TRY(keep(column, piece, numbered, err));
  return last ? column_flush(column, ctx, err) : WEIR_OK;
}

weir_status column_number_rows(parquet_column *column, parquet_context *ctx,
                               const struct ArrowArray *dictionary, parquet_piece *piece,
                               bool *full, weir_error *err) {
  const uint32_t *rows = (const uint32_t *)(const void *)piece->values.data;
  size_t n = piece->values.n, slots = (size_t)dictionary->length, fresh = 0;
  BASE_TRY(parquet_reserve(&ctx->map, slots * sizeof(uint32_t), err));
  BASE_TRY(parquet_reserve(&ctx->fresh, n * sizeof(uint32_t), err));
  BASE_TRY(parquet_reserve(&ctx->numbers, (n + 8) * sizeof(uint32_t), err));
  uint32_t *map = (uint32_t *)(void *)ctx->map.data;
  uint32_t *unknown = (uint32_t *)(void *)ctx->fresh.data;
  uint32_t *numbers = (uint32_t *)(void *)ctx->numbers.data;
  memset(map, 0xff, slots * sizeof(uint32_t));
  for (size_t i = 0; i < n; i++) {
    if (map[rows[i]] != UINT32_MAX) continue;
    map[rows[i]] = 0;
    unknown[fresh++] = rows[i];
  }
  if (fresh > 0) {
    parquet_values values;
    BASE_TRY(
        take_rows(column->leaf, dictionary, unknown, fresh, &ctx->take, &values, err));
    if (values.offsets != NULL) {
      BASE_TRY(dict_map_bytes(&column->dict, values.data, values.offsets, fresh, numbers,
                              full, err));
    } else {
      BASE_TRY(
          dict_map_fixed(&column->dict, values.data, fresh, 0, 0, numbers, full, err));
    }
    if (*full) return WEIR_OK;
    for (size_t i = 0; i < fresh; i++) map[unknown[i]] = numbers[i];
  }
  for (size_t i = 0; i < n; i++) numbers[i] = map[rows[i]];
  piece->values.data = ctx->numbers.data;
  return WEIR_OK;
}

/* A piece of a dictionary column as numbers. When they find no room, nothing is taken, and the column
 * goes on as one of plain values. */
static weir_status append_numbered(parquet_column *column, parquet_context *ctx,
                                   const struct ArrowArray *array, size_t start,
                                   size_t length, bool last, bool *taken,
                                   weir_error *err) {
  parquet_piece piece;
  bool full = false;
  BASE_TRY(take_indices(column->leaf, array, start, length, &ctx->take, &piece, err));
  BASE_TRY(column_number_rows(column, ctx, array->dictionary, &piece, &full, err));
  *taken = !full;
  if (!full) return column_place(column, ctx, &piece, true, last, err);
  column->closed = true;
  return column_flush(column, ctx, err);
}

static weir_status append_values(parquet_column *column, parquet_context *ctx,
                                 const struct ArrowArray *array, size_t start,
                                 size_t length, bool last, weir_error *err) {
  const parquet_leaf *leaf = column->leaf;
  parquet_piece piece;
  if (leaf->node->dictionary == NULL) {
    BASE_TRY(take_slots(leaf, array, start, length, &ctx->take, &piece, err));
  } else {
    BASE_TRY(take_indices(leaf, array, start, length, &ctx->take, &piece, err));
    const uint32_t *rows = (const uint32_t *)(const void *)piece.values.data;
    BASE_TRY(take_rows(leaf, array->dictionary, rows, piece.values.n, &ctx->take,
                       &piece.values, err));
  }
  return column_place(column, ctx, &piece, false, last, err);
}

/* Where the bytes of texts end the first page of a chunk, its encoding is chosen before it is cut. */
static weir_status decide_early(parquet_column *column, parquet_context *ctx,
                                const struct ArrowArray *array, size_t start,
                                size_t length, weir_error *err) {
  parquet_piece piece;
  if (column->decided || column->open.rows > 0) return WEIR_OK;
  BASE_TRY(take_slots(column->leaf, array, start, length, &ctx->take, &piece, err));
  if (piece.values.n == 0) return WEIR_OK;
  return page_decide(column, ctx, &piece.values, &(stats_page){0}, err);
}

/* How many of the slots are the next piece, whose values are not numbers yet; *last: it ends the page. */
static weir_status fit_page(parquet_column *column, parquet_context *ctx,
                            const struct ArrowArray *array, size_t start, size_t length,
                            size_t *fit, bool *last, weir_error *err) {
  const parquet_leaf *leaf = column->leaf;
  size_t room = ctx->page_rows - column->open.rows, budget = ctx->page_bytes;
  size_t most = length < room ? length : room;
  size_t bytes = take_bytes(leaf, array, start, most);
  if (bytes > budget) BASE_TRY(decide_early(column, ctx, array, start, most, err));
  /* A page of numbers is far smaller than the values that they stand for. */
  if (column->decided && column->choice.encoding == PARQUET_RLE_DICTIONARY) budget *= 8;
  size_t used = column->open.values.size;
  budget = used < budget ? budget - used : 0;
  /* What is left of a batch rather goes with its last page than waits for the next one. */
  bool rest = used == 0 && bytes >= budget / 2 && bytes <= budget + budget / 2;
  *fit = rest ? most : take_fit(leaf, array, start, most, budget);
  *last = (rest && bytes > 0) || *fit < length || *fit == room;
  return WEIR_OK;
}

weir_status column_append(parquet_column *column, parquet_context *ctx,
                          const struct ArrowArray *array, size_t start, size_t length,
                          weir_error *err) {
  const parquet_leaf *leaf = column->leaf;
  if (leaf->nested) return nested_append(column, ctx, array, start, length, err);
  bool encoded = leaf->node->dictionary != NULL && leaf->type != PARQUET_BOOLEAN;
  while (length > 0) {
    bool taken = true, last = false;
    size_t fit = 0;
    if (encoded && !column->closed) {
      size_t room = ctx->page_rows - column->open.rows;
      fit = length < room ? length : room;
      last = fit < length || fit == room;
      BASE_TRY(append_numbered(column, ctx, array, start, fit, last, &taken, err));
    } else {
      BASE_TRY(fit_page(column, ctx, array, start, length, &fit, &last, err));
      BASE_TRY(append_values(column, ctx, array, start, fit, last, err));
    }
    if (!taken) continue;
    start += fit;
    length -= fit;
  }
  return WEIR_OK;
}

weir_status column_hash(parquet_column *column, const parquet_values *values,
                        weir_error *err) {
  if (!column->bloom || column->bloom_full) return WEIR_OK;
  column->bloom_full =
      values->n > BLOOM_MAX_VALUES - column->hashes.size / sizeof(uint64_t);
  if (column->bloom_full) return WEIR_OK;
  return bloom_hash(values, column->leaf->width, &column->hashes, err);
}

weir_status column_finish(parquet_column *column, parquet_context *ctx, weir_error *err) {
  BASE_TRY(column_flush(column, ctx, err));
  return column->numbered ? page_write_dictionary(column, ctx, err) : WEIR_OK;
}

weir_status column_put_bloom(parquet_column *column, base_buf *out, weir_error *err) {
  if (!column->bloom) return WEIR_OK;
  if (column->numbered) {
    parquet_values entries = dict_values(&column->dict);
    BASE_TRY(column_hash(column, &entries, err));
  }
  size_t n = column->hashes.size / sizeof(uint64_t);
  if (column->bloom_full || n == 0) return WEIR_OK;
  const uint64_t *hashes = (const uint64_t *)(const void *)column->hashes.data;
  return bloom_put(hashes, n, out, err);
}
