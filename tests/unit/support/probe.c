/* SPDX-License-Identifier: Apache-2.0 */
#include "support/probe.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "connector/inside.h"

#define MAX_RULES 8
#define MAX_TARGETS 16
#define MAX_COUNTS 64

typedef struct target {
  char sink[64];
  weir_cursor cursor;
  uint8_t deployment[WEIR_UUID_SIZE];
  int64_t *rows;
  size_t n, capacity;
} target;

static struct {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  probe_rule rules[MAX_RULES + 1];
  int seen[MAX_RULES]; /* calls that a rule was about */
  struct {
    char hook[40];
    int n;
  } counts[MAX_COUNTS];
  target targets[MAX_TARGETS];
  uint64_t let_go; /* grows: who hangs waits for the next one */
  int alive, hanging;
} probe = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* ---- control ----------------------------------------------------------------------------------- */

void probe_let_go(void) {
  pthread_mutex_lock(&probe.lock);
  probe.let_go++;
  pthread_cond_broadcast(&probe.changed);
  pthread_mutex_unlock(&probe.lock);
}

void probe_rules(const probe_rule *rules) {
  pthread_mutex_lock(&probe.lock);
  probe.let_go++;
  pthread_cond_broadcast(&probe.changed);
  memset(probe.rules, 0, sizeof(probe.rules));
  memset(probe.seen, 0, sizeof(probe.seen));
  memset(probe.counts, 0, sizeof(probe.counts));
  for (int i = 0; rules && rules[i].hook && i < MAX_RULES; i++) probe.rules[i] = rules[i];
  pthread_mutex_unlock(&probe.lock);
}

void probe_reset(void) {
  probe_rules(NULL);
  pthread_mutex_lock(&probe.lock);
  for (int i = 0; i < MAX_TARGETS; i++) {
    free(probe.targets[i].rows);
    probe.targets[i] = (target){0};
  }
  pthread_mutex_unlock(&probe.lock);
}

int probe_calls(const char *hook) {
  int n = 0;
  pthread_mutex_lock(&probe.lock);
  for (int i = 0; i < MAX_COUNTS; i++)
    if (strcmp(probe.counts[i].hook, hook) == 0) n = probe.counts[i].n;
  pthread_mutex_unlock(&probe.lock);
  return n;
}

static int read_locked(const int *value) {
  pthread_mutex_lock(&probe.lock);
  int got = *value;
  pthread_mutex_unlock(&probe.lock);
  return got;
}

int probe_alive(void) {
  return read_locked(&probe.alive);
}

int probe_hanging(void) {
  return read_locked(&probe.hanging);
}

/* ---- targets: lock held ---------------------------------------------------------------------------- */

static target *target_of(const char *sink) {
  for (int i = 0; i < MAX_TARGETS; i++) {
    target *t = &probe.targets[i];
    if (!t->sink[0]) snprintf(t->sink, sizeof(t->sink), "%s", sink);
    if (strcmp(t->sink, sink) == 0) return t;
  }
  abort();
}

static void target_add(target *t, const int64_t *rows, size_t n) {
  if (t->n + n > t->capacity) {
    t->capacity = 2 * (t->n + n);
    t->rows = realloc(t->rows, t->capacity * sizeof(*rows));
    if (!t->rows) abort();
  }
  if (n) memcpy(t->rows + t->n, rows, n * sizeof(*rows));
  t->n += n;
}

probe_rows probe_target(const char *sink, uint64_t n) {
  probe_rows out = {0};
  uint32_t *seen = calloc(n + 1, sizeof(*seen));
  pthread_mutex_lock(&probe.lock);
  const target *t = target_of(sink);
  out.all = t->n;
  for (size_t i = 0; i < t->n; i++)
    if (t->rows[i] >= 0 && (uint64_t)t->rows[i] < n) seen[t->rows[i]]++;
  pthread_mutex_unlock(&probe.lock);
  for (uint64_t i = 0; i < n; i++) {
    out.once += seen[i] == 1;
    out.there += seen[i] >= 1;
  }
  free(seen);
  return out;
}

/* ---- rules --------------------------------------------------------------------------------------- */

