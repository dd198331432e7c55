/* SPDX-License-Identifier: Apache-2.0 */
#include "dict.h"

#include <stdlib.h>

enum { SLOT_BITS_MIN = 10 };

/* ---- hashing: multiply 64 x 64 -> 128 and fold, as wyhash does ---------------------------------- */

#define MIX_A UINT64_C(0x9e3779b97f4a7c15)
#define MIX_B UINT64_C(0xd1b54a32d192ed03)

PARQUET_INLINE uint64_t mix(uint64_t a, uint64_t b) {
  unsigned __int128 product = (unsigned __int128)a * b;
  return (uint64_t)product ^ (uint64_t)(product >> 64);
}

PARQUET_INLINE uint64_t hash_fixed(uint64_t value) {
  return mix(value ^ MIX_A, MIX_B);
}

static uint64_t hash_long(const uint8_t *p, size_t size) {
  uint64_t h = size * MIX_A;
  size_t left = size;
  for (; left > 16; left -= 16, p += 16) {
    h = mix(parquet_load64(p) ^ MIX_A ^ h, parquet_load64(p + 8) ^ MIX_B);
  }
  return mix(parquet_load64(p + left - 16) ^ MIX_A ^ h,
             parquet_load64(p + left - 8) ^ MIX_B);
}

PARQUET_INLINE uint64_t load32(const uint8_t *p) {
  uint32_t v;
  memcpy(&v, p, sizeof(v));
  return v;
}

PARQUET_INLINE uint64_t hash_bytes(const uint8_t *p, size_t size) {
  uint64_t a, b;
  if (size >= 8) {
    if (size > 16) return hash_long(p, size);
    a = parquet_load64(p);
    b = parquet_load64(p + size - 8);
  } else if (size >= 4) {
    a = load32(p);
    b = load32(p + size - 4);
  } else if (size > 0) {
    a = (uint64_t)p[0] << 16 | (uint64_t)p[size / 2] << 8 | p[size - 1];
    b = 0;
  } else {
    a = b = 0;
  }
  return mix(a ^ MIX_A, b ^ MIX_B ^ size * MIX_A);
}

PARQUET_INLINE bool equal_bytes(const uint8_t *a, const uint8_t *b, size_t size) {
  if (size > 16) return memcmp(a, b, size) == 0;
  if (size >= 8) {
    return ((parquet_load64(a) ^ parquet_load64(b)) |
            (parquet_load64(a + size - 8) ^ parquet_load64(b + size - 8))) == 0;
  }
  if (size >= 4) {
    return ((load32(a) ^ load32(b)) | (load32(a + size - 4) ^ load32(b + size - 4))) == 0;
  }
  for (size_t i = 0; i < size; i++) {
    if (a[i] != b[i]) return false;
  }
  return true;
}

/* ---- table ------------------------------------------------------------------------------------ */

void dict_init(parquet_dict *dict, uint32_t width) {
  *dict = (parquet_dict){.width = width};
}

void dict_done(parquet_dict *dict) {
  base_buf_done(&dict->values);
  base_buf_done(&dict->offsets);
  free(dict->slots);
  free(dict->direct);
  *dict = (parquet_dict){.width = dict->width};
}

void dict_clear(parquet_dict *dict) {
  dict->n = 0;
  base_buf_clear(&dict->values);
  base_buf_clear(&dict->offsets);
  if (dict->slots != NULL) memset(dict->slots, 0, sizeof(uint64_t) << dict->slot_bits);
  free(dict->direct);
  dict->direct = NULL;
}

/* The place of a slot follows from the tag, so growing needs no values. */
static weir_status grow(parquet_dict *dict, weir_error *err) {
  unsigned bits = dict->slots == NULL ? SLOT_BITS_MIN : dict->slot_bits + 1;
  size_t mask = ((size_t)1 << bits) - 1;
  uint64_t *slots = base_calloc(mask + 1, sizeof(*slots), err);
  if (slots == NULL) return WEIR_E_NOMEM;
  for (size_t i = 0; dict->slots != NULL && i < (size_t)1 << dict->slot_bits; i++) {
    uint64_t slot = dict->slots[i];
    if (slot == 0) continue;
    size_t place = (size_t)(slot >> (64 - bits));
    while (slots[place] != 0) place = (place + 1) & mask;
    slots[place] = slot;
  }
  free(dict->slots);
  dict->slots = slots;
  dict->slot_bits = bits;
  return WEIR_OK;
}

/* At most half full, so that probes stay short. */
PARQUET_INLINE bool crowded(const parquet_dict *dict) {
  return ((uint64_t)dict->n + 1) * 2 > (uint64_t)1 << dict->slot_bits;
}

