/* SPDX-License-Identifier: Apache-2.0 */
/* One value: text to what its row of the table says it is. */
#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "config/build.h"

void config_value_done(option_value *value) {
  config_wipe(value->text);
  for (size_t i = 0; i < value->n; i++) {
    config_wipe(value->items[i]);
    if (value->keys) free(value->keys[i]);
  }
  free(value->items);
  free(value->keys);
  *value = (option_value){.row = value->row};
}

/* ---- what is expected
 * ------------------------------------------------------------------------ */

struct unit {
  const char *name;
  int64_t factor;
};

weir_status config_amount_format(int32_t type, int64_t value, base_buf *out,
                                 weir_error *err) {
  static const struct unit sizes[] = {
      {"TiB", INT64_C(1) << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}};
  static const struct unit times[] = {{"h", INT64_C(3600000000000)},
                                      {"s", INT64_C(1000000000)},
                                      {"ms", INT64_C(1000000)},
                                      {"us", INT64_C(1000)},
                                      {"ns", 1}};
  const struct unit *units = NULL;
  size_t n = 0;
  if (type == WEIR_OPT_SIZE) units = sizes, n = BASE_COUNT(sizes);
  if (type == WEIR_OPT_DURATION) units = times, n = BASE_COUNT(times);
  for (size_t i = 0; i < n && value; i++) {
    if (value % units[i].factor == 0) {
      return base_buf_printf(out, err, "%" PRId64 "%s", value / units[i].factor,
                             units[i].name);
    }
  }
  return base_buf_printf(out, err, "%" PRId64, value);
}

static weir_status append_bounds(base_buf *out, const weir_option *row, weir_error *err) {
  if (!row->min && !row->max) return WEIR_OK;
  if (row->type != WEIR_OPT_INT && row->type != WEIR_OPT_FLOAT &&
      row->type != WEIR_OPT_SIZE && row->type != WEIR_OPT_DURATION) {
    return WEIR_OK;
  }
  if (row->max < row->min || row->max == INT64_MAX) {
    BASE_TRY(base_buf_append_str(out, ", at least ", err));
    return config_amount_format(row->type, row->min, out, err);
  }
  BASE_TRY(base_buf_append_str(out, ", from ", err));
  BASE_TRY(config_amount_format(row->type, row->min, out, err));
  BASE_TRY(base_buf_append_str(out, " to ", err));
  return config_amount_format(row->type, row->max, out, err);
}

static weir_status append_choices(base_buf *out, const char *choices, weir_error *err) {
  BASE_TRY(base_buf_append_str(out, strchr(choices, '|') ? "one of " : "", err));
  for (; *choices; choices++) {
    if (*choices == '|') {
      BASE_TRY(base_buf_append_str(out, ", ", err));
    } else {
      BASE_TRY(base_buf_append_byte(out, (uint8_t)*choices, err));
    }
  }
  return WEIR_OK;
}

weir_status config_value_expected(const weir_option *row, base_buf *out,
                                  weir_error *err) {
  static const char *const names[] = {
      [WEIR_OPT_STRING] = "a text",
      [WEIR_OPT_INT] = "a whole number",
      [WEIR_OPT_BOOL] = "true or false",
      [WEIR_OPT_FLOAT] = "a number",
      [WEIR_OPT_SIZE] = "a size such as 64MiB or 500kB",
      [WEIR_OPT_DURATION] = "a time such as 250ms, 10s or 5m",
      [WEIR_OPT_PATH] = "a path",
      [WEIR_OPT_LIST] = "a text or a list of texts",
      [WEIR_OPT_PATHS] = "a path or a list of paths",
      [WEIR_OPT_MAP] = "a mapping of names to texts",
  };
  if (row->type == WEIR_OPT_ENUM)
    return append_choices(out, row->choices ? row->choices : "", err);
  const char *name =
      row->type > 0 && (size_t)row->type < BASE_COUNT(names) ? names[row->type] : NULL;
  BASE_TRY(base_buf_append_str(out, name ? name : "a value", err));
  return append_bounds(out, row, err);
}

