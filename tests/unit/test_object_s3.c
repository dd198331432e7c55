/* SPDX-License-Identifier: Apache-2.0 */
/* ctest: connector s3 */
/* The verbs of <weir/object.h> on a real S3 server (tools/s3), which checks signatures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <weir/plugin.h>

#include "object/object.h"
#include "support/s3_server.h"

enum { PART = 5 << 20 };

static const weir_option table[] = {WEIR_OBJECT_OPTIONS, {0}};
static weir_options *options;
static weir_object_store *store;
static const weir_object_ops *ops;
static int port;

static weir_status open_as(const char *secret, const char *location, weir_options **opts,
                           weir_object_store **out, weir_error *err) {
  char endpoint[60];
  snprintf(endpoint, sizeof(endpoint), "http://127.0.0.1:%d", port);
  const char *names[] = {"s3.endpoint", "s3.access_key", "s3.secret_key"};
  const char *values[] = {endpoint, "weir", secret};
  if (weir_options_new(table, "test", names, values, 3, NULL, opts, err)) return 1;
  return object_store_new(ops, location, location + strlen("s3://"), *opts, out, err);
}

static int start_server(void **state) {
  (void)state;
  weir_error err = {0};
  weir_plugin plugin = {.struct_size = sizeof(plugin)};
  if (weir_plugin_init(WEIR_ABI_VERSION, NULL, &plugin, &err)) return -1;
  ops = plugin.stores[0];
  if (s3_server_start(&port)) return -1;
  weir_status status = open_as("weirsecret", "s3://weir/a b/", &options, &store, &err);
  if (status) fprintf(stderr, "%s\n", err.message);
  return status;
}

static int stop_server(void **state) {
  (void)state;
  weir_object_store_free(store);
  weir_options_free(options);
  return s3_server_wipe(port);
}

#define OK(call)                           \
  do {                                     \
    weir_error err = {0};                  \
    if (call) fail_msg("%s", err.message); \
  } while (0)

static void put(const char *key, const char *text) {
  OK(weir_object_put(store, NULL, key, text, strlen(text), NULL, NULL, &err));
}

static void assert_content(const char *key, const char *text) {
  weir_bytes bytes = {0};
  weir_object_info info = {0};
  OK(weir_object_get(store, NULL, key, 0, 1000, &bytes, &info, &err));
  assert_int_equal(info.size, strlen(text));
  assert_int_equal(bytes.size, strlen(text));
  assert_memory_equal(bytes.data, text, bytes.size);
  weir_bytes_release(&bytes);
}

static void test_put_and_get(void **state) {
  (void)state;
  weir_object_info info = {0}, head = {0};
  weir_bytes bytes = {0};
  weir_object_put_options by = {.owner = "pipeline/7"};
  OK(weir_object_put(store, NULL, "get/x", "0123456789", 10, &by, &info, &err));
  OK(weir_object_head(store, NULL, "get/x", &head, &err));
  assert_int_equal(head.size, 10);
  assert_string_equal(head.etag, info.etag);
  assert_string_equal(head.owner, "pipeline/7");
  assert_true(head.modified_ns > INT64_C(1600000000) * BASE_NS_PER_S);
  OK(weir_object_get(store, NULL, "get/x", 7, 2, &bytes, &info, &err));
  assert_int_equal(info.size, 10);
  assert_int_equal(bytes.size, 2);
  assert_memory_equal(bytes.data, "78", 2);
  weir_bytes_release(&bytes);
  OK(weir_object_get(store, NULL, "get/x", 10, 5, &bytes, &info, &err));
  assert_int_equal(bytes.size, 0);
  weir_bytes_release(&bytes);
  put("get/empty", "");
  assert_content("get/empty", "");
  assert_int_equal(weir_object_head(store, NULL, "get/none", &head, NULL),
                   WEIR_E_NOT_FOUND);
  assert_int_equal(weir_object_get(store, NULL, "get/none", 0, 9, &bytes, NULL, NULL),
                   WEIR_E_NOT_FOUND);
}

static void test_conditions(void **state) {
  (void)state;
  weir_error why = {0};
  weir_object_info info = {0};
  weir_object_put_options absent = {.flags = WEIR_OBJECT_IF_ABSENT};
  OK(weir_object_put(store, NULL, "log/1", "mine", 4, &absent, &info, &err));
  assert_int_equal(weir_object_put(store, NULL, "log/1", "his", 3, &absent, NULL, &why),
                   WEIR_E_EXISTS);
  assert_int_equal(why.flags, 0);
  assert_content("log/1", "mine");
  weir_object_put_options match = {.if_match = info.etag};
  OK(weir_object_put(store, NULL, "log/1", "newer", 5, &match, NULL, &err));
  assert_int_equal(weir_object_put(store, NULL, "log/1", "oops", 4, &match, NULL, NULL),
                   WEIR_E_CONFLICT);
  assert_int_equal(weir_object_put(store, NULL, "log/none", "x", 1, &match, NULL, NULL),
                   WEIR_E_CONFLICT);
  assert_content("log/1", "newer");
  OK(weir_object_probe(store, NULL, "log/", &err));
}

typedef struct told {
  char text[4000];
} told;

static weir_status tell(void *ctx, const char *key, const weir_object_info *info,
                        weir_error *err) {
  (void)info;
  (void)err;
  told *t = ctx;
  strcat(strcat(t->text, key), "\n");
  return WEIR_OK;
}

static void assert_list(const char *prefix, const char *after, uint32_t flags,
                        const char *expected) {
  told t = {0};
  OK(weir_object_list(store, NULL, prefix, after, flags, tell, &t, &err));
  assert_string_equal(t.text, expected);
}

/* Every byte of ASCII that a key may hold is signed, sent and removed as itself, and listed: but this server puts
 * control characters bare into its XML, where they have no place, whatever encoding it is asked for. */
