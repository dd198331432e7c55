/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Record batches from Parquet files. Unstable until 1.0.
 *
 * Reads data pages of version 1 and 2; encodings PLAIN, RLE, dictionary, DELTA_BINARY_PACKED,
 * DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY and BYTE_STREAM_SPLIT; codecs zstd, snappy, gzip, LZ4_RAW and
 * none. brotli, lzo, the old lz4, levels in BIT_PACKED and encrypted files are refused by name. Checksums of pages are
 * verified where there are any.
 *
 * Types are those of the Arrow schema that Arrow writers keep under "ARROW:schema", where the file's own
 * schema agrees with it; else those of the logical and converted types. Dictionaries come as their values,
 * list views as lists. INT96 is timestamp[ns], and WEIR_E_CORRUPT beyond the
 * years that it can hold. ENUM and JSON are utf8; UTF-8 is not checked.
 *
 * Nothing read is trusted: what does not fit is WEIR_E_CORRUPT with a message that names the column, and
 * memory grows with the bytes that are there. In memory at a time are the footer, of each column a page
 * with its dictionary, and the batch.
 *
 * Threads: one at a time per reader.
 */
#ifndef WEIR_PARQUET_READ_H
#define WEIR_PARQUET_READ_H

#include <weir/batch.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A zeroed struct with struct_size set, and a NULL pointer, mean the defaults. */
typedef struct weir_parquet_read_options {
  uint32_t struct_size;
  int32_t batch_rows; /* of a batch at most; 0: 65536 */
  /* what the values of a batch may take in memory; 0: 2 GiB. A batch that would take more is refused with
   * the advice to ask for fewer rows */
  uint64_t max_batch_bytes;
  const char *const
      *columns; /* top-level ones to read, all if n_columns is 0; in the file's order */
  size_t n_columns;
} weir_parquet_read_options;

typedef struct weir_parquet_reader weir_parquet_reader;

/* Puts the `size` bytes from `offset` on into `data`, or fails. Called by the thread that calls the
 * reader, and only for bytes before the size that the reader was made with. */
typedef weir_status (*weir_parquet_read)(void *ctx, uint64_t offset, void *data,
                                         size_t size, weir_error *err);

/* Reads the footer. `size` is the file's, `name` is for messages; options are copied. */
WEIR_API weir_status weir_parquet_reader_new(weir_parquet_read read, void *ctx,
                                             uint64_t size, const char *name,
                                             const weir_parquet_read_options *options,
                                             weir_parquet_reader **out, weir_error *err);

WEIR_API weir_schema *weir_parquet_reader_schema(
    const weir_parquet_reader *reader); /* borrowed */
WEIR_API uint64_t weir_parquet_reader_rows(const weir_parquet_reader *reader);
WEIR_API uint64_t weir_parquet_reader_row_groups(const weir_parquet_reader *reader);
/* Rows of one group; 0 past the last. */
WEIR_API uint64_t weir_parquet_reader_group_rows(const weir_parquet_reader *reader,
                                                 uint64_t group);

/* Makes `row` of a row group the next one. It may be one past the group's last, and the group one past
 * the last; WEIR_E_INVALID_STATE beyond that. Rows before it are passed over by the next call. */
WEIR_API weir_status weir_parquet_reader_seek(weir_parquet_reader *reader, uint64_t group,
                                              uint64_t row, weir_error *err);
/* Where reading stands: never at the end of a row group, but at the beginning of the one behind it. */
WEIR_API void weir_parquet_reader_tell(const weir_parquet_reader *reader, uint64_t *group,
                                       uint64_t *row);

/* The next batch, which the caller unrefs, all of one row group; *out = NULL at the end. After a failure
 * every further call fails, until a seek. */
WEIR_API weir_status weir_parquet_reader_next(weir_parquet_reader *reader,
                                              weir_batch **out, weir_error *err);

WEIR_API void weir_parquet_reader_free(
    weir_parquet_reader *reader); /* NULL is a no-op; batches live on */

#ifdef __cplusplus
}
#endif
#endif
