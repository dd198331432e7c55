/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The source table: where rows come from. All calls come from the source's own thread, but `committed`,
 * which comes between two reads on that same thread.
 *
 *   create -> contract -> [use_schema] -> resolve_schema -> [set_aside] -> open(position | none)
 *   -> [ read* | position | seek ]* -> close -> release
 */
#ifndef WEIR_SOURCE_H
#define WEIR_SOURCE_H

#include <weir/batch.h>
#include <weir/call.h>
#include <weir/contract.h>
#include <weir/options.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_host weir_host;

#define WEIR_MAX_POSITION (1u << 20) /* bytes of one source position */
#define WEIR_MAX_POSITION_TEXT 4096u /* of what describe_position answers */

enum {
  WEIR_READ_BATCH = 1,   /* *out holds a batch */
  WEIR_READ_NOTHING = 2, /* nothing yet: read again later */
  WEIR_READ_END = 3      /* nothing will ever come, until a seek */
};

/* A row that could not be decoded, as a source hands it out. All is borrowed for the call. */
typedef struct weir_bad_row {
  uint32_t struct_size;
  const void *data; /* the row as it came, without what ends it */
  size_t size;
  const char *part;   /* the file, partition or the like that it lies in; NULL: none */
  int64_t offset;     /* of its first byte or record within the part; -1: not known */
  int64_t line;       /* from 1; -1: there are none */
  const char *column; /* at fault; NULL: none, or none alone */
  const char *reason; /* UTF-8 */
} weir_bad_row;

/* Where a source hands them to, within a read: `add` copies what it is given, `drop` forgets what this read has
 * added. */
typedef struct weir_bad_rows {
  uint32_t struct_size;
  void *ctx;
  weir_status (*add)(void *ctx, const weir_bad_row *row, weir_error *err);
  void (*drop)(void *ctx);
} weir_bad_rows;

typedef struct weir_source {
  const struct weir_source_ops *ops;
  void *state;
} weir_source;

typedef struct weir_source_ops {
  uint32_t abi_version, struct_size;
  const char *name;           /* [R] the `type` that users write */
  const char *text;           /* [R] one sentence for people */
  const weir_option *options; /* [R] ends with a {0} row */

  /* [R] No I/O. */
  weir_status (*create)(const weir_host *host, weir_source *out, weir_error *err);
  /* [R] Cannot fail; takes half-built objects; sets ops = NULL. */
  void (*release)(weir_source *source);
  /* Default: WEIR_CANCEL_RETIRE, as for sinks. */
  int32_t (*cancellation_policy)(weir_source *source);
  /* Replay of this configuration; no I/O. Default: ephemeral. */
  weir_status (*contract)(weir_source *source, const weir_options *options,
                          weir_source_contract *out, weir_error *err);
  /* [R] The schema of the batches to come, a new reference; read-only. */
  weir_status (*resolve_schema)(weir_source *source, const weir_call *call,
                                const weir_options *options, weir_schema **out,
                                weir_error *err);
  /* [R] Gets ready to read from `position`, or from the start when absent (release == NULL). Position
   * bytes come from outside: an unusable one is an error that says why. */
  weir_status (*open)(weir_source *source, const weir_call *call,
                      const weir_options *options, const weir_bytes *position,
                      weir_error *err);
  /* [R] The next batch, of the resolved schema. Sets *what to WEIR_READ_*; *out only for
   * WEIR_READ_BATCH (a reference, the caller's). May wait until the call's deadline, no longer, and then
   * answers WEIR_READ_NOTHING; comes back soon when cancelled. */
  weir_status (*read)(weir_source *source, const weir_call *call, int32_t *what,
                      weir_batch **out, weir_error *err);
  /* [R] Where reading stands, just after the last batch returned: bytes from which open and seek continue
   * with the next row. At most WEIR_MAX_POSITION. Never changes without a read. */
  weir_status (*position)(weir_source *source, weir_bytes *out, weir_error *err);
  /* Goes back (or forward) to a position as open would, also after WEIR_READ_END. Default: refused;
   * required of a replayable source. */
  weir_status (*seek)(weir_source *source, const weir_call *call,
                      const weir_bytes *position, weir_error *err);
  /* Every target shows `checkpoint`, whose position this was: what it covers may be let go.
   * Default: no-op. */
  weir_status (*committed)(weir_source *source, const weir_call *call,
                           uint64_t checkpoint, const weir_bytes *position,
                           weir_error *err);
  /* [R] At most once. */
  weir_status (*close)(weir_source *source, const weir_call *call, weir_error *err);

  /* A source that can infer its schema from a sample has both of these. */
  /* After contract: 1 when the options leave the schema to be inferred. After resolve_schema: 1 when what
   * it answered was inferred, now or by an earlier start. The runtime keeps such a schema with the
   * deployment, durable before any sink hears of it. Default: 0. */
  int32_t (*schema_is_inferred)(weir_source *source);
  /* Before resolve_schema, and only when an earlier start of this deployment kept a schema: the one to
   * answer instead of inferring again, unless the options give another by now. Takes a reference.
   * Default: no-op. */
  weir_status (*use_schema)(weir_source *source, weir_schema *schema, weir_error *err);

  /* A position of this type of source, for people: some words of UTF-8, one line, at most
   * WEIR_MAX_POSITION_TEXT bytes. No instance, no I/O, any thread. Default: absent, and the command prints
   * hex. */
  weir_status (*describe_position)(const weir_bytes *position, weir_bytes *out,
                                   weir_error *err);

  /* At most once, before open, when the user wants bad rows set aside: from now on a row that cannot be decoded
   * does not fail its read. The read adds it to `to` (valid as long as the source) and goes on behind it; the
   * position then lies behind it too. What was added by a read that fails is dropped, as are its rows. A read that
   * has added rows and has no batch answers WEIR_READ_NOTHING, or the end; it must not gather more than some MiB.
   * Input in which no next row can be told stays an error. Default: refused, for sources whose
   * rows cannot be bad one by one. */
  weir_status (*set_aside)(weir_source *source, const weir_bad_rows *to, weir_error *err);

  /* After an open without a position: 1 when the source found where to begin at a place that moves, such as the end
   * of a topic. The runtime then keeps position() with the deployment, durable before the first read, and gives it to
   * open and to seek until an attempt is decided. Default: 0. */
  int32_t (*keeps_begin)(weir_source *source);
} weir_source_ops;

#ifdef __cplusplus
}
#endif
#endif
