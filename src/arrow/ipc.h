/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of the IPC reader and writer. Files are laid out as ipc_flat.c (flatbuffers to plain
 * structs), ipc_schema.c, ipc_body.c (buffers to arrays), ipc_dict.c, ipc_source.c (bytes to messages),
 * ipc_codec.c and ipc_reader.c. */
#ifndef WEIR_ARROW_IPC_ROOM_H
#define WEIR_ARROW_IPC_ROOM_H

#include <weir/ipc.h>

#include "arrow/arrow.h"
#include "base/base.h"

/* ---- counted memory ---- */

/* Bytes that arrays point into: a mapping, a heap block or the caller's weir_bytes. */
typedef struct ipc_blob {
  atomic_size_t refs;
  const uint8_t *data;
  size_t size;
  void *mapping; /* munmap, or */
  void *heap;    /* free, or */
  weir_bytes bytes;
} ipc_blob;

ipc_blob *ipc_blob_new(weir_error *err);
ipc_blob *ipc_blob_ref(ipc_blob *blob);
void ipc_blob_unref(ipc_blob *blob); /* NULL is a no-op */

/* A decoded array with all it owns. Never changed once others hold it. */
typedef struct ipc_array {
  atomic_size_t refs;
  struct ArrowArray root; /* release is a no-op: the ipc_array is what is counted */
  void *arena;            /* arrays, pointers and view sizes below the root */
  ipc_blob *body;
  void **heap; /* buffers of its own */
  size_t n_heap, heap_capacity;
  struct ipc_array *
      *uses; /* dictionaries that it points to, and what it was cloned from */
  size_t n_uses, uses_capacity;
  bool joined; /* by ipc_array_concat */
} ipc_array;

ipc_array *ipc_array_new(weir_error *err);
ipc_array *ipc_array_ref(ipc_array *array);
void ipc_array_unref(ipc_array *array); /* NULL is a no-op */
/* malloc that the array frees. Never NULL for size 0. */
void *ipc_array_alloc(ipc_array *array, size_t size, weir_error *err);
/* Hands `block` over, also on failure (then it is freed). */
weir_status ipc_array_adopt(ipc_array *array, void *block, weir_error *err);
/* Takes a reference to `other`. */
weir_status ipc_array_use(ipc_array *array, ipc_array *other, weir_error *err);
/* Arrays of `node`, empty at every level, dictionaries included. */
ipc_array *ipc_array_empty(const arrow_node *node, weir_error *err);
/* New arrays over the same buffers, with dictionary == NULL throughout. */
ipc_array *ipc_array_clone(const arrow_node *node, ipc_array *from, weir_error *err);
/* One array of all slots; the parts have no dictionaries set. NOT_IMPLEMENTED names the type. */
weir_status ipc_array_concat(const arrow_node *node, ipc_array *first, ipc_array *second,
                             ipc_array **out, weir_error *err);
void ipc_release_noop(struct ArrowArray *array);

/* Room for the arrays of a tree and their pointers, in one block that ends with the ipc_array. */
typedef struct ipc_arena_size {
  size_t arrays, children, buffers;
} ipc_arena_size;
typedef struct ipc_arena {
  struct ArrowArray *arrays;
  struct ArrowArray **children;
  const void **buffers;
  int64_t *sizes; /* of views' data buffers: more_buffers + 1 in all */
} ipc_arena;
weir_status ipc_arena_init(ipc_arena *arena, ipc_array *array, const arrow_node *node,
                           bool dictionaries, size_t more_buffers, weir_error *err);
/* Takes room for one array of `node` and its children (zeroed, not yet shaped). */
void ipc_arena_shape(ipc_arena *arena, const arrow_node *node, size_t n_buffers,
                     struct ArrowArray *out);
/* What a buffer pointer is when there is nothing in it. */
extern const uint64_t ipc_zeros[8];

/* ---- messages, parsed ---- */

typedef enum ipc_kind { IPC_SCHEMA = 1, IPC_DICTIONARY = 2, IPC_BATCH = 3 } ipc_kind;
typedef enum ipc_codec { IPC_PLAIN = -1, IPC_LZ4 = 0, IPC_ZSTD = 1 } ipc_codec;

typedef struct ipc_node {
  int64_t length, null_count;
} ipc_node;
typedef struct ipc_range {
  int64_t offset, length;
} ipc_range;

/* Pointers go into the message's metadata. */
typedef struct ipc_message {
  ipc_kind kind;
  bool v4;
  int64_t body_length;
  const void *schema; /* IPC_SCHEMA: the Schema table */
  /* of a batch, or of a dictionary's values: */
  int64_t length;
  const ipc_node *nodes;
  size_t n_nodes;
  const ipc_range *buffers;
  size_t n_buffers;
  const int64_t *variadic;
  size_t n_variadic;
  ipc_codec codec;
  /* IPC_DICTIONARY: */
  int64_t id;
  bool delta;
  /* Where it came from; filled by the source. */
  uint64_t at;         /* offset of its first byte */
  const uint8_t *body; /* body_length bytes in... */
  ipc_blob *blob;      /* ...this (borrowed) */
} ipc_message;

typedef struct ipc_block {
  int64_t offset, metadata_length, body_length;
} ipc_block;
typedef struct ipc_footer {
  const void *schema;
  ipc_block *dictionaries, *batches; /* to free */
  size_t n_dictionaries, n_batches;
} ipc_footer;

