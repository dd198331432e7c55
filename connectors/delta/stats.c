/* SPDX-License-Identifier: Apache-2.0 */
#include "stats.h"

#include <math.h>
#include <nanoarrow/nanoarrow.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stats_node.h"

enum { INDEXED = 32 };

/* ---- which columns ------------------------------------------------------------------------------ */

typedef struct choice {
  delta_text named; /* delta.dataSkippingStatsColumns; absent: by number */
  int64_t left;     /* columns still to take; below 0: all */
} choice;

static int64_t number_of(delta_text text) {
  char digits[24];
  char *end = NULL;
  if (!text.p || !text.n || text.n >= sizeof(digits)) return INDEXED;
  memcpy(digits, text.p, text.n);
  digits[text.n] = 0;
  long long n = strtoll(digits, &end, 10);
  return *end || n < -1 ? INDEXED : n;
}

/* Whether the dotted path, or a struct around it, stands in the list "a, b.c, `d e`". */
static bool is_named(delta_text list, const char *path) {
  size_t n = strlen(path);
  for (size_t at = 0; at <= list.n;) {
    const char *comma = memchr(list.p + at, ',', list.n - at);
    size_t end = comma ? (size_t)(comma - list.p) : list.n, from = at, to = end, k = 0;
    at = end + 1;
    while (from < to && list.p[from] == ' ') from++;
    while (to > from && list.p[to - 1] == ' ') to--;
    for (; from < to; from++) {
      if (list.p[from] == '`') continue;
      if (k >= n || list.p[from] != path[k]) break;
      k++;
    }
    if (from == to && k && (k == n || path[k] == '.')) return true;
  }
  return false;
}

static bool choose(choice *c, const char *path) {
  if (c->named.p) return is_named(c->named, path);
  if (c->left < 0) return true;
  return c->left > 0 && c->left-- > 0;
}

static weir_status make_node(stats_node *node, const struct ArrowSchema *input,
                             const struct ArrowSchema *file, const char *around,
                             choice *c, weir_error *err) {
  char path[512];
  snprintf(path, sizeof(path), "%s%s%s", around, *around ? "." : "", input->name);
  node->name = file->name;
  node->type = delta_type_of_arrow(file, &node->precision, &node->scale);
  if (node->type != DELTA_TYPE_STRUCT) {
    node->indexed = choose(c, path);
    return WEIR_OK;
  }
  node->children = calloc((size_t)file->n_children + 1, sizeof(*node->children));
  if (!node->children) return delta_no_memory(err);
  node->n_children = (size_t)file->n_children;
  for (int64_t i = 0; i < file->n_children; i++) {
    DELTA_TRY(make_node(&node->children[i], input->children[i], file->children[i], path,
                        c, err));
    node->indexed = node->indexed || node->children[i].indexed;
  }
  return WEIR_OK;
}

struct delta_stats {
  stats_node root;
  int64_t rows;
};

static void node_done(stats_node *node) {
  for (size_t i = 0; i < node->n_children; i++) node_done(&node->children[i]);
  free(node->children);
}

void delta_stats_free(delta_stats *stats) {
  if (!stats) return;
  node_done(&stats->root);
  free(stats);
}

weir_status delta_stats_new(const struct ArrowSchema *input,
                            const struct ArrowSchema *files,
                            const delta_pairs *configuration, delta_stats **out,
                            weir_error *err) {
  choice c = {.named = delta_pairs_get(configuration, "delta.dataSkippingStatsColumns"),
              .left = number_of(
                  delta_pairs_get(configuration, "delta.dataSkippingNumIndexedCols"))};
  delta_stats *s = calloc(1, sizeof(*s));
  if (!s) return delta_no_memory(err);
  s->root.type = DELTA_TYPE_STRUCT;
  s->root.children = calloc((size_t)files->n_children + 1, sizeof(*s->root.children));
  weir_status status = s->root.children ? WEIR_OK : delta_no_memory(err);
  if (!status) s->root.n_children = (size_t)files->n_children;
  for (int64_t i = 0; !status && i < files->n_children; i++)
    status = make_node(&s->root.children[i], input->children[i], files->children[i], "",
                       &c, err);
  if (status)
    delta_stats_free(s);
  else
    *out = s;
  return status;
}

