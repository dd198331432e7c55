/* SPDX-License-Identifier: Apache-2.0 */
/* Eight characters of a number at once, in a word; and two at once, to write them. */
#ifndef FORMAT_DIGITS_H
#define FORMAT_DIGITS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "format/format.h"

static inline uint64_t format_load64(const uint8_t *p) {
  uint64_t word;
  memcpy(&word, p, sizeof(word));
  return word;
}

static inline uint32_t format_load32(const uint8_t *p) {
  uint32_t word;
  memcpy(&word, p, sizeof(word));
  return word;
}

/* Arithmetic on eight characters in a word needs the first one in its lowest byte. */
#define FORMAT_WORDS (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
#define FORMAT_ZEROS UINT64_C(0x3030303030303030)

/* Whether each byte is 0 .. 9. */
static inline bool format_are_digits(uint64_t x) {
  return (((x + UINT64_C(0x7676767676767676)) | x) & UINT64_C(0x8080808080808080)) == 0;
}

/* The number of eight digits 0 .. 9: pairs, fours and the eight are summed side by side. */
static inline uint64_t format_sum_digits(uint64_t x) {
  x = x * 10 + (x >> 8);
  return ((x & UINT64_C(0x000000ff000000ff)) * (100 + (UINT64_C(1000000) << 32)) +
          ((x >> 16) & UINT64_C(0x000000ff000000ff)) * (1 + (UINT64_C(10000) << 32))) >>
         32;
}

/* 1 to 19 digits. Bytes up to p + 8 may be read, whatever n is. */
static inline bool format_digits_read(const uint8_t *p, size_t n, uint64_t *out) {
#if FORMAT_WORDS
  if (FORMAT_LIKELY(n <= 8)) {
    /* the zero bytes shifted in are leading zeros */
    uint64_t x = (format_load64(p) ^ FORMAT_ZEROS) << (64 - 8 * n);
    *out = format_sum_digits(x);
    return format_are_digits(x);
  }
  size_t more = (n - 1) & 7; /* 0 .. 7, and 1 + more digits come first */
  uint64_t x = (format_load64(p) ^ FORMAT_ZEROS) << (56 - 8 * more);
  uint64_t y = format_load64(p + more + 1) ^ FORMAT_ZEROS;
  uint64_t value = format_sum_digits(x) * 100000000 + format_sum_digits(y);
  bool good = format_are_digits(x);
  good &= format_are_digits(y);
  if (n > 16) {
    y = format_load64(p + more + 9) ^ FORMAT_ZEROS;
    value = value * 100000000 + format_sum_digits(y);
    good &= format_are_digits(y);
  }
  *out = value;
  return good;
#else
  uint64_t value = 0;
  bool good = true;
  for (size_t i = 0; i < n; i++) {
    unsigned digit = (unsigned)p[i] - '0';
    good &= digit <= 9;
    value = value * 10 + digit;
  }
  *out = value;
  return good;
#endif
}

/* 10^0 .. 10^22, which are exact as double. */
extern const double format_exact_power[23];

/* "00" to "99". */
extern const char format_pairs[201];

/* value < 100 as two digits. */
static inline char *format_pair_write(char *p, unsigned value) {
  memcpy(p, format_pairs + 2 * value, 2);
  return p + 2;
}

/* Without leading zeros. May write 20 bytes, whatever is returned. */
static inline char *format_uint_write(char *p, uint64_t value) {
  char digits[40] = {0}, *first = digits + 20;
  for (; value >= 100; value /= 100)
    format_pair_write(first -= 2, (unsigned)(value % 100));
  if (value >= 10) {
    format_pair_write(first -= 2, (unsigned)value);
  } else {
    *--first = (char)('0' + value);
  }
  memcpy(p, first, 20);
  return p + (digits + 20 - first);
}

#endif
