/* SPDX-License-Identifier: Apache-2.0 */
#include "levels.h"

#include "bits.h"

void levels_done(parquet_levels *levels) {
  base_buf_done(&levels->def);
  base_buf_done(&levels->rep);
  base_buf_done(&levels->ranges);
  base_buf_done(&levels->next_def);
  base_buf_done(&levels->next_rep);
  base_buf_done(&levels->next_ranges);
  base_buf_done(&levels->sizes);
  base_buf_done(&levels->valid);
}

PARQUET_CLONES
size_t levels_count(const uint8_t *levels, size_t n, uint8_t value) {
  size_t count = 0;
  for (size_t i = 0; i < n; i++) count += levels[i] == value;
  return count;
}

PARQUET_CLONES
size_t levels_count_from(const uint8_t *levels, size_t n, uint8_t value) {
  size_t count = 0;
  for (size_t i = 0; i < n; i++) count += levels[i] >= value;
  return count;
}

static const level_range *ranges_of(const base_buf *buf, size_t *n) {
  *n = buf->size / sizeof(level_range);
  return (const level_range *)(const void *)buf->data;
}

static weir_status add_range(base_buf *ranges, size_t start, size_t length,
                             weir_error *err) {
  if (length == 0) return WEIR_OK;
  if (ranges->size > 0) {
    level_range *last =
        (level_range *)(void *)(ranges->data + ranges->size - sizeof(level_range));
    if (last->start + last->length == start) {
      last->length += length;
      return WEIR_OK;
    }
  }
  level_range range = {start, length};
  return base_buf_append(ranges, &range, sizeof(range), err);
}

static void swap(base_buf *a, base_buf *b) {
  base_buf kept = *a;
  *a = *b;
  *b = kept;
}

/* ---- nulls ------------------------------------------------------------------------------------ */

PARQUET_CLONES
static void raise_all(uint8_t *def, size_t n, uint8_t at) {
  for (size_t i = 0; i < n; i++) def[i] = (uint8_t)(def[i] + (def[i] == at));
}

/* Every level has a slot. */
static void raise_dense(uint8_t *def, size_t n, uint8_t at, const uint8_t *valid) {
  for (size_t i = 0; i < n; i += 8) {
    unsigned bits = valid[i / 8];
    size_t m = n - i < 8 ? n - i : 8;
    for (size_t k = 0; k < m; k++, bits >>= 1) {
      def[i + k] = (uint8_t)(def[i + k] + ((def[i + k] == at) & bits));
    }
  }
}

static void raise_sparse(uint8_t *def, size_t n, uint8_t at, uint8_t carry,
                         const uint8_t *valid) {
  size_t slot = 0;
  for (size_t i = 0; i < n; i++) {
    uint8_t d = def[i];
    unsigned bit = valid[slot / 8] >> (slot % 8) & 1u;
    def[i] = (uint8_t)(d + ((d == at) & bit));
    slot += d >= carry;
  }
}

/* Slots that name a null of their dictionary are null too. */
static void drop_holes(const parquet_leaf *leaf, parquet_levels *l) {
  size_t n_ranges = 0, bit = 0;
  const level_range *ranges = ranges_of(&l->ranges, &n_ranges);
  const struct ArrowArray *dictionary = l->array->dictionary;
  const uint8_t *holes = dictionary->buffers[0];
  uint8_t *valid = l->valid.data;
  for (size_t r = 0; r < n_ranges; r++) {
    for (size_t i = 0; i < ranges[r].length; i++, bit++) {
      if ((valid[bit / 8] >> (bit % 8) & 1) == 0) continue;
      size_t row = take_index_at(leaf, l->array, ranges[r].start + i);
      /* An index that nobody sees may be anything. */
      if (row >= (size_t)dictionary->length) continue;
      row += (size_t)dictionary->offset;
      if ((holes[row / 8] >> (row % 8) & 1) == 0)
        valid[bit / 8] &= (uint8_t)~(1u << (bit % 8));
    }
  }
}

/* Validity of the current slots, from bit 0, in l->valid. */
static weir_status gather_valid(parquet_levels *l, bool nulls, weir_error *err) {
  size_t n_ranges = 0, bit = 0;
  const level_range *ranges = ranges_of(&l->ranges, &n_ranges);
  BASE_TRY(parquet_reserve(&l->valid, l->slots / 8 + 16, err));
  if (!nulls) {
    memset(l->valid.data, 0xff, l->slots / 8 + 1);
    return WEIR_OK;
  }
  l->valid.data[l->slots / 8] = 0; /* may be read after the last slot, for nothing */
  const uint8_t *bits = l->array->buffers[0];
  for (size_t r = 0; r < n_ranges; r++) {
    bits_copy(l->valid.data, bit, bits, (size_t)l->array->offset + ranges[r].start,
              ranges[r].length);
    bit += ranges[r].length;
  }
  return WEIR_OK;
}