/* ---- values ------------------------------------------------------------------------------------- */

/* `n` slots of a column from `first` on. mask: a slot of 0 is null, whatever the column says; NULL: none is. */
typedef struct slots {
  const struct ArrowArrayView *view;
  int64_t first, n;
  const uint8_t *mask;
} slots;

static bool is_null(const slots *s, int64_t i) {
  return (s->mask && !s->mask[i]) || ArrowArrayViewIsNull(s->view, s->first + i);
}

static void add_long(stats_node *node, int64_t v) {
  if (!node->has) node->min.i = node->max.i = v;
  if (v < node->min.i) node->min.i = v;
  if (v > node->max.i) node->max.i = v;
  node->has = true;
}

static void add_double(stats_node *node, double v) {
  if (!isfinite(v)) node->no_bounds = true;
  if (!node->has) node->min.d = node->max.d = v;
  if (v < node->min.d) node->min.d = v;
  if (v > node->max.d) node->max.d = v;
  node->has = true;
}

static void add_decimal(stats_node *node, const void *bytes) {
  delta_int128 v;
  memcpy(&v, bytes, sizeof(v));
  if (!node->has) node->min.dec = node->max.dec = v;
  if (v < node->min.dec) node->min.dec = v;
  if (v > node->max.dec) node->max.dec = v;
  node->has = true;
}

/* Of fixed values, without looking at each for null where none is. */
#define EACH_VALUE(ctype, add)                                                          \
  do {                                                                                  \
    const ctype *v =                                                                    \
        (const ctype *)s->view->buffer_views[1].data.data + s->view->offset + s->first; \
    for (int64_t i = 0; i < s->n; i++) {                                                \
      if (!nulls || !is_null(s, i)) add(node, v[i]);                                    \
    }                                                                                   \
  } while (0)

static void add_fixed(stats_node *node, const slots *s, bool nulls) {
  const uint8_t *bytes = s->view->buffer_views[1].data.as_uint8;
  switch (node->type) {
    case DELTA_TYPE_BYTE:
      EACH_VALUE(int8_t, add_long);
      break;
    case DELTA_TYPE_SHORT:
      EACH_VALUE(int16_t, add_long);
      break;
    case DELTA_TYPE_INTEGER:
    case DELTA_TYPE_DATE:
      EACH_VALUE(int32_t, add_long);
      break;
    case DELTA_TYPE_LONG:
    case DELTA_TYPE_TIMESTAMP:
    case DELTA_TYPE_TIMESTAMP_NTZ:
      EACH_VALUE(int64_t, add_long);
      break;
    case DELTA_TYPE_FLOAT:
      EACH_VALUE(float, add_double);
      break;
    case DELTA_TYPE_DOUBLE:
      EACH_VALUE(double, add_double);
      break;
    case DELTA_TYPE_DECIMAL:
      for (int64_t i = 0; i < s->n; i++) {
        if (!nulls || !is_null(s, i))
          add_decimal(node, bytes + 16 * (s->view->offset + s->first + i));
      }
      break;
    default:
      break;
  }
}

static int compare(const uint8_t *a, size_t n, const stats_text *b) {
  int order = memcmp(a, b->p, n < b->n ? n : b->n);
  return order ? order : n < b->n ? -1 : n > b->n;
}

/* The first 32 characters; false when that bounds nothing: not UTF-8, or the value goes on with the largest character
 * that there is, U+10FFFF, so that the prefix with that behind it is no upper bound. */
static bool cut(const uint8_t *p, size_t n, stats_text *out) {
  size_t used = 0;
  for (int i = 0; i < STATS_TEXT_CHARACTERS && used < n; i++) {
    size_t size = delta_value_character(p + used, n - used);
    if (!size) return false;
    used += size;
  }
  memcpy(out->p, p, used);
  out->n = used;
  out->cut = used < n;
  return n - used < 4 || memcmp(p + used, "\xf4\x8f\xbf\xbf", 4) != 0;
}

/* Cutting keeps the order, so a prefix of the least value is the least prefix; of equal prefixes that one bounds from
 * above that was cut. */
