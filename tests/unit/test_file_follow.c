/* SPDX-License-Identifier: Apache-2.0 */
/* Scans of a followed folder: what became of files that were renamed, cut, copied, replaced and removed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../connectors/file/source_follow.h"
#include "support/folder.h"
#include "support/sources.h"

static char folder[FOLDER_PATH];
static weir_options *options;
static file_follow follow;
static file_list files, gone;

static void set_paths(const char *pattern) {
  char path[600];
  const char *names[] = {"path", "follow"}, *values[] = {path, "true"};
  weir_error err = {0};
  snprintf(path, sizeof(path), "%s/%s", folder, pattern);
  weir_options_free(options);
  options = NULL;
  assert_int_equal(weir_options_new(weir_file_source_ops.options, "source in", names,
                                    values, 2, NULL, &options, &err),
                   WEIR_OK);
  follow =
      (file_follow){.options = options, .host = &sources_host, .compression = "auto"};
}

static int begin(void **state) {
  (void)state;
  return folder_make(folder);
}

static int end(void **state) {
  (void)state;
  file_list_done(&files);
  file_list_done(&gone);
  weir_options_free(options);
  options = NULL;
  return folder_remove(folder);
}

static weir_status try_scan(weir_error *err) {
  file_list new_files = {0}, new_gone = {0};
  weir_status status =
      file_follow_scan(&follow, &files, &gone, &new_files, &new_gone, err);
  if (status != WEIR_OK) return status;
  file_list_done(&files);
  file_list_done(&gone);
  files = new_files;
  gone = new_gone;
  return status;
}

static void scan(void) {
  weir_error err = {0};
  if (try_scan(&err) != WEIR_OK) fail_msg("%s", err.message);
}

/* As often as something must be missed before it is gone. */
static void scan_long(void) {
  for (int i = 0; i < FILE_ABSENT_MAX + 1; i++) scan();
}

static void check_refused(const char *part) {
  weir_error err = {0};
  for (int i = 0; i < FILE_ABSENT_MAX; i++)
    if (try_scan(&err) != WEIR_OK) break;
  assert_int_equal(err.code, WEIR_E_BAD_DATA);
  assert_int_equal(err.flags, WEIR_ERR_BAD_DATA);
  if (strstr(err.message, part) == NULL) fail_msg("%s, not '%s'", err.message, part);
}

static file_item *find(const char *name) {
  char path[600];
  snprintf(path, sizeof(path), "%s/%s", folder, name);
  for (size_t i = 0; i < files.n; i++)
    if (files.items[i].path != NULL && strcmp(files.items[i].path, path) == 0)
      return &files.items[i];
  return NULL;
}

static file_item *get(const char *name) {
  file_item *item = find(name);
  if (item == NULL) fail_msg("no %s", name);
  return item;
}

/* Reads a file that has more, up to `size` or, when that is 0, up to what was listed. */
static void deliver(const char *name, uint64_t size) {
  file_item *item = get(name);
  weir_error err = {0};
  int fd = -1;
  if (!file_follow_has_more(item)) fail_msg("%s has no more", name);
  item->progress.covered = size ? size : item->size;
  assert_int_equal(file_item_open(item, &fd, &err), WEIR_OK);
  assert_int_equal(file_window_hash(fd, item->path, item->progress.covered,
                                    &item->progress.hash, &err),
                   WEIR_OK);
  close(fd);
  item->progress.flags = item->progress.covered == item->size ? FILE_DONE : 0;
}

/* Goes on from what a position keeps, as after a kill. */
static void restart(void) {
  weir_bytes position = {0};
  weir_error err = {0};
  assert_int_equal(file_position_write(&files, &gone, &position, &err), WEIR_OK);
  file_list_done(&files);
  file_list_done(&gone);
  assert_int_equal(file_position_read(&position, &files, &err), WEIR_OK);
  weir_bytes_release(&position);
}

static void check_covered(const char *name, uint64_t covered) {
  if (get(name)->progress.covered != covered) {
    fail_msg("%s: %llu bytes, not %llu", name,
             (unsigned long long)get(name)->progress.covered,
             (unsigned long long)covered);
  }
}

/* What has more to read, and from where: "name@covered" in turn. */
static void check_more(const char *want) {
  char got[600] = "";
  size_t n = 0;
  for (size_t i = 0; i < files.n; i++) {
    const file_item *item = &files.items[i];
    if (!file_follow_has_more(item)) continue;
    n += (size_t)snprintf(got + n, sizeof(got) - n, "%s%s@%llu", n ? " " : "",
                          strrchr(item->path, '/') + 1,
                          (unsigned long long)item->progress.covered);
  }
  assert_string_equal(got, want);
}

