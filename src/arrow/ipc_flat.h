/* SPDX-License-Identifier: Apache-2.0 */
/* flatcc's readers, verifiers and builders of Arrow's messages, as nanoarrow ships them. */
#ifndef WEIR_ARROW_IPC_FLAT_H
#define WEIR_ARROW_IPC_FLAT_H

#include <nanoarrow/ipc/flatcc_generated.h>

#define flat(x) FLATBUFFERS_WRAP_NAMESPACE(org_apache_arrow_flatbuf, x)

#endif
