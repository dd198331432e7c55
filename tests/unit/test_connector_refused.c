/* SPDX-License-Identifier: Apache-2.0 */
/* Sinks and sources that are asked at the wrong time, fail in a hook, or answer what nobody may answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "connector/connector.h"
#include "support/fakes.h"
#include "support/rows.h"

typedef struct fixture {
  weir_sink_ops sink_ops;
  weir_source_ops source_ops;
  connector_host *host;
  connector_spec *sink_spec, *source_spec;
  connector_sink *sink;
  connector_source *source;
  weir_schema *schema;
  weir_batch *batch;
  weir_call call;
  weir_error err;
} fixture;

#define OK(call_) assert_ok((call_), &f->err, #call_)
static void assert_ok(weir_status status, const weir_error *err, const char *what) {
  if (status) fail_msg("%s: %s %s", what, weir_status_name(status), err->message);
}
#define FAILS(call_, code, part) assert_fails((call_), (code), &f->err, (part))
static void assert_fails(weir_status status, weir_status want, const weir_error *err,
                         const char *part) {
  if (status != want || !strstr(err->message, part)) {
    fail_msg("%s '%s', not %s '%s'", weir_status_name(status), err->message,
             weir_status_name(want), part);
  }
}

static const weir_namespace ns = {
    .struct_size = sizeof(ns), .pipeline = "p", .sink_id = "lake"};

/* ---- entries that do as a test says, where the fakes have none of their own */

static connector_sink *retired_in_write;

static weir_status write_and_retire(weir_sink *sink, const weir_call *call,
                                    weir_batch *batch, weir_write_result *out,
                                    weir_error *err) {
  (void)sink, (void)call, (void)batch, (void)out;
  connector_sink_retire(retired_in_write);
  return weir_error_set(err, WEIR_E_IO, 0, "gone");
}

static weir_verified verified;
static weir_status verify(weir_sink *sink, const weir_call *call,
                          const weir_options *options, const weir_verify *ask,
                          weir_verified *out, weir_error *err) {
  (void)sink, (void)call, (void)options, (void)ask;
  if (fake.fail_at) return weir_error_set(err, WEIR_E_IO, 0, "said no");
  *out = verified;
  return WEIR_OK;
}

static weir_status sweep(weir_sink *sink, const weir_call *call,
                         const weir_options *options, const weir_sweep *ask,
                         weir_swept *out, weir_error *err) {
  (void)sink, (void)call, (void)options, (void)ask;
  if (fake.fail_at) return weir_error_set(err, WEIR_E_IO, 0, "said no");
  out->looked = 1;
  out->young = 3;
  return WEIR_OK;
}

static weir_names bad_key;
static void release_nothing(weir_names *names) {
  names->release = NULL;
}
static weir_status answer_bad_key(weir_sink *sink, const weir_options *options,
                                  weir_names *out, weir_error *err) {
  (void)sink, (void)options, (void)err;
  *out = bad_key;
  return WEIR_OK;
}

static uint64_t milliseconds(weir_sink *sink) {
  (void)sink;
  return 250;
}

static weir_status resolve_badly(weir_sink *sink, const weir_call *call,
                                 const weir_options *options, weir_schema *input,
                                 weir_binding *out, weir_error *err) {
  (void)sink, (void)call, (void)options, (void)err;
  out->identity = malloc(WEIR_MAX_IDENTITY + 2);
  memset(out->identity, 'a', WEIR_MAX_IDENTITY + 1);
  out->identity[WEIR_MAX_IDENTITY + 1] = 0;
  out->schema = weir_schema_ref(input);
  return WEIR_OK;
}

static weir_status prepare_badly(weir_sink *sink, const weir_call *call,
                                 const weir_options *options, weir_binding *binding,
                                 weir_error *err) {
  (void)sink, (void)call, (void)options, (void)err;
  weir_schema_unref(binding->schema);
  binding->schema = NULL;
  return WEIR_OK;
}

