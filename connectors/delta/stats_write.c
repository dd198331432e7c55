/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

#include "stats_node.h"

enum { MIN, MAX, NULLS };

/* The largest character behind a prefix bounds every value that begins with it; those that go on with that character
 * itself were left out. */
static yyjson_mut_val *text_value(yyjson_mut_doc *doc, const stats_text *text, int what) {
  static const char largest[] = "\xf4\x8f\xbf\xbf";
  char bound[sizeof(text->p) + sizeof(largest)];
  memcpy(bound, text->p, text->n);
  size_t n = text->n;
  if (what == MAX && text->cut) {
    memcpy(bound + n, largest, strlen(largest));
    n += strlen(largest);
  }
  return yyjson_mut_strncpy(doc, bound, n);
}

/* *absent: there is no such bound. */
static yyjson_mut_val *bound_value(yyjson_mut_doc *doc, const stats_node *node, int what,
                                   bool *absent) {
  const stats_bound *b = what == MIN ? &node->min : &node->max;
  char text[DELTA_VALUE_SIZE];
  *absent = true;
  if (!node->has || node->no_bounds) return NULL;
  switch (node->type) {
    case DELTA_TYPE_BYTE:
    case DELTA_TYPE_SHORT:
    case DELTA_TYPE_INTEGER:
    case DELTA_TYPE_LONG:
      *absent = false;
      return yyjson_mut_sint(doc, b->i);
    case DELTA_TYPE_DATE:
      *absent = !delta_value_date(b->i, text);
      return *absent ? NULL : yyjson_mut_strcpy(doc, text);
    case DELTA_TYPE_TIMESTAMP:
    case DELTA_TYPE_TIMESTAMP_NTZ:
      *absent =
          !delta_value_timestamp(b->i, 'T', node->type == DELTA_TYPE_TIMESTAMP, text);
      return *absent ? NULL : yyjson_mut_strcpy(doc, text);
    case DELTA_TYPE_FLOAT:
    case DELTA_TYPE_DOUBLE:
      *absent = false;
      return yyjson_mut_real(doc, b->d);
    case DELTA_TYPE_DECIMAL:
      *absent = false;
      delta_value_decimal(b->dec, node->scale, text);
      return yyjson_mut_rawcpy(doc, text);
    case DELTA_TYPE_STRING:
      *absent = false;
      return text_value(doc, &b->text, what);
    default:
      return NULL;
  }
}

static yyjson_mut_val *object_of(yyjson_mut_doc *doc, const stats_node *node, int what) {
  yyjson_mut_val *object = yyjson_mut_obj(doc);
  for (size_t i = 0; object && i < node->n_children; i++) {
    const stats_node *child = &node->children[i];
    bool absent = !child->indexed;
    yyjson_mut_val *value = NULL;
    if (absent) continue;
    if (child->type == DELTA_TYPE_STRUCT)
      value = object_of(doc, child, what);
    else if (what == NULLS)
      value = yyjson_mut_sint(doc, child->nulls);
    else
      value = bound_value(doc, child, what, &absent);
    if (absent) continue;
    if (!value || !yyjson_mut_obj_add(object, yyjson_mut_strcpy(doc, child->name), value))
      return NULL;
  }
  return object;
}

weir_status stats_nodes_write(const stats_node *root, int64_t rows, char **out,
                              size_t *size, weir_error *err) {
  yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
  yyjson_mut_val *top = doc ? yyjson_mut_obj(doc) : NULL;
  char *text = NULL;
  if (top && yyjson_mut_obj_add_sint(doc, top, "numRecords", rows) &&
      yyjson_mut_obj_add_val(doc, top, "minValues", object_of(doc, root, MIN)) &&
      yyjson_mut_obj_add_val(doc, top, "maxValues", object_of(doc, root, MAX)) &&
      yyjson_mut_obj_add_val(doc, top, "nullCount", object_of(doc, root, NULLS))) {
    yyjson_mut_doc_set_root(doc, top);
    text = yyjson_mut_write(doc, 0, size);
  }
  yyjson_mut_doc_free(doc);
  if (!text) return delta_no_memory(err);
  *out = text;
  return WEIR_OK;
}
