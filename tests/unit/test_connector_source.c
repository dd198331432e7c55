/* SPDX-License-Identifier: Apache-2.0 */
/* The lifecycle of a source, and what a checked call lets through. ctest: threads */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "connector/connector.h"
#include "support/fakes.h"
#include "support/rows.h"

typedef struct fixture {
  weir_source_ops ops;
  connector_host *host;
  connector_spec *spec;
  connector_source *source;
  weir_schema *schema;
  weir_batch *batch;
  int32_t what;
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
#define STATE(name)                                                                      \
  assert_string_equal(connector_source_state_name(connector_source_state_of(f->source)), \
                      name)

static void make_spec(fixture *f, const weir_source_ops *table) {
  weir_options *options = NULL;
  OK(connector_fill_source(table, NULL, &f->ops, &f->err));
  OK(weir_options_new(f->ops.options, "source orders", NULL, NULL, 0, NULL, &options,
                      &f->err));
  OK(connector_spec_new_source(&f->ops, f->host, options, &f->spec, &f->err));
}

static int setup(void **state) {
  fixture *f = calloc(1, sizeof(*f));
  fake_reset();
  *state = f;
  f->host = connector_host_new(NULL, &f->err);
  make_spec(f, &fake_source_ops);
  connector_call_arm(&f->call, WEIR_NO_DEADLINE, WEIR_NO_DEADLINE);
  return 0;
}

static int teardown(void **state) {
  fixture *f = *state;
  bool made = f->source;
  connector_source_unref(f->source);
  assert_int_equal(fake.released, made);
  weir_batch_unref(f->batch);
  weir_schema_unref(f->schema);
  connector_spec_unref(f->spec);
  connector_host_unref(f->host);
  free(f);
  fake_reset();
  return 0;
}

static void open_source(fixture *f) {
  weir_source_contract contract = {0};
  OK(connector_source_new(f->spec, 2, &f->source, &f->err));
  OK(connector_source_contract(f->source, &contract, &f->err));
  OK(connector_source_resolve_schema(f->source, &f->call, &f->schema, &f->err));
  OK(connector_source_open(f->source, &f->call, NULL, &f->err));
}

static weir_status read(fixture *f) {
  weir_batch *letters = NULL;
  return connector_source_read(f->source, &f->call, &f->what, &f->batch, &letters,
                               &f->err);
}

/* Rows: hooks. Columns: created resolved open ended failed closed retired. */
static void test_the_table(void **state) {
  (void)state;
  static const char *const rows[CONNECTOR_SOURCE_HOOKS][2] = {
      {"contract", "1100000"},  {"use_schema", "1000000"}, {"resolve_schema", "1100000"},
      {"set_aside", "1100000"}, {"open", "0100000"},       {"read", "0010000"},
      {"position", "0011000"},  {"seek", "0011000"},       {"committed", "0011000"},
      {"close", "0011100"}};
  for (int hook = 0; hook < CONNECTOR_SOURCE_HOOKS; hook++) {
    assert_string_equal(connector_source_hook_name((connector_source_hook)hook),
                        rows[hook][0]);
    for (int s = 0; s < CONNECTOR_SOURCE_STATES; s++) {
      bool may =
          connector_source_may((connector_source_state)s, (connector_source_hook)hook);
      if (may != (rows[hook][1][s] == '1')) {
        fail_msg("%s in state %s", rows[hook][0],
                 connector_source_state_name((connector_source_state)s));
      }
    }
  }
}

static void test_a_whole_life(void **state) {
  fixture *f = *state;
  weir_bytes position = {0};
  open_source(f);
  assert_int_equal(connector_source_generation(f->source), 2);
  fake.batch = rows_batch(f->schema, "{\"id\":1}\n");
  OK(read(f));
  assert_int_equal(f->what, WEIR_READ_BATCH);
  assert_int_equal(weir_batch_rows(f->batch), 1);
  weir_batch_unref(f->batch);
  f->batch = NULL;
  OK(connector_source_position(f->source, &position, &f->err));
  assert_int_equal(position.size, 4);
  fake.read = WEIR_READ_NOTHING;
  OK(read(f));
  assert_int_equal(f->what, WEIR_READ_NOTHING);
  assert_null(f->batch);
  STATE("open");
  fake.read = 0;
  OK(read(f));
  assert_int_equal(f->what, WEIR_READ_END);
  STATE("ended");
  FAILS(read(f), WEIR_E_INVALID_STATE,
        "source orders: read must not be called on generation 2");
  OK(connector_source_committed(f->source, &f->call, 4, &position, &f->err));
  OK(connector_source_seek(f->source, &f->call, &position, &f->err));
  weir_bytes_release(&position);
  STATE("open");
  OK(connector_source_seek(f->source, &f->call, NULL, &f->err));
  OK(read(f));
  OK(connector_source_close(f->source, &f->call, &f->err));
  FAILS(connector_source_close(f->source, &f->call, &f->err), WEIR_E_INVALID_STATE,
        "closed");
}

static void test_contracts(void **state) {
  fixture *f = *state;
  weir_source_contract c = {0};
  OK(connector_source_new(f->spec, 1, &f->source, &f->err));
  fake.source_contract.replay = 3;
  FAILS(connector_source_contract(f->source, &c, &f->err), WEIR_E_INTERNAL,
        "out of range");
  fake.source_contract.replay = WEIR_SOURCE_COMMIT_COUPLED;
  fake.source_contract.keyed = 2;
  FAILS(connector_source_contract(f->source, &c, &f->err), WEIR_E_INTERNAL,
        "out of range");
  fake.source_contract.keyed = 1;
  OK(connector_source_contract(f->source, &c, &f->err));
  assert_int_equal(c.keyed, 1);
}

static void test_replayable_needs_seek(void **state) {
  fixture *f = *state;
  weir_source_contract c = {0};
  weir_source_ops table = fake_source_ops;
  table.seek = NULL;
  connector_spec_unref(f->spec);
  make_spec(f, &table);
  OK(connector_source_new(f->spec, 1, &f->source, &f->err));
  FAILS(connector_source_contract(f->source, &c, &f->err), WEIR_E_INTERNAL, "no 'seek'");
  fake.source_contract.replay = WEIR_SOURCE_EPHEMERAL;
  OK(connector_source_contract(f->source, &c, &f->err));
}

static void test_answers_of_read(void **state) {
  fixture *f = *state;
  open_source(f);
  weir_batch *untouched = f->batch;
  fake.read = 9;
  FAILS(read(f), WEIR_E_INTERNAL, "read answered 9");
  assert_ptr_equal(f->batch, untouched);
  STATE("failed");
  OK(connector_source_close(f->source, &f->call, &f->err));
}

static void test_batch_without_a_batch(void **state) {
  fixture *f = *state;
  open_source(f);
  fake.read = WEIR_READ_BATCH;
  FAILS(read(f), WEIR_E_INTERNAL, "'batch' without a batch");
}

static void test_nothing_with_a_batch(void **state) {
  fixture *f = *state;
  open_source(f);
  fake.read = WEIR_READ_NOTHING;
  fake.batch = rows_batch(f->schema, "{\"id\":1}\n");
  FAILS(read(f), WEIR_E_INTERNAL, "with a batch");
  assert_null(f->batch); /* released: the sanitizers would tell */
}

static void test_a_batch_of_another_schema(void **state) {
  fixture *f = *state;
  open_source(f);
  weir_schema *other = rows_schema("id: utf8");
  fake.batch = rows_batch(other, "{\"id\":\"x\"}\n");
  FAILS(read(f), WEIR_E_SCHEMA, "source orders");
  STATE("failed");
  weir_schema_unref(other);
}

static void test_positions(void **state) {
  fixture *f = *state;
  weir_bytes position = {0};
  open_source(f);
  fake.bytes = SIZE_MAX;
  OK(connector_source_position(f->source, &position, &f->err));
  assert_null(position.release);
  fake.bytes = WEIR_MAX_POSITION;
  OK(connector_source_position(f->source, &position, &f->err));
  weir_bytes_release(&position);
  fake.bytes++;
  FAILS(connector_source_position(f->source, &position, &f->err), WEIR_E_INTERNAL,
        "1048577 bytes");
  assert_null(position.release);
  fake.bytes = 4;
  fake.bytes_without_data = 1;
  FAILS(connector_source_position(f->source, &position, &f->err), WEIR_E_INTERNAL,
        "no pointer");
}

static void test_failures(void **state) {
  fixture *f = *state;
  open_source(f);
  fake.fail_at = "read";
  fake.fail_flags = WEIR_ERR_RETRIABLE;
  FAILS(read(f), WEIR_E_IO, "source orders: the disk is gone");
  STATE("open");
  fake.fail_flags = 0;
  fake.fail = WEIR_E_BAD_DATA;
  FAILS(read(f), WEIR_E_BAD_DATA, "gone");
  assert_int_equal(f->err.flags, WEIR_ERR_BAD_DATA);
  STATE("open");
  fake.fail = WEIR_E_IO;
  FAILS(read(f), WEIR_E_IO, "gone");
  STATE("failed");
}

static void test_failures_on_the_way_up(void **state) {
  fixture *f = *state;
  weir_source_contract c = {0};
  fake.fail_at = "create";
  FAILS(connector_source_new(f->spec, 1, &f->source, &f->err), WEIR_E_IO,
        "source orders");
  fake.fail_at = "contract";
  OK(connector_source_new(f->spec, 1, &f->source, &f->err));
  FAILS(connector_source_contract(f->source, &c, &f->err), WEIR_E_IO, "gone");
  FAILS(connector_source_open(f->source, &f->call, NULL, &f->err), WEIR_E_INVALID_STATE,
        "created");
  fake.fail_at = NULL;
  fake.schema = "";
  FAILS(connector_source_resolve_schema(f->source, &f->call, &f->schema, &f->err),
        WEIR_E_INTERNAL, "without a schema");
  fake.schema = NULL;
  OK(connector_source_resolve_schema(f->source, &f->call, &f->schema, &f->err));
  fake.fail_at = "open";
  FAILS(connector_source_open(f->source, &f->call, NULL, &f->err), WEIR_E_IO, "gone");
  STATE("closed");
}

/* ---- deadlines ---------------------------------------------------------------------------------- */

static void test_waiting_that_ends_is_no_failure(void **state) {
  fixture *f = *state;
  open_source(f);
  fake.block_at = fake.fail_at = "read";
  fake.fail = WEIR_E_TIMEOUT;
  connector_call_arm(&f->call, base_clock_mono(), WEIR_NO_DEADLINE);
  OK(read(f));
  assert_int_equal(f->what, WEIR_READ_NOTHING);
  STATE("open");
  fake.fail = WEIR_E_CANCELLED;
  weir_call_cancel(&f->call);
  OK(read(f));
  assert_int_equal(f->what, WEIR_READ_NOTHING);
  /* Not cancelled: then it is one. */
  connector_call_arm(&f->call, WEIR_NO_DEADLINE, WEIR_NO_DEADLINE);
  fake.block_at = NULL;
  FAILS(read(f), WEIR_E_CANCELLED, "gone");
  STATE("failed");
}

static void *watch(void *arg) {
  weir_call *call = arg;
  while (!connector_call_give_up(call)) base_sleep(BASE_NS_PER_MS / 10);
  return NULL;
}

static void give_up(fixture *f) {
  pthread_t thread;
  open_source(f);
  fake.block_at = "read";
  fake.batch = rows_batch(f->schema, "{\"id\":1}\n");
  assert_int_equal(base_thread_start(&thread, "watch", watch, &f->call, &f->err),
                   WEIR_OK);
  FAILS(read(f), WEIR_E_TIMEOUT, "read was given up");
  assert_null(f->batch);
  pthread_join(thread, NULL);
}

static void test_given_up_and_retired(void **state) {
  fixture *f = *state;
  give_up(f);
  STATE("retired");
  FAILS(connector_source_seek(f->source, &f->call, NULL, &f->err), WEIR_E_INVALID_STATE,
        "retired");
}

static void test_given_up_and_safe(void **state) {
  fixture *f = *state;
  fake.policy = WEIR_CANCEL_SAFE;
  give_up(f);
  assert_true(connector_source_is_cancel_safe(f->source));
  STATE("open"); /* it stays in use */
}

static void test_a_seek_past_its_deadline(void **state) {
  fixture *f = *state;
  open_source(f);
  fake.block_at = fake.fail_at = "seek";
  connector_call_arm(&f->call, base_clock_mono(), WEIR_NO_DEADLINE);
  FAILS(connector_source_seek(f->source, &f->call, NULL, &f->err), WEIR_E_IO, "gone");
  STATE("retired");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_table),
      TEST(test_a_whole_life),
      TEST(test_contracts),
      TEST(test_replayable_needs_seek),
      TEST(test_answers_of_read),
      TEST(test_batch_without_a_batch),
      TEST(test_nothing_with_a_batch),
      TEST(test_a_batch_of_another_schema),
      TEST(test_positions),
      TEST(test_failures),
      TEST(test_failures_on_the_way_up),
      TEST(test_waiting_that_ends_is_no_failure),
      TEST(test_given_up_and_retired),
      TEST(test_given_up_and_safe),
      TEST(test_a_seek_past_its_deadline),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
