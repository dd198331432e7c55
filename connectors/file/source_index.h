/* SPDX-License-Identifier: Apache-2.0 */
/* Finds items of a list by two numbers: identity, name, or what a name may be a rotation of. */
#ifndef CONNECTORS_FILE_SOURCE_INDEX_H
#define CONNECTORS_FILE_SOURCE_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weir/error.h>

typedef struct file_index_entry {
  uint64_t a, b;
  size_t at;
} file_index_entry;

typedef struct file_index {
  file_index_entry *entries;
  size_t n, room;
} file_index;

void file_index_done(file_index *index); /* zeroed is fine */
weir_status file_index_add(file_index *index, uint64_t a, uint64_t b, size_t at,
                           weir_error *err);
/* After the last add; entries of one key are in the order of `at`. */
void file_index_sort(file_index *index);
/* The first entry of a key; those after it are its while file_index_has. */
size_t file_index_find(const file_index *index, uint64_t a, uint64_t b);
bool file_index_has(const file_index *index, size_t i, uint64_t a, uint64_t b);
/* Whether there is an entry of that key. */
bool file_index_holds(const file_index *index, uint64_t a, uint64_t b);
#endif
