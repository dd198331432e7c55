/* SPDX-License-Identifier: Apache-2.0 */
/* The file sink with formats parquet and arrow: whole files, options, refused types, and bad rows in a
 * batch that falls into several files. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <weir/ipc.h>

#include "base/base.h"
#include "support/file_rig.h"
#include "support/rows.h"

static char folder[256];

static int make_folder(void **state) {
  (void)state;
  file_rig_folder(folder);
  return 0;
}

static int remove_folder(void **state) {
  (void)state;
  file_rig_cleanup(folder);
  return 0;
}

static void init(file_rig *rig, const char *name, const char *value) {
  const char *names[] = {"format", name}, *values[] = {"parquet", value};
  char path[512];
  snprintf(path, sizeof(path), "%s/orders", folder);
  file_rig_init(rig, path, names, values, name ? 2 : 1);
}

static void use_schema(file_rig *rig, const char *columns) {
  weir_schema_unref(rig->schema);
  rig->schema = rows_schema(columns);
}

static void commit(file_rig *rig, file_attempt *attempt) {
  weir_cursor out = {0};
  weir_error err = {0};
  if (file_rig_commit(rig, NULL, &attempt, 1, &out, &err)) fail_msg("%s", err.message);
}

/* Every published file begins and ends as Parquet does. */
static size_t count_whole_files(const char *path) {
  size_t n = 0;
  DIR *dir = opendir(path);
  const struct dirent *entry;
  assert_non_null(dir);
  while ((entry = readdir(dir))) {
    base_buf content = {0};
    char file[1024];
    if (entry->d_name[0] == '.') continue;
    snprintf(file, sizeof(file), "%s/%s", path, entry->d_name);
    assert_true(base_ends_with(file, ".parquet"));
    assert_int_equal(base_read_file(file, 1 << 20, &content, NULL), WEIR_OK);
    assert_true(content.size > 12);
    assert_memory_equal(content.data, "PAR1", 4);
    assert_memory_equal(content.data + content.size - 4, "PAR1", 4);
    base_buf_done(&content);
    n++;
  }
  closedir(dir);
  return n;
}

static void whole_files_with_every_codec(void **state) {
  (void)state;
  static const char *const codecs[] = {"zstd(3)", "snappy", "lz4", "gzip", "none"};
  for (size_t i = 0; i < BASE_COUNT(codecs); i++) {
    file_rig rig;
    file_attempt a;
    init(&rig, "compression", codecs[i]);
    file_rig_started(&rig);
    file_rig_epoch(&rig, 1, 1, 0, 1000, &a);
    commit(&rig, &a);
    assert_int_equal(count_whole_files(rig.path), 1);
    file_attempt_done(&a);
    file_rig_done(&rig);
    file_rig_cleanup(folder);
  }
}

static void rolls_by_rows(void **state) {
  (void)state;
  file_rig rig;
  file_attempt a;
  init(&rig, "roll.rows", "100");
  file_rig_started(&rig);
  file_rig_epoch(&rig, 1, 1, 0, 200, &a);
  commit(&rig, &a);
  assert_int_equal(count_whole_files(rig.path), 2);
  file_attempt_done(&a);
  file_rig_done(&rig);
}

static void bad_options_are_refused_before_any_io(void **state) {
  (void)state;
  file_rig rig;
  weir_error err = {0};
  init(&rig, "compression", "brotli");
  assert_int_equal(file_rig_start(&rig, &err), WEIR_E_INVALID_CONFIG);
  assert_non_null(strstr(err.message, "sink lake: compression"));
  assert_int_equal(file_rig_count(folder), 0);
  file_rig_done(&rig);
}

static void refused_types_are_named(void **state) {
  (void)state;
  file_rig rig;
  weir_error err = {0};
  struct ArrowSchema schema = {0};
  init(&rig, NULL, NULL);
  weir_schema_unref(rig.schema);
  rig.schema = NULL;
  assert_int_equal(
      weir_type_parse("struct<a: int64, tags: dictionary<int32, list<int32>>>", &schema,
                      &err),
      WEIR_OK);
  assert_int_equal(weir_schema_new(&schema, &rig.schema, &err), WEIR_OK);
  assert_int_not_equal(file_rig_start(&rig, &err), WEIR_OK);
  assert_non_null(strstr(err.message, "tags"));
  assert_non_null(strstr(err.message, "sink lake"));
  assert_int_equal(file_rig_count(folder), 0);
  file_rig_done(&rig);
}

/* Seconds of which the row `good` and those after it do not fit Parquet's milliseconds. */
static weir_status write_bad(file_rig *rig, int64_t good, int64_t rows, weir_error *err) {
  return file_rig_write(rig, INT64_MAX / 1000 - good + 1, rows, err);
}

