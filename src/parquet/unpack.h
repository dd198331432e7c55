/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_PARQUET_UNPACK_H
#define WEIR_PARQUET_UNPACK_H

#include "format.h"

/* One decompressor, used again for every page. */
typedef struct parquet_unpacker {
  void *zstd, *gzip;
} parquet_unpacker;

void unpacker_done(parquet_unpacker *unpacker);
/* Whether pages of this codec can be read; refuses the others by name. */
weir_status unpacker_check(int32_t codec, weir_error *err);
/* Whether `packed` bytes of the codec may become `plain` ones at all. */
bool unpacker_plausible(int32_t codec, uint64_t packed, uint64_t plain);
/* Exactly `plain` bytes, or WEIR_E_CORRUPT. Not for UNCOMPRESSED. */
weir_status unpacker_run(parquet_unpacker *unpacker, int32_t codec, const uint8_t *data,
                         size_t size, uint8_t *out, size_t plain, weir_error *err);

#endif
