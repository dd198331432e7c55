/* SPDX-License-Identifier: Apache-2.0 */
/* Values by name; and options without a pipeline file. */
#include <stdlib.h>
#include <string.h>

#include "config/build.h"

void weir_options_free(weir_options *options) {
  if (!options) return;
  for (size_t i = 0; options->values && i < options->n; i++)
    config_value_done(&options->values[i]);
  for (size_t i = 0; i < options->n_notes; i++) free(options->notes[i]);
  free(options->notes);
  free(options->values);
  free(options->where);
  free(options);
}

/* Bits of the types that an accessor answers for. */
enum {
  TEXTS = 1 << WEIR_OPT_STRING | 1 << WEIR_OPT_ENUM | 1 << WEIR_OPT_PATH |
      1 << WEIR_OPT_MAP,
  INTEGERS = 1 << WEIR_OPT_INT | 1 << WEIR_OPT_SIZE | 1 << WEIR_OPT_DURATION,
  BOOLS = 1 << WEIR_OPT_BOOL,
  FLOATS = 1 << WEIR_OPT_FLOAT,
  ITEMS = 1 << WEIR_OPT_LIST | 1 << WEIR_OPT_PATHS | 1 << WEIR_OPT_MAP,
  ANY = -1
};

static const option_value *find(const weir_options *options, const char *name,
                                int types) {
  for (size_t i = 0; options && i < options->n; i++) {
    const option_value *value = &options->values[i];
    if (strcmp(value->row->name, name) == 0 &&
        (types == ANY || types & 1 << value->row->type)) {
      return value;
    }
  }
#ifdef WEIR_FAULTS /* debug builds: the connector asks for what its own table does not \
                      have */
  abort();
#endif
  return NULL;
}

int weir_options_given(const weir_options *options, const char *name) {
  const option_value *value = find(options, name, ANY);
  return value && value->given;
}

const char *weir_options_string(const weir_options *options, const char *name) {
  const option_value *value = find(options, name, TEXTS);
  return value ? value->text : NULL;
}

int64_t weir_options_int(const weir_options *options, const char *name) {
  const option_value *value = find(options, name, INTEGERS);
  return value ? value->integer : 0;
}

int weir_options_bool(const weir_options *options, const char *name) {
  const option_value *value = find(options, name, BOOLS);
  return value && value->integer != 0;
}

double weir_options_float(const weir_options *options, const char *name) {
  const option_value *value = find(options, name, FLOATS);
  return value ? value->real : 0;
}

size_t weir_options_count(const weir_options *options, const char *name) {
  const option_value *value = find(options, name, ITEMS);
  return value ? value->n : 0;
}

const char *weir_options_key(const weir_options *options, const char *name, size_t i) {
  const option_value *value = find(options, name, ITEMS);
  return value && value->keys && i < value->n ? value->keys[i] : NULL;
}

const char *weir_options_item(const weir_options *options, const char *name, size_t i) {
  const option_value *value = find(options, name, ITEMS);
  return value && i < value->n ? value->items[i] : NULL;
}

const char *weir_options_where(const weir_options *options) {
  return options->where;
}

size_t config_options_notes(const weir_options *options) {
  return options->n_notes;
}

const char *config_options_note(const weir_options *options, size_t i) {
  return options->notes[i];
}

/* ---- dump
 * ------------------------------------------------------------------------------------ */

static weir_status dump_items(const option_value *value, base_buf *out, weir_error *err) {
  BASE_TRY(base_buf_append_byte(out, value->keys ? '{' : '[', err));
  for (size_t i = 0; i < value->n; i++) {
    if (i) BASE_TRY(base_buf_append_str(out, ", ", err));
    if (value->keys) BASE_TRY(base_buf_printf(out, err, "%s: ", value->keys[i]));
    bool secret = value->row->flags & WEIR_OPT_SECRET;
    BASE_TRY(base_buf_append_str(out, secret ? "(secret)" : value->items[i], err));
  }
  return base_buf_append_byte(out, value->keys ? '}' : ']', err);
}

