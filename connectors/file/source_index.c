/* SPDX-License-Identifier: Apache-2.0 */
#include "source_index.h"

#include <stdlib.h>

void file_index_done(file_index *index) {
  free(index->entries);
  *index = (file_index){0};
}

weir_status file_index_add(file_index *index, uint64_t a, uint64_t b, size_t at,
                           weir_error *err) {
  if (index->n == index->room) {
    size_t room = index->room ? index->room * 2 : 64;
    file_index_entry *entries = realloc(index->entries, room * sizeof(*entries));
    if (entries == NULL)
      return weir_error_set(err, WEIR_E_NOMEM, 0, "no memory for %zu files", room);
    index->entries = entries;
    index->room = room;
  }
  index->entries[index->n++] = (file_index_entry){a, b, at};
  return WEIR_OK;
}

static int by_key(const void *left, const void *right) {
  const file_index_entry *x = left, *y = right;
  if (x->a != y->a) return x->a < y->a ? -1 : 1;
  if (x->b != y->b) return x->b < y->b ? -1 : 1;
  return x->at < y->at ? -1 : x->at > y->at;
}

void file_index_sort(file_index *index) {
  if (index->n > 1) qsort(index->entries, index->n, sizeof(*index->entries), by_key);
}

size_t file_index_find(const file_index *index, uint64_t a, uint64_t b) {
  file_index_entry key = {a, b, 0};
  size_t from = 0, to = index->n;
  while (from < to) {
    size_t middle = from + (to - from) / 2;
    if (by_key(&index->entries[middle], &key) < 0)
      from = middle + 1;
    else
      to = middle;
  }
  return from;
}

bool file_index_has(const file_index *index, size_t i, uint64_t a, uint64_t b) {
  return i < index->n && index->entries[i].a == a && index->entries[i].b == b;
}

bool file_index_holds(const file_index *index, uint64_t a, uint64_t b) {
  return file_index_has(index, file_index_find(index, a, b), a, b);
}
