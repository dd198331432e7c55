/* SPDX-License-Identifier: Apache-2.0 */
/* The log of a Delta table in a folder: which checkpoint and which entries make up its newest version. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/parquet.h>

#include <cmocka.h>

#include "../../connectors/delta/snapshot.h"
#include "support/folder.h"
#include "support/rows.h"

#define LOG "_delta_log/"
#define PROTOCOL "{\"protocol\":{\"minReaderVersion\":1,\"minWriterVersion\":2}}\n"
#define METADATA(id)                                                           \
  "{\"metaData\":{\"id\":\"" id                                                \
  "\",\"format\":{\"provider\":\"parquet\",\"options\":{}},"                   \
  "\"schemaString\":\"{}\",\"partitionColumns\":[\"day\"],\"configuration\":{" \
  "\"k\":\"v\"}}}\n"
#define TXN(app, version) "{\"txn\":{\"appId\":\"" app "\",\"version\":" #version "}}\n"
#define ADD(path)                                     \
  "{\"add\":{\"path\":\"" path                        \
  "\",\"partitionValues\":{\"day\":null},\"size\":1," \
  "\"modificationTime\":2,\"dataChange\":true,\"stats\":\"{}\"}}\n"

static char folder[FOLDER_PATH];
static weir_object_store *store;

static int begin(void **state) {
  (void)state;
  weir_error err = {0};
  assert_int_equal(folder_make(folder), 0);
  assert_int_equal(weir_object_store_open(folder, NULL, &store, &err), WEIR_OK);
  return 0;
}

static int end(void **state) {
  (void)state;
  weir_object_store_free(store);
  return folder_remove(folder);
}

static void put(const char *key, const char *text) {
  weir_error err = {0};
  if (weir_object_put(store, NULL, key, text, strlen(text), NULL, NULL, &err))
    fail_msg("%s", err.message);
}

static void put_entry(int64_t version, const char *text) {
  char key[DELTA_KEY_SIZE];
  delta_log_entry_key(version, key);
  put(key, text);
}

static weir_status append(void *ctx, const void *data, size_t size, weir_error *err) {
  delta_lines *bytes = ctx;
  weir_status status = delta_lines_raw(bytes, data, size, err);
  if (!status) bytes->size--; /* it adds a line break */
  return status;
}

/* Actions as rows of a Parquet file of such columns. */
static void put_parquet(const char *key, const char *columns, const char *actions) {
  weir_error err = {0};
  delta_lines bytes = {0};
  weir_parquet_writer *writer = NULL;
  weir_schema *schema = rows_schema(columns);
  weir_batch *batch = rows_batch(schema, actions);
  if (weir_parquet_writer_new(schema, NULL, append, &bytes, &writer, &err) ||
      weir_parquet_writer_write(writer, batch, &err) ||
      weir_parquet_writer_finish(writer, NULL, &err) ||
      weir_object_put(store, NULL, key, bytes.p, bytes.size, NULL, NULL, &err))
    fail_msg("%s", err.message);
  weir_parquet_writer_free(writer);
  weir_batch_unref(batch);
  weir_schema_unref(schema);
  delta_lines_done(&bytes);
}

#define VECTOR                                                                      \
  "deletionVector: struct<storageType: utf8, pathOrInlineDv: utf8, offset: int32, " \
  "sizeInBytes: int32, cardinality: int64>"
#define SMALL                                                                           \
  "protocol: struct<minReaderVersion: int32, minWriterVersion: int32, "                 \
  "readerFeatures: list<utf8>, writerFeatures: list<utf8>>; "                           \
  "metaData: struct<id: utf8, name: utf8, description: utf8, format: struct<provider: " \
  "utf8, options: map<utf8, utf8>>, schemaString: utf8, partitionColumns: list<utf8>, " \
  "createdTime: int64, configuration: map<utf8, utf8>>; "                               \
  "txn: struct<appId: utf8, version: int64, lastUpdated: int64>; "                      \
  "domainMetadata: struct<domain: utf8, configuration: utf8, removed: bool>; "          \
  "checkpointMetadata: struct<version: int64>; "                                        \
  "sidecar: struct<path: utf8, sizeInBytes: int64, modificationTime: int64>"
