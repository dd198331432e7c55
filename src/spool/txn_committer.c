/* SPDX-License-Identifier: Apache-2.0 */
/* The committer's table, each call a request to the engine; and the cleaner's, which needs none. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spool/segment.h"
#include "spool/txn.h"

/* ---- requests ----------------------------------------------------------------------------------- */

static txn_request *new_request(txn_request_type type, weir_error *err) {
  txn_request *r = base_calloc(1, sizeof(*r), err);
  if (!r) return NULL;
  r->type = type;
  r->refs = 1;
  return r;
}

static void drop(txn_sink *s, txn_request *r) {
  pthread_mutex_lock(&s->hub->lock);
  txn_request_unref(r);
  pthread_mutex_unlock(&s->hub->lock);
}

static weir_status need_open(const txn_sink *s, const weir_call *call, weir_error *err) {
  if (!s->hub)
    return weir_error_set(err, WEIR_E_INVALID_STATE, 0, "a committer before open");
  return weir_call_check(call, "the committer", err);
}

static weir_status ask_simple(txn_sink *s, const weir_call *call, txn_request_type type,
                              weir_cursor *out, weir_error *err) {
  BASE_TRY(need_open(s, call, err));
  txn_request *r = new_request(type, err);
  if (!r) return WEIR_E_NOMEM;
  weir_status status = txn_hub_ask(s->hub, s->owner, r, call, err);
  if (!status && out) *out = r->cursor;
  drop(s, r);
  return status;
}

static weir_status take_over(void *state, const weir_call *call, const weir_namespace *ns,
                             weir_error *err) {
  (void)ns;
  return ask_simple(state, call, TXN_TAKE_OVER, NULL, err);
}

static weir_status observe_cursor(void *state, const weir_call *call,
                                  const weir_namespace *ns, weir_cursor *out,
                                  weir_error *err) {
  (void)ns;
  return ask_simple(state, call, TXN_READ_CURSOR, out, err);
}

static weir_status find_cursors(void *state, const weir_call *call,
                                const weir_namespace *ns, weir_cursor_list *out,
                                weir_error *err) {
  txn_sink *s = state;
  (void)ns;
  BASE_TRY(need_open(s, call, err));
  txn_request *r = new_request(TXN_FIND_CURSORS, err);
  if (!r) return WEIR_E_NOMEM;
  weir_status status = txn_hub_ask(s->hub, s->owner, r, call, err);
  if (!status) {
    *out = r->list;
    r->list.release = NULL;
  }
  drop(s, r);
  return status;
}

/* ---- commit ------------------------------------------------------------------------------------- */

static weir_status add_parts(txn_request *r, const weir_commit_batch *batch, size_t i,
                             weir_error *err) {
  const weir_commit_attempt *a = &batch->attempts[i];
  for (size_t k = 0; k < a->n_entries; k++) {
    const weir_commit_entry *e = &a->entries[k];
    if (!e->present) continue;
    txn_commit_part *part = &r->parts[r->n_parts];
    part->attempt = i;
    BASE_TRY(weir_spool_descriptor_read(e->descriptor, e->size, &part->segment, err));
    if (part->segment.id.attempt != a->cursor.checkpoint ||
        part->segment.id.participant != e->participant_id) {
      return weir_error_set(err, WEIR_E_CORRUPT, 0,
                            "the descriptor of attempt %" PRIu64 ", participant %" PRIu64
                            " names the segment of attempt %" PRIu64
                            ", participant %" PRIu64,
                            a->cursor.checkpoint, e->participant_id,
                            part->segment.id.attempt, part->segment.id.participant);
    }
    r->n_parts++;
  }
  return WEIR_OK;
}

/* Copies all that the engine needs. */
static weir_status fill_commit(txn_request *r, const txn_hub *hub,
                               const weir_commit_batch *batch, weir_error *err) {
  size_t entries = 0;
  for (size_t i = 0; i < batch->n_attempts; i++) entries += batch->attempts[i].n_entries;
  r->attempts = base_calloc(batch->n_attempts, sizeof(*r->attempts), err);
  r->accepted = base_calloc(batch->n_accepted, sizeof(*r->accepted), err);
  r->parts = base_calloc(entries, sizeof(*r->parts), err);
  if (!r->attempts || !r->accepted || !r->parts) return WEIR_E_NOMEM;
  if (batch->positions) {
    r->positions = base_strdup(batch->positions, err);
    if (!r->positions) return WEIR_E_NOMEM;
  }
  for (size_t i = 0; i < batch->n_attempts; i++) {
    r->attempts[i].cursor = batch->attempts[i].cursor;
    BASE_TRY(add_parts(r, batch, i, err));
  }
  if (batch->n_accepted)
    memcpy(r->accepted, batch->accepted, batch->n_accepted * sizeof(*r->accepted));
  r->batch = (weir_commit_batch){.struct_size = sizeof(r->batch),
                                 .ns = &hub->ns,
                                 .predecessor = batch->predecessor,
                                 .accepted = r->accepted,
                                 .n_accepted = batch->n_accepted,
                                 .attempts = r->attempts,
                                 .n_attempts = batch->n_attempts,
                                 .positions = r->positions};
  return WEIR_OK;
}

