/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of connectors: every default, every refusal. */
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

static int reset(void **state) {
  (void)state;
  fake_reset();
  return 0;
}

static weir_sink_ops fill(const weir_sink_ops *ops) {
  weir_sink_ops out = {0};
  weir_error err = {0};
  weir_status status = connector_fill_sink(ops, NULL, &out, &err);
  if (status) fail_msg("%s", err.message);
  return out;
}

static void test_every_entry_is_there(void **state) {
  (void)state;
  weir_sink_ops sink = fill(&fake_plain_sink_ops);
  weir_source_ops source = {0};
  assert_int_equal(connector_fill_source(&fake_plain_source_ops, NULL, &source, NULL),
                   WEIR_OK);
  /* All entries behind the two numbers are pointers. */
  void *none = NULL;
  for (size_t at = offsetof(weir_sink_ops, name); at < sizeof(sink); at += sizeof(none)) {
    assert_memory_not_equal((char *)&sink + at, &none, sizeof(none));
  }
  for (size_t at = offsetof(weir_source_ops, name); at < sizeof(source);
       at += sizeof(none)) {
    assert_memory_not_equal((char *)&source + at, &none, sizeof(none));
  }
}

static void test_own_entries_stay(void **state) {
  (void)state;
  weir_sink_ops sink = fill(&fake_sink_ops);
  assert_ptr_equal(sink.pre_commit, fake_sink_ops.pre_commit);
  assert_ptr_equal(sink.flush, fake_sink_ops.flush);
  assert_true(connector_has_committer(&sink));
  sink = fill(&fake_plain_sink_ops);
  assert_false(connector_has_committer(&sink));
}

static void test_defaults_of_a_sink(void **state) {
  (void)state;
  weir_sink_ops ops = fill(&fake_plain_sink_ops);
  weir_sink sink = {.ops = &ops};
  weir_error err = {0};
  weir_contract contract = {.struct_size = sizeof(contract)};
  weir_names key = {0};
  weir_bytes bytes = {0};
  weir_namespace ns = {.pipeline = "p", .sink_id = "s"};
  weir_schema *input = rows_schema("id: int64");
  weir_binding binding = {.struct_size = sizeof(binding)};
  weir_verified verified = {.struct_size = sizeof(verified)};
  weir_swept swept = {.struct_size = sizeof(swept)};
  assert_int_equal(ops.cancellation_policy(&sink), WEIR_CANCEL_RETIRE);
  assert_int_equal(ops.bind_runtime_context(&sink, &ns, 1, &err), WEIR_OK);
  assert_null(ops.terminal_task_tracker(&sink));
  assert_int_equal(ops.contract(&sink, NULL, &contract, &err), WEIR_OK);
  assert_int_equal(contract.consistency, WEIR_EPHEMERAL);
  assert_int_equal(contract.topology, WEIR_SINGLETON);
  assert_int_equal(contract.input, WEIR_INPUT_APPEND);
  assert_int_equal(contract.staging, WEIR_STAGING_NODE);
  assert_false(contract.overlap || contract.cas_commit || contract.claims);
  assert_int_equal(ops.keyed_mutation_key(&sink, NULL, &key, &err), WEIR_OK);
  assert_null(key.release);
  assert_int_equal(ops.resolve_schema(&sink, NULL, NULL, input, &binding, &err), WEIR_OK);
  assert_ptr_equal(binding.schema, input);
  assert_null(binding.identity);
  assert_int_equal(ops.prepare_schema(&sink, NULL, NULL, &binding, &err), WEIR_OK);
  assert_null(binding.identity);
  assert_int_equal(ops.checkpoint_artifact_intent(&sink, NULL, 1, &bytes, &err), WEIR_OK);
  assert_null(bytes.release);
  assert_int_equal(ops.begin_epoch(&sink, NULL, 1, &err), WEIR_OK);
  assert_int_equal(ops.rollback_epoch(&sink, NULL, 1, &err), WEIR_OK);
  assert_int_equal(ops.flush_interval_ms(&sink), 5000);
  assert_int_equal(ops.flush(&sink, NULL, &err), WEIR_OK);
  assert_null(ops.as_coordinated_committer(&sink).ops);
  assert_null(ops.coordinated_abort_cleaner(&sink).ops);
  assert_int_equal(ops.verify(&sink, NULL, NULL, NULL, &verified, &err), WEIR_OK);
  assert_int_equal(verified.checked, 0);
  assert_int_equal(ops.sweep(&sink, NULL, NULL, NULL, &swept, &err), WEIR_OK);
  assert_int_equal(swept.looked, 0);
  weir_binding_done(&binding);
  weir_schema_unref(input);
}