static void count(const char *hook) {
  for (int i = 0; i < MAX_COUNTS; i++) {
    if (!probe.counts[i].hook[0])
      snprintf(probe.counts[i].hook, sizeof(probe.counts[i].hook), "%s", hook);
    if (strcmp(probe.counts[i].hook, hook) != 0) continue;
    probe.counts[i].n++;
    return;
  }
}

static bool find_rule(const char *hook, const char *sink, probe_rule *out) {
  for (int i = 0; probe.rules[i].hook; i++) {
    const probe_rule *r = &probe.rules[i];
    if (strcmp(r->hook, hook) != 0) continue;
    if (r->sink && (!sink || strcmp(r->sink, sink) != 0)) continue;
    int call = ++probe.seen[i];
    if (call < r->nth || call >= r->nth + (r->times ? r->times : 1)) continue;
    *out = *r;
    return true;
  }
  return false;
}

static void hang(void) {
  uint64_t since = probe.let_go;
  probe.hanging++;
  while (probe.let_go == since) pthread_cond_wait(&probe.changed, &probe.lock);
  probe.hanging--;
}

/* What the rules say about this call. `landed` may be NULL where the hook has nothing to land. */
static weir_status obey(const char *hook, const char *sink, const weir_call *call,
                        bool *landed, weir_error *err) {
  probe_rule rule = {0};
  pthread_mutex_lock(&probe.lock);
  count(hook);
  bool found = find_rule(hook, sink, &rule);
  if (found && rule.act == PROBE_HANG) hang();
  pthread_mutex_unlock(&probe.lock);
  if (!found || rule.act == PROBE_HANG) return WEIR_OK;
  weir_status code = rule.code                ? rule.code
                     : rule.act == PROBE_LATE ? WEIR_E_TIMEOUT
                                              : WEIR_E_IO;
  struct timespec nap = {.tv_nsec = 1000000};
  while (rule.act == PROBE_LATE && !weir_call_cancelled(call)) nanosleep(&nap, NULL);
  if (rule.act == PROBE_LANDED && landed) *landed = true;
  return weir_error_set(err, code, rule.flags, "%s was told to fail", hook);
}

/* ---- sink ---------------------------------------------------------------------------------------- */

typedef struct probe_sink {
  char id[64];
  bool committable, overlap, cas, safe;
  weir_schema *schema;
  int64_t *rows;
  size_t n, capacity;
} probe_sink;

static const weir_option sink_options[] = {
    {.name = "kind",
     .type = WEIR_OPT_STRING,
     .default_value = "committable",
     .text = "committable, durable or ephemeral."},
    {.name = "key", .type = WEIR_OPT_LIST, .text = "Key columns."},
    {.name = "overlap", .type = WEIR_OPT_BOOL, .default_value = "false", .text = "Flag."},
    {.name = "cas", .type = WEIR_OPT_BOOL, .default_value = "true", .text = "Flag."},
    {0}};

static void count_alive(int by) {
  pthread_mutex_lock(&probe.lock);
  probe.alive += by;
  pthread_mutex_unlock(&probe.lock);
}