static void test_every_byte(void **state) {
  (void)state;
  char name[] = "every/_+ %.bin", all[4000] = "";
  for (int c = 1; c < 128; c++) {
    if (c == '/') continue;
    name[6] = (char)c;
    put(name, name);
    assert_content(name, name);
    if (c >= ' ' && c < 127) {
      strcat(strcat(all, name), "\n");
      continue;
    }
    const char *keys[] = {name};
    OK(weir_object_remove(store, NULL, keys, 1, &err));
  }
  assert_list("every/", NULL, 0, all);
  for (int c = 1; c < 128; c++) {
    if (c == '/') continue;
    name[6] = (char)c;
    const char *keys[] = {name, "every/none"};
    OK(weir_object_remove(store, NULL, keys, 2, &err));
  }
  assert_list("every/", NULL, 0, "");
  const char *wide[] = {"every/\xc3\xa9t\xc3\xa9=1"};
  put(wide[0], "x");
  assert_list("every/\xc3\xa9", NULL, 0, "every/\xc3\xa9t\xc3\xa9=1\n");
  OK(weir_object_remove(store, NULL, wide, 1, &err));
}

static void test_list(void **state) {
  (void)state;
  const char *keys[] = {"l/a/b/1", "l/a.b", "l/a/c", "l/a0", "l/log/00", "l/log/01"};
  assert_list("l/", NULL, 0, "");
  for (size_t i = 0; i < BASE_COUNT(keys); i++) put(keys[i], "x");
  assert_list("l/", NULL, 0, "l/a.b\nl/a/b/1\nl/a/c\nl/a0\nl/log/00\nl/log/01\n");
  assert_list("l/a/", NULL, 0, "l/a/b/1\nl/a/c\n");
  assert_list("l/log/", "l/log/00", 0, "l/log/01\n");
  assert_list("l/", NULL, WEIR_OBJECT_SHALLOW, "l/a.b\nl/a/\nl/a0\nl/log/\n");
}

static weir_status count(void *ctx, const char *key, const weir_object_info *info,
                         weir_error *err) {
  (void)key;
  (void)info;
  (void)err;
  ++*(size_t *)ctx;
  return WEIR_OK;
}

static void test_pages(void **state) {
  (void)state;
  char key[40];
  for (int i = 0; i < 1005; i++) { /* a page has 1000 */
    snprintf(key, sizeof(key), "pages/%04d", i);
    put(key, "");
  }
  size_t n = 0;
  OK(weir_object_list(store, NULL, "pages/", "pages/0001", 0, count, &n, &err));
  assert_int_equal(n, 1003);
}

static weir_status tell_upload(void *ctx, const char *key, const char *id,
                               int64_t initiated_ns, weir_error *err) {
  (void)err;
  assert_true(initiated_ns > 0);
  strcat(strcat(strcat(strcat(ctx, key), " "), id), "\n");
  return WEIR_OK;
}

