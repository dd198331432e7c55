/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows to columns and back: column builders that text is appended to, and the texts of each type.
 * Shared by the formats of this room (NDJSON, CSV).
 */
#ifndef FORMAT_FORMAT_H
#define FORMAT_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weir/batch.h>
#include <weir/error.h>

struct ArrowArrayView;
struct ArrowSchemaView;

#define FORMAT_LIKELY(x) __builtin_expect(!!(x), 1)
#define FORMAT_UNLIKELY(x) __builtin_expect(!!(x), 0)

typedef enum format_kind {
  FORMAT_BOOL,
  FORMAT_INT8,
  FORMAT_INT16,
  FORMAT_INT32,
  FORMAT_INT64,
  FORMAT_UINT8,
  FORMAT_UINT16,
  FORMAT_UINT32,
  FORMAT_UINT64,
  FORMAT_HALF,
  FORMAT_FLOAT,
  FORMAT_DOUBLE,
  FORMAT_DECIMAL, /* `width` tells which */
  FORMAT_UTF8,
  FORMAT_BINARY,
  FORMAT_FIXED, /* fixed_size_binary */
  FORMAT_DATE32,
  FORMAT_DATE64,
  FORMAT_TIME32,
  FORMAT_TIME64,
  FORMAT_TIMESTAMP,
  FORMAT_DURATION,
  /* nested, the last ones: `values` are offsets of the first two, and none of the others */
  FORMAT_LIST,
  FORMAT_MAP, /* a list of structs {key, value} */
  FORMAT_FIXED_LIST,
  FORMAT_STRUCT
} format_kind;

/* Why a value was not taken. A column is unchanged by anything but FORMAT_OK. */
typedef enum format_result {
  FORMAT_OK = 0,
  FORMAT_TYPE,    /* a JSON value of another type */
  FORMAT_RANGE,   /* beyond what the type holds */
  FORMAT_TEXT,    /* a text that does not spell a value of the type */
  FORMAT_FINE,    /* digits finer than the scale or unit */
  FORMAT_NO_ZONE, /* a zone is missing */
  FORMAT_ZONE,    /* a zone is given to a type without one */
  FORMAT_LENGTH,  /* fixed_size_binary of another length */
  FORMAT_ITEMS,   /* fixed_size_list with another number of items */
  FORMAT_MANY,    /* more slots under null lists of fixed size than a batch may have */
  FORMAT_NULL,    /* null in a column that is not nullable */
  FORMAT_TWICE,   /* the column, or the key of a map, has its value already */
  FORMAT_NOMEM
} format_result;

/* Which of a row of columns has a name. */
typedef struct format_names {
  int32_t *table; /* of column + 1 by hash of the name; 0: free */
  uint32_t mask;
} format_names;

/* A column being built. Rows are appended one by one; `n` may be one ahead of the other columns'
 * within a row, so that a second value for one row is seen. */
typedef struct format_column {
  const char *name; /* borrowed from the schema */
  size_t name_len;
  format_kind kind;
  int32_t
      width; /* bytes of a value, of an offset for FORMAT_UTF8 and FORMAT_BINARY, 0 for bool */
  int32_t unit; /* digits of a second's fraction: 0, 3, 6, 9 */
  bool zoned;   /* timestamp with a zone */
  bool view;    /* a string or binary view: written, never built */
  bool nullable;
  int32_t precision, scale; /* decimals */
  int64_t n;                /* values appended */
  int64_t nulls;
  int64_t room;      /* values that validity, values and offsets have room for */
  uint8_t *validity; /* one bit a value, all set beyond n */
  uint8_t *
      values; /* fixed width; bits beyond n are zero for bool; offsets, room + 1 of them */
  uint8_t *data; /* bytes of strings */
  int64_t data_len, data_room;
  int64_t data_hint; /* data_len of the batch before */

  const struct ArrowSchema *field; /* borrowed */
  /* Nested kinds: the columns below, as the array has them. Between two values a struct's have as many
   * as it has itself, those of lists as many as its slots reach. */
  struct format_column *children;
  int64_t n_children;
  int64_t list_size; /* of FORMAT_FIXED_LIST */
  bool list_view;
  bool string_keys;   /* FORMAT_MAP */
  int64_t n_hint;     /* n of the batch before */
  format_names names; /* FORMAT_STRUCT: of the children */
} format_column;

