/* SPDX-License-Identifier: Apache-2.0 */
/* ctest: threads */
/* The verbs of <weir/object.h> on a folder. */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "object/object.h"
#include "support/folder.h"

enum { MIB = 1 << 20, PART = 5 * MIB };

static char root[FOLDER_PATH];
static weir_object_store *store;

static int make_store(void **state) {
  (void)state;
  char location[FOLDER_PATH + 8];
  if (folder_make(root)) return -1;
  snprintf(location, sizeof(location), "%s/lake/", root);
  return weir_object_store_open(location, NULL, &store, NULL);
}

static int drop_store(void **state) {
  (void)state;
  weir_object_store_free(store);
  return folder_remove(root);
}

static weir_status put(const char *key, const char *text, uint32_t flags,
                       weir_object_info *out) {
  weir_object_put_options options = {.flags = flags};
  return weir_object_put(store, NULL, key, text, strlen(text), &options, out, NULL);
}

static void assert_content(const char *key, const char *text) {
  weir_bytes bytes = {0};
  weir_object_info info = {0};
  weir_error err = {0};
  if (weir_object_get(store, NULL, key, 0, 1000, &bytes, &info, &err)) {
    fail_msg("%s", err.message);
  }
  assert_int_equal(info.size, strlen(text));
  assert_int_equal(bytes.size, strlen(text));
  assert_memory_equal(bytes.data, text, bytes.size);
  weir_bytes_release(&bytes);
}

/* Names of a folder below root, hidden ones included. */
static size_t entries(const char *folder) {
  char path[FOLDER_PATH + 100];
  size_t n = 0;
  snprintf(path, sizeof(path), "%s/%s", root, folder);
  DIR *dir = opendir(path);
  assert_non_null(dir);
  while (readdir(dir)) n++;
  closedir(dir);
  return n - 2;
}

static void test_put_and_get(void **state) {
  (void)state;
  weir_object_info info = {0}, again = {0};
  assert_int_equal(put("a/b/c.parquet", "first", 0, &info), WEIR_OK);
  assert_int_equal(info.size, 5);
  assert_true(*info.etag);
  assert_content("a/b/c.parquet", "first");
  assert_int_equal(weir_object_head(store, NULL, "a/b/c.parquet", &again, NULL), WEIR_OK);
  assert_string_equal(again.etag, info.etag);
  assert_true(again.modified_ns > 0);
  assert_int_equal(put("a/b/c.parquet", "2nd", 0, &again), WEIR_OK);
  assert_string_not_equal(again.etag, info.etag);
  assert_content("a/b/c.parquet", "2nd");
  assert_int_equal(entries("lake/a/b"), 1); /* no temporary file stays */
  assert_int_equal(put("empty", "", WEIR_OBJECT_IF_ABSENT, NULL), WEIR_OK);
  assert_content("empty", "");
}

static void test_ranges(void **state) {
  (void)state;
  weir_object_info info = {0};
  const struct {
    uint64_t offset;
    size_t max;
    const char *text;
  } cases[] = {{0, 3, "012"}, {7, 2, "78"}, {7, 100, "789"}, {10, 5, ""}, {1000, 5, ""}};
  assert_int_equal(put("digits", "0123456789", 0, NULL), WEIR_OK);
  for (size_t i = 0; i < BASE_COUNT(cases); i++) {
    weir_bytes bytes = {0};
    assert_int_equal(weir_object_get(store, NULL, "digits", cases[i].offset, cases[i].max,
                                     &bytes, &info, NULL),
                     WEIR_OK);
    assert_int_equal(info.size, 10);
    assert_int_equal(bytes.size, strlen(cases[i].text));
    assert_memory_equal(bytes.data, cases[i].text, bytes.size);
    weir_bytes_release(&bytes);
  }
  weir_bytes none = {0};
  assert_int_equal(weir_object_get(store, NULL, "digits", 0, 0, &none, &info, NULL),
                   WEIR_E_INVALID_STATE);
  assert_int_equal(weir_object_get(store, NULL, "digit", 0, 9, &none, &info, NULL),
                   WEIR_E_NOT_FOUND);
  assert_int_equal(weir_object_get(store, NULL, "digits/x", 0, 9, &none, &info, NULL),
                   WEIR_E_NOT_FOUND);
  assert_null(none.release);
}