/* One up for what is there. */
static weir_status step_null(const parquet_leaf *leaf, const level_step *step,
                             parquet_levels *l, uint8_t at, weir_error *err) {
  const struct ArrowArray *array = l->array, *dictionary = array->dictionary;
  bool nulls = take_may_have_nulls(array);
  bool holes = step->node->dictionary != NULL && take_may_have_nulls(dictionary);
  if (step->node->layout == ARROW_NULL ||
      (leaf->take == TAKE_NOTHING && dictionary != NULL))
    return WEIR_OK;
  if (!nulls && !holes) {
    raise_all(l->def.data, l->n, at);
    return WEIR_OK;
  }
  BASE_TRY(gather_valid(l, nulls, err));
  if (holes) drop_holes(leaf, l);
  if (l->n == l->slots) {
    raise_dense(l->def.data, l->n, at, l->valid.data);
  } else {
    raise_sparse(l->def.data, l->n, at, l->carry, l->valid.data);
  }
  return WEIR_OK;
}

/* ---- lists ------------------------------------------------------------------------------------ */

/* Element `i` of a list's slot and its size; i counts from the array's first slot. */
static size_t list_start(const arrow_node *node, const struct ArrowArray *array,
                         size_t i) {
  size_t slot = (size_t)array->offset + i;
  if (node->layout == ARROW_FIXED_LIST) return slot * (size_t)node->width;
  return (size_t)arrow_offset_at(array->buffers[1], node->width, (int64_t)slot);
}

static void list_sizes(const arrow_node *node, const struct ArrowArray *array,
                       const level_range *range, uint32_t *restrict out) {
  size_t first = (size_t)array->offset + range->start, n = range->length;
  if (node->layout == ARROW_FIXED_LIST) {
    for (size_t i = 0; i < n; i++) out[i] = (uint32_t)node->width;
  } else if (node->layout == ARROW_LIST_VIEW) {
    for (size_t i = 0; i < n; i++) {
      out[i] =
          (uint32_t)arrow_offset_at(array->buffers[2], node->width, (int64_t)(first + i));
    }
  } else if (node->width == 4) {
    const int32_t *offsets = (const int32_t *)array->buffers[1] + first;
    for (size_t i = 0; i < n; i++) out[i] = (uint32_t)(offsets[i + 1] - offsets[i]);
  } else {
    const int64_t *offsets = (const int64_t *)array->buffers[1] + first;
    for (size_t i = 0; i < n; i++) out[i] = (uint32_t)(offsets[i + 1] - offsets[i]);
  }
}

/* Sizes of what is not there become 0. */
static void mask_sizes(const parquet_levels *l, uint8_t at, uint32_t *sizes) {
  const uint8_t *def = l->def.data;
  if (l->n == l->slots) {
    for (size_t i = 0; i < l->n; i++) sizes[i] = def[i] == at ? sizes[i] : 0;
    return;
  }
  for (size_t i = 0, slot = 0; i < l->n; i++) {
    if (def[i] < l->carry) continue;
    if (def[i] != at) sizes[slot] = 0;
    slot++;
  }
}

static weir_status child_ranges(const arrow_node *node, parquet_levels *l,
                                const uint32_t *sizes, size_t *total, weir_error *err) {
  size_t n_ranges = 0;
  const level_range *ranges = ranges_of(&l->ranges, &n_ranges);
  base_buf_clear(&l->next_ranges);
  *total = 0;
  for (size_t r = 0; r < n_ranges; r++) {
    const level_range *range = &ranges[r];
    size_t sum = 0;
    for (size_t i = 0; i < range->length; i++) sum += sizes[i];
    size_t first = list_start(node, l->array, range->start);
    bool whole = node->layout != ARROW_LIST_VIEW &&
                 sum == list_start(node, l->array, range->start + range->length) - first;
    if (whole) {
      BASE_TRY(add_range(&l->next_ranges, first, sum, err));
    } else {
      for (size_t i = 0; i < range->length; i++) {
        if (sizes[i] == 0) continue;
        size_t start = list_start(node, l->array, range->start + i);
        BASE_TRY(add_range(&l->next_ranges, start, sizes[i], err));
      }
    }
    *total += sum;
    sizes += range->length;
  }
  return WEIR_OK;
}

/* A level each for the elements of a list, and one for a list that has none. All are those of elements
 * behind the first one at first; the others are put in their places. */
static size_t emit_levels(const parquet_levels *l, const uint32_t *sizes, uint8_t at,
                          uint8_t *next_def, uint8_t *next_rep) {
  const uint8_t *def = l->def.data, *rep = l->rep.data;
  size_t to = 0;
  for (size_t i = 0, slot = 0; i < l->n; i++) {
    uint8_t d = def[i];
    size_t size = d == at ? sizes[slot] : 0;
    slot += d >= l->carry;
    next_rep[to] = rep[i];
    next_def[to] = size > 0 ? (uint8_t)(at + 1) : d;
    to += size > 0 ? size : 1;
  }
  return to;
}

