/* SPDX-License-Identifier: Apache-2.0 */
/* The NDJSON encoder: batches to lines. */
#include <errno.h>
#include <nanoarrow/nanoarrow.h>
#include <stdlib.h>
#include <string.h>

#include "arrow/arrow.h"
#include "base/base.h"
#include "format/ndjson.h"
#include "format/plain.h"

/* Bytes of a row, as many as a decoder takes. List views and dictionaries may show the same bytes many
 * times, and nested ones so often that no memory would hold them. */
#define MAX_ROW ((size_t)1 << 30)
/* Room for any value that is not a string, its quotes, and what follows it. */
#define VALUE_ROOM FORMAT_VALUE_TEXT

/* A column, or what lies below one. */
typedef struct encoder_node {
  format_column *type; /* of the values, dictionary or not */
  char *key;           /* `"name":` with the brace or comma before it; NULL for items */
  size_t key_size;
  const struct ArrowArrayView *view, *values; /* differ for dictionaries */
  struct encoder_node *children;
  int64_t n_children;
} encoder_node;

struct weir_ndjson_encoder {
  weir_schema *schema;
  struct ArrowArrayView view;
  format_column *types;
  encoder_node *columns;
  int64_t n_columns;
  base_buf text;
  base_buf keys; /* of format_key: those of one map */
  size_t max_row;
};

/* The row at hand, for messages. */
typedef struct encoder_row {
  weir_ndjson_encoder *encoder;
  int64_t row;
  size_t start; /* of its text */
  int32_t column;
  weir_error *err;
} encoder_row;

