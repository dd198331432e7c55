/* SPDX-License-Identifier: Apache-2.0 */
/* Field ids are those of parquet.thrift; the struct's name stands above each table. */
#include "format.h"

#define ROW(id, kind, c, field) {id, kind, 0, offsetof(c, field), NULL}
#define SUB(id, c, field, type) {id, THRIFT_STRUCT, 0, offsetof(c, field), &type}
#define LIST(id, kind, c, field) {id, kind, 1, offsetof(c, field), NULL}
#define LIST_OF(id, c, field, type) {id, THRIFT_STRUCT, 1, offsetof(c, field), &type}
#define END {0, 0, 0, 0, NULL}
#define TYPE(symbol, c, text, rows) const thrift_type symbol = {text, sizeof(c), rows, 0}
/* With a mask of the fields that a reader refuses to be without. */
#define TYPE_NEEDS(symbol, c, text, rows, needs) \
  const thrift_type symbol = {text, sizeof(c), rows, needs}

static const thrift_field empty_rows[] = {END};
static TYPE(empty_type, parquet_empty, "empty", empty_rows);

#define C parquet_decimal_type
static const thrift_field decimal_rows[] = {ROW(1, THRIFT_I32, C, scale),
                                            ROW(2, THRIFT_I32, C, precision), END};
static TYPE_NEEDS(decimal_type, C, "DecimalType", decimal_rows, 1u << 1 | 1u << 2);
#undef C

#define C parquet_time_unit
static const thrift_field unit_rows[] = {SUB(1, C, empty, empty_type),
                                         SUB(2, C, empty, empty_type),
                                         SUB(3, C, empty, empty_type), END};
static TYPE(unit_type, C, "TimeUnit", unit_rows);
#undef C

#define C parquet_time_type
static const thrift_field time_rows[] = {ROW(1, THRIFT_BOOL, C, is_adjusted_to_utc),
                                         SUB(2, C, unit, unit_type), END};
static TYPE_NEEDS(time_type, C, "TimeType", time_rows, 1u << 1 | 1u << 2);
#undef C

#define C parquet_integer_type
static const thrift_field integer_rows[] = {ROW(1, THRIFT_I8, C, bit_width),
                                            ROW(2, THRIFT_BOOL, C, is_signed), END};
static TYPE_NEEDS(integer_type, C, "IntType", integer_rows, 1u << 1 | 1u << 2);
#undef C

#define C parquet_logical_type
static const thrift_field logical_rows[] = {
    SUB(PARQUET_LOGICAL_STRING, C, empty, empty_type),
    SUB(PARQUET_LOGICAL_MAP, C, empty, empty_type),
    SUB(PARQUET_LOGICAL_LIST, C, empty, empty_type),
    SUB(PARQUET_LOGICAL_ENUM, C, empty, empty_type),
    SUB(PARQUET_LOGICAL_DECIMAL, C, decimal, decimal_type),
    SUB(PARQUET_LOGICAL_DATE, C, empty, empty_type),
    SUB(PARQUET_LOGICAL_TIME, C, time, time_type),
    SUB(PARQUET_LOGICAL_TIMESTAMP, C, time, time_type),
    SUB(PARQUET_LOGICAL_INTEGER, C, integer, integer_type),
    SUB(PARQUET_LOGICAL_UNKNOWN, C, empty, empty_type),
    SUB(PARQUET_LOGICAL_JSON, C, empty, empty_type),
    SUB(PARQUET_LOGICAL_BSON, C, empty, empty_type),
    SUB(PARQUET_LOGICAL_UUID, C, empty, empty_type),
    SUB(PARQUET_LOGICAL_FLOAT16, C, empty, empty_type),
    END};
static TYPE(logical_type, C, "LogicalType", logical_rows);
#undef C

#define C parquet_schema_element
static const thrift_field element_rows[] = {ROW(1, THRIFT_I32, C, type),
                                            ROW(2, THRIFT_I32, C, type_length),
                                            ROW(3, THRIFT_I32, C, repetition),
                                            ROW(4, THRIFT_BINARY, C, name),
                                            ROW(5, THRIFT_I32, C, num_children),
                                            ROW(6, THRIFT_I32, C, converted_type),
                                            ROW(7, THRIFT_I32, C, scale),
                                            ROW(8, THRIFT_I32, C, precision),
                                            ROW(9, THRIFT_I32, C, field_id),
                                            SUB(10, C, logical, logical_type),
                                            END};
TYPE_NEEDS(parquet_schema_element_type, C, "SchemaElement", element_rows, 1u << 4);
#undef C

