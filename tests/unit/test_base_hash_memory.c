/* SPDX-License-Identifier: Apache-2.0 */
/* libcrypto without memory when SHA-256 is looked up: a process of its own, since that is done once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "base/base.h"

static bool failing;

static void *allocate(size_t size, const char *file, int line) {
  (void)file, (void)line;
  return failing ? NULL : malloc(size);
}
static void *reallocate(void *block, size_t size, const char *file, int line) {
  (void)file, (void)line;
  return failing ? NULL : realloc(block, size);
}
static void release(void *block, const char *file, int line) {
  (void)file, (void)line;
  free(block);
}

static void test_a_look_up_without_memory_is_made_again(void **state) {
  (void)state;
  uint8_t digest[BASE_SHA256_SIZE];
  weir_error err = {0};
  /* libcrypto's own beginning is not what this is about. */
  EVP_MD_free(EVP_MD_fetch(NULL, "SHA512", NULL));
  failing = true;
  weir_status status = base_sha256("abc", 3, digest, &err);
  failing = false;
  assert_int_equal(status, WEIR_E_INTERNAL);
  assert_int_equal(base_sha256("abc", 3, digest, &err), WEIR_OK);
  assert_int_equal(digest[0], 0xba); /* FIPS 180-2, B.1 */
  assert_int_equal(digest[31], 0xad);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_look_up_without_memory_is_made_again),
  };
  if (!CRYPTO_set_mem_functions(allocate, reallocate, release)) return 1;
  return cmocka_run_group_tests(tests, NULL, NULL);
}
