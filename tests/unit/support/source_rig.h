/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the source `file` share: one folder at a time, and sources over files in it. */
#ifndef TESTS_UNIT_SUPPORT_SOURCE_RIG_H
#define TESTS_UNIT_SUPPORT_SOURCE_RIG_H

#include "support/folder.h"
#include "support/sources.h"

#define SOURCE_RIG_BLOCK ((size_t)1 << 20) /* what a test ends with */

extern char source_rig_folder[FOLDER_PATH];

int source_rig_begin(void **state);
int source_rig_end(void **state);
#define IN_FOLDER(test) \
  cmocka_unit_test_setup_teardown(test, source_rig_begin, source_rig_end)

/* Columns id and name of `pattern` in the folder, in batches of 3 rows; with one more option unless `name`
 * is NULL. Valid until the next call. */
const char *const *source_rig_settings(const char *pattern, const char *name,
                                       const char *value);
/* `batches` batches behind `position` as NDJSON, to free(); the position reached in *end unless NULL. */
char *source_rig_read(const char *pattern, const weir_bytes *position, int batches,
                      weir_bytes *end);

#endif
