/* SPDX-License-Identifier: Apache-2.0 */
/* What may be asked for single columns, of a writer or of a schema alone. */
#include "writer.h"

/* ---- Bloom filters ---------------------------------------------------------------------------- */

/* The leaf of the column with that name, if it can have a filter. */
static weir_status find_bloom_column(const arrow_node *root, const parquet_leaf *leaves,
                                     size_t n, const char *name, size_t *out,
                                     weir_error *err) {
  for (size_t i = 0; i < n; i++) {
    if (strcmp(root->children[leaves[i].column].schema->name, name) != 0) continue;
    const char *why = bloom_refusal(&leaves[i]);
    *out = i;
    if (why == NULL) return WEIR_OK;
    return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                          "column '%s' cannot have a Bloom filter: %s", name, why);
  }
  return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                        "there is no column '%s' for a Bloom filter", name);
}

/* Wishes come before rows. */
static weir_status in_time(const weir_parquet_writer *w, const char *what,
                           weir_error *err) {
  if (w->rows == 0 && !w->broken && !w->finished) return WEIR_OK;
  return weir_error_set(err, WEIR_E_INVALID_STATE, 0,
                        "Parquet writer: %s are asked for before rows", what);
}

weir_status weir_parquet_writer_bloom_filter(weir_parquet_writer *w, const char *name,
                                             weir_error *err) {
  size_t column = 0;
  BASE_TRY(in_time(w, "Bloom filters", err));
  BASE_TRY(find_bloom_column(arrow_schema_root(w->schema), w->leaves, w->n_columns, name,
                             &column, err));
  w->columns[column].bloom = true;
  return WEIR_OK;
}

/* ---- encodings -------------------------------------------------------------------------------- */

static weir_status find_encoding(const parquet_leaf *leaves, size_t n, const char *path,
                                 const char *name, bool newest, size_t *leaf,
                                 choose_wish *out, weir_error *err) {
  for (size_t i = 0; i < n; i++) {
    if (strcmp(leaves[i].name, path) != 0) continue;
    *leaf = i;
    return choose_named(&leaves[i], name, newest, out, err);
  }
  return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                        "there is no column '%s' for an encoding; of a nested one its "
                        "values' path is wanted, such as 'tags.list.element'",
                        path);
}

weir_status weir_parquet_writer_encoding(weir_parquet_writer *w, const char *path,
                                         const char *name, weir_error *err) {
  size_t i = 0;
  choose_wish wish = {0};
  BASE_TRY(in_time(w, "encodings", err));
  BASE_TRY(find_encoding(w->leaves, w->n_columns, path, name, w->context.newest, &i,
                         &wish, err));
  column_wish(&w->columns[i], wish);
  return WEIR_OK;
}

/* ---- schemas alone ---------------------------------------------------------------------------- */

typedef struct opened {
  weir_schema *schema;
  parquet_schema elements;
  const parquet_leaf *leaves;
  size_t n;
} opened;

static void close_schema(opened *o) {
  parquet_schema_done(&o->elements);
  weir_schema_unref(o->schema);
}

static weir_status open_schema(const struct ArrowSchema *schema, opened *o,
                               weir_error *err) {
  BASE_TRY(weir_schema_copy(schema, &o->schema, err));
  weir_status status =
      parquet_schema_init(&o->elements, arrow_schema_root(o->schema), err);
  if (status != WEIR_OK) {
    close_schema(o);
    return status;
  }
  o->leaves = parquet_schema_leaves(&o->elements, &o->n);
  return WEIR_OK;
}

weir_status weir_parquet_schema_check(const struct ArrowSchema *schema, weir_error *err) {
  opened o = {0};
  BASE_TRY(open_schema(schema, &o, err));
  close_schema(&o);
  return WEIR_OK;
}

weir_status weir_parquet_bloom_filter_check(const struct ArrowSchema *schema,
                                            const char *column, weir_error *err) {
  opened o = {0};
  size_t leaf = 0;
  BASE_TRY(open_schema(schema, &o, err));
  weir_status status =
      find_bloom_column(arrow_schema_root(o.schema), o.leaves, o.n, column, &leaf, err);
  close_schema(&o);
  return status;
}

weir_status weir_parquet_encoding_check(const struct ArrowSchema *schema,
                                        int32_t encodings, const char *column,
                                        const char *encoding, weir_error *err) {
  opened o = {0};
  size_t leaf = 0;
  choose_wish wish;
  BASE_TRY(open_schema(schema, &o, err));
  weir_status status = find_encoding(o.leaves, o.n, column, encoding,
                                     encodings == WEIR_PARQUET_NEWEST, &leaf, &wish, err);
  close_schema(&o);
  return status;
}
