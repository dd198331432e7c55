/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as NDJSON. The fast way and yyjson's must give the same rows and the same errors, however the
 * bytes are cut into blocks; and what is written of the rows must be read back to the same text. The first
 * byte chooses the sizes of blocks and batches. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/ndjson.h>

#include "base/base.h"
#include "format/ndjson.h"

static const char *const names[] = {"i", "u", "b", "d", "f", "s", "L", "x", "n", "D",
                                    "t", "T", "z", "F", "l", "m", "o", "k", "w"};
static const char *const types[] = {
    "int64",
    "uint8",
    "bool",
    "float64",
    "float32",
    "utf8",
    "large_utf8",
    "binary",
    "decimal128(20, 4)",
    "date32",
    "time64[us]",
    "timestamp[ms]",
    "timestamp[ns, UTC]",
    "fixed_size_binary[3]",
    "list<utf8>",
    "map<utf8, int8>",
    "struct<i: int64 not null, s: struct<l: list_view<bool>>>",
    "list<map<int16, struct<u: utf8 not null, b: bool>>>",
    "fixed_size_list<struct<f: float64, l: large_list<int8 not null>>, 2>"};

#define REQUIRE(condition)                                                 \
  do {                                                                     \
    if (!(condition)) {                                                    \
      fprintf(stderr, "fuzz_ndjson: line %d: %s\n", __LINE__, #condition); \
      abort();                                                             \
    }                                                                      \
  } while (0)

static void put_batch(base_buf *out, weir_ndjson_encoder *encoder, weir_batch *batch) {
  const uint8_t *text = NULL;
  size_t size = 0;
  weir_error err = {0};
  REQUIRE(weir_ndjson_encoder_write(encoder, batch, &text, &size, &err) == WEIR_OK);
  REQUIRE(base_buf_append(out, text, size, NULL) == WEIR_OK);
  weir_batch_unref(batch);
}

/* All rows as text; lines that fail are skipped, with their message in their place. */
static void decode(weir_schema *schema, const uint8_t *data, size_t size, size_t block,
                   int64_t batch_rows, int way, base_buf *out) {
  weir_ndjson_options options = {.struct_size = sizeof(options),
                                 .batch_rows = batch_rows,
                                 .max_line = 4096,
                                 .refuse_unknown = size & 2};
  weir_ndjson_decoder *decoder = NULL;
  weir_ndjson_encoder *encoder = NULL;
  weir_batch *batch = NULL;
  weir_error err = {0};
  size_t start = 0, end = 0;
  REQUIRE(weir_ndjson_decoder_new(schema, &options, &decoder, &err) == WEIR_OK);
  REQUIRE(weir_ndjson_encoder_new(schema, &encoder, &err) == WEIR_OK);
  ndjson_decoder_force_slow(decoder, way == 1);
  if (way == 2) ndjson_decoder_force_chunks(decoder);
  for (;;) {
    size_t used = 0, n = end - start;
    uint8_t *exact = malloc(n + 1); /* so that a read past the block is seen */
    REQUIRE(exact != NULL);
    if (n > 0) memcpy(exact, data + start, n);
    batch = NULL;
    weir_status status =
        weir_ndjson_decoder_feed(decoder, exact, n, end == size, &used, &batch, &err);
    if (status != WEIR_OK) {
      REQUIRE(status == WEIR_E_BAD_DATA && err.flags == WEIR_ERR_BAD_DATA);
      REQUIRE(base_utf8_valid(err.message, strlen(err.message)));
      weir_ndjson_decoder_skip(decoder, exact, n, end == size, &used);
      if (used > 0) REQUIRE(base_buf_append_str(out, err.message, NULL) == WEIR_OK);
    }
    free(exact);
    start += used;
    if (batch != NULL) put_batch(out, encoder, batch);
    if (batch == NULL && status == WEIR_OK && end == size) break;
    if (batch == NULL && used == 0) end = size - end < block ? size : end + block;
  }
  REQUIRE(start == size && weir_ndjson_decoder_offset(decoder) == size);
  REQUIRE(weir_ndjson_decoder_flush(decoder, &batch, &err) == WEIR_OK);
  if (batch != NULL) put_batch(out, encoder, batch);
  weir_ndjson_decoder_free(decoder);
  weir_ndjson_encoder_free(encoder);
}

static void same(const base_buf *a, const base_buf *b) {
  REQUIRE(a->size == b->size && (a->size == 0 || memcmp(a->data, b->data, a->size) == 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  weir_schema *schema = NULL;
  base_buf fast = {0}, slow = {0}, chunks = {0}, blocks = {0}, again = {0};
  if (size == 0 || size > 65536) return 0;
  size_t block = (data[0] & 15) * 7 + 1;
  int64_t batch_rows = (data[0] >> 4) + 1;
  /* the last five are nested: with them there are no chunks */
  size_t columns = BASE_COUNT(names) - (data[0] & 16 ? 5 : 0);
  REQUIRE(weir_schema_from_types(names, types, columns, &schema, NULL) == WEIR_OK);
  decode(schema, data + 1, size - 1, size, 1000, 0, &fast);
  decode(schema, data + 1, size - 1, size, 1000, 1, &slow);
  same(&fast, &slow);
  decode(schema, data + 1, size - 1, size, 1000, 2, &chunks);
  same(&fast, &chunks);
  decode(schema, data + 1, size - 1, block, batch_rows, size & 1 ? 2 : 0, &blocks);
  same(&fast, &blocks);
  if (fast.size > 0 && memmem(fast.data, fast.size, "line ", 5) == NULL) {
    decode(schema, fast.data, fast.size, fast.size, 1000, 2, &again);
    same(&fast, &again);
  }
  base_buf_done(&fast);
  base_buf_done(&slow);
  base_buf_done(&chunks);
  base_buf_done(&blocks);
  base_buf_done(&again);
  weir_schema_unref(schema);
  return 0;
}
