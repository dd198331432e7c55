/* SPDX-License-Identifier: Apache-2.0 */
#include "take.h"

#include "bits.h"

void take_scratch_done(take_scratch *scratch) {
  base_buf_done(&scratch->valid);
  base_buf_done(&scratch->raw);
  base_buf_done(&scratch->values);
  base_buf_done(&scratch->offsets);
  base_buf_done(&scratch->indices);
}

/* ---- levels ----------------------------------------------------------------------------------- */

static weir_status take_valid(const struct ArrowArray *array, size_t start, size_t length,
                              base_buf *room, parquet_piece *out, weir_error *err) {
  out->rows = out->levels = length;
  out->nulls = 0;
  out->valid = NULL;
  if (!take_may_have_nulls(array)) return WEIR_OK;
  BASE_TRY(parquet_reserve(room, length / 8 + 16, err));
  bits_copy(room->data, 0, array->buffers[0], (size_t)array->offset + start, length);
  memset(room->data + (length + 7) / 8, 0, 16);
  out->nulls = length - bits_count(room->data, 0, length);
  if (out->nulls > 0) out->valid = room->data;
  return WEIR_OK;
}

/* ---- source slots without gaps ---------------------------------------------------------------- */

static weir_status raw_fixed(const uint8_t *values, size_t width,
                             const parquet_piece *piece, base_buf *room,
                             parquet_values *out, weir_error *err) {
  /* Kernels read whole words; a producer need not have aligned its slices. */
  size_t unit = width == 8 || width == 4 || width == 2 ? width : width % 8 == 0 ? 8 : 1;
  bool aligned = (uintptr_t)values % unit == 0;
  out->n = piece->rows - piece->nulls;
  out->data = values;
  if (piece->valid == NULL && aligned) return WEIR_OK;
  BASE_TRY(parquet_reserve(room, (piece->rows + 1) * width, err));
  out->data = room->data;
  if (piece->valid == NULL) {
    memcpy(room->data, values, piece->rows * width);
    return WEIR_OK;
  }
  if (aligned || (width != 4 && width != 8)) {
    bits_compact(values, width, piece->valid, piece->rows, room->data);
    return WEIR_OK;
  }
  size_t count = 0;
  for (size_t i = 0; i < piece->rows; i++) {
    if ((piece->valid[i / 8] >> (i % 8) & 1) == 0) continue;
    memcpy(room->data + count++ * width, values + i * width, width);
  }
  return WEIR_OK;
}

static weir_status raw_bits(const uint8_t *bits, size_t first, const parquet_piece *piece,
                            take_scratch *scratch, parquet_values *out, weir_error *err) {
  out->n = piece->rows - piece->nulls;
  BASE_TRY(parquet_reserve(&scratch->values, piece->rows / 8 + 16, err));
  uint8_t *to = scratch->values.data;
  out->data = to;
  if (piece->valid == NULL) {
    bits_copy(to, 0, bits, first, piece->rows);
    return WEIR_OK;
  }
  BASE_TRY(parquet_reserve(&scratch->raw, piece->rows / 8 + 16, err));
  bits_copy(scratch->raw.data, 0, bits, first, piece->rows);
  bits_compact_bits(scratch->raw.data, piece->valid, piece->rows, to);
  return WEIR_OK;
}

typedef struct bytes_source {
  const uint8_t *data;
  const void *offsets; /* at the first slot */
  uint32_t width;
} bytes_source;

PARQUET_INLINE int64_t offset_at(const bytes_source *from, size_t i) {
  return arrow_offset_at(from->offsets, (int32_t)from->width, (int64_t)i);
}

/* Where the next bit equal to `set` is, or `rows`. */
static size_t next_bit(const uint8_t *valid, size_t rows, size_t from, bool set) {
  while (from < rows) {
    uint64_t word = parquet_load64(valid + from / 64 * 8) ^ (set ? 0 : UINT64_MAX);
    word >>= from % 64;
    if (word != 0) {
      from += (size_t)__builtin_ctzll(word);
      return from < rows ? from : rows;
    }
    from = (from / 64 + 1) * 64;
  }
  return rows;
}

/* The slots from `from` on up to the next null. */
static size_t next_run(const parquet_piece *piece, size_t *from) {
  if (piece->valid == NULL) return piece->rows;
  *from = next_bit(piece->valid, piece->rows, *from, true);
  return next_bit(piece->valid, piece->rows, *from, false);
}