#define FILES                                                                      \
  "add: struct<path: utf8, partitionValues: map<utf8, utf8>, size: int64, "        \
  "modificationTime: int64, dataChange: bool, stats: large_utf8, tags: map<utf8, " \
  "utf8>, " VECTOR                                                                 \
  ", baseRowId: int64>; "                                                          \
  "remove: struct<path: utf8, deletionTimestamp: int64, dataChange: bool>"
#define UNKNOWN "newAction: struct<x: int64>"

static delta_snapshot open_good(void) {
  delta_snapshot s;
  weir_error err = {0};
  if (delta_snapshot_open(store, NULL, "weir:", &s, &err)) fail_msg("%s", err.message);
  return s;
}

static void open_bad(const char *says) {
  delta_snapshot s;
  weir_error err = {0};
  weir_status status = delta_snapshot_open(store, NULL, "weir:", &s, &err);
  if (status != WEIR_E_CORRUPT || !strstr(err.message, says))
    fail_msg("expected '%s', got %d '%s'", says, (int)status, err.message);
}

static int64_t txn(const delta_snapshot *s, const char *app) {
  bool found = false;
  int64_t version = delta_snapshot_txn(s, app, &found);
  return found ? version : -1;
}

static void an_empty_folder_has_no_table(void **state) {
  (void)state;
  delta_snapshot s = open_good();
  assert_int_equal(s.version, -1);
  delta_snapshot_done(&s);
  put("part-1.parquet", "data without a log");
  s = open_good();
  assert_int_equal(s.version, -1);
  delta_snapshot_done(&s);
}

static void entries_alone_make_a_version(void **state) {
  (void)state;
  put_entry(0, "{\"commitInfo\":{\"inCommitTimestamp\":5}}\n" PROTOCOL METADATA("one"));
  put_entry(1, TXN("weir:a", 4) TXN("other", 9) ADD("x"));
  put_entry(2, "{\"commitInfo\":{\"inCommitTimestamp\":7}}\n" TXN("weir:a", 5)
                   TXN("weir:b", 1));
  put(LOG "00000000000000000002.crc", "{}");
  put(LOG "00000000000000000001.00000000000000000002.compacted.json", "{}");
  delta_snapshot s = open_good();
  assert_int_equal(s.version, 2);
  assert_int_equal(s.checkpoint, -1);
  assert_int_equal(s.protocol.writer, 2);
  assert_true(delta_text_is(s.metadata.id, "one"));
  assert_int_equal(s.n_txns, 2);
  assert_int_equal(txn(&s, "weir:a"), 5);
  assert_int_equal(txn(&s, "weir:b"), 1);
  assert_int_equal(txn(&s, "other"), -1);
  assert_int_equal(s.in_commit_timestamp.v, 7);
  weir_error err = {0};
  put_entry(3, METADATA("two") TXN("weir:b", 2));
  put_entry(4, ADD("y"));
  assert_int_equal(delta_snapshot_refresh(store, NULL, &s, &err), WEIR_OK);
  assert_int_equal(s.version, 4);
  assert_true(delta_text_is(s.metadata.id, "two"));
  assert_int_equal(txn(&s, "weir:b"), 2);
  assert_false(s.in_commit_timestamp.present);
  assert_int_equal(delta_snapshot_refresh(store, NULL, &s, &err), WEIR_OK);
  assert_int_equal(s.version, 4);
  delta_snapshot_done(&s);
}

static void the_newest_checkpoint_is_read_and_what_is_behind_it(void **state) {
  (void)state;
  put_parquet(
      LOG "00000000000000000010.checkpoint.parquet", SMALL "; " FILES "; " UNKNOWN,
      PROTOCOL METADATA("old") TXN("weir:a", 3) ADD("x") "{\"newAction\":{\"x\":1}}\n");
  put_parquet(LOG "00000000000000000020.checkpoint.parquet", SMALL "; " FILES,
              PROTOCOL METADATA("id") TXN("weir:a", 4) TXN("o", 4)
                  ADD("x") "{\"remove\":{\"path\":\"r\",\"dataChange\":true}}\n");
  put_entry(20, "{\"commitInfo\":{\"inCommitTimestamp\":70}}\n");
  delta_snapshot s = open_good();
  assert_int_equal(s.version, 20);
  assert_int_equal(s.checkpoint, 20);
  assert_true(delta_text_is(s.metadata.id, "id"));
  assert_true(delta_texts_have(&s.metadata.partition_columns, "day"));
  assert_true(delta_text_is(delta_pairs_get(&s.metadata.configuration, "k"), "v"));
  assert_int_equal(txn(&s, "weir:a"), 4);
  assert_int_equal(s.n_txns, 1);
  assert_int_equal(s.in_commit_timestamp.v, 70);
  delta_snapshot_done(&s);
  put_entry(21, TXN("weir:a", 6));
  s = open_good();
  assert_int_equal(s.version, 21);
  assert_int_equal(txn(&s, "weir:a"), 6);
  delta_snapshot_done(&s);
}

