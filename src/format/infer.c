/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Schemas from samples: what each value could be, and the type of a column from the values together. A
 * column keeps the set of types that all its values so far could have; at the end the narrowest one
 * left is taken. So the order of rows and files changes nothing but the order of columns.
 */
#include "format/infer.h"

#include <math.h>
#include <nanoarrow/nanoarrow.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NODES 10000
#define DEFAULT_MAX_LINE (UINT64_C(64) << 20)

/* ---- values ---- */

static bool is_digit(uint8_t c) {
  return (unsigned)c - '0' <= 9;
}

static size_t digits(const uint8_t *p, const uint8_t *end) {
  const uint8_t *start = p;
  while (p < end && is_digit(*p)) p++;
  return (size_t)(p - start);
}

static unsigned whole_number(const uint8_t *text, size_t n) {
  bool negative = false;
  uint64_t size = 0;
  unsigned may = 0;
  int64_t stored;
  if (format_integer_parse(text, n, &negative, &size) != FORMAT_OK) return 0;
  if (negative && size == 0) return INFER_FLOAT; /* the sign of -0 */
  if (format_integer_store(FORMAT_INT64, negative, size, &stored)) may |= INFER_INT64;
  if (!negative) may |= INFER_UINT64;
  /* exact as a double: no more than 53 bits but for zeros at the low end */
  if (size == 0 || size >> __builtin_ctzll(size) <= UINT64_C(1) << 53) may |= INFER_FLOAT;
  return may;
}

unsigned infer_number(const uint8_t *text, size_t n, bool loose) {
  const uint8_t *end = text + n, *start = text + (n > 0 && *text == '-'), *p = start;
  size_t whole = digits(p, end), fraction = 0;
  bool point = false;
  p += whole;
  if (whole > 1 && *start == '0') return 0; /* 007 */
  if (p == end && whole > 0) return whole_number(text, n);
  if (p < end && *p == '.') {
    point = true;
    fraction = digits(++p, end);
    p += fraction;
  }
  if (whole + fraction == 0 || (!loose && (whole == 0 || (point && fraction == 0))))
    return 0;
  if (p < end && (*p | 0x20) == 'e') {
    p++;
    if (p < end && (*p == '+' || *p == '-')) p++;
    size_t power = digits(p, end);
    if (power == 0) return 0;
    p += power;
  }
  if (p != end) return 0;
  double value = 0;
  /* beyond a double's range it is no float64; the loose ones are too short for that or have an exponent
   * that the decoder judges likewise once their digits are filled in */
  if (whole > 0 && (!point || fraction > 0) &&
      format_double_parse(text, n, &value) != FORMAT_OK)
    return 0;
  return INFER_FLOAT;
}

unsigned infer_chrono(const uint8_t *text, size_t n) {
  int64_t value = 0;
  /* years with a sign are no dates that people write */
  if (n < 10 || n > FORMAT_CHRONO_TEXT || !is_digit(text[0]) || text[4] != '-') return 0;
  if (n == 10)
    return format_date_parse(text, n, &value) == FORMAT_OK ? INFER_DATE | INFER_LOCAL : 0;
  if (format_timestamp_parse(text, n, 6, false, &value) == FORMAT_OK) return INFER_LOCAL;
  return format_timestamp_parse(text, n, 6, true, &value) == FORMAT_OK ? INFER_ZONED : 0;
}

/* ---- columns ---- */

static void node_done(infer_node *node) {
  for (size_t i = 0; i < node->n; i++) node_done(&node->children[i]);
  if (node->items != NULL) node_done(node->items);
  free(node->items);
  free(node->children);
  free(node->name);
}

static weir_status count_node(weir_inference *inference, weir_error *err) {
  if (inference->n_nodes++ < MAX_NODES) return WEIR_OK;
  return weir_error_set(err, WEIR_E_SCHEMA, 0,
                        "more than %d columns and fields: are keys used as values, or "
                        "is the delimiter wrong? " INFER_ADVICE,
                        MAX_NODES);
}

static bool has_name(const infer_node *node, const char *name, size_t n) {
  return node->name_len == n && memcmp(node->name, name, n) == 0;
}

weir_status infer_child(weir_inference *inference, infer_node *parent, const char *name,
                        size_t n, size_t hint, infer_node **out, weir_error *err) {
  if (hint < parent->n && has_name(&parent->children[hint], name, n)) {
    *out = &parent->children[hint];
    return WEIR_OK;
  }
  for (size_t i = 0; i < parent->n; i++) {
    if (!has_name(&parent->children[i], name, n)) continue;
    *out = &parent->children[i];
    return WEIR_OK;
  }
  if (memchr(name, 0, n) != NULL || !base_utf8_valid(name, n)) {
    return weir_error_set(err, WEIR_E_SCHEMA, 0,
                          "line %llu: a column's name is not valid UTF-8, or has a NUL",
                          (unsigned long long)inference->line + 1);
  }
  BASE_TRY(count_node(inference, err));
  if (parent->n == parent->room) {
    size_t room = parent->room ? parent->room * 2 : 8;
    infer_node *v = base_realloc(parent->children, room, sizeof(*v), err);
    if (v == NULL) return WEIR_E_NOMEM;
    parent->children = v;
    parent->room = room;
  }
  char *copy = base_strndup(name, n, err);
  if (copy == NULL) return WEIR_E_NOMEM;
  parent->children[parent->n] =
      (infer_node){.name = copy, .name_len = n, .may = INFER_ANY};
  *out = &parent->children[parent->n++];
  return WEIR_OK;
}

