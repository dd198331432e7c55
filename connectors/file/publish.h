/* SPDX-License-Identifier: Apache-2.0 */
/* From staged to published: what the newest manifest names comes to lie under `path`. */
#ifndef CONNECTORS_FILE_PUBLISH_H
#define CONNECTORS_FILE_PUBLISH_H

#include "audit.h"
#include "commits.h"

/* Publishes what the newest manifest names and is not published yet: F8, F12a to F15. Any owner, any
 * number of times, at the same time too. `durable`: the caller has synced the manifest's name itself. */
weir_status file_publish_roll_forward(const file_place_folders *folders,
                                      const file_manifest *m, bool durable,
                                      weir_error *err);

/* As that, but files of attempts that a person has resolved may be gone; then durable: nothing of the manifest
 * is looked for any more. */
weir_status file_publish_give_up(const file_place_folders *folders,
                                 const file_manifest *m, const weir_ledger *resolved,
                                 weir_error *err);

/* Before a manifest is created: every file that it will name can be published. */
weir_status file_publish_check_files(const file_place_folders *folders,
                                     const file_manifest *m, weir_error *err);

#endif
