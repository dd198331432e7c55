/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <zstd.h>

#include "parquet/zstd_blocks.h"

enum { ROOM = 3 * ZSTD_BLOCK_MAX + 64, PAIRS_BYTES = 4 << 16 };

static uint64_t state = 1;

static uint32_t next_random(void) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(state >> 33);
}

/* In pieces of 1000 bytes, as a reader that streams does. */
static void check_stream(const uint8_t *frame, size_t n, const uint8_t *data,
                         size_t size) {
  ZSTD_DStream *stream = ZSTD_createDStream();
  uint8_t *back = malloc(size + 1);
  ZSTD_inBuffer in = {frame, 0, 0};
  ZSTD_outBuffer out = {back, size + 1, 0};
  size_t left = 1;
  while (left != 0 && in.pos < n) {
    in.size = n - in.pos < 1000 ? n : in.pos + 1000;
    left = ZSTD_decompressStream(stream, &out, &in);
    assert_false(ZSTD_isError(left));
  }
  assert_int_equal(left, 0);
  assert_int_equal(in.pos, n);
  assert_int_equal(out.pos, size);
  if (size > 0) assert_memory_equal(back, data, size);
  free(back);
  ZSTD_freeDStream(stream);
}

/* The same frame comes of a copy of the code that is written byte by byte. */
static void check_portable(const zstd_code *before, const base_buf *first, size_t head,
                           const uint8_t *data, size_t size, const uint8_t *frame,
                           size_t n) {
  weir_error err = {0};
  zstd_code twin = *before;
  if (before->pairs != NULL) {
    twin.pairs = malloc(PAIRS_BYTES);
    memcpy(twin.pairs, before->pairs, PAIRS_BYTES);
  }
  twin.portable = true;
  size_t twin_n = 0, bound = zstd_blocks_bound(head + size) + first->size;
  uint8_t *again = malloc(bound + PARQUET_SLACK);
  assert_int_equal(
      zstd_blocks_write(&twin, first, head, data, size, again, &twin_n, &err), WEIR_OK);
  assert_int_equal(twin_n, n);
  assert_memory_equal(again, frame, n);
  zstd_code_done(&twin);
  free(again);
}

/* Writes a frame into memory of just the bound and the slack, reads it back; returns its size. */
static size_t check_head(zstd_code *code, const uint8_t *data, size_t size, size_t head) {
  weir_error err = {0};
  base_buf first = {0};
  if (head > 0) {
    assert_int_equal(base_buf_reserve(&first, ZSTD_compressBound(head), &err), WEIR_OK);
    first.size = ZSTD_compress(first.data, first.capacity, data, head, 1);
    assert_false(ZSTD_isError(first.size));
  }
  size_t n = 0, bound = zstd_blocks_bound(size) + first.size;
  uint8_t *frame = malloc(bound + PARQUET_SLACK), *back = malloc(size + 1);
  zstd_code before = *code;
  if (code->pairs != NULL) {
    before.pairs = malloc(PAIRS_BYTES);
    memcpy(before.pairs, code->pairs, PAIRS_BYTES);
  }
  assert_int_equal(
      zstd_blocks_write(code, &first, head, data + head, size - head, frame, &n, &err),
      WEIR_OK);
  size_t blocks = size / ZSTD_BLOCK_MAX + 1;
  if (head > 0) blocks += head / ZSTD_BLOCK_MAX + 1;
  assert_true(n <= 9 + size + blocks * 3);
  assert_int_equal(ZSTD_getFrameContentSize(frame, n), size);
  assert_int_equal(ZSTD_findFrameCompressedSize(frame, n), n);
  assert_int_equal(ZSTD_decompress(back, size, frame, n), size);
  if (size > 0) assert_memory_equal(back, data, size);
  check_stream(frame, n, data, size);
  check_portable(&before, &first, head, data + head, size - head, frame, n);
  free(before.pairs);
  base_buf_done(&first);
  free(frame);
  free(back);
  return n;
}

