/* SPDX-License-Identifier: Apache-2.0 */
/* The lifecycle of a sink, and what a checked call lets through. ctest: threads */
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
  weir_sink_ops ops;
  connector_host *host;
  connector_spec *spec;
  connector_sink *sink;
  weir_schema *schema;
  weir_batch *batch;
  weir_binding binding;
  weir_call call;
  weir_error err;
} fixture;

#define OK(call_) assert_ok((call_), &f->err, #call_)
static void assert_ok(weir_status status, const weir_error *err, const char *what) {
  if (status) fail_msg("%s: %s %s", what, weir_status_name(status), err->message);
}
static void assert_fails(weir_status status, weir_status want, const weir_error *err,
                         const char *part) {
  if (status != want || !strstr(err->message, part)) {
    fail_msg("%s '%s', not %s '%s'", weir_status_name(status), err->message,
             weir_status_name(want), part);
  }
}
#define FAILS(call_, code, part) assert_fails((call_), (code), &f->err, (part))
#define STATE(name) \
  assert_string_equal(connector_sink_state_name(connector_sink_state_of(f->sink)), name)

static const weir_namespace ns = {
    .struct_size = sizeof(ns), .pipeline = "p", .sink_id = "lake"};

static int setup(void **state) {
  fixture *f = calloc(1, sizeof(*f));
  weir_options *options = NULL;
  fake_reset();
  *state = f;
  OK(connector_fill_sink(&fake_sink_ops, NULL, &f->ops, &f->err));
  f->host = connector_host_new(NULL, &f->err);
  OK(weir_options_new(f->ops.options, "sink lake", NULL, NULL, 0, NULL, &options,
                      &f->err));
  OK(connector_spec_new_sink(&f->ops, f->host, options, &f->spec, &f->err));
  f->schema = rows_schema("id: int64");
  f->batch = rows_batch(f->schema, "{\"id\":1}\n{\"id\":2}\n");
  connector_call_arm(&f->call, WEIR_NO_DEADLINE, WEIR_NO_DEADLINE);
  return 0;
}

static int teardown(void **state) {
  fixture *f = *state;
  bool made = f->sink;
  connector_sink_unref(f->sink);
  assert_int_equal(fake.released, made);
  weir_binding_done(&f->binding);
  weir_batch_unref(f->batch);
  weir_schema_unref(f->schema);
  connector_spec_unref(f->spec);
  connector_host_unref(f->host);
  free(f);
  fake_reset();
  return 0;
}

static void make(fixture *f) {
  weir_contract contract = {0};
  OK(connector_sink_new(f->spec, 1, 3, &f->sink, &f->err));
  OK(connector_sink_contract(f->sink, &contract, &f->err));
}

static void bind(fixture *f) {
  make(f);
  OK(connector_sink_bind(f->sink, &ns, &f->err));
}

static void open_sink(fixture *f) {
  bind(f);
  OK(connector_sink_resolve_schema(f->sink, &f->call, f->schema, &f->binding, &f->err));
  OK(connector_sink_prepare_schema(f->sink, &f->call, &f->binding, &f->err));
  OK(connector_sink_open(f->sink, &f->call, &f->binding, &f->err));
}

static weir_status write(fixture *f) {
  weir_write_result result = {0};
  return connector_sink_write_batch(f->sink, &f->call, f->batch, &result, &f->err);
}

/* ---- the table --------------------------------------------------------------------------------- */

/* Rows: hooks. Columns: created bound open epoch prepared failed closed retired. */
static void test_the_table(void **state) {
  (void)state;
  static const struct {
    const char *hook, *committable, *weaker;
  } rows[CONNECTOR_SINK_HOOKS] = {
      {"contract", "11000000", "11000000"},
      {"keyed_mutation_key", "11000000", "11000000"},
      {"bind_runtime_context", "10000000", "10000000"},
      {"resolve_schema", "01000000", "01000000"},
      {"prepare_schema", "01000000", "01000000"},
      {"open", "01000000", "01000000"},
      {"write_batch", "00010000", "00100000"},
      {"schema", "00111000", "00100000"},
      {"checkpoint_artifact_intent", "00111000", "00000000"},
      {"begin_epoch", "00101000", "00000000"},
      {"pre_commit", "00010000", "00100000"},
      {"rollback_epoch", "00111100", "00000000"},
      {"flush", "00000000", "00100000"},
      {"close", "00111100", "00100100"},
      {"commit", "00111100", "00000000"},
      {"coordinated_abort_cleaner", "01111110", "01100110"},
      {"verify", "01000000", "01000000"},
      {"sweep", "01000000", "01000000"},
  };
  for (int hook = 0; hook < CONNECTOR_SINK_HOOKS; hook++) {
    assert_string_equal(connector_sink_hook_name((connector_sink_hook)hook),
                        rows[hook].hook);
    for (int s = 0; s < CONNECTOR_SINK_STATES; s++) {
      bool c =
          connector_sink_may((connector_sink_state)s, (connector_sink_hook)hook, true);
      bool w =
          connector_sink_may((connector_sink_state)s, (connector_sink_hook)hook, false);
      if (c != (rows[hook].committable[s] == '1') || w != (rows[hook].weaker[s] == '1')) {
        fail_msg("%s in state %s", rows[hook].hook,
                 connector_sink_state_name((connector_sink_state)s));
      }
    }
  }
}