/* Until file systems tell what is made now from what was made before: their clock moves every few
 * milliseconds. */
static void tick(void) {
  struct timespec before = {0}, now = {0};
  clock_gettime(CLOCK_REALTIME_COARSE, &before);
  do clock_gettime(CLOCK_REALTIME_COARSE, &now);
  while (now.tv_sec == before.tv_sec && now.tv_nsec == before.tv_nsec);
}

static void copy(const char *from, const char *to) {
  tick();
  char path[600], text[2000] = "";
  snprintf(path, sizeof(path), "%s/%s", folder, from);
  FILE *f = fopen(path, "r");
  assert_non_null(f);
  text[fread(text, 1, sizeof(text) - 1, f)] = 0;
  fclose(f);
  folder_put(folder, to, text);
}

static void put(const char *name, const char *text) {
  folder_put(folder, name, text);
}

static void add(const char *name, const char *text) {
  folder_add(folder, name, text);
}

static void cut(const char *name) {
  folder_cut(folder, name, 0);
}

/* app.log with 6 bytes, of which the first 3 are read. */
static void begin_log(const char *pattern) {
  set_paths(pattern);
  put("app.log", "a1\na2\n");
  scan();
  check_more("app.log@0");
  deliver("app.log", 3);
}

static void test_rotated_names(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"/x/app.log.1", "/x/app.log"},
      {"/x/app-2.log", "/x/app /x/app.log"},
      {"/x/app-2-3.log", "/x/app /x/app.log /x/app-2 /x/app-2.log"},
      {"/x.1/app.log", ""},
      {"/x/.1", ""},
      {"a_1", "a"},
      {"app-x.log", ""},
      {"app.log.2.gz", "app.log app.log.gz"},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    char name[100], all[300] = "";
    for (size_t place = 0; file_rotated_from(cases[i][0], &place, name, sizeof(name));) {
      if (all[0]) strcat(all, " ");
      strcat(all, name);
    }
    assert_string_equal(all, cases[i][1]);
  }
}

static void test_growing(void **state) {
  (void)state;
  begin_log("*.log");
  deliver("app.log", 0);
  scan();
  check_more("");
  restart();
  scan();
  check_more("");
  add("app.log", "a3\n");
  put("new.log", "n\n");
  scan();
  check_more("app.log@6 new.log@0");
  restart();
  scan();
  check_more("app.log@6 new.log@0");
}

static void test_renamed(void **state) {
  (void)state;
  for (int kill = 0; kill < 2; kill++) {
    begin_log("app.log");
    if (kill) restart();
    add("app.log", "a3\n");
    folder_rename(folder, "app.log", "app.log.1");
    put("app.log", "b1\n");
    scan();
    check_more("app.log.1@3 app.log@0");
    deliver("app.log.1", 0);
    if (kill) restart();
    folder_rename(folder, "app.log.1", "app.log.2");
    folder_rename(folder, "app.log", "app.log.1");
    scan();
    check_more("app.log.1@0"); /* after a kill known by its age alone */
    check_covered("app.log.2", 9);
    end(NULL);
    begin(NULL);
  }
}

/* What was there and not read yet is followed as well. */
static void test_renamed_unread(void **state) {
  (void)state;
  set_paths("app.log");
  put("app.log", "a1\n");
  scan();
  restart();
  folder_rename(folder, "app.log", "app.log.1");
  scan();
  check_more("app.log.1@0");
  /* cut, so that it begins again and is older than the copy of what it held */
  deliver("app.log.1", 0);
  folder_rename(folder, "app.log.1", "app.log");
  scan();
  copy("app.log", "app.log.2");
  cut("app.log");
  add("app.log", "b1\n");
  scan();
  restart();
  folder_rename(folder, "app.log", "app.log.1");
  scan();
  check_more("app.log.1@0");
}

/* Files that came and went under the name while nobody looked. */
static void test_rotated_unseen(void **state) {
  (void)state;
  put("app.log.9", "older\n");
  begin_log("app.log");
  restart();
  folder_rename(folder, "app.log", "app.log.3");
  put("app.log.2", "b1\n");
  put("app.log.1", "c1\n");
  put("app.log", "d1\n");
  scan();
  check_more("app.log.3@3 app.log@0 app.log.1@0 app.log.2@0");
  scan();
  check_more("app.log.3@3 app.log@0 app.log.1@0 app.log.2@0");
}

