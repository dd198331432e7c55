/* SPDX-License-Identifier: Apache-2.0 */
/* Split-block Bloom filters (BloomFilter.md of parquet-format). */
#ifndef WEIR_PARQUET_BLOOM_H
#define WEIR_PARQUET_BLOOM_H

#include "take.h"

/* Filters are no larger; a chunk with more values than they hold at 1 % has none. */
#define BLOOM_MAX_BYTES (UINT32_C(2) << 20)
#define BLOOM_MAX_VALUES UINT32_C(1732000)

/* Bytes of a filter of n distinct values, which lets 1 % of other values pass. A power of two, which
 * Arrow C++ insists on. */
uint32_t bloom_size(size_t n);
/* Why the leaf can have no filter; NULL when it can. */
const char *bloom_refusal(const parquet_leaf *leaf);
/* Appends the hash of each value, of `width` bytes or with offsets. */
weir_status bloom_hash(const parquet_values *values, uint32_t width, base_buf *hashes,
                       weir_error *err);
/* Appends header and filter of n hashes. */
weir_status bloom_put(const uint64_t *hashes, size_t n, base_buf *out, weir_error *err);

#endif