/* ---- the way through ------------------------------------------------------------------------------ */

static void test_a_whole_life(void **state) {
  fixture *f = *state;
  weir_bytes bytes = {0};
  weir_write_result result = {0};
  open_sink(f);
  STATE("open");
  assert_int_equal(connector_sink_generation(f->sink), 3);
  assert_string_equal(f->binding.identity, "folder=7:42\n");
  assert_int_equal(connector_sink_write_timeout_ms(f->sink),
                   1); /* 0 would never be met */
  assert_int_equal(connector_sink_flush_interval_ms(f->sink), 5000);
  assert_null(connector_sink_tracker(f->sink));
  assert_non_null(connector_sink_schema(f->sink));
  for (uint64_t n = 5; n < 8; n++) {
    OK(connector_sink_intent(f->sink, &f->call, n, &bytes, &f->err));
    weir_bytes_release(&bytes);
    OK(connector_sink_begin_epoch(f->sink, &f->call, n, &f->err));
    STATE("in an epoch");
    OK(connector_sink_write_batch(f->sink, &f->call, f->batch, &result, &f->err));
    assert_int_equal(result.records, 2);
    assert_int_equal(result.bytes, 100);
    OK(connector_sink_pre_commit(f->sink, &f->call, n, &bytes, &f->err));
    assert_int_equal(bytes.size, 4);
    weir_bytes_release(&bytes);
    STATE("prepared");
  }
  OK(connector_sink_close(f->sink, &f->call, &f->err));
  STATE("closed");
  FAILS(connector_sink_close(f->sink, &f->call, &f->err), WEIR_E_INVALID_STATE,
        "which is closed");
  assert_string_equal(
      fake.log,
      "create contract bind_runtime_context resolve_schema prepare_schema open schema "
      "checkpoint_artifact_intent begin_epoch write_batch pre_commit "
      "checkpoint_artifact_intent begin_epoch write_batch pre_commit "
      "checkpoint_artifact_intent begin_epoch write_batch pre_commit close ");
}

static void test_a_weaker_life(void **state) {
  fixture *f = *state;
  weir_bytes bytes = {0};
  fake.contract.consistency = WEIR_DURABLE_AT_LEAST_ONCE;
  fake.no_committer = 1;
  fake.bytes = SIZE_MAX;
  open_sink(f);
  OK(write(f));
  OK(connector_sink_flush(f->sink, &f->call, &f->err));
  OK(connector_sink_pre_commit(f->sink, &f->call, 1, &bytes, &f->err));
  assert_null(bytes.release);
  STATE("open");
  FAILS(connector_sink_begin_epoch(f->sink, &f->call, 2, &f->err), WEIR_E_INVALID_STATE,
        "begin_epoch must not be called");
  FAILS(connector_sink_rollback_epoch(f->sink, &f->call, 1, &f->err),
        WEIR_E_INVALID_STATE, "rollback_epoch");
  FAILS(connector_sink_take_over(f->sink, &f->call, &f->err), WEIR_E_INVALID_STATE,
        "commit");
  /* A descriptor that nobody would commit. */
  fake.bytes = 4;
  FAILS(connector_sink_pre_commit(f->sink, &f->call, 2, &bytes, &f->err), WEIR_E_INTERNAL,
        "nobody would ever commit");
  STATE("failed");
  OK(connector_sink_close(f->sink, &f->call, &f->err));
}

