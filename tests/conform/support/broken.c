/* SPDX-License-Identifier: Apache-2.0 */
#include "support/broken.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weir/plugin.h>

#include "support/broken_cleaner.h"
#include "support/target.h"

enum { BUFFERED = 4096, KEYS = 8 };

broken_mode broken;

typedef struct sink_state {
  const weir_host *host;
  const weir_namespace *ns;
  uint64_t participant;
  weir_schema *schema;
  char folder[400], secret[64];
  target_row rows[BUFFERED]; /* of the open epoch */
  size_t n_rows;
  uint64_t epoch, rolled_back, begun;
  char incarnations[KEYS][33]; /* of epoch n at n % KEYS */
  uint64_t epochs[KEYS];
  broken_cleaner *cleaner;
  int closed, cancelled;
} sink_state;

static bool has(broken_fault fault) {
  return broken.fault == fault;
}

weir_status broken_count(const char *folder, uint64_t *rows, weir_error *err) {
  static target_state state;
  weir_status status = target_read(folder, &state, err);
  *rows = state.n_rows;
  return status;
}

static const weir_option options[] = {{.name = "path",
                                       .type = WEIR_OPT_PATH,
                                       .flags = WEIR_OPT_REQUIRED,
                                       .text = "Folder."},
                                      {.name = "password",
                                       .type = WEIR_OPT_STRING,
                                       .flags = WEIR_OPT_SECRET,
                                       .text = "Not used."},
                                      {0}};

/* ---- before epochs ----------------------------------------------------------------------------- */

static weir_status create(const weir_host *host, weir_sink *out, weir_error *err) {
  sink_state *s = calloc(1, sizeof(*s));
  if (s) s->cleaner = broken_cleaner_new();
  if (!s || !s->cleaner) {
    free(s);
    return weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
  }
  s->host = host;
  out->state = s;
  return WEIR_OK;
}

static void release(weir_sink *sink) {
  sink_state *s = sink->state;
  if (has(RELEASE_NEEDS_A_CLOSE) && s->schema && !s->closed) abort();
  if (has(CLEANER_NEEDS_ITS_SINK)) s->cleaner->folder[0] = 0;
  broken_cleaner_ops.unref(s->cleaner);
  if (!has(LEAKS_MEMORY)) weir_schema_unref(s->schema);
  free(s);
  sink->ops = NULL;
}

static int32_t cancellation_policy(weir_sink *sink) {
  (void)sink;
  return broken.policy;
}

static weir_status contract(weir_sink *sink, const weir_options *given,
                            weir_contract *out, weir_error *err) {
  static int asked;
  (void)sink, (void)given, (void)err;
  if (has(CONTRACT_OPENS_A_FILE)) close(open("/dev/null", O_RDONLY | O_CLOEXEC));
  out->consistency = broken.consistency;
  out->topology = WEIR_MULTI_WRITER;
  out->input = broken.keyed ? WEIR_INPUT_KEYED : WEIR_INPUT_APPEND;
  out->claims = broken.consistency == WEIR_COMMITTABLE;
  if (has(CONTRACT_CHANGES_ITS_MIND)) out->overlap = asked++ & 1;
  return WEIR_OK;
}

static weir_status keyed_mutation_key(weir_sink *sink, const weir_options *given,
                                      weir_names *out, weir_error *err) {
  static const char *const key[] = {"id"};
  (void)sink, (void)given;
  return broken.keyed ? weir_names_copy(out, key, 1, err) : WEIR_OK;
}

static weir_status bind_context(weir_sink *sink, const weir_namespace *ns,
                                uint64_t participant, weir_error *err) {
  sink_state *s = sink->state;
  (void)err;
  s->ns = ns;
  s->participant = participant;
  return WEIR_OK;
}

