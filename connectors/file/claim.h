/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The deployment claim: which deployment the target belongs to. In `.weir/<name>/`, beside owner.json, a
 * dense chain of create-once records deployment-1.json, deployment-2.json, ..; the last one is the owner.
 * Steps K1 to K6 of docs/protocol.md.
 */
#ifndef CONNECTORS_FILE_CLAIM_H
#define CONNECTORS_FILE_CLAIM_H

#include "place.h"

/* Whether `ns` may have the target, without taking it. */
weir_status file_claim_look(const file_disk_folder *root, const weir_namespace *ns,
                            weir_error *err);

/* K1 to K4: takes the target for `ns`, durably, or finds that it has it. WEIR_E_CONFLICT: it is another
 * deployment's. */
weir_status file_claim_take(const file_disk_folder *root, const weir_namespace *ns,
                            const weir_host *host, weir_error *err);

/* K5, K6: WEIR_E_CONFLICT once another deployment has it. */
weir_status file_claim_check(const file_place *p, const weir_namespace *ns,
                             weir_error *err);

#endif