static weir_status sink_new(weir_sink *out, bool safe, weir_error *err) {
  weir_status status = obey("create", NULL, NULL, NULL, err);
  if (status) return status;
  probe_sink *s = calloc(1, sizeof(*s));
  if (!s) return WEIR_E_NOMEM;
  s->safe = safe;
  out->state = s;
  count_alive(1);
  return WEIR_OK;
}
static weir_status sink_create(const weir_host *host, weir_sink *out, weir_error *err) {
  (void)host;
  return sink_new(out, false, err);
}
static weir_status safe_create(const weir_host *host, weir_sink *out, weir_error *err) {
  (void)host;
  return sink_new(out, true, err);
}
static void sink_release(weir_sink *sink) {
  probe_sink *s = sink->state;
  weir_schema_unref(s->schema);
  free(s->rows);
  free(s);
  sink->ops = NULL;
  count_alive(-1);
}
static int32_t sink_policy(weir_sink *sink) {
  probe_sink *s = sink->state;
  return s->safe ? WEIR_CANCEL_SAFE : WEIR_CANCEL_RETIRE;
}
static weir_status sink_bind(weir_sink *sink, const weir_namespace *ns, uint64_t k,
                             weir_error *err) {
  probe_sink *s = sink->state;
  (void)k;
  snprintf(s->id, sizeof(s->id), "%s", ns->sink_id);
  return obey("bind_runtime_context", s->id, NULL, NULL, err);
}
static weir_status sink_contract(weir_sink *sink, const weir_options *o,
                                 weir_contract *out, weir_error *err) {
  probe_sink *s = sink->state;
  const char *kind = weir_options_string(o, "kind");
  (void)err;
  out->consistency = strcmp(kind, "committable") == 0 ? WEIR_COMMITTABLE
                     : strcmp(kind, "durable") == 0   ? WEIR_DURABLE_AT_LEAST_ONCE
                                                      : WEIR_EPHEMERAL;
  out->topology = WEIR_MULTI_WRITER;
  out->input = weir_options_count(o, "key") ? WEIR_INPUT_KEYED : WEIR_INPUT_APPEND;
  s->committable = out->consistency == WEIR_COMMITTABLE;
  out->overlap = s->overlap = weir_options_bool(o, "overlap");
  out->cas_commit = s->cas = weir_options_bool(o, "cas");
  return WEIR_OK;
}
static weir_status sink_key(weir_sink *sink, const weir_options *o, weir_names *out,
                            weir_error *err) {
  const char *names[4] = {0};
  size_t n = weir_options_count(o, "key");
  (void)sink;
  for (size_t i = 0; i < n && i < 4; i++) names[i] = weir_options_item(o, "key", i);
  return n ? weir_names_copy(out, names, n, err) : WEIR_OK;
}
static weir_status sink_resolve(weir_sink *sink, const weir_call *call,
                                const weir_options *o, weir_schema *input,
                                weir_binding *out, weir_error *err) {
  probe_sink *s = sink->state;
  (void)o;
  weir_status status = obey("resolve_schema", s->id, call, NULL, err);
  return status ? status : weir_binding_logical(input, out, err);
}
static weir_status sink_prepare(weir_sink *sink, const weir_call *call,
                                const weir_options *o, weir_binding *binding,
                                weir_error *err) {
  probe_sink *s = sink->state;
  (void)o;
  weir_status status = obey("prepare_schema", s->id, call, NULL, err);
  return status ? status : weir_binding_identify(binding, "target", s->id, err);
}
static weir_status sink_open(weir_sink *sink, const weir_call *call,
                             const weir_options *o, const weir_binding *binding,
                             weir_error *err) {
  probe_sink *s = sink->state;
  (void)o;
  weir_status status = obey("open", s->id, call, NULL, err);
  if (status) return status;
  if (!binding->identity || !strstr(binding->identity, s->id))
    return weir_error_set(err, WEIR_E_INTERNAL, 0, "not the binding of prepare_schema");
  weir_schema_unref(s->schema);
  s->schema = weir_schema_ref(binding->schema);
  return WEIR_OK;
}
static weir_status sink_schema(weir_sink *sink, struct ArrowSchema *out,
                               weir_error *err) {
  return weir_schema_export(((probe_sink *)sink->state)->schema, out, err);
}
static weir_status sink_take(probe_sink *s, weir_batch *batch, weir_error *err) {
  struct ArrowArray array = {0};
  weir_status status = weir_batch_export(batch, &array, err);
  if (status) return status;
  size_t n = (size_t)array.length;
  const struct ArrowArray *a = array.children[0];
  const int64_t *values = (const int64_t *)a->buffers[1] + a->offset + array.offset;
  if (s->n + n > s->capacity) {
    s->capacity = 2 * (s->n + n);
    s->rows = realloc(s->rows, s->capacity * sizeof(*values));
    if (!s->rows) abort();
  }
  memcpy(s->rows + s->n, values, n * sizeof(*values));
  s->n += n;
  array.release(&array);
  return WEIR_OK;
}
static weir_status sink_write(weir_sink *sink, const weir_call *call, weir_batch *batch,
                              weir_write_result *out, weir_error *err) {
  probe_sink *s = sink->state;
  weir_status status = obey("write_batch", s->id, call, NULL, err);
  if (!status) status = sink_take(s, batch, err);
  if (status) return status;
  out->records = (uint64_t)weir_batch_rows(batch);
  out->bytes = 8 * out->records;
  return WEIR_OK;
}
/* A weaker sink's rows reach the target here. */
static weir_status sink_flush(weir_sink *sink, const weir_call *call, weir_error *err) {
  probe_sink *s = sink->state;
  weir_status status = obey("flush", s->id, call, NULL, err);
  if (status) return status;
  pthread_mutex_lock(&probe.lock);
  target_add(target_of(s->id), s->rows, s->n);
  pthread_mutex_unlock(&probe.lock);
  s->n = 0;
  return WEIR_OK;
}
static weir_status sink_intent(weir_sink *sink, const weir_call *call, uint64_t epoch,
                               weir_bytes *out, weir_error *err) {
  probe_sink *s = sink->state;
  weir_status status = obey("checkpoint_artifact_intent", s->id, call, NULL, err);
  return status ? status : weir_bytes_copy(out, &epoch, sizeof(epoch), err);
}
static weir_status sink_begin(weir_sink *sink, const weir_call *call, uint64_t epoch,
                              weir_error *err) {
  probe_sink *s = sink->state;
  (void)epoch;
  weir_status status = obey("begin_epoch", s->id, call, NULL, err);
  if (!status) s->n = 0;
  return status;
}
/* The descriptor is the rows themselves. */
static weir_status sink_pre_commit(weir_sink *sink, const weir_call *call, uint64_t epoch,
                                   weir_bytes *out, weir_error *err) {
  probe_sink *s = sink->state;
  (void)epoch;
  weir_status status = obey("pre_commit", s->id, call, NULL, err);
  if (status) return status;
  if (!s->committable) return sink_flush(sink, call, err);
  if (!s->n) return WEIR_OK;
  return weir_bytes_copy(out, s->rows, s->n * sizeof(*s->rows), err);
}
static weir_status sink_rollback(weir_sink *sink, const weir_call *call, uint64_t epoch,
                                 weir_error *err) {
  probe_sink *s = sink->state;
  (void)epoch;
  s->n = 0;
  return obey("rollback_epoch", s->id, call, NULL, err);
}
static weir_status sink_close(weir_sink *sink, const weir_call *call, weir_error *err) {
  probe_sink *s = sink->state;
  return obey("close", s->id, call, NULL, err);
}
/* Short, so that a timer that counts where none should is seen. */
static uint64_t sink_interval(weir_sink *sink) {
  (void)sink;
  return 2;
}
static uint64_t sink_timeout(weir_sink *sink) {
  (void)sink;
  return 300;
}

