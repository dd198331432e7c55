/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connectors as the runtime sees them: found and loaded, admitted, and called through one thin checked
 * function per hook. Nobody else calls an operation table.
 *
 * A checked call looks whether the hook may be called in the present state (one table), passes the
 * call's deadline on, checks what came back (bounds, counts, schemas) and puts the connector's name
 * before an error. Out parameters are written on WEIR_OK only.
 */
#ifndef CONNECTOR_CONNECTOR_H
#define CONNECTOR_CONNECTOR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <weir/binding.h>
#include <weir/call.h>
#include <weir/plugin.h>
#include <weir/sink.h>
#include <weir/source.h>

#include "base/base.h"

/* ---- calls (call.c) ------------------------------------------------------------------------- */

/* The call that a hook gets. In place: one per actor, armed anew for every hook. All fields are atomic;
 * any thread may look, cancel or give up while the hook runs. */
struct weir_call {
  _Atomic int64_t deadline; /* what the hook sees */
  _Atomic int64_t
      limit; /* from when on connector_call_expire gives up; never before the deadline */
  _Atomic uint64_t
      turn; /* odd: a hook is inside; grows by one at enter, leave and give-up */
  _Atomic int cancelled;
};

/* Before a hook, on the thread that calls it: clears the flag, sets the deadline (monotonic ns) and the
 * limit (equal to the deadline for all hooks but a source's read, whose deadline is only how long it may
 * wait). */
void connector_call_arm(weir_call *call, int64_t deadline_ns, int64_t limit_ns);
/* Any thread (the watchdog): when a hook is inside and `now` is at the limit or later, sets the cancel
 * flag and takes the result away from that hook: its checked call will answer WEIR_E_TIMEOUT whatever
 * the hook says. True when it did so, at most once per hook. */
bool connector_call_expire(weir_call *call, int64_t now_ns);
/* As expire, without looking at the clock: a second SIGTERM, or an actor that is being abandoned. */
bool connector_call_give_up(weir_call *call);
/* Inside a hook right now? */
bool connector_call_running(const weir_call *call);

/* ---- finding connectors (registry.c, load.c) -------------------------------------------------- */

/* The complete table of `type`: an in-tree name, the NAME of a weir-NAME.so on $WEIR_PLUGIN_PATH or in
 * <libdir>/weir, or a path: "./x.so" starts at base_dir. Tables live as long as the process; shared
 * objects are never unloaded. WEIR_E_INVALID_CONFIG names the nearest known type. Any thread. */
weir_status connector_find_sink(const char *type, const char *base_dir,
                                const weir_sink_ops **out, weir_error *err);
weir_status connector_find_source(const char *type, const char *base_dir,
                                  const weir_source_ops **out, weir_error *err);

/* Copies a connector's table into *out, refuses what is wrong, fills the defaults. `origin` is the
 * shared object's path, or NULL for in-tree tables (used in messages). */
weir_status connector_fill_sink(const weir_sink_ops *ops, const char *origin,
                                weir_sink_ops *out, weir_error *err);
weir_status connector_fill_source(const weir_source_ops *ops, const char *origin,
                                  weir_source_ops *out, weir_error *err);
weir_status connector_fill_committer(const weir_committer_ops *ops,
                                     weir_committer_ops *out, weir_error *err);
weir_status connector_fill_cleaner(const weir_cleaner_ops *ops, weir_cleaner_ops *out,
                                   weir_error *err);

/* Whether the (filled) table has a committer of its own, for some configurations at least. */
bool connector_has_committer(const weir_sink_ops *ops);

/* ---- services for connectors (host.c) ---------------------------------------------------------- */

/* A weir_host that logs to `log`. Counted: every connector instance holds a reference, so that a thread
 * that comes back late still finds it. */
typedef struct connector_host connector_host;
connector_host *connector_host_new(const base_log *log, weir_error *err);
connector_host *connector_host_ref(connector_host *host);
void connector_host_unref(connector_host *host);
/* After this nothing is written to the log any more: the pipeline's owner may free it. */
void connector_host_mute(connector_host *host);
/* Where the pipeline keeps what waits for its targets. Copied; before the first connector is made. */
weir_status connector_host_spool(connector_host *host, const char *folder, bool shared,
                                 uint64_t limit, uint64_t keep, weir_error *err);
/* From now on connectors may ask the pipeline for a checkpoint, or to hold its sources; until muted. Called
 * on any thread, with locks of theirs held. */
