/* SPDX-License-Identifier: Apache-2.0 */
/* The connectors there are: those of the library and those in shared objects on the plugin path. */
#ifndef WEIR_CONNECTORS_H
#define WEIR_CONNECTORS_H

#include <weir/options.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { WEIR_CONNECTOR_SOURCE = 1, WEIR_CONNECTOR_SINK = 2 };

/* All strings and tables are static storage of the connector, but `origin` and `problem`, which are valid
 * during the callback. */
typedef struct weir_connector_info {
  uint32_t struct_size;
  int32_t kind;               /* WEIR_CONNECTOR_*; 0 with a problem */
  const char *name;           /* the `type` that users write */
  const char *text;           /* one sentence for people */
  const weir_option *options; /* ends with a row whose name is NULL */
  const char *origin;         /* path of the shared object; NULL: in the library */
  const char *problem;        /* why this shared object cannot be used; NULL: it can */
} weir_connector_info;

/* Return other than WEIR_OK to stop; weir_connectors_each returns that status. */
typedef weir_status (*weir_connector_fn)(void *ctx, const weir_connector_info *info);

/* Calls `fn` for each connector, sources before sinks, by name, those of the library first. Loads every
 * shared object named weir-*.so on $WEIR_PLUGIN_PATH and in <libdir>/weir; one that cannot be loaded is
 * reported with its problem. Any thread. */
WEIR_API weir_status weir_connectors_each(weir_connector_fn fn, void *ctx,
                                          weir_error *err);

/* The options that every connector of a kind has beside its own (WEIR_CONNECTOR_*), or, with 0, those at
 * the top of a pipeline file. Ends with a row whose name is NULL; static storage. */
WEIR_API const weir_option *weir_connectors_common(int32_t kind);

#ifdef __cplusplus
}
#endif
#endif