static void take_options(sink_state *s, const weir_options *given) {
  const char *secret = weir_options_string(given, "password");
  snprintf(s->folder, sizeof(s->folder), "%s", weir_options_string(given, "path"));
  snprintf(s->secret, sizeof(s->secret), "%s", secret ? secret : "");
  snprintf(s->cleaner->folder, sizeof(s->cleaner->folder), "%s", s->folder);
}

static weir_status claim(sink_state *s, weir_error *err) {
  static target_state t;
  int32_t append = 0;
  weir_namespace ns = *s->ns;
  int lock = target_lock(s->folder);
  if (lock < 0) return weir_error_errno(err, errno, "cannot lock the target");
  if (has(SECOND_DEPLOYMENT_WELCOME)) ns.may_replace = 1;
  weir_status status = target_read(s->folder, &t, err);
  if (!status) status = weir_claim_start(&ns, t.claims[0], t.n_claims, &append, err);
  if (!status && append) {
    memcpy(t.claims[t.n_claims], s->ns->deployment, WEIR_UUID_SIZE);
    t.cursors[t.n_claims++] = (weir_cursor){0};
    status = target_write(s->folder, &t, err);
  }
  close(lock);
  return status;
}

static weir_status prepare_schema(weir_sink *sink, const weir_call *call,
                                  const weir_options *given, weir_binding *binding,
                                  weir_error *err) {
  sink_state *s = sink->state;
  static int times;
  char number[16];
  (void)call;
  take_options(s, given);
  weir_status status = claim(s, err);
  snprintf(number, sizeof(number), "%d", has(PREPARES_ANOTHER_TARGET) ? times++ : 0);
  if (!status) status = weir_binding_identify(binding, "folder", number, err);
  if (!status && has(SECRET_IN_IDENTITY))
    status = weir_binding_identify(binding, "password", s->secret, err);
  return status;
}

static void *forever(void *arg) {
  for (;;) pause();
  return arg;
}

static weir_status open_sink(weir_sink *sink, const weir_call *call,
                             const weir_options *given, const weir_binding *binding,
                             weir_error *err) {
  sink_state *s = sink->state;
  pthread_t thread;
  weir_status status = weir_call_check(call, "open", err);
  if (status) return status;
  take_options(s, given);
  s->schema = weir_schema_ref(binding->schema);
  if (has(LEAKS_A_THREAD)) pthread_create(&thread, NULL, forever, NULL);
  if (has(LEAKS_A_FILE)) (void)!open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (has(SECRET_IN_LOG)) s->host->log(s->host->ctx, WEIR_LOG_INFO, "broken", s->secret);
  return WEIR_OK;
}

static weir_status schema(weir_sink *sink, struct ArrowSchema *out, weir_error *err) {
  return weir_schema_export(((sink_state *)sink->state)->schema, out, err);
}

/* ---- epochs ------------------------------------------------------------------------------------ */

static void own_name(const sink_state *s, uint64_t epoch, char *out, size_t size) {
  snprintf(out, size, "%s/staged-%" PRIu64 "-%" PRIu64 "-%s", s->folder, epoch,
           s->participant, s->incarnations[epoch % KEYS]);
}

static void staged_name(const sink_state *s, uint64_t epoch, char *out, size_t size) {
  if (has(WRITERS_SHARE_A_NAME)) {
    snprintf(out, size, "%s/staged-%" PRIu64 "-of-%d", s->folder, epoch, (int)getpid());
  } else {
    own_name(s, epoch, out, size);
  }
}

/* The name of a staged file with its NUL, and behind that, perhaps, what must not be there. */
static weir_status give_name(const sink_state *s, const char *path, bool secret,
                             weir_bytes *out, weir_error *err) {
  char text[256];
  int n = snprintf(text, sizeof(text), "%s%c%s", strrchr(path, '/') + 1, 0,
                   secret ? s->secret : "");
  return weir_bytes_copy(out, text, (size_t)n, err);
}

