/* SPDX-License-Identifier: Apache-2.0 */
/* Counted schemas, and the comparison of what is declared with what comes. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arrow/arrow.h"
#include "base/base.h"

weir_status arrow_errno(weir_error *err, int code, const char *what) {
  if (code == 0) return WEIR_OK;
  if (code == ENOMEM)
    return weir_error_set(err, WEIR_E_NOMEM, 0, "%s: out of memory", what);
  return weir_error_set(err, WEIR_E_INTERNAL, 0, "%s: nanoarrow returned %d", what, code);
}

void arrow_path_format(const arrow_path *path, char *buf, size_t size) {
  const arrow_path *steps[2 * ARROW_MAX_DEPTH + 2];
  size_t n = 0, used = 0;
  if (size == 0) return;
  buf[0] = '\0';
  for (; path != NULL && n < sizeof steps / sizeof *steps; path = path->up)
    steps[n++] = path;
  while (n-- > 0 && used < size) {
    const char *comma = used == 0 ? "" : ", ";
    int wrote = steps[n]->name == NULL
                    ? snprintf(buf + used, size - used, "%s%s", comma, steps[n]->what)
                    : snprintf(buf + used, size - used, "%s%s %" PRId64 " '%s'", comma,
                               steps[n]->what, steps[n]->index, steps[n]->name);
    if (wrote < 0) return;
    used += (size_t)wrote;
  }
}

int32_t arrow_path_column(const arrow_path *path) {
  if (path == NULL) return -1;
  while (path->up != NULL) path = path->up;
  return path->index > INT32_MAX ? -1 : (int32_t)path->index;
}

weir_status arrow_path_error(weir_error *err, const arrow_path *path, weir_status code,
                             const char *fmt, ...) {
  char where[300], what[600];
  va_list args;
  if (err == NULL) return code;
  va_start(args, fmt);
  vsnprintf(what, sizeof what, fmt, args);
  va_end(args);
  if (path == NULL) return weir_error_set(err, code, 0, "%s", what);
  arrow_path_format(path, where, sizeof where);
  weir_error_set(err, code, 0, "%s: %s", where, what);
  return weir_error_at(err, code, -1, arrow_path_column(path));
}

static weir_status schema_make(struct ArrowSchema *moved, weir_schema **out,
                               weir_error *err) {
  weir_schema *made = base_calloc(1, sizeof *made, err);
  if (made == NULL) return WEIR_E_NOMEM;
  made->schema = *moved;
  weir_status status = arrow_tree_init(&made->tree, &made->schema, err);
  if (status == WEIR_OK && strcmp(made->schema.format, "+s") != 0) {
    status = weir_error_set(err, WEIR_E_SCHEMA, 0,
                            "schema: a record batch is a struct (format '+s'), not '%s'",
                            made->schema.format);
  } else if (status == WEIR_OK && made->schema.dictionary != NULL) {
    status =
        weir_error_set(err, WEIR_E_SCHEMA, 0, "schema: a record batch has no dictionary");
  }
  if (status != WEIR_OK) {
    arrow_tree_done(&made->tree);
    free(made);
    return status;
  }
  atomic_init(&made->refs, 1);
  moved->release = NULL;
  *out = made;
  return WEIR_OK;
}

weir_status weir_schema_new(struct ArrowSchema *schema, weir_schema **out,
                            weir_error *err) {
  if (schema == NULL || schema->release == NULL)
    return weir_error_set(err, WEIR_E_SCHEMA, 0,
                          "schema: there is none, or it was released");
  return schema_make(schema, out, err);
}

weir_status weir_schema_copy(const struct ArrowSchema *schema, weir_schema **out,
                             weir_error *err) {
  arrow_tree tree = {0};
  struct ArrowSchema copy = {0};
  if (schema == NULL || schema->release == NULL)
    return weir_error_set(err, WEIR_E_SCHEMA, 0,
                          "schema: there is none, or it was released");
  /* Checked before the copy, which trusts what it walks. */
  weir_status status = arrow_tree_init(&tree, schema, err);
  arrow_tree_done(&tree);
  if (status == WEIR_OK)
    status = arrow_errno(err, ArrowSchemaDeepCopy(schema, &copy), "schema: copy");
  if (status != WEIR_OK) return status;
  status = schema_make(&copy, out, err);
  if (copy.release != NULL) copy.release(&copy);
  return status;
}

