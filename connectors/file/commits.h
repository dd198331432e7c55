/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folder `commits/` of a namespace: a dense, create-once chain of manifests. The highest number is
 * the target's state; its cursor is the namespace's cursor. Whoever wants to move it on creates the next
 * number, so of two owners with one cursor only one succeeds, without any lock.
 *
 *   00000000000000000007.json              a manifest
 *   00000000000000000007-DIGEST16.done     all its files are published, durably; a hint: without it
 *                                          that is looked up file by file
 *   .tmp-00000000000000000008-RANDOM32     a manifest before it is linked
 */
#ifndef CONNECTORS_FILE_COMMITS_H
#define CONNECTORS_FILE_COMMITS_H

#include <weir/plugin.h>

#include "place.h"

/* Manifests that are kept. Readers that want whole epochs read them; recovery needs the newest alone. */
#define COMMITS_KEPT 64

/* The newest manifest; sequence 0 when there is none. */
weir_status file_commits_newest(const file_disk_folder *commits, file_manifest *out,
                                weir_error *err);

/* The manifest of that number. */
weir_status file_commits_read(const file_disk_folder *commits, uint64_t sequence,
                              file_manifest *out, weir_error *err);

/* Whether `name` is that of a manifest before it is linked, and the number it was meant for. */
bool file_commits_temporary(const char *name, uint64_t *sequence);

/* Creates the manifest, durably: F9 to F12. WEIR_E_EXISTS: another owner has moved the chain on, and
 * nothing was written; read the newest again. With WEIR_ERR_IN_DOUBT it may have been created. */
weir_status file_commits_append(const file_disk_folder *commits, const file_manifest *m,
                                const weir_namespace *ns, const weir_host *host,
                                weir_error *err);

bool file_commits_is_done(const file_disk_folder *commits, const file_manifest *m);
weir_status file_commits_mark_done(const file_disk_folder *commits,
                                   const file_manifest *m, weir_error *err);

/* Removes what lies below the floor of `m`, which must be done, and temporary manifests that can no
 * longer be linked. */
weir_status file_commits_prune(const file_disk_folder *commits, const file_manifest *m,
                               weir_error *err);

#endif
