/* SPDX-License-Identifier: Apache-2.0 */
/* The dictionary of one column chunk: distinct values in order of first use. */
#ifndef WEIR_PARQUET_DICT_H
#define WEIR_PARQUET_DICT_H

#include "bits.h"
#include "decimal.h"

/* Past these a dictionary costs more than it saves, and its table leaves the cache. */
#define DICT_MAX_ENTRIES (1u << 17)
#define DICT_MAX_BYTES (2u << 20)

typedef struct parquet_dict {
  uint32_t width; /* bytes of a value; 0: byte arrays */
  uint32_t n;
  base_buf values;  /* the entries' bytes, one after the other */
  base_buf offsets; /* of byte arrays: uint32_t, n + 1 */
  base_buf keys;    /* of byte arrays: 16 bytes each, for a quick comparison */
  uint32_t *slots;  /* hash table: entry + 1; 0 = free */
  unsigned slot_bits;
  /* Small ranges of 4 or 8 byte integers: entry + 1 by value - base. NULL when not in use. */
  uint32_t *direct;
  uint64_t base, range;
  decimal_range decimals; /* the same for doubles, unless its scale is 0 */
} parquet_dict;

void dict_init(parquet_dict *dict, uint32_t width);
void dict_done(parquet_dict *dict);
/* Forgets the entries, keeps the memory. */
void dict_clear(parquet_dict *dict);
/* Serves values within [min, max] by direct look-up from now on, if that range is small. For an empty
 * dictionary of width 4 or 8. */
weir_status dict_use_direct(parquet_dict *dict, uint64_t min, uint64_t max,
                            weir_error *err);

/* The same for doubles between min and max, if they are decimals; from a look at some of the n. */
weir_status dict_use_decimals(parquet_dict *dict, const double *values, size_t n,
                              double min, double max, weir_error *err);

/* Gives each value its entry's number, adding entries. *full becomes true, and the dictionary is as
 * before, when it would outgrow its bounds. min and max are those of the values (used when a direct
 * table is in use; as the type's bits, sign extended). */
weir_status dict_map_fixed(parquet_dict *dict, const void *values, size_t n, uint64_t min,
                           uint64_t max, uint32_t *indices, bool *full, weir_error *err);
/* Value i is data[offsets[i], offsets[i + 1]). */
weir_status dict_map_bytes(parquet_dict *dict, const uint8_t *data,
                           const uint32_t *offsets, size_t n, uint32_t *indices,
                           bool *full, weir_error *err);

/* What a sample of a page shows: how many values, how many distinct ones, how many of these once and
 * twice, and how many values equal to the one before. */
typedef struct dict_sample_result {
  size_t total, distinct, once, twice, repeats;
} dict_sample_result;

/* With offsets: byte arrays, else values of `width` bytes. */
dict_sample_result dict_sample(const void *values, const uint32_t *offsets, size_t width,
                               size_t n);

/* How many more distinct values there are than a sample shows that met so many once and twice. */
double dict_unseen(double once, double twice);

/* How many entries a longer chunk may have, from how often the n numbers name each of those there are.
 * `counts` has room for dict->n. */
double dict_expected(const parquet_dict *dict, const uint32_t *numbers, size_t n,
                     uint32_t *counts);

#endif
