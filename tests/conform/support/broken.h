/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sink against a folder, honest or with one fault: what the kit must find.
 *
 * `target` holds the rows that readers see, the chain of claims and a cursor a deployment; it is replaced
 * as a whole by rename(), under a lock. `staged-*` are the rows of one participant's attempt.
 */
#ifndef SUPPORT_BROKEN_H
#define SUPPORT_BROKEN_H

#include <weir/sink.h>

typedef enum broken_fault {
  HONEST,
  CONTRACT_OPENS_A_FILE,
  CONTRACT_CHANGES_ITS_MIND,
  PREPARES_ANOTHER_TARGET,
  CLOSE_DIES_IN_AN_EPOCH,
  CLOSE_PUBLISHES,
  RELEASE_NEEDS_A_CLOSE,
  LEAKS_A_THREAD,
  LEAKS_A_FILE,
  LEAKS_MEMORY,
  INTENT_TOO_LARGE,
  INTENT_CHANGES,
  SECRET_IN_INTENT,
  SECRET_IN_DESCRIPTOR,
  SECRET_IN_IDENTITY,
  SECRET_IN_LOG,
  SECRET_IN_ERROR,
  TAKES_PART_OF_A_BAD_BATCH,
  DESCRIBES_NOTHING,
  LOSES_ROWS_AT_AN_EMPTY_EPOCH,
  PUBLISHES_THE_LAST_ATTEMPT_ALONE,
  WRITERS_SHARE_A_NAME,
  NEXT_EPOCH_DROPS_THE_LAST,
  COMMITS_IN_PRE_COMMIT,
  APPENDS_TWICE,
  FORGETS_THE_FENCE,
  IGNORES_THE_DIGEST,
  IGNORES_THE_PREDECESSOR,
  UNREADABLE_CURSOR_IS_NONE,
  ROLLS_BACK_IN_DOUBT,
  STAGES_IN_VAIN,
  SECOND_DEPLOYMENT_WELCOME,
  REPLACED_OWNER_COMMITS,
  ROLLBACK_FAILS_TWICE,
  ROLLBACK_NEEDS_A_BEGIN,
  ROLLBACK_KEEPS_ROWS,
  ROLLBACK_TAKES_PUBLISHED_ROWS,
  ROLLBACK_DROPS_THE_DECIDED,
  CLEANER_FAILS_TWICE,
  CLEANER_NEEDS_AN_INTENT,
  CLEANER_DELETES_LIVE_FILES,
  CLEANER_IGNORES_THE_INCARNATION,
  CLEANER_NEEDS_ITS_SINK,
  DELETES_COME_LAST,
  TAKES_NULL_KEYS,
  WRITE_IGNORES_THE_DEADLINE,
  FLUSH_IGNORES_THE_DEADLINE,
  SAFE_BUT_NOT_AFTER_A_CANCEL,
  DURABLE_IN_MEMORY_ONLY,
  PUBLISHES_IN_TWO_STEPS,
  BROKEN_FAULTS
} broken_fault;

typedef struct broken_mode {
  broken_fault fault;
  int32_t consistency;
  int keyed;
  int32_t policy; /* WEIR_CANCEL_* */
} broken_mode;

extern broken_mode broken; /* set before the kit runs */
extern const weir_sink_ops broken_sink_ops;

/* Rows at the target in `folder`. */
weir_status broken_count(const char *folder, uint64_t *rows, weir_error *err);

#endif
