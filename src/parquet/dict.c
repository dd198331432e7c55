/* SPDX-License-Identifier: Apache-2.0 */
#include "dict.h"

#include <stdlib.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "hash.h"

enum { SLOT_BITS_MIN = 10 };

/* ---- table ------------------------------------------------------------------------------------ */

void dict_init(parquet_dict *dict, uint32_t width) {
  *dict = (parquet_dict){.width = width};
}

void dict_done(parquet_dict *dict) {
  base_buf_done(&dict->values);
  base_buf_done(&dict->offsets);
  base_buf_done(&dict->keys);
  free(dict->slots);
  free(dict->direct);
  *dict = (parquet_dict){.width = dict->width};
}

static void drop_direct(parquet_dict *dict) {
  free(dict->direct);
  dict->direct = NULL;
  dict->decimals.scale = 0;
}

void dict_clear(parquet_dict *dict) {
  dict->n = 0;
  base_buf_clear(&dict->values);
  base_buf_clear(&dict->offsets);
  base_buf_clear(&dict->keys);
  if (dict->slots != NULL) memset(dict->slots, 0, sizeof(uint32_t) << dict->slot_bits);
  drop_direct(dict);
}

/* At most a quarter full: most look-ups end where they begin. */
PARQUET_INLINE bool crowded(const parquet_dict *dict) {
  return ((uint64_t)dict->n + 1) * 4 > (uint64_t)1 << dict->slot_bits;
}

PARQUET_INLINE size_t slot_place(unsigned slot_bits, uint64_t hash) {
  return (size_t)(hash >> (64 - slot_bits));
}

PARQUET_INLINE size_t slot_next(const parquet_dict *dict, size_t place) {
  return (place + 1) & (((size_t)1 << dict->slot_bits) - 1);
}

static uint64_t entry_hash(const parquet_dict *dict, uint32_t entry);

static void slot_put(parquet_dict *dict, uint64_t hash, uint32_t entry) {
  size_t place = slot_place(dict->slot_bits, hash);
  while (dict->slots[place] != 0) place = slot_next(dict, place);
  dict->slots[place] = entry + 1;
}

/* Makes the table fit the entries, and puts them all in. */
static weir_status grow(parquet_dict *dict, weir_error *err) {
  unsigned bits = SLOT_BITS_MIN;
  while (((uint64_t)dict->n + 1) * 4 > (uint64_t)1 << bits) bits++;
  uint32_t *slots = base_calloc((size_t)1 << bits, sizeof(*slots), err);
  if (slots == NULL) return WEIR_E_NOMEM;
  free(dict->slots);
  dict->slots = slots;
  dict->slot_bits = bits;
  for (uint32_t i = 0; i < dict->n; i++) slot_put(dict, entry_hash(dict, i), i);
  return WEIR_OK;
}