static void test_copy_and_cut(void **state) {
  (void)state;
  for (int i = 0; i < 8; i++) {
    bool named = i & 1, kill = i & 2, seen = i & 4;
    begin_log(named ? "app.log*" : "app.log");
    copy("app.log", "app.log.1");
    if (seen) {
      scan();
      check_more("app.log@3");
      check_covered("app.log.1", 6);
    }
    if (kill) restart();
    cut("app.log");
    add("app.log", "b1\n");
    scan();
    check_more("app.log.1@3 app.log@0");
    deliver("app.log.1", 0);
    deliver("app.log", 0);
    if (kill) restart();
    scan_long();
    check_more("");
    /* the next time round */
    folder_rename(folder, "app.log.1", "app.log.2");
    add("app.log", "b2\n");
    copy("app.log", "app.log.1");
    cut("app.log");
    add("app.log", "c1\nc2\nc3\nc4\n");
    scan();
    check_more("app.log.1@3 app.log@0");
    end(NULL);
    begin(NULL);
  }
}

/* A copy is held as long as the file is as it was, however it grows, and let go when it differs. */
static void test_copy_in_the_making(void **state) {
  (void)state;
  begin_log("app.log*");
  put("app.log.1", "a1");
  scan_long();
  check_more("app.log@3");
  deliver("app.log", 0);
  restart();
  add("app.log.1", "\na2\n");
  scan_long();
  check_more("");
  add("app.log.1", "x\n"); /* a file of its own */
  scan();
  check_more("app.log.1@0");
}

/* A line that was read, and written after the copy was made, is in no copy. */
static void test_copy_ends_before(void **state) {
  (void)state;
  for (int kill = 0; kill < 2; kill++) {
    begin_log("app.log*");
    copy("app.log", "app.log.1");
    add("app.log", "a3\n");
    scan();
    deliver("app.log", 0);
    if (kill) restart();
    cut("app.log");
    scan();
    check_more("");
    check_covered("app.log.1", 6);
    check_covered("app.log", 0);
    end(NULL);
    begin(NULL);
  }
}

static void test_copied_and_removed(void **state) {
  (void)state;
  begin_log("app.log*");
  copy("app.log", "app.log.1");
  scan();
  folder_remove_file(folder, "app.log");
  scan();
  check_more(""); /* it may have been missed */
  scan_long();
  check_more("app.log.1@3");
}

/* Two rotations by copy while nobody looked. */
static void test_cut_twice(void **state) {
  (void)state;
  begin_log("app.log");
  restart();
  copy("app.log", "app.log-20261201");
  cut("app.log");
  add("app.log", "b1\n");
  copy("app.log", "app.log-20261202");
  cut("app.log");
  add("app.log", "c1\n");
  scan();
  check_more("app.log-20261201@3 app.log@0 app.log-20261202@0");
}

static void test_copy_over_the_last(void **state) {
  (void)state;
  begin_log("app.log");
  for (int i = 0; i < 3; i++) {
    if (i) add("app.log", i == 1 ? "b1\n" : "c1\nc2\nc3\n");
    copy("app.log", "app.log.1");
    cut("app.log");
    scan();
    if (i) check_more(""); /* app.log may have been cut, and renamed */
    if (i == 2) restart();
    if (i) scan_long();
    check_more(i ? "app.log.1@0" : "app.log.1@3");
    deliver("app.log.1", 0);
    scan();
    check_more("");
  }
}

/* The same lines once more, copied over their copy: nothing shows that they came again. */
static void test_same_bytes_over_the_last(void **state) {
  (void)state;
  for (int part = 0; part < 2; part++) {
    begin_log("app.log");
    copy("app.log", "app.log.1");
    cut("app.log");
    scan();
    check_more("app.log.1@3");
    deliver("app.log.1", 0);
    add("app.log", "a1\na2\n");
    scan();
    check_more("app.log@0");
    if (part) deliver("app.log", 3);
    copy("app.log", "app.log.1");
    cut("app.log");
    if (part) {
      check_refused("app.log was cut, and no copy");
    } else {
      scan_long();
      check_more("");
    }
    end(NULL);
    begin(NULL);
  }
}

/* A copy that was there before the first start is a rotation when the pattern names it. */
static void test_copy_before_the_first_start(void **state) {
  (void)state;
  for (int named = 0; named < 2; named++) {
    put("app.log.1", "a1\na2\n");
    put("app.log", "b1\n");
    set_paths(named ? "app.log*" : "app.log");
    for (int i = 0; i < 3; i++) {
      scan_long();
      check_more(named ? "app.log@0 app.log.1@0" : "app.log@0");
      restart();
    }
    end(NULL);
    begin(NULL);
  }
}

