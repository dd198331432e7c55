/* SPDX-License-Identifier: Apache-2.0 */
/* Keys and values of NDJSON, looked at for their types. */
#include <string.h>
#include <yyjson.h>

#include "format/infer.h"

static bool names_float(const char *text, size_t n) {
  return (n == 3 && memcmp(text, "NaN", 3) == 0) ||
         (n == 8 && memcmp(text, "Infinity", 8) == 0) ||
         (n == 9 && memcmp(text, "-Infinity", 9) == 0);
}

static void note_text(infer_node *node, const char *text, size_t n) {
  unsigned may = 0;
  if (node->may != 0) {
    may = names_float(text, n) ? INFER_FLOAT : infer_chrono((const uint8_t *)text, n);
  }
  infer_note(node, may, INFER_SEEN_SCALAR);
}

static weir_status note_value(weir_inference *inference, infer_node *node,
                              yyjson_val *value, int depth, weir_error *err);

static weir_status note_object(weir_inference *inference, infer_node *node,
                               yyjson_val *object, int depth, weir_error *err) {
  yyjson_obj_iter iter;
  yyjson_val *key;
  size_t place = 0;
  yyjson_obj_iter_init(object, &iter);
  while ((key = yyjson_obj_iter_next(&iter)) != NULL) {
    infer_node *child = NULL;
    BASE_TRY(infer_child(inference, node, yyjson_get_str(key), yyjson_get_len(key),
                         place++, &child, err));
    BASE_TRY(note_value(inference, child, yyjson_obj_iter_get_val(key), depth, err));
  }
  return WEIR_OK;
}

static weir_status note_list(weir_inference *inference, infer_node *node,
                             yyjson_val *list, int depth, weir_error *err) {
  yyjson_arr_iter iter;
  yyjson_val *value;
  infer_node *items = NULL;
  yyjson_arr_iter_init(list, &iter);
  while ((value = yyjson_arr_iter_next(&iter)) != NULL) {
    BASE_TRY(infer_items(inference, node, &items, err));
    BASE_TRY(note_value(inference, items, value, depth, err));
  }
  return WEIR_OK;
}

static weir_status note_value(weir_inference *inference, infer_node *node,
                              yyjson_val *value, int depth, weir_error *err) {
  unsigned may;
  switch (yyjson_get_type(value)) {
    case YYJSON_TYPE_NULL:
      return WEIR_OK;
    case YYJSON_TYPE_BOOL:
      infer_note(node, INFER_BOOL, INFER_SEEN_SCALAR);
      return WEIR_OK;
    case YYJSON_TYPE_RAW:
      may = infer_number((const uint8_t *)yyjson_get_raw(value), yyjson_get_len(value),
                         false);
      infer_note(node, may, INFER_SEEN_SCALAR | INFER_SEEN_NUMBER);
      return WEIR_OK;
    case YYJSON_TYPE_STR:
      note_text(node, yyjson_get_str(value), yyjson_get_len(value));
      return WEIR_OK;
    case YYJSON_TYPE_OBJ:
      infer_note(node, 0, INFER_SEEN_OBJECT);
      if (depth < INFER_MAX_DEPTH)
        return note_object(inference, node, value, depth + 1, err);
      return WEIR_OK;
    default:
      infer_note(node, 0, INFER_SEEN_LIST);
      if (depth < INFER_MAX_DEPTH)
        return note_list(inference, node, value, depth + 1, err);
      return WEIR_OK;
  }
}

static weir_status look_at(weir_inference *inference, const uint8_t *line, size_t size,
                           weir_error *err) {
  yyjson_read_err why = {0};
  weir_status status = WEIR_OK;
  yyjson_doc *doc = yyjson_read_opts((char *)(uintptr_t)line, size,
                                     YYJSON_READ_NUMBER_AS_RAW, NULL, &why);
  if (doc == NULL && why.code == YYJSON_READ_ERROR_MEMORY_ALLOCATION)
    return weir_error_set(err, WEIR_E_NOMEM, 0, "no memory for a line");
  if (yyjson_is_obj(yyjson_doc_get_root(doc))) {
    status = note_object(inference, &inference->root, yyjson_doc_get_root(doc), 1, err);
    if (status == WEIR_OK) inference->rows++;
  }
  yyjson_doc_free(doc);
  return status;
}

weir_status infer_ndjson_feed(weir_inference *inference, const uint8_t *data, size_t size,
                              int last, int64_t rows, size_t *used, weir_error *err) {
  size_t done = 0;
  for (int64_t n = 0; n < rows && done < size;) {
    const uint8_t *line = data + done, *end = memchr(line, '\n', size - done);
    size_t whole = end != NULL ? (size_t)(end - line) + 1 : size - done;
    if (whole > inference->max_line + 1) return infer_too_long(inference, err);
    if (end == NULL && !last) break;
    size_t blanks = 0;
    while (blanks < whole && strchr(" \t\r\n", line[blanks]) != NULL && line[blanks])
      blanks++;
    if (blanks < whole) {
      BASE_TRY(look_at(inference, line, whole, err));
      n++;
    }
    inference->line++;
    done += whole;
  }
  *used = done;
  return WEIR_OK;
}