static void test_wrong_order(void **state) {
  fixture *f = *state;
  weir_bytes bytes = {0};
  weir_contract contract = {0};
  OK(connector_sink_new(f->spec, 1, 3, &f->sink, &f->err));
  FAILS(connector_sink_bind(f->sink, &ns, &f->err), WEIR_E_INVALID_STATE,
        "needs the contract");
  FAILS(write(f), WEIR_E_INVALID_STATE,
        "write_batch must not be called on participant 1, generation 3");
  OK(connector_sink_contract(f->sink, &contract, &f->err));
  OK(connector_sink_bind(f->sink, &ns, &f->err));
  FAILS(connector_sink_bind(f->sink, &ns, &f->err), WEIR_E_INVALID_STATE,
        "which is bound");
  OK(connector_sink_resolve_schema(f->sink, &f->call, f->schema, &f->binding, &f->err));
  OK(connector_sink_open(f->sink, &f->call, &f->binding, &f->err));
  FAILS(write(f), WEIR_E_INVALID_STATE, "which is open");
  FAILS(connector_sink_flush(f->sink, &f->call, &f->err), WEIR_E_INVALID_STATE, "flush");
  OK(connector_sink_begin_epoch(f->sink, &f->call, 5, &f->err));
  FAILS(connector_sink_begin_epoch(f->sink, &f->call, 6, &f->err), WEIR_E_INVALID_STATE,
        "epoch");
  FAILS(connector_sink_pre_commit(f->sink, &f->call, 6, &bytes, &f->err),
        WEIR_E_INVALID_STATE, "pre_commit of epoch 6 after begin_epoch of 5");
  FAILS(connector_sink_intent(f->sink, &f->call, 5, &bytes, &f->err),
        WEIR_E_INVALID_STATE, "epoch 5");
  OK(connector_sink_pre_commit(f->sink, &f->call, 5, &bytes, &f->err));
  weir_bytes_release(&bytes);
  FAILS(write(f), WEIR_E_INVALID_STATE, "which is prepared");
  FAILS(connector_sink_begin_epoch(f->sink, &f->call, 5, &f->err), WEIR_E_INVALID_STATE,
        "begin_epoch of epoch 5");
  FAILS(connector_sink_rollback_epoch(f->sink, &f->call, 0, &f->err),
        WEIR_E_INVALID_STATE, "epoch 0");
  assert_string_equal(fake.log,
                      "create contract bind_runtime_context resolve_schema open schema "
                      "begin_epoch pre_commit ");
}

static void test_rollback(void **state) {
  fixture *f = *state;
  weir_bytes bytes = {0};
  open_sink(f);
  OK(connector_sink_rollback_epoch(f->sink, &f->call, 3,
                                   &f->err)); /* of an earlier generation */
  STATE("open");
  OK(connector_sink_begin_epoch(f->sink, &f->call, 4, &f->err));
  OK(connector_sink_rollback_epoch(f->sink, &f->call, 3, &f->err));
  STATE("in an epoch");
  OK(connector_sink_rollback_epoch(f->sink, &f->call, 4, &f->err));
  STATE("open");
  OK(connector_sink_rollback_epoch(f->sink, &f->call, 4, &f->err));
  OK(connector_sink_begin_epoch(f->sink, &f->call, 5, &f->err));
  OK(connector_sink_pre_commit(f->sink, &f->call, 5, &bytes, &f->err));
  weir_bytes_release(&bytes);
  OK(connector_sink_rollback_epoch(f->sink, &f->call, 5, &f->err));
  STATE("open");
  OK(connector_sink_begin_epoch(f->sink, &f->call, 6, &f->err));
  fake.fail_at = "rollback_epoch";
  FAILS(connector_sink_rollback_epoch(f->sink, &f->call, 6, &f->err), WEIR_E_IO,
        "sink lake: the disk is gone");
  STATE("failed");
}

/* ---- failures ---------------------------------------------------------------------------------------- */

static void test_after_a_failed_write(void **state) {
  fixture *f = *state;
  open_sink(f);
  OK(connector_sink_begin_epoch(f->sink, &f->call, 4, &f->err));
  fake.fail_at = "write_batch";
  fake.fail_flags = WEIR_ERR_RETRIABLE;
  FAILS(write(f), WEIR_E_IO, "sink lake: the disk is gone");
  assert_int_equal(f->err.flags, WEIR_ERR_RETRIABLE);
  STATE("in an epoch");
  fake.fail = WEIR_E_BAD_DATA;
  fake.fail_flags = 0;
  FAILS(write(f), WEIR_E_BAD_DATA, "gone");
  assert_int_equal(f->err.flags, WEIR_ERR_BAD_DATA);
  STATE("in an epoch");
  fake.fail = WEIR_E_IO;
  FAILS(write(f), WEIR_E_IO, "gone");
  STATE("failed");
  fake.fail_at = NULL;
  FAILS(write(f), WEIR_E_INVALID_STATE, "which is failed");
  OK(connector_sink_rollback_epoch(f->sink, &f->call, 4, &f->err));
  STATE("open");
  OK(connector_sink_begin_epoch(f->sink, &f->call, 5, &f->err));
  OK(write(f));
}