static weir_status dump_value(const option_value *value, base_buf *out, weir_error *err) {
  if (value->items) return dump_items(value, out, err);
  if (value->row->flags & WEIR_OPT_SECRET)
    return base_buf_append_str(out, "(secret)", err);
  switch (value->row->type) {
    case WEIR_OPT_BOOL:
      return base_buf_append_str(out, value->integer ? "true" : "false", err);
    case WEIR_OPT_FLOAT:
      return base_buf_printf(out, err, "%g", value->real);
    case WEIR_OPT_INT:
    case WEIR_OPT_SIZE:
    case WEIR_OPT_DURATION:
      return config_amount_format(value->row->type, value->integer, out, err);
    default:
      return base_buf_append_str(out, value->text, err);
  }
}

weir_status config_options_dump(const weir_options *options, base_buf *out,
                                weir_error *err) {
  for (size_t i = 0; i < options->n; i++) {
    const option_value *value = &options->values[i];
    if (!value->present) continue;
    BASE_TRY(base_buf_printf(out, err, "  %s: ", value->row->name));
    BASE_TRY(dump_value(value, out, err));
    BASE_TRY(base_buf_append_str(out, value->given ? "\n" : " (default)\n", err));
  }
  return WEIR_OK;
}

/* ---- without a file
 * -------------------------------------------------------------------------- */

static weir_status scalar(const char *key, const char *text, config_node **out,
                          weir_error *err) {
  config_node *node = config_node_new(text ? CONFIG_SCALAR : CONFIG_NULL, err);
  if (!node) return WEIR_E_NOMEM;
  if ((key && !(node->key = base_strdup(key, err))) ||
      (text && !(node->text = base_strdup(text, err)))) {
    config_node_free(node);
    return WEIR_E_NOMEM;
  }
  *out = node;
  return WEIR_OK;
}

/* The list or mapping under `key`, made when it is not there. */
static weir_status container(config_node *root, const char *key, int32_t kind,
                             config_node **out, weir_error *err) {
  config_node *node = config_node_get(root, key);
  if (!node) {
    BASE_TRY(scalar(key, "", &node, err));
    node->kind = kind;
    weir_status status = config_node_add(root, node, err);
    if (status) {
      config_node_free(node);
      return status;
    }
  }
  *out = node;
  return WEIR_OK;
}

static weir_status add_scalar(config_node *parent, const char *key, const char *text,
                              weir_error *err) {
  config_node *node = NULL;
  BASE_TRY(scalar(key, text, &node, err));
  weir_status status = config_node_add(parent, node, err);
  if (status) config_node_free(node);
  return status;
}

/* Puts one pair where a parser would have put it: list items together, "map.key" into its
 * map. */
static weir_status add_pair(const config_build *b, config_node *root, const char *name,
                            const char *text, weir_error *err) {
  config_node *parent = root;
  const char *key = name;
  const weir_option *row = b->tables[0];
  for (; row && row->name; row++) {
    size_t n = strlen(row->name);
    bool list = row->type == WEIR_OPT_LIST || row->type == WEIR_OPT_PATHS;
    if (strcmp(row->name, name) == 0) {
      if (!list) break;
      BASE_TRY(container(root, name, CONFIG_LIST, &parent, err));
      return add_scalar(parent, NULL, text, err);
    }
    if (row->type == WEIR_OPT_MAP && strncmp(row->name, name, n) == 0 && name[n] == '.') {
      BASE_TRY(container(root, row->name, CONFIG_MAP, &parent, err));
      key = name + n + 1;
      break;
    }
  }
  if (parent->kind != CONFIG_MAP || config_node_get(parent, key)) {
    return config_build_fail(b, NULL, name, err, "is given twice; keep one of them");
  }
  return add_scalar(parent, key, text, err);
}

weir_status weir_options_new(const weir_option *table, const char *where,
                             const char *const *names, const char *const *values,
                             size_t n, const char *base_dir, weir_options **out,
                             weir_error *err) {
  config_build b = {.where = where, .base_dir = base_dir, .tables = {table, NULL}};
  config_node *root = config_node_new(CONFIG_MAP, err);
  weir_status status = root ? WEIR_OK : WEIR_E_NOMEM;
  for (size_t i = 0; i < n && !status; i++)
    status = add_pair(&b, root, names[i], values[i], err);
  if (!status) status = config_build_options(&b, root, NULL, out, err);
  config_node_free(root);
  return status;
}
