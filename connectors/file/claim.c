/* SPDX-License-Identifier: Apache-2.0 */
#include "claim.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/fault.h>

#include "records.h"

enum { NAME_SIZE = 48, TRIES = 100 };

/* The claims of this pipeline and sink behind the last one of any other, whose owner.json somebody has
 * removed; `foreign`: there are none behind it. */
typedef struct chain {
  uint64_t head; /* number of the last claim of all; 0: none */
  uint8_t *deployments;
  size_t n;
  bool foreign;
  uint8_t foreign_head[WEIR_UUID_SIZE];
} chain;

static void chain_done(chain *c) {
  free(c->deployments);
  memset(c, 0, sizeof(*c));
}

static void claim_name(uint64_t number, char out[NAME_SIZE]) {
  snprintf(out, NAME_SIZE, "deployment-%" PRIu64 ".json", number);
}

static weir_status find_head(void *ctx, const char *name, weir_error *err) {
  static const char prefix[] = "deployment-";
  uint64_t *head = ctx;
  char again[NAME_SIZE];
  (void)err;
  if (strncmp(name, prefix, strlen(prefix)) != 0) return WEIR_OK;
  uint64_t number = strtoull(name + strlen(prefix), NULL, 10);
  claim_name(number, again); /* one spelling only */
  if (strcmp(name, again) == 0 && number > *head) *head = number;
  return WEIR_OK;
}

static weir_status add(chain *c, const file_owner_record *record,
                       const weir_namespace *ns, weir_error *err) {
  c->foreign = memcmp(record->identity, ns->identity, sizeof(ns->identity)) != 0 ||
               strcmp(record->sink_id, ns->sink_id) != 0;
  if (c->foreign) {
    memcpy(c->foreign_head, record->deployment, WEIR_UUID_SIZE);
    c->n = 0;
    return WEIR_OK;
  }
  uint8_t *v = realloc(c->deployments, (c->n + 1) * WEIR_UUID_SIZE);
  if (!v) return weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
  memcpy(v + c->n++ * WEIR_UUID_SIZE, record->deployment, WEIR_UUID_SIZE);
  c->deployments = v;
  return WEIR_OK;
}

/* K1. Records are never changed nor removed, so the chain that was listed is read whole; one that is
 * missing in it was taken away by somebody. */
static weir_status read_chain(const file_disk_folder *root, const weir_namespace *ns,
                              chain *out, weir_error *err) {
  weir_status status = WEIR_OK;
  chain c = {0};
  FILE_GOTO(status, file_disk_list(root, find_head, &c.head, err));
  for (uint64_t i = 1; i <= c.head; i++) {
    char name[NAME_SIZE];
    file_owner_record record = {0};
    claim_name(i, name);
    status = file_records_read(RECORD_CLAIM, root, name, &record, err);
    if (!status) status = add(&c, &record, ns, err);
    file_record_done(&record);
    if (status == WEIR_E_NOT_FOUND) {
      status = weir_error_set(err, WEIR_E_CORRUPT, 0,
                              "'%s/%s' is missing, though a later one is there: somebody "
                              "has removed it; bring it back",
                              root->path, name);
    }
    if (status) goto out;
  }
  *out = c;
  memset(&c, 0, sizeof(c));
out:
  chain_done(&c);
  return status;
}

static weir_status check_chain(const chain *c, const weir_namespace *ns,
                               weir_error *err) {
  return c->foreign ? weir_claim_check(ns, c->foreign_head, 1, err)
                    : weir_claim_check(ns, c->deployments, c->n, err);
}

weir_status file_claim_look(const file_disk_folder *root, const weir_namespace *ns,
                            weir_error *err) {
  chain c = {0};
  int32_t append = 0;
  FILE_TRY(read_chain(root, ns, &c, err));
  weir_status status = weir_claim_start(ns, c.deployments, c.n, &append, err);
  chain_done(&c);
  return status;
}

/* K2 and K3 for one number. Another one who starts may sweep the temporary file, which says nothing of the
 * number. */
static weir_status create(const file_disk_folder *root, uint64_t number,
                          const weir_namespace *ns, const weir_host *host,
                          weir_error *err) {
  char name[NAME_SIZE];
  weir_status status = WEIR_E_NOT_FOUND;
  claim_name(number, name);
  for (int i = 0; status == WEIR_E_NOT_FOUND && i < TRIES; i++)
    status = file_records_create(RECORD_CLAIM, root, name, ns, host, err);
  return status;
}

weir_status file_claim_take(const file_disk_folder *root, const weir_namespace *ns,
                            const weir_host *host, weir_error *err) {
  weir_status status = WEIR_OK;
  chain c = {0};
  int32_t append = 0;
  FILE_GOTO(status, read_chain(root, ns, &c, err));
  FILE_GOTO(status, weir_claim_start(ns, c.deployments, c.n, &append, err));
  if (WEIR_FAULT("file.claim.read")) {
    status = file_disk_error(err, EIO, "read the claims in", root->path, NULL);
    goto out;
  }
  if (append) {
    status = create(root, c.head + 1, ns, host, err);
    if (status == WEIR_E_EXISTS) {
      chain_done(&c);
      FILE_GOTO(status, read_chain(root, ns, &c, err));
      status = check_chain(&c, ns, err);
    }
    if (status) goto out;
  }
  if (WEIR_FAULT("file.claim.linked")) {
    status = file_disk_error(err, EIO, "sync", root->path, NULL);
    goto out;
  }
  /* K4, also for a claim that is found: whoever linked it may have been killed before this. */
  FILE_GOTO(status, file_disk_folder_sync(root, err));
  file_records_sweep(root);
out:
  chain_done(&c);
  return status;
}

weir_status file_claim_check(const file_place *p, const weir_namespace *ns,
                             weir_error *err) {
  file_disk_folder root = {.fd = -1};
  chain c = {0};
  weir_status status = file_disk_folder_open(p->root, &root, err);
  if (!status) status = read_chain(&root, ns, &c, err);
  if (!status) status = check_chain(&c, ns, err);
  chain_done(&c);
  file_disk_folder_done(&root);
  return status;
}
