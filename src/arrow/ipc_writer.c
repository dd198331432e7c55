/* SPDX-License-Identifier: Apache-2.0 */
/* The writer: messages in order, each dictionary before the first batch that needs it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "arrow/ipc.h"

/* One dictionary as it was written last. */
typedef struct written_dict {
  bool sent;
  bool nested;    /* its values have dictionaries */
  int64_t length; /* of the dictionary of the last batch... */
  base_buf flat;  /* ...and its values, flattened */
  int64_t total;  /* values under this id in the file */
  const struct ArrowArray
      *seen; /* the very array of the last batch, kept alive by writer->last */
} written_dict;

struct weir_ipc_writer {
  ipc_schema schema;
  weir_ipc_write_fn write;
  void *ctx;
  bool file, finished;
  ipc_codec codec;
  int level;
  uint64_t at;
  written_dict *dicts; /* one per node of the tree */
  int64_t *shifts;     /* per node: what its indices are moved by (file only) */
  weir_batch *last;
  ipc_footer footer;
  size_t dictionary_room, batch_room;
  base_buf head, flat; /* scratch */
  weir_status failure;
  weir_error why;
};

static weir_status emit(weir_ipc_writer *w, const void *data, size_t size,
                        weir_error *err) {
  if (size == 0) return WEIR_OK;
  weir_status status = w->write(w->ctx, data, size, err);
  if (status == WEIR_OK) w->at += size;
  return status;
}

static weir_status add_block(ipc_block **blocks, size_t *n, size_t *room, ipc_block block,
                             weir_error *err) {
  if (*n == *room) {
    size_t more = *room == 0 ? 16 : 2 * *room;
    ipc_block *grown = base_realloc(*blocks, more, sizeof *grown, err);
    if (grown == NULL) return WEIR_E_NOMEM;
    *blocks = grown;
    *room = more;
  }
  (*blocks)[(*n)++] = block;
  return WEIR_OK;
}

/* The prefix of a message: 0xFFFFFFFF and the metadata's size, which follows in `head`. */
static weir_status start_head(weir_ipc_writer *w, weir_error *err) {
  static const uint8_t prefix[8] = {0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0};
  base_buf_clear(&w->head);
  return base_buf_append(&w->head, prefix, sizeof prefix, err);
}

static weir_status emit_head(weir_ipc_writer *w, weir_error *err) {
  const uint32_t size = (uint32_t)(w->head.size - 8);
  if (w->head.size > INT32_MAX)
    return weir_error_set(err, WEIR_E_NOT_IMPLEMENTED, 0,
                          "Arrow IPC metadata of more than 2 GiB");
  memcpy(w->head.data + 4, &size, 4);
  return emit(w, w->head.data, w->head.size, err);
}

/* Writes a body and its message; `message` has kind, length, id and delta. */
static weir_status emit_body(weir_ipc_writer *w, ipc_message *message, ipc_body *body,
                             weir_error *err) {
  static const uint8_t zeros[8] = {0};
  const size_t n = ipc_body_pieces(body);
  if (w->codec != IPC_PLAIN) BASE_TRY(ipc_body_compress(body, w->codec, w->level, err));
  ipc_range *ranges = base_calloc(n, sizeof *ranges, err);
  if (ranges == NULL) return WEIR_E_NOMEM;
  for (size_t i = 0; i < n; i++) {
    ranges[i] = (ipc_range){message->body_length, ipc_body_piece(body, i)->size};
    message->body_length += (ranges[i].length + 7) / 8 * 8;
  }
  message->codec = w->codec;
  message->nodes = (const ipc_node *)body->nodes.data;
  message->n_nodes = body->nodes.size / sizeof(ipc_node);
  message->buffers = ranges;
  message->n_buffers = n;
  message->variadic = (const int64_t *)body->variadic.data;
  message->n_variadic = body->variadic.size / sizeof(int64_t);
  const ipc_block block = {(int64_t)w->at, 0, message->body_length};
  weir_status status = start_head(w, err);
  if (status == WEIR_OK) status = ipc_flat_batch(message, &w->head, err);
  if (status == WEIR_OK) status = emit_head(w, err);
  for (size_t i = 0; i < n && status == WEIR_OK; i++) {
    status = emit(w, ipc_body_piece(body, i)->data, (size_t)ranges[i].length, err);
    if (status == WEIR_OK) status = emit(w, zeros, (size_t)(-ranges[i].length & 7), err);
  }
  free(ranges);
  if (status != WEIR_OK || !w->file) return status;
  ipc_block done = block;
  done.metadata_length = (int64_t)w->head.size;
  return message->kind == IPC_BATCH
             ? add_block(&w->footer.batches, &w->footer.n_batches, &w->batch_room, done,
                         err)
             : add_block(&w->footer.dictionaries, &w->footer.n_dictionaries,
                         &w->dictionary_room, done, err);
}

static ipc_body body_of(const weir_ipc_writer *w) {
  return (ipc_body){.shifts = w->shifts, .tree = &w->schema.schema->tree};
}

