/* SPDX-License-Identifier: Apache-2.0 */
/* Base64 (RFC 4648, section 4). */
#include "format/format.h"

static const char base64_digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static int base64_value(uint8_t c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

int64_t format_base64_read(const uint8_t *text, size_t n, uint8_t *to) {
  uint8_t *p = to;
  if (n % 4 != 0) return -1;
  for (size_t i = 0; i < n; i += 4) {
    bool last = i + 4 == n;
    int pad =
        last ? (text[i + 3] == '=') + (text[i + 2] == '=' && text[i + 3] == '=') : 0;
    int v[4] = {0};
    for (int k = 0; k < 4 - pad; k++) {
      v[k] = base64_value(text[i + (size_t)k]);
      if (v[k] < 0) return -1;
    }
    uint32_t word = (uint32_t)(v[0] << 18 | v[1] << 12 | v[2] << 6 | v[3]);
    /* bits that no byte takes must be zero, else two texts would mean the same bytes */
    if ((pad == 1 && (word & 0xff)) || (pad == 2 && (word & 0xffff))) return -1;
    *p++ = (uint8_t)(word >> 16);
    if (pad < 2) *p++ = (uint8_t)(word >> 8);
    if (pad < 1) *p++ = (uint8_t)word;
  }
  return p - to;
}

size_t format_base64_write(const uint8_t *data, size_t n, char *to) {
  char *p = to;
  for (size_t i = 0; i < n; i += 3) {
    size_t left = n - i;
    uint32_t word = (uint32_t)data[i] << 16;
    if (left > 1) word |= (uint32_t)data[i + 1] << 8;
    if (left > 2) word |= data[i + 2];
    *p++ = base64_digits[word >> 18];
    *p++ = base64_digits[word >> 12 & 63];
    *p++ = left > 1 ? base64_digits[word >> 6 & 63] : '=';
    *p++ = left > 2 ? base64_digits[word & 63] : '=';
  }
  return (size_t)(p - to);
}
