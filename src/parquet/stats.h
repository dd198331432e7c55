/* SPDX-License-Identifier: Apache-2.0 */
/* Least and greatest value by the order of a column's type (parquet.thrift, ColumnOrder and Statistics). */
#ifndef WEIR_PARQUET_STATS_H
#define WEIR_PARQUET_STATS_H

#include "format.h"

enum parquet_order {
  ORDER_NONE, /* the order is not defined (INTERVAL) or there are no values (null type) */
  ORDER_BOOL, /* values are packed bits */
  ORDER_INT32,
  ORDER_UINT32,
  ORDER_INT64,
  ORDER_UINT64,
  ORDER_HALF,
  ORDER_FLOAT,
  ORDER_DOUBLE,
  ORDER_BYTES, /* unsigned, byte by byte; the shorter of two with a common prefix comes first */
  ORDER_DECIMAL /* two's complement, most significant byte first, all of one width */
};

/* Of one page; min and max point into the page's values or into low and high, so it is not copied. */
typedef struct stats_page {
  bool has; /* min and max are set */
  bool
      nan; /* a NaN was met: bounds would hide it from readers that sort NaN behind all numbers */
  thrift_binary min, max;
  uint8_t low[8], high[8];
} stats_page;

/* Of several pages; values are copied. */
typedef struct stats_bounds {
  bool has, nan;
  base_buf min, max;
} stats_bounds;

/* width: bytes of a fixed value; offsets: of byte arrays, else NULL. */
void stats_of_page(enum parquet_order order, const void *values, const uint32_t *offsets,
                   size_t width, size_t n, stats_page *out);
/* Takes the bounds of more values of a page, which are numbers, in. */
void stats_add(enum parquet_order order, size_t width, const void *values, size_t n,
               stats_page *page);
weir_status stats_merge(stats_bounds *bounds, enum parquet_order order,
                        const stats_page *page, weir_error *err);
int stats_compare(enum parquet_order order, thrift_binary a, thrift_binary b);
void stats_clear(stats_bounds *bounds);
void stats_done(stats_bounds *bounds);

/* A bound of at most STATS_MAX_BYTES for a byte array: `value` itself when short enough, else a prefix
 * (min) or the least short text above every value with that prefix (max), written to `out`. Of UTF-8
 * text it is UTF-8 again. *exact says which. False: there is no such max, and `value` is too long to
 * be kept whole. */
#define STATS_MAX_BYTES 64u
#define STATS_WHOLE_BYTES 4096u
bool stats_short_min(thrift_binary value, bool utf8, thrift_binary *out, bool *exact);
bool stats_short_max(thrift_binary value, bool utf8, uint8_t room[STATS_MAX_BYTES + 4],
                     thrift_binary *out, bool *exact);

#endif
