/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sweep: staged files and temporary names that nobody owns. What is never touched: anything of an attempt
 * beyond the target's cursor, which a copy of the state folder may be working on; what a descriptor or an
 * intent of the ledger names; what a manifest names that is not published yet; names that weir does not make.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <weir/fault.h>

#include "audit.h"
#include "claim.h"
#include "commits.h"
#include "place.h"
#include "publish.h"

#define NS_PER_S INT64_C(1000000000)

typedef struct keys {
  file_epoch_key *v; /* participant 0: every one; without incarnation: every one */
  size_t n;
} keys;

typedef struct search {
  const weir_call *call;
  const weir_sweep *ask;
  weir_swept *out;
  int64_t now; /* of the target's clock, since 1970 */
  keys owned;
  uint64_t last;     /* staged files of later attempts are kept */
  uint64_t sequence; /* the newest manifest's: temporary ones of later numbers are kept */
  const file_disk_folder *folder; /* the one being listed */
  bool removed;
} search;

/* ---- what is owned ------------------------------------------------------------------------------------ */

static weir_status own(keys *k, const file_epoch_key *key, weir_error *err) {
  if (k->n && memcmp(&k->v[k->n - 1], key, sizeof(*key)) == 0) return WEIR_OK;
  file_epoch_key *v = realloc(k->v, (k->n + 1) * sizeof(*v));
  if (!v) return weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
  k->v = v;
  v[k->n++] = *key;
  return WEIR_OK;
}

static weir_status own_files(keys *k, const file_data_files *files, weir_error *err) {
  for (size_t i = 0; i < files->n; i++) {
    file_data_name name = {0};
    file_epoch_key key = {0};
    if (!file_data_name_parse(files->v[i].name, &name)) continue;
    key.attempt = name.attempt;
    key.participant = name.participant;
    memcpy(key.incarnation, name.incarnation, sizeof(key.incarnation));
    FILE_TRY(own(k, &key, err));
  }
  return WEIR_OK;
}

static weir_status own_ledger(keys *k, const weir_ledger *ledger, weir_error *err) {
  weir_status status = WEIR_OK;
  for (size_t i = 0; i < ledger->n_decided && !status; i++) {
    const weir_commit_attempt *a = &ledger->decided[i];
    file_data_files files = {0};
    for (size_t e = 0; e < a->n_entries && !status; e++)
      if (a->entries[e].present)
        status = file_descriptor_read(a->entries[e].descriptor, a->entries[e].size,
                                      a->cursor.checkpoint, a->entries[e].participant_id,
                                      &files, err);
    if (!status) status = own_files(k, &files, err);
    file_data_files_done(&files);
  }
  for (size_t i = 0; i < ledger->n_open && !status; i++) {
    const weir_abort_entry *e = &ledger->open[i];
    file_epoch_key key = {.attempt = e->checkpoint, .participant = e->participant_id};
    if (e->has_intent) status = file_intent_read(e->intent, e->size, &key, err);
    if (!status) status = own(k, &key, err);
  }
  return status;
}

static bool is_owned(const keys *k, const file_data_name *name) {
  static const uint8_t any[WEIR_INCARNATION_SIZE];
  for (size_t i = 0; i < k->n; i++) {
    const file_epoch_key *key = &k->v[i];
    if (key->attempt != name->attempt) continue;
    if (key->participant && key->participant != name->participant) continue;
    if (memcmp(key->incarnation, any, sizeof(any)) == 0 ||
        memcmp(key->incarnation, name->incarnation, sizeof(any)) == 0)
      return true;
  }
  return false;
}

/* ---- one name ------------------------------------------------------------------------------------------ */

