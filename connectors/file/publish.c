/* SPDX-License-Identifier: Apache-2.0 */
#include "publish.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <weir/fault.h>

/* ---- folders below `path` ----------------------------------------------------------------------- */

/* A manifest's files by folder, and the folder that is open at the moment: `path` itself or one below. */
typedef struct publisher {
  const file_place_folders *folders;
  const file_manifest *m;
  const file_data_file **files;
  const weir_ledger *resolved; /* NULL: every file must be there */
  const char *opened;          /* name of `below`; NULL: none is open */
  file_disk_folder below;
} publisher;

static int by_folder(const void *a, const void *b) {
  const file_data_file *x = *(const file_data_file *const *)a;
  const file_data_file *y = *(const file_data_file *const *)b;
  int order = strcmp(x->folder ? x->folder : "", y->folder ? y->folder : "");
  return order ? order : (x > y) - (x < y);
}

static weir_status publisher_init(publisher *p, const file_place_folders *folders,
                                  const file_manifest *m, weir_error *err) {
  *p = (publisher){.folders = folders, .m = m, .below = {.fd = -1}};
  p->files = calloc(m->files.n + 1, sizeof(*p->files));
  if (!p->files) return weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
  for (size_t i = 0; i < m->files.n; i++) p->files[i] = &m->files.v[i];
  qsort(p->files, m->files.n, sizeof(*p->files), by_folder);
  return WEIR_OK;
}

static void publisher_done(publisher *p) {
  file_disk_folder_done(&p->below);
  free(p->files);
}

static bool first_of_folder(const publisher *p, size_t i) {
  const char *before = i ? p->files[i - 1]->folder : NULL, *folder = p->files[i]->folder;
  return !i || (folder ? !before || strcmp(before, folder) != 0 : before != NULL);
}

/* The folder that `path` is led to by the first `size` bytes of `name`, part by part and through no link, so
 * that it lies below `path`. `make`: what is missing is made. */
