/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the file sink keeps what. For `path` = /data/orders:
 *
 *   /data/orders/                              published files and nothing else
 *   /data/.weir/orders/owner.json              whose folder it is; create-once
 *   /data/.weir/orders/deployment-<n>.json     which deployment has it: claim.h
 *   /data/.weir/orders/<ns key>/namespace.json pipeline, sink, deployment; create-once
 *   /data/.weir/orders/<ns key>/staged/        data files before they are published; mode 0700
 *   /data/.weir/orders/<ns key>/commits/       one manifest a commit
 *
 * All on one file system and one mount, so that a file is published by a rename.
 */
#ifndef CONNECTORS_FILE_PLACE_H
#define CONNECTORS_FILE_PLACE_H

#include <weir/cursor.h>
#include <weir/plugin.h>

#include "disk.h"
#include "manifest.h"

/* `path`, free of links and relative parts, and the folder beside it. */
typedef struct file_place {
  char *path;
  char *root; /* <parent>/.weir/<name> */
} file_place;

void file_place_done(file_place *p); /* zeroed is fine */

/* Resolves a configured path. WEIR_E_NOT_FOUND when there is nothing of that name. Refuses what cannot
 * be a target: a file, "/", anything inside a `.weir` folder. */
weir_status file_place_find(const char *configured, file_place *out, weir_error *err);

/* `path` free of links and relative parts, also of one that is not there yet. free() it; NULL with err
 * set. */
char *file_place_name(const char *configured, weir_error *err);

/* The folders of one namespace, held open. */
typedef struct file_place_folders {
  file_disk_folder path, ns, staged, commits;
} file_place_folders;

/* WEIR_E_NOT_FOUND when the namespace was never prepared here. */
weir_status file_place_folders_open(const file_place *p, const weir_namespace *ns,
                                    file_place_folders *out, weir_error *err);
void file_place_folders_done(file_place_folders *folders);

/* Makes what is missing, durably, and takes the folder for this sink and deployment (steps F1 to F4 and
 * K1 to K4 of docs/protocol.md). WEIR_E_INVALID_CONFIG when it belongs to another sink, or cannot be
 * published into, WEIR_E_CONFLICT when it belongs to another deployment.
 * *folder_id is the random identity of the target. */
weir_status file_place_prepare(const char *configured, const weir_namespace *ns,
                               const weir_host *host,
                               uint8_t folder_id[WEIR_INCARNATION_SIZE], weir_error *err);

/* Read-only: WEIR_OK also when nothing is there yet. */
weir_status file_place_check(const char *configured, const weir_namespace *ns,
                             weir_error *err);

/* Calls `each` for every namespace under the target's root. */
typedef weir_status (*file_place_each)(void *ctx, const file_owner_record *record,
                                       const file_disk_folder *commits, weir_error *err);
weir_status file_place_namespaces(const file_place *p, file_place_each each, void *ctx,
                                  weir_error *err);

#endif
