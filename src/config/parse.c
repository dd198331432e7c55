/* SPDX-License-Identifier: Apache-2.0 */
/* YAML text to a tree, through libyaml's events. Anchors, aliases and tags have no use in
 * a pipeline file and are refused; so are duplicate keys, which YAML 1.2
 * (section 3.2.1.1) forbids and libyaml lets pass. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "config/node.h"

struct reader {
  yaml_parser_t parser;
  yaml_event_t event; /* the one under way; zeroed when there is none */
  const char *name;
  const char *text;
  size_t size, nodes;
  int flow; /* depth of flow collections around the event */
  bool in_file;
};

static const char quote_hint[] =
    "; quote a value that holds a comma, colon or bracket, as in {price: "
    "\"decimal128(38, 10)\"}";

/* "name:line:column" into buf; `--set` values have no line. */
static const char *place(const struct reader *r, yaml_mark_t mark, char *buf,
                         size_t size) {
  if (r->in_file) {
    snprintf(buf, size, "%s:%zu:%zu", r->name, mark.line + 1, mark.column + 1);
  } else {
    snprintf(buf, size, "%s", r->name);
  }
  return buf;
}

static weir_status fail_at(const struct reader *r, yaml_mark_t mark, const char *text,
                           weir_error *err) {
  char where[512];
  return config_error(err, "%s: %s", place(r, mark, where, sizeof(where)), text);
}

/* Whether a line (counted from 0) of the text holds a bracket, so that the hint to quote
 * may help. */
static bool line_has_bracket(const struct reader *r, size_t line) {
  const char *p = r->text, *end = r->text + r->size;
  for (; line && p < end; line--) {
    const char *next = memchr(p, '\n', (size_t)(end - p));
    if (!next) return false;
    p = next + 1;
  }
  for (; p < end && *p != '\n'; p++) {
    if (strchr("[](){}<>", *p) && *p) return true;
  }
  return false;
}

/* Turns libyaml's complaint into a message that says where and what to do. */
static weir_status parser_error(const struct reader *r, weir_error *err) {
  const yaml_parser_t *p = &r->parser;
  char where[512], context[160] = "";
  const char *hint = "";
  const char *problem = p->problem ? p->problem : "cannot be read";
  if (p->error == YAML_MEMORY_ERROR) {
    return weir_error_set(err, WEIR_E_NOMEM, 0, "%s: out of memory parsing YAML",
                          r->name);
  }
  if (p->error == YAML_READER_ERROR) {
    return config_error(
        err,
        "%s: not valid YAML: %s (byte %zu); the text must be UTF-8 without control "
        "characters",
        r->name, problem, p->problem_offset);
  }
  if (p->context) {
    snprintf(context, sizeof(context), r->in_file ? " %s from line %zu" : " %s",
             p->context, p->context_mark.line + 1);
  }
  if (p->context && (strstr(p->context, "alias") || strstr(p->context, "anchor"))) {
    hint = "; quote a value that begins with * or &, as in \"*.ndjson\"";
  } else if (line_has_bracket(r, p->problem_mark.line) ||
             (p->context && line_has_bracket(r, p->context_mark.line))) {
    hint = quote_hint;
  } else if (strstr(problem, "cannot start any token")) {
    hint = "; indent with spaces, not tabs, and quote a value that begins with @, ` or %";
  }
  return config_error(err, "%s: not valid YAML: %s%s%s",
                      place(r, p->problem_mark, where, sizeof(where)), problem, context,
                      hint);
}

static weir_status next_event(struct reader *r, weir_error *err) {
  yaml_event_delete(&r->event);
  memset(&r->event, 0, sizeof(r->event));
  if (!yaml_parser_parse(&r->parser, &r->event)) return parser_error(r, err);
  return WEIR_OK;
}

/* Plain text in a flow collection ends at a comma: what is left of "decimal128(38, 10)"
 * must not pass. */
static bool unbalanced(const char *text) {
  int round = 0, angle = 0;
  for (; *text; text++) {
    round += (*text == '(') - (*text == ')');
    angle += (*text == '<') - (*text == '>');
  }
  return round != 0 || angle != 0;
}

static bool is_null(const char *text) {
  return !*text || strcmp(text, "~") == 0 || strcmp(text, "null") == 0 ||
         strcmp(text, "Null") == 0 || strcmp(text, "NULL") == 0;
}

/* The scalar of the current event as text to be freed, after the checks that keys and
 * values share. */
static weir_status scalar_text(const struct reader *r, char **out, weir_error *err) {
  yaml_mark_t mark = r->event.start_mark;
  const char *value = (const char *)r->event.data.scalar.value;
  size_t length = r->event.data.scalar.length;
  bool plain = r->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
  if (strlen(value) != length) {
    return fail_at(r, mark, "a value cannot hold the NUL character", err);
  }
  if (plain && r->flow && unbalanced(value)) {
    char text[256];
    snprintf(text, sizeof(text), "'%.80s' looks like a part of a longer value%s", value,
             quote_hint);
    return fail_at(r, mark, text, err);
  }
  char *text = base_strndup(value, length, err);
  if (!text) return WEIR_E_NOMEM;
  *out = text;
  return WEIR_OK;
}