/* Values [from, array->length) of a dictionary. */
static weir_status emit_values(weir_ipc_writer *w, const arrow_node *node,
                               const struct ArrowArray *array, int64_t from, bool delta,
                               weir_error *err) {
  const size_t i = (size_t)(node - w->schema.schema->tree.nodes);
  ipc_message message = {.kind = IPC_DICTIONARY,
                         .length = array->length - from,
                         .id = w->schema.ids[i],
                         .delta = delta};
  ipc_body body = body_of(w);
  weir_status status =
      ipc_encode_array(&body, node->dictionary, array, from, array->length - from, err);
  if (status == WEIR_OK) status = emit_body(w, &message, &body, err);
  ipc_body_done(&body);
  return status;
}

static weir_status flatten(weir_ipc_writer *w, const arrow_node *node,
                           const struct ArrowArray *array, int64_t length, base_buf *out,
                           weir_error *err) {
  ipc_body body = body_of(w);
  weir_status status = ipc_encode_array(&body, node->dictionary, array, 0, length, err);
  if (status == WEIR_OK) status = ipc_body_flatten(&body, out, err);
  ipc_body_done(&body);
  return status;
}

/* Whether the first values of `array` are those written last. */
static weir_status begins_as_written(weir_ipc_writer *w, const arrow_node *node,
                                     const struct ArrowArray *array, bool *out,
                                     weir_error *err) {
  const written_dict *dict = &w->dicts[node - w->schema.schema->tree.nodes];
  *out = false;
  if (array->length < dict->length) return WEIR_OK;
  BASE_TRY(flatten(w, node, array, dict->length, &w->flat, err));
  *out = w->flat.size == dict->flat.size &&
         (w->flat.size == 0 || memcmp(w->flat.data, dict->flat.data, w->flat.size) == 0);
  return WEIR_OK;
}

static weir_status emit_dictionary(weir_ipc_writer *w, const arrow_node *node,
                                   const struct ArrowArray *array, weir_error *err) {
  const size_t i = (size_t)(node - w->schema.schema->tree.nodes);
  written_dict *dict = &w->dicts[i];
  bool same = false;
  if (dict->sent && !dict->nested && dict->seen == array) return WEIR_OK;
  if (dict->sent) BASE_TRY(begins_as_written(w, node, array, &same, err));
  if (same && array->length == dict->length) return WEIR_OK;
  int64_t from = same ? dict->length : 0;
  bool delta = dict->sent && (same || w->file);
  BASE_TRY(emit_values(w, node, array, from, delta, err));
  if (!same && delta) w->shifts[i] = dict->total;
  dict->total = delta ? dict->total + array->length - from : array->length;
  dict->length = array->length;
  dict->sent = true;
  return flatten(w, node, array, array->length, &dict->flat, err);
}

/* Dictionaries within a dictionary's values come before it, since what it is compared by is its
 * indices as they are written. */
static weir_status emit_dictionaries(weir_ipc_writer *w, const arrow_node *node,
                                     const struct ArrowArray *array, weir_error *err) {
  for (int64_t i = 0; i < node->n_children; i++)
    BASE_TRY(emit_dictionaries(w, &node->children[i], array->children[i], err));
  if (node->dictionary == NULL) return WEIR_OK;
  BASE_TRY(emit_dictionaries(w, node->dictionary, array->dictionary, err));
  return emit_dictionary(w, node, array->dictionary, err);
}

/* Whether there is a dictionary, so that the batch must be kept. */
static bool remember(weir_ipc_writer *w, const arrow_node *node,
                     const struct ArrowArray *array) {
  bool any = node->dictionary != NULL;
  for (int64_t i = 0; i < node->n_children; i++)
    any |= remember(w, &node->children[i], array->children[i]);
  if (node->dictionary == NULL) return any;
  w->dicts[node - w->schema.schema->tree.nodes].seen = array->dictionary;
  remember(w, node->dictionary, array->dictionary);
  return true;
}

static weir_status write_batch(weir_ipc_writer *w, weir_batch *batch, weir_error *err) {
  const arrow_node *root = arrow_schema_root(w->schema.schema);
  const struct ArrowArray *array = weir_batch_array(batch);
  ipc_message message = {.kind = IPC_BATCH, .length = array->length};
  weir_schema *schema = weir_batch_schema(batch);
  if (w->finished)
    return weir_error_set(err, WEIR_E_INVALID_STATE, 0,
                          "Arrow IPC writer: it is finished");
  if (schema != w->schema.schema)
    BASE_TRY(weir_schema_check(weir_schema_arrow(w->schema.schema),
                               weir_schema_arrow(schema), "Arrow IPC writer", err));
  BASE_TRY(emit_dictionaries(w, root, array, err));
  ipc_body body = body_of(w);
  weir_status status = WEIR_OK;
  for (int64_t i = 0; i < root->n_children && status == WEIR_OK; i++)
    status = ipc_encode_array(&body, &root->children[i], array->children[i], 0,
                              array->length, err);
  if (status == WEIR_OK) status = emit_body(w, &message, &body, err);
  ipc_body_done(&body);
  if (status != WEIR_OK) return status;
  if (!remember(w, root, array)) return WEIR_OK;
  weir_batch *before = w->last;
  w->last = weir_batch_ref(batch);
  weir_batch_unref(before);
  return WEIR_OK;
}