#define RUN_OFFSETS(name, type)                                                     \
  static uint32_t name(const type *from, size_t n, uint32_t total, uint32_t *out) { \
    type base = from[0];                                                            \
    for (size_t i = 0; i < n; i++) out[i] = (uint32_t)(from[i] - base) + total;     \
    return (uint32_t)(from[n] - base) + total;                                      \
  }

RUN_OFFSETS(run_offsets4, uint32_t)
RUN_OFFSETS(run_offsets8, uint64_t)

/* The bytes of null slots are skipped where there are any, else only the offsets change. */
static weir_status raw_bytes(const bytes_source *from, const parquet_piece *piece,
                             take_scratch *scratch, parquet_values *out,
                             weir_error *err) {
  int64_t base = offset_at(from, 0);
  out->n = piece->rows - piece->nulls;
  if (piece->valid == NULL && from->width == 4) {
    out->data = from->data;
    out->offsets = from->offsets;
    return WEIR_OK;
  }
  BASE_TRY(parquet_reserve(&scratch->offsets, (piece->rows + 2) * sizeof(uint32_t), err));
  uint32_t *offsets = (uint32_t *)(void *)scratch->offsets.data, total = 0;
  size_t count = 0, span = (size_t)(offset_at(from, piece->rows) - base), end = 0;
  for (size_t i = 0; i < piece->rows; i = end) {
    end = next_run(piece, &i);
    if (i == end) break;
    const uint8_t *at = (const uint8_t *)from->offsets + i * from->width;
    total = from->width == 4 ? run_offsets4((const uint32_t *)(const void *)at, end - i,
                                            total, offsets + count)
                             : run_offsets8((const uint64_t *)(const void *)at, end - i,
                                            total, offsets + count);
    count += end - i;
  }
  offsets[count] = total;
  out->offsets = offsets;
  out->data = from->data != NULL ? from->data + base : NULL;
  if (total == span) return WEIR_OK;
  BASE_TRY(parquet_reserve(&scratch->values, total, err));
  uint8_t *to = scratch->values.data;
  for (size_t i = 0; i < piece->rows; i = end) {
    end = next_run(piece, &i);
    size_t size = (size_t)(offset_at(from, end) - offset_at(from, i));
    if (size > 0) memcpy(to, from->data + offset_at(from, i), size);
    to += size;
  }
  out->data = scratch->values.data;
  return WEIR_OK;
}

static const uint8_t *view_bytes(const struct ArrowArray *array,
                                 const union ArrowBinaryView *view) {
  if (view->inlined.size <= NANOARROW_BINARY_VIEW_INLINE_SIZE) return view->inlined.data;
  return (const uint8_t *)array->buffers[2 + view->ref.buffer_index] + view->ref.offset;
}

/* `rows`: which slots (NULL: all of the piece's from `first`). */
static weir_status raw_views(const struct ArrowArray *array, size_t first,
                             const parquet_piece *piece, const uint32_t *rows,
                             take_scratch *scratch, parquet_values *out,
                             weir_error *err) {
  const union ArrowBinaryView *views =
      (const union ArrowBinaryView *)array->buffers[1] + first;
  BASE_TRY(parquet_reserve(&scratch->offsets, (piece->rows + 2) * sizeof(uint32_t), err));
  uint32_t *offsets = (uint32_t *)(void *)scratch->offsets.data;
  size_t total = 0;
  for (size_t i = 0; i < piece->rows; i++) {
    if (piece->valid != NULL && (piece->valid[i / 8] >> (i % 8) & 1) == 0) continue;
    total += (size_t)views[rows != NULL ? rows[i] : i].inlined.size;
  }
  BASE_TRY(parquet_reserve(&scratch->values, total, err));
  uint8_t *data = scratch->values.data;
  size_t count = 0, at = 0;
  for (size_t i = 0; i < piece->rows; i++) {
    if (piece->valid != NULL && (piece->valid[i / 8] >> (i % 8) & 1) == 0) continue;
    const union ArrowBinaryView *view = &views[rows != NULL ? rows[i] : i];
    size_t size = (size_t)view->inlined.size;
    if (size > 0) memcpy(data + at, view_bytes(array, view), size);
    offsets[count++] = (uint32_t)at;
    at += size;
  }
  offsets[count] = (uint32_t)at;
  *out = (parquet_values){data, offsets, count};
  return WEIR_OK;
}

/* ---- conversions ------------------------------------------------------------------------------ */

