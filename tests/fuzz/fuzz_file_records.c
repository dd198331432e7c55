/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever lies in a store or in a `.weir` folder: intents, descriptors, manifests, records, names. */
#include <stdlib.h>
#include <string.h>

#include "../../connectors/file/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  file_epoch_key key = {0};
  file_data_files files = {0};
  file_manifest m = {0};
  file_owner_record record = {0};
  file_data_name name;
  weir_error err = {0};
  const char *text = (const char *)data;
  char *copy = malloc(size + 1);
  if (!copy) return 0;
  memcpy(copy, data, size);
  copy[size] = 0;
  file_data_name_parse(copy, &name);
  free(copy);
  file_intent_read(data, size, &key, &err);
  file_descriptor_read(data, size, 42, 3, &files, &err);
  file_data_files_done(&files);
  if (!file_manifest_read(text, size, 7, "fuzz", &m, &err)) file_manifest_done(&m);
  for (int kind = RECORD_OWNER; kind <= RECORD_CLAIM; kind++) {
    if (!file_record_read(kind, text, size, "fuzz", &record, &err))
      file_record_done(&record);
  }
  return 0;
}
