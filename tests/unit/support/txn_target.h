/* SPDX-License-Identifier: Apache-2.0 */
/* A target with transactions in memory, which loses sessions and answers as it is told. */
#ifndef TESTS_UNIT_SUPPORT_TXN_TARGET_H
#define TESTS_UNIT_SUPPORT_TXN_TARGET_H

#include <pthread.h>
#include <stdbool.h>
#include <weir/txn_sink.h>

enum { ROWS = 4096, RULES = 8 };

typedef struct rule {
  const char *hook;
  int nth; /* that call of the hook, from 1; 0: every one */
  weir_status status;
  uint32_t flags;
  bool lands; /* a commit does its work all the same */
} rule;

struct target {
  pthread_mutex_t lock;
  int64_t rows[ROWS];
  size_t n;
  weir_cursor cursor;
  rule rules[RULES];
  int calls[RULES];
  uint64_t epoch; /* sessions opened before it are lost */
  int opened, closed, applied, prepared, begun, taken_over;
  bool hang; /* apply waits, whatever its call says, until this is false */
  int stuck; /* and so does begin of the session that was opened as that one, from 1 */
  weir_txn_contract contract;
};
extern struct target target;

/* The sink on it: a column `id: int64` first, whose negative values are bad data. */
extern const weir_sink_ops txn_target_sink;
extern const weir_txn_ops txn_target_ops;
extern const weir_option txn_target_options[];

void add_rule(rule r);
void drop_rule(size_t i);
void drop_rules(void);
void lose_sessions(void); /* those that are open */
void lock(void);
void unlock(void);

#endif
