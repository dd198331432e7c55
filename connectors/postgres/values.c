/* SPDX-License-Identifier: Apache-2.0 */
/* Values of fixed width. The receiving side of each type is PostgreSQL's <type>_recv function. */
#include <math.h>

#include "column.h"

uint8_t *pg_put_bool(const pg_column *column, int64_t i, uint8_t *at) {
  at = pg_put32(at, 1);
  *at = pg_bit(column->values, i);
  return at + 1;
}

#define VALUE(type) (((const type *)column->values)[i])

/* Integers, each into those that hold all its values. */
#define PUT_INTEGER(name, type, bits, unsigned_type)                           \
  uint8_t *pg_put_##name(const pg_column *column, int64_t i, uint8_t *at) {    \
    return pg_put##bits(pg_put32(at, (bits) / 8), (unsigned_type)VALUE(type)); \
  }
PUT_INTEGER(i8_2, int8_t, 16, uint16_t)
PUT_INTEGER(i8_4, int8_t, 32, uint32_t)
PUT_INTEGER(i8_8, int8_t, 64, uint64_t)
PUT_INTEGER(u8_2, uint8_t, 16, uint16_t)
PUT_INTEGER(u8_4, uint8_t, 32, uint32_t)
PUT_INTEGER(u8_8, uint8_t, 64, uint64_t)
PUT_INTEGER(i16_2, int16_t, 16, uint16_t)
PUT_INTEGER(i16_4, int16_t, 32, uint32_t)
PUT_INTEGER(i16_8, int16_t, 64, uint64_t)
PUT_INTEGER(u16_4, uint16_t, 32, uint32_t)
PUT_INTEGER(u16_8, uint16_t, 64, uint64_t)
PUT_INTEGER(i32_4, int32_t, 32, uint32_t)
PUT_INTEGER(i32_8, int32_t, 64, uint64_t)
PUT_INTEGER(u32_8, uint32_t, 64, uint64_t)
PUT_INTEGER(i64_8, int64_t, 64, uint64_t)

static uint8_t *put_float(uint8_t *at, float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return pg_put32(pg_put32(at, 4), bits);
}

static uint8_t *put_double(uint8_t *at, double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return pg_put64(pg_put32(at, 8), bits);
}

float pg_half(uint16_t bits) {
  int exponent = bits >> 10 & 31, fraction = bits & 1023;
  float value = exponent == 31 ? (fraction ? NAN : INFINITY)
                : exponent     ? ldexpf((float)(fraction + 1024), exponent - 25)
                               : ldexpf((float)fraction, -24);
  return bits >> 15 ? -value : value;
}

uint8_t *pg_put_f16_4(const pg_column *column, int64_t i, uint8_t *at) {
  return put_float(at, pg_half(VALUE(uint16_t)));
}
uint8_t *pg_put_f16_8(const pg_column *column, int64_t i, uint8_t *at) {
  return put_double(at, pg_half(VALUE(uint16_t)));
}
uint8_t *pg_put_f32_4(const pg_column *column, int64_t i, uint8_t *at) {
  return pg_put32(pg_put32(at, 4), VALUE(uint32_t));
}
uint8_t *pg_put_f32_8(const pg_column *column, int64_t i, uint8_t *at) {
  return put_double(at, VALUE(float));
}
uint8_t *pg_put_f64_8(const pg_column *column, int64_t i, uint8_t *at) {
  return pg_put64(pg_put32(at, 8), VALUE(uint64_t));
}

/* ---- dates and times -------------------------------------------------------------------------------- */

enum { DAYS_TO_2000 = 10957 };
#define MS_PER_DAY INT64_C(86400000)
#define US_TO_2000 INT64_C(946684800000000)

uint8_t *pg_put_date32(const pg_column *column, int64_t i, uint8_t *at) {
  return pg_put32(pg_put32(at, 4), (uint32_t)(VALUE(int32_t) - DAYS_TO_2000));
}
uint8_t *pg_put_date64(const pg_column *column, int64_t i, uint8_t *at) {
  int64_t days = VALUE(int64_t) / MS_PER_DAY;
  return pg_put32(pg_put32(at, 4), (uint32_t)(days - DAYS_TO_2000));
}

/* In microseconds; the check has seen that it is a whole number within range. */
static int64_t micros(const pg_column *column, int64_t value) {
  return column->divisor != 1 ? value / column->divisor : value * column->multiplier;
}

uint8_t *pg_put_time32(const pg_column *column, int64_t i, uint8_t *at) {
  return pg_put64(pg_put32(at, 8), (uint64_t)micros(column, VALUE(int32_t)));
}
uint8_t *pg_put_time64(const pg_column *column, int64_t i, uint8_t *at) {
  return pg_put64(pg_put32(at, 8), (uint64_t)micros(column, VALUE(int64_t)));
}
uint8_t *pg_put_timestamp(const pg_column *column, int64_t i, uint8_t *at) {
  return pg_put64(pg_put32(at, 8),
                  (uint64_t)micros(column, VALUE(int64_t)) - (uint64_t)US_TO_2000);
}

/* interval_recv: microseconds, days, months. */
static uint8_t *put_interval(uint8_t *at, int64_t us, int32_t days, int32_t months) {
  at = pg_put64(pg_put32(at, 16), (uint64_t)us);
  return pg_put32(pg_put32(at, (uint32_t)days), (uint32_t)months);
}

uint8_t *pg_put_duration(const pg_column *column, int64_t i, uint8_t *at) {
  return put_interval(at, micros(column, VALUE(int64_t)), 0, 0);
}
uint8_t *pg_put_months(const pg_column *column, int64_t i, uint8_t *at) {
  return put_interval(at, 0, 0, VALUE(int32_t));
}

typedef struct day_time {
  int32_t days, ms;
} day_time;
typedef struct month_day_nano {
  int32_t months, days;
  int64_t ns;
} month_day_nano;

uint8_t *pg_put_day_time(const pg_column *column, int64_t i, uint8_t *at) {
  return put_interval(at, VALUE(day_time).ms * INT64_C(1000), VALUE(day_time).days, 0);
}
uint8_t *pg_put_month_day_nano(const pg_column *column, int64_t i, uint8_t *at) {
  const month_day_nano *value = &VALUE(month_day_nano);
  return put_interval(at, value->ns / 1000, value->days, value->months);
}

int64_t pg_check_month_day_nano(const pg_column *column, int64_t i, int64_t n) {
  for (int64_t end = i + n; i < end; i++)
    if (VALUE(month_day_nano).ns % 1000) return i;
  return -1;
}

/* Whole runs at once first, which compilers make wide; then, seldom, one by one. */
#define CHECK_TIME(name, type)                                                      \
  int64_t name(const pg_column *column, int64_t i, int64_t n) {                     \
    const type *values = (const type *)column->values + i;                          \
    int64_t low = column->low, high = column->high, divisor = column->divisor;      \
    bool bad = false;                                                               \
    for (int64_t k = 0; k < n; k++) bad |= (values[k] < low) | (values[k] > high);  \
    if (divisor != 1)                                                               \
      for (int64_t k = 0; k < n; k++) bad |= values[k] % divisor != 0;              \
    for (int64_t k = 0; bad && k < n; k++)                                          \
      if (values[k] < low || values[k] > high || values[k] % divisor) return i + k; \
    return -1;                                                                      \
  }
CHECK_TIME(pg_check_time32, int32_t)
CHECK_TIME(pg_check_time64, int64_t)
