/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thrift's compact protocol (thrift-compact-protocol.md of Apache Thrift), driven by tables: a C struct
 * is described by rows of {field id, kind, offset}, and one function walks them. A reader walks the same
 * rows the other way.
 *
 * Each C struct begins with `uint32_t has`; bit n says that the field with id n is present, so ids are
 * 1..31. A union is a struct of which one bit is set.
 */
#ifndef WEIR_PARQUET_THRIFT_H
#define WEIR_PARQUET_THRIFT_H

#include "buffer.h"

enum thrift_kind {
  THRIFT_BOOL,   /* uint8_t */
  THRIFT_I8,     /* int8_t */
  THRIFT_I16,    /* int16_t */
  THRIFT_I32,    /* int32_t, enums too */
  THRIFT_I64,    /* int64_t */
  THRIFT_BINARY, /* thrift_binary */
  THRIFT_STRUCT, /* the struct itself, in place */
  THRIFT_RAW     /* thrift_binary: an encoded struct, copied as it is */
};

typedef struct thrift_binary {
  const uint8_t *data;
  size_t size;
} thrift_binary;

/* A list field holds one of these; the items lie side by side in their C form. Of THRIFT_RAW the one
 * item is the encoded structs of the whole list. */
typedef struct thrift_list {
  const void *items;
  size_t n;
} thrift_list;

typedef struct thrift_type thrift_type;

typedef struct thrift_field {
  uint8_t id, kind, is_list;
  uint16_t offset;
  const thrift_type *type; /* of THRIFT_STRUCT */
} thrift_field;

struct thrift_type {
  const char *name;
  size_t size;
  const thrift_field *fields; /* by rising id; ends with id 0 */
};

#define THRIFT_SET(object, id) ((object)->has |= 1u << (id))

/* Appends the encoded struct to `out`. */
weir_status thrift_encode(const thrift_type *type, const void *object, base_buf *out,
                          weir_error *err);

#endif
