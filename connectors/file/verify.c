/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verify. A live run may publish while this looks, so every question is one whose answer cannot become wrong:
 * manifests are never changed and only pruned from below, a file that a manifest names is staged until the
 * moment at which it is published, and what was decided before the ledger was read stays decided.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit.h"
#include "commits.h"
#include "committer.h"
#include "place.h"

typedef struct verification {
  const weir_call *call;
  const weir_verify *ask;
  weir_verified *out;
  file_place_folders folders;
  file_manifest newest;
  bool settled; /* all that the newest manifest names was published */
  bool whole;   /* every manifest from the floor on could be read */
} verification;

static void found(const verification *v, int32_t kind, uint64_t checkpoint,
                  const char *artifact, const char *fmt, ...) WEIR_PRINTF(5, 6);

static void found(const verification *v, int32_t kind, uint64_t checkpoint,
                  const char *artifact, const char *fmt, ...) {
  char text[1000];
  va_list args;
  va_start(args, fmt);
  vsnprintf(text, sizeof(text), fmt, args);
  va_end(args);
  weir_finding finding = {.struct_size = sizeof(finding),
                          .kind = kind,
                          .checkpoint = checkpoint,
                          .artifact = artifact,
                          .text = text};
  v->ask->found(v->ask->ctx, &finding);
}

/* ---- files ------------------------------------------------------------------------------------------ */

typedef enum look {
  LOOK_ABSENT,
  LOOK_GOOD,
  LOOK_SIZE,   /* another size */
  LOOK_CONTENT /* another hash */
} look;

/* `name`: of the file in that folder, or below it. */
static weir_status look_at(const verification *v, const file_disk_folder *folder,
                           const char *name, const file_data_file *file, look *out,
                           uint64_t *size, weir_error *err) {
  uint8_t sha256[DISK_SHA256_SIZE];
  bool there = false;
  *out = LOOK_ABSENT;
  FILE_TRY(file_disk_stat(folder, name, &there, size, err));
  if (!there) return WEIR_OK;
  *out = *size == file->bytes ? LOOK_GOOD : LOOK_SIZE;
  if (*out == LOOK_SIZE || !v->ask->deep) return WEIR_OK;
  weir_status status = file_disk_digest(folder, name, size, sha256, err);
  if (status == WEIR_E_NOT_FOUND) { /* published or moved on since */
    *out = LOOK_ABSENT;
    return WEIR_OK;
  }
  if (status) return status;
  if (*size != file->bytes)
    *out = LOOK_SIZE;
  else if (memcmp(sha256, file->sha256, sizeof(sha256)) != 0)
    *out = LOOK_CONTENT;
  return WEIR_OK;
}

static weir_status tell_file(const verification *v, uint64_t checkpoint,
                             const file_data_file *file, bool open,
                             const file_disk_folder *folder, const char *name, look state,
                             uint64_t size, weir_error *err) {
  char *artifact = file_disk_join(folder->path, name, err);
  if (!artifact) return WEIR_E_NOMEM;
  if (state == LOOK_ABSENT && open) {
    found(v, WEIR_FOUND_MISSING, checkpoint, artifact,
          "is neither published nor staged in '%s': somebody has removed %" PRIu64
          " rows of epoch %" PRIu64 " before they could be published",
          v->folders.staged.path, file->rows, checkpoint);
  } else if (state == LOOK_ABSENT) {
    found(v, WEIR_FOUND_MISSING, checkpoint, artifact,
          "is gone: it was published with %" PRIu64 " rows of epoch %" PRIu64, file->rows,
          checkpoint);
  } else if (state == LOOK_SIZE) {
    found(v, WEIR_FOUND_CHANGED, checkpoint, artifact,
          "has %" PRIu64 " bytes, and had %" PRIu64 " when it was written", size,
          file->bytes);
  } else {
    found(v, WEIR_FOUND_CHANGED, checkpoint, artifact,
          "has its size, but not the bytes that were written");
  }
  free(artifact);
  return WEIR_OK;
}

bool file_audit_resolved(const weir_ledger *ledger, uint64_t attempt) {
  if (ledger->struct_size < offsetof(weir_ledger, n_resolved) + sizeof(size_t))
    return false;
  for (size_t i = 0; i < ledger->n_resolved; i++)
    if (ledger->resolved[i] == attempt) return true;
  return false;
}