/* Finds room for the entry just added. */
static weir_status slot_add(parquet_dict *dict, uint64_t hash, weir_error *err) {
  if (crowded(dict)) return grow(dict, err);
  slot_put(dict, hash, dict->n - 1);
  return WEIR_OK;
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
    dict->keys.size = (size_t)n * 16;
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

weir_status dict_use_decimals(parquet_dict *dict, const double *values, size_t n,
                              double min, double max, weir_error *err) {
  decimal_range found;
  if (!decimal_find(values, n, min, max, DIRECT_SPAN_MAX, &found)) return WEIR_OK;
  dict->direct = base_calloc(found.range, sizeof(uint32_t), err);
  if (dict->direct == NULL) return WEIR_E_NOMEM;
  dict->decimals = found;
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

/* Look-ups go in blocks: first where each value's slot is, then whether the entry there is the value,
 * without a branch; the few that did not hit follow one by one. */
enum { MAP_BLOCK = 256 };

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
    type low = (type)((type)min - (type)dict->base);                                     \
    type high = (type)((type)max - (type)dict->base);                                    \
    return low <= high && high < dict->range;                                            \
  }                                                                                      \
  /* Positions of the values that are not where they would be first. */                  \
  PARQUET_CLONES                                                                         \
  static size_t map_hits##width(const uint32_t *slots, unsigned slot_bits,               \
                                const type *known, const type *values, size_t n,         \
                                uint32_t *indices, uint16_t *misses) {                   \
    for (size_t i = 0; i < n; i++) {                                                     \
      uint32_t slot = slots[slot_place(slot_bits, hash_fixed(values[i]))];               \
      indices[i] = slot - (slot != 0);                                                   \
    }                                                                                    \
    size_t count = 0;                                                                    \
    for (size_t i = 0; i < n; i++) {                                                     \
      misses[count] = (uint16_t)i;                                                       \
      count += known[indices[i]] != values[i];                                           \
    }                                                                                    \
    return count;                                                                        \
  }                                                                                      \
  static weir_status map_one##width(parquet_dict *dict, type value, uint32_t *index,     \
                                    bool *full, weir_error *err) {                       \
    uint64_t hash = hash_fixed(value);                                                   \
    const type *known = (const type *)(const void *)dict->values.data;                   \
    size_t place = slot_place(dict->slot_bits, hash);                                    \
    uint32_t slot;                                                                       \
    while ((slot = dict->slots[place]) != 0 && known[slot - 1] != value) {               \
      place = slot_next(dict, place);                                                    \
    }                                                                                    \
    if (slot == 0) {                                                                     \
      BASE_TRY(add_fixed(dict, &value, full, err));                                      \
      if (*full) return WEIR_OK;                                                         \
      BASE_TRY(slot_add(dict, hash, err));                                               \
      slot = dict->n;                                                                    \
    }                                                                                    \
    *index = slot - 1;                                                                   \
    return WEIR_OK;                                                                      \
  }                                                                                      \
  static weir_status map_runs##width(parquet_dict *dict, const type *values, size_t n,   \
                                     uint32_t *indices, bool *full, weir_error *err) {   \
    for (size_t i = 0; i < n && !*full; i++) {                                           \
      if (i > 0 && values[i] == values[i - 1]) {                                         \
        indices[i] = indices[i - 1];                                                     \
      } else {                                                                           \
        BASE_TRY(map_one##width(dict, values[i], indices + i, full, err));               \
      }                                                                                  \
    }                                                                                    \
    return WEIR_OK;                                                                      \
  }                                                                                      \
  static weir_status map##width(parquet_dict *dict, const type *values, size_t n,        \
                                uint64_t min, uint64_t max, uint32_t *indices,           \
                                bool *full, weir_error *err) {                           \
    if (dict->direct != NULL && dict->decimals.scale == 0 &&                             \
        in_direct##width(dict, min, max)) {                                              \
      return map_direct##width(dict, values, n, indices, full, err);                     \
    }                                                                                    \
    if (dict->direct != NULL || dict->slots == NULL) BASE_TRY(grow(dict, err));          \
    drop_direct(dict);                                                                   \
    if (count_repeats##width(values, n) > n / 2) {                                       \
      return map_runs##width(dict, values, n, indices, full, err);                       \
    }                                                                                    \
    if (dict->n == 0) BASE_TRY(map_one##width(dict, values[0], indices, full, err));     \
    for (size_t from = 0; from < n; from += MAP_BLOCK) {                                 \
      uint16_t misses[MAP_BLOCK + 1] = {0};                                              \
      size_t m = n - from < MAP_BLOCK ? n - from : MAP_BLOCK;                            \
      size_t count = map_hits##width(dict->slots, dict->slot_bits,                       \
                                     (const type *)(const void *)dict->values.data,      \
                                     values + from, m, indices + from, misses);          \
      for (size_t k = 0; k < count && !*full; k++) {                                     \
        size_t i = from + misses[k];                                                     \
        BASE_TRY(map_one##width(dict, values[i], indices + i, full, err));               \
      }                                                                                  \
      if (*full) return WEIR_OK;                                                         \
    }                                                                                    \
    return WEIR_OK;                                                                      \
  }

MAP(4, uint32_t)
MAP(8, uint64_t)

/* Up to the first block with a value that is no decimal of the table's range; *done: how many. */
static weir_status map_decimals(parquet_dict *dict, const double *values, size_t n,
                                uint32_t *indices, size_t *done, bool *full,
                                weir_error *err) {
  uint32_t *direct = dict->direct;
  for (size_t from = 0; from < n; from += MAP_BLOCK) {
    uint32_t slots[MAP_BLOCK];
    size_t m = n - from < MAP_BLOCK ? n - from : MAP_BLOCK;
    if (!decimal_slots(&dict->decimals, values + from, m, slots)) return WEIR_OK;
    for (size_t i = 0; i < m; i++) {
      uint32_t *entry = &direct[slots[i]];
      if (PARQUET_UNLIKELY(*entry == 0)) {
        BASE_TRY(add_fixed(dict, values + from + i, full, err));
        if (*full) return WEIR_OK;
        *entry = dict->n;
      }
      indices[from + i] = *entry - 1;
    }
    *done = from + m;
  }
  return WEIR_OK;
}

static weir_status map_eight(parquet_dict *dict, const uint64_t *values, size_t n,
                             uint64_t min, uint64_t max, uint32_t *indices, bool *full,
                             weir_error *err) {
  size_t done = 0;
  if (dict->decimals.scale != 0) {
    BASE_TRY(map_decimals(dict, (const double *)(const void *)values, n, indices, &done,
                          full, err));
  }
  if (*full || done == n) return WEIR_OK;
  return map8(dict, values + done, n - done, min, max, indices + done, full, err);
}

/* Values of any other width. */
static weir_status map_wide(parquet_dict *dict, const uint8_t *values, size_t n,
                            uint32_t *indices, bool *full, weir_error *err) {
  size_t width = dict->width;
  if (dict->slots == NULL) BASE_TRY(grow(dict, err));
  for (size_t i = 0; i < n; i++) {
    const uint8_t *value = values + i * width;
    uint64_t hash = hash_bytes(value, width);
    size_t place = slot_place(dict->slot_bits, hash);
    uint32_t slot;
    while ((slot = dict->slots[place]) != 0 &&
           memcmp(dict->values.data + (size_t)(slot - 1) * width, value, width) != 0) {
      place = slot_next(dict, place);
    }
    if (slot == 0) {
      BASE_TRY(add_fixed(dict, value, full, err));
      if (*full) return WEIR_OK;
      BASE_TRY(slot_add(dict, hash, err));
      slot = dict->n;
    }
    indices[i] = slot - 1;
  }
  return WEIR_OK;
}

weir_status dict_map_fixed(parquet_dict *dict, const void *values, size_t n, uint64_t min,
                           uint64_t max, uint32_t *indices, bool *full, weir_error *err) {
  uint32_t before = dict->n;
  *full = false;
  if (n == 0) return WEIR_OK;
  weir_status status =
      dict->width == 8   ? map_eight(dict, values, n, min, max, indices, full, err)
      : dict->width == 4 ? map4(dict, values, n, min, max, indices, full, err)
                         : map_wide(dict, values, n, indices, full, err);
  if (status == WEIR_OK && *full) take_back(dict, before);
  return status;
}

/* ---- byte arrays ------------------------------------------------------------------------------ */

/* A byte array as 16 bytes: up to 15 bytes themselves, 0x80, zeros; longer ones by hash and length, so
 * that equal keys still need a look at the bytes. The last byte of a short key is 0 or 0x80. */
typedef struct bytes_key {
  uint64_t low, high;
} bytes_key;

enum { KEY_SHORT = 15 };
#define KEY_LONG (UINT64_C(0xff) << 56)

PARQUET_INLINE uint64_t key_hash(bytes_key key) {
  return hash_fixed(key.low ^ key.high * MIX_B);
}

/* From KEY_SHORT - size on: which of 16 bytes belong to a value of `size`, and the 0x80 behind it. */
static const uint8_t key_mask[31] = {255, 255, 255, 255, 255, 255, 255, 255,
                                     255, 255, 255, 255, 255, 255, 255};
static const uint8_t key_end[31] = {[KEY_SHORT] = 0x80};

/* Of up to 15 bytes with 16 that may be read. No branch on the size: it differs from value to value. */
PARQUET_INLINE bytes_key short_key(const uint8_t *value, size_t size) {
  const uint8_t *mask = key_mask + KEY_SHORT - size, *end = key_end + KEY_SHORT - size;
#if defined(__SSE2__)
  bytes_key key;
  __m128i bytes = _mm_and_si128(_mm_loadu_si128((const __m128i *)(const void *)value),
                                _mm_loadu_si128((const __m128i *)(const void *)mask));
  bytes = _mm_or_si128(bytes, _mm_loadu_si128((const __m128i *)(const void *)end));
  _mm_storeu_si128((__m128i *)(void *)&key, bytes);
  return key;
#else
  return (bytes_key){
      (parquet_load64(value) & parquet_load64(mask)) | parquet_load64(end),
      (parquet_load64(value + 8) & parquet_load64(mask + 8)) | parquet_load64(end + 8)};
#endif
}

PARQUET_INLINE bytes_key key_of(const uint8_t *value, size_t size, const uint8_t *end) {
  if (PARQUET_UNLIKELY(size > KEY_SHORT)) {
    return (bytes_key){hash_bytes(value, size), KEY_LONG | size};
  }
  if (PARQUET_UNLIKELY((size_t)(end - value) < 16)) {
    uint8_t copy[16] = {0};
    for (size_t i = 0; i < size; i++) copy[i] = value[i];
    return short_key(copy, size);
  }
  return short_key(value, size);
}

static uint64_t entry_hash(const parquet_dict *dict, uint32_t entry) {
  const uint8_t *value = dict->values.data + (size_t)entry * dict->width;
  if (dict->width == 8) return hash_fixed(parquet_load64(value));
  if (dict->width == 4) return hash_fixed(load32(value));
  if (dict->width != 0) return hash_bytes(value, dict->width);
  return key_hash(((const bytes_key *)(const void *)dict->keys.data)[entry]);
}

PARQUET_INLINE bool same_key(const bytes_key *a, const bytes_key *b) {
#if defined(__SSE2__)
  __m128i same = _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)(const void *)a),
                                _mm_loadu_si128((const __m128i *)(const void *)b));
  return _mm_movemask_epi8(same) == 0xffff;
