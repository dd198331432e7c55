/* SPDX-License-Identifier: Apache-2.0 */
#include "place.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <weir/fault.h>

#include "claim.h"
#include "records.h"

#define OWNER_RECORD "owner.json"
#define NAMESPACE_RECORD "namespace.json"

void file_place_done(file_place *p) {
  free(p->path);
  free(p->root);
  p->path = p->root = NULL;
}

static bool within_weir_folder(const char *path) {
  for (const char *at = path; (at = strstr(at, "/.weir")); at += 6) {
    if (at[6] == '/' || at[6] == 0) return true;
  }
  return false;
}

weir_status file_place_find(const char *configured, file_place *out, weir_error *err) {
  struct stat info;
  file_place p = {0};
  p.path = realpath(configured, NULL);
  if (!p.path) {
    int failed = errno;
    if (failed == ENOTDIR) {
      return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                            "'%s' cannot be a folder: a part of it is a file",
                            configured);
    }
    return file_disk_error(err, failed, "find folder", configured, NULL);
  }
  const char *slash = strrchr(p.path, '/');
  if (stat(p.path, &info) || !S_ISDIR(info.st_mode)) {
    weir_error_set(
        err, WEIR_E_INVALID_CONFIG, 0,
        "'%s' is a file; `path` must name a folder, which is made when it is missing",
        p.path);
  } else if (!slash[1]) {
    weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                   "`path` is '/', which has no place beside it for staged files; name a "
                   "folder in it");
  } else if (within_weir_folder(p.path)) {
    weir_error_set(
        err, WEIR_E_INVALID_CONFIG, 0,
        "'%s' lies within a .weir folder, which is weir's own; name another one", p.path);
  } else {
    p.root =
        file_disk_format(err, "%.*s/.weir/%s", (int)(slash - p.path), p.path, slash + 1);
    if (!p.root) {
      file_place_done(&p);
      return WEIR_E_NOMEM;
    }
    *out = p;
    return WEIR_OK;
  }
  file_place_done(&p);
  return WEIR_E_INVALID_CONFIG;
}

/* Appends `part` to the absolute path `at`, as mkdir -p and a look-up would come there. */
static void append_part(char *at, const char *part, size_t size) {
  size_t used = strlen(at);
  if (size == 0 || (size == 1 && *part == '.')) return;
  if (size == 2 && part[0] == '.' && part[1] == '.') {
    char *slash = strrchr(at, '/');
    if (slash) *slash = 0;
    return;
  }
  at[used] = '/';
  memcpy(at + used + 1, part, size);
  at[used + 1 + size] = 0;
}

char *file_place_name(const char *configured, weir_error *err) {
  size_t size = strlen(configured), known = size;
  char *front = file_disk_format(err, "%s", configured), *out = NULL, *real = NULL;
  if (!front) return NULL;
  /* The longest part from the left that is there, then what is missing of the rest. */
  while (!(real = realpath(*front ? front : "/", NULL)) && known > 0) {
    while (known > 0 && front[known - 1] == '/') known--;
    while (known > 0 && front[known - 1] != '/') known--;
    front[known] = 0;
  }
  if (!real) {
    file_disk_error(err, errno, "find folder", configured, NULL);
    goto out;
  }
  size_t real_size = strcmp(real, "/") == 0 ? 0 : strlen(real);
  out = malloc(real_size + size - known + 2);
  if (!out) {
    weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
    goto out;
  }
  memcpy(out, real, real_size);
  out[real_size] = 0;
  for (const char *part = configured + known; *part;) {
    size_t length = strcspn(part, "/");
    append_part(out, part, length);
    part += length;
    part += strspn(part, "/");
  }
out:
  free(real);
  free(front);
  return out;
}

static char *namespace_path(const file_place *p, const weir_namespace *ns,
                            weir_error *err) {
  char key[WEIR_NAMESPACE_KEY_SIZE];
  weir_namespace_key(ns, key);
  if (!*key) {
    weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
    return NULL;
  }
  return file_disk_join(p->root, key, err);
}