static size_t check(zstd_code *code, const uint8_t *data, size_t size) {
  return check_head(code, data, size, 0);
}

static void fill(uint8_t *data, size_t size, unsigned symbols, unsigned skew) {
  for (size_t i = 0; i < size; i++) {
    uint32_t v = next_random() % symbols;
    for (unsigned k = 0; k < skew; k++) {
      uint32_t other = next_random() % symbols;
      v = other < v ? other : v;
    }
    data[i] = (uint8_t)v;
  }
}

static const size_t sizes[] = {
    0,    1,    2,     3,     4,     5,      31,     32,     63,     64,    65,
    253,  254,  255,   256,   257,   258,    259,    260,    1023,   1024,  4095,
    4096, 4097, 16383, 16384, 16385, 131071, 131072, 131073, 262144, 300001};

/* Each size with a new code and with the one of the sizes before. */
static void test_sizes(void **unused) {
  (void)unused;
  const unsigned symbols[] = {1, 2, 3, 27, 128, 129, 130, 256};
  uint8_t *data = malloc(ROOM);
  zstd_code kept = {0};
  for (size_t s = 0; s < sizeof(symbols) / sizeof(*symbols); s++) {
    for (unsigned skew = 0; skew < 6; skew += 2) {
      fill(data, ROOM, symbols[s], skew);
      for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        zstd_code fresh = {0};
        check(&fresh, data, sizes[i]);
        check(&kept, data, sizes[i]);
        zstd_code_done(&fresh);
      }
    }
  }
  zstd_code_done(&kept);
  free(data);
}

/* Counts as Fibonacci's numbers want codes far longer than 11 bits. */
static void test_long_codes(void **unused) {
  (void)unused;
  uint8_t *data = malloc(ZSTD_BLOCK_MAX);
  zstd_code code = {0};
  size_t at = 0, last = 1, count = 1;
  for (unsigned symbol = 0; at < ZSTD_BLOCK_MAX; symbol++) {
    size_t n = ZSTD_BLOCK_MAX - at < count ? ZSTD_BLOCK_MAX - at : count;
    memset(data + at, (int)(symbol * 5), n);
    at += n;
    size_t sum = last + count;
    last = count;
    count = sum;
  }
  assert_true(check(&code, data, ZSTD_BLOCK_MAX) < ZSTD_BLOCK_MAX / 2);
  zstd_code_done(&code);
  free(data);
}

/* One rare byte among many of another: bytes that a sample does not show. */
static void test_rare_bytes(void **unused) {
  (void)unused;
  uint8_t *data = malloc(ROOM);
  zstd_code code = {0};
  fill(data, ROOM, 20, 2);
  size_t plain = check(&code, data, ROOM);
  for (size_t i = 0; i < 3; i++) data[i * ZSTD_BLOCK_MAX + 5000] = (uint8_t)(100 + i);
  assert_true(check(&code, data, ROOM) < plain + 1024);
  data[5000] = 255; /* beyond what the tree's short form can tell: this block is raw */
  assert_true(check(&code, data, ROOM) > plain);
  zstd_code_done(&code);
  free(data);
}

/* Text shrinks to its entropy, equal bytes to nothing, noise costs 3 bytes a block. */
static void test_shrinks(void **unused) {
  (void)unused;
  uint8_t *data = malloc(ROOM);
  zstd_code code = {0};
  fill(data, 262144, 16, 0);
  assert_in_range(check(&code, data, 262144), 131072, 131072 + 200);
  memset(data, 'x', 262144);
  assert_in_range(check(&code, data, 262144), 17, 17);
  fill(data, 262144, 256, 0);
  assert_in_range(check(&code, data, 262144), 262144 + 15, 262144 + 15);
  zstd_code_done(&code);
  free(data);
}

