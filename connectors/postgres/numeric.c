/* SPDX-License-Identifier: Apache-2.0 */
/*
 * numeric, exactly. numeric_recv takes the number of digits, the weight of the first, the sign and the number
 * of decimals to show, 16 bits each, then the digits: base 10000, the first not zero, each worth
 * 10000 ^ (weight - its index). Zeros at the end are left out, since the weight stays.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "column.h"

enum { POSITIVE = 0, NEGATIVE = 0x4000, NOT_A_NUMBER = 0xC000 };
enum { INFINITE = 0xD000, MINUS_INFINITE = 0xF000 }; /* of PostgreSQL 14 and later */
enum { MOST = 24 }; /* digits of 256 bits and what aligning adds */

static const uint32_t power[] = {1, 10, 100, 1000, 10000};

/* Digits as they come, the least first. */
typedef struct digits {
  uint16_t v[MOST];
  int32_t n;
} digits;

static uint8_t *put_digits(uint8_t *at, const digits *d, int32_t lowest, bool negative,
                           int32_t decimals) {
  int32_t first = 0, n = d->n; /* of those that are kept */
  while (n > 0 && !d->v[n - 1]) n--;
  while (first < n && !d->v[first]) first++;
  int32_t count = n - first;
  at = pg_put32(at, (uint32_t)(8 + 2 * count));
  at = pg_put16(at, (uint16_t)count);
  at = pg_put16(at, (uint16_t)(count ? lowest + n - 1 : 0));
  at = pg_put16(at, negative && count ? NEGATIVE : POSITIVE);
  at = pg_put16(at, (uint16_t)decimals);
  for (int32_t k = n; k-- > first;) at = pg_put16(at, d->v[k]);
  return at;
}

static uint8_t *put_special(uint8_t *at, uint16_t sign) {
  at = pg_put64(pg_put32(at, 8), 0);
  memcpy(at - 4, &(uint16_t){htobe16(sign)}, 2);
  return at;
}

static void add_u64(digits *d, uint64_t value) {
  for (; value; value /= 10000) d->v[d->n++] = (uint16_t)(value % 10000);
}

/* The place of a power of ten among digits of base 10000: 10 ^ exponent = 10 ^ pad * 10000 ^ lowest. */
static int32_t align(int32_t exponent, int32_t *pad) {
  *pad = exponent & 3;
  return (exponent - *pad) / 4;
}

/* value * 10 ^ exponent */
static uint8_t *put_u64(uint8_t *at, uint64_t value, bool negative, int32_t exponent) {
  digits d = {.n = 0};
  int32_t pad, lowest = align(exponent, &pad);
  if (pad) {
    d.v[d.n++] = (uint16_t)(value % power[4 - pad] * power[pad]);
    value /= power[4 - pad];
  }
  add_u64(&d, value);
  return put_digits(at, &d, lowest, negative, exponent < 0 ? -exponent : 0);
}

static uint8_t *put_u128(uint8_t *at, unsigned __int128 value, bool negative,
                         int32_t exponent) {
  digits d = {.n = 0};
  int32_t pad, lowest = align(exponent, &pad);
  if (pad) {
    d.v[d.n++] = (uint16_t)((uint32_t)(value % power[4 - pad]) * power[pad]);
    value /= power[4 - pad];
  }
  while (value >> 64) { /* 16 decimal digits at a time */
    uint64_t low = (uint64_t)(value % 10000000000000000u);
    value /= 10000000000000000u;
    for (int k = 0; k < 4; k++, low /= 10000) d.v[d.n++] = (uint16_t)(low % 10000);
  }
  add_u64(&d, (uint64_t)value);
  return put_digits(at, &d, lowest, negative, exponent < 0 ? -exponent : 0);
}

/* Divides 256 bits, the least word first; what is left over. */
static uint32_t divide(uint32_t words[8], uint32_t by) {
  uint64_t rest = 0;
  for (int k = 8; k-- > 0;) {
    rest = rest << 32 | words[k];
    words[k] = (uint32_t)(rest / by);
    rest %= by;
  }
  return (uint32_t)rest;
}