static bool at_bound(const parquet_dict *dict, size_t more) {
  return dict->n >= DICT_MAX_ENTRIES || dict->values.size + more > DICT_MAX_BYTES;
}

static weir_status add_fixed(parquet_dict *dict, const void *value, bool *full,
                             weir_error *err) {
  if (at_bound(dict, dict->width)) {
    *full = true;
    return WEIR_OK;
  }
  BASE_TRY(base_buf_append(&dict->values, value, dict->width, err));
  dict->n++;
  return WEIR_OK;
}

static weir_status add_bytes(parquet_dict *dict, const uint8_t *value, size_t size,
                             bool *full, weir_error *err) {
  if (at_bound(dict, size)) {
    *full = true;
    return WEIR_OK;
  }
  if (dict->offsets.size == 0) {
    BASE_TRY(base_buf_append(&dict->offsets, &(uint32_t){0}, sizeof(uint32_t), err));
  }
  BASE_TRY(parquet_reserve(&dict->values, dict->values.size + size, err));
  uint32_t end = (uint32_t)(dict->values.size + size);
  BASE_TRY(base_buf_append(&dict->offsets, &end, sizeof(end), err));
  BASE_TRY(base_buf_append(&dict->values, value, size, err));
  dict->n++;
  return WEIR_OK;
}

/* Takes back the entries from `n` on. The table still names them; it is not looked at again, since a
 * chunk whose dictionary was full once goes on without. */
static void take_back(parquet_dict *dict, uint32_t n) {
  dict->n = n;
  if (dict->width != 0) {
    dict->values.size = (size_t)n * dict->width;
  } else if (dict->offsets.size != 0) {
    uint32_t end;
    memcpy(&end, dict->offsets.data + (size_t)n * sizeof(uint32_t), sizeof(end));
    dict->values.size = end;
    dict->offsets.size = ((size_t)n + 1) * sizeof(uint32_t);
  }
}

/* ---- mapping ---------------------------------------------------------------------------------- */

enum { DIRECT_SPAN_MAX = 1 << 18 };

weir_status dict_use_direct(parquet_dict *dict, uint64_t min, uint64_t max,
                            weir_error *err) {
  uint64_t span = max - min;
  if (span >= DIRECT_SPAN_MAX) return WEIR_OK;
  uint64_t slack =
      span / 2 + 32; /* the next pages are rarely quite within the first one's range */
  dict->range = span + 2 * slack + 1;
  dict->base = min - slack;
  dict->direct = base_calloc(dict->range, sizeof(uint32_t), err);
  return dict->direct != NULL ? WEIR_OK : WEIR_E_NOMEM;
}

PARQUET_INLINE size_t slot_place(const parquet_dict *dict, uint64_t hash) {
  return (size_t)(hash >> (64 - dict->slot_bits));
}

PARQUET_INLINE size_t slot_next(const parquet_dict *dict, size_t place) {
  return (place + 1) & (((size_t)1 << dict->slot_bits) - 1);
}

PARQUET_INLINE uint64_t slot_of(uint64_t hash, uint32_t n) {
  return (hash & ~UINT64_C(0xffffffff)) | n;
}

PARQUET_INLINE bool slot_tagged(uint64_t slot, uint64_t hash) {
  return slot >> 32 == hash >> 32;
}

/* Puts entry number dict->n (just added, counted from 1) where its hash leads. */
static weir_status slot_add(parquet_dict *dict, uint64_t hash, weir_error *err) {
  if (crowded(dict)) BASE_TRY(grow(dict, err));
  size_t place = slot_place(dict, hash);
  while (dict->slots[place] != 0) place = slot_next(dict, place);
  dict->slots[place] = slot_of(hash, dict->n);
  return WEIR_OK;
}

PARQUET_CLONES
static size_t count_repeats8(const uint64_t *values, size_t n) {
  size_t repeats = 0;
  for (size_t i = 1; i < n; i++) repeats += values[i] == values[i - 1];
  return repeats;
}

PARQUET_CLONES
static size_t count_repeats4(const uint32_t *values, size_t n) {
  size_t repeats = 0;
  for (size_t i = 1; i < n; i++) repeats += values[i] == values[i - 1];
  return repeats;
}

