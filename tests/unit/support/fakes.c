/* SPDX-License-Identifier: Apache-2.0 */
#include "support/fakes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support/rows.h"

fake_state fake;

void fake_reset(void) {
  weir_schema_unref(fake.resolved);
  weir_batch_unref(fake.batch);
  memset(&fake, 0, sizeof(fake));
  fake.contract.consistency = WEIR_COMMITTABLE;
  fake.contract.topology = WEIR_MULTI_WRITER;
  fake.source_contract.replay = WEIR_SOURCE_REPLAYABLE;
  fake.bytes = 4;
  fake.fail = WEIR_E_IO;
  fake.fail_message = "the disk is gone";
}

static weir_status fake_hook(const char *name, const weir_call *call, weir_error *err) {
  size_t used = strlen(fake.log);
  snprintf(fake.log + used, sizeof(fake.log) - used, "%s ", name);
  if (fake.block_at && strcmp(fake.block_at, name) == 0) {
    struct timespec nap = {.tv_nsec = 100000};
    while (!weir_call_cancelled(call)) nanosleep(&nap, NULL);
    if (!fake.fail_at) return WEIR_OK;
  }
  if (!fake.fail_at || strcmp(fake.fail_at, name) != 0) return WEIR_OK;
  if (!fake.fail_message) return fake.fail;
  return weir_error_set(err, fake.fail, fake.fail_flags, "%s", fake.fail_message);
}

