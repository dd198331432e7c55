/* SPDX-License-Identifier: Apache-2.0 */
/* Levels and values of a leaf, appended to the buffers of a batch. */
#include "read.h"

/* Levels and slots at a time, so that what is decoded stays in the cache and nothing is asked for that the
 * page does not have. */
enum { PIECE = 16384 };

void read_leaf_clear(read_leaf *leaf) {
  leaf->rows = leaf->levels_n = leaf->slots = leaf->nulls = 0;
  base_buf *all[] = {&leaf->defs, &leaf->reps, &leaf->valid, &leaf->values, &leaf->data};
  for (size_t i = 0; i < BASE_COUNT(all); i++) base_buf_clear(all[i]);
}

void read_leaf_done(read_leaf *leaf) {
  base_buf *all[] = {&leaf->defs,       &leaf->reps,
                     &leaf->valid,      &leaf->values,
                     &leaf->data,       &leaf->window,
                     &leaf->plain,      &leaf->last,
                     &leaf->dictionary, &leaf->dictionary_offsets};
  for (size_t i = 0; i < BASE_COUNT(all); i++) base_buf_done(all[i]);
}

/* ---- nulls between values ---------------------------------------------------------------------- */

#define SPREAD(name, type)                                                       \
  static void name(const void *from, const uint8_t *valid, size_t bit, size_t n, \
                   void *out) {                                                  \
    const type *values = from;                                                   \
    type *to = out;                                                              \
    for (size_t i = 0; i < n; i++) {                                             \
      unsigned is = valid[(bit + i) / 8] >> ((bit + i) % 8) & 1u;                \
      to[i] = (type)(*values & (type)(0 - (type)is));                            \
      values += is;                                                              \
    }                                                                            \
  }

SPREAD(spread1, uint8_t)
SPREAD(spread2, uint16_t)
SPREAD(spread4, uint32_t)
SPREAD(spread8, uint64_t)

static void spread_any(const uint8_t *from, const uint8_t *valid, size_t bit, size_t n,
                       size_t slot, uint8_t *out) {
  for (size_t i = 0; i < n; i++, out += slot) {
    if (valid[(bit + i) / 8] >> ((bit + i) % 8) & 1) {
      memcpy(out, from, slot);
      from += slot;
    } else {
      memset(out, 0, slot);
    }
  }
}

/* Of `from`, which has a slot more than values, to n slots. */
static void spread(const uint8_t *from, const uint8_t *valid, size_t bit, size_t n,
                   size_t slot, uint8_t *out) {
  switch (slot) {
    case 1:
      spread1(from, valid, bit, n, out);
      break;
    case 2:
      spread2(from, valid, bit, n, out);
      break;
    case 4:
      spread4(from, valid, bit, n, out);
      break;
    case 8:
      spread8(from, valid, bit, n, out);
      break;
    default:
      spread_any(from, valid, bit, n, slot, out);
  }
}

static void spread_bits(const uint8_t *from, const uint8_t *valid, size_t bit, size_t n,
                        uint8_t *out) {
  for (size_t i = 0, k = 0; i < n; i++) {
    size_t at = bit + i;
    uint8_t is = valid[at / 8] >> (at % 8) & 1;
    uint8_t value = is & (from[k / 8] >> (k % 8) & 1);
    if (at % 8 == 0) out[at / 8] = 0;
    out[at / 8] |= (uint8_t)(value << (at % 8));
    k += is;
  }
}

/* The offsets behind the last `k` values, to those behind n slots; in place, from the end. */
static void spread_offsets(uint32_t *offsets, const uint8_t *valid, size_t bit, size_t n,
                           size_t k) {
  for (size_t i = n; i > 0 && i > k; i--) {
    offsets[i] = offsets[k];
    k -= valid[(bit + i - 1) / 8] >> ((bit + i - 1) % 8) & 1;
  }
}

/* ---- values ------------------------------------------------------------------------------------ */

static weir_status add_bytes(read_context *ctx, read_leaf *leaf, size_t n, size_t k,
                             weir_error *err) {
  base_buf *offsets = &leaf->values;
  BASE_TRY(read_reserve(ctx, offsets, 4 * (leaf->slots + n + 1), err));
  BASE_TRY(read_values(ctx, leaf, k, NULL, 0, err));
  if (offsets->size == 0) memset(offsets->data, 0, 4);
  offsets->size = 4 * (leaf->slots + n + 1);
  if (k < n)
    spread_offsets((uint32_t *)(void *)offsets->data + leaf->slots, leaf->valid.data,
                   leaf->slots, n, k);
  return WEIR_OK;
}

