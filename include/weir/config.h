/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration of a pipeline: what the pipeline file says, or the same built call by call.
 * A weir_config is not thread-safe while it is being filled; afterwards it is only read.
 */
#ifndef WEIR_CONFIG_H
#define WEIR_CONFIG_H

#include <weir/error.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_config weir_config;

WEIR_API weir_status weir_config_new(weir_config **out, weir_error *err);
WEIR_API void weir_config_free(weir_config *config); /* NULL is a no-op */

/* Reads a pipeline file's text (YAML, UTF-8, at most 16 MiB). `name` is how messages call it (a path,
 * or "standard input"), `base_dir` the folder where relative paths start. ${NAME} takes an environment
 * variable. Syntax errors, duplicate keys and unknown top-level keys are WEIR_E_INVALID_CONFIG with
 * line and column. May be called once, before any weir_config_set. On failure the config is as before. */
WEIR_API weir_status weir_config_read(weir_config *config, const char *yaml, size_t size,
                                      const char *name, const char *base_dir,
                                      weir_error *err);

/* Reads the file at `path`, as weir_config_read with the path's folder as base_dir. */
WEIR_API weir_status weir_config_read_file(weir_config *config, const char *path,
                                           weir_error *err);

/* Sets one value, as `--set a.b=c` does: `dotted` is "sinks.lake.path", `value` one YAML value in
 * flow style ("3", "[a, b]", "{size: 64MiB}"). Replaces what was there. Enough without any file. */
WEIR_API weir_status weir_config_set(weir_config *config, const char *dotted,
                                     const char *value, weir_error *err);

/* What a host has to know of a config before it opens the pipeline. */

/* `checkpoint.timeout`: how long the last checkpoint of a run may take. Checks the top of the file. */
WEIR_API weir_status weir_config_checkpoint_timeout(const weir_config *config,
                                                    int64_t *out_ns, weir_error *err);

/* 1 when an entry of `group` ("sources" or "sinks") has this `type`, else 0. */
WEIR_API int weir_config_uses(const weir_config *config, const char *group,
                              const char *type);

#ifdef __cplusplus
}
#endif
#endif
