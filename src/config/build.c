/* SPDX-License-Identifier: Apache-2.0 */
/* A mapping against option tables: every key known, every value of its type, nothing
 * missing. */
#include "config/build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

weir_status config_build_vfail(const config_build *b, const config_node *at,
                               const char *option, weir_error *err, const char *fmt,
                               va_list args) {
  char text[800], who[400] = "", place[320] = "";
  vsnprintf(text, sizeof(text), fmt, args);
  int n = 0;
  if (b->pipeline) n = snprintf(who, sizeof(who), "pipeline %.64s", b->pipeline);
  if (b->where)
    n += snprintf(who + n, sizeof(who) - (size_t)n, "%s%.100s", n ? ", " : "", b->where);
  if (option && *option) {
    n += snprintf(who + n, sizeof(who) - (size_t)n, "%soption '%.80s'", n ? ", " : "",
                  option);
  }
  if (b->file && at && at->line) {
    snprintf(place, sizeof(place), "%.250s:%u:%u: ", b->file, at->line, at->column);
  } else if (b->file) {
    snprintf(place, sizeof(place), "%.250s: ", at ? "--set" : b->file);
  }
  return config_error(err, "%s%s%s%s", place, who, n ? ": " : "", text);
}

weir_status config_build_fail(const config_build *b, const config_node *at,
                              const char *option, weir_error *err, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  weir_status status = config_build_vfail(b, at, option, err, fmt, args);
  va_end(args);
  return status;
}

/* ---- names
 * ----------------------------------------------------------------------------------- */

static size_t table_rows(const weir_option *table) {
  size_t n = 0;
  while (table && table[n].name) n++;
  return n;
}

/* True when `name` is "group.something". */
static bool in_group(const char *name, const char *group) {
  size_t n = strlen(group);
  return strncmp(name, group, n) == 0 && name[n] == '.';
}

static const weir_option *find_row(const config_build *b, const char *name,
                                   size_t *index) {
  size_t at = 0;
  for (size_t t = 0; t < BASE_COUNT(b->tables); t++) {
    for (size_t i = 0; i < table_rows(b->tables[t]); i++, at++) {
      if (strcmp(b->tables[t][i].name, name) != 0) continue;
      *index = at;
      return &b->tables[t][i];
    }
  }
  return NULL;
}

static const config_reserved *find_reserved(const config_build *b, const char *name) {
  for (const config_reserved *r = b->reserved; r && r->name; r++) {
    if (strcmp(r->name, name) == 0) return r;
  }
  return NULL;
}

static bool is_group(const config_build *b, const char *name) {
  for (size_t t = 0; t < BASE_COUNT(b->tables); t++) {
    for (size_t i = 0; i < table_rows(b->tables[t]); i++) {
      if (in_group(b->tables[t][i].name, name)) return true;
    }
  }
  for (const config_reserved *r = b->reserved; r && r->name; r++) {
    if (in_group(r->name, name)) return true;
  }
  return false;
}

static bool is_skipped(const config_build *b, const char *name) {
  for (const char *const *s = b->skip; s && *s; s++) {
    if (strcmp(*s, name) == 0) return true;
  }
  return false;
}

/* Adds `name` up to `length` unless it is there already. */
static weir_status add_name(char **names, size_t *n, const char *name, size_t length,
                            weir_error *err) {
  for (size_t i = 0; i < *n; i++) {
    if (strncmp(names[i], name, length) == 0 && !names[i][length]) return WEIR_OK;
  }
  names[*n] = base_strndup(name, length, err);
  if (!names[*n]) return WEIR_E_NOMEM;
  (*n)++;
  return WEIR_OK;
}

/* Every name that could have been meant: options, and the groups that dotted ones are in.
 */
static weir_status known_names(const config_build *b, char ***out, size_t *out_n,
                               weir_error *err) {
  size_t n = 0, room = 0;
  for (size_t t = 0; t < BASE_COUNT(b->tables); t++) room += 2 * table_rows(b->tables[t]);
  for (const char *const *s = b->skip; s && *s; s++) room++;
  char **names = base_calloc(room, sizeof(char *), err);
  weir_status status = names ? WEIR_OK : WEIR_E_NOMEM;
  for (size_t t = 0; t < BASE_COUNT(b->tables) && !status; t++) {
    for (size_t i = 0; i < table_rows(b->tables[t]) && !status; i++) {
      const char *name = b->tables[t][i].name, *dot = strchr(name, '.');
      if (dot) status = add_name(names, &n, name, (size_t)(dot - name), err);
      if (!status) status = add_name(names, &n, name, strlen(name), err);
    }
  }
  for (const char *const *s = b->skip; s && *s && !status; s++) {
    status = add_name(names, &n, *s, strlen(*s), err);
  }
  *out = names;
  *out_n = n;
  return status;
}

/* "a, b, c": the names without a dot, for a short list of everything. */
static weir_status list_names(char *const *names, size_t n, base_buf *out,
                              weir_error *err) {
  for (size_t i = 0; i < n; i++) {
    if (strchr(names[i], '.')) continue;
    BASE_TRY(base_buf_printf(out, err, "%s%s", out->size ? ", " : "", names[i]));
  }
  return base_buf_terminate(out, err);
}

