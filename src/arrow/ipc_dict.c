/* SPDX-License-Identifier: Apache-2.0 */
/* The dictionaries of a stream: taken as they come, set into batches as they are read. A dictionary
 * may have dictionaries in its values, which may change by themselves; so what is put into a batch
 * is looked up anew whenever any dictionary has changed. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "arrow/ipc.h"

struct ipc_dict {
  int64_t id;
  const arrow_node *node; /* of the values */
  bool nested;            /* the values have dictionaries */
  bool busy;              /* being resolved: a dictionary within itself */
  ipc_array **chunks;     /* the values and then their deltas; none came yet: 0 of them */
  size_t n_chunks, capacity;
  ipc_array *resolved;  /* values with their own dictionaries set */
  uint64_t resolved_at; /* ipc_dicts.changes then */
};

static bool has_dictionary(const arrow_node *node) {
  if (node->dictionary != NULL) return true;
  for (int64_t i = 0; i < node->n_children; i++)
    if (has_dictionary(&node->children[i])) return true;
  return false;
}

static int compare_ids(const void *a, const void *b) {
  int64_t x = ((const ipc_dict *)a)->id, y = ((const ipc_dict *)b)->id;
  return (x > y) - (x < y);
}

static ipc_dict *find(const ipc_dicts *dicts, int64_t id) {
  ipc_dict key = {.id = id};
  return dicts->n == 0 ? NULL
                       : bsearch(&key, dicts->dicts, dicts->n, sizeof key, compare_ids);
}

/* Fields may share a dictionary if their values are of one type. */
static weir_status unite(ipc_dicts *dicts, weir_error *err) {
  size_t kept = 0;
  qsort(dicts->dicts, dicts->n, sizeof *dicts->dicts, compare_ids);
  for (size_t i = 0; i < dicts->n; i++) {
    ipc_dict *last = kept == 0 ? NULL : &dicts->dicts[kept - 1];
    if (last == NULL || last->id != dicts->dicts[i].id) {
      dicts->dicts[kept++] = dicts->dicts[i];
    } else if (!arrow_types_match(last->node->schema, dicts->dicts[i].node->schema)) {
      return weir_error_set(err, WEIR_E_CORRUPT, 0,
                            "schema: dictionary %" PRId64 " has two types of values",
                            last->id);
    }
  }
  dicts->n = kept;
  return WEIR_OK;
}

weir_status ipc_dicts_init(ipc_dicts *dicts, const ipc_schema *schema, weir_error *err) {
  const arrow_tree *tree = &schema->schema->tree;
  ipc_dicts made = {.schema = *schema};
  made.dicts = base_calloc(tree->n, sizeof *made.dicts, err);
  if (made.dicts == NULL) return WEIR_E_NOMEM;
  for (size_t i = 0; i < tree->n; i++)
    if (tree->nodes[i].dictionary != NULL)
      made.dicts[made.n++] =
          (ipc_dict){.id = schema->ids[i],
                     .node = tree->nodes[i].dictionary,
                     .nested = has_dictionary(tree->nodes[i].dictionary)};
  weir_status status = made.n == 0 ? WEIR_OK : unite(&made, err);
  if (status == WEIR_OK)
    *dicts = made;
  else
    free(made.dicts);
  return status;
}

static void forget(ipc_dict *dict) {
  for (size_t i = 0; i < dict->n_chunks; i++) ipc_array_unref(dict->chunks[i]);
  dict->n_chunks = 0;
  ipc_array_unref(dict->resolved);
  dict->resolved = NULL;
}

void ipc_dicts_clear(ipc_dicts *dicts) {
  for (size_t i = 0; i < dicts->n; i++) forget(&dicts->dicts[i]);
  dicts->changes++;
}

void ipc_dicts_done(ipc_dicts *dicts) {
  for (size_t i = 0; i < dicts->n; i++) {
    forget(&dicts->dicts[i]);
    free(dicts->dicts[i].chunks);
  }
  free(dicts->dicts);
  *dicts = (ipc_dicts){0};
}

static weir_status push_chunk(ipc_dict *dict, ipc_array *chunk, weir_error *err) {
  if (dict->n_chunks == dict->capacity) {
    size_t capacity = dict->capacity == 0 ? 2 : 2 * dict->capacity;
    ipc_array **chunks = base_realloc(dict->chunks, capacity, sizeof *chunks, err);
    if (chunks == NULL) {
      ipc_array_unref(chunk);
      return WEIR_E_NOMEM;
    }
    dict->chunks = chunks;
    dict->capacity = capacity;
  }
  dict->chunks[dict->n_chunks++] = chunk;
  return WEIR_OK;
}

