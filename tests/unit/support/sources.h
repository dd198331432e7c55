/* SPDX-License-Identifier: Apache-2.0 */
/* Drives a source by its table, as the runtime would, and fails the test on any error. */
#ifndef TESTS_UNIT_SUPPORT_SOURCES_H
#define TESTS_UNIT_SUPPORT_SOURCES_H

#include <weir/plugin.h>

/* A host whose clock stands at sources_now. */
extern const weir_host sources_host;
extern int64_t sources_now;

typedef struct opened_source {
  weir_source source;
  weir_options *options;
} opened_source;

/* `settings` are name, value, ... , NULL. `position` may be NULL: from the start. */
opened_source sources_open(const weir_source_ops *ops, const char *const *settings,
                           const weir_bytes *position);
/* The error of opening (options, contract, schema or open); fails the test when there is none. */
weir_status sources_open_error(const weir_source_ops *ops, const char *const *settings,
                               const weir_bytes *position, weir_error *err);
/* The next batch, or NULL at the end. */
weir_batch *sources_read(opened_source *s);
/* Rows as NDJSON until `max` batches or the end, to free(). */
char *sources_read_text(opened_source *s, int max);
weir_bytes sources_position(opened_source *s);
void sources_seek(opened_source *s, const weir_bytes *position);
void sources_close(opened_source *s);

#endif
