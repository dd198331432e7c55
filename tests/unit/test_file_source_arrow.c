/* SPDX-License-Identifier: Apache-2.0 */
/* The file source over Arrow IPC files, written by nanoarrow's writer. */
#include <nanoarrow/nanoarrow.h>
#include <nanoarrow/nanoarrow_ipc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../connectors/file/source.h"
#include "support/rows.h"
#include "support/source_rig.h"

#define OPS &weir_file_source_ops

/* A batch with ids first .. last; none when first > last. */
static weir_batch *make_batch(const char *spec, int first, int last) {
  char text[4000] = "";
  int n = 0;
  for (int i = first; i <= last; i++) n += sprintf(text + n, "{\"id\":%d}\n", i);
  weir_schema *schema = rows_schema(spec);
  weir_batch *batch = rows_batch(schema, first > last ? "{}" : text);
  if (first > last) {
    weir_batch *none = NULL;
    weir_error err = {0};
    assert_int_equal(weir_batch_slice(batch, 0, 0, &none, &err), WEIR_OK);
    weir_batch_unref(batch);
    batch = none;
  }
  weir_schema_unref(schema);
  return batch;
}

/* Writes an IPC file, or stream, of batches with the ids bounds[2 * i] .. bounds[2 * i + 1]. */
static void put_batches(const char *name, bool file, const char *spec, const int *bounds,
                        int n) {
  char path[600];
  struct ArrowIpcOutputStream stream = {0};
  struct ArrowIpcWriter writer = {0};
  snprintf(path, sizeof(path), "%s/%s", source_rig_folder, name);
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  assert_int_equal(ArrowIpcOutputStreamInitFile(&stream, f, 1), NANOARROW_OK);
  assert_int_equal(ArrowIpcWriterInit(&writer, &stream), NANOARROW_OK);
  if (file) assert_int_equal(ArrowIpcWriterStartFile(&writer, NULL), NANOARROW_OK);
  for (int i = 0; i < n; i++) {
    weir_batch *batch = make_batch(spec, bounds[2 * i], bounds[2 * i + 1]);
    const struct ArrowSchema *schema = weir_schema_arrow(weir_batch_schema(batch));
    struct ArrowArrayView view;
    if (i == 0)
      assert_int_equal(ArrowIpcWriterWriteSchema(&writer, schema, NULL), NANOARROW_OK);
    assert_int_equal(ArrowArrayViewInitFromSchema(&view, schema, NULL), NANOARROW_OK);
    assert_int_equal(ArrowArrayViewSetArray(&view, weir_batch_array(batch), NULL),
                     NANOARROW_OK);
    assert_int_equal(ArrowIpcWriterWriteArrayView(&writer, &view, NULL), NANOARROW_OK);
    ArrowArrayViewReset(&view);
    weir_batch_unref(batch);
  }
  if (file) {
    assert_int_equal(ArrowIpcWriterFinalizeFile(&writer, NULL), NANOARROW_OK);
  } else {
    assert_int_equal(ArrowIpcWriterWriteArrayView(&writer, NULL, NULL), NANOARROW_OK);
  }
  ArrowIpcWriterReset(&writer);
}

#define SPEC "id: int64"
static const int some[] = {1, 4, 5, 5, 1, 0, 6, 12}; /* the third is empty */

static const char *const *settings_for(const char *pattern, const char *batch_rows) {
  static char path[600];
  static const char *settings[5];
  snprintf(path, sizeof(path), "%s/%s", source_rig_folder, pattern);
  settings[0] = "path";
  settings[1] = path;
  settings[2] = batch_rows ? "batch_rows" : NULL;
  settings[3] = batch_rows;
  return settings;
}

static char *ids(int first, int last) {
  char *text = calloc((size_t)(last - first + 2), 40);
  assert_non_null(text);
  for (int i = first, n = 0; i <= last; i++) n += sprintf(text + n, "{\"id\":%d}\n", i);
  return text;
}

static void check_rest(const char *pattern, const char *batch_rows,
                       const weir_bytes *position, int first, int last) {
  opened_source s = sources_open(OPS, settings_for(pattern, batch_rows), position);
  char *got = sources_read_text(&s, 1000), *want = ids(first, last);
  assert_string_equal(got, want);
  free(got);
  free(want);
  sources_close(&s);
}

static void check_refused(const char *pattern, const weir_bytes *position,
                          weir_status code, const char *part) {
  weir_error err = {0};
  assert_int_equal(sources_open_error(OPS, settings_for(pattern, NULL), position, &err),
                   code);
  if (strstr(err.message, part) == NULL) fail_msg("%s, not '%s'", err.message, part);
}

static void test_batches_go_through_as_they_are(void **state) {
  (void)state;
  static const int rows[] = {4, 1, 7, 4, 1, 7};
  put_batches("a.arrow", true, SPEC, some, 4);
  put_batches("b.arrows", false, SPEC, some, 4);
  opened_source s = sources_open(OPS, settings_for("*.arrow*", NULL), NULL);
  for (int i = 0; i < 6; i++) {
    weir_batch *batch = sources_read(&s);
    assert_int_equal(weir_batch_rows(batch), rows[i]);
    weir_batch_unref(batch);
  }
  assert_null(sources_read(&s));
  sources_close(&s);
}

