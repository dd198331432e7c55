/* SPDX-License-Identifier: Apache-2.0 */
/* The digest of one sink's part of an attempt. */
#include <string.h>

#include "coord/state.h"

static weir_status hash_u64(base_sha256_stream *hash, uint64_t value, weir_error *err) {
  uint8_t bytes[8];
  for (int i = 0; i < 8; i++) bytes[i] = (uint8_t)(value >> (56 - 8 * i));
  return base_sha256_update(hash, bytes, sizeof(bytes), err);
}

static weir_status hash_framed(base_sha256_stream *hash, const void *data, size_t size,
                               weir_error *err) {
  BASE_TRY(hash_u64(hash, size, err));
  return size ? base_sha256_update(hash, data, size, err) : WEIR_OK;
}

/* Every part is framed by its length and numbers are 8 bytes, big-endian, so that two different
 * lists of descriptors never spell the same text. The first part names this format. */
weir_status coord_digest(const char *sink_id, uint64_t attempt,
                         const weir_commit_entry *entries, size_t n,
                         uint8_t out[WEIR_DIGEST_SIZE], weir_error *err) {
  static const char format[] = "weir attempt 1";
  weir_status status = WEIR_OK;
  base_sha256_stream hash = {0};
  BASE_GOTO(status, base_sha256_init(&hash, err));
  BASE_GOTO(status, hash_framed(&hash, format, sizeof(format) - 1, err));
  BASE_GOTO(status, hash_framed(&hash, sink_id, strlen(sink_id), err));
  BASE_GOTO(status, hash_u64(&hash, attempt, err));
  BASE_GOTO(status, hash_u64(&hash, n, err));
  for (size_t i = 0; i < n; i++) {
    BASE_GOTO(status, hash_u64(&hash, entries[i].participant_id, err));
    BASE_GOTO(status, hash_u64(&hash, entries[i].present ? 1 : 0, err));
    if (entries[i].present) {
      BASE_GOTO(status, hash_framed(&hash, entries[i].descriptor, entries[i].size, err));
    }
  }
  BASE_GOTO(status, base_sha256_final(&hash, out, err));
out:
  base_sha256_done(&hash);
  return status;
}
