/* SPDX-License-Identifier: Apache-2.0 */
/* What else lies in the folders of a followed source: where rotation puts what it takes away. */
#ifndef CONNECTORS_FILE_SOURCE_AROUND_H
#define CONNECTORS_FILE_SOURCE_AROUND_H

#include <weir/options.h>

#include "source_index.h"

typedef struct file_neighbour {
  uint64_t
      inode; /* as the folder says; some file systems stacked on others say another */
  size_t folder;
  char *name;
} file_neighbour;

typedef struct file_around {
  char **folders;
  size_t n_folders;
  file_neighbour *entries;
  size_t n, room;
  file_index inodes; /* (inode, 0) -> entries */
} file_around;

/* The folders of option `path`, one after the other; one that is not there is empty. */
weir_status file_around_read(const weir_options *options, file_around *out,
                             weir_error *err);
void file_around_done(file_around *around); /* zeroed is fine */
/* The path of an entry, cut short where it does not fit. */
void file_around_path(const file_around *around, size_t i, char *path, size_t size);

/*
 * Names of which `path` may be what a rotation left: of app.log.1 and app.log-20261202 that is app.log, of
 * app-20261202.log it is app.log, too. One name a call; false after the last. *place begins with 0.
 */
bool file_rotated_from(const char *path, size_t *place, char *name, size_t size);
#endif