static void release_schema(struct ArrowSchema *schema) {
  schema->release = NULL;
}
/* No struct, and nothing else that Arrow knows. */
static weir_status answer_bad_schema(weir_sink *sink, struct ArrowSchema *out,
                                     weir_error *err) {
  (void)sink, (void)err;
  *out = (struct ArrowSchema){.format = "?", .release = release_schema};
  return WEIR_OK;
}

static weir_committer_ops committer_ops;
static weir_committer own_committer(weir_sink *sink) {
  return (weir_committer){&committer_ops, sink};
}
static weir_status list_without_release(void *state, const weir_call *call,
                                        const weir_namespace *of, weir_cursor_list *out,
                                        weir_error *err) {
  static weir_found_cursor one;
  (void)state, (void)call, (void)of, (void)err;
  out->v = &one;
  out->n = 1;
  return WEIR_OK;
}

static weir_status list_nothing(void *state, const weir_call *call,
                                const weir_namespace *of, weir_cursor_list *out,
                                weir_error *err) {
  (void)state, (void)call, (void)of, (void)out;
  return weir_error_set(err, WEIR_E_IO, 0, "not now");
}

static weir_cleaner_ops cleaner_ops;
static weir_cleaner own_cleaner(weir_sink *sink) {
  (void)sink;
  return (weir_cleaner){&cleaner_ops, NULL};
}

static weir_bytes described;
static weir_status describe(const weir_bytes *position, weir_bytes *out,
                            weir_error *err) {
  if (!position->release) return weir_error_set(err, WEIR_E_CORRUPT, 0, "not mine");
  *out = described;
  return WEIR_OK;
}

/* ---- fixture */

static void make_sink_spec(fixture *f) {
  weir_options *options = NULL;
  OK(weir_options_new(f->sink_ops.options, "sink lake", NULL, NULL, 0, NULL, &options,
                      &f->err));
  OK(connector_spec_new_sink(&f->sink_ops, f->host, options, &f->sink_spec, &f->err));
}

static int setup(void **state) {
  fixture *f = calloc(1, sizeof(*f));
  weir_options *options = NULL;
  fake_reset();
  *state = f;
  f->host = connector_host_new(NULL, &f->err);
  OK(connector_fill_sink(&fake_sink_ops, NULL, &f->sink_ops, &f->err));
  make_sink_spec(f);
  OK(connector_fill_source(&fake_source_ops, NULL, &f->source_ops, &f->err));
  OK(weir_options_new(f->source_ops.options, "source orders", NULL, NULL, 0, NULL,
                      &options, &f->err));
  OK(connector_spec_new_source(&f->source_ops, f->host, options, &f->source_spec,
                               &f->err));
  f->schema = rows_schema("id: int64");
  f->batch = rows_batch(f->schema, "{\"id\":1}\n");
  committer_ops = fake_committer_ops;
  cleaner_ops = fake_cleaner_ops;
  connector_call_arm(&f->call, WEIR_NO_DEADLINE, WEIR_NO_DEADLINE);
  return 0;
}

static int teardown(void **state) {
  fixture *f = *state;
  connector_sink_unref(f->sink);
  connector_source_unref(f->source);
  weir_batch_unref(f->batch);
  weir_schema_unref(f->schema);
  connector_spec_unref(f->sink_spec);
  connector_spec_unref(f->source_spec);
  connector_spec_unref(NULL);
  connector_host_unref(f->host);
  free(f);
  fake_reset();
  return 0;
}

static void make(fixture *f) {
  OK(connector_sink_new(f->sink_spec, 1, 3, &f->sink, &f->err));
}

static void bind(fixture *f) {
  weir_contract contract = {0};
  make(f);
  OK(connector_sink_contract(f->sink, &contract, &f->err));
  OK(connector_sink_bind(f->sink, &ns, &f->err));
}

static void open_sink(fixture *f) {
  weir_binding binding = {0};
  bind(f);
  OK(connector_sink_resolve_schema(f->sink, &f->call, f->schema, &binding, &f->err));
  OK(connector_sink_prepare_schema(f->sink, &f->call, &binding, &f->err));
  OK(connector_sink_open(f->sink, &f->call, &binding, &f->err));
  weir_binding_done(&binding);
}

