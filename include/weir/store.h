/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checkpoint store, in a SQLite file or a PostgreSQL database: what a pipeline must remember. One owner at a time, by a lease with a fencing
 * token; one durable transaction an epoch. Every payload is kept with its SHA-256 and a mismatch is
 * WEIR_E_CORRUPT, never skipped.
 *
 * Not thread-safe: one thread at a time. Every writing call first checks the lease in the same
 * transaction (WEIR_E_FENCED when it is lost). A failed write whose outcome is unknown has flag IN_DOUBT:
 * the store must not be used again, the next start asks it.
 */
#ifndef WEIR_STORE_H
#define WEIR_STORE_H

#include <weir/bytes.h>
#include <weir/cursor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_store weir_store;

/* Attempts kept after all their cursors were seen: a target that fell back by no more is refilled. */
#define WEIR_STORE_KEEP 10

/* A descriptor or an artifact intent of one participant. */
typedef struct weir_store_entry {
  const char *sink_id;
  uint64_t participant_id;
  int32_t present;
  const uint8_t *data;
  size_t size;
} weir_store_entry;

/* A source's position; source inputs of a push source are "source/lane". present == 0: from the start. */
typedef struct weir_store_position {
  const char *source;
  int32_t present;
  const uint8_t *data;
  size_t size;
  uint64_t
      rows; /* rows read up to there since the deployment began, without the lost ones */
  /* rows of attempts that were aborted and that the source cannot read again, since the deployment
   * began; 0 of all but ephemeral ones */
  uint64_t lost;
} weir_store_position;

/* A committable sink's part of a decision. */
typedef struct weir_store_sink {
  const char *sink_id;
  weir_cursor cursor;   /* attempt, token, digest */
  int32_t has_rows;     /* 0: every participant was empty */
  uint64_t rows, bytes; /* since the deployment began */
} weir_store_sink;

typedef struct weir_store_decision {
  uint64_t attempt;
  uint64_t token;
  const weir_store_sink *sinks; /* every committable sink */
  size_t n_sinks;
  const weir_store_entry *descriptors; /* in the order of sinks, then by participant */
  size_t n_descriptors;
  const weir_store_position *positions; /* every source */
  size_t n_positions;
  uint64_t next_attempt;           /* reserved in the same transaction; 0: none */
  const weir_store_entry *intents; /* of next_attempt */
  size_t n_intents;
} weir_store_decision;

enum { WEIR_ATTEMPT_RESERVED = 1, WEIR_ATTEMPT_COMMIT = 2, WEIR_ATTEMPT_ABORT = 3 };

/* What the store knows of an attempt: everything unresolved and the last WEIR_STORE_KEEP published. */
typedef struct weir_store_attempt {
  uint64_t attempt;
  int32_t state;  /* WEIR_ATTEMPT_* */
  uint64_t token; /* under which it was reserved (RESERVED) or got its outcome */
  const weir_store_sink *sinks; /* COMMIT only */
  size_t n_sinks;
  const weir_store_entry *descriptors; /* COMMIT only */
  size_t n_descriptors;
  const weir_store_entry *intents; /* RESERVED, ABORT still to clean */
  size_t n_intents;
} weir_store_attempt;

/* A binding as pinned: canonical text and the SHA-256 that guards it. Of "source:NAME": the schema that
 * this source inferred, as a JSON object column: type. Of "begin:NAME": the position at which it began. Of "resolved:SINK:ATTEMPT": weir_store_resolve. */
typedef struct weir_store_binding {
  const char *sink_id;
  const uint8_t *data;
  size_t size;
} weir_store_binding;

typedef struct weir_store_state {
  uint8_t deployment[WEIR_UUID_SIZE];
  const char *pipeline;
  uint64_t token;        /* of the lease held, or the newest granted (read-only) */
  uint64_t last_attempt; /* highest number ever reserved; 0: none */
  const weir_store_attempt *attempts; /* ordered by number */
  size_t n_attempts;
  const weir_store_position *positions; /* of the last decided attempt */
  size_t n_positions;
  const weir_store_sink *decided; /* each sink's last decided cursor, with totals */
  size_t n_decided;
  const weir_store_sink *seen; /* each sink's last cursor seen at its target */
  size_t n_seen;
  const weir_store_binding *bindings;
  size_t n_bindings;
  void *private_data;
} weir_store_state;

/* Opens or creates the SQLite store in folder `state` (made 0700, files 0600, its parent synced), takes
 * the lease (a higher token, durable) and settles the WAL, so that what load says is on disk. The deployment
 * UUID is created once. WEIR_E_FENCED: another live instance owns it (named by pid); WEIR_E_CONFLICT: the
 * store belongs to another pipeline; network file systems are refused. */
WEIR_API weir_status weir_store_open(const char *state, const char *pipeline,
                                     weir_store **out, weir_error *err);
/* A store in memory, for tests and for embedding without a promise beyond the process. */
WEIR_API weir_status weir_store_open_memory(const char *pipeline, weir_store **out,
                                            weir_error *err);
/* Read-only, without the lease, also beside a live owner. WEIR_E_NOT_FOUND: there is none yet. */
WEIR_API weir_status weir_store_open_read(const char *state, weir_store **out,
                                          weir_error *err);