static weir_status read_scalar(const struct reader *r, config_node *node,
                               weir_error *err) {
  bool plain = r->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
  char *text = NULL;
  BASE_TRY(scalar_text(r, &text, err));
  if (plain && is_null(text)) {
    free(text);
    node->kind = CONFIG_NULL;
    return WEIR_OK;
  }
  weir_status status = config_expand(text, &node->text, &node->raw, err);
  if (status) {
    char where[512];
    weir_error_prefix(err, status, "%s",
                      place(r, r->event.start_mark, where, sizeof(where)));
  }
  return status;
}

static int compare_keys(const void *a, const void *b) {
  const config_node *x = *(config_node *const *)a, *y = *(config_node *const *)b;
  int order = strcmp(x->key, y->key);
  if (order) return order;
  if (x->key_line != y->key_line) return x->key_line < y->key_line ? -1 : 1;
  return x->key_column < y->key_column ? -1 : x->key_column > y->key_column;
}

static weir_status check_duplicates(const struct reader *r, const config_node *map,
                                    weir_error *err) {
  if (map->n < 2) return WEIR_OK;
  config_node **sorted = base_calloc(map->n, sizeof(*sorted), err);
  if (!sorted) return WEIR_E_NOMEM;
  memcpy(sorted, map->children, map->n * sizeof(*sorted));
  qsort(sorted, map->n, sizeof(*sorted), compare_keys);
  weir_status status = WEIR_OK;
  for (size_t i = 1; i < map->n && !status; i++) {
    const config_node *first = sorted[i - 1], *second = sorted[i];
    if (strcmp(first->key, second->key) != 0) continue;
    if (r->in_file) {
      status = config_error(
          err,
          "%s:%u:%u: the key '%.80s' is given twice, first at line %u and again "
          "at line %u; keep one of them",
          r->name, second->key_line, second->key_column, second->key, first->key_line,
          second->key_line);
    } else {
      status = config_error(err, "%s: the key '%.80s' is given twice; keep one of them",
                            r->name, second->key);
    }
  }
  free(sorted);
  return status;
}

static weir_status read_node(struct reader *r, int depth, config_node **out,
                             weir_error *err);

/* One key of a mapping, whose event is the current one, with its value. */
static weir_status read_pair(struct reader *r, int depth, config_node *map,
                             weir_error *err) {
  config_node *value = NULL;
  char *key = NULL;
  yaml_mark_t mark = r->event.start_mark;
  weir_status status = WEIR_OK;
  if (r->event.type == YAML_ALIAS_EVENT) {
    return fail_at(r, mark, "YAML aliases are not supported; write the value out", err);
  }
  if (r->event.type != YAML_SCALAR_EVENT) {
    return fail_at(r, mark, "a key must be a plain word, not a list or mapping", err);
  }
  if (r->event.data.scalar.anchor || r->event.data.scalar.tag) {
    return fail_at(r, mark, "YAML anchors and tags are not supported", err);
  }
  BASE_TRY(scalar_text(r, &key, err));
  if (!key || !*key) {
    status = fail_at(r, mark, "a key is empty; expected a name before the ':'", err);
    goto out;
  }
  BASE_GOTO(status, next_event(r, err));
  BASE_GOTO(status, read_node(r, depth, &value, err));
  value->key = key;
  key = NULL;
  value->key_line = r->in_file ? (uint32_t)mark.line + 1 : 0;
  value->key_column = r->in_file ? (uint32_t)mark.column + 1 : 0;
  BASE_GOTO(status, config_node_add(map, value, err));
  value = NULL;
out:
  config_node_free(value);
  free(key);
  return status;
}

/* The children of the list or mapping whose start is the current event. */
static weir_status read_children(struct reader *r, int depth, config_node *node,
                                 weir_error *err) {
  bool map = node->kind == CONFIG_MAP;
  bool flow = map ? r->event.data.mapping_start.style == YAML_FLOW_MAPPING_STYLE
                  : r->event.data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE;
  yaml_event_type_t end = map ? YAML_MAPPING_END_EVENT : YAML_SEQUENCE_END_EVENT;
  r->flow += flow;
  for (;;) {
    BASE_TRY(next_event(r, err));
    if (r->event.type == end) break;
    if (map) {
      BASE_TRY(read_pair(r, depth + 1, node, err));
      continue;
    }
    config_node *item = NULL;
    BASE_TRY(read_node(r, depth + 1, &item, err));
    weir_status status = config_node_add(node, item, err);
    if (status) {
      config_node_free(item);
      return status;
    }
  }
  r->flow -= flow;
  return map ? check_duplicates(r, node, err) : WEIR_OK;
}

/* Anchor and tag of the current event, if it can have them. */
static bool has_anchor_or_tag(const yaml_event_t *event) {
  switch (event->type) {
    case YAML_SCALAR_EVENT:
      return event->data.scalar.anchor || event->data.scalar.tag;
    case YAML_SEQUENCE_START_EVENT:
      return event->data.sequence_start.anchor || event->data.sequence_start.tag;
    case YAML_MAPPING_START_EVENT:
      return event->data.mapping_start.anchor || event->data.mapping_start.tag;
    default:
      return false;
  }
}