static weir_status open_within(const char *dir, const char *name, file_disk_folder *out,
                               weir_error *err) {
  char *path = file_disk_join(dir, name, err);
  if (!path) return WEIR_E_NOMEM;
  weir_status status = file_disk_folder_open(path, out, err);
  free(path);
  return status;
}

weir_status file_place_folders_open(const file_place *p, const weir_namespace *ns,
                                    file_place_folders *out, weir_error *err) {
  weir_status status = WEIR_OK;
  file_place_folders folders = {0};
  char *dir = namespace_path(p, ns, err);
  if (!dir) return WEIR_E_NOMEM;
  FILE_GOTO(status, file_disk_folder_open(p->path, &folders.path, err));
  FILE_GOTO(status, file_disk_folder_open(dir, &folders.ns, err));
  FILE_GOTO(status, open_within(dir, "staged", &folders.staged, err));
  FILE_GOTO(status, open_within(dir, "commits", &folders.commits, err));
  *out = folders;
  memset(&folders, 0, sizeof(folders));
out:
  file_place_folders_done(&folders);
  free(dir);
  return status;
}

void file_place_folders_done(file_place_folders *folders) {
  file_disk_folder_done(&folders->path);
  file_disk_folder_done(&folders->ns);
  file_disk_folder_done(&folders->staged);
  file_disk_folder_done(&folders->commits);
}

/* ---- records ------------------------------------------------------------------------------------ */

static weir_status owner_matches(const file_owner_record *record,
                                 const weir_namespace *ns, const file_place *p,
                                 weir_error *err) {
  if (memcmp(record->identity, ns->identity, sizeof(ns->identity)) == 0 &&
      strcmp(record->sink_id, ns->sink_id) == 0) {
    return WEIR_OK;
  }
  return weir_error_set(err, WEIR_E_INVALID_CONFIG, 0,
                        "folder '%s' belongs to sink '%s' of pipeline '%s', and two "
                        "sinks cannot publish into one folder: "
                        "give sink '%s' of pipeline '%s' a `path` of its own; or, if the "
                        "other one is gone for good, "
                        "remove '%s/" OWNER_RECORD "'",
                        p->path, record->sink_id, record->pipeline, ns->sink_id,
                        ns->pipeline, p->root);
}

/* A record that must be this sink's; created when it is missing, which *made says. */
static weir_status take_record(int kind, const file_disk_folder *folder,
                               const file_place *p, const weir_namespace *ns,
                               const weir_host *host, file_owner_record *out, bool *made,
                               weir_error *err) {
  const char *name = kind == RECORD_OWNER ? OWNER_RECORD : NAMESPACE_RECORD;
  file_owner_record record = {0};
  weir_status status = file_records_read(kind, folder, name, &record, err);
  if (status == WEIR_E_NOT_FOUND) {
    status = file_records_create(kind, folder, name, ns, host, err);
    *made = !status;
    /* Not found: swept by another one, who has found a record. */
    if (status && status != WEIR_E_EXISTS && status != WEIR_E_NOT_FOUND) return status;
    status = file_records_read(kind, folder, name, &record, err);
  }
  if (status) return status;
  status = owner_matches(&record, ns, p, err);
  if (!status && kind == RECORD_NAMESPACE &&
      memcmp(record.deployment, ns->deployment, WEIR_UUID_SIZE) != 0) {
    status = weir_error_set(err, WEIR_E_CORRUPT, 0,
                            "'%s/" NAMESPACE_RECORD
                            "' names another deployment than its folder does",
                            folder->path);
  }
  /* The record is there, so nobody needs a temporary file any more, but claims, which are tried again. */
  if (!status) file_records_sweep(folder);
  if (status) {
    file_record_done(&record);
    return status;
  }
  *out = record;
  return WEIR_OK;
}

/* ---- preparation -------------------------------------------------------------------------------- */

