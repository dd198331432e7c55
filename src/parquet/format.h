/* SPDX-License-Identifier: Apache-2.0 */
/* The structures of parquet.thrift (Apache Parquet format 2.11) that weir uses. */
#ifndef WEIR_PARQUET_FORMAT_H
#define WEIR_PARQUET_FORMAT_H

#include "thrift.h"

enum parquet_type {
  PARQUET_BOOLEAN = 0,
  PARQUET_INT32 = 1,
  PARQUET_INT64 = 2,
  PARQUET_INT96 = 3,
  PARQUET_FLOAT = 4,
  PARQUET_DOUBLE = 5,
  PARQUET_BYTE_ARRAY = 6,
  PARQUET_FIXED = 7
};

enum parquet_converted {
  PARQUET_CONVERTED_NONE = -1,
  PARQUET_CONVERTED_UTF8 = 0,
  PARQUET_CONVERTED_MAP = 1,
  PARQUET_CONVERTED_MAP_KEY_VALUE = 2,
  PARQUET_CONVERTED_LIST = 3,
  PARQUET_CONVERTED_ENUM = 4,
  PARQUET_CONVERTED_DECIMAL = 5,
  PARQUET_CONVERTED_DATE = 6,
  PARQUET_CONVERTED_TIME_MILLIS = 7,
  PARQUET_CONVERTED_TIME_MICROS = 8,
  PARQUET_CONVERTED_TIMESTAMP_MILLIS = 9,
  PARQUET_CONVERTED_TIMESTAMP_MICROS = 10,
  PARQUET_CONVERTED_UINT_8 = 11,
  PARQUET_CONVERTED_UINT_16 = 12,
  PARQUET_CONVERTED_UINT_32 = 13,
  PARQUET_CONVERTED_UINT_64 = 14,
  PARQUET_CONVERTED_INT_8 = 15,
  PARQUET_CONVERTED_INT_16 = 16,
  PARQUET_CONVERTED_INT_32 = 17,
  PARQUET_CONVERTED_INT_64 = 18,
  PARQUET_CONVERTED_JSON = 19,
  PARQUET_CONVERTED_BSON = 20,
  PARQUET_CONVERTED_INTERVAL = 21
};

enum parquet_repetition {
  PARQUET_REQUIRED = 0,
  PARQUET_OPTIONAL = 1,
  PARQUET_REPEATED = 2
};

enum parquet_encoding {
  PARQUET_PLAIN = 0,
  PARQUET_PLAIN_DICTIONARY =
      2, /* deprecated: what RLE_DICTIONARY is, and PLAIN of dictionary pages */
  PARQUET_RLE = 3,
  PARQUET_BIT_PACKED = 4, /* deprecated */
  PARQUET_DELTA_BINARY_PACKED = 5,
  PARQUET_DELTA_LENGTH_BYTE_ARRAY = 6,
  PARQUET_DELTA_BYTE_ARRAY = 7,
  PARQUET_RLE_DICTIONARY = 8,
  PARQUET_BYTE_STREAM_SPLIT = 9
};

enum parquet_codec_id {
  PARQUET_UNCOMPRESSED = 0,
  PARQUET_SNAPPY = 1,
  PARQUET_GZIP = 2,
  PARQUET_LZO = 3,
  PARQUET_BROTLI = 4,
  PARQUET_LZ4 = 5, /* deprecated: framed in Hadoop's way or not */
  PARQUET_ZSTD = 6,
  PARQUET_LZ4_RAW = 7
};

enum parquet_page_type {
  PARQUET_DATA_PAGE = 0,
  PARQUET_INDEX_PAGE = 1,
  PARQUET_DICTIONARY_PAGE = 2,
  PARQUET_DATA_PAGE_V2 = 3
};

enum parquet_boundary_order {
  PARQUET_UNORDERED = 0,
  PARQUET_ASCENDING = 1,
  PARQUET_DESCENDING = 2
};

typedef struct parquet_empty {
  uint32_t has;
} parquet_empty;

typedef struct parquet_decimal_type {
  uint32_t has;
  int32_t scale, precision;
} parquet_decimal_type;

enum { PARQUET_UNIT_MILLIS = 1, PARQUET_UNIT_MICROS = 2, PARQUET_UNIT_NANOS = 3 };

typedef struct parquet_time_unit {
  uint32_t has; /* 1 << PARQUET_UNIT_* */
  parquet_empty empty;
} parquet_time_unit;

typedef struct parquet_time_type {
  uint32_t has;
  uint8_t is_adjusted_to_utc;
  parquet_time_unit unit;
} parquet_time_type;

typedef struct parquet_integer_type {
  uint32_t has;
  int8_t bit_width;
  uint8_t is_signed;
} parquet_integer_type;