/* A copy stays one while its file was cut, and cannot be found, and when that was renamed as it was. */
static void test_copy_stays_one(void **state) {
  (void)state;
  begin_log("app.log*");
  copy("app.log", "app.log.1");
  scan();
  deliver("app.log", 0);
  folder_rename(folder, "app.log", "hidden");
  scan();
  check_more("");
  folder_rename(folder, "hidden", "app.log.2");
  put("app.log", "b1\n");
  scan_long();
  check_more("app.log@0");
  restart();
  scan_long();
  check_more("app.log@0");
}

/* What was cut and renamed is no rotation that was overwritten: nothing of it may begin again in silence. */
static void test_cut_and_renamed(void **state) {
  (void)state;
  for (int kill = 0; kill < 2; kill++) {
    begin_log("app.log*");
    deliver("app.log", 0);
    cut("app.log");
    if (kill) restart();
    folder_rename(folder, "app.log", "app.log.1");
    put("app.log", "b1\n");
    check_refused("app.log.1 was cut, and no copy");
    end(NULL);
    begin(NULL);
  }
}

/* The log that a copy was made of came after the folder had been read. */
static void test_copy_of_what_comes(void **state) {
  (void)state;
  set_paths("app.log.*");
  put("app.log", "a1\n"); /* nobody's: the pattern does not name it */
  put("app.log.1", "a1\n");
  scan();
  check_more("");
  scan();
  check_more("app.log.1@0");
}

/* As when the folder is read while names move: the copy is seen only after the file that was cut has been
 * rotated, too. */
static void test_copy_seen_after_another_rotation(void **state) {
  (void)state;
  begin_log("app.log");
  deliver("app.log", 0);
  copy("app.log", "hidden");
  cut("app.log");
  folder_rename(folder, "app.log", "app.log.1");
  put("app.log", "b1\n");
  for (int i = 0; i < 2; i++) {
    scan();
    check_more("app.log@0");
    restart();
  }
  folder_rename(folder, "hidden", "app.log.2");
  add("app.log.2", "a3\n");
  scan();
  check_more("app.log.2@6 app.log@0");
}

static void test_cut_without_a_copy(void **state) {
  (void)state;
  begin_log("app.log");
  cut("app.log");
  check_refused("app.log was cut, and no copy");
  /* the copy comes back */
  put("app.log.1", "a1\na2\n");
  scan();
  check_more("app.log.1@3");
  cut("app.log.1");
  follow.skip_losses = true;
  scan_long();
  add("app.log", "b1\n");
  scan();
  check_more("app.log@0");
}

static void test_removed(void **state) {
  (void)state;
  begin_log("*.log");
  folder_rename(folder, "app.log", "elsewhere");
  put("app.log", "b1\n");
  scan();
  check_more("elsewhere@3 app.log@0");
  folder_remove_file(folder, "elsewhere");
  check_refused("elsewhere is gone, and was not read to its end");
  follow.skip_losses = true;
  scan_long();
  check_more("app.log@0");
  deliver("app.log", 0);
  folder_remove_file(folder, "app.log");
  scan();
  assert_int_equal(gone.n, 0);
  scan_long();
  assert_int_equal(files.n, 0);
  assert_int_equal(gone.n, 1);
  put("app.log", "b1\nb2\n"); /* restored */
  scan();
  check_more("app.log@3");
  assert_int_equal(gone.n, 0);
}

static void test_saved_by_an_editor(void **state) {
  (void)state;
  begin_log("*.log");
  put("app.log.tmp", "a1\na2\na3\n");
  folder_rename(folder, "app.log.tmp", "app.log");
  scan();
  check_more("");
  scan_long();
  check_more("app.log@3");
  put("app.log.tmp", "x1\na2\na3\n");
  folder_rename(folder, "app.log.tmp", "app.log");
  check_refused("app.log is gone, and was not read");
}

/* A removed file's inode is given to the next one. */
/* A position made on another machine, or before the file system was mounted again: device and inodes are
 * others. Files are found by name and bytes, also one that was rotated meanwhile. */
