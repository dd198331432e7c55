/* SPDX-License-Identifier: Apache-2.0 */
/* The process's connectors. A table that was filled is never freed, and a shared object never unloaded:
 * a thread of a retired generation may still run in it. */
#ifndef CONNECTOR_REGISTRY_H
#define CONNECTOR_REGISTRY_H

#include "connector/inside.h"
#include "object/object.h"

typedef struct registry_library {
  struct registry_library *next;
  char *path; /* as first opened, for messages */
  void *
      handle; /* of dlopen; the same for every path of one file. NULL: it could not be opened */
  weir_sink_ops *sinks;
  size_t n_sinks;
  weir_source_ops *sources;
  size_t n_sources;
  const weir_object_ops *const *stores; /* the shared object's own, checked */
  size_t n_stores;
  weir_status status; /* what loading gave, once and for all */
  weir_error err;
} registry_library;

/* Loads the shared object, or finds it loaded: `weir_plugin_init` is called once a process. The error of
 * a failed load is remembered too, except when the file could not be opened. With the registry's lock. */
weir_status registry_load(registry_library **libraries, const char *path,
                          registry_library **out, weir_error *err);

/* Calls `fn` for each folder of $WEIR_PLUGIN_PATH and then <libdir>/weir, until it returns true. */
typedef bool (*registry_folder_fn)(void *ctx, const char *folder);
weir_status registry_folders(registry_folder_fn fn, void *ctx, weir_error *err);

#endif
