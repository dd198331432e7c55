/* SPDX-License-Identifier: Apache-2.0 */
/* One life of a runtime, as far as one sink sees it. Numbers of steps are those of docs/protocol.md. */
#include <stdlib.h>
#include <string.h>

#include "conform/conform.h"
#include "coord/coord.h"

/* A hook call as a step; ends the child when it fails. */
#define HOOK(rig, name, call)                       \
  do {                                              \
    weir_error hook_err_ = {0};                     \
    weir_error *err = &hook_err_;                   \
    conform_step((rig), (name));                    \
    weir_status hook_status_ = (call);              \
    conform_step_done(rig);                         \
    conform_must((rig), hook_status_, (name), err); \
  } while (0)

/* A durable step of the checkpoint store: a place to be killed before. */
static void store_step(conform_rig *rig, const char *what) {
  conform_step(rig, what);
  conform_step_done(rig);
}

conform_attempt *conform_attempt_of(conform_rig *rig, uint64_t number) {
  return &rig->store->attempts[number - 1];
}

/* ---- from create to open ----------------------------------------------------------------------- */

static void name_namespace(conform_rig *rig) {
  rig->ns = (weir_namespace){.struct_size = sizeof(rig->ns),
                             .pipeline = "weir-conform",
                             .sink_id = "conform",
                             .may_replace = rig->store->n == 0 && !rig->may_not_replace};
  base_sha256("weir-conform", 12, rig->ns.identity, NULL);
  memcpy(rig->ns.deployment, rig->store->deployment, WEIR_UUID_SIZE);
}

connector_sink *conform_create(conform_rig *rig, uint64_t participant) {
  connector_sink *sink = NULL;
  name_namespace(rig);
  HOOK(rig, "create",
       connector_sink_new(rig->c->spec, participant, rig->token, &sink, err));
  HOOK(rig, "contract", connector_sink_contract(sink, &rig->contract, err));
  HOOK(rig, "bind_runtime_context", connector_sink_bind(sink, &rig->ns, err));
  return sink;
}

weir_status conform_prepare_target(conform_rig *rig, weir_error *err) {
  weir_schema *input = NULL;
  conform_must(rig, conform_input_schema(&rig->c->key, &input, err), "the schema", err);
  conform_step(rig, "resolve_schema");
  weir_status status =
      connector_sink_resolve_schema(rig->sinks[0], &rig->call, input, &rig->binding, err);
  conform_step_done(rig);
  weir_schema_unref(input);
  if (status) return status;
  conform_step(rig, "prepare_schema");
  status = connector_sink_prepare_schema(rig->sinks[0], &rig->call, &rig->binding, err);
  conform_step_done(rig);
  if (rig->binding.identity)
    conform_look(rig->c, "the binding's identity", rig->binding.identity,
                 strlen(rig->binding.identity));
  return status;
}

static void open_all(conform_rig *rig) {
  for (size_t i = 0; i < rig->n; i++)
    HOOK(rig, "open", connector_sink_open(rig->sinks[i], &rig->call, &rig->binding, err));
}

void conform_start(conform_rig *rig, size_t writers) {
  weir_error err = {0};
  rig->token = ++rig->store->token; /* C1 */
  for (rig->n = 0; rig->n < writers; rig->n++)
    rig->sinks[rig->n] = conform_create(rig, rig->n + 1);
  conform_must(rig, conform_prepare_target(rig, &err), "prepare_schema", &err);
  open_all(rig);
}

void conform_stop(conform_rig *rig) {
  for (size_t i = 0; i < rig->n; i++)
    HOOK(rig, "close", connector_sink_close(rig->sinks[i], &rig->call, err));
  for (size_t i = 0; i < rig->n; i++) {
    conform_step(rig, "release");
    connector_sink_unref(rig->sinks[i]);
    conform_step_done(rig);
  }
  weir_binding_done(&rig->binding);
  rig->n = 0;
}

/* ---- epochs ------------------------------------------------------------------------------------ */

uint64_t conform_begin(conform_rig *rig) {
  conform_store *s = rig->store;
  uint64_t number = s->n + 1;
  conform_attempt a = {
      .state = CONFORM_RESERVED, .cursor = {.checkpoint = number}, .n = rig->n};
  if (s->n == CONFORM_ATTEMPTS) abort();
  for (size_t i = 0; i < rig->n; i++) {
    weir_bytes intent = {0};
    HOOK(rig, "checkpoint_artifact_intent",
         connector_sink_intent(rig->sinks[i], &rig->call, number, &intent, err));
    conform_look(rig->c, "an artifact intent", intent.data, intent.size);
    a.intents[i] = conform_keep(rig->memory, &intent);
    weir_bytes_release(&intent);
  }
  store_step(rig, "the reservation"); /* C5 */
  s->attempts[number - 1] = a;
  s->n = number;
  for (size_t i = 0; i < rig->n; i++) {
    HOOK(rig, "begin_epoch",
         connector_sink_begin_epoch(rig->sinks[i], &rig->call, number, err));
  }
  return number;
}

