/* SPDX-License-Identifier: Apache-2.0 */
/* One data file under way: an encoder, and the file under `staged/` that takes its bytes. */
#ifndef CONNECTORS_FILE_STAGED_FILE_H
#define CONNECTORS_FILE_STAGED_FILE_H

#include <openssl/evp.h>

#include "encoder.h"
#include "manifest.h"

typedef struct file_staged {
  file_data_file info; /* rows and bytes so far */
  const file_disk_folder *folder;
  const file_encoder_format *format;
  void *encoder;
  EVP_MD_CTX *hash;
  int fd;       /* -1: not created yet */
  bool created; /* under its name */
  bool complete;
  uint64_t handed_over; /* bytes that the disk was told to begin with */
  uint8_t *held;        /* bytes for a file that is not created yet */
  size_t held_size, held_capacity, held_max;

  /* Its owner's: the folder's hash, the files in the same bucket, those used before and after. */
  uint64_t key;
  struct file_staged *next, *older, *newer;
} file_staged;

/* `held_max`: so many bytes wait in memory before the file is created; 0: it is created now. Keeps `config`,
 * `schema` and `staged`; copies `folder`, which may be NULL. */
weir_status file_staged_new(const file_encoder_config *config, weir_schema *schema,
                            const file_disk_folder *staged, const file_data_name *name,
                            const char *folder, size_t held_max, file_staged **out,
                            weir_error *err);
/* What it wrote stays where it is. */
void file_staged_free(file_staged *file);

/* Bytes in memory, and bytes of the file if it ended now. */
uint64_t file_staged_pending(const file_staged *file);
uint64_t file_staged_size(const file_staged *file);
/* Hands over what is in memory, so that the file is created. */
weir_status file_staged_spill(file_staged *file, weir_error *err);

/* Complete, and the disk begins with it; finish need not be preceded by it. */
weir_status file_staged_complete(file_staged *file, weir_error *err);
/* Complete and synced, closed, its SHA-256 known. */
weir_status file_staged_finish(file_staged *file, weir_error *err);

/* Files that this process has under way and open. */
size_t file_staged_count(void);

#endif
