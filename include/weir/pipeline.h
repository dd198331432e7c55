/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A running pipeline: for programs with their own sources or their own event loop. The `weir` command is
 * itself such a program.
 *
 * Caveats first. A row is delivered when an event COMMITTED names a checkpoint at or beyond the barrier
 * that followed it, not when its push returns. After REWIND an input takes no pushes until its position
 * was read: rows after that position must be pushed again. A pipeline is one owner of its state folder
 * at a time; a second is refused with WEIR_E_FENCED.
 *
 * All calls are thread-safe but weir_config_free and weir_pipeline_close. The library installs no signal
 * handler, never forks, exits or calls setlocale, and writes to no standard stream (the `stdout` sink
 * excepted).
 */
#ifndef WEIR_PIPELINE_H
#define WEIR_PIPELINE_H

#include <weir/batch.h>
#include <weir/bytes.h>
#include <weir/config.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_pipeline weir_pipeline;
typedef struct weir_input weir_input;

typedef struct weir_host_options {
  uint32_t struct_size;
  int32_t log_level; /* WEIR_LOG_*; 0: nothing */
  /* any thread */
  void (*log)(void *ctx, int32_t level, const char *where, const char *text);
  void *log_ctx;
} weir_host_options;

/* what weir_pipeline_open is asked to do; 0: to deliver */
enum {
  /* settle what an earlier run left, open no source, then ENDED */
  WEIR_OPEN_RECOVER_ONLY = 1,
  /* leave the old state aside and deliver everything again */
  WEIR_OPEN_NEW_DEPLOYMENT = 2
};

/* Builds the pipeline, takes the lease, recovers, and opens sources and sinks; blocks meanwhile.
 * `config` may be freed afterwards; `host` may be NULL. Errors as the exit statuses of the command say:
 * WEIR_E_INVALID_CONFIG, WEIR_E_ADMISSION, WEIR_E_FENCED, WEIR_E_CONFLICT, others. WEIR_E_FENCED with flag
 * RETRIABLE: with `store` on a server, the owner's lease may expire; opening again later may succeed. */
WEIR_API weir_status weir_pipeline_open(const weir_config *config,
                                        const weir_host_options *host, uint32_t flags,
                                        weir_pipeline **out, weir_error *err);

/* A lane of a source of type `push`: one per pushing thread, order is kept within it. `schema` is what its
 * batches have (borrowed, copied); NULL when the configuration names it. Lanes are numbered from 0 and
 * must all be there before the first barrier is answered. The input lives as long as the pipeline. */
WEIR_API weir_status weir_pipeline_input(weir_pipeline *pipeline, const char *source,
                                         uint32_t lane, const struct ArrowSchema *schema,
                                         weir_input **out, weir_error *err);

/* The last decided position; absent: from the start. Ends the refusal of pushes that follows REWIND. Where
 * another thread takes the events, the pushing thread calls this once a call of its own has answered
 * WEIR_E_REWOUND, not for the event, which may reach it after it went back already. */
WEIR_API weir_status weir_input_position(weir_input *input, weir_bytes *out,
                                         weir_error *err);

/* Pushes a batch: moved on WEIR_OK, else it is still the caller's. timeout 0 tries, negative waits for
 * ever. WEIR_E_TIMEOUT with flag RETRIABLE: no room; an event ROOM follows. WEIR_E_REWOUND: read the
 * position. WEIR_E_ENDED: the pipeline stopped. Never does I/O. The array is checked as in weir_batch_new; the
 * offsets within text and binary columns, unless rows are sent by key, by the sink's thread: broken ones stop
 * the pipeline, as a fault of the program. */
WEIR_API weir_status weir_input_push(weir_input *input, struct ArrowArray *array,
                                     int64_t timeout_ns, weir_error *err);

/* Answers event BARRIER(id) from the pushing thread: all pushed so far is before it, and `position` is
 * where to go on from. */
WEIR_API weir_status weir_input_barrier(weir_input *input, uint64_t checkpoint_id,
                                        const void *position, size_t size,
                                        weir_error *err);

/* The last barrier, with its position: nothing more will be pushed, unless a rewind follows. */
WEIR_API weir_status weir_input_end(weir_input *input, const void *position, size_t size,
                                    weir_error *err);

/* Asks for a checkpoint now, beside the timer; returns at once with the attempt's number. */
WEIR_API weir_status weir_pipeline_checkpoint(weir_pipeline *pipeline,
                                              uint64_t *checkpoint_id, weir_error *err);

/* Asks for the end: one last checkpoint, then event ENDED. weir's own sources stop where they are; push
 * inputs are asked by BARRIER and end with weir_input_end. */
WEIR_API weir_status weir_pipeline_drain(weir_pipeline *pipeline, weir_error *err);