void connector_host_serve(connector_host *host, void *ctx, void (*checkpoint)(void *ctx),
                          void (*hold)(void *ctx, int32_t on));
const weir_host *connector_host_get(connector_host *host);

/* ---- what all generations of one connector share (spec.c) ---------------------------------------- */

/* Counted for the same reason as the host. */
typedef struct connector_spec connector_spec;

/* Takes `options` over on WEIR_OK; their `where` ("sink lake") begins every message. Holds the host. */
weir_status connector_spec_new_sink(const weir_sink_ops *ops, connector_host *host,
                                    weir_options *options, connector_spec **out,
                                    weir_error *err);
weir_status connector_spec_new_source(const weir_source_ops *ops, connector_host *host,
                                      weir_options *options, connector_spec **out,
                                      weir_error *err);
connector_spec *connector_spec_ref(connector_spec *spec);
void connector_spec_unref(connector_spec *spec);
const weir_options *connector_spec_options(const connector_spec *spec);
const char *connector_spec_where(const connector_spec *spec);
const char *connector_spec_type(const connector_spec *spec);
const weir_source_ops *connector_spec_source(const connector_spec *spec);

/* ---- sinks (sink.c, sink_state.c, committer.c) ----------------------------------------------------- */

typedef enum connector_sink_state {
  CONNECTOR_SINK_CREATED,  /* contract, key, bind */
  CONNECTOR_SINK_BOUND,    /* resolve, prepare, open */
  CONNECTOR_SINK_OPEN,     /* no epoch; where sinks that are not committable live */
  CONNECTOR_SINK_EPOCH,    /* between begin_epoch and pre_commit */
  CONNECTOR_SINK_PREPARED, /* pre_commit answered; the next begin_epoch may come */
  CONNECTOR_SINK_FAILED, /* a hook failed for good: rollback_epoch (committable) or close */
  CONNECTOR_SINK_CLOSED,  /* release only */
  CONNECTOR_SINK_RETIRED, /* release only, once its thread is back */
  CONNECTOR_SINK_STATES
} connector_sink_state;

typedef enum connector_sink_hook {
  CONNECTOR_HOOK_CONTRACT,
  CONNECTOR_HOOK_KEY,
  CONNECTOR_HOOK_BIND,
  CONNECTOR_HOOK_RESOLVE,
  CONNECTOR_HOOK_PREPARE,
  CONNECTOR_HOOK_OPEN,
  CONNECTOR_HOOK_WRITE,
  CONNECTOR_HOOK_SCHEMA,
  CONNECTOR_HOOK_INTENT,
  CONNECTOR_HOOK_BEGIN,
  CONNECTOR_HOOK_PRE_COMMIT,
  CONNECTOR_HOOK_ROLLBACK,
  CONNECTOR_HOOK_FLUSH,
  CONNECTOR_HOOK_CLOSE,
  CONNECTOR_HOOK_COMMITTER, /* take_over, observe_cursor, find_cursors, commit_aggregated */
  CONNECTOR_HOOK_CLEANER,
  CONNECTOR_HOOK_VERIFY,
  CONNECTOR_HOOK_SWEEP,
  CONNECTOR_SINK_HOOKS
} connector_sink_hook;

/* The lifecycle's one table: may the hook be called in that state? */
bool connector_sink_may(connector_sink_state state, connector_sink_hook hook,
                        bool committable);
const char *connector_sink_state_name(connector_sink_state state);
const char *connector_sink_hook_name(connector_sink_hook hook);

/* One generation of one participant: counted, since a thread that never came back may still hold it.
 * The last unref calls release. One thread at a time, but: retire, state and the reference count from
 * any thread; committer calls beside the others when the contract has `overlap`. */
typedef struct connector_sink connector_sink;

/* create and cancellation_policy. No I/O. `generation` is for messages and logs. */
weir_status connector_sink_new(connector_spec *spec, uint64_t participant,
                               uint64_t generation, connector_sink **out,
                               weir_error *err);
connector_sink *connector_sink_ref(connector_sink *sink);
void connector_sink_unref(connector_sink *sink); /* NULL is a no-op */

connector_sink_state connector_sink_state_of(const connector_sink *sink);
uint64_t connector_sink_generation(const connector_sink *sink);
bool connector_sink_is_cancel_safe(const connector_sink *sink);
/* Makes the generation terminal: every hook answers WEIR_E_INVALID_STATE from now on. A checked call
 * does so itself when the call was given up, or when the hook failed and the call's flag or deadline was
 * reached, unless the connector is cancel-safe. */