/* `_last_checkpoint` is a hint: it may be behind, wrong or damaged. */
static void a_wrong_hint_is_passed_over(void **state) {
  (void)state;
  put_parquet(LOG "00000000000000000010.checkpoint.parquet", SMALL,
              PROTOCOL METADATA("id") TXN("weir:a", 3));
  put_entry(11, TXN("weir:a", 7));
  static const char *const hints[] = {"{\"version\":10,\"size\":3}",
                                      "{\"version\":11}",
                                      "{\"version\":99999}",
                                      "{",
                                      "{\"version\":-1}",
                                      "{\"version\":\"x\"}"};
  for (size_t i = 0; i < sizeof(hints) / sizeof(hints[0]); i++) {
    put(LOG "_last_checkpoint", hints[i]);
    delta_snapshot s = open_good();
    assert_int_equal(s.version, 11);
    assert_int_equal(s.checkpoint, 10);
    assert_int_equal(txn(&s, "weir:a"), 7);
    delta_snapshot_done(&s);
  }
}

static void a_multi_part_checkpoint_counts_when_it_is_whole(void **state) {
  (void)state;
  put_parquet(LOG "00000000000000000004.checkpoint.0000000001.0000000002.parquet", SMALL,
              PROTOCOL METADATA("parts"));
  put_entry(5, TXN("weir:a", 1));
  open_bad("begins with version 5");
  put_parquet(LOG "00000000000000000004.checkpoint.0000000002.0000000002.parquet",
              SMALL "; " FILES, TXN("weir:z", 8) ADD("x"));
  /* one that lacks its first part, and two that name no part */
  put(LOG "00000000000000000005.checkpoint.0000000002.0000000002.parquet", "");
  put(LOG "00000000000000000005.checkpoint.0000000003.0000000002.parquet", "");
  put(LOG "00000000000000000005.checkpoint.0000000000.0000000002.parquet", "");
  delta_snapshot s = open_good();
  assert_int_equal(s.version, 5);
  assert_int_equal(s.checkpoint, 4);
  assert_int_equal(txn(&s, "weir:z"), 8);
  delta_snapshot_done(&s);
}

/* Counts files, and keeps the last path. */
typedef struct counted {
  size_t adds, removes, others;
  char path[64];
  int64_t base_row_id, vector_size;
} counted;

static weir_status count(void *ctx, const delta_action *action, weir_error *err) {
  counted *c = ctx;
  (void)err;
  if (action->kind == DELTA_ADD) {
    const delta_file *f = &action->u.file;
    c->adds++;
    snprintf(c->path, sizeof(c->path), "%.*s", (int)f->path.n, f->path.p);
    c->base_row_id = f->base_row_id.present ? f->base_row_id.v : -1;
    c->vector_size = f->vector.storage.p ? f->vector.size : -1;
    assert_int_equal(f->partition_values.n, 1);
    assert_null(f->partition_values.v[0].value.p);
    assert_true(delta_text_is(f->stats, "{}"));
  } else if (action->kind == DELTA_REMOVE) {
    c->removes++;
  } else {
    c->others++;
  }
  return WEIR_OK;
}

static void read_files(counted *out) {
  delta_segment segment;
  weir_error err = {0};
  memset(out, 0, sizeof(*out));
  if (delta_log_find(store, NULL, &segment, &err) ||
      delta_log_read_checkpoint(store, NULL, &segment, DELTA_CHECKPOINT_FILES, count, out,
                                &err))
    fail_msg("%s", err.message);
  delta_segment_done(&segment);
}

#define UUID "80a083e8-7026-4e79-81be-64bd76c43a11"

