/* SPDX-License-Identifier: Apache-2.0 */
/* From a mapping and option tables to values. */
#ifndef CONFIG_BUILD_H
#define CONFIG_BUILD_H

#include "config/node.h"

typedef struct option_value {
  const weir_option *row;
  bool given;      /* by the user, not a default */
  bool present;    /* given or a default */
  char *text;      /* STRING, ENUM, PATH; a MAP given as a scalar */
  int64_t integer; /* INT, SIZE, DURATION, BOOL */
  double real;
  char **keys; /* of a MAP */
  char **items;
  size_t n;
} option_value;

struct weir_options {
  char *where;
  option_value *values; /* one a row, connector's table first */
  size_t n;
  char **notes;
  size_t n_notes;
};

/* A name that will be an option one day. */
typedef struct config_reserved {
  const char *name;
  const char *text; /* what to do meanwhile; may be NULL */
} config_reserved;

/* What a mapping is checked against, and how messages call it. */
typedef struct config_build {
  const char *file;     /* NULL: no place in messages */
  const char *pipeline; /* NULL: not known */
  const char *where;    /* "sink lake"; NULL: the top of the file */
  const char *type;     /* the connector's; NULL: none */
  const char *base_dir;
  const weir_option *tables[2]; /* either may be NULL */
  const char *const
      *skip; /* keys that are looked at elsewhere, ends with NULL; may be NULL */
  const config_reserved *reserved; /* ends with a NULL name; may be NULL */
  bool keys_only;                  /* check that keys are known, nothing else */
  weir_options *out;
} config_build;

/* Checks `map` (a mapping or NULL) and gives the values. `at` is where a missing option
 * is reported. */
weir_status config_build_options(config_build *b, const config_node *map,
                                 const config_node *at, weir_options **out,
                                 weir_error *err);

/* Refuses keys at the top of a file that no version of weir knows. */
weir_status config_check_top_keys(const config_node *root, const char *file,
                                  weir_error *err);

/* WEIR_E_INVALID_CONFIG: place, pipeline, connector, option ("" or NULL: none), then the
 * text. */
weir_status config_build_fail(const config_build *b, const config_node *at,
                              const char *option, weir_error *err, const char *fmt, ...)
    WEIR_PRINTF(5, 6);
weir_status config_build_vfail(const config_build *b, const config_node *at,
                               const char *option, weir_error *err, const char *fmt,
                               va_list args) WEIR_PRINTF(5, 0);

/* Fills `value`, whose row is set, from a node. */
weir_status config_value_set(config_build *b, option_value *value,
                             const config_node *node, weir_error *err);
void config_value_done(option_value *value);
/* "a size such as 64MiB, from 1MiB to 1GiB": what a row expects. */
weir_status config_value_expected(const weir_option *row, base_buf *out, weir_error *err);

/* A number as a user would write it: 64MiB, 10s, 42. */
weir_status config_amount_format(int32_t type, int64_t value, base_buf *out,
                                 weir_error *err);

/* A path as an option means it: relative ones start at base_dir; "-" and URLs stay. */
char *config_resolve_path(const char *base_dir, const char *path, weir_error *err);

/* The value of a SECRET as it is used: the content of the file for "file:/path", else a
 * copy. */
weir_status config_secret_read(config_build *b, const weir_option *row,
                               const config_node *at, const char *text, char **out,
                               weir_error *err);
weir_status config_note(weir_options *options, weir_error *err, const char *fmt, ...)
    WEIR_PRINTF(3, 4);

#endif
