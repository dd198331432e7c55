/* SPDX-License-Identifier: Apache-2.0 */
/* Dates, times and timestamps as ISO 8601 writes them, in the proleptic Gregorian calendar. */
#include <string.h>

#include "format/digits.h"

#define DAY_SECONDS INT64_C(86400)

static const int64_t unit_per_second[] = {
    1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000};

/* A place in a text; `bad` is sticky, so a run of takes needs one check. */
struct cursor {
  const uint8_t *p, *end;
  bool bad;
};

static inline unsigned two_digits(const uint8_t *p, bool *bad) {
  unsigned tens = (unsigned)p[0] - '0', ones = (unsigned)p[1] - '0';
  *bad |= (tens > 9) | (ones > 9);
  return tens * 10 + ones;
}

static int take_two(struct cursor *c) {
  if (c->end - c->p < 2) {
    c->bad = true;
    return 0;
  }
  unsigned value = two_digits(c->p, &c->bad);
  c->p += 2;
  return c->bad ? 0 : (int)value;
}

static bool take(struct cursor *c, uint8_t ch) {
  if (c->p == c->end || *c->p != ch) return false;
  c->p++;
  return true;
}

/* Days since 1970-01-01. Years are counted from March, so that the leap day comes last; 146097 days
 * make 400 years. */