static void a_bad_batch_is_taken_nowhere(void **state) {
  (void)state;
  file_rig rig;
  file_attempt a;
  init(&rig, "roll.rows", "10");
  use_schema(&rig, "id: timestamp[s]");
  file_rig_started(&rig);
  file_rig_begin(&rig, 1, &a);
  assert_int_equal(file_rig_write(&rig, 0, 5, NULL), WEIR_OK);
  for (int64_t at = 0; at < 30; at += 29) { /* in its first part, and in its last */
    weir_error err = {0};
    assert_int_equal(write_bad(&rig, at, 30, &err), WEIR_E_BAD_DATA);
    assert_int_equal(err.flags, WEIR_ERR_BAD_DATA);
    assert_int_equal(err.row, at);
    assert_int_equal(err.column, 0);
  }
  assert_int_equal(file_rig_write(&rig, 5, 20, NULL), WEIR_OK); /* the epoch goes on */
  file_rig_prepare(&rig, 1, &a);
  commit(&rig, &a);
  assert_int_equal(count_whole_files(rig.path), 3);
  assert_non_null(memmem(a.descriptor.data, a.descriptor.size, "\"rows\":5,", 9));
  file_attempt_done(&a);
  file_rig_done(&rig);
}

static void an_epoch_of_bad_batches_leaves_nothing(void **state) {
  (void)state;
  file_rig rig;
  file_attempt a;
  char staged[1024];
  init(&rig, NULL, NULL);
  use_schema(&rig, "id: timestamp[s]");
  file_rig_started(&rig);
  file_rig_inner(&rig, "staged", staged);
  file_rig_begin(&rig, 1, &a);
  assert_int_equal(write_bad(&rig, 1, 3, NULL), WEIR_E_BAD_DATA);
  file_rig_prepare(&rig, 1, &a);
  assert_null(a.descriptor.release);
  assert_int_equal(file_rig_count(staged), 0);
  file_attempt_done(&a);
  file_rig_done(&rig);
}

/* Numbers from `next` on; gives the one after the last. */
static int64_t read_arrow(const char *dir, const char *name, int64_t next) {
  weir_ipc_reader *reader = NULL;
  weir_batch *batch = NULL;
  weir_error err = {0};
  char path[1024];
  snprintf(path, sizeof(path), "%s/%s", dir, name);
  if (weir_ipc_reader_open_file(path, NULL, &reader, &err)) fail_msg("%s", err.message);
  assert_true(weir_ipc_reader_is_file(reader));
  while (!weir_ipc_reader_next(reader, &batch, &err) && batch) {
    const struct ArrowArray *ids = weir_batch_array(batch)->children[0];
    const int64_t *values = ids->buffers[1];
    for (int64_t i = 0; i < ids->length; i++)
      assert_int_equal(values[ids->offset + i], next++);
    weir_batch_unref(batch);
  }
  assert_int_equal(err.code, WEIR_OK);
  weir_ipc_reader_free(reader);
  return next;
}

static void arrow_files_are_read_back(void **state) {
  (void)state;
  static const char *const codecs[] = {"zstd(1)", "lz4", "none"};
  for (size_t i = 0; i < BASE_COUNT(codecs); i++) {
    const char *names[] = {"format", "compression", "roll.rows"};
    const char *values[] = {"arrow", codecs[i], "30"};
    file_rig rig;
    file_attempt a;
    char path[512];
    int64_t next = 0;
    snprintf(path, sizeof(path), "%s/orders", folder);
    file_rig_init(&rig, path, names, values, 3);
    file_rig_started(&rig);
    file_rig_epoch(&rig, 1, 1, 0, 100, &a);
    commit(&rig, &a);
    assert_int_equal(file_rig_count(path), 4);
    struct dirent **entries = NULL;
    int n = scandir(path, &entries, NULL, alphasort); /* names are in the order of rows */
    for (int k = 0; k < n; k++) {
      if (entries[k]->d_name[0] != '.') next = read_arrow(path, entries[k]->d_name, next);
      free(entries[k]);
    }
    free(entries);
    assert_int_equal(next, 100);
    file_attempt_done(&a);
    file_rig_done(&rig);
    file_rig_cleanup(folder);
  }
}

static void arrow_has_fewer_options(void **state) {
  (void)state;
  static const char *const names[] = {"format", "compression"};
  static const char *const values[] = {"arrow", "snappy"};
  file_rig rig;
  weir_error err = {0};
  file_rig_init(&rig, "/nowhere/orders", names, values, 2);
  assert_int_equal(file_rig_start(&rig, &err), WEIR_E_INVALID_CONFIG);
  assert_non_null(strstr(err.message, "'snappy' does not go with format arrow"));
  file_rig_done(&rig);
}