/* Whole batches or slices of them: each position continues with the next row. */
static void test_every_position_continues(void **state) {
  (void)state;
  static const int more[] = {13, 20};
  static const char *const sizes[] = {NULL, "1", "3", "100"};
  put_batches("a.arrow", true, SPEC, some, 4);
  put_batches("b.arrow", false, SPEC, more, 1);
  for (size_t k = 0; k < 4; k++) {
    for (int batches = 0; batches < 22; batches++) {
      opened_source s = sources_open(OPS, settings_for("*.arrow", sizes[k]), NULL);
      char *first = sources_read_text(&s, batches);
      int n = 0;
      for (const char *p = first; *p; p++) n += *p == '\n';
      weir_bytes position = sources_position(&s);
      /* `batch_rows` may change between two runs */
      for (size_t j = 0; j < 4; j++)
        check_rest("*.arrow", sizes[j], &position, n + 1, 20);
      free(sources_read_text(&s, 2));
      sources_seek(&s, &position);
      char *rest = sources_read_text(&s, 1000), *want = ids(n + 1, 20);
      assert_string_equal(rest, want);
      free(rest);
      free(want);
      free(first);
      weir_bytes_release(&position);
      sources_close(&s);
    }
  }
}

static void test_files_that_change(void **state) {
  (void)state;
  put_batches("a.arrows", false, SPEC, some, 4);
  opened_source s = sources_open(OPS, settings_for("a.arrows", NULL), NULL);
  free(sources_read_text(&s, 1));
  weir_bytes position = sources_position(&s);
  sources_close(&s);
  folder_rename(source_rig_folder, "a.arrows", "z.arrows");
  check_rest("z.arrows", NULL, &position, 5, 12);
  folder_add(source_rig_folder, "z.arrows", "x");
  check_refused("z.arrows", &position, WEIR_E_BAD_DATA, "z.arrows changed its size");
  weir_bytes_release(&position);
}

static void test_files_must_agree(void **state) {
  (void)state;
  put_batches("a.arrow", true, SPEC, some, 2);
  put_batches("b.arrow", true, "id: int32", some, 2);
  opened_source s = sources_open(OPS, settings_for("*.arrow", NULL), NULL);
  weir_batch *batch = NULL;
  weir_error err = {0};
  int32_t what = 0;
  free(sources_read_text(&s, 2));
  assert_int_equal(weir_file_source_ops.read(&s.source, NULL, &what, &batch, &err),
                   WEIR_E_SCHEMA);
  assert_non_null(strstr(err.message, "b.arrow"));
  assert_null(batch);
  sources_close(&s);
  char path[600];
  snprintf(path, sizeof(path), "%s/a.arrow", source_rig_folder);
  const char *const given[] = {"path", path, "schema.id", "utf8", NULL};
  s = sources_open(OPS, given, NULL);
  assert_int_equal(weir_file_source_ops.read(&s.source, NULL, &what, &batch, &err),
                   WEIR_E_SCHEMA);
  sources_close(&s);
}

static void test_broken_files(void **state) {
  (void)state;
  put_batches("a.arrow", true, SPEC, some, 4);
  folder_put(source_rig_folder, "text.arrow",
             "this is no Arrow file at all, it is just some text");
  check_refused("text.arrow", NULL, WEIR_E_BAD_DATA, "text.arrow");
  folder_put(source_rig_folder, "empty.arrow", "");
  check_refused("empty.arrow", NULL, WEIR_E_BAD_DATA, "empty.arrow");
  folder_cut(source_rig_folder, "a.arrow", 700);
  opened_source s = {0};
  weir_error err = {0};
  weir_status status = weir_options_new(
      weir_file_source_ops.options, "in", (const char *const[]){"path"},
      (const char *const[]){settings_for("a.arrow", NULL)[1]}, 1, NULL, &s.options, &err);
  assert_int_equal(status, WEIR_OK);
  assert_int_equal(weir_file_source_ops.create(&sources_host, &s.source, &err), WEIR_OK);
  status = weir_file_source_ops.open(&s.source, NULL, s.options, NULL, &err);
  while (status == WEIR_OK) {
    weir_batch *batch = NULL;
    int32_t what = 0;
    status = weir_file_source_ops.read(&s.source, NULL, &what, &batch, &err);
    assert_true(status != WEIR_OK || what == WEIR_READ_BATCH);
    weir_batch_unref(batch);
  }
  assert_int_equal(status, WEIR_E_BAD_DATA);
  assert_int_equal(err.code, WEIR_E_BAD_DATA);
  assert_non_null(strstr(err.message, "a.arrow"));
  sources_close(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_FOLDER(test_batches_go_through_as_they_are),
      IN_FOLDER(test_every_position_continues),
      IN_FOLDER(test_files_that_change),
      IN_FOLDER(test_files_must_agree),
      IN_FOLDER(test_broken_files),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