/* The default pre_commit flushes and answers no descriptor; with a committer it refuses. */
static void test_default_pre_commit(void **state) {
  (void)state;
  weir_error err = {0};
  weir_bytes bytes = {0};
  weir_sink_ops table = fake_plain_sink_ops;
  table.flush = fake_sink_ops.flush;
  weir_sink_ops ops = fill(&table);
  weir_sink sink = {.ops = &ops};
  assert_int_equal(ops.pre_commit(&sink, NULL, 1, &bytes, &err), WEIR_OK);
  assert_null(bytes.release);
  assert_string_equal(fake.log, "flush ");
  fake.fail_at = "flush";
  assert_int_equal(ops.pre_commit(&sink, NULL, 1, &bytes, &err), WEIR_E_IO);
  fake.fail_at = NULL;
  ops.as_coordinated_committer = fake_sink_ops.as_coordinated_committer;
  assert_int_equal(ops.pre_commit(&sink, NULL, 1, &bytes, &err), WEIR_E_INVALID_CONFIG);
  assert_null(bytes.release);
}

static void test_defaults_of_a_committer(void **state) {
  (void)state;
  weir_committer_ops table = fake_committer_ops, ops = {0};
  weir_cursor_list list = {0};
  weir_error err = {0};
  table.take_over = NULL;
  table.find_cursors = NULL;
  assert_int_equal(connector_fill_committer(&table, &ops, &err), WEIR_OK);
  assert_int_equal(ops.take_over(NULL, NULL, NULL, &err), WEIR_OK);
  assert_int_equal(ops.find_cursors(NULL, NULL, NULL, &list, &err), WEIR_OK);
  assert_int_equal(list.n, 0);
  assert_null(list.release);
  table.observe_cursor = NULL;
  assert_int_equal(connector_fill_committer(&table, &ops, &err), WEIR_E_NOT_IMPLEMENTED);
  assert_non_null(strstr(err.message, "'observe_cursor'"));
  table = fake_committer_ops;
  table.commit_aggregated = NULL;
  assert_int_equal(connector_fill_committer(&table, &ops, &err), WEIR_E_NOT_IMPLEMENTED);
  assert_non_null(strstr(err.message, "'commit_aggregated'"));
}

static void test_a_cleaner_is_complete(void **state) {
  (void)state;
  weir_cleaner_ops ops = {0};
  weir_error err = {0};
  static const char *const names[] = {"ref", "unref", "clean"};
  assert_int_equal(connector_fill_cleaner(&fake_cleaner_ops, &ops, &err), WEIR_OK);
  for (size_t i = 0; i < 3; i++) {
    weir_cleaner_ops table = fake_cleaner_ops;
    memset((char *)&table + offsetof(weir_cleaner_ops, ref) + i * sizeof(void *), 0,
           sizeof(void *));
    assert_int_equal(connector_fill_cleaner(&table, &ops, &err), WEIR_E_NOT_IMPLEMENTED);
    assert_non_null(strstr(err.message, names[i]));
  }
}

static void test_defaults_of_a_source(void **state) {
  (void)state;
  weir_source_ops ops = {0};
  weir_error err = {0};
  weir_source source = {.ops = &ops};
  weir_source_contract contract = {.struct_size = sizeof(contract)};
  weir_bytes start = {0};
  assert_int_equal(connector_fill_source(&fake_plain_source_ops, NULL, &ops, &err),
                   WEIR_OK);
  assert_int_equal(ops.cancellation_policy(&source), WEIR_CANCEL_RETIRE);
  assert_int_equal(ops.contract(&source, NULL, &contract, &err), WEIR_OK);
  assert_int_equal(contract.replay, WEIR_SOURCE_EPHEMERAL);
  assert_int_equal(contract.keyed, 0);
  assert_int_equal(ops.seek(&source, NULL, &start, &err), WEIR_E_NOT_IMPLEMENTED);
  assert_int_equal(ops.committed(&source, NULL, 1, &start, &err), WEIR_OK);
}

/* ---- refusals -------------------------------------------------------------------------------- */

typedef struct named_entry {
  size_t offset;
  const char *name;
} named_entry;
#define SINK(entry) {offsetof(weir_sink_ops, entry), #entry}
#define SOURCE(entry) {offsetof(weir_source_ops, entry), #entry}