/* A target within a target: the outer one's readers would meet the inner one's staged files. */
static weir_status refuse_nested(const file_place *p, weir_error *err) {
  weir_status status = WEIR_OK;
  char *below = file_disk_join(p->path, ".weir", err);
  char *outer = file_disk_format(err, "%s", p->path);
  if (!below || !outer) {
    status = WEIR_E_NOMEM;
    goto out;
  }
  if (access(below, F_OK) == 0) {
    status = weir_error_set(
        err, WEIR_E_INVALID_CONFIG, 0,
        "a folder within '%s' is a sink's target already (there is '%s'); targets "
        "cannot lie within each other",
        p->path, below);
    goto out;
  }
  for (char *slash; !status && (slash = strrchr(outer, '/')) != outer;) {
    *slash = 0;
    const char *name = strrchr(outer, '/');
    char *record = file_disk_format(err, "%.*s/.weir/%s/" OWNER_RECORD,
                                    (int)(name - outer), outer, name + 1);
    if (!record) status = WEIR_E_NOMEM;
    if (record && access(record, F_OK) == 0) {
      status = weir_error_set(
          err, WEIR_E_INVALID_CONFIG, 0,
          "'%s' lies within '%s', which is a sink's target already (there is '%s'); "
          "targets cannot lie within each other",
          p->path, outer, record);
    }
    free(record);
  }
out:
  free(outer);
  free(below);
  return status;
}

/* Syncs `path` and the folders above it, up to the root of the file system. One that may not be read was
 * not made by weir, nor was any above it. */
static weir_status sync_upwards(const char *path, weir_error *err) {
  weir_status status = WEIR_OK;
  dev_t device = 0;
  struct stat info;
  char *at = file_disk_format(err, "%s", path);
  if (!at) return WEIR_E_NOMEM;
  for (bool first = true;; first = false) {
    file_disk_folder folder = {.fd = -1};
    const char *name = *at ? at : "/";
    if (!first && (access(name, R_OK) || stat(name, &info) || info.st_dev != device))
      break;
    status = file_disk_folder_open(name, &folder, err);
    if (!status && first && !fstat(folder.fd, &info)) device = info.st_dev;
    if (!status) status = file_disk_folder_sync(&folder, err);
    file_disk_folder_done(&folder);
    char *slash = strrchr(at, '/');
    if (status || !slash) break;
    *slash = 0;
  }
  free(at);
  return status;
}

/* Makes durable that `path` exists: its owner may have removed it, and prepare has made it again. */
static weir_status sync_parent(const file_place *p, weir_error *err) {
  file_disk_folder parent = {.fd = -1};
  char *name = file_disk_join(p->path, "..", err);
  if (!name) return WEIR_E_NOMEM;
  weir_status status = file_disk_folder_open(name, &parent, err);
  if (!status) status = file_disk_folder_sync(&parent, err);
  file_disk_folder_done(&parent);
  free(name);
  return status;
}

/* Whether files of folder `from` can be moved into `path`, found out without making any: a rename of a
 * name that does not exist fails, but the kernel compares mounts (EXDEV) and asks for a writable file
 * system (EROFS) before it looks for the name. */
static weir_status can_publish(const file_place *p, const char *from, weir_error *err) {
  static const char probe[] = ".weir-probe";
  weir_status status = WEIR_OK;
  struct stat here, there;
  file_disk_folder path = {.fd = -1}, origin = {.fd = -1};
  FILE_GOTO(status, file_disk_folder_open(p->path, &path, err));
  FILE_GOTO(status, file_disk_folder_open(from, &origin, err));
  int failed = renameat(origin.fd, probe, path.fd, probe) ? errno : 0;
  if (fstat(origin.fd, &here) || fstat(path.fd, &there)) {
    status = file_disk_error(err, errno, "look at", p->path, NULL);
  } else if (failed == EXDEV || here.st_dev != there.st_dev) {
    status = weir_error_set(
        err, WEIR_E_INVALID_CONFIG, 0,
        "'%s' is on another mount than '%s', so that files staged there cannot be moved "
        "into it; name a folder inside it",
        p->path, from);
  } else if (failed == EROFS) {
    status = file_disk_error(err, failed, "write to folder", p->path, NULL);
  } else if (faccessat(path.fd, ".", W_OK | X_OK, AT_EACCESS)) {
    status = file_disk_error(err, errno, "write to folder", p->path, NULL);
  }
out:
  file_disk_folder_done(&origin);
  file_disk_folder_done(&path);
  return status;
}

