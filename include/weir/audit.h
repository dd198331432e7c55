/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looking at a target: what `weir verify` and `weir clean` ask of a sink.
 *
 * Both hooks are tail entries of the sink table (sink.h) and stand outside the lifecycle of a writer: they
 * come after contract and bind_runtime_context, without prepare_schema and open, possibly while another
 * process delivers to the same target under the same namespace. So verify writes nothing at all, sweep
 * removes nothing but orphans, and neither ends anybody's session. A sink without them works as well; the
 * command then says that it cannot tell.
 */
#ifndef WEIR_AUDIT_H
#define WEIR_AUDIT_H

#include <weir/cursor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the checkpoint store knows of a sink. Read before the target is, and maybe beside a live run: by the
 * time the hook looks, the target may be further than this, never behind. Borrowed for the call. */
typedef struct weir_ledger {
  uint32_t struct_size;
  /* Of a state folder that is gone, `deployment` is all zero: a target with a claim is then another's. */
  const weir_namespace *ns;
  /* Decided attempts that the store keeps, strictly ordered: the last ones, and all that the target may
   * lack. What a descriptor among them names is owned. */
  const weir_commit_attempt *decided;
  size_t n_decided;
  /* Attempts without a decision, and aborted ones still to be cleaned: what these intents name is owned, and
   * without an intent all of that attempt (participant 0: of every participant). */
  const weir_abort_entry *open;
  size_t n_open;
  /* Decided attempts of which a person has said that nothing more of them will come (`weir resolve`), in order:
   * what is missing of them is no fault. A sweep that is no dry run also ends what a target shows of them and
   * could not finish publishing: what is still there is published, what is gone is not looked for any more. */
  const uint64_t *resolved;
  size_t n_resolved;
} weir_ledger;

enum {
  WEIR_FOUND_MISSING = 1, /* an artifact that the target must have is not there */
  WEIR_FOUND_CHANGED = 2, /* it is there, with another size or content */
  WEIR_FOUND_FOREIGN = 3, /* the target is another deployment's */
  WEIR_FOUND_ORPHAN = 4,  /* sweep: an artifact that no epoch owns */
  WEIR_FOUND_UNKNOWN =
      5 /* sweep: among the artifacts, and not made by this sink: never removed */
};

typedef struct weir_finding {
  uint32_t struct_size;
  int32_t kind;         /* WEIR_FOUND_* */
  uint64_t checkpoint;  /* the attempt that it is of; 0: of none, or unknown */
  const char *artifact; /* what people look for: a path, an object, a table */
  const char
      *text; /* what is wrong, in a sentence without a full stop; NULL for orphans */
  uint64_t bytes;
  int64_t age_ns; /* of orphans, by the target's clock */
} weir_finding;

/* ---- verify ---------------------------------------------------------------------------------------- */

/* What a target could tell; whatever is not set is never counted as verified. */
enum {
  WEIR_CHECKED_CURSOR = 1, /* `cursor` */
  WEIR_CHECKED_ARTIFACTS =
      2, /* all that the cursor's attempts made, as far back as the target knows */
  WEIR_CHECKED_CONTENT = 4,  /* every byte of them, with `deep` */
  WEIR_CHECKED_ROWS = 8,     /* rows of the attempts given to `published` */
  WEIR_CHECKED_ALL_ROWS = 16 /* these are all attempts since the deployment began */
};

typedef struct weir_verify {
  uint32_t struct_size;
  const weir_ledger *ledger;
  int32_t deep; /* 1: contents too, however long that takes */
  /* Called by the hook, on its thread. */
  void *ctx;
  /* Every attempt that the target still knows by itself, up to the cursor, in order: with its rows. */
  void (*published)(void *ctx, const weir_cursor *attempt, uint64_t rows);
  void (*found)(void *ctx, const weir_finding *finding);
  /* Not NULL: every cursor that the target has of the same pipeline and sink, under any deployment, also where the
   * target is another's than `ledger` says. What `weir adopt` makes a lost state of: from a sink that never calls
   * it there is nothing to be had. Borrowed for the call. */
  void (*cursor)(void *ctx, const weir_found_cursor *cursor);
} weir_verify;

/* Zeroed but for struct_size when the hook is called. */
typedef struct weir_verified {
  uint32_t struct_size;
  uint32_t checked;          /* WEIR_CHECKED_* */
  weir_cursor cursor;        /* as observe_cursor answers it; checkpoint 0: none */
  uint64_t artifacts, bytes; /* looked at */
} weir_verified;

/* ---- sweep ----------------------------------------------------------------------------------------- */

typedef struct weir_sweep {
  uint32_t struct_size;
  const weir_ledger *ledger;
  /* As verify has just answered it, and the store agreed. An artifact of a later attempt is never an
   * orphan, whoever made it. */
  weir_cursor cursor;
  int32_t dry_run;        /* 1: only find them; maybe beside a live run */
  int32_t all_namespaces; /* 1: also what replaced deployments left at this target */
  int64_t older_than_ns;  /* by the target's clock: younger ones are counted and kept */
  void *ctx;
  /* Called by the hook, on its thread: of each orphan, before it is removed, and of each unknown thing. */
  void (*found)(void *ctx, const weir_finding *finding);
} weir_sweep;

/* Zeroed but for struct_size when the hook is called. */
typedef struct weir_swept {
  uint32_t struct_size;
  int32_t looked; /* 1: the target was searched; 0: this sink cannot tell */
  uint64_t young; /* orphans that were kept for their age */
} weir_swept;

#ifdef __cplusplus
}
#endif
#endif