/* The node that begins with the current event; ends with its last event as the current
 * one. */
static weir_status read_node(struct reader *r, int depth, config_node **out,
                             weir_error *err) {
  yaml_mark_t mark = r->event.start_mark;
  if (r->event.type == YAML_ALIAS_EVENT) {
    return fail_at(
        r, mark,
        "YAML aliases (*name) are not supported; write the value out, or quote a value "
        "that begins with *, as in \"*.ndjson\"",
        err);
  }
  if (has_anchor_or_tag(&r->event)) {
    return fail_at(r, mark,
                   "YAML anchors (&name) and tags (!name) are not supported; quote a "
                   "value that begins "
                   "with & or !",
                   err);
  }
  if (depth > CONFIG_MAX_DEPTH) {
    return fail_at(r, mark, "lists and mappings are nested deeper than 32 levels", err);
  }
  if (++r->nodes > CONFIG_MAX_NODES) {
    return fail_at(r, mark, "the text holds more than 100000 values", err);
  }
  bool scalar = r->event.type == YAML_SCALAR_EVENT;
  bool map = r->event.type == YAML_MAPPING_START_EVENT;
  config_node *node = config_node_new(scalar ? CONFIG_SCALAR
                                      : map  ? CONFIG_MAP
                                             : CONFIG_LIST,
                                      err);
  if (!node) return WEIR_E_NOMEM;
  node->line = r->in_file ? (uint32_t)mark.line + 1 : 0;
  node->column = r->in_file ? (uint32_t)mark.column + 1 : 0;
  weir_status status =
      scalar ? read_scalar(r, node, err) : read_children(r, depth, node, err);
  if (status) {
    config_node_free(node);
    return status;
  }
  *out = node;
  return WEIR_OK;
}

static weir_status read_document(struct reader *r, config_node **out, weir_error *err) {
  config_node *root = NULL;
  weir_status status = WEIR_OK;
  BASE_TRY(next_event(r, err)); /* stream start */
  BASE_TRY(next_event(r, err));
  if (r->event.type == YAML_STREAM_END_EVENT) return WEIR_OK;
  BASE_TRY(next_event(r, err)); /* past the document's start */
  BASE_GOTO(status, read_node(r, 1, &root, err));
  BASE_GOTO(status, next_event(r, err)); /* its end */
  BASE_GOTO(status, next_event(r, err));
  if (r->event.type != YAML_STREAM_END_EVENT) {
    status =
        fail_at(r, r->event.start_mark,
                "a second YAML document begins here; a pipeline file holds one", err);
    goto out;
  }
  *out = root;
  root = NULL;
out:
  config_node_free(root);
  return status;
}

static weir_status parse(const char *yaml, size_t size, const char *name, bool in_file,
                         config_node **out, weir_error *err) {
  struct reader r = {.name = name, .text = yaml, .size = size, .in_file = in_file};
  if (size > CONFIG_MAX_FILE) {
    return config_error(err, "%s: the text has %zu bytes; at most 16 MiB are read", name,
                        size);
  }
  if (!yaml_parser_initialize(&r.parser)) {
    return weir_error_set(err, WEIR_E_NOMEM, 0, "%s: out of memory parsing YAML", name);
  }
  yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
  yaml_parser_set_input_string(&r.parser, (const unsigned char *)yaml, size);
  weir_status status = read_document(&r, out, err);
  yaml_event_delete(&r.event);
  yaml_parser_delete(&r.parser);
  return status;
}

weir_status config_parse(const char *yaml, size_t size, const char *name,
                         config_node **out, weir_error *err) {
  return parse(yaml, size, name, true, out, err);
}

/* Plain text: everything but `${NAME}` and the words for nothing stands for itself, so
 * that
 * `--set sinks.pg.uri=postgresql://h/d#x` and `path=*.ndjson` need no second quoting. */
static weir_status parse_plain(const char *value, const char *name, config_node **out,
                               weir_error *err) {
  config_node *node = config_node_new(CONFIG_SCALAR, err);
  char *text = node ? base_strdup(value, err) : NULL;
  weir_status status = text ? WEIR_OK : WEIR_E_NOMEM;
  if (!status && is_null(value)) {
    node->kind = CONFIG_NULL;
    free(text);
  } else if (!status && (status = config_expand(text, &node->text, &node->raw, err))) {
    weir_error_prefix(err, status, "%s", name);
  }
  if (status) {
    config_node_free(node);
    return status;
  }
  *out = node;
  return WEIR_OK;
}

weir_status config_parse_value(const char *value, const char *name, config_node **out,
                               weir_error *err) {
  if (!base_utf8_valid(value, strlen(value))) {
    return config_error(err, "%s: the value is not valid UTF-8", name);
  }
  if (!*value || !strchr("[{\"'", *value)) return parse_plain(value, name, out, err);
  return parse(value, strlen(value), name, false, out, err);
}
