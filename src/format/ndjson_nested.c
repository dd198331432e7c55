/* SPDX-License-Identifier: Apache-2.0 */
/* The fast way of arrays and objects into the columns of lists, maps and structs. */
#include <string.h>

#include "base/base.h"
#include "format/ndjson.h"

static const uint8_t *take_items(format_column *col, const uint8_t *p,
                                 const uint8_t *end) {
  format_column *items = &col->children[0];
  p = ndjson_skip_blanks(p + 1);
  if (*p == ']') return p + 1;
  for (;;) {
    p = ndjson_take_value(items, p, end);
    if (p == NULL) return NULL;
    p = ndjson_skip_blanks(p);
    if (*p == ']') return p + 1;
    if (*p != ',') return NULL;
    p = ndjson_skip_blanks(p + 1);
  }
}

/* What follows the colon of the key at p, and its field, which is mostly the one after the last. */
static const uint8_t *take_name(const format_column *col, const uint8_t *p,
                                const uint8_t *end, int64_t *field) {
  if (*p != '"') return NULL;
  const format_column *guess = *field < col->n_children ? &col->children[*field] : NULL;
  const uint8_t *q = p + 1;
  if (FORMAT_LIKELY(guess != NULL && (size_t)(end - q) > guess->name_len &&
                    q[guess->name_len] == '"' &&
                    memcmp(q, guess->name, guess->name_len) == 0)) {
    q += guess->name_len;
  } else {
    while (*q != '"') {
      if (*q < 0x20 || *q >= 0x80 || *q == '\\') return NULL;
      q++;
    }
    *field = format_names_find(&col->names, col->children, p + 1, (size_t)(q - p - 1));
    if (*field < 0) return NULL; /* a value that no column takes */
  }
  q = ndjson_skip_blanks(q + 1);
  return *q == ':' ? ndjson_skip_blanks(q + 1) : NULL;
}

static const uint8_t *take_fields(format_column *col, const uint8_t *p,
                                  const uint8_t *end) {
  int64_t filled = 0;
  p = ndjson_skip_blanks(p + 1);
  if (*p == '}') {
    p++;
  } else {
    for (int64_t field = 0;; field++) {
      p = take_name(col, p, end, &field);
      if (p == NULL) return NULL;
      format_column *child = &col->children[field];
      if (child->n != col->n) return NULL; /* given twice */
      p = ndjson_take_value(child, p, end);
      if (p == NULL) return NULL;
      filled++;
      p = ndjson_skip_blanks(p);
      if (*p == '}') {
        p++;
        break;
      }
      if (*p != ',') return NULL;
      p = ndjson_skip_blanks(p + 1);
    }
  }
  if (filled == col->n_children) {
    col->n++;
    return p;
  }
  return format_struct_close(col) == FORMAT_OK ? p : NULL;
}

/* Members of an object as the entries of a map. */
static const uint8_t *take_members(format_column *col, const uint8_t *p,
                                   const uint8_t *end) {
  format_column *entries = &col->children[0];
  format_column *keys = &entries->children[0], *values = &entries->children[1];
  p = ndjson_skip_blanks(p + 1);
  if (*p == '}') return p + 1;
  for (;;) {
    if (*p != '"' || !format_column_room(entries)) return NULL;
    p = ndjson_take_value(keys, p, end);
    if (p == NULL) return NULL;
    p = ndjson_skip_blanks(p);
    if (*p != ':') return NULL;
    p = ndjson_take_value(values, ndjson_skip_blanks(p + 1), end);
    if (p == NULL) return NULL;
    entries->n++;
    p = ndjson_skip_blanks(p);
    if (*p == '}') return p + 1;
    if (*p != ',') return NULL;
    p = ndjson_skip_blanks(p + 1);
  }
}

const uint8_t *ndjson_take_nested(format_column *col, const uint8_t *p,
                                  const uint8_t *end) {
  format_key twice = {0};
  if (col->kind == FORMAT_STRUCT) return *p == '{' ? take_fields(col, p, end) : NULL;
  if (*p == '[') {
    p = take_items(col, p, end);
  } else if (*p == '{' && col->kind == FORMAT_MAP && col->string_keys) {
    p = take_members(col, p, end);
  } else {
    return NULL;
  }
  if (p == NULL) return NULL;
  if (col->kind == FORMAT_MAP && format_map_check(col, &twice) != FORMAT_OK) return NULL;
  return format_list_close(col) == FORMAT_OK ? p : NULL;
}