static weir_status take(search *s, const char *name, int32_t kind, uint64_t checkpoint,
                        const char *text, weir_error *err) {
  struct stat info;
  FILE_TRY(weir_call_check(s->call, "clean", err));
  if (fstatat(s->folder->fd, name, &info, AT_SYMLINK_NOFOLLOW)) {
    return errno == ENOENT
               ? WEIR_OK
               : file_disk_error(err, errno, "look at", s->folder->path, name);
  }
  int64_t age = s->now - (info.st_mtim.tv_sec * NS_PER_S + info.st_mtim.tv_nsec);
  if (kind == WEIR_FOUND_ORPHAN && age < s->ask->older_than_ns &&
      s->ask->older_than_ns > 0) {
    s->out->young++;
    return WEIR_OK;
  }
  char *artifact = file_disk_join(s->folder->path, name, err);
  if (!artifact) return WEIR_E_NOMEM;
  weir_finding finding = {.struct_size = sizeof(finding),
                          .kind = kind,
                          .checkpoint = checkpoint,
                          .artifact = artifact,
                          .text = text,
                          .bytes = (uint64_t)info.st_size,
                          .age_ns = age > 0 ? age : 0};
  s->ask->found(s->ask->ctx, &finding);
  free(artifact);
  if (kind != WEIR_FOUND_ORPHAN || s->ask->dry_run) return WEIR_OK;
  FILE_TRY(file_disk_remove(s->folder, name, err));
  s->removed = true;
  if (WEIR_FAULT("file.swept.one"))
    return file_disk_error(err, EIO, "remove", s->folder->path, name);
  return WEIR_OK;
}

static weir_status staged_one(void *ctx, const char *text, weir_error *err) {
  search *s = ctx;
  file_data_name name = {0};
  if (!file_data_name_parse(text, &name))
    return take(s, text, WEIR_FOUND_UNKNOWN, 0,
                "lies among the staged files, and weir did not make it", err);
  if (name.attempt > s->last || is_owned(&s->owned, &name)) return WEIR_OK;
  return take(s, text, WEIR_FOUND_ORPHAN, name.attempt, NULL, err);
}

static weir_status commits_one(void *ctx, const char *text, weir_error *err) {
  search *s = ctx;
  uint64_t sequence = 0;
  if (!file_commits_temporary(text, &sequence) || sequence > s->sequence) return WEIR_OK;
  /* A live owner may just have linked it. */
  if (s->ask->dry_run && sequence == s->sequence) return WEIR_OK;
  return take(s, text, WEIR_FOUND_ORPHAN, 0, NULL, err);
}

/* Records before they are linked; whoever finds his swept makes another. */
static weir_status records_one(void *ctx, const char *text, weir_error *err) {
  return strncmp(text, ".tmp-", 5) == 0 ? take(ctx, text, WEIR_FOUND_ORPHAN, 0, NULL, err)
                                        : WEIR_OK;
}

static weir_status search_folder(search *s, const file_disk_folder *folder,
                                 file_disk_each each, weir_error *err) {
  s->folder = folder;
  s->removed = false;
  weir_status status = file_disk_list(folder, each, s, err);
  if (!status && s->removed) status = file_disk_folder_sync(folder, err);
  return status;
}

/* ---- namespaces ---------------------------------------------------------------------------------------- */

/* The manifest is read before the folders are listed: what is staged later is of later attempts. */
static weir_status search_namespace(search *s, const file_place_folders *folders,
                                    bool others, weir_error *err) {
  weir_status status = WEIR_OK;
  file_manifest newest = {0};
  FILE_GOTO(status, file_commits_newest(&folders->commits, &newest, err));
  uint64_t at = file_manifest_cursor(&newest)->checkpoint;
  s->sequence = newest.sequence;
  /* A deployment that was replaced publishes nothing any more. */
  s->last = others                           ? UINT64_MAX
            : at < s->ask->cursor.checkpoint ? at
                                             : s->ask->cursor.checkpoint;
  if (!others) FILE_GOTO(status, own_ledger(&s->owned, s->ask->ledger, err));
  if (!file_commits_is_done(&folders->commits, &newest))
    FILE_GOTO(status, own_files(&s->owned, &newest.files, err));
  FILE_GOTO(status, search_folder(s, &folders->staged, staged_one, err));
  FILE_GOTO(status, search_folder(s, &folders->commits, commits_one, err));
  status = search_folder(s, &folders->ns, records_one, err);
out:
  file_manifest_done(&newest);
  free(s->owned.v);
  s->owned = (keys){0};
  return status;
}

