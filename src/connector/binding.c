/* SPDX-License-Identifier: Apache-2.0 */
/* Bindings, their canonical text, and what differs between two of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "connector/inside.h"

weir_status weir_binding_logical(weir_schema *input, weir_binding *out, weir_error *err) {
  (void)err;
  *out = (weir_binding){.struct_size = sizeof(*out), .schema = weir_schema_ref(input)};
  return WEIR_OK;
}

void weir_binding_done(weir_binding *binding) {
  if (!binding) return;
  weir_schema_unref(binding->schema);
  free(binding->identity);
  binding->schema = NULL;
  binding->identity = NULL;
}

/* The line "key=..." of an identity, or NULL. */
static const char *binding_find(const char *identity, const char *key) {
  size_t size = strlen(key);
  for (const char *line = identity; line && *line;) {
    if (strncmp(line, key, size) == 0 && line[size] == '=') return line;
    line = strchr(line, '\n');
    if (line) line++;
  }
  return NULL;
}

weir_status weir_binding_identify(weir_binding *binding, const char *key,
                                  const char *value, weir_error *err) {
  if (!*key || key[strspn(key, "abcdefghijklmnopqrstuvwxyz0123456789_.")]) {
    return weir_error_set(err, WEIR_E_INTERNAL, 0,
                          "identity key '%s': only a-z, 0-9, '_' and '.' are allowed",
                          key);
  }
  if (value[strcspn(value, "\r\n")] || !base_utf8_valid(value, strlen(value))) {
    return weir_error_set(err, WEIR_E_INTERNAL, 0,
                          "identity '%s': its value must be UTF-8 without a line break",
                          key);
  }
  const char *line = binding_find(binding->identity, key);
  if (line) {
    const char *old = line + strlen(key) + 1;
    size_t size = strcspn(old, "\n");
    if (size == strlen(value) && memcmp(old, value, size) == 0) return WEIR_OK;
    return weir_error_set(err, WEIR_E_INTERNAL, 0,
                          "identity '%s' is '%.*s' already, not '%s'", key, (int)size,
                          old, value);
  }
  size_t used = binding->identity ? strlen(binding->identity) : 0;
  /* A connector may have set its lines itself, the last one without an end. */
  bool ended = !used || binding->identity[used - 1] == '\n';
  if (used + !ended + strlen(key) + strlen(value) + 2 > WEIR_MAX_IDENTITY) {
    return weir_error_set(err, WEIR_E_INTERNAL, 0,
                          "identity '%s': more than %d bytes in all", key,
                          WEIR_MAX_IDENTITY);
  }
  char *next = base_format(err, "%s%s%s=%s\n", used ? binding->identity : "",
                           ended ? "" : "\n", key, value);
  if (!next) return WEIR_E_NOMEM;
  free(binding->identity);
  binding->identity = next;
  return WEIR_OK;
}

/* ---- canonical text ------------------------------------------------------------------------------- */
/*
 * weir-binding 1
 * target KEY=VALUE            one per identity line, sorted
 * column 0 "id" int64 not null
 * column 1 "tags" list<utf8>
 * column 1.0 "item" utf8      children of nested types, since names and nullability inside count too
 */
#define BINDING_HEAD "weir-binding 1\n"
enum { BINDING_TYPE_TEXT = 4096 };

static weir_status binding_put_name(base_buf *out, const char *name, weir_error *err) {
  BASE_TRY(base_buf_append_byte(out, '"', err));
  for (const unsigned char *p = (const unsigned char *)name; *p; p++) {
    if (*p == '"' || *p == '\\') {
      BASE_TRY(base_buf_printf(out, err, "\\%c", *p));
    } else if (*p < 0x20) {
      BASE_TRY(base_buf_printf(out, err, "\\x%02x", *p));
    } else {
      BASE_TRY(base_buf_append_byte(out, *p, err));
    }
  }
  return base_buf_append_byte(out, '"', err);
}

/* No deeper than a schema may be made. */
static weir_status binding_put_field(base_buf *out, const struct ArrowSchema *field,
                                     const char *path, char *type, weir_error *err) {
  weir_type_format(field, type, BINDING_TYPE_TEXT);
  BASE_TRY(base_buf_printf(out, err, "column %s ", path));
  BASE_TRY(binding_put_name(out, field->name ? field->name : "", err));
  BASE_TRY(base_buf_printf(out, err, " %s%s\n", type,
                           field->flags & ARROW_FLAG_NULLABLE ? "" : " not null"));
  const struct ArrowSchema *values = field->dictionary;
  int64_t n = values ? 1 : field->n_children;
  for (int64_t i = 0; i < n; i++) {
    char *child = base_format(err, "%s.%lld", path, (long long)i);
    if (!child) return WEIR_E_NOMEM;
    weir_status status =
        binding_put_field(out, values ? values : field->children[i], child, type, err);
    free(child);
    BASE_TRY(status);
  }
  return WEIR_OK;
}

