/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a file as its decoder sees them: plain, or out of gzip or zstd. */
#ifndef CONNECTORS_FILE_SOURCE_INPUT_H
#define CONNECTORS_FILE_SOURCE_INPUT_H

#include <stdbool.h>
#include <weir/call.h>
#include <weir/error.h>

typedef enum file_packing { FILE_PLAIN = 0, FILE_GZIP = 1, FILE_ZSTD = 2 } file_packing;

/* What option compression means for a path: by its extension when it is auto. */
file_packing file_packing_of(const char *compression, const char *path);
/* Length of the path without .gz or .zst, if the option makes them mean something. */
size_t file_packing_stem(const char *compression, const char *path);

typedef struct file_input file_input;

/* Memory is bounded whatever the bytes say: zstd windows beyond 128 MiB are refused. `fd` and `path` are
 * borrowed. With `stream` it is read in order, and never waited for; else from its beginning. */
weir_status file_input_new(int fd, const char *path, file_packing packing, bool stream,
                           file_input **out, weir_error *err);
void file_input_free(file_input *input); /* NULL is a no-op */

/* As many bytes as there are, up to `size`, their number in *got: however small the members, frames or
 * pieces of a stream are that they come in, since a long line is looked through again with every call.
 * 0: the end, which is good only behind a whole member or
 * frame with a good checksum; or *wait, when a stream has nothing yet. Broken bytes are bad data, and
 * the input is then of no further use. */
weir_status file_input_read(file_input *input, void *to, size_t size, size_t *got,
                            bool *wait, weir_error *err);
/* Waits for a stream's next bytes; false when the call or a short while is over first. */
bool file_input_wait(file_input *input, const weir_call *call);
/* A plain file: where the next read begins. */
void file_input_seek(file_input *input, uint64_t offset);
/* Decompressed bytes read so far; in a plain file its offset. */
uint64_t file_input_offset(const file_input *input);
#endif