weir_status infer_items(weir_inference *inference, infer_node *parent, infer_node **out,
                        weir_error *err) {
  if (parent->items == NULL) {
    BASE_TRY(count_node(inference, err));
    parent->items = base_calloc(1, sizeof(*parent->items), err);
    if (parent->items == NULL) return WEIR_E_NOMEM;
    parent->items->may = INFER_ANY;
  }
  *out = parent->items;
  return WEIR_OK;
}

static const char *scalar_type(const infer_node *node) {
  static const struct {
    unsigned bit;
    const char *type;
  } narrow[] = {{INFER_BOOL, "bool"},
                {INFER_DATE, "date32"},
                {INFER_INT64, "int64"},
                {INFER_UINT64, "uint64"},
                {INFER_FLOAT, "float64"},
                {INFER_LOCAL, "timestamp[us]"},
                {INFER_ZONED, "timestamp[us, UTC]"}};
  for (size_t i = 0; i < BASE_COUNT(narrow); i++) {
    if (!(node->may & narrow[i].bit)) continue;
    /* a column of nothing but "nan" or "inf" is one of words; whole numbers alone, of which some are
     * negative and some beyond int64, are not rounded to be told apart */
    if (narrow[i].bit == INFER_FLOAT &&
        !(node->seen & INFER_SEEN_NUMBER && node->seen & INFER_SEEN_REAL))
      break;
    return narrow[i].type;
  }
  return "utf8";
}

static weir_status put_quoted(base_buf *out, const char *text, weir_error *err) {
  BASE_TRY(base_buf_append_byte(out, '"', err));
  for (; *text; text++) {
    if (*text == '"' || *text == '\\') BASE_TRY(base_buf_append_byte(out, '\\', err));
    BASE_TRY(base_buf_append_byte(out, (uint8_t)*text, err));
  }
  return base_buf_append_byte(out, '"', err);
}

/* Appends the type's text; *why tells what keeps the node from having one. */
static weir_status put_type(base_buf *out, const infer_node *node, int depth,
                            const char **why, weir_error *err) {
  unsigned kinds = node->seen & (INFER_SEEN_OBJECT | INFER_SEEN_LIST | INFER_SEEN_SCALAR);
  if (!(node->seen & INFER_SEEN_VALUE)) return base_buf_append_str(out, "utf8", err);
  if (depth > INFER_MAX_DEPTH) {
    *why = "is nested too deep";
  } else if (kinds & (kinds - 1)) {
    *why =
        "holds objects or lists beside values of another kind, for which there is no "
        "type";
  } else if (kinds == INFER_SEEN_OBJECT && node->n == 0) {
    *why = "holds empty objects alone, which tell no type";
  }
  if (*why != NULL) return WEIR_E_SCHEMA;
  if (kinds == INFER_SEEN_SCALAR) return base_buf_append_str(out, scalar_type(node), err);
  if (kinds == INFER_SEEN_LIST) {
    BASE_TRY(base_buf_append_str(out, "list<", err));
    if (node->items == NULL) {
      BASE_TRY(base_buf_append_str(out, "utf8", err));
    } else {
      BASE_TRY(put_type(out, node->items, depth + 1, why, err));
    }
    return base_buf_append_byte(out, '>', err);
  }
  BASE_TRY(base_buf_append_str(out, "struct<", err));
  for (size_t i = 0; i < node->n; i++) {
    if (i > 0) BASE_TRY(base_buf_append_str(out, ", ", err));
    BASE_TRY(put_quoted(out, node->children[i].name, err));
    BASE_TRY(base_buf_append_str(out, ": ", err));
    BASE_TRY(put_type(out, &node->children[i], depth + 1, why, err));
  }
  return base_buf_append_byte(out, '>', err);
}

static const char advice[] = INFER_ADVICE ", with or without this column";

/* Whether a decoder takes the column. */
static weir_status check_column(const weir_inference *inference, const char *name,
                                const char *type, weir_error *err) {
  weir_schema *schema = NULL;
  weir_ndjson_decoder *decoder = NULL;
  weir_error found = {0};
  weir_status status = weir_schema_from_types(&name, &type, 1, &schema, &found);
  if (status == WEIR_OK && !inference->csv)
    status = weir_ndjson_decoder_new(schema, NULL, &decoder, &found);
  weir_ndjson_decoder_free(decoder);
  weir_schema_unref(schema);
  if (status == WEIR_OK) return WEIR_OK;
  if (status == WEIR_E_NOMEM) return weir_error_set(err, status, 0, "%s", found.message);
  return weir_error_set(err, WEIR_E_SCHEMA, 0, "%s; %s", found.message, advice);
}

