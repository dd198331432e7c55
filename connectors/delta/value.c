/* SPDX-License-Identifier: Apache-2.0 */
#include "value.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Proleptic Gregorian. Years are counted from March, so that the leap day comes last; 146097 days make 400 years. */
bool delta_value_date(int64_t day, char out[DELTA_VALUE_SIZE]) {
  if (day < -719162 || day > 2932896) return false;
  day += 719468;
  int64_t era = day / 146097, of_era = day - era * 146097;
  int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
  int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
  int64_t month = (5 * of_year + 2) / 153;
  int64_t in_month = of_year - (153 * month + 2) / 5 + 1;
  month += month < 10 ? 3 : -9;
  year += era * 400 + (month <= 2);
  snprintf(out, DELTA_VALUE_SIZE, "%04" PRId64 "-%02" PRId64 "-%02" PRId64, year, month,
           in_month);
  return true;
}

bool delta_value_timestamp(int64_t us, char between, bool zone,
                           char out[DELTA_VALUE_SIZE]) {
  int64_t fraction = us % 1000000, seconds = us / 1000000;
  if (fraction < 0) fraction += 1000000, seconds--;
  int64_t of_day = seconds % 86400, day = seconds / 86400;
  if (of_day < 0) of_day += 86400, day--;
  if (!delta_value_date(day, out)) return false;
  size_t n = strlen(out);
  snprintf(out + n, DELTA_VALUE_SIZE - n, "%c%02d:%02d:%02d.%06d%s", between,
           (int)(of_day / 3600), (int)(of_day / 60 % 60), (int)(of_day % 60),
           (int)fraction, zone ? "Z" : "");
  return true;
}

void delta_value_decimal(delta_int128 value, int scale, char out[DELTA_VALUE_SIZE]) {
  char digits[DELTA_VALUE_SIZE];
  bool negative = value < 0;
  unsigned __int128 rest =
      negative ? -(unsigned __int128)value : (unsigned __int128)value;
  size_t n = 0, at = 0;
  do {
    digits[n++] = (char)('0' + (int)(rest % 10));
    rest /= 10;
  } while (rest || n <= (size_t)scale);
  if (negative) out[at++] = '-';
  while (n) {
    if (n == (size_t)scale) out[at++] = '.';
    out[at++] = digits[--n];
  }
  out[at] = 0;
}

size_t delta_value_character(const uint8_t *p, size_t n) {
  if (!n) return 0;
  if (p[0] < 0x80) return 1;
  size_t size = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
  uint8_t low = 0x80, high = 0xbf;
  if (p[0] < 0xc2 || p[0] > 0xf4 || n < size) return 0;
  if (p[0] == 0xe0) low = 0xa0;
  if (p[0] == 0xed) high = 0x9f; /* surrogates */
  if (p[0] == 0xf0) low = 0x90;
  if (p[0] == 0xf4) high = 0x8f;
  if (p[1] < low || p[1] > high) return 0;
  for (size_t i = 2; i < size; i++) {
    if (p[i] < 0x80 || p[i] > 0xbf) return 0;
  }
  return size;
}