static void test_a_silent_failure(void **state) {
  fixture *f = *state;
  open_sink(f);
  fake.fail_at = "begin_epoch";
  fake.fail_message = NULL;
  FAILS(connector_sink_begin_epoch(f->sink, &f->call, 4, &f->err), WEIR_E_IO,
        "sink lake: begin_epoch failed with IO and said nothing more");
  STATE("failed");
  FAILS(connector_sink_begin_epoch(f->sink, &f->call, 5, NULL), WEIR_E_INVALID_STATE, "");
  OK(connector_sink_rollback_epoch(f->sink, &f->call, 4, &f->err));
  STATE("open");
}

static void test_failures_on_the_way_up(void **state) {
  fixture *f = *state;
  fake.fail_at = "create";
  FAILS(connector_sink_new(f->spec, 1, 1, &f->sink, &f->err), WEIR_E_IO,
        "sink lake: the disk");
  assert_null(f->sink);
  fake.fail_at = NULL;
  bind(f);
  fake.fail_at = "resolve_schema";
  FAILS(connector_sink_resolve_schema(f->sink, &f->call, f->schema, &f->binding, &f->err),
        WEIR_E_IO, "gone");
  assert_null(f->binding.schema);
  fake.fail_at = NULL;
  fake.no_binding = 1;
  FAILS(connector_sink_resolve_schema(f->sink, &f->call, f->schema, &f->binding, &f->err),
        WEIR_E_INTERNAL, "without a schema");
  fake.no_binding = 0;
  OK(connector_sink_resolve_schema(f->sink, &f->call, f->schema, &f->binding, &f->err));
  fake.fail_at = "open";
  fake.fail_flags = WEIR_ERR_RETRIABLE;
  FAILS(connector_sink_open(f->sink, &f->call, &f->binding, &f->err), WEIR_E_IO, "gone");
  STATE("bound");
  fake.fail_flags = 0;
  FAILS(connector_sink_open(f->sink, &f->call, &f->binding, &f->err), WEIR_E_IO, "gone");
  STATE("closed");
}

static void test_a_close_is_made_once(void **state) {
  fixture *f = *state;
  open_sink(f);
  fake.fail_at = "close";
  FAILS(connector_sink_close(f->sink, &f->call, &f->err), WEIR_E_IO, "gone");
  STATE("closed");
}

/* ---- answers ------------------------------------------------------------------------------------------ */

static void test_contract_values(void **state) {
  fixture *f = *state;
  weir_contract out = {0};
  OK(connector_sink_new(f->spec, 1, 1, &f->sink, &f->err));
  int32_t *const fields[] = {&fake.contract.consistency, &fake.contract.topology,
                             &fake.contract.input,       &fake.contract.staging,
                             &fake.contract.overlap,     &fake.contract.cas_commit,
                             &fake.contract.claims};
  static const int32_t beyond[] = {3, 3, 3, 2, 2, 2, 2};
  for (size_t i = 0; i < 7; i++) {
    int32_t good = *fields[i];
    *fields[i] = beyond[i];
    FAILS(connector_sink_contract(f->sink, &out, &f->err), WEIR_E_INTERNAL,
          "out of range");
    *fields[i] = -1;
    FAILS(connector_sink_contract(f->sink, &out, &f->err), WEIR_E_INTERNAL,
          "bug of connector 'fake'");
    *fields[i] = good;
  }
  fake.contract.commit_interval_ns = -1;
  FAILS(connector_sink_contract(f->sink, &out, &f->err), WEIR_E_INTERNAL, "out of range");
  fake.contract.commit_interval_ns = 5;
  OK(connector_sink_contract(f->sink, &out, &f->err));
  assert_int_equal(out.consistency, WEIR_COMMITTABLE);
  assert_int_equal(out.commit_interval_ns, 5);
}

static void test_keys(void **state) {
  fixture *f = *state;
  weir_names key = {0};
  OK(connector_sink_new(f->spec, 1, 1, &f->sink, &f->err));
  OK(connector_sink_keyed_mutation_key(f->sink, &key, &f->err));
  assert_null(key.release);
  fake.empty_key = 1;
  FAILS(connector_sink_keyed_mutation_key(f->sink, &key, &f->err), WEIR_E_INTERNAL,
        "empty key");
  fake.key[0] = "a";
  fake.key[1] = "a";
  FAILS(connector_sink_keyed_mutation_key(f->sink, &key, &f->err), WEIR_E_INTERNAL,
        "twice");
  fake.key[1] = "";
  FAILS(connector_sink_keyed_mutation_key(f->sink, &key, &f->err), WEIR_E_INTERNAL,
        "without a name");
  assert_null(key.release);
  fake.key[1] = "b";
  OK(connector_sink_keyed_mutation_key(f->sink, &key, &f->err));
  assert_int_equal(key.n, 2);
  weir_names_release(&key);
}