static weir_status open_source(fixture *f, const weir_bytes *position) {
  weir_schema *schema = NULL;
  OK(connector_source_new(f->source_spec, 2, &f->source, &f->err));
  OK(connector_source_resolve_schema(f->source, &f->call, &schema, &f->err));
  weir_schema_unref(schema);
  return connector_source_open(f->source, &f->call, position, &f->err);
}

#define STATE(name) \
  assert_string_equal(connector_sink_state_name(connector_sink_state_of(f->sink)), name)

/* ---- sinks: every call on one that is retired */

static void test_no_hook_of_a_retired_sink_is_called(void **state) {
  fixture *f = *state;
  weir_contract contract = {0};
  weir_names names = {0};
  weir_binding binding = {.schema = f->schema};
  weir_bytes bytes = {0};
  weir_write_result result = {0};
  weir_verified found = {0};
  weir_swept swept = {0};
  weir_cursor cursor = {0};
  weir_cursor_list cursors = {0};
  connector_cleaner *cleaner = NULL;
  const weir_commit_attempt attempt = {.cursor = {.checkpoint = 1, .token = 1}};
  const weir_commit_batch batch = {.attempts = &attempt, .n_attempts = 1};
  open_sink(f);
  connector_sink_retire(f->sink);
  fake.log[0] = 0;
#define REFUSED(call_) \
  FAILS(call_, WEIR_E_INVALID_STATE, "generation 3, which is retired")
  REFUSED(connector_sink_contract(f->sink, &contract, &f->err));
  REFUSED(connector_sink_keyed_mutation_key(f->sink, &names, &f->err));
  REFUSED(connector_sink_bind(f->sink, &ns, &f->err));
  REFUSED(connector_sink_resolve_schema(f->sink, &f->call, f->schema, &binding, &f->err));
  REFUSED(connector_sink_prepare_schema(f->sink, &f->call, &binding, &f->err));
  REFUSED(connector_sink_open(f->sink, &f->call, &binding, &f->err));
  REFUSED(connector_sink_begin_epoch(f->sink, &f->call, 1, &f->err));
  REFUSED(connector_sink_intent(f->sink, &f->call, 1, &bytes, &f->err));
  REFUSED(connector_sink_write_batch(f->sink, &f->call, f->batch, &result, &f->err));
  REFUSED(connector_sink_flush(f->sink, &f->call, &f->err));
  REFUSED(connector_sink_rollback_epoch(f->sink, &f->call, 1, &f->err));
  REFUSED(connector_sink_close(f->sink, &f->call, &f->err));
  REFUSED(connector_sink_verify(f->sink, &f->call, NULL, &found, &f->err));
  REFUSED(connector_sink_sweep(f->sink, &f->call, NULL, &swept, &f->err));
  REFUSED(connector_sink_take_over(f->sink, &f->call, &f->err));
  REFUSED(connector_sink_observe_cursor(f->sink, &f->call, &cursor, &f->err));
  REFUSED(connector_sink_find_cursors(f->sink, &f->call, &cursors, &f->err));
  REFUSED(connector_sink_commit(f->sink, &f->call, &batch, &cursor, &f->err));
  REFUSED(connector_sink_cleaner(f->sink, &cleaner, &f->err));
  /* What has no error is answered without it. */
  assert_null(connector_sink_tracker(f->sink));
  assert_int_equal(connector_sink_write_timeout_ms(f->sink), 1);
  assert_int_equal(connector_sink_flush_interval_ms(f->sink), 1);
  assert_string_equal(fake.log, "");
}