#define C parquet_statistics
static const thrift_field statistics_rows[] = {ROW(3, THRIFT_I64, C, null_count),
                                               ROW(4, THRIFT_I64, C, distinct_count),
                                               ROW(5, THRIFT_BINARY, C, max_value),
                                               ROW(6, THRIFT_BINARY, C, min_value),
                                               ROW(7, THRIFT_BOOL, C, is_max_value_exact),
                                               ROW(8, THRIFT_BOOL, C, is_min_value_exact),
                                               END};
static TYPE(statistics_type, C, "Statistics", statistics_rows);
#undef C

#define C parquet_encoding_stats
static const thrift_field encoding_stats_rows[] = {ROW(1, THRIFT_I32, C, page_type),
                                                   ROW(2, THRIFT_I32, C, encoding),
                                                   ROW(3, THRIFT_I32, C, count), END};
static TYPE(encoding_stats_type, C, "PageEncodingStats", encoding_stats_rows);
#undef C

#define C parquet_size_statistics
static const thrift_field size_rows[] = {
    ROW(1, THRIFT_I64, C, unencoded_byte_array_data_bytes),
    LIST(2, THRIFT_I64, C, repetition_level_histogram),
    LIST(3, THRIFT_I64, C, definition_level_histogram), END};
static TYPE(size_type, C, "SizeStatistics", size_rows);
#undef C

/* Unions of one empty struct each: BLOCK, XXHASH, UNCOMPRESSED. */
#define C parquet_only
static const thrift_field only_rows[] = {SUB(1, C, kind, empty_type), END};
static TYPE(only_type, C, "BloomFilterHeader union", only_rows);
#undef C

#define C parquet_bloom_header
static const thrift_field bloom_header_rows[] = {
    ROW(1, THRIFT_I32, C, num_bytes), SUB(2, C, algorithm, only_type),
    SUB(3, C, hash, only_type), SUB(4, C, compression, only_type), END};
TYPE(parquet_bloom_header_type, C, "BloomFilterHeader", bloom_header_rows);
#undef C

#define C parquet_column_meta
static const thrift_field column_meta_rows[] = {
    ROW(1, THRIFT_I32, C, type),
    LIST(2, THRIFT_I32, C, encodings),
    LIST(3, THRIFT_BINARY, C, path_in_schema),
    ROW(4, THRIFT_I32, C, codec),
    ROW(5, THRIFT_I64, C, num_values),
    ROW(6, THRIFT_I64, C, total_uncompressed_size),
    ROW(7, THRIFT_I64, C, total_compressed_size),
    ROW(9, THRIFT_I64, C, data_page_offset),
    ROW(11, THRIFT_I64, C, dictionary_page_offset),
    SUB(12, C, statistics, statistics_type),
    LIST_OF(13, C, encoding_stats, encoding_stats_type),
    ROW(14, THRIFT_I64, C, bloom_filter_offset),
    ROW(15, THRIFT_I32, C, bloom_filter_length),
    SUB(16, C, size_statistics, size_type),
    END};
static TYPE_NEEDS(column_meta_type, C, "ColumnMetaData", column_meta_rows,
                  1u << 1 | 1u << 4 | 1u << 5 | 1u << 6 | 1u << 7 | 1u << 9);
#undef C

#define C parquet_column_chunk
static const thrift_field column_chunk_rows[] = {
    ROW(1, THRIFT_BINARY, C, file_path),
    ROW(2, THRIFT_I64, C, file_offset),
    SUB(3, C, meta, column_meta_type),
    ROW(4, THRIFT_I64, C, offset_index_offset),
    ROW(5, THRIFT_I32, C, offset_index_length),
    ROW(6, THRIFT_I64, C, column_index_offset),
    ROW(7, THRIFT_I32, C, column_index_length),
    END};
/* Only what is encrypted has no metadata here. */
static TYPE_NEEDS(column_chunk_type, C, "ColumnChunk", column_chunk_rows, 1u << 3);
#undef C

#define C parquet_row_group
static const thrift_field row_group_rows[] = {
    LIST_OF(1, C, columns, column_chunk_type),
    ROW(2, THRIFT_I64, C, total_byte_size),
    ROW(3, THRIFT_I64, C, num_rows),
    ROW(5, THRIFT_I64, C, file_offset),
    ROW(6, THRIFT_I64, C, total_compressed_size),
    ROW(7, THRIFT_I16, C, ordinal),
    END};
TYPE_NEEDS(parquet_row_group_type, C, "RowGroup", row_group_rows, 1u << 1 | 1u << 3);
#undef C

#define C parquet_key_value
static const thrift_field key_value_rows[] = {ROW(1, THRIFT_BINARY, C, key),
                                              ROW(2, THRIFT_BINARY, C, value), END};
