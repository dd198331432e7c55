/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which Arrow type may go into which type of PostgreSQL: one table, by which values are encoded, target
 * columns are admitted, tables are created and the page in docs/ is written.
 *
 * A value arrives exactly or is refused: a column whose values would be rounded, cut or narrowed is refused
 * before anything is written, a value that its column cannot hold is bad data with its row.
 */
#ifndef CONNECTORS_POSTGRES_TYPES_H
#define CONNECTORS_POSTGRES_TYPES_H

#include <nanoarrow/nanoarrow.h>
#include <stdbool.h>
#include <weir/error.h>

#define PG_TRY(call)                           \
  do {                                         \
    weir_status pg_try_status_ = (call);       \
    if (pg_try_status_) return pg_try_status_; \
  } while (0)

/* Sets `status` and jumps to the enclosing function's `out` label when the call failed. */
#define PG_GOTO(status, call) \
  do {                        \
    (status) = (call);        \
    if (status) goto out;     \
  } while (0)

#define PG_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Types as far as COPY's binary format tells them apart; domains are what they stand on. */
typedef enum pg_kind {
  PG_OTHER = 0, /* nothing goes into it */
  PG_BOOL,
  PG_INT2,
  PG_INT4,
  PG_INT8,
  PG_FLOAT4,
  PG_FLOAT8,
  PG_NUMERIC,
  PG_TEXT, /* and varchar, char, enums: whatever receives its text */
  PG_BYTEA,
  PG_UUID,
  PG_DATE,
  PG_TIME,
  PG_TIMESTAMP,
  PG_TIMESTAMPTZ,
  PG_INTERVAL,
  PG_JSON,
  PG_JSONB,
  PG_KINDS
} pg_kind;

/* The type of a column of the target. */
typedef struct pg_type {
  pg_kind kind;   /* of the items, when it is an array */
  int32_t typmod; /* -1: none; of the items, when it is an array */
  bool array;
  uint32_t oid;  /* of the items, when it is an array; else of no use */
  char name[80]; /* as format_type() gives it, for messages */
} pg_type;

struct pg_column;

/* One way of a type into another. */
typedef struct pg_rule {
  enum ArrowType from;
  int32_t zone; /* of timestamps: 1 with a time zone, -1 without; else 0 */
  pg_kind to;
  size_t
      room; /* bytes of a value with its length word, at most; texts and bytes come on top */
  /* Writes value i, which is no null, with its length word and returns where it ends. */
  uint8_t *(*put)(const struct pg_column *, int64_t i, uint8_t *at);
  /* The first of n values from i that cannot be put, or -1; nulls count as values. NULL: all can. */
  int64_t (*check)(const struct pg_column *, int64_t i, int64_t n);
} pg_rule;

/* Whether a field of Arrow may go into a column of type `to`. WEIR_E_SCHEMA says why not. */
weir_status pg_type_check(const struct ArrowSchema *field, const pg_type *to,
                          weir_error *err);

/* The rule for what is no list, dictionary or run; NULL: there is none. */
const pg_rule *pg_rule_find(const struct ArrowSchemaView *view, pg_kind to);

/* Lists, structs, maps and their like. */
bool pg_type_is_list(enum ArrowType type);
bool pg_type_is_nested(enum ArrowType type);

/* What lies under dictionaries and runs. */
const struct ArrowSchema *pg_field_values(const struct ArrowSchema *field);

/* The type that `create: true` gives a column for this field, as it stands in DDL. */
weir_status pg_type_create(const struct ArrowSchema *field, char *out, size_t size,
                           weir_error *err);

/* A type by its name in pg_catalog, "int4"; PG_OTHER for one that nothing goes into. */
pg_kind pg_kind_of(const char *typname);
/* As people write it: "integer". */
const char *pg_kind_name(pg_kind kind);

/* The table as Markdown, with malloc; NULL: no memory. */
char *pg_types_markdown(void);

#endif