static weir_status add_bits(read_context *ctx, read_leaf *leaf, size_t n, size_t k,
                            weir_error *err) {
  size_t all = leaf->slots + n;
  BASE_TRY(read_reserve(ctx, &leaf->values, (all + 7) / 8, err));
  leaf->values.size = (all + 7) / 8;
  if (k == n) return read_values(ctx, leaf, n, leaf->values.data, leaf->slots, err);
  BASE_TRY(parquet_reserve(&ctx->dense, k / 8 + 8, err));
  BASE_TRY(read_values(ctx, leaf, k, ctx->dense.data, 0, err));
  spread_bits(ctx->dense.data, leaf->valid.data, leaf->slots, n, leaf->values.data);
  return WEIR_OK;
}

/* n slots, k of which have a value; which ones, leaf->valid tells from bit leaf->slots on if k < n. */
static weir_status add_slots(read_context *ctx, read_leaf *leaf, size_t n, size_t k,
                             weir_error *err) {
  size_t slot = leaf->type->slot;
  if (leaf->type->put == PUT_BYTES) {
    BASE_TRY(add_bytes(ctx, leaf, n, k, err));
  } else if (leaf->type->put == PUT_BITS) {
    BASE_TRY(add_bits(ctx, leaf, n, k, err));
  } else {
    size_t size = (leaf->slots + n) * slot;
    BASE_TRY(read_reserve(ctx, &leaf->values, size, err));
    uint8_t *out = leaf->values.data + leaf->slots * slot;
    leaf->values.size = size;
    if (k == n) {
      BASE_TRY(read_values(ctx, leaf, n, out, 0, err));
    } else {
      BASE_TRY(parquet_reserve(&ctx->dense, (k + 1) * slot, err));
      BASE_TRY(read_values(ctx, leaf, k, ctx->dense.data, 0, err));
      if (slot > 0) spread(ctx->dense.data, leaf->valid.data, leaf->slots, n, slot, out);
    }
  }
  leaf->slots += n;
  leaf->nulls += n - k;
  return WEIR_OK;
}

/* ---- levels ------------------------------------------------------------------------------------ */

static weir_status broken_levels(const read_leaf *leaf, weir_error *err) {
  return read_corrupt(leaf, "a page's levels are broken", err);
}

/* Each level is a row. */
static weir_status take_flat(read_context *ctx, read_leaf *leaf, size_t n,
                             weir_error *err) {
  size_t k = n, all = leaf->slots + n;
  if (leaf->type->max_def > 0) {
    BASE_TRY(read_reserve(ctx, &leaf->valid, (all + 7) / 8, err));
    leaf->valid.size = (all + 7) / 8;
    if (!decode_hybrid_bits(&leaf->page.def, leaf->valid.data, leaf->slots, n))
      return broken_levels(leaf, err);
    k = bits_count(leaf->valid.data, leaf->slots, n);
  }
  return add_slots(ctx, leaf, n, k, err);
}

/* Bits for the slots among n levels; *k of the *slots have values. */
static weir_status mark_valid(read_context *ctx, read_leaf *leaf, const uint8_t *defs,
                              size_t n, size_t *slots, size_t *k, weir_error *err) {
  const read_type *type = leaf->type;
  BASE_TRY(read_reserve(ctx, &leaf->valid, (leaf->slots + n + 7) / 8, err));
  uint8_t *valid = leaf->valid.data;
  size_t at = leaf->slots, values = 0;
  for (size_t i = 0; i < n; i++) {
    if (defs[i] < type->carry) continue;
    uint8_t is = defs[i] == type->max_def;
    if (at % 8 == 0) valid[at / 8] = 0;
    valid[at / 8] |= (uint8_t)(is << (at % 8));
    values += is;
    at++;
  }
  leaf->valid.size = (at + 7) / 8;
  *slots = at - leaf->slots;
  *k = values;
  return WEIR_OK;
}

static uint8_t greatest(const uint8_t *levels, size_t n) {
  uint8_t most = 0;
  for (size_t i = 0; i < n; i++) most = levels[i] > most ? levels[i] : most;
  return most;
}

