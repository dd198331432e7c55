/* SPDX-License-Identifier: Apache-2.0 */
#include "bloom.h"

#include "format.h"

enum { BLOCK_BYTES = 32, BLOCK_WORDS = 8 };

/* BloomFilter.md, "Technical Approach". */
static const uint32_t salts[BLOCK_WORDS] = {0x47b6137bu, 0x44974d91u, 0x8824ad5bu,
                                            0xa2b7289du, 0x705495c7u, 0x2df1424bu,
                                            0x9efc4947u, 0x5c6bfb31u};

/* "Sizing an SBBF": about -8 / ln(1 - p^(1/8)) bits a value for a false positive rate p; 9.681 for 1 %. */
uint32_t bloom_size(size_t n) {
  uint64_t wanted = ((uint64_t)n * 9681 / 1000 + 7) / 8;
  uint32_t size = BLOCK_BYTES;
  while (size < wanted && size < BLOOM_MAX_BYTES) size *= 2;
  return size;
}

const char *bloom_refusal(const parquet_leaf *leaf) {
  if (leaf->nested) return "it is nested";
  switch (leaf->order) {
    case ORDER_NONE:
      return "equality of its values is not that of their bytes";
    case ORDER_BOOL:
      return "it has two values only";
    case ORDER_HALF:
    case ORDER_FLOAT:
    case ORDER_DOUBLE:
      return "0.0 equals -0.0, but their bytes differ";
    default:
      return NULL;
  }
}

/* BloomFilter.md, "Technical Approach": XXH64 with seed 0 of the PLAIN value; of a BYTE_ARRAY without
 * its length. */
weir_status bloom_hash(const parquet_values *values, uint32_t width, base_buf *hashes,
                       weir_error *err) {
  size_t n = values->n, at = hashes->size / sizeof(uint64_t);
  if (n == 0) return WEIR_OK;
  BASE_TRY(parquet_reserve(hashes, (at + n) * sizeof(uint64_t), err));
  uint64_t *out = (uint64_t *)(void *)hashes->data + at;
  const uint32_t *offsets = values->offsets;
  for (size_t i = 0; i < n; i++) {
    size_t from = offsets != NULL ? offsets[i] : i * width;
    size_t size = offsets != NULL ? offsets[i + 1] - offsets[i] : width;
    out[i] = base_xxh64(size > 0 ? values->data + from : (const void *)"", size, 0);
  }
  hashes->size = (at + n) * sizeof(uint64_t);
  return WEIR_OK;
}

/* "filter_insert": the upper half of the hash names the block, the lower one a bit of each word. */
static void insert(uint8_t *filter, uint32_t blocks, uint64_t hash) {
  uint8_t *block = filter + (((hash >> 32) * blocks) >> 32) * BLOCK_BYTES;
  for (size_t i = 0; i < BLOCK_WORDS; i++) {
    uint32_t bit = ((uint32_t)hash * salts[i]) >> 27;
    block[4 * i + bit / 8] |= (uint8_t)(1u << bit % 8);
  }
}

weir_status bloom_put(const uint64_t *hashes, size_t n, base_buf *out, weir_error *err) {
  uint32_t size = bloom_size(n);
  const parquet_only only = {.has = 1u << 1};
  parquet_bloom_header header = {.has = 1u << 1 | 1u << 2 | 1u << 3 | 1u << 4,
                                 .num_bytes = (int32_t)size,
                                 .algorithm = only,
                                 .hash = only,
                                 .compression = only};
  BASE_TRY(thrift_encode(&parquet_bloom_header_type, &header, out, err));
  BASE_TRY(parquet_reserve(out, out->size + size, err));
  uint8_t *filter = out->data + out->size;
  memset(filter, 0, size);
  for (size_t i = 0; i < n; i++) insert(filter, size / BLOCK_BYTES, hashes[i]);
  out->size += size;
  return WEIR_OK;
}
