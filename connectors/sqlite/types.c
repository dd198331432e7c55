/* SPDX-License-Identifier: Apache-2.0 */
/* What is stored as what. docs/configuration.md shows this table. */
#include <string.h>

#include "sqlite.h"

typedef struct type_row {
  enum ArrowType types[12]; /* ends with NANOARROW_TYPE_UNINITIALIZED */
  lite_type type;
} type_row;

static const type_row rows[] = {
    {{NANOARROW_TYPE_BOOL}, {"bool", "INTEGER", LITE_INTEGER, LITE_BY_VALUE, "0 or 1"}},
    {{NANOARROW_TYPE_INT8, NANOARROW_TYPE_INT16, NANOARROW_TYPE_INT32,
      NANOARROW_TYPE_INT64, NANOARROW_TYPE_UINT8, NANOARROW_TYPE_UINT16,
      NANOARROW_TYPE_UINT32, NANOARROW_TYPE_UINT64},
     {"int8 .. int64, uint8 .. uint64", "INTEGER", LITE_INTEGER, LITE_BY_VALUE,
      "uint64 beyond 2^63 - 1 is bad data"}},
    {{NANOARROW_TYPE_HALF_FLOAT, NANOARROW_TYPE_FLOAT, NANOARROW_TYPE_DOUBLE},
     {"float16, float32, float64", "REAL", LITE_REAL, LITE_BY_VALUE,
      "NaN, which SQLite has not, is bad data"}},
    {{NANOARROW_TYPE_STRING, NANOARROW_TYPE_LARGE_STRING, NANOARROW_TYPE_STRING_VIEW},
     {"utf8, large_utf8, utf8_view", "TEXT", LITE_TEXT, LITE_BY_VALUE,
      "a NUL, at which SQLite's functions stop, and what is not UTF-8 are bad data"}},
    {{NANOARROW_TYPE_BINARY, NANOARROW_TYPE_LARGE_BINARY, NANOARROW_TYPE_BINARY_VIEW,
      NANOARROW_TYPE_FIXED_SIZE_BINARY},
     {"binary, large_binary, binary_view, fixed_size_binary", "BLOB", LITE_BLOB,
      LITE_BY_VALUE, ""}},
    {{NANOARROW_TYPE_DATE32, NANOARROW_TYPE_DATE64, NANOARROW_TYPE_TIME32,
      NANOARROW_TYPE_TIME64, NANOARROW_TYPE_TIMESTAMP, NANOARROW_TYPE_DURATION},
     {"date, time, timestamp, duration", "TEXT", LITE_TEXT, LITE_BY_TEXT,
      "as in NDJSON: 2024-02-29, 23:59:59.500000, 2024-02-29T12:00:00.000001Z"}},
    {{NANOARROW_TYPE_DECIMAL128, NANOARROW_TYPE_DECIMAL256, NANOARROW_TYPE_DECIMAL32,
      NANOARROW_TYPE_DECIMAL64},
     {"decimal", "TEXT", LITE_TEXT, LITE_BY_TEXT, "every digit of its scale"}},
    {{NANOARROW_TYPE_LIST, NANOARROW_TYPE_LARGE_LIST, NANOARROW_TYPE_FIXED_SIZE_LIST,
      NANOARROW_TYPE_LIST_VIEW, NANOARROW_TYPE_LARGE_LIST_VIEW, NANOARROW_TYPE_STRUCT,
      NANOARROW_TYPE_MAP},
     {"lists, struct, map", "TEXT", LITE_TEXT, LITE_BY_JSON, "JSON"}},
};

const lite_type *lite_type_of(const struct ArrowSchema *column) {
  struct ArrowSchemaView view;
  const struct ArrowSchema *of = column->dictionary ? column->dictionary : column;
  if (ArrowSchemaViewInit(&view, of, NULL) != NANOARROW_OK) return NULL;
  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
    for (const enum ArrowType *t = rows[i].types; *t != NANOARROW_TYPE_UNINITIALIZED; t++)
      if (*t == view.type) return &rows[i].type;
  return NULL;
}
