/* SPDX-License-Identifier: Apache-2.0 */
/* A column on its way into COPY's binary format (PostgreSQL's manual, COPY, "Binary Format"): what to do was
 * chosen once, from its types; a batch is bound to it and its values are put one by one. */
#ifndef CONNECTORS_POSTGRES_COLUMN_H
#define CONNECTORS_POSTGRES_COLUMN_H

#include <endian.h>
#include <string.h>
#include <weir/ndjson.h>

#include "types.h"

typedef struct pg_column {
  const pg_rule *rule;
  uint8_t *(*put)(const struct pg_column *, int64_t i, uint8_t *at);
  size_t room; /* as in the rule */
  enum ArrowType from;
  pg_type to;

  /* of the batch; positions count from the start of its buffers */
  const struct ArrowArray *array;
  const uint8_t *validity; /* NULL: no nulls */
  const void *values;   /* of fixed width; the offsets of texts, lists and their like */
  const uint8_t *bytes; /* of texts */

  int64_t width;      /* of fixed-size values and lists */
  int64_t multiplier; /* from the unit of a time to microseconds .. */
  int64_t divisor;    /* .. or the other way, where it is not 1 */
  int64_t low, high;  /* of a time as it stands, both allowed */
  int32_t scale;      /* of a decimal */
  int32_t words;      /* of 32 bits, of a decimal */
  int64_t longest;    /* characters of a text; 0: no limit */

  struct pg_column *child; /* items, or the values of a dictionary or of runs */
  int64_t run;             /* where the last value was found */
  struct pg_json *json;    /* nested values, as JSON */
} pg_column;

/* A nested column as lines of JSON. */
typedef struct pg_json {
  weir_schema *schema; /* one column, named "v" */
  weir_ndjson_encoder *encoder;
  int64_t column; /* of the batch */
  const uint8_t *text;
  size_t *ends; /* of each line, its LF included */
  size_t room;
} pg_json;

/* `field` is the column's own in `schema`, as number `column`, or lies below it. On failure nothing is left. */
weir_status pg_column_init(pg_column *column, weir_schema *schema, int64_t number,
                           const struct ArrowSchema *field, const pg_type *to,
                           weir_error *err);
void pg_column_done(pg_column *column); /* zeroed is fine */

void pg_column_bind(pg_column *column, const struct ArrowArray *array);

/* The first of n positions from i whose value cannot be put, or -1. */
int64_t pg_column_check(pg_column *column, int64_t i, int64_t n);

/* What n values from i may need beyond n times `room`. */
size_t pg_column_extra(pg_column *column, int64_t i, int64_t n);

/* Why a value of this column cannot be put. */
const char *pg_column_why(const pg_column *column);

/* pg_json: lines of JSON. */
weir_status pg_json_bind(pg_json *json, weir_batch *batch, weir_error *err);
size_t pg_json_size(const pg_json *json, int64_t row);

static inline bool pg_bit(const uint8_t *bits, int64_t i) {
  return bits[i >> 3] >> (i & 7) & 1;
}

static inline uint8_t *pg_put16(uint8_t *at, uint16_t value) {
  value = htobe16(value);
  memcpy(at, &value, sizeof(value));
  return at + sizeof(value);
}

static inline uint8_t *pg_put32(uint8_t *at, uint32_t value) {
  value = htobe32(value);
  memcpy(at, &value, sizeof(value));
  return at + sizeof(value);
}

static inline uint8_t *pg_put64(uint8_t *at, uint64_t value) {
  value = htobe64(value);
  memcpy(at, &value, sizeof(value));
  return at + sizeof(value);
}

static inline uint8_t *pg_put_null(uint8_t *at) {
  return pg_put32(at, UINT32_MAX);
}

/* A value or a null. */
static inline uint8_t *pg_put(const pg_column *column, int64_t i, uint8_t *at) {
  if (column->validity && !pg_bit(column->validity, i)) return pg_put_null(at);
  return column->put(column, i, at);
}

/* Items of list i. */
void pg_list_range(const pg_column *column, int64_t i, int64_t *first, int64_t *n);
/* Where the value of position i lies among those of a dictionary or of runs. */
int64_t pg_column_place(const pg_column *column, int64_t i);

/* What the rules name, and what has no rule of its own. */
typedef uint8_t *pg_put_fn(const pg_column *, int64_t, uint8_t *);
typedef int64_t pg_check_fn(const pg_column *, int64_t, int64_t);
pg_put_fn pg_put_bool, pg_put_i8_2, pg_put_i8_4, pg_put_i8_8, pg_put_u8_2, pg_put_u8_4,
    pg_put_u8_8, pg_put_i16_2, pg_put_i16_4, pg_put_i16_8, pg_put_u16_4, pg_put_u16_8,
    pg_put_i32_4, pg_put_i32_8, pg_put_u32_8, pg_put_i64_8, pg_put_f16_4, pg_put_f16_8,
    pg_put_f32_4, pg_put_f32_8, pg_put_f64_8;
pg_put_fn pg_put_num_i8, pg_put_num_u8, pg_put_num_i16, pg_put_num_u16, pg_put_num_i32,
    pg_put_num_u32, pg_put_num_i64, pg_put_num_u64, pg_put_num_f16, pg_put_num_f32,
    pg_put_num_f64, pg_put_decimal;
pg_put_fn pg_put_text, pg_put_large, pg_put_view, pg_put_fixed, pg_put_text_jsonb,
    pg_put_uuid_text;
pg_put_fn pg_put_date32, pg_put_date64, pg_put_time32, pg_put_time64, pg_put_timestamp,
    pg_put_duration, pg_put_months, pg_put_day_time, pg_put_month_day_nano;
pg_put_fn pg_put_nothing, pg_put_json, pg_put_array, pg_put_indirect;
pg_check_fn pg_check_text, pg_check_uuid_text, pg_check_time32, pg_check_time64,
    pg_check_month_day_nano;

/* Text i, of any of its layouts. */
const uint8_t *pg_text(const pg_column *column, int64_t i, size_t *size);
/* A half precision float's value. */
float pg_half(uint16_t bits);

#endif