/* `open`: it may be staged still. */
static weir_status check_file(const verification *v, uint64_t checkpoint,
                              const file_data_file *file, bool open, weir_error *err) {
  look state = LOOK_ABSENT;
  uint64_t size = 0;
  const file_disk_folder *folder = &v->folders.staged;
  const char *name = file->name;
  char *below = NULL;
  weir_status status = weir_call_check(v->call, "verify", err);
  if (!status && open) status = look_at(v, folder, name, file, &state, &size, err);
  if (!status && state == LOOK_ABSENT) {
    folder = &v->folders.path;
    if (file->folder) name = below = file_disk_join(file->folder, file->name, err);
    status = name ? look_at(v, folder, name, file, &state, &size, err) : WEIR_E_NOMEM;
  }
  v->out->artifacts++;
  v->out->bytes += file->bytes;
  bool given_up = state == LOOK_ABSENT && file_audit_resolved(v->ask->ledger, checkpoint);
  if (!status && state != LOOK_GOOD && !given_up)
    status = tell_file(v, checkpoint, file, open, folder, name, state, size, err);
  free(below);
  return status;
}

/* ---- manifests -------------------------------------------------------------------------------------- */

static weir_status check_manifest(verification *v, const file_manifest *m,
                                  weir_error *err) {
  bool open = m->sequence == v->newest.sequence && !v->settled;
  for (size_t i = 0; i < m->n_attempts; i++) {
    const file_manifest_attempt *a = &m->attempts[i];
    uint64_t rows = 0;
    for (size_t k = a->first_file; k < a->first_file + a->n_files; k++) {
      rows += m->files.v[k].rows;
      FILE_TRY(check_file(v, a->cursor.checkpoint, &m->files.v[k], open, err));
    }
    v->ask->published(v->ask->ctx, &a->cursor, rows);
  }
  return WEIR_OK;
}

/* Whether manifests up to `sequence` were pruned since the newest was read. */
static bool pruned(const verification *v, uint64_t sequence) {
  file_manifest newest = {0};
  bool is =
      !file_commits_newest(&v->folders.commits, &newest, NULL) && newest.floor > sequence;
  file_manifest_done(&newest);
  return is;
}

/* One that cannot be read or does not fit into the chain is told, and the next one looked at. */
static weir_status check_sequence(verification *v, uint64_t sequence, weir_cursor *before,
                                  weir_error *err) {
  file_manifest m = {0};
  weir_error why = {0};
  weir_status status = file_commits_read(&v->folders.commits, sequence, &m, &why);
  if (status == WEIR_E_NOT_FOUND || status == WEIR_E_CORRUPT) {
    v->whole = false;
    *before = (weir_cursor){0};
    if (status == WEIR_E_CORRUPT || !pruned(v, sequence))
      found(v, status == WEIR_E_CORRUPT ? WEIR_FOUND_CHANGED : WEIR_FOUND_MISSING, 0,
            v->folders.commits.path,
            "its manifest %" PRIu64 " cannot be read, so nobody can tell its files: %s",
            sequence, why.message);
    return WEIR_OK;
  }
  if (status) {
    if (err) *err = why;
    return status;
  }
  if (sequence == 1 && m.predecessor.checkpoint) v->whole = false;
  if (before->checkpoint && !weir_cursor_equal(before, &m.predecessor))
    found(v, WEIR_FOUND_CHANGED, m.predecessor.checkpoint, v->folders.commits.path,
          "its manifest %" PRIu64 " follows epoch %" PRIu64
          ", but the one before it ends with epoch %" PRIu64
          ": these are two histories, restored into one folder",
          sequence, m.predecessor.checkpoint, before->checkpoint);
  *before = *file_manifest_cursor(&m);
  status = check_manifest(v, &m, err);
  file_manifest_done(&m);
  return status;
}

static weir_status check_chain(verification *v, weir_error *err) {
  weir_cursor before = {0};
  v->whole = v->newest.floor <= 1;
  v->settled = file_commits_is_done(&v->folders.commits, &v->newest);
  for (uint64_t i = v->newest.floor; i && i <= v->newest.sequence; i++)
    FILE_TRY(check_sequence(v, i, &before, err));
  return WEIR_OK;
}