weir_status weir_schema_select(const weir_schema *schema, const int64_t *columns,
                               int64_t n, weir_schema **out, weir_error *err) {
  const struct ArrowSchema *from = &schema->schema;
  struct ArrowSchema made = {0};
  ArrowSchemaInit(&made);
  int code = ArrowSchemaSetTypeStruct(&made, n);
  if (code == NANOARROW_OK) code = ArrowSchemaSetMetadata(&made, from->metadata);
  for (int64_t i = 0; i < n && code == NANOARROW_OK; i++) {
    if (columns[i] < 0 || columns[i] >= from->n_children) {
      code = EINVAL;
      break;
    }
    made.children[i]->release(made.children[i]);
    code = ArrowSchemaDeepCopy(from->children[columns[i]], made.children[i]);
  }
  made.flags = from->flags;
  weir_status status = arrow_errno(err, code, "schema: select");
  if (status == WEIR_OK) status = schema_make(&made, out, err);
  if (made.release != NULL) made.release(&made);
  return status;
}

weir_schema *weir_schema_ref(weir_schema *schema) {
  atomic_fetch_add_explicit(&schema->refs, 1, memory_order_relaxed);
  return schema;
}

void weir_schema_unref(weir_schema *schema) {
  if (schema == NULL) return;
  if (atomic_fetch_sub_explicit(&schema->refs, 1, memory_order_acq_rel) != 1) return;
  arrow_tree_done(&schema->tree);
  if (schema->schema.release != NULL) schema->schema.release(&schema->schema);
  free(schema);
}

const struct ArrowSchema *weir_schema_arrow(const weir_schema *schema) {
  return &schema->schema;
}

const arrow_node *arrow_schema_root(const weir_schema *schema) {
  return &schema->tree.nodes[0];
}

weir_status weir_schema_export(const weir_schema *schema, struct ArrowSchema *out,
                               weir_error *err) {
  struct ArrowSchema copy = {0};
  weir_status status =
      arrow_errno(err, ArrowSchemaDeepCopy(&schema->schema, &copy), "schema: copy");
  if (status == WEIR_OK) *out = copy;
  return status;
}

/* Names matter in structs and unions; those of a list's item, a map's entries or a run
 * are habits of the program that wrote them ("item", "element", "key_value"). */
static bool names_matter(const struct ArrowSchema *parent) {
  return parent->format[0] == '+' &&
         (parent->format[1] == 's' || parent->format[1] == 'u');
}

static const char *name_of(const struct ArrowSchema *schema) {
  return schema->name == NULL ? "" : schema->name;
}

/* Where two types part ways, in words for behind "got TYPE"; empty when it is at the top. */
typedef struct type_difference {
  char text[400];
} type_difference;

static void note_types(type_difference *out, const arrow_path *path,
                       const struct ArrowSchema *want, const struct ArrowSchema *got) {
  char where[160], want_type[80], got_type[80];
  if (out == NULL || path == NULL) return;
  arrow_path_format(path, where, sizeof where);
  weir_type_format(want, want_type, sizeof want_type);
  weir_type_format(got, got_type, sizeof got_type);
  snprintf(out->text, sizeof out->text, "; %s is declared %s, got %s", where, want_type,
           got_type);
}

/* What is said of a child itself, not of its type: its name or whether it may be null. */
static bool note_child(type_difference *out, const arrow_path *path,
                       const struct ArrowSchema *got, bool name) {
  char where[160];
  if (out == NULL) return false;
  arrow_path_format(path, where, sizeof where);
  if (name) {
    snprintf(out->text, sizeof out->text, "; %s is declared, got '%.100s'", where,
             name_of(got));
  } else {
    snprintf(out->text, sizeof out->text, "; %s is declared not null, got a nullable one",
             where);
  }
  return false;
}