#define WIDEN(name, from, to, expression)                                 \
  PARQUET_CLONES                                                          \
  static void name(const from *restrict in, size_t n, to *restrict out) { \
    for (size_t i = 0; i < n; i++) out[i] = (to)(expression);             \
  }

WIDEN(widen_int8, int8_t, int32_t, in[i])
WIDEN(widen_uint8, uint8_t, int32_t, in[i])
WIDEN(widen_int16, int16_t, int32_t, in[i])
WIDEN(widen_uint16, uint16_t, int32_t, in[i])
WIDEN(millis32, int32_t, int32_t, (uint32_t)in[i] * 1000u)
WIDEN(millis64, int64_t, int64_t, (uint64_t)in[i] * 1000u)
WIDEN(days, int64_t, int32_t, in[i] / INT64_C(86400000))

static uint32_t load_u32(const uint8_t *p) {
  uint32_t v;
  memcpy(&v, p, sizeof(v));
  return v;
}

/* Little endian of `from` bytes to INT32, INT64 or big endian of `width` bytes; leaf_check has seen
 * that the rest is but sign. */
static void decimals(const parquet_leaf *leaf, const uint8_t *in, size_t n,
                     uint8_t *out) {
  size_t from = leaf->source_width, width = leaf->width;
  if (leaf->type != PARQUET_FIXED) {
    for (size_t i = 0; i < n; i++) memcpy(out + i * width, in + i * from, width);
    return;
  }
  for (size_t i = 0; i < n; i++) {
    for (size_t k = 0; k < width; k++) {
      size_t byte =
          width - 1 - k; /* of the little endian number; past its end comes the sign */
      out[i * width + k] =
          byte < from ? in[i * from + byte] : (uint8_t)-(in[i * from + from - 1] >> 7);
    }
  }
}

static void intervals(const parquet_leaf *leaf, const uint8_t *in, size_t n,
                      uint8_t *out) {
  for (size_t i = 0; i < n; i++, out += 12) {
    memset(out, 0, 12);
    if (leaf->take == TAKE_MONTHS) {
      parquet_store32(out, load_u32(in + 4 * i));
    } else if (leaf->take == TAKE_MONTH_DAY_NANO) {
      memcpy(out, in + 16 * i, 8);
      parquet_store32(out + 8, (uint32_t)(parquet_load64(in + 16 * i + 8) / 1000000));
    } else {
      parquet_store32(out + 4, load_u32(in + 8 * i));
      parquet_store32(out + 8, load_u32(in + 8 * i + 4));
    }
  }
}

static weir_status convert(const parquet_leaf *leaf, base_buf *room,
                           parquet_values *values, weir_error *err) {
  if (leaf->take == TAKE_COPY) return WEIR_OK;
  const void *in = values->data;
  size_t n = values->n;
  BASE_TRY(parquet_reserve(room, n * leaf->width, err));
  void *out = room->data;
  switch (leaf->take) {
    case TAKE_INT8:
      widen_int8(in, n, out);
      break;
    case TAKE_UINT8:
      widen_uint8(in, n, out);
      break;
    case TAKE_INT16:
      widen_int16(in, n, out);
      break;
    case TAKE_UINT16:
      widen_uint16(in, n, out);
      break;
    case TAKE_SECONDS32:
      millis32(in, n, out);
      break;
    case TAKE_SECONDS64:
      millis64(in, n, out);
      break;
    case TAKE_DATE64:
      days(in, n, out);
      break;
    case TAKE_DECIMAL:
      decimals(leaf, in, n, out);
      break;
    default:
      intervals(leaf, in, n, out);
      break;
  }
  values->data = out;
  return WEIR_OK;
}

/* ---- the three ways in ------------------------------------------------------------------------ */

static size_t slot_bytes(const parquet_leaf *leaf, const struct ArrowArray *array,
                         size_t slot) {
  if (leaf->take == TAKE_VIEWS) {
    int32_t size = ((const union ArrowBinaryView *)array->buffers[1])[slot].inlined.size;
    return size > 0 ? (size_t)size : 0; /* the slot may be null and hold anything */
  }
  if (leaf->take != TAKE_BYTES) return leaf->width;
  bytes_source from = {NULL, array->buffers[1], leaf->source_width};
  return (size_t)(offset_at(&from, slot + 1) - offset_at(&from, slot));
}