static weir_status commit_aggregated(void *state, const weir_call *call,
                                     const weir_commit_batch *batch, weir_cursor *out,
                                     weir_error *err) {
  txn_sink *s = state;
  BASE_TRY(need_open(s, call, err));
  if (!batch->n_attempts)
    return weir_error_set(err, WEIR_E_INVALID_STATE, 0, "a commit of no attempt");
  txn_request *r = new_request(TXN_COMMIT, err);
  if (!r) return WEIR_E_NOMEM;
  weir_status status = fill_commit(r, s->hub, batch, err);
  if (!status) status = txn_hub_ask(s->hub, s->owner, r, call, err);
  if (!status) *out = r->cursor;
  drop(s, r);
  return status;
}

const weir_committer_ops txn_committer_ops = {.abi_version = WEIR_ABI_VERSION,
                                              .struct_size = sizeof(txn_committer_ops),
                                              .take_over = take_over,
                                              .observe_cursor = observe_cursor,
                                              .find_cursors = find_cursors,
                                              .commit_aggregated = commit_aggregated};

/* ---- intents and cleaning ------------------------------------------------------------------------ */

struct txn_cleaner {
  _Atomic size_t refs;
  char *folder;
};

#define INTENT "weir-spool 1 "

weir_status txn_intent_write(const weir_spool_id *id, weir_bytes *out, weir_error *err) {
  char text[sizeof(INTENT) + SPOOL_MAX_NAME], name[SPOOL_MAX_NAME];
  spool_name_format(id, name);
  int n = snprintf(text, sizeof(text), INTENT "%s", name);
  return weir_bytes_copy(out, text, (size_t)n, err);
}

bool txn_intent_read(const uint8_t *data, size_t size, weir_spool_id *out) {
  char text[sizeof(INTENT) + SPOOL_MAX_NAME];
  if (size >= sizeof(text)) return false;
  if (size) memcpy(text, data, size);
  text[size] = 0;
  return base_starts_with(text, INTENT) && spool_name_parse(text + strlen(INTENT), out);
}

weir_status txn_cleaner_new(const char *folder, txn_cleaner **out, weir_error *err) {
  txn_cleaner *c = base_calloc(1, sizeof(*c), err);
  if (!c) return WEIR_E_NOMEM;
  atomic_init(&c->refs, 1);
  c->folder = base_strdup(folder, err);
  if (!c->folder) {
    free(c);
    return WEIR_E_NOMEM;
  }
  *out = c;
  return WEIR_OK;
}

static void cleaner_ref(void *state) {
  atomic_fetch_add(&((txn_cleaner *)state)->refs, 1);
}

static void cleaner_unref(void *state) {
  txn_cleaner *c = state;
  if (!c || atomic_fetch_sub(&c->refs, 1) != 1) return;
  free(c->folder);
  free(c);
}

/* Only segments: what was applied of an aborted attempt went with its transaction. */
static weir_status clean(void *state, const weir_call *call,
                         const weir_abort_batch *batch, weir_error *err) {
  txn_cleaner *c = state;
  for (size_t i = 0; i < batch->n_entries; i++) {
    const weir_abort_entry *e = &batch->entries[i];
    weir_spool_id id = {0};
    BASE_TRY(weir_call_check(call, "cleaning", err));
    if (!e->has_intent) {
      BASE_TRY(weir_spool_remove_all(c->folder, batch->ns, e->checkpoint,
                                     e->participant_id, err));
      continue;
    }
    if (!txn_intent_read(e->intent, e->size, &id) || id.attempt != e->checkpoint ||
        id.participant != e->participant_id) {
      return weir_error_set(err, WEIR_E_CORRUPT, 0,
                            "the intent of attempt %" PRIu64 ", participant %" PRIu64
                            " does not name its segment",
                            e->checkpoint, e->participant_id);
    }
    BASE_TRY(weir_spool_remove(c->folder, batch->ns, &id, err));
  }
  return WEIR_OK;
}

const weir_cleaner_ops txn_cleaner_ops = {.abi_version = WEIR_ABI_VERSION,
                                          .struct_size = sizeof(txn_cleaner_ops),
                                          .ref = cleaner_ref,
                                          .unref = cleaner_unref,
                                          .clean = clean};