static void test_sizes_of_answers(void **state) {
  fixture *f = *state;
  weir_bytes bytes = {0};
  open_sink(f);
  fake.bytes = WEIR_MAX_INTENT;
  OK(connector_sink_intent(f->sink, &f->call, 1, &bytes, &f->err));
  weir_bytes_release(&bytes);
  fake.bytes = SIZE_MAX;
  OK(connector_sink_intent(f->sink, &f->call, 1, &bytes, &f->err));
  assert_null(bytes.release);
  fake.bytes = WEIR_MAX_INTENT + 1;
  FAILS(connector_sink_intent(f->sink, &f->call, 1, &bytes, &f->err), WEIR_E_INTERNAL,
        "65537 bytes");
  assert_null(bytes.release);
  STATE("failed");
  OK(connector_sink_rollback_epoch(f->sink, &f->call, 1, &f->err));
  STATE("failed"); /* that epoch had not begun */
}

static void test_a_descriptor_that_is_too_large(void **state) {
  fixture *f = *state;
  weir_bytes bytes = {0};
  open_sink(f);
  OK(connector_sink_begin_epoch(f->sink, &f->call, 1, &f->err));
  fake.bytes = WEIR_MAX_DESCRIPTOR + 1;
  FAILS(connector_sink_pre_commit(f->sink, &f->call, 1, &bytes, &f->err), WEIR_E_INTERNAL,
        "16777217 bytes");
  STATE("failed");
  OK(connector_sink_rollback_epoch(f->sink, &f->call, 1, &f->err));
  OK(connector_sink_begin_epoch(f->sink, &f->call, 2, &f->err));
  fake.bytes = 4;
  fake.bytes_without_data = 1;
  FAILS(connector_sink_pre_commit(f->sink, &f->call, 2, &bytes, &f->err), WEIR_E_INTERNAL,
        "no pointer");
  assert_null(bytes.release);
}

static void test_rows_that_do_not_add_up(void **state) {
  fixture *f = *state;
  weir_write_result result = {7, 7};
  open_sink(f);
  OK(connector_sink_begin_epoch(f->sink, &f->call, 1, &f->err));
  fake.short_by = 1;
  FAILS(connector_sink_write_batch(f->sink, &f->call, f->batch, &result, &f->err),
        WEIR_E_INTERNAL, "OK for 1 of the 2 rows");
  assert_int_equal(result.records, 7);
  STATE("failed");
}

static void test_batches_of_another_schema(void **state) {
  fixture *f = *state;
  open_sink(f);
  OK(connector_sink_begin_epoch(f->sink, &f->call, 1, &f->err));
  OK(write(f));
  weir_schema *same = rows_schema("id: int64"), *other = rows_schema("id: utf8");
  weir_batch *good = rows_batch(same, "{\"id\":3}\n"),
             *bad = rows_batch(other, "{\"id\":\"x\"}\n");
  weir_write_result result = {0};
  OK(connector_sink_write_batch(f->sink, &f->call, good, &result, &f->err));
  FAILS(connector_sink_write_batch(f->sink, &f->call, bad, &result, &f->err),
        WEIR_E_SCHEMA, "sink lake");
  STATE("in an epoch"); /* the connector never saw it */
  weir_batch_unref(good);
  weir_batch_unref(bad);
  weir_schema_unref(same);
  weir_schema_unref(other);
}

static void test_schema_against_binding(void **state) {
  fixture *f = *state;
  static const char *const schemas[] = {"", "id: utf8", "id: int64; more: int64"};
  static const weir_status codes[] = {WEIR_E_INTERNAL, WEIR_E_SCHEMA, WEIR_E_SCHEMA};
  for (size_t i = 0; i < 3; i++) {
    bind(f);
    OK(connector_sink_resolve_schema(f->sink, &f->call, f->schema, &f->binding, &f->err));
    fake.schema = schemas[i];
    FAILS(connector_sink_open(f->sink, &f->call, &f->binding, &f->err), codes[i],
          "sink lake");
    STATE("failed");
    OK(connector_sink_close(f->sink, &f->call, &f->err));
    connector_sink_unref(f->sink);
    f->sink = NULL;
    weir_binding_done(&f->binding);
  }
  fake.released = 0;
}

static void test_committer_and_contract_agree(void **state) {
  fixture *f = *state;
  bind(f);
  OK(connector_sink_resolve_schema(f->sink, &f->call, f->schema, &f->binding, &f->err));
  fake.no_committer = 1;
  FAILS(connector_sink_open(f->sink, &f->call, &f->binding, &f->err), WEIR_E_INTERNAL,
        "no committer");
  connector_sink_unref(f->sink);
  fake.released = 0;
  fake.no_committer = 0;
  fake.contract.consistency = WEIR_EPHEMERAL;
  bind(f);
  FAILS(connector_sink_open(f->sink, &f->call, &f->binding, &f->err), WEIR_E_INTERNAL,
        "not committable");
}