void connector_sink_retire(connector_sink *sink);

/* First pass. The contract is checked for values in range, remembered, and required by most hooks:
 * call it on every generation. */
weir_status connector_sink_contract(connector_sink *sink, weir_contract *out,
                                    weir_error *err);
/* Names are checked: not empty, no duplicates. Absent: *out has release == NULL. */
weir_status connector_sink_keyed_mutation_key(connector_sink *sink, weir_names *out,
                                              weir_error *err);
/* Copies *ns: it need not outlive the call. */
weir_status connector_sink_bind(connector_sink *sink, const weir_namespace *ns,
                                weir_error *err);
/* A new reference, or NULL. */
weir_task_tracker *connector_sink_tracker(connector_sink *sink);
uint64_t connector_sink_write_timeout_ms(
    connector_sink *sink); /* suggested; at least 1 */
uint64_t connector_sink_flush_interval_ms(connector_sink *sink);

/* *out is zeroed first; the caller ends it with weir_binding_done. */
weir_status connector_sink_resolve_schema(connector_sink *sink, weir_call *call,
                                          weir_schema *input, weir_binding *out,
                                          weir_error *err);
weir_status connector_sink_prepare_schema(connector_sink *sink, weir_call *call,
                                          weir_binding *binding, weir_error *err);
/* Copies what it needs of the binding. After the open: schema() is read and compared with the binding,
 * the committer is asked for, and a committable sink without one, or the reverse, is an error. */
weir_status connector_sink_open(connector_sink *sink, weir_call *call,
                                const weir_binding *binding, weir_error *err);
/* The schema that write_batch expects; borrowed, valid from open to the last unref. */
weir_schema *connector_sink_schema(connector_sink *sink);

/* Compares the schema (by pointer when it is the one of the batch before). An answer that does not name
 * all rows is WEIR_E_INTERNAL. A failure flagged BAD_DATA or RETRIABLE leaves the state as it was. */
weir_status connector_sink_write_batch(connector_sink *sink, weir_call *call,
                                       weir_batch *batch, weir_write_result *out,
                                       weir_error *err);
weir_status connector_sink_flush(connector_sink *sink, weir_call *call, weir_error *err);
weir_status connector_sink_intent(connector_sink *sink, weir_call *call, uint64_t epoch,
                                  weir_bytes *out, weir_error *err);
weir_status connector_sink_begin_epoch(connector_sink *sink, weir_call *call,
                                       uint64_t epoch, weir_error *err);
weir_status connector_sink_pre_commit(connector_sink *sink, weir_call *call,
                                      uint64_t epoch, weir_bytes *out, weir_error *err);
/* Of committable sinks, in any state between open and close, for any epoch. */
weir_status connector_sink_rollback_epoch(connector_sink *sink, weir_call *call,
                                          uint64_t epoch, weir_error *err);
weir_status connector_sink_close(connector_sink *sink, weir_call *call, weir_error *err);

/* The committer, after open, of participant 1's generation (any participant's answers here; whom to
 * ask is the pipeline's business). */
weir_status connector_sink_take_over(connector_sink *sink, weir_call *call,
                                     weir_error *err);
weir_status connector_sink_observe_cursor(connector_sink *sink, weir_call *call,
                                          weir_cursor *out, weir_error *err);
weir_status connector_sink_find_cursors(connector_sink *sink, weir_call *call,
                                        weir_cursor_list *out, weir_error *err);
/* batch->ns may be NULL: the sink's own namespace is filled in. Bounds and order of the batch are
 * checked before the connector sees it; *out must equal the last attempt's cursor. A call that was given
 * up or came back with TIMEOUT or CANCELLED is flagged IN_DOUBT. */
weir_status connector_sink_commit(connector_sink *sink, weir_call *call,
                                  const weir_commit_batch *batch, weir_cursor *out,
                                  weir_error *err);

/* Cleanup authority: counted on its own, any thread, also after the sink is gone. */
typedef struct connector_cleaner connector_cleaner;
/* *out is NULL when the sink has none. After bind. */
weir_status connector_sink_cleaner(connector_sink *sink, connector_cleaner **out,
                                   weir_error *err);
void connector_cleaner_free(connector_cleaner *cleaner); /* NULL is a no-op */
/* batch->ns may be NULL, as above. */
weir_status connector_cleaner_clean(connector_cleaner *cleaner, weir_call *call,
                                    const weir_abort_batch *batch, weir_error *err);