/* Blocks of changing kinds in one frame: a code is told again only where it is another. */
static void test_changing_blocks(void **unused) {
  (void)unused;
  uint8_t *data = malloc(8 * ZSTD_BLOCK_MAX);
  zstd_code code = {0};
  for (unsigned round = 0; round < 8; round++) {
    for (size_t b = 0; b < 8; b++) {
      uint8_t *block = data + b * ZSTD_BLOCK_MAX;
      unsigned kind = next_random() % 4;
      if (kind == 0) fill(block, ZSTD_BLOCK_MAX, 256, 0);
      if (kind == 1) fill(block, ZSTD_BLOCK_MAX, 1, 0);
      if (kind == 2) fill(block, ZSTD_BLOCK_MAX, 27, 1);
      if (kind == 3) fill(block, ZSTD_BLOCK_MAX, 100, 3);
    }
    check(&code, data, 8 * ZSTD_BLOCK_MAX - next_random() % 1000);
  }
  zstd_code_done(&code);
  free(data);
}

/* The blocks of libzstd, with matches, repeated offsets and tables of their own, go in front. */
static void test_heads(void **unused) {
  (void)unused;
  uint8_t *data = malloc(ROOM);
  zstd_code code = {0};
  fill(data, ROOM, 20, 2);
  for (size_t i = 0; i + 24 < ROOM; i += 24 + next_random() % 8) {
    if (next_random() % 2) memcpy(data + i, data + i / 2, 12);
  }
  for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++) {
    size_t size = sizes[s];
    const size_t heads[] = {size, size / 2, size < 200 ? size : 200, size - size / 5};
    for (size_t k = 0; k < sizeof(heads) / sizeof(*heads); k++) {
      check_head(&code, data, size, heads[k]);
    }
  }
  memset(data, 7, ROOM / 2); /* the last block of the head is one byte repeated */
  check_head(&code, data, ROOM, ROOM / 2);
  zstd_code_done(&code);
  free(data);
}

/* A block whose sample is like the one before, and whose other bytes all have codes of 11 bits: the kept code
 * makes streams of 11/8 of the block before it is given up. */
static void test_sample_that_misleads(void **unused) {
  (void)unused;
  uint8_t *data = malloc(ROOM);
  zstd_code code = {0};
  for (size_t i = 0; i < ROOM; i++) {
    bool shown = i < ZSTD_BLOCK_MAX || i % 4096 < 64;
    data[i] = (uint8_t)(shown ? __builtin_ctz(next_random() | 128)
                              : 8 + (int)(next_random() % 20));
  }
  for (unsigned i = 0; i < 20; i++) data[1000 + i] = (uint8_t)(i + 8);
  check(&code, data, ZSTD_BLOCK_MAX);
  assert_int_equal(code.lengths[20], ZSTD_CODE_MAX);
  assert_true(check(&code, data, ROOM) < ROOM * 5 / 8);
  zstd_code_done(&code);
  free(data);
}

/* A table of bytes to draw from, in which their shares are equal, fall by a power, or grow as Fibonacci's
 * numbers do (codes far beyond 11 bits). The alphabets end around what a tree can tell. */
static void fill_adversely(uint8_t *data, size_t size) {
  static const unsigned alphabets[] = {1, 2, 3, 4, 16, 127, 128, 129, 130, 256};
  enum { TABLE = 8192 };
  uint8_t table[TABLE];
  unsigned symbols = alphabets[next_random() % 10], kind = next_random() % 4;
  unsigned base = next_random() % 2 ? 0 : next_random() % (257 - symbols);
  double share = 1, before = 1, ratio = 0.3 + next_random() % 70 / 100.0;
  size_t at = 0;
  for (unsigned i = 0; at < TABLE; i++) {
    double next = kind == 0 ? 1 : kind == 1 ? share / ratio : share + before;
    size_t n = (size_t)share < TABLE - at ? (size_t)share : TABLE - at;
    memset(table + at, (int)(base + i % symbols), n);
    at += n;
    before = share;
    share = next < TABLE ? next : 1;
  }
  for (size_t i = 0; i < size; i++) data[i] = table[next_random() % TABLE];
  /* Each byte of the alphabet once, wherever no sample may show it. */
  if (kind == 3 && size > 0) {
    for (unsigned i = 0; i < symbols; i++) {
      data[next_random() % size] = (uint8_t)(base + i);
    }
  }
}

