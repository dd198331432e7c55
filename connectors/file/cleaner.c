/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <weir/fault.h>

#include "commits.h"
#include "committer.h"

struct file_cleaner {
  atomic_size_t references;
  char *configured;
};

weir_status file_cleaner_new(file_cleaner **out, weir_error *err) {
  file_cleaner *cleaner = calloc(1, sizeof(*cleaner));
  if (!cleaner) return weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
  atomic_init(&cleaner->references, 1);
  *out = cleaner;
  return WEIR_OK;
}

weir_status file_cleaner_set_path(file_cleaner *cleaner, const char *configured,
                                  weir_error *err) {
  if (cleaner->configured) return WEIR_OK;
  cleaner->configured = file_disk_format(err, "%s", configured);
  return cleaner->configured ? WEIR_OK : WEIR_E_NOMEM;
}

static void cleaner_ref(void *state) {
  file_cleaner *cleaner = state;
  atomic_fetch_add_explicit(&cleaner->references, 1, memory_order_relaxed);
}

static void cleaner_unref(void *state) {
  file_cleaner *cleaner = state;
  if (!cleaner) return;
  if (atomic_fetch_sub_explicit(&cleaner->references, 1, memory_order_acq_rel) != 1)
    return;
  free(cleaner->configured);
  free(cleaner);
}

typedef struct removal {
  const file_place_folders *folders;
  const file_manifest *newest;
  uint64_t attempt, participant;
  const uint8_t *incarnation;
  bool decided; /* the newest manifest has that attempt */
  bool removed;
} removal;

static weir_status remove_one(void *ctx, const char *text, weir_error *err) {
  removal *r = ctx;
  file_data_name name = {0};
  if (!file_data_name_parse(text, &name)) return WEIR_OK;
  if (name.attempt != r->attempt || name.participant != r->participant) return WEIR_OK;
  if (r->incarnation &&
      memcmp(name.incarnation, r->incarnation, WEIR_INCARNATION_SIZE) != 0) {
    return WEIR_OK;
  }
  /* Named by a manifest that is still being rolled forward: decided. */
  if (r->decided && file_data_files_have(&r->newest->files, text)) return WEIR_OK;
  r->removed = true;
  return file_disk_remove(&r->folders->staged, text, err);
}

weir_status file_remove_staged(const file_place_folders *folders, uint64_t attempt,
                               uint64_t participant, const uint8_t *incarnation,
                               weir_error *err) {
  file_manifest newest = {0};
  FILE_TRY(file_commits_newest(&folders->commits, &newest, err));
  removal r = {.folders = folders,
               .newest = &newest,
               .attempt = attempt,
               .participant = participant,
               .incarnation = incarnation,
               .decided = file_manifest_has_attempt(&newest, attempt)};
  weir_status status = WEIR_OK;
  /* Without an incarnation nothing tells a leftover from the decided attempt's own. */
  if (incarnation || !r.decided) {
    status = file_disk_list(&folders->staged, remove_one, &r, err);
  }
  if (!status && r.removed) status = file_disk_folder_sync(&folders->staged, err);
  file_manifest_done(&newest);
  return status;
}

static weir_status clean_entry(const file_place_folders *folders,
                               const weir_abort_entry *entry, weir_error *err) {
  file_epoch_key key = {0};
  if (!entry->has_intent) {
    return file_remove_staged(folders, entry->checkpoint, entry->participant_id, NULL,
                              err);
  }
  FILE_TRY(file_intent_read(entry->intent, entry->size, &key, err));
  if (key.attempt != entry->checkpoint || key.participant != entry->participant_id) {
    return weir_error_set(
        err, WEIR_E_CORRUPT, 0,
        "the intent of attempt %llu, participant %llu says that it is of attempt %llu, "
        "participant %llu",
        (unsigned long long)entry->checkpoint, (unsigned long long)entry->participant_id,
        (unsigned long long)key.attempt, (unsigned long long)key.participant);
  }
  return file_remove_staged(folders, key.attempt, key.participant, key.incarnation, err);
}

static weir_status clean(void *state, const weir_call *call,
                         const weir_abort_batch *batch, weir_error *err) {
  const file_cleaner *cleaner = state;
  file_place p = {0};
  file_place_folders folders = {0};
  if (!cleaner->configured) {
    return weir_error_set(
        err, WEIR_E_INVALID_STATE, 0,
        "file sink: the cleaner was asked before any hook was given the options");
  }
  if (WEIR_FAULT("file.clean")) {
    return file_disk_error(err, EIO, "clean up beside", cleaner->configured, NULL);
  }
  weir_status status = file_place_find(cleaner->configured, &p, err);
  if (!status) status = file_place_folders_open(&p, batch->ns, &folders, err);
  for (size_t i = 0; !status && i < batch->n_entries; i++) {
    status = weir_call_check(call, "clean", err);
    if (!status) status = clean_entry(&folders, &batch->entries[i], err);
  }
  file_place_folders_done(&folders);
  file_place_done(&p);
  if (!status && WEIR_FAULT("file.cleaned")) {
    status = file_disk_error(err, EIO, "clean up beside", cleaner->configured, NULL);
  }
  /* No folder, nothing left in it. */
  return status == WEIR_E_NOT_FOUND ? WEIR_OK : status;
}

const weir_cleaner_ops file_cleaner_ops = {
    .abi_version = WEIR_ABI_VERSION,
    .struct_size = sizeof(weir_cleaner_ops),
    .ref = cleaner_ref,
    .unref = cleaner_unref,
    .clean = clean,
};