enum {
  PARQUET_LOGICAL_STRING = 1,
  PARQUET_LOGICAL_MAP = 2,
  PARQUET_LOGICAL_LIST = 3,
  PARQUET_LOGICAL_ENUM = 4,
  PARQUET_LOGICAL_DECIMAL = 5,
  PARQUET_LOGICAL_DATE = 6,
  PARQUET_LOGICAL_TIME = 7,
  PARQUET_LOGICAL_TIMESTAMP = 8,
  PARQUET_LOGICAL_INTEGER = 10,
  PARQUET_LOGICAL_UNKNOWN = 11,
  PARQUET_LOGICAL_JSON = 12,
  PARQUET_LOGICAL_BSON = 13,
  PARQUET_LOGICAL_UUID = 14,
  PARQUET_LOGICAL_FLOAT16 = 15
};

typedef struct parquet_logical_type {
  uint32_t has; /* 1 << PARQUET_LOGICAL_*; 0 = none */
  parquet_empty empty;
  parquet_decimal_type decimal;
  parquet_time_type time; /* of TIME and TIMESTAMP */
  parquet_integer_type integer;
} parquet_logical_type;

typedef struct parquet_schema_element {
  uint32_t has;
  int32_t type, type_length, repetition, num_children, converted_type, scale, precision,
      field_id;
  thrift_binary name;
  parquet_logical_type logical;
} parquet_schema_element;

typedef struct parquet_statistics {
  uint32_t has;
  int64_t null_count, distinct_count;
  thrift_binary max_value, min_value;
  uint8_t is_max_value_exact, is_min_value_exact;
} parquet_statistics;

typedef struct parquet_encoding_stats {
  uint32_t has;
  int32_t page_type, encoding, count;
} parquet_encoding_stats;

typedef struct parquet_size_statistics {
  uint32_t has;
  int64_t unencoded_byte_array_data_bytes;
  thrift_list repetition_level_histogram, definition_level_histogram;
} parquet_size_statistics;

typedef struct parquet_only {
  uint32_t has; /* 1 << 1: the one there is */
  parquet_empty kind;
} parquet_only;

typedef struct parquet_bloom_header {
  uint32_t has;
  int32_t num_bytes;
  parquet_only algorithm, hash, compression;
} parquet_bloom_header;

typedef struct parquet_column_meta {
  uint32_t has;
  int32_t type, codec;
  thrift_list encodings, path_in_schema, encoding_stats;
  int64_t num_values, total_uncompressed_size, total_compressed_size;
  int64_t data_page_offset, dictionary_page_offset, bloom_filter_offset;
  int32_t bloom_filter_length;
  parquet_statistics statistics;
  parquet_size_statistics size_statistics;
} parquet_column_meta;

typedef struct parquet_column_chunk {
  uint32_t has;
  thrift_binary file_path;
  int64_t file_offset;
  parquet_column_meta meta;
  int64_t offset_index_offset, column_index_offset;
  int32_t offset_index_length, column_index_length;
} parquet_column_chunk;

typedef struct parquet_row_group {
  uint32_t has;
  thrift_list columns;
  int64_t total_byte_size, num_rows, file_offset, total_compressed_size;
  int16_t ordinal;
} parquet_row_group;

typedef struct parquet_key_value {
  uint32_t has;
  thrift_binary key, value;
} parquet_key_value;

typedef struct parquet_column_order {
  uint32_t has; /* 1 << 1: TypeDefinedOrder */
  parquet_empty type_order;
} parquet_column_order;

typedef struct parquet_file_meta {
  uint32_t has;
  int32_t version;
  thrift_list schema, row_groups, key_value_metadata, column_orders; /* row_groups: raw */
  int64_t num_rows;
  thrift_binary created_by;
} parquet_file_meta;

typedef struct parquet_data_page_header {
  uint32_t has;
  int32_t num_values, encoding, definition_level_encoding, repetition_level_encoding;
} parquet_data_page_header;

typedef struct parquet_data_page_header_v2 {
  uint32_t has;
  int32_t num_values, num_nulls, num_rows, encoding, definition_levels_byte_length,
      repetition_levels_byte_length;
  uint8_t is_compressed; /* absent: true */
} parquet_data_page_header_v2;

typedef struct parquet_dictionary_page_header {
  uint32_t has;
  int32_t num_values, encoding;
} parquet_dictionary_page_header;

typedef struct parquet_page_header {
  uint32_t has;
  int32_t type, uncompressed_page_size, compressed_page_size, crc;
  parquet_data_page_header data_page;
  parquet_dictionary_page_header dictionary_page;
  parquet_data_page_header_v2 data_page_v2;
} parquet_page_header;

typedef struct parquet_page_location {
  uint32_t has;
  int64_t offset, first_row_index;
  int32_t compressed_page_size;
} parquet_page_location;

typedef struct parquet_offset_index {
  uint32_t has;
  thrift_list page_locations, unencoded_byte_array_data_bytes;
} parquet_offset_index;

typedef struct parquet_column_index {
  uint32_t has;
  thrift_list null_pages, min_values, max_values, null_counts;
  thrift_list repetition_level_histograms, definition_level_histograms;
  int32_t boundary_order;
} parquet_column_index;

extern const thrift_type parquet_bloom_header_type;
extern const thrift_type parquet_file_meta_type, parquet_row_group_type,
    parquet_page_header_type, parquet_offset_index_type, parquet_column_index_type,
    parquet_schema_element_type;

#endif
