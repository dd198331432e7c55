/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as CSV. The fast way and the slow one must give the same rows and the same errors, however the
 * bytes are cut into blocks; and what is written of the rows must be read back to the same text. The first
 * two bytes choose the sizes of blocks and batches, and the options. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/csv.h>

#include "base/base.h"
#include "format/csv.h"

static const char *const names[] = {"s", "i", "f", "d", "b", "x", "t"};
static const char *const types[] = {"utf8", "int32",  "float64",      "decimal128(20, 4)",
                                    "bool", "binary", "timestamp[ms]"};

#define REQUIRE(condition)                                              \
  do {                                                                  \
    if (!(condition)) {                                                 \
      fprintf(stderr, "fuzz_csv: line %d: %s\n", __LINE__, #condition); \
      abort();                                                          \
    }                                                                   \
  } while (0)

static void put_batch(base_buf *out, weir_csv_encoder *encoder, weir_batch *batch) {
  const uint8_t *text = NULL;
  size_t size = 0;
  weir_error err = {0};
  REQUIRE(weir_csv_encoder_write(encoder, batch, &text, &size, &err) == WEIR_OK);
  REQUIRE(base_buf_append(out, text, size, NULL) == WEIR_OK);
  weir_batch_unref(batch);
}

/* All rows as text; records that fail are skipped, with their message in their place. False when
 * there was one, or a header that ends it all. */
static bool decode(weir_schema *schema, weir_csv_options options, const uint8_t *data,
                   size_t size, size_t block, int64_t batch_rows, int way,
                   base_buf *out) {
  weir_csv_decoder *decoder = NULL;
  weir_csv_encoder *encoder = NULL;
  weir_batch *batch = NULL;
  weir_error err = {0};
  size_t start = 0, end = 0;
  bool good = true;
  options.batch_rows = batch_rows;
  options.max_line = 4096;
  REQUIRE(weir_csv_decoder_new(schema, &options, &decoder, &err) == WEIR_OK);
  options.no_header = 1; /* written below, if at all */
  REQUIRE(weir_csv_encoder_new(schema, &options, &encoder, &err) == WEIR_OK);
  csv_decoder_force_slow(decoder, way == 1);
  if (way == 2) csv_decoder_force_chunks(decoder);
  for (;;) {
    size_t used = 0, n = end - start;
    uint8_t *exact = malloc(n + 1); /* so that a read past the block is seen */
    REQUIRE(exact != NULL);
    if (n > 0) memcpy(exact, data + start, n);
    batch = NULL;
    weir_status status =
        weir_csv_decoder_feed(decoder, exact, n, end == size, &used, &batch, &err);
    if (status != WEIR_OK) {
      REQUIRE(base_utf8_valid(err.message, strlen(err.message)));
      good = false;
      if (status == WEIR_E_SCHEMA) {
        free(exact);
        REQUIRE(base_buf_append_str(out, err.message, NULL) == WEIR_OK);
        goto out;
      }
      REQUIRE(status == WEIR_E_BAD_DATA && err.flags == WEIR_ERR_BAD_DATA);
      weir_csv_decoder_skip(decoder, exact, n, end == size, &used);
      if (used > 0 && strstr(err.message, "longer than") == NULL) {
        REQUIRE(base_buf_append_str(out, err.message, NULL) == WEIR_OK);
      }
    }
    free(exact);
    start += used;
    if (batch != NULL) put_batch(out, encoder, batch);
    if (batch == NULL && status == WEIR_OK && end == size) break;
    if (batch == NULL && used == 0) end = size - end < block ? size : end + block;
  }
  REQUIRE(start == size && weir_csv_decoder_offset(decoder) == size);
  REQUIRE(weir_csv_decoder_flush(decoder, &batch, &err) == WEIR_OK);
  if (batch != NULL) put_batch(out, encoder, batch);
out:
  weir_csv_decoder_free(decoder);
  weir_csv_encoder_free(encoder);
  return good;
}

static void same(const base_buf *a, const base_buf *b) {
  REQUIRE(a->size == b->size && (a->size == 0 || memcmp(a->data, b->data, a->size) == 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char *const delimiters[] = {",", "\t", ";", ":"};
  static const char *const nulls[] = {"", "NA", "\\N", "0"};
  weir_schema *schema = NULL;
  base_buf fast = {0}, slow = {0}, chunks = {0}, blocks = {0}, again = {0};
  if (size < 2 || size > 4096) return 0;
  size_t block = (data[0] & 15) * 7 + 1;
  int64_t batch_rows = (data[0] >> 4) + 1;
  int in_blocks = data[1] & 64 ? 2 : 0;
  weir_csv_options options = {.struct_size = sizeof(options),
                              .no_header = data[1] & 1,
                              .refuse_unknown = data[1] >> 7 & 1,
                              .delimiter = delimiters[data[1] >> 1 & 3],
                              .null_text = nulls[data[1] >> 3 & 3]};
  size_t columns = data[1] & 32 ? 1 : BASE_COUNT(names);
  data += 2;
  size -= 2;
  REQUIRE(weir_schema_from_types(names, types, columns, &schema, NULL) == WEIR_OK);
  bool good = decode(schema, options, data, size, size, 1000, 0, &fast);
  decode(schema, options, data, size, size, 1000, 1, &slow);
  same(&fast, &slow);
  decode(schema, options, data, size, size, 1000, 2, &chunks);
  same(&fast, &chunks);
  decode(schema, options, data, size, block, batch_rows, in_blocks, &blocks);
  same(&fast, &blocks);
  if (good) {
    options.no_header = 1;
    REQUIRE(decode(schema, options, fast.data, fast.size, fast.size, 1000, 2, &again));
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