static void test_upload(void **state) {
  (void)state;
  char *data = base_calloc(1, PART + 3, NULL);
  memset(data, 'x', PART + 3);
  weir_object_upload upload = {.part_size = PART, .owner = "sink/7/1"};
  weir_object_upload other = {.part_size = PART, .owner = "sink/8/1"};
  weir_object_part parts[2] = {{0}};
  weir_object_info info = {0};
  weir_error why = {0};
  char text[4000] = "";
  OK(weir_object_upload_create(store, NULL, "up/big", &upload, &err));
  OK(weir_object_upload_create(store, NULL, "up/big", &other, &err));
  OK(weir_object_upload_part(store, NULL, "up/big", &upload, 2, data, 3, &parts[1],
                             &err));
  OK(weir_object_upload_part(store, NULL, "up/big", &upload, 1, data, PART, &parts[0],
                             &err));
  assert_list("up/", NULL, 0, "");
  OK(weir_object_uploads_list(store, NULL, "up/", tell_upload, text, &err));
  assert_non_null(strstr(text, upload.id));
  assert_non_null(strstr(text, other.id));
  for (int i = 0; i < 2; i++) { /* the second time it is done already */
    OK(weir_object_upload_complete(store, NULL, "up/big", &upload, parts, 2,
                                   WEIR_OBJECT_IF_ABSENT, &info, &err));
    assert_int_equal(info.size, PART + 3);
    assert_string_equal(info.owner, "sink/7/1");
  }
  OK(weir_object_upload_part(store, NULL, "up/big", &other, 1, data, 3, &parts[0], &err));
  assert_int_equal(weir_object_upload_complete(store, NULL, "up/big", &other, parts, 1,
                                               WEIR_OBJECT_IF_ABSENT, NULL, &why),
                   WEIR_E_EXISTS);
  for (int i = 0; i < 2; i++) {
    OK(weir_object_upload_abort(store, NULL, "up/big", other.id, &err));
  }
  assert_int_equal(weir_object_upload_complete(store, NULL, "up/none", &other, parts, 1,
                                               WEIR_OBJECT_IF_ABSENT, NULL, &why),
                   WEIR_E_NOT_FOUND);
  assert_int_equal(why.flags & WEIR_ERR_IN_DOUBT, WEIR_ERR_IN_DOUBT);
  text[0] = 0;
  OK(weir_object_uploads_list(store, NULL, "up/", tell_upload, text, &err));
  assert_string_equal(text, "");
  free(data);
}

static void test_denied(void **state) {
  (void)state;
  weir_error why = {0};
  weir_options *opts = NULL;
  weir_object_store *wrong = NULL;
  weir_object_info info = {0};
  assert_int_equal(open_as("no such secret", "s3://weir", &opts, &wrong, NULL), WEIR_OK);
  assert_int_equal(weir_object_put(wrong, NULL, "k", "x", 1, NULL, NULL, &why),
                   WEIR_E_IO);
  assert_int_equal(why.vendor_code, 403);
  assert_int_equal(why.flags, WEIR_ERR_RETRIABLE);
  assert_non_null(strstr(why.message, "SignatureDoesNotMatch"));
  assert_null(strstr(why.message, "no such secret"));
  weir_object_store_free(wrong);
  weir_options_free(opts);
  assert_int_equal(open_as("weirsecret", "s3://no-bucket", &opts, &wrong, NULL), WEIR_OK);
  assert_int_equal(weir_object_head(wrong, NULL, "k", &info, &why), WEIR_E_NOT_FOUND);
  told t = {0};
  assert_int_equal(weir_object_list(wrong, NULL, "", NULL, 0, tell, &t, &why),
                   WEIR_E_NOT_FOUND);
  assert_non_null(strstr(why.message, "NoSuchBucket"));
  weir_object_store_free(wrong);
  weir_options_free(opts);
}

static void test_locations(void **state) {
  (void)state;
  const char *bad[] = {"s3://", "s3://ab", "s3://Big", "s3:///x", "s3://a?b/c"};
  for (size_t i = 0; i < BASE_COUNT(bad); i++) {
    weir_options *opts = NULL;
    weir_object_store *out = NULL;
    assert_int_equal(open_as("weirsecret", bad[i], &opts, &out, NULL),
                     WEIR_E_INVALID_CONFIG);
    assert_null(out);
    weir_options_free(opts);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_put_and_get), cmocka_unit_test(test_conditions),
      cmocka_unit_test(test_every_byte),  cmocka_unit_test(test_list),
      cmocka_unit_test(test_pages),       cmocka_unit_test(test_upload),
      cmocka_unit_test(test_denied),      cmocka_unit_test(test_locations),
  };
  return cmocka_run_group_tests(tests, start_server, stop_server);
}