static void test_if_absent(void **state) {
  (void)state;
  weir_error err = {0};
  weir_object_put_options options = {.flags = WEIR_OBJECT_IF_ABSENT};
  weir_object_info info = {.size = 99};
  assert_int_equal(put("log/1.json", "mine", WEIR_OBJECT_IF_ABSENT, NULL), WEIR_OK);
  assert_int_equal(
      weir_object_put(store, NULL, "log/1.json", "his", 3, &options, &info, &err),
      WEIR_E_EXISTS);
  assert_int_equal(err.flags, 0);
  assert_int_equal(info.size, 99);
  assert_content("log/1.json", "mine");
  assert_int_equal(entries("lake/log"), 1);
}

static void test_if_match(void **state) {
  (void)state;
  weir_object_info first = {0}, second = {0};
  assert_int_equal(put("head", "one", 0, &first), WEIR_OK);
  weir_object_put_options options = {.if_match = first.etag};
  assert_int_equal(
      weir_object_put(store, NULL, "head", "two", 3, &options, &second, NULL), WEIR_OK);
  assert_int_equal(weir_object_put(store, NULL, "head", "oops", 4, &options, NULL, NULL),
                   WEIR_E_CONFLICT);
  assert_content("head", "two");
  assert_int_equal(weir_object_put(store, NULL, "none", "oops", 4, &options, NULL, NULL),
                   WEIR_E_CONFLICT);
  options.flags = WEIR_OBJECT_IF_ABSENT;
  assert_int_equal(weir_object_put(store, NULL, "none", "oops", 4, &options, NULL, NULL),
                   WEIR_E_INVALID_STATE);
  assert_int_equal(entries("lake"), 1);
}

static void test_keys(void **state) {
  (void)state;
  char longest[WEIR_OBJECT_MAX_KEY + 2];
  memset(longest, 'x', sizeof(longest));
  longest[sizeof(longest) - 1] = 0;
  const char *bad[] = {"",
                       "/",
                       "/a",
                       "a/",
                       "a//b",
                       ".",
                       "..",
                       "../a",
                       "a/./b",
                       "a/..",
                       "\xff",
                       longest,
                       "a/.x.0123456789abcdef.tmp"};
  for (size_t i = 0; i < BASE_COUNT(bad); i++) {
    weir_error err = {0};
    assert_int_equal(weir_object_put(store, NULL, bad[i], "x", 1, NULL, NULL, &err),
                     WEIR_E_INVALID_CONFIG);
    assert_non_null(strstr(err.message, "cannot be an object's key"));
  }
  assert_int_equal(access(root, F_OK), 0);
  assert_int_equal(entries(""), 0);
  char name[] = "every/_.bin";
  for (int c = 1; c < 128; c++) {
    if (c == '/') continue;
    name[6] = (char)c;
    assert_int_equal(put(name, name, WEIR_OBJECT_IF_ABSENT, NULL), WEIR_OK);
    assert_content(name, name);
  }
  assert_int_equal(entries("lake/every"), 126);
}

/* Gathers keys, each with a line feed behind it. */
typedef struct told {
  char text[1000];
  size_t stop; /* after so many */
  size_t n;
} told;

static weir_status tell(void *ctx, const char *key, const weir_object_info *info,
                        weir_error *err) {
  (void)info;
  (void)err;
  told *t = ctx;
  strcat(strcat(t->text, key), "\n");
  return ++t->n == t->stop ? WEIR_E_ENDED : WEIR_OK;
}

static void assert_list(const char *prefix, const char *after, uint32_t flags,
                        const char *expected) {
  told t = {0};
  assert_int_equal(weir_object_list(store, NULL, prefix, after, flags, tell, &t, NULL),
                   WEIR_OK);
  assert_string_equal(t.text, expected);
}

