/* SPDX-License-Identifier: Apache-2.0 */
/* Shared objects: where they lie, how they are opened, what they must hold. */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "connector/registry.h"

/* A plugin's init function gets services of the process; its connectors get those of their pipeline.
 * Nothing is logged here, since no pipeline is there yet. */
static connector_host *load_host(weir_error *err) {
  static connector_host
      *host; /* with the registry's lock; lives as long as the process */
  if (!host) host = connector_host_new(NULL, err);
  return host;
}

static weir_status load_count_ok(const char *path, size_t n, const void *v,
                                 const char *what, weir_error *err) {
  enum { MOST = 1000 };
  if (n <= MOST && (n == 0 || v)) return WEIR_OK;
  return weir_error_set(err, WEIR_E_NOT_IMPLEMENTED, 0,
                        "%s: weir_plugin_init gave %zu %s%s", path, n, what,
                        v ? "" : " and no array of them");
}

static weir_status load_stores(registry_library *library, const weir_plugin *plugin,
                               weir_error *err) {
  const char *path = library->path;
  BASE_TRY(load_count_ok(path, plugin->n_stores, plugin->stores, "object stores", err));
  for (size_t i = 0; i < plugin->n_stores; i++) {
    if (!plugin->stores[i]) {
      return weir_error_set(err, WEIR_E_NOT_IMPLEMENTED, 0,
                            "%s: table %zu of its object stores is NULL", path, i);
    }
    BASE_TRY(object_ops_check(plugin->stores[i], path, err));
  }
  library->stores = plugin->stores;
  library->n_stores = plugin->n_stores;
  return WEIR_OK;
}

static weir_status load_tables(registry_library *library, const weir_plugin *plugin,
                               weir_error *err) {
  const char *path = library->path;
  BASE_TRY(load_count_ok(path, plugin->n_sinks, plugin->sinks, "sinks", err));
  BASE_TRY(load_count_ok(path, plugin->n_sources, plugin->sources, "sources", err));
  library->sinks = base_calloc(plugin->n_sinks, sizeof(*library->sinks), err);
  library->sources = base_calloc(plugin->n_sources, sizeof(*library->sources), err);
  if (!library->sinks || !library->sources) return WEIR_E_NOMEM;
  for (size_t i = 0; i < plugin->n_sinks + plugin->n_sources; i++) {
    bool is_sink = i < plugin->n_sinks;
    size_t at = is_sink ? i : i - plugin->n_sinks;
    if (!(is_sink ? (const void *)plugin->sinks[at]
                  : (const void *)plugin->sources[at])) {
      return weir_error_set(err, WEIR_E_NOT_IMPLEMENTED, 0,
                            "%s: table %zu of its %s is NULL", path, at,
                            is_sink ? "sinks" : "sources");
    }
    if (is_sink) {
      BASE_TRY(connector_fill_sink(plugin->sinks[at], path, &library->sinks[at], err));
      library->n_sinks++;
    } else {
      BASE_TRY(
          connector_fill_source(plugin->sources[at], path, &library->sources[at], err));
      library->n_sources++;
    }
  }
  BASE_TRY(load_stores(library, plugin, err));
  if (library->n_sinks + library->n_sources + library->n_stores > 0) return WEIR_OK;
  return weir_error_set(err, WEIR_E_NOT_IMPLEMENTED, 0, "%s: it offers no connector",
                        path);
}

static weir_status load_init(registry_library *library, weir_error *err) {
  void *symbol = dlsym(library->handle, "weir_plugin_init");
  weir_plugin_init_fn init = NULL;
  memcpy(&init, &symbol,
         sizeof(init)); /* POSIX: dlsym gives functions too, ISO C has no cast for it */
  if (!init) {
    return weir_error_set(err, WEIR_E_NOT_IMPLEMENTED, 0,
                          "%s is no connector: it exports no weir_plugin_init",
                          library->path);
  }
  connector_host *host = load_host(err);
  if (!host) return WEIR_E_NOMEM;
  weir_plugin plugin = {.struct_size = sizeof(plugin)};
  connector_turn turn;
  connector_turn_enter(&turn, NULL);
  weir_status status =
      init(WEIR_ABI_VERSION, connector_host_get(host), &plugin, &turn.err);
  if (connector_turn_leave(&turn, "weir_plugin_init", status)) {
    return connector_turn_fail(&turn, library->path, err);
  }
  return load_tables(library, &plugin, err);
}

weir_status registry_load(registry_library **libraries, const char *path,
                          registry_library **out, weir_error *err) {
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0, "cannot load connector %s: %s",
                          path, dlerror());
  }
  registry_library *library = *libraries;
  while (library && library->handle != handle) library = library->next;
  if (!library) {
    library = base_calloc(1, sizeof(*library), err);
    char *copy = library ? base_strdup(path, err) : NULL;
    if (!copy) {
      free(library);
      dlclose(handle); /* nothing of it was called yet */
      return WEIR_E_NOMEM;
    }
    library->path = copy;
    library->handle = handle;
    library->next = *libraries;
    *libraries = library;
    library->status = load_init(library, &library->err);
  } else {
    dlclose(handle); /* its count only */
  }
  if (library->status) {
    if (err) *err = library->err;
    return library->status;
  }
  *out = library;
  return WEIR_OK;
}

/* "<folder of libweir.so>/weir": with /usr/lib/<triplet>/libweir.so, /usr/lib/<triplet>/weir. Where that is
 * a file it is the command, in a build tree, which has the connectors beside the two. */
static char *load_own_folder(weir_error *err) {
  Dl_info info = {0};
  const char *(*self)(void) = weir_version;
  void *address = NULL;
  memcpy(&address, &self, sizeof(address));
  if (!dladdr(address, &info) || !info.dli_fname) return base_strdup("", err);
  char *folder = base_dirname(info.dli_fname, err);
  char *out = folder ? base_path_join(folder, "weir", err) : NULL;
  struct stat st = {0};
  if (out && stat(out, &st) == 0 && S_ISREG(st.st_mode)) {
    free(out);
    return folder;
  }
  free(folder);
  return out;
}

weir_status registry_folders(registry_folder_fn fn, void *ctx, weir_error *err) {
  const char *path = getenv("WEIR_PLUGIN_PATH");
  while (path && *path) {
    size_t size = strcspn(path, ":");
    char *folder = size ? base_strndup(path, size, err) : NULL;
    if (size && !folder) return WEIR_E_NOMEM;
    bool done = folder && fn(ctx, folder);
    free(folder);
    if (done) return WEIR_OK;
    path += size;
    if (*path == ':') path++;
  }
  char *own = load_own_folder(err);
  if (!own) return WEIR_E_NOMEM;
  if (*own) fn(ctx, own);
  free(own);
  return WEIR_OK;
}
