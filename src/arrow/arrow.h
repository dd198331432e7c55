/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of the arrow room: a schema compiled once, and the checks that go by it. */
#ifndef WEIR_ARROW_ROOM_H
#define WEIR_ARROW_ROOM_H

#include <nanoarrow/nanoarrow.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <weir/batch.h>

/* Deepest nesting of a type, of a type's text and of an IPC field. */
#define ARROW_MAX_DEPTH 64
/* A schema has at most this many fields, nested ones and dictionaries included. */
#define ARROW_MAX_FIELDS (1 << 20)

/* How an array's buffers lie ("Arrow Columnar Format", section "Physical Memory Layout").
 */
typedef enum arrow_layout {
  ARROW_NULL,         /* no buffers */
  ARROW_BITS,         /* validity, bits */
  ARROW_FIXED,        /* validity, values of `width` bytes */
  ARROW_BYTES,        /* validity, offsets of `width` bytes, data */
  ARROW_VIEWS,        /* validity, 16-byte views, data buffers..., int64 sizes of these */
  ARROW_LIST,         /* validity, offsets of `width` bytes; also maps */
  ARROW_LIST_VIEW,    /* validity, offsets and sizes of `width` bytes */
  ARROW_FIXED_LIST,   /* validity; each slot has `width` child slots */
  ARROW_STRUCT,       /* validity */
  ARROW_SPARSE_UNION, /* int8 type ids */
  ARROW_DENSE_UNION,  /* int8 type ids, int32 offsets */
  ARROW_RUN_ENDS      /* no buffers; children run_ends (of `width` bytes) and values */
} arrow_layout;

/* A field of a schema, compiled. With a dictionary, layout and width are those of the
 * indices. */
typedef struct arrow_node {
  const struct ArrowSchema *schema; /* borrowed */
  enum ArrowType type;    /* of the field; NANOARROW_TYPE_DICTIONARY if encoded */
  enum ArrowType storage; /* of the buffers */
  arrow_layout layout;
  int32_t width;
  int64_t n_children;
  struct arrow_node *children;   /* n_children in a row */
  struct arrow_node *dictionary; /* of the values, or NULL */
  const int8_t
      *child_of_type; /* unions: 128 entries, -1 where there is no such type id */
} arrow_node;

/* All nodes of one schema; nodes[0] is the root. */
typedef struct arrow_tree {
  arrow_node *nodes;
  size_t n;
  int8_t *type_ids; /* 128 per union */
} arrow_tree;

struct weir_schema {
  atomic_size_t refs;
  struct ArrowSchema schema;
  arrow_tree tree;
};

/* Checks `schema` and compiles it; it must outlive the tree. */
weir_status arrow_tree_init(arrow_tree *tree, const struct ArrowSchema *schema,
                            weir_error *err);
void arrow_tree_done(arrow_tree *tree);

/* Compiled form of a weir_schema; borrowed. */
const arrow_node *arrow_schema_root(const weir_schema *schema);

/* Number of buffers an array of this field has, or -1 for views, which have 3 or more. */
int64_t arrow_node_buffers(const arrow_node *node);
/* True if an array of this field starts with a validity bitmap. */
bool arrow_node_has_validity(const arrow_node *node);

/* Where a field lies, for messages: "column 2 'a', field 'b'". */
typedef struct arrow_path {
  const struct arrow_path *up;
  const char *what; /* "column", "field", "values" */
  int64_t index;
  const char *name;
} arrow_path;
void arrow_path_format(const arrow_path *path, char *buf, size_t size);
/* The zero-based column the path lies in, or -1 at the root. */
int32_t arrow_path_column(const arrow_path *path);

/* Sets an error whose message begins with the path. */
weir_status arrow_path_error(weir_error *err, const arrow_path *path, weir_status code,
                             const char *fmt, ...) WEIR_PRINTF(4, 5);

enum {
  ARROW_CHECK_DICTIONARIES = 1, /* they must be there; else they are not looked at */
  /* of the offsets of top-level text and binary columns only the ends */
  ARROW_CHECK_OFFSETS_LATER = 2
};
/* Everything weir_batch_new checks of one array and what hangs under it, as `how` says. */
weir_status arrow_array_check(const arrow_node *node, const struct ArrowArray *array,
                              unsigned how, const arrow_path *path, weir_error *err);
/* That every dictionary index of a valid slot, at any depth but within the dictionaries
 * themselves, is within its dictionary. The array has passed arrow_array_check. */
weir_status arrow_indices_check(const arrow_node *node, const struct ArrowArray *array,
                                const arrow_path *path, weir_error *err);
/* That the struct array itself has no nulls, and nothing that is declared not nullable has one that can be
 * seen from a row: at any depth, unless a null above hides it. Entries and keys of maps never may. The
 * array has passed arrow_array_check. */
weir_status arrow_nulls_check(const arrow_node *root, const struct ArrowArray *array,
                              weir_error *err);
/* As weir_batch_new for an array that has passed the checks already (all but that for nulls
 * where there may be none). */
weir_status arrow_batch_wrap(weir_schema *schema, struct ArrowArray *array,
                             weir_batch **out, weir_error *err);

/* As weir_batch_new, but what takes a look at every slot of a text or binary column is left to
 * arrow_batch_check_offsets, so that a host's thread does not pay for it. */
weir_status arrow_batch_new_pushed(weir_schema *schema, struct ArrowArray *array,
                                   weir_batch **out, weir_error *err);
/* What arrow_batch_new_pushed left; nothing for other batches. Any thread, before anything reads the
 * values. */
weir_status arrow_batch_check_offsets(weir_batch *batch, weir_error *err);

/* Undoes weir_batch_new: moves the producer's array back into *array and drops the batch.
 * The caller holds the only reference. */
void arrow_batch_give_back(weir_batch *batch, struct ArrowArray *array);

/* Whether two fields have the same type, nullability of `got` within that of `want`; the
 * fields' own names and flags aside. */
bool arrow_types_match(const struct ArrowSchema *want, const struct ArrowSchema *got);

/* Whether values of the field can be hashed: plain ones, also behind a dictionary. */
bool arrow_can_hash(const arrow_node *node);
/* Mixes the value of each row of a column, `from` on, into the row's hash; NULL: only looks. The array has passed
 * arrow_array_check. The number of rows, or of the first that is null. */
int64_t arrow_hash_column(const arrow_node *node, const struct ArrowArray *array,
                          int64_t from, int64_t rows, uint64_t *hashes);

/* Text of a column's type as weir_schema_from_types reads it, " not null" included. `size` is that of
 * `buf`, enough for any type that people write: ARROW_TYPE_TEXT. */
#define ARROW_TYPE_TEXT 65536
void arrow_column_format(const struct ArrowSchema *column, char *buf, size_t size);

/* Bytes of the buffers that `length` slots from `start` (counted without array->offset)
 * reach. */
uint64_t arrow_array_bytes(const arrow_node *node, const struct ArrowArray *array,
                           int64_t start, int64_t length);

/* Element `i` of an offsets buffer of `width` bytes (4 or 8). */
static inline int64_t arrow_offset_at(const void *buffer, int32_t width, int64_t i) {
  return width == 8 ? ((const int64_t *)buffer)[i] : ((const int32_t *)buffer)[i];
}

/* nanoarrow's errno as a status. */
weir_status arrow_errno(weir_error *err, int code, const char *what);

#endif
