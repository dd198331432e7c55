/* SPDX-License-Identifier: Apache-2.0 */
/* The target of the broken sink: one file that is replaced as a whole. */
#ifndef SUPPORT_TARGET_H
#define SUPPORT_TARGET_H

#include <stdbool.h>
#include <weir/cursor.h>

enum { TARGET_CLAIMS = 256, TARGET_ROWS = 1 << 16 };

typedef struct target_state {
  uint64_t n_claims, n_rows;
  uint8_t claims[TARGET_CLAIMS][WEIR_UUID_SIZE];
  weir_cursor cursors[TARGET_CLAIMS]; /* of each deployment */
  int64_t rows[TARGET_ROWS];          /* ids; only the first n_rows are stored */
} target_state;

typedef struct target_row {
  int64_t id;
  char op;
} target_row;

/* Zeroes when there is none yet. */
weir_status target_read(const char *folder, target_state *out, weir_error *err);
weir_status target_write(const char *folder, const target_state *state, weir_error *err);
/* A lock that falls with the process. -1: an error. */
int target_lock(const char *folder);
weir_cursor *target_cursor(target_state *state, const weir_namespace *ns); /* or NULL */
void target_apply(target_state *state, const target_row *row, bool keyed);

#endif