static int binding_compare_lines(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

static weir_status binding_put_identity(base_buf *out, const char *identity,
                                        weir_error *err) {
  weir_status status = WEIR_OK;
  char *lines[WEIR_MAX_IDENTITY / 2]; /* a line has three bytes at least */
  size_t n = 0;
  char *copy = base_strdup(identity, err), *rest = NULL;
  if (!copy) return WEIR_E_NOMEM;
  for (char *line = strtok_r(copy, "\n", &rest); line && n < BASE_COUNT(lines);
       line = strtok_r(NULL, "\n", &rest)) {
    lines[n++] = line;
  }
  qsort(lines, n, sizeof(*lines), binding_compare_lines);
  for (size_t i = 0; i < n && !status; i++) {
    status = base_buf_printf(out, err, "target %s\n", lines[i]);
  }
  free(copy);
  return status;
}

weir_status connector_binding_text(const weir_binding *binding, weir_bytes *out,
                                   weir_error *err) {
  weir_status status = WEIR_OK;
  base_buf text = {0};
  const struct ArrowSchema *schema = weir_schema_arrow(binding->schema);
  char *type = base_calloc(1, BINDING_TYPE_TEXT, err);
  if (!type) return WEIR_E_NOMEM;
  BASE_GOTO(status, base_buf_append_str(&text, BINDING_HEAD, err));
  if (binding->identity)
    BASE_GOTO(status, binding_put_identity(&text, binding->identity, err));
  for (int64_t i = 0; i < schema->n_children; i++) {
    char path[24];
    snprintf(path, sizeof(path), "%lld", (long long)i);
    BASE_GOTO(status, binding_put_field(&text, schema->children[i], path, type, err));
  }
  base_buf_steal(&text, out);
out:
  free(type);
  base_buf_done(&text);
  return status;
}

/* ---- difference -------------------------------------------------------------------------------------- */

/* A top-level column or a target line: its key (quoted name, or KEY) and the rest of its lines. */
typedef struct binding_item {
  const char *key, *body;
  size_t key_size, body_size;
  bool target;
} binding_item;

typedef struct binding_items {
  binding_item *v;
  size_t n;
} binding_items;

static size_t binding_name_size(const char *text, size_t size) {
  for (size_t i = 1; i < size; i++) {
    if (text[i] == '\\') {
      i++;
    } else if (text[i] == '"') {
      return i + 1;
    }
  }
  return size;
}

static weir_status binding_add_line(binding_items *items, const char *line, size_t size,
                                    weir_error *err) {
  binding_item item = {0};
  if (size > 7 && memcmp(line, "target ", 7) == 0) {
    const char *equals = memchr(line, '=', size);
    if (!equals) equals = line + size;
    item = (binding_item){.key = line + 7, .target = true, .body = equals};
    item.key_size = (size_t)(equals - item.key);
    item.body_size = size - 7 - item.key_size;
  } else if (size > 7 && memcmp(line, "column ", 7) == 0) {
    const char *name = memchr(line + 7, ' ', size - 7);
    if (!name) return WEIR_OK;
    if (memchr(line + 7, '.', (size_t)(name - line - 7))) {
      /* A nested line belongs to the column before it: both lie in one text. */
      if (items->n)
        items->v[items->n - 1].body_size =
            (size_t)(line + size - items->v[items->n - 1].body);
      return WEIR_OK;
    }
    name++;
    item.key = name;
    item.key_size = binding_name_size(name, (size_t)(line + size - name));
    item.body = name + item.key_size;
    item.body_size = (size_t)(line + size - item.body);
  } else {
    return WEIR_OK;
  }
  binding_item *v = base_realloc(items->v, items->n + 1, sizeof(*v), err);
  if (!v) return WEIR_E_NOMEM;
  items->v = v;
  v[items->n++] = item;
  return WEIR_OK;
}

static weir_status binding_parse(const char *text, size_t size, binding_items *out,
                                 weir_error *err) {
  size_t at = 0;
  while (at < size) {
    const char *end = memchr(text + at, '\n', size - at);
    size_t length = end ? (size_t)(end - (text + at)) : size - at;
    BASE_TRY(binding_add_line(out, text + at, length, err));
    at += length + 1;
  }
  return WEIR_OK;
}

static const binding_item *binding_item_find(const binding_items *items,
                                             const binding_item *like) {
  for (size_t i = 0; i < items->n; i++) {
    const binding_item *item = &items->v[i];
    if (item->target == like->target && item->key_size == like->key_size &&
        memcmp(item->key, like->key, like->key_size) == 0) {
      return item;
    }
  }
  return NULL;
}

/* The type of a column, without its children's lines and the blank before it; of a target, its value. */
static int binding_short(const binding_item *item, const char **text) {
  *text = item->body_size ? item->body + 1 : item->body;
  size_t size = item->body_size ? item->body_size - 1 : 0;
  const char *line = memchr(*text, '\n', size);
  if (line) size = (size_t)(line - *text);
  return size > 200 ? 200 : (int)size;
}

typedef struct binding_diff {
  base_buf text;
  size_t found;
  bool targets; /* some of them concern the target */
} binding_diff;

static weir_status binding_say(binding_diff *diff, const binding_item *was,
                               const binding_item *now, weir_error *err) {
  const binding_item *item = was ? was : now;
  const char *old = "", *new = "";
  int old_size = was ? binding_short(was, &old) : 0;
  int new_size = now ? binding_short(now, &new) : 0;
  diff->targets |= item->target;
  if (diff->found++) BASE_TRY(base_buf_append_str(&diff->text, "; ", err));
  BASE_TRY(
      base_buf_printf(&diff->text, err, "%s %.*s ", item->target ? "target" : "column",
                      (int)(item->key_size > 200 ? 200 : item->key_size), item->key));
  if (!now) return base_buf_printf(&diff->text, err, "(%.*s) is gone", old_size, old);
  if (!was) return base_buf_printf(&diff->text, err, "(%.*s) is new", new_size, new);
  if (old_size == new_size && memcmp(old, new, (size_t)old_size) == 0) {
    return base_buf_printf(&diff->text, err, "(%.*s) differs inside", old_size, old);
  }
  return base_buf_printf(&diff->text, err, "was %.*s and is now %.*s", old_size, old,
                         new_size, new);
}

static weir_status binding_diff_items(binding_diff *diff, const binding_items *was,
                                      const binding_items *now, weir_error *err) {
  for (size_t i = 0; i < was->n; i++) {
    const binding_item *other = binding_item_find(now, &was->v[i]);
    if (other && other->body_size == was->v[i].body_size &&
        memcmp(other->body, was->v[i].body, other->body_size) == 0) {
      continue;
    }
    BASE_TRY(binding_say(diff, &was->v[i], other, err));
  }
  for (size_t i = 0; i < now->n; i++) {
    if (!binding_item_find(was, &now->v[i]))
      BASE_TRY(binding_say(diff, NULL, &now->v[i], err));
  }
  if (!diff->found) {
    diff->found = 1;
    BASE_TRY(base_buf_append_str(&diff->text, "the columns are the same in another order",
                                 err));
  }
  return base_buf_terminate(&diff->text, err);
}

weir_status connector_binding_compare(const char *where, const void *pinned,
                                      size_t pinned_size, const void *now,
                                      size_t now_size, weir_error *err) {
  weir_status status = WEIR_OK;
  binding_items was = {0}, is = {0};
  binding_diff diff = {0};
  if (pinned_size == now_size && (!now_size || memcmp(pinned, now, now_size) == 0))
    return WEIR_OK;
  /* Each column of a nested type may add a line to the one before: items point into the texts. */
  BASE_GOTO(status, binding_parse(pinned, pinned_size, &was, err));
  BASE_GOTO(status, binding_parse(now, now_size, &is, err));
  BASE_GOTO(status, binding_diff_items(&diff, &was, &is, err));
  status = weir_error_set(
      err, diff.targets ? WEIR_E_CONFLICT : WEIR_E_SCHEMA, 0,
      "%s: its binding is not the one that this deployment began with: %s; %s", where,
      (const char *)diff.text.data,
      diff.targets
          ? "point it at the old target again, or give the new one to another sink name; "
            "if the old one is gone for good, deliver everything again with `weir run "
            "--new-deployment`"
          : "bring the old columns back, or give the new ones to another sink name and "
            "target");
out:
  free(was.v);
  free(is.v);
  base_buf_done(&diff.text);
  return status;
}