static size_t index_at(const parquet_leaf *leaf, const struct ArrowArray *array,
                       size_t slot) {
  const void *indices = array->buffers[1];
  switch (leaf->node->storage) {
    case NANOARROW_TYPE_INT8:
    case NANOARROW_TYPE_UINT8:
      return ((const uint8_t *)indices)[slot];
    case NANOARROW_TYPE_INT16:
    case NANOARROW_TYPE_UINT16:
      return ((const uint16_t *)indices)[slot];
    case NANOARROW_TYPE_INT32:
    case NANOARROW_TYPE_UINT32:
      return ((const uint32_t *)indices)[slot];
    default:
      return (size_t)((const uint64_t *)indices)[slot];
  }
}

size_t take_index_at(const parquet_leaf *leaf, const struct ArrowArray *array,
                     size_t slot) {
  return index_at(leaf, array, (size_t)array->offset + slot);
}

size_t take_slot_bytes(const parquet_leaf *leaf, const struct ArrowArray *array,
                       size_t slot) {
  slot += (size_t)array->offset;
  const struct ArrowArray *dictionary = array->dictionary;
  if (dictionary == NULL) return slot_bytes(leaf, array, slot);
  slot = index_at(leaf, array, slot);
  if (slot >= (size_t)dictionary->length) return 0;
  return slot_bytes(leaf, dictionary, (size_t)dictionary->offset + slot);
}