static TYPE_NEEDS(key_value_type, C, "KeyValue", key_value_rows, 1u << 1);
#undef C

#define C parquet_column_order
static const thrift_field column_order_rows[] = {SUB(1, C, type_order, empty_type), END};
static TYPE(column_order_type, C, "ColumnOrder", column_order_rows);
#undef C

#define C parquet_file_meta
static const thrift_field file_meta_rows[] = {
    ROW(1, THRIFT_I32, C, version),
    LIST_OF(2, C, schema, parquet_schema_element_type),
    ROW(3, THRIFT_I64, C, num_rows),
    LIST(4, THRIFT_RAW, C, row_groups),
    LIST_OF(5, C, key_value_metadata, key_value_type),
    ROW(6, THRIFT_BINARY, C, created_by),
    LIST_OF(7, C, column_orders, column_order_type),
    END};
TYPE_NEEDS(parquet_file_meta_type, C, "FileMetaData", file_meta_rows,
           1u << 2 | 1u << 3 | 1u << 4);
#undef C

#define C parquet_data_page_header
static const thrift_field data_page_rows[] = {
    ROW(1, THRIFT_I32, C, num_values), ROW(2, THRIFT_I32, C, encoding),
    ROW(3, THRIFT_I32, C, definition_level_encoding),
    ROW(4, THRIFT_I32, C, repetition_level_encoding), END};
static TYPE_NEEDS(data_page_type, C, "DataPageHeader", data_page_rows, 1u << 1 | 1u << 2);
#undef C

#define C parquet_dictionary_page_header
static const thrift_field dictionary_page_rows[] = {ROW(1, THRIFT_I32, C, num_values),
                                                    ROW(2, THRIFT_I32, C, encoding), END};
static TYPE_NEEDS(dictionary_page_type, C, "DictionaryPageHeader", dictionary_page_rows,
                  1u << 1 | 1u << 2);
#undef C

#define C parquet_data_page_header_v2
static const thrift_field data_page_v2_rows[] = {
    ROW(1, THRIFT_I32, C, num_values),
    ROW(2, THRIFT_I32, C, num_nulls),
    ROW(3, THRIFT_I32, C, num_rows),
    ROW(4, THRIFT_I32, C, encoding),
    ROW(5, THRIFT_I32, C, definition_levels_byte_length),
    ROW(6, THRIFT_I32, C, repetition_levels_byte_length),
    ROW(7, THRIFT_BOOL, C, is_compressed),
    END};
static TYPE_NEEDS(data_page_v2_type, C, "DataPageHeaderV2", data_page_v2_rows,
                  1u << 1 | 1u << 2 | 1u << 3 | 1u << 4 | 1u << 5 | 1u << 6);
#undef C

#define C parquet_page_header
static const thrift_field page_header_rows[] = {
    ROW(1, THRIFT_I32, C, type),
    ROW(2, THRIFT_I32, C, uncompressed_page_size),
    ROW(3, THRIFT_I32, C, compressed_page_size),
    ROW(4, THRIFT_I32, C, crc),
    SUB(5, C, data_page, data_page_type),
    SUB(7, C, dictionary_page, dictionary_page_type),
    SUB(8, C, data_page_v2, data_page_v2_type),
    END};
TYPE_NEEDS(parquet_page_header_type, C, "PageHeader", page_header_rows,
           1u << 1 | 1u << 2 | 1u << 3);
#undef C

#define C parquet_page_location
static const thrift_field page_location_rows[] = {
    ROW(1, THRIFT_I64, C, offset), ROW(2, THRIFT_I32, C, compressed_page_size),
    ROW(3, THRIFT_I64, C, first_row_index), END};
static TYPE(page_location_type, C, "PageLocation", page_location_rows);
#undef C

#define C parquet_offset_index
static const thrift_field offset_index_rows[] = {
    LIST_OF(1, C, page_locations, page_location_type),
    LIST(2, THRIFT_I64, C, unencoded_byte_array_data_bytes), END};
TYPE(parquet_offset_index_type, C, "OffsetIndex", offset_index_rows);
#undef C

#define C parquet_column_index
static const thrift_field column_index_rows[] = {
    LIST(1, THRIFT_BOOL, C, null_pages),
    LIST(2, THRIFT_BINARY, C, min_values),
    LIST(3, THRIFT_BINARY, C, max_values),
    ROW(4, THRIFT_I32, C, boundary_order),
    LIST(5, THRIFT_I64, C, null_counts),
    LIST(6, THRIFT_I64, C, repetition_level_histograms),
    LIST(7, THRIFT_I64, C, definition_level_histograms),
    END};
TYPE(parquet_column_index_type, C, "ColumnIndex", column_index_rows);
#undef C
