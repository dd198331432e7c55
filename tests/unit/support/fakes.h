/* SPDX-License-Identifier: Apache-2.0 */
/* A sink and a source that do as a test says, and write down what was asked of them. One of each. */
#ifndef TESTS_UNIT_SUPPORT_FAKES_H
#define TESTS_UNIT_SUPPORT_FAKES_H

#include <weir/plugin.h>

typedef struct fake_state {
  char log[8192];      /* names of the hooks called, each with a blank behind it */
  const char *fail_at; /* the hook that fails, with `fail` as its error; NULL: none */
  weir_status fail;
  uint32_t fail_flags;
  const char *fail_message; /* NULL: it sets no error */
  const char
      *block_at; /* the hook that waits until its call is cancelled, then answers OK */
  int32_t policy;
  weir_contract contract;
  weir_source_contract source_contract;
  const char *key[4]; /* keyed_mutation_key; key[0] NULL: absent */
  int empty_key;
  uint64_t short_by; /* write_batch answers that many rows too few */
  size_t bytes;      /* size of intents, descriptors and positions; SIZE_MAX: absent */
  int bytes_without_data; /* ... with a NULL pointer */
  const char *schema;     /* schema(): text; NULL: the binding's; "": none at all */
  int no_binding;         /* resolve_schema leaves the binding empty */
  int no_committer;
  weir_cursor cursor; /* observe_cursor's and commit_aggregated's answer */
  size_t found;       /* find_cursors: how many; without a list when `found_nothing` */
  int found_nothing;
  int cleaners; /* references to the cleaner */
  int released;
  int32_t read;      /* what read answers; 0: a batch while there is one, else the end */
  weir_batch *batch; /* the batch that read answers, once */
  weir_schema *resolved;
} fake_state;

extern fake_state fake;

/* Committable, with all entries of its own. */
extern const weir_sink_ops fake_sink_ops;
/* Only what is required. */
extern const weir_sink_ops fake_plain_sink_ops;
extern const weir_source_ops fake_source_ops;
extern const weir_source_ops fake_plain_source_ops;
extern const weir_committer_ops fake_committer_ops;
extern const weir_cleaner_ops fake_cleaner_ops;

/* A cleared state: everything works, a committable multi-writer, a replayable source. */
void fake_reset(void);

#endif