/* The published files, one after the other, to free(). */
static char *read_all(const char *dir) {
  base_buf all = {0};
  struct dirent **entries = NULL;
  int n = scandir(dir, &entries, NULL, alphasort); /* names are in the order of rows */
  for (int k = 0; k < n; k++) {
    base_buf one = {0};
    char file[1024];
    snprintf(file, sizeof(file), "%s/%s", dir, entries[k]->d_name);
    if (entries[k]->d_name[0] != '.') {
      assert_true(base_ends_with(file, ".csv"));
      assert_int_equal(base_read_file(file, 1 << 20, &one, NULL), WEIR_OK);
      assert_int_equal(base_buf_append(&all, one.data, one.size, NULL), WEIR_OK);
      base_buf_done(&one);
    }
    free(entries[k]);
  }
  free(entries);
  return base_buf_steal_str(&all, NULL);
}

static void csv_files_begin_with_their_header(void **state) {
  (void)state;
  const char *names[] = {"format", "roll.rows"}, *values[] = {"csv", "3"};
  file_rig rig;
  file_attempt a;
  char path[512];
  snprintf(path, sizeof(path), "%s/orders", folder);
  file_rig_init(&rig, path, names, values, 2);
  use_schema(&rig, "id: int64");
  file_rig_started(&rig);
  file_rig_epoch(&rig, 1, 1, 0, 5, &a);
  commit(&rig, &a);
  char *text = read_all(path);
  assert_string_equal(text, "id\n0\n1\n2\nid\n3\n4\n");
  free(text);
  file_attempt_done(&a);
  file_rig_done(&rig);
}

static void csv_options_are_checked_before_any_io(void **state) {
  (void)state;
  static const char *const cases[][4] = {
      {"csv", "csv.delimiter", "::", "sink lake: CSV delimiter '::': expected one ASCII"},
      {"csv", "compression", "zstd", "'zstd' does not go with format csv"},
      {"csv", "effort", "small", "option 'effort' goes with format parquet"},
      {"ndjson", "csv.null", "NA",
       "option 'csv.null' goes with format csv, not with ndjson"},
  };
  for (size_t i = 0; i < BASE_COUNT(cases); i++) {
    const char *names[] = {"format", cases[i][1]}, *values[] = {cases[i][0], cases[i][2]};
    file_rig rig;
    weir_error err = {0};
    file_rig_init(&rig, "/nowhere/orders", names, values, 2);
    assert_int_equal(file_rig_start(&rig, &err), WEIR_E_INVALID_CONFIG);
    if (strstr(err.message, cases[i][3]) == NULL) fail_msg("%s", err.message);
    file_rig_done(&rig);
  }
}

static void parquet_options_are_refused_by_name_before_any_io(void **state) {
  (void)state;
  static const char *const cases[][4] = {
      {"parquet", "bloom_filter", "ratio",
       "bloom_filter: column 'ratio' cannot have a Bloom filter"},
      {"parquet", "bloom_filter", "nope", "bloom_filter: there is no column 'nope'"},
      {"csv", "bloom_filter", "id",
       "option 'bloom_filter' goes with format parquet, not with csv"},
      {"parquet", "column_encoding.ratio", "delta_byte_array",
       "column_encoding: column 'ratio' cannot have encoding delta_byte_array"},
      {"parquet", "column_encoding.nope", "plain",
       "column_encoding: there is no column 'nope'"},
      {"csv", "data_page_version", "2",
       "option 'data_page_version' goes with format parquet, not with csv"},
  };
  for (size_t i = 0; i < BASE_COUNT(cases); i++) {
    const char *names[] = {"format", cases[i][1]};
    const char *values[] = {cases[i][0], cases[i][2]};
    file_rig rig;
    weir_error err = {0};
    file_rig_init(&rig, "/nowhere/orders", names, values, 2);
    use_schema(&rig, "ratio: float64");
    assert_int_equal(file_rig_start(&rig, &err), WEIR_E_INVALID_CONFIG);
    if (strstr(err.message, cases[i][3]) == NULL) fail_msg("%s", err.message);
    file_rig_done(&rig);
  }
}

#define file_test(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void) {
  const struct CMUnitTest tests[] = {
      file_test(whole_files_with_every_codec),
      file_test(rolls_by_rows),
      file_test(bad_options_are_refused_before_any_io),
      file_test(refused_types_are_named),
      file_test(a_bad_batch_is_taken_nowhere),
      file_test(an_epoch_of_bad_batches_leaves_nothing),
      file_test(arrow_files_are_read_back),
      cmocka_unit_test(arrow_has_fewer_options),
      file_test(csv_files_begin_with_their_header),
      cmocka_unit_test(csv_options_are_checked_before_any_io),
      cmocka_unit_test(parquet_options_are_refused_by_name_before_any_io),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
