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

/* ---- the other way ---- */

static weir_status decode(const thrift_type *type, const void *data, size_t size,
                          thrift_arena *arena, void *object, weir_error *err) {
  /* a block of its own, so that the sanitizer sees a read behind it */
  uint8_t *copy = malloc(size + 1);
  assert_non_null(copy);
  memcpy(copy + 1, data, size);
  thrift_input in = {copy + 1, copy + 1 + size, arena};
  weir_status status = thrift_decode(type, &in, object, err);
  if (status == WEIR_OK) assert_ptr_equal(in.at, in.end);
  free(copy);
  return status;
}

static parquet_file_meta sample(void) {
  static const parquet_schema_element elements[] = {
      {.has = 1u << 4 | 1u << 5, .num_children = 1, .name = {(const uint8_t *)"root", 4}},
      {.has = 1u << 1 | 1u << 3 | 1u << 4 | 1u << 9 | 1u << 10,
       .type = PARQUET_INT64,
       .repetition = PARQUET_OPTIONAL,
       .field_id = -70000,
       .name = {(const uint8_t *)"at", 2},
       .logical = {.has = 1u << PARQUET_LOGICAL_TIMESTAMP,
                   .time = {.has = 1u << 1 | 1u << 2,
                            .is_adjusted_to_utc = 1,
                            .unit = {.has = 1u << PARQUET_UNIT_NANOS}}}}};
  static const thrift_binary groups = {(const uint8_t *)"\0\x15\2\0", 4};
  return (parquet_file_meta){.has = 1u << 1 | 1u << 2 | 1u << 3 | 1u << 4 | 1u << 6,
                             .version = 2,
                             .schema = {elements, 2},
                             .num_rows = INT64_MIN,
                             .row_groups = {&groups, 2},
                             .created_by = {(const uint8_t *)"me", 2}};
}

static void test_decoding_undoes_encoding(void **state) {
  (void)state;
  parquet_file_meta meta = sample(), got;
  thrift_arena arena = {0};
  weir_error err = {0};
  base_buf first = {0}, second = {0};
  encode(&parquet_file_meta_type, &meta, &first);
  thrift_input in = {first.data, first.data + first.size, &arena};
  assert_int_equal(thrift_decode(&parquet_file_meta_type, &in, &got, &err), WEIR_OK);
  assert_ptr_equal(in.at, in.end);
  assert_int_equal(got.has, meta.has);
  assert_true(got.num_rows == INT64_MIN);
  const parquet_schema_element *at = (const parquet_schema_element *)got.schema.items + 1;
  assert_int_equal(at->field_id, -70000);
  assert_int_equal(at->logical.time.unit.has, 1u << PARQUET_UNIT_NANOS);
  encode(&parquet_file_meta_type, &got, &second);
  assert_int_equal(second.size, first.size);
  assert_memory_equal(second.data, first.data, first.size);
  base_buf_done(&first);
  base_buf_done(&second);
  thrift_arena_done(&arena);
}

static void test_every_cut_and_every_flipped_bit(void **state) {
  (void)state;
  parquet_file_meta meta = sample(), got;
  thrift_arena arena = {0};
  base_buf whole = {0};
  encode(&parquet_file_meta_type, &meta, &whole);
  for (size_t size = 0; size < whole.size; size++) {
    weir_error err = {0};
    assert_int_equal(
        decode(&parquet_file_meta_type, whole.data, size, &arena, &got, &err),
        WEIR_E_CORRUPT);
    assert_int_equal(err.code, WEIR_E_CORRUPT);
    thrift_arena_clear(&arena);
  }
  for (size_t bit = 0; bit < 8 * whole.size; bit++) {
    weir_error err = {0};
    uint8_t *data = whole.data;
    data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    thrift_input in = {data, data + whole.size, &arena};
    weir_status status = thrift_decode(&parquet_file_meta_type, &in, &got, &err);
    assert_true(status == WEIR_OK || status == WEIR_E_CORRUPT);
    data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    thrift_arena_clear(&arena);
  }
  base_buf_done(&whole);
  thrift_arena_done(&arena);
}

static void test_unknown_fields_are_passed_over(void **state) {
  (void)state;
  const uint8_t bytes[] = {
      0x15, 0x00, 0x15, 0x02, 0x15, 0x04,          /* what a page header needs */
      0x98, 0x01, 'x',                             /* 12: binary */
      0x1b, 0x01, 0x85, 0x01, 'k',  0x02,          /* map of a binary to an i32 */
      0x19, 0x21, 0x01, 0x02,                      /* list of booleans */
      0x17, 1,    2,    3,    4,    5,    6, 7, 8, /* double */
      0x1c, 0x1c, 0x11, 0,    0, /* struct with a struct with a boolean */
      0x13, 0x7f, 0,             /* i8; end */
  };
  parquet_page_header header;
  thrift_arena arena = {0};
  weir_error err = {0};
  weir_status status =
      decode(&parquet_page_header_type, bytes, sizeof(bytes), &arena, &header, &err);
  assert_string_equal(err.message, "");
  assert_int_equal(status, WEIR_OK);
  assert_int_equal(header.compressed_page_size, 2);
  thrift_arena_done(&arena);
}

/* Old writers of Rust had other types for late fields of ColumnMetaData. */
static void test_optional_fields_of_another_type_are_passed_over(void **state) {
  (void)state;
  static const char bytes[] = "\x15\0\x15\2\x15\4\x18\1x\0"; /* field 4, crc, is a text */
  parquet_page_header header;
  thrift_arena arena = {0};
  weir_error err = {0};
  assert_int_equal(
      decode(&parquet_page_header_type, bytes, sizeof(bytes) - 1, &arena, &header, &err),
      WEIR_OK);
  assert_int_equal(header.has, 1u << 1 | 1u << 2 | 1u << 3);
  assert_int_equal(header.compressed_page_size, 2);
  assert_int_equal(header.crc, 0);
  thrift_arena_done(&arena);
}

static void refused(const void *data, size_t size, const char *message) {
  parquet_page_header header;
  thrift_arena arena = {0};
  weir_error err = {0};
  assert_int_equal(decode(&parquet_page_header_type, data, size, &arena, &header, &err),
                   WEIR_E_CORRUPT);
  assert_string_equal(err.message, message);
  thrift_arena_done(&arena);
}

static void test_what_is_refused(void **state) {
  (void)state;
  refused("\x15\0\0", 3, "PageHeader without field 2");
  refused("\x18\1x\0", 4, "PageHeader, field 1: it has another type");
  refused("\x15\xff\xff\xff\xff\xff\1\0", 8,
          "PageHeader, field 1: a Thrift integer is too large");
  uint8_t deep[200];
  memset(deep, 0x1c,
         sizeof(deep)); /* a struct in a struct in a struct, from field 13 on */
  deep[0] = 0xdc;
  refused(deep, sizeof(deep), "PageHeader, field 13: the Thrift structs nest too deep");
  /* A list of more elements than there are bytes. */
  refused("\xd9\xfc\xff\xff\xff\xff\7\0", 8,
          "PageHeader, field 13: the Thrift bytes end too early");
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
      cmocka_unit_test(test_decoding_undoes_encoding),
      cmocka_unit_test(test_every_cut_and_every_flipped_bit),
      cmocka_unit_test(test_unknown_fields_are_passed_over),
      cmocka_unit_test(test_optional_fields_of_another_type_are_passed_over),
      cmocka_unit_test(test_what_is_refused),
      cmocka_unit_test(test_crc32),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
