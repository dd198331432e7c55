/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One participant's open epoch: data files being written under `staged/`, one at a time, or with
 * `partition_by` one for each folder. Used by the sink's own thread alone. A file is finished and synced when
 * it rolls, so that pre_commit waits for the last one only.
 *
 * Of many folders, thousands of files are under way: what their empty encoders take is bounded by 192 MiB, what
 * waits in them for its row group by 128 MiB, and only those are open that have written: half of the process's
 * descriptors at most, all participants together. Beyond the first and the last bound the file that was written
 * least recently is finished, and more rows for its folder begin another; beyond the second the largest is
 * written early.
 */
#ifndef CONNECTORS_FILE_STAGING_H
#define CONNECTORS_FILE_STAGING_H

#include "encoder.h"
#include "manifest.h"
#include "partition.h"

typedef struct file_staging {
  file_encoder_config encoder;
  weir_schema *schema;            /* borrowed: of the files */
  file_partitions *partitions;    /* owned; NULL: all files lie in `path` itself */
  const file_disk_folder *folder; /* borrowed: `staged/` */
  uint64_t roll_rows;             /* 0: no bound */
  uint64_t roll_bytes;            /* 0: no bound */

  file_epoch_key key; /* attempt 0: no epoch is open */
  int broken;         /* a write or sync failed: this epoch can only be rolled back */
  uint64_t begun;     /* files: their index */
  size_t described;   /* bytes of the descriptor so far */
  file_data_files done;
  struct file_staging_files *files; /* under way; NULL: none yet */
} file_staging;

/* No file is made until there are rows. */
void file_staging_begin(file_staging *s, const file_epoch_key *key);
/* All of the batch or, with WEIR_ERR_BAD_DATA, nothing of it. *bytes is what reached files. */
weir_status file_staging_write(file_staging *s, weir_batch *batch, uint64_t *bytes,
                               weir_error *err);
/* Finishes the open files and makes all files durable; `done` lists them. */
weir_status file_staging_prepare(file_staging *s, weir_error *err);
/* Closes the open files, which stay where they are, and forgets the epoch. */
void file_staging_end(file_staging *s);
void file_staging_done(file_staging *s); /* zeroed is fine */

#endif