enum {
  WEIR_EVENT_NONE = 0, /* the timeout passed */
  /* checkpoint: every push input answers with weir_input_barrier */
  WEIR_EVENT_BARRIER = 1,
  WEIR_EVENT_COMMITTED = 2, /* checkpoint: every target shows it */
  WEIR_EVENT_REWIND = 3,    /* input: seek your source to weir_input_position */
  WEIR_EVENT_ROOM = 4,      /* input: a push may succeed again */
  WEIR_EVENT_ENDED = 5,     /* all delivered and committed */
  WEIR_EVENT_FAILED = 6     /* error: the pipeline stopped; close it */
};

typedef struct weir_event {
  uint32_t struct_size;
  int32_t type; /* WEIR_EVENT_* */
  uint64_t checkpoint;
  weir_input *input;
  weir_error error;
} weir_event;

/* Readable while events wait: for poll, epoll, libuv. Never read from it. */
WEIR_API int weir_pipeline_fd(const weir_pipeline *pipeline);

/* The next event, waiting up to timeout_ns (0: not at all, negative: for ever). After ENDED and FAILED
 * the same event is given again. */
WEIR_API weir_status weir_pipeline_next(weir_pipeline *pipeline, weir_event *out,
                                        int64_t timeout_ns, weir_error *err);

/* The document of `weir status --json`, live, with one member more: `run`, the document with which
 * `weir run --json` ends, as far as this run has come ({"pipeline", "deployment", "guarantee", "epochs",
 * "rows", "bytes", "dead_letters", "seconds", "sources": {NAME: {"rows", "lost"}}, "sinks": {NAME: {"rows", "bytes",
 * "cursor"}}}; a cursor is {"checkpoint", "token"} or null; rows and bytes are without those of sinks that take dead letters, rows
 * of sources with the bad ones). UTF-8 JSON without a trailing NUL. Also after ENDED and
 * FAILED. */
WEIR_API weir_status weir_pipeline_stats(weir_pipeline *pipeline, weir_bytes *json,
                                         weir_error *err);

/* Ends and frees, always. drain_ns 0 aborts the open epoch; else as weir_pipeline_drain, waiting that
 * long. WEIR_OK: all that was decided is committed and nothing was left open. */
WEIR_API weir_status weir_pipeline_close(weir_pipeline *pipeline, int64_t drain_ns,
                                         weir_error *err);

/* What the checkpoint store knows, also beside a live run: the document of `weir status --json`. */
WEIR_API weir_status weir_pipeline_status(const weir_config *config, weir_bytes *json,
                                          weir_error *err);

/* Reads the config, resolves contracts and tells what admission says, as a JSON document. Touches no
 * target. WEIR_E_ADMISSION (the document is given all the same): refused.
 * {"pipeline", "guarantee", "state", "store", "admitted": bool, "routes": [{"source", "sink", "replay",
 * "consistency", "topology", "input", "writers", "delivers", "admitted": bool, "reason", "crash"}],
 * "schemas": {SOURCE: {"kept": bool, "columns": {COLUMN: TYPE}, "yaml"}}, "notes": [TEXT]}: a route is a
 * sink with one of its sources; `delivers` is the guarantee it can keep, `reason` why it is refused or "",
 * `crash` a sentence on what a kill -9 means for its rows; `schemas` has the sources that infer theirs,
 * from a sample read now or, `kept`, when the deployment began, and `yaml` is what a pipeline file takes
 * for it; `notes` is what to warn of, such as a secret file that others may read. */
WEIR_API weir_status weir_pipeline_check(const weir_config *config, weir_bytes *json,
                                         weir_error *err);

/* As weir_pipeline_check, and once that is admitted, asks every source and target for its schema, read-only:
 * whatever a start would be refused for by a target before it changes anything is the error
 * (WEIR_E_SCHEMA, WEIR_E_CONFLICT, ..; the document is given all the same). The document has one member more:
 * "targets": {SINK: {"identity": TEXT or null, "columns": {COLUMN: TYPE}}, or null: it refused}. */
WEIR_API weir_status weir_pipeline_check_targets(const weir_config *config,
                                                 weir_bytes *json, weir_error *err);

enum { WEIR_VERIFY_DEEP = 1 /* contents too, however long that takes */ };

