/* SPDX-License-Identifier: Apache-2.0 */
/* The file source over NDJSON: which files, in which order, and that every position continues exactly. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../connectors/file/source.h"
#include "support/rows.h"
#include "support/source_rig.h"

#define OPS &weir_file_source_ops

static void check_rest(const char *pattern, const weir_bytes *position,
                       const char *want) {
  opened_source s = sources_open(OPS, source_rig_settings(pattern, NULL, NULL), position);
  char *got = sources_read_text(&s, 100000);
  assert_string_equal(got, want);
  free(got);
  assert_null(sources_read(&s));
  sources_close(&s);
}

/* Reads `batches` batches; where that ends. */
static weir_bytes read_some(const char *pattern, int batches, const char *want) {
  opened_source s = sources_open(OPS, source_rig_settings(pattern, NULL, NULL), NULL);
  char *got = sources_read_text(&s, batches);
  assert_string_equal(got, want);
  free(got);
  weir_bytes position = sources_position(&s);
  sources_close(&s);
  return position;
}

static void check_refused(const char *pattern, const weir_bytes *position,
                          weir_status code, const char *part) {
  weir_error err = {0};
  assert_int_equal(
      sources_open_error(OPS, source_rig_settings(pattern, NULL, NULL), position, &err),
      code);
  if (strstr(err.message, part) == NULL) fail_msg("%s, not '%s'", err.message, part);
}

/* Rows first .. last as NDJSON. */
static char *rows(int first, int last) {
  char *text = calloc((size_t)(last - first + 1) + 1, 40);
  assert_non_null(text);
  for (int i = first, n = 0; i <= last; i++)
    n += sprintf(text + n, "{\"id\":%d,\"name\":\"n\"}\n", i);
  return text;
}

static void put_rows(const char *name, int first, int last) {
  char *text = rows(first, last);
  folder_put(source_rig_folder, name, text);
  free(text);
}

static void add_rows(const char *name, int first, int last) {
  char *text = rows(first, last);
  folder_add(source_rig_folder, name, text);
  free(text);
}

static void check_rest_rows(const char *pattern, const weir_bytes *position, int first,
                            int last) {
  char *want = rows(first, last);
  check_rest(pattern, position, want);
  free(want);
}

static weir_bytes read_rows(const char *pattern, int batches, int first, int last) {
  char *want = rows(first, last);
  weir_bytes position = read_some(pattern, batches, want);
  free(want);
  return position;
}

static void test_order_and_names(void **state) {
  (void)state;
  put_rows("b.ndjson", 10, 14);
  put_rows("a.ndjson", 1, 4);
  put_rows("c.jsonl", 20, 20);
  folder_put(source_rig_folder, "empty.ndjson", "");
  folder_put(source_rig_folder, "blank.ndjson", "\n \n");
  folder_link(source_rig_folder, "a.ndjson", "link.ndjson");
  char *a = rows(1, 4), *b = rows(10, 14), *c = rows(20, 20), all[2000];
  snprintf(all, sizeof(all), "%s%s", a, b);
  check_rest("*.ndjson", NULL, all);
  snprintf(all, sizeof(all), "%s%s%s", a, b, c);
  check_rest("*.{ndjson,jsonl}", NULL, all);
  check_rest("[bl]*.ndjson", NULL, (snprintf(all, sizeof(all), "%s%s", b, a), all));
  char one[600], two[600];
  snprintf(one, sizeof(one), "%s/b.ndjson", source_rig_folder);
  snprintf(two, sizeof(two), "%s/a*", source_rig_folder);
  const char *const list[] = {"path",      one,     "path",        two,    "path", one,
                              "schema.id", "int64", "schema.name", "utf8", NULL};
  opened_source s = sources_open(OPS, list, NULL);
  char *got = sources_read_text(&s, 100);
  snprintf(all, sizeof(all), "%s%s", a, b);
  assert_string_equal(got, all);
  free(got);
  sources_close(&s);
  free(a);
  free(b);
  free(c);
}