static void test_pre_commit_needs_an_epoch(void **state) {
  fixture *f = *state;
  weir_bytes bytes = {0};
  open_sink(f);
  FAILS(connector_sink_pre_commit(f->sink, &f->call, 0, &bytes, &f->err),
        WEIR_E_INVALID_STATE, "epoch 0");
  OK(connector_sink_begin_epoch(f->sink, &f->call, 1, &f->err));
  FAILS(connector_sink_pre_commit(f->sink, &f->call, 2, &bytes, &f->err),
        WEIR_E_INVALID_STATE, "epoch 2 after begin_epoch of 1");
  connector_sink_retire(f->sink);
  FAILS(connector_sink_pre_commit(f->sink, &f->call, 1, &bytes, &f->err),
        WEIR_E_INVALID_STATE, "retired");
  assert_null(strstr(fake.log, "pre_commit"));
}

/* Retired by another thread while a hook is at work: final, whatever the hook answers. */
static void test_what_is_retired_stays_so(void **state) {
  fixture *f = *state;
  weir_write_result result = {0};
  f->sink_ops.write_batch = write_and_retire;
  open_sink(f);
  OK(connector_sink_begin_epoch(f->sink, &f->call, 1, &f->err));
  retired_in_write = f->sink;
  FAILS(connector_sink_write_batch(f->sink, &f->call, f->batch, &result, &f->err),
        WEIR_E_IO, "gone");
  STATE("retired");
}

static void test_binding_comes_after_the_contract(void **state) {
  fixture *f = *state;
  weir_contract contract = {0};
  make(f);
  FAILS(connector_sink_bind(f->sink, &ns, &f->err), WEIR_E_INVALID_STATE,
        "needs the contract");
  connector_sink_unref(f->sink);
  OK(connector_sink_new(f->sink_spec, 0, 3, &f->sink, &f->err)); /* admission's */
  OK(connector_sink_contract(f->sink, &contract, &f->err));
  FAILS(connector_sink_bind(f->sink, &ns, &f->err), WEIR_E_INVALID_STATE,
        "a participant's number");
  assert_null(strstr(fake.log, "bind_runtime_context"));
}

/* ---- sinks: what a hook answers */

static void test_failures_of_questions(void **state) {
  fixture *f = *state;
  weir_contract contract = {.commit_interval_ns = 42};
  weir_names names = {0};
  weir_binding binding = {0};
  make(f);
  fake.fail_at = "contract";
  FAILS(connector_sink_contract(f->sink, &contract, &f->err), WEIR_E_IO,
        "sink lake: the disk is gone");
  assert_int_equal(contract.commit_interval_ns, 42);
  fake.fail_at = "keyed_mutation_key";
  FAILS(connector_sink_keyed_mutation_key(f->sink, &names, &f->err), WEIR_E_IO, "disk");
  STATE("created"); /* they may be asked again */
  fake.fail_at = NULL;
  OK(connector_sink_contract(f->sink, &contract, &f->err));
  OK(connector_sink_bind(f->sink, &ns, &f->err));
  fake.fail_at = "resolve_schema";
  FAILS(connector_sink_resolve_schema(f->sink, &f->call, f->schema, &binding, &f->err),
        WEIR_E_IO, "disk");
  assert_null(binding.schema);
  STATE("bound");
}

static void test_keys_that_are_none(void **state) {
  fixture *f = *state;
  static const char *const hole[] = {"a", NULL};
  weir_names names = {0};
  f->sink_ops.keyed_mutation_key = answer_bad_key;
  make(f);
  bad_key = (weir_names){.v = NULL, .n = 1, .release = release_nothing};
  FAILS(connector_sink_keyed_mutation_key(f->sink, &names, &f->err), WEIR_E_INTERNAL,
        "an empty key");
  bad_key = (weir_names){.v = hole, .n = 2, .release = release_nothing};
  FAILS(connector_sink_keyed_mutation_key(f->sink, &names, &f->err), WEIR_E_INTERNAL,
        "without a name");
  bad_key = (weir_names){.v = hole, .n = 2}; /* without release there is no key */
  OK(connector_sink_keyed_mutation_key(f->sink, &names, &f->err));
  assert_null(names.release);
}