/* Gives null fixed-size lists a level an element, from the end on; *n levels from `have` on become more. */
static weir_status fill_fixed(read_context *ctx, read_leaf *leaf, const read_fixed *fixed,
                              size_t have, size_t *n, weir_error *err) {
  const uint8_t *levels = leaf->defs.data + have;
  uint64_t all = 0;
  for (size_t i = 0; i < *n; i++) {
    bool null = levels[i] >= fixed->from && levels[i] < fixed->below;
    all += null ? fixed->size : 1;
  }
  if (all == *n) return WEIR_OK;
  BASE_TRY(read_reserve(ctx, &leaf->defs, have + all, err));
  BASE_TRY(read_reserve(ctx, &leaf->reps, have + all, err));
  uint8_t *defs = leaf->defs.data + have, *reps = leaf->reps.data + have;
  for (size_t i = *n, to = (size_t)all; i > 0; i--) {
    uint8_t def = defs[i - 1], rep = reps[i - 1];
    bool null = def >= fixed->from && def < fixed->below;
    size_t size = null ? fixed->size : 1;
    to -= size;
    memset(defs + to, def, size);
    memset(reps + to, fixed->rep, size);
    reps[to] = rep;
  }
  *n = (size_t)all;
  leaf->defs.size = leaf->reps.size = have + *n;
  return WEIR_OK;
}

static weir_status take_nested(read_context *ctx, read_leaf *leaf, const uint8_t *reps,
                               size_t n, weir_error *err) {
  const read_type *type = leaf->type;
  size_t have = leaf->levels_n, slots = 0, k = 0;
  BASE_TRY(read_reserve(ctx, &leaf->defs, have + n + 8, err));
  uint8_t *defs = leaf->defs.data + have;
  if (type->max_def == 0) {
    memset(defs, 0, n);
  } else if (!decode_hybrid_u8(&leaf->page.def, defs, n) ||
             greatest(defs, n) > type->max_def) {
    return broken_levels(leaf, err);
  }
  leaf->defs.size = have + n;
  if (reps != NULL) {
    BASE_TRY(read_reserve(ctx, &leaf->reps, have + n, err));
    memcpy(leaf->reps.data + have, reps, n);
    leaf->reps.size = have + n;
  }
  for (size_t i = 0; i < type->n_fixed; i++)
    BASE_TRY(fill_fixed(ctx, leaf, &type->fixed[i], have, &n, err));
  BASE_TRY(mark_valid(ctx, leaf, leaf->defs.data + have, n, &slots, &k, err));
  leaf->levels_n += n;
  return add_slots(ctx, leaf, slots, k, err);
}

/* Some repetition levels that were not used yet. */
static weir_status look_ahead(read_leaf *leaf, weir_error *err) {
  if (leaf->ahead_at < leaf->ahead_n) return WEIR_OK;
  size_t most = sizeof(leaf->ahead) - 8,
         n = leaf->page.levels < most ? (size_t)leaf->page.levels : most;
  if (!decode_hybrid_u8(&leaf->page.rep, leaf->ahead, n) ||
      greatest(leaf->ahead, n) > leaf->type->max_rep)
    return broken_levels(leaf, err);
  leaf->ahead_at = 0;
  leaf->ahead_n = n;
  return WEIR_OK;
}

/* A row goes on until the next level that repeats nothing, in the next page if need be. */
static weir_status take_records(read_context *ctx, read_leaf *leaf, size_t n,
                                weir_error *err) {
  size_t begun = 0;
  for (;;) {
    if (leaf->page.levels == 0) {
      if (leaf->levels == 0) break;
      BASE_TRY(read_page_next(ctx, leaf, err));
    }
    BASE_TRY(look_ahead(leaf, err));
    const uint8_t *reps = leaf->ahead + leaf->ahead_at;
    size_t part = 0, have = leaf->ahead_n - leaf->ahead_at;
    bool end = false;
    if (begun == 0 && reps[0] != 0)
      return read_corrupt(leaf, "its first level repeats a row that is not there", err);
    for (; part < have; part++) {
      if (reps[part] != 0) continue;
      end = begun == n;
      if (end) break;
      begun++;
    }
    if (part > 0) BASE_TRY(take_nested(ctx, leaf, reps, part, err));
    leaf->ahead_at += part;
    leaf->page.levels -= part;
    if (end) break;
  }
  return begun == n
             ? WEIR_OK
             : read_corrupt(leaf, "it has fewer values than its row group has rows", err);
}

weir_status read_leaf_rows(read_context *ctx, read_leaf *leaf, size_t n,
                           weir_error *err) {
  if (n == 0) return WEIR_OK;
  leaf->rows += n;
  if (leaf->type->max_rep > 0) return take_records(ctx, leaf, n, err);
  while (n > 0) {
    if (leaf->page.levels == 0) BASE_TRY(read_page_next(ctx, leaf, err));
    size_t part = n < PIECE ? n : PIECE;
    if (part > leaf->page.levels) part = (size_t)leaf->page.levels;
    BASE_TRY(leaf->type->flat ? take_flat(ctx, leaf, part, err)
                              : take_nested(ctx, leaf, NULL, part, err));
    leaf->page.levels -= part;
    n -= part;
  }
  return WEIR_OK;
}
