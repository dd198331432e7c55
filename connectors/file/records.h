/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Create-once records in a folder: whose it is, which deployment a namespace in it is, and the chain of
 * deployment claims. Each comes to be whole under its name, and for one creator alone.
 */
#ifndef CONNECTORS_FILE_RECORDS_H
#define CONNECTORS_FILE_RECORDS_H

#include <weir/plugin.h>

#include "disk.h"
#include "manifest.h"

/* WEIR_E_NOT_FOUND when there is none. */
weir_status file_records_read(int kind, const file_disk_folder *folder, const char *name,
                              file_owner_record *out, weir_error *err);

/* Writes the record under a name of its own, synced, and links it to `name`. The folder is the caller's
 * to sync. WEIR_E_EXISTS when someone else was first; WEIR_E_NOT_FOUND when someone has swept the
 * temporary file. */
weir_status file_records_create(int kind, const file_disk_folder *folder,
                                const char *name, const weir_namespace *ns,
                                const weir_host *host, weir_error *err);

/* Removes what creators left who were killed. Without the right to tidy up the sink works as well. */
void file_records_sweep(const file_disk_folder *folder);

#endif
