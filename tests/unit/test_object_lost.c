/* SPDX-License-Identifier: Apache-2.0 */
/* ctest: connector s3 */
/* Every answer can be lost: a proxy before a real S3 server loses and replaces them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <weir/plugin.h>

#include "object/object.h"
#include "support/s3_server.h"

static const weir_option table[] = {WEIR_OBJECT_OPTIONS, {0}};
static weir_options *options;
static weir_object_store *store;
static s3_proxy *proxy;
static int server;

static const weir_object_put_options absent = {.flags = WEIR_OBJECT_IF_ABSENT};

static int set_up(void **state) {
  (void)state;
  char endpoint[60];
  int port = 0;
  weir_plugin plugin = {.struct_size = sizeof(plugin)};
  if (weir_plugin_init(WEIR_ABI_VERSION, NULL, &plugin, NULL) ||
      s3_server_start(&server)) {
    return -1;
  }
  proxy = s3_proxy_start(server, &port);
  snprintf(endpoint, sizeof(endpoint), "http://127.0.0.1:%d", port);
  const char *names[] = {"s3.endpoint", "s3.access_key", "s3.secret_key"};
  const char *values[] = {endpoint, "weir", "weirsecret"};
  if (weir_options_new(table, "test", names, values, 3, NULL, &options, NULL)) return -1;
  return object_store_new(plugin.stores[0], "s3://weir/lost", "weir/lost", options,
                          &store, NULL);
}

static int tear_down(void **state) {
  (void)state;
  weir_object_store_free(store);
  weir_options_free(options);
  s3_proxy_stop(proxy);
  return s3_server_wipe(server);
}

static void assert_content(const char *key, const char *text) {
  weir_bytes bytes = {0};
  weir_error err = {0};
  if (weir_object_get(store, NULL, key, 0, 100, &bytes, NULL, &err)) {
    fail_msg("%s", err.message);
  }
  assert_int_equal(bytes.size, strlen(text));
  assert_memory_equal(bytes.data, text, bytes.size);
  weir_bytes_release(&bytes);
}

static const s3_rule repeated[] = {
    {"PUT", S3_LOSE_REQUEST, 0, 2},  {"PUT", S3_LOSE_ANSWER, 0, 2},
    {"PUT", S3_ANSWER, 503, 2},      {"PUT", S3_ANSWER_LATE, 503, 1},
    {"PUT", S3_ANSWER_LATE, 500, 2}, {"PUT", S3_ANSWER, 429, 1},
    {"PUT", S3_ANSWER_LATE, 412, 1}, {"PUT", S3_ANSWER, 412, 1},
};

/* A repeat that meets the object of its own first try is done, whatever was answered. */
static void test_own_put(void **state) {
  (void)state;
  char key[20];
  for (size_t i = 0; i < BASE_COUNT(repeated); i++) {
    weir_error err = {0};
    weir_object_info info = {0};
    snprintf(key, sizeof(key), "own/%zu", i);
    s3_proxy_rule(proxy, repeated[i]);
    if (weir_object_put(store, NULL, key, "mine", 4, &absent, &info, &err)) {
      fail_msg("rule %zu: %s", i, err.message);
    }
    assert_true(s3_proxy_count(proxy) > 1);
    assert_int_equal(info.size, 4);
    assert_true(*info.etag);
    assert_content(key, "mine");
    /* Its etag serves as a condition. */
    weir_object_put_options match = {.if_match = info.etag};
    s3_proxy_rule(proxy, repeated[i]);
    assert_int_equal(weir_object_put(store, NULL, key, "newer", 5, &match, NULL, &err),
                     repeated[i].fault == S3_ANSWER && repeated[i].status == 412
                         ? WEIR_E_CONFLICT
                         : WEIR_OK);
  }
}

/* Another's object is a conflict, also one with the very same bytes. */
static void test_others_put(void **state) {
  (void)state;
  char key[20];
  for (size_t i = 0; i < BASE_COUNT(repeated); i++) {
    weir_error err = {0};
    snprintf(key, sizeof(key), "other/%zu", i);
    s3_proxy_rule(proxy, (s3_rule){.method = "PUT"});
    assert_int_equal(weir_object_put(store, NULL, key, "same", 4, &absent, NULL, NULL),
                     WEIR_OK);
    s3_proxy_rule(proxy, repeated[i]);
    assert_int_equal(weir_object_put(store, NULL, key, "same", 4, &absent, NULL, &err),
                     WEIR_E_EXISTS);
    assert_int_equal(err.flags, 0);
  }
}

