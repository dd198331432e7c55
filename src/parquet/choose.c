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
  if (distinct > DICT_MAX_ENTRIES) return CHOOSE_NEVER;
  return bits_for(distinct) + distinct * value_bytes * 8 / chunk;
}

/* What the values would cost as a dictionary; CHOOSE_NEVER if no more than `floor` of them come again. */
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
  if ((runs - seen) / runs <= floor) return CHOOSE_NEVER;
  double distinct = seen;
  if (sample.total < values->n)
    distinct += dict_unseen((double)sample.once, (double)sample.twice);
  return choose_dictionary_bits(distinct, value_bytes, chunk);
}

/* What is best without a dictionary. */
static parquet_choice choose_other(const parquet_leaf *leaf, const parquet_values *values,
                                   const choose_rules *rules) {
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
    /* A plane costs a compressor some more than its bits. */
    if (rules->split_bits + 0.5 < (delta < plain ? delta : plain)) {
      return (parquet_choice){.other = PARQUET_BYTE_STREAM_SPLIT,
                              .other_bits = rules->split_bits};
    }
    if (delta < plain * 0.97) {
      return (parquet_choice){.other = PARQUET_DELTA_BINARY_PACKED, .other_bits = delta};
    }
  }
  /* Splitting floats into planes changes nothing but what a compressor finds. */
  bool floats = leaf->type == PARQUET_FLOAT || leaf->type == PARQUET_DOUBLE;
  bool split = floats && rules->compressed;
  return (parquet_choice){.other = split ? PARQUET_BYTE_STREAM_SPLIT : PARQUET_PLAIN,
                          .other_bits = plain * 0.9};
}

parquet_choice choose_encoding(const parquet_leaf *leaf, const parquet_values *values,
                               const choose_rules *rules) {
  if (leaf->type == PARQUET_BOOLEAN || values->n == 0) {
    return (parquet_choice){PARQUET_PLAIN, PARQUET_PLAIN, 1};
  }
  parquet_choice choice = choose_other(leaf, values, rules);
  choice.encoding = choice.other;
  if (!rules->dictionary) return choice;
  bool bytes = leaf->type == PARQUET_BYTE_ARRAY;
  double value_bytes = bytes ? choice.other_bits / 8 + 3 : leaf->width;
  double cost = dictionary_cost(leaf, values, value_bytes, bytes ? 0.015 : 0.03);
  if (cost < choice.other_bits) choice.encoding = PARQUET_RLE_DICTIONARY;
  return choice;
}

/* ---- wishes ----------------------------------------------------------------------------------- */

static const struct {
  const char *name;
  enum parquet_encoding encoding;
} names[] = {
    {"plain", PARQUET_PLAIN},
    {"dictionary", PARQUET_RLE_DICTIONARY},
    {"delta_binary_packed", PARQUET_DELTA_BINARY_PACKED},
    {"delta_length_byte_array", PARQUET_DELTA_LENGTH_BYTE_ARRAY},
    {"delta_byte_array", PARQUET_DELTA_BYTE_ARRAY},
    {"byte_stream_split", PARQUET_BYTE_STREAM_SPLIT},
};

/* Encodings.md says which types each encoding is for. */
static const char *refusal(const parquet_leaf *leaf, enum parquet_encoding encoding,
                           bool newest) {
  bool coded = leaf->node->dictionary != NULL;
  bool floats = leaf->type == PARQUET_FLOAT || leaf->type == PARQUET_DOUBLE;
  switch (encoding) {
    case PARQUET_PLAIN:
      return NULL;
    case PARQUET_RLE_DICTIONARY:
      return leaf->type == PARQUET_BOOLEAN ? "it has two values only" : NULL;
    case PARQUET_DELTA_BINARY_PACKED:
      if (!leaf->whole) return "it holds no integers";
      break;
    case PARQUET_DELTA_LENGTH_BYTE_ARRAY:
    case PARQUET_DELTA_BYTE_ARRAY:
      if (leaf->type != PARQUET_BYTE_ARRAY) return "it holds no text or bytes";
      break;
    default:
      /* Format 2.11 has it of values of a fixed size, too, which few readers know. */
      if (!floats && !leaf->whole) return "it holds no numbers";
      if (!floats && !newest) return "only encodings 'newest' split integers";
      break;
  }
  /* Arrow C++ reads a dictionary column from dictionary and plain pages only. */
  return coded ? "of a dictionary column it is dictionary or plain" : NULL;
}

weir_status choose_named(const parquet_leaf *leaf, const char *name, bool newest,
                         choose_wish *out, weir_error *err) {
  size_t i = 0, n = sizeof(names) / sizeof(*names);
  while (i < n && strcmp(names[i].name, name) != 0) i++;
  if (i == n) {
    return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                          "column '%s': there is no encoding '%s'; expected plain, "
                          "dictionary, delta_binary_packed, delta_length_byte_array, "
                          "delta_byte_array or byte_stream_split",
                          leaf->name, name);
  }
  const char *why = refusal(leaf, names[i].encoding, newest);
  if (why != NULL) {
    return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                          "column '%s' cannot have encoding %s: %s", leaf->name, name,
                          why);
  }
  *out = (choose_wish){.set = true, .encoding = names[i].encoding};
  return WEIR_OK;
}

parquet_choice choose_wished(const parquet_leaf *leaf, const parquet_values *values,
                             const choose_rules *rules, choose_wish wish) {
  if (!wish.set) return choose_encoding(leaf, values, rules);
  if (wish.encoding != PARQUET_RLE_DICTIONARY) {
    return (parquet_choice){.encoding = wish.encoding, .other = wish.encoding};
  }
  /* It ends only where the dictionary is full. */
  parquet_choice choice = choose_other(leaf, values, rules);
  choice.other_bits = CHOOSE_NEVER;
  choice.encoding = rules->dictionary ? PARQUET_RLE_DICTIONARY : choice.other;
  return choice;
}