/* One code for all, as a writer has; a frame's parts are of different kinds and meet at any byte. */
static void test_adverse(void **unused) {
  (void)unused;
  enum { ROUNDS = 600, LARGE = 40 };
  uint8_t *data = malloc(ROOM);
  zstd_code code = {0};
  for (unsigned round = 0; round < ROUNDS; round++) {
    size_t count = sizeof(sizes) / sizeof(*sizes);
    size_t size = sizes[next_random() % (round % (ROUNDS / LARGE) == 0 ? count : 25)];
    size += next_random() % 4;
    size_t cut = next_random() % 3 == 0 ? next_random() % (size + 1) : size;
    fill_adversely(data, cut);
    fill_adversely(data + cut, size - cut);
    check_head(&code, data, size,
               next_random() % 4 == 0 ? next_random() % (size + 1) : 0);
  }
  zstd_code_done(&code);
  free(data);
}

/* Codes of 1 to 8 bits, and of more, side by side in all places of 64 bytes. */
static void test_skewed_letters(void **unused) {
  (void)unused;
  enum { SIZE = 5000 };
  uint8_t data[SIZE];
  for (unsigned symbols = 2; symbols <= 128; symbols += symbols < 12 ? 1 : 29) {
    zstd_code code = {0};
    for (unsigned skew = 0; skew < 12; skew += 3) {
      fill(data, SIZE, symbols, skew);
      for (size_t size = SIZE - 70; size < SIZE; size += 23) check(&code, data, size);
    }
    zstd_code_done(&code);
  }
}

/* What libzstd made of a frame's end follows raw blocks. */
static void test_joins(void **unused) {
  (void)unused;
  weir_error err = {0};
  uint8_t *data = malloc(ROOM), *back = malloc(ROOM);
  uint8_t *out = malloc(2 * (size_t)ROOM + 64);
  base_buf frame = {0};
  assert_int_equal(base_buf_reserve(&frame, ZSTD_compressBound(ROOM), &err), WEIR_OK);
  fill(data, ROOM, 256, 0);
  fill(data + ROOM / 2, ROOM - ROOM / 2, 20, 3);
  memcpy(data + ROOM - 9000, data + ROOM - 70000, 9000);
  const size_t heads[] = {0, 1, 1000, ZSTD_BLOCK_MAX, ZSTD_BLOCK_MAX + 1, ROOM - 1};
  for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++) {
    size_t head = heads[i];
    frame.size = ZSTD_compress(frame.data, frame.capacity, data + head, ROOM - head, 1);
    assert_false(ZSTD_isError(frame.size));
    size_t n = zstd_blocks_join(data, head, &frame, ROOM - head, out);
    assert_int_equal(ZSTD_decompress(back, ROOM, out, n), ROOM);
    assert_memory_equal(back, data, ROOM);
    check_stream(out, n, data, ROOM);
  }
  base_buf_done(&frame);
  free(data);
  free(back);
  free(out);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_sizes),
      cmocka_unit_test(test_long_codes),
      cmocka_unit_test(test_rare_bytes),
      cmocka_unit_test(test_shrinks),
      cmocka_unit_test(test_changing_blocks),
      cmocka_unit_test(test_heads),
      cmocka_unit_test(test_sample_that_misleads),
      cmocka_unit_test(test_adverse),
      cmocka_unit_test(test_skewed_letters),
      cmocka_unit_test(test_joins),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
