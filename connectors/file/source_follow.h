/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Following a folder: what has become of the files of which something was read.
 *
 * What was delivered of a file is the bytes that it begins with, so progress goes with bytes. Of all files
 * that begin with the same bytes exactly one goes on behind them, and which one makes no difference.
 *
 *   the same inode                     the same file, under whatever name of its folder
 *   its inode is gone                  the file of its name, or a rotation of it, with the same bytes
 *   its inode holds other bytes        cut and written anew: the rotation with the same bytes goes on for
 *                                      it, and it begins again
 *   a rotation that holds the bytes    a copy in the making: it waits until it is seen what becomes of the
 *   of a file which is as it was       two
 *
 * A file is never read beyond the size that it was listed with, and what lies beside it is looked at after
 * that. So a copy that was not there yet when a file was listed, holds all that can be read of that file
 * before the next scan: a position that knows no copy is covered by every copy made later.
 *
 * A file is begun from its start only when it cannot be a copy of what was read:
 *   what was read under its name, or a name that it may be a rotation of, was found again, with its bytes.
 *   It keeps that name until then: a log is cut under the name that it is copied under, and renamed later.
 *   The file that has such a name now begins with other bytes, and is known: else it came after the folder
 *   was read, and this may be its copy.
 * What is read of a file while a copy of it waits begins with the bytes of that copy, so that the copy stays one
 * when the file is cut.
 *
 * Whatever changes under the eyes of a scan, or cannot be found, waits for further scans: a name that moves
 * while a folder is read may be missed. Only scans without such a doubt count.
 */
#ifndef CONNECTORS_FILE_SOURCE_FOLLOW_H
#define CONNECTORS_FILE_SOURCE_FOLLOW_H

#include "source.h"
#include "source_around.h"

/* So many scans in a row must miss something before it is gone. */
#define FILE_ABSENT_MAX 5

typedef struct file_follow {
  const weir_options *options;
  const weir_host *host;
  bool whole;              /* Arrow or Parquet: no file grows */
  const char *compression; /* the option */
  bool
      skip_losses; /* rows that cannot be read any more are told and given up; else an error */
} file_follow;

/* What is there now, given what is known: the files with their progress, and those that are done and gone,
 * oldest first. Both outputs are new lists, and empty after a failure. */
weir_status file_follow_scan(const file_follow *follow, const file_list *files,
                             const file_list *gone, file_list *out_files,
                             file_list *out_gone, weir_error *err);
/* Whether the file has rows for a read before the next scan. */
bool file_follow_has_more(const file_item *item);

/* ---- inside (source_follow.c, source_copies.c) */

enum {
  FILE_FRESH = 0, /* nothing of it was delivered, as far as is known yet */
  FILE_KEPT = 1,  /* it goes on from its progress, or waits with it */
  FILE_LOST = 2   /* it does not hold what was read of it any more */
};

/* What was read of a file named so, which was not found; or was found without its bytes; or the copy of a file
 * with that mark. */
enum { FILE_MISSED, FILE_MISSED_BYTES, FILE_MISSED_COPY };

typedef enum file_verdict { FILE_SAME, FILE_DIFFERENT, FILE_DOUBT } file_verdict;

typedef struct file_known {
  const file_item *item;
  bool gone, taken;
} file_known;

typedef struct file_scan {
  const file_follow *follow;
  int64_t started; /* ns since 1970 */
  file_known *known;
  size_t n_known;
  file_list now;
  file_around around;
  file_index known_inodes, known_names; /* (inode, device), (name, 0) -> known */
  file_index inodes, names;             /* the same -> now */
  file_index
      bases; /* (name, 0): what files that were followed out of `path` were called */
  file_index rotated; /* (name, 0) -> now, for what may be a rotation of that name */
  file_index missed;  /* (name or mark, FILE_MISSED*) */
} file_scan;

/* Whether the file begins with the bytes of a progress. */
weir_status file_compare(const file_item *item, uint64_t covered, uint64_t hash,
                         file_verdict *out, weir_error *err);
/* Who is copied, in the progress of a copy. */
uint64_t file_mark(const file_item *item);
/* Arrow and compressed files come complete, and stay as they are. */
bool file_comes_whole(const file_follow *follow, const char *path);
bool file_is_rotation(const char *path, const char *name);
/* Gives the progress of `known` to a rotation of `name` that begins with the same bytes, if there is one:
 * FILE_SAME then. FILE_DOUBT: one may be. */
weir_status file_find_copy(file_scan *scan, uint32_t name, const file_item *known,
                           file_verdict *out, weir_error *err);
/* Decides about all that is fresh: new, a copy, or none of ours. */
weir_status file_hold_copies(file_scan *scan, weir_error *err);
#endif
