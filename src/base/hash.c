/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <openssl/evp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/base.h"

static weir_status hash_failed(weir_error *err) {
  return weir_error_set(err, WEIR_E_INTERNAL, 0, "libcrypto refused a SHA-256 operation");
}

/* Looked up once: EVP_sha256() in its place would be looked up again by every hash. Never freed. A look-up that
 * found no memory is made again by the next hash. */
static const EVP_MD *get_sha256(void) {
  static _Atomic(EVP_MD *) known;
  EVP_MD *md = atomic_load(&known), *other = NULL;
  if (md) return md;
  md = EVP_MD_fetch(NULL, "SHA256", NULL);
  if (!md || atomic_compare_exchange_strong(&known, &other, md)) return md;
  EVP_MD_free(md); /* another thread was first */
  return other;
}

weir_status base_sha256(const void *data, size_t size, uint8_t out[BASE_SHA256_SIZE],
                        weir_error *err) {
  const EVP_MD *md = get_sha256();
  if (!md || !EVP_Digest(data, size, out, NULL, md, NULL)) return hash_failed(err);
  return WEIR_OK;
}

weir_status base_sha256_init(base_sha256_stream *stream, weir_error *err) {
  const EVP_MD *md = get_sha256();
  EVP_MD_CTX *ctx = md ? EVP_MD_CTX_new() : NULL;
  if (!ctx || !EVP_DigestInit_ex(ctx, md, NULL)) {
    EVP_MD_CTX_free(ctx);
    return hash_failed(err);
  }
  stream->ctx = ctx;
  return WEIR_OK;
}

weir_status base_sha256_update(base_sha256_stream *stream, const void *data, size_t size,
                               weir_error *err) {
  if (!EVP_DigestUpdate(stream->ctx, data, size)) return hash_failed(err);
  return WEIR_OK;
}

weir_status base_sha256_final(base_sha256_stream *stream, uint8_t out[BASE_SHA256_SIZE],
                              weir_error *err) {
  uint8_t digest[BASE_SHA256_SIZE];
  if (!EVP_DigestFinal_ex(stream->ctx, digest, NULL) ||
      !EVP_DigestInit_ex(stream->ctx, NULL, NULL)) {
    return hash_failed(err);
  }
  memcpy(out, digest, sizeof(digest));
  return WEIR_OK;
}

void base_sha256_done(base_sha256_stream *stream) {
  EVP_MD_CTX_free(stream->ctx);
  stream->ctx = NULL;
}

uint64_t base_xxh3(const void *data, size_t size, uint64_t seed) {
  return XXH3_64bits_withSeed(data, size, seed);
}

void weir_hex_encode(const void *data, size_t size, char *out) {
  static const char digits[] = "0123456789abcdef";
  const uint8_t *p = data;
  for (size_t i = 0; i < size; i++) {
    *out++ = digits[p[i] >> 4];
    *out++ = digits[p[i] & 15];
  }
  *out = 0;
}

static int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

int weir_hex_decode(const char *text, void *out, size_t size) {
  uint8_t *p = out;
  for (size_t i = 0; i < size; i++) {
    int high = hex_digit(text[2 * i]);
    int low = high < 0 ? -1 : hex_digit(text[2 * i + 1]);
    if (low < 0) return 0;
    p[i] = (uint8_t)(high << 4 | low);
  }
  return text[2 * size] == 0;
}

weir_status base_random(void *out, size_t size, weir_error *err) {
  uint8_t *p = out;
  while (size) {
    ssize_t n = getrandom(p, size, 0);
    if (n < 0) {
      if (errno == EINTR) continue;
      return weir_error_errno(err, errno, "cannot read random bytes from the kernel");
    }
    p += n;
    size -= (size_t)n;
  }
  return WEIR_OK;
}

weir_status base_uuid_new(uint8_t out[WEIR_UUID_SIZE], weir_error *err) {
  uint8_t uuid[WEIR_UUID_SIZE];
  BASE_TRY(base_random(uuid, sizeof(uuid), err));
  uuid[6] = (uint8_t)((uuid[6] & 0x0F) | 0x40); /* version 4, RFC 9562 section 5.4 */
  uuid[8] = (uint8_t)((uuid[8] & 0x3F) | 0x80); /* variant 10 */
  memcpy(out, uuid, sizeof(uuid));
  return WEIR_OK;
}

/* Bytes in each of the five groups of the text form. */
static const uint8_t uuid_groups[] = {4, 2, 2, 2, 6};

void weir_uuid_format(const uint8_t uuid[WEIR_UUID_SIZE], char out[WEIR_UUID_TEXT]) {
  for (size_t i = 0; i < BASE_COUNT(uuid_groups); i++) {
    if (i) *out++ = '-';
    weir_hex_encode(uuid, uuid_groups[i], out);
    out += 2 * uuid_groups[i];
    uuid += uuid_groups[i];
  }
}

int weir_uuid_parse(const char *text, uint8_t out[WEIR_UUID_SIZE]) {
  char digits[2 * WEIR_UUID_SIZE + 1];
  size_t n = 0;
  if (strlen(text) != WEIR_UUID_TEXT - 1) return 0;
  for (size_t i = 0; i < WEIR_UUID_TEXT - 1; i++) {
    bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash != (text[i] == '-')) return 0;
    if (!dash) digits[n++] = text[i];
  }
  digits[n] = 0;
  uint8_t uuid[WEIR_UUID_SIZE];
  if (!weir_hex_decode(digits, uuid, sizeof(uuid))) return 0;
  memcpy(out, uuid, sizeof(uuid));
  return 1;
}

weir_status base_xxh3_init(base_xxh3_stream *stream, weir_error *err) {
  if (!stream->state) stream->state = XXH3_createState();
  if (!stream->state) return weir_error_set(err, WEIR_E_NOMEM, 0, "out of memory");
  XXH3_64bits_reset(stream->state);
  return WEIR_OK;
}

void base_xxh3_update(base_xxh3_stream *stream, const void *data, size_t size) {
  XXH3_64bits_update(stream->state, data, size);
}

uint64_t base_xxh3_final(const base_xxh3_stream *stream) {
  return XXH3_64bits_digest(stream->state);
}

void base_xxh3_done(base_xxh3_stream *stream) {
  XXH3_freeState(stream->state);
  stream->state = NULL;
}

uint64_t base_xxh64(const void *data, size_t size, uint64_t seed) {
  return XXH64(data, size, seed);
}