static void v2_checkpoints_are_read_with_their_sidecars(void **state) {
  (void)state;
  counted c;
  put(LOG "00000000000000000003.checkpoint." UUID ".json",
      "{\"checkpointMetadata\":{\"version\":3,\"tags\":{}}}\n" PROTOCOL METADATA("v2")
          TXN("weir:a", 2) "{\"sidecar\":{\"path\":\"a%20b.parquet\",\"sizeInBytes\":1,"
                           "\"modificationTime\":1,\"tags\":{}}}\n");
  put_parquet(
      LOG "_sidecars/a b.parquet", FILES,
      ADD("one") "{\"remove\":{\"path\":\"r\",\"dataChange\":false}}\n" ADD("two"));
  delta_snapshot s = open_good();
  assert_int_equal(s.version, 3);
  assert_true(delta_text_is(s.metadata.id, "v2"));
  assert_int_equal(txn(&s, "weir:a"), 2);
  delta_snapshot_done(&s);
  read_files(&c);
  assert_int_equal(c.adds, 2);
  assert_int_equal(c.removes, 1);
  assert_string_equal(c.path, "two");
  put_parquet(
      LOG "00000000000000000004.checkpoint." UUID ".parquet", SMALL,
      "{\"checkpointMetadata\":{\"version\":4}}\n" PROTOCOL METADATA(
          "v2p") "{\"sidecar\":{\"path\":\"_delta_log/_sidecars/a b.parquet\"}}\n");
  s = open_good();
  assert_int_equal(s.version, 4);
  assert_true(delta_text_is(s.metadata.id, "v2p"));
  delta_snapshot_done(&s);
  read_files(&c);
  assert_int_equal(c.adds, 2);
}

static void files_of_a_checkpoint_have_all_their_fields(void **state) {
  (void)state;
  counted c;
  put_parquet(LOG "00000000000000000001.checkpoint.parquet", SMALL "; " FILES,
              PROTOCOL METADATA("id") ADD("x")
              "{\"add\":{\"path\":\"day=1/y\",\"partitionValues\":{\"day\":null},"
              "\"size\":1,\"modificationTime\":2,\"dataChange\":false,\"stats\":\"{}\","
              "\"baseRowId\":12,\"deletionVector\":{\"storageType\":\"i\","
              "\"pathOrInlineDv\":\"wi5b\",\"sizeInBytes\":40,\"cardinality\":6}}}\n");
  read_files(&c);
  assert_int_equal(c.adds, 2);
  assert_int_equal(c.others, 2);
  assert_string_equal(c.path, "day=1/y");
  assert_int_equal(c.base_row_id, 12);
  assert_int_equal(c.vector_size, 40);
}

static void a_damaged_log_is_corrupt(void **state) {
  (void)state;
  put_entry(0, METADATA("id"));
  open_bad("no protocol action");
  put_entry(0, PROTOCOL);
  open_bad("no metaData action");
  put_entry(0, PROTOCOL METADATA("id"));
  put_entry(2, TXN("weir:a", 1));
  open_bad("lacks version 1");
  put_entry(1, "{\"add\":{}}");
  open_bad("00000000000000000001.json', line 1: 'add.path'");
  put(LOG "00000000000000000002.checkpoint.parquet", "PAR1 is not enough");
  open_bad("00000000000000000002.checkpoint.parquet");
  put_parquet(LOG "00000000000000000002.checkpoint.parquet", "txn: struct<appId: int64>",
              "{\"txn\":{\"appId\":1}}\n");
  open_bad("'txn.appId' is missing or not a string");
  put_parquet(LOG "00000000000000000002.checkpoint.parquet", "txn: utf8",
              "{\"txn\":\"x\"}\n");
  open_bad("column 'txn' is no struct");
  put_parquet(LOG "00000000000000000002.checkpoint.parquet", SMALL,
              "{\"txn\":{\"appId\":\"a\",\"version\":1},\"sidecar\":{\"path\":\"x\"}}\n");
  open_bad("one action of its row");
  put_parquet(LOG "00000000000000000002.checkpoint.parquet", UNKNOWN,
              "{\"newAction\":{\"x\":1}}\n");
  open_bad("no protocol action");
}

#define DAY_MS 86400000
#define REMOVE(path, time)                                          \
  "{\"remove\":{\"path\":\"" path "\",\"deletionTimestamp\":" #time \
  ",\"dataChange\":true}}\n"