static void test_times_are_the_hooks(void **state) {
  fixture *f = *state;
  f->sink_ops.flush_interval_ms = milliseconds;
  f->sink_ops.suggested_write_timeout_ms = milliseconds;
  open_sink(f);
  assert_int_equal(connector_sink_flush_interval_ms(f->sink), 250);
  assert_int_equal(connector_sink_write_timeout_ms(f->sink), 250);
}

static void test_bindings_that_are_none(void **state) {
  fixture *f = *state;
  weir_binding binding = {0};
  f->sink_ops.resolve_schema = resolve_badly;
  f->sink_ops.prepare_schema = prepare_badly;
  bind(f);
  FAILS(connector_sink_resolve_schema(f->sink, &f->call, f->schema, &binding, &f->err),
        WEIR_E_INTERNAL, "identity that is too long");
  assert_null(binding.schema);
  binding.schema = weir_schema_ref(f->schema);
  FAILS(connector_sink_prepare_schema(f->sink, &f->call, &binding, &f->err),
        WEIR_E_INTERNAL, "left the binding without a schema");
  weir_binding_done(&binding);
}

static void test_a_schema_that_is_none(void **state) {
  fixture *f = *state;
  weir_binding binding = {.schema = f->schema};
  f->sink_ops.schema = answer_bad_schema;
  bind(f);
  FAILS(connector_sink_open(f->sink, &f->call, &binding, &f->err), WEIR_E_SCHEMA,
        "sink lake: schema");
  STATE("failed");
}

static void test_verify_and_sweep(void **state) {
  fixture *f = *state;
  weir_verified found = {.artifacts = 42};
  weir_swept swept = {.young = 42};
  f->sink_ops.verify = verify;
  f->sink_ops.sweep = sweep;
  bind(f);
  verified = (weir_verified){.checked = WEIR_CHECKED_CURSOR,
                             .cursor = {.checkpoint = 5, .token = 2},
                             .artifacts = 7};
  OK(connector_sink_verify(f->sink, &f->call, NULL, &found, &f->err));
  assert_int_equal(found.cursor.checkpoint, 5);
  assert_int_equal(found.artifacts, 7);
  verified.cursor.checkpoint = 0; /* none: the rest of it says nothing */
  OK(connector_sink_verify(f->sink, &f->call, NULL, &found, &f->err));
  assert_int_equal(found.cursor.token, 0);
  verified.cursor.checkpoint = 5;
  verified.checked = 0; /* it was not looked at */
  OK(connector_sink_verify(f->sink, &f->call, NULL, &found, &f->err));
  assert_int_equal(found.cursor.checkpoint, 0);
  OK(connector_sink_sweep(f->sink, &f->call, NULL, &swept, &f->err));
  assert_int_equal(swept.looked, 1);
  assert_int_equal(swept.young, 3);
  fake.fail_at = "both";
  FAILS(connector_sink_verify(f->sink, &f->call, NULL, &found, &f->err), WEIR_E_IO,
        "sink lake: said no");
  FAILS(connector_sink_sweep(f->sink, &f->call, NULL, &swept, &f->err), WEIR_E_IO,
        "sink lake: said no");
  assert_int_equal(swept.young, 3);
  STATE("bound");
}

/* ---- committers and cleaners */

static void test_a_committer_of_another_abi(void **state) {
  fixture *f = *state;
  weir_binding binding = {.schema = f->schema};
  f->sink_ops.as_coordinated_committer = own_committer;
  committer_ops.abi_version = 99;
  bind(f);
  FAILS(connector_sink_open(f->sink, &f->call, &binding, &f->err), WEIR_E_NOT_IMPLEMENTED,
        "sink lake: its committer: it was built for");
  STATE("failed");
}

static void test_a_list_that_nobody_can_release(void **state) {
  fixture *f = *state;
  weir_cursor_list cursors = {0};
  f->sink_ops.as_coordinated_committer = own_committer;
  committer_ops.find_cursors = list_without_release;
  open_sink(f);
  FAILS(connector_sink_find_cursors(f->sink, &f->call, &cursors, &f->err),
        WEIR_E_INTERNAL, "1 cursors and no list");
  assert_int_equal(cursors.n, 0);
}

