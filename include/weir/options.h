/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options of one connector: a table that says what there is, and the values that a user gave.
 *
 * One table parses, checks, prints `weir connectors NAME` and writes the reference page. A connector
 * never sees YAML: it asks for values by the names of its own table, with defaults filled in.
 */
#ifndef WEIR_OPTIONS_H
#define WEIR_OPTIONS_H

#include <weir/bytes.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  WEIR_OPT_STRING = 1,
  WEIR_OPT_INT = 2,      /* signed 64-bit, within [min, max] */
  WEIR_OPT_BOOL = 3,     /* true or false */
  WEIR_OPT_FLOAT = 4,    /* within [min, max] */
  WEIR_OPT_SIZE = 5,     /* bytes: 64MiB, 1GB, 4096 */
  WEIR_OPT_DURATION = 6, /* nanoseconds: 250ms, 10s, 1h; a bare 0 is allowed */
  WEIR_OPT_ENUM = 7,     /* one of `choices`, separated by '|' */
  /* relative paths start at the pipeline file's folder; "-" and URLs stay */
  WEIR_OPT_PATH = 8,
  WEIR_OPT_LIST = 9, /* of strings; a scalar counts as a list of one */
  /* a list of paths, each as WEIR_OPT_PATH; of one with a wildcard (* ? [ or {) those of the pipeline file's folder
   * are escaped by a backslash, as glob(3) takes it */
  WEIR_OPT_PATHS = 10,
  /* free keys to strings, in the user's order; a bare scalar is allowed too */
  WEIR_OPT_MAP = 11
};

enum {
  WEIR_OPT_REQUIRED = 1,
  WEIR_OPT_SECRET = 2, /* never printed, logged or stored */
  /* of a PATH: a value without a slash is a name, which stays as it is */
  WEIR_OPT_NAME = 4
};

/* A row of a table; the table ends with a row whose name is NULL. The default is written as a user
 * would write it; NULL = absent. A dotted name ("roll.size") is a key of a mapping ("roll: {size: ..}"). */
typedef struct weir_option {
  const char *name;
  int32_t type;  /* WEIR_OPT_* */
  int32_t flags; /* WEIR_OPT_REQUIRED | WEIR_OPT_SECRET | WEIR_OPT_NAME */
  const char *default_value;
  int64_t min,
      max; /* bounds of INT, FLOAT, SIZE and DURATION; both 0 = none, max < min = no
              upper bound */
  const char *choices; /* of ENUM: "parquet|arrow|csv" */
  const char *text;    /* one sentence for people: meaning and unit */
} weir_option;

/* Values checked against a table. Immutable; may be read from any thread. */
typedef struct weir_options weir_options;

/* Whether the user gave the option (a default does not count). */
WEIR_API int weir_options_given(const weir_options *options, const char *name);

/* Values by name, defaults filled in. Asking for a name that the table lacks, or with another type,
 * is a bug of the connector: it aborts in debug builds and answers the empty value otherwise.
 * Strings are owned by `options`. string: NULL when absent (for STRING, ENUM, PATH, and a MAP given
 * as a scalar). */
WEIR_API const char *weir_options_string(const weir_options *options, const char *name);
/* INT, SIZE, DURATION */
WEIR_API int64_t weir_options_int(const weir_options *options, const char *name);
WEIR_API int weir_options_bool(const weir_options *options, const char *name);
WEIR_API double weir_options_float(const weir_options *options, const char *name);

/* Items of a LIST, PATHS or MAP, in the user's order. key is NULL for lists. */
WEIR_API size_t weir_options_count(const weir_options *options, const char *name);
WEIR_API const char *weir_options_key(const weir_options *options, const char *name,
                                      size_t i);
WEIR_API const char *weir_options_item(const weir_options *options, const char *name,
                                       size_t i);

/* "source orders" or "sink lake": how messages should name this connector instance. */
WEIR_API const char *weir_options_where(const weir_options *options);

/* For hosts without a pipeline file, and for tests: checks `n` dotted name/value pairs against a
 * table. LIST items repeat the name; MAP items are "map.key". `base_dir` is where relative paths
 * start (NULL: they stay as they are). Unknown names are WEIR_E_INVALID_CONFIG naming the nearest
 * known one. `where` is copied. */
WEIR_API weir_status weir_options_new(const weir_option *table, const char *where,
                                      const char *const *names, const char *const *values,
                                      size_t n, const char *base_dir, weir_options **out,
                                      weir_error *err);
WEIR_API void weir_options_free(weir_options *options); /* NULL is a no-op */

/* 1: each of `hosts`, names or addresses with commas between them, is this machine by its spelling alone (nothing
 * is asked of a resolver): empty, "localhost", an address of 127.0.0.0/8, ::1, or a Unix socket ("/..." or
 * "@..."). Else 0: what is sent there leaves the machine, so that the other end should prove who it is. */
WEIR_API int weir_hosts_are_local(const char *hosts);

#ifdef __cplusplus
}
#endif
#endif