/* What stays unknown until the deadline says so; what was never sent, or refused, does not. */
static void test_unknown(void **state) {
  (void)state;
  const struct {
    s3_rule rule;
    uint32_t flags;
  } cases[] = {
      {{"PUT", S3_LOSE_ANSWER, 0, 1000}, WEIR_ERR_IN_DOUBT},
      {{"PUT", S3_ANSWER_LATE, 503, 1000}, WEIR_ERR_IN_DOUBT},
      {{"PUT", S3_ANSWER, 429, 1000}, WEIR_ERR_RETRIABLE},
      {{"PUT", S3_ANSWER, 403, 1000}, WEIR_ERR_RETRIABLE},
  };
  for (size_t i = 0; i < BASE_COUNT(cases); i++) {
    weir_error err = {0};
    weir_call *call = weir_call_new(3 * BASE_NS_PER_S);
    s3_proxy_rule(proxy, cases[i].rule);
    assert_true(weir_object_put(store, call, "unknown", "x", 1, &absent, NULL, &err));
    assert_int_equal(err.flags, cases[i].flags);
    weir_call_free(call);
  }
}

static void test_complete(void **state) {
  (void)state;
  const s3_rule rules[] = {{"POST", S3_LOSE_REQUEST, 0, 1},
                           {"POST", S3_LOSE_ANSWER, 0, 1},
                           {"POST", S3_ANSWER_LATE, 503, 1},
                           {"POST", S3_ANSWER, 500, 1},
                           {"POST", S3_ANSWER_BODY, 0, 1}};
  char key[20];
  for (size_t i = 0; i < BASE_COUNT(rules); i++) {
    weir_error err = {0};
    weir_object_info info = {0};
    weir_object_part part = {0};
    weir_object_upload upload = {.part_size = 5 << 20, .owner = "sink/1"};
    weir_call *call = weir_call_new(20 * BASE_NS_PER_S);
    snprintf(key, sizeof(key), "up/%zu", i);
    s3_proxy_rule(proxy, (s3_rule){.method = "PUT", .fault = S3_LOSE_ANSWER, .times = 1});
    assert_int_equal(weir_object_upload_create(store, call, key, &upload, NULL), WEIR_OK);
    assert_int_equal(
        weir_object_upload_part(store, call, key, &upload, 1, "abc", 3, &part, NULL),
        WEIR_OK);
    s3_proxy_rule(proxy, rules[i]);
    if (weir_object_upload_complete(store, call, key, &upload, &part, 1,
                                    WEIR_OBJECT_IF_ABSENT, &info, &err)) {
      fail_msg("rule %zu: %s", i, err.message);
    }
    assert_true(s3_proxy_count(proxy) > 1);
    assert_int_equal(info.size, 3);
    assert_content(key, "abc");
    weir_call_free(call);
  }
}

/* Reads and removals are repeated, too. */
static void test_reads(void **state) {
  (void)state;
  const char *keys[] = {"read"};
  weir_object_info info = {0};
  s3_proxy_rule(proxy, (s3_rule){.method = "GET", .fault = S3_LOSE_ANSWER, .times = 1});
  assert_int_equal(weir_object_put(store, NULL, "read", "text", 4, NULL, NULL, NULL), 0);
  assert_content("read", "text");
  s3_proxy_rule(proxy, (s3_rule){"HEAD", S3_ANSWER, 503, 1});
  assert_int_equal(weir_object_head(store, NULL, "read", &info, NULL), WEIR_OK);
  s3_proxy_rule(proxy, (s3_rule){"DELETE", S3_LOSE_ANSWER, 0, 1});
  assert_int_equal(weir_object_remove(store, NULL, keys, 1, NULL), WEIR_OK);
  assert_int_equal(weir_object_head(store, NULL, "read", &info, NULL), WEIR_E_NOT_FOUND);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_own_put), cmocka_unit_test(test_others_put),
      cmocka_unit_test(test_unknown), cmocka_unit_test(test_complete),
      cmocka_unit_test(test_reads),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
