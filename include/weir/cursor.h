/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cursors, commit batches and abort batches: what the coordinator hands to a committer and a cleaner.
 *
 * A cursor is a record at the target, moved in the same atomic step as the data. It says how far this
 * history has been published there, by whom, and which bytes.
 */
#ifndef WEIR_CURSOR_H
#define WEIR_CURSOR_H

#include <weir/bytes.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_DIGEST_SIZE 32
#define WEIR_UUID_SIZE 16
#define WEIR_UUID_TEXT 37 /* of the text form, with its NUL */
#define WEIR_INCARNATION_SIZE 16

/* Bounds that the runtime checks before any connector I/O. */
#define WEIR_MAX_INTENT (64u << 10)            /* one participant's artifact intent */
#define WEIR_MAX_INTENTS (4u << 20)            /* all intents of an attempt */
#define WEIR_MAX_DESCRIPTOR (16u << 20)        /* one descriptor */
#define WEIR_MAX_BATCH_DESCRIPTORS (64u << 20) /* all descriptors of a commit batch */
#define WEIR_MAX_BATCH_ENTRIES 4096u           /* all entries of a commit batch */
/* source positions carried in the cursor record */
#define WEIR_MAX_CURSOR_POSITIONS (16u << 10)

/* The text form of RFC 9562, 8-4-4-4-12 hex digits. Written in lower case; read in either, 0: it is no such text,
 * and `out` is untouched. */
WEIR_API void weir_uuid_format(const uint8_t uuid[WEIR_UUID_SIZE],
                               char out[WEIR_UUID_TEXT]);
WEIR_API int weir_uuid_parse(const char *text, uint8_t out[WEIR_UUID_SIZE]);

/* Who writes: a sink of a deployment of a pipeline. Strings are NUL-terminated, borrowed. */
typedef struct weir_namespace {
  uint32_t struct_size;
  const char *pipeline; /* name, a-z 0-9 _ - */
  const char *sink_id;  /* the sink's name within the pipeline */
  /* SHA-256 of the pipeline's name and a format version */
  uint8_t identity[WEIR_DIGEST_SIZE];
  uint8_t deployment[WEIR_UUID_SIZE]; /* create-once UUID, raw bytes */
  /* 1: in this run the user asked for a new deployment, which may replace the one that owns the target.
   * For weir_claim_start alone. */
  int32_t may_replace;
} weir_namespace;

#define WEIR_NAMESPACE_KEY_SIZE 70 /* "weir-" + 64 hex digits + NUL */

/* The namespace's key at a target: "weir-" + hex SHA-256 over identity, deployment and sink id, each
 * framed by its length, so that no two namespaces can spell the same key. An empty string when there
 * is no memory for the hash: never to be used as a key. */
WEIR_API void weir_namespace_key(const weir_namespace *ns,
                                 char out[WEIR_NAMESPACE_KEY_SIZE]);

/*
 * Deployment claims: which deployment a target belongs to.
 *
 * Two first starts at the same moment, with state folders of their own, are two deployments: neither
 * finds a cursor of the other, and both would deliver everything. So a committable sink keeps at its
 * target, beside the cursors, a chain of claims numbered 1, 2, ..: each created once (link, put-if-absent,
 * an insert under a unique key, a conditional update; whatever makes one of two creators of a number fail)
 * and durable, each naming pipeline, sink and deployment, none ever changed or removed. The last one, the
 * head, owns the target.
 *
 *   prepare_schema   reads the chain and asks weir_claim_start. When it says so, the next number is
 *                    created. If someone else was first with that number, the chain is read again and
 *                    weir_claim_check asked: there is no second try. All before anything else is made
 *                    for this namespace, and durable before prepare_schema returns. resolve_schema asks
 *                    the same without creating, so that nothing is prepared anywhere for one that is
 *                    refused.
 *   commit           weir_claim_check on the head, in the transaction that moves the cursor. A target
 *                    whose step is not a transaction asks before it and, when publishing is a step of
 *                    its own, between the two.
 *   take_over        weir_claim_check before anything is rolled forward.
 *
 * A deployment is claimed once: one that was replaced is refused for good, also when it asks for a new
 * deployment, which would have another UUID. may_replace is the wish of one run and kept nowhere: after a
 * kill before the claim the user asks again; after it, the claim is there and an ordinary run goes on.
 */