/* "expected X, got Y". What a secret or a variable holds is never Y. */
static weir_status mismatch(config_build *b, const weir_option *row,
                            const config_node *node, weir_error *err) {
  base_buf expected = {0};
  weir_status status = config_value_expected(row, &expected, err);
  if (!status) status = base_buf_terminate(&expected, err);
  if (status) {
    base_buf_done(&expected);
    return status;
  }
  const char *text = (const char *)expected.data;
  if (node->kind == CONFIG_NULL) {
    status = config_build_fail(
        b, node, row->name, err,
        "has no value; expected %s (quote it if the word itself is meant, \"\" "
        "is the empty text)",
        text);
  } else if (node->kind != CONFIG_SCALAR) {
    status = config_build_fail(b, node, row->name, err, "expected %s, got %s", text,
                               config_node_kind_name(node));
  } else if (row->flags & WEIR_OPT_SECRET) {
    status = config_build_fail(
        b, node, row->name, err,
        "expected %s; the value given is not shown, since it is a secret", text);
  } else {
    status = config_build_fail(b, node, row->name, err, "expected %s, got '%.80s'", text,
                               config_node_shown(node));
  }
  base_buf_done(&expected);
  return status;
}

/* ---- scalars
 * --------------------------------------------------------------------------------- */

static bool parse_float(const char *text, double *out) {
  /* The point is a point, whatever locale the host has set. */
  locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  if (!c) return false;
  char *end = NULL;
  const char *first = text + strspn(text, "+-.");
  bool digit =
      *first >= '0' && *first <= '9' && !strpbrk(text, "xX"); /* no inf, nan, hex */
  double value = strtod_l(text, &end, c);
  freelocale(c);
  if (!digit || end == text || *end || !isfinite(value)) return false;
  *out = value;
  return true;
}

static bool in_choices(const char *choices, const char *text) {
  size_t length = strlen(text), n = 0;
  for (const char *p = choices; *p && length; p += n + (p[n] == '|')) {
    n = strcspn(p, "|");
    if (n == length && memcmp(p, text, n) == 0) return true;
  }
  return false;
}

/* True when the text is a number of the row's type, bounds apart. */
static bool parse_number(option_value *value, const char *text) {
  uint64_t size = 0;
  switch (value->row->type) {
    case WEIR_OPT_INT:
      return !base_parse_int(text, INT64_MIN, INT64_MAX, &value->integer, NULL);
    case WEIR_OPT_SIZE:
      if (base_parse_size(text, &size, NULL) || size > INT64_MAX) return false;
      value->integer = (int64_t)size;
      return true;
    case WEIR_OPT_DURATION:
      return !base_parse_duration(text, &value->integer, NULL);
    case WEIR_OPT_BOOL:
      value->integer = strcmp(text, "true") == 0;
      return value->integer || strcmp(text, "false") == 0;
    case WEIR_OPT_FLOAT:
      return parse_float(text, &value->real);
    default:
      return false;
  }
}

static bool within_bounds(const option_value *value) {
  const weir_option *row = value->row;
  if ((!row->min && !row->max) || row->type == WEIR_OPT_BOOL) return true;
  bool open = row->max < row->min;
  if (row->type == WEIR_OPT_FLOAT) {
    return value->real >= (double)row->min && (open || value->real <= (double)row->max);
  }
  return value->integer >= row->min && (open || value->integer <= row->max);
}