static void test_another_device(void **state) {
  (void)state;
  begin_log("app.log");
  for (size_t i = 0; i < files.n; i++) {
    files.items[i].device += 5;
    files.items[i].inode += 1000000;
  }
  restart();
  scan_long();
  check_more("app.log@3");
  deliver("app.log", 3);
  for (size_t i = 0; i < files.n; i++) files.items[i].device += 5;
  folder_rename(folder, "app.log", "app.log.1");
  put("app.log", "b1\n");
  restart();
  scan_long();
  check_more("app.log.1@3 app.log@0");
}

static void test_inode_used_again(void **state) {
  (void)state;
  begin_log("*.log");
  deliver("app.log", 0);
  uint64_t inode = get("app.log")->inode;
  folder_remove_file(folder, "app.log");
  put("b.log", "b1\nb2\nb3\n");
  scan();
  check_more("b.log@0");
  if (get("b.log")->inode != inode) skip();
}

static void test_hard_links(void **state) {
  (void)state;
  begin_log("app.log*");
  folder_link(folder, "app.log", "app.log.1");
  scan();
  check_more("app.log@3");
  folder_remove_file(folder, "app.log");
  put("app.log", "b1\n");
  scan();
  check_more("app.log.1@3 app.log@0");
}

/* An empty folder may be one that is not mounted: its files are not forgotten. */
static void test_many_vanish_and_come_back(void **state) {
  (void)state;
  char name[32], in[600], away[600];
  enum { N = 10500 };
  set_paths("in/*.log");
  snprintf(in, sizeof(in), "%s/in", folder);
  snprintf(away, sizeof(away), "%s/away", folder);
  assert_int_equal(mkdir(in, 0700), 0);
  for (int i = 0; i < N; i++) {
    snprintf(name, sizeof(name), "in/%d.log", i);
    put(name, "x\n");
  }
  scan();
  for (size_t i = 0; i < files.n; i++) {
    files.items[i].progress = (file_progress){
        .flags = FILE_DONE, .covered = 2, .hash = file_hash("x\n", 2), .count = 1};
  }
  assert_int_equal(rename(in, away), 0);
  assert_int_equal(mkdir(in, 0700), 0);
  scan_long();
  scan();
  assert_int_equal(gone.n, N);
  restart();
  scan_long();
  assert_int_equal(rmdir(in), 0);
  assert_int_equal(rename(away, in), 0);
  scan();
  assert_int_equal(files.n, N);
  check_more("");
}

/* A few files with the same beginning: only a rotation's name makes a copy of one. */
static void test_alike(void **state) {
  (void)state;
  set_paths("*");
  put("part-1.csv", "id\n");
  put("part-2.csv", "id\n");
  put("part.tsv", "id\n");
  scan();
  check_more("part-1.csv@0 part-2.csv@0 part.tsv@0");
}

/* Same size, same bytes at both ends, and a change that no time stamp shows. */
static void test_cut_and_grown_at_once(void **state) {
  (void)state;
  begin_log("app.log*");
  deliver("app.log", 0);
  scan();
  for (int i = 0; i < 20; i++) {
    char text[8] = "a1\nx0\n", name[20];
    text[4] = (char)('a' + i);
    snprintf(name, sizeof(name), "app.log.%d", i);
    copy("app.log", name);
    cut("app.log");
    add("app.log", text);
    scan();
    check_more("app.log@0");
    deliver("app.log", 0);
    scan();
  }
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_rotated_names),
      IN_FOLDER(test_growing),
      IN_FOLDER(test_renamed),
      IN_FOLDER(test_renamed_unread),
      IN_FOLDER(test_rotated_unseen),
      IN_FOLDER(test_copy_and_cut),
      IN_FOLDER(test_copy_in_the_making),
      IN_FOLDER(test_copy_ends_before),
      IN_FOLDER(test_copied_and_removed),
      IN_FOLDER(test_cut_twice),
      IN_FOLDER(test_copy_over_the_last),
      IN_FOLDER(test_same_bytes_over_the_last),
      IN_FOLDER(test_copy_before_the_first_start),
      IN_FOLDER(test_copy_stays_one),
      IN_FOLDER(test_cut_and_renamed),
      IN_FOLDER(test_copy_of_what_comes),
      IN_FOLDER(test_copy_seen_after_another_rotation),
      IN_FOLDER(test_cut_without_a_copy),
      IN_FOLDER(test_removed),
      IN_FOLDER(test_saved_by_an_editor),
      IN_FOLDER(test_another_device),
      IN_FOLDER(test_inode_used_again),
      IN_FOLDER(test_hard_links),
      IN_FOLDER(test_many_vanish_and_come_back),
      IN_FOLDER(test_alike),
      IN_FOLDER(test_cut_and_grown_at_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
