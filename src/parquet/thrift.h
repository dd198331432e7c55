/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thrift's compact protocol (thrift-compact-protocol.md of Apache Thrift), driven by tables: a C struct
 * is described by rows of {field id, kind, offset}; one function walks them to encode it, another to decode.
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
  uint32_t needs;             /* fields without which decoding fails */
};

/* Type codes of field headers and list elements ("Struct encoding", "List and set"). A boolean field
 * carries its value in the code; a boolean element is one byte of 1 or 2. */
enum thrift_code {
  THRIFT_CODE_TRUE = 1,
  THRIFT_CODE_FALSE = 2,
  THRIFT_CODE_I8 = 3,
  THRIFT_CODE_I16 = 4,
  THRIFT_CODE_I32 = 5,
  THRIFT_CODE_I64 = 6,
  THRIFT_CODE_DOUBLE = 7,
  THRIFT_CODE_BINARY = 8,
  THRIFT_CODE_LIST = 9,
  THRIFT_CODE_SET = 10,
  THRIFT_CODE_MAP = 11,
  THRIFT_CODE_STRUCT = 12,
  THRIFT_CODE_UUID = 13
};
/* By thrift_kind. */
extern const uint8_t thrift_codes[];
/* Bytes of an item of a field's list, or of its value. */
size_t thrift_item_size(const thrift_field *field);

#define THRIFT_SET(object, id) ((object)->has |= 1u << (id))

/* Appends the encoded struct to `out`. */
weir_status thrift_encode(const thrift_type *type, const void *object, base_buf *out,
                          weir_error *err);

/* Memory of decoded lists. Zeroed is empty. */
typedef struct thrift_arena {
  void **blocks;
  size_t n, room;
} thrift_arena;

/* Forgets all lists; the arena can be used again. */
void thrift_arena_clear(thrift_arena *arena);
void thrift_arena_done(thrift_arena *arena);

typedef struct thrift_input {
  const uint8_t *at, *end;
  thrift_arena *arena;
} thrift_input;

/* Decodes one struct and moves in->at behind it. Binaries point into the input, lists into the arena; of
 * a THRIFT_RAW list the one item is the bytes of all n structs. Unknown fields are passed over, and so
 * are those of another type that the struct can be without, as Thrift's own readers do. Anything
 * may be in the input: what does not fit is WEIR_E_CORRUPT, memory grows with the bytes that are there. */
weir_status thrift_decode(const thrift_type *type, thrift_input *in, void *object,
                          weir_error *err);

#endif