static weir_status unknown_key(const config_build *b, const config_node *at,
                               const char *name, weir_error *err) {
  char **names = NULL;
  size_t n = 0;
  base_buf all = {0};
  config_node place = {.line = at->key_line, .column = at->key_column};
  weir_status status = known_names(b, &names, &n, err);
  if (!status) status = list_names(names, n, &all, err);
  if (!status) {
    const char *nearest = base_nearest_name(name, (const char *const *)names, n);
    const char *last = strrchr(name, '.');
    if (!nearest && last)
      nearest = base_nearest_name(last + 1, (const char *const *)names, n);
    char meant[200] = "", tail[400] = "";
    if (nearest) snprintf(meant, sizeof(meant), "; did you mean '%.100s'?", nearest);
    if (b->type) {
      snprintf(tail, sizeof(tail), " (`weir connectors %.100s` lists them)", b->type);
    } else if (!nearest) {
      snprintf(tail, sizeof(tail), "; the known ones are %.300s", (const char *)all.data);
    }
    status = config_build_fail(b, &place, NULL, err, "there is no option '%.80s'%s%s",
                               name, meant, tail);
  }
  for (size_t i = 0; i < n; i++) free(names[i]);
  free(names);
  base_buf_done(&all);
  return status;
}

/* ---- the mapping
 * ----------------------------------------------------------------------------- */

static weir_status take_map(config_build *b, const config_node *map, const char *group,
                            weir_error *err);

static weir_status take_option(config_build *b, size_t index, const config_node *node,
                               weir_error *err) {
  option_value *value = &b->out->values[index];
  if (value->given) {
    return config_build_fail(
        b, node, value->row->name, err,
        "is given twice, as a dotted name and within a mapping; keep one");
  }
  BASE_TRY(config_value_set(b, value, node, err));
  value->given = true;
  return WEIR_OK;
}

/* One key whose full dotted name is `name`. */
static weir_status take_key(config_build *b, const config_node *node, const char *name,
                            bool at_top, weir_error *err) {
  size_t index = 0;
  const weir_option *row = find_row(b, name, &index);
  const config_reserved *reserved = find_reserved(b, name);
  bool group = is_group(b, name);
  if (row && !(group && node->kind == CONFIG_MAP && row->type != WEIR_OPT_MAP)) {
    return b->keys_only ? WEIR_OK : take_option(b, index, node, err);
  }
  if (group && node->kind == CONFIG_MAP) return take_map(b, node, name, err);
  if (group && b->keys_only) return WEIR_OK;
  if (group) {
    return config_build_fail(b, node, name, err, "expected a mapping (%s: {...}), got %s",
                             name, config_node_kind_name(node));
  }
  if (at_top && is_skipped(b, name)) return WEIR_OK;
  if (reserved) {
    return config_build_fail(
        b, node, name, err, "is not supported yet by this version of weir%s%s",
        reserved->text ? "; " : "", reserved->text ? reserved->text : "");
  }
  return unknown_key(b, node, name, err);
}

static weir_status take_map(config_build *b, const config_node *map, const char *group,
                            weir_error *err) {
  for (size_t i = 0; map && i < map->n; i++) {
    const config_node *node = map->children[i];
    char *name =
        group ? base_format(err, "%s.%s", group, node->key) : base_strdup(node->key, err);
    if (!name) return WEIR_E_NOMEM;
    weir_status status = take_key(b, node, name, !group, err);
    free(name);
    if (status) return status;
  }
  return WEIR_OK;
}

static weir_status missing(config_build *b, const weir_option *row, const config_node *at,
                           weir_error *err) {
  base_buf expected = {0};
  weir_status status = config_value_expected(row, &expected, err);
  if (!status) status = base_buf_terminate(&expected, err);
  if (!status) {
    status = config_build_fail(b, at, row->name, err, "is missing; expected %s%s%s",
                               (const char *)expected.data, row->text ? ": " : "",
                               row->text ? row->text : "");
  }
  base_buf_done(&expected);
  return status;
}

static weir_status fill_defaults(config_build *b, const config_node *at,
                                 weir_error *err) {
  for (size_t i = 0; i < b->out->n; i++) {
    option_value *value = &b->out->values[i];
    const weir_option *row = value->row;
    if (value->present) continue;
    if (row->flags & WEIR_OPT_REQUIRED) return missing(b, row, at, err);
    if (!row->default_value) continue;
    config_node node = {.kind = CONFIG_SCALAR,
                        .text = (char *)(uintptr_t)row->default_value};
    weir_status status = config_value_set(b, value, &node, err);
    if (status == WEIR_E_INVALID_CONFIG) {
      return weir_error_set(
          err, WEIR_E_INTERNAL, 0,
          "%s: the default '%s' of option '%s' does not fit its own table", b->where,
          row->default_value, row->name);
    }
    if (status) return status;
  }
  return WEIR_OK;
}

weir_status config_build_options(config_build *b, const config_node *map,
                                 const config_node *at, weir_options **out,
                                 weir_error *err) {
  weir_status status = WEIR_OK;
  size_t n = table_rows(b->tables[0]) + table_rows(b->tables[1]), filled = 0;
  b->out = base_calloc(1, sizeof(*b->out), err);
  if (!b->out) return WEIR_E_NOMEM;
  b->out->where = base_strdup(b->where ? b->where : "pipeline", err);
  b->out->values = base_calloc(n, sizeof(option_value), err);
  if (!b->out->where || !b->out->values) {
    status = WEIR_E_NOMEM;
    goto out;
  }
  b->out->n = n;
  for (size_t t = 0; t < BASE_COUNT(b->tables); t++) {
    for (size_t i = 0; i < table_rows(b->tables[t]); i++) {
      b->out->values[filled++].row = &b->tables[t][i];
    }
  }
  BASE_GOTO(status, take_map(b, map, NULL, err));
  if (!b->keys_only) BASE_GOTO(status, fill_defaults(b, at, err));
  *out = b->out;
  b->out = NULL;
out:
  weir_options_free(b->out);
  b->out = NULL;
  return status;
}