/* Between bind and open. */
weir_status connector_sink_verify(connector_sink *sink, weir_call *call,
                                  const weir_verify *ask, weir_verified *out,
                                  weir_error *err);
weir_status connector_sink_sweep(connector_sink *sink, weir_call *call,
                                 const weir_sweep *ask, weir_swept *out, weir_error *err);

/* ---- dead letters (letters.c) -------------------------------------------------------------------------- */

/* The columns of a letter, the same for all. */
weir_status connector_letters_schema(weir_schema **out, weir_error *err);
/* Gathers letters of one connector; `where` as of connector_spec_where. One thread at a time. */
typedef struct connector_letters connector_letters;
weir_status connector_letters_new(const char *where, connector_letters **out,
                                  weir_error *err);
void connector_letters_free(connector_letters *letters); /* NULL is a no-op */
/* After a failure none is gathered. */
weir_status connector_letters_add(connector_letters *letters, const weir_bad_row *row,
                                  weir_error *err);
void connector_letters_drop(connector_letters *letters);
/* What was gathered, or NULL. None is gathered afterwards, also after a failure. */
weir_status connector_letters_take(connector_letters *letters, weir_batch **out,
                                   weir_error *err);

/* ---- sources (source.c) ----------------------------------------------------------------------------- */

typedef enum connector_source_state {
  CONNECTOR_SOURCE_CREATED,
  CONNECTOR_SOURCE_RESOLVED,
  CONNECTOR_SOURCE_OPEN,
  CONNECTOR_SOURCE_ENDED,  /* read said END: position, seek, committed, close */
  CONNECTOR_SOURCE_FAILED, /* a read or seek failed for good: close */
  CONNECTOR_SOURCE_CLOSED,
  CONNECTOR_SOURCE_RETIRED,
  CONNECTOR_SOURCE_STATES
} connector_source_state;

typedef enum connector_source_hook {
  CONNECTOR_SOURCE_HOOK_CONTRACT,
  CONNECTOR_SOURCE_HOOK_USE_SCHEMA,
  CONNECTOR_SOURCE_HOOK_RESOLVE,
  CONNECTOR_SOURCE_HOOK_SET_ASIDE,
  CONNECTOR_SOURCE_HOOK_OPEN,
  CONNECTOR_SOURCE_HOOK_READ,
  CONNECTOR_SOURCE_HOOK_POSITION,
  CONNECTOR_SOURCE_HOOK_SEEK,
  CONNECTOR_SOURCE_HOOK_COMMITTED,
  CONNECTOR_SOURCE_HOOK_CLOSE,
  CONNECTOR_SOURCE_HOOKS
} connector_source_hook;

bool connector_source_may(connector_source_state state, connector_source_hook hook);
const char *connector_source_state_name(connector_source_state state);
const char *connector_source_hook_name(connector_source_hook hook);

typedef struct connector_source connector_source;

weir_status connector_source_new(connector_spec *spec, uint64_t generation,
                                 connector_source **out, weir_error *err);
connector_source *connector_source_ref(connector_source *source);
void connector_source_unref(connector_source *source);
connector_source_state connector_source_state_of(const connector_source *source);
uint64_t connector_source_generation(const connector_source *source);
bool connector_source_is_cancel_safe(const connector_source *source);
void connector_source_retire(connector_source *source);

weir_status connector_source_contract(connector_source *source, weir_source_contract *out,
                                      weir_error *err);
bool connector_source_schema_is_inferred(connector_source *source);
/* Before resolve_schema. */
weir_status connector_source_use_schema(connector_source *source, weir_schema *schema,
                                        weir_error *err);
/* A new reference. Must come before open. */
weir_status connector_source_resolve_schema(connector_source *source, weir_call *call,
                                            weir_schema **out, weir_error *err);
/* Before open: rows that cannot be decoded become letters. */
weir_status connector_source_set_aside(connector_source *source, weir_error *err);
/* position: NULL or absent = from the start. */
weir_status connector_source_open(connector_source *source, weir_call *call,
                                  const weir_bytes *position, weir_error *err);
/* After open without a position. */
bool connector_source_keeps_begin(connector_source *source);
/* *out is NULL unless *what is WEIR_READ_BATCH. *letters: of rows set aside by this very read, or NULL. A batch of another schema than the resolved one is
 * WEIR_E_SCHEMA. A failure flagged RETRIABLE or BAD_DATA leaves the state as it was. */