static void test_missing_entries_are_named(void **state) {
  (void)state;
  static const named_entry sinks[] = {
      SINK(text), SINK(options), SINK(create), SINK(release), SINK(open),
      SINK(write_batch), SINK(schema), SINK(suggested_write_timeout_ms), SINK(close),
      /* with a committer */
      SINK(pre_commit), SINK(begin_epoch), SINK(rollback_epoch)};
  static const named_entry sources[] = {
      SOURCE(text),    SOURCE(options),        SOURCE(create),
      SOURCE(release), SOURCE(resolve_schema), SOURCE(open),
      SOURCE(read),    SOURCE(position),       SOURCE(close)};
  weir_error err = {0};
  char quoted[64];
  for (size_t i = 0; i < sizeof(sinks) / sizeof(sinks[0]); i++) {
    weir_sink_ops table = fake_sink_ops, out = {0};
    memset((char *)&table + sinks[i].offset, 0, sizeof(void *));
    assert_int_equal(connector_fill_sink(&table, "./x.so", &out, &err),
                     WEIR_E_NOT_IMPLEMENTED);
    snprintf(quoted, sizeof(quoted), "'%s'", sinks[i].name);
    assert_non_null(strstr(err.message, quoted));
    assert_non_null(strstr(err.message, "sink 'fake' of ./x.so"));
    assert_null(out.name); /* untouched */
  }
  for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
    weir_source_ops table = fake_source_ops, out = {0};
    memset((char *)&table + sources[i].offset, 0, sizeof(void *));
    assert_int_equal(connector_fill_source(&table, NULL, &out, &err),
                     WEIR_E_NOT_IMPLEMENTED);
    snprintf(quoted, sizeof(quoted), "'%s'", sources[i].name);
    assert_non_null(strstr(err.message, quoted));
  }
}

static void test_without_a_committer_the_three_are_optional(void **state) {
  (void)state;
  weir_sink_ops table = fake_sink_ops;
  table.as_coordinated_committer = NULL;
  table.pre_commit = NULL;
  table.begin_epoch = NULL;
  table.rollback_epoch = NULL;
  fill(&table);
}

static void test_versions_and_sizes(void **state) {
  (void)state;
  weir_sink_ops table = fake_sink_ops, out = {0};
  weir_error err = {0};
  table.abi_version = WEIR_ABI_VERSION + 1;
  assert_int_equal(connector_fill_sink(&table, NULL, &out, &err), WEIR_E_NOT_IMPLEMENTED);
  assert_non_null(strstr(err.message, "ABI 2"));
  assert_non_null(strstr(err.message, WEIR_VERSION));
  table = fake_sink_ops;
  table.struct_size = 8;
  assert_int_equal(connector_fill_sink(&table, NULL, &out, &err), WEIR_E_NOT_IMPLEMENTED);
  assert_non_null(strstr(err.message, "struct_size"));
  /* Cut within what is required: the first entry that is missing is named. */
  table.struct_size = offsetof(weir_sink_ops, write_batch);
  assert_int_equal(connector_fill_sink(&table, NULL, &out, &err), WEIR_E_NOT_IMPLEMENTED);
  assert_non_null(strstr(err.message, "'write_batch'"));
  /* An older table lacks the tail, which then has its defaults. */
  table = fake_plain_sink_ops;
  table.as_coordinated_committer = fake_sink_ops.as_coordinated_committer;
  table.struct_size = offsetof(weir_sink_ops, as_coordinated_committer);
  out = fill(&table);
  assert_false(connector_has_committer(&out));
  assert_int_equal(out.struct_size, sizeof(out));
}

/* A newer table is longer: what is behind our end is not looked at. */
static void test_a_longer_table(void **state) {
  (void)state;
  struct {
    weir_sink_ops ops;
    void *more[4];
  } newer = {.ops = fake_sink_ops};
  newer.ops.struct_size = sizeof(newer);
  memset(newer.more, 0xEE, sizeof(newer.more));
  weir_sink_ops out = fill(&newer.ops);
  assert_ptr_equal(out.coordinated_abort_cleaner,
                   fake_sink_ops.coordinated_abort_cleaner);
}