static void test_list(void **state) {
  (void)state;
  assert_list("", NULL, 0, ""); /* before the folder is there */
  const char *keys[] = {"a/b/1", "a.b", "a/b/2", "a/c", "b", "a0", "log/00", "log/01"};
  for (size_t i = 0; i < BASE_COUNT(keys); i++) {
    assert_int_equal(put(keys[i], keys[i], 0, NULL), WEIR_OK);
  }
  folder_put(root, "lake/a/.c.0123456789abcdef.tmp", "temporary, so no object");
  assert_list("", NULL, 0, "a.b\na/b/1\na/b/2\na/c\na0\nb\nlog/00\nlog/01\n");
  assert_list("a", NULL, 0, "a.b\na/b/1\na/b/2\na/c\na0\n");
  assert_list("a/", NULL, 0, "a/b/1\na/b/2\na/c\n");
  assert_list("a/b/2", NULL, 0, "a/b/2\n");
  assert_list("a/x/", NULL, 0, "");
  assert_list("a.b/", NULL, 0, "");
  assert_list("", "a/b/1", 0, "a/b/2\na/c\na0\nb\nlog/00\nlog/01\n");
  assert_list("log/", "log/00", 0, "log/01\n");
  assert_list("", "log", 0, "log/00\nlog/01\n");
  assert_list("", NULL, WEIR_OBJECT_SHALLOW, "a.b\na/\na0\nb\nlog/\n");
  assert_list("a/", NULL, WEIR_OBJECT_SHALLOW, "a/b/\na/c\n");
  assert_list("a", "a/", WEIR_OBJECT_SHALLOW, "a0\n");
  told t = {.stop = 2};
  assert_int_equal(weir_object_list(store, NULL, "", NULL, 0, tell, &t, NULL), WEIR_OK);
  assert_string_equal(t.text, "a.b\na/b/1\n");
}

static weir_status refuse(void *ctx, const char *key, const weir_object_info *info,
                          weir_error *err) {
  (void)ctx;
  (void)info;
  return weir_error_set(err, WEIR_E_BAD_DATA, 0, "not '%s'", key);
}

static void test_list_hands_on(void **state) {
  (void)state;
  weir_error err = {0};
  assert_int_equal(put("x/y", "", 0, NULL), WEIR_OK);
  assert_int_equal(weir_object_list(store, NULL, "", NULL, 0, refuse, NULL, &err),
                   WEIR_E_BAD_DATA);
  assert_string_equal(err.message, "not 'x/y'");
}

static void test_remove(void **state) {
  (void)state;
  const char *keys[] = {"a/1", "a/none", "none/2", "b", "a"};
  assert_int_equal(put("a/1", "1", 0, NULL), WEIR_OK);
  assert_int_equal(put("b", "2", 0, NULL), WEIR_OK);
  assert_int_equal(put("c", "3", 0, NULL), WEIR_OK);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(weir_object_remove(store, NULL, keys, 5, NULL), WEIR_OK);
    assert_list("", NULL, 0, "c\n");
  }
}

static void test_folder_taken_away(void **state) {
  (void)state;
  char folder[FOLDER_PATH + 20];
  snprintf(folder, sizeof(folder), "%s/lake/day", root);
  assert_int_equal(put("day/1", "1", 0, NULL), WEIR_OK);
  folder_remove_file(root, "lake/day/1");
  assert_int_equal(rmdir(folder), 0);
  assert_int_equal(put("day/2", "2", 0, NULL), WEIR_OK);
  assert_content("day/2", "2");
}

static weir_status tell_upload(void *ctx, const char *key, const char *id,
                               int64_t initiated_ns, weir_error *err) {
  (void)err;
  assert_true(initiated_ns > 0);
  char *text = ctx;
  strcat(strcat(strcat(strcat(text, key), " "), id), "\n");
  return WEIR_OK;
}