#else
  return ((a->low ^ b->low) | (a->high ^ b->high)) == 0;
#endif
}

static bool known_bytes(const parquet_dict *dict, uint32_t entry, bytes_key key,
                        const uint8_t *value) {
  const bytes_key *known = (const bytes_key *)(const void *)dict->keys.data + entry;
  if (!same_key(known, &key)) return false;
  if (PARQUET_LIKELY(key.high < KEY_LONG)) return true;
  const uint32_t *at = (const uint32_t *)(const void *)dict->offsets.data + entry;
  return memcmp(dict->values.data + at[0], value, at[1] - at[0]) == 0;
}

static weir_status map_one_bytes(parquet_dict *dict, const uint8_t *value, size_t size,
                                 bytes_key key, uint32_t *index, bool *full,
                                 weir_error *err) {
  uint64_t hash = key_hash(key);
  size_t place = slot_place(dict->slot_bits, hash);
  uint32_t slot;
  while ((slot = dict->slots[place]) != 0 && !known_bytes(dict, slot - 1, key, value)) {
    place = slot_next(dict, place);
  }
  if (slot == 0) {
    BASE_TRY(add_bytes(dict, value, size, full, err));
    if (*full) return WEIR_OK;
    BASE_TRY(base_buf_append(&dict->keys, &key, sizeof(key), err));
    BASE_TRY(slot_add(dict, hash, err));
    slot = dict->n;
  }
  *index = slot - 1;
  return WEIR_OK;
}

