/* SPDX-License-Identifier: Apache-2.0 */
/* ctest: connector s3 */
/* Signatures that AWS has published: the examples of the S3 API reference, "Authenticating Requests: Using the
 * Authorization Header", and some of the suite in awslabs/aws-c-auth (tests/aws-signing-test-suite/v4). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "object/s3/sign.h"

#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define ALNUM "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

static void assert_signed(const s3_request *request, const s3_identity *who,
                          const char *time, const char *hash, const char *signature) {
  base_buf out = {0};
  assert_int_equal(s3_sign(request, who, time, hash, &out, NULL), WEIR_OK);
  assert_int_equal(base_buf_terminate(&out, NULL), WEIR_OK);
  const char *found = strstr((const char *)out.data, "Signature=");
  assert_non_null(found);
  assert_string_equal(found + strlen("Signature="), signature);
  base_buf_done(&out);
}

static const s3_identity s3_user = {"AKIAIOSFODNN7EXAMPLE",
                                    "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
                                    "us-east-1", "s3"};
#define S3_TIME "20130524T000000Z"
#define S3_HOST {"host", "examplebucket.s3.amazonaws.com"}

static void test_s3_examples(void **state) {
  (void)state;
  const char *put_hash =
      "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072";
  const s3_request get = {"GET",
                          "/test.txt",
                          {{0}},
                          0,
                          {S3_HOST,
                           {"range", "bytes=0-9"},
                           {"x-amz-content-sha256", EMPTY},
                           {"x-amz-date", S3_TIME}},
                          4};
  const s3_request put = {"PUT",
                          "/test$file.text",
                          {{0}},
                          0,
                          {{"x-amz-storage-class", "REDUCED_REDUNDANCY"},
                           {"x-amz-date", S3_TIME},
                           {"date", "Fri, 24 May 2013 00:00:00 GMT"},
                           S3_HOST,
                           {"x-amz-content-sha256", put_hash}},
                          5};
  s3_request lifecycle = {
      "GET",
      "/",
      {{"lifecycle", ""}},
      1,
      {S3_HOST, {"x-amz-content-sha256", EMPTY}, {"x-amz-date", S3_TIME}},
      3};
  assert_signed(&get, &s3_user, S3_TIME, EMPTY,
                "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
  assert_signed(&put, &s3_user, S3_TIME, put_hash,
                "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
  assert_signed(&lifecycle, &s3_user, S3_TIME, EMPTY,
                "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
  lifecycle.query[0] = (s3_pair){"prefix", "J"}; /* not in order */
  lifecycle.query[1] = (s3_pair){"max-keys", "2"};
  lifecycle.n_query = 2;
  assert_signed(&lifecycle, &s3_user, S3_TIME, EMPTY,
                "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

static void test_suite(void **state) {
  (void)state;
  const s3_identity who = {"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
                           "us-east-1", "service"};
  const char *time = "20150830T123600Z";
  s3_request request = {
      "GET",
      "/",
      {{"Param2", "value2"}, {"Param1", "value1"}},
      2,
      {{"host", "example.amazonaws.com"}, {"x-amz-date", "20150830T123600Z"}},
      2};
  assert_signed(&request, &who, time, EMPTY,
                "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500");
  request.query[0] = (s3_pair){"\xe1\x88\xb4", "bar"};
  request.n_query = 1;
  assert_signed(&request, &who, time, EMPTY,
                "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04");
  request.query[0] = (s3_pair){"-._~" ALNUM, "-._~" ALNUM};
  assert_signed(&request, &who, time, EMPTY,
                "9c3e54bfcdf0b19771a7f523ee5669cdf59bc7cc0884027167c21bb143a40197");
  request.n_query = 0;
  request.path = "/-._~" ALNUM;
  assert_signed(&request, &who, time, EMPTY,
                "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f");
  request.path = "/";
  request.headers[2] = (s3_pair){"my-header1", " value1  "};
  request.headers[3] = (s3_pair){"my-header2", "\"a   b   c\""};
  request.n_headers = 4;
  assert_signed(&request, &who, time, EMPTY,
                "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736");
}

static void test_encode(void **state) {
  (void)state;
  base_buf out = {0};
  assert_int_equal(s3_encode(&out, "a/b c+d%\x7f\n~", true, NULL), WEIR_OK);
  assert_int_equal(s3_encode(&out, "/", false, NULL), WEIR_OK);
  assert_int_equal(base_buf_terminate(&out, NULL), WEIR_OK);
  assert_string_equal((const char *)out.data, "a/b%20c%2Bd%25%7F%0A~%2F");
  base_buf_done(&out);
  char time[S3_TIME_SIZE];
  s3_time_text(INT64_C(1440938160) * BASE_NS_PER_S, time);
  assert_string_equal(time, "20150830T123600Z");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_s3_examples),
      cmocka_unit_test(test_suite),
      cmocka_unit_test(test_encode),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