static void add_text(stats_node *node, struct ArrowStringView text) {
  const uint8_t *p = (const uint8_t *)(text.data ? text.data : "");
  size_t n = (size_t)text.size_bytes;
  if (node->no_bounds) return;
  if (node->has && compare(p, n, &node->min.text) >= 0 &&
      compare(p, n, &node->max.text) <= 0)
    return;
  stats_text prefix;
  if (!cut(p, n, &prefix)) {
    node->no_bounds = true;
    return;
  }
  if (!node->has || compare(prefix.p, prefix.n, &node->min.text) < 0)
    node->min.text = prefix;
  int order = node->has ? compare(prefix.p, prefix.n, &node->max.text) : 1;
  if (order > 0 || (order == 0 && prefix.cut)) node->max.text = prefix;
  node->has = true;
}

static int64_t add_texts(stats_node *node, const slots *s) {
  const struct ArrowArrayView *values = s->view->dictionary;
  int64_t nulls = 0;
  for (int64_t i = 0; i < s->n; i++) {
    bool null = is_null(s, i);
    int64_t at = s->first + i;
    if (!null && values) {
      at = ArrowArrayViewGetIntUnsafe(s->view, at);
      if (at < 0 || at >= values->length) {
        node->no_bounds = true; /* the writer refuses the batch */
        continue;
      }
      null = ArrowArrayViewIsNull(values, at);
    }
    nulls += null;
    if (!null)
      add_text(node, ArrowArrayViewGetStringUnsafe(values ? values : s->view, at));
  }
  return nulls;
}

static weir_status add_slots(stats_node *node, const slots *s, weir_error *err);

/* A field of a null struct is null. */
static weir_status add_struct(stats_node *node, const slots *s, weir_error *err) {
  uint8_t *mask = NULL;
  slots below = {NULL, s->first + s->view->offset, s->n, s->mask};
  if (s->view->null_count != 0 && s->view->buffer_views[0].data.data && s->n) {
    below.mask = mask = malloc((size_t)s->n);
    if (!mask) return delta_no_memory(err);
    for (int64_t i = 0; i < s->n; i++) mask[i] = !is_null(s, i);
  }
  weir_status status = WEIR_OK;
  for (size_t i = 0; !status && i < node->n_children; i++) {
    below.view = s->view->children[i];
    status = add_slots(&node->children[i], &below, err);
  }
  free(mask);
  return status;
}

static weir_status add_slots(stats_node *node, const slots *s, weir_error *err) {
  if (!node->indexed) return WEIR_OK;
  if (node->type == DELTA_TYPE_STRUCT) return add_struct(node, s, err);
  if (node->type == DELTA_TYPE_STRING) {
    node->nulls += add_texts(node, s);
    return WEIR_OK;
  }
  const struct ArrowArrayView *values = s->view->dictionary;
  bool nulls = s->mask || s->view->buffer_views[0].data.data || values;
  for (int64_t i = 0; nulls && i < s->n; i++) {
    bool null = is_null(s, i);
    if (!null && values) {
      int64_t at = ArrowArrayViewGetIntUnsafe(s->view, s->first + i);
      null = at >= 0 && at < values->length && ArrowArrayViewIsNull(values, at);
    }
    node->nulls += null;
  }
  if (values)
    node->no_bounds = true;
  else
    add_fixed(node, s, nulls);
  return WEIR_OK;
}

weir_status delta_stats_add(delta_stats *stats, weir_batch *batch, weir_error *err) {
  struct ArrowArrayView view;
  const struct ArrowSchema *schema = weir_schema_arrow(weir_batch_schema(batch));
  if (!weir_batch_rows(batch)) return WEIR_OK;
  if (ArrowArrayViewInitFromSchema(&view, schema, NULL) ||
      ArrowArrayViewSetArray(&view, weir_batch_array(batch), NULL)) {
    ArrowArrayViewReset(&view);
    return weir_error_set(err, WEIR_E_INTERNAL, 0, "a batch cannot be viewed");
  }
  slots all = {&view, 0, weir_batch_rows(batch), NULL};
  weir_status status = add_struct(&stats->root, &all, err);
  ArrowArrayViewReset(&view);
  stats->rows += weir_batch_rows(batch);
  return status;
}

weir_status delta_stats_write(const delta_stats *stats, char **out, size_t *size,
                              weir_error *err) {
  return stats_nodes_write(&stats->root, stats->rows, out, size, err);
}
