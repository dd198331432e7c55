/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which encoding a column chunk gets. Costs are in bits per value before compression; a dictionary's is
 * that of its indices and of its entries' share. A dictionary that does not pay costs 30 ns a value
 * against 2, which is the reason to look at a sample first.
 */
#include "choose.h"

#include "dict.h"
#include "encode.h"

#define SMALL_CHUNK 4096 /* a page of fewer values is taken for the whole chunk */
#define NEVER 1e9

static double bits_for(double distinct) {
  double n = 1;
  unsigned bits = 0;
  while (n < distinct && bits < 32) {
    n *= 2;
    bits++;
  }
  return bits;
}

double choose_dictionary_bits(double distinct, double value_bytes, double chunk) {
  if (distinct > DICT_MAX_ENTRIES) return NEVER;
  return bits_for(distinct) + distinct * value_bytes * 8 / chunk;
}

/* What the values would cost as a dictionary; NEVER if no more than `floor` of them come again. */
static double dictionary_cost(const parquet_leaf *leaf, const parquet_values *values,
                              double value_bytes, double floor) {
  dict_sample_result sample =
      dict_sample(values->data, values->offsets, leaf->width, values->n);
  double n = (double)sample.total, seen = (double)sample.distinct;
  double runs = n - (double)sample.repeats; /* values that differ from the one before */
  double chunk = values->n < SMALL_CHUNK ? (double)values->n : CHOOSE_CHUNK_VALUES;
  if (sample.repeats * 2 > sample.total) {
    /* Each run costs one of the hybrid encoding's, and at most one new entry. */
    return seen / n * value_bytes * 8 + runs / n * 32;
  }
  if ((runs - seen) / runs <= floor) return NEVER;
  double distinct = seen;
  if (sample.total < values->n)
    distinct += dict_unseen((double)sample.once, (double)sample.twice);
  return choose_dictionary_bits(distinct, value_bytes, chunk);
}

/* What is best without a dictionary. */
static parquet_choice choose_other(const parquet_leaf *leaf, const parquet_values *values,
                                   bool compressed) {
  double plain = leaf->width * 8.0;
  if (leaf->type == PARQUET_BYTE_ARRAY) {
    double bytes = (double)(values->offsets[values->n] - values->offsets[0]);
    /* Arrow C++ reads a dictionary column from dictionary and plain pages only. */
    bool dictionary = leaf->node->dictionary != NULL;
    return (parquet_choice){
        .other = dictionary ? PARQUET_PLAIN : PARQUET_DELTA_LENGTH_BYTE_ARRAY,
        .other_bits = bytes * 8 / (double)values->n + 8};
  }
  if (leaf->whole) {
    double delta = encode_delta_estimate(values->data, values->n, leaf->width);
    if (delta < plain * 0.97) {
      return (parquet_choice){.other = PARQUET_DELTA_BINARY_PACKED, .other_bits = delta};
    }
  }
  /* Splitting floats into planes changes nothing but what a compressor finds. */
  bool floats = leaf->type == PARQUET_FLOAT || leaf->type == PARQUET_DOUBLE;
  bool split = floats && compressed;
  return (parquet_choice){.other = split ? PARQUET_BYTE_STREAM_SPLIT : PARQUET_PLAIN,
                          .other_bits = plain * 0.9};
}

parquet_choice choose_encoding(const parquet_leaf *leaf, const parquet_values *values,
                               bool dictionary, bool compressed) {
  if (leaf->type == PARQUET_BOOLEAN || values->n == 0) {
    return (parquet_choice){PARQUET_PLAIN, PARQUET_PLAIN, 1};
  }
  parquet_choice choice = choose_other(leaf, values, compressed);
  choice.encoding = choice.other;
  if (!dictionary) return choice;
  bool bytes = leaf->type == PARQUET_BYTE_ARRAY;
  double value_bytes = bytes ? choice.other_bits / 8 + 3 : leaf->width;
  double cost = dictionary_cost(leaf, values, value_bytes, bytes ? 0.015 : 0.03);
  if (cost < choice.other_bits) choice.encoding = PARQUET_RLE_DICTIONARY;
  return choice;
}