/* How many slots hold no more than `budget` bytes. */
static size_t fit_bytes(const parquet_leaf *leaf, const struct ArrowArray *array,
                        size_t first, size_t length, size_t budget) {
  bytes_source from = {NULL, array->buffers[1], leaf->source_width};
  int64_t base = offset_at(&from, first);
  size_t low = 0, high = length; /* low fits, and nothing beyond high does */
  if ((size_t)(offset_at(&from, first + length) - base) <= budget) return length;
  while (low + 1 < high) {
    size_t middle = low + (high - low) / 2;
    if ((size_t)(offset_at(&from, first + middle) - base) <= budget) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

size_t take_bytes(const parquet_leaf *leaf, const struct ArrowArray *array, size_t start,
                  size_t length) {
  if (leaf->take != TAKE_BYTES || array->dictionary != NULL) return 0;
  size_t first = (size_t)array->offset + start;
  bytes_source from = {NULL, array->buffers[1], leaf->source_width};
  return (size_t)(offset_at(&from, first + length) - offset_at(&from, first));
}

size_t take_fit(const parquet_leaf *leaf, const struct ArrowArray *array, size_t start,
                size_t length, size_t budget) {
  const struct ArrowArray *dictionary = array->dictionary;
  bool bytes = leaf->take == TAKE_BYTES || leaf->take == TAKE_VIEWS;
  if (!bytes) {
    size_t fit = leaf->width == 0 ? length : budget / leaf->width;
    return fit < 1 ? 1 : fit < length ? fit : length;
  }
  size_t first = (size_t)array->offset + start, sum = 0, fit = 0;
  if (dictionary == NULL && leaf->take == TAKE_BYTES) {
    fit = fit_bytes(leaf, array, first, length, budget);
    return fit < 1 ? 1 : fit;
  }
  while (fit < length) {
    size_t slot = first + fit;
    if (dictionary != NULL) {
      slot = index_at(leaf, array, slot);
      if (slot < (size_t)dictionary->length) {
        sum += slot_bytes(leaf, dictionary, (size_t)dictionary->offset + slot);
      }
    } else {
      sum += slot_bytes(leaf, array, slot);
    }
    if (sum > budget) break;
    fit++;
  }
  return fit < 1 ? 1 : fit;
}

/* Values of the piece's slots from `start`; rows, nulls and valid of the piece are known. */
static weir_status take_valid_slots(const parquet_leaf *leaf,
                                    const struct ArrowArray *array, size_t start,
                                    take_scratch *scratch, parquet_piece *piece,
                                    weir_error *err) {
  size_t first = (size_t)array->offset + start;
  const uint8_t *buffer = array->buffers[1];
  if (leaf->take == TAKE_VIEWS) {
    return raw_views(array, first, piece, NULL, scratch, &piece->values, err);
  }
  if (leaf->take == TAKE_BYTES) {
    bytes_source from = {array->buffers[2], buffer + first * leaf->source_width,
                         leaf->source_width};
    return raw_bytes(&from, piece, scratch, &piece->values, err);
  }
  if (leaf->take == TAKE_BITS) {
    return raw_bits(buffer, first, piece, scratch, &piece->values, err);
  }
  BASE_TRY(raw_fixed(buffer + first * leaf->source_width, leaf->source_width, piece,
                     &scratch->raw, &piece->values, err));
  return convert(leaf, &scratch->values, &piece->values, err);
}

weir_status take_slots(const parquet_leaf *leaf, const struct ArrowArray *array,
                       size_t start, size_t length, take_scratch *scratch,
                       parquet_piece *out, weir_error *err) {
  *out = (parquet_piece){.rows = length, .levels = length};
  if (leaf->take == TAKE_NOTHING) {
    BASE_TRY(parquet_reserve(&scratch->valid, length / 8 + 16, err));
    memset(scratch->valid.data, 0, length / 8 + 16);
    out->valid = scratch->valid.data;
    out->nulls = length;
    return WEIR_OK;
  }
  BASE_TRY(take_valid(array, start, length, &scratch->valid, out, err));
  return take_valid_slots(leaf, array, start, scratch, out, err);
}

WIDEN(widen_index8, uint8_t, uint32_t, in[i])
WIDEN(widen_index16, uint16_t, uint32_t, in[i])
WIDEN(widen_index64, uint64_t, uint32_t, in[i])

/* The indices of all slots, whatever those of null slots hold. */
static void all_indices(const parquet_leaf *leaf, const uint8_t *indices, size_t first,
                        size_t n, uint32_t *out) {
  switch (leaf->node->storage) {
    case NANOARROW_TYPE_INT8:
    case NANOARROW_TYPE_UINT8:
      widen_index8(indices + first, n, out);
      break;
    case NANOARROW_TYPE_INT16:
    case NANOARROW_TYPE_UINT16:
      widen_index16((const uint16_t *)(const void *)indices + first, n, out);
      break;
    case NANOARROW_TYPE_INT32:
    case NANOARROW_TYPE_UINT32:
      if (n > 0) memcpy(out, indices + first * 4, n * 4);
      break;
    default:
      widen_index64((const uint64_t *)(const void *)indices + first, n, out);
  }
}

/* Drops the slots whose row of the dictionary is null. */
static size_t drop_holes(const parquet_leaf *leaf, const struct ArrowArray *array,
                         size_t first, size_t length, bool all_valid, uint8_t *valid,
                         uint32_t *rows) {
  const struct ArrowArray *dictionary = array->dictionary;
  const uint8_t *holes = take_may_have_nulls(dictionary) ? dictionary->buffers[0] : NULL;
  size_t count = 0;
  if (all_valid) {
    memset(valid, 0, length / 8 + 16);
    bits_set(valid, 0, length);
  }
  for (size_t i = 0; i < length; i++) {
    if ((valid[i / 8] >> (i % 8) & 1) == 0) continue;
    size_t row = index_at(leaf, array, first + i),
           slot = row + (size_t)dictionary->offset;
    if (holes == NULL || (holes[slot / 8] >> (slot % 8) & 1) == 0) {
      valid[i / 8] &= (uint8_t)~(1u << (i % 8));
      continue;
    }
    rows[count++] = (uint32_t)row;
  }
  return count;
}

weir_status take_indices(const parquet_leaf *leaf, const struct ArrowArray *array,
                         size_t start, size_t length, take_scratch *scratch,
                         parquet_piece *out, weir_error *err) {
  *out = (parquet_piece){.rows = length, .levels = length};
  BASE_TRY(take_valid(array, start, length, &scratch->valid, out, err));
  BASE_TRY(parquet_reserve(&scratch->indices, (length + 8) * sizeof(uint32_t), err));
  BASE_TRY(parquet_reserve(&scratch->valid, length / 8 + 16, err));
  BASE_TRY(parquet_reserve(&scratch->raw, length * sizeof(uint32_t), err));
  uint32_t *rows = (uint32_t *)(void *)scratch->indices.data;
  size_t first = (size_t)array->offset + start, count = length - out->nulls;
  if (take_may_have_nulls(array->dictionary) || leaf->take == TAKE_NOTHING) {
    count = drop_holes(leaf, array, first, length, out->valid == NULL,
                       scratch->valid.data, rows);
    out->nulls = length - count;
    out->valid = out->nulls > 0 ? scratch->valid.data : NULL;
  } else if (out->valid == NULL) {
    all_indices(leaf, array->buffers[1], first, length, rows);
  } else {
    uint32_t *all = (uint32_t *)(void *)scratch->raw.data;
    all_indices(leaf, array->buffers[1], first, length, all);
    bits_compact(all, sizeof(*all), out->valid, length, rows);
  }
  out->values = (parquet_values){scratch->indices.data, NULL, count};
  return WEIR_OK;
}

static weir_status gather_bytes(const parquet_leaf *leaf,
                                const struct ArrowArray *dictionary, const uint32_t *rows,
                                size_t n, take_scratch *scratch, parquet_values *out,
                                weir_error *err) {
  bytes_source from = {dictionary->buffers[2],
                       (const uint8_t *)dictionary->buffers[1] +
                           (size_t)dictionary->offset * leaf->source_width,
                       leaf->source_width};
  BASE_TRY(parquet_reserve(&scratch->offsets, (n + 2) * sizeof(uint32_t), err));
  uint32_t *offsets = (uint32_t *)(void *)scratch->offsets.data;
  size_t total = 0;
  for (size_t i = 0; i < n; i++) {
    offsets[i] = (uint32_t)total;
    total += (size_t)(offset_at(&from, (size_t)rows[i] + 1) - offset_at(&from, rows[i]));
  }
  offsets[n] = (uint32_t)total;
  BASE_TRY(parquet_reserve(&scratch->values, total, err));
  for (size_t i = 0; i < n; i++) {
    size_t size = offsets[i + 1] - offsets[i];
    if (size == 0) continue;
    memcpy(scratch->values.data + offsets[i], from.data + offset_at(&from, rows[i]),
           size);
  }
  *out = (parquet_values){scratch->values.data, offsets, n};
  return WEIR_OK;
}

weir_status take_rows(const parquet_leaf *leaf, const struct ArrowArray *dictionary,
                      const uint32_t *rows, size_t n, take_scratch *scratch,
                      parquet_values *out, weir_error *err) {
  if (leaf->take == TAKE_BYTES)
    return gather_bytes(leaf, dictionary, rows, n, scratch, out, err);
  size_t first = (size_t)dictionary->offset;
  parquet_piece piece = {.rows = n};
  if (leaf->take == TAKE_VIEWS) {
    return raw_views(dictionary, first, &piece, rows, scratch, out, err);
  }
  const uint8_t *buffer = dictionary->buffers[1];
  size_t width = leaf->source_width;
  if (leaf->take == TAKE_BITS) {
    BASE_TRY(parquet_reserve(&scratch->values, n / 8 + 16, err));
    memset(scratch->values.data, 0, n / 8 + 16);
    for (size_t i = 0; i < n; i++) {
      size_t slot = first + rows[i];
      scratch->values.data[i / 8] |=
          (uint8_t)((buffer[slot / 8] >> (slot % 8) & 1) << (i % 8));
    }
    *out = (parquet_values){scratch->values.data, NULL, n};
    return WEIR_OK;
  }
  BASE_TRY(parquet_reserve(&scratch->raw, n * width, err));
  for (size_t i = 0; i < n; i++) {
    memcpy(scratch->raw.data + i * width, buffer + (first + rows[i]) * width, width);
  }
  *out = (parquet_values){scratch->raw.data, NULL, n};
  return convert(leaf, &scratch->values, out, err);
}

/* ---- selected slots --------------------------------------------------------------------------- */

weir_status take_selected(const parquet_leaf *leaf, const struct ArrowArray *array,
                          const take_selection *selection, take_scratch *scratch,
                          parquet_values *out, weir_error *err) {
  if (selection->rows != NULL) {
    return take_rows(leaf, array, selection->rows, selection->length, scratch, out, err);
  }
  parquet_piece piece = {
      .rows = selection->length, .nulls = selection->nulls, .valid = selection->valid};
  BASE_TRY(take_valid_slots(leaf, array, selection->start, scratch, &piece, err));
  *out = piece.values;
  return WEIR_OK;
}

weir_status take_selected_indices(const parquet_leaf *leaf,
                                  const struct ArrowArray *array,
                                  const take_selection *selection, take_scratch *scratch,
                                  parquet_values *out, weir_error *err) {
  size_t n = selection->length, count = 0;
  BASE_TRY(parquet_reserve(&scratch->indices, (n + 8) * sizeof(uint32_t), err));
  uint32_t *rows = (uint32_t *)(void *)scratch->indices.data;
  const uint8_t *valid = selection->rows == NULL ? selection->valid : NULL;
  for (size_t i = 0; i < n; i++) {
    if (valid != NULL && (valid[i / 8] >> (i % 8) & 1) == 0) continue;
    size_t slot = selection->rows != NULL ? selection->rows[i] : selection->start + i;
    rows[count++] = (uint32_t)take_index_at(leaf, array, slot);
  }
  *out = (parquet_values){scratch->indices.data, NULL, count};
  return WEIR_OK;
}
