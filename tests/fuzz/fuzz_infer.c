/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a sample of CSV or NDJSON, which the first byte chooses. The schema must not depend on how the
 * bytes are cut into blocks, and must be one that a decoder takes. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/infer.h>

#define REQUIRE(condition)                                                \
  do {                                                                    \
    if (!(condition)) {                                                   \
      fprintf(stderr, "fuzz_infer: line %d: %s\n", __LINE__, #condition); \
      abort();                                                            \
    }                                                                     \
  } while (0)

static const weir_csv_options csv_options = {.struct_size = sizeof(csv_options),
                                             .max_line = 4096};
static const weir_ndjson_options ndjson_options = {.struct_size = sizeof(ndjson_options),
                                                   .max_line = 4096};

/* Offers `block` bytes more until all is taken. */
static weir_status infer(bool csv, const uint8_t *data, size_t size, size_t block,
                         weir_schema **schema, int64_t *rows) {
  weir_inference *inference = NULL;
  weir_error err = {0};
  size_t start = 0, end = 0;
  weir_status status = csv ? weir_inference_new_csv(&csv_options, &inference, &err)
                           : weir_inference_new_ndjson(&ndjson_options, &inference, &err);
  REQUIRE(status == WEIR_OK);
  while (status == WEIR_OK) {
    size_t used = 0, n = end - start;
    uint8_t *exact = malloc(n + 1); /* so that a read past the block is seen */
    REQUIRE(exact != NULL);
    if (n > 0) memcpy(exact, data + start, n);
    status =
        weir_inference_feed(inference, exact, n, end == size, INT64_MAX, &used, &err);
    free(exact);
    if (status != WEIR_OK) break;
    REQUIRE(used <= n);
    start += used;
    if (end == size) break;
    end = size - end < block ? size : end + block;
  }
  *rows = weir_inference_rows(inference);
  if (status == WEIR_OK) status = weir_inference_schema(inference, schema, &err);
  REQUIRE(status == WEIR_OK || err.message[0] != 0);
  weir_inference_free(inference);
  return status;
}

static void check_schema(bool csv, weir_schema *schema) {
  weir_csv_decoder *records = NULL;
  weir_ndjson_decoder *lines = NULL;
  weir_error err = {0};
  weir_status status = csv ? weir_csv_decoder_new(schema, &csv_options, &records, &err)
                           : weir_ndjson_decoder_new(schema, NULL, &lines, &err);
  if (status != WEIR_OK) fprintf(stderr, "%s\n", err.message);
  REQUIRE(status == WEIR_OK);
  weir_csv_decoder_free(records);
  weir_ndjson_decoder_free(lines);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  weir_schema *whole = NULL, *cut = NULL;
  weir_bytes a = {0}, b = {0};
  int64_t rows = 0, again = 0;
  if (size < 1) return 0;
  bool csv = data[0] & 1;
  size_t block = 1 + (data[0] >> 1) % 40;
  weir_status status = infer(csv, data + 1, size - 1, size, &whole, &rows),
              other = infer(csv, data + 1, size - 1, block, &cut, &again);
  REQUIRE(status == other);
  if (status != WEIR_OK) return 0;
  REQUIRE(rows == again);
  check_schema(csv, whole);
  REQUIRE(weir_schema_yaml(whole, &a, NULL) == WEIR_OK);
  REQUIRE(weir_schema_yaml(cut, &b, NULL) == WEIR_OK);
  REQUIRE(a.size == b.size && memcmp(a.data, b.data, a.size) == 0);
  a.release(&a);
  b.release(&b);
  weir_schema_unref(whole);
  weir_schema_unref(cut);
  return 0;
}
