/* SPDX-License-Identifier: Apache-2.0 */
/* The file sink's committer and cleaner. */
#ifndef CONNECTORS_FILE_COMMITTER_H
#define CONNECTORS_FILE_COMMITTER_H

#include <weir/sink.h>

#include "place.h"

extern const weir_committer_ops file_committer_ops;
extern const weir_cleaner_ops file_cleaner_ops;

/* Lives as long as its sink. Shares nothing with the writer that changes, so it may run beside it. */
typedef struct file_committer {
  const weir_host *host;
  char *configured; /* `path` as the options give it; found again at each call */
} file_committer;

/* The cursors of the same pipeline and sink at that target, under any deployment; none where there is no target. */
weir_status file_committer_find(const char *configured, const weir_namespace *ns,
                                weir_cursor_list *out, weir_error *err);

/* Counted; holds a copy of the path, which stays NULL until a hook has seen the options. */
typedef struct file_cleaner file_cleaner;

weir_status file_cleaner_new(file_cleaner **out, weir_error *err);
/* Once, on the sink's thread, before the cleaner is handed out. */
weir_status file_cleaner_set_path(file_cleaner *cleaner, const char *configured,
                                  weir_error *err);

/* Removes the staged files of an attempt that its manifest does not name: those of `incarnation`, or
 * with NULL those of any. */
weir_status file_remove_staged(const file_place_folders *folders, uint64_t attempt,
                               uint64_t participant, const uint8_t *incarnation,
                               weir_error *err);

#endif
