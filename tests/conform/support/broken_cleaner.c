/* SPDX-License-Identifier: Apache-2.0 */
#include "support/broken_cleaner.h"

#include <errno.h>
#include <glob.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/broken.h"

broken_cleaner *broken_cleaner_new(void) {
  broken_cleaner *c = calloc(1, sizeof(*c));
  if (c) c->refs = 1;
  return c;
}

static void ref(void *state) {
  ((broken_cleaner *)state)->refs++;
}

static void unref(void *state) {
  broken_cleaner *c = state;
  if (c && --c->refs == 0) free(c);
}

/* But not what begins with `spared`. */
static void remove_matching(const char *pattern, const char *spared) {
  glob_t found = {0};
  if (glob(pattern, 0, NULL, &found) == 0) {
    for (size_t i = 0; i < found.gl_pathc; i++) {
      if (strncmp(found.gl_pathv[i], spared, strlen(spared)) != 0)
        unlink(found.gl_pathv[i]);
    }
  }
  globfree(&found);
}

static weir_status clean_one(broken_cleaner *c, const weir_abort_entry *e,
                             weir_error *err) {
  char path[512];
  bool by_name = e->has_intent && broken.fault != CLEANER_IGNORES_THE_INCARNATION;
  if (by_name) {
    snprintf(path, sizeof(path), "%s/%.*s", c->folder, (int)e->size,
             (const char *)e->intent);
    return unlink(path) && errno != ENOENT ? weir_error_errno(err, errno, "cannot clean")
                                           : WEIR_OK;
  }
  snprintf(path, sizeof(path), "%s/staged-%" PRIu64 "-%" PRIu64 "-*", c->folder,
           e->checkpoint, e->participant_id);
  remove_matching(path, "?");
  return WEIR_OK;
}

static weir_status clean(void *state, const weir_call *call,
                         const weir_abort_batch *batch, weir_error *err) {
  broken_cleaner *c = state;
  char all[512], spared[512];
  weir_status status = weir_call_check(call, "clean", err);
  if (!status && !c->folder[0])
    return weir_error_set(err, WEIR_E_INVALID_STATE, 0, "the sink is gone");
  for (size_t i = 0; !status && i < batch->n_entries; i++) {
    const weir_abort_entry *e = &batch->entries[i];
    if (broken.fault == CLEANER_FAILS_TWICE && e->has_intent && c->last == e->checkpoint)
      return weir_error_set(err, WEIR_E_NOT_FOUND, 0, "cleaned already");
    if (broken.fault == CLEANER_NEEDS_AN_INTENT && !e->has_intent)
      return weir_error_set(err, WEIR_E_INVALID_STATE, 0, "no intent");
    status = clean_one(c, e, err);
    if (!status && i + 1 == batch->n_entries) c->last = e->checkpoint;
  }
  snprintf(all, sizeof(all), "%s/staged-*", c->folder);
  snprintf(spared, sizeof(spared), "%s/staged-%" PRIu64 "-", c->folder, c->last);
  if (!status && broken.fault == CLEANER_DELETES_LIVE_FILES) remove_matching(all, spared);
  return status;
}

const weir_cleaner_ops broken_cleaner_ops = {.abi_version = WEIR_ABI_VERSION,
                                             .struct_size = sizeof(broken_cleaner_ops),
                                             .ref = ref,
                                             .unref = unref,
                                             .clean = clean};
