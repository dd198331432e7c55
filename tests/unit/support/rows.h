/* SPDX-License-Identifier: Apache-2.0 */
/* Schemas and rows as text, for tests. */
#ifndef TESTS_UNIT_SUPPORT_ROWS_H
#define TESTS_UNIT_SUPPORT_ROWS_H

#include <weir/batch.h>

/* "a: int64; b: utf8 not null"; fails the test when it cannot be read. */
weir_schema *rows_schema(const char *text);
/* The rows as NDJSON, to free(). */
char *rows_text(const weir_batch *batch);
/* A batch from NDJSON. */
weir_batch *rows_batch(weir_schema *schema, const char *text);

#endif
