/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many values of one column at once. A row decoder that knows where each value of some hundred rows
 * lies takes them column by column: no dispatch by type for each value, and little in the loops that
 * depends on the data. What a loop does not know goes to the decoder's own way of one value. When that
 * refuses it too, the decoder cuts the rows and takes them one by one, so that what is accepted, and
 * every message, is decided there.
 */
#ifndef FORMAT_SPAN_H
#define FORMAT_SPAN_H

#include "format/format.h"

#define FORMAT_SPAN_ROWS 256
/* Bytes behind a value that may be read. */
#define FORMAT_SPAN_PADDING 64
/* After a chunk that failed, so many rows go one by one: bad rows in a row cost little more than that. */
#define FORMAT_SPAN_WARY FORMAT_SPAN_ROWS

/* A value's bytes, without quotes. Sizes above FORMAT_SPAN_MAX mean what is said below. */
typedef struct format_span {
  uint32_t at, size;
} format_span;

#define FORMAT_SPAN_MAX ((uint32_t)1 << 30)
#define FORMAT_SPAN_NULL UINT32_MAX
#define FORMAT_SPAN_ODD ((uint32_t)1 << 31) /* set: for `odd` alone; size without it */

/* Value i lies behind the byte before[i * stride] and up to end[i * stride], in arithmetic that wraps: an end
 * may be the start and one of the sizes above. So an index of what ends values is taken as it is. */
typedef struct format_spans {
  const uint8_t *base;
  const uint32_t *before, *end;
  int64_t n, stride;
  bool json;       /* numbers have no leading zeros */
  bool empty_null; /* a value without bytes is null */
  /* The way of one value. */
  format_result (*odd)(const void *context, format_column *col, const uint8_t *base,
                       format_span span);
  const void *context;
} format_spans;

/* Appends all values to a column with room for them; texts are valid UTF-8. False when one was refused:
 * the column may hold some of them, to be cut. */
bool format_column_take(format_column *col, const format_spans *spans);

#endif
