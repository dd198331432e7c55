/* SPDX-License-Identifier: Apache-2.0 */
/* The schema of a Parquet file as a tree of Arrow fields, and the leaves that hold their values. */
#ifndef WEIR_PARQUET_READ_SCHEMA_H
#define WEIR_PARQUET_READ_SCHEMA_H

#include "arrow/arrow.h"
#include "format.h"

/* How values of the physical type become slots of an Arrow array. */
enum read_put {
  PUT_NOTHING, /* null type */
  PUT_BITS,
  PUT_COPY,      /* the same bytes */
  PUT_NARROW,    /* INT32 to 1 or 2 bytes */
  PUT_SECONDS32, /* milliseconds to seconds */
  PUT_SECONDS64,
  PUT_DATE64,        /* days to milliseconds */
  PUT_DECIMAL_INT,   /* INT32 or INT64 to a wider integer */
  PUT_DECIMAL_BYTES, /* most significant byte first */
  PUT_MONTHS,        /* INTERVAL */
  PUT_DAY_TIME,
  PUT_MONTH_DAY_NANO,
  PUT_INT96, /* nanoseconds of the day and Julian day to nanoseconds since 1970 */
  PUT_BYTES  /* offsets and data */
};

/* A fixed-size list above a leaf: a null one is a single level in the file, and `size` null slots below it
 * in Arrow. It is such a level if its definition level is from `from` up to `below`. */
typedef struct read_fixed {
  uint8_t from, below;
  uint8_t rep; /* of the elements behind the first */
  uint32_t size;
} read_fixed;

typedef struct read_type {
  char *name;     /* path with dots, for messages */
  size_t chunk;   /* which of a row group's columns */
  int32_t column; /* of the batch */
  enum parquet_type type;
  uint32_t width; /* bytes of a physical value; 0: BYTE_ARRAY and BOOLEAN */
  enum read_put put;
  uint32_t slot; /* bytes of an Arrow slot; of an offset for PUT_BYTES */
  bool views;
  uint32_t
      decimal; /* bytes of the decimals that PUT_BYTES become at last; 0: it stays bytes */
  uint8_t max_def, max_rep;
  uint8_t carry;     /* a level has a slot if its definition level is at least this */
  bool flat;         /* each level is a row, and is a null or a value */
  read_fixed *fixed; /* from the outermost on */
  size_t n_fixed;
} read_type;

enum read_kind { READ_LEAF, READ_STRUCT, READ_LIST };

/* A field. Of the levels of a leaf below it, those with a repetition level of at most `rep` and a
 * definition level of at least `carry` are its slots; they are not null from `def` on. */
typedef struct read_node {
  enum read_kind kind;
  bool nullable, large;
  uint8_t def, rep, carry;
  uint8_t element_def; /* of a list: there is an element */
  uint32_t fixed;      /* its size, if it has one */
  size_t leaf;         /* the first one below */
  int64_t n_children;
  struct read_node *children;
} read_node;

typedef struct read_schema {
  read_node root;
  base_buf types;  /* read_type, of the columns that are wanted */
  size_t n_chunks; /* columns that a row group has */
  weir_schema *arrow;
} read_schema;

/* `hint`: the schema under "ARROW:schema", or NULL. Columns are wanted if their name is among `names`, or
 * n_names is 0; a name that no column has is refused. */
weir_status read_schema_init(read_schema *schema, const thrift_list *elements,
                             const weir_schema *hint, const char *const *names,
                             size_t n_names, weir_error *err);
void read_schema_done(read_schema *schema);

/* read_type.c: the Arrow type of a leaf, the hint's if the file says nothing else. Name and flags of `out`
 * are not touched. */
weir_status read_type_choose(read_type *type, const parquet_schema_element *element,
                             const arrow_node *hint, struct ArrowSchema *out,
                             weir_error *err);

#endif
