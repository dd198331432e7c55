/* SPDX-License-Identifier: Apache-2.0 */
/* The connectors inside the library: one line each, by name. */
#include "connector/inside.h"

extern const weir_sink_ops weir_blackhole_sink_ops;
extern const weir_sink_ops weir_file_sink_ops;
extern const weir_sink_ops weir_sqlite_sink_ops;
extern const weir_sink_ops weir_stdout_sink_ops;
extern const weir_source_ops weir_file_source_ops;
extern const weir_source_ops weir_generator_source_ops;
extern const weir_source_ops weir_push_source_ops;

const weir_sink_ops *const connector_builtin_sinks[] = {
    &weir_blackhole_sink_ops,
    &weir_file_sink_ops,
    &weir_sqlite_sink_ops,
    &weir_stdout_sink_ops,
    NULL,
};

const weir_source_ops *const connector_builtin_sources[] = {
    &weir_file_source_ops,
    &weir_generator_source_ops,
    &weir_push_source_ops,
    NULL,
};
