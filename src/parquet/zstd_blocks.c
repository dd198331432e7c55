/* SPDX-License-Identifier: Apache-2.0 */
/* Sections named here are those of RFC 8878. */
#include "zstd_blocks.h"

#include <stdlib.h>

#include "zstd_streams.h"

/* ---- the code --------------------------------------------------------------------------------- */

enum {
  PAIRS = 1 << 16,
  SYMBOL_MAX = 128 /* 4.2.1.1: at most 128 weights, and the last */
};

void zstd_code_done(zstd_code *code) {
  free(code->pairs);
  *code = (zstd_code){0};
}

static void sort(uint32_t *values, size_t n) {
  for (size_t i = 1; i < n; i++) {
    uint32_t v = values[i];
    size_t k = i;
    for (; k > 0 && values[k - 1] > v; k--) values[k] = values[k - 1];
    values[k] = v;
  }
}

/* Depths of the n leaves of a Huffman tree over ascending counts, in their place: Moffat and Katajainen,
 * "In-Place Calculation of Minimum-Redundancy Codes". */
static void find_depths(uint32_t *a, size_t n) {
  size_t root = 0, leaf = 2;
  a[0] += a[1];
  for (size_t next = 1; next < n - 1; next++) {
    for (int k = 0; k < 2; k++) {
      uint32_t weight = 0;
      if (leaf >= n || (root < next && a[root] < a[leaf])) {
        weight = a[root];
        a[root++] = (uint32_t)next;
      } else {
        weight = a[leaf++];
      }
      a[next] = k == 0 ? weight : a[next] + weight;
    }
  }
  a[n - 2] = 0;
  for (size_t i = n - 2; i-- > 0;) a[i] = a[a[i]] + 1;
  size_t open = 1, at = n,
         inner = n - 1; /* inner nodes lie in a[0, n - 1), the root last */
  for (uint32_t depth = 0; open > 0; depth++) {
    size_t used = 0;
    for (; inner > 0 && a[inner - 1] == depth; inner--) used++;
    for (; open > used; open--) a[--at] = depth;
    open = 2 * used;
  }
}

/* Code lengths of at most `limit` for the bytes that occur; false when fewer than two do. */
static bool find_lengths(const uint32_t counts[256], uint32_t limit,
                         uint8_t lengths[256]) {
  uint32_t order[256], depths[256];
  size_t n = 0;
  memset(lengths, 0, 256);
  for (uint32_t i = 0; i < 256; i++) {
    if (counts[i] != 0) order[n++] = counts[i] << 8 | i;
  }
  if (n < 2) return false;
  sort(order, n);
  for (size_t i = 0; i < n; i++) depths[i] = order[i] >> 8;
  find_depths(depths, n);
  uint32_t of_length[ZSTD_CODE_MAX + 1] = {0}, room = 0;
  for (size_t i = 0; i < n; i++) {
    uint32_t length = depths[i] < limit ? depths[i] : limit;
    of_length[length]++;
    room += 1u << (limit - length);
  }
  /* What was cut down takes more room than there is: a leaf of the last level goes beside a shorter one,
   * which moves down for it, until the tree is full and no more. */
  for (; room > 1u << limit; room--) {
    uint32_t length = limit - 1;
    while (of_length[length] == 0) length--;
    of_length[limit]--;
    of_length[length]--;
    of_length[length + 1] += 2;
  }
  size_t i = 0;
  for (uint32_t length = limit; length > 0; length--) {
    for (uint32_t k = 0; k < of_length[length]; k++) {
      lengths[order[i++] & 0xff] = (uint8_t)length;
    }
  }
  return true;
}

/* Bits that data with these counts takes; 0 if the code does not know one of its bytes. */
static uint64_t cost(const uint8_t lengths[256], const uint32_t counts[256]) {
  uint64_t bits = 0;
  for (size_t i = 0; i < 256; i++) {
    if (counts[i] != 0 && lengths[i] == 0) return 0;
    bits += (uint64_t)counts[i] * lengths[i];
  }
  return bits;
}