static weir_status intent(weir_sink *sink, const weir_call *call, uint64_t epoch,
                          weir_bytes *out, weir_error *err) {
  sink_state *s = sink->state;
  static char large[WEIR_MAX_INTENT + 1];
  uint8_t random[16];
  char path[512];
  weir_status status = weir_call_check(call, "intent", err);
  if (!status && (s->epochs[epoch % KEYS] != epoch || has(INTENT_CHANGES))) {
    status = s->host->random(s->host->ctx, random, sizeof(random), err);
    for (int i = 0; i < 16; i++)
      snprintf(s->incarnations[epoch % KEYS] + 2 * i, 3, "%02x", random[i]);
    s->epochs[epoch % KEYS] = epoch;
  }
  if (status) return status;
  if (has(INTENT_TOO_LARGE)) return weir_bytes_copy(out, large, sizeof(large), err);
  own_name(s, epoch, path, sizeof(path));
  return give_name(s, path, has(SECRET_IN_INTENT), out, err);
}

static weir_status begin_epoch(weir_sink *sink, const weir_call *call, uint64_t epoch,
                               weir_error *err) {
  sink_state *s = sink->state;
  char path[512];
  weir_status status = weir_call_check(call, "begin", err);
  if (status) return status;
  if (has(NEXT_EPOCH_DROPS_THE_LAST) && s->epoch) {
    staged_name(s, s->epoch, path, sizeof(path));
    unlink(path);
  }
  if (has(SAFE_BUT_NOT_AFTER_A_CANCEL) && s->cancelled)
    return weir_error_set(err, WEIR_E_INVALID_STATE, 0, "a write was cancelled once");
  s->epoch = s->begun = epoch;
  if (!has(ROLLBACK_KEEPS_ROWS)) s->n_rows = 0;
  return WEIR_OK;
}

/* Row i of the batch; false: it is bad. */
static bool read_row(const struct ArrowArray *array, int64_t i, target_row *out) {
  const struct ArrowArray *id = array->children[0], *text = array->children[1];
  const uint8_t *valid = id->buffers[0];
  int64_t at = id->offset + i;
  if (valid && !(valid[at >> 3] >> (at & 7) & 1) && !has(TAKES_NULL_KEYS)) return false;
  *out = (target_row){.id = ((const int64_t *)id->buffers[1])[at], .op = 'U'};
  const int32_t *ends = text->buffers[1];
  if (memchr((const char *)text->buffers[2] + ends[text->offset + i], 0xff,
             (size_t)(ends[text->offset + i + 1] - ends[text->offset + i])))
    return false;
  if (!broken.keyed) return true;
  const struct ArrowArray *op = array->children[2];
  out->op =
      ((const char *)op->buffers[2])[((const int32_t *)op->buffers[1])[op->offset + i]];
  return true;
}

static weir_status write_batch(weir_sink *sink, const weir_call *call, weir_batch *batch,
                               weir_write_result *out, weir_error *err) {
  sink_state *s = sink->state;
  size_t before = s->n_rows;
  int64_t n = weir_batch_rows(batch);
  if (has(WRITE_IGNORES_THE_DEADLINE) && weir_call_cancelled(call)) forever(NULL);
  if (has(SAFE_BUT_NOT_AFTER_A_CANCEL) && weir_call_cancelled(call)) s->cancelled = 1;
  weir_status status = weir_call_check(call, "write", err);
  if (status && has(SECRET_IN_ERROR))
    weir_error_set(err, status, 0, "too late for %s", s->secret);
  if (status) return status;
  for (int64_t i = 0; i < n && s->n_rows < BUFFERED; i++) {
    if (read_row(weir_batch_array(batch), i, &s->rows[s->n_rows++])) continue;
    s->n_rows = has(TAKES_PART_OF_A_BAD_BATCH) ? s->n_rows - 1 : before;
    weir_error_set(err, WEIR_E_BAD_DATA, WEIR_ERR_BAD_DATA, "a row that is no good");
    return weir_error_at(err, WEIR_E_BAD_DATA, i, 0);
  }
  *out = (weir_write_result){.records = (uint64_t)n, .bytes = (uint64_t)n * 8};
  return WEIR_OK;
}

