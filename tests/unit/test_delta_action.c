/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of a Delta log: every action read, what is unknown passed over, what is wrong named. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../connectors/delta/action.h"

enum { SEEN = 16 };

/* The actions of an entry, kept beyond it. */
typedef struct seen {
  delta_arena arena;
  delta_action v[SEEN];
  size_t n;
} seen;

static weir_status keep(void *ctx, const delta_action *action, weir_error *err) {
  seen *s = ctx;
  assert_true(s->n < SEEN);
  delta_action *to = &s->v[s->n++];
  *to = *action;
  bool ok = true;
  if (action->kind == DELTA_PROTOCOL)
    ok = delta_protocol_copy(&s->arena, &action->u.protocol, &to->u.protocol);
  if (action->kind == DELTA_METADATA)
    ok = delta_metadata_copy(&s->arena, &action->u.metadata, &to->u.metadata);
  if (action->kind == DELTA_ADD || action->kind == DELTA_REMOVE)
    ok = delta_file_copy(&s->arena, &action->u.file, &to->u.file);
  if (action->kind == DELTA_TXN)
    ok = delta_text_copy(&s->arena, action->u.txn.app_id, &to->u.txn.app_id);
  if (action->kind == DELTA_DOMAIN)
    ok = delta_text_copy(&s->arena, action->u.domain.domain, &to->u.domain.domain);
  if (action->kind == DELTA_SIDECAR)
    ok = delta_text_copy(&s->arena, action->u.sidecar, &to->u.sidecar);
  return ok ? WEIR_OK : delta_no_memory(err);
}

static void read_entry(seen *s, const char *text) {
  weir_error err = {0};
  memset(s, 0, sizeof(*s));
  if (delta_entry_read(text, strlen(text), "entry", keep, s, &err))
    fail_msg("%s", err.message);
}

static void check_text(delta_text got, const char *want) {
  assert_non_null(got.p);
  assert_int_equal(got.n, strlen(want));
  assert_memory_equal(got.p, want, got.n);
}

static void every_action_is_read(void **state) {
  (void)state;
  seen s;
  read_entry(
      &s,
      "{\"commitInfo\":{\"timestamp\":1,\"inCommitTimestamp\":77,\"operation\":\"WRITE\"}"
      "}\n"
      "{\"protocol\":{\"minReaderVersion\":3,\"minWriterVersion\":7,"
      "\"readerFeatures\":[\"timestampNtz\"],\"writerFeatures\":[\"timestampNtz\","
      "\"appendOnly\"]}}\r\n"
      "\n"
      "{\"metaData\":{\"id\":\"af23\",\"name\":null,\"format\":{\"provider\":\"parquet\","
      "\"options\":{}},\"schemaString\":\"{}\",\"partitionColumns\":[\"day\"],"
      "\"createdTime\":5,\"configuration\":{\"delta.appendOnly\":\"true\"}}}\n"
      "{\"txn\":{\"appId\":\"app\",\"version\":-3,\"lastUpdated\":9}}\n"
      "{\"domainMetadata\":{\"domain\":\"d\",\"configuration\":\"{}\",\"removed\":true}}"
      "\n"
      "{\"cdc\":{\"path\":\"x\"}}\n"
      "{\"sidecar\":{\"path\":\"s.parquet\",\"sizeInBytes\":1,\"modificationTime\":1}}\n"
      "{\"checkpointMetadata\":{\"version\":12,\"tags\":{}}}");
  assert_int_equal(s.n, 8);
  assert_int_equal(s.v[0].kind, DELTA_COMMIT_INFO);
  assert_true(s.v[0].u.in_commit_timestamp.present);
  assert_int_equal(s.v[0].u.in_commit_timestamp.v, 77);
  assert_int_equal(s.v[1].u.protocol.reader, 3);
  assert_int_equal(s.v[1].u.protocol.writer, 7);
  assert_true(delta_texts_have(&s.v[1].u.protocol.writer_features, "appendOnly"));
  assert_false(delta_texts_have(&s.v[1].u.protocol.reader_features, "appendOnly"));
  check_text(s.v[2].u.metadata.id, "af23");
  assert_null(s.v[2].u.metadata.name.p);
  assert_true(delta_texts_have(&s.v[2].u.metadata.partition_columns, "day"));
  check_text(delta_pairs_get(&s.v[2].u.metadata.configuration, "delta.appendOnly"),
             "true");
  assert_null(delta_pairs_get(&s.v[2].u.metadata.configuration, "delta").p);
  assert_int_equal(s.v[2].u.metadata.created_time.v, 5);
  check_text(s.v[3].u.txn.app_id, "app");
  assert_int_equal(s.v[3].u.txn.version, -3);
  assert_int_equal(s.v[3].u.txn.last_updated.v, 9);
  assert_true(s.v[4].u.domain.removed);
  assert_int_equal(s.v[5].kind, DELTA_CDC);
  check_text(s.v[6].u.sidecar, "s.parquet");
  assert_int_equal(s.v[7].u.checkpoint, 12);
  delta_arena_done(&s.arena);
}