static void test_names_and_options(void **state) {
  (void)state;
  static const char *const names[] = {
      "",    "Fake", "a b",
      "a/b", NULL,   "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijkl"};
  weir_error err = {0};
  weir_sink_ops out = {0};
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
    weir_sink_ops table = fake_sink_ops;
    table.name = names[i];
    assert_int_equal(connector_fill_sink(&table, NULL, &out, &err),
                     WEIR_E_NOT_IMPLEMENTED);
    assert_non_null(strstr(err.message, "its name"));
  }
  const weir_option wrong[] = {
      {.name = "o", .type = 0, .text = "t"},
      {.name = "o", .type = WEIR_OPT_MAP + 1, .text = "t"},
      {.name = "o", .type = WEIR_OPT_ENUM, .text = "t"},
      {.name = "o", .type = WEIR_OPT_ENUM, .text = "t", .choices = ""},
      {.name = "o", .type = WEIR_OPT_INT},
      {.name = "o", .type = WEIR_OPT_INT, .text = "t", .min = 2, .max = 1},
  };
  for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
    weir_option options[2] = {wrong[i], {0}};
    weir_sink_ops table = fake_sink_ops;
    table.options = options;
    assert_int_equal(connector_fill_sink(&table, NULL, &out, &err),
                     WEIR_E_NOT_IMPLEMENTED);
    assert_non_null(strstr(err.message, "option 'o'"));
  }
}

/* A table without its end would be read for ever. */
static void test_options_without_an_end(void **state) {
  (void)state;
  weir_error err = {0};
  weir_sink_ops out = {0}, table = fake_sink_ops;
  weir_option *options = calloc(1002, sizeof(*options));
  for (size_t i = 0; i < 1001; i++)
    options[i] = (weir_option){.name = "o", .type = WEIR_OPT_INT, .text = "t"};
  table.options = options;
  assert_int_equal(connector_fill_sink(&table, NULL, &out, &err), WEIR_E_NOT_IMPLEMENTED);
  assert_non_null(strstr(err.message, "one too many"));
  options[1000].name = NULL;
  assert_int_equal(connector_fill_sink(&table, NULL, &out, &err), WEIR_OK);
  free(options);
}

static void test_sources_committers_and_cleaners_are_checked_alike(void **state) {
  (void)state;
  weir_error err = {0};
  weir_source_ops source = fake_source_ops, source_out = {0};
  weir_committer_ops committer = fake_committer_ops, committer_out = {0};
  weir_cleaner_ops cleaner = fake_cleaner_ops, cleaner_out = {0};
  source.abi_version = committer.abi_version = cleaner.abi_version = 99;
  assert_int_equal(connector_fill_source(&source, "./x.so", &source_out, &err),
                   WEIR_E_NOT_IMPLEMENTED);
  assert_non_null(strstr(err.message, "source '?' of ./x.so"));
  assert_int_equal(connector_fill_committer(&committer, &committer_out, &err),
                   WEIR_E_NOT_IMPLEMENTED);
  assert_int_equal(connector_fill_cleaner(&cleaner, &cleaner_out, &err),
                   WEIR_E_NOT_IMPLEMENTED);
  source = fake_source_ops;
  source.name = "Not this";
  assert_int_equal(connector_fill_source(&source, NULL, &source_out, &err),
                   WEIR_E_NOT_IMPLEMENTED);
  assert_non_null(strstr(err.message, "its name must be"));
  assert_null(source_out.create);
  assert_null(committer_out.take_over);
  assert_null(cleaner_out.clean);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(test_every_entry_is_there, reset),
      cmocka_unit_test_setup(test_own_entries_stay, reset),
      cmocka_unit_test_setup(test_defaults_of_a_sink, reset),
      cmocka_unit_test_setup(test_default_pre_commit, reset),
      cmocka_unit_test_setup(test_defaults_of_a_committer, reset),
      cmocka_unit_test_setup(test_a_cleaner_is_complete, reset),
      cmocka_unit_test_setup(test_defaults_of_a_source, reset),
      cmocka_unit_test_setup(test_missing_entries_are_named, reset),
      cmocka_unit_test_setup(test_without_a_committer_the_three_are_optional, reset),
      cmocka_unit_test_setup(test_versions_and_sizes, reset),
      cmocka_unit_test_setup(test_a_longer_table, reset),
      cmocka_unit_test_setup(test_names_and_options, reset),
      cmocka_unit_test_setup(test_options_without_an_end, reset),
      cmocka_unit_test_setup(test_sources_committers_and_cleaners_are_checked_alike,
                             reset),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
