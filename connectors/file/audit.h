/* SPDX-License-Identifier: Apache-2.0 */
/* The file sink's answers to `weir verify` and `weir clean`: the hooks of <weir/audit.h>. `configured` is the
 * option `path`; both find everything anew and share nothing with a writer. */
#ifndef CONNECTORS_FILE_AUDIT_H
#define CONNECTORS_FILE_AUDIT_H

#include <weir/audit.h>
#include <weir/call.h>

weir_status file_verify(const char *configured, const weir_call *call,
                        const weir_verify *ask, weir_verified *out, weir_error *err);

weir_status file_sweep(const char *configured, const weir_call *call,
                       const weir_sweep *ask, weir_swept *out, weir_error *err);

#endif
