/* SPDX-License-Identifier: Apache-2.0 */
/* A message's body into arrays ("Arrow Columnar Format", section "RecordBatch message"). */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "arrow/ipc.h"

typedef struct body {
  ipc_decoder *decoder;
  const ipc_message *message;
  ipc_array *made;
  ipc_arena arena;
  size_t node_at, buffer_at, variadic_at;
  uint64_t grown; /* bytes decompressed so far */
  weir_error *err;
} body;

typedef struct span {
  const uint8_t *data;
  int64_t size;
} span;

static weir_status corrupt(const body *b, const arrow_path *path, const char *what) {
  return arrow_path_error(b->err, path, WEIR_E_CORRUPT, "%s", what);
}

/* A compressed buffer starts with its size before compression; -1: it was left plain. */
static weir_status decompress(body *b, span from, const arrow_path *path, span *out) {
  int64_t size = 0;
  void *block = NULL;
  if (from.size < 8) return corrupt(b, path, "a compressed buffer without its size");
  memcpy(&size, from.data, 8);
  from.data += 8;
  from.size -= 8;
  if (size == -1) {
    *out = from;
    return WEIR_OK;
  }
  if (size < 0) return corrupt(b, path, "a compressed buffer of negative size");
  if ((uint64_t)size > b->decoder->max_bytes - b->grown)
    return arrow_path_error(b->err, path, WEIR_E_CORRUPT,
                            "the message decompresses to more than %" PRIu64 " bytes",
                            b->decoder->max_bytes);
  b->grown += (uint64_t)size;
  weir_status status = ipc_decompress(b->decoder, b->message->codec, from.data,
                                      (size_t)from.size, (size_t)size, &block, b->err);
  if (status != WEIR_OK) return status;
  BASE_TRY(ipc_array_adopt(b->made, block, b->err));
  *out = (span){block, size};
  return WEIR_OK;
}

/* The next buffer, of at least `need` bytes, aligned for elements of `align` bytes. An empty one is
 * never NULL. */
static weir_status take_buffer(body *b, uint64_t need, size_t align,
                               const arrow_path *path, span *out) {
  const ipc_message *m = b->message;
  if (b->buffer_at == m->n_buffers)
    return corrupt(b, path, "the message has too few buffers");
  ipc_range range = m->buffers[b->buffer_at++];
  if (range.offset < 0 || range.length < 0 || range.offset > m->body_length ||
      range.length > m->body_length - range.offset)
    return arrow_path_error(b->err, path, WEIR_E_CORRUPT,
                            "a buffer of %" PRId64 " bytes at %" PRId64
                            " is outside the body of %" PRId64,
                            range.length, range.offset, m->body_length);
  span found = {m->body + range.offset, range.length};
  if (m->codec != IPC_PLAIN && range.length > 0)
    BASE_TRY(decompress(b, found, path, &found));
  if ((uint64_t)found.size < need)
    return arrow_path_error(b->err, path, WEIR_E_CORRUPT,
                            "a buffer has %" PRId64 " bytes, expected %" PRIu64,
                            found.size, need);
  if (found.size == 0) {
    found.data = (const uint8_t *)ipc_zeros;
  } else if ((uintptr_t)found.data % align != 0) {
    void *copy = ipc_array_alloc(b->made, (size_t)found.size, b->err);
    if (copy == NULL) return WEIR_E_NOMEM;
    memcpy(copy, found.data, (size_t)found.size);
    found.data = copy;
  }
  *out = found;
  return WEIR_OK;
}

/* With null_count 0 writers may leave the bitmap out, or its bits unset: it is dropped. */
static weir_status take_validity(body *b, const arrow_path *path,
                                 struct ArrowArray *out) {
  span validity = {0};
  uint64_t need = out->null_count == 0 ? 0 : ((uint64_t)out->length + 7) / 8;
  BASE_TRY(take_buffer(b, need, 1, path, &validity));
  out->buffers[0] = out->null_count == 0 ? NULL : validity.data;
  return WEIR_OK;
}

static weir_status take_into(body *b, uint64_t need, size_t align, const arrow_path *path,
                             const void **out) {
  span found = {0};
  BASE_TRY(take_buffer(b, need, align, path, &found));
  *out = found.data;
  return WEIR_OK;
}

/* Offsets may be left out of an array of no slots. */
static uint64_t offsets_size(const arrow_node *node, const struct ArrowArray *out) {
  return out->length == 0 ? 0 : ((uint64_t)out->length + 1) * (uint64_t)node->width;
}

