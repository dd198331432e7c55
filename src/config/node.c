/* SPDX-License-Identifier: Apache-2.0 */
#include "config/node.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

config_node *config_node_new(int32_t kind, weir_error *err) {
  config_node *node = base_calloc(1, sizeof(*node), err);
  if (node) node->kind = kind;
  return node;
}

void config_wipe(char *text) {
  if (text) explicit_bzero(text, strlen(text));
  free(text);
}

void config_node_free(config_node *node) {
  if (!node) return;
  for (size_t i = 0; i < node->n; i++) config_node_free(node->children[i]);
  free(node->children);
  config_wipe(node->text);
  free(node->raw);
  free(node->key);
  free(node);
}

weir_status config_node_add(config_node *parent, config_node *child, weir_error *err) {
  if (parent->n == parent->capacity) {
    size_t capacity = parent->capacity ? 2 * parent->capacity : 8;
    config_node **children =
        base_realloc(parent->children, capacity, sizeof(config_node *), err);
    if (!children) return WEIR_E_NOMEM;
    parent->children = children;
    parent->capacity = capacity;
  }
  parent->children[parent->n++] = child;
  return WEIR_OK;
}

config_node *config_node_get(const config_node *map, const char *key) {
  if (!map || map->kind != CONFIG_MAP) return NULL;
  for (size_t i = 0; i < map->n; i++) {
    if (strcmp(map->children[i]->key, key) == 0) return map->children[i];
  }
  return NULL;
}

const char *config_node_shown(const config_node *node) {
  return node->raw ? node->raw : node->text ? node->text : "";
}

const char *config_node_kind_name(const config_node *node) {
  switch (node->kind) {
    case CONFIG_SCALAR:
      return "a single value";
    case CONFIG_LIST:
      return "a list";
    case CONFIG_MAP:
      return "a mapping";
    default:
      return "nothing";
  }
}

/* Drops the bytes that are no part of a well-formed character. */
static void drop_torn(char *text) {
  char *out = text;
  for (const char *p = text; *p;) {
    size_t size = 1;
    while (size <= 4 && strnlen(p, size) == size && !base_utf8_valid(p, size)) size++;
    if (size > 4 || strnlen(p, size) < size) {
      p++;
      continue;
    }
    memmove(out, p, size);
    out += size;
    p += size;
  }
  *out = 0;
}

weir_status config_error(weir_error *err, const char *fmt, ...) {
  char text[sizeof(((weir_error *)0)->message)];
  va_list args;
  va_start(args, fmt);
  vsnprintf(text, sizeof(text), fmt, args);
  va_end(args);
  drop_torn(text);
  return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0, "%s", text);
}