static void test_a_list_that_could_not_be_had(void **state) {
  fixture *f = *state;
  weir_cursor_list cursors = {0};
  f->sink_ops.as_coordinated_committer = own_committer;
  committer_ops.find_cursors = list_nothing;
  open_sink(f);
  FAILS(connector_sink_find_cursors(f->sink, &f->call, &cursors, &f->err), WEIR_E_IO,
        "not now");
  assert_int_equal(cursors.n, 0);
}

static void test_a_descriptor_without_bytes(void **state) {
  fixture *f = *state;
  weir_cursor cursor = {0};
  const weir_commit_entry entry = {.participant_id = 1, .present = 1, .size = 4};
  const weir_commit_attempt attempt = {
      .cursor = {.checkpoint = 1, .token = 1}, .entries = &entry, .n_entries = 1};
  const weir_commit_batch batch = {.attempts = &attempt, .n_attempts = 1};
  open_sink(f);
  FAILS(connector_sink_commit(f->sink, &f->call, &batch, &cursor, &f->err),
        WEIR_E_INTERNAL, "a descriptor");
  assert_null(strstr(fake.log, "commit_aggregated"));
}

static void test_a_batch_keeps_its_own_namespace(void **state) {
  fixture *f = *state;
  weir_cursor cursor = {0};
  connector_cleaner *cleaner = NULL;
  const weir_namespace other = {
      .struct_size = sizeof(other), .pipeline = "p", .sink_id = ""};
  const weir_commit_attempt attempt = {.cursor = {.checkpoint = 1, .token = 1}};
  const weir_commit_batch batch = {.ns = &other, .attempts = &attempt, .n_attempts = 1};
  const weir_abort_batch aborted = {.ns = &other};
  open_sink(f);
  /* The fakes refuse a namespace without a sink. */
  assert_int_equal(connector_sink_commit(f->sink, &f->call, &batch, &cursor, &f->err),
                   WEIR_E_INTERNAL);
  OK(connector_sink_cleaner(f->sink, &cleaner, &f->err));
  assert_int_equal(connector_cleaner_clean(cleaner, &f->call, &aborted, &f->err),
                   WEIR_E_INTERNAL);
  connector_cleaner_free(cleaner);
}

static void test_a_commit_that_was_cancelled_is_in_doubt(void **state) {
  fixture *f = *state;
  weir_cursor cursor = {0};
  const weir_commit_attempt attempt = {.cursor = {.checkpoint = 1, .token = 1}};
  const weir_commit_batch batch = {.attempts = &attempt, .n_attempts = 1};
  open_sink(f);
  fake.fail_at = "commit_aggregated";
  fake.fail = WEIR_E_CANCELLED;
  FAILS(connector_sink_commit(f->sink, &f->call, &batch, &cursor, &f->err),
        WEIR_E_CANCELLED, "disk");
  assert_int_equal(f->err.flags, WEIR_ERR_IN_DOUBT);
  fake.fail_flags = WEIR_ERR_RETRIABLE; /* the committer knows that nothing landed */
  FAILS(connector_sink_commit(f->sink, &f->call, &batch, &cursor, &f->err),
        WEIR_E_CANCELLED, "disk");
  assert_int_equal(f->err.flags, WEIR_ERR_RETRIABLE);
}

static void test_a_cleaner_of_another_abi(void **state) {
  fixture *f = *state;
  connector_cleaner *cleaner = NULL;
  f->sink_ops.coordinated_abort_cleaner = own_cleaner;
  cleaner_ops.abi_version = 99;
  open_sink(f);
  FAILS(connector_sink_cleaner(f->sink, &cleaner, &f->err), WEIR_E_NOT_IMPLEMENTED,
        "sink lake: its cleaner: it was built for");
  assert_null(cleaner);
}

