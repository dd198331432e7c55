/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of schema inference; for the files infer*.c alone. */
#ifndef FORMAT_INFER_H
#define FORMAT_INFER_H

#include <weir/infer.h>

#include "format/csv.h"

/* A schema may be nested to 64; deeper values are those of a column that is refused. */
#define INFER_MAX_DEPTH 60
/* What messages end with. */
#define INFER_ADVICE "write the schema down: a mapping column: type under `schema`"

/* What a value could be in a column of numbers, dates and so on. A text could always be utf8. */
enum {
  INFER_BOOL = 1,
  INFER_INT64 = 2,
  INFER_UINT64 = 4,
  INFER_FLOAT = 8,
  INFER_DATE = 16,
  INFER_LOCAL = 32, /* a timestamp without a zone */
  INFER_ZONED = 64,
  INFER_ANY = 127
};

/* What was met in a column. */
enum {
  INFER_SEEN_VALUE = 1,  /* more than null: anything below */
  INFER_SEEN_NUMBER = 2, /* more than names of floats such as "nan" */
  INFER_SEEN_OBJECT = 4,
  INFER_SEEN_LIST = 8,
  INFER_SEEN_SCALAR = 16, /* any value but objects and lists */
  INFER_SEEN_HEADER = 32, /* CSV: in the header of this file */
  INFER_SEEN_REAL = 64    /* what only a float can be */
};

/* A column, a field of objects, or the items of lists. */
typedef struct infer_node {
  char *name;
  size_t name_len;
  unsigned may, seen;
  struct infer_node *children; /* fields of objects, in the order met */
  size_t n, room;
  struct infer_node *items; /* of lists; NULL: none was met */
} infer_node;

struct weir_inference {
  bool csv;
  csv_dialect dialect;
  uint64_t max_line;
  infer_node root; /* its children are the columns */
  size_t n_nodes;
  int64_t rows;
  bool at_start;      /* of a file */
  bool awaits_header; /* CSV: of this file */
  bool named;         /* CSV: the columns are known */
  uint64_t line;      /* line ends before what comes next in this file */
  uint32_t *fields;   /* CSV: column of each field of this file */
  size_t n_fields;
  base_buf text; /* a field without its quotes */
};

/* Bits of a number's text, by the grammar of JSON or, `loose`, with the digits on one side of the point
 * missing. No bits: no such number, or one that no type holds. */
unsigned infer_number(const uint8_t *text, size_t n, bool loose);
/* Bits of a text's: dates and timestamps. */
unsigned infer_chrono(const uint8_t *text, size_t n);

/* The child of that name, made if there is none. `hint` is where it may well be. */
weir_status infer_child(weir_inference *inference, infer_node *parent, const char *name,
                        size_t n, size_t hint, infer_node **out, weir_error *err);
/* The node of a list's items, made if there is none. */
weir_status infer_items(weir_inference *inference, infer_node *parent, infer_node **out,
                        weir_error *err);
static inline void infer_note(infer_node *node, unsigned may, unsigned seen) {
  node->may &= may;
  node->seen |= seen | INFER_SEEN_VALUE;
  if (may == INFER_FLOAT) node->seen |= INFER_SEEN_REAL;
}

weir_status infer_csv_feed(weir_inference *inference, const uint8_t *data, size_t size,
                           int last, int64_t rows, size_t *used, weir_error *err);
weir_status infer_ndjson_feed(weir_inference *inference, const uint8_t *data, size_t size,
                              int last, int64_t rows, size_t *used, weir_error *err);
weir_status infer_too_long(const weir_inference *inference, weir_error *err);

#endif