/* 4.2.1.3: longest codes first, within a length in the order of the bytes. */
static void assign_bits(zstd_code *code, unsigned longest) {
  uint32_t next = 0;
  for (unsigned i = 0; i < 256; i++) code->single[i] = UNKNOWN;
  for (unsigned length = longest; length > 0; length--, next >>= 1) {
    for (unsigned i = 0; i < 256; i++) {
      if (code->lengths[i] == length) code->single[i] = next++ << 8 | length;
    }
  }
  for (unsigned second = 0; second < 256; second++) {
    uint32_t *row = code->pairs + (size_t)second * 256, after = code->single[second];
    for (unsigned first = 0; first < 256; first++) {
      uint32_t before = code->single[first];
      uint32_t bits =
          (after >> 8) | (uint32_t)(ENTRY_BITS(before) << ENTRY_LENGTH(after));
      row[first] = bits << 8 | (ENTRY_LENGTH(before) + ENTRY_LENGTH(after)) |
                   ((before | after) & UNKNOWN);
    }
  }
}

/* Lengths up to ZSTD_CODE_NARROW where that costs next to nothing: those are written faster. */
static bool choose_lengths(const uint32_t counts[256], uint8_t lengths[256],
                           bool *narrow) {
  uint8_t shorter[256];
  if (!find_lengths(counts, ZSTD_CODE_MAX, lengths)) return false;
  find_lengths(counts, ZSTD_CODE_NARROW, shorter);
  *narrow = cost(shorter, counts) * 1000 <= cost(lengths, counts) * 1002;
  if (*narrow) memcpy(lengths, shorter, sizeof(shorter));
  return true;
}

/* Makes a code for `size` bytes with these counts; there is none afterwards if that would not shrink
 * them. */
static weir_status make_code(zstd_code *code, const uint32_t counts[256], size_t size,
                             weir_error *err) {
  code->tree_size = 0;
  if (code->pairs == NULL) {
    code->pairs = base_calloc(PAIRS, sizeof(*code->pairs), err);
    if (code->pairs == NULL) return WEIR_E_NOMEM;
  }
  unsigned last = 255, longest = 0;
  while (last > 0 && counts[last] == 0) last--;
  if (last > SYMBOL_MAX || !choose_lengths(counts, code->lengths, &code->narrow))
    return WEIR_OK;
  code->narrow &= last < 128;
  if (cost(code->lengths, counts) / 8 + last / 2 >= size) return WEIR_OK;
  for (unsigned i = 0; i <= last; i++) {
    if (code->lengths[i] > longest) longest = code->lengths[i];
  }
  /* 4.2.1.1: 127 + the number of weights, then two in a byte; that of the last byte follows from the
   * others. */
  memset(code->tree, 0, sizeof(code->tree));
  code->tree[0] = (uint8_t)(127 + last);
  for (unsigned i = 0; i < last; i++) {
    unsigned length = code->lengths[i], weight = length == 0 ? 0 : longest + 1 - length;
    code->tree[1 + i / 2] |= (uint8_t)(weight << (i % 2 == 0 ? 4 : 0));
  }
  code->tree_size = 1 + (last + 1) / 2;
  assign_bits(code, longest);
  return WEIR_OK;
}

/* ---- counts ----------------------------------------------------------------------------------- */

static void count_bytes(const uint8_t *data, size_t size, uint32_t counts[256]) {
  uint32_t lanes[4][256] = {{0}};
  size_t i = 0;
  for (; i + 4 <= size; i += 4) {
    for (size_t k = 0; k < 4; k++) lanes[k][data[i + k]]++;
  }
  for (; i < size; i++) lanes[0][data[i]]++;
  for (size_t b = 0; b < 256; b++) {
    counts[b] = lanes[0][b] + lanes[1][b] + lanes[2][b] + lanes[3][b];
  }
}

enum { SAMPLE_STEP = 4096, SAMPLE_RUN = 64 };

static void count_sample(const uint8_t *data, size_t size, uint32_t counts[256]) {
  memset(counts, 0, 256 * sizeof(*counts));
  for (size_t from = 0; from < size; from += SAMPLE_STEP) {
    size_t run = size - from < SAMPLE_RUN ? size - from : SAMPLE_RUN;
    for (size_t i = 0; i < run; i++) counts[data[from + i]]++;
  }
}

/* Whether the code that is there does for a block, as far as a sample of it tells. */
static bool still_serves(const zstd_code *code, const uint8_t *data, size_t size) {
  uint32_t counts[256];
  uint8_t lengths[256];
  if (code->tree_size == 0) return false;
  count_sample(data, size, counts);
  uint64_t now = cost(code->lengths, counts);
  if (now == 0 || !find_lengths(counts, ZSTD_CODE_MAX, lengths)) return false;
  return now * 50 <= cost(lengths, counts) * 51;
}

/* ---- streams ---------------------------------------------------------------------------------- */

/* 3.1.1.3.1.6: Jump_Table, then four streams, all but the last of a quarter's bytes rounded up. Returns
 * the end, or NULL if a byte has no code. */
