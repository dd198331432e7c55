/* SPDX-License-Identifier: Apache-2.0 */
/* weir_config: a file's tree, changed by `--set`, read by the pipeline room. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/build.h"

weir_status weir_config_new(weir_config **out, weir_error *err) {
  weir_config *config = base_calloc(1, sizeof(*config), err);
  if (!config) return WEIR_E_NOMEM;
  config->root = config_node_new(CONFIG_MAP, err);
  if (!config->root) {
    free(config);
    return WEIR_E_NOMEM;
  }
  *out = config;
  return WEIR_OK;
}

void weir_config_free(weir_config *config) {
  if (!config) return;
  config_node_free(config->root);
  free(config->name);
  free(config->base_dir);
  free(config);
}

/* ---- reading
 * --------------------------------------------------------------------------------- */

static weir_status absolute(const char *dir, char **out, weir_error *err) {
  char *path = realpath(dir, NULL);
  if (!path) return base_io_error(err, errno, "find the folder", dir);
  *out = path;
  return WEIR_OK;
}

weir_status weir_config_read(weir_config *config, const char *yaml, size_t size,
                             const char *name, const char *base_dir, weir_error *err) {
  config_node *root = NULL;
  char *base = NULL, *copy = NULL;
  weir_status status = WEIR_OK;
  if (config->name || config->root->n) {
    return weir_error_set(err, WEIR_E_INVALID_STATE, 0,
                          "a config takes one file, before anything is set");
  }
  name = name ? name : "configuration";
  BASE_GOTO(status, config_parse(size ? yaml : "", size, name, &root, err));
  if (!root || root->kind != CONFIG_MAP) {
    status = config_error(
        err, "%s: the file holds %s; expected `pipeline:`, `sources:` and `sinks:`", name,
        root ? config_node_kind_name(root) : "nothing");
    goto out;
  }
  BASE_GOTO(status, config_check_top_keys(root, name, err));
  if (base_dir) BASE_GOTO(status, absolute(base_dir, &base, err));
  copy = base_strdup(name, err);
  if (!copy) {
    status = WEIR_E_NOMEM;
    goto out;
  }
  config_node_free(config->root);
  config->root = root;
  config->name = copy;
  config->base_dir = base;
  root = NULL;
  copy = base = NULL;
out:
  config_node_free(root);
  free(base);
  free(copy);
  return status;
}

weir_status weir_config_read_file(weir_config *config, const char *path,
                                  weir_error *err) {
  base_buf text = {0};
  char *dir = NULL;
  weir_status status = WEIR_OK;
  BASE_GOTO(status, base_read_file(path, CONFIG_MAX_FILE, &text, err));
  dir = base_dirname(path, err);
  if (!dir) {
    status = WEIR_E_NOMEM;
    goto out;
  }
  status = weir_config_read(config, (const char *)text.data, text.size, path, dir, err);
out:
  if (text.data) explicit_bzero(text.data, text.capacity);
  base_buf_done(&text);
  free(dir);
  return status;
}

/* ---- setting
 * --------------------------------------------------------------------------------- */

/* Cuts the next segment of a dotted name off: `a`, or `"a.b"` for a key that holds dots.
 * *rest is NULL after the last one. */
static weir_status next_segment(const char *name, const char **rest, char **out,
                                weir_error *err) {
  const char *start = name, *end = NULL;
  bool quoted = *name == '"';
  if (quoted) {
    start = name + 1;
    end = strchr(start, '"');
  } else {
    end = start + strcspn(start, ".");
  }
  const char *after = end && quoted ? end + 1 : end;
  if (!end || end == start || (*after && *after != '.') || (*after == '.' && !after[1])) {
    return config_error(
        err,
        "expected names joined by dots, as in sinks.lake.path; a name that holds dots "
        "itself is put in double quotes");
  }
  *out = base_strndup(start, (size_t)(end - start), err);
  if (!*out) return WEIR_E_NOMEM;
  *rest = *after ? after + 1 : NULL;
  return WEIR_OK;
}

/* Replaces the child of `map` that has the value's key, or adds it. Takes `value` over on
 * WEIR_OK. */
static weir_status put_child(config_node *map, config_node *value, weir_error *err) {
  for (size_t i = 0; i < map->n; i++) {
    if (strcmp(map->children[i]->key, value->key) != 0) continue;
    config_node_free(map->children[i]);
    map->children[i] = value;
    return WEIR_OK;
  }
  return config_node_add(map, value, err);
}

/* Wraps `value` in mappings for the segments of `rest`, so that one put_child makes the
 * whole change. */