typedef struct others {
  search *search;
  const file_place *place;
} others;

static weir_status other_namespace(void *ctx, const file_owner_record *record,
                                   const file_disk_folder *commits, weir_error *err) {
  const others *o = ctx;
  const weir_namespace *own_ns = o->search->ask->ledger->ns;
  file_place_folders folders = {0};
  weir_namespace ns = {.struct_size = sizeof(ns),
                       .pipeline = record->pipeline,
                       .sink_id = record->sink_id};
  (void)commits;
  memcpy(ns.identity, record->identity, sizeof(ns.identity));
  memcpy(ns.deployment, record->deployment, sizeof(ns.deployment));
  char key[WEIR_NAMESPACE_KEY_SIZE], own_key[WEIR_NAMESPACE_KEY_SIZE];
  weir_namespace_key(&ns, key);
  weir_namespace_key(own_ns, own_key);
  if (strcmp(key, own_key) == 0) return WEIR_OK;
  weir_status status = file_place_folders_open(o->place, &ns, &folders, err);
  if (!status) status = search_namespace(o->search, &folders, true, err);
  file_place_folders_done(&folders);
  return status == WEIR_E_NOT_FOUND ? WEIR_OK : status;
}

/* The clock that gives files their times may be another machine's: touching a folder asks it. */
static int64_t clock_of(const file_disk_folder *folder, bool ask) {
  struct stat info;
  struct timespec now = {0};
  if (ask && !futimens(folder->fd, NULL) && !fstat(folder->fd, &info))
    now = info.st_mtim;
  else
    clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* At a target that is this deployment's still. */
static weir_status give_up(const file_place *p, const file_place_folders *folders,
                           const weir_ledger *ledger, weir_error *err) {
  file_manifest newest = {0};
  bool any = false;
  FILE_TRY(file_commits_newest(&folders->commits, &newest, err));
  for (size_t i = 0; i < newest.n_attempts && !any; i++)
    any = file_audit_resolved(ledger, newest.attempts[i].cursor.checkpoint);
  weir_status status = any ? file_claim_check(p, ledger->ns, err) : WEIR_OK;
  if (any && !status) status = file_publish_give_up(folders, &newest, ledger, err);
  file_manifest_done(&newest);
  return status;
}

weir_status file_sweep(const char *configured, const weir_call *call,
                       const weir_sweep *ask, weir_swept *out, weir_error *err) {
  weir_status status = WEIR_OK;
  search s = {.call = call, .ask = ask, .out = out};
  file_place p = {0};
  file_place_folders folders = {0};
  file_disk_folder root = {.fd = -1};
  others o = {&s, &p};
  FILE_GOTO(status, file_place_find(configured, &p, err));
  FILE_GOTO(status, file_place_folders_open(&p, ask->ledger->ns, &folders, err));
  if (!ask->dry_run) FILE_GOTO(status, give_up(&p, &folders, ask->ledger, err));
  s.now = clock_of(&folders.staged, !ask->dry_run);
  FILE_GOTO(status, search_namespace(&s, &folders, false, err));
  FILE_GOTO(status, file_disk_folder_open(p.root, &root, err));
  FILE_GOTO(status, search_folder(&s, &root, records_one, err));
  if (ask->all_namespaces) status = file_place_namespaces(&p, other_namespace, &o, err);
out:
  file_disk_folder_done(&root);
  file_place_folders_done(&folders);
  file_place_done(&p);
  if (status == WEIR_E_NOT_FOUND) status = WEIR_OK; /* nothing was ever put here */
  if (!status) out->looked = 1;
  return status;
}
