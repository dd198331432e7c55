/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transactional adapter: a target with transactions becomes a committable sink with many writers.
 * UNSTABLE until 1.0: used by weir's own connectors; may change without notice.
 *
 * The connector says how to open a session at its target and what begin, apply, prepare, commit, abort and
 * read_cursor are there. Everything else is done here: participants append their batches to a durable spool
 * (spool.h) and hand them on to one thread that owns the one session and applies them to the open
 * transaction while the epoch runs. pre_commit syncs the segment and waits until it is applied; the last
 * participant's runs `prepare`. After the decision `commit` moves the cursor and commits, in one step.
 *
 * The transaction is only a fast path, the spool is the truth. Any error of begin, apply, prepare or commit
 * ends the session: close, open, read_cursor, take_over, and the segments applied again in a new transaction.
 * Nothing is ever tried twice on one session, so a session need not survive its own errors.
 *
 *   static const weir_txn_ops txn = {.abi_version = WEIR_ABI_VERSION, .struct_size = sizeof(txn), ...};
 *   static weir_status create(const weir_host *host, weir_sink *out, weir_error *err) {
 *     return weir_txn_sink_create(&txn, host, out, err);
 *   }
 *   static const weir_sink_ops ops =
 *       WEIR_TXN_SINK_OPS("mydb", "Rows in a table of MyDB.", options, create);
 *
 * Threads. Hooks of the configuration (configure to release) come on the threads of the sink's
 * participants, several at a time. Hooks of a session come on the adapter's thread of this sink alone, one
 * at a time, from its open to its close. A process has one such thread for each sink, however many
 * participants it has. When a session's hook stays away for longer than its call allowed, that thread is
 * left behind: once its hook is back it closes its session and ends, and meanwhile a new thread opens a
 * session of its own. So two sessions of one process may be at the target for a while, of which the older
 * one may still be in `commit`: that a commit lands only on its own predecessor (see there) keeps this exact.
 *
 * The order of a session's hooks:
 *
 *   open -> read_cursor* -> take_over -> read_cursor
 *        -> [ begin -> apply* -> prepare -> (apply+ -> prepare)* -> commit | abort ]* -> close
 *
 * read_cursor may come at any time, also between begin and commit. find_cursors only outside of a transaction.
 * take_over comes once a session, before its first begin; a session that is only looked through has none.
 * close may follow any hook, also one that failed, and ends an open transaction without committing it.
 */
#ifndef WEIR_TXN_SINK_H
#define WEIR_TXN_SINK_H

#include <weir/plugin.h>
#include <weir/sink.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the target is like, beyond what every sink of this adapter is: committable, WEIR_MULTI_WRITER,
 * overlap, cas_commit. Zeroed but for struct_size when the hook is called. */
typedef struct weir_txn_contract {
  uint32_t struct_size;
  int32_t input;  /* WEIR_INPUT_APPEND .. */
  int32_t claims; /* 1: the target keeps deployment claims (cursor.h) */
  /* 1: an open transaction keeps other writers out (SQLite), so that none is left open: in pre_commit begin,
   * apply, prepare and abort follow each other as a trial, and begin, apply, prepare and commit after the
   * decision. 0: the transaction is open while the epoch runs. */
  int32_t brief;
  /* An epoch of more bytes cannot be applied again in time; a checkpoint is asked for at half of it and the
   * sources are held at all of it. 0: `spool_limit` alone. */
  uint64_t max_epoch_bytes;
  /* The target ends a transaction that is older; a checkpoint is asked for at half of it. 0: no limit. */
  int64_t max_age_ns;
  /* How long one begin, apply, prepare or abort may take while nobody waits for it; 0: 60 s. While a
   * pre_commit or commit waits, its deadline counts when it comes earlier. */
  int64_t step_timeout_ns;
} weir_txn_contract;

/* Whose rows they are and where they go. Borrowed by a session from open to close. */
typedef struct weir_txn_place {
  uint32_t struct_size;
  const weir_host *host;
  const weir_namespace *ns;
  const weir_binding *binding; /* batches have its schema */
} weir_txn_place;

/* What a commit makes of the target. */
typedef struct weir_txn_commit {
  uint32_t struct_size;
  weir_cursor predecessor; /* the cursor that prepare has seen; checkpoint 0: none */
  weir_cursor cursor;      /* what it becomes */
  const char *positions;   /* JSON of the source positions for the record, or NULL */
} weir_txn_commit;

/*
 * static const in the connector; grows at its tail only. [R] required; any other may be NULL.
 *
 * Errors. WEIR_ERR_BAD_DATA with row and column: the rows are at fault. It is believed only when it comes
 * again from a new session that has found the cursor where it was, since an owner that was replaced sees its
 * successor's rows as duplicate keys. WEIR_E_FENCED is never believed by itself, since a transaction that
 * merely expired may be reported so: the cursor decides. WEIR_E_CONFLICT (a cursor or claim that is
 * somebody else's) is believed. WEIR_ERR_RETRIABLE: a new session may help, tried with growing pauses for as
 * long as the runtime's deadline allows. No flag: refused; tried once more in a new session.
 */