static weir_status take_bytes(body *b, const arrow_node *node, const arrow_path *path,
                              struct ArrowArray *out) {
  span data = {0};
  BASE_TRY(
      take_into(b, offsets_size(node, out), (size_t)node->width, path, &out->buffers[1]));
  BASE_TRY(take_buffer(b, 0, 1, path, &data));
  out->buffers[2] = data.data;
  if (out->length == 0) return WEIR_OK;
  int64_t last = arrow_offset_at(out->buffers[1], node->width, out->length);
  if (last > data.size)
    return arrow_path_error(b->err, path, WEIR_E_CORRUPT,
                            "the last offset %" PRId64 " is past the data of %" PRId64
                            " bytes",
                            last, data.size);
  return WEIR_OK;
}

static weir_status take_views(body *b, size_t variadic, const arrow_path *path,
                              struct ArrowArray *out) {
  int64_t *sizes = b->arena.sizes;
  b->arena.sizes += variadic;
  BASE_TRY(take_into(b, (uint64_t)out->length * 16, 8, path, &out->buffers[1]));
  for (size_t i = 0; i < variadic; i++) {
    span data = {0};
    BASE_TRY(take_buffer(b, 0, 1, path, &data));
    out->buffers[2 + i] = data.data;
    sizes[i] = data.size;
  }
  out->buffers[2 + variadic] = sizes;
  return WEIR_OK;
}

static size_t value_align(const arrow_node *node) {
  if (node->storage == NANOARROW_TYPE_FIXED_SIZE_BINARY) return 1;
  return node->width > 8 ? 8 : (size_t)node->width;
}

static weir_status take_buffers(body *b, const arrow_node *node, size_t variadic,
                                const arrow_path *path, struct ArrowArray *out) {
  const uint64_t n = (uint64_t)out->length, width = (uint64_t)node->width;
  uint64_t need = 0;
  if (arrow_node_has_validity(node)) BASE_TRY(take_validity(b, path, out));
  switch (node->layout) {
    case ARROW_BITS:
      return take_into(b, (n + 7) / 8, 1, path, &out->buffers[1]);
    case ARROW_FIXED:
      if (__builtin_mul_overflow(n, width, &need)) need = UINT64_MAX;
      return take_into(b, need, value_align(node), path, &out->buffers[1]);
    case ARROW_BYTES:
      return take_bytes(b, node, path, out);
    case ARROW_VIEWS:
      return take_views(b, variadic, path, out);
    case ARROW_LIST:
      return take_into(b, offsets_size(node, out), (size_t)width, path, &out->buffers[1]);
    case ARROW_LIST_VIEW:
      BASE_TRY(take_into(b, n * width, (size_t)width, path, &out->buffers[1]));
      return take_into(b, n * width, (size_t)width, path, &out->buffers[2]);
    case ARROW_SPARSE_UNION:
      return take_into(b, n, 1, path, &out->buffers[0]);
    case ARROW_DENSE_UNION:
      BASE_TRY(take_into(b, n, 1, path, &out->buffers[0]));
      return take_into(b, n * 4, 4, path, &out->buffers[1]);
    case ARROW_NULL:
    case ARROW_RUN_ENDS:
    case ARROW_STRUCT:
    case ARROW_FIXED_LIST:
      break;
  }
  return WEIR_OK;
}

/* Slots that no byte of the file stands for must not be without number. */
static bool length_ok(const arrow_node *node, int64_t length) {
  bool free_slots = node->layout == ARROW_NULL || node->layout == ARROW_STRUCT ||
                    node->layout == ARROW_FIXED_LIST || node->layout == ARROW_RUN_ENDS;
  return length >= 0 && length <= (free_slots ? INT32_MAX : INT64_MAX / 64);
}

static weir_status take_array(body *b, const arrow_node *node, const arrow_path *path,
                              struct ArrowArray *out);

static weir_status take_children(body *b, const arrow_node *node, const arrow_path *path,
                                 struct ArrowArray *out) {
  for (int64_t i = 0; i < node->n_children; i++) {
    const char *name = node->children[i].schema->name;
    arrow_path here = {path, path == NULL ? "column" : "field", i,
                       name == NULL ? "" : name};
    BASE_TRY(take_array(b, &node->children[i], &here, out->children[i]));
  }
  return WEIR_OK;
}

/* Until V4 every type but null had a validity bitmap, unions too. */
static weir_status drop_validity(body *b, int64_t nulls, const arrow_path *path) {
  span validity = {0};
  if (nulls > 0)
    return arrow_path_error(
        b->err, path, WEIR_E_NOT_IMPLEMENTED,
        "a union with nulls of its own, which metadata version V5 (Arrow 1.0) "
        "did away with");
  return take_buffer(b, 0, 1, path, &validity);
}