static void write_checkpoint(int64_t version) {
  delta_segment segment;
  weir_error err = {0};
  if (delta_log_find(store, NULL, &segment, &err) ||
      delta_log_write_checkpoint(store, NULL, &segment, version, 10LL * DAY_MS, &err))
    fail_msg("%s", err.message);
  delta_segment_done(&segment);
}

/* Files and their sizes, in one text in the order of the checkpoint. */
static weir_status name_file(void *ctx, const delta_action *action, weir_error *err) {
  char *text = ctx;
  size_t n = strlen(text);
  (void)err;
  if (action->kind == DELTA_ADD || action->kind == DELTA_REMOVE)
    snprintf(text + n, 256 - n, "%c%.*s ", action->kind == DELTA_ADD ? '+' : '-',
             (int)action->u.file.path.n, action->u.file.path.p);
  if (action->kind == DELTA_DOMAIN)
    snprintf(text + n, 256 - n, "domain:%.*s ", (int)action->u.domain.domain.n,
             action->u.domain.domain.p);
  return WEIR_OK;
}

static void check_files(int64_t version, const char *want) {
  delta_segment segment;
  weir_error err = {0};
  char text[256] = "";
  if (delta_log_find(store, NULL, &segment, &err)) fail_msg("%s", err.message);
  assert_int_equal(segment.checkpoint, version);
  if (delta_log_read_checkpoint(store, NULL, &segment, DELTA_CHECKPOINT_FILES, name_file,
                                text, &err))
    fail_msg("%s", err.message);
  assert_string_equal(text, want);
  delta_segment_done(&segment);
}

static void a_checkpoint_holds_what_is_left(void **state) {
  (void)state;
  put_entry(0, PROTOCOL METADATA("id") ADD("a") TXN("weir:x", 1) TXN("o", 1));
  put_entry(1, ADD("b") ADD("c") TXN("weir:x", 2)
                   "{\"domainMetadata\":{\"domain\":\"d\",\"configuration\":\"{}\","
                   "\"removed\":false}}\n"
                   "{\"domainMetadata\":{\"domain\":\"e\",\"configuration\":\"{}\","
                   "\"removed\":true}}\n");
  put_entry(2, REMOVE("a", 864000000)); /* the tenth day: kept for a week */
  write_checkpoint(2);
  check_files(2, "-a +b +c domain:d ");
  delta_snapshot s = open_good();
  assert_int_equal(s.version, 2);
  assert_int_equal(s.checkpoint, 2);
  assert_true(delta_text_is(s.metadata.id, "id"));
  assert_int_equal(s.protocol.writer, 2);
  assert_false(s.protocol.writer_features.present);
  assert_int_equal(txn(&s, "weir:x"), 2);
  delta_snapshot_done(&s);
  /* of that checkpoint and more entries the next one: a tombstone of the second day is gone */
  put_entry(3, REMOVE("b", 172800000) ADD("e") ADD("a") METADATA("later"));
  write_checkpoint(3);
  check_files(3, "+e +a +c domain:d ");
  s = open_good();
  assert_int_equal(s.version, 3);
  assert_true(delta_text_is(s.metadata.id, "later"));
  assert_int_equal(txn(&s, "weir:x"), 2);
  delta_snapshot_done(&s);
}

#define WITH_VECTOR(path, vector)                                                       \
  "{\"add\":{\"path\":\"" path                                                          \
  "\",\"partitionValues\":{\"day\":null},\"size\":1,"                                   \
  "\"modificationTime\":2,\"dataChange\":true,\"stats\":\"{}\",\"tags\":{\"t\":\"u\"}," \
  "\"baseRowId\":12,\"deletionVector\":{\"storageType\":\"u\",\"pathOrInlineDv\":"      \
  "\"" vector "\",\"offset\":1,\"sizeInBytes\":40,\"cardinality\":6}}}\n"

/* Section "Action Reconciliation": a file is known by its path and its deletion vector. */
static void deletion_vectors_are_part_of_a_files_name(void **state) {
  (void)state;
  counted c;
  put_entry(0, PROTOCOL METADATA("id") ADD("a"));
  put_entry(1, WITH_VECTOR("a", "ab") REMOVE("a", 864000000));
  write_checkpoint(1);
  check_files(1, "-a +a ");
  read_files(&c);
  assert_int_equal(c.vector_size, 40);
  assert_int_equal(c.base_row_id, 12);
}