/* Verify the flatbuffer (8-byte aligned) and take it apart. */
weir_status ipc_message_parse(const void *metadata, size_t size, ipc_message *out,
                              weir_error *err);
weir_status ipc_footer_parse(const void *metadata, size_t size, ipc_footer *out,
                             weir_error *err);
void ipc_footer_done(ipc_footer *footer);

/* The ids of a schema's dictionaries, one per node of its tree (unset where it has none). */
typedef struct ipc_schema {
  weir_schema *schema;
  int64_t *ids;
} ipc_schema;
/* `budget`: bytes that names and metadata may come to, so that a table used a million times does
 * not become a million copies. */
weir_status ipc_schema_parse(const void *schema_table, size_t budget, ipc_schema *out,
                             weir_error *err);
void ipc_schema_done(ipc_schema *schema);

/* ---- bodies ---- */

typedef struct ipc_decoder {
  void *lz4, *zstd; /* contexts, made when first needed */
  uint64_t max_bytes;
} ipc_decoder;
void ipc_decoder_done(ipc_decoder *decoder);
/* Into a malloc'ed block of exactly `size` bytes. */
weir_status ipc_decompress(ipc_decoder *decoder, ipc_codec codec, const uint8_t *data,
                           size_t data_size, size_t size, void **out, weir_error *err);

/* The arrays of a message's body: for a batch `node` is the schema's root, for a dictionary the node
 * of its values. Structure is checked; dictionaries are not set. */
weir_status ipc_body_decode(ipc_decoder *decoder, const arrow_node *node,
                            const ipc_message *message, ipc_array **out, weir_error *err);

/* ---- dictionaries ---- */

typedef struct ipc_dict ipc_dict;
typedef struct ipc_dicts {
  ipc_schema schema; /* borrowed */
  ipc_dict *dicts;
  size_t n;
  uint64_t changes; /* counts every dictionary taken */
} ipc_dicts;
weir_status ipc_dicts_init(ipc_dicts *dicts, const ipc_schema *schema, weir_error *err);
void ipc_dicts_done(ipc_dicts *dicts);
void ipc_dicts_clear(ipc_dicts *dicts); /* forgets all values */
weir_status ipc_dicts_take(ipc_dicts *dicts, ipc_decoder *decoder,
                           const ipc_message *message, weir_error *err);
/* Sets the dictionaries in force in a freshly decoded batch, and checks the indices. */
weir_status ipc_dicts_apply(ipc_dicts *dicts, ipc_array *batch, weir_error *err);

/* ---- sources ---- */

typedef struct ipc_source {
  char *name;
  ipc_blob *blob; /* mapped or in memory; NULL: read() */
  weir_ipc_read_fn read;
  void *ctx;
  uint64_t at; /* next byte to read */
  uint64_t max_metadata, max_body;
  base_buf metadata; /* of the message read last */
  ipc_blob *body;    /* of the message read last, when not in blob */
} ipc_source;
/* The next message at source->at; *end instead when there is none. Errors name file and offset. */
weir_status ipc_source_message(ipc_source *source, ipc_message *out, bool *end,
                               weir_error *err);
/* Exactly `size` bytes into buf; WEIR_E_CORRUPT at the end of the source. */
weir_status ipc_source_bytes(ipc_source *source, void *buf, size_t size, weir_error *err);
weir_status ipc_source_error(const ipc_source *source, uint64_t at, weir_error *err,
                             weir_status status);
void ipc_source_done(ipc_source *source);

/* ---- writing ---- */

/* A buffer of a body: borrowed from the batch, or owned. */
typedef struct ipc_piece {
  const void *data;
  int64_t size;
  void *owned; /* freed with the body, or NULL */
} ipc_piece;

/* A record batch, or a dictionary's values, taken apart. */
typedef struct ipc_body {
  base_buf nodes;    /* of ipc_node */
  base_buf pieces;   /* of ipc_piece */
  base_buf variadic; /* of int64_t */
  const int64_t
      *shifts; /* per node of the tree: what to add to dictionary indices; or NULL */
  const arrow_tree *tree;
} ipc_body;
void ipc_body_done(ipc_body *body);
size_t ipc_body_pieces(const ipc_body *body);
const ipc_piece *ipc_body_piece(const ipc_body *body, size_t i);
/* Appends `length` slots of an array from `start` (counted without array->offset) on, as an
 * array without offset. */
weir_status ipc_encode_array(ipc_body *body, const arrow_node *node,
                             const struct ArrowArray *array, int64_t start,
                             int64_t length, weir_error *err);
/* All of it in a row, such that equal bytes mean equal values. */
weir_status ipc_body_flatten(const ipc_body *body, base_buf *out, weir_error *err);
/* Compresses every piece that gets smaller, and puts its size before each. */
weir_status ipc_body_compress(ipc_body *body, ipc_codec codec, int level,
                              weir_error *err);

/* Messages as flatbuffers, padded to 8 bytes, appended to out. `buffers` has one per piece. */
weir_status ipc_flat_schema(const ipc_schema *schema, base_buf *out, weir_error *err);
weir_status ipc_flat_batch(const ipc_message *message, base_buf *out, weir_error *err);
weir_status ipc_flat_footer(const ipc_schema *schema, const ipc_footer *footer,
                            base_buf *out, weir_error *err);

#endif