weir_status connector_source_read(connector_source *source, weir_call *call,
                                  int32_t *what, weir_batch **out, weir_batch **letters,
                                  weir_error *err);
weir_status connector_source_position(connector_source *source, weir_bytes *out,
                                      weir_error *err);
weir_status connector_source_seek(connector_source *source, weir_call *call,
                                  const weir_bytes *position, weir_error *err);
weir_status connector_source_committed(connector_source *source, weir_call *call,
                                       uint64_t checkpoint, const weir_bytes *position,
                                       weir_error *err);
/* What the type of source says of a position, checked, or absent when it says nothing useful. */
void connector_describe_position(const weir_source_ops *ops, const weir_bytes *position,
                                 weir_bytes *out);
weir_status connector_source_close(connector_source *source, weir_call *call,
                                   weir_error *err);

/* ---- admission (admission.c): pure functions on contracts ---------------------------------------------- */

typedef struct connector_admission_source {
  const char *name; /* "orders" */
  const char *type; /* "file" */
  weir_source_contract contract;
  bool sets_aside;                  /* its bad rows go to another sink than its rows */
  const struct ArrowSchema *schema; /* second pass; NULL in the first */
} connector_admission_source;

typedef struct connector_admission_sink {
  const char *name, *type;
  weir_contract contract;
  bool
      has_committer; /* connector_has_committer: may have one; open says whether it does */
  uint32_t writers;
  const char *const *from; /* names of sources */
  size_t n_from;
  const weir_names *key; /* what keyed_mutation_key answered; absent or NULL: none */
  bool takes_letters;    /* of rows of the sources in `from`, and nothing else */
  bool sets_aside;       /* rows that it cannot map go to another sink */
  const struct ArrowSchema *letters; /* second pass, with takes_letters: what it gets */
  bool changelog_as_rows;            /* `changelog: as_rows` */
  bool flush_interval_given;         /* refused on a committable sink */
  const struct ArrowSchema
      *binding; /* second pass: schema of the resolved binding; NULL in the first */
} connector_admission_sink;

typedef struct connector_admission {
  int32_t guarantee;   /* WEIR_BEST_EFFORT .. */
  bool store_remote;   /* the checkpoint store is on another machine */
  bool staging_shared; /* the spool is shared */
  const connector_admission_source *sources;
  size_t n_sources;
  const connector_admission_sink *sinks;
  size_t n_sinks;
} connector_admission;

/* One line of the table that `weir check` prints: a sink with one of its sources. */
typedef struct connector_admission_row {
  const char *source, *sink; /* borrowed from the input */
  const char *replay;        /* "replayable" */
  const char *consistency;   /* "committable" */
  const char *topology;      /* "multi_writer" */
  const char *input;         /* "append" */
  uint32_t writers;
  int32_t delivers; /* the guarantee that this pair can keep: WEIR_BEST_EFFORT .. */
  bool admitted;
  char reason[512]; /* why not, or empty */
  char crash[320];  /* in a sentence: what a kill -9 means for these rows */
} connector_admission_row;

typedef struct connector_admission_table {
  connector_admission_row *rows;
  size_t n_rows;
} connector_admission_table;

/* First pass; second pass when schemas and bindings are given. The table (may be NULL) is filled also
 * when something is refused; the error is then the first refusal: WEIR_E_ADMISSION (a guarantee that
 * cannot be kept), WEIR_E_INVALID_CONFIG (a contradiction in the configuration) or WEIR_E_SCHEMA. */
weir_status connector_admit(const connector_admission *in,
                            connector_admission_table *table, weir_error *err);
void connector_admission_table_done(connector_admission_table *table);
const char *connector_guarantee_name(int32_t guarantee);

/* ---- bindings (binding.c) -------------------------------------------------------------------------------- */

/* Canonical text of a binding: what the store pins. Same columns, types and identity: same bytes. */
weir_status connector_binding_text(const weir_binding *binding, weir_bytes *out,
                                   weir_error *err);
/* WEIR_OK when equal; else WEIR_E_CONFLICT (another target) or WEIR_E_SCHEMA, with the difference column
 * by column. `where` begins the message. */
weir_status connector_binding_compare(const char *where, const void *pinned,
                                      size_t pinned_size, const void *now,
                                      size_t now_size, weir_error *err);

#endif