static void test_upload(void **state) {
  (void)state;
  weir_error err = {0};
  uint8_t *data = base_calloc(1, 2 * PART, NULL);
  assert_int_equal(base_random(data, 2 * PART, NULL), WEIR_OK);
  weir_object_upload upload = {.part_size = PART, .owner = "o"}, other = upload;
  weir_object_part parts[2] = {{0}};
  assert_int_equal(weir_object_upload_create(store, NULL, "x/big", &upload, NULL),
                   WEIR_OK);
  assert_int_equal(weir_object_upload_create(store, NULL, "x/big", &other, NULL),
                   WEIR_OK);
  assert_string_not_equal(upload.id, other.id);
  /* In any order; the last part may be short. */
  assert_int_equal(weir_object_upload_part(store, NULL, "x/big", &upload, 2, data + PART,
                                           7, &parts[1], NULL),
                   WEIR_OK);
  assert_int_equal(weir_object_upload_part(store, NULL, "x/big", &upload, 1, data, PART,
                                           &parts[0], NULL),
                   WEIR_OK);
  assert_list("", NULL, 0, "");
  char text[300] = "", expected[300];
  assert_int_equal(weir_object_uploads_list(store, NULL, "x/b", tell_upload, text, NULL),
                   WEIR_OK);

  snprintf(expected, sizeof(expected), "x/big %.16s\n", upload.id);
  assert_non_null(strstr(text, expected));
  assert_int_equal(strlen(text), 2 * strlen(expected));
  for (int i = 0; i < 2; i++) { /* the second time it is done already */
    weir_object_info info = {0};
    if (weir_object_upload_complete(store, NULL, "x/big", &upload, parts, 2,
                                    WEIR_OBJECT_IF_ABSENT, &info, &err)) {
      fail_msg("%s", err.message);
    }
    assert_int_equal(info.size, PART + 7);
  }
  weir_bytes bytes = {0};
  assert_int_equal(weir_object_get(store, NULL, "x/big", 0, 2 * PART, &bytes, NULL, NULL),
                   WEIR_OK);
  assert_int_equal(bytes.size, PART + 7);
  assert_memory_equal(bytes.data, data, PART + 7);
  weir_bytes_release(&bytes);
  /* Another upload to that key loses, and what it left can be given up, twice. */
  assert_int_equal(
      weir_object_upload_part(store, NULL, "x/big", &other, 1, data, 9, &parts[0], NULL),
      WEIR_OK);
  assert_int_equal(weir_object_upload_complete(store, NULL, "x/big", &other, parts, 1,
                                               WEIR_OBJECT_IF_ABSENT, NULL, &err),
                   WEIR_E_EXISTS);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(weir_object_upload_abort(store, NULL, "x/big", other.id, NULL),
                     WEIR_OK);
  }
  assert_int_equal(entries("lake/x"), 1);
  /* Its size tells that the object there is not this upload's. */
  assert_int_equal(
      weir_object_upload_complete(store, NULL, "x/big", &other, parts, 1, 0, NULL, &err),
      WEIR_E_EXISTS);
  free(data);
}

