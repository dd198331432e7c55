/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One participant's open epoch: data files being written under `staged/`. Used by the sink's own thread
 * alone. A file is finished and synced when it rolls, so that pre_commit waits for the last one only.
 */
#ifndef CONNECTORS_FILE_STAGING_H
#define CONNECTORS_FILE_STAGING_H

#include "encoder.h"
#include "manifest.h"

typedef struct file_staging {
  file_encoder_config encoder;
  weir_schema *schema;            /* borrowed */
  const file_disk_folder *folder; /* borrowed: `staged/` */
  uint64_t roll_rows;             /* 0: no bound */
  uint64_t roll_bytes;            /* 0: no bound */

  file_epoch_key key; /* attempt 0: no epoch is open */
  int broken;         /* a write or sync failed: this epoch can only be rolled back */
  file_data_files done;
  struct file_staging_file *file; /* NULL: none is open */
} file_staging;

/* No file is made until there are rows. */
void file_staging_begin(file_staging *s, const file_epoch_key *key);
/* All of the batch or, with WEIR_ERR_BAD_DATA, nothing of it. *bytes is what reached files. */
weir_status file_staging_write(file_staging *s, weir_batch *batch, uint64_t *bytes,
                               weir_error *err);
/* Finishes the open file and makes all files durable; `done` lists them. */
weir_status file_staging_prepare(file_staging *s, weir_error *err);
/* Closes the open file, which stays where it is, and forgets the epoch. */
void file_staging_end(file_staging *s);

#endif