/* What format_column_init lets through. */
enum {
  FORMAT_FLAT = 0,
  FORMAT_VIEWS = 1,
  FORMAT_NESTED = 2,
  FORMAT_ENCODED = 4 /* a dictionary's field counts as one of its values */
};

/* Column of a schema's field, which must outlive it. WEIR_E_NOT_IMPLEMENTED names a type that rows
 * cannot hold; `what` begins like "read from CSV". */
weir_status format_column_init(format_column *col, const struct ArrowSchema *field,
                               unsigned allow, const char *what, weir_error *err);
void format_column_done(format_column *col);
/* Frees the buffers alone. */
void format_column_drop(format_column *col);
/* Room for `rows` values in an empty column, which takes new buffers. */
weir_status format_column_start(format_column *col, int64_t rows, weir_error *err);
/* Room for `more` bytes of strings. */
bool format_column_grow(format_column *col, int64_t more);
/* Room for `more` values; columns below others have no other bound on what comes. */
bool format_column_grow_values(format_column *col, int64_t more);
static inline bool format_column_room(format_column *col) {
  return FORMAT_LIKELY(col->n < col->room) || format_column_grow_values(col, 1);
}
/* Back to n values. */
void format_column_cut(format_column *col, int64_t n);

/* WEIR_E_SCHEMA names a name that two columns share. */
weir_status format_names_init(format_names *names, const struct format_column *cols,
                              int64_t n, weir_error *err);
void format_names_done(format_names *names);
/* The column of a name, or -1. */
int32_t format_names_find(const format_names *names, const struct format_column *cols,
                          const uint8_t *name, size_t n);

format_result format_column_null(format_column *col);
/* This and numbers go into columns of utf8 as their texts. */
format_result format_column_bool(format_column *col, bool value);
/* text[0 .. n) is a number by the grammar of JSON, followed by a byte that cannot go on with it. */
format_result format_column_number(format_column *col, const uint8_t *text, size_t n);
/* text[0 .. n) is valid UTF-8. */
format_result format_column_string(format_column *col, const uint8_t *text, size_t n);

/* The columns' values as a batch; all columns have the same n. They are empty and without buffers
 * afterwards, also on failure. */
weir_status format_columns_finish(format_column *cols, int64_t n_cols,
                                  weir_schema *schema, weir_batch **out, weir_error *err);

/* Element `i` of an offsets or sizes buffer of `width` bytes (4 or 8); arrow_offset_at reads it. */
static inline void format_offset_store(uint8_t *offsets, int32_t width, int64_t i,
                                       int64_t value) {
  if (width == 4) {
    ((int32_t *)(void *)offsets)[i] = (int32_t)value;
  } else {
    ((int64_t *)(void *)offsets)[i] = value;
  }
}

/* nested.c */
/* The part of format_column_init for what lies below a column; `path` names it. */
weir_status format_nested_init(format_column *col, const struct ArrowSchemaView *view,
                               const char *path, unsigned allow, const char *what,
                               weir_error *err);
weir_status format_column_init_at(format_column *col, const struct ArrowSchema *field,
                                  const char *path, unsigned allow, const char *what,
                                  weir_error *err);
/* Slots that one row takes in the widest column below lists of fixed size. */
int64_t format_nested_slots(const format_column *col);
/* Values to make room for in child columns of a column with room for `rows`. */
int64_t format_nested_rows(const format_column *col, const format_column *child,
                           int64_t rows);
