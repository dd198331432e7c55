/* SPDX-License-Identifier: Apache-2.0 */
/* Finding a connector by its type, and listing all of them. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weir/connectors.h>

#include "connector/registry.h"

/* Held over everything here, dlopen and a plugin's init included: a plugin must not look for
 * connectors from its init function. */
static pthread_mutex_t registry_mutex = PTHREAD_MUTEX_INITIALIZER;
static registry_library *registry_libraries;
static registry_library *registry_own; /* the in-tree ones, filled at first use */

static weir_status registry_fill_own(weir_error *err) {
  if (registry_own) return WEIR_OK;
  registry_library *own = base_calloc(1, sizeof(*own), err);
  if (!own) return WEIR_E_NOMEM;
  size_t sinks = 0, sources = 0;
  while (connector_builtin_sinks[sinks]) sinks++;
  while (connector_builtin_sources[sources]) sources++;
  own->sinks = base_calloc(sinks, sizeof(*own->sinks), err);
  own->sources = base_calloc(sources, sizeof(*own->sources), err);
  weir_status status = own->sinks && own->sources ? WEIR_OK : WEIR_E_NOMEM;
  for (size_t i = 0; i < sinks && !status; i++) {
    status = connector_fill_sink(connector_builtin_sinks[i], NULL, &own->sinks[i], err);
  }
  for (size_t i = 0; i < sources && !status; i++) {
    status =
        connector_fill_source(connector_builtin_sources[i], NULL, &own->sources[i], err);
  }
  if (status) {
    free(own->sinks);
    free(own->sources);
    free(own);
    return status;
  }
  own->n_sinks = sinks;
  own->n_sources = sources;
  registry_own = own;
  return WEIR_OK;
}

/* One of the three is set. */
typedef struct registry_found {
  const weir_sink_ops *sink;
  const weir_source_ops *source;
  const weir_object_ops *store;
} registry_found;

/* Beside WEIR_CONNECTOR_SOURCE and _SINK, which are connectors that a pipeline names. */
enum { REGISTRY_STORE = 100 };

static bool registry_pick(const registry_library *library, int32_t kind, const char *name,
                          registry_found *out) {
  if (kind == REGISTRY_STORE) {
    for (size_t i = 0; i < library->n_stores; i++) {
      if (strcmp(library->stores[i]->scheme, name) == 0) out->store = library->stores[i];
    }
    return out->store;
  }
  if (kind == WEIR_CONNECTOR_SINK) {
    for (size_t i = 0; i < library->n_sinks; i++) {
      if (!name || strcmp(library->sinks[i].name, name) == 0)
        out->sink = &library->sinks[i];
    }
    return out->sink;
  }
  for (size_t i = 0; i < library->n_sources; i++) {
    if (!name || strcmp(library->sources[i].name, name) == 0)
      out->source = &library->sources[i];
  }
  return out->source;
}

static const char *registry_kind(int32_t kind) {
  return kind == WEIR_CONNECTOR_SINK ? "sink" : "source";
}

/* A path names the shared object, so it must hold one connector of that kind. */
static weir_status registry_by_path(int32_t kind, const char *type, const char *base_dir,
                                    registry_found *out, weir_error *err) {
  registry_library *library = NULL;
  char *path = base_path_join(base_dir && *base_dir ? base_dir : ".", type, err);
  if (!path) return WEIR_E_NOMEM;
  weir_status status = registry_load(&registry_libraries, path, &library, err);
  if (!status) {
    size_t n = kind == WEIR_CONNECTOR_SINK ? library->n_sinks : library->n_sources;
    if (n != 1) {
      status = weir_error_set(
          err, WEIR_E_INVALID_CONFIG, 0,
          "%s offers %zu %ss; a path must lead to exactly one, otherwise put the file's "
          "folder on WEIR_PLUGIN_PATH and use the %s's name as type",
          path, n, registry_kind(kind), registry_kind(kind));
    } else {
      registry_pick(library, kind, NULL, out);
    }
  }
  free(path);
  return status;
}

typedef struct registry_search {
  const char *type;
  int32_t kind;
  registry_found *out;
  weir_status status;
  weir_error *err;
} registry_search;

static bool registry_search_folder(void *ctx, const char *folder) {
  registry_search *search = ctx;
  registry_library *library = NULL;
  char *path = base_format(search->err, "%s/weir-%s.so", folder, search->type);
  if (!path) {
    search->status = WEIR_E_NOMEM;
    return true;
  }
  bool done = false;
  if (access(path, F_OK) == 0) {
    search->status = registry_load(&registry_libraries, path, &library, search->err);
    /* A file that has the other kind only is no reason to stop. */
    done =
        search->status || registry_pick(library, search->kind, search->type, search->out);
  }
  free(path);
  return done;
}

/* Names that a user may have meant: in-tree ones and those of the files on the path. */
typedef struct registry_names {
  char **v;
  size_t n;
  weir_error *err;
} registry_names;

static void registry_names_add(registry_names *names, const char *name, size_t size) {
  char **v = base_realloc(names->v, names->n + 1, sizeof(*v), names->err);
  if (!v) return;
  names->v = v;
  v[names->n] = base_strndup(name, size, names->err);
  if (v[names->n]) names->n++;
}