static void files_are_read_with_all_their_fields(void **state) {
  (void)state;
  seen s;
  read_entry(
      &s,
      "{\"add\":{\"path\":\"day=1/a%20b.parquet\",\"partitionValues\":{\"day\":\"1\","
      "\"k\":null},\"size\":841454,\"modificationTime\":1512909768000,\"dataChange\":"
      "true,"
      "\"stats\":\"{}\",\"tags\":{\"t\":\"u\"},\"baseRowId\":4071,"
      "\"defaultRowCommitVersion\":41,\"clusteringProvider\":\"liquid\","
      "\"deletionVector\":{\"storageType\":\"u\",\"pathOrInlineDv\":\"ab^-\",\"offset\":"
      "4,"
      "\"sizeInBytes\":40,\"cardinality\":6}}}\n"
      "{\"remove\":{\"path\":\"b\",\"dataChange\":false,\"extendedFileMetadata\":true,"
      "\"newField\":123456789012345678901234567890}}\n");
  assert_int_equal(s.n, 2);
  const delta_file *add = &s.v[0].u.file, *gone = &s.v[1].u.file;
  check_text(add->path, "day=1/a%20b.parquet");
  assert_int_equal(add->partition_values.n, 2);
  assert_null(add->partition_values.v[1].value.p);
  assert_int_equal(add->size.v, 841454);
  assert_true(add->data_change);
  check_text(add->vector.storage, "u");
  assert_int_equal(add->vector.offset.v, 4);
  assert_int_equal(add->vector.cardinality, 6);
  assert_int_equal(add->base_row_id.v, 4071);
  check_text(add->clustering_provider, "liquid");
  assert_int_equal(s.v[1].kind, DELTA_REMOVE);
  assert_false(gone->data_change);
  assert_false(gone->time.present);
  assert_true(gone->extended.present && gone->extended.v);
  assert_false(gone->partition_values.present);
  assert_null(gone->vector.storage.p);
  delta_arena_done(&s.arena);
}

/* Section "Protocol Evolution": they are never needed to interpret the log. */
static void unknown_actions_and_fields_are_passed_over(void **state) {
  (void)state;
  seen s;
  read_entry(&s,
             "{\"newAction\":{\"a\":1}}\n"
             "{}\n"
             "{\"txn\":{\"appId\":\"a\",\"version\":1,\"later\":[{}]},\"add\":null}\n");
  assert_int_equal(s.n, 1);
  check_text(s.v[0].u.txn.app_id, "a");
  delta_arena_done(&s.arena);
}

static void what_is_wrong_is_named(void **state) {
  (void)state;
  static const struct {
    const char *text, *says;
  } cases[] = {
      {"{\"txn\":{\"appId\":\"a\"}}", "'txn.version' is missing"},
      {"{}\n{\"txn\":{\"version\":1}}", "entry, line 2: 'txn.appId'"},
      {"{\"txn\":{\"appId\":\"a\",\"version\":18446744073709551615}}", "'txn.version'"},
      {"{\"txn\":{\"appId\":\"a\",\"version\":1.5}}", "'txn.version'"},
      {"{\"txn\":7}", "'txn' is not the one action"},
      {"{\"txn\":{\"appId\":\"a\",\"version\":1},\"add\":{}}",
       "the one action of its line"},
      {"{\"protocol\":{\"minReaderVersion\":0,\"minWriterVersion\":2}}",
       "'protocol.minReaderVersion'"},
      {"{\"protocol\":{\"minReaderVersion\":1,\"minWriterVersion\":2,"
       "\"writerFeatures\":[1]}}",
       "'protocol.writerFeatures'"},
      {"{\"metaData\":{\"id\":\"x\"}}", "'metaData.format'"},
      {"{\"metaData\":{\"id\":\"x\",\"format\":{\"provider\":\"parquet\"},"
       "\"schemaString\":\"\",\"partitionColumns\":[],\"configuration\":{\"a\":1}}}",
       "'metaData.configuration'"},
      {"{\"add\":{\"path\":\"a\",\"partitionValues\":{},\"size\":-1,"
       "\"modificationTime\":1,\"dataChange\":true}}",
       "'add.size'"},
      {"{\"add\":{\"path\":\"a\",\"partitionValues\":{},\"size\":1,"
       "\"modificationTime\":1}}",
       "'add.dataChange'"},
      {"{\"remove\":{\"path\":\"a\",\"dataChange\":true,\"deletionVector\":{}}}",
       "'remove.storageType'"},
      {"[]", "line 1 is no action"},
      {"{\"txn\":", "line 1 is not JSON"},
      {"{\"sidecar\":{}}", "'sidecar.path'"},
      {"{\"checkpointMetadata\":{}}", "'checkpointMetadata.version'"},
      {"{\"domainMetadata\":{\"domain\":\"d\",\"configuration\":\"\"}}",
       "'domainMetadata.removed'"},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    seen s = {0};
    weir_error err = {0};
    weir_status status =
        delta_entry_read(cases[i].text, strlen(cases[i].text), "entry", keep, &s, &err);
    if (status != WEIR_E_CORRUPT || !strstr(err.message, cases[i].says))
      fail_msg("%s: %d '%s'", cases[i].text, (int)status, err.message);
    delta_arena_done(&s.arena);
  }
}