/* Before anything is made: the folder that `path` is in. */
static weir_status can_stage_beside(const file_place *p, weir_error *err) {
  char *parent =
      file_disk_format(err, "%.*s", (int)(strrchr(p->path, '/') - p->path + 1), p->path);
  if (!parent) return WEIR_E_NOMEM;
  weir_status status = can_publish(p, parent, err);
  free(parent);
  return status;
}

/* F3 and F4. The record comes last, so where it is, all above it is durable; only its own name, and those
 * beside it, may not be yet, when the process that linked it was killed there. */
static weir_status prepare_namespace(const file_place *p, const weir_namespace *ns,
                                     const weir_host *host, weir_error *err) {
  weir_status status = WEIR_OK;
  file_place_folders folders = {0};
  file_owner_record record = {0};
  bool made = false;
  char *dir = namespace_path(p, ns, err);
  char *staged = dir ? file_disk_join(dir, "staged", err) : NULL;
  char *commits = dir ? file_disk_join(dir, "commits", err) : NULL;
  if (!staged || !commits) {
    status = WEIR_E_NOMEM;
    goto out;
  }
  FILE_GOTO(status, file_disk_mkdirs(commits, 0777, err));
  FILE_GOTO(status, file_disk_mkdirs(staged, 0700, err));
  FILE_GOTO(status, file_place_folders_open(p, ns, &folders, err));
  status = faccessat(folders.ns.fd, NAMESPACE_RECORD, F_OK, 0)
               ? sync_upwards(p->root, err)
               : sync_parent(p, err);
  if (status) goto out;
  if (WEIR_FAULT("file.namespace.folders")) {
    status = file_disk_error(err, EIO, "create", dir, NAMESPACE_RECORD);
    goto out;
  }
  FILE_GOTO(status,
            take_record(RECORD_NAMESPACE, &folders.ns, p, ns, host, &record, &made, err));
  status = file_disk_folder_sync(&folders.ns, err);
out:
  file_record_done(&record);
  file_place_folders_done(&folders);
  free(commits);
  free(staged);
  free(dir);
  return status;
}

/* F2. Another sink may have taken a folder above or below while this one looked for it; both look again
 * once their records are there, so at least one of two sees the other, and takes its record back. */
static weir_status take_folder(const file_disk_folder *root, const file_place *p,
                               const weir_namespace *ns, const weir_host *host,
                               file_owner_record *out, weir_error *err) {
  bool made = false;
  FILE_TRY(take_record(RECORD_OWNER, root, p, ns, host, out, &made, err));
  if (WEIR_FAULT("file.owner.taken"))
    return file_disk_error(err, EIO, "read", p->root, OWNER_RECORD);
  weir_status status = refuse_nested(p, err);
  if (status == WEIR_E_INVALID_CONFIG && made)
    (void)file_disk_remove(root, OWNER_RECORD, NULL);
  return status;
}

