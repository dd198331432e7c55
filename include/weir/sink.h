/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sink table: how rows reach a target.
 *
 * Every sink follows open -> write_batch / flush -> close. A committable sink also loops over
 * checkpoint_artifact_intent -> begin_epoch -> writes -> pre_commit, and then either its committer
 * publishes the attempt or rollback_epoch drops it:
 *
 *   create -> contract, keyed_mutation_key           no I/O; admission, first pass
 *   -> bind_runtime_context -> resolve_schema        read-only; admission, second pass
 *   -> prepare_schema -> open                        the target may be prepared; touches no old attempt
 *   -> [ intent(n) -> begin_epoch(n) -> write_batch* -> pre_commit(n) -> decision n ]*
 *                                                    \-> rollback_epoch(n), proven undecided
 *   -> close -> release
 *
 * Threads: one at a time per sink, its own, unless a hook says otherwise. Hooks that take a weir_call
 * may block until its deadline. What follows a deadline is the cancellation policy: under
 * WEIR_CANCEL_RETIRE (the default) that generation is terminal, nothing is called on it again but
 * release, once its thread is back; under WEIR_CANCEL_SAFE the hook has come back with an error, the
 * generation stays valid and the next hook may be called.
 *
 * A hook that fails has written nothing to its out parameters. Unless its comment says otherwise,
 * what follows a failure is rollback_epoch (committable sinks) or close, then release.
 */
#ifndef WEIR_SINK_H
#define WEIR_SINK_H

#include <weir/audit.h>
#include <weir/batch.h>
#include <weir/binding.h>
#include <weir/call.h>
#include <weir/contract.h>
#include <weir/cursor.h>
#include <weir/options.h>
#include <weir/tracker.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_host weir_host; /* services of the runtime; plugin.h */

enum { WEIR_CANCEL_RETIRE = 0, WEIR_CANCEL_SAFE = 1 };

typedef struct weir_write_result {
  uint64_t records; /* rows accepted: on WEIR_OK all rows of the batch */
  uint64_t bytes;   /* written to the transport below; may be an estimate */
} weir_write_result;

/* A live sink. ops == NULL: released or never created. */
typedef struct weir_sink {
  const struct weir_sink_ops *ops;
  void *state;
} weir_sink;

/* The committer: finalizes all participants' descriptors of an attempt in one step at the target.
 * It is asked of participant 1's generation and lives as long as that; calls come from that sink's own
 * thread, or, with `overlap` in the contract, from a second one beside writes and pre_commit. */
typedef struct weir_committer_ops {
  uint32_t abi_version, struct_size;

  /* Once a lease, first in recovery, before the cursor is read: ends every older session of the
   * namespace at the target, and finishes what the last of them published by halves, since an attempt
   * that the cursor then shows is not committed again. Idempotent. Optional: no-op. */
  weir_status (*take_over)(void *state, const weir_call *call, const weir_namespace *ns,
                           weir_error *err);

  /* The target's cursor of this namespace; checkpoint 0 when there is none. A cursor that could not be
   * read is an error, never 'none'. Read-only, may be repeated. Required. */
  weir_status (*observe_cursor)(void *state, const weir_call *call,
                                const weir_namespace *ns, weir_cursor *out,
                                weir_error *err);

  /* Cursors of the same pipeline and sink under any deployment: how a lost state folder is noticed at a
   * target without claims, for what that is worth: two first starts at one moment find nothing. Read-only. Optional: an empty list. */
  weir_status (*find_cursors)(void *state, const weir_call *call,
                              const weir_namespace *ns, weir_cursor_list *out,
                              weir_error *err);

  /* Publishes the attempts of the batch that the target lacks and moves the cursor, in one atomic step
   * at the target; *out is the cursor as it then stands. Reads the cursor first and follows
   * weir_commit_batch_start, once weir_claim_check has said that the target is still this deployment's.
   * Everything the cursor names is rolled forward before this answers.
   * Errors: RETRIABLE (surely not landed; called again with the same batch), IN_DOUBT (may have landed;
   * called again with the same batch under a condition that fails if the first one lands), WEIR_E_FENCED,
   * WEIR_E_CONFLICT, any other: refused for good. Must be idempotent. Required. */
  weir_status (*commit_aggregated)(void *state, const weir_call *call,
                                   const weir_commit_batch *batch, weir_cursor *out,
                                   weir_error *err);
} weir_committer_ops;

