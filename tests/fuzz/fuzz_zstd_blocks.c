/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as one frame, and again with the code that the first left behind and a head made by libzstd. The
 * first byte chooses the head and how often the rest comes again, so that blocks and streams of all sizes are
 * met. libzstd must give the bytes back. */
#include <stdio.h>
#include <stdlib.h>
#include <zstd.h>

#include "parquet/zstd_blocks.h"

#define REQUIRE(condition)                                                      \
  do {                                                                          \
    if (!(condition)) {                                                         \
      fprintf(stderr, "fuzz_zstd_blocks: line %d: %s\n", __LINE__, #condition); \
      abort();                                                                  \
    }                                                                           \
  } while (0)

static void check(zstd_code *code, const uint8_t *data, size_t size, size_t head) {
  weir_error err = {0};
  base_buf frame = {0};
  if (head > 0) {
    REQUIRE(base_buf_reserve(&frame, ZSTD_compressBound(head), &err) == WEIR_OK);
    frame.size = ZSTD_compress(frame.data, frame.capacity, data, head, 1);
    REQUIRE(!ZSTD_isError(frame.size));
  }
  size_t n = 0, room = zstd_blocks_bound(size) + frame.size + PARQUET_SLACK;
  uint8_t *out = malloc(room), *back = malloc(size + 1);
  REQUIRE(out != NULL && back != NULL);
  REQUIRE(zstd_blocks_write(code, &frame, head, data + head, size - head, out, &n,
                            &err) == WEIR_OK);
  REQUIRE(n <= room);
  REQUIRE(ZSTD_decompress(back, size, out, n) == size);
  REQUIRE(size == 0 || memcmp(back, data, size) == 0);
  base_buf_done(&frame);
  free(out);
  free(back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 1) return 0;
  size_t part = size - 1, times = 1u << (data[0] & 7), head = (data[0] >> 3) * part / 32;
  uint8_t *whole = malloc(part * times + 1);
  REQUIRE(whole != NULL);
  for (size_t i = 0; i < times; i++) {
    if (part > 0) memcpy(whole + i * part, data + 1, part);
  }
  zstd_code code = {0};
  check(&code, whole, part * times, 0);
  check(&code, whole, part * times, head);
  zstd_code_done(&code);
  free(whole);
  return 0;
}
