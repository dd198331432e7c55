/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schema of a Delta table (PROTOCOL.md, section "Schema Serialization Format"): read from metaData.schemaString,
 * matched with the columns that an input brings, and made from them for a new table.
 */
#ifndef CONNECTORS_DELTA_SCHEMA_H
#define CONNECTORS_DELTA_SCHEMA_H

#include <weir/batch.h>

#include "features.h"

enum {
  DELTA_TYPE_STRING = 1,
  DELTA_TYPE_LONG,
  DELTA_TYPE_INTEGER,
  DELTA_TYPE_SHORT,
  DELTA_TYPE_BYTE,
  DELTA_TYPE_FLOAT,
  DELTA_TYPE_DOUBLE,
  DELTA_TYPE_BOOLEAN,
  DELTA_TYPE_BINARY,
  DELTA_TYPE_DATE,
  DELTA_TYPE_TIMESTAMP,
  DELTA_TYPE_TIMESTAMP_NTZ,
  DELTA_TYPE_VOID,
  DELTA_TYPE_DECIMAL,
  DELTA_TYPE_STRUCT,
  DELTA_TYPE_ARRAY, /* one child, `element` */
  DELTA_TYPE_MAP    /* two, `key` and `value` */
};

/* A field, or what an array or a map consists of. */
typedef struct delta_column {
  const char *name; /* as people see it */
  const char *
      physical; /* as files, statistics and partition values have it; the name without column mapping */
  int32_t id;           /* field id in the files; 0: none */
  int type;             /* DELTA_TYPE_* */
  int precision, scale; /* of DECIMAL */
  bool nullable;        /* of an element or a map's value: containsNull */
  bool has_default;
  struct delta_column *children;
  size_t n_children;
} delta_column;

/* The top level, a struct. All of it is the arena's. */
typedef struct delta_schema {
  delta_column root;
} delta_schema;

/* Refuses what makes appending impossible, by the column's name: a type that weir does not know, and what binds
 * writers (invariants, generated and identity columns: sections "Column Invariants", "Generated Columns", "Identity
 * Columns") where `features` says that it counts. */
weir_status delta_schema_read(delta_text text, const delta_features *features,
                              const char *where, delta_arena *arena, delta_schema *out,
                              weir_error *err);

/* NULL when there is none. Names differ in more than case, so this finds exact spelling alone. */
const delta_column *delta_schema_find(const delta_schema *schema, const char *name);

/*
 * How an input's columns go into the table: each by its name, in whatever order. WEIR_E_SCHEMA names the first
 * that does not fit: it is not in the table, it has another type, or it may be null where the table's may not. Columns
 * of the table that the input lacks must be nullable, and are null to readers.
 */
weir_status delta_schema_match(const delta_schema *table, const struct ArrowSchema *input,
                               const char *where, weir_error *err);

/* The input's schema as files have it: physical names, field ids, without the table's `partition_columns`. `columns`
 * gets the input's columns that are left, room for all of them. After a match. */
weir_status delta_schema_of_files(const delta_schema *table, const weir_schema *input,
                                  const delta_texts *partition_columns, int64_t *columns,
                                  int64_t *n_columns, weir_schema **out, weir_error *err);

/* schemaString for a new table with these columns, in the arena. WEIR_E_SCHEMA names a column that Delta has no type
 * for, or whose name it cannot have without column mapping. *ntz says whether there is a timestamp without zone. */
weir_status delta_schema_write(const struct ArrowSchema *input, delta_arena *arena,
                               delta_text *out, bool *ntz, weir_error *err);

/* A number of one or two digits, passed over; false: there is none. */
bool delta_small_number(const char **at, int *out);

/* DELTA_TYPE_* of an Arrow field, a dictionary's by its values; 0: Delta has none. */
int delta_type_of_arrow(const struct ArrowSchema *field, int *precision, int *scale);

#endif