static bool types_match(const struct ArrowSchema *want, const struct ArrowSchema *got,
                        int depth, const arrow_path *path, type_difference *out) {
  if (depth > ARROW_MAX_DEPTH || strcmp(want->format, got->format) != 0 ||
      want->n_children != got->n_children ||
      (want->dictionary == NULL) != (got->dictionary == NULL)) {
    note_types(out, path, want, got);
    return false;
  }
  for (int64_t i = 0; i < want->n_children; i++) {
    const struct ArrowSchema *w = want->children[i], *g = got->children[i];
    arrow_path here = {path, names_matter(want) ? "field" : "child", i, name_of(w)};
    if (names_matter(want) && strcmp(name_of(w), name_of(g)) != 0)
      return note_child(out, &here, g, true);
    if (!(w->flags & ARROW_FLAG_NULLABLE) && (g->flags & ARROW_FLAG_NULLABLE))
      return note_child(out, &here, g, false);
    if (!types_match(w, g, depth + 1, &here, out)) return false;
  }
  arrow_path values = {path, "dictionary", 0, NULL};
  return want->dictionary == NULL ||
         types_match(want->dictionary, got->dictionary, depth + 1, &values, out);
}

bool arrow_types_match(const struct ArrowSchema *want, const struct ArrowSchema *got) {
  return types_match(want, got, 0, NULL, NULL);
}

static int64_t find_column(const struct ArrowSchema *schema, const char *name) {
  for (int64_t i = 0; i < schema->n_children; i++)
    if (strcmp(name_of(schema->children[i]), name) == 0) return i;
  return -1;
}

/* Names the first column at which the two part ways: missing, not asked for, or out of
 * order. */
static weir_status columns_differ(const struct ArrowSchema *want,
                                  const struct ArrowSchema *got, int64_t i,
                                  const char *what, weir_error *err) {
  const char *w = i < want->n_children ? name_of(want->children[i]) : NULL;
  const char *g = i < got->n_children ? name_of(got->children[i]) : NULL;
  if (w != NULL && find_column(got, w) < 0) {
    char type[160];
    weir_type_format(want->children[i], type, sizeof type);
    weir_error_set(err, WEIR_E_SCHEMA, 0,
                   "%s: column %" PRId64 " '%s' (%s) is declared but missing", what, i, w,
                   type);
  } else if (g != NULL && find_column(want, g) < 0) {
    weir_error_set(err, WEIR_E_SCHEMA, 0, "%s: column %" PRId64 " '%s' is not declared",
                   what, i, g);
  } else {
    weir_error_set(err, WEIR_E_SCHEMA, 0,
                   "%s: column %" PRId64
                   " is '%s' where '%s' is declared: same columns, other order",
                   what, i, g == NULL ? "(none)" : g, w == NULL ? "(none)" : w);
  }
  return weir_error_at(err, WEIR_E_SCHEMA, -1, (int32_t)i);
}

weir_status weir_schema_check(const struct ArrowSchema *want,
                              const struct ArrowSchema *got, const char *what,
                              weir_error *err) {
  int64_t columns =
      want->n_children > got->n_children ? want->n_children : got->n_children;
  for (int64_t i = 0; i < columns; i++) {
    if (i >= want->n_children || i >= got->n_children ||
        strcmp(name_of(want->children[i]), name_of(got->children[i])) != 0)
      return columns_differ(want, got, i, what, err);
    const struct ArrowSchema *w = want->children[i], *g = got->children[i];
    if (!(w->flags & ARROW_FLAG_NULLABLE) && (g->flags & ARROW_FLAG_NULLABLE)) {
      weir_error_set(err, WEIR_E_SCHEMA, 0,
                     "%s: column %" PRId64
                     " '%s' is declared not null, got a nullable one",
                     what, i, name_of(w));
      return weir_error_at(err, WEIR_E_SCHEMA, -1, (int32_t)i);
    }
    type_difference inside = {{0}};
    if (types_match(w, g, 0, NULL, &inside)) continue;
    char want_type[200], got_type[200];
    weir_type_format(w, want_type, sizeof want_type);
    weir_type_format(g, got_type, sizeof got_type);
    weir_error_set(err, WEIR_E_SCHEMA, 0,
                   "%s: column %" PRId64 " '%s' is declared %s, got %s%s", what, i,
                   name_of(w), want_type, got_type, inside.text);
    return weir_error_at(err, WEIR_E_SCHEMA, -1, (int32_t)i);
  }
  return WEIR_OK;
}
