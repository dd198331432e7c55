/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of integers and floating-point numbers. */
#include <fenv.h>
#include <float.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

#include "format/digits.h"

const double format_exact_power[23] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                       1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                       1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

const char format_pairs[201] =
    "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
    "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
    "8081828384858687888990919293949596979899";

static pthread_once_t c_locale_once = PTHREAD_ONCE_INIT;
static locale_t c_locale;

static void make_c_locale(void) {
  c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

format_result format_integer_parse(const uint8_t *text, size_t n, bool *negative,
                                   uint64_t *magnitude) {
  const uint8_t *p = text, *end = text + n;
  bool neg = p < end && *p == '-';
  uint64_t value = 0;
  p += neg;
  if (p == end) return FORMAT_TYPE;
  for (; p < end; p++) {
    unsigned digit = (unsigned)*p - '0';
    if (digit > 9) return FORMAT_TYPE;
    if (__builtin_mul_overflow(value, 10u, &value) ||
        __builtin_add_overflow(value, digit, &value)) {
      for (p++; p < end; p++) {
        if ((unsigned)*p - '0' > 9) return FORMAT_TYPE;
      }
      return FORMAT_RANGE;
    }
  }
  *negative = neg;
  *magnitude = value;
  return FORMAT_OK;
}

bool format_integer_store(format_kind kind, bool negative, uint64_t magnitude, void *to) {
  static const uint64_t max[] = {
      [FORMAT_INT8] = INT8_MAX,     [FORMAT_INT16] = INT16_MAX,
      [FORMAT_INT32] = INT32_MAX,   [FORMAT_INT64] = INT64_MAX,
      [FORMAT_UINT8] = UINT8_MAX,   [FORMAT_UINT16] = UINT16_MAX,
      [FORMAT_UINT32] = UINT32_MAX, [FORMAT_UINT64] = UINT64_MAX};
  uint64_t limit = max[kind];
  if (negative) limit = kind >= FORMAT_UINT8 ? 0 : limit + 1;
  if (magnitude > limit) return false;
  uint64_t bits = negative ? 0 - magnitude : magnitude;
  switch (kind) {
    case FORMAT_INT8:
    case FORMAT_UINT8: {
      uint8_t v = (uint8_t)bits;
      memcpy(to, &v, sizeof(v));
      break;
    }
    case FORMAT_INT16:
    case FORMAT_UINT16: {
      uint16_t v = (uint16_t)bits;
      memcpy(to, &v, sizeof(v));
      break;
    }
    case FORMAT_INT32:
    case FORMAT_UINT32: {
      uint32_t v = (uint32_t)bits;
      memcpy(to, &v, sizeof(v));
      break;
    }
    default:
      memcpy(to, &bits, sizeof(bits));
  }
  return true;
}

/* Clinger's fast path: a mantissa up to 2^53 times an exact power of ten is rounded once. */
static bool scale_exactly(uint64_t mantissa, int exponent, double *out) {
  if (mantissa > (UINT64_C(1) << 53)) return false;
  double value = (double)mantissa;
  if (mantissa != 0) {
    if (exponent < -22 || exponent > 22) return false;
    value = exponent < 0 ? value / format_exact_power[-exponent]
                         : value * format_exact_power[exponent];
  }
  *out = value;
  return true;
}

/* Eight digits at once, if there are as many. */
static inline bool take_eight(const uint8_t *p, uint64_t *value) {
#if FORMAT_WORDS
  uint64_t word = format_load64(p) ^ FORMAT_ZEROS;
  if (!format_are_digits(word)) return false;
  *value = *value * 100000000 + format_sum_digits(word);
  return true;
#else
  (void)p;
  (void)value;
  return false;
#endif
}

format_result format_double_scan(const uint8_t **text, const uint8_t *limit,
                                 double *out) {
  const uint8_t *p = *text, *start;
  bool negative = *p == '-';
  uint64_t mantissa = 0;
  int64_t digits, exponent = 0;
  unsigned digit;
  start = p += negative;
  while ((digit = (unsigned)*p - '0') <= 9) {
    mantissa = mantissa * 10 + digit;
    p++;
  }
  digits = p - start;
  if (digits == 0 || (digits > 1 && *start == '0')) return FORMAT_TYPE;
  if (*p == '.') {
    start = ++p;
    while (limit - p >= 8 && take_eight(p, &mantissa)) p += 8;
    while ((digit = (unsigned)*p - '0') <= 9) {
      mantissa = mantissa * 10 + digit;
      p++;
    }
    exponent = start - p;
    if (exponent == 0) return FORMAT_TYPE;
    digits -= exponent;
  }
  if ((*p | 0x20) == 'e') {
    p++;
    bool down = *p == '-';
    int64_t power = 0;
    if (*p == '-' || *p == '+') p++;
    start = p;
    while ((digit = (unsigned)*p - '0') <= 9) {
      if (power < 100000) power = power * 10 + digit;
      p++;
    }
    if (p == start) return FORMAT_TYPE;
    exponent += down ? -power : power;
  }
  /* up to 19 digits fit a mantissa; more may have wrapped it */
  double value = 0;
  if (digits > 19 || exponent < INT32_MIN ||
      !scale_exactly(mantissa, (int)exponent, &value)) {
    yyjson_val val;
    /* the grammar is checked: this fails for what is infinite as a double */
    if (yyjson_read_number((const char *)*text, &val, 0, NULL, NULL) == NULL)
      return FORMAT_RANGE;
    value = fabs(yyjson_get_num(&val));
  }
  *text = p;
  *out = negative ? -value : value;
  return FORMAT_OK;
}

format_result format_double_parse(const uint8_t *text, size_t n, double *out) {
  const uint8_t *end = text;
  double value = 0;
  format_result result = format_double_scan(&end, text + n, &value);
  if (result != FORMAT_OK) return result;
  if (end != text + n) return FORMAT_TYPE;
  *out = value;
  return FORMAT_OK;
}

/* A text whose double may lie halfway between two floats while the text does not: rounding the double
 * again could go the wrong way. */
static format_result parse_tie(const uint8_t *text, size_t n, float *out) {
  char small[128], *copy = n < sizeof(small) ? small : malloc(n + 1);
  if (copy == NULL) return FORMAT_NOMEM;
  memcpy(copy, text, n);
  copy[n] = 0;
  pthread_once(&c_locale_once, make_c_locale);
  if (c_locale != (locale_t)0) *out = strtof_l(copy, NULL, c_locale);
  if (copy != small) free(copy);
  return FORMAT_OK;
}

format_result format_float_parse(const uint8_t *text, size_t n, float *out) {
  double wide = 0;
  uint64_t bits;
  format_result result = format_double_parse(text, n, &wide);
  if (result != FORMAT_OK) return result;
  float value = (float)wide;
  memcpy(&bits, &wide, sizeof(bits));
  if ((bits & 0x0fffffff) == 0 && (double)value != wide) {
    result = parse_tie(text, n, &value);
    if (result != FORMAT_OK) return result;
  }
  if (isinf(value)) return FORMAT_RANGE;
  *out = value;
  return FORMAT_OK;
}

/* Whether the text is below, at or above the double that it was rounded to: strtod keeps to the rounding
 * mode. */
static format_result parse_side(const uint8_t *text, size_t n, double wide, int *side) {
  char small[128], *copy = n < sizeof(small) ? small : malloc(n + 1);
  if (copy == NULL) return FORMAT_NOMEM;
  memcpy(copy, text, n);
  copy[n] = 0;
  pthread_once(&c_locale_once, make_c_locale);
  *side = 0;
  if (c_locale != (locale_t)0) {
    int mode = fegetround();
    fesetround(FE_DOWNWARD);
    double below = strtod_l(copy, NULL, c_locale);
    fesetround(FE_UPWARD);
    double above = strtod_l(copy, NULL, c_locale);
    fesetround(mode);
    *side = below < wide ? -1 : above > wide ? 1 : 0;
  }
  if (copy != small) free(copy);
  return FORMAT_OK;
}

format_result format_half_parse(const uint8_t *text, size_t n, uint16_t *out) {
  double wide = 0;
  format_result result = format_double_parse(text, n, &wide);
  if (result != FORMAT_OK) return result;
  uint16_t sign = signbit(wide) ? 0x8000 : 0;
  double size = fabs(wide);
  if (size > 65520.0) return FORMAT_RANGE; /* halfway to what would follow 65504 */
  int exponent = 0, side = 0;
  frexp(size, &exponent);
  /* subnormal, and 0, whose exponent is 0 by frexp: the same step as for 2^-14 */
  if (exponent < -13 || size == 0) exponent = -13;
  /* in steps of the last place, at most 2^11; rint is to even in the default mode */
  double exact = ldexp(size, 11 - exponent), low = floor(exact);
  uint32_t steps = (uint32_t)rint(exact);
  if (exact - low == 0.5) {
    result = parse_side(text, n, wide, &side);
    if (result != FORMAT_OK) return result;
    if (side != 0) steps = (uint32_t)low + ((side > 0) == (sign == 0));
  }
  /* the top bit of `steps` adds 1 to the biased exponent; subnormals lack it */
  uint32_t bits = ((uint32_t)(exponent + 13) << 10) + steps;
  if (bits >= 0x7c00) return FORMAT_RANGE;
  *out = (uint16_t)(sign | bits);
  return FORMAT_OK;
}

double format_half_to_double(uint16_t half) {
  int exponent = (half >> 10) & 31, mantissa = half & 1023;
  double size;
  if (exponent == 31) {
    size = mantissa ? NAN : INFINITY;
  } else if (exponent == 0) {
    size = ldexp(mantissa, -24);
  } else {
    size = ldexp(mantissa + 1024, exponent - 25);
  }
  return half & 0x8000 ? -size : size;
}

static size_t write_real(yyjson_val *val, char *buf) {
  char pool[1024];
  yyjson_alc alc;
  size_t n = 0;
  yyjson_alc_pool_init(&alc, pool, sizeof(pool));
  char *text = yyjson_val_write_opts(val, 0, &alc, &n, NULL);
  if (text == NULL || n > 32) return 0;
  memcpy(buf, text, n);
  return n;
}

/* What has up to six decimals, the quotient of two whole numbers that are exact as doubles; 0 for all
 * else. It is the shortest text: two decimals of up to 15 digits never round to the same double. */
static size_t write_decimals(double value, char *buf) {
  double size = fabs(value);
  if (!(size >= 1e-3 && size < 1e8)) return 0;
  /* the product is off by less than a quarter: it rounds to the only whole number that may fit */
  uint64_t hundredths = (uint64_t)(size * 1e2 + 0.5), millionths = hundredths * 10000;
  if ((double)hundredths / 1e2 != size) {
    millionths = (uint64_t)(size * 1e6 + 0.5);
    if ((double)millionths / 1e6 != size) return 0;
  }
  unsigned fraction = (unsigned)(millionths % 1000000);
  char *p = buf;
  if (value < 0) *p++ = '-';
  p = format_uint_write(p, millionths / 1000000);
  *p++ = '.';
  char *first = p;
  p = format_pair_write(p, fraction / 10000);
  p = format_pair_write(p, fraction / 100 % 100);
  p = format_pair_write(p, fraction % 100);
  while (p > first + 1 && p[-1] == '0') p--;
  return (size_t)(p - buf);
}

size_t format_double_write(double value, char *buf) {
  size_t n = write_decimals(value, buf);
  if (n > 0) return n;
  yyjson_val val = {0};
  unsafe_yyjson_set_real(&val, value);
  return write_real(&val, buf);
}

size_t format_float_write(float value, char *buf) {
  yyjson_val val = {0};
  unsafe_yyjson_set_real(&val, value);
  yyjson_set_fp_to_float(&val, true);
  return write_real(&val, buf);
}
