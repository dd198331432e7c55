/* SPDX-License-Identifier: Apache-2.0 */
#include "committer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <weir/fault.h>

#include "claim.h"
#include "commits.h"
#include "publish.h"

/* The folders, and the place when the caller wants it. */
static weir_status open_target(const file_committer *c, const weir_namespace *ns,
                               file_place *place, file_place_folders *out,
                               weir_error *err) {
  file_place p = {0};
  weir_status status = file_place_find(c->configured, &p, err);
  if (!status) status = file_place_folders_open(&p, ns, out, err);
  if (!status && place) {
    *place = p;
  } else {
    file_place_done(&p);
  }
  return status;
}

/* What the operating system refuses may work later: a full disk, a folder put back, a right given.
 * Records that make no sense will not. */
static weir_status keep_trying(weir_error *err, weir_status status, uint32_t flag) {
  if (status != WEIR_E_IO && status != WEIR_E_NOT_FOUND && status != WEIR_E_NOMEM)
    return status;
  if (err && (err->flags & WEIR_ERR_IN_DOUBT)) return status;
  return file_disk_flag(err, status, flag);
}

/* Nothing at this target can outlive its owner but a call that is on its way. Of that, a link() loses
 * against the next manifest or is void below its floor, a rename does what any owner would do, and staged
 * names carry the incarnation. So ending older sessions is: settle what the last of them has linked. */
static weir_status take_over(void *state, const weir_call *call, const weir_namespace *ns,
                             weir_error *err) {
  weir_status status = WEIR_OK;
  file_place p = {0};
  file_place_folders folders = {0};
  file_manifest newest = {0};
  (void)call;
  FILE_GOTO(status, open_target(state, ns, &p, &folders, err));
  FILE_GOTO(status, file_commits_newest(&folders.commits, &newest, err));
  FILE_GOTO(status, file_claim_check(&p, ns, err)); /* K5 */
  status = file_publish_roll_forward(&folders, &newest, false, err);
  /* As with a batch that is refused: no owner gets beyond it until somebody has looked. */
  if (status == WEIR_E_CORRUPT) {
    status = WEIR_E_CONFLICT;
    if (err) err->code = status;
    weir_error_prefix(err, status, "the epoch that it shows cannot be published in full");
  }
out:
  file_manifest_done(&newest);
  file_place_folders_done(&folders);
  file_place_done(&p);
  return status ? keep_trying(err, status, WEIR_ERR_RETRIABLE) : WEIR_OK;
}

static weir_status observe_cursor(void *state, const weir_call *call,
                                  const weir_namespace *ns, weir_cursor *out,
                                  weir_error *err) {
  weir_status status = WEIR_OK;
  file_place_folders folders = {0};
  file_manifest newest = {0};
  (void)call;
  FILE_GOTO(status, open_target(state, ns, NULL, &folders, err));
  FILE_GOTO(status, file_commits_newest(&folders.commits, &newest, err));
  *out = *file_manifest_cursor(&newest);
out:
  file_manifest_done(&newest);
  file_place_folders_done(&folders);
  return status ? keep_trying(err, status, WEIR_ERR_RETRIABLE) : WEIR_OK;
}

/* ---- find_cursors ------------------------------------------------------------------------------- */

typedef struct found_list {
  const weir_namespace *ns;
  weir_found_cursor *v;
  size_t n;
} found_list;

static void found_list_free(found_list *list) {
  for (size_t i = 0; i < list->n; i++) free((char *)(uintptr_t)list->v[i].positions);
  free(list->v);
  free(list);
}

static void found_release(weir_cursor_list *list) {
  found_list_free(list->private_data);
  list->release = NULL;
  list->private_data = NULL;
}

static weir_status find_one(void *ctx, const file_owner_record *record,
                            const file_disk_folder *commits, weir_error *err) {
  found_list *list = ctx;
  file_manifest newest = {0};
  if (memcmp(record->identity, list->ns->identity, WEIR_DIGEST_SIZE) != 0 ||
      strcmp(record->sink_id, list->ns->sink_id) != 0) {
    return WEIR_OK;
  }
  FILE_TRY(file_commits_newest(commits, &newest, err));
  if (newest.sequence) {
    weir_found_cursor *v = realloc(list->v, (list->n + 1) * sizeof(*v));
    if (!v) {
      file_manifest_done(&newest);
      return weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
    }
    list->v = v;
    memset(&v[list->n], 0, sizeof(*v));
    memcpy(v[list->n].deployment, record->deployment, WEIR_UUID_SIZE);
    v[list->n].cursor = *file_manifest_cursor(&newest);
    v[list->n].positions = newest.positions;
    newest.positions = NULL;
    list->n++;
  }
  file_manifest_done(&newest);
  return WEIR_OK;
}

