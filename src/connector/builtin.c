/* SPDX-License-Identifier: Apache-2.0 */
/* The connectors inside the library: one line each, by name. */
#include "connector/inside.h"

const weir_sink_ops *const connector_builtin_sinks[] = {
    NULL,
};

const weir_source_ops *const connector_builtin_sources[] = {
    NULL,
};