/* Compares every target with the store: cursor, artifacts, rows. Read-only, without the lease, also beside a
 * live run, whose work in flight is no fault. Blocks as long as the targets take. WEIR_E_CONFLICT (the
 * document is given all the same): a target does not agree. A sink that cannot tell is no fault and is not
 * verified either. A state folder that is not there is taken for a pipeline that never ran, so a target that
 * some deployment has is a fault then.
 * {"pipeline", "deployment", "state", "agreed": bool, "verified": n, "sinks": {NAME: {"checked": [WHAT],
 * "cursor", "decided", "pending", "artifacts", "bytes", "rows", "rows_since", "orphans": {"artifacts",
 * "bytes"}, "fault_count", "faults": [{"kind", "checkpoint", "artifact", "text"}]}}, "resolved": as of
 * weir_pipeline_resolve}: WHAT is "cursor",
 * "artifacts", "content" or "rows"; `verified` counts sinks that checked something; `pending` epochs are
 * decided and not published yet, 0 where the cursor is at fault; `rows` were compared from behind epoch
 * `rows_since` to the cursor; KIND is "cursor", "rows", "missing", "changed" or "foreign"; of many faults the
 * first 1000 are given. */
WEIR_API weir_status weir_pipeline_verify(const weir_config *config, uint32_t flags,
                                          weir_bytes *json, weir_error *err);

enum {
  WEIR_CLEAN_DRY_RUN =
      1, /* only find them: read-only, without the lease, also beside a live run */
  /* also what replaced deployments left at the same targets; older_than_ns must be 24 hours or more */
  WEIR_CLEAN_ALL = 2
};

/* Removes artifacts at the targets that no epoch owns and that are older than older_than_ns by the target's
 * clock (negative: an hour). Takes the lease (WEIR_E_FENCED: somebody has it) and refuses targets that do not
 * agree with the store (WEIR_E_CONFLICT) before it removes anything anywhere. May be killed and called again.
 * {"pipeline", "deployment", "dry_run": bool, "all": bool, "older_than_seconds", "sinks": {NAME: {"looked":
 * bool, "artifacts", "bytes", "young", "orphans": [{"artifact", "checkpoint", "bytes", "age_seconds"}],
 * "unknown": [{"artifact", "text"}]}}}: `looked` is false of a sink that cannot tell; `young` orphans were
 * kept for their age; of many the first 1000 are listed. */
WEIR_API weir_status weir_pipeline_clean(const weir_config *config, uint32_t flags,
                                         int64_t older_than_ns, weir_bytes *json,
                                         weir_error *err);

enum {
  WEIR_RESOLVE_PUBLISHED = 1, /* its rows are at the target in some other way */
  WEIR_RESOLVE_GIVEN_UP = 2   /* its rows will never be there */
};

/* A person's word on one sink's part of a decided attempt. */
typedef struct weir_resolution {
  uint32_t struct_size;
  int32_t as; /* WEIR_RESOLVE_* */
  const char *sink;
  uint64_t attempt;
  const char *who, *why; /* UTF-8, kept with it */
} weir_resolution;

/* The only way past a decided attempt that its target refuses for good: from the next start on nothing of it is
 * published at that sink's target, and what was decided behind it is. One that the target shows and could not finish
 * publishing is ended, with what is still there. Takes the lease (WEIR_E_FENCED: somebody
 * has it). WEIR_E_INVALID_CONFIG: there is nothing to resolve, since it is not decided, has no rows for that
 * sink, or was published, as the store or the target says; a target that cannot be asked is not heard.
 * WEIR_E_CONFLICT: another word was given before; the same one changes nothing. `word` NULL: only tells, takes no
 * lease. The document is what is left:
 * {"pipeline", "deployment", "unresolved": [{"attempt", "state": "decided" | "undecided", "sink", "rows",
 * "bytes"}], "resolved": [{"sink", "attempt", "as": "published" | "given-up", "rows", "bytes", "who", "when",
 * "why"}]}; `unresolved` and `resolved` are also in the documents of status. */
WEIR_API weir_status weir_pipeline_resolve(const weir_config *config,
                                           const weir_resolution *word, weir_bytes *json,
                                           weir_error *err);

enum {
  WEIR_ADOPT_DRY_RUN = 1, /* only say what would be; takes no lease */
  /* where there is a state that the targets do not agree with, or a damaged one: it is kept under another
   * name */
  WEIR_ADOPT_SET_ASIDE = 2
};

/* Makes a checkpoint store that was lost anew of the cursor records at the targets: under the deployment that owns
 * them, with the positions that the records carry. WEIR_E_CONFLICT: they do not agree, or there is a state that
 * does not agree with them; WEIR_E_FENCED: somebody has the lease. Nothing is written at a target. May be killed
 * and called again; where the state agrees already nothing is done.
 * {"pipeline", "deployment", "dry_run": bool, "adopted": bool, "agreed": bool, "set_aside": TEXT or null, "sinks":
 * {NAME: {"cursor", "rows", "bytes"}}, "sources": {NAME: {"position", "rows", "lost"}}}: `agreed`, the state that
 * is there needs nothing, and `sources` is left out; rows are those that the target has records of. */
WEIR_API weir_status weir_pipeline_adopt(const weir_config *config, uint32_t flags,
                                         weir_bytes *json, weir_error *err);

#ifdef __cplusplus
}
#endif
#endif