#define MAP(width, type)                                                                 \
  static weir_status map_direct##width(parquet_dict *dict, const type *values, size_t n, \
                                       uint32_t *indices, bool *full, weir_error *err) { \
    uint32_t *direct = dict->direct;                                                     \
    type base = (type)dict->base;                                                        \
    for (size_t i = 0; i < n; i++) {                                                     \
      uint32_t *entry = &direct[(type)(values[i] - base)];                               \
      if (PARQUET_UNLIKELY(*entry == 0)) {                                               \
        BASE_TRY(add_fixed(dict, values + i, full, err));                                \
        if (*full) return WEIR_OK;                                                       \
        *entry = dict->n;                                                                \
      }                                                                                  \
      indices[i] = *entry - 1;                                                           \
    }                                                                                    \
    return WEIR_OK;                                                                      \
  }                                                                                      \
  static bool in_direct##width(const parquet_dict *dict, uint64_t min, uint64_t max) {   \
    type low = (type)((type)min - (type)dict->base),                                     \
         high = (type)((type)max - (type)dict->base);                                    \
    return low <= high && high < dict->range;                                            \
  }                                                                                      \
  static weir_status leave_direct##width(parquet_dict *dict, weir_error *err) {          \
    free(dict->direct);                                                                  \
    dict->direct = NULL;                                                                 \
    uint32_t n = dict->n;                                                                \
    for (dict->n = 1; dict->n <= n; dict->n++) {                                         \
      type value;                                                                        \
      memcpy(&value, dict->values.data + (size_t)(dict->n - 1) * sizeof(value),          \
             sizeof(value));                                                             \
      weir_status status = slot_add(dict, hash_fixed(value), err);                       \
      if (status != WEIR_OK) {                                                           \
        dict->n = n;                                                                     \
        return status;                                                                   \
      }                                                                                  \
    }                                                                                    \
    dict->n = n;                                                                         \
    return WEIR_OK;                                                                      \
  }                                                                                      \
  PARQUET_INLINE weir_status map_hash##width(parquet_dict *dict, const type *values,     \
                                             size_t n, bool runs, uint32_t *indices,     \
                                             bool *full, weir_error *err) {              \
    for (size_t i = 0; i < n; i++) {                                                     \
      type value = values[i];                                                            \
      if (runs && i > 0 && value == values[i - 1]) {                                     \
        indices[i] = indices[i - 1];                                                     \
        continue;                                                                        \
      }                                                                                  \
      uint64_t hash = hash_fixed(value);                                                 \
      size_t place = slot_place(dict, hash);                                             \
      const type *known = (const type *)(const void *)dict->values.data;                 \
      uint64_t slot;                                                                     \
      while ((slot = dict->slots[place]) != 0) {                                         \
        if (slot_tagged(slot, hash) && known[(uint32_t)slot - 1] == value) break;        \
        place = slot_next(dict, place);                                                  \
      }                                                                                  \
      if (PARQUET_UNLIKELY(slot == 0)) {                                                 \
        BASE_TRY(add_fixed(dict, &value, full, err));                                    \
        if (*full) return WEIR_OK;                                                       \
        BASE_TRY(slot_add(dict, hash, err));                                             \
        slot = dict->n;                                                                  \
      }                                                                                  \
      indices[i] = (uint32_t)slot - 1;                                                   \
    }                                                                                    \
    return WEIR_OK;                                                                      \
  }                                                                                      \
  static weir_status map##width(parquet_dict *dict, const type *values, size_t n,        \
                                uint64_t min, uint64_t max, uint32_t *indices,           \
                                bool *full, weir_error *err) {                           \
    if (dict->direct != NULL) {                                                          \
      if (in_direct##width(dict, min, max)) {                                            \
        return map_direct##width(dict, values, n, indices, full, err);                   \
      }                                                                                  \
      BASE_TRY(leave_direct##width(dict, err));                                          \
    }                                                                                    \
    if (dict->slots == NULL) BASE_TRY(grow(dict, err));                                  \
    if (count_repeats##width(values, n) > n / 2) {                                       \
      return map_hash##width(dict, values, n, true, indices, full, err);                 \
    }                                                                                    \
    return map_hash##width(dict, values, n, false, indices, full, err);                  \
  }

MAP(4, uint32_t)
MAP(8, uint64_t)

/* Values of any other width: byte arrays whose offsets are known. */
static weir_status map_wide(parquet_dict *dict, const uint8_t *values, size_t n,
                            uint32_t *indices, bool *full, weir_error *err) {
  size_t width = dict->width;
  for (size_t i = 0; i < n; i++) {
    const uint8_t *value = values + i * width;
    uint64_t hash = hash_bytes(value, width), slot;
    size_t place = slot_place(dict, hash);
    while ((slot = dict->slots[place]) != 0) {
      const uint8_t *known = dict->values.data + (size_t)((uint32_t)slot - 1) * width;
      if (slot_tagged(slot, hash) && equal_bytes(known, value, width)) break;
      place = slot_next(dict, place);
    }
    if (slot == 0) {
      BASE_TRY(add_fixed(dict, value, full, err));
      if (*full) return WEIR_OK;
      BASE_TRY(slot_add(dict, hash, err));
      slot = dict->n;
    }
    indices[i] = (uint32_t)slot - 1;
  }
  return WEIR_OK;
}

weir_status dict_map_fixed(parquet_dict *dict, const void *values, size_t n, uint64_t min,
                           uint64_t max, uint32_t *indices, bool *full, weir_error *err) {
  uint32_t before = dict->n;
  *full = false;
  weir_status status;
  if (dict->width == 8) {
    status = map8(dict, values, n, min, max, indices, full, err);
  } else if (dict->width == 4) {
    status = map4(dict, values, n, min, max, indices, full, err);
  } else {
    if (dict->slots == NULL) BASE_TRY(grow(dict, err));
    status = map_wide(dict, values, n, indices, full, err);
  }
  if (status == WEIR_OK && *full) take_back(dict, before);
  return status;
}

static weir_status map_bytes(parquet_dict *dict, const uint8_t *data,
                             const uint32_t *offsets, size_t n, uint32_t *indices,
                             bool *full, weir_error *err) {
  for (size_t i = 0; i < n; i++) {
    const uint8_t *value = data + offsets[i];
    size_t size = offsets[i + 1] - offsets[i];
    uint64_t hash = hash_bytes(value, size), slot;
    size_t place = slot_place(dict, hash);
    const uint32_t *known = (const uint32_t *)(const void *)dict->offsets.data;
    while ((slot = dict->slots[place]) != 0) {
      if (slot_tagged(slot, hash)) {
        const uint32_t *at = known + (uint32_t)slot - 1;
        if (at[1] - at[0] == size && equal_bytes(dict->values.data + at[0], value, size))
          break;
      }
      place = slot_next(dict, place);
    }
    if (PARQUET_UNLIKELY(slot == 0)) {
      BASE_TRY(add_bytes(dict, value, size, full, err));
      if (*full) return WEIR_OK;
      BASE_TRY(slot_add(dict, hash, err));
      slot = dict->n;
    }
    indices[i] = (uint32_t)slot - 1;
  }
  return WEIR_OK;
}

weir_status dict_map_bytes(parquet_dict *dict, const uint8_t *data,
                           const uint32_t *offsets, size_t n, uint32_t *indices,
                           bool *full, weir_error *err) {
  uint32_t before = dict->n;
  *full = false;
  if (dict->slots == NULL) BASE_TRY(grow(dict, err));
  weir_status status = map_bytes(dict, data, offsets, n, indices, full, err);
  if (status == WEIR_OK && *full) take_back(dict, before);
  return status;
}

/* ---- sampling --------------------------------------------------------------------------------- */

enum { SAMPLE_RUNS = 64, SAMPLE_RUN = 64, SAMPLE_SLOTS = 1 << 14 };

/* Counts hashes seen before; hashes stand for their values. */
static bool sample_seen(uint32_t *seen, uint64_t hash) {
  uint32_t tag = (uint32_t)hash | 1u;
  size_t place = (size_t)(hash >> 50);
  while (seen[place] != 0) {
    if (seen[place] == tag) return true;
    place = (place + 1) & (SAMPLE_SLOTS - 1);
  }
  seen[place] = tag;
  return false;
}

static uint64_t sample_hash(const void *values, const uint32_t *offsets, size_t width,
                            size_t i) {
  const uint8_t *bytes = values;
  if (offsets != NULL) return hash_bytes(bytes + offsets[i], offsets[i + 1] - offsets[i]);
  if (width == 8) return hash_fixed(parquet_load64(bytes + i * 8));
  if (width == 4) return hash_fixed(load32(bytes + i * 4));
  return hash_bytes(bytes + i * width, width);
}

dict_sample_result dict_sample(const void *values, const uint32_t *offsets, size_t width,
                               size_t n) {
  uint32_t seen[SAMPLE_SLOTS];
  memset(seen, 0, sizeof(seen));
  size_t runs = n <= SAMPLE_RUNS * SAMPLE_RUN ? 1 : SAMPLE_RUNS;
  size_t run = runs == 1 ? n : SAMPLE_RUN;
  dict_sample_result result = {.total = runs * run};
  for (size_t r = 0; r < runs; r++) {
    size_t from = r * (n / runs);
    uint64_t before = 0;
    for (size_t i = from; i < from + run; i++) {
      uint64_t hash = sample_hash(values, offsets, width, i);
      result.repeats += i > from && hash == before;
      result.distinct += !sample_seen(seen, hash);
      before = hash;
    }
  }
  return result;
}
