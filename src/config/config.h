/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pipeline file as the pipeline room sees it: what stands at the top, and the sources
 * and sinks in the order of the file, each with a subtree that a connector's table turns
 * into weir_options.
 *
 *   config_top_init(config, &top, err)                     name, guarantee, folders,
 * intervals config_connector_at(config, CONFIG_SINKS, i, &c, err)  name and type of the
 * i-th sink config_options(config, &c, ops->options, &options, err)
 *   config_option_error(config, &c, "from", err, "...")    an error of the same shape,
 * found later
 *
 * Every message begins with the place ("orders.yaml:14:7: ") and names the pipeline, the
 * connector and the option. The value of a secret or of an environment variable never
 * stands in one.
 */
#ifndef CONFIG_CONFIG_H
#define CONFIG_CONFIG_H

#include <weir/config.h>
#include <weir/contract.h>
#include <weir/options.h>

#include "base/base.h"

#define CONFIG_MAX_FILE (16u << 20)   /* bytes of a pipeline file */
#define CONFIG_MAX_SECRET (64u << 10) /* bytes of a secret file */

/* ---- the whole pipeline
 * ---------------------------------------------------------------------- */

/* What stands at the top of the file. Strings live as long as `options`. */
typedef struct config_top {
  const char *pipeline; /* [a-z0-9_-], 1 to 64 characters */
  int32_t guarantee;    /* WEIR_BEST_EFFORT .. */
  const char *state;    /* folder; default ./weir-state/<pipeline> beside the file */
  const char *store;    /* URI of a PostgreSQL store, a secret; NULL: a file in `state` */
  int64_t lease_ns;     /* store_lease */
  int64_t interval_ns;  /* checkpoint.interval */
  int64_t timeout_ns;   /* checkpoint.timeout */
  int64_t queue_bytes;  /* what one queue may hold */
  const char *spool;    /* folder; default `spool` in `state` */
  bool spool_given;     /* the user named it, so that with `store` it is shared */
  int64_t spool_limit, spool_keep;
  weir_options *options;               /* of config_top_table, for a dump */
  char *default_state, *default_spool; /* owned */
} config_top;

/* Reads and checks the top of the file; at least one source and one sink must be there.
 */
weir_status config_top_init(const weir_config *config, config_top *out, weir_error *err);
void config_top_done(config_top *top); /* zeroed ok */

/* ---- sources and sinks
 * ----------------------------------------------------------------------- */

enum { CONFIG_SOURCES = 0, CONFIG_SINKS = 1 };

typedef struct config_node config_node;

/* One entry of `sources` or `sinks`; borrowed from the weir_config. */
typedef struct config_connector {
  int32_t kind;            /* CONFIG_SOURCES or CONFIG_SINKS */
  const char *name;        /* [A-Za-z0-9_-], 1 to 64 characters, unique within its kind */
  const char *type;        /* as written: a connector's name or a path */
  const config_node *node; /* its mapping */
  char where[80];          /* "source orders", "sink lake" */
} config_connector;

size_t config_connector_count(const weir_config *config, int32_t kind);
/* The i-th in the order of the file. Fails when its name or type is missing or malformed.
 */
weir_status config_connector_at(const weir_config *config, int32_t kind, size_t i,
                                config_connector *out, weir_error *err);
/* Whether a source or sink names that sink for its bad rows. */
bool config_takes_letters(const weir_config *config, const char *sink);
/* Where a `type` that is a path ("./x.so") is found: joined to the file's folder. free()
 * it. */
char *config_path(const weir_config *config, const char *path, weir_error *err);

/* Options that every source or sink has, whatever its type: config_core_table(kind).
 * Sources: type, on_bad_row. Sinks: type, from, writers, write_timeout, flush_interval,
 * on_bad_row. */
const weir_option *config_core_table(int32_t kind);
/* Options at the top of the file. */
const weir_option *config_top_table(void);

/* Checks the connector's mapping against its own table and the core table of its kind and
 * gives the values of both in one weir_options, to be freed. Where both tables have a
 * name, the connector's counts. Secret files (`file:/path`) are read here. An unknown key
 * names the nearest known one. */
weir_status config_options(const weir_config *config, const config_connector *connector,
                           const weir_option *table, weir_options **out, weir_error *err);

/* An error about one option of a connector, found by whoever gave it a meaning:
 * WEIR_E_INVALID_CONFIG with the place, pipeline, connector and option before the text.
 * `connector` NULL: the top of the file; `option` NULL: the connector as a whole. */
weir_status config_option_error(const weir_config *config,
                                const config_connector *connector, const char *option,
                                weir_error *err, const char *fmt, ...) WEIR_PRINTF(5, 6);

/* Fills an empty config with one sink, `conform` of pipeline `weir-conform`: `yaml` has its options as they stand
 * under `sinks: NAME:`, `type` counts over one that is given there. The rest is as of weir_config_read. */
weir_status config_read_sink(weir_config *config, const char *type, const char *yaml,
                             size_t size, const char *name, const char *base_dir,
                             weir_error *err);

/* ---- options
 * --------------------------------------------------------------------------------- */

/* Things to warn of that did not stop the reading (a secret file that others may read).
 */
size_t config_options_notes(const weir_options *options);
const char *config_options_note(const weir_options *options, size_t i);

/* Appends one line an option that the user gave or that has a default, "  name: value",
 * in the order of the tables; defaults are marked, secrets show as "(secret)". */
weir_status config_options_dump(const weir_options *options, base_buf *out,
                                weir_error *err);

#endif