static weir_status put_string(base_buf *buf, const uint8_t *text, size_t n,
                              weir_error *err) {
  static const char hex[] = "0123456789abcdef";
  static const char escapes[32] = {
      ['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'};
  size_t room = n * 6 + 2 + VALUE_ROOM;
  if (n >= 4096) { /* six bytes a character is rare: worth counting for long strings */
    room = 2 + VALUE_ROOM;
    for (size_t i = 0; i < n; i++) room += text[i] < 0x20 ? 6 : 2;
  }
  BASE_TRY(base_buf_reserve(buf, room, err));
  uint8_t *p = buf->data + buf->size;
  *p++ = '"';
  for (size_t i = 0; i < n;) {
    size_t run = i;
    while (run < n && !ndjson_is_stop(text[run])) run++;
    memcpy(p, text + i, run - i);
    p += run - i;
    i = run;
    if (i == n) break;
    uint8_t c = text[i++];
    *p++ = '\\';
    if (c >= 0x20) {
      *p++ = c;
    } else if (escapes[c]) {
      *p++ = (uint8_t)escapes[c];
    } else {
      memcpy(p, "u00", 3);
      p[3] = (uint8_t)hex[c >> 4];
      p[4] = (uint8_t)hex[c & 15];
      p += 5;
    }
  }
  *p++ = '"';
  buf->size = (size_t)(p - buf->data);
  return WEIR_OK;
}

#if defined(__SSE2__)
static inline __m128i find_special(const void *context, __m128i v) {
  (void)context;
  return ndjson_stops(v);
}

/* A text without escapes, in its quotes; false for any other. */
static inline bool put_plain(base_buf *buf, const uint8_t *text, size_t n) {
  if (base_buf_reserve(buf, n + 2 + VALUE_ROOM, NULL) != WEIR_OK) return false;
  uint8_t *p = buf->data + buf->size;
  if (!format_copy_plain(p + 1, text, n, find_special, NULL)) return false;
  p[0] = p[n + 1] = '"';
  buf->size += n + 2;
  return true;
}
#endif

static weir_status bad_value(const encoder_row *r, const ndjson_path *path,
                             const char *what) {
  char where[NDJSON_PATH_TEXT];
  ndjson_path_text(path, where);
  weir_status status =
      weir_error_set(r->err, WEIR_E_BAD_DATA, WEIR_ERR_BAD_DATA,
                     "column '%s': %s, so NDJSON cannot carry it", where, what);
  return weir_error_at(r->err, status, r->row, r->column);
}

static weir_status put_flat(const encoder_row *r, const encoder_node *node,
                            const ndjson_path *path, int64_t i) {
  base_buf *buf = &r->encoder->text;
  format_kind kind = node->type->kind;
  char *p = (char *)buf->data + buf->size, *end;
  if (kind == FORMAT_UTF8) {
    struct ArrowStringView text = ArrowArrayViewGetStringUnsafe(node->values, i);
#if defined(__SSE2__)
    if (FORMAT_LIKELY(
            put_plain(buf, (const uint8_t *)text.data, (size_t)text.size_bytes)))
      return WEIR_OK;
#endif
    if (!base_utf8_valid(text.data, (size_t)text.size_bytes)) {
      return bad_value(r, path, "the string is not valid UTF-8");
    }
    return put_string(buf, (const uint8_t *)text.data, (size_t)text.size_bytes, r->err);
  }
  if (kind == FORMAT_BINARY || kind == FORMAT_FIXED) {
    struct ArrowBufferView bytes = ArrowArrayViewGetBytesUnsafe(node->values, i);
    BASE_TRY(
        base_buf_reserve(buf, (size_t)bytes.size_bytes / 3 * 4 + VALUE_ROOM, r->err));
    p = (char *)buf->data + buf->size;
    end = p;
    *end++ = '"';
    end += format_base64_write(bytes.data.as_uint8, (size_t)bytes.size_bytes, end);
    *end++ = '"';
  } else {
    end = format_value_write(p, node->type, node->values, i, true);
    if (end == NULL) return bad_value(r, path, "the value is outside of its calendar");
  }
  buf->size += (size_t)(end - p);
  return WEIR_OK;
}

static weir_status put_nested(const encoder_row *r, const encoder_node *node,
                              const ndjson_path *path, int64_t i);

/* Value i of a node, with room for its text. Sets *slot to where it lies among the values, -1: null. */
static weir_status find_value(const encoder_row *r, const encoder_node *node,
                              const ndjson_path *path, int64_t i, int64_t *slot) {
  bool null = ArrowArrayViewIsNull(node->view, i);
  if (!null && node->values != node->view) {
    i = ArrowArrayViewGetIntUnsafe(node->view, i);
    if (i < 0 || i >= node->values->length) {
      return bad_value(r, path, "the index is outside of its dictionary");
    }
    null = ArrowArrayViewIsNull(node->values, i);
  }
  *slot = null ? -1 : i;
  return WEIR_OK;
}

static weir_status put_value(const encoder_row *r, const encoder_node *node,
                             const ndjson_path *path, int64_t i) {
  base_buf *buf = &r->encoder->text;
  int64_t slot = 0;
  BASE_TRY(base_buf_reserve(buf, node->key_size + VALUE_ROOM, r->err));
  if (node->key_size > 0) memcpy(buf->data + buf->size, node->key, node->key_size);
  buf->size += node->key_size;
  BASE_TRY(find_value(r, node, path, i, &slot));
  if (FORMAT_UNLIKELY(buf->size - r->start > r->encoder->max_row))
    return bad_value(r, path, "the row takes more than 1 GiB of text");
  if (slot < 0) {
    memcpy(buf->data + buf->size, "null", 4);
    buf->size += 4;
    return WEIR_OK;
  }
  if (node->type->kind >= FORMAT_LIST) return put_nested(r, node, path, slot);
  return put_flat(r, node, path, slot);
}

static weir_status put_struct(const encoder_row *r, const encoder_node *node,
                              const ndjson_path *path, int64_t i) {
  base_buf *buf = &r->encoder->text;
  for (int64_t k = 0; k < node->n_children; k++) {
    ndjson_path field = {path, node->children[k].type, NULL, -1};
    BASE_TRY(put_value(r, &node->children[k], &field, node->values->offset + i));
  }
  return base_buf_append(buf, node->n_children > 0 ? "}" : "{}",
                         node->n_children > 0 ? 1 : 2, r->err);
}

/* The items of list i among those of the child. */
static void list_bounds(const encoder_node *node, int64_t i, int64_t *start,
                        int64_t *end) {
  const struct ArrowArrayView *view = node->values;
  const format_column *type = node->type;
  if (type->kind == FORMAT_FIXED_LIST) {
    *start = (view->offset + i) * type->list_size;
    *end = *start + type->list_size;
    return;
  }
  const void *offsets = view->buffer_views[1].data.data;
  int64_t slot = view->offset + i;
  *start = arrow_offset_at(offsets, type->width, slot);
  *end = type->list_view ? *start + arrow_offset_at(view->buffer_views[2].data.data,
                                                    type->width, slot)
                         : arrow_offset_at(offsets, type->width, slot + 1);
}

/* The keys of map entries [start, end) into encoder->keys, none of them null. */
static weir_status find_keys(const encoder_row *r, const encoder_node *map,
                             const ndjson_path *path, int64_t start, int64_t end) {
  const encoder_node *entries = &map->children[0], *keys = &entries->children[0];
  base_buf *found = &r->encoder->keys;
  base_buf_clear(found);
  for (int64_t i = start; i < end; i++) {
    ndjson_path item = {path, keys->type, NULL, i - start};
    int64_t slot = -1;
    if (!ArrowArrayViewIsNull(entries->view, i))
      BASE_TRY(find_value(r, keys, &item, entries->values->offset + i, &slot));
    if (slot < 0) return bad_value(r, &item, "the entry or its key is null");
    if (!map->type->string_keys) continue;
    struct ArrowStringView text = ArrowArrayViewGetStringUnsafe(keys->values, slot);
    format_key key = {(const uint8_t *)text.data, (size_t)text.size_bytes, i - start};
    if (!base_utf8_valid(key.data, key.size))
      return bad_value(r, &item, "the key is not valid UTF-8");
    BASE_TRY(base_buf_append(found, &key, sizeof(key), r->err));
  }
  format_key twice = {0};
  if (map->type->string_keys && format_keys_repeat((format_key *)(void *)found->data,
                                                   (size_t)(end - start), &twice)) {
    ndjson_path key = {path, keys->type, &twice, -1};
    return bad_value(r, &key, "the map has this key twice");
  }
  return WEIR_OK;
}

/* Entries [start, end) as the members of an object. */
static weir_status put_members(const encoder_row *r, const encoder_node *map,
                               const ndjson_path *path, int64_t start, int64_t end) {
  const encoder_node *entries = &map->children[0], *keys = &entries->children[0];
  base_buf *buf = &r->encoder->text;
  for (int64_t i = start; i < end; i++) {
    int64_t at = entries->values->offset + i, slot = 0;
    BASE_TRY(base_buf_append_byte(buf, i == start ? '{' : ',', r->err));
    BASE_TRY(find_value(r, keys, path, at, &slot));
    struct ArrowStringView text = ArrowArrayViewGetStringUnsafe(keys->values, slot);
    format_key key = {(const uint8_t *)text.data, (size_t)text.size_bytes, i - start};
    BASE_TRY(put_string(buf, key.data, key.size, r->err));
    BASE_TRY(base_buf_append_byte(buf, ':', r->err));
    ndjson_path value = {path, entries->children[1].type, &key, -1};
    BASE_TRY(put_value(r, &entries->children[1], &value, at));
  }
  return base_buf_append(buf, start < end ? "}" : "{}", start < end ? 1 : 2, r->err);
}

static weir_status put_nested(const encoder_row *r, const encoder_node *node,
                              const ndjson_path *path, int64_t i) {
  base_buf *buf = &r->encoder->text;
  int64_t start = 0, end = 0;
  if (node->type->kind == FORMAT_STRUCT) return put_struct(r, node, path, i);
  list_bounds(node, i, &start, &end);
  if (node->type->kind == FORMAT_MAP) {
    BASE_TRY(find_keys(r, node, path, start, end));
    if (node->type->string_keys) return put_members(r, node, path, start, end);
  }
  ndjson_path item = {path, node->children[0].type, NULL, 0};
  BASE_TRY(base_buf_append_byte(buf, '[', r->err));
  for (int64_t k = start; k < end; k++, item.item++) {
    if (k > start) BASE_TRY(base_buf_append_byte(buf, ',', r->err));
    BASE_TRY(put_value(r, &node->children[0], &item, k));
  }
  return base_buf_append_byte(buf, ']', r->err);
}

/* `place` is that among its siblings, for the brace or comma before the key; -1 for items. */
static weir_status node_init(encoder_node *node, format_column *type,
                             const struct ArrowArrayView *view, int64_t place,
                             weir_error *err) {
  base_buf key = {0};
  weir_status status = WEIR_OK;
  node->type = type;
  node->view = view;
  node->values = view->dictionary ? view->dictionary : view;
  node->children = base_calloc((size_t)type->n_children, sizeof(*node->children), err);
  if (node->children == NULL) return WEIR_E_NOMEM;
  node->n_children = type->n_children;
  for (int64_t i = 0; i < type->n_children; i++) {
    BASE_TRY(node_init(&node->children[i], &type->children[i], node->values->children[i],
                       type->kind == FORMAT_STRUCT ? i : -1, err));
  }
  if (type->kind == FORMAT_MAP && type->string_keys) {
    encoder_node *value = &node->children[0].children[1]; /* its key is the entry's */
    free(value->key);
    value->key = NULL;
    value->key_size = 0;
  }
  if (place < 0) return WEIR_OK;
  BASE_GOTO(status, base_buf_append_byte(&key, place == 0 ? '{' : ',', err));
  BASE_GOTO(status, put_string(&key, (const uint8_t *)type->name, type->name_len, err));
  BASE_GOTO(status, base_buf_append_byte(&key, ':', err));
  node->key_size = key.size;
  node->key = base_buf_steal_str(&key, err);
  if (node->key == NULL) status = WEIR_E_NOMEM;
out:
  base_buf_done(&key);
  return status;
}

static void node_done(encoder_node *node) {
  for (int64_t i = 0; i < node->n_children; i++) node_done(&node->children[i]);
  free(node->children);
  free(node->key);
}

static weir_status encoder_init(weir_ndjson_encoder *encoder, weir_error *err) {
  const struct ArrowSchema *arrow = weir_schema_arrow(encoder->schema);
  struct ArrowError why = {0};
  size_t n = (size_t)arrow->n_children;
  encoder->types = base_calloc(n, sizeof(*encoder->types), err);
  encoder->columns = base_calloc(n, sizeof(*encoder->columns), err);
  if (encoder->types == NULL || encoder->columns == NULL) return WEIR_E_NOMEM;
  encoder->n_columns = arrow->n_children;
  for (int64_t i = 0; i < arrow->n_children; i++) {
    BASE_TRY(format_column_init(&encoder->types[i], arrow->children[i],
                                FORMAT_VIEWS | FORMAT_NESTED | FORMAT_ENCODED,
                                "written as NDJSON", err));
  }
  ArrowErrorCode code = ArrowArrayViewInitFromSchema(&encoder->view, arrow, &why);
  if (code != NANOARROW_OK) {
    return weir_error_set(err, code == ENOMEM ? WEIR_E_NOMEM : WEIR_E_SCHEMA, 0,
                          "NDJSON: %s", why.message);
  }
  for (int64_t i = 0; i < encoder->n_columns; i++) {
    BASE_TRY(node_init(&encoder->columns[i], &encoder->types[i],
                       encoder->view.children[i], i, err));
  }
  return WEIR_OK;
}

weir_status weir_ndjson_encoder_new(weir_schema *schema, weir_ndjson_encoder **out,
                                    weir_error *err) {
  weir_ndjson_encoder *encoder = base_calloc(1, sizeof(*encoder), err);
  if (encoder == NULL) return WEIR_E_NOMEM;
  ArrowArrayViewInitFromType(&encoder->view, NANOARROW_TYPE_UNINITIALIZED);
  encoder->max_row = MAX_ROW;
  encoder->schema = weir_schema_ref(schema);
  weir_status status = encoder_init(encoder, err);
  if (status != WEIR_OK) {
    weir_ndjson_encoder_free(encoder);
    return status;
  }
  *out = encoder;
  return WEIR_OK;
}

void weir_ndjson_encoder_free(weir_ndjson_encoder *encoder) {
  if (encoder == NULL) return;
  for (int64_t i = 0; i < encoder->n_columns; i++) {
    node_done(&encoder->columns[i]);
    format_column_done(&encoder->types[i]);
  }
  free(encoder->columns);
  free(encoder->types);
  ArrowArrayViewReset(&encoder->view);
  base_buf_done(&encoder->text);
  base_buf_done(&encoder->keys);
  weir_schema_unref(encoder->schema);
  free(encoder);
}

void ndjson_encoder_limit_row(weir_ndjson_encoder *encoder, size_t size) {
  encoder->max_row = size;
}

weir_status weir_ndjson_encoder_write(weir_ndjson_encoder *encoder,
                                      const weir_batch *batch, const uint8_t **data,
                                      size_t *size, weir_error *err) {
  const struct ArrowArray *array = weir_batch_array(batch);
  struct ArrowError why = {0};
  BASE_TRY(weir_schema_check(weir_schema_arrow(encoder->schema),
                             weir_schema_arrow(weir_batch_schema(batch)), "NDJSON", err));
  if (ArrowArrayViewSetArray(&encoder->view, array, &why) != NANOARROW_OK) {
    return weir_error_set(err, WEIR_E_INTERNAL, 0, "NDJSON: %s", why.message);
  }
  base_buf *buf = &encoder->text;
  base_buf_clear(buf);
  encoder_row r = {encoder, 0, 0, 0, err};
  for (; r.row < array->length; r.row++) {
    r.start = buf->size;
    for (r.column = 0; r.column < encoder->n_columns; r.column++) {
      const encoder_node *node = &encoder->columns[r.column];
      ndjson_path path = {NULL, node->type, NULL, -1};
      BASE_TRY(put_value(&r, node, &path, array->offset + r.row));
    }
    if (encoder->n_columns == 0) BASE_TRY(base_buf_append_byte(buf, '{', err));
    BASE_TRY(base_buf_append(buf, "}\n", 2, err));
  }
  *data = buf->data;
  *size = buf->size;
  return WEIR_OK;
}