/* Straight into the target. */
static weir_status publish_now(sink_state *s, weir_error *err) {
  static target_state t;
  int lock = target_lock(s->folder);
  if (lock < 0) return weir_error_errno(err, errno, "cannot lock the target");
  weir_status status = target_read(s->folder, &t, err);
  for (size_t i = 0; i < s->n_rows; i++) target_apply(&t, &s->rows[i], broken.keyed);
  if (!status) status = target_write(s->folder, &t, err);
  if (!status) s->n_rows = 0;
  close(lock);
  return status;
}

static weir_status stage(sink_state *s, weir_error *err) {
  char path[512];
  size_t size = s->n_rows * sizeof(s->rows[0]);
  staged_name(s, s->epoch, path, sizeof(path));
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  ssize_t n = fd < 0 ? -1 : write(fd, s->rows, size);
  int errnum = errno;
  if (fd >= 0) close(fd);
  return n == (ssize_t)size || has(STAGES_IN_VAIN)
             ? WEIR_OK
             : weir_error_errno(err, errnum, "cannot stage");
}

static weir_status pre_commit(weir_sink *sink, const weir_call *call, uint64_t epoch,
                              weir_bytes *out, weir_error *err) {
  sink_state *s = sink->state;
  char path[512];
  (void)epoch;
  weir_status status = weir_call_check(call, "pre_commit", err);
  if (status || (!s->n_rows && !has(DESCRIBES_NOTHING))) return status;
  if (has(DURABLE_IN_MEMORY_ONLY)) return WEIR_OK;
  if (broken.consistency != WEIR_COMMITTABLE || has(COMMITS_IN_PRE_COMMIT)) {
    status = publish_now(s, err);
    if (status || broken.consistency != WEIR_COMMITTABLE) return status;
  }
  status = stage(s, err);
  if (status) return status;
  s->n_rows = 0;
  staged_name(s, s->epoch, path, sizeof(path));
  return give_name(s, path, has(SECRET_IN_DESCRIPTOR), out, err);
}

static weir_status rollback_epoch(weir_sink *sink, const weir_call *call, uint64_t epoch,
                                  weir_error *err) {
  static target_state t;
  sink_state *s = sink->state;
  char path[512];
  weir_status status = weir_call_check(call, "rollback", err);
  if (status) return status;
  if ((has(ROLLBACK_FAILS_TWICE) && s->rolled_back == epoch) ||
      (has(ROLLBACK_NEEDS_A_BEGIN) && s->begun != epoch))
    return weir_error_set(err, WEIR_E_NOT_FOUND, 0, "nothing to roll back");
  s->rolled_back = epoch;
  if (s->epoch == epoch && !has(ROLLBACK_KEEPS_ROWS)) s->n_rows = 0;
  staged_name(s, epoch, path, sizeof(path));
  if (s->epochs[epoch % KEYS] == epoch && unlink(path) && errno != ENOENT)
    return weir_error_errno(err, errno, "cannot roll back");
  if (has(ROLLBACK_DROPS_THE_DECIDED)) {
    staged_name(s, epoch - 1, path, sizeof(path));
    unlink(path);
  }
  if (has(ROLLBACK_TAKES_PUBLISHED_ROWS)) {
    status = target_read(s->folder, &t, err);
    weir_cursor *at = target_cursor(&t, s->ns);
    if (!status && at && at->checkpoint == epoch && t.n_rows) {
      t.n_rows--;
      status = target_write(s->folder, &t, err);
    }
  }
  return status;
}

static uint64_t write_timeout_ms(weir_sink *sink) {
  (void)sink;
  return 1000;
}

static weir_status flush(weir_sink *sink, const weir_call *call, weir_error *err) {
  if (has(FLUSH_IGNORES_THE_DEADLINE) && weir_call_cancelled(call)) forever(NULL);
  (void)sink;
  return weir_call_check(call, "flush", err);
}