/* Asked in prepare_schema with the deployments of the chain, oldest first, n times WEIR_UUID_SIZE bytes.
 * On WEIR_OK *append says whether a claim for `ns` is to be created with the next number; 0: it is the
 * head already. WEIR_E_CONFLICT: the target is another deployment's; the message says whose and what to
 * do. */
WEIR_API weir_status weir_claim_start(const weir_namespace *ns,
                                      const uint8_t *deployments, size_t n,
                                      int32_t *append, weir_error *err);

/* WEIR_OK while the last of `deployments` is that of `ns`; else WEIR_E_CONFLICT, which stops the run for
 * good. n == 0: somebody has removed the chain. The head alone will do, but the whole chain tells a
 * deployment that was replaced from one that never owned the target. */
WEIR_API weir_status weir_claim_check(const weir_namespace *ns,
                                      const uint8_t *deployments, size_t n,
                                      weir_error *err);

/* checkpoint == 0: no cursor. */
typedef struct weir_cursor {
  uint64_t checkpoint; /* the last attempt published */
  uint64_t token;      /* fencing token under which that attempt was decided */
  /* SHA-256 over the attempt's ordered participants and descriptors */
  uint8_t digest[WEIR_DIGEST_SIZE];
} weir_cursor;

/* 1 when equal in all three. */
WEIR_API int weir_cursor_equal(const weir_cursor *a, const weir_cursor *b);

/* One participant's part of an attempt. */
typedef struct weir_commit_entry {
  uint64_t participant_id;
  int32_t present;           /* 0: this participant took no row and prepared nothing */
  const uint8_t *descriptor; /* what its pre_commit returned */
  size_t size;
} weir_commit_entry;

typedef struct weir_commit_attempt {
  weir_cursor cursor; /* what the target's cursor becomes with this attempt */
  const weir_commit_entry *entries; /* strictly ordered by participant_id */
  size_t n_entries;
} weir_commit_attempt;

/* Attempts of one sink to publish, strictly ordered by checkpoint; the last one gives the cursor.
 * Borrowed for the call. */
typedef struct weir_commit_batch {
  uint32_t struct_size;
  const weir_namespace *ns;
  /* the sink's last decided attempt before these; checkpoint 0: there is none */
  weir_cursor predecessor;
  /* in recovery: older decided cursors that count as the predecessor too */
  const weir_cursor *accepted;
  size_t n_accepted;
  const weir_commit_attempt *attempts;
  size_t n_attempts;
  /* JSON of the source positions for the cursor record, or NULL */
  const char *positions;
} weir_commit_batch;

/* What a committer does first: it reads the target's cursor and asks this function, which is DESIGN's
 * table. `observed` with checkpoint 0 means that the target has none. On WEIR_OK *first is the index of
 * the first attempt still to publish; n_attempts means that all are there (roll forward what the cursor
 * names, then answer). Otherwise WEIR_E_FENCED or WEIR_E_CONFLICT, naming both cursors. */
WEIR_API weir_status weir_commit_batch_start(const weir_commit_batch *batch,
                                             const weir_cursor *observed, size_t *first,
                                             weir_error *err);

/* A cursor found at a target under some deployment of the same pipeline and sink. */
typedef struct weir_found_cursor {
  uint8_t deployment[WEIR_UUID_SIZE];
  weir_cursor cursor;
  const char *positions; /* JSON as the record carries it, or NULL */
} weir_found_cursor;

typedef struct weir_cursor_list {
  const weir_found_cursor *v;
  size_t n;
  void (*release)(struct weir_cursor_list *);
  void *private_data;
} weir_cursor_list;

/* One participant's leftover of an aborted attempt. */
typedef struct weir_abort_entry {
  uint64_t checkpoint;
  uint64_t participant_id;
  /* 0: no intent was given; this does not prove that there are no artifacts */
  int32_t has_intent;
  const uint8_t *intent;
  size_t size;
} weir_abort_entry;

typedef struct weir_abort_batch {
  uint32_t struct_size;
  const weir_namespace *ns;
  const weir_abort_entry *entries; /* ordered by checkpoint, participant_id */
  size_t n_entries;
} weir_abort_batch;

#ifdef __cplusplus
}
#endif
#endif
