/* SPDX-License-Identifier: Apache-2.0 */
#include "dict.h"
#include "hash.h"

enum { SAMPLE_RUNS = 64, SAMPLE_RUN = 64, SAMPLE_SLOTS = 1 << 13 };

typedef struct sample_slot {
  uint32_t tag, count;
} sample_slot;

/* How often a hash, which stands for its value, was seen before. */
static uint32_t sample_seen(sample_slot *slots, uint64_t hash) {
  uint32_t tag = (uint32_t)hash | 1u;
  size_t place = (size_t)(hash >> 51);
  while (slots[place].tag != 0 && slots[place].tag != tag) {
    place = (place + 1) & (SAMPLE_SLOTS - 1);
  }
  slots[place].tag = tag;
  return slots[place].count++;
}

static uint64_t sample_hash(const void *values, const uint32_t *offsets, size_t width,
                            size_t i) {
  const uint8_t *bytes = values;
  if (offsets != NULL) return hash_bytes(bytes + offsets[i], offsets[i + 1] - offsets[i]);
  if (width == 8) return mix(parquet_load64(bytes + i * 8) ^ MIX_A, MIX_B);
  if (width == 4) return mix(load32(bytes + i * 4) ^ MIX_A, MIX_B);
  return hash_bytes(bytes + i * width, width);
}

dict_sample_result dict_sample(const void *values, const uint32_t *offsets, size_t width,
                               size_t n) {
  sample_slot slots[SAMPLE_SLOTS];
  memset(slots, 0, sizeof(slots));
  size_t runs = n <= SAMPLE_RUNS * SAMPLE_RUN ? 1 : SAMPLE_RUNS;
  size_t run = runs == 1 ? n : SAMPLE_RUN;
  dict_sample_result result = {.total = runs * run};
  for (size_t r = 0; r < runs; r++) {
    size_t from = r * (n / runs);
    uint64_t before = 0;
    for (size_t i = from; i < from + run; i++) {
      uint64_t hash = sample_hash(values, offsets, width, i);
      result.repeats += i > from && hash == before;
      if (i == from || hash != before) {
        uint32_t times = sample_seen(slots, hash);
        result.distinct += times == 0;
        result.once += times == 0;
        result.once -= times == 1;
        result.twice += times == 1;
        result.twice -= times == 2;
      }
      before = hash;
    }
  }
  return result;
}

/* Chao's estimate, a lower bound: of those not met yet, from those met once and twice. */
double dict_unseen(double once, double twice) {
  return once * once / (2 * (twice < 1 ? 1 : twice));
}

double dict_expected(const parquet_dict *dict, const uint32_t *numbers, size_t n,
                     uint32_t *counts) {
  memset(counts, 0, dict->n * sizeof(*counts));
  for (size_t i = 0; i < n; i++) counts[numbers[i]]++;
  size_t once = 0, twice = 0;
  for (uint32_t k = 0; k < dict->n; k++) {
    once += counts[k] == 1;
    twice += counts[k] == 2;
  }
  return (double)dict->n + dict_unseen((double)once, (double)twice);
}