static uint8_t *put_256(uint8_t *at, const uint32_t *value, int32_t exponent) {
  digits d = {.n = 0};
  uint32_t words[8], left = 1;
  bool negative = value[7] >> 31;
  uint64_t carry = negative;
  for (int k = 0; k < 8; k++) {
    carry += negative ? ~value[k] : value[k];
    words[k] = (uint32_t)carry;
    carry >>= 32;
  }
  int32_t pad, lowest = align(exponent, &pad);
  if (pad) d.v[d.n++] = (uint16_t)(divide(words, power[4 - pad]) * power[pad]);
  while (left) {
    if (d.n == MOST) break; /* 10000 ^ 20 is more than 2 ^ 256 */
    d.v[d.n++] = (uint16_t)divide(words, 10000);
    left = 0;
    for (int k = 0; k < 8; k++) left |= words[k];
  }
  return put_digits(at, &d, lowest, negative, exponent < 0 ? -exponent : 0);
}

static uint8_t *put_signed(uint8_t *at, int64_t value, int32_t exponent) {
  uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
  return put_u64(at, magnitude, value < 0, exponent);
}

uint8_t *pg_put_decimal(const pg_column *column, int64_t i, uint8_t *at) {
  const uint32_t *value = (const uint32_t *)column->values + i * column->words;
  int64_t narrow;
  switch (column->words) {
    case 1:
      return put_signed(at, (int32_t)value[0], -column->scale);
    case 2:
      memcpy(&narrow, value, sizeof(narrow));
      return put_signed(at, narrow, -column->scale);
    case 4: {
      unsigned __int128 wide;
      memcpy(&wide, value, sizeof(wide));
      bool negative = wide >> 127;
      return put_u128(at, negative ? -wide : wide, negative, -column->scale);
    }
    default:
      return put_256(at, value, -column->scale);
  }
}

/* ---- integers and floats ------------------------------------------------------------------------------ */

#define VALUE(type) (((const type *)column->values)[i])
#define PUT_NUMERIC(name, type, put)                                            \
  uint8_t *pg_put_num_##name(const pg_column *column, int64_t i, uint8_t *at) { \
    return put;                                                                 \
  }
PUT_NUMERIC(i8, int8_t, put_signed(at, VALUE(int8_t), 0))
PUT_NUMERIC(i16, int16_t, put_signed(at, VALUE(int16_t), 0))
PUT_NUMERIC(i32, int32_t, put_signed(at, VALUE(int32_t), 0))
PUT_NUMERIC(i64, int64_t, put_signed(at, VALUE(int64_t), 0))
PUT_NUMERIC(u8, uint8_t, put_u64(at, VALUE(uint8_t), false, 0))
PUT_NUMERIC(u16, uint16_t, put_u64(at, VALUE(uint16_t), false, 0))
PUT_NUMERIC(u32, uint32_t, put_u64(at, VALUE(uint32_t), false, 0))
PUT_NUMERIC(u64, uint64_t, put_u64(at, VALUE(uint64_t), false, 0))

/* The fewest digits that give the float back, as people write it: 0.1 is 0.1. */
static uint8_t *put_float(uint8_t *at, double value, bool narrow) {
  char text[64];
  if (isnan(value)) return put_special(at, NOT_A_NUMBER);
  if (isinf(value)) return put_special(at, value > 0 ? INFINITE : MINUS_INFINITE);
  for (int places = narrow ? 5 : 14;; places++) {
    snprintf(text, sizeof(text), "%.*e", places, value);
    if (narrow ? strtof(text, NULL) == (float)value : strtod(text, NULL) == value) break;
    if (places == 17) break;
  }
  /* d.ddde-xx; what stands for the point is the host's locale's affair */
  uint64_t whole = 0;
  int32_t after = 0;
  bool point = false;
  const char *c = text;
  for (; *c && *c != 'e'; c++) {
    if (*c >= '0' && *c <= '9') {
      whole = whole * 10 + (uint64_t)(*c - '0');
      after += point;
    } else if (*c != '-') {
      point = true;
    }
  }
  int32_t exponent = (*c ? (int32_t)strtol(c + 1, NULL, 10) : 0) - after;
  for (; whole && whole % 10 == 0; whole /= 10) exponent++;
  return put_u64(at, whole, value < 0, whole ? exponent : 0);
}

PUT_NUMERIC(f16, uint16_t, put_float(at, pg_half(VALUE(uint16_t)), true))
PUT_NUMERIC(f32, float, put_float(at, VALUE(float), true))
PUT_NUMERIC(f64, double, put_float(at, VALUE(double), false))