static weir_status close_sink(weir_sink *sink, const weir_call *call, weir_error *err) {
  sink_state *s = sink->state;
  (void)call;
  s->closed = 1;
  if (has(CLOSE_DIES_IN_AN_EPOCH) && s->n_rows) abort();
  if (has(CLOSE_PUBLISHES) || broken.consistency == WEIR_DURABLE_AT_LEAST_ONCE)
    return publish_now(s, err);
  return WEIR_OK;
}

static weir_cleaner abort_cleaner(weir_sink *sink) {
  sink_state *s = sink->state;
  weir_cleaner none = {NULL, NULL};
  if (broken.consistency != WEIR_COMMITTABLE) return none;
  broken_cleaner_ops.ref(s->cleaner);
  return (weir_cleaner){&broken_cleaner_ops, s->cleaner};
}

/* ---- the committer ----------------------------------------------------------------------------- */

static weir_status observe_cursor(void *state, const weir_call *call,
                                  const weir_namespace *ns, weir_cursor *out,
                                  weir_error *err) {
  static target_state t;
  sink_state *s = state;
  weir_status status = weir_call_check(call, "cursor", err);
  if (!status) status = target_read(s->folder, &t, err);
  if (status && has(UNREADABLE_CURSOR_IS_NONE)) {
    *out = (weir_cursor){0};
    return WEIR_OK;
  }
  weir_cursor *at = status ? NULL : target_cursor(&t, ns);
  if (at) *out = *at;
  return status;
}

static weir_status take_staged(sink_state *s, const weir_commit_entry *e, target_state *t,
                               weir_error *err) {
  static target_row rows[BUFFERED];
  char path[512];
  snprintf(path, sizeof(path), "%s/%.*s", s->folder, (int)e->size,
           (const char *)e->descriptor);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t n = fd < 0 ? -1 : read(fd, rows, sizeof(rows));
  int errnum = errno;
  if (fd >= 0) close(fd);
  if (n < 0) return weir_error_errno(err, errnum, "cannot read what was staged");
  size_t count = (size_t)n / sizeof(rows[0]);
  for (size_t i = 0; i < count; i++) {
    if (!has(DELETES_COME_LAST) || rows[i].op != 'D')
      target_apply(t, &rows[i], broken.keyed);
  }
  for (size_t i = 0; has(DELETES_COME_LAST) && i < count; i++) {
    if (rows[i].op == 'D') target_apply(t, &rows[i], broken.keyed);
  }
  return WEIR_OK;
}

static void drop_staged(const sink_state *s, const weir_commit_batch *batch) {
  char path[512];
  for (size_t i = 0; i < batch->n_attempts; i++) {
    for (size_t k = 0; k < batch->attempts[i].n_entries; k++) {
      const weir_commit_entry *e = &batch->attempts[i].entries[k];
      snprintf(path, sizeof(path), "%s/%.*s", s->folder, (int)e->size,
               e->present ? (const char *)e->descriptor : "none");
      unlink(path);
    }
  }
}

/* From where to go on, as the fault has it. */
static weir_status start_of(const weir_commit_batch *batch, const weir_cursor *at,
                            size_t *first, weir_error *err) {
  const weir_cursor *last = &batch->attempts[batch->n_attempts - 1].cursor;
  bool same = at->checkpoint == last->checkpoint;
  weir_commit_batch lax = *batch;
  if ((has(APPENDS_TWICE) && weir_cursor_equal(at, last)) ||
      (has(FORGETS_THE_FENCE) && at->token > last->token)) {
    *first = 0;
    return WEIR_OK;
  }
  if (has(IGNORES_THE_DIGEST) && same && at->token == last->token &&
      !weir_cursor_equal(at, last)) {
    *first = 0;
    return WEIR_OK;
  }
  if (has(IGNORES_THE_PREDECESSOR) &&
      at->checkpoint < batch->attempts[0].cursor.checkpoint)
    lax.predecessor = *at;
  return weir_commit_batch_start(&lax, at, first, err);
}