static weir_status fail(weir_ipc_writer *w, weir_status status, const weir_error *why,
                        weir_error *err) {
  w->failure = status;
  if (why != &w->why) w->why = *why;
  if (err != NULL) *err = *why;
  return status;
}

weir_status weir_ipc_writer_write(weir_ipc_writer *w, weir_batch *batch,
                                  weir_error *err) {
  weir_error why = {0};
  if (w->failure != WEIR_OK) return fail(w, w->failure, &w->why, err);
  weir_status status = write_batch(w, batch, &why);
  return status == WEIR_OK ? WEIR_OK : fail(w, status, &why, err);
}

static weir_status write_end(weir_ipc_writer *w, weir_error *err) {
  static const uint8_t mark[8] = {0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0};
  BASE_TRY(emit(w, mark, sizeof mark, err));
  if (!w->file) return WEIR_OK;
  base_buf_clear(&w->head);
  BASE_TRY(ipc_flat_footer(&w->schema, &w->footer, &w->head, err));
  if (w->head.size > INT32_MAX)
    return weir_error_set(err, WEIR_E_NOT_IMPLEMENTED, 0,
                          "an Arrow footer of more than 2 GiB");
  const uint32_t size = (uint32_t)w->head.size;
  BASE_TRY(base_buf_append(&w->head, &size, 4, err));
  BASE_TRY(base_buf_append(&w->head, "ARROW1", 6, err));
  return emit(w, w->head.data, w->head.size, err);
}

weir_status weir_ipc_writer_finish(weir_ipc_writer *w, weir_error *err) {
  weir_error why = {0};
  if (w->failure != WEIR_OK) return fail(w, w->failure, &w->why, err);
  if (w->finished) return WEIR_OK;
  weir_status status = write_end(w, &why);
  if (status != WEIR_OK) return fail(w, status, &why, err);
  w->finished = true;
  return WEIR_OK;
}

static bool has_dictionary(const arrow_node *node) {
  if (node->dictionary != NULL) return true;
  for (int64_t i = 0; i < node->n_children; i++)
    if (has_dictionary(&node->children[i])) return true;
  return false;
}

static weir_status prepare(weir_ipc_writer *w, weir_schema *schema, weir_error *err) {
  const arrow_tree *tree = &schema->tree;
  w->schema.schema = weir_schema_ref(schema);
  w->schema.ids = base_calloc(tree->n, sizeof *w->schema.ids, err);
  w->shifts = base_calloc(tree->n, sizeof *w->shifts, err);
  w->dicts = base_calloc(tree->n, sizeof *w->dicts, err);
  if (w->schema.ids == NULL || w->shifts == NULL || w->dicts == NULL) return WEIR_E_NOMEM;
  int64_t next = 0;
  for (size_t i = 0; i < tree->n; i++) {
    if (tree->nodes[i].dictionary == NULL) continue;
    w->schema.ids[i] = next++;
    w->dicts[i].nested = has_dictionary(tree->nodes[i].dictionary);
  }
  if (w->file) BASE_TRY(emit(w, "ARROW1\0", 8, err));
  BASE_TRY(start_head(w, err));
  BASE_TRY(ipc_flat_schema(&w->schema, &w->head, err));
  return emit_head(w, err);
}

weir_status weir_ipc_writer_new(weir_schema *schema,
                                const weir_ipc_writer_options *options,
                                weir_ipc_write_fn write, void *ctx, weir_ipc_writer **out,
                                weir_error *err) {
  weir_ipc_writer_options o = {0};
  if (options != NULL)
    memcpy(&o, options,
           options->struct_size < sizeof o ? options->struct_size : sizeof o);
  if (o.codec < WEIR_IPC_PLAIN || o.codec > WEIR_IPC_ZSTD)
    return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0, "Arrow IPC writer: no codec %d",
                          (int)o.codec);
  weir_ipc_writer *w = base_calloc(1, sizeof *w, err);
  if (w == NULL) return WEIR_E_NOMEM;
  w->write = write;
  w->ctx = ctx;
  w->file = o.file != 0;
  w->codec = (ipc_codec)(o.codec - 1);
  w->level = o.level;
  weir_status status = prepare(w, schema, err);
  if (status == WEIR_OK)
    *out = w;
  else
    weir_ipc_writer_free(w);
  return status;
}

uint64_t weir_ipc_writer_bytes(const weir_ipc_writer *w) {
  return w->at;
}

void weir_ipc_writer_free(weir_ipc_writer *w) {
  if (w == NULL) return;
  for (size_t i = 0; w->dicts != NULL && i < w->schema.schema->tree.n; i++)
    base_buf_done(&w->dicts[i].flat);
  free(w->dicts);
  free(w->shifts);
  ipc_schema_done(&w->schema);
  ipc_footer_done(&w->footer);
  base_buf_done(&w->head);
  base_buf_done(&w->flat);
  weir_batch_unref(w->last);
  free(w);
}
