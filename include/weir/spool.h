/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The spool: batches on disk that wait for their target. UNSTABLE until 1.0: used by weir's own connectors;
 * may change without notice.
 *
 * A segment is one file, of one participant and one attempt. It is written once, front to back, sealed by
 * one sync, and read any number of times, by its writer while it grows or by whoever holds the descriptor
 * that the seal gave, in another process too. A descriptor names its segment by participant, attempt and a
 * random incarnation, and knows its length, its batches and a checksum over all of them, so a segment that
 * is torn, changed, missing or another one's is found and named.
 *
 *   <folder>/<namespace key>/ATTEMPT-PARTICIPANT-INCARNATION.spool     folders 0700, files 0600
 *
 * Segments hold rows in the clear. What is written is Arrow IPC in frames; docs/protocol.md has the format.
 */
#ifndef WEIR_SPOOL_H
#define WEIR_SPOOL_H

#include <weir/batch.h>
#include <weir/cursor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Which segment. */
typedef struct weir_spool_id {
  uint64_t attempt, participant;
  uint8_t incarnation[WEIR_INCARNATION_SIZE];
} weir_spool_id;

/* Makes the namespace's folder below `folder`, and both durable. Idempotent. */
WEIR_API weir_status weir_spool_prepare(const char *folder, const weir_namespace *ns,
                                        weir_error *err);

/* ---- writing. One thread at a time; read_at may run beside append on others. */

typedef struct weir_spool_writer weir_spool_writer;

/* Where a batch lies in its segment. */
typedef struct weir_spool_frame {
  uint64_t offset, size; /* of the file, its header included */
} weir_spool_frame;

/* Creates the file, which must not be there. Nothing is synced. */
WEIR_API weir_status weir_spool_writer_new(const char *folder, const weir_namespace *ns,
                                           const weir_spool_id *id,
                                           weir_spool_writer **out, weir_error *err);
/* Adds one batch. After a failure of a write or sync every further call fails the same way: the attempt can
 * only be rolled back. ENOSPC is flagged retriable, as all of it may be tried again under another number. */
WEIR_API weir_status weir_spool_writer_append(weir_spool_writer *writer,
                                              weir_batch *batch, weir_spool_frame *out,
                                              weir_error *err);
/* Bytes of the file so far. */
WEIR_API uint64_t weir_spool_writer_bytes(const weir_spool_writer *writer);
/* Everything durable, the name too; *descriptor finds it again. Nothing can be added afterwards; asked again,
 * it answers the same. */
WEIR_API weir_status weir_spool_writer_seal(weir_spool_writer *writer,
                                            weir_bytes *descriptor, weir_error *err);
/* The batch that append put there, mapped. Any thread. */
WEIR_API weir_status weir_spool_writer_read_at(const weir_spool_writer *writer,
                                               const weir_spool_frame *frame,
                                               weir_batch **out, weir_error *err);
/* Closes it; the file stays. */
WEIR_API void weir_spool_writer_free(weir_spool_writer *writer); /* NULL is a no-op */

/* ---- reading a sealed segment */

#define WEIR_SPOOL_DESCRIPTOR_SIZE 80

/* What a descriptor says. */
typedef struct weir_spool_segment {
  weir_spool_id id;
  uint64_t bytes, frames, rows;
  uint64_t checksum; /* over all frames' headers, which hold those of their contents */
} weir_spool_segment;

/* WEIR_E_CORRUPT for bytes that are no descriptor. */
WEIR_API weir_status weir_spool_descriptor_read(const void *data, size_t size,
                                                weir_spool_segment *out, weir_error *err);

typedef struct weir_spool_reader weir_spool_reader;

/* Opens the segment. WEIR_E_NOT_FOUND: it is gone. WEIR_E_CORRUPT: it is shorter than it was, or another one's.
 * Either names the file. */
WEIR_API weir_status weir_spool_reader_open(const char *folder, const weir_namespace *ns,
                                            const weir_spool_segment *segment,
                                            weir_spool_reader **out, weir_error *err);
/* The next batch, mapped, which the caller unrefs; NULL behind the last, when all of the segment has been
 * checked. */
WEIR_API weir_status weir_spool_reader_next(weir_spool_reader *reader, weir_batch **out,
                                            weir_error *err);
/* Batches that were given live on. */
WEIR_API void weir_spool_reader_free(weir_spool_reader *reader); /* NULL is a no-op */

/* ---- removing */

/* The segment of that id; gone already is WEIR_OK. */
WEIR_API weir_status weir_spool_remove(const char *folder, const weir_namespace *ns,
                                       const weir_spool_id *id, weir_error *err);
/* All segments of that attempt and participant, whatever their incarnation. */
WEIR_API weir_status weir_spool_remove_all(const char *folder, const weir_namespace *ns,
                                           uint64_t attempt, uint64_t participant,
                                           weir_error *err);
/* Of the attempts up to `published` the newest `attempts` are kept, and of these the newest that fit into
 * `bytes`; the segments of the others are removed. Later ones are not touched. */
WEIR_API weir_status weir_spool_prune(const char *folder, const weir_namespace *ns,
                                      uint64_t published, uint64_t attempts,
                                      uint64_t bytes, weir_error *err);

#ifdef __cplusplus
}
#endif
#endif