static weir_status take_array(body *b, const arrow_node *node, const arrow_path *path,
                              struct ArrowArray *out) {
  const ipc_message *m = b->message;
  int64_t fixed = arrow_node_buffers(node);
  size_t variadic = 0;
  if (b->node_at == m->n_nodes)
    return corrupt(b, path, "the message has too few field nodes");
  ipc_node field = m->nodes[b->node_at++];
  if (!length_ok(node, field.length) || field.null_count < 0 ||
      field.null_count > field.length)
    return arrow_path_error(b->err, path, WEIR_E_CORRUPT,
                            "%" PRId64 " nulls in %" PRId64 " slots make no sense",
                            field.null_count, field.length);
  if (fixed < 0) {
    if (b->variadic_at == m->n_variadic)
      return corrupt(b, path, "the message has too few variadic buffer counts");
    int64_t count = m->variadic[b->variadic_at++];
    if (count < 0 || (uint64_t)count > m->n_buffers - b->buffer_at)
      return corrupt(b, path, "a variadic buffer count makes no sense");
    variadic = (size_t)count;
  }
  ipc_arena_shape(&b->arena, node, fixed < 0 ? 3 + variadic : (size_t)fixed, out);
  out->length = field.length;
  /* Types without validity have no nulls of their own; some writers count their children's. */
  bool validity = arrow_node_has_validity(node);
  out->null_count = node->layout == ARROW_NULL ? field.length
                    : validity                 ? field.null_count
                                               : 0;
  if (m->v4 && !validity && node->layout != ARROW_NULL)
    BASE_TRY(drop_validity(b, field.null_count, path));
  BASE_TRY(take_buffers(b, node, variadic, path, out));
  return take_children(b, node, path, out);
}

/* The struct of a record batch's columns, which has no field node of its own. */
static weir_status take_batch(body *b, const arrow_node *root, struct ArrowArray *out) {
  const ipc_message *m = b->message;
  if (m->length < 0 || m->length > INT32_MAX)
    return weir_error_set(
        b->err, WEIR_E_CORRUPT, 0,
        "a record batch of %" PRId64 " rows; at most 2147483647 can be read", m->length);
  ipc_arena_shape(&b->arena, root, 1, out);
  out->length = m->length;
  BASE_TRY(take_children(b, root, NULL, out));
  for (int64_t i = 0; i < out->n_children; i++)
    if (out->children[i]->length != m->length)
      return weir_error_set(
          b->err, WEIR_E_CORRUPT, 0,
          "column %" PRId64 " '%s' has %" PRId64 " slots in a batch of %" PRId64 " rows",
          i, root->children[i].schema->name, out->children[i]->length, m->length);
  return WEIR_OK;
}

weir_status ipc_body_decode(ipc_decoder *decoder, const arrow_node *node,
                            const ipc_message *message, ipc_array **out,
                            weir_error *err) {
  body b = {.decoder = decoder, .message = message, .err = err};
  const arrow_path values = {NULL, "dictionary", -1, NULL};
  const arrow_path *path = message->kind == IPC_BATCH ? NULL : &values;
  weir_status status = WEIR_OK;
  b.made = ipc_array_new(err);
  if (b.made == NULL) return WEIR_E_NOMEM;
  if (message->blob != NULL) b.made->body = ipc_blob_ref(message->blob);
  /* Views have more buffers than their layout says, but not more than the message. */
  BASE_GOTO(status,
            ipc_arena_init(&b.arena, b.made, node, false, message->n_buffers, err));
  if (message->kind == IPC_BATCH)
    BASE_GOTO(status, take_batch(&b, node, &b.made->root));
  else
    BASE_GOTO(status, take_array(&b, node, path, &b.made->root));
  if (b.node_at != message->n_nodes || b.buffer_at != message->n_buffers ||
      b.variadic_at != message->n_variadic) {
    status = weir_error_set(
        err, WEIR_E_CORRUPT, 0,
        "the message has more field nodes or buffers than its schema asks for");
    goto out;
  }
  status = arrow_array_check(node, &b.made->root, 0, path, err);
  /* Arrays of a shape that does not fit cannot come from above; so it is the bytes. */
  if (status == WEIR_E_SCHEMA) {
    status = WEIR_E_CORRUPT;
    if (err != NULL) err->code = status;
  }
out:
  if (status == WEIR_OK)
    *out = b.made;
  else
    ipc_array_unref(b.made);
  return status;
}