static void test_abort_batches_are_in_order(void **state) {
  fixture *f = *state;
  connector_cleaner *cleaner = NULL;
  weir_abort_entry entries[] = {{.checkpoint = 1, .participant_id = 1},
                                {.checkpoint = 1, .participant_id = 2},
                                {.checkpoint = 2, .participant_id = 1}};
  const weir_abort_batch batch = {.entries = entries, .n_entries = 3};
  open_sink(f);
  OK(connector_sink_cleaner(f->sink, &cleaner, &f->err));
  OK(connector_cleaner_clean(cleaner, &f->call, &batch, &f->err));
  entries[1].participant_id = 1; /* twice the same */
  FAILS(connector_cleaner_clean(cleaner, &f->call, &batch, &f->err), WEIR_E_INTERNAL,
        "out of order");
  entries[1] = (weir_abort_entry){.checkpoint = 3, .participant_id = 1};
  FAILS(connector_cleaner_clean(cleaner, &f->call, &batch, &f->err), WEIR_E_INTERNAL,
        "out of order");
  connector_cleaner_free(cleaner);
}

/* ---- sources */

static void test_no_hook_of_a_retired_source_is_called(void **state) {
  fixture *f = *state;
  weir_source_contract contract = {0};
  weir_schema *schema = NULL;
  weir_bytes bytes = {0};
  weir_batch *batch = NULL, *letters = NULL;
  int32_t what = 0;
  OK(open_source(f, NULL));
  connector_source_ref(f->source);
  connector_source_unref(f->source);
  connector_source_retire(f->source);
  fake.log[0] = 0;
#undef REFUSED
#define REFUSED(call_) \
  FAILS(call_, WEIR_E_INVALID_STATE, "generation 2, which is retired")
  REFUSED(connector_source_contract(f->source, &contract, &f->err));
  REFUSED(connector_source_use_schema(f->source, f->schema, &f->err));
  REFUSED(connector_source_resolve_schema(f->source, &f->call, &schema, &f->err));
  REFUSED(connector_source_set_aside(f->source, &f->err));
  REFUSED(connector_source_open(f->source, &f->call, NULL, &f->err));
  REFUSED(connector_source_read(f->source, &f->call, &what, &batch, &letters, &f->err));
  REFUSED(connector_source_position(f->source, &bytes, &f->err));
  REFUSED(connector_source_seek(f->source, &f->call, &bytes, &f->err));
  REFUSED(connector_source_committed(f->source, &f->call, 1, NULL, &f->err));
  REFUSED(connector_source_close(f->source, &f->call, &f->err));
  assert_string_equal(fake.log, "");
}

static void test_source_contracts_out_of_range(void **state) {
  fixture *f = *state;
  static const weir_source_contract wrong[] = {
      {.replay = -1},
      {.replay = WEIR_SOURCE_COMMIT_COUPLED + 1},
      {.replay = WEIR_SOURCE_REPLAYABLE, .keyed = -1},
      {.replay = WEIR_SOURCE_REPLAYABLE, .keyed = 2}};
  weir_source_contract contract = {0};
  OK(connector_source_new(f->source_spec, 2, &f->source, &f->err));
  for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
    fake.source_contract = wrong[i];
    FAILS(connector_source_contract(f->source, &contract, &f->err), WEIR_E_INTERNAL,
          "out of range");
  }
}

static void test_reads_that_are_none(void **state) {
  fixture *f = *state;
  static const int32_t wrong[] = {-1, 99};
  for (size_t i = 0; i < 2; i++) {
    weir_batch *batch = NULL, *letters = NULL;
    int32_t what = 0;
    OK(open_source(f, NULL));
    fake.read = wrong[i];
    FAILS(connector_source_read(f->source, &f->call, &what, &batch, &letters, &f->err),
          WEIR_E_INTERNAL, "answered");
    connector_source_unref(f->source);
    f->source = NULL;
  }
}