/* From the position after each batch, a new source and a sought one give exactly the rest. */
static void test_every_position_continues(void **state) {
  (void)state;
  put_rows("a.ndjson", 1, 10);
  folder_put(source_rig_folder, "b.ndjson",
             "\r\n{\"id\":11,\"name\":\"n\"}\r\n\n{\"id\":12,\"name\":\"n\"}");
  put_rows("c.ndjson", 13, 18);
  for (int batches = 0; batches < 9; batches++) {
    opened_source s =
        sources_open(OPS, source_rig_settings("*.ndjson", NULL, NULL), NULL);
    char *first = sources_read_text(&s, batches);
    weir_bytes position = sources_position(&s), again = {0};
    int n = 0;
    for (const char *p = first; *p; p++) n += *p == '\n';
    check_rest_rows("*.ndjson", &position, n + 1, 18);
    for (int further = 0; further < 5; further++) {
      free(sources_read_text(&s, further));
      sources_seek(&s, &position);
      again = sources_position(&s);
      assert_int_equal(again.size, position.size);
      assert_memory_equal(again.data, position.data, position.size);
      weir_bytes_release(&again);
      char *rest = sources_read_text(&s, 100), *want = rows(n + 1, 18);
      assert_string_equal(rest, want);
      free(want);
      free(rest);
      sources_seek(&s, &position);
    }
    weir_bytes_release(&position);
    sources_close(&s);
    free(first);
  }
}

static void test_seek_to_the_start(void **state) {
  (void)state;
  weir_bytes none = {0};
  put_rows("a.ndjson", 1, 5);
  opened_source s = sources_open(OPS, source_rig_settings("a.ndjson", NULL, NULL), NULL);
  free(sources_read_text(&s, 1));
  sources_seek(&s, &none);
  char *got = sources_read_text(&s, 100), *want = rows(1, 5);
  assert_string_equal(got, want);
  free(got);
  free(want);
  sources_close(&s);
}

static void test_files_come_and_are_renamed(void **state) {
  (void)state;
  put_rows("m.ndjson", 1, 3);
  put_rows("n.ndjson", 4, 12);
  weir_bytes position = read_rows("*.ndjson", 2, 1, 6);
  folder_rename(source_rig_folder, "m.ndjson", "z.ndjson"); /* done, under another name */
  folder_rename(source_rig_folder, "n.ndjson", "b.ndjson"); /* half-read */
  put_rows("c.ndjson", 13, 13);
  put_rows("x.ndjson", 14, 14);
  check_rest_rows("*.ndjson", &position, 7, 14);
  folder_remove_file(source_rig_folder, "z.ndjson"); /* done files may go */
  check_rest_rows("*.ndjson", &position, 7, 14);
  put_rows("a.ndjson", 6, 6); /* new files may sort before what was read */
  check_rest_rows("*.ndjson", &position, 6, 14);
  weir_bytes_release(&position);
}

static void test_files_that_grow(void **state) {
  (void)state;
  put_rows("a.ndjson", 1, 3);
  weir_bytes position = read_rows("a.ndjson", 10, 1, 3);
  check_rest("a.ndjson", &position, "");
  add_rows("a.ndjson", 4, 8);
  check_rest_rows("a.ndjson", &position, 4, 8);
  weir_bytes_release(&position);
  folder_put(source_rig_folder, "cut.ndjson",
             "{\"id\":1,\"name\":\"n\"}\n{\"id\":2,\"name\":\"n\"}");
  position = read_rows("cut.ndjson", 10, 1, 2);
  check_rest("cut.ndjson", &position, "");
  folder_add(source_rig_folder, "cut.ndjson", "\n{\"id\":3}\n");
  check_refused("cut.ndjson", &position, WEIR_E_BAD_DATA, "cut.ndjson grew behind");
  weir_bytes_release(&position);
  /* the same when the last row fills a batch, so that the end is not yet known */
  folder_put(source_rig_folder, "cut.ndjson",
             "{\"id\":1,\"name\":\"n\"}\n\n{\"id\":2,\"name\":\"n\"}\n{\"id\":3,\"name\":"
             "\"n\"}");
  position = read_rows("cut.ndjson", 1, 1, 3);
  check_rest("cut.ndjson", &position, "");
  folder_add(source_rig_folder, "cut.ndjson", "4");
  check_refused("cut.ndjson", &position, WEIR_E_BAD_DATA, "cut.ndjson grew behind");
  weir_bytes_release(&position);
}