weir_status file_committer_find(const char *configured, const weir_namespace *ns,
                                weir_cursor_list *out, weir_error *err) {
  file_place p = {0};
  found_list *list = calloc(1, sizeof(*list));
  if (!list) return weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
  list->ns = ns;
  weir_status status = file_place_find(configured, &p, err);
  if (!status) status = file_place_namespaces(&p, find_one, list, err);
  file_place_done(&p);
  if (status == WEIR_E_NOT_FOUND) status = WEIR_OK; /* no target, no cursor */
  if (status) {
    found_list_free(list);
    return keep_trying(err, status, WEIR_ERR_RETRIABLE);
  }
  *out = (weir_cursor_list){list->v, list->n, found_release, list};
  return WEIR_OK;
}

static weir_status find_cursors(void *state, const weir_call *call,
                                const weir_namespace *ns, weir_cursor_list *out,
                                weir_error *err) {
  (void)call;
  return file_committer_find(((const file_committer *)state)->configured, ns, out, err);
}

/* ---- commit_aggregated -------------------------------------------------------------------------- */

static uint64_t floor_after(const file_manifest *newest) {
  uint64_t sequence = newest->sequence + 1;
  uint64_t floor = sequence > COMMITS_KEPT ? sequence - COMMITS_KEPT + 1 : 1;
  return floor < newest->floor ? newest->floor : floor;
}

/* One try: WEIR_E_EXISTS when another owner moved the chain meanwhile. */
static weir_status commit_once(const file_committer *c, const file_place *p,
                               const file_place_folders *folders,
                               const weir_commit_batch *batch, weir_cursor *out,
                               weir_error *err) {
  weir_status status = WEIR_OK;
  file_manifest newest = {0}, next = {0};
  size_t first = 0;
  FILE_GOTO(status, file_commits_newest(&folders->commits, &newest, err));
  FILE_GOTO(status,
            weir_commit_batch_start(batch, file_manifest_cursor(&newest), &first, err));
  FILE_GOTO(status, file_claim_check(p, batch->ns, err)); /* K5 */
  status = file_publish_roll_forward(folders, &newest, false, err);
  if (status) {
    if (first == batch->n_attempts) status = keep_trying(err, status, WEIR_ERR_IN_DOUBT);
    goto out;
  }
  if (first == batch->n_attempts) {
    *out = *file_manifest_cursor(&newest);
    goto out;
  }
  FILE_GOTO(status,
            file_manifest_build(batch, first, newest.sequence + 1, floor_after(&newest),
                                file_manifest_cursor(&newest), &next, err));
  FILE_GOTO(status, file_publish_check_files(folders, &next, err));
  FILE_GOTO(status,
            file_commits_append(&folders->commits, &next, batch->ns, c->host, err));
  /* K6: replaced since then, it is not published. */
  status = file_claim_check(p, batch->ns, err);
  if (!status) status = file_publish_roll_forward(folders, &next, true, err);
  if (status) {
    status = keep_trying(err, status, WEIR_ERR_IN_DOUBT);
    goto out;
  }
  /* F16. Only room is at stake, so it waits for a few, and a failure waits for the next one. */
  if (next.sequence % 16 == 0) file_commits_prune(&folders->commits, &next, NULL);
  *out = *file_manifest_cursor(&next);
out:
  file_manifest_done(&newest);
  file_manifest_done(&next);
  return status;
}

static weir_status commit_aggregated(void *state, const weir_call *call,
                                     const weir_commit_batch *batch, weir_cursor *out,
                                     weir_error *err) {
  const file_committer *c = state;
  file_place p = {0};
  file_place_folders folders = {0};
  weir_status status = open_target(c, batch->ns, &p, &folders, err);
  while (!status) {
    status = weir_call_check(call, "commit", err);
    if (status) {
      file_disk_flag(err, status, WEIR_ERR_RETRIABLE);
      break;
    }
    status = commit_once(c, &p, &folders, batch, out, err);
    if (status != WEIR_E_EXISTS) break;
    status = WEIR_OK; /* the loser reads the cursor again */
  }
  file_place_folders_done(&folders);
  file_place_done(&p);
  return status ? keep_trying(err, status, WEIR_ERR_RETRIABLE) : WEIR_OK;
}

const weir_committer_ops file_committer_ops = {
    .abi_version = WEIR_ABI_VERSION,
    .struct_size = sizeof(weir_committer_ops),
    .take_over = take_over,
    .observe_cursor = observe_cursor,
    .find_cursors = find_cursors,
    .commit_aggregated = commit_aggregated,
};