/* ---- committer and cleaner -------------------------------------------------------------------------- */

static void test_committer(void **state) {
  fixture *f = *state;
  weir_cursor cursor = {.checkpoint = 99};
  weir_cursor_list list = {0};
  open_sink(f);
  OK(connector_sink_take_over(f->sink, &f->call, &f->err));
  fake.cursor.token = 7; /* of no attempt: nothing */
  OK(connector_sink_observe_cursor(f->sink, &f->call, &cursor, &f->err));
  assert_int_equal(cursor.checkpoint, 0);
  assert_int_equal(cursor.token, 0);
  fake.cursor = (weir_cursor){.checkpoint = 4};
  FAILS(connector_sink_observe_cursor(f->sink, &f->call, &cursor, &f->err),
        WEIR_E_INTERNAL, "without a token");
  fake.cursor.token = 2;
  OK(connector_sink_observe_cursor(f->sink, &f->call, &cursor, &f->err));
  assert_int_equal(cursor.checkpoint, 4);
  OK(connector_sink_find_cursors(f->sink, &f->call, &list, &f->err));
  assert_int_equal(list.n, 0);
  list.release(&list);
  fake.found = 2;
  OK(connector_sink_find_cursors(f->sink, &f->call, &list, &f->err));
  assert_int_equal(list.v[1].cursor.checkpoint, 4);
  list.release(&list);
  fake.found_nothing = 1;
  FAILS(connector_sink_find_cursors(f->sink, &f->call, &list, &f->err), WEIR_E_INTERNAL,
        "no list");
  /* A failed writer's committer still answers. */
  OK(connector_sink_begin_epoch(f->sink, &f->call, 5, &f->err));
  fake.fail_at = "write_batch";
  assert_int_equal(write(f), WEIR_E_IO);
  STATE("failed");
  OK(connector_sink_observe_cursor(f->sink, &f->call, &cursor, &f->err));
}

static void test_commit(void **state) {
  fixture *f = *state;
  weir_cursor cursor = {0};
  uint8_t descriptor[4] = {1};
  weir_commit_entry entries[] = {{1, 1, descriptor, 4}, {2, 0, NULL, 0}};
  weir_commit_attempt attempts[] = {{{.checkpoint = 4, .token = 2}, entries, 2},
                                    {{.checkpoint = 5, .token = 2}, entries, 2}};
  weir_commit_batch batch = {
      .attempts = attempts, .n_attempts = 2, .predecessor = {.checkpoint = 3}};
  open_sink(f);
  OK(connector_sink_commit(f->sink, &f->call, &batch, &cursor, &f->err));
  assert_int_equal(cursor.checkpoint, 5);
  fake.cursor = (weir_cursor){.checkpoint = 4, .token = 2};
  cursor.checkpoint = 0;
  FAILS(connector_sink_commit(f->sink, &f->call, &batch, &cursor, &f->err),
        WEIR_E_INTERNAL, "the cursor of attempt 4");
  assert_int_equal(cursor.checkpoint, 0);
  fake.cursor = (weir_cursor){.checkpoint = 5, .token = 2, .digest = {1}};
  FAILS(connector_sink_commit(f->sink, &f->call, &batch, &cursor, &f->err),
        WEIR_E_INTERNAL, "digest");
  fake.cursor = (weir_cursor){0};
  fake.fail_at = "commit_aggregated";
  fake.fail_flags = WEIR_ERR_RETRIABLE;
  FAILS(connector_sink_commit(f->sink, &f->call, &batch, &cursor, &f->err), WEIR_E_IO,
        "gone");
  assert_int_equal(f->err.flags, WEIR_ERR_RETRIABLE);
  fake.fail_flags = 0;
  FAILS(connector_sink_commit(f->sink, &f->call, &batch, &cursor, &f->err), WEIR_E_IO,
        "gone");
  assert_int_equal(f->err.flags, 0);
  fake.fail = WEIR_E_TIMEOUT; /* of its own accord: not for sure */
  FAILS(connector_sink_commit(f->sink, &f->call, &batch, &cursor, &f->err),
        WEIR_E_TIMEOUT, "gone");
  assert_int_equal(f->err.flags, WEIR_ERR_IN_DOUBT);
  STATE("open");
}

