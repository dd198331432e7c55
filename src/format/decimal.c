/* SPDX-License-Identifier: Apache-2.0 */
/* Decimals of 32 to 256 bits and their texts, always exact. */
#include <string.h>

#include "format/format.h"

#define LIMBS 4
#define MAX_DIGITS 76 /* of decimal256 */

/* value = value * factor + add; the result fits, by the number of digits. */
static void limbs_mul_add(uint64_t limbs[LIMBS], uint64_t factor, uint64_t add) {
  unsigned __int128 carry = add;
  for (int i = 0; i < LIMBS; i++) {
    carry += (unsigned __int128)limbs[i] * factor;
    limbs[i] = (uint64_t)carry;
    carry >>= 64;
  }
}

/* value /= divisor; returns the remainder. */
static uint64_t limbs_div(uint64_t limbs[LIMBS], uint64_t divisor) {
  unsigned __int128 rest = 0;
  for (int i = LIMBS - 1; i >= 0; i--) {
    rest = rest << 64 | limbs[i];
    limbs[i] = (uint64_t)(rest / divisor);
    rest %= divisor;
  }
  return (uint64_t)rest;
}

static void limbs_negate(uint64_t limbs[LIMBS]) {
  uint64_t carry = 1;
  for (int i = 0; i < LIMBS; i++) {
    limbs[i] = ~limbs[i] + carry;
    carry = carry && limbs[i] == 0;
  }
}

/* A number's text taken apart: digits are those of whole[0 .. n_whole) then fraction. */
struct number_text {
  bool negative;
  const uint8_t *whole, *fraction;
  size_t n_whole, n_fraction;
  int64_t exponent;
};

static size_t count_digits(const uint8_t *p, const uint8_t *end) {
  const uint8_t *start = p;
  while (p < end && (unsigned)*p - '0' <= 9) p++;
  return (size_t)(p - start);
}

/* RFC 8259 section 6. */
static bool number_split(const uint8_t *p, size_t n, struct number_text *out) {
  const uint8_t *end = p + n;
  struct number_text t = {0};
  t.negative = p < end && *p == '-';
  p += t.negative;
  t.whole = p;
  t.n_whole = count_digits(p, end);
  if (t.n_whole == 0 || (t.n_whole > 1 && *p == '0')) return false;
  p += t.n_whole;
  if (p < end && *p == '.') {
    t.fraction = ++p;
    t.n_fraction = count_digits(p, end);
    if (t.n_fraction == 0) return false;
    p += t.n_fraction;
  }
  if (p < end && (*p | 0x20) == 'e') {
    bool down = ++p < end && *p == '-';
    if (p < end && (*p == '-' || *p == '+')) p++;
    size_t digits = count_digits(p, end);
    if (digits == 0) return false;
    for (; digits > 0; digits--, p++) {
      /* far beyond any precision already; what matters is that it does not wrap */
      if (t.exponent < 1000000000000) t.exponent = t.exponent * 10 + (*p - '0');
    }
    if (down) t.exponent = -t.exponent;
  }
  if (p != end) return false;
  *out = t;
  return true;
}

static unsigned digit_at(const struct number_text *t, size_t i) {
  return (unsigned)(i < t->n_whole ? t->whole[i] : t->fraction[i - t->n_whole]) - '0';
}

format_result format_decimal_parse(const uint8_t *text, size_t n, int32_t precision,
                                   int32_t scale, int32_t width, void *to) {
  struct number_text t;
  uint64_t limbs[LIMBS] = {0};
  if (!number_split(text, n, &t)) return FORMAT_TEXT;
  /* digits first .. last are what counts, followed by `zeros` zeros in the unscaled value */
  size_t first = 0, last = t.n_whole + t.n_fraction;
  while (first < last && digit_at(&t, first) == 0) first++;
  int64_t zeros = t.exponent - (int64_t)t.n_fraction + scale;
  while (last > first && digit_at(&t, last - 1) == 0) {
    last--;
    zeros++;
  }
  if (first < last) {
    if (zeros < 0) return FORMAT_FINE;
    if (zeros > MAX_DIGITS || (int64_t)(last - first) > precision - zeros)
      return FORMAT_RANGE;
    for (size_t i = first; i < last;) {
      uint64_t chunk = 0, power = 1;
      for (int k = 0; k < 18 && i < last; k++, i++) {
        chunk = chunk * 10 + digit_at(&t, i);
        power *= 10;
      }
      limbs_mul_add(limbs, power, chunk);
    }
    for (; zeros > 0; zeros--) limbs_mul_add(limbs, 10, 0);
    if (t.negative) limbs_negate(limbs);
  }
  memcpy(to, limbs,
         (size_t)width); /* little-endian machines only, as nanoarrow's IPC is */
  return FORMAT_OK;
}

/* Digits of the magnitude, without leading zeros but for one; 80 characters are enough for 256 bits. */
static size_t write_digits(uint64_t limbs[LIMBS], char *buf) {
  char reversed[100];
  size_t n = 0;
  do {
    uint64_t chunk = limbs_div(limbs, UINT64_C(1000000000000000000));
    for (int k = 0; k < 18; k++, chunk /= 10) reversed[n++] = (char)('0' + chunk % 10);
  } while (limbs[0] | limbs[1] | limbs[2] | limbs[3]);
  while (n > 1 && reversed[n - 1] == '0') n--;
  for (size_t i = 0; i < n; i++) buf[i] = reversed[n - 1 - i];
  return n;
}

size_t format_decimal_write(const void *value, int32_t width, int32_t scale, char *buf) {
  uint64_t limbs[LIMBS];
  char digits[100];
  char *p = buf;
  bool negative = ((const uint8_t *)value)[width - 1] & 0x80;
  memset(limbs, negative ? 0xff : 0, sizeof(limbs));
  memcpy(limbs, value, (size_t)width);
  if (negative) {
    limbs_negate(limbs);
    *p++ = '-';
  }
  size_t n = write_digits(limbs, digits);
  if (scale <= 0) {
    memcpy(p, digits, n);
    p += n;
    if (!(n == 1 && digits[0] == '0')) {
      memset(p, '0', (size_t)-scale);
      p += -scale;
    }
    return (size_t)(p - buf);
  }
  size_t fraction = (size_t)scale, whole = n > fraction ? n - fraction : 0;
  if (whole == 0) {
    *p++ = '0';
  } else {
    memcpy(p, digits, whole);
    p += whole;
  }
  *p++ = '.';
  memset(p, '0', fraction - (n - whole));
  p += fraction - (n - whole);
  memcpy(p, digits + whole, n - whole);
  p += n - whole;
  return (size_t)(p - buf);
}