static uint8_t *put_four_streams(const zstd_code *code, const uint8_t *data, size_t size,
                                 uint8_t *out) {
  size_t part = (size + 3) / 4, bound = zstd_stream_bound(part);
  uint8_t *jumps = out;
  out += 6;
  for (size_t k = 0; k < 4; k += 2) {
    const uint8_t *from[2] = {data + k * part, data + (k + 1) * part};
    size_t sizes[2] = {part, k == 0 ? part : size - 3 * part};
    uint8_t *to[2] = {out, out + bound}, *ends[2];
    if (!zstd_put_streams(code, from, sizes, to, ends)) return NULL;
    size_t first = (size_t)(ends[0] - to[0]), second = (size_t)(ends[1] - to[1]);
    memmove(ends[0], to[1], second);
    out = ends[0] + second;
    jumps[2 * k] = (uint8_t)first;
    jumps[2 * k + 1] = (uint8_t)(first >> 8);
    if (k > 0) break;
    jumps[2] = (uint8_t)second;
    jumps[3] = (uint8_t)(second >> 8);
  }
  return out;
}

/* ---- blocks ----------------------------------------------------------------------------------- */

enum block_type { BLOCK_RAW, BLOCK_RLE, BLOCK_COMPRESSED }; /* 3.1.1.2.2 */

enum {
  BLOCK_HEADER = 3,
  FRAME_HEADER = 9,
  LITERALS_HEADER_MAX = 5,
  ONE_STREAM_MAX = 255
};

static void put_little(uint8_t *out, uint64_t v, size_t size) {
  for (size_t i = 0; i < size; i++) out[i] = (uint8_t)(v >> (8 * i));
}

/* 3.1.1.2: Last_Block, Block_Type, Block_Size. */
static uint8_t *put_block_header(uint8_t *out, bool last, enum block_type type,
                                 size_t size) {
  put_little(out, (uint64_t)size << 3 | (uint64_t)type << 1 | last, BLOCK_HEADER);
  return out + BLOCK_HEADER;
}

/* 3.1.1.3.1.1: type (2: with a tree, 3: with the one before), form, both sizes. The forms with one
 * stream and 10 bits, and with four streams and 14 or 18. */
static size_t literals_header(size_t size) {
  return size <= ONE_STREAM_MAX ? 3 : size < 1 << 14 ? 4 : 5;
}

static void put_literals_header(uint8_t *out, bool tree, size_t size, size_t packed) {
  size_t header = literals_header(size);
  unsigned width = header == 3 ? 10 : header == 4 ? 14 : 18;
  uint64_t form = header == 3 ? 0 : header == 4 ? 2 : 3;
  put_little(
      out,
      (tree ? 2 : 3) | form << 2 | (uint64_t)size << 4 | (uint64_t)packed << (4 + width),
      header);
}

/* A block of literals only, without its header; NULL if a byte has no code or it is no shorter. */
static uint8_t *put_literals(const zstd_code *code, bool tree, const uint8_t *data,
                             size_t size, uint8_t *out) {
  uint8_t *start = out + literals_header(size), *end = start;
  if (tree) {
    memcpy(end, code->tree, code->tree_size);
    end += code->tree_size;
  }
  end = size <= ONE_STREAM_MAX ? zstd_put_stream(code, data, size, end)
                               : put_four_streams(code, data, size, end);
  if (end == NULL || (size_t)(end - out) + 1 >= size) return NULL;
  put_literals_header(out, tree, size, (size_t)(end - start));
  *end++ = 0; /* 3.1.1.3.2.1: Number_of_Sequences */
  return end;
}

static uint8_t *put_raw(const uint8_t *data, size_t size, bool last, uint8_t *out) {
  out = put_block_header(out, last, BLOCK_RAW, size);
  if (size > 0) memcpy(out, data, size);
  return out + size;
}

/* One block of `size` bytes; *tree: no block of the frame had the code yet. */
static weir_status put_block(zstd_code *code, const uint8_t *data, size_t size, bool last,
                             bool *tree, uint8_t **out, weir_error *err) {
  uint8_t *body = *out + BLOCK_HEADER, *end = NULL;
  if (size > 1 && memcmp(data, data + 1, size - 1) == 0) {
    *put_block_header(*out, last, BLOCK_RLE, size) = data[0];
    *out = body + 1;
    return WEIR_OK;
  }
  bool kept = still_serves(code, data, size);
  if (kept) end = put_literals(code, *tree, data, size, body);
  if (end == NULL && size > 1) {
    uint32_t counts[256];
    count_bytes(data, size, counts);
    BASE_TRY(make_code(code, counts, size, err));
    *tree = true;
    if (code->tree_size != 0) end = put_literals(code, true, data, size, body);
  }
  if (end == NULL) {
    *out = put_raw(data, size, last, *out);
    return WEIR_OK;
  }
  *tree = false;
  put_block_header(*out, last, BLOCK_COMPRESSED, (size_t)(end - body));
  *out = end;
  return WEIR_OK;
}