PARQUET_CLONES
static void find_entries(const uint32_t *slots, unsigned slot_bits, const bytes_key *keys,
                         size_t n, uint32_t *indices) {
  for (size_t i = 0; i < n; i++) {
    uint32_t slot = slots[slot_place(slot_bits, key_hash(keys[i]))];
    indices[i] = slot - (slot != 0);
  }
}

/* As map_hits: positions of the values that are not where they would be first, or are long. */
static size_t map_hits_bytes(const parquet_dict *dict, const bytes_key *keys, size_t n,
                             uint32_t *indices, uint16_t *misses) {
  const bytes_key *known = (const bytes_key *)(const void *)dict->keys.data;
  find_entries(dict->slots, dict->slot_bits, keys, n, indices);
  size_t count = 0;
  for (size_t i = 0; i < n; i++) {
    misses[count] = (uint16_t)i;
    count += !same_key(known + indices[i], keys + i) | (keys[i].high >= KEY_LONG);
  }
  return count;
}

static weir_status map_bytes(parquet_dict *dict, const uint8_t *data,
                             const uint32_t *offsets, size_t n, uint32_t *indices,
                             bool *full, weir_error *err) {
  const uint8_t *end = data + offsets[n];
  for (size_t from = 0; from < n; from += MAP_BLOCK) {
    bytes_key keys[MAP_BLOCK];
    uint16_t misses[MAP_BLOCK + 1];
    size_t m = n - from < MAP_BLOCK ? n - from : MAP_BLOCK;
    const uint32_t *at = offsets + from;
    for (size_t i = 0; i < m; i++) keys[i] = key_of(data + at[i], at[i + 1] - at[i], end);
    if (dict->n == 0) {
      BASE_TRY(
          map_one_bytes(dict, data + at[0], at[1] - at[0], keys[0], indices, full, err));
      if (*full) return WEIR_OK;
    }
    size_t count = map_hits_bytes(dict, keys, m, indices + from, misses);
    for (size_t k = 0; k < count && !*full; k++) {
      size_t i = misses[k];
      BASE_TRY(map_one_bytes(dict, data + at[i], at[i + 1] - at[i], keys[i],
                             indices + from + i, full, err));
    }
    if (*full) return WEIR_OK;
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