static void test_files_that_change(void **state) {
  (void)state;
  put_rows("a.ndjson", 1, 30);
  weir_bytes position = read_rows("a.ndjson", 3, 1, 9);
  folder_patch(source_rig_folder, "a.ndjson", 6, "7"); /* within what was read */
  check_refused("a.ndjson", &position, WEIR_E_BAD_DATA,
                "a.ndjson changed since it was read");
  folder_rename(source_rig_folder, "a.ndjson", "b.ndjson");
  check_refused("b.ndjson", &position, WEIR_E_BAD_DATA,
                "b.ndjson changed since it was read");
  folder_patch(source_rig_folder, "b.ndjson", 6, "1");
  check_rest_rows("b.ndjson", &position, 10, 30);
  folder_cut(source_rig_folder, "b.ndjson", 20);
  check_refused("b.ndjson", &position, WEIR_E_BAD_DATA, "b.ndjson became shorter");
  folder_remove_file(source_rig_folder, "b.ndjson");
  put_rows("c.ndjson", 1, 1);
  check_refused("*.ndjson", &position, WEIR_E_NOT_FOUND, "a.ndjson is gone");
  weir_bytes_release(&position);
}

/* A change far from both windows' edges is seen at the edges themselves. */
static void test_windows(void **state) {
  (void)state;
  put_rows("a.ndjson", 1, 4000); /* some 95 KB */
  opened_source s = sources_open(OPS, source_rig_settings("a.ndjson", NULL, NULL), NULL);
  free(sources_read_text(&s, 1200));
  weir_bytes position = sources_position(&s);
  sources_close(&s);
  folder_patch(source_rig_folder, "a.ndjson", FILE_WINDOW - 1, "~");
  check_refused("a.ndjson", &position, WEIR_E_BAD_DATA, "changed since");
  weir_bytes_release(&position);
}

/* A position made on another machine, or before the file system was mounted again: files are found by name
 * and bytes, whether they grew or not. */
static void test_another_device(void **state) {
  (void)state;
  put_rows("a.ndjson", 1, 3);
  weir_bytes position = read_rows("a.ndjson", 10, 1, 3), moved = {0};
  file_list known = {0}, none = {0};
  weir_error err = {0};
  assert_int_equal(file_position_read(&position, &known, &err), WEIR_OK);
  assert_int_equal(known.n, 1);
  known.items[0].device += 5;
  assert_int_equal(file_position_write(&known, &none, &moved, &err), WEIR_OK);
  put_rows("b.ndjson", 4, 6);
  check_rest_rows("*.ndjson", &moved, 4, 6);
  add_rows("a.ndjson", 7, 8);
  check_rest_rows("a.ndjson", &moved, 7, 8);
  file_list_done(&known);
  weir_bytes_release(&moved);
  weir_bytes_release(&position);
}

static void test_rotation_and_restore(void **state) {
  (void)state;
  put_rows("a.ndjson", 1, 3);
  weir_bytes position = read_rows("a.ndjson", 10, 1, 3);
  /* another file under the old name: new rows */
  put_rows("new", 4, 6);
  folder_rename(source_rig_folder, "a.ndjson", "kept.old");
  folder_rename(source_rig_folder, "new", "a.ndjson");
  check_rest_rows("a.ndjson", &position, 4, 6);
  /* a copy with the same bytes under the old name: the file that was read, restored */
  put_rows("new", 1, 3);
  folder_rename(source_rig_folder, "new", "a.ndjson");
  check_rest("a.ndjson", &position, "");
  add_rows("a.ndjson", 4, 5);
  check_rest_rows("a.ndjson", &position, 4, 5);
  /* with the first one back beside it, its inode wins and the copy is a file of its own */
  folder_rename(source_rig_folder, "kept.old", "z.ndjson");
  check_rest_rows("*.ndjson", &position, 1, 5);
  weir_bytes_release(&position);
}

static void test_missing_files(void **state) {
  (void)state;
  check_refused("no.ndjson", NULL, WEIR_E_NOT_FOUND, "no.ndjson: there is no such file");
  check_refused("*.ndjson", NULL, WEIR_E_NOT_FOUND, "no file matches");
  check_refused("no/*.ndjson", NULL, WEIR_E_NOT_FOUND, "no file matches");
  put_rows("a.ndjson", 1, 3);
  weir_bytes position = read_rows("a.ndjson", 10, 1, 3);
  folder_remove_file(source_rig_folder, "a.ndjson");
  check_rest("a.ndjson", &position, ""); /* done and gone is nothing to complain of */
  check_rest("*.ndjson", &position, "");
  check_refused("b.ndjson", &position, WEIR_E_NOT_FOUND,
                "b.ndjson: there is no such file");
  weir_bytes_release(&position);
}