static weir_status wrap(const char *rest, config_node **value, weir_error *err) {
  if (!rest) return WEIR_OK;
  char *key = NULL;
  BASE_TRY(next_segment(rest, &rest, &key, err));
  weir_status status = wrap(rest, value, err);
  config_node *map = status ? NULL : config_node_new(CONFIG_MAP, err);
  if (!status && !map) status = WEIR_E_NOMEM;
  if (!status) status = config_node_add(map, *value, err);
  if (status) {
    free(key);
    config_node_free(map);
    return status;
  }
  (*value)->key = key;
  *value = map;
  return WEIR_OK;
}

/* Walks as far as there are mappings, then puts what is left of the name there in one
 * step. */
static weir_status set_at(config_node *root, const char *dotted, config_node **value,
                          weir_error *err) {
  config_node *map = root, *child = NULL;
  const char *rest = dotted;
  for (;;) {
    char *key = NULL;
    BASE_TRY(next_segment(rest, &rest, &key, err));
    child = config_node_get(map, key);
    if (rest && child && child->kind == CONFIG_MAP) {
      free(key);
      map = child;
      continue;
    }
    weir_status status = wrap(rest, value, err);
    if (!status) {
      (*value)->key = key;
      return put_child(map, *value, err);
    }
    free(key);
    return status;
  }
}

/* At most as many names as levels of nesting: `wrap` recurses once a name. */
static size_t count_dots(const char *dotted) {
  size_t n = 0;
  for (; *dotted; dotted++) n += *dotted == '.';
  return n;
}

weir_status weir_config_set(weir_config *config, const char *dotted, const char *value,
                            weir_error *err) {
  char what[160];
  config_node *node = NULL;
  char *first = NULL;
  const char *rest = NULL;
  snprintf(what, sizeof(what), "--set %.120s", dotted);
  weir_status status = WEIR_OK;
  if (count_dots(dotted) >= CONFIG_MAX_DEPTH ||
      !base_utf8_valid(dotted, strlen(dotted))) {
    return config_error(err, "%s: the name is not UTF-8 or has more than %d parts", what,
                        CONFIG_MAX_DEPTH);
  }
  BASE_GOTO(status, next_segment(dotted, &rest, &first, err));
  config_node probe_key = {.kind = CONFIG_NULL, .key = first};
  config_node *probe_children[1] = {&probe_key};
  config_node probe = {.kind = CONFIG_MAP, .children = probe_children, .n = 1};
  status = config_check_top_keys(&probe, NULL, err);
  if (status) goto out;
  status = config_parse_value(value, what, &node, err);
  if (status) goto done; /* it names the setting already */
  status = set_at(config->root, dotted, &node, err);
  if (!status) node = NULL;
out:
  if (status) weir_error_prefix(err, status, "%s", what);
done:
  config_node_free(node);
  free(first);
  return status;
}

char *config_path(const weir_config *config, const char *path, weir_error *err) {
  return config_resolve_path(config->base_dir, path, err);
}

weir_status config_read_sink(weir_config *config, const char *type, const char *yaml,
                             size_t size, const char *name, const char *base_dir,
                             weir_error *err) {
  config_node *sink = NULL, *key = NULL;
  char *base = NULL;
  weir_status status = WEIR_OK;
  BASE_GOTO(status, config_parse(size ? yaml : "", size, name, &sink, err));
  if (!sink) sink = config_node_new(CONFIG_MAP, err);
  if (!sink) return WEIR_E_NOMEM;
  if (sink->kind != CONFIG_MAP) {
    status = config_error(err, "%s: the file holds %s; expected the options of a sink",
                          name, config_node_kind_name(sink));
    goto out;
  }
  key = config_node_new(CONFIG_SCALAR, err);
  if (key) key->key = base_strdup("type", err);
  if (key) key->text = base_strdup(type, err);
  if (!key || !key->key || !key->text) {
    status = WEIR_E_NOMEM;
    goto out;
  }
  BASE_GOTO(status, put_child(sink, key, err));
  key = NULL;
  if (base_dir) BASE_GOTO(status, absolute(base_dir, &base, err));
  BASE_GOTO(status, weir_config_set(config, "pipeline", "weir-conform", err));
  BASE_GOTO(status, set_at(config->root, "sinks.conform", &sink, err));
  sink = NULL;
  config->name = base_strdup(name, err);
  config->base_dir = base;
  base = NULL;
  if (!config->name) status = WEIR_E_NOMEM;
out:
  config_node_free(sink);
  config_node_free(key);
  free(base);
  return status;
}
