/* SPDX-License-Identifier: Apache-2.0 */
/* The tree that a pipeline file becomes: small, ordered, each node with its place. */
#ifndef CONFIG_NODE_H
#define CONFIG_NODE_H

#include "config/config.h"

enum {
  CONFIG_MAX_DEPTH = 32,     /* of nested lists and mappings */
  CONFIG_MAX_NODES = 100000, /* of one file */
  CONFIG_MAX_NAME = 64       /* of a pipeline, source or sink */
};

enum { CONFIG_NULL = 0, CONFIG_SCALAR = 1, CONFIG_LIST = 2, CONFIG_MAP = 3 };

struct config_node {
  int32_t kind;    /* CONFIG_NULL .. */
  uint32_t line;   /* from 1; 0: not from a file */
  uint32_t column; /* from 1, in characters */
  char *text;      /* of a scalar, environment variables filled in */
  char *raw;       /* of a scalar with variables: as written, for messages; else NULL */
  char *key;       /* within a mapping */
  uint32_t key_line, key_column;
  config_node **children;
  size_t n, capacity;
};

struct weir_config {
  config_node *root; /* a mapping */
  char *name;        /* how messages call the file; NULL: no file */
  char *base_dir;    /* absolute; NULL: relative paths stay */
};

config_node *config_node_new(int32_t kind, weir_error *err);
/* Frees the subtree; texts are wiped, since any of them may be a secret. NULL is a no-op.
 */
void config_node_free(config_node *node);
weir_status config_node_add(config_node *parent, config_node *child, weir_error *err);
/* The child of a mapping by key, or NULL. */
config_node *config_node_get(const config_node *map, const char *key);
/* A copy of a scalar's text for a message: as written, never what a variable held. */
const char *config_node_shown(const config_node *node);
/* "a list", "a mapping", "nothing", "a single value". */
const char *config_node_kind_name(const config_node *node);
/* WEIR_E_INVALID_CONFIG with a text whose parts may have been cut (%.80s) within a character. */
weir_status config_error(weir_error *err, const char *fmt, ...) WEIR_PRINTF(2, 3);
void config_wipe(char *text); /* overwrites and frees; NULL is a no-op */

/* A scalar's text with ${NAME} replaced by environment variables and $${ by ${. *raw
 * keeps the text as written when anything was replaced, else it stays NULL. Takes `text`
 * over, also on failure. */
weir_status config_expand(char *text, char **out, char **raw, weir_error *err);

/* Parses YAML text. `name` begins the messages ("name:line:column: ..."). *out is NULL
 * when the text holds nothing but comments. */
weir_status config_parse(const char *yaml, size_t size, const char *name,
                         config_node **out, weir_error *err);
/* Parses the value of `--set`: flow YAML when it begins with one of [ { " ', else plain
 * text. The nodes have no line. */
weir_status config_parse_value(const char *value, const char *name, config_node **out,
                               weir_error *err);

#endif