static int64_t days_from_civil(int64_t year, int month, int day) {
  year -= month <= 2;
  int64_t era = (year >= 0 ? year : year - 399) / 400;
  int64_t of_era = year - era * 400;
  int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static void civil_from_days(int64_t days, int64_t *year, int *month, int *day) {
  days += 719468;
  int64_t era = (days >= 0 ? days : days - 146096) / 146097;
  int64_t of_era = days - era * 146097;
  int64_t y = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
  int64_t of_year = of_era - (365 * y + y / 4 - y / 100);
  int64_t m = (5 * of_year + 2) / 153;
  *day = (int)(of_year - (153 * m + 2) / 5 + 1);
  *month = (int)(m < 10 ? m + 3 : m - 9);
  *year = y + era * 400 + (*month <= 2);
}

static bool leap(int64_t year) {
  return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

/* A year with a sign: four to nine digits. */
static int64_t take_signed_year(struct cursor *c) {
  bool negative = *c->p++ == '-';
  int64_t year = 0;
  int digits = 0;
  for (; c->p < c->end && digits < 10 && (unsigned)*c->p - '0' <= 9; c->p++, digits++) {
    year = year * 10 + (*c->p - '0');
  }
  if (digits < 4 || digits > 9) c->bad = true;
  return negative ? -year : year;
}

/* [+-]?YYYY-MM-DD; with a sign the year may have up to nine digits. */
static int64_t take_date(struct cursor *c) {
  static const unsigned month_days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  int64_t year = 0;
  if (c->p < c->end && (*c->p == '-' || *c->p == '+')) {
    year = take_signed_year(c);
  } else if (c->end - c->p >= 4) {
    year = two_digits(c->p, &c->bad) * 100 + two_digits(c->p + 2, &c->bad);
    c->p += 4;
  }
  if (c->bad || c->end - c->p < 6) {
    c->bad = true;
    return 0;
  }
  unsigned month = two_digits(c->p + 1, &c->bad), day = two_digits(c->p + 4, &c->bad);
  c->bad |= c->p[0] != '-' || c->p[3] != '-';
  c->p += 6;
  if (c->bad || month - 1 > 11 || day < 1 ||
      day > month_days[month - 1] + (month == 2 && leap(year))) {
    c->bad = true;
    return 0;
  }
  return days_from_civil(year, (int)month, (int)day);
}

/* The digits of a second's fraction, in units. Sets *fine when some are finer than the unit. */
static int64_t take_fraction(struct cursor *c, int32_t unit, bool *fine) {
  int64_t value = 0;
  int digits = 0;
  unsigned digit;
  for (; c->p < c->end && digits < unit && (digit = (unsigned)*c->p - '0') <= 9;
       c->p++, digits++) {
    value = value * 10 + digit;
  }
  int64_t scaled = value * unit_per_second[unit - digits];
  for (; c->p < c->end && (unsigned)*c->p - '0' <= 9; c->p++, digits++)
    *fine |= *c->p != '0';
  if (digits == 0) c->bad = true;
  return scaled;
}

/* HH:MM[:SS[.fraction]]: seconds of the day, and the fraction in units. */
static int64_t take_time(struct cursor *c, int32_t unit, int64_t *fraction, bool *fine) {
  *fraction = 0;
  if (c->end - c->p < 5) {
    c->bad = true;
    return 0;
  }
  unsigned hour = two_digits(c->p, &c->bad), minute = two_digits(c->p + 3, &c->bad),
           second = 0;
  c->bad |= c->p[2] != ':';
  c->p += 5;
  if (c->end - c->p >= 3 && c->p[0] == ':') {
    second = two_digits(c->p + 1, &c->bad);
    c->p += 3;
    if (take(c, '.') || take(c, ',')) *fraction = take_fraction(c, unit, fine);
  }
  if (hour > 23 || minute > 59 || second > 59) c->bad = true;
  return hour * 3600 + minute * 60 + second;
}

/* Z, +HH, +HHMM or +HH:MM: seconds east of UTC. */
static int64_t take_zone(struct cursor *c, bool *present) {
  *present = true;
  if (take(c, 'Z') || take(c, 'z')) return 0;
  bool west = take(c, '-');
  if (!west && !take(c, '+')) {
    *present = false;
    return 0;
  }
  int hours = take_two(c), minutes = 0;
  if (!c->bad && c->p < c->end) {
    take(c, ':');
    minutes = take_two(c);
  }
  if (hours > 23 || minutes > 59) c->bad = true;
  int64_t seconds = hours * 3600 + minutes * 60;
  return west ? -seconds : seconds;
}

format_result format_date_parse(const uint8_t *text, size_t n, int64_t *days) {
  struct cursor c = {text, text + n, false};
  int64_t value = take_date(&c);
  if (c.bad || c.p != c.end) return FORMAT_TEXT;
  *days = value;
  return FORMAT_OK;
}

format_result format_time_parse(const uint8_t *text, size_t n, int32_t unit,
                                int64_t *out) {
  struct cursor c = {text, text + n, false};
  int64_t fraction = 0;
  bool fine = false;
  int64_t seconds = take_time(&c, unit, &fraction, &fine);
  if (c.bad || c.p != c.end) return FORMAT_TEXT;
  if (fine) return FORMAT_FINE;
  *out = seconds * unit_per_second[unit] + fraction;
  return FORMAT_OK;
}

#if FORMAT_WORDS
/* Days since 1970-01-01 of year 100 * century + year and of a day that is there; NO_DAY if it is not.
 * Counted from 0000-01-01 by the leap years before: ceil(y / 4) - ceil(y / 100) + ceil(y / 400). */
#define NO_DAY INT32_MIN
static inline int32_t days_of(uint32_t century, uint32_t of_century, uint32_t month,
                              uint32_t day) {
  static const uint16_t before[2][13] = {
      {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365},
      {0, 31, 60, 91, 121, 152, 182, 213, 244, 274, 305, 335, 366}};
  uint32_t year = century * 100 + of_century, odd = of_century > 0;
  uint32_t is_leap = ((odd ? of_century : century) & 3) == 0;
  if (month - 1 > 11) return NO_DAY;
  uint32_t first = before[is_leap][month - 1];
  if (day - 1 >= before[is_leap][month] - first) return NO_DAY;
  uint32_t leaps = ((year + 3) >> 2) - (century + odd) + ((century + 3 + odd) >> 2);
  return (int32_t)(year * 365 + leaps + first + day - 1) - 719528;
}

/* The spelling that most writers use, YYYY-MM-DD[T ]HH:MM:SS[.f], with Z behind it when zoned, by a few
 * operations on words. False for any other, and for what is none. */
static inline bool read_common(const uint8_t *p, size_t n, int32_t unit, bool zoned,
                               int64_t *out) {
  size_t size = n - zoned, digits = 0; /* of the fraction */
  uint64_t fraction = 0;
  if (size < 19 || size > 28 || (zoned && p[size] != 'Z') ||
      (p[10] != 'T' && p[10] != ' '))
    return false;
  if (size > 19) {
    digits = size - 20;
    if (p[19] != '.' || digits - 1 >= (size_t)unit) return false;
    /* the eight characters that end with the fraction, zeros in the place of those before it */
    uint64_t x = format_load64(p + size - 8) ^ FORMAT_ZEROS;
    x = x >> (64 - 8 * digits) << (64 - 8 * digits);
    if (!format_are_digits(x)) return false;
    fraction = format_sum_digits(x);
  }
  /* YYYY-MM-, DD, HH:MM:SS, each character without its '0', '-' or ':' */
  uint64_t date = format_load64(p) ^ UINT64_C(0x2d30302d30303030);
  uint64_t day = (format_load64(p + 8) & 0xffff) ^ 0x3030;
  uint64_t time = format_load64(p + 11) ^ UINT64_C(0x30303a30303a3030);
  uint64_t signs =
      (date & UINT64_C(0xff0000ff00000000)) | (time & UINT64_C(0x0000ff0000ff0000));
  if (!(format_are_digits(date) & format_are_digits(day) & format_are_digits(time) &
        (signs == 0)))
    return false;
  /* two digits become a number in the byte of the first one */
  date = date * 10 + (date >> 8);
  day = day * 10 + (day >> 8);
  time = time * 10 + (time >> 8);
  int32_t days = days_of(date & 0xff, date >> 16 & 0xff, date >> 40 & 0xff, day & 0xff);
  uint32_t hour = time & 0xff, minute = time >> 24 & 0xff, second = time >> 48 & 0xff;
  if (days == NO_DAY || hour > 23 || minute > 59 || second > 59) return false;
  int64_t seconds = days * DAY_SECONDS + hour * 3600 + minute * 60 + second;
  int64_t value = (int64_t)fraction * unit_per_second[(size_t)unit - digits];
  /* what overflows may come back inside by its fraction: not here */
  if (__builtin_mul_overflow(seconds, unit_per_second[unit], &seconds)) return false;
  if (__builtin_add_overflow(seconds, value, &value)) return false;
  *out = value;
  return true;
}
#endif

format_result format_timestamp_parse(const uint8_t *text, size_t n, int32_t unit,
                                     bool zoned, int64_t *out) {
#if FORMAT_WORDS
  if (FORMAT_LIKELY(read_common(text, n, unit, zoned, out))) return FORMAT_OK;
#endif
  struct cursor c = {text, text + n, false};
  int64_t fraction = 0, seconds = 0, east = 0;
  bool fine = false, zone = false;
  int64_t days = take_date(&c);
  if (!c.bad && c.p < c.end) {
    if (!take(&c, 'T') && !take(&c, ' ') && !take(&c, 't')) return FORMAT_TEXT;
    seconds = take_time(&c, unit, &fraction, &fine);
    if (!c.bad) east = take_zone(&c, &zone);
  }
  if (c.bad || c.p != c.end) return FORMAT_TEXT;
  if (zoned && !zone) return FORMAT_NO_ZONE;
  if (!zoned && zone) return FORMAT_ZONE;
  if (fine) return FORMAT_FINE;
  seconds += days * DAY_SECONDS - east;
  /* Before 1970 a second may lie outside of what its fraction brings back inside. */
  __int128 value = (__int128)seconds * unit_per_second[unit] + fraction;
  if (value < INT64_MIN || value > INT64_MAX) return FORMAT_RANGE;
  *out = (int64_t)value;
  return FORMAT_OK;
}

static inline char *put_digits(char *p, int64_t value, int digits) {
  uint64_t left = (uint64_t)value;
  int i = digits;
  for (; i >= 2; i -= 2, left /= 100)
    format_pair_write(p + i - 2, (unsigned)(left % 100));
  if (i > 0) *p = (char)('0' + left % 10);
  return p + digits;
}

size_t format_date_write(int64_t days, char *buf) {
  int64_t year;
  int month, day, digits = 4;
  char *p = buf;
  if (days > INT64_C(365000000000) || days < -INT64_C(365000000000)) return 0;
  civil_from_days(days, &year, &month, &day);
  if (year < 0 || year > 9999) {
    *p++ = year < 0 ? '-' : '+';
    if (year < 0) year = -year;
    for (int64_t rest = year / 10000; rest > 0; rest /= 10) digits++;
    if (digits > 9) return 0;
  }
  p = put_digits(p, year, digits);
  *p++ = '-';
  p = put_digits(p, month, 2);
  *p++ = '-';
  p = put_digits(p, day, 2);
  return (size_t)(p - buf);
}

size_t format_time_write(int64_t value, int32_t unit, char *buf) {
  char *p = buf;
  int64_t fraction = value % unit_per_second[unit],
          seconds = value / unit_per_second[unit];
  if (value < 0 || seconds >= DAY_SECONDS) return 0;
  p = put_digits(p, seconds / 3600, 2);
  *p++ = ':';
  p = put_digits(p, seconds / 60 % 60, 2);
  *p++ = ':';
  p = put_digits(p, seconds % 60, 2);
  if (unit > 0) {
    *p++ = '.';
    p = put_digits(p, fraction, unit);
  }
  return (size_t)(p - buf);
}

size_t format_timestamp_write(int64_t value, int32_t unit, bool zoned, char *buf) {
  int64_t per_day = DAY_SECONDS * unit_per_second[unit];
  int64_t days = value / per_day, rest = value % per_day;
  if (rest < 0) {
    rest += per_day;
    days--;
  }
  size_t n = format_date_write(days, buf);
  if (n == 0) return 0;
  buf[n++] = 'T';
  n += format_time_write(rest, unit, buf + n);
  if (zoned) buf[n++] = 'Z';
  return n;
}