static weir_status apply(sink_state *s, const weir_commit_batch *batch, size_t first,
                         target_state *t, weir_error *err) {
  weir_status status = WEIR_OK;
  const weir_commit_attempt *last = &batch->attempts[batch->n_attempts - 1];
  bool empty = true;
  for (size_t k = 0; k < last->n_entries; k++) empty &= !last->entries[k].present;
  if (has(PUBLISHES_THE_LAST_ATTEMPT_ALONE) && !empty) first = batch->n_attempts - 1;
  if (has(LOSES_ROWS_AT_AN_EMPTY_EPOCH) && empty) first = batch->n_attempts;
  for (size_t i = first; i < batch->n_attempts; i++) {
    for (size_t k = 0; !status && k < batch->attempts[i].n_entries; k++) {
      if (batch->attempts[i].entries[k].present)
        status = take_staged(s, &batch->attempts[i].entries[k], t, err);
    }
  }
  if (!status && has(PUBLISHES_IN_TWO_STEPS)) status = target_write(s->folder, t, err);
  return status;
}

static weir_status commit_aggregated(void *state, const weir_call *call,
                                     const weir_commit_batch *batch, weir_cursor *out,
                                     weir_error *err) {
  static target_state t;
  sink_state *s = state;
  size_t first = 0;
  weir_cursor none = {0}, *at = NULL,
              last = batch->attempts[batch->n_attempts - 1].cursor;
  weir_status status = weir_call_check(call, "commit", err);
  if (status) return status;
  int lock = target_lock(s->folder);
  if (lock < 0) return weir_error_errno(err, errno, "cannot lock the target");
  status = target_read(s->folder, &t, err);
  if (!status && !has(REPLACED_OWNER_COMMITS))
    status = weir_claim_check(batch->ns, t.claims[0], t.n_claims, err);
  if (!status) at = target_cursor(&t, batch->ns);
  if (!status) status = start_of(batch, at ? at : &none, &first, err);
  if (!status && first < batch->n_attempts) {
    status = apply(s, batch, first, &t, err);
    if (!status && at) *at = last;
    if (!status) status = target_write(s->folder, &t, err);
    if (!status || has(ROLLS_BACK_IN_DOUBT)) drop_staged(s, batch);
  }
  close(lock);
  if (!status) *out = last;
  return status;
}

static const weir_committer_ops committer_ops = {.abi_version = WEIR_ABI_VERSION,
                                                 .struct_size = sizeof(committer_ops),
                                                 .observe_cursor = observe_cursor,
                                                 .commit_aggregated = commit_aggregated};

static weir_committer as_committer(weir_sink *sink) {
  weir_committer none = {NULL, NULL};
  if (broken.consistency != WEIR_COMMITTABLE) return none;
  return (weir_committer){.ops = &committer_ops, .state = sink->state};
}

const weir_sink_ops broken_sink_ops = {.abi_version = WEIR_ABI_VERSION,
                                       .struct_size = sizeof(broken_sink_ops),
                                       .name = "broken",
                                       .text = "Rows in one file, with a fault.",
                                       .options = options,
                                       .create = create,
                                       .release = release,
                                       .cancellation_policy = cancellation_policy,
                                       .bind_runtime_context = bind_context,
                                       .contract = contract,
                                       .keyed_mutation_key = keyed_mutation_key,
                                       .prepare_schema = prepare_schema,
                                       .open = open_sink,
                                       .write_batch = write_batch,
                                       .schema = schema,
                                       .checkpoint_artifact_intent = intent,
                                       .begin_epoch = begin_epoch,
                                       .pre_commit = pre_commit,
                                       .rollback_epoch = rollback_epoch,
                                       .suggested_write_timeout_ms = write_timeout_ms,
                                       .flush = flush,
                                       .close = close_sink,
                                       .as_coordinated_committer = as_committer,
                                       .coordinated_abort_cleaner = abort_cleaner};