weir_status conform_try_write(conform_rig *rig, size_t sink, weir_batch *batch,
                              uint64_t *taken, weir_error *err) {
  weir_write_result result = {0};
  conform_step(rig, "write_batch");
  weir_status status =
      connector_sink_write_batch(rig->sinks[sink], &rig->call, batch, &result, err);
  conform_step_done(rig);
  if (!status) *taken += (uint64_t)weir_batch_rows(batch);
  return status;
}

void conform_write(conform_rig *rig, size_t sink, uint64_t first, size_t rows) {
  enum { MOST = 64 };
  conform_row made[MOST];
  weir_batch *batch = NULL;
  weir_error err = {0};
  uint64_t taken = 0;
  if (rows > MOST) abort();
  for (size_t i = 0; i < rows; i++) made[i] = (conform_row){first + i, 'U'};
  conform_must(rig,
               conform_rows(&rig->c->key, connector_sink_schema(rig->sinks[sink]), made,
                            rows, &batch, &err),
               "the kit's rows", &err);
  conform_must(rig, conform_try_write(rig, sink, batch, &taken, &err), "write_batch",
               &err);
  weir_batch_unref(batch);
}

void conform_fill(conform_rig *rig, uint64_t attempt, uint32_t empty) {
  conform_attempt *a = conform_attempt_of(rig, attempt);
  for (size_t i = 0; i < rig->n; i++) {
    if (empty >> i & 1) continue;
    conform_write(rig, i, rig->store->next_row + a->rows, CONFORM_ROWS);
    a->rows += CONFORM_ROWS;
  }
}

void conform_prepare(conform_rig *rig, uint64_t attempt) {
  conform_attempt *a = conform_attempt_of(rig, attempt);
  for (size_t i = 0; i < rig->n; i++) {
    weir_bytes descriptor = {0};
    HOOK(rig, "pre_commit",
         connector_sink_pre_commit(rig->sinks[i], &rig->call, attempt, &descriptor, err));
    conform_look(rig->c, "a descriptor", descriptor.data, descriptor.size);
    a->descriptors[i] = conform_keep(rig->memory, &descriptor);
    weir_bytes_release(&descriptor);
  }
}

static void fill_entries(conform_rig *rig, const conform_attempt *a,
                         weir_commit_entry *out) {
  for (size_t i = 0; i < a->n; i++) {
    const conform_bytes *d = &a->descriptors[i];
    out[i] =
        (weir_commit_entry){.participant_id = i + 1,
                            .present = d->present,
                            .descriptor = d->present ? rig->memory->arena + d->at : NULL,
                            .size = d->size};
  }
}

void conform_decide(conform_rig *rig, uint64_t attempt) {
  conform_attempt *a = conform_attempt_of(rig, attempt);
  weir_commit_entry entries[CONFORM_WRITERS];
  weir_error err = {0};
  fill_entries(rig, a, entries);
  store_step(rig, "the decision"); /* C8 */
  a->cursor.token = rig->token;
  conform_must(
      rig, coord_digest(rig->ns.sink_id, attempt, entries, a->n, a->cursor.digest, &err),
      "the digest", &err);
  a->state = CONFORM_DECIDED;
  rig->store->next_row += a->rows;
}

void conform_make_batch(conform_rig *rig, uint64_t first, uint64_t last,
                        conform_batch *out) {
  memset(out, 0, sizeof(*out));
  weir_commit_batch *b = &out->batch;
  b->struct_size = sizeof(*b);
  b->attempts = out->attempts;
  for (uint64_t n = 1; n <= last; n++) {
    const conform_attempt *a = conform_attempt_of(rig, n);
    if (a->state != CONFORM_DECIDED) continue;
    if (n < first || b->n_attempts == BASE_COUNT(out->attempts)) {
      if (n < first) b->predecessor = a->cursor;
      continue;
    }
    weir_commit_entry *entries = out->entries + b->n_attempts * CONFORM_WRITERS;
    fill_entries(rig, a, entries);
    out->attempts[b->n_attempts++] =
        (weir_commit_attempt){.cursor = a->cursor, .entries = entries, .n_entries = a->n};
  }
}

weir_status conform_commit(conform_rig *rig, const conform_batch *batch,
                           weir_error *err) {
  weir_cursor cursor = {0};
  conform_step(rig, "commit_aggregated"); /* C9 */
  weir_status status =
      connector_sink_commit(rig->sinks[0], &rig->call, &batch->batch, &cursor, err);
  conform_step_done(rig);
  return status;
}

weir_cursor conform_observe(conform_rig *rig) {
  weir_cursor cursor = {0};
  HOOK(rig, "observe_cursor",
       connector_sink_observe_cursor(rig->sinks[0], &rig->call, &cursor, err));
  return cursor;
}