weir_status ipc_dicts_take(ipc_dicts *dicts, ipc_decoder *decoder,
                           const ipc_message *message, weir_error *err) {
  ipc_array *values = NULL;
  ipc_dict *dict = find(dicts, message->id);
  if (dict == NULL)
    return weir_error_set(err, WEIR_E_CORRUPT, 0,
                          "dictionary %" PRId64 " is not one of the schema's",
                          message->id);
  BASE_TRY(ipc_body_decode(decoder, dict->node, message, &values, err));
  if (!message->delta) forget(dict);
  ipc_array_unref(dict->resolved);
  dict->resolved = NULL;
  dicts->changes++;
  return push_chunk(dict, values, err);
}

/* Joins chunks by neighbours, so that each value is copied log(chunks) times. */
static weir_status join_chunks(ipc_dict *dict, weir_error *err) {
  while (dict->n_chunks > 1) {
    size_t kept = 0;
    for (size_t i = 0; i < dict->n_chunks; i += 2) {
      ipc_array *joined = dict->chunks[i];
      if (i + 1 < dict->n_chunks) {
        BASE_TRY(ipc_array_concat(dict->node, dict->chunks[i], dict->chunks[i + 1],
                                  &joined, err));
        ipc_array_unref(dict->chunks[i]);
        ipc_array_unref(dict->chunks[i + 1]);
        dict->chunks[i] = dict->chunks[i + 1] = NULL;
      } else {
        dict->chunks[i] = NULL;
      }
      dict->chunks[kept++] = joined;
    }
    dict->n_chunks = kept;
  }
  return WEIR_OK;
}

static weir_status set_dictionaries(ipc_dicts *dicts, const arrow_node *node,
                                    struct ArrowArray *array, ipc_array *owner,
                                    weir_error *err);

/* The array to point at for `dict`: its values, with their own dictionaries set in a copy. Before
 * the first dictionary came only null slots may refer to it: then it is empty. */
static weir_status resolve(ipc_dicts *dicts, ipc_dict *dict, ipc_array **out,
                           weir_error *err) {
  weir_status status = WEIR_OK;
  ipc_array *made = NULL;
  if (dict->resolved != NULL && (!dict->nested || dict->resolved_at == dicts->changes)) {
    *out = dict->resolved;
    return WEIR_OK;
  }
  if (dict->busy)
    return weir_error_set(err, WEIR_E_CORRUPT, 0,
                          "dictionary %" PRId64 " is within itself", dict->id);
  BASE_TRY(join_chunks(dict, err));
  if (dict->n_chunks == 0) {
    made = ipc_array_empty(dict->node, err);
  } else if (!dict->nested) {
    made = ipc_array_ref(dict->chunks[0]);
  } else {
    const arrow_path path = {NULL, "dictionary", -1, NULL};
    made = ipc_array_clone(dict->node, dict->chunks[0], err);
    dict->busy = true;
    if (made != NULL)
      status = set_dictionaries(dicts, dict->node, &made->root, made, err);
    dict->busy = false;
    if (made != NULL && status == WEIR_OK)
      status = arrow_indices_check(dict->node, &made->root, &path, err);
  }
  if (made == NULL) return WEIR_E_NOMEM;
  if (status != WEIR_OK) {
    ipc_array_unref(made);
    return status;
  }
  ipc_array_unref(dict->resolved);
  dict->resolved = made;
  dict->resolved_at = dicts->changes;
  *out = made;
  return WEIR_OK;
}

static weir_status set_dictionaries(ipc_dicts *dicts, const arrow_node *node,
                                    struct ArrowArray *array, ipc_array *owner,
                                    weir_error *err) {
  for (int64_t i = 0; i < node->n_children; i++)
    BASE_TRY(set_dictionaries(dicts, &node->children[i], array->children[i], owner, err));
  if (node->dictionary == NULL) return WEIR_OK;
  ipc_array *values = NULL;
  int64_t id = dicts->schema.ids[node - dicts->schema.schema->tree.nodes];
  BASE_TRY(resolve(dicts, find(dicts, id), &values, err));
  BASE_TRY(ipc_array_use(owner, values, err));
  array->dictionary = &values->root;
  return WEIR_OK;
}

weir_status ipc_dicts_apply(ipc_dicts *dicts, ipc_array *batch, weir_error *err) {
  const arrow_node *root = arrow_schema_root(dicts->schema.schema);
  if (dicts->n == 0) return WEIR_OK;
  BASE_TRY(set_dictionaries(dicts, root, &batch->root, batch, err));
  return arrow_indices_check(root, &batch->root, NULL, err);
}