typedef struct weir_txn_ops {
  uint32_t abi_version, struct_size;

  /* ---- configuration: threads of the participants, several at a time ---- */

  /* [R] Reads the options into an object of the connector's own; no I/O. `options` are not there later on.
   * *config is immutable from then on: the hooks below come for it on several threads at once. */
  weir_status (*configure)(const weir_host *host, const weir_options *options,
                           void **config, weir_error *err);
  /* [R] Frees it: cannot fail, no I/O. Any thread, after all sessions opened with it were closed. */
  void (*release)(void *config);

  /* Default: all zero. No I/O. */
  weir_status (*contract)(void *config, weir_txn_contract *out, weir_error *err);
  /* As keyed_mutation_key of the sink table. No I/O. */
  weir_status (*key)(void *config, weir_names *out, weir_error *err);

  /* [R] As resolve_schema of the sink table, with connections of its own. */
  weir_status (*resolve)(void *config, const weir_call *call, const weir_namespace *ns,
                         weir_schema *input, weir_binding *out, weir_error *err);
  /* [R] As prepare_schema of the sink table: tables that the configuration asks for, the claim, the cursor's
   * table, and its row if the target needs one to lock. With connections of its own. */
  weir_status (*prepare_target)(void *config, const weir_call *call,
                                const weir_namespace *ns, weir_binding *binding,
                                weir_error *err);
  /* Whether `apply` could take the rows, as far as the batch itself tells: values out of range, NUL in a
   * text. WEIR_E_BAD_DATA with row and column refuses the batch before anything of it was taken, so that the
   * row can be set aside. Before the batch is spooled, on the writer's thread. */
  weir_status (*check)(void *config, const weir_binding *binding, weir_batch *batch,
                       weir_error *err);
  /* As verify of the sink table. With connections of its own. */
  weir_status (*verify)(void *config, const weir_call *call, const weir_verify *ask,
                        weir_verified *out, weir_error *err);

  /* ---- a session: the adapter's thread alone ---- */

  /* [R] Connects. `place` and `config` stay until close. Nothing at the target changes. */
  weir_status (*open)(void *config, const weir_call *call, const weir_txn_place *place,
                      void **session, weir_error *err);
  /* [R] Ends it, and its transaction uncommitted. Cannot fail; NULL is never given. Bounded by `call`. */
  void (*close)(void *session, const weir_call *call);

  /* Ends every other session of the namespace at the target, also older ones of this process, and checks the
   * claim (weir_claim_check). Before the first begin of each session, and once a lease, in recovery. */
  weir_status (*take_over)(void *session, const weir_call *call, weir_error *err);

  /* [R] The cursor; checkpoint 0: none. WEIR_OK only if it is certain: a commit of an older session that may
   * still land has landed, or cannot any more (a lock on the row, a fence). */
  weir_status (*read_cursor)(void *session, const weir_call *call, weir_cursor *out,
                             weir_error *err);
  /* As find_cursors of the committer's table. */
  weir_status (*find_cursors)(void *session, const weir_call *call, weir_cursor_list *out,
                              weir_error *err);

  /* [R] Opens the transaction. */
  weir_status (*begin)(void *session, const weir_call *call, weir_error *err);
  /* [R] Puts the rows of one batch into it. Batches of one participant come in its order, those of several
   * participants mixed, those of one attempt before those of the next. Leaves nothing open that a pause
   * between two batches could hurt. */
  weir_status (*apply)(void *session, const weir_call *call, weir_batch *batch,
                       weir_error *err);
  /* [R] Brings to light whatever the target would still refuse, short of the commit: deferred constraints
   * checked, deliveries acknowledged, the cursor's place written to if that can fail. The cursor is locked
   * and is `predecessor` in all three, else WEIR_E_CONFLICT; nobody else can move it until this transaction
   * ends, or the commit would fail. Afterwards more batches may be applied, and prepare comes again. */
  weir_status (*prepare)(void *session, const weir_call *call,
                         const weir_cursor *predecessor, weir_error *err);
  /* [R] Moves the cursor from c->predecessor to c->cursor and commits, in one atomic step that fails as a
   * whole when the cursor is not the predecessor, or when the head of the claims is not this deployment. WEIR_OK:
   * durable. WEIR_ERR_RETRIABLE: surely not landed. Any other error, IN_DOUBT or not, is looked up at the
   * target through a new session. */
  weir_status (*commit)(void *session, const weir_call *call, const weir_txn_commit *c,
                        weir_error *err);
  /* [R] Ends the transaction and nothing of it remains. */
  weir_status (*abort)(void *session, const weir_call *call, weir_error *err);
} weir_txn_ops;

/* The `create` of a sink: makes an instance that does all through `ops`, which is static. Required entries
 * that are missing are refused by name. */
