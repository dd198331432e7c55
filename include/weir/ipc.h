/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrow IPC, stream and file format ("Arrow Columnar Format", section "Serialization and Interprocess
 * Communication"). UNSTABLE until 1.0: used by weir's own connectors; may change without notice.
 *
 * Reads every type of the format; dictionaries with their deltas and replacements, nested ones too;
 * bodies plain, LZ4_FRAME or ZSTD; metadata versions V4 and V5. The other
 * endianness is refused. Metadata of the schema and its fields is kept.
 *
 * Nothing read is trusted: every length and offset is checked, memory grows with the bytes that are
 * really there, and what does not fit is WEIR_E_CORRUPT with a message that names file and offset.
 * Dictionary indices, offsets and null counts of a batch that was handed out are sound; UTF-8 is not
 * checked here.
 *
 * Limits: a record batch has at most 2^31 - 1 rows; fields nest at most 64 deep.
 */
#ifndef WEIR_IPC_H
#define WEIR_IPC_H

#include <weir/batch.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A reader of one stream or file. One thread at a time. */
typedef struct weir_ipc_reader weir_ipc_reader;

typedef struct weir_ipc_options {
  uint32_t struct_size;
  uint32_t reserved;
  uint64_t max_metadata_bytes; /* of one message or the footer; 0: 256 MiB */
  uint64_t
      max_body_bytes; /* of one message that is not mapped, and what a message's compressed
                         buffers may grow to; 0: 16 GiB */
} weir_ipc_options;

/* Maps the file; what is not a regular file (a FIFO) is read as a stream. The file may hold either
 * format. Batches point into the mapping: no buffer is copied but compressed ones and those the
 * writer did not align. The mapping lives as long as the reader or one of its batches.
 * CAUTION: a mapped file that another program cuts short raises SIGBUS in whoever touches the lost
 * pages; its size is checked at open only. Files that may be rewritten in place must be read
 * with weir_ipc_reader_open_stream. */
WEIR_API weir_status weir_ipc_reader_open_file(const char *path,
                                               const weir_ipc_options *options,
                                               weir_ipc_reader **out, weir_error *err);
/* The same for an open descriptor, which stays the caller's and may be closed at once if it is a
 * regular file, else after the reader. `name` is for messages. */
WEIR_API weir_status weir_ipc_reader_open_fd(int fd, const char *name,
                                             const weir_ipc_options *options,
                                             weir_ipc_reader **out, weir_error *err);
/* The same for bytes in memory; *bytes is moved on success. */
WEIR_API weir_status weir_ipc_reader_open_bytes(weir_bytes *bytes, const char *name,
                                                const weir_ipc_options *options,
                                                weir_ipc_reader **out, weir_error *err);

/* Puts 1 to `size` bytes into buf and their number into *got; 0 is the end. Called by the thread that
 * calls the reader, and never again after a failure. */
typedef weir_status (*weir_ipc_read_fn)(void *ctx, void *buf, size_t size, size_t *got,
                                        weir_error *err);
/* Reads a stream (or a file from its beginning on), not one byte past its end-of-stream mark. */
WEIR_API weir_status weir_ipc_reader_open_stream(weir_ipc_read_fn read, void *ctx,
                                                 const char *name,
                                                 const weir_ipc_options *options,
                                                 weir_ipc_reader **out, weir_error *err);

WEIR_API weir_schema *weir_ipc_reader_schema(
    const weir_ipc_reader *reader); /* borrowed */

/* The next batch, which the caller unrefs; *out = NULL at the end. After a failure every further call
 * fails the same way. A stream that stops between two messages without an end-of-stream mark has
 * ended, as the format allows; one that stops within a message is WEIR_E_CORRUPT. */
WEIR_API weir_status weir_ipc_reader_next(weir_ipc_reader *reader, weir_batch **out,
                                          weir_error *err);

/* The number (from 0) of the batch that `next` will give; after the last, how many there are. */
WEIR_API uint64_t weir_ipc_reader_tell(const weir_ipc_reader *reader);
/* How many batches there are, or -1 when only reading on would tell (stream format). */
WEIR_API int64_t weir_ipc_reader_batches(const weir_ipc_reader *reader);
/* Makes batch `index` the next one; `index` may be one past the last. Dictionaries are those in
 * force there. WEIR_E_INVALID_STATE when there are fewer batches, or for going back in what is not
 * mapped. */
WEIR_API weir_status weir_ipc_reader_seek_batch(weir_ipc_reader *reader, uint64_t index,
                                                weir_error *err);
/* Bytes from the beginning to where reading stands. In the stream format all before it has been
 * delivered; in the file format it is the place of the message read last. */
WEIR_API uint64_t weir_ipc_reader_offset(const weir_ipc_reader *reader);
/* 1: file format (with a footer that was read), 0: stream format. */
WEIR_API int weir_ipc_reader_is_file(const weir_ipc_reader *reader);

WEIR_API void weir_ipc_reader_free(
    weir_ipc_reader *reader); /* NULL is a no-op; batches live on */

/* ---- writing ---- */

/* A writer of one stream or file. One thread at a time. */
typedef struct weir_ipc_writer weir_ipc_writer;

enum { WEIR_IPC_PLAIN = 0, WEIR_IPC_LZ4 = 1, WEIR_IPC_ZSTD = 2 };

typedef struct weir_ipc_writer_options {
  uint32_t struct_size;
  int32_t file;  /* 0: stream format, 1: file format */
  int32_t codec; /* WEIR_IPC_* */
  int32_t level; /* of ZSTD; 0: 1 */
} weir_ipc_writer_options;

/* Takes all `size` bytes. Called by the thread that calls the writer, and never again after a
 * failure. */
typedef weir_status (*weir_ipc_write_fn)(void *ctx, const void *data, size_t size,
                                         weir_error *err);

/* Writes the head and the schema at once. Keeps a reference to the schema. */
WEIR_API weir_status weir_ipc_writer_new(weir_schema *schema,
                                         const weir_ipc_writer_options *options,
                                         weir_ipc_write_fn write, void *ctx,
                                         weir_ipc_writer **out, weir_error *err);
/* Writes one record batch of that schema (an object with the same types will do) and what its
 * dictionaries have that was not written yet: values added at the end as a delta; else in a stream
 * a replacement, and in a file, which may have none, all values as a delta behind those that are
 * there, with indices moved accordingly. After a failure every further call fails the same way. */
WEIR_API weir_status weir_ipc_writer_write(weir_ipc_writer *writer, weir_batch *batch,
                                           weir_error *err);
/* Writes the end-of-stream mark and the footer; nothing can be written after it. */
WEIR_API weir_status weir_ipc_writer_finish(weir_ipc_writer *writer, weir_error *err);
WEIR_API uint64_t
weir_ipc_writer_bytes(const weir_ipc_writer *writer); /* written so far */
WEIR_API void weir_ipc_writer_free(
    weir_ipc_writer *writer); /* without finish: cut short */

#ifdef __cplusplus
}
#endif
#endif