static weir_status column_type(const weir_inference *inference, const infer_node *node,
                               char **out, weir_error *err) {
  base_buf text = {0};
  const char *why = NULL;
  weir_status status = put_type(&text, node, 1, &why, err);
  if (why != NULL)
    weir_error_set(err, WEIR_E_SCHEMA, 0, "column '%s' %s; %s", node->name, why, advice);
  char *type = status == WEIR_OK ? base_buf_steal_str(&text, err) : NULL;
  base_buf_done(&text);
  if (type == NULL) return status == WEIR_OK ? WEIR_E_NOMEM : status;
  status = check_column(inference, node->name, type, err);
  if (status == WEIR_OK) {
    *out = type;
  } else {
    free(type);
  }
  return status;
}

weir_status weir_inference_schema(const weir_inference *inference, weir_schema **out,
                                  weir_error *err) {
  const infer_node *root = &inference->root;
  weir_status status = WEIR_OK;
  if (root->n == 0 || inference->rows == 0) {
    return weir_error_set(err, WEIR_E_NOT_FOUND, 0,
                          "no row to infer a schema from; " INFER_ADVICE);
  }
  const char **names = base_calloc(root->n, sizeof(*names), err);
  char **types = base_calloc(root->n, sizeof(*types), err);
  if (names == NULL || types == NULL) BASE_GOTO(status, WEIR_E_NOMEM);
  for (size_t i = 0; i < root->n; i++) {
    names[i] = root->children[i].name;
    BASE_GOTO(status, column_type(inference, &root->children[i], &types[i], err));
  }
  status = weir_schema_from_types(names, (const char *const *)types, root->n, out, err);
out:
  for (size_t i = 0; types != NULL && i < root->n; i++) free(types[i]);
  free(types);
  free(names);
  return status;
}

/* ---- the object ---- */

static weir_status inference_new(uint64_t max_line, weir_inference **out,
                                 weir_error *err) {
  weir_inference *inference = base_calloc(1, sizeof(*inference), err);
  if (inference == NULL) return WEIR_E_NOMEM;
  inference->max_line = max_line ? max_line : DEFAULT_MAX_LINE;
  inference->root.may = INFER_ANY;
  inference->at_start = true;
  *out = inference;
  return WEIR_OK;
}

weir_status weir_inference_new_csv(const weir_csv_options *options, weir_inference **out,
                                   weir_error *err) {
  weir_csv_options o = {0};
  csv_dialect dialect = {0};
  BASE_TRY(csv_dialect_read(options, &dialect, err));
  if (options != NULL)
    memcpy(&o, options,
           options->struct_size < sizeof(o) ? options->struct_size : sizeof(o));
  BASE_TRY(inference_new(o.max_line, out, err));
  (*out)->csv = true;
  (*out)->dialect = dialect;
  (*out)->awaits_header = dialect.header;
  return WEIR_OK;
}

weir_status weir_inference_new_ndjson(const weir_ndjson_options *options,
                                      weir_inference **out, weir_error *err) {
  weir_ndjson_options o = {0};
  if (options != NULL)
    memcpy(&o, options,
           options->struct_size < sizeof(o) ? options->struct_size : sizeof(o));
  return inference_new(o.max_line, out, err);
}

void weir_inference_free(weir_inference *inference) {
  if (inference == NULL) return;
  node_done(&inference->root);
  base_buf_done(&inference->text);
  free(inference->fields);
  free(inference);
}

void weir_inference_next_file(weir_inference *inference) {
  inference->at_start = true;
  inference->awaits_header = inference->csv && inference->dialect.header;
  inference->line = 0;
}

int64_t weir_inference_rows(const weir_inference *inference) {
  return inference->rows;
}

weir_status infer_too_long(const weir_inference *inference, weir_error *err) {
  return weir_error_set(
      err, WEIR_E_BAD_DATA, WEIR_ERR_BAD_DATA, "line %llu: longer than %llu bytes",
      (unsigned long long)inference->line + 1, (unsigned long long)inference->max_line);
}

weir_status weir_inference_feed(weir_inference *inference, const void *data, size_t size,
                                int last, int64_t rows, size_t *used, weir_error *err) {
  const uint8_t *bytes = data;
  size_t mark = 0, done = 0;
  if (inference->at_start) {
    if (size < 3 && !last) {
      *used = 0;
      return WEIR_OK;
    }
    if (size >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0) mark = 3;
  }
  weir_status status =
      inference->csv
          ? infer_csv_feed(inference, bytes + mark, size - mark, last, rows, &done, err)
          : infer_ndjson_feed(inference, bytes + mark, size - mark, last, rows, &done,
                              err);
  if (status != WEIR_OK) return status;
  *used = mark + done;
  if (size > 0) inference->at_start = false;
  return WEIR_OK;
}