/* Values that a child has when its parent has n. */
int64_t format_nested_end(const format_column *col, int64_t n);
/* A null, or where there may be none what stands for it under a null parent. */
format_result format_nested_null(format_column *col);
/* Ends a value whose items or fields are in the children. */
format_result format_list_close(format_column *col);
format_result format_struct_close(format_column *col);
typedef struct format_key {
  const uint8_t *data;
  size_t size;
  int64_t at; /* which of a map's entries */
} format_key;
/* Whether two of the keys are the same, *twice then being the second; may reorder them. */
bool format_keys_repeat(format_key *keys, size_t n, format_key *twice);
/* FORMAT_TWICE when a string is twice among the keys of the map about to be closed, *twice then being the
 * second. */
format_result format_map_check(const format_column *col, format_key *twice);

/* number.c */
/* text[0 .. n) = -?digits. Sets sign and magnitude; FORMAT_TYPE when it is no integer. */
format_result format_integer_parse(const uint8_t *text, size_t n, bool *negative,
                                   uint64_t *magnitude);
/* Whether an integer fits a kind of FORMAT_INT8 .. FORMAT_UINT64; then stores it at `to`. */
bool format_integer_store(format_kind kind, bool negative, uint64_t magnitude, void *to);
/* A number by the grammar of JSON at *text, which moves behind it; another byte ends it. FORMAT_TYPE
 * when there is none. Bytes before `limit` may be read. */
format_result format_double_scan(const uint8_t **text, const uint8_t *limit, double *out);
format_result format_double_parse(const uint8_t *text, size_t n, double *out);
format_result format_float_parse(const uint8_t *text, size_t n, float *out);
format_result format_half_parse(const uint8_t *text, size_t n, uint16_t *out);
double format_half_to_double(uint16_t half);
/* text[0 .. n) by the grammar of JSON numbers (checked here), into `width` bytes, two's complement. */
format_result format_decimal_parse(const uint8_t *text, size_t n, int32_t precision,
                                   int32_t scale, int32_t width, void *to);
/* Text of a decimal of `width` bytes; at most FORMAT_DECIMAL_TEXT bytes. Returns its length. */
#define FORMAT_DECIMAL_TEXT 400
size_t format_decimal_write(const void *value, int32_t width, int32_t scale, char *buf);
/* Shortest text that gives the same double or float; finite values only; at most 32 bytes, of
 * which all may be written. */
size_t format_double_write(double value, char *buf);
size_t format_float_write(float value, char *buf);

/* chrono.c: texts of at most FORMAT_CHRONO_TEXT bytes, `unit` = digits of a second's fraction. */
#define FORMAT_CHRONO_TEXT 48
format_result format_date_parse(const uint8_t *text, size_t n, int64_t *days);
format_result format_time_parse(const uint8_t *text, size_t n, int32_t unit,
                                int64_t *out);
format_result format_timestamp_parse(const uint8_t *text, size_t n, int32_t unit,
                                     bool zoned, int64_t *out);
/* 0 when the year is beyond nine digits. */
size_t format_date_write(int64_t days, char *buf);
size_t format_time_write(int64_t value, int32_t unit, char *buf);
size_t format_timestamp_write(int64_t value, int32_t unit, bool zoned, char *buf);

/* base64.c */
/* Strict base64 with padding into `to`, which has room for n / 4 * 3 bytes; -1 when malformed. */
int64_t format_base64_read(const uint8_t *text, size_t n, uint8_t *to);
/* (n + 2) / 3 * 4 characters. */
size_t format_base64_write(const uint8_t *data, size_t n, char *to);

/* text.c */
/* The text around `at`, in one line and as valid UTF-8: what is not printable ASCII or a whole
 * character becomes '?'. */
#define FORMAT_EXCERPT 72
void format_excerpt(const uint8_t *line, size_t size, size_t at,
                    char out[FORMAT_EXCERPT]);
/* "is out of range" and the like, to stand behind a column's name. */
const char *format_result_text(format_result result);
/* Value i of a column that is neither string nor bytes, at most FORMAT_VALUE_TEXT bytes; `quotes` as JSON
 * wants them. Returns its end; NULL when it has no text. */
#define FORMAT_VALUE_TEXT (FORMAT_DECIMAL_TEXT + 16)
char *format_value_write(char *p, const format_column *type,
                         const struct ArrowArrayView *values, int64_t i, bool quotes);

#endif
