/* SPDX-License-Identifier: Apache-2.0 */
/* The file source with `follow`, as the runtime drives it: exactly the rows that were written. */
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

#include "../../connectors/file/source_follow.h"
#include "support/rows.h"
#include "support/source_rig.h"

#define OPS &weir_file_source_ops

static const char *const *settings_for(const char *pattern) {
  static char path[600];
  static const char *settings[] = {"path",   path,     "schema.id", "int64", "format",
                                   "ndjson", "follow", "true",      NULL};
  snprintf(path, sizeof(path), "%s/%s", source_rig_folder, pattern);
  return settings;
}

static const char *const *csv_for(const char *pattern) {
  static char path[600];
  static const char *settings[] = {"path",   path,   "schema.id", "int64",
                                   "follow", "true", NULL};
  snprintf(path, sizeof(path), "%s/%s", source_rig_folder, pattern);
  return settings;
}

/* Reads what is there by now; the ids, with a blank behind each. */
static weir_status read_on(opened_source *s, char *ids, size_t room, weir_error *err) {
  weir_status status = WEIR_OK;
  size_t n = 0;
  ids[0] = 0;
  for (int idle = 0; status == WEIR_OK && idle < 2;) {
    weir_batch *batch = NULL;
    int32_t what = 0;
    status = s->source.ops->read(&s->source, NULL, &what, &batch, err);
    if (status != WEIR_OK) break;
    assert_int_not_equal(what, WEIR_READ_END);
    if (what == WEIR_READ_NOTHING) {
      sources_now += INT64_C(10000000000);
      idle++;
      continue;
    }
    char *text = rows_text(batch);
    for (char *p = text; (p = strchr(p, ':')) != NULL; p++)
      n += (size_t)snprintf(ids + n, room - n, "%d ", atoi(p + 1));
    assert_true(n < room);
    free(text);
    weir_batch_unref(batch);
  }
  return status;
}

static void check_ids(opened_source *s, const char *want) {
  char ids[2000];
  weir_error err = {0};
  if (read_on(s, ids, sizeof(ids), &err) != WEIR_OK) fail_msg("%s", err.message);
  assert_string_equal(ids, want);
}

static void again(opened_source *s, const char *pattern) {
  weir_bytes position = sources_position(s);
  sources_close(s);
  *s = sources_open(OPS, settings_for(pattern), &position);
  weir_bytes_release(&position);
}

static void add(const char *name, int id) {
  char text[40];
  snprintf(text, sizeof(text), "{\"id\":%d}\n", id);
  folder_add(source_rig_folder, name, text);
}

static void test_lines_as_they_are_ended(void **state) {
  (void)state;
  opened_source s = sources_open(OPS, settings_for("*.log"), NULL);
  check_ids(&s, "");
  add("a.log", 1);
  folder_add(source_rig_folder, "a.log", "{\"id\":");
  folder_add(source_rig_folder, "b.log", "{\"id\"");
  check_ids(&s, "1 ");
  check_ids(&s, "");
  folder_add(source_rig_folder, "a.log", "2}\n");
  folder_add(source_rig_folder, "b.log", ":3}");
  check_ids(&s, "2 ");
  again(&s, "*.log");
  check_ids(&s, "");
  folder_add(source_rig_folder, "b.log", "\r");
  check_ids(&s, "");
  folder_add(source_rig_folder, "b.log", "\n\n");
  check_ids(&s, "3 ");
  folder_remove_file(source_rig_folder, "b.log"); /* read to its end, blanks and all */
  for (int i = 0; i < 10; i++) check_ids(&s, "");
  add("a.log", 4);
  folder_rename(source_rig_folder, "a.log", "a.log.1");
  add("a.log", 5);
  again(&s, "*.log");
  check_ids(&s, "4 5 ");
  sources_close(&s);
}

static void test_csv(void **state) {
  (void)state;
  opened_source s = sources_open(OPS, csv_for("a.csv"), NULL);
  folder_put(source_rig_folder, "a.csv", "i");
  check_ids(&s, "");
  folder_add(source_rig_folder, "a.csv", "d\n");
  check_ids(&s, "");
  folder_add(source_rig_folder, "a.csv", "1\n\"2");
  check_ids(&s, "1 ");
  folder_add(source_rig_folder, "a.csv", "\"\n");
  check_ids(&s, "2 ");
  folder_rename(source_rig_folder, "a.csv", "a-1.csv");
  folder_put(source_rig_folder, "a.csv", "id\n3\n");
  folder_add(source_rig_folder, "a-1.csv", "4\n");
  weir_bytes position = sources_position(&s);
  sources_close(&s);
  s = sources_open(OPS, csv_for("a.csv"), &position);
  weir_bytes_release(&position);
  check_ids(&s, "4 3 ");
  sources_close(&s);
}

/* A rewind goes back to what the folder is by then. */
static void test_seek(void **state) {
  (void)state;
  weir_bytes none = {0};
  add("a.log", 1);
  opened_source s = sources_open(OPS, settings_for("a.log"), NULL);
  check_ids(&s, "1 ");
  weir_bytes position = sources_position(&s);
  add("a.log", 2);
  folder_rename(source_rig_folder, "a.log", "a.log.1");
  add("a.log", 3);
  check_ids(&s, "2 3 ");
  sources_seek(&s, &position);
  check_ids(&s, "2 3 ");
  sources_seek(&s, &none);
  check_ids(&s, "3 "); /* its name is all that the beginning knows */
  weir_bytes_release(&position);
  sources_close(&s);
}