/* ---- committer and cleaner ---------------------------------------------------------------------------- */

static weir_status take_over(void *state, const weir_call *call, const weir_namespace *ns,
                             weir_error *err) {
  (void)state;
  return obey("take_over", ns->sink_id, call, NULL, err);
}
static weir_status observe(void *state, const weir_call *call, const weir_namespace *ns,
                           weir_cursor *out, weir_error *err) {
  (void)state;
  weir_status status = obey("observe_cursor", ns->sink_id, call, NULL, err);
  if (status) return status;
  pthread_mutex_lock(&probe.lock);
  const target *t = target_of(ns->sink_id);
  if (memcmp(t->deployment, ns->deployment, WEIR_UUID_SIZE) == 0) *out = t->cursor;
  pthread_mutex_unlock(&probe.lock);
  return WEIR_OK;
}
static void free_list(weir_cursor_list *list) {
  free((void *)list->v);
  list->release = NULL;
}
static weir_status find(void *state, const weir_call *call, const weir_namespace *ns,
                        weir_cursor_list *out, weir_error *err) {
  (void)state;
  weir_status status = obey("find_cursors", ns->sink_id, call, NULL, err);
  if (status) return status;
  weir_found_cursor *v = calloc(1, sizeof(*v));
  pthread_mutex_lock(&probe.lock);
  const target *t = target_of(ns->sink_id);
  v->cursor = t->cursor;
  memcpy(v->deployment, t->deployment, WEIR_UUID_SIZE);
  pthread_mutex_unlock(&probe.lock);
  out->v = v;
  out->n = v->cursor.checkpoint ? 1 : 0;
  out->release = free_list;
  return WEIR_OK;
}

