/* SPDX-License-Identifier: Apache-2.0 */
/* What stats.c gathers of one column, and its JSON. */
#ifndef CONNECTORS_DELTA_STATS_NODE_H
#define CONNECTORS_DELTA_STATS_NODE_H

#include "schema.h"
#include "value.h"

enum { STATS_TEXT_CHARACTERS = 32 };

typedef struct stats_text {
  uint8_t p[4 * STATS_TEXT_CHARACTERS];
  size_t n;
  bool cut; /* more of the value follows */
} stats_text;

typedef union stats_bound {
  int64_t i;
  double d;
  delta_int128 dec;
  stats_text text;
} stats_bound;

typedef struct stats_node {
  const char *name; /* the file's; borrowed */
  int type, precision, scale;
  bool indexed; /* it or something below it */
  bool has, no_bounds;
  int64_t nulls;
  stats_bound min, max;
  struct stats_node *children;
  size_t n_children;
} stats_node;

weir_status stats_nodes_write(const stats_node *root, int64_t rows, char **out,
                              size_t *size, weir_error *err);

#endif
