/* SPDX-License-Identifier: Apache-2.0 */
/* The file sink's answers to `weir verify` and `weir clean`: the hooks of <weir/audit.h>. `configured` is the
 * option `path`; both find everything anew and share nothing with a writer. */
#ifndef CONNECTORS_FILE_AUDIT_H
#define CONNECTORS_FILE_AUDIT_H

#include <stdbool.h>
#include <weir/audit.h>
#include <weir/call.h>

/* Whether a person has resolved that attempt. A ledger of an older host has no such list. */
bool file_audit_resolved(const weir_ledger *ledger, uint64_t attempt);

weir_status file_verify(const char *configured, const weir_call *call,
                        const weir_verify *ask, weir_verified *out, weir_error *err);

weir_status file_sweep(const char *configured, const weir_call *call,
                       const weir_sweep *ask, weir_swept *out, weir_error *err);

#endif