/* Lock held. */
static void publish(target *t, const weir_commit_batch *b, size_t first) {
  for (size_t i = first; i < b->n_attempts; i++)
    for (size_t k = 0; k < b->attempts[i].n_entries; k++) {
      const weir_commit_entry *e = &b->attempts[i].entries[k];
      target_add(t, (const int64_t *)(const void *)e->descriptor,
                 e->size / sizeof(int64_t));
    }
  t->cursor = b->attempts[b->n_attempts - 1].cursor;
  memcpy(t->deployment, b->ns->deployment, WEIR_UUID_SIZE);
}

static weir_status commit(void *state, const weir_call *call,
                          const weir_commit_batch *batch, weir_cursor *out,
                          weir_error *err) {
  probe_sink *s = state;
  const char *id = batch->ns->sink_id;
  weir_cursor at = {0};
  size_t first = 0;
  bool landed = false;
  pthread_mutex_lock(&probe.lock);
  target *t = target_of(id);
  if (memcmp(t->deployment, batch->ns->deployment, WEIR_UUID_SIZE) == 0) at = t->cursor;
  pthread_mutex_unlock(&probe.lock);
  weir_status failure = obey("commit_aggregated", id, call, &landed, err);
  if (failure && !landed) return failure;
  pthread_mutex_lock(&probe.lock);
  /* Conditional: the cursor is looked at in the same step. */
  if (s->cas && memcmp(t->deployment, batch->ns->deployment, WEIR_UUID_SIZE) == 0)
    at = t->cursor;
  weir_status status = weir_commit_batch_start(batch, &at, &first, failure ? NULL : err);
  if (!status) publish(t, batch, first);
  if (!status) *out = t->cursor;
  pthread_mutex_unlock(&probe.lock);
  return failure ? failure : status;
}

static const weir_committer_ops committer_ops = {
    WEIR_ABI_VERSION, sizeof(weir_committer_ops), take_over, observe, find, commit};

static weir_committer sink_committer(weir_sink *sink) {
  probe_sink *s = sink->state;
  return s->committable ? (weir_committer){&committer_ops, s} : (weir_committer){0};
}

static void cleaner_ref(void *state) {
  (void)state;
}
static weir_status clean(void *state, const weir_call *call,
                         const weir_abort_batch *batch, weir_error *err) {
  (void)state;
  return obey("clean", batch->ns->sink_id, call, NULL, err);
}
static const weir_cleaner_ops cleaner_ops = {WEIR_ABI_VERSION, sizeof(weir_cleaner_ops),
                                             cleaner_ref, cleaner_ref, clean};
static weir_cleaner sink_cleaner(weir_sink *sink) {
  return (weir_cleaner){&cleaner_ops, sink};
}

#define PROBE_OPS(name_, create_, committer_)  \
  {.abi_version = WEIR_ABI_VERSION,            \
   .struct_size = sizeof(weir_sink_ops),       \
   .name = (name_),                            \
   .text = "Does as it is told.",              \
   .options = sink_options,                    \
   .create = (create_),                        \
   .release = sink_release,                    \
   .cancellation_policy = sink_policy,         \
   .bind_runtime_context = sink_bind,          \
   .contract = sink_contract,                  \
   .keyed_mutation_key = sink_key,             \
   .resolve_schema = sink_resolve,             \
   .prepare_schema = sink_prepare,             \
   .open = sink_open,                          \
   .write_batch = sink_write,                  \
   .schema = sink_schema,                      \
   .checkpoint_artifact_intent = sink_intent,  \
   .begin_epoch = sink_begin,                  \
   .pre_commit = sink_pre_commit,              \
   .rollback_epoch = sink_rollback,            \
   .suggested_write_timeout_ms = sink_timeout, \
   .flush_interval_ms = sink_interval,         \
   .flush = sink_flush,                        \
   .close = sink_close,                        \
   .as_coordinated_committer = (committer_),   \
   .coordinated_abort_cleaner = sink_cleaner}

static const weir_sink_ops probe_ops = PROBE_OPS("probe", sink_create, sink_committer);
static const weir_sink_ops probe_safe_ops =
    PROBE_OPS("probe_safe", safe_create, sink_committer);
static const weir_sink_ops probe_weak_ops = PROBE_OPS("probe_weak", sink_create, NULL);

/* ---- source -------------------------------------------------------------------------------------------- */

typedef struct numbers {
  int64_t first, rows, batch_rows, pause_ns, next;
  /* those met with new rows before them since it began or was sought, from where on, and where the last was */
  int64_t barriers, met, from, met_at;
  bool stays, changes;
  weir_schema *schema;
} numbers;

