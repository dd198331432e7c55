/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which encoding a column chunk gets. The costs are in bits per value before compression, with a chunk
 * of CHUNK_VALUES in mind; a dictionary's is that of its indices and its share of the entries. What a
 * dictionary costs in time when it does not pay (30 ns a value against 2) is the reason to sample first.
 */
#include "choose.h"

#include "dict.h"
#include "encode.h"

#define CHUNK_VALUES 1e6

static double bits_for(double distinct) {
  double n = 1;
  unsigned bits = 0;
  while (n < distinct && bits < 32) {
    n *= 2;
    bits++;
  }
  return bits;
}

/* What the values would cost as a dictionary, in bits each; huge if they do not come again. */
static double dictionary_cost(const dict_sample_result *sample, double value_bytes,
                              double floor) {
  double n = (double)sample->total;
  double runs = n - (double)sample->repeats; /* values that differ from the one before */
  if (sample->repeats * 2 > sample->total) {
    /* Long runs: each costs a run of the hybrid encoding, and at most one new entry. */
    double fresh = (double)sample->distinct / n;
    return fresh * value_bytes * 8 + runs / n * 32;
  }
  double again =
      (runs - (double)sample->distinct) / runs; /* seen before, but not next to itself */
  if (again <= floor) return 1e9;
  /* A sample of s from d equally frequent values meets about s^2 / 2d of them again. */
  double distinct = runs / (2 * again);
  if (distinct < (double)sample->distinct) distinct = (double)sample->distinct;
  if (distinct > DICT_MAX_ENTRIES) return 1e9;
  return bits_for(distinct) + distinct * value_bytes * 8 / CHUNK_VALUES;
}

static enum parquet_encoding choose_whole(const parquet_leaf *leaf,
                                          const parquet_values *values,
                                          const dict_sample_result *sample,
                                          bool dictionary) {
  double plain = leaf->width * 8.0;
  double delta = encode_delta_estimate(values->data, values->n, leaf->width);
  double dict = dictionary ? dictionary_cost(sample, leaf->width, 0.03) : 1e9;
  if (dict < delta && dict < plain) return PARQUET_RLE_DICTIONARY;
  return delta < plain * 0.97 ? PARQUET_DELTA_BINARY_PACKED : PARQUET_PLAIN;
}

static enum parquet_encoding choose_bytes(const parquet_values *values,
                                          const dict_sample_result *sample,
                                          bool dictionary) {
  double bytes =
      (double)(values->offsets[values->n] - values->offsets[0]) / (double)values->n;
  double dict = dictionary ? dictionary_cost(sample, bytes + 4, 0.015) : 1e9;
  return dict < bytes * 8 + 8 ? PARQUET_RLE_DICTIONARY : PARQUET_DELTA_LENGTH_BYTE_ARRAY;
}

enum parquet_encoding choose_encoding(const parquet_leaf *leaf,
                                      const parquet_values *values, bool dictionary,
                                      bool compressed) {
  if (leaf->type == PARQUET_BOOLEAN || values->n == 0) return PARQUET_PLAIN;
  dict_sample_result sample = {0};
  if (dictionary) {
    sample = dict_sample(values->data, values->offsets, leaf->width, values->n);
  }
  if (leaf->type == PARQUET_BYTE_ARRAY) return choose_bytes(values, &sample, dictionary);
  if (leaf->whole) return choose_whole(leaf, values, &sample, dictionary);
  double dict = dictionary ? dictionary_cost(&sample, leaf->width, 0.03) : 1e9;
  if (dict < leaf->width * 8.0 * 0.9) return PARQUET_RLE_DICTIONARY;
  /* Splitting floats into planes changes nothing but what a compressor finds. */
  bool floats = leaf->type == PARQUET_FLOAT || leaf->type == PARQUET_DOUBLE;
  return floats && compressed ? PARQUET_BYTE_STREAM_SPLIT : PARQUET_PLAIN;
}