static void test_commit_batches_are_checked(void **state) {
  fixture *f = *state;
  weir_cursor cursor = {0};
  uint8_t *big = calloc(1, WEIR_MAX_DESCRIPTOR + 1);
  weir_commit_entry *entries = calloc(WEIR_MAX_BATCH_ENTRIES + 1, sizeof(*entries));
  for (size_t i = 0; i <= WEIR_MAX_BATCH_ENTRIES; i++) entries[i].participant_id = i + 1;
  weir_commit_attempt a = {{.checkpoint = 4, .token = 2}, entries, 1};
  weir_commit_batch batch = {
      .attempts = &a, .n_attempts = 0, .predecessor = {.checkpoint = 3}};
  open_sink(f);
  FAILS(connector_sink_commit(f->sink, &f->call, &batch, &cursor, &f->err),
        WEIR_E_INTERNAL, "no successor");
  batch.n_attempts = 1;
  batch.predecessor.checkpoint = 4;
  FAILS(connector_sink_commit(f->sink, &f->call, &batch, &cursor, &f->err),
        WEIR_E_INTERNAL, "out of order");
  batch.predecessor.checkpoint = 3;
  a.cursor.token = 0;
  FAILS(connector_sink_commit(f->sink, &f->call, &batch, &cursor, &f->err),
        WEIR_E_INTERNAL, "no token");
  a.cursor.token = 2;
  a.n_entries = WEIR_MAX_BATCH_ENTRIES + 1;
  FAILS(connector_sink_commit(f->sink, &f->call, &batch, &cursor, &f->err),
        WEIR_E_INTERNAL, "bounds");
  a.n_entries = WEIR_MAX_BATCH_ENTRIES;
  OK(connector_sink_commit(f->sink, &f->call, &batch, &cursor, &f->err));
  a.n_entries = 5;
  for (size_t i = 0; i < 5; i++) {
    entries[i].present = 1;
    entries[i].descriptor = big;
    entries[i].size = WEIR_MAX_DESCRIPTOR;
  }
  FAILS(connector_sink_commit(f->sink, &f->call, &batch, &cursor, &f->err),
        WEIR_E_INTERNAL, "bounds");
  a.n_entries = 4;
  OK(connector_sink_commit(f->sink, &f->call, &batch, &cursor, &f->err));
  entries[1].size++;
  FAILS(connector_sink_commit(f->sink, &f->call, &batch, &cursor, &f->err),
        WEIR_E_INTERNAL, "too large");
  entries[1] = entries[0];
  FAILS(connector_sink_commit(f->sink, &f->call, &batch, &cursor, &f->err),
        WEIR_E_INTERNAL, "participants out of order");
  free(entries);
  free(big);
}

static void test_cleaner_outlives_the_sink(void **state) {
  fixture *f = *state;
  connector_cleaner *cleaner = NULL;
  weir_abort_entry entries[] = {{.checkpoint = 4, .participant_id = 2},
                                {.checkpoint = 4, .participant_id = 1}};
  weir_abort_batch batch = {.entries = entries, .n_entries = 2};
  make(f);
  FAILS(connector_sink_cleaner(f->sink, &cleaner, &f->err), WEIR_E_INVALID_STATE,
        "created");
  OK(connector_sink_bind(f->sink, &ns, &f->err));
  OK(connector_sink_cleaner(f->sink, &cleaner, &f->err));
  assert_int_equal(fake.cleaners, 1);
  connector_sink_unref(f->sink);
  f->sink = NULL;
  fake.released = 0;
  FAILS(connector_cleaner_clean(cleaner, &f->call, &batch, &f->err), WEIR_E_INTERNAL,
        "out of order");
  batch.n_entries = 1;
  OK(connector_cleaner_clean(cleaner, &f->call, &batch, &f->err));
  fake.fail_at = "clean";
  FAILS(connector_cleaner_clean(cleaner, &f->call, &batch, &f->err), WEIR_E_IO,
        "sink lake: the disk");
  connector_cleaner_free(cleaner);
  assert_int_equal(fake.cleaners, 0);
  connector_cleaner_free(NULL);
}

static void test_a_sink_without_a_cleaner(void **state) {
  fixture *f = *state;
  connector_cleaner *cleaner = (connector_cleaner *)1;
  weir_sink_ops table = fake_sink_ops;
  table.coordinated_abort_cleaner = NULL;
  OK(connector_fill_sink(&table, NULL, &f->ops, &f->err));
  bind(f);
  OK(connector_sink_cleaner(f->sink, &cleaner, &f->err));
  assert_null(cleaner);
}

/* ---- deadlines ------------------------------------------------------------------------------------------ */

static void *watch(void *arg) {
  weir_call *call = arg;
  while (!connector_call_give_up(call)) base_sleep(BASE_NS_PER_MS / 10);
  return NULL;
}