static const weir_option source_options[] = {
    {"first", WEIR_OPT_INT, 0, "0", 0, INT64_MAX / 2, NULL, "The first number."},
    {"rows", WEIR_OPT_INT, 0, "1000", 0, INT64_MAX / 2, NULL, "How many."},
    {"batch_rows", WEIR_OPT_INT, 0, "10", 1, 100000, NULL, "Of one batch."},
    {"pause", WEIR_OPT_DURATION, 0, "1ms", 0, INT64_MAX, NULL, "Before each batch."},
    {"barriers", WEIR_OPT_INT, 0, "0", 0, 1000, NULL,
     "That the rows lie between, at the least, however slow the machine."},
    {"replay", WEIR_OPT_BOOL, 0, "true", 0, 0, NULL, "Whether it can go back."},
    {"changes", WEIR_OPT_BOOL, 0, "false", 0, 0, NULL, "By key: all U."},
    {"stays", WEIR_OPT_BOOL, 0, "false", 0, 0, NULL, "Waits for more at the end."},
    {0}};

static weir_status numbers_create(const weir_host *host, weir_source *out,
                                  weir_error *err) {
  (void)host, (void)err;
  out->state = calloc(1, sizeof(numbers));
  if (!out->state) return WEIR_E_NOMEM;
  count_alive(1);
  return WEIR_OK;
}
static void numbers_release(weir_source *source) {
  weir_schema_unref(((numbers *)source->state)->schema);
  free(source->state);
  source->ops = NULL;
  count_alive(-1);
}
static weir_status numbers_contract(weir_source *source, const weir_options *o,
                                    weir_source_contract *out, weir_error *err) {
  (void)err;
  out->keyed = ((numbers *)source->state)->changes = weir_options_bool(o, "changes");
  out->replay =
      weir_options_bool(o, "replay") ? WEIR_SOURCE_REPLAYABLE : WEIR_SOURCE_EPHEMERAL;
  return WEIR_OK;
}
static weir_status numbers_resolve(weir_source *source, const weir_call *call,
                                   const weir_options *o, weir_schema **out,
                                   weir_error *err) {
  numbers *s = source->state;
  weir_status status = obey("source.resolve_schema", NULL, call, NULL, err);
  if (status) return status;
  (void)o;
  if (!s->schema) {
    static const char *const names[] = {"a", "_op"}, *const types[] = {"int64", "utf8"};
    status = weir_schema_from_types(names, types, s->changes ? 2 : 1, &s->schema, err);
  }
  if (!status) *out = weir_schema_ref(s->schema);
  return status;
}
static void numbers_go(numbers *s, const weir_bytes *position) {
  s->next = 0;
  if (position->release) memcpy(&s->next, position->data, sizeof(s->next));
  s->from = s->met_at = s->next;
  s->met = 0;
}
static weir_status numbers_open(weir_source *source, const weir_call *call,
                                const weir_options *o, const weir_bytes *position,
                                weir_error *err) {
  numbers *s = source->state;
  weir_status status = obey("source.open", NULL, call, NULL, err);
  s->first = weir_options_int(o, "first");
  s->rows = weir_options_int(o, "rows");
  s->batch_rows = weir_options_int(o, "batch_rows");
  s->pause_ns = weir_options_int(o, "pause");
  s->barriers = weir_options_int(o, "barriers");
  s->stays = weir_options_bool(o, "stays");
  numbers_go(s, position);
  return status;
}
static void array_release(struct ArrowArray *array) {
  for (int64_t i = 0; i < array->n_children; i++) {
    array->children[i]->release(array->children[i]);
    free(array->children[i]);
  }
  free(array->children);
  for (int64_t i = 0; i < array->n_buffers; i++) free((void *)array->buffers[i]);
  free(array->buffers);
  array->release = NULL;
}
static struct ArrowArray *numbers_array(int64_t n, int64_t buffers) {
  struct ArrowArray *a = calloc(1, sizeof(*a));
  *a = (struct ArrowArray){.length = n,
                           .n_buffers = buffers,
                           .buffers = calloc((size_t)buffers, sizeof(void *)),
                           .release = array_release};
  return a;
}
static struct ArrowArray *changes_of(int64_t n) {
  struct ArrowArray *a = numbers_array(n, 3);
  int32_t *offsets = calloc((size_t)n + 1, sizeof(*offsets));
  char *data = malloc((size_t)n);
  for (int64_t i = 0; i <= n; i++) offsets[i] = (int32_t)i;
  memset(data, 'U', (size_t)n);
  a->buffers[1] = offsets;
  a->buffers[2] = data;
  return a;
}
static weir_status numbers_read(weir_source *source, const weir_call *call, int32_t *what,
                                weir_batch **out, weir_error *err) {
  numbers *s = source->state;
  weir_status status = obey("read", NULL, call, NULL, err);
  if (status) return status;
  *what = WEIR_READ_NOTHING;
  if (s->rows > 0 && s->met < s->barriers * (s->next - s->from) / s->rows) return WEIR_OK;
  int64_t n = s->rows - s->next < s->batch_rows ? s->rows - s->next : s->batch_rows;
  *what = n > 0 ? WEIR_READ_BATCH : s->stays ? WEIR_READ_NOTHING : WEIR_READ_END;
  if (n <= 0) return WEIR_OK;
  nanosleep(&(struct timespec){.tv_nsec = s->pause_ns}, NULL);
  int64_t *values = calloc((size_t)n, sizeof(*values));
  for (int64_t i = 0; i < n; i++) values[i] = s->first + s->next + i;
  struct ArrowArray *child = numbers_array(n, 2), array = {0};
  child->buffers[1] = values;
  array = (struct ArrowArray){.length = n,
                              .n_buffers = 1,
                              .buffers = calloc(1, sizeof(void *)),
                              .n_children = s->changes ? 2 : 1,
                              .children = calloc(2, sizeof(struct ArrowArray *)),
                              .release = array_release};
  array.children[0] = child;
  if (s->changes) array.children[1] = changes_of(n);
  status = weir_batch_new(s->schema, &array, out, err);
  if (!status) s->next += n;
  return status;
}
static weir_status numbers_position(weir_source *source, weir_bytes *out,
                                    weir_error *err) {
  numbers *s = source->state;
  weir_status status = obey("position", NULL, NULL, NULL, err);
  s->met += !status && s->next != s->met_at;
  s->met_at = s->next;
  return status ? status : weir_bytes_copy(out, &s->next, sizeof(s->next), err);
}
static weir_status numbers_seek(weir_source *source, const weir_call *call,
                                const weir_bytes *position, weir_error *err) {
  weir_status status = obey("seek", NULL, call, NULL, err);
  if (!status) numbers_go(source->state, position);
  return status;
}
static weir_status numbers_committed(weir_source *source, const weir_call *call,
                                     uint64_t checkpoint, const weir_bytes *position,
                                     weir_error *err) {
  (void)source, (void)checkpoint, (void)position;
  return obey("committed", NULL, call, NULL, err);
}
static weir_status numbers_close(weir_source *source, const weir_call *call,
                                 weir_error *err) {
  (void)source;
  return obey("source.close", NULL, call, NULL, err);
}
static const weir_source_ops numbers_ops = {.abi_version = WEIR_ABI_VERSION,
                                            .struct_size = sizeof(weir_source_ops),
                                            .name = "numbers",
                                            .text = "Counts.",
                                            .options = source_options,
                                            .create = numbers_create,
                                            .release = numbers_release,
                                            .contract = numbers_contract,
                                            .resolve_schema = numbers_resolve,
                                            .open = numbers_open,
                                            .read = numbers_read,
                                            .position = numbers_position,
                                            .seek = numbers_seek,
                                            .committed = numbers_committed,
                                            .close = numbers_close};

/* ---- the list -------------------------------------------------------------------------------------------- */

extern const weir_sink_ops weir_file_sink_ops;
extern const weir_source_ops weir_generator_source_ops;
extern const weir_source_ops weir_push_source_ops;

const weir_sink_ops *const connector_builtin_sinks[] = {
    &weir_file_sink_ops, &probe_ops, &probe_safe_ops, &probe_weak_ops, NULL};
const weir_source_ops *const connector_builtin_sources[] = {
    &weir_generator_source_ops, &weir_push_source_ops, &numbers_ops, NULL};