static weir_status step_list(const level_step *step, parquet_levels *l, uint8_t at,
                             uint8_t depth, weir_error *err) {
  size_t n_ranges = 0, total = 0;
  const level_range *ranges = ranges_of(&l->ranges, &n_ranges);
  BASE_TRY(parquet_reserve(&l->sizes, (l->slots + 1) * sizeof(uint32_t), err));
  uint32_t *sizes = (uint32_t *)(void *)l->sizes.data;
  sizes[l->slots] = 0; /* read after the last slot, for nothing */
  for (size_t r = 0, slot = 0; r < n_ranges; slot += ranges[r++].length)
    list_sizes(step->node, l->array, &ranges[r], sizes + slot);
  mask_sizes(l, at, sizes);
  BASE_TRY(child_ranges(step->node, l, sizes, &total, err));
  BASE_TRY(parquet_reserve(&l->next_def, total + l->n, err));
  BASE_TRY(parquet_reserve(&l->next_rep, total + l->n, err));
  memset(l->next_def.data, at + 1, total + l->n);
  memset(l->next_rep.data, depth, total + l->n);
  l->n = emit_levels(l, sizes, at, l->next_def.data, l->next_rep.data);
  l->slots = total;
  l->carry = (uint8_t)(at + 1);
  swap(&l->def, &l->next_def);
  swap(&l->rep, &l->next_rep);
  swap(&l->ranges, &l->next_ranges);
  return WEIR_OK;
}

/* ---- runs ------------------------------------------------------------------------------------- */

static int64_t run_end(const struct ArrowArray *ends, int32_t width, size_t i) {
  i += (size_t)ends->offset;
  if (width == 2) return ((const int16_t *)ends->buffers[1])[i];
  return arrow_offset_at(ends->buffers[1], width, (int64_t)i);
}

/* The slots of a run-end encoded array to those of its values. */
static weir_status step_runs(const level_step *step, parquet_levels *l, weir_error *err) {
  size_t n_ranges = 0;
  const level_range *ranges = ranges_of(&l->ranges, &n_ranges);
  const struct ArrowArray *ends = l->array->children[0];
  int32_t width = step->node->width;
  base_buf_clear(&l->next_ranges);
  for (size_t r = 0; r < n_ranges; r++) {
    int64_t slot = l->array->offset + (int64_t)ranges[r].start;
    size_t low = 0, high = (size_t)ends->length;
    while (low < high) { /* the first run that ends after the slot */
      size_t middle = low + (high - low) / 2;
      if (run_end(ends, width, middle) > slot) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    for (size_t i = 0; i < ranges[r].length; i++, slot++) {
      while (run_end(ends, width, low) <= slot) low++;
      BASE_TRY(add_range(&l->next_ranges, low, 1, err));
    }
  }
  swap(&l->ranges, &l->next_ranges);
  return WEIR_OK;
}

/* ---- the way down ----------------------------------------------------------------------------- */

static weir_status step_struct(const level_step *step, parquet_levels *l) {
  size_t n = l->ranges.size / sizeof(level_range);
  level_range *ranges = (level_range *)(void *)l->ranges.data;
  for (size_t r = 0; r < n; r++) ranges[r].start += (size_t)l->array->offset;
  l->array = l->array->children[step->child];
  return WEIR_OK;
}

weir_status levels_take(const parquet_leaf *leaf, const struct ArrowArray *column,
                        size_t start, size_t length, parquet_levels *l, weir_error *err) {
  uint8_t at = 0, depth = 0;
  l->array = column;
  l->n = l->slots = length;
  l->carry = 0;
  BASE_TRY(parquet_reserve(&l->def, length, err));
  memset(l->def.data, 0, length);
  if (leaf->max_rep > 0) {
    BASE_TRY(parquet_reserve(&l->rep, length, err));
    memset(l->rep.data, 0, length);
  }
  base_buf_clear(&l->ranges);
  BASE_TRY(add_range(&l->ranges, start, length, err));
  for (size_t i = 0; i < leaf->n_steps; i++) {
    const level_step *step = &leaf->steps[i];
    if (step->nullable) BASE_TRY(step_null(leaf, step, l, at++, err));
    switch (step->node->dictionary != NULL ? ARROW_FIXED : step->node->layout) {
      case ARROW_LIST:
      case ARROW_LIST_VIEW:
      case ARROW_FIXED_LIST:
        BASE_TRY(step_list(step, l, at++, ++depth, err));
        l->array = l->array->children[0];
        break;
      case ARROW_STRUCT:
        BASE_TRY(step_struct(step, l));
        break;
      case ARROW_RUN_ENDS:
        BASE_TRY(step_runs(step, l, err));
        l->array = l->array->children[1];
        break;
      default:
        break;
    }
  }
  return WEIR_OK;
}