/* Decided and, when the newest manifest was read, not published: what their descriptors name must be here. */
static weir_status check_decided(const verification *v, weir_error *err) {
  uint64_t at = file_manifest_cursor(&v->newest)->checkpoint;
  weir_status status = WEIR_OK;
  for (size_t i = 0; i < v->ask->ledger->n_decided && !status; i++) {
    const weir_commit_attempt *a = &v->ask->ledger->decided[i];
    file_data_files files = {0};
    if (a->cursor.checkpoint <= at) continue;
    for (size_t k = 0; k < a->n_entries && !status; k++)
      if (a->entries[k].present)
        status = file_descriptor_read(a->entries[k].descriptor, a->entries[k].size,
                                      a->cursor.checkpoint, a->entries[k].participant_id,
                                      &files, err);
    for (size_t k = 0; k < files.n && !status; k++)
      status = check_file(v, a->cursor.checkpoint, &files.v[k], true, err);
    file_data_files_done(&files);
  }
  return status;
}

/* ---- the target --------------------------------------------------------------------------------------- */

/* Whose it is. *go_on: it is this deployment's, or nobody's yet. */
static weir_status check_owner(const verification *v, const char *configured, bool *go_on,
                               weir_error *err) {
  weir_error why = {0};
  weir_status status = file_place_check(configured, v->ask->ledger->ns, &why);
  *go_on = !status;
  switch (status) {
    case WEIR_OK:
      return WEIR_OK;
    case WEIR_E_CONFLICT:
    case WEIR_E_INVALID_CONFIG:
      found(v, WEIR_FOUND_FOREIGN, 0, configured, "%s", why.message);
      return WEIR_OK;
    case WEIR_E_CORRUPT:
      found(v, WEIR_FOUND_CHANGED, 0, configured, "%s", why.message);
      return WEIR_OK;
    default:
      if (err) *err = why;
      return status;
  }
}

static weir_status verify_namespace(verification *v, weir_error *err) {
  weir_error why = {0};
  weir_status status = file_commits_newest(&v->folders.commits, &v->newest, &why);
  if (status == WEIR_E_CORRUPT) {
    found(v, WEIR_FOUND_CHANGED, 0, v->folders.commits.path,
          "its newest manifest cannot be read, so the cursor is not known: %s",
          why.message);
    return WEIR_OK;
  }
  if (status) {
    if (err) *err = why;
    return status;
  }
  v->out->cursor = *file_manifest_cursor(&v->newest);
  FILE_TRY(check_chain(v, err));
  FILE_TRY(check_decided(v, err));
  v->out->checked = WEIR_CHECKED_CURSOR | WEIR_CHECKED_ARTIFACTS | WEIR_CHECKED_ROWS;
  if (v->ask->deep) v->out->checked |= WEIR_CHECKED_CONTENT;
  if (v->whole) v->out->checked |= WEIR_CHECKED_ALL_ROWS;
  return WEIR_OK;
}

static weir_status tell_cursors(const char *configured, const weir_verify *ask,
                                weir_error *err) {
  weir_cursor_list list = {0};
  if (ask->struct_size < offsetof(weir_verify, cursor) + sizeof(ask->cursor) ||
      !ask->cursor)
    return WEIR_OK;
  FILE_TRY(file_committer_find(configured, ask->ledger->ns, &list, err));
  for (size_t i = 0; i < list.n; i++) ask->cursor(ask->ctx, &list.v[i]);
  list.release(&list);
  return WEIR_OK;
}

weir_status file_verify(const char *configured, const weir_call *call,
                        const weir_verify *ask, weir_verified *out, weir_error *err) {
  weir_status status = WEIR_OK;
  verification v = {.call = call, .ask = ask, .out = out};
  file_place p = {0};
  bool go_on = false;
  FILE_GOTO(status, tell_cursors(configured, ask, err));
  FILE_GOTO(status, check_owner(&v, configured, &go_on, err));
  if (!go_on) goto out;
  status = file_place_find(configured, &p, err);
  if (!status) status = file_place_folders_open(&p, ask->ledger->ns, &v.folders, err);
  if (status == WEIR_E_NOT_FOUND) { /* never prepared here, or removed: no cursor */
    out->checked = WEIR_CHECKED_CURSOR;
    if (ask->ledger->n_decided)
      found(&v, WEIR_FOUND_MISSING, 0, configured,
            "or the folder of this deployment beside it, in `.weir`, is gone");
    status = WEIR_OK;
    goto out;
  }
  if (!status) status = verify_namespace(&v, err);
out:
  file_manifest_done(&v.newest);
  file_place_folders_done(&v.folders);
  file_place_done(&p);
  return status;
}