/* A PostgreSQL store: the tables of schema `weir` in one database, for any number of pipelines. */
typedef struct weir_store_postgres {
  uint32_t struct_size;
  /* postgresql://user:password@host:port/database; no message shows the password */
  const char *uri;
  const char *pipeline;
  int64_t
      lease_ns; /* how long the lease outlives its owner's last word; 0: WEIR_STORE_LEASE_NS */
  /* 1: what an earlier deployment left is set aside, under the name "PIPELINE.before-TOKEN" */
  int32_t new_deployment;
} weir_store_postgres;

#define WEIR_STORE_LEASE_NS INT64_C(30000000000)

/* As weir_store_open: the tables are made when they are missing, and the lease is taken when it has
 * expired by the server's clock or was released. While the store is open a thread of its own renews it.
 * WEIR_E_FENCED with flag RETRIABLE: a live instance has it (named by pid and host); it may be free
 * later. libpq.so.5 is loaded here: WEIR_E_NOT_IMPLEMENTED when it is missing. */
WEIR_API weir_status weir_store_open_postgres(const weir_store_postgres *where,
                                              weir_store **out, weir_error *err);
/* As weir_store_open_read; lease_ns and new_deployment have no meaning here. */
WEIR_API weir_status weir_store_read_postgres(const weir_store_postgres *where,
                                              weir_store **out, weir_error *err);
/* Releases the lease; NULL is a no-op. */
WEIR_API void weir_store_close(weir_store *store);

/* The database's file or address for messages, without user and password; as long as the store. */
WEIR_API const char *weir_store_name(const weir_store *store);

/* Everything at once; freed by weir_store_state_free. */
WEIR_API weir_status weir_store_load(weir_store *store, weir_store_state **out,
                                     weir_error *err);
WEIR_API void weir_store_state_free(weir_store_state *state); /* NULL is a no-op */

/* WEIR_OK while the lease is held. Cheap: asked before every repeat at a target. */
WEIR_API weir_status weir_store_check_lease(weir_store *store, weir_error *err);

/* As weir_store_check_lease, but cheaper: the server is asked only when the lease was not renewed for two
 * thirds of its time. For an owner that has nothing to write: to be called now and then. */
WEIR_API weir_status weir_store_watch(weir_store *store, weir_error *err);

/* Durable steps. Each is one transaction, synced before it returns. */

/* The attempt's number and its intents, before begin_epoch. */
WEIR_API weir_status weir_store_reserve(weir_store *store, uint64_t attempt,
                                        const weir_store_entry *intents, size_t n_intents,
                                        weir_error *err);
/* Decision Commit. */
WEIR_API weir_status weir_store_decide(weir_store *store,
                                       const weir_store_decision *decision,
                                       weir_error *err);
/* Decision Abort; its intents stay until weir_store_cleaned. `positions`: of the sources that lose rows
 * by it, as last decided, with what is lost by now. */
WEIR_API weir_status weir_store_abort(weir_store *store, uint64_t attempt,
                                      const weir_store_position *positions,
                                      size_t n_positions, weir_error *err);
/* Pins a sink's binding for good, or replaces it when `replace` (schema changes that were asked for). */
WEIR_API weir_status weir_store_pin(weir_store *store, const weir_store_binding *binding,
                                    int replace, weir_error *err);

/* A person's word on one sink's part of a decided attempt: nothing of it will be published any more
 * (docs/protocol.md, R2). Durable; kept for good as the binding "resolved:SINK:ATTEMPT" with the bytes given.
 * WEIR_E_CONFLICT: there is another one. */
WEIR_API weir_status weir_store_resolve(weir_store *store, const char *sink_id,
                                        uint64_t attempt, const uint8_t *data,
                                        size_t size, weir_error *err);
/* That binding; NULL: nobody has resolved it. */
WEIR_API const weir_store_binding *weir_store_resolved(const weir_store_state *state,
                                                       const char *sink_id,
                                                       uint64_t attempt);

/* What a lost store is made anew of: what the targets' cursor records say. */
typedef struct weir_store_adoption {
  uint32_t struct_size;
  const char *pipeline;
  uint8_t deployment[WEIR_UUID_SIZE];
  uint64_t
      token; /* the lease has at least that one from here on: no target has seen it yet */
  uint64_t last_attempt;
  const weir_store_sink *sinks; /* decided and seen */
  size_t n_sinks;
  const weir_store_position *positions;
  size_t n_positions;
} weir_store_adoption;

/* One durable step, on a store that has no attempt and no cursor: WEIR_E_INVALID_STATE for any other. */
WEIR_API weir_status weir_store_adopt(weir_store *store, const weir_store_adoption *from,
                                      weir_error *err);

/* Remembered at once and written with the next durable step or at close: losing it costs a look at the
 * target, never a row. */
WEIR_API weir_status weir_store_seen(weir_store *store, const char *sink_id,
                                     const weir_cursor *cursor, weir_error *err);
WEIR_API weir_status weir_store_cleaned(weir_store *store, const char *sink_id,
                                        uint64_t attempt, weir_error *err);
/* Writes what is remembered now, durable. */
WEIR_API weir_status weir_store_flush(weir_store *store, weir_error *err);

#ifdef __cplusplus
}
#endif
#endif