/* The NAME of "weir-NAME.so"; 0 when the file is called otherwise. */
static size_t registry_file_name(const char *file, const char **name) {
  if (!base_starts_with(file, "weir-") || !base_ends_with(file, ".so")) return 0;
  *name = file + 5;
  size_t size = strlen(file);
  return size > 8 ? size - 8 : 0;
}

static bool registry_names_of_folder(void *ctx, const char *folder) {
  DIR *dir = opendir(folder);
  struct dirent *entry;
  while (dir && (entry = readdir(dir))) {
    const char *name = NULL;
    size_t size = registry_file_name(entry->d_name, &name);
    if (size) registry_names_add(ctx, name, size);
  }
  if (dir) closedir(dir);
  return false;
}

static weir_status registry_unknown(int32_t kind, const char *type, weir_error *err) {
  registry_names names = {0};
  for (size_t i = 0; kind == WEIR_CONNECTOR_SINK && i < registry_own->n_sinks; i++) {
    registry_names_add(&names, registry_own->sinks[i].name,
                       strlen(registry_own->sinks[i].name));
  }
  for (size_t i = 0; kind == WEIR_CONNECTOR_SOURCE && i < registry_own->n_sources; i++) {
    registry_names_add(&names, registry_own->sources[i].name,
                       strlen(registry_own->sources[i].name));
  }
  (void)registry_folders(registry_names_of_folder, &names, NULL);
  const char *nearest = base_nearest_name(type, (const char *const *)names.v, names.n);
  weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                 "there is no %s of type '%s'%s%s%s; 'weir connectors' lists all, and "
                 "weir-%s.so is looked "
                 "for on WEIR_PLUGIN_PATH",
                 registry_kind(kind), type, nearest ? ", did you mean '" : "",
                 nearest ? nearest : "", nearest ? "'?" : "", type);
  for (size_t i = 0; i < names.n; i++) free(names.v[i]);
  free(names.v);
  return WEIR_E_INVALID_CONFIG;
}

static weir_status registry_find_locked(int32_t kind, const char *type,
                                        const char *base_dir, registry_found *out,
                                        weir_error *err) {
  BASE_TRY(registry_fill_own(err));
  if (strchr(type, '/')) return registry_by_path(kind, type, base_dir, out, err);
  if (registry_pick(registry_own, kind, type, out)) return WEIR_OK;
  registry_search search = {.type = type, .kind = kind, .out = out, .err = err};
  BASE_TRY(registry_folders(registry_search_folder, &search, err));
  if (search.status) return search.status;
  return out->sink || out->source ? WEIR_OK : registry_unknown(kind, type, err);
}

static weir_status registry_find(int32_t kind, const char *type, const char *base_dir,
                                 registry_found *out, weir_error *err) {
  if (!type || !*type) {
    return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0, "a %s without a type",
                          registry_kind(kind));
  }
  pthread_mutex_lock(&registry_mutex);
  weir_status status = registry_find_locked(kind, type, base_dir, out, err);
  pthread_mutex_unlock(&registry_mutex);
  return status;
}

weir_status connector_find_sink(const char *type, const char *base_dir,
                                const weir_sink_ops **out, weir_error *err) {
  registry_found found = {0};
  BASE_TRY(registry_find(WEIR_CONNECTOR_SINK, type, base_dir, &found, err));
  *out = found.sink;
  return WEIR_OK;
}

weir_status connector_find_source(const char *type, const char *base_dir,
                                  const weir_source_ops **out, weir_error *err) {
  registry_found found = {0};
  BASE_TRY(registry_find(WEIR_CONNECTOR_SOURCE, type, base_dir, &found, err));
  *out = found.source;
  return WEIR_OK;
}

/* The table for "<scheme>://" locations. */
static weir_status registry_find_store(const char *location, size_t scheme,
                                       const weir_object_ops **out, weir_error *err) {
  registry_found found = {0};
  char *type = base_strndup(location, scheme, err);
  if (!type) return WEIR_E_NOMEM;
  registry_search search = {
      .type = type, .kind = REGISTRY_STORE, .out = &found, .err = err};
  pthread_mutex_lock(&registry_mutex);
  weir_status status = registry_folders(registry_search_folder, &search, err);
  pthread_mutex_unlock(&registry_mutex);
  if (!status) status = search.status;
  if (!status && !found.store) {
    status =
        weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                       "nothing here reads and writes %s:// locations: weir-%s.so is "
                       "neither on WEIR_PLUGIN_PATH nor beside weir's library; "
                       "install the package weir-%s, or name a folder",
                       type, type, type);
  }
  free(type);
  *out = found.store;
  return status;
}

weir_status weir_object_store_open(const char *location, const weir_options *options,
                                   weir_object_store **out, weir_error *err) {
  const weir_object_ops *ops = &object_local_ops;
  const char *rest = location;
  size_t scheme = strspn(location, "abcdefghijklmnopqrstuvwxyz0123456789+.-");
  if (scheme && base_starts_with(location + scheme, "://")) {
    rest = location + scheme + 3;
    if (!base_starts_with(location, "file://")) {
      BASE_TRY(registry_find_store(location, scheme, &ops, err));
    }
  }
  return object_store_new(ops, location, rest, options, out, err);
}