/* The first decided attempt beyond the cursor, which must be one of this history; 0: there is none. */
static uint64_t first_owed(conform_rig *rig, const weir_cursor *cursor) {
  uint64_t n = cursor->checkpoint;
  if (n && (n > rig->store->n || conform_attempt_of(rig, n)->state != CONFORM_DECIDED ||
            !weir_cursor_equal(&conform_attempt_of(rig, n)->cursor, cursor))) {
    conform_wrong(rig,
                  "the cursor at the target says that attempt %llu (token %llu) is "
                  "published, which nobody has decided so",
                  (unsigned long long)n, (unsigned long long)cursor->token);
  }
  for (n++; n <= rig->store->n; n++) {
    if (conform_attempt_of(rig, n)->state == CONFORM_DECIDED) return n;
  }
  return 0;
}

void conform_publish(conform_rig *rig) {
  conform_batch batch;
  weir_error err = {0};
  weir_cursor cursor = conform_observe(rig);
  uint64_t first = first_owed(rig, &cursor);
  if (!first) return;
  conform_make_batch(rig, first, rig->store->n, &batch);
  conform_must(rig, conform_commit(rig, &batch, &err), "commit_aggregated", &err);
}

uint64_t conform_decided(conform_rig *rig) {
  uint64_t n = conform_begin(rig);
  conform_fill(rig, n, 0);
  conform_prepare(rig, n);
  conform_decide(rig, n);
  return n;
}

uint64_t conform_epoch(conform_rig *rig) {
  uint64_t n = conform_decided(rig);
  conform_publish(rig);
  return n;
}

/* ---- ways back --------------------------------------------------------------------------------- */

void conform_rollback(conform_rig *rig, uint64_t attempt) {
  if (attempt <= rig->store->n &&
      conform_attempt_of(rig, attempt)->state == CONFORM_RESERVED) {
    store_step(rig, "the abort"); /* C12 */
    conform_attempt_of(rig, attempt)->state = CONFORM_ABORTED;
  }
  for (size_t i = 0; i < rig->n; i++) {
    HOOK(rig, "rollback_epoch",
         connector_sink_rollback_epoch(rig->sinks[i], &rig->call, attempt, err));
  }
}

connector_cleaner *conform_cleaner(conform_rig *rig) {
  connector_cleaner *cleaner = NULL;
  HOOK(rig, "coordinated_abort_cleaner",
       connector_sink_cleaner(rig->sinks[0], &cleaner, err));
  return cleaner;
}

void conform_clean(conform_rig *rig, connector_cleaner *cleaner, const conform_attempt *a,
                   bool intents) {
  weir_abort_entry entries[CONFORM_WRITERS];
  weir_abort_batch batch = {
      .struct_size = sizeof(batch), .entries = entries, .n_entries = a->n};
  for (size_t i = 0; i < a->n; i++) {
    const conform_bytes *intent = &a->intents[i];
    bool has = intents && intent->present;
    entries[i] =
        (weir_abort_entry){.checkpoint = a->cursor.checkpoint,
                           .participant_id = i + 1,
                           .has_intent = has,
                           .intent = has ? rig->memory->arena + intent->at : NULL,
                           .size = has ? intent->size : 0};
  }
  HOOK(rig, "clean", connector_cleaner_clean(cleaner, &rig->call, &batch, err));
}

/* C15 and C16: what was aborted before the cursor. */
static void clean_owed(conform_rig *rig) {
  weir_cursor cursor = conform_observe(rig);
  connector_cleaner *cleaner = conform_cleaner(rig);
  for (uint64_t n = 1; cleaner && n < cursor.checkpoint; n++) {
    conform_attempt *a = conform_attempt_of(rig, n);
    if (a->state != CONFORM_ABORTED || a->cleaned) continue;
    conform_clean(rig, cleaner, a, true);
    a->cleaned = true;
  }
  connector_cleaner_free(cleaner);
}

void conform_recover(conform_rig *rig) {
  HOOK(rig, "take_over", connector_sink_take_over(rig->sinks[0], &rig->call, err));
  conform_publish(rig); /* C2, C3 */
  for (uint64_t n = 1; n <= rig->store->n; n++) {
    if (conform_attempt_of(rig, n)->state != CONFORM_RESERVED) continue;
    store_step(rig, "the abort"); /* C4 */
    conform_attempt_of(rig, n)->state = CONFORM_ABORTED;
  }
  clean_owed(rig);
}

void conform_open(conform_rig *rig) {
  conform_start(rig, 1);
  conform_recover(rig);
}

void conform_one_epoch(conform_rig *rig) {
  conform_open(rig);
  conform_epoch(rig);
  conform_stop(rig);
}

void conform_only_recover(conform_rig *rig) {
  conform_open(rig);
  conform_stop(rig);
}