static void give_up_write(fixture *f) {
  pthread_t thread;
  open_sink(f);
  OK(connector_sink_begin_epoch(f->sink, &f->call, 4, &f->err));
  fake.block_at = "write_batch";
  assert_int_equal(base_thread_start(&thread, "watch", watch, &f->call, &f->err),
                   WEIR_OK);
  weir_write_result result = {7, 7};
  FAILS(connector_sink_write_batch(f->sink, &f->call, f->batch, &result, &f->err),
        WEIR_E_TIMEOUT, "sink lake: write_batch was given up");
  assert_int_equal(result.records, 7); /* it said OK, which came too late */
  pthread_join(thread, NULL);
  fake.block_at = NULL;
  connector_call_arm(&f->call, WEIR_NO_DEADLINE, WEIR_NO_DEADLINE);
}

static void test_given_up_and_retired(void **state) {
  fixture *f = *state;
  give_up_write(f);
  assert_false(connector_sink_is_cancel_safe(f->sink));
  STATE("retired");
  FAILS(connector_sink_rollback_epoch(f->sink, &f->call, 4, &f->err),
        WEIR_E_INVALID_STATE, "retired");
  FAILS(connector_sink_close(f->sink, &f->call, &f->err), WEIR_E_INVALID_STATE,
        "retired");
  assert_null(connector_sink_tracker(f->sink));
  assert_int_equal(connector_sink_flush_interval_ms(f->sink), 1);
}

static void test_given_up_and_safe(void **state) {
  fixture *f = *state;
  fake.policy = WEIR_CANCEL_SAFE;
  give_up_write(f);
  assert_true(connector_sink_is_cancel_safe(f->sink));
  STATE(
      "in an epoch"); /* it stays in use: a call that ran out of time may be made again */
  OK(connector_sink_rollback_epoch(f->sink, &f->call, 4, &f->err));
  STATE("open");
}

static void test_a_hook_that_sees_its_deadline(void **state) {
  fixture *f = *state;
  open_sink(f);
  OK(connector_sink_begin_epoch(f->sink, &f->call, 4, &f->err));
  fake.block_at = fake.fail_at = "write_batch";
  fake.fail = WEIR_E_TIMEOUT;
  connector_call_arm(&f->call, base_clock_mono(), WEIR_NO_DEADLINE);
  FAILS(write(f), WEIR_E_TIMEOUT, "gone");
  STATE("retired");
}

static void test_a_commit_given_up_is_in_doubt(void **state) {
  fixture *f = *state;
  pthread_t thread;
  weir_cursor cursor = {0};
  weir_commit_attempt a = {{.checkpoint = 4, .token = 2}, NULL, 0};
  weir_commit_batch batch = {.attempts = &a, .n_attempts = 1};
  open_sink(f);
  fake.block_at = "commit_aggregated";
  assert_int_equal(base_thread_start(&thread, "watch", watch, &f->call, &f->err),
                   WEIR_OK);
  FAILS(connector_sink_commit(f->sink, &f->call, &batch, &cursor, &f->err),
        WEIR_E_TIMEOUT, "commit_aggregated was given up");
  assert_int_equal(f->err.flags, WEIR_ERR_IN_DOUBT);
  pthread_join(thread, NULL);
  STATE("retired");
}

static void test_retired_from_outside(void **state) {
  fixture *f = *state;
  open_sink(f);
  connector_sink_ref(f->sink);
  connector_sink_retire(f->sink);
  connector_sink_unref(f->sink);
  assert_int_equal(fake.released, 0);
  STATE("retired");
  FAILS(connector_sink_begin_epoch(f->sink, &f->call, 4, &f->err), WEIR_E_INVALID_STATE,
        "retired");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_table),
      TEST(test_a_whole_life),
      TEST(test_a_weaker_life),
      TEST(test_wrong_order),
      TEST(test_rollback),
      TEST(test_after_a_failed_write),
      TEST(test_a_silent_failure),
      TEST(test_failures_on_the_way_up),
      TEST(test_a_close_is_made_once),
      TEST(test_contract_values),
      TEST(test_keys),
      TEST(test_sizes_of_answers),
      TEST(test_a_descriptor_that_is_too_large),
      TEST(test_rows_that_do_not_add_up),
      TEST(test_batches_of_another_schema),
      TEST(test_schema_against_binding),
      TEST(test_committer_and_contract_agree),
      TEST(test_committer),
      TEST(test_commit),
      TEST(test_commit_batches_are_checked),
      TEST(test_cleaner_outlives_the_sink),
      TEST(test_a_sink_without_a_cleaner),
      TEST(test_given_up_and_retired),
      TEST(test_given_up_and_safe),
      TEST(test_a_hook_that_sees_its_deadline),
      TEST(test_a_commit_given_up_is_in_doubt),
      TEST(test_retired_from_outside),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