WEIR_API weir_status weir_txn_sink_create(const weir_txn_ops *ops, const weir_host *host,
                                          weir_sink *out, weir_error *err);

/* The other hooks of the sink table, for WEIR_TXN_SINK_OPS alone. */
WEIR_API void weir_txn_sink_release(weir_sink *sink);
WEIR_API int32_t weir_txn_sink_cancellation_policy(weir_sink *sink);
WEIR_API weir_status weir_txn_sink_bind(weir_sink *sink, const weir_namespace *ns,
                                        uint64_t participant_id, weir_error *err);
WEIR_API weir_task_tracker *weir_txn_sink_tracker(weir_sink *sink);
WEIR_API weir_status weir_txn_sink_contract(weir_sink *sink, const weir_options *options,
                                            weir_contract *out, weir_error *err);
WEIR_API weir_status weir_txn_sink_key(weir_sink *sink, const weir_options *options,
                                       weir_names *out, weir_error *err);
WEIR_API weir_status weir_txn_sink_resolve(weir_sink *sink, const weir_call *call,
                                           const weir_options *options,
                                           weir_schema *input, weir_binding *out,
                                           weir_error *err);
WEIR_API weir_status weir_txn_sink_prepare(weir_sink *sink, const weir_call *call,
                                           const weir_options *options,
                                           weir_binding *binding, weir_error *err);
WEIR_API weir_status weir_txn_sink_open(weir_sink *sink, const weir_call *call,
                                        const weir_options *options,
                                        const weir_binding *binding, weir_error *err);
WEIR_API weir_status weir_txn_sink_write(weir_sink *sink, const weir_call *call,
                                         weir_batch *batch, weir_write_result *out,
                                         weir_error *err);
WEIR_API weir_status weir_txn_sink_schema(weir_sink *sink, struct ArrowSchema *out,
                                          weir_error *err);
WEIR_API weir_status weir_txn_sink_intent(weir_sink *sink, const weir_call *call,
                                          uint64_t epoch, weir_bytes *out,
                                          weir_error *err);
WEIR_API weir_status weir_txn_sink_begin(weir_sink *sink, const weir_call *call,
                                         uint64_t epoch, weir_error *err);
WEIR_API weir_status weir_txn_sink_pre_commit(weir_sink *sink, const weir_call *call,
                                              uint64_t epoch, weir_bytes *out,
                                              weir_error *err);
WEIR_API weir_status weir_txn_sink_rollback(weir_sink *sink, const weir_call *call,
                                            uint64_t epoch, weir_error *err);
WEIR_API uint64_t weir_txn_sink_write_timeout_ms(weir_sink *sink);
WEIR_API weir_status weir_txn_sink_close(weir_sink *sink, const weir_call *call,
                                         weir_error *err);
WEIR_API weir_committer weir_txn_sink_committer(weir_sink *sink);
WEIR_API weir_cleaner weir_txn_sink_cleaner(weir_sink *sink);
WEIR_API weir_status weir_txn_sink_verify(weir_sink *sink, const weir_call *call,
                                          const weir_options *options,
                                          const weir_verify *ask, weir_verified *out,
                                          weir_error *err);

/* The initializer of a sink table. `create_fn` calls weir_txn_sink_create. */
#define WEIR_TXN_SINK_OPS(name_text, sentence, option_table, create_fn) \
  {.abi_version = WEIR_ABI_VERSION,                                     \
   .struct_size = sizeof(weir_sink_ops),                                \
   .name = (name_text),                                                 \
   .text = (sentence),                                                  \
   .options = (option_table),                                           \
   .create = (create_fn),                                               \
   .release = weir_txn_sink_release,                                    \
   .cancellation_policy = weir_txn_sink_cancellation_policy,            \
   .bind_runtime_context = weir_txn_sink_bind,                          \
   .terminal_task_tracker = weir_txn_sink_tracker,                      \
   .contract = weir_txn_sink_contract,                                  \
   .keyed_mutation_key = weir_txn_sink_key,                             \
   .resolve_schema = weir_txn_sink_resolve,                             \
   .prepare_schema = weir_txn_sink_prepare,                             \
   .open = weir_txn_sink_open,                                          \
   .write_batch = weir_txn_sink_write,                                  \
   .schema = weir_txn_sink_schema,                                      \
   .checkpoint_artifact_intent = weir_txn_sink_intent,                  \
   .begin_epoch = weir_txn_sink_begin,                                  \
   .pre_commit = weir_txn_sink_pre_commit,                              \
   .rollback_epoch = weir_txn_sink_rollback,                            \
   .suggested_write_timeout_ms = weir_txn_sink_write_timeout_ms,        \
   .close = weir_txn_sink_close,                                        \
   .as_coordinated_committer = weir_txn_sink_committer,                 \
   .coordinated_abort_cleaner = weir_txn_sink_cleaner,                  \
   .verify = weir_txn_sink_verify}

#ifdef __cplusplus
}
#endif
#endif