typedef struct weir_committer {
  const weir_committer_ops *ops; /* NULL: none */
  void *state;
} weir_committer;

/* Cleanup authority that recovery keeps after the writer has closed: counted, any thread. */
typedef struct weir_cleaner_ops {
  uint32_t abi_version, struct_size;
  void (*ref)(void *state);
  void (*unref)(void *state); /* NULL state is a no-op */
  /* Removes what aborted attempts left, found by their intents or, without one, by the namespace and
   * number. Touches nothing of a decided attempt or of another incarnation. Idempotent; a failure is
   * repeated later. */
  weir_status (*clean)(void *state, const weir_call *call, const weir_abort_batch *batch,
                       weir_error *err);
} weir_cleaner_ops;

typedef struct weir_cleaner {
  const weir_cleaner_ops *ops; /* NULL: none */
  void *state;
} weir_cleaner;

/*
 * static const in the connector; grows at its tail only. The loader copies min(struct_size, its own)
 * into a zeroed table, refuses a missing [R] entry by name, and fills every other NULL with the default
 * named here, so the runtime never tests for NULL. A committable sink whose table has
 * as_coordinated_committer but not its own pre_commit, begin_epoch and rollback_epoch is refused.
 */
typedef struct weir_sink_ops {
  uint32_t abi_version, struct_size;
  const char *name;           /* [R] the `type` that users write */
  const char *text;           /* [R] one sentence for people */
  const weir_option *options; /* [R] ends with a {0} row */

  /* [R] Makes an instance; no I/O. May be followed by release alone. */
  weir_status (*create)(const weir_host *host, weir_sink *out, weir_error *err);

  /* [R] Frees it: cannot fail, no I/O, takes half-built objects, sets ops = NULL. The last call, on
   * any thread, once no other call is under way. */
  void (*release)(weir_sink *sink);

  /* Default: WEIR_CANCEL_RETIRE. Asked once, after create. */
  int32_t (*cancellation_policy)(weir_sink *sink);

  /* The durable identity that staging binds to: names of artifacts follow from it. Once, before
   * resolve_schema. `ns` is borrowed for the life of the sink. Default: no-op. */
  weir_status (*bind_runtime_context)(weir_sink *sink, const weir_namespace *ns,
                                      uint64_t participant_id, weir_error *err);

  /* A new reference to the tracker of detached tasks, or NULL for none (default). */
  weir_task_tracker *(*terminal_task_tracker)(weir_sink *sink);

  /* Durability, placement and input of this very configuration; opens no file, socket, client or
   * transaction. *out is zeroed but for struct_size. Default: leaves it so (fail-closed). */
  weir_status (*contract)(weir_sink *sink, const weir_options *options,
                          weir_contract *out, weir_error *err);

  /* Key columns by which this configuration applies keyed mutations: rows whose trailing Utf8 `_op` is
   * U replace the row of that key, D delete it reading only the key columns; last writer wins per key
   * within one flush (committable sinks: within the attempt). Absent (default): keyed streams cannot
   * feed this sink. No I/O. */
  weir_status (*keyed_mutation_key)(weir_sink *sink, const weir_options *options,
                                    weir_names *out, weir_error *err);

  /* The binding for batches of schema `input`. Read-only at the target; authoritative targets answer
   * with their own schema. Default: weir_binding_logical. */
  weir_status (*resolve_schema)(weir_sink *sink, const weir_call *call,
                                const weir_options *options, weir_schema *input,
                                weir_binding *out, weir_error *err);

  /* Only what the configuration asks for, idempotent, after admission. Afterwards the binding must hold
   * the target's concrete identity, and the target the deployment's claim (cursor.h): a committable sink
   * that another deployment owns is refused here with WEIR_E_CONFLICT. Participant 1 only, sinks one after
   * the other, so that of two pipelines that start at the same moment one gets all; others are opened
   * with its binding. Default: no-op. */
  weir_status (*prepare_schema)(weir_sink *sink, const weir_call *call,
                                const weir_options *options, weir_binding *binding,
                                weir_error *err);

  /* [R] Connects and gets ready for writes under `binding` (borrowed for the life of the sink).
   * Touches no artifact of another attempt. After a failure: open again
   * when it was flagged RETRIABLE, else release; close does not follow. */
  weir_status (*open)(weir_sink *sink, const weir_call *call, const weir_options *options,
                      const weir_binding *binding, weir_error *err);

  /* [R] Takes the rows of one batch: borrowed, immutable; take a reference to keep it. On WEIR_OK all of
   * the batch is accepted. With flag BAD_DATA nothing of it was taken; when the error names the row (weir_error_at)
   * and the user wants bad rows set aside, slices of the batch without that row follow. Called only between begin_epoch
   * and pre_commit (committable) or open and close (others). */
  weir_status (*write_batch)(weir_sink *sink, const weir_call *call, weir_batch *batch,
                             weir_write_result *out, weir_error *err);

  /* [R] The schema that write_batch expects; each batch is compared with it before the call. The caller
   * releases it. After open, any number of times. */
  weir_status (*schema)(weir_sink *sink, struct ArrowSchema *out, weir_error *err);

  /* Evidence from which leftovers of this epoch can be found and removed later: bounded by
   * WEIR_MAX_INTENT, no secrets, names only artifacts of this context and epoch. Persisted before
   * begin_epoch(epoch). Absent (default): no payload, which does not prove that there are no artifacts.
   * Called while the epoch before may still be committing. */
  weir_status (*checkpoint_artifact_intent)(weir_sink *sink, const weir_call *call,
                                            uint64_t epoch, weir_bytes *out,
                                            weir_error *err);

  /* Starts staging for `epoch`. Admitted committable sinks only. Default: no-op. */
  weir_status (*begin_epoch)(weir_sink *sink, const weir_call *call, uint64_t epoch,
                             weir_error *err);

  /* Flush and prepare, finalize nothing outside. Committable: the descriptor from which the committer
   * can publish, absent when this participant took no row; all it names is durable. Others: OK means
   * that all that was accepted is durable. Default: flush and absent, refused for a sink with a
   * committer. */
  weir_status (*pre_commit)(weir_sink *sink, const weir_call *call, uint64_t epoch,
                            weir_bytes *out, weir_error *err);

  /* Drops what `epoch` staged, also when begin_epoch or pre_commit never came or failed. Idempotent;
   * touches nothing of a decided attempt. Default: no-op. */
  weir_status (*rollback_epoch)(weir_sink *sink, const weir_call *call, uint64_t epoch,
                                weir_error *err);

  /* [R] Deadline of write_batch in milliseconds; the option `write_timeout` overrides it. */
  uint64_t (*suggested_write_timeout_ms)(weir_sink *sink);

  /* How long the oldest row may wait in a non-empty buffer before the runtime calls flush.
   * Committable sinks never see the timer. Default: 5000. */
  uint64_t (*flush_interval_ms)(weir_sink *sink);

  /* Must be bounded: thorough drains belong to pre_commit and close. Default: no-op. */
  weir_status (*flush)(weir_sink *sink, const weir_call *call, weir_error *err);

  /* [R] Ends the session; at most once. What was accepted and not prepared may be dropped (committable)
   * or must be drained (others). */
  weir_status (*close)(weir_sink *sink, const weir_call *call, weir_error *err);

  /* Valid until release. Default: {NULL, NULL}, every weaker contract. After open. */
  weir_committer (*as_coordinated_committer)(weir_sink *sink);

  /* A new reference. Default: {NULL, NULL}: leftovers are nobody's, or left to a retention-safe policy
   * that the sink's page names. After bind_runtime_context. */
  weir_cleaner (*coordinated_abort_cleaner)(weir_sink *sink);

  /* Compares the target with ask->ledger (audit.h): read-only, after bind_runtime_context, without
   * prepare_schema and open, of participant 1's generation. A difference is a finding and WEIR_OK; an error
   * is a target that could not be read. Default: nothing checked, so that the command cannot tell. */
  weir_status (*verify)(weir_sink *sink, const weir_call *call,
                        const weir_options *options, const weir_verify *ask,
                        weir_verified *out, weir_error *err);

  /* Removes artifacts that no epoch owns, or only finds them; called as verify is, which has found that the
   * target is this deployment's. Idempotent; may be killed at any moment. Default: has not looked. */
  weir_status (*sweep)(weir_sink *sink, const weir_call *call,
                       const weir_options *options, const weir_sweep *ask,
                       weir_swept *out, weir_error *err);
} weir_sink_ops;

#ifdef __cplusplus
}
#endif
#endif