char *config_resolve_path(const char *base_dir, const char *path, weir_error *err) {
  const char *scheme = strstr(path, "://");
  bool url =
      scheme && scheme > path &&
      strspn(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.-") ==
          (size_t)(scheme - path);
  if (url || !base_dir || strcmp(path, "-") == 0 || *path == '/' || !*path) {
    return base_strdup(path, err);
  }
  while (base_starts_with(path, "./")) {
    path += 2;
    while (*path == '/') path++;
  }
  if (!*path || strcmp(path, ".") == 0) return base_strdup(base_dir, err);
  return base_path_join(base_dir, path, err);
}

/* A pattern as WEIR_OPT_PATHS means it: in its base_dir a wildcard is a letter. */
static char *resolve_pattern(const char *base_dir, const char *pattern, weir_error *err) {
  static const char special[] = "*?[{\\";
  if (!base_dir || !strpbrk(base_dir, special) || !strpbrk(pattern, "*?[{"))
    return config_resolve_path(base_dir, pattern, err);
  base_buf escaped = {0};
  weir_status status = WEIR_OK;
  for (const char *p = base_dir; !status && *p; p++) {
    if (strchr(special, *p)) status = base_buf_append_byte(&escaped, '\\', err);
    if (!status) status = base_buf_append_byte(&escaped, (uint8_t)*p, err);
  }
  if (!status) status = base_buf_terminate(&escaped, err);
  char *path =
      status ? NULL : config_resolve_path((const char *)escaped.data, pattern, err);
  base_buf_done(&escaped);
  return path;
}

/* The text of a scalar as the option means it: path joined, secret file read. */
static weir_status take_text(config_build *b, const weir_option *row,
                             const config_node *node, char **out, weir_error *err) {
  if (row->type == WEIR_OPT_PATH || row->type == WEIR_OPT_PATHS) {
    if (!*node->text) return mismatch(b, row, node, err);
    bool name = row->flags & WEIR_OPT_NAME && !strchr(node->text, '/');
    const char *base_dir = name ? NULL : b->base_dir;
    char *path = row->type == WEIR_OPT_PATHS
                     ? resolve_pattern(base_dir, node->text, err)
                     : config_resolve_path(base_dir, node->text, err);
    if (!path) return WEIR_E_NOMEM;
    *out = path;
    return WEIR_OK;
  }
  if (row->flags & WEIR_OPT_SECRET)
    return config_secret_read(b, row, node, node->text, out, err);
  char *text = base_strdup(node->text, err);
  if (!text) return WEIR_E_NOMEM;
  *out = text;
  return WEIR_OK;
}

/* ---- lists and mappings
 * ---------------------------------------------------------------------- */

static weir_status set_items(config_build *b, option_value *value,
                             const config_node *node, weir_error *err) {
  const weir_option *row = value->row;
  config_node *const one = (config_node *)(uintptr_t)node; /* a scalar is a list of one */
  config_node *const *children = node->kind == CONFIG_SCALAR ? &one : node->children;
  size_t n = node->kind == CONFIG_SCALAR ? 1 : node->n;
  value->items = base_calloc(n, sizeof(char *), err);
  if (!value->items) return WEIR_E_NOMEM;
  if (row->type == WEIR_OPT_MAP && !(value->keys = base_calloc(n, sizeof(char *), err))) {
    return WEIR_E_NOMEM;
  }
  value->n = n;
  for (size_t i = 0; i < n; i++) {
    const config_node *child = children[i];
    if (child->kind == CONFIG_NULL && child->key) {
      return config_build_fail(
          b, child, row->name, err,
          "'%.80s' has no value (quote it if the word itself is meant, \"\" is the "
          "empty text)",
          child->key);
    }
    if (child->kind != CONFIG_SCALAR && child->key) {
      return config_build_fail(b, child, row->name, err,
                               "expected a text for '%.80s', got %s", child->key,
                               config_node_kind_name(child));
    }
    if (child->kind != CONFIG_SCALAR) return mismatch(b, row, child, err);
    BASE_TRY(take_text(b, row, child, &value->items[i], err));
    if (value->keys && !(value->keys[i] = base_strdup(child->key, err)))
      return WEIR_E_NOMEM;
  }
  return WEIR_OK;
}

static weir_status set_value(config_build *b, option_value *value,
                             const config_node *node, weir_error *err) {
  const weir_option *row = value->row;
  bool list = row->type == WEIR_OPT_LIST || row->type == WEIR_OPT_PATHS;
  if ((list && (node->kind == CONFIG_LIST || node->kind == CONFIG_SCALAR)) ||
      (row->type == WEIR_OPT_MAP && node->kind == CONFIG_MAP)) {
    return set_items(b, value, node, err);
  }
  if (node->kind != CONFIG_SCALAR) return mismatch(b, row, node, err);
  switch (row->type) {
    case WEIR_OPT_ENUM:
      if (!in_choices(row->choices ? row->choices : "", node->text)) {
        return mismatch(b, row, node, err);
      }
      return take_text(b, row, node, &value->text, err);
    case WEIR_OPT_STRING:
    case WEIR_OPT_PATH:
    case WEIR_OPT_MAP:
      return take_text(b, row, node, &value->text, err);
    default:
      if (!parse_number(value, node->text) || !within_bounds(value)) {
        return mismatch(b, row, node, err);
      }
      return WEIR_OK;
  }
}

weir_status config_value_set(config_build *b, option_value *value,
                             const config_node *node, weir_error *err) {
  weir_status status = set_value(b, value, node, err);
  if (status) {
    config_value_done(value);
  } else {
    value->present = true;
  }
  return status;
}