#define HOOK(name, call)                               \
  do {                                                 \
    weir_status status_ = fake_hook(#name, call, err); \
    if (status_) return status_;                       \
  } while (0)

static weir_status fake_bytes(weir_bytes *out, weir_error *err) {
  if (fake.bytes == SIZE_MAX) return WEIR_OK;
  uint8_t *data = calloc(1, fake.bytes + 1);
  weir_status status = weir_bytes_copy(out, data, fake.bytes, err);
  free(data);
  if (fake.bytes_without_data) {
    /* The copy is freed by its own release, which goes by private_data. */
    out->data = NULL;
  }
  return status;
}

static weir_status create(const weir_host *host, weir_sink *out, weir_error *err) {
  HOOK(create, NULL);
  out->ops = &fake_sink_ops;
  out->state = (void *)host;
  return WEIR_OK;
}
static void release(weir_sink *sink) {
  fake.released++;
  (void)fake_hook("release", NULL, NULL);
  sink->ops = NULL;
}
static int32_t cancellation_policy(weir_sink *sink) {
  (void)sink;
  return fake.policy;
}
static weir_status bind_runtime_context(weir_sink *sink, const weir_namespace *ns,
                                        uint64_t participant, weir_error *err) {
  (void)sink, (void)ns, (void)participant;
  HOOK(bind_runtime_context, NULL);
  return WEIR_OK;
}
static weir_status contract(weir_sink *sink, const weir_options *options,
                            weir_contract *out, weir_error *err) {
  (void)sink, (void)options;
  HOOK(contract, NULL);
  *out = fake.contract;
  return WEIR_OK;
}
static weir_status keyed_mutation_key(weir_sink *sink, const weir_options *options,
                                      weir_names *out, weir_error *err) {
  (void)sink, (void)options;
  HOOK(keyed_mutation_key, NULL);
  size_t n = 0;
  while (n < 4 && fake.key[n]) n++;
  return n || fake.empty_key ? weir_names_copy(out, fake.key, n, err) : WEIR_OK;
}
static weir_status resolve_schema(weir_sink *sink, const weir_call *call,
                                  const weir_options *options, weir_schema *input,
                                  weir_binding *out, weir_error *err) {
  (void)sink, (void)options;
  if (!fake.no_binding) {
    weir_status status = weir_binding_logical(input, out, err);
    if (status) return status;
  }
  HOOK(resolve_schema, call);
  return WEIR_OK;
}
static weir_status prepare_schema(weir_sink *sink, const weir_call *call,
                                  const weir_options *options, weir_binding *binding,
                                  weir_error *err) {
  (void)sink, (void)options;
  HOOK(prepare_schema, call);
  return weir_binding_identify(binding, "folder", "7:42", err);
}
static weir_status open_hook(weir_sink *sink, const weir_call *call,
                             const weir_options *options, const weir_binding *binding,
                             weir_error *err) {
  (void)sink, (void)options;
  HOOK(open, call);
  weir_schema_unref(fake.resolved);
  fake.resolved = weir_schema_ref(binding->schema);
  return WEIR_OK;
}
static weir_status write_batch(weir_sink *sink, const weir_call *call, weir_batch *batch,
                               weir_write_result *out, weir_error *err) {
  (void)sink;
  HOOK(write_batch, call);
  out->records = (uint64_t)weir_batch_rows(batch) - fake.short_by;
  out->bytes = 100;
  return WEIR_OK;
}
static weir_status schema(weir_sink *sink, struct ArrowSchema *out, weir_error *err) {
  (void)sink;
  HOOK(schema, NULL);
  if (fake.schema && !*fake.schema) return WEIR_OK;
  if (!fake.schema) return weir_schema_export(fake.resolved, out, err);
  weir_schema *s = rows_schema(fake.schema);
  weir_status status = weir_schema_export(s, out, err);
  weir_schema_unref(s);
  return status;
}
static weir_status checkpoint_artifact_intent(weir_sink *sink, const weir_call *call,
                                              uint64_t epoch, weir_bytes *out,
                                              weir_error *err) {
  (void)sink, (void)epoch;
  HOOK(checkpoint_artifact_intent, call);
  return fake_bytes(out, err);
}
static weir_status begin_epoch(weir_sink *sink, const weir_call *call, uint64_t epoch,
                               weir_error *err) {
  (void)sink, (void)epoch;
  HOOK(begin_epoch, call);
  return WEIR_OK;
}
static weir_status pre_commit(weir_sink *sink, const weir_call *call, uint64_t epoch,
                              weir_bytes *out, weir_error *err) {
  (void)sink, (void)epoch;
  weir_status status = fake_bytes(out, err);
  if (status) return status;
  HOOK(pre_commit, call);
  return WEIR_OK;
}
static weir_status rollback_epoch(weir_sink *sink, const weir_call *call, uint64_t epoch,
                                  weir_error *err) {
  (void)sink, (void)epoch;
  HOOK(rollback_epoch, call);
  return WEIR_OK;
}
static uint64_t suggested_write_timeout_ms(weir_sink *sink) {
  (void)sink;
  return 0;
}
static weir_status flush(weir_sink *sink, const weir_call *call, weir_error *err) {
  (void)sink;
  HOOK(flush, call);
  return WEIR_OK;
}
static weir_status close_hook(weir_sink *sink, const weir_call *call, weir_error *err) {
  (void)sink;
  HOOK(close, call);
  return WEIR_OK;
}
static weir_committer as_coordinated_committer(weir_sink *sink) {
  if (fake.no_committer) return (weir_committer){NULL, NULL};
  return (weir_committer){&fake_committer_ops, sink};
}
static weir_cleaner coordinated_abort_cleaner(weir_sink *sink) {
  (void)sink;
  fake.cleaners++;
  return (weir_cleaner){&fake_cleaner_ops, &fake};
}

static weir_status take_over(void *state, const weir_call *call, const weir_namespace *ns,
                             weir_error *err) {
  (void)state, (void)ns;
  HOOK(take_over, call);
  return WEIR_OK;
}
static weir_status observe_cursor(void *state, const weir_call *call,
                                  const weir_namespace *ns, weir_cursor *out,
                                  weir_error *err) {
  (void)state, (void)ns;
  HOOK(observe_cursor, call);
  *out = fake.cursor;
  return WEIR_OK;
}
static void release_list(weir_cursor_list *list) {
  free((void *)list->v);
  list->release = NULL;
}
static weir_status find_cursors(void *state, const weir_call *call,
                                const weir_namespace *ns, weir_cursor_list *out,
                                weir_error *err) {
  (void)state, (void)ns;
  HOOK(find_cursors, call);
  out->n = fake.found;
  if (fake.found_nothing) return WEIR_OK;
  weir_found_cursor *v = calloc(fake.found + 1, sizeof(*v));
  for (size_t i = 0; i < fake.found; i++) v[i].cursor = fake.cursor;
  out->v = v;
  out->release = release_list;
  return WEIR_OK;
}
static weir_status commit_aggregated(void *state, const weir_call *call,
                                     const weir_commit_batch *batch, weir_cursor *out,
                                     weir_error *err) {
  (void)state;
  HOOK(commit_aggregated, call);
  *out = fake.cursor.checkpoint ? fake.cursor
                                : batch->attempts[batch->n_attempts - 1].cursor;
  return batch->ns && batch->ns->sink_id[0] ? WEIR_OK : WEIR_E_INTERNAL;
}

const weir_committer_ops fake_committer_ops = {
    WEIR_ABI_VERSION, sizeof(weir_committer_ops), take_over, observe_cursor,
    find_cursors,     commit_aggregated};

static void cleaner_ref(void *state) {
  (void)state;
  fake.cleaners++;
}
static void cleaner_unref(void *state) {
  if (state) fake.cleaners--;
}
static weir_status clean(void *state, const weir_call *call,
                         const weir_abort_batch *batch, weir_error *err) {
  (void)state;
  HOOK(clean, call);
  return batch->ns && batch->ns->sink_id[0] ? WEIR_OK : WEIR_E_INTERNAL;
}
const weir_cleaner_ops fake_cleaner_ops = {WEIR_ABI_VERSION, sizeof(weir_cleaner_ops),
                                           cleaner_ref, cleaner_unref, clean};

static const weir_option options[] = {
    {.name = "path", .type = WEIR_OPT_STRING, .default_value = "x", .text = "Where."},
    {0}};

const weir_sink_ops fake_sink_ops = {
    .abi_version = WEIR_ABI_VERSION,
    .struct_size = sizeof(weir_sink_ops),
    .name = "fake",
    .text = "A sink for tests.",
    .options = options,
    .create = create,
    .release = release,
    .cancellation_policy = cancellation_policy,
    .bind_runtime_context = bind_runtime_context,
    .contract = contract,
    .keyed_mutation_key = keyed_mutation_key,
    .resolve_schema = resolve_schema,
    .prepare_schema = prepare_schema,
    .open = open_hook,
    .write_batch = write_batch,
    .schema = schema,
    .checkpoint_artifact_intent = checkpoint_artifact_intent,
    .begin_epoch = begin_epoch,
    .pre_commit = pre_commit,
    .rollback_epoch = rollback_epoch,
    .suggested_write_timeout_ms = suggested_write_timeout_ms,
    .flush = flush,
    .close = close_hook,
    .as_coordinated_committer = as_coordinated_committer,
    .coordinated_abort_cleaner = coordinated_abort_cleaner,
};

const weir_sink_ops fake_plain_sink_ops = {
    .abi_version = WEIR_ABI_VERSION,
    .struct_size = sizeof(weir_sink_ops),
    .name = "plain",
    .text = "A sink for tests with nothing but what is required.",
    .options = options,
    .create = create,
    .release = release,
    .open = open_hook,
    .write_batch = write_batch,
    .schema = schema,
    .suggested_write_timeout_ms = suggested_write_timeout_ms,
    .close = close_hook,
};

/* ---- source --------------------------------------------------------------------------------- */

static weir_status source_create(const weir_host *host, weir_source *out,
                                 weir_error *err) {
  HOOK(create, NULL);
  out->ops = &fake_source_ops;
  out->state = (void *)host;
  return WEIR_OK;
}
static void source_release(weir_source *source) {
  fake.released++;
  source->ops = NULL;
}
static int32_t source_policy(weir_source *source) {
  (void)source;
  return fake.policy;
}
static weir_status source_contract(weir_source *source, const weir_options *opts,
                                   weir_source_contract *out, weir_error *err) {
  (void)source, (void)opts;
  HOOK(contract, NULL);
  *out = fake.source_contract;
  return WEIR_OK;
}
static weir_status source_resolve(weir_source *source, const weir_call *call,
                                  const weir_options *opts, weir_schema **out,
                                  weir_error *err) {
  (void)source, (void)opts;
  HOOK(resolve_schema, call);
  if (fake.schema && !*fake.schema) return WEIR_OK;
  *out = rows_schema(fake.schema ? fake.schema : "id: int64");
  return WEIR_OK;
}
static weir_status source_open(weir_source *source, const weir_call *call,
                               const weir_options *opts, const weir_bytes *position,
                               weir_error *err) {
  (void)source, (void)opts;
  HOOK(open, call);
  if (!position) return WEIR_E_INTERNAL;
  return WEIR_OK;
}
static weir_status source_read(weir_source *source, const weir_call *call, int32_t *what,
                               weir_batch **out, weir_error *err) {
  (void)source;
  HOOK(read, call);
  *what = fake.read ? fake.read : fake.batch ? WEIR_READ_BATCH : WEIR_READ_END;
  *out = fake.batch;
  fake.batch = NULL;
  return WEIR_OK;
}
static weir_status source_position(weir_source *source, weir_bytes *out,
                                   weir_error *err) {
  (void)source;
  HOOK(position, NULL);
  return fake_bytes(out, err);
}
static weir_status source_seek(weir_source *source, const weir_call *call,
                               const weir_bytes *position, weir_error *err) {
  (void)source;
  HOOK(seek, call);
  return position ? WEIR_OK : WEIR_E_INTERNAL;
}
static weir_status source_committed(weir_source *source, const weir_call *call,
                                    uint64_t checkpoint, const weir_bytes *position,
                                    weir_error *err) {
  (void)source, (void)checkpoint;
  HOOK(committed, call);
  return position ? WEIR_OK : WEIR_E_INTERNAL;
}
static weir_status source_close(weir_source *source, const weir_call *call,
                                weir_error *err) {
  (void)source;
  HOOK(close, call);
  return WEIR_OK;
}

const weir_source_ops fake_source_ops = {
    .abi_version = WEIR_ABI_VERSION,
    .struct_size = sizeof(weir_source_ops),
    .name = "fake",
    .text = "A source for tests.",
    .options = options,
    .create = source_create,
    .release = source_release,
    .cancellation_policy = source_policy,
    .contract = source_contract,
    .resolve_schema = source_resolve,
    .open = source_open,
    .read = source_read,
    .position = source_position,
    .seek = source_seek,
    .committed = source_committed,
    .close = source_close,
};

const weir_source_ops fake_plain_source_ops = {
    .abi_version = WEIR_ABI_VERSION,
    .struct_size = sizeof(weir_source_ops),
    .name = "plain",
    .text = "A source for tests with nothing but what is required.",
    .options = options,
    .create = source_create,
    .release = source_release,
    .resolve_schema = source_resolve,
    .open = source_open,
    .read = source_read,
    .position = source_position,
    .close = source_close,
};