static void test_a_position_without_bytes(void **state) {
  fixture *f = *state;
  weir_bytes position = {0};
  OK(open_source(f, NULL));
  fake.bytes = 0;
  fake.bytes_without_data = 1;
  OK(connector_source_position(f->source, &position, &f->err)); /* empty is one */
  weir_bytes_release(&position);
  fake.bytes = 4;
  assert_int_equal(connector_source_position(f->source, &position, &f->err),
                   WEIR_E_INTERNAL);
  assert_null(position.release);
}

/* The store keeps a sum of what a source gave it: it was another kind of source's. */
static void test_a_position_that_is_anothers(void **state) {
  fixture *f = *state;
  weir_bytes position = {0};
  OK(weir_bytes_copy(&position, "p", 1, &f->err));
  fake.fail_at = "open";
  fake.fail = WEIR_E_CORRUPT;
  FAILS(open_source(f, &position), WEIR_E_INVALID_CONFIG, "not one of this kind");
  connector_source_unref(f->source);
  FAILS(open_source(f, NULL), WEIR_E_CORRUPT, "disk"); /* there was none */
  connector_source_unref(f->source);
  FAILS(open_source(f, &(weir_bytes){0}), WEIR_E_CORRUPT, "disk");
  weir_bytes_release(&position);
}

static void test_positions_are_described_in_a_line(void **state) {
  fixture *f = *state;
  weir_bytes position = {0}, text = {0};
  static const struct {
    const char *text;
    size_t size;
    bool good;
  } cases[] = {{"row 7", 5, true}, {"", 0, false},     {"two\nlines", 9, false},
               {"a\0b", 3, false}, {"\xff", 1, false}, {"", 1, false},
               {NULL, 0, false}};
  f->source_ops.describe_position = describe;
  connector_describe_position(&f->source_ops, &position, &text); /* it fails */
  assert_null(text.release);
  OK(weir_bytes_copy(&position, "p", 1, &f->err));
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    if (cases[i].text)
      OK(weir_bytes_copy(&described, cases[i].text, cases[i].size, &f->err));
    else
      described = (weir_bytes){0}; /* absent */
    connector_describe_position(&f->source_ops, &position, &text);
    assert_int_equal(text.release != NULL, cases[i].good);
    weir_bytes_release(&text);
  }
  char *large = calloc(1, WEIR_MAX_POSITION_TEXT + 1);
  memset(large, 'x', WEIR_MAX_POSITION_TEXT + 1);
  OK(weir_bytes_copy(&described, large, WEIR_MAX_POSITION_TEXT + 1, &f->err));
  connector_describe_position(&f->source_ops, &position, &text);
  assert_null(text.release);
  OK(weir_bytes_copy(&described, large, WEIR_MAX_POSITION_TEXT, &f->err));
  connector_describe_position(&f->source_ops, &position, &text);
  assert_int_equal(text.size, WEIR_MAX_POSITION_TEXT);
  weir_bytes_release(&text);
  weir_bytes_release(&position);
  free(large);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_no_hook_of_a_retired_sink_is_called),
      TEST(test_pre_commit_needs_an_epoch),
      TEST(test_what_is_retired_stays_so),
      TEST(test_binding_comes_after_the_contract),
      TEST(test_failures_of_questions),
      TEST(test_keys_that_are_none),
      TEST(test_times_are_the_hooks),
      TEST(test_bindings_that_are_none),
      TEST(test_a_schema_that_is_none),
      TEST(test_verify_and_sweep),
      TEST(test_a_committer_of_another_abi),
      TEST(test_a_list_that_nobody_can_release),
      TEST(test_a_list_that_could_not_be_had),
      TEST(test_a_descriptor_without_bytes),
      TEST(test_a_batch_keeps_its_own_namespace),
      TEST(test_a_commit_that_was_cancelled_is_in_doubt),
      TEST(test_a_cleaner_of_another_abi),
      TEST(test_abort_batches_are_in_order),
      TEST(test_no_hook_of_a_retired_source_is_called),
      TEST(test_source_contracts_out_of_range),
      TEST(test_reads_that_are_none),
      TEST(test_a_position_without_bytes),
      TEST(test_a_position_that_is_anothers),
      TEST(test_positions_are_described_in_a_line),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