static void test_upload_refused(void **state) {
  (void)state;
  weir_error err = {0};
  weir_object_part parts[2] = {{.size = 3}, {.size = 3}};
  weir_object_upload upload = {.part_size = 1 * MIB};
  assert_int_equal(weir_object_upload_create(store, NULL, "k", &upload, &err),
                   WEIR_E_INVALID_CONFIG);
  upload.part_size = PART;
  strcpy(upload.owner, "with space");
  assert_int_equal(weir_object_upload_create(store, NULL, "k", &upload, &err),
                   WEIR_E_INVALID_CONFIG);
  strcpy(upload.owner, "o");
  assert_int_equal(
      weir_object_upload_part(store, NULL, "k", &upload, 1, "abc", 3, &parts[0], &err),
      WEIR_E_INVALID_STATE); /* no id yet */
  assert_int_equal(weir_object_upload_create(store, NULL, "k", &upload, &err), WEIR_OK);
  assert_int_equal(
      weir_object_upload_part(store, NULL, "k", &upload, 0, "abc", 3, &parts[0], &err),
      WEIR_E_INVALID_STATE);
  assert_int_equal(
      weir_object_upload_part(store, NULL, "k", &upload, 1, "abc", 3, &parts[0], &err),
      WEIR_OK);
  /* Only the last part may be short; a part that never came is missed. */
  assert_int_equal(
      weir_object_upload_complete(store, NULL, "k", &upload, parts, 2, 0, NULL, &err),
      WEIR_E_INVALID_STATE);
  parts[0].size = 4;
  assert_int_equal(
      weir_object_upload_complete(store, NULL, "k", &upload, parts, 1, 0, NULL, &err),
      WEIR_E_CORRUPT);
  strcpy(upload.id, "../../0123456789");
  assert_int_equal(weir_object_upload_abort(store, NULL, "k", upload.id, &err),
                   WEIR_E_INVALID_STATE);
  strcpy(upload.id, "0123456789abcdef");
  assert_int_equal(
      weir_object_upload_complete(store, NULL, "k", &upload, parts, 1, 0, NULL, &err),
      WEIR_E_NOT_FOUND);
  assert_int_equal(err.flags, WEIR_ERR_IN_DOUBT);
}

/* Killed between giving the object's name and dropping the temporary one. */
static void test_upload_with_both_names(void **state) {
  (void)state;
  char temp[100], final[FOLDER_PATH + 20], path[FOLDER_PATH + 120];
  weir_object_part part = {0};
  weir_object_upload upload = {.part_size = PART};
  assert_int_equal(weir_object_upload_create(store, NULL, "k", &upload, NULL), WEIR_OK);
  assert_int_equal(
      weir_object_upload_part(store, NULL, "k", &upload, 1, "abc", 3, &part, NULL),
      WEIR_OK);
  snprintf(temp, sizeof(temp), ".k.%.16s.tmp", upload.id);
  snprintf(path, sizeof(path), "%s/lake/%s", root, temp);
  snprintf(final, sizeof(final), "%s/lake/k", root);
  assert_int_equal(link(path, final), 0);
  assert_int_equal(weir_object_upload_complete(store, NULL, "k", &upload, &part, 1,
                                               WEIR_OBJECT_IF_ABSENT, NULL, NULL),
                   WEIR_OK);
  assert_content("k", "abc");
  assert_int_equal(entries("lake"), 1);
}

/* Writers that race for the same names: each name has one winner. */
enum { RACERS = 4, ROUNDS = 50 };
static atomic_uint winners[ROUNDS];

static void *race(void *arg) {
  char key[30];
  for (int i = 0; i < ROUNDS; i++) {
    snprintf(key, sizeof(key), "race/%d/x", i);
    weir_status status = put(key, arg, WEIR_OBJECT_IF_ABSENT, NULL);
    if (!status) atomic_fetch_add(&winners[i], 1);
    if (status && status != WEIR_E_EXISTS) atomic_fetch_add(&winners[i], 100);
  }
  return NULL;
}

/* Writers that each add one where nobody was faster: no addition is lost. */
static void *add(void *arg) {
  for (int left = ROUNDS; left > 0;) {
    weir_bytes bytes = {0};
    weir_object_info info = {0};
    char text[20] = "";
    if (weir_object_get(store, NULL, "sum", 0, 10, &bytes, &info, NULL)) return arg;
    memcpy(text, bytes.data, bytes.size);
    weir_bytes_release(&bytes);
    snprintf(text, sizeof(text), "%d", atoi(text) + 1);
    weir_object_put_options options = {.if_match = info.etag};
    weir_status status =
        weir_object_put(store, NULL, "sum", text, strlen(text), &options, NULL, NULL);
    if (!status) left--;
    if (status && status != WEIR_E_CONFLICT) return arg;
  }
  return NULL;
}

