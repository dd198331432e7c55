/* SPDX-License-Identifier: Apache-2.0 */
#include "support/source_rig.h"

#include <stdio.h>
#include <string.h>

#include "../../../connectors/file/source.h"

char source_rig_folder[FOLDER_PATH];

int source_rig_begin(void **state) {
  (void)state;
  return folder_make(source_rig_folder);
}

int source_rig_end(void **state) {
  (void)state;
  file_reader_set_block(SOURCE_RIG_BLOCK);
  return folder_remove(source_rig_folder);
}

const char *const *source_rig_settings(const char *pattern, const char *name,
                                       const char *value) {
  static char path[600];
  static const char *settings[12];
  const char *const fixed[] = {"path",        path,   "schema.id",  "int64",
                               "schema.name", "utf8", "batch_rows", "3"};
  snprintf(path, sizeof(path), "%s/%s", source_rig_folder, pattern);
  memcpy(settings, fixed, sizeof(fixed));
  settings[8] = name;
  settings[9] = value;
  return settings;
}

char *source_rig_read(const char *pattern, const weir_bytes *position, int batches,
                      weir_bytes *end) {
  opened_source s = sources_open(&weir_file_source_ops,
                                 source_rig_settings(pattern, NULL, NULL), position);
  char *got = sources_read_text(&s, batches);
  if (end != NULL) *end = sources_position(&s);
  sources_close(&s);
  return got;
}