/* Cut between the scan and the read, and grown again. */
static void test_cut_under_the_eyes(void **state) {
  (void)state;
  char ids[200];
  weir_error err = {0};
  add("a.log", 1);
  opened_source s = sources_open(OPS, settings_for("a.log"), NULL);
  check_ids(&s, "1 ");
  add("a.log", 2);
  weir_bytes position = sources_position(&s);
  sources_seek(&s, &position); /* scans */
  weir_bytes_release(&position);
  folder_put(source_rig_folder, "a.log.1", "{\"id\":1}\n{\"id\":2}\n");
  folder_cut(source_rig_folder, "a.log", 0);
  add("a.log", 3);
  add("a.log", 4);
  add("a.log", 5);
  check_ids(&s, "2 3 4 5 ");
  position = sources_position(&s);
  sources_seek(&s, &position);
  weir_bytes_release(&position);
  add("a.log", 6);
  position = sources_position(&s);
  sources_seek(&s, &position);
  weir_bytes_release(&position);
  folder_cut(source_rig_folder, "a.log", 0); /* without a copy */
  weir_status status = WEIR_OK;
  for (int i = 0; status == WEIR_OK && i < 9; i++) {
    status = read_on(&s, ids, sizeof(ids), &err);
    assert_string_equal(ids, "");
  }
  assert_int_equal(status, WEIR_E_BAD_DATA);
  assert_non_null(strstr(err.message, "a.log was cut"));
  sources_close(&s);
}

static void test_folder_comes_late_and_goes(void **state) {
  (void)state;
  char path[600];
  opened_source s = sources_open(OPS, settings_for("late/*.log"), NULL);
  check_ids(&s, "");
  snprintf(path, sizeof(path), "%s/late", source_rig_folder);
  assert_int_equal(mkdir(path, 0700), 0);
  add("late/a.log", 1);
  check_ids(&s, "1 ");
  folder_rename(source_rig_folder, "late", "away");
  for (int i = 0; i < 10; i++) check_ids(&s, "");
  again(&s, "late/*.log");
  folder_rename(source_rig_folder, "away", "late");
  add("late/a.log", 2);
  check_ids(&s, "2 ");
  sources_close(&s);
}

static void test_what_comes_must_fit(void **state) {
  (void)state;
  char ids[200];
  weir_error err = {0};
  folder_put(source_rig_folder, "a.csv", "id\n1\n");
  opened_source s = sources_open(OPS, csv_for("a.{csv,ndjson}"), NULL);
  check_ids(&s, "1 ");
  add("a.ndjson", 2);
  assert_int_equal(read_on(&s, ids, sizeof(ids), &err), WEIR_E_INVALID_CONFIG);
  assert_non_null(strstr(err.message, "a.ndjson: another format"));
  sources_close(&s);
  /* what was read, compressed by its rotation */
  s = sources_open(OPS, settings_for("b.log*"), NULL);
  add("b.log", 1);
  check_ids(&s, "1 ");
  add("b.log.1.gz", 1);
  assert_int_equal(read_on(&s, ids, sizeof(ids), &err), WEIR_E_INVALID_CONFIG);
  assert_non_null(strstr(err.message, "b.log.1.gz: one of what is followed is"));
  sources_close(&s);
}

/* The position forgets files that are done and gone for long. */
static void test_thousands_come_and_go(void **state) {
  (void)state;
  char name[32];
  size_t sizes[3] = {0};
  opened_source s = sources_open(OPS, settings_for("*.log"), NULL);
  char *ids = malloc(200000);
  weir_error err = {0};
  assert_non_null(ids);
  folder_put(source_rig_folder, "stays.log",
             "\n"); /* an empty source_rig_folder would not be believed */
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < 5000; i++) {
      snprintf(name, sizeof(name), "%d-%d.log", round, i);
      add(name, i);
    }
    assert_int_equal(read_on(&s, ids, 200000, &err), WEIR_OK);
    int n = 0;
    for (const char *p = ids; *p; p++) n += *p == ' ';
    assert_int_equal(n, 5000);
    for (int i = 0; i < 5000; i++) {
      snprintf(name, sizeof(name), "%d-%d.log", round, i);
      folder_remove_file(source_rig_folder, name);
    }
    for (int i = 0; i < 5; i++) check_ids(&s, "");
    weir_bytes position = sources_position(&s);
    sizes[round] = position.size;
    weir_bytes_release(&position);
  }
  assert_true(sizes[2] < sizes[0] * 5 / 2);
  free(ids);
  sources_close(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_FOLDER(test_lines_as_they_are_ended),
      IN_FOLDER(test_csv),
      IN_FOLDER(test_seek),
      IN_FOLDER(test_cut_under_the_eyes),
      IN_FOLDER(test_folder_comes_late_and_goes),
      IN_FOLDER(test_what_comes_must_fit),
      IN_FOLDER(test_thousands_come_and_go),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