static void test_seek_with_files_gone(void **state) {
  (void)state;
  put_rows("a.ndjson", 1, 3);
  put_rows("b.ndjson", 4, 6);
  opened_source s = sources_open(OPS, source_rig_settings("*.ndjson", NULL, NULL), NULL);
  weir_bytes none = {0};
  weir_error err = {0};
  free(sources_read_text(&s, 1));
  weir_bytes position = sources_position(&s);
  free(sources_read_text(&s, 1));
  folder_remove_file(source_rig_folder, "a.ndjson");
  sources_seek(&s, &position); /* a.ndjson is covered by it */
  char *got = sources_read_text(&s, 100), *want = rows(4, 6);
  assert_string_equal(got, want);
  free(got);
  free(want);
  assert_int_equal(weir_file_source_ops.seek(&s.source, NULL, &none, &err), WEIR_OK);
  sources_close(&s);
  weir_bytes_release(&position);
}

static void test_bad_rows_name_the_file(void **state) {
  (void)state;
  put_rows("a.ndjson", 1, 2);
  add_rows("a.ndjson", 3, 4);
  folder_add(source_rig_folder, "a.ndjson", "{\"id\":true}\n{\"id\":6,\"name\":\"n\"}\n");
  opened_source s = sources_open(OPS, source_rig_settings("a.ndjson", NULL, NULL), NULL);
  weir_batch *batch = NULL;
  weir_error err = {0};
  int32_t what = 0;
  char *got = sources_read_text(&s, 2), *want = rows(1, 4);
  assert_string_equal(got, want);
  free(want);
  free(got);
  assert_int_equal(weir_file_source_ops.read(&s.source, NULL, &what, &batch, &err),
                   WEIR_E_BAD_DATA);
  assert_int_equal(err.flags, WEIR_ERR_BAD_DATA);
  assert_non_null(strstr(err.message, "a.ndjson: line 5, byte 82: column 'id'"));
  weir_bytes position = sources_position(&s);
  sources_close(&s);
  folder_patch(source_rig_folder, "a.ndjson", 86,
               "5   ,\"name\":\"n\"}\n{\"id\":6,\"name\":\"n\"}\n");
  check_rest_rows("a.ndjson", &position, 5, 6);
  weir_bytes_release(&position);
}

/* A line that grows through several blocks, and positions right behind it. */
static void test_long_lines(void **state) {
  (void)state;
  size_t n = (size_t)5 << 20;
  char *text = malloc(n + 100);
  assert_non_null(text);
  memcpy(text, "{\"id\":1,\"name\":\"", 16);
  memset(text + 16, 'x', n);
  strcpy(text + 16 + n, "\"}\n{\"id\":2,\"name\":\"n\"}\n");
  folder_put(source_rig_folder, "a.ndjson", text);
  opened_source s = sources_open(OPS, source_rig_settings("a.ndjson", NULL, NULL), NULL);
  weir_batch *batch = sources_read(&s);
  assert_int_equal(weir_batch_rows(batch), 2);
  const int32_t *offsets = weir_batch_array(batch)->children[1]->buffers[1];
  assert_int_equal(offsets[1], n);
  weir_batch_unref(batch);
  assert_null(sources_read(&s));
  sources_close(&s);
  free(text);
}

static void test_bent_positions(void **state) {
  (void)state;
  put_rows("a.ndjson", 1, 3);
  put_rows("b.ndjson", 4, 9);
  weir_bytes position = read_rows("*.ndjson", 2, 1, 6);
  weir_error err = {0};
  for (size_t i = 0; i < position.size; i++) {
    weir_bytes cut = position, bent = {0};
    cut.size = i;
    check_refused("*.ndjson", &cut, WEIR_E_CORRUPT, "no position of a file source");
    assert_int_equal(weir_bytes_copy(&bent, position.data, position.size, &err), WEIR_OK);
    ((uint8_t *)(uintptr_t)bent.data)[i] ^= 0x10;
    check_refused("*.ndjson", &bent, WEIR_E_CORRUPT, "no position of a file source");
    weir_bytes_release(&bent);
  }
  weir_bytes_release(&position);
}

