/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tracking of detached tasks whose lifetime may outlast a connector.
 *
 * A connector that starts threads of its own keeps the owner, moves one guard into every task, and
 * hands the tracker to the runtime, which can then wait for the true end of all of them after the
 * connector is gone. The three share one count; all functions are thread-safe.
 */
#ifndef WEIR_TRACKER_H
#define WEIR_TRACKER_H

#include <weir/error.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_task_tracker weir_task_tracker;
typedef struct weir_task_owner weir_task_owner;
typedef struct weir_task_guard weir_task_guard;

WEIR_API weir_status weir_task_owner_new(weir_task_owner **out, weir_error *err);
/* After this no guard can be made; running tasks go on. NULL is a no-op. */
WEIR_API void weir_task_owner_free(weir_task_owner *owner);
/* A new reference, for the terminal_task_tracker hook. */
WEIR_API weir_task_tracker *weir_task_owner_tracker(weir_task_owner *owner);

/* One a task, made before the task starts; dropped by the task as the last thing it does. `what` names
 * the task in messages and is copied (63 bytes). */
WEIR_API weir_status weir_task_guard_new(weir_task_owner *owner, const char *what,
                                         weir_task_guard **out, weir_error *err);
WEIR_API void weir_task_guard_drop(weir_task_guard *guard);

WEIR_API weir_task_tracker *weir_task_tracker_ref(weir_task_tracker *tracker);
WEIR_API void weir_task_tracker_unref(weir_task_tracker *tracker); /* NULL is a no-op */
/* Tasks still running. */
WEIR_API size_t weir_task_tracker_running(weir_task_tracker *tracker);
/* WEIR_OK once the owner is freed and every task has ended; WEIR_E_TIMEOUT, naming one that runs. */
WEIR_API weir_status weir_task_tracker_wait(weir_task_tracker *tracker,
                                            int64_t timeout_ns, weir_error *err);

#ifdef __cplusplus
}
#endif
#endif