static void properties_say_what_checkpoints_hold(void **state) {
  (void)state;
  put_entry(0, PROTOCOL
            "{\"metaData\":{\"id\":\"x\",\"format\":{\"provider\":\"parquet\"},"
            "\"schemaString\":\"{}\",\"partitionColumns\":[],\"configuration\":{"
            "\"delta.deletedFileRetentionDuration\":\"interval 9 days\"}}}\n" REMOVE(
                "a", 172800000) REMOVE("b", 1));
  write_checkpoint(0);
  check_files(0, "-a ");
  put_entry(1,
            "{\"metaData\":{\"id\":\"x\",\"format\":{\"provider\":\"parquet\"},"
            "\"schemaString\":\"{}\",\"partitionColumns\":[],\"configuration\":{"
            "\"delta.deletedFileRetentionDuration\":\"odd\"}}}\n" REMOVE("b", 1));
  write_checkpoint(1); /* weir cannot tell, so it keeps them */
  check_files(1, "-b -a ");
  put_entry(2,
            "{\"metaData\":{\"id\":\"x\",\"format\":{\"provider\":\"parquet\"},"
            "\"schemaString\":\"{}\",\"partitionColumns\":[],\"configuration\":{"
            "\"delta.checkpoint.writeStatsAsStruct\":\"true\"}}}\n");
  delta_segment segment;
  weir_error err = {0};
  assert_int_equal(delta_log_find(store, NULL, &segment, &err), WEIR_OK);
  assert_int_equal(delta_log_write_checkpoint(store, NULL, &segment, 2, 0, &err),
                   WEIR_E_NOT_IMPLEMENTED);
  delta_segment_done(&segment);
  check_files(1, "-b -a ");
}

/* More things than the table of them begins with. */
static void many_files_are_all_there(void **state) {
  (void)state;
  delta_lines lines = {0};
  weir_error err = {0};
  counted c;
  put_entry(0, PROTOCOL METADATA("id"));
  for (int i = 0; i < 3000; i++) {
    char path[32], text[256];
    snprintf(path, sizeof(path), "f%d", i);
    snprintf(text, sizeof(text),
             "{\"add\":{\"path\":\"%s\",\"partitionValues\":{\"day\":null},\"size\":1,"
             "\"modificationTime\":2,\"dataChange\":true,\"stats\":\"{}\"}}",
             path);
    assert_int_equal(delta_lines_raw(&lines, text, strlen(text), &err), WEIR_OK);
  }
  assert_int_equal(delta_lines_raw(&lines, "", 1, &err), WEIR_OK);
  put_entry(1, lines.p);
  delta_lines_done(&lines);
  write_checkpoint(1);
  put_entry(2, ADD("last") REMOVE("f7", 864000000));
  write_checkpoint(2);
  read_files(&c);
  assert_int_equal(c.adds, 3000);
  assert_int_equal(c.removes, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(an_empty_folder_has_no_table, begin, end),
      cmocka_unit_test_setup_teardown(entries_alone_make_a_version, begin, end),
      cmocka_unit_test_setup_teardown(the_newest_checkpoint_is_read_and_what_is_behind_it,
                                      begin, end),
      cmocka_unit_test_setup_teardown(a_wrong_hint_is_passed_over, begin, end),
      cmocka_unit_test_setup_teardown(a_multi_part_checkpoint_counts_when_it_is_whole,
                                      begin, end),
      cmocka_unit_test_setup_teardown(v2_checkpoints_are_read_with_their_sidecars, begin,
                                      end),
      cmocka_unit_test_setup_teardown(files_of_a_checkpoint_have_all_their_fields, begin,
                                      end),
      cmocka_unit_test_setup_teardown(a_damaged_log_is_corrupt, begin, end),
      cmocka_unit_test_setup_teardown(a_checkpoint_holds_what_is_left, begin, end),
      cmocka_unit_test_setup_teardown(deletion_vectors_are_part_of_a_files_name, begin,
                                      end),
      cmocka_unit_test_setup_teardown(properties_say_what_checkpoints_hold, begin, end),
      cmocka_unit_test_setup_teardown(many_files_are_all_there, begin, end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