static void test_ten_thousand_files(void **state) {
  (void)state;
  char name[32];
  for (int i = 0; i < 10000; i++) {
    snprintf(name, sizeof(name), "%05d.ndjson", i);
    put_rows(name, i, i);
  }
  opened_source s = sources_open(OPS, source_rig_settings("*.ndjson", NULL, NULL), NULL);
  char *got = sources_read_text(&s, 9999), *want = rows(0, 9998);
  assert_string_equal(got, want);
  free(got);
  free(want);
  weir_bytes position = sources_position(&s);
  assert_in_range(position.size, 100000, 400000);
  sources_close(&s);
  check_rest_rows("*.ndjson", &position, 9999, 9999);
  weir_bytes_release(&position);
}

static void refused_options(const char *const *settings, const char *part) {
  weir_error err = {0};
  weir_status status = sources_open_error(OPS, settings, NULL, &err);
  if (status != WEIR_E_INVALID_CONFIG && status != WEIR_E_NOT_IMPLEMENTED) {
    fail_msg("status %d: %s", status, err.message);
  }
  if (strstr(err.message, part) == NULL) fail_msg("%s, not '%s'", err.message, part);
}

static void test_refused_options(void **state) {
  (void)state;
  static char path[600];
  static const struct {
    const char *file, *more[4], *part;
  } cases[] = {
      {"x.csv",
       {"schema.id", "list<int8>"},
       "flat types can; format ndjson, arrow or parquet holds nested ones"},
      {"x.csv", {"csv.delimiter", "::"}, "CSV delimiter '::': expected one ASCII"},
      {"x.txt", {NULL}, "its name does not tell the format; give option format"},
      {"x.ndjson", {"format", "xml"}, "'xml' is unknown; the formats known are"},
      {"x.ndjson", {"csv.null", "NA"}, "option csv.null: given: it goes with format csv"},
      {"x.ndjson", {"on_loss", "skip"}, "option on_loss: skip: it goes with follow"},
      {"x.ndjson", {"schema", "guess"}, "option schema: guess: expected a mapping"},
      {"x.ndjson", {"compression", "lz4"}, "compression: lz4: expected auto, gzip"},
      {"-", {NULL}, "standard input needs option format"},
      {"-", {"format", "arrow"}, "Arrow is not read from standard input"},
      {"-", {"format", "parquet"}, "a Parquet file begins at its end"},
      {"-",
       {"format", "csv"},
       "no sample for schema: infer can be taken of standard input"},
      {"x.ndjson", {"schema.id", "int46"}, "option schema: column 'id'"},
      {"x.ndjson", {"schema.id", "list<utf8_view>"}, "column 'id[]': type utf8_view"},
      {"x.ndjson", {"path", "y.arrow"}, "another format than the paths before it"},
      {"", {NULL}, "is a folder; name its files, as in"},
      {"**/x.ndjson", {"schema.id", "int8"}, "** is not supported"},
  };
  static const char *const files[] = {"x.csv", "x.parquet", "x.txt", "x.ndjson"};
  for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
    folder_put(source_rig_folder, files[i], "{}\n");
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    bool stream = strcmp(cases[i].file, "-") == 0;
    snprintf(path, sizeof(path), "%s%s%s", stream ? "" : source_rig_folder,
             stream ? "" : "/", cases[i].file);
    const char *const settings[] = {"path", path, cases[i].more[0], cases[i].more[1],
                                    NULL};
    refused_options(settings, cases[i].part);
  }
  snprintf(path, sizeof(path), "%s/fifo.ndjson", source_rig_folder);
  assert_int_equal(mkfifo(path, 0600), 0);
  const char *const fifo[] = {"path", path, "schema.id", "int8", NULL};
  refused_options(fifo, "is no regular file");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_FOLDER(test_order_and_names),
      IN_FOLDER(test_every_position_continues),
      IN_FOLDER(test_seek_to_the_start),
      IN_FOLDER(test_files_come_and_are_renamed),
      IN_FOLDER(test_files_that_grow),
      IN_FOLDER(test_files_that_change),
      IN_FOLDER(test_windows),
      IN_FOLDER(test_another_device),
      IN_FOLDER(test_rotation_and_restore),
      IN_FOLDER(test_missing_files),
      IN_FOLDER(test_seek_with_files_gone),
      IN_FOLDER(test_bad_rows_name_the_file),
      IN_FOLDER(test_long_lines),
      IN_FOLDER(test_bent_positions),
      IN_FOLDER(test_ten_thousand_files),
      IN_FOLDER(test_refused_options),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