/* ---- the list --------------------------------------------------------------------------------- */

typedef struct registry_list {
  weir_connector_info *v;
  size_t n, room;
  char **texts; /* paths and problems that the entries point to */
  size_t n_texts;
  weir_status status;
  weir_error *err;
} registry_list;

static char *registry_list_text(registry_list *list, char *text) {
  char **texts =
      text ? base_realloc(list->texts, list->n_texts + 1, sizeof(*texts), list->err)
           : NULL;
  if (!texts) {
    free(text);
    list->status = WEIR_E_NOMEM;
    return NULL;
  }
  list->texts = texts;
  return texts[list->n_texts++] = text;
}

static void registry_list_add(registry_list *list, const weir_connector_info *info) {
  if (list->n == list->room) {
    size_t room = list->room ? 2 * list->room : 16;
    weir_connector_info *v = base_realloc(list->v, room, sizeof(*v), list->err);
    if (!v) {
      list->status = WEIR_E_NOMEM;
      return;
    }
    list->v = v;
    list->room = room;
  }
  list->v[list->n] = *info;
  list->v[list->n++].struct_size = sizeof(*info);
}

static void registry_list_library(registry_list *list, const registry_library *library,
                                  const char *origin) {
  for (size_t i = 0; i < library->n_sources; i++) {
    const weir_source_ops *ops = &library->sources[i];
    weir_connector_info info = {.kind = WEIR_CONNECTOR_SOURCE,
                                .name = ops->name,
                                .text = ops->text,
                                .options = ops->options,
                                .origin = origin};
    registry_list_add(list, &info);
  }
  for (size_t i = 0; i < library->n_sinks; i++) {
    const weir_sink_ops *ops = &library->sinks[i];
    weir_connector_info info = {.kind = WEIR_CONNECTOR_SINK,
                                .name = ops->name,
                                .text = ops->text,
                                .options = ops->options,
                                .origin = origin};
    registry_list_add(list, &info);
  }
}

/* A folder that is named twice shows its files once. */
static bool registry_listed(const registry_list *list, const char *origin) {
  for (size_t i = 0; i < list->n; i++) {
    if (list->v[i].origin && strcmp(list->v[i].origin, origin) == 0) return true;
  }
  return false;
}

static void registry_list_file(registry_list *list, const char *folder,
                               const char *file) {
  registry_library *library = NULL;
  weir_error why = {0};
  char *path = registry_list_text(list, base_path_join(folder, file, list->err));
  if (!path) return;
  if (!registry_load(&registry_libraries, path, &library, &why)) {
    if (!registry_listed(list, library->path)) {
      registry_list_library(list, library, library->path);
    }
  } else if (!registry_listed(list, path)) {
    const char *name = NULL;
    size_t size = registry_file_name(file, &name);
    weir_connector_info info = {.origin = path};
    info.name = registry_list_text(list, base_strndup(name, size, list->err));
    info.problem = registry_list_text(list, base_strdup(why.message, list->err));
    if (info.name && info.problem) registry_list_add(list, &info);
  }
}

static bool registry_list_folder(void *ctx, const char *folder) {
  registry_list *list = ctx;
  DIR *dir = opendir(folder);
  struct dirent *entry;
  while (dir && !list->status && (entry = readdir(dir))) {
    const char *name = NULL;
    if (registry_file_name(entry->d_name, &name))
      registry_list_file(list, folder, entry->d_name);
  }
  if (dir) closedir(dir);
  return list->status;
}

/* Sources, sinks, then what cannot be used; the library's own first; by name. */
static int registry_list_compare(const void *left, const void *right) {
  const weir_connector_info *a = left, *b = right;
  if (!a->problem != !b->problem) return a->problem ? 1 : -1;
  if (a->kind != b->kind) return a->kind - b->kind;
  if (!a->origin != !b->origin) return a->origin ? 1 : -1;
  int order = strcmp(a->name, b->name);
  return order || !a->origin ? order : strcmp(a->origin, b->origin);
}

weir_status weir_connectors_each(weir_connector_fn fn, void *ctx, weir_error *err) {
  registry_list list = {.err = err};
  pthread_mutex_lock(&registry_mutex);
  list.status = registry_fill_own(err);
  if (!list.status) {
    registry_list_library(&list, registry_own, NULL);
    weir_status status = registry_folders(registry_list_folder, &list, err);
    if (status) list.status = status;
  }
  pthread_mutex_unlock(&registry_mutex);
  if (list.n) qsort(list.v, list.n, sizeof(*list.v), registry_list_compare);
  for (size_t i = 0; i < list.n && !list.status; i++) list.status = fn(ctx, &list.v[i]);
  for (size_t i = 0; i < list.n_texts; i++) free(list.texts[i]);
  free(list.texts);
  free(list.v);
  return list.status;
}