static weir_status open_below(const file_disk_folder *path, const char *name, size_t size,
                              bool make, file_disk_folder *out, weir_error *err) {
  char *text = file_disk_format(err, "%s/%.*s", path->path, (int)size, name);
  if (!text) return WEIR_E_NOMEM;
  int at = path->fd, failed = 0;
  for (char *part = text + strlen(path->path) + 1; part && !failed;) {
    char *slash = strchr(part, '/');
    if (slash) *slash = 0;
    if (make && mkdirat(at, part, 0777) && errno != EEXIST) failed = errno;
    int next =
        failed ? -1 : openat(at, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (!failed && next < 0) failed = errno;
    if (at != path->fd) close(at);
    at = next;
    if (slash) *slash = '/';
    part = slash ? slash + 1 : NULL;
  }
  if (!failed) {
    *out = (file_disk_folder){.fd = at, .path = text};
    return WEIR_OK;
  }
  weir_status status =
      file_disk_error(err, failed, make ? "make folder" : "open folder", text, NULL);
  free(text);
  return status;
}

/* The folder of a file. */
static weir_status enter(publisher *p, const file_data_file *file,
                         const file_disk_folder **out, weir_error *err) {
  if (!file->folder) {
    *out = &p->folders->path;
    return WEIR_OK;
  }
  if (!p->opened || strcmp(p->opened, file->folder) != 0) {
    file_disk_folder_done(&p->below);
    p->opened = NULL;
    FILE_TRY(open_below(&p->folders->path, file->folder, strlen(file->folder), false,
                        &p->below, err));
    p->opened = file->folder;
  }
  *out = &p->below;
  return WEIR_OK;
}

/* Syncs each folder above those of files i - 1 and i that only the latter has. */
static weir_status sync_above(const publisher *p, size_t i, weir_error *err) {
  const char *folder = p->files[i]->folder;
  const char *before = i && p->files[i - 1]->folder ? p->files[i - 1]->folder : "";
  for (const char *slash = folder; (slash = strchr(slash, '/')); slash++) {
    size_t size = (size_t)(slash - folder);
    file_disk_folder above = {.fd = -1};
    if (strncmp(before, folder, size + 1) == 0) continue;
    FILE_TRY(open_below(&p->folders->path, folder, size, false, &above, err));
    weir_status status = file_disk_folder_sync(&above, err);
    file_disk_folder_done(&above);
    if (status) return status;
  }
  return WEIR_OK;
}

/* F12a. All folders are there, durably, before a file is moved into one: a move may outlive a power cut that
 * its folder does not. A folder that is there already may have been made by someone who was killed before the
 * sync. */
static weir_status make_folders(const publisher *p, weir_error *err) {
  size_t n = p->m->files.n;
  bool any = false;
  for (size_t i = 0; i < n; i++) {
    const char *folder = p->files[i]->folder;
    file_disk_folder made = {.fd = -1};
    if (!folder || !first_of_folder(p, i)) continue;
    FILE_TRY(open_below(&p->folders->path, folder, strlen(folder), true, &made, err));
    file_disk_folder_done(&made);
    any = true;
  }
  if (!any) return WEIR_OK;
  if (WEIR_FAULT("file.folders.made"))
    return file_disk_error(err, EIO, "sync", p->folders->path.path, NULL);
  FILE_TRY(file_disk_folder_sync(&p->folders->path, err));
  for (size_t i = 0; i < n; i++) {
    if (p->files[i]->folder && first_of_folder(p, i)) FILE_TRY(sync_above(p, i, err));
  }
  if (WEIR_FAULT("file.folders.synced"))
    return file_disk_error(err, EIO, "sync", p->folders->path.path, NULL);
  return WEIR_OK;
}

/* ---- files -------------------------------------------------------------------------------------- */

static weir_status other_content(const file_disk_folder *folder,
                                 const file_data_file *file, uint64_t size,
                                 weir_error *err) {
  return weir_error_set(
      err, WEIR_E_CORRUPT, 0,
      "'%s/%s' (%" PRIu64 " bytes) is not the file that weir wrote (%" PRIu64
      " bytes): it was changed or replaced; bring it back or move it away",
      folder->path, file->name, size, file->bytes);
}

/* Whether the published file is there, and is that file. */
static weir_status check_published(const file_disk_folder *folder,
                                   const file_data_file *file, bool *found,
                                   weir_error *err) {
  uint8_t sha256[DISK_SHA256_SIZE];
  uint64_t size = 0;
  FILE_TRY(file_disk_stat(folder, file->name, found, &size, err));
  if (!*found) return WEIR_OK;
  if (size != file->bytes) return other_content(folder, file, size, err);
  weir_status status = file_disk_digest(folder, file->name, &size, sha256, err);
  if (status == WEIR_E_NOT_FOUND) {
    *found = false;
    return WEIR_OK;
  }
  if (status) return status;
  if (size != file->bytes || memcmp(sha256, file->sha256, sizeof(sha256)) != 0) {
    return other_content(folder, file, size, err);
  }
  return WEIR_OK;
}

static weir_status gone(const file_place_folders *folders, const file_data_file *file,
                        weir_error *err) {
  return weir_error_set(err, WEIR_E_CORRUPT, 0,
                        "file '%s' is neither staged in '%s' nor published in '%s%s%s': "
                        "someone has removed "
                        "%" PRIu64
                        " rows before weir could publish them. Bring it back; if nobody "
                        "can, see `weir resolve`",
                        file->name, folders->staged.path, folders->path.path,
                        file->folder ? "/" : "", file->folder ? file->folder : "",
                        file->rows);
}

static weir_status check_file(publisher *p, const file_data_file *file, weir_error *err) {
  const file_disk_folder *folder = NULL;
  bool found = false;
  uint64_t size = 0;
  FILE_TRY(file_disk_stat(&p->folders->staged, file->name, &found, &size, err));
  if (found && size != file->bytes)
    return other_content(&p->folders->staged, file, size, err);
  if (found) return WEIR_OK;
  weir_status status = enter(p, file, &folder, err);
  if (!status) status = check_published(folder, file, &found, err);
  if (status && status != WEIR_E_NOT_FOUND) return status;
  return found ? WEIR_OK : gone(p->folders, file, err);
}

weir_status file_publish_check_files(const file_place_folders *folders,
                                     const file_manifest *m, weir_error *err) {
  publisher p;
  weir_status status = publisher_init(&p, folders, m, err);
  for (size_t i = 0; !status && i < m->files.n; i++)
    status = check_file(&p, p.files[i], err);
  publisher_done(&p);
  return status;
}

static bool is_resolved(const publisher *p, const file_data_file *file) {
  file_data_name name = {0};
  return p->resolved && file_data_name_parse(file->name, &name) &&
         file_audit_resolved(p->resolved, name.attempt);
}

/* F13 for one file. Every outcome that another owner at the same step can cause is the same success. */
static weir_status publish_file(publisher *p, const file_data_file *file,
                                weir_error *err) {
  const file_disk_folder *staged = &p->folders->staged, *folder = NULL;
  bool found = false;
  uint64_t size = 0;
  FILE_TRY(enter(p, file, &folder, err));
  FILE_TRY(file_disk_stat(staged, file->name, &found, &size, err));
  if (found && size != file->bytes) return other_content(staged, file, size, err);
  if (found) {
    weir_status status = file_disk_move(staged, folder, file->name, err);
    if (status != WEIR_E_EXISTS && status != WEIR_E_NOT_FOUND) return status;
  }
  FILE_TRY(check_published(folder, file, &found, err));
  if (!found && is_resolved(p, file)) return WEIR_OK;
  if (!found) return gone(p->folders, file, err);
  /* Under both names: a move by link that was cut off. */
  return file_disk_remove(staged, file->name, err);
}

/* Files that are gone are no error once the manifest was done: what is published belongs to the user,
 * who may have moved it on. */
static bool settled_meanwhile(const file_disk_folder *commits, const file_manifest *m) {
  file_manifest newest = {0};
  if (file_commits_is_done(commits, m)) return true;
  if (file_commits_newest(commits, &newest, NULL)) return false;
  bool later = newest.sequence > m->sequence;
  file_manifest_done(&newest);
  return later;
}

/* F13 and F14. `staged/` may forget that the names are gone: that is a second name for a published file, which
 * no manifest makes anyone publish again. */
static weir_status publish_files(publisher *p, weir_error *err) {
  size_t n = p->m->files.n;
  for (size_t i = 0; i < n; i++) {
    FILE_TRY(publish_file(p, p->files[i], err));
    if (WEIR_FAULT("file.published.one")) {
      return file_disk_error(err, EIO, "publish", p->folders->path.path,
                             p->files[i]->name);
    }
  }
  for (size_t i = 0; i < n; i++) {
    const file_disk_folder *folder = NULL;
    if (!first_of_folder(p, i)) continue;
    FILE_TRY(enter(p, p->files[i], &folder, err));
    FILE_TRY(file_disk_folder_sync(folder, err));
  }
  return WEIR_OK;
}

static weir_status roll_forward(const file_place_folders *folders, const file_manifest *m,
                                bool durable, const weir_ledger *resolved,
                                weir_error *err) {
  publisher p;
  if (!m->sequence || file_commits_is_done(&folders->commits, m)) return WEIR_OK;
  /* F8: whoever linked the manifest may have been killed before it was durable. */
  if (!durable) FILE_TRY(file_disk_folder_sync(&folders->commits, err));
  weir_status status = publisher_init(&p, folders, m, err);
  p.resolved = resolved;
  if (!status) status = make_folders(&p, err);
  if (!status) status = publish_files(&p, err);
  publisher_done(&p);
  if (status == WEIR_E_CORRUPT && settled_meanwhile(&folders->commits, m)) return WEIR_OK;
  if (status) return status;
  if (WEIR_FAULT("file.published.synced")) {
    return file_disk_error(err, EIO, "sync", folders->path.path, NULL);
  }
  return file_commits_mark_done(&folders->commits, m, err); /* F15 */
}

weir_status file_publish_roll_forward(const file_place_folders *folders,
                                      const file_manifest *m, bool durable,
                                      weir_error *err) {
  return roll_forward(folders, m, durable, NULL, err);
}

weir_status file_publish_give_up(const file_place_folders *folders,
                                 const file_manifest *m, const weir_ledger *resolved,
                                 weir_error *err) {
  FILE_TRY(roll_forward(folders, m, false, resolved, err));
  return file_disk_folder_sync(&folders->commits, err);
}
