/* SPDX-License-Identifier: Apache-2.0 */
#include "source_around.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void file_around_done(file_around *around) {
  for (size_t i = 0; i < around->n_folders; i++) free(around->folders[i]);
  for (size_t i = 0; i < around->n; i++) free(around->entries[i].name);
  free(around->folders);
  free(around->entries);
  file_index_done(&around->inodes);
  *around = (file_around){0};
}

void file_around_path(const file_around *around, size_t i, char *path, size_t size) {
  const file_neighbour *entry = &around->entries[i];
  const char *folder = around->folders[entry->folder];
  const char *slash = folder[0] != 0 && folder[strlen(folder) - 1] == '/' ? "" : "/";
  if (strcmp(folder, ".") == 0)
    snprintf(path, size, "%s", entry->name); /* as glob says it */
  else
    snprintf(path, size, "%s%s%s", folder, slash, entry->name);
}

static weir_status no_memory(weir_error *err) {
  return weir_error_set(err, WEIR_E_NOMEM, 0, "no memory for the names in a folder");
}

/* Patterns may overlap: the first `before` folders are those of the patterns before this one. */
static weir_status add_folder(file_around *around, size_t before, const char *path,
                              weir_error *err) {
  for (size_t i = 0; i < before; i++)
    if (strcmp(around->folders[i], path) == 0) return WEIR_OK;
  char **folders =
      realloc(around->folders, (around->n_folders + 1) * sizeof(*around->folders));
  if (folders == NULL) return no_memory(err);
  around->folders = folders;
  folders[around->n_folders] = strdup(path);
  if (folders[around->n_folders] == NULL) return no_memory(err);
  around->n_folders++;
  return WEIR_OK;
}

/* A folder that cannot be read has been refused by whoever listed the files. */
static weir_status add_folders(file_around *around, const char *pattern,
                               weir_error *err) {
  glob_t found = {0};
  weir_status status = WEIR_OK;
  size_t before = around->n_folders;
  const char *slash = strrchr(pattern, '/');
  char *folder = slash == NULL
                     ? strdup(".")
                     : strndup(pattern, (size_t)(slash - pattern) + (slash == pattern));
  if (folder == NULL) return no_memory(err);
  /* a folder's own name may look like a pattern */
  bool there = strpbrk(folder, "*?[{") == NULL || access(folder, F_OK) == 0;
  if (there) status = add_folder(around, before, folder, err);
  if (status != WEIR_OK || strpbrk(folder, "*?[{\\") == NULL) goto out;
  if (glob(folder, GLOB_NOSORT | GLOB_BRACE | GLOB_ONLYDIR, NULL, &found) == GLOB_NOSPACE)
    status = no_memory(err);
  for (size_t i = 0; status == WEIR_OK && i < found.gl_pathc; i++)
    if (!there || strcmp(found.gl_pathv[i], folder) != 0)
      status = add_folder(around, before, found.gl_pathv[i], err);
  globfree(&found);
out:
  free(folder);
  return status;
}

static weir_status add_entry(file_around *around, size_t folder, const struct dirent *d,
                             weir_error *err) {
  if (around->n == around->room) {
    size_t room = around->room ? around->room * 2 : 64;
    file_neighbour *entries = realloc(around->entries, room * sizeof(*entries));
    if (entries == NULL) return no_memory(err);
    around->entries = entries;
    around->room = room;
  }
  file_neighbour entry = {d->d_ino, folder, strdup(d->d_name)};
  if (entry.name == NULL) return no_memory(err);
  around->entries[around->n] = entry;
  return file_index_add(&around->inodes, entry.inode, 0, around->n++, err);
}

static weir_status read_folder(file_around *around, size_t folder, weir_error *err) {
  weir_status status = WEIR_OK;
  DIR *dir = opendir(around->folders[folder]);
  if (dir == NULL) {
    if (errno == ENOENT || errno == ENOTDIR) return WEIR_OK;
    return weir_error_errno(err, errno,
                            "follow: cannot list %s, where rotation would put its files",
                            around->folders[folder]);
  }
  for (;;) {
    errno = 0;
    const struct dirent *d = readdir(dir);
    if (d == NULL) break;
    if (d->d_type != DT_REG && d->d_type != DT_UNKNOWN) continue;
    status = add_entry(around, folder, d, err);
    if (status != WEIR_OK) break;
  }
  if (status == WEIR_OK && errno != 0)
    status = weir_error_errno(err, errno, "cannot list %s", around->folders[folder]);
  closedir(dir);
  return status;
}

weir_status file_around_read(const weir_options *options, file_around *out,
                             weir_error *err) {
  weir_status status = WEIR_OK;
  size_t n = weir_options_count(options, "path");
  for (size_t i = 0; status == WEIR_OK && i < n; i++)
    status = add_folders(out, weir_options_item(options, "path", i), err);
  for (size_t i = 0; status == WEIR_OK && i < out->n_folders; i++)
    status = read_folder(out, i, err);
  file_index_sort(&out->inodes);
  return status;
}

bool file_rotated_from(const char *path, size_t *place, char *name, size_t size) {
  const char *base = strrchr(path, '/');
  size_t first = base == NULL ? 0 : (size_t)(base - path) + 1;
  size_t n = strlen(path);
  if (*place < 2 * (first + 1)) *place = 2 * (first + 1); /* no name is empty */
  for (; *place < 2 * n; ++*place) {
    size_t i = *place / 2;
    if (strchr("._-", path[i]) == NULL || !isdigit((unsigned char)path[i + 1])) continue;
    const char *extension = *place % 2 ? strrchr(path + i + 1, '.') : "";
    size_t end = extension == NULL ? size : strlen(extension) + 1;
    if (i + end > size) continue;
    memcpy(name, path, i);
    memcpy(name + i, extension, end);
    ++*place;
    return true;
  }
  return false;
}
