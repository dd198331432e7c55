/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <zlib.h>

#include "parquet/format.h"

/* The compact protocol, encoded by hand from thrift-compact-protocol.md. */

static void encode(const thrift_type *type, const void *object, base_buf *out) {
  weir_error err = {0};
  assert_int_equal(thrift_encode(type, object, out, &err), WEIR_OK);
}

static void test_page_header(void **state) {
  (void)state;
  parquet_page_header header = {.has = 1u << 1 | 1u << 2 | 1u << 3 | 1u << 5,
                                .type = PARQUET_DATA_PAGE,
                                .uncompressed_page_size = 300,
                                .compressed_page_size = -1,
                                .data_page = {.has = 1u << 1 | 1u << 2,
                                              .num_values = 64,
                                              .encoding = PARQUET_RLE_DICTIONARY}};
  base_buf out = {0};
  encode(&parquet_page_header_type, &header, &out);
  const uint8_t want[] = {
      0x15, 0x00,             /* 1: i32 0 */
      0x15, 0xd8, 0x04,       /* 2: i32 300 */
      0x15, 0x01,             /* 3: i32 -1 */
      0x2c,                   /* 5: struct, two ids on */
      0x15, 0x80, 0x01,       /*   1: i32 64 */
      0x15, 0x10, 0x00, 0x00, /*   2: i32 8; end; end */
  };
  assert_int_equal(out.size, sizeof(want));
  assert_memory_equal(out.data, want, sizeof(want));
  base_buf_done(&out);
}

static void test_lists_binaries_and_booleans(void **state) {
  (void)state;
  const uint8_t null_pages[] = {0, 1};
  const thrift_binary values[] = {{(const uint8_t *)"ab", 2}, {NULL, 0}};
  const int64_t counts[] = {-1, 1};
  parquet_column_index index = {.has = 1u << 1 | 1u << 2 | 1u << 4 | 1u << 5,
                                .null_pages = {null_pages, 2},
                                .min_values = {values, 2},
                                .null_counts = {counts, 2},
                                .boundary_order = PARQUET_DESCENDING};
  base_buf out = {0};
  encode(&parquet_column_index_type, &index, &out);
  const uint8_t want[] = {
      0x19, 0x21, 0x02, 0x01,         /* 1: list of 2 booleans, false and true */
      0x19, 0x28, 0x02, 'a',  'b', 0, /* 2: list of 2 binaries */
      0x25, 0x04,                     /* 4: i32 2, two ids on */
      0x19, 0x26, 0x01, 0x02, 0x00    /* 5: list of 2 i64; end */
  };
  assert_int_equal(out.size, sizeof(want));
  assert_memory_equal(out.data, want, sizeof(want));
  base_buf_done(&out);
}

static void test_long_list(void **state) {
  (void)state;
  int64_t counts[20] = {0};
  parquet_column_index index = {.has = 1u << 5, .null_counts = {counts, 20}};
  base_buf out = {0};
  encode(&parquet_column_index_type, &index, &out);
  assert_int_equal(out.data[0], 0x59);
  assert_int_equal(out.data[1], 0xf6); /* 15 in the head: the length follows */
  assert_int_equal(out.data[2], 20);
  assert_int_equal(out.size, 3 + 20 + 1);
  base_buf_done(&out);
}

static void test_union_and_boolean_fields(void **state) {
  (void)state;
  parquet_schema_element element = {
      .has = 1u << 10,
      .logical = {.has = 1u << PARQUET_LOGICAL_TIMESTAMP,
                  .time = {.has = 1u << 1 | 1u << 2,
                           .is_adjusted_to_utc = 1,
                           .unit = {.has = 1u << PARQUET_UNIT_MICROS}}}};
  base_buf out = {0};
  encode(&parquet_schema_element_type, &element, &out);
  const uint8_t want[] = {0xac, 0x8c, 0x11, 0x1c, 0x2c, 0, 0, 0, 0, 0};
  assert_int_equal(out.size, sizeof(want));
  assert_memory_equal(out.data, want, sizeof(want));
  base_buf_done(&out);
}

static void test_crc32(void **state) {
  (void)state;
  uint8_t data[1000];
  for (size_t i = 0; i < sizeof(data); i++) data[i] = (uint8_t)(i * 131 + 7);
  for (size_t from = 0; from < 20; from++) {
    for (size_t size = 0; size + from <= sizeof(data); size += 13) {
      assert_int_equal(parquet_crc32(0, data + from, size),
                       crc32(0, data + from, (uInt)size));
    }
  }
  uint32_t parts = parquet_crc32(parquet_crc32(0, data, 333), data + 333, 667);
  assert_int_equal(parts, parquet_crc32(0, data, 1000));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_page_header),
      cmocka_unit_test(test_lists_binaries_and_booleans),
      cmocka_unit_test(test_long_list),
      cmocka_unit_test(test_union_and_boolean_fields),
      cmocka_unit_test(test_crc32),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