/* What is written is read again as it was. */
static void lines_are_read_back(void **state) {
  (void)state;
  seen s;
  weir_error err = {0};
  delta_lines lines = {0};
  delta_text names[] = {{"a", 1}, {"b\"c", 3}};
  delta_pair values[] = {{{"day", 3}, {"2024", 4}}, {{"k", 1}, {NULL, 0}}};
  delta_protocol protocol = {1, 7, {0}, {names, 2, true}};
  delta_metadata metadata = {.id = {"id", 2},
                             .provider = {"parquet", 7},
                             .schema = {"{\"x\":1}", 7},
                             .partition_columns = {names, 1, true},
                             .configuration = {values, 1, true}};
  delta_txn txn = {{"app", 3}, INT64_MIN, {4, true}};
  delta_file add = {.path = {"a%25", 4},
                    .size = {12, true},
                    .time = {13, true},
                    .data_change = true,
                    .partition_values = {values, 2, true},
                    .stats = {"{\"numRecords\":1}", 16}};
  assert_int_equal(delta_lines_raw(&lines, "{}", 2, &err), WEIR_OK);
  assert_int_equal(delta_lines_protocol(&lines, &protocol, &err), WEIR_OK);
  assert_int_equal(delta_lines_metadata(&lines, &metadata, &err), WEIR_OK);
  assert_int_equal(delta_lines_txn(&lines, &txn, &err), WEIR_OK);
  assert_int_equal(delta_lines_add(&lines, &add, &err), WEIR_OK);
  assert_int_equal(delta_lines_raw(&lines, "", 1, &err), WEIR_OK); /* ends with a NUL */
  read_entry(&s, lines.p);
  delta_lines_done(&lines);
  assert_int_equal(s.n, 4);
  assert_false(s.v[0].u.protocol.reader_features.present);
  assert_true(delta_texts_have(&s.v[0].u.protocol.writer_features, "b\"c"));
  check_text(s.v[1].u.metadata.schema, "{\"x\":1}");
  assert_null(s.v[1].u.metadata.description.p);
  check_text(delta_pairs_get(&s.v[1].u.metadata.configuration, "day"), "2024");
  assert_true(s.v[2].u.txn.version == INT64_MIN);
  check_text(s.v[3].u.file.path, "a%25");
  check_text(s.v[3].u.file.stats, "{\"numRecords\":1}");
  assert_int_equal(s.v[3].u.file.time.v, 13);
  assert_null(s.v[3].u.file.partition_values.v[1].value.p);
  delta_arena_done(&s.arena);
}

static void an_arena_keeps_what_it_gave(void **state) {
  (void)state;
  delta_arena arena = {0};
  char *small = delta_arena_take(&arena, 3), *large = delta_arena_take(&arena, 1 << 20),
       *again = delta_arena_take(&arena, 10000);
  assert_non_null(small);
  assert_non_null(large);
  assert_non_null(again);
  memset(small, 1, 3);
  memset(large, 2, 1 << 20);
  memset(again, 3, 10000);
  assert_int_equal(small[2], 1);
  assert_int_equal(large[0], 2);
  assert_null(delta_arena_take(&arena, SIZE_MAX - 8));
  delta_arena_reset(&arena);
  assert_non_null(delta_arena_take(&arena, 10));
  delta_arena_done(&arena);
  delta_arena_done(&arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_action_is_read),
      cmocka_unit_test(files_are_read_with_all_their_fields),
      cmocka_unit_test(unknown_actions_and_fields_are_passed_over),
      cmocka_unit_test(what_is_wrong_is_named),
      cmocka_unit_test(lines_are_read_back),
      cmocka_unit_test(an_arena_keeps_what_it_gave),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