/* ---- frames ----------------------------------------------------------------------------------- */

size_t zstd_blocks_bound(size_t size) {
  size_t blocks = size / ZSTD_BLOCK_MAX + 1;
  size_t trial =
      size < ZSTD_BLOCK_MAX ? size : ZSTD_BLOCK_MAX; /* before it is given up */
  return FRAME_HEADER + size + blocks * BLOCK_HEADER + LITERALS_HEADER_MAX + 65 + 6 +
         4 * (zstd_stream_bound(trial / 4 + 1) + PARQUET_SLACK);
}

/* 3.1.1.1: magic number, descriptor of a single segment with a content size of 4 bytes, no checksum. */
static uint8_t *put_frame_header(size_t size, uint8_t *out) {
  parquet_store32(out, 0xfd2fb528u);
  out[4] = 0xa0;
  parquet_store32(out + 5, (uint32_t)size);
  return out + FRAME_HEADER;
}

static uint8_t *put_raw_blocks(const uint8_t *data, size_t size, bool last,
                               uint8_t *out) {
  do {
    size_t part = size < ZSTD_BLOCK_MAX ? size : ZSTD_BLOCK_MAX;
    out = put_raw(data, part, last && part == size, out);
    data += part;
    size -= part;
  } while (size > 0);
  return out;
}

size_t zstd_blocks_store(const uint8_t *data, size_t size, uint8_t *out) {
  return (size_t)(put_raw_blocks(data, size, true, put_frame_header(size, out)) - out);
}

/* 3.1.1.1.1: Frame_Header_Descriptor, Window_Descriptor unless there is a single segment, no
 * Dictionary_ID, Frame_Content_Size. */
static size_t frame_header_size(uint8_t descriptor) {
  static const uint8_t content_size[4] = {0, 2, 4, 8};
  bool single = (descriptor & 0x20) != 0;
  size_t size = content_size[descriptor >> 6];
  return 5 + (single ? (size > 0 ? size : 1) : 1 + size);
}

/* Copies the blocks of a frame. They refer to nothing before them if no block before them has sequences or
 * a code: what is repeated from block to block (3.1.1.5: offsets, 3.1.1.3: tables) begins anew with a frame. `last`: so is the last
 * of them in its new frame. */
static uint8_t *put_blocks(const base_buf *frame, bool last, uint8_t *out) {
  size_t at = frame_header_size(frame->data[4]), size = frame->size - at;
  memcpy(out, frame->data + at, size);
  uint8_t *block = out;
  while (!last && (block[0] & 1) == 0) {
    uint32_t header = block[0] | (uint32_t)block[1] << 8 | (uint32_t)block[2] << 16;
    bool repeated = (header >> 1 & 3) == BLOCK_RLE;
    block += BLOCK_HEADER + (repeated ? 1 : header >> 3);
  }
  if (!last) block[0] &= 0xfe;
  return out + size;
}

weir_status zstd_blocks_write(zstd_code *code, const base_buf *frame, size_t head,
                              const uint8_t *data, size_t size, uint8_t *out,
                              size_t *written, weir_error *err) {
  uint8_t *to = put_frame_header(head + size, out);
  bool tree = true, all = head > 0 && size == 0;
  if (head > 0) to = put_blocks(frame, all, to);
  while (!all) {
    size_t part = size < ZSTD_BLOCK_MAX ? size : ZSTD_BLOCK_MAX;
    all = part == size;
    BASE_TRY(put_block(code, data, part, all, &tree, &to, err));
    data += part;
    size -= part;
  }
  *written = (size_t)(to - out);
  return WEIR_OK;
}

size_t zstd_blocks_join(const uint8_t *data, size_t size, const base_buf *frame,
                        size_t rest, uint8_t *out) {
  uint8_t *to = put_frame_header(size + rest, out);
  if (size > 0) to = put_raw_blocks(data, size, false, to);
  return (size_t)(put_blocks(frame, true, to) - out);
}