weir_status file_place_prepare(const char *configured, const weir_namespace *ns,
                               const weir_host *host,
                               uint8_t folder_id[WEIR_INCARNATION_SIZE],
                               weir_error *err) {
  weir_status status = WEIR_OK;
  file_place p = {0};
  file_disk_folder root = {.fd = -1};
  file_owner_record record = {0};
  FILE_GOTO(status, file_disk_mkdirs(configured, 0777, err));
  FILE_GOTO(status, file_place_find(configured, &p, err));
  FILE_GOTO(status, refuse_nested(&p, err));
  FILE_GOTO(status, can_stage_beside(&p, err));
  FILE_GOTO(status, file_disk_mkdirs(p.root, 0777, err)); /* F1 */
  FILE_GOTO(status,
            can_publish(&p, p.root, err)); /* someone may have put .weir elsewhere */
  FILE_GOTO(status, file_disk_folder_open(p.root, &root, err));
  if (WEIR_FAULT("file.owner.folders")) {
    status = file_disk_error(err, EIO, "create", p.root, OWNER_RECORD);
    goto out;
  }
  FILE_GOTO(status, take_folder(&root, &p, ns, host, &record, err));
  FILE_GOTO(status, file_claim_take(&root, ns, host, err)); /* K1 to K4 */
  FILE_GOTO(status, prepare_namespace(&p, ns, host, err));
  memcpy(folder_id, record.folder, sizeof(record.folder));
out:
  file_record_done(&record);
  file_disk_folder_done(&root);
  file_place_done(&p);
  return status;
}

weir_status file_place_check(const char *configured, const weir_namespace *ns,
                             weir_error *err) {
  file_place p = {0};
  file_disk_folder root = {.fd = -1};
  file_owner_record record = {0};
  weir_status status = file_place_find(configured, &p, err);
  if (!status) status = refuse_nested(&p, err);
  if (!status) status = file_disk_folder_open(p.root, &root, err);
  if (!status)
    status = file_records_read(RECORD_OWNER, &root, OWNER_RECORD, &record, err);
  if (!status) status = owner_matches(&record, ns, &p, err);
  if (!status) status = file_claim_look(&root, ns, err);
  file_record_done(&record);
  file_disk_folder_done(&root);
  file_place_done(&p);
  return status == WEIR_E_NOT_FOUND ? WEIR_OK : status;
}

/* ---- other namespaces --------------------------------------------------------------------------- */

typedef struct each_namespace {
  const file_place *p;
  file_place_each each;
  void *ctx;
} each_namespace;

static bool is_key_of(const char *name, const file_owner_record *record) {
  char key[WEIR_NAMESPACE_KEY_SIZE];
  weir_namespace ns = {.struct_size = sizeof(ns)};
  ns.pipeline = record->pipeline;
  ns.sink_id = record->sink_id;
  memcpy(ns.identity, record->identity, sizeof(ns.identity));
  memcpy(ns.deployment, record->deployment, sizeof(ns.deployment));
  weir_namespace_key(&ns, key);
  return strcmp(key, name) == 0;
}

static weir_status visit(void *ctx, const char *name, weir_error *err) {
  const each_namespace *walk = ctx;
  weir_status status = WEIR_OK;
  file_disk_folder folder = {.fd = -1}, commits = {.fd = -1};
  file_owner_record record = {0};
  if (strncmp(name, "weir-", 5) != 0) return WEIR_OK;
  FILE_GOTO(status, open_within(walk->p->root, name, &folder, err));
  status = file_records_read(RECORD_NAMESPACE, &folder, NAMESPACE_RECORD, &record, err);
  if (status == WEIR_E_NOT_FOUND) {
    status = WEIR_OK; /* killed while it was made: no manifest can be in there */
    goto out;
  }
  if (!status && !is_key_of(name, &record))
    goto out; /* a copy that someone made by hand */
  if (!status) status = open_within(folder.path, "commits", &commits, err);
  if (!status) status = walk->each(walk->ctx, &record, &commits, err);
out:
  file_record_done(&record);
  file_disk_folder_done(&commits);
  file_disk_folder_done(&folder);
  return status;
}

weir_status file_place_namespaces(const file_place *p, file_place_each each, void *ctx,
                                  weir_error *err) {
  each_namespace walk = {.p = p, .each = each, .ctx = ctx};
  file_disk_folder root = {.fd = -1};
  weir_status status = file_disk_folder_open(p->root, &root, err);
  if (!status) status = file_disk_list(&root, visit, &walk, err);
  file_disk_folder_done(&root);
  return status;
}