static void run_all(void *(*run)(void *)) {
  pthread_t threads[RACERS];
  static char names[RACERS][2] = {"0", "1", "2", "3"};
  for (int i = 0; i < RACERS; i++) {
    assert_int_equal(base_thread_start(&threads[i], "racer", run, names[i], NULL), 0);
  }
  for (int i = 0; i < RACERS; i++) {
    void *failed = NULL;
    pthread_join(threads[i], &failed);
    assert_null(failed);
  }
}

static void test_races(void **state) {
  (void)state;
  run_all(race);
  for (int i = 0; i < ROUNDS; i++) assert_int_equal(atomic_load(&winners[i]), 1);
  assert_int_equal(put("sum", "0", 0, NULL), WEIR_OK);
  run_all(add);
  assert_content("sum", "200");
}

static void test_denied(void **state) {
  (void)state;
  weir_error err = {0};
  if (geteuid() == 0) {
    /* root may write anywhere, but not into a file as if it was a folder */
    assert_int_equal(put("plain", "x", 0, NULL), WEIR_OK);
    assert_int_equal(weir_object_put(store, NULL, "plain/y", "x", 1, NULL, NULL, &err),
                     WEIR_E_INVALID_CONFIG);
    return;
  }
  char path[FOLDER_PATH + 10];
  assert_int_equal(put("a", "x", 0, NULL), WEIR_OK);
  snprintf(path, sizeof(path), "%s/lake", root);
  chmod(path, 0500);
  assert_int_equal(weir_object_put(store, NULL, "b", "x", 1, NULL, NULL, &err),
                   WEIR_E_IO);
  assert_int_equal(err.flags, WEIR_ERR_RETRIABLE);
  chmod(path, 0700);
}

static void test_call_over(void **state) {
  (void)state;
  weir_call *call = weir_call_new(-1);
  weir_call_cancel(call);
  assert_int_equal(weir_object_put(store, call, "k", "x", 1, NULL, NULL, NULL),
                   WEIR_E_CANCELLED);
  told t = {0};
  assert_int_equal(weir_object_list(store, call, "", NULL, 0, tell, &t, NULL),
                   WEIR_E_CANCELLED);
  weir_call_free(call);
  assert_int_equal(entries(""), 0);
}

static void test_probe(void **state) {
  (void)state;
  weir_error err = {0};
  if (weir_object_probe(store, NULL, "log/", &err)) fail_msg("%s", err.message);
  assert_int_equal(entries("lake/log"), 0);
}

static void test_locations(void **state) {
  (void)state;
  weir_error err = {0};
  weir_object_store *other = NULL;
  char location[FOLDER_PATH + 20];
  snprintf(location, sizeof(location), "file://%s/lake", root);
  assert_int_equal(weir_object_store_open(location, NULL, &other, NULL), WEIR_OK);
  assert_string_equal(weir_object_store_location(other), location);
  assert_int_equal(weir_object_put(other, NULL, "k", "x", 1, NULL, NULL, NULL), WEIR_OK);
  assert_content("k", "x");
  weir_object_store_free(other);
  assert_int_equal(weir_object_store_open("", NULL, &other, &err), WEIR_E_INVALID_CONFIG);
  assert_int_equal(weir_object_store_open("nosuch://b/p", NULL, &other, &err),
                   WEIR_E_INVALID_CONFIG);
  assert_non_null(strstr(err.message, "weir-nosuch.so"));
  weir_object_store_free(NULL);
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, make_store, drop_store)

int main(void) {
  const struct CMUnitTest tests[] = {
      EACH(test_put_and_get),
      EACH(test_ranges),
      EACH(test_if_absent),
      EACH(test_if_match),
      EACH(test_keys),
      EACH(test_list),
      EACH(test_list_hands_on),
      EACH(test_remove),
      EACH(test_folder_taken_away),
      EACH(test_upload),
      EACH(test_upload_refused),
      EACH(test_upload_with_both_names),
      EACH(test_races),
      EACH(test_denied),
      EACH(test_call_over),
      EACH(test_probe),
      EACH(test_locations),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
